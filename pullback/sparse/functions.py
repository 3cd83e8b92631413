"""Products that are of sparse matrices alone: those of `torch.sparse`, and older names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import errors
from ..core.handle import Tensor
from ..parts.rules import shown
from ..table.legacy import warn_of
from ..table.packets import ops
from . import patterns
from .elementwise import as_coo
from .memo import kept
from .products import check, is_one, is_zero
from .tensor import Coo, SparseTensor
from .unspecified import only_entries
from .weighted import mm_reduce


def _matrix(t: Any, name: str) -> None:
    if not isinstance(t, Tensor) or t.ndim != 2:
        raise errors.ShapeError(
            f"{name}: expected a matrix, got {list(getattr(t, 'shape', ()))} "
            f"({errors.user_line(3)})")


def mm(mat1: Any, mat2: Any, reduce: str = "sum"):
    """The product of two matrices, one of them sparse; the gradient of that is on its entries.

    `reduce` says how the products of a row are put together: by their sum, mean, amax or amin.
    """
    _matrix(mat1, "sparse.mm")
    _matrix(mat2, "sparse.mm")
    if reduce == "sum":
        return ops.mm(only_entries(mat1), only_entries(mat2))
    if not isinstance(mat1, SparseTensor) or isinstance(mat2, SparseTensor):
        raise errors.LayoutError(errors.text(
            f"sparse.mm: {reduce} is of a sparse matrix with a dense one ({errors.user_line(2)})",
            [shown(v) for v in (mat1, mat2)]))
    return mm_reduce(mat1, mat2, reduce)


def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1):
    """`beta * mat + alpha * (mat1 @ mat2)`; the gradient of a sparse matrix is on its entries."""
    return ops.addmm(mat, only_entries(mat1), only_entries(mat2), beta=beta, alpha=alpha)


def smm(input: SparseTensor, mat: Tensor) -> Coo:
    """The product of a sparse matrix and a dense one, as a sparse one with all entries of rows
    that have some."""
    return sspaddmm(None, input, mat, beta=0)


def _rows(a: SparseTensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """(Which rows of a sparse matrix have entries, the product's rows there)."""
    check(a, b)
    rows, cols, values = a.entries()
    found = kept(rows, "which rows", lambda: patterns.distinct(rows.unsqueeze(0), (a.shape[0],)))
    out = ops._spmm(found.inverse, cols, values, b, found.indices.shape[1])
    return found.indices, out


def hspmm(mat1: SparseTensor, mat2: Tensor) -> Coo:
    """The product of a sparse matrix and a dense one, with a sparse and a dense dim."""
    indices, out = _rows(mat1, mat2)
    return Coo.make(indices, out, (mat1.shape[0], mat2.shape[1]), False)


def sspaddmm(input: Any, mat1: Any, mat2: Any, *old: Any, beta: Any = 1, alpha: Any = 1) -> Coo:
    """`beta * input + alpha * (mat1 @ mat2)` of a sparse matrix and a product, sparse."""
    if old:  # sspaddmm(beta, input, mat1, mat2), or with alpha before the product
        names = ("beta", "input", "alpha", "mat1", "mat2")
        given = dict(zip(names if len(old) == 2 else names[:2] + names[3:],
                         (input, mat1, mat2, *old)))
        if len(old) > 2 or isinstance(input, Tensor):
            raise errors.ArgumentError(errors.text(
                f"sspaddmm() takes 3 positional arguments, got {3 + len(old)} "
                f"({errors.user_line(2)})", cure="give beta and alpha by name"))
        warn_of("sspaddmm", list(given), ["input", "mat1", "mat2", "beta=beta", "alpha=alpha"])
        return sspaddmm(**given)
    if not isinstance(mat1, SparseTensor):
        raise errors.LayoutError(errors.text(
            f"sspaddmm: expected a sparse matrix to multiply by ({errors.user_line(2)})",
            shown(mat1) if isinstance(mat1, Tensor) else type(mat1).__name__,
            "x.to_sparse() first"))
    indices, out = _rows(as_coo(mat1), mat2)
    n = mat2.shape[1]
    rows = indices[0].repeat_interleave(n)
    cols = ops.arange(n, device=rows.device).repeat(indices.shape[1])
    values = out.reshape(-1) if is_one(alpha) else out.reshape(-1) * alpha
    places, shape = ops.stack([rows, cols]), (mat1.shape[0], n)
    if input is not None:
        c = as_coo(input)
        if tuple(c.shape) != shape:
            raise errors.ShapeError(
                f"sspaddmm: expected a matrix of size {list(shape)}, got {list(c.shape)} "
                f"({errors.user_line(2)})")
        own = c.values_part if is_one(beta) else c.values_part * (0 if is_zero(beta) else beta)
        places, values = ops.cat([c.indices_part, places], 1), ops.cat([own, values])
    return Coo.make(places, values, shape, False)


def saddmm(input: Any, mat1: SparseTensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1):
    """`sspaddmm` by another name."""
    return sspaddmm(input, mat1, mat2, beta=beta, alpha=alpha)


def spmm(input: Any, mat2: Any):
    """The product of two matrices, one of them sparse."""
    return ops.mm(input, mat2)


dsmm, hsmm = spmm, hspmm


def as_sparse_gradcheck(gradcheck: Callable) -> Callable:
    """`gradcheck` for functions that take or give sparse tensors.

    What is specified is changed, and nothing else, with `masked` or without it: gradients of
    sparse tensors are those of their entries.
    """

    @functools.wraps(gradcheck)
    def with_sparse_tensors(func, inputs, **kwargs):
        kwargs.pop("masked", None)
        return gradcheck(func, inputs, **kwargs)

    return with_sparse_tensors
