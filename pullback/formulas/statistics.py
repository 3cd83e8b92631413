"""Derivatives of medians, norm clipping, distances of two tensors and segment reductions.

Everything here is made of operators, so it can be recorded, batched and traced again.  The entries
are in `ops/statistics.py`; distances of many points are in `distance.py`.
"""

from __future__ import annotations

import math

from ..array import dtype as dt
from ..array.dims import wrap_dim
from ..table.packets import ops
from .loss import difference
from .reduce import norm_pullback, norm_push

# ---------------------------------------------------------------------------------------------
# Slices cut down to a norm

TINY = 1e-7  # keeps the quotient finite; PyTorch's value


def others_than(dim, ndim) -> list[int]:
    """All dims but one."""
    dim = wrap_dim(dim, ndim)
    return [d for d in range(ndim) if d != dim]


def clipped_factor(norm, maxnorm):
    """f(n) = maxnorm / (n + tiny) where n exceeds maxnorm, else 1; and its derivative f'(n)."""
    quotient = maxnorm / (norm + TINY)
    over = norm > maxnorm
    slope = ops.where(over, -quotient / (norm + TINY), ops.zeros_like(norm))
    return ops.where(over, quotient, ops.ones_like(norm)), slope


def renorm_pullback(grad, self, p, dim, maxnorm):
    """Pullback of x f(|x|): f g + f' Re<x, g> (d|x|/dx)."""
    over = others_than(dim, self.ndim)
    norm = ops.linalg_vector_norm(self, p, over, True)
    factor, slope = clipped_factor(norm, maxnorm)
    inner = self.conj() * grad
    inner = (inner.real if inner.is_complex() else inner).sum(over, True)
    clipped = factor * grad + norm_pullback(slope * inner, self, p, norm, over, True)
    return ops.where(norm > maxnorm, clipped, grad)


def renorm_push(self_p, self_t, p, dim, maxnorm):
    """Pushforward of x f(|x|): f dx + x f' d|x|."""
    over = others_than(dim, self_p.ndim)
    norm = ops.linalg_vector_norm(self_p, p, over, True)
    factor, slope = clipped_factor(norm, maxnorm)
    return factor * self_t + self_p * (slope * norm_push(self_p, self_t, p, norm, over, True))


# ---------------------------------------------------------------------------------------------
# Distance of two tensors


def dist_pullback(grad, self, other, p, result):
    """d |a - b|_p with respect to a; with respect to b it has the other sign."""
    offset = difference(self, other)
    out = norm_pullback(grad, offset, p, result, None, False)
    return ops.zeros_like(offset) if out is None else out


def dist_push(self_p, self_t, other_p, other_t, p, result):
    """d |a - b|_p."""
    return norm_push(difference(self_p, other_p), self_t - other_t, p, result, None, False)


# ---------------------------------------------------------------------------------------------
# Segments: consecutive elements along an axis that belong together


def segment_bounds(lengths, offsets):
    """Where segments start and end: one number more than there are segments, along the last dim."""
    if offsets is not None:
        return offsets.to(dt.int64)
    ends = lengths.to(dt.int64).cumsum(-1)
    return ops.cat([ops.zeros_like(ends.narrow(-1, 0, 1)), ends], -1) if ends.shape[-1] else (
        ends.new_zeros((*ends.shape[:-1], 1)))


def segment_numbers(bounds, size):
    """For each of `size` places the number of its segment; -1 or the count where it has none."""
    marks = ops.zeros((*bounds.shape[:-1], size + 1), dtype=dt.int64, device=bounds.device)
    bounds = bounds.clamp(max=size)
    return marks.scatter_add(-1, bounds, ops.ones_like(bounds)).cumsum(-1).narrow(-1, 0, size) - 1


class Segments:
    """The segments of a tensor, as places to gather from and to add to."""

    def __init__(self, data, lengths, offsets, axis):
        bounds = segment_bounds(lengths, offsets)
        self.axis, self.count = wrap_dim(axis, data.ndim), bounds.shape[-1] - 1
        self.sizes = self._like(data, bounds.narrow(-1, 1, self.count)
                                - bounds.narrow(-1, 0, self.count))
        number = segment_numbers(bounds, data.shape[self.axis])
        number = number.masked_fill(number >= self.count, -1)
        self.number = self._like(data, number).expand(data.shape)  # -1: in no segment
        self.inside = self.number >= 0
        self.place = self.number.clamp(min=0)

    def _like(self, data, x):
        """A tensor of the leading dims, with dims of size 1 for the further dims of the data."""
        return x.reshape((*x.shape, *(1,) * (data.ndim - x.ndim)))

    def spread(self, x):
        """For each element the value of its segment; 0 where it has none."""
        if not self.count:
            return x.new_zeros(self.number.shape)
        return x.gather(self.axis, self.place).masked_fill(self.inside.logical_not(), 0)

    def total(self, x):
        """Sum of the elements of each segment."""
        shape = list(x.shape)
        shape[self.axis] = self.count
        if not self.count:
            return x.new_zeros(shape)
        kept = x.masked_fill(self.inside.logical_not(), 0)
        return x.new_zeros(shape).scatter_add(self.axis, self.place, kept)

    def others(self, x, initial):
        """For each element the product of the others in its segment, and of `initial`.

        Products of all elements before, and of all behind, by doubling; no division, so that zeros
        are no exception and every derivative exists.
        """
        before = self._products(x, self.number, self.axis)
        behind = self._products(x.flip([self.axis]), self.number.flip([self.axis]), self.axis)
        out = before * behind.flip([self.axis])
        return out if initial is None else out * initial

    @staticmethod
    def _products(x, number, axis):
        """At each place the product of the elements before it in the same segment."""
        size = x.shape[axis]
        total = _delayed(x, number, axis, 1)
        step = 1
        while step < size:
            total = total * _delayed(total, number, axis, step)
            step *= 2
        return total


def _delayed(x, number, axis, step):
    """x_{i - step} at place i, and 1 where that is another segment or before the start."""
    size = x.shape[axis]
    step = min(step, size)
    start = ops.ones_like(x.narrow(axis, 0, step))
    same = number.narrow(axis, 0, size - step) == number.narrow(axis, step, size - step)
    kept = x.narrow(axis, 0, size - step).masked_fill(same.logical_not(), 1)
    return ops.cat([start, kept], axis)


def _segment_slopes(segments, data, result, reduce, initial):
    """The derivative of each segment's result with respect to each of its elements."""
    if reduce == "sum":
        return ops.ones_like(data)
    if reduce == "mean":
        sizes = segments.sizes.to(data.dtype)
        sizes = sizes.masked_fill(sizes == 0, 1)
        return segments.spread((1 / sizes).expand(result.shape))
    if reduce == "prod":
        return segments.others(data, initial).masked_fill(segments.inside.logical_not(), 0)
    value = segments.spread(result)
    hit = (data == value).logical_or(data.isnan()).logical_and(segments.inside).to(data.dtype)
    winners = segments.total(hit)
    return hit / segments.spread(winners.masked_fill(winners == 0, 1)).masked_fill(hit == 0, 1)


def segment_pullback(grad, result, data, reduce, lengths, offsets, axis, initial):
    """Every element receives the gradient of its segment times its slope."""
    reduce = {"amax": "max", "amin": "min"}.get(reduce, reduce)
    segments = Segments(data, lengths, offsets, axis)
    return segments.spread(grad) * _segment_slopes(segments, data, result, reduce, initial)


def segment_push(data_p, data_t, result, reduce, lengths, offsets, axis, initial):
    """The sum of slope times tangent over each segment."""
    reduce = {"amax": "max", "amin": "min"}.get(reduce, reduce)
    segments = Segments(data_p, lengths, offsets, axis)
    return segments.total(
        _segment_slopes(segments, data_p, result, reduce, initial) * data_t)


def segment_value(data, reduce, lengths, offsets, axis, initial):
    """`segment_reduce` in terms of operators."""
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    segments = Segments(data, lengths, offsets, axis)
    start = initial
    if start is None:
        start = {"sum": 0, "mean": 0, "prod": 1, "amax": -math.inf, "amin": math.inf}[reduce]
    shape = list(data.shape)
    shape[segments.axis] = segments.count + 1  # the last place takes elements without segment
    place = ops.where(segments.inside, segments.place, segments.count)
    kind = "sum" if reduce == "mean" else reduce
    out = ops.full(shape, start, dtype=data.dtype, device=data.device)
    out = out.scatter_reduce(segments.axis, place, data, kind)
    out = out.narrow(segments.axis, 0, segments.count)
    if reduce != "mean":
        return out.clone()
    sizes = segments.sizes.to(data.dtype)
    return out / (sizes if initial is None else sizes.masked_fill(sizes == 0, 1))
