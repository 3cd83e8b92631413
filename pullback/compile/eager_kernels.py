"""Builds and loads `runtime/eager.c`: kernels of eager execution, as a Python extension.

`array/native.py` says when, and puts the kernels in their places.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sysconfig
import threading
from collections.abc import Callable
from types import ModuleType

from .. import errors
from ..threads.state import fast as space
from . import cache, native, toolchain
from .errors import CompilerFailed, CompilerNotFound

_SOURCE = native.SOURCES / "eager.c"
_FILES = [native.SOURCES / name for name in (
    "eager.c", "eager.h", "rows.c", "windows.c", "vec.h", "vmath.h", "pb.h")]


_module: ModuleType | None = None


def maker(build: bool) -> Callable | None:
    """What makes a kernel in C of (name, the kernel of the table); None where there are none.

    Without `build` only if the library is in the cache.
    """
    global _module
    try:
        name = _name()
        if not build and not cache.intact(name):
            return None
        _module = _load(name)
        _module.ask(_convolution_missed)
        _module.find_places(errors.place, errors._own, errors.users)
        space["place"] = _module.place  # generated functions ask in every call that is recorded
        return _module.kernel
    except (CompilerFailed, CompilerNotFound, OSError):
        return None


def share_threads(build: bool) -> None:
    """Let kernels that have been loaded use the threads of the runtime."""
    if _module is not None:
        native.share_threads(_module.share, build)


def _convolution_missed(double: bool) -> None:
    """A convolution was called: bring that of its type, which takes a while if it must be built."""
    there = native.has_product("d" if double else "f")  # brought at once: all runs do the same
    if there or os.environ.get("PULLBACK_EAGER_KERNELS") == "1":
        _bring_convolution(double)
    else:
        threading.Thread(target=_bring_convolution, args=(double,), daemon=True).start()


def _bring_convolution(double: bool) -> None:
    try:
        native.product("d" if double else "f")
        _module.take_convolution(double, native.runtime().convolution(double))
    except (CompilerFailed, CompilerNotFound, OSError):
        pass  # NumPy goes on to do it


def _name() -> str:
    text = "\n".join([file.read_text() for file in _FILES])
    return "eager-" + cache.key(text, toolchain.find().identity, cache.python_abi())


def _load(name: str) -> ModuleType:
    import numpy

    extra = ("-I", sysconfig.get_paths()["include"], "-I", numpy.get_include())
    for attempt in range(2):
        path = native.build(_SOURCE, name, extra)
        try:
            loader = importlib.machinery.ExtensionFileLoader("pullback_eager", str(path))
            spec = importlib.util.spec_from_file_location("pullback_eager", path, loader=loader)
            module = importlib.util.module_from_spec(spec)
            loader.exec_module(module)
            return module
        except ImportError as error:
            cache.discard(name)  # made for another machine: make it again, once
            if attempt:
                command = list(toolchain.find().command)
                raise CompilerFailed(command, str(error), str(_SOURCE)) from error
    raise AssertionError("unreachable")
