"""Activations and norms from integers to integers; each has the scale of its results."""

from __future__ import annotations

import warnings
from typing import Any

from ..... import nn
from .....array import dtype as dt
from .....core.handle import Tensor
from .....creation import tensor
from .....quantized.construct import quantize_per_tensor, recorded
from .....quantized.operators import functions
from .....table.packets import ops
from .utils import observed

_QUINT8 = dt.by_name("quint8")


class Quantize(nn.Module):
    """Numbers become integers; gradients pass, where somebody follows them."""

    scale: Tensor
    zero_point: Tensor

    def __init__(self, scale: float, zero_point: int, dtype: Any, factory_kwargs: Any = None):
        super().__init__()
        self.register_buffer("scale", tensor([scale]))
        self.register_buffer("zero_point", tensor([zero_point], dtype=dt.int64))
        self.dtype = dtype

    def forward(self, X: Tensor) -> Tensor:
        return quantize_per_tensor(X, float(self.scale), int(self.zero_point), self.dtype,
                                   straight_through=recorded(X))

    @staticmethod
    def from_float(mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Quantize:
        """The module that stands for a mark with an observer."""
        return Quantize(*observed(mod), mod.activation_post_process.dtype)

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(nn.Module):
    """Integers become numbers."""

    def forward(self, Xq: Tensor) -> Tensor:
        return Xq.dequantize()

    @staticmethod
    def from_float(mod: nn.Module, use_precomputed_fake_quant: bool = False) -> DeQuantize:
        """The module that stands for a mark."""
        return DeQuantize()


class ReLU6(nn.ReLU):
    """Numbers between 0 and 6."""

    def forward(self, input: Tensor) -> Tensor:
        return functions["relu6"](input, self.inplace)

    def _get_name(self) -> str:
        return "QuantizedReLU6"

    @staticmethod
    def from_float(mod: nn.Module, use_precomputed_fake_quant: bool = False) -> ReLU6:
        """The layer that stands for one with numbers."""
        return ReLU6(mod.inplace)


class _Fixed:
    """Scale and zero point of results as buffers."""

    def _put(self, scale: float, zero_point: int) -> None:
        self.register_buffer("scale", tensor(scale))
        self.register_buffer("zero_point", tensor(zero_point))

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"


class Hardswish(_Fixed, nn.Hardswish):
    """x * relu6(x + 3) / 6."""

    def __init__(self, scale: float, zero_point: int, device: Any = None, dtype: Any = None):
        super().__init__()
        self._put(scale, zero_point)

    def forward(self, input: Tensor) -> Tensor:
        return functions["hardswish"](input, self.scale, self.zero_point)

    @staticmethod
    def from_float(mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Hardswish:
        """The layer that stands for one with an observer."""
        return Hardswish(*observed(mod))


class ELU(nn.ELU):
    """Exponentials in the place of negative numbers."""

    def __init__(self, scale: float, zero_point: int, alpha: float = 1.0):
        super().__init__(alpha)
        self.scale, self.zero_point = scale, zero_point

    def forward(self, input: Tensor) -> Tensor:
        return functions["elu"](input, self.scale, self.zero_point, self.alpha)

    def _get_name(self) -> str:
        return "QuantizedELU"

    @staticmethod
    def from_float(mod: nn.Module, use_precomputed_fake_quant: bool = False) -> ELU:
        """The layer that stands for one with an observer."""
        return ELU(*observed(mod), mod.alpha)


class LeakyReLU(_Fixed, nn.LeakyReLU):
    """Negative numbers times a slope."""

    def __init__(self, scale: float, zero_point: int, negative_slope: float = 1e-2,
                 inplace: bool = False, device: Any = None, dtype: Any = None):
        super().__init__(negative_slope, inplace)
        self._put(scale, zero_point)

    def forward(self, input: Tensor) -> Tensor:
        return functions["leaky_relu"](input, self.negative_slope, self.inplace, self.scale,
                                       self.zero_point)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> LeakyReLU:
        """The layer that stands for one with an observer."""
        return cls(*observed(mod), mod.negative_slope, mod.inplace)


class Sigmoid(nn.Sigmoid):
    """1 / (1 + exp(-x))."""

    def __init__(self, output_scale: float, output_zero_point: int):
        super().__init__()
        self.output_scale, self.output_zero_point = output_scale, output_zero_point

    def forward(self, input: Tensor) -> Tensor:
        return functions["sigmoid"](input, self.output_scale, self.output_zero_point)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Sigmoid:
        """The layer that stands for one with an observer."""
        return cls(*observed(mod))


class Softmax(nn.Softmax):
    """Shares along a dim."""

    def __init__(self, dim: int | None = None, scale: float = 1.0, zero_point: int = 0):
        super().__init__(dim)
        self.scale, self.zero_point = scale, zero_point

    def forward(self, input: Tensor) -> Tensor:
        dim = self.dim if self.dim is not None else int(input.ndim not in (0, 1, 3))
        return functions["softmax"](input, dim, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedSoftmax"

    @staticmethod
    def from_float(mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Softmax:
        """The layer that stands for one with an observer."""
        return Softmax(mod.dim, *observed(mod))


class PReLU(nn.Module):
    """Negative numbers times slopes of channels."""

    def __init__(self, output_scale: float, output_zero_point: int, num_parameters: int = 1):
        super().__init__()
        self.num_parameters = num_parameters
        self.scale, self.zero_point = output_scale, output_zero_point
        self.set_weight(quantize_per_tensor(ops.zeros(num_parameters), 1.0, 0, _QUINT8))

    def set_weight(self, w: Tensor) -> None:
        """Hold other slopes."""
        self.weight = w

    def forward(self, input: Tensor) -> Tensor:
        return functions["prelu"](input, self.weight, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedPReLU"

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> PReLU:
        """The layer that stands for one with an observer."""
        new = cls(*observed(mod), mod.num_parameters)
        numbers, observer = mod.weight.detach().float(), mod.qconfig.weight()
        observer(numbers)
        if observer.dtype is not _QUINT8:
            warnings.warn("PReLU's weight observer should have dtype quint8 but got "
                          f"{observer.dtype}", stacklevel=2)
        scale, zero_point = observer.calculate_qparams()
        new.set_weight(quantize_per_tensor(numbers, float(scale), int(zero_point), _QUINT8))
        return new


class Dropout(nn.Dropout):
    """The same numbers: what is quantised is no longer trained."""

    def forward(self, input: Tensor) -> Tensor:
        return input

    def _get_name(self) -> str:
        return "QuantizedDropout"

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Dropout:
        """The layer that stands for one with numbers."""
        return cls(mod.p, mod.inplace)


class LayerNorm(_Fixed, nn.LayerNorm):
    """Last dims with mean 0 and variance 1, times a weight."""

    def __init__(self, normalized_shape: Any, weight: Any, bias: Any, scale: float,
                 zero_point: int, eps: float = 1e-5, elementwise_affine: bool = True,
                 device: Any = None, dtype: Any = None):
        super().__init__(normalized_shape, eps=eps, elementwise_affine=elementwise_affine)
        self.weight, self.bias = weight, bias
        self._put(scale, zero_point)

    def forward(self, input: Tensor) -> Tensor:
        return functions["layer_norm"](input, self.normalized_shape, self.weight, self.bias,
                                       self.eps, self.scale, self.zero_point)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> LayerNorm:
        """The layer that stands for one with an observer."""
        return cls(mod.normalized_shape, mod.weight, mod.bias, *observed(mod), mod.eps,
                   mod.elementwise_affine)


class GroupNorm(_Fixed, nn.GroupNorm):
    """Groups of channels with mean 0 and variance 1, times a weight."""

    def __init__(self, num_groups: int, num_channels: int, weight: Any, bias: Any, scale: float,
                 zero_point: int, eps: float = 1e-5, affine: bool = True, device: Any = None,
                 dtype: Any = None):
        super().__init__(num_groups, num_channels, eps, affine)
        self.weight, self.bias = weight, bias
        self._put(scale, zero_point)

    def forward(self, input: Tensor) -> Tensor:
        return functions["group_norm"](input, self.num_groups, self.weight, self.bias, self.eps,
                                       self.scale, self.zero_point)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> GroupNorm:
        """The layer that stands for one with an observer."""
        return cls(mod.num_groups, mod.num_channels, mod.weight, mod.bias, *observed(mod), mod.eps,
                   mod.affine)


class _InstanceNorm(_Fixed):
    """Channels of every example with mean 0 and variance 1, times a weight."""

    def __init__(self, num_features: int, weight: Any, bias: Any, scale: float, zero_point: int,
                 eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
                 track_running_stats: bool = False, device: Any = None, dtype: Any = None):
        super().__init__(num_features, eps, momentum, affine, track_running_stats)
        self.weight, self.bias = weight, bias
        self._put(scale, zero_point)

    def forward(self, input: Tensor) -> Tensor:
        return functions["instance_norm"](input, self.weight, self.bias, self.eps, self.scale,
                                          self.zero_point)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer that stands for one with an observer."""
        return cls(mod.num_features, mod.weight, mod.bias, *observed(mod), mod.eps, mod.affine)


class InstanceNorm1d(_InstanceNorm, nn.InstanceNorm1d):
    """Channels of every example with mean 0 and variance 1, over one dim."""


class InstanceNorm2d(_InstanceNorm, nn.InstanceNorm2d):
    """Channels of every example with mean 0 and variance 1, over two dims."""


class InstanceNorm3d(_InstanceNorm, nn.InstanceNorm3d):
    """Channels of every example with mean 0 and variance 1, over three dims."""


class _BatchNorm(_Fixed):
    """Channels moved and scaled by what was learnt."""

    operator = "batch_norm"

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1,
                 device: Any = None, dtype: Any = None):
        super().__init__(num_features, eps, momentum)
        self._put(1.0, 0)

    def forward(self, input: Tensor) -> Tensor:
        return functions[self.operator](input, self.weight, self.bias, self.running_mean,
                                        self.running_var, self.eps, self.scale, self.zero_point)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer that stands for one with an observer."""
        scale, zero_point = observed(mod)
        norm = mod[0] if isinstance(mod, nn.Sequential) else mod
        new = cls(norm.num_features, norm.eps)
        new.weight, new.bias = norm.weight, norm.bias
        new.running_mean, new.running_var = norm.running_mean, norm.running_var
        new.scale, new.zero_point = tensor(scale), tensor(zero_point)
        return new


class BatchNorm2d(_BatchNorm, nn.BatchNorm2d):
    """Channels of images, moved and scaled by what was learnt."""


class BatchNorm3d(_BatchNorm, nn.BatchNorm3d):
    """Channels of volumes, moved and scaled by what was learnt."""
