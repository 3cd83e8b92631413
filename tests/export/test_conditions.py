"""Branches that sizes decide, in exported programs: kept, stored, taken apart, differentiated."""

import io

import pytest

import pullback as torch
from pullback import nn
from pullback.fx.make_fx import make_fx
from tests.helpers.export_modules import Parts


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


class Closed(nn.Module):
    """Branches that read numbers of the graph around them."""

    def forward(self, x, n):
        k, size = n.item(), x.shape[0]
        torch._check(k >= 1)
        torch._check(k <= 3)
        return torch.cond(
            x.sum() > 3, lambda y: y[:k].sum() * size, lambda y: y.sum() + k, (x[:4],))


class Counted(nn.Module):
    def forward(self, x):
        places = x.nonzero()
        return torch.cond(places.shape[0] > 2, lambda p: p.sum(), lambda p: p.sum() - 1, (places,))


def test_branches_read_numbers_from_outside():
    n = torch.export.Dim("n", min=4)
    program = torch.export.export(
        Closed(), (torch.ones(6), torch.tensor(2)), dynamic_shapes={"x": {0: n}, "n": None})
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    for found in (program, torch.export.load(file), program.run_decompositions()):
        for args in ((torch.ones(5), torch.tensor(3)), (torch.zeros(4), torch.tensor(1))):
            given = args[0].clone().requires_grad_()
            expected = args[0].clone().requires_grad_()
            out, want = found.module()(given, args[1]), Closed()(expected, args[1])
            assert torch.equal(out, want)
            assert torch.equal(torch.autograd.grad(out, given)[0],
                               torch.autograd.grad(want, expected)[0])


def test_branches_on_how_many():
    program = torch.export.export(Counted(), (torch.ones(4),))
    for x in (torch.ones(4), torch.tensor([0.0, 1.0, 0.0, 1.0])):
        assert torch.equal(program.module()(x), Counted()(x))


def test_unflattened_calls_side_by_side():
    class Twice(Parts):
        def forward(self, x):
            return self.part(self.part(x))

    module = Twice(part=nn.Linear(2, 2))
    parts = torch.export.unflatten(torch.export.export(module, (X,)))
    assert torch.equal(parts(X), module(X))
    parts.set_submodule("part@1", nn.Identity())
    assert torch.equal(parts(X), module.part(X))


def test_constant_conditions_are_warned_about():
    class Constant(nn.Module):
        def forward(self, x):
            return torch.cond(x.ndim == 2, torch.sin, torch.cos, (x,))

    with pytest.warns(UserWarning, match="Pred is a Python constant"):
        program = torch.export.export(Constant(), (X,))
    assert "cond" not in program.graph_module.code


class Leaf(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("buf", torch.ones(1))

    def forward(self, x):
        y = torch.cond(x.sum() > 0, lambda x: x + self.buf, lambda x: x - self.buf, (x,))
        self.buf.add_(1)
        return y


class Middle(nn.Module):
    def __init__(self):
        super().__init__()
        self.leaf = Leaf()

    def forward(self, x, n):
        k = n.item()
        torch._check(k >= x.shape[0] - 9)
        return self.leaf(x + self.leaf.buf) * k


class Top(nn.Module):
    def __init__(self):
        super().__init__()
        self.middle = Middle()

    def forward(self, x, n):
        x = self.middle(x, n) + self.middle.leaf.buf
        return self.middle.leaf(x) + self.middle(x, n)


def test_unflattened_branches_and_buffers():
    eager, args = Top(), (X, torch.tensor(2))
    parts = torch.export.unflatten(torch.export.export(Top(), args))
    found = {name for name, _ in parts.named_modules()}
    assert {"middle", "middle.leaf", "middle@1", "middle.leaf@1"} <= found
    for x in (X, -X):
        torch.testing.assert_close(parts(x, args[1]), eager(x, args[1]))
    assert torch.equal(parts.middle.leaf.buf, eager.middle.leaf.buf)
    node = next(n for n in parts.middle.graph.nodes if n.op == "call_function")
    assert node.meta["nn_module_stack"]["middle"][1].endswith("test_conditions.Middle")
