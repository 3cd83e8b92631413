"""`autograd.functional`: Jacobians, Hessians and products, for tensors and tuples of them."""

import numpy as np
import pytest

import pullback as torch
from pullback.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp


def tensor(*shape, seed=0, requires_grad=False):
    values = np.random.default_rng(seed).normal(size=shape)
    return torch.tensor(values, requires_grad=requires_grad)


def close(a, b):
    assert tuple(a.shape) == tuple(b.shape)
    assert np.allclose(a.detach().numpy(), b.detach().numpy())


def two(x, y):
    return (x @ y).sin(), (x * y).sum()


def cubic(x, y):
    return (x.pow(3) * y).sum()


X, Y = tensor(2, 3), tensor(3, seed=1)
WAYS = [
    dict(strategy=strategy, vectorize=vectorize)
    for strategy in ("reverse-mode", "forward-mode")
    for vectorize in (False, True)
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("create_graph", [False, True])
def test_jacobian_of_tuples(way, create_graph):
    x, y = X.clone().requires_grad_(), Y.clone().requires_grad_()
    (xx, xy), (sx, sy) = jacobian(two, (x, y), create_graph=create_graph, **way)
    cos = torch.cos(X @ Y)
    close(xx, torch.einsum("i,ij,k->ijk", cos, torch.eye(2, dtype=torch.float64), Y))
    close(xy, cos[:, None] * X)
    close(sx, Y.expand(2, 3))
    close(sy, X.sum(0))
    assert xx.requires_grad == create_graph
    if create_graph:
        (found,) = torch.autograd.grad(xy.sum(), y, retain_graph=True)
        close(found, (-torch.sin(X @ Y)[:, None] * X * X.sum(1, keepdim=True)).sum(0))


@pytest.mark.parametrize("way", WAYS)
def test_jacobian_of_one(way):
    close(jacobian(torch.exp, Y, **way), torch.diag(torch.exp(Y)))
    zero, scalar = jacobian(lambda x: (x[:0], x.sum()), Y, **way)
    assert tuple(zero.shape) == (0, 3)
    close(scalar, torch.ones(3, dtype=torch.float64))
    close(jacobian(lambda x: Y, X, **way), torch.zeros(3, 2, 3))


@pytest.mark.parametrize("vectorize", [False, True])
@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_hessian(vectorize, strategy):
    way = dict(vectorize=vectorize, outer_jacobian_strategy=strategy)
    (xx, xy), (yx, yy) = hessian(cubic, (X, Y), **way)
    eye = torch.eye(6, dtype=torch.float64).reshape(2, 3, 2, 3)
    close(xx, eye * (6 * X * Y))
    close(xy, torch.einsum("ij,jk->ijk", 3 * X**2, torch.eye(3, dtype=torch.float64)))
    close(yx, torch.movedim(xy, -1, 0))
    close(yy, torch.zeros(3, 3))
    close(hessian(lambda x: x.pow(3).sum(), Y, **way), torch.diag(6 * Y))


@pytest.mark.parametrize("vectorize", [False, True])
def test_strict_hessian_by_forward_mode(vectorize):
    def f(x, y):
        return (x.pow(2) * y.sin()).sum() + y.pow(3).sum() * x.exp().sum()

    options = {"strict": True, "vectorize": vectorize}
    wanted = hessian(f, (X, Y), strict=True)
    found = hessian(f, (X, Y), outer_jacobian_strategy="forward-mode", **options)
    for row, other in zip(wanted, found):
        for a, b in zip(row, other):
            assert np.allclose(a.numpy(), b.numpy())


def test_hessian_with_history():
    x = Y.clone().requires_grad_()
    h = hessian(lambda x: x.pow(3).sum(), x, create_graph=True)
    (g,) = torch.autograd.grad(h.sum(), x)
    close(g, torch.full((3,), 6.0))
    assert not hessian(lambda x: x.pow(3).sum(), x).requires_grad


@pytest.mark.parametrize("create_graph", [False, True])
def test_products(create_graph):
    x, y = X.clone().requires_grad_(), Y.clone().requires_grad_()
    v = tensor(2, 3, seed=2), tensor(3, seed=3)
    (xx, xy), (yx, yy) = hessian(cubic, (X, Y))
    for product in (vhp, hvp):
        value, (a, b) = product(cubic, (x, y), v, create_graph=create_graph)
        close(value, cubic(X, Y))
        close(a, (xx * v[0]).sum((2, 3)) + (xy * v[1]).sum(2))
        close(b, (yx * v[0]).sum((1, 2)) + (yy * v[1]).sum(1))
        assert value.requires_grad == a.requires_grad == create_graph
    outputs, (p, q) = jvp(two, (x, y), v, create_graph=create_graph)
    close(outputs[0], torch.sin(X @ Y))
    close(p, torch.cos(X @ Y) * (v[0] @ Y + X @ v[1]))
    close(q, (v[0] * Y + X * v[1]).sum())
    assert p.requires_grad == create_graph
    w = tensor(2, seed=4), torch.tensor(2.0, dtype=torch.float64)
    outputs, (a, b) = vjp(two, (x, y), w, create_graph=create_graph)
    close(a, torch.outer(w[0] * torch.cos(X @ Y), Y) + 2 * Y.expand(2, 3))
    close(b, (w[0] * torch.cos(X @ Y)) @ X + 2 * X.sum(0))
    assert a.requires_grad == create_graph


def test_without_vector():
    one = torch.tensor([2.0])
    close(vjp(torch.exp, one)[1], torch.exp(one))
    close(jvp(torch.exp, one)[1], torch.exp(one))
    close(vhp(lambda x: x**3, one)[1], 6 * one)
    close(hvp(lambda x: x**3, one)[1], 6 * one)
    for product in (vjp, jvp):
        with pytest.raises(RuntimeError, match="can only be None"):
            product(torch.exp, X)


def test_under_no_grad():
    x = Y.clone().requires_grad_()
    with torch.no_grad():
        close(jacobian(torch.exp, x), torch.diag(torch.exp(Y)))
        assert vjp(torch.exp, x, Y, create_graph=True)[1].requires_grad


def linear(x, y):
    return (2 * x + 3 * y).sum()


def first_only(x, y):
    return x.pow(2).sum()


def detached(x, y):
    return (x.detach() * y.detach()).sum()


@pytest.mark.parametrize(
    "call, match",
    [
        (lambda: jacobian(first_only, (X, Y), strict=True), "Output 0 .* independent of input 1"),
        (lambda: jacobian(detached, (X, Y), strict=True), "does not require gradients"),
        (lambda: vjp(first_only, (X, Y), strict=True), "independent of input 1"),
        (lambda: jvp(first_only, (X, Y), (X, Y), strict=True), "independent of input 1"),
        (lambda: hessian(linear, (X, Y), strict=True), "jacobian .* is independent"),
        (lambda: hessian(first_only, (X, Y), strict=True), "independent of"),
        (lambda: vhp(linear, (X, Y), (X, Y), strict=True), "jacobian .* is independent"),
        (lambda: hvp(linear, (X, Y), (X, Y), strict=True), "jacobian .* is independent"),
        (
            lambda: jacobian(
                linear, (X.clone().requires_grad_(), Y), strict=True, create_graph=True
            ),
            "jacobian .* independent of input 0",
        ),
        (
            lambda: jacobian(first_only, (X, Y), strict=True, strategy="forward-mode"),
            "Output 0 .* independent of input 1",
        ),
        *[
            (
                lambda f=f, v=v: hessian(
                    f, (X, Y), strict=True, vectorize=v, outer_jacobian_strategy="forward-mode"
                ),
                match,
            )
            for v in (False, True)
            for f, match in (
                (linear, "jacobian .* is independent"),
                (first_only, "independent of"),
                (detached, "does not require gradients"),
                (lambda x, y: x.pow(3).sum() + y.pow(3).sum(), "Output 0 .* of input 1"),
                (lambda x, y: (x * y).sum(), "Output 0 .* of input 0"),
            )
        ],
    ],
)
def test_strict(call, match):
    with pytest.raises(RuntimeError, match=match) as caught:
        call()
    assert "strict mode" in str(caught.value)
    assert "test_functional.py:" in str(caught.value)


def test_errors():
    with pytest.raises(TypeError, match="tuple of Tensors"):
        jacobian(torch.exp, [X])
    with pytest.raises(TypeError, match="outputs of the user-provided function"):
        jacobian(lambda x: 3, X)
    with pytest.raises(AssertionError, match="strategy"):
        jacobian(torch.exp, X, strategy="sideways")
    with pytest.raises(RuntimeError, match="single element"):
        hessian(torch.exp, X)
    with pytest.raises(RuntimeError, match="single Tensor"):
        vhp(two, (X, Y), (X, Y))
    with pytest.raises(RuntimeError, match="invalid size"):
        vjp(torch.exp, X, Y)
    with pytest.raises(RuntimeError, match="invalid length"):
        jvp(two, (X, Y), (X,))
