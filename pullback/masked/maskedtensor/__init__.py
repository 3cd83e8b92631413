"""Masked tensors: data with a mask, which every operator respects.

Nothing here is loaded before a program asks for it.  Read next: `core.py`.
"""

from . import rules
from .core import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]
