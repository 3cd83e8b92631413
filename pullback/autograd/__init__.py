"""Reverse mode as PyTorch users know it: engine, grad modes, gradcheck."""

from .engine import backward, grad
from .grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = [
    "Function",
    "backward",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "no_grad",
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
    raise AttributeError(f"pullback.autograd has no attribute '{name}'")
