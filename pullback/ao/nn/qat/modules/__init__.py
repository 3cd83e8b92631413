"""Layers that round their weight as integers would, for training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ..... import nn
from .....core.handle import Tensor
from .....nn import functional as F


class _Trained:
    """A layer whose weight goes through a module that rounds."""

    _FLOAT_MODULE: ClassVar[Any]
    _arguments: Callable[[nn.Module], tuple]  # those that make a layer like another

    def _configure(self, qconfig: Any) -> None:
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig, self.weight_fake_quant = qconfig, qconfig.weight()

    @classmethod
    def _configured(cls, mod: nn.Module) -> tuple[nn.Module, Any]:
        """(the layer itself, its configuration)."""
        if type(mod) is not cls._FLOAT_MODULE and not (
                cls._FLOAT_MODULE is nn.Linear
                and type(mod) is nn.linear.NonDynamicallyQuantizableLinear):
            raise AssertionError(f" qat.{cls.__name__}.from_float only works for "
                                 f"{cls._FLOAT_MODULE.__name__}")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        if not mod.qconfig:
            raise AssertionError("Input float module must have a valid qconfig")
        return (mod[0] if isinstance(mod, nn.Sequential) else mod), mod.qconfig

    @classmethod
    def _plain(cls) -> Any:
        """The class of the layer without rounding."""
        return next(base for base in cls.__mro__ if base.__module__.startswith(
            f"{nn.__name__}."))

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer that stands for one without rounding; they share their parameters."""
        layer, qconfig = cls._configured(mod)
        new = cls(*cls._arguments(layer), qconfig=qconfig)
        new.weight = layer.weight
        if hasattr(layer, "bias"):
            new.bias = layer.bias
        return new

    def to_float(self) -> Any:
        """The layer without rounding."""
        new = self._plain()(*self._arguments(self))
        new.weight = nn.Parameter(self.weight.detach())
        if getattr(self, "bias", None) is not None:
            new.bias = nn.Parameter(self.bias.detach())
        new.train(self.training)
        return new


class Linear(_Trained, nn.Linear):
    """A linear layer that rounds its weight."""

    _FLOAT_MODULE = nn.Linear

    def __init__(self, in_features: int, out_features: int, bias: bool = True, qconfig: Any = None,
                 device: Any = None, dtype: Any = None):
        super().__init__(in_features, out_features, bias, device, dtype)
        self._configure(qconfig)

    @staticmethod
    def _arguments(layer: nn.Module) -> tuple:
        return layer.in_features, layer.out_features, layer.bias is not None

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight_fake_quant(self.weight), self.bias)


class _Conv(_Trained):
    """A convolution that rounds its weight."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
                 padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True,
                 padding_mode: str = "zeros", qconfig: Any = None, device: Any = None,
                 dtype: Any = None):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups,
                         bias, padding_mode, device, dtype)
        self._configure(qconfig)

    @staticmethod
    def _arguments(layer: nn.Module) -> tuple:
        return (layer.in_channels, layer.out_channels, layer.kernel_size, layer.stride,
                layer.padding, layer.dilation, layer.groups, layer.bias is not None,
                layer.padding_mode)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight_fake_quant(self.weight), self.bias)


class Conv1d(_Conv, nn.Conv1d):
    """A convolution over one dim that rounds its weight."""

    _FLOAT_MODULE = nn.Conv1d


class Conv2d(_Conv, nn.Conv2d):
    """A convolution over two dims that rounds its weight."""

    _FLOAT_MODULE = nn.Conv2d


class Conv3d(_Conv, nn.Conv3d):
    """A convolution over three dims that rounds its weight."""

    _FLOAT_MODULE = nn.Conv3d


def _floating(qconfig: Any, name: str) -> None:
    scheme = qconfig.weight().qscheme if qconfig else None
    if scheme is not None and scheme.name != "per_channel_affine_float_qparams":
        raise AssertionError(f"{name} weights requires a qscheme of "
                             f"torch.per_channel_affine_float_qparams Got {scheme}")


class Embedding(_Trained, nn.Embedding):
    """An embedding that rounds its rows."""

    _FLOAT_MODULE = nn.Embedding

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
                 max_norm: float | None = None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Any = None,
                 device: Any = None, dtype: Any = None, qconfig: Any = None):
        super().__init__(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type,
                         scale_grad_by_freq, sparse, _weight, device=device, dtype=dtype)
        _floating(qconfig, "Embedding")
        self._configure(qconfig)

    @staticmethod
    def _arguments(layer: nn.Module) -> tuple:
        return (layer.num_embeddings, layer.embedding_dim, layer.padding_idx, layer.max_norm,
                layer.norm_type, layer.scale_grad_by_freq, layer.sparse)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(input, self.weight_fake_quant(self.weight), self.padding_idx,
                           self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)


class EmbeddingBag(_Trained, nn.EmbeddingBag):
    """Sums of rows that are rounded."""

    _FLOAT_MODULE = nn.EmbeddingBag

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None,
                 norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
                 sparse: bool = False, _weight: Any = None, include_last_offset: bool = False,
                 padding_idx: int | None = None, qconfig: Any = None, device: Any = None,
                 dtype: Any = None):
        super().__init__(num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq,
                         mode, sparse, _weight, include_last_offset, padding_idx, device=device,
                         dtype=dtype)
        _floating(qconfig, "Embedding Bag")
        self._configure(qconfig)

    @staticmethod
    def _arguments(layer: nn.Module) -> tuple:
        return (layer.num_embeddings, layer.embedding_dim, layer.max_norm, layer.norm_type,
                layer.scale_grad_by_freq, layer.mode, layer.sparse, None,
                layer.include_last_offset, layer.padding_idx)

    def forward(self, input: Tensor, offsets: Tensor | None = None,
                per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(
            input, self.weight_fake_quant(self.weight), offsets, self.max_norm, self.norm_type,
            self.scale_grad_by_freq, self.mode, self.sparse, per_sample_weights,
            self.include_last_offset, self.padding_idx)


__all__ = ["Conv1d", "Conv2d", "Conv3d", "Embedding", "EmbeddingBag", "Linear"]
