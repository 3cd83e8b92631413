"""Solvers: the table entries of systems, inverses, determinants, exponentials.

Formulas are in `formulas/linalg.py`, kernels that NumPy lacks in `lapack.py`.  Names that end in
`_ex` report failures in `info`, the others raise.  Read next: `least_squares.py`,
`linalg.py` for norms and the like.
"""

from __future__ import annotations

import math

import numpy as np

from ..array import dtype as dt
from ..array.dims import broadcast_shapes
from ..errors import DTypeError, ShapeError
from ..formulas.linalg import is_vector
from ..table.packets import ops
from .kinds import (
    ComplexComposite,
    FirstResult,
    InLinalg,
    Matrices,
    MatricesComposite,
    MatrixKernel,
    PreciseMatricesComposite,
    Synonym,
)
from .lapack import (
    Failed,
    SquareWithInfo,
    adjoint,
    check_float,
    check_square,
    check_system,
    expm,
    factor_fronts,
    factor_lu,
    failure,
    fronts,
    identity,
    is_numpy,
    named,
    permutation_sign,
    regular,
    singular_or_nan,
    solve_lu,
    spread,
)

SINGULAR = "The solver failed because the input matrix is singular."

# ---------------------------------------------------------------------------------------------
# Systems


def _solve_shapes(matrix, right, left):
    """Shapes of the solution, the factors, the pivots and info."""
    name = "linalg.solve"
    check_square(name, matrix)
    vector = is_vector(matrix.shape, right.shape)
    if vector:
        if not left:
            raise ShapeError(f"{name}: Incompatible shapes of A and B for the equation XA = B: a "
                             "vector B needs left=True")
        if right.shape[-1] != matrix.shape[-1]:
            raise ShapeError(f"{name}: Incompatible shapes of A and B for the equation AX = B "
                             f"({matrix.shape[-2]}x{matrix.shape[-1]} and {right.shape[-1]})")
        solution = broadcast_shapes(matrix.shape[:-1], right.shape)
    else:
        solution = check_system(name, matrix, right, left)
    return [solution, tuple(matrix.shape), tuple(matrix.shape[:-1]), tuple(matrix.shape[:-2])]


class _ByLU(MatrixKernel):
    """Computed from a factorisation into triangular matrices, which is a result, too."""

    tracked_by = {"LU": "linalg_lu_factor_ex"}
    method = False


class _linalg_solve_ex(_ByLU):
    """Solution of A X = B (X A = B if not left), the LU factors of A, and info."""

    schema = ("_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False)"
              " -> (Tensor result, Tensor LU, Tensor pivots, Tensor info)")
    grad = {"A, B": "solve_grads(grad, A, B.shape, result, LU, pivots, left, grad_input_mask)"}
    push = {"result": "solve_push(A_p, A_t, B_t, result, LU, pivots, left)"}
    diff_outputs = (True, False, False, False)

    def run(xp, A, B, left, check_errors):
        shapes = _solve_shapes(A, B, left)
        check_float("linalg.solve", A, B)
        vector = is_vector(A.shape, B.shape)
        factors, pivots, info = factor_lu(xp, A)
        if check_errors:
            failure("torch.linalg.solve", info, SINGULAR)
        right = B[..., None] if vector else B
        many = is_many(A.shape) and not info.any()
        if many and left:
            result = xp.linalg.solve(*spread(xp, A, right)[:2])
        else:
            result = solve_lu(xp, factors, pivots, right, left)
        return result.reshape(shapes[0]), factors, pivots, info

    def shape(A, B, left, check_errors):
        return _solve_shapes(A, B, left)

    def dtype(A, B, left, check_errors):
        return [A.dtype, A.dtype, dt.int32, dt.int32]

    def batch(n, batched, A, B, left, check_errors):
        vector = is_vector(A.shape[batched[0]:], B.shape[batched[1]:])
        B = B.unsqueeze(-1) if vector else B
        both = [t if b else t.unsqueeze(0) for t, b in zip((A, B), batched, strict=False)]
        a, b = fronts((True, True), *both)
        result, factors, pivots, info = ops._linalg_solve_ex(
            a, b, left=left, check_errors=check_errors)
        result = result.squeeze(-1) if vector else result
        rank = A.ndim - batched[0]
        trimmed = [t.reshape((a.shape[0], *t.shape[t.ndim - rank + drop:])).expand(
            (n, *t.shape[t.ndim - rank + drop:]))
            for t, drop in ((factors, 0), (pivots, 1), (info, 2))]
        return named("_linalg_solve_ex", result, *trimmed)

    def samples(s):
        for matrix, right in (((3, 3), (3, 2)), ((3, 3), (3,)), ((2, 3, 3), (2, 3)),
                              ((2, 3, 3), (3, 1)), ((3, 3), (2, 3, 2)), ((2, 3, 3), (3,)),
                              ((0, 3, 3), (0, 3, 2)), ((0, 0), (0, 2))):
            yield s(regular(s.real(*matrix)), s.real(*right))
        yield s(regular(s.real(3, 3)), s.real(2, 3), left=False)
        yield s(regular(s.real(2, 3, 3)), s.real(2, 2, 3), left=False, check_errors=True)


def is_many(shape) -> bool:
    """Are there so many small matrices that whole stacks are faster than one after another?"""
    return math.prod(shape[:-2]) > 4 * shape[-1]


class linalg_solve_ex(MatricesComposite):
    """Solution of A X = B (X A = B if not left), and info: not zero where A is singular."""

    schema = ("linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False)"
              " -> (Tensor result, Tensor info)")

    def compose(A, B, left, check_errors):
        result, _, _, info = ops._linalg_solve_ex(A, B, left=left, check_errors=check_errors)
        return named("linalg_solve_ex", result, info)

    samples = lambda s: [s(regular(s.real(3, 3)), s.real(3, 2))]


class linalg_solve(PreciseMatricesComposite):
    """Solution of A X = B (X A = B if not left)."""

    schema = "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor"
    out = ("exact",)

    def compose(A, B, left):
        return ops._linalg_solve_ex(A, B, left=left, check_errors=True)[0]

    def samples(s):
        yield s(regular(s.real(3, 3)), s.real(3, 2))
        yield s(regular(s.real(3, 3)), s.real(2, 3), left=False)


def _check_factors(factors, pivots, right, left):
    name = "linalg.lu_solve"
    shape = check_system(name, factors, right, left)
    if dt.name_of(pivots.dtype) != "int32":
        raise DTypeError(f"{name}: pivots should be a Tensor of scalar type torch.int32, got "
                         f"{pivots.dtype.name}")
    if tuple(pivots.shape) != tuple(factors.shape[:-1]):
        raise ShapeError(f"{name}: Number of pivots per batch should be same as the dimension of "
                         f"the matrix: shapes {list(pivots.shape)} and {list(factors.shape)}")
    return shape


class linalg_lu_solve(Matrices):
    """Solution of A X = B, A^H X = B, X A = B or X A^H = B, with A = P L U in packed form."""

    schema = ("linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True,"
              " bool adjoint=False) -> Tensor")
    grad = {"LU": "lu_solve_factor_grad(grad, LU, pivots, result, left, adjoint)",
            "B": "linalg_lu_solve(LU, pivots, grad, left=left, adjoint=not adjoint)"}
    push = "lu_solve_push(LU_p, LU_t, pivots, B_t, result, left, adjoint)"
    nondiff = ("pivots",)

    def run(xp, LU, pivots, B, left, adjoint):
        _check_factors(LU, pivots, B, left)
        check_float("linalg.lu_solve", LU, B)
        return solve_lu(xp, LU, pivots, B, left, adjoint)

    def shape(LU, pivots, B, left, adjoint):
        return _check_factors(LU, pivots, B, left)

    def batch(n, batched, LU, pivots, B, left, adjoint):
        factors, pivots, right = factor_fronts(n, batched, LU, pivots, B)
        return ops.linalg_lu_solve(factors, pivots, right, left=left, adjoint=adjoint)

    def samples(s):
        for left in (True, False):
            for turned in (False, True):
                factors, pivots = ops.linalg_lu_factor(s.real(3, 3))
                yield s(regular(factors), pivots, s.real(*((3, 2) if left else (2, 3))), left=left,
                        adjoint=turned)
        for matrix, right in (((2, 3, 3), (3, 2)), ((3, 3), (2, 3, 1)), ((0, 3, 3), (0, 3, 2))):
            factors, pivots = ops.linalg_lu_factor(s.real(*matrix))
            yield s(regular(factors), pivots, s.real(*right))


class lu_solve(ComplexComposite):
    """Solution of A X = B with A = P L U in packed form (older name)."""

    schema = "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor"
    autocast = "float32"

    def compose(self, LU_data, LU_pivots):
        return ops.linalg_lu_solve(LU_data, LU_pivots, self)

    def samples(s):
        factors, pivots = ops.linalg_lu_factor(s.real(3, 3))
        yield s(s.real(3, 2), regular(factors), pivots)


class triangular_solve(ComplexComposite):
    """Solution of a triangular system A X = B (or A^T X = B), and a copy of A (older name)."""

    schema = ("triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False,"
              " bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)")
    autocast = "float32"

    def compose(self, A, upper, transpose, unitriangular):
        shape = check_system("triangular_solve", A, self, True)
        matrix = A.mT if transpose else A
        solution = ops.linalg_solve_triangular(matrix, self, upper=upper != transpose,
                                               unitriangular=unitriangular)
        copy = A.expand((*shape[:-2], *A.shape[-2:])).clone()
        return named("triangular_solve", solution, copy)

    def samples(s):
        for upper in (True, False):
            for transpose in (True, False):
                yield s(s.real(3, 2), regular(s.real(3, 3)), upper, transpose)
        yield s(s.real(2, 3, 1), regular(s.real(3, 3)), unitriangular=True)


# ---------------------------------------------------------------------------------------------
# Inverses


class linalg_inv_ex(SquareWithInfo):
    """Inverse, and info: not zero where a matrix is singular."""

    schema = ("linalg_inv_ex(Tensor A, *, bool check_errors=False)"
              " -> (Tensor inverse, Tensor info)")
    grad = {"A": "-inverse.mH @ grad @ inverse.mH"}
    push = {"inverse": "-inverse @ A_t @ inverse"}

    def run(xp, A, check_errors):
        check_square("linalg.inv", A)
        check_float("linalg.inv", A)
        if is_numpy(xp):  # others do not say that a matrix is singular
            try:
                return xp.linalg.inv(A), xp.zeros(A.shape[:-2], dtype=xp.int32)
            except Failed:
                pass
        factors, pivots, info = factor_lu(xp, A)
        if check_errors:
            failure("linalg.inv", info, "The diagonal element {} is zero, the inversion could not "
                    "be completed because the input matrix is singular.")
        return solve_lu(xp, factors, pivots, xp.eye(A.shape[-1], dtype=A.dtype)), info

    def samples(s):
        for shape in ((3, 3), (2, 3, 3), (1, 1), (0, 3, 3), (0, 0)):
            yield s(regular(s.real(*shape)))
        yield s(regular(s.real(3, 3)).mT, check_errors=True)


class Inverse(ComplexComposite):
    """Inverse of a square matrix, which must have one."""

    autocast = "float32"
    out = ("exact",)

    def compose(matrix):
        return ops.linalg_inv_ex(matrix, check_errors=True)[0]

    samples = lambda s: [s(regular(s.real(3, 3)))]


class linalg_inv(InLinalg, Inverse):
    """Inverse of a square matrix."""

    schema = "linalg_inv(Tensor A) -> Tensor"


class inverse(Inverse):
    """Inverse of a square matrix (older name)."""

    schema = "inverse(Tensor self) -> Tensor"


class linalg_tensorinv(PreciseMatricesComposite):
    """Inverse of a tensor as a linear map between its first `ind` dims and the rest."""

    schema = "linalg_tensorinv(Tensor self, int ind=2) -> Tensor"

    def compose(self, ind):
        if ind <= 0:
            raise ShapeError("Expected a strictly positive integer for 'ind'")
        first, rest = list(self.shape[:ind]), list(self.shape[ind:])
        if math.prod(first) != math.prod(rest):
            raise ShapeError("Expected self to satisfy the requirement prod(self.shape[ind:]) == "
                             f"prod(self.shape[:ind]), but got {math.prod(rest)} != "
                             f"{math.prod(first)}")
        square = self.reshape([math.prod(rest), math.prod(first)])
        return ops.linalg_inv(square).reshape(rest + first)

    def samples(s):
        yield s(regular(s.real(6, 6)).reshape([2, 3, 3, 2]))
        yield s(regular(s.real(4, 4)).reshape([4, 2, 2]), 1)


class linalg_tensorsolve(PreciseMatricesComposite):
    """Solution X of tensordot(A, X) = B over the last dims of A, which are as many as X has."""

    schema = "linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor"

    def compose(self, other, dims):
        if dims is not None:  # these dims of A go to its end
            self = self.movedim(dims, list(range(self.ndim - len(dims), self.ndim)))
        rest = list(self.shape[other.ndim:])
        if math.prod(rest) != other.numel() or math.prod(rest) ** 2 != self.numel():
            raise ShapeError("Expected self to satisfy the requirement prod(self.shape[other.ndim:"
                             "]) == prod(self.shape[:other.ndim]), but got shapes "
                             f"{list(self.shape)} and {list(other.shape)}")
        square = self.reshape([math.prod(rest), math.prod(rest)])
        return ops.linalg_solve(square, other.reshape([-1])).reshape(rest)

    def samples(s):
        yield s(regular(s.real(6, 6)).reshape([2, 3, 6]), s.real(2, 3))
        yield s(regular(s.real(4, 4)).reshape([2, 2, 2, 2]), s.real(2, 2), [0, 2])


# ---------------------------------------------------------------------------------------------
# Determinants


def _factors_of(name: str, xp, matrix):
    check_square(name, matrix)
    check_float(name, matrix)
    factors, pivots, _ = factor_lu(xp, matrix)
    return factors, pivots


class _linalg_det(_ByLU):
    """Determinant, and the LU factors that it is the product of."""

    schema = "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)"
    grad = {"A": "det_grad(grad, A, LU, pivots)"}
    push = {"result": "det_push(A_p, A_t, LU, pivots)"}
    diff_outputs = (True, False, False)

    def run(xp, A):
        factors, pivots = _factors_of("linalg.det", xp, A)
        product = xp.prod(xp.diagonal(factors, axis1=-2, axis2=-1), axis=-1)
        return (product * permutation_sign(xp, pivots)).astype(A.dtype), factors, pivots

    def shape(A):
        check_square("linalg.det", A)
        return [tuple(A.shape[:-2]), tuple(A.shape), tuple(A.shape[:-1])]

    def dtype(A):
        return [A.dtype, A.dtype, dt.int32]

    def samples(s):
        for shape in ((3, 3), (2, 3, 3), (1, 1), (0, 3, 3), (0, 0)):
            yield s(s.real(*shape))
        yield s(s.real(3, 1) @ s.real(1, 3))  # rank 1
        yield s(s.values([[0.0, 0.0], [0.0, 0.0]]))
        yield s(s.values([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 1.0, 1.0]]))  # rank 2


class _OfSquare:
    """A function of one square matrix under an older name."""

    complex = True
    samples = lambda s: [s(s.real(3, 3))]


class linalg_det(MatricesComposite):
    """Determinant of a square matrix."""

    schema = "linalg_det(Tensor A) -> Tensor"
    out = ("exact",)

    def compose(A):
        return ops._linalg_det(A)[0]

    samples = lambda s: [s(s.real(3, 3))]


class det(_OfSquare, FirstResult):
    """Determinant of a square matrix (older name)."""

    schema = "det(Tensor self) -> Tensor"
    first_of = "_linalg_det"


class _linalg_adjugate(MatrixKernel):
    """Adjugate of a square matrix, det(A) A^-1 continued to singular matrices."""

    # not an operator of PyTorch's: the derivative of a determinant, which must itself be
    # differentiable where the matrix has no inverse
    schema = "_linalg_adjugate(Tensor A) -> Tensor"
    grad = {"A": "adjugate_change(A.mH, grad)"}
    push = "adjugate_change(A_p, A_t)"
    method = False

    def run(xp, A):
        check_float("linalg.det", A)
        u, s, vh = singular_or_nan("linalg.det", xp, A)
        ones = xp.ones_like(s[..., :1])
        before = xp.cumprod(xp.concatenate([ones, s[..., :-1]], axis=-1), axis=-1)
        after = xp.cumprod(xp.concatenate([ones, s[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
        minors = (before * after)[..., None, :]  # products of all singular values but one
        with np.errstate(invalid="ignore"):  # of NaN
            turn = xp.asarray(xp.linalg.det(u @ vh))[..., None, None]
        return turn * ((adjoint(xp, vh) * minors) @ adjoint(xp, u))

    def shape(A):
        check_square("adjugate", A)
        return tuple(A.shape)

    def samples(s):
        for shape in ((3, 3), (2, 3, 3), (1, 1), (0, 3, 3)):
            yield s(s.real(*shape))
        if not s.dtype.is_complex:  # the second derivative, third of the determinant, is NaN there
            yield s(s.real(3, 2) @ s.real(2, 3))


def _log_of(xp, factors, pivots):
    """Sign and logarithm of |det| from LU factors."""
    diagonal = xp.diagonal(factors, axis1=-2, axis2=-1)
    size = xp.abs(diagonal)
    unit = xp.sign(diagonal)
    if factors.dtype.kind == "c":
        unit = diagonal / xp.where(size == 0, xp.ones_like(size), size)
    sign = (xp.prod(unit, axis=-1) * permutation_sign(xp, pivots)).astype(factors.dtype)
    return sign, xp.log(size).sum(axis=-1)


class _linalg_slogdet(_ByLU):
    """Sign and logarithm of the absolute value of the determinant, and LU factors."""

    schema = ("_linalg_slogdet(Tensor A)"
              " -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)")
    grad = {"A": "slogdet_grad(grad_sign, grad_logabsdet, A, sign, LU, pivots)"}
    push = {"sign, logabsdet": "slogdet_push(A_p, A_t, sign, LU, pivots)"}
    diff_outputs = (True, True, False, False)

    def run(xp, A):
        factors, pivots = _factors_of("linalg.slogdet", xp, A)
        return *_log_of(xp, factors, pivots), factors, pivots

    def shape(A):
        check_square("linalg.slogdet", A)
        lead = tuple(A.shape[:-2])
        return [lead, lead, tuple(A.shape), tuple(A.shape[:-1])]

    def dtype(A):
        return [A.dtype, A.dtype.to_real(), A.dtype, dt.int32]

    def samples(s):
        for shape in ((3, 3), (2, 3, 3), (1, 1), (0, 3, 3), (0, 0)):
            yield s(regular(s.real(*shape)))


class linalg_slogdet(MatricesComposite):
    """Sign (or phase) and logarithm of the absolute value of the determinant."""

    schema = "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)"
    out = ("exact",)

    def compose(A):
        return named("linalg_slogdet", *ops._linalg_slogdet(A)[:2])

    samples = lambda s: [s(regular(s.real(3, 3)))]


class slogdet(ComplexComposite):
    """Sign (or phase) and logarithm of the absolute value of the determinant (older name)."""

    schema = "slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)"

    def compose(self):
        return named("slogdet", *ops._linalg_slogdet(self)[:2])

    samples = lambda s: [s(regular(s.real(3, 3)))]


class logdet(ComplexComposite):
    """Logarithm of the determinant; NaN where a real determinant is negative."""

    schema = "logdet(Tensor self) -> Tensor"

    def compose(self):
        sign, logarithm = ops.slogdet(self)
        if self.is_complex():
            return sign.log() + logarithm
        return ops.where(sign == -1, math.nan, logarithm)

    samples = lambda s: [s(regular(s.real(3, 3))), s(regular(s.real(2, 3, 3)))]


# ---------------------------------------------------------------------------------------------
# Matrix functions


class linalg_matrix_exp(Matrices):
    """Matrix exponential."""

    schema = "linalg_matrix_exp(Tensor self) -> Tensor"
    grad = {"self": "matrix_exp_change(self.mH, grad)"}
    push = "matrix_exp_change(self_p, self_t)"
    shape = "self.shape"

    def run(xp, self):
        check_square("linalg.matrix_exp", self)
        check_float("linalg.matrix_exp", self)
        return expm(xp, self)

    def samples(s):
        for shape in ((3, 3), (2, 3, 3), (1, 1), (0, 3, 3), (0, 0)):
            yield s(s.real(*shape))
        yield s(10 * s.real(3, 3))
        yield s(s.real(3, 3).mT)


class matrix_exp(_OfSquare, Synonym):
    """Matrix exponential (older name)."""

    schema = "matrix_exp(Tensor self) -> Tensor"
    same_as = "linalg_matrix_exp"


class linalg_matrix_power(MatricesComposite):
    """Integer powers of a square matrix, by repeated squaring."""

    schema = "linalg_matrix_power(Tensor self, int n) -> Tensor"

    def compose(self, n):
        check_square("linalg.matrix_power", self)
        if n == 0:  # constant, but a function of the matrix all the same
            eye = identity(self)
            return ops.where(eye == 2, self, eye)
        base = ops.linalg_inv(self) if n < 0 else self
        if abs(n) == 3:
            return (base @ base) @ base
        result, rest = None, abs(n)
        while True:
            if rest % 2:
                result = base if result is None else result @ base
            rest //= 2
            if not rest:
                return result.clone() if result is self else result
            base = base @ base

    def samples(s):
        for power in (0, 1, 2, 5, -1, -3):
            yield s(regular(s.real(3, 3)), power)
        yield s(s.real(2, 3, 3), 3)


class matrix_power(Synonym):
    """Integer powers of a square matrix (older name)."""

    schema = "matrix_power(Tensor self, int n) -> Tensor"
    out = ("exact",)
    complex = True
    same_as = "linalg_matrix_power"
    samples = lambda s: [s(s.real(3, 3), 2)]
