"""Maxima over windows by search in all of them against a scan: ties, NaN, infinities, strides."""

import itertools

import numpy as np
import pytest

import pullback as torch
from pullback.ops import pool_kernels


def scanned(x, kernel, stride):
    """Maxima and flat places of one plane, element by element."""
    counts = [(n - k) // s + 1 for n, k, s in zip(x.shape, kernel, stride)]
    values, places = np.empty(counts, x.dtype), np.empty(counts, np.int64)
    for window in np.ndindex(*counts):
        best, where = -np.inf, None
        for inside in itertools.product(*map(range, kernel)):
            at = tuple([w * s + i for w, s, i in zip(window, stride, inside)])
            if where is None or x[at] > best or np.isnan(x[at]):
                best, where = x[at], np.ravel_multi_index(at, x.shape)
        values[window], places[window] = best, where
    return values, places


@pytest.mark.parametrize("few", [0, pool_kernels.FEW], ids=["by offsets", "by search"])
@pytest.mark.parametrize("kernel, stride", [
    ((2,), (2,)), ((3,), (1,)), ((1, 3), (2, 1)), ((2, 2), (3, 2)), ((2, 1, 2), (1, 2, 2))])
@pytest.mark.parametrize("filling", ["ties", "nan", "-inf", "apart"])
def test_maxima_of_few_elements(kernel, stride, filling, few, monkeypatch):
    monkeypatch.setattr(pool_kernels, "FEW", few)
    random = np.random.default_rng(0)
    x = random.integers(-2, 3, (2, 3, *(5, 6, 4)[:len(kernel)])).astype(np.float64)
    if filling == "nan":
        x.reshape(-1)[::5] = np.nan
    elif filling == "-inf":
        x[...] = -np.inf
    given = torch.from_numpy(x)
    if filling == "apart":
        given = torch.from_numpy(np.repeat(x, 2, -1))[..., ::2]
    call = getattr(torch.nn.functional, f"max_pool{len(kernel)}d")
    values, places = call(given, kernel, stride, return_indices=True)
    for lead in np.ndindex(2, 3):
        expected = scanned(x[lead], kernel, stride)
        np.testing.assert_array_equal(values.numpy()[lead], expected[0])
        np.testing.assert_array_equal(places.numpy()[lead], expected[1])
