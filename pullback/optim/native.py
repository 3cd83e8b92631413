"""The updates of `optim/update.py` as native code, where there is a C compiler.

`install` is called by the first step over many elements; it builds `update.c` once per machine and
keeps the result in the disk cache.  Arrays that the C code does not take (other dtypes, gaps in
memory, GPU arrays) are left to NumPy.
"""

from __future__ import annotations

import ctypes
import math
from array import array
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).parent / "update.c"
_SUFFIX = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}
_SIZE, _REAL, _ADDRESS = ctypes.c_size_t, ctypes.c_double, ctypes.c_void_p


def load() -> ctypes.CDLL:
    """The compiled library; raises CompileError where it cannot be built."""
    from ..compile import cache, native, toolchain

    name = "optim-" + cache.key(SOURCE.read_text(), toolchain.find().identity)
    library = ctypes.CDLL(str(native.build(SOURCE, name)))
    for suffix in _SUFFIX.values():
        sgd, adam = getattr(library, f"sgd_{suffix}"), getattr(library, f"adam_{suffix}")
        sgd.argtypes = [_SIZE, *[_ADDRESS] * 3, _REAL]
        adam.argtypes = [_SIZE, *[_ADDRESS] * 6, *[_REAL] * 5]
        sgd.restype = adam.restype = None
    return library


def install() -> bool:
    """Use native updates from now on; False where there is no compiler."""
    from ..compile.errors import CompileError
    from . import update

    try:
        library = load()
    except (CompileError, OSError):
        return False

    def sgd(params, grads, buffers, fresh, lr, momentum, dampening, weight_decay, nesterov,
            maximize):
        suffix = None if momentum or weight_decay else _common(params, grads)
        if suffix is None:
            return False
        tables = [_addresses(params), _addresses(grads), array("Q", [p.size for p in params])]
        getattr(library, f"sgd_{suffix}")(len(params), *map(_start, tables),
                                          lr if maximize else -lr)
        return True

    def adam(params, grads, averages, squares, maxima, steps, lr, beta1, beta2, eps,
             weight_decay, decoupled, maximize):
        if any(top is not None for top in maxima):
            return False
        suffix = _common(params, grads, averages, squares)
        if suffix is None:
            return False
        numbers = array("d")
        for step in steps:
            root = math.sqrt(1 - beta2**step)
            numbers.extend((lr / (1 - beta1**step) * root, eps * root))
        tables = [_addresses(params), _addresses(grads), _addresses(averages),
                  _addresses(squares), array("Q", [p.size for p in params]), numbers]
        getattr(library, f"adam_{suffix}")(
            len(params), *map(_start, tables), beta1, beta2, -1.0 if maximize else 1.0,
            0.0 if decoupled else weight_decay, 1 - lr * weight_decay if decoupled else 1.0)
        return True

    update.use("sgd", sgd)
    update.use("adam", adam)
    return True


def _common(*lists) -> str | None:
    """The name of the dtype if all arrays share it and each parameter's arrays share an order."""
    dtype = lists[0][0].dtype
    suffix = _SUFFIX.get(dtype)
    if suffix is None:
        return None
    for row in zip(*lists, strict=True):
        for a in row:
            if type(a) is not np.ndarray or a.dtype != dtype:
                return None
        if not (all(a.flags.c_contiguous for a in row) or all(a.flags.f_contiguous for a in row)):
            return None
    return suffix


def _addresses(arrays) -> array:
    return array("Q", [a.__array_interface__["data"][0] for a in arrays])


def _start(table: array) -> int:
    return table.buffer_info()[0]
