"""A tensor takes another value and its history: memory is overwritten, handles are bound to boxes.

Read next: `../core/surface.py`, whose in-place operators end here.
"""

from __future__ import annotations

import numpy as np

from .. import errors
from ..array.fake import Fake
from ..array.lazy import ARRAYS
from ..core import events, tape
from ..core.handle import Tensor, is_buffer, make
from ..threads.state import state
from .versions import bump
from .views import (
    copy_slices,
    follow,
    laid_like,
    recording_set,
    refresh,
    scatter,
)


def store(buffer, values) -> None:
    """Overwrite a raw array."""
    if type(buffer) in ARRAYS:  # lazy ones turn what is written
        try:
            np.copyto(buffer, values, casting="unsafe")
        except ValueError:
            if buffer.flags.writeable:
                raise
            raise errors.ViewWriteError(errors.text(
                f"this tensor's memory is read-only ({errors.user_line(2)}): another library owns "
                "it and does not allow writing", cure="write to a copy, x.clone()")) from None
    else:
        buffer[...] = values


def hand_back(x: Tensor, new: Tensor) -> None:
    """What a transform did to an argument in place, its shape included."""
    if tuple(x.shape) != tuple(new.shape):
        x.resize_(list(new.shape))
    assign(x, new)


def assign(x: Tensor, new: Tensor, by=None) -> Tensor:
    """Give x the value and the history of `new`, through the view chain if x is a view.

    `by` is the operator that made `new` of what x was before, its first argument.
    """
    level = max(tape.level_own(x._payload), tape.level_own(new._payload), state.mode)
    if is_buffer(x._payload) and is_buffer(new._payload):
        return _assign_memory(x, new, level)
    if type(x._payload) is Fake and type(new._payload) is Fake:
        return _assign_memory(x, new, level)
    return _assign_boxed(x, new, level, by)


def _assign_memory(x: Tensor, new: Tensor, level: int) -> Tensor:
    """`assign` where memory is real, or fake on both sides: it is overwritten."""
    link, real = x._link, type(x._payload) is not Fake
    if real and link is not None and link.apart:
        link = None  # it has the memory, and nothing of the history
    base = x if link is None else link.base
    bump(x)  # first: an interrupt between the two must not hide the write
    if real:
        store(x._payload, new._payload)
    else:
        if x._payload.known is not None:
            x._payload.write_constant(new._payload)
        if state.fakes.reals:
            from ..array.reals import write

            write(x._payload, new._payload)
    if state.record[level] and (new._edge is not None or base._edge is not None):
        base._edge = new._edge if link is None else copy_slices(base, x, new)
        if base._record is not None and base._record.retains:
            tape.retain_again(base)
    if link is not None:
        link.seen = -1
    return x


def _assign_boxed(x: Tensor, new: Tensor, level: int, by) -> Tensor:
    """`assign` in a transform: the handle, or the base of a view, is bound to another value."""
    record, link, whole = state.record[level], x._link, None
    if link is not None and link.apart:
        link = None
    base = x if link is None else link.base
    if by is not None and link is not None and record and level:
        whole = state.stack[level].event(events.SCATTERS, base, link.chain, new, by)
    answered = whole is not None
    if not answered:
        whole = new if link is None else scatter(make(base._payload, base._edge), link.chain, new)
    whole = laid_like(base, whole)
    if not record and not is_buffer(base._payload):
        whole = make(base._payload.rewritten(whole._payload, False), whole._edge)
    moved = rebind(base, whole)
    if record:
        base._edge = whole._edge
    elif base._edge is not None:
        state.stack[level].event(events.WROTE_UNRECORDED, base)
    if base._link is not None:  # a detached alias: the memory is that of another tensor, too
        _assign_source(base, new, level, () if link is None else link.chain)
    if not moved:
        bump(x)
    if base._link is not None:
        base._link.seen = base._cell.version  # it has its own value, and its own history
    if link is not None:
        follow(x, new)
        x._edge, link.seen = new._edge, -1
        refresh(x)
        if link.multi and not record:
            link.seen = -1  # its history must not be asked for any more
        if answered:
            state.stack[level].event(events.WROTE_VIEW, x)
    if base._record is not None and base._record.retains:
        tape.retain_again(base)
    return x


def _assign_source(alias: Tensor, new: Tensor, level: int, chain: tuple) -> None:
    """Write what was written through views of a detached alias into the tensor that it is of."""
    link = alias._link
    owner, root = state.stack[level], link.base
    with recording_set(level, False):
        owner.event(events.WROTE_UNRECORDED, root)
        if not link.counts:
            link.writes += 1
            owner.event(events.WROTE_UNCOUNTED, root)
        value = owner.cut(new) if level else make(new._payload)
        whole = laid_like(root, scatter(make(root._payload), (*link.chain, *chain), value))
        if not is_buffer(root._payload):
            whole = make(root._payload.rewritten(whole._payload, True))
        rebind(root, whole)


def rebind(handle: Tensor, new: Tensor) -> bool:
    """Point a handle at other data, and tell the interpreter if the data are of a higher level.

    Returns whether the version of the handle was moved on the way.
    """
    old = handle._payload
    interp, owner = getattr(new._payload, "interp", None), getattr(old, "interp", None)
    if interp is not None and owner is not interp:
        interp.note_rebinding(handle, old)
    if owner is not None and (interp is None or interp.level <= owner.level):
        return owner.rebound_to(handle, new)
    handle._payload = new._payload
    return False
