"""Decisions: what the program's author reads from tensors while a function is captured.

`if x.sum() > 0`, `n.item()` and `x[mask]` need values, and a capture has shapes only.  The values
are computed from the inputs at hand, the capture goes on with them, and the graph is right as long
as they are the same: a small graph of its own computes them anew before every call.  What the
library looks at in passing (the range of an argument, say: `in_passing` of `threads/state.py`) is
left alone.
Read next: `capture.py`.
"""

from __future__ import annotations

import numpy as np

from .. import errors
from ..array.generator import Generator, default_generator
from ..core.handle import Tensor, make, tensors_in
from ..core.stack import bind
from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from ..graph.node import Node, map_arg
from ..interp.box import map_flat, map_tensors
from ..table.packets import ops
from ..threads.blocks import tied
from ..threads.state import calling, state
from .guards import contents

LIMIT = 1 << 16  # elements of a tensor that may be a decision


def wanted() -> bool:
    """Is the program about to go by the value of a tensor, or is that a look in passing?"""
    return not calling.in_passing


class Decisions:
    """The values that one capture had to know."""

    def __init__(self, recorder, tangents: bool = False):
        self.recorder = recorder
        self.tangents = tangents  # do ones stand for gradients that are not known?
        self.taken: dict[Node, Tensor] = {}
        self._values: dict[Node, object] = {}
        self._after = None  # the state of the generator after the draws that were evaluated

    def value(self, node: Node) -> Tensor | None:
        """The value of a node on the inputs at hand; None if it depends on more than them."""
        found = self.taken.get(node)
        if found is None and node.meta["val"].numel() <= LIMIT:
            found = self._evaluate(node)
            if found is not None:
                self.taken[node] = found
        return found

    def known(self, node: Node) -> Tensor | None:
        """The value at hand, on which nothing will depend but shapes."""
        return self._evaluate(node)

    def note(self, node: Node, value: Tensor) -> None:
        """The value of a node is known already."""
        self._values[node] = value

    def _evaluate(self, wanted: Node):
        values, recorder = self._values, self.recorder
        todo = [wanted]
        while todo:
            node = todo[-1]
            if node in values:
                todo.pop()
                continue
            if node.op == "placeholder":
                array = recorder.arrays.get(node)
                if array is None:  # the gradient of an output
                    if not self.tangents:
                        return None
                    example = node.meta["val"]
                    array = np.ones(tuple(example.shape), example.dtype.np)
                values[node] = make(array)
                continue
            if node.op == "get_attr":
                values[node] = recorder.constants[node.target]
                continue
            random = _draws(node)
            given = (*node.args, *node.kwargs.values()) if random else ()
            if any(isinstance(v, Generator) for v in given):
                return None
            missing = [n for n in node.all_input_nodes if n not in values]
            if random:  # numbers come in the order of the program
                missing += [n for n in self._draws_until(node)[:-1] if n not in values][:1]
            if missing:
                todo += missing
            else:
                values[node] = self._drawn(node) if random else self._call(node)
        return values[wanted]

    def _call(self, node: Node):
        known = self._values.__getitem__
        return node.target(*map_arg(node.args, known), **map_arg(node.kwargs, known))

    def _drawn(self, node: Node):
        """What the generator will give when the program runs."""
        before = default_generator.get_state()
        if self._after is not None:
            default_generator.set_state(self._after)
        try:
            found = self._call(node)
            self._after = default_generator.get_state()
        finally:
            default_generator.set_state(before)
        return found

    def _draws_until(self, node: Node) -> list[Node]:
        """The random numbers that a program draws, up to these."""
        found = []
        for n in self.recorder.graph.nodes:
            if _draws(n):
                found.append(n)
            if n is node:
                break
        return found

    def module(self) -> GraphModule | None:
        """The graph that computes the decisions from the inputs."""
        if not self.taken:
            return None
        source, graph, copied = self.recorder.graph, Graph(), {}
        needed, todo = set(), list(self.taken)
        last = next((n for n in reversed(list(source.nodes)) if n in self._values and _draws(n)),
                    None)
        if last is not None:
            todo += self._draws_until(last)
        while todo:
            node = todo.pop()
            if node not in needed:
                needed.add(node)
                todo += node.all_input_nodes
        for node in source.nodes:
            if node in needed or node in self.recorder.arrays:
                copied[node] = graph.node_copy(node, copied.__getitem__)
        graph.output(tuple(copied[n] for n in self.taken))
        return GraphModule(self.recorder.constants, graph, "decisions")

    def answers(self) -> list[tuple]:
        """What they were, in the order of the graph's outputs."""
        return [contents(t._payload) for t in self.taken.values()]


def _draws(node: Node) -> bool:
    return node.op == "call_function" and getattr(node.target, "is_random", False)


class below:
    """Plain evaluation while a capture runs: the level below it, on real values."""

    def __init__(self, level):
        self.level = level

    def __enter__(self):
        self.before = state.mode, state.random, state.fakes, state.autocast
        state.mode, state.random = self.level.previous
        state.fakes.creates, state.autocast = False, None

    @tied
    def __exit__(self, *exc):
        state.mode, state.random, state.fakes, state.autocast = self.before


def sized_by_values(level, ov, flat: tuple):
    """An operator whose result has a size that depends on values; None if they stay unknown.

    Masks become the places where they are true; other operators of this kind count or look for
    something and are constants of the graph.
    """
    if ov.op.picks is not None:
        return _picked(level, *ov.op.picks(*flat))
    tensors = list(tensors_in(flat))
    if ov.is_random or any(t._edge is not None for t in tensors):
        return None
    known = {id(t): level.decided(t) for t in tensors}
    if None in known.values():
        return None
    with below(level):
        out = bind(ov, map_flat(lambda t: known[id(t)], flat))
    return map_tensors(level.constant, out)


def drawn(level, ov, flat: tuple):
    """Random numbers of a generator that was seeded inside of the function."""
    like = ov.op.by_shape and "self" in ov.op.nondiff  # it is a model, as for `rand_like`

    def known(t: Tensor) -> Tensor:
        if like:
            return make(np.empty(t.shape, t._payload.dtype))
        found = level.decided(t) if level.decides else None
        if found is None:
            raise errors.DataDependentError(
                errors.text(
                    f"{ov.name} draws numbers of a generator that the captured function has "
                    f"seeded itself, for a tensor whose values are not known "
                    f"({errors.user_line()})",
                    f"tensor: {t.dtype.name}{list(t.shape)}",
                    "seed the generator outside of the captured function",
                )
            )
        return found

    values = map_flat(known, flat)
    with below(level):
        return map_tensors(level.constant, bind(ov, values))


def _picked(level, source: Tensor, indices: list):
    """What indexing by masks gives, by the places where they are true."""
    places = []
    for index in indices:
        if index is None or index.dtype.name not in ("bool", "uint8"):
            places.append(index)
            continue
        mask = level.decided(index)
        if mask is None:
            return None
        if not mask.ndim:
            source = source.unsqueeze(len(places))
        with below(level):  # where nobody takes the mask for a part of the graph
            found = (mask if mask.ndim else mask.unsqueeze(0)).nonzero(as_tuple=True)
        places += [level.constant(t) for t in found]
    return ops.index(source, places)
