"""Nested tensors: batches of tensors whose sizes differ, without padding.

A nested tensor is made of values and of integers that say where its parts are (`parts/`);
derivatives live on the values.  Nothing is loaded before a program asks for it.  Read next:
`tensor.py`.
"""

from ..facade import elsewhere as _elsewhere
from . import (
    attention,
    backward,
    elementwise,
    layers,
    products,
    reductions,
    shapes,
    strided_rules,
    table,
)
from .construct import (
    as_nested_tensor,
    masked_select,
    narrow,
    nested_tensor,
    nested_tensor_from_jagged,
    nested_tensor_from_padded_tensor,
    to_padded_tensor,
)
from .sequences import from_packed, to_packed

__all__ = [
    "as_nested_tensor", "from_packed", "masked_select", "narrow", "nested_tensor",
    "nested_tensor_from_jagged", "nested_tensor_from_padded_tensor", "to_packed",
    "to_padded_tensor",
]
# loaded for what they add to the classes
_RULES = (attention, backward, elementwise, layers, products, reductions, shapes, strided_rules,
          table)


def __getattr__(name: str):
    return _elsewhere(__name__, name)
