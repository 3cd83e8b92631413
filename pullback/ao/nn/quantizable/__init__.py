"""Layers that are written out in parts, so that `prepare` can observe what lies between these."""

from ....facade import elsewhere as _elsewhere
from . import modules
from .modules import *
from .modules import __all__ as _layers

__all__ = [*_layers, "modules"]


def __getattr__(name: str):
    return _elsewhere(__name__, name)
