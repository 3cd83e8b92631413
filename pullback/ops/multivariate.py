"""Functions of two or three variables, element by element: atan2, lerp, addcmul, xlogy, logaddexp.

Read next: `binary.py`.
"""

from __future__ import annotations

import math

from ..core.op import Pointwise
from ..errors import DTypeError
from ..table.packets import ops
from .binary import as_tensor, pairs, with_number
from .pointwise import Function, refuse


class atan2(Function):
    """Angle of the point with ordinate `self` and abscissa `other`."""
    schema = "atan2(Tensor self, Tensor other) -> Tensor"
    core = "out"
    ufunc = "arctan2"
    c = "atan2({self}, {other})"
    grad = {
        "self": "grad * other / squared_radius(self, other)",
        "other": "grad * -beside(self, grad) / squared_radius(self, other)",
    }
    aliases = ("arctan2",)
    samples = pairs()

    def run(xp, self, other):
        refuse("atan2_cpu", self, "c")
        return xp.arctan2(self, other)


class hypot(Pointwise):
    """sqrt(x^2 + y^2) without needless overflow."""
    schema = "hypot(Tensor self, Tensor other) -> Tensor"
    ufunc = "hypot"
    grad = {"self": "grad * (self / result)", "other": "grad * (other / result)"}
    samples = pairs()

    def run(xp, self, other):
        refuse("hypot_cpu", self, "biuc")
        return xp.hypot(self, other)

    def decomp(self, other):
        x, y = self.abs(), other.abs()
        large = ops.maximum(x, y)
        ratio = ops.minimum(x, y) / ops.where(large == 0, 1.0, large)
        return ops.where(x.isinf() | y.isinf(), math.inf, large * (1 + ratio * ratio).sqrt())


def _check_ends(self, end) -> None:
    refuse("lerp_kernel", self, "biu")
    if self.dtype != end.dtype:
        raise DTypeError(f"expected dtype {self.dtype.name} for `end` but got dtype {end.dtype.name}")


def _check_weight(self, end, weight) -> None:
    _check_ends(self, end)
    if weight.ndim and weight.dtype != self.dtype:  # one weight for all takes part in promotion
        raise DTypeError(f"expected dtype {self.dtype.name} for `weight` but got dtype "
                         f"{weight.dtype.name}")


def _lerp(xp, self, end, weight):
    """Towards the nearer end, so that both ends are met exactly."""
    from_start, from_end = self + weight * (end - self), end - (end - self) * (1 - weight)
    return xp.where(xp.abs(weight) < 0.5, from_start, from_end)


class lerp_Tensor(Pointwise):
    """Straight-line interpolation from `self` to `end` at `weight`."""
    schema = "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor"
    lower = "pointwise.lerp"
    out = ("exact",)
    number = 1
    check = _check_weight
    run = _lerp
    grad = {
        "self": "grad * (1 - beside(weight, grad)).conj()",
        "end": "grad * weight.conj()",
        "weight": "grad * (end - self).conj()",
    }
    complex = True

    def decomp(self, end, weight):
        way = end - self
        return ops.where(weight.abs() < 0.5, self + weight * way, end - way * (1 - weight))

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 4), s.real(3, 4, low=0.1, high=0.9))
        yield s(s.real(3, 1), s.real(4), s.real())
        yield s(s.real(), s.real(), s.real())


class lerp_Scalar(Pointwise):
    """Straight-line interpolation from `self` to `end` at the number `weight`."""
    schema = "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor"
    lower = "pointwise.lerp"
    number = 0
    promote = "same"
    grad = {"self": "grad * (1 - weight).conjugate()", "end": "grad * weight.conjugate()"}
    complex = True

    def run(xp, self, end, weight):
        _check_ends(self, end)
        if abs(weight) < 0.5:  # from the nearer end
            return self + weight * (end - self)
        return end - (end - self) * (1 - weight)

    def decomp(self, end, weight):
        way = end - self
        return self + weight * way if abs(weight) < 0.5 else end - way * (1 - weight)

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 4), 0.3)
        yield s(s.real(3, 1), s.real(4), 0.8)
        yield s(s.real(), s.real(), 2)


class addcmul(Pointwise):
    """self + value * tensor1 * tensor2."""
    schema = ("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor")
    lower = "pointwise.addc('mul')"
    legacy = ("self value tensor1 tensor2",)
    grad = {
        "self": "grad",
        "tensor1": "grad * (tensor2 * value).conj()",
        "tensor2": "grad * (tensor1 * value).conj()",
    }
    c = "{self} + {value} * ({tensor1} * {tensor2})"
    complex = True

    def run(xp, self, tensor1, tensor2, value):
        refuse("addcmul_cpu_out", self, "b")
        if self.dtype.kind in "iu":
            value = int(value)
        product = tensor1 * tensor2
        return self + (product if value == 1 else product * value)

    def decomp(self, tensor1, tensor2, value=1):
        if not self.dtype.is_inexact:
            value = int(value)
        product = tensor1 * tensor2
        return self + (product if value == 1 else product * value)

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 4), s.real(3, 4))
        yield s(s.real(4), s.real(3, 1), s.real(), value=0.5)
        yield s(s.real(), s.real(), s.real(), value=2)


class addcdiv(Pointwise):
    """self + value * tensor1 / tensor2."""
    schema = ("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor")
    lower = "pointwise.addc('div')"
    legacy = ("self value tensor1 tensor2",)
    grad = {
        "self": "grad",
        "tensor1": "grad * (value / tensor2).conj()",
        "tensor2": "-grad * (value * tensor1 / (tensor2 * tensor2)).conj()",
    }
    c = "{self} + {value} * ({tensor1} / {tensor2})"
    complex = True

    def run(xp, self, tensor1, tensor2, value):
        if tensor1.dtype.kind in "biu" and tensor2.dtype.kind in "biu":
            raise RuntimeError(
                "Integer division with addcdiv is no longer supported; convert one of the tensors "
                "to a floating dtype, or use div with a rounding mode.")
        quotient = tensor1 / tensor2
        return self + (quotient if value == 1 else quotient * value)

    def decomp(self, tensor1, tensor2, value=1):
        quotient = tensor1 / tensor2
        return self + (quotient if value == 1 else quotient * value)

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 4), s.real(3, 4, low=0.5))
        yield s(s.real(4), s.real(3, 1), s.real(low=0.5), value=0.5)
        yield s(s.real(), s.real(), s.real(low=0.5), value=2)


def _xlogy(xp, self, other):
    """x log(y), 0 where x is 0 unless y is NaN."""
    product = self * xp.log(other)
    refuse("xlogy_cpu", product, "c")
    return xp.where((xp.equal(self, 0)) & ~xp.isnan(other), 0, product)


class xlogy_Tensor(Function):
    """x log(y), 0 where x is 0."""
    schema = "xlogy.Tensor(Tensor self, Tensor other) -> Tensor"
    writing = "OutTensor"
    run = _xlogy
    grad = {"self": "xlogy_pullback(grad, self, other)", "other": "grad * self / other"}
    aliases = ("special_xlogy",)
    samples = pairs(low2=0.3, high2=3)

    def decomp(self, other):
        zero = (self == 0).logical_and(other.isnan().logical_not())
        return (self * other.log()).masked_fill(zero, 0)


class xlogy_Scalar_Self(Function):
    """a log(y) for a number a; 0 if a is 0."""
    schema = "xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor"
    writing = "OutScalar_Self"
    promotes = ("self", "other")
    run = _xlogy
    grad = {"other": "grad * self / other"}
    method = False
    inplace = False

    def decomp(self, other):
        if self == 0:
            return ops.where(other.isnan(), other, 0)
        return other.log() * self

    samples = lambda s: [s(1.5, s.real(3, 4, low=0.3, high=3)), s(0, s.real(low=0.3, high=3))]


class xlogy_Scalar_Other(Function):
    """x log(b) for a number b; 0 where x is 0."""
    schema = "xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor"
    writing = "OutScalar_Other"
    promotes = ("self", "other")
    run = _xlogy
    grad = {"self": "xlogy_pullback(grad, self, other)"}
    samples = with_number(1.5, 2)

    def decomp(self, other):
        return ops.xlogy(self, as_tensor(other, self))


class logaddexp(Pointwise):
    """log(exp(x) + exp(y)) without overflow."""
    schema = "logaddexp(Tensor self, Tensor other) -> Tensor"
    grad = {
        "self": "grad * share_of_sum(self, other).conj()",
        "other": "grad * share_of_sum(other, self).conj()",
    }
    complex = True
    inplace = False
    samples = pairs()

    def run(xp, self, other):
        refuse("logaddexp_cpu", self, "biu")
        if self.dtype.kind != "c":
            return xp.logaddexp(self, other)
        first = self.real >= other.real
        high, low = xp.where(first, self, other), xp.where(first, other, self)
        same = xp.isinf(high.real) & (high.real == low.real)  # inf - inf would be NaN
        return xp.where(same, high, high + xp.log1p(xp.exp(xp.where(same, 0, low - high))))

    def decomp(self, other):
        if self.is_complex():  # the branch of the larger one, as in the kernel
            first = self.real >= other.real
            high, low = ops.where(first, self, other), ops.where(first, other, self)
            same = high.real.isinf().logical_and(high.real == low.real)
        else:
            high, low = ops.maximum(self, other), ops.minimum(self, other)
            same = (high == low).logical_and(high.isinf())
        return ops.where(same, high, high + (low - high).masked_fill(same, 0).exp().log1p())


class copysign_Tensor(Function):
    """Size of the first element with the sign of the second."""
    schema = "copysign.Tensor(Tensor self, Tensor other) -> Tensor"
    grad = {"self": "copysign_pullback(grad, self, result)"}
    constant = ("other",)
    samples = pairs()

    def run(xp, self, other):
        refuse("copysign_cpu", self, "c")
        return xp.copysign(self, other)

    def decomp(self, other):
        # the sign of a zero is seen in its reciprocal
        negative = (other < 0).logical_or((other == 0).logical_and(other.reciprocal() < 0))
        return ops.where(negative, -self.abs(), self.abs())


class copysign_Scalar(Function):
    """Size of each element with the sign of a number."""
    schema = "copysign.Scalar(Tensor self, Scalar other) -> Tensor"
    promotes = ("self", "other")
    grad = {"self": "copysign_pullback(grad, self, result)"}
    samples = with_number(-1.5, 2)

    def run(xp, self, other):
        refuse("copysign_cpu", self, "c")
        return xp.copysign(self, other)

    def decomp(self, other):
        return -self.abs() if math.copysign(1, other) < 0 else self.abs()


class heaviside(Pointwise):
    """0 below zero, 1 above, and `values` at zero."""
    schema = "heaviside(Tensor self, Tensor values) -> Tensor"
    out = ("exact",)
    promote = "same"
    grad = {"values": "where(self == 0, grad, 0)"}
    constant = ("self",)

    def run(xp, self, values):
        refuse("heaviside_cpu", self, "c")
        if self.dtype != values.dtype:
            raise DTypeError("heaviside is not yet implemented for tensors with different dtypes.")
        return xp.where(self == 0, values, xp.asarray(self > 0, dtype=self.dtype))

    def decomp(self, values):
        return ops.where(self == 0, values, (self > 0).to(values.dtype))

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 4))
        yield s(s.values([-1.0, 0.5, 2.0]), s.real())
        yield s(s.real(0, 3), s.real(3))
