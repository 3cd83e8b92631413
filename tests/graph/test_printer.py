"""Printed graphs against what PyTorch prints, recorded in `expected_prints.json`."""

import json
import math
import operator
import types
from pathlib import Path

import numpy as np
import pytest

from pullback.fx import Graph, GraphModule
from tests.helpers import fake_ops, printed_cases
from tests.helpers.fake_ops import Example, aten, constant

EXPECTED = json.loads((Path(__file__).parents[1] / "data/expected_prints.json").read_text())
_constants = ("float16", "float32", "float64", "int64", "bool", "strided", "contiguous_format")
T = types.SimpleNamespace(
    aten=aten,
    example=Example,
    device=fake_ops.device,
    **{name: constant(name) for name in _constants},
)


def build(name):
    graph = Graph()
    printed_cases.CASES[name](graph, T)
    return graph


@pytest.mark.parametrize("name", printed_cases.CASES)
def test_code(name):
    assert build(name).python_code("self").src == EXPECTED[name]["code"]


@pytest.mark.parametrize("name", printed_cases.CASES)
def test_list(name):
    assert str(build(name)) == EXPECTED[name]["graph"]


@pytest.mark.parametrize("options", printed_cases.READABLE)
@pytest.mark.parametrize("name", printed_cases.READABLE_CASES)
def test_readable(name, options):
    module = GraphModule({"_tensor_constant0": 0}, build(name))
    text = module.print_readable(print_output=False, **printed_cases.READABLE[options])
    assert text == EXPECTED[name][options]


def test_names():
    graph = Graph()
    made = [graph.create_node("call_function", len, (1,), name=n).name for n in printed_cases.NAMES]
    assert made == EXPECTED["(names)"]["names"]


def test_names_from_targets():
    graph = Graph()
    methods = [graph.call_method(n, (1,)).name for n in printed_cases.METHODS]
    assert methods == EXPECTED["(names)"]["methods"]
    parameters = [graph.placeholder(n).name for n in printed_cases.METHODS]
    assert parameters == EXPECTED["(names)"]["parameters"]


def test_printed_code_runs():
    """The source people read is complete: with its globals it computes what the module does."""
    graph = build("joint")
    code = graph.python_code("self")
    exec(code.src, code.globals)
    args = np.ones(3) * 0.5, np.ones(3) * 2, np.ones(3)
    shown = code.globals["forward"](None, *args)
    for one, other in zip(shown, GraphModule({}, graph)(*args)):
        assert other is None or np.array_equal(one, other)


def test_printed_constants_run():
    graph = Graph()
    x = graph.placeholder("x")
    values = (x, T.float32, T.device("cpu"), math.inf, printed_cases.Color.RED)
    graph.output(graph.call_function(printed_cases.custom, values))
    code = graph.python_code("self")
    exec(code.src, code.globals)
    shown = code.globals["forward"](None, 5)
    assert shown == (5, *values[1:])
    assert GraphModule({}, graph)(5) == shown


def test_memory_format_given_as_text():
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(aten.clone.default, (x,), {"memory_format": "channels_last"}))
    assert "clone.default(x, memory_format = torch.channels_last)" in graph.python_code("self").src
    assert "{memory_format: torch.channels_last}" in str(graph)
    assert GraphModule({}, graph)(3) == 3


def test_nested_modules_print_as_nested_classes():
    inner = Graph()
    inner.output((inner.placeholder("a"),))
    outer = Graph()
    x = outer.placeholder("x")
    outer.output(outer.call_module("true_graph_0", (x,)))
    module = GraphModule({"true_graph_0": GraphModule({}, inner)}, outer, "Outer")
    assert module.print_readable(print_output=False) == (
        "class Outer(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        # No stacktrace found for following nodes\n"
        "        true_graph_0 = self.true_graph_0(x);  x = None\n"
        "        return true_graph_0\n"
        "\n"
        "    class true_graph_0(torch.nn.Module):\n"
        "        def forward(self, a):\n"
        "            return (a,)\n"
    )
    assert repr(module) == "Outer(\n  (true_graph_0): GraphModule()\n)"


def test_symbolic_sizes_are_shown():
    class SymInt:
        def __str__(self):
            return "s0"

    graph = Graph()
    x = graph.placeholder("x")
    x.meta["val"] = SymInt()
    graph.output(x)
    assert 'x: "Sym(s0)"' in graph.python_code("self", verbose=True).src


def test_print_readable_prints(capsys):
    graph = build("mul")
    text = GraphModule({}, graph).print_readable()
    assert capsys.readouterr().out == text + "\n"


def test_str_of_module():
    assert str(GraphModule({}, Graph())) == (
        "GraphModule()\n\n\n\ndef forward(self):\n    pass\n    \n"
        "# To see more debug info, please use `graph_module.print_readable()`"
    )


def test_table(capsys):
    build("mul").print_tabular()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["opcode", "name", "target", "args", "kwargs"]
    assert lines[4].startswith("call_function  mul")
    assert "torch.ops.aten.mul.Tensor" in lines[4]


def test_negative_base_keeps_its_sign_when_run():
    graph = Graph()
    graph.output(graph.call_function(operator.pow, (-1, graph.placeholder("x"))))
    assert GraphModule({}, graph)(2) == 1


def test_a_source_line_is_looked_up_when_the_trace_has_none(tmp_path):
    file = tmp_path / "user.py"
    file.write_text("import pullback\ny = x * w\n")
    graph = Graph()
    y = graph.call_function(aten.neg.default, (graph.placeholder("x"),))
    y.stack_trace = f'  File "{file}", line 2, in step'
    graph.output(y)
    text = graph.python_code("self", verbose=True).src
    assert f"# File: {file}:2 in step, code: y = x * w\n" in text
    y.stack_trace = '  File "/no/such/file.py", line 2, in step'
    assert "# No stacktrace found" in graph.python_code("self", verbose=True).src


def test_operators_name_their_nodes():
    graph = Graph()
    x = graph.placeholder("x")
    overloads = (aten.mul.Tensor, aten.mul.Scalar, aten.sum.dim_IntList, aten.add_.Tensor)
    names = [graph.call_function(overload, (x,)).name for overload in overloads]
    assert names == ["mul", "mul_1", "sum_1", "add_"]
