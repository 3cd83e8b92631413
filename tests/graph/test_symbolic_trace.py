"""`symbolic_trace`, `Tracer`, `wrap`, and rewrites of what they give."""

import copy
import math
import pickle

import pytest

import pullback as torch
from pullback import fx, nn
from pullback.fx.errors import TraceError
from pullback.fx.passes.split_module import split_module
from pullback.fx.subgraph_rewriter import replace_pattern_with_filters

F = nn.functional


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(4, 2))
        self.scale = nn.Parameter(torch.ones(2))
        self.register_buffer("shift", torch.ones(2))

    def forward(self, x):
        y = self.rest(self.first(x))
        a, b = y.chunk(2, -1)
        z = torch.relu(y) + F.gelu(y) * self.scale + self.shift
        return torch.cat([a, b, z], -1).sum(dim=-1)


CODE = """\
def forward(self, x):
    first = self.first(x);  x = None
    rest_0 = getattr(self.rest, "0")(first);  first = None
    rest_1 = getattr(self.rest, "1")(rest_0);  rest_0 = None
    chunk = rest_1.chunk(2, -1)
    getitem = chunk[0]
    getitem_1 = chunk[1];  chunk = None
    relu = torch.relu(rest_1)
    gelu = torch._C._nn.gelu(rest_1);  rest_1 = None
    scale = self.scale
    mul = gelu * scale;  gelu = scale = None
    add = relu + mul;  relu = mul = None
    shift = self.shift
    add_1 = add + shift;  add = shift = None
    cat = torch.cat([getitem, getitem_1, add_1], -1);  getitem = getitem_1 = add_1 = None
    sum_1 = cat.sum(dim = -1);  cat = None
    return sum_1"""


def test_a_module_becomes_a_module():
    net, x, gelu = Net(), torch.randn(5, 3), F.gelu
    traced = fx.symbolic_trace(net)
    assert traced.code.strip() == CODE
    assert isinstance(traced, nn.Module) and isinstance(traced, fx.GraphModule)
    assert dict(traced.named_parameters()).keys() == dict(net.named_parameters()).keys()
    assert traced.state_dict().keys() == net.state_dict().keys()
    assert traced.first is net.first
    for module in (traced, copy.deepcopy(traced), pickle.loads(pickle.dumps(traced))):
        assert torch.equal(module(x), net(x))
    assert copy.deepcopy(traced).scale is not traced.scale
    traced(x).sum().backward()
    assert net.scale.grad is not None
    assert F.gelu is gelu  # nothing stays patched
    assert type(net).__call__ is nn.Module.__call__


def test_tracers_decide_which_modules_stay_calls():
    class Whole(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return module_qualified_name == "rest"

    graph = Whole().trace(Net())
    called = [n.target for n in graph.nodes if n.op == "call_module"]
    assert called == ["rest"]
    assert graph.find_nodes(op="get_attr")[0].target == "first.weight"


def test_what_only_values_can_do_is_refused():
    with pytest.raises(TraceError, match="control flow"):
        fx.symbolic_trace(lambda x: x if x.sum() > 0 else -x)
    with pytest.raises(TraceError, match="cannot be iterated"):
        fx.symbolic_trace(lambda x: [v + 1 for v in x])
    with pytest.raises(RuntimeError, match="'len' is not supported"):
        fx.symbolic_trace(lambda x: x.__len__())


def test_fixed_arguments():
    def f(x, flag):
        return x + 1 if flag else x - 1

    x = torch.ones(2)
    assert torch.equal(fx.symbolic_trace(f, concrete_args={"flag": False})(x, False), x - 1)
    given = {"d": {"a": fx.PH, "b": fx.PH}}
    tree = fx.symbolic_trace(lambda d: d["a"] + d["b"], concrete_args=given)
    assert torch.equal(tree({"a": x, "b": x}), x + x)
    with pytest.raises(RuntimeError, match="expected 2 arguments but got 1"):
        fx.symbolic_trace(f, (1,))


def test_parameters_of_all_kinds():
    def f(x, *args, scale=2, **kw):
        return x * scale + args[0]

    traced = fx.symbolic_trace(f)
    assert "def forward(self, x, scale = 2, *args, **kw):" in traced.code
    graph = [n.name for n in traced.graph.nodes if n.op == "placeholder"]
    assert graph == ["x", "scale", "_args", "_kw"]


def helper(x, n):
    return x * n if n > 0 else x


fx.wrap("helper")
fx.wrap("len")


def test_wrapped_functions_stay_calls():
    traced = fx.symbolic_trace(lambda x: helper(x, len(x)) + math.sqrt(4))
    assert [n.target.__name__ for n in traced.graph.find_nodes(op="call_function")] == [
        "len", "helper", "add",
    ]
    assert torch.equal(traced(torch.ones(3)), torch.full((3,), 5.0))
    with pytest.raises(NotImplementedError, match="top level"):
        fx.wrap("helper")


def test_math_functions_of_proxies_are_recorded():
    traced = fx.symbolic_trace(lambda x: math.sqrt(x))
    assert traced(9.0) == 3.0


def test_patterns_are_replaced():
    net = fx.symbolic_trace(lambda x, w: torch.relu(torch.relu(x + w) + w).sum())
    found = fx.replace_pattern(
        net, lambda a, b: torch.relu(a + b), lambda a, b: torch.sigmoid(torch.add(a, b))
    )
    net.graph.lint()
    assert len(found) == 2
    assert [n.target.__name__ for n in net.graph.find_nodes(op="call_function")] == [
        "add", "sigmoid", "add", "sigmoid",
    ]
    x = torch.randn(3)
    assert torch.equal(net(x, x), torch.sigmoid(torch.sigmoid(x + x) + x).sum())


def test_values_that_are_used_outside_are_no_match():
    net = fx.symbolic_trace(lambda x: (torch.relu(x + 1), x + 1))
    shared = fx.symbolic_trace(lambda x: (lambda y: (torch.relu(y), y))(x + 1))
    pattern, other = (lambda x: torch.relu(x + 1)), torch.sigmoid
    assert len(fx.replace_pattern(net, pattern, lambda x: other(x))) == 1
    assert not fx.replace_pattern(shared, pattern, lambda x: other(x))
    refused = replace_pattern_with_filters(
        fx.symbolic_trace(pattern), pattern, lambda x: other(x), [lambda *match: False]
    )
    assert not refused


def test_modules_are_split():
    net, x = Net(), torch.randn(5, 3)
    traced = fx.symbolic_trace(net)
    names = [n.name for n in traced.graph.nodes]
    split = split_module(traced, net, lambda n: int(names.index(n.name) > 5))
    assert [n for n, _ in split.named_children()] == ["submod_0", "submod_1"]
    assert torch.equal(split(x), net(x))
    assert isinstance(split, nn.Module) and split.submod_0.first is net.first
