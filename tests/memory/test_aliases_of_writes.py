"""Writes seen through other views and aliases: in transforms and captures as in eager."""

import numpy as np
import pytest

import pullback as torch
from pullback import func
from pullback.aot import aot_function, nop
from pullback.fx.make_fx import make_fx

FORMS = {
    "functionalized": func.functionalize,
    "without views": lambda f: func.functionalize(f, remove="mutations_and_views"),
    "aot": lambda f: aot_function(f, nop),
    "traced": lambda f: lambda x: make_fx(f, tracing_mode="fake")(x.clone())(x),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("view", [
    lambda v: v.view(6), lambda v: v.as_strided((6,), (1,), 0), lambda v: v[0],
])
def test_a_view_of_what_was_written_follows_later_writes(view, form):
    """One piece of several cannot be taken anew later: its source must be up to date."""

    def f(x):
        row = x.clone().unsqueeze(0)
        row.mul_(2)
        again = view(row)
        row.add_(1)
        return again.unbind(0)[0] * 1, again[1] * 1

    x = torch.arange(6.0)
    assert [t.item() for t in FORMS[form](f)(x)] == [1.0, 3.0]


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
def test_a_silent_write_leaves_histories_in_functional_forms(remove):
    def f(x):
        y = x * 2
        column = y.view(3, 1)
        with torch.no_grad():
            column.mul_(5)
        return column

    x = torch.ones(3, requires_grad=True)
    out = func.functionalize(f, remove=remove)(x)
    assert out.tolist() == [[10.0]] * 3
    assert torch.autograd.grad(out.sum(), x)[0].tolist() == [2.0] * 3


def turned():
    x = torch.arange(1.0, 7.0).reshape(2, 3).requires_grad_()
    return x, (x.t() * 1).contiguous().t()  # cells 0 to 5 are [0,0], [1,0], [0,1], ...


def test_writes_by_strides_into_memory_that_the_view_does_not_show():
    x, y = turned()
    part = y[1:].as_strided((3,), (1,), 1).squeeze()  # [1,0], [0,1], [1,1]
    part.mul_(torch.tensor([2.0, 10.0, 100.0]))
    assert y.tolist() == [[1.0, 20.0, 3.0], [8.0, 500.0, 6.0]]
    (one,) = torch.autograd.grad(part.sum(), x, retain_graph=True)
    assert one.tolist() == [[0.0, 10.0, 0.0], [2.0, 100.0, 0.0]]
    (all_,) = torch.autograd.grad(y.sum(), x)  # the gradient is expanded: it has no such memory
    assert all_.tolist() == [[1.0, 10.0, 1.0], [2.0, 100.0, 1.0]]


def test_detached_aliases_of_plain_tensors_inside_of_transforms():
    def f(s):
        base = torch.ones(3)
        alias = base.detach()
        base.mul_(s)  # from here on it has a value for each example
        seen = alias * 1
        alias[1:].add_(1)
        return base, alias, seen

    base, alias, seen = func.vmap(f)(torch.tensor([2.0, 3.0]))
    assert seen.tolist() == [[2.0] * 3, [3.0] * 3]
    assert base.tolist() == alias.tolist() == [[2.0, 3.0, 3.0], [3.0, 4.0, 4.0]]


def test_detached_aliases_of_tensors_from_outside():
    held = torch.zeros(3)

    def f(s):
        held.detach().add_(s)
        return held * s

    out, pull = func.vjp(f, torch.ones(3))
    assert out.tolist() == held.tolist() == [1.0] * 3
    assert pull(torch.ones(3))[0].tolist() == [1.0] * 3
    x = torch.ones(2, requires_grad=True)
    asked = []

    def g(s):
        y = x * 2
        alias = y.detach()
        alias.zero_()
        asked.append((y.requires_grad, alias.requires_grad, alias._base))
        return (y * s).sum()

    assert func.grad(g)(torch.tensor(1.0)).item() == 0.0
    assert asked == [(True, False, None)]


def test_a_detached_alias_has_the_history_of_what_is_written_to_it():
    def f(x, s):
        y = x * 2
        alias = y.detach()
        alias.mul_(s)
        return y, alias

    for form in (lambda f: f, func.functionalize, lambda f: aot_function(f, nop)):
        x, s = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        y, alias = form(f)(x, s)
        assert torch.autograd.grad(alias.sum(), s, retain_graph=True)[0].tolist() == [2.0, 2.0]
        assert torch.autograd.grad(y.sum(), x)[0].tolist() == [2.0, 2.0]


def test_places_by_strides_with_symbolic_sizes():
    def f(x):
        y = x.detach()
        part = y.as_strided((2, 2), (2, 1))
        y.transpose_(0, 1)
        alias = part.detach()
        alias.cumsum_(-1)
        return alias

    x = torch.arange(6).reshape(2, 3)
    graph = make_fx(f, tracing_mode="symbolic")(x.clone())
    np.testing.assert_array_equal(graph(x.clone()).numpy(), f(x.clone()).numpy())
