"""Parts of numbers, and complex numbers from real ones: frexp, ldexp, gcd, polar."""

from __future__ import annotations

import math

from ..array import dtype as dt
from ..core.op import Pointwise
from ..errors import DTypeError
from ..table.packets import ops
from .kinds import PairOfEach
from .pointwise import ComplexFunction, refuse, title
from .special import pairs

# ---------------------------------------------------------------------------------------------
# Parts of numbers


class frexp_Tensor(PairOfEach):
    """Each element as m 2^e with 0.5 <= |m| < 1."""

    schema = "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)"
    kept = "bits"
    tags = ("pointwise",)
    memory_format = "self"
    grad = {"self": "ldexp(grad, -exponent)"}
    push = {"mantissa": "ldexp(self_t, -exponent)"}
    dtype = "[self.dtype, dt.int32]"

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


class ldexp_Tensor(ComplexFunction):
    """x 2^y, without overflow of 2^y."""

    schema = "ldexp.Tensor(Tensor self, Tensor other) -> Tensor"
    unrounded = ("other",)
    inplace = "default"
    grad = {
        "self": "ldexp(grad, other.conj())",
        "other": "grad * (result * math.log(2)).conj()",
    }

    def run(xp, self, other):
        if other.dtype.kind == "c":
            return self * xp.exp(other * math.log(2))
        whole = xp.clip(xp.trunc(xp.where(xp.isfinite(other), other, 0)), -5000, 5000)
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
    kept = "bits"
    promote = "keep"  # half precision must not be widened: its neighbours are further away
    promotes = ("self", "other")
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
    kept = "bits"
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
    kept = "view"
    tags = ()
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
    autocast = "float32"
    tags = ()
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
