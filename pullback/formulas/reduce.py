"""Derivatives of reductions and running sums and products.

A gradient of a reduced tensor is first given its reduced dims back (`restore`), then multiplied by
the derivative of each element.  Nothing here reads values or divides by data that may be zero, so
every formula can be traced, batched and differentiated again.  The entries are in `ops/reduce.py`.
"""

from __future__ import annotations

import math

import numpy as np

from ..array.dims import wrap_dim, wrap_dims
from ..table.packets import ops
from . import on_arrays


def restore(reduced, ndim, dim, keepdim):
    """A reduced tensor with its reduced dims as dims of size 1 again."""
    if keepdim or reduced.ndim == 0:  # what is 0-d broadcasts as it is
        return reduced
    if isinstance(dim, (list, tuple)) and len(dim) == 1:
        return reduced.unsqueeze(dim[0])
    for d in sorted(wrap_dims(dim, ndim)):
        reduced = reduced.unsqueeze(d)
    return reduced


def _spread_array(grad, shape, dim, keepdim):
    if not keepdim and len(shape) > grad.ndim:
        grad = np.expand_dims(grad, wrap_dims(dim, len(shape)))
    return np.broadcast_to(grad, shape)


@on_arrays(_spread_array)
def spread(grad, shape, dim, keepdim):
    """Pullback of a sum: every summand receives the gradient of its sum."""
    return restore(grad, len(shape), dim, keepdim).expand(shape)


def count_reduced(shape, dim):
    """Number of elements that a reduction of `dim` takes together."""
    return math.prod(shape[d] for d in wrap_dims(dim, len(shape)))


def mean_pullback(grad, shape, dim, keepdim):
    """Every element receives an equal part of the gradient of its mean."""
    return spread(grad, shape, dim, keepdim) / count_reduced(shape, dim)


# ---------------------------------------------------------------------------------------------
# Variance


def var_pullback(grad, self, dim, correction, keepdim):
    """d v = 2 / (N - correction) sum Re((x - mean)^* dx)."""
    grad = restore(grad, self.ndim, dim, keepdim)
    slope, offset = _spread_of(self, dim, correction)
    return slope * grad * offset


def var_push(self_p, self_t, dim, correction, keepdim):
    """d v = 2 / (N - correction) sum Re((x - mean)^* dx)."""
    slope, offset = _spread_of(self_p, dim, correction)
    term = offset.conj() * self_t
    return ((term.real if term.is_complex() else term) * slope).sum(dim, keepdim)


def _spread_of(self, dim, correction):
    """(2 / degrees of freedom, deviations from the mean); without freedom inf, NaN at the mean."""
    freedom = count_reduced(self.shape, dim) - (1 if correction is None else correction)
    full = dim is None or self.ndim == 0
    slope = 2 / freedom if freedom > 0 or (freedom < 0 and not full) else math.inf
    offset = self - (self.mean() if dim is None else self.mean(dim, True))
    return slope, offset.abs() if slope == math.inf and full else offset


def std_pullback(grad, self, result, dim, correction, keepdim):
    """d sqrt(v) = d v / (2 sqrt(v)), and 0 where all elements are equal."""
    slope = _where_spread(grad, result)
    return var_pullback(slope, self, dim, correction, keepdim)


def std_push(self_p, self_t, result, dim, correction, keepdim):
    """d sqrt(v) = d v / (2 sqrt(v)), and 0 where all elements are equal."""
    return _where_spread(var_push(self_p, self_t, dim, correction, keepdim), result)


def _where_spread(change, std):
    """change / (2 std), exactly 0 where `std` is 0, whatever the change, and so its derivatives."""
    return change.masked_fill(std == 0, 0) / (2 * _never_zero(std))


def _never_zero(x):
    """inf in place of 0: a quotient is then exactly 0 there, and so are its derivatives."""
    return x.masked_fill(x == 0, math.inf)


def var_mean_pullback(grad_var, grad_mean, self, dim, correction, keepdim):
    """Variance and mean together; either gradient may be missing."""
    parts = []
    if grad_var is not None:
        parts.append(var_pullback(grad_var, self, dim, correction, keepdim))
    if grad_mean is not None:
        parts.append(mean_pullback(grad_mean, self.shape, dim, keepdim))
    return _total(parts)


def std_mean_pullback(grad_std, grad_mean, self, std, dim, correction, keepdim):
    """Standard deviation and mean together; either gradient may be missing."""
    parts = []
    if grad_std is not None:
        parts.append(std_pullback(grad_std, self, std, dim, correction, keepdim))
    if grad_mean is not None:
        parts.append(mean_pullback(grad_mean, self.shape, dim, keepdim))
    return _total(parts)


def _total(parts):
    return None if not parts else parts[0] if len(parts) == 1 else parts[0] + parts[1]


# ---------------------------------------------------------------------------------------------
# Products


def _products_before(x, dim):
    """At each place the product of all elements before it (1 at the first)."""
    first = x.narrow(dim, 0, 1)
    return ops.cat([ops.ones_like(first), x.narrow(dim, 0, x.shape[dim] - 1)], dim).cumprod(dim)


def single(x):
    """Half precision as float32, for chains of products and differences; others as they are."""
    return x.float() if x.dtype.itemsize == 2 else x


def products_of_others(x, dim):
    """At each place the product of all other elements: (those before) * (those after)."""
    if x.shape[dim] < 2:
        return ops.ones_like(x)
    return _products_before(x, dim) * _products_before(x.flip([dim]), dim).flip([dim])


def _product_slopes(self, dim):
    """d prod(x) / d x_i: the product of the others along `dim`, or over everything if None."""
    self = single(self)
    if self.ndim == 0:
        return ops.ones_like(self)
    if dim is None:
        return products_of_others(self.reshape((self.numel(),)), 0).reshape(self.shape)
    return products_of_others(self, wrap_dim(dim, self.ndim))


def prod_pullback(grad, self, dim, keepdim):
    """d prod(x) = sum_i (product of the others) dx_i; no division, so zeros are no exception."""
    return restore(grad, self.ndim, dim, keepdim) * _product_slopes(self, dim).conj()


def prod_push(self_p, self_t, dim, keepdim):
    """d prod(x) = sum_i (product of the others) dx_i."""
    return (_product_slopes(self_p, dim) * self_t).sum(dim, keepdim)


def cumprod_pullback(grad, self, dim):
    """Pullback of y_k = x_0 ... x_k without division.

    The gradient of x_i is P_i S_i, where P_i is the product of all elements before i and
    S_i = g_i + x_{i+1} S_{i+1} collects the gradients of all later products.  The recurrence is
    solved by doubling: after step s, `total` covers 2^s terms and `factor` leads to the next ones.
    """
    if self.ndim == 0 or self.numel() == 0:
        return grad
    dim = wrap_dim(dim, self.ndim)
    size = self.shape[dim]
    if size == 1:
        return grad
    x = single(self).conj()
    total, factor = single(grad), _shifted(x, dim, 1)
    step = 1
    while step < size:
        total = total + factor * _shifted(total, dim, step)
        factor = factor * _shifted(factor, dim, step)
        step *= 2
    return _products_before(x, dim) * total


def _shifted(x, dim, count):
    """x_{i + count} at place i, and 0 where that is beyond the end."""
    kept = x.narrow(dim, count, x.shape[dim] - count)
    return ops.cat([kept, ops.zeros_like(x.narrow(dim, 0, count))], dim)


def cumprod_push(self_p, self_t, dim):
    """Pushforward of y_k = x_0 ... x_k without division: d y_k = x_k d y_{k-1} + y_{k-1} d x_k.

    The recurrence is solved by doubling, as in `cumprod_pullback`, in the other direction.
    """
    if self_p.ndim == 0 or self_p.numel() == 0:
        return self_t
    dim = wrap_dim(dim, self_p.ndim)
    self_p = single(self_p)
    total = _products_before(self_p, dim) * self_t
    factor = self_p
    step = 1
    while step < self_p.shape[dim]:
        total = total + factor * _delayed(total, dim, step)
        factor = factor * _delayed(factor, dim, step)
        step *= 2
    return total


def _delayed(x, dim, count):
    """x_{i - count} at place i, and 0 where that is before the start."""
    kept = x.narrow(dim, 0, x.shape[dim] - count)
    return ops.cat([ops.zeros_like(x.narrow(dim, 0, count)), kept], dim)


def cumsum_pullback(grad, dim):
    """Every element receives the gradients of all running sums from its own on."""
    if grad.ndim == 0 or grad.shape[dim] < 2:
        return grad
    return grad.flip([dim]).cumsum(dim).flip([dim])


# ---------------------------------------------------------------------------------------------
# Extremes


def _shares(self, result, dim, keepdim):
    """For each element its share of the extreme value: 1 / (number of elements that attain it).

    Nothing along dims attains a NaN: 0 / 0, so that the gradients are NaN, as PyTorch's are.
    """
    mask = self == restore(result, self.ndim, dim, keepdim)
    return mask.to(self.dtype) / mask.sum(dim, True)


def _attained(self, result):
    """Which elements attain the extreme of all; a NaN is that of all NaN."""
    return (self == result).logical_or(self.isnan().logical_and(result.isnan()))


def evenly_pullback(grad, self, result):
    """All elements that attain the extreme of all share its gradient evenly; others get 0."""
    hit = _attained(self, result)
    return ops.where(hit, grad / hit.sum(), 0)


def evenly_push(self_p, self_t, result):
    """The mean of the tangents of all elements that attain the extreme of all."""
    hit = _attained(self_p, result)
    return ops.where(hit, self_t, 0).sum() / hit.sum()


def extreme_pullback(grad, self, result, dim, keepdim):
    """All elements that attain the extreme share its gradient evenly."""
    return restore(grad, self.ndim, dim, keepdim) * _shares(self, result, dim, keepdim)


def extreme_push(self_p, self_t, result, dim, keepdim):
    """The mean of the tangents of all elements that attain the extreme."""
    return (_shares(self_p, result, dim, keepdim) * self_t).sum(dim, keepdim)


def aminmax_pullback(grad_min, grad_max, self, min, max, dim, keepdim):
    """Both extremes together; either gradient may be missing."""
    parts = []
    if grad_min is not None:
        parts.append(extreme_pullback(grad_min, self, min, dim, keepdim))
    if grad_max is not None:
        parts.append(extreme_pullback(grad_max, self, max, dim, keepdim))
    return _total(parts)


def selected_pullback(grad, shape, indices, dim, keepdim):
    """The gradient of chosen elements, put back to where they were chosen."""
    if not shape:
        return grad
    dim = wrap_dim(dim, len(shape))
    if not keepdim:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return grad.new_zeros(shape).scatter(dim, indices, grad)


def selected_push(self_t, indices, dim, keepdim):
    """The tangents at the chosen places."""
    if not self_t.ndim:
        return self_t
    dim = wrap_dim(dim, self_t.ndim)
    if keepdim:
        return self_t.gather(dim, indices)
    return self_t.gather(dim, indices.unsqueeze(dim)).squeeze(dim)


# ---------------------------------------------------------------------------------------------
# logsumexp and norms


def logsumexp_pullback(grad, self, result, dim, keepdim):
    """d log(sum exp x) = sum exp(x - result) dx."""
    grad = restore(grad, self.ndim, dim, keepdim)
    weight = (self - restore(result, self.ndim, dim, keepdim)).exp()
    return grad * weight.conj()


def logsumexp_push(self_p, self_t, result, dim, keepdim):
    """d log(sum exp x) = sum exp(x - result) dx."""
    weight = (self_p - restore(result, self_p.ndim, dim, keepdim)).exp()
    return (weight * self_t).sum(dim, keepdim)


def _norm_direction(self, p, norm, dim):
    """d |x|_p = sum Re(conj(direction) dx); `norm` has its reduced dims. None where it is zero.

    direction = sgn(x) (|x| / norm)^(p-1), without an infinite factor at 0, and 0 where the norm is.
    """
    if p == 0:
        return None
    if p == 1:
        return self.sgn()
    if p == 2:
        return self / _never_zero(norm)
    size = self.abs()
    if math.isinf(p):
        mask = (size == norm).logical_or(size.isnan())
        return self.sgn() * (mask.to(norm.dtype) / mask.sum(dim, True))
    whole = norm.masked_fill(norm == 0, 1)
    if 1 < p < 2:  # the next derivative is infinite at 0, and must not reach the other elements
        return self.sgn() * size.pow(p - 1) / whole.pow(p - 1)
    ratio = size / whole
    if p > 2:
        return self.sgn() * ratio.pow(p - 1)
    # |x|^(p-1) is infinite at 0; inf^(p-1) is the 0 that is wanted there
    nowhere = (size == 0).logical_or(norm == 0)
    return self.sgn() * ratio.masked_fill(nowhere, math.inf).pow(p - 1)


def norm_pullback(grad, self, p, result, dim, keepdim):
    """Pullback of the p-norm; nothing for p = 0, which only counts."""
    norm = restore(result, self.ndim, dim, keepdim)
    direction = _norm_direction(self, p, norm, dim)
    if direction is None:
        return None
    grad = restore(grad, self.ndim, dim, keepdim)
    if p > 1 and p != 2 and not math.isinf(p):
        grad = grad.masked_fill(norm == 0, 0)  # an infinite one, as of a root, is none there
    return direction * grad


def norm_push(self_p, self_t, p, result, dim, keepdim):
    """Pushforward of the p-norm."""
    norm = restore(result, self_p.ndim, dim, keepdim)
    direction = _norm_direction(self_p, p, norm, dim)
    if direction is None:
        return ops.zeros_like(result)
    term = direction.conj() * self_t
    return (term.real if term.is_complex() else term).sum(dim, keepdim)
