"""Convolutions under the names that vendors' libraries gave them.

Each passes its arguments on to `convolution`, in the order that this one wants.  The flags of the
libraries (benchmark, deterministic, allow_tf32) choose among algorithms that there are not here.
Read next: `conv.py`, which computes, and `vendor_norm.py`.
"""

from __future__ import annotations

from ..core.op import Composite
from ..table.packets import ops
from .kinds import ComplexFree, Free


def narrowed_bias(bias, like):
    """The bias in half precision where the input is, as layers of oneDNN keep it in float32."""
    if bias is None or bias.dtype is like.dtype or like.dtype.itemsize != 2:
        return bias
    return bias.to(like.dtype)


class VendorConvolution(ComplexFree):
    """A convolution that wants padding before stride."""

    takes_bias = True

    @classmethod
    def compose(cls, self, weight, *rest):
        bias, (padding, stride, dilation, groups, *_) = cls.parted(rest)
        return ops.convolution(self, weight, bias, stride, padding, dilation, False,
                               [0] * len(padding), groups)

    @classmethod
    def parted(cls, rest):
        """The bias, None where the operator takes none, and what comes behind it."""
        return (rest[0], rest[1:]) if cls.takes_bias else (None, rest)

    @classmethod
    def flags(cls):
        """Values for the flags at the end of the schema."""
        return [True] * cls.schema.count("bool ")

    @classmethod
    def samples(cls, s):
        for inputs, outputs, groups, sizes, taps, more in (
            (4, 6, 2, (5, 4), (3, 2), ([1, 0], [2, 1], [1, 2])),
            (2, 3, 1, (7,), (3,), ([1], [2], [1])),
            (3, 3, 3, (3, 2, 3), (2, 1, 2), ([0, 0, 1], [1, 1, 1], [1, 1, 1])),
        ):
            bias = [s.real(outputs)] if cls.takes_bias else []
            yield s(s.real(2, inputs, *sizes), s.real(outputs, inputs // groups, *taps), *bias,
                    *more, groups, *cls.flags())
        if cls.takes_bias:
            yield s(s.real(0, 2, 4), s.real(3, 2, 2), None, [1], [1], [1], 1, *cls.flags())


class VendorConvolutionTranspose(VendorConvolution):
    """A transposed convolution that wants padding and output padding before stride."""

    @classmethod
    def compose(cls, self, weight, *rest):
        bias, (padding, output_padding, stride, dilation, groups, *_) = cls.parted(rest)
        return ops.convolution(self, weight, bias, stride, padding, dilation, True,
                               output_padding, groups)

    @classmethod
    def samples(cls, s):
        bias = [s.real(4)] if cls.takes_bias else []
        yield s(s.real(2, 4, 3, 2), s.real(4, 2, 3, 2), *bias, [1, 0], [1, 2], [2, 3], [1, 2], 2,
                *cls.flags())
        bias = [None] if cls.takes_bias else []
        yield s(s.real(2, 3, 4), s.real(3, 2, 3), *bias, [0], [0], [1], [1], 1, *cls.flags())


class cudnn_convolution(VendorConvolution):
    """`convolution` without bias, as cuDNN offers it."""

    schema = ("cudnn_convolution(Tensor self, Tensor weight, SymInt[] padding, SymInt[] stride,"
              " SymInt[] dilation, SymInt groups, bool benchmark, bool deterministic,"
              " bool allow_tf32) -> Tensor")
    takes_bias = False


class cudnn_convolution_transpose(VendorConvolutionTranspose):
    """Transposed `convolution` without bias, as cuDNN offers it."""

    schema = ("cudnn_convolution_transpose(Tensor self, Tensor weight, SymInt[] padding,"
              " SymInt[] output_padding, SymInt[] stride, SymInt[] dilation, SymInt groups,"
              " bool benchmark, bool deterministic, bool allow_tf32) -> Tensor")
    takes_bias = False


class miopen_convolution(VendorConvolution):
    """`convolution` as MIOpen offers it."""

    schema = ("miopen_convolution(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding,"
              " SymInt[] stride, SymInt[] dilation, SymInt groups, bool benchmark,"
              " bool deterministic) -> Tensor")


class miopen_convolution_transpose(VendorConvolutionTranspose):
    """Transposed `convolution` as MIOpen offers it."""

    schema = ("miopen_convolution_transpose(Tensor self, Tensor weight, Tensor? bias,"
              " SymInt[] padding, SymInt[] output_padding, SymInt[] stride, SymInt[] dilation,"
              " SymInt groups, bool benchmark, bool deterministic) -> Tensor")


class miopen_depthwise_convolution(VendorConvolution):
    """`convolution` with as many groups as channels, as MIOpen offers it."""

    schema = ("miopen_depthwise_convolution(Tensor self, Tensor weight, Tensor? bias,"
              " SymInt[] padding, SymInt[] stride, SymInt[] dilation, SymInt groups,"
              " bool benchmark, bool deterministic) -> Tensor")

    def samples(s):
        yield s(s.real(2, 3, 5, 4), s.real(6, 1, 3, 2), s.real(6), [1, 0], [2, 1], [1, 1], 3,
                False, False)
        yield s(s.real(1, 2, 4), s.real(2, 1, 2), None, [0], [1], [1], 2, True, True)


class mkldnn_convolution(VendorConvolution):
    """`convolution` as oneDNN offers it: the bias of half precision may be in float32."""

    schema = ("mkldnn_convolution(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding,"
              " SymInt[] stride, SymInt[] dilation, SymInt groups) -> Tensor")

    @classmethod
    def compose(cls, self, weight, bias, *geometry):
        return super().compose(self, weight, narrowed_bias(bias, self), *geometry)


class _mps_convolution(VendorConvolution):
    """`convolution` as Apple's library offers it."""

    schema = ("_mps_convolution(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding,"
              " SymInt[] stride, SymInt[] dilation, SymInt groups) -> Tensor")


class _mps_convolution_transpose(VendorConvolutionTranspose):
    """Transposed `convolution` without bias, as Apple's library offers it."""

    schema = ("_mps_convolution_transpose(Tensor self, Tensor weight, SymInt[] padding,"
              " SymInt[] output_padding, SymInt[] stride, SymInt[] dilation, SymInt groups)"
              " -> Tensor")
    takes_bias = False


class _nnpack_spatial_convolution(ComplexFree):
    """`convolution` over two dims as NNPACK offers it."""

    schema = ("_nnpack_spatial_convolution(Tensor input, Tensor weight, Tensor? bias,"
              " SymInt[2] padding, SymInt[2] stride=1) -> Tensor")

    def compose(input, weight, bias, padding, stride):
        return ops.convolution(input, weight, bias, stride, padding, [1, 1], False, [0, 0], 1)

    def samples(s):
        yield s(s.real(2, 3, 5, 4), s.real(4, 3, 3, 2), s.real(4), (1, 0), (2, 1))
        yield s(s.real(1, 2, 4, 3), s.real(3, 2, 2, 2), None, 1)


# ---------------------------------------------------------------------------------------------
# Backward operators


class mps_convolution_backward(Composite):
    """Gradients of `_mps_convolution` for input, weight and bias, as the mask asks."""

    schema = ("mps_convolution_backward(Tensor self, Tensor grad_output, Tensor weight,"
              " SymInt[] padding, SymInt[] stride, SymInt[] dilation, SymInt groups,"
              " bool[3] output_mask) -> (Tensor, Tensor, Tensor)")
    method = function = False

    def compose(self, grad_output, weight, padding, stride, dilation, groups, output_mask):
        return ops.convolution_backward(
            grad_output, self, weight, [weight.shape[0]], stride, padding, dilation, False,
            [0] * len(padding), groups, output_mask)

    def samples(s):
        yield s(s.real(2, 4, 6, 5), s.real(2, 6, 3, 7), s.real(6, 2, 2, 3), [1, 2], [2, 1], [2, 1],
                2, [True, True, True])
        yield s(s.real(2, 3, 4), s.real(2, 2, 4), s.real(2, 3, 3), [1], [1], [1], 1,
                [False, True, True])


class mps_convolution_transpose_backward(Composite):
    """Gradients of `_mps_convolution_transpose` for input and weight, as the mask asks."""

    schema = ("mps_convolution_transpose_backward(Tensor self, Tensor grad_output, Tensor weight,"
              " SymInt[] padding, SymInt[] output_padding, SymInt[] stride, SymInt[] dilation,"
              " SymInt groups, bool[2] output_mask) -> (Tensor, Tensor)")
    method = function = False

    def compose(self, grad_output, weight, padding, output_padding, stride, dilation, groups,
                output_mask):
        return tuple(ops.convolution_backward(
            grad_output, self, weight, None, stride, padding, dilation, True, output_padding,
            groups, [*output_mask, False])[:2])

    def samples(s):
        yield s(s.real(1, 4, 3, 2), s.real(1, 4, 6, 6), s.real(4, 2, 3, 2), [1, 0], [1, 0], [2, 3],
                [1, 2], 2, [True, True])
        yield s(s.real(2, 3, 4), s.real(2, 2, 6), s.real(3, 2, 3), [0], [0], [1], [1], 1,
                [True, False])


# ---------------------------------------------------------------------------------------------
# With relu behind them


class VendorConvolutionRelu(Free):
    """The relu of a convolution."""

    @classmethod
    def compose(cls, self, weight, bias, stride, padding, dilation, groups):
        return ops.convolution(self, weight, bias, stride, padding, dilation, False,
                               [0] * len(padding), groups).relu()

    @classmethod
    def samples(cls, s):
        bias = s.values([9, -9, 9, -9, 9, -9])  # far from the kink
        yield s(s.real(2, 4, 5, 4), s.real(6, 2, 3, 2, low=-0.3, high=0.3), bias, [2, 1], [1, 0],
                [1, 2], 2)
        yield s(s.real(1, 1, 3), s.real(2, 1, 1), None, [1], [0], [1], 1)


class cudnn_convolution_relu(VendorConvolutionRelu):
    """The relu of a convolution, as cuDNN offers it."""

    schema = ("cudnn_convolution_relu(Tensor self, Tensor weight, Tensor? bias, SymInt[] stride,"
              " SymInt[] padding, SymInt[] dilation, SymInt groups) -> Tensor")


class miopen_convolution_relu(VendorConvolutionRelu):
    """The relu of a convolution, as MIOpen offers it."""

    schema = ("miopen_convolution_relu(Tensor self, Tensor weight, Tensor? bias, SymInt[] stride,"
              " SymInt[] padding, SymInt[] dilation, SymInt groups) -> Tensor")


class VendorConvolutionAddRelu(Free):
    """The relu of a convolution to which a multiple of `z` is added."""

    @classmethod
    def compose(cls, self, weight, z, alpha, bias, stride, padding, dilation, groups):
        out = ops.convolution(self, weight, bias, stride, padding, dilation, False,
                              [0] * len(padding), groups)
        return out.add(z, alpha=1 if alpha is None else alpha).relu()

    @classmethod
    def samples(cls, s):
        bias = s.values([9, -9, 9, -9, 9, -9])  # far from the kink
        yield s(s.real(2, 4, 5, 4), s.real(6, 2, 3, 2, low=-0.3, high=0.3), s.real(2, 6, 3, 2),
                0.5, bias, [2, 1], [1, 0], [1, 2], 2)
        yield s(s.real(1, 1, 3), s.real(2, 1, 1), s.values([[[9, -9, 9], [-9, 9, -9]]]), None, None,
                [1], [0], [1], 1)


class cudnn_convolution_add_relu(VendorConvolutionAddRelu):
    """The relu of a convolution to which a multiple of `z` is added, as cuDNN offers it."""

    schema = ("cudnn_convolution_add_relu(Tensor self, Tensor weight, Tensor z, Scalar? alpha,"
              " Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, SymInt groups)"
              " -> Tensor")


class miopen_convolution_add_relu(VendorConvolutionAddRelu):
    """The relu of a convolution to which a multiple of `z` is added, as MIOpen offers it."""

    schema = ("miopen_convolution_add_relu(Tensor self, Tensor weight, Tensor z, Scalar? alpha,"
              " Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, SymInt groups)"
              " -> Tensor")
