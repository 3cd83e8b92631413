"""Derivatives of distances between points: p-norms of differences of rows.

Everything here is made of operators, so it can be recorded, batched and traced again.  At distance
zero, where a norm has a kink, derivatives are zero.  The entries are in `ops/distance.py`.
"""

from __future__ import annotations

import math

from ..array import dtype as dt
from ..table.packets import ops
from .reduce import _never_zero, _norm_direction


def distance_slopes(offset, p, distance):
    """d |offset|_p / d offset along the last dim; `distance` has no last dim.

    For p = inf every coordinate that attains the distance counts in full, as in PyTorch.
    """
    distance = distance.unsqueeze(-1)
    if p == 0:
        return ops.zeros_like(offset)
    if p == 1:
        return offset.sgn()
    if math.isinf(p):
        return offset.sgn() * (offset.abs() == distance).to(offset.dtype)
    return _norm_direction(offset, p, distance, -1)


def offsets_between(x1, x2):
    """All differences of a row of x1 and a row of x2: (..., rows of x1, rows of x2, columns)."""
    return x1.unsqueeze(-2) - x2.unsqueeze(-3)


def norm_of_offsets(offset, p):
    """p-norms along the last dim, in terms of operators."""
    if p == 0:
        count = (offset != 0).to(offset.dtype).sum(-1)
        return ops.where(offset.isnan().any(-1), math.nan, count)
    if p == 1:
        return offset.abs().sum(-1)
    if p == 2:
        return (offset * offset).sum(-1).sqrt()
    if math.isinf(p):
        return offset.abs().amax([-1]) if offset.shape[-1] else offset.sum(-1)
    return offset.abs().pow(p).sum(-1).pow(1 / p)


# ---------------------------------------------------------------------------------------------
# Two sets of points


def cdist_pullback(grad, x1, x2, p, cdist):
    """Each row of x1 receives the gradients of its distances times their directions."""
    if p == 0 or not x1.shape[-1]:
        return ops.zeros_like(x1)
    slopes = distance_slopes(offsets_between(x1, x2), p, cdist)
    return (_from_apart(grad, p, cdist).unsqueeze(-1) * slopes).sum(-2)


def _from_apart(grad, p, distance):
    """Gradients of distances, none of which comes from points that coincide: not an infinite one,
    either."""
    return grad if p == 1 or math.isinf(p) else ops.where(distance == 0, 0, grad)


def cdist_push(x1_p, x1_t, x2_p, x2_t, p, result):
    """d |x - y| = <direction, dx - dy>."""
    if p == 0 or not x1_p.shape[-1]:
        return ops.zeros_like(result)
    slopes = distance_slopes(offsets_between(x1_p, x2_p), p, result)
    return (slopes * offsets_between(x1_t, x2_t)).sum(-1)


def euclidean_pullback(grad, x1, x2, result, mask):
    """With r = g / |x - y|: sum_j r_ij (x_i - y_j) = x_i sum_j r_ij - (r y)_i, and so for y."""
    ratio = ops.where(result == 0, 0, grad / _never_zero(result))
    first = second = None
    if mask[0]:
        first = x1 * ratio.sum(-1, True) - ratio.matmul(x2)
    if mask[1]:
        second = x2 * ratio.sum(-2).unsqueeze(-1) - ratio.mT.matmul(x1)
    return first, second


def euclidean_push(x1_p, x1_t, x2_p, x2_t, result):
    """d |x - y| = <x - y, dx - dy> / |x - y|, written as products of matrices."""
    inner = ((x1_p * x1_t).sum(-1, True) + (x2_p * x2_t).sum(-1).unsqueeze(-2)
             - x1_p.matmul(x2_t.mT) - x1_t.matmul(x2_p.mT))
    return inner / _never_zero(result)


# ---------------------------------------------------------------------------------------------
# Pairs of one set


def pairs_of(n: int, device):
    """The numbers i < j of all pairs below n, row by row."""
    return ops.triu_indices(n, n, 1, dtype=dt.int64, device=device).unbind(0)


def _pair_slopes(self, p, pdist):
    """Pair numbers and the directions of their distances."""
    first, second = pairs_of(self.shape[0], self.device)
    offset = self.index_select(0, first) - self.index_select(0, second)
    return first, second, distance_slopes(offset, p, pdist)


def pdist_pullback(grad, self, p, pdist):
    """Both points of a pair receive the gradient of its distance, in opposite directions."""
    if p == 0 or self.shape[0] < 2 or not self.shape[1]:
        return ops.zeros_like(self)
    first, second, slopes = _pair_slopes(self, p, pdist)
    terms = _from_apart(grad, p, pdist).unsqueeze(-1) * slopes
    return ops.zeros_like(self).index_add(0, first, terms).index_add(0, second, -terms)


def pdist_push(self_p, self_t, p, result):
    """d |x - y| = <direction, dx - dy>."""
    if p == 0 or self_p.shape[0] < 2 or not self_p.shape[1]:
        return ops.zeros_like(result)
    first, second, slopes = _pair_slopes(self_p, p, result)
    return (slopes * (self_t.index_select(0, first) - self_t.index_select(0, second))).sum(-1)
