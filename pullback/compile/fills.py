"""Loads `runtime/random.c`: random arrays in C, with the numbers that `array/random.py` makes.

It is built when drawing has taken about as long as building does, for the first time on a machine,
and loaded where it has been built.  Without a compiler NumPy draws the same numbers, only slower.
"""

from __future__ import annotations

import ctypes

from ..array.generator import Generator
from . import cache, native, toolchain
from .errors import CompilerFailed, CompilerNotFound

_SOURCE = native.SOURCES / "random.c"
# -O3 vectorises the loops; fusing is where the source says, and nowhere else
_FLAGS = ("-O3", "-ffp-contract=off")

_library: ctypes.CDLL | None = None
_refused = False


def library(build: bool) -> ctypes.CDLL | None:
    """The library, None where there is none; `build`: make it if it is not in the cache."""
    global _library, _refused
    if _library is None and not _refused:
        try:
            name = "random-" + cache.key(_SOURCE.read_text(), toolchain.find().identity,
                                         cache.python_abi())
            if build or cache.intact(name):
                _library = _typed(ctypes.CDLL(str(native.build(_SOURCE, name, _FLAGS))))
        except (CompilerFailed, CompilerNotFound, OSError, AttributeError):
            _refused = True
    return _library


def _typed(loaded: ctypes.CDLL) -> ctypes.CDLL:
    pointer, count, real = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float
    for name, numbers in {
        "words": (), "order": (), "uniform": (real, real), "normal": (real, real),
        "chances": (count,), "chances_bytes": (count,),
    }.items():  # fmt: skip
        function = getattr(loaded, f"pb_random_{name}")
        function.argtypes, function.restype = (pointer, pointer, count, *numbers), None
    Generator.by_c = loaded.pb_random_words
    return loaded
