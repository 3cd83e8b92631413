"""Divergences against sums, integrals and samples, for every pair; the choice by types."""

import math
import warnings

import numpy as np
import pytest
from scipy import integrate

import pullback as torch
from pullback import distributions as D
from pullback.distributions import kl
from pullback.distributions.kl import _KL_REGISTRY, kl_divergence, register_kl
from pullback.fx.make_fx import make_fx


def T(v):
    return torch.tensor(v, dtype=torch.float64)


# For each name two distributions, of which the second also covers the first where it can.
SIMPLE = {
    "Beta": (D.Beta(T(1.5), T(2.5)), D.Beta(T(3.0), T(0.7))),
    "Cauchy": (D.Cauchy(T(0.0), T(1.0)), D.Cauchy(T(1.0), T(2.0))),
    "ContinuousBernoulli": (D.ContinuousBernoulli(T(0.2)), D.ContinuousBernoulli(T(0.7))),
    "Exponential": (D.Exponential(T(2.0)), D.Exponential(T(0.7))),
    "Gamma": (D.Gamma(T(2.5), T(1.5)), D.Gamma(T(1.2), T(0.8))),
    "Gumbel": (D.Gumbel(T(0.3), T(1.5)), D.Gumbel(T(-1.0), T(2.0))),
    "HalfNormal": (D.HalfNormal(T(1.0)), D.HalfNormal(T(2.5))),
    "Laplace": (D.Laplace(T(0.5), T(1.0)), D.Laplace(T(-1.0), T(2.0))),
    "Normal": (D.Normal(T(0.5), T(1.0)), D.Normal(T(-1.0), T(2.0))),
    "Pareto": (D.Pareto(T(2.0), T(5.0)), D.Pareto(T(1.0), T(4.0))),
    "Uniform": (D.Uniform(T(0.25), T(0.75)), D.Uniform(T(-0.5), T(1.5))),
    "TransformedDistribution": (D.LogNormal(T(0.5), T(1.0)), D.LogNormal(T(-1.0), T(2.0))),
    "Bernoulli": (D.Bernoulli(T(0.3)), D.Bernoulli(T(0.6))),
    "Binomial": (D.Binomial(6, T(0.3)), D.Binomial(6, T(0.6))),
    "Categorical": (D.Categorical(T([0.3, 0.1, 0.6])), D.Categorical(T([0.2, 0.2, 0.6]))),
    "Geometric": (D.Geometric(T(0.3)), D.Geometric(T(0.6))),
    "Poisson": (D.Poisson(T(3.0)), D.Poisson(T(2.0))),
}
VECTORS = {
    "Dirichlet": (D.Dirichlet(T([1.5, 2.0, 3.0])), D.Dirichlet(T([1.0, 2.5, 1.5]))),
    "ExponentialFamily": (D.Wishart(T(5.0), T([[2.0, 0.5], [0.5, 1.0]])),
                          D.Wishart(T(4.0), T([[1.0, 0.2], [0.2, 1.5]]))),
    "Independent": (D.Independent(D.Normal(T([0.0, 1.0]), T([1.0, 2.0])), 1),
                    D.Independent(D.Normal(T([1.0, 1.0]), T([2.0, 2.0])), 1)),
    "MultivariateNormal": (D.MultivariateNormal(T([0.0, 1.0]), T([[2.0, 0.5], [0.5, 1.0]])),
                           D.MultivariateNormal(T([1.0, 1.0]), T([[1.0, 0.2], [0.2, 3.0]]))),
    "LowRankMultivariateNormal": (
        D.LowRankMultivariateNormal(T([0.0, 1.0]), T([[1.0], [0.5]]), T([0.5, 1.0])),
        D.LowRankMultivariateNormal(T([1.0, 1.0]), T([[1.0], [-0.5]]), T([1.0, 2.0]))),
    "OneHotCategorical": (D.OneHotCategorical(T([0.3, 0.1, 0.6])),
                          D.OneHotCategorical(T([0.2, 0.2, 0.6]))),
}
PAIRS = sorted((p.__name__, q.__name__) for p, q in _KL_REGISTRY)


def ends(d):
    """The support of a continuous distribution, as far as it matters."""
    low, high = (getattr(d.support, n, None) for n in ("lower_bound", "upper_bound"))
    return (-np.inf if low is None else float(low), np.inf if high is None else float(high))


def integral(p, q):
    """The divergence by numerical integration, or by summing."""
    if p.support.is_discrete:
        x = torch.arange(200.0, dtype=torch.float64)
        x = x[p.support.check(x)]
        if not q.support.check(x).all():
            return math.inf
        a, b = p.log_prob(x), q.log_prob(x)
        return float((a.exp() * (a - b)).sum())
    low, high = ends(p)
    if low < ends(q)[0] or high > ends(q)[1]:
        return math.inf

    def integrand(x):
        x = T(float(x))
        a = p.log_prob(x)
        return float(a.exp() * (a - q.log_prob(x))) if a > -500 else 0.0

    middle = float(p.loc if isinstance(p, D.Cauchy) else p.mean)
    halves = (low, middle), (middle, high)
    return sum(integrate.quad(integrand, a, b, limit=200)[0] for a, b in halves)


@pytest.mark.parametrize(("name_p", "name_q"), PAIRS)
def test_every_pair(name_p, name_q):
    table = SIMPLE if name_p in SIMPLE else VECTORS
    p, q = table[name_p][0], table[name_q][1]
    got = float(kl_divergence(p, q))
    if table is SIMPLE:
        expected = integral(p, q)
        assert got == pytest.approx(expected, rel=1e-6), (got, expected)
    else:
        torch.manual_seed(0)
        x = p.sample((20000,))
        if name_p == "Dirichlet":
            x = x / x.sum(-1, True)
        terms = p.log_prob(x) - q.log_prob(x)
        error = float(terms.std()) / math.sqrt(20000)
        assert abs(got - float(terms.mean())) < 5 * error


def test_divergence_of_a_distribution_from_itself_is_zero():
    for p, _ in [*SIMPLE.values(), *VECTORS.values()]:
        assert float(kl_divergence(p, p)) == pytest.approx(0, abs=1e-7)


def test_mass_outside_is_infinite():
    low, high = T([-1.0, 0.0, 0.2]), T([0.5, 2.0, 0.8])
    inside = [False, False, True]
    for q in (D.Beta(T(1.0), T(2.0)), D.ContinuousBernoulli(T(0.3)), D.Uniform(T(0.1), T(0.9))):
        assert torch.isfinite(kl_divergence(D.Uniform(low, high), q)).tolist() == inside
    inside = [False, True, True]
    for q in (D.Exponential(T(1.0)), D.Gamma(T(2.0), T(1.0))):
        assert torch.isfinite(kl_divergence(D.Uniform(low, high), q)).tolist() == inside
    p, q = D.Categorical(T([0.5, 0.5, 0.0])), D.Categorical(T([0.5, 0.0, 0.5]))
    assert float(kl_divergence(p, q)) == math.inf
    assert float(kl_divergence(D.Bernoulli(T(0.0)), D.Bernoulli(T(0.0)))) == 0
    assert float(kl_divergence(D.Pareto(T(1.0), T(2.0)), D.Pareto(T(2.0), T(2.0)))) == math.inf


def test_batches_broadcast():
    p = D.Normal(torch.zeros(3, 1), torch.ones(3, 1))
    q = D.Normal(torch.zeros(4), torch.ones(4))
    assert kl_divergence(p, q).shape == (3, 4)
    assert kl_divergence(p, D.Beta(torch.ones(4), torch.ones(4))).shape == (3, 4)
    p = D.MultivariateNormal(torch.zeros(3, 1, 2), torch.eye(2))
    for q in (D.MultivariateNormal(torch.zeros(4, 2), torch.eye(2)),
              D.LowRankMultivariateNormal(torch.zeros(4, 2), torch.ones(2, 1), torch.ones(2))):
        assert kl_divergence(p, q).shape == kl_divergence(q, p).shape == (3, 4)


def test_multivariate_normals_in_batches_agree_with_single_ones():
    torch.manual_seed(0)
    root = torch.randn(3, 4, 4, dtype=torch.float64)
    p = D.MultivariateNormal(torch.randn(3, 4, dtype=torch.float64), root @ root.mT + torch.eye(4))
    q = D.LowRankMultivariateNormal(torch.randn(2, 1, 4, dtype=torch.float64),
                                    torch.randn(4, 2, dtype=torch.float64), T([1.0, 2.0, 0.5, 3.0]))
    full = D.MultivariateNormal(q.loc, q.covariance_matrix)
    for a, b, c, d in ((p, q, p, full), (q, p, full, p), (q, q, full, full)):
        assert torch.allclose(kl_divergence(a, b), kl_divergence(c, d))


def test_gradients():
    loc = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    kl_divergence(D.Normal(loc, T(1.0)), D.Normal(T(0.0), T(2.0))).backward()
    assert float(loc.grad) == pytest.approx(0.5 / 4)
    df = torch.tensor(5.0, dtype=torch.float64, requires_grad=True)  # through the Bregman form
    eye, step = torch.eye(2, dtype=torch.float64), 1e-6
    q = D.Wishart(T(4.0), eye)
    kl_divergence(D.Wishart(df, eye), q).backward()
    sides = [float(kl_divergence(D.Wishart(T(5.0 + s), eye), q)) for s in (step, -step)]
    assert float(df.grad) == pytest.approx((sides[0] - sides[1]) / (2 * step), rel=1e-6)


@pytest.fixture
def registry():
    kept = dict(_KL_REGISTRY)
    yield
    _KL_REGISTRY.clear()
    _KL_REGISTRY.update(kept)
    kl._KL_MEMOIZE.clear()


def test_the_most_specific_pair_wins(registry):
    class Mine(D.Normal):
        pass

    class More(Mine):
        pass

    p, q = Mine(0.0, 1.0), D.Normal(0.0, 1.0)
    assert float(kl_divergence(p, q)) == 0

    @register_kl(Mine, D.Normal)
    def first(p, q):
        return "first"

    @register_kl(D.Normal, Mine)
    def second(p, q):
        return "second"

    assert kl_divergence(p, q) == kl_divergence(More(0.0, 1.0), q) == "first"
    assert kl_divergence(q, p) == "second"
    assert float(kl_divergence(q, q)) == 0
    with pytest.warns(RuntimeWarning, match=r"Ambiguous .*\(Mine, Normal\) and \(Normal, Mine\)"):
        assert kl_divergence(p, p) == "first"

    @register_kl(Mine, Mine)
    def both(p, q):
        return "both"

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kl_divergence(p, p) == "both"


def test_refusals():
    normal = D.Normal(0.0, 1.0)
    with pytest.raises(NotImplementedError, match="no divergence is registered for Normal and Stu"):
        kl_divergence(normal, D.StudentT(3.0))
    with pytest.raises(TypeError, match="subclasses of Distribution"):
        register_kl(D.Normal, 3)
    with pytest.raises(NotImplementedError, match="different exponential families"):
        kl_divergence(normal, D.Dirichlet(torch.ones(2)))
    with pytest.raises(NotImplementedError, match="total_count"):
        kl_divergence(D.Binomial(3, T(0.5)), D.Binomial(4, T(0.5)))
    with pytest.raises(ValueError, match="event shapes"):
        kl_divergence(D.MultivariateNormal(torch.zeros(2), torch.eye(2)),
                      D.MultivariateNormal(torch.zeros(3), torch.eye(3)))
    with pytest.raises(NotImplementedError, match="reinterpreted_batch_ndims"):
        kl_divergence(D.Independent(D.Normal(torch.zeros(2), 1.0), 1),
                      D.Independent(D.Normal(torch.zeros(2), 1.0), 0))
    with pytest.raises(NotImplementedError, match="equal transforms"):
        kl_divergence(D.TransformedDistribution(normal, D.ExpTransform()),
                      D.TransformedDistribution(normal, D.TanhTransform()))


def test_classes_with_a_root_of_their_own():
    class Stranger:
        pass

    @register_kl(Stranger, Stranger)
    def same(p, q):
        return 0.0

    try:
        assert kl_divergence(Stranger(), Stranger()) == 0
    finally:
        del _KL_REGISTRY[Stranger, Stranger]


def test_other_transforms_are_not_taken_for_the_same_in_captures():
    def f(x, y):
        made = [D.TransformedDistribution(D.Normal(x, 1.0), [D.AffineTransform(0.0, scale)])
                for scale in (x, y)]
        return D.kl_divergence(*made)

    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    with pytest.raises(torch.errors.DataDependentError, match="two transforms"):
        make_fx(f, None, "fake")(x, y)
    assert torch.equal(make_fx(lambda x: f(x, x), None, "fake")(x)(x), torch.zeros(2))
