"""Distributions over positive numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..array import dtype as dt
from ..array.size import Size
from ..core.handle import Tensor
from ..table.packets import ops
from . import constraints
from .base import Distribution, ExponentialFamily, Value, checked
from .constraints import Constraint
from .utils import at_least, rand

__all__ = ["Chi2", "Exponential", "FisherSnedecor", "Gamma", "GeneralizedPareto"]


class Exponential(ExponentialFamily):
    """Waiting times of events that come at a constant rate."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, rate: Value, validate_args: bool | None = None) -> None:
        self._begin(validate_args, rate=rate)

    mean = stddev = property(lambda self: self.rate.reciprocal())
    mode = property(lambda self: ops.zeros_like(self.rate))
    variance = property(lambda self: self.rate.pow(-2))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        blank = ops.empty(shape, dtype=self.rate.dtype, device=self.rate.device)
        return blank.exponential_() / self.rate

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        return self.rate.log() - self.rate * value

    @checked
    def cdf(self, value: Tensor) -> Tensor:
        return -ops.expm1(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        return -ops.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        return 1.0 - self.rate.log()

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (-self.rate,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return -(-x).log()


class Gamma(ExponentialFamily):
    """Sums of waiting times: density proportional to x^(concentration - 1) exp(-rate x)."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Value, rate: Value,
                 validate_args: bool | None = None) -> None:
        self._begin(validate_args, concentration=concentration, rate=rate)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate.pow(2))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        drawn = ops._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        return at_least(drawn, dt.finfo(drawn.dtype).tiny)

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        a, rate = self.concentration, self.rate
        return ops.xlogy(a, rate) + ops.xlogy(a - 1, value) - rate * value - a.lgamma()

    @checked
    def cdf(self, value: Tensor) -> Tensor:
        return ops.special_gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1.0 - a) * a.digamma()

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return (x + 1).lgamma() - (x + 1) * (-y).log()


class Chi2(Gamma):
    """Sums of `df` squared normal numbers."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Value, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    df = property(lambda self: self.concentration * 2)


class FisherSnedecor(Distribution):
    """Ratios of two chi-squared numbers, each over its degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Value, df2: Value, validate_args: bool | None = None) -> None:
        self._begin(validate_args, df1=df1, df2=df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)

    def _expanded(self, batch_shape: Size) -> None:
        self._gamma1, self._gamma2 = (
            g.expand(batch_shape) for g in (self._gamma1, self._gamma2))

    @property
    def mean(self) -> Tensor:
        df2 = ops.where(self.df2 <= 2, math.nan, self.df2)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return ops.where(self.df1 <= 2, math.nan, mode)

    @property
    def variance(self) -> Tensor:
        df2 = ops.where(self.df2 <= 4, math.nan, self.df2)
        return (2 * df2.pow(2) * (self.df1 + df2 - 2)
                / (self.df1 * (df2 - 2).pow(2) * (df2 - 4)))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        x1, x2 = self._gamma1.rsample(sample_shape), self._gamma2.rsample(sample_shape)
        tiny = dt.finfo(x2.dtype).tiny
        return at_least(x1 / at_least(x2, tiny), tiny)

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        a, b, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        norm = (a + b).lgamma() - a.lgamma() - b.lgamma()
        return (norm + a * ratio.log() + (a - 1) * value.log()
                - (a + b) * (ratio * value).log1p())


class GeneralizedPareto(Distribution):
    """Excesses over a threshold `loc`; an exponential tail if the concentration is 0."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive,
                       "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Value, scale: Value, concentration: Value,
                 validate_args: bool | None = None) -> None:
        self._begin(validate_args, loc=loc, scale=scale, concentration=concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        end = self.loc - self.scale / self.concentration
        end = ops.where(self.concentration < 0, end, math.inf)
        return constraints.interval(self.loc, end)

    def _branches(self) -> tuple[Tensor, Tensor]:
        """Where the concentration is 0, and the concentration with 1 in these places."""
        zero = ops.isclose(self.concentration, ops.zeros_like(self.concentration))
        return zero, ops.where(zero, 1.0, self.concentration)

    def _z(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        return self.icdf(rand(self._extended_shape(sample_shape), self.loc))

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        zero, c = self._branches()
        z = self._z(value)
        return -ops.where(zero, z, (1 / c + 1) * (c * z).log1p()) - self.scale.log()

    @checked
    def log_survival_function(self, value: Tensor) -> Tensor:
        """log(1 - F(x))."""
        zero, c = self._branches()
        z = self._z(value)
        return -ops.where(zero, z, (c * z).log1p() / c)

    @checked
    def log_cdf(self, value: Tensor) -> Tensor:
        """log F(x)."""
        return ops.log1p(-self.log_survival_function(value).exp())

    @checked
    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        zero, c = self._branches()
        tail = ops.log1p(-value)
        return self.loc + ops.where(zero, -self.scale * tail, self.scale * ops.expm1(-c * tail) / c)

    @property
    def mean(self) -> Tensor:
        c = self.concentration
        return ops.where(c < 1, self.loc + self.scale / (1 - c), math.nan)

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        return ops.where(c < 0.5, self.scale.pow(2) / ((1 - c).pow(2) * (1 - 2 * c)), math.nan)

    mode = property(lambda self: self.loc)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
