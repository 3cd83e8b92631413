"""Products of entries in C are those of NumPy, in order or not, with any number of threads."""

import numpy as np
import pytest

import pullback as torch
from pullback.compile import sparse_loops


def entries(count, rows, cols, ordered):
    rng = np.random.default_rng(count)
    at = rng.integers(0, rows, count)
    return np.sort(at) if ordered else at, rng.integers(0, cols, count)


@pytest.fixture
def library(monkeypatch):
    monkeypatch.setattr(sparse_loops._library, "spent", 1.0)  # enough work: it is built
    monkeypatch.setattr(sparse_loops, "_ALONE", 64)  # threads share little work, too
    found = sparse_loops.library(np.dtype(np.float64))
    if found is None:
        pytest.skip("no compiler")
    return found


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("width", [1, 7, 32, 64, 100])
def test_products_of_entries(library, width, dtype, ordered, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        rng = np.random.default_rng(0)
        rows, cols = entries(200, 13, 17, ordered)
        values = rng.standard_normal(200).astype(dtype)
        x, y = (rng.standard_normal((n, width)).astype(dtype) for n in (13, 17))
        wanted = np.zeros((13, width), dtype)
        np.add.at(wanted, rows, values[:, None] * y[cols])
        found = sparse_loops.spmm(library, rows, cols, values, y, 13)
        tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype == "f4" else {}
        np.testing.assert_allclose(found, wanted, **tolerance)
        np.testing.assert_allclose(
            sparse_loops.sddmm(library, rows, cols, x, y), (x[rows] * y[cols]).sum(1), **tolerance)
    finally:
        torch.set_num_threads(before)


def test_large_products_take_the_library(library):
    rows, cols = entries(4000, 50, 60, False)
    values, dense = torch.randn(4000), torch.randn(60, 32, requires_grad=True)
    matrix = torch.sparse_coo_tensor(np.stack([rows, cols]), values, (50, 60))
    out = matrix @ dense
    assert torch.allclose(out, matrix.to_dense() @ dense, atol=1e-4)
    grad, = torch.autograd.grad(out.sum(), dense)
    assert torch.allclose(grad, matrix.to_dense().t() @ torch.ones(50, 32), atol=1e-4)
    with pytest.raises(IndexError, match="outside of the size"):
        torch.ops.aten._spmm(torch.full((4000,), 99), torch.zeros(4000, dtype=torch.int64),
                             values, dense, 50)
