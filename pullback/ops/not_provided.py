"""Operators of PyTorch's derivative table that this package does not provide, each with its reason.

They are the operators of sparse and nested tensors, and those that call the library of one vendor.
`pullback.ops.aten` finds them here, so that a program that names one is told what to use instead.
Nothing reads this file until such a name is asked for.  An operator that is given a table entry
leaves this list.
"""

from __future__ import annotations

import functools

from .. import errors
from ..core.schema import Schema

REASONS = {
    "vendor": "it calls the library of one vendor",
    "sparse": "tensors are dense here",
    "nested": "the examples of a batch have one shape here",
}

# family -> lines "what to use instead: schema"
LISTS = {
    "vendor": """
affine_grid_generator: cudnn_affine_grid_generator(Tensor theta, int N, int C, int H, int W) -> Tensor grid
native_batch_norm: cudnn_batch_norm(Tensor input, Tensor weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float exponential_average_factor, float epsilon) -> (Tensor, Tensor, Tensor, Tensor)
native_batch_norm_backward: cudnn_batch_norm_backward(Tensor input, Tensor grad_output, Tensor weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_var, float epsilon, Tensor reserveSpace) -> (Tensor, Tensor, Tensor)
convolution: cudnn_convolution(Tensor self, Tensor weight, SymInt[] padding, SymInt[] stride, SymInt[] dilation, SymInt groups, bool benchmark, bool deterministic, bool allow_tf32) -> Tensor
convolution: cudnn_convolution_transpose(Tensor self, Tensor weight, SymInt[] padding, SymInt[] output_padding, SymInt[] stride, SymInt[] dilation, SymInt groups, bool benchmark, bool deterministic, bool allow_tf32) -> Tensor
_ctc_loss: _cudnn_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank, bool deterministic, bool zero_infinity) -> (Tensor, Tensor)
_ctc_loss.Tensor: _cudnn_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank, bool deterministic, bool zero_infinity) -> (Tensor, Tensor)
grid_sampler_2d: cudnn_grid_sampler(Tensor self, Tensor grid) -> Tensor output
grid_sampler_2d_backward: cudnn_grid_sampler_backward(Tensor self, Tensor grid, Tensor grad_output) -> (Tensor grad_self, Tensor grad_grid)
lstm, gru, rnn_tanh or rnn_relu: _cudnn_rnn(Tensor input, Tensor[] weight, int weight_stride0, Tensor? weight_buf, Tensor hx, Tensor? cx, int mode, SymInt hidden_size, SymInt proj_size, int num_layers, bool batch_first, float dropout, bool train, bool bidirectional, SymInt[] batch_sizes, Tensor? dropout_state) -> (Tensor, Tensor, Tensor, Tensor, Tensor)
lstm, gru, rnn_tanh or rnn_relu, and autograd.grad: _cudnn_rnn_backward(Tensor input, Tensor[] weight, int weight_stride0, Tensor weight_buf, Tensor hx, Tensor? cx, Tensor output, Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, int mode, SymInt hidden_size, SymInt proj_size, int num_layers, bool batch_first, float dropout, bool train, bool bidirectional, SymInt[] batch_sizes, Tensor? dropout_state, Tensor reserve, bool[4] output_mask) -> (Tensor, Tensor, Tensor, Tensor[])
lstm: _lstm_mps(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)
lstm, and autograd.grad: lstm_mps_backward(Tensor? grad_y, Tensor? grad_hy, Tensor? grad_cy, Tensor z_state, Tensor cell_state_fwd, Tensor input, Tensor layersOutputs, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor[], Tensor[])
native_batch_norm: miopen_batch_norm(Tensor input, Tensor weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float exponential_average_factor, float epsilon) -> (Tensor, Tensor, Tensor)
native_batch_norm_backward: miopen_batch_norm_backward(Tensor input, Tensor grad_output, Tensor weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_var, float epsilon) -> (Tensor, Tensor, Tensor)
convolution: miopen_convolution(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding, SymInt[] stride, SymInt[] dilation, SymInt groups, bool benchmark, bool deterministic) -> Tensor
convolution: miopen_convolution_transpose(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding, SymInt[] output_padding, SymInt[] stride, SymInt[] dilation, SymInt groups, bool benchmark, bool deterministic) -> Tensor
_ctc_loss: miopen_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank, bool deterministic, bool zero_infinity) -> (Tensor, Tensor)
_ctc_loss.Tensor: miopen_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank, bool deterministic, bool zero_infinity) -> (Tensor, Tensor)
convolution: miopen_depthwise_convolution(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding, SymInt[] stride, SymInt[] dilation, SymInt groups, bool benchmark, bool deterministic) -> Tensor
lstm, gru, rnn_tanh or rnn_relu: miopen_rnn(Tensor input, Tensor[] weight, int weight_stride0, Tensor hx, Tensor? cx, int mode, int hidden_size, int num_layers, bool batch_first, float dropout, bool train, bool bidirectional, int[] batch_sizes, Tensor? dropout_state) -> (Tensor, Tensor, Tensor, Tensor, Tensor)
lstm, gru, rnn_tanh or rnn_relu, and autograd.grad: miopen_rnn_backward(Tensor input, Tensor[] weight, int weight_stride0, Tensor weight_buf, Tensor hx, Tensor? cx, Tensor output, Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, int mode, int hidden_size, int num_layers, bool batch_first, float dropout, bool train, bool bidirectional, int[] batch_sizes, Tensor? dropout_state, Tensor reserve, bool[4] output_mask) -> (Tensor, Tensor, Tensor, Tensor[])
_adaptive_avg_pool2d: mkldnn_adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor
convolution: mkldnn_convolution(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding, SymInt[] stride, SymInt[] dilation, SymInt groups) -> Tensor
linear: mkldnn_linear(Tensor self, Tensor weight, Tensor? bias=None) -> Tensor
max_pool2d: mkldnn_max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor
max_pool3d: mkldnn_max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> Tensor
reshape: _mkldnn_reshape(Tensor self, int[] shape) -> Tensor
lstm: mkldnn_rnn_layer(Tensor input, Tensor weight0, Tensor weight1, Tensor weight2, Tensor weight3, Tensor hx_, Tensor cx_, bool reverse, int[] batch_sizes, int mode, int hidden_size, int num_layers, bool has_biases, bool bidirectional, bool batch_first, bool train) -> (Tensor, Tensor, Tensor, Tensor)
lstm, and autograd.grad: mkldnn_rnn_layer_backward(Tensor input, Tensor weight1, Tensor weight2, Tensor weight3, Tensor weight4, Tensor hx_, Tensor cx_tmp, Tensor output, Tensor hy_, Tensor cy_, Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, bool reverse, int mode, int hidden_size, int num_layers, bool has_biases, bool train, bool bidirectional, int[] batch_sizes, bool batch_first, Tensor workspace) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)
convolution: _mps_convolution(Tensor self, Tensor weight, Tensor? bias, SymInt[] padding, SymInt[] stride, SymInt[] dilation, SymInt groups) -> Tensor
convolution_backward: mps_convolution_backward(Tensor self, Tensor grad_output, Tensor weight, SymInt[] padding, SymInt[] stride, SymInt[] dilation, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)
convolution: _mps_convolution_transpose(Tensor self, Tensor weight, SymInt[] padding, SymInt[] output_padding, SymInt[] stride, SymInt[] dilation, SymInt groups) -> Tensor
convolution: _nnpack_spatial_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[2] padding, SymInt[2] stride=1) -> Tensor
the tensor as it is: to_mkldnn(Tensor self, ScalarType? dtype=None) -> Tensor
""",
    "sparse": """
nonzero: ccol_indices(Tensor(a) self) -> Tensor(a)
nonzero: ccol_indices_copy(Tensor self) -> Tensor
the dense tensor as it is: _coalesce(Tensor self) -> Tensor
nonzero: col_indices(Tensor(a) self) -> Tensor(a)
nonzero: col_indices_copy(Tensor self) -> Tensor
nonzero: crow_indices(Tensor(a) self) -> Tensor(a)
nonzero: crow_indices_copy(Tensor self) -> Tensor
nonzero: _indices(Tensor(a) self) -> Tensor(a)
nonzero: indices(Tensor(a) self) -> Tensor(a)
nonzero: _indices_copy(Tensor self) -> Tensor
nonzero: indices_copy(Tensor self) -> Tensor
nonzero: row_indices(Tensor(a) self) -> Tensor(a)
nonzero: row_indices_copy(Tensor self) -> Tensor
addmm: _sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor
zeros and index_put: sparse_compressed_tensor.comp_plain_value_size(Tensor compressed_indices, Tensor plain_indices, Tensor values, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False) -> Tensor
zeros and index_put: _sparse_coo_tensor_with_dims_and_tensors(int sparse_dim, int dense_dim, SymInt[] size, Tensor indices, Tensor values, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False, bool? is_coalesced=None) -> Tensor
log_softmax of masked_fill: _sparse_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor
a product with the mask: sparse_mask(Tensor self, Tensor mask) -> Tensor
mm, or index_reduce of gathered rows: _sparse_mm_reduce_impl(Tensor self, Tensor other, str reduce) -> (Tensor, Tensor)
addmm, and a product with the mask: sparse_sampled_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor
softmax of masked_fill: _sparse_softmax(Tensor self, int dim, bool half_to_float) -> Tensor
mm: _sparse_sparse_matmul(Tensor self, Tensor other) -> Tensor
sum: _sparse_sum.dim(Tensor self, int[1] dim) -> Tensor
the dense tensor as it is: _to_dense(Tensor self, ScalarType? dtype=None, bool? masked_grad=None) -> Tensor
the dense tensor: _to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor
the dense tensor: _to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor
the dense tensor: _to_sparse_bsc(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor
the dense tensor: _to_sparse_bsr(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor
the dense tensor: _to_sparse_csc(Tensor self, int? dense_dim=None) -> Tensor
the dense tensor: _to_sparse_csr(Tensor self, int? dense_dim=None) -> Tensor
masked_select: _values(Tensor(a) self) -> Tensor(a)
masked_select: values(Tensor(a) self) -> Tensor(a)
masked_select: _values_copy(Tensor self) -> Tensor
masked_select: values_copy(Tensor self) -> Tensor
""",
    "nested": """
the padded tensor and a mask: _nested_from_padded(Tensor padded, Tensor cpu_nested_shape_example, bool fuse_transform_0213=False) -> Tensor
the padded tensor and a mask: _nested_from_padded_tensor(Tensor padded, Tensor offsets, Tensor dummy, int ragged_idx=1, Tensor? min_seqlen=None, Tensor? max_seqlen=None, SymInt? sum_S=None) -> Tensor
nn.utils.rnn.pad_sequence and a mask: _nested_get_values(Tensor(a) self) -> Tensor(a)
nn.utils.rnn.pad_sequence and a mask: _nested_get_values_copy(Tensor self) -> Tensor
the padded tensor and its mask: _nested_tensor_from_mask(Tensor t, Tensor mask, bool mask_check=True) -> Tensor
nn.utils.rnn.pad_sequence: _nested_tensor_from_tensor_list(Tensor[] list, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
split, or nn.utils.rnn.pad_sequence: _nested_view_from_buffer(Tensor(a) self, Tensor nested_size, Tensor nested_strides, Tensor offsets) -> Tensor(a)
split, or nn.utils.rnn.pad_sequence: _nested_view_from_buffer_copy(Tensor self, Tensor nested_size, Tensor nested_strides, Tensor offsets) -> Tensor
split, or nn.utils.rnn.pad_sequence: _nested_view_from_jagged(Tensor(a) self, Tensor offsets, Tensor dummy, Tensor? lengths=None, int ragged_idx=1, Tensor? min_seqlen=None, Tensor? max_seqlen=None) -> Tensor(a)
split, or nn.utils.rnn.pad_sequence: _nested_view_from_jagged_copy(Tensor self, Tensor offsets, Tensor dummy, Tensor? lengths=None, int ragged_idx=1, Tensor? min_seqlen=None, Tensor? max_seqlen=None) -> Tensor
nn.utils.rnn.pad_sequence: to_padded_tensor(Tensor self, float padding, SymInt[]? output_size=None) -> Tensor
""",
}


class Absent:
    """One overload that is not provided: it has a schema, and calling it says why it is not here."""

    kind = "not provided"

    def __init__(self, family: str, instead: str, text: str):
        self.family, self.instead, self.text = family, instead, text
        self.name = self.__name__ = text[: text.index("(")]

    def __repr__(self) -> str:
        base, _, overload = self.name.partition(".")
        return f"aten.{base}.{overload or 'default'}"

    @functools.cached_property
    def schema(self) -> Schema:
        return Schema(self.text)

    @property
    def reason(self) -> str:
        return REASONS[self.family]

    def __call__(self, *args, **kwargs):
        raise errors.NotInThisBuild(
            errors.text(
                f"{self.name} is not provided: {self.family}, {self.reason} "
                f"({errors.user_line(2)})",
                f"operator: {self.text}",
                f"use {self.instead}",
            )
        )


class AbsentPacket:
    """All overloads of one name that is not provided."""

    def __init__(self, name: str, entries: list[Absent]):
        self.name = self.__name__ = name
        self._entries = entries

    def __repr__(self) -> str:
        return f"aten.{self.name}"

    def entries(self) -> list[Absent]:
        return self._entries

    def overloads(self) -> list[str]:
        return [e.name.partition(".")[2] or "default" for e in self._entries]

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("__"):
            raise AttributeError(name)
        for entry, own in zip(self._entries, self.overloads()):
            if own == name:
                return entry
        raise AttributeError(
            f"operator '{self.name}' has no overload '{name}'; it has "
            + ", ".join(self.overloads())
        )

    def __call__(self, *args, **kwargs):
        return self._entries[0](*args, **kwargs)


@functools.cache
def absent() -> dict[str, Absent]:
    """Full name -> operator, all of them."""
    found = {}
    for family, lines in LISTS.items():
        for line in lines.strip().splitlines():
            instead, _, text = line.partition(": ")
            entry = Absent(family, instead, text)
            found[entry.name] = entry
    return found


def packet(name: str) -> AbsentPacket | None:
    """The operators of this name, None if nobody knows it."""
    entries = [e for e in absent().values() if e.name.partition(".")[0] == name]
    return AbsentPacket(name, entries) if entries else None
