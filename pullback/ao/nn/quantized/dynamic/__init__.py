"""Layers with a weight in 8 bits or half precision that round their input by themselves."""

from . import modules
from .modules import *
from .modules import __all__ as _layers

__all__ = [*_layers, "modules"]
