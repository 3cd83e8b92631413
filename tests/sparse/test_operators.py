"""Operators of sparse tensors against dense arithmetic: every layout, derivative and transform."""

import pytest

import pullback as torch
from pullback.nn import functional as F
from tests.helpers import sparse_cases as cases
from tests.helpers.sparse_rows import NUMBERS, REAL, check, d, other, rows

NAMES = """abs asin asinh atan atanh ceil erf expm1 floor frac log1p neg rad2deg deg2rad relu round
    sgn sign sin sinh square tan tanh trunc nan_to_num"""
UNARY = {
    **{name: getattr(torch, name) for name in NAMES.split()},
    "clamp": lambda x: x.clamp(-0.5, 0.7), "pow": lambda x: x**3, "gelu": F.gelu, "silu": F.silu,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.1), "threshold": lambda x: F.threshold(x, 0.5, 0.0),
    "hardtanh": F.hardtanh, "elu": F.elu, "tanhshrink": F.tanhshrink,
    "hardshrink": F.hardshrink, "softshrink": F.softshrink, "mish": F.mish,
}
COMPLEX = {"neg", "sin", "tanh", "square", "pow", "sgn", "asinh", "expm1"}
SAFE = {"asin": 0.3, "atanh": 0.3, "log1p": 0.3}  # factors that keep a function's argument in range


@pytest.mark.parametrize(("name", "kind"), rows(UNARY, NUMBERS))
def test_functions_that_keep_zero(name, kind):
    factor = SAFE.get(name, 1.0)
    for make in cases.ALL.values():
        if kind == "complex_backward" and name not in COMPLEX:
            continue
        check(kind, cases.Row(lambda x: UNARY[name](x * factor), make))


WITH_DENSE = {
    "scaled": lambda x, y: x * y, "from the left": lambda x, y: y * x,
    "divided": lambda x, y: x / y, "added": lambda x, y: x + y, "less": lambda x, y: y - x,
}
SHAPES = {"same": (4, 6), "row": (6,), "column": (4, 1), "one": (1, 1), "batch": (3, 4, 6)}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "kind"), rows(WITH_DENSE, (*NUMBERS, "vmap_dense")))
def test_arithmetic_with_dense_tensors_broadcasts(name, shape, kind):
    for layout, make in cases.ALL.items():
        size = SHAPES[shape]
        if layout == "hybrid":
            size = (*size, 3)
        if layout in cases.BATCHES and len(size) == 3:
            size = (5, 1, 4, 6)
        if layout in ("bsr", "bsc") and len(size) == 3 and kind != "forward":
            continue
        check(kind, cases.Row(WITH_DENSE[name], make, (d(*size),)))


WITH_SPARSE = {
    "sum": lambda x, y: x + y, "weighted": lambda x, y: torch.add(x, y, alpha=2.5),
    "difference": lambda x, y: y - x, "product": lambda x, y: x * y,
    "maximum": torch.maximum, "minimum": torch.minimum,
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "addcmul": lambda x, y: torch.addcmul(x, y, y, value=2),
    "chosen": lambda x, y: torch.where(d(*x.shape) > 1, x, y),
    "filled": lambda x, y: x.masked_fill(d(*x.shape) > 1, 0),
    "itself": lambda x, y: x * x + x,
}


@pytest.mark.parametrize(("name", "kind"), rows(WITH_SPARSE, REAL))
def test_arithmetic_of_two_patterns(name, kind):
    for layout, make in cases.ALL.items():
        y = other(layout)
        check(kind, cases.Row(
            lambda x: WITH_SPARSE[name](x, y), make,
            dense=lambda x: WITH_SPARSE[name](x, y.to_dense())))


@pytest.mark.parametrize("first", cases.MATRICES)
@pytest.mark.parametrize("name", ("sum", "difference", "product", "maximum"))
def test_arithmetic_of_two_layouts(name, first):
    for second in cases.MATRICES:
        x, y = cases.MATRICES[first](cases.values()), other(second)
        for function in (WITH_SPARSE[name], torch.hypot):  # without derivative at zero
            cases.close(function(x, y).to_dense(), function(x.to_dense(), y.to_dense()))


PRODUCTS = {
    "mm": (torch.mm, (6, 3)), "mm from the left": (lambda x, y: torch.mm(y, x), (3, 4)),
    "mv": (torch.mv, (6,)), "vector at": (lambda x, y: y @ x, (4,)),
    "matrix at": (lambda x, y: x @ y, (6, 3)), "batch at": (lambda x, y: y @ x, (2, 3, 4)),
    "at batch": (lambda x, y: x @ y, (2, 6, 3)),
    "linear": (lambda x, y: F.linear(y, x), (2, 3, 6)),
    "of rows": (lambda x, y: F.linear(x, y), (3, 6)),
    "addmm": (lambda x, y: torch.addmm(d(4, 3), x, y, beta=0.5, alpha=2), (6, 3)),
    "addmv": (lambda x, y: torch.addmv(d(4), x, y, beta=0.5, alpha=2), (6,)),
    "no columns": (torch.mm, (6, 0)),
}


@pytest.mark.parametrize(("name", "kind"), rows(PRODUCTS, (*NUMBERS, "vmap_dense")))
def test_products_with_dense_matrices(name, kind):
    function, shape = PRODUCTS[name]
    if kind == "complex_backward" and name.startswith("add"):
        return  # see test_factors_are_conjugated
    for make in (*cases.MATRICES.values(), cases.empty_coo):
        check(kind, cases.Row(function, make, (d(*shape),)))


BATCHED = {
    "bmm": (torch.bmm, (2, 6, 3)), "bmm from the left": (lambda x, y: torch.bmm(y, x), (2, 3, 4)),
    "matmul": (torch.matmul, (6, 3)), "matmul vector": (torch.matmul, (6,)),
    "wider": (torch.matmul, (5, 1, 6, 3)),
    "baddbmm": (lambda x, y: torch.baddbmm(d(2, 4, 3), x, y, beta=0.5, alpha=2), (2, 6, 3)),
    "addbmm": (lambda x, y: torch.addbmm(d(4, 3), x, y, beta=0.5, alpha=2), (2, 6, 3)),
}


@pytest.mark.parametrize(("name", "kind"), rows(BATCHED, (*REAL, "vmap_dense")))
def test_products_of_batches(name, kind):
    function, shape = BATCHED[name]
    for make in cases.BATCHES.values():
        check(kind, cases.Row(function, make, (d(*shape),)))


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("first", cases.MATRICES)
def test_products_of_two_sparse_matrices(first, kind):
    for y in (other(second) for second in cases.MATRICES):
        y = y.t() if y.layout is torch.sparse_coo else y.to_sparse_coo().t()
        y = y.to(torch.complex128) if kind == "complex_backward" else y
        for function in (lambda x, y=y: torch.mm(x, y), lambda x, y=y: torch.mm(y, x)):
            check(kind, cases.Row(function, cases.MATRICES[first],
                                  dense=lambda x, f=function, y=y: f(x, y.to_dense())))
    square = cases.Row(lambda x: torch.mm(x, x.t()) if x.layout is torch.sparse_coo
                       else torch.mm(x.to_sparse_coo(), x.to_sparse_coo().t()),
                       cases.MATRICES[first], dense=lambda x: x @ x.t())
    check(kind, square)


@pytest.mark.parametrize("layout", cases.ALL)
def test_writes_in_place_are_seen_by_values(layout):
    v = cases.values()
    x = cases.ALL[layout](v.clone())
    if layout not in ("uncoalesced", "empty"):
        seen = x.values()
        assert x.sin_() is x
        assert seen.tolist() == x.values().tolist()
    x.mul_(2).neg_()
    once = x.to_dense()
    x.mul_(d(6, 3) if layout == "hybrid" else d(6))
    cases.close(x.to_dense(), once * (d(6, 3) if layout == "hybrid" else d(6)))
    x.zero_()
    assert x._nnz() == 0 and x.layout is cases.ALL[layout](v).layout and not x.to_dense().any()


@pytest.mark.parametrize("layout", cases.MATRICES)
def test_histories_go_through_writes_in_place(layout):
    make = cases.MATRICES[layout]

    def function(v, written):
        x = make(v * 2)
        y = (x.sin_() if written else x.sin()) * 3
        y = y.add_(other(layout)) if written else y + other(layout)
        z = d(4, 6).requires_grad_()
        w = (z * 1).add_(y) if written else z + y
        w = w.mul_(y) if written else w * y.to_dense()
        return cases.loss(w)

    v = cases.values().requires_grad_()
    ours, theirs = [torch.autograd.grad(function(v, w), v)[0] for w in (True, False)]
    cases.close(ours, theirs)


def test_refusals_of_writes_in_place():
    x = cases.csr(cases.values())
    before = x.to_dense()
    for write, kind in ((lambda: x.add_(d(4, 6)), NotImplementedError),
                        (lambda: x.cos_(), NotImplementedError),
                        (lambda: x.mul_(d(3, 4, 6)), RuntimeError),
                        (lambda: x.mul_(2j), RuntimeError),
                        (lambda: x.detach().requires_grad_().sin_(), RuntimeError)):
        with pytest.raises(kind, match=r"test_operators\.py"):
            write()
    assert x.to_dense().tolist() == before.tolist()
    ints = torch.tensor([[0, 2], [3, 0]]).to_sparse()
    with pytest.raises(RuntimeError, match="can't be cast"):
        ints.sin_()
    assert ints.sin().dtype is torch.float32 and ints.isnan().dtype is torch.bool


def test_results_that_are_given():
    x, out = cases.coo(cases.values()), cases.coo(torch.zeros(6, dtype=torch.float64))
    assert torch.sin(x, out=out) is out
    cases.close(out.to_dense(), x.to_dense().sin())
    dense = torch.empty(4, 3, dtype=torch.float64)
    assert torch.mm(x, d(6, 3), out=dense) is dense
    cases.close(dense, x.to_dense() @ d(6, 3))


def test_dense_tensors_take_products_in_place():
    x = cases.csr(cases.values())
    for out, function in ((d(4, 3), lambda c: c.addmm_(x, d(6, 3), beta=0.5, alpha=2)),
                          (d(4), lambda c: c.addmv_(x, d(6), beta=0, alpha=2))):
        y = out.clone()
        assert function(y) is y
        wanted = (out * 0.5 + 2 * (x.to_dense() @ d(6, 3)) if out.ndim == 2
                  else 2 * (x.to_dense() @ d(6)))
        cases.close(y, wanted)


def test_broadcasting_products_fill_all_columns():
    x = torch.sparse_coo_tensor([[0, 1], [0, 0]], [2.0, 3.0], (2, 1))
    y = torch.tensor([[5.0, 7.0]])
    for out in (x * y, y * x, x * y.to_sparse()):
        assert out.to_dense().tolist() == [[10, 14], [15, 21]]


def test_gradients_of_a_broadcast_operand_are_as_large_as_it():
    n = 1_000_000  # a gradient of the whole matrix would be 8 TB
    at = torch.arange(0, n, 1000)
    x = torch.sparse_coo_tensor(torch.stack([at, at.flip(0)]), torch.ones(1000), (n, n))
    for shape in ((n, 1), (n,)):
        y = torch.ones(shape, requires_grad=True)
        (x * y).coalesce().values().sum().backward()
        assert y.grad.shape == shape and float(y.grad.sum()) == 1000


@pytest.mark.parametrize("name", ("eq", "ne", "lt", "gt", "le", "ge"))
def test_comparisons_keep_zeros_or_are_refused(name):
    function = getattr(torch, name)
    x = cases.coo(cases.values())
    for number in (-0.5, 0, 0.5):
        wanted = function(x.to_dense(), number)
        if function(torch.zeros(()), number):
            with pytest.raises(NotImplementedError, match="would not stay zero"):
                function(x, number)
        else:
            assert function(x, number).to_dense().tolist() == wanted.tolist()
