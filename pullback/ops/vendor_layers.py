"""Layers under the names that oneDNN (once MKL-DNN) gave them, and `to_mkldnn`.

oneDNN keeps tensors in a layout of its own, which its operators want and others refuse.  Here
`to_mkldnn` makes an ordinary tensor, a copy: all operators take it, all keep its history, and no
call of any operator asks what layout it has.  Convolutions are in `vendor_conv.py`, recurrent
layers in `vendor_rnn.py`.
"""

from __future__ import annotations

from ..core.op import Composite
from ..errors import DTypeError, user_line
from ..table.packets import ops
from .kinds import Free
from .pool import max_pool2d_with_indices, max_pool3d_with_indices
from .vendor_conv import narrowed_bias

_TAKEN = ("float64", "float32", "bfloat16", "float16", "uint8", "int8")


class VendorBackward(Composite):
    """Gradients of a layer, as oneDNN offers them."""

    method = function = False


# ---------------------------------------------------------------------------------------------
# To the layout and back


class to_mkldnn(Composite):
    """A copy, in another dtype if one is given."""

    schema = "to_mkldnn(Tensor self, ScalarType? dtype=None) -> Tensor"
    function = False

    def compose(self, dtype):
        wanted = dtype or self.dtype
        for kind in (self.dtype, wanted):
            if kind.name not in _TAKEN:
                raise DTypeError(f"to_mkldnn(): dense_to_mkldnn expects float, bfloat16, half, "
                                 f"uint8, int8 tensor input, got {kind.name} ({user_line(2)})")
        return ops._to_copy(self, dtype=wanted, memory_format="contiguous_format")

    samples = lambda s: [s(s.real(3, 4)), s(s.real(3, 4).T), s(s.real()), s(s.real(0, 3))]


class to_mkldnn_backward(VendorBackward):
    """The gradient of `to_mkldnn`, in the dtype of its input."""

    schema = "to_mkldnn_backward(Tensor grad, Tensor input) -> Tensor"

    def compose(grad, input):
        return ops._to_copy(grad, dtype=input.dtype)

    samples = lambda s: [s(s.real(3, 4), s.real(3, 4))]


class _mkldnn_reshape(Free):
    """`reshape` that always copies."""

    schema = "_mkldnn_reshape(Tensor self, int[] shape) -> Tensor"

    def compose(self, shape):
        return ops._reshape_copy(self, shape)

    def samples(s):
        yield s(s.real(3, 4), (2, -1))
        yield s(s.real(3, 4).T, (12,))


class _mkldnn_transpose(Free):
    """`transpose` that copies."""

    schema = "_mkldnn_transpose(Tensor self, int dim0, int dim1) -> Tensor"

    def compose(self, dim0, dim1):
        return self.transpose(dim0, dim1).clone(memory_format="contiguous_format")

    samples = lambda s: [s(s.real(3, 4, 2), 0, 2), s(s.real(3, 4), -1, 0)]


class _mkldnn_transpose_(Free):
    """`transpose_`: another view of the same memory."""

    schema = "_mkldnn_transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)"
    tags = ("inplace_view",)

    def compose(self, dim0, dim1):
        return self.transpose_(dim0, dim1)

    samples = lambda s: [s(s.int(3, 4, 2), 0, 2), s(s.int(3, 4), -1, 0)]


class VendorReordering(Composite):
    """The weight of a convolution, arranged for oneDNN: a copy."""

    method = function = False
    dims: int

    @classmethod
    def compose(cls, self, *geometry):
        return self.clone()

    @classmethod
    def samples(cls, s):
        yield s(s.real(3, 2, *(2, 3, 1)[:cls.dims]))


class mkldnn_reorder_conv2d_weight(VendorReordering):
    """The weight of a convolution over two dims, arranged for oneDNN: a copy."""

    dims = 2
    schema = ("mkldnn_reorder_conv2d_weight(Tensor self, SymInt[2] padding=0, SymInt[2] stride=1,"
              " SymInt[2] dilation=1, SymInt groups=1, SymInt[]? input_size=None) -> Tensor")


class mkldnn_reorder_conv3d_weight(VendorReordering):
    """The weight of a convolution over three dims, arranged for oneDNN: a copy."""

    dims = 3
    schema = ("mkldnn_reorder_conv3d_weight(Tensor self, SymInt[3] padding=0, SymInt[3] stride=1,"
              " SymInt[3] dilation=1, SymInt groups=1, SymInt[]? input_size=None) -> Tensor")


# ---------------------------------------------------------------------------------------------
# Linear


class mkldnn_linear(Free):
    """`linear` as oneDNN offers it: the bias of half precision may be in float32."""

    schema = "mkldnn_linear(Tensor self, Tensor weight, Tensor? bias=None) -> Tensor"
    function = False

    def compose(self, weight, bias):
        return ops.linear(self, weight, narrowed_bias(bias, self))

    def samples(s):
        yield s(s.real(3, 4), s.real(2, 4), s.real(2))
        yield s(s.real(2, 3, 4), s.real(2, 4))


def _rows(tensor):
    return tensor.reshape([-1, tensor.shape[-1]])


class mkldnn_linear_backward_input(VendorBackward):
    """The gradient of `mkldnn_linear` for its input."""

    schema = ("mkldnn_linear_backward_input(int[] input_size, Tensor grad_output, Tensor weight)"
              " -> Tensor")

    def compose(input_size, grad_output, weight):
        return ops.mm(_rows(grad_output), weight).reshape(input_size)

    samples = lambda s: [s((2, 3, 4), s.real(2, 3, 5), s.real(5, 4))]


class mkldnn_linear_backward_weights(Free):
    """The gradients of `mkldnn_linear` for weight and bias."""

    schema = ("mkldnn_linear_backward_weights(Tensor grad_output, Tensor input, Tensor weight,"
              " bool bias_defined) -> (Tensor, Tensor)")

    def compose(grad_output, input, weight, bias_defined):
        rows = _rows(grad_output)
        return ops.mm(rows.t(), _rows(input)), rows.sum(0) if bias_defined else None

    def samples(s):
        yield s(s.real(2, 3, 5), s.real(2, 3, 4), s.real(5, 4), True)
        yield s(s.real(3, 5), s.real(3, 4), s.real(5, 4), False)


class mkldnn_linear_backward(VendorBackward):
    """The gradients of `mkldnn_linear` for input, weight and bias, as the mask asks."""

    schema = ("mkldnn_linear_backward(Tensor self, Tensor grad_output, Tensor weight,"
              " bool[3] output_mask) -> (Tensor, Tensor, Tensor)")

    def compose(self, grad_output, weight, output_mask):
        input = own = bias = None
        if output_mask[0]:
            input = ops.mkldnn_linear_backward_input(self.shape, grad_output, weight)
        if output_mask[1] or output_mask[2]:
            own, bias = ops.mkldnn_linear_backward_weights(grad_output, self, weight,
                                                           output_mask[2])
        return input, own if output_mask[1] else None, bias

    def samples(s):
        yield s(s.real(2, 3, 4), s.real(2, 3, 5), s.real(5, 4), [True, True, True])
        yield s(s.real(3, 4), s.real(3, 5), s.real(5, 4), [False, True, False])


# ---------------------------------------------------------------------------------------------
# Pooling


class mkldnn_adaptive_avg_pool2d(Free):
    """`adaptive_avg_pool2d` as oneDNN offers it."""

    schema = "mkldnn_adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor"

    def compose(self, output_size):
        return ops._adaptive_avg_pool2d(self, output_size)

    samples = lambda s: [s(s.real(2, 3, 5, 4), (2, 3)), s(s.real(3, 4, 4), (1, 1))]


class mkldnn_adaptive_avg_pool2d_backward(VendorBackward):
    """The gradient of `mkldnn_adaptive_avg_pool2d`."""

    schema = "mkldnn_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor"

    def compose(grad_output, self):
        return ops._adaptive_avg_pool2d_backward(grad_output, self)

    samples = lambda s: [s(s.real(2, 3, 2, 3), s.real(2, 3, 5, 4))]


class VendorMaxPool(Free):
    """Maxima over sliding windows of the last `dims` dims, as oneDNN offers them."""

    places: type

    @classmethod
    def compose(cls, *args):
        return getattr(ops, cls.places.base_name)(*args)[0]

    @classmethod
    def samples(cls, s):
        return cls.places.samples(s)


class mkldnn_max_pool2d(VendorMaxPool):
    """`max_pool2d` as oneDNN offers it."""

    schema = ("mkldnn_max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[],"
              " int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor")
    places = max_pool2d_with_indices


class mkldnn_max_pool3d(VendorMaxPool):
    """`max_pool3d` as oneDNN offers it."""

    schema = ("mkldnn_max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[],"
              " int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> Tensor")
    places = max_pool3d_with_indices


class VendorMaxPoolBackward(VendorBackward):
    """The gradient of maxima, which looks for their places again."""

    places: type

    @classmethod
    def compose(cls, grad_output, output, input, *windows):
        name = cls.places.base_name
        indices = getattr(ops, name)(input.detach(), *windows)[1]
        return getattr(ops, f"{name}_backward")(grad_output, input, *windows, indices)

    @classmethod
    def samples(cls, s):
        for case in cls.places.samples(s):
            out = getattr(ops, cls.places.base_name)(*case.args, **case.kwargs)[0]
            yield type(case)((s.real(*out.shape), out, *case.args), case.kwargs)


class mkldnn_max_pool2d_backward(VendorMaxPoolBackward):
    """The gradient of `mkldnn_max_pool2d`."""

    schema = ("mkldnn_max_pool2d_backward(Tensor grad_output, Tensor output, Tensor input,"
              " int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1,"
              " bool ceil_mode=False) -> Tensor")
    places = max_pool2d_with_indices


class mkldnn_max_pool3d_backward(VendorMaxPoolBackward):
    """The gradient of `mkldnn_max_pool3d`."""

    schema = ("mkldnn_max_pool3d_backward(Tensor grad_output, Tensor output, Tensor input,"
              " int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1,"
              " bool ceil_mode=False) -> Tensor")
    places = max_pool3d_with_indices
