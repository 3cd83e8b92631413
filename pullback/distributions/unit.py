"""Distributions over the unit interval and over simplices."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import errors
from ..array.size import Size
from ..autograd.grad_mode import no_grad
from ..core.handle import Tensor
from ..table.packets import ops
from . import constraints
from .base import BINARY, ExponentialFamily, Value, Weighted, checked
from .utils import broadcast_all, clamp_probs, cross_entropy, rand

__all__ = ["Beta", "ContinuousBernoulli", "Dirichlet"]


class Dirichlet(ExponentialFamily):
    """Points of a simplex, density proportional to the product of x_i^(concentration_i - 1)."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise errors.named(errors.BadValue, "Dirichlet", "concentration needs one dim at least")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:],
                         validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        """A corner where all concentrations are below 1."""
        less = (self.concentration - 1).clamp(min=0)
        mode = less / less.sum(-1, True)
        corner = ops.one_hot(mode.argmax(-1), mode.shape[-1]).to(mode.dtype)
        return ops.where((self.concentration < 1).all(-1).unsqueeze(-1), corner, mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        return ops._sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        a = self.concentration
        return ops.xlogy(a - 1, value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    def entropy(self) -> Tensor:
        a, k = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        return (a.lgamma().sum(-1) - total.lgamma() - (k - total) * total.digamma()
                - ((a - 1.0) * a.digamma()).sum(-1))

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()


class Beta(ExponentialFamily):
    """The first of two coordinates of a Dirichlet point."""

    arg_constraints = {"concentration1": constraints.positive,
                       "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Value, concentration0: Value,
                 validate_args: bool | None = None) -> None:
        pair = broadcast_all(concentration1, concentration0)
        self._dirichlet = Dirichlet(ops.stack(pair, -1), validate_args=False)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    def _expanded(self, batch_shape: Size) -> None:
        self._dirichlet = self._dirichlet.expand(batch_shape)

    concentration1 = property(lambda self: self._dirichlet.concentration[..., 0])
    concentration0 = property(lambda self: self._dirichlet.concentration[..., 1])
    mean = property(
        lambda self: self.concentration1 / (self.concentration1 + self.concentration0))
    mode = property(lambda self: self._dirichlet.mode[..., 0])

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        return self._dirichlet.log_prob(ops.stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return x.lgamma() + y.lgamma() - (x + y).lgamma()


class ContinuousBernoulli(Weighted, ExponentialFamily):
    """Density proportional to p^x (1 - p)^(1 - x) on [0, 1].

    Its formulas divide by log odds, which are 0 at p = 1/2: within `lims` Taylor series replace
    them (G. Loaiza-Ganem, J. P. Cunningham, The continuous Bernoulli, 2019).
    """

    arg_constraints = BINARY
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Value | None = None, logits: Value | None = None,
                 lims: tuple[float, float] = (0.499, 0.501),
                 validate_args: bool | None = None) -> None:
        name = self._given(probs, logits)
        self._lims = lims
        self._begin(validate_args, **{name: logits if probs is None else probs})
        if name == "probs":
            self.probs = clamp_probs(self.probs)

    def _outside_unstable_region(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Tensor:
        """Probabilities with a harmless value in the unstable region."""
        return ops.where(self._outside_unstable_region(), self.probs, self._lims[0])

    def _either(self, stable: Tensor, series: Tensor) -> Tensor:
        return ops.where(self._outside_unstable_region(), stable, series)

    def _cont_bern_log_norm(self) -> Tensor:
        """log of 2 artanh(1 - 2p) / (1 - 2p)."""
        p, d = self._cut_probs(), (self.probs - 0.5).pow(2)
        below, above = p.clamp(max=0.5), p.clamp(min=0.5)
        gap = ops.where(p <= 0.5, (-2.0 * below).log1p(), (2.0 * above - 1.0).log())
        stable = ((-p).log1p() - p.log()).abs().log() - gap
        return self._either(stable, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * d) * d)

    @property
    def mean(self) -> Tensor:
        p, x = self._cut_probs(), self.probs - 0.5
        stable = p / (2.0 * p - 1.0) + 1.0 / ((-p).log1p() - p.log())
        return self._either(stable, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x)

    @property
    def variance(self) -> Tensor:
        p, x = self._cut_probs(), (self.probs - 0.5).pow(2)
        stable = p * (p - 1.0) / (1.0 - 2.0 * p).pow(2) + 1.0 / ((-p).log1p() - p.log()).pow(2)
        return self._either(stable, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    stddev = property(lambda self: self.variance.sqrt())

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        return self.icdf(rand(self._extended_shape(sample_shape), self.probs))

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, value)
        likelihood = -cross_entropy(logits, value)
        return likelihood + self._cont_bern_log_norm()

    @checked
    def cdf(self, value: Tensor) -> Tensor:
        p = self._cut_probs()
        power = p.pow(value) * (1.0 - p).pow(1.0 - value)
        inside = self._either((power + p - 1.0) / (2.0 * p - 1.0), value)
        return ops.where(value <= 0, 0.0, ops.where(value >= 1, 1.0, inside))

    def icdf(self, value: Tensor) -> Tensor:
        p = self._cut_probs()
        top = (-p + value * (2.0 * p - 1.0)).log1p() - (-p).log1p()
        return self._either(top / (p.log() - (-p).log1p()), value)

    def entropy(self) -> Tensor:
        log_odds = self.probs.log() - (-self.probs).log1p()
        return (self.mean * -log_odds - self._cont_bern_log_norm() - (-self.probs).log1p())

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        """log((e^x - 1) / x)."""
        outside = ((x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5))
        cut = ops.where(outside, x, (self._lims[0] - 0.5) * ops.ones_like(x))
        stable = (cut.exp() - 1).abs().log() - cut.abs().log()
        return ops.where(outside, stable, 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0)
