"""Helpers around modules: clipping, vectors of parameters, parametrizations, pruning, sequences.

Each file is loaded when one of its names is used for the first time.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from ...facade import Shelf
from . import rnn as rnn
from .spectral_norm import remove_spectral_norm, spectral_norm  # functions named as their files
from .weight_norm import remove_weight_norm, weight_norm

if TYPE_CHECKING:  # for editors and type checkers
    from . import (
        clip_grad,
        convert_parameters,
        fusion,
        init,
        memory_format,
        parametrizations,
        parametrize,
        prune,
        stateless,
    )
    from .clip_grad import *
    from .convert_parameters import *
    from .fusion import *
    from .init import *
    from .memory_format import *

# file -> functions that it offers here
_FILES = {
    "clip_grad": "clip_grad_norm clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ "
                 "get_total_norm",
    "convert_parameters": "parameters_to_vector vector_to_parameters",
    "fusion": "fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights",
    "init": "skip_init",
    "memory_format": "convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format",
    "parametrizations": "",
    "parametrize": "",
    "prune": "",
    "stateless": "",
}
_HOME = {name: file for file, names in _FILES.items() for name in names.split()}

__all__ = ["rnn", "spectral_norm", "remove_spectral_norm", "weight_norm", "remove_weight_norm",
           *_FILES, *_HOME]


def __getattr__(name: str) -> Any:
    file = _HOME.get(name, name)
    if file not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = importlib.import_module(f".{file}", __name__)
    if name in _HOME:
        value = getattr(value, name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})


sys.modules[__name__].__class__ = Shelf
