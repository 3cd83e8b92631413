"""Activations, norms and pools of `ops.quantized`, by their names there.

They take numbers out of integers, compute in single precision, and round with the scale and zero
point that are given, or with those of their argument.  Read first: `named.py`.
"""

from __future__ import annotations

from typing import Any

from ..core.handle import Tensor
from ..table.packets import ops
from .named import computed, functions, named
from .tensor import QuantizedTensor


@named("clamp")
def clamp(qx: QuantizedTensor, min: Any = None, max: Any = None) -> QuantizedTensor:
    """Numbers between two bounds."""
    return qx.clamp(min, max)


@named("relu6")
def relu6(qx: QuantizedTensor, inplace: bool = False) -> QuantizedTensor:
    """Numbers between 0 and 6."""
    out = qx.clamp(0, 6)
    return qx.copy_(out) if inplace else out


@named("threshold")
def threshold(qx: QuantizedTensor, threshold: Any, value: Any) -> QuantizedTensor:
    """Another number in the place of small ones."""
    return ops.threshold(qx, threshold, value)


@named("leaky_relu")
def leaky_relu(qx: QuantizedTensor, negative_slope: Any, inplace: bool, output_scale: float,
               output_zero_point: int) -> QuantizedTensor:
    """Negative numbers times a slope; a new tensor, as the scale is another."""
    return computed("leaky_relu", lambda x: ops.leaky_relu(x, negative_slope), (qx,),
                    output_scale, output_zero_point)


@named("prelu")
def prelu(qx: QuantizedTensor, weight: QuantizedTensor, output_scale: float,
          output_zero_point: int) -> QuantizedTensor:
    """Negative numbers times slopes of channels."""
    return computed("prelu", ops.prelu, (qx, weight), output_scale, output_zero_point)


@named("sigmoid")
def sigmoid(qx: QuantizedTensor, output_scale: float, output_zero_point: int) -> QuantizedTensor:
    """1 / (1 + exp(-x))."""
    return computed("sigmoid", ops.sigmoid, (qx,), output_scale, output_zero_point)


@named("tanh")
def tanh(qx: QuantizedTensor, output_scale: float, output_zero_point: int) -> QuantizedTensor:
    """The hyperbolic tangent."""
    return computed("tanh", ops.tanh, (qx,), output_scale, output_zero_point)


@named("hardswish")
def hardswish(input: QuantizedTensor, output_scale: float,
              output_zero_point: int) -> QuantizedTensor:
    """x * relu6(x + 3) / 6."""
    return computed("hardswish", lambda x: x * (x + 3).clamp(0, 6) / 6, (input,), output_scale,
                    output_zero_point)


@named("elu")
def elu(self: QuantizedTensor, output_scale: float, output_zero_point: int, alpha: Any = 1,
        scale: Any = 1, input_scale: Any = 1) -> QuantizedTensor:
    """Exponentials in the place of negative numbers."""
    return computed("elu", lambda x: ops.elu(x, alpha, scale, input_scale), (self,), output_scale,
                    output_zero_point)


@named("celu")
def celu(self: QuantizedTensor, output_scale: float, output_zero_point: int,
         alpha: Any = 1) -> QuantizedTensor:
    """Exponentials of multiples in the place of negative numbers."""
    return computed("celu", lambda x: ops.celu(x, alpha), (self,), output_scale,
                    output_zero_point)


@named("dropout")
def dropout(self: QuantizedTensor, output_scale: float, output_zero_point: int, p: Any = 0.5,
            training: bool = False) -> QuantizedTensor:
    """The same numbers; in training some are left out."""
    if not training:
        return self.clone()
    return computed("dropout", lambda x: ops.dropout(x, float(p), True), (self,), output_scale,
                    output_zero_point)


@named("softmax")
def softmax(qx: QuantizedTensor, dim: int, output_scale: float,
            output_zero_point: int) -> QuantizedTensor:
    """Shares along a dim."""
    return computed("softmax", lambda x: ops.softmax(x, dim), (qx,), output_scale,
                    output_zero_point)


@named("layer_norm")
def layer_norm(input: QuantizedTensor, normalized_shape: Any, weight: Any, bias: Any, eps: float,
               output_scale: float, output_zero_point: int) -> QuantizedTensor:
    """Last dims with mean 0 and variance 1, times a weight."""
    shape = list(normalized_shape)
    return computed("layer_norm", lambda x: ops.layer_norm(x, shape, weight, bias, eps), (input,),
                    output_scale, output_zero_point)


@named("group_norm")
def group_norm(input: QuantizedTensor, num_groups: int, weight: Any, bias: Any, eps: float,
               output_scale: float, output_zero_point: int) -> QuantizedTensor:
    """Groups of channels with mean 0 and variance 1, times a weight."""
    return computed("group_norm", lambda x: ops.group_norm(x, num_groups, weight, bias, eps),
                    (input,), output_scale, output_zero_point)


@named("instance_norm")
def instance_norm(input: QuantizedTensor, weight: Any, bias: Any, eps: float, output_scale: float,
                  output_zero_point: int) -> QuantizedTensor:
    """Channels of every example with mean 0 and variance 1, times a weight."""
    return computed("instance_norm", lambda x: ops.group_norm(x, x.shape[1], weight, bias, eps),
                    (input,), output_scale, output_zero_point)


def _batch_norm(name: str, relu: bool):
    def operator(qx: QuantizedTensor, weight: Any, bias: Any, mean: Tensor, var: Tensor,
                 eps: float, output_scale: float, output_zero_point: int) -> QuantizedTensor:
        """Channels moved and scaled by what was learnt."""

        def numbers(x: Tensor) -> Tensor:
            by = (1 if weight is None else weight) / (var + eps).sqrt()
            shift = (0 if bias is None else bias) - mean * by
            shape = [1, -1] + [1] * (x.ndim - 2)
            out = x * by.reshape(shape) + shift.reshape(shape)
            return out.relu() if relu else out

        return computed(name, numbers, (qx,), output_scale, output_zero_point)

    return operator


for _kind in ("", "1d", "2d", "3d"):
    for _ending in ("", "_relu"):
        functions[f"batch_norm{_kind}{_ending}"] = _batch_norm(f"batch_norm{_kind}{_ending}",
                                                               bool(_ending))


@named("max_pool1d")
def max_pool1d(qx: QuantizedTensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
               ceil_mode: bool = False) -> QuantizedTensor:
    """The largest number of every window."""
    return ops.max_pool1d(qx, kernel_size, stride, padding, dilation, ceil_mode)


@named("max_pool2d")
def max_pool2d(qx: QuantizedTensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
               ceil_mode: bool = False) -> QuantizedTensor:
    """The largest number of every window."""
    return ops.max_pool2d(qx, kernel_size, stride, padding, dilation, ceil_mode)
