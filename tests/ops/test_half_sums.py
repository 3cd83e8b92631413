"""Half precision accumulates in single precision, forward and in gradients."""

import numpy as np
import pytest

import pullback as torch
from pullback.autograd import grad
from pullback.func import jvp
from pullback.nn import functional as F

RANDOM = np.random.default_rng(0)
HALVES = [torch.float16, torch.bfloat16]
MANY = 4096  # beyond this a sum of ones stands still at 2048 in float16, at 256 in bfloat16


def ones(*shape):
    return np.ones(shape)


def numbers(t):
    return t.detach().numpy()


LONG = {  # function, float64 arrays
    "sum": (torch.sum, [ones(MANY)]),
    "sum along a dim": (lambda x: x.sum(0), [ones(MANY, 2)]),
    "nansum": (torch.nansum, [ones(MANY)]),
    "mean": (torch.mean, [60 * ones(MANY)]),
    "cumsum": (lambda x: x.cumsum(0), [ones(MANY)]),
    "logcumsumexp": (lambda x: x.logcumsumexp(0), [0 * ones(MANY)]),
    "logsumexp": (lambda x: x.logsumexp(0), [0 * ones(MANY)]),
    "softmax": (lambda x: x.softmax(0), [RANDOM.standard_normal(MANY)]),
    "log_softmax": (lambda x: x.log_softmax(0), [RANDOM.standard_normal(MANY)]),
    "layer_norm": (lambda x: F.layer_norm(x, (MANY,)), [RANDOM.standard_normal((1, MANY)) + 10]),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True),
                   [RANDOM.standard_normal((MANY, 1)) + 10]),
    "matmul": (torch.matmul, [ones(1, MANY), ones(MANY, 1)]),
    "bmm": (torch.bmm, [ones(1, 1, MANY), ones(1, MANY, 1)]),
    "dot": (torch.dot, [ones(MANY), ones(MANY)]),
    "addmm": (lambda a, b: torch.addmm(a[:, :1], a, b), [ones(1, MANY), ones(MANY, 1)]),
    "linear": (F.linear, [ones(1, MANY), ones(1, MANY)]),
    "conv1d": (F.conv1d, [ones(1, MANY // 2, 2), ones(1, MANY // 2, 2)]),
    "norm": (torch.linalg.vector_norm, [40 * ones(MANY)]),
    "var": (torch.var, [100 * RANDOM.standard_normal(MANY)]),
    "prod": (torch.prod, [np.array([256.0, 512, 1 / 256, 1 / 512])]),
    "cumprod": (lambda x: x.cumprod(0)[2:], [2.0 ** np.array([-12, -13, 13, 12])]),
    "trace": (torch.trace, [np.eye(MANY // 2 + 1)[:, :]]),
    "attention": (F.scaled_dot_product_attention,
                  [RANDOM.standard_normal((1, 64, 32)) for _ in range(3)]),
    "index_add": (lambda x: torch.zeros(1, dtype=x.dtype).index_add(
        0, torch.zeros(MANY, dtype=torch.int64), x), [ones(MANY)]),
    "scatter_add": (lambda x: torch.zeros(1, dtype=x.dtype).scatter_add(
        0, torch.zeros(MANY, dtype=torch.int64), x), [ones(MANY)]),
}


def worst(found, exact):
    """The largest error, in units of the spacing of numbers at the largest result."""
    exact = np.asarray(exact, dtype=float)
    return np.abs(np.asarray(found, dtype=float) - exact).max() / max(np.abs(exact).max(), 1e-30)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", LONG)
def test_half_precision_accumulates_in_single(name, dtype):
    f, arrays = LONG[name]
    epsilon = torch.finfo(dtype).eps
    halves = [torch.from_numpy(a).to(dtype).requires_grad_() for a in arrays]
    exact = [h.detach().double().requires_grad_() for h in halves]
    out, truth = f(*halves), f(*exact)
    assert out.dtype is dtype
    assert worst(numbers(out.double()), numbers(truth)) <= epsilon
    seed = torch.from_numpy(RANDOM.standard_normal(truth.shape)).to(dtype)
    found = grad(out, halves, seed)
    wanted = grad(truth, exact, seed.double())
    for g, w in zip(found, wanted):
        assert g.dtype is dtype and worst(numbers(g.double()), numbers(w)) <= 4 * epsilon


COLLECTED = {  # functions of one number that is used MANY times
    "expand": lambda x: x.expand(MANY),
    "repeat": lambda x: x.repeat(MANY),
    "index": lambda x: x[torch.zeros(MANY, dtype=torch.int64)],
    "gather": lambda x: x.gather(0, torch.zeros(MANY, dtype=torch.int64)),
    "index_select": lambda x: x.index_select(0, torch.zeros(MANY, dtype=torch.int64)),
    "embedding": lambda x: F.embedding(torch.zeros(MANY, dtype=torch.int64), x[:, None]),
    "broadcast": lambda x: x * torch.ones(MANY, dtype=x.dtype),
    "interpolate": lambda x: F.interpolate(x[None, None], size=MANY),
    "pad": lambda x: F.pad(x[None, None], (MANY, 0), mode="replicate"),
    "bias": lambda x: F.linear(x.new_zeros(MANY, 1), x.new_zeros(1, 1), x),
}


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", COLLECTED)
def test_gradients_of_half_precision_are_collected_in_single(name, dtype):
    x = torch.ones(1, dtype=dtype, requires_grad=True)
    out = COLLECTED[name](x)
    (g,) = grad(out, x, torch.ones_like(out))
    assert g.item() == pytest.approx(out.numel(), rel=torch.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_tangents_of_half_precision_have_their_dtype(dtype):
    x = torch.ones(4, dtype=dtype)
    for f in (lambda x: x.logcumsumexp(0), lambda x: x.softmax(0), torch.sum, torch.trace):
        x = torch.ones(4, 4, dtype=dtype) if f is torch.trace else x
        assert jvp(f, (x,), (x,))[1].dtype is dtype
