"""Distributions made of others: `Independent`, `TransformedDistribution`, `MixtureSameFamily`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import errors
from ..array.size import Size
from ..autograd.grad_mode import no_grad
from ..core.handle import Tensor
from . import constraints
from .base import Distribution, checked
from .constraints import Constraint
from .discrete import Categorical
from .transform_base import ComposeTransform, Transform
from .utils import _sum_rightmost

__all__ = ["Independent", "MixtureSameFamily", "TransformedDistribution"]


class Independent(Distribution):
    """A distribution with the last batch dims taken as part of the event: densities multiply."""

    arg_constraints: dict[str, Constraint] = {}

    def __init__(self, base_distribution: Distribution, reinterpreted_batch_ndims: int,
                 validate_args: bool | None = None) -> None:
        batch, event = base_distribution.batch_shape, base_distribution.event_shape
        if reinterpreted_batch_ndims > len(batch):
            raise errors.named(
                errors.BadValue, "Independent",
                f"reinterpreted_batch_ndims is {reinterpreted_batch_ndims}, but the base "
                f"distribution has {len(batch)} batch dims")
        cut, shape = len(batch) - reinterpreted_batch_ndims, batch + event
        self.base_dist: Any = base_distribution  # of which kind, the user knows
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def _expanded(self, batch_shape: Size) -> None:
        inner = self._event_shape[: self.reinterpreted_batch_ndims]
        self.base_dist = self.base_dist.expand(batch_shape + inner)

    has_rsample = property(lambda self: self.base_dist.has_rsample)
    mean = property(lambda self: self.base_dist.mean)
    mode = property(lambda self: self.base_dist.mode)
    variance = property(lambda self: self.base_dist.variance)

    @property
    def has_enumerate_support(self) -> bool:
        return not self.reinterpreted_batch_ndims and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Constraint:
        inner, dims = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(inner, dims) if dims else inner

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            raise errors.named(errors.NoFormula, "Independent",
                               "the values of several dims together are not enumerated")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """What becomes of a base distribution under transforms, the first one first."""

    arg_constraints: dict[str, Constraint] = {}

    def __init__(self, base_distribution: Distribution, transforms: Transform | list[Transform],
                 validate_args: bool | None = None) -> None:
        def refuse(what):
            raise errors.named(errors.BadValue, type(self).__name__, what)

        if isinstance(transforms, Transform):
            transforms = [transforms]
        elif not isinstance(transforms, list):
            refuse(f"transforms must be a transform or a list, got {transforms!r}")
        elif not all(isinstance(t, Transform) for t in transforms):
            refuse("transforms must be a list of transforms")
        self.transforms = list(transforms)
        shape = base_distribution.batch_shape + base_distribution.event_shape
        events = len(base_distribution.event_shape)
        whole = ComposeTransform(self.transforms)
        if len(shape) < whole.domain.event_dim:
            refuse(f"the base distribution has shape {tuple(shape)}, but the transforms take "
                   f"{whole.domain.event_dim} dims together")
        # first the base: what the transforms want, in batch dims and in event dims
        new_shape = Size(whole.forward_shape(shape))
        base_shape = Size(whole.inverse_shape(new_shape))
        if base_shape != shape:
            base_distribution = base_distribution.expand(base_shape[: len(base_shape) - events])
        more = whole.domain.event_dim - events
        self.base_dist: Any = (
            Independent(base_distribution, more) if more > 0 else base_distribution)
        # then the result
        change = whole.codomain.event_dim - whole.domain.event_dim
        cut = len(new_shape) - max(events + change, whole.codomain.event_dim)
        super().__init__(new_shape[:cut], new_shape[cut:], validate_args=validate_args)

    def _expanded(self, batch_shape: Size) -> None:
        shape = Size(ComposeTransform(self.transforms).inverse_shape(
            batch_shape + self._event_shape))
        self.base_dist = self.base_dist.expand(
            shape[: len(shape) - len(self.base_dist.event_shape)])

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Constraint:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        extra = len(self._event_shape) - support.event_dim
        return constraints.independent(support, extra) if extra > 0 else support

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        with no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def _forward(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        """The density of the base, over the Jacobian determinants of the transforms."""
        event_dim, total, y = len(self._event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            total = total - _sum_rightmost(transform.log_abs_det_jacobian(x, y),
                                           event_dim - transform.domain.event_dim)
            y = x
        return total + _sum_rightmost(self.base_dist.log_prob(y),
                                      event_dim - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value: Tensor) -> Tensor:
        """F, or 1 - F where the transforms turn the axis round."""
        sign = ComposeTransform(self.transforms).sign
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._forward(self.base_dist.icdf(self._monotonize_cdf(value)))


class MixtureSameFamily(Distribution):
    """A mixture: the last batch dim of the components is drawn from a categorical distribution."""

    arg_constraints: dict[str, Constraint] = {}

    def __init__(self, mixture_distribution: Categorical, component_distribution: Distribution,
                 validate_args: bool | None = None) -> None:
        def refuse(what):
            raise errors.named(errors.BadValue, "MixtureSameFamily", what)

        mixture, components = mixture_distribution, component_distribution
        if not isinstance(mixture, Categorical):
            refuse(f"the mixture distribution must be a Categorical, got {type(mixture).__name__}")
        if not isinstance(components, Distribution):
            refuse("the component distribution must be a Distribution, got "
                   f"{type(components).__name__}")
        for have, want in zip(reversed(mixture.batch_shape), reversed(components.batch_shape[:-1])):
            if have != 1 and want != 1 and have != want:
                refuse(f"batch shape {tuple(mixture.batch_shape)} of the mixture does not fit "
                       f"{tuple(components.batch_shape[:-1])} of the components")
        count = mixture.logits.shape[-1]
        if count != components.batch_shape[-1]:
            refuse(f"the mixture has {count} categories, the last batch dim of the components has "
                   f"size {components.batch_shape[-1]}")
        self._mixture_distribution, self._component_distribution = mixture, components
        self._num_component = count
        self._event_ndims = len(components.event_shape)
        super().__init__(components.batch_shape[:-1], components.event_shape,
                         validate_args=validate_args)

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)

    def _expanded(self, batch_shape: Size) -> None:
        self._component_distribution = self._component_distribution.expand(
            batch_shape + (self._num_component,))
        self._mixture_distribution = self._mixture_distribution.expand(batch_shape)

    @constraints.dependent_property
    def support(self) -> Constraint:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def _average(self, values: Tensor) -> Tensor:
        """The mean of a quantity of the components."""
        probs = self._pad_mixture_dimensions(self._mixture_distribution.probs)
        return (probs * values).sum(-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return self._average(self._component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        """The law of total variance."""
        inner = self._component_distribution
        spread = (inner.mean - self._pad(self.mean)).pow(2)
        return self._average(inner.variance) + self._average(spread)

    def cdf(self, value: Tensor) -> Tensor:
        cdf = self._component_distribution.cdf(self._pad(value))
        return (cdf * self._mixture_distribution.probs).sum(-1)

    @checked
    def log_prob(self, value: Tensor) -> Tensor:
        inner = self._component_distribution.log_prob(self._pad(value))
        return (inner + self._mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        with no_grad():
            chosen = self._mixture_distribution.expand(self._batch_shape).sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            dim = drawn.ndim - 1 - self._event_ndims
            index = chosen.reshape(chosen.shape + (1,) * (self._event_ndims + 1))
            index = index.expand((*chosen.shape, 1, *self._event_shape))
            return drawn.gather(dim, index).squeeze(dim)

    def _pad(self, x: Tensor) -> Tensor:
        """A value with a dim for the components."""
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x: Tensor) -> Tensor:
        """Weights of the components in front of the dims of an event."""
        return x.reshape(x.shape + (1,) * self._event_ndims)

    def __repr__(self) -> str:
        return (f"{type(self).__name__}(\n  {self._mixture_distribution},\n  "
                f"{self._component_distribution})")
