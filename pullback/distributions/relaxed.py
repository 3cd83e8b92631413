"""Continuous relaxations of discrete distributions: differentiable samples at a temperature."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..array.size import Size
from ..core.handle import Tensor
from ..table.packets import ops
from . import constraints
from .base import BINARY, CATEGORIES, Value, Weighted, checked
from .discrete import Categorical, _OverCategories
from .transforms import ExpTransform, SigmoidTransform
from .utils import broadcast_all, clamp_probs, rand
from .wrappers import TransformedDistribution

__all__ = [
    "ExpRelaxedCategorical",
    "LogitRelaxedBernoulli",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
]


class LogitRelaxedBernoulli(Weighted):
    """Logits of relaxed Bernoulli numbers: logistic noise added to log odds, over a temperature."""

    arg_constraints = BINARY
    support = constraints.real

    def __init__(self, temperature: Value, probs: Value | None = None,
                 logits: Value | None = None, validate_args: bool | None = None) -> None:
        self.temperature = temperature
        self._begin(validate_args,
                    **{self._given(probs, logits): logits if probs is None else probs})

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        p = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(rand(shape, p))
        return (u.log() - (-u).log1p() + p.log() - (-p).log1p()) / self.temperature

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, value)
        d = logits - value * self.temperature
        return ops.log(ops.zeros_like(d) + self.temperature) + d - 2 * d.exp().log1p()


class ExpRelaxedCategorical(_OverCategories):
    """Logarithms of relaxed one-hot vectors: Gumbel noise added to logits, over a temperature."""

    # the logarithm of a point of the simplex; that the exponentials sum to 1 is not checked
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature: Value, probs: Tensor | None = None,
                 logits: Tensor | None = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:],
                         validate_args=validate_args)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        u = clamp_probs(rand(self._extended_shape(sample_shape), self.logits))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, True)

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        k = self._event_shape[0]
        logits, value = broadcast_all(self.logits, value)
        log_temperature = ops.log(ops.zeros_like(value[..., 0]) + self.temperature)
        score = logits - value * self.temperature
        score = (score - score.logsumexp(-1, True)).sum(-1)
        return score + math.lgamma(k) + (k - 1) * log_temperature


class _Relaxed(TransformedDistribution):
    """A relaxation whose parameters are those of its base."""

    has_rsample = True
    _made_of: tuple[type, type]  # the base, and the transform of its draws

    def __init__(self, temperature: Value, probs: Value | None = None,
                 logits: Value | None = None, validate_args: bool | None = None) -> None:
        base, transform = self._made_of
        super().__init__(base(temperature, probs, logits), transform(),
                         validate_args=validate_args)

    temperature = property(lambda self: self.base_dist.temperature)
    logits = property(lambda self: self.base_dist.logits)
    probs = property(lambda self: self.base_dist.probs)


class RelaxedBernoulli(_Relaxed):
    """Numbers in (0, 1), close to 0 or 1 at low temperatures."""

    arg_constraints = BINARY
    support = constraints.unit_interval
    _made_of = LogitRelaxedBernoulli, SigmoidTransform


class RelaxedOneHotCategorical(_Relaxed):
    """Points of a simplex, close to its corners at low temperatures."""

    arg_constraints = CATEGORIES
    support = constraints.simplex
    _made_of = ExpRelaxedCategorical, ExpTransform
