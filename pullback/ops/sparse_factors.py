"""LU factors of sparse matrices, by SciPy, and the last ones that were found.

The derivative of a solution is a solution with the same matrix, transposed, so factors are kept: a
few of them, for as long as there is the memory of the values that they were found from.  Whether
they are those of a matrix is seen from its numbers, as values may have been written since.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ..errors import LinAlgError, text, user_line

KEPT = 8  # matrices


class Factors:
    """The factors of one matrix, and what they were found from."""

    __slots__ = ("__weakref__", "entries", "found", "kind", "size", "tie")

    entries: Any
    found: Any

    def __init__(self, entries: tuple, kind: str, size: int, found: Any, owner: np.ndarray):
        self.entries, self.kind, self.size, self.found = entries, kind, size, found
        itself = weakref.ref(self)

        def forget(_: Any) -> None:
            gone = itself()
            if gone is not None:
                gone.found = gone.entries = None

        self.tie = weakref.ref(owner, forget)

    def turn_to(self, rows, cols, values) -> str:
        """What a matrix is of this one: itself "N", transposed "T", both and conjugated "H", only
        that "C"; empty if it is another."""
        ours = self.entries
        if ours is None or values.dtype != ours[2].dtype or values.shape != ours[2].shape:
            return ""
        if np.array_equal(values, ours[2]):
            conjugated = False
        elif values.dtype.kind == "c" and np.array_equal(values, ours[2].conj()):
            conjugated = True
        else:
            return ""
        if np.array_equal(rows, ours[0]) and np.array_equal(cols, ours[1]):
            return "C" if conjugated else "N"
        if np.array_equal(rows, ours[1]) and np.array_equal(cols, ours[0]):
            return "H" if conjugated else "T"
        return ""


_known: list[Factors] = []  # the last is the one that was used last


def factors_of(rows, cols, values, size: int, triangle: str = "",
               owner: Any = None) -> tuple[Any, str]:
    """The factors of a matrix by its entries, and how to turn them (`Factors.turn_to`).

    They are None where there are none: the matrix is singular.  A `triangle`, "upper" or "lower",
    is not permuted, and without zeros on its diagonal it is one of its own factors.  They are kept
    as long as the `owner`, an array, if that is not `values`.
    """
    global _known
    other = {"upper": "lower", "lower": "upper"}.get(triangle, "")
    for known in reversed(_known):
        found = known.found
        if found is None or known.size != size or known.kind not in (triangle, other):
            continue
        turn = known.turn_to(rows, cols, values)
        if turn and known.kind == (other if turn in "TH" else triangle):
            _known = [k for k in _known if k is not known and k.found is not None] + [known]
            return found, turn
    found = _factorized(rows, cols, values, size, bool(triangle))
    if found is not None:
        kept = tuple([np.array(a) for a in (rows, cols, values)])
        new = Factors(kept, triangle, size, found, _owner(values if owner is None else owner))
        _known = [k for k in _known if k.found is not None][1 - KEPT:] + [new]
    return found, "N"


def _owner(array: np.ndarray) -> np.ndarray:
    """The array whose memory another one shows."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _factorized(rows, cols, values, size: int, in_order: bool) -> Any:
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    matrix = csc_array((values, (rows, cols)), shape=(size, size))
    options = {"permc_spec": "NATURAL", "diag_pivot_thresh": 0.0} if in_order else {}
    try:
        return splu(matrix, **options)
    except RuntimeError as error:
        if "singular" not in str(error):
            raise
        return None


def turned_solve(found: Any, turn: str, right: np.ndarray) -> np.ndarray:
    """The solution by factors, for several right sides."""
    if turn == "C":
        return found.solve(np.ascontiguousarray(right.conj())).conj()
    return found.solve(np.ascontiguousarray(right), turn)


def solved(name: str, rows, cols, values, right: np.ndarray) -> np.ndarray:
    """The solution of a system; an error if the matrix is singular, NaN if it has NaN."""
    size = right.shape[0]
    if not right.size:
        return np.zeros(right.shape, right.dtype)
    found, turn = factors_of(rows, cols, values, size)
    if found is None:
        if not np.isfinite(values).all():
            return np.full(right.shape, np.nan, right.dtype)
        raise LinAlgError(text(
            f"{name}: The solver failed because the input matrix is singular ({user_line(2)})",
            f"matrix: {values.dtype}[{size}, {size}], {values.size} specified entries",
            "add a small number to its diagonal, or solve for least squares"))
    return turned_solve(found, turn, right)


def solved_triangle(rows, cols, values, right: np.ndarray, upper: bool, unit: bool) -> np.ndarray:
    """The solution of a triangular system, by the entries of that triangle alone."""
    size = right.shape[0]
    if not right.size:
        return np.zeros(right.shape, right.dtype)
    there = in_triangle(rows, cols, upper, unit)
    own = rows[there], cols[there], values[there]
    if unit:
        line = np.arange(size, dtype=rows.dtype)
        ones = np.ones(size, values.dtype)
        own = tuple([np.concatenate(p) for p in zip(own, (line, line, ones))])
    diagonal = np.zeros(size, values.dtype)
    np.add.at(diagonal, own[0][own[0] == own[1]], own[2][own[0] == own[1]])
    if (diagonal == 0).any() or not np.isfinite(own[2]).all():
        return _substituted(*own, diagonal, right, upper)
    found, turn = factors_of(*own, size, "upper" if upper else "lower", values)
    return turned_solve(found, turn, right)


def in_triangle(rows, cols, upper: bool, unit: bool):
    """Which entries does a triangular system read?"""
    if unit:
        return rows < cols if upper else rows > cols
    return rows <= cols if upper else rows >= cols


def _substituted(rows, cols, values, diagonal, right: np.ndarray, upper: bool) -> np.ndarray:
    """The solution row by row, whose numbers are not all finite."""
    from scipy.sparse import csr_array

    matrix = csr_array((values, (rows, cols)), shape=(right.shape[0], right.shape[0]))
    out = right.copy()
    with np.errstate(all="ignore"):
        for i in reversed(range(out.shape[0])) if upper else range(out.shape[0]):
            own = slice(matrix.indptr[i], matrix.indptr[i + 1])
            others = matrix.indices[own] != i
            known = matrix.data[own][others] @ out[matrix.indices[own][others]]
            out[i] = (out[i] - known) / diagonal[i]
    return out


def log_determinant(rows, cols, values, size: int) -> tuple:
    """(The sign or phase, the logarithm of the size) of a determinant."""
    real = np.zeros(0, values.dtype).real.dtype
    if not size:
        return np.ones((), values.dtype), np.zeros((), real)
    found, turn = factors_of(rows, cols, values, size)
    if found is None:
        bad = not np.isfinite(values).all()
        return (np.asarray(np.nan if bad else 0, values.dtype),
                np.asarray(np.nan if bad else -np.inf, real))
    diagonal = found.U.diagonal()
    length = np.abs(diagonal)
    sign = np.prod(diagonal / length) * _parity(found.perm_r) * _parity(found.perm_c)
    sign = sign.conj() if turn in "CH" else sign
    return np.asarray(sign, values.dtype), np.asarray(np.log(length).sum(), real)


def _parity(order: np.ndarray) -> int:
    """The sign of a permutation, by its cycles."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = order.size
    cycles = connected_components(
        csr_array((np.ones(n, np.bool_), (np.arange(n), order)), shape=(n, n)))[0]
    return -1 if (n - cycles) % 2 else 1
