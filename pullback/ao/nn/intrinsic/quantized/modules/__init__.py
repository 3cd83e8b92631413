"""Quantised layers with what follows them."""

from __future__ import annotations

from typing import Any, ClassVar

from ...... import nn
from ......core.handle import Tensor
from ......quantized import products
from ......quantized.operators import functions
from ....quantized.modules import BatchNorm2d, BatchNorm3d, Conv1d, Conv2d, Conv3d, Linear
from ... import modules as nni


class ConvReLU1d(Conv1d):
    """A convolution over one dim and a rectifier."""

    relu, _FLOAT_MODULE = True, nni.ConvReLU1d


class ConvReLU2d(Conv2d):
    """A convolution over two dims and a rectifier."""

    relu, _FLOAT_MODULE = True, nni.ConvReLU2d


class ConvReLU3d(Conv3d):
    """A convolution over three dims and a rectifier."""

    relu, _FLOAT_MODULE = True, nni.ConvReLU3d


class ConvAdd2d(Conv2d):
    """A convolution, and another tensor added."""

    _FLOAT_MODULE = nni.ConvAdd2d
    operator: ClassVar[str] = "conv2d_add"

    def forward(self, input: Tensor, extra_input: Tensor) -> Tensor:  # type: ignore[override]
        return functions[self.operator](self._padded(input), extra_input, self._packed_params,
                                        self.scale, self.zero_point)


class ConvAddReLU2d(ConvAdd2d):
    """A convolution, another tensor added, and a rectifier."""

    _FLOAT_MODULE, operator = nni.ConvAddReLU2d, "conv2d_add_relu"


class LinearReLU(Linear):
    """A linear layer and a rectifier."""

    _FLOAT_MODULE: ClassVar[Any] = nni.LinearReLU

    def forward(self, x: Tensor) -> Tensor:
        return products.linear(x, self._packed_params._packed_params, self.scale, self.zero_point,
                               self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedLinearReLU"


class LinearLeakyReLU(Linear):
    """A linear layer and a rectifier that leaks."""

    _FLOAT_MODULE: ClassVar[Any] = nni.LinearLeakyReLU

    def __init__(self, in_features: int, out_features: int, negative_slope: float = 0.01,
                 bias: bool = True, **kwargs: Any):
        super().__init__(in_features, out_features, bias, **kwargs)
        self.negative_slope = negative_slope

    def forward(self, x: Tensor) -> Tensor:
        return functions["linear_leaky_relu"](
            x, self._packed_params._packed_params, self.scale, self.zero_point,
            self.negative_slope)

    def _get_name(self) -> str:
        return "QuantizedLinearLeakyReLU"

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False):
        new = super().from_float(mod, use_precomputed_fake_quant)
        new.negative_slope = mod[1].negative_slope
        return new


class LinearTanh(Linear):
    """A linear layer and a tangent."""

    _FLOAT_MODULE: ClassVar[Any] = nni.LinearTanh

    def forward(self, x: Tensor) -> Tensor:
        return functions["linear_tanh"](x, self._packed_params._packed_params, self.scale,
                                        self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedLinearTanh"


class BNReLU2d(BatchNorm2d):
    """A norm of images and a rectifier."""

    operator = "batch_norm_relu"


class BNReLU3d(BatchNorm3d):
    """A norm of volumes and a rectifier."""

    operator = "batch_norm_relu"


__all__ = [
    "BNReLU2d", "BNReLU3d", "ConvAdd2d", "ConvAddReLU2d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d",
    "LinearLeakyReLU", "LinearReLU", "LinearTanh",
]
