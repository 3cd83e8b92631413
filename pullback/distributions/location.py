"""Distributions over the real line, most of them with location and scale, and over the circle."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..array import dtype as dt
from ..array.size import Size
from ..autograd.grad_mode import no_grad
from ..core.handle import Tensor
from ..table.packets import ops
from . import constraints
from .base import Distribution, ExponentialFamily, Value, checked
from .constraints import Constraint
from .positive import Chi2
from .utils import (
    _standard_normal,
    lazy_property,
    rand,
    surely,
    uniform,
)

__all__ = ["Cauchy", "Laplace", "Normal", "StudentT", "Uniform", "VonMises"]

_LOC_SCALE = {"loc": constraints.real, "scale": constraints.positive}


class Normal(ExponentialFamily):
    """The normal (Gaussian) distribution."""

    arg_constraints = _LOC_SCALE
    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, loc: Value, scale: Value, validate_args: bool | None = None) -> None:
        self._begin(validate_args, loc=loc, scale=scale)

    mean = mode = property(lambda self: self.loc)
    stddev = property(lambda self: self.scale)
    variance = property(lambda self: self.scale.pow(2))

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return ops.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.loc + _standard_normal(shape, self.loc.dtype, self.loc.device) * self.scale

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        z = (value - self.loc) / self.scale
        return -0.5 * z * z - self.scale.log() - 0.5 * math.log(2 * math.pi)

    @checked
    def cdf(self, value: Tensor) -> Tensor:
        return ops.special_ndtr((value - self.loc) / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * ops.special_ndtri(value)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return -0.25 * x.pow(2) / y + 0.5 * (-math.pi / y).log()


class _LocScale(Distribution):
    """A distribution of real numbers that is moved and stretched."""

    arg_constraints = _LOC_SCALE
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Value, scale: Value, validate_args: bool | None = None) -> None:
        self._begin(validate_args, loc=loc, scale=scale)


class Laplace(_LocScale):
    """Two exponentials back to back."""

    mean = mode = property(lambda self: self.loc)
    stddev = property(lambda self: math.sqrt(2) * self.scale)
    variance = property(lambda self: 2 * self.scale.pow(2))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = uniform(shape, self.loc, dt.finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * ops.log1p(-u.abs())

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    @checked
    def cdf(self, value: Tensor) -> Tensor:
        d = value - self.loc
        return 0.5 - 0.5 * d.sign() * ops.expm1(-d.abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * ops.log1p(-2 * term.abs())

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()


class Cauchy(_LocScale):
    """The ratio of two normal numbers; it has no mean."""

    mode = property(lambda self: self.loc)
    mean = property(lambda self: ops.full_like(self.loc, math.nan))
    variance = property(lambda self: ops.full_like(self.loc, math.inf))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        eps = ops.empty(shape, dtype=self.loc.dtype, device=self.loc.device).cauchy_()
        return self.loc + eps * self.scale

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        z = (value - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - (z * z).log1p()

    @checked
    def cdf(self, value: Tensor) -> Tensor:
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class StudentT(Distribution):
    """Student's t: a normal number over the root of a chi-squared one per degree of freedom."""

    arg_constraints = {"df": constraints.positive, **_LOC_SCALE}
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Value, loc: Value = 0.0, scale: Value = 1.0,
                 validate_args: bool | None = None) -> None:
        self._begin(validate_args, df=df, loc=loc, scale=scale)
        self._chi2 = Chi2(self.df)

    def _expanded(self, batch_shape: Size) -> None:
        self._chi2 = self._chi2.expand(batch_shape)

    mode = property(lambda self: self.loc)

    @property
    def mean(self) -> Tensor:
        return ops.where(self.df <= 1, math.nan, self.loc)

    @property
    def variance(self) -> Tensor:
        finite = self.scale.pow(2) * self.df / (self.df - 2)
        heavy = ops.where(self.df > 1, math.inf, ops.full_like(self.df, math.nan))
        return ops.where(self.df > 2, finite, heavy)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x = _standard_normal(shape, self.df.dtype, self.df.device)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (x * (z / self.df).rsqrt())

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        y = (value - self.loc) / self.scale
        half = 0.5 * self.df
        norm = (self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + half.lgamma()
                - (half + 0.5).lgamma())
        return -(half + 0.5) * (y.pow(2) / self.df).log1p() - norm

    def entropy(self) -> Tensor:
        half = 0.5 * self.df
        log_beta = half.lgamma() + math.lgamma(0.5) - (half + 0.5).lgamma()
        return (self.scale.log() + (half + 0.5) * ((half + 0.5).digamma() - half.digamma())
                + 0.5 * self.df.log() + log_beta)


class Uniform(Distribution):
    """Evenly spread over [low, high)."""

    has_rsample = True

    def __init__(self, low: Value, high: Value, validate_args: bool | None = None) -> None:
        self._begin(validate_args, low=low, high=high)

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        return constraints.interval(self.low, self.high)

    mean = property(lambda self: (self.high + self.low) / 2)
    mode = property(lambda self: math.nan * self.high)
    stddev = property(lambda self: (self.high - self.low) / math.sqrt(12))
    variance = property(lambda self: (self.high - self.low).pow(2) / 12)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        u = rand(self._extended_shape(sample_shape), self.low)
        return self.low + u * (self.high - self.low)

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        inside = self.low.le(value) & self.high.gt(value)
        return inside.type_as(self.low).log() - (self.high - self.low).log()

    @checked
    def cdf(self, value: Tensor) -> Tensor:
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


class VonMises(Distribution):
    """The normal distribution of the circle: density proportional to exp(c cos(x - loc))."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Value, concentration: Value, validate_args: bool | None = None) -> None:
        self._begin(validate_args, loc=loc, concentration=concentration)

    mean = mode = property(lambda self: self.loc, doc="The circular mean.")

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance."""
        c = self.concentration
        return 1 - ops.special_i1e(c) / ops.special_i0e(c)

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        # log I0(c) = c + log(i0e(c)); c cos(d) - c by half angles keeps its digits at large c
        half = (0.5 * (value - self.loc)).sin()
        norm = math.log(2 * math.pi) + ops.special_i0e(self.concentration).log()
        return -2 * self.concentration * half * half - norm

    @lazy_property
    def _proposal_r(self) -> Tensor:
        """The parameter of the wrapped Cauchy distribution that proposals come from."""
        kappa = self.concentration.double()
        tau = 1 + (1 + 4 * kappa * kappa).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        # for small kappa the quotient cancels; its series is 1 / kappa + kappa
        return ops.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho * rho) / (2 * rho))

    @no_grad()
    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """Drawn in double precision by the rejection method of Best and Fisher (1979)."""
        shape = self._extended_shape(sample_shape)
        loc, kappa = self.loc.double(), self.concentration.double()
        r = self._proposal_r
        x, done = ops.empty(shape, dtype=loc.dtype, device=loc.device), ops.zeros(
            shape, dtype=dt.bool_, device=loc.device)
        while not surely(done, "whether all draws are accepted"):
            u1, u2, u3 = rand((3, *shape), loc).unbind()
            z = (math.pi * u1).cos()
            f = (1 + r * z) / (r + z)
            c = kappa * (r - f)
            accept = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
            x = ops.where(accept, (u3 - 0.5).sign() * f.acos(), x)
            done = done | accept
        return ((x + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)
