"""The functions of `torch.sparse` and older names: products that are reduced, sampled and kept."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import pullback as torch
from pullback.ops import sparse_products
from tests.helpers import sparse_cases as cases
from tests.helpers.peak import peak
from tests.helpers.sparse_rows import check, d, other

KINDS = ("forward", "backward", "second", "jvp", "vmap_values", "vmap_dense", "functional",
         "compiled")


def reduced(kind):
    def dense(x, y):
        each = x.unsqueeze(2) * y.unsqueeze(0)
        there = (x != 0).unsqueeze(2)
        if kind == "mean":
            return each.sum(1) / there.sum(1).clamp(min=1)
        limit = float("-inf") if kind == "amax" else float("inf")
        out = getattr(torch.where(there, each, limit), kind)(1)
        return torch.where(there.any(1), out, 0)

    return dense


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ("sum", "mean", "amax", "amin"))
def test_products_reduced_row_by_row(name, kind):
    for make in (*cases.MATRICES.values(), cases.empty_coo):
        check(kind, cases.Row(
            lambda x, y: torch.sparse.mm(x, y, name), make, (d(6, 3),),
            dense=torch.mm if name == "sum" else reduced(name)))


def test_gradients_of_extremes_go_to_the_first_that_has_it():
    v = torch.tensor([1.0, 1.0, 3.0], requires_grad=True)
    x = torch.sparse_coo_tensor([[0, 0, 1], [0, 1, 1]], v, (3, 2))
    out = torch.sparse.mm(x, torch.ones(2, 1), "amax")
    out.sum().backward()
    assert out.flatten().tolist() == [1, 3, 0] and v.grad.tolist() == [1, 0, 1]
    with pytest.raises(RuntimeError, match="reduce argument must be"):
        torch.sparse.mm(x, torch.ones(2, 1), "prod")


@pytest.mark.parametrize("kind", (*KINDS, "complex_backward"))
def test_products_at_the_entries_of_a_matrix(kind):
    def at_entries(x, a, b):
        y = torch.sparse.sampled_addmm(x, a, b, beta=0.5, alpha=2)
        return y if y.is_complex() else y.tanh()

    for layout, make in cases.ALL.items():
        if layout == "hybrid":
            continue
        lead = (2,) if layout in cases.BATCHES else ()
        there = make(torch.ones(6, dtype=torch.float64))
        there = there.with_carrier(torch.ones_like(there.values_part)).to_dense() != 0

        def dense(x, a, b, there=there):
            y = torch.where(there, 0.5 * x + 2 * (a @ b), 0)
            return y if y.is_complex() else y.tanh()

        check(kind, cases.Row(at_entries, make, (d(*lead, 4, 3), d(*lead, 3, 6)), dense))


def test_refusals_of_sampled_products():
    x = cases.csr(cases.values())
    with pytest.raises(RuntimeError, match="has not the shape"):
        torch.sparse.sampled_addmm(x, d(4, 3), d(3, 5))
    with pytest.raises(RuntimeError, match="same batch size"):
        torch.sparse.sampled_addmm(cases.batch_csr(cases.values()), d(4, 3), d(3, 6))
    with pytest.raises(NotImplementedError, match="expected a sparse matrix"):
        torch.sparse.sampled_addmm(d(4, 6), d(4, 3), d(3, 6))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ("smm", "hspmm", "sspaddmm", "dsmm", "spmm"))
def test_older_names(name, kind):
    def function(x, y):
        if name == "sspaddmm":
            return torch.sspaddmm(x, x, y, beta=0.5, alpha=2)
        return getattr(torch, name)(x, y)

    def dense(x, y):
        return 0.5 * x + 2 * (x @ y) if name == "sspaddmm" else x @ y

    for make in cases.MATRICES.values():
        check(kind, cases.Row(function, make, (d(6, 6),), dense))


def test_layouts_of_older_names():
    x = cases.coo(cases.values())
    assert torch.smm(x, d(6, 3)).sparse_dim() == 2 and torch.smm(x, d(6, 3))._nnz() == 9
    assert torch.hspmm(x, d(6, 3)).dense_dim() == 1 and torch.hspmm(x, d(6, 3))._nnz() == 3
    assert x.smm(d(6, 3)).to_dense().tolist() == (x @ d(6, 3)).tolist()
    assert x.sspaddmm(x, d(6, 6))._nnz() == 6 + 18
    y = cases.csr(cases.values())
    assert torch.mm(y, other("csc").t().to_sparse_coo()).layout is torch.sparse_csr
    with pytest.raises(RuntimeError, match="expected a matrix"):
        torch.sparse.mm(x, d(6))


@pytest.mark.parametrize("layout", cases.MATRICES)
def test_factors_are_conjugated(layout):
    """Gradients of addmm with complex factors; PyTorch's lack the conjugate."""
    make = cases.MATRICES[layout]
    for c, y in ((d(4, 3), d(6, 3)), (d(4), d(6))):
        inputs = [torch.complex(c, c * 0.3), cases.values(torch.complex128), torch.complex(y, -y)]

        def function(c, v, y, make=make, name="addmm" if c.ndim == 2 else "addmv"):
            space = torch.sparse if name == "addmm" else torch
            return getattr(space, name)(c, make(v), y, beta=0.5 + 2j, alpha=1 - 0.5j)

        def dense(c, v, y, make=make):
            return (0.5 + 2j) * c + (1 - 0.5j) * (cases.dense_of(make)(v) @ y)

        for order in (1, 2):
            for a, b in zip(cases._gradients(function, inputs, order),
                            cases._gradients(dense, inputs, order)):
                cases.close(a, b)


@pytest.mark.parametrize("layout", ("coo", "csr"))
def test_memory_of_products_and_their_derivatives_is_that_of_entries_and_operands(layout):
    n, count, width = 100_000, 1_000_000, 8  # a matrix would take 80 GB
    torch.manual_seed(0)
    key = torch.unique(torch.randint(n * n, (count,)))
    at = torch.stack([key // n, key % n])
    v = torch.randn(at.shape[1], dtype=torch.float64, requires_grad=True)
    y = torch.randn(n, width, dtype=torch.float64, requires_grad=True)
    pattern = torch.sparse_coo_tensor(at, v.detach(), (n, n), is_coalesced=True)
    pattern = pattern.to_sparse_csr() if layout == "csr" else pattern
    pattern @ y.detach()  # what is kept of the pattern

    def first():
        out = pattern.with_carrier(v) @ y
        return torch.autograd.grad(out.square().sum(), (v, y), create_graph=True)

    def sampled():
        return torch.sparse.sampled_addmm(pattern.with_carrier(v), y, y.t()).values().sum()

    bound = 8 * (count + 2 * n * width)  # bytes of values and of both operands
    assert peak(first) < 10 * bound
    assert peak(lambda: torch.autograd.grad(sampled(), (v, y))) < 10 * bound
    assert peak(lambda: sum(g.square().sum() for g in first()).backward()) < 20 * bound


def test_products_of_sparse_matrices_do_not_list_their_pairs():
    n = 1500  # a list of the 18 million pairs of entries that meet would take 0.7 GB
    every = torch.arange(n)
    at = torch.stack([every.repeat_interleave(8), torch.arange(8).repeat(n)])
    v = torch.randn(8 * n, dtype=torch.float64, requires_grad=True)
    x = torch.sparse_coo_tensor(at, v, (n, n))
    y = x.t()

    def product():
        out = torch.sparse.mm(x, y).coalesce().values().square().sum()
        return torch.autograd.grad(out, x.values_part)

    wanted = x.detach().to_dense().requires_grad_()
    (wanted @ wanted.t()).square().sum().backward()
    found = product()[0]
    assert torch.allclose(found, wanted.grad[at[0], at[1]])
    assert peak(product) < 16 * 8 * n * n


@pytest.mark.parametrize("dtype", (torch.int64, torch.float16, torch.bfloat16, torch.float32))
def test_products_of_other_dtypes(dtype):
    for layout, make in cases.MATRICES.items():
        x = make((cases.values() * 4).round()).to(dtype)
        y = (d(6, 3) * 4).round().to(dtype)
        for out in (x @ y, torch.sparse.mm(x, y, "amax") if dtype is not torch.int64 else x @ y):
            assert out.dtype is dtype, layout
        cases.close((x @ y).double(), x.to_dense().double() @ y.double())
        z = torch.mm(x.to_sparse_coo(), x.to_sparse_coo().t())
        cases.close(z.to_dense().double(), x.to_dense().double() @ x.to_dense().double().t())
    with pytest.raises(RuntimeError, match="same dtype"):
        x @ y.to(torch.float64)


def test_products_without_elements():
    for shape in ((0, 3), (3, 0)):
        x = torch.sparse_coo_tensor(torch.zeros(2, 0, dtype=torch.int64), torch.zeros(0), shape)
        for t in (x, x.to_sparse_csr()):
            assert (t @ torch.ones(shape[1], 2)).tolist() == torch.zeros(shape[0], 2).tolist()
            assert t.sum().item() == 0 and t.sum(0).to_dense().tolist() == [0] * shape[1]
            assert torch.mm(t, t.t().to_sparse_coo()).to_dense().shape == (shape[0],) * 2
            assert torch.sparse.softmax(t, 1)._nnz() == 0 and (t * 2 + t)._nnz() == 0


@pytest.mark.parametrize("block", (7, 1 << 22))
@pytest.mark.parametrize("lookup", (0, 6, 10**9))
def test_entries_of_products_are_found_in_three_ways(lookup, block, monkeypatch):
    monkeypatch.setattr(sparse_products, "LOOKUP", lookup)
    monkeypatch.setattr(sparse_products, "BLOCK", block)
    rng = np.random.default_rng(0)
    for density in (0.0, 0.1, 0.6):
        for m, k, n in ((5, 7, 6), (1, 4, 9), (9, 2, 1)):
            x, y = [rng.normal(size=s) * (rng.random(s) < density) for s in ((m, k), (k, n))]
            rows, cols = rng.integers(m, size=20), rng.integers(n, size=20)
            for a, b in ((x, y), (x + 1j * x, y * 2j)):
                found = sparse_products.product_at(csr_array(a), csr_array(b), rows, cols)
                assert np.allclose(found, (a @ b)[rows, cols])
