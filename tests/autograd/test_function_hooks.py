"""Hooks, anomaly mode and `debug.nans()` together with custom functions."""

import pytest

import pullback as torch
from pullback import debug
from pullback.autograd.graph import saved_tensors_hooks
from tests.helpers.custom_functions import custom_function


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = x * x
        ctx.save_for_backward(x, out)
        return out

    @staticmethod
    def backward(ctx, g):
        x, out = ctx.saved_tensors
        assert out.grad_fn is not None or not torch.is_grad_enabled()
        return 2 * x * g


Bad = custom_function("Bad", torch.clone, lambda g: g / 0)


def test_saved_tensors_are_packed():
    x = torch.tensor(3.0, requires_grad=True)
    seen = []
    with saved_tensors_hooks(lambda t: seen.append("pack") or t.detach().clone(),
                             lambda t: seen.append("unpack") or t):
        y = Square.apply(x)
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert seen == ["pack"] * 2 + ["unpack"] * 2 and g == 6
    assert torch.autograd.grad(g, x)[0] == 2


def test_hooks_of_its_node_and_result():
    x = torch.tensor(3.0, requires_grad=True)
    y = Square.apply(x)
    seen = []
    y.register_hook(lambda g: g * 2)
    y.grad_fn.register_prehook(lambda gs: seen.append(gs[0].item()))
    y.grad_fn.register_hook(lambda gi, go: seen.append(gi[0].item()))
    y.backward()
    assert seen == [2, 12] and x.grad == 12


def test_its_backward_is_watched():
    x = torch.ones(2, requires_grad=True)
    with debug.nans(), pytest.raises(RuntimeError, match=r"gradient of bad .*test_function_hooks"):
        Bad.apply(x).sum().backward()


def test_backward_inside_of_backward():
    class Again(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.detach() ** 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                inner = x.detach().requires_grad_()
                (inner**2).backward()
            return g * inner.grad

    x = torch.tensor(3.0, requires_grad=True)
    Again.apply(x).backward()
    assert x.grad == 6
