"""Distributions over whole numbers and categories."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import errors
from ..array import dtype as dt
from ..array.dims import broadcast_shapes
from ..array.size import Size
from ..autograd.grad_mode import no_grad
from ..core.handle import Tensor
from ..table.packets import ops
from . import constraints
from .base import (
    BINARY,
    CATEGORIES,
    Distribution,
    ExponentialFamily,
    Value,
    Weighted,
    checked,
)
from .constraints import Constraint
from .positive import Gamma
from .utils import broadcast_all, cross_entropy, everywhere, lazy_property, uniform

__all__ = [
    "Bernoulli",
    "Binomial",
    "Categorical",
    "Geometric",
    "Multinomial",
    "NegativeBinomial",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Poisson",
]


def _listed(distribution: Distribution, count: int, dtype, device, expand: bool) -> Tensor:
    """0, 1, ... count - 1 in a new first dim in front of the batch."""
    batch = distribution.batch_shape
    values = ops.arange(count, dtype=dtype, device=device).reshape((-1, *(1,) * len(batch)))
    return values.expand((-1, *batch)) if expand else values


class Bernoulli(Weighted, ExponentialFamily):
    """1 with probability `probs`, else 0."""

    arg_constraints = BINARY
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Value | None = None, logits: Value | None = None,
                 validate_args: bool | None = None) -> None:
        self._begin(validate_args,
                    **{self._given(probs, logits): logits if probs is None else probs})

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    @property
    def mode(self) -> Tensor:
        """NaN where both values are equally likely."""
        mode = (self.probs >= 0.5).to(self.probs.dtype)
        return ops.where(self.probs == 0.5, math.nan, mode)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        with no_grad():
            return ops.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, value)
        return -cross_entropy(logits, value)

    def entropy(self) -> Tensor:
        return cross_entropy(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return _listed(self, 2, self._param.dtype, self._param.device, expand)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (ops.logit(self.probs),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.exp().log1p()


class Geometric(Weighted):
    """Failures before the first success."""

    arg_constraints = BINARY
    support = constraints.nonnegative_integer

    def __init__(self, probs: Value | None = None, logits: Value | None = None,
                 validate_args: bool | None = None) -> None:
        self._begin(validate_args,
                    **{self._given(probs, logits): logits if probs is None else probs})
        if self._validate_args and probs is not None and not everywhere(self.probs > 0):
            raise errors.named(
                errors.BadValue, "Geometric",
                f"parameter probs (Tensor of shape {tuple(self.probs.shape)}) must be positive",
                [f"{self!r}", f"probs: {self.probs}"])

    mean = property(lambda self: 1.0 / self.probs - 1.0)
    mode = property(lambda self: ops.zeros_like(self.probs))
    variance = property(lambda self: (1.0 / self.probs - 1.0) / self.probs)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        with no_grad():
            u = uniform(self._extended_shape(sample_shape), self.probs,
                        dt.finfo(self.probs.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        value, p = broadcast_all(value, self.probs)
        p = ops.where((p == 1) & (value == 0), 0.0, p)  # 0 log 0 is 0
        return value * (-p).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return cross_entropy(self.logits, self.probs) / self.probs


class Binomial(Weighted):
    """Successes among `total_count` trials."""

    arg_constraints = {"total_count": constraints.nonnegative_integer, **BINARY}
    has_enumerate_support = True

    def __init__(self, total_count: Tensor | int = 1, probs: Tensor | None = None,
                 logits: Tensor | None = None, validate_args: bool | None = None) -> None:
        name = self._given(probs, logits)
        given = logits if probs is None else probs
        count, given = broadcast_all(total_count, given)
        self._begin(validate_args, total_count=count.type_as(given), **{name: given})

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Constraint:
        return constraints.integer_interval(0, self.total_count)

    mean = property(lambda self: self.total_count * self.probs)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().minimum(self.total_count)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return ops.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        n = self.total_count
        choices = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        # log(p^k (1-p)^(n-k)) = k l - n log(1 + e^l)
        return choices + value * self.logits + n * ops.log_sigmoid(-self.logits)

    def entropy(self) -> Tensor:
        terms = self.log_prob(self.enumerate_support(expand=False))
        return -(terms.exp() * terms).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = int(self.total_count.max())
        if not everywhere(self.total_count == count):
            raise errors.named(errors.NoFormula, "Binomial",
                               "listing all values (also for the entropy) needs the same "
                               "total_count in the whole batch")
        return _listed(self, count + 1, self._param.dtype, self._param.device, expand)


class NegativeBinomial(Weighted):
    """Successes before `total_count` failures."""

    arg_constraints = {"total_count": constraints.greater_than_eq(0),
                       "probs": constraints.half_open_interval(0.0, 1.0),
                       "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, total_count: Value, probs: Tensor | None = None,
                 logits: Tensor | None = None, validate_args: bool | None = None) -> None:
        name = self._given(probs, logits)
        count, given = broadcast_all(total_count, logits if probs is None else probs)
        self._begin(validate_args, total_count=count.type_as(given), **{name: given})

    mean = property(lambda self: self.total_count * self.logits.exp())
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0))
    variance = property(lambda self: self.mean / ops.sigmoid(-self.logits))

    @lazy_property
    def _gamma(self) -> Gamma:
        """The rates of which this is the Poisson mixture."""
        return Gamma(self.total_count, (-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        with no_grad():
            return ops.poisson(self._gamma.sample(sample_shape))

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        n = self.total_count
        weight = n * ops.log_sigmoid(-self.logits) + value * ops.log_sigmoid(self.logits)
        norm = (1.0 + value).lgamma() + n.lgamma() - (n + value).lgamma()
        return weight - ops.where(n + value == 0, 0.0, norm)


class Poisson(ExponentialFamily):
    """Numbers of events that come at a constant rate."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Value, validate_args: bool | None = None) -> None:
        self._begin(validate_args, rate=rate)

    mean = variance = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        with no_grad():
            return ops.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        rate, value = broadcast_all(self.rate, value)
        return ops.xlogy(value, rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.rate.log(),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.exp()


# --- categories -----------------------------------------------------------------------------------


class Categorical(Weighted):
    """Indices with probabilities proportional to `probs`, or to the exponentials of `logits`."""

    arg_constraints = CATEGORIES
    has_enumerate_support = True
    is_binary = False

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        name = self._given(probs, logits)
        given = logits if probs is None else probs
        if given.ndim < 1:
            raise errors.named(errors.BadValue, type(self).__name__,
                               f"{name} needs one dim at least")
        # normalised, so that both say the same
        if name == "probs":
            self.probs = given / given.sum(-1, True)
        else:
            self.logits = given - given.logsumexp(-1, True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        """NaN: categories are no numbers."""
        return ops.full(self._batch_shape, math.nan, dtype=self.probs.dtype,
                        device=self.probs.device)

    variance = mean
    mode = property(lambda self: self.probs.argmax(-1))

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        sample_shape = Size(sample_shape)
        rows = self.probs.flatten(0, -2) if self.probs.ndim > 1 else self.probs.unsqueeze(0)
        with no_grad():
            drawn = ops.multinomial(rows, sample_shape.numel(), True).T
            return drawn.reshape(self._extended_shape(sample_shape))

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        index, logits = value.long(), self.logits
        if index.shape != logits.shape[:-1]:
            batch = broadcast_shapes(index.shape, logits.shape[:-1])
            index, logits = index.expand(batch), logits.expand((*batch, logits.shape[-1]))
        return logits.gather(-1, index.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=dt.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return _listed(self, self._num_events, dt.int64, self._param.device, expand)


class _OverCategories(Distribution):
    """Built on a categorical distribution, `self._categorical`."""

    arg_constraints = CATEGORIES

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)
    _param = property(lambda self: self._categorical._param)
    _new = Weighted._new

    def _expanded(self, batch_shape: Size) -> None:
        self._categorical = self._categorical.expand(batch_shape)


class OneHotCategorical(_OverCategories):
    """Categories as vectors of one 1."""

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:],
                         validate_args=validate_args)

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    @property
    def mode(self) -> Tensor:
        return ops.one_hot(self._categorical.mode, self._event_shape[0]).to(self._param.dtype)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        drawn = self._categorical.sample(sample_shape)
        return ops.one_hot(drawn, self._event_shape[0]).to(self.probs.dtype)

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._event_shape[0]
        values = ops.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape((n, *(1,) * len(self._batch_shape), n))
        return values.expand((n, *self._batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The same with gradients that pretend that the sample were the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(_OverCategories):
    """How often each category is drawn in `total_count` draws."""

    def __init__(self, total_count: int = 1, probs: Tensor | None = None,
                 logits: Tensor | None = None, validate_args: bool | None = None) -> None:
        if not isinstance(total_count, int):
            raise errors.named(errors.NoFormula, "Multinomial",
                               "total_count must be one whole number for the whole batch")
        self.total_count = total_count
        self._categorical = Categorical(probs, logits)
        self._binomial = Binomial(total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:],
                         validate_args=validate_args)

    def _expanded(self, batch_shape: Size) -> None:
        super()._expanded(batch_shape)
        self._binomial = self._binomial.expand(batch_shape + self._event_shape)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Constraint:
        return constraints.multinomial(self.total_count)

    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        drawn = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
        blank = ops.zeros(self._extended_shape(sample_shape), dtype=drawn.dtype,
                          device=drawn.device)
        return blank.scatter_add(-1, drawn, ops.ones_like(drawn)).type_as(self.probs)

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        logits, value = broadcast_all(self.logits, value)
        logits = ops.where((value == 0) & (logits == -math.inf), 0.0, logits)
        choices = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        return choices + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        """n H(categories) - log n! + sum over categories of E log k!."""
        n = self.total_count
        counts = self._binomial.enumerate_support(expand=False)[1:]
        terms = (self._binomial.log_prob(counts).exp() * (counts + 1).lgamma()).sum([0, -1])
        return n * self._categorical.entropy() - math.lgamma(n + 1) + terms
