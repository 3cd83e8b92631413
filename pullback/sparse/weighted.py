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
        ones = ops.ones_like(rows)
        counts = ops.zeros(a.shape[0], dtype=rows.dtype).index_add(0, rows, ones).clamp(min=1)
        return spmm(a, b) / counts.unsqueeze(1).to(values.dtype)
    if kind not in ("amax", "amin"):
        raise errors.RefusedValue(
            f"sparse.mm: reduce argument must be either sum, mean, amax or amin, got {kind} "
            f"({errors.user_line(3)})")
    return _extreme(rows, cols, values, b, a.shape[0], kind)


def _extreme(rows: Tensor, cols: Tensor, values: Tensor, b: Tensor, size: int, kind: str):
    """The largest or smallest products, by the entries that give them."""
    count, width = rows.shape[0], b.shape[1]
    if not count:
        return ops._spmm(rows, cols, values, b, size)
    products = values.detach().unsqueeze(1) * b.detach()[cols]
    zeros = ops.zeros((size, width), dtype=products.dtype, device=products.device)
    best = zeros.index_reduce(0, rows, products, kind, include_self=False)
    won = (products == best[rows]) | products.isnan()
    numbers = ops.where(won, ops.arange(count, device=rows.device).unsqueeze(1), count)
    none = ops.full((size, width), count, dtype=rows.dtype, device=rows.device)
    entry = none.index_reduce(0, rows, numbers, "amin")
    there = entry < count
    entry = entry.clamp(max=count - 1)
    each = ops.arange(width, device=rows.device).expand(size, width)
    return ops.where(there, values[entry] * b[cols[entry], each], 0)
