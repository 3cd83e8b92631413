"""The tape: nodes, and how an operator call becomes one.

A handle's `_edge` says where its gradient goes: a `Node` (its only output), a `Port` (one of
several outputs of a node) or an `Accumulate` (a leaf).  Nodes are numbered in order of creation
and every edge points to an older node, so the engine needs no dependency counts.  Read next:
`stack.py`; `../autograd/engine.py`, which runs nodes.
"""

from __future__ import annotations

import weakref

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..threads.state import fast, sequence, state
from . import doors
from .handle import Tensor, make, meta_of

_COMPLEX = {d.np for d in dt.ALL if d.is_complex}
_new = object.__new__
_ndarray = np.ndarray


class Edge:
    """Anything that a gradient can be sent to."""

    __slots__ = ()
    at_once = None  # a whole backward in one step: (output, keep) -> was it done?


class Node(Edge):
    """An operation on the tape."""

    __slots__ = ("__dict__", "__weakref__", "edges", "hooks", "level", "metas", "rule", "saved",
                 "seq", "stamp", "where")

    outputs = 1
    hides_hooks = False  # may its formula contain hooks of the tensor that has it for history?

    def name(self) -> str:
        """The class name that users know, e.g. `MulBackward0`."""
        return self.rule.name

    requires_grad = True
    grouped = False

    def unpack(self) -> list:
        """The saved values, checked and with their history."""
        return [self.value_of(i) for i in range(len(self.saved))]

    def value_of(self, i: int):
        """One saved value."""
        (local, kind, _, _), value = self.rule.saves[i], self.saved[i]
        if kind == "arg" or kind == "out":
            for t in value if type(value) is list else (value,):
                cell = t._cell if isinstance(t, Tensor) else None
                if cell is not None and cell.stamps and cell.stamps[-1] > self.stamp:
                    raise errors.modified(self, local, t)
            if isinstance(value, Tensor):
                if kind == "arg":
                    return value if value._edge is not None else as_saved(self, value)
                again = make(value._payload, self.edge_of(local))
                again._cell = value._cell
                return again
        return value

    def edge_of(self, output: str) -> Edge | None:
        """The edge of one of its outputs, by the name in formulas; None if that has none."""
        flags, index = self.rule.diff_outputs, self.rule.outputs.index(output)
        return port(self, sum(flags[:index])) if flags[index] else None

    def apply(self, grads: list, needs: list) -> list:
        """Gradients of the inputs, one per edge, given those of the outputs."""
        if self.saved is None:
            raise errors.freed(self)
        rule = self.rule
        values = self.unpack() if self.saved else ()
        backward = rule.backward_real
        for m in self.metas:
            if m is not None and m[1] in _COMPLEX:
                backward = rule.backward_complex
        for g in grads:
            if g is not None and g._payload.dtype in _COMPLEX:
                backward = rule.backward_complex
        return self.pulled(backward, values, grads, needs)

    generated = False  # is `apply` written for one operator, and does it know what is saved?

    def pulled(self, backward, values, grads: list, needs: list) -> list:
        """What the formulas give, one gradient per edge."""
        return backward(values, grads, needs)

    def undefined(self, grads: list, needs: list) -> list:
        """The same where no gradient has arrived: none is sent on."""
        return [None] * len(needs)

    def release(self) -> None:
        """Drop the saved tensors; numbers and shapes alone cost nothing and stay."""
        if self.saved and self.rule.saves_tensors:
            self.saved = None


def tables_of(node: Node) -> dict:
    """The hook tables of a node, made on demand."""
    if node.hooks is None:
        node.hooks = {}
    return node.hooks


class GroupedNode(Node):
    """A node some of whose inputs are lists of tensors."""

    grouped = True
    __slots__ = ("widths",)  # numbers of tensors, None where an input is no list

    def pulled(self, backward, values, grads: list, needs: list) -> list:
        position, wanted, flat = 0, [], []
        for width in self.widths:
            step = 1 if width is None else width
            wanted.append(any(needs[position : position + step]))
            position += step
        for width, result in zip(self.widths, backward(values, grads, wanted)):
            if width is None:
                flat.append(result)
            else:
                flat += [None] * width if result is None else list(result)
        return flat


class Port(Edge):
    """One output of a node that has several."""

    __slots__ = ("node", "number")

    def __init__(self, node: Node, number: int):
        self.node, self.number = node, number


def port(node: Node, number: int) -> Edge:
    """The edge that leads to one output of a node."""
    return node if node.outputs == 1 else Port(node, number)


def named(cls: type[Node], name: str) -> type[Node]:
    """A class of nodes as users see it, which print it and compare its name."""
    cls.__name__ = cls.__qualname__ = name
    cls.__module__ = "builtins"
    return cls


class Accumulate(Node):
    """Where the gradient of a leaf arrives."""

    __slots__ = ("leaf",)

    class _Rule:
        name, saves = "torch::autograd::AccumulateGrad", ()

    def __init__(self, leaf: Tensor):
        self.leaf = weakref.ref(leaf)
        self.edges, self.saved, self.rule, self.hooks = (), (), Accumulate._Rule, None
        self.metas, self.where, self.stamp, self.level = (), None, 0, 0
        self.seq = sequence()

    guarded = True  # an in-place write to the leaf would lose its history: refused

    @property
    def variable(self):
        """The leaf itself."""
        return self.leaf()


named(Accumulate, "AccumulateGrad")


class Origin(Accumulate):
    """Where the gradient of a transform's argument arrives.

    The transform asks for it at this edge, so the argument itself may be overwritten.
    """

    __slots__ = ()
    guarded = False


class Blind(Accumulate):
    """The edge of a view of a tracked tensor that was made while recording was off.

    The view counts as one that requires grad, but gradients end here.
    """

    __slots__ = ()
    guarded = False

    def __init__(self):
        super().__init__(_nobody)


_nobody = make(None)


class Refusal(Node):
    """A node whose derivative nobody wrote: raises when a gradient reaches it."""

    __slots__ = ("overload",)

    def name(self) -> str:
        return "NotImplemented"

    def apply(self, grads, needs):
        raise errors.DerivativeNotWritten(errors.text(
            f"the derivative for '{self.overload.name}' is not implemented "
            f"(called at {errors.describe_place(self.where)})",
            cure=f"give the table entry '{self.overload.name}' a `grad`"))


def retain(t: Tensor) -> None:
    """Keep the gradient that arrives at the tensor's edge in its `.grad`."""
    edge = t._edge
    node, number = (edge.node, edge.number) if type(edge) is Port else (edge, 0)
    keepers = tables_of(node).setdefault("retain", {}).setdefault(number, [])
    if not any(ref() is t for ref in keepers):
        keepers.append(weakref.ref(t))
    meta_of(t).retains = True


def retain_again(t: Tensor) -> None:
    """Go along when a tensor that retains its gradient got another history by a write.

    The old place need not be told: a gradient is kept only where the tensor's edge leads.
    """
    if t._edge is not None and not isinstance(t._edge, Accumulate):
        retain(t)


def level_own(data) -> int:
    interp = getattr(data, "interp", None)
    return 0 if interp is None else interp.level


def on_tape(t: Tensor, level: int) -> bool:
    """Does the history of a handle belong to a level's tape?"""
    own = level_own(t._payload)
    return own == level or own == level - 1 and state.stack[level].continues_tape


def make_node(kind, rule, edges, metas, saved, level) -> Node:
    """A node with its number, its time and its place."""
    node = _new(kind)
    if kind.rule is not rule:  # else the class has it
        node.rule = rule
    node.edges, node.metas, node.saved = edges, metas, saved
    node.seq, node.stamp, node.hooks, node.level = sequence(), fast["CLOCK"], None, level
    node.where = errors.place()
    return node


def record(ov, flat: tuple, out, level: int) -> None:
    """Put an operator call on the tape and give its outputs their history."""
    rule = ov.rule
    if level == 0 and rule is not None:
        try:
            simple = rule.recorder
        except AttributeError:
            simple = rule.recorder = doors.recorder(ov, rule)
        if simple is not None:
            return simple(flat, out)
    outs = list(out) if isinstance(out, (tuple, list)) else [out]
    if state.mode:
        rule = state.stack[state.mode].rule(ov)
    if rule is None:
        return _refuse_later(ov, flat, outs, level)
    if not rule.condition(flat):
        return None
    several = len(rule.diff_outputs) == 1 and isinstance(out, (list, tuple))  # a returned list
    flags = [rule.diff_outputs[0]] * len(outs) if several else rule.diff_outputs
    chosen = [i for i, (o, f) in enumerate(zip(outs, flags))
              if f and isinstance(o, Tensor) and o.dtype.category >= 2]
    if not chosen:
        return None
    refuse_unlisted(ov, rule, flat, level)
    edges, metas, widths, flags_in = [], [], [], []
    for i, is_list in zip(rule.inputs, rule.lists):
        items = flat[i] if is_list else (flat[i],)
        for t in items:
            edge = None
            if isinstance(t, Tensor) and t._edge is not None and on_tape(t, level):
                edge = t._edge
            edges.append(edge)
            metas.append(None if edge is None else (t._payload.shape, t._payload.dtype))
        widths.append(len(items) if is_list else None)
        flags_in.append(any(e is not None for e in edges[len(edges) - len(items) :]))
    if not any(flags_in):
        return None
    grouped = any(rule.lists)
    saved = rule.save(flags_in, flat, outs)
    count = len(outs) if several else sum(rule.diff_outputs)
    kind = node_class(rule, grouped, count)
    node = make_node(kind, rule, tuple(edges), tuple(metas), saved, level)
    if grouped:
        node.widths = widths
    numbers = range(len(outs)) if several else _running(rule.diff_outputs)
    for i, number in zip(range(len(outs)), numbers):
        if i in chosen:
            outs[i]._edge = port(node, number)
    return None


def _running(flags: list[bool]) -> list[int]:
    """Number of each output among the differentiable ones."""
    numbers, n = [], 0
    for flag in flags:
        numbers.append(n)
        n += flag
    return numbers


_CLASSES: dict = {}
OFTEN = 6  # so many runs of a pullback, then it is worth a function of its own


def node_class(rule, grouped: bool = False, outputs: int = 1) -> type[Node]:
    """The class of an operator's nodes: users know it by its name, the engine by `outputs`."""
    key = rule, grouped, outputs
    if key not in _CLASSES:
        base = GroupedNode if grouped else Node
        own = {"__slots__": (), "outputs": outputs, "rule": rule}
        if not grouped:
            own |= {"apply": first_runs(rule, Node.apply), "generated": True}
        _CLASSES[key] = named(type(rule.name, (base,), own), rule.name)
    return _CLASSES[key]


def first_runs(rule, general):
    """`apply` of a class of nodes, until it is known that they come often."""
    runs = 0

    def apply(self, grads, needs):
        nonlocal runs
        runs += 1
        if runs == OFTEN:
            kind = next(c for c in type(self).__mro__ if vars(c).get("apply") is apply)
            kind.apply = doors.pullback(rule, self.outputs > 1) or general
        return general(self, grads, needs)

    return apply


def refuse_unlisted(ov, rule, flat, level) -> None:
    """Refuse arguments that require grad but have no derivative and are not declared so."""
    op = ov.op
    for i in ov.schema.tensor_positions:
        name = ov.schema.args[i].name
        if i in rule.inputs or name in op.nondiff or name == "output":
            continue
        for t in flat[i] if isinstance(flat[i], list) else (flat[i],):
            if isinstance(t, Tensor) and t._edge is not None and on_tape(t, level):
                raise errors.NotDifferentiable(errors.text(
                    f"{op.base_name} is not differentiable with respect to argument '{name}', "
                    f"which requires grad ({errors.user_line(2)})",
                    cure=f"pass {name}.detach()"))


def _refuse_later(ov, flat, outs, level) -> None:
    """History for an operator without derivative: zero where that is meant, else a refusal."""
    if ov.kind in ("creation", "random") or ov.op.nondiff or ov.never_differentiable:
        return
    floating = [o for o in outs if isinstance(o, Tensor) and o.dtype.category >= 2]
    if not floating or all(o.name == "" and not o.is_tensor for o in ov.schema.returns):
        return
    if ov.is_view:  # a view without formula (detach, bit casts) is not differentiable
        return
    edges = [t._edge for v in flat for t in (v if isinstance(v, list) else (v,))
             if isinstance(t, Tensor) and t._edge is not None and on_tape(t, level)]
    for o in floating:  # one node each: their gradients could not be added
        node = make_node(Refusal, None, tuple(edges), (None,) * len(edges), (), level)
        node.overload = ov
        o._edge = node


def as_saved(node: Node, value: Tensor) -> Tensor:
    """A saved argument with the history that it had: `detach_()` may have ended it since."""
    meta = value._record
    if meta is None or meta.detached is None:
        return value
    maker, number, when = meta.detached
    maker = maker() if when > node.stamp else None
    if maker is None:
        return value
    again = make(value._payload, maker if number is None else port(maker, number))
    again._cell = value._cell
    return again
