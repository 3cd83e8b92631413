"""Tools around graphs: code generation, passes as objects, notes on nodes, fusing, isolation."""

import importlib.util
import operator
import random
import sys

import pytest

import pullback as torch
from pullback import nn
from pullback.aot import aot_function
from pullback.fx import CodeGen, Graph, GraphModule, Interpreter, symbolic_trace, traceback
from pullback.fx.isolated import (
    DecompositionInterpreter,
    get_isolated_graphmodule,
    wrapper_and_args_for_make_fx,
)
from pullback.fx.make_fx import make_fx
from pullback.fx.operator_schemas import create_type_hint, normalize_function, type_matches
from pullback.fx.passes.fake_tensor_prop import FakeTensorProp
from pullback.fx.passes.graph_manipulation import (
    get_size_of_all_nodes,
    replace_target_nodes_with,
)
from pullback.fx.passes.infra import (
    PassBase,
    PassManager,
    PassResult,
    _topological_sort_passes,
    pass_result_wrapper,
    this_before_that_pass_constraint,
)
from pullback.fx.passes.matcher import (
    SubgraphMatcher,
    SubgraphMatcherWithNameNodeMap,
    _split_to_graph_and_name_node_map,
)
from pullback.fx.passes.order import CSEPass, legalize_graph
from pullback.fx.passes.partitioner import (
    CapabilityBasedPartitioner,
    OperatorSupport,
    any_chain,
    chain,
    create_op_support,
    fuse_by_partitions,
)
from pullback.fx.passes.split_module import split_module
from pullback.fx.subgraph_rewriter import replace_pattern_with_filters
from pullback.fx.tracer import ProxyableClassMeta, annotate, is_fx_tracing
from pullback.torch.fuse import fuse, remove_dropout


def two(a, b):
    return a.relu() + b


# source


class ListCodeGen(CodeGen):
    def gen_fn_def(self, free_vars, maybe_return_annotation):
        return (f"\ndef forward(self, args_list: List[torch.Tensor]){maybe_return_annotation}:\n"
                f"    {', '.join(free_vars)} = args_list")

    def additional_globals(self):
        return [("List", list), ("torch", torch)]

    def process_inputs(self, *inputs):
        assert len(inputs) == 1
        return inputs[0]


def test_another_signature():
    traced = symbolic_trace(two)
    traced.graph.set_codegen(ListCodeGen())
    traced.recompile()
    x, y = torch.tensor([1.0, -1.0]), torch.ones(2)
    assert "args_list" in traced.code
    assert traced([x, y]).tolist() == two(x, y).tolist()
    assert Interpreter(traced).run([x, y]).tolist() == two(x, y).tolist()


def test_the_body_can_be_changed():
    traced = symbolic_trace(two)

    def shouting(former):
        def change(body):
            return ["print('begin')\n", *(body if former is None else former(body))]

        return change

    with traced.graph.on_generate_code(shouting):
        traced.recompile()
        assert "print('begin')" in traced.code
        assert traced(torch.ones(2), torch.ones(2)).tolist() == [2.0, 2.0]
    traced.recompile()
    assert "print" not in traced.code


def test_a_folder_can_be_imported(tmp_path):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)
            self.scale = nn.Parameter(torch.ones(2))

        def forward(self, x):
            return self.layer(x).relu() * self.scale

    traced = symbolic_trace(M())
    traced.to_folder(tmp_path / "exported", "Mine")
    spec = importlib.util.spec_from_file_location("exported", tmp_path / "exported/__init__.py",
                                                  submodule_search_locations=[
                                                      str(tmp_path / "exported")])
    package = importlib.util.module_from_spec(spec)
    sys.modules["exported"] = package
    try:
        spec.loader.exec_module(package)
        x = torch.tensor([[1.0, -2.0]])
        assert torch.equal(package.Mine()(x), traced(x))
    finally:
        for name in ("exported", "exported.module"):
            sys.modules.pop(name, None)


def test_unused_submodules_go():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.idle = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2))

        def forward(self, x):
            return self.used(x)

    traced = symbolic_trace(M())
    traced.add_submodule("idle.more", nn.ReLU())
    traced.delete_all_unused_submodules()
    assert [n for n, _ in traced.named_children()] == ["used"]
    assert not traced.delete_submodule("nowhere.at.all")
    graph = Graph()
    plain = GraphModule({}, graph)
    plain.add_submodule("a.b", traced)
    plain.delete_all_unused_submodules()
    assert not hasattr(plain, "a")


# arguments


def test_arguments_by_name():
    add = torch.ops.aten.add.Tensor
    pair = normalize_function(add, (1, 2), {}, normalize_to_only_use_kwargs=True)
    assert pair.args == () and pair.kwargs == {"input": 1, "other": 2, "alpha": 1}
    assert normalize_function(add, (1,), {"nothing": 2}) is None
    assert normalize_function(two, (1,), {"b": 2}, normalize_to_only_use_kwargs=True).kwargs == {
        "a": 1, "b": 2}
    traced = symbolic_trace(nn.Sequential(nn.Linear(2, 2)))
    call = next(n for n in traced.graph.nodes if n.op == "call_module")
    found = call.normalized_arguments(traced, normalize_to_only_use_kwargs=True)
    assert list(found.kwargs) == ["input"]


# passes


class Renaming(PassBase):
    def call(self, gm):
        changed = False
        for node in gm.graph.find_nodes(op="call_method", target="relu"):
            node.target, changed = "sigmoid", True
        return PassResult(gm, changed)


def test_passes_run_in_order_until_nothing_changes():
    seen = []

    def count(gm):
        seen.append(1)
        return gm.graph is None

    manager = PassManager([Renaming(), pass_result_wrapper(count)], steps=1)
    result = manager(symbolic_trace(two))
    assert result.modified and "sigmoid" in result.graph_module.code and len(seen) == 1
    one, other = Renaming(), CSEPass()
    manager = PassManager([one, other], [this_before_that_pass_constraint(other, one)])
    with pytest.raises(RuntimeError, match="constraint violated"):
        manager.validate_constraints()
    manager.solve_constraints()
    assert manager.passes == [other, one]
    with pytest.raises(Exception, match=r"'<lambda>' pass after.*\['Renaming'\]") as said:
        PassManager([Renaming(), lambda gm: 3])(symbolic_trace(two))
    assert isinstance(said.value.__cause__, TypeError) and "PassResult" in str(said.value.__cause__)
    with pytest.raises(TypeError, match="one variable"):
        manager.add_checks(lambda a, b: None)


def test_subexpressions_and_order():
    gm = make_fx(lambda x: x.sin() + x.sin())(torch.ones(2))
    found = CSEPass()(gm)
    gm = found.graph_module
    assert found.modified and gm.code.count("sin.default") == 1
    nodes = list(gm.graph.nodes)
    nodes[-2].append(nodes[1])  # behind its user
    with pytest.raises(RuntimeError):
        gm.graph.lint()
    legalize_graph(gm).graph.lint()
    assert gm(torch.zeros(2)).tolist() == [0.0, 0.0]


def test_facts_without_running():
    traced = symbolic_trace(nn.Sequential(nn.Linear(3, 5), nn.ReLU()))
    FakeTensorProp(traced).propagate(torch.ones(2, 3))
    assert [tuple(n.meta["val"].shape) for n in traced.graph.nodes] == [(2, 3), (2, 5), (2, 5),
                                                                        (2, 5)]


def test_cut_into_modules_with_tuples():
    gm = make_fx(lambda x: (x.sin().cos() + 1).exp())(torch.ones(2))
    keys = {"sin": 0, "cos": 0, "add": 1, "exp": 1}
    cut = split_module(gm, gm, lambda n: keys[n.name], partition_affix="p", tuple_return=True)
    assert type(cut.submod_p_0.graph.output_node().args[0]) is tuple
    assert torch.allclose(cut(torch.ones(2)), gm(torch.ones(2)))


def test_patterns_of_any_number():
    traced = symbolic_trace(lambda x: (x + 1) * 2 + (x + 5) * 7)
    replace_pattern_with_filters(traced, lambda x: (x + 3) * 4, lambda x: x - 1,
                                 ignore_literals=True)
    assert traced(torch.tensor(3.0)) == 4


def test_what_a_backend_knows_becomes_submodules():
    rng = random.Random(0)
    for _ in range(30):
        graph = Graph()
        nodes = [graph.placeholder("x"), graph.placeholder("y")]
        for _ in range(12):
            function = rng.choice([operator.add, operator.mul, operator.sub])
            nodes.append(graph.call_function(function, (rng.choice(nodes), rng.choice(nodes))))
        graph.output(tuple(nodes[-3:]))
        gm = GraphModule({}, graph)
        wanted = gm(2.0, 3.0)
        support = create_op_support(lambda _, n: n.target is not operator.sub)
        parts = CapabilityBasedPartitioner(gm, support, allows_single_node_partition=True)
        found = parts.propose_partitions()
        known = [n for p in found for n in p.nodes]
        assert set(known) == {n for n in nodes[2:] if n.target is not operator.sub}
        fused = parts.fuse_partitions(found)
        fused.graph.lint()
        assert fused(2.0, 3.0) == wanted
        assert {n.target for n in fused.graph.nodes if n.op == "call_function"} <= {
            operator.sub, operator.getitem}
    traced = symbolic_trace(lambda x: torch.relu(x + 1) * 2 - 3)
    alone = OperatorSupport({"_operator.add": None})
    assert CapabilityBasedPartitioner(traced, alone).propose_partitions() == []
    both = any_chain(alone, OperatorSupport({"_operator.sub": None}))
    assert not chain(alone, OperatorSupport({})).is_node_supported({}, list(traced.graph.nodes)[1])
    chosen = CapabilityBasedPartitioner(traced, both, allows_single_node_partition=True)
    assert len(chosen.propose_partitions()) == 2


def test_fusing_for_inference():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Dropout(), nn.Flatten(),
                          nn.Linear(12, 4), nn.BatchNorm1d(4)).eval()
    for norm in (model[1], model[5]):
        norm.running_mean.normal_()
        norm.running_var.uniform_(1, 2)
    x = torch.randn(2, 2, 4, 4)
    fused = remove_dropout(fuse(model))
    assert not any("Norm" in type(m).__name__ or "Dropout" in type(m).__name__
                   for n, m in fused.named_modules()
                   if any(c.target == n for c in fused.graph.find_nodes(op="call_module")))
    assert torch.allclose(fused(x), model(x), atol=1e-5)


# notes


def test_annotations_reach_both_passes():
    made = []

    def f(x):
        with traceback.annotate({"stage": 1}):
            y = x.sin()
            with traceback.annotate({"inner": True}):
                y = y * 2
        return y.exp()

    def compiler(gm, inputs):
        made.append(gm)
        return gm

    aot_function(f, compiler)(torch.ones(2, requires_grad=True)).sum().backward()
    notes = {n.name: n.meta.get("custom") for gm in made for n in gm.graph.nodes}
    assert notes["sin"] == notes["cos"] == {"stage": 1} and notes["exp"] is None
    assert notes["mul"] == notes["mul_2"] == {"stage": 1, "inner": True}
    numbers = {n.name: n.meta.get("seq_nr") for gm in made for n in gm.graph.nodes}
    assert numbers["sin"] == numbers["cos"] and numbers["exp"] != numbers["sin"]


def test_backward_nodes_name_their_formula():
    graph = make_fx(torch.func.grad(lambda x, y: (x * y.sin()).sum(), (0, 1)))(
        torch.ones(2), torch.ones(2))
    found = [(n.meta["entry"], n.meta["formula"]) for n in graph.graph.nodes if "formula" in n.meta]
    products = sorted([f for name, f in found if name == "mul.Tensor"], key=str)
    assert products == [{"other": "grad * self.conj()"}, {"self": "grad * other.conj()"}]
    assert all(len(f) == 1 for _, f in found)


def test_notes_survive_another_capture():
    gm = make_fx(lambda x: x.sin() + 1)(torch.ones(2))
    gm.graph.find_nodes(op="call_function")[0].meta["custom"] = {"a": 1}
    with traceback.preserve_node_meta():
        again = make_fx(Interpreter(gm).run)(torch.ones(2))
        assert traceback.has_preserved_node_meta()
    first, second = again.graph.find_nodes(op="call_function")
    assert first.meta["custom"] == {"a": 1} and "custom" not in second.meta
    assert first.meta["from_node"][-1].name == "sin"
    assert "test_graph_tools" in second.stack_trace and not traceback.current_meta

    @traceback.annotate_fn({"b": 2})
    def g(x):
        return x.cos()

    assert make_fx(g)(torch.ones(2)).graph.find_nodes(op="call_function")[0].meta["custom"] == {
        "b": 2}
    assert any("test_notes_survive_another_capture" in line for line in traceback.format_stack())


# captures inside of captures


def test_isolated():
    inside = []

    def f(x):
        inside.append(get_isolated_graphmodule(lambda a, b=1: a.sin() * b, (torch.ones(2),),
                                               {"b": torch.ones(2)}))
        return x + 1

    outer = make_fx(f)(torch.ones(2))
    assert "sin" in inside[0].code and "sin" not in outer.code
    wrapped, flat = wrapper_and_args_for_make_fx(lambda a, *, k: a * k, (2,), {"k": 3})
    assert wrapped(flat) == 6 and flat == [2, 3]


def test_decomposed_again():
    gm = make_fx(lambda x: torch.nn.functional.silu(x))(torch.ones(2))
    table = {torch.ops.aten.silu.default: lambda x: x * x.sigmoid()}
    again = make_fx(DecompositionInterpreter(gm, decomposition_table=table).run)(torch.ones(2))
    assert "silu" not in again.code and "sigmoid" in again.code


def test_classes_of_proxies():
    class Pair(metaclass=ProxyableClassMeta):
        def __init__(self, a, b):
            self.a, self.b = a, b

    seen = []

    def f(x, y):
        seen.append(is_fx_tracing())
        pair = Pair(x, annotate(y, torch.Tensor))
        return pair.a + pair.b

    traced = symbolic_trace(f)
    assert seen == [True] and not is_fx_tracing()
    assert any(n.target is Pair for n in traced.graph.nodes)
    assert next(n for n in traced.graph.nodes if n.name == "y").type is torch.Tensor
    assert traced(torch.tensor(1), torch.tensor(2)) == 3


def named(node_lists):
    return [sorted(n.name for n in group) for group in node_lists]


class Adding(OperatorSupport):
    def is_node_supported(self, submodules, node):
        return node.op == "call_function" and node.target in (
            operator.add, operator.getitem, torch.ops.aten.permute, torch.ops.aten.std_mean)


def test_groups_are_as_large_as_they_can_be():
    def blocked(a, b):
        add = a + b
        one = add + b
        three = one + one.relu()
        return one + three, one

    def twofold(x):
        a0 = x + 2.0
        b0, x0, c0 = a0 + 2.0, a0.relu(), a0 + 1.0
        b1, c1 = b0 + c0.relu(), c0 + 1.2
        return b1, x0 + c0, c1

    def bookends(a):
        middle = torch.ops.aten.permute(torch.ops.aten.permute(a, [0]) + 1.0, [0]) + 1.0
        return torch.ops.aten.permute(middle, [0])

    for function, expected in (
        (blocked, [["add_2", "add_3"], ["add", "add_1"]]),  # the last come first
        (lambda a, b, c: (a + b, a + c, b + c), [["add", "add_1", "add_2"]]),  # side by side
        (lambda a, b: torch.ops.aten.std_mean(a)[0] + 1.0, [["add", "getitem", "std_mean"]]),
        (lambda a, b: torch.ops.aten.var_mean(a)[0], []),  # parts of what is not there
        (bookends, [["add", "add_1", "permute", "permute_1", "permute_2"]]),
    ):
        gm = symbolic_trace(function)
        parts = CapabilityBasedPartitioner(gm, Adding(), True,
                                           ["torch.ops.aten.permute"])
        groups = parts.propose_partitions()
        assert named(g.nodes for g in groups) == expected, function
        if function is bookends:
            parts.remove_bookend_non_compute_ops(groups)
            assert named(g.nodes for g in groups) == [["add", "add_1", "permute_1"]]
        parts.fuse_partitions(groups).graph.lint()
    gm = symbolic_trace(twofold)
    groups = CapabilityBasedPartitioner(gm, Adding(), True).propose_partitions()
    fused = fuse_by_partitions(gm, [g.nodes for g in groups])
    assert [v.item() for v in fused(torch.tensor(1.0))] == [
        v.item() for v in twofold(torch.tensor(1.0))]
    gm = symbolic_trace(lambda a, b, c: (a + b, a + c))
    apart = CapabilityBasedPartitioner(gm, Adding(), True, skip_horizontal_fusion=True)
    assert named(g.nodes for g in apart.propose_partitions()) == [["add_1"], ["add"]]
    node = gm.graph.find_nodes(op="call_function")[0]
    with pytest.raises(RuntimeError, match="one partition only: add"):
        fuse_by_partitions(gm, [[node], [node]])


def test_order_of_passes():
    passes = [lambda x, i=i: x + i for i in range(6)]
    rules = [this_before_that_pass_constraint(passes[a], passes[b])
             for a, b in ((5, 0), (5, 2), (4, 0), (4, 1), (2, 3), (3, 1))]
    assert _topological_sort_passes(passes, []) == passes
    assert _topological_sort_passes(passes, rules) == [passes[i] for i in (4, 5, 0, 2, 3, 1)]
    round_ = [this_before_that_pass_constraint(passes[a], passes[b])
              for a, b in ((0, 1), (1, 2), (2, 0))]
    with pytest.raises(RuntimeError, match="Circular dependency detected within"):
        _topological_sort_passes(passes[:3], round_)


def test_matches_fill_in_defaults_and_do_not_feed_themselves():
    pool = torch.ops.aten.max_pool2d_with_indices.default
    pattern = symbolic_trace(lambda x, k, s, p, d: pool(x, k, s, p, d)).graph
    for options in ({"stride": 1}, {"padding": 1}, {"stride": 1, "padding": 1}):
        found = make_fx(nn.MaxPool2d(2, **options))(torch.ones(1, 1, 4, 4)).graph
        assert len(SubgraphMatcher(pattern).match(found)) == 1
    given = symbolic_trace(lambda x: pool(x, [2, 2], stride=[2, 2])).graph
    wanted = symbolic_trace(lambda x, k, s: pool(x, k, s, padding=[0, 0])).graph
    other = symbolic_trace(lambda x, k, s: pool(x, k, s, padding=[1, 1])).graph
    assert [len(SubgraphMatcher(w).match(given)) for w in (wanted, other)] == [1, 0]

    def own(x):
        y = torch.relu(x)
        return (y * torch.sigmoid(y)).sum()

    def product(a, c):
        b = torch.relu(a)
        return b, b * c

    assert SubgraphMatcher(symbolic_trace(product).graph).match(symbolic_trace(own).graph) == []


def test_what_must_stay_stays():
    def program(x):
        torch._assert(torch.equal(x, x), "message")
        return x * 2

    graph = symbolic_trace(program).graph
    with graph.inserting_before(graph.output_node()):
        graph.call_function(torch.rand, (2,))
    assert not graph.eliminate_dead_code()
    assert [n.name for n in graph.nodes] == ["x", "equal", "_assert", "mul", "rand", "output"]


def test_registered_operators_are_recorded():
    library = torch.library.Library("workshop", "DEF")
    library.define("scaled(Tensor self, float by) -> Tensor")
    torch.library.impl(library, "scaled", "CPU")(lambda x, by: x * by)

    @torch.library.custom_op("workshop::more", mutates_args=())
    def more(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    gm = symbolic_trace(lambda x, by: more(torch.ops.workshop.scaled(x, by)))
    assert "scaled = torch.ops.workshop.scaled(x, by)" in gm.code
    assert "more_default = torch.ops.workshop.more.default(scaled)" in gm.code
    assert gm(torch.ones(2), 3.0).tolist() == [4.0, 4.0]
    gm = symbolic_trace(lambda x: torch.ops.workshop.scaled.default(x, 2.0))
    assert "scaled_default" in gm.code and gm(torch.ones(1)).tolist() == [2.0]


def test_targets_and_sizes():
    gm = symbolic_trace(lambda a, b: a + b)
    replace_target_nodes_with(gm, "call_function", operator.add, "call_function", operator.mul)
    assert gm(torch.tensor(2.0), torch.tensor(5.0)) == 10
    gm = symbolic_trace(nn.Sequential(nn.Linear(3, 5)))
    with pytest.raises(RuntimeError, match="no tensor metadata"):
        get_size_of_all_nodes(gm)
    get_size_of_all_nodes(gm, [torch.ones(2, 3)])
    assert [n.size_bytes for n in gm.graph.nodes if n.op != "output"] == [(24, 24), (40, 120)]


def test_types_of_arguments():
    for wanted, given, fits in (
        (list[int], create_type_hint((int, int)), True), (list[int], int, True),
        (int, type(torch.float32), True), (int, float, False), (list[int], list[float], False),
        (list[torch.Tensor], create_type_hint((nn.Parameter, torch.Tensor)), True),
    ):
        assert type_matches(wanted, given) is fits, (wanted, given)


def test_nodes_of_matches_by_name():
    class Pattern(nn.Module):
        def forward(self, x, weight):
            conv = nn.functional.conv2d(x, weight)
            relu = nn.functional.relu(conv)
            return relu, relu * 2, {"conv": conv, "relu": relu}

    class Net(nn.Module):
        def forward(self, x, weight):
            relu = nn.functional.relu(nn.functional.conv2d(x * 2, weight * 3))
            return relu + relu * 2

    inputs = torch.ones(1, 3, 3, 3), torch.ones(3, 3, 3, 3)
    exported = torch.export.export(Pattern(), inputs).module()
    found = torch.export.export(Net(), inputs).module().graph
    names = SubgraphMatcherWithNameNodeMap(exported).match(found)[0].name_node_map
    assert {k: n.name for k, n in names.items()} == {"conv": "conv2d", "relu": "relu"}
    assert all(n.graph is found for n in names.values())
    plain, _ = _split_to_graph_and_name_node_map(exported)
    assert torch.equal(plain(*inputs)[1], exported(*inputs)[1]) and len(plain(*inputs)) == 2
    traced = SubgraphMatcherWithNameNodeMap(symbolic_trace(Pattern()))
    assert list(traced.match(symbolic_trace(Net()).graph)[0].name_node_map) == ["conv", "relu"]
    with pytest.raises(RuntimeError, match="a dictionary from names to nodes"):
        SubgraphMatcherWithNameNodeMap(symbolic_trace(two))
