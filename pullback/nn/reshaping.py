"""Layers that only move elements: flatten, fold, shuffles of pixels and channels."""

from __future__ import annotations

from typing import Any

from ..core.handle import Tensor
from . import functional as F
from .shared import Family


class Flatten(Family, shown=("start_dim", "end_dim")):
    """Joins the dims from `start_dim` to `end_dim`."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Family, shown=("dim", "unflattened_size")):
    """Splits one dim into several."""

    def __init__(self, dim: int, unflattened_size) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError("unflattened_size must be a tuple of ints, but found type "
                            f"{type(unflattened_size).__name__}")
        for place, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError("unflattened_size must be tuple of ints, but found element of "
                                f"type {type(size).__name__} at pos {place}")
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)


class Unfold(Family, shown=("kernel_size", "dilation", "padding", "stride")):
    """The sliding blocks of images as columns."""

    def __init__(self, kernel_size, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation = kernel_size, dilation
        self.padding, self.stride = padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Unfold, shown=("output_size", "kernel_size", "dilation", "padding", "stride")):
    """Images from columns of sliding blocks; overlapping blocks add up."""

    def __init__(self, output_size, kernel_size, dilation: Any = 1, padding: Any = 0,
                 stride: Any = 1) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding,
                      self.stride)


class _Shuffle(Family):
    """`function` of the input and of one number."""

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, getattr(self, self.shown[0]))


class PixelShuffle(_Shuffle, function=F.pixel_shuffle, shown=("upscale_factor",)):
    """Each r * r channels become blocks of r by r pixels."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor


class PixelUnshuffle(_Shuffle, function=F.pixel_unshuffle, shown=("downscale_factor",)):
    """Blocks of r by r pixels become r * r channels."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor


class ChannelShuffle(_Shuffle, function=F.channel_shuffle, shown=("groups",)):
    """Channels in groups are interleaved."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups
