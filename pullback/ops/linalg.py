"""Factorizations and solvers: the table entries of Cholesky and triangular systems.

Kernels call LAPACK and BLAS through NumPy and SciPy, one matrix of a stack at a time where those do
not take stacks.  Formulas are in `formulas/linalg.py`; `pullback.linalg` offers the public names.
"""

from __future__ import annotations

import math

from ..core import dtype as dt
from ..core.dims import broadcast_shapes
from ..core.op import Composite, Op
from ..core.table import ops
from ..core.xp import linalg
from ..errors import DTypeError, PullbackError, ShapeError


class LinAlgError(PullbackError, RuntimeError):
    """A factorization does not exist, e.g. a matrix is singular or not positive-definite.

    Cure: check the matrix; adding a small multiple of the identity often helps.
    """


def _check_square(name, matrix):
    if matrix.ndim < 2:
        raise ShapeError(f"{name}: The input tensor A must have at least 2 dimensions, got shape "
                         f"{list(matrix.shape)}")
    if matrix.shape[-1] != matrix.shape[-2]:
        raise ShapeError(f"{name}: A must be batches of square matrices, but they are "
                         f"{matrix.shape[-2]} by {matrix.shape[-1]} matrices")


def _check_float(name, *matrices):
    for matrix in matrices:
        if matrix.dtype.name not in ("float32", "float64", "complex64", "complex128"):
            raise DTypeError(f"{name}: Expected a floating point or complex tensor as input. Got "
                             f"{matrix.dtype.name}")
        if matrix.dtype != matrices[0].dtype:
            raise DTypeError(f"{name}: Expected tensors of one dtype, got "
                             f"{matrices[0].dtype.name} and {matrix.dtype.name}")


def _front(tensor, batched, rank):
    """A batched operand with dims behind the batch dim up to `rank` logical dims."""
    if not batched or tensor.ndim > rank:
        return tensor
    return tensor.reshape(tensor.shape[:1] + (1,) * (rank + 1 - tensor.ndim) + tensor.shape[1:])


def _fronts(batched, *tensors):
    rank = max(t.ndim - b for t, b in zip(tensors, batched, strict=True))
    return [_front(t, b, rank) for t, b in zip(tensors, batched, strict=True)]


def spread(xp, a, b):
    """Two stacks of matrices with their leading dims broadcast."""
    lead = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return (xp.broadcast_to(a, lead + a.shape[-2:]), xp.broadcast_to(b, lead + b.shape[-2:]), lead)


# Derivatives are given for matrices of a structure: gradients of a Hermitian matrix, of a factor that
# is triangular.  Checks that perturb an input project the direction with `structure` first.


def hermitian(array, args):
    """The Hermitian part of a direction."""
    return (array + array.swapaxes(-2, -1).conj()) / 2


def triangular(array, args):
    """The triangle of a direction that the operator reads; its last argument is `upper`."""
    rows, columns = array.shape[-2:]
    mask = [[(j >= i) if args[-1] else (j <= i) for j in range(columns)] for i in range(rows)]
    return array * mask


# ---------------------------------------------------------------------------------------------
# Cholesky


def _leading_failure(xp, matrix) -> int:
    """Order of the first leading minor of a matrix that is not positive-definite."""
    for order in range(1, matrix.shape[0] + 1):
        try:
            xp.linalg.cholesky(matrix[:order, :order])
        except xp.linalg.LinAlgError:
            return order
    return 0


def _cholesky_lower(xp, matrix):
    """Lower factors and the failing minors; a failed factor is NaN."""
    lead = matrix.shape[:-2]
    info = xp.zeros(lead, dtype=xp.int32)
    try:
        return xp.linalg.cholesky(matrix), info
    except xp.linalg.LinAlgError:
        out = xp.full_like(matrix, math.nan)
        for index in _positions(lead):
            info[index] = _leading_failure(xp, matrix[index])
            if info[index] == 0:
                out[index] = xp.linalg.cholesky(matrix[index])
        return out, info


def _positions(lead):
    """All index tuples of a shape."""
    if not lead:
        return [()]
    return [(i, *rest) for i in range(lead[0]) for rest in _positions(lead[1:])]


class linalg_cholesky_ex(Op):
    """Triangular factor of a positive-definite matrix, and where the factorization failed."""

    schema = ("linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False)"
              " -> (Tensor L, Tensor info)")
    promote = "keep"
    grad = {"self": "cholesky_grad(grad, L, upper)"}
    push = {"L": "cholesky_push(self_t, L, upper)"}
    diff_outputs = (True, False)
    structure = {"self": hermitian}
    method = False
    function = False
    namespace = "linalg"
    cost = "heavy"
    complex = True

    def run(xp, self, upper, check_errors):
        _check_square("linalg.cholesky", self)
        _check_float("linalg.cholesky", self)
        matrix = xp.conj(xp.swapaxes(self, -2, -1)) if upper else self
        factor, info = _cholesky_lower(xp, matrix)
        if check_errors and info.any():
            first = next(i for i in _positions(info.shape) if info[i])
            where = f"(Batch element {first[0]}): " if first else ""
            raise LinAlgError(f"linalg.cholesky: {where}The factorization could not be completed "
                              "because the input is not positive-definite (the leading minor of "
                              f"order {int(info[first])} is not positive-definite).")
        return (xp.conj(xp.swapaxes(factor, -2, -1)) if upper else factor), info

    def shape(self, upper, check_errors):
        _check_square("linalg.cholesky", self)
        return [tuple(self.shape), tuple(self.shape[:-2])]

    def dtype(self, upper, check_errors):
        return [self.dtype, dt.int32]

    def batch(n, batched, self, upper, check_errors):
        return ops.linalg_cholesky_ex(self, upper=upper, check_errors=check_errors)

    def samples(s):
        for shape in ((3, 3), (2, 3, 3)):
            a = s.real(*shape)
            yield s(_positive(a))
            yield s(_positive(a), upper=True)


def _positive(matrix):
    """A well-conditioned positive-definite matrix made of any square one."""
    size = matrix.shape[-1]
    product = matrix @ matrix.mH
    return product + 2 * size * (product * 0 + 1).tril().triu()


class linalg_cholesky(Composite):
    """Triangular factor of a positive-definite matrix."""

    schema = "linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor"
    structure = {"self": hermitian}
    method = False
    function = False
    namespace = "linalg"
    complex = True

    def compose(self, upper):
        return ops.linalg_cholesky_ex(self, upper=upper, check_errors=True)[0]

    def samples(s):
        yield s(_positive(s.real(3, 3)))


class cholesky(Composite):
    """Triangular factor of a positive-definite matrix (older name)."""

    schema = "cholesky(Tensor self, bool upper=False) -> Tensor"
    structure = {"self": hermitian}
    complex = True

    def compose(self, upper):
        return ops.linalg_cholesky_ex(self, upper=upper, check_errors=True)[0]

    def samples(s):
        yield s(_positive(s.real(3, 3)))
        yield s(_positive(s.real(3, 3)), True)


# ---------------------------------------------------------------------------------------------
# Triangular systems


def _solve_one(xp, factor, right, upper, left, unit, adjoint=False):
    """Solve one triangular system with BLAS, which does not mind a zero on the diagonal."""
    if xp.__name__ != "numpy":
        return _solve_dense(xp, factor, right, upper, left, unit, adjoint)
    trsm = linalg(xp).get_blas_funcs("trsm", (factor, right))
    # row-major matrices are handed over as their transposes: X A = B is A^T X^T = B^T
    if adjoint:
        factor = xp.conj(factor)
    out = trsm(1.0, factor.T, right.T, side=int(left), lower=int(upper), trans_a=int(adjoint),
               diag=int(unit))
    return out.T


def _solve_dense(xp, factor, right, upper, left, unit, adjoint):
    matrix = xp.triu(factor) if upper else xp.tril(factor)
    if unit:
        matrix = matrix - xp.diag(xp.diag(matrix)) + xp.eye(len(matrix), dtype=matrix.dtype)
    if adjoint:
        matrix = xp.conj(matrix.T)
    if left:
        return xp.linalg.solve(matrix, right)
    return xp.linalg.solve(matrix.T, right.T).T


def solve_stack(xp, factor, right, upper, left, unit, adjoint=False):
    """Triangular systems of broadcast stacks."""
    factor, right, lead = spread(xp, factor, right)
    if not lead:
        return xp.ascontiguousarray(_solve_one(xp, factor, right, upper, left, unit, adjoint))
    out = xp.empty(right.shape, dtype=right.dtype)
    for index in _positions(lead):
        out[index] = _solve_one(xp, factor[index], right[index], upper, left, unit, adjoint)
    return out


def _check_system(name, factor, right, left):
    _check_square(name, factor)
    if right.ndim < 2:
        raise ShapeError(f"{name}: The input tensor B must have at least 2 dimensions, got shape "
                         f"{list(right.shape)}")
    if factor.shape[-1] != right.shape[-2 if left else -1]:
        raise ShapeError(f"{name}: Incompatible shapes of A and B for the equation "
                         f"{'AX = B' if left else 'XA = B'} ({factor.shape[-2]}x{factor.shape[-1]} "
                         f"and {right.shape[-2]}x{right.shape[-1]})")
    return broadcast_shapes(factor.shape[:-2], right.shape[:-2]) + tuple(right.shape[-2:])


class linalg_solve_triangular(Op):
    """Solution of a triangular system."""

    schema = ("linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True,"
              " bool unitriangular=False) -> Tensor")
    promote = "keep"
    grad = {"self, B": ("solve_triangular_grads(grad, self, result, upper, left, unitriangular,"
                        " grad_input_mask)")}
    push = "solve_triangular_push(self_p, self_t, B_t, result, upper, left, unitriangular)"
    method = False
    function = False
    namespace = "linalg"
    cost = "heavy"
    complex = True

    def run(xp, self, B, upper, left, unitriangular):
        _check_system("linalg.solve_triangular", self, B, left)
        _check_float("linalg.solve_triangular", self, B)
        return solve_stack(xp, self, B, upper, left, unitriangular)

    def shape(self, B, upper, left, unitriangular):
        return _check_system("linalg.solve_triangular", self, B, left)

    def batch(n, batched, self, B, upper, left, unitriangular):
        a, b = _fronts(batched[:2], self, B)
        return ops.linalg_solve_triangular(a, b, upper=upper, left=left,
                                           unitriangular=unitriangular)

    def samples(s):
        for upper in (False, True):
            for left in (False, True):
                shape = (3, 2) if left else (2, 3)
                a = _positive(s.real(3, 3))
                yield s(a, s.real(*shape), upper=upper, left=left)
                yield s(a, s.real(*shape), upper=upper, left=left, unitriangular=True)
        yield s(_positive(s.real(2, 3, 3)), s.real(3, 2), upper=False)
        yield s(_positive(s.real(3, 3)), s.real(2, 3, 2), upper=True)


class cholesky_solve(Op):
    """Solution of a system whose matrix is given by its Cholesky factor."""

    schema = "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor"
    structure = {"input2": triangular}
    promote = "keep"
    grad = {"self, input2": "cholesky_solve_grads(grad, result, input2, upper, grad_input_mask)"}
    push = "cholesky_solve_push(self_t, input2_p, input2_t, result, upper)"
    cost = "heavy"
    complex = True

    def run(xp, self, input2, upper):
        _check_system("cholesky_solve", input2, self, True)
        _check_float("cholesky_solve", self, input2)
        half = solve_stack(xp, input2, self, upper, True, False, adjoint=upper)
        return solve_stack(xp, input2, half, upper, True, False, adjoint=not upper)

    def shape(self, input2, upper):
        return _check_system("cholesky_solve", input2, self, True)

    def batch(n, batched, self, input2, upper):
        b, factor = _fronts(batched[:2], self, input2)
        return ops.cholesky_solve(b, factor, upper)

    def samples(s):
        for upper in (False, True):
            for shape in ((3, 3), (2, 3, 3)):
                a = _positive(s.real(*shape))
                yield s(s.real(3, 2), a.triu() if upper else a.tril(), upper)


class cholesky_inverse(Composite):
    """Inverse of a matrix that is given by its Cholesky factor."""

    schema = "cholesky_inverse(Tensor self, bool upper=False) -> Tensor"
    structure = {"self": triangular}
    complex = True

    def compose(self, upper):
        _check_square("cholesky_inverse", self)
        eye = ops.eye(self.shape[-1], dtype=self.dtype, device=self.device)
        return ops.cholesky_solve(eye, self, upper)

    def samples(s):
        yield s(_positive(s.real(3, 3)).tril())
        yield s(_positive(s.real(3, 3)).triu(), True)
