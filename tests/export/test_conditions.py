"""Branches that sizes decide, in exported programs: kept, stored, taken apart, differentiated."""

import io

import pytest

import pullback as torch
from pullback import nn
from pullback.fx.make_fx import make_fx


def either(condition, x):
    return torch.cond(condition, lambda x: x.sin() * 2, lambda x: x.cos() * x.shape[0], (x,))


class BySize(nn.Module):
    def forward(self, x):
        return either(x.shape[0] > 3, x)


class ByNumber(nn.Module):
    def forward(self, x, n):
        return either(n.item() > 3, x)


class ByTruth(nn.Module):
    def forward(self, x, n):
        return either(n.any().item(), x)


X = torch.linspace(0.1, 2, 8).reshape(4, 2)
CASES = {
    "size": (BySize(), (X,), {"x": {0: torch.export.Dim("n")}}, [(X[:3],), (X,)]),
    "number": (ByNumber(), (X, torch.tensor(5)), None,
               [(X, torch.tensor(3)), (X, torch.tensor(4))]),
    "truth": (ByTruth(), (X, torch.tensor([True])), None,
              [(X, torch.tensor([False])), (X, torch.tensor([True]))]),
}


@pytest.mark.parametrize("name", CASES)
def test_decided_when_called(name):
    module, args, dynamic, calls = CASES[name]
    program = torch.export.export(module, args, dynamic_shapes=dynamic)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    for found in (program, torch.export.load(file), program.run_decompositions()):
        assert "higher_order.cond" in found.graph_module.code
        for x, *rest in calls:
            given, expected = [x.clone().requires_grad_() for _ in range(2)]
            out = found.module()(given, *rest)
            want = module(expected, *rest)
            assert torch.equal(out, want)
            assert torch.equal(*[torch.autograd.grad(y.sum(), v)[0]
                                 for y, v in ((out, given), (want, expected))])


def test_captures_keep_the_question():
    graph = make_fx(BySize(), tracing_mode="symbolic")(X)
    assert "gt = sym_size_int > 3" in graph.code and "cond(gt, " in graph.code
    assert torch.equal(graph(X[:2]), BySize()(X[:2]))


def test_compiled_functions_answer_it():
    compiled = torch.compile(BySize(), dynamic=True)
    for x in (X, X[:3]):
        torch.testing.assert_close(compiled(x), BySize()(x))
