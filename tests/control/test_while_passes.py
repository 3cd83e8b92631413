"""Derivatives of loops whose number of steps is not known, in captures: any order, any nesting.

Eager loops are Python loops that the tape records: what captures give must be the same.
"""

import pytest

import pullback as torch
from pullback import func
from pullback.control import associative_scan, cond, map, scan, while_loop
from pullback.fx.make_fx import make_fx
from pullback.utils._pytree import tree_leaves

X = torch.tensor([0.3, 0.6, 0.9], dtype=torch.float64)
Y = torch.tensor([1.1, 0.8, 1.3], dtype=torch.float64)
W = torch.tensor([0.7, -0.3, 0.5], dtype=torch.float64)
COUNTS = torch.tensor([0, 2, 4])


def same(found, wanted):
    for a, b in zip(tree_leaves(found), tree_leaves(wanted), strict=True):
        assert torch.allclose(a, b, rtol=1e-9)


def looped(x, y):
    """Steps by a value, an integer and two vectors carried, a tensor from outside read."""
    def body(i, v, u):
        return i + 1, (v * y).sin() + 0.1 * u * W, u * 0.9 + v

    start = torch.tensor(0), x, torch.ones(3, dtype=torch.float64)
    return while_loop(lambda i, v, u: (i < 5) & (v.sum() < 100), body, start)[1]


def counted(x, n):
    return while_loop(lambda i, v: i < n, lambda i, v: (i + 1, v * v.sin() + x),
                      (torch.tensor(0), x))[1]


def loss(x, y):
    return (looped(x, y) ** 2).sum()


def nested(x):
    def body(i, v):
        within = while_loop(lambda j, u: j < i, lambda j, u: (j + 1, u.sin() * 1.2),
                            (torch.tensor(0), v))[1]
        return i + 1, within + 0.1 * v

    return while_loop(lambda i, v: i < 4, body, (torch.tensor(0), x))[1]


def mixed(x):
    """A branch in a loop in a scan."""
    def step(carry, row):
        def body(i, v):
            return i + 1, cond(v.sum() > 0, lambda a: a.sin() * row, lambda a: a.cos() - row, (v,))

        v = while_loop(lambda i, v: i < 2, body, (torch.tensor(0), carry))[1]
        return v, v * row

    return scan(step, x, torch.stack([x, Y, W]))[1]


def squared(f):
    return lambda *args: (f(*args) ** 2).sum()


CASES = {
    "gradient": (func.grad(loss, (0, 1)), X, Y),
    "forward": (lambda x, y: func.jvp(looped, (x, y), (y, x)), X, Y),
    "hessian": (func.hessian(loss), X, Y),
    "reverse twice": (func.grad(lambda x: func.grad(loss)(x, Y).sin().sum()), X),
    "forward of reverse": (lambda x: func.jvp(lambda x: func.grad(loss)(x, Y), (x,), (Y,)), X),
    "reverse of forward": (func.grad(
        lambda x: func.jvp(lambda x: looped(x, Y), (x,), (Y,))[1].sum()), X),
    "third": (func.grad(func.grad(func.grad(lambda s: loss(X * s, Y)))),
              torch.tensor(1.0, dtype=torch.float64)),
    "batch": (lambda x, n: func.vmap(counted, (None, 0))(x, n), X, COUNTS),
    "gradients of a batch": (
        lambda x, n: func.vmap(func.grad(squared(counted)), (None, 0))(x, n), X, COUNTS),
    "second derivatives of a batch": (lambda x, n: func.vmap(func.grad(lambda x, n: func.grad(
        squared(counted))(x, n).sin().sum()), (None, 0))(x, n), X, COUNTS),
    "tangents of a batch": (lambda x, n: func.vmap(
        lambda n: func.jvp(lambda x: counted(x, n), (x,), (Y,))[1])(n), X, COUNTS),
    "batches of batches": (lambda xs, n: func.vmap(lambda x: func.vmap(
        func.grad(squared(counted)), (None, 0))(x, n))(xs), torch.stack([X, Y]), COUNTS),
    "nested": (func.grad(lambda x: func.grad(squared(nested))(x).sum()), X),
    "mixed": (func.hessian(squared(mixed)), X),
    "scan": (func.hessian(lambda x: scan(lambda c, r: (c * r.sin(), c + r), x, torch.stack(
        [x, Y]))[1].pow(2).sum()), X),
    "map": (func.hessian(lambda x: map(lambda r, a: (r * a).sin(), torch.stack([x, Y]), x).pow(
        2).sum()), X),
    "prefixes": (func.hessian(lambda x: associative_scan(
        lambda a, b: a * b.cos(), torch.stack([x, Y, W]), 0).sum()), X),
    "branch": (func.hessian(lambda x: cond(
        x.sum() > 0, lambda a: a.sin() * W, lambda a: a.exp(), (x,)).pow(2).sum()), X),
}


@pytest.mark.parametrize("name", CASES)
def test_captures(name):
    f, *args = CASES[name]
    same(make_fx(f)(*args)(*args), f(*args))


@pytest.mark.parametrize("f", [looped, lambda x, y: mixed(x) * y, lambda x, y: nested(x) * y],
                         ids=["looped", "mixed", "nested"])
def test_compiled_to_second_order(f):
    found = []
    for g in (f, torch.compile(f)):
        u, v = X.clone().requires_grad_(), Y.clone().requires_grad_()
        (slope,) = torch.autograd.grad((g(u, v) ** 2).sum(), u, create_graph=True)
        found.append([slope, *torch.autograd.grad(slope.sin().sum(), (u, v))])
    same(*found)


def test_a_compiled_hessian():
    f = func.hessian(loss)
    same(torch.compile(f)(X, Y), f(X, Y))


def test_parameters_of_a_module():
    layer = torch.nn.Linear(3, 3, dtype=torch.float64)

    def f(x):
        return while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, layer(v).tanh()),
                          (torch.tensor(0), x))[1]

    found = []
    for g in (f, torch.compile(f)):
        layer.zero_grad()
        g(X).sum().backward()
        found.append([p.grad.clone() for p in layer.parameters()])
    same(*found)


def test_a_loop_without_steps():
    f = func.grad(lambda x: counted(x, torch.tensor(0)).sum())
    same(make_fx(f)(X)(X), torch.ones(3, dtype=torch.float64))


def test_graphs_of_graphs():
    graph = make_fx(func.grad(loss))(X, Y)
    assert "torch.ops.higher_order.while_loop_backward(" in graph.code
    same(make_fx(lambda x, y: graph(x, y) * 2)(X, Y)(X, Y), func.grad(loss)(X, Y) * 2)
    same(make_fx(func.jacrev(lambda x: graph(x, Y)))(X)(X), func.hessian(loss)(X, Y))
