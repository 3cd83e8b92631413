"""Sparse tensors from sizes or like others, copies, comparisons, changes of size."""

import pytest

import pullback as torch

MATRIX = torch.tensor([[1.0, 0, 2, 0], [0, 0, 3, 4], [0, 0, 0, 0], [5, 0, 0, 6]])
COMPRESSED = ("csr", "csc", "bsr", "bsc")


def layout(name):
    return getattr(torch, f"sparse_{name}")


def sparse(name):
    return MATRIX.to_sparse(layout=layout(name), **({"blocksize": 2} if name[0] == "b" else {}))


def test_sizes_with_a_layout():
    for make in (torch.zeros, torch.empty):
        for name in ("coo", "csr", "csc"):
            x = make(2, 3, layout=layout(name), dtype=torch.float64)
            assert x.layout is layout(name) and x._nnz() == 0 and x.dtype is torch.float64
            assert x.to_dense().tolist() == [[0, 0, 0]] * 2
    assert torch.zeros(2, 2, 3, layout=torch.sparse_csr).crow_indices().shape == (2, 3)
    assert torch.zeros(3, layout=torch.sparse_coo).is_coalesced()
    with pytest.raises(RuntimeError, match="non-block"):
        torch.zeros(4, 4, layout=torch.sparse_bsr)
    for make in (torch.ones, torch.rand, torch.randn, torch.eye):
        with pytest.raises(NotImplementedError, match="sparse"):
            make(2, layout=torch.sparse_coo)


def test_calls_with_and_without_a_layout_are_told_apart():
    for _ in range(100):
        assert torch.zeros((2,), layout=torch.strided).layout is torch.strided
    assert torch.zeros((2,), layout=torch.sparse_coo).layout is torch.sparse_coo
    assert torch.zeros((2,), layout=torch.strided).layout is torch.strided


@pytest.mark.parametrize("name", ("coo", *COMPRESSED))
def test_tensors_like_others(name):
    x = sparse(name)
    empty = torch.zeros_like(x)
    assert empty.layout is x.layout and empty._nnz() == 0 and empty.shape == x.shape
    assert torch.zeros_like(x, dtype=torch.int32).dtype is torch.int32
    assert torch.zeros_like(x, layout=torch.strided).tolist() == [[0.0] * 4] * 4
    assert torch.zeros_like(x, layout=torch.sparse_csr).layout is torch.sparse_csr
    assert torch.empty_like(x)._nnz() == (0 if name == "coo" else x._nnz())
    for like in (torch.ones_like(x), torch.full_like(x, 2.0), torch.rand_like(x),
                 torch.randn_like(x, dtype=torch.float64)):
        assert like.layout is x.layout and like._nnz() == x._nnz()
    assert (torch.full_like(x, 2.0).values() == 2).all()
    assert torch.zeros_like(MATRIX, layout=torch.sparse_coo)._nnz() == 0


def test_new_ones():
    x, c = sparse("coo"), sparse("csr")
    assert x.new_zeros(2, 3).layout is torch.sparse_coo and x.new_empty((2,)).shape == (2,)
    assert c.new_zeros((2, 3)).layout is torch.sparse_csr
    assert x.new_zeros(2, layout=torch.strided).tolist() == [0, 0]
    assert x.new_tensor([[1, 0]]).layout is torch.strided
    assert x.new().shape == (0,)


@pytest.mark.parametrize("name", ("coo", *COMPRESSED))
def test_zero_and_copy(name):
    x = sparse(name)
    y = x.clone()
    values = y.values()
    assert y.mul_(2) is y and values.flatten()[0] == 2 and x.to_dense()[0, 0] == 1
    y.copy_(x)
    assert torch.equal(y, x) and y.to(torch.float64).copy_(x).dtype is torch.float64
    assert y.zero_() is y and y._nnz() == 0 and y.layout is x.layout
    assert y.copy_(x) is y and torch.equal(y.to_dense(), MATRIX)
    for a, b in ((x, MATRIX), (MATRIX.clone(), x)):
        with pytest.raises(RuntimeError, match="between dense and sparse Tensors is not impl"):
            a.copy_(b)
    with pytest.raises(RuntimeError, match="different layouts"):
        y.copy_(sparse("coo" if name != "coo" else "csr"))


def test_writes_reach_leaves_and_gradients():
    leaf = torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,), requires_grad=True)
    (leaf * 3).sum().backward()
    leaf.grad.mul_(2)
    assert leaf.grad._values().tolist() == [6, 6]
    with torch.no_grad():
        leaf.add_(leaf.grad, alpha=-1)
    assert leaf.requires_grad and leaf._values().tolist() == [-5, -4]
    assert leaf.grad.zero_()._nnz() == 2 and leaf.grad._values().tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        leaf.mul_(2)
    leaf.data = torch.sparse_coo_tensor([[2]], [7.0], (3,))
    assert leaf.requires_grad and leaf.to_dense().tolist() == [0, 0, 7]
    source = torch.sparse_coo_tensor([[0, 1]], torch.ones(2, requires_grad=True), (3,))
    copy = torch.zeros(3, layout=torch.sparse_coo).copy_(source)
    assert copy.requires_grad and copy.detach().requires_grad is False


def test_comparisons():
    a = torch.sparse_coo_tensor([[0, 0, 2]], [1.0, 2.0, 0.0], (3,))
    b = torch.sparse_coo_tensor([[0]], [3.0], (3,))
    assert torch.equal(a, b) and a.equal(b.to_dense()) and torch.allclose(a, b + 1e-9 * b)
    assert not torch.equal(a, b * 2) and not torch.equal(a, torch.zeros(2).to_sparse())
    for name in COMPRESSED:
        assert torch.equal(sparse(name), sparse("coo")) and sparse(name).is_same_size(MATRIX)


def test_changes_of_size():
    x = sparse("coo")
    assert x.clone().sparse_resize_((5, 5), 2, 0).to_dense()[:4, :4].tolist() == MATRIX.tolist()
    with pytest.raises(RuntimeError, match=r"shrinking .* \(from \[4, 4\] to \[3, 3\]\)"):
        x.clone().sparse_resize_((3, 3), 2, 0)
    with pytest.raises(RuntimeError, match=r"number of sparse dimensions \(from 2 to 1\)"):
        x.clone().sparse_resize_((4, 4), 1, 1)
    cleared = x.clone().sparse_resize_and_clear_((3, 3), 1, 1)
    assert cleared._nnz() == 0 and cleared.dense_dim() == 1 and cleared.shape == (3, 3)
    wide = torch.sparse_coo_tensor([[0]], [[1.0, 2.0]], (2, 2)).sparse_resize_((3, 3), 1, 1)
    assert wide.to_dense().tolist() == [[1, 2, 0], [0, 0, 0], [0, 0, 0]]
    assert torch.zeros(2, layout=torch.sparse_coo).resize_as_sparse_(x).shape == (4, 4)
    assert torch.zeros(2, layout=torch.sparse_coo).resize_as_(x).shape == (4, 4)
    with pytest.raises(NotImplementedError, match="coordinate tensor layout but got SparseCsr"):
        sparse("csr").sparse_resize_((5, 5), 2, 0)
