"""Derivative formulas of factorizations and triangular solvers.

All functions are batched over leading dims.  In the comments, A^H is the conjugate transpose.
Read `ops/linalg.py` next, where these are used.
"""

from __future__ import annotations

from ..core.table import ops


def _triangle(matrix, upper: bool, strict: bool = False):
    """The upper or lower triangle, without its diagonal if `strict`."""
    return matrix.triu(1 if strict else 0) if upper else matrix.tril(-1 if strict else 0)


def _solve(factor, right, upper: bool, left: bool = True, unit: bool = False):
    return ops.linalg_solve_triangular(factor, right, upper=upper, left=left, unitriangular=unit)


def cholesky_grad(grad, factor, upper):
    """Gradient of a Cholesky factorization; Hermitian if the factor's is real on the diagonal."""
    lower = factor.mH if upper else factor
    grad = grad.mH if upper else grad
    product = lower.mH @ grad
    middle = product.tril() + product.tril(-1).mH
    inner = _solve(lower.mH, middle, upper=True)
    return _solve(lower, inner, upper=False, left=False) * 0.5


def cholesky_push(tangent, factor, upper):
    """Tangent of a Cholesky factor; the halves of a tangent that is not Hermitian are averaged."""
    lower = factor.mH if upper else factor
    inner = _solve(lower, tangent, upper=False)
    inner = _solve(lower.mH, inner, upper=True, left=False)
    moved = lower @ ((inner.tril() + inner.mH.tril(-1)) * 0.5)
    return moved.mH if upper else moved


def cholesky_solve_grads(grad, result, factor, upper, mask):
    """Gradients of the right-hand side and of the factor of `cholesky_solve`."""
    if grad is None:
        return None, None
    grad_right = ops.cholesky_solve(grad, factor, upper)
    if not mask[1]:
        return grad_right, None
    outer = grad_right @ result.mH
    outer = outer + outer.mH
    grad_factor = -(factor @ outer) if upper else -(outer @ factor)
    return grad_right, grad_factor


def cholesky_solve_push(right_t, factor, factor_t, result, upper):
    """Tangent of `cholesky_solve`."""
    half = factor.mH @ factor_t if upper else factor_t @ factor.mH
    return ops.cholesky_solve(right_t - (half + half.mH) @ result, factor, upper)


def solve_triangular_grads(grad, factor, result, upper, left, unit, mask):
    """Gradients of the triangular matrix and of the right-hand side."""
    if grad is None:
        return None, None
    grad_right = _solve(factor.mH, grad, not upper, left, unit)
    if not mask[0]:
        return None, grad_right
    grad_factor = -(grad_right @ result.mH) if left else -(result.mH @ grad_right)
    return _triangle(grad_factor, upper, unit), grad_right


def solve_triangular_push(factor, factor_t, right_t, result, upper, left, unit):
    """Tangent of the solution of a triangular system."""
    moved = _triangle(factor_t, upper, unit)
    change = right_t - (moved @ result if left else result @ moved)
    return _solve(factor, change, upper, left, unit)
