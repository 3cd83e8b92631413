"""Pooling over sliding windows."""

from __future__ import annotations

from typing import Any

from ..core.handle import Tensor
from . import functional as F
from .shared import Family, sizes


class _MaxPoolNd(Family, shown=("kernel_size", "stride", "padding", "dilation", "ceil_mode")):
    def __init__(self, kernel_size, stride=None, padding: Any = 0, dilation: Any = 1,
                 return_indices: bool = False, ceil_mode: bool = False) -> None:
        super().__init__()
        self.kernel_size, self.padding, self.dilation = kernel_size, padding, dilation
        self.stride = kernel_size if stride is None else stride
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Tensor) -> Any:
        return type(self).function(input, self.kernel_size, self.stride, self.padding,
                                   self.dilation, self.ceil_mode, self.return_indices)


class MaxPool1d(_MaxPoolNd, function=F.max_pool1d):
    """Maxima over sliding windows of signals."""


class MaxPool2d(_MaxPoolNd, function=F.max_pool2d):
    """Maxima over sliding windows of images."""


class MaxPool3d(_MaxPoolNd, function=F.max_pool3d):
    """Maxima over sliding windows of volumes."""


class _MaxUnpoolNd(Family, shown=("kernel_size", "stride", "padding")):
    def __init__(self, kernel_size, stride=None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = sizes(kernel_size, self.rank)
        self.stride = sizes(kernel_size if stride is None else stride, self.rank)
        self.padding = sizes(padding, self.rank)

    def forward(self, input: Tensor, indices: Tensor, output_size=None) -> Tensor:
        return type(self).function(input, indices, self.kernel_size, self.stride, self.padding,
                                   output_size)


class MaxUnpool1d(_MaxUnpoolNd, rank=1, function=F.max_unpool1d):
    """Zeros with the elements of signals at the places that pooling found."""


class MaxUnpool2d(_MaxUnpoolNd, rank=2, function=F.max_unpool2d):
    """Zeros with the elements of images at the places that pooling found."""


class MaxUnpool3d(_MaxUnpoolNd, rank=3, function=F.max_unpool3d):
    """Zeros with the elements of volumes at the places that pooling found."""


class AvgPool1d(Family, shown=("kernel_size", "stride", "padding")):
    """Means over sliding windows of signals."""


    def __init__(self, kernel_size, stride=None, padding: Any = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True) -> None:
        super().__init__()
        self.kernel_size, self.padding = sizes(kernel_size, 1), sizes(padding, 1)
        self.stride = sizes(kernel_size if stride is None else stride, 1)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
                            self.count_include_pad)


class AvgPool2d(Family, function=F.avg_pool2d, shown=("kernel_size", "stride", "padding")):
    """Means over sliding windows of images."""


    def __init__(self, kernel_size, stride=None, padding: Any = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True, divisor_override: int | None = None) -> None:
        super().__init__()
        self.kernel_size, self.padding = kernel_size, padding
        self.stride = kernel_size if stride is None else stride
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.kernel_size, self.stride, self.padding,
                                   self.ceil_mode, self.count_include_pad, self.divisor_override)


class AvgPool3d(AvgPool2d, function=F.avg_pool3d):
    """Means over sliding windows of volumes."""


class _AdaptiveAvgPoolNd(Family, shown=("output_size",)):
    def __init__(self, output_size) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd, function=F.adaptive_avg_pool1d):
    """Means over as many windows of signals as asked for."""


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd, function=F.adaptive_avg_pool2d):
    """Means over as many windows of images as asked for."""


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd, function=F.adaptive_avg_pool3d):
    """Means over as many windows of volumes as asked for."""


class _AdaptiveMaxPoolNd(Family, shown=("output_size",)):
    def __init__(self, output_size, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input: Tensor) -> Any:
        return type(self).function(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd, function=F.adaptive_max_pool1d):
    """Maxima over as many windows of signals as asked for."""


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd, function=F.adaptive_max_pool2d):
    """Maxima over as many windows of images as asked for."""


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd, function=F.adaptive_max_pool3d):
    """Maxima over as many windows of volumes as asked for."""


class _FractionalMaxPoolNd(Family):
    def __init__(self, kernel_size, output_size=None, output_ratio=None,
                 return_indices: bool = False, _random_samples: Tensor | None = None) -> None:
        super().__init__()
        self.kernel_size = sizes(kernel_size, self.rank)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else sizes(output_size, self.rank)
        self.output_ratio = None if output_ratio is None else sizes(output_ratio, self.rank)
        name = type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling "
                             "ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        return type(self).function(input, self.kernel_size, self.output_size, self.output_ratio,
                                   self.return_indices, self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPoolNd, rank=2, function=F.fractional_max_pool2d):
    """Maxima over windows of images at pseudo-random places."""


class FractionalMaxPool3d(_FractionalMaxPoolNd, rank=3, function=F.fractional_max_pool3d):
    """Maxima over windows of volumes at pseudo-random places."""


class _LPPoolNd(Family, shown=("norm_type", "kernel_size", "stride", "ceil_mode")):
    def __init__(self, norm_type: float, kernel_size, stride=None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size = norm_type, kernel_size
        self.stride, self.ceil_mode = stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, float(self.norm_type), self.kernel_size, self.stride,
                                   self.ceil_mode)


class LPPool1d(_LPPoolNd, function=F.lp_pool1d):
    """Power sums over sliding windows of signals."""


class LPPool2d(_LPPoolNd, function=F.lp_pool2d):
    """Power sums over sliding windows of images."""


class LPPool3d(_LPPoolNd, function=F.lp_pool3d):
    """Power sums over sliding windows of volumes."""
