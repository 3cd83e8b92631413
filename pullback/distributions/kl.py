"""Kullback-Leibler divergences: `kl_divergence(p, q)`, chosen by the types of both.

Most are -H(p) - E_p[log q], where the second term needs a few moments of p only: one function for
each q serves many p.  Others are functions of the parameters.  `register_kl` adds more.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

from .. import errors
from ..array.dims import broadcast_shapes
from ..core.handle import Tensor
from ..func import jvp
from ..table.packets import ops
from .base import Distribution, ExponentialFamily
from .discrete import Bernoulli, Binomial, Categorical, Geometric, OneHotCategorical, Poisson
from .location import Cauchy, Laplace, Normal, Uniform
from .multivariate import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    _batch_mahalanobis,
    _log_diagonal,
    _lowrank_logdet,
    _lowrank_mahalanobis,
)
from .positive import Exponential, Gamma
from .transformed import Gumbel, HalfNormal, Pareto
from .unit import Beta, ContinuousBernoulli, Dirichlet
from .utils import _sum_rightmost, euler_constant, everywhere
from .wrappers import Independent, TransformedDistribution

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict[tuple[type, type], Callable] = {}
_KL_MEMOIZE: dict[tuple[type, type], Callable | None] = {}


def register_kl(type_p: type, type_q: type) -> Callable:
    """A decorator that registers a function of p and q for two types and their subclasses.

    The most specific pair is used.  Where no pair is the most specific in both places, the one more
    specific in the first wins, with a warning.
    """
    for kind in (type_p, type_q):
        if not isinstance(kind, type):  # any class: a package may have a root of its own
            raise errors.named(errors.ArgumentError, "register_kl",
                               f"expected subclasses of Distribution, got {kind!r}")

    def decorator(function: Callable) -> Callable:
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return decorator


def _dispatch_kl(type_p: type, type_q: type) -> Callable | None:
    """The function for two types, None if there is none."""
    matches = [pair for pair in _KL_REGISTRY
               if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])]
    if not matches:
        return None

    def rank(pair):
        return type_p.__mro__.index(pair[0]), type_q.__mro__.index(pair[1])

    left, right = min(matches, key=rank), min(matches, key=lambda pair: rank(pair)[::-1])
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        names = [f"({a.__name__}, {b.__name__})" for a, b in (left, right)]
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}): both {names[0]} and "
            f"{names[1]} fit, the first is used. Register the pair itself.", RuntimeWarning,
            stacklevel=3)
    return _KL_REGISTRY[left]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """E_p[log p(x) - log q(x)], of the broadcast batch shape."""
    kinds = type(p), type(q)
    if kinds not in _KL_MEMOIZE:
        _KL_MEMOIZE[kinds] = _dispatch_kl(*kinds)
    function = _KL_MEMOIZE[kinds]
    if function is None:
        raise errors.named(
            errors.NoFormula, "kl_divergence",
            f"no divergence is registered for {kinds[0].__name__} and {kinds[1].__name__}",
            cure="register one with @register_kl, or average p.log_prob(x) - q.log_prob(x) over "
                 "samples x of p")
    return function(p, q)


def _for_each(*types_p: type):
    """Register one function for several p and one q."""

    def with_q(type_q: type) -> Callable:
        def decorator(function: Callable) -> Callable:
            for type_p in types_p:
                register_kl(type_p, type_q)(function)
            return function

        return decorator

    return with_q


def _no_kl(what: str):
    raise errors.named(errors.NoFormula, "kl_divergence", "the divergence " + what)


# --- E_p[log q] from moments of p -----------------------------------------------------------------


@_for_each(Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform)(Normal)
def _kl_any_normal(p, q):
    square = p.variance + (p.mean - q.loc).pow(2)
    return -p.entropy() + q.scale.log() + 0.5 * math.log(2 * math.pi) + square / (
        2 * q.scale.pow(2))


@_for_each(Beta, ContinuousBernoulli, Gamma, Pareto, Uniform)(Exponential)
def _kl_any_exponential(p, q):
    return _outside(_below_zero(p), -p.entropy() - q.rate.log() + q.rate * p.mean)


@_for_each(Beta, Exponential, Pareto, Uniform)(Gamma)
def _kl_any_gamma(p, q):
    a = q.concentration
    value = a.lgamma() - a * q.rate.log() - (a - 1) * _mean_log(p) + q.rate * p.mean
    return _outside(_below_zero(p), value - p.entropy())


@_for_each(Exponential, Gamma, Normal, Uniform)(Gumbel)
def _kl_any_gumbel(p, q):
    """-log q = log s + z + exp(-z) with z = (x - loc) / s."""
    z = (p.mean - q.loc) / q.scale
    return -p.entropy() + q.scale.log() + z + _mean_exp(p, q.loc, q.scale)


@_for_each(Beta, Uniform)(ContinuousBernoulli)
def _kl_any_continuous_bernoulli(p, q):
    value = -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._cont_bern_log_norm()
    return _outside((p.support.upper_bound > 1) | _below_zero(p), value)


@_for_each(Beta, ContinuousBernoulli, Uniform)(Uniform)
def _kl_any_uniform(p, q):
    low, high = p.support.lower_bound, p.support.upper_bound
    return _outside((q.low > low) | (q.high < high), (q.high - q.low).log() - p.entropy())


@register_kl(Uniform, Beta)
def _kl_uniform_beta(p, q):
    a, b, width = q.concentration1, q.concentration0, p.high - p.low
    # E log(1 - x): the same integral, mirrored
    mean_log_rest = (_x_log_x(1 - p.low) - _x_log_x(1 - p.high)) / width - 1
    value = (a.lgamma() + b.lgamma() - (a + b).lgamma() - (a - 1) * _mean_log(p)
             - (b - 1) * mean_log_rest - width.log())
    return _outside((p.high > 1) | (p.low < 0), value)


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p, q):
    value = (q.alpha + 1) * _mean_log(p) - q.alpha.log() - q.alpha * q.scale.log() - p.entropy()
    return _outside(p.low < q.scale, value)


def _outside(where: Tensor | bool, value: Tensor) -> Tensor:
    """Infinite where p has mass outside of the support of q."""
    if isinstance(where, bool):
        return ops.full_like(value, math.inf) if where else value
    return ops.where(where, math.inf, value)


def _below_zero(p: Distribution) -> Tensor | bool:
    """Where p has mass below 0; only a uniform distribution may."""
    return p.low < 0 if isinstance(p, Uniform) else False


def _x_log_x(x: Tensor) -> Tensor:
    return ops.xlogy(x, x)


def _mean_log(p: Distribution) -> Tensor:
    """E log x."""
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Exponential):
        return -euler_constant - p.rate.log()
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    return (_x_log_x(p.high) - _x_log_x(p.low)) / (p.high - p.low) - 1


def _mean_exp(p: Distribution, loc: Tensor, scale: Tensor) -> Tensor:
    """E exp(-(x - loc) / scale)."""
    if isinstance(p, Normal):
        return ((loc - p.loc) / scale + 0.5 * (p.scale / scale).pow(2)).exp()
    if isinstance(p, Uniform):
        ends = ((loc - p.low) / scale).exp() - ((loc - p.high) / scale).exp()
        return ends * scale / (p.high - p.low)
    shape = p.concentration if isinstance(p, Gamma) else 1.0
    return (loc / scale - shape * (1 / (scale * p.rate)).log1p()).exp()


# --- p has mass where q has none ------------------------------------------------------------------


def _kl_infinite(p, q):
    like = p.mean
    shape = broadcast_shapes(p.batch_shape, q.batch_shape)
    return ops.full(shape, math.inf, dtype=like.dtype, device=like.device)


for _p, _qs in {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}.items():
    for _q in _qs:
        register_kl(_p, _q)(_kl_infinite)


# --- the same family ------------------------------------------------------------------------------


@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p, q):
    def half(mass_p, mass_q, logits_p, logits_q):
        value = mass_p * (ops.softplus(-logits_q) - ops.softplus(-logits_p))
        return ops.where(mass_p == 0, 0.0, ops.where(mass_q == 0, math.inf, value))

    return (half(p.probs, q.probs, p.logits, q.logits)
            + half(1 - p.probs, 1 - q.probs, -p.logits, -q.logits))


@register_kl(Beta, Beta)
def _kl_beta_beta(p, q):
    a, b, c, d = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    norms = c.lgamma() + d.lgamma() + (a + b).lgamma() - a.lgamma() - b.lgamma() - (c + d).lgamma()
    return (norms + (a - c) * a.digamma() + (b - d) * b.digamma()
            + (c + d - a - b) * (a + b).digamma())


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p, q):
    if not everywhere(p.total_count >= q.total_count):
        _no_kl("of two binomial distributions needs p.total_count >= q.total_count")
    value = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p()
                             - (-q.probs).log1p())
    return _outside(p.total_count > q.total_count, value)


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p, q):
    value = p.probs * (p.logits - q.logits)
    value = ops.where(q.probs == 0, math.inf, value)
    return ops.where(p.probs == 0, 0.0, value).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_onehotcategorical_onehotcategorical(p, q):
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p, q):
    # F. Chyzak, F. Nielsen, 2019
    top = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return top.log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_continuous_bernoulli_continuous_bernoulli(p, q):
    def norm(d):
        return d._cont_bern_log_norm() + (-d.probs).log1p()

    return p.mean * (p.logits - q.logits) + norm(p) - norm(q)


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p, q):
    a, b = p.concentration, q.concentration
    norms = a.sum(-1).lgamma() - b.sum(-1).lgamma() + (b.lgamma() - a.lgamma()).sum(-1)
    return norms + ((a - b) * (a.digamma() - a.sum(-1, True).digamma())).sum(-1)


@register_kl(Exponential, Exponential)
def _kl_exponential_exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p, q):
    """A(q) - A(p) - <q - p, grad A(p)>: the Bregman divergence of the log normalizer A."""
    if type(p) is not type(q):
        _no_kl(f"of {type(p).__name__} and {type(q).__name__}, different exponential families, "
               "is not known")
    pairs = [ops.broadcast_tensors([a, b]) for a, b in zip(p._natural_params, q._natural_params)]
    from_p, to_q = tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
    value, slope = jvp(p._log_normalizer, from_p, tuple(b - a for a, b in pairs))
    return q._log_normalizer(*to_q) - value - slope


@register_kl(Gamma, Gamma)
def _kl_gamma_gamma(p, q):
    a, b = p.concentration, q.concentration
    return (b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma() + (a - b) * a.digamma()
            + (q.rate - p.rate) * (a / p.rate))


@register_kl(Gumbel, Gumbel)
def _kl_gumbel_gumbel(p, q):
    ratio, shift = p.scale / q.scale, (q.loc - p.loc) / q.scale
    return (ratio * euler_constant - ratio.log() - shift
            + (shift + (1 + ratio).lgamma()).exp() - (1 + euler_constant))


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p, q):
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Normal, Normal)
def _kl_normal_normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _kl_halfnormal_halfnormal(p, q):
    return _kl_normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p, q):
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return (distance / q.scale + ratio * (-distance / p.scale).exp() - ratio.log() - 1)


@register_kl(Pareto, Pareto)
def _kl_pareto_pareto(p, q):
    ratio = q.alpha / p.alpha
    value = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return _outside(p.scale < q.scale, value)


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


# --- the other pairs ------------------------------------------------------------------------------


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p, q):
    z = (p.loc - q.loc) / p.scale
    # E |x - loc|
    distance = p.scale * (math.sqrt(2 / math.pi) * (-0.5 * z.pow(2)).exp()
                          + z * ops.erf(math.sqrt(0.5) * z))
    return -p.entropy() + (2 * q.scale).log() + distance / q.scale


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_multivariate_normal(p, q):
    if p.event_shape != q.event_shape:
        raise errors.named(errors.BadValue, "kl_divergence",
                           f"event shapes {tuple(p.event_shape)} and {tuple(q.event_shape)} differ")
    logdet_p, roots, _ = _gaussian(p)
    logdet_q, _, quadratic = _gaussian(q)
    trace = sum(quadratic(root.mT).sum(-1) for root in roots)
    distance = quadratic((q.loc - p.loc).unsqueeze(-2)).squeeze(-1)
    return 0.5 * (logdet_q - logdet_p + trace + distance - p.event_shape[0])


def _gaussian(d) -> tuple[Tensor, list[Tensor], Callable]:
    """log det C, matrices R whose sum of R R^T is C, and x -> x^T C^-1 x of rows x."""
    if isinstance(d, MultivariateNormal):
        factor = d._unbroadcasted_scale_tril
        return 2 * _log_diagonal(factor), [factor], lambda x: _batch_mahalanobis(
            factor.unsqueeze(-3), x)
    W, D, capacitance = d._parts

    def quadratic(x: Tensor) -> Tensor:
        return _lowrank_mahalanobis(W.unsqueeze(-3), D.unsqueeze(-2), x, capacitance.unsqueeze(-3))

    return _lowrank_logdet(W, D, capacitance), [W, D.sqrt().diag_embed()], quadratic


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        _no_kl("of transformed distributions needs equal transforms and event shapes")
    extra = len(p.event_shape) - len(p.base_dist.event_shape)
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), extra)


@register_kl(Independent, Independent)
def _kl_independent_independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        _no_kl("of two Independent needs the same reinterpreted_batch_ndims")
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
