"""Which operators a fully decomposed capture consists of: PyTorch's core set, and those that stay.

`CORE` are the overloads that PyTorch 2.13 tags as core.  `KEPT` are the others that have no
decomposition here, each under the reason; what PyTorch takes apart to its inner primitives only
(`digamma` is the primitive `digamma`) is among them.  A table entry that is neither of these,
nor composite, needs a `decomp`: `tests/decomp` sees to it.
"""

from __future__ import annotations

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

# Core operators that PyTorch's core table takes apart nevertheless
_APART = """
adaptive_avg_pool1d avg_pool1d col2im embedding_dense_backward fill.Scalar
native_group_norm_backward native_layer_norm_backward reflection_pad1d reflection_pad2d
reflection_pad3d replication_pad2d replication_pad3d select_scatter squeeze.dim
sym_is_contiguous sym_size.int sym_stride.int var.dim
"""
APART = frozenset(_APART.split())

REASONS = {
    "draw": "a draw from the generator: its parts would draw other numbers",
    "view": "a view of memory, or of the two parts of complex numbers",
    "scan": "a running value: as a reduction over all prefixes it would take quadratic time",
    "order": "a choice by order statistics",
    "values": "the size or the place of the result depends on values",
    "matrix": "a call of the linear algebra library",
    "window": "a walk over windows, of its own for each place",
    "function": "a function of mathematics with a kernel of its own, one element at a time",
    "bits": "the bits of numbers",
    "kernel": "a recursion over the data, or one library call",
    "create": "a tensor made from sizes alone",
    "effect": "something that is done beside the result: printed, or refused",
}

_LISTS = {
    "draw": """
rand.generator randn.generator randint randint.low randint.generator randint.low_generator
randperm.generator rand_like rand_like.generator randn_like randn_like.generator randint_like
randint_like.low_dtype bernoulli bernoulli.Tensor bernoulli.p normal.Tensor_Tensor
normal.Tensor_float normal.float_Tensor normal.float_float uniform normal_functional random
random.to random.from exponential geometric cauchy log_normal multinomial poisson binomial
_standard_gamma _sample_dirichlet _fused_dropout rrelu_with_noise_functional
""",
    "view": """
_conj view.dtype unfold view_as_real view_as_complex as_strided_scatter _neg_view complex
""",
    "effect": """
_print _assert_async _assert_async.msg _assert_scalar
""",
    "scan": """
cumprod logcumsumexp _logcumsumexp cummax cummin
""",
    "order": """
median median.dim kthvalue searchsorted.Tensor mode nanmedian nanmedian.dim
""",
    "values": """
_unique2 _unique unique_dim unique_dim_consecutive bincount repeat_interleave.Tensor
masked_select nonzero_static histogram.bin_ct histogram.bins_tensor _histogramdd_bin_edges
_histogramdd_from_bin_cts _histogramdd_from_bin_tensors _pack_padded_sequence
""",
    "matrix": """
linalg_cholesky_ex linalg_solve_triangular cholesky_solve linalg_lu_factor_ex linalg_lu
lu_unpack linalg_ldl_factor_ex linalg_ldl_factor linalg_ldl_solve linalg_qr geqrf _linalg_svd
_linalg_eigh linalg_eig linalg_eigvals _linalg_solve_ex linalg_lu_solve linalg_inv_ex
_linalg_det _linalg_adjugate _linalg_slogdet linalg_pinv.atol_rtol_tensor linalg_lstsq
linalg_matrix_exp _grouped_mm _int_mm
""",
    "window": """
adaptive_max_pool2d_backward fractional_max_pool2d fractional_max_pool2d_backward
max_pool3d_with_indices_backward avg_pool3d_backward _adaptive_avg_pool3d_backward
adaptive_max_pool3d_backward fractional_max_pool3d fractional_max_pool3d_backward
upsample_nearest1d_backward _upsample_nearest_exact1d_backward upsample_nearest2d_backward
_upsample_nearest_exact2d_backward upsample_nearest3d_backward
_upsample_nearest_exact3d_backward upsample_linear1d_backward upsample_bilinear2d_backward
upsample_trilinear3d_backward upsample_bicubic2d_backward _upsample_bilinear2d_aa
_upsample_bilinear2d_aa_backward _upsample_bicubic2d_aa _upsample_bicubic2d_aa_backward
_upsample_lanczos2d_aa _upsample_lanczos2d_aa_backward grid_sampler_2d_backward grid_sampler_3d
grid_sampler_3d_backward adaptive_max_pool2d adaptive_max_pool3d
""",
    "function": """
erfc erfinv lgamma digamma polygamma _conj_physical _gamma_ratio _standard_gamma_grad
_beta_ratio _dirichlet_grad _normal_hazard special_ndtri special_erfcx _erfcx_integral
_erfcx_ratio igamma igammac _igamma_order _gamma_density special_zeta special_zeta.self_scalar
special_zeta.other_scalar _zeta_order i0 special_i1 _bessel_i special_i0e special_i1e
_scaled_bessel_i special_modified_bessel_i0 special_modified_bessel_i1 special_bessel_j0
special_bessel_j1 _bessel_j special_bessel_y0 special_bessel_y1 _bessel_y
special_modified_bessel_k0 special_modified_bessel_k1 _bessel_k
special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 _scaled_bessel_k
special_spherical_bessel_j0 _sinc_order special_airy_ai _airy_ai_prime _orthogonal_polynomial
special_chebyshev_polynomial_t special_chebyshev_polynomial_t.x_scalar
special_chebyshev_polynomial_t.n_scalar special_chebyshev_polynomial_u
special_chebyshev_polynomial_u.x_scalar special_chebyshev_polynomial_u.n_scalar
special_chebyshev_polynomial_v special_chebyshev_polynomial_v.x_scalar
special_chebyshev_polynomial_v.n_scalar special_chebyshev_polynomial_w
special_chebyshev_polynomial_w.x_scalar special_chebyshev_polynomial_w.n_scalar
special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_t.x_scalar
special_shifted_chebyshev_polynomial_t.n_scalar special_shifted_chebyshev_polynomial_u
special_shifted_chebyshev_polynomial_u.x_scalar special_shifted_chebyshev_polynomial_u.n_scalar
special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_v.x_scalar
special_shifted_chebyshev_polynomial_v.n_scalar special_shifted_chebyshev_polynomial_w
special_shifted_chebyshev_polynomial_w.x_scalar special_shifted_chebyshev_polynomial_w.n_scalar
special_hermite_polynomial_h special_hermite_polynomial_h.x_scalar
special_hermite_polynomial_h.n_scalar special_hermite_polynomial_he
special_hermite_polynomial_he.x_scalar special_hermite_polynomial_he.n_scalar
special_laguerre_polynomial_l special_laguerre_polynomial_l.x_scalar
special_laguerre_polynomial_l.n_scalar special_legendre_polynomial_p
special_legendre_polynomial_p.x_scalar special_legendre_polynomial_p.n_scalar
""",
    "bits": """
bitwise_left_shift.Tensor bitwise_right_shift.Tensor hash_tensor frexp.Tensor nextafter gcd
""",
    "kernel": """
_ctc_loss _ctc_loss_backward _ctc_loss.Tensor _ctc_loss_backward.Tensor _fft_c2c
_fused_moving_avg_obs_fq_helper_functional masked_scatter_backward put
""",
    "create": """
new_empty_strided empty_permuted tril_indices triu_indices range.step
""",
}

KEPT: dict[str, str] = {name: why for why, text in _LISTS.items() for name in text.split()}


def is_core(name: str) -> bool:
    """Whether an overload may stand in a fully decomposed graph, by its full name."""
    return name in CORE or name in KEPT
