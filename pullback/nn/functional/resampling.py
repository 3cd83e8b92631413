"""Padding, resizing, sampling at a grid, shuffles of pixels and channels."""

from __future__ import annotations

import math
import warnings

from ...core.handle import Tensor
from ...table.packets import ops
from ...tensor.overridable import asks_in as _asks_in
from ...tensor.overridable import overridable as _overridable
from ...tensor.overridable import taken_over as _taken_over
from .arguments import _sequence

_asks = _asks_in(globals())


@_overridable
def pad(input: Tensor, pad, mode: str = "constant", value: float | None = None) -> Tensor:
    """Extend the last dims; `pad` lists (before, after) from the last dim on."""
    if mode == "constant":
        return ops.constant_pad_nd(input, list(pad), 0.0 if value is None else value)
    return ops.pad(input, list(pad), mode, value)


# ---------------------------------------------------------------------------------------------
# Resizing

# mode -> operator for one, two and three spatial dims
_RESIZE = {
    "nearest": ("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"),
    "nearest-exact": ("_upsample_nearest_exact1d", "_upsample_nearest_exact2d",
                      "_upsample_nearest_exact3d"),
    "area": ("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"),
    "linear": ("upsample_linear1d", None, None),
    "bilinear": (None, "upsample_bilinear2d", None),
    "trilinear": (None, None, "upsample_trilinear3d"),
    "bicubic": (None, "upsample_bicubic2d", None),
    "lanczos": (None, None, None),
}
_SMOOTH = {"bilinear": "_upsample_bilinear2d_aa", "bicubic": "_upsample_bicubic2d_aa",
           "lanczos": "_upsample_lanczos2d_aa"}


def _resize_arguments(input: Tensor, size, scale_factor) -> tuple[list | None, list | None]:
    """(size, scale factors), one of them None, with one entry for each spatial dim."""
    rank = input.ndim - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    what, value = ("size", size) if size is not None else ("scale_factor", scale_factor)
    if isinstance(value, (list, tuple)) and len(value) != rank:
        raise ValueError(f"Input and {what} must have the same number of spatial dimensions, but "
                         f"got input with spatial dimensions of {list(input.shape[2:])} and {what} "
                         f"of {value}. Please provide input tensor in (N, C, d1, d2, ...,dK) "
                         f"format and {what} in (s1, s2, ...,sK) format.")
    value = _sequence(value, rank)
    return (value, None) if size is not None else (None, [float(v) for v in value])


def interpolate(input: Tensor, size=None, scale_factor=None, mode: str = "nearest",
                align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                antialias: bool = False) -> Tensor:
    """Signals, images or volumes resized to a size or by a factor."""
    if _asks and (taken := _taken_over(interpolate, locals())):
        return taken[0]
    flags: list = []
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError("align_corners option can only be set with the interpolating modes: "
                             "linear | bilinear | bicubic | trilinear")
    else:
        flags = [bool(align_corners)]
    if mode == "lanczos" and (align_corners or not antialias):
        raise ValueError("Lanczos mode requires antialias=True and does not support "
                         "align_corners=True")
    rank = input.ndim - 2
    size, scales = _resize_arguments(input, size, scale_factor)
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if scales is not None and (recompute_scale_factor or mode == "area"):
        size = [math.floor(float(n) * s) for n, s in zip(input.shape[2:], scales)]
        scales = None
    if antialias:
        if mode not in _SMOOTH or rank != 2:
            raise ValueError("Anti-alias option is restricted to bilinear, bicubic and lanczos "
                             "modes and requires a 4-D tensor as input")
        return getattr(ops, _SMOOTH[mode])(input, size, *flags, scales)
    if mode not in _RESIZE or rank not in (1, 2, 3) or _RESIZE[mode][rank - 1] is None:
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported "
            f"(got {input.ndim}D) for the modes: nearest | linear | bilinear | bicubic | trilinear "
            f"| area | nearest-exact (got {mode})")
    call = getattr(ops, _RESIZE[mode][rank - 1])
    if mode == "area":
        return call(input, size)
    return call(input, size, *flags, scales)


def upsample(input: Tensor, size=None, scale_factor=None, mode: str = "nearest",
             align_corners: bool | None = None) -> Tensor:
    """The old name of `interpolate`."""
    if _asks and (taken := _taken_over(upsample, locals())):
        return taken[0]
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` "
                  "instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size=None, scale_factor=None) -> Tensor:
    """`interpolate` to the nearest element."""
    if _asks and (taken := _taken_over(upsample_nearest, locals())):
        return taken[0]
    warnings.warn("`nn.functional.upsample_nearest` is deprecated. Use "
                  "`nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size=None, scale_factor=None) -> Tensor:
    """Bilinear `interpolate` with aligned corners."""
    if _asks and (taken := _taken_over(upsample_bilinear, locals())):
        return taken[0]
    warnings.warn("`nn.functional.upsample_bilinear` is deprecated. Use "
                  "`nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def _aligned(name: str, align_corners: bool | None) -> bool:
    if align_corners is None:
        warnings.warn(f"Default {name} behavior has changed to align_corners=False since 1.3.0. "
                      "Please specify align_corners=True if the old behavior is desired.",
                      stacklevel=3)
    return bool(align_corners)


def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool | None = None) -> Tensor:
    """Values of images or volumes at the points of a grid, whose coordinates are in [-1, 1]."""
    if _asks and (taken := _taken_over(grid_sample, locals())):
        return taken[0]
    if mode not in GRID_SAMPLE_INTERPOLATION_MODES:
        raise ValueError("nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' "
                         f"or 'bicubic', but got: '{mode}'")
    if padding_mode not in GRID_SAMPLE_PADDING_MODES:
        raise ValueError("nn.functional.grid_sample(): expected padding_mode to be 'zeros', "
                         f"'border', or 'reflection', but got: '{padding_mode}'")
    return ops.grid_sampler(input, grid, GRID_SAMPLE_INTERPOLATION_MODES[mode],
                            GRID_SAMPLE_PADDING_MODES[padding_mode],
                            _aligned("grid_sample", align_corners))


def affine_grid(theta: Tensor, size, align_corners: bool | None = None) -> Tensor:
    """Grids for `grid_sample` from a batch of affine maps."""
    if _asks and (taken := _taken_over(affine_grid, locals())):
        return taken[0]
    align_corners = _aligned("affine_grid", align_corners)
    if not theta.dtype.is_floating_point:
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    size = list(size)
    rank = len(size) - 2
    if rank not in (2, 3):
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine "
                                  f"transforms, respectively. Got size {size}.")
    if theta.ndim != 3 or tuple(theta.shape[-2:]) != (rank, rank + 1):
        raise ValueError(f"Expected a batch of {rank}D affine matrices of shape "
                         f"Nx{rank}x{rank + 1} for size {size}. Got {tuple(theta.shape)}.")
    if align_corners and min(size[2:]) == 1:
        warnings.warn("Since version 1.3.0, affine_grid behavior has changed for unit-size grids "
                      "when align_corners=True: the only point of a dimension is its centre.",
                      stacklevel=2)
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return ops.affine_grid_generator(theta, size, align_corners)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Each r * r channels become blocks of r by r pixels."""
    if _asks and (taken := _taken_over(pixel_shuffle, (input, upscale_factor))):
        return taken[0]
    return ops.pixel_shuffle(input, upscale_factor)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Blocks of r by r pixels become r * r channels."""
    if _asks and (taken := _taken_over(pixel_unshuffle, (input, downscale_factor))):
        return taken[0]
    return ops.pixel_unshuffle(input, downscale_factor)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels in groups are interleaved."""
    if _asks and (taken := _taken_over(channel_shuffle, (input, groups))):
        return taken[0]
    return ops.channel_shuffle(input, groups)


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The same as `channel_shuffle`."""
    if _asks and (taken := _taken_over(native_channel_shuffle, (input, groups))):
        return taken[0]
    return ops.native_channel_shuffle(input, groups)
