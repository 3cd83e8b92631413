"""Entry points of ahead-of-time compilation: compilers, names of graphs, assertions, modules."""

import itertools

import pytest

import pullback as pb
from pullback import aot, errors, nn
from pullback.cut import settings as context
from pullback.fx import GraphModule
from tests.helpers.export_modules import Parts
from tests.helpers.garbage import uncollected


class Seen(list):
    """A compiler that keeps what it was given."""

    def __call__(self, name):
        def run(module, inputs):
            self.append((name, module, inputs, aot.get_aot_compilation_context()))
            return aot.make_boxed_func(module)

        return run

    @property
    def names(self):
        return [name for name, *_ in self]


@pytest.fixture
def fresh(monkeypatch):
    """Graphs and functions counted from 0."""
    monkeypatch.setattr(context, "AOT_COUNTER", itertools.count())
    monkeypatch.setattr(context, "_count", 0)


def compiled(f, seen, **options):
    return aot.aot_function(
        f, seen("forward"), seen("backward"), inference_compiler=seen("inference"), **options)


def leaf(*shape):
    return pb.ones(shape, requires_grad=True)


def test_backward_is_compiled_when_it_first_runs():
    seen, x = Seen(), leaf(3)
    f = compiled(pb.sin, seen)
    y = f(x)
    assert seen.names == ["forward"]
    y.sum().backward()
    assert seen.names == ["forward", "backward"]
    f(x).sum().backward()
    assert seen.names == ["forward", "backward"]


def test_no_backward_without_grad_mode():
    seen, x = Seen(), leaf(3)
    with pb.set_grad_enabled(False):
        assert not compiled(pb.sin, seen)(x).requires_grad
    assert seen.names == ["inference"]


def test_inference_mode_gives_an_inference_graph():
    seen = Seen()
    with pb.inference_mode():
        compiled(pb.sin, seen)(leaf(3))
    assert seen.names == ["inference"] and "arg0_1" in seen[0][1].code


def test_inference_graph_where_no_output_requires_grad():
    seen = Seen()
    out = compiled(lambda x: x.detach() * 2, seen)(leaf(3))
    assert seen.names == ["inference"] and not out.requires_grad


def test_names_of_graphs_while_they_are_compiled(fresh):
    seen, x = Seen(), leaf(3)
    y = compiled(pb.sin, seen)(x)
    compiled(pb.sin, seen)(x.detach())
    y.sum().backward()  # after the other function's graph
    assert [context[0] for *_, context in seen] == [["0_forward"], ["1_inference"], ["0_backward"]]
    assert [context[2] for *_, context in seen] == [1, 2, 3]  # the joint graph was number 0
    assert aot.get_aot_compilation_context() == ([], "model", 4)


def test_model_name(fresh, monkeypatch):
    monkeypatch.setattr(context, "_model", "model")
    aot.set_model_name("net")
    found = []
    aot.aot_function(pb.sin, lambda g, i: (found.append(aot.get_aot_graph_name()), g)[1])(
        pb.ones(2))
    assert found == ["net__0_inference_0"]
    assert aot.get_graph_being_compiled is aot.get_aot_graph_name


def test_example_inputs_have_no_data():
    seen = Seen()
    compiled(lambda a, n, s: a * n, seen)(leaf(2, 3), 4, None)
    a, n, s = seen[0][2]
    assert type(a._payload).__name__ == "Fake" and a.shape == (2, 3) and (n, s) == (4, None)


def test_boxed_functions_may_empty_their_list():
    def compiler(module, inputs):
        def run(args):
            assert isinstance(args, list)
            taken = list(args)
            args.clear()
            return module(*taken)

        run._boxed_call = True
        return run

    x = leaf(3)
    aot.aot_function(pb.exp, compiler)(x).sum().backward()
    assert pb.allclose(x.grad, pb.exp(x))


def test_partitioner_gets_the_joint_graph():
    from pullback.cut.partition import default_partition

    got = []

    class Cut:
        def __call__(self, joint, inputs, **kwargs):
            got.append((joint, inputs, kwargs, aot.get_aot_compilation_context()[0]))
            return default_partition(joint, inputs, **kwargs)

        def uuid(self):
            return "cut"

    x = leaf(3)
    aot.aot_function(lambda x: (x.sin(), x.cos()), aot.nop, partition_fn=Cut())(x)
    ((joint, (primals, tangents), kwargs, names),) = got
    lines = [line.strip() for line in joint.code.strip().splitlines()]
    assert lines[0] == "def forward(self, primals, tangents):"
    assert lines[-1] == "return pytree.tree_unflatten([sin, cos, add], self._out_spec)"
    assert [len(o) for o in (joint([x], [x, x]),)] == [3]
    assert isinstance(joint, GraphModule) and kwargs["num_fwd_outputs"] == 2
    assert (len(primals), len(tangents)) == (1, 2) and names[0].endswith("_joint")


def test_decompositions_take_operators_apart():
    seen = Seen()
    table = {pb.ops.aten.silu.default: lambda x: x * x.sigmoid()}
    compiled(nn.functional.silu, seen, decompositions=table)(pb.ones(3))
    assert "sigmoid" in seen[0][1].code and "silu" not in seen[0][1].code


@pytest.mark.parametrize("keep", [False, True])
def test_writes_kept_in_inference_graphs(keep):
    seen, x = Seen(), pb.ones(3)

    def f(x):
        x.mul_(2)
        return x + 1

    compiled(f, seen, keep_inference_input_mutations=keep)(x)
    assert x.tolist() == [2.0] * 3 and x._version == 1
    assert ("copy_" in seen[0][1].code) is keep
    assert len(seen[0][1].graph.output_node().args[0]) == 2 - keep


def test_old_value_that_the_backward_reads_is_not_overwritten_in_the_graph():
    seen, x, b = Seen(), leaf(3), pb.full((3,), 5.0)

    def f(a, b):
        y = a * b
        b.mul_(2)
        return y

    compiled(f, seen, keep_inference_input_mutations=True)(x, b).sum().backward()
    assert "copy_" not in seen[0][1].code
    assert x.grad.tolist() == [5.0] * 3 and b.tolist() == [10.0] * 3


def test_captured_again_for_other_shapes_and_values():
    seen = Seen()
    f = compiled(lambda x, n: x * n, seen)
    assert f(pb.ones(2), 2).tolist() == [2.0, 2.0]
    assert f(pb.ones(3), 2).tolist() == [2.0] * 3
    assert f(pb.ones(3), 5).tolist() == [5.0] * 3
    assert len(seen) == 3


# assumptions


def in_place(x, y):
    x.mul_(2)
    return x + y


def test_duplicates_that_were_written_are_assumed(fresh):
    x, y = pb.ones(3), pb.ones(3)
    f = aot.aot_function(in_place, aot.nop)
    f(x, x)
    with pytest.raises(AssertionError) as error:
        f(x, y)
    assert str(error.value) == (
        "At compilation time, graph 0 was compiled under the assumption that input 1 would be a "
        "duplicate of input 0, but at runtime this was not the case.  This indicates a guard bug "
        "in AOTAutograd or Dynamo, please file a bug to PyTorch.")
    assert y.tolist() == [1.0] * 3


def test_duplicates_for_a_program_of_different_tensors():
    seen, x, y = Seen(), pb.ones(3), pb.ones(3)
    f = compiled(in_place, seen)
    assert f(x, y).tolist() == [3.0] * 3
    assert f(x, x).tolist() == [8.0] * 3
    g = compiled(lambda x, y: x + y, seen)
    g(x, y), g(x, x), g(y, x)
    assert len(seen) == 3  # two for the writing one


def test_requires_grad_is_assumed_when_asked_to_check(fresh):
    x, y = leaf(3), pb.ones(3)
    f = aot.aot_function(lambda x, y: x * y, aot.nop)
    f(x, y)
    assert f(x, x).requires_grad  # captured again
    with aot.config.patch(debug_assert=True):
        f = aot.aot_function(lambda x, y: x * y, aot.nop)
        f(x, y)
        with pytest.raises(AssertionError, match="input 1 would not require grad, but at runtime"):
            f(x, x)
        assert not f(y, y).requires_grad  # fewer of them is fine


def test_fewer_inputs_that_require_grad_run_the_same_graph():
    seen, x, y = Seen(), leaf(3), leaf(3)
    f = compiled(lambda x, y: x * y, seen)
    f(x, y)
    f(x, y.detach()).sum().backward()
    assert seen.names == ["forward", "backward"] and y.grad is None
    assert x.grad.tolist() == [1.0] * 3


def test_settings_are_patched_for_a_while():
    config = aot.config
    assert config.debug_assert is False

    @config.patch("debug_assert", True)
    def inside():
        with config.patch({"debug_assert": False}):
            assert not config.debug_assert
        return config.debug_assert

    assert inside() and config.debug_assert is False


# modules


def model():
    pb.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 2))


def observed(run, net, x):
    out = [run(x).pow(2).sum() for _ in range(2)]
    out[-1].backward()
    return ([o.item() for o in out], [p.grad.tolist() for p in net.parameters()],
            [b.tolist() for b in net.buffers()])


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("make", ["aot_module", "compiled_module"])
def test_module(make, training):
    x = pb.randn(5, 4)
    eager, net = model().train(training), model().train(training)
    module = getattr(aot, make)(net, aot.nop)
    assert isinstance(module, nn.Module) and module.orig_module is net
    assert observed(eager, eager, x) == observed(module, net, x)


def test_module_inputs_are_parameters_buffers_arguments():
    seen, net = Seen(), model()
    aot.aot_module(net, seen("forward"), seen("backward"))(pb.randn(5, 4))
    shapes = [tuple(v.shape) for v in seen[0][2]]
    state = [*net.parameters(), *net.buffers()]
    assert shapes == [tuple(t.shape) for t in state] + [(5, 4)]
    returned = seen[0][1].graph.output_node().args[0]
    assert len(returned[:3]) == 3  # three written buffers before the user's output
    assert [tuple(n.meta["val"].shape) for n in returned[:4]] == [(3,), (3,), (), (5, 2)]


def test_module_that_changes_between_training_and_evaluation():
    net = model()
    module = aot.aot_module(net, aot.nop)
    x = pb.randn(5, 4)
    module(x)
    module.eval()
    assert not net.training
    assert pb.allclose(module(x), net(x))


def test_simplified_module_is_compiled_at_once():
    class Net(Parts):
        def forward(self, x):
            return (self.linear(x).relu(),)

    seen, net, x = Seen(), Net(linear=nn.Linear(4, 3)), pb.randn(2, 4)
    f = aot.aot_module_simplified(net, (x,), seen("forward"), seen("backward"))
    assert seen.names == ["forward"]
    (out,) = f(x)
    assert seen.names == ["forward"]
    out.sum().backward()
    assert seen.names == ["forward", "backward"]
    expected = pb.autograd.grad(net(x)[0].sum(), list(net.parameters()))
    for p, g in zip(net.parameters(), expected):
        assert pb.equal(p.grad, g)
    assert next(iter(f.named_parameters()))[0] == "linear.weight"


def test_simplified_module_from_inputs_without_data():
    from pullback.fx.fake_mode import FakeTensorMode

    class Sum(nn.Module):
        def forward(self, x, y):
            return (x + y,)

    with FakeTensorMode():
        a, b = pb.ones(2, 3), pb.ones(2, 3)
    seen = Seen()
    f = aot.aot_module_simplified(Sum(), (a, b), seen("forward"))
    assert f(pb.ones(2, 3), pb.ones(2, 3))[0].sum().item() == 12
    assert len(seen) == 1


def test_simplified_module_returns_tuples():
    with pytest.raises(RuntimeError, match="Graph output must be a"):
        aot.aot_module_simplified(nn.Linear(2, 2), (pb.ones(1, 2),), aot.nop)


def test_simplified_module_with_a_constant_without_data():
    from pullback.fx.fake_mode import FakeTensorMode

    class Net(nn.Module):
        def forward(self, x):
            return (x + self.constant,)

    net = Net()
    with FakeTensorMode():
        net.constant = pb.ones(2)
    with pytest.raises(AssertionError, match="Unexpected fake"):
        aot.aot_module_simplified(net, (pb.ones(2),), aot.nop)


def test_layer_norm_is_bitwise_eager():
    net, x = nn.LayerNorm(7), pb.randn(5, 7)
    assert pb.equal(aot.aot_module(net, aot.nop)(x), net(x))


# compilers


def test_print_compile(capsys):
    aot.aot_function(pb.sin, aot.print_compile)(pb.ones(2))
    assert "torch.ops.aten.sin.default(arg0_1)" in capsys.readouterr().out


def test_boxed_nop_runs_node_by_node():
    x = leaf(3)
    f = aot.aot_function(lambda x: x.sin() * 2, aot.boxed_nop_preserve_node_meta)
    f(x).sum().backward()
    assert pb.allclose(x.grad, 2 * pb.cos(x))


def test_debug_compilers(capsys):
    from pullback.compile.ahead import debug_nop

    x = leaf(3)
    aot.aot_function(lambda x: x.sin() * 2, debug_nop)(x).sum().backward()
    assert pb.allclose(x.grad, 2 * pb.cos(x))


@pytest.mark.cc
def test_native_conveniences():
    from pullback.compile.ahead import memory_efficient_fusion, nnc_jit

    def f(d):
        return {"out": (d["a"].sin() * d["b"]).tanh()}

    args = {"a": leaf(3), "b": leaf(3)}
    for convenience in (nnc_jit, memory_efficient_fusion):
        args["a"].grad = None
        found = convenience(f)(args)
        found["out"].sum().backward()
        (expected,) = pb.autograd.grad(f(args)["out"].sum(), args["a"])
        assert pb.allclose(args["a"].grad, expected)
    net, x = model(), pb.randn(5, 4)
    assert pb.allclose(memory_efficient_fusion(net)(x), net(x), atol=1e-6)


def test_pytorchs_import_paths():
    import subprocess
    import sys

    program = """
import pullback; pullback.install_as_torch()
import functorch.compile as fc, torch._functorch.config as config
from functorch.compile import (aot_function, aot_module, aot_module_simplified, compiled_function,
    compiled_module, debug_compile, default_decompositions, default_partition,
    get_aot_compilation_context, get_aot_graph_name, get_graph_being_compiled, make_boxed_compiler,
    make_boxed_func, memory_efficient_fusion, min_cut_rematerialization_partition, nnc_jit, nop,
    print_compile, ts_compile)
from torch._functorch.aot_autograd import aot_module_simplified as other, set_model_name
from torch._functorch.compilers import simple_ts_compile, debug_nop, DebugInterpreter
from torch._functorch.partitioners import default_partition as cut
assert fc.config is config and other is aot_module_simplified and cut is default_partition
config.debug_assert = True
assert pullback.aot.config.debug_assert
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_numbers_of_functions_count_up(fresh):
    numbers = itertools.count()
    for _ in range(3):
        seen = Seen()
        compiled(pb.sin, seen)(pb.ones(2))
        assert seen[0][3][0] == [f"{next(numbers)}_inference"]


# backends of compile


def test_compilers_as_a_backend_of_compile():
    from pullback.compile.backends import aot_autograd

    seen = Seen()
    backend = aot_autograd(fw_compiler=seen("forward"), bw_compiler=seen("backward"),
                           inference_compiler=seen("inference"))
    x = leaf(3)
    f = pb.compile(lambda x: x.sin().sum(), backend=backend)
    f(x).backward()
    assert pb.allclose(x.grad, pb.cos(x)) and seen.names == ["forward", "backward"]
    assert "primals_1" in seen[0][1].code
    f(pb.ones(3))
    assert seen.names[2:] == ["inference"]
    net = nn.Linear(3, 2)
    out = pb.compile(net, backend=backend)(pb.ones(1, 3))
    out.sum().backward()
    assert net.weight.grad.tolist() == [[1.0] * 3] * 2


def test_values_that_are_read_run_eagerly_with_such_a_backend():
    from pullback.compile.backends import aot_autograd

    def f(x):
        return x * 2 if x.sum() > 0 else x

    with pytest.warns(UserWarning, match="operator by operator"):
        assert pb.compile(f, backend=aot_autograd())(pb.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(errors.DataDependentError):
        pb.compile(f, backend=aot_autograd(), fullgraph=True)(pb.ones(2))


def test_backend_by_name():
    from pullback.compile import backends

    graphs = []

    @backends.register_backend(name="keeps")
    def keep(module, inputs):
        graphs.append(module)
        return module

    try:
        assert pb.compile(lambda x: x + 1, backend="keeps")(pb.ones(2)).tolist() == [2.0, 2.0]
        assert len(graphs) == 1 and "keeps" in pb.compiler.list_backends()
    finally:
        del backends._registered["keeps"]
    with pytest.raises(errors.CompileError, match="unknown backend 'keeps'"):
        pb.compile(lambda x: x, backend="keeps")


# what nodes know


def test_nodes_know_their_lines_and_shapes():
    def f(x):
        x.mul_(2)
        return x.sin()

    seen = Seen()
    compiled(f, seen, keep_inference_input_mutations=True)(pb.ones(3))
    compiled(f, seen)(leaf(3) * 1).sum().backward()
    lines = {}
    for name, module, *_ in seen:
        for node in module.graph.nodes:
            if node.op != "output":
                assert node.meta["tensor_meta"].shape == (3,)
            if node.op == "call_function" and node.target is not pb.ops.aten.clone.default:
                lines[name, node.name] = node.stack_trace
    assert all("test_entry_points.py" in line for line in lines.values())
    assert lines["inference", "copy_"] == lines["inference", "mul"]
    assert lines["backward", "cos"] == lines["forward", "sin"]


def test_outputs_of_inference_mode():
    with pb.inference_mode():
        for f in (aot.aot_function(pb.sin, aot.nop), pb.compile(pb.sin, backend="numpy")):
            assert [f(pb.ones(2)).is_inference() for _ in range(3)] == [True] * 3


def test_no_grad_mode_inside_of_a_compiled_forward():
    modes = []

    def compiler(module, inputs):
        def run(*args):
            modes.append(pb.is_grad_enabled())
            return module(*args)

        return run

    aot.aot_function(pb.sin, compiler)(leaf(3)).sum().backward()
    assert modes == [False, False] and pb.is_grad_enabled()


def test_saved_tensors_go_with_the_output():
    import weakref

    f = aot.aot_function(lambda x: (x * 2).sin(), aot.nop)
    y = f(leaf(8))
    refs = [weakref.ref(y._payload), *[weakref.ref(a) for a in y.grad_fn.saved]]
    with uncollected():
        del y
        assert [r() for r in refs] == [None] * len(refs)
