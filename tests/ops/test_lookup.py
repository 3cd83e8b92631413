"""Rows taken from tables and added to them: repeated places, dtypes, places that are not there."""

import numpy as np
import pytest

import pullback as torch
from pullback.nn import functional as F
from pullback.ops.index import add_rows


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("count", [3, 200])  # few are added one by one, many in a compiled loop
def test_rows_are_added_in_order(dtype, order, count):
    rng = np.random.default_rng(0)
    table = np.asarray(rng.normal(size=(50, 40)).astype(dtype), order=order)
    index, rows = rng.integers(0, 50, count), rng.normal(size=(count, 40)).astype(dtype)
    expected = table.astype("c16")
    np.add.at(expected, index, rows)
    result = add_rows(np, table, index, rows)
    assert result.dtype == dtype
    np.testing.assert_allclose(result, expected, atol=20 * np.finfo(dtype).eps)


@pytest.mark.parametrize("count", [3, 200])
@pytest.mark.parametrize("place", [50, -1, 1 << 40])
def test_gradients_for_rows_that_are_not_there(count, place):
    grad, index = torch.ones(count, 40), torch.full((count,), place)
    with pytest.raises(IndexError, match=f"index {place} is out of bounds"):
        torch.ops.aten.embedding_dense_backward(grad, index, 50, -1, False)
    bags = torch.zeros(count, dtype=torch.int64)
    with pytest.raises(IndexError, match=f"index {place} is out of bounds"):
        torch.ops.aten._embedding_bag_dense_backward(
            torch.ones(1, 40), index, bags, torch.tensor([count]), bags[:1], 50, False, 0, None)


@pytest.mark.parametrize("call", [
    lambda i: F.embedding(i, torch.zeros(4, 3)),
    lambda i: torch.compile(F.embedding)(i, torch.zeros(4, 3)),
    lambda i: torch.zeros(4, 3).index_select(0, i)], ids=["embedding", "compiled", "select"])
def test_the_cure_for_negative_indices(call):
    """Rows of a table are not counted from the end, and nobody is told so."""
    with pytest.raises(IndexError) as caught:
        call(torch.tensor([0, -1]))
    cure = str(caught.value).splitlines()[-1]
    assert "embedding" in cure and "from 0 to n - 1" in cure
