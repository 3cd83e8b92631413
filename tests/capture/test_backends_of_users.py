"""Programs that compilers written for PyTorch consist of: backends that differentiate, counters,
inputs that lie in one memory, inputs that change their shape under symbolic sizes."""

import functools
import itertools
from unittest import mock

import pytest

import pullback as torch
from pullback.aot import aot_function, aot_module_simplified, nop
from pullback.cut.settings import get_aot_compilation_context
from pullback.fx.fake_mode import FakeTensorMode
from pullback.symbolic import ShapeEnv


def inner(value):
    return torch.full((3, 3), value, requires_grad=True)


# backends of compile


def test_a_backend_may_compile_its_graph_ahead_of_time():
    seen = []

    def compiler(module, inputs):
        seen.append([tuple(t.shape) for t in inputs])
        return module

    def backend(module, inputs):
        return aot_module_simplified(module, inputs, fw_compiler=compiler, bw_compiler=compiler)

    def f(x, y):
        x = x * 1
        x.add_(y)
        return x.sin().sum()

    x, y = inner(0.5), inner(0.25)
    torch.compile(f, backend=backend)(x, y).backward()
    assert torch.allclose(x.grad, torch.full((3, 3), 0.75).cos())
    assert torch.equal(x.grad, y.grad)
    assert seen and seen[0][0] == (3, 3)


def test_what_a_backend_raises_says_so():
    from pullback._dynamo import exc

    def broken(module, inputs):
        raise KeyError("no such target")

    with pytest.raises(exc.BackendCompilerFailed, match="backend='broken' raised:\nKeyError") as e:
        torch.compile(torch.sin, backend=broken)(torch.ones(2))
    assert type(e.value.inner_exception) is KeyError
    assert e.value.__cause__ is e.value.inner_exception
    assert isinstance(e.value, exc.TorchDynamoException)


# numbers of functions


def test_the_counter_of_functions_can_be_replaced():
    import pullback._functorch.aot_autograd as place

    names, before = [], next(place.AOT_COUNTER)

    def compiler(module, inputs):
        names.extend(get_aot_compilation_context()[0])
        return module

    with mock.patch.object(place, "AOT_COUNTER", itertools.count(70)):
        out = aot_function(torch.sin, compiler)(inner(1.0))
        aot_function(torch.sin, compiler)(torch.ones(2))
        out.sum().backward()
    assert names == ["70_forward", "71_inference", "70_backward"]
    assert next(place.AOT_COUNTER) == before + 1


def test_a_function_keeps_its_number():
    numbers = []

    def compiler(module, inputs):
        numbers.append(get_aot_compilation_context()[0][0].partition("_")[0])
        return module

    f = aot_function(torch.sin, compiler)
    f(torch.ones(2))
    f(torch.ones(3))
    assert len(numbers) == 2 and len(set(numbers)) == 1


# inputs


@pytest.mark.parametrize("offset", [24, 27, 28, 40])
def test_inputs_that_were_laid_over_one_another(offset):
    def f(a, b):
        a.mul_(3)
        b.mul_(2)
        return a + b

    def run(g):
        memory = torch.arange(96.0)
        a, b = (memory.as_strided((4, 4), (9, 1), k) for k in (0, offset))
        return g(a, b), memory

    for g in (aot_function(f, nop), torch.compile(f, backend="numpy")):
        for ours, eager in zip(run(g), run(f)):
            assert torch.equal(ours, eager)


def test_shapes_that_change_in_place_under_symbolic_sizes():
    def f(x, y):
        x.unsqueeze_(0)
        return (x * y).sin()

    g = aot_function(f, nop, dynamic=True)
    for n in (3, 4):
        leaves = [(torch.arange(1.0, n * n + 1) / n).view(n, n).requires_grad_() for _ in "xy"]
        x, y = (t.clone() for t in leaves)
        out = g(x, y)
        assert x.shape == (1, n, n) and out.shape == (1, n, n)
        out.sum().backward()
        expected = leaves[0].detach().square().cos() * leaves[0].detach()
        assert all(torch.allclose(t.grad, expected) for t in leaves)


def test_fakes_of_results_are_results():
    mode = FakeTensorMode(shape_env=ShapeEnv())
    leaf = inner(1.0)
    assert mode.from_tensor(leaf).is_leaf
    fake = mode.from_tensor(leaf.clone())
    assert fake.requires_grad and not fake.is_leaf
    fake.mul_(2)  # a leaf would refuse


def test_in_place_view_of_a_fake_result_compiles():
    class Turn(torch.nn.Module):
        def forward(self, x, y):
            x.unsqueeze_(0)
            return (x + y,)

    mode, leaf = FakeTensorMode(shape_env=ShapeEnv()), inner(2.0)
    f = aot_module_simplified(
        Turn(), (mode.from_tensor(leaf.clone()), mode.from_tensor(leaf.clone())), nop)
    (out,) = f(leaf.clone(), leaf.clone())
    assert torch.equal(out, torch.full((1, 3, 3), 4.0))


# names


def test_pullbacks_take_flags():
    x = torch.ones(3, requires_grad=True)
    pull = torch.func.vjp(torch.sin, x)[1]
    ones = torch.ones(3)
    assert pull(ones)[0].requires_grad and pull(ones, True, True)[0].requires_grad
    assert not pull(ones, True, False)[0].requires_grad
    assert not pull(ones, create_graph=False)[0].requires_grad
    assert torch.equal(pull(ones, True, False)[0], x.detach().cos())


def test_strides_tell_the_memory_format():
    from pullback._prims_common import suggest_memory_format

    x = torch.randn(3, 2, 1, 1)
    assert suggest_memory_format(x) is torch.contiguous_format
    y = x.to(memory_format=torch.channels_last)
    assert y is not x and y.stride() == (2, 1, 2, 2)
    assert suggest_memory_format(y) is torch.channels_last
    assert y.to(memory_format=torch.channels_last) is y
    assert y.to(memory_format=torch.contiguous_format) is not y
    t = torch.randn(3, 4).t()
    assert t.to(memory_format=torch.contiguous_format) is t  # neither lies channels last
    assert suggest_memory_format(torch.randn(1, 1, 1, 1)) is torch.contiguous_format
    assert suggest_memory_format(torch.randn(2, 0, 3, 3)) is torch.contiguous_format


def test_operators_that_make_tensors():
    from pullback._subclasses.fake_tensor import _is_tensor_constructor

    aten = torch.ops.aten
    assert _is_tensor_constructor(aten.ones.default) and _is_tensor_constructor(aten.arange.start)
    assert not _is_tensor_constructor(aten.ones_like.default)
    assert not _is_tensor_constructor(aten.sin.default)


# views


def test_one_view_beside_the_pieces_of_a_result():
    def f(x):
        y = x * 3
        return *y.unbind(0), y.view(9)

    x = inner(2.0)
    out = aot_function(f, nop)(x)
    assert {o.grad_fn.name() for o in out} == {"CompiledFunctionBackward"}
    out[-1].mul_(2)
    out[-1].sum().backward()
    assert torch.equal(x.grad, torch.full((3, 3), 6.0))


def test_two_views_beside_the_pieces_share_their_history():
    def f(x):
        y = x * 3
        return *y.unbind(0), y, y.view(9)

    x = inner(2.0)
    *_, whole, flat = aot_function(f, nop)(x)
    flat.mul_(2)
    (whole.sum() + flat.sum()).backward()  # both were written
    assert torch.equal(x.grad, torch.full((3, 3), 12.0))


def test_turning_a_vector_changes_nothing():
    graphs = []

    def f(x, y):
        x.t_()
        return x + y

    leaf = torch.ones(4, requires_grad=True)
    x = leaf * 1
    aot_function(f, lambda module, _: graphs.append(module) or module)(x, leaf * 2)
    assert [n.name for n in graphs[0].graph.nodes] == ["primals_1", "primals_2", "t", "add",
                                                       "output"]
    assert len(graphs[0].graph.output_node().args[0]) == 1


def test_a_backward_must_not_turn_an_input():
    class Turning(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            ctx.saved_tensors[0].t_()
            return grad * 2, None

    f = aot_function(lambda x, y: Turning.apply(x, y) + 0, nop)
    with pytest.raises(AssertionError, match="input that had its metadata mutated in the backward"):
        f(inner(1.0), torch.ones(2, 3))


def test_a_tensor_without_data_from_outside():
    stray = FakeTensorMode().from_tensor(torch.ones(4))
    with pytest.raises(AssertionError, match=r"Unexpected fake.*\n.*float32.4"):
        aot_function(lambda x: x + stray, nop)(torch.ones(4))


def test_names_for_compilers():
    from pullback._inductor.decomposition import decompositions
    from pullback.fx.experimental.proxy_tensor import is_sym_node

    sizes = []

    def compiler(module, inputs):
        sizes.extend(n.name for n in module.graph.nodes if is_sym_node(n))
        return module

    f = aot_function(lambda x: x.view(-1) * x.shape[0], compiler, dynamic=True,
                     decompositions=decompositions)
    assert torch.equal(f(torch.ones(3, 2)), torch.full((6,), 3.0))
    assert sizes and all(name.startswith("sym_size") for name in sizes)


def test_classes_of_nodes_print_as_names():
    x = torch.ones(3, requires_grad=True)
    out = torch.compile(torch.sin, backend="numpy")(x)
    assert type(out.grad_fn).__name__ == out.grad_fn.name() == "CompiledFunctionBackward"
    for y, name in ((x.exp(), "ExpBackward0"), (x @ x, "DotBackward0"), (x.view(1, 3),
                                                                        "ViewBackward0")):
        assert str(type(y.grad_fn)) == f"<class '{name}'>"
    assert str(type(x.exp().grad_fn.next_functions[0][0])) == "<class 'AccumulateGrad'>"


@pytest.mark.parametrize("name", ["inductor", "aot_eager"])
def test_a_backend_may_hand_its_graph_to_one_by_name(name):
    from pullback._dynamo import list_backends, lookup_backend

    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return lookup_backend(name)(module, inputs)

    assert name in list_backends(None) and "aot_eager" not in list_backends()
    for way in (backend, lookup_backend(name)):
        x = torch.ones(3, requires_grad=True)
        torch.compile(lambda x: (x.sin() * 2).sum(), backend=way)(x).backward()
        assert torch.allclose(x.grad, 2 * torch.ones(3).cos())
    assert graphs


def test_graphs_of_the_default_backend():
    from pullback._inductor.compile_fx import compile_fx, compile_fx_inner

    graphs = []

    def inner(module, inputs, **options):
        graphs.append(module)
        return compile_fx_inner(module, inputs, **options)

    watched = functools.partial(compile_fx, inner_compile=inner)
    for way, met in ((compile_fx, False), (watched, True)):
        x = torch.ones(3, requires_grad=True)
        torch.compile(lambda x: x.sin() * 2, backend=way)(x).sum().backward()
        assert torch.allclose(x.grad, 2 * torch.ones(3).cos()) and bool(graphs) is met


@pytest.mark.parametrize("dynamic", (False, True))
def test_gradients_come_as_the_backward_graph_views_them(dynamic):
    def windows(x):
        return (x * 2).unfold(0, 2, 1), x.t()  # two results: the tangents are inputs of a graph

    def gradient(function):
        x = torch.arange(12.0).reshape(3, 4).requires_grad_()
        outs = function(x)
        along = [torch.arange(float(o.numel())).reshape(o.shape) for o in outs]  # in rows
        return torch.autograd.grad(outs, x, along)[0]

    compiled = torch.compile(windows, backend=lambda module, inputs: module, dynamic=dynamic)
    assert torch.equal(gradient(compiled), gradient(windows))
