"""`RemovableHandle` under PyTorch's name for its module."""

from ..core.hooks import RemovableHandle

__all__ = ["RemovableHandle"]
