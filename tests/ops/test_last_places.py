"""How far float32 functions are off in eager mode, and that size and layout do not matter."""

import numpy as np
import pytest
from scipy import special

import pullback as torch

# the range, the truth in double precision, the bound in units in the last place
FUNCTIONS = {
    "exp": (-87, 88, np.exp, 3),
    "exp2": (-20, 20, np.exp2, 1.5),
    "expm1": (-10, 80, np.expm1, 3),
    "log": (1e-3, 1e3, np.log, 4),
    "log1p": (-0.99, 1e3, np.log1p, 2),
    "sin": (-300, 300, np.sin, 2),
    "cos": (-300, 300, np.cos, 2),
    "tanh": (-12, 12, np.tanh, 2),
    "sigmoid": (-80, 80, special.expit, 4),
    "erf": (-5, 5, special.erf, 0.51),
    "erfinv": (-0.999, 0.999, special.erfinv, 0.51),
    "lgamma": (0.01, 1e3, special.gammaln, 0.51),
}


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_errors_are_within_their_bounds(name):
    low, high, truth, bound = FUNCTIONS[name]
    x = np.random.default_rng(0).uniform(low, high, 20_000).astype(np.float32)
    want = truth(x.astype(np.float64))
    got = getattr(torch, name)(torch.from_numpy(x)).numpy()
    assert got.dtype == np.float32
    error = np.abs(got - want) / np.spacing(np.abs(want).astype(np.float32))
    assert error.max() < bound


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_size_and_layout_do_not_matter(name):
    low, high, _, _ = FUNCTIONS[name]
    f = getattr(torch, name)
    x = torch.from_numpy(np.random.default_rng(1).uniform(low, high, (37, 41)).astype(np.float32))
    whole = f(x)
    assert torch.equal(f(x.t()).t(), whole)
    assert torch.equal(f(x[:, ::3]), whole[:, ::3])
    assert torch.equal(f(x[5, 1:4]), whole[5, 1:4])
    assert torch.equal(f(x[7, 7]), whole[7, 7])
    assert torch.equal(f(x.flip(0)), whole.flip(0))
