"""Products of a sparse matrix and a dense one that are reduced by means and extremes."""

from __future__ import annotations

from .. import errors
from ..core.handle import Tensor
from ..table.packets import ops
from .elementwise import coalesced
from .products import check, spmm
from .tensor import SparseTensor


def mm_reduce(a: SparseTensor, b: Tensor, kind: str) -> Tensor:
    """Products of entries and rows of a dense matrix, reduced row by row of the sparse one.

    A row without entries gives zeros.  The gradient of an extreme goes to the first that has it.
    """
    a = coalesced(a)
    check(a, b)
    if kind == "sum":
        return spmm(a, b)
    rows, cols, values = a.entries()
    if kind == "mean":
        return spmm(a, b) / _counts(rows, a.shape[0]).unsqueeze(1).to(values.dtype)
    if kind not in ("amax", "amin"):
        raise errors.RefusedValue(
            f"sparse.mm: reduce argument must be either sum, mean, amax or amin, got {kind} "
            f"({errors.user_line(3)})")
    return _extreme(rows, cols, values, b, a.shape[0], kind)


def _counts(rows: Tensor, size: int) -> Tensor:
    """How many entries each row has, one where it has none."""
    return ops.zeros(size, dtype=rows.dtype, device=rows.device).index_add(
        0, rows, ops.ones_like(rows)).clamp(min=1)


def _winners(rows: Tensor, cols: Tensor, values: Tensor, b: Tensor, size: int,
             kind: str) -> tuple[Tensor, Tensor]:
    """(Which entry gives the largest or smallest product, is there one at all?)"""
    count, width = rows.shape[0], b.shape[1]
    products = values.detach().unsqueeze(1) * b.detach()[cols]
    zeros = ops.zeros((size, width), dtype=products.dtype, device=products.device)
    best = zeros.index_reduce(0, rows, products, kind, include_self=False)
    won = (products == best[rows]) | products.isnan()
    numbers = ops.where(won, ops.arange(count, device=rows.device).unsqueeze(1), count)
    none = ops.full((size, width), count, dtype=rows.dtype, device=rows.device)
    entry = none.index_reduce(0, rows, numbers, "amin")
    return entry.clamp(max=count - 1), entry < count


def _extreme(rows: Tensor, cols: Tensor, values: Tensor, b: Tensor, size: int, kind: str):
    """The largest or smallest products, by the entries that give them."""
    if not rows.shape[0]:
        return ops._spmm(rows, cols, values, b, size)
    entry, there = _winners(rows, cols, values, b, size, kind)
    each = ops.arange(b.shape[1], device=rows.device).expand(entry.shape)
    return ops.where(there, values[entry] * b[cols[entry], each], 0)


def mm_reduce_backward(a: SparseTensor, grad: Tensor, b: Tensor,
                       kind: str) -> tuple[SparseTensor, Tensor]:
    """The gradients of `mm_reduce` for the sparse matrix, at its entries, and for the dense one."""
    a = coalesced(a)
    rows, cols, values = a.entries()
    if kind == "mean":
        grad = grad / _counts(rows, a.shape[0]).unsqueeze(1).to(grad.dtype)
    if kind in ("sum", "mean") or not rows.shape[0]:
        return (a.with_entries(ops._sddmm(rows, cols, grad, b.conj())),
                ops._spmm(cols, rows, values.conj(), grad, b.shape[0]))
    entry, there = _winners(rows, cols, values, b, a.shape[0], kind)
    each = ops.arange(b.shape[1], device=rows.device).expand(entry.shape)
    grad, at = ops.where(there, grad, 0), cols[entry]
    of_values = ops.zeros_like(values).index_add(
        0, entry.reshape(-1), (grad * b[at, each]).reshape(-1))
    of_b = ops.zeros_like(b).index_put((at, each), grad * values[entry], accumulate=True)
    return a.with_entries(of_values), of_b
