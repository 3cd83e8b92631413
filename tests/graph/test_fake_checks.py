"""Fakes against data: cross references, data beside fakes, memory that they share, settings."""

import pytest

import pullback as torch
from pullback import errors
from pullback.aot import config
from pullback.compile.ahead import DebugInterpreter
from pullback.decomp import get_decompositions
from pullback.fx import Graph, GraphModule
from pullback.fx.fake_mode import FakeTensorConverter, FakeTensorMode, is_fake
from pullback.fx.isolated import DecompositionInterpreter
from pullback.fx.make_fx import make_fx
from pullback.fx.passes.fake_tensor_prop import FakeTensorProp
from pullback.fx.tracer import symbolic_trace
from pullback.nn.utils.stateless import _reparametrize_module
from pullback.symbolic import ShapeEnv
from pullback.symbolic.settings import config as sizes
from pullback.torch.crossref import (
    CrossRefFakeMode,
    compare_tensor_meta,
    extract_tensor_metadata,
    output_alias_each_other,
    outputs_alias_inputs,
    try_convert_fake_to_real,
)


@torch.library.custom_op("fakechecks::turned", mutates_args=())
def turned(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@turned.register_fake
def _(x):
    return x.new_empty(tuple(x.shape)[::-1])


def test_operators_on_data_and_on_fakes():
    with CrossRefFakeMode():
        layers = torch.nn.Sequential(torch.nn.BatchNorm2d(3), torch.nn.ReLU())
        layers(torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)).sum().backward()
        assert torch.tensor([1.0, 0.0]).nonzero().shape == (1, 1)  # only the data know
        turned(torch.ones(2, 2))
        with pytest.raises(errors.MetadataMismatchError, match=r"turned.default.*\n.*output 0: the "
                           r"shape differ: \(2, 3\) and \(3, 2\)"):
            turned(torch.ones(2, 3))
    with CrossRefFakeMode(ignore_op_fn=lambda op: "turned" in str(op)):
        turned(torch.ones(2, 3))


def test_facts_of_two_tensors():
    x = torch.ones(2, 3)
    compare_tensor_meta(x, torch.zeros(2, 3), check_strides=True)
    compare_tensor_meta(x, torch.ones(3, 2).t())
    for other in (torch.ones(3, 2), x.double(), torch.ones(2, 3, device="meta"), 3):
        with pytest.raises(errors.MetadataMismatchError):
            compare_tensor_meta(x, other)
    with pytest.raises(errors.MetadataMismatchError, match="strides"):
        compare_tensor_meta(x, torch.ones(3, 2).t(), check_strides=True)
    view = torch.ones(2, 3).t()[1:]
    facts = extract_tensor_metadata(view)  # as PyTorch tells them
    assert (facts.stride, facts.memory_format, facts.storage_offset, facts.storage_bytes) == (
        (1, 3), None, 1, 24)
    assert facts == extract_tensor_metadata(FakeTensorMode().from_tensor(view))
    last = torch.ones(2, 3, 4, 4).to(memory_format=torch.channels_last)
    assert extract_tensor_metadata(last).memory_format is torch.channels_last
    assert len({extract_tensor_metadata(t) for t in (x, x + 1, x.double(), x.t())}) == 3
    assert outputs_alias_inputs(x[0], [x]) and not outputs_alias_inputs(x + 1, [x])
    assert output_alias_each_other([x[0], x[1]]) and not output_alias_each_other([x, x + 1])


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated:UserWarning")
def test_memory_of_fakes():
    mode, x = FakeTensorMode(), torch.rand(2, 2, 2)
    view = x[1]
    fake, part = mode.from_tensor(x), mode.from_tensor(view)
    assert part.storage_offset() == 4 and part.untyped_storage() is fake.untyped_storage()
    assert fake.untyped_storage().nbytes() == 32 and fake.storage()._cdata == part.storage()._cdata
    assert str(fake.storage()) == (
        "...\n[torch.storage.TypedStorage(dtype=torch.float32, device=meta) of size 8]")
    assert "of size 32" in repr(part.untyped_storage()) and part.untyped_storage().data_ptr() == 0
    with pytest.raises(errors.DataDependentError, match="no bytes"):
        part.untyped_storage().tolist()
    (real,) = try_convert_fake_to_real([part[1:]])
    assert (real == view[1:]).all() and real.storage_offset() == 6
    memo = mode.fake_tensor_converter
    assert len(memo.storage_memo) == 1
    del x, fake, view, part, real
    assert not memo.storage_memo and not memo.tensor_memo
    with mode:
        made = torch.empty(4, 5)
        assert made[1:].untyped_storage() is made.untyped_storage()
        assert torch.empty_strided((1, 3, 4), (0, 1, 3)).stride() == (0, 1, 3)
        assert made.is_set_to(made[:]) and not made.is_set_to(torch.empty(4, 5))


def test_what_comes_along_with_a_fake():
    x = torch.rand(4, requires_grad=True)
    x.grad = torch.rand(4)
    mode = FakeTensorMode()
    fake = mode.from_tensor(x)
    assert is_fake(fake.grad) and fake.grad.shape == (4,) and fake.grad.fake_mode is mode
    meta, converter = torch.rand(2, device="meta"), FakeTensorConverter()
    placed = converter.from_meta_and_device(mode, meta, "cuda")
    assert placed.device.type == "cuda"
    assert converter.from_meta_and_device(mode, meta, "cuda") is placed
    with mode:
        assert torch.tensor([3.0, 2.0], device="cuda").device.type == "cuda"
        assert torch.div(4, 4, rounding_mode="trunc").constant.item() == 1
        grad, x = torch.rand(2, 3, 4, 4), torch.rand(2, 3, 4, 4).to(
            memory_format=torch.channels_last)
        assert torch.ops.aten._adaptive_avg_pool2d_backward(grad, x).stride() == x.stride()


def decided(x):
    found = x.nonzero()
    y = x.clone()
    y.mul_(0.0)
    assert y.nonzero().shape[0] == 0
    return found * 2 if found.shape[0] == 2 and x.sum().item() > 1 else x


def test_data_beside_fakes_decide():
    x = torch.tensor([1.0, 0.0, 3.0])
    with pytest.raises(errors.GuardOnDataDependentSymNode):
        make_fx(decided, tracing_mode="symbolic")(x)
    with config.patch(fake_tensor_propagate_real_tensors=True):
        made = make_fx(decided, tracing_mode="symbolic")(x)
        assert (made(x) == decided(x)).all() and x.tolist() == [1.0, 0.0, 3.0]
        with FakeTensorMode(shape_env=ShapeEnv()) as mode:
            fake = mode.from_tensor(x)
            size = torch.tensor([1, 0, 2]).nonzero().shape[0]
            assert isinstance(size, torch.SymInt) and size == 2 and int(fake.sum().item()) == 4
        with pytest.raises(errors.MetadataMismatchError, match="turned"):
            make_fx(turned, tracing_mode="fake")(torch.ones(2, 3))
    make_fx(turned, tracing_mode="fake")(torch.ones(2, 3))


def test_settings_of_sizes():
    with sizes.patch(use_duck_shape=False):
        made = make_fx(lambda a, b: (a * 2, b * 3), tracing_mode="symbolic")(
            torch.ones(4), torch.ones(4))
        assert len(made.shape_env.symbols) == 2
    x = torch.ones(3, 2, device="meta")
    with pytest.raises(errors.DynamicOutputShapeException):
        x.nonzero()
    with sizes.patch(meta_nonzero_assume_all_nonzero=True):
        assert x.nonzero().shape == (6, 2)
    with pytest.raises(errors.UnknownSetting):
        sizes.use_duck_shapes = True


def test_a_graph_on_fakes_of_another_mode():
    module, x = symbolic_trace(torch.nn.Sequential(torch.nn.Linear(4, 3))), torch.rand(5, 4)
    with FakeTensorMode() as mode:
        own = {k: mode.from_tensor(v) for k, v in module.named_parameters()}
        with _reparametrize_module(module, own):
            assert FakeTensorProp(module, mode).propagate(x).shape == (5, 3)
            with pytest.raises(AssertionError, match="Mixing fake modes"):
                FakeTensorProp(module).propagate(x)


def test_interpreters_of_captures():
    module = make_fx(lambda x: torch.mm(x, x.t() * 2), tracing_mode="symbolic")(torch.ones(2, 3))
    checked = DebugInterpreter(module)
    assert checked.run(torch.ones(4, 5)).shape == (4, 4)  # sizes that the symbols may have
    with pytest.raises(AssertionError, match=r"stride is .*: 5 != 1"):
        checked.run(torch.ones(5, 4).t())
    silu = torch.ops.aten.silu.default
    x = torch.rand(4, 4)
    module, graph = make_fx(torch.nn.functional.silu)(x), Graph()
    assert silu in [n.target for n in module.graph.nodes]
    DecompositionInterpreter(module, graph, get_decompositions([silu])).run(x)
    graph.lint()
    assert silu not in [n.target for n in graph.nodes]
    assert torch.allclose(GraphModule(module, graph)(x), module(x))


def test_a_function_that_stands_for_a_module():
    layers = torch.nn.Sequential(torch.nn.ReLU())

    def call(x):
        return layers(x) + 1

    call._orig_mod = layers
    made = make_fx(call, record_module_stack=True)(torch.ones(2))
    stacks = [n.meta.get("nn_module_stack", {}) for n in made.graph.nodes if n.name == "relu"]
    assert [kind for _, kind in stacks[0].values()] == [torch.nn.Sequential, torch.nn.ReLU]


def test_a_capture_inside_of_a_capture():
    """The outer one is not told of the inner one, but of the graph that is run."""
    def inner(x):
        return torch.sigmoid(x) + torch.full((2,), 3.0)

    def outer(x, runs):
        made = make_fx(inner)(x)
        assert "sigmoid" in made.code and "full" in made.code
        return torch.digamma(x) if not runs else made(x)

    for mode in ("real", "fake", "symbolic"):
        code = make_fx(lambda x: outer(x, False), tracing_mode=mode)(torch.ones(2)).code
        assert "digamma" in code and "sigmoid" not in code and "full" not in code
        assert "sigmoid" in make_fx(lambda x: outer(x, True), tracing_mode=mode)(torch.ones(2)).code


def test_an_input_of_another_size():
    def f(x, y):
        x.resize_(y.shape[0])
        return y * 2

    code = make_fx(f, tracing_mode="symbolic")(torch.empty(0), torch.ones(3)).code
    assert "resize_.default(x_1, [sym_size_int])" in code
