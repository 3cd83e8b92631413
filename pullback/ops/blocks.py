"""Sliding blocks as columns, im2col and back; convolution over time.

Read next: `conv.py`.
"""

from __future__ import annotations

import math

from ..core.op import Composite
from ..errors import DimError, ShapeError
from ..formulas.conv import conv_tbc_grads
from ..table.packets import ops
from .batching import join_batch, part_batch
from .conv_kernels import Windows, by, check_dtypes, convolve, cut, paste
from .kinds import Keeping, Moving
from .norm import narrowed, widened

# ---------------------------------------------------------------------------------------------
# Convolution over time, batch, channel


def _check_tbc(self, weight, bias, pad) -> tuple[int, int, int]:
    """The shape of the result."""
    if self.ndim != 3 or weight.ndim != 3 or bias.ndim != 1:
        raise ShapeError("conv_tbc: input must have 3 dims (time, batch, channel), weight 3 dims "
                         "(time, input channel, output channel) and bias 1, got "
                         f"{list(self.shape)}, {list(weight.shape)} and {list(bias.shape)}")
    if not 0 < self.shape[2] == weight.shape[1] or bias.shape[0] != weight.shape[2]:
        raise ShapeError("conv_tbc: channels must match and there must be some: input "
                         f"{list(self.shape)}, weight {list(weight.shape)}, bias "
                         f"{list(bias.shape)}")
    check_dtypes(self, weight, None)
    length = self.shape[0] + 2 * pad - weight.shape[0] + 1
    if length < 0:
        raise ShapeError(f"conv_tbc: a kernel of {weight.shape[0]} steps does not fit an input of "
                         f"{self.shape[0]} with padding {pad}")
    return length, self.shape[1], weight.shape[2]


class conv_tbc(Keeping):
    """Convolution over the first dim of (time, batch, channel)."""

    schema = "conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor"
    intensive = True
    autocast = "lower"
    grad = {"self, weight, bias": (
        "conv_tbc_grads(grad, self.conj(), weight.conj(), bias.shape, pad, grad_input_mask)")}
    push = ("conv_tbc(self_t, weight_p, bias_t, pad)"
            " + conv_tbc(self_p, weight_t, zeros_like(bias_t), pad)")
    cost = "heavy"
    method = False
    complex = True

    def run(xp, self, weight, bias, pad):
        shape = _check_tbc(self, weight, bias, pad)
        if 0 in shape:
            return xp.zeros(shape, dtype=self.dtype)
        out = convolve(xp, self.transpose(1, 2, 0), weight.transpose(2, 1, 0),
                        bias.astype(self.dtype), [1], [pad], [1], False, [0], 1)
        return xp.ascontiguousarray(out.transpose(2, 0, 1))

    def shape(self, weight, bias, pad):
        return _check_tbc(self, weight, bias, pad)

    def decomp(self, weight, bias, pad):
        out = ops.convolution(self.permute([1, 2, 0]), weight.permute([2, 1, 0]),
                              bias.to(self.dtype), [1], [pad], [1], False, [0], 1)
        return out.permute([2, 0, 1])

    def samples(s):
        yield s(s.real(5, 2, 3), s.real(2, 3, 4), s.real(4), 1)
        yield s(s.real(4, 2, 3), s.real(4, 3, 2), s.real(2))
        yield s(s.real(5, 0, 3), s.real(2, 3, 4), s.real(4), 1)


class conv_tbc_backward(Composite):
    """Gradients of `conv_tbc` for input, weight and bias."""

    schema = ("conv_tbc_backward(Tensor self, Tensor input, Tensor weight, Tensor bias, int pad)"
              " -> (Tensor, Tensor, Tensor)")
    method = function = False

    def compose(self, input, weight, bias, pad):
        if bias.dtype == self.dtype:
            return conv_tbc_grads(self, input, weight, bias.shape, pad, (True, True, True))
        found = conv_tbc_grads(self, input, weight, bias.shape, pad, (True, True, False))
        return *found[:2], self.sum((0, 1), dtype=bias.dtype)  # added up in the dtype of the bias

    samples = lambda s: [s(s.real(6, 2, 4), s.real(5, 2, 3), s.real(2, 3, 4), s.real(4), 1)]


# ---------------------------------------------------------------------------------------------
# Sliding blocks


def _blocks(name: str, image, kernel_size, dilation, padding, stride) -> Windows:
    """The windows of a two-dimensional image; refuses numbers that make no sense."""
    for label, values, least in (("kernel_size", kernel_size, 1), ("dilation", dilation, 1),
                                 ("padding", padding, 0), ("stride", stride, 1)):
        if len(values) != 2:
            raise ShapeError(f"{name}: expected {label} to have 2 elements, but got {list(values)}")
        if min(values) < least:
            raise ShapeError(f"{name}: {label} should be at least {least}, but got {list(values)}")
    counts = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(
        image, kernel_size, dilation, padding, stride, strict=True))
    return Windows(tuple(image), counts, tuple(kernel_size), tuple(stride), tuple(padding),
                   tuple(dilation))


def _plan_im2col(self, kernel_size, dilation, padding, stride) -> tuple[Windows, tuple[int, ...]]:
    if self.ndim < 3:
        raise DimError(f"im2col: expected a 3D or 4D (batch mode) tensor, got {list(self.shape)}")
    if self.ndim > 4 or 0 in self.shape[-3:]:
        raise ShapeError("im2col: expected a 3D or 4D (batch mode) tensor with possibly 0 batch "
                         f"size and other non-zero dimensions, but got: {list(self.shape)}")
    win = _blocks("im2col", self.shape[-2:], kernel_size, dilation, padding, stride)
    if min(win.counts) < 1:
        raise ShapeError(f"im2col: an input of spatial size {list(win.image)} with kernel_size="
                         f"{list(kernel_size)}, dilation={list(dilation)}, padding={list(padding)} "
                         f"has {by(win.counts)} sliding blocks; there must be at least one")
    rows = self.shape[-3] * math.prod(win.kernel)
    return win, (*self.shape[:-3], rows, math.prod(win.counts))


def _plan_col2im(self, output_size, kernel_size, dilation, padding, stride):
    if len(output_size) != 2:
        raise ShapeError("col2im: expected output_size to have 2 elements, but got "
                         f"{list(output_size)}")
    win = _blocks("col2im", output_size, kernel_size, dilation, padding, stride)
    if self.ndim not in (2, 3) or 0 in self.shape[-2:]:
        raise ShapeError("col2im: expected a 2D or 3D (batch mode) tensor with possibly 0 batch "
                         f"size and other non-zero dimensions, but got: {list(self.shape)}")
    size = math.prod(win.kernel)
    if self.shape[-2] % size:
        raise ShapeError("col2im: expected the next to last size of the input to be divisible by "
                         f"the product of kernel_size={list(kernel_size)}, but got "
                         f"{self.shape[-2]}")
    if min(win.counts) < 1 or math.prod(win.counts) != self.shape[-1]:
        raise ShapeError(f"col2im: output_size={list(output_size)}, kernel_size="
                         f"{list(kernel_size)}, dilation={list(dilation)}, padding="
                         f"{list(padding)}, stride={list(stride)} give {by(win.counts)} sliding "
                         f"blocks, but the input has {self.shape[-1]}")
    return win, (*self.shape[:-2], self.shape[-2] // size, *win.image)


class im2col(Moving):
    """The windows of images as columns: (n, channels * kernel, number of windows)."""

    schema = ("im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding,"
              " int[2] stride) -> Tensor")
    grad = {"self": "col2im(grad, self.shape[-2:], kernel_size, dilation, padding, stride)"}
    linear = ("self",)
    method = function = False

    def run(xp, self, kernel_size, dilation, padding, stride):
        win, shape = _plan_im2col(self, kernel_size, dilation, padding, stride)
        windows = cut(xp, self if self.ndim == 4 else self[None], win)
        return windows.copy().reshape(shape)

    def shape(self, kernel_size, dilation, padding, stride):
        return _plan_im2col(self, kernel_size, dilation, padding, stride)[1]

    def batch(n, batched, self, *numbers):
        if self.ndim < 5:
            return ops.im2col(self, *numbers)
        return part_batch(n, ops.im2col(join_batch(n, self, True), *numbers))

    def decomp(self, kernel_size, dilation, padding, stride):
        win, shape = _plan_im2col(self, kernel_size, dilation, padding, stride)
        image = ops.constant_pad_nd(self, [p for p in reversed(padding) for _ in range(2)], 0)
        rows, columns = (_places(self, win, dim) for dim in (0, 1))
        lead = [None] * (self.ndim - 2)
        index = [*lead, rows.unsqueeze(1).unsqueeze(-1), columns.unsqueeze(1)]
        return ops.index(image, index).reshape(shape)

    def samples(s):
        yield s(s.real(2, 3, 5, 6), [2, 3], [1, 1], [0, 0], [1, 1])
        yield s(s.real(2, 2, 5, 4), [2, 2], [2, 1], [1, 0], [1, 2])
        yield s(s.real(2, 5, 4), [3, 2], [1, 1], [1, 1], [2, 2])
        yield s(s.real(5, 4, 2).permute([2, 1, 0]), [2, 2], [1, 1], [0, 0], [1, 1])
        yield s(s.real(0, 2, 3, 3), [2, 2], [1, 1], [0, 0], [1, 1])


def _places(self, win: Windows, dim: int):
    """(kernel, counts): the places of the padded image that the windows touch in one dim."""
    within, step = (ops.arange(0, size * pitch, pitch, device=self.device) for size, pitch in (
        (win.kernel[dim], win.dilation[dim]), (win.counts[dim], win.stride[dim])))
    return within.unsqueeze(1) + step


class col2im(Keeping):
    """Images from columns: overlapping windows add up.  The transpose of `im2col`."""

    schema = ("col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation,"
              " int[2] padding, int[2] stride) -> Tensor")
    core = "apart"
    grad = {"self": "im2col(grad, kernel_size, dilation, padding, stride)"}
    linear = ("self",)
    cost = "reduce"
    method = function = False
    complex = True

    def run(xp, self, output_size, kernel_size, dilation, padding, stride):
        win, shape = _plan_col2im(self, output_size, kernel_size, dilation, padding, stride)
        columns = widened(xp, self)
        lead = (self.shape[0] if self.ndim == 3 else 1, shape[-3])
        total = xp.zeros((*lead, *win.padded), dtype=columns.dtype)
        paste(total, columns.reshape(*lead, *win.kernel, *win.counts), win)
        image = total[win.inside()].reshape(shape)
        return narrowed(xp.ascontiguousarray(image), self.dtype)

    def shape(self, output_size, kernel_size, dilation, padding, stride):
        return _plan_col2im(self, output_size, kernel_size, dilation, padding, stride)[1]

    def batch(n, batched, self, *numbers):
        if self.ndim < 4:
            return ops.col2im(self, *numbers)
        return part_batch(n, ops.col2im(join_batch(n, self, True), *numbers))

    def samples(s):
        yield s(s.real(2, 18, 16), [5, 6], [2, 3], [1, 1], [0, 0], [1, 1])
        yield s(s.real(2, 8, 10), [5, 4], [2, 2], [2, 1], [1, 0], [1, 2])
        yield s(s.real(12, 9), [5, 4], [3, 2], [1, 1], [1, 1], [2, 2])
        yield s(s.real(9, 8).T, [4, 4], [2, 2], [1, 1], [0, 0], [1, 1])
        yield s(s.real(0, 8, 4), [3, 3], [2, 2], [1, 1], [0, 0], [1, 1])
