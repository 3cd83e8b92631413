# ruff: noqa: E501  (graphs as they print)
"""Operators with effects: kept in graphs, in order, once; tokens in graphs of PyTorch's convention.

The graphs are PyTorch 2.13's to the letter.
"""

import contextlib

import pytest

import pullback as torch
from pullback.aot import aot_function, config, nop
from pullback.capture.export import aot_export_module
from pullback.control import print as hop_print
from pullback.control.effects import _EffectType, _get_effect, _register_effectful_op, with_effects
from pullback.cut.partition import default_partition, min_cut_rematerialization_partition
from pullback.fx.make_fx import make_fx
from pullback.testing.two_tensor import TwoTensor
from tests.helpers.export_modules import Parts

ORDERED = _EffectType.ORDERED


@contextlib.contextmanager
def effect(op):
    handle = _register_effectful_op(op, ORDERED)
    try:
        yield
    finally:
        handle.destroy()


@pytest.fixture
def zoo():
    """Operators that note their calls: `zoo` in a forward, `zoo2` in its backward."""
    calls = []
    lib = torch.library.Library("effects_test", "FRAGMENT")
    for name in ("zoo", "zoo2"):
        lib.define(f"{name}(Tensor x) -> Tensor")

    def zoo(x):
        calls.append("zoo")
        return 2 * x

    def zoo2(x):
        calls.append("zoo2")
        return x.clone()

    lib.impl("zoo", zoo, "CPU")
    lib.impl("zoo2", zoo2, "CPU")
    for name in ("zoo", "zoo2"):
        lib.impl(name, lambda x: x.clone(), "Meta")
        torch.library._register_effectful_op(f"effects_test::{name}", ORDERED, lib=lib)

    def backward(ctx, grad):
        torch.ops.effects_test.zoo2(grad)
        return grad.clone()

    torch.library.register_autograd("effects_test::zoo", backward, lib=lib)
    yield calls
    lib._destroy()


def graphs(f, inputs, partition=min_cut_rematerialization_partition):
    """The texts of the forward and the backward graph."""
    found = {}

    def keep(name):
        def compiler(module, examples):
            found[name] = module.code.strip()
            return module
        return compiler

    tracked = any(t.requires_grad for t in inputs)
    out = aot_function(f, keep("forward"), keep("backward") if tracked else nop,
                       partition_fn=partition)(*inputs)
    if tracked:
        out.sum().backward()
    return found.get("forward"), found.get("backward")


# graphs


def test_the_calls_of_an_export_form_a_chain():
    class M(torch.nn.Module):
        def forward(self, x):
            torch.ops.aten._print("moo")
            res = x + x
            torch.ops.aten._print("moo")
            return (res,)

    module, signature = aot_export_module(M(), (torch.randn(3),), trace_joint=False)
    assert module.code.strip() == """\
def forward(self, arg0_1, arg1_1):
    with_effects = torch.ops.higher_order.with_effects(arg0_1, torch.ops.aten._print.default, 'moo');  arg0_1 = None
    getitem = with_effects[0];  with_effects = None
    add = torch.ops.aten.add.Tensor(arg1_1, arg1_1);  arg1_1 = None
    with_effects_1 = torch.ops.higher_order.with_effects(getitem, torch.ops.aten._print.default, 'moo');  getitem = None
    getitem_2 = with_effects_1[0];  with_effects_1 = None
    return (getitem_2, add)"""
    assert signature.input_tokens == ["arg0_1"] and signature.output_tokens == ["getitem_2"]
    assert signature.user_inputs == ["arg1_1"] and signature.user_outputs == ["add"]
    with config.patch(unlift_effect_tokens=True):
        module, signature = aot_export_module(M(), (torch.randn(3),), trace_joint=False)
    assert module.code.strip() == """\
def forward(self, arg1_1):
    _make_token_default = torch.ops.prims._make_token.default()
    with_effects = torch.ops.higher_order.with_effects(_make_token_default, torch.ops.aten._print.default, 'moo');  _make_token_default = None
    getitem = with_effects[0];  with_effects = None
    add = torch.ops.aten.add.Tensor(arg1_1, arg1_1);  arg1_1 = None
    with_effects_1 = torch.ops.higher_order.with_effects(getitem, torch.ops.aten._print.default, 'moo');  getitem = None
    getitem_2 = with_effects_1[0];  with_effects_1 = None
    _sink_tokens_default = torch.ops.prims._sink_tokens.default([getitem_2]);  getitem_2 = _sink_tokens_default = None
    return (add,)"""


def test_joint_graphs_of_functions():
    from pullback.capture.export import aot_export_joint_simple

    def f(x):
        torch.ops.aten._print("a")
        return (x.cos(),)

    module = aot_export_joint_simple(f, (torch.ones(2),), trace_joint=False)
    assert module.code.strip() == """\
def forward(self, arg0_1, arg1_1):
    with_effects = torch.ops.higher_order.with_effects(arg0_1, torch.ops.aten._print.default, 'a');  arg0_1 = None
    getitem = with_effects[0];  with_effects = None
    cos = torch.ops.aten.cos.default(arg1_1);  arg1_1 = None
    return (getitem, cos)"""
    with effect(torch.ops.aten.sin.default):
        module = aot_export_joint_simple(f, (torch.ones(2, requires_grad=True),), trace_joint=True)
    assert module.code.strip() == """\
def forward(self, primals, tangents):
    primals_1, primals_2, tangents_1, tangents_token, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
    with_effects = torch.ops.higher_order.with_effects(primals_1, torch.ops.aten._print.default, 'a');  primals_1 = None
    getitem = with_effects[0];  with_effects = None
    cos = torch.ops.aten.cos.default(primals_2)
    with_effects_1 = torch.ops.higher_order.with_effects(tangents_token, torch.ops.aten.sin.default, primals_2);  tangents_token = primals_2 = None
    getitem_2 = with_effects_1[0]
    getitem_3 = with_effects_1[1];  with_effects_1 = None
    neg = torch.ops.aten.neg.default(getitem_3);  getitem_3 = None
    mul = torch.ops.aten.mul.Tensor(tangents_1, neg);  tangents_1 = neg = None
    return pytree.tree_unflatten([getitem, cos, mul, getitem_2], self._out_spec)"""


@pytest.mark.parametrize("name, count", [("two", 2), ("listed", 2), ("nothing", 0)])
def test_results_of_all_kinds_behind_a_token(name, count):
    schema = {"two": "(Tensor, Tensor)", "listed": "Tensor[]", "nothing": "()"}[name]
    calls = []

    def kernel(x, s="a", *, k=1):
        calls.append((s, k))
        return {"two": (x + 1, x + 2), "listed": [x + 1, x + 2], "nothing": None}[name]

    with torch.library._scoped_library("effects_kinds", "FRAGMENT") as lib:
        lib.define(f"{name}(Tensor x, str s='a', *, int k=1) -> {schema}")
        lib.impl(name, kernel, "CPU")
        lib.impl(name, kernel, "Meta")
        torch.library._register_effectful_op(f"effects_kinds::{name}", ORDERED)
        op = getattr(torch.ops.effects_kinds, name)
        f = lambda x: sum(op(x, "q", k=3) or (), x)
        for run in (aot_function(f, nop), torch.compile(f)):
            run(torch.ones(2))
            calls.clear()
            assert run(torch.ones(2)).tolist() == [1.0 + 2.5 * count] * 2
            assert calls == [("q", 3)]


def test_tokens_come_before_what_is_written():
    class M(Parts):
        def forward(self, x):
            torch.ops.aten._print("moo")
            res = x + x
            self.buf.add_(res)
            res = self.buf + x
            torch.ops.aten._print("moo")
            return (res,)

    module, signature = aot_export_module(M(buf=torch.nn.Buffer(torch.ones(3))), (torch.randn(3),), trace_joint=False)
    assert module.code.strip() == """\
def forward(self, arg0_1, arg1_1, arg2_1):
    with_effects = torch.ops.higher_order.with_effects(arg0_1, torch.ops.aten._print.default, 'moo');  arg0_1 = None
    getitem = with_effects[0];  with_effects = None
    add = torch.ops.aten.add.Tensor(arg2_1, arg2_1)
    add_1 = torch.ops.aten.add.Tensor(arg1_1, add);  arg1_1 = add = None
    add_2 = torch.ops.aten.add.Tensor(add_1, arg2_1);  arg2_1 = None
    with_effects_1 = torch.ops.higher_order.with_effects(getitem, torch.ops.aten._print.default, 'moo');  getitem = None
    getitem_2 = with_effects_1[0];  with_effects_1 = None
    return (getitem_2, add_1, add_2)"""
    assert signature.buffers_to_mutate == {"add_1": "buf"}
    assert signature.inputs_to_buffers == {"arg1_1": "buf"} and signature.user_inputs == ["arg2_1"]


def test_an_input_that_is_written_and_returned(capfd):
    def f(a, b):
        torch.ops.aten._print("effect")
        return torch.sin(a, out=b)

    forward, _ = graphs(f, [torch.randn(3, 3), torch.ones(3, 3)])
    assert forward == """\
def forward(self, arg0_1, arg1_1, arg2_1):
    with_effects = torch.ops.higher_order.with_effects(arg0_1, torch.ops.aten._print.default, 'effect');  arg0_1 = None
    getitem = with_effects[0];  with_effects = None
    sin = torch.ops.aten.sin.default(arg1_1);  arg1_1 = None
    return (getitem, sin, sin)"""

    def g(a):
        a.mul_(2)
        torch.ops.aten._print("effect")
        return a

    x = torch.ones(3, 3)
    forward, _ = graphs(g, [x])
    assert x.eq(2).all()
    assert forward == """\
def forward(self, arg0_1, arg1_1):
    mul = torch.ops.aten.mul.Tensor(arg1_1, 2);  arg1_1 = None
    with_effects = torch.ops.higher_order.with_effects(arg0_1, torch.ops.aten._print.default, 'effect');  arg0_1 = None
    getitem = with_effects[0];  with_effects = None
    return (getitem, mul, mul)"""
    assert capfd.readouterr().out == "effect\n" * 2


def test_effects_of_a_backward_have_a_token_of_their_own():
    with effect(torch.ops.aten.cos.default):
        forward, backward = graphs(torch.sin, [torch.ones(3, requires_grad=True)])
        assert forward == """\
def forward(self, primals_1):
    sin = torch.ops.aten.sin.default(primals_1)
    return (sin, primals_1)"""
        assert backward == """\
def forward(self, primals_1, tangents_1, tangents_token):
    with_effects = torch.ops.higher_order.with_effects(tangents_token, torch.ops.aten.cos.default, primals_1);  tangents_token = primals_1 = None
    getitem = with_effects[0]
    getitem_1 = with_effects[1];  with_effects = None
    mul = torch.ops.aten.mul.Tensor(tangents_1, getitem_1);  tangents_1 = getitem_1 = None
    return (mul, getitem)"""
        forward, backward = graphs(lambda x: x.cos().sin(), [torch.ones(3, requires_grad=True)])
        assert forward == """\
def forward(self, primals_1, primals_2):
    with_effects = torch.ops.higher_order.with_effects(primals_1, torch.ops.aten.cos.default, primals_2);  primals_1 = None
    getitem = with_effects[0]
    getitem_1 = with_effects[1];  with_effects = None
    sin = torch.ops.aten.sin.default(getitem_1)
    return (getitem, sin, primals_2, getitem_1)"""
        assert backward == """\
def forward(self, primals_2, getitem_1, tangents_1, tangents_token):
    with_effects_1 = torch.ops.higher_order.with_effects(tangents_token, torch.ops.aten.cos.default, getitem_1);  tangents_token = getitem_1 = None
    getitem_2 = with_effects_1[0]
    getitem_3 = with_effects_1[1];  with_effects_1 = None
    mul = torch.ops.aten.mul.Tensor(tangents_1, getitem_3);  tangents_1 = getitem_3 = None
    sin_1 = torch.ops.aten.sin.default(primals_2);  primals_2 = None
    neg = torch.ops.aten.neg.default(sin_1);  sin_1 = None
    mul_1 = torch.ops.aten.mul.Tensor(mul, neg);  mul = neg = None
    return (mul_1, getitem_2)"""
    assert _get_effect(torch.ops.aten.cos.default) is None


def test_effects_on_the_tensors_inside_of_wrappers(zoo):
    def two(*numbers):
        return TwoTensor(torch.tensor(numbers, requires_grad=True),
                         torch.tensor([4.0, 5.0, 6.0], requires_grad=True))

    def f(x, y):
        return torch.ops.effects_test.zoo(x) + y

    forward, backward = graphs(f, (two(1.0, 2.0, 3.0), two(7.0, 8.0, 9.0)))
    assert forward == """\
def forward(self, primals_1, primals_2, primals_3, primals_4, primals_5):
    with_effects = torch.ops.higher_order.with_effects(primals_1, torch.ops.effects_test.zoo.default, primals_2);  primals_1 = primals_2 = None
    getitem = with_effects[0]
    getitem_1 = with_effects[1];  with_effects = None
    with_effects_1 = torch.ops.higher_order.with_effects(getitem, torch.ops.effects_test.zoo.default, primals_3);  getitem = primals_3 = None
    getitem_2 = with_effects_1[0]
    getitem_3 = with_effects_1[1];  with_effects_1 = None
    add = torch.ops.aten.add.Tensor(getitem_1, primals_4);  getitem_1 = primals_4 = None
    add_1 = torch.ops.aten.add.Tensor(getitem_3, primals_5);  getitem_3 = primals_5 = None
    return (getitem_2, add, add_1)"""
    assert backward == """\
def forward(self, tangents_1, tangents_2, tangents_token):
    with_effects_2 = torch.ops.higher_order.with_effects(tangents_token, torch.ops.effects_test.zoo2.default, tangents_1);  tangents_token = None
    getitem_4 = with_effects_2[0];  with_effects_2 = None
    with_effects_3 = torch.ops.higher_order.with_effects(getitem_4, torch.ops.effects_test.zoo2.default, tangents_2);  getitem_4 = None
    getitem_6 = with_effects_3[0];  with_effects_3 = None
    clone = torch.ops.aten.clone.default(tangents_1)
    clone_1 = torch.ops.aten.clone.default(tangents_2)
    return (clone, clone_1, tangents_1, tangents_2, getitem_6)"""


# calls


@pytest.mark.parametrize("compiled", [
    lambda f: torch.compile(f), lambda f: torch.compile(f, backend="aot_eager"),
    lambda f: aot_function(f, nop), lambda f: aot_function(f, nop, partition_fn=default_partition),
    lambda f: aot_function(f, nop, partition_fn=min_cut_rematerialization_partition),
], ids=["native", "aot_eager", "nop", "default", "mincut"])
def test_calls_happen_once_per_pass(zoo, compiled):
    def f(x, y):
        return (torch.ops.effects_test.zoo(x) * y).sin().sum()

    run = compiled(f)
    for _ in range(3):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = torch.tensor([4.0, 5.0], requires_grad=True)
        zoo.clear()
        out = run(x, y)
        assert zoo == ["zoo"]
        out.backward()
        assert zoo == ["zoo", "zoo2"]
        assert torch.allclose(y.grad, (2 * x * y).cos() * 2 * x)


def _numbered():
    """An operator without results that notes a word and a sum."""
    notes = []

    @torch.library.custom_op("effects_test::note", mutates_args=())
    def note(x: torch.Tensor, word: str) -> None:
        notes.append((word, float(x.sum())))

    note.register_fake(lambda x, word: None)
    note.register_effect(ORDERED)
    return note, notes


@pytest.mark.filterwarnings("ignore:the operator effects_test")
@pytest.mark.parametrize("dynamic", [False, True])
def test_order_in_native_code(dynamic):
    note, notes = _numbered()

    class Told(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            note(x, "in")
            return x * 3

        @staticmethod
        def backward(ctx, grad):
            note(torch.ones(2), "first")  # depends on nothing
            note(grad, "grad")
            note(torch.ones(1), "last")
            return grad * 3

    def f(x):
        note(x, "a")
        y = Told.apply(x * 2)
        note(y.exp(), "b")
        for i in range(3):
            note(y[:1] + i, str(i))
        return (y * y).sum()

    run = torch.compile(f, dynamic=dynamic)
    for n in (3, 3, 4):
        notes.clear()
        x = torch.full((n,), 0.5, requires_grad=True)
        run(x).backward()
        assert [w for w, _ in notes] == ["a", "in", "b", "0", "1", "2", "first", "grad", "last"]
        assert notes[0][1] == 0.5 * n and notes[4][1] == 4.0 and notes[7][1] == 6.0 * n
        assert torch.allclose(x.grad, torch.full((n,), 36.0))


@pytest.mark.filterwarnings("ignore:the operator effects_test")
def test_a_double_backward_does_not_repeat_the_forward():
    note, notes = _numbered()

    def f(x):
        note(x, "forward")
        return (x ** 3).sum()

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (grad,) = torch.autograd.grad(torch.compile(f)(x), x, create_graph=True)
    assert torch.autograd.grad(grad.sum(), x)[0].tolist() == [6.0, 12.0]
    assert [w for w, _ in notes] == ["forward"]


def test_checkpoints_do_not_repeat_effects(zoo):
    from pullback.utils.checkpoint import checkpoint

    def f(x):
        return checkpoint(lambda t: torch.ops.effects_test.zoo(t.sin()).exp().sin(), x,
                          use_reentrant=False).sum()

    run = torch.compile(f)
    for _ in range(2):
        x = torch.tensor([0.1, 0.2], requires_grad=True)
        zoo.clear()
        run(x).backward()
        assert zoo == ["zoo", "zoo2"]


@pytest.mark.filterwarnings("ignore:the operator effects_test")
def test_branches_and_loops_do_not_repeat_effects_in_their_derivatives():
    from pullback.control import cond, map, scan, while_loop

    note, notes = _numbered()

    def noted(a):
        note(a, "in")
        return a.sin()

    rows = torch.ones(2, 2)
    programs = [
        lambda x: cond(x.sum() > 0, noted, lambda a: a * 3, (x,)),
        lambda x: while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, noted(v)),
                             (torch.tensor(0), x))[1],
        lambda x: scan(lambda c, r: (noted(c) * r, c * 1), x, rows)[0],
        lambda x: map(lambda r, a: noted(a) * r, rows, x)]
    for program, count in zip(programs, (1, 2, 2, 2)):
        found = []
        for run in (program, torch.compile(program)):
            notes.clear()
            x = torch.ones(2, requires_grad=True)
            run(x).sum().backward()
            found.append(x.grad)
            assert [w for w, _ in notes] == ["in"] * count
        assert torch.allclose(*found)


@pytest.mark.filterwarnings("ignore:the operator effects_test")
def test_dead_code_elimination_keeps_them():
    note, notes = _numbered()
    module = make_fx(lambda x: (note(x.sum(0, keepdim=True), "moo"), x + x)[1])(torch.ones(3))
    module.graph.eliminate_dead_code()
    module.recompile()
    notes.clear()
    module(torch.ones(3))
    assert notes == [("moo", 3.0)]


def test_outputs_that_share_memory():
    def f(a):
        b = a.mul(2)
        torch.ops.aten._print("effect")
        return b, b.view(-1)

    run = aot_function(f, nop)
    for tracked in (True, False):
        b, c = run(torch.ones(3, requires_grad=tracked))
        b.mul_(3)
        assert c.tolist() == [6.0] * 3


def test_print_with_values(capfd):
    def f(x):
        hop_print("sum {} of {name}", x.sum(), name="x")
        return x * 2

    assert f(torch.ones(2)).tolist() == [2.0, 2.0]
    eager = capfd.readouterr().out
    assert eager == "sum 2.0 of x\n" or eager == "sum tensor(2.) of x\n"
    for run in (torch.compile(f), aot_function(f, nop)):
        run(torch.ones(2))
        assert capfd.readouterr().out == eager


def test_assertions_are_kept():
    def f(x):
        torch._assert_async((x > 0).all(), "not positive")
        return x * 2

    for run in (f, torch.compile(f)):
        assert run(torch.ones(2)).tolist() == [2.0, 2.0]
        with pytest.raises(RuntimeError, match="not positive"):
            run(-torch.ones(2))


# with_effects itself


def test_with_effects_by_hand():
    token, out = with_effects(torch.tensor([]), torch.ops.aten.add.Tensor, torch.ones(2), 1)
    assert token.numel() == 0 and out.tolist() == [2.0, 2.0]
    module = make_fx(lambda t, x: with_effects(t, torch.ops.aten.add.Tensor, x, x))(
        torch.tensor([]), torch.ones(2))
    assert "torch.ops.higher_order.with_effects(t_1, torch.ops.aten.add.Tensor, x_1, x_1)" in (
        module.code)
    assert module(torch.tensor([]), torch.ones(2))[1].tolist() == [2.0, 2.0]
    with pytest.raises(AssertionError, match="Ops with aliasing is not supported"):
        make_fx(lambda t, x: with_effects(t, torch.ops.aten.absolute_.default, x))(
            torch.tensor([]), torch.tensor(4))


def test_torchs_paths():
    from pullback.torch.install import counterpart

    assert counterpart("torch._higher_order_ops.effects").with_effects is with_effects
    assert counterpart("torch._higher_order_ops.effects")._get_effect is _get_effect
    assert counterpart("torch._library.effects").EffectType is _EffectType
    assert counterpart("torch._library.custom_ops").custom_op is torch.library.custom_op
    assert torch.ops.higher_order.with_effects is with_effects


def test_registrations():
    op = torch.ops.aten.cos.default
    handle = _register_effectful_op(op, ORDERED)
    assert _get_effect(op) is ORDERED and _get_effect("aten::cos") is ORDERED
    handle.destroy()
    assert _get_effect(op) is None
    assert _get_effect("aten::_print") is ORDERED
    with pytest.raises(ValueError, match="unexpected type"):
        torch.library._register_effectful_op(3, ORDERED)
    with pytest.raises(TypeError, match="EffectType or None"):
        torch.library._register_effectful_op("aten::cos", "ordered")


def test_tokens_of_described_joint_graphs(zoo):
    from contextlib import ExitStack

    from pullback.capture import descriptors as d
    from pullback.capture.export import (
        aot_compile_joint_with_descriptors,
        aot_export_joint_with_descriptors,
    )

    class Zoo(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            return torch.ops.effects_test.zoo(x * self.w)

    module = Zoo()
    with ExitStack() as stack:
        joint = aot_export_joint_with_descriptors(stack, module, (torch.ones(2),))
        inputs = [n.meta["desc"] for n in joint.graph_module.graph.find_nodes(op="placeholder")]
        assert inputs == [
            d.ForwardTokenAOTInput(0), d.ParamAOTInput("w"), d.PlainAOTInput(0),
            d.TangentAOTInput(d.PlainAOTOutput(0)), d.BackwardTokenAOTInput(0)]
        assert joint.graph_module.graph.output_node().meta["desc"] == [
            d.ForwardTokenAOTOutput(0), d.PlainAOTOutput(0),
            d.GradAOTOutput(d.ParamAOTInput("w")), None, d.BackwardTokenAOTOutput(0)]
        assert joint.graph_module.code.count("with_effects(") == 2
        function = aot_compile_joint_with_descriptors(joint)
    zoo.clear()
    out = function(module.w, torch.tensor([1.0, 3.0]))
    assert out.tolist() == [2.0, 6.0] and zoo == ["zoo"]
    out.sum().backward()
    assert module.w.grad.tolist() == [1.0, 3.0] and zoo == ["zoo", "zoo2"]
