"""The iterations of `solvers.py` on NumPy's arrays, for systems that nobody transforms or captures.

They are the same step by step, so solutions and the numbers beside them are, too; what an iteration
costs is its products and a few sums over vectors.  `linalg.py` chooses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..array import dtype as dt
from ..core.handle import Tensor, make
from ..ops.sparse_products import matrix_of
from ..threads.state import state
from .solvers import OMEGA, RHO, Settings

Product = Callable[[np.ndarray], np.ndarray]


def takes(tensors: tuple) -> bool:
    """May a system of these tensors be solved here, the right side being the first?"""
    return not state.mode and not state.dispatch.operator_modes and all(
        type(t._payload) is np.ndarray for t in tensors) and (
        tensors[0]._payload.dtype.char in "fdFD")


def run(name: str, a: Product, m: Product | None, b: Tensor, x0: Tensor, s: Settings) -> tuple:
    """A solution, and how it ended."""
    first = x0._payload
    with np.errstate(all="ignore"):
        x, info = METHODS[name](a, m, b._payload, first, s)
    return make(x.copy() if x is first else x), make(np.asarray(info, np.int64))


def by_entries(rows: Tensor, cols: Tensor, values: Tensor) -> Product:
    """What multiplies a vector by a sparse matrix."""
    from scipy.sparse import _sparsetools

    arrays = rows._payload, cols._payload, values._payload
    found: list = []

    def product(v: np.ndarray) -> np.ndarray:
        size = v.shape[0]
        if not found:
            matrix = matrix_of(*arrays, (size, size))
            found[:] = matrix.indptr, matrix.indices, matrix.data
        out = np.zeros(size, v.dtype)
        _sparsetools.csr_matvec(size, size, *found, np.ascontiguousarray(v), out)
        return out

    return product


def by_matrix(matrix: Tensor) -> Product:
    """The same by a dense one."""
    array = matrix._payload
    return lambda v: array @ v


def by_function(function: Callable[[Tensor], Tensor]) -> Product:
    """The same by a function of tensors; it may keep what it gets, so that is not written again."""
    return lambda v: np.ascontiguousarray(function(make(v))._payload)


def _length(v: np.ndarray) -> Any:
    return np.sqrt(np.vdot(v, v).real) if v.dtype.char in "dD" else np.linalg.norm(v)


def _begun(a: Product, b: np.ndarray, x0: np.ndarray, s: Settings) -> tuple:
    size = _length(b)
    x = x0 if size else np.zeros_like(b)
    r = b - a(x) if x.any() else b
    return x, r, max(size * s.rtol, s.atol)


def cg(a: Product, m: Product | None, b: np.ndarray, x0: np.ndarray, s: Settings) -> tuple:
    """Conjugate gradients."""
    x, r, enough = _begun(a, b, x0, s)
    z = r if m is None else m(r)
    p, weight, count = z, np.vdot(r, z), 0
    left = _length(r)
    while left > enough and count < s.maxiter:
        q = a(p)
        far = weight / np.vdot(p, q)
        x, r = x + far * p, r - far * q
        z = r if m is None else m(r)
        after = np.vdot(r, z)
        p = z + (after / weight) * p
        weight, count, left = after, count + 1, _length(r)
    return x, 0 if left <= enough else max(count, 1)


def bicgstab(a: Product, m: Product | None, b: np.ndarray, x0: np.ndarray, s: Settings) -> tuple:
    """Stabilized biconjugate gradients."""
    improved = (lambda v: v) if m is None else m
    x, r, enough = _begun(a, b, x0, s)
    shadow = p = r
    rho, count, broken = np.vdot(shadow, r), 0, 0
    left = _length(r)
    while left > enough and count < s.maxiter and not broken:
        direction = improved(p)
        v = a(direction)
        product = np.vdot(shadow, v)
        far = rho / product if product else product * 0
        half = r - far * v
        second = improved(half)
        t = a(second)
        length = np.vdot(t, t)
        omega = np.vdot(t, half) / length if length else length * 0
        x, r = x + far * direction + omega * second, half - omega * t
        after = np.vdot(shadow, r)
        broken = RHO if not after else OMEGA if not omega else 0
        if not broken:
            p = r + (after / rho) * (far / omega) * (p - omega * v)
        rho, count, left = after, count + 1, _length(r)
    return x, 0 if left <= enough else broken or max(count, 1)


def gmres(a: Product, m: Product | None, b: np.ndarray, x0: np.ndarray, s: Settings) -> tuple:
    """Generalized minimal residuals."""
    improved = (lambda v: v) if m is None else m
    x, r, enough = _begun(a, b, x0, s)
    steps, count, left = max(min(s.restart, b.shape[0]), 1), 0, _length(r)
    while left > enough and count < s.maxiter:
        basis, weights = _krylov(lambda v: a(improved(v)), r, left, enough, steps)
        x = x + improved(weights @ basis[:weights.shape[0]])
        r, count = b - a(x), count + 1
        left = _length(r)
    return x, 0 if left <= enough else max(count, 1)


def _krylov(a: Product, r: np.ndarray, size: Any, enough: Any, steps: int) -> tuple:
    """(Orthonormal vectors, the weights of the smallest residual): products are made a triangle
    by rotations, one more for each."""
    basis = np.empty((steps + 1, r.shape[0]), r.dtype)
    basis[0] = r / size
    triangle = np.zeros((steps, steps), r.dtype)
    right = np.zeros(steps + 1, r.dtype)
    right[0] = size
    turns: list[tuple] = []
    eps = dt.finfo(dt.of(r.dtype)).eps
    for k in range(steps):
        w = a(basis[k].copy())
        before = _length(w)
        known = basis[:k + 1].conj() @ w
        w = w - known @ basis[:k + 1]
        more = basis[:k + 1].conj() @ w  # once is not enough for all digits
        w = w - more @ basis[:k + 1]
        left = _length(w)
        there = left > before * eps
        column = known + more
        for j, (c, d) in enumerate(turns):
            column[j], column[j + 1] = (c * column[j] + d * column[j + 1],
                                        c * column[j + 1] - np.conj(d) * column[j])
        _turned(turns, column, right, left if there else 0, k)
        triangle[:k + 1, k] = column
        if not there or np.abs(right[k + 1]) <= enough:
            break
        basis[k + 1] = w / left
    n = k + 1
    return basis, _substituted(triangle[:n, :n], right[:n])


def _turned(turns: list, column: np.ndarray, right: np.ndarray, below: Any, k: int) -> None:
    """Rotate what is below the last element of a column into it, and the right side alike."""
    size = np.hypot(np.abs(column[k]), below)
    if not size:
        turns.append((1, 0))
        return
    c = np.abs(column[k]) / size
    phase = column[k] / np.abs(column[k]) if column[k] else 1
    d = phase * below / size
    turns.append((c, d))
    column[k] = phase * size
    right[k], right[k + 1] = c * right[k], -np.conj(d) * right[k]


def _substituted(triangle: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solution of a triangular system, zero where its matrix is singular."""
    out = right.copy()
    for k in reversed(range(out.shape[0])):
        out[k] -= triangle[k, k + 1:] @ out[k + 1:]
        out[k] = out[k] / triangle[k, k] if triangle[k, k] else 0
    return out


METHODS = {"cg": cg, "bicgstab": bicgstab, "gmres": gmres}
OF_MATRIX = by_matrix, lambda matrix: by_matrix(matrix.mH.resolve_conj())
OF_ENTRIES = by_entries, lambda rows, cols, values: by_entries(
    cols, rows, values.conj().resolve_conj())
