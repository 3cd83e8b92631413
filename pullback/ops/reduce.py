"""Operators that take elements together: sums, means, products, norms, running sums.

`dim` may be None or empty (all dims), negative, or name the single "dim" of a 0-d tensor.  Overloads
without `dim` come beside those with it because graphs name them apart.  Formulas are in
`formulas/reduce.py`.  Read next: `extremes.py`, `logical_reductions.py`, `shape.py`.
"""

from __future__ import annotations

import math

from ..array import dtype as dt
from ..array import elementary
from ..array.dims import wrap_dim, wrap_dims
from ..array.xp import sums
from ..core.op import Composite, Op, Reduction
from ..errors import DTypeError
from ..table.packets import ops
from .batching import dims
from .kinds import ComplexComposite
from .pointwise import title

# ---------------------------------------------------------------------------------------------
# What the entries share


def reduced(shape, dim, keepdim: bool, *, empty_is_all: bool = True) -> tuple[int, ...]:
    """The shape that a reduction of `dim` leaves."""
    gone = wrap_dims(dim, len(shape), empty_is_all=empty_is_all)
    if keepdim:
        return tuple(1 if d in gone else n for d, n in enumerate(shape))
    return tuple(n for d, n in enumerate(shape) if d not in gone)


def sum_dtype(self, dtype):
    """Result dtype of sums and products: integers and bools accumulate in int64."""
    if dtype is not None:
        return dtype
    return self.dtype if self.dtype.is_inexact else dt.int64


def accumulated(xp, x, dtype):
    """An array in the dtype in which its elements are summed or multiplied."""
    if dtype is None:
        return x.astype(xp.int64) if x.dtype.kind in "biu" else x
    x = x.astype(dtype.np)
    return x.astype(xp.float32) if dtype in (dt.float16, dt.bfloat16) else x


def finished(xp, out, dtype):
    """A result in the dtype that the caller asked for."""
    return out if dtype is None else xp.asarray(out).astype(dtype.np)


def real_square(x):
    """|x|^2 of each element."""
    return x.real * x.real + x.imag * x.imag if x.dtype.kind == "c" else x * x


def check_size(name: str, shape, dim) -> None:
    """A reduction without identity refuses to reduce nothing."""
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        if 0 in shape:
            raise RuntimeError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify "
                "the reduction dim with the 'dim' argument.")
        return
    for d in wrap_dims(dim, len(shape)):
        if shape[d] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")


def rows(n: int, self):
    """A batched tensor as a matrix with one row for each example."""
    return self.reshape((n, math.prod(self.shape[1:])))


def one_dim(n: int, self, dim):
    """(tensor, its dim) that reduce one logical dim of a batched tensor, or all of them if None."""
    if dim is None or self.ndim == 1:
        return rows(n, self), 1
    return self, wrap_dim(dim, self.ndim - 1) + 1


def values_of(low: float = -2.0, high: float = 2.0):
    """Samples of a full reduction."""

    def samples(s):
        yield s(s.real(3, 4, low=low, high=high))
        yield s(s.real(4, 3, low=low, high=high).T)
        yield s(s.real(low=low, high=high))

    return samples


def with_dim(low: float = -2.0, high: float = 2.0, many: bool = True, empty: bool = True):
    """Samples of a reduction with `dim` and `keepdim`."""

    def samples(s):
        yield s(s.real(3, 4, low=low, high=high), 1)
        yield s(s.real(3, 4, low=low, high=high), -2, True)
        yield s(s.real(4, 3, low=low, high=high).T, dim=0, keepdim=True)
        yield s(s.real(low=low, high=high), 0)
        yield s(s.real(0, 3, low=low, high=high), 1)
        if empty:
            yield s(s.real(0, 3, low=low, high=high), 0)
        if many:
            yield s(s.real(2, 3, 2, low=low, high=high), [0, -1])
            yield s(s.real(2, 3, 2, low=low, high=high), [1, 2], True)

    return samples


def spaced(s, *shape):
    """Distinct values with gaps between them, in mixed order, so that extremes are not close calls."""
    count = math.prod(shape)
    return s.values([(5 * k + 2) % count * 0.3 - 1.0 for k in range(count)]).reshape(shape)


def extremes(s):
    """Samples of an operator that finds extremes along one dim."""
    yield s(spaced(s, 3, 4), 1)
    yield s(spaced(s, 3, 4), -2, True)
    yield s(spaced(s, 4, 3).T, dim=0, keepdim=True)
    yield s(s.real(), 0)
    yield s(s.real(0, 3), 1)


def extremes_of_all(s):
    """Samples of an operator that finds the extreme of all elements."""
    yield s(spaced(s, 3, 4))
    yield s(spaced(s, 4, 3).T)
    yield s(s.real())


# ---------------------------------------------------------------------------------------------
# Sums and means


def _sum(xp, self, dim, keepdim, dtype):
    axes = wrap_dims(dim, self.ndim)
    out = sums(xp, accumulated(xp, self, dtype), axes, keepdim)
    return finished(xp, out, dtype)


class sum_default(Reduction):
    """Sum of all elements."""
    schema = "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor"
    native = "sum"
    lower = "shape.reduction('sum')"
    run = lambda xp, self, dtype: _sum(xp, self, None, False, dtype)
    grad = {"self": "grad.expand(self.shape)"}
    linear = ("self",)
    shape = "()"
    dtype = sum_dtype
    complex = True

    def batch(n, batched, self, dtype):
        return rows(n, self).sum(1, dtype=dtype)

    def decomp(self, dtype=None):
        return ops.sum(self, [], dtype=dtype)

    def samples(s):
        yield from values_of()(s)
        yield s(s.real(0, 3))


class sum_dim_IntList(Reduction):
    """Sums over some dims."""
    schema = ("sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, "
              "ScalarType? dtype=None) -> Tensor")
    native = "sum_dims"
    lower = "shape.reduction('sum')"
    core = True
    out = ("any",)
    run = _sum
    grad = {"self": "spread(grad, self.shape, dim, keepdim)"}
    linear = ("self",)
    shape = lambda self, dim, keepdim, dtype: reduced(self.shape, dim, keepdim)
    dtype = lambda self, dim, keepdim, dtype: sum_dtype(self, dtype)
    batch = dims("dim")
    complex = True

    def samples(s):
        yield from with_dim()(s)
        yield s(s.real(3, 4), None)
        yield s(s.real(3, 4), [])


class nansum(Reduction):
    """Sums over some dims in which NaN counts as 0."""
    schema = ("nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, "
              "ScalarType? dtype=None) -> Tensor")
    out = ("any",)
    grad = {"self": "spread(grad, self.shape, dim, keepdim) * self.isnan().logical_not()"}
    push = "self_t.masked_fill(self_p.isnan(), 0).sum(dim, keepdim, dtype=dtype)"
    shape = lambda self, dim, keepdim, dtype: reduced(self.shape, dim, keepdim)
    dtype = lambda self, dim, keepdim, dtype: sum_dtype(self, dtype)
    batch = dims("dim")

    def run(xp, self, dim, keepdim, dtype):
        if self.dtype.kind == "c":
            raise DTypeError("nansum does not support complex inputs")
        if self.dtype.kind == "f":
            self = xp.where(xp.isnan(self), xp.asarray(0, dtype=self.dtype), self)
        return _sum(xp, self, dim, keepdim, dtype)

    def decomp(self, dim=None, keepdim=False, dtype=None):
        kept = self.masked_fill(self.isnan(), 0) if self.is_floating_point() else self
        return ops.sum(kept, dim, keepdim, dtype=dtype)

    def samples(s):
        yield from with_dim()(s)
        yield s(s.values([1.0, math.nan, 2.0]))


class sum_to_size(ComplexComposite):
    """Sums until the tensor has the given size, undoing a broadcast."""
    schema = "sum_to_size(Tensor self, SymInt[] size) -> Tensor"

    def compose(self, size):
        shape, size = tuple(self.shape), tuple(size)
        extra = len(shape) - len(size)
        fits = extra >= 0 and all(m in (1, n) for n, m in zip(shape[max(extra, 0):], size))
        if not fits:
            raise RuntimeError(f"size {list(size)} is not expandable to size {list(shape)}.")
        kept = [d for d in range(extra, len(shape)) if size[d - extra] == 1 and shape[d] != 1]
        out = ops.sum(self, kept, True) if kept else self
        return ops.sum(out, list(range(extra))) if extra else out

    def samples(s):
        yield s(s.real(3, 4), (4,))
        yield s(s.real(3, 4), (3, 1))
        yield s(s.real(2, 3, 4), (1, 4))
        yield s(s.real(3, 4), (3, 4))


def _mean(xp, self, dim, keepdim, dtype):
    """Sum divided by count; integers have no mean unless a dtype is given."""
    wrong = dtype if dtype is not None else None if self.dtype.kind in "fc" else self.dtype
    if wrong is not None and (dtype is None or not dtype.is_inexact):
        what = "Input" if dtype is None else "Optional"
        raise DTypeError(
            f"mean(): could not infer output dtype. {what} dtype must be either a floating point "
            f"or complex dtype. Got: {title(wrong)}")
    axes = wrap_dims(dim, self.ndim)
    total = xp.sum(accumulated(xp, self, dtype), axis=axes, keepdims=keepdim)
    return finished(xp, total / math.prod(self.shape[a] for a in axes), dtype)


class mean_default(Reduction):
    """Mean of all elements."""
    schema = "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor"
    native = "mean"
    writing = "dtype_out"
    lower = "shape.mean"
    core = True
    out = ("castable",)
    run = lambda xp, self, dtype: _mean(xp, self, None, False, dtype)
    grad = {"self": "grad.expand(self.shape) / self.numel()"}
    linear = ("self",)
    shape = "()"
    dtype = lambda self, dtype: dtype or self.dtype
    complex = True
    samples = values_of()

    def batch(n, batched, self, dtype):
        return rows(n, self).mean(1, dtype=dtype)

    def decomp(self, dtype=None):
        return ops.sum(self, dtype=dtype) / self.numel()


class mean_dim(Reduction):
    """Means over some dims."""
    schema = ("mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, "
              "ScalarType? dtype=None) -> Tensor")
    native = "mean_dims"
    lower = "shape.mean"
    core = True
    out = ("castable",)
    run = _mean
    grad = {"self": "mean_pullback(grad, self.shape, dim, keepdim)"}
    linear = ("self",)
    shape = lambda self, dim, keepdim, dtype: reduced(self.shape, dim, keepdim)
    dtype = lambda self, dim, keepdim, dtype: dtype or self.dtype
    batch = dims("dim")
    complex = True

    def decomp(self, dim, keepdim=False, dtype=None):
        count = math.prod(self.shape[d] for d in wrap_dims(dim, self.ndim))
        return ops.sum(self, dim, keepdim, dtype=dtype) / count

    def samples(s):
        yield from with_dim(empty=False)(s)
        yield s(s.real(3, 4), None)


# ---------------------------------------------------------------------------------------------
# Variance and standard deviation


def _var(xp, self, dim, correction, keepdim, root=False):
    """(variance or its root, mean); the divisor is the number of elements minus `correction`, but
    not below 0.
    """
    if self.dtype.kind not in "fc":
        raise RuntimeError("std and var only support floating point and complex dtypes")
    var, mean = _moments(xp, self, dim, correction, keepdim)
    real = var.dtype
    if real == xp.float32 and var.size and not (var.min() > _FEW_DIGITS and var.max() < math.inf):
        # squares that single precision does not hold: PyTorch sums in double precision
        wide = self.astype(xp.result_type(self.dtype, xp.float64))
        var, mean = _moments(xp, wide, dim, correction, keepdim)
        mean = mean.astype(self.dtype)
    return (xp.sqrt(var) if root else var).astype(real, copy=False), mean


_FEW_DIGITS = 1e-30  # below it, sums of squares in single precision have lost some


def _moments(xp, self, dim, correction, keepdim):
    axes = wrap_dims(dim, self.ndim)
    count = math.prod(self.shape[a] for a in axes)
    mean = sums(xp, self, axes) / xp.asarray(count, dtype=self.dtype)
    freedom = max(count - (1 if correction is None else correction), 0)
    total = sums(xp, real_square(self - mean), axes, keepdim)
    mean = mean if keepdim else xp.reshape(mean, total.shape)
    return total / xp.asarray(freedom, dtype=total.dtype), mean


def _freedom(self, dim, correction) -> float:
    count = math.prod(self.shape[d] for d in wrap_dims(dim, self.ndim))
    return max(count - (1 if correction is None else correction), 0)


def _var_parts(self, dim, correction, keepdim):
    """(variance, mean) in terms of core operators."""
    mean = self.mean(dim, True)
    offset = self - mean
    square = (offset * offset.conj()).real if self.is_complex() else offset * offset
    total = square.sum(dim, keepdim)
    freedom = _freedom(self, dim, correction)
    var = total / freedom if freedom else total / ops.zeros_like(total)
    return var, mean if keepdim else mean.reshape(total.shape)


def _std_parts(self, dim, correction, keepdim):
    """(standard deviation, mean): the squares have the range of double precision, as the kernel's."""
    wide = dt.promote_types(self.dtype, dt.float64)
    var, mean = _var_parts(self.to(wide), dim, correction, keepdim)
    return var.sqrt().to(self.dtype.to_real()), mean.to(self.dtype)


def _spread_samples(s):
    yield s(s.real(3, 4))
    yield s(s.real(3, 4), 1)
    yield s(s.real(3, 4), -2, keepdim=True)
    yield s(s.real(4, 3).T, 0, correction=0)
    yield s(s.real(2, 3, 2), [0, -1], correction=0.5)
    yield s(s.real(2, 3, 2), correction=2, keepdim=True)
    yield s(s.real(0, 3), 1)


class Spread(Reduction):
    """Variances or standard deviations over some dims; the divisor is the count minus `correction`."""

    out = ("castable",)
    shape = lambda self, dim, correction, keepdim: reduced(self.shape, dim, keepdim)
    dtype = "self.dtype.to_real()"
    batch = dims("dim")
    complex = True
    samples = _spread_samples


class SpreadAndMean(Spread):
    """The same, and means."""

    out = ()
    shape = lambda self, dim, correction, keepdim: [reduced(self.shape, dim, keepdim)] * 2
    dtype = "[self.dtype.to_real(), self.dtype]"
    method = False


class UnbiasedOverDims(Composite):
    """A variant that takes a truth value in place of `correction`."""

    tags = ("reduction",)
    complex = True

    @classmethod
    def compose(cls, self, dim, unbiased=True, keepdim=False):
        spread = getattr(ops, cls.base_name)
        return spread(self, dim, correction=int(unbiased), keepdim=keepdim)

    samples = lambda s: [s(s.real(3, 4), 1, False)]


class UnbiasedOfAll(Composite):
    """The same over all dims."""

    tags = ("reduction",)
    complex = True

    @classmethod
    def compose(cls, self, unbiased=True):
        return getattr(ops, cls.base_name)(self, None, correction=int(unbiased))

    samples = lambda s: [s(s.real(3, 4), False)]


class var_correction(Spread):
    """Variances over some dims; the divisor is the count minus `correction` (1 by default)."""
    schema = ("var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, "
              "bool keepdim=False) -> Tensor")
    native = "variance"
    lower = "shape.var(False)"
    core = True
    run = lambda xp, self, dim, correction, keepdim: _var(xp, self, dim, correction, keepdim)[0]
    grad = {"self": "var_pullback(grad, self, dim, correction, keepdim)"}
    push = "var_push(self_p, self_t, dim, correction, keepdim)"

    def decomp(self, dim=None, correction=None, keepdim=False):
        return _var_parts(self, dim, correction, keepdim)[0]


class var_dim(UnbiasedOverDims):
    """Variances over some dims, unbiased or not."""
    schema = ("var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False)"
              " -> Tensor")
    lower = "shape.var(False)"
    core = "apart"
    samples = lambda s: [s(s.real(3, 4), 1, False), s(s.real(3, 4), 0, True, True)]


class var_default(UnbiasedOfAll):
    """Variance of all elements, unbiased or not."""
    schema = "var(Tensor self, bool unbiased=True) -> Tensor"
    lower = "shape.var(False)"


class std_correction(Spread):
    """Standard deviations over some dims."""
    schema = ("std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, "
              "bool keepdim=False) -> Tensor")
    lower = "shape.var(True)"
    run = lambda xp, self, dim, correction, keepdim: _var(
        xp, self, dim, correction, keepdim, True)[0]
    grad = {"self": "std_pullback(grad, self, result, dim, correction, keepdim)"}
    push = "std_push(self_p, self_t, result, dim, correction, keepdim)"

    def decomp(self, dim=None, correction=None, keepdim=False):
        return _std_parts(self, dim, correction, keepdim)[0]


class std_dim(UnbiasedOverDims):
    """Standard deviations over some dims, unbiased or not."""
    schema = ("std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False)"
              " -> Tensor")
    lower = "shape.var(True)"


class std_default(UnbiasedOfAll):
    """Standard deviation of all elements, unbiased or not."""
    schema = "std(Tensor self, bool unbiased=True) -> Tensor"
    lower = "shape.var(True)"


class var_mean_correction(SpreadAndMean):
    """Variances and means over some dims."""
    schema = ("var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, "
              "bool keepdim=False) -> (Tensor, Tensor)")
    lower = "shape.var_mean"
    run = lambda xp, self, dim, correction, keepdim: _var(xp, self, dim, correction, keepdim)
    grad = {"self": "var_mean_pullback(grads[0], grads[1], self, dim, correction, keepdim)"}
    push = {"result0": "var_push(self_p, self_t, dim, correction, keepdim)",
            "result1": "self_t.mean(dim, keepdim)"}

    def decomp(self, dim=None, correction=None, keepdim=False):
        return _var_parts(self, dim, correction, keepdim)


class var_mean_dim(UnbiasedOverDims):
    """Variances (unbiased or not) and means over some dims."""
    schema = ("var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False)"
              " -> (Tensor, Tensor)")
    lower = "shape.var_mean"
    method = False


class var_mean_default(UnbiasedOfAll):
    """Variance (unbiased or not) and mean of all elements."""
    schema = "var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)"
    lower = "shape.var_mean"
    method = False


class std_mean_correction(SpreadAndMean):
    """Standard deviations and means over some dims."""
    schema = ("std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, "
              "bool keepdim=False) -> (Tensor, Tensor)")
    run = lambda xp, self, dim, correction, keepdim: _var(xp, self, dim, correction, keepdim, True)
    grad = {"self":
            "std_mean_pullback(grads[0], grads[1], self, result0, dim, correction, keepdim)"}
    push = {"result0": "std_push(self_p, self_t, result0, dim, correction, keepdim)",
            "result1": "self_t.mean(dim, keepdim)"}

    def decomp(self, dim=None, correction=None, keepdim=False):
        return _std_parts(self, dim, correction, keepdim)


class std_mean_dim(UnbiasedOverDims):
    """Standard deviations (unbiased or not) and means over some dims."""
    schema = ("std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False)"
              " -> (Tensor, Tensor)")
    method = False


class std_mean_default(UnbiasedOfAll):
    """Standard deviation (unbiased or not) and mean of all elements."""
    schema = "std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)"
    method = False


# ---------------------------------------------------------------------------------------------
# Products


def _prod(xp, self, dim, keepdim, dtype):
    axes = wrap_dims(dim, self.ndim)
    out = xp.prod(accumulated(xp, self, dtype), axis=axes, keepdims=keepdim)
    return finished(xp, out, dtype)


class prod_default(Reduction):
    """Product of all elements."""
    schema = "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor"
    lower = "shape.reduction('prod')"
    autocast = "float32"
    core = True
    out = ("castable",)
    run = lambda xp, self, dtype: _prod(xp, self, None, False, dtype)
    grad = {"self": "prod_pullback(grad, self, None, False)"}
    push = "prod_push(self_p, self_t, None, False)"
    shape = "()"
    dtype = sum_dtype
    complex = True

    def batch(n, batched, self, dtype):
        return rows(n, self).prod(1, dtype=dtype)

    def samples(s):
        yield from values_of()(s)
        yield s(s.values([[1.0, 0.0], [2.0, 3.0]]))
        yield s(s.values([0.0, 2.0, 0.0]))
        yield s(s.real(0, 3))


class prod_dim_int(Reduction):
    """Products along one dim."""
    schema = ("prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None)"
              " -> Tensor")
    lower = "shape.reduction('prod')"
    autocast = "float32"
    core = True
    out = ("any",)
    run = _prod
    grad = {"self": "prod_pullback(grad, self, dim, keepdim)"}
    push = "prod_push(self_p, self_t, dim, keepdim)"
    shape = lambda self, dim, keepdim, dtype: reduced(self.shape, dim, keepdim)
    dtype = lambda self, dim, keepdim, dtype: sum_dtype(self, dtype)
    batch = dims("dim")
    complex = True

    def samples(s):
        yield from with_dim(many=False)(s)
        yield s(s.values([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]), 1)


# ---------------------------------------------------------------------------------------------
# logsumexp and norms


class logsumexp(Reduction):
    """log of the sum of exp over some dims, without overflow."""
    schema = "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor"
    out = ("castable",)
    promote = "float"
    grad = {"self": "logsumexp_pullback(grad, self, result, dim, keepdim)"}
    push = "logsumexp_push(self_p, self_t, result, dim, keepdim)"
    shape = lambda self, dim, keepdim: reduced(self.shape, dim, keepdim)
    batch = dims("dim")
    complex = True
    aliases = ("special_logsumexp",)
    samples = with_dim(empty=False)

    def run(xp, self, dim, keepdim):
        axes = wrap_dims(dim, self.ndim)
        if any(self.shape[a] == 0 for a in axes):  # nothing to take the maximum of
            return elementary.log(xp, xp.sum(elementary.exp(xp, self), axis=axes, keepdims=keepdim))
        top = xp.max(self.real, axis=axes, keepdims=True)
        top = xp.where(xp.isinf(top), xp.asarray(0, dtype=top.dtype), top)
        out = elementary.log(
            xp, xp.sum(elementary.exp(xp, self - top), axis=axes, keepdims=keepdim))
        return out + xp.reshape(top, out.shape)

    def decomp(self, dim, keepdim=False):
        axes = wrap_dims(dim, self.ndim)
        if not self.dtype.is_inexact:
            self = self.to(dt.default())
        if any(self.shape[a] == 0 for a in axes):
            return self.exp().sum(dim, keepdim).log()
        top = ops.amax(self.real if self.is_complex() else self, dim, True)
        top = top.masked_fill(top.isinf(), 0)
        out = (self - top).exp().sum(dim, keepdim).log()
        return out + top.reshape(out.shape)


def _check_norm(self, dtype) -> None:
    if self.dtype.kind not in "fc":
        raise RuntimeError("linalg.vector_norm: Expected a floating point or complex tensor as input. "
                           f"Got {title(self.dtype)}")
    if dtype is None:
        return
    if not dtype.is_inexact:
        raise RuntimeError("linalg.vector_norm: dtype should be floating point or complex, but got "
                           f"{title(dtype)}")
    if dtype.is_complex != (self.dtype.kind == "c"):
        kind = "complex" if self.dtype.kind == "c" else "real"
        raise RuntimeError(f"linalg.vector_norm: dtype should be {kind} for {kind} inputs, but got "
                           f"{title(dtype)}")
    if dtype.itemsize < self.dtype.itemsize and dtype not in (dt.float16, dt.bfloat16):
        raise RuntimeError(f"linalg.vector_norm: the dtype of the input ({title(self.dtype)}) should be "
                           f"convertible without narrowing to the specified dtype ({title(dtype)})")


class linalg_vector_norm(Reduction):
    """p-norms over some dims: (sum |x|^p)^(1/p), the largest |x| for inf, the count for 0."""
    schema = ("linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, "
              "*, ScalarType? dtype=None) -> Tensor")
    native = "norm"
    grad = {"self": "norm_pullback(grad, self, ord, result, dim, keepdim)"}
    push = "norm_push(self_p, self_t, ord, result, dim, keepdim)"
    shape = lambda self, ord, dim, keepdim, dtype: reduced(self.shape, dim, keepdim)
    dtype = lambda self, ord, dim, keepdim, dtype: (dtype or self.dtype).to_real()
    batch = dims("dim")
    complex = True
    method = function = False
    namespace = "linalg"

    def run(xp, self, ord, dim, keepdim, dtype):
        _check_norm(self, dtype)
        axes = wrap_dims(dim, self.ndim)
        if any(self.shape[a] == 0 for a in axes) and (ord < 0 or ord == math.inf):
            raise RuntimeError(f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor "
                               "because the operation does not have an identity")
        x = accumulated(xp, self, dtype)
        where = {"axis": axes, "keepdims": keepdim}
        if ord == 2:
            out = xp.sqrt(xp.sum(real_square(x), **where))
        elif ord == 0:
            out = xp.sum(xp.asarray(x != 0, dtype=x.real.dtype), **where)
        elif ord == 1:
            out = xp.sum(xp.abs(x), **where)
        elif ord == math.inf:
            out = xp.max(xp.abs(x), **where)
        elif ord == -math.inf:
            out = xp.min(xp.abs(x), **where)
        else:
            out = xp.power(xp.sum(xp.power(xp.abs(x), ord), **where), 1 / ord)
        return finished(xp, out, None if dtype is None else dtype.to_real())

    def decomp(self, ord=2, dim=None, keepdim=False, dtype=None):
        x = self if dtype is None else self.to(dtype)
        over = list(wrap_dims(dim, x.ndim))
        if ord == 0:
            return (x != 0).sum(over, keepdim, dtype=x.dtype.to_real())
        size = x.abs()
        if ord == 1:
            return size.sum(over, keepdim)
        if math.isinf(ord):
            return (ops.amax if ord > 0 else ops.amin)(size, over, keepdim)
        half = size.dtype if size.dtype.itemsize == 2 else None  # powers would overflow
        size = size if half is None else size.to(dt.float32)
        if ord == 2:
            out = (size * size).sum(over, keepdim).sqrt()
        else:
            out = size.pow(ord).sum(over, keepdim).pow(1 / ord)
        return out if half is None else out.to(half)

    def samples(s):
        for order in (2, 1, 0, 3, 1.5, 0.5, -1, math.inf, -math.inf):
            yield s(s.real(3, 4), order)
            yield s(s.real(3, 4), order, 1)
        yield s(s.real(4, 3).T, 2, -2, True)
        yield s(s.real(2, 3, 2), 3, [0, -1])
        yield s(s.real(), 2)
        yield s(s.real(0, 3), 2, 0)


class linalg__powsum(ComplexComposite):
    """Sums of |x|^p over some dims: p-norms before the root."""
    schema = ("linalg__powsum(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, "
              "*, ScalarType? dtype=None) -> Tensor")
    tags = ("reduction",)
    method = function = False
    namespace = "linalg"

    def compose(self, ord=2, dim=None, keepdim=False, dtype=None):
        target = dtype or self.dtype
        if not target.is_inexact:
            raise NotImplementedError(f'"powsum_cpu" not implemented for \'{title(target)}\'')
        size = (self if self.dtype.is_inexact else self.to(target)).abs().to(target.to_real())
        terms = size * size if ord == 2 else size.pow(ord)
        return terms.sum(list(wrap_dims(dim, self.ndim)), keepdim)

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.real(4, 3).T, 3, -1, True)
        yield s(s.real(), 1.5)
        yield s(s.real(0, 3), 2, 0)


class norm_fro(ComplexComposite):
    """Norm by name: "fro" is the 2-norm of all elements, "nuc" the sum of singular values."""
    schema = ("norm.str(Tensor self, str? p=\"fro\", int[1]? dim=None, bool keepdim=False, *, "
              "ScalarType? dtype=None) -> Tensor")

    def compose(self, p="fro", dim=None, keepdim=False, dtype=None):
        if p == "nuc":
            x = self if dtype is None else self.to(dtype)
            return ops.linalg_matrix_norm(x, "nuc", [-2, -1] if dim is None else dim, keepdim)
        if p not in ("fro", None):
            raise ValueError(f"norm() wants a number, 'fro' or 'nuc' as p, got '{p}'")
        return ops.linalg_vector_norm(self, 2, dim, keepdim, dtype=dtype)

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.real(3, 4), "fro", 1)
        yield s(s.real(3, 4), dim=(0, 1), keepdim=True)


class norm_p(ComplexComposite):
    """The p-norm over some dims."""
    schema = ("norm.p(Tensor self, Scalar p, int[1]? dim=None, bool keepdim=False, *, "
              "ScalarType? dtype=None) -> Tensor")

    def compose(self, p, dim=None, keepdim=False, dtype=None):
        return ops.linalg_vector_norm(self, p, dim, keepdim, dtype=dtype)

    samples = lambda s: [s(s.real(3, 4), 1), s(s.real(3, 4), 3, 1, True)]


class norm_Scalar(ComplexComposite):
    """The p-norm of all elements."""
    schema = "norm.Scalar(Tensor self, Scalar p=2) -> Tensor"
    tags = ("reduction",)
    out = ("exact",)

    def compose(self, p=2):
        return ops.linalg_vector_norm(self, p)

    samples = lambda s: [s(s.real(3, 4))]


class norm_ScalarOpt_dim(ComplexComposite):
    """The p-norm over some dims; 2 if p is None."""
    schema = ("norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False)"
              " -> Tensor")
    tags = ("reduction",)
    out = ("exact",)

    def compose(self, p, dim, keepdim=False):
        return ops.linalg_vector_norm(self, 2 if p is None else p, dim, keepdim)

    samples = lambda s: [s(s.real(3, 4), None, 1)]


class norm_ScalarOpt_dtype(Composite):
    """The p-norm of all elements, computed in a given dtype."""
    schema = "norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor"
    tags = ("reduction",)

    def compose(self, p, dtype):
        return ops.linalg_vector_norm(self, 2 if p is None else p, dtype=dtype)

    samples = lambda s: [s(s.real(3, 4), None, dtype=dt.float64)]


class norm_ScalarOpt_dim_dtype(Composite):
    """The p-norm over some dims, computed in a given dtype."""
    schema = ("norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, "
              "ScalarType dtype) -> Tensor")
    writing = "dtype_out"
    tags = ("reduction",)

    def compose(self, p, dim, keepdim, dtype):
        return ops.linalg_vector_norm(self, 2 if p is None else p, dim, keepdim, dtype=dtype)

    samples = lambda s: [s(s.real(3, 4), 1, [1], True, dtype=dt.float64)]


# ---------------------------------------------------------------------------------------------
# Running sums and products


def _scan(function: str, xp, self, dim, dtype):
    dim = wrap_dim(dim, self.ndim)
    x = accumulated(xp, self, dtype)
    out = x.copy() if self.ndim == 0 else getattr(xp, function)(x, axis=dim)
    return finished(xp, out, dtype)


class cumsum(Op):
    """Running sums along a dim."""
    schema = "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor"
    lower = "scan.scan(False)"
    core = True
    out = ("any",)
    run = lambda xp, self, dim, dtype: _scan("cumsum", xp, self, dim, dtype)
    grad = {"self": "cumsum_pullback(grad, dim)"}
    linear = ("self",)
    shape = "self.shape"
    dtype = lambda self, dim, dtype: sum_dtype(self, dtype)
    batch = dims("dim")
    cost = "reduce"
    inplace = True
    complex = True

    def samples(s):
        yield s(s.real(3, 4), 1)
        yield s(s.real(4, 3).T, -2)
        yield s(s.real(), 0)
        yield s(s.real(0, 3), 0)


class cumprod(Op):
    """Running products along a dim."""
    schema = "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor"
    lower = "scan.scan(True)"
    kept = "scan"
    out = ("any",)
    run = lambda xp, self, dim, dtype: _scan("cumprod", xp, self, dim, dtype)
    grad = {"self": "cumprod_pullback(grad, self, dim)"}
    push = "cumprod_push(self_p, self_t, dim)"
    shape = "self.shape"
    dtype = lambda self, dim, dtype: sum_dtype(self, dtype)
    batch = dims("dim")
    cost = "reduce"
    inplace = True
    complex = True

    def samples(s):
        yield s(s.real(3, 4), 1)
        yield s(s.real(4, 3).T, -2)
        yield s(s.values([[1.0, 0.0, 2.0, 3.0], [0.0, 3.0, 0.0, 1.0]]), 1)
        yield s(s.real(), 0)
        yield s(s.real(0, 3), 0)
