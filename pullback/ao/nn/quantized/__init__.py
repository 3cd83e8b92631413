"""Quantised layers; `dynamic` has those that round their input by themselves."""

from ....facade import elsewhere as _elsewhere
from . import modules
from .modules import *
from .modules import __all__ as _layers

__all__ = [*_layers, "modules"]


def __getattr__(name: str):
    import importlib

    if name in ("dynamic", "functional"):
        return importlib.import_module(f".{name}", __name__)
    if name in ("LSTM", "MultiheadAttention"):
        return getattr(modules, name)
    return _elsewhere(__name__, name)
