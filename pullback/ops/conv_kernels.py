"""Kernels of convolution, and what they check.

An *image* (the large side: the input, or the output of a transposed convolution) is cut into
windows; each window gives one position of the *map* (the small side).  With a weight between
them there are three kernels, the partial derivatives of one trilinear form: `gather` (image and
weight give the map), `scatter` (map and weight give the image) and `correlate` (image and map give
the weight).  All copy windows into columns and multiply matrices, as many examples at a time as fit
in a cache.  Read next: `conv.py`.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from ..array.dims import for_each_dim
from ..array.size import cached, holds
from ..errors import DTypeError, ShapeError
from .norm import narrowed, widened

CACHE = 1 << 20  # bytes of columns at a time: what a core's own cache holds
DEVICE = 1 << 28  # the same where launching a kernel costs more than reading memory

# ---------------------------------------------------------------------------------------------
# Windows


@dataclass(frozen=True, slots=True)
class Windows:
    """Where the windows of an image lie; one number for each spatial dim."""

    image: tuple[int, ...]  # sizes of the image, without padding
    counts: tuple[int, ...]  # numbers of windows
    kernel: tuple[int, ...]  # elements of a window
    stride: tuple[int, ...]  # from one window to the next
    padding: tuple[int, ...]  # zeros on both sides of the image
    dilation: tuple[int, ...]  # from one element of a window to the next

    @property
    def padded(self) -> tuple[int, ...]:
        """Sizes of the image with its padding."""
        return tuple(n + 2 * p for n, p in zip(self.image, self.padding, strict=True))

    def turned(self) -> Windows | None:
        """Windows of the map whose gathering is this scattering; None where strides forbid it."""
        borders = tuple(d * (k - 1) - p for d, k, p in zip(
            self.dilation, self.kernel, self.padding, strict=True))
        fits = all(n == c + 2 * b - d * (k - 1) for n, c, b, d, k in zip(
            self.image, self.counts, borders, self.dilation, self.kernel, strict=True))
        if any(s != 1 for s in self.stride) or min(borders) < 0 or not fits:
            return None
        return Windows(self.counts, self.image, self.kernel, self.stride, borders, self.dilation)

    def inside(self) -> tuple:
        """The index that takes the image out of the padded one."""
        return (..., *(slice(p, p + n) for n, p in zip(self.image, self.padding, strict=True)))


def _padded(xp, image, win: Windows):
    if not any(win.padding):
        return image
    out = xp.zeros((*image.shape[:2], *win.padded), dtype=image.dtype)
    out[win.inside()] = image
    return out


def cut(xp, image, win: Windows):
    """All windows of (n, channels, *image) as a view (n, channels, *kernel, *counts)."""
    image = _padded(xp, image, win)
    steps = image.strides[2:]
    return xp.lib.stride_tricks.as_strided(
        image, (*image.shape[:2], *win.kernel, *win.counts),
        (*image.strides[:2], *(s * d for s, d in zip(steps, win.dilation, strict=True)),
         *(s * t for s, t in zip(steps, win.stride, strict=True))))


def paste(image, windows, win: Windows) -> None:
    """Add (n, channels, *kernel, *counts) to the padded image, where `cut` would find them."""
    if math.prod(win.kernel) <= math.prod(win.counts):  # the shorter loop
        near, far, pitch, hop = win.kernel, win.counts, win.dilation, win.stride
        order = windows
    else:
        near, far, pitch, hop = win.counts, win.kernel, win.stride, win.dilation
        rank = len(near)
        order = windows.transpose((0, 1, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank)))
    for place in itertools.product(*map(range, near)):
        region = image[(..., *(slice(i * p, i * p + (n - 1) * h + 1, h)
                               for i, p, n, h in zip(place, pitch, far, hop, strict=True)))]
        region += order[(slice(None), slice(None), *place)]


# ---------------------------------------------------------------------------------------------
# The three kernels


def _parts(xp, count: int, example: int):
    """Slices of a batch whose columns fit in the cache; `example` is the size of one's in bytes."""
    limit = CACHE if xp.__name__ == "numpy" else DEVICE
    step = max(1, limit // max(example, 1))
    return [slice(i, min(i + step, count)) for i in range(0, count, step)]


def _columns(xp, windows, groups: int):
    """(n, channels, *kernel, *counts) as (groups, channels of one * kernel, n * counts)."""
    n, channels, *sizes = windows.shape
    rank = len(sizes) // 2
    order = (*range(1, 2 + rank), 0, *range(2 + rank, 2 + 2 * rank))
    rows = channels // groups * math.prod(sizes[:rank])
    return xp.ascontiguousarray(windows.transpose(order)).reshape(
        groups, rows, n * math.prod(sizes[rank:]))


def _rows(values, groups: int):
    """(n, channels, *counts) as (groups, channels of one, n * counts)."""
    n, channels, *counts = values.shape
    size = math.prod(counts)
    parts = values.reshape(n, groups, channels // groups, size).transpose(1, 2, 0, 3)
    return parts.reshape(groups, channels // groups, n * size)


def _finite(array) -> bool:
    """Are all elements finite?  The sum of squares mostly tells, in one product."""
    flat = array.reshape(-1)
    total = flat @ flat
    return bool(total - total == 0) or bool((flat - flat == 0).all())


def _touching(win: Windows):
    """For each element of a window: the part of the map where it lies in the image, not in the
    padding, and the part of the image there.
    """
    for place in itertools.product(*map(range, win.kernel)):
        of_map, of_image = [], []
        for k, n, count, stride, pad, dilation in zip(
                place, win.image, win.counts, win.stride, win.padding, win.dilation, strict=True):
            shift = k * dilation - pad
            first = max(0, -(shift // stride))
            last = min(count, (n - 1 - shift) // stride + 1)
            of_map.append(slice(first, max(first, last)))
            start = first * stride + shift
            of_image.append(slice(start, max(start, (last - 1) * stride + shift + 1), stride))
        if all(s.stop > s.start for s in of_map):
            yield place, (..., *of_map), (..., *of_image)


def _gather_inside(xp, image, weight, win: Windows, groups: int):
    """`gather` element by element of a window, without the padding: zeros times what is infinite
    would be NaN.
    """
    n, channels = image.shape[0], weight.shape[0]
    out = xp.zeros((n, channels, *win.counts), dtype=image.dtype)
    for place, of_map, of_image in _touching(win):
        part = image[of_image]
        matrix = weight[(..., *place)].reshape(groups, channels // groups, -1)
        product = xp.matmul(matrix, _rows(part, groups))
        out[of_map] += product.reshape(channels, n, *part.shape[2:]).swapaxes(0, 1)
    return out


def _correlate_inside(xp, image, values, win: Windows, groups: int):
    """`correlate` without the padding."""
    rows, inner = values.shape[1], image.shape[1] // groups
    out = xp.zeros((rows, inner, *win.kernel), dtype=image.dtype)
    for place, of_map, of_image in _touching(win):
        product = xp.matmul(_rows(values[of_map], groups),
                            _rows(image[of_image], groups).swapaxes(1, 2))
        out[(..., *place)] = product.reshape(rows, inner)
    return out


def gather(xp, image, weight, win: Windows, groups: int):
    """The map of an image: (n, image channels, *image) -> (n, map channels, *counts)."""
    if any(win.padding) and not _finite(weight):
        return _gather_inside(xp, image, weight, win, groups)
    n, channels = image.shape[0], weight.shape[0]
    out = xp.empty((n, channels, *win.counts), dtype=image.dtype)
    matrix = weight.reshape(groups, channels // groups, -1)
    windows = cut(xp, image, win)
    for part in _parts(xp, n, windows[:1].size * windows.itemsize):
        columns = _columns(xp, windows[part], groups)
        target = out[part]
        if target.shape[0] == 1:
            xp.matmul(matrix, columns, out=target.reshape(groups, channels // groups, -1))
        else:
            product = xp.matmul(matrix, columns).reshape(channels, -1, *win.counts)
            target[...] = product.swapaxes(0, 1)
    return out


def _flipped(weight, groups: int):
    """The weight that turns `scatter` into `gather`: sides exchanged, windows back to front."""
    outer, inner, *kernel = weight.shape
    parts = weight.reshape(groups, outer // groups, inner, *kernel).swapaxes(1, 2)
    parts = parts[(..., *[slice(None, None, -1)] * len(kernel))]
    return parts.reshape(groups * inner, outer // groups, *kernel)


def scatter(xp, values, weight, win: Windows, groups: int):
    """The transpose of `gather`: (n, map channels, *counts) -> (n, image channels, *image)."""
    n, channels = values.shape[0], weight.shape[1] * groups
    turned = win.turned() if weight.shape[0] <= 2 * channels else None
    if turned is not None:
        return gather(xp, values, _flipped(weight, groups), turned, groups)
    out = xp.zeros((n, channels, *win.image), dtype=values.dtype)
    matrix = weight.reshape(groups, weight.shape[0] // groups, -1).swapaxes(1, 2)
    example = channels * math.prod(win.kernel) * math.prod(win.counts) * values.itemsize
    for part in _parts(xp, n, example):
        product = xp.matmul(matrix, _rows(values[part], groups))
        windows = product.reshape(channels, *win.kernel, -1, *win.counts)
        windows = xp.moveaxis(windows, 1 + len(win.kernel), 0)
        if any(win.padding):
            total = xp.zeros((windows.shape[0], channels, *win.padded), dtype=values.dtype)
            paste(total, windows, win)
            out[part] = total[win.inside()]
        else:
            paste(out[part], windows, win)
    return out


def correlate(xp, image, values, win: Windows, groups: int):
    """The weight of an image and a map: (map channels, image channels of a group, *kernel)."""
    if any(win.padding) and not _finite(values):
        return _correlate_inside(xp, image, values, win, groups)
    n, channels = image.shape[:2]
    rows, inner = values.shape[1], channels // groups
    total = xp.zeros((groups, rows // groups, inner * math.prod(win.kernel)), dtype=image.dtype)
    windows = cut(xp, image, win)
    for part in _parts(xp, n, windows[:1].size * windows.itemsize):
        columns = _columns(xp, windows[part], groups)
        total += xp.matmul(_rows(values[part], groups), columns.swapaxes(1, 2))
    return total.reshape(rows, inner, *win.kernel)


# ---------------------------------------------------------------------------------------------
# Checks


def by(sizes) -> str:
    return "(" + " x ".join(map(str, sizes)) + ")"


def spread(name: str, values, rank: int) -> tuple[int, ...]:
    """One number for each spatial dim."""
    found = for_each_dim(values, rank)
    if found is None:
        raise ShapeError(f"expected {name} to be a single integer value or a list of {rank} values "
                         f"to match the convolution dimensions, but got {name}={list(values)}")
    return tuple(found)


def _check_numbers(stride, padding, dilation, output_padding, groups) -> None:
    if min(padding) < 0:
        raise ShapeError(f"negative padding is not supported, got {list(padding)}")
    if min(output_padding) < 0:
        raise ShapeError(f"negative output_padding is not supported, got {list(output_padding)}")
    if min(stride) <= 0:
        raise ShapeError(f"non-positive stride is not supported, got {list(stride)}")
    if min(dilation) <= 0:
        raise ShapeError(f"dilation should be greater than zero, but got {list(dilation)}")
    if groups <= 0:
        raise ShapeError(f"non-positive groups is not supported, got {groups}")


def check_dtypes(input, weight, bias) -> None:
    dtype = input.dtype
    for name, other in (("weight", weight), ("bias", bias)):
        if other is not None and other.dtype != dtype:
            raise DTypeError(f"Input type ({dtype.name}) and {name} type ({other.dtype.name}) "
                             "should be the same")
    if getattr(dtype, "np", dtype).kind == "b":
        raise NotImplementedError("convolution is not implemented for 'Bool'")


def _check_channels(input, weight, bias, transposed: bool, groups: int) -> None:
    if weight[0] < groups or weight[0] % groups:
        need = f"at least {groups}" if weight[0] < groups else f"divisible by {groups}"
        raise ShapeError(f"Given groups={groups}, expected weight to be {need} at dimension 0, "
                         f"but got weight of size {list(weight)} instead")
    wanted = weight[0] if transposed else weight[1] * groups
    if input[1] != wanted:
        raise ShapeError(f"Given groups={groups}, transposed={int(transposed)}, weight of size "
                         f"{list(weight)}, expected input{list(input)} to have {wanted} channels, "
                         f"but got {input[1]} channels instead")
    channels = weight[1] * groups if transposed else weight[0]
    if bias is not None and bias != (channels,):
        raise ShapeError(f"Given transposed={int(transposed)}, weight of size {list(weight)}, "
                         f"expected bias to be 1-dimensional with {channels} elements, but got "
                         f"bias of size {list(bias)} instead")


def plan(input, weight, bias, stride, padding, dilation, transposed, output_padding,
         groups) -> tuple[Windows, tuple[int, ...]]:
    """The windows of a convolution and the shape of its result; refuses what does not fit."""
    check_dtypes(input, weight, bias)
    return window_plan(tuple(input.shape), tuple(weight.shape),
                       None if bias is None else tuple(bias.shape), tuple(stride),
                       tuple(padding), tuple(dilation), transposed, tuple(output_padding), groups)


@cached(1024)  # a training loop asks for the same few over and over
def window_plan(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    rank = len(weight) - 2
    if rank < 1:
        raise no_spatial_dims(weight)
    stride, padding, dilation, output_padding = (
        spread(name, values, rank) for name, values in (
            ("stride", stride), ("padding", padding), ("dilation", dilation),
            ("output_padding", output_padding)))
    _check_numbers(stride, padding, dilation, output_padding, groups)
    if len(input) != rank + 2:
        raise ShapeError(f"Expected {rank + 2}-dimensional input for {rank + 2}-dimensional weight "
                         f"{list(weight)}, but got {len(input)}-dimensional input of size "
                         f"{list(input)} instead")
    _check_channels(input, weight, bias, transposed, groups)
    kernel = weight[2:]
    if min(kernel) <= 0:
        raise ShapeError(f"kernel size should be greater than zero, but got {list(kernel)}")
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    if transposed:
        image = _transposed_sizes(input, reach, stride, padding, dilation, output_padding)
        return (Windows(image, input[2:], kernel, stride, padding, dilation),
                (input[0], weight[1] * groups, *image))
    counts = _counts(input, reach, stride, padding)
    # PyTorch gives an input without channels an output without channels
    channels = weight[0] if input[1] else 0
    return (Windows(input[2:], counts, kernel, stride, padding, dilation),
            (input[0], channels, *counts))


def no_spatial_dims(weight) -> ShapeError:
    return ShapeError(f"weight should have at least three dimensions, got {list(weight)}")


def _check_sizes(input) -> None:
    if 0 in input[2:] and 0 not in input[:2]:
        raise ShapeError("Only zero batch or zero channel inputs are supported, but got input "
                         f"shape: {list(input)}")


def _counts(input, reach, stride, padding) -> tuple[int, ...]:
    """How many windows fit in each dim."""
    padded = [n + 2 * p for n, p in zip(input[2:], padding, strict=True)]
    if not all(holds(n >= r) for n, r in zip(padded, reach, strict=True)):
        raise ShapeError(f"Calculated padded input size per channel: {by(padded)}. Kernel size: "
                         f"{by(reach)}. Kernel size can't be greater than actual input size")
    _check_sizes(input)
    return tuple((n - r) // s + 1 for n, r, s in zip(padded, reach, stride, strict=True))


def _transposed_sizes(input, reach, stride, padding, dilation, output_padding) -> tuple[int, ...]:
    """The size of the image that a transposed convolution fills, in each dim."""
    _check_sizes(input)
    if any(o >= max(s, d) for o, s, d in zip(output_padding, stride, dilation, strict=True)):
        raise ShapeError("output padding must be smaller than either stride or dilation, but got "
                         f"output_padding={list(output_padding)}, stride={list(stride)}, "
                         f"dilation={list(dilation)}")
    image = tuple((n - 1) * s - 2 * p + r + o for n, s, p, r, o in zip(
        input[2:], stride, padding, reach, output_padding, strict=True))
    if not all(holds(n > 0) for n in image):
        raise ShapeError(f"Given input size per channel: {by(input[2:])}. Calculated output size "
                         f"per channel: {by(image)}. Output size is too small")
    return image


def convolve(xp, input, weight, bias, *geometry):
    win, shape = plan(input, weight, bias, *geometry)
    transposed, groups = geometry[3], geometry[5]
    if 0 in shape:
        return xp.zeros(shape, dtype=input.dtype)
    kernel = scatter if transposed else gather
    out = kernel(xp, widened(xp, input), widened(xp, weight), win, groups)
    if bias is not None:
        out += widened(xp, bias).reshape(-1, *[1] * len(win.kernel))
    return narrowed(out, input.dtype)


def with_batch(name: str, input, rank: int):
    """The input with a batch dim, and whether it had none."""
    if input.ndim not in (rank + 1, rank + 2):
        raise ShapeError(f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to "
                         f"{name}, but got input of size: {list(input.shape)}")
    alone = input.ndim == rank + 1
    return (input.unsqueeze(0) if alone else input), alone
