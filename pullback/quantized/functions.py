"""Functions of quantised tensors that PyTorch has at its root: pools, norms, recurrent layers."""

from __future__ import annotations

from typing import Any

from ..core.handle import Tensor
from ..table.packets import ops
from .activations import functions
from .recurrent import quantized_gru, quantized_lstm


def quantized_max_pool1d(input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0,
                         dilation: Any = 1, ceil_mode: bool = False) -> Tensor:
    """The largest number of every window."""
    return ops.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)


def quantized_max_pool2d(input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0,
                         dilation: Any = 1, ceil_mode: bool = False) -> Tensor:
    """The largest number of every window."""
    return ops.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


def quantized_max_pool3d(input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0,
                         dilation: Any = 1, ceil_mode: bool = False) -> Tensor:
    """The largest number of every window."""
    return ops.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode)


def quantized_batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor,
                         var: Tensor, eps: float, output_scale: float,
                         output_zero_point: int) -> Tensor:
    """Channels moved and scaled by what was learnt."""
    return functions["batch_norm"](input, weight, bias, mean, var, eps, output_scale,
                                   output_zero_point)


def _choose_qparams_per_tensor(self: Tensor, reduce_range: bool = False) -> tuple[float, int]:
    """The scale and zero point of 8 bits that just reach from the lowest to the highest number."""
    scale, zero_point = ops._input_parameters(self.detach(), 0, 127 if reduce_range else 255)
    return float(scale), int(zero_point)


__all__ = ["quantized_batch_norm", "quantized_gru", "quantized_lstm", "quantized_max_pool1d",
           "quantized_max_pool2d", "quantized_max_pool3d"]
