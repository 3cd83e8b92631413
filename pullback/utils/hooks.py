"""`RemovableHandle` under PyTorch's name for its module, and marks of hooks that stay behind."""

import warnings
from collections.abc import Callable

from ..core.handle import Tensor
from ..tensor.hooks import RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


def unserializable_hook(f: Callable) -> Callable:
    """Mark a hook whose loss in a pickle or a copy is meant."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Tensor) -> None:
    """Say that the hooks of a tensor are lost in a pickle or a copy."""
    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(f"backward hook {hook!r} on tensor will not be serialized. If this is "
                          "expected, you can decorate the function with "
                          "@torch.utils.hooks.unserializable_hook to suppress this warning",
                          stacklevel=2)
