"""Custom functions that compute again and sweep in their backward; streams that are set back."""

from __future__ import annotations

import warnings

import pytest

import pullback as pb


class Again(pb.autograd.Function):
    """A part of the forward that keeps its input only, as reversible networks do."""

    @staticmethod
    def forward(ctx, x, module):
        ctx.module = module
        ctx.save_for_backward(x)
        with pb.no_grad():
            return module(x)

    @staticmethod
    def backward(ctx, grad):
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with pb.enable_grad():
            y = ctx.module(x)
        pb.autograd.backward(y, grad)
        return x.grad, None


@pytest.mark.parametrize("direct", [False, True], ids=["inside", "inside and outside"])
def test_gradients_that_a_backward_collects(direct):
    results = []
    for compiled in False, True:
        pb.manual_seed(0)
        layer, x = pb.nn.Linear(3, 3), pb.randn(2, 3, requires_grad=True)

        def loss(x, layer=layer):
            out = Again.apply(x * 2, layer)
            return (out**2).sum() + (layer(x).sum() if direct else 0)

        run = pb.compile(loss) if compiled else loss
        for _ in range(3):  # they add up
            run(x).backward()
        results.append([layer.weight.grad, layer.bias.grad, x.grad])
    assert all(pb.allclose(a, b) for a, b in zip(*results, strict=True))


def test_streams_that_are_set_back_run_as_written():
    def f(x):
        before = pb.get_rng_state()
        noise = pb.rand(2)
        pb.set_rng_state(before)
        return x + noise - pb.rand(2)

    with pytest.warns(match="sets the state of a generator"):
        assert pb.compile(f)(pb.zeros(2)).tolist() == [0, 0]
    with pytest.raises(pb.errors.DataDependentError):
        pb.compile(f, fullgraph=True)(pb.zeros(2))


def test_streams_that_are_set_are_compiled():
    given = pb.Generator().manual_seed(7).get_state()

    def f(x):
        pb.set_rng_state(given)
        return x + pb.rand(2)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = pb.compile(f)
        assert compiled(pb.zeros(2)).tolist() == compiled(pb.zeros(2)).tolist()
        assert compiled(pb.zeros(2)).tolist() == f(pb.zeros(2)).tolist()
