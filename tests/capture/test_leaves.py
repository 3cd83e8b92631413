"""Compiled functions that go by whether an argument is a leaf."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback import errors


def is_leaf(x):
    return x * 2 if x.is_leaf else x * 3


def grad_fn(x):
    return x * 2 if x.grad_fn is None else x * 3


def retain(x):
    x.retain_grad()
    return x * 2


def stop(x):
    x.requires_grad_(False)
    return (x * 2).requires_grad_()


def after_accumulation(x):
    x.register_post_accumulate_grad_hook(lambda t: None)
    return x * 2


def result(f, x):
    try:
        y = f(x)
    except errors.NoGraph as error:
        return str(error).splitlines()[0]
    y.sum().backward()
    grad = x.grad if x.is_leaf or x.retains_grad else None
    return y.tolist(), None if grad is None else grad.tolist(), x.requires_grad, x.retains_grad


@pytest.mark.parametrize("first", [0, 1], ids=["leaf first", "other first"])
@pytest.mark.parametrize("f", [is_leaf, grad_fn, retain, stop, after_accumulation])
def test_leaves_and_others_have_programs_of_their_own(f, first):
    compiled = torch.compile(f, backend="numpy")
    for n in range(4):
        expected, found = (
            result(g, x if (n + first) % 2 == 0 else x * 1)
            for g, x in ((h, torch.ones(3, requires_grad=True)) for h in (f, compiled)))
        assert found == expected


def test_one_program_serves_both_if_nobody_asks():
    f = torch.compile(lambda x: x * 2, backend="numpy")
    x = torch.ones(3, requires_grad=True)
    f(x)
    f(x * 1)
    assert len(f.programs) == 1


def test_a_tensor_of_a_closure():
    x = torch.ones(3, requires_grad=True)
    kept = [x]
    f = torch.compile(
        lambda a: a * kept[0] * (2 if kept[0].is_leaf else 3), backend="numpy")
    a = torch.ones(3)
    assert f(a).tolist() == [2, 2, 2]
    kept[0] = x * 1
    assert f(a).tolist() == [3, 3, 3]
