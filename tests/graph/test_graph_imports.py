"""Names that programs about graphs import: kinds of operators, guards, checks of texts."""

import pytest

import pullback as pb
from pullback.fx.make_fx import make_fx
from pullback.fx.passes.cse import fx_graph_cse
from pullback.symbolic import ShapeEnv, SymInt
from pullback.symbolic.guards import (
    DimDynamic,
    StatelessSymbolicContext,
    bind_symbols,
    eval_guards,
    fx_placeholder_targets,
    fx_placeholder_vals,
)
from pullback.symbolic.number import SymNode
from pullback.symbolic.queries import _constrain_range_for_size, expect_true
from pullback.testing import FileCheck
from pullback.torch.operator_kinds import OpOverload, OpOverloadPacket


def test_kinds_of_operators():
    aten = pb.ops.aten
    for one in (aten.add.Tensor, aten.add_.Tensor, aten.add.out):
        assert isinstance(one, OpOverload) and not isinstance(one, OpOverloadPacket)
    assert isinstance(aten.add, OpOverloadPacket) and not isinstance(aten.add, OpOverload)
    assert issubclass(type(aten.mul.Tensor), OpOverload)
    with pytest.raises(TypeError, match=r"torch\.ops"):
        OpOverload()


def test_registered_operators_are_of_the_same_kinds():
    @pb.library.custom_op("graph_names::twice", mutates_args=())
    def twice(x: pb.Tensor) -> pb.Tensor:
        return x * 2

    packet = pb.ops.graph_names.twice
    assert isinstance(packet, OpOverloadPacket) and isinstance(packet.default, OpOverload)


def test_equal_calls_are_left_out_of_a_copy():
    graph = make_fx(lambda x: x.sin() * x.sin() + x.cos())(pb.ones(3)).graph
    before = len(graph.nodes)
    new = fx_graph_cse(graph)
    assert len(graph.nodes) == before and len(new.nodes) == before - 1
    x = pb.arange(3.0)
    root = pb.nn.Module()
    assert pb.equal(pb.fx.GraphModule(root, new)(x), x.sin() * x.sin() + x.cos())


def test_guards_of_a_graph():
    gm = make_fx(lambda a, b: pb.cat([a, a]) + b, tracing_mode="symbolic")(pb.ones(5), pb.ones(10))
    assert fx_placeholder_targets(gm) == ["a_1", "b_1"]
    assert [len(v.shape) for v in fx_placeholder_vals(gm)] == [1, 1]
    assert eval_guards(gm, pb.ones(7), pb.ones(14))
    assert not eval_guards(gm, pb.ones(7), pb.ones(15))
    assert set(bind_symbols(gm, pb.ones(7), pb.ones(14)).values()) >= {7}


def test_nodes_of_numbers():
    env = ShapeEnv()
    e = env.create_symbol(5, "x")
    n = SymInt(SymNode(e, env, int, hint=5))
    assert n.node.pytype is int and n.hint == 5 and str(n + 1) == f"{e} + 1"
    assert env.create_symbol(5, "y", DimDynamic.STATIC) == 5
    assert env.create_symbol(5, "y") == e
    assert env.create_symbol(5, "z", DimDynamic.DYNAMIC) != e


def test_sizes_of_a_tensor_by_wish():
    env = ShapeEnv()
    wish = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC, DimDynamic.STATIC])
    sizes, strides, offset = env.create_symbolic_sizes_strides_storage_offset(
        pb.ones(4, 3), "x", symbolic_context=wish)
    assert isinstance(sizes[0], SymInt) and sizes[1] == 3
    assert strides == (3, 1) and offset == 0
    sizes, strides, _ = env.create_symbolic_sizes_strides_storage_offset(pb.ones(6, 7), "y")
    assert str(strides[0]) == str(sizes[1]) and str(strides[1]) == "1"


def test_what_is_expected_is_a_fact():
    env = ShapeEnv()
    u = env.create_unbacked_symint()
    assert expect_true(u < 10) and bool(u < 12)
    assert [len(v) for v in env.deferred_runtime_asserts.values()] == [1]
    _constrain_range_for_size(u, max=8)
    assert bool(u >= 0) and bool(u <= 8)
    s = env.create_symintnode(env.create_symbol(5, "x"), hint=5)
    assert not expect_true(s > 7)


def test_numbers_from_data_are_sizes_once_used_so():
    def f(x, y):
        z = pb.zeros(x.item())
        return z + y

    gm = make_fx(f, tracing_mode="symbolic")(pb.tensor(4), pb.ones(4))
    assert pb.equal(gm(pb.tensor(3), pb.ones(3)), pb.ones(3))

    def g(x):
        rows = pb.zeros(x.item(), 4, 5)
        return rows.transpose(2, 1).reshape(-1, 20), rows.view(3, -1, 20)

    outs = make_fx(g, tracing_mode="symbolic")(pb.tensor(6))(pb.tensor(9))
    assert [tuple(o.shape) for o in outs] == [(9, 20), (3, 3, 20)]


def test_lists_of_numbers_from_data_split_a_tensor():
    def f(lengths, values):
        sizes = [lengths[i].item() for i in range(lengths.size(0))]
        for s in sizes:
            pb._constrain_as_size(s)
        return pb.split(values, sizes)

    gm = make_fx(f, tracing_mode="symbolic")(pb.tensor([2, 3, 4]), pb.arange(9.0))
    assert [len(p) for p in gm(pb.tensor([1, 5, 2]), pb.arange(8.0))] == [1, 5, 2]


def test_reading_a_value_in_a_capture_says_that_it_depends_on_data():
    with pytest.raises(RuntimeError, match="data-dependent"):
        make_fx(lambda x: x.sum().item())(pb.ones(2))


TEXT = "first a b\nsecond a\nthird c c\n"


def test_checks_that_hold():
    FileCheck().check("a").check_same("b").check_next("second").check_not("a b").run(TEXT)
    FileCheck().check_dag("third").check_dag("first").run(TEXT)
    FileCheck().check_count("a", 2, exactly=True).check_count("c", 2).run(TEXT)
    FileCheck().check_regex(r"s\w+d").check_not("first").check("third").run(TEXT)
    FileCheck().check_source_highlighted("f(x)").run("  f(x) + 1\n  ~~~~ <--- HERE\n")


@pytest.mark.parametrize("wrong", [
    FileCheck().check("z"), FileCheck().check("third").check("a"), FileCheck().check_next("third"),
    FileCheck().check("b").check_same("second"), FileCheck().check_count("a", 1, exactly=True),
    FileCheck().check_count("a", 3), FileCheck().check_not("second").check("third"),
    FileCheck().check_regex("z+"), FileCheck().check_source_highlighted("first"),
])  # fmt: skip
def test_checks_that_fail(wrong):
    with pytest.raises(RuntimeError, match="Expected"):
        wrong.run(TEXT)


def test_python_always_dispatches():
    from pullback.utils._python_dispatch import enable_python_dispatcher

    with enable_python_dispatcher():
        assert pb.ones(2).sum().item() == 2




def test_calls_that_users_add_are_named_by_overload():
    gm = make_fx(lambda x: x + 1)(pb.ones(2))
    graph = gm.graph
    with graph.inserting_before(graph.output_node()):
        made = [graph.call_function(target, (next(iter(graph.nodes)),)).name for target in (
            pb.ops.aten.add.Tensor, pb.ops.aten.sin.default, pb.ops.aten.add_.Tensor,
            pb.ops.aten.add, pb.sin)]
    assert made == ["add_tensor", "sin_default", "add__tensor", "add_1", "sin"]
