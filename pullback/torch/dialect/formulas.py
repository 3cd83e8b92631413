"""PyTorch's form of some derivatives, for graphs that print as its graphs do.

The table has other formulas for these: faster ones, or such that higher derivatives exist at kinks
as well.  Where a history is recorded through a formula here it gives way to that of the table.
`FORMULAS`, behind the functions, says which operators have which.
"""

from __future__ import annotations

import functools
import math

from ...array import dtype as dt
from ...array.dims import may_overlap, wrap_dim, wrap_dims
from ...array.layout import STRIDED
from ...core.formula import Rule
from ...core.op import registry
from ...core.overload import OpOverload
from ...formulas.factor import eigh_grad, qr_grad, svd_grad
from ...formulas.linalg import (
    diagonal_of,
    is_vector,
    pinv_grad,
    slogdet_grad,
    solve_grads,
    solve_tri,
)
from ...formulas.pointwise import (
    beside,
    copysign_pullback,
    power_pullback_base,
    power_pullback_exponent,
    share_of_sum,
    squared_radius,
    xlogy_pullback,
)
from ...formulas.reduce import _spread_of, norm_pullback, restore, std_pullback
from ...formulas.shape import _both, as_strided_backward
from ...table.packets import ops
from ...threads.state import recording


def zeros_in(shape, dtype, grad):
    """Zeros for an input of which only the facts were kept."""
    return ops.zeros(list(shape), dtype=dtype, layout=STRIDED, device=grad.device)


def zero_number(grad, value=0.0):
    """A number as a tensor."""
    return ops.scalar_tensor(value, dtype=grad.dtype, layout=STRIDED, device=grad.device)


def filled(number, like):
    """A number in the shape of a tensor: what stands before an operator sign in C++."""
    return ops.fill(ops.empty_like(like, memory_format="preserve_format"), number)


def number_minus(number, x):
    """number - x."""
    return filled(number, x) - x


def number_over(number, x):
    """number / x."""
    return filled(number, x) / x


def sizes_of_bias(shape):
    """The sizes of a bias; one that is not there has none of them."""
    return [0] if shape is None else list(shape)


def unsqueezed(x, dim, ndim):
    """A reduced tensor with its reduced dims as dims of size 1; all dims are none."""
    if not dim:
        return x
    if len(dim) == 1:
        return x.unsqueeze(dim[0])
    for d in sorted(wrap_dims(dim, ndim)):
        x = x.unsqueeze(d)
    return x


def norm_backward(grad, self, p, norm, dim, keepdim):
    """The p-norm: x |x|^(p-2) / norm^(p-1), and 0 where the norm is."""
    if recording():
        return norm_pullback(grad, self, 2 if p is None else p, norm, dim or None, keepdim)
    p = 2.0 if p is None else float(p)
    if p == 0:
        return None  # it only counts
    if not keepdim and self.ndim:
        grad, norm = unsqueezed(grad, dim, self.ndim), unsqueezed(norm, dim, self.ndim)
    if p == 1:
        return self.sgn() * grad
    if p == 2:
        ratio = self / norm
        return grad * ratio.masked_fill(norm == 0, 0)
    if math.isinf(p):
        size = self.abs()
        hit = (size == norm).logical_or(size.isnan())
        scale = grad / hit.sum(dim or None, True)
        return self.sgn() * (scale * hit)
    if p < 1:
        scaled = self.sgn() * self.abs().pow(p - 1).masked_fill(self == 0, 0)
        return scaled * grad * norm.pow(1 - p)
    if p < 2:
        scaled = self.sgn() * self.abs().pow(p - 1)
    else:
        scaled = self * self.abs().pow(p - 2)
    slope = grad / norm.pow(p - 1)
    return scaled * slope.masked_fill(norm == 0, 0)


def std_backward(grad, self, result, dim, correction, keepdim):
    """d sqrt(v) = d v / (2 sqrt(v)), and 0 where all elements are equal."""
    if recording():
        return std_pullback(grad, self, result, dim, correction, keepdim)
    slope = grad / (result * 2)
    slope = slope.masked_fill(result == 0, 0)
    if dim is not None and not keepdim and self.ndim > 1:
        unsqueezed(slope, dim, self.ndim)  # PyTorch takes this view twice: numbers show it
    factor, offset = _spread_of(self, dim, correction)
    return factor * restore(slope, self.ndim, dim, keepdim) * offset


def prod_backward(grad, self):
    """A product of all elements."""
    if self.ndim == 0 or self.numel() < 2:
        return grad.expand(self.shape)
    flat = self.reshape([-1])
    return prod_dim_backward(grad, flat, 0, True).view(list(self.shape))


def prod_dim_backward(grad, self, dim, keepdim):
    """A product along a dim: (product of those before) (product of those after)."""
    if self.ndim == 0:
        return grad
    dim = wrap_dim(dim, self.ndim)
    if not keepdim:
        grad = grad.unsqueeze(dim)
    size = self.shape[dim]
    if size < 2:
        return grad.expand(self.shape)
    shape = list(self.shape)
    shape[dim] = 1
    ones = ops.ones(shape, dtype=grad.dtype, layout=STRIDED, device=grad.device)
    before = ops.cat([ones, self.narrow(dim, 0, size - 1)], dim).cumprod(dim)
    after = ops.cat([ones, self.narrow(dim, 1, size - 1).flip([dim])], dim)
    after = after.cumprod(dim).flip([dim])
    return grad * (before * after).conj()


def restored(x, dim, shape, keepdim):
    """A reduced tensor in the shape that it has with its reduced dims kept."""
    if keepdim:
        return x
    kept = list(shape)
    for d in wrap_dims(dim, len(shape)) if dim else ():
        kept[d] = 1
    return x.reshape(kept if dim else [])


def extreme_backward(grad, self, result, dim, keepdim):
    """All elements that attain the extreme share its gradient evenly."""
    dim = list(dim) if isinstance(dim, (list, tuple)) else [] if dim is None else [dim]
    hit = restored(result, dim, self.shape, keepdim) == self
    grad = restored(grad, dim, self.shape, keepdim)
    return grad / hit.sum(dim, True) * hit


def evenly_backward(grad, self, result):
    """The same for the extreme of all elements; all NaN are equal to a NaN."""
    both = self.isnan()
    both = both.logical_and(result.isnan())
    hit = (self == result).logical_or(both)
    return hit * (grad / hit.sum())


def clamp_backward(grad, self, low, high):
    """The gradient inside of the bounds."""
    zero = zero_number(grad)
    if low is not None and high is not None:
        inside = self >= low
        return ops.where(inside.logical_and(self <= high), grad, zero)
    if low is not None:
        return ops.where(self >= low, grad, zero)
    return ops.where(self <= high, grad, zero) if high is not None else grad


def clamp_bounds_backward(grad, self, low, high, mask):
    """The gradients of both bounds of `clamp`."""
    zero = zero_number(grad)
    first = second = None
    if low is not None and high is not None:
        if mask[0]:
            below = self < low
            first = ops.where(below.logical_and(low < high), grad, zero)
        if mask[1]:
            above = self > high
            second = ops.where(above.logical_or(high < low), grad, zero)
    elif low is not None:
        first = ops.where(self < low, grad, zero) if mask[0] else None
    elif high is not None:
        second = ops.where(self > high, grad, zero) if mask[1] else None
    return first, second


def pow_backward_self(grad, self, exponent):
    """d x^p = p x^(p-1) dx, and 0 for p = 0."""
    if recording():
        return power_pullback_base(grad, self, exponent)
    exponent = beside(exponent, grad)
    slope = grad * (exponent * self.pow(exponent - 1)).conj()
    zero = zero_number(slope)
    return ops.where(exponent == 0.0, zero, slope)


def pow_backward_exponent(grad, self, exponent, result):
    """d x^p = x^p log(x) dp, with 0 at x = 0 where p >= 0."""
    if recording() or exponent.is_complex():
        return power_pullback_exponent(grad, self, exponent, result)
    upper = exponent >= 0
    flat = (self == 0).logical_and(upper)
    slope = (result * self.log()).conj()
    return grad * ops.where(flat, zero_number(slope), slope)


def atan2_backward(grad, self, other, mask):
    """d atan2(y, x) = (x dy - y dx) / (x^2 + y^2), and 0 at the origin."""
    self, other = beside(self, grad), beside(other, grad)
    if recording():
        radius = squared_radius(self, other)
        return (grad * other / radius if mask[0] else None,
                grad * -self / radius if mask[1] else None)
    square = other * other
    size = self * self + square
    inverse = size.reciprocal().masked_fill(size == 0, 0)
    return (grad * other * inverse if mask[0] else None,
            grad * -self * inverse if mask[1] else None)


def logaddexp_backward(grad, x, y):
    """e^x / (e^x + e^y), by a quotient."""
    if recording() or x.is_complex() or y.is_complex():
        return grad * share_of_sum(x, y).conj()
    x, y = beside(x, grad), beside(y, grad)
    return grad / (1 + (y - x).exp())


def copysign_backward(grad, self, result):
    """The quotient of both is the sign; 0 at 0."""
    if recording():
        return copysign_pullback(grad, self, result)
    ratio = result / self
    return grad * ratio.masked_fill(self == 0, 0)


def new_zeros_like(grad, shape):
    """Zeros for an input, with all that is known of it."""
    return grad.new_zeros(list(shape), dtype=grad.dtype, layout=STRIDED, device=grad.device)


def stack_backward(grad, count, dim):
    """The slice of each tensor."""
    return [grad.select(dim, i) for i in range(count)]


def trace_backward_printed(grad, shape):
    """The gradient at every place of a diagonal."""
    rows, columns = shape
    zeros = ops.zeros([rows * columns], dtype=grad.dtype, layout=STRIDED, device=grad.device)
    end = min(rows, columns) * (columns + 1)
    places = ops.arange(0, end, columns + 1, dtype=dt.int64, layout=STRIDED, device=grad.device)
    return zeros.index_fill(0, places, grad).view([rows, columns])


def softmax_backward_output(grad, grad_output, output, dim):
    """The derivative of softmax-backward by the softmax."""
    first = grad_output * (output * grad).sum(dim, True)
    inner = (output * grad_output).sum(dim, True)
    second = inner * grad
    return grad_output * grad - second - first


def pool_double_backward(grad, indices, dims):
    """The gradient at the places that a pooling chose."""
    lead = list(indices.shape[: indices.ndim - dims])
    if 0 in indices.shape:
        return grad.new_zeros(indices.shape)
    places = indices.reshape([*lead, -1])
    return grad.reshape([*lead, -1]).gather(-1, places).view(list(indices.shape))


def _numbers(mask, like):
    """A mask as numbers of a tensor's dtype."""
    return ops._to_copy(mask, dtype=like.dtype, layout=STRIDED, device=like.device)


def elu_double_backward(grad, grad_output, alpha, scale, input_scale, is_result, self_or_result):
    """The second derivative of elu."""
    low = _numbers(self_or_result < 0, grad)
    product = grad * grad_output * input_scale
    if is_result:
        return product * low
    return ops.elu_backward(
        product, alpha, scale, input_scale, is_result, self_or_result) * low


def softplus_double_backward(grad, self, beta, threshold):
    """The second derivative of softplus."""
    scaled = self * beta
    low = _numbers(scaled < threshold, grad)
    return ops.sigmoid_backward(grad, scaled.sigmoid()) * low * beta


def logits_loss_backward(grad, self, target, weight, pos_weight, reduction):
    """Cross entropy of logits."""
    if pos_weight is None:
        slope = self.sigmoid() - target
        slope = slope * grad
    else:
        both = pos_weight * target
        slope = (both + 1 - target) * self.sigmoid() - both
        slope = slope * grad
    if weight is not None:
        slope = slope * weight
    return slope / self.numel() if reduction == 1 else slope


def logits_target_backward(grad, self, target, weight, pos_weight, reduction):
    """The same by the target."""
    if pos_weight is None:
        slope = -self
    else:
        slope = ops.log_sigmoid(-self) - pos_weight * ops.log_sigmoid(self)
    slope = slope * grad
    if weight is not None:
        slope = slope * weight
    return slope / target.numel() if reduction == 1 else slope


def as_strided_printed(grad, shape, strides, start, size, stride, offset):
    """Both geometries laid over one buffer, as views of it that are taken as often as PyTorch's."""
    if 0 in size or 0 in shape or may_overlap(size, stride) or may_overlap(shape, strides):
        return as_strided_backward(grad, shape, strides, start, size, stride, offset)
    inner, outer, cover = _both(shape, strides, start, size, stride, offset)
    inner, outer = [*map(list, inner[:2]), inner[2]], [*map(list, outer[:2]), outer[2]]
    buffer = grad.new_zeros([cover])
    part = ops.copy(ops.as_strided(buffer, *outer), grad)
    buffer = ops.as_strided_scatter(buffer, part, *outer)
    if not recording():
        ops.as_strided(buffer, *outer)
        ops.as_strided(buffer, *inner)
    return ops.as_strided(buffer, *inner)


def xlogy_backward(grad, self, other):
    """d x log(y) by x, with 0 where the product is 0 by definition."""
    if recording():
        return xlogy_pullback(grad, self, other)
    out = ops.xlogy(grad, other)
    low = other <= 0.0
    return out.masked_fill((self == 0.0) & low, 0.0)


# factorizations: those of the forward pass serve again


def inverse_backward(grad, inverse):
    """-A^-H g A^-H, from the right."""
    right = grad @ inverse.mH
    return -(inverse.mH @ right)


def cholesky_backward(grad, factor, upper):
    """The triangle first, then its Hermitian part, halved."""
    if upper:
        grad, factor = grad.mH, factor.mH
    lower = (factor.mH @ grad).tril()
    middle = (lower + lower.tril(-1).mH) * 0.5
    inner = solve_tri(factor.mH, middle, upper=True)
    return solve_tri(factor, inner, upper=False, left=False)


def solve_backward(grad, matrix, right_shape, result, packed, pivots, left, mask):
    """A X = B by the factors of A."""
    if grad is None or recording() or is_vector(matrix.shape, right_shape):
        return solve_grads(grad, matrix, right_shape, result, packed, pivots, left, mask)
    inner = ops.linalg_lu_solve(packed, pivots, grad, left=left, adjoint=True)
    outer = None
    if mask[0]:
        outer = -(inner @ result.mH if left else result.mH @ inner)
    return outer, inner if mask[1] else None


def slogdet_backward(grad_sign, grad_log, matrix, sign, packed, pivots):
    """A^-H times the gradient of log |det|, by the factors of A."""
    if recording() or sign.dtype.is_complex or grad_log is None:
        return slogdet_grad(grad_sign, grad_log, matrix, sign, packed, pivots)
    weight = grad_log.unsqueeze(-1).expand(matrix.shape[:-1])
    right = ops.diag_embed(weight)
    return ops.linalg_lu_solve(packed, pivots, right.mH, adjoint=True)


def qr_backward(grad_q, grad_r, q, r, mode, shape):
    """A = Q R for matrices that are not wide."""
    rows, columns = shape[-2:]
    if rows < columns or mode == "complete" and rows > columns or mode == "r" or q.is_complex():
        return qr_grad(grad_q, grad_r, q, r, mode, shape)
    middle = None if grad_r is None else grad_r @ r.mH
    if grad_q is not None:
        inner = q.mH @ grad_q
        middle = -inner if middle is None else middle - inner
    above = middle.triu()
    both = above + above.mH
    inner = ops.diagonal_scatter(both, diagonal_of(both) * 0.5, 0, -2, -1)
    left = q @ inner
    left = left if grad_q is None else grad_q + left
    return solve_tri(r.mH, left, upper=False, left=False)


def eigh_backward(grad_values, grad_vectors, values, vectors, has_vectors):
    """V diag(g) V^H where only eigenvalues are used."""
    if grad_vectors is not None or not has_vectors or values.shape[-1] == 0:
        return eigh_grad(grad_values, grad_vectors, values, vectors, has_vectors)
    other = vectors.mH
    return (vectors * grad_values.unsqueeze(-2)) @ other


def svd_backward(grad_u, grad_s, grad_vh, u, s, vh, full, has_vectors):
    """U diag(g) V^H where only singular values are used."""
    if grad_u is not None or grad_vh is not None or full or not has_vectors:
        return svd_grad(grad_u, grad_s, grad_vh, u, s, vh, full, has_vectors)
    if u.shape[-2] >= vh.shape[-1]:
        return u @ (grad_s.unsqueeze(-1) * vh)
    return (u * grad_s.unsqueeze(-2)) @ vh


def pinv_backward(grad, pinv, matrix):
    """The pseudo-inverse at constant rank."""
    rows, columns = matrix.shape[-2:]
    if rows > columns:
        return pinv_grad(grad, pinv, matrix)
    other, turned = pinv.mH, grad.mH
    inner = turned @ pinv
    first = inner @ other
    second = other @ pinv
    second = second @ (turned - inner @ matrix)
    third = (matrix @ pinv) @ first
    return -(pinv @ inner).mH + first - third + second


# what the formulas below may call, beside what those of the table may
FUNCTIONS = {name: f for name, f in vars().items() if getattr(f, "__module__", "") == __name__}

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


@functools.cache
def _split(text: str) -> tuple[set, tuple]:
    names = text.split()
    return ({n for n in names if not n.endswith("*")},
            tuple(n[:-1] for n in names if n.endswith("*")))


def matches(name: str, text: str) -> bool:
    """Is a name among those in a text, some of which end with `*`?"""
    whole, families = _split(text)
    return name in whole or name.startswith(families)


def formulas_of(ov: OpOverload) -> dict[str, str]:
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


@functools.cache
def rule(ov: OpOverload) -> Rule | None:
    """The derivative of an operator, by PyTorch's formulas where these differ."""
    own = formulas_of(ov)
    if own:
        return Rule(ov, own, FUNCTIONS)
    return None if ov.is_composite else ov.rule
