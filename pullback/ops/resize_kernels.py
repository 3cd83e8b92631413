"""Kernels of resizing: tables of places and weights along one dim.

Resizing is a linear map along each dim, given by a table of a few places and weights for each
result (`Taps`).  The transpose of such a table is again one, so the gradient runs the same kernel.
Positions and weights are in `formulas/resample.py`.  Read next: `upsample.py`.
"""

from __future__ import annotations

from typing import NamedTuple

from ..array import dtype as dt
from ..array.dims import numel
from ..array.size import cached
from ..formulas.resample import cubic_far, cubic_near, resize_taps, source_step
from ..table.packets import ops
from .pool_kernels import scatter_sum


class Taps(NamedTuple):
    """Result i of a dim is the sum over k of weights[i, k] * element[places[i, k]]."""

    size: int  # elements that the places count
    places: object  # [result, tap], int64
    weights: object  # [result, tap], or None where all are one
    idle: object = None  # [result, tap], which taps a result does not have; None where it has all

    @property
    def count(self) -> int:
        return self.places.shape[0]


# the half width of each smoothing filter, and the filter itself at distances x >= 0
FILTERS = {
    "linear_aa": (1, lambda xp, x: xp.maximum(1 - x, 0)),
    "cubic_aa": (2, lambda xp, x: xp.where(
        x < 1, cubic_near(x, -0.5), xp.where(x < 2, cubic_far(x, -0.5), 0))),
    "lanczos_aa": (3, lambda xp, x: xp.where(x < 3, xp.sinc(x) * xp.sinc(x / 3), 0)),
}


def _smooth_taps(xp, kind: str, size: int, count: int, step: float, dtype) -> Taps:
    """Taps of a filter that grows with the distance of the results, so that nothing aliases."""
    width, shape = FILTERS[kind]
    reach = width * max(step, 1.0)
    centre = (xp.arange(count, dtype=dtype) + 0.5) * step
    first = xp.floor(centre - reach + 0.5).clip(0, None)
    end = xp.floor(centre + reach + 0.5).clip(None, size)
    offsets = xp.arange(int((end - first).max()), dtype=dtype)
    places = first[:, None] + offsets
    weights = shape(xp, abs((places - centre[:, None] + 0.5) / max(step, 1.0)))
    idle = places >= end[:, None]
    weights = xp.where(idle, 0, weights).astype(dtype)
    total = weights.sum(axis=1, keepdims=True)
    weights = weights / xp.where(total == 0, 1, total)
    return Taps(size, places.clip(0, size - 1).astype(xp.int64), weights, idle)


@cached(128)
def _taps(xp, kind: str, size: int, count: int, align: bool, scale, dtype) -> Taps:
    """The table that makes `count` results of `size` elements."""
    step = source_step(size, count, align, scale)
    if kind in FILTERS:
        return _smooth_taps(xp, kind, size, count, step, dtype)
    if kind in ("nearest", "exact"):
        dtype = xp.float32  # PyTorch counts in single precision here, whatever the data are
        step = float(xp.asarray(step, dtype=dtype))
    found = resize_taps(xp, kind, xp.arange(count, dtype=dtype), size, step, align)
    places = xp.stack([p for p, _ in found], axis=1).astype(xp.int64)
    plain = found[0][1] is None
    return Taps(size, places, None if plain else xp.stack([w for _, w in found], axis=1))


@cached(128)
def _transposed(xp, kind: str, size: int, count: int, align: bool, scale, dtype) -> Taps:
    """The table of the adjoint map: who uses each element, and with which weight."""
    t = _taps(xp, kind, size, count, align, scale, dtype)
    users = xp.repeat(xp.arange(count), t.places.shape[1])
    places = t.places.reshape(-1)
    order = xp.argsort(places, kind="stable")
    if t.idle is not None:
        order = order[~t.idle.reshape(-1)[order]]
    places, users = places[order], users[order]
    totals = xp.bincount(places, minlength=size)
    begins = xp.cumsum(totals) - totals
    widest = int(totals.max())
    rank = xp.arange(places.shape[0]) - begins[places]  # number of a use among those of its element
    table = xp.zeros((size, widest), xp.int64)
    table[places, rank] = users
    weights = xp.zeros((size, widest), dtype)
    ones = t.weights is None
    weights[places, rank] = 1 if ones else t.weights.reshape(-1)[order]
    return Taps(count, table, weights, xp.arange(widest) >= totals[:, None])


MANY = 16  # from so many taps on, a matrix product is faster than gathering


def _apply(xp, x, axis: int, taps: Taps):
    """The linear map of a table along one dim."""
    if taps.weights is None:
        return xp.take(x, taps.places[:, 0], axis=axis)
    width = taps.places.shape[1]
    if width > MANY and bool(xp.isfinite(x).all()):  # in a product, inf meets zeros
        return _apply_matrix(xp, x, axis, taps)
    column = (-1,) + (1,) * (x.ndim - 1 - axis)
    out = None
    for k in range(width):
        term = xp.take(x, taps.places[:, k], axis=axis)
        term *= taps.weights[:, k].reshape(column)
        if taps.idle is not None and bool(taps.idle[:, k].any()):
            term[(slice(None),) * axis + (taps.idle[:, k],)] = 0
        if out is None:
            out = term
        else:
            out += term
    return out


def _apply_matrix(xp, x, axis: int, taps: Taps):
    """The same as a product with a dense matrix."""
    cells = xp.arange(taps.count)[:, None] * taps.size + taps.places
    matrix = scatter_sum(xp, taps.weights, cells, taps.count * taps.size)
    matrix = matrix.reshape(taps.count, taps.size)
    if axis == x.ndim - 1:
        return xp.matmul(x, matrix.T)
    lead, tail = x.shape[:axis], x.shape[axis + 1:]
    out = xp.matmul(matrix, x.reshape(*lead, taps.size, numel(tail)))
    return out.reshape(*lead, taps.count, *tail)


def _stays(kind: str, size: int, count: int) -> bool:
    """Is a dim of that size left as it is, so that NaN does not meet weights of 0?  So in PyTorch,
    whose cubic filter alone weighs all neighbours."""
    return size == count and (kind == "linear" or kind in FILTERS)


def resize(xp, x, kind: str, sizes, align: bool, scales):
    """Resize the last dims; those that shrink go first."""
    first = x.ndim - len(sizes)
    order = sorted(range(len(sizes)), key=lambda d: (sizes[d] >= x.shape[first + d], -d))
    whole = x.dtype.kind in "iu" and kind not in ("nearest", "exact")
    if whole:  # images of bytes are rounded after each dim, the last one first, as in PyTorch
        order = reversed(range(len(sizes)))
    out = x.astype(xp.float32) if whole else x
    for d in order:
        if _stays(kind, x.shape[first + d], sizes[d]):
            continue
        taps = _taps(xp, kind, x.shape[first + d], sizes[d], align, scales[d], out.dtype)
        out = _apply(xp, out, first + d, taps)
        if whole:
            out = xp.floor(out + 0.5).clip(0, 255)
    return out.astype(x.dtype) if whole else out.copy() if out is x else out


def resize_backward(xp, grad, kind: str, shape, align: bool, scales):
    """The adjoint of `resize` for an input of `shape`."""
    first = grad.ndim - len(scales)
    grows = [shape[first + d] >= grad.shape[first + d] for d in range(len(scales))]
    order = sorted(range(len(scales)), key=lambda d: (grows[d], -d))
    out = grad
    for d in order:
        if _stays(kind, shape[first + d], grad.shape[first + d]):
            continue
        taps = _transposed(xp, kind, shape[first + d], grad.shape[first + d], align, scales[d],
                           grad.dtype)
        out = _apply(xp, out, first + d, taps)
    return out.copy() if out is grad else out


def resized_by_gathers(self, kind: str, sizes, align: bool, scales):
    """Resizing in terms of index_select, for capture."""
    dtype, first = self.dtype, self.ndim - len(sizes)
    exact = kind in ("nearest", "exact")
    if dtype.category < 2 and not exact:
        return NotImplemented
    out = self.to(dt.float32) if dtype.itemsize == 2 and not exact else self
    for d, (count, scale) in enumerate(zip(sizes, scales)):
        dim = first + d
        if _stays(kind, self.shape[dim], count):
            continue
        step = source_step(self.shape[dim], count, align, scale)
        line = ops.arange(count, dtype=dt.float32 if exact else out.dtype, device=self.device)
        column = (-1,) + (1,) * (self.ndim - 1 - dim)
        total = None
        for place, weight in resize_taps(ops, kind, line, self.shape[dim], step, align):
            term = out.index_select(dim, place.to(dt.int64))
            term = term if weight is None else term * weight.reshape(column)
            total = term if total is None else total + term
        out = total
    if out is self:
        return self.clone()
    return out if out.dtype is dtype else out.to(dtype)
