"""Loads `runtime/sparse.c`: products with the entries of a sparse matrix, shared by threads, and
steps of optimizers on the rows of a table."""

from __future__ import annotations

import ctypes
import itertools
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .eager_libraries import EagerLibrary

_NAMES = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}
_ALONE = 1 << 18  # multiplications that are not worth a thread


def _typed(loaded: ctypes.CDLL) -> None:
    pointer, count = ctypes.c_void_p, ctypes.c_int64
    for kind in _NAMES.values():
        spmm, sddmm = getattr(loaded, f"pb_spmm_{kind}"), getattr(loaded, f"pb_sddmm_{kind}")
        spmm.argtypes, spmm.restype = (*[pointer] * 5, *[count] * 5), None
        sddmm.argtypes, sddmm.restype = (*[pointer] * 5, *[count] * 3), None
        adam = getattr(loaded, f"pb_rows_adam_{kind}")
        adam.argtypes = (*[pointer] * 2, *[count] * 3, *[pointer] * 5, count, *[pointer] * 2)
        adam.restype = ctypes.c_int


_library = EagerLibrary("sparse", ("-O3", "-ffp-contract=off"), _typed)
timed = _library.timed


def library(dtype: np.dtype) -> ctypes.CDLL | None:
    """The library, if there is one and it knows a dtype."""
    return _library.earned() if dtype in _NAMES else None


_helpers: dict[int, ThreadPoolExecutor] = {}  # of this process, by its number


def _shared(parts: list[tuple], work) -> None:
    """Do the parts of some work, all but the last in other threads."""
    if len(parts) == 1:
        return work(*parts[0])
    if os.getpid() not in _helpers:
        _helpers.clear()  # those of a process that this one was forked from are not here
        _helpers[os.getpid()] = ThreadPoolExecutor(thread_name_prefix="sparse")
    waiting = [_helpers[os.getpid()].submit(work, *part) for part in parts[:-1]]
    work(*parts[-1])
    for done in waiting:
        done.result()
    return None


def _count(products: int) -> int:
    from .. import get_num_threads

    return max(1, min(get_num_threads(), products // _ALONE))


def spmm(found: ctypes.CDLL, rows, cols, values, dense, size: int) -> np.ndarray:
    """Sums of rows of `dense`, as `ops/sparse_products.py` says; all arrays are contiguous."""
    width, count = dense.shape[1], values.size
    out = np.zeros((size, width), dense.dtype)
    function = getattr(found, f"pb_spmm_{_NAMES[dense.dtype]}")
    given = [a.ctypes.data for a in (rows, cols, values, dense, out)]
    threads = _count(count * width)
    if threads == 1:
        parts = [(0, count, 0, width)]
    elif bool((rows[1:] >= rows[:-1]).all()):  # in order: each thread has rows of its own
        marks = [0]
        for k in range(1, threads):
            at = int(np.searchsorted(rows, rows[count * k // threads]))
            marks.append(max(at, marks[-1]))
        parts = [(a, b, 0, width) for a, b in zip(marks, [*marks[1:], count])]
    else:
        step = -(-width // threads)
        step = -(-step // 16) * 16
        parts = [(0, count, a, min(a + step, width)) for a in range(0, width, step)]
    _shared(parts, lambda *part: function(*given, width, *part))
    return out


def sddmm(found: ctypes.CDLL, rows, cols, x, y) -> np.ndarray:
    """Products of rows at entries; all arrays are contiguous."""
    width, count = x.shape[1], rows.size
    out = np.empty(count, x.dtype)
    function = getattr(found, f"pb_sddmm_{_NAMES[x.dtype]}")
    given = [a.ctypes.data for a in (rows, cols, x, y, out)]
    threads = _count(count * width)
    marks = [count * k // threads for k in range(threads + 1)]
    _shared(list(itertools.pairwise(marks)), lambda *part: function(*given, width, *part))
    return out


def rows_adam(found: ctypes.CDLL, rows, grads, table, average, square, numbers: tuple) -> bool:
    """One step of Adam on rows, as the C text says; False where a row is outside of the table.

    All arrays are contiguous; `numbers` are those of the C text.
    """
    count, width = rows.size, table[:1].size
    slots = np.empty(1 << max(1, (2 * count - 1).bit_length()), np.int64)
    later, total = np.empty(count, np.int64), np.empty(width, table.dtype)
    given = np.array(numbers, np.float64)
    at = [a.ctypes.data for a in (table, average, square, given, slots)]
    return bool(getattr(found, f"pb_rows_adam_{_NAMES[table.dtype]}")(
        rows.ctypes.data, grads.ctypes.data, count, width, len(table), *at, slots.size,
        later.ctypes.data, total.ctypes.data))
