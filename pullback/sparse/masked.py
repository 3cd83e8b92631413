"""Values of one tensor at the entries of another, and the functions of `masked` on sparse tensors.

What is specified is what a mask would select; a mask selects among that.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..core.handle import Tensor
from ..parts.rules import rule
from ..table.packets import ops
from . import reductions
from .elementwise import as_coo, coalesced, gathered, like, sparse_values
from .softmax import softmax_of
from .tensor import Coo, SparseTensor


@rule(SparseTensor, "sparse_mask")
def sparse_mask(t: Any, mask: SparseTensor) -> SparseTensor:
    """The elements of a tensor where another has entries; zero where it has none itself."""
    if tuple(t.shape) != tuple(mask.shape):
        raise errors.ShapeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(t.shape)} but "
            f"mask has size {list(mask.shape)} ({errors.user_line(2)})")
    if isinstance(t, SparseTensor):
        return mask.with_entries(sparse_values(as_coo(t), mask))
    return mask.with_entries(gathered(t, mask))


def projected(t: SparseTensor, mask: SparseTensor, accumulate: bool = False) -> SparseTensor:
    """The entries of a tensor where a mask has one, zeros for the others; `accumulate` counts how
    many it has there."""
    if tuple(t.shape) != tuple(mask.shape):
        raise errors.ShapeError(
            f"_sparse_mask_projection(): self has size {list(t.shape)} but mask has size "
            f"{list(mask.shape)} ({errors.user_line(2)})")
    coo = as_coo(mask)
    ones = Coo.make(coo.indices_part, ops.ones_like(coo.values_part.detach()), t.shape,
                    coo.coalesced)
    count = sparse_values(ones, t)
    return t.with_entries(t.entry_values() * (count if accumulate else (count != 0).to(t.dtype)))


def selected(t: SparseTensor, mask: Tensor | None) -> SparseTensor:
    """The entries that a mask keeps, which is dense or sparse itself."""
    t = coalesced(t)
    if mask is None:
        return t
    if isinstance(mask, SparseTensor):
        keep = sparse_values(as_coo(mask), t)
    else:
        keep = gathered(mask, t)
    values = t.entry_values()
    if keep.ndim > 1 or t.dense_dim():
        raise errors.LayoutError(errors.text(
            f"masked: entries that are no numbers cannot be selected ({errors.user_line(3)})",
            cure="select without mask, or convert the tensor: x.to_dense()"))
    keep = keep != 0
    coo = as_coo(t)
    out = Coo.make(coo.indices_part[:, keep], values[keep], t.shape, coo.coalesced).coalesce()
    return like(t, out) if t.ndim == 2 else out


def _cast(out: Tensor, dtype: Any) -> Tensor:
    return out if dtype is None else out.to(dtype)


def masked_sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Sum of the selected elements."""
    return reductions.total(selected(input, mask), dim, bool(keepdim), dtype, True)


def masked_prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Product of the selected elements."""
    return reductions.product(selected(input, mask), dim, bool(keepdim), dtype, True)


def masked_amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Largest of the selected elements."""
    out = reductions.extreme(selected(input, mask), dim, bool(keepdim), "amax", True)
    return _cast(out, dtype)


def masked_amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Smallest of the selected elements."""
    out = reductions.extreme(selected(input, mask), dim, bool(keepdim), "amin", True)
    return _cast(out, dtype)


def masked_mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Mean of the selected elements."""
    return reductions.mean(selected(input, mask), dim, bool(keepdim), dtype, True)


def masked_norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Norm of the vector of the selected elements."""
    return reductions.norm(selected(input, mask), ord, dim, bool(keepdim), dtype, True)


def masked_var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None,
               mask=None):
    """Variance of the selected elements."""
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    out, _, r = reductions.variance(_cast(selected(input, mask), dtype), dim, correction,
                                    bool(keepdim), True)
    return r.result(out, True)


def masked_std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None,
               mask=None):
    """Standard deviation of the selected elements."""
    return masked_var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype,
                      mask=mask).sqrt()


def masked_softmax(input, dim, *, dtype=None, mask=None):
    """Softmax over the selected elements."""
    return softmax_of(selected(input, mask), dim, dtype)


def masked_log_softmax(input, dim, *, dtype=None, mask=None):
    """Logarithm of softmax over the selected elements."""
    return softmax_of(selected(input, mask), dim, dtype, True)
