"""`make_fx`: what a capture keeps of a function, in each of its modes."""

import copy
import pickle

import pytest

import pullback as torch
from pullback import errors, nn
from pullback.func import grad, jacrev, vjp, vmap
from pullback.fx import Interpreter, Transformer
from pullback.fx.errors import GraphError
from pullback.fx.make_fx import make_fx
from tests.helpers.custom_functions import custom_function


def targets(module) -> list[str]:
    return [str(n.target) for n in module.graph.nodes if n.op == "call_function"]


X = torch.arange(1.0, 5.0)


def _vjp(x):
    out, back = vjp(lambda y: y * y.sin(), x)
    return back(out)[0]


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
@pytest.mark.parametrize(
    "f",
    [
        grad(lambda x: (x.sin() * x).sum()),
        vmap(lambda x: x * x.cos()),
        jacrev(jacrev(lambda x: x**3)),
        vmap(grad(torch.sin)),
        _vjp,
    ],
    ids=["grad", "vmap", "jacrev of jacrev", "vmap of grad", "vjp"],
)
def test_transforms_are_traced_through(f, mode):
    module = make_fx(f, tracing_mode=mode)(X)
    other = X * 0.5
    assert torch.allclose(module(other), f(other))


def test_hooks_and_functions_of_the_user_are_traced_through():
    Double = custom_function("Double", lambda x: x * 2, lambda g: g * 5)

    def f(x):
        y = Double.apply(x)
        y.register_hook(lambda g: g * 3)
        return torch.autograd.grad(y.sum(), x)[0]

    x = X.clone().requires_grad_()
    assert torch.equal(make_fx(f)(x)(x), torch.full((4,), 15.0))


def test_trees_of_arguments_and_results():
    def f(d, y):
        return {"sum": d["a"][0] + y, "rest": [d["b"], None]}

    d = {"a": [X], "b": 3}
    module = make_fx(f)(d, X)
    assert module.code.strip() == (
        "def forward(self, d, y):\n"
        "    d_1, d_2, y_1, = fx_pytree.tree_flatten_spec([d, y], self._in_spec)\n"
        "    add = torch.ops.aten.add.Tensor(d_1, y_1);  d_1 = y_1 = None\n"
        "    return pytree.tree_unflatten([add, 3, None], self._out_spec)"
    )
    for m in (module, copy.deepcopy(module), pickle.loads(pickle.dumps(module)),
              Transformer(module).transform()):
        out = m(d, X)
        assert torch.equal(out["sum"], X + X) and out["rest"] == [3, None]
    assert torch.equal(Interpreter(module).run(d, X)["sum"], X + X)
    with pytest.raises(GraphError, match="structure"):
        module([X], X)


def test_names_of_inputs():
    assert "def forward(self, a_1, b_1)" in make_fx(lambda a, b: a + b)(X, X).code
    assert "def forward(self, arg0_1, arg1_1)" in make_fx(lambda *a: a[0] + a[1])(X, X).code


def test_dead_operators_stay():
    def f(x):
        x.sin()
        return x.max(0).values

    assert [t.rpartition(".")[0] for t in targets(make_fx(f)(X))][:2] == ["aten.sin", "aten.max"]


def test_results_on_constants_are_known():
    def f(x):
        c = torch.tensor(2.0)
        c.add_(1)
        if c > 2.5:
            return x * (c * 2).item()
        return x

    for mode in ("real", "fake"):
        assert torch.equal(make_fx(f, tracing_mode=mode)(X)(X), X * 6)


@pytest.mark.parametrize("mode", ["real", "fake"])
@pytest.mark.parametrize(
    "f",
    [lambda x: x * x.sum().item(), lambda x: x if x.sum() > 0 else -x,
     lambda x: x if torch.allclose(x, x) else -x],
    ids=["item", "bool", "allclose"],
)
def test_values_are_refused_with_line_and_remedy(f, mode):
    with pytest.raises(errors.DataDependentError, match=r"test_make_fx\.py:\d+") as caught:
        make_fx(f, tracing_mode=mode)(X)
    assert "Fix: use where()" in str(caught.value)


def test_values_may_be_baked_in():
    module = make_fx(lambda x: x * x.sum().item(), _error_on_data_dependent_ops=False)(X)
    assert torch.equal(module(X * 2), X * 2 * 10)


def test_tensors_from_outside():
    layer = nn.Linear(4, 2)
    module = make_fx(layer)(X)
    names = [n.target for n in module.graph.nodes if n.op == "get_attr"]
    assert names == ["_param_constant0", "_param_constant1"]
    assert module._param_constant0 is layer.weight
    assert torch.equal(module(X), layer(X))
    with pytest.raises(RuntimeError, match="Please convert all Tensors to FakeTensors"):
        make_fx(layer, tracing_mode="fake")(X)
    allowed = make_fx(layer, tracing_mode="fake", _allow_non_fake_inputs=True)(X)
    assert torch.equal(allowed(X), layer(X))


def test_indices_made_from_lists_are_constants():
    module = make_fx(lambda x: x[[0, 2]], tracing_mode="fake")(X)
    assert module(X).tolist() == [1.0, 3.0]


def test_composites_stay_whole_before_dispatch():
    def f(x):
        return torch.nn.functional.linear(x, x).softmax(-1), x.reshape(-1)

    x = torch.ones(2, 2)
    assert targets(make_fx(f, pre_dispatch=True)(x)) == [
        "aten.linear.default", "aten.softmax.int", "aten.view.default",
    ]
    assert "aten.linear.default" not in targets(make_fx(f)(x))
    module = make_fx(f, pre_dispatch=True)(x)
    assert torch.equal(module(x * 3)[0], f(x * 3)[0])


def test_nodes_tell_where_they_come_from():
    def f(x):
        y = (x * x).tanh()
        return torch.autograd.grad(y.sum(), x)[0]

    nodes = {n.name: n for n in make_fx(f)(X.clone().requires_grad_()).graph.nodes}
    line = f.__code__.co_firstlineno + 1
    for name in ("mul", "tanh", "tanh_backward", "mul_1", "mul_2"):
        assert f"line {line}, in f" in nodes[name].stack_trace
    assert nodes["tanh_backward"].meta["entry"] == "tanh"
    assert nodes["tanh_backward"].meta["formula"] == {"self": "tanh_backward(grad, result)"}
    assert nodes["mul_1"].meta["grad_fn"] == "MulBackward0"
    assert "entry" not in nodes["mul"].meta
    facts = nodes["mul"].meta["tensor_meta"]
    assert facts.shape == (4,) and facts.dtype is torch.float32 and facts.stride == (1,)
    assert all("tensor_meta" in n.meta for n in nodes.values() if n.op != "output")


def test_nodes_tell_their_modules():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    module = make_fx(model, record_module_stack=True)(X)
    relu = module.graph.find_nodes(op="call_function", target=torch.ops.aten.relu.default)[0]
    assert list(relu.meta["nn_module_stack"]) == ["", "1"]
    assert not model[0]._forward_hooks


def test_unknown_mode():
    with pytest.raises(ValueError, match="'symbolic', got 'other'"):
        make_fx(torch.sin, tracing_mode="other")


def test_grad_modes_are_calls_before_dispatch():
    def f(x):
        with torch.no_grad():
            y = x * 2
        return y + x

    module = make_fx(f, pre_dispatch=True)(torch.ones(2))
    assert [n.args for n in module.graph.nodes if n.name.startswith("_set_grad")] == [
        (False,), (True,)]
    x = torch.ones(2, requires_grad=True)
    module(x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_gradients_of_tensors_from_outside():
    layer, x = torch.nn.Linear(2, 3), torch.tensor([[1.0, 2.0]])

    def function(x):
        return torch.autograd.grad(layer(x).square().sum(), (layer.weight,))

    graph = make_fx(function)(x)
    other = torch.tensor([[3.0, -1.0]])
    torch.testing.assert_close(graph(other), function(other))

    def chosen(condition, x):
        out = torch.cond(condition, layer, lambda x: x.sum() * torch.ones(1, 3), (x,))
        return torch.autograd.grad(out.sum(), (layer.weight,))

    graph = make_fx(chosen)(torch.tensor(True), x)
    assert torch.equal(graph(torch.tensor(True), other)[0], other.expand(3, 2))
    assert torch.equal(graph(torch.tensor(False), other)[0], torch.zeros(3, 2))


def test_gradients_left_in_tensors_from_outside():
    layer, x = torch.nn.Linear(2, 3), torch.tensor([[1.0, 2.0]])

    def function(x):
        layer(x).sum().backward()
        return layer.weight.grad * 2

    graph = make_fx(function)(x)
    assert torch.equal(layer.weight.grad, x.expand(3, 2))
    assert torch.equal(graph(x + 1), 2 * (x + 1).expand(3, 2))


@pytest.mark.parametrize("write", [
    lambda t: t.add_(3).resize_([20]), lambda t: t.resize_(20), lambda t: t.t_(),
    lambda t: t.unsqueeze_(0)])
def test_modules_stay_whole_when_their_buffers_change_shape(write):
    class Writing(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("held", torch.ones(4, 5))

        def forward(self, x):
            write(self.held)
            return x.sum() + self.held.sum()

    for mode in ("fake", "symbolic"):
        module = Writing()
        with pytest.raises(RuntimeError, match="Can't call metadata mutating ops on non-Fake"):
            make_fx(module, tracing_mode=mode, _allow_non_fake_inputs=True)(torch.ones(2))
        assert module.held.shape == (4, 5) and module.held.sum() == 20
    module = Writing()
    gm = make_fx(module)(torch.ones(2))
    assert module.held.sum() == 20  # a tensor of eager mode again
    assert gm(torch.ones(2)) in (22, 82)


def test_a_tensor_of_indices_is_one_for_each_dimension():
    x, places = torch.arange(4).reshape(2, 2), torch.ones(2, dtype=torch.long)
    gm = make_fx(torch.func.functionalize(lambda a, b: torch.ops.aten.index(a, b)))(x, places)
    assert "unbind = torch.ops.aten.unbind.int(b_1)" in gm.code
    assert "index.Tensor(a_1, [getitem, getitem_1])" in gm.code
    assert gm(x, places) == 3 and torch.ops.aten.index.Tensor(x, places) == 3


def test_arguments_that_share_memory_are_not_written():
    """In a graph each is a value of its own: the others would keep the old one."""
    def f(x, y):
        y.add_(1)
        return x * 2

    x = torch.zeros(4)
    for pair in ((x, x[1:]), (x, x)):
        with pytest.raises(errors.ViewWriteError, match="share memory"):
            make_fx(f)(*pair)
    assert x.tolist() == [0.0] * 4
    assert make_fx(f)(x[::2], x[1::2])(x[::2], x[1::2]).tolist() == [0.0, 0.0]
