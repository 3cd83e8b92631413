"""The tape: nodes, and how an operator call becomes one.

A handle's `_edge` says where its gradient goes: a `Node` (its only output), a `Port` (one of
several outputs of a node) or an `Accumulate` (a leaf).  Nodes are numbered in order of creation
and every edge points to an older node, so the engine needs no dependency counts.  Read next:
`autograd/engine.py`.
"""

from __future__ import annotations

import sys
import weakref

import numpy as np

from .. import errors
from ..array import dtype as dt
from .expression import fact_name, fact_value
from .handle import INFERENCE, Tensor, cell_of, is_buffer, make
from .state import fast, sequence, state

_COMPLEX = {d.np for d in dt.ALL if d.is_complex}
_new = object.__new__
_ndarray = np.ndarray


class Edge:
    """Anything that a gradient can be sent to."""

    __slots__ = ()
    at_once = None  # a whole backward in one step: (output, keep) -> was it done?


class Node(Edge):
    """An operation on the tape."""

    __slots__ = (
        "__dict__",
        "__weakref__",
        "edges",
        "hooks",
        "level",
        "metas",
        "rule",
        "saved",
        "seq",
        "stamp",
        "where",
    )

    outputs = 1
    hides_hooks = False  # may its formula contain hooks of the tensor that has it for history?

    def name(self) -> str:
        """The class name that users know, e.g. `MulBackward0`."""
        return self.rule.name

    def __call__(self, *grads):
        """The gradients of the inputs, given those of the outputs: one step of a sweep by hand."""
        if len(grads) != self.outputs:
            raise errors.ArgumentError(
                f"{self.name()}: expected {self.outputs} arguments, got {len(grads)} instead "
                f"({errors.user_line()})")
        results = self.apply(list(grads), [e is not None for e in self.edges])
        return results[0] if len(results) == 1 else tuple(results)

    @property
    def next_functions(self) -> tuple:
        """(node, output number) of each input."""
        return tuple(
            (None, 0) if e is None else (e.node, e.number) if type(e) is Port else (e, 0)
            for e in self.edges
        )

    requires_grad = True

    @property
    def _input_metadata(self) -> list:
        """Shape, dtype and device of the gradients that arrive, where a tensor has told."""
        known = self.__dict__.get("_spaces", {})
        return [known.get(i) for i in range(self.outputs)]

    @property
    def metadata(self) -> dict:
        """A dictionary for the user's own notes."""
        return self.__dict__.setdefault("_user_metadata", {})

    def __repr__(self) -> str:
        return f"<{self.name().rpartition('::')[2]} object at {id(self):#x}>"

    def __getattr__(self, name: str):
        if name.startswith("_saved_"):
            return self.saved_value(_local_name(name[len("_saved_") :]))
        if name.startswith("_raw_saved_"):
            from .hooks import raw_saved

            return raw_saved(self, name[len("_raw_saved_") :])
        raise AttributeError(f"{type(self).__name__} has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        names, raw = [], []
        for local, kind, name, attribute in self.rule.saves if self.rule else ():
            shape = kind == "fact" and attribute == "shape"
            names.append(f"_saved_{name[1]}_sym_sizes" if shape else f"_saved_{local}")
            if kind in ("arg", "out"):
                raw.append(f"_raw_saved_{local}")
        return [*super().__dir__(), *names, *raw]

    def _sequence_nr(self) -> int:
        """The number of the node, in order of creation."""
        return self.seq

    def register_hook(self, fn):
        """Call `fn(grad_inputs, grad_outputs)` after this node ran; it may return other ones."""
        from .hooks import on_node

        return on_node(self, "post", fn)

    def register_prehook(self, fn):
        """Call `fn(grad_outputs)` before this node runs; it may return other ones."""
        from .hooks import on_node

        return on_node(self, "pre", fn)

    def saved_value(self, name: str):
        """A saved value by its name in the formulas."""
        if self.saved is None:
            raise freed(self)
        for (local, _, _, _), value in zip(self.rule.saves, self.unpack()):
            if local == name:
                return tuple(value) if type(value) is list else value
        raise AttributeError(f"{self.name()} saved no '{name}'")

    def unpack(self) -> list:
        """The saved values, checked and with their history."""
        values, stamp = [], self.stamp
        for (local, kind, _, _), value in zip(self.rule.saves, self.saved):
            if kind == "arg":
                if isinstance(value, Tensor):
                    cell = value._cell
                    if cell is not None and cell.stamps and cell.stamps[-1] > stamp:
                        raise modified(self, local, value)
                    if value._edge is None:
                        value = as_saved(self, value)
                elif type(value) is list:
                    for item in value:
                        cell = item._cell if isinstance(item, Tensor) else None
                        if cell is not None and cell.stamps and cell.stamps[-1] > stamp:
                            raise modified(self, local, item)
            elif kind == "out" and value is not None:
                cell = value._cell
                if cell is not None and cell.stamps and cell.stamps[-1] > stamp:
                    raise modified(self, local, value)
                flags = self.rule.diff_outputs
                index = self.rule.outputs.index(local)
                again = make(value._data, port(self, sum(flags[:index])) if flags[index] else None)
                again._cell = value._cell
                value = again
            values.append(value)
        return values

    def apply(self, grads: list, needs: list) -> list:
        """Gradients of the inputs, one per edge, given those of the outputs."""
        if self.saved is None:
            raise freed(self)
        rule = self.rule
        values = self.unpack() if self.saved else ()
        backward = rule.backward_real
        for m in self.metas:
            if m is not None and m[1] in _COMPLEX:
                backward = rule.backward_complex
        for g in grads:
            if g is not None and g._data.dtype in _COMPLEX:
                backward = rule.backward_complex
        if not self.grouped:
            return backward(values, grads, needs)
        return self._apply_grouped(backward, values, grads, needs)

    grouped = False
    generated = False  # is `apply` written for one operator, and does it know what is saved?

    def _apply_grouped(self, backward, values, grads, needs) -> list:
        """The same where some inputs are lists of tensors."""
        group_needs, position = [], 0
        for width in self.widths:
            if width is None:
                group_needs.append(needs[position])
                position += 1
            else:
                group_needs.append(any(needs[position : position + width]))
                position += width
        flat = []
        for width, result in zip(self.widths, backward(values, grads, group_needs)):
            if width is None:
                flat.append(result)
            else:
                flat += [None] * width if result is None else list(result)
        return flat

    def undefined(self, grads: list, needs: list) -> list:
        """The same where no gradient has arrived: none is sent on."""
        return [None] * len(needs)

    def release(self) -> None:
        """Drop the saved tensors; numbers and shapes alone cost nothing and stay."""
        if self.saved and self.rule.saves_tensors:
            self.saved = None


def _local_name(name: str) -> str:
    """A saved value's name here, given PyTorch's: `self_sym_sizes` is the fact `self.shape`."""
    for ending in ("_sym_sizes", "_sizes"):
        if name.endswith(ending):
            return fact_name(name[: -len(ending)], "shape")
    return name


class GroupedNode(Node):
    """A node some of whose inputs are lists of tensors."""

    __slots__ = ("widths",)
    grouped = True


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
        raise errors.DerivativeNotWritten(
            errors.text(
                f"the derivative for '{self.overload.name}' is not implemented "
                f"(called at {errors.describe_place(self.where)})",
                cure=f"give the table entry '{self.overload.name}' a `grad`",
            )
        )


users: set = set()  # names of files that are known not to be of this package
_own: set = set()  # of those that are


def place(depth: int = 2) -> tuple:
    """The user's place: code object and instruction offset of the innermost outer frame.

    Looking at a frame makes an object of it, so those known to be ours are skipped by `depth`.
    """
    frame = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        name = code.co_filename
        if name not in _own:
            if name in users or not name.startswith(errors._INTERNAL):
                users.add(name)
                return code, frame.f_lasti
            if name[0] != "<":  # generated functions come and go
                _own.add(name)
        frame = frame.f_back
    return None


def level_own(data) -> int:
    interp = getattr(data, "interp", None)
    return 0 if interp is None else interp.level


def on_tape(t: Tensor, level: int) -> bool:
    """Does the history of a handle belong to a level's tape?"""
    own = level_own(t._data)
    return own == level or own == level - 1 and state.stack[level].continues_tape


def make_node(kind, rule, edges, metas, saved, level) -> Node:
    """A node with its number, its time and its place."""
    node = _new(kind)
    if kind.rule is not rule:  # else the class has it
        node.rule = rule
    node.edges, node.metas, node.saved = edges, metas, saved
    node.seq, node.stamp, node.hooks, node.level = sequence(), fast["CLOCK"], None, level
    node.where = place()
    return node


def record(ov, flat: tuple, out, level: int) -> None:
    """Put an operator call on the tape and give its outputs their history."""
    rule = ov.rule
    if level == 0 and rule is not None:
        try:
            simple = rule.recorder
        except AttributeError:
            from ..eager.steps import recorder

            simple = rule.recorder = recorder(ov, rule)
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
    chosen = [
        i
        for i, (o, f) in enumerate(zip(outs, flags))
        if f and isinstance(o, Tensor) and o.dtype.category >= 2
    ]
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
            metas.append(None if edge is None else (t._data.shape, t._data.dtype))
        widths.append(len(items) if is_list else None)
        flags_in.append(any(e is not None for e in edges[len(edges) - len(items) :]))
    if not any(flags_in):
        return None
    grouped = any(rule.lists)
    names = rule.outputs
    saved = tuple(
        [
            _save(spec, guard, flags_in, ov, flat, outs, names)
            for spec, guard in zip(rule.saves, rule.guards)
        ]
    )
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
            from ..eager.pullbacks import apply_of

            kind = next(c for c in type(self).__mro__ if vars(c).get("apply") is apply)
            kind.apply = apply_of(rule, self.outputs > 1) or general
        return general(self, grads, needs)

    return apply


def _save(spec, guard, flags, ov, flat, outs, names):
    _, kind, name, attribute = spec
    if kind == "fact":
        source, tensor = name
        value = (
            flat[ov.schema.names.index(tensor)] if source == "arg" else outs[names.index(tensor)]
        )
        return fact_value(value, attribute)
    if guard and not any(flags[i] for i in guard):
        return None
    if kind == "value":
        return flat[ov.schema.names.index(name)]
    if kind == "arg":
        value = flat[ov.schema.names.index(name)]
        if type(value) is list or type(value) is tuple:
            return [keep(v) for v in value]
        return keep(value)
    out = outs if len(names) == 1 and len(outs) > 1 else outs[names.index(name)]
    if isinstance(out, list):
        return out
    snapshot = make(out._data, out._edge)  # no history yet when recording; forward mode has it
    if is_buffer(out._data):
        snapshot._cell = cell_of(out)
    return snapshot


def keep(value):
    """An input as it is now: boxed handles may be rebound later, so they are copied."""
    if isinstance(value, Tensor) and not is_buffer(value._data):
        copy = make(value._data, value._edge)
        copy._cell = value._data.cell
        return copy
    return value


def refuse_unlisted(ov, rule, flat, level) -> None:
    """Refuse arguments that require grad but have no derivative and are not declared so."""
    op = ov.op
    for i in ov.schema.tensor_positions:
        name = ov.schema.args[i].name
        if i in rule.inputs or name in op.nondiff or name == "output":
            continue
        for t in flat[i] if isinstance(flat[i], list) else (flat[i],):
            if isinstance(t, Tensor) and t._edge is not None and on_tape(t, level):
                raise errors.NotDifferentiable(
                    errors.text(
                        f"{op.base_name} is not differentiable with respect to argument '{name}', "
                        "which "
                        f"requires grad ({errors.user_line(2)})",
                        cure=f"pass {name}.detach()",
                    )
                )


def _refuse_later(ov, flat, outs, level) -> None:
    """History for an operator without derivative: zero where that is meant, else a refusal."""
    if ov.kind in ("creation", "random") or ov.op.nondiff or ov.never_differentiable:
        return
    floating = [o for o in outs if isinstance(o, Tensor) and o.dtype.category >= 2]
    if not floating or all(o.name == "" and not o.is_tensor for o in ov.schema.returns):
        return
    if ov.is_view:  # a view without formula (detach, bit casts) is not differentiable
        return
    edges = [
        t._edge
        for v in flat
        for t in (v if isinstance(v, list) else (v,))
        if isinstance(t, Tensor) and t._edge is not None and on_tape(t, level)
    ]
    for o in floating:  # one node each: their gradients could not be added
        node = make_node(Refusal, None, tuple(edges), (None,) * len(edges), (), level)
        node.overload = ov
        o._edge = node


def freed(node: Node) -> errors.GraphFreed:
    return errors.GraphFreed(
        errors.text(
            "Trying to backward through the graph a second time (or directly access saved tensors "
            "after they have already been freed): "
            f"the saved values of {node.name()} ({errors.describe_place(node.where)}) are gone",
            cure="Specify retain_graph=True in the first backward() or grad()",
        )
    )


def operation_of(node: Node) -> str:
    """The operation that a node differentiates: `Mul`, or the class of a custom function."""
    return node.name().rpartition("::")[2].partition("Backward")[0]


def output_of(t: Tensor) -> str:
    """Which result of what a tensor is, for messages: `0 of Unbind`."""
    edge = t._edge
    node, number = (edge.node, edge.number) if type(edge) is Port else (edge, 0)
    return f"{number} of {operation_of(node)}"


def as_saved(node: Node, value: Tensor) -> Tensor:
    """A saved argument with the history that it had: `detach_()` may have ended it since."""
    meta = value._meta
    if meta is None or meta.detached is None:
        return value
    maker, number, when = meta.detached
    maker = maker() if when > node.stamp else None
    if maker is None:
        return value
    again = make(value._data, maker if number is None else port(maker, number))
    again._cell = value._cell
    return again


def modified(node: Node, name: str, value: Tensor) -> errors.SavedValueModified:
    cell = value._cell
    if cell is INFERENCE:
        return errors.SavedValueModified(
            errors.text(
                "Inference tensors cannot be saved for backward: the gradient of "
                f"{node.name()} ({errors.describe_place(node.where)}) needs `{name}`, which was "
                "made in inference mode",
                f"{name}: {value.dtype.name}{list(value._data.shape)}",
                "clone() it outside of inference_mode() first, or use no_grad() instead",
            )
        )
    late = sum(s > node.stamp for s in cell.stamps)
    expected = cell.version - late
    operation = operation_of(node).lower()
    made = "" if value._edge is None or isinstance(value._edge, Accumulate) else (
        f"which is output {output_of(value)}, ")
    return errors.SavedValueModified(
        errors.text(
            "one of the variables needed for gradient computation has been modified by an "
            "inplace operation: "
            f"the gradient of `{operation}` ({errors.describe_place(node.where)}) needs `{name}`, "
            "which was "
            f"overwritten at {errors.describe_place(cell.where)} after it was saved",
            f"{name}: {value.dtype.name}{list(value._data.shape)}, {made}is at version "
            f"{cell.version}; expected version {expected} instead",
            "use the out-of-place operator (x = x + y instead of x.add_(y)), or clone before "
            "writing",
        )
    )
