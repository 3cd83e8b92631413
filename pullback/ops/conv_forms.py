"""Convolution under the names of single kernels: general, dilated, transposed, depthwise.

Each is `convolution` with some of its arguments fixed, so one function composes them all, which
reads the arguments off the schema.  `conv.py` has the operator.
"""

from __future__ import annotations

from ..core.op import Composite
from ..core.overload import overload
from ..errors import ShapeError
from ..table.packets import ops
from .conv_kernels import with_batch
from .kinds import ComplexComposite


class ConvolutionForm(Composite):
    """`convolution` over `dims` dims, with some of its arguments fixed."""

    dims: int
    transposed = False
    depthwise = False  # each channel by itself, and `dilation` has no default
    complex = True
    method = function = False

    @classmethod
    def compose(cls, *args):
        name, ones = cls.base_name, [1] * cls.dims
        given = dict(zip(overload(name).schema.names, args))
        weight, bias, sizes = given["weight"], given["bias"], tuple(given["kernel_size"])
        x, alone = with_batch(name, given["self"], cls.dims)
        if tuple(weight.shape[2:]) != sizes:
            raise ShapeError(f"{name}: a weight of shape {list(weight.shape)} has no kernels of "
                             f"size {list(sizes)}")
        out = ops.convolution(
            x, weight, bias, given["stride"], given["padding"], given.get("dilation", ones),
            cls.transposed, given.get("output_padding", [0] * cls.dims),
            x.shape[1] if cls.depthwise else 1)
        return out.squeeze(0) if alone else out

    @classmethod
    def samples(cls, s):
        dims, depthwise = cls.dims, cls.depthwise
        kernel, image = [2, 3, 2][:dims], [4, 5, 3][:dims]
        inputs, outputs = (4, 4) if depthwise else (2, 3)
        ends = (inputs, outputs) if cls.transposed else (outputs, 1 if depthwise else inputs)
        rest = [[1] * dims] if depthwise else []
        yield s(s.real(2, inputs, *image), s.real(*ends, *kernel), kernel, s.real(outputs),
                [1] * dims, [0] * dims, *rest)
        rest = [[1, 2, 1][:dims]] if depthwise else []
        yield s(s.real(inputs, *image), s.real(*ends, *kernel), kernel, None, [2, 1, 2][:dims],
                [1, 1, 0][:dims], *rest)


class thnn_conv2d(ConvolutionForm):
    """Convolution over 2 dims."""

    dims = 2
    schema = ("thnn_conv2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias=None,"
              " SymInt[2] stride=1, SymInt[2] padding=0) -> Tensor")


class _slow_conv2d_forward(ConvolutionForm):
    """Convolution over 2 dims."""

    dims = 2
    schema = ("_slow_conv2d_forward(Tensor self, Tensor weight, SymInt[2] kernel_size,"
              " Tensor? bias, SymInt[2] stride, SymInt[2] padding) -> Tensor")


class slow_conv3d(ConvolutionForm):
    """Convolution over 3 dims."""

    dims = 3
    schema = ("slow_conv3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias=None,"
              " SymInt[3] stride=1, SymInt[3] padding=0) -> Tensor")


class slow_conv3d_forward(ConvolutionForm):
    """Convolution over 3 dims."""

    dims = 3
    schema = ("slow_conv3d_forward(Tensor self, Tensor weight, SymInt[3] kernel_size,"
              " Tensor? bias, SymInt[3] stride, SymInt[3] padding) -> Tensor")


class slow_conv_dilated2d(ConvolutionForm):
    """Convolution over 2 dims."""

    dims = 2
    schema = ("slow_conv_dilated2d(Tensor self, Tensor weight, SymInt[2] kernel_size,"
              " Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0, SymInt[2] dilation=1)"
              " -> Tensor")


class slow_conv_dilated3d(ConvolutionForm):
    """Convolution over 3 dims."""

    dims = 3
    schema = ("slow_conv_dilated3d(Tensor self, Tensor weight, SymInt[3] kernel_size,"
              " Tensor? bias=None, SymInt[3] stride=1, SymInt[3] padding=0, SymInt[3] dilation=1)"
              " -> Tensor")


class slow_conv_transpose2d(ConvolutionForm):
    """Transposed convolution over 2 dims."""

    dims = 2
    transposed = True
    schema = ("slow_conv_transpose2d(Tensor self, Tensor weight, SymInt[2] kernel_size,"
              " Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=0,"
              " SymInt[2] output_padding=0, SymInt[2] dilation=1) -> Tensor")


class slow_conv_transpose3d(ConvolutionForm):
    """Transposed convolution over 3 dims."""

    dims = 3
    transposed = True
    schema = ("slow_conv_transpose3d(Tensor self, Tensor weight, SymInt[3] kernel_size,"
              " Tensor? bias=None, SymInt[3] stride=1, SymInt[3] padding=0,"
              " SymInt[3] output_padding=0, SymInt[3] dilation=1) -> Tensor")


class _conv_depthwise2d(ConvolutionForm):
    """Convolution over 2 dims, each channel by itself."""

    dims = 2
    depthwise = True
    schema = ("_conv_depthwise2d(Tensor self, Tensor weight, SymInt[2] kernel_size, Tensor? bias,"
              " SymInt[2] stride, SymInt[2] padding, SymInt[2] dilation) -> Tensor")


class conv_depthwise3d(ConvolutionForm):
    """Convolution over 3 dims, each channel by itself."""

    dims = 3
    depthwise = True
    schema = ("conv_depthwise3d(Tensor self, Tensor weight, SymInt[3] kernel_size, Tensor? bias,"
              " SymInt[3] stride, SymInt[3] padding, SymInt[3] dilation) -> Tensor")


class _slow_conv2d_backward(ComplexComposite):
    """Gradients of `_slow_conv2d_forward`, as the mask asks."""

    schema = ("_slow_conv2d_backward.output_mask(Tensor grad_output, Tensor self, Tensor weight,"
              " SymInt[2] kernel_size, SymInt[2] stride, SymInt[2] padding, bool[3] output_mask)"
              " -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)")
    method = function = False

    def compose(grad_output, self, weight, kernel_size, stride, padding, output_mask):
        found = ops.convolution_backward(
            grad_output, self, weight, [weight.shape[0]], stride, padding, [1, 1], False, [0, 0], 1,
            output_mask)
        return overload("_slow_conv2d_backward.output_mask").result_class(*found)

    def samples(s):
        yield s(s.real(2, 3, 3, 3), s.real(2, 2, 4, 5), s.real(3, 2, 2, 3), [2, 3], [1, 1], [0, 0],
                [True, True, True])
        yield s(s.real(1, 3, 2, 3), s.real(1, 2, 4, 3), s.real(3, 2, 3, 3), [3, 3], [2, 1], [1, 1],
                [True, True, False])


class convolution_overrideable(ComplexComposite):
    """`convolution`, as a device from outside would provide it."""

    schema = ("convolution_overrideable(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride,"
              " SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding,"
              " SymInt groups) -> Tensor")
    method = function = False

    def compose(*args):
        return ops.convolution(*args)

    def samples(s):
        yield s(s.real(2, 4, 6), s.real(2, 2, 3), s.real(2), [2], [1], [1], False, [0], 2)


class convolution_backward_overrideable(ComplexComposite):
    """`convolution_backward`, as a device from outside would provide it."""

    schema = ("convolution_backward_overrideable(Tensor grad_output, Tensor input, Tensor weight,"
              " SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed,"
              " SymInt[] output_padding, SymInt groups, bool[3] output_mask)"
              " -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)")
    method = function = False

    def compose(grad_output, input, weight, *numbers):
        transposed, groups = numbers[3], numbers[5]
        bias = weight.shape[1] * groups if transposed else weight.shape[0]
        found = ops.convolution_backward(grad_output, input, weight, [bias], *numbers)
        return overload("convolution_backward_overrideable").result_class(*found)

    def samples(s):
        yield s(s.real(2, 2, 3), s.real(2, 4, 6), s.real(2, 2, 3), [2], [1], [1], False, [0], 2,
                [True, True, True])
        yield s(s.real(2, 2, 6), s.real(2, 3, 4), s.real(3, 2, 3), [1], [0], [1], True, [0], 1,
                [False, True, True])
