"""Constraints: regions in which parameters and samples of distributions lie.

`constraint.check(value)` tells for each event whether it lies inside; `event_dim` says how many of
the last dims make one event.  `constraint_registry.py` maps unconstrained numbers into regions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import errors
from ..array import dtype as dt
from ..core.handle import Tensor
from ..table.packets import ops

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A region of tensors."""

    is_discrete = False  # whole numbers only
    event_dim = 0  # how many of the last dims make one event

    def check(self, value: Tensor) -> Tensor:
        """For each event whether it lies inside."""
        raise errors.NoFormula(f"{type(self).__name__} does not say how to check a value")

    def __repr__(self) -> str:
        return f"{type(self).__name__.removeprefix('_')}({self._arguments()})"

    def _arguments(self) -> str:
        return ""


# --- regions that depend on other parameters ------------------------------------------------------


class _Dependent(Constraint):
    """A region known only together with other parameters or values; nothing can be checked."""

    def __init__(self, *, is_discrete: Any = NotImplemented,
                 event_dim: Any = NotImplemented) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        return self._fact("is_discrete")

    @property
    def event_dim(self) -> int:
        return self._fact("event_dim")

    def _fact(self, name: str):
        found = getattr(self, "_" + name)
        if found is NotImplemented:
            raise errors.NoFormula(f"{name} of this constraint depends on the instance")
        return found

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented):
        """The same with facts that are known in advance."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise errors.BadValue("a constraint that depends on other values cannot be checked alone")


class _DependentProperty(property, _Dependent):
    """A property of an instance that is a constraint; on the class it is a dependent one."""

    def __init__(self, fn: Callable | None = None, *, is_discrete: Any = NotImplemented,
                 event_dim: Any = NotImplemented) -> None:
        property.__init__(self, fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable) -> _DependentProperty:
        """As a decorator with facts that are known in advance."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def is_dependent(constraint: Any) -> bool:
    """Does a constraint depend on other values?"""
    return isinstance(constraint, _Dependent)


# --- regions made of others -----------------------------------------------------------------------


def _all_but(test: Tensor, dims: int) -> Tensor:
    """A test that must hold in all but the first `dims` dims."""
    return test.flatten(dims).all(-1) if test.ndim > dims else test


class _IndependentConstraint(Constraint):
    """Several of the last dims make one event, inside if all its elements are."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        if not isinstance(base_constraint, Constraint) or reinterpreted_batch_ndims < 0:
            raise AssertionError("independent needs a constraint and a count of dims")
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__()

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(
        lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims)

    def check(self, value: Tensor) -> Tensor:
        if value.ndim < self.event_dim:
            raise errors.named(errors.BadValue, "constraints.independent",
                               f"expected at least {self.event_dim} dims, got {value.ndim}")
        inside = self.base_constraint.check(value)
        return _all_but(inside, inside.ndim - self.reinterpreted_batch_ndims)

    def _arguments(self) -> str:
        return f"{self.base_constraint!r}, {self.reinterpreted_batch_ndims}"


class MixtureSameFamilyConstraint(Constraint):
    """The region of a mixture's components, checked for each of them."""

    def __init__(self, base_constraint: Constraint) -> None:
        if not isinstance(base_constraint, Constraint):
            raise AssertionError("MixtureSameFamilyConstraint needs a constraint")
        self.base_constraint = base_constraint
        super().__init__()

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim)

    def check(self, value: Tensor) -> Tensor:
        if value.ndim < self.event_dim:
            raise errors.named(errors.BadValue, "MixtureSameFamilyConstraint",
                               f"expected at least {self.event_dim} dims, got {value.ndim}")
        # one more dim, for the components, in front of the event
        inside = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return _all_but(inside, value.ndim - self.event_dim)

    def _arguments(self) -> str:
        return repr(self.base_constraint)


class _Parts(Constraint):
    """One constraint for each part of a dim."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError("cat and stack need constraints")
        self.cseq, self.dim = list(cseq), dim
        super().__init__()

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq))


class _Cat(_Parts):
    """Constraints of parts of given lengths along a dim."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0,
                 lengths: Sequence[int] | None = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError("cat needs one length for each constraint")

    event_dim = property(lambda self: max(c.event_dim for c in self.cseq))

    def check(self, value: Tensor) -> Tensor:
        if not -value.ndim <= self.dim < value.ndim:
            raise AssertionError(f"dim {self.dim} of a value of {value.ndim} dims")
        parts, start = [], 0
        for constraint, length in zip(self.cseq, self.lengths):
            parts.append(constraint.check(value.narrow(self.dim, start, length)))
            start += length
        return ops.cat(parts, self.dim)


class _Stack(_Parts):
    """Constraints of the slices of a dim."""

    @property
    def event_dim(self) -> int:
        most = max(c.event_dim for c in self.cseq)
        return most + (self.dim + most < 0)

    def check(self, value: Tensor) -> Tensor:
        if not -value.ndim <= self.dim < value.ndim:
            raise AssertionError(f"dim {self.dim} of a value of {value.ndim} dims")
        return ops.stack([c.check(v) for c, v in zip(self.cseq, value.unbind(self.dim))], self.dim)


# --- numbers --------------------------------------------------------------------------------------


class _Real(Constraint):
    """Any number but NaN."""

    def check(self, value: Tensor) -> Tensor:
        return value == value


class _Boolean(Constraint):
    """0 and 1."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _Bounded(Constraint):
    """Numbers between bounds; the arguments of `__init__` are the bounds."""

    def _arguments(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)}" for name in ("lower_bound", "upper_bound")
                         if hasattr(self, name))


class _From(_Bounded):
    """Numbers with a lower bound."""

    def __init__(self, lower_bound) -> None:
        self.lower_bound = lower_bound
        super().__init__()


class _UpTo(_Bounded):
    """Numbers with an upper bound."""

    def __init__(self, upper_bound) -> None:
        self.upper_bound = upper_bound
        super().__init__()


class _Between(_Bounded):
    """Numbers with both."""

    def __init__(self, lower_bound, upper_bound) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound
        super().__init__()


class _GreaterThan(_From):
    """Numbers above a bound."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class _GreaterThanEq(_From):
    """Numbers not below a bound."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class _LessThan(_UpTo):
    """Numbers below a bound."""

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_Between):
    """Numbers between bounds, both included."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """Numbers between bounds, the lower one included."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


def _whole(value: Tensor, test: Tensor) -> Tensor:
    """A test of numbers that must be whole, too."""
    return test & (value % 1 == 0) if value.dtype.category > 1 else test


class _IntegerInterval(_Between):
    """Whole numbers between bounds, both included."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _whole(value, (self.lower_bound <= value) & (value <= self.upper_bound))


class _IntegerLessThan(_UpTo):
    """Whole numbers up to a bound."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _whole(value, value <= self.upper_bound)


class _IntegerGreaterThan(_From):
    """Whole numbers from a bound on."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _whole(value, value >= self.lower_bound)


# --- vectors --------------------------------------------------------------------------------------


class _OneHot(Constraint):
    """Vectors of one 1 and else 0."""

    is_discrete, event_dim = True, 1

    def check(self, value: Tensor) -> Tensor:
        binary = ((value == 0) | (value == 1)).all(-1)
        return binary & (value.sum(-1) == 1)


class _Simplex(Constraint):
    """Vectors of numbers that are not negative and sum to 1."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Vectors of counts that sum to at most `upper_bound`."""

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


# --- matrices -------------------------------------------------------------------------------------


class _LowerTriangular(Constraint):
    """Square matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    """The same with a positive diagonal."""

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """The same with rows of length 1: factors of correlation matrices."""

    def check(self, value: Tensor) -> Tensor:
        # 10 eps for each term of the sum, as far as one can tell lengths apart
        tolerance = dt.finfo(value.dtype).eps * value.shape[-1] * 10
        lengths = ops.linalg_vector_norm(value.detach(), dim=-1)
        return super().check(value) & ((lengths - 1).abs() <= tolerance).all(-1)


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        square = value.shape[-2] == value.shape[-1]
        return ops.full(value.shape[:-2], square, dtype=dt.bool_, device=value.device)


class _Symmetric(_Square):
    """Matrices that are their own transposes."""

    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return ops.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _Definite(_Symmetric):
    """Symmetric matrices that pass a test of their own."""

    _test: Callable[[Tensor], Tensor]

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if value.shape[-2] != value.shape[-1]:
            return symmetric
        # the test may refuse NaN, and need not see what fails anyway
        return symmetric & self._test(ops.where(symmetric[..., None, None], value.detach(), 0))


class _PositiveSemidefinite(_Definite):
    """Symmetric matrices without negative eigenvalues."""

    def _test(self, value: Tensor) -> Tensor:
        return (ops.linalg_eigvalsh(value) >= 0).all(-1)


class _PositiveDefinite(_Definite):
    """Symmetric matrices with positive eigenvalues: those that have a Cholesky factor."""

    def _test(self, value: Tensor) -> Tensor:
        return ops.linalg_cholesky_ex(value).info == 0


# --- names ----------------------------------------------------------------------------------------

dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
