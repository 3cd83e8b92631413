"""Layers with their norm for training: the norm goes into the weight before that is rounded."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ...... import nn
from ......core.handle import Tensor
from ......nn import functional as F
from ......nn import init
from ......table.packets import ops
from ....qat import modules as nnqat
from ... import modules as nni


class _Normed(nni._FusedModule):
    """A layer whose weight is rounded as it will be once the norm is part of it."""

    _version = 2
    _FLOAT_MODULE: ClassVar[Any]
    relu = False
    norm: ClassVar[Any]

    def _norm(self, features: int, bias: bool, eps: float, momentum: float, freeze_bn: bool,
              qconfig: Any) -> None:
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.bn = self.norm(features, eps, momentum, True, True)
        self.weight_fake_quant = qconfig.weight()
        self.bias = nn.Parameter(ops.zeros(features)) if bias else None
        self.reset_bn_parameters()
        if self.training and not freeze_bn:
            self.update_bn_stats()
        else:
            self.freeze_bn_stats()

    def reset_running_stats(self) -> None:
        """Forget what the norm has seen."""
        self.bn.reset_running_stats()

    def reset_bn_parameters(self) -> None:
        """Begin the norm anew."""
        self.bn.reset_running_stats()
        init.uniform_(self.bn.weight)
        init.zeros_(self.bn.bias)
        if self.bias is not None:
            bound = 1 / math.sqrt(max(self.weight[0].numel(), 1))
            init.uniform_(self.bias, -bound, bound)

    def update_bn_stats(self) -> Any:
        """The norm follows what it sees."""
        self.freeze_bn, self.bn.training = False, True
        return self

    def freeze_bn_stats(self) -> Any:
        """The norm stays as it is."""
        self.freeze_bn, self.bn.training = True, False
        return self

    def _apply_layer(self, input: Tensor, weight: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, input: Tensor) -> Tensor:
        bn, dims = self.bn, self.weight.ndim
        by = bn.weight / (bn.running_var + bn.eps).sqrt()
        weight = self.weight_fake_quant(self.weight * by.reshape([-1] + [1] * (dims - 1)))
        shape = [1, -1] + [1] * (dims - 2)
        out = self._apply_layer(input, weight) / by.reshape(shape)
        if self.bias is not None:
            out = out + self.bias.reshape(shape)
        out = bn(out)
        return out.relu() if self.relu else out

    def train(self, mode: bool = True) -> Any:
        """Train, or not; a frozen norm stays frozen."""
        self.training = mode
        if not self.freeze_bn:
            for module in self.children():
                module.train(mode)
        return self

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict,
                              *rest: Any) -> None:
        if local_metadata.get("version") in (None, 1):
            for now, before in (("weight", "gamma"), ("bias", "beta"),
                                ("running_mean", "running_mean"), ("running_var", "running_var"),
                                ("num_batches_tracked", "num_batches_tracked")):
                if prefix + before in state_dict and before in ("gamma", "beta") or (
                        f"{prefix}bn.{now}" not in state_dict and prefix + before in state_dict):
                    state_dict[f"{prefix}bn.{now}"] = state_dict.pop(prefix + before)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer that stands for one with its norm; they share their parameters."""
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(f"qat.{cls.__name__}.from_float only works for "
                                 f"{cls._FLOAT_MODULE.__name__}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        if not mod.qconfig:
            raise AssertionError("Input float module must have a valid qconfig")
        layer, bn = mod[0], mod[1]
        new = cls(*cls._arguments(layer), bn.eps, bn.momentum, False, mod.qconfig)
        new.weight, new.bias = layer.weight, layer.bias
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            setattr(new.bn, name, getattr(bn, name))
        return new

    def to_float(self) -> Any:
        """The layer with the norm in its weight, and without rounding."""
        new = self._plain()(*self._arguments(self))
        bn = self.bn
        bias = None if self.bias is None else self.bias.detach()
        fuse = nn.utils.fuse_linear_bn_weights if self.weight.ndim == 2 else (
            nn.utils.fuse_conv_bn_weights)
        new.weight, new.bias = fuse(nn.Parameter(self.weight.detach()), bias, bn.running_mean,
                                    bn.running_var, bn.eps, bn.weight, bn.bias)
        if self.relu:
            new = getattr(nni, type(self).__name__.replace("Bn", ""))(new, nn.ReLU())
        new.train(self.training)
        return new


class _ConvNormed(_Normed):
    """A convolution with its norm."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
                 padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: Any = None,
                 padding_mode: str = "zeros", eps: float = 1e-05, momentum: float = 0.1,
                 freeze_bn: bool = False, qconfig: Any = None):
        self._plain().__init__(self, in_channels, out_channels, kernel_size, stride, padding,
                               dilation, groups, False, padding_mode)
        self._norm(out_channels, bool(bias), eps, momentum, freeze_bn, qconfig)

    _arguments = staticmethod(nnqat._Conv._arguments)

    def _apply_layer(self, input: Tensor, weight: Tensor) -> Tensor:
        return self._conv_forward(input, weight, None)


def _of_conv(n: int, relu: bool) -> Any:
    """The class for a convolution over so many dims with its norm, and a rectifier."""
    plain = getattr(nn, f"Conv{n}d")
    name = f"ConvBn{'ReLU' * relu}{n}d"
    doc = f"A convolution over {n} dims with its norm{' and a rectifier' * relu}, for training."
    return type(name, (_ConvNormed, plain), {
        "_plain": classmethod(lambda cls: plain), "norm": getattr(nn, f"BatchNorm{n}d"),
        "relu": relu, "_FLOAT_MODULE": getattr(nni, name), "__doc__": doc, "__module__": __name__})


ConvBn1d, ConvBn2d, ConvBn3d = (_of_conv(n, False) for n in (1, 2, 3))
ConvBnReLU1d, ConvBnReLU2d, ConvBnReLU3d = (_of_conv(n, True) for n in (1, 2, 3))


class LinearBn1d(_Normed, nn.Linear):
    """A linear layer with its norm, for training."""

    norm, _FLOAT_MODULE = nn.BatchNorm1d, nni.LinearBn1d

    def __init__(self, in_features: int, out_features: int, bias: bool = True, eps: float = 1e-05,
                 momentum: float = 0.1, freeze_bn: bool = False, qconfig: Any = None):
        nn.Linear.__init__(self, in_features, out_features, bias)
        self._norm(out_features, bias, eps, momentum, freeze_bn, qconfig)

    _arguments = staticmethod(nnqat.Linear._arguments)

    @classmethod
    def _plain(cls) -> Any:
        return nn.Linear

    def _apply_layer(self, input: Tensor, weight: Tensor) -> Tensor:
        return F.linear(input, weight)


def _rectified(name: str, layer: Any) -> Any:
    """The class for a layer that rounds its weight, with a rectifier."""

    class Made(layer, nni._FusedModule):
        _FLOAT_MODULE = getattr(nni, name)

        def forward(self, input: Tensor) -> Tensor:
            return layer.forward(self, input).relu()

        def to_float(self) -> Any:
            """The layer without rounding, with its rectifier."""
            new = self._FLOAT_MODULE(layer.to_float(self), nn.ReLU())
            new.train(self.training)
            return new

    Made.__name__ = Made.__qualname__ = name
    Made.__doc__ = f"{layer.__name__} that rounds its weight, and a rectifier."
    return Made


ConvReLU1d = _rectified("ConvReLU1d", nnqat.Conv1d)
ConvReLU2d = _rectified("ConvReLU2d", nnqat.Conv2d)
ConvReLU3d = _rectified("ConvReLU3d", nnqat.Conv3d)
LinearReLU = _rectified("LinearReLU", nnqat.Linear)


def update_bn_stats(mod: nn.Module) -> None:
    """A module's norm follows what it sees; for `model.apply`."""
    if isinstance(mod, _Normed):
        mod.update_bn_stats()


def freeze_bn_stats(mod: nn.Module) -> None:
    """A module's norm stays as it is; for `model.apply`."""
    if isinstance(mod, _Normed):
        mod.freeze_bn_stats()


__all__ = [
    "ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d",
    "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearBn1d", "LinearReLU", "freeze_bn_stats",
    "update_bn_stats",
]
