"""Exported programs: what they are, that they run and train as modules do, what they refuse."""

import copy
import io

import pytest

import pullback as torch
from pullback import errors, nn
from pullback.export import (
    ExportedProgram,
    InputKind,
    OutputKind,
    export,
)
from tests.helpers.custom_functions import custom_function
from tests.helpers.export_modules import Function, Parts, arguments, leaves, net


@pytest.fixture
def program():
    args, kwargs = arguments()
    return export(net(), args, kwargs)


def test_signature(program):
    signature = program.graph_signature
    assert signature.parameters == ("conv.weight", "conv.bias", "bn.weight", "bn.bias")
    assert signature.inputs_to_parameters["p_conv_weight"] == "conv.weight"
    assert signature.buffers == (
        "scale", "bn.running_mean", "bn.running_var", "bn.num_batches_tracked")
    assert signature.non_persistent_buffers == ("scale",)
    assert signature.lifted_tensor_constants == ("shift",)
    assert signature.user_inputs == ("x", "extra_q", 2.0)
    assert signature.user_outputs[2:4] == (2.0, None)
    assert list(signature.buffers_to_mutate.values()) == [
        "bn.running_mean", "bn.running_var", "bn.num_batches_tracked"]
    kinds = [s.kind for s in signature.input_specs]
    assert kinds.count(InputKind.PARAMETER) == 4 and kinds.count(InputKind.USER_INPUT) == 3
    assert signature.output_specs[0].kind is OutputKind.BUFFER_MUTATION
    assert signature.user_inputs_to_mutate == {} and signature.backward_signature is None


def test_print(program):
    text = str(program)
    assert text.startswith("ExportedProgram:\n    class GraphModule(torch.nn.Module):\n")
    assert 'def forward(self, p_conv_weight: "f32[3, 1, 1, 1]", p_conv_bias: "f32[3]"' in text
    assert "torch.ops.aten.conv2d.default(x, p_conv_weight, p_conv_bias)" in text
    assert "    b_scale: BUFFER target='scale' persistent=False\n" in text
    assert "    c_shift: CONSTANT_TENSOR target='shift'\n" in text
    assert text.endswith("Range constraints: {}\n")


def test_state(program):
    assert list(program.state_dict) == [
        "conv.weight", "conv.bias", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var",
        "bn.num_batches_tracked"]
    assert set(program.constants) == {"scale", "shift"}
    assert [n for n, _ in program.named_parameters()] == list(program.graph_signature.parameters)
    assert len(list(program.buffers())) == 4
    assert program.module_call_graph[0].signature.forward_arg_names == ["x", "extra", "k"]


def test_runs_and_trains_as_the_module():
    model, (args, kwargs) = net(), arguments()
    module = export(net(), args, kwargs).module()
    for _ in range(3):
        expected, found = model(*args, **kwargs), module(*args, **kwargs)
        assert all(map(torch.equal, leaves(found), leaves(expected)))
        assert found["b"][1:] == (2.0, None)
        assert [t.requires_grad for t in leaves(found)] == [True, False, True]
        for m, out in ((model, expected), (module, found)):
            optimizer = torch.optim.SGD(m.parameters(), lr=0.1)
            optimizer.zero_grad()
            (out["a"].sum() + out["c"].sum()).backward()
            optimizer.step()
    for name, value in model.state_dict().items():
        assert torch.equal(module.state_dict()[name], value), name


def test_modules_share_the_state_of_the_program(program):
    args, kwargs = arguments()
    module = program.module()
    assert module.conv.weight is program.state_dict["conv.weight"]
    before = program.state_dict["bn.num_batches_tracked"].item()
    module(*args, **kwargs)
    assert program.state_dict["bn.num_batches_tracked"].item() == before + 1


def test_the_module_compiles():
    args, kwargs = arguments()
    module = export(net(), args, kwargs).module()
    compiled = torch.compile(export(net(), args, kwargs).module())
    expected, found = module(*args, **kwargs), compiled(*args, **kwargs)
    for a, b in zip(leaves(found), leaves(expected)):
        torch.testing.assert_close(a, b)
    for out in (expected, found):
        (out["a"] * out["a"]).sum().backward()
    for p, q in zip(compiled.parameters(), module.parameters()):
        torch.testing.assert_close(p.grad, q.grad, rtol=1e-5, atol=1e-4)


def test_in_simpler_operators(program):
    args, kwargs = arguments()
    simple = program.run_decompositions()
    assert "conv2d" not in simple.graph_module.code and "convolution" in simple.graph_module.code
    assert simple.graph_signature.parameters == program.graph_signature.parameters
    assert list(simple.graph_signature.buffers_to_mutate.values()) == list(
        program.graph_signature.buffers_to_mutate.values())
    buffers = {k: v.clone() for k, v in program.state_dict.items() if k.startswith("bn.")}
    expected = program.module()(*args, **kwargs)
    for k, v in buffers.items():
        if not isinstance(program.state_dict[k], nn.Parameter):
            program.state_dict[k].copy_(v)
    found = simple.module()(*args, **kwargs)
    for a, b in zip(leaves(found), leaves(expected)):
        torch.testing.assert_close(a, b)
        assert a.requires_grad == b.requires_grad
    assert "conv2d" in program.run_decompositions({}).graph_module.code


def test_programs_are_not_called(program):
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(torch.ones(1))
    for call in (program.module().train, program.module().eval):
        with pytest.raises(NotImplementedError, match="keeps the mode"):
            call()


@pytest.mark.parametrize(("change", "says"), [
    (lambda a, k: ((a[0].double(), a[1]), k), "'x'.*has float64"),
    (lambda a, k: ((torch.ones(2, 1, 3, 3), a[1]), k), r"'x'.*has shape \[2, 1, 3, 3\]"),
    (lambda a, k: ((3.0, a[1]), k), "'x'.*has a float"),
    (lambda a, k: (a[:1], k), "structure"),
    (lambda a, k: ((*a, torch.ones(1), torch.ones(1)), k), "structure"),
    (lambda a, k: ((a[0], {"r": a[1]["q"]}), k), "structure"),
    (lambda a, k: ((a[0], [a[1]["q"]]), k), "structure"),
    (lambda a, k: (a, {}), "structure"),
    (lambda a, k: (a, {"k": 3.0}), "'k'.*has 3.0"),
    (lambda a, k: (a, {"k": 2}), "'k'.*has 2"),
    (lambda a, k: (a, {**k, "other": 1}), "structure"),
])
def test_other_arguments_are_refused(program, change, says):
    module = program.module()
    before = {k: v.clone() for k, v in program.state_dict.items()}
    args, kwargs = change(*arguments())
    with pytest.raises(errors.SignatureError, match=f"(?s){says}"):
        module(*args, **kwargs)
    assert all(torch.equal(v, before[k]) for k, v in program.state_dict.items())


def test_arguments_by_name_and_position(program):
    (x, extra), _ = arguments()
    module = program.module()
    expected = module(x, extra, k=2.0)["a"]
    assert torch.equal(module(x, extra, 2.0)["a"], expected)
    assert torch.equal(module(x, k=2.0, extra=extra)["a"], expected)


def test_written_arguments():
    def write(x, y):
        x.add_(1)
        y[0] = 5.0
        return x, x * y

    program = export(Function(write), (torch.ones(3), torch.ones(3)))
    assert list(program.graph_signature.user_inputs_to_mutate.values()) == ["args_0", "args_1"]
    x, y = torch.ones(3), torch.ones(3)
    first, second = program.module()(x, y)
    assert first is x
    assert torch.equal(x, torch.full((3,), 2.0)) and y.tolist() == [5.0, 1.0, 1.0]
    assert torch.equal(second, x * y)
    for pair in ((x, x), (x, x.view(-1)), (x[:3], x)):
        with pytest.raises(errors.SignatureError, match="share memory"):
            program.module()(*pair)
    assert torch.equal(x, torch.full((3,), 2.0))


def test_grad_modes_follow_the_caller():
    def function(x):
        with torch.no_grad():
            y = x * 2
            with torch.enable_grad():
                z = x * 3
        return y + x, z

    for make in (lambda p: p, lambda p: p.run_decompositions()):
        module = make(export(Function(function), (torch.ones(2),))).module()
        x = torch.ones(2, requires_grad=True)
        assert torch.autograd.grad(module(x)[0].sum(), x)[0].tolist() == [1.0, 1.0]
        assert [t.requires_grad for t in module(x)] == [True, True]
        with torch.no_grad():
            assert [t.requires_grad for t in module(x)] == [False, True]
            assert not torch.is_grad_enabled()
        assert torch.is_grad_enabled()


def test_grad_modes_by_switch():
    def function(x):
        with torch.set_grad_enabled(False):
            y = x * 2
        return y + x

    program = export(Function(function), (torch.ones(2),))
    assert program.graph_module.code.count("_set_grad_enabled(") == 2
    x = torch.ones(2, requires_grad=True)
    assert torch.autograd.grad(program.module()(x).sum(), x)[0].tolist() == [1.0, 1.0]


def test_tied_parameters():
    layer = nn.Linear(2, 2)
    program = export(nn.Sequential(layer, layer), (torch.ones(1, 2),))
    assert program.graph_signature.parameters == ("0.weight", "0.bias")
    x = torch.randn(1, 2)
    expected = torch.autograd.grad(layer(layer(x)).sum(), layer.weight)[0]
    module = program.module()
    torch.testing.assert_close(
        torch.autograd.grad(module(x).sum(), layer.weight)[0], expected)


def test_tensors_made_of_numbers():
    program = export(Function(lambda x: x + torch.tensor([1.0, 2.0])), (torch.ones(2),))
    assert program.graph_signature.lifted_tensor_constants == ("lifted_tensor_0",)
    assert program.module()(torch.ones(2)).tolist() == [2.0, 3.0]


def test_names_that_meet():
    program = export(Function(lambda x: x + 1), (torch.ones(2),))
    assert program.graph_signature.user_inputs == ("args_0",)

    class Named(nn.Module):
        def forward(self, add, mul=None):
            return add + 1

    program = export(Named(), (torch.ones(2),))
    assert program.graph_signature.user_inputs == ("add",)
    assert "add_1 = torch.ops.aten.add.Tensor(add, 1)" in program.graph_module.code


def test_a_backward_in_python_is_refused():
    Twice = custom_function("Twice", lambda x: x * 2, lambda grad: grad * 3)
    module = Function(lambda x: Twice.apply(x))
    with pytest.raises(errors.ExportError, match="Twice has a backward of its own"):
        export(module, (torch.ones(2),))
    with torch.no_grad():
        assert export(module, (torch.ones(2),)).module()(torch.ones(2)).tolist() == [2.0, 2.0]


@pytest.mark.parametrize(("call", "kind", "says"), [
    (lambda: export(lambda x: x, (torch.ones(1),)), ValueError, "instance of `torch.nn.Module`"),
    (lambda: export(nn.ReLU(), [torch.ones(1)]), errors.UserError, "to be a tuple"),
    (lambda: export(Function(lambda x: x.t_()), (torch.ones(2, 3),)), RuntimeError, "metadata"),
    (lambda: export(Function(lambda x: x.resize_(2)), (torch.ones(3),)), RuntimeError, "metadata"),
    (lambda: export(Function(lambda x: x if x.sum() > 0 else -x), (torch.ones(2),)), RuntimeError,
     "needs the value"),
])
def test_what_cannot_be_exported(call, kind, says):
    with pytest.raises(kind, match=says):
        call()


def test_copies_are_apart(program):
    import copy

    other = copy.deepcopy(program)
    assert isinstance(other, ExportedProgram) and str(other) == str(program)
    with torch.no_grad():
        other.state_dict["conv.weight"].zero_()
    assert program.state_dict["conv.weight"].abs().sum() > 0
    program.validate()


def test_buffers_by_assignment():
    class Counting(Parts):
        def forward(self, x):
            self.count = self.count + 1
            return x * self.count

    model = Counting(count=nn.Buffer(torch.zeros(2)))
    program = export(model, (torch.ones(2),))
    assert model.count.tolist() == [0.0, 0.0]
    assert list(program.graph_signature.buffers_to_mutate.values()) == ["count"]
    module = program.module()
    assert [module(torch.ones(2)).sum().item() for _ in range(3)] == [2.0, 4.0, 6.0]


def test_attributes_are_as_before():
    class Keeping(nn.Module):
        def __init__(self):
            super().__init__()
            self.last, self.all, self.calls = None, [], 0

        def forward(self, x):
            self.last = x * 2
            self.all.append(self.last)
            self.calls += 1
            return x + 1

    model = Keeping()
    with pytest.warns(UserWarning, match=r"self\.last was assigned during export"):
        export(model, (torch.ones(2),))
    assert (model.last, model.all, model.calls) == (None, [], 0)


class Forces(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 8), nn.Linear(8, 1)

    def energy(self, x):
        return self.b(torch.tanh(self.a(x))).sum()

    def forward(self, x):
        x.requires_grad_(True)
        energy = self.energy(x)
        return energy, -torch.autograd.grad(energy, x, create_graph=True)[0]


def test_modules_that_differentiate():
    torch.manual_seed(0)
    model, x = Forces(), torch.randn(4, 3)
    module = export(model, (x.clone(),)).module()
    expected, found = model(x.clone()), module(x.clone())
    torch.testing.assert_close(found, expected)
    want = torch.autograd.grad((expected[1] ** 2).sum(), list(model.a.parameters()))
    got = torch.autograd.grad((found[1] ** 2).sum(), list(module.a.parameters()))
    torch.testing.assert_close(got, want)

    def slope(x):
        return torch.autograd.grad((x * x).sum(), x)[0]

    program = export(Function(slope), (torch.ones(2, requires_grad=True),))
    assert program.module()(torch.tensor([3.0, 4.0])).tolist() == [6.0, 8.0]
    out = program.module()(torch.ones(2, requires_grad=True))
    assert not out.requires_grad  # without create_graph there is no history


def test_detached_values_stay_detached():
    program = export(Function(lambda x: x * x.detach()), (torch.ones(2),))
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    program.module()(x).sum().backward()
    assert x.grad.tolist() == [2.0, 3.0]


def test_autocast_blocks_are_casts():
    def function(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
        return y

    x = torch.randn(3, 3)
    module = export(Function(function), (x,)).module()
    assert torch.equal(module(x), function(x)) and module(x).dtype is torch.bfloat16


def test_dataclasses_are_trees():
    import dataclasses

    from pullback.export import default_decompositions, register_dataclass

    @dataclasses.dataclass
    class Pair:
        a: torch.Tensor
        b: torch.Tensor

    register_dataclass(Pair)
    pair = Pair(torch.ones(2), torch.ones(2))
    program = export(Function(lambda p: Pair(p.a + p.b, p.a)), (pair,))
    assert program.graph_signature.user_inputs == ("args_0_a", "args_0_b")
    out = program.module()(Pair(torch.ones(2), torch.full((2,), 2.0)))
    assert isinstance(out, Pair) and out.a.tolist() == [3.0, 3.0]
    assert torch.ops.aten.addmv.default in default_decompositions()


def test_draws_that_nobody_needs_are_drawn():
    def function(x):
        torch.nn.functional.dropout(x, 0.5)
        return torch.nn.functional.dropout(x, 0.5)

    module = export(Function(function), (torch.ones(50),)).module()
    torch.manual_seed(0)
    expected = function(torch.ones(50))
    torch.manual_seed(0)
    assert torch.equal(module(torch.ones(50)), expected)


def test_the_graph_of_a_module_can_be_changed():
    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 2)
            self.register_buffer("calls", torch.zeros(2))

        def forward(self, x):
            self.calls.add_(1)
            return {"out": self.layer(x).relu() + self.calls}

    torch.manual_seed(0)
    x = torch.randn(4, 3)
    program = torch.export.export(Counting(), (x,))
    module = program.module()
    assert isinstance(module, torch.fx.GraphModule)
    assert [n.target for n in module.graph.find_nodes(op="get_attr")] == [
        "layer.weight", "layer.bias", "calls"]
    assert [n.name for n in module.graph.find_nodes(op="placeholder")] == ["x"]
    first = module(x)["out"]
    plain = torch.nn.functional.linear(x, module.layer.weight, module.layer.bias)
    assert torch.equal(first, plain.relu() + 1) and module.calls.tolist() == [1, 1]
    for node in module.graph.nodes:
        if node.target is torch.ops.aten.relu.default:
            node.target = torch.ops.aten.tanh.default
    assert torch.equal(module(x)["out"], plain.relu() + 2)  # not before it is told
    assert "tanh" in module.recompile().src
    assert torch.allclose(module(x)["out"], plain.tanh() + 3) and module.calls.tolist() == [3, 3]
    twin = copy.deepcopy(module)
    twin(x)
    assert twin.calls.tolist() == [4, 4] and module.calls.tolist() == [3, 3]


def test_constants_are_results():
    outside = torch.arange(3)

    class Giving(nn.Module):
        def __init__(self):
            super().__init__()
            self.held = torch.ones(2)

        def forward(self, x):
            return self.held, x + self.held, self.held, torch.tensor([4]), outside

    program = torch.export.export(Giving(), (torch.ones(2),))
    assert program.graph_signature.lifted_tensor_constants.count("held") == 1
    for found in (program, program.run_decompositions()):
        first, _, again, made, given = found.module()(torch.ones(2))
        assert torch.equal(first, again) and made.tolist() == [4] and given.tolist() == [0, 1, 2]


def test_promises_about_data_are_kept():
    class Sized(nn.Module):
        def forward(self, n):
            size = n.item()
            torch._check(size >= 2)
            torch._check(size <= 5)
            return torch.ones(size)

    program = torch.export.export(Sized(), (torch.tensor(3),))
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    for found in (program, torch.export.load(file), program.run_decompositions()):
        module = found.module()
        assert module(torch.tensor(5)).shape == (5,)
        with pytest.raises(RuntimeError, match="Runtime assertion failed for expression u0 <= 5"):
            module(torch.tensor(6))
        with pytest.raises(RuntimeError, match="u0 >= 2"):
            module(torch.tensor(1))
