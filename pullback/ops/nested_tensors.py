"""Operators that make nested tensors, or ask what they are made of.

`nested/` does the work; it is loaded by the first call.  Given a nested tensor, the rules of its
class answer before an operator is taken apart; what is here is for dense arguments.
"""

from __future__ import annotations

from ..core.op import Composite
from ..errors import LayoutError, text, user_line
from ..table.packets import ops


class OfNested(Composite):
    """About tensors that are made of others: `nested/` and its tests say more."""

    of_parts = True
    method = False


def _rules():
    from ..nested import table

    return table


class Asking(OfNested):
    """A question to a nested tensor, which no other answers."""

    def __init_subclass__(cls, **kw):
        super().__init_subclass__(**kw)
        name = cls.base_name

        def compose(self, *args):
            raise LayoutError(text(
                f"{name}: expected a nested tensor ({user_line(3)})",
                f"tensor: {self.dtype.name}{list(self.shape)}, layout={self.layout}",
                "make one: torch.nested.nested_tensor([...], layout=torch.jagged)"))

        cls.compose = staticmethod(compose)


class to_padded_tensor(Asking):
    """A dense tensor with the parts of a nested one in its rows, and a number behind them."""

    schema = "to_padded_tensor(Tensor self, float padding, SymInt[]? output_size=None) -> Tensor"
    function, method = False, True


class nested_to_padded_tensor(Composite):
    """`to_padded_tensor` by another name."""

    schema = "nested_to_padded_tensor(Tensor self, float padding, int[]? output_size=None) -> Tensor"
    method = function = False
    of_parts = True

    def compose(self, padding, output_size):
        return ops.to_padded_tensor(self, padding, output_size)


class _nested_get_values(Asking):
    """The values of a nested tensor."""

    schema = "_nested_get_values(Tensor(a) self) -> Tensor(a)"


class _nested_get_values_copy(Asking):
    """A copy of the values of a nested tensor."""

    schema = "_nested_get_values_copy(Tensor self) -> Tensor"


class _nested_get_offsets(Asking):
    """Where the parts of a nested tensor begin."""

    schema = "_nested_get_offsets(Tensor self) -> Tensor"


class _nested_get_lengths(Asking):
    """The lengths of the parts of a nested tensor, if there are gaps behind them."""

    schema = "_nested_get_lengths(Tensor self) -> Tensor"


class _nested_get_ragged_idx(Asking):
    """The ragged dim of a nested tensor."""

    schema = "_nested_get_ragged_idx(Tensor self) -> int"


class _nested_get_min_seqlen(Asking):
    """An empty tensor with as many rows as the shortest part of a nested tensor."""

    schema = "_nested_get_min_seqlen(Tensor self) -> Tensor"


class _nested_get_max_seqlen(Asking):
    """An empty tensor with as many rows as the longest part of a nested tensor."""

    schema = "_nested_get_max_seqlen(Tensor self) -> Tensor"


class _nested_tensor_size(Asking):
    """The sizes of the parts of a nested tensor, a row for each."""

    schema = "_nested_tensor_size(Tensor self) -> Tensor"
    function, method = False, True


class _nested_tensor_strides(Asking):
    """The strides of the parts of a nested tensor, a row for each."""

    schema = "_nested_tensor_strides(Tensor self) -> Tensor"
    function, method = False, True


class _nested_tensor_storage_offsets(Asking):
    """Where the parts of a nested tensor begin in its buffer."""

    schema = "_nested_tensor_storage_offsets(Tensor self) -> Tensor"
    function, method = False, True


class _nested_get_jagged_dummy(OfNested):
    """A small nested tensor, which some operators want as an example."""

    schema = "_nested_get_jagged_dummy(Tensor any) -> Tensor"

    def compose(any):
        return _rules().dummy(any)


class _nested_view_from_jagged(OfNested):
    """A nested tensor around values, of which the parts begin at offsets."""

    schema = ("_nested_view_from_jagged(Tensor(a) self, Tensor offsets, Tensor dummy,"
              " Tensor? lengths=None, int ragged_idx=1, Tensor? min_seqlen=None,"
              " Tensor? max_seqlen=None) -> Tensor(a)")

    def compose(self, offsets, dummy, lengths, ragged_idx, min_seqlen, max_seqlen):
        return _rules().from_jagged(self, offsets, lengths, ragged_idx, max_seqlen)


class _nested_view_from_jagged_copy(OfNested):
    """The same around a copy of the values."""

    schema = ("_nested_view_from_jagged_copy(Tensor self, Tensor offsets, Tensor dummy,"
              " Tensor? lengths=None, int ragged_idx=1, Tensor? min_seqlen=None,"
              " Tensor? max_seqlen=None) -> Tensor")

    def compose(self, offsets, dummy, lengths, ragged_idx, min_seqlen, max_seqlen):
        return _rules().from_jagged(self.clone(), offsets, lengths, ragged_idx, max_seqlen)


class _nested_from_padded_tensor(OfNested):
    """The parts of a padded tensor, whose lengths offsets say."""

    schema = ("_nested_from_padded_tensor(Tensor padded, Tensor offsets, Tensor dummy,"
              " int ragged_idx=1, Tensor? min_seqlen=None, Tensor? max_seqlen=None,"
              " SymInt? sum_S=None) -> Tensor")

    def compose(padded, offsets, dummy, ragged_idx, min_seqlen, max_seqlen, sum_S):
        return _rules().from_padded_tensor(padded, offsets, ragged_idx, sum_S)


class _nested_view_from_buffer(OfNested):
    """A nested tensor of parts that lie in a buffer."""

    schema = ("_nested_view_from_buffer(Tensor(a) self, Tensor nested_size, Tensor nested_strides,"
              " Tensor offsets) -> Tensor(a)")

    def compose(self, nested_size, nested_strides, offsets):
        return _rules().from_buffer(self, nested_size, nested_strides, offsets)


class _nested_view_from_buffer_copy(OfNested):
    """The same of a copy of the buffer."""

    schema = ("_nested_view_from_buffer_copy(Tensor self, Tensor nested_size,"
              " Tensor nested_strides, Tensor offsets) -> Tensor")

    def compose(self, nested_size, nested_strides, offsets):
        return _rules().from_buffer(self.clone(), nested_size, nested_strides, offsets)


class _nested_tensor_from_tensor_list(OfNested):
    """A nested tensor of parts."""

    schema = ("_nested_tensor_from_tensor_list(Tensor[] list, ScalarType? dtype=None,"
              " Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")

    def compose(list, dtype, layout, device, pin_memory):
        return _rules().from_list(list, dtype)


class _nested_tensor_from_mask(OfNested):
    """The rows of each example that a mask keeps."""

    schema = "_nested_tensor_from_mask(Tensor t, Tensor mask, bool mask_check=True) -> Tensor"

    def compose(t, mask, mask_check):
        return _rules().from_mask(t, mask, mask_check)


class _nested_tensor_from_mask_left_aligned(OfNested):
    """Does a mask keep the first rows of each example?"""

    schema = "_nested_tensor_from_mask_left_aligned(Tensor t, Tensor mask) -> bool"

    def compose(t, mask):
        return _rules().is_left_aligned(mask)


class _nested_from_padded(OfNested):
    """The parts of a padded tensor, whose sizes the rows of a table say."""

    schema = ("_nested_from_padded(Tensor padded, Tensor cpu_nested_shape_example,"
              " bool fuse_transform_0213=False) -> Tensor")

    def compose(padded, cpu_nested_shape_example, fuse_transform_0213):
        return _rules().from_padded(padded, cpu_nested_shape_example.tolist(), fuse_transform_0213)


class _nested_from_padded_and_nested_example(OfNested):
    """The parts of a padded tensor, with the sizes of those of another nested one."""

    schema = "_nested_from_padded_and_nested_example(Tensor padded, Tensor nt_example) -> Tensor"

    def compose(padded, nt_example):
        return _rules().from_example(padded, nt_example)


class _nested_compute_contiguous_strides_offsets(OfNested):
    """Strides and starts of parts that lie one behind the other."""

    schema = ("_nested_compute_contiguous_strides_offsets(Tensor nested_size)"
              " -> (Tensor, Tensor)")

    def compose(nested_size):
        return _rules().contiguous_strides(nested_size)


class _nested_select_backward(OfNested):
    """The gradient of `select`: zeros of the sizes of a nested tensor, but for what was taken."""

    schema = ("_nested_select_backward(Tensor grad_output, Tensor self, int dim, SymInt index)"
              " -> Tensor")

    def compose(grad_output, self, dim, index):
        return ops.select_backward(grad_output, self.shape, dim, index)


class matmul_backward(Composite):
    """The gradients of `matmul` for both operands, as far as they are wanted."""

    schema = ("matmul_backward(Tensor grad, Tensor self, Tensor other, bool[2] mask)"
              " -> (Tensor, Tensor)")
    method = function = False
    of_parts = True

    def compose(grad, self, other, mask):
        return _rules().matmul_backward(grad, self, other, mask)


class _nested_sum_backward(OfNested):
    """The gradient of the sum of a nested tensor over dims."""

    schema = ("_nested_sum_backward(Tensor grad, Tensor self, int[1]? dim, bool keepdim=False)"
              " -> Tensor")

    def compose(grad, self, dim, keepdim):
        return _rules().sum_backward(grad, self, dim, keepdim)


class _nested_tensor_softmax_with_shape(OfNested):
    """Softmax of padded scores of the parts of a nested tensor; zeros behind their ends."""

    schema = "_nested_tensor_softmax_with_shape(Tensor self, Tensor query) -> Tensor"

    def compose(self, query):
        return _rules().softmax_with_shape(self, query)
