"""Special functions: the normal distribution, gamma functions, logarithms of two arguments.

Where a derivative is not an operator of PyTorch's, it is a private one here (`_bessel_j` of any
order, `_sinc_order` ...): a member of a family that is closed under differentiation.  So every
order is exact, at zero and for large arguments too, where the textbook quotients and differences
are not.  The kernels of these families are in `special_kernels.py`, formulas longer than a line in
`formulas/special.py`; `tools/accuracy.py` compares all of this with arbitrary-precision
arithmetic.  Read next: `bessel.py`, `orthogonal_polynomials.py`,
`numbers.py`, `scans.py`.
"""

from __future__ import annotations

import math

from ..array import dtype as dt
from ..array.xp import special
from ..core.op import Pointwise
from ..table.packets import ops
from . import special_kernels as kernels
from .kinds import ComplexComposite, ComplexFree
from .pointwise import DerivativeOfOrder, FormulaFunction, Function, log_gamma, points, refuse

# ---------------------------------------------------------------------------------------------
# What the entries share


def scipy_kernel(name: str, argument: str = "self", label: str = ""):
    """Kernel of a real function of one argument that the library of special functions has."""

    def run(xp, x):
        refuse(label or f"{name}_cpu", x, "c")
        return getattr(special(xp), name)(x)

    return run


def pairs(low1: float, high1: float, low2: float, high2: float):
    """Samples of a function of two arguments from the given ranges, edge shapes included."""

    def samples(s):
        def first(*shape):
            return s.real(*shape, low=low1, high=high1)

        def second(*shape):
            return s.real(*shape, low=low2, high=high2)

        yield s(first(3, 4), second(3, 4))
        yield s(first(4, 3).T, second(4))
        yield s(first(3, 1), second())
        yield s(first(), second())
        yield s(first(0, 3), second(3))

    return samples


def first_with(*rest, low: float = -2.0, high: float = 2.0):
    """Samples of an operator of one tensor and the given further arguments."""

    def samples(s):
        yield s(s.real(3, 4, low=low, high=high), *rest)
        yield s(s.real(4, 3, low=low, high=high).T, *rest)
        yield s(s.real(low=low, high=high), *rest)
        yield s(s.real(0, 3, low=low, high=high), *rest)

    return samples


def around_zero(*rest):
    """Samples of an odd or even function with values on both sides of zero, and zero itself."""

    def samples(s):
        yield s(s.values([[-2.5, -0.3, 0.0, 1e-5], [4.0, -1e-3, 0.7, 9.0]]), *rest)
        yield s(s.real(4, 3).T, *rest)
        yield s(s.values(0.0), *rest)
        yield s(s.real(0, 3), *rest)

    return samples


class Special(Function):
    """A function that is offered in `pullback.special` alone."""

    inplace = method = False


# ---------------------------------------------------------------------------------------------
# The normal distribution


class special_ndtr(Special):
    """Probability that a standard normal variable is below each element."""

    schema = "special_ndtr(Tensor self) -> Tensor"
    tags = ()
    run = scipy_kernel("ndtr")
    grad = {"self": "grad * (self * self * -0.5).exp() * (1 / math.sqrt(2 * math.pi))"}
    samples = points(-3, 3)

    def decomp(self):
        if not self.dtype.is_inexact:
            self = self.to(dt.default())
        return ops.erfc(self * -math.sqrt(0.5)) * 0.5


class special_log_ndtr(Special):
    """Logarithm of `special_ndtr`, exact far below zero."""

    schema = "special_log_ndtr(Tensor self) -> Tensor"
    run = scipy_kernel("log_ndtr")
    grad = {"self": "grad * _normal_hazard(self)"}
    samples = points(-3, 3)

    def decomp(self):
        if not self.dtype.is_inexact:
            self = self.to(dt.default())
        t = self * math.sqrt(0.5)  # far below zero erfc vanishes, but not its scaled form
        below = (ops.special_erfcx(-t) * 0.5).log() - t * t
        return ops.where(self < 1, below, ops.log1p(ops.erfc(t) * -0.5))


class normal_hazard(FormulaFunction):
    """Derivative of `special_log_ndtr`: density divided by probability."""

    schema = "_normal_hazard(Tensor self) -> Tensor"
    # h' = -h (x + h), and x + h is sqrt(2) times the ratio: no cancellation for negative x
    grad = {"self": "-grad * result * math.sqrt(2) * _erfcx_ratio(self * -math.sqrt(0.5), 1)"}
    samples = points(-3, 3)

    def run(xp, self):
        return kernels.normal_hazard(xp, self)


class special_ndtri(Special):
    """Number below which a standard normal variable is with the given probability."""

    schema = "special_ndtri(Tensor self) -> Tensor"
    kept = "function"
    run = scipy_kernel("ndtri")
    grad = {"self": "grad * (result * result * 0.5).exp() * math.sqrt(2 * math.pi)"}
    samples = points(0.1, 0.9)


class special_erfcx(Special):
    """exp(x^2) erfc(x) of each element, without underflow."""

    schema = "special_erfcx(Tensor self) -> Tensor"
    kept = "function"
    run = scipy_kernel("erfcx")
    grad = {"self": "-2 * grad * _erfcx_integral(self, 1)"}
    samples = points(-2, 3)


class erfcx_integral(FormulaFunction):
    """exp(x^2) times the n-fold integral of erfc from x to infinity."""

    schema = "_erfcx_integral(Tensor self, int n) -> Tensor"
    grad = {"self": "-2 * (n + 1) * grad * _erfcx_integral(self, n + 1)"}
    samples = first_with(1, high=3)

    def run(xp, self, n):
        return kernels.erfcx_integral(xp, self, n)


class erfcx_ratio(FormulaFunction):
    """The n-fold integral of erfc divided by the (n-1)-fold one."""

    schema = "_erfcx_ratio(Tensor self, int n) -> Tensor"
    grad = {"self": "2 * grad * result * (n * result - (n + 1) * _erfcx_ratio(self, n + 1))"}
    samples = first_with(1, high=3)

    def run(xp, self, n):
        return kernels.erfcx_ratios(xp, self, n)[-1]


class special_entr(Special):
    """-x log(x) of each element: 0 at 0, -inf below."""

    schema = "special_entr(Tensor self) -> Tensor"
    run = scipy_kernel("entr")
    grad = {"self": "-grad * (self.log() + 1)"}
    samples = points(0.2, 3)

    def decomp(self):
        if not self.dtype.is_inexact:
            self = self.to(dt.default())
        value = -ops.xlogy(self, self)
        return value.masked_fill(self < 0, -math.inf)


# ---------------------------------------------------------------------------------------------
# Gamma functions


class mvlgamma(Function):
    """Logarithm of the multivariate gamma function of dimension p."""

    schema = "mvlgamma(Tensor self, int p) -> Tensor"
    grad = {"self": "grad * multivariate_digamma(self, p)"}
    aliases = ("special_multigammaln",)

    def run(xp, self, p):
        refuse("mvlgamma", self, "c")
        if p < 1:
            raise RuntimeError("p has to be greater than or equal to 1")
        total = sum(log_gamma(xp, self - i / 2) for i in range(p))
        return total + p * (p - 1) / 4 * math.log(math.pi)

    def decomp(self, p):
        if p < 1:
            raise RuntimeError("p has to be greater than or equal to 1")
        dtype = self.dtype if self.dtype.is_inexact else dt.default()
        # rounded halves may be poles that the numbers are not
        self = self.to(dt.float32 if dtype.itemsize == 2 else dtype)
        total = (self - 0.0).lgamma()
        for i in range(1, p):
            total = total + (self - i / 2).lgamma()
        return (total + p * (p - 1) / 4 * math.log(math.pi)).to(dtype)

    def samples(s):
        for p in (1, 3):
            yield s(s.real(3, 4, low=1.3, high=4), p)
            yield s(s.real(4, 3, low=1.3, high=4).T, p)
            yield s(s.real(low=1.3, high=4), p)
            yield s(s.real(0, 3, low=1.3, high=4), p)


def _incomplete(name: str):
    """Kernel of an incomplete gamma function."""

    def run(xp, self, other):
        refuse(f"{'igammac' if name.endswith('cc') else 'igamma'}_cpu", self, "biuc")
        return getattr(special(xp), name)(self, other)

    return run


class igamma(Pointwise):
    """Lower regularized incomplete gamma function P(a, x)."""

    schema = "igamma(Tensor self, Tensor other) -> Tensor"
    kept = "function"
    run = _incomplete("gammainc")
    grad = {
        "self": "grad * _igamma_order(self, other, 1)",
        "other": "grad * _gamma_density(self, other, 0)",
    }
    aliases = ("special_gammainc",)
    samples = pairs(0.4, 4, 0.3, 5)


class igammac(Pointwise):
    """Upper regularized incomplete gamma function Q(a, x) = 1 - P(a, x)."""

    schema = "igammac(Tensor self, Tensor other) -> Tensor"
    kept = "function"
    run = _incomplete("gammaincc")
    grad = {
        "self": "-grad * _igamma_order(self, other, 1)",
        "other": "-grad * _gamma_density(self, other, 0)",
    }
    aliases = ("special_gammaincc",)
    samples = pairs(0.4, 4, 0.3, 5)


class igamma_order(DerivativeOfOrder):
    """Derivative of some order of `igamma` by its first argument."""

    schema = "_igamma_order(Tensor self, Tensor other, int order) -> Tensor"
    grad = {
        "self": "grad * _igamma_order(self, other, order + 1)",
        "other": "grad * _gamma_density(self, other, order)",
    }
    cost = "heavy"

    def run(xp, self, other, order):
        return kernels.igamma_order(xp, self, other, order)

    def samples(s):
        for order in (1, 2):
            yield s(s.real(3, 4, low=0.4, high=4), s.real(4, low=0.3, high=5), order)
            yield s(s.values([0.5, 8.0, 30.0, 30.0]), s.values([0.01, 6.0, 24.0, 37.0]), order)
        yield s(s.real(low=0.4, high=4), s.real(low=0.3, high=5), 1)
        yield s(s.real(0, 3), s.real(3), 1)


class gamma_density(DerivativeOfOrder):
    """Derivative of some order by a of x^(a-1) exp(-x) / Gamma(a), for every real a."""

    schema = "_gamma_density(Tensor self, Tensor other, int order) -> Tensor"
    grad = {
        "self": "grad * _gamma_density(self, other, order + 1)",
        "other": "grad * (_gamma_density(beside(self, grad) - 1, other, order)"
        " - _gamma_density(self, other, order))",
    }

    def run(xp, self, other, order):
        return kernels.gamma_density(xp, self, other, order)

    def samples(s):
        for order in (0, 1, 2):
            yield s(s.real(3, 4, low=0.4, high=4), s.real(4, low=0.3, high=5), order)
            yield s(s.values([-1.5, 1.0, 12.0, 30.0]), s.values([0.4, 6.0, 12.0, 27.0]), order)
        yield s(s.real(low=0.4, high=4), s.real(low=0.3, high=5), 0)
        yield s(s.real(0, 3), s.real(3), 0)


class special_zeta(Special):
    """Hurwitz zeta function: the sum over k >= 0 of (q + k)^(-s)."""

    schema = "special_zeta(Tensor self, Tensor other) -> Tensor"
    kept = "function"
    grad = {
        "self": "grad * _zeta_order(self, other, 1)",
        "other": "-grad * self * special_zeta(self + 1, other)",
    }
    samples = pairs(1.5, 5, 0.4, 5)

    def run(xp, self, other):
        return _zeta(xp, self, other)


def _zeta(xp, self, other):
    refuse("zeta_cpu", xp.asarray(self), "c")
    return special(xp).zeta(self, other)


class special_zeta_self_scalar(Special):
    """Hurwitz zeta function of a number s."""

    schema = "special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor"
    kept = "function"
    promotes = ("self", "other")
    grad = {"other": "-grad * self * special_zeta(self + 1, other)"}
    run = _zeta

    def samples(s):
        yield s(2.5, s.real(3, 4, low=0.4, high=5))
        yield s(3, s.real(low=0.4, high=5))
        yield s(2, s.real(0, 3, low=0.4, high=5))


class special_zeta_other_scalar(Special):
    """Hurwitz zeta function with a number q."""

    schema = "special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor"
    kept = "function"
    promotes = ("self", "other")
    grad = {"self": "grad * _zeta_order(self, other, 1)"}
    run = _zeta
    samples = first_with(1.5, low=1.4, high=5)


class zeta_order(DerivativeOfOrder):
    """Derivative of some order of the Hurwitz zeta function by its first argument."""

    schema = "_zeta_order(Tensor self, Tensor other, int order) -> Tensor"
    scalars = ("other",)
    grad = {
        "self": "grad * _zeta_order(self, other, order + 1)",
        "other": "-grad * (order * _zeta_order(self + 1, other, order - 1)"
        " + self * _zeta_order(self + 1, other, order))",
    }

    def run(xp, self, other, order):
        return kernels.zeta_order(xp, self, other, order)

    def samples(s):
        for order in (1, 2):
            yield s(s.real(3, 4, low=1.5, high=5), s.real(4, low=0.4, high=5), order)
        yield s(s.real(low=1.5, high=5), s.real(low=0.4, high=5), 1)
        yield s(s.real(0, 3), s.real(3), 1)


# ---------------------------------------------------------------------------------------------
# Logarithms and powers of two arguments


def _xlog1py(xp, self, other):
    """x log(1 + y), 0 where x is 0 unless y is NaN."""
    self, other = xp.asarray(self), xp.asarray(other)
    refuse("xlog1py_cpu", self, "c")
    return xp.where((self == 0) & ~xp.isnan(other), 0, self * xp.log1p(other))


class special_xlog1py(Special):
    """x log(1 + y), 0 where x is 0."""

    schema = "special_xlog1py(Tensor self, Tensor other) -> Tensor"
    run = _xlog1py
    grad = {"self": "xlog1py_pullback(grad, self, other)", "other": "grad * self / (other + 1)"}
    samples = pairs(-2, 2, -0.6, 3)

    def decomp(self, other):
        zero = (self == 0).logical_and(other.isnan().logical_not())
        return (self * other.log1p()).masked_fill(zero, 0)


class special_xlog1py_self_scalar(Special):
    """a log(1 + y) for a number a; 0 if a is 0."""

    schema = "special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor"
    promotes = ("self", "other")
    run = _xlog1py
    grad = {"other": "grad * self / (other + 1)"}

    def decomp(self, other):
        if self:
            return other.log1p() * self
        return other.log1p().masked_fill(other.isnan().logical_not(), 0)

    def samples(s):
        yield s(1.5, s.real(3, 4, low=-0.6, high=3))
        yield s(0, s.real(low=-0.6, high=3))
        yield s(2, s.real(0, 3))


class special_xlog1py_other_scalar(Special):
    """x log(1 + b) for a number b; 0 where x is 0."""

    schema = "special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor"
    promotes = ("self", "other")
    run = _xlog1py
    grad = {"self": "xlog1py_pullback(grad, self, other)"}
    samples = first_with(1.5)

    def decomp(self, other):
        known = math.log1p(other) if other > -1 else -math.inf if other == -1 else math.nan
        product = self * known
        return product if math.isnan(other) else product.masked_fill(self == 0, 0)


class logaddexp2(Pointwise):
    """log2(2^x + 2^y) without overflow."""

    schema = "logaddexp2(Tensor self, Tensor other) -> Tensor"
    grad = {
        "self": "grad * ((self - beside(other, grad)) * math.log(2)).sigmoid()",
        "other": "grad * ((other - beside(self, grad)) * math.log(2)).sigmoid()",
    }
    inplace = False
    samples = pairs(-2, 2, -2, 2)

    def run(xp, self, other):
        refuse("logaddexp2_cpu", self, "biuc")
        return xp.logaddexp2(self, other)

    def decomp(self, other):
        high, low = ops.maximum(self, other), ops.minimum(self, other)
        same = (high == low).logical_and(high.isinf())
        rest = (low - high).masked_fill(same, 0).exp2().log1p() * (1 / math.log(2))
        return ops.where(same, high, high + rest)


def _wide(*values) -> dt.DType:
    """complex128 if anything is complex, else float64."""
    complex_ = any(
        v.dtype.is_complex if hasattr(v, "_edge") else isinstance(v, complex) for v in values
    )
    return dt.complex128 if complex_ else dt.float64


class float_power_Tensor_Tensor(ComplexComposite):
    """A power, computed in double precision."""

    schema = "float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor"
    tags = ("pointwise",)
    inplace = "Tensor"
    samples = pairs(0.3, 2, -2, 2)

    def compose(self, exponent):
        wide = _wide(self, exponent)
        return self.to(wide).pow(exponent.to(wide))


class float_power_Tensor_Scalar(ComplexComposite):
    """A power with a number as exponent, computed in double precision."""

    schema = "float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor"
    tags = ("pointwise",)
    inplace = "Scalar"
    samples = first_with(2.5, low=0.3)

    def compose(self, exponent):
        return self.to(_wide(self, exponent)).pow(exponent)


class float_power_Scalar(ComplexFree):
    """A power of a number, computed in double precision."""

    schema = "float_power.Scalar(Scalar self, Tensor exponent) -> Tensor"
    tags = ("pointwise",)

    def compose(self, exponent):
        return ops.pow(self, exponent.to(_wide(self, exponent)))

    samples = lambda s: [s(2, s.real(3, 4)), s(1.5, s.real())]
