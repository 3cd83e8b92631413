"""Comparison and choice: eq, lt, isclose, where."""

from __future__ import annotations

import math

from ..array import dtype as dt
from ..core.op import Pointwise
from ..errors import DTypeError
from ..table.packets import ops
from .binary import as_tensor, check_range, integers, refuse_pair, with_number
from .create import wrapped_number
from .kinds import ComplexComposite, SameTuple
from .pointwise import title

# ---------------------------------------------------------------------------------------------
# Choice


def _where(xp, condition, self, other):
    if condition.dtype.kind != "b" and dt.name_of(condition.dtype) != "uint8":
        raise DTypeError("where expected condition to be a boolean tensor, but got a tensor with "
                         f"dtype {condition.dtype.name}")
    return xp.where(condition, self, other)


class _Where(Pointwise):
    promotes = ("self", "other")
    run = _where
    nondiff = ("condition",)
    c = "where({condition}, {self}, {other})"
    inplace = False
    method = False  # as a method, the condition comes second: see tensor/values.py
    check = lambda condition, self, other: check_range(wrapped_number, self, other)


class where_self(_Where):
    """Elements of the first tensor where the condition holds, else of the second."""
    schema = "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor"
    lower = "pointwise.where"
    core = True
    out = ("exact",)
    grad = {"self": "where(condition, grad, 0)", "other": "where(condition, 0, grad)"}
    complex = True

    def samples(s):
        yield s(s.bool(3, 4), s.real(3, 4), s.real(3, 4))
        yield s(s.bool(4), s.real(3, 1), s.real())
        yield s(s.bool(), s.real(), s.real())
        yield s(s.bool(0, 3), s.real(3), s.real(0, 1))


class where_ScalarOther(_Where):
    """Elements of the tensor where the condition holds, else a number."""
    schema = "where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor"
    lower = "pointwise.where"
    tags = ()
    number = 0
    grad = {"self": "where(condition, grad, 0)"}
    complex = True

    def decomp(condition, self, other):
        return ops.where(condition, self, as_tensor(other, self))

    samples = lambda s: [s(s.bool(3, 4), s.real(3, 4), 1.5), s(s.bool(4), s.real(3, 1), 0)]


class where_ScalarSelf(_Where):
    """A number where the condition holds, else elements of the tensor."""
    schema = "where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor"
    lower = "pointwise.where"
    tags = ()
    number = 0
    grad = {"other": "where(condition, 0, grad)"}
    complex = True

    def decomp(condition, self, other):
        return ops.where(condition, as_tensor(self, other), other)

    samples = lambda s: [s(s.bool(3, 4), 1.5, s.real(3, 4)), s(s.bool(4), 0, s.real(3, 1))]


class where_Scalar(_Where):
    """One number where the condition holds, else another."""
    schema = "where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor"
    lower = "pointwise.where"
    tags = ()
    dtype = "dt.result_type((self, other))"

    def decomp(condition, self, other):
        dtype = dt.result_type((self, other))
        parts = (ops.scalar_tensor(v, dtype=dtype, device=condition.device) for v in (self, other))
        return ops.where(condition, *parts)

    samples = lambda s: [s(s.bool(3, 4), 1.5, 2), s(s.bool(4), 0, 1)]


class where_default(SameTuple):
    """Coordinates of the true elements, one vector per dim."""

    schema = "where(Tensor condition) -> Tensor[]"
    same_as = "nonzero_numpy"
    samples = lambda s: [s(s.bool(3, 4))]


# ---------------------------------------------------------------------------------------------
# Comparison


class _Comparison(Pointwise):
    promote = "bool"
    nondiff = ("self", "other")
    samples = integers()


class _WithNumber(Pointwise):
    promote = "bool"
    promotes = ("self", "other")
    nondiff = ("self",)
    samples = with_number(1, 0.5)


class eq_Tensor(_Comparison):
    """Whether two elements are equal."""
    schema = "eq.Tensor(Tensor self, Tensor other) -> Tensor"
    equality = True
    lower = "pointwise.compare('eq')"
    core = True
    run = "xp.equal(self, other)"
    c = "{self} == {other}"
    complex = True


class eq_Scalar(_WithNumber):
    """Whether each element equals a number."""
    schema = "eq.Scalar(Tensor self, Scalar other) -> Tensor"
    equality = True
    lower = "pointwise.compare('eq')"
    core = True
    run = "xp.equal(self, other)"
    c = "{self} == {other}"
    complex = True


class ne_Tensor(_Comparison):
    """Whether two elements differ."""
    schema = "ne.Tensor(Tensor self, Tensor other) -> Tensor"
    equality = True
    lower = "pointwise.compare('ne')"
    core = True
    run = "xp.not_equal(self, other)"
    c = "{self} != {other}"
    complex = True
    aliases = ("not_equal",)


class ne_Scalar(_WithNumber):
    """Whether each element differs from a number."""
    schema = "ne.Scalar(Tensor self, Scalar other) -> Tensor"
    equality = True
    lower = "pointwise.compare('ne')"
    core = True
    run = "xp.not_equal(self, other)"
    c = "{self} != {other}"
    complex = True


def _order(name: str, function: str):
    """Kernel of an order comparison; complex numbers have no order."""

    def run(xp, self, other):
        refuse_pair(f"{name}_cpu", self, other, "c")
        return getattr(xp, function)(self, other)

    return run


class lt_Tensor(_Comparison):
    """Whether the first element is smaller."""
    schema = "lt.Tensor(Tensor self, Tensor other) -> Tensor"
    lower = "pointwise.compare('lt')"
    core = True
    run = _order("lt", "less")
    c = "{self} < {other}"
    aliases = ("less",)


class lt_Scalar(_WithNumber):
    """Whether each element is smaller than a number."""
    schema = "lt.Scalar(Tensor self, Scalar other) -> Tensor"
    lower = "pointwise.compare('lt')"
    core = True
    run = _order("lt", "less")
    c = "{self} < {other}"


class le_Tensor(_Comparison):
    """Whether the first element is not larger."""
    schema = "le.Tensor(Tensor self, Tensor other) -> Tensor"
    lower = "pointwise.compare('le')"
    core = True
    run = _order("le", "less_equal")
    c = "{self} <= {other}"
    aliases = ("less_equal",)


class le_Scalar(_WithNumber):
    """Whether each element is not larger than a number."""
    schema = "le.Scalar(Tensor self, Scalar other) -> Tensor"
    lower = "pointwise.compare('le')"
    core = True
    run = _order("le", "less_equal")
    c = "{self} <= {other}"


class gt_Tensor(_Comparison):
    """Whether the first element is larger."""
    schema = "gt.Tensor(Tensor self, Tensor other) -> Tensor"
    lower = "pointwise.compare('gt')"
    core = True
    run = _order("gt", "greater")
    c = "{self} > {other}"
    aliases = ("greater",)


class gt_Scalar(_WithNumber):
    """Whether each element is larger than a number."""
    schema = "gt.Scalar(Tensor self, Scalar other) -> Tensor"
    lower = "pointwise.compare('gt')"
    core = True
    run = _order("gt", "greater")
    c = "{self} > {other}"


class ge_Tensor(_Comparison):
    """Whether the first element is not smaller."""
    schema = "ge.Tensor(Tensor self, Tensor other) -> Tensor"
    lower = "pointwise.compare('ge')"
    core = True
    run = _order("ge", "greater_equal")
    c = "{self} >= {other}"
    aliases = ("greater_equal",)


class ge_Scalar(_WithNumber):
    """Whether each element is not smaller than a number."""
    schema = "ge.Scalar(Tensor self, Scalar other) -> Tensor"
    lower = "pointwise.compare('ge')"
    core = True
    run = _order("ge", "greater_equal")
    c = "{self} >= {other}"


class isclose(Pointwise):
    """Whether |a - b| <= atol + rtol |b|, or a equals b."""
    schema = ("isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, "
              "bool equal_nan=False) -> Tensor")
    tags = ()
    promote = "same"
    dtype = dt.bool_
    nondiff = ("self", "other")
    complex = True
    inplace = False

    def run(xp, self, other, rtol, atol, equal_nan):
        _check_close(self, other, rtol, atol)
        if self.dtype.kind in "biu":
            self, other = self.astype(xp.float64), other.astype(xp.float64)
        close = xp.equal(self, other)
        if equal_nan:
            close = close | (xp.isnan(self) & xp.isnan(other))
        limit = atol + xp.abs(rtol * other)
        gap = xp.abs(self - other)
        return close | (xp.isfinite(gap) & (gap <= limit))

    def decomp(self, other, rtol=1e-05, atol=1e-08, equal_nan=False):
        _check_close(self, other, rtol, atol)
        close = self == other
        if equal_nan and self.dtype.is_inexact:
            close = close.logical_or(self.isnan().logical_and(other.isnan()))
        if not self.dtype.is_inexact:
            self, other = self.to(dt.float64), other.to(dt.float64)
        limit = (other * rtol).abs() + atol
        gap = (self - other).abs()
        return close.logical_or(gap.isfinite().logical_and(gap <= limit))

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 4))
        yield s(s.real(3, 4), s.real(4), 0.5, 0.5)
        yield s(s.values([1.0, math.nan, math.inf]), s.values([1.0, math.nan, math.inf]), equal_nan=True)


def _check_close(self, other, rtol: float, atol: float) -> None:
    if self.dtype != other.dtype:
        raise DTypeError(f"{title(self.dtype)} did not match {title(other.dtype)}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value}")


class allclose(ComplexComposite):
    """Whether all elements of two tensors are close (a Python bool)."""
    schema = ("allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, "
              "bool equal_nan=False) -> bool")
    tags = ("data_dependent_output",)

    def compose(self, other, rtol=1e-05, atol=1e-08, equal_nan=False):
        return bool(ops.isclose(self, other, rtol, atol, equal_nan).all().item())

    samples = lambda s: [s(s.real(3, 4), s.real(3, 4))]


class equal(ComplexComposite):
    """Whether two tensors have the same shape and elements (a Python bool)."""
    schema = "equal(Tensor self, Tensor other) -> bool"
    tags = ("data_dependent_output", "pointwise")

    def compose(self, other):
        if tuple(self.shape) != tuple(other.shape):
            return False
        return bool(ops.eq(self, other).all().item())

    samples = lambda s: [s(s.real(3, 4), s.real(3, 4)), s(s.real(3, 4), s.real(3))]
