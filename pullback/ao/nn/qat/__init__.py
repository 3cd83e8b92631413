"""Layers that round their weight as integers would, for training."""

from ....facade import elsewhere as _elsewhere
from . import modules
from .modules import *
from .modules import __all__ as _layers

__all__ = [*_layers, "modules"]


def __getattr__(name: str):
    import importlib

    if name == "dynamic":
        return importlib.import_module(f".{name}", __name__)
    return _elsewhere(__name__, name)
