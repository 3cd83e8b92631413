"""Matrices of SciPy become tensors and tensors become matrices: the memory is the same."""

import numpy as np
import pytest
import scipy.sparse as sp

import pullback as torch
from pullback.sparse import from_scipy, to_scipy

MATRIX = np.array([[1.0, 0, 2, 0], [0, 0, 3, 4], [0, 0, 0, 0], [5, 0, 0, 6]])


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo"])
@pytest.mark.parametrize("form", ["array", "matrix"])
def test_round_trip(kind, form):
    given = getattr(sp, f"{kind}_{form}")(MATRIX)
    t = from_scipy(given)
    assert t.layout is getattr(torch, f"sparse_{kind}") and t.dtype is torch.float64
    assert np.array_equal(t.to_dense().numpy(), MATRIX)
    assert np.shares_memory(t.values_part.numpy(), given.data)
    back = to_scipy(t, matrix=form == "matrix")
    assert type(back) is type(given) and np.array_equal(back.toarray(), MATRIX)
    assert np.shares_memory(back.data, given.data)
    if kind != "coo":
        assert np.shares_memory(back.indices, given.indices)
        assert np.shares_memory(back.indptr, given.indptr)
        assert t.plain_part.dtype is torch.int32
    t.values().mul_(2)
    assert np.array_equal(given.toarray(), 2 * MATRIX)


def test_other_formats_and_numbers():
    assert np.array_equal(from_scipy(sp.lil_matrix(MATRIX)).to_dense().numpy(), MATRIX)
    assert from_scipy(sp.dia_array(MATRIX)).layout is torch.sparse_csr
    twice = sp.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2))
    assert not from_scipy(twice).is_coalesced() and from_scipy(twice).to_dense()[0, 1] == 3
    unsorted = sp.csr_array((np.array([1.0, 2.0]), np.array([1, 0]), np.array([0, 2, 2])), (2, 2))
    assert from_scipy(unsorted).to_dense().tolist() == [[2, 1], [0, 0]]
    for dtype in (np.complex128, np.int64, np.bool_, np.float32):
        assert to_scipy(from_scipy(sp.csr_array(MATRIX.astype(dtype)))).dtype == dtype


def test_gradients():
    t = from_scipy(sp.csr_array(MATRIX), requires_grad=True)
    (t @ torch.ones(4, 1, dtype=torch.float64)).sum().backward()
    assert t.grad.layout is torch.sparse_csr and t.grad.values().tolist() == [1.0] * 6
    with pytest.raises(RuntimeError, match="requires grad"):
        to_scipy(t)
    assert to_scipy(t.detach()).nnz == 6


def test_what_scipy_does_not_have():
    x = torch.from_numpy(MATRIX)
    for t, said in ((x, "layout torch.strided"), (x.to_sparse(1), "numbers as entries"),
                    (torch.stack([x, x]).to_sparse_csr(), "no batches"),
                    (x.half().to_sparse(), "float16")):
        with pytest.raises((NotImplementedError, RuntimeError), match=said) as caught:
            to_scipy(t)
        assert "test_scipy.py" in str(caught.value)
    with pytest.raises(TypeError, match="got a ndarray"):
        from_scipy(MATRIX)
