"""Distributions against SciPy, recorded draws, finite differences, and under every transform."""

import copy
import importlib
import json
import math
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import pullback as torch
from pullback import distributions as D
from pullback.func import grad, jvp, vmap
from pullback.fx.make_fx import make_fx

DATA = json.loads((Path(__file__).parents[1] / "data" / "distributions.json").read_text())


def T(v):
    return torch.tensor(v, dtype=torch.float64)


def built(text, dtype="float64", tensor=None):
    """The distribution of an expression in the recorded file."""
    names = {n: getattr(D, n) for n in dir(D)}
    names["T"] = tensor or (lambda v: torch.tensor(v, dtype=getattr(torch, dtype)))
    return eval(text, names)


CASES = list(DATA)

# --- values ---------------------------------------------------------------------------------------

CONTINUOUS = [
    (D.Normal(T(0.5), T(2.0)), stats.norm(0.5, 2)),
    (D.Laplace(T(0.5), T(2.0)), stats.laplace(0.5, 2)),
    (D.Cauchy(T(0.5), T(2.0)), stats.cauchy(0.5, 2)),
    (D.StudentT(T(5.0), T(0.5), T(2.0)), stats.t(5, 0.5, 2)),
    (D.Uniform(T(-1.0), T(2.0)), stats.uniform(-1, 3)),
    (D.Gumbel(T(0.5), T(2.0)), stats.gumbel_r(0.5, 2)),
    (D.VonMises(T(0.5), T(2.0)), stats.vonmises(2, 0.5)),
    (D.VonMises(T(0.5), T(700.0)), stats.vonmises(700, 0.5)),
    (D.Exponential(T(2.0)), stats.expon(scale=0.5)),
    (D.Gamma(T(0.7), T(2.0)), stats.gamma(0.7, scale=0.5)),
    (D.Chi2(T(3.0)), stats.chi2(3)),
    (D.FisherSnedecor(T(5.0), T(7.0)), stats.f(5, 7)),
    (D.GeneralizedPareto(T(1.0), T(2.0), T(0.3)), stats.genpareto(0.3, 1, 2)),
    (D.GeneralizedPareto(T(1.0), T(2.0), T(0.0)), stats.genpareto(0.0, 1, 2)),
    (D.GeneralizedPareto(T(1.0), T(2.0), T(-0.3)), stats.genpareto(-0.3, 1, 2)),
    (D.HalfNormal(T(2.0)), stats.halfnorm(scale=2)),
    (D.HalfCauchy(T(2.0)), stats.halfcauchy(scale=2)),
    (D.LogNormal(T(0.5), T(0.7)), stats.lognorm(0.7, scale=math.exp(0.5))),
    (D.InverseGamma(T(3.0), T(2.0)), stats.invgamma(3, scale=2)),
    (D.Pareto(T(2.0), T(3.0)), stats.pareto(3, scale=2)),
    (D.Weibull(T(2.0), T(1.5)), stats.weibull_min(1.5, scale=2)),
    (D.Beta(T(0.5), T(2.5)), stats.beta(0.5, 2.5)),
]
DISCRETE = [
    (D.Bernoulli(T(0.3)), stats.bernoulli(0.3)),
    (D.Geometric(T(0.3)), stats.geom(0.3, loc=-1)),
    (D.Binomial(7, T(0.3)), stats.binom(7, 0.3)),
    (D.NegativeBinomial(T(3.5), T(0.3)), stats.nbinom(3.5, 0.7)),
    (D.Poisson(T(3.5)), stats.poisson(3.5)),
]


def agree(got, expected, rel=1e-9):
    np.testing.assert_allclose(np.asarray(got.detach()), expected, rtol=rel, atol=1e-12)


def defined(function):
    try:
        return function()
    except NotImplementedError:
        return None


@pytest.mark.parametrize("which", range(len(CONTINUOUS)))
def test_continuous_like_scipy(which):
    ours, theirs = CONTINUOUS[which]
    at = theirs.ppf([1e-6, 0.1, 0.5, 0.9, 1 - 1e-6])
    at = np.clip(at, *(-np.inf, np.inf)) if "VonMises" not in repr(ours) else at
    agree(ours.log_prob(T(at)), theirs.logpdf(at))
    cdf = defined(lambda: ours.cdf(T(at)))
    if cdf is not None:
        agree(cdf, theirs.cdf(at), 1e-7)
    icdf = defined(lambda: ours.icdf(T([1e-6, 0.3, 0.9])))
    if icdf is not None:
        agree(icdf, theirs.ppf([1e-6, 0.3, 0.9]), 1e-7)
    entropy = defined(ours.entropy)
    if entropy is not None:
        agree(entropy, float(theirs.entropy()), 1e-6)
    if isinstance(ours, D.VonMises):
        return  # its moments are those of the circle
    mean, variance = (float(v) for v in theirs.stats("mv"))
    if math.isfinite(mean):
        agree(ours.mean, mean)
    if math.isfinite(variance):
        agree(ours.variance, variance, 1e-8)
        agree(ours.stddev, math.sqrt(variance), 1e-8)
    mode = defined(lambda: ours.mode)
    if mode is not None and not isinstance(ours, D.Uniform) and math.isfinite(mode):
        near = T(float(mode) * (1 + np.array([-1e-4, 1e-4])) + np.array([-1e-4, 1e-4]))
        near = near[ours.support.check(near)]
        assert (ours.log_prob(near) <= ours.log_prob(mode) + 1e-12).all()


@pytest.mark.parametrize("which", range(len(DISCRETE)))
def test_discrete_like_scipy(which):
    ours, theirs = DISCRETE[which]
    at = np.arange(0.0, 2.0 if isinstance(ours, D.Bernoulli) else 8.0)
    agree(ours.log_prob(T(at)), theirs.logpmf(at))
    mean, variance = theirs.stats("mv")
    agree(ours.mean, mean)
    agree(ours.variance, variance)
    entropy = defined(ours.entropy)
    if entropy is not None:
        agree(entropy, float(theirs.entropy()), 1e-7)
        agree(ours.perplexity(), math.exp(float(theirs.entropy())), 1e-7)
    assert int(ours.mode) == int(np.argmax(theirs.pmf(np.arange(200))))


def test_vectors_like_scipy():
    a = [0.5, 2.0, 5.0]
    ours, theirs = D.Dirichlet(T(a)), stats.dirichlet(a)
    x = [0.2, 0.3, 0.5]
    agree(ours.log_prob(T(x)), theirs.logpdf(x))
    agree(ours.entropy(), theirs.entropy())
    agree(ours.mean, theirs.mean())
    agree(ours.variance, theirs.var())
    covariance = [[2.0, 0.5], [0.5, 1.0]]
    theirs = stats.multivariate_normal([1.0, 2.0], covariance)
    x = np.array([[0.0, 1.0], [3.0, -1.0]])
    forms = [{"covariance_matrix": T(covariance)},
             {"precision_matrix": T(np.linalg.inv(covariance))},
             {"scale_tril": T(np.linalg.cholesky(covariance))}]
    for form in forms:
        ours = D.MultivariateNormal(T([1.0, 2.0]), **form)
        agree(ours.log_prob(T(x)), theirs.logpdf(x))
        agree(ours.entropy(), theirs.entropy())
        agree(ours.variance, [2.0, 1.0])
        for name, value in (("covariance_matrix", covariance),
                            ("precision_matrix", np.linalg.inv(covariance)),
                            ("scale_tril", np.linalg.cholesky(covariance))):
            agree(getattr(ours, name), value)
    W, d = np.array([[1.0], [0.5], [-1.0]]), np.array([0.5, 1.0, 2.0])
    full = W @ W.T + np.diag(d)
    ours = D.LowRankMultivariateNormal(T([1.0, 2.0, 0.0]), T(W), T(d))
    theirs = stats.multivariate_normal([1.0, 2.0, 0.0], full)
    agree(ours.log_prob(T([0.0, 1.0, 1.0])), theirs.logpdf([0.0, 1.0, 1.0]))
    agree(ours.entropy(), theirs.entropy())
    agree(ours.covariance_matrix, full)
    agree(ours.precision_matrix, np.linalg.inv(full))
    agree(ours.scale_tril, np.linalg.cholesky(full))
    agree(ours.variance, np.diag(full))
    theirs = stats.wishart(5, covariance)
    x = np.array([[3.0, 1.0], [1.0, 2.0]])
    ours = D.Wishart(T(5.0), T(covariance))
    agree(ours.log_prob(T(x)), theirs.logpdf(x))
    agree(ours.entropy(), theirs.entropy())
    agree(ours.mean, theirs.mean())
    agree(ours.mode, theirs.mode())
    agree(ours.variance, theirs.var())
    theirs = stats.multinomial(7, [0.1, 0.5, 0.4])
    ours = D.Multinomial(7, T([0.1, 0.5, 0.4]))
    agree(ours.log_prob(T([1.0, 4.0, 2.0])), theirs.logpmf([1, 4, 2]))
    agree(ours.entropy(), theirs.entropy())


@pytest.mark.parametrize("p", [1e-6, 0.1, 0.4985, 0.4995, 0.5, 0.5005, 0.6, 1 - 1e-6])
def test_continuous_bernoulli(p):
    """Against integrals over [0, 1], on both sides of the unstable region."""
    ours, grid = D.ContinuousBernoulli(T(p)), np.linspace(0, 1, 20001)
    density = p**grid * (1 - p) ** (1 - grid)

    def integral(values):
        return float((values[1:] + values[:-1]).sum() / 2 / 20000)

    total = integral(density)
    mean = integral(density * grid) / total
    agree(ours.log_prob(T(0.3)), np.log(p**0.3 * (1 - p) ** 0.7 / total), 1e-6)
    agree(ours.mean, mean, 1e-6)
    agree(ours.variance, integral(density * (grid - mean) ** 2) / total, 1e-5)
    agree(ours.icdf(ours.cdf(T([0.01, 0.3, 0.9]))), [0.01, 0.3, 0.9], 1e-6)
    agree(ours.entropy(), -integral(density / total * np.log(density / total)), 1e-5)


def test_kumaraswamy():
    ours, a, b = D.Kumaraswamy(T(2.0), T(3.0)), 2.0, 3.0
    x = np.linspace(0, 1, 200001)[1:-1]
    density = a * b * x ** (a - 1) * (1 - x**a) ** (b - 1)
    agree(ours.log_prob(T([0.2, 0.6])), np.log(a * b * np.array([0.2, 0.6]) ** (a - 1)
                                               * (1 - np.array([0.2, 0.6]) ** a) ** (b - 1)))
    agree(ours.mean, (density * x).mean(), 1e-4)
    agree(ours.variance, (density * x**2).mean() - (density * x).mean() ** 2, 1e-3)
    agree(ours.entropy(), -(density * np.log(density)).mean(), 1e-4)
    assert float(ours.mode) == pytest.approx(x[density.argmax()], abs=1e-4)
    agree(ours.cdf(T(0.5)), 1 - (1 - 0.25) ** 3)
    assert math.isnan(D.Kumaraswamy(T(0.5), T(3.0)).mode)


def test_relaxations_integrate_to_one():
    x = np.linspace(0, 1, 400001)[1:-1]
    density = D.RelaxedBernoulli(T(0.7), T(0.3)).log_prob(T(x)).exp()
    assert float(density.mean()) == pytest.approx(1, abs=1e-3)
    pair = T(np.stack([x, 1 - x], -1))
    density = D.RelaxedOneHotCategorical(T(0.7), T([0.3, 0.7])).log_prob(pair).exp()
    assert float(density.mean()) == pytest.approx(1, abs=1e-3)


def test_lkj_integrates_to_one():
    """Over factors of 2 x 2 correlation matrices, which are [[1, 0], [r, sqrt(1 - r^2)]]."""
    r = torch.linspace(-1, 1, 100001, dtype=torch.float64)[1:-1]
    zero, one = torch.zeros_like(r), torch.ones_like(r)
    factors = torch.stack([one, zero, r, (1 - r * r).sqrt()], -1).reshape((-1, 2, 2))
    density = D.LKJCholesky(2, T(1.5)).log_prob(factors).exp()
    assert float(density.mean()) * 2 == pytest.approx(1, abs=1e-4)


def test_tails_keep_their_digits():
    agree(D.Normal(T(0.0), T(1.0)).cdf(T(-20.0)), stats.norm.cdf(-20))
    agree(D.Normal(T(0.0), T(1.0)).icdf(T(1e-30)), stats.norm.ppf(1e-30))
    agree(D.Exponential(T(1.0)).cdf(T(1e-20)), 1e-20)


def test_exponential_families_have_the_entropy_of_bregman():
    for text in ("Normal(T([0.5, 1.0]), T([2.0, 3.0]))", "Gamma(T([0.3, 7.0]), T([0.5, 3.0]))",
                 "Exponential(T([0.5, 2.0]))", "Bernoulli(T([0.1, 0.7]))",
                 "Wishart(T(4.0), T([[2.0, 0.5], [0.5, 1.0]]))"):
        d = built(text)
        assert torch.allclose(D.ExponentialFamily.entropy(d), d.entropy())
    rate = T(2.0).requires_grad_()
    D.ExponentialFamily.entropy(D.Exponential(rate)).backward()
    assert float(rate.grad) == pytest.approx(-0.5)
    with pytest.raises(NotImplementedError, match="_mean_carrier_measure is not defined"):
        D.Poisson(T(1.0)).entropy()


# --- draws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", CASES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_recorded_draws(text, dtype):
    expected, after = DATA[text][dtype]
    d = built(text, dtype)
    torch.manual_seed(3)
    got = d.sample((2,))
    assert tuple(got.shape) == (2, *d.batch_shape, *d.event_shape)
    np.testing.assert_allclose(np.asarray(got), np.array(expected).reshape(got.shape),
                               rtol=1e-13 if got.dtype is torch.float64 else 3e-6,
                               atol=1e-30 if got.dtype is torch.float64 else 5e-7)
    assert torch.rand(()).item() == after, "another count of draws"
    assert not got.requires_grad
    if got.numel():
        assert torch.isfinite(d.log_prob(got)).all()


@pytest.mark.parametrize("text", [
    "VonMises(T(0.5), T(2.0))", "LKJCholesky(3, T(1.5))", "Dirichlet(T([0.5, 2.0, 5.0]))",
    "NegativeBinomial(T(3.0), T(0.4))", "Multinomial(5, T([0.1, 0.5, 0.4]))",
    "MixtureSameFamily(Categorical(T([0.3, 0.7])), Normal(T([0.0, 3.0]), T([1.0, 0.5])))",
    "Wishart(T(4.0), T([[2.0, 0.5], [0.5, 1.0]]))", "Weibull(T(2.0), T(1.5))"])
def test_draws_have_the_moments(text):
    d = built(text)
    torch.manual_seed(1)
    x = d.sample((4000,))
    if isinstance(d, D.LKJCholesky):
        products = (x @ x.mT)[:, 0, 1]  # a correlation: mean 0, variance 1 / (2c + n - 1)
        assert abs(float(products.mean())) < 0.04
        assert float(products.var()) == pytest.approx(1 / 5, rel=0.1)
    elif isinstance(d, D.VonMises):
        assert float(1 - (x - 0.5).cos().mean()) == pytest.approx(float(d.variance), rel=0.1)
    else:
        error = (d.variance / 4000).sqrt()
        assert ((x.mean(0) - d.mean).abs() < 5 * error).all()
        assert torch.allclose(x.var(0), d.variance, rtol=0.2)


def test_a_mixture_with_one_set_of_weights():
    """A mixture without a batch of its own still draws for each element."""
    d = D.MixtureSameFamily(D.Categorical(T([0.5, 0.5])), D.Normal(T([[0.0, 100.0]] * 50), T(1.0)))
    torch.manual_seed(0)
    upper = d.sample() > 50
    assert 10 < int(upper.sum()) < 40
    assert d.mean.shape == d.variance.shape == d.log_prob(torch.zeros(50)).shape == (50,)


# --- gradients of samples -------------------------------------------------------------------------


def moved(theirs, parameters, x, k, step=1e-5):
    """dx / d parameter k of a sample of a SciPy distribution: -(dF / d parameter) / density."""
    sides = []
    for sign in (1, -1):
        shifted = list(parameters)
        shifted[k] += sign * step
        # the smaller of F and 1 - F has more digits
        sides.append(np.where(theirs.cdf(x, *parameters) < 0.5, theirs.cdf(x, *shifted),
                              -theirs.sf(x, *shifted)))
    return -(sides[0] - sides[1]) / (2 * step) / theirs.pdf(x, *parameters)


@pytest.mark.parametrize(("kind", "theirs", "parameters", "count"), [
    (D.Gamma, lambda c, r: stats.gamma(c, scale=1 / r), (0.7, 2.0), 2),
    (D.Gamma, lambda c, r: stats.gamma(c, scale=1 / r), (30.0, 0.5), 2),
    (D.Beta, stats.beta, (0.7, 2.0), 2),
    (D.Beta, stats.beta, (20.0, 3.0), 2),
    (D.Chi2, stats.chi2, (3.0,), 1),
    (D.Exponential, lambda r: stats.expon(scale=1 / r), (2.0,), 1),
    (D.Normal, stats.norm, (0.5, 2.0), 2),
    (D.Laplace, stats.laplace, (0.5, 2.0), 2),
    (D.Cauchy, stats.cauchy, (0.5, 2.0), 2),
    (D.Gumbel, stats.gumbel_r, (0.5, 2.0), 2),
    (D.Uniform, lambda a, b: stats.uniform(a, b - a), (0.5, 2.0), 2),
    (D.Weibull, lambda s, c: stats.weibull_min(c, scale=s), (2.0, 1.5), 2),
    (D.Pareto, lambda s, a: stats.pareto(a, scale=s), (2.0, 1.5), 2),
    (D.InverseGamma, lambda c, r: stats.invgamma(c, scale=r), (2.0, 1.5), 2),
    (D.HalfNormal, lambda s: stats.halfnorm(scale=s), (2.0,), 1),
    (D.LogNormal, lambda m, s: stats.lognorm(s, scale=np.exp(m)), (0.5, 0.7), 2),
    (D.GeneralizedPareto, lambda m, s, c: stats.genpareto(c, m, s), (0.5, 2.0, 0.3), 3),
])
def test_samples_move_with_their_parameters(kind, theirs, parameters, count):
    """Implicit derivatives, which do not depend on how a number was drawn."""

    class Frozen:
        cdf = staticmethod(lambda x, *p: theirs(*p).cdf(x))
        sf = staticmethod(lambda x, *p: theirs(*p).sf(x))
        pdf = staticmethod(lambda x, *p: theirs(*p).pdf(x))

    leaves = [T([p] * 20).requires_grad_() for p in parameters]
    torch.manual_seed(0)
    x = kind(*leaves).rsample()
    slopes = torch.autograd.grad(x.sum(), leaves)
    for k in range(count):
        expected = moved(Frozen, parameters, np.asarray(x.detach()), k)
        np.testing.assert_allclose(np.asarray(slopes[k]), expected, rtol=2e-4, atol=1e-7)


@pytest.mark.parametrize("text", ["StudentT(T(5.0))", "FisherSnedecor(T(8.0), T(9.0))",
                                  "Dirichlet(T([1.5, 2.0, 5.0]))",
                                  "Wishart(T(4.0), T([[2.0, 0.5], [0.5, 1.0]]))",
                                  "RelaxedBernoulli(T(1.5), T(0.3))",
                                  "ContinuousBernoulli(T(0.3))", "Kumaraswamy(T(2.0), T(3.0))"])
def test_gradients_of_expectations(text):
    """The mean slope of samples of g(x) is the slope of E g(x), here of the second moment."""
    leaves = []

    def leaf(v):
        leaves.append(T(v).requires_grad_())
        return leaves[-1]

    d = built(text, tensor=leaf)
    torch.manual_seed(0)
    n = 20000
    each = d.rsample((n,)).pow(2)
    (got,) = torch.autograd.grad(each.sum() / n, leaves[:1], retain_graph=True)
    # the score function gives the same expectation, with more noise
    terms = each.detach().reshape((n, -1)).sum(-1)
    terms = terms - terms.mean()
    x = d.sample((n,))
    values = x.pow(2).reshape((n, -1)).sum(-1)
    scores = vmap(grad(lambda p, x: built(text, tensor=_feed(leaves, p)).log_prob(x)),
                  in_dims=(None, 0))(leaves[0].detach(), x)
    products = (values - values.mean()).reshape((n,) + (1,) * (scores.ndim - 1)) * scores
    expected, error = products.mean(0), products.std(0) / math.sqrt(n)
    assert ((got - expected).abs() < 5 * error + 1e-9).all()


def _feed(leaves, first):
    """Give an expression its tensors again, the first one replaced."""
    rest = iter([first, *(p.detach() for p in leaves[1:])])
    return lambda v: next(rest)


def test_straight_through():
    probs = T([0.2, 0.3, 0.5]).requires_grad_()
    x = D.OneHotCategoricalStraightThrough(probs).rsample()
    assert sorted(x.tolist()) == [0.0, 0.0, 1.0]
    (x * T([1.0, 2.0, 3.0])).sum().backward()
    assert torch.allclose(probs.grad, T([1.0, 2.0, 3.0]) - 2.3)


# --- transforms of programs -----------------------------------------------------------------------


@pytest.mark.parametrize("text", CASES)
def test_under_transforms(text):
    """vmap over values and over parameters; grad and jvp agree with each other."""
    torch.manual_seed(0)
    d = built(text)
    x = d.sample((3,))
    once = d.log_prob(x)
    assert torch.allclose(vmap(d.log_prob)(x), once, equal_nan=True)
    parameters = []
    built(text, tensor=lambda v: parameters.append(T(v)) or parameters[-1])
    if not parameters or not x.numel():
        return

    def total(*values):
        rest = iter(values)
        return built(text, tensor=lambda v: next(rest)).log_prob(x).sum()

    many = [torch.stack([p, p]) for p in parameters]
    assert torch.allclose(vmap(total)(*many), once.sum().expand(2))
    argnums = tuple(range(len(parameters)))
    slopes = grad(total, argnums)(*parameters)
    for a, b in zip(vmap(grad(total, argnums))(*many), slopes):
        assert torch.allclose(a[1], b, equal_nan=True)
    tangents = [torch.linspace(0.5, 1, p.numel(), dtype=p.dtype).reshape(p.shape)
                for p in parameters]
    pushed = jvp(total, tuple(parameters), tuple(tangents))[1]
    pulled = sum((a * b).sum() for a, b in zip(slopes, tangents))
    assert torch.allclose(pushed, pulled, equal_nan=True)


def test_checks_under_vmap_look_at_every_example():
    with pytest.raises(ValueError, match="parameter scale"):
        vmap(lambda s: D.Normal(0.0, s).log_prob(torch.zeros(())))(torch.tensor([1.0, -1.0]))
    with pytest.raises(ValueError, match="not in the support"):
        vmap(D.Exponential(T(1.0)).log_prob)(T([1.0, -1.0]))


def test_draws_under_vmap():
    d = D.Gamma(T([1.0, 2.0]), T(1.0))
    same = vmap(lambda _: d.sample(), randomness="same")(torch.zeros(3))
    other = vmap(lambda _: d.sample(), randomness="different")(torch.zeros(3))
    assert (same[0] == same[1]).all() and (other[0] != other[1]).all()


@pytest.mark.parametrize("text", [
    "Normal(loc, scale)", "Laplace(loc, scale)", "Independent(Normal(loc, scale), 1)",
    "LogNormal(loc, scale)", "Gamma(scale, scale + 1)", "Categorical(logits=loc)",
    "MultivariateNormal(loc, scale_tril=scale.diag_embed())"])
def test_compiled(text):
    def density(loc, scale, x):
        d = eval(text, {**vars(D), "loc": loc, "scale": scale})
        return d.log_prob(x).sum() + d.entropy().sum()

    loc, scale = T([0.5, -1.0]).requires_grad_(), T([1.5, 0.7]).requires_grad_()
    x = T([1.0, 0.0]) if "Categorical" in text else T([0.3, 0.9])
    values = []
    for function in (density, torch.compile(density)):
        out = function(loc, scale, x)
        values.append((out, *torch.autograd.grad(out, (loc, scale), allow_unused=True)))
    for a, b in zip(*values):
        assert (a is None and b is None) or torch.allclose(a, b)


def test_compiled_samples():
    def sample(loc, scale):
        return D.Normal(loc, scale).rsample((3,))

    loc, scale = T([0.5, -1.0]).requires_grad_(), T([1.5, 0.7]).requires_grad_()
    compiled, values = torch.compile(sample), []
    for function in (sample, compiled):
        torch.manual_seed(0)
        out = [function(loc, scale), function(loc, scale)]
        assert not torch.allclose(*out)
        values.append((*out, *torch.autograd.grad(out[1].sum(), (loc, scale))))
    for a, b in zip(*values):
        assert torch.allclose(a, b)


# --- mechanics ------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", CASES)
def test_expanded_and_copied(text):
    d = built(text)
    wide = d.expand((2, *d.batch_shape))
    assert type(wide) is type(d) and wide.batch_shape == (2, *d.batch_shape)
    assert wide.event_shape == d.event_shape
    x = d.sample((2,))
    assert torch.allclose(wide.log_prob(x), d.log_prob(x), equal_nan=True)
    assert wide.sample().shape == x.shape
    for again in (copy.deepcopy(d), pickle.loads(pickle.dumps(d))):
        assert repr(again) == repr(d)
        assert torch.equal(again.log_prob(x), d.log_prob(x))


def test_repr():
    assert repr(D.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"
    assert repr(D.Normal(torch.zeros(2), 1.0)) == (
        "Normal(loc: torch.Size([2]), scale: torch.Size([2]))")
    assert repr(D.Independent(D.Normal(torch.zeros(2), 1.0), 1)).endswith("1)")


def test_validation():
    with pytest.raises(ValueError, match=r"Normal \(test_distributions.py:\d+\): parameter scale"):
        D.Normal(0.0, -1.0)
    D.Normal(0.0, -1.0, validate_args=False)
    with pytest.raises(ValueError, match="not in the support"):
        D.Exponential(1.0).log_prob(T(-1.0))
    assert D.Exponential(1.0, validate_args=False).log_prob(T(-1.0)) == 1
    with pytest.raises(ValueError, match="must be a tensor"):
        D.Normal(0.0, 1.0).log_prob(1.0)
    with pytest.raises(ValueError, match="cannot be broadcast"):
        D.Normal(torch.zeros(3), 1.0).log_prob(torch.zeros(2))
    with pytest.raises(ValueError, match="not the event shape"):
        D.Dirichlet(torch.ones(3)).log_prob(torch.ones(2) / 2)
    with pytest.raises(ValueError, match="exactly one of probs and logits"):
        D.Bernoulli()
    with pytest.raises(ValueError, match="exactly one of covariance_matrix"):
        D.MultivariateNormal(torch.zeros(2))
    with pytest.raises(ValueError, match="True or False"):
        D.Distribution.set_default_validate_args(3)
    before = D.Distribution._validate_args
    try:
        D.Distribution.set_default_validate_args(False)
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(before)
    with pytest.raises(NotImplementedError, match="cdf is not defined"):
        D.Beta(1.0, 1.0).cdf(T(0.5))


def test_a_family_of_ones_own():
    class Triangle(D.Distribution):
        arg_constraints = {"width": D.constraints.positive}
        support = D.constraints.real
        has_rsample = True

        def __init__(self, width, validate_args=None):
            (self.width,) = D.utils.broadcast_all(width)
            super().__init__(self.width.shape, validate_args=validate_args)

        def rsample(self, sample_shape=()):
            u = torch.rand((2, *self._extended_shape(sample_shape)))
            return self.width * (u[0] - u[1])

    assert Triangle(2.0).sample((3,)).shape == (3,)
    with pytest.raises(ValueError, match="parameter width"):
        Triangle(-1.0)
    with pytest.raises(NotImplementedError, match="needs its own expand"):
        Triangle(1.0).expand((2,))

    class Shifted(D.Normal):
        def __init__(self, loc, validate_args=None):
            super().__init__(loc, 1.0, validate_args=validate_args)

        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Shifted, _instance)
            return super().expand(batch_shape, _instance=new)

    wide = Shifted(2.0).expand((3,))
    assert type(wide) is Shifted and wide.loc.tolist() == [2.0] * 3

    class Plain(D.Normal):
        pass

    assert type(Plain(0.0, 1.0).expand((2,))) is Plain

    class Bare(D.Distribution):
        pass

    with pytest.warns(UserWarning, match="no arg_constraints"):
        Bare()


def test_lazy_properties_are_recorded_without_grad_too():
    probs = T([0.2, 0.8]).requires_grad_()
    d = D.Bernoulli(probs)
    with torch.no_grad():
        d.logits
    assert d.logits.requires_grad and "logits" in d.__dict__
    assert isinstance(D.Bernoulli.logits, property)


def test_module_paths():
    for path, name in (("normal", "Normal"), ("studentT", "StudentT"), ("exp_family",
                       "ExponentialFamily"), ("distribution", "Distribution"),
                       ("multivariate_normal", "_batch_mahalanobis"),
                       ("relaxed_categorical", "ExpRelaxedCategorical"),
                       ("transformed_distribution", "TransformedDistribution")):
        module = importlib.import_module(f"pullback.distributions.{path}")
        assert getattr(D, path) is module
        assert getattr(module, name).__name__ == name
    with pytest.raises(AttributeError):
        D.normal.nothing
    assert set(D.__all__) >= {"Normal", "Wishart", "ExpTransform", "kl_divergence", "biject_to"}


def test_empty_batches():
    d = D.Categorical(torch.ones(0, 3))
    assert d.sample((2,)).shape == (2, 0) and d.entropy().shape == (0,)
    d = D.Independent(D.Normal(torch.zeros(0, 3), 1.0), 1)
    assert d.log_prob(d.rsample((2,))).shape == (2, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        d = D.MultivariateNormal(torch.zeros(0, 2), torch.eye(2))
        assert d.log_prob(d.sample((3,))).shape == (3, 0)


def test_symbolic_sizes():
    """Parameters of several shapes are broadcast without asking what sizes are."""
    f = lambda x: D.Normal(x, x.exp().sum(0)).log_prob(x * 2)
    module = make_fx(f, None, "symbolic")(T([[0.1, 0.2], [0.3, 0.4]]))
    x = T([[0.5, -0.3], [0.1, 0.7], [0.2, 0.4]])
    assert torch.equal(module(x), f(x))


def test_rejection_is_not_captured_without_values():
    """How often it draws depends on what is drawn: no graph is better than one that never draws."""
    f = lambda x: D.VonMises(x, x).sample()
    x = T([0.3, 0.7])
    with pytest.raises(torch.errors.DataDependentError, match="draws are accepted"):
        make_fx(f, None, "fake")(x)
    torch.manual_seed(4)
    wanted = f(x)
    torch.manual_seed(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.equal(torch.compile(f, backend="numpy")(x), wanted)
