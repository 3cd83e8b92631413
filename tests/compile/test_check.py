"""`compile(check=True)`: differences are found and named; right programs are left as they are."""

import copy
import math

import numpy as np
import pytest

import pullback as torch
from pullback import errors, nn
from pullback.fx.graph import Graph
from pullback.fx.graph_module import GraphModule


def taking_cos_for_sin(module, examples):
    """A backend that is wrong in one operator."""
    graph, copied = Graph(), {}
    for node in module.graph.nodes:
        copied[node] = graph.node_copy(node, copied.__getitem__)
        if str(node.target) == "aten.sin.default":
            copied[node].target = torch.ops.aten.cos.default
    return GraphModule(module, graph)


def checked(f, **options):
    return torch.compile(f, check=True, **options)


def test_names_the_first_wrong_node_and_its_line():
    def f(x):
        y = x.exp() + 1
        z = y.sin()  # the line
        return (z * y).sum()

    with pytest.raises(errors.CheckFailed) as failed:
        checked(f, backend=taking_cos_for_sin)(torch.arange(4.0))
    text = str(failed.value)
    line = f.__code__.co_firstlineno + 2
    assert "compiled f differs from eager in the result (test_check.py:" in text
    assert "first differing node: %sin of the forward graph, aten.sin.default(%add)" in text
    assert f"line {line}, in f" in text


def test_a_wrong_backward():
    f = checked(lambda x: x.cos().sum(0), backend=taking_cos_for_sin)
    with pytest.raises(errors.CheckFailed, match="the gradient of input 0") as failed:
        f(torch.randn(3, 2, requires_grad=True))
    assert "first differing node: %sin of the backward graph" in str(failed.value)
    f(torch.randn(3, 2))  # nothing wrong here


def test_a_wrong_write():
    def f(x, y):
        x.copy_(y.sin())
        return y + 1

    x, y = torch.zeros(2), torch.arange(2.0)
    with pytest.raises(errors.CheckFailed, match="what input 0 holds"):
        checked(f, backend=taking_cos_for_sin)(x, y)
    assert x.tolist() == [0.0, 0.0]


def test_a_wrong_capture(monkeypatch):
    def f(x):
        y = x.exp()
        return (y * math.tau).tanh()  # libraries count as fixed

    run = checked(f)
    run(torch.ones(2))
    monkeypatch.setattr(math, "tau", 0.5)
    with pytest.raises(errors.CheckFailed) as failed:
        run(torch.ones(2))
    assert "the capture differs" in str(failed.value)
    line = f.__code__.co_firstlineno + 2
    assert f"first differing operator: aten.mul.Tensor float32[2] (test_check.py:{line})" in str(
        failed.value)


def test_eager_raises_and_compiled_does_not():
    def unmoved(module, examples):
        return lambda x, i: (x[:1],)

    f = checked(lambda x, i: x[i], backend=unmoved)
    with pytest.raises(errors.CheckFailed, match="eager raises"):
        f(torch.ones(3), torch.tensor([7]))


def test_results_that_show_memory_of_inputs():
    def same(module, examples):
        return lambda x: (x,)

    with pytest.raises(errors.CheckFailed, match="the memory of the result"):
        checked(lambda x: x * 1.0, backend=same)(torch.ones(3))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.norm = nn.Linear(4, 4, bias=False), nn.BatchNorm1d(4)
        self.drop, self.calls = nn.Dropout(0.5), 0

    def forward(self, x):
        self.calls += 1
        return self.drop(self.norm(self.inner(x)))


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_checked_step_is_done_once(backend):
    def trained(wrap):
        torch.manual_seed(0)
        net = Net()
        seen = []
        optimizer = torch.optim.Adam(net.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            loss = net(x).square().sum()
            loss.backward()
            optimizer.step()
            return loss

        run, x = wrap(step), torch.randn(6, 4)
        for _ in range(5):
            seen.append(run(x).item())
        return seen, net, optimizer.state_dict()

    plain, net, state = trained(lambda f: f)
    mine, other, its = trained(lambda f: checked(f, backend=backend))
    assert np.allclose(plain, mine, rtol=1e-5) and other.calls == net.calls == 5
    for name, value in net.state_dict().items():
        assert torch.allclose(value, other.state_dict()[name], atol=1e-5), name
    assert state["state"][0]["step"] == its["state"][0]["step"]
    assert all(torch.allclose(p.grad, q.grad, atol=1e-4)
               for p, q in zip(net.parameters(), other.parameters()))


def test_versions_hooks_and_graphs_are_left_alone():
    seen = []
    w = torch.ones(3, requires_grad=True)
    w.register_hook(lambda g: seen.append(g.tolist()))
    base = torch.zeros(2, 3)
    row = base[1]

    def f(w, row):
        row.add_(1)
        return (w * row).sum()

    with torch.no_grad():
        before = base._version
    out = checked(f)(w, row)
    assert seen == [] and w.grad is None
    assert base.tolist() == [[0.0] * 3, [1.0] * 3] and base._version == before + 1
    out.backward()
    assert seen == [[1.0] * 3] and w.grad.tolist() == [1.0] * 3


def test_hooks_that_the_function_registers():
    seen = []

    def f(w):
        w.register_hook(seen.append)
        return (w * 2).sum()

    w = torch.ones(2, requires_grad=True)
    checked(f)(w).backward()
    assert len(seen) == 1


def test_sizes_that_vary_and_random_numbers():
    f = checked(lambda x: (torch.dropout(x, 0.5, True) * x.shape[0]).softmax(0))
    torch.manual_seed(1)
    mine = [f(torch.ones(n, 2)) for n in (3, 4, 5, 5, 5)]
    torch.manual_seed(1)
    for n, value in zip((3, 4, 5, 5, 5), mine):
        assert torch.allclose(value, (torch.dropout(torch.ones(n, 2), 0.5, True) * n).softmax(0))


def test_rounding_is_no_difference():
    # the difference of large numbers: any other order of adding gives other digits
    f = checked(lambda x: ((x * 1e6).sum(0) - (x.flip(0) * 1e6).sum(0)) * 1e3)
    torch.manual_seed(0)
    f(torch.randn(1000, 3))


def test_wrong_nodes_are_found_with_symbolic_sizes():
    f = checked(lambda x: (x.exp().sin() * x.shape[0]).sum(), backend=taking_cos_for_sin,
                dynamic=True)
    with pytest.raises(errors.CheckFailed, match="first differing node: %sin"):
        f(torch.arange(5.0))


def test_only_the_first_calls_are_compared():
    run = checked(lambda x: x + 1)
    for _ in range(5):
        run(torch.ones(2))
    (program,) = run.programs.values()
    assert program.compared == 2 and run._last is not None  # from then on by the short way
    plain = torch.compile(lambda x: x + 1)
    plain(torch.ones(2))
    assert [p.compared for p in plain.programs.values()] == [0]


def test_the_environment_variable(monkeypatch):
    monkeypatch.setenv("PULLBACK_CHECK", "1")
    assert torch.compile(lambda x: x).checks
    assert not torch.compile(lambda x: x, check=False).checks
    assert copy.copy(torch.compile(lambda x: x)).checks
    monkeypatch.setenv("PULLBACK_CHECK", "0")
    assert not torch.compile(lambda x: x).checks
    with pytest.raises(TypeError):
        torch.compile(lambda x: x, check="yes")
