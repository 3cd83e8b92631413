"""Quantised tensors: integers, a scale and a zero point, which stand for numbers.

A quantised tensor is made of integers and parameters (`parts/`); what an operator does to it is
done to the integers where that is exact, else to the numbers, which are rounded again.  Nothing is
loaded before a program asks for it.  Read next: `tensor.py`.
"""

from . import elementwise, exact
from .construct import (
    _empty_affine_quantized,
    _empty_per_channel_affine_quantized,
    _make_per_channel_quantized_tensor,
    _make_per_tensor_quantized_tensor,
    dequantize,
    quantize_per_channel,
    quantize_per_tensor,
    quantize_per_tensor_dynamic,
)
from .tensor import QuantizedTensor

__all__ = [
    "QuantizedTensor", "_empty_affine_quantized", "_empty_per_channel_affine_quantized",
    "_make_per_channel_quantized_tensor", "_make_per_tensor_quantized_tensor", "dequantize",
    "quantize_per_channel", "quantize_per_tensor", "quantize_per_tensor_dynamic",
]
_RULES = elementwise, exact  # loaded for what they add to the class
