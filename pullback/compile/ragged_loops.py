"""Loads `runtime/ragged.c`: attention over parts of different lengths, shared by threads."""

from __future__ import annotations

import ctypes

import numpy as np

from .eager_libraries import EagerLibrary
from .sparse_loops import _shared

_NAMES = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}
_ALONE = 1 << 18  # multiplications that are not worth a thread


class _Job(ctypes.Structure):
    """What `job` of the library is."""

    _fields_ = (
        ("arrays", ctypes.c_void_p * 9), ("head_steps", ctypes.c_int64 * 9),
        ("steps", ctypes.c_int64 * 9), ("query_offsets", ctypes.c_void_p),
        ("key_offsets", ctypes.c_void_p), ("order", ctypes.c_void_p), ("parts", ctypes.c_int64),
        ("heads", ctypes.c_int64), ("width", ctypes.c_int64), ("value_width", ctypes.c_int64),
        ("longest_key", ctypes.c_int64), ("causal", ctypes.c_int64), ("scale", ctypes.c_double))


def _typed(loaded: ctypes.CDLL) -> None:
    for kind in _NAMES.values():
        function = getattr(loaded, f"pb_ragged_{kind}")
        function.argtypes = (ctypes.POINTER(_Job), ctypes.POINTER(ctypes.c_int64), ctypes.c_int)
        function.restype = ctypes.c_int


_library = EagerLibrary("ragged", ("-O3",), _typed, ("ragged.h", "vec.h", "vmath.h", "pb.h"))
timed = _library.timed


def library(dtype: np.dtype) -> ctypes.CDLL | None:
    """The library, if there is one and it knows a dtype."""
    return _library.earned() if dtype in _NAMES else None


def _rows(array: np.ndarray) -> np.ndarray:
    """An array whose rows the library can read: their numbers are neighbours."""
    near = array.shape[-1] < 2 or array.strides[-1] == array.itemsize
    whole = not any(step % array.itemsize for step in array.strides)
    return array if near and whole and array.flags.aligned else np.ascontiguousarray(array)


def _run(found: ctypes.CDLL, arrays: list[np.ndarray], offsets: tuple[np.ndarray, np.ndarray],
         is_causal: bool, scale: float, backward: bool) -> None:
    """Have the library fill the last arrays; all are (places, heads, width)."""
    from .. import get_num_threads

    heads, size = arrays[0].shape[1], arrays[0].itemsize
    at = [np.ascontiguousarray(places, np.int64) for places in offsets]
    lengths = [np.diff(places) for places in at]
    work = lengths[0] * lengths[1]
    order = np.argsort(-work, kind="stable")  # the longest first: threads end together
    job = _Job(
        (ctypes.c_void_p * 9)(*[a.ctypes.data for a in arrays]),
        (ctypes.c_int64 * 9)(*[a.strides[1] // size for a in arrays]),
        (ctypes.c_int64 * 9)(*[a.strides[0] // size for a in arrays]),
        at[0].ctypes.data, at[1].ctypes.data, order.ctypes.data, order.size, heads,
        arrays[1].shape[2], arrays[2].shape[2], int(lengths[1].max(initial=0)), is_causal, scale)
    function, begun = getattr(found, f"pb_ragged_{_NAMES[arrays[0].dtype]}"), ctypes.c_int64(0)
    products = int(work.sum()) * heads * (arrays[1].shape[2] + arrays[2].shape[2])
    threads = max(1, min(get_num_threads(), products // _ALONE, order.size * heads))
    failed = []

    def work_of_one(number: int) -> None:
        if function(job, begun, backward):
            failed.append(number)

    _shared([(number,) for number in range(threads)], work_of_one)
    if len(failed) == threads:
        raise MemoryError("attention: no memory for a block of the scores")


def forward(found: ctypes.CDLL, query, key, value, offsets: tuple, is_causal: bool, scale: float,
            out, total) -> None:
    """Fill the output and the logarithms of the sums."""
    given = [_rows(a) for a in (query, key, value)]
    _run(found, [*given, out, total[..., None]], offsets, is_causal, scale, False)


def backward(found: ctypes.CDLL, grad, query, key, value, out, total, offsets: tuple,
             is_causal: bool, scale: float, grads: tuple) -> None:
    """Fill the gradients of query, key and value."""
    given = (query, key, value, out, np.ascontiguousarray(total)[..., None], grad)
    _run(found, [*map(_rows, given), *grads], offsets, is_causal, scale, True)
