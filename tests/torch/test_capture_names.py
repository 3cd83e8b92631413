"""What exists only because PyTorch's capture has it: counters, proxies by hand, references, ..."""

import gc
import math
import uuid

import pytest

import pullback as torch
from pullback import errors, fx
from pullback.aot import aot_function, nop


@pytest.fixture
def counters():
    from pullback._dynamo.utils import counters

    counters.clear()
    yield counters
    counters.clear()


def loss(x):
    return (x.sin() * x).sum()


# counters


def test_counters_of_what_was_compiled(counters):
    f = torch.compile(loss, backend="aot_eager", dynamic=False)
    for n in (3, 3, 4):
        f(torch.ones(n, requires_grad=True)).backward()
    assert counters["frames"] == {"total": 2, "ok": 2}
    assert counters["stats"] == {"calls_captured": 6, "unique_graphs": 2}
    assert {"total": 2, "ok": 2}.items() <= counters["aot_autograd"].items()
    assert counters["graph_break"]["nothing"] == 0


def test_counters_of_what_was_refused(counters):
    with pytest.raises(errors.ShapeError):
        torch.compile(lambda x: x @ x)(torch.ones(3, 4))
    assert counters["aot_autograd"]["not_ok"] == 1 and "ok" not in counters["frames"]
    assert torch._dynamo.is_dynamo_supported()


# backends that count, printed graphs


def test_backends_that_count_and_keep():
    from pullback._dynamo import testing

    counter = testing.CompileCounter()
    f = torch.compile(loss, backend=counter)
    f(torch.ones(3)), f(torch.ones(3))
    assert (counter.frame_count, counter.op_count) == (1, 3)
    counter.clear()
    assert (counter.frame_count, counter.op_count) == (0, 0)
    named = testing.CompileCounterWithBackend("aot_eager")
    both = testing.AotEagerAndRecordGraphs()
    for backend in (named, both, testing.EagerAndRecordGraphs(), testing.InductorAndRecordGraphs()):
        x = torch.ones(3, requires_grad=True)
        torch.compile(loss, backend=backend)(x).backward()
        assert len(backend.graphs) == 1
        assert testing.same(x.grad, torch.full((3,), math.sin(1) + math.cos(1)))
    assert "cos" in both.bw_graphs[0].code and "sum" in both.fw_graphs[0].code
    assert not testing.same(torch.ones(2), torch.zeros(2))
    t = testing.rand_strided((2, 3), (4, 1), torch.float64)
    assert t.stride() == (4, 1) and t.dtype == torch.float64


def test_printed_graphs_are_compared_without_comments():
    from pullback._dynamo.testing import normalize_gm

    text = ("\nclass M:\n    # File: x.py\n    def f(self):   \n"
            "        a = 1  # one\n\n\n\n        return a\n")
    assert normalize_gm(text) == (
        "\nclass M:\n    def f(self):\n        a = 1  # one\n\n        return a\n")


# the capture for export


def test_capture_for_export_by_itself():
    from pullback._dynamo.functional_export import dynamo_graph_capture_for_export

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 3)
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x, *, scale):
            self.calls.add_(1)
            return {"out": self.layer(x).relu() * scale["by"]}

    model, x, scale = Model(), torch.rand(2, 3), {"by": torch.tensor(2.0)}
    module = dynamo_graph_capture_for_export(model)(x, scale=scale)
    assert isinstance(module, fx.GraphModule) and "aten.linear" in module.code
    assert [n for n, _ in module.named_parameters()] == ["layer.weight", "layer.bias"]
    assert torch.equal(module(x, scale=scale)["out"], model(x, scale=scale)["out"])
    assert module.calls.item() == 2 and model.calls is module.calls
    plain = dynamo_graph_capture_for_export(lambda x: (x.sin(), x.shape[0]))(x)
    assert plain(x)[1] == 2
    with pytest.raises(errors.ExportError, match="constraints"):
        dynamo_graph_capture_for_export(model, constraints=[1])(x, scale=scale)


# proxies by hand


def test_operators_of_a_block_as_a_graph():
    from pullback.fx.experimental import proxy_tensor as proxies

    tracer = proxies.PythonKeyTracer()
    tracer.root, tracer.graph = torch.nn.Module(), fx.Graph(tracer_cls=proxies.PythonKeyTracer)
    x, w = torch.ones(3), torch.full((3,), 2.0)
    proxy = tracer.create_proxy("placeholder", "x", (), {})
    proxies.track_tensor_tree(x, proxy, constant=None, tracer=tracer)
    with proxies.ProxyTorchDispatchMode(tracer, "real") as mode:
        first, second = torch.split(x, [1, 2])
        y = (x.sin() + w).sum() + torch.max(second, 0).values
        x.add_(1)
        y = y + x.sum() + first.sum()
        with pytest.raises(errors.DataDependentError, match="being traced"):
            y.item()
    assert mode.enable_tracing and y.item() == pytest.approx(3 * math.sin(1) + 6 + 1 + 6 + 2)
    tracer.graph.output(proxies.get_proxy_slot(y, tracer).proxy.node)
    module = fx.GraphModule(tracer.root, tracer.graph)
    assert torch.equal(module(torch.ones(3)), y) and "_tensor_constant0" in module.code
    with pytest.raises(KeyError):
        proxies.get_proxy_slot(torch.ones(1), tracer)
    assert proxies.get_proxy_slot(torch.ones(1), tracer, None) is None
    with pytest.raises(ValueError, match="tracing_mode"):
        proxies.ProxyTorchDispatchMode(tracer, "imaginary")


def test_operators_of_a_block_taken_apart():
    from pullback.fx.experimental import proxy_tensor as proxies

    tracer, aten = proxies.PythonKeyTracer(), torch.ops.aten
    table = {aten.sin.default: lambda x: torch.cos(x - math.pi / 2)}
    with proxies.ProxyTorchDispatchMode(tracer, "real", decomposition_table=table) as mode:
        torch.ones(3).sin()
        with mode.enable_decompositions({}):
            torch.ones(3).sin()
    targets = [n.target for n in tracer.graph.nodes if n.op == "call_function"]
    assert targets.count(aten.sin.default) == 1 and aten.cos.default in targets


# weak references


def test_references_to_memory():
    from pullback.multiprocessing.reductions import StorageWeakRef

    x = torch.ones(3)
    first, second = (StorageWeakRef(t.untyped_storage()) for t in (x, x.view(3)[1:]))
    other = StorageWeakRef(torch.ones(3).untyped_storage())
    assert first == second and hash(first) == hash(second) == first.cdata
    assert not first.expired() and first != other
    y = x[1:]
    del x
    assert not first.expired()
    del y
    gc.collect()
    assert first.expired() and first == first


def test_references_to_tensors():
    x = torch.ones(3)
    ref = torch._C._WeakTensorRef(x)
    assert not ref.expired()
    del x
    assert ref.expired()
    with pytest.raises(TypeError):
        torch._C._WeakTensorRef(3)


# checkpoints that share what they compute again


def test_backward_calls_of_a_group_compute_once():
    from pullback.utils.checkpoint import CheckpointError, GraphExecGroup, checkpoint

    runs = []

    def f(x):
        runs.append(1)
        return x.sin(), x.cos()

    x = torch.ones(3, requires_grad=True)
    a, b = checkpoint(f, x, use_reentrant=False)
    with GraphExecGroup() as group:
        assert GraphExecGroup._get_current_group() is group
        a.sum().backward(retain_graph=True)
        b.sum().backward(retain_graph=True)
        assert len(runs) == 2
        with pytest.raises(CheckpointError, match="unpacked already"):
            a.sum().backward(retain_graph=True)
        with pytest.raises(RuntimeError, match="cannot be nested"), GraphExecGroup():
            pass
    assert GraphExecGroup._get_current_group() is None
    a.sum().backward()
    assert len(runs) == 3


# lines of a backward


def test_nodes_of_a_backward_know_the_line():
    from pullback._functorch._aot_autograd import logging_utils
    from pullback.fx.experimental.proxy_tensor import make_fx
    from pullback.fx.traceback import preserve_node_meta

    def f(x):
        y = (x.sin() * x).sum()
        logging_utils.setup_stacktrace_preservation_hooks_from_tensors([y])
        found, = torch.autograd.grad(y, x)
        return found.exp()

    with preserve_node_meta():
        graph = make_fx(f)(torch.ones(3, requires_grad=True)).graph
    line = {n.name: n.stack_trace for n in graph.nodes if n.op == "call_function"}
    forward = line["sin"]
    assert line["cos"] == forward and "test_capture_names.py" in forward
    assert line["add"].startswith(forward) and "multiple use of tensor" in line["add"]
    assert line["exp"] != forward and "multiple use" not in line["exp"]


# why a cut is infinite, saved values in eight bits


def test_the_path_that_no_cut_divides():
    from pullback._functorch.partitioners import _find_infinite_capacity_path

    hard = {"capacity": math.inf}
    graph = {"source": {"a_in": {**hard, "reason": "an input"}, "b_in": {"capacity": 3}},
             "a_in": {"a_out": hard}, "b_in": {"sink": hard},
             "a_out": {"sink": {**hard, "reason": "wanted"}}}
    assert _find_infinite_capacity_path(graph) == [
        ("source", "a_in", "an input"), ("a_in", "a_out", "unknown"), ("a_out", "sink", "wanted")]
    graph["a_in"]["a_out"] = {"capacity": 4}
    assert _find_infinite_capacity_path(graph) is None


@pytest.mark.parametrize("scaled", [False, True])
def test_marked_values_wait_in_eight_bits(scaled, counters):
    from pullback._functorch.partitioners import (
        default_partition,
        quantize_activation_bw,
        quantize_activation_fw,
    )

    modules = []

    def keep(joint, inputs, num_fwd_outputs):
        modules.extend(default_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs))
        return tuple(modules)

    x = torch.linspace(-1, 1, 8).reshape(2, 4).requires_grad_()
    aot_function(lambda x: x.exp().sin().sum(), nop, partition_fn=keep)(x)
    forward, backward = modules
    saved = forward.graph.output_node().args[0]
    node = next(n for n in saved[1:] if n.name == "exp")
    twice = next(n for n in backward.graph.nodes if n.name == "exp")
    name = f"fp8_quant_pos_{saved.index(node)}_exp"
    node.meta["saved_for_quantization"] = True
    options = {"activation_quantization_aten_pass": {"use_scaling": scaled}}
    with torch._inductor.config.patch(post_grad_fusion_options=options):
        quantize_activation_fw(forward.graph, 1)
        kept = [n.name for n in forward.graph.output_node().args[0]]
        assert name in kept and (name.replace("quant", "scale") in kept) == scaled
        twice.name = twice.target = name
        twice.meta.update(saved_for_quantization=True, dequant_type=torch.float32)
        twice.meta["val"] = forward.graph.output_node().args[0][kept.index(name)].meta["val"]
        if scaled:
            with pytest.raises(errors.CompileError, match="without its scale"):
                quantize_activation_bw(backward.graph)
            return
        quantize_activation_bw(backward.graph)
    assert counters["inductor"]["activation_quantization_bwd_aten_pass"] == 1
    forward.recompile(), backward.recompile()
    values = dict(zip(kept, forward(x.detach())))
    assert values[name].dtype == torch.float8_e5m2
    inputs = [n.name for n in backward.graph.nodes if n.op == "placeholder"]
    grad, = backward(*[values.get(n, torch.ones(())) for n in inputs])
    exact = x.detach().exp() * x.detach().exp().cos()
    assert torch.allclose(grad, exact, atol=0.5) and not torch.allclose(grad, exact, atol=1e-4)


# what a backward may overwrite


def test_compilers_are_told_what_a_backward_may_overwrite():
    from pullback._guards import TracingContext

    told = []

    def note(module, inputs):
        inside = TracingContext.get().fw_metadata.bw_donated_idxs
        told.append((inside, [n.name for n in module.graph.nodes if n.op == "placeholder"]))
        return module

    x = torch.ones(3, requires_grad=True)
    for donated in (True, False):
        told.clear()
        with torch._functorch.config.patch(donated_buffer=donated):
            aot_function(lambda x: x.sin().cos().sum(), note)(x).backward()
        assert told == [(None, ["primals_1"]),
                        ([1] if donated else [], ["primals_1", "sin", "tangents_1"])]
    assert TracingContext.try_get() is None
    with pytest.raises(RuntimeError, match="within an ongoing trace"):
        TracingContext.get()


def test_a_context_of_ones_own():
    from pullback._guards import TracingContext, tracing

    mode = torch._subclasses.fake_tensor.FakeTensorMode()
    with tracing(TracingContext(mode)) as made:
        assert TracingContext.get() is made and made.fake_mode is mode
        with tracing(None):
            assert TracingContext.try_get() is None
        assert made.fw_metadata.bw_donated_idxs is None
    assert TracingContext.try_get() is None


def test_inputs_of_joint_graphs():
    from pullback._functorch import partitioners
    from pullback._prims.rng_prims import run_with_seed_and_offset

    seen = []

    def cut(joint, inputs, **options):
        kinds = ("primal", "fwd_seed_offset", "tangent", "bwd_seed_offset")
        inputs_of = joint.graph.find_nodes(op="placeholder")
        seen.extend([n.name for n in inputs_of if getattr(partitioners, f"_is_{kind}")(n)]
                    for kind in kinds)
        seen.append([n.target for n in joint.graph.nodes].count(run_with_seed_and_offset))
        return partitioners.default_partition(joint, inputs, **options)

    with torch._functorch.config.patch(functionalize_rng_ops=True):
        f = aot_function(lambda x: torch.rand_like(x) * x, lambda g, _: g, partition_fn=cut)
        f(torch.ones(2, requires_grad=True))
    assert seen == [["primals_1"], ["fwd_seed_1", "fwd_base_offset_1"], ["tangents_1"],
                    ["bwd_seed_1", "bwd_base_offset_1"], 1]


# passes of one's own


def test_a_partitioner_of_ones_own(tmp_path):
    from pullback._functorch.partitioners import default_partition
    from pullback._inductor.custom_graph_pass import (
        CustomGraphPass,
        CustomPartitionerFn,
        get_custom_graph_passes,
        get_hash_for_files,
    )

    class Saves(CustomPartitionerFn):
        calls = 0

        def __call__(self, gm, joint_inputs, **kwargs):
            self.calls += 1
            return default_partition(gm, joint_inputs, **kwargs)

        def uuid(self):
            return get_hash_for_files((__file__,), run)

    run = uuid.uuid4().hex  # else the disk may know what it made
    own, x = Saves(), torch.ones(3, requires_grad=True)
    with torch._inductor.config.patch(custom_partitioner_fn=own):
        f = torch.compile(loss)
        with pytest.raises(errors.CompileError, match="set one of them"):
            torch.compile(loss, memory=0.5)
    f(x).backward()
    assert own.calls == 1 and torch.allclose(x.grad, torch.full((3,), math.sin(1) + math.cos(1)))
    aot_function(loss, nop, partition_fn=own)(x)
    assert own.calls == 2 and own.uuid() == Saves().uuid()
    with pytest.raises(TypeError):
        CustomGraphPass()
    assert get_custom_graph_passes(None) == () and get_custom_graph_passes(own) == (own,)
    text = tmp_path / "a.txt"
    text.write_text("a")
    assert get_hash_for_files((str(text),)) != get_hash_for_files((str(text),), "b")


# functionalized forms are as the operators


def test_forms_without_writes_are_compared():
    from pullback._dispatch.python import enable_crossref_functionalize

    with enable_crossref_functionalize():
        x = torch.ones(3, 4)
        x[0].add_(2).mul_(x[1])
        x.t_()
        y = torch.max(x, 0).values
    assert x.shape == (4, 3) and y.tolist() == [3.0, 1.0, 1.0]
