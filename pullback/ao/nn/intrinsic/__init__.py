"""Layers that are taken together; `quantized` and `qat` have what stands for them."""

from ....facade import elsewhere as _elsewhere
from . import modules
from .modules import *
from .modules import __all__ as _layers
from .modules import _FusedModule

__all__ = [*_layers, "_FusedModule", "modules"]


def __getattr__(name: str):
    import importlib

    if name in ("qat", "quantized"):
        return importlib.import_module(f".{name}", __name__)
    return _elsewhere(__name__, name)
