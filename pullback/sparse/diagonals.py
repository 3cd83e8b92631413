"""`spdiags`: a sparse matrix from some of its diagonals.

Where the entries are depends on the offsets and the sizes alone; the values are those of the
diagonals at these places, so the gradient comes back to what is used of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..array.layout import layout as layouts
from ..core.handle import Tensor, make
from ..parts.rules import shown
from ..table.packets import ops
from .construct import title
from .convert import convert
from .invariants import _KINDS
from .tensor import Coo, SparseTensor

_LAYOUTS = [layouts.known[f"sparse_{kind}"] for kind in ("coo", "csr", "csc")]


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any = None) -> Tensor:
    """A sparse matrix with the rows of `diagonals` on the diagonals with some offsets.

    An offset below zero is below the main diagonal.  The column of an entry says which number of
    a row it is, so an offset k above zero leaves out the first k.
    """
    return ops._spdiags(diagonals, offsets, shape, layout)


def made_of(diagonals: Tensor, offsets: Tensor, shape: Any, layout: Any) -> Tensor:
    """The same of arguments whose types are known."""
    diagonals, offsets, shape = _checked(diagonals, offsets, shape, layout)
    n, m = shape
    width = diagonals.shape[1]
    numbers = [int(k) for k in offsets.tolist()]
    if len(set(numbers)) != len(numbers):
        raise errors.RefusedValue(errors.text(
            f"Offset tensor contains duplicate values ({errors.user_line(2)})",
            f"offsets: {numbers}"))
    rows, cols, which = [], [], []
    for i, k in enumerate(numbers):
        first, end = max(k, 0), min(n + k, m, width)
        if n and m and end < first:
            raise errors.RefusedValue(errors.text(
                "spdiags: Trying to create tensor with negative dimension "
                f"{end - first}: the diagonal {k} of a matrix of size ({n}, {m}) has no place for "
                f"what is in {width} columns ({errors.user_line(2)})", f"offsets: {numbers}"))
        at = np.arange(first, max(end, first), dtype=np.int64)
        rows.append(at - k)
        cols.append(at)
        which.append(at + i * width)
    places, chosen = np.zeros((2, 0), np.int64), np.zeros(0, np.int64)
    if numbers:
        places = np.stack([np.concatenate(rows), np.concatenate(cols)])
        chosen = np.concatenate(which)
    values = diagonals.reshape(len(numbers) * width)[make(chosen).to(diagonals.device)]
    made = Coo.make(make(places).to(diagonals.device), values, (n, m), chosen.size < 2)
    return made if layout in (None, made.layout) else convert(made, layout)


def _checked(diagonals: Any, offsets: Any, shape: Any, layout: Any) -> tuple:
    """(A row for each diagonal, their offsets, two sizes), or what PyTorch refuses."""
    shape = tuple([int(n) for n in shape])
    if isinstance(diagonals, SparseTensor):
        raise errors.LayoutError(errors.text(
            f"spdiags: diagonals are a dense tensor ({errors.user_line(3)})", shown(diagonals),
            "diagonals.to_dense()"))
    diagonals = diagonals.unsqueeze(0) if diagonals.ndim == 1 else diagonals
    offsets = offsets.reshape(1) if not offsets.ndim else offsets
    said = ""
    if diagonals.ndim != 2:
        said = "Diagonals must be vector or matrix"
    elif len(shape) != 2:
        said = "Output shape must be 2d"
    elif offsets.ndim != 1:
        said = "Offsets must be scalar or vector"
    elif diagonals.shape[0] != offsets.shape[0]:
        said = (f"Number of diagonals ({diagonals.shape[0]}) does not match the number of offsets "
                f"({offsets.shape[0]})")
    elif layout is not None and layout not in _LAYOUTS:
        said = ("Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got "
                f"{title(layout)}")
    elif offsets.dtype is not dt.int64:
        kind = _KINDS.get(str(offsets.dtype), str(offsets.dtype))
        said = f"Offset Tensor must have dtype Long but got {kind}"
    elif min(shape) < 0:
        said = f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}"
    if said:
        raise errors.RefusedValue(errors.text(
            f"{said} ({errors.user_line(3)})", f"diagonals: {list(diagonals.shape)}, offsets: "
            f"{offsets.dtype}{list(offsets.shape)}, shape: {list(shape)}"))
    return diagonals, offsets, shape
