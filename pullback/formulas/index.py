"""Derivatives of selection and scattering by index tensors.

Everything here is made of operators, so it can be recorded, batched and traced again.
Read `ops/index.py` for the entries that use it.
"""

from __future__ import annotations

from ..array import dtype as dt
from ..array.dims import broadcast_shapes, wrap_dim
from ..table.packets import ops


def index_put_values_backward(grad, indices, values_shape):
    """Gradient of the values that `index_put` wrote."""
    if indices and indices[0] is not None and indices[0].dtype.category == 0:
        if all(i is None for i in indices[1:]):
            return _masked_values_backward(grad, indices[0], values_shape)
    return ops.index(grad, indices)


def _masked_values_backward(grad, mask, values_shape):
    """The same for a mask over the first dims: how many places it selects need not be known."""
    first = mask.ndim
    while mask.ndim < grad.ndim:
        mask = mask.unsqueeze(-1)
    if len(values_shape) == grad.ndim - first + 1 and values_shape[0] != 1:
        sizes = (values_shape[0], *grad.shape[first:])
        return ops.masked_scatter_backward(grad, mask, sizes)
    # one value for all places: sum over them
    total = ops.where(mask, grad, 0).sum(list(range(first)), True)
    return total.reshape((1, *grad.shape[first:]))


def index_source_backward(grad, dim, index, source_ndim, source_shape):
    """Gradient of the source of `index_add` and `index_copy`; a 0-d source takes one index."""
    if source_ndim == 0:
        return grad.index_select(dim, index.reshape((1,))).reshape(())
    return grad.index_select(dim, index).expand(source_shape)


def index_fill_value_backward(grad, dim, index):
    """Sum of the gradient over the filled places, each counted once."""
    if grad.ndim == 0:
        return grad
    dim = wrap_dim(dim, grad.ndim)
    filled = index.new_zeros((grad.shape[dim],), dtype=dt.bool_).index_fill(0, index, True)
    sizes = [1] * grad.ndim
    sizes[dim] = grad.shape[dim]
    return ops.where(filled.view(sizes), grad, 0).sum()


def scatter_zero(grad, dim, index):
    """The gradient with the overwritten places set to zero."""
    return ops.scatter(grad, dim, index, 0)


def selected_backward(grad, dim, indices, shape, keepdim=True):
    """Gradient of values that were chosen by their indices along a dim (sort, topk, ...)."""
    if not keepdim and shape:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return ops.scatter(grad.new_zeros(shape), dim, indices, grad)


def selected_tangent(tangent, dim, indices, keepdim):
    """Tangent of values that were chosen by their indices along a dim."""
    if keepdim or tangent.ndim == 0:
        return tangent.gather(dim, indices)
    return tangent.gather(dim, indices.unsqueeze(dim)).squeeze(dim)


def masked_select_backward(grad, shape, mask):
    """The selected gradients back at their places."""
    return grad.new_zeros(broadcast_shapes(shape, mask.shape)).masked_scatter(mask, grad)


def embedding_gather(grad, indices, padding_idx, scale_grad_by_freq):
    """Adjoint of `embedding_dense_backward`: rows of `grad`, masked and scaled alike."""
    rows = grad.index_select(0, indices.reshape((-1,)))
    rows = rows.reshape((*indices.shape, -1 if rows.numel() else grad.shape[1]))
    if scale_grad_by_freq:
        rows = rows / occurrences(indices, grad.shape[0]).unsqueeze(-1).to(grad.dtype)
    if padding_idx >= 0:
        rows = rows.masked_fill((indices == padding_idx).unsqueeze(-1), 0)
    return rows


def occurrences(indices, count):
    """How often each index occurs, at the place of each."""
    flat = indices.reshape((-1,))
    ones = ops.ones_like(flat)
    return (
        flat.new_zeros((count,))
        .scatter_add(0, flat, ones)
        .index_select(0, flat)
        .reshape(indices.shape)
    )


def scatter_reduce_backward(grad, self, dim, index, src, reduce, include_self, result, mask):
    """Gradients of self and src of `scatter_reduce` and its kin."""
    grad_self = grad_src = None
    if reduce == "sum":
        grad_self = grad
        grad_src = grad.gather(dim, index)
    elif reduce == "prod":
        grad_self, grad_src = _prod_backward(grad, self, dim, index, src, include_self, result)
    elif reduce == "mean":
        count = ops.ones_like(grad) if include_self else ops.zeros_like(grad)
        count = count.scatter_add(dim, index, ops.ones_like(src))
        count = count.masked_fill(count == 0, 1)
        grad_self = grad / count
        grad_src = (grad / count).gather(dim, index)
    elif reduce in ("amax", "amin"):
        value = result.gather(dim, index)
        hit = (src == value).to(grad.dtype)
        own = (self == result).to(grad.dtype)
        winners = own if include_self else ops.zeros_like(own)
        winners = winners.scatter_add(dim, index, hit)
        share = grad / winners.masked_fill(winners == 0, 1)
        grad_self = own * share
        grad_src = hit * share.gather(dim, index)
    else:
        raise RuntimeError(
            "Expected 'reduce' to be one of 'sum', 'prod', 'mean', 'amax', 'amin' "
            f"but got {reduce}."
        )
    if not include_self:
        grad_self = ops.scatter(grad_self, dim, index, 0)
    return grad_self if mask[0] else None, grad_src if mask[1] else None


def _prod_backward(grad, self, dim, index, src, include_self, result):
    """The product of the other factors, without dividing by zero.

    Per cell: `rest` is the product of the nonzero factors, `count` the number of zeros and `zeros`
    their sum. The sum is zero, but second derivatives flow through it to the zero factors.
    """
    start = _ones_for_zeros(self) if include_self else ops.ones_like(self)
    rest = ops.scatter_reduce(
        start, dim, index, _ones_for_zeros(src), "prod", include_self=include_self
    )
    none = ops.zeros_like(self)
    zeros = (_only_zeros(self) if include_self else none).scatter_add(dim, index, _only_zeros(src))
    count = ((self == 0).to(grad.dtype) if include_self else ops.zeros_like(grad)).scatter_add(
        dim, index, (src == 0).to(grad.dtype)
    )
    # without its own value in the product, self matters only where nothing was scattered to
    grad_self = grad * _others(self, rest, zeros, count).conj() if include_self else grad
    there = [t.gather(dim, index) for t in (rest, zeros, count)]
    return grad_self, grad.gather(dim, index) * _others(src, *there).conj()


def _ones_for_zeros(factor):
    return factor.masked_fill(factor == 0, 1)


def _only_zeros(factor):
    return factor.masked_fill(factor != 0, 0)


def _others(factor, rest, zeros, count):
    """Product of the factors of a cell other than this one."""
    is_zero = factor == 0
    if_zero = ops.where(count == 1, rest, ops.where(count == 2, (zeros - factor) * rest, 0))
    quotient = rest / _ones_for_zeros(factor)
    if_not = ops.where(count == 0, quotient, ops.where(count == 1, zeros * quotient, 0))
    return ops.where(is_zero, if_zero, if_not)


def scatter_src_backward(grad, dim, index, shape):
    """Gradient of the source of `scatter`; parts of it that were not read get zeros."""
    picked = grad.gather(dim, index)
    if tuple(picked.shape) == tuple(shape):
        return picked
    if not shape or not index.shape:
        return picked.reshape(shape)
    if 0 in index.shape:
        return grad.new_zeros(shape)
    pad = []
    for size, used in zip(reversed(shape), reversed(index.shape), strict=True):
        pad += [0, size - used]
    return ops.constant_pad_nd(picked, pad)
