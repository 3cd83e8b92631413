"""Systems with a sparse matrix against dense ones: every layout, derivative and transform."""

import gc
import tracemalloc

import pytest

import pullback as torch
from pullback import func
from pullback.fx.experimental.proxy_tensor import make_fx
from pullback.ops import sparse_factors
from tests.helpers import sparse_cases as cases
from tests.helpers.sparse_rows import NUMBERS, d
from tests.helpers.sparse_systems import AT, SQUARE, coo, csr, entries

KINDS = (*NUMBERS, "vmap_dense")
def check(kind, function, operands=(), dense=None):
    for layout, make in SQUARE.items():
        if kind != "compiled" or layout == "csr":
            cases.CHECKS[kind](cases.Row(function, make, operands, dense), cases.values())


SOLVE = {
    "vector": (torch.linalg.solve, (4,)), "several": (torch.linalg.solve, (4, 3)),
    "batch": (torch.linalg.solve, (2, 4, 3)),
    "from the right": (lambda a, b: torch.linalg.solve(a, b, left=False), (2, 3, 4)),
    "transposed": (lambda a, b: torch.linalg.solve(a.transpose(0, 1), b), (4,)),
}


COMPILED = {"vector", "from the right", "upper", "lower", "largest", "generalized"}


def rows(names):
    """Names beside kinds of checks; of compiled programs some, as each takes a while."""
    return [(n, k) for n in names for k in KINDS if k != "compiled" or n in COMPILED]


@pytest.mark.parametrize(("name", "kind"), rows(SOLVE))
def test_solutions(name, kind):
    function, shape = SOLVE[name]
    check(kind, function, (d(*shape),))


def triangular(upper, transpose, unit):
    return lambda a, b: torch.triangular_solve(b, a, upper, transpose, unit)[0]


def solve_triangular(upper, left, unit):
    return lambda a, b: torch.linalg.solve_triangular(a, b, upper=upper, left=left,
                                                      unitriangular=unit)


TRIANGLES = {
    "upper": triangular(True, False, False), "lower transposed": triangular(False, True, False),
    "unit upper": triangular(True, True, True), "lower": solve_triangular(False, True, False),
    "from the right": solve_triangular(True, False, False),
    "unit lower from the right": solve_triangular(False, False, True),
}


@pytest.mark.parametrize(("name", "kind"), rows(TRIANGLES))
def test_triangular_systems(name, kind):
    check(kind, TRIANGLES[name], (d(4, 4),))


@pytest.mark.parametrize("kind", NUMBERS)
def test_determinants(kind):
    check(kind, lambda a: torch.linalg.slogdet(a)[1] + torch.slogdet(a).logabsdet ** 2)


def test_signs_of_determinants():
    for make in SQUARE.values():
        for dtype in (torch.float64, torch.complex128):
            v = cases.values(dtype)
            for a in (make(v), make(v - 2)):
                for found in zip(torch.linalg.slogdet(a), torch.linalg.slogdet(a.to_dense())):
                    cases.close(*found)
                if dtype is torch.float64:
                    cases.close(torch.logdet(a), torch.logdet(a.to_dense()))
    phase = cases.values(torch.complex128).requires_grad_()

    def signed(a):
        return (torch.linalg.slogdet(a)[0] * (1 + 2j)).real

    cases.close(*[torch.autograd.grad(signed(a), phase)[0]
                  for a in (coo(phase), coo(phase).to_dense())])
    order = torch.tensor([2, 0, 3, 1])
    turned = torch.eye(4)[order].to_sparse_csr()
    assert torch.linalg.slogdet(turned)[0] == torch.linalg.slogdet(turned.to_dense())[0]
    sign, logarithm = torch.linalg.slogdet(torch.zeros(2, 2).to_sparse())
    assert sign == 0 and logarithm == -torch.inf


@pytest.mark.parametrize("kind", (*cases.CHECKS,))
def test_systems_with_batches_of_matrices(kind):
    places = torch.tensor([(i, *at) for i in range(2) for at in AT]).t()

    def batch_coo(v):
        return torch.sparse_coo_tensor(places, torch.cat([entries(v), entries(v) + 1]), (2, 4, 4),
                                       is_coalesced=True)

    def batch_csr(v):
        pointers, columns = torch.tensor([0, 2, 4, 6, 9]), torch.tensor([c for _, c in AT])
        return torch.sparse_csr_tensor(
            torch.stack([pointers, pointers]), torch.stack([columns, columns]),
            torch.stack([entries(v), entries(v) + 1]), (2, 4, 4))

    for make in (batch_coo, batch_csr):
        for function, shape in ((torch.linalg.solve, (2, 4)), (torch.linalg.solve, (2, 4, 3)),
                                (torch.linalg.solve, (4, 3)),
                                (TRIANGLES["from the right"], (2, 3, 4))):
            if kind != "compiled" or shape == (2, 4):
                cases.CHECKS[kind](cases.Row(function, make, (d(*shape),)), cases.values())


@pytest.mark.parametrize("dtype", (torch.float32, torch.float64, torch.complex64,
                                   torch.complex128))
def test_dtypes(dtype):
    kind = torch.complex128 if dtype.is_complex else torch.float64
    a = csr(cases.values(kind))
    for b in (d(4), d(4, 2)):
        x = torch.sparse.spsolve(a.to(dtype), b.to(dtype))
        assert x.dtype is dtype and torch.allclose(
            x, torch.linalg.solve(a.to_dense(), b.to(kind)).to(dtype), atol=1e-5)
        y = torch.linalg.solve_triangular(a.to(dtype), d(4, 2).to(dtype), upper=True)
        assert y.dtype is dtype and torch.allclose(y, torch.linalg.solve_triangular(
            a.to_dense(), d(4, 2).to(kind), upper=True).to(dtype), atol=1e-5)


def test_numbers_of_pytorch():
    a = torch.tensor([[2.0, 1, 0], [0, 3, 1], [0, 0, 4]]).to_sparse_csr().requires_grad_()
    b = torch.tensor([[1.0, 4], [2, 5], [3, 6]], requires_grad=True)
    found = torch.triangular_solve(b, a)
    assert found.cloned_coefficient.shape == (0,)
    found.solution.sum().backward()
    wanted = [[0.2916667, 1.4166666], [0.4166667, 1.1666666], [0.75, 1.5]]
    assert torch.allclose(found.solution.detach(), torch.tensor(wanted))
    assert torch.allclose(a.grad.values(), torch.tensor(
        [-0.8541666, -0.7916666, -0.2638889, -0.375, -0.46875]), atol=1e-5)
    assert torch.allclose(b.grad, torch.tensor([[0.5], [1 / 6], [0.2083333]]).expand(3, 2))


def test_one_matrix_has_factors_once(monkeypatch):
    made, factorized = [], sparse_factors._factorized
    monkeypatch.setattr(sparse_factors, "_known", [])
    monkeypatch.setattr(sparse_factors, "_factorized",
                        lambda *args: made.append(args) or factorized(*args))

    def count():
        found = len(made)
        made.clear()
        return found

    for dtype in (torch.float64, torch.complex128):
        for function in (torch.linalg.solve, SOLVE["from the right"][0], TRIANGLES["lower"]):
            v = cases.values(dtype).requires_grad_()
            b = d(4, 4).to(dtype)
            a = csr(v)
            (g,) = torch.autograd.grad(cases.loss(function(a, b)), v, create_graph=True)
            torch.autograd.grad(cases.loss(g), v)
            assert count() == 1  # that of the matrix, transposed and conjugated as may be
            function(a, b + 1)
            assert count() == 0
    a = csr(cases.values())
    torch.linalg.solve(a, d(4))
    torch.linalg.solve(a.transpose(0, 1), d(4))
    assert count() == 1
    a.values().mul_(2)
    cases.close(torch.linalg.solve(a, d(4)), torch.linalg.solve(a.to_dense(), d(4)))
    assert count() == 1


def test_factors_go_with_the_values(monkeypatch):
    monkeypatch.setattr(sparse_factors, "_known", [])
    a = csr(cases.values())
    torch.linalg.solve(a, d(4))
    assert sparse_factors._known[-1].found is not None
    del a
    gc.collect()
    assert sparse_factors._known[-1].found is None
    held = [csr(cases.values(seed=i)) for i in range(2 * sparse_factors.KEPT)]
    for a in held:
        torch.linalg.solve(a, d(4))
    assert len(sparse_factors._known) <= sparse_factors.KEPT


def test_no_dense_matrix_is_made():
    n = 20_000  # which would be 3 GB
    line = torch.arange(n)
    at = torch.cat([torch.stack([line, line]), torch.stack([line[1:], line[:-1]]),
                    torch.stack([line[:-1], line[1:]])], 1)
    v = torch.cat([torch.full((n,), 4.0), torch.ones(2 * n - 2)]).requires_grad_()
    a = torch.sparse_coo_tensor(at, v, (n, n)).to_sparse_csr()
    b = torch.ones(n, requires_grad=True)
    tracemalloc.start()
    for x in (torch.sparse.spsolve(a, b),
              torch.linalg.solve_triangular(a, b.unsqueeze(1), upper=False)):
        torch.autograd.grad(x.square().sum(), (v, b), retain_graph=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6
    assert torch.allclose(torch.mv(a, torch.sparse.spsolve(a, b)), b, atol=1e-5)


def test_singular_matrices():
    a = csr(cases.values())
    zeros, one_row = a * 0, a * torch.tensor([[1.0], [1], [0], [1]], dtype=torch.float64)
    solve = torch.compile(torch.linalg.solve)
    for call in (torch.linalg.solve, torch.sparse.spsolve, solve):
        for matrix in (zeros, one_row):
            with pytest.raises(torch.linalg.LinAlgError, match="matrix is singular"):
                call(matrix, d(4))
    assert torch.linalg.solve(a * torch.nan, d(4)).isnan().all()
    assert torch.linalg.solve(torch.zeros(0, 0).to_sparse(), torch.ones(0, 2)).shape == (0, 2)
    # triangular ones divide by zero, as dense ones do
    ours, wanted = [torch.linalg.solve_triangular(m, d(4, 2), upper=True)
                    for m in (one_row, one_row.to_dense())]
    assert ours[2].isinf().all() and torch.allclose(ours[3], wanted[3])
    assert not ours[0].isfinite().any()  # it reads the third one


REFUSED = {
    "not square": (lambda: torch.linalg.solve(cases.csr(cases.values()), d(4)), RuntimeError,
                   "square"),
    "not as many": (lambda: torch.linalg.solve(csr(cases.values()), d(5)), RuntimeError,
                    "Incompatible shapes"),
    "another dtype": (lambda: torch.linalg.solve(csr(cases.values()), d(4).float()), RuntimeError,
                      "same dtype"),
    "integers": (lambda: torch.linalg.solve(torch.eye(2).long().to_sparse(),
                                            torch.ones(2).long()), RuntimeError, "floating"),
    "vectors": (lambda: torch.linalg.solve(csr(cases.values()), d(4), left=False), RuntimeError,
                "left=True"),
    "a vector": (lambda: torch.triangular_solve(d(4), csr(cases.values())), RuntimeError,
                 "at least 2 dimensions"),
    "sparse right side": (lambda: torch.linalg.solve(csr(cases.values()), coo(cases.values())),
                          NotImplementedError, "dense tensor"),
    "a dense matrix": (lambda: torch.sparse.spsolve(d(4, 4), d(4)), NotImplementedError,
                       "expected a sparse tensor"),
    "hybrid": (lambda: torch.linalg.solve(d(2, 2, 2).to_sparse(2), d(2)), NotImplementedError,
               "have to be numbers"),
    "many determinants": (lambda: torch.linalg.slogdet(torch.eye(2).expand(3, 2, 2).to_sparse()),
                          RuntimeError, "one by one"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    call, kind, said = REFUSED[name]
    with pytest.raises(kind, match=said):
        call()


def test_gradients_are_checked():
    a = csr(cases.values()).requires_grad_()
    b = d(4, 2).requires_grad_()
    for function in (torch.linalg.solve, TRIANGLES["upper"]):
        assert torch.autograd.gradcheck(function, (a, b), check_forward_ad=True)
        assert torch.autograd.gradgradcheck(function, (a, b))


def test_graphs_and_graphs_of_derivatives():
    v, b = cases.values(), d(4)

    def function(v, b):
        return (torch.linalg.solve(csr(v), b) + TRIANGLES["lower"](csr(v), b[:, None])[:, 0]).sin()

    def derivative(v, b):
        return func.grad(lambda v, b: function(v, b).sum(), argnums=(0, 1))(v, b)

    for f in (function, derivative):
        graph = make_fx(f)(v, b)
        ours, wanted = [g(v * 2, b + 1) for g in (graph, f)]
        for one, other in zip(ours, wanted):
            cases.close(one, other)
    text = make_fx(function)(v, b).code
    assert "_sparse_solve" in text and "_sparse_triangular_solve" in text
    a = csr(v)
    make_fx(lambda b: torch.linalg.solve(a, b))(b)  # what is known of a pattern lives on
    cases.close(torch.linalg.solve(a, b), torch.linalg.solve(a.to_dense(), b))


# eigenvectors

SIZE = 7
DIAGONALS = [*[(i, i) for i in range(SIZE)], *[(i, i + 1) for i in range(SIZE - 1)], (0, 6), (6, 0)]


def banded(v):
    """A matrix that is not symmetric: what is asked is of its symmetric part."""
    values = torch.cat([v * v + 2 * torch.arange(6), v[:1] * 0 + 1.5, v, v[:2]])
    return torch.sparse_coo_tensor(torch.tensor(DIAGONALS).t(), values, (SIZE, SIZE))


def up_to_signs(found):
    numbers, vectors = found
    turned = vectors @ (vectors.mH @ d(SIZE, numbers.shape[0]).to(vectors.dtype))
    return torch.cat([numbers.to(vectors.dtype).unsqueeze(0), turned])


POSITIVE = torch.diag(d(SIZE) + 2) + 0.1 * d(SIZE, SIZE) @ d(SIZE, SIZE).T
EIGEN = {
    "largest": (lambda a: up_to_signs(torch.lobpcg(a, 2)), ()),
    "smallest": (lambda a: up_to_signs(torch.lobpcg(a, 2, largest=False)), ()),
    "values": (lambda a: torch.lobpcg(a, 2)[0], ()),
    "generalized": (lambda a, b: up_to_signs(torch.lobpcg(a, 2, B=b)), (POSITIVE,)),
    "sparse B": (lambda a, b: up_to_signs(torch.lobpcg(
        a, 2, B=b if a.layout is torch.strided else b.to_sparse_csr())), (POSITIVE,)),
}


@pytest.mark.parametrize(("name", "kind"), rows(EIGEN))
def test_eigenvectors(name, kind):
    function, operands = EIGEN[name]
    if operands and kind in ("complex_backward", "vmap_dense") and (
            name == "sparse B" or kind == "complex_backward"):
        return  # a batch of patterns; a B that is not Hermitian

    def dense(a, *b):
        return function((a + a.mH) / 2, *[(m + m.mH) / 2 for m in b])

    for make in (banded, lambda v: banded(v).to_sparse_csr(), lambda v: banded(v).to_sparse_csc()):
        cases.CHECKS[kind](cases.Row(function, make, operands, dense), cases.values())
        if kind == "compiled":
            break


def test_eigenvectors_of_large_matrices():
    n = 300
    line = torch.arange(n, dtype=torch.float64)
    offsets = torch.tensor([0, 1, -1])
    v = torch.stack([line, torch.ones(n), torch.ones(n)]).to(torch.float64).requires_grad_()
    a = torch.sparse.spdiags(v, offsets, (n, n)).to_sparse_csr()
    whole = a.to_dense()
    for largest in (True, False):
        ours, wanted = [torch.lobpcg(m, 2, largest=largest) for m in (a, whole)]
        assert torch.allclose(ours[0], wanted[0])
        assert torch.allclose(ours[1].abs(), wanted[1].abs(), atol=1e-6)
        one, other = [torch.autograd.grad((out[1] ** 4).sum() + out[0].sum(), v,
                                          retain_graph=True)[0] for out in (ours, wanted)]
        assert torch.allclose(one, other, atol=1e-6)
    double = torch.lobpcg(a, 2, B=torch.eye(n, dtype=torch.float64).to_sparse() * 2)[0]
    assert torch.allclose(double * 2, torch.lobpcg(a, 2)[0])
    with pytest.raises(RuntimeError, match="one by one"):
        torch.lobpcg(torch.eye(3).expand(2, 3, 3).to_sparse(), 1)
