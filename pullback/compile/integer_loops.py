"""Loads `runtime/integers.c`: products of 8-bit integers and linear layers of them, by threads."""

from __future__ import annotations

import ctypes

import numpy as np

from .eager_libraries import EagerLibrary
from .sparse_loops import _shared

_ALONE = 1 << 22  # multiplications that are not worth a thread


def _typed(loaded: ctypes.CDLL) -> None:
    pointer, count, real, small = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float, ctypes.c_int32
    for name, given in (
            ("extremes", (pointer, count, pointer)),
            ("round", (pointer, pointer, count, count, count, real, real)),
            ("sums", (pointer, pointer, count, count, count)),
            ("products", (*[pointer] * 4, *[count] * 4, small, count, count)),
            ("linear", (*[pointer] * 5, count, *[pointer] * 3, *[count] * 4, real, small,
                        count, count))):
        function = getattr(loaded, f"pb_int_{name}")
        function.argtypes, function.restype = given, None


_library = EagerLibrary("integers", ("-O3", "-ffp-contract=off"), _typed)
timed = _library.timed


def library() -> ctypes.CDLL | None:
    """The library, if there is one."""
    return _library.earned()


def _columns(rows: int, width: int, columns: int) -> list[tuple[int, int]]:
    """The rows of the right matrix that each thread has, in sixteens."""
    from .. import get_num_threads

    threads = max(1, min(get_num_threads(), rows * width * columns // _ALONE))
    step = -(-columns // threads)
    step = -(-step // 16) * 16
    return [(k, min(k + step, columns)) for k in range(0, columns, step)]


def _padded(rows: int, width: int) -> np.ndarray:
    return np.empty((rows, -(-width // 64) * 64), np.uint8)


def products(found: ctypes.CDLL, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`a @ b.T` in int32; b is int8."""
    rows, width = a.shape
    ints = _padded(rows, width)
    shift = 0
    if a.dtype == np.int8:  # from -128 on
        shift = 128
        ints[:, :width] = a.view(np.uint8) ^ np.uint8(128)
    else:
        ints[:, :width] = a
    b = np.ascontiguousarray(b)
    out = np.empty((rows, b.shape[0]), np.int32)
    of_rows = np.empty(b.shape[0], np.int32)
    given = (ints.ctypes.data, b.ctypes.data, out.ctypes.data, of_rows.ctypes.data, rows, width,
             ints.shape[1], b.shape[0], shift)
    _shared(_columns(rows, width, b.shape[0]), lambda *part: found.pb_int_products(*given, *part))
    return out


def extremes(found: ctypes.CDLL, x: np.ndarray) -> tuple[float, float]:
    """The least and the largest number, or 0."""
    x = np.ascontiguousarray(x)
    out = np.empty(2, np.float32)
    found.pb_int_extremes(x.ctypes.data, x.size, out.ctypes.data)
    return float(out[0]), float(out[1])


def linear(found: ctypes.CDLL, x, weight, scale, zero_point, bias, step: float, zero: int,
           out: np.ndarray) -> None:
    """The linear layer of `ops/integer_products.py`, into `out`."""
    x, weight = np.ascontiguousarray(x), np.ascontiguousarray(weight)
    rows, width = x.shape
    ints, sums = _padded(rows, width), np.empty(rows, np.int32)
    stride = ints.shape[1]
    step = np.float32(step)
    found.pb_int_round(x.ctypes.data, ints.ctypes.data, rows, width, stride,
                       np.float32(1) / step, zero)
    found.pb_int_sums(ints.ctypes.data, sums.ctypes.data, rows, width, stride)
    scale = np.ascontiguousarray(scale, np.float32)
    offset = np.ascontiguousarray(zero_point, np.int32)
    bias = None if bias is None else np.ascontiguousarray(bias, np.float32)
    of_rows = np.empty(weight.shape[0], np.int32)
    given = (ints.ctypes.data, sums.ctypes.data, weight.ctypes.data, scale.ctypes.data,
             offset.ctypes.data, int(scale.size > 1), None if bias is None else bias.ctypes.data,
             out.ctypes.data, of_rows.ctypes.data, rows, width, stride, weight.shape[0], step, zero)
    _shared(_columns(rows, width, weight.shape[0]),
            lambda *part: found.pb_int_linear(*given, *part))
