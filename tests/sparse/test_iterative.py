"""`sparse.linalg`: solvers by iteration, their implicit derivatives, and SciPy's beside them."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg

import pullback as torch
from pullback import func
from pullback.fx.experimental.proxy_tensor import make_fx
from pullback.sparse import linalg
from tests.helpers import sparse_cases as cases
from tests.helpers.sparse_rows import NUMBERS, d
from tests.helpers.sparse_systems import SQUARE, csr

EXACT = {"rtol": 1e-13, "atol": 1e-15}
QUARTER = torch.eye(4, dtype=torch.float64) * 0.25


def squared(a):
    """A matrix that is Hermitian and positive definite."""
    whole = a if a.layout is torch.strided else a.to_dense()
    return whole @ whole.mH


def product(a, b):
    return torch.linalg.solve(squared(a), b)


WAYS = {  # name -> (function of a matrix and a vector, what it equals)
    "cg": (lambda a, b: linalg.cg(squared(a), b, **EXACT)[0], product),
    "cg of a function": (lambda a, b: linalg.cg(
        lambda v: a @ (a.to_dense().mH @ v), b, **EXACT)[0], product),
    "bicgstab": (lambda a, b: linalg.bicgstab(a, b, **EXACT)[0], torch.linalg.solve),
    "bicgstab of a function": (lambda a, b: linalg.bicgstab(
        lambda v: a @ v, b, b * 2, M=lambda v: v / 3, **EXACT)[0], torch.linalg.solve),
    "gmres": (lambda a, b: linalg.gmres(a, b, restart=3, **EXACT)[0], torch.linalg.solve),
    "gmres with M": (lambda a, b: linalg.gmres(
        a, b, M=QUARTER.to(b.dtype), **EXACT)[0], torch.linalg.solve),
}
COMPILED = ("bicgstab", "gmres with M", "cg of a function")


@pytest.mark.parametrize(("name", "kind"), [
    (n, k) for n in WAYS for k in (*NUMBERS, "vmap_dense") if k != "compiled" or n in COMPILED])
def test_derivatives_and_transforms(name, kind):
    function, dense = WAYS[name]
    for layout in ("uncoalesced", "csr", "bsc") if kind == "forward" else ("csr",):
        cases.CHECKS[kind](cases.Row(function, SQUARE[layout], (d(4),), dense), cases.values())


def test_several_right_sides():
    a, b = csr(cases.values()), d(4, 3)
    for solve in (linalg.bicgstab, linalg.gmres):
        x, info = solve(a, b, **EXACT)
        cases.close(x, torch.linalg.solve(a, b))
        assert info.tolist() == [0, 0, 0]
        (g,) = torch.autograd.grad(solve(a, b.requires_grad_(), **EXACT)[0].sum(), b)
        cases.close(g, torch.autograd.grad(torch.linalg.solve(a, b).sum(), b)[0])


def test_derivatives_of_third_order():
    v, b, one = cases.values(), d(4), torch.tensor(1.0, dtype=torch.float64)

    def third(solve):
        def f(t):
            return solve(csr(v * t), b * t * t).sum()

        return func.grad(func.grad(func.grad(f)))(one), func.jvp(
            func.grad(func.grad(f)), (one,), (one,))[1]

    for solve in (linalg.bicgstab, linalg.gmres):
        for ours, wanted in zip(third(lambda a, b, s=solve: s(a, b, **EXACT)[0]),
                                third(torch.linalg.solve)):
            assert torch.allclose(ours, wanted)


def test_batches_of_systems_in_compiled_programs():
    v, b = cases.values(), d(4)
    values, sides = torch.stack([v, v * 2, v - 0.5]), torch.stack([b, b * 0, b - 1])

    def f(v, b):
        return linalg.gmres(csr(v), b, **EXACT)[0]

    wanted = torch.stack([torch.linalg.solve(csr(x), y) for x, y in zip(values, sides)])
    cases.close(torch.compile(func.vmap(f))(values, sides), wanted)
    graph = make_fx(func.grad(lambda v, b: f(v, b).sum()))(v, b)
    cases.close(graph(v * 2, b + 1), func.grad(lambda v, b: f(v, b).sum())(v * 2, b + 1))


def laplacian(m):
    line = sp.diags_array([np.full(m, 2.0), -np.ones(m - 1), -np.ones(m - 1)],
                          offsets=[0, 1, -1])
    return (sp.kron(line, sp.eye_array(m)) + sp.kron(sp.eye_array(m), line)).tocsr()


@pytest.mark.parametrize("name", linalg.__all__)
def test_large_systems_beside_scipy(name):
    matrix = laplacian(20) + (sp.eye_array(400, k=3) * 0.2 if name != "cg" else 0)
    right = np.sin(np.arange(400.0) ** 2)
    a = torch.sparse.from_scipy(sp.csr_array(matrix), requires_grad=True)
    b = torch.from_numpy(right).requires_grad_()
    x, info = getattr(linalg, name)(a, b, rtol=1e-10)
    theirs, wanted = getattr(scipy.sparse.linalg, name)(matrix, right, rtol=1e-10)
    assert info.dtype is torch.int64 and int(info) == wanted == 0
    assert np.allclose(x.detach().numpy(), theirs, atol=1e-6)
    x.square().sum().backward()
    found = a.grad.values(), b.grad
    y = torch.linalg.solve(a, b)
    for ours, exact in zip(found, torch.autograd.grad(y.square().sum(), (a, b))):
        exact = exact if exact.layout is torch.strided else exact.values()
        assert torch.allclose(ours, exact, rtol=1e-4, atol=1e-4)
    ended = getattr(linalg, name)(a, b, rtol=1e-14, maxiter=1)[1]
    assert int(ended) == getattr(scipy.sparse.linalg, name)(
        matrix, right, rtol=1e-14, maxiter=1, **({"restart": 2} if name == "gmres" else {}))[1]


def test_an_inverse_that_is_near_saves_iterations():
    scale = torch.logspace(0, 8, 60, dtype=torch.float64)
    a = torch.sparse.spdiags(torch.stack([scale, torch.ones(60), torch.ones(60)]),
                             torch.tensor([0, 1, -1]), (60, 60)).to(torch.float64)
    b = d(60)
    exact = torch.linalg.solve(a, b)
    for name in linalg.__all__:
        solve = getattr(linalg, name)
        few = {"maxiter": 12, **EXACT, **({"restart": 5} if name == "gmres" else {})}
        assert int(solve(a, b, **few)[1]) != 0
        for inverse in (torch.diag(1 / scale), torch.diag(1 / scale).to_sparse_csr(),
                        lambda v: v / scale):
            x, info = solve(a, b, M=inverse, **{**few, "rtol": 1e-8})
            assert int(info) == 0 and torch.allclose(x, exact, atol=1e-7)


def test_functions_that_only_multiply():
    a = csr(cases.values())
    matrix, b = torch.sparse.to_scipy(a), d(4)

    def multiply(v):
        return torch.from_numpy(matrix @ v.numpy())

    with torch.no_grad():
        x, info = linalg.gmres(multiply, b, **EXACT)
    assert int(info) == 0
    cases.close(x, torch.linalg.solve(a, b))
    with pytest.raises(RuntimeError, match=r"numpy\(\) needs the value"):
        linalg.gmres(multiply, b)
    weight = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    x, _ = linalg.bicgstab(lambda v: weight * (a @ v), b, **EXACT)
    (g,) = torch.autograd.grad(x.sum(), weight)
    assert torch.allclose(g, -torch.linalg.solve(a, b).sum() / 4)


def test_functions_of_sparse_tensors():
    a, b = csr(cases.values()), d(4)
    leaf = a.detach().requires_grad_()
    x, _ = linalg.gmres(lambda v: leaf.sin() @ v + leaf.transpose(0, 1) @ v, b, **EXACT)
    whole = a.to_dense().requires_grad_()
    y = torch.linalg.solve(whole.sin() + whole.T, b)
    cases.close(x.detach(), y.detach())
    x.sum().backward()
    y.sum().backward()
    cases.close(leaf.grad.to_dense(), torch.where(a.to_dense() != 0, whole.grad, 0))
    cases.close((leaf @ b).detach(), a.to_dense() @ b)  # nothing of the graph is left behind


def test_ends_that_are_no_solution():
    turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]]).to_sparse_csr()
    b = torch.tensor([1.0, 0.0])
    x, info = linalg.bicgstab(turn, b)
    assert int(info) == -11 and x.isfinite().all()
    assert int(linalg.gmres(turn, b)[1]) == 0
    x, info = linalg.gmres(turn * 0, b, maxiter=3)
    assert int(info) == 3 and x.tolist() == [0, 0]
    for solve in (linalg.cg, linalg.bicgstab, linalg.gmres):
        x, info = solve(turn, b * 0, torch.ones(2))
        assert int(info) == 0 and x.tolist() == [0, 0]
        x, info = solve(turn, b, torch.ones(2), maxiter=0)
        assert int(info) != 0 and x.tolist() == [1, 1]
    a = csr(cases.values()).requires_grad_()
    x, _ = linalg.gmres(a, d(4), maxiter=1, restart=1)
    with pytest.warns(UserWarning, match="the system of the gradient was not solved"):
        x.sum().backward()


REFUSED = {
    "rows": (lambda a: linalg.cg(a, d(3)), RuntimeError, "has 3 rows"),
    "dtypes": (lambda a: linalg.cg(a, d(4).float()), RuntimeError, "float32"),
    "integers": (lambda a: linalg.cg(a, torch.ones(4).long()), RuntimeError, "floating point"),
    "a number": (lambda a: linalg.gmres(3, d(4)), TypeError, "a matrix or a function"),
    "a beginning": (lambda a: linalg.gmres(a, d(4), d(2)), RuntimeError, "x0 is"),
    "a sparse side": (lambda a: linalg.gmres(a, a), RuntimeError, "dense vector"),
    "another size": (lambda a: linalg.gmres(lambda v: v[:2], d(4)), RuntimeError, "like b gives"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    call, kind, said = REFUSED[name]
    with pytest.raises(kind, match=said):
        call(csr(cases.values()))


@pytest.mark.parametrize("name", linalg.__all__)
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128])
def test_loops_over_arrays_are_the_iterations_of_captures(name, dtype):
    random = torch.Generator().manual_seed(3)
    half = torch.randn(12, 12, dtype=dtype, generator=random)
    matrix = half @ half.mH / 12 + torch.eye(12, dtype=dtype)
    if name != "cg":
        matrix = matrix + half / 8
    b = torch.randn(12, 3, dtype=dtype, generator=random)
    inverse = torch.diag(1 / matrix.diagonal().real).to(dtype)
    solve = getattr(linalg, name)
    more = {"restart": 4} if name == "gmres" else {}
    for a, m, maxiter in ((matrix, None, 60), (matrix.to_sparse_csr(), inverse, 60),
                          (lambda v: matrix @ v, None, 2)):
        def f(b, a=a, m=m, maxiter=maxiter):
            return solve(a, b, M=m, maxiter=maxiter, rtol=1e-4, **more)

        x, info = f(b)
        y, wanted = func.vmap(f, 1, (1, 0))(b)  # a loop of operators
        assert torch.allclose(x, y, rtol=1e-2, atol=1e-3) and x.dtype is dtype
        assert info.tolist() == wanted.tolist() and ((info == 0).all() or maxiter == 2)


def test_loops_over_arrays_keep_what_they_are_given():
    a, b, kept = csr(cases.values()), d(4), []

    def multiply(v):
        kept.append((v, v.clone()))
        return a @ v

    start = torch.ones(4, dtype=torch.float64)
    for name in linalg.__all__:
        with torch.no_grad():
            x, _ = getattr(linalg, name)(multiply, b, start, maxiter=5)
            same, _ = getattr(linalg, name)(multiply, b, start, maxiter=0)
        same += 1
        assert start.tolist() == [1] * 4 and torch.equal(b, d(4)) and x is not start
    assert len(kept) > 6 and all(torch.equal(v, then) for v, then in kept)
    seen = []

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    with Mode(), torch.no_grad():
        linalg.cg(a.to_dense(), b, maxiter=3)
    assert len(seen) > 10  # who looks at operators sees them
