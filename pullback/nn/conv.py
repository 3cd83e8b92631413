"""Convolutions and their transposes."""

from __future__ import annotations

import math
from typing import Any

from ..core.handle import Tensor
from . import functional as F
from . import init
from .shared import Family, new, sizes


class _ConvNd(Family):
    """What the convolutions share: the weight and its initialisation."""

    transposed = False

    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride, padding, dilation,
                 output_padding, groups: int, bias: bool, padding_mode: str, device, dtype) -> None:
        super().__init__()
        rank = self.rank
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups:
                raise ValueError(f"{name} must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of 'valid', "
                                 "'same'")
            if padding == "same" and any(s != 1 for s in sizes(stride, rank)):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError("padding_mode must be one of 'zeros', 'reflect', 'replicate', "
                             f"'circular', but got padding_mode='{padding_mode}'")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = sizes(kernel_size, rank), sizes(stride, rank)
        self.padding = padding if isinstance(padding, str) else sizes(padding, rank)
        self.dilation = sizes(dilation, rank)
        self.output_padding, self.padding_mode = sizes(output_padding, rank), padding_mode
        shape = ((in_channels, out_channels // groups) if self.transposed
                 else (out_channels, in_channels // groups))
        self.weight = new((*shape, *self.kernel_size), device, dtype)
        self.register_parameter("bias", new((out_channels,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform numbers within one over the root of the number of inputs."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in:
                init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    @property
    def _reversed_padding_repeated_twice(self) -> list[int]:
        """(before, after) from the last dim on, as `F.pad` takes them."""
        if self.padding == "valid":
            return [0] * (2 * self.rank)
        if self.padding == "same":
            spans = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            return [n for t in reversed(spans) for n in (t // 2, t - t // 2)]
        return [p for p in reversed(self.padding) for _ in range(2)]

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The convolution with a weight and bias of the caller's."""
        convolve = (F.conv1d, F.conv2d, F.conv3d)[self.rank - 1]
        padding = self.padding
        if self.padding_mode != "zeros":
            borders, padding = self._reversed_padding_repeated_twice, 0
            input = F.pad(input, borders, mode=self.padding_mode)
        return convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        text = (f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
                f"stride={self.stride}")
        for name, usual in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            if getattr(self, name) != (usual,) * self.rank:
                text += f", {name}={getattr(self, name)}"
        text += "" if self.groups == 1 else f", groups={self.groups}"
        text += "" if self.bias is not None else ", bias=False"
        return text if self.padding_mode == "zeros" else f"{text}, padding_mode={self.padding_mode}"


class _Conv(_ConvNd):
    """A convolution; the subclasses say in how many dims."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride: Any = 1,
                 padding: Any = 0,
                 dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros",
                 device=None, dtype=None) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, 0,
                         groups, bias, padding_mode, device, dtype)


class Conv1d(_Conv, rank=1):
    """Convolution of signals (batch, channel, time)."""


class Conv2d(_Conv, rank=2):
    """Convolution of images (batch, channel, height, width)."""


class Conv3d(_Conv, rank=3):
    """Convolution of volumes (batch, channel, depth, height, width)."""


class _ConvTranspose(_ConvNd):
    """The transpose of a convolution; the subclasses say in how many dims."""

    transposed = True

    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride: Any = 1,
                 padding: Any = 0,
                 output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1,
                 padding_mode: str = "zeros", device=None, dtype=None) -> None:
        if padding_mode != "zeros":
            raise ValueError('Only "zeros" padding mode is supported for '
                             f"{type(self).__name__}")
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation,
                         output_padding, groups, bias, padding_mode, device, dtype)

    def _output_padding(self, input: Tensor, output_size) -> tuple:
        """What must be added to the smallest result to get `output_size`."""
        if output_size is None:
            return self.output_padding
        lead = input.ndim - self.rank
        sizes = [int(n) for n in output_size]
        sizes = sizes[lead:] if len(sizes) == input.ndim else sizes
        if len(sizes) != self.rank:
            raise ValueError(f"{type(self).__name__}: for {input.ndim}D input, output_size must "
                             f"have {self.rank} or {input.ndim} elements (got {len(sizes)})")
        least = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in zip(
            input.shape[lead:], self.stride, self.padding, self.dilation, self.kernel_size,
            strict=True)]
        most = [n + s - 1 for n, s in zip(least, self.stride, strict=True)]
        if any(n < a or n > b for n, a, b in zip(sizes, least, most, strict=True)):
            raise ValueError(f"requested an output size of {sizes}, but valid sizes range from "
                             f"{least} to {most} (for an input of {list(input.shape[lead:])})")
        return tuple(n - a for n, a in zip(sizes, least, strict=True))

    def forward(self, input: Tensor, output_size=None) -> Tensor:
        convolve = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[self.rank - 1]
        return convolve(input, self.weight, self.bias, self.stride, self.padding,
                        self._output_padding(input, output_size), self.groups, self.dilation)


class ConvTranspose1d(_ConvTranspose, rank=1):
    """Transpose of the convolution of signals."""


class ConvTranspose2d(_ConvTranspose, rank=2):
    """Transpose of the convolution of images."""


class ConvTranspose3d(_ConvTranspose, rank=3):
    """Transpose of the convolution of volumes."""
