"""Systems with a sparse matrix: solutions, triangular ones, determinants, eigenvectors.

All are compositions of operators on the entries (`ops/sparse_solve.py`), so the gradient of a
matrix lies on its pattern, in any layout.  The matrices of a batch are the blocks of one.  Solvers
by iteration are in `linalg.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import errors
from ..array.dims import broadcast_shapes
from ..core.handle import Tensor
from ..formulas.linalg import is_vector
from ..ops.lapack import named
from ..ops.sparse_parts import needs_sparse
from ..parts.rules import rule, shown
from ..table.packets import ops
from .products import _count, _spread, as_blocks
from .tensor import SparseTensor


def spsolve(input: Any, other: Any, *, left: bool = True) -> Tensor:
    """The solution of `input @ x = other`, or of `x @ input = other` if not `left`.

    The matrix is sparse in any layout; `other` is a vector, or a matrix of several right sides.
    """
    needs_sparse(input, "sparse.spsolve")
    return solve(input, other, left)


@rule(SparseTensor, "linalg_solve")
def solve(a: Any, b: Any, left: bool = True):
    """The solution of a system."""
    if not isinstance(a, SparseTensor):
        return NotImplemented
    _check("linalg.solve", a, b)
    if not is_vector(a.shape, b.shape):
        return _solved("linalg.solve", a, b, left, ops._sparse_solve)
    if not left:
        raise errors.ShapeError(
            "linalg.solve: Incompatible shapes of A and B for the equation XA = B: a vector B "
            f"needs left=True ({errors.user_line(3)})")
    return _solved("linalg.solve", a, b.unsqueeze(-1), True, ops._sparse_solve).squeeze(-1)


@rule(SparseTensor, "linalg_solve_triangular")
def solve_triangular(a: Any, b: Any, upper: bool, left: bool = True, unitriangular: bool = False):
    """The solution of a system by the entries of one triangle."""
    if not isinstance(a, SparseTensor):
        return NotImplemented
    _check("linalg.solve_triangular", a, b)
    return _triangle("linalg.solve_triangular", a, b, upper, left, unitriangular)


@rule(SparseTensor, "triangular_solve")
def triangular_solve(b: Any, a: Any, upper: bool = True, transpose: bool = False,
                     unitriangular: bool = False):
    """The solution by one triangle of A, or of its transpose; as in PyTorch there is no copy of a
    sparse A beside it."""
    if not isinstance(a, SparseTensor):
        return NotImplemented
    _check("triangular_solve", a, b)
    if transpose:  # x^T A = b^T
        out = _triangle("triangular_solve", a, b.mT if b.ndim > 1 else b, upper, False,
                        unitriangular).mT
    else:
        out = _triangle("triangular_solve", a, b, upper, True, unitriangular)
    return named("triangular_solve", out, ops.empty((0,), dtype=b.dtype, device=b.device))


def _triangle(name: str, a: SparseTensor, b: Tensor, upper: bool, left: bool, unit: bool):
    def kernel(rows: Tensor, cols: Tensor, values: Tensor, right: Tensor) -> Tensor:
        return ops._sparse_triangular_solve(rows, cols, values, right, upper is left, unit)

    return _solved(name, a, b, left, kernel)


def _check(name: str, a: SparseTensor, b: Any) -> None:
    """Refuse what is no system."""
    _check_matrix(name, a)
    if isinstance(b, SparseTensor):
        raise errors.LayoutError(errors.text(
            f"{name}: the right side of a system is a dense tensor ({errors.user_line(4)})",
            shown(b), "b.to_dense()"))
    if a.dtype is not b.dtype:
        raise errors.DTypeError(
            f"{name}: Expected b and A to have the same dtype, but found b of type {b.dtype} and "
            f"A of type {a.dtype} instead ({errors.user_line(4)})")


def _check_matrix(name: str, a: SparseTensor) -> None:
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise errors.ShapeError(
            f"{name}: A must be batches of square matrices, but it has the shape {list(a.shape)} "
            f"({errors.user_line(5)})")
    if a.dense_dim():
        raise errors.LayoutError(errors.text(
            f"{name}: entries have to be numbers ({errors.user_line(5)})", shown(a),
            "convert it: x.to_dense(), or x.to_dense().to_sparse()"))


def _solved(name: str, a: SparseTensor, b: Tensor, left: bool, kernel: Callable) -> Tensor:
    """The solution by a kernel for the entries of one matrix and the columns of another."""
    n = a.shape[-1]
    if b.ndim < 2:
        raise errors.ShapeError(
            f"{name}: Expected b to have at least 2 dimensions, but it has {b.ndim} dimensions "
            f"instead ({errors.user_line(4)})")
    if b.shape[-2 if left else -1] != n:
        raise errors.ShapeError(
            f"{name}: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'} ({n}x{n} and {'x'.join(map(str, b.shape))}) "
            f"({errors.user_line(4)})")
    right = b if left else b.mT
    k = right.shape[-1]
    if a.ndim == 2:
        rows, cols, values = a.entries()
        columns = right.movedim(-2, 0)
        out = _kernel_of(kernel, left)(
            rows, cols, values, columns.reshape(n, _count(columns.shape[1:])))
        out = out.reshape(columns.shape).movedim(0, -2)
    else:
        lead = broadcast_shapes(a.shape[:-2], right.shape[:-2])
        right = right.expand(*lead, n, k)
        rows, cols, values = as_blocks(_spread(a, (*lead, n, n)))
        out = _kernel_of(kernel, left)(rows, cols, values, right.reshape(_count(lead) * n, k))
        out = out.reshape(right.shape)
    return out if left else out.mT


def _kernel_of(kernel: Callable, left: bool) -> Callable:
    if left:
        return kernel
    return lambda rows, cols, values, right: kernel(cols, rows, values, right)


# determinants -------------------------------------------------------------------------------------


def _slogdet(a: SparseTensor) -> tuple:
    _check_matrix("linalg.slogdet", a)
    if a.ndim > 2:
        raise errors.ShapeError(errors.text(
            f"linalg.slogdet: a batch of sparse matrices has no determinants here "
            f"({errors.user_line(4)})", shown(a), "take them one by one, or vmap over the values"))
    return ops._sparse_slogdet(*a.entries(), a.shape[0])


@rule(SparseTensor, "slogdet")
def slogdet(a: SparseTensor):
    """Sign (or phase) and logarithm of the absolute value of the determinant."""
    return named("slogdet", *_slogdet(a))


@rule(SparseTensor, "linalg_slogdet")
def linalg_slogdet(a: SparseTensor):
    """The same by its other name."""
    return named("linalg_slogdet", *_slogdet(a))


# eigenvectors -------------------------------------------------------------------------------------


def eigenpairs(a: Any, b: Any, k: int, largest: bool) -> tuple[Tensor, Tensor]:
    """The k largest or smallest eigenvalues of A x = l B x, and their vectors, for a sparse A."""
    _check_matrix("lobpcg", a)
    n = a.shape[0]
    if a.ndim > 2:
        raise errors.ShapeError(errors.text(
            f"lobpcg: a batch of sparse matrices has no eigenvalues here ({errors.user_line(3)})",
            shown(a), "take them one by one, or vmap over the values"))
    line = ops.arange(n, device=a.device)
    if b is None:
        other: tuple = line, line, ops.ones(n, dtype=a.dtype, device=a.device)
    elif isinstance(b, SparseTensor):
        _check_matrix("lobpcg", b)
        other = b.entries()
    else:
        other = (line.repeat_interleave(n), line.repeat(n), b.reshape(n * n))
    return tuple(ops._sparse_eigh(*a.entries(), *other, n, k, largest))
