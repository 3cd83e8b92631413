"""Special functions: the entries of `pullback.special`, and numbers taken apart and put together.

Where a derivative is not an operator of PyTorch's, it is a private one here (`_bessel_j` of any
order, `_sinc_order` ...): a member of a family that is closed under differentiation.  So every
order is exact, at zero and for large arguments too, where the textbook quotients and differences
are not.  The kernels of these families are in `special_kernels.py`, formulas longer than a line in
`formulas/special.py`; `tools/accuracy.py` compares all of this with arbitrary-precision
arithmetic.  Read `fft.py` next.
"""

from __future__ import annotations

import math

from ..core import dtype as dt
from ..core.batching import dims
from ..core.dims import wrap_dim
from ..core.op import Composite, Op, Pointwise
from ..core.table import ops
from ..core.xp import special
from ..errors import DTypeError
from . import special_kernels as kernels
from .pointwise import points, refuse, title

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


# ---------------------------------------------------------------------------------------------
# The normal distribution


class special_ndtr(Pointwise):
    """Probability that a standard normal variable is below each element."""

    schema = "special_ndtr(Tensor self) -> Tensor"
    promote = "float"
    run = scipy_kernel("ndtr")
    grad = {"self": "grad * (self * self * -0.5).exp() * (1 / math.sqrt(2 * math.pi))"}
    inplace = method = False
    samples = points(-3, 3)

    def decomp(self):
        if not self.dtype.is_inexact:
            self = self.to(dt.default())
        return ops.erfc(self * -math.sqrt(0.5)) * 0.5


class special_log_ndtr(Pointwise):
    """Logarithm of `special_ndtr`, exact far below zero."""

    schema = "special_log_ndtr(Tensor self) -> Tensor"
    promote = "float"
    run = scipy_kernel("log_ndtr")
    grad = {"self": "grad * _normal_hazard(self)"}
    inplace = method = False
    samples = points(-3, 3)

    def decomp(self):
        if not self.dtype.is_inexact:
            self = self.to(dt.default())
        t = self * math.sqrt(0.5)  # far below zero erfc vanishes, but not its scaled form
        below = (ops.special_erfcx(-t) * 0.5).log() - t * t
        return ops.where(self < 1, below, ops.log1p(ops.erfc(t) * -0.5))


class normal_hazard(Pointwise):
    """Derivative of `special_log_ndtr`: density divided by probability."""

    schema = "_normal_hazard(Tensor self) -> Tensor"
    promote = "float"
    # h' = -h (x + h), and x + h is sqrt(2) times the ratio: no cancellation for negative x
    grad = {"self": "-grad * result * math.sqrt(2) * _erfcx_ratio(self * -math.sqrt(0.5), 1)"}
    inplace = method = function = False
    samples = points(-3, 3)

    def run(xp, self):
        return kernels.normal_hazard(xp, self)


class special_ndtri(Pointwise):
    """Number below which a standard normal variable is with the given probability."""

    schema = "special_ndtri(Tensor self) -> Tensor"
    promote = "float"
    run = scipy_kernel("ndtri")
    grad = {"self": "grad * (result * result * 0.5).exp() * math.sqrt(2 * math.pi)"}
    inplace = method = False
    samples = points(0.1, 0.9)


class special_erfcx(Pointwise):
    """exp(x^2) erfc(x) of each element, without underflow."""

    schema = "special_erfcx(Tensor self) -> Tensor"
    promote = "float"
    run = scipy_kernel("erfcx")
    grad = {"self": "-2 * grad * _erfcx_integral(self, 1)"}
    inplace = method = False
    samples = points(-2, 3)


class erfcx_integral(Pointwise):
    """exp(x^2) times the n-fold integral of erfc from x to infinity."""

    schema = "_erfcx_integral(Tensor self, int n) -> Tensor"
    promote = "float"
    grad = {"self": "-2 * (n + 1) * grad * _erfcx_integral(self, n + 1)"}
    inplace = method = function = False
    samples = first_with(1, high=3)

    def run(xp, self, n):
        return kernels.erfcx_integral(xp, self, n)


class erfcx_ratio(Pointwise):
    """The n-fold integral of erfc divided by the (n-1)-fold one."""

    schema = "_erfcx_ratio(Tensor self, int n) -> Tensor"
    promote = "float"
    grad = {"self": "2 * grad * result * (n * result - (n + 1) * _erfcx_ratio(self, n + 1))"}
    inplace = method = function = False
    samples = first_with(1, high=3)

    def run(xp, self, n):
        return kernels.erfcx_ratios(xp, self, n)[-1]


class special_entr(Pointwise):
    """-x log(x) of each element: 0 at 0, -inf below."""

    schema = "special_entr(Tensor self) -> Tensor"
    promote = "float"
    run = scipy_kernel("entr")
    grad = {"self": "-grad * (self.log() + 1)"}
    inplace = method = False
    samples = points(0.2, 3)

    def decomp(self):
        if not self.dtype.is_inexact:
            self = self.to(dt.default())
        value = -ops.xlogy(self, self)
        return value.masked_fill(self < 0, -math.inf)


# ---------------------------------------------------------------------------------------------
# Gamma functions


class mvlgamma(Pointwise):
    """Logarithm of the multivariate gamma function of dimension p."""

    schema = "mvlgamma(Tensor self, int p) -> Tensor"
    promote = "float"
    grad = {"self": "grad * multivariate_digamma(self, p)"}
    aliases = ("special_multigammaln",)

    def run(xp, self, p):
        refuse("mvlgamma", self, "c")
        if p < 1:
            raise RuntimeError("p has to be greater than or equal to 1")
        total = sum(special(xp).gammaln(self - i / 2) for i in range(p))
        return total + p * (p - 1) / 4 * math.log(math.pi)

    def decomp(self, p):
        if p < 1:
            raise RuntimeError("p has to be greater than or equal to 1")
        if not self.dtype.is_inexact:
            self = self.to(dt.default())
        total = (self - 0.0).lgamma()
        for i in range(1, p):
            total = total + (self - i / 2).lgamma()
        return total + p * (p - 1) / 4 * math.log(math.pi)

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
    run = _incomplete("gammaincc")
    grad = {
        "self": "-grad * _igamma_order(self, other, 1)",
        "other": "-grad * _gamma_density(self, other, 0)",
    }
    aliases = ("special_gammaincc",)
    samples = pairs(0.4, 4, 0.3, 5)


class igamma_order(Pointwise):
    """Derivative of some order of `igamma` by its first argument."""

    ordered = False
    schema = "_igamma_order(Tensor self, Tensor other, int order) -> Tensor"
    promote = "float"
    grad = {
        "self": "grad * _igamma_order(self, other, order + 1)",
        "other": "grad * _gamma_density(self, other, order)",
    }
    inplace = method = function = False
    cost = "heavy"

    def run(xp, self, other, order):
        return kernels.igamma_order(xp, self, other, order)

    def samples(s):
        for order in (1, 2):
            yield s(s.real(3, 4, low=0.4, high=4), s.real(4, low=0.3, high=5), order)
            yield s(s.values([0.5, 8.0, 30.0, 30.0]), s.values([0.01, 6.0, 24.0, 37.0]), order)
        yield s(s.real(low=0.4, high=4), s.real(low=0.3, high=5), 1)
        yield s(s.real(0, 3), s.real(3), 1)


class gamma_density(Pointwise):
    """Derivative of some order by a of x^(a-1) exp(-x) / Gamma(a), for every real a."""

    ordered = False
    schema = "_gamma_density(Tensor self, Tensor other, int order) -> Tensor"
    promote = "float"
    grad = {
        "self": "grad * _gamma_density(self, other, order + 1)",
        "other": "grad * (_gamma_density(self - 1, other, order)"
        " - _gamma_density(self, other, order))",
    }
    inplace = method = function = False

    def run(xp, self, other, order):
        return kernels.gamma_density(xp, self, other, order)

    def samples(s):
        for order in (0, 1, 2):
            yield s(s.real(3, 4, low=0.4, high=4), s.real(4, low=0.3, high=5), order)
            yield s(s.values([-1.5, 1.0, 12.0, 30.0]), s.values([0.4, 6.0, 12.0, 27.0]), order)
        yield s(s.real(low=0.4, high=4), s.real(low=0.3, high=5), 0)
        yield s(s.real(0, 3), s.real(3), 0)


class special_zeta(Pointwise):
    """Hurwitz zeta function: the sum over k >= 0 of (q + k)^(-s)."""

    schema = "special_zeta(Tensor self, Tensor other) -> Tensor"
    promote = "float"
    grad = {
        "self": "grad * _zeta_order(self, other, 1)",
        "other": "-grad * self * special_zeta(self + 1, other)",
    }
    inplace = method = False
    samples = pairs(1.5, 5, 0.4, 5)

    def run(xp, self, other):
        return _zeta(xp, self, other)


def _zeta(xp, self, other):
    refuse("zeta_cpu", xp.asarray(self), "c")
    return special(xp).zeta(self, other)


class special_zeta_self_scalar(Pointwise):
    """Hurwitz zeta function of a number s."""

    schema = "special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor"
    promote = "float"
    promotes = ("self", "other")
    grad = {"other": "-grad * self * special_zeta(self + 1, other)"}
    run = _zeta
    inplace = method = False

    def samples(s):
        yield s(2.5, s.real(3, 4, low=0.4, high=5))
        yield s(3, s.real(low=0.4, high=5))
        yield s(2, s.real(0, 3, low=0.4, high=5))


class special_zeta_other_scalar(Pointwise):
    """Hurwitz zeta function with a number q."""

    schema = "special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor"
    promote = "float"
    promotes = ("self", "other")
    grad = {"self": "grad * _zeta_order(self, other, 1)"}
    run = _zeta
    inplace = method = False
    samples = first_with(1.5, low=1.4, high=5)


class zeta_order(Pointwise):
    """Derivative of some order of the Hurwitz zeta function by its first argument."""

    ordered = False
    schema = "_zeta_order(Tensor self, Tensor other, int order) -> Tensor"
    promote = "float"
    scalars = ("other",)
    grad = {
        "self": "grad * _zeta_order(self, other, order + 1)",
        "other": "-grad * (order * _zeta_order(self + 1, other, order - 1)"
        " + self * _zeta_order(self + 1, other, order))",
    }
    inplace = method = function = False

    def run(xp, self, other, order):
        return kernels.zeta_order(xp, self, other, order)

    def samples(s):
        for order in (1, 2):
            yield s(s.real(3, 4, low=1.5, high=5), s.real(4, low=0.4, high=5), order)
        yield s(s.real(low=1.5, high=5), s.real(low=0.4, high=5), 1)
        yield s(s.real(0, 3), s.real(3), 1)


# ---------------------------------------------------------------------------------------------
# Bessel functions.  f_n' is half the difference (J, Y) or the sum (I, -K) of the neighbours.


class i0(Pointwise):
    """Modified Bessel function of the first kind, order 0."""

    schema = "i0(Tensor self) -> Tensor"
    promote = "float"
    run = scipy_kernel("i0", label="i0_vml_cpu")
    grad = {"self": "grad * special_i1(self)"}
    aliases = ("special_i0",)
    samples = around_zero()


class special_i1(Pointwise):
    """Modified Bessel function of the first kind, order 1."""

    schema = "special_i1(Tensor self) -> Tensor"
    promote = "float"
    run = scipy_kernel("i1")
    grad = {"self": "grad * (i0(self) + _bessel_i(self, 2)) / 2"}
    inplace = method = False
    samples = around_zero()


class bessel_i(Pointwise):
    """Modified Bessel function of the first kind, order n."""

    schema = "_bessel_i(Tensor self, int n) -> Tensor"
    promote = "float"
    grad = {"self": "grad * (_bessel_i(self, abs(n - 1)) + _bessel_i(self, n + 1)) / 2"}
    inplace = method = function = False

    def run(xp, self, n):
        return kernels.bessel_i(xp, self, n)

    def samples(s):
        for n in (0, 1, 2, 3):
            yield from around_zero(n)(s)


class special_i0e(Pointwise):
    """exp(-|x|) times the modified Bessel function of the first kind, order 0."""

    schema = "special_i0e(Tensor self) -> Tensor"
    promote = "float"
    run = scipy_kernel("i0e")
    grad = {"self": "grad * _scaled_bessel_i(self, 0, 1)"}
    inplace = method = False
    samples = points()


class special_i1e(Pointwise):
    """exp(-|x|) times the modified Bessel function of the first kind, order 1."""

    schema = "special_i1e(Tensor self) -> Tensor"
    promote = "float"
    run = scipy_kernel("i1e")
    grad = {"self": "grad * _scaled_bessel_i(self, 1, 1)"}
    inplace = method = False
    samples = points()


class scaled_bessel_i(Pointwise):
    """Derivative of some order of exp(-|x|) I_n(x); at the kink in 0 the mean of both sides."""

    schema = "_scaled_bessel_i(Tensor self, int n, int order) -> Tensor"
    promote = "float"
    grad = {"self": "grad * _scaled_bessel_i(self, n, order + 1)"}
    inplace = method = function = False

    def run(xp, self, n, order):
        return kernels.scaled_bessel_i(xp, self, n, order)

    def samples(s):
        for n in (0, 1):
            yield s(s.real(3, 4), n, 1)
            yield s(s.real(3, low=24, high=26), n, 1)
        yield s(s.real(), 0, 2)
        yield s(s.real(0, 3), 1, 1)


class special_modified_bessel_i0(Pointwise):
    """Modified Bessel function of the first kind, order 0."""

    schema = "special_modified_bessel_i0(Tensor self) -> Tensor"
    promote = "float"
    run = scipy_kernel("i0", label="modified_bessel_i0_cpu")
    grad = {"self": "grad * special_i1(self)"}
    inplace = method = False
    samples = around_zero()


class special_modified_bessel_i1(Pointwise):
    """Modified Bessel function of the first kind, order 1."""

    schema = "special_modified_bessel_i1(Tensor self) -> Tensor"
    promote = "float"
    run = scipy_kernel("i1", label="modified_bessel_i1_cpu")
    grad = {"self": "grad * (i0(self) + _bessel_i(self, 2)) / 2"}
    inplace = method = False
    samples = around_zero()


class special_bessel_j0(Pointwise):
    """Bessel function of the first kind, order 0."""

    schema = "special_bessel_j0(Tensor self) -> Tensor"
    promote = "float"
    run = scipy_kernel("j0", label="bessel_j0_cpu")
    grad = {"self": "-grad * special_bessel_j1(self)"}
    inplace = method = False
    samples = around_zero()


class special_bessel_j1(Pointwise):
    """Bessel function of the first kind, order 1."""

    schema = "special_bessel_j1(Tensor self) -> Tensor"
    promote = "float"
    run = scipy_kernel("j1", label="bessel_j1_cpu")
    grad = {"self": "grad * (special_bessel_j0(self) - _bessel_j(self, 2)) / 2"}
    inplace = method = False
    samples = around_zero()


class bessel_j(Pointwise):
    """Bessel function of the first kind, order n."""

    schema = "_bessel_j(Tensor self, int n) -> Tensor"
    promote = "float"
    grad = {
        "self": "grad * (_bessel_j(self, n - 1) - _bessel_j(self, n + 1)) / 2 if n else"
        " -grad * _bessel_j(self, 1)"
    }
    inplace = method = function = False

    def run(xp, self, n):
        return kernels.bessel_j(xp, self, n)

    def samples(s):
        for n in (0, 1, 2, 3):
            yield from around_zero(n)(s)


class special_bessel_y0(Pointwise):
    """Bessel function of the second kind, order 0."""

    schema = "special_bessel_y0(Tensor self) -> Tensor"
    promote = "float"
    run = scipy_kernel("y0", label="bessel_y0_cpu")
    grad = {"self": "-grad * special_bessel_y1(self)"}
    inplace = method = False
    samples = points(0.4, 9)


class special_bessel_y1(Pointwise):
    """Bessel function of the second kind, order 1."""

    schema = "special_bessel_y1(Tensor self) -> Tensor"
    promote = "float"
    run = scipy_kernel("y1", label="bessel_y1_cpu")
    grad = {"self": "grad * (special_bessel_y0(self) - _bessel_y(self, 2)) / 2"}
    inplace = method = False
    samples = points(0.6, 9)


class bessel_y(Pointwise):
    """Bessel function of the second kind, order n."""

    schema = "_bessel_y(Tensor self, int n) -> Tensor"
    promote = "float"
    grad = {
        "self": "grad * (_bessel_y(self, n - 1) - _bessel_y(self, n + 1)) / 2 if n else"
        " -grad * _bessel_y(self, 1)"
    }
    inplace = method = function = False

    def run(xp, self, n):
        return kernels.bessel_y(xp, self, n)

    def samples(s):
        yield from first_with(0, low=1.5, high=9)(s)
        yield from first_with(2, low=1.5, high=9)(s)


class special_modified_bessel_k0(Pointwise):
    """Modified Bessel function of the second kind, order 0."""

    schema = "special_modified_bessel_k0(Tensor self) -> Tensor"
    promote = "float"
    run = scipy_kernel("k0", label="modified_bessel_k0_cpu")
    grad = {"self": "-grad * special_modified_bessel_k1(self)"}
    inplace = method = False
    samples = points(0.4, 5)


class special_modified_bessel_k1(Pointwise):
    """Modified Bessel function of the second kind, order 1."""

    schema = "special_modified_bessel_k1(Tensor self) -> Tensor"
    promote = "float"
    run = scipy_kernel("k1", label="modified_bessel_k1_cpu")
    grad = {"self": "-grad * (special_modified_bessel_k0(self) + _bessel_k(self, 2)) / 2"}
    inplace = method = False
    samples = points(0.6, 5)


class bessel_k(Pointwise):
    """Modified Bessel function of the second kind, order n."""

    schema = "_bessel_k(Tensor self, int n) -> Tensor"
    promote = "float"
    grad = {"self": "-grad * (_bessel_k(self, abs(n - 1)) + _bessel_k(self, n + 1)) / 2"}
    inplace = method = function = False

    def run(xp, self, n):
        return kernels.bessel_k(xp, self, n)

    def samples(s):
        yield from first_with(0, low=0.8, high=5)(s)
        yield from first_with(2, low=0.8, high=5)(s)


class special_scaled_modified_bessel_k0(Pointwise):
    """exp(x) times the modified Bessel function of the second kind, order 0."""

    schema = "special_scaled_modified_bessel_k0(Tensor x) -> Tensor"
    promote = "float"
    run = scipy_kernel("k0e", label="scaled_modified_bessel_k0_cpu")
    grad = {"x": "grad * _scaled_bessel_k(x, 0, 1)"}
    inplace = method = False
    samples = points(0.4, 5)


class special_scaled_modified_bessel_k1(Pointwise):
    """exp(x) times the modified Bessel function of the second kind, order 1."""

    schema = "special_scaled_modified_bessel_k1(Tensor x) -> Tensor"
    promote = "float"
    run = scipy_kernel("k1e", label="scaled_modified_bessel_k1_cpu")
    grad = {"x": "grad * _scaled_bessel_k(x, 1, 1)"}
    inplace = method = False
    samples = points(0.6, 5)


class scaled_bessel_k(Pointwise):
    """Derivative of some order of exp(x) K_n(x)."""

    schema = "_scaled_bessel_k(Tensor self, int n, int order) -> Tensor"
    promote = "float"
    grad = {"self": "grad * _scaled_bessel_k(self, n, order + 1)"}
    inplace = method = function = False

    def run(xp, self, n, order):
        return kernels.scaled_bessel_k(xp, self, n, order)

    def samples(s):
        for n in (0, 1):
            yield s(s.real(3, 4, low=0.8, high=5), n, 1)
            yield s(s.real(3, low=24, high=26), n, 1)
        yield s(s.real(low=0.8, high=5), 0, 2)
        yield s(s.real(0, 3), 1, 1)


class special_spherical_bessel_j0(Pointwise):
    """sin(x) / x of each element, 1 at 0."""

    schema = "special_spherical_bessel_j0(Tensor x) -> Tensor"
    promote = "float"
    grad = {"x": "grad * _sinc_order(x, 1, False)"}
    inplace = method = False
    samples = around_zero()

    def run(xp, x):
        refuse("spherical_bessel_j0_cpu", x, "c")
        return xp.where(xp.isinf(x), 0, kernels.sinc_order(xp, x, 0, False))


class sinc(Pointwise):
    """sin(pi x) / (pi x) of each element, 1 at 0."""

    schema = "sinc(Tensor self) -> Tensor"
    promote = "float"
    grad = {"self": "grad * _sinc_order(self, 1, True).conj()"}
    complex = True
    aliases = ("special_sinc",)
    samples = around_zero()

    def run(xp, self):
        return kernels.sinc_order(xp, self, 0, True)

    def decomp(self):
        angle = self * math.pi
        return ops.where(self == 0, 1, angle.sin() / angle)


class sinc_order(Pointwise):
    """Derivative of some order of sin(x) / x, or of sin(pi x) / (pi x)."""

    schema = "_sinc_order(Tensor self, int order, bool normalized) -> Tensor"
    promote = "float"
    grad = {"self": "grad * _sinc_order(self, order + 1, normalized).conj()"}
    complex = True
    inplace = method = function = False

    def run(xp, self, order, normalized):
        return kernels.sinc_order(xp, self, order, normalized)

    def samples(s):
        for order, normalized in ((1, True), (2, True), (1, False), (2, False)):
            yield from around_zero(order, normalized)(s)


class special_airy_ai(Pointwise):
    """Airy function Ai of each element."""

    schema = "special_airy_ai(Tensor x) -> Tensor"
    promote = "float"
    grad = {"x": "grad * _airy_ai_prime(x)"}
    inplace = method = False
    samples = points(-4, 4)

    def run(xp, x):
        refuse("airy_ai_cpu", x, "c")
        return special(xp).airy(x)[0]


class airy_ai_prime(Pointwise):
    """Derivative of the Airy function; its own derivative is x Ai(x)."""

    schema = "_airy_ai_prime(Tensor x) -> Tensor"
    promote = "float"
    grad = {"x": "grad * x * special_airy_ai(x)"}
    inplace = method = function = False
    samples = points(-4, 4)

    def run(xp, x):
        return special(xp).airy(x)[1]


# ---------------------------------------------------------------------------------------------
# Orthogonal polynomials.  PyTorch gives them no derivative; here they have all orders of that in x.


class orthogonal_polynomial(Pointwise):
    """Derivative of some order by x of the orthogonal polynomial of a kind and degree n."""

    ordered = False
    schema = "_orthogonal_polynomial(Tensor x, Tensor n, str kind, int order) -> Tensor"
    promote = "float"
    scalars = ("n",)
    grad = {
        "x": "grad * _orthogonal_polynomial(x, n, kind, order + 1)",
        "n": "not_implemented('n', 'the degree of a polynomial is a whole number')",
    }
    inplace = method = function = False

    def run(xp, x, n, kind, order):
        return kernels.orthogonal_polynomial(xp, x, n, kind, order)

    def samples(s):
        for kind in (*kernels.POLYNOMIALS, "shifted_chebyshev_t"):
            yield s(s.real(3, 5), s.tensor([0, 1, 2, 3, 6], dt.int64), kind, 1)
        yield s(s.values([-1.0, 0.0, 1.0]), 5, "chebyshev_u", 2)
        yield s(s.real(), 4, "legendre_p", 0)
        yield s(s.real(0, 3), s.int(3), "chebyshev_t", 1)


def _add_polynomial(family: str, words: str) -> None:
    """The three entries of one kind of polynomial: of tensors, of a number x, of a number n."""
    kind = family.replace("polynomial_", "")
    name = f"special_{family}"

    def run(xp, x, n):
        refuse(f"{family}_cpu", xp.asarray(x), "c")
        refuse(f"{family}_cpu", xp.asarray(n), "c")
        return kernels.orthogonal_polynomial(xp, xp.asarray(x), xp.asarray(n), kind, 0)

    def samples(s):
        yield s(s.real(3, 5), s.tensor([0, 1, 2, 3, 6], dt.int64))
        yield s(s.real(5, 3).T, s.tensor([[4], [0], [-1]], dt.int64))
        yield s(s.values([-1.0, 0.0, 1.0]), s.tensor(5, dt.int64))
        yield s(s.real(), s.tensor(3, dt.int64))
        yield s(s.real(0, 3), s.int(3))

    def samples_of_degrees(s):
        yield s(0.3, s.tensor([[0, 1, 2], [3, 5, -1]], dt.int64))
        yield s(1.5, s.tensor(4, dt.int64))

    slope = f"grad * _orthogonal_polynomial(x, n, {kind!r}, 1)"
    refusal = "not_implemented('n', 'the degree of a polynomial is a whole number')"
    shared = dict(promote="float", promotes=("x", "n"), run=run, inplace=False, method=False)
    shared["ordered"] = False
    overloads = {
        "": ("Tensor x, Tensor n", {"x": slope, "n": refusal}, samples, words),
        ".x_scalar": (
            "Scalar x, Tensor n",
            {"n": refusal},
            samples_of_degrees,
            f"{words} at a number",
        ),
        ".n_scalar": ("Tensor x, Scalar n", {"x": slope}, first_with(4), f"{words} of one degree"),
    }
    for overload, (arguments, grad, cases, title_) in overloads.items():
        entry = dict(
            shared,
            schema=f"{name}{overload}({arguments}) -> Tensor",
            grad=grad,
            samples=cases,
            __doc__=f"{title_}.",
            __module__=__name__,
        )
        globals()[f"{name}{overload.replace('.', '_')}"] = type(
            f"{name}{overload.replace('.', '_')}", (Pointwise,), entry
        )


for _family, _words in {
    "chebyshev_polynomial_t": "Chebyshev polynomials of the first kind",
    "chebyshev_polynomial_u": "Chebyshev polynomials of the second kind",
    "chebyshev_polynomial_v": "Chebyshev polynomials of the third kind",
    "chebyshev_polynomial_w": "Chebyshev polynomials of the fourth kind",
    "shifted_chebyshev_polynomial_t": "Chebyshev polynomials of the first kind, for [0, 1]",
    "shifted_chebyshev_polynomial_u": "Chebyshev polynomials of the second kind, for [0, 1]",
    "shifted_chebyshev_polynomial_v": "Chebyshev polynomials of the third kind, for [0, 1]",
    "shifted_chebyshev_polynomial_w": "Chebyshev polynomials of the fourth kind, for [0, 1]",
    "hermite_polynomial_h": "Hermite polynomials of the physicists",
    "hermite_polynomial_he": "Hermite polynomials of probability theory",
    "laguerre_polynomial_l": "Laguerre polynomials",
    "legendre_polynomial_p": "Legendre polynomials",
}.items():
    _add_polynomial(_family, _words)


# ---------------------------------------------------------------------------------------------
# Logarithms and powers of two arguments


def _xlog1py(xp, self, other):
    """x log(1 + y), 0 where x is 0 unless y is NaN."""
    self, other = xp.asarray(self), xp.asarray(other)
    refuse("xlog1py_cpu", self, "c")
    return xp.where((self == 0) & ~xp.isnan(other), 0, self * xp.log1p(other))


class special_xlog1py(Pointwise):
    """x log(1 + y), 0 where x is 0."""

    schema = "special_xlog1py(Tensor self, Tensor other) -> Tensor"
    promote = "float"
    run = _xlog1py
    grad = {"self": "grad * log1p_where_used(self, other)", "other": "grad * self / (other + 1)"}
    inplace = method = False
    samples = pairs(-2, 2, -0.6, 3)

    def decomp(self, other):
        zero = (self == 0).logical_and(other.isnan().logical_not())
        return (self * other.log1p()).masked_fill(zero, 0)


class special_xlog1py_self_scalar(Pointwise):
    """a log(1 + y) for a number a; 0 if a is 0."""

    schema = "special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor"
    promote = "float"
    promotes = ("self", "other")
    run = _xlog1py
    grad = {"other": "grad * self / (other + 1)"}
    inplace = method = False

    def decomp(self, other):
        if self:
            return other.log1p() * self
        return other.log1p().masked_fill(other.isnan().logical_not(), 0)

    def samples(s):
        yield s(1.5, s.real(3, 4, low=-0.6, high=3))
        yield s(0, s.real(low=-0.6, high=3))
        yield s(2, s.real(0, 3))


class special_xlog1py_other_scalar(Pointwise):
    """x log(1 + b) for a number b; 0 where x is 0."""

    schema = "special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor"
    promote = "float"
    promotes = ("self", "other")
    run = _xlog1py
    grad = {"self": "grad * log1p_where_used(self, other)"}
    inplace = method = False
    samples = first_with(1.5)

    def decomp(self, other):
        known = math.log1p(other) if other > -1 else -math.inf if other == -1 else math.nan
        product = self * known
        return product if math.isnan(other) else product.masked_fill(self == 0, 0)


class logaddexp2(Pointwise):
    """log2(2^x + 2^y) without overflow."""

    schema = "logaddexp2(Tensor self, Tensor other) -> Tensor"
    grad = {
        "self": "grad * ((self - other) * math.log(2)).sigmoid()",
        "other": "grad * ((other - self) * math.log(2)).sigmoid()",
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


class float_power_Tensor_Tensor(Composite):
    """A power, computed in double precision."""

    schema = "float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor"
    inplace = "Tensor"
    complex = True
    samples = pairs(0.3, 2, -2, 2)

    def compose(self, exponent):
        wide = _wide(self, exponent)
        return self.to(wide).pow(exponent.to(wide))


class float_power_Tensor_Scalar(Composite):
    """A power with a number as exponent, computed in double precision."""

    schema = "float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor"
    inplace = "Scalar"
    complex = True
    samples = first_with(2.5, low=0.3)

    def compose(self, exponent):
        return self.to(_wide(self, exponent)).pow(exponent)


class float_power_Scalar(Composite):
    """A power of a number, computed in double precision."""

    schema = "float_power.Scalar(Scalar self, Tensor exponent) -> Tensor"
    method = False
    complex = True

    def compose(self, exponent):
        return ops.pow(self, exponent.to(_wide(self, exponent)))

    def samples(s):
        yield s(2, s.real(3, 4))
        yield s(1.5, s.real())


# ---------------------------------------------------------------------------------------------
# Parts of numbers


class frexp_Tensor(Op):
    """Each element as m 2^e with 0.5 <= |m| < 1."""

    schema = "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)"
    grad = {"self": "ldexp(grad, -exponent)"}
    push = {"mantissa": "ldexp(self_t, -exponent)"}
    diff_outputs = (True, False)
    shape = "[self.shape, self.shape]"
    dtype = "[self.dtype, dt.int32]"
    cost = "cheap"

    def run(xp, self):
        if self.dtype.kind != "f":
            raise RuntimeError("torch.frexp() only supports floating-point dtypes")
        mantissa, exponent = xp.frexp(self)
        return mantissa, xp.where(xp.isfinite(self), exponent, 0).astype(xp.int32)

    def batch(n, batched, self):
        return ops.frexp(self)

    def samples(s):
        yield s(s.values([[0.3, 1.7, -3.1], [100.0, -6.0, 0.7]]))
        yield s(s.values([[0.3, 1.7, -3.1], [100.0, -6.0, 0.7]]).T)
        yield s(s.values(5.0))
        yield s(s.real(0, 3))


class ldexp_Tensor(Pointwise):
    """x 2^y, without overflow of 2^y."""

    schema = "ldexp.Tensor(Tensor self, Tensor other) -> Tensor"
    inplace = "default"
    promote = "float"
    grad = {
        "self": "ldexp(grad, other.conj())",
        "other": "grad * (result * math.log(2)).conj()",
    }
    complex = True

    def run(xp, self, other):
        if other.dtype.kind == "c":
            return self * xp.exp(other * math.log(2))
        whole = xp.clip(xp.floor(xp.where(xp.isfinite(other), other, 0)), -5000, 5000)
        rest = xp.where(xp.abs(whole) < 5000, other - whole, other)
        return xp.ldexp(self * xp.exp2(rest), whole.astype(xp.int32))

    def decomp(self, other):
        return self * ops.pow(2.0, other)

    def samples(s):
        yield s(s.real(3, 4), s.real(4))
        yield s(s.real(4, 3).T, s.int(3, 4, low=-3, high=4))
        yield s(s.real(), s.real())
        yield s(s.real(0, 3), s.int(3))


def _same_type(self, other):
    return dt.result_type([self, other])


class nextafter(Pointwise):
    """The number next to each element in the direction of the other."""

    schema = "nextafter(Tensor self, Tensor other) -> Tensor"
    promote = "keep"  # half precision must not be widened: its neighbours are further away
    dtype = _same_type
    grad = {"self": "grad * (self != other)"}
    constant = ("other",)
    samples = pairs(-2, 0, 1, 2)

    def run(xp, self, other):
        common = dt.result_type([self, other]).np
        if common.kind in "biuc":
            raise NotImplementedError(
                f"\"nextafter_cpu\" not implemented for '{title(dt.of(common))}'"
            )
        return xp.nextafter(self.astype(common), other.astype(common))


def _integers(s):
    yield s(s.int(3, 4, low=-20, high=20), s.int(4, low=-20, high=20))
    yield s(s.int(4, 3).T, s.int(3, 1))
    yield s(s.int(), s.int())
    yield s(s.int(0, 3), s.int(3))


class gcd(Pointwise):
    """Greatest common divisor of two integers."""

    schema = "gcd(Tensor self, Tensor other) -> Tensor"
    nondiff = ("self", "other")
    samples = _integers

    def run(xp, self, other):
        refuse("gcd_cpu", self, "bfc")
        return xp.gcd(self, other)


class lcm(Pointwise):
    """Least common multiple of two integers."""

    schema = "lcm(Tensor self, Tensor other) -> Tensor"
    nondiff = ("self", "other")
    samples = _integers

    def run(xp, self, other):
        refuse("lcm_cpu", self, "bfc")
        return xp.abs(xp.lcm(self, other))

    def decomp(self, other):
        divisor = ops.gcd(self, other)
        some = ops.where(divisor == 0, 1, divisor)  # both are zero, and so is the result
        return (self.div(some, rounding_mode="trunc") * other).abs()


# ---------------------------------------------------------------------------------------------
# Complex numbers from real ones


def _check_parts(first, second) -> None:
    if first.dtype.name not in ("float32", "float64") or second.dtype.kind != "f":
        raise DTypeError(
            f"Expected both inputs to be Float or Double tensors but got {title(first.dtype)} "
            f"and {title(second.dtype)}"
        )
    if first.dtype != second.dtype:
        raise DTypeError(
            f"Expected object of scalar type {title(first.dtype)} but got scalar type "
            f"{title(second.dtype)} for second argument"
        )


def _assemble(xp, real, imag):
    real, imag = xp.broadcast_arrays(real, imag)
    out = xp.empty(real.shape, dtype=xp.complex64 if real.dtype == xp.float32 else xp.complex128)
    out.real[...] = real
    out.imag[...] = imag
    return out


class complex_default(Pointwise):
    """Complex numbers from their real and imaginary parts."""

    ordered = False
    schema = "complex(Tensor real, Tensor imag) -> Tensor"
    promote = "keep"
    dtype = "real.dtype.to_complex()"
    grad = {"real": "grad.real", "imag": "grad.imag"}
    linear = ("real", "imag")
    out = ("exact",)
    inplace = method = False
    samples = pairs(-2, 2, -2, 2)

    def run(xp, real, imag):
        _check_parts(real, imag)
        return _assemble(xp, real, imag)


class polar(Pointwise):
    """Complex numbers from their absolute values and angles."""

    ordered = False
    schema = "polar(Tensor abs, Tensor angle) -> Tensor"
    out = ("exact",)
    promote = "keep"
    dtype = "abs.dtype.to_complex()"
    grad = {
        "abs": "(grad * unit_complex(angle).conj()).real",
        "angle": "(grad * (result * 1j).conj()).real",
    }
    push = "unit_complex(angle_p) * abs_t + result * 1j * angle_t"
    inplace = method = False
    samples = pairs(-2, 2, -2, 2)

    def run(xp, abs, angle):
        _check_parts(abs, angle)
        return _assemble(xp, abs * xp.cos(angle), abs * xp.sin(angle))

    def decomp(abs, angle):
        return ops.complex(abs * angle.cos(), abs * angle.sin())


# ---------------------------------------------------------------------------------------------
# Running logarithms of sums and running extremes


def _along(s):
    """Samples of a scan."""
    yield s(s.real(3, 4), 1)
    yield s(s.real(5, 3).T, -1)
    yield s(s.real(2, 3, 4), -2)
    yield s(s.real(), 0)
    yield s(s.real(0, 3), 0)
    yield s(s.real(3, 0), 0)


def _logaddexp(xp, left, right):
    """log(exp(x) + exp(y)) of complex numbers."""
    first = left.real >= right.real
    high, low = xp.where(first, left, right), xp.where(first, right, left)
    same = xp.isinf(high.real) & (high.real == low.real)
    return xp.where(same, high, high + xp.log1p(xp.exp(xp.where(same, 0, low - high))))


def _logcumsumexp(xp, self, dim):
    axis = wrap_dim(dim, self.ndim)
    refuse("logcumsumexp_out_cpu", self, "biu")
    if self.ndim == 0:
        return self.copy()
    if self.dtype.kind != "c":
        return kernels.scan(
            xp, (self.copy(),), axis, lambda left, right: (xp.logaddexp(left[0], right[0]),)
        )[0]
    out = self.copy()  # one after the other: the order decides which branch of the logarithm is met
    rows = xp.moveaxis(out, axis, 0)
    for i in range(1, len(rows)):
        rows[i] = _logaddexp(xp, rows[i - 1], rows[i])
    return out


class logcumsumexp(Op):
    """Running log of the sum of exp along a dim, without overflow."""

    schema = "logcumsumexp(Tensor self, int dim) -> Tensor"
    run = _logcumsumexp
    grad = {"self": "logcumsumexp_pullback(grad, self, result, dim)"}
    push = "logcumsumexp_push(self_p, self_t, result, dim)"
    shape = "self.shape"
    batch = dims("dim")
    cost = "reduce"
    complex = True
    samples = _along


class logcumsumexp_kernel(Op):
    """Running log of the sum of exp along a dim, as a bare kernel."""

    schema = "_logcumsumexp(Tensor self, int dim) -> Tensor"
    run = _logcumsumexp
    grad = {"self": "logcumsumexp_pullback(grad, self, result, dim)"}
    push = "logcumsumexp_push(self_p, self_t, result, dim)"
    shape = "self.shape"
    batch = dims("dim")
    cost = "reduce"
    complex = True
    method = False
    samples = _along


def _running_extreme(xp, self, dim, sign: int):
    """Values and places of running extremes: the last of equal ones, and NaN once there is one."""
    axis = wrap_dim(dim, self.ndim)
    refuse("cummax_cpu" if sign > 0 else "cummin_cpu", self, "c")
    if self.ndim == 0:
        return self.copy(), xp.zeros((), dtype=xp.int64)
    shape = [1] * self.ndim
    shape[axis] = self.shape[axis]
    places = xp.broadcast_to(
        xp.reshape(xp.arange(self.shape[axis], dtype=xp.int64), shape), self.shape
    )

    def combine(left, right):
        better = right[0] >= left[0] if sign > 0 else right[0] <= left[0]
        better = better | (right[0] != right[0])
        return tuple(xp.where(better, r, l) for l, r in zip(left, right))

    return kernels.scan(xp, (self.copy(), places.copy()), axis, combine)


def _apart(s):
    """Samples of a running extreme: no two elements are nearly equal."""
    yield s(s.values([[0.1, 1.3, 0.7, 2.9], [2.2, -1.1, -0.4, 0.5], [-0.3, -2.0, 1.9, -1.6]]), 1)
    yield s(s.values([[0.1, 1.3, 0.7, 2.9, 2.5], [2.2, -1.1, -0.4, 0.5, -1.5]]).T, -2)
    yield s(s.values([[[0.1, 1.3]], [[0.7, -2.9]], [[0.4, 0.2]]]), -3)
    yield s(s.real(), 0)
    yield s(s.real(0, 3), 0)
    yield s(s.real(3, 0), 0)


class cummax(Op):
    """Running maxima along a dim, and where they are."""

    schema = "cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)"
    grad = {"self": "scattered_sum(grad, indices, dim)"}
    push = {"values": "selected_push(self_t, indices, dim, True)"}
    diff_outputs = (True, False)
    shape = "[self.shape, self.shape]"
    dtype = "[self.dtype, dt.int64]"
    batch = dims("dim")
    cost = "reduce"
    samples = _apart

    def run(xp, self, dim):
        return _running_extreme(xp, self, dim, 1)


class cummin(Op):
    """Running minima along a dim, and where they are."""

    schema = "cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)"
    grad = {"self": "scattered_sum(grad, indices, dim)"}
    push = {"values": "selected_push(self_t, indices, dim, True)"}
    diff_outputs = (True, False)
    shape = "[self.shape, self.shape]"
    dtype = "[self.dtype, dt.int64]"
    batch = dims("dim")
    cost = "reduce"
    samples = _apart

    def run(xp, self, dim):
        return _running_extreme(xp, self, dim, -1)
