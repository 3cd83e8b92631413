"""Derivative formulas of systems with a sparse matrix, of its determinant and its eigenvectors.

A matrix is given by the rows, the columns and the values of its entries; the gradient of these is
the one of the whole matrix at their places, and nothing of that size is made.  The systems in the
formulas are those of the operators, transposed, for which factors are there already.
Read `ops/sparse_solve.py` next.
"""

from __future__ import annotations

from ..table.packets import ops
from .linalg import slogdet_tangents, slogdet_weight

COLUMNS = 1024  # of an inverse at a time


def sparse_solve_grads(grad, rows, cols, values, result, mask):
    """Gradients of A X = B: gB = A^-H gX, gA = -gB X^H at the entries."""
    if grad is None:
        return None, None
    right = ops._sparse_solve(cols, rows, values.conj(), grad)
    return (-ops._sddmm(rows, cols, right, result.conj()) if mask[0] else None), right


def sparse_solve_push(rows, cols, values, values_t, right_t, result):
    """Tangent of X: A dX = dB - dA X."""
    moved = ops._spmm(rows, cols, values_t, result, result.shape[0])
    return ops._sparse_solve(rows, cols, values, right_t - moved)


def entries_inside(rows, cols, values, upper: bool, unit: bool):
    """Values with zeros for entries that a triangular system does not read."""
    if unit:
        there = rows < cols if upper else rows > cols
    else:
        there = rows <= cols if upper else rows >= cols
    return ops.where(there, values, 0)


def sparse_triangular_grads(grad, rows, cols, values, result, upper, unit, mask):
    """The same of a triangular system: only its triangle has a gradient."""
    if grad is None:
        return None, None
    right = ops._sparse_triangular_solve(cols, rows, values.conj(), grad, not upper, unit)
    if not mask[0]:
        return None, right
    found = -ops._sddmm(rows, cols, right, result.conj())
    return entries_inside(rows, cols, found, upper, unit), right


def sparse_triangular_push(rows, cols, values, values_t, right_t, result, upper, unit):
    """Tangent of the solution of a triangular system."""
    moved = entries_inside(rows, cols, values_t, upper, unit)
    change = right_t - ops._spmm(rows, cols, moved, result, result.shape[0])
    return ops._sparse_triangular_solve(rows, cols, values, change, upper, unit)


def inverse_entries(rows, cols, values, size, at_rows, at_cols):
    """Entries of the inverse of a matrix at some places, from a few columns of it at a time."""
    line, total = ops.arange(size, device=values.device), None
    for start in range(0, int(size), COLUMNS):
        some = line[start:start + COLUMNS]
        unit = (line.unsqueeze(1) == some).to(values.dtype)
        inverse = ops._sparse_solve(rows, cols, values, unit)
        found = ops._sddmm(at_rows, at_cols, inverse, unit)
        total = found if total is None else total + found
    return ops.zeros_like(values) if total is None else total


def sparse_slogdet_grad(grad_sign, grad_log, rows, cols, values, size, sign):
    """Gradient of sign and log |det|: (g_log - i Im(conj(g_sign) sign)) A^-H at the entries."""
    weight = slogdet_weight(grad_sign, grad_log, sign)
    if weight is None:
        return None
    return weight * inverse_entries(cols, rows, values.conj(), size, rows, cols)


def sparse_slogdet_push(rows, cols, values, values_t, size, sign):
    """Tangents of sign and log |det|: with t = tr(A^-1 dA), i Im(t) sign and Re(t)."""
    moved = (values_t * inverse_entries(rows, cols, values, size, cols, rows)).sum()
    return slogdet_tangents(moved, sign)


# ---------------------------------------------------------------------------------------------
# Eigenvectors: A v = l B v with v^H B v = 1, where A and B are the Hermitian parts of what is given


def _bordered(matrix, other, numbers, vectors, right):
    """Solutions (X, m) of (A - l B) x + m B v = r, v^H B x = n, for each eigenvector: `right` is
    (r, n).

    The systems are regular where an eigenvalue is there once.  They are blocks of one matrix.
    """
    size, count = vectors.shape
    (rows, cols, values), (rows_b, cols_b, values_b) = matrix, other
    spread = _hermitian_times(rows_b, cols_b, values_b, vectors).t()
    line = ops.arange(size, device=rows.device)
    last = ops.full((size,), size, dtype=line.dtype, device=rows.device)
    halves = ops.cat([values, values.conj()]).unsqueeze(0) / 2
    halves_b = ops.cat([values_b, values_b.conj()]).unsqueeze(0) / 2
    shifts = -numbers.unsqueeze(1).to(values.dtype) * halves_b
    block = ops.arange(count, device=rows.device).unsqueeze(1) * (size + 1)
    at_rows = ops.cat([rows, cols, rows_b, cols_b, line, last])
    at_cols = ops.cat([cols, rows, cols_b, rows_b, last, line])
    entries = ops.cat([halves.expand(count, halves.shape[1]), shifts, spread, spread.conj()], 1)
    sides = ops.cat([right[0].t(), right[1].unsqueeze(1)], 1).reshape(-1, 1)
    found = ops._sparse_solve((at_rows + block).reshape(-1), (at_cols + block).reshape(-1),
                              entries.reshape(-1), sides).reshape(count, size + 1)
    return found[:, :size].t(), found[:, size]


def _hermitian_times(rows, cols, values, dense):
    """The Hermitian part of a matrix times a dense one."""
    size = dense.shape[0]
    return (ops._spmm(rows, cols, values, dense, size)
            + ops._spmm(cols, rows, values.conj(), dense, size)) / 2


def _hermitian_at(rows, cols, left, vectors):
    """The entries of the Hermitian part of `left @ vectors^H`."""
    return (ops._sddmm(rows, cols, left, vectors.conj())
            + ops._sddmm(rows, cols, vectors, left.conj())) / 2


def sparse_eigh_grads(grad_numbers, grad_vectors, rows, cols, values, rows_b, cols_b, values_b,
                      numbers, vectors, mask):
    """Gradients of the entries of A and of B.

    Those of numbers alone are gl v v^H and -l gl v v^H.  With those of vectors, (y, m) solves the
    bordered system of (gV, -gl), and they are -y v^H and l y v^H - m v v^H / 2.
    """
    if grad_vectors is None and grad_numbers is None:
        return None, None
    factor = numbers.to(vectors.dtype)
    weight = None if grad_numbers is None else grad_numbers.to(vectors.dtype)
    if grad_vectors is None:
        left, left_b = vectors * weight, vectors * (-factor * weight)
    else:
        weight = ops.zeros_like(factor) if weight is None else -weight
        y, m = _bordered((rows, cols, values), (rows_b, cols_b, values_b), numbers, vectors,
                         (grad_vectors, weight))
        left, left_b = -y, y * factor - vectors * (m / 2)
    return (_hermitian_at(rows, cols, left, vectors) if mask[0] else None,
            _hermitian_at(rows_b, cols_b, left_b, vectors) if mask[1] else None)


def sparse_eigh_push(rows, cols, values, values_t, rows_b, cols_b, values_b, values_b_t, numbers,
                     vectors):
    """Tangents of the eigenvalues and of the vectors, whose phase stays."""
    moved = _hermitian_times(rows, cols, values_t, vectors)
    moved_b = _hermitian_times(rows_b, cols_b, values_b_t, vectors)
    length = (vectors.conj() * moved_b).sum(0)
    y, m = _bordered((rows, cols, values), (rows_b, cols_b, values_b), numbers, vectors,
                     (moved_b * numbers.to(vectors.dtype) - moved, -length / 2))
    return ops.real(-m), y
