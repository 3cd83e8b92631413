"""Sparse tensors as matrices of SciPy, and back: they share the memory of what both have alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..array.layout import layout
from ..core.handle import Tensor
from ..creation import from_numpy
from ..parts.rules import shown
from .tensor import CLASSES, Coo, SparseTensor

_FORMATS = ("csr", "csc", "bsr", "coo")


def from_scipy(matrix: Any, *, requires_grad: bool = False) -> SparseTensor:
    """A tensor that shows what a sparse matrix, or array, of SciPy has, in the same layout.

    Values and the integers of rows, columns and blocks are shared, coordinates are copied.
    Formats that tensors do not have (dia, lil, dok) become rows one behind the other.
    """
    if not hasattr(matrix, "format") or not hasattr(matrix, "tocsr"):
        raise errors.ArgumentError(errors.text(
            f"from_scipy() got a {type(matrix).__name__} ({errors.user_line(2)})",
            cure="give a matrix or an array of scipy.sparse"))
    if matrix.format not in _FORMATS:
        matrix = matrix.tocsr() if matrix.ndim == 2 else matrix.tocoo()
    values, shape = from_numpy(matrix.data), tuple(int(n) for n in matrix.shape)
    values = values.requires_grad_() if requires_grad else values
    if matrix.format == "coo":
        at = np.stack([np.asarray(c, np.int64) for c in _coords(matrix)])
        return Coo.make(from_numpy(at), values, shape, bool(matrix.has_canonical_format))
    if matrix.ndim != 2:
        raise errors.ShapeError(errors.text(
            f"from_scipy() got a {matrix.format} array of {matrix.ndim} dims "
            f"({errors.user_line(2)})", cure="array.tocoo()"))
    cls: Any = CLASSES[layout.known[f"sparse_{matrix.format}"]]
    return cls.make(from_numpy(matrix.indptr), from_numpy(matrix.indices), values, shape)


def _coords(matrix: Any) -> tuple:
    return matrix.coords if hasattr(matrix, "coords") else (matrix.row, matrix.col)


def to_scipy(t: Tensor, *, matrix: bool = False) -> Any:
    """A sparse array of SciPy, or a matrix, that shares the memory of a tensor."""
    import scipy.sparse as sp

    if not isinstance(t, SparseTensor):
        raise errors.LayoutError(errors.text(
            f"to_scipy() got a tensor with layout {t.layout} ({errors.user_line(2)})", shown(t),
            "x.to_sparse_csr() first"))
    if t.dense_dim() or not isinstance(t, Coo) and t.batch_dims:
        raise errors.LayoutError(errors.text(
            f"to_scipy(): matrices of SciPy have numbers as entries and are no batches "
            f"({errors.user_line(2)})", shown(t), "give it one matrix of a batch"))
    if t.dtype in (dt.float16, dt.bfloat16):
        raise errors.DTypeError(errors.text(
            f"to_scipy(): SciPy has no sparse matrices of {t.dtype} ({errors.user_line(2)})",
            shown(t), "x.float() first"))
    parts = [getattr(t, n).numpy() for n in t.names]
    if isinstance(t, Coo):
        make = sp.coo_matrix if matrix else sp.coo_array
        out = make((parts[1], tuple(parts[0])), shape=tuple(t.shape), copy=False)
        out.has_canonical_format = bool(t.coalesced)
        return out
    make = getattr(sp, f"{t.kind}_{'matrix' if matrix else 'array'}")
    return make((parts[2], parts[1], parts[0]), shape=tuple(t.shape), copy=False)
