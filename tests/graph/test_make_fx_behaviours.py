"""Behaviours of captures that PyTorch's tests ask for by name, one after the other."""

import pytest

import pullback as torch
from pullback import nn
from pullback.aot import aot_function, nop
from pullback.func import functionalize
from pullback.fx import symbolic_trace
from pullback.fx.make_fx import make_fx


def targets(gm):
    found = [str(n.target) for n in gm.graph.nodes if n.op == "call_function"]
    return [name for name in found if name.startswith("aten.")]


def kept(graphs):
    def compiler(gm, inputs):
        graphs.append(gm)
        return gm

    return compiler


def test_writes_of_a_traced_module_become_pure():
    class Writing(nn.Module):
        def forward(self, x):
            return x.clone().relu_()

    gm = symbolic_trace(Writing())
    assert [n.target for n in gm.graph.nodes if n.op == "call_method"] == ["clone", "relu_"]
    pure = make_fx(functionalize(gm))(torch.ones(2))
    assert targets(pure) == ["aten.clone.default", "aten.relu.default"]


def test_every_node_has_facts():
    def f(x):
        y = x.clone()
        y.add_(1)
        y.t_()
        return y.mul_(2)

    for mode in ("real", "fake", "symbolic"):
        gm = make_fx(f, tracing_mode=mode)(torch.ones(2, 3))
        for node in gm.graph.nodes:
            if node.op == "call_function" and hasattr(node.meta.get("val"), "stride"):
                assert node.meta["tensor_meta"].shape == node.meta["val"].shape, node
        assert all("val" in n.meta for n in gm.graph.nodes if n.op != "output")


@pytest.mark.parametrize("training", [True, False])
def test_noise_is_no_write(training):
    graphs = []
    f = aot_function(lambda x: nn.functional.rrelu(x, training=training), kept(graphs), nop)
    x = torch.tensor([-1.0, 0.5], requires_grad=True)
    y = f(x)
    (y * 2).sum().backward()
    assert y[1] == 0.5 and -1 / 3 <= y[0] <= -1 / 8
    assert torch.allclose(x.grad, 2 * y.detach() / x.detach())
    assert not any(name.split(".")[1].endswith("_") for name in targets(graphs[0]))


def test_a_view_that_is_taken_over_is_written_through():
    def f(a, b):
        a_ = a.clone()
        view = b.view(-1)
        a_.set_(view)
        a_.add_(1)
        return a_ + 0, b + 0

    for g in (f, aot_function(f, nop)):
        a, b = torch.zeros(4), torch.ones(2, 2)
        with torch.no_grad():
            first, second = g(a, b)
        assert first.tolist() == [2.0] * 4 and second.tolist() == [[2.0, 2.0]] * 2
        assert b.tolist() == [[2.0, 2.0]] * 2 and a.tolist() == [0.0] * 4


def test_a_squeezed_view_is_written_through():
    def f(x):
        y = x.clone().squeeze(-1)
        y.add_(1.0)
        return y

    for dynamic in (False, True):
        g = aot_function(f, nop, dynamic=dynamic)
        for n in (1, 3):
            x = torch.ones(n, 1, requires_grad=True)
            y = g(x)
            y.sum().backward()
            assert y.tolist() == [2.0] * n and x.grad.tolist() == [[1.0]] * n
