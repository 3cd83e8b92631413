"""Pooling.  A missing stride is the size of the window."""

from __future__ import annotations

import math
from typing import Any

from ...core.handle import Tensor
from ...table.packets import ops
from ...tensor.overridable import asks_in as _asks_in
from ...tensor.overridable import overridable as _overridable
from ...tensor.overridable import taken_over as _taken_over
from .arguments import _sequence

_asks = _asks_in(globals())


def _max_pool(rank: int, input: Tensor, kernel_size, stride, padding, dilation, ceil_mode: bool,
              return_indices: bool):
    call = getattr(ops, f"max_pool{rank}d_with_indices" if return_indices else f"max_pool{rank}d")
    return call(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)


def max_pool1d(input: Tensor, kernel_size, stride=None, padding: Any = 0, dilation: Any = 1,
               ceil_mode: bool = False, return_indices: bool = False):
    """Maxima over sliding windows of signals, and on demand their places."""
    if _asks and (taken := _taken_over(max_pool1d, locals())):
        return taken[0]
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(input: Tensor, kernel_size, stride=None, padding: Any = 0, dilation: Any = 1,
               ceil_mode: bool = False, return_indices: bool = False):
    """Maxima over sliding windows of images, and on demand their flat places."""
    if _asks and (taken := _taken_over(max_pool2d, locals())):
        return taken[0]
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(input: Tensor, kernel_size, stride=None, padding: Any = 0, dilation: Any = 1,
               ceil_mode: bool = False, return_indices: bool = False):
    """Maxima over sliding windows of volumes, and on demand their flat places."""
    if _asks and (taken := _taken_over(max_pool3d, locals())):
        return taken[0]
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool1d_with_indices(input: Tensor, kernel_size, stride=None, padding: Any = 0,
                            dilation: Any = 1, ceil_mode: bool = False,
                            return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Maxima over sliding windows of signals, and their places."""
    if _asks and (taken := _taken_over(max_pool1d_with_indices, locals())):
        return taken[0]
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool2d_with_indices(input: Tensor, kernel_size, stride=None, padding: Any = 0,
                            dilation: Any = 1, ceil_mode: bool = False,
                            return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Maxima over sliding windows of images, and their flat places."""
    if _asks and (taken := _taken_over(max_pool2d_with_indices, locals())):
        return taken[0]
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool3d_with_indices(input: Tensor, kernel_size, stride=None, padding: Any = 0,
                            dilation: Any = 1, ceil_mode: bool = False,
                            return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Maxima over sliding windows of volumes, and their flat places."""
    if _asks and (taken := _taken_over(max_pool3d_with_indices, locals())):
        return taken[0]
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, True)


@_overridable
def avg_pool1d(input: Tensor, kernel_size, stride=None, padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True) -> Tensor:
    """Means over sliding windows of signals."""
    return ops.avg_pool1d(input, kernel_size, [] if stride is None else stride, padding, ceil_mode,
                          count_include_pad)


@_overridable
def avg_pool2d(input: Tensor, kernel_size, stride=None, padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
    """Means over sliding windows of images."""
    return ops.avg_pool2d(input, kernel_size, [] if stride is None else stride, padding, ceil_mode,
                          count_include_pad, divisor_override)


@_overridable
def avg_pool3d(input: Tensor, kernel_size, stride=None, padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
    """Means over sliding windows of volumes."""
    return ops.avg_pool3d(input, kernel_size, [] if stride is None else stride, padding, ceil_mode,
                          count_include_pad, divisor_override)


def _adaptive_size(input: Tensor, output_size):
    """The wanted size, with the input's where it is None."""
    if not isinstance(output_size, (list, tuple)):
        return output_size
    if input.ndim <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    own = input.shape[input.ndim - len(output_size):]
    return [n if size is None else size for size, n in zip(output_size, own)]


@_overridable
def adaptive_avg_pool1d(input: Tensor, output_size) -> Tensor:
    """Means over as many windows of signals as asked for."""
    return ops.adaptive_avg_pool1d(input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size) -> Tensor:
    """Means over as many windows of images as asked for."""
    if _asks and (taken := _taken_over(adaptive_avg_pool2d, locals())):
        return taken[0]
    return ops.adaptive_avg_pool2d(input, _adaptive_size(input, output_size))


def adaptive_avg_pool3d(input: Tensor, output_size) -> Tensor:
    """Means over as many windows of volumes as asked for."""
    if _asks and (taken := _taken_over(adaptive_avg_pool3d, locals())):
        return taken[0]
    return ops.adaptive_avg_pool3d(input, _adaptive_size(input, output_size))


def adaptive_max_pool1d_with_indices(input: Tensor, output_size,
                                     return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Maxima over as many windows of signals as asked for, and their places."""
    if _asks and (taken := _taken_over(adaptive_max_pool1d_with_indices, locals())):
        return taken[0]
    return ops.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool2d_with_indices(input: Tensor, output_size,
                                     return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Maxima over as many windows of images as asked for, and their flat places."""
    if _asks and (taken := _taken_over(adaptive_max_pool2d_with_indices, locals())):
        return taken[0]
    return ops.adaptive_max_pool2d(input, _adaptive_size(input, output_size))


def adaptive_max_pool3d_with_indices(input: Tensor, output_size,
                                     return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Maxima over as many windows of volumes as asked for, and their flat places."""
    if _asks and (taken := _taken_over(adaptive_max_pool3d_with_indices, locals())):
        return taken[0]
    return ops.adaptive_max_pool3d(input, _adaptive_size(input, output_size))


def adaptive_max_pool1d(input: Tensor, output_size, return_indices: bool = False):
    """Maxima over as many windows of signals as asked for, and on demand their places."""
    if _asks and (taken := _taken_over(adaptive_max_pool1d, locals())):
        return taken[0]
    found = adaptive_max_pool1d_with_indices(input, output_size)
    return found if return_indices else found[0]


def adaptive_max_pool2d(input: Tensor, output_size, return_indices: bool = False):
    """Maxima over as many windows of images as asked for, and on demand their flat places."""
    if _asks and (taken := _taken_over(adaptive_max_pool2d, locals())):
        return taken[0]
    found = adaptive_max_pool2d_with_indices(input, output_size)
    return found if return_indices else found[0]


def adaptive_max_pool3d(input: Tensor, output_size, return_indices: bool = False):
    """Maxima over as many windows of volumes as asked for, and on demand their flat places."""
    if _asks and (taken := _taken_over(adaptive_max_pool3d, locals())):
        return taken[0]
    found = adaptive_max_pool3d_with_indices(input, output_size)
    return found if return_indices else found[0]


def _fractional_max_pool(rank: int, input: Tensor, kernel_size, output_size, output_ratio,
                         samples: Tensor | None) -> tuple[Tensor, Tensor]:
    if output_size is None:
        if output_ratio is None:
            raise ValueError(f"fractional_max_pool{rank}d requires specifying either an "
                             "output_size or an output_ratio")
        ratios = _sequence(output_ratio, rank)
        output_size = [int(n * r) for n, r in zip(input.shape[-rank:], ratios)]
    if samples is None:
        images = 1 if input.ndim == rank + 1 else input.shape[0]
        samples = ops.rand([images, input.shape[-rank - 1], rank], dtype=input.dtype,
                           device=input.device)
    return getattr(ops, f"fractional_max_pool{rank}d")(input, kernel_size, output_size, samples)


def fractional_max_pool2d_with_indices(input: Tensor, kernel_size, output_size=None,
                                       output_ratio=None, return_indices: bool = False,
                                       _random_samples: Tensor | None = None
                                       ) -> tuple[Tensor, Tensor]:
    """Maxima over windows of images at pseudo-random places, and their flat places."""
    if _asks and (taken := _taken_over(fractional_max_pool2d_with_indices, locals())):
        return taken[0]
    return _fractional_max_pool(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d_with_indices(input: Tensor, kernel_size, output_size=None,
                                       output_ratio=None, return_indices: bool = False,
                                       _random_samples: Tensor | None = None
                                       ) -> tuple[Tensor, Tensor]:
    """Maxima over windows of volumes at pseudo-random places, and their flat places."""
    if _asks and (taken := _taken_over(fractional_max_pool3d_with_indices, locals())):
        return taken[0]
    return _fractional_max_pool(3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(input: Tensor, kernel_size, output_size=None, output_ratio=None,
                          return_indices: bool = False, _random_samples: Tensor | None = None):
    """Maxima over windows of images at pseudo-random places."""
    if _asks and (taken := _taken_over(fractional_max_pool2d, locals())):
        return taken[0]
    found = _fractional_max_pool(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


def fractional_max_pool3d(input: Tensor, kernel_size, output_size=None, output_ratio=None,
                          return_indices: bool = False, _random_samples: Tensor | None = None):
    """Maxima over windows of volumes at pseudo-random places."""
    if _asks and (taken := _taken_over(fractional_max_pool3d, locals())):
        return taken[0]
    found = _fractional_max_pool(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


def _unpool_arguments(rank: int, input: Tensor, kernel_size, stride, padding,
                      output_size) -> tuple[list, list, list]:
    """(output size, stride, padding) of unpooling; a wanted size must be one that pooling fits."""
    kernel = _sequence(kernel_size, rank)
    stride = kernel if stride is None else _sequence(stride, rank)
    padding = _sequence(padding, rank)
    usual = [(n - 1) * s + k - 2 * p
             for n, k, s, p in zip(input.shape[-rank:], kernel, stride, padding)]
    if output_size is None:
        return usual, stride, padding
    size = list(output_size)
    size = size[2:] if len(size) == rank + 2 else size
    if len(size) != rank:
        raise ValueError(f"output_size should be a sequence containing {rank} or {rank + 2} "
                         f"elements, but it has a length of '{len(output_size)}'")
    for d, (n, usually, s) in enumerate(zip(size, usual, stride)):
        if not usually - s < n < usually + s:
            raise ValueError(f"invalid output_size \"{size}\" (dim {d} must be between "
                             f"{usually - s} and {usually + s})")
    return size, stride, padding


def max_unpool1d(input: Tensor, indices: Tensor, kernel_size, stride=None, padding: Any = 0,
                 output_size=None) -> Tensor:
    """Zeros with the elements of signals at the places that pooling found."""
    if _asks and (taken := _taken_over(max_unpool1d, locals())):
        return taken[0]
    size, _, _ = _unpool_arguments(1, input, kernel_size, stride, padding, output_size)
    out = ops.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1])
    return out.squeeze(-1)


def max_unpool2d(input: Tensor, indices: Tensor, kernel_size, stride=None, padding: Any = 0,
                 output_size=None) -> Tensor:
    """Zeros with the elements of images at the places that pooling found."""
    if _asks and (taken := _taken_over(max_unpool2d, locals())):
        return taken[0]
    size, _, _ = _unpool_arguments(2, input, kernel_size, stride, padding, output_size)
    return ops.max_unpool2d(input, indices, size)


def max_unpool3d(input: Tensor, indices: Tensor, kernel_size, stride=None, padding: Any = 0,
                 output_size=None) -> Tensor:
    """Zeros with the elements of volumes at the places that pooling found."""
    if _asks and (taken := _taken_over(max_unpool3d, locals())):
        return taken[0]
    size, stride, padding = _unpool_arguments(3, input, kernel_size, stride, padding, output_size)
    return ops.max_unpool3d(input, indices, size, stride, padding)


def _lp_pool(rank: int, input: Tensor, norm_type: float, kernel_size, stride,
             ceil_mode: bool) -> Tensor:
    """(sum of x^p over each window)^(1/p); a negative sum keeps its sign, as in PyTorch."""
    kernel = _sequence(kernel_size, rank)
    mean = getattr(ops, f"avg_pool{rank}d")(input.pow(norm_type), kernel,
                                            [] if stride is None else stride, 0, ceil_mode)
    total = mean.sign() * ops.relu(mean.abs()) * math.prod(kernel)
    return total.pow(1.0 / norm_type)


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: int, stride=None,
              ceil_mode: bool = False) -> Tensor:
    """Power sums over sliding windows of signals."""
    if _asks and (taken := _taken_over(lp_pool1d, locals())):
        return taken[0]
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input: Tensor, norm_type: float, kernel_size, stride=None,
              ceil_mode: bool = False) -> Tensor:
    """Power sums over sliding windows of images."""
    if _asks and (taken := _taken_over(lp_pool2d, locals())):
        return taken[0]
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input: Tensor, norm_type: float, kernel_size, stride=None,
              ceil_mode: bool = False) -> Tensor:
    """Power sums over sliding windows of volumes."""
    if _asks and (taken := _taken_over(lp_pool3d, locals())):
        return taken[0]
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)
