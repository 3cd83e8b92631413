"""Probability distributions: samples, densities, moments, transforms and divergences.

As `torch.distributions`: `Normal(loc, scale).rsample()` is differentiable, `log_prob` and the
moments too; the same seed draws the same numbers.  Files are grouped by theme; every module path of
PyTorch (`distributions.normal`, ...) resolves by the table below.  Read next: `base.py`.
"""

import sys as _sys
import types as _types

from . import base, constraints, kl, transforms, utils
from .base import Distribution, ExponentialFamily
from .constraint_registry import biject_to, transform_to
from .discrete import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    Multinomial,
    NegativeBinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    Poisson,
)
from .kl import kl_divergence, register_kl
from .location import Cauchy, Laplace, Normal, StudentT, Uniform, VonMises
from .multivariate import LKJCholesky, LowRankMultivariateNormal, MultivariateNormal, Wishart
from .positive import Chi2, Exponential, FisherSnedecor, Gamma, GeneralizedPareto
from .relaxed import RelaxedBernoulli, RelaxedOneHotCategorical
from .transformed import (
    Gumbel,
    HalfCauchy,
    HalfNormal,
    InverseGamma,
    Kumaraswamy,
    LogisticNormal,
    LogNormal,
    Pareto,
    Weibull,
)
from .transforms import *
from .unit import Beta, ContinuousBernoulli, Dirichlet
from .wrappers import Independent, MixtureSameFamily, TransformedDistribution

# our file -> PyTorch's modules whose names it holds
_MODULES = {
    "base": "distribution exp_family",
    "discrete": "bernoulli binomial categorical geometric multinomial negative_binomial "
                "one_hot_categorical poisson",
    "location": "cauchy laplace normal studentT uniform von_mises",
    "multivariate": "lkj_cholesky lowrank_multivariate_normal multivariate_normal wishart",
    "positive": "chi2 exponential fishersnedecor gamma generalized_pareto",
    "relaxed": "relaxed_bernoulli relaxed_categorical",
    "transformed": "gumbel half_cauchy half_normal inverse_gamma kumaraswamy log_normal "
                   "logistic_normal pareto weibull",
    "unit": "beta continuous_bernoulli dirichlet",
    "wrappers": "independent mixture_same_family transformed_distribution",
}
for _file, _names in _MODULES.items():
    _target = _sys.modules[f"{__name__}.{_file}"]
    for _name in _names.split():
        _alias = _types.ModuleType(f"{__name__}.{_name}", _target.__doc__)
        _alias.__getattr__ = lambda attribute, _target=_target: getattr(_target, attribute)
        _sys.modules[_alias.__name__] = globals()[_name] = _alias

__all__ = [
    *transforms.__all__,
    *(n for n, v in list(globals().items()) if isinstance(v, type) and issubclass(v, Distribution)),
    "biject_to",
    "kl_divergence",
    "register_kl",
    "transform_to",
]
