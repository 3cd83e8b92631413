"""Derivatives of element-wise operators that are too long for a line of the table.

The second derivatives of activations (`gelu_second` ...) are what their backward operators need;
each takes the product of the two gradients that meet there.  The entries are in
`ops/pointwise.py` and `ops/binary.py`; read `formulas/reduce.py` next.
"""

from __future__ import annotations

import cmath
import math

from ..table.packets import ops

# ---------------------------------------------------------------------------------------------
# Unary


def sgn_pullback(grad, self, result):
    """Derivative of s = z / |z|: (t - s Re(conj(s) t)) / |z|, and 0 at 0; zero for real numbers."""
    if not self.is_complex():
        return ops.zeros_like(grad)
    size = self.abs()
    far = size.masked_fill(size == 0, math.inf)  # so that 0 gives 0, in every order
    return (grad - result * (result.conj() * grad).real) / far


def angle_pullback(grad, self):
    """d arg(z) = Im(conj(z) dz) / |z|^2, so the gradient is i z / |z|^2, and 0 at 0."""
    if not self.is_complex():
        return ops.zeros_like(grad)
    size = (self * self.conj()).real
    return grad * (self * 1j) / size.masked_fill(size == 0, math.inf)


def angle_push(self_p, self_t):
    """d arg(z) = Im(conj(z) dz) / |z|^2, and 0 at 0."""
    if not self_p.is_complex():
        return ops.zeros_like(self_t)
    size = (self_p * self_p.conj()).real
    return (self_p.conj() * self_t).imag / size.masked_fill(size == 0, math.inf)


def acosh_slope(self):
    """1 / sqrt(x^2 - 1), which is even: it has a value below -1, where acosh itself is NaN.

    Complex numbers take two roots instead of one of the product: only so is the branch right.
    """
    below, above = self - 1, self + 1
    return below.rsqrt() * above.rsqrt() if self.is_complex() else (below * above).rsqrt()


def gelu_second(grad, self, approximate):
    """Second derivative of gelu: (2 - x^2) pdf(x) for the exact form.

    The tanh form is x/2 (1 + t), t = tanh(u): (1 - t^2) (u' + x/2 u'' - x t u'^2).
    """
    x = self
    if approximate == "none":
        pdf = (x * x * -0.5).exp() * (1 / math.sqrt(2 * math.pi))
        return grad * (2 - x * x) * pdf
    k, c = math.sqrt(2 / math.pi), 0.044715
    t = ((x + x * x * x * c) * k).tanh()
    first, second = (x * x * (3 * c) + 1) * k, x * (6 * c * k)
    return grad * (1 - t * t) * (first + x * second * 0.5 - x * t * first * first)


def silu_second(grad, self):
    """Second derivative of x s(x), s the sigmoid: s (1 - s) (2 + x (1 - 2 s))."""
    s = self.sigmoid()
    return grad * s * (1 - s) * (self * (1 - s * 2) + 2)


def mish_second(grad, self):
    """Second derivative of x t, t = tanh(softplus(x)), s = sigmoid(x), d = 1 - t^2.

    d s (2 + x (1 - s - 2 t s)).
    """
    s = self.sigmoid()
    t = ops.softplus(self).tanh()
    return grad * (1 - t * t) * s * (self * (1 - s - t * s * 2) + 2)


def softplus_second(grad, self, beta, threshold):
    """Second derivative of softplus: beta s (1 - s), s = sigmoid(beta x); 0 beyond a bound."""
    scaled = self * beta
    low = (scaled < threshold).to(grad.dtype)
    return ops.sigmoid_backward(grad, scaled.sigmoid()) * low * beta


def elu_second(grad, alpha, scale, input_scale, is_result, self_or_result):
    """Derivative of elu's slope by the value it is computed from; 0 on the straight side."""
    low = (self_or_result < 0).to(grad.dtype)
    product = grad * input_scale
    if is_result:
        return product * low
    return ops.elu_backward(product, alpha, scale, input_scale, is_result, self_or_result) * low


# ---------------------------------------------------------------------------------------------
# Binary


def power_pullback(grad, self, exponent):
    """d x^p = p x^(p-1) dx for a number p; nothing depends on x if p is 0."""
    if exponent == 0:
        return ops.zeros_like(grad)
    if exponent == 1:
        return grad
    if isinstance(exponent, int) and not self.dtype.is_complex:
        exponent = float(exponent)  # as graphs show it
    return grad * (self.pow(exponent - 1) * exponent).conj()


def beside(x, like):
    """`x`, whole numbers and truth values in the dtype of `like`: they wrap, or cannot be negated.

    An operator computes in the common dtype of its operands; so must a formula.
    """
    exact = not (x.dtype.is_floating_point or x.dtype.is_complex)
    return x.to(like.dtype) if exact else x


def power_pullback_base(grad, self, exponent):
    """d x^p = p x^(p-1) dx for a tensor p, with 0 at p = 0 where x is 0 or NaN: x^0 is 1 there."""
    exponent = beside(exponent, grad)
    nowhere = (exponent == 0).logical_and((self == 0).logical_or(self.isnan()))
    slope = exponent * self.masked_fill(nowhere, 1).pow(exponent - 1)
    return grad * slope.masked_fill(nowhere, 0).conj()


def power_pullback_exponent(grad, self, exponent, result):
    """d x^p = x^p log(x) dp, with 0 at x = 0 where Re p >= 0."""
    real = exponent.real if exponent.is_complex() else exponent
    flat = (self == 0).logical_and(real >= 0)
    base = self.masked_fill(flat, 1)
    if exponent.is_complex() and not base.is_complex():
        base = base.to(result.dtype)  # negative numbers have a logarithm, too
    return grad * (result * base.log()).conj()


def power_pullback_number(grad, self, exponent, result):
    """d a^p = a^p log(a) dp for a number a, with 0 for a = 0 where Re p >= 0."""
    if self == 0:
        real = exponent.real if exponent.is_complex() else exponent
        return (grad * result * -math.inf).masked_fill(real >= 0, 0)
    if isinstance(self, complex) or exponent.is_complex():
        factor = cmath.log(self)
    else:
        factor = math.log(self) if self > 0 else math.nan
    return grad * (result * factor).conj()


def ratio_pullback_divisor(grad, self, other):
    """d (x / y) = -(x / y) / y dy; divides again, so that the quotient may be overwritten."""
    slope = ((self / other) / other).conj()
    return -grad * slope


def share_of_sum(x, y):
    """e^x / (e^x + e^y), a logistic function of the difference, which never overflows."""
    x, y = beside(x, y), beside(y, x)
    return 1 / (1 + (y - x).exp()) if x.is_complex() else (x - y).sigmoid()


def squared_radius(x, y):
    """x^2 + y^2, but inf instead of 0: a quotient is then exactly 0 at the origin."""
    x, y = beside(x, y), beside(y, x)
    size = x * x + y * y
    return size.masked_fill(size == 0, math.inf)


def between(value, low, high):
    """Mask of low <= value <= high; a bound may be None."""
    if low is None:
        return value <= high
    if high is None:
        return value >= low
    return (value >= low).logical_and(value <= high)


def clamp_pullback_low(grad, self, min, max):
    """The lower bound is credited where x < min < max."""
    mask = self < min
    if max is not None:
        mask = mask.logical_and(min < max)
    return ops.where(mask, grad, 0)


def clamp_pullback_high(grad, self, min, max):
    """The upper bound is credited where x > max, and where the bounds are in the wrong order."""
    mask = self > max
    if min is not None:
        mask = mask.logical_or(max < min)
    return ops.where(mask, grad, 0)


def copysign_pullback(grad, self, result):
    """The quotient of both is the sign; 0 at 0, and NaN where the quotient is."""
    ratio = result.detach() / self.detach()  # it is constant between its steps
    return grad * ratio.masked_fill(self == 0, 0)


def xlogy_pullback(grad, self, other):
    """d x log(y) by x, 0 where the product is 0 by definition (x = 0, y <= 0) or `grad` is."""
    if isinstance(other, (int, float)):
        out = ops.xlogy(grad, other)
        return out if other > 0 else out.masked_fill(self == 0, 0)
    unused = (self == 0).logical_and(other <= 0)
    # the 1 keeps further derivatives finite, the 0 an infinite gradient out
    return ops.xlogy(grad.masked_fill(unused, 0), other.masked_fill(unused, 1))
