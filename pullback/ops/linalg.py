"""Factorizations and solvers: the table entries of Cholesky and triangular systems.

Kernels call LAPACK and BLAS through NumPy and SciPy, one matrix of a stack at a time where those do
not take stacks.  Formulas are in `formulas/linalg.py`; `pullback.linalg` offers the public names.
"""

from __future__ import annotations

import math

from ..core import dtype as dt
from ..core.op import Composite, Op
from ..core.table import ops
from .lapack import (
    adjoint,
    check_float,
    check_square,
    check_system,
    failure,
    fronts,
    hermitian,
    identity,
    positions,
    positive,
    solve_triangular,
    stacked,
    triangular,
)

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
        for index in positions(lead):
            info[index] = _leading_failure(xp, matrix[index])
            if info[index] == 0:
                out[index] = xp.linalg.cholesky(matrix[index])
        return out, info


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
        check_square("linalg.cholesky", self)
        check_float("linalg.cholesky", self)
        factor, info = _cholesky_lower(xp, adjoint(xp, self) if upper else self)
        if check_errors:
            failure("linalg.cholesky", info, "The factorization could not be completed because "
                    "the input is not positive-definite (the leading minor of order {} is not "
                    "positive-definite).")
        return (adjoint(xp, factor) if upper else factor), info

    def shape(self, upper, check_errors):
        check_square("linalg.cholesky", self)
        return [tuple(self.shape), tuple(self.shape[:-2])]

    def dtype(self, upper, check_errors):
        return [self.dtype, dt.int32]

    batch = stacked()

    def samples(s):
        for shape in ((3, 3), (2, 3, 3)):
            a = s.real(*shape)
            yield s(positive(a))
            yield s(positive(a), upper=True)


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
        yield s(positive(s.real(3, 3)))


class cholesky(Composite):
    """Triangular factor of a positive-definite matrix (older name)."""

    schema = "cholesky(Tensor self, bool upper=False) -> Tensor"
    structure = {"self": hermitian}
    complex = True

    def compose(self, upper):
        return ops.linalg_cholesky_ex(self, upper=upper, check_errors=True)[0]

    def samples(s):
        yield s(positive(s.real(3, 3)))
        yield s(positive(s.real(3, 3)), True)


# ---------------------------------------------------------------------------------------------
# Triangular systems


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
        check_system("linalg.solve_triangular", self, B, left)
        check_float("linalg.solve_triangular", self, B)
        return solve_triangular(xp, self, B, upper, left, unitriangular)

    def shape(self, B, upper, left, unitriangular):
        return check_system("linalg.solve_triangular", self, B, left)

    def batch(n, batched, self, B, upper, left, unitriangular):
        a, b = fronts(batched[:2], self, B)
        return ops.linalg_solve_triangular(a, b, upper=upper, left=left,
                                           unitriangular=unitriangular)

    def samples(s):
        for upper in (False, True):
            for left in (False, True):
                shape = (3, 2) if left else (2, 3)
                a = positive(s.real(3, 3))
                yield s(a, s.real(*shape), upper=upper, left=left)
                yield s(a, s.real(*shape), upper=upper, left=left, unitriangular=True)
        yield s(positive(s.real(2, 3, 3)), s.real(3, 2), upper=False)
        yield s(positive(s.real(3, 3)), s.real(2, 3, 2), upper=True)


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
        check_system("cholesky_solve", input2, self, True)
        check_float("cholesky_solve", self, input2)
        half = solve_triangular(xp, input2, self, upper, True, False, adjoint=upper)
        return solve_triangular(xp, input2, half, upper, True, False, adjoint=not upper)

    def shape(self, input2, upper):
        return check_system("cholesky_solve", input2, self, True)

    def batch(n, batched, self, input2, upper):
        b, factor = fronts(batched[:2], self, input2)
        return ops.cholesky_solve(b, factor, upper)

    def samples(s):
        for upper in (False, True):
            for shape in ((3, 3), (2, 3, 3)):
                a = positive(s.real(*shape))
                yield s(s.real(3, 2), a.triu() if upper else a.tril(), upper)


class cholesky_inverse(Composite):
    """Inverse of a matrix that is given by its Cholesky factor."""

    schema = "cholesky_inverse(Tensor self, bool upper=False) -> Tensor"
    structure = {"self": triangular}
    complex = True

    def compose(self, upper):
        check_square("cholesky_inverse", self)
        return ops.cholesky_solve(identity(self), self, upper)

    def samples(s):
        yield s(positive(s.real(3, 3)).tril())
        yield s(positive(s.real(3, 3)).triu(), True)
