"""Products of sparse matrices with dense ones and with each other.

`spmm` is linear in the values and in the dense matrix, its derivative is `sddmm` at the entries:
the gradient of the values never is a dense matrix.  A product of two sparse matrices is one of
entries at the places where it has any, `_spspmm`, and so are its derivatives.  Batches are the
blocks of one matrix.  Read `ops/sparse_products.py` for the three; `weighted.py` is next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import errors
from ..array.dims import broadcast_shapes
from ..core.handle import Tensor, make
from ..ops.sparse_products import matrix_of
from ..parts.rules import rule, shown
from ..table.packets import ops
from . import patterns
from .elementwise import as_coo, coalesced, like
from .memo import kept
from .tensor import CLASSES, Compressed, Coo, SparseTensor
from .unspecified import product_of


def spmm(a: SparseTensor, b: Tensor) -> Tensor:
    """A sparse matrix times a dense one."""
    check(a, b)
    rows, cols, values = a.entries()
    return product_of(ops._spmm(rows, cols, values, b, a.shape[0]), a, b)


def check(a: Any, b: Any, name: str = "mm", ndim: int = 2) -> None:
    """Refuse what has no product."""
    if a.ndim != ndim or b.ndim != ndim:
        raise errors.ShapeError(
            f"{name}: expected two {'matrices' if ndim == 2 else 'batches of matrices'}, got "
            f"shapes {list(a.shape)} and {list(b.shape)} ({errors.user_line(4)})")
    if a.shape[-1] != b.shape[-2] or tuple(a.shape[:-2]) != tuple(b.shape[:-2]):
        raise errors.ShapeError(
            f"{name}: mat1 and mat2 shapes cannot be multiplied "
            f"({'x'.join(map(str, a.shape))} and {'x'.join(map(str, b.shape))}) "
            f"({errors.user_line(4)})")
    if a.dtype != b.dtype:
        raise errors.DTypeError(
            f"{name}: expected both matrices to have the same dtype, got {a.dtype} and {b.dtype} "
            f"({errors.user_line(4)})")
    for t in (a, b):
        if isinstance(t, SparseTensor) and t.dense_dim():
            raise errors.LayoutError(errors.text(
                f"{name}: entries have to be numbers ({errors.user_line(4)})", shown(t),
                "convert it: x.to_dense(), or x.to_dense().to_sparse()"))


@rule(SparseTensor, "mm")
def mm(a: Any, b: Any):
    if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        return sparse_sparse(a, b)
    if isinstance(a, SparseTensor):
        return spmm(a, b)
    check(a, b)
    rows, cols, values = b.entries()  # (B^T A^T)^T
    return product_of(ops._spmm(cols, rows, values, a.t(), b.shape[1]).t(), a, b)


@rule(SparseTensor, "mv")
def mv(a: Any, x: Any):
    if x.ndim != 1:
        raise errors.ShapeError(
            f"mv: expected a matrix and a vector, got shapes {list(a.shape)} and "
            f"{list(x.shape)} ({errors.user_line(3)})")
    x = x.to_dense() if isinstance(x, SparseTensor) else x
    if not isinstance(a, SparseTensor):
        return ops.mv(a, x)
    return mm(a, x.unsqueeze(1)).squeeze(1)


def is_one(n: Any) -> bool:
    """Is a factor the number one, so that nothing has to be multiplied?"""
    return type(n) in (int, float) and n == 1


def is_zero(n: Any) -> bool:
    """Is a factor the number zero, so that what it stands beside does not matter?"""
    return type(n) in (int, float) and n == 0


def _sum(c: Any, product: Any, beta: Any, alpha: Any):
    """`beta * c + alpha * product`, sparse if both are."""
    product = product if is_one(alpha) else product * alpha
    if is_zero(beta):
        shape = broadcast_shapes(c.shape, product.shape)
        return product if tuple(shape) == tuple(product.shape) else product.expand(shape)
    c = c if is_one(beta) else c * beta
    if isinstance(c, SparseTensor) is isinstance(product, SparseTensor):
        return c + product
    dense = [v.to_dense() if isinstance(v, SparseTensor) else v for v in (c, product)]
    return dense[0] + dense[1]


def _either(function: Callable, dense: Callable, a: Any, b: Any) -> Any:
    """A product of two, of which neither may be sparse beside a sparse tensor that is added."""
    return (function if isinstance(a, SparseTensor) or isinstance(b, SparseTensor) else dense)(a, b)


@rule(SparseTensor, "addmm")
def addmm(c: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1):
    return _sum(c, _either(mm, ops.mm, a, b), beta, alpha)


@rule(SparseTensor, "addmv")
def addmv(c: Any, a: Any, x: Any, beta: Any = 1, alpha: Any = 1):
    return _sum(c, _either(mv, ops.mv, a, x), beta, alpha)


@rule(SparseTensor, "baddbmm")
def baddbmm(c: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1):
    return _sum(c, _either(bmm, ops.bmm, a, b), beta, alpha)


@rule(SparseTensor, "addbmm")
def addbmm(c: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1):
    return _sum(c, _either(bmm, ops.bmm, a, b).sum(0), beta, alpha)


@rule(SparseTensor, "dot")
def dot(x: Any, y: Any):
    return (x * y).sum()


@rule(SparseTensor, "vdot")
def vdot(x: Any, y: Any):
    return ((x.conj() if x.is_complex() else x) * y).sum()


# batches


def as_blocks(t: SparseTensor) -> tuple[Tensor, Tensor, Tensor]:
    """(rows, columns, values) of the matrix whose blocks are the matrices of a batch."""
    if isinstance(t, Compressed):
        return t.entries()
    at = t.coordinates()
    if len(at) != t.ndim:
        raise errors.LayoutError(errors.text(
            f"bmm: the dims of a batch of matrices have to be sparse ({errors.user_line(4)})",
            shown(t), "convert it: x.to_dense().to_sparse()"))
    batch = patterns.keys(ops.stack(list(at[:-2])), tuple(t.shape[:-2]))
    return batch * t.shape[-2] + at[-2], batch * t.shape[-1] + at[-1], t.entry_values()


def _count(shape: Any) -> int:
    count = 1
    for n in shape:
        count = count * n
    return count


@rule(SparseTensor, "bmm")
def bmm(a: Any, b: Any):
    check(a, b, "bmm", 3)
    return batched(a, b)


def batched(a: Any, b: Any):
    """The products of two batches of one shape: of the matrices whose blocks they are."""
    lead, (m, k), n = tuple(a.shape[:-2]), a.shape[-2:], b.shape[-1]
    count = _count(lead)
    if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        x, y = as_blocks(a), as_blocks(b)
        places, values = _product(x, y, (count * m, count * k, count * n))
        block = places[0].div(max(m, 1), rounding_mode="floor")
        parts = [*patterns.unkeyed(block, lead).unbind(0), places[0] - block * m,
                 places[1] - block * n]
        return product_of(Coo.make(ops.stack(parts), values, (*lead, m, n), True), a, b)
    if isinstance(a, SparseTensor):
        rows, cols, values = as_blocks(a)
        out = ops._spmm(rows, cols, values, b.reshape(count * k, n), count * m)
        return product_of(out.reshape(*lead, m, n), a, b)
    rows, cols, values = as_blocks(b)
    flat = a.transpose(-1, -2).reshape(count * k, m)
    out = ops._spmm(cols, rows, values, flat, count * n).reshape(*lead, n, m).transpose(-1, -2)
    return product_of(out, a, b)


@rule(SparseTensor, "matmul")
def matmul(a: Any, b: Any):
    """Vectors, matrices and batches of them, which broadcast."""
    if not a.ndim or not b.ndim:
        raise errors.ShapeError(
            f"matmul: both arguments need at least one dim, got {list(a.shape)} and "
            f"{list(b.shape)} ({errors.user_line(3)})")
    if a.ndim == 1 and b.ndim == 1:
        return dot(a, b)
    if b.ndim == 1:
        b = b.to_dense() if isinstance(b, SparseTensor) else b
        return ops.matmul(a, b.unsqueeze(1)).squeeze(-1)
    if a.ndim == 1:
        a = a.to_dense() if isinstance(a, SparseTensor) else a
        return ops.matmul(a.unsqueeze(0), b).squeeze(-2)
    if a.ndim == 2 and b.ndim == 2:
        return mm(a, b)
    if not isinstance(a, SparseTensor) and b.ndim == 2:  # more rows
        return mm(a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[-1])
    if not isinstance(b, SparseTensor) and a.ndim == 2:  # more columns
        flat = b.movedim(-2, 0)
        out = mm(a, flat.reshape(b.shape[-2], -1))
        return out.reshape(a.shape[0], *flat.shape[1:]).movedim(0, -2)
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x, y = [_spread(t, (*lead, *t.shape[-2:])) for t in (a, b)]
    check(x, y, "matmul", len(lead) + 2)
    return batched(x, y)


def _spread(t: Any, shape: tuple) -> Any:
    if tuple(t.shape) == tuple(shape):
        return t
    if not isinstance(t, SparseTensor):
        return t.expand(shape)
    return ops.expand(as_coo(t), shape)


@rule(SparseTensor, "linear")
def linear(x: Any, weight: Any, bias: Any = None):
    """`x @ weight.T + bias`."""
    if weight.ndim == 1:
        out = ops.matmul(x, weight)
    elif isinstance(weight, SparseTensor) and not isinstance(x, SparseTensor):
        rows, cols, values = weight.entries()  # (W x^T)^T
        flat = x.reshape(-1, x.shape[-1])
        check(weight, flat.t(), "linear")
        out = ops._spmm(rows, cols, values, flat.t(), weight.shape[0]).t()
        out = product_of(out, flat, weight.t())
        out = out.reshape(*x.shape[:-1], weight.shape[0])
    else:
        out = ops.matmul(x, weight.t())
    if bias is None:
        return out
    return _sum(bias, out, 1, 1)


# sparse with sparse


def product_places(x: tuple, y: tuple, sizes: tuple) -> Tensor:
    """Where the product of two sparse matrices has entries, in the order of rows."""
    m, k, n = sizes
    arrays = [t._payload for t in (*x[:2], *y[:2])]
    if all(type(v) is np.ndarray for v in arrays):
        def find() -> Tensor:
            ones = [np.ones(v.shape, np.bool_) for v in (arrays[0], arrays[2])]
            found = matrix_of(*arrays[:2], ones[0], (m, k)) @ matrix_of(
                *arrays[2:], ones[1], (k, n))
            found.sort_indices()
            rows = np.repeat(np.arange(m, dtype=np.int64), np.diff(found.indptr))
            return ops.stack([_tensor(rows), _tensor(found.indices.astype(np.int64))])

        return kept(x[0], f"product {sizes}", find, x[1], *y[:2])
    return patterns.sized("a product of two sparse matrices",
                          lambda: _places_of_pairs(x, y, sizes), x[0], y[0])


def _places_of_pairs(x: tuple, y: tuple, sizes: tuple) -> Tensor:
    m, k, n = sizes
    rows, cols, inner, outer = (*x[:2], *y[:2])
    order = ops.argsort(inner, stable=True)
    inner, outer = inner[order], outer[order]
    starts = ops.searchsorted(inner.contiguous(), ops.arange(k + 1, device=inner.device))
    counts = (starts[1:] - starts[:-1])[cols]
    left = ops.arange(cols.shape[0], device=cols.device).repeat_interleave(counts)
    before = counts.cumsum(0) - counts
    number = ops.arange(left.shape[0], device=left.device)
    right = starts[:-1][cols][left] + number - before[left]
    return patterns.distinct(ops.stack([rows[left], outer[right]]), (m, n)).indices


def _tensor(array: np.ndarray) -> Tensor:
    return make(array)


def _product(x: tuple, y: tuple, sizes: tuple) -> tuple[Tensor, Tensor]:
    """(The places, the values) of the product of two matrices of entries."""
    places = product_places(x, y, sizes)
    rows, cols = patterns.unbound(places)
    return places, ops._spspmm(*x, *y, rows, cols, *sizes)


def sparse_sparse(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """The product of two sparse matrices."""
    check(a, b)
    shape = a.shape[0], b.shape[1]
    places, values = _product(a.entries(), b.entries(), (a.shape[0], a.shape[1], b.shape[1]))
    out: Any = Coo.make(places, values, shape, True)
    if isinstance(a, Compressed):
        out = like(a, out) if a.blocked and a.shape == out.shape else _csr(out)
    return product_of(out, a, b)


def _csr(out: Coo) -> SparseTensor:
    from .convert import compressed_of

    return compressed_of(out, next(c for c in CLASSES.values() if c.__name__ == "Csr"), None)


def sampled_addmm(input: SparseTensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1,
                  alpha: Any = 1, out: Any = None):
    """`beta * input + alpha * (mat1 @ mat2)` at the entries of a sparse matrix."""
    c, a, b = input, mat1, mat2
    if not isinstance(c, SparseTensor) or isinstance(a, SparseTensor) or isinstance(
            b, SparseTensor):
        raise errors.LayoutError(errors.text(
            "sampled_addmm: expected a sparse matrix and two dense ones "
            f"({errors.user_line(2)})", [shown(v) for v in (c, a, b)]))
    if tuple(a.shape[:-2]) != tuple(c.shape[:-2]) or tuple(b.shape[:-2]) != tuple(c.shape[:-2]):
        raise errors.ShapeError(
            "sampled_addmm: Expected self, mat1 and mat2 to have the same batch size, but got "
            f"{list(c.shape[:-2])}, {list(a.shape[:-2])} and {list(b.shape[:-2])} "
            f"({errors.user_line(2)})")
    if (*a.shape[-2:-1], *b.shape[-1:]) != tuple(c.shape[-2:]) or a.shape[-1] != b.shape[-2]:
        raise errors.ShapeError(
            f"sampled_addmm: a product of {list(a.shape)} and {list(b.shape)} has not the shape "
            f"{list(c.shape)} ({errors.user_line(2)})")
    c = coalesced(c)
    rows, cols, values = as_blocks(c) if c.ndim > 2 else c.entries()
    x, y = a.reshape(-1, a.shape[-1]), b.mT.reshape(-1, b.shape[-2])  # of a batch: blocks
    found = ops._sddmm(rows, cols, x, y)
    found = found if is_one(alpha) else found * alpha
    new = c.with_entries(found if is_zero(beta) else values * beta + found)
    if out is None:
        return new
    out.write_all(new, "sampled_addmm")
    return out

