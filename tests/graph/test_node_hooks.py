"""What watches a graph: hooks of nodes, observers of passes, and the sources of nodes."""

import copy
import pickle

import pytest

import pullback as torch
from pullback import nn
from pullback.fx import GraphModule, Interpreter, symbolic_trace, traceback
from pullback.fx.make_fx import make_fx
from pullback.fx.passes.graph_transform_observer import GraphTransformObserver
from pullback.fx.provenance import NodeSource, NodeSourceAction, get_graph_provenance_json
from pullback.fx.subgraph_rewriter import replace_pattern
from pullback.nn.traced import _LazyGraphModule, _make_graph_module, _use_lazy_graph_module


def traced():
    return symbolic_trace(lambda a, b: (a @ b).cos())


def test_hooks_are_told_of_nodes():
    gm, seen = traced(), []

    def made(node):
        seen.append(("made", node.name))

    def gone(node):
        seen.append(("gone", node.name))

    def other(old, new, user):
        seen.append((old.name, new, user.name))

    gm._register_create_node_hook(made)
    gm._register_erase_node_hook(gone)
    gm._register_replace_node_hook(other)
    a = gm.graph.find_nodes(op="placeholder")[0]
    with gm.graph.inserting_after(a):
        twin = gm.graph.node_copy(a)
    a.replace_all_uses_with(twin)
    gm.graph.erase_node(a)
    assert seen == [("made", "a_1"), ("a", "a_1", "matmul"), ("gone", "a")]
    seen.clear()
    copied = copy.deepcopy(gm)
    copied.graph.call_function(torch.sin, (next(iter(copied.graph.nodes)),))
    assert seen[-1] == ("made", "sin")  # copies are watched, too
    for off in ("create", "erase", "replace"):
        hook = {"create": made, "erase": gone, "replace": other}[off]
        getattr(gm, f"_unregister_{off}_node_hook")(hook)
        with pytest.raises(ValueError, match="not among"):
            getattr(gm, f"_unregister_{off}_node_hook")(hook)
    assert gm._create_node_hooks == gm._erase_node_hooks == gm._replace_hooks == []
    with gm._set_replace_hook(other):
        twin._rename("z")
    assert seen[-1] == ("a_1", "z", "matmul")
    with pytest.raises(AssertionError, match="callable"):
        gm._register_deepcopy_hook(3)
    pickle.loads(pickle.dumps(symbolic_trace(nn.Linear(2, 2))))


def test_sources_of_nodes():
    gm = symbolic_trace(lambda x: (x + 1).sin())
    add = next(n for n in gm.graph.nodes if n.name == "add")
    add.meta["from_node"] = [NodeSource(add, "p", NodeSourceAction.CREATE)]
    source = NodeSource(add, "q", [NodeSourceAction.REPLACE, NodeSourceAction.CREATE])
    said = source.to_dict()
    assert said["action"] == "replace+create" and said["from_node"][0]["pass_name"] == "p"
    assert NodeSource._from_dict(said) == source and hash(NodeSource._from_dict(said)) == hash(
        source)
    number = id(gm.graph)
    assert source.print_readable() == (
        f"(name=add, pass_name=q, action=replace+create, graph_id={number})\n"
        f"    (name=add, pass_name=p, action=create, graph_id={number})\n")
    empty = NodeSource(None, "r")
    assert (empty.name, empty.graph_id, NodeSource._from_dict(empty.to_dict())) == ("", -1, empty)
    assert list(get_graph_provenance_json(gm.graph)) == ["add"]
    with traceback.preserve_node_meta():
        again = make_fx(Interpreter(gm).run)(torch.ones(3))
    add, sin = again.graph.find_nodes(op="call_function")
    assert add.meta["from_node"][0].pass_name == "Interpreter_Interpreter"
    assert add.meta["from_node"][0].from_node[0].pass_name == "p" and "from_node" not in sin.meta


def test_a_pass_is_observed(tmp_path):
    gm = symbolic_trace(lambda x: torch.neg(x) + torch.neg(x))
    with GraphTransformObserver(gm, "relus", log_url=str(tmp_path)) as seen:
        replace_pattern(gm, lambda x: torch.neg(x), lambda x: torch.relu(x))
    assert seen.created_nodes == {"relu", "relu_1"} and seen.erased_nodes == {"neg", "neg_1"}
    relu = next(n for n in gm.graph.nodes if n.name == "relu")
    last = relu.meta["from_node"][-1]
    assert (last.name, last.pass_name, last.action) == (
        "neg", "relus", [NodeSourceAction.REPLACE, NodeSourceAction.CREATE])
    count = GraphTransformObserver.get_current_pass_count()
    before = (tmp_path / f"pass_{count}_relus_input_graph.dot").read_text()
    after = (tmp_path / f"pass_{count}_relus_output_graph.dot").read_text()
    assert [line.split()[0] for line in before.splitlines() if "yellow" in line] == ["neg", "neg_1"]
    assert [line.split()[0] for line in after.splitlines() if "yellow" in line] == [
        "relu", "relu_1"]
    assert gm._create_node_hooks == []
    silent = GraphTransformObserver(gm, "dead code")
    assert silent.apply_graph_pass(lambda graph: graph.eliminate_dead_code()) is False
    assert silent.apply_gm_pass(lambda module: module is gm)


def test_every_module_has_a_class_with_its_name():
    class Net(nn.Module):
        def forward(self, x):
            return x.sin()

    gm = symbolic_trace(Net())
    copied, stored = copy.deepcopy(gm), pickle.loads(pickle.dumps(gm))
    assert type(gm).__name__ == type(copied).__name__ == type(stored).__name__ == "Net"
    assert type(gm) is not type(copied) and isinstance(stored, GraphModule)
    type(gm).__name__ = "Other"
    assert repr(gm) == "Other()" and repr(copied) == "Net()"


def test_lazy_modules_know_whether_they_have_source():
    with _use_lazy_graph_module(True):
        gm = symbolic_trace(lambda x: x.sin())
        assert isinstance(gm, _LazyGraphModule) and gm._needs_recompile()
        assert isinstance(make_fx(gm)(torch.ones(2)), _LazyGraphModule)
        assert not gm._needs_recompile()  # it has run
        plain = _make_graph_module(gm, gm.graph, "Mine", graph_module_cls=GraphModule)
        assert not isinstance(plain, _LazyGraphModule)
    assert not isinstance(symbolic_trace(lambda x: x), _LazyGraphModule)
    gm.recompile()
    assert gm._needs_recompile() and "sin" in gm.code and not gm._needs_recompile()
    other = _LazyGraphModule.from_graphmodule(symbolic_trace(lambda x: x.cos()))
    assert other._needs_recompile()
    _LazyGraphModule.force_recompile(other)
    assert not other._needs_recompile()
    assert isinstance(pickle.loads(pickle.dumps(other)), _LazyGraphModule)
