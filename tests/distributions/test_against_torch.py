"""Every distribution against PyTorch: draws, densities, moments, gradients, shapes, refusals.

A case is an expression over the names of `distributions` and `T`, a tensor; both libraries evaluate
it.
"""

import warnings

import numpy as np
import pytest

import pullback

CASES = """
Normal(T(0.5), T(2.0))
Normal(T([0.0, 1.0, -3.0]), T([[0.5], [2.0]]))
Normal(0.0, 1.0)
Normal(0.0, T([1.0, 1e-3]))
Normal(T([]), T([]))
Laplace(T([0.5, -1.0]), T([2.0, 0.1]))
Cauchy(T([0.5, -1.0]), T([2.0, 0.1]))
StudentT(T([0.5, 1.5, 3.0, 30.0]))
StudentT(T(5.0), T([1.0, 2.0]), T([0.5, 3.0]))
Uniform(T([0.0, -3.0]), T([1.0, 2.0]))
Uniform(0, 1)
Gumbel(T([0.5, -1.0]), T([2.0, 0.1]))
VonMises(T([0.5, -1.0, 3.0]), T([0.1, 2.0, 50.0]))
VonMises(T(0.5), T(1e-7))
Exponential(T([0.5, 2.0]))
Gamma(T([0.3, 1.0, 7.0]), T([0.5, 2.0, 3.0]))
Gamma(T(2.0), T([[1.0], [5.0]]))
Chi2(T([0.5, 4.0]))
Chi2(3.0)
FisherSnedecor(T([1.0, 5.0, 12.0]), T([1.0, 3.0, 7.0]))
GeneralizedPareto(T([0.0, 1.0, 2.0]), T([1.0, 2.0, 0.5]), T([0.0, 0.6, -0.4]))
GeneralizedPareto(T(0.0), T(1.0), T([0.1, 1.5]))
HalfNormal(T([0.5, 2.0]))
HalfCauchy(T([0.5, 2.0]))
LogNormal(T([0.5, -1.0]), T([1.0, 0.1]))
LogisticNormal(T([0.5, -1.0, 0.0]), T([1.0, 0.1, 2.0]))
LogisticNormal(T([[0.5, -1.0], [0.3, 0.1]]), T([1.0, 0.1]))
InverseGamma(T([0.5, 1.5, 4.0]), T([1.0, 2.0, 3.0]))
Pareto(T([0.5, 2.0, 1.0]), T([0.5, 1.5, 3.0]))
Weibull(T([0.5, 2.0]), T([1.5, 3.0]))
Kumaraswamy(T([0.5, 2.0]), T([1.5, 3.0]))
Beta(T([0.5, 2.0, 5.0]), T([1.5, 3.0, 0.2]))
Beta(2.0, 3.0)
Dirichlet(T([0.5, 2.0, 5.0]))
Dirichlet(T([[0.5, 0.2], [1.0, 3.0]]))
ContinuousBernoulli(T([0.1, 0.5, 0.4995, 0.9]))
ContinuousBernoulli(logits=T([-1.0, 0.0, 2.0]))
Bernoulli(T([0.1, 0.5, 0.9, 0.0, 1.0]))
Bernoulli(logits=T([-1.0, 0.0, 2.0]))
Bernoulli(0.3)
Geometric(T([0.1, 0.5, 1.0]))
Geometric(logits=T([-1.0, 2.0]))
Binomial(5, T([0.1, 0.5, 0.9]))
Binomial(T([3.0, 40.0, 0.0]), T([0.1, 0.5, 0.9]))
Binomial(100, logits=T([-1.0, 2.0]))
NegativeBinomial(T([3.0, 40.0, 0.5]), T([0.1, 0.5, 0.9]))
NegativeBinomial(5, logits=T([-1.0, 0.5]))
Poisson(T([0.1, 5.0, 50.0]))
Poisson(T([0.0, 3.0]))
Categorical(T([0.1, 0.5, 0.4]))
Categorical(T([[1.0, 5.0, 4.0], [2.0, 0.0, 1.0]]))
Categorical(logits=T([[[-1.0, 2.0, 0.5, 0.0]], [[0.0, 0.0, 3.0, 1.0]]]))
OneHotCategorical(T([[1.0, 5.0, 4.0], [2.0, 0.0, 1.0]]))
OneHotCategorical(logits=T([-1.0, 2.0, 0.5]))
OneHotCategoricalStraightThrough(T([0.1, 0.5, 0.4]))
Multinomial(5, T([0.1, 0.5, 0.4]))
Multinomial(7, logits=T([[-1.0, 2.0, 0.5], [0.0, 0.0, 1.0]]))
RelaxedBernoulli(T(0.7), T([0.1, 0.5, 0.9]))
RelaxedBernoulli(T(2.0), logits=T([-1.0, 2.0]))
relaxed_bernoulli.LogitRelaxedBernoulli(T(0.7), T([0.1, 0.5, 0.9]))
RelaxedOneHotCategorical(T(0.7), T([0.1, 0.5, 0.4]))
RelaxedOneHotCategorical(T(0.7), logits=T([[-1.0, 2.0], [0.0, 1.0]]))
relaxed_categorical.ExpRelaxedCategorical(T(0.7), T([0.1, 0.5, 0.4]))
MultivariateNormal(T([1.0, 2.0]), T([[2.0, 0.5], [0.5, 1.0]]))
MultivariateNormal(T([[1.0, 2.0], [0.0, 0.0], [3.0, 1.0]]), scale_tril=T([[2.0, 0.0], [0.5, 1.0]]))
MultivariateNormal(T([1.0, 2.0]), precision_matrix=T([[[2.0, 0.5], [0.5, 1.0]], [[1.0, 0.0], [0.0, 9.0]]]))
LowRankMultivariateNormal(T([1.0, 2.0, 0.0]), T([[1.0], [0.5], [-1.0]]), T([0.5, 1.0, 2.0]))
LowRankMultivariateNormal(T([[1.0, 2.0], [0.0, 1.0]]), T([[1.0, 0.3], [0.5, 2.0]]), T([0.5, 1.0]))
Wishart(T(4.0), T([[2.0, 0.5], [0.5, 1.0]]))
Wishart(T([3.0, 5.0]), scale_tril=T([[2.0, 0.0], [0.5, 1.0]]))
Wishart(T(5.0), precision_matrix=T([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 3.0]]))
LKJCholesky(3, T(1.5))
LKJCholesky(4, T([0.5, 3.0]))
LKJCholesky(2)
Independent(Normal(T([0.0, 1.0, -3.0]), T([[0.5], [2.0]])), 1)
Independent(Bernoulli(T([[0.1, 0.5], [0.3, 0.8]])), 2)
Independent(Categorical(T([[0.1, 0.5], [0.3, 0.8]])), 0)
TransformedDistribution(Normal(T([0.0, 1.0]), T([1.0, 0.5])), [ExpTransform()])
TransformedDistribution(Normal(T([0.0, 1.0]), T([1.0, 0.5])), [AffineTransform(T(1.0), T(-2.0)), TanhTransform()])
TransformedDistribution(Normal(T([0.0, 1.0, 2.0]), T(1.0)), StickBreakingTransform())
TransformedDistribution(Normal(T(0.0), T(1.0)), AffineTransform(T([1.0, 2.0]), T([3.0, 4.0])))
TransformedDistribution(Independent(Normal(T([[0.0, 1.0], [2.0, 3.0]]), T(1.0)), 1), [ReshapeTransform((2,), (2, 1)), SigmoidTransform()])
TransformedDistribution(Uniform(T([0.0, 0.0]), T([1.0, 1.0])), [PowerTransform(T(2.0)), AffineTransform(T(0.5), T(3.0))])
TransformedDistribution(Normal(T([0.0]), T([1.0])), [])
MixtureSameFamily(Categorical(T([0.3, 0.7])), Normal(T([0.0, 3.0]), T([1.0, 0.5])))
MixtureSameFamily(Categorical(T([[0.3, 0.7], [0.1, 0.9]])), Independent(Normal(T([[[0.0, 1.0], [3.0, 1.0]], [[2.0, 2.0], [0.0, 0.0]]]), T(1.0)), 1))
MixtureSameFamily(Categorical(T([0.3, 0.7])), Poisson(T([1.0, 9.0])))
""".strip().splitlines()  # noqa: E501

PROPERTIES = ("mean", "mode", "variance", "stddev", "entropy", "perplexity")
SAMPLE_SHAPES = ((), (5,), (2, 3))


def names(lib, dtype):
    """What the expressions of the cases mean in one of the libraries."""
    found = {n: getattr(lib.distributions, n) for n in dir(lib.distributions) if n[:1] != "_"}
    found["T"] = lambda v: lib.tensor(v, dtype=getattr(lib, dtype))
    return found


def array(x):
    return x.detach().numpy()


def outcome(function):
    """The result, or the kind of refusal."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function()
    except Exception as error:  # compared below
        for kind in (NotImplementedError, ValueError, TypeError, IndexError, AssertionError,
                     AttributeError, RuntimeError):
            if isinstance(error, kind):
                return kind.__name__
        raise


def close(ours, theirs, what, rtol, atol=None):
    if isinstance(theirs, str) or isinstance(ours, str):
        assert ours == theirs, f"{what}: {ours!r}, PyTorch: {theirs!r}"
        return
    assert tuple(ours.shape) == tuple(theirs.shape), f"{what}: {ours.shape} {theirs.shape}"
    assert str(ours.dtype) == str(theirs.dtype), what
    if "float32" in str(ours.dtype):
        rtol = max(rtol, 3e-6)
    np.testing.assert_allclose(array(ours), array(theirs), rtol=rtol, atol=atol or rtol,
                               err_msg=what)


def made(lib, text, dtype):
    return eval(text, names(lib, dtype))


# Where PyTorch is wrong or less exact; each is in docs/differences.md.
EXCEPTIONS = {
    ("Kumaraswamy", "mode"),       # PyTorch: NaN throughout
    ("VonMises", "variance"),      # a polynomial approximation there
}


@pytest.mark.torch
@pytest.mark.parametrize(
    ("text", "dtype"),
    [(text, dtype) for text in CASES for dtype in ("float64", "float32")
     if (text.split("(")[0], dtype) != ("GeneralizedPareto", "float64")])  # refused by PyTorch
def test_like_torch(text, dtype):
    torch = pytest.importorskip("torch")
    ours, theirs = made(pullback, text, dtype), made(torch, text, dtype)
    rtol = 1e-10 if dtype == "float64" else 2e-5
    if any(name in text for name in ("VonMises", "ContinuousBernoulli", "Multinomial")):
        rtol = max(rtol, 3e-6) if dtype == "float64" else 2e-3
    kind = text.split("(")[0]
    assert repr(ours) == repr(theirs)
    for fact in ("batch_shape", "event_shape"):
        assert tuple(getattr(ours, fact)) == tuple(getattr(theirs, fact))
    for fact in ("has_rsample", "has_enumerate_support"):
        assert getattr(ours, fact) == getattr(theirs, fact), fact
    assert repr(ours.support) == repr(theirs.support)
    assert str(ours.arg_constraints) == str(theirs.arg_constraints)
    for name in PROPERTIES:
        if (kind, name) in EXCEPTIONS:
            continue
        got = [outcome(lambda d=d: getattr(d, name)) for d in (ours, theirs)]
        if callable(got[1]):
            got = [outcome(f) for f in got]
        close(*got, name, rtol)
    for shape in SAMPLE_SHAPES:
        pullback.manual_seed(3)
        torch.manual_seed(3)
        x, y = outcome(lambda: ours.sample(shape)), outcome(lambda: theirs.sample(shape))
        close(x, y, f"sample {shape}", 1e-14 if dtype == "float64" else 3e-6)
        if isinstance(y, str):
            continue
        value = pullback.tensor(array(y))
        for name in ("log_prob", "cdf"):
            close(outcome(lambda: getattr(ours, name)(value)),
                  outcome(lambda: getattr(theirs, name)(y)), name, rtol,
                  atol=1e-6 if dtype == "float32" else None)
        pullback.manual_seed(3)
        torch.manual_seed(3)
        close(outcome(lambda: ours.rsample(shape)), outcome(lambda: theirs.rsample(shape)),
              "rsample", 1e-14 if dtype == "float64" else 3e-6)
        with pullback.random.fork_rng(), torch.random.fork_rng():  # as many draws as PyTorch
            assert pullback.rand(()).item() == torch.rand(()).item()
    u = np.linspace(0.05, 0.95, 4).reshape((4,) + (1,) * len(ours.batch_shape)).astype(dtype)
    close(outcome(lambda: ours.icdf(pullback.tensor(u))),
          outcome(lambda: theirs.icdf(torch.tensor(u))), "icdf", rtol)
    for expand in (True, False):
        close(outcome(lambda: ours.enumerate_support(expand)),
              outcome(lambda: theirs.enumerate_support(expand)), "enumerate_support", rtol)
    # a larger batch
    shape = (3, 2, *ours.batch_shape)
    a, b = outcome(lambda: ours.expand(shape)), outcome(lambda: theirs.expand(shape))
    assert isinstance(a, str) == isinstance(b, str)
    assert tuple(a.batch_shape) == tuple(b.batch_shape)
    pullback.manual_seed(5)
    torch.manual_seed(5)
    x, y = outcome(a.sample), outcome(b.sample)
    close(x, y, "sample of the expanded", 1e-14 if dtype == "float64" else 3e-6)
    if not isinstance(y, str):
        close(a.log_prob(pullback.tensor(array(y))), b.log_prob(y), "expanded log_prob", rtol,
              atol=1e-6 if dtype == "float32" else None)
    assert repr(a.expand(shape)) == repr(b.expand(shape))


IMPLICIT = ("Gamma", "Beta", "Dirichlet", "StudentT", "Chi2", "FisherSnedecor", "Wishart")


def leaves(lib, text, dtype="float64"):
    """A distribution whose parameters require grad, and these."""
    found, made = names(lib, dtype), []

    def leaf(value):
        made.append(lib.tensor(value, dtype=getattr(lib, dtype), requires_grad=True))
        return made[-1]

    found["T"] = leaf
    return eval(text, found), made


@pytest.mark.torch
@pytest.mark.parametrize("text", CASES)
def test_gradients_like_torch(text):
    torch = pytest.importorskip("torch")
    for what in ("rsample", "log_prob", "entropy", "mean", "variance"):
        results, value = [], None
        for lib in (torch, pullback):
            def run(lib=lib):
                d, parameters = leaves(lib, text)
                lib.manual_seed(11)
                if what == "log_prob":
                    nonlocal value
                    value = array(d.sample((3,))) if value is None else value
                    out = d.log_prob(lib.tensor(value))
                else:
                    out = getattr(d, what)
                    out = out((3,)) if what == "rsample" else out() if callable(out) else out
                weights = lib.arange(out.numel(), dtype=lib.float64).reshape(out.shape) + 1
                total = (out * weights).sum()
                if not total.requires_grad:
                    return None
                return lib.autograd.grad(total, parameters, allow_unused=True)

            results.append(outcome(run))
        theirs, ours = results
        if theirs is None or isinstance(theirs, str):
            continue  # exponential families: PyTorch's entropy has no history, ours may
        assert not isinstance(ours, str), (what, ours)
        rtol = 2e-4 if "VonMises" in text or "ContinuousBernoulli" in text else 1e-6
        if what == "rsample" and any(n in text for n in IMPLICIT):
            rtol = 4e-3  # what PyTorch's approximations of implicit derivatives are good for
        for a, b in zip(ours, theirs):
            assert (a is None) == (b is None), (what, a, b)
            if b is not None:
                np.testing.assert_allclose(array(a), array(b), rtol=rtol, atol=1e-9, err_msg=what)
