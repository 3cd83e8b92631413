"""Exports against PyTorch's, recorded: graphs to the letter, signatures, refusals; their values."""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

import pullback as torch
from pullback import control, errors, nn
from pullback.capture import descriptors, export, lookup
from pullback.cut.partition import default_partition
from tests.helpers import export_programs
from tests.helpers.export_modules import Parts

RECORDED = json.loads((Path(__file__).parents[1] / "data/exports.json").read_text())


@pytest.fixture(scope="module")
def found():
    return json.loads(json.dumps(export_programs.outcomes(torch, export, control.map)))


def bare(text: str) -> str:
    return "".join(text.split())[:60]


@pytest.mark.parametrize("name", RECORDED)
def test_as_recorded(name, found):
    want, got = RECORDED[name], found[name]
    assert want.keys() == got.keys(), got
    for part, value in want.items():
        if part == "error":
            assert got["error"][0] == value[0]
            assert bare(got["error"][1]).startswith(bare(value[1])[:48])
        else:
            assert got[part] == value


def trained():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 1))


class Loss(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        out = self.net(x)
        return (out * out).mean(), out.detach()


def test_joint_values_and_gradients_are_eagers():
    model = Loss(trained())
    x = torch.randn(5, 3)
    graph, signature = export.aot_export_module(model, (x,), trace_joint=True, output_loss_index=0)
    held = [*model.parameters(), *[b.clone() for b in model.buffers()]]
    outputs = dict(zip([n.name for n in graph.graph.output_node().args[0]], graph(*held, x)))
    loss, out = model(x)
    loss.backward()
    names = signature.user_outputs
    torch.testing.assert_close(outputs[names[0]], loss.detach())
    torch.testing.assert_close(outputs[names[1]], out)
    for name, owner in signature.backward_signature.gradients_to_parameters.items():
        torch.testing.assert_close(outputs[name], model.get_parameter(owner).grad)
    for name, owner in signature.buffers_to_mutate.items():  # model(x) has just written them
        torch.testing.assert_close(outputs[name], model.get_buffer(owner))


def test_exporting_changes_nothing():
    model = Loss(trained())
    before = {k: v.clone() for k, v in model.state_dict().items()}
    versions = [t._version for t in model.buffers()]
    export.aot_export_module(model, (torch.ones(5, 3),), trace_joint=True, output_loss_index=0)
    export.aot_export_module(model, (torch.ones(5, 3),), trace_joint=False, pre_dispatch=True)
    for k, v in model.state_dict().items():
        assert torch.equal(v, before[k])
    assert [t._version for t in model.buffers()] == versions
    assert all(p.grad is None and p.is_leaf for p in model.parameters())


def test_buffers_fed_back_reproduce_eager():
    class Counting(Parts):
        def forward(self, x):
            self.total.add_(x.sum())
            return (x * self.total,)

    model = Counting(total=nn.Buffer(torch.ones(2)))
    x = torch.tensor([1.0, 2.0])
    graph, _ = export.aot_export_module(model, (x,), trace_joint=False, pre_dispatch=True)
    total = torch.ones(2)
    for _ in range(3):
        total, out = graph(total, x)
        assert torch.equal(out, model(x)[0])
    assert torch.equal(total, model.total)


def test_both_halves_of_a_joint_by_hand():
    def function(a, b):
        return a.sin() * b, b.relu()

    a, b = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    joint = export.aot_export_joint_simple(function, (a, b), trace_joint=True)
    tangents = [torch.randn(3), torch.randn(3)]
    forward, backward = default_partition(joint, [(a, b), tangents], num_fwd_outputs=2)
    first, second, *saved = forward(a, b)
    expected = function(a, b)
    torch.testing.assert_close((first, second), expected)
    torch.autograd.backward(expected, tangents)
    torch.testing.assert_close(tuple(backward(*saved, *tangents)), (a.grad, b.grad))
    whole = joint((a, b), tangents)
    torch.testing.assert_close(whole[1], (a.grad, b.grad))


def test_grad_modes_run_again():
    class Part(nn.Module):
        def forward(self, x):
            with torch.no_grad():
                y = x * 2
            return (y + x,)

    graph, _ = export.aot_export_module(
        Part(), (torch.ones(2),), trace_joint=False, pre_dispatch=True)
    x = torch.ones(2, requires_grad=True)
    graph(x)[0].sum().backward()
    assert torch.equal(x.grad, torch.ones(2))
    assert torch.is_grad_enabled()


def test_constants_are_attributes():
    class Shifted(nn.Module):
        shift = torch.tensor([1.0, 2.0])

        def forward(self, x):
            return (x + self.shift,)

    graph, signature = export.aot_export_module(Shifted(), (torch.ones(2),), trace_joint=False)
    assert signature.buffers == []
    assert torch.equal(graph(torch.ones(2))[0], torch.tensor([2.0, 3.0]))
    assert "_tensor_constant0" in graph.code


def test_written_constants_are_refused():
    class Counter(nn.Module):
        count = torch.zeros(())

        def forward(self, x):
            self.count.add_(1)
            return (x,)

    with pytest.raises(errors.ExportError, match="neither an argument nor a buffer"):
        export.aot_export_module(Counter(), (torch.ones(2),), trace_joint=False)
    assert Counter.count.item() == 0


def test_compiled_from_descriptors():
    model, (x,), kwargs = export_programs.described(torch)["described"]
    with ExitStack() as stack:
        joint = export.aot_export_joint_with_descriptors(stack, model, (x,), kwargs)
        function = export.aot_compile_joint_with_descriptors(joint)
    assert (joint.params_spec, joint.buffers_spec) == (["linear.weight", "linear.bias"], ["b"])
    buffer = model.b.clone()
    out = function(*model.parameters(), buffer, x, **kwargs)
    assert out["l"][0] is x
    expected = model(x, **kwargs)
    torch.testing.assert_close(out["o"], expected["o"])
    assert torch.equal(buffer, model.b)
    got = torch.autograd.grad(out["o"].sum(), list(model.parameters()))
    want = torch.autograd.grad(expected["o"].sum(), list(model.parameters()))
    torch.testing.assert_close(got, want)
    with pytest.raises(errors.ExportError, match="structure"):
        function(*model.parameters(), buffer, x)


def test_lookups():
    model, args, kwargs = export_programs.described(torch)["described"]
    with ExitStack() as stack:
        graph = export.aot_export_joint_with_descriptors(
            stack, model, args, kwargs).graph_module.graph
    weight = descriptors.ParamAOTInput("linear.weight")
    node, grad = lookup.get_param_and_grad_nodes(graph)[weight]
    assert node.name == "primals_1" and grad.meta["val"].shape == (2, 3)
    plain = lookup.get_plain_input_and_grad_nodes(graph)
    assert [n.name for n, _ in plain.values()] == ["primals_4", "primals_5"]
    assert [g for _, g in plain.values()] == [None, None]
    assert lookup.get_named_buffer_nodes(graph)["b"].name == "primals_3"
    assert list(lookup.get_named_param_nodes(graph)) == ["linear.weight", "linear.bias"]
    assert lookup.get_param_nodes(graph)[0] is node and len(lookup.get_buffer_nodes(graph)) == 1
    outputs = lookup.get_plain_output_and_tangent_nodes(graph)
    assert outputs[descriptors.PlainAOTOutput(0)][1].name == "tangents_1"
    assert outputs[descriptors.PlainAOTOutput(1)][1] is None
    everything = lookup.get_all_output_and_tangent_nodes(graph)
    assert descriptors.GradAOTOutput(weight) in everything
    assert len(lookup.get_all_input_and_grad_nodes(graph)) == 6
    part = descriptors.SubclassGetAttrAOTInput(weight, "data")
    assert part.is_param() and part.expr() == "self.get_parameter('linear.weight').data"
    node.meta["desc"] = part
    with pytest.raises(errors.ExportError, match="made of several"):
        lookup.get_param_nodes(graph)


def test_tied_parameters_are_inputs_twice():
    layer = nn.Linear(2, 2, bias=False)
    model = nn.Sequential(layer, layer)
    model.register_forward_hook(lambda module, args, out: (out.sum(),))
    graph, signature = export.aot_export_module(
        model, (torch.ones(1, 2),), trace_joint=True, output_loss_index=0)
    assert signature.parameters == ["0.weight", "1.weight"]
    *_, first, second = graph(layer.weight, layer.weight, torch.ones(1, 2))
    model(torch.ones(1, 2))[0].backward()
    torch.testing.assert_close(first + second, layer.weight.grad)


def test_functionalized_draws_are_refused():
    from pullback.cut.settings import config

    with config.patch(functionalize_rng_ops=True), pytest.raises(
            RuntimeError, match="Functionalized RNG is not currently supported in the aot_export"):
        export.aot_export_module(
            nn.Sequential(nn.Dropout()), (torch.ones(2),), trace_joint=False)


def test_sums_of_gradients_are_marked():
    class Twice(Parts):
        def forward(self, x):
            return self.a(x) - self.b(x)

    twice = Twice(a=nn.Linear(3, 2), b=nn.Linear(3, 2))
    with ExitStack() as stack:
        graph = export.aot_export_joint_with_descriptors(
            stack, twice, (torch.randn(4, 3, requires_grad=True),)).graph_module.graph
    found, = graph.find_nodes(op="call_function", target=torch.ops.aten.add.Tensor)
    assert found.meta["is_gradient_acc"]


def test_compile_inside_is_ignored():
    def backend(module, inputs):
        raise AssertionError("no backend runs during an export")

    class Inside(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.randn(4, 4))
            self.compiled = torch.compile(torch.sin, backend=backend)

        def forward(self, x):
            y = torch.compile(torch.cos, backend=backend)(x @ self.w)
            return self.compiled(y).sum()

    with pytest.warns(UserWarning, match="torch.compile is ignored when called inside"), \
            ExitStack() as stack:
        export.aot_export_joint_with_descriptors(stack, Inside(), (torch.randn(4, 4),))


def test_joint_functions_compile_again():
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    with ExitStack() as stack:
        function = export.aot_compile_joint_with_descriptors(
            export.aot_export_joint_with_descriptors(stack, model, (x,)))
    out = torch.compile(function)(*model.parameters(), (x,))
    torch.testing.assert_close(out, model(x))
    out.sum().backward()
    assert torch.equal(model.bias.grad, torch.full((2,), 4.0))


class Writing(nn.Module):
    """Is not differentiated: its parameter is not used."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.register_buffer("b", torch.ones(2))

    def forward(self, x):
        self.b.add_(1)
        x.mul_(2)
        return x + self.b, self.b


@pytest.mark.parametrize("keep", [False, True])
def test_described_graphs_without_gradients(keep):
    module, eager = Writing(), Writing()
    x, other = torch.ones(2), torch.ones(2)
    with ExitStack() as stack:
        described = export.aot_export_joint_with_descriptors(
            stack, module, (x,), keep_inference_input_mutations=keep)
        graph = described.graph_module.graph
        written = [descriptors.InputMutationAOTOutput(i) for i in (
            descriptors.BufferAOTInput("b"), descriptors.PlainAOTInput(0))]
        assert graph.output_node().meta["desc"] == [
            *([] if keep else written), *map(descriptors.PlainAOTOutput, range(2))]
        names = [n.name for n in graph.find_nodes(op="placeholder")]
        assert names == ["arg0_1", "arg1_1", "arg2_1"]
        assert described.graph_module.code.count("copy_.default") == (2 if keep else 0)
        function = export.aot_compile_joint_with_descriptors(described)
    for _ in range(2):
        out, want = function(module.w, module.b, x), eager(other)
        assert torch.equal(out[0], want[0]) and out[1] is module.b
        assert torch.equal(x, other) and torch.equal(module.b, eager.b)


def test_views_of_what_is_written_are_read_anew():
    class Viewed(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("b", torch.ones(3, 3))

        def forward(self, y):
            view = self.b.view(-1).view(3, 3)
            self.b.mul_(2)
            return y @ view, nn.functional.linear(view, y)

    y = torch.arange(9.0).reshape(3, 3)
    want = Viewed()(y)
    for pre_dispatch in (True, False):
        graph, _ = export.aot_export_module(
            Viewed(), (y,), trace_joint=False, pre_dispatch=pre_dispatch)
        _, *out = graph(torch.ones(3, 3), y)
        torch.testing.assert_close(tuple(out), want)
    torch.testing.assert_close(torch.export.export(Viewed(), (y,)).module()(y), want)


@pytest.mark.parametrize("leaf", [True, False])
def test_writes_to_inputs_that_require_grad_are_refused_by_joint_graphs(leaf):
    def f(x):
        x.add_(1)
        return [x * 2]

    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Found a graph input that requires gradients"):
        export.aot_export_joint_simple(f, (x if leaf else x * 1,), trace_joint=True)
    with pytest.raises(RuntimeError, match="does not support input mutations"):
        export.aot_export_joint_simple(f, (x,), trace_joint=False)
