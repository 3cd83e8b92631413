"""Sizes in graphs: nodes that compute symbolic numbers, made when they are first needed.

A number that is the size of a recorded tensor becomes `sym_size.int(tensor, dim)`; one that Python
made from others becomes that operator on their nodes; else its expression is spelled out.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

from .. import errors
from ..array.fake import Fake
from ..array.size import Symbolic
from ..core.handle import Tensor, make
from ..core.overload import overload
from ..symbolic.env import COMPARE, ShapeEnv, Source
from ..symbolic.expr import Atom, Expr
from ..symbolic.number import SymInt, SymNode, sym_ite, sym_max, sym_min
from ..symbolic.views import following_strides
from ..threads.blocks import tied_block
from ..threads.state import state
from .node import Node, map_aggregate

_SIZE, _READ = overload("sym_size.int"), overload("_local_scalar_dense")
_ASSERT = overload("_assert_scalar")
_COUNT = overload("sym_numel")
_FUNCTIONS = {"floordiv": operator.floordiv, "mod": operator.mod, "max": sym_max, "min": sym_min,
              "and": operator.and_, "or": operator.or_, "xor": operator.xor}
_CHOICES = {"if_zero": operator.eq, "unless_negative": operator.ge}


class SizeNodes:
    """The nodes of the symbolic numbers of one graph."""

    def __init__(self, recorder: Any, env: ShapeEnv | None = None, inputs_only: bool = False,
                 inner: bool = False):
        self.env = ShapeEnv() if env is None else env
        if not inner:  # the graph of a branch or a loop belongs to another one
            self.env.recorder = self
        self.recorder, self.inputs_only = recorder, inputs_only
        self.live: Any = None  # the level whose arithmetic is recorded as it happens
        self.count = 0  # inputs so far
        self.checks = False  # are promises about data part of the graph?
        self._nodes: dict[Any, Node] = {}  # expression -> its node
        self._sizes: dict[Expr, tuple[Node, int]] = {}  # expression -> a tensor that has this size
        # Where the user's own arithmetic is recorded, each number is its own node, as in PyTorch,
        # also if another has the same value: by the identity of numbers, which are kept.
        self._own: dict[int, tuple[Any, Node]] = {}
        self._places: dict[int, tuple[Any, tuple[Node, int]]] = {}

    def note(self, node: Node, shape: tuple) -> None:
        """A tensor was recorded: its sizes can be asked for."""
        late = self.inputs_only and node.op != "placeholder"
        for d, n in enumerate(shape):
            if isinstance(n, Symbolic) and not (late and n.node.hint is not None):
                self._sizes.setdefault(n.node.raw, (node, d))
                if not self.inputs_only:
                    self._places.setdefault(id(n.node), (n.node, (node, d)))

    def number(self, node: Node, value: int) -> Any:
        """An integer argument, which is a symbol, too."""
        made = self.env.number(value, Source(f"input{self.count}"), special=True)
        self.count += 1
        if isinstance(made, Symbolic):
            node.meta["val"] = made
            self._nodes.setdefault(made.node.raw, node)
        return made

    def given(self, place: int, value: Any) -> None:
        """A number among the arguments of a capture, also where it equals a size."""
        if isinstance(value, Symbolic):
            self._nodes[value.node.raw] = self._call(argument, (place,), value)

    def defined(self, value: Any, node: Node) -> None:
        """A number that a node computes from data."""
        node.meta["val"] = value
        self._nodes[value.node.raw] = node
        self._own[id(value.node)] = value.node, node

    def made(self, value: Any) -> None:
        """Python has computed a number: recorded at once where the user's operators are."""
        if self.live is not None and state.stack[state.mode] is self.live:
            self.node(value)

    def promised(self, value: Any) -> None:
        """The user has said that something holds: programs to keep check it in every call."""
        if not self.checks:
            return
        asked = self.node(value)
        if isinstance(asked, Node):
            text = f"Runtime assertion failed for expression {value} on node '{asked.name}'"
            self.recorder.place(
                self.recorder.graph.call_function(_ASSERT, (asked, text)).meta)

    def counted(self, t: Tensor, value: Any) -> Any:
        """The number of elements of a tensor: a node of its own, not a product of sizes."""
        if self.live is None or getattr(t._payload, "interp", None) is not self.live:
            return value
        node = value.node
        return SymInt(SymNode(node.raw, self.env, int, node.hint, how=(_COUNT, (t,))))

    def drop_unused(self) -> None:
        """Without the numbers that nobody needed."""
        for node in reversed(list(self.recorder.graph.nodes)):
            if isinstance(node.meta.get("val"), Symbolic) and not node.users:
                if node.op != "placeholder" and node.target is not _READ:
                    self.recorder.graph.erase_node(node)

    def read(self, value: Any, source: Node) -> None:
        """A number was read from a tensor."""
        node = self.recorder.graph.create_node("call_function", _READ, (source,))
        self.recorder.place(node.meta)
        how = value.node.how
        number = how[1][0] if how is not None else value  # the truth of a bool asks for 1
        self.defined(number, node)

    def of_forward(self, values: Any) -> Any:
        """The same for results of the forward, which a backward has been recorded after."""
        before = self._nodes, self._sizes
        self._nodes = {e: n for e, n in self._nodes.items() if not _is_late(n)}
        self._sizes = {e: at for e, at in self._sizes.items() if not _is_late(at[0])}
        try:
            return self.in_place_of(values)
        finally:
            self._nodes, self._sizes = before

    def in_place_of(self, values: Any) -> Any:
        """Arguments with nodes in the place of symbolic numbers."""
        return map_aggregate(values, lambda v: self.node(v) if isinstance(v, Symbolic) else v)

    def node(self, value: Any) -> Any:
        """The node of a symbolic number; a plain number where it is known by now."""
        raw = value.node.raw
        found = self._apart(value) if self.live is not None else None
        if found is None:
            found = self._nodes.get(raw)
        if found is not None:
            return found
        number = value.node.maybe_as_int()
        if number is not None:
            return number
        place = self._sizes.get(raw)
        if place is None and isinstance(raw, Expr) and raw is not value.node.expr:
            place = self._sizes.get(value.node.expr)
        if place is not None:
            found = self._call(_SIZE, place, value)
        elif value.node.how is not None:
            function, args = value.node.how
            found = self._call(function, tuple([self._operand(a) for a in args]), value)
        elif isinstance(raw, Expr):
            found = self._spelled(raw)
        elif getattr(raw, "symbol", None) is not None:
            return _plain(value)  # of the graph around this one
        else:
            found = self._call(COMPARE[raw.op], tuple([self._part(e) for e in raw[1:]]), value)
        if isinstance(found, Node):
            self._nodes[raw] = found
        return found

    def _apart(self, value: Any) -> Node | None:
        """The node of this very number: the size that was asked for, or the user's arithmetic."""
        known = self._own.get(id(value.node))
        if known is not None:
            return known[1]
        raw, place = value.node.raw, self._places.get(id(value.node))
        if value.node.maybe_as_int() is not None:
            return None
        if place is not None:
            found = self._call(_SIZE, place[1], value)
        elif value.node.how is not None:
            function, args = value.node.how
            found = self._call(function, tuple([self._operand(a) for a in args]), value)
        else:
            return None
        self._own[id(value.node)] = value.node, found
        self._nodes.setdefault(raw, found)
        return found

    def _operand(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self.live.node(value)
        return self.node(value) if isinstance(value, Symbolic) else value

    def _part(self, e: Any) -> Any:
        if not isinstance(e, Expr):
            return e
        made = SymInt.of(self.env, e, None)
        return self.node(made) if isinstance(made, Symbolic) else made

    def _call(self, function: Any, args: tuple, value: Any) -> Node:
        from . import traceback

        node = self.recorder.graph.call_function(function, args)
        node.meta["val"] = value
        node.meta["stack_trace"] = traceback.source_line(3)
        if traceback.current_meta:
            node.meta.update(traceback.noted())
        return node

    def _spelled(self, e: Expr) -> Any:
        """A polynomial as sums and products."""
        total: Any = None
        for mono, c in sorted(e.terms, key=lambda t: -len(t[0])):
            term: Any = None
            for atom, power in mono:
                for _ in range(power):
                    factor = self._atom(atom)
                    term = factor if term is None else self._step(operator.mul, term, factor)
            if term is None:
                term = c
            elif c != 1:
                term = self._step(operator.mul, term, c)
            total = term if total is None else self._step(operator.add, total, term)
        return 0 if total is None else total

    def _step(self, function: Any, a: Any, b: Any) -> Any:
        values = [x.meta["val"] if isinstance(x, Node) else x for x in (a, b)]
        value = function(*values)
        if not isinstance(value, Symbolic):
            return value
        found = self._nodes.get(value.node.raw)
        if found is None:
            found = self._nodes[value.node.raw] = self._call(function, (a, b), value)
        return found

    def _atom(self, atom: Atom) -> Any:
        if atom.kind == "symbol":
            e = Expr(((((atom, 1),), 1),))
            found = self._nodes.get(e)
            if found is None:
                place = self._sizes.get(e)
                value = SymInt.of(self.env, e, None)
                if place is None:  # a size of the graph around this one
                    lift = getattr(self.recorder, "number", None)
                    if lift is None:
                        return int(value)
                    self.read(value, lift(value))
                    return self._nodes[e]
                found = self._nodes[e] = self._call(_SIZE, place, value)
            return found
        args = [self._part(a) for a in atom.args]
        if atom.kind in _CHOICES:
            asked = self._step(_CHOICES[atom.kind], args[0], 0)
            return self._call(sym_ite, (asked, *args[1:]), SymInt.of(
                self.env, Expr(((((atom, 1),), 1),)), None))
        out = args[0]
        for other in args[1:]:
            out = self._step(_FUNCTIONS[atom.kind], out, other)
        return out


def _is_late(node: Node) -> bool:
    """Does it depend on gradients of outputs?"""
    if node.op == "placeholder":
        return node.name.startswith("tangents_")
    return any(map(_is_late, node.all_input_nodes)) if isinstance(
        node.meta.get("val"), Symbolic) else False


def is_sym_node(node: Node) -> bool:
    """Does a node compute a symbolic number?"""
    return isinstance(node.meta.get("val"), Symbolic)


def argument(place: int) -> Any:
    """A number among the arguments of a program, by its place among them.

    Such a node becomes an input, or a number, before a graph runs: `capture/dynamic.py`.
    """
    raise errors.CompileError(f"the number in place {place} of a captured graph has no value")


def _plain(v: Any) -> Any:
    """A symbolic number, specialised."""
    return int(v) if isinstance(v, SymInt) else v.node.pytype(v)


def numbers_of(values: Any) -> Any:
    """Arguments with symbolic numbers specialised."""
    return map_aggregate(values, lambda v: _plain(v) if isinstance(v, Symbolic) else v)


@tied_block
def sized_by(sizes: SizeNodes | None) -> Iterator[None]:
    """A block in which sizes that depend on data are symbols of a capture, if it has any."""
    before = state.fakes.sizes
    state.fakes.sizes = before if sizes is None else sizes.env
    try:
        yield
    finally:
        state.fakes.sizes = before


UNBACKED = "unbacked"  # a size whose value nothing may depend on


def symbolic_input(
    env: ShapeEnv, value: Tensor, name: str, number: int, wanted: Any = None
) -> Tensor:
    """The fake of an input with symbols in the place of its sizes; strides follow from them.

    `wanted` says of each dim whether it is dynamic: True, False, (least, most), or UNBACKED.
    """
    data = value._payload
    if data.symbolic:
        return value
    shape = []
    for d, n in enumerate(data.shape):
        wish = True if wanted is None else wanted[d]
        if isinstance(n, Symbolic) or wish is False:
            shape.append(n)
            continue
        if wish == UNBACKED:
            shape.append(env.unbacked(source=Source(f"{name}.size()[{d}]", number, d)))
            continue
        least, most = (2, None) if wish is True else wish
        limits = {} if most is None else {"most": most}
        shape.append(env.size(n, Source(f"{name}.size()[{d}]", number, d), least=least, **limits))
    return make(Fake(shape, data.dtype, _strides(data, shape), data.device_name,
                     marks=data.marks))


def _strides(data: Fake, shape: list) -> tuple:
    return following_strides(data.shape, data.strides, shape, data.dtype.itemsize)
