"""Builds and loads the C runtime (`runtime/*.c`), once per machine, and hands out its functions.

Read `runtime/pb.h` for what generated code sees of it, and `unit.py` for how a graph uses it.
"""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import sysconfig
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from ..capture import fast_guards as short
from ..core.handle import Tensor
from ..threads.state import renewed
from . import cache, toolchain
from .errors import CompilerFailed, CompilerNotFound

SOURCES = Path(__file__).parent / "runtime"

_module: ModuleType | None = None
_text: str | None = None
_refused: dict[str, CompilerFailed] = {}
_loading = renewed(threading.RLock())


def runtime_text() -> str:
    """All runtime sources in one string; part of every cache key."""
    global _text
    if _text is None:
        _text = "\n".join(p.read_text() for p in sorted(SOURCES.glob("*.[ch]")))
    return _text


def build(source: Path, name: str, extra: tuple[str, ...] = ()) -> Path:
    """Compile a C file into the cache under `name`, unless it is there already."""
    if cache.intact(name):
        cache.touch(name)
        return cache.path(name)
    working = cache.working(".so")
    try:
        toolchain.find().build(str(source), str(working), ("-I", str(SOURCES), *extra))
        cache.count("compiled")
        return cache.publish(working, name)
    finally:
        working.unlink(missing_ok=True)


def build_text(text: str, key: str, name: str, extra: tuple[str, ...] = ()) -> Path:
    """Compile C text, kept as `key`.c for people to read, into the cache under `name`."""
    while True:
        source = cache.path(f"{key}.c")
        if not cache.intact(name):
            source = cache.write_source(source.name, text)
        try:
            return build(source, name, extra)
        except (CompilerFailed, FileNotFoundError):
            if source.exists():
                raise  # else another process has emptied the cache meanwhile


def runtime() -> ModuleType:
    """The runtime extension; CompilerNotFound or CompilerFailed when it cannot be built."""
    if _module is None:
        with _loading:
            _find_runtime()
    return _module


def _find_runtime() -> None:
    global _module
    if _module is not None:  # another thread has found it
        return
    name = _runtime_name()
    if name in _refused:
        raise _refused[name]
    try:
        _finish(name)
        _module = _load(name)
        short.same_call = functools.partial(_module.same_call, Tensor)
    except CompilerFailed as error:
        _refused[name] = error  # it would only fail again, slowly
        raise


def share_threads(share: Callable, build: bool) -> None:
    """Let another extension use the runtime's threads, if that is there or may be built."""
    try:
        if build or _module is not None or cache.intact(_runtime_name()):
            share(runtime().support())
    except (CompilerFailed, CompilerNotFound, OSError):
        pass  # then it has one thread


class _Build(threading.Thread):
    """A build that runs beside other work; what went wrong is kept for who needs its result."""

    def __init__(self, work: Callable):
        super().__init__()
        self.work, self.error = work, None

    def run(self) -> None:
        try:
            self.work()
        except (CompilerFailed, OSError) as error:
            self.error = error


_started: dict[str, _Build] = {}  # builds under way, by name in the cache


def _start(name: str, work: Callable) -> None:
    """Begin to build a library while other things are compiled, unless it is there already."""
    if name not in _started and not cache.intact(name):
        _started[name] = _Build(work)
        _started[name].start()


def _finish(name: str) -> None:
    """Wait for a build that was begun; raises what it failed with."""
    if name in _started:
        build = _started.pop(name)
        build.join()
        if build.error is not None:
            raise build.error


def start_runtime() -> None:
    """Begin to build the runtime, or raise at once what its build has failed with before."""
    name = _runtime_name()
    if name in _refused:
        raise _refused[name]
    if _module is None:
        _start(name, lambda: _build_runtime(name))


def _runtime_name() -> str:
    return "runtime-" + cache.key(runtime_text(), toolchain.find().identity, cache.python_abi())


def python_headers() -> tuple[str, ...]:
    """Flags with which the compiler finds the headers of Python and NumPy."""
    import numpy

    return "-I", sysconfig.get_paths()["include"], "-I", numpy.get_include()


def _build_runtime(name: str) -> Path:
    return build(SOURCES / "runtime.c", name, (*python_headers(), "-lpthread", "-ldl"))


def _load(name: str) -> ModuleType:
    for attempt in range(2):
        path = _build_runtime(name)
        try:
            loader = importlib.machinery.ExtensionFileLoader("pullback_runtime", str(path))
            spec = importlib.util.spec_from_file_location("pullback_runtime", path, loader=loader)
            module = importlib.util.module_from_spec(spec)
            loader.exec_module(module)
            return module
        except ImportError as error:
            cache.discard(name)  # made for another machine: make it again, once
            if attempt:
                command = list(toolchain.find().command)
                raise CompilerFailed(command, str(error), str(SOURCES / "runtime.c")) from error
    raise AssertionError("unreachable")


_products: set[str] = set()  # "f" and "d", once loaded


def _product_name(kind: str) -> str:
    return f"product-{kind}-" + cache.key(
        runtime_text(), toolchain.find().identity, cache.python_abi()
    )


def _build_product(kind: str) -> Path:
    wide = f"-DPB_DOUBLE={int(kind == 'd')}"
    return build(SOURCES / "product.c", _product_name(kind), (wide,))


def start_product(kind: str) -> None:
    """Begin to build the matrix product of a type, while other things are compiled."""
    if kind not in _products and kind != "sparse":
        _start(_product_name(kind), lambda: _build_product(kind))


def has_product(kind: str) -> bool:
    """Has the matrix product of a type been built, and the runtime, too?"""
    try:
        return cache.intact(_product_name(kind)) and cache.intact(_runtime_name())
    except CompilerNotFound:
        return False


def product(kind: str) -> None:
    """Load the matrix product of a type ("f" or "d"), or those of sparse matrices, into the
    runtime."""
    if kind in _products:
        return
    if kind == "sparse":
        from . import sparse_loops

        return sparse_loops.demand()
    _finish(_product_name(kind))
    for attempt in range(2):
        path = _build_product(kind)
        try:
            runtime().add_product(kind == "d", str(path))
            break
        except OSError as error:
            cache.discard(path.name)  # made for another machine: make it again, once
            if attempt:
                command = list(toolchain.find().command)
                raise CompilerFailed(command, str(error), str(SOURCES / "product.c")) from error
    _products.add(kind)


def set_num_threads(n: int) -> None:
    """Use n threads (the caller included) for compiled graphs."""
    runtime().set_threads(n)


def get_num_threads() -> int:
    """How many threads compiled graphs use."""
    return runtime().get_threads()
