"""Bessel and Airy functions, with derivatives of all orders in x."""

from __future__ import annotations

import math

from ..array.xp import special
from ..table.packets import ops
from . import special_kernels as kernels
from .pointwise import ComplexFunction, FormulaFunction, Function, points, refuse
from .special import Special, around_zero, first_with, scipy_kernel

# ---------------------------------------------------------------------------------------------
# Bessel functions.  f_n' is half the difference (J, Y) or the sum (I, -K) of the neighbours.


class _Special(Special):
    kept = "function"


class i0(Function):
    """Modified Bessel function of the first kind, order 0."""

    schema = "i0(Tensor self) -> Tensor"
    kept = "function"
    run = scipy_kernel("i0", label="i0_vml_cpu")
    grad = {"self": "grad * special_i1(self)"}
    aliases = ("special_i0",)
    samples = around_zero()


class special_i1(_Special):
    """Modified Bessel function of the first kind, order 1."""

    schema = "special_i1(Tensor self) -> Tensor"
    run = scipy_kernel("i1")
    grad = {"self": "grad * (i0(self) + _bessel_i(self, 2)) / 2"}
    samples = around_zero()


class bessel_i(FormulaFunction):
    """Modified Bessel function of the first kind, order n."""

    schema = "_bessel_i(Tensor self, int n) -> Tensor"
    grad = {"self": "grad * (_bessel_i(self, abs(n - 1)) + _bessel_i(self, n + 1)) / 2"}

    def run(xp, self, n):
        return kernels.bessel_i(xp, self, n)

    def samples(s):
        for n in (0, 1, 2, 3):
            yield from around_zero(n)(s)


class special_i0e(_Special):
    """exp(-|x|) times the modified Bessel function of the first kind, order 0."""

    schema = "special_i0e(Tensor self) -> Tensor"
    run = scipy_kernel("i0e")
    grad = {"self": "grad * _scaled_bessel_i(self, 0, 1)"}
    samples = points()


class special_i1e(_Special):
    """exp(-|x|) times the modified Bessel function of the first kind, order 1."""

    schema = "special_i1e(Tensor self) -> Tensor"
    run = scipy_kernel("i1e")
    grad = {"self": "grad * _scaled_bessel_i(self, 1, 1)"}
    samples = points()


class scaled_bessel_i(FormulaFunction):
    """Derivative of some order of exp(-|x|) I_n(x); at the kink in 0 the mean of both sides."""

    schema = "_scaled_bessel_i(Tensor self, int n, int order) -> Tensor"
    grad = {"self": "grad * _scaled_bessel_i(self, n, order + 1)"}

    def run(xp, self, n, order):
        return kernels.scaled_bessel_i(xp, self, n, order)

    def samples(s):
        for n in (0, 1):
            yield s(s.real(3, 4), n, 1)
            yield s(s.real(3, low=24, high=26), n, 1)
        yield s(s.real(), 0, 2)
        yield s(s.real(0, 3), 1, 1)


class special_modified_bessel_i0(_Special):
    """Modified Bessel function of the first kind, order 0."""

    schema = "special_modified_bessel_i0(Tensor self) -> Tensor"
    run = scipy_kernel("i0", label="modified_bessel_i0_cpu")
    grad = {"self": "grad * special_i1(self)"}
    samples = around_zero()


class special_modified_bessel_i1(_Special):
    """Modified Bessel function of the first kind, order 1."""

    schema = "special_modified_bessel_i1(Tensor self) -> Tensor"
    run = scipy_kernel("i1", label="modified_bessel_i1_cpu")
    grad = {"self": "grad * (i0(self) + _bessel_i(self, 2)) / 2"}
    samples = around_zero()


class special_bessel_j0(_Special):
    """Bessel function of the first kind, order 0."""

    schema = "special_bessel_j0(Tensor self) -> Tensor"
    run = scipy_kernel("j0", label="bessel_j0_cpu")
    grad = {"self": "-grad * special_bessel_j1(self)"}
    samples = around_zero()


class special_bessel_j1(_Special):
    """Bessel function of the first kind, order 1."""

    schema = "special_bessel_j1(Tensor self) -> Tensor"
    run = scipy_kernel("j1", label="bessel_j1_cpu")
    grad = {"self": "grad * (special_bessel_j0(self) - _bessel_j(self, 2)) / 2"}
    samples = around_zero()


class bessel_j(FormulaFunction):
    """Bessel function of the first kind, order n."""

    schema = "_bessel_j(Tensor self, int n) -> Tensor"
    grad = {
        "self": "grad * (_bessel_j(self, n - 1) - _bessel_j(self, n + 1)) / 2 if n else"
        " -grad * _bessel_j(self, 1)"
    }

    def run(xp, self, n):
        return kernels.bessel_j(xp, self, n)

    def samples(s):
        for n in (0, 1, 2, 3):
            yield from around_zero(n)(s)


class special_bessel_y0(_Special):
    """Bessel function of the second kind, order 0."""

    schema = "special_bessel_y0(Tensor self) -> Tensor"
    run = scipy_kernel("y0", label="bessel_y0_cpu")
    grad = {"self": "-grad * special_bessel_y1(self)"}
    samples = points(0.4, 9)


class special_bessel_y1(_Special):
    """Bessel function of the second kind, order 1."""

    schema = "special_bessel_y1(Tensor self) -> Tensor"
    run = scipy_kernel("y1", label="bessel_y1_cpu")
    grad = {"self": "grad * (special_bessel_y0(self) - _bessel_y(self, 2)) / 2"}
    samples = points(0.6, 9)


class bessel_y(FormulaFunction):
    """Bessel function of the second kind, order n."""

    schema = "_bessel_y(Tensor self, int n) -> Tensor"
    grad = {
        "self": "grad * (_bessel_y(self, n - 1) - _bessel_y(self, n + 1)) / 2 if n else"
        " -grad * _bessel_y(self, 1)"
    }

    def run(xp, self, n):
        return kernels.bessel_y(xp, self, n)

    def samples(s):
        yield from first_with(0, low=1.5, high=9)(s)
        yield from first_with(2, low=1.5, high=9)(s)


class special_modified_bessel_k0(_Special):
    """Modified Bessel function of the second kind, order 0."""

    schema = "special_modified_bessel_k0(Tensor self) -> Tensor"
    run = scipy_kernel("k0", label="modified_bessel_k0_cpu")
    grad = {"self": "-grad * special_modified_bessel_k1(self)"}
    samples = points(0.4, 5)


class special_modified_bessel_k1(_Special):
    """Modified Bessel function of the second kind, order 1."""

    schema = "special_modified_bessel_k1(Tensor self) -> Tensor"
    run = scipy_kernel("k1", label="modified_bessel_k1_cpu")
    grad = {"self": "-grad * (special_modified_bessel_k0(self) + _bessel_k(self, 2)) / 2"}
    samples = points(0.6, 5)


class bessel_k(FormulaFunction):
    """Modified Bessel function of the second kind, order n."""

    schema = "_bessel_k(Tensor self, int n) -> Tensor"
    grad = {"self": "-grad * (_bessel_k(self, abs(n - 1)) + _bessel_k(self, n + 1)) / 2"}

    def run(xp, self, n):
        return kernels.bessel_k(xp, self, n)

    def samples(s):
        yield from first_with(0, low=0.8, high=5)(s)
        yield from first_with(2, low=0.8, high=5)(s)


class special_scaled_modified_bessel_k0(_Special):
    """exp(x) times the modified Bessel function of the second kind, order 0."""

    schema = "special_scaled_modified_bessel_k0(Tensor x) -> Tensor"
    run = scipy_kernel("k0e", label="scaled_modified_bessel_k0_cpu")
    grad = {"x": "grad * _scaled_bessel_k(x, 0, 1)"}
    samples = points(0.4, 5)


class special_scaled_modified_bessel_k1(_Special):
    """exp(x) times the modified Bessel function of the second kind, order 1."""

    schema = "special_scaled_modified_bessel_k1(Tensor x) -> Tensor"
    run = scipy_kernel("k1e", label="scaled_modified_bessel_k1_cpu")
    grad = {"x": "grad * _scaled_bessel_k(x, 1, 1)"}
    samples = points(0.6, 5)


class scaled_bessel_k(FormulaFunction):
    """Derivative of some order of exp(x) K_n(x)."""

    schema = "_scaled_bessel_k(Tensor self, int n, int order) -> Tensor"
    grad = {"self": "grad * _scaled_bessel_k(self, n, order + 1)"}

    def run(xp, self, n, order):
        return kernels.scaled_bessel_k(xp, self, n, order)

    def samples(s):
        for n in (0, 1):
            yield s(s.real(3, 4, low=0.8, high=5), n, 1)
            yield s(s.real(3, low=24, high=26), n, 1)
        yield s(s.real(low=0.8, high=5), 0, 2)
        yield s(s.real(0, 3), 1, 1)


class special_spherical_bessel_j0(_Special):
    """sin(x) / x of each element, 1 at 0."""

    schema = "special_spherical_bessel_j0(Tensor x) -> Tensor"
    grad = {"x": "grad * _sinc_order(x, 1, False)"}
    samples = around_zero()

    def run(xp, x):
        refuse("spherical_bessel_j0_cpu", x, "c")
        return xp.where(xp.isinf(x), 0, kernels.sinc_order(xp, x, 0, False))


class sinc(ComplexFunction):
    """sin(pi x) / (pi x) of each element, 1 at 0."""

    schema = "sinc(Tensor self) -> Tensor"
    grad = {"self": "grad * _sinc_order(self, 1, True).conj()"}
    aliases = ("special_sinc",)
    samples = around_zero()

    def run(xp, self):
        return kernels.sinc_order(xp, self, 0, True)

    def decomp(self):
        angle = self * math.pi
        return ops.where(self == 0, 1, angle.sin() / angle)


class sinc_order(FormulaFunction):
    """Derivative of some order of sin(x) / x, or of sin(pi x) / (pi x)."""

    schema = "_sinc_order(Tensor self, int order, bool normalized) -> Tensor"
    grad = {"self": "grad * _sinc_order(self, order + 1, normalized).conj()"}
    complex = True

    def run(xp, self, order, normalized):
        return kernels.sinc_order(xp, self, order, normalized)

    def samples(s):
        for order, normalized in ((1, True), (2, True), (1, False), (2, False)):
            yield from around_zero(order, normalized)(s)


class special_airy_ai(_Special):
    """Airy function Ai of each element."""

    schema = "special_airy_ai(Tensor x) -> Tensor"
    grad = {"x": "grad * _airy_ai_prime(x)"}
    samples = points(-4, 4)

    def run(xp, x):
        refuse("airy_ai_cpu", x, "c")
        return special(xp).airy(x)[0]


class airy_ai_prime(FormulaFunction):
    """Derivative of the Airy function; its own derivative is x Ai(x)."""

    schema = "_airy_ai_prime(Tensor x) -> Tensor"
    grad = {"x": "grad * x * special_airy_ai(x)"}
    samples = points(-4, 4)

    def run(xp, x):
        return special(xp).airy(x)[1]
