"""`pullback.masked`: reductions and normalisations over the elements that a mask selects.

There is one mechanism: elements that the mask leaves out are replaced by the identity of the
reduction, the number that does not change its result (0 for a sum, -inf for a maximum), and the
plain operator does the rest.  Gradients of elements that are left out are therefore zero.

Every function takes `mask`, a tensor that broadcasts to the input: True keeps an element.  No mask
keeps all.  What remains of nothing is the identity, or NaN where there is none (mean, median, var).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from ..array import dtype as dt
from ..array.dims import wrap_dim, wrap_dims
from ..core.handle import Tensor
from ..facade import elsewhere
from ..table.packets import ops
from ..threads.state import fast

_MASKED = ("MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor")
__all__ = [
    *_MASKED,
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

Dims = int | Sequence[int] | None


# the mechanism


def _lowest(dtype: dt.DType):
    """The identity of a maximum."""
    if dtype.is_floating_point:
        return -math.inf
    if dtype.category == 1:
        return dt.iinfo(dtype).min
    raise NotImplementedError(f"masked: there is no lowest {dtype.name}")


def _highest(dtype: dt.DType):
    """The identity of a minimum."""
    if dtype.is_floating_point:
        return math.inf
    if dtype.category == 1:
        return dt.iinfo(dtype).max
    raise NotImplementedError(f"masked: there is no highest {dtype.name}")


def _fitted(input: Tensor, mask: Tensor) -> Tensor:
    """The mask as booleans of the input's shape."""
    if tuple(mask.shape) == tuple(input.shape):
        return mask.to(dt.bool_)
    if mask.ndim > input.ndim:
        raise IndexError(
            "masked: expected a broadcastable mask (got mask dimensionality higher than of the "
            f"input): mask {list(mask.shape)}, input {list(input.shape)}"
        )
    return mask.to(dt.bool_).broadcast_to(tuple(input.shape))


def _filled(input: Tensor, mask: Tensor | None, identity) -> Tensor:
    """The input with `identity` (a number, or a function of the dtype) where the mask is False."""
    if mask is None:
        return input
    value = identity(input.dtype) if callable(identity) else identity
    return ops.where(_fitted(input, mask), input, input.new_full((), value))


def _dims(dim: Dims, ndim: int) -> list[int]:
    """The reduced dims in order; all for None and for no dims."""
    if dim is None or not isinstance(dim, int) and len(dim) == 0:
        return list(range(ndim))
    return sorted(wrap_dims((dim,) if isinstance(dim, int) else dim, ndim))


def _sum_dtype(input: Tensor, dtype) -> dt.DType:
    """The dtype of sums and products: integers become int64."""
    if dtype is not None:
        return dt.as_dtype(dtype)
    return input.dtype if input.dtype.is_inexact else dt.int64


def _own_dtype(input: Tensor, dtype) -> dt.DType:
    return input.dtype if dtype is None else dt.as_dtype(dtype)


def _count(input: Tensor, dim: Dims, keepdim: bool, mask: Tensor | None) -> Tensor:
    """How many elements take part."""
    kept = ops.ones(tuple(input.shape), dtype=dt.bool_, device=input.device)
    kept = kept if mask is None else _fitted(input, mask)
    return kept.sum(_dims(dim, input.ndim), keepdim)


def _sparse_too(function):
    """The same of a sparse tensor (`sparse/masked.py`), whose specified elements take part."""

    @functools.wraps(function)
    def masked(input, *args, **kwargs):
        if fast["PARTS"] and getattr(input, "entry_values", None) is not None:
            from ..sparse import masked as sparse

            return getattr(sparse, f"masked_{function.__name__}")(input, *args, **kwargs)
        return function(input, *args, **kwargs)

    return masked


# reductions


@_sparse_too
def sum(input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype=None,
        mask: Tensor | None = None) -> Tensor:
    """Sum of the selected elements."""
    dims = _dims(dim, input.ndim)
    return _filled(input, mask, 0).sum(dims, bool(keepdim), dtype=_sum_dtype(input, dtype))


@_sparse_too
def prod(input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype=None,
         mask: Tensor | None = None) -> Tensor:
    """Product of the selected elements."""
    result = _filled(input, mask, 1).to(_sum_dtype(input, dtype))
    for d in reversed(_dims(dim, input.ndim)):
        result = result.prod(d, bool(keepdim))
    return result


@_sparse_too
def amax(input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype=None,
         mask: Tensor | None = None) -> Tensor:
    """Largest of the selected elements."""
    dims = _dims(dim, input.ndim)
    return _filled(input, mask, _lowest).amax(dims, bool(keepdim)).to(_own_dtype(input, dtype))


@_sparse_too
def amin(input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype=None,
         mask: Tensor | None = None) -> Tensor:
    """Smallest of the selected elements."""
    dims = _dims(dim, input.ndim)
    return _filled(input, mask, _highest).amin(dims, bool(keepdim)).to(_own_dtype(input, dtype))


def argmax(input: Tensor, dim: int | None = None, *, keepdim: bool | None = False, dtype=None,
           mask: Tensor | None = None) -> Tensor:
    """Place of the largest of the selected elements, in the dtype of the input."""
    return _filled(input, mask, _lowest).argmax(dim, bool(keepdim)).to(_own_dtype(input, dtype))


def argmin(input: Tensor, dim: int | None = None, *, keepdim: bool | None = False, dtype=None,
           mask: Tensor | None = None) -> Tensor:
    """Place of the smallest of the selected elements, in the dtype of the input."""
    return _filled(input, mask, _highest).argmin(dim, bool(keepdim)).to(_own_dtype(input, dtype))


def logsumexp(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype=None,
              mask: Tensor | None = None) -> Tensor:
    """Logarithm of the sum of exp of the selected elements."""
    identity = -math.inf if input.dtype.is_complex else _lowest
    dims = _dims(dim, input.ndim)
    return _filled(input, mask, identity).logsumexp(dims, keepdim).to(_own_dtype(input, dtype))


@_sparse_too
def norm(input: Tensor, ord: float | None = 2.0, dim: Dims = None, *, keepdim: bool | None = False,
         dtype=None, mask: Tensor | None = None) -> Tensor:
    """Norm of the vector of the selected elements."""
    ord = 2.0 if ord is None else ord
    filled = _filled(input, mask, math.inf if ord < 0 else 0)
    dims, dtype = _dims(dim, input.ndim), _own_dtype(input, dtype)
    return ops.linalg_vector_norm(filled, ord, dims, bool(keepdim), dtype=dtype)


@_sparse_too
def mean(input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype=None,
         mask: Tensor | None = None) -> Tensor:
    """Mean of the selected elements."""
    target = _own_dtype(input, dtype)
    if not target.is_inexact:
        raise ValueError(
            "mean(): Could not infer output dtype. "
            f"{'Input' if dtype is None else 'Optional'} dtype must be either a floating point or "
            f"complex dtype. Got: {target}"
        )
    total = sum(input, dim, keepdim=keepdim, dtype=target, mask=mask)
    return total / _count(input, dim, bool(keepdim), mask)


def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype=None,
           mask: Tensor | None = None) -> Tensor:
    """Median of the selected elements, the lower of two; NaN elements do not count."""
    exact = not input.dtype.is_floating_point
    values = input.to(dt.float32) if exact else input
    dim = wrap_dim(dim, input.ndim)
    found = ops.nanmedian(_filled(values, mask, math.nan), dim, keepdim)[0]
    if not exact:
        return found
    if bool(found.isnan().any()):
        raise ValueError(
            "masked median expects no fully masked out rows if dtype is not floating point"
        )
    return found.to(_own_dtype(input, dtype))


@_sparse_too
def var(input: Tensor, dim: Dims = None, unbiased: bool | None = None, *,
        correction: float | None = None, keepdim: bool | None = False, dtype=None,
        mask: Tensor | None = None) -> Tensor:
    """Variance of the selected elements; the divisor is their number less `correction` (1)."""
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 1.0 if unbiased is None else float(unbiased)
    target = _own_dtype(input, dtype)
    if dtype is None and not target.is_inexact:
        target = dt.float32
    compute = target if target.is_inexact else dt.float32
    # elements that are left out become 0 before the mean is subtracted: they may be infinite
    values = _filled(input, mask, 0)
    total = sum(values, dim, keepdim=True, dtype=target, mask=mask)
    distance = values - total / _count(input, dim, True, mask)
    total = sum(distance * distance.conj(), dim, keepdim=keepdim, dtype=compute, mask=mask)
    count = _count(input, dim, bool(keepdim), mask).to(compute.to_real())
    return (total / (count - correction).clamp(min=0)).to(target)


@_sparse_too
def std(input: Tensor, dim: Dims = None, unbiased: bool | None = None, *,
        correction: float | None = None, keepdim: bool | None = False, dtype=None,
        mask: Tensor | None = None) -> Tensor:
    """Standard deviation of the selected elements: the square root of `var`."""
    return var(
        input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask
    ).sqrt()


# results of the input's shape


def cumsum(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """Running sum of the selected elements."""
    dtype = _own_dtype(input, dtype)
    dim = wrap_dim(dim, input.ndim)
    return _filled(input, mask, 0).cumsum(dim, dtype=dtype).to(dtype)


def cumprod(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """Running product of the selected elements."""
    dtype = _own_dtype(input, dtype)
    dim = wrap_dim(dim, input.ndim)
    return _filled(input, mask, 1).cumprod(dim, dtype=dtype).to(dtype)


@_sparse_too
def softmax(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """Softmax over the selected elements; the others get 0."""
    dim = wrap_dim(dim, input.ndim)
    return ops.softmax(_filled(input, mask, _lowest), dim, dtype=_own_dtype(input, dtype))


@_sparse_too
def log_softmax(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """Logarithm of softmax over the selected elements; the others get -inf."""
    dim = wrap_dim(dim, input.ndim)
    return ops.log_softmax(_filled(input, mask, _lowest), dim, dtype=_own_dtype(input, dtype))


def softmin(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """Softmax of the negative of the selected elements; the others get 0."""
    dim = wrap_dim(dim, input.ndim)
    return ops.softmax(-_filled(input, mask, _highest), dim, dtype=_own_dtype(input, dtype))


def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype=None,
    mask: Tensor | None = None,
) -> Tensor:
    """The selected elements over their norm, or over `eps` if it is smaller; the others get 0."""
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled(input, mask, 0) / ops.maximum(size, size.new_full((), eps))


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype=None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """log(exp(input) + exp(other)) of the selected elements of each."""
    one = _filled(input, input_mask, _lowest)
    two = _filled(other, other_mask, _lowest)
    return ops.logaddexp(one, two).to(_own_dtype(input, dtype))


def __getattr__(name: str):
    """Masked tensors are loaded when a program asks for them."""
    if name in _MASKED or name == "maskedtensor":
        from importlib import import_module

        found = import_module(f"{__name__}.maskedtensor")
        return found if name == "maskedtensor" else globals().setdefault(name, getattr(found, name))
    return elsewhere(__name__, name)
