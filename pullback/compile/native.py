"""Builds and loads the C runtime (`runtime/*.c`), once per machine, and hands out its functions.

Read `runtime/pb.h` for what generated code sees of it, and `unit.py` for how a graph uses it.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sysconfig
from pathlib import Path
from types import ModuleType

from . import cache, toolchain

SOURCES = Path(__file__).parent / "runtime"

_module: ModuleType | None = None
_text: str | None = None


def runtime_text() -> str:
    """All runtime sources in one string; part of every cache key."""
    global _text
    if _text is None:
        _text = "\n".join(p.read_text() for p in sorted(SOURCES.glob("*.[ch]")))
    return _text


def build(source: Path, name: str, extra: tuple[str, ...] = ()) -> Path:
    """Compile a C file into the cache under `name`, unless it is there already."""
    target = cache.path(name)
    if target.exists():
        return target
    working = cache.working(".so")
    try:
        toolchain.find().build(str(source), str(working), ("-I", str(SOURCES), *extra))
        return cache.publish(working, name)
    finally:
        working.unlink(missing_ok=True)


def runtime() -> ModuleType:
    """The runtime extension; CompilerNotFound when there is no way to build it."""
    global _module
    if _module is None:
        _module = _load()
    return _module


def _load() -> ModuleType:
    import numpy

    name = "runtime-" + cache.key(runtime_text(), toolchain.find().identity, cache.python_abi())
    extra = ("-I", sysconfig.get_paths()["include"], "-I", numpy.get_include(), "-lpthread", "-ldl")
    for attempt in range(2):
        path = build(SOURCES / "runtime.c", name, extra)
        try:
            loader = importlib.machinery.ExtensionFileLoader("pullback_runtime", str(path))
            spec = importlib.util.spec_from_file_location("pullback_runtime", path, loader=loader)
            module = importlib.util.module_from_spec(spec)
            loader.exec_module(module)
            return module
        except ImportError:
            cache.discard(name)  # a truncated or foreign file: make it again, once
            if attempt:
                raise
    raise AssertionError("unreachable")


def set_num_threads(n: int) -> None:
    """Use n threads (the caller included) for compiled graphs."""
    runtime().set_threads(n)


def get_num_threads() -> int:
    """How many threads compiled graphs use."""
    return runtime().get_threads()
