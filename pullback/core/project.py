"""Every gradient is put back into the space of its input: shape, real or complex, dtype.

The framework projects, rules do maths: this runs after every formula.  Read next: `tape.py`.
"""

from __future__ import annotations

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..threads.state import fast
from .handle import Tensor, make
from .op import ops

_SUMMED = {dt.float32.np, dt.float64.np}  # dtypes that are summed in their own precision


def sum_to(g: Tensor, shape: tuple) -> Tensor:
    """Undo broadcasting: sum the leading dims, then those of size 1."""
    have = g._payload.shape
    if not shape and hasattr(g._payload, "node"):
        return ops.sum(g)  # what PyTorch's graphs have
    extra = len(have) - len(shape)
    ones = [i + extra for i, n in enumerate(shape) if n == 1 and have[i + extra] != 1]
    dims = [*range(extra), *ones]
    data = g._payload
    if data.__class__ is np.ndarray and data.dtype in _SUMMED and g._edge is None:
        if not fast["ACTIVE"]:  # nobody looks: the same sum without ceremony
            out = np.asarray(np.add.reduce(data, (*dims,), None, None, bool(ones)))
            return make(out.reshape(shape) if ones and extra else out)
    out = ops.sum(g, dims, True) if dims else g
    return ops.reshape(out, shape) if extra else out


def reachable(have: tuple, shape: tuple) -> bool:
    """Could `shape` have been broadcast to `have`?"""
    if len(have) < len(shape):
        return False
    return all(n in (1, m) for n, m in zip(reversed(shape), reversed(have)))


def project(g: Tensor, shape: tuple, dtype, node=None, slot: int = 0) -> Tensor:
    """The gradient in the space of an input with this shape and (NumPy) dtype."""
    have = g._payload.shape
    if have != shape:
        if not reachable(have, shape):
            raise errors.GradientShapeError(
                errors.text(
                    f"{node.name() if node else 'a function'} returned an invalid gradient at "
                    f"index {slot} - got "
                    f"{list(have)} but expected shape compatible with {list(shape)}",
                    f"called at {errors.describe_place(node.where)}" if node is not None else "",
                )
            )
        g = sum_to(g, shape)
    if g._payload.dtype != dtype:
        target = dt.of(dtype)
        if g.dtype.is_complex and not target.is_complex:
            g = ops.real(g)
        if g._payload.dtype != dtype:
            g = g.to(target)
    return g
