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
    monkeypatch.setattr(sparse_loops, "ALONE", 64)  # threads share little work, too
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


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("width", [1, 2, 17, 65, 130, 200])
def test_entries_that_nobody_can_write_are_known_again(library, width, dtype, ordered, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        rng = np.random.default_rng(1)
        rows, cols = entries(300, 31, 17, ordered)
        rows[rows == 30] = rows[rows == 4] = 7  # some rows are empty, the last one is
        rows = np.sort(rows) if ordered else rows
        for array in (rows, cols):
            array.flags.writeable = False
        y = rng.standard_normal((17, width)).astype(dtype)
        for _ in range(2):
            values = rng.standard_normal(300).astype(dtype)
            wanted = np.zeros((31, width), dtype)
            np.add.at(wanted, rows, values[:, None] * y[cols])
            tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype == "f4" else {}
            found = sparse_loops.spmm(library, rows, cols, values, y, 31)
            np.testing.assert_allclose(found, wanted, **tolerance)
        assert (id(rows), id(cols), 31, 17) in sparse_loops._patterns
    finally:
        torch.set_num_threads(before)


def test_what_is_known_of_entries_goes_with_them(library):
    rows, cols = entries(300, 31, 17, True)
    for array in (rows, cols):
        array.flags.writeable = False
    y = np.ones((17, 3))
    sparse_loops.spmm(library, rows, cols, np.ones(300), y, 31)
    known = len(sparse_loops._patterns)
    del rows
    assert len(sparse_loops._patterns) == known - 1


@pytest.mark.parametrize("wrong", [-1, 13, 1 << 40])
def test_entries_outside_are_found(library, wrong):
    for at in (0, 1):
        places = list(entries(200, 13, 13, True))
        places[at][150] = wrong
        if at == 0:
            places[at] = np.sort(places[at])
        x = np.ones((13, 5))
        for fixed in (False, True):
            if fixed:
                for array in places:
                    array.flags.writeable = False
            assert sparse_loops.spmm(library, *places, np.ones(200), x, 13) is None
            assert sparse_loops.sddmm(library, *places, x, x) is None


def test_integers_that_are_written_are_seen():
    crow, cols = torch.tensor([0, 2, 2, 3]), torch.tensor([0, 1, 2])
    values, dense = torch.ones(3), torch.eye(3)
    matrix = torch.sparse_csr_tensor(crow, cols, values, (3, 3))
    assert (matrix @ dense).tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 1]]
    matrix.col_indices()[1] = 2
    assert (matrix @ dense).tolist() == [[1, 0, 1], [0, 0, 0], [0, 0, 1]]
    at = torch.tensor([[0, 0, 2], [0, 1, 2]])
    matrix = torch.sparse_coo_tensor(at, values, (3, 3))
    assert (matrix @ dense).tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 1]]
    matrix._indices()[1, 1] = 2
    assert (matrix @ dense).tolist() == [[1, 0, 1], [0, 0, 0], [0, 0, 1]]


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
