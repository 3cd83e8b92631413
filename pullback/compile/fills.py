"""Loads `runtime/random.c`: random arrays in C, with the numbers that `array/random.py` makes."""

from __future__ import annotations

import ctypes

from ..array.generator import Generator
from .eager_libraries import EagerLibrary


def _typed(loaded: ctypes.CDLL) -> None:
    pointer, count, real = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float
    for name, numbers in {
        "words": (), "order": (), "uniform": (real, real), "normal": (real, real),
        "chances": (count,), "chances_bytes": (count,),
    }.items():  # fmt: skip
        function = getattr(loaded, f"pb_random_{name}")
        function.argtypes, function.restype = (pointer, pointer, count, *numbers), None
    Generator.by_c = loaded.pb_random_words


# -O3 vectorises the loops; fusing is where the source says, and nowhere else
_random = EagerLibrary("random", ("-O3", "-ffp-contract=off"), _typed)
library = _random.get
