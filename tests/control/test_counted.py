"""`fori_loop` and `switch`, which are made of the other operators, and checkpoints of scans."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback import errors, func
from pullback.control import fori_loop, scan, switch

X = pb.tensor([0.3, -0.8, 1.1], dtype=pb.float64)


def powers(x, n):
    return fori_loop(1, n, lambda i, c: (c[0] * x + i, c[1] + c[0].sin()), (x * 1, x * 0))


def up_to(x, n):
    return fori_loop(pb.tensor(0), n, lambda i, c: (c * x).sin() + i, x * 1)


def one_of(x, index):
    return switch(index, [pb.sin, lambda x: x * 3, lambda x: x.exp() - 1, pb.cos], x)


def close(a, b):
    for u, v in zip(a, b, strict=True):
        np.testing.assert_allclose(u.detach().numpy(), v.detach().numpy(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("n", [0, 1, 2, 9])
def test_loops_over_numbers(n):
    wanted, other = X.numpy() * 1, X.numpy() * 0
    for i in range(1, n):
        wanted, other = wanted * X.numpy() + i, other + np.sin(wanted)
    for f in (powers, pb.compile(powers)):
        found = f(X, n)
        np.testing.assert_allclose(found[0].numpy(), wanted, rtol=1e-12)
        np.testing.assert_allclose(found[1].numpy(), other, rtol=1e-12, atol=1e-13)


def test_gradients_of_loops_over_numbers():
    for f in (lambda x: sum(t.sum() for t in powers(x, 5)), lambda x: up_to(x, pb.tensor(4)).sum()):
        slope, u, v = func.grad(f), X.clone().requires_grad_(), X.clone().requires_grad_()
        f(u).backward()
        pb.compile(f)(v).backward()
        close([u.grad, u.grad], [v.grad, pb.compile(slope)(X)])
        forward = pb.compile(lambda x, f=f: func.jvp(f, (x,), (x,))[1])
        close([func.jvp(f, (X,), (X,))[1]], [forward(X)])


def test_bounds_that_are_tensors():
    compiled = pb.compile(up_to)
    for n in (0, 1, 7):
        close([up_to(X, pb.tensor(n))], [compiled(X, pb.tensor(n))])


@pytest.mark.parametrize("index", [-5, 0, 1, 2, 3, 8])
def test_switches(index):
    branch = [np.sin, lambda x: x * 3, lambda x: np.exp(x) - 1, np.cos][min(max(index, 0), 3)]
    for f in (one_of, pb.compile(one_of)):
        for given in (index, pb.tensor(index)):
            np.testing.assert_allclose(f(X, given).numpy(), branch(X.numpy()), rtol=1e-12)
    x = X.clone().requires_grad_()
    pb.compile(one_of)(x, pb.tensor(index)).sum().backward()
    close([x.grad], [func.grad(lambda x: one_of(x, index).sum())(X)])


def test_a_batch_of_switches():
    rows, index = pb.stack([X, X * 2, X * 3]), pb.tensor([2, 0, 9])
    found = func.vmap(one_of)(rows, index)
    close(list(found), [one_of(rows[i], int(index[i])) for i in range(3)])


def test_what_is_refused():
    with pytest.raises(errors.RefusedValue, match="the body must be callable, got int"):
        fori_loop(0, 3, 4, X)
    with pytest.raises(errors.RefusedValue, match="one or more functions"):
        switch(0, [], X)
    with pytest.raises(errors.RefusedValue, match="a tensor of one"):
        switch(pb.tensor([0, 1]), [pb.sin, pb.cos], X)
    for bad in ("some", 0, 1.5, True):
        with pytest.raises(errors.RefusedValue, match="checkpoint must be"):
            scan(lambda c, x: (c, x), X, X[:, None], checkpoint=bad)


def test_checkpoints_mean_nothing_to_values_that_can_be_seen():
    def step(c, x):
        return c * x, c + x

    rows = pb.stack([X, X * 2, X * 3])
    for how in ("sqrt", 2):
        for a, b in zip(scan(step, X, rows), scan(step, X, rows, checkpoint=how), strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
