"""Programs with symbolic sizes: captured once, run for all sizes that satisfy their guards.

A `SymbolicProgram` holds the joint graph, its halves and the guards.  For the sizes of a call it
makes an *instance*, an ordinary `Program` with numbers in the place of symbols, which is kept: so a
call with sizes that were seen before costs what any compiled call costs.  Read next: `compiled.py`.
"""

from __future__ import annotations

import copy
import functools
import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from .. import errors
from ..array.fake import Fake, contiguous_strides
from ..array.size import Symbolic, hinted, is_symbolic
from ..core.handle import Tensor
from ..cut.settings import dynamo
from ..graph.concrete import valued
from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from ..graph.sizes import UNBACKED, argument
from ..symbolic.env import ShapeEnv
from .joint import Joint
from .results import Output


def layout(data: Any) -> tuple | None:
    """What a symbolic capture needs to know of an array's strides; None if they are odd."""
    if isinstance(data, Fake):
        own = contiguous_strides(hinted(data.shape), data.itemsize)
        return () if tuple(hinted(data.strides)) == own else None
    if data.flags.c_contiguous:
        return ()
    order = sorted(range(data.ndim), key=lambda d: (-data.strides[d], d))
    return tuple(order) if data.transpose(order).flags.c_contiguous else None


def is_number(value: Any, kinds: tuple) -> bool:
    """May an argument be a symbol, or is one?  A flag may not, nor what is no number."""
    if isinstance(value, Symbolic):
        return value.node.pytype in kinds and value.hint is not None
    return type(value) in kinds and math.isfinite(value)


def loose_key(value: Any, kinds: tuple) -> tuple:
    """What a symbolic graph depends on, for one argument: not its sizes, nor a number."""
    if is_number(value, kinds):
        return (value.node.pytype if isinstance(value, Symbolic) else type(value),)
    if isinstance(value, Tensor):
        data = value._data
        order = layout(data)
        sizes = data.ndim if order is not None else data.shape
        return sizes, data.dtype, value._edge is not None, order
    try:
        hash(value)
    except TypeError:
        return ("id", id(value))
    return (type(value), value)


def names_of(function: Callable, args: Sequence, kwargs: dict) -> list[str]:
    """What the function calls its arguments, one name for each tensor or other value in them."""
    from ..pytree import keystr, tree_flatten_with_path

    if hasattr(function, "titles"):  # of tensors inside of wrappers
        return function.titles
    try:
        parameters = list(inspect.signature(
            getattr(function, "forward", function)).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    found = []
    for i, value in enumerate(args):
        name = plain[i] if i < len(plain) else f"{rest}[{i - len(plain)}]"
        found += [name + keystr(path) for path, _ in tree_flatten_with_path(value)[0]]
    for name in kwargs:
        found += [name + keystr(path) for path, _ in tree_flatten_with_path(kwargs[name])[0]]
    return found


def local(name: str) -> str:
    """The name of an argument as PyTorch says where a size is found: `xs[0]` is `L['xs'][0]`."""
    first, bracket, path = name.partition("[")
    return f"L['{first}']{bracket}{path}"


class DynamicDims:
    """Which dims of the arguments, and which numbers, are symbolic, and between which bounds."""

    def __init__(self, tensors: list[Tensor], dynamic: bool | None, seen: list[tuple],
                 numbers: Sequence = ()):
        self.numbers = [bool(dynamic) if dynamic is not None else
                        any(_other(before[k], n) for _, before in seen)
                        for k, n in enumerate(numbers)]
        if dynamo.specialize_int:
            self.numbers = [w and type(n) is not int for w, n in zip(self.numbers, numbers)]
        self.dims: list[list] = []
        self.demanded: list[tuple[int, int]] = []  # the user says that they must not be fixed
        for i, t in enumerate(tensors):
            data = t._data
            marks = t.__dict__ if t.__dict__ else {}
            static = marks.get("_dynamo_static_indices", ())
            own: list = []
            for d, n in enumerate(data.shape):
                if d in marks.get("_dynamo_unbacked_indices", ()):
                    wish: Any = UNBACKED
                elif d in marks.get("_dynamo_dynamic_indices", ()):
                    wish = next(((low, high) for dim, low, high in marks.get(
                        "_dynamo_dynamic_range", ()) if dim == d), True)
                    self.demanded.append((i, d))
                elif d in marks.get("_dynamo_weak_dynamic_indices", ()):
                    wish = True
                elif d in marks.get("_dynamo_propagated_dynamic_indices", ()) and (
                        d not in static and dynamic is not False):
                    wish = layout(data) is not None
                elif d in static or dynamic is False or layout(data) is None:
                    wish = False
                elif dynamic:
                    wish = True
                else:
                    wish = any(shapes[i][d] != n for shapes, _ in seen)
                own.append(wish)
            self.dims.append(own)

    def __bool__(self) -> bool:
        return any(self.numbers) or any(w is not False for own in self.dims for w in own)


def _other(a: Any, b: Any) -> bool:
    return a != b and not (a != a and b != b)


def check_demands(joint: Joint, env: ShapeEnv, dynamic_dims: DynamicDims, shapes: list,
                  names: list) -> None:
    """Refuse a capture that has fixed a size which the user marked as dynamic."""
    for i, d in dynamic_dims.demanded:
        n = shapes[i][d]
        if not isinstance(n, Symbolic):  # 0 and 1 have programs of their own
            continue
        number = n.node.maybe_as_int()
        if number is None:
            wanted = dynamic_dims.dims[i][d]
            low, high = wanted if wanted is not True else (2, None)
            if not low <= n.hint <= (n.hint if high is None else high):
                raise errors.ConstraintViolationError(
                    f"Constraints violated ({names[i]}.size()[{d}])! It is {n.hint}, and was "
                    f"marked to be at least {low}" + ("" if high is None else f", at most {high}")
                    + f" ({errors.user_line(2)})")
            continue
        guard = next(g for g in reversed(env.guards)
                     if n.node.raw.symbol in g.relation.symbols())
        why = f"{guard} was needed at {guard.where}: {guard.reason}"
        raise errors.ConstraintViolationError(errors.text(
            f"Constraints violated ({names[i]}.size()[{d}])! It was marked as dynamic, but the "
            f"captured function is right for {number} only ({errors.user_line(2)})",
            why,
            ["do not mark it with mark_dynamic (maybe_mark_dynamic does not insist)",
             "or change the line so that it does not depend on the number"]))


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

    def __init__(self, joint: Joint, env: ShapeEnv, shapes: list, names: list[str], backend: Any,
                 numbers: int = 0):
        if backend.loose is not None and not all(s.sources for s in env.symbols.values()):
            backend = replace(backend, forward=backend.loose, backward=backend.loose, fuse=False)
        self.joint, self.env, self.backend = joint, env, backend
        self.check = env.checker(shapes, names, numbers)
        env.frozen = True
        self.halves = functools.cache(
            lambda: backend.partition(joint.module, joint.forward_count))
        self.seeded = functools.cache(backend.seeded)
        self._shared: dict[tuple, Any] = {}  # by name, and by the tangents that it does without
        self.first: Any = None  # the first instance
        found = [(k, _symbolic_dims(shape)) for k, shape in enumerate(joint.shapes)]
        self.marks = [(k, dims) for k, dims in found if dims and (
            backend.layout is not None or joint.outputs[k].kind != "input")]
        self.notes: dict[str, Any] = {}  # what else its instances know

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
            wrapped={k: plan.sized(lambda n: valued(n, of))
                     for k, plan in self.joint.wrapped.items()},
        )
        own = replace(
            backend,
            forward=lambda m, n: self.part(n, m, backend.forward, values),
            backward=lambda m, n: self.part(n, m, backend.backward, values),
            partition=lambda module, count: self.halves(),
            seeded=self.seeded,
        )
        program = make_program(joint, joint.inputs(tensors), own, values)
        program.symbolic, program.marks, program.values = self, self.marks, values
        self.first = self.first or program
        for name, value in self.notes.items():
            setattr(program, name, value)
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
