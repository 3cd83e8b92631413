"""`aot.config`: settings act, and what is none of them is refused."""

import pytest

import pullback as pb
from pullback import aot, errors
from pullback.cut.partition import min_cut_rematerialization_partition


def loss(x):
    return x.sin().exp().sum()


def test_unknown_names():
    with pytest.raises(AttributeError, match=r"debug_asert does not exist .*py:"):
        aot.config.debug_asert = True
    with pytest.raises(errors.UnknownSetting, match="did you mean debug_assert"):
        aot.config.patch(debug_asert=True)
    with pytest.raises(AttributeError, match="does not exist"):
        aot.config.nothing_like_it
    assert "debug_asert" not in aot.config.to_dict()


@pytest.mark.parametrize(("name", "value"), [
    ("backward_pass_autocast", "on"), ("activation_memory_budget", 2), ("debug_assert", "yes"),
    ("saved_tensors_hooks_filtering_mode", "some"), ("joint_custom_pass", 3)])
def test_values(name, value):
    before = getattr(aot.config, name)
    with pytest.raises(ValueError, match=f"{name} cannot be .*py:"):
        setattr(aot.config, name, value)
    with pytest.raises(ValueError, match="Fix: set it to"):
        aot.config.patch({"debug_assert": True, name: value})
    assert getattr(aot.config, name) == before and aot.config.debug_assert is False


def test_settings_of_other_machinery_are_kept():
    with aot.config.patch(ban_recompute_reductions=False, enable_autograd_cache=False):
        assert not aot.config.ban_recompute_reductions
        loss(pb.ones(3))
    assert aot.config.ban_recompute_reductions


def test_both_passes_at_once():
    seen = []
    compiler = lambda name: lambda module, _: (seen.append(name), module)[1]
    with aot.config.patch(force_non_lazy_backward_lowering=True):
        aot.aot_function(loss, compiler("forward"), compiler("backward"))(
            pb.ones(3, requires_grad=True))
    assert seen == ["forward", "backward"]


def test_pass_over_the_joint_graph():
    def twice(module, inputs):
        assert len(inputs) == 2 and len(inputs[1]) == 1
        for node in module.graph.nodes:
            if node.target is pb.ops.aten.sin.default:
                node.target = pb.ops.aten.cos.default
        return module

    x = pb.zeros(3, requires_grad=True)
    with aot.config.patch(joint_custom_pass=twice):
        out = aot.aot_function(lambda x: x.sin(), aot.nop)(x)
    assert out.tolist() == [1, 1, 1]


def test_partitions_are_printed(capsys):
    x = pb.ones(3, requires_grad=True)
    with aot.config.patch(debug_partitioner=True):
        aot.aot_function(loss, aot.nop, partition_fn=min_cut_rematerialization_partition)(x)
    assert "saved" in capsys.readouterr().out


def test_strides_of_tangents():
    seen = []

    def backward(module, _):
        seen.append(next(n for n in module.graph.nodes if "tangents" in n.name).meta["val"])
        return module

    for guess in (True, False):
        x = pb.ones(3, 4, requires_grad=True)
        with aot.config.patch(guess_tangent_strides_as_outputs=guess):
            aot.aot_function(lambda x: x.t() * 2, aot.nop, backward)(x).sum().backward()
    assert [t.stride() for t in seen] == [(1, 4), (3, 1)]


def test_graphs_are_drawn(tmp_path):
    path = tmp_path / "joint.svg"
    f = aot.aot_function(loss, aot.draw_graph_compile(str(path)))
    assert f(pb.zeros(3)).item() == 3
    text = (tmp_path / "joint.dot").read_text()
    assert text.startswith("digraph") and "aten.sin.default" in text and "->" in text


def test_only_what_is_noted_is_taken_apart():
    table = {pb.ops.aten.silu.default: lambda x: x * pb.sigmoid(x),
             pb.ops.aten.silu_backward.default: lambda grad, x: grad * pb.sigmoid(x)}

    def function(x):
        x = pb.nn.functional.silu(x)
        with pb.fx.traceback.annotate({"compile_with_inductor": True}):
            return pb.nn.functional.silu(x)

    def counts():
        seen = []
        keep = lambda module, _: (seen.append(module), module)[1]
        aot.aot_function(function, keep, keep, decompositions=table)(
            pb.ones(3, requires_grad=True)).sum().backward()
        return [(m.code.count("aten.silu"), m.code.count("aten.sigmoid")) for m in seen]

    assert counts() == [(0, 2), (0, 2)]
    with aot.config.patch(selective_decompose=True):
        assert counts() == [(1, 1), (1, 1)]  # as PyTorch, in both passes


def test_addresses_of_tensors_without_data():
    fake = pb.fx.fake_mode.FakeTensorMode().from_tensor(pb.ones(3))
    assert fake.data_ptr() == pb.empty(3, device="meta").data_ptr() == 0
    with aot.config.patch(fake_tensor_allow_unsafe_data_ptr_access=False), pytest.raises(
            RuntimeError, match=r"Cannot access data pointer of Tensor.*py:"):
        fake.data_ptr()
    with pytest.raises(RuntimeError, match="data_ptr"):  # nor has a captured one an address
        aot.aot_function(lambda x: x + x.data_ptr(), aot.nop)(pb.ones(3))


def test_the_device_of_fake_tensors():
    meta = pb.empty(3, device="meta")
    mode = pb.fx.fake_mode.FakeTensorMode()
    assert mode.from_tensor(meta).device.type == "meta"
    with aot.config.patch(fake_tensor_allow_meta=False):
        mode = pb.fx.fake_mode.FakeTensorMode()
    with pytest.raises(AssertionError, match="fake_tensor_allow_meta is False"):
        mode.from_tensor(meta)
    with mode, pytest.raises(AssertionError, match="fake_tensor_allow_meta is False"):
        pb.empty(3, device="meta")
    with mode:
        assert (pb.empty(3) + 1).device.type == "cpu"


def test_without_the_disk(monkeypatch):
    from pullback.compile import warm

    run, asked = pb.compile(loss), []
    run(pb.zeros(3, requires_grad=True))
    (program,) = run.programs.values()

    def find():
        asked.append(True)
        raise OSError

    monkeypatch.setattr(warm.toolchain, "find", find)
    with aot.config.patch(enable_autograd_cache=False):
        assert warm.recall(program.joint, True, True, "") is None and not asked
    assert warm.recall(program.joint, True, True, "") is None and asked


def test_common_subexpressions_under_pytorchs_name():
    from pullback._functorch.compile_utils import fx_graph_cse
    from pullback.fx.make_fx import make_fx

    module = make_fx(lambda x: x.cos() + x.cos())(pb.ones(3))
    once = fx_graph_cse(module.graph)
    assert len(once.nodes) == len(module.graph.nodes) - 1 == 4
