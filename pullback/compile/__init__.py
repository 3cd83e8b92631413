"""Graphs to C: schedule, memory plan, emitter, toolchain and the C runtime.

The entry is `backend.compile_graph`; read `backend.py` first, then `lower.py` (graph to values),
`schedule.py` (values to kernels) and `emit.py` (kernels to C); `sized.py` makes one library for all
sizes. Nothing here is imported before a graph is compiled: names are looked up on first use.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

_WHERE = {
    "compile_graph": "backend",
    "CompilerNotFound": "errors",
    "CompilerFailed": "errors",
    "CacheUnusable": "errors",
    "set_num_threads": "native",
    "get_num_threads": "native",
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Callable(types.ModuleType):
    """`pullback.compile(f)` and the package `pullback.compile` share a name: the module is
    callable.
    """

    def __call__(self, *args, **kwargs):
        from .api import compile
        return compile(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
