"""Loads `runtime/sparse.c`: products with the entries of a sparse matrix, shared by threads, and
steps of optimizers on the rows of a table."""

from __future__ import annotations

import ctypes
import os
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from . import native, toolchain
from .eager_libraries import EagerLibrary
from .errors import CompilerFailed

_NAMES = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}
ALONE = 1 << 17  # multiplications that are not worth a thread


class _Job(ctypes.Structure):
    """What `pb_entries` of the runtime is."""

    _fields_ = (
        *[(name, ctypes.c_void_p) for name in (
            "rows", "cols", "starts", "order", "values", "x", "y", "out")],
        *[(name, ctypes.c_int64) for name in (
            "count", "width", "size", "depth", "alone", "wrap")])


def _typed(loaded: ctypes.CDLL) -> None:
    pointer, count = ctypes.c_void_p, ctypes.c_int64
    for kind in _NAMES.values():
        for name in ("spmm", "sddmm"):
            product = getattr(loaded, f"pb_{name}_{kind}")
            product.argtypes, product.restype = (ctypes.POINTER(_Job),), count
    loaded.pb_look.argtypes, loaded.pb_look.restype = (ctypes.POINTER(_Job),), ctypes.c_int
    loaded.pb_order.argtypes = (pointer, count, count, pointer, pointer)
    loaded.pb_order.restype = None
    for kind in _NAMES.values():
        adam = getattr(loaded, f"pb_rows_adam_{kind}")
        adam.argtypes = (*[pointer] * 2, *[count] * 3, *[pointer] * 5, count, *[pointer] * 2)
        adam.restype = ctypes.c_int
    native.runtime().add_sparse(loaded._name)  # whose threads it takes


_library = EagerLibrary("sparse", ("-O3", "-ffp-contract=off"), _typed,
                        ("entries.h", "vec.h", "pb.h"))
timed = _library.timed


def library(dtype: np.dtype) -> ctypes.CDLL | None:
    """The library, if there is one and it knows a dtype."""
    return _library.earned() if dtype in _NAMES else None


def demand() -> None:
    """Load the library for generated code; CompilerFailed where it cannot be built."""
    if _library.get(True) is None:
        raise CompilerFailed(list(toolchain.find().command), "it cannot be built or loaded",
                             str(_library.source))


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


@dataclass(slots=True)
class _Pattern:
    """What is known of entries that nobody can write: where their rows begin, and their order."""

    ties: tuple[weakref.ref, weakref.ref]  # to their rows and columns
    starts: np.ndarray
    order: np.ndarray | None  # of entries that are not in the order of their rows
    cols: np.ndarray  # in this order


_patterns: dict[tuple, _Pattern] = {}  # by the ids of rows and columns, and the matrix's sizes


def _pattern(found: ctypes.CDLL, rows, cols, size: int, depth: int) -> _Pattern | None:
    """What is known of entries, if nobody can write them and none is outside."""
    if rows.flags.writeable or cols.flags.writeable:
        return None
    key = id(rows), id(cols), size, depth
    known = _patterns.get(key)
    if known is not None and known.ties[0]() is rows and known.ties[1]() is cols:
        return known
    job = _job((rows, cols, *[None] * 6), size, depth, 0)
    kind = found.pb_look(job)
    if kind == 2:
        return None
    starts, order = np.empty(size + 1, np.int64), np.empty(rows.size, np.int64) if kind else None
    found.pb_order(rows.ctypes.data, rows.size, size, starts.ctypes.data,
                   None if order is None else order.ctypes.data)

    def gone(_: weakref.ref) -> None:
        _patterns.pop(key, None)

    _patterns[key] = known = _Pattern((weakref.ref(rows, gone), weakref.ref(cols, gone)), starts,
                                      order, cols if order is None else cols[order])
    return known


def _job(arrays: tuple, size: int, depth: int, width: int) -> _Job:
    at = [None if a is None else a.ctypes.data for a in arrays]
    return _Job(*at, arrays[0].size, width, size, depth, ALONE)


def spmm(found: ctypes.CDLL, rows, cols, values, dense, size: int) -> np.ndarray | None:
    """Sums of rows of `dense`, as `ops/sparse_products.py` says; all arrays are contiguous.

    None where an entry is outside of the matrix."""
    depth, width = dense.shape
    out, starts, order = np.empty((size, width), dense.dtype), None, None
    known = _pattern(found, rows, cols, size, depth)
    if known is not None:
        starts, order, cols = known.starts, known.order, known.cols
    job = _job((rows, cols, starts, order, values, dense, None, out), size, depth, width)
    return None if getattr(found, f"pb_spmm_{_NAMES[dense.dtype]}")(job) else out


def sddmm(found: ctypes.CDLL, rows, cols, x, y) -> np.ndarray | None:
    """Products of rows at entries; all arrays are contiguous.  None where one is outside."""
    out = np.empty(rows.size, x.dtype)
    known = _pattern(found, rows, cols, len(x), len(y))
    job = _job((rows, cols, None if known is None else known.starts, None, None, x, y, out),
               len(x), len(y), x.shape[1])
    return None if getattr(found, f"pb_sddmm_{_NAMES[x.dtype]}")(job) else out


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
