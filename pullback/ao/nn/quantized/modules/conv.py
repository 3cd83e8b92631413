"""Convolutions with a weight in 8 bits, from integers to integers."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

from ..... import nn
from .....array import dtype as dt
from .....core.handle import Tensor
from .....nn import functional as F
from .....nn.modules.utils import _ntuple
from .....quantized import products
from .....quantized.construct import _empty_affine_quantized
from .....quantized.packed import conv_weight
from .....table.packets import ops
from .utils import Scaled, WeightedQuantizedModule, _quantize_weight, refuse_other

_QINT8 = dt.by_name("qint8")


class _ConvNd(Scaled, WeightedQuantizedModule):
    """A convolution; its weight and bias lie in `_packed_params`."""

    dims: ClassVar[int]
    transposed = False
    relu = False  # does a rectifier follow?
    _FLOAT_MODULE: ClassVar[Any]

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
                 padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True,
                 padding_mode: str = "zeros", device: Any = None, dtype: Any = None):
        self._init(in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups,
                   bias, padding_mode)

    def _init(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any,
              padding: Any, dilation: Any, output_padding: Any, groups: int, bias: bool,
              padding_mode: str) -> None:
        super().__init__()
        if out_channels <= 0:
            raise ValueError(f"out_channels must be greater than 0, got {out_channels}")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode not in ("zeros", "reflect"):
            raise ValueError(
                f"'padding_mode' {padding_mode} is not supported by quantized convolution")
        each = _ntuple(self.dims)
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.dilation = map(each, (kernel_size, stride, dilation))
        self.padding = padding if isinstance(padding, str) else each(padding)
        self.output_padding, self.padding_mode = each(output_padding), padding_mode
        shape = [in_channels, out_channels // groups] if self.transposed else [
            out_channels, in_channels // groups]
        weight = _empty_affine_quantized([*shape, *self.kernel_size], scale=1, zero_point=0,
                                         dtype=_QINT8)
        self.set_weight_bias(weight, ops.zeros(out_channels) if bias else None)
        self.scale, self.zero_point = 1.0, 0

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Hold another weight and bias."""
        around = self.padding if self.padding_mode == "zeros" else (0,) * self.dims
        pack = conv_weight(self.dims, self.transposed)
        more = (self.output_padding,) if self.transposed else ()
        self._packed_params = pack(w, b, self.stride, around, *more, self.dilation, self.groups)

    def _weight_bias(self) -> tuple[Tensor, Tensor | None]:
        return self._packed_params.unpack()

    def weight(self) -> Tensor:
        """The weight."""
        return self._weight_bias()[0]

    def bias(self) -> Tensor | None:
        """The bias, if there is one."""
        return self._weight_bias()[1]

    def _padded(self, input: Tensor) -> Tensor:
        if input.ndim != self.dims + 2:
            shape = "(N, C, L)", "(N, C, H, W)", "(N, C, D, H, W)"
            raise ValueError(f"Input shape must be `{shape[self.dims - 1]}`!")
        if self.padding_mode == "zeros":
            return input
        return F.pad(input, [n for p in reversed(self.padding) for n in (p, p)],
                     mode=self.padding_mode)

    def forward(self, input: Tensor) -> Tensor:
        return products.convolution(self._padded(input), self._packed_params, self.scale,
                                    self.zero_point, self.zero_point if self.relu else None)

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    def extra_repr(self) -> str:
        s = (f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
             f"stride={self.stride}, scale={self.scale}, zero_point={self.zero_point}")
        for name, usual in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            value = getattr(self, name)
            if value != (usual,) * self.dims:
                s += f", {name}={value}"
        if self.groups != 1:
            s += f", groups={self.groups}"
        return s if self.bias() is not None else f"{s}, bias=False"

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        w, b = self._weight_bias()
        destination[f"{prefix}weight"], destination[f"{prefix}bias"] = w, b
        super()._save_to_state_dict(destination, prefix, keep_vars)

    def _load_from_state_dict(self, state_dict: dict, prefix: str, *rest: Any) -> None:
        self.set_weight_bias(state_dict.pop(f"{prefix}weight"), state_dict.pop(f"{prefix}bias"))
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def __deepcopy__(self, memo: dict) -> _ConvNd:
        new = type(self).__new__(type(self))
        memo[id(self)] = new
        new.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return new

    def __setstate__(self, state: Any) -> None:
        """The state of a copy, or the list of everything in a file that PyTorch has pickled."""
        if isinstance(state, dict):
            super().__setstate__(state)
            return
        (ins, outs, size, stride, padding, dilation, _, after, groups, mode, weight, bias,
         scale, zero_point, training) = state
        self._init(ins, outs, size, stride, padding, dilation, after, groups, bias is not None,
                   mode)
        self.set_weight_bias(weight, bias)
        self.scale, self.zero_point, self.training = scale, zero_point, training

    @classmethod
    def get_qconv(cls, mod: nn.Module, activation_post_process: Any,
                  weight_post_process: Any = None) -> _ConvNd:
        """The quantised layer for one whose weight an observer looks at."""
        of_weight = mod.qconfig.weight() if weight_post_process is None else weight_post_process
        of_weight(mod.weight)
        if of_weight.dtype is not _QINT8:
            raise AssertionError(
                f"Weight observer must have a dtype of qint8, got {of_weight.dtype}")
        more = (mod.output_padding, mod.groups, mod.bias is not None, mod.dilation) if (
            cls.transposed) else (mod.dilation, mod.groups, mod.bias is not None)
        new = cls(mod.in_channels, mod.out_channels, mod.kernel_size, mod.stride, mod.padding,
                  *more, mod.padding_mode)
        new.set_weight_bias(_quantize_weight(mod.weight.float(), of_weight), mod.bias)
        results = activation_post_process
        if results is not None and results.dtype is not dt.float32 and hasattr(
                results, "quant_min") and not getattr(results, "is_dynamic", False):
            scale, zero_point = results.calculate_qparams()
            new.scale, new.zero_point = float(scale), int(zero_point)
        return new

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> _ConvNd:
        results = getattr(mod, "activation_post_process", None)
        if hasattr(mod, "weight_fake_quant"):
            if hasattr(mod, "bn"):
                bn = mod.bn
                mod.weight, mod.bias = nn.utils.fuse_conv_bn_weights(
                    mod.weight, mod.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight,
                    bn.bias)
            return cls.get_qconv(mod, results, mod.weight_fake_quant)
        refuse_other(cls, mod, cls._FLOAT_MODULE)
        inner = mod[0] if isinstance(mod, nn.Sequential) else mod
        config = inner.qconfig if hasattr(inner, "qconfig") else mod.qconfig
        return cls.get_qconv(inner, results, config.weight())


class Conv1d(_ConvNd):
    """A convolution over one dim."""

    dims, _FLOAT_MODULE = 1, nn.Conv1d


class Conv2d(_ConvNd):
    """A convolution over two dims."""

    dims, _FLOAT_MODULE = 2, nn.Conv2d


class Conv3d(_ConvNd):
    """A convolution over three dims."""

    dims, _FLOAT_MODULE = 3, nn.Conv3d


class _ConvTransposeNd(_ConvNd):
    """A transposed convolution."""

    transposed = True

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
                 padding: Any = 0, output_padding: Any = 0, groups: int = 1, bias: bool = True,
                 dilation: Any = 1, padding_mode: str = "zeros", device: Any = None,
                 dtype: Any = None):
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        self._init(in_channels, out_channels, kernel_size, stride, padding, dilation,
                   output_padding, groups, bias, padding_mode)


class ConvTranspose1d(_ConvTransposeNd):
    """A transposed convolution over one dim."""

    dims, _FLOAT_MODULE = 1, nn.ConvTranspose1d


class ConvTranspose2d(_ConvTransposeNd):
    """A transposed convolution over two dims."""

    dims, _FLOAT_MODULE = 2, nn.ConvTranspose2d


class ConvTranspose3d(_ConvTransposeNd):
    """A transposed convolution over three dims."""

    dims, _FLOAT_MODULE = 3, nn.ConvTranspose3d
