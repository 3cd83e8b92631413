"""PyTorch's tags: what is said of operators, of the table's and of those that users define.

Most follow from the kind of an entry; the lists have the others, and the exceptions.  `CORE` are
the overloads that PyTorch 2.13 tags as core.
"""

from __future__ import annotations

import enum

Tag = enum.Enum("Tag", (
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated "
    "inplace inplace_view maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides "
    "needs_fixed_stride_order nondeterministic_bitwise nondeterministic_seeded out out_variant "
    "pointwise pt2_compliant_tag reduction view_copy"), module=__name__)
Tag.__doc__ = "What may be said of an operator when it is defined."

_CORE = """
_adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d _cdist_forward
_embedding_bag _fft_c2r _fft_r2c _local_scalar_dense _log_softmax _native_batch_norm_legit
_native_batch_norm_legit.no_stats _native_batch_norm_legit_no_training _pdist_forward _softmax
_to_copy abs acos acosh adaptive_avg_pool1d add.Scalar add.Tensor addmm alias amax amin any
any.dim any.dims arange.start_step argmax argmin as_strided asin asinh atan atan2 atan2.out
atanh avg_pool1d avg_pool2d avg_pool2d_backward avg_pool3d bitwise_and.Scalar bitwise_and.Tensor
bitwise_not bitwise_or.Scalar bitwise_or.Tensor bitwise_xor.Scalar bitwise_xor.Tensor bmm cat
ceil clamp clamp.Tensor clone col2im constant_pad_nd convolution convolution_backward copy cos
cosh cumsum diagonal div.Scalar div.Scalar_mode div.Tensor div.Tensor_mode elu embedding
embedding_dense_backward empty.memory_format empty_strided eq.Scalar eq.Tensor erf exp expand
expm1 fill.Scalar flip floor fmod.Scalar fmod.Tensor full full_like gather ge.Scalar ge.Tensor
gelu grid_sampler_2d gt.Scalar gt.Tensor hardtanh index.Tensor index_put index_select isinf
isnan le.Scalar le.Tensor leaky_relu log log10 log1p log2 logical_and logical_not logical_or
logical_xor lt.Scalar lt.Tensor masked_scatter max.dim max_pool2d_with_indices
max_pool2d_with_indices_backward max_pool3d_with_indices maximum mean mean.dim min.dim minimum
mm mul.Scalar mul.Tensor native_dropout native_group_norm native_group_norm_backward
native_layer_norm native_layer_norm_backward ne.Scalar ne.Tensor neg nonzero permute pow.Scalar
pow.Tensor_Scalar pow.Tensor_Tensor prod prod.dim_int rand randn randperm reciprocal
reflection_pad1d reflection_pad2d reflection_pad3d relu remainder.Scalar remainder.Tensor repeat
replication_pad2d replication_pad3d resize_ round rsqrt scalar_tensor scatter.src scatter.value
scatter_add scatter_reduce.two select.int select_scatter sigmoid sign sin sinh slice.Tensor
slice_scatter sort split_with_sizes sqrt squeeze.dim squeeze.dims sub.Scalar sub.Tensor
sum.dim_IntList sym_is_contiguous sym_numel sym_size.int sym_storage_offset sym_stride.int tan
tanh topk trunc unsqueeze upsample_bilinear2d.vec upsample_nearest2d.vec var.correction var.dim
view where.self
"""
CORE = frozenset(_CORE.split())

_BY_KIND = {"pointwise": "pointwise", "reduction": "reduction", "random": "nondeterministic_seeded"}
_MORE = {  # tag -> overloads of other kinds
    "pointwise": """
conj_physical equal float_power.Scalar float_power.Tensor_Scalar float_power.Tensor_Tensor
frexp.Tensor max.other min.other positive relu6 rrelu selu square
""",
    "reduction": """
linalg__powsum norm.Scalar norm.ScalarOpt_dim norm.ScalarOpt_dim_dtype norm.ScalarOpt_dtype std
std.dim std_mean std_mean.dim var var.dim var_mean var_mean.dim
""",
    "nondeterministic_seeded": """
_cudnn_attention_forward _efficient_attention_forward _flash_attention_forward
_scaled_dot_product_attention_math _scaled_dot_product_cudnn_attention
_scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention
_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_fused_attention_overrideable
alpha_dropout dropout feature_alpha_dropout feature_dropout gru.data gru.input lstm.data
lstm.input rnn_relu.data rnn_relu.input rnn_tanh.data rnn_tanh.input rrelu rrelu_with_noise
scaled_dot_product_attention
""",
    "dynamic_output_shape": """
_ctc_loss _ctc_loss.Tensor _unique _unique2 argwhere bincount index.Tensor linalg_lstsq
masked_select nonzero one_hot repeat_interleave.Tensor unique_consecutive unique_dim
unique_dim_consecutive
""",
    "data_dependent_output": "_local_scalar_dense allclose equal item",
    "inplace_view": """
as_strided_ detach_ resize_ resize_as_ squeeze_ squeeze_.dim squeeze_.dims swapaxes_ swapdims_ t_
transpose_ unsqueeze_
""",
    "maybe_aliasing_or_mutating": """
alpha_dropout atleast_1d atleast_2d atleast_3d batch_norm cartesian_prod conj_physical dropout
feature_alpha_dropout feature_dropout unsafe_chunk
""",
    "view_copy": "slice_scatter",
}
_LESS = """
_conj _dirichlet_grad _masked_scale _neg_view _prelu_kernel _standard_gamma_grad _to_copy complex
elu_backward fill.Scalar floor_divide floor_divide.Scalar hardshrink_backward hardsigmoid_backward
hardswish hardswish_backward hardtanh_backward isclose leaky_relu_backward log_sigmoid_backward
masked_fill.Tensor mish_backward polar rrelu_with_noise_backward rsub.Tensor softplus_backward
softshrink_backward special_ndtr where.Scalar where.ScalarOther where.ScalarSelf zero hash_tensor
median median.dim mode nanmedian nanmedian.dim _foreach_copy _reshape_copy index_copy
"""  # those that have not the tag of their kind or name
_more = {tag: frozenset(text.split()) for tag, text in _MORE.items()}
_less = frozenset(_LESS.split())
_ALONE = ("inplace_view", "core")  # tags that variants do not have from their operator


def tags_of(ov) -> list[Tag]:
    """The tags of an overload of the table, or of one that follows from it."""
    functional = getattr(ov, "functional", ov)  # of the variants that write
    if isinstance(functional, list):
        functional = functional[0]
    name, whole = str(ov.name), str(functional.name)
    found = {tag for tag, names in _more.items()
             if (name if tag in _ALONE else whole) in names}
    if whole not in _less:
        found |= {_BY_KIND.get(functional.kind, "")} - {""}
        found |= {"view_copy"} if functional.op.base_name.endswith("_copy") else set()
    found |= {"core"} if name in CORE else set()
    if name.partition(".")[0].endswith("_"):
        found.add("inplace")
    elif functional is not ov:
        found.add("out")
    return [Tag[tag] for tag in sorted({*found, "pt2_compliant_tag"})]
