"""Operators on each element of one tensor: the table entries of exp, tanh, relu, round ...

The entries of activations are followed by their backward operators (`tanh_backward` ...): these keep
eager backward at one kernel and are ordinary differentiable operators themselves.  Formulas longer than
a line are in `formulas/pointwise.py`; `ops/binary.py` holds operators on two or three tensors.
"""

from __future__ import annotations

import math

from ..core import dtype as dt
from ..core.op import Composite, Op, Pointwise
from ..core.table import ops
from ..core.xp import special
from ..errors import DTypeError

# ---------------------------------------------------------------------------------------------
# What the kernels share

_TITLES = {
    "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int",
    "int64": "Long", "float16": "Half", "bfloat16": "BFloat16", "float32": "Float",
    "float64": "Double", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}


def title(dtype) -> str:
    """PyTorch's word for a dtype in its messages: 'Long' for int64."""
    return _TITLES.get(dtype.name, str(dtype))


def refuse(name: str, array, kinds: str) -> None:
    """Raise if the array's dtype is of one of `kinds` (NumPy's letters: b bool, iu integer, c complex)."""
    if array.dtype.kind in kinds:
        raise NotImplementedError(f"\"{name}\" not implemented for '{title(array.dtype)}'")


def points(low: float = -2.0, high: float = 2.0):
    """Samples of a unary operator with values between `low` and `high`, edge shapes included."""

    def samples(s):
        yield s(s.real(3, 4, low=low, high=high))
        yield s(s.real(4, 3, low=low, high=high).T)
        yield s(s.real(low=low, high=high))
        yield s(s.real(0, 3, low=low, high=high))

    return samples


def backward_points(*rest, low: float = -2.0, high: float = 2.0):
    """Samples of a backward operator: a gradient, the value it belongs to, further arguments."""

    def samples(s):
        for shape in ((3, 4), (), (0, 3)):
            yield s(s.real(*shape), s.real(*shape, low=low, high=high), *rest)

    return samples


# ---------------------------------------------------------------------------------------------
# Arithmetic


class neg(Pointwise):
    """Each element with its sign changed."""
    schema = "neg(Tensor self) -> Tensor"
    ufunc = "negative"
    grad = {"self": "-grad"}
    c = "-{self}"
    complex = True
    aliases = ("negative",)
    samples = points()

    def run(xp, self):
        if self.dtype.kind == "b":
            raise DTypeError(
                "Negation, the `-` operator, on a bool tensor is not supported. If you are trying "
                "to invert a mask, use the `~` or `logical_not()` operator instead.")
        return xp.negative(self)


class positive(Composite):
    """The tensor itself; refuses bool."""
    schema = "positive(Tensor(a) self) -> Tensor(a)"
    samples = points()

    def compose(self):
        if self.dtype is dt.bool_:
            raise DTypeError("The `+` operator, on a bool tensor is not supported.")
        return self


class reciprocal(Pointwise):
    """One divided by each element."""
    schema = "reciprocal(Tensor self) -> Tensor"
    promote = "float"
    run = "xp.reciprocal(self)"
    grad = {"self": "-grad * (result * result).conj()"}
    c = "1 / {self}"
    complex = True
    samples = points(0.3, 2)


class sqrt(Pointwise):
    """Square root of each element."""
    schema = "sqrt(Tensor self) -> Tensor"
    promote = "float"
    run = "xp.sqrt(self)"
    grad = {"self": "grad / (2 * result.conj())"}
    c = "sqrt({self})"
    complex = True
    samples = points(0.3, 2)


class rsqrt(Pointwise):
    """One divided by the square root of each element."""
    schema = "rsqrt(Tensor self) -> Tensor"
    promote = "float"
    run = "xp.reciprocal(xp.sqrt(self))"
    grad = {"self": "-0.5 * grad * result.pow(3).conj()"}
    c = "rsqrt({self})"
    complex = True
    samples = points(0.3, 2)


class square(Composite):
    """Each element times itself."""
    schema = "square(Tensor self) -> Tensor"
    inplace = True
    complex = True
    samples = points()

    def compose(self):
        return self.pow(2)


class abs_default(Pointwise):
    """Absolute value of each element; modulus of a complex one."""
    schema = "abs(Tensor self) -> Tensor"
    promote = "real"
    grad = {"self": "grad * self.sgn()"}
    push = "(self_t.conj() * self_p.sgn()).real"
    c = "fabs({self})"
    complex = True
    aliases = ("absolute",)
    samples = points()

    def run(xp, self):
        refuse("abs_cpu", self, "b")
        return xp.abs(self)


class sign(Pointwise):
    """-1, 0 or 1 by the sign of each element; NaN gives 0."""
    schema = "sign(Tensor self) -> Tensor"
    constant = ("self",)
    c = "where({self} > 0, 1, where({self} < 0, -1, 0))"
    samples = points()

    def run(xp, self):
        if self.dtype.kind == "c":
            raise NotImplementedError("torch.sign does not take complex numbers; use torch.sgn instead.")
        return _sign(xp, self)


def _sign(xp, x):
    if x.dtype.kind in "bu":
        return xp.asarray(x > 0, dtype=x.dtype)
    positive, negative = xp.asarray(x > 0, dtype=x.dtype), xp.asarray(x < 0, dtype=x.dtype)
    return positive - negative


class sgn(Pointwise):
    """Sign of each element; the unit number of the same phase for a complex one, 0 at 0."""
    schema = "sgn(Tensor self) -> Tensor"
    grad = {"self": "sgn_pullback(grad, self, result)"}
    push = "sgn_pullback(self_t, self_p, result)"  # the Jacobian is symmetric: its own transpose
    complex = True
    samples = points()

    def run(xp, self):
        if self.dtype.kind != "c":
            return _sign(xp, self)
        size = xp.abs(self)
        return self / xp.where(size == 0, 1, size)

    def decomp(self):
        if not self.is_complex():
            return self.sign()
        size = self.abs()
        return self / ops.where(size == 0, 1, size)


# ---------------------------------------------------------------------------------------------
# Exponentials and logarithms


class exp(Pointwise):
    """e to the power of each element."""
    schema = "exp(Tensor self) -> Tensor"
    promote = "float"
    run = "xp.exp(self)"
    grad = {"self": "grad * result.conj()"}
    c = "exp({self})"
    complex = True
    samples = points()


class exp2(Pointwise):
    """Two to the power of each element."""
    schema = "exp2(Tensor self) -> Tensor"
    promote = "float"
    grad = {"self": "grad * result.conj() * math.log(2)"}
    c = "exp2({self})"
    complex = True
    aliases = ("special_exp2",)
    samples = points()

    def run(xp, self):
        if self.dtype.kind == "c":
            return xp.exp(self * math.log(2))
        return xp.exp2(self)

    def decomp(self):
        return ops.pow(2.0, self)


class expm1(Pointwise):
    """exp(x) - 1 of each element, exact near zero."""
    schema = "expm1(Tensor self) -> Tensor"
    promote = "float"
    run = "xp.expm1(self)"
    grad = {"self": "grad * (result + 1).conj()"}
    c = "expm1({self})"
    complex = True
    aliases = ("special_expm1",)
    samples = points()


class log(Pointwise):
    """Natural logarithm of each element."""
    schema = "log(Tensor self) -> Tensor"
    promote = "float"
    run = "xp.log(self)"
    grad = {"self": "grad / self.conj()"}
    c = "log({self})"
    complex = True
    samples = points(0.3, 3)


class log2(Pointwise):
    """Logarithm to base 2 of each element."""
    schema = "log2(Tensor self) -> Tensor"
    promote = "float"
    run = "xp.log2(self)"
    grad = {"self": "grad / (self.conj() * math.log(2))"}
    c = "log({self}) * 1.4426950408889634"
    complex = True
    samples = points(0.3, 3)


class log10(Pointwise):
    """Logarithm to base 10 of each element."""
    schema = "log10(Tensor self) -> Tensor"
    promote = "float"
    run = "xp.log10(self)"
    grad = {"self": "grad / (self.conj() * math.log(10))"}
    c = "log({self}) * 0.4342944819032518"
    complex = True
    samples = points(0.3, 3)


class log1p(Pointwise):
    """log(1 + x) of each element, exact near zero."""
    schema = "log1p(Tensor self) -> Tensor"
    promote = "float"
    run = "xp.log1p(self)"
    grad = {"self": "grad / (self + 1).conj()"}
    c = "log1p({self})"
    complex = True
    aliases = ("special_log1p",)
    samples = points(-0.6, 3)


# ---------------------------------------------------------------------------------------------
# Trigonometric and hyperbolic functions


class sin(Pointwise):
    """Sine of each element."""
    schema = "sin(Tensor self) -> Tensor"
    promote = "float"
    run = "xp.sin(self)"
    grad = {"self": "grad * self.cos().conj()"}
    c = "sin({self})"
    complex = True
    samples = points()


class cos(Pointwise):
    """Cosine of each element."""
    schema = "cos(Tensor self) -> Tensor"
    promote = "float"
    run = "xp.cos(self)"
    grad = {"self": "grad * -self.sin().conj()"}
    c = "cos({self})"
    complex = True
    samples = points()


class tan(Pointwise):
    """Tangent of each element."""
    schema = "tan(Tensor self) -> Tensor"
    promote = "float"
    run = "xp.tan(self)"
    grad = {"self": "grad * (1 + result * result).conj()"}
    c = "tan({self})"
    complex = True
    samples = points(-1, 1)


class asin(Pointwise):
    """Angle whose sine is the element."""
    schema = "asin(Tensor self) -> Tensor"
    promote = "float"
    run = "xp.arcsin(self)"
    grad = {"self": "grad * (1 - self * self).rsqrt().conj()"}
    complex = True
    aliases = ("arcsin",)
    samples = points(-0.9, 0.9)


class acos(Pointwise):
    """Angle whose cosine is the element."""
    schema = "acos(Tensor self) -> Tensor"
    promote = "float"
    run = "xp.arccos(self)"
    grad = {"self": "grad * -(1 - self * self).rsqrt().conj()"}
    complex = True
    aliases = ("arccos",)
    samples = points(-0.9, 0.9)


class atan(Pointwise):
    """Angle whose tangent is the element."""
    schema = "atan(Tensor self) -> Tensor"
    promote = "float"
    run = "xp.arctan(self)"
    grad = {"self": "grad / (self * self + 1).conj()"}
    complex = True
    aliases = ("arctan",)
    samples = points(-0.9, 0.9)


class sinh(Pointwise):
    """Hyperbolic sine of each element."""
    schema = "sinh(Tensor self) -> Tensor"
    promote = "float"
    run = "xp.sinh(self)"
    grad = {"self": "grad * self.cosh().conj()"}
    complex = True
    samples = points()


class cosh(Pointwise):
    """Hyperbolic cosine of each element."""
    schema = "cosh(Tensor self) -> Tensor"
    promote = "float"
    run = "xp.cosh(self)"
    grad = {"self": "grad * self.sinh().conj()"}
    complex = True
    samples = points()


class tanh(Pointwise):
    """Hyperbolic tangent of each element."""
    schema = "tanh(Tensor self) -> Tensor"
    promote = "float"
    run = "xp.tanh(self)"
    grad = {"self": "tanh_backward(grad, result)"}
    c = "tanh({self})"
    complex = True
    samples = points()


class tanh_backward(Pointwise):
    """Gradient of tanh from the gradient of its output and the output."""
    schema = "tanh_backward(Tensor grad_output, Tensor output) -> Tensor"
    run = "grad_output * (1 - output * output).conj()"
    grad = {
        "grad_output": "tanh_backward(grad, output.conj())",
        "output": "grad_output * (-2 * output * grad).conj()",
    }
    # conjugation makes the operator anti-holomorphic in `output`, so forward mode is spelled out
    push = ("tanh_backward(grad_output_t, output_p)"
            " + grad_output_p * (-2 * output_p * output_t).conj()")
    c = "{grad_output} * (1 - {output} * {output})"
    complex = True
    inplace = False
    method = False
    function = False
    samples = backward_points(low=-0.9, high=0.9)

    def decomp(grad_output, output):
        return grad_output * (1 - output * output).conj()


class asinh(Pointwise):
    """Number whose hyperbolic sine is the element."""
    schema = "asinh(Tensor self) -> Tensor"
    promote = "float"
    run = "xp.arcsinh(self)"
    grad = {"self": "grad * (self * self + 1).rsqrt().conj()"}
    complex = True
    aliases = ("arcsinh",)
    samples = points(-0.9, 0.9)


class acosh(Pointwise):
    """Number whose hyperbolic cosine is the element."""
    schema = "acosh(Tensor self) -> Tensor"
    promote = "float"
    run = "xp.arccosh(self)"
    # two roots instead of one of the product: only so is the branch right for complex numbers
    grad = {"self": "grad * ((self - 1).rsqrt() * (self + 1).rsqrt()).conj()"}
    complex = True
    aliases = ("arccosh",)
    samples = points(1.2, 3)


class atanh(Pointwise):
    """Number whose hyperbolic tangent is the element."""
    schema = "atanh(Tensor self) -> Tensor"
    promote = "float"
    run = "xp.arctanh(self)"
    grad = {"self": "grad / (1 - self * self).conj()"}
    complex = True
    aliases = ("arctanh",)
    samples = points(-0.9, 0.9)


class deg2rad(Pointwise):
    """Degrees as radians."""
    schema = "deg2rad(Tensor self) -> Tensor"
    promote = "float"
    run = "self * (math.pi / 180)"
    grad = {"self": "grad * (math.pi / 180)"}
    c = "{self} * 0.017453292519943295"
    samples = points(-90, 90)

    def decomp(self):
        return self * (math.pi / 180)


class rad2deg(Pointwise):
    """Radians as degrees."""
    schema = "rad2deg(Tensor self) -> Tensor"
    promote = "float"
    run = "self * (180 / math.pi)"
    grad = {"self": "grad * (180 / math.pi)"}
    c = "{self} * 57.29577951308232"
    samples = points()

    def decomp(self):
        return self * (180 / math.pi)


# ---------------------------------------------------------------------------------------------
# Special functions


class erf(Pointwise):
    """Error function of each element."""
    schema = "erf(Tensor self) -> Tensor"
    promote = "float"
    grad = {"self": "2 / math.sqrt(math.pi) * (-self * self).exp() * grad"}
    c = "erf({self})"
    aliases = ("special_erf",)
    samples = points()

    def run(xp, self):
        refuse("erf_vml_cpu", self, "c")
        return special(xp).erf(self)


class erfc(Pointwise):
    """1 - erf of each element, exact where erf is near one."""
    schema = "erfc(Tensor self) -> Tensor"
    promote = "float"
    grad = {"self": "-2 / math.sqrt(math.pi) * (-self * self).exp() * grad"}
    aliases = ("special_erfc",)
    samples = points()

    def run(xp, self):
        refuse("erfc_vml_cpu", self, "c")
        return special(xp).erfc(self)


class erfinv(Pointwise):
    """Number whose error function is the element."""
    schema = "erfinv(Tensor self) -> Tensor"
    promote = "float"
    grad = {"self": "0.5 * math.sqrt(math.pi) * (result * result).exp() * grad"}
    aliases = ("special_erfinv",)
    samples = points(-0.9, 0.9)

    def run(xp, self):
        refuse("erfinv_vml_cpu", self, "c")
        return special(xp).erfinv(self)


class lgamma(Pointwise):
    """Logarithm of the absolute value of the gamma function."""
    schema = "lgamma(Tensor self) -> Tensor"
    promote = "float"
    grad = {"self": "grad * self.digamma()"}
    aliases = ("special_gammaln",)
    samples = points(0.3, 4)

    def run(xp, self):
        refuse("lgamma_vml_cpu", self, "c")
        return special(xp).gammaln(self)


class digamma(Pointwise):
    """Derivative of `lgamma`."""
    schema = "digamma(Tensor self) -> Tensor"
    promote = "float"
    grad = {"self": "grad * polygamma(1, self)"}
    aliases = ("special_digamma", "special_psi")
    samples = points(0.3, 4)

    def run(xp, self):
        refuse("digamma", self, "c")
        # at a pole, the two zeros have opposite infinities and the negative integers have no limit
        pole = xp.where(self == 0, xp.copysign(math.inf, -self), math.nan)
        at_pole = (self <= 0) & (self == xp.floor(self))
        return xp.where(at_pole, pole, special(xp).digamma(self))


class polygamma(Pointwise):
    """The n-th derivative of `digamma`."""
    schema = "polygamma(int n, Tensor self) -> Tensor"
    promote = "float"
    grad = {"self": "grad * polygamma(n + 1, self)"}
    aliases = ("special_polygamma",)
    inplace = False  # the tensor is the second argument here, and the first of `polygamma_`

    def run(xp, n, self):
        refuse("polygamma", self, "c")
        if n < 0:
            raise RuntimeError("polygamma(n, x) does not support negative n.")
        if n == 0:
            return special(xp).digamma(self)
        # (-1)^(n+1) n! zeta(n+1, x); for n = 1 reflected at 1/2, which serves negative numbers too
        if n > 1:
            return (-1.0) ** (n + 1) * math.factorial(n) * special(xp).zeta(n + 1.0, self)
        left = self < 0.5
        value = special(xp).zeta(2.0, xp.where(left, 1 - self, self))
        pole = left & (self == xp.floor(self))  # where the sine is not quite zero
        reflected = (math.pi / xp.sin(math.pi * xp.where(pole, 0.0, self))) ** 2
        return xp.where(left, reflected - xp.where(pole, 0.0, value), value)

    def samples(s):
        for n in (1, 2):
            yield s(n, s.real(3, 4, low=0.3, high=4))
            yield s(n, s.real(low=0.3, high=4))


# ---------------------------------------------------------------------------------------------
# Activations, each with its backward operator


class polygamma_(Composite):
    """`polygamma` in place."""
    schema = "polygamma_(Tensor(a!) self, int n) -> Tensor(a!)"
    function = False

    def compose(self, n):
        return self.copy_(ops.polygamma(n, self.clone()))


class sigmoid(Pointwise):
    """1 / (1 + exp(-x)) of each element."""
    schema = "sigmoid(Tensor self) -> Tensor"
    promote = "float"
    run = "xp.reciprocal(xp.exp(-self) + 1)"
    grad = {"self": "sigmoid_backward(grad, result)"}
    c = "sigmoid({self})"
    complex = True
    aliases = ("special_expit",)
    samples = points()


class sigmoid_backward(Pointwise):
    """Gradient of sigmoid from the gradient of its output and the output."""
    schema = "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor"
    run = "grad_output * ((1 - output) * output).conj()"
    grad = {
        "grad_output": "sigmoid_backward(grad, output.conj())",
        "output": "grad_output * ((1 - 2 * output) * grad).conj()",
    }
    # anti-holomorphic in `output`, like tanh_backward
    push = ("sigmoid_backward(grad_output_t, output_p)"
            " + grad_output_p * ((1 - 2 * output_p) * output_t).conj()")
    c = "{grad_output} * ((1 - {output}) * {output})"
    complex = True
    inplace = False
    method = False
    function = False
    samples = backward_points(low=0.1, high=0.9)

    def decomp(grad_output, output):
        return grad_output * ((1 - output) * output).conj()


class logit(Pointwise):
    """log(x / (1 - x)) of each element, first clamped to [eps, 1 - eps] if eps is given."""
    schema = "logit(Tensor self, float? eps=None) -> Tensor"
    promote = "float"
    grad = {"self": "logit_backward(grad, self, eps)"}
    aliases = ("special_logit",)

    def run(xp, self, eps):
        refuse("logit_cpu", self, "c")
        x = self if eps is None else xp.clip(self, eps, 1 - eps)
        return xp.log(x / (1 - x))

    def decomp(self, eps=None):
        x = self if eps is None else self.clamp(eps, 1 - eps)
        return (x / (1 - x)).log()

    def samples(s):
        yield s(s.real(3, 4, low=0.1, high=0.9))
        yield s(s.real(low=0.1, high=0.9), eps=0.01)
        yield s(s.values([-0.5, 0.1, 0.6, 1.5]), 0.2)
        yield s(s.real(0, 3))


class logit_backward(Pointwise):
    """Gradient of logit: grad / (x (1 - x)) inside the open range, 0 outside."""
    schema = "logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor"
    grad = {
        "grad_output": "logit_backward(grad, self, eps)",
        "self": "grad * logit_backward(grad_output, self, eps) * (2 * self - 1) / (self * (1 - self))",
    }
    inplace = False
    method = False
    function = False

    def run(xp, grad_output, self, eps):
        slope = grad_output / (self * (1 - self))
        if eps is None:  # without clamping the function is not defined outside of [0, 1]
            return xp.where((self < 0) | (self > 1), math.nan, slope)
        return xp.where((self < eps) | (self > 1 - eps), 0, slope)

    def decomp(grad_output, self, eps=None):
        slope = grad_output / (self * (1 - self))
        low, high, outside = (0, 1, math.nan) if eps is None else (eps, 1 - eps, 0)
        return slope.masked_fill((self < low).logical_or(self > high), outside)

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 4, low=0.1, high=0.9))
        yield s(s.real(), s.real(low=0.1, high=0.9), 0.01)


class relu(Pointwise):
    """Each element, or 0 where it is negative."""
    schema = "relu(Tensor self) -> Tensor"
    grad = {"self": "threshold_backward(grad, result, 0)"}
    c = "where({self} <= 0, 0, {self})"
    namespace = "nn.functional"
    samples = points()

    def run(xp, self):
        if self.dtype.kind == "b":
            raise DTypeError("Boolean inputs not supported for relu")
        refuse("clamp_min_scalar_cpu", self, "c")
        return xp.maximum(self, 0)


class relu6(Composite):
    """Each element clamped to [0, 6]."""
    schema = "relu6(Tensor self) -> Tensor"
    method = False
    function = False
    inplace = True
    namespace = "nn.functional"
    samples = points()

    def compose(self):
        return ops.hardtanh(self, 0, 6)


class threshold(Pointwise):
    """Each element, or `value` where it does not exceed `threshold`."""
    schema = "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor"
    out = ("castable",)
    run = "xp.where(self <= threshold, xp.asarray(value, dtype=self.dtype), self)"
    grad = {"self": "threshold_backward(grad, self, threshold)"}
    c = "where({self} <= {threshold}, {value}, {self})"
    method = False
    namespace = "nn.functional"

    def decomp(self, threshold, value):
        return self.masked_fill(self <= threshold, value)

    def samples(s):
        yield s(s.real(3, 4), 0.01, 20.0)
        yield s(s.real(), 0, -1)
        yield s(s.real(0, 3), 0, 0)


class threshold_backward(Pointwise):
    """The gradient where the value exceeds `threshold`, else 0."""
    schema = "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor"
    run = "xp.where(self <= threshold, xp.asarray(0, dtype=grad_output.dtype), grad_output)"
    grad = {"grad_output": "threshold_backward(grad, self, threshold)"}
    constant = ("self",)
    c = "where({self} <= {threshold}, 0, {grad_output})"
    inplace = False
    method = False
    function = False
    samples = backward_points(0.01)

    def decomp(grad_output, self, threshold):
        return grad_output.masked_fill(self <= threshold, 0)


class leaky_relu(Pointwise):
    """Each element, times `negative_slope` where it is not positive."""
    schema = "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor"
    grad = {"self": "leaky_relu_backward(grad, self, negative_slope, False)"}
    c = "where({self} > 0, {self}, {self} * {negative_slope})"
    method = False
    function = False
    namespace = "nn.functional"

    def run(xp, self, negative_slope):
        refuse("leaky_relu_cpu", self, "biuc")
        return xp.where(self > 0, self, self * negative_slope)

    def decomp(self, negative_slope=0.01):
        return ops.where(self > 0, self, self * negative_slope)

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.real(4, 3).T, 0.2)
        yield s(s.real(), -0.5)
        yield s(s.real(0, 3))


class leaky_relu_backward(Pointwise):
    """Gradient of leaky_relu from its input (or output, which has the same sign)."""
    schema = ("leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, "
              "bool self_is_result) -> Tensor")
    run = "xp.where(self > 0, grad_output, grad_output * negative_slope)"
    grad = {"grad_output": "leaky_relu_backward(grad, self, negative_slope, self_is_result)"}
    constant = ("self",)
    c = "where({self} > 0, {grad_output}, {grad_output} * {negative_slope})"
    inplace = False
    method = False
    function = False
    samples = backward_points(0.2, False)

    def decomp(grad_output, self, negative_slope, self_is_result):
        return ops.where(self > 0, grad_output, grad_output * negative_slope)


class elu(Pointwise):
    """x where positive, else alpha (exp(x) - 1); both scaled."""
    schema = "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor"
    grad = {"self": "elu_backward(grad, alpha, scale, input_scale, False, self)"}
    c = ("where({self} > 0, {self} * {scale}, "
         "expm1({self} * {input_scale}) * ({alpha} * {scale}))")
    method = False
    function = False
    namespace = "nn.functional"

    def run(xp, self, alpha, scale, input_scale):
        refuse("elu_cpu", self, "biuc")
        low = xp.expm1(self * input_scale) * (alpha * scale)
        return xp.where(self > 0, self * scale, low)

    def decomp(self, alpha=1, scale=1, input_scale=1):
        low = (self * input_scale).expm1() * (alpha * scale)
        return ops.where(self > 0, self * scale, low)

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.real(4, 3).T, 1.5, 0.7, 1.2)
        yield s(s.real())
        yield s(s.real(0, 3))


class elu_backward(Pointwise):
    """Gradient of elu from its input, or from its output if `is_result`."""
    schema = ("elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, "
              "bool is_result, Tensor self_or_result) -> Tensor")
    grad = {
        "grad_output": "elu_backward(grad, alpha, scale, input_scale, is_result, self_or_result)",
        "self_or_result":
            "elu_second(grad * grad_output, alpha, scale, input_scale, is_result, self_or_result)",
    }
    inplace = False
    method = False
    function = False

    def run(xp, grad_output, alpha, scale, input_scale, is_result, self_or_result):
        x = self_or_result
        if is_result:
            low = (x + alpha * scale) * input_scale
        else:
            low = xp.exp(x * input_scale) * (input_scale * alpha * scale)
        return grad_output * xp.where(x > 0, scale, low)

    def decomp(grad_output, alpha, scale, input_scale, is_result, self_or_result):
        x = self_or_result
        if is_result:
            low = (x + alpha * scale) * input_scale
        else:
            low = (x * input_scale).exp() * (input_scale * alpha * scale)
        return ops.where(x > 0, grad_output * scale, grad_output * low)

    def samples(s):
        for shape in ((3, 4), ()):
            yield s(s.real(*shape), 1.5, 0.7, 1.2, False, s.real(*shape))
            yield s(s.real(*shape), 1.5, 0.7, 1.2, True, s.real(*shape, low=-0.9))


class hardtanh(Pointwise):
    """Each element clamped to [min_val, max_val]."""
    schema = "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor"
    grad = {"self": "hardtanh_backward(grad, self, min_val, max_val)"}
    c = ("where({self} < {min_val}, {min_val}, "
         "where({self} > {max_val}, {max_val}, {self}))")
    method = False
    function = False
    namespace = "nn.functional"

    def run(xp, self, min_val, max_val):
        if self.dtype.kind == "b":
            raise DTypeError("Bool inputs not supported for hardtanh")
        refuse("clamp_scalar_cpu", self, "c")
        if self.dtype.kind == "u" and min(min_val, max_val) < 0:
            raise DTypeError("cannot do hardtanh on an unsigned type with negative limits")
        low, high = (xp.asarray(v, dtype=self.dtype) for v in (min_val, max_val))
        return xp.minimum(xp.maximum(self, low), high)

    def decomp(self, min_val=-1, max_val=1):
        return self.clamp(min_val, max_val)

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.real(4, 3).T, -0.5, 1.5)
        yield s(s.real())
        yield s(s.real(0, 3))


class hardtanh_backward(Pointwise):
    """The gradient where the value lies strictly between the bounds, else 0."""
    schema = ("hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val)"
              " -> Tensor")
    run = ("xp.where((self <= min_val) | (self >= max_val), "
           "xp.asarray(0, dtype=grad_output.dtype), grad_output)")
    grad = {"grad_output": "hardtanh_backward(grad, self, min_val, max_val)"}
    constant = ("self",)
    c = "where(({self} <= {min_val}) | ({self} >= {max_val}), 0, {grad_output})"
    inplace = False
    method = False
    function = False
    samples = backward_points(-0.5, 1.5)

    def decomp(grad_output, self, min_val, max_val):
        return grad_output.masked_fill((self <= min_val).logical_or(self >= max_val), 0)


_INV_SQRT2 = 1 / math.sqrt(2)
_SQRT_2_OVER_PI = math.sqrt(2 / math.pi)


class gelu(Pointwise):
    """x times the normal distribution function of x, exact or by a tanh approximation."""
    schema = "gelu(Tensor self, *, str approximate=\"none\") -> Tensor"
    grad = {"self": "gelu_backward(grad, self, approximate=approximate)"}
    method = False
    function = False
    namespace = "nn.functional"

    def run(xp, self, approximate):
        refuse("GeluKernelImpl", self, "biuc")
        if _approximates(approximate):
            return 0.5 * self * (1 + xp.tanh(_SQRT_2_OVER_PI * (self + 0.044715 * self * self * self)))
        return 0.5 * self * (1 + special(xp).erf(self * _INV_SQRT2))

    def decomp(self, approximate="none"):
        if _approximates(approximate):
            inner = (self + self * self * self * 0.044715) * _SQRT_2_OVER_PI
            return self * 0.5 * (inner.tanh() + 1)
        return self * 0.5 * ((self * _INV_SQRT2).erf() + 1)

    def samples(s):
        for approximate in ("none", "tanh"):
            yield s(s.real(3, 4), approximate=approximate)
            yield s(s.real(4, 3).T, approximate=approximate)
            yield s(s.real(), approximate=approximate)
            yield s(s.real(0, 3), approximate=approximate)


def _approximates(approximate: str) -> bool:
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return approximate == "tanh"


class gelu_backward(Pointwise):
    """Gradient of gelu: grad (cdf(x) + x pdf(x)), or the derivative of the tanh form."""
    schema = ("gelu_backward(Tensor grad_output, Tensor self, *, str approximate=\"none\")"
              " -> Tensor")
    grad = {
        "grad_output": "gelu_backward(grad, self, approximate=approximate)",
        "self": "gelu_second(grad * grad_output, self, approximate)",
    }
    inplace = False
    method = False
    function = False

    def run(xp, grad_output, self, approximate):
        x = self
        if _approximates(approximate):
            t = xp.tanh(_SQRT_2_OVER_PI * (x + 0.044715 * x * x * x))
            slope = _SQRT_2_OVER_PI * (1 + 3 * 0.044715 * x * x)
            return grad_output * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope)
        cdf = 0.5 * (1 + special(xp).erf(x * _INV_SQRT2))
        pdf = xp.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))
        return grad_output * (cdf + x * pdf)

    def decomp(grad_output, self, approximate="none"):
        x = self
        if _approximates(approximate):
            t = ((x + x * x * x * 0.044715) * _SQRT_2_OVER_PI).tanh()
            slope = (x * x * (3 * 0.044715) + 1) * _SQRT_2_OVER_PI
            return grad_output * ((t + 1) * 0.5 + x * 0.5 * (1 - t * t) * slope)
        cdf = ((x * _INV_SQRT2).erf() + 1) * 0.5
        pdf = (x * x * -0.5).exp() * (1 / math.sqrt(2 * math.pi))
        return grad_output * (cdf + x * pdf)

    def samples(s):
        for approximate in ("none", "tanh"):
            yield s(s.real(3, 4), s.real(3, 4), approximate=approximate)
            yield s(s.real(), s.real(), approximate=approximate)


class silu(Pointwise):
    """x sigmoid(x) of each element."""
    schema = "silu(Tensor self) -> Tensor"
    grad = {"self": "silu_backward(grad, self)"}
    c = "{self} * sigmoid({self})"
    method = False
    function = False
    namespace = "nn.functional"
    samples = points()

    def run(xp, self):
        refuse("silu_cpu", self, "biu")
        return self / (1 + xp.exp(-self))

    def decomp(self):
        return self * self.sigmoid()


class silu_backward(Pointwise):
    """Gradient of silu: grad s (1 + x (1 - s)), s = sigmoid(x)."""
    schema = "silu_backward(Tensor grad_output, Tensor self) -> Tensor"
    grad = {
        "grad_output": "silu_backward(grad, self)",
        "self": "silu_second(grad * grad_output, self)",
    }
    c = "{grad_output} * (sigmoid({self}) * (1 + {self} * (1 - sigmoid({self}))))"
    inplace = False
    method = False
    function = False
    samples = backward_points()

    def run(xp, grad_output, self):
        s = xp.reciprocal(xp.exp(-self) + 1)
        return grad_output * (s * (1 + self * (1 - s)))

    def decomp(grad_output, self):
        s = self.sigmoid()
        return grad_output * (s * (self * (1 - s) + 1))


class mish(Pointwise):
    """x tanh(softplus(x)) of each element."""
    schema = "mish(Tensor self) -> Tensor"
    grad = {"self": "mish_backward(grad, self)"}
    c = "{self} * tanh(where({self} > 20, {self}, log1p(exp({self}))))"
    method = False
    function = False
    namespace = "nn.functional"
    samples = points()

    def run(xp, self):
        refuse("mish_cpu", self, "biuc")
        return self * xp.tanh(xp.logaddexp(self, xp.asarray(0, dtype=self.dtype)))

    def decomp(self):
        return self * ops.softplus(self).tanh()


class mish_backward(Pointwise):
    """Gradient of mish: grad (t + x s (1 - t^2)), t = tanh(softplus(x)), s = sigmoid(x)."""
    schema = "mish_backward(Tensor grad_output, Tensor self) -> Tensor"
    grad = {
        "grad_output": "mish_backward(grad, self)",
        "self": "mish_second(grad * grad_output, self)",
    }
    inplace = False
    method = False
    function = False
    samples = backward_points()

    def run(xp, grad_output, self):
        t = xp.tanh(xp.logaddexp(self, xp.asarray(0, dtype=self.dtype)))
        s = xp.reciprocal(xp.exp(-self) + 1)
        return grad_output * (t + self * s * (1 - t * t))

    def decomp(grad_output, self):
        t = ops.softplus(self).tanh()
        return grad_output * (t + self * self.sigmoid() * (1 - t * t))


class softplus(Pointwise):
    """log(1 + exp(beta x)) / beta of each element; x itself above the threshold."""
    schema = "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor"
    grad = {"self": "softplus_backward(grad, self, beta, threshold)"}
    c = ("where({self} * {beta} > {threshold}, {self}, log1p(exp({self} * {beta})) / {beta})")
    method = False
    function = False
    namespace = "nn.functional"

    def run(xp, self, beta, threshold):
        refuse("softplus_cpu", self, "biuc")
        scaled = self * beta
        return xp.where(scaled > threshold, self, xp.log1p(xp.exp(scaled)) / beta)

    def decomp(self, beta=1, threshold=20):
        scaled = self * beta
        return ops.where(scaled > threshold, self, scaled.exp().log1p() / beta)

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.real(4, 3).T, 2, 1.5)
        yield s(s.real(), beta=0.5)
        yield s(s.real(0, 3))


class softplus_backward(Pointwise):
    """Gradient of softplus: grad sigmoid(beta x), the gradient itself above the threshold."""
    schema = ("softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold)"
              " -> Tensor")
    grad = {
        "grad_output": "softplus_backward(grad, self, beta, threshold)",
        "self": "softplus_second(grad * grad_output, self, beta, threshold)",
    }
    c = "where({self} * {beta} > {threshold}, {grad_output}, {grad_output} * sigmoid({self} * {beta}))"
    inplace = False
    method = False
    function = False
    samples = backward_points(2, 1.5)

    def run(xp, grad_output, self, beta, threshold):
        scaled = self * beta
        return xp.where(scaled > threshold, grad_output, grad_output / (xp.exp(-scaled) + 1))

    def decomp(grad_output, self, beta, threshold):
        scaled = self * beta
        return ops.where(scaled > threshold, grad_output, grad_output * scaled.sigmoid())


class log_sigmoid(Composite):
    """log(sigmoid(x)) of each element, without overflow."""
    schema = "log_sigmoid(Tensor self) -> Tensor"
    method = False
    function = False
    aliases = ("logsigmoid",)
    namespace = "nn.functional"
    samples = points()

    def compose(self):
        return ops.log_sigmoid_forward(self)[0]


class log_sigmoid_forward(Op):
    """log(sigmoid(x)) and exp(-|x|), which its gradient needs."""
    schema = "log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)"
    grad = {"self": "log_sigmoid_backward(grad, self, buffer)"}
    push = {"output": "log_sigmoid_backward(self_t, self_p, buffer)"}
    diff_outputs = (True, False)
    shape = "[self.shape, self.shape]"
    dtype = "[self.dtype, self.dtype]"
    cost = "cheap"
    method = False
    function = False
    samples = points()

    def run(xp, self):
        refuse("log_sigmoid_cpu", self, "biuc")
        buffer = xp.exp(-xp.abs(self))
        return xp.minimum(self, 0) - xp.log1p(buffer), buffer

    def batch(n, batched, self):
        return ops.log_sigmoid_forward(self)

    def decomp(self):
        buffer = (-self.abs()).exp()
        return self.clamp(max=0) - buffer.log1p(), buffer


class log_sigmoid_backward(Pointwise):
    """Gradient of log_sigmoid: grad sigmoid(-x)."""
    schema = "log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor"
    run = "grad_output / (xp.exp(self) + xp.ones_like(buffer))"  # the buffer's value is not needed
    grad = {
        "grad_output": "log_sigmoid_backward(grad, self, buffer)",
        "self": "-grad * grad_output * self.sigmoid() * (1 - self.sigmoid())",
    }
    c = "{grad_output} * sigmoid(-{self})"
    inplace = False
    method = False
    function = False

    def decomp(grad_output, self, buffer):
        return grad_output * (-self).sigmoid()

    def samples(s):
        for shape in ((3, 4), (), (0, 3)):
            x = s.real(*shape)
            yield s(s.real(*shape), x, (-x.abs()).exp().detach())


# ---------------------------------------------------------------------------------------------
# Rounding


def _between_integers(s):
    """Samples of a rounding operator, away from its jumps."""
    yield s(s.values([[-1.7, -0.4, 0.3], [1.2, 2.6, -2.3]]))
    yield s(s.values([[-1.7, -0.4, 0.3], [1.2, 2.6, -2.3]]).T)
    yield s(s.values(0.8))
    yield s(s.real(0, 3))


def _rounding(name: str):
    """Kernel of a rounding operator: integers are their own rounding."""

    def run(xp, self):
        refuse(f"{name}_vml_cpu", self, "bc")
        if self.dtype.kind in "iu":
            return self.copy()
        return getattr(xp, name if name != "round" else "rint")(self)

    return run


class floor(Pointwise):
    """Largest integer not above each element."""
    schema = "floor(Tensor self) -> Tensor"
    ufunc = "floor"
    run = _rounding("floor")
    constant = ("self",)
    c = "floor({self})"
    samples = _between_integers


class ceil(Pointwise):
    """Smallest integer not below each element."""
    schema = "ceil(Tensor self) -> Tensor"
    ufunc = "ceil"
    run = _rounding("ceil")
    constant = ("self",)
    c = "ceil({self})"
    samples = _between_integers


class trunc(Pointwise):
    """The integer part of each element."""
    schema = "trunc(Tensor self) -> Tensor"
    ufunc = "trunc"
    run = _rounding("trunc")
    constant = ("self",)
    c = "trunc({self})"
    aliases = ("fix",)
    samples = _between_integers


class round_default(Pointwise):
    """Nearest integer of each element; halves go to the even one."""
    schema = "round(Tensor self) -> Tensor"
    ufunc = "rint"
    run = _rounding("round")
    constant = ("self",)
    c = "rint({self})"
    aliases = ("special_round",)
    samples = _between_integers


class round_decimals(Pointwise):
    """Each element rounded to a number of decimals."""
    schema = "round.decimals(Tensor self, *, int decimals) -> Tensor"
    constant = ("self",)

    def run(xp, self, decimals):
        refuse("round_cpu", self, "biuc")
        scale = 10.0 ** abs(decimals)
        return xp.rint(self * scale) / scale if decimals >= 0 else xp.rint(self / scale) * scale

    def decomp(self, decimals):
        scale = 10.0 ** abs(decimals)
        return (self * scale).round() / scale if decimals >= 0 else (self / scale).round() * scale

    def samples(s):
        yield s(s.values([[-1.72, -0.41, 0.33], [1.28, 2.66, -2.37]]), decimals=1)
        yield s(s.values([-172.0, 38.0]), decimals=-1)
        yield s(s.real(0, 3), decimals=0)


class frac(Pointwise):
    """Each element without its integer part."""
    schema = "frac(Tensor self) -> Tensor"
    grad = {"self": "grad"}
    c = "{self} - trunc({self})"
    samples = _between_integers

    def run(xp, self):
        refuse("frac_cpu", self, "biuc")
        return self - xp.trunc(self)

    def decomp(self):
        return self - self.trunc()


# ---------------------------------------------------------------------------------------------
# Tests of each element, logic, repair


class isnan(Pointwise):
    """Whether each element is NaN."""
    schema = "isnan(Tensor self) -> Tensor"
    promote = "bool"
    run = "xp.isnan(self)"
    nondiff = ("self",)
    c = "{self} != {self}"
    complex = True
    inplace = False
    samples = points()


class isinf(Pointwise):
    """Whether each element is infinite."""
    schema = "isinf(Tensor self) -> Tensor"
    promote = "bool"
    run = "xp.isinf(self)"
    nondiff = ("self",)
    c = "fabs({self}) == INFINITY"
    complex = True
    inplace = False
    samples = points()


class isfinite(Pointwise):
    """Whether each element is neither infinite nor NaN."""
    schema = "isfinite(Tensor self) -> Tensor"
    promote = "bool"
    run = "xp.isfinite(self)"
    nondiff = ("self",)
    c = "fabs({self}) < INFINITY"
    complex = True
    inplace = False
    samples = points()

    def decomp(self):
        if not self.dtype.is_inexact:
            return ops.full_like(self, True, dtype=dt.bool_)
        return self.abs() < math.inf


class logical_not(Pointwise):
    """Whether each element is zero."""
    schema = "logical_not(Tensor self) -> Tensor"
    promote = "bool"
    run = "self == 0"  # CuPy's logical_not takes no complex numbers
    nondiff = ("self",)
    c = "{self} == 0"
    complex = True
    samples = points()


class bitwise_not(Pointwise):
    """Each integer with all bits inverted; negation of a bool."""
    schema = "bitwise_not(Tensor self) -> Tensor"
    nondiff = ("self",)

    def run(xp, self):
        refuse("bitwise_not_cpu", self, "fc")
        return xp.invert(self)

    def samples(s):
        yield s(s.int(3, 4))
        yield s(s.bool(3))
        yield s(s.int())


class nan_to_num(Pointwise):
    """Each element with NaN and infinities replaced by numbers."""
    ordered = False
    schema = ("nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None)"
              " -> Tensor")
    grad = {"self": "grad * self.isfinite()"}

    def run(xp, self, nan, posinf, neginf):
        if self.dtype.kind in "biu":
            return self.copy()
        return xp.nan_to_num(self, copy=True, nan=0.0 if nan is None else nan,
                             posinf=posinf, neginf=neginf)

    def decomp(self, nan=None, posinf=None, neginf=None):
        if not self.dtype.is_inexact:
            return self.clone()
        if self.is_complex():
            parts = [ops.nan_to_num(p, nan, posinf, neginf) for p in (self.real, self.imag)]
            return ops.complex(*parts)
        limits = dt.finfo(self.dtype)
        out = self.masked_fill(self.isnan(), 0.0 if nan is None else nan)
        out = out.masked_fill(self == math.inf, limits.max if posinf is None else posinf)
        return out.masked_fill(self == -math.inf, limits.min if neginf is None else neginf)

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.values([1.0, math.nan, math.inf, -math.inf]), nan=2.0, posinf=3.0, neginf=4.0)
        yield s(s.real())
        yield s(s.real(0, 3))


# ---------------------------------------------------------------------------------------------
# Complex numbers


class conj(Composite):
    """Complex conjugate of each element; a real tensor itself."""
    schema = "conj(Tensor(a) self) -> Tensor(a)"
    complex = True
    samples = points()

    def compose(self):
        return ops._conj(self) if self.is_complex() else self


class conj_lazy(Pointwise):
    """Complex conjugate of each element."""
    schema = "_conj(Tensor(a) self) -> Tensor(a)"  # a copy here in spite of the alias marks
    run = "xp.conj(self)"
    grad = {"self": "grad.conj()"}
    push = "self_t.conj()"
    complex = True
    inplace = False
    samples = points()


class conj_physical(Composite):
    """Complex conjugate of each element, never a view."""
    schema = "conj_physical(Tensor self) -> Tensor"
    complex = True
    inplace = True
    samples = points()

    def compose(self):
        return ops._conj_physical(self) if self.is_complex() else self


class conj_physical_kernel(Pointwise):
    """Complex conjugate of each element, never a view."""
    schema = "_conj_physical(Tensor self) -> Tensor"
    run = "xp.conj(self)"
    grad = {"self": "grad.conj()"}
    push = "self_t.conj()"
    complex = True
    inplace = False
    samples = points()


class real(Composite):
    """Real part of each element, a view; a real tensor itself."""
    schema = "real(Tensor(a) self) -> Tensor(a)"
    method = False  # an attribute of tensors
    complex = True
    samples = points()

    def compose(self):
        return ops.view_as_real(self).select(-1, 0) if self.is_complex() else self


class imag(Composite):
    """Imaginary part of each element, a view."""
    schema = "imag(Tensor(a) self) -> Tensor(a)"
    method = False  # an attribute of tensors
    complex = True

    def compose(self):
        if not self.is_complex():
            raise DTypeError("imag is not implemented for tensors with non-complex dtypes.")
        return ops.view_as_real(self).select(-1, 1)

    def samples(s):
        if s.real().is_complex():
            yield from points()(s)


class angle(Pointwise):
    """Phase of each element: for a real one 0, or pi where it is negative."""
    schema = "angle(Tensor self) -> Tensor"
    promote = "keep"  # complex numbers give real ones, integers the default float
    dtype = "self.dtype.to_real() if self.dtype.is_inexact else dt.default()"
    grad = {"self": "angle_pullback(grad, self)"}
    push = "angle_push(self_p, self_t)"
    complex = True
    inplace = False
    samples = points()

    def run(xp, self):
        if self.dtype.kind == "c":
            return xp.angle(self)
        if self.dtype.kind == dt.FOREIGN:
            return xp.angle(self.astype(xp.complex64)).astype(xp.float16)
        if self.dtype.kind in "biu":
            self = self.astype(dt.default().np)
        phase = xp.where(self < 0, math.pi, 0).astype(self.dtype)
        return xp.where(xp.isnan(self), self, phase)

    def decomp(self):
        if self.is_complex():
            return ops.atan2(self.imag, self.real)
        dtype = self.dtype if self.dtype.is_inexact else dt.default()
        zero = ops.zeros_like(self, dtype=dtype)
        return zero.masked_fill(self < 0, math.pi).masked_fill(self.isnan(), math.nan)
