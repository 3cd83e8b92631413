"""`pullback.masked` against NumPy on the selected elements, and its gradients at the others."""

import math

import numpy as np
import pytest

import pullback as torch
from pullback import masked
from pullback.autograd import grad, gradcheck

random = np.random.default_rng(5)
VALUES = random.normal(size=(4, 5))
KEEP = random.random(size=(4, 5)) < 0.6
KEEP[:, 0] = True  # no row is empty


def selected(function, values=VALUES, keep=KEEP):
    """The function of the kept elements of each row."""
    return np.array([function(row[mask]) for row, mask in zip(values, keep)])


def close(got, expected):
    np.testing.assert_allclose(got.detach().numpy(), expected, rtol=1e-12, atol=1e-12)


REDUCTIONS = {
    "sum": np.sum,
    "prod": np.prod,
    "amax": np.max,
    "amin": np.min,
    "mean": np.mean,
    "var": lambda v: np.var(v, ddof=1) if len(v) > 1 else math.nan,
    "std": lambda v: np.std(v, ddof=1) if len(v) > 1 else math.nan,
    "norm": np.linalg.norm,
    "logsumexp": lambda v: np.log(np.exp(v).sum()),
    "median": lambda v: np.sort(v)[(len(v) - 1) // 2],
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    function = getattr(masked, name)
    mask = torch.tensor(KEEP)
    close(function(torch.tensor(VALUES), dim=1, mask=mask), selected(REDUCTIONS[name]))
    close(function(torch.tensor(VALUES), dim=1), selected(REDUCTIONS[name], keep=VALUES == VALUES))
    assert function(torch.tensor(VALUES), dim=1, keepdim=True, mask=mask).shape == (4, 1)


@pytest.mark.parametrize("name", ["sum", "mean", "norm", "logsumexp"])
def test_all_dims(name):
    for dim in (None, (), (0, 1), (-1, 0)):
        got = getattr(masked, name)(torch.tensor(VALUES), dim=dim, mask=torch.tensor(KEEP))
        close(got, REDUCTIONS[name](VALUES[KEEP]))


def test_places():
    mask = torch.tensor([[True, False, True], [False, True, False]])
    x = torch.tensor([[1.0, 9.0, 2.0], [-9.0, 3.0, 9.0]])
    assert masked.argmax(x, 1, mask=mask).tolist() == [2, 1]
    assert masked.argmin(x, 1, mask=mask).tolist() == [0, 1]
    assert masked.argmax(x, 1, mask=mask).dtype is torch.float32  # as in PyTorch: the input's
    assert masked.argmax(x, 1, dtype=torch.int64, mask=mask).dtype is torch.int64


def test_running():
    x, mask = torch.tensor([2, 3, 4], dtype=torch.int32), torch.tensor([True, False, True])
    assert masked.cumsum(x, 0, mask=mask).tolist() == [2, 2, 6]
    assert masked.cumprod(x, 0, mask=mask).tolist() == [2, 2, 8]
    assert masked.cumsum(x, 0, mask=mask).dtype is torch.int32
    assert masked.sum(x).dtype is masked.prod(x).dtype is torch.int64


def test_normalisations():
    x, mask = torch.tensor(VALUES), torch.tensor(KEEP)
    weights = np.where(KEEP, np.exp(VALUES), 0)
    weights /= weights.sum(1, keepdims=True)
    close(masked.softmax(x, 1, mask=mask), weights)
    close(masked.softmin(-x, 1, mask=mask), weights)
    with np.errstate(divide="ignore"):
        close(masked.log_softmax(x, 1, mask=mask), np.log(weights))
    kept = np.where(KEEP, VALUES, 0)
    close(masked.normalize(x, 2, 1, mask=mask), kept / np.linalg.norm(kept, axis=1)[:, None])


def test_logaddexp():
    x, y = torch.tensor([-1.0, -2.0, -3.0]), torch.tensor([-4.0, -5.0, -6.0])
    mask, other = torch.tensor([True, True, False]), torch.tensor([True, False, False])
    got = masked.logaddexp(x, y, input_mask=mask, other_mask=other).tolist()
    assert got[0] == pytest.approx(np.logaddexp(-1, -4)) and got[1:] == [-2, -math.inf]


def test_nothing_selected():
    x, mask = torch.ones(2, 3), torch.zeros(3, dtype=torch.bool)
    assert masked.sum(x, 1, mask=mask).tolist() == [0, 0]
    assert masked.prod(x, 1, mask=mask).tolist() == [1, 1]
    assert masked.amax(x, 1, mask=mask).tolist() == [-math.inf] * 2
    assert masked.amin(x.int(), 1, mask=mask).tolist() == [2**31 - 1] * 2
    for name in ("mean", "median", "var", "std"):
        assert getattr(masked, name)(x, 1, mask=mask).isnan().all()
    with pytest.raises(ValueError, match="fully masked out"):
        masked.median(x.int(), 1, mask=mask)


def test_norm_of_negative_order():
    x, mask = torch.tensor([2.0, 0.5, 4.0]), torch.tensor([True, False, True])
    assert masked.norm(x, -math.inf, mask=mask).item() == 2
    assert masked.norm(x, -1, mask=mask).item() == pytest.approx(1 / (1 / 2 + 1 / 4))


@pytest.mark.parametrize("name", [*REDUCTIONS, "softmax", "log_softmax", "softmin", "cumsum"])
def test_gradients(name):
    """Right where the mask is True, zero elsewhere, whatever stands there."""
    function = getattr(masked, name)
    keep = torch.tensor([[True, True, False, True], [False, True, True, True]])
    values = np.where(keep.numpy(), random.normal(size=(2, 4)), math.inf)
    x = torch.tensor(values, requires_grad=True)
    out = function(x, 1, mask=keep) if name != "norm" else function(x, 2, 1, mask=keep)
    out = out.where(out.isfinite(), 0)
    (g,) = grad(out.sum(), [x])
    assert (g[~keep] == 0).all() and g.isfinite().all()
    finite = torch.tensor(np.where(keep.numpy(), values, 0.3), requires_grad=True)
    one = dict(dim=1, mask=keep)

    def kept(x):
        out = function(x, **one)
        return out[keep] if out.shape == keep.shape else out

    assert gradcheck(kept, (finite,))


def test_masks_broadcast():
    x = torch.ones(2, 3)
    assert masked.sum(x, mask=torch.tensor([True, False, True])).item() == 4
    assert masked.sum(x, mask=torch.tensor([[1.0], [0.0]])).item() == 3
    with pytest.raises(IndexError):
        masked.sum(x, mask=torch.ones(1, 2, 3, dtype=torch.bool))
    with pytest.raises(RuntimeError):
        masked.sum(x, mask=torch.ones(2, dtype=torch.bool))


def test_refusals():
    x = torch.ones(2, 3)
    with pytest.raises(IndexError):
        masked.sum(x, 2)
    with pytest.raises(RuntimeError):
        masked.sum(x, (0, 0))
    with pytest.raises(ValueError, match="floating point or complex"):
        masked.mean(x.int())
    with pytest.raises(AssertionError):
        masked.var(x, 0, True, correction=1)


def test_compiles_and_batches():
    x, mask = torch.tensor(VALUES), torch.tensor(KEEP)
    expected = masked.softmax(x, -1, mask=mask)
    compiled = torch.compile(lambda x, mask: masked.softmax(x, -1, mask=mask))
    close(compiled(x, mask), expected.numpy())
    close(torch.vmap(lambda x, mask: masked.softmax(x, -1, mask=mask))(x, mask), expected.numpy())
