"""Memory that is written keeps its layout: views that could be taken before can be taken after.

An operator chooses the layout of its result; where a write is a new value instead (transforms and
captures) the layout of the tensor is that of before all the same.
"""

import numpy as np
import pytest

import pullback as torch
from pullback import func
from pullback.aot import aot_function, nop
from pullback.decomp import decomposition_table
from pullback.fx.make_fx import make_fx

WAYS = {
    "traced": lambda f, x: make_fx(f)(x),
    "fake": lambda f, x: make_fx(f, tracing_mode="fake")(x),
    "symbolic": lambda f, x: make_fx(f, tracing_mode="symbolic")(x),
    "decomposed": lambda f, x: make_fx(f, decomposition_table.copy(), "fake")(x),
    "functionalized": lambda f, x: func.functionalize(f),
    "functionalized views": lambda f, x: func.functionalize(f, remove="mutations_and_views"),
    "traced functional": lambda f, x: make_fx(func.functionalize(f), tracing_mode="fake")(x),
    "mapped": lambda f, x: lambda x: [t[1] for t in func.vmap(f)(torch.stack([x + 1, x]))],
    "mapped inside": lambda f, x: lambda x: [
        t[1] for t in func.vmap(f, in_dims=2)(torch.stack([x + 1, x], 2))],
    "jvp": lambda f, x: lambda x: func.jvp(f, (x,), (x,))[0],
    "vjp": lambda f, x: lambda x: func.vjp(f, x)[0],
    "aot": lambda f, x: aot_function(f, nop),
    "aot with gradients": lambda f, x: lambda x: aot_function(f, nop)(x.requires_grad_()),
    "numpy": lambda f, x: torch.compile(f, backend="numpy"),
}


def scans(x):
    y = x * 1
    row = y.view(-1)
    column = y.t()
    column.cumsum_(0)
    row.add_(1)
    column.mul_(2)
    return y, row, column, y.view(3, 2)


def transposed(x):
    y = (x * 1).t()
    column = y.t().view(-1)
    y.cumsum_(0)
    column.mul_(3)
    y.t().view(6).cumprod_(0)
    return y, column, y.t().view(6)


def windows(x):
    y = (x * 2).view(-1)
    part = y.unfold(0, 2, 3)
    part.mul_(x[:, :2])
    y.add_(1)
    return y, part, y.unfold(0, 3, 3)


def drawn(x):
    y = x * 1
    y.detach().unfold(0, 2, 2).normal_()
    return y, y.view(-1)


def test_windows_are_filled_as_they_lie():
    x = torch.ones(2, 3)
    graph = make_fx(drawn, tracing_mode="fake")(x)
    torch.manual_seed(3)
    found = graph(x)[0]
    torch.manual_seed(3)
    assert torch.equal(found, drawn(x)[0])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", [scans, transposed, windows])
def test_layout_stays(f, way):
    x = torch.arange(1.0, 7.0, dtype=torch.float64).reshape(2, 3)
    for found, wanted in zip(WAYS[way](f, x.clone())(x.clone()), f(x.clone()), strict=True):
        np.testing.assert_array_equal(found.detach().numpy(), wanted.numpy())
        if way not in ("mapped", "mapped inside", "functionalized views"):  # these are copies
            assert found.stride() == wanted.stride()
