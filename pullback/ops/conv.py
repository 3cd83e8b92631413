"""Convolution, its transpose and its gradients.

An *image* (the large side: the input, or the output of a transposed convolution) is cut into
windows; each window gives one position of the *map* (the small side).  With a weight between
them there are three kernels, the partial derivatives of one trilinear form: `gather` (image and
weight give the map), `scatter` (map and weight give the image) and `correlate` (image and map give
the weight).  All copy windows into columns and multiply matrices, as many examples at a time as fit
in a cache.  Derivatives are in `formulas/conv.py`.  Read next: `blocks.py`.
"""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import dataclass

from ..array.size import cached, holds
from ..core.op import Composite, Op
from ..errors import DTypeError, ShapeError
from ..formulas.conv import convolution_double_grads
from ..table.packets import ops
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


def _by(sizes) -> str:
    return "(" + " x ".join(map(str, sizes)) + ")"


def _spread(name: str, values, rank: int) -> tuple[int, ...]:
    """One number for each spatial dim."""
    if len(values) == 1:
        return tuple(values) * rank
    if len(values) != rank:
        raise ShapeError(f"expected {name} to be a single integer value or a list of {rank} values "
                         f"to match the convolution dimensions, but got {name}={list(values)}")
    return tuple(values)


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
        raise _flat(weight)
    stride, padding, dilation, output_padding = (
        _spread(name, values, rank) for name, values in (
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


def _flat(weight) -> ShapeError:
    return ShapeError(f"weight should have at least three dimensions, got {list(weight)}")


def _check_sizes(input) -> None:
    if 0 in input[2:] and 0 not in input[:2]:
        raise ShapeError("Only zero batch or zero channel inputs are supported, but got input "
                         f"shape: {list(input)}")


def _counts(input, reach, stride, padding) -> tuple[int, ...]:
    """How many windows fit in each dim."""
    padded = [n + 2 * p for n, p in zip(input[2:], padding, strict=True)]
    if not all(holds(n >= r) for n, r in zip(padded, reach, strict=True)):
        raise ShapeError(f"Calculated padded input size per channel: {_by(padded)}. Kernel size: "
                         f"{_by(reach)}. Kernel size can't be greater than actual input size")
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
        raise ShapeError(f"Given input size per channel: {_by(input[2:])}. Calculated output size "
                         f"per channel: {_by(image)}. Output size is too small")
    return image


# ---------------------------------------------------------------------------------------------
# vmap: the hidden dim becomes part of the batch or of the channels


def _into_batch(t):
    """(hidden, batch, ...) -> (hidden * batch, ...)."""
    return t.reshape([t.shape[0] * t.shape[1], *t.shape[2:]])


def _out_of_batch(t, n: int):
    return t.reshape([n, t.shape[0] // n, *t.shape[1:]])


def _into_dim(t, dim: int, groups: int):
    """The hidden dim in front put into dim `dim` of an example, inside of each of its blocks."""
    n, *sizes = t.shape
    size = sizes[dim]
    t = t.reshape([n, *sizes[:dim], groups, size // groups, *sizes[dim + 1:]]).movedim(0, dim + 1)
    return t.reshape([*sizes[:dim], n * size, *sizes[dim + 1:]])


def _out_of_dim(t, n: int, dim: int, groups: int):
    """The inverse of `_into_dim`."""
    sizes = list(t.shape)
    size = sizes[dim] // n
    t = t.reshape([*sizes[:dim], groups, n, size // groups, *sizes[dim + 1:]])
    return t.movedim(dim + 1, 0).reshape([n, *sizes[:dim], size, *sizes[dim + 1:]])


def _blank(t, dim: int, factor: int, batched: bool):
    """Something of a shape that the gradient operator asks for but does not read."""
    sizes = list(t.shape[1:] if batched else t.shape)
    sizes[dim] *= factor
    return t.new_zeros(sizes)


def _input_grads(n, batched, grad, input, weight, geometry, groups):
    """Gradients of the input for all examples; `batched` says which of the tensors differ."""
    own_grad, own_input, own_weight = batched
    mask = [True, False, False]
    dim = 0 if geometry[3] else 1  # of the weight: the channels of the input
    if own_grad and own_weight:
        grad, weight = _into_dim(grad, 1, 1), _into_dim(weight, 0, 1)
        input = _blank(input, 1, n, own_input)
        many = n * groups
        out = ops.convolution_backward(grad, input, weight, None, *geometry, many, mask)[0]
        return _out_of_dim(out, n, 1, 1)
    if own_grad:
        grad, input = _into_batch(grad), _blank(input, 0, n, own_input)
        out = ops.convolution_backward(grad, input, weight, None, *geometry, groups, mask)[0]
        return _out_of_batch(out, n)
    if own_weight:
        weight = _into_dim(weight, dim, 1 if dim else groups)
        input = _blank(input, 1, n, own_input)
        out = ops.convolution_backward(grad, input, weight, None, *geometry, groups, mask)[0]
        return _out_of_dim(out, n, 1, groups)
    input = _blank(input, 0, 1, own_input)
    out = ops.convolution_backward(grad, input, weight, None, *geometry, groups, mask)[0]
    return out.unsqueeze(0).expand([n, *out.shape])


def _weight_grads(n, batched, grad, input, weight, geometry, groups):
    """Gradients of the weight for all examples."""
    own_grad, own_input, own_weight = batched
    mask = [False, True, False]
    dim, many = 0, n * groups  # of the weight: where the hidden dim goes
    if own_grad and own_input:
        grad, input = _into_dim(grad, 1, 1), _into_dim(input, 1, 1)
        blocks = 1
    elif own_grad or own_input:
        dim, many = int(own_grad == bool(geometry[3])), groups
        blocks = 1 if dim else groups
        if own_grad:
            grad = _into_dim(grad, 1, groups)
        else:
            input = _into_dim(input, 1, groups)
    else:
        weight = _blank(weight, 0, 1, own_weight)
        out = ops.convolution_backward(grad, input, weight, None, *geometry, groups, mask)[1]
        return out.unsqueeze(0).expand([n, *out.shape])
    weight = _blank(weight, dim, n, own_weight)
    out = ops.convolution_backward(grad, input, weight, None, *geometry, many, mask)[1]
    return _out_of_dim(out, n, dim, blocks)


# ---------------------------------------------------------------------------------------------
# Convolution


def _convolve(xp, input, weight, bias, *geometry):
    win, shape = plan(input, weight, bias, *geometry)
    transposed, groups = geometry[3], geometry[5]
    if 0 in shape:
        return xp.zeros(shape, dtype=input.dtype)
    kernel = scatter if transposed else gather
    out = kernel(xp, widened(xp, input), widened(xp, weight), win, groups)
    if bias is not None:
        out += widened(xp, bias).reshape(-1, *[1] * len(win.kernel))
    return narrowed(out, input.dtype)


class convolution(Op):
    """Convolution (or, if `transposed`, its transpose) in any number of spatial dims."""

    schema = ("convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride,"
              " SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding,"
              " SymInt groups) -> Tensor")
    core = True
    lies = "channels"
    promote = "keep"
    grad = {"input, weight, bias": (
        "(None, None, None) if grad is None else convolution_backward("
        "grad, input.conj(), weight.conj(), bias.shape, stride, padding, dilation, transposed,"
        " output_padding, groups, grad_input_mask)")}
    push = ("convolution_push(input_p, input_t, weight_p, weight_t, bias_t,"
            " stride, padding, dilation, transposed, output_padding, groups)")
    cost = "heavy"
    method = False
    complex = True

    def run(xp, *args):
        return _convolve(xp, *args)

    def shape(*args):
        return plan(*args)[1]

    def batch(n, batched, input, weight, bias, *numbers):
        own_input, own_weight, own_bias = batched[:3]
        *geometry, groups = numbers
        inner = None if own_bias or own_weight else bias  # a bias that fits the operator as it is
        if own_input and own_weight:
            input, weight = _into_dim(input, 1, 1), _into_dim(weight, 0, 1)
            out = ops.convolution(input, weight, None, *geometry, n * groups)
            out = _out_of_dim(out, n, 1, 1)
        elif own_input:
            out = ops.convolution(_into_batch(input), weight, inner, *numbers)
            out = _out_of_batch(out, n)
        elif own_weight:
            transposed = geometry[3]
            weight = _into_dim(weight, 1, 1) if transposed else _into_dim(weight, 0, groups)
            out = _out_of_dim(ops.convolution(input, weight, None, *numbers), n, 1, groups)
        else:
            out = ops.convolution(input, weight, inner, *numbers).unsqueeze(0)
        if bias is None or inner is not None or not out.shape[2]:  # no channels in, none out
            return out
        return out + bias.reshape([n if own_bias else 1, 1, -1] + [1] * (out.ndim - 3))

    def samples(s):
        plain = [1], [0], [1], False, [0], 1
        yield s(s.real(2, 3, 5, 6), s.real(4, 3, 3, 2), s.real(4), *plain)
        yield s(s.real(2, 4, 6, 5), s.real(6, 2, 2, 3), s.real(6), [2, 1], [1, 2], [2, 1], False,
                [0, 0], 2)
        yield s(s.real(2, 3, 7), s.real(3, 1, 3), None, [2], [1], [1], False, [0], 3)
        yield s(s.real(1, 2, 3, 4, 3), s.real(2, 2, 2, 2, 2), s.real(2), [1], [1], [1], False, [0],
                1)
        yield s(s.real(2, 4, 3, 2), s.real(4, 2, 3, 2), s.real(4), [2, 3], [1, 0], [1, 2], True,
                [1, 2], 2)
        yield s(s.real(2, 3, 4), s.real(3, 2, 3), None, [1], [1], [1], True, [0], 1)
        yield s(s.real(6, 5, 2, 1).permute([3, 2, 1, 0]), s.real(2, 3, 2, 3).transpose(0, 1), None,
                *plain)
        yield s(s.real(1, 2, 4), s.real(3, 2, 4), s.real(3), *plain)  # one window
        yield s(s.real(0, 2, 4), s.real(3, 2, 2), s.real(3), *plain)
        yield s(s.real(0, 2, 4), s.real(2, 3, 2), s.real(3), [1], [0], [1], True, [0], 1)


class _convolution(Op):
    """`convolution` with flags for backends, which do not matter here."""

    schema = ("_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride,"
              " SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding,"
              " SymInt groups, bool benchmark, bool deterministic, bool cudnn_enabled,"
              " bool allow_tf32) -> Tensor")
    number = 1
    promote = "keep"
    grad = convolution.grad
    push = convolution.push
    cost = "heavy"
    method = False
    complex = True

    def run(xp, *args):
        return _convolve(xp, *args[:9])

    def shape(*args):
        return plan(*args[:9])[1]

    def decomp(*args):
        return ops.convolution(*args[:9])

    def samples(s):
        flags = False, False, True, True
        yield s(s.real(2, 4, 6), s.real(2, 2, 3), s.real(2), [2], [1], [1], False, [0], 2, *flags)
        yield s(s.real(2, 3, 4), s.real(3, 2, 3), None, [2], [1], [1], True, [1], 1, *flags)


class _convolution_deprecated(Composite):
    """The form of `_convolution` that older programs call."""

    schema = ("_convolution.deprecated(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride,"
              " SymInt[] padding, SymInt[] dilation, bool transposed, int[] output_padding,"
              " SymInt groups, bool benchmark, bool deterministic, bool cudnn_enabled) -> Tensor")
    method = False
    complex = True

    def compose(*args):
        return ops._convolution(*args, True)

    def samples(s):
        yield s(s.real(2, 4, 6), s.real(2, 2, 3), None, [2], [1], [1], False, [0], 2, False, False,
                True)


class convolution_backward(Op):
    """Gradients of a convolution for input, weight and bias, as the mask asks.

    Plain products: for complex tensors the caller conjugates.
    """

    schema = ("convolution_backward(Tensor grad_output, Tensor input, Tensor weight,"
              " SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation,"
              " bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask)"
              " -> (Tensor, Tensor, Tensor)")
    core = True
    lies = "channels"
    promote = "keep"
    grad = {"grad_output, input, weight": (
        "convolution_double_grads(grads, grad_output.conj(), input.conj(), weight.conj(),"
        " (stride, padding, dilation, transposed, output_padding, groups), grad_input_mask)")}
    diff_outputs = (True, True, True)
    push = {"result0, result1, result2": (
        "convolution_backward_push(grad_output_p, grad_output_t, input_p, input_t, weight_p,"
        " weight_t, bias_sizes, (stride, padding, dilation, transposed, output_padding, groups),"
        " output_mask)")}
    cost = "heavy"
    method = False
    function = False
    complex = True

    def run(xp, grad_output, input, weight, bias_sizes, *numbers):
        *geometry, output_mask = numbers
        win, shape = plan(input, weight, None, *geometry)
        _check_gradient(grad_output, input, shape)
        transposed, groups = geometry[3], geometry[5]
        g, x, w = widened(xp, grad_output), widened(xp, input), widened(xp, weight)
        dx = dw = db = None
        if 0 in shape:
            dx, dw = xp.zeros(x.shape, dtype=x.dtype), xp.zeros(w.shape, dtype=w.dtype)
            db = xp.zeros(_bias_shape(weight, transposed, groups), dtype=g.dtype)
        else:
            if output_mask[0]:
                dx = (gather if transposed else scatter)(xp, g, w, win, groups)
            if output_mask[1]:
                dw = correlate(xp, *((g, x) if transposed else (x, g)), win, groups)
            if output_mask[2]:
                db = g.sum(axis=(0, *range(2, g.ndim)), dtype=g.dtype)
        return tuple(narrowed(t, input.dtype) if wanted else None
                     for t, wanted in zip((dx, dw, db), output_mask, strict=True))

    def shape(grad_output, input, weight, bias_sizes, *numbers):
        *geometry, output_mask = numbers
        _, shape = plan(input, weight, None, *geometry)
        _check_gradient(grad_output, input, shape)
        shapes = (tuple(input.shape), tuple(weight.shape),
                  _bias_shape(weight, geometry[3], geometry[5]))
        return [s if wanted else None for s, wanted in zip(shapes, output_mask, strict=True)]

    def batch(n, batched, grad_output, input, weight, bias_sizes, *numbers):
        *geometry, groups, output_mask = numbers
        case = n, batched[:3], grad_output, input, weight, geometry, groups
        dx = _input_grads(*case) if output_mask[0] else None
        dw = _weight_grads(*case) if output_mask[1] else None
        db = None
        if output_mask[2]:
            g = grad_output if batched[0] else grad_output.unsqueeze(0)
            db = g.sum([1, *range(3, g.ndim)])
            if bias_sizes and not db.shape[1]:
                db = db.new_zeros((1, *bias_sizes))
            db = db.expand([n, db.shape[1]])
        return dx, dw, db

    def samples(s):
        every = [True, True, True]
        plain = [1], [0], [1], False, [0], 1
        yield s(s.real(2, 4, 3, 5), s.real(2, 3, 5, 6), s.real(4, 3, 3, 2), [4], *plain, every)
        yield s(s.real(2, 6, 3, 7), s.real(2, 4, 6, 5), s.real(6, 2, 2, 3), [6], [2, 1], [1, 2],
                [2, 1], False, [0, 0], 2, every)
        yield s(s.real(2, 3, 4), s.real(2, 3, 7), s.real(3, 1, 3), None, [2], [1], [1], False, [0],
                3, [True, True, False])
        yield s(s.real(1, 4, 6, 6), s.real(1, 4, 3, 2), s.real(4, 2, 3, 2), [4], [2, 3], [1, 0],
                [1, 2], True, [1, 0], 2, every)
        yield s(s.real(2, 2, 4), s.real(2, 3, 4), s.real(3, 2, 3), None, [1], [1], [1], True, [0],
                1, [True, False, False])
        yield s(s.real(2, 2, 4), s.real(2, 3, 4), s.real(2, 3, 3), [2], [1], [1], [1], False, [0],
                1, [False, True, True])
        yield s(s.real(1, 3, 1), s.real(1, 2, 4), s.real(3, 2, 4), [3], *plain, every)
        yield s(s.real(0, 3, 3), s.real(0, 2, 4), s.real(3, 2, 2), [3], *plain, every)


def _bias_shape(weight, transposed: bool, groups: int) -> tuple[int]:
    return (weight.shape[1] * groups if transposed else weight.shape[0],)


def _check_gradient(grad_output, input, shape) -> None:
    if tuple(grad_output.shape) != tuple(shape):
        raise ShapeError(f"convolution_backward: expected a gradient of size {list(shape)}, got "
                         f"one of size {list(grad_output.shape)}")
    if grad_output.dtype != input.dtype:
        raise DTypeError(f"convolution_backward: gradient of type {grad_output.dtype.name} for an "
                         f"input of type {input.dtype.name}")


class _convolution_double_backward(Composite):
    """Gradients of `convolution_backward` for gradients of its results; each may be missing."""

    schema = ("_convolution_double_backward(Tensor? ggI, Tensor? ggW, Tensor? ggb, Tensor gO,"
              " Tensor weight, Tensor self, SymInt[] stride, SymInt[] padding, SymInt[] dilation,"
              " bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask)"
              " -> (Tensor, Tensor, Tensor)")
    method = False
    function = False

    def compose(ggI, ggW, ggb, gO, weight, self, *numbers):
        *geometry, output_mask = numbers
        return convolution_double_grads((ggI, ggW, ggb), gO, self, weight, geometry, output_mask)

    def samples(s):
        yield s(s.real(2, 3, 5), s.real(4, 3, 2), s.real(4), s.real(2, 4, 4), s.real(4, 3, 2),
                s.real(2, 3, 5), [1], [0], [1], False, [0], 1, [True, True, True])


# ---------------------------------------------------------------------------------------------
# conv1d ... conv_transpose3d


def _batched(name: str, input, rank: int):
    """The input with a batch dim, and whether it had none."""
    if input.ndim not in (rank + 1, rank + 2):
        raise ShapeError(f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to "
                         f"{name}, but got input of size: {list(input.shape)}")
    alone = input.ndim == rank + 1
    return (input.unsqueeze(0) if alone else input), alone


def _conv(name, input, weight, bias, stride, padding, dilation, groups):
    rank = int(name[4])
    input, alone = _batched(name, input, rank)
    if isinstance(padding, str):
        out = _with_word(input, weight, bias, stride, padding, dilation, groups)
    else:
        rest = False, [0] * rank, groups
        out = ops.convolution(input, weight, bias, stride, padding, dilation, *rest)
    return out.squeeze(0) if alone else out


def _with_word(input, weight, bias, stride, word, dilation, groups):
    """A convolution whose padding is 'valid' (none) or 'same' (the output has the input's size)."""
    rank = weight.ndim - 2
    if rank < 1:
        raise _flat(weight.shape)
    rest = dilation, False, [0] * rank, groups
    if word == "valid":
        return ops.convolution(input, weight, bias, stride, [0] * rank, *rest)
    if word != "same":
        raise ShapeError(f"Invalid padding string: '{word}'; it is 'valid' or 'same'")
    if any(s != 1 for s in stride):
        raise ShapeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for d, k in zip(_spread("dilation", dilation, rank), weight.shape[2:])]
    if any(t % 2 for t in total) and min(total) >= 0:
        warnings.warn("Using padding='same' with even kernel lengths and odd dilation may require "
                      "a zero-padded copy of the input be created", stacklevel=2)
        extra = [n for t in reversed(total) for n in (0, t % 2)]  # the odd one goes behind
        input = ops.constant_pad_nd(input, extra, 0)
    return ops.convolution(input, weight, bias, stride, [t // 2 for t in total], *rest)


class conv1d(Composite):
    """Convolution of a signal; the batch dim may be missing."""

    schema = ("conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1,"
              " SymInt[1] padding=0, SymInt[1] dilation=1, SymInt groups=1) -> Tensor")
    method = False
    complex = True

    def compose(*args):
        return _conv("conv1d", *args)

    def samples(s):
        yield s(s.real(2, 4, 6), s.real(2, 2, 3), s.real(2), 2, 1, groups=2)
        yield s(s.real(3, 6), s.real(2, 3, 3))


class conv1d_padding(Composite):
    """Convolution of a signal with padding "valid" or "same"."""

    schema = ("conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1,"
              ' str padding="valid", SymInt[1] dilation=1, SymInt groups=1) -> Tensor')
    method = False
    complex = True

    def compose(*args):
        return _conv("conv1d", *args)

    def samples(s):
        yield s(s.real(2, 4, 6), s.real(2, 4, 3), s.real(2), padding="same", dilation=2)
        yield s(s.real(4, 6), s.real(2, 4, 3), s.real(2), 2, "valid")


class conv2d(Composite):
    """Convolution of an image; the batch dim may be missing."""

    schema = ("conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1,"
              " SymInt[2] padding=0, SymInt[2] dilation=1, SymInt groups=1) -> Tensor")
    method = False
    complex = True

    def compose(*args):
        return _conv("conv2d", *args)

    def samples(s):
        yield s(s.real(2, 4, 5, 6), s.real(2, 2, 3, 2), s.real(2), (2, 1), 1, groups=2)
        yield s(s.real(3, 5, 4), s.real(2, 3, 3, 2))


class conv2d_padding(Composite):
    """Convolution of an image with padding "valid" or "same"."""

    schema = ("conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1,"
              ' str padding="valid", SymInt[2] dilation=1, SymInt groups=1) -> Tensor')
    method = False
    complex = True

    def compose(*args):
        return _conv("conv2d", *args)

    def samples(s):
        yield s(s.real(2, 3, 5, 4), s.real(2, 3, 3, 5), s.real(2), padding="same")
        yield s(s.real(3, 5, 4), s.real(2, 3, 3, 2), None, (1, 2), "valid")


class conv3d(Composite):
    """Convolution of a volume; the batch dim may be missing."""

    schema = ("conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1,"
              " SymInt[3] padding=0, SymInt[3] dilation=1, SymInt groups=1) -> Tensor")
    method = False
    complex = True

    def compose(*args):
        return _conv("conv3d", *args)

    def samples(s):
        yield s(s.real(1, 2, 3, 4, 3), s.real(2, 1, 2, 3, 2), s.real(2), (1, 2, 1), 1, groups=2)
        yield s(s.real(2, 3, 3, 4), s.real(2, 2, 2, 2, 2))


class conv3d_padding(Composite):
    """Convolution of a volume with padding "valid" or "same"."""

    schema = ("conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1,"
              ' str padding="valid", SymInt[3] dilation=1, SymInt groups=1) -> Tensor')
    method = False
    complex = True

    def compose(*args):
        return _conv("conv3d", *args)

    def samples(s):
        yield s(s.real(1, 2, 3, 4, 3), s.real(2, 2, 1, 3, 3), s.real(2), padding="same")


class _convolution_mode(Composite):
    """A convolution with padding "valid" or "same" of batched input."""

    schema = ("_convolution_mode(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride,"
              " str padding, SymInt[] dilation, SymInt groups) -> Tensor")
    method = False
    complex = True

    def compose(*args):
        return _with_word(*args)

    def samples(s):
        yield s(s.real(2, 4, 6), s.real(2, 4, 3), s.real(2), [1], "same", [2], 1)


def _conv_transpose(rank, input, weight, bias, stride, padding, output_padding, groups, dilation):
    input, alone = _batched(f"conv_transpose{rank}d", input, rank)
    rest = dilation, True, output_padding, groups
    out = ops.convolution(input, weight, bias, stride, padding, *rest)
    return out.squeeze(0) if alone else out


class conv_transpose1d(Composite):
    """Transpose of a convolution of a signal; the batch dim may be missing."""

    schema = ("conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None,"
              " SymInt[1] stride=1, SymInt[1] padding=0, SymInt[1] output_padding=0,"
              " SymInt groups=1, SymInt[1] dilation=1) -> Tensor")
    method = False
    complex = True

    def compose(*args):
        return _conv_transpose(1, *args)

    def samples(s):
        yield s(s.real(2, 4, 5), s.real(4, 1, 3), s.real(2), 2, 1, 1, 2)
        yield s(s.real(3, 5), s.real(3, 2, 2), dilation=2)


class conv_transpose2d(Composite):
    """Transpose of a convolution of an image; the batch dim may be missing."""

    schema = ("conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None,"
              " SymInt[2] stride=1, SymInt[2] padding=0, SymInt[2] output_padding=0,"
              " SymInt groups=1, SymInt[2] dilation=1) -> Tensor")
    method = False
    complex = True

    def compose(*args):
        return _conv_transpose(2, *args)

    def samples(s):
        yield s(s.real(2, 4, 3, 2), s.real(4, 1, 3, 2), s.real(2), (2, 1), 1, (1, 0), 2)
        yield s(s.real(3, 3, 2), s.real(3, 2, 2, 3), dilation=2)


class conv_transpose3d(Composite):
    """Transpose of a convolution of a volume; the batch dim may be missing."""

    schema = ("conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None,"
              " SymInt[3] stride=1, SymInt[3] padding=0, SymInt[3] output_padding=0,"
              " SymInt groups=1, SymInt[3] dilation=1) -> Tensor")
    method = False
    complex = True

    def compose(*args):
        return _conv_transpose(3, *args)

    def samples(s):
        yield s(s.real(1, 2, 2, 2, 3), s.real(2, 1, 2, 3, 2), s.real(2), (2, 1, 1), 1, (1, 0, 0), 2)
        yield s(s.real(2, 2, 2, 2), s.real(2, 1, 2, 2, 1))
