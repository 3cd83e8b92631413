"""Optimizers that update parameters in place from their gradients.

Each is given by a formula in a file of its own; `descent.py` says what follows from that,
`formula.py` in which language it is written.
"""

from __future__ import annotations

import importlib

_HOME = {
    "Adadelta": "adadelta", "Adafactor": "_adafactor", "Adagrad": "adagrad", "Adam": "adam",
    "Adamax": "adamax", "AdamW": "adamw", "ASGD": "asgd", "LBFGS": "lbfgs", "Muon": "_muon",
    "NAdam": "nadam", "Optimizer": "optimizer", "RAdam": "radam", "RMSprop": "rmsprop",
    "Rprop": "rprop", "SGD": "sgd", "SparseAdam": "sparse_adam",
    "swap_in_optimizer_params_and_state": "_stateless",
}
_MODULES = ("lr_scheduler", "swa_utils", "_functional", "_multi_tensor")

__all__ = [*_HOME, "lr_scheduler", "swa_utils"]


def __getattr__(name: str):
    if name in _HOME:
        value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    elif name in _MODULES or name in _HOME.values():
        return importlib.import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value
