"""Tensors to and from other libraries without copying."""

from ..creation import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
