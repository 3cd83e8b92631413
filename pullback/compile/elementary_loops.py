"""Loads `runtime/elementary.c`: ufuncs of elementary functions, rightly rounded, of float32."""

from __future__ import annotations

import ctypes
import itertools

import numpy as np

from .eager_libraries import EagerLibrary
from .sparse_loops import _shared

_ALONE = 1 << 17  # elements that are not worth a thread

functions: dict[str, np.ufunc] = {}  # by their names in C, once the library has been loaded


def _typed(loaded: ctypes.CDLL) -> None:
    make = ctypes.PyDLL(loaded._name).pb_elementary_functions  # it makes Python objects
    make.restype = ctypes.py_object
    try:
        functions.update(make())
    except (ImportError, RuntimeError, ValueError) as error:  # NumPy is another than the headers'
        raise OSError(str(error)) from error


_library = EagerLibrary("elementary", (), _typed, ("vec.h", "vmath.h", "pb.h"), python=True)
timed = _library.timed


def found(build: bool) -> dict[str, np.ufunc]:
    """The functions, none where there is no library; `build`: also if there was no work for it."""
    made = _library.get(True) if build else _library.earned()
    return functions if made is not None else {}


def shared(function: np.ufunc, x: np.ndarray, out: np.ndarray) -> np.ndarray:
    """A function of a large array in rows, into another or itself, a part by each thread."""
    from .. import get_num_threads

    threads = max(1, min(get_num_threads(), x.size // _ALONE))
    given, made = x.reshape(-1), out.reshape(-1)
    marks = [x.size * k // threads for k in range(threads + 1)]
    _shared(list(itertools.pairwise(marks)), lambda a, b: function(given[a:b], made[a:b]))
    return out
