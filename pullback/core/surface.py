"""In-place operators: each is the pure operator, whose result the tensor has from then on.

An eager write really changes the buffer and moves the version; a write to a boxed tensor rebinds
the handle.  A write through a view is a scatter into its base (`../memory/assign.py`), and stale
views are replayed when next used.  Read next: `overload.py`; `../memory/out.py`, for `out=`.
"""

from __future__ import annotations

import copy
import functools

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..array.evaluate import run_raw
from ..array.failures import translated
from ..array.layout import strides_order
from ..array.lazy import ARRAYS
from ..memory.assign import assign, store
from ..memory.links import Link, one_more
from ..memory.versions import bump
from ..memory.views import found_anew, may_write, refresh, replay, unhooked
from ..threads.state import fast, state
from . import doors, events, stack, tape
from .handle import Tensor, is_buffer, make, tensors_in
from .op import ops
from .subclass_door import door

_ndarray = np.ndarray


def inplace(ov, flat: tuple) -> Tensor:
    """`x.op_(...)`: the pure operator, then the result takes x's place."""
    x = flat[0]
    if fast["DISPATCHES"]:
        out = door.write(ov, flat)
        if out is not NotImplemented:
            return out
    if ov.is_view:
        return inplace_view(ov, flat)
    if not isinstance(x, Tensor):
        return _each_inplace(ov, flat)
    if x._link is not None:
        refresh(x)
    owner = state.stack[state.mode] if state.mode else None
    if owner is not None and owner.adopts and type(x._payload) in ARRAYS:
        owner.adopt(x)
    raw, tracked, space = stack.gather(ov, flat)
    recorded = tracked and state.record[0]
    same = ov.op.uniform
    if same and _is_expanded(x):
        return _fill_expanded(ov, flat)
    may_write(x, tracked, stack.level_of(ov, x), same and not recorded)
    plain = not state.mode and not (state.random and ov.is_random) and (
        space is not None or all(is_buffer(t._payload) for t in tensors_in(flat))
    )
    if plain and not recorded and not ov.is_composite:
        return _write_memory(ov, flat, raw, space)
    return _write_value(ov, flat)


def _each_inplace(ov, flat: tuple):
    """The same for each tensor of a list, if it is one."""
    if type(flat[0]) is list:
        return doors.each_inplace(ov, flat)
    raise errors.ArgumentError(f"{ov.op.base_name}_ wants a tensor, got {type(flat[0]).__name__}")


def _write_memory(ov, flat: tuple, raw, space) -> Tensor:
    """`x.op_(...)` where nothing is recorded and memory is real: it is overwritten."""
    x, fill = flat[0], ov.op.fill
    try:
        if fill is not None and type(x._payload) is _ndarray and filled(x, fill, raw):
            return x
        new = run_raw(ov, raw, space)
    except (errors.PullbackError, NotImplementedError, MemoryError):
        raise
    except Exception as error:
        raise translated(ov, flat, error) from error
    if new.shape != x._payload.shape or new.dtype != x._payload.dtype:
        check_result(ov, x, new.shape, dt.of(new.dtype))
    bump(x)  # first: an interrupt between the two must not hide the write
    store(x._payload, new)
    return x


def _write_value(ov, flat: tuple) -> Tensor:
    """`x.op_(...)` as the pure operator on what x was before, whose result is assigned."""
    x = flat[0]
    before = state.switches
    if before.filling is not ov.is_random:
        state.switches.filling = ov.is_random
    try:
        if ov.is_random and ov.op.memory_format == "rows":
            new = _drawn_in_order(ov, _shadowed(ov, flat, x))
        else:
            new = stack.bind_as_given(ov, _shadowed(ov, flat, x))
    finally:
        state.switches = before
    check_result(ov, x, new._payload.shape, new.dtype)
    if ov.op.inplace_node:
        _rename(ov, new._edge)
    by = ov if new.dtype is x.dtype else None
    if by is None:
        new = new.to(x.dtype)
        if ov.op.promote == "bool" and x._edge is not None:
            new = ops.fill(make(x._payload, x._edge), 0) + new  # still tracked, derivative zero
    return assign(x, new, by)


def _drawn_in_order(ov, flat: tuple) -> Tensor:
    """What an operator that draws row by row gives for a tensor that is filled with it: numbers
    one after the other as the elements lie in memory."""
    x = flat[0]
    order = strides_order(x._payload.shape, x._payload.strides)
    if order is None:
        return stack.bind_as_given(ov, flat)
    new = stack.bind_as_given(ov, (ops.permute(x, order), *flat[1:]))
    return ops.permute(new, sorted(range(len(order)), key=order.__getitem__))


def filled(x: Tensor, fill, raw: tuple) -> bool:
    """Let an operator write into memory by itself, if it can."""
    try:
        done = fill(*raw)
        if done:
            bump(x)
        return done
    except Exception:
        raise
    except BaseException:
        bump(x)  # an interrupt between the two must not hide the write
        raise


def _rename(ov, node) -> None:
    """Give a node the name that it has after an in-place call, where that is another."""
    if isinstance(node, tape.Node) and node.rule is ov.rule and node.outputs == 1:
        node.__class__ = tape.node_class(_renamed(ov.rule, ov.op.inplace_node))


@functools.cache
def _renamed(rule, name: str):
    """The rule under another name; by rule, since an operator gets a new one with new formulas."""
    rule = copy.copy(rule)
    rule.name = name
    return rule


def _is_expanded(x: Tensor) -> bool:
    """Does a tensor show elements of another one several times, as the last step of a view?"""
    link = x._link
    if link is None or not link.steps or link.apart and is_buffer(x._payload):
        return False
    return link.steps[1][0].op.covers


def _fill_expanded(ov, flat: tuple) -> Tensor:
    """Fill an expanded tensor: what was expanded is filled instead, each element once."""
    x = flat[0]
    link = x._link
    inplace(ov, (replay(link.base, link.chain[:-1]), *flat[1:]))
    refresh(x)
    return x


def inplace_view(ov, flat: tuple) -> Tensor:
    """`x.t_()` and the like: the handle itself becomes the view; no memory is written."""
    x = stack.outlived(flat[0])
    if x._link is not None:
        refresh(x)
    may_write(x, x._edge is not None, tape.level_own(x._payload), True)
    link, interp = x._link, getattr(x._payload, "interp", None)
    if link is None and x._cell is not None and not is_buffer(x._payload):
        link = Link(found_anew(x), None, False, None, x._cell.version)  # older views go by steps
    elif link is not None and link.apart and interp is not None:
        base = found_anew(x)  # so they do of a detached alias
        base._link, link = link, Link(base, None, False, None, x._cell.version)
    recorded = state.record[tape.level_own(x._payload)]
    # else it keeps its history, which does not end here
    new = stack.bind(ov, (make(x._payload, x._edge if recorded else None), *flat[1:]))
    if ov.op.inplace_node:
        _rename(ov, new._edge)
    if interp is not None:
        base = x if link is None else link.base
        interp.event(events.RESHAPED, x, (ov, flat[1:]), new._payload, base)
    made_by = getattr(new._payload, "interp", None)
    if made_by is not None and not made_by.adopts:
        made_by.event(events.RESHAPES, x)
        if made_by is not interp:  # of a tensor from outside
            made_by.note_rebinding(x, x._payload)
    x._payload = new._payload
    if recorded:
        x._edge = new._edge
    bump(x)
    if link is not None:
        steps = one_more(link.steps, (ov, flat[1:], None))
        seen = x._cell.version if recorded else -1
        x._link = link.__class__(link.base, steps, link.multi, link.hidden, seen)
        x._link.of = link.of
    if x._record is not None and x._record.retains:
        tape.retain_again(x)
    return x


def saves_self(ov, flat: tuple, x: Tensor) -> bool:
    """Does the derivative of an operator need the value that is about to be overwritten?"""
    return (
        ov.is_composite
        or ov.rule is None
        or any(
            kind == "arg" and flat[ov.schema.names.index(name)] is x
            for _, kind, name, _ in ov.rule.saves
        )
    )


def _shadowed(ov, flat: tuple, x: Tensor) -> tuple:
    """Flat arguments with x replaced by a stand-in that keeps its old value."""
    data = x._payload
    saves = saves_self(ov, flat, x)
    if is_buffer(data) and saves and state.record[0]:
        data = data.copy("K")  # draws see the order of its elements
    elif saves and not is_buffer(data) and data.cell is not None:  # of memory to be written
        data = data.shadow()
    shadow = make(data, x._edge if x._link is None else unhooked(x))
    if saves and x._edge is not None and not is_buffer(data):
        interp = getattr(data, "interp", None)
        if interp is not None and state.record[interp.level]:
            interp.event(events.OVERWRITES, ov, flat, shadow)
    return tuple(shadow if v is x else v for v in flat)


def check_result(ov, x: Tensor, shape: tuple, dtype: dt.DType) -> None:
    """The result of an in-place operator must fit the tensor that it is stored in."""
    if tuple(shape) != tuple(x._payload.shape):
        raise errors.ShapeError(errors.text(
            f"{ov.op.base_name}_: output with shape {list(x._payload.shape)} doesn't match the "
            f"broadcast shape {list(shape)} ({errors.user_line(2)})",
            cure=f"use the out-of-place {ov.op.base_name}()"))
    if not dt.can_cast(dtype, x.dtype):
        raise errors.DTypeError(errors.text(
            f"{ov.op.base_name}_: result type {dtype.name} can't be cast to the desired output "
            f"type {x.dtype.name} ({errors.user_line(2)})",
            cure=f"convert the tensor first, or use the out-of-place {ov.op.base_name}()"))
