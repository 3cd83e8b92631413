"""Which operators a fully decomposed capture consists of: PyTorch's core set, and those that stay.

`CORE` are the overloads that PyTorch 2.13 tags as core.  `KEPT` are the others that have no
decomposition here, each under the reason; what PyTorch takes apart to its inner primitives only
(`digamma` is the primitive `digamma`) is among them.  A table entry that is neither of these,
nor composite, needs a `decomp`: `tests/decomp` sees to it.
"""

from __future__ import annotations

from ..table.tags import CORE

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
