"""Layers with what follows them, for training."""

from . import modules
from .modules import *
from .modules import __all__ as _layers

__all__ = [*_layers, "modules"]
