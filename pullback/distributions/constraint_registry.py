"""`biject_to` and `transform_to`: from unconstrained numbers into a region.

`biject_to(constraint)` is one to one with a Jacobian determinant (for Hamiltonian Monte Carlo and
variational inference); `transform_to(constraint)` may be cheaper and not one to one (for
optimisation).  Others can be registered for types of constraints.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number

from .. import errors
from . import constraints, transforms
from .constraints import Constraint
from .transforms import Transform

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """A table from types of constraints to functions that make a transform for an instance."""

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Constraint], Transform]] = {}
        super().__init__()

    def register(self, constraint: Constraint | type, factory: Callable | None = None) -> Callable:
        """Register a function for a type of constraints, or that of an instance; a decorator."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, Constraint):
            raise errors.named(errors.ArgumentError, "register",
                               "expected a constraint or a type of constraints, got "
                               f"{constraint!r}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        """The transform into the region of a constraint."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise errors.named(
                errors.NoFormula, "ConstraintRegistry",
                f"no transform is registered for {type(constraint).__name__} constraints",
                cure="register one with @biject_to.register(...) or @transform_to.register(...)")
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _both(*kinds):
    """Register in both tables; the function gets the table, for constraints made of others."""

    def register(make: Callable) -> Callable:
        for table in (biject_to, transform_to):
            for kind in kinds:
                table.register(kind, lambda c, table=table: make(c, table))
        return make

    return register


@_both(constraints.real)
def _real(constraint, table):
    return transforms.identity_transform


@_both(constraints.independent)
def _independent(constraint, table):
    return transforms.IndependentTransform(
        table(constraint.base_constraint), constraint.reinterpreted_batch_ndims)


@_both(constraints.greater_than, constraints.greater_than_eq)
def _above(constraint, table):
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)])


@_both(constraints.less_than)
def _below(constraint, table):
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)])


@_both(constraints.interval, constraints.half_open_interval)
def _between(constraint, table):
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, Number) and isinstance(high, Number) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform(
        [transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


@_both(constraints.corr_cholesky)
def _correlation(constraint, table):
    return transforms.CorrCholeskyTransform()


@_both(constraints.cat)
def _cat(constraint, table):
    return transforms.CatTransform(
        [table(c) for c in constraint.cseq], constraint.dim, constraint.lengths)


@_both(constraints.stack)
def _stack(constraint, table):
    return transforms.StackTransform([table(c) for c in constraint.cseq], constraint.dim)


biject_to.register(constraints.simplex, lambda c: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda c: transforms.LowerCholeskyTransform())
for _kind in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_kind, lambda c: transforms.PositiveDefiniteTransform())
