"""Functions of quantised tensors, as `nn.functional` has them for numbers."""

from __future__ import annotations

from typing import Any

from .... import errors
from ....array import dtype as dt
from ....core.handle import Tensor
from ....nn import functional as F
from ....nn.modules.utils import _ntuple
from ....quantized import products
from ....quantized.operators import functions
from ....quantized.packed import conv_weight, linear_weight
from ....quantized.tensor import QuantizedTensor

_QUINT8 = dt.by_name("quint8")


def _quantised(input: Any, name: str) -> None:
    if not isinstance(input, QuantizedTensor):
        raise errors.BadValue(
            f"Input to 'quantized.{name}' must be quantized! ({errors.user_line(3)})")


def _same(name: str):
    def function(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        _quantised(input, name)
        return getattr(F, name)(input, *args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`nn.functional.{name}` of a quantised tensor."
    return function


avg_pool2d, avg_pool3d = _same("avg_pool2d"), _same("avg_pool3d")
adaptive_avg_pool2d = _same("adaptive_avg_pool2d")
adaptive_avg_pool3d = _same("adaptive_avg_pool3d")
max_pool1d, max_pool2d = _same("max_pool1d"), _same("max_pool2d")
interpolate, hardtanh, threshold = _same("interpolate"), _same("hardtanh"), _same("threshold")
hardsigmoid = _same("hardsigmoid")


def upsample(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
             align_corners: bool | None = None) -> Tensor:
    """`interpolate` under its old name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Between pixels, with the corners aligned."""
    return upsample(input, size, scale_factor, mode="bilinear", align_corners=True)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """The nearest pixel."""
    return upsample(input, size, scale_factor, mode="nearest")


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, scale: float | None = None,
           zero_point: int | None = None) -> Tensor:
    """A linear layer."""
    scale = input.q_scale() if scale is None else scale
    zero_point = input.q_zero_point() if zero_point is None else zero_point
    return products.linear(input, linear_weight(weight, bias), scale, zero_point)


def _conv(dims: int):
    def function(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any = 1,
                 padding: Any = 0, dilation: Any = 1, groups: int = 1, padding_mode: str = "zeros",
                 scale: float = 1.0, zero_point: int = 0, dtype: Any = _QUINT8):
        if padding_mode != "zeros":
            raise NotImplementedError("Only zero-padding is supported!")
        if input.dtype.name != "quint8":
            raise NotImplementedError(
                "Only torch.quint8 is supported for activation tensor!")
        if weight.dtype.name != "qint8":
            raise NotImplementedError("Only torch.qint8 is supported for weight tensor!")
        if input.ndim != dims + 2:
            raise ValueError(f"Input shape must have {dims + 2} dims!")
        each = _ntuple(dims)
        packed = conv_weight(dims)(weight, bias, each(stride), each(padding), each(dilation),
                                   groups)
        return products.convolution(input, packed, scale, zero_point)

    function.__name__ = function.__qualname__ = f"conv{dims}d"
    function.__doc__ = f"A convolution over {dims} dims."
    return function


conv1d, conv2d, conv3d = _conv(1), _conv(2), _conv(3)


def celu(input: Tensor, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """Exponentials in the place of negative numbers, with a slope that does not jump."""
    _quantised(input, "celu")
    return functions["celu"](input, scale, zero_point, alpha)


def elu(input: Tensor, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """Exponentials in the place of negative numbers."""
    _quantised(input, "elu")
    return functions["elu"](input, scale, zero_point, alpha)


def hardswish(input: Tensor, scale: float, zero_point: int) -> Tensor:
    """x * relu6(x + 3) / 6."""
    _quantised(input, "hardswish")
    return functions["hardswish"](input, scale, zero_point)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False,
               scale: float | None = None, zero_point: int | None = None) -> Tensor:
    """Negative numbers times a slope."""
    if scale is None or zero_point is None:
        return F.leaky_relu(input, negative_slope, inplace)
    return functions["leaky_relu"](input, negative_slope, inplace, scale, zero_point)


def clamp(input: Tensor, min_: float, max_: float) -> Tensor:
    """Numbers between two bounds."""
    _quantised(input, "clamp")
    return input.clamp(min_, max_)
