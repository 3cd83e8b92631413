"""C libraries for eager execution: random numbers (`runtime/random.c`), sparse products.

A library is built when the work that it would have done has taken about as long as building does,
for the first time on a machine, and loaded where it has been built.  Without a compiler NumPy and
SciPy do the same, only slower.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

from . import cache, native, toolchain
from .errors import CompilerFailed, CompilerNotFound

_BUILD = 0.3  # seconds of work without a library, after which it is built


class _Timed:
    """A block that does what a library would do: its seconds count for building that."""

    def __init__(self, library: EagerLibrary):
        self.library = library

    def __enter__(self):
        self.begun = time.perf_counter()

    def __exit__(self, *exc):
        self.library.spent += time.perf_counter() - self.begun


class EagerLibrary:
    """A file of the runtime as a library of its own."""

    def __init__(self, name: str, flags: tuple[str, ...], typed: Callable[[ctypes.CDLL], None],
                 headers: tuple[str, ...] = (), python: bool = False):
        self.name, self.flags, self.typed = name, flags, typed
        self.python = python  # does it make objects of Python and NumPy?
        self.source = native.SOURCES / f"{name}.c"
        self.files = (self.source, *[native.SOURCES / header for header in headers])
        self.loaded: ctypes.CDLL | None = None
        self.refused = False
        self.looked = False  # was it looked for in the cache?
        self.spent = 0.0  # seconds of work that it would have done

    def timed(self) -> _Timed:
        """Work that the library would have done: enough of it, and the library is built."""
        return _Timed(self)

    def earned(self) -> ctypes.CDLL | None:
        """The library, which is built where there was enough work for it."""
        return self.get(self.spent > _BUILD)

    def get(self, build: bool) -> ctypes.CDLL | None:
        """The library, None where there is none; `build`: make it if it is not in the cache."""
        if self.loaded is None and not self.refused and (build or not self.looked):
            self.looked = True
            try:
                text = "".join([file.read_text() for file in self.files])
                name = f"{self.name}-" + cache.key(
                    text, toolchain.find().identity, cache.python_abi())
                if build or cache.intact(name):
                    flags = (*self.flags, *(native.python_headers() if self.python else ()))
                    found = ctypes.CDLL(str(native.build(self.source, name, flags)))
                    self.typed(found)
                    self.loaded = found
            except (CompilerFailed, CompilerNotFound, OSError, AttributeError):
                self.refused = True
        return self.loaded
