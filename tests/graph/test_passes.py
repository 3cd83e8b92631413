"""Rewrites: dead code, common subexpressions, constants, operators that do nothing."""

import math
import operator

import numpy as np
import pytest

from pullback.fx import Graph, GraphError, GraphModule
from pullback.fx.passes import (
    eliminate_common_subexpressions,
    eliminate_dead_code,
    fold_constants,
    remove_noops,
)
from tests.helpers.fake_ops import Example, aten, constant


def names(graph):
    return [node.name for node in graph.nodes]


def graph_of(*parameters):
    graph = Graph()
    return graph, *[graph.placeholder(name) for name in parameters]


def test_dead_code_is_counted():
    graph, x = graph_of("x")
    a = graph.call_function(aten.sin.default, (x,))
    graph.call_function(aten.neg.default, (a,))
    graph.output(x)
    assert eliminate_dead_code(graph) == 2
    assert eliminate_dead_code(graph) == 0


# Common subexpressions ----------------------------------------------------------------------------


def test_equal_calls_are_computed_once():
    graph, x, y = graph_of("x", "y")
    pairs = [
        graph.call_function(aten.mul.Tensor, (x, [y, 1]), {"a": 1, "b": 2}),
        graph.call_function(aten.mul.Tensor, (x, [y, 1]), {"b": 2, "a": 1}),
    ]
    chains = [graph.call_function(aten.sin.default, (node,)) for node in pairs]
    graph.output((graph.call_function(aten.add.Tensor, tuple(chains)),))
    assert eliminate_common_subexpressions(graph) == 2
    assert names(graph) == ["x", "y", "mul", "sin", "add", "output"]
    assert graph.find_nodes(op="call_function")[-1].args == (chains[0], chains[0])
    graph.lint()
    assert eliminate_common_subexpressions(graph) == 0


def test_arguments_that_only_look_equal():
    graph, x = graph_of("x")
    values = (1, 1.0, True, 0.0, -0.0, "1", 1j, (1,), [1], slice(1), None, 1e300)
    nodes = [graph.call_function(aten.add.Tensor, (x, value)) for value in values]
    graph.output(graph.call_function(aten.cat.default, (nodes,)))
    assert eliminate_common_subexpressions(graph) == 0


def test_nan_arguments_are_equal_as_constants():
    graph, x = graph_of("x")
    nodes = [graph.call_function(aten.add.Tensor, (x, float("nan"))) for _ in range(2)]
    graph.output(graph.call_function(aten.cat.default, (nodes,)))
    assert eliminate_common_subexpressions(graph) == 1
    assert math.isnan(nodes[0].args[1])


def test_random_draws_are_never_merged():
    graph = Graph()
    nodes = [graph.call_function(aten.rand.default, ([2],)) for _ in range(2)]
    graph.output(graph.call_function(aten.add.Tensor, tuple(nodes)))
    assert eliminate_common_subexpressions(graph) == 0


def test_nothing_is_merged_across_a_write():
    graph, x = graph_of("x")
    before = graph.call_function(aten.sin.default, (x,))
    graph.call_function(aten.add_.Tensor, (x, 1))
    after = graph.call_function(aten.sin.default, (x,))
    again = graph.call_function(aten.sin.default, (x,))
    graph.output(graph.call_function(aten.cat.default, ([before, after, again],)))
    assert eliminate_common_subexpressions(graph) == 1
    value = np.zeros(1)
    assert np.allclose(GraphModule({}, graph)(value), [0, math.sin(1), math.sin(1)])


def test_two_results_stay_two():
    graph, x = graph_of("x")
    first = graph.call_function(aten.sin.default, (x,))
    second = graph.call_function(aten.sin.default, (x,))
    third = graph.call_function(aten.neg.default, (graph.call_function(aten.sin.default, (x,)),))
    graph.output((first, second, third))
    assert eliminate_common_subexpressions(graph) == 1
    assert graph.output_node().args[0] == (first, second, third)
    assert third.args == (first,)


def test_attributes_and_unhashable_arguments():
    class Unhashable:
        __hash__ = None

    graph = Graph()
    a, b = graph.get_attr("w"), graph.get_attr("w")
    nodes = [graph.call_function(aten.add.Tensor, (a, Unhashable())) for _ in range(2)]
    graph.output((graph.call_function(aten.cat.default, ([*nodes, b],)),))
    assert eliminate_common_subexpressions(graph) == 1


# Constants ----------------------------------------------------------------------------------------


def constants_graph():
    graph, x = graph_of("x")
    w = graph.get_attr("w")
    doubled = graph.call_function(aten.mul.Tensor, (w, 2.0))
    shifted = graph.call_function(aten.add.Tensor, (doubled, 1.0))
    steps = graph.call_function(aten.arange.default, (3,))
    waves = graph.call_function(aten.sin.default, (steps,))
    noise = graph.call_function(aten.rand.default, ([3],))
    total = graph.call_function(aten.add.Tensor, (shifted, waves))
    graph.output((graph.call_function(aten.mul.Tensor, (x, total)), noise, steps))
    return GraphModule({"w": np.ones(3)}, graph)


def test_constants_are_folded_where_they_meet_the_rest():
    module = constants_graph()
    expected = module(np.ones(3))[0]
    assert fold_constants(module.graph) == 1
    eliminate_dead_code(module.graph)
    module.graph.lint()
    module.recompile()
    assert names(module.graph) == ["x", "arange", "rand", "_folded0", "mul_1", "output"]
    assert np.array_equal(module(np.ones(3))[0], expected)
    assert fold_constants(module.graph) == 0


def test_the_caller_decides_how_constants_are_computed():
    module = constants_graph()
    seen = []

    def evaluate(node, args, kwargs):
        seen.append(node.name)
        return NotImplemented if node.name == "sin" else node.target(*args, **kwargs)

    assert fold_constants(module.graph, evaluate) == 0
    assert "sin" in seen
    assert "add_1" not in seen


def test_large_constants_stay_code():
    module = constants_graph()
    node = next(n for n in module.graph.nodes if n.name == "add_1")
    node.meta["val"] = Example((1 << 20,))
    assert fold_constants(module.graph) == 0
    node.meta["val"] = Example((3,))
    assert fold_constants(module.graph) == 1
    assert module.graph.find_nodes(op="get_attr", target="_folded0")[0].meta == node.meta


def test_folding_needs_a_module():
    with pytest.raises(GraphError, match="owning module"):
        fold_constants(Graph())


# Operators that do nothing ------------------------------------------------------------------------


def step(graph, target, *args, shape=(2, 3), dtype="float32", strides=None, **kwargs):
    node = graph.call_function(target, args, kwargs)
    node.meta["val"] = Example(shape, dtype, strides)
    return node


def test_views_and_casts_that_change_nothing_go():
    graph, x = graph_of("x")
    x.meta["val"] = Example((2, 3))
    a = step(graph, aten.view.default, x, [2, 3])
    b = step(graph, aten.expand.default, a, [2, 3])
    c = step(graph, aten.permute.default, b, [0, 1])
    d = step(graph, aten._to_copy.default, c, dtype_arg=constant("float32"))
    e = step(graph, aten.sin.default, d)
    graph.output((e,))
    assert remove_noops(graph) == 4
    assert names(graph) == ["x", "sin", "output"]
    assert e.args == (x,)
    graph.lint()


def test_views_and_casts_that_change_something_stay():
    graph, x = graph_of("x")
    x.meta["val"] = Example((3, 3))
    kept = [
        step(graph, aten.view.default, x, [9], shape=(9,)),
        step(graph, aten.permute.default, x, [1, 0], shape=(3, 3), strides=(1, 3)),
        step(graph, aten._to_copy.default, x, shape=(3, 3), dtype="float64"),
        step(graph, aten.as_strided.default, x, [3, 3], [3, 1], 0, shape=(3, 3)),
        step(graph, aten.sin.default, x, shape=(3, 3)),
        graph.call_function(aten.view.default, (x, [3, 3])),
    ]
    graph.output((graph.call_function(aten.cat.default, (kept,)),))
    assert remove_noops(graph) == 0


def test_results_stay_apart_from_arguments_and_from_each_other():
    graph, x = graph_of("x")
    x.meta["val"] = Example((2, 3))
    direct = step(graph, aten.clone.default, x)
    y = step(graph, aten.sin.default, x)
    first = step(graph, aten.clone.default, y)
    second = step(graph, aten.clone.default, y)
    graph.output((direct, first, second))
    assert remove_noops(graph) == 1
    assert graph.output_node().args[0] == (direct, y, second)


def test_copies_of_what_is_written_to_stay():
    graph, x = graph_of("x")
    x.meta["val"] = Example((2, 3))
    view = step(graph, aten.view.default, x, [2, 3])
    before = step(graph, aten.clone.default, view)
    scratch = step(graph, aten.clone.default, step(graph, aten.sin.default, x))
    step(graph, aten.add_.Tensor, x, 1)
    step(graph, aten.add_.Tensor, scratch, 1)
    graph.output((graph.call_function(aten.cat.default, ([before, scratch],)),))
    assert remove_noops(graph) == 0


def test_getitem_is_not_a_candidate():
    graph, x = graph_of("x")
    x.meta["val"] = Example((2, 3))
    node = step(graph, operator.getitem, x, Ellipsis)
    graph.output((graph.call_function(aten.sin.default, (node,)),))
    assert remove_noops(graph) == 0
