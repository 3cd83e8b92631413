"""Convolution, its transpose and its gradients.

The kernels are in `conv_kernels.py`, derivatives in `formulas/conv.py`.  Read next: `blocks.py`.
"""

from __future__ import annotations

import warnings

from ..core.op import Composite
from ..errors import DTypeError, ShapeError
from ..formulas.conv import convolution_double_grads
from ..table.packets import ops
from .batching import join_batch, part_batch
from .conv_kernels import (
    convolve,
    correlate,
    gather,
    no_spatial_dims,
    plan,
    scatter,
    spread,
    with_batch,
)
from .kinds import ComplexFree, Keeping
from .norm import narrowed, widened

# ---------------------------------------------------------------------------------------------
# vmap: the hidden dim becomes part of the batch or of the channels


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
        grad, input = join_batch(n, grad, True), _blank(input, 0, n, own_input)
        out = ops.convolution_backward(grad, input, weight, None, *geometry, groups, mask)[0]
        return part_batch(n, out)
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


class convolution(Keeping):
    """Convolution (or, if `transposed`, its transpose) in any number of spatial dims."""

    schema = ("convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride,"
              " SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding,"
              " SymInt groups) -> Tensor")
    native = "convolution"
    counted = "conv_flop"
    widens = True
    intensive = True
    flops = "convolution"
    lower = "window.convolution"
    core = True
    memory_format = "channels"
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
        return convolve(xp, *args)

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
            out = ops.convolution(join_batch(n, input, True), weight, inner, *numbers)
            out = part_batch(n, out)
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


class _convolution(Keeping):
    """`convolution` with flags for backends, which do not matter here."""

    schema = ("_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride,"
              " SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding,"
              " SymInt groups, bool benchmark, bool deterministic, bool cudnn_enabled,"
              " bool allow_tf32) -> Tensor")
    counted = "conv_flop"
    intensive = True
    autocast = "lower"
    number = 1
    grad = convolution.grad
    push = convolution.push
    cost = "heavy"
    method = False
    complex = True

    def run(xp, *args):
        return convolve(xp, *args[:9])

    def shape(*args):
        return plan(*args[:9])[1]

    def decomp(*args):
        return ops.convolution(*args[:9])

    def samples(s):
        flags = False, False, True, True
        yield s(s.real(2, 4, 6), s.real(2, 2, 3), s.real(2), [2], [1], [1], False, [0], 2, *flags)
        yield s(s.real(2, 3, 4), s.real(3, 2, 3), None, [2], [1], [1], True, [1], 1, *flags)


class _convolution_deprecated(ComplexFree):
    """The form of `_convolution` that older programs call."""

    schema = ("_convolution.deprecated(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride,"
              " SymInt[] padding, SymInt[] dilation, bool transposed, int[] output_padding,"
              " SymInt groups, bool benchmark, bool deterministic, bool cudnn_enabled) -> Tensor")
    autocast = "lower"

    def compose(*args):
        return ops._convolution(*args, True)

    def samples(s):
        yield s(s.real(2, 4, 6), s.real(2, 2, 3), None, [2], [1], [1], False, [0], 2, False, False,
                True)


class convolution_backward(Keeping):
    """Gradients of a convolution for input, weight and bias, as the mask asks.

    Plain products: for complex tensors the caller conjugates.
    """

    schema = ("convolution_backward(Tensor grad_output, Tensor input, Tensor weight,"
              " SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation,"
              " bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask)"
              " -> (Tensor, Tensor, Tensor)")
    native = "convolution_backward"
    counted = "conv_backward_flop"
    intensive = True
    flops = "convolution_backward"
    lower = "window.convolution_backward"
    core = True
    memory_format = "channels"
    grad = {"grad_output, input, weight": (
        "convolution_double_grads(grads, grad_output.conj(), input.conj(), weight.conj(),"
        " (stride, padding, dilation, transposed, output_padding, groups), grad_input_mask)")}
    push = {"result0, result1, result2": (
        "convolution_backward_push(grad_output_p, grad_output_t, input_p, input_t, weight_p,"
        " weight_t, bias_sizes, (stride, padding, dilation, transposed, output_padding, groups),"
        " output_mask)")}
    cost = "heavy"
    method = function = False
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
    method = function = False

    def compose(ggI, ggW, ggb, gO, weight, self, *numbers):
        *geometry, output_mask = numbers
        return convolution_double_grads((ggI, ggW, ggb), gO, self, weight, geometry, output_mask)

    def samples(s):
        yield s(s.real(2, 3, 5), s.real(4, 3, 2), s.real(4), s.real(2, 4, 4), s.real(4, 3, 2),
                s.real(2, 3, 5), [1], [0], [1], False, [0], 1, [True, True, True])


# ---------------------------------------------------------------------------------------------
# conv1d ... conv_transpose3d


def _with_word(input, weight, bias, stride, word, dilation, groups):
    """A convolution whose padding is 'valid' (none) or 'same' (the output has the input's size)."""
    rank = weight.ndim - 2
    if rank < 1:
        raise no_spatial_dims(weight.shape)
    rest = dilation, False, [0] * rank, groups
    if word == "valid":
        return ops.convolution(input, weight, bias, stride, [0] * rank, *rest)
    if word != "same":
        raise ShapeError(f"Invalid padding string: '{word}'; it is 'valid' or 'same'")
    if any(s != 1 for s in stride):
        raise ShapeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for d, k in zip(spread("dilation", dilation, rank), weight.shape[2:])]
    if any(t % 2 for t in total) and min(total) >= 0:
        warnings.warn("Using padding='same' with even kernel lengths and odd dilation may require "
                      "a zero-padded copy of the input be created", stacklevel=2)
        extra = [n for t in reversed(total) for n in (0, t % 2)]  # the odd one goes behind
        input = ops.constant_pad_nd(input, extra, 0)
    return ops.convolution(input, weight, bias, stride, [t // 2 for t in total], *rest)


class Convolution(Composite):
    """Convolution over `dims` dims; the batch dim may be missing."""

    dims: int
    autocast = "lower"
    method = False
    complex = True

    @classmethod
    def compose(cls, input, weight, bias, stride, padding, dilation, groups):
        input, alone = with_batch(cls.base_name, input, cls.dims)
        if isinstance(padding, str):
            out = _with_word(input, weight, bias, stride, padding, dilation, groups)
        else:
            rest = False, [0] * cls.dims, groups
            out = ops.convolution(input, weight, bias, stride, padding, dilation, *rest)
        return out.squeeze(0) if alone else out


class conv1d(Convolution):
    """Convolution of a signal; the batch dim may be missing."""

    dims = 1
    schema = ("conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1,"
              " SymInt[1] padding=0, SymInt[1] dilation=1, SymInt groups=1) -> Tensor")

    def samples(s):
        yield s(s.real(2, 4, 6), s.real(2, 2, 3), s.real(2), 2, 1, groups=2)
        yield s(s.real(3, 6), s.real(2, 3, 3))


class conv1d_padding(Convolution):
    """Convolution of a signal with padding "valid" or "same"."""

    dims = 1
    schema = ("conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=1,"
              ' str padding="valid", SymInt[1] dilation=1, SymInt groups=1) -> Tensor')

    def samples(s):
        yield s(s.real(2, 4, 6), s.real(2, 4, 3), s.real(2), padding="same", dilation=2)
        yield s(s.real(4, 6), s.real(2, 4, 3), s.real(2), 2, "valid")


class conv2d(Convolution):
    """Convolution of an image; the batch dim may be missing."""

    dims = 2
    schema = ("conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1,"
              " SymInt[2] padding=0, SymInt[2] dilation=1, SymInt groups=1) -> Tensor")
    widens = True

    def samples(s):
        yield s(s.real(2, 4, 5, 6), s.real(2, 2, 3, 2), s.real(2), (2, 1), 1, groups=2)
        yield s(s.real(3, 5, 4), s.real(2, 3, 3, 2))


class conv2d_padding(Convolution):
    """Convolution of an image with padding "valid" or "same"."""

    dims = 2
    schema = ("conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1,"
              ' str padding="valid", SymInt[2] dilation=1, SymInt groups=1) -> Tensor')

    def samples(s):
        yield s(s.real(2, 3, 5, 4), s.real(2, 3, 3, 5), s.real(2), padding="same")
        yield s(s.real(3, 5, 4), s.real(2, 3, 3, 2), None, (1, 2), "valid")


class conv3d(Convolution):
    """Convolution of a volume; the batch dim may be missing."""

    dims = 3
    schema = ("conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1,"
              " SymInt[3] padding=0, SymInt[3] dilation=1, SymInt groups=1) -> Tensor")

    def samples(s):
        yield s(s.real(1, 2, 3, 4, 3), s.real(2, 1, 2, 3, 2), s.real(2), (1, 2, 1), 1, groups=2)
        yield s(s.real(2, 3, 3, 4), s.real(2, 2, 2, 2, 2))


class conv3d_padding(Convolution):
    """Convolution of a volume with padding "valid" or "same"."""

    dims = 3
    schema = ("conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=1,"
              ' str padding="valid", SymInt[3] dilation=1, SymInt groups=1) -> Tensor')
    samples = lambda s: [s(s.real(1, 2, 3, 4, 3), s.real(2, 2, 1, 3, 3), s.real(2), padding="same")]


class _convolution_mode(ComplexFree):
    """A convolution with padding "valid" or "same" of batched input."""

    schema = ("_convolution_mode(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride,"
              " str padding, SymInt[] dilation, SymInt groups) -> Tensor")

    def compose(*args):
        return _with_word(*args)

    samples = lambda s: [s(s.real(2, 4, 6), s.real(2, 4, 3), s.real(2), [1], "same", [2], 1)]


class TransposedConvolution(Composite):
    """Transpose of a convolution over `dims` dims; the batch dim may be missing."""

    dims: int
    autocast = "lower"
    method = False
    complex = True

    @classmethod
    def compose(cls, input, weight, bias, stride, padding, output_padding, groups, dilation):
        input, alone = with_batch(cls.base_name, input, cls.dims)
        rest = dilation, True, output_padding, groups
        out = ops.convolution(input, weight, bias, stride, padding, *rest)
        return out.squeeze(0) if alone else out


class conv_transpose1d(TransposedConvolution):
    """Transpose of a convolution of a signal; the batch dim may be missing."""

    dims = 1
    schema = ("conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None,"
              " SymInt[1] stride=1, SymInt[1] padding=0, SymInt[1] output_padding=0,"
              " SymInt groups=1, SymInt[1] dilation=1) -> Tensor")

    def samples(s):
        yield s(s.real(2, 4, 5), s.real(4, 1, 3), s.real(2), 2, 1, 1, 2)
        yield s(s.real(3, 5), s.real(3, 2, 2), dilation=2)


class conv_transpose2d(TransposedConvolution):
    """Transpose of a convolution of an image; the batch dim may be missing."""

    dims = 2
    schema = ("conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None,"
              " SymInt[2] stride=1, SymInt[2] padding=0, SymInt[2] output_padding=0,"
              " SymInt groups=1, SymInt[2] dilation=1) -> Tensor")

    def samples(s):
        yield s(s.real(2, 4, 3, 2), s.real(4, 1, 3, 2), s.real(2), (2, 1), 1, (1, 0), 2)
        yield s(s.real(3, 3, 2), s.real(3, 2, 2, 3), dilation=2)


class conv_transpose3d(TransposedConvolution):
    """Transpose of a convolution of a volume; the batch dim may be missing."""

    dims = 3
    schema = ("conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None,"
              " SymInt[3] stride=1, SymInt[3] padding=0, SymInt[3] output_padding=0,"
              " SymInt groups=1, SymInt[3] dilation=1) -> Tensor")

    def samples(s):
        yield s(s.real(1, 2, 2, 2, 3), s.real(2, 1, 2, 3, 2), s.real(2), (2, 1, 1), 1, (1, 0, 0), 2)
        yield s(s.real(2, 2, 2, 2), s.real(2, 1, 2, 2, 1))
