"""`op(..., out=buffer)`: operators that write their results into given tensors.

Read next: `../core/surface.py`, which stores them.
"""

from __future__ import annotations

import functools
import warnings

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..array.lazy import ARRAYS
from ..core import stack
from ..core.handle import Tensor, is_buffer, tensors_in
from ..core.subclass_door import door
from ..core.tape import level_own
from ..threads.state import fast, state
from . import storages
from .assign import assign, rebind
from .versions import bump
from .views import describe, may_write, refresh


def write_out(ov, flat: tuple, out):
    """`op(..., out=buffer)`: compute, resize the buffer if needed, copy."""
    outs = list(out) if isinstance(out, (tuple, list)) else [out]
    level = state.mode
    for t in (*tensors_in(flat), *outs):
        own = level_own(stack.outlived(t)._payload)
        if t._link is not None:
            refresh(t)  # it may have got a history by a write to its base
        if t._edge is not None and state.record[max(level, own)]:
            raise errors.NotDifferentiable(
                errors.text(
                    f"{ov.op.base_name}(): functions with out=... arguments don't support "
                    "automatic "
                    "differentiation, but one of the arguments requires grad "
                    f"({errors.user_line(2)})",
                    cure="leave out= away, or run under no_grad()",
                )
            )
    _refuse_shared(ov, flat, outs)
    if fast["DISPATCHES"] and door.write_out(ov, flat, outs):
        return out
    result = stack.bind_as_given(ov, _in_dtype_of(ov, flat, outs[0]))
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    for t, r in zip(outs, results):
        if r.dtype is not t.dtype and not _takes(ov, r.dtype, t.dtype):
            raise errors.DTypeError(
                errors.text(
                    f"{ov.op.base_name}(): result type {r.dtype.name} can't be cast to the "
                    "desired output "
                    f"type {t.dtype.name} ({errors.user_line(2)})",
                    cure=f"give out= a tensor of dtype {r.dtype.name}",
                )
            )
    for t, r in zip(outs, results):
        r = r if r.dtype is t.dtype else r.to(t.dtype)
        may_write(t, False, level)
        if tuple(t._payload.shape) != tuple(r._payload.shape):
            if not is_buffer(t._payload):
                interp = getattr(t._payload, "interp", None)
                if interp is not None and interp.adopts and (
                        t._link is not None or id(t) in interp.first):
                    raise interp.unfollowed(errors.text(
                        f"out= of {ov.op.base_name}() would be resized ({errors.user_line(2)}), "
                        "which is an input or a view", describe(t),
                        f"give out= a tensor of shape {list(r.shape)}"))
                rebind(t, r)
                bump(t)
                continue
            _resize_out(t, r)
        assign(t, r)
    return out


@functools.cache
def _takes(ov, result: dt.DType, given: dt.DType) -> bool:
    """May a result go into an `out` of another dtype?

    Elementwise operators of several operands, and those that make floats of integers, cast to any
    dtype that keeps the category; others want the very dtype, unless the entry's `out` says.
    """
    rule, kind = ov.op.out, ov.kind
    if "any" in rule or given.name in rule:
        return True
    operands = sum(a.is_tensor for a in ov.schema.args)
    plain = ov.op.promote == "default" and ov.op.promotes is None and operands == 1
    strict = kind in ("op", "reduction") or kind == "pointwise" and plain
    exact = "exact" in rule or strict and "castable" not in rule
    return not exact and dt.can_cast(result, given)


def _resize_out(t: Tensor, result: Tensor) -> None:
    """Give an `out` tensor the shape and the layout of the result."""
    size, item = tuple(result._payload.shape), result._payload.dtype.itemsize
    strides = tuple([s // item for s in result._payload.strides])
    if t._payload.size:
        warnings.warn(
            f"An output with one or more elements was resized since it had shape "
            f"{list(t._payload.shape)}, which does not match the required output shape "
            f"{list(size)}; resize it to zero elements first, with t.resize_(0)",
            UserWarning,
            stacklevel=5,
        )
    storages.show(t, storages.owner_of(t), size, strides, t.storage_offset())


def _in_dtype_of(ov, flat: tuple, t: Tensor) -> tuple:
    """The arguments of an operator that takes `out`'s dtype for its own: those that make a tensor
    from numbers, and sums."""
    names = ov.schema.names
    makes = ov.kind in ("creation", "random") and "self" not in names
    if "dtype" not in names or not (makes or "any" in ov.op.out):
        return flat
    place = names.index("dtype")
    return flat if flat[place] is not None else (*flat[:place], t.dtype, *flat[place + 1 :])


def _refuse_shared(ov, flat: tuple, outs: list) -> None:
    """Refuse an `out` that shares memory with an input, where the operator wants it apart."""
    if "apart" not in ov.op.out:
        return
    for t in outs:
        for x in tensors_in(flat):
            pair = t._payload, x._payload
            plain = all(type(a) in ARRAYS and a.flags.forc for a in pair)
            if t is x or plain and np.may_share_memory(*pair):
                raise errors.ViewWriteError(
                    errors.text(
                        f"{ov.op.base_name}(): some elements of the input tensor and the "
                        f"written-to tensor refer to a single memory location "
                        f"({errors.user_line(2)})",
                        describe(t),
                        "clone() the tensor before performing the operation",
                    )
                )
