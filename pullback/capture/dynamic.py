"""Programs with symbolic sizes: captured once, run for all sizes that satisfy their guards.

A `SymbolicProgram` holds the joint graph, its halves and the guards.  For the sizes of a call it
makes an *instance*, an ordinary `Program` with numbers in the place of symbols, which is kept: so a
call with sizes that were seen before costs what any compiled call costs.  Read next: `compiled.py`.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from .. import errors
from ..array.size import Symbolic, is_symbolic
from ..core.handle import Tensor
from ..graph.concrete import valued
from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from ..graph.sizes import argument
from .joint import Joint, Sizes
from .results import Output


def with_numbers(module: GraphModule) -> tuple[GraphModule, list, int]:
    """A graph with numbers of the arguments as inputs, in front of tangents; which, and where."""
    nodes = module.graph.find_nodes(op="call_function", target=argument)
    inputs = module.graph.find_nodes(op="placeholder")
    place = sum("tangents" not in n.name for n in inputs)
    if not nodes:
        return module, [], place
    graph, copied = Graph(), {}
    numbers = {n.args[0]: n for n in nodes}

    def add() -> None:
        for place, node in numbers.items():
            copied[node] = graph.placeholder(f"number_{place}")
            copied[node].meta = dict(node.meta)

    for k, node in enumerate(module.graph.nodes):
        if k == place:
            add()
        if node.target is argument:
            copied[node] = copied[numbers[node.args[0]]]
        else:
            copied[node] = graph.node_copy(node, copied.__getitem__)
    made = GraphModule(module, graph)
    if hasattr(module, "writes"):
        made.writes = module.writes
    return made, [n.meta["val"] for n in numbers.values()], place


def given(run: Callable, numbers: list, place: int) -> Callable:
    """A compiled graph that gets its numbers from here."""
    if not numbers:
        return run
    return lambda *arrays: run(*arrays[:place], *numbers, *arrays[place:])


def runs_eagerly(module: GraphModule, values: dict | None) -> Callable:
    """A joint graph as a function of tensors, for given sizes."""
    if values is None:
        return module
    lifted, numbers, place = with_numbers(module)
    return given(lifted, valued(numbers, values.__getitem__), place)


class SymbolicProgram:
    """A function captured with symbolic sizes."""

    def __init__(self, joint: Joint, sizes: Sizes, backend: Any):
        env = sizes.env
        if backend.loose is not None and not all(s.sources for s in env.symbols.values()):
            backend = replace(backend, forward=backend.loose, backward=backend.loose, fuse=False)
        self.joint, self.env, self.backend = joint, env, backend
        self.check = env.checker(sizes.shapes, sizes.names, len(sizes.numbers))
        env.frozen = True
        self.halves = functools.cache(
            lambda: backend.partition(joint.module, joint.forward_count))
        self.seeded = functools.cache(backend.seeded)
        self._shared: dict[tuple, Any] = {}  # by name, and by the tangents that it does without
        self.first: Any = None  # the first instance
        found = [(k, _symbolic_dims(shape)) for k, shape in enumerate(sizes.returned)]
        self.marks = [(k, dims) for k, dims in found if dims and (
            backend.layout is not None or joint.outputs[k].kind != "input")]

    def part(self, name: str, module: GraphModule, compiler: Callable, values: dict) -> Callable:
        """A compiled part for given sizes."""
        key = name, getattr(module, "absent", ())
        found = self._shared.get(key)
        if found is None:
            for node in module.graph.nodes:
                if is_symbolic(node.args) or is_symbolic(node.kwargs.values()):
                    raise errors.CompileError(
                        f"a symbolic size is written into the graph: {node.name} {node.args}")
            lifted, numbers, place = with_numbers(module)
            found = self._shared[key] = compiler(lifted, name), numbers, place
        run, numbers, place = found
        at = getattr(run, "at", None)
        run = run if at is None else at(values)
        return given(run, valued(numbers, values.__getitem__), place)

    def report(self, found: Any, values: dict[str, int]) -> Any:
        """A report of the cut, with what it takes for given sizes."""
        if getattr(found, "phases", None) is None or self.backend.within is None:
            return found
        from ..cut.budget import measured

        found, cut = copy.copy(found), self.halves()
        meter = self.backend.within.args[1]()
        fused = found.way == getattr(getattr(cut, "fused", None), "way", None)
        found.phases = measured(cut, self.joint.forward_count, meter, values, fused)
        return found

    def keeps_limit(self, values: dict[str, int]) -> bool:
        """Is its cut within the limit of memory for given sizes, too?"""
        within = self.backend.within
        return within is None or not self.joint.differentiable or within(
            self.halves(), self.joint.forward_count, values)

    def saved_marks(self) -> list[frozenset]:
        """Of what the forward saves: dims that are symbols."""
        forward = self.first.graphs()[0].graph.output_node().args[0]
        layout = self.backend.layout
        saved = forward[self.joint.forward_count if layout is None else layout.count:]
        return [_symbolic_dims(getattr(n.meta["val"], "shape", ())) for n in saved]

    def instance(self, tensors: list[Tensor], values: dict[str, int]) -> Any:
        """The program for given sizes."""
        from .build import make_program

        of, backend = values.__getitem__, self.backend
        sized = _Sized(of)
        joint = replace(
            self.joint,
            outputs=list(map(sized, self.joint.outputs)),
            effects=[e.sized(sized) for e in self.joint.effects],
            backward=replace(self.joint.backward, wrapped={
                k: plan.sized(lambda n: valued(n, of))
                for k, plan in self.joint.backward.wrapped.items()}),
        )
        own = replace(
            backend,
            forward=lambda m, n: self.part(n, m, backend.forward, values),
            backward=lambda m, n: self.part(n, m, backend.backward, values),
            partition=lambda module, count: self.halves(),
            seeded=self.seeded,
        )
        program = make_program(joint, joint.inputs.of(tensors), own, values)
        program.symbolic, program.marks, program.values = self, self.marks, values
        self.first = self.first or program
        return program


def _symbolic_dims(shape: Sequence) -> frozenset:
    return frozenset(d for d, n in enumerate(shape)
                     if isinstance(n, Symbolic) and n.node.maybe_as_int() is None)


class _Sized:
    """What a captured program says where sizes are known; what belongs together stays together."""

    def __init__(self, of: Callable[[str], int]):
        self.of = of
        self.done: dict[Output, Output] = {}

    def __call__(self, value: Any) -> Any:
        if not isinstance(value, Output):
            return valued(value, self.of)
        if value not in self.done:
            self.done[value] = value.sized(self)
        return self.done[value]
