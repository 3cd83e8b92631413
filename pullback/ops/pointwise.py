"""Operators on each element of one tensor: the table entries of exp, tanh, erf ...

Formulas longer than a line are in `formulas/pointwise.py`.  Read next: `nonlinear.py` (activations),
`rounding.py`, `complex_parts.py`, `binary.py` (operators on two or three tensors).
"""

from __future__ import annotations

import math

from ..array import dtype as dt
from ..array import elementary
from ..array.dtype import title
from ..array.xp import special
from ..core.op import Composite, Pointwise
from ..errors import DTypeError
from ..table.packets import ops
from .kinds import ComplexComposite

# ---------------------------------------------------------------------------------------------
# What the kernels share


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


def points_with(*rest):
    """Samples of a function with defaults, which one of the calls replaces."""

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.real(4, 3).T, *rest)
        yield s(s.real())
        yield s(s.real(0, 3))

    return samples


class Function(Pointwise):
    """A function of a real number; integers become floats."""

    promote = "float"
    samples = points()


class ComplexFunction(Function):
    """A function of a real or a complex number."""

    complex = True


class FormulaFunction(Function):
    """A function that derivatives of others need; PyTorch has none like it."""

    kept = "function"
    inplace = method = function = False


class DerivativeOfOrder(FormulaFunction):
    """A derivative of a function, of the order that an argument says."""

    ordered = False


class Backward(Pointwise):
    """A derivative of its own in PyTorch's table, which programs see only in graphs."""

    inplace = False
    method = function = False


class PiecewiseBackward(Backward):
    """That of straight pieces: the gradient times a number that the piece has."""

    tags = ()
    constant = ("self",)


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
    lower = "pointwise.unary('neg', False)"
    core = True
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
    tags = ("pointwise",)
    samples = points()

    def compose(self):
        if self.dtype is dt.bool_:
            raise DTypeError("The `+` operator, on a bool tensor is not supported.")
        return self


class reciprocal(ComplexFunction):
    """One divided by each element."""
    schema = "reciprocal(Tensor self) -> Tensor"
    cure = "keep the argument away from 0: 1 / where(x == 0, 1, x)"
    lower = "pointwise.unary('recip')"
    core = True
    run = "xp.reciprocal(self)"
    grad = {"self": "-grad * (result * result).conj()"}
    c = "1 / {self}"
    samples = points(0.3, 2)


class sqrt(ComplexFunction):
    """Square root of each element."""
    schema = "sqrt(Tensor self) -> Tensor"
    cure = "keep the argument away from negative numbers: sqrt(x.clamp(min=0))"
    lower = "pointwise.unary('sqrt')"
    core = True
    run = "xp.sqrt(self)"
    grad = {"self": "grad / (2 * result.conj())"}
    c = "sqrt({self})"
    samples = points(0.3, 2)


class rsqrt(ComplexFunction):
    """One divided by the square root of each element."""
    schema = "rsqrt(Tensor self) -> Tensor"
    cure = "keep the argument away from 0: rsqrt(x + eps)"
    lower = "pointwise.unary('rsqrt')"
    core = True
    run = "xp.reciprocal(xp.sqrt(self))"
    grad = {"self": "-0.5 * grad * result.pow(3).conj()"}
    c = "rsqrt({self})"
    samples = points(0.3, 2)


class square(ComplexComposite):
    """Each element times itself."""
    schema = "square(Tensor self) -> Tensor"
    tags = ("pointwise",)
    inplace = True
    samples = points()

    def compose(self):
        return self.pow(2)


class abs_default(Pointwise):
    """Absolute value of each element; modulus of a complex one."""
    schema = "abs(Tensor self) -> Tensor"
    lower = "pointwise.unary('abs', False)"
    core = True
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
    lower = "pointwise.unary('sign', False)"
    core = True
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


class exp(ComplexFunction):
    """e to the power of each element."""
    schema = "exp(Tensor self) -> Tensor"
    cure = "it overflows: subtract the maximum first; softmax, logsumexp and softplus do"
    lower = "pointwise.unary('exp')"
    core = True
    run = elementary.exp
    grad = {"self": "grad * result.conj()"}
    c = "exp({self})"


class exp2(ComplexFunction):
    """Two to the power of each element."""
    schema = "exp2(Tensor self) -> Tensor"
    lower = "pointwise.unary('exp2')"
    grad = {"self": "grad * result.conj() * math.log(2)"}
    c = "exp2({self})"
    aliases = ("special_exp2",)

    def run(xp, self):
        if self.dtype.kind == "c":
            return xp.exp(self * math.log(2))
        return elementary.exp2(xp, self)

    def decomp(self):
        return ops.pow(2.0, self)


class expm1(ComplexFunction):
    """exp(x) - 1 of each element, exact near zero."""
    schema = "expm1(Tensor self) -> Tensor"
    lower = "pointwise.unary('expm1')"
    core = True
    run = elementary.expm1
    grad = {"self": "grad * (result + 1).conj()"}
    c = "expm1({self})"
    aliases = ("special_expm1",)


class _Logarithm(ComplexFunction):
    cure = "keep the argument away from 0: log(x.clamp(min=eps)), or log1p(x) for log(1 + x)"
    core = True
    samples = points(0.3, 3)


class log(_Logarithm):
    """Natural logarithm of each element."""
    schema = "log(Tensor self) -> Tensor"
    lower = "pointwise.unary('log')"
    run = elementary.log
    grad = {"self": "grad / self.conj()"}
    c = "log({self})"


class log2(_Logarithm):
    """Logarithm to base 2 of each element."""
    schema = "log2(Tensor self) -> Tensor"
    run = elementary.log2
    grad = {"self": "grad / (self.conj() * math.log(2))"}
    lower = "pointwise.unary('log2')"
    c = "log2({self})"


class log10(_Logarithm):
    """Logarithm to base 10 of each element."""
    schema = "log10(Tensor self) -> Tensor"
    run = elementary.log10
    grad = {"self": "grad / (self.conj() * math.log(10))"}
    lower = "pointwise.unary('log10')"
    c = "log10({self})"


class log1p(ComplexFunction):
    """log(1 + x) of each element, exact near zero."""
    schema = "log1p(Tensor self) -> Tensor"
    lower = "pointwise.unary('log1p')"
    core = True
    run = elementary.log1p
    grad = {"self": "grad / (self + 1).conj()"}
    c = "log1p({self})"
    aliases = ("special_log1p",)
    samples = points(-0.6, 3)


# ---------------------------------------------------------------------------------------------
# Trigonometric and hyperbolic functions


class sin(ComplexFunction):
    """Sine of each element."""
    schema = "sin(Tensor self) -> Tensor"
    lower = "pointwise.unary('sin')"
    core = True
    run = elementary.sin
    grad = {"self": "grad * self.cos().conj()"}
    c = "sin({self})"


class cos(ComplexFunction):
    """Cosine of each element."""
    schema = "cos(Tensor self) -> Tensor"
    lower = "pointwise.unary('cos')"
    core = True
    run = elementary.cos
    grad = {"self": "grad * -self.sin().conj()"}
    c = "cos({self})"


class tan(ComplexFunction):
    """Tangent of each element."""
    schema = "tan(Tensor self) -> Tensor"
    lower = "pointwise.unary('tan')"
    core = True
    run = elementary.tan
    grad = {"self": "grad * (1 + result * result).conj()"}
    c = "tan({self})"
    samples = points(-1, 1)


class asin(ComplexFunction):
    """Angle whose sine is the element."""
    schema = "asin(Tensor self) -> Tensor"
    core = True
    run = elementary.asin
    c = "asin({self})"
    grad = {"self": "grad * (1 - self * self).rsqrt().conj()"}
    aliases = ("arcsin",)
    samples = points(-0.9, 0.9)


class acos(ComplexFunction):
    """Angle whose cosine is the element."""
    schema = "acos(Tensor self) -> Tensor"
    core = True
    run = elementary.acos
    c = "acos({self})"
    grad = {"self": "grad * -(1 - self * self).rsqrt().conj()"}
    aliases = ("arccos",)
    samples = points(-0.9, 0.9)


class atan(ComplexFunction):
    """Angle whose tangent is the element."""
    schema = "atan(Tensor self) -> Tensor"
    core = True
    run = elementary.atan
    c = "atan({self})"
    grad = {"self": "grad / (self * self + 1).conj()"}
    aliases = ("arctan",)
    samples = points(-0.9, 0.9)


class sinh(ComplexFunction):
    """Hyperbolic sine of each element."""
    schema = "sinh(Tensor self) -> Tensor"
    core = True
    run = elementary.sinh
    c = "sinh({self})"
    grad = {"self": "grad * self.cosh().conj()"}


class cosh(ComplexFunction):
    """Hyperbolic cosine of each element."""
    schema = "cosh(Tensor self) -> Tensor"
    core = True
    run = elementary.cosh
    c = "cosh({self})"
    grad = {"self": "grad * self.sinh().conj()"}


class tanh(ComplexFunction):
    """Hyperbolic tangent of each element."""
    schema = "tanh(Tensor self) -> Tensor"
    lower = "pointwise.unary('tanh')"
    core = True
    run = elementary.tanh
    grad = {"self": "tanh_backward(grad, result)"}
    c = "tanh({self})"


class tanh_backward(Pointwise):
    """Gradient of tanh from the gradient of its output and the output."""
    schema = "tanh_backward(Tensor grad_output, Tensor output) -> Tensor"
    ahead = True
    lower = "composite.tanh_backward"
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
    method = function = False
    samples = backward_points(low=-0.9, high=0.9)

    def decomp(grad_output, output):
        return grad_output * (1 - output * output).conj()


class asinh(ComplexFunction):
    """Number whose hyperbolic sine is the element."""
    schema = "asinh(Tensor self) -> Tensor"
    core = True
    run = elementary.asinh
    c = "asinh({self})"
    grad = {"self": "grad * (self * self + 1).rsqrt().conj()"}
    aliases = ("arcsinh",)
    samples = points(-0.9, 0.9)


class acosh(ComplexFunction):
    """Number whose hyperbolic cosine is the element."""
    schema = "acosh(Tensor self) -> Tensor"
    cure = "keep the argument above 1"
    core = True
    run = elementary.acosh
    c = "acosh({self})"
    grad = {"self": "grad * acosh_slope(self).conj()"}
    aliases = ("arccosh",)
    samples = points(1.2, 3)


class atanh(ComplexFunction):
    """Number whose hyperbolic tangent is the element."""
    schema = "atanh(Tensor self) -> Tensor"
    cure = "keep the argument inside of (-1, 1)"
    core = True
    run = elementary.atanh
    c = "atanh({self})"
    grad = {"self": "grad / (1 - self * self).conj()"}
    aliases = ("arctanh",)
    samples = points(-0.9, 0.9)


class deg2rad(Function):
    """Degrees as radians."""
    schema = "deg2rad(Tensor self) -> Tensor"
    run = "self * (math.pi / 180)"
    grad = {"self": "grad * (math.pi / 180)"}
    c = "{self} * 0.017453292519943295"
    samples = points(-90, 90)

    def decomp(self):
        return self * (math.pi / 180)


class rad2deg(Function):
    """Radians as degrees."""
    schema = "rad2deg(Tensor self) -> Tensor"
    run = "self * (180 / math.pi)"
    grad = {"self": "grad * (180 / math.pi)"}
    c = "{self} * 57.29577951308232"

    def decomp(self):
        return self * (180 / math.pi)


# ---------------------------------------------------------------------------------------------
# Special functions


class erf(Function):
    """Error function of each element."""
    schema = "erf(Tensor self) -> Tensor"
    lower = "pointwise.unary('erf')"
    core = True
    grad = {"self": "2 / math.sqrt(math.pi) * (-self * self).exp() * grad"}
    c = "erf({self})"
    aliases = ("special_erf",)

    def run(xp, self):
        refuse("erf_vml_cpu", self, "c")
        return elementary.erf(xp, self)


class erfc(Function):
    """1 - erf of each element, exact where erf is near one."""
    schema = "erfc(Tensor self) -> Tensor"
    kept = "function"
    grad = {"self": "-2 / math.sqrt(math.pi) * (-self * self).exp() * grad"}
    aliases = ("special_erfc",)

    def run(xp, self):
        refuse("erfc_vml_cpu", self, "c")
        return special(xp).erfc(self)


class erfinv(Function):
    """Number whose error function is the element."""
    schema = "erfinv(Tensor self) -> Tensor"
    kept = "function"
    # not by the result, which may be written afterwards
    grad = {"self": "0.5 * math.sqrt(math.pi) * self.erfinv().pow(2).exp() * grad"}
    aliases = ("special_erfinv",)
    samples = points(-0.9, 0.9)

    def run(xp, self):
        refuse("erfinv_vml_cpu", self, "c")
        if self.dtype == xp.float32:  # SciPy's own is off by 3 units in the last place
            return special(xp).erfinv(self.astype(xp.float64)).astype(xp.float32)
        return special(xp).erfinv(self)


def log_gamma(xp, x):
    """log |gamma(x)|, infinite at both ends."""
    out = special(xp).gammaln(x)
    return xp.where(out == -math.inf, math.inf, out)  # versions of SciPy differ at -inf


class lgamma(Function):
    """Logarithm of the absolute value of the gamma function."""
    schema = "lgamma(Tensor self) -> Tensor"
    kept = "function"
    grad = {"self": "grad * self.digamma()"}
    aliases = ("special_gammaln",)
    samples = points(0.3, 4)

    def run(xp, self):
        refuse("lgamma_vml_cpu", self, "c")
        return log_gamma(xp, self)


class digamma(Function):
    """Derivative of `lgamma`."""
    schema = "digamma(Tensor self) -> Tensor"
    kept = "function"
    grad = {"self": "grad * polygamma(1, self)"}
    aliases = ("special_digamma", "special_psi")
    samples = points(0.3, 4)

    def run(xp, self):
        refuse("digamma", self, "c")
        # at a pole, the two zeros have opposite infinities and the negative integers have no limit
        pole = xp.where(self == 0, xp.copysign(math.inf, -self), math.nan)
        at_pole = (self <= 0) & (self == xp.floor(self))
        return xp.where(at_pole, pole, special(xp).digamma(self))


class polygamma(Function):
    """The n-th derivative of `digamma`."""
    schema = "polygamma(int n, Tensor self) -> Tensor"
    kept = "function"
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


class polygamma_(Composite):
    """`polygamma` in place."""
    schema = "polygamma_(Tensor(a!) self, int n) -> Tensor(a!)"
    function = False

    def compose(self, n):
        return self.copy_(ops.polygamma(n, self.clone()))
