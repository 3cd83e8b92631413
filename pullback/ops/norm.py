"""The softmax family and normalisation: table entries and composites.

Kernels work on raw arrays and widen half precision to float32 themselves, because the statistics of
a row need it.  The decompositions write everything as reductions and pointwise operators, which is
what the native code generator fuses.  Longer formulas are in `formulas/norm.py`; losses are in
`ops/loss.py`.
"""

from __future__ import annotations

import math

from ..array import dtype as dt
from ..array.dims import numel, wrap_dim
from ..array.elementary import exp, exp_into, log
from ..array.xp import maxima, sums
from ..core.op import Composite, Op
from ..errors import DTypeError, ShapeError
from ..formulas.norm import layer_norm_backward_parts, of_rows, trailing_dims
from ..table.packets import ops
from .batching import of_overload
from .kinds import ComplexFree, Free, Keeping
from .matmul import is_half

FEW = 4096  # elements up to which products are made, not summed on the way

def widened(xp, array):
    """A half-precision array as float32; others unchanged."""
    return array.astype(xp.float32) if is_half(array) else array


def narrowed(array, dtype):
    """`array` in a NumPy dtype, without a copy if it has it."""
    return array if array.dtype == dtype else array.astype(dtype)


def _shifted(dim: int, ndim: int) -> int:
    """A dim of the logical tensor counted in the one with a batch dim in front."""
    return wrap_dim(dim, ndim - 1) + 1


def _rows(tensor):
    """A batched scalar gets a dim, so that there is something to normalise."""
    return tensor.unsqueeze(1) if tensor.ndim == 1 else tensor


# ---------------------------------------------------------------------------------------------
# softmax


def _softmax_kernel(xp, self, dim, safe=False):
    x = widened(xp, self)
    if x.size == 0:
        return xp.zeros_like(x)
    if x.ndim == 0:
        return _softmax_kernel(xp, x.reshape(1), 0, safe).reshape(())
    top = maxima(xp, x, dim)
    if safe:
        top = xp.where(top == -math.inf, 0, top)
    out = x - top
    exp_into(xp, out)
    total = sums(xp, out, dim)
    if safe:
        total = xp.where(total == 0, 1, total)
    out /= total
    return out


def _log_softmax_kernel(xp, self, dim):
    x = widened(xp, self)
    if x.size == 0:
        return xp.zeros_like(x)
    if x.ndim == 0:
        return x - x
    out = x - maxima(xp, x, dim)
    out -= log(xp, sums(xp, exp(xp, out), dim))
    return out


def _composed_softmax(x, dim):
    """The softmax of some elements in terms of other operators."""
    out = (x - x.amax(dim, True)).exp()
    return out / out.sum(dim, True)


def _composed_log_softmax(x, dim):
    """Its logarithm, in the same way."""
    out = x - x.amax(dim, True)
    return out - out.exp().sum(dim, True).log()


def _needs_float(name: str, self) -> None:
    if self.dtype.kind in "biuc":
        raise NotImplementedError(f'"{name}" not implemented for \'{self.dtype.name}\': '
                                  "convert with .float() or pass dtype=")


def softmax_rules(name: str) -> tuple[dict, str]:
    """Formulas of both modes for a softmax or its logarithm, from the result."""
    return ({"self": f"_{name}_backward_data(grad, result, dim, self.dtype)"},
            f"{name}_push(self_t, result, dim)")


class Softmax(Keeping):
    """The softmax along one dim, or its logarithm: `kernel` computes it in wide numbers, `composed`
    from other operators, and `refused_as` is what errors call it."""

    core = True
    shape = "self.shape"
    dtype = "dt.float32 if half_to_float else self.dtype"
    cost = "reduce"
    method = False
    refused_as = kernel = composed = None

    @classmethod
    def run(cls, xp, self, dim, half_to_float):
        dim = wrap_dim(dim, self.ndim)
        _needs_float(cls.refused_as, self)
        out = cls.kernel(xp, self, dim)
        return out if half_to_float else narrowed(out, self.dtype)

    @classmethod
    def decomp(cls, self, dim, half_to_float):
        x = self.to(dt.float32) if self.dtype.itemsize == 2 else self
        out = cls.composed(x, dim) if x.numel() else x.exp()
        return out if half_to_float else out.to(self.dtype)

    @of_overload
    def batch(ov, n, batched, self, dim, half_to_float):
        out = ov.call(_rows(self), _shifted(dim, self.ndim), half_to_float)
        return out.reshape(self.shape)

    def samples(s):
        yield s(s.real(3, 4), 1, False)
        yield s(s.real(3, 4), 0, False)
        yield s(s.real(2, 3, 4), -2, False)
        yield s(s.real(4, 3).T, -1, False)
        yield s(s.real(), 0, False)
        yield s(s.real(0, 3), 1, False)
        yield s(s.real(3, 0), 1, False)


class SoftmaxBackward(Op):
    """Gradient of a softmax, from its result."""

    same_dtype = ("grad_output", "output")
    promote = "keep"
    shape = "output.shape"
    dtype = "input_dtype"
    cost = "reduce"
    method = False

    @of_overload
    def batch(ov, n, batched, grad_output, output, dim, input_dtype):
        shape = (grad_output if batched[0] else output).shape
        g, y = (_rows(t) if b else (t if t.ndim else t.unsqueeze(0)).unsqueeze(0)
                for t, b in zip((grad_output, output), batched[:2], strict=True))
        dim = _shifted(dim, len(shape))
        g, y = g.expand([n, *g.shape[1:]]), y.expand([n, *y.shape[1:]])
        return ov.call(g, y, dim, input_dtype).reshape(shape)

    def samples(s):
        dtype = s.real(1).dtype
        yield s(s.real(3, 4), s.real(3, 4), 1, dtype)
        yield s(s.real(2, 3, 4), s.real(2, 3, 4), -2, dtype)
        yield s(s.real(), s.real(), 0, dtype)
        yield s(s.real(0, 3), s.real(0, 3), 1, dtype)


class _softmax(Softmax):
    """Exponentials divided by their sum along one dim."""

    schema = "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor"
    native = "softmax"
    lower = "composite.softmax(False)"
    refused_as = "softmax_kernel_impl"
    kernel, composed = _softmax_kernel, _composed_softmax
    grad, push = softmax_rules("softmax")


class _log_softmax(Softmax):
    """Logarithm of the softmax along one dim, without leaving log space."""

    schema = "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor"
    native = "log_softmax"
    lower = "composite.softmax(True)"
    refused_as = "log_softmax_lastdim_kernel_impl"
    kernel, composed = _log_softmax_kernel, _composed_log_softmax
    grad, push = softmax_rules("log_softmax")


class _softmax_backward_data(SoftmaxBackward):
    """Gradient of the softmax: y * (g - sum(g * y))."""

    schema = ("_softmax_backward_data(Tensor grad_output, Tensor output, int dim,"
              " ScalarType input_dtype) -> Tensor")
    native = "softmax_backward"
    lower = "composite.softmax_backward(False)"
    grad = {
        "grad_output": "_softmax_backward_data(grad, output, dim, grad_output.dtype)",
        "output": "softmax_output_grad(grad, grad_output, output, dim)",
    }
    push = ("_softmax_backward_data(grad_output_t, output_p, dim, input_dtype)"
            " + softmax_backward_push(grad_output_p, output_p, output_t, dim)")

    def run(xp, grad_output, output, dim, input_dtype):
        dim = wrap_dim(dim, output.ndim)
        check_gradient("softmax", grad_output, output)
        g, y = widened(xp, grad_output), widened(xp, output)
        out = xp.multiply(g, y)
        if out.ndim:
            out = out - y * sums(xp, out, dim)
        else:
            out = out - y * out
        return narrowed(out, input_dtype.np)

    def decomp(grad_output, output, dim, input_dtype):
        out = grad_output * output
        return (out - output * out.sum(dim, True)).to(input_dtype)


class _log_softmax_backward_data(SoftmaxBackward):
    """Gradient of the log-softmax: g - exp(y) * sum(g)."""

    schema = ("_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim,"
              " ScalarType input_dtype) -> Tensor")
    native = "log_softmax_backward"
    lower = "composite.softmax_backward(True)"
    grad = {
        "grad_output": "grad - (grad * output.exp()).sum(dim, True)",
        "output": "-grad_output.sum(dim, True) * output.exp() * grad",
    }
    push = ("_log_softmax_backward_data(grad_output_t, output_p, dim, input_dtype)"
            " - grad_output_p.sum(dim, True) * output_p.exp() * output_t")

    def run(xp, grad_output, output, dim, input_dtype):
        dim = wrap_dim(dim, output.ndim)
        check_gradient("softmax", grad_output, output)
        g, y = widened(xp, grad_output), widened(xp, output)
        out = exp(xp, y)
        out *= sums(xp, g, dim) if g.ndim else g
        return narrowed(xp.subtract(g, out), input_dtype.np)

    def decomp(grad_output, output, dim, input_dtype):
        return (grad_output - output.exp() * grad_output.sum(dim, True)).to(input_dtype)


class _safe_softmax(Keeping):
    """Softmax whose rows of nothing but -inf give zeros instead of NaN."""

    schema = "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"
    grad, push = softmax_rules("softmax")
    shape = "self.shape"
    cost = "reduce"
    method = function = False

    def dtype(self, dim, dtype):
        return dtype or self.dtype

    def run(xp, self, dim, dtype):
        dim = wrap_dim(dim, self.ndim)
        wanted = self.dtype if dtype is None else dtype.np
        x = self if dtype is None else narrowed(self, wanted)
        _needs_float("softmax_kernel_impl", x)
        return narrowed(_softmax_kernel(xp, x, dim, safe=True), wanted)

    def batch(n, batched, self, dim, dtype):
        out = ops._safe_softmax(_rows(self), _shifted(dim, self.ndim), dtype)
        return out.reshape(self.shape)

    def decomp(self, dim, dtype):
        x = self if dtype is None else self.to(dtype)
        if x.numel() == 0:
            return x.exp()
        empty = (x == -math.inf).all(dim, keepdim=True)
        return ops.where(empty, 0.0, _softmax.decomp(x, dim, False))

    def samples(s):
        yield s(s.real(3, 4), 1)
        yield s(s.real(2, 3, 4), -2)
        yield s(s.real(), 0)
        yield s(s.real(0, 3), 1)


def softmax_mask(mask, shape, mask_type):
    """A mask of one of three kinds, as a shape that broadcasts against the scores.

    Kind 0 is (L, L) for all, kind 1 is (B, L) for the keys of each example, kind 2 is as the input.
    """
    if mask_type == 0 and len(mask) == 2:
        return (1, 1, *mask)
    if mask_type == 1 and len(mask) == 2:
        return (mask[0], 1, 1, mask[1])
    if tuple(mask) != tuple(shape):
        raise ShapeError(f"For mask_type == {2 if mask_type is None else mask_type} mask shape "
                         "should match input shape")
    return tuple(mask)


def _masked_rows(call, n, tensors, batched, shape, dim, *more):
    """A masked softmax, or its gradient, of n examples; what is masked meets no other rule."""
    given = [t if b else t.unsqueeze(0) for t, b in zip(tensors, batched)]
    if not shape:
        given = [t.unsqueeze(-1) for t in given]
    given = [t.expand([n, *(shape or [1])]) for t in given]
    dim = wrap_dim(-1 if dim is None else dim, len(shape)) + 1
    return call(*given, dim, *more).reshape([n, *shape])


class _masked_softmax(Op):
    """Softmax over the elements where the mask is false; the others are zero."""

    schema = ("_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None)"
              " -> Tensor")
    grad = {"self": ("_masked_softmax_backward(grad, result, full_softmax_mask(mask, result.shape,"
                     " mask_type), dim)")}
    push = ("_masked_softmax_backward(self_t, result, full_softmax_mask(mask, result.shape,"
            " mask_type), dim)")
    nondiff = ("mask",)
    shape = "self.shape"
    cost = "reduce"
    method = False

    def run(xp, self, mask, dim, mask_type):
        if mask.dtype != bool:
            raise DTypeError("Mask should be a boolean tensor")
        dim = wrap_dim(-1 if dim is None else dim, self.ndim)
        _needs_float("masked_softmax", self)
        mask = mask.reshape(softmax_mask(mask.shape, self.shape, mask_type))
        return _softmax_kernel(xp, xp.where(mask, -math.inf, self), dim)

    def batch(n, batched, self, mask, dim, mask_type):
        shape = self.shape[1:] if batched[0] else self.shape
        own = mask.shape[1:] if batched[1] else mask.shape
        own = softmax_mask(own, shape, mask_type)
        mask = mask.reshape([n, *own] if batched[1] else own)
        return _masked_rows(ops._masked_softmax, n, (self, mask), (batched[0], batched[1]), shape,
                            dim, 2)

    def decomp(self, mask, dim=None, mask_type=None):
        mask = mask.reshape(softmax_mask(mask.shape, self.shape, mask_type))
        dim = -1 if dim is None else dim
        return _softmax.decomp(self.masked_fill(mask, -math.inf), dim, False)

    def samples(s):
        mask = s.real(2, 3, 4, 4) > 0.7
        yield s(s.real(2, 3, 4, 4), mask, 3, 2)
        yield s(s.real(2, 3, 4, 4), mask[0, 0], -1, 0)
        yield s(s.real(2, 3, 4, 4), mask[:, 0, 0], 3, 1)
        yield s(s.real(3, 4), mask[0, :, 0])


class _masked_softmax_backward(Op):
    """Gradient of the masked softmax, zero where the mask is true."""

    schema = ("_masked_softmax_backward(Tensor grad_output, Tensor output, Tensor mask,"
              " int? dim=None) -> Tensor")
    same_dtype = ("grad_output", "output")
    grad = {
        "grad_output": "_masked_softmax_backward(grad, output, mask, dim)",
        "output": "masked_softmax_output_grad(grad, grad_output, output, mask, dim)",
    }
    push = ("_masked_softmax_backward(grad_output_t, output_p, mask, dim)"
            " + masked_softmax_backward_push(grad_output_p, output_p, output_t, mask, dim)")
    nondiff = ("mask",)
    shape = "output.shape"
    cost = "reduce"
    method = function = False

    def run(xp, grad_output, output, mask, dim):
        dim = wrap_dim(-1 if dim is None else dim, output.ndim)
        if not grad_output.shape == output.shape == mask.shape:
            raise ShapeError("_masked_softmax_backward wants a gradient, an output and a mask of "
                             f"one shape, got {list(grad_output.shape)}, {list(output.shape)} and "
                             f"{list(mask.shape)}")
        out = xp.where(mask, 0, grad_output * output)
        return xp.where(mask, 0, out - output * out.sum(axis=dim, keepdims=True))

    def batch(n, batched, grad_output, output, mask, dim):
        shape = output.shape[1:] if batched[1] else output.shape
        return _masked_rows(ops._masked_softmax_backward, n, (grad_output, output, mask),
                            batched, shape, dim)

    def decomp(grad_output, output, mask, dim=None):
        dim = -1 if dim is None else dim
        out = (grad_output * output).masked_fill(mask, 0)
        return (out - output * out.sum(dim, True)).masked_fill(mask, 0)

    def samples(s):
        mask = s.real(2, 3, 4) > 0.7
        yield s(s.real(2, 3, 4), s.real(2, 3, 4), mask, 1)
        yield s(s.real(2, 3, 4), s.real(2, 3, 4), mask)


class SoftmaxOf(Composite):
    """Passes the tensor on to the kernel that `kernel` names, in another dtype if one is given."""

    kernel = ""

    @classmethod
    def compose(cls, self, dim, dtype):
        if dtype is not None and dtype is not self.dtype:
            self = self.to(dtype)
        return getattr(ops, cls.kernel)(self, dim, False)

    samples = lambda s: [s(s.real(3, 4), 1), s(s.real(2, 3, 4), dim=-2), s(s.real(), 0)]


class softmax_int(SoftmaxOf):
    """Exponentials divided by their sum along `dim`, optionally in another dtype."""

    schema = "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"
    lower = "composite.softmax(False)"
    out = ("exact",)
    kernel = "_softmax"


class log_softmax_int(SoftmaxOf):
    """Logarithm of the softmax along `dim`, optionally in another dtype."""

    schema = "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"
    lower = "composite.softmax(True)"
    out = ("exact",)
    kernel = "_log_softmax"


class special_softmax(SoftmaxOf):
    """The same as `softmax`."""

    schema = "special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"
    namespace = "special"
    method = function = False
    kernel = "_softmax"


class special_log_softmax(SoftmaxOf):
    """The same as `log_softmax`."""

    schema = "special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor"
    namespace = "special"
    method = function = False
    kernel = "_log_softmax"


# ---------------------------------------------------------------------------------------------
# Layer normalisation


def check_normalized(name, input, normalized_shape, *params):
    """`normalized_shape` must be the tail of the input's shape; parameters must have it."""
    tail = tuple(normalized_shape)
    if not tail:
        raise ShapeError(f"{name}: expected normalized_shape to be at least 1-dimensional, got []")
    for label, param in params:
        if param is not None and tuple(param.shape) != tail:
            raise ShapeError(f"{name}: expected {label} to be of same shape as normalized_shape, "
                             f"but got {label} of shape {list(param.shape)} and normalized_shape = "
                             f"{list(tail)}")
    if tuple(input.shape[-len(tail):]) != tail:
        raise ShapeError(f"{name}: given normalized_shape={list(tail)}, expected input with shape "
                         f"[*, {', '.join(map(str, tail))}], but got input of size"
                         f"{list(input.shape)}")


def check_gradient(name, grad, like):
    """A gradient must have the shape of what it is the gradient of."""
    if tuple(grad.shape) != tuple(like.shape):
        raise ShapeError(f"{name}: expected a gradient of shape {list(like.shape)}, got "
                         f"{list(grad.shape)}")


def _dots(xp, a, b):
    """Sums of products along the rows of two matrices, in a column."""
    return sums(xp, a * b, 1) if a.size < FEW else xp.einsum("ij,ij->i", a, b)[:, None]


def statistics_shape(shape, normalized_shape):
    """Shape of the statistics of rows: the normalised dims have size 1."""
    lead = len(shape) - len(normalized_shape)
    return tuple(shape[:lead]) + (1,) * len(normalized_shape)


class Normalization(Keeping):
    """Values with zero mean and unit variance, scaled and shifted; also their statistics."""

    statistics = True
    same_dtype = ("input",)
    or_float32 = ("weight", "bias")
    cost = "reduce"
    method = False


class native_layer_norm(Normalization):
    """Rows with zero mean and unit variance, scaled and shifted; also mean and 1/deviation."""

    schema = ("native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight,"
              " Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)")
    native = "layer_norm"
    lower = "composite.layer_norm"
    core = True
    grad = {"input, weight, bias": (
        "layer_norm_grads(grads, input, normalized_shape, result1, result2, weight, bias,"
        " grad_input_mask, native_layer_norm_backward)")}
    push = {"result0, result1, result2": (
        "layer_norm_push(input_p, input_t, weight_p, weight_t, bias_t, result1, result2,"
        " normalized_shape)")}

    def run(xp, input, normalized_shape, weight, bias, eps):
        check_normalized("layer_norm", input, normalized_shape, ("weight", weight), ("bias", bias))
        _needs_float("LayerNormKernelImpl", input)
        shape, count = input.shape, numel(normalized_shape)
        x = widened(xp, input).reshape(-1, count) if input.size else xp.zeros((0, max(count, 1)))
        mean = sums(xp, x, 1)
        mean /= max(count, 1)
        out = x - mean
        rstd = _dots(xp, out, out)
        rstd /= max(count, 1)
        rstd += eps
        xp.reciprocal(xp.sqrt(rstd, out=rstd), out=rstd)
        out *= rstd
        if weight is not None:
            out *= widened(xp, weight).reshape(-1)
        if bias is not None:
            out += widened(xp, bias).reshape(-1)
        stats = statistics_shape(shape, normalized_shape)
        if not input.size:  # rows without elements have no statistics
            empty = xp.full(stats, math.nan, dtype=input.dtype)
            return xp.zeros(shape, dtype=input.dtype), empty, empty.copy()
        return (narrowed(out, input.dtype).reshape(shape),
                narrowed(mean, input.dtype).reshape(stats),
                narrowed(rstd, input.dtype).reshape(stats))

    def shape(input, normalized_shape, weight, bias, eps):
        check_normalized("layer_norm", input, normalized_shape, ("weight", weight), ("bias", bias))
        stats = statistics_shape(input.shape, normalized_shape)
        return [tuple(input.shape), stats, stats]

    def dtype(input, normalized_shape, weight, bias, eps):
        return [input.dtype] * 3

    def batch(n, batched, input, normalized_shape, weight, bias, eps):
        # parameters that differ per example do not fit the fused operator: apply them after it
        rank = len(normalized_shape)
        if not batched[0]:
            input = input.unsqueeze(0)
        fused = not (batched[2] or batched[3])
        half = input.dtype.itemsize == 2 and not fused  # rounded once, at the end
        out, mean, rstd = ops.native_layer_norm(
            input.to(dt.float32) if half else input, normalized_shape,
            weight if fused else None, bias if fused else None, eps)
        if not fused:
            for param, own, apply in ((weight, batched[2], ops.mul), (bias, batched[3], ops.add)):
                if param is not None:
                    out = apply(out, _behind_rows(param, own, rank, out.ndim))
        return tuple(t.to(input.dtype).expand([n, *t.shape[1:]]) for t in (out, mean, rstd))

    def decomp(input, normalized_shape, weight, bias, eps):
        check_normalized("layer_norm", input, normalized_shape, ("weight", weight), ("bias", bias))
        dtype = input.dtype
        x = input.to(dt.float32) if dtype.itemsize == 2 else input
        dims = trailing_dims(x.shape, normalized_shape)
        mean = x.mean(dims, True)
        centred = x - mean
        rstd = ((centred * centred).mean(dims, True) + eps).rsqrt()
        out = centred * rstd
        if weight is not None:
            out = out * weight
        if bias is not None:
            out = out + bias
        return out.to(dtype), mean.to(dtype), rstd.to(dtype)

    def samples(s):
        yield s(s.real(3, 4), [4], s.real(4), s.real(4), 1e-5)
        yield s(s.real(2, 3, 4), [3, 4], s.real(3, 4), s.real(3, 4), 1e-3)
        yield s(s.real(2, 3, 4), [4], None, None, 1e-5)
        yield s(s.real(3, 4), [4], s.real(4), None, 1e-5)
        yield s(s.real(3, 4), [4], None, s.real(4), 1e-5)
        yield s(s.real(4, 3).T, [4], s.real(4), s.real(4), 1e-5)
        yield s(s.real(4), [4], s.real(4), s.real(4), 1e-5)
        yield s(s.real(0, 4), [4], s.real(4), s.real(4), 1e-5)


def _behind_rows(param, batched, rank, ndim):
    """A per-example parameter with dims inserted between the batch dim and the normalised ones."""
    if not batched:
        return param
    return param.reshape(param.shape[:1] + (1,) * (ndim - rank - 1) + param.shape[1:])


class native_layer_norm_backward(Keeping):
    """Gradients of layer normalisation for input, weight and bias, as the mask asks."""

    schema = ("native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape,"
              " Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask)"
              " -> (Tensor, Tensor, Tensor)")
    native = "layer_norm_backward"
    lower = "composite.layer_norm_backward"
    core = "apart"
    same_dtype = ("grad_out", "input")
    or_float32 = ("mean", "rstd", "weight", "bias")
    grad = {"grad_out, input, mean, rstd, weight": (
        "layer_norm_double_grads(grads, grad_out, input, normalized_shape, mean, rstd, weight)")}
    nondiff = ("bias",)
    push = {"result0, result1, result2": (
        "layer_norm_backward_push(grad_out_p, grad_out_t, input_p, input_t, mean_p, mean_t, rstd_p,"
        " rstd_t, weight_p, weight_t, normalized_shape, output_mask)")}
    cost = "reduce"
    method = function = False

    def run(xp, grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
        check_normalized("layer_norm", input, normalized_shape, ("weight", weight), ("bias", bias))
        check_gradient("layer_norm", grad_out, input)
        count = numel(normalized_shape)
        if not input.size:
            flat = (0, count)
        else:
            flat = (-1, count)
        g = widened(xp, grad_out).reshape(flat)
        rows = numel(input.shape[: input.ndim - len(normalized_shape)])
        for label, statistic in (("mean", mean), ("rstd", rstd)):
            if statistic.size != rows:
                raise ShapeError(f"layer_norm: expected {label} of {rows} rows, got shape "
                                 f"{list(statistic.shape)}")
        normal = widened(xp, input).reshape(flat) - widened(xp, mean).reshape(-1, 1)
        scale = widened(xp, rstd).reshape(-1, 1)
        normal *= scale
        dx = dw = db = None
        if output_mask[0]:
            u = g if weight is None else g * widened(xp, weight).reshape(-1)
            dx = u - sums(xp, u, 1) / max(count, 1)
            dx -= normal * (_dots(xp, u, normal) / max(count, 1))
            dx *= scale
            dx = narrowed(dx, input.dtype).reshape(input.shape)
        if output_mask[1] and weight is not None:
            dw = sums(xp, g * normal, 0) if g.size < FEW else xp.einsum("ij,ij->j", g, normal)
            dw = narrowed(dw, weight.dtype).reshape(weight.shape)
        if output_mask[2]:
            dtype = input.dtype if bias is None else bias.dtype
            db = narrowed(sums(xp, g, 0), dtype).reshape(tuple(normalized_shape))
        return dx, dw, db

    def shape(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
        tail = tuple(normalized_shape)
        return [tuple(input.shape) if output_mask[0] else None,
                tail if output_mask[1] and weight is not None else None,
                tail if output_mask[2] else None]

    def dtype(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
        return [t.dtype for t in (input, input if weight is None else weight,
                                  input if bias is None else bias)]

    def batch(n, batched, grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
        tensors = [t if b or t is None else t.unsqueeze(0) for t, b in
                   zip((grad_out, input, mean, rstd), (*batched[:2], *batched[3:5]), strict=True)]
        rank = len(normalized_shape)
        g, x, mean, rstd = tensors
        if weight is not None:
            weight = _behind_rows(weight, batched[5], rank, x.ndim)
        normal = (x - mean) * rstd
        dims = trailing_dims(x.shape, normalized_shape)
        rows = dims[0] - 1  # dims between the batch dim and the normalised ones
        dx = dw = db = None
        if output_mask[0]:
            u = g if weight is None else g * weight
            dx = rstd * (u - u.mean(dims, True) - normal * (u * normal).mean(dims, True))
        lead = list(range(1, 1 + rows))
        if output_mask[1] and weight is not None:
            dw = (g * normal).sum(lead) if rows else g * normal
        if output_mask[2]:
            db = g.sum(lead) if rows else g
        return tuple(None if t is None else t.expand([n, *t.shape[1:]]) for t in (dx, dw, db))

    def decomp(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
        mean, rstd = (of_rows(t, input.shape, normalized_shape) for t in (mean, rstd))
        return layer_norm_backward_parts(grad_out, input, normalized_shape, mean, rstd, weight,
                                         output_mask)

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 4), [4], s.real(3, 1), s.real(3, 1), s.real(4), s.real(4),
                [True, True, True])
        yield s(s.real(2, 3, 4), s.real(2, 3, 4), [3, 4], s.real(2, 1, 1), s.real(2, 1, 1),
                s.real(3, 4), s.real(3, 4), [True, True, True])
        yield s(s.real(3, 4), s.real(3, 4), [4], s.real(3, 1), s.real(3, 1), None, None,
                [True, False, False])
        yield s(s.real(4), s.real(4), [4], s.real(1), s.real(1), s.real(4), s.real(4),
                [True, True, True])


class layer_norm(Free):
    """Rows with zero mean and unit variance, scaled by `weight` and shifted by `bias`."""

    schema = ("layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None,"
              " Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor")

    def compose(input, normalized_shape, weight, bias, eps, cudnn_enable):
        return ops.native_layer_norm(input, normalized_shape, weight, bias, eps)[0]

    samples = lambda s: [s(s.real(3, 4), [4], s.real(4), s.real(4)), s(s.real(2, 3, 4), [3, 4])]


class rms_norm(ComplexFree):
    """Rows divided by their root mean square, scaled by `weight`."""

    schema = ("rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None,"
              " float? eps=None) -> Tensor")

    def compose(input, normalized_shape, weight, eps):
        check_normalized("rms_norm", input, normalized_shape, ("weight", weight))
        dtype = input.dtype
        x = input.to(dt.float32) if dtype.itemsize == 2 else input
        if eps is None:
            eps = dt.finfo(x.dtype).eps
        dims = trailing_dims(x.shape, normalized_shape)
        out = x * ((x * x).mean(dims, True) + eps).rsqrt()
        if weight is not None:
            out = out * weight
        return out if out.dtype is dtype else out.to(dtype)

    def samples(s):
        yield s(s.real(3, 4), [4], s.real(4))
        yield s(s.real(2, 3, 4), [3, 4])
        yield s(s.real(2, 4), [4], s.real(4), 1e-3)
