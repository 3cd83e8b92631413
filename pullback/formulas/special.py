"""Derivatives of special functions and of running sums of exponentials.

Nothing here divides by a difference or tests values, so every formula can be traced, batched and
differentiated again.  The entries are in `ops/special.py`; read `formulas/fft.py` next.
"""

from __future__ import annotations

import math

from ..array.dims import wrap_dim
from ..table.packets import ops
from .reduce import single


def multivariate_digamma(self, p):
    """Derivative of mvlgamma: the sum of digamma(x - i/2) for i < p."""
    total = self.digamma()
    for i in range(1, p):
        total = total + (self - i / 2).digamma()
    return total


def xlog1py_pullback(grad, self, other):
    """d x log(1 + y) by x, 0 where the product is 0 by definition (x = 0, y <= -1) or `grad` is."""
    if isinstance(other, (int, float)):
        out = ops.special_xlog1py(grad, other)
        return out if other > -1 else out.masked_fill(self == 0, 0)
    unused = (self == 0).logical_and(other <= -1)
    return ops.special_xlog1py(grad.masked_fill(unused, 0), other.masked_fill(unused, 0))


def unit_complex(angle):
    """exp(i angle)."""
    return ops.polar(ops.ones_like(angle), angle)


def scattered_sum(grad, indices, dim):
    """Pullback of a choice of elements along a dim: each element collects its gradients."""
    if grad.ndim == 0 or grad.numel() == 0:
        return grad
    return ops.zeros_like(grad).scatter_add(wrap_dim(dim, grad.ndim), indices, grad)


# ---------------------------------------------------------------------------------------------
# logcumsumexp: y_k = log(sum of exp(x_i) for i <= k).  exp(y_k - y_(k+1)) is at most 1, so the
# recurrences below can neither overflow nor divide by zero.


def _difference(x, y):
    """x - y, and 0 where both are the same infinity."""
    same = (x == y).logical_and(x.isinf())
    return (x - y.masked_fill(same, 0)).masked_fill(same, 0)


def _first_of_infinities(x, y, dim):
    """x - y; where both are an infinity that y already was one place before, -inf.

    Of several equal infinities the first takes all, so that the weights add up to 1.
    """
    if x.shape[dim] == 1:
        return _difference(x, y)
    before = ops.cat([ops.zeros_like(y.narrow(dim, 0, 1)), y.narrow(dim, 0, y.shape[dim] - 1)], dim)
    late = (before == y).logical_and(y.isinf())
    return _difference(x, y).masked_fill(late, -math.inf)


def _shift(x, dim, count):
    """x_(i + count) at place i, for a negative count x_(i - |count|); 0 beyond the ends."""
    size = x.shape[dim]
    kept = x.narrow(dim, max(count, 0), size - abs(count))
    blank = ops.zeros_like(x.narrow(dim, 0, abs(count)))
    return ops.cat([kept, blank] if count > 0 else [blank, kept], dim)


def _linear_recurrence(start, factor, dim, direction):
    """Solution of s_i = start_i + factor_i s_(i + direction), by doubling."""
    step, size = 1, start.shape[dim]
    while step < size:
        start = start + factor * _shift(start, dim, direction * step)
        factor = factor * _shift(factor, dim, direction * step)
        step *= 2
    return start


def logcumsumexp_pullback(grad, self, result, dim):
    """The gradient of x_i is exp(x_i - y_i) s_i with s_i = g_i + exp(y_i - y_(i+1)) s_(i+1)."""
    if self.ndim == 0 or self.numel() == 0:
        return grad
    dim = wrap_dim(dim, self.ndim)
    self, result, grad = single(self), single(result), single(grad)
    weight = _first_of_infinities(self, result, dim).exp().conj()
    if self.shape[dim] == 1:
        return grad * weight
    decay = _neighbours(result, dim).conj()
    factor = ops.cat([decay, ops.zeros_like(result.narrow(dim, 0, 1))], dim)
    return weight * _linear_recurrence(grad, factor, dim, 1)


def logcumsumexp_push(self_p, self_t, result, dim):
    """dy_k = exp(x_k - y_k) dx_k + exp(y_(k-1) - y_k) dy_(k-1)."""
    if self_p.ndim == 0 or self_p.numel() == 0:
        return self_t
    dim = wrap_dim(dim, self_p.ndim)
    self_p, result = single(self_p), single(result)
    start = _first_of_infinities(self_p, result, dim).exp() * self_t
    if self_p.shape[dim] == 1:
        return start
    decay = _neighbours(result, dim)
    factor = ops.cat([ops.zeros_like(result.narrow(dim, 0, 1)), decay], dim)
    return _linear_recurrence(start, factor, dim, -1)


def _neighbours(y, dim):
    """exp(y_i - y_(i+1)) for all but the last place."""
    size = y.shape[dim]
    return _difference(y.narrow(dim, 0, size - 1), y.narrow(dim, 1, size - 1)).exp()
