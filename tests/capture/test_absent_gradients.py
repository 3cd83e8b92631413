"""Outputs and written inputs that no gradient reaches: nothing is computed for them, as in eager.

Zeros in their place would meet infinities, and make gradients of what they have no part in.
"""

import pytest

import pullback as torch
from pullback.aot import aot_function, nop
from pullback.capture.absent_tangents import without
from pullback.cut.partition import min_cut_rematerialization_partition
from tests.helpers.compiler_graphs import keeping

INF = float("inf")
WAYS = {
    "eager": lambda f: f,
    "nop": lambda f: aot_function(f, nop),
    "mincut": lambda f: aot_function(f, nop, partition_fn=min_cut_rematerialization_partition),
    "numpy": lambda f: torch.compile(f, backend="numpy"),
    "native": torch.compile,
    "dynamic": lambda f: torch.compile(f, backend="numpy", dynamic=True),
}


def grads(out, inputs, create_graph=False):
    found = torch.autograd.grad(out.sum(), inputs, allow_unused=True, create_graph=create_graph)
    return [None if g is None else g.tolist() for g in found]


@pytest.mark.parametrize("way", WAYS)
def test_unused_outputs(way):
    f = WAYS[way](lambda x, y: (x * INF, x * 2 + y, (y * y).exp() / 0))
    for create_graph in (False, True):
        x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
        assert grads(f(x, y)[1], (x, y), create_graph) == [[2.0, 2.0], [1.0, 1.0]]
        found = grads(f(x, y)[0], (x, y), create_graph)
        assert found == [[INF, INF], None]


@pytest.mark.parametrize("way", WAYS)
def test_written_inputs_that_nobody_uses_later(way):
    def f(x, z):
        z.mul_(INF)
        return x * 2

    x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
    assert grads(WAYS[way](f)(x, y * 1), (x, y)) == [[2.0, 2.0], None]


@pytest.mark.parametrize("way", WAYS)
def test_gradients_that_meet(way):
    """Of what is there and what is not, in one operator: zeros stand for the latter."""

    def f(x):
        first, second = x.split(2)
        return torch.cat([first * 3, second * second]).unbind(0)

    x = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    assert grads(WAYS[way](f)(x)[2], (x,)) == [[0.0, 0.0, 6.0, 0.0]]


@pytest.mark.parametrize("way", WAYS)
def test_functions_of_users_get_zeros(way):
    class Pair(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, one, two):
            return one.exp() + two

    f = WAYS[way](lambda x: Pair.apply(x))
    x = torch.zeros(2, requires_grad=True)
    assert grads(f(x)[1], (x,)) == [[2.0, 2.0]]


def test_compilers_of_users_see_all_of_a_backward():
    graphs = []
    x = torch.ones(2, requires_grad=True)
    _, b = aot_function(lambda x: (x.sin(), x * 2), nop, keeping(graphs))(x)
    b.sum().backward()
    assert len(graphs) == 1 and x.grad.tolist() == [2.0, 2.0]
    left = without(graphs[0], (0,))
    called = [str(n.target) for n in left.graph.nodes if n.op == "call_function"]
    assert called == ["aten.mul.Tensor"]
    assert without(graphs[0], ()) is graphs[0]
