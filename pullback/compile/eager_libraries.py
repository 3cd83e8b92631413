"""C libraries for eager execution: random numbers (`runtime/random.c`), sparse products.

A library is built when the work that it would have done has taken about as long as building does,
for the first time on a machine, and loaded where it has been built.  Without a compiler NumPy and
SciPy do the same, only slower.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from . import cache, native, toolchain
from .errors import CompilerFailed, CompilerNotFound


class EagerLibrary:
    """A file of the runtime as a library of its own."""

    def __init__(self, name: str, flags: tuple[str, ...], typed: Callable[[ctypes.CDLL], None]):
        self.name, self.flags, self.typed = name, flags, typed
        self.source = native.SOURCES / f"{name}.c"
        self.loaded: ctypes.CDLL | None = None
        self.refused = False
        self.looked = False  # was it looked for in the cache?

    def get(self, build: bool) -> ctypes.CDLL | None:
        """The library, None where there is none; `build`: make it if it is not in the cache."""
        if self.loaded is None and not self.refused and (build or not self.looked):
            self.looked = True
            try:
                name = f"{self.name}-" + cache.key(
                    self.source.read_text(), toolchain.find().identity, cache.python_abi())
                if build or cache.intact(name):
                    found = ctypes.CDLL(str(native.build(self.source, name, self.flags)))
                    self.typed(found)
                    self.loaded = found
            except (CompilerFailed, CompilerNotFound, OSError, AttributeError):
                self.refused = True
        return self.loaded
