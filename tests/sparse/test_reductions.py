"""Reductions and softmax of sparse tensors against dense arithmetic, in all modes."""

import pytest

import pullback as torch
from tests.helpers import sparse_cases as cases
from tests.helpers.sparse_rows import check, rows

KINDS = ("forward", "backward", "second", "jvp", "vmap_values", "functional", "compiled")
inf = float("inf")
OF_DIMS = {
    "sum": lambda x, d, k: x.sum(d, k), "mean": lambda x, d, k: x.mean(d, k),
    "nansum": lambda x, d, k: x.nansum(d, k),
    "amax": lambda x, d, k: x.amax(d, k), "amin": lambda x, d, k: x.amin(d, k),
    "norm": lambda x, d, k: (x + 0).norm(2, d, k) if x.layout is torch.strided
    else x.norm(2, d, k),
    "norm 1": lambda x, d, k: torch.linalg.vector_norm(x, 1, d, k),
    "norm 3": lambda x, d, k: torch.linalg.vector_norm(x, 3, d, k),
    "var": lambda x, d, k: x.var(d, keepdim=k),
    "var 0": lambda x, d, k: x.var(d, correction=0, keepdim=k),
    "var_mean": lambda x, d, k: torch.var_mean(x, d, keepdim=k)[1],
    "std": lambda x, d, k: x.std(d, keepdim=k),
}
UNSMOOTH = {"norm", "norm 1", "norm 3", "std"}  # where all are zero, in dense arithmetic
DIMS = {"first": 0, "last": -1, "two": (0, 1), "all": None, "middle": 1}


@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize(("name", "kind"), rows(OF_DIMS, KINDS))
def test_reductions_over_dims(name, dims, kind):
    """Values with and without `keepdim` in all layouts, the other kinds with it in every other."""
    turn = list(OF_DIMS).index(name) + list(DIMS).index(dims)
    for k, (layout, make) in enumerate(cases.ALL.items()):
        if layout == "empty" and name in UNSMOOTH and kind != "forward":
            continue
        if kind != "forward" and name in UNSMOOTH and dims not in ("all", "two"):
            continue  # see test_norms_and_deviations_have_no_gradient_at_zero
        for keep in (False, True):
            if kind == "compiled":
                if keep or dims not in ("first", "all"):
                    continue
            elif kind != "forward" and (k + turn) % 2 != keep:
                continue
            check(kind, cases.Row(lambda x: OF_DIMS[name](x, DIMS[dims], keep), make))


def test_norms_and_deviations_have_no_gradient_at_zero():
    for function in (lambda x: x.norm(2, 1), lambda x: x.std(0), lambda x: x.norm()):
        v = torch.tensor([1.0, 0, 2, 0, 3, 0], requires_grad=True)
        cases.whole(function(cases.coo(v))).sum().backward()
        assert v.grad.isfinite().all() and v.grad.any()


PLAIN = {
    "prod": lambda x: x.prod(), "prod of a dim": lambda x: x.prod(-1),
    "any": lambda x: x.any(), "any of a dim": lambda x: x.any(0),
    "all": lambda x: x.all(), "all of a dim": lambda x: x.all(1),
    "max": lambda x: x.max(), "min": lambda x: x.min(), "count": torch.count_nonzero,
    "count of a dim": lambda x: torch.count_nonzero(x, 1),
    "norm inf": lambda x: x.norm(inf, 0), "norm 0": lambda x: torch.linalg.vector_norm(x, 0, 1),
    "dist": lambda x: torch.dist(x, x * 2),
    "sum float32": lambda x: x.sum(0, dtype=torch.float32),
    "sum of what is not zero": lambda x: (x != 0).sum(),
}


@pytest.mark.parametrize("name", PLAIN)
def test_other_reductions(name):
    for make in cases.ALL.values():
        check("forward", cases.Row(PLAIN[name], make))


@pytest.mark.parametrize("kind", ("backward", "second", "jvp", "vmap_values"))
def test_products_over_dims(kind):
    def full(v):  # columns without a missing entry, so that there are derivatives
        return torch.sparse_coo_tensor([[0, 0, 1, 1, 0, 1], [0, 1, 0, 1, 3, 3]], v, (2, 4))

    for dim in (0, 1):
        check(kind, cases.Row(lambda x: x.prod(dim), full))


def test_layouts_and_dtypes_of_results_are_those_of_pytorch():
    coo, csr, csc = (f(cases.values()) for f in (cases.coo, cases.csr, cases.csc))
    assert coo.sum().layout is torch.strided and coo.sum((0, 1)).layout is torch.strided
    assert coo.sum(0).is_coalesced() and not coo.sum(0, keepdim=True).is_coalesced()
    assert coo.sum(()).layout is torch.sparse_coo and coo.sum(()).shape == (4, 6)
    assert csr.sum(0, keepdim=True).layout is torch.sparse_csr
    assert csr.sum((0, 1), keepdim=True).layout is torch.sparse_csr
    assert csc.sum(1, keepdim=True).layout is torch.sparse_csc
    hybrid = cases.hybrid(cases.values())
    assert hybrid.sum(2).dense_dim() == 0 and hybrid.sum(2, keepdim=True).sparse_dim() == 3
    assert hybrid.sum((0, 1)).layout is torch.strided
    ints = torch.tensor([[0, 2], [3, 0]], dtype=torch.int32).to_sparse()
    assert ints.sum().dtype is ints.sum(0).dtype is torch.int64
    assert torch.sparse.sum(ints, 0).dtype is torch.int32
    assert torch.sparse.sum(ints).dtype is torch.int64
    with pytest.raises(RuntimeError, match="could not infer output dtype"):
        ints.mean()


def _dense_softmax(log):
    """Softmax over elements that are not zero, which is where the test has its entries."""
    def function(x, dim):
        there = x != 0
        low = torch.where(there, x, -inf)
        out = torch.log_softmax(low, dim) if log else torch.softmax(low, dim)
        return torch.where(there, out, 0)

    return function


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ("softmax", "log_softmax"))
def test_softmax_over_specified_elements(name, kind):
    for layout, make in cases.ALL.items():
        for dim in range(make(cases.values()).ndim):
            if layout == "hybrid" and dim < 2 or layout == "hybrid":
                continue  # its functions of values are not one to one with elements
            check(kind, cases.Row(
                lambda x: getattr(torch.sparse, name)(x, dim), make,
                dense=lambda x: torch.nan_to_num(_dense_softmax(name == "log_softmax")(x, dim))))


def test_softmax_is_stable_and_takes_dense_dims_and_dtypes():
    x = torch.sparse_coo_tensor([[0, 0, 2], [0, 1, 1]], [1000.0, 1001.0, -5000.0], (3, 2))
    out = torch.sparse.softmax(x, 1)
    assert torch.allclose(out.values(), torch.tensor([0.26894142, 0.7310586, 1.0]))
    assert torch.sparse.log_softmax(x, 1, dtype=torch.float64).dtype is torch.float64
    hybrid = cases.hybrid(cases.values())
    assert torch.allclose(torch.softmax(hybrid, 2).values(), hybrid.values().softmax(1))
    assert torch.sparse.softmax(hybrid, 1).values().sum(0).tolist() == pytest.approx([3, 3, 3])
    with pytest.raises(RuntimeError, match="not implemented for int64"):
        torch.sparse.softmax(torch.eye(2).long().to_sparse(), 1)
    with pytest.raises(IndexError):
        torch.sparse.softmax(x, 5)
