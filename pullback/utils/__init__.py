"""Helpers around the library: checkpoints and pytrees; each module is loaded when first used."""

import importlib

_MODULES = ("checkpoint", "pytree", "_pytree", "data")


def __getattr__(name: str):
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
