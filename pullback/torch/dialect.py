"""PyTorch's dialect of graphs: its parts and whole operators, its formulas, its way to say a call.

An operator of the table may be one kernel here and several operators in PyTorch (`where` with a
number), or the other way round (`norm`), and a formula may be written for speed or for the sake of
higher derivatives.  Graphs that people read (`make_fx`, `aot_function`, `aot_export_*`) follow
PyTorch; eager mode and `compile` do not come here.  The parts are in `dialect_parts.py`, the longer
formulas in `dialect_formulas.py`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .. import errors
from ..array.size import Symbolic
from ..core.dispatching import NUMBERED, of_formula
from ..core.factories import added
from ..core.formula import Rule
from ..core.handle import Tensor, make
from ..core.op import OpOverload, overload, registry
from ..core.stack import lifted
from ..graph.dialect import Dialect
from ..graph.make_fx import Recorder
from ..graph.node import Node
from ..table.packets import ops
from .dialect_formulas import FUNCTIONS
from .dialect_parts import EXPLICIT, PARTS, TRACED

# Composite here, one operator there.  Patterns end with `*`.
WHOLE = """
    linalg__powsum norm.Scalar norm.ScalarOpt_dim norm.ScalarOpt_dtype norm.ScalarOpt_dim_dtype
    block_diag _chunk_cat _unsafe_index.Tensor _unsafe_index_put _unsafe_masked_index
    _unsafe_masked_index_put_accumulate scatter.reduce scatter.value_reduce index_reduce
    unique_consecutive searchsorted.Scalar bucketize.Tensor bucketize.Scalar isin.Tensor_Scalar
    isin.Scalar_Tensor linspace.Tensor_Tensor linspace.Tensor_Scalar linspace.Scalar_Tensor
    logspace.Tensor_Tensor logspace.Tensor_Scalar logspace.Scalar_Tensor addmm.dtype baddbmm.dtype
    cholesky cholesky_inverse linalg_householder_product ormqr _linalg_eigvals triangular_solve
    rrelu_with_noise native_batch_norm batch_norm_update_stats batch_norm_stats batch_norm_elemt
    batch_norm_gather_stats_with_counts batch_norm_gather_stats batch_norm_backward_reduce
    batch_norm_backward_elemt _weight_norm_interface_backward _embedding_bag_forward_only
    _embedding_bag_backward _grid_sampler_2d_cpu_fallback _grid_sampler_2d_cpu_fallback_backward
    fft_fftfreq fft_rfftfreq hann_window* hamming_window* blackman_window* bartlett_window*
    kaiser_window* _segment_reduce_backward _cdist_backward _pdist_backward
    _fake_quantize_learnable_per_tensor_affine_backward
    _fake_quantize_learnable_per_channel_affine_backward linear_backward _addmm_activation
    _add_relu.Tensor _add_relu.Scalar _compute_linear_combination _stack _aminmax _aminmax.dim
    native_norm* _is_all_true _is_any_true slow_conv3d_forward slow_conv_dilated2d
    slow_conv_dilated3d slow_conv_transpose2d slow_conv_transpose3d _conv_depthwise2d
    conv_depthwise3d _slow_conv2d_forward _slow_conv2d_backward.output_mask _foreach_*
"""


@functools.cache
def _split(text: str) -> tuple[set, tuple]:
    names = text.split()
    return ({n for n in names if not n.endswith("*")},
            tuple(n[:-1] for n in names if n.endswith("*")))


def matches(name: str, text: str) -> bool:
    """Is a name among those in a text, some of which end with `*`?"""
    whole, families = _split(text)
    return name in whole or name.startswith(families)


class TorchDialect(Dialect):
    """What PyTorch's graphs of one kind of capture show."""

    keeps_whole = True

    def __init__(self, compositions: Mapping[str, Callable]):
        self.compositions = compositions
        self._numbers: dict[int, complex] = {}  # of operators that are made of others

    def whole(self, ov: OpOverload) -> bool:
        return matches(str(ov.name), WHOLE) or ov.op.base_name.endswith("_copy")

    def rule(self, ov: OpOverload) -> Rule | None:
        return rule(ov)

    def stored(self, value: complex, like: Tensor) -> Tensor | None:
        kernel = ops.scalar_tensor.default.kernel
        return lifted(make(kernel(np, value, like.dtype, None, None, None)))

    def keeps_slice(self, size: Any) -> bool:
        return isinstance(size, Symbolic)

    def shown(self, recorder: Recorder, ov: OpOverload, flat: tuple, args: list,
              kwargs: dict) -> tuple:
        forward = recorder.pulled is None
        if forward and ov.name in _SLICES:
            args = _bounded(args, _SLICES[ov.name])
        elif forward and "pin_memory" not in kwargs:
            kwargs = {**kwargs, **added(ov, any(isinstance(v, Node) for v in flat))}
        if ov.name in NUMBERED and len(args) == 2 and not kwargs and (
                isinstance(args[1], (int, float, complex)) and self._compiled(recorder, args[1])):
            ov = overload(NUMBERED[ov.name])
            self._numbers[id(args[1])] = args[1]
        if forward and ov.name in _CORRECTED and not kwargs and len(args) > 1 and (
                args[1] is not None and not _called_directly()):
            kwargs = {"correction": 1}  # of the overload that PyTorch chooses for `x.std(1)`
        return ov, args, kwargs

    def _compiled(self, recorder: Recorder, number: complex) -> bool:
        """Is it of C++ in PyTorch: of an operator made of others, or of a formula?

        And did not stand in the place of a tensor in the user's call?
        """
        if recorder.pulled is None:
            return _composed(recorder.composing)
        return self._numbers.get(id(number)) is number or of_formula(recorder.pulled, number)


@functools.cache
def rule(ov: OpOverload) -> Rule | None:
    """The derivative of an operator, by PyTorch's formulas where these differ."""
    own = formulas_of(ov)
    if own:
        return Rule(ov, own, FUNCTIONS)
    return None if ov.is_composite else ov.rule


# calls as PyTorch's functions make them

_SLICES = {"slice.Tensor": 1, "slice_copy.Tensor": 1, "slice_scatter": 2}  # where the dim stands
_CORRECTED = {f"{name}.correction" for name in ("std", "var", "std_mean", "var_mean")}


def _bounded(args: list, at: int) -> list:
    """How `x[1:]` and `x[:3]` say where they begin and end."""
    args = [*args, *[0, None, None][len(args) - at:]] if len(args) < at + 3 else args
    args[at + 1] = 0 if args[at + 1] is None else args[at + 1]
    args[at + 2] = sys.maxsize if args[at + 2] is None else args[at + 2]
    return args


def _called_directly() -> bool:
    """Did the user call the operator itself, not a function of the package?"""
    frame, last = sys._getframe(2), None
    while frame is not None and frame.f_code.co_filename.startswith(errors._INTERNAL):
        frame, last = frame.f_back, frame.f_code
    return last is OpOverload.__call__.__code__


def _composed(composing: list) -> bool:
    """Is what is recorded a part of an operator that PyTorch takes apart in C++?"""
    for ov in reversed(composing):
        if ov is None or ov.name in TRACED:
            return False
        if ov.is_composite:
            return True
    return False


# formulas, where PyTorch's are not those of the table

FORMULAS: dict[str, dict[str, str]] = {
    "log10": {"self": "grad / (self.conj() * 2.3025850929940456)"},
    "tan": {"self": "grad * (1 + result.pow(2)).conj()"},
    "asin": {"self": "grad * (-self * self + 1).rsqrt().conj()"},
    "acos": {"self": "grad * -((-self * self + 1).rsqrt()).conj()"},
    "asinh": {"self": "grad * (self.pow(2) + 1).rsqrt().conj()"},
    "atanh": {"self": "grad * 1 / number_minus(1, self.pow(2)).conj()"},
    "erf": {"self": "2 / math.sqrt(math.pi) * (-(self.pow(2))).exp() * grad"},
    "erfc": {"self": "-2 / math.sqrt(math.pi) * (-(self.pow(2))).exp() * grad"},
    "tanh_backward": {"output": "grad.conj() * (-2 * output.conj() * grad_output)"},
    "sigmoid_backward": {"output": "grad.conj() * grad_output * (-2 * output.conj() + 1)"},
    "elu_backward": {"self_or_result": (
        "elu_double_backward(grad, grad_output, alpha, scale, input_scale, is_result,"
        " self_or_result)")},
    "softplus_backward": {
        "self": "softplus_double_backward(grad * grad_output, self, beta, threshold)"},
    "pow.Tensor_Tensor": {
        "self": "pow_backward_self(grad, self, exponent)",
        "exponent": "pow_backward_exponent(grad, self, exponent, result)"},
    "clamp": {"self": "clamp_backward(grad, self, min, max)"},
    "clamp_min": {"self": "clamp_backward(grad, self, min, None)"},
    "clamp_max": {"self": "clamp_backward(grad, self, None, max)"},
    "clamp.Tensor": {
        "self": "clamp_backward(grad, self, min, max)",
        "min, max": "clamp_bounds_backward(grad, self, min, max, grad_input_mask)"},
    "clamp_min.Tensor": {
        "self": "where(self >= min, grad, zero_number(grad))",
        "min": "where(self < min, grad, zero_number(grad))"},
    "clamp_max.Tensor": {
        "self": "where(self <= max, grad, zero_number(grad))",
        "max": "where(self > max, grad, zero_number(grad))"},
    "atan2": {"self, other": "atan2_backward(grad, self, other, grad_input_mask)"},
    "hypot": {"self": "grad * self / result", "other": "grad * other / result"},
    "lerp.Tensor": {"self": "grad * number_minus(1, beside(weight, grad)).conj()"},
    "addcdiv": {"tensor1": "grad * number_over(value, beside(tensor2, grad)).conj()"},
    "xlogy.Tensor": {"self": "xlogy_backward(grad, self, other)"},
    "xlogy.Scalar_Other": {"self": "xlogy(grad, other) if other > 0 else"
                                   " xlogy(grad, other).masked_fill(self == 0.0, 0.0)"},
    "logaddexp": {"self": "logaddexp_backward(grad, self, other)",
                  "other": "logaddexp_backward(grad, other, self)"},
    "copysign.Tensor": {"self": "copysign_backward(grad, self, result)"},
    "copysign.Scalar": {"self": "copysign_backward(grad, self, result)"},
    "prod": {"self": "prod_backward(grad, self)"},
    "prod.dim_int": {"self": "prod_dim_backward(grad, self, dim, keepdim)"},
    "std.correction": {
        "self": "std_backward(grad, self, result, dim, correction, keepdim)"},
    "linalg_vector_norm": {"self": "norm_backward(grad, self, ord, result, dim, keepdim)"},
    "norm.Scalar": {"self": "norm_backward(grad, self, p, result, [], True)"},
    "norm.ScalarOpt_dtype": {"self": "norm_backward(grad.to(self.dtype), self, p, result, [],"
                                     " True)"},
    "norm.ScalarOpt_dim": {"self": "norm_backward(grad, self, p, result, dim, keepdim)"},
    "norm.ScalarOpt_dim_dtype": {
        "self": "norm_backward(grad, self, p, result, dim, keepdim)"},
    "amax": {"self": "extreme_backward(grad, self, result, dim, keepdim)"},
    "amin": {"self": "extreme_backward(grad, self, result, dim, keepdim)"},
    "max": {"self": "evenly_backward(grad, self, result)"},
    "min": {"self": "evenly_backward(grad, self, result)"},
    "median": {"self": "evenly_backward(grad, self, result)"},
    "nanmedian": {"self": "evenly_backward(grad, self, result)"},
    "select_scatter": {
        "self": "select_scatter(grad, zeros_in(src.shape, src.dtype, grad), dim, index)"},
    "slice_scatter": {
        "self": "slice_scatter(grad, zeros_in(src.shape, src.dtype, grad), dim, start, end,"
                " step)"},
    "diagonal_scatter": {
        "self": "diagonal_scatter(grad, zeros_in(src.shape, src.dtype, grad), offset, dim1,"
                " dim2)"},
    "as_strided": {"self": (
        "as_strided_printed(grad, self.shape, self.stride(), self.storage_offset(), size, stride,"
        " storage_offset)")},
    "_unsafe_index.Tensor": {"self": (
        "_unsafe_index_put(new_zeros_like(grad, self.shape), indices, grad, True)")},
    "stack": {"tensors": "stack_backward(grad, len(tensors), dim)"},
    "index.Tensor": {
        "self": "index_put(new_zeros_like(grad, self.shape), indices, grad, True)"},
    "index_select": {
        "self": "new_zeros_like(grad, self.shape).index_add(dim, index, grad)"},
    "convolution": {"input, weight, bias": (
        "(None, None, None) if grad is None else convolution_backward("
        "grad, input.conj(), weight.conj(), sizes_of_bias(bias.shape), stride, padding, dilation,"
        " transposed, output_padding, groups, grad_input_mask)")},
    "_cdist_forward": {
        "x2": "_cdist_backward(grad.mT.contiguous(), x2, x1, p, result.mT.contiguous())"},
    "copy": {"self": "zeros_like(grad, memory_format='contiguous_format')"},
    "index_put": {"self": (
        "grad if accumulate else"
        " index_put(grad, indices, zeros_in(values.shape, values.dtype, grad), False)")},
    "linalg_inv_ex": {"A": "inverse_backward(grad, inverse)"},
    "linalg_cholesky_ex": {"self": "cholesky_backward(grad, L, upper)"},
    "_linalg_solve_ex": {"A, B": (
        "solve_backward(grad, A, B.shape, result, LU, pivots, left, grad_input_mask)")},
    "_linalg_slogdet": {
        "A": "slogdet_backward(grad_sign, grad_logabsdet, A, sign, LU, pivots)"},
    "linalg_qr": {"A": "qr_backward(grad_Q, grad_R, Q, R, mode, A.shape)"},
    "_linalg_eigh": {"A": (
        "eigh_backward(grad_eigenvalues, grad_eigenvectors, eigenvalues, eigenvectors,"
        " compute_v)")},
    "_linalg_svd": {
        "A": "svd_backward(grad_U, grad_S, grad_Vh, U, S, Vh, full_matrices, compute_uv)"},
    "linalg_pinv.atol_rtol_tensor": {"self": "pinv_backward(grad, result, self)"},
    "index_add": {"source": (
        "index_source_backward(scale_by(grad, alpha), dim, index, source.ndim, source.shape)")},
    "put": {"self": "grad if accumulate else"
                    " grad.put(index, zeros_in(source.shape, source.dtype, grad), False)"},
    "take": {"self": "zeros_like(self).put(index, grad, True)"},
    "trace": {"self": "trace_backward_printed(grad, self.shape)"},
    "_softmax_backward_data": {
        "output": "softmax_backward_output(grad, grad_output, output, dim)"},
    "max_pool2d_with_indices_backward": {
        "grad_output": "pool_double_backward(grad, indices, 2)"},
    "adaptive_max_pool2d_backward": {"grad_output": "pool_double_backward(grad, indices, 2)"},
    "fractional_max_pool2d_backward": {"grad_output": "pool_double_backward(grad, indices, 2)"},
    "max_pool3d_with_indices_backward": {
        "grad_output": "pool_double_backward(grad, indices, 3)"},
    "adaptive_max_pool3d_backward": {"grad_output": "pool_double_backward(grad, indices, 3)"},
    "fractional_max_pool3d_backward": {"grad_output": "pool_double_backward(grad, indices, 3)"},
    "max_unpool2d": {"self": "pool_double_backward(grad, indices, 2)"},
    "max_unpool3d": {"self": "pool_double_backward(grad, indices, 3)"},
    "binary_cross_entropy_with_logits": {
        "self": "logits_loss_backward(grad, self, target, weight, pos_weight, reduction)",
        "target": "logits_target_backward(grad, self, target, weight, pos_weight, reduction)"},
}

# Zero derivatives that take their shape from the gradient; others take that of the input.
LIKE_GRAD = """
    sign floor ceil trunc round round.decimals threshold_backward leaky_relu_backward
    hardtanh_backward hardshrink_backward softshrink_backward fill.Scalar fill.Tensor zero
    bernoulli bernoulli.Tensor bernoulli.p exponential geometric cauchy log_normal uniform
    random* relu6_backward
"""


def formulas_of(ov) -> dict[str, str]:
    """PyTorch's formulas for an operator, where they are other ones."""
    found = dict(FORMULAS.get(ov.name, {}))
    name = str(ov.name)
    if ov.is_composite and ov.op.base_name.endswith("_copy"):  # a copy of a view
        view = registry.get(name.replace("_copy", "", 1))
        return found if view is None else {**view.grad, **found}
    if ov.is_composite or len(ov.schema.returns) > 1:
        return found
    for i, key in enumerate(ov.op.constant):
        like = i == 0 and matches(name, LIKE_GRAD)
        found.setdefault(key, "zeros_like(grad)" if like
                         else f"zeros_in({key}.shape, {key}.dtype, grad)")
    return found


_KINDS: dict[bool, Mapping[str, Callable]] = {
    False: {**PARTS, **EXPLICIT}, True: {**PARTS, **TRACED, **EXPLICIT}}


def dialect(kind: str, whole: bool = False) -> TorchDialect:
    """That of captures of a kind: "real", "fake", "symbolic" or "aot"; `whole` before dispatch.

    Where PyTorch dispatches in Python (symbolic sizes, AOT) more operators are taken apart.
    """
    return TorchDialect(EXPLICIT if whole else _KINDS[kind in ("symbolic", "aot")])
