"""Running graphs: modules, interpreters, transformers, proxies."""

import copy
import gc
import linecache
import operator
import pickle
import traceback
import weakref

import numpy as np
import pytest

from pullback.fx import (
    Graph,
    GraphError,
    Interpreter,
    Proxy,
    TraceError,
    Transformer,
)
from pullback.fx.graph_module import GraphModule
from tests.helpers.fake_ops import aten, constant, device


class Root:
    """A module to take attributes from."""


def make_root():
    root, root.layers = Root(), Root()
    root.weight = np.full(3, 2.0)
    setattr(root.layers, "0", Scale(3.0))
    root.head = Scale(0.5)
    return root


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor

    def __repr__(self):
        return f"Scale({self.factor})"


def every_kind():
    graph = Graph()
    x = graph.placeholder("x")
    y = graph.placeholder("y", default_value=1.0)
    a = graph.call_function(aten.mul.Tensor, (x, graph.get_attr("weight")))
    b = graph.call_module("layers.0", (a,))
    c = graph.call_method("sum", (b,), {"axis": 0})
    d = graph.call_function(operator.add, (c, y))
    e = graph.get_attr("layers.0.factor")
    graph.output({"total": d, "parts": [graph.call_module("head", (b,)), (e,)], "none": None})
    return GraphModule(make_root(), graph)


def check_every_kind(run):
    out = run(np.ones(3))
    assert out["total"] == 19
    assert np.array_equal(out["parts"][0], np.full(3, 3.0))
    assert out["parts"][1] == (3.0,)
    assert out["none"] is None
    assert run(np.ones(3), 2.0)["total"] == 20


def test_module_runs_every_kind_of_node():
    check_every_kind(every_kind())


def test_interpreter_runs_every_kind_of_node():
    check_every_kind(Interpreter(every_kind()).run)


def test_pickle_and_copies():
    module = every_kind()
    for new in (pickle.loads(pickle.dumps(module)), copy.deepcopy(module), copy.copy(module)):
        check_every_kind(new)
        assert new.code == module.code
        assert new.graph is not module.graph
        assert new.graph.owning_module is new
    assert copy.copy(module).weight is module.weight
    assert copy.deepcopy(module).weight is not module.weight


def test_attributes_from_a_dictionary():
    graph = Graph()
    graph.output((graph.get_attr("a.0.b"), graph.get_attr("c")))
    assert GraphModule({"a.0.b": 1, "c": 2}, graph)() == (1, 2)
    with pytest.raises(KeyError):
        GraphModule({}, graph)
    with pytest.raises(AttributeError):
        GraphModule(Root(), graph)


def test_submodules():
    module = every_kind()
    assert module.get_submodule("layers.0").factor == 3.0
    assert module.get_submodule("") is module
    module.add_submodule("extra.deep", Scale(1.0))
    assert module.get_submodule("extra.deep").factor == 1.0
    assert "(head): Scale(0.5)" in repr(module)


def test_recompile_after_changes():
    graph = Graph()
    x = graph.placeholder("x")
    node = graph.call_function(operator.neg, (x,))
    graph.output(node)
    module = GraphModule({}, graph)
    assert module(2) == -2
    node.target = operator.pos
    assert module(2) == -2
    module.recompile()
    assert module(2) == 2
    assert "+x" in module.code
    module.graph = copy.deepcopy(graph)
    assert module(2) == 2
    with pytest.raises(GraphError, match="needs a Graph"):
        module.graph = "text"


def test_forward_is_a_method_and_can_be_replaced():
    module = every_kind()
    assert module.forward(np.ones(3))["total"] == 19
    module.forward = lambda x: x + 1
    assert module(1) == 2
    assert module.forward(1) == 2
    module.recompile()
    assert module(np.ones(3))["total"] == 19


def test_constants_reach_the_call_unchanged():
    seen = []

    def keep(*args, **kwargs):
        seen.append((args, kwargs))

    dtype, place, token = constant("float32"), device("cpu"), object()
    args = (dtype, [1, (2.5, -3)], {"k": place}, slice(1, None), float("inf"), token, Ellipsis, "s")
    graph = Graph()
    graph.output(graph.call_function(keep, args, {"key": -1}))
    module = GraphModule({}, graph)
    module()
    Interpreter(module).run()
    for got, kwargs in seen:
        assert got == args
        assert got[0] is dtype
        assert got[5] is token
        assert type(got[1]) is list
        assert type(got[2]) is dict
        assert kwargs == {"key": -1}


def test_values_die_after_their_last_use():
    class Value:
        pass

    def check(alive):
        def run(x):
            gc.collect()
            assert [reference() is not None for reference in references] == alive
            return x

        return run

    def make(*args):
        value = Value()
        references.append(weakref.ref(value))
        return value

    graph = Graph()
    a = graph.call_function(make)
    b = graph.call_function(make, (a,))
    c = graph.call_function(check([False, True]), (1,))
    graph.output((graph.call_function(make, (b, c)),))
    module = GraphModule({}, graph)
    for run in (module, Interpreter(module).run):
        references = []
        run()
        assert len(references) == 3


def test_interpreter_keeps_values_if_told():
    module = every_kind()
    seen = {}

    class Watch(Interpreter):
        def run_node(self, n):
            seen[n.name] = len(self.env)
            return super().run_node(n)

    Watch(module, garbage_collect_values=False).run(np.ones(3))
    assert seen["output"] == len(module.graph.nodes) - 1


def test_interpreter_initial_values_and_boxed_run():
    module = every_kind()
    node = module.graph.find_nodes(op="call_module")[0]
    out = Interpreter(module).run(np.ones(3), initial_env={node: np.zeros(3)})
    assert out["total"] == 1
    arguments = [np.ones(3), 2.0]
    assert Interpreter(module).boxed_run(arguments)["total"] == 20
    assert arguments == []
    with pytest.raises(GraphError, match="expected 2 arguments, got 1"):
        Interpreter(module).boxed_run([1])


def test_interpreter_reports_the_node():
    graph = Graph()
    x = graph.placeholder("x")
    node = graph.call_function(operator.add, (x, 1))
    node.stack_trace = '  File "user.py", line 7, in f'
    graph.output(node)
    module = GraphModule({}, graph)
    with pytest.raises(TypeError) as caught:
        Interpreter(module).run("text")
    notes = "\n".join(caught.value.__notes__)
    assert "While executing %add" in notes
    assert 'File "user.py", line 7' in notes
    with pytest.raises(GraphError, match="argument for parameter x, but one was not passed"):
        Interpreter(module).run()


def test_star_parameters():
    graph = Graph()
    x, rest = graph.placeholder("x"), graph.placeholder("*args")
    graph.output((x, rest))
    module = GraphModule({}, graph)
    assert module(1, 2, 3) == (1, (2, 3))
    assert Interpreter(module).run(1, 2, 3) == (1, [2, 3])


def test_tracebacks_show_the_line_of_the_graph():
    graph = Graph()
    graph.output(graph.call_function(aten.mm.default, (graph.placeholder("x"), 1)))
    module = GraphModule({}, graph)
    with pytest.raises(ValueError) as caught:
        module(2)
    assert "mm = aten_mm_default(x, 1)" in "".join(traceback.format_exception(caught.value))
    name = module._source_name
    assert name in linecache.cache
    del module, caught
    gc.collect()
    assert name not in linecache.cache


def test_in_place_operators_rebind_their_operand():
    graph = Graph()
    x = graph.placeholder("x")
    y = graph.call_function(operator.iadd, (x, 1))
    graph.output((x, y))
    assert GraphModule({}, graph)(1) == (2, 2)  # as the printed `x += 1` says


def test_globals_are_not_hidden_by_node_names():
    graph = Graph()
    x = graph.placeholder("aten_sin_default")
    graph.output(graph.call_function(aten.sin.default, (x,)))
    assert GraphModule({}, graph)(0.0) == 0.0


def test_a_module_can_be_called_from_many_places():
    inner = every_kind()
    graph = Graph()
    out = graph.call_module("inner", (graph.placeholder("x"),))
    graph.output(graph.call_function(operator.getitem, (out, "total")))
    assert GraphModule({"inner": inner}, graph)(np.ones(3)) == 19


# Transformers and proxies -------------------------------------------------------------------------


def test_transformer_copies_by_default():
    module = every_kind()
    new = Transformer(module).transform()
    assert new.code.replace("mul_tensor", "mul") == module.code  # as PyTorch names overloads there
    check_every_kind(new)


def test_transformer_replaces_calls():
    class SinToCos(Transformer):
        def call_function(self, target, args, kwargs):
            if target is aten.sin.default:
                return super().call_function(aten.cos.default, args, kwargs) * 2 + args[0].T
            return super().call_function(target, args, kwargs)

    graph = Graph()
    x = graph.placeholder("x")
    y = graph.call_function(aten.sin.default, (x,))
    y.meta["val"] = "fact"
    graph.output((graph.call_function(aten.neg.default, (y,)),))
    new = SinToCos(GraphModule({}, graph)).transform()
    assert new.code == (
        "\n\n\ndef forward(self, x):\n"
        "    cos_default = torch.ops.aten.cos.default(x)\n"
        "    mul = cos_default * 2;  cos_default = None\n"
        "    getattr_1 = x.T;  x = None\n"
        "    add = mul + getattr_1;  mul = getattr_1 = None\n"
        "    neg_default = torch.ops.aten.neg.default(add);  add = None\n"
        "    return (neg_default,)\n    "
    )
    value = np.eye(2)
    assert np.allclose(new(value)[0], -(np.cos(value) * 2 + value))
    assert new.graph.find_nodes(op="call_function", target=operator.add)[0].meta == {"val": "fact"}


def test_proxies_record_expressions():
    graph = Graph()
    x = Proxy(graph.placeholder("x"))
    y = (1 - x) ** 2 / -x
    z = x.reshape(-1, keep=True)[0] >= y
    graph.output((z.node, Proxy.__torch_function__(aten.sin.default, (), (y,)).node))
    assert str(graph.python_code("self").src) == (
        "\n\n\ndef forward(self, x):\n"
        "    sub = 1 - x\n"
        "    pow_1 = sub ** 2;  sub = None\n"
        "    neg = -x\n"
        "    truediv = pow_1 / neg;  pow_1 = neg = None\n"
        "    reshape = x.reshape(-1, keep = True);  x = None\n"
        "    getitem = reshape[0];  reshape = None\n"
        "    ge = getitem >= truediv;  getitem = None\n"
        "    sin = torch.ops.aten.sin.default(truediv);  truediv = None\n"
        "    return (ge, sin)\n    "
    )


def test_proxies_refuse_what_only_values_can_do():
    x = Proxy(Graph().placeholder("x"))
    for ask in (bool, len, iter):
        with pytest.raises(TraceError):
            ask(x)
    with pytest.raises(ValueError, match="cannot be used as inputs to control flow"):
        _ = 1 if x else 2
    assert repr(x) == "Proxy(x)"
