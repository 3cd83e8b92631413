"""Derivatives of drawn numbers by their parameters, against mpmath; batching and refusals."""

import math

import mpmath as mp
import numpy as np
import pytest

import pullback as torch
from pullback.autograd import grad
from pullback.func import jvp, vmap
from pullback.table.packets import ops

GAMMA = [(1e-6, 0.3), (1e-3, 1e-200), (0.01, 0.7), (0.1, 1e-9), (0.5, 0.1), (0.9, 3.0), (1.0, 1.0),
         (1.5, 0.79), (1.5, 0.81), (3.0, 9.0), (8.0, 2.0), (30.0, 24.0), (100.0, 130.0)]
BETA = [(1e-3, 0.01, 1e-100), (0.01, 10.0, 1e-30), (0.3, 0.3, 0.5), (0.9, 100.0, 0.009),
        (1.0, 2.5, 0.3), (3.0, 0.01, 0.999999), (10.0, 1.0, 0.99), (100.0, 30.0, 0.75)]


def gamma_quantile_slope(a, x):
    """-(dF/da) / f by differences of high precision."""
    with mp.workdps(40):
        a, x = mp.mpf(a), mp.mpf(x)
        density = mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))
        lower = mp.diff(lambda s: mp.gammainc(s, 0, x, regularized=True), a, h=a * mp.mpf(10)**-12)
        return float(-lower / density)


def beta_quantile_slope(a, b, x):
    with mp.workdps(40):
        a, b, x = map(mp.mpf, (a, b, x))
        density = x ** (a - 1) * (1 - x) ** (b - 1) / mp.beta(a, b)
        lower = mp.diff(lambda s: mp.betainc(s, b, 0, x, regularized=True), a,
                        h=a * mp.mpf(10)**-12)
        return float(-lower / density / (1 - x))


@pytest.mark.parametrize("a, x", GAMMA)
def test_gamma_slope(a, x):
    expected = gamma_quantile_slope(a, x)
    got = torch._standard_gamma_grad(*torch.tensor([[a], [x]], dtype=torch.float64)).item()
    assert got == pytest.approx(expected, rel=1e-11)
    single = torch._standard_gamma_grad(torch.tensor([a]), torch.tensor([x])).item()
    if x > 1e-30:
        assert single == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("a, b, x", BETA)
def test_dirichlet_slope(a, b, x):
    expected = beta_quantile_slope(a, b, x)
    x, a, total = torch.tensor([[x], [a], [a + b]], dtype=torch.float64)
    assert torch._dirichlet_grad(x, a, total).item() == pytest.approx(expected, rel=1e-9)


def test_slope_at_the_ends():
    zero, one = torch.tensor([0.0]), torch.tensor([1.0])
    assert torch._standard_gamma_grad(one, zero).item() == 0
    assert torch._standard_gamma_grad(zero, one).isnan().item()
    assert torch._dirichlet_grad(zero, one, 2 * one).item() == 0


def test_gamma_numbers_keep_their_quantile():
    special = pytest.importorskip("scipy.special")
    shapes = np.array([0.3, 1.7, 9.0])
    torch.manual_seed(5)
    a = torch.tensor(shapes).requires_grad_()
    x = torch._standard_gamma(a)
    (first,) = grad(x.sum(), a, create_graph=True)
    (second,) = grad(first.sum(), a)
    quantile = special.gammainc(shapes, x.detach().numpy())
    step = 1e-4
    moved = [special.gammaincinv(shapes + k * step, quantile) for k in (-1, 0, 1)]
    assert np.allclose(first.detach().numpy(), (moved[2] - moved[0]) / 2 / step, rtol=1e-6)
    curvature = (moved[2] - 2 * moved[1] + moved[0]) / step**2
    assert np.allclose(second.numpy(), curvature, rtol=1e-3, atol=1e-5)


def test_beta_numbers_keep_their_quantile():
    """The first of two coordinates of a Dirichlet point, to second order in both parameters."""
    special = pytest.importorskip("scipy.special")
    torch.manual_seed(5)
    a, b = np.array([0.6, 1.7, 9.0]), np.array([2.0, 0.8, 3.0])
    leaves = [torch.tensor(v).requires_grad_() for v in (a, b)]
    x = torch._sample_dirichlet(torch.stack(leaves, -1))[:, 0]
    first = grad(x.sum(), leaves, create_graph=True)
    second = [grad(f.sum(), leaves, retain_graph=True) for f in first]
    quantile, step = special.betainc(a, b, x.detach().numpy()), 1e-4

    def moved(i, j):
        return special.betaincinv(a + i * step, b + j * step, quantile)

    ways = ((1, 0), (0, 1))
    for k, (i, j) in enumerate(ways):
        slope = (moved(i, j) - moved(-i, -j)) / (2 * step)
        assert np.allclose(first[k].detach().numpy(), slope, rtol=1e-6)
        for l, (m, n) in enumerate(ways):
            bend = (moved(i + m, j + n) - moved(i - m, j - n) - moved(m - i, n - j)
                    + moved(-i - m, -j - n)) / (4 * step**2)
            assert np.allclose(second[k][l].numpy(), bend, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("a, b, x", [(0.3, 4.0, 0.01), (2.5, 0.5, 0.9), (30.0, 4.0, 0.9),
                                     (30.0, 200.0, 0.2), (0.02, 0.5, 1e-6)])
def test_second_derivatives_of_the_beta_distribution(a, b, x):
    with mp.workdps(60):
        density = mp.mpf(x) ** (a - 1) * (1 - mp.mpf(x)) ** (b - 1) / mp.beta(a, b)
        for i, j in ((2, 0), (1, 1), (0, 2)):
            expected = mp.diff(lambda s, t: mp.betainc(s, t, 0, x, regularized=True),
                               (mp.mpf(a), mp.mpf(b)), (i, j)) / density
            got = ops._beta_ratio(*torch.tensor([[x], [a], [b]], dtype=torch.float64), i, j)
            assert got.item() == pytest.approx(float(expected), rel=1e-8)


def test_forward_mode_agrees():
    a = torch.tensor([0.5, 2.0, 3.0], dtype=torch.float64)
    weight = torch.tensor([1.0, 2.0, 5.0], dtype=torch.float64)
    for draw in (torch._standard_gamma, torch._sample_dirichlet):
        def seeded(x, draw=draw):
            torch.manual_seed(1)
            return draw(x)

        leaf = a.clone().requires_grad_()
        (pulled,) = grad((seeded(leaf) * weight).sum(), leaf)
        _, pushed = jvp(seeded, (a,), (torch.ones_like(a),))
        assert (pushed * weight).sum().item() == pytest.approx(pulled.sum().item(), rel=1e-12)


def test_each_example_draws_its_own():
    rates = torch.full((200,), 4.0)
    for draw in (torch.poisson, torch._standard_gamma):
        torch.manual_seed(0)
        batched = vmap(draw, randomness="different")(rates)
        torch.manual_seed(0)
        assert torch.equal(batched, draw(rates)) and len(set(batched.tolist())) > 5


def test_a_generator_of_its_own():
    gen = torch.Generator().manual_seed(7)
    first = torch.poisson(torch.full((9,), 12.0), generator=gen)
    torch.manual_seed(7)
    assert torch.equal(first, torch.poisson(torch.full((9,), 12.0)))


def test_counts_that_are_not_numbers():
    """PyTorch does not return from this call."""
    assert torch.binomial(torch.tensor([float("nan")]), torch.tensor([0.5])).isnan().item()


def test_infinite_counts_and_rates():
    """PyTorch's are infinite, NaN or a large negative number, by what is drawn."""
    endless = torch.tensor([math.inf])
    assert torch.binomial(endless.expand(3), torch.tensor([0.2, 0.7, 0.0])).tolist() == [
        math.inf, math.inf, 0.0]
    assert torch.poisson(endless).tolist() == [math.inf]
