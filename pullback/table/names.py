"""Names of the operators by the file that has them. Made by tools/gen_names.py.

`name:kinds`, or `alias=name:kinds`; kinds of Tensor methods: m (ordinary), p (pointwise), i (there
is a variant `name_`).
"""

NAMES = {
    "pointwise": (
        "neg:pi negative=neg:pi positive:m reciprocal:pi sqrt:pi rsqrt:pi square:mi abs:pi "
        "absolute=abs:pi sign:pi sgn:pi exp:pi exp2:pi special_exp2=exp2:pi expm1:pi "
        "special_expm1=expm1:pi log:pi log2:pi log10:pi log1p:pi special_log1p=log1p:pi sin:pi "
        "cos:pi tan:pi asin:pi arcsin=asin:pi acos:pi arccos=acos:pi atan:pi arctan=atan:pi "
        "sinh:pi cosh:pi tanh:pi tanh_backward asinh:pi arcsinh=asinh:pi acosh:pi "
        "arccosh=acosh:pi atanh:pi arctanh=atanh:pi deg2rad:pi rad2deg:pi erf:pi "
        "special_erf=erf:pi erfc:pi special_erfc=erfc:pi erfinv:pi special_erfinv=erfinv:pi "
        "lgamma:pi special_gammaln=lgamma:pi digamma:pi special_digamma=digamma:pi "
        "special_psi=digamma:pi polygamma special_polygamma=polygamma polygamma_:m"
    ),
    "nonlinear": (
        "sigmoid:pi special_expit=sigmoid:pi sigmoid_backward logit:pi special_logit=logit:pi "
        "logit_backward relu:pi relu6:i threshold:i threshold_backward leaky_relu:i "
        "leaky_relu_backward elu:i elu_backward hardtanh:i hardtanh_backward gelu:i gelu_backward "
        "silu:i silu_backward mish:i mish_backward softplus:i softplus_backward log_sigmoid "
        "logsigmoid=log_sigmoid log_sigmoid_forward log_sigmoid_backward"
    ),
    "rounding": (
        "floor:pi ceil:pi trunc:pi fix=trunc:pi round:pi special_round=round:pi frac:pi isnan:p "
        "isinf:p isfinite:p logical_not:pi bitwise_not:pi nan_to_num:pi"
    ),
    "complex_parts": (
        "conj:m _conj:m conj_physical:mi _conj_physical:p real imag angle:p"
    ),
    "binary": (
        "add:pi sub:pi subtract=sub:pi rsub mul:pi multiply=mul:pi div:pi divide=div:pi "
        "true_divide=div:pi floor_divide:pi remainder:pi fmod:pi pow:pi maximum:p minimum:p "
        "fmax:p fmin:p clamp:pi clip=clamp:pi clamp_min:pi clamp_max:pi"
    ),
    "multivariate": (
        "atan2:pi arctan2=atan2:pi hypot:pi lerp:pi addcmul:pi addcdiv:pi xlogy:pi "
        "special_xlogy=xlogy:pi logaddexp:p copysign:pi heaviside:pi"
    ),
    "compare": (
        "where eq:pi ne:pi not_equal=ne:pi lt:pi less=lt:pi le:pi less_equal=le:pi gt:pi "
        "greater=gt:pi ge:pi greater_equal=ge:pi isclose:p allclose:m equal:m"
    ),
    "bits": (
        "logical_and:pi logical_or:pi logical_xor:pi bitwise_and:pi __and__=bitwise_and:p "
        "bitwise_or:pi __or__=bitwise_or:p bitwise_xor:pi __xor__=bitwise_xor:p "
        "bitwise_left_shift:pi __lshift__=bitwise_left_shift:p bitwise_right_shift:pi "
        "__rshift__=bitwise_right_shift:p"
    ),
    "reduce": (
        "sum:m nansum:m sum_to_size:m mean:m var:m std:m var_mean std_mean prod:m logsumexp:m "
        "special_logsumexp=logsumexp:m linalg_vector_norm linalg__powsum norm:m cumsum:mi "
        "cumprod:mi"
    ),
    "extremes": (
        "max:m min:m amax:m amin:m aminmax:m argmax:m argmin:m median:m"
    ),
    "logical_reductions": (
        "any:m all:m count_nonzero:m"
    ),
    "shape": (
        "view:m _unsafe_view reshape:m reshape_as:m view_as:m flatten:m unflatten:m ravel:m "
        "permute:m transpose:mi t:mi numpy_T mT mH adjoint:m matrix_H swapaxes:m swapdims:m "
        "movedim:m moveaxis:m expand:m expand_as:m broadcast_to:m broadcast_tensors squeeze:mi "
        "unsqueeze:mi"
    ),
    "slices": (
        "select:m slice narrow:m narrow_copy:m diagonal:m linalg_diagonal unfold:m as_strided:mi "
        "detach:m alias:m view_as_real:m view_as_complex:m"
    ),
    "splits": (
        "split:m split_with_sizes:m chunk:m unsafe_split:m unsafe_split_with_sizes:m "
        "unsafe_chunk:m unbind:m tensor_split:m hsplit:m vsplit:m dsplit:m"
    ),
    "view_writes": (
        "select_scatter:m slice_scatter:m diagonal_scatter:m as_strided_scatter:m select_backward "
        "slice_backward diagonal_backward unfold_backward view_copy permute_copy transpose_copy "
        "t_copy expand_copy squeeze_copy unsqueeze_copy select_copy slice_copy diagonal_copy "
        "unfold_copy as_strided_copy alias_copy view_as_real_copy view_as_complex_copy split_copy "
        "split_with_sizes_copy unbind_copy"
    ),
    "arrange": (
        "clone:p contiguous:m _to_copy to:m type_as:m copy:i repeat:m tile:m flip:m fliplr:m "
        "flipud:m roll:m rot90:m repeat_interleave:m constant_pad_nd meshgrid atleast_1d "
        "atleast_2d atleast_3d resolve_conj:m resolve_neg:m resize_as_:m"
    ),
    "joined": (
        "cat concat concatenate stack hstack vstack row_stack dstack column_stack block_diag "
        "cartesian_prod combinations:m _chunk_cat"
    ),
    "triangles": (
        "tril:mi triu:mi diag_embed:m diag:m diagflat:m"
    ),
    "index": (
        "index _unsafe_index index_put:mi _unsafe_index_put _unsafe_masked_index "
        "_unsafe_masked_index_put_accumulate unravel_index take:m put:mi take_along_dim:m"
    ),
    "gather": (
        "index_select:m index_add:mi index_copy:mi index_fill:mi gather:m scatter:mi "
        "scatter_add:mi scatter_reduce:mi index_reduce:mi"
    ),
    "masks": (
        "masked_fill:pi masked_select:m masked_scatter:mi masked_scatter_backward nonzero:m "
        "nonzero_numpy nonzero_static:m argwhere:m fill_diagonal_:m"
    ),
    "lookup": (
        "embedding embedding_dense_backward one_hot"
    ),
    "order": (
        "sort:m argsort:m msort:m topk:m kthvalue:m _unique2 _unique unique_dim "
        "unique_dim_consecutive unique:m unique_consecutive searchsorted bucketize isin "
        "bincount:m"
    ),
    "create": (
        "empty zeros ones full empty_like zeros_like ones_like full_like new_empty:m new_zeros:m "
        "new_ones:m new_full:m empty_strided new_empty_strided:m empty_permuted eye scalar_tensor "
        "tril_indices triu_indices fill:mi zero:pi"
    ),
    "sequences": (
        "arange linspace logspace"
    ),
    "random": (
        "rand randn randint randperm rand_like randn_like randint_like bernoulli:mi normal:mi "
        "uniform:mi normal_functional random:mi exponential:mi geometric:mi cauchy:mi "
        "log_normal:mi multinomial:m"
    ),
    "rejection": (
        "poisson binomial _standard_gamma _gamma_ratio _standard_gamma_grad _sample_dirichlet "
        "_beta_ratio _dirichlet_grad"
    ),
    "dropout": (
        "dropout:i feature_dropout:i alpha_dropout:i feature_alpha_dropout:i native_dropout "
        "native_dropout_backward _masked_scale _fused_dropout"
    ),
    "matmul": (
        "mm:m bmm:m mv:m dot:m vdot:m addmm:mi baddbmm:mi addbmm:mi addmv:mi addr:mi matmul:m "
        "linalg_matmul:m linear einsum"
    ),
    "vectors": (
        "outer:m ger:m inner:m linalg_vecdot:m trace:m tensordot kron:m linalg_multi_dot "
        "chain_matmul linalg_cross:m cross:m"
    ),
    "sparse_products": (
        "_spmm _sddmm _spspmm"
    ),
    "sparse_solve": (
        "_sparse_solve _sparse_triangular_solve _sparse_slogdet _sparse_eigh"
    ),
    "sparse_parts": (
        "_indices:m indices:m _values:m values:m crow_indices:m col_indices:m ccol_indices:m "
        "row_indices:m _coalesce _indices_copy indices_copy _values_copy values_copy "
        "crow_indices_copy col_indices_copy ccol_indices_copy row_indices_copy _to_dense "
        "_to_sparse _to_sparse_csr _to_sparse_csc _to_sparse_bsr _to_sparse_bsc"
    ),
    "sparse_construct": (
        "sparse_csr_tensor _sparse_csr_tensor_unsafe _validate_sparse_csr_tensor_args "
        "sparse_csc_tensor _sparse_csc_tensor_unsafe _validate_sparse_csc_tensor_args "
        "sparse_bsr_tensor _sparse_bsr_tensor_unsafe _validate_sparse_bsr_tensor_args "
        "sparse_bsc_tensor _sparse_bsc_tensor_unsafe _validate_sparse_bsc_tensor_args "
        "sparse_compressed_tensor _sparse_compressed_tensor_unsafe "
        "_validate_sparse_compressed_tensor_args sparse_coo_tensor _sparse_coo_tensor_unsafe "
        "_sparse_coo_tensor_with_dims_and_tensors _validate_sparse_coo_tensor_args to_dense "
        "to_dense_backward to_sparse to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc "
        "_sparse_mm smm sspaddmm"
    ),
    "sparse_functions": (
        "sparse_mask:m _sparse_addmm sparse_sampled_addmm _sparse_sparse_matmul _spsolve _spdiags "
        "_sparse_mm_reduce_impl _sparse_sum _sparse_softmax _sparse_log_softmax"
    ),
    "sparse_kernels": (
        "_nnz:m _coalesced_:m resize_as_sparse_:m sparse_resize_:m sparse_resize_and_clear_:m "
        "sparse_dim:m dense_dim:m _dimI:m _dimV:m is_coalesced copy_sparse_to_sparse_ "
        "_sparse_coo_tensor_with_dims _sparse_broadcast_to hspmm _sparse_csr_sum _sparse_csr_prod "
        "_sparse_mask_projection:m _sparse_sum_backward _sparse_softmax_backward_data "
        "_sparse_log_softmax_backward_data _sparse_mm_reduce_impl_backward"
    ),
    "nested_tensors": (
        "to_padded_tensor:m nested_to_padded_tensor _nested_get_values _nested_get_values_copy "
        "_nested_get_offsets _nested_get_lengths _nested_get_ragged_idx _nested_get_min_seqlen "
        "_nested_get_max_seqlen _nested_tensor_size:m _nested_tensor_strides:m "
        "_nested_tensor_storage_offsets:m _nested_get_jagged_dummy _nested_view_from_jagged "
        "_nested_view_from_jagged_copy _nested_from_padded_tensor _nested_view_from_buffer "
        "_nested_view_from_buffer_copy _nested_tensor_from_tensor_list _nested_tensor_from_mask "
        "_nested_tensor_from_mask_left_aligned _nested_from_padded "
        "_nested_from_padded_and_nested_example _nested_compute_contiguous_strides_offsets "
        "_nested_select_backward matmul_backward _nested_sum_backward "
        "_nested_tensor_softmax_with_shape"
    ),
    "linalg": (
        "linalg_cholesky_ex linalg_cholesky cholesky:m linalg_solve_triangular cholesky_solve:m "
        "cholesky_inverse:m linalg_matrix_norm linalg_norm nuclear_norm frobenius_norm "
        "linalg_cond linalg_vander vander cov:m corrcoef:m"
    ),
    "factor": (
        "linalg_lu_factor_ex linalg_lu_factor _lu_with_info lu:m linalg_lu lu_unpack "
        "linalg_ldl_factor_ex linalg_ldl_factor linalg_ldl_solve linalg_qr qr:m geqrf:m "
        "linalg_householder_product orgqr:m ormqr:m _linalg_svd linalg_svd svd:m linalg_svdvals "
        "_linalg_eigh linalg_eigh linalg_eigvalsh linalg_eig linalg_eigvals _linalg_eigvals"
    ),
    "solve": (
        "_linalg_solve_ex linalg_solve_ex linalg_solve linalg_lu_solve lu_solve:m "
        "triangular_solve:m linalg_inv_ex linalg_inv inverse:m linalg_tensorinv "
        "linalg_tensorsolve _linalg_det linalg_det det:m _linalg_adjugate _linalg_slogdet "
        "linalg_slogdet slogdet:m logdet:m linalg_matrix_exp matrix_exp:m linalg_matrix_power "
        "matrix_power:m"
    ),
    "least_squares": (
        "linalg_pinv pinverse:m linalg_matrix_rank linalg_lstsq"
    ),
    "norm": (
        "_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data _safe_softmax "
        "_masked_softmax _masked_softmax_backward softmax:m log_softmax:m special_softmax "
        "special_log_softmax native_layer_norm native_layer_norm_backward layer_norm rms_norm"
    ),
    "loss": (
        "nll_loss_forward nll_loss_backward nll_loss2d_forward nll_loss2d_backward nll_loss "
        "nll_loss2d nll_loss_nd cross_entropy_loss"
    ),
    "regression": (
        "mse_loss mse_loss_backward smooth_l1_loss smooth_l1_loss_backward huber_loss "
        "huber_loss_backward l1_loss binary_cross_entropy binary_cross_entropy_backward "
        "binary_cross_entropy_with_logits kl_div poisson_nll_loss"
    ),
    "attention": (
        "scaled_dot_product_attention _scaled_dot_product_attention_math"
    ),
    "activation": (
        "hardshrink:p hardshrink_backward softshrink softshrink_backward hardsigmoid:i "
        "hardsigmoid_backward hardswish:i hardswish_backward celu:i selu:i prelu:m _prelu_kernel "
        "_prelu_kernel_backward rrelu:i rrelu_with_noise:i rrelu_with_noise_functional "
        "rrelu_with_noise_backward glu glu_backward infinitely_differentiable_gelu_backward"
    ),
    "batchnorm": (
        "_native_batch_norm_legit_functional _native_batch_norm_legit "
        "_native_batch_norm_legit_no_training native_batch_norm_backward batch_norm_backward "
        "native_batch_norm _batch_norm_with_update _batch_norm_with_update_functional "
        "_batch_norm_no_update batch_norm instance_norm"
    ),
    "batchnorm_steps": (
        "batch_norm_update_stats batch_norm_stats batch_norm_elemt "
        "batch_norm_gather_stats_with_counts batch_norm_gather_stats batch_norm_backward_reduce "
        "batch_norm_backward_elemt"
    ),
    "groupnorm": (
        "native_group_norm native_group_norm_backward group_norm _fused_rms_norm "
        "_fused_rms_norm_backward norm_except_dim _weight_norm _weight_norm_interface "
        "_weight_norm_interface_backward _weight_norm_differentiable_backward"
    ),
    "rnn": (
        "rnn_tanh_cell rnn_relu_cell gru_cell lstm_cell lstm gru rnn_tanh rnn_relu "
        "_pack_padded_sequence _pack_padded_sequence_backward _pad_packed_sequence pad_sequence"
    ),
    "rnn_cells": (
        "_thnn_fused_lstm_cell _thnn_fused_lstm_cell_backward_impl _thnn_fused_lstm_cell_backward "
        "_thnn_differentiable_lstm_cell_backward _thnn_fused_gru_cell "
        "_thnn_fused_gru_cell_backward _thnn_differentiable_gru_cell_backward"
    ),
    "margin_loss": (
        "soft_margin_loss soft_margin_loss_backward multi_margin_loss multi_margin_loss_backward "
        "multilabel_margin_loss_forward multilabel_margin_loss_backward multilabel_margin_loss "
        "cosine_similarity pairwise_distance cosine_embedding_loss hinge_embedding_loss "
        "margin_ranking_loss triplet_margin_loss"
    ),
    "ctc": (
        "_ctc_loss _ctc_loss_backward ctc_loss"
    ),
    "embedding": (
        "_embedding_bag _embedding_bag_forward_only embedding_bag _embedding_bag_backward "
        "_embedding_bag_dense_backward _embedding_bag_per_sample_weights_backward "
        "embedding_backward embedding_renorm:i"
    ),
    "pool": (
        "max_pool2d_with_indices max_pool3d_with_indices max_pool2d_with_indices_backward "
        "max_pool3d_with_indices_backward max_pool2d max_pool3d avg_pool2d avg_pool3d "
        "avg_pool2d_backward avg_pool3d_backward _adaptive_avg_pool2d _adaptive_avg_pool3d "
        "_adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward adaptive_avg_pool2d "
        "adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d adaptive_max_pool2d_backward "
        "adaptive_max_pool3d_backward fractional_max_pool2d fractional_max_pool3d "
        "fractional_max_pool2d_backward fractional_max_pool3d_backward"
    ),
    "unpool": (
        "max_pool1d_with_indices max_pool1d avg_pool1d adaptive_avg_pool1d adaptive_max_pool1d "
        "max_pool2d_backward max_unpool2d max_unpool3d"
    ),
    "pad": (
        "reflection_pad1d reflection_pad1d_backward reflection_pad2d reflection_pad2d_backward "
        "reflection_pad3d reflection_pad3d_backward replication_pad1d replication_pad1d_backward "
        "replication_pad2d replication_pad2d_backward replication_pad3d "
        "replication_pad3d_backward _pad_circular _pad_enum pad"
    ),
    "upsample": (
        "upsample_nearest1d upsample_nearest1d_backward upsample_nearest2d "
        "upsample_nearest2d_backward upsample_nearest3d upsample_nearest3d_backward "
        "_upsample_nearest_exact1d _upsample_nearest_exact1d_backward _upsample_nearest_exact2d "
        "_upsample_nearest_exact2d_backward _upsample_nearest_exact3d "
        "_upsample_nearest_exact3d_backward upsample_linear1d upsample_linear1d_backward "
        "upsample_bilinear2d upsample_bilinear2d_backward upsample_trilinear3d "
        "upsample_trilinear3d_backward upsample_bicubic2d upsample_bicubic2d_backward "
        "_upsample_bilinear2d_aa _upsample_bilinear2d_aa_backward _upsample_bicubic2d_aa "
        "_upsample_bicubic2d_aa_backward _upsample_lanczos2d_aa _upsample_lanczos2d_aa_backward"
    ),
    "grid_sample": (
        "grid_sampler_2d grid_sampler_2d_backward grid_sampler_3d grid_sampler_3d_backward "
        "grid_sampler _grid_sampler_2d_cpu_fallback _grid_sampler_2d_cpu_fallback_backward "
        "affine_grid_generator affine_grid_generator_backward"
    ),
    "pixel_shuffle": (
        "pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle"
    ),
    "conv": (
        "convolution _convolution convolution_backward _convolution_double_backward conv1d conv2d "
        "conv3d _convolution_mode conv_transpose1d conv_transpose2d conv_transpose3d"
    ),
    "blocks": (
        "conv_tbc conv_tbc_backward im2col col2im"
    ),
    "special": (
        "special_ndtr special_log_ndtr _normal_hazard special_ndtri special_erfcx _erfcx_integral "
        "_erfcx_ratio special_entr mvlgamma:pi special_multigammaln=mvlgamma:pi igamma:pi "
        "special_gammainc=igamma:pi igammac:pi special_gammaincc=igammac:pi _igamma_order "
        "_gamma_density special_zeta _zeta_order special_xlog1py logaddexp2:p float_power:mi"
    ),
    "bessel": (
        "i0:pi special_i0=i0:pi special_i1 _bessel_i special_i0e special_i1e _scaled_bessel_i "
        "special_modified_bessel_i0 special_modified_bessel_i1 special_bessel_j0 "
        "special_bessel_j1 _bessel_j special_bessel_y0 special_bessel_y1 _bessel_y "
        "special_modified_bessel_k0 special_modified_bessel_k1 _bessel_k "
        "special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 _scaled_bessel_k "
        "special_spherical_bessel_j0 sinc:pi special_sinc=sinc:pi _sinc_order special_airy_ai "
        "_airy_ai_prime"
    ),
    "orthogonal_polynomials": (
        "_orthogonal_polynomial special_chebyshev_polynomial_t special_chebyshev_polynomial_u "
        "special_chebyshev_polynomial_v special_chebyshev_polynomial_w "
        "special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u "
        "special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w "
        "special_hermite_polynomial_h special_hermite_polynomial_he special_laguerre_polynomial_l "
        "special_legendre_polynomial_p"
    ),
    "numbers": (
        "frexp:m ldexp:pi nextafter:pi gcd:pi lcm:pi complex polar"
    ),
    "scans": (
        "logcumsumexp:m _logcumsumexp cummax:m cummin:m"
    ),
    "fft": (
        "_fft_c2c _fft_r2c _fft_c2r fft_fft fft_ifft fft_rfft fft_irfft fft_hfft fft_ihfft "
        "fft_fft2 fft_fftn fft_ifft2 fft_ifftn fft_rfft2 fft_rfftn fft_irfft2 fft_irfftn "
        "fft_hfft2 fft_hfftn fft_ihfft2 fft_ihfftn fft_fftfreq fft_rfftfreq fft_fftshift "
        "fft_ifftshift"
    ),
    "stft": (
        "stft:m istft:m hann_window hamming_window blackman_window bartlett_window kaiser_window"
    ),
    "statistics": (
        "mode:m nanmedian:m nanmean:m quantile:m nanquantile:m renorm:mi dist:m segment_reduce "
        "_segment_reduce=segment_reduce _segment_reduce_backward"
    ),
    "histograms": (
        "histc:m histogram:m _histogramdd_bin_edges _histogramdd_from_bin_cts "
        "_histogramdd_from_bin_tensors histogramdd"
    ),
    "sampled": (
        "diff:m gradient trapezoid trapz cumulative_trapezoid"
    ),
    "distance": (
        "_euclidean_dist _cdist_forward _cdist_backward cdist _pdist_forward _pdist_backward "
        "pdist"
    ),
    "quantize": (
        "fake_quantize_per_tensor_affine_cachemask "
        "fake_quantize_per_tensor_affine_cachemask_backward "
        "fake_quantize_per_channel_affine_cachemask_backward "
        "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams "
        "fake_quantize_per_tensor_affine fake_quantize_per_channel_affine_cachemask "
        "fake_quantize_per_channel_affine _fake_quantize_learnable_per_tensor_affine "
        "_fake_quantize_learnable_per_tensor_affine_backward "
        "_fake_quantize_learnable_per_channel_affine "
        "_fake_quantize_learnable_per_channel_affine_backward "
        "_fused_moving_avg_obs_fq_helper_functional _fused_moving_avg_obs_fq_helper "
        "fused_moving_avg_obs_fake_quant"
    ),
    "quantized_tensors": (
        "quantize_per_tensor quantize_per_tensor_dynamic quantize_per_channel "
        "_make_per_tensor_quantized_tensor _make_per_channel_quantized_tensor dequantize int_repr "
        "q_scale q_zero_point q_per_channel_scales q_per_channel_zero_points q_per_channel_axis "
        "qscheme _empty_affine_quantized _empty_per_channel_affine_quantized empty_quantized "
        "quantized_batch_norm quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d "
        "_choose_qparams_per_tensor choose_qparams_optimized fbgemm_linear_quantize_weight "
        "fbgemm_pack_quantized_matrix fbgemm_pack_gemm_matrix_fp16 fbgemm_linear_int8_weight "
        "fbgemm_linear_fp16_weight fbgemm_linear_int8_weight_fp32_activation "
        "fbgemm_linear_fp16_weight_fp32_activation quantized_lstm_cell quantized_gru_cell "
        "quantized_rnn_relu_cell quantized_rnn_tanh_cell"
    ),
    "integers": (
        "_quantized_integers _input_parameters _integer_products _linear_of_integers"
    ),
    "products": (
        "_trilinear bilinear linear_backward _grouped_mm _addmm_activation:m _add_relu:i _int_mm "
        "_compute_linear_combination"
    ),
    "predicates": (
        "signbit:p isposinf:p isneginf:p isreal:m hash_tensor:m is_conj:m is_neg:m is_signed:m "
        "is_inference:m is_distributed:m _is_zerotensor:m is_same_size:m is_set_to:m"
    ),
    "legacy": (
        "_shape_as_tensor _dim_arange _stack _aminmax native_norm detach_copy _cast_Byte "
        "_cast_Char _cast_Double _cast_Float _cast_Half _cast_Int _cast_Long _cast_Short range"
    ),
    "internal": (
        "_reshape_alias _reshape_copy _neg_view lift lift_fresh lift_fresh_copy _lazy_clone "
        "_conj_copy slice_inverse _pin_memory _efficientzerotensor "
        "_new_zeros_with_same_feature_meta _index_put_impl:i _is_all_true _is_any_true sym_size "
        "sym_stride dim is_contiguous sym_numel sym_is_contiguous is_non_overlapping_and_dense "
        "is_pinned numel sym_storage_offset record_stream _local_scalar_dense resize_:m "
        "_reshape_alias_copy _neg_view_copy"
    ),
    "fused_attention": (
        "_scaled_dot_product_flash_attention_for_cpu "
        "_scaled_dot_product_flash_attention_for_cpu_backward _scaled_dot_product_flash_attention "
        "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention "
        "_scaled_dot_product_fused_attention_overrideable _cudnn_attention_forward "
        "_flash_attention_forward _efficient_attention_forward"
    ),
    "ragged_attention": (
        "_ragged_attention _ragged_attention_backward"
    ),
    "conv_forms": (
        "thnn_conv2d _slow_conv2d_forward slow_conv3d slow_conv3d_forward slow_conv_dilated2d "
        "slow_conv_dilated3d slow_conv_transpose2d slow_conv_transpose3d _conv_depthwise2d "
        "conv_depthwise3d _slow_conv2d_backward convolution_overrideable "
        "convolution_backward_overrideable"
    ),
    "foreach": (
        "_foreach_abs _foreach_acos _foreach_asin _foreach_atan _foreach_ceil _foreach_cos "
        "_foreach_cosh _foreach_erf _foreach_erfc _foreach_exp _foreach_expm1 _foreach_floor "
        "_foreach_frac _foreach_lgamma _foreach_log _foreach_log10 _foreach_log1p _foreach_log2 "
        "_foreach_neg _foreach_reciprocal _foreach_round _foreach_rsqrt _foreach_sigmoid "
        "_foreach_sign _foreach_sin _foreach_sinh _foreach_sqrt _foreach_tan _foreach_tanh "
        "_foreach_trunc _foreach_add _foreach_sub _foreach_mul _foreach_div _foreach_clamp_min "
        "_foreach_clamp_max _foreach_maximum _foreach_minimum _foreach_pow _foreach_lerp "
        "_foreach_addcmul _foreach_addcdiv _foreach_copy _foreach_zero _foreach_clone "
        "_foreach_max _foreach_mm _foreach_norm _foreach_powsum"
    ),
    "aten_only": (
        "gather_backward _gather_sparse_backward embedding_sparse_backward "
        "_embedding_bag_sparse_backward index_select_backward masked_select_backward "
        "value_selecting_reduction_backward cummaxmin_backward cumprod_backward "
        "matrix_exp_backward trace_backward _batch_norm_impl_index_backward flatten_dense_tensors "
        "unflatten_dense_tensors _reshape_from_tensor _to_cpu chalf data item is_nonzero "
        "is_complex is_floating_point get_device size stride is_leaf retains_grad output_nr "
        "_version result_type promote_types can_cast"
    ),
    "effects": (
        "_print _assert_async _assert_scalar"
    ),
    "vendor_conv": (
        "cudnn_convolution cudnn_convolution_transpose miopen_convolution "
        "miopen_convolution_transpose miopen_depthwise_convolution mkldnn_convolution "
        "_mps_convolution _mps_convolution_transpose _nnpack_spatial_convolution "
        "mps_convolution_backward mps_convolution_transpose_backward cudnn_convolution_relu "
        "miopen_convolution_relu cudnn_convolution_add_relu miopen_convolution_add_relu"
    ),
    "vendor_norm": (
        "cudnn_batch_norm miopen_batch_norm cudnn_batch_norm_backward miopen_batch_norm_backward"
    ),
    "vendor_grid": (
        "cudnn_grid_sampler cudnn_grid_sampler_backward cudnn_affine_grid_generator "
        "cudnn_affine_grid_generator_backward"
    ),
    "vendor_ctc": (
        "_cudnn_ctc_loss miopen_ctc_loss"
    ),
    "vendor_questions": (
        "_use_cudnn_ctc_loss _use_miopen_ctc_loss cudnn_is_acceptable _nnpack_available "
        "_use_cudnn_rnn_flatten_weight"
    ),
    "vendor_layers": (
        "to_mkldnn:m to_mkldnn_backward _mkldnn_reshape _mkldnn_transpose _mkldnn_transpose_ "
        "mkldnn_reorder_conv2d_weight mkldnn_reorder_conv3d_weight mkldnn_linear "
        "mkldnn_linear_backward_input mkldnn_linear_backward_weights mkldnn_linear_backward "
        "mkldnn_adaptive_avg_pool2d mkldnn_adaptive_avg_pool2d_backward mkldnn_max_pool2d "
        "mkldnn_max_pool3d mkldnn_max_pool2d_backward mkldnn_max_pool3d_backward"
    ),
    "vendor_rnn": (
        "_cudnn_rnn miopen_rnn _cudnn_rnn_backward miopen_rnn_backward _cudnn_rnn_flatten_weight "
        "_cudnn_init_dropout_state mkldnn_rnn_layer mkldnn_rnn_layer_backward _lstm_mps "
        "lstm_mps_backward"
    ),
}
