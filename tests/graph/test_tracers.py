"""Tracers: their base and its switches, objects that write themselves, copies, types."""

import copy
import functools
import math
import operator
import sys
import typing
from math import sqrt

import pytest

import pullback as torch
from pullback import fx, pytree
from pullback.fx._pytree import register_pytree_flatten_spec, tree_flatten_spec
from pullback.fx.passes.order import CSEPass, get_CSE_banned_ops
from pullback.fx.proxy import TracerBase
from pullback.fx.tracer import PHWithMeta, RewritingTracer


class Two(torch.nn.Module):
    def forward(self, x, y):
        return x + y

    def less(self, x, y):
        return x - y


def targets(graph):
    return [n.target for n in graph.nodes if n.op == "call_function"]


def test_asserts_are_recorded():
    space = {}  # compiled here: the test runner rewrites the assertions of this file
    exec("def f(x, y):\n    assert x == y, 'not alike'\n    return x + 1", space)
    tracer = RewritingTracer()
    assert isinstance(tracer, TracerBase) and not fx.Tracer.trace_asserts
    module = fx.GraphModule(torch.nn.Module(), tracer.trace(space["f"]))
    assert module(2, 2) == 3
    with pytest.raises(AssertionError, match="not alike"):
        module(2, 3)
    with pytest.raises(fx.TraceError, match="control flow"):
        fx.symbolic_trace(space["f"])


def test_writes_are_refused_on_demand():
    class Strict(fx.Tracer):
        check_mutable_operations = True

    def out(x):
        y = torch.rand_like(x)
        torch.sigmoid(x, out=y)
        return y

    with pytest.raises(RuntimeError, match=r"mutable operation aten::sigmoid\.out"):
        Strict().trace(out)
    with pytest.raises(RuntimeError, match="mutable operation aten::log_"):
        Strict().trace(lambda x: torch.log_(x))
    assert torch.log_ in targets(fx.Tracer().trace(lambda x: torch.log_(x)))


def test_lines_and_other_methods():
    tracer = fx.Tracer()
    tracer.record_stack_traces = True
    graph = tracer.trace(Two())
    line = next(n for n in graph.nodes if n.target is operator.add).stack_trace
    assert "test_tracers.py" in line
    tracer = fx.Tracer()
    tracer.traced_func_name = "less"
    assert targets(tracer.trace(Two())) == [operator.sub]
    tracer.traced_func_name = "more"
    with pytest.raises(AssertionError, match="doesn't exist in"):
        tracer.trace(Two())
    module = fx.symbolic_trace(Two())
    assert "test_tracers.py" in module.forward.__code__.co_filename


def test_wrappers_run_and_imported_functions_of_math_are_seen():
    def wrapped(f):
        return functools.wraps(f)(lambda *args: torch.relu(f(*args)))

    class Wrapped(torch.nn.Module):
        @wrapped
        def forward(self, x):
            return x * sqrt(x.size(0)) * math.sqrt(2)

    module = fx.symbolic_trace(Wrapped())
    assert targets(module.graph)[0] is sqrt and torch.relu in targets(module.graph)
    x = torch.tensor([-1.0, 2.0])
    assert torch.equal(module(x), torch.relu(x * sqrt(2) * sqrt(2)))


def test_calls_of_ones_own_stay():
    class Own(torch.nn.Module):
        def forward(self, x):
            return x * 2

        def __call__(self, x):
            return super().__call__(x) - 1

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.own = Own()

        def forward(self, x):
            return self.own(x)

    graph = fx.Tracer().trace(Outer())
    assert targets(graph) == [operator.mul, operator.sub]


def test_objects_write_themselves():
    class Pair:
        def __init__(self, x, y):
            self.x, self.y = x, y

        def __fx_create_arg__(self, tracer):
            args = (tracer.create_arg(self.x), tracer.create_arg(self.y))
            return tracer.create_node("call_function", Pair, args, {})

    class Leaf(torch.nn.Module):
        def forward(self, pair):
            return pair.x + pair.y

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.leaf = Leaf()

        def forward(self, x):
            return self.leaf(Pair(x, 3))

    class Leaves(fx.Tracer):
        def is_leaf_module(self, m, path):
            return isinstance(m, Leaf)

    outer = Outer()
    module = fx.GraphModule(outer, Leaves().trace(outer))
    assert module(torch.tensor(1.0)) == 4 and "Pair(x, 3)" in module.code

    class Keys(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.leaf = Leaf()

        def forward(self, x):
            return self.leaf({x: 1})

    with pytest.raises(RuntimeError, match="cannot contain a Node"):
        Leaves().trace(Keys())
    with pytest.raises(RuntimeError, match=r"cannot be part of \*args"):
        fx.symbolic_trace(type("T", (torch.nn.Module,), {"forward": lambda *args: args[1]})())


def test_copies():
    tracer = fx.Tracer()
    tracer.trace(Two())
    again = copy.deepcopy(tracer)
    assert str(again.graph) == str(tracer.graph) and again.graph is not tracer.graph
    assert again.autowrap_modules == tracer.autowrap_modules
    node = list(tracer.graph.nodes)[2]
    proxy = fx.Proxy(node, tracer)
    other = copy.deepcopy(proxy)
    assert other.node is not node and other.node.name == node.name
    assert other.node.graph is not node.graph
    module = fx.symbolic_trace(Two())
    module.meta["itself"] = module
    twin = copy.deepcopy(module)
    assert twin.meta["itself"] is twin is not module
    graph = fx.Graph(tracer_cls=RewritingTracer)
    assert copy.deepcopy(graph)._tracer_cls is RewritingTracer


def test_new_source_is_returned_and_missing_parts_are_warned_of():
    module = fx.symbolic_trace(Two())
    assert "x + y" in module.recompile().src
    with pytest.warns(UserWarning, match="no underlying reference"):
        module.graph.get_attr("nothing")
    with pytest.raises(ValueError, match="callable"):
        fx.Node(module.graph, "n", "call_function", "add", (), {})


def test_types_are_written_as_pytorch_does():
    text = typing.List[str]  # noqa: UP006

    def f(x: text, y: typing.Optional[int], z: dict[str, int]) -> text:  # noqa: UP045
        return x

    module = fx.symbolic_trace(f)
    # from 3.14 on, Optional[int] and int | None are one
    optional = "int|NoneType" if sys.version_info >= (3, 14) else "typing_Union[int,NoneType]"
    assert f"x : typing_List[str], y : {optional}, z : dict[str,int]" in module.code
    assert "-> typing_List[str]:" in module.code
    assert "%x : typing.List[str] [num_users=1]" in str(module.graph)
    assert torch.typename(len) == "len" and torch.typename(Two).endswith("Two")


def test_concrete_arguments():
    class Many(torch.nn.Module):
        def forward(self, *args, **kwargs):
            return args[0] - args[1]

    module = fx.symbolic_trace(Many(), concrete_args=(fx.PH, fx.PH))
    assert [n.name for n in module.graph.nodes][:2] == ["input_0", "input_1"]
    assert module(5, 3) == 2

    def f(a, b):
        return b["x"] if a else b["z"]

    module = fx.symbolic_trace(f, concrete_args={"a": True, "b": {"x": fx.PH, "z": fx.PH}})
    assert module(b={"z": 1, "x": 2}, a=True) == 2  # whatever the order of the keys
    graph = fx.Tracer().trace(lambda a: a + 1, concrete_args={"a": PHWithMeta(ph_key="key")})
    assert next(iter(graph.nodes)).ph_key == "key"


def test_flattened_by_a_structure():
    class Box:
        def __init__(self, a, b):
            self.a, self.b = a, b

    pytree.register_pytree_node(Box, lambda v: ([v.a, v.b], None), lambda c, _: Box(*c))
    spec = pytree.tree_flatten((Box(1, [2, 3]), {"k": 4}))[1]
    value = (Box(5, [6, 7]), {"other": 0, "k": 8})
    assert tree_flatten_spec(value, spec) == [5, 6, 7, 8]
    with pytest.raises(fx.GraphError, match="structure"):
        tree_flatten_spec(value, spec, exact_structural_match=True)
    with pytest.raises(fx.GraphError, match="structure"):
        tree_flatten_spec((Box(5, [6]), {"k": 8}), spec)
    register_pytree_flatten_spec(Box, lambda v, spec: [v.b, [v.a, v.a]])
    assert tree_flatten_spec((Box(1, 2), {"k": 3}), spec) == [2, 1, 1, 3]
    values = pytree.tree_flatten(fx.immutable_list([1, fx.immutable_dict({"a": 2})]))
    assert values[0] == [1, 2]
    assert isinstance(pytree.tree_unflatten(*values), fx.immutable_list)


def test_subexpressions_that_stay():
    graph = fx.symbolic_trace(lambda x: torch.sin(x) + torch.sin(x) * torch.cos(x) * torch.cos(x))
    found = CSEPass(banned_ops={torch.ops.aten.cos})(graph)
    assert found.modified and len(graph.graph.nodes) - len(found.graph_module.graph.nodes) == 1
    x = torch.tensor([0.5])
    assert torch.equal(found.graph_module(x), graph(x))
    assert {torch.ops.aten.rand, torch.ops.aten.add_} <= get_CSE_banned_ops()
