"""Distributions that are transforms of simpler ones."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..array import dtype as dt
from ..array.size import Size
from ..core.handle import Tensor
from ..table.packets import ops
from . import constraints
from .base import Distribution, Value, checked
from .constraints import Constraint
from .location import Cauchy, Normal, Uniform
from .positive import Exponential, Gamma
from .transforms import (
    AbsTransform,
    AffineTransform,
    ExpTransform,
    PowerTransform,
    StickBreakingTransform,
    Transform,
)
from .utils import broadcast_all, euler_constant
from .wrappers import TransformedDistribution

__all__ = [
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "InverseGamma",
    "Kumaraswamy",
    "LogNormal",
    "LogisticNormal",
    "Pareto",
    "Weibull",
]


class _Half(TransformedDistribution):
    """The distribution of |x| for a base that is symmetric around 0."""

    _base: type[Distribution]
    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative

    def __init__(self, scale: Value, validate_args: bool | None = None) -> None:
        base = self._base(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    scale = property(lambda self: self.base_dist.scale)
    mode = property(lambda self: ops.zeros_like(self.scale))

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        density = self.base_dist.log_prob(value) + math.log(2)
        return ops.where(value >= 0, density, -math.inf)

    @checked
    def cdf(self, value: Tensor) -> Tensor:
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """Sizes of normal numbers around 0."""

    _base = Normal
    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale.pow(2) * (1 - 2 / math.pi))


class HalfCauchy(_Half):
    """Sizes of Cauchy numbers around 0."""

    _base = Cauchy
    mean = property(lambda self: ops.full_like(self.scale, math.inf))
    variance = property(lambda self: self.base_dist.variance)


class LogNormal(TransformedDistribution):
    """Exponentials of normal numbers."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive

    def __init__(self, loc: Value, scale: Value, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(),
                         validate_args=validate_args)

    loc = property(lambda self: self.base_dist.loc)
    scale = property(lambda self: self.base_dist.scale)
    mean = property(lambda self: (self.loc + self.scale.pow(2) / 2).exp())
    mode = property(lambda self: (self.loc - self.scale.square()).exp())

    @property
    def variance(self) -> Tensor:
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class LogisticNormal(TransformedDistribution):
    """Stick breaking with normal numbers: points of a simplex."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex

    def __init__(self, loc: Value, scale: Value, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base if base.batch_shape else base.expand([1]), StickBreakingTransform(),
                         validate_args=validate_args)

    loc = property(lambda self: self.base_dist.base_dist.loc)
    scale = property(lambda self: self.base_dist.base_dist.scale)


class InverseGamma(TransformedDistribution):
    """Reciprocals of gamma numbers."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive

    def __init__(self, concentration: Value, rate: Value,
                 validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())),
                         validate_args=validate_args)

    concentration = property(lambda self: self.base_dist.concentration)
    rate = property(lambda self: self.base_dist.rate)
    mode = property(lambda self: self.rate / (self.concentration + 1))

    @property
    def mean(self) -> Tensor:
        return ops.where(self.concentration > 1, self.rate / (self.concentration - 1), math.inf)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return ops.where(a > 2, self.rate.square() / ((a - 1).square() * (a - 2)), math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()


class Derived(TransformedDistribution):
    """Transforms whose arguments are the parameters: made anew when these are expanded."""

    _source: Callable[[bool | None], Distribution]
    _maps: Callable[[], list[Transform]]

    def _begin(self, validate_args: bool | None, **parameters: Value) -> None:
        self.__dict__.update(zip(parameters, broadcast_all(*parameters.values())))
        TransformedDistribution.__init__(self, self._source(validate_args), self._maps(),
                                         validate_args=validate_args)

    def _expanded(self, batch_shape: Size) -> None:
        self.transforms = self._maps()
        super()._expanded(batch_shape)


class Gumbel(Derived):
    """The distribution of maxima: loc - scale * log(-log u)."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Value, scale: Value, validate_args: bool | None = None) -> None:
        self._begin(validate_args, loc=loc, scale=scale)

    def _source(self, validate_args: bool | None) -> Distribution:
        info = dt.finfo(self.loc.dtype)
        return Uniform(ops.full_like(self.loc, info.tiny), ops.full_like(self.loc, 1 - info.eps),
                       validate_args=validate_args)

    def _maps(self) -> list[Transform]:
        return [ExpTransform().inv, AffineTransform(0, -ops.ones_like(self.scale)),
                ExpTransform().inv, AffineTransform(self.loc, -self.scale)]

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    mean = property(lambda self: self.loc + self.scale * euler_constant)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: math.pi / math.sqrt(6) * self.scale)
    variance = property(lambda self: self.stddev.pow(2))

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)


class Pareto(Derived):
    """A power law above `scale`."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Value, alpha: Value, validate_args: bool | None = None) -> None:
        self._begin(validate_args, scale=scale, alpha=alpha)

    def _source(self, validate_args: bool | None) -> Distribution:
        return Exponential(self.alpha, validate_args=validate_args)

    def _maps(self) -> list[Transform]:
        return [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]

    mode = property(lambda self: self.scale)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)  # infinite up to there
        return a * self.scale / (a - 1)

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        return constraints.greater_than_eq(self.scale)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Weibull(Derived):
    """Life times whose hazard is a power of age."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Value, concentration: Value,
                 validate_args: bool | None = None) -> None:
        self._begin(validate_args, scale=scale, concentration=concentration)

    concentration_reciprocal = property(lambda self: self.concentration.reciprocal())

    def _source(self, validate_args: bool | None) -> Distribution:
        return Exponential(ops.ones_like(self.scale), validate_args=validate_args)

    def _maps(self) -> list[Transform]:
        return [PowerTransform(exponent=self.concentration_reciprocal),
                AffineTransform(loc=0, scale=self.scale)]

    def _moment(self, n: int) -> Tensor:
        """The n-th moment for scale 1."""
        return (1 + n * self.concentration_reciprocal).lgamma().exp()

    mean = property(lambda self: self.scale * self._moment(1))
    variance = property(
        lambda self: self.scale.pow(2) * (self._moment(2) - self._moment(1).pow(2)))
    mode = property(lambda self: self.scale * (
        (self.concentration - 1) / self.concentration) ** self.concentration.reciprocal())

    def entropy(self) -> Tensor:
        r = self.concentration_reciprocal
        return euler_constant * (1 - r) + (self.scale * r).log() + 1


class Kumaraswamy(Derived):
    """Much like the beta distribution, with F(x) = 1 - (1 - x^concentration1)^concentration0."""

    arg_constraints = {"concentration1": constraints.positive,
                       "concentration0": constraints.positive}
    support = constraints.unit_interval

    def __init__(self, concentration1: Value, concentration0: Value,
                 validate_args: bool | None = None) -> None:
        self._begin(validate_args, concentration1=concentration1, concentration0=concentration0)

    def _source(self, validate_args: bool | None) -> Distribution:
        return Uniform(ops.zeros_like(self.concentration0), ops.ones_like(self.concentration0),
                       validate_args=validate_args)

    def _maps(self) -> list[Transform]:
        return [PowerTransform(exponent=self.concentration0.reciprocal()),
                AffineTransform(loc=1.0, scale=-1.0),
                PowerTransform(exponent=self.concentration1.reciprocal())]

    def _moment(self, n: int) -> Tensor:
        a, b = 1 + n / self.concentration1, self.concentration0
        return b * (a.lgamma() + b.lgamma() - (a + b).lgamma()).exp()

    mean = property(lambda self: self._moment(1))
    variance = property(lambda self: self._moment(2) - self._moment(1).pow(2))

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)) ** a.reciprocal()
        return ops.where((a < 1) | (b < 1), math.nan, mode)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
