"""Rounding and tests of each element: floor, round, isnan, nan_to_num."""

from __future__ import annotations

import math

from ..array import dtype as dt
from ..array.evaluate import rounded
from ..array.xp import comparable
from ..core.op import Pointwise
from ..table.packets import ops
from .pointwise import points, refuse

# ---------------------------------------------------------------------------------------------
# Rounding


def _between_integers(s):
    """Samples of a rounding operator, away from its jumps."""
    yield s(s.values([[-1.7, -0.4, 0.3], [1.2, 2.6, -2.3]]))
    yield s(s.values([[-1.7, -0.4, 0.3], [1.2, 2.6, -2.3]]).T)
    yield s(s.values(0.8))
    yield s(s.real(0, 3))


def by_function(name: str) -> tuple[str, str, str]:
    """Lowered, as an array function and in C: what has the same name in all of them."""
    return f"pointwise.unary('{name}')", name, f"{name}({{self}})"


class Rounding(Pointwise):
    """The next integer in some direction, by the array function `ufunc`; integers stay."""

    core = True
    constant = ("self",)
    samples = _between_integers

    @classmethod
    def run(cls, xp, self):
        refuse(f"{cls.base_name}_vml_cpu", self, "bc")
        if self.dtype.kind in "iu":
            return self.copy(order="K")
        return getattr(xp, cls.ufunc)(self)


class floor(Rounding):
    """Largest integer not above each element."""
    schema = "floor(Tensor self) -> Tensor"
    lower, ufunc, c = by_function("floor")


class ceil(Rounding):
    """Smallest integer not below each element."""
    schema = "ceil(Tensor self) -> Tensor"
    lower, ufunc, c = by_function("ceil")


class trunc(Rounding):
    """The integer part of each element."""
    schema = "trunc(Tensor self) -> Tensor"
    lower, ufunc, c = by_function("trunc")
    aliases = ("fix",)


class round_default(Rounding):
    """Nearest integer of each element; halves go to the even one."""
    schema = "round(Tensor self) -> Tensor"
    lower, ufunc, c = by_function("rint")
    aliases = ("special_round",)


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


class _Question(Pointwise):
    promote = "bool"
    nondiff = ("self",)
    complex = True
    samples = points()


class _Class(_Question):
    """Whether a floating-point number is one of a class."""

    inplace = False


class isnan(_Class):
    """Whether each element is NaN."""
    schema = "isnan(Tensor self) -> Tensor"
    lower = "pointwise.isnan"
    core = True
    run = "xp.isnan(self)"
    c = "{self} != {self}"


class isinf(_Class):
    """Whether each element is infinite."""
    schema = "isinf(Tensor self) -> Tensor"
    lower = "pointwise.isinf"
    core = True
    run = "xp.isinf(self)"
    c = "fabs({self}) == INFINITY"


class isfinite(_Class):
    """Whether each element is neither infinite nor NaN."""
    schema = "isfinite(Tensor self) -> Tensor"
    run = "xp.isfinite(self)"
    c = "fabs({self}) < INFINITY"

    def decomp(self):
        if not self.dtype.is_inexact:
            return ops.full_like(self, True, dtype=dt.bool_)
        return self.abs() < math.inf


class logical_not(_Question):
    """Whether each element is zero."""
    schema = "logical_not(Tensor self) -> Tensor"
    lower = "pointwise.logical('not')"
    core = True
    run = "self == 0"  # CuPy's logical_not takes no complex numbers
    c = "{self} == 0"


class bitwise_not(Pointwise):
    """Each integer with all bits inverted; negation of a bool."""
    schema = "bitwise_not(Tensor self) -> Tensor"
    lower = "pointwise.bitwise('not')"
    core = True
    nondiff = ("self",)

    def run(xp, self):
        refuse("bitwise_not_cpu", self, "fc")
        return xp.invert(self)

    samples = lambda s: [s(s.int(3, 4)), s(s.bool(3)), s(s.int())]


def _replacements(dtype: dt.DType, nan, posinf, neginf) -> list:
    """What stands for NaN and infinities: the largest numbers of the dtype if nothing is said."""
    limits = dt.finfo(dtype)
    numbers = [0.0 if nan is None else nan, limits.max if posinf is None else posinf,
               limits.min if neginf is None else neginf]
    return [rounded(n, dtype.np) for n in numbers] if dtype.itemsize == 2 else numbers


class nan_to_num(Pointwise):
    """Each element with NaN and infinities replaced by numbers."""
    ordered = False
    complex = None
    schema = ("nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None)"
              " -> Tensor")
    grad = {"self": "grad * self.isfinite()"}

    promote, dtype = "keep", "self.dtype"  # the limits are those of its own dtype

    def run(xp, self, nan, posinf, neginf):
        if self.dtype.kind in "biu":
            return self.copy()
        numbers = _replacements(dt.of(self.dtype), nan, posinf, neginf)
        out = xp.nan_to_num(comparable(xp, self), True, *numbers)
        return out.astype(self.dtype, copy=False)

    def decomp(self, nan=None, posinf=None, neginf=None):
        if not self.dtype.is_inexact:
            return self.clone()
        if self.is_complex():
            parts = [ops.nan_to_num(p, nan, posinf, neginf) for p in (self.real, self.imag)]
            return ops.complex(*parts)
        out = self
        for where, number in zip((self.isnan(), self == math.inf, self == -math.inf),
                                 _replacements(self.dtype, nan, posinf, neginf)):
            out = out.masked_fill(where, number)
        return out

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.values([1.0, math.nan, math.inf, -math.inf]), nan=2.0, posinf=3.0, neginf=4.0)
        yield s(s.real())
        yield s(s.real(0, 3))
