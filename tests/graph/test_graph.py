"""Building, editing, copying and checking graphs."""

import copy
import gc
import operator
import pickle
import time

import pytest

from pullback.fx import Graph, GraphError, LintError, has_side_effect, map_aggregate, map_arg
from tests.helpers.fake_ops import Example, aten


def chain(length=3):
    graph = Graph()
    node = graph.placeholder("x")
    for _ in range(length):
        node = graph.call_function(aten.sin.default, (node,))
    graph.output((node,))
    return graph


def names(graph):
    return [node.name for node in graph.nodes]


# Arguments and users --------------------------------------------------------------------------


def test_users_and_inputs_follow_the_arguments():
    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    node = graph.call_function(aten.cat.default, ([x, [y, x]],), {"dim": {"k": y}})
    assert node.all_input_nodes == [x, y]
    assert list(x.users) == list(y.users) == [node]
    node.args = ([y],)
    assert node.all_input_nodes == [y]
    assert not x.users
    node.kwargs = {}
    assert list(y.users) == [node]
    node.args = ((slice(x, None, 2), 1),)
    assert node.all_input_nodes == [x]
    assert not y.users


def test_containers_in_arguments_cannot_be_changed():
    graph = Graph()
    given = [1, 2]
    node = graph.call_function(aten.cat.default, (given,), {"dim": 0})
    given.append(3)
    assert node.args == ([1, 2],)
    changes = (
        lambda: node.args[0].append(3),
        lambda: node.args[0].sort(),
        lambda: operator.setitem(node.args[0], 0, 5),
        lambda: operator.iadd(node.args[0], [1]),
        lambda: node.kwargs.update(dim=1),
        lambda: operator.delitem(node.kwargs, "dim"),
    )
    for change in changes:
        with pytest.raises(TypeError, match="does not support mutation"):
            change()
    assert hash(node.args[0]) == hash((1, 2))
    assert copy.deepcopy(node.args[0]) == [1, 2]
    assert pickle.loads(pickle.dumps(node.kwargs)) == {"dim": 0}


def test_update_single_arguments():
    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    node = graph.call_function(aten.add.Tensor, (x, 1))
    node.update_arg(1, y)
    assert node.args == (x, y)
    node.update_kwarg("alpha", 2)
    assert node.kwargs == {"alpha": 2}
    node.insert_arg(0, y)
    assert node.args == (y, x, y)
    with pytest.raises(IndexError):
        node.insert_arg(9, x)
    node.replace_input_with(y, x)
    assert node.args == (x, x, x)
    assert not y.users


def test_replace_all_uses():
    graph = chain(3)
    x, first, second, third, output = graph.nodes
    assert second.replace_all_uses_with(x) == [third]
    assert third.args == (x,)
    assert list(x.users) == [first, third]
    assert not second.users
    assert x.replace_all_uses_with(first, lambda user: user is third) == [third]
    assert list(x.users) == [first]
    assert third.replace_all_uses_with(third) == []
    assert output.args == ((third,),)


def test_replace_all_uses_can_hand_over_meta():
    graph = chain(2)
    _, first, second, _ = graph.nodes
    first.meta["val"] = 1
    first.replace_all_uses_with(second, lambda user: user is not second, propagate_meta=True)
    assert second.meta == {"val": 1}
    with pytest.raises(ValueError, match="meta of its own"):
        first.replace_all_uses_with(second, propagate_meta=True)


def test_map_arg_rebuilds_containers():
    graph = Graph()
    x = graph.placeholder("x")
    value = (x, [x, 1], {"k": (x,)}, slice(None, x))
    assert map_arg(value, lambda node: "v") == ("v", ["v", 1], {"k": ("v",)}, slice(None, "v"))
    assert map_aggregate([1, (2,)], lambda leaf: leaf + 1) == [2, (3,)]


# Creating and placing ---------------------------------------------------------------------------


def test_targets_and_kinds_are_checked():
    graph = Graph()
    with pytest.raises(ValueError, match="must be a callable, not 'relu'"):
        graph.call_function("relu")
    with pytest.raises(ValueError, match="must be a string"):
        graph.create_node("call_method", len)
    with pytest.raises(GraphError, match="unknown op 'call'"):
        graph.create_node("call", "x")
    assert len(graph.nodes) == 0


def test_insert_points():
    graph = Graph()
    x = graph.placeholder("x")
    output = graph.output(x)
    with graph.inserting_before(output):
        graph.call_function(aten.neg.default, (x,))
        graph.call_function(aten.exp.default, (x,))
    with graph.inserting_after(x):  # each right after x, so the later one comes first
        graph.call_function(aten.sin.default, (x,))
        graph.call_function(aten.cos.default, (x,))
    with graph.inserting_before():
        graph.placeholder("z")
    assert names(graph) == ["z", "x", "cos", "sin", "neg", "exp", "output"]
    graph.inserting_before(output)  # without `with`: from now on
    graph.call_function(aten.tanh.default, (x,))
    assert names(graph)[-2:] == ["tanh", "output"]
    with pytest.raises(GraphError, match="another graph"):
        Graph().inserting_before(x)


def test_insert_points_nest_and_survive_erasure():
    graph = chain(1)
    x, sin, output = graph.nodes
    with graph.inserting_before(sin):
        with graph.inserting_before(output):
            graph.call_function(aten.neg.default, (x,))
        graph.call_function(aten.exp.default, (x,))
        sin.replace_all_uses_with(x)
        graph.erase_node(sin)
        graph.call_function(aten.cos.default, (x,))
    assert names(graph) == ["x", "exp", "cos", "neg", "output"]


def test_moving_nodes():
    graph = Graph()
    a, b, c = (graph.placeholder(name) for name in "abc")
    a.prepend(c)
    assert names(graph) == ["c", "a", "b"]
    c.append(b)
    assert names(graph) == ["c", "b", "a"]
    a.prepend(a)
    a.append(a)
    b.append(a)
    b.prepend(c)
    assert names(graph) == ["c", "b", "a"]
    assert [node.name for node in reversed(graph.nodes)] == ["a", "b", "c"]
    assert a.prev is b
    assert c.next is b
    with pytest.raises(GraphError, match="different Graph"):
        a.append(Graph().placeholder("d"))


def test_order_of_nodes():
    graph = chain(3)
    nodes = list(graph.nodes)
    assert nodes == sorted(set(nodes))
    assert nodes[0] < nodes[1] <= nodes[1] < nodes[3] > nodes[2] >= nodes[2]
    nodes[1].prepend(nodes[3])
    with graph.inserting_after(nodes[0]):
        new = graph.call_function(aten.neg.default, (nodes[0],))
    assert nodes[0] < new < nodes[3] < nodes[1]


def test_erasing():
    graph = chain(2)
    x, first, second, output = graph.nodes
    with pytest.raises(GraphError, match=r"still had 1 users in the graph: \{sin_1: None\}"):
        graph.erase_node(first)
    with pytest.raises(GraphError, match="another graph"):
        Graph().erase_node(output)
    output.args = ((x,),)
    graph.erase_node(second)
    graph.erase_node(second)
    graph.erase_node(first)
    assert names(graph) == ["x", "output"]
    assert len(graph.nodes) == 2
    assert list(x.users) == [output]


def test_erasing_while_iterating():
    graph = chain(6)
    for node in reversed(graph.nodes):
        if node.op == "output":
            node.args = ((),)
        elif node.op != "placeholder":
            graph.erase_node(node)
    assert names(graph) == ["x", "output"]
    graph = Graph()
    for _ in range(6):
        graph.placeholder("p")
    seen = []
    for node in graph.nodes:
        seen.append(node.name)
        if node.name == "p_1":
            for other in [node, node.next, node.next.next]:
                graph.erase_node(other)
    assert seen == ["p", "p_1", "p_4", "p_5"]


def test_find_nodes():
    graph = chain(2)
    assert [n.name for n in graph.find_nodes(op="call_function", target=aten.sin.default)] == [
        "sin",
        "sin_1",
    ]
    assert graph.find_nodes(op="call_function", target=aten.cos.default) == []
    assert [n.name for n in graph.find_nodes(op="placeholder")] == ["x"]
    assert graph.output_node().op == "output"
    with pytest.raises(GraphError, match="no output"):
        Graph().output_node()


# Checking ---------------------------------------------------------------------------------------


def test_lint_accepts_good_graphs():
    chain().lint()
    Graph().lint()


def test_lint_finds_use_before_definition():
    graph = chain(2)
    _, first, second, _ = graph.nodes
    first.prepend(second)
    with pytest.raises(LintError, match="'sin' of Node 'sin_1' was used before it has been defin"):
        graph.lint()


def test_lint_finds_foreign_inputs():
    graph = Graph()
    graph.call_function(aten.neg.default, (Graph().placeholder("k"),))
    with pytest.raises(LintError, match="'k' of Node 'neg' does not belong to this Graph"):
        graph.lint()


def test_lint_finds_missing_attributes_and_doubled_names():
    class Module:
        pass

    module = Module()
    graph = Graph(module)
    with pytest.warns(UserWarning, match="no underlying reference in the owning GraphModule"):
        node = graph.get_attr("nope")
    with pytest.raises(LintError, match="nonexistent attribute"):
        graph.lint()
    module.nope = 1
    graph.lint()
    graph.get_attr("nope").name = node.name
    with pytest.raises(LintError, match="redefined name nope"):
        graph.lint()


def test_lint_finds_nodes_after_the_output():
    graph = chain(1)
    graph.call_function(aten.neg.default, (next(iter(graph.nodes)),))
    with pytest.raises(LintError, match="'neg' comes after the output"):
        graph.lint()


def test_the_owning_module_is_not_kept_alive():
    class Module:
        pass

    graph = Graph(Module())
    assert graph.owning_module is None


# Dead code --------------------------------------------------------------------------------------


def test_dead_code_goes_and_effects_stay():
    graph = Graph()
    x = graph.placeholder("x")
    graph.placeholder("unused")
    dead = graph.call_function(aten.neg.default, (x,))
    graph.call_function(aten.sin.default, (dead,))
    graph.call_function(aten.rand.default, ([2],))
    graph.call_function(aten.add_.Tensor, (x, 1))
    graph.call_function(operator.setitem, (x, 0, 1))
    graph.call_method("relu_", (x,))
    graph.call_method("relu", (x,))
    graph.get_attr("weight")
    graph.output(x)
    assert graph.eliminate_dead_code()
    assert names(graph) == ["x", "unused", "rand", "add_", "setitem", "relu_", "output"]
    assert not graph.eliminate_dead_code()
    assert graph.eliminate_dead_code(lambda node: node.op == "call_method")
    assert names(graph) == ["x", "unused", "relu_", "output"]


def test_purity_of_random_draws_is_a_question_of_purpose():
    node = Graph().call_function(aten.rand.default, ([2],))
    assert node.is_impure()
    assert not node.is_impure(impure_random=False)


def test_side_effects_can_be_declared():
    @has_side_effect
    def log(x):
        return x

    graph = Graph()
    graph.call_function(log, (graph.placeholder("x"),))
    assert not graph.eliminate_dead_code()


# Copies -----------------------------------------------------------------------------------------


def test_node_copy_maps_inputs_and_keeps_name_and_meta():
    graph = chain(1)
    x, sin, _ = graph.nodes
    sin.meta["val"] = 3
    other = Graph()
    y = other.placeholder("y")
    new = other.node_copy(sin, {x: y}.get)
    assert (new.name, new.args, new.meta) == ("sin", (y,), {"val": 3})
    new.meta["more"] = 1
    assert "more" not in sin.meta


def test_graph_copy_returns_the_meaning_of_the_output():
    graph, other = chain(2), Graph()
    y = other.placeholder("y")
    mapping = {next(iter(graph.nodes)): y}
    result = other.graph_copy(graph, mapping)
    assert [node.name for node in result] == ["sin_1"]
    assert names(other) == ["y", "sin", "sin_1"]
    value, node = Graph().graph_copy(graph, {}, return_output_node=True)
    assert node is graph.output_node()
    assert value[0].name == "sin_1"


def test_deepcopy():
    graph = chain(2)
    first = list(graph.nodes)[1]
    first.meta["val"] = Example((2,))
    memo = {}
    new = copy.deepcopy(graph, memo)
    assert str(new) == str(graph)
    assert memo[id(first)].meta["val"] is first.meta["val"]
    assert all(node.graph is new for node in new.nodes)
    new.lint()
    list(new.nodes)[1].target = aten.cos.default
    assert str(new) != str(graph)


def test_pickle():
    graph = chain(3)
    node = list(graph.nodes)[2]
    node.type = int
    node.meta = {"val": Example((2,)), "stack_trace": "here", "local": lambda: 0, "node": node}
    node.kwargs = {"dims": [1, (2, slice(None))]}
    new = pickle.loads(pickle.dumps(graph))
    new.lint()
    assert str(new) == str(graph)
    meta = list(new.nodes)[2].meta
    assert list(meta) == ["val", "stack_trace"]  # what cannot be pickled is dropped
    assert meta["val"].shape == (2,)


def test_nodes_are_not_copied_alone():
    node = Graph().placeholder("x")
    with pytest.raises(TypeError, match="with its graph"):
        pickle.dumps(node)


# Size -------------------------------------------------------------------------------------------


def test_large_graphs():
    graph = chain(50_000)
    graph.lint()
    new = pickle.loads(pickle.dumps(graph))
    assert len(new.nodes) == 50_002
    copy.deepcopy(graph)
    assert graph.python_code("self").src.count("\n") == 50_005


def test_building_is_fast():
    """A few microseconds a node; the limit leaves room for slow machines."""
    gc.collect()
    start = time.perf_counter()
    chain(10_000)
    assert (time.perf_counter() - start) / 10_000 < 50e-6
