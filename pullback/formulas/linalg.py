"""Derivative formulas of Cholesky factors, solvers, inverses, determinants, matrix functions.

All functions are batched over leading dims; A^H is the conjugate transpose of A, gX the gradient
and dX the tangent of X.  Where a factorization of the forward pass may be used again depends on who
is watching: it has no history of its own, so it serves only where nothing records or follows the
computation (`unwatched`); otherwise formulas start from the matrix.
Read `ops/linalg.py` and `ops/solve.py` next, where these are used, and `formulas/factor.py`.
"""

from __future__ import annotations

import math

from ..array.dtype import finfo
from ..core.handle import Box
from ..table.packets import ops
from ..threads.state import recording


def unwatched(*tensors) -> bool:
    """Does nothing differentiate, batch or trace what is computed from these tensors?"""
    return not recording() and not any(isinstance(t._payload, Box) for t in tensors)


def identity_like(matrix):
    """The identity of a square matrix's size, dtype and device."""
    return ops.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


def diagonal_of(matrix):
    """The diagonals of a stack of matrices."""
    return matrix.diagonal(0, -2, -1)


def trace_of(matrix):
    """The traces of a stack of matrices."""
    return diagonal_of(matrix).sum(-1)


def triangle(matrix, upper: bool, strict: bool = False):
    """The upper or lower triangle, without its diagonal if `strict`."""
    return matrix.triu(1 if strict else 0) if upper else matrix.tril(-1 if strict else 0)


def solve_tri(factor, right, upper: bool, left: bool = True, unit: bool = False):
    """Solution of a triangular system A X = B, or X A = B if not `left`."""
    return ops.linalg_solve_triangular(factor, right, upper=upper, left=left, unitriangular=unit)


def cholesky_grad(grad, factor, upper):
    """Gradient of a Cholesky factorization; Hermitian if the factor's is real on the diagonal."""
    lower = factor.mH if upper else factor
    grad = grad.mH if upper else grad
    product = lower.mH @ grad
    middle = product.tril() + product.tril(-1).mH
    inner = solve_tri(lower.mH, middle, upper=True)
    return solve_tri(lower, inner, upper=False, left=False) * 0.5


def cholesky_push(tangent, factor, upper):
    """Tangent of a Cholesky factor; the halves of a tangent that is not Hermitian are averaged."""
    lower = factor.mH if upper else factor
    inner = solve_tri(lower, tangent, upper=False)
    inner = solve_tri(lower.mH, inner, upper=True, left=False)
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
    grad_right = solve_tri(factor.mH, grad, not upper, left, unit)
    if not mask[0]:
        return None, grad_right
    grad_factor = -(grad_right @ result.mH) if left else -(result.mH @ grad_right)
    return triangle(grad_factor, upper, unit), grad_right


def solve_triangular_push(factor, factor_t, right_t, result, upper, left, unit):
    """Tangent of the solution of a triangular system."""
    moved = triangle(factor_t, upper, unit)
    change = right_t - (moved @ result if left else result @ moved)
    return solve_tri(factor, change, upper, left, unit)


# ---------------------------------------------------------------------------------------------
# General systems


def is_vector(matrix_shape, right_shape) -> bool:
    """Is the right-hand side of A x = b a vector (or a stack of them, one per matrix)?"""
    return len(right_shape) == 1 or (len(right_shape) == len(matrix_shape) - 1
                                     and tuple(right_shape) == tuple(matrix_shape[:-1]))


def solve_grads(grad, matrix, right_shape, result, packed, pivots, left, mask):
    """Gradients of A X = B: gB = A^-H gX, gA = -gB X^H (X A = B: gA = -X^H gB)."""
    if grad is None:
        return None, None
    vector = is_vector(matrix.shape, right_shape)
    if vector:
        grad, result = grad.unsqueeze(-1), result.unsqueeze(-1)
    if unwatched(grad, matrix, packed):
        grad_right = ops.linalg_lu_solve(packed, pivots, grad, left=left, adjoint=True)
    else:
        grad_right = ops.linalg_solve_ex(matrix.mH, grad, left=left)[0]
    grad_matrix = None
    if mask[0]:
        grad_matrix = -(grad_right @ result.mH if left else result.mH @ grad_right)
    return grad_matrix, (grad_right.squeeze(-1) if vector else grad_right) if mask[1] else None


def solve_push(matrix, matrix_t, right_t, result, packed, pivots, left):
    """Tangent of A X = B: dX = A^-1 (dB - dA X)."""
    vector = is_vector(matrix.shape, right_t.shape)
    if vector:
        right_t, result = right_t.unsqueeze(-1), result.unsqueeze(-1)
    change = right_t - (matrix_t @ result if left else result @ matrix_t)
    if unwatched(change, matrix, packed):
        moved = ops.linalg_lu_solve(packed, pivots, change, left=left)
    else:
        moved = ops.linalg_solve_ex(matrix, change, left=left)[0]
    return moved.squeeze(-1) if vector else moved


def lu_solve_factor_grad(grad, packed, pivots, result, left, adjoint):
    """Gradient of the packed factors of A = P L U: gL = P^T gA U^H and gU = L^H P^T gA."""
    order, lower, upper = ops.lu_unpack(packed, pivots)
    inner = ops.linalg_lu_solve(packed, pivots, grad, left=left, adjoint=not adjoint)
    if left:
        product = result @ inner.mH if adjoint else inner @ result.mH
    else:
        product = inner.mH @ result if adjoint else result.mH @ inner
    moved = order.mT @ product
    return -((moved @ upper.mH).tril(-1) + (lower.mH @ moved).triu())


def lu_solve_push(packed, packed_t, pivots, right_t, result, left, adjoint):
    """Tangent of a solution with packed factors: dA = P (dL U + L dU)."""
    order, lower, upper = ops.lu_unpack(packed, pivots)
    change = order @ (packed_t.tril(-1) @ upper + lower @ packed_t.triu())
    change = change.mH if adjoint else change
    right_t = right_t - (change @ result if left else result @ change)
    return ops.linalg_lu_solve(packed, pivots, right_t, left=left, adjoint=adjoint)


# ---------------------------------------------------------------------------------------------
# Determinants


def det_grad(grad, matrix, packed, pivots):
    """Gradient of a determinant: g times the conjugate of the cofactors, adj(A)^H."""
    return grad[..., None, None] * _adjugate(matrix, packed, pivots).mH


def det_push(matrix, matrix_t, packed, pivots):
    """Tangent of a determinant: tr(adj(A) dA), Jacobi's formula."""
    return (_adjugate(matrix, packed, pivots).mT * matrix_t).sum([-2, -1])


def _adjugate(matrix, packed, pivots):
    """adj(A) = det(A) A^-1, which exists for singular matrices too."""
    if matrix.shape[-1] < 2:
        return ops.ones_like(matrix)  # whatever the number is, NaN included
    if not unwatched(matrix, packed):
        return ops._linalg_adjugate(matrix)
    # Determinant and inverse of the same factors: pivots that are zero are lifted to a rounding
    # error, which cancels in the product.
    diagonal = lifted = diagonal_of(packed)
    if bool((diagonal == 0).any()):
        size = matrix.abs().amax([-2, -1])[..., None]
        lift = finfo(packed.dtype).eps * ops.where(size > 0, size, 1.0)
        lifted = ops.where(diagonal == 0, lift, diagonal)
        packed = packed + ops.diag_embed(lifted - diagonal)
    places = ops.arange(1, matrix.shape[-1] + 1, device=matrix.device)
    odd = (pivots != places).sum(-1) % 2
    det = lifted.prod(-1) * (1 - 2 * odd)
    inverse = ops.linalg_lu_solve(packed, pivots, identity_like(matrix))
    return det[..., None, None] * inverse


def adjugate_change(matrix, change):
    """Derivative of adj(A) in the direction X, which is bilinear and needs no inverse.

    For A = U S V^H and B = U^H X V it is det(U V^H) V D U^H, where D holds minors of S: products of
    all but two singular values, D_ii = sum_k B_kk prod(s without s_i, s_k) and
    D_ij = -B_ij prod(s without s_i, s_j).
    """
    finite = matrix.isfinite().all(-1).all(-1)[..., None, None]
    matrix = ops.where(finite, matrix, identity_like(matrix))  # there is no decomposition of NaN
    return ops.where(finite, _adjugate_change(matrix, change), math.nan)


def _adjugate_change(matrix, change):
    u, s, vh = ops._linalg_svd(matrix)
    if unwatched(matrix, change) or matrix.shape[-1] < 2:
        return _adjugate_change_by_values(u, s, vh, change)
    # Derivatives of singular vectors do not exist where singular values coincide, so that regular
    # matrices take the way over the inverse: det(A) (tr(A^-1 X) A^-1 - A^-1 X A^-1).
    regular = s[..., -1] > finfo(s.dtype).eps ** 0.25 * s[..., 0]
    regular = regular[..., None, None]
    safe = ops.where(regular, matrix, identity_like(matrix))
    inverse = ops.linalg_inv_ex(safe)[0]
    moved = inverse @ change
    first = trace_of(moved)[..., None, None] * inverse - moved @ inverse
    first = ops.linalg_det(safe)[..., None, None] * first
    steps = ops.arange(1, matrix.shape[-1] + 1, dtype=s.dtype, device=matrix.device)
    other = ops.where(regular, ops.diag_embed(steps).to(matrix.dtype), matrix)
    second = _adjugate_change_by_values(*ops._linalg_svd(other), change)
    return ops.where(regular, first, second)


def _adjugate_change_by_values(u, s, vh, change):
    size = s.shape[-1]
    eye = ops.eye(size, dtype=s.dtype, device=s.device)
    without = s[..., None, :] * (1 - eye) + eye  # row i: all values, 1 in the place of s_i
    minors = (all_but_one(without) * (1 - eye)).to(u.dtype)
    inner = u.mH @ change @ vh.mH
    diagonal = (minors * diagonal_of(inner)[..., None, :]).sum(-1)
    core = ops.diag_embed(diagonal) - minors * inner
    turn = ops.linalg_det(u @ vh)[..., None, None]
    return turn * (vh.mH @ core @ u.mH)


def all_but_one(values):
    """Products over the last dim that leave out one element each, without a division."""
    ones = ops.ones_like(values[..., :1])
    before = ops.cumprod(ops.cat([ones, values[..., :-1]], -1), -1)
    after = ops.cumprod(ops.cat([ones, values.flip([-1])[..., :-1]], -1), -1).flip([-1])
    return before * after


def slogdet_weight(grad_sign, grad_log, sign):
    """What A^-H is multiplied by in the gradient of sign and log |det|; None: by nothing."""
    weight = None if grad_log is None else grad_log.to(sign.dtype)
    if sign.dtype.is_complex and grad_sign is not None:
        turn = -1j * ops.imag(grad_sign.conj() * sign)
        weight = turn if weight is None else weight + turn
    return weight


def slogdet_grad(grad_sign, grad_log, matrix, sign, packed, pivots):
    """Gradient of sign and log |det|: (g_log - i Im(conj(g_sign) sign)) A^-H."""
    weight = slogdet_weight(grad_sign, grad_log, sign)
    if weight is None:
        return None
    right = ops.diag_embed(weight[..., None].expand(matrix.shape[:-1]))
    if unwatched(right, matrix, packed):
        return ops.linalg_lu_solve(packed, pivots, right, adjoint=True)
    return ops.linalg_solve_ex(matrix.mH, right)[0]


def slogdet_tangents(moved, sign):
    """Tangents of sign and log |det| of t = tr(A^-1 dA)."""
    if not sign.dtype.is_complex:
        return ops.zeros_like(sign), moved
    return 1j * ops.imag(moved) * sign, ops.real(moved)


def slogdet_push(matrix, matrix_t, sign, packed, pivots):
    """Tangents of sign and log |det|: with t = tr(A^-1 dA), i Im(t) sign and Re(t)."""
    if unwatched(matrix, matrix_t, packed):
        moved = trace_of(ops.linalg_lu_solve(packed, pivots, matrix_t))
    else:
        moved = trace_of(ops.linalg_solve_ex(matrix, matrix_t)[0])
    return slogdet_tangents(moved, sign)


# ---------------------------------------------------------------------------------------------
# Pseudo-inverse and least squares


def pinv_grad(grad, pinv, matrix):
    """Gradient of P = A^+ at constant rank (Golub and Pereyra).

    gA = -P^H gP P^H + (I - A P) gP^H P P^H + P^H P gP^H (I - P A)
    """
    first = (grad.mH @ pinv) @ pinv.mH
    second = pinv.mH @ (pinv @ grad.mH)
    return (first - matrix @ (pinv @ first) + second - (second @ pinv) @ matrix
            - pinv.mH @ grad @ pinv.mH)


def pinv_push(tangent, pinv, matrix):
    """Tangent of P = A^+: -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P."""
    first = pinv @ (pinv.mH @ tangent.mH)
    second = (tangent.mH @ pinv.mH) @ pinv
    return (first - (first @ matrix) @ pinv + second - pinv @ (matrix @ second)
            - pinv @ tangent @ pinv)


def lstsq_grads(grad, grad_residuals, matrix, right, solution, rcond, mask):
    """Gradients of X = A^+ B and of the residuals q = |A X - B|^2 of each column.

    gB = P^H gX - 2 q' r with r = A X - B; gA is that of P = A^+ for gP = gX B^H, plus 2 q' r X^H.
    """
    vector = right.ndim == matrix.ndim - 1
    if vector:
        right, solution = right.unsqueeze(-1), solution.unsqueeze(-1)
        grad = None if grad is None else grad.unsqueeze(-1)
    grad_matrix = grad_right = None
    off = matrix @ solution - right
    if grad_residuals is not None and grad_residuals.numel():
        pull = 2 * grad_residuals[..., None, :] * off
        grad_matrix, grad_right = pull @ solution.mH, -pull
    if grad is not None:
        pinv = ops.linalg_pinv(matrix, rtol=rcond)
        back = pinv.mH @ grad
        grad_right = back if grad_right is None else grad_right + back
        if mask[0]:
            change = (-(back @ solution.mH) - off @ (pinv @ back).mH
                      + (pinv.mH @ solution) @ (grad - pinv @ (matrix @ grad)).mH)
            grad_matrix = change if grad_matrix is None else grad_matrix + change
    if vector and grad_right is not None:
        grad_right = grad_right.squeeze(-1)
    return grad_matrix, grad_right


def lstsq_push(matrix, matrix_t, right, right_t, solution, residuals, rcond):
    """Tangents of X = A^+ B and of the residuals q = |r|^2: dq = 2 Re r^H (dA X - dB)."""
    vector = right.ndim == matrix.ndim - 1
    if vector:
        right, right_t, solution = (t.unsqueeze(-1) for t in (right, right_t, solution))
    pinv = ops.linalg_pinv(matrix, rtol=rcond)
    off = matrix @ solution - right
    lost = matrix_t.mH @ (pinv.mH @ solution)
    moved = (pinv @ (right_t - matrix_t @ solution) - pinv @ (pinv.mH @ (matrix_t.mH @ off))
             + lost - pinv @ (matrix @ lost))
    if residuals.numel():
        change = off.conj() * (matrix_t @ solution - right_t)
        pushed = 2 * ops.real(change).sum(-2)
    else:
        pushed = ops.zeros_like(residuals)
    return (moved.squeeze(-1) if vector else moved), pushed


# ---------------------------------------------------------------------------------------------
# Matrix exponential


def matrix_exp_change(matrix, change):
    """Derivative of exp(A) in the direction X: the upper right block of exp((A X; 0 A)).

    It is linear in X, which is scaled to the size of 1 so that it does not decide how the
    exponential of the block matrix is computed.
    """
    if matrix.numel() == 0:
        return ops.zeros_like(change)
    size = change.detach().abs().amax([-2, -1], True)
    size = ops.where(size > 0, size, 1.0)
    top = ops.cat([matrix, change / size], -1)
    bottom = ops.cat([ops.zeros_like(matrix), matrix], -1)
    block = ops.linalg_matrix_exp(ops.cat([top, bottom], -2))
    n = matrix.shape[-1]
    return block[..., :n, n:] * size
