"""Optimizers that update parameters in place from their gradients.

Each is given by a formula in a file of its own; `descent.py` says what follows from that,
`formula.py` in which language it is written.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from ..facade import Shelf

if TYPE_CHECKING:  # for editors and type checkers
    from . import lr_scheduler as lr_scheduler
    from . import swa_utils as swa_utils
    from ._adafactor import Adafactor as Adafactor
    from ._muon import Muon as Muon
    from ._stateless import (
        swap_in_optimizer_params_and_state as swap_in_optimizer_params_and_state,
    )
    from .adadelta import Adadelta as Adadelta
    from .adagrad import Adagrad as Adagrad
    from .adam import Adam as Adam
    from .adamax import Adamax as Adamax
    from .adamw import AdamW as AdamW
    from .asgd import ASGD as ASGD
    from .lbfgs import LBFGS as LBFGS
    from .nadam import NAdam as NAdam
    from .optimizer import Optimizer as Optimizer
    from .radam import RAdam as RAdam
    from .rmsprop import RMSprop as RMSprop
    from .rprop import Rprop as Rprop
    from .sgd import SGD as SGD
    from .sparse_adam import SparseAdam as SparseAdam

_HOME = {
    "Adadelta": "adadelta", "Adafactor": "_adafactor", "Adagrad": "adagrad", "Adam": "adam",
    "Adamax": "adamax", "AdamW": "adamw", "ASGD": "asgd", "LBFGS": "lbfgs", "Muon": "_muon",
    "NAdam": "nadam", "Optimizer": "optimizer", "RAdam": "radam", "RMSprop": "rmsprop",
    "Rprop": "rprop", "SGD": "sgd", "SparseAdam": "sparse_adam",
    "swap_in_optimizer_params_and_state": "_stateless",
}
_MODULES = ("lr_scheduler", "swa_utils", "_functional", "_multi_tensor")

__all__ = [*_HOME, "lr_scheduler", "swa_utils"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    elif name in _MODULES or name in _HOME.values():
        return importlib.import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


sys.modules[__name__].__class__ = Shelf
