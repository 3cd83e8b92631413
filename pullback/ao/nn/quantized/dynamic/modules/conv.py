"""Convolutions that round their input by themselves: numbers in, numbers out."""

from __future__ import annotations

import warnings
from typing import Any

from ......core.handle import Tensor
from ......quantized.operators import functions
from ...modules import conv as quantized


class _Dynamic:
    """Takes and gives numbers."""

    def __init__(self, *args: Any, **kwargs: Any):
        warnings.warn(f"The current implementation of the {type(self).__name__} module has poor "
                      "numerical accuracy and its use is not recommended", stacklevel=2)
        super().__init__(*args, **kwargs)

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"

    def forward(self, input: Tensor, reduce_range: bool = True) -> Tensor:
        name = f"conv{'_transpose' * self.transposed}{self.dims}d_dynamic"
        return functions[name](self._padded(input), self._packed_params, reduce_range)


class Conv1d(_Dynamic, quantized.Conv1d):
    """A convolution over one dim, of numbers."""


class Conv2d(_Dynamic, quantized.Conv2d):
    """A convolution over two dims, of numbers."""


class Conv3d(_Dynamic, quantized.Conv3d):
    """A convolution over three dims, of numbers."""


class ConvTranspose1d(_Dynamic, quantized.ConvTranspose1d):
    """A transposed convolution over one dim, of numbers."""


class ConvTranspose2d(_Dynamic, quantized.ConvTranspose2d):
    """A transposed convolution over two dims, of numbers."""


class ConvTranspose3d(_Dynamic, quantized.ConvTranspose3d):
    """A transposed convolution over three dims, of numbers."""
