"""Reverse mode as PyTorch users know it: engine, grad modes, gradcheck."""

from .engine import backward, grad
from .grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

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


def __getattr__(name: str):
    if name in ("gradcheck", "gradgradcheck", "GradcheckError"):
        from . import differences

        return getattr(differences, name)
    if name in ("Function", "function"):
        import importlib

        module = importlib.import_module(".function", __name__)
        return module if name == "function" else module.Function
    if name in ("Variable", "set_multithreading_enabled"):
        from . import variable

        return getattr(variable, name)
    if name == "_force_original_view_tracking":
        from .grad_mode import _force_original_view_tracking

        return _force_original_view_tracking
    if name == "_unsafe_preserve_version_counter":
        from .graph import _unsafe_preserve_version_counter

        return _unsafe_preserve_version_counter
    if name in ("detect_anomaly", "set_detect_anomaly"):
        from . import anomaly_mode

        return getattr(anomaly_mode, name)
    if name in ("anomaly_mode", "forward_ad", "functional", "graph", "profiler"):
        import importlib

        return importlib.import_module(f".{name}", __name__)
    from ..core.facade import elsewhere

    return elsewhere(__name__, name)
