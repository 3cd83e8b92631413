"""Reverse mode as PyTorch users know it: engine, grad modes, gradcheck."""

import sys
from typing import TYPE_CHECKING, Any

from ..facade import Shelf
from .grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from .gradients import backward, grad

if TYPE_CHECKING:  # for editors and type checkers
    from . import anomaly_mode as anomaly_mode
    from . import forward_ad as forward_ad
    from . import function as function
    from . import functional as functional
    from . import graph as graph
    from . import profiler as profiler
    from .anomaly_mode import detect_anomaly as detect_anomaly
    from .anomaly_mode import set_detect_anomaly as set_detect_anomaly
    from .differences import GradcheckError as GradcheckError
    from .differences import gradcheck as gradcheck
    from .differences import gradgradcheck as gradgradcheck
    from .function import Function as Function
    from .variable import Variable as Variable

__all__ = [
    "Function",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]


_FROM = {  # name -> the module that has it
    "gradcheck": "differences",
    "gradgradcheck": "differences",
    "GradcheckError": "differences",
    "Function": "function",
    "Variable": "variable",
    "set_multithreading_enabled": "variable",
    "is_multithreading_enabled": "variable",
    "is_view_replay_enabled": "grad_mode",
    "SavedTensor": "graph",
    "_profiler_enabled": "profiler",
    "_force_original_view_tracking": "grad_mode",
    "_unsafe_preserve_version_counter": "graph",
    "detect_anomaly": "anomaly_mode",
    "set_detect_anomaly": "anomaly_mode",
}
_MODULES = ("anomaly_mode", "forward_ad", "function", "functional", "graph", "profiler")


def __getattr__(name: str) -> Any:
    if name in _FROM or name in _MODULES:
        import importlib

        module = importlib.import_module(f".{_FROM.get(name, name)}", __name__)
        return getattr(module, name) if name in _FROM else module
    from ..facade import elsewhere

    return elsewhere(__name__, name)


sys.modules[__name__].__class__ = Shelf
