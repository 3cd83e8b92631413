"""Operators that ask their arguments first: `__torch_dispatch__`, wrapper subclasses and modes.

The protocol of `function_overrides.py` once more, one layer deeper: what is handed over is an
overload of the table, below the tape, after composite operators are taken apart.  A wrapper has no
memory of its own, only facts (`Outer`); its class knows what an operator does to the tensors
inside.  The tape records the operator on the wrapper, as for any other tensor, and its formulas
run on wrappers.  `bind` and the surface come here only if there is a class or a mode that takes
part.  Read next: `wrapper_subclass.py`, `core/subclass_door.py`.
"""

from __future__ import annotations

import weakref

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..array.fake import Fake
from ..core import stack, surface
from ..core.events import MET_WRAPPER
from ..core.handle import Tensor, cell_of, make, tensors_in
from ..core.overload import overload
from ..core.subclass_door import door
from ..memory.fresh import note_birth
from ..memory.versions import bump, mark_inference
from ..memory.views import link_views, refresh
from ..table.derived_overloads import InplaceOverload, OutOverload, overload_name
from ..threads.asking import Bare
from ..threads.blocks import tied
from ..threads.state import count, fast, off, state
from .function_overrides import _slot, method_of

_new = object.__new__


class Outer(Fake):
    """The data of a wrapper: its facts, and what a handle of its class is made of."""

    __slots__ = ("asks", "attributes", "born", "cell", "cls", "layout", "owner")
    outer = True

    @property
    def interp(self):
        """The trace that sees everything: wrappers have their history beside what it records."""
        return state.stack[state.mode]

    def concrete(self, handle: Tensor, what: str) -> Tensor:
        """Its value, which only the class knows."""
        from ..table.packets import ops

        if self.size != 1:
            raise RuntimeError(
                f"{what} is not supported for tensor subclasses. It wants memory, and a "
                f"{self.cls.__name__} has none of its own ({errors.user_line(3)}): ask the tensors "
                "inside")
        value = called(ops._local_scalar_dense.default, (handle,), (), [again(handle)], None)
        return make(np.asarray(value))

    def taken_by(self, handle: Tensor) -> Outer:
        """The data of another handle that becomes the same wrapper, with its own attributes."""
        handle.__dict__.update(self.attributes)
        box = Outer(self.shape, self.dtype, self.strides, self.device_name, None, self.offset)
        box.cls, box.attributes, box.cell = self.cls, handle.__dict__, cell_of(handle)
        box.born, box.owner = self.born, weakref.ref(handle)
        box.asks, box.layout = self.asks, self.layout
        return box

    def describe(self, handle: Tensor) -> str:
        size = f"size={tuple(self.shape)}"
        kind = dt.of(self.dtype)
        named = "" if kind is dt.default() else f", dtype={kind}"
        grad = ", requires_grad=True" if handle.requires_grad else ""
        return f"{self.cls.__name__}(..., {size}{named}{grad})"


def again(t: Tensor) -> Tensor:
    """A handle of the right class: internal ones of a wrapper's data are plain tensors."""
    box = t._payload
    if box.__class__ is not Outer or t.__class__ is not Tensor:
        return t
    owner = box.owner()
    if owner is not None and owner._payload is box and owner._edge is t._edge:
        return owner  # the user's own
    new = _new(box.cls)
    new.__dict__ = box.attributes
    new._payload, new._edge, new._link, new._record = box, t._edge, t._link, t._record
    new._cell = t._cell or box.cell
    return new


def shared(cls: type, data: Tensor) -> Tensor:
    """A handle of another class on the same memory, without history."""
    new = _new(cls)
    if fast["ACTIVE"] or data._link is not None or type(data._payload) is not np.ndarray:
        with Bare():
            source = data.detach()
            new._payload, new._cell = source._payload, cell_of(source)
    else:
        new._payload, new._cell = data._payload, cell_of(data)
    new._edge = new._link = new._record = None
    if fast["BIRTHS"]:
        note_birth(new)
    return new


# modes


def enter(mode) -> None:
    """Ask a mode before every operator from now on."""
    state.dispatch.operator_modes = (*state.dispatch.operator_modes, (mode, state.mode))
    count("DISPATCHES", 1)
    count("ACTIVE", 1)


def leave(mode) -> None:
    """Ask the innermost mode no longer."""
    state.dispatch.operator_modes = state.dispatch.operator_modes[:-1]
    count("DISPATCHES", -1)
    count("ACTIVE", -1)


# what the tape does by itself, as operators


def looked_at() -> bool:
    """Does a mode look at operators of the lowest level?"""
    return len(state.stack) == 1 and present_mode() is not None


def shown(t) -> bool:
    """Is what the tape does to a tensor to be an operator: is somebody asked?"""
    if not isinstance(t, Tensor):
        return False
    data = _slot.__get__(t)
    if data.__class__ is Outer:
        return not state.mode
    if getattr(data, "interp", None) is not None:
        return False
    return looked_at() or t.__class__._dispatched and not (
        state.dispatch.no_subclasses or state.mode)


def _kept_results(node) -> list:
    """The results of an operator that its node keeps, of those that have a derivative."""
    if hasattr(node, "ctx"):  # a function of the user's
        return [t for t, number in node.saved if number >= 0]
    rule, found = node.rule, []
    for (name, kind, _, _), value in zip(rule.saves, node.saved):
        if kind == "out" and value is not None:
            number = rule.outputs.index(name)
            if rule.diff_outputs[number] and not (number and rule.overload.op.statistics):
                found.append(value)
    return found


def detach_kept(node) -> None:
    """PyTorch detaches results that a node keeps, when they are kept and when they are used."""
    if not node.saved or node.saved.__class__ is not tuple:  # or they are computed again
        return
    from ..table.packets import ops

    for t in _kept_results(node):
        if shown(t):
            ops.detach(t)


def _recorded(out) -> None:
    """The node of an operator is on the tape."""
    for t in out if isinstance(out, (list, tuple)) else (out,):
        edge = t._edge if isinstance(t, Tensor) else None
        if edge is not None:
            detach_kept(getattr(edge, "node", edge))
            return


def item(t: Tensor):
    """The only element of a tensor as a mode gives it, NotImplemented if none looks."""
    if not looked_at() or not shown(t) or t.numel() != 1:
        return NotImplemented
    return called(overload("_local_scalar_dense"), (t,), {}, [], present_mode())


def lifted(t: Tensor) -> Tensor:
    """A tensor that was just made from Python values, as a mode gives it."""
    if not looked_at():
        return t
    return called(overload("lift_fresh"), (t,), {}, [], present_mode())


def of_formula(node, number) -> bool:
    """Is a number one of a node's formula, and not one of the user's in the place of a tensor?"""
    op = getattr(getattr(node, "rule", None), "op", None)
    if op is None:  # a function of the user
        return False
    return not (op.scalars and any(v is number for v in node.saved))


def _as_compiled(ov, flat: tuple):
    """The overload that PyTorch's formulas call: that for a number, for one of their own."""
    if ov.op.with_number and isinstance(flat[1], (int, float, complex)):
        if of_formula(state.observers.node, flat[1]):
            return overload(ov.op.with_number)
    return ov


# calls


def participants(flat: tuple) -> list | None:
    """The tensors to be asked, one of each class; None where a transform comes first."""
    found: list = []
    for t in tensors_in(flat):
        data = _slot.__get__(t) if t.__class__._dispatched else t._payload
        if data.__class__ is Outer:
            t = again(t)
        else:
            interp = getattr(data, "interp", None)
            if interp is not None and interp.level > state.mode:
                return None
            if not t.__class__._dispatched:
                continue
        kinds = [type(f) for f in found]
        if type(t) not in kinds:
            place = next((i for i, k in enumerate(kinds) if issubclass(type(t), k)), len(found))
            found.insert(place, t)
    return found


def present_mode():
    """The mode to be asked first; those outside of a trace come after it."""
    modes = state.dispatch.operator_modes
    return modes[-1][0] if modes and modes[-1][1] >= state.mode else None


def somebody(flat: tuple) -> tuple | None:
    """(tensors to be asked, mode), None if nobody is."""
    given = participants(flat)
    if given is None:
        return None
    mode = present_mode()
    given = [] if state.dispatch.no_subclasses else given
    return (given, mode) if given or mode is not None else None


class Below:
    """What a class or a mode does for an operator is beneath the tape, and part of the operator
    for a trace."""

    def __init__(self, ov, mode):
        self.ov, self.mode = ov, mode

    def __enter__(self):
        self.before = state.record[:], state.dispatch.operator_modes
        state.record[:] = [False] * len(state.record)
        off.add(self)
        if self.mode is not None:
            state.dispatch.operator_modes = state.dispatch.operator_modes[:-1]
        level = state.stack[state.mode]
        self.recorder = getattr(level, "recorder", None)
        if self.recorder is not None:
            self.origin = self.recorder.origin
            self.recorder.origin = self.origin or self.ov

    @tied
    def __exit__(self, *exc):
        state.record[:], state.dispatch.operator_modes = self.before
        off.discard(self)
        if self.recorder is not None:
            self.recorder.origin = self.origin

    def lost(self) -> None:
        off.discard(self)
        if getattr(self, "origin", self) is not self:
            self.recorder.origin = self.origin


def called(function, args: tuple, kwargs, given: list, mode, ov=None):
    """Give an operator to the mode, then to the classes of its arguments."""
    kinds = tuple([type(t) for t in given])
    kwargs = dict(kwargs)
    rules = getattr(function, "rules", None)  # of a registered operator
    if mode is not None:
        with Below(ov or function, mode):
            rule = rules and rules.get(type(mode))
            out = rule(mode, function, kinds, args, kwargs) if rule else (
                method_of(mode, "__torch_dispatch__")(function, kinds, args, kwargs))
        if out is not NotImplemented:
            return out
    with Below(ov or function, None):
        for t in given:
            rule = rules and rules.get(type(t))
            out = rule(type(t), function, kinds, args, kwargs) if rule else (
                t.__torch_dispatch__(function, kinds, args, kwargs))
            if out is not NotImplemented:
                return out
    asked = [k.__name__ for k in kinds] + ([] if mode is None else [type(mode).__name__])
    raise TypeError(
        f"Multiple dispatch failed for '{_known(function)}' ({errors.user_line(3)}); all "
        f"__torch_dispatch__ handlers returned NotImplemented: {', '.join(asked)}")


def _known(function) -> str:
    """An operator in a message: those that tell facts by their family."""
    name = repr(function)
    return f"torch.ops.{name.rpartition('.')[0]}" if function in FACTS else f"torch._ops.{name}"


FACTS: set = set()  # operators that ask a class about its tensors: see wrapper_subclass.py


def _fitting(ov, out):
    """The answer of a class or mode, if it is what the operator returns."""
    returns = ov.schema.returns
    if len(returns) == 1 and returns[0].is_tensor and not returns[0].is_list and not (
            out is None or isinstance(out, Tensor)):
        raise RuntimeError(
            f"Unable to cast {out!r} to Tensor: __torch_dispatch__ gave it for {ov!r} "
            f"({errors.user_line(3)})")
    return out


def piece(t: Tensor, name: str):
    """What a wrapper holds under a name, be it that of a slot."""
    return t.__dict__[name] if name in t.__dict__ else getattr(t, name)


def proper(value):
    """Arguments as a handler sees them: wrappers are of their class."""
    if isinstance(value, Tensor):
        return again(value)
    if type(value) is list or type(value) is tuple:
        return type(value)([proper(v) for v in value])
    return value


def _met(flat: tuple, level: int) -> None:
    """Tell a trace of wrappers from outside: one of a class may be asked for several."""
    for t in tensors_in(flat):
        if (t._edge is not None and t._payload.__class__ is Outer
                and t._payload.born is not state.stack[level]):
            state.stack[level].event(MET_WRAPPER, t)


def operator(ov, flat: tuple):
    """An operator whose arguments, or a mode, are to be asked; NotImplemented if nobody is."""
    found = somebody(flat)
    if found is None:
        return NotImplemented
    if state.observers.node is not None:
        ov = _as_compiled(ov, flat)
    flat = tuple([proper(v) for v in flat])
    for t in tensors_in(flat):
        if t._link is not None:
            refresh(t)
    args, kwargs = ov.schema.as_called(flat)
    level = state.mode
    if level:
        _met(flat, level)
    if "pin_memory" in ov.schema.names and "pin_memory" not in kwargs and (
            state.observers.node is None):
        from .factories import added

        extra = added(ov, any(isinstance(v, Tensor) for v in flat))
        kwargs |= {k: v for k, v in extra.items() if k not in kwargs}
    out = _fitting(ov, called(ov, tuple(args), kwargs, *found))
    if out is None:
        return None  # so it was answered: it has neither history nor memory
    out = _apart(out, flat)
    if state.record[level] and any(t._edge is not None for t in tensors_in(flat)):
        if level:
            state.stack[level].record(ov, flat, out)
        else:
            stack.tape.record(ov, flat, out, 0)
            _recorded(out)
        if state.observers.checkpoint is not None:
            state.observers.checkpoint.recorded(out, level)
    if state.inference and not level:
        mark_inference(out)
    if ov.is_view and isinstance(flat[0], Tensor):
        link_views(ov, flat, out, level)
        for t in tensors_in(out if isinstance(out, (list, tuple)) else (out,)):
            if t._payload.__class__ is Outer:
                t._payload.cell = t._cell
    return out


def _apart(out, flat: tuple):
    """Results that are other handles than the arguments: they get a history of their own."""
    own = {id(t) for t in tensors_in(flat)}

    def one(t):
        if not isinstance(t, Tensor) or id(t) not in own and t._edge is None:
            return t
        box = t._payload
        new = _new(type(t))
        new.__dict__ = t.__dict__ if box.__class__ is Outer else dict(t.__dict__)
        new._payload, new._cell = _slot.__get__(t), t._cell
        new._edge = new._link = new._record = None
        return new

    if isinstance(out, (list, tuple)):
        items = [one(t) for t in out]
        return type(out)(*items) if hasattr(out, "_fields") else type(out)(items)
    return one(out)


def write(ov, flat: tuple):
    """`x.op_(...)` where somebody is to be asked; NotImplemented if nobody is."""
    found = somebody(flat)
    x = flat[0]
    if found is None or not isinstance(x, Tensor):
        return NotImplemented
    from ..memory import views
    if ov.is_composite:  # by its parts, then a copy
        from ..table.packets import ops

        new = stack.bind_as_given(ov, flat)
        return x if new is x else ops.copy_(x, new)
    if x._link is not None:
        refresh(x)
    level = state.mode
    if level:
        _met(flat, level)
    tracked = any(t._edge is not None for t in tensors_in(flat))
    recorded = tracked and state.record[level]
    views.may_write(x, tracked, level, ov.is_view)
    before = flat
    if recorded and surface.saves_self(ov, flat, x):
        from ..table.packets import ops

        with Below(ov, None):
            old = ops.clone(x)
        old._edge = x._edge
        before = tuple([old if v is x else v for v in flat])
    elif recorded and ov.is_view and x._payload.__class__ is Outer:  # its facts are about to change
        before = (make(_facts(x._payload), x._edge), *flat[1:])
    function = InplaceOverload(ov)
    shown = tuple([proper(v) for v in flat])
    args, kwargs = ov.schema.as_called(shown)
    version = cell_of(x).version
    called(function, tuple(args), kwargs, *found, ov)
    if ov.is_view and x._payload.__class__ is Outer:
        _reshaped(ov, flat, x)
    if cell_of(x).version == version:
        bump(x)
    if recorded:
        new = make(_slot.__get__(x))
        if level:
            state.stack[level].record(ov, before, new)
        else:
            stack.tape.record(ov, before, new, 0)
            _recorded(new)
        link = x._link
        if link is None or ov.is_view:
            x._edge = new._edge
        else:
            link.base._edge = views.copy_slices(link.base, x, new)
            link.seen = -1
    return x


def _facts(box: Outer) -> Fake:
    return Fake(box.shape, box.dtype, box.strides, box.device_name, None, box.offset)


def _reshaped(ov, flat: tuple, x: Tensor) -> None:
    """A wrapper's facts after `t_()` and the like: those of the view."""
    from ..array.evaluate import run_raw

    box = x._payload
    new = run_raw(ov, (_facts(box), *flat[1:]))
    box.shape, box.strides, box.offset = new.shape, tuple(new.strides), new.offset


def write_out(ov, flat: tuple, outs: list) -> bool:
    """`op(..., out=)` where somebody is to be asked; composite operators by their parts."""
    from ..table.packets import ops
    found = somebody((*flat, *outs))
    if found is None:
        return False
    if not ov.is_composite:
        name = overload_name(ov)
        name = "out" if name in ("default", "Tensor") else f"{name}_out"
        function = OutOverload(ov.op.base_name, name, [ov])
        args, kwargs = ov.schema.as_called(tuple([proper(v) for v in flat]))
        names = ["out"] if len(outs) == 1 else [r.name for r in ov.schema.returns]
        versions = [cell_of(t).version for t in outs]
        called(function, tuple(args), {**kwargs, **dict(zip(names, outs))}, *found, ov)
        for t, version in zip(outs, versions):
            if cell_of(t).version == version:
                bump(t)
        return True
    result = stack.bind_as_given(ov, flat)
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    for t, r in zip(outs, results):
        if tuple(t._payload.shape) != tuple(r._payload.shape):
            ops.resize_(t, list(r._payload.shape))
        ops.copy_(t, r)
    return True


door.operator, door.write, door.write_out = operator, write, write_out
door.item, door.lifted = item, lifted
