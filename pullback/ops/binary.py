"""Operators on two or three tensors, element by element: arithmetic, powers, bounds.

Where an argument is listed in `scalars` it also takes a Python number, so `x + 2` is an
`add.Tensor`; other operators go to their `Scalar` overload with a number.  Both follow PyTorch, so
that graphs agree.  Formulas longer than a line are in `formulas/pointwise.py`.  Read next:
`multivariate.py`, `compare.py`, `bits.py`, `reduce.py`.
"""

from __future__ import annotations

import numpy as np

from ..array import dtype as dt
from ..core.op import Pointwise
from ..errors import DTypeError
from ..table.packets import ops
from .create import as_number, fill_number
from .pointwise import ComplexFunction, refuse

# ---------------------------------------------------------------------------------------------
# What the kernels share


def kind_of(value) -> str:
    """NumPy's letter for the kind of an array or a Python number: b, i, u, f or c."""
    dtype = getattr(value, "dtype", None)
    if dtype is not None:
        return dtype.kind
    return {bool: "b", int: "i", float: "f", complex: "c"}[type(value)]


def name_of(value) -> str:
    """Name of the dtype of an array or a Python number."""
    dtype = getattr(value, "dtype", None)
    return type(value).__name__ if dtype is None else dtype.name


def refuse_pair(name: str, self, other, kinds: str) -> None:
    """`refuse` for two operands that were promoted to one dtype or are numbers."""
    refuse(name, self if hasattr(self, "dtype") else other, kinds)


def times_alpha(self, other, alpha):
    """`other` times the factor of add and sub, which must be a number of the result's dtype."""
    kind = kind_of(self)
    if isinstance(alpha, bool) and kind != "b":
        raise DTypeError("Boolean alpha only supported for Boolean results.")
    if kind in "biu" and isinstance(alpha, (float, complex)):
        raise DTypeError("For integral input tensors, argument alpha must not be a floating point "
                         "number.")
    if kind != "c" and isinstance(alpha, complex):
        raise DTypeError("For non-complex input tensors, argument alpha must not be a complex "
                         "number.")
    return other * (as_number(self, alpha) if kind in "biu" and hasattr(self, "dtype") else alpha)


def check_subtraction(self, other) -> None:
    """Bool operands of a subtraction are refused."""
    kinds = kind_of(self) + kind_of(other)
    if kinds == "bb":
        raise DTypeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
            "`logical_xor()` operator instead.")
    if "b" in kinds:
        raise DTypeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
            "invert a mask, use the `~` or `logical_not()` operator instead.")


def check_divisor(xp, self, other) -> None:
    """Integer division by zero is an error, as in Python."""
    if kind_of(self) in "iu" and kind_of(other) in "iu" and bool(xp.any(xp.equal(other, 0))):
        raise RuntimeError("ZeroDivisionError")


def as_tensor(number, other):
    """A number as a 0-d tensor of the dtype that it has in an operation with the tensor `other`.

    One that is too large wraps around or is infinite.
    """
    dtype = dt.result_type((number, other))
    if type(number) is int or type(number) is float:
        with np.errstate(over="ignore"):
            number = np.asarray(number).astype(dtype.np).item()
    return ops.scalar_tensor(number, dtype=dtype, device=other.device)


def pairs(low: float = -2.0, high: float = 2.0, low2: float | None = None,
          high2: float | None = None, number: float | None = None):
    """Samples of a binary operator: equal shapes, broadcasting both ways, 0-d, empty, a number."""
    low2, high2 = low if low2 is None else low2, high if high2 is None else high2

    def samples(s):
        yield s(s.real(3, 4, low=low, high=high), s.real(3, 4, low=low2, high=high2))
        yield s(s.real(4, 3, low=low, high=high).T, s.real(4, low=low2, high=high2))
        yield s(s.real(1, 4, low=low, high=high), s.real(3, 1, low=low2, high=high2))
        yield s(s.real(low=low, high=high), s.real(low=low2, high=high2))
        yield s(s.real(0, 3, low=low, high=high), s.real(low=low2, high=high2))
        if number is not None:
            yield s(s.real(3, 4, low=low, high=high), number)

    return samples


def quotients(s):
    """Samples of a rounded division, away from its jumps."""
    x, y = [[5.3, -5.2, 3.1], [-0.7, 4.4, 2.2]], [[3.0, 2.0, -2.0], [3.0, -3.0, 1.5]]
    yield s(s.values(x), s.values(y))
    yield s(s.values([5.3, -5.2, 4.4]), s.values([[3.0], [2.0]]))
    yield s(s.values(5.3), s.values(-2.0))
    yield s(s.real(0, 3), s.values(3.0))


def with_number(*numbers, low: float = -2.0, high: float = 2.0):
    """Samples of a `Scalar` overload."""

    def samples(s):
        for number in numbers:
            yield s(s.real(3, 4, low=low, high=high), number)
            yield s(s.real(low=low, high=high), number)
        yield s(s.real(0, 3, low=low, high=high), numbers[0])

    return samples


def integers(low: int = 0, high: int = 10):
    """Samples of an operator on integers."""

    def samples(s):
        yield s(s.int(3, 4, low=low, high=high), s.int(3, 4, low=1, high=high))
        yield s(s.int(4, low=low, high=high), s.int(3, 1, low=1, high=high))
        yield s(s.int(low=low, high=high), s.int(low=1, high=high))

    return samples


# ---------------------------------------------------------------------------------------------
# Sums and differences


class add_Tensor(Pointwise):
    """Sum of two tensors, the second times `alpha`."""
    schema = "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    with_number = "add.Scalar"
    legacy = ("self alpha other",)
    lower = "pointwise.binary('add')"
    core = True
    rounds = ("alpha",)
    scalars = ("self", "other")
    ufunc = "add"
    grad = {"self": "grad", "other": "grad if alpha == 1 else grad * alpha.conjugate()"}
    c = "{self} + {alpha} * {other}"
    complex = True

    def run(xp, self, other, alpha):
        if type(alpha) is int and alpha == 1:  # True must be checked
            return xp.add(self, other)
        return xp.add(self, times_alpha(self, other, alpha))

    def samples(s):
        yield from pairs(number=1.5)(s)
        yield s(s.real(3, 4), s.real(4), alpha=2)


class add_Scalar(Pointwise):
    """Sum of a tensor and a number times `alpha`."""
    schema = "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor"
    lower = "pointwise.binary('add')"
    core = True
    rounds = ("alpha",)
    promotes = ("self", "other")
    grad = {"self": "grad"}
    c = "{self} + {alpha} * {other}"
    complex = True
    samples = with_number(2, 1.5)

    def run(xp, self, other, alpha):
        return xp.add(self, times_alpha(self, other, alpha))


class sub_Tensor(Pointwise):
    """Difference of two tensors, the second times `alpha`."""
    schema = "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    with_number = "sub.Scalar"
    legacy = ("self alpha other",)
    lower = "pointwise.binary('sub')"
    core = True
    rounds = ("alpha",)
    scalars = ("self", "other")
    ufunc = "subtract"
    grad = {"self": "grad", "other": "-grad if alpha == 1 else -grad * alpha.conjugate()"}
    c = "{self} - {alpha} * {other}"
    complex = True
    aliases = ("subtract",)

    def check(self, other, alpha):
        check_subtraction(self, other)

    def run(xp, self, other, alpha):
        if type(alpha) is int and alpha == 1:
            return xp.subtract(self, other)
        return xp.subtract(self, times_alpha(self, other, alpha))

    def samples(s):
        yield from pairs(number=1.5)(s)
        yield s(s.real(3, 4), s.real(4), alpha=2)


class sub_Scalar(Pointwise):
    """Difference of a tensor and a number times `alpha`."""
    schema = "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor"
    lower = "pointwise.binary('sub')"
    core = True
    rounds = ("alpha",)
    promotes = ("self", "other")
    grad = {"self": "grad"}
    c = "{self} - {alpha} * {other}"
    complex = True
    samples = with_number(2, 1.5)

    def check(self, other, alpha):
        check_subtraction(self, other)

    def run(xp, self, other, alpha):
        return xp.subtract(self, times_alpha(self, other, alpha))


class _Rsub(Pointwise):
    rounds = ("alpha",)
    c = "{other} - {alpha} * {self}"
    complex = True
    inplace = False
    method = False

    def check(self, other, alpha):
        check_subtraction(self, other)

    def run(xp, self, other, alpha):
        one = type(alpha) is int and alpha == 1
        return xp.subtract(other, self if one else times_alpha(self, self, alpha))

    def decomp(self, other, alpha=1):
        return ops.sub(other, self, alpha=alpha)


class rsub_Tensor(_Rsub):
    """`other` minus `alpha` times `self`."""
    schema = "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    lower = "pointwise.rsub"
    tags = ()
    grad = {"self": "-grad if alpha == 1 else -grad * alpha.conjugate()", "other": "grad"}

    def samples(s):
        yield from pairs()(s)
        yield s(s.real(3, 4), s.real(4), alpha=2)


class rsub_Scalar(_Rsub):
    """A number minus `alpha` times a tensor."""
    schema = "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor"
    lower = "pointwise.rsub"
    promotes = ("self", "other")
    grad = {"self": "-grad if alpha == 1 else -grad * alpha.conjugate()"}
    samples = with_number(2, 1.5)


# ---------------------------------------------------------------------------------------------
# Products and quotients


class _Product:
    widens = True
    lower = "pointwise.binary('mul')"
    core = True
    unrounded = ("other",)
    run = "xp.multiply(self, other)"
    c = "{self} * {other}"
    complex = True


class mul_Tensor(_Product, Pointwise):
    """Product of two tensors."""
    schema = "mul.Tensor(Tensor self, Tensor other) -> Tensor"
    with_number = "mul.Scalar"
    scalars = ("self", "other")
    ufunc = "multiply"
    grad = {"self": "grad * other.conj()", "other": "grad * self.conj()"}
    aliases = ("multiply",)
    samples = pairs(number=1.5)


class mul_Scalar(_Product, Pointwise):
    """Product of a tensor and a number."""
    schema = "mul.Scalar(Tensor self, Scalar other) -> Tensor"
    promotes = ("self", "other")
    grad = {"self": "grad * other.conjugate()"}
    samples = with_number(2, 1.5)


class _Division:
    core = True
    lower = "pointwise.div"
    unrounded = ("other",)
    cure = "keep the divisor away from 0: x / (y + eps), or x / where(y == 0, 1, y)"


class div_Tensor(_Division, ComplexFunction):
    """Quotient of two tensors."""
    schema = "div.Tensor(Tensor self, Tensor other) -> Tensor"
    with_number = "div.Scalar"
    widens = True
    scalars = ("self", "other")
    ufunc = "true_divide"
    run = "xp.true_divide(self, other)"
    grad = {"self": "grad / other.conj()", "other": "ratio_pullback_divisor(grad, self, other)"}
    c = "{self} / {other}"
    aliases = ("divide", "true_divide")
    samples = pairs(low2=0.4, high2=2, number=1.5)


class div_Scalar(_Division, ComplexFunction):
    """Quotient of a tensor and a number."""
    schema = "div.Scalar(Tensor self, Scalar other) -> Tensor"
    widens = True
    promotes = ("self", "other")
    run = "xp.true_divide(self, other)"
    grad = {"self": "grad / other.conjugate()"}
    c = "{self} / {other}"
    samples = with_number(2, 1.5)


def _quotient(xp, self, other, rounding_mode):
    """The quotient, rounded towards zero ("trunc"), down ("floor"), or not at all."""
    if rounding_mode is None:
        if kind_of(self) in "biu":
            return xp.true_divide(self, other, dtype=xp.float64)
        return xp.true_divide(self, other)
    if rounding_mode not in ("trunc", "floor"):
        raise RuntimeError("div expected rounding_mode to be one of None, 'trunc', or 'floor' but "
                           f"found '{rounding_mode}'")
    refuse_pair(f"div_{rounding_mode}_cpu", self, other, "bc")
    check_divisor(xp, self, other)
    if rounding_mode == "floor":
        return xp.floor_divide(self, other)
    if kind_of(self) in "iu":
        down = xp.floor_divide(self, other)
        exact = xp.equal(down * other, self)
        return down + xp.where(exact | ((self < 0) == (other < 0)), 0, 1)
    return xp.trunc(xp.true_divide(self, other))


def _quotient_dtype(self, other, rounding_mode):
    found = dt.result_type((self, other))
    return dt.default() if rounding_mode is None and not found.is_inexact else found


class div_Tensor_mode(_Division, Pointwise):
    """Quotient of two tensors, rounded as `rounding_mode` says."""
    schema = "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor"
    writing = "out_mode"
    scalars = ("self", "other")
    run = _quotient
    dtype = _quotient_dtype
    grad = {
        "self": "grad / other.conj() if rounding_mode is None else zeros_like(grad)",
        "other": "ratio_pullback_divisor(grad, self, other) if rounding_mode is None"
                 " else zeros_like(grad)",
    }
    complex = False

    def samples(s):
        for mode in ("floor", "trunc", None):
            for call in quotients(s):
                yield s(*call.args, rounding_mode=mode)
            yield s(s.values([5.3, -5.2]), 2, rounding_mode=mode)


class div_Scalar_mode(_Division, Pointwise):
    """Quotient of a tensor and a number, rounded as `rounding_mode` says."""
    schema = "div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor"
    promotes = ("self", "other")
    run = _quotient
    dtype = _quotient_dtype
    grad = {"self": "grad / other.conjugate() if rounding_mode is None else zeros_like(grad)"}

    def samples(s):
        for mode in ("floor", "trunc", None):
            yield s(s.values([5.3, -5.2]), 1.5, rounding_mode=mode)


class floor_divide(Pointwise):
    """Quotient rounded down."""
    schema = "floor_divide(Tensor self, Tensor other) -> Tensor"
    tags = ()
    unrounded = ("other",)
    inplace = "Tensor"
    scalars = ("self", "other")
    run = lambda xp, self, other: _quotient(xp, self, other, "floor")
    constant = ("self", "other")

    def samples(s):
        yield from quotients(s)
        yield s(s.values([5.3, -5.2]), 2)

    def decomp(self, other):
        return ops.div(self, other, rounding_mode="floor")


class floor_divide_Scalar(Pointwise):
    """Quotient of a tensor and a number, rounded down."""
    schema = "floor_divide.Scalar(Tensor self, Scalar other) -> Tensor"
    tags = ()
    unrounded = ("other",)
    promotes = ("self", "other")
    run = lambda xp, self, other: _quotient(xp, self, other, "floor")
    constant = ("self",)
    samples = with_number(2, 1.5)

    def decomp(self, other):
        return ops.div(self, other, rounding_mode="floor")


def _remainder(xp, self, other):
    refuse_pair("remainder_cpu", self, other, "bc")
    check_divisor(xp, self, other)
    return xp.remainder(self, other)


class _Remainder:
    lower = "pointwise.modulo('remainder')"
    run = _remainder


class remainder_Tensor(_Remainder, Pointwise):
    """Remainder of the division that rounds down; it has the sign of the divisor."""
    schema = "remainder.Tensor(Tensor self, Tensor other) -> Tensor"
    core = True
    number = 1
    grad = {"self": "grad", "other": "-grad * self.div(other, rounding_mode='floor')"}
    samples = quotients


class remainder_Scalar(_Remainder, Pointwise):
    """Remainder of the division by a number that rounds down."""
    schema = "remainder.Scalar(Tensor self, Scalar other) -> Tensor"
    core = True
    number = 0
    promotes = ("self", "other")
    grad = {"self": "grad"}
    samples = with_number(0.7, -1.1)


class remainder_Scalar_Tensor(_Remainder, Pointwise):
    """Remainder of a number divided by each element, rounding down."""
    schema = "remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor"
    number = 1
    promotes = ("self", "other")
    grad = {"other": "-grad * (self / other).floor()"}
    method = False
    inplace = False
    samples = lambda s: [s(5, s.values([3.0, -2.0, 0.7]))]

    def decomp(self, other):
        return ops.remainder(as_tensor(self, other), other)


def _fmod(xp, self, other):
    refuse_pair("fmod_cpu", self, other, "bc")
    check_divisor(xp, self, other)
    return xp.fmod(self, other)


class _Fmod:
    lower = "pointwise.modulo('fmod')"
    run = _fmod


class fmod_Tensor(_Fmod, Pointwise):
    """Remainder of the division that rounds towards zero; it has the sign of the dividend."""
    schema = "fmod.Tensor(Tensor self, Tensor other) -> Tensor"
    core = True
    number = 1
    grad = {"self": "grad", "other": "-grad * self.div(other, rounding_mode='trunc')"}
    samples = quotients


class fmod_Scalar(_Fmod, Pointwise):
    """Remainder of the division by a number that rounds towards zero."""
    schema = "fmod.Scalar(Tensor self, Scalar other) -> Tensor"
    core = True
    number = 0
    promotes = ("self", "other")
    grad = {"self": "grad"}
    samples = with_number(0.7, -1.1)


# ---------------------------------------------------------------------------------------------
# Powers


def _integer_power(xp, base, exponent):
    """Integers to integer powers; a negative power is 0 unless the base is 1 or -1."""
    negative = exponent < 0
    value = xp.power(base, xp.where(negative, 0, exponent))
    odd = xp.where(exponent % 2 == 0, 1, -1)
    inverse = xp.where(base == 1, 1, xp.where(base == -1, odd, 0))
    return xp.where(negative, inverse, value)


class _Power:
    lower = "pointwise.pow"
    core = True
    c = "pow({self}, {exponent})"
    complex = True
    cure = "keep the base away from 0 where the exponent is negative, and the result in range"


class pow_Tensor_Tensor(_Power, Pointwise):
    """Each element of the first tensor to the power of the second."""
    schema = "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor"
    number = 1
    inplace = "Tensor"
    grad = {
        "self": "power_pullback_base(grad, self, exponent)",
        "exponent": "power_pullback_exponent(grad, self, exponent, result)",
    }
    samples = pairs(0.3, 2, -2, 2)

    def run(xp, self, exponent):
        refuse("pow", self, "b")
        if self.dtype.kind in "iu":
            return _integer_power(xp, self, exponent)
        return xp.power(self, exponent)


def _check_exponent(self, exponent):
    """Refuse whole numbers to powers that they have not, or that are none of their own dtype."""
    if self.dtype.kind not in "iu" or type(exponent) is not int:
        return
    if exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if not dt.holds(dt.of(self.dtype), exponent):
        raise RuntimeError(f"value cannot be converted to type {self.dtype.name} without overflow")


class pow_Tensor_Scalar(_Power, Pointwise):
    """Each element to the power of a number."""
    schema = "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor"
    number = 0
    inplace = "Scalar"
    promotes = ("self", "exponent")
    check = _check_exponent
    grad = {"self": "power_pullback(grad, self, exponent)"}
    samples = with_number(2, 3, 0.5, -1, 1.7, 0, 1, low=0.3)

    def run(xp, self, exponent):
        kind = self.dtype.kind
        if hasattr(exponent, "item"):
            exponent = exponent.item()
        if kind in "biu":
            return xp.power(self, exponent)
        # the usual exponents without the general power, which is many times slower
        if exponent == 2:
            return xp.multiply(self, self)
        if exponent == 1:
            return xp.multiply(self, 1)
        if exponent == 0.5:
            return xp.sqrt(self)
        if exponent == -1:
            return xp.reciprocal(self)
        if exponent == 3 and kind == "f":
            return self * self * self
        if exponent == -0.5 and kind == "f":
            return xp.reciprocal(xp.sqrt(self))
        if exponent == -2 and kind == "f":
            return xp.reciprocal(self * self)
        return xp.power(self, exponent)


class pow_Scalar(_Power, Pointwise):
    """A number to the power of each element."""
    schema = "pow.Scalar(Scalar self, Tensor exponent) -> Tensor"
    promotes = ("self", "exponent")
    grad = {"exponent": "power_pullback_number(grad, self, exponent, result)"}
    method = False
    inplace = False

    def run(xp, self, exponent):
        refuse("pow", exponent, "b")
        base = xp.asarray(self, dtype=exponent.dtype)
        if exponent.dtype.kind in "iu":
            return _integer_power(xp, base, exponent)
        return xp.power(base, exponent)

    def samples(s):
        for base in (2, 0.5, 1.7):
            yield s(base, s.real(3, 4))
            yield s(base, s.real())
        yield s(2, s.real(0, 3))


# ---------------------------------------------------------------------------------------------
# Larger, smaller, clamped


class maximum(Pointwise):
    """The larger of two elements; NaN wins."""
    schema = "maximum(Tensor self, Tensor other) -> Tensor"
    lower = "pointwise.binary('max')"
    core = True
    ufunc = "maximum"
    grad = {
        "self": "where(self == other, grad / 2, grad).masked_fill(self < other, 0)",
        "other": "where(self == other, grad / 2, grad).masked_fill(self > other, 0)",
    }
    c = "where(({self} > {other}) | ({self} != {self}), {self}, {other})"
    inplace = False
    samples = pairs()

    def run(xp, self, other):
        refuse("maximum_cpu", self, "c")
        return xp.maximum(self, other)


class minimum(Pointwise):
    """The smaller of two elements; NaN wins."""
    schema = "minimum(Tensor self, Tensor other) -> Tensor"
    lower = "pointwise.binary('min')"
    core = True
    ufunc = "minimum"
    grad = {
        "self": "where(self == other, grad / 2, grad).masked_fill(self > other, 0)",
        "other": "where(self == other, grad / 2, grad).masked_fill(self < other, 0)",
    }
    c = "where(({self} < {other}) | ({self} != {self}), {self}, {other})"
    inplace = False
    samples = pairs()

    def run(xp, self, other):
        refuse("minimum_cpu", self, "c")
        return xp.minimum(self, other)


class fmax(Pointwise):
    """The larger of two elements; a number wins over NaN."""
    schema = "fmax(Tensor self, Tensor other) -> Tensor"
    ufunc = "fmax"
    grad = {
        "self": "grad.masked_fill((self >= other).logical_or(other.isnan()).logical_not(), 0)",
        "other": "grad.masked_fill((self >= other).logical_or(other.isnan()), 0)",
    }
    c = "fmax({self}, {other})"
    inplace = False
    samples = pairs()

    def run(xp, self, other):
        refuse("fmax_cpu", self, "c")
        return xp.fmax(self, other)

    def decomp(self, other):
        return ops.where((self >= other).logical_or(other.isnan()), self, other)


class fmin(Pointwise):
    """The smaller of two elements; a number wins over NaN."""
    schema = "fmin(Tensor self, Tensor other) -> Tensor"
    ufunc = "fmin"
    grad = {
        "self": "grad.masked_fill((self <= other).logical_or(other.isnan()).logical_not(), 0)",
        "other": "grad.masked_fill((self <= other).logical_or(other.isnan()), 0)",
    }
    c = "fmin({self}, {other})"
    inplace = False
    samples = pairs()

    def run(xp, self, other):
        refuse("fmin_cpu", self, "c")
        return xp.fmin(self, other)

    def decomp(self, other):
        return ops.where((self <= other).logical_or(other.isnan()), self, other)


def _clamp(xp, self, min, max):
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if self.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    if min is not None:
        self = xp.maximum(self, xp.asarray(min, dtype=self.dtype))
    if max is not None:
        self = xp.minimum(self, xp.asarray(max, dtype=self.dtype))
    return self


def _clamp_by_numbers(xp, self, min, max):
    refuse("clamp" + "_min" * (max is None) + "_max" * (min is None) + "_scalar_cpu", self, "b")
    return _clamp(xp, self, min, max)


def check_range(convert, *operands) -> None:
    """Numbers among operands must be in the range of the dtype that all have together."""
    numbers = [v for v in operands
               if (type(v) is int or type(v) is float) and not -128 < v < 128]  # those fit all
    if numbers:
        dtype = dt.result_type([v for v in operands if v is not None])
        for number in numbers:
            convert(dtype, number)


class clamp_Tensor(Pointwise):
    """Each element moved into the range between two tensors; the upper bound wins."""
    schema = "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor"
    lower = "pointwise.clamp"
    core = True
    run = _clamp
    grad = {
        "self": "where(between(self, min, max), grad, 0)",
        "min": "clamp_pullback_low(grad, self, min, max)",
        "max": "clamp_pullback_high(grad, self, min, max)",
    }
    aliases = ("clip",)

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 4, low=-1, high=0), s.real(4, low=0, high=1))
        yield s(s.real(3, 4), None, s.real(3, 1))
        yield s(s.real(3, 4), min=s.real())
        yield s(s.real(3, 4), s.real(3, 4), s.real(3, 4))
        yield s(s.real(0, 3), s.real(3))


class clamp_default(Pointwise):
    """Each element moved into the range between two numbers."""
    schema = "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor"
    lower = "pointwise.clamp"
    core = True
    out = ("exact",)
    promotes = ("self", "min", "max")
    check = lambda self, min, max: check_range(fill_number, self, min, max)
    run = _clamp_by_numbers
    grad = {"self": "where(between(self, min, max), grad, 0)"}

    def samples(s):
        yield s(s.real(3, 4), -0.5, 1.5)
        yield s(s.real(4, 3).T, max=0.5)
        yield s(s.real(), 0.1)
        yield s(s.real(3, 4), 1.0, -1.0)
        yield s(s.real(0, 3), 0, 1)


class clamp_min_Tensor(Pointwise):
    """Each element, or the other tensor's where that is larger."""
    schema = "clamp_min.Tensor(Tensor self, Tensor min) -> Tensor"
    lower = "pointwise.clamp_min"
    number = 1
    run = lambda xp, self, min: _clamp(xp, self, min, None)
    grad = {"self": "where(self >= min, grad, 0)", "min": "where(self < min, grad, 0)"}
    samples = pairs()

    def decomp(self, min):
        return ops.clamp(self, min=min)


class clamp_min_default(Pointwise):
    """Each element, or `min` where that is larger."""
    schema = "clamp_min(Tensor self, Scalar min) -> Tensor"
    lower = "pointwise.clamp_min"
    out = ("exact",)
    number = 0
    promotes = ("self", "min")
    check = lambda self, min: check_range(fill_number, self, min)
    run = lambda xp, self, min: _clamp_by_numbers(xp, self, min, None)
    grad = {"self": "where(self >= min, grad, 0)"}
    samples = with_number(0.5, -1)

    def decomp(self, min):
        return ops.clamp(self, min=min)


class clamp_max_Tensor(Pointwise):
    """Each element, or the other tensor's where that is smaller."""
    schema = "clamp_max.Tensor(Tensor self, Tensor max) -> Tensor"
    lower = "pointwise.clamp_max"
    number = 1
    run = lambda xp, self, max: _clamp(xp, self, None, max)
    grad = {"self": "where(self <= max, grad, 0)", "max": "where(self > max, grad, 0)"}
    samples = pairs()

    def decomp(self, max):
        return ops.clamp(self, max=max)


class clamp_max_default(Pointwise):
    """Each element, or `max` where that is smaller."""
    schema = "clamp_max(Tensor self, Scalar max) -> Tensor"
    lower = "pointwise.clamp_max"
    out = ("exact",)
    number = 0
    promotes = ("self", "max")
    check = lambda self, max: check_range(fill_number, self, max)
    run = lambda xp, self, max: _clamp_by_numbers(xp, self, None, max)
    grad = {"self": "where(self <= max, grad, 0)"}
    samples = with_number(0.5, -1)

    def decomp(self, max):
        return ops.clamp(self, max=max)
