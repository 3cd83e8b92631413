"""Levels and `bind`, the whole dispatcher.

An operator goes to the highest level among its arguments (or the innermost mode that wants to see
everything), then the tape records a node if a handle of that level asks for one.  No interpreter
knows another by name.  Read next: `surface.py` (mutation), `../interp/interpreter.py` (what a level
is).
"""

from __future__ import annotations

import numpy as np

from ..array.evaluate import escaped, raw_of, run_raw, wrap_all
from ..array.failures import failure
from ..array.fake import Fake
from ..array.lazy import ARRAYS
from ..memory.fresh import note_birth
from ..memory.versions import mark_inference
from ..memory.views import link_views, refresh, refuse_left_behind
from ..threads.blocks import exclusive_capture, uncast
from ..threads.state import fast, state
from . import tape
from .handle import Box, Tensor, cell_of, is_buffer, make, tensors_in
from .subclass_door import door

_ndarray = np.ndarray


def level_of(ov, t: Tensor) -> int:
    """The level that a handle belongs to."""
    data = t._payload
    if type(data) is _ndarray or type(data) is Fake or not isinstance(data, Box):
        return 0
    interp = data.interp
    if interp is None:  # a wrapper
        return 0
    level, stack = interp.level, state.stack
    if interp.adopts and not (level < len(stack) and stack[level] is interp):
        with exclusive_capture():  # another thread captures, and gives it back
            pass
        if interp.alive or t._payload is not data:
            return level_of(ov, t)
    elif interp.alive:
        return level
    if not interp.leaves_values:
        raise escaped(ov, data)
    outlive(t)
    return level_of(ov, t)


def outlived(t: Tensor) -> Tensor:
    """The handle, as its value below the levels that have ended where those leave values."""
    interp = getattr(t._payload, "interp", None)
    while interp is not None and not interp.alive and interp.leaves_values:
        outlive(t)
        interp = getattr(t._payload, "interp", None)
    return t


def outlive(t: Tensor) -> None:
    """Make a handle that outlived its level the one below: what it was to that level is over."""
    below = t._payload.inner
    if is_buffer(below._payload):
        t._cell = cell_of(below)
    t._payload, t._edge, t._link = below._payload, below._edge, below._link


def bind(ov, flat: tuple):
    """Interpret an operator on flat arguments, and record it if a handle asks."""
    if not fast["ACTIVE"]:
        return compose(ov, flat) if ov.is_composite else bind_eager(ov, flat)
    policy = state.autocast
    if policy is not None and ov.op.autocast is not None:
        return policy.run(ov, flat)
    if ov.is_composite:
        return bind_composite(ov, flat)
    if fast["DISPATCHES"]:
        out = door.operator(ov, flat)
        if out is not NotImplemented:
            return out
    return bind_levelled(ov, flat)


def compose(ov, flat: tuple, level: int = 0):
    """A composite operator by its parts, as a level has them; errors in our words."""
    if fast["PARTS"]:
        out = door.composite(ov, flat)
        if out is not NotImplemented:
            return out
    try:
        return state.stack[level].compose(ov, flat) if level else ov.compose(*flat)
    except Exception as error:
        shown = failure(ov, flat, error)
        if shown is error:
            raise
        raise shown from error


def bind_composite(ov, flat: tuple):
    """A composite operator where a transform is active: whole if a trace wants it so."""
    trace = state.observers.trace
    if trace is not None:
        for t in tensors_in(flat):
            if t._link is not None:  # its memory may have been written through another
                refresh(t)
        out = trace.whole(ov, flat)
        if out is not NotImplemented:
            return out
    return compose(ov, flat, state.mode)


def bind_levelled(ov, flat: tuple):
    """An operator where a transform is active: on the highest level that it concerns."""
    level, tracked, space = meet(ov, flat)
    if level and ov.name in state.stack[level].compositions:
        out = state.stack[level].compose(ov, flat)
        if out is not NotImplemented:
            return out
    observers = state.observers
    if observers.cache is not None:
        out = observers.cache.run(ov, flat, level)
    else:
        out = interpret(ov, flat, level, space)
    recorded = tracked and state.record[level]
    if recorded:
        if level:
            state.stack[level].record(ov, flat, out)
        else:
            tape.record(ov, flat, out, 0)
        if observers.checkpoint is not None:
            observers.checkpoint.recorded(out, level)
    if state.inference and not level:
        mark_inference(out)
    if ov.is_view:
        link_views(ov, flat, out, level)
    if fast["BIRTHS"]:
        note_birth(out, level)
    if recorded and observers.saved_hooks:
        observers.saved_hooks[-1].pack_saved(out)
    return out


def meet(ov, flat: tuple) -> tuple:
    """(level, has a handle of it history?, NumPy if all arrays are its and there is one).

    One pass over the arguments; brings views up to date, and a capture adopts what it meets.
    """
    level = state.mode
    if ov.is_random and state.random > level:
        level = state.random
    tracked = False
    space = None if state.fakes.mode is None else False
    owner = state.stack[level] if level else None
    adopts = owner is not None and owner.adopts
    nearest = level - (owner is not None and owner.continues_tape)  # whose histories count
    for t in tensors_in(flat):
        if t._link is not None:
            if not ov.is_view or ~t._link.seen != t._cell.version or type(t._payload) is _ndarray:
                refresh(t)  # else PyTorch takes views of it as it is, and again later
            if adopts and not ov.op.ends_history:
                refuse_left_behind(t, level)
        if adopts and type(t._payload) in ARRAYS:
            owner.adopt(t)
        if type(t._payload) is _ndarray:
            own, space = 0, np if space is None else space
        else:
            own, space = level_of(ov, t), False
            if adopts and type(t._payload) in ARRAYS:  # a value that outlived its level
                owner.adopt(t)
                own = level_of(ov, t)
        if own > level:
            level, tracked, nearest = own, t._edge is not None, own
        elif nearest <= own and t._edge is not None:
            tracked = True
    return level, tracked, space or None


def bind_as_given(ov, flat: tuple):
    """`bind` past autocast, which does not reach in-place operators and `out=`."""
    if state.autocast is None:
        return bind(ov, flat)
    with uncast():
        return bind(ov, flat)


def interpret(ov, flat: tuple, level: int, space=None):
    """The value of an operator on a level, without history."""
    if level == 0:
        return evaluate(ov, flat, tuple([raw_of(v) for v in flat]), space)
    return state.stack[level].process(ov, flat)


def bind_eager(ov, flat: tuple):
    """`bind` where no transform is active in any thread: everything is at level 0.

    The steps of a call: refresh (`gather`), check, promote, kernel and wrap (`evaluate`), record,
    link.  `eager/steps.py` writes the same ones out for the kinds of calls that come often.
    """
    raw, tracked, space = gather(ov, flat)
    if fast["DISPATCHES"] and (space is None or ov.kind == "creation"):  # with another layout
        out = door.operator(ov, flat)
        if out is not NotImplemented:
            return out
    out = evaluate(ov, flat, raw, space)
    if tracked and (not fast["GRADOFF"] or state.record[0]):
        tape.record(ov, flat, out, 0)
    elif fast["GRADOFF"] and state.inference:
        mark_inference(out)
    if ov.is_view:
        link_views(ov, flat, out, 0)
    return out


def gather(ov, flat: tuple) -> tuple:
    """(raw arguments, does a handle have history?, NumPy if all arrays are its and there is one).

    One pass over the arguments; brings views up to date and refuses escaped boxes.
    """
    raw, tracked, space = [], False, None
    for v in flat:
        if isinstance(v, Tensor):
            if v._link is not None:
                refresh(v)
            data = v._payload
            if type(data) is _ndarray:
                space = np if space is None else space
            else:
                level_of(ov, v)
                data, space = v._payload, False
            if v._edge is not None:
                tracked = True
            v = data
        elif type(v) is list or type(v) is tuple:
            items = []
            for t in v:
                if isinstance(t, Tensor):
                    if t._link is not None:
                        refresh(t)
                    data = t._payload
                    if type(data) is _ndarray:
                        space = np if space is None else space
                    else:
                        level_of(ov, t)
                        data, space = t._payload, False
                    if t._edge is not None:
                        tracked = True
                    t = data
                items.append(t)
            v = items
        raw.append(v)
    return raw, tracked, space or None


def evaluate(ov, flat: tuple, raw, space=None):
    """The operator on raw arguments, as handles; errors of array libraries in our words."""
    try:
        out = run_raw(ov, raw, space)
    except Exception as error:
        shown = failure(ov, flat, error)
        if shown is error:
            raise
        raise shown from error
    return make(out) if type(out) is _ndarray else wrap_all(ov, out)
