"""`make_fx(tracing_mode="symbolic")`: what is printed, which guards are taken, what data decides.

Expected prints and guards were recorded from PyTorch 2.13.
"""

import pytest

import pullback as torch
from pullback import errors
from pullback.fx.fake_mode import DynamicOutputShapeException, FakeTensorMode
from pullback.fx.make_fx import make_fx
from pullback.pytree import tree_leaves
from pullback.symbolic import ShapeEnv

F = torch.nn.functional


def captured(f, *args, **kwargs):
    return make_fx(f, tracing_mode="symbolic", **kwargs)(*args)


def lines(module):
    return [line.strip() for line in module.code.strip().splitlines()]


def test_sizes_are_nodes():
    g = captured(lambda a, b: a.new_empty(b.shape[0], b.shape[1] * 2), torch.randn(4, 8),
                 torch.randn(5, 7))
    assert lines(g)[1:4] == [
        "sym_size_int = torch.ops.aten.sym_size.int(b_1, 1)",
        "mul = sym_size_int * 2;  sym_size_int = None",
        "sym_size_int_1 = torch.ops.aten.sym_size.int(b_1, 0);  b_1 = None",
    ]
    assert g(torch.randn(2, 2), torch.randn(3, 6)).shape == (3, 12)
    assert g.shape_env.guards == []


def test_sizes_of_results_and_a_guard():
    def f(a, b):
        c = torch.cat([a, b])
        d = c.shape[0] * 2
        if c.shape[0] > 5:
            return c.view(-1), d
        return c

    g = captured(f, torch.randn(3, 4), torch.randn(5, 4))
    assert lines(g) == [
        "def forward(self, a_1, b_1):",
        "cat = torch.ops.aten.cat.default([a_1, b_1]);  a_1 = b_1 = None",
        "sym_size_int = torch.ops.aten.sym_size.int(cat, 0)",
        "mul = sym_size_int * 2;  sym_size_int = None",
        "view = torch.ops.aten.view.default(cat, [-1]);  cat = None",
        "return (view, mul)",
    ]
    assert g.shape_env.format_guards() == " - s57 + s75 > 5"
    assert "test_make_fx_symbolic.py" in g.shape_env.guards[0].where
    view, count = g(torch.ones(4, 4), torch.ones(9, 4))
    assert view.shape == (52,) and count == 26


def test_arithmetic():
    def f(x):
        n, m = x.shape
        return (torch.sym_max(n, m), torch.sym_float(n) / 2.0, n // 3, n % 3, n**2, -n, x.shape)

    g = captured(f, torch.randn(4, 6))
    assert lines(g)[1:] == [
        "sym_size_int = torch.ops.aten.sym_size.int(x_1, 0)",
        "sym_size_int_1 = torch.ops.aten.sym_size.int(x_1, 1);  x_1 = None",
        "sym_max = torch.sym_max(sym_size_int, sym_size_int_1)",
        "sym_float = torch.sym_float(sym_size_int)",
        "truediv = sym_float / 2.0;  sym_float = None",
        "floordiv = sym_size_int // 3",
        "mod = sym_size_int % 3",
        "pow_1 = sym_size_int ** 2",
        "neg = -sym_size_int",
        "return (sym_max, truediv, floordiv, mod, pow_1, neg, (sym_size_int, sym_size_int_1))",
    ]
    assert g(torch.ones(7, 5)) == (7, 3.5, 2, 1, 49, -7, (7, 5))


def test_a_tensor_divided_by_its_size():
    g = captured(lambda a: a / a.shape[0], torch.randn(3, 4))
    assert lines(g)[1:] == [
        "sym_size_int = torch.ops.aten.sym_size.int(a_1, 0)",
        "div = torch.ops.aten.div.Tensor(a_1, sym_size_int);  a_1 = sym_size_int = None",
        "return div",
    ]


@pytest.mark.parametrize("f, shapes, guards", [
    (lambda a, b: a + b, [(3, 4), (1, 4)], ""),
    (lambda a: torch.ones(int(a.shape[0])), [(4, 6)], " - Eq(s75, 4)"),
    (lambda x, w, b: F.linear(x, w, b).softmax(-1), [(8, 3), (5, 3), (5,)], ""),
    (lambda q: F.layer_norm(q, (q.shape[-1],)), [(2, 3, 5, 4)], ""),
    (lambda a: (a * a).expand(a.shape), [(4, 6)], ""),
    (lambda a: a.transpose(0, 1).contiguous().flatten(), [(4, 6)], ""),
    (lambda x, w: F.conv2d(x, w, padding=1), [(2, 3, 9, 11), (4, 3, 3, 3)],
     " - s7 + 2 >= s96\n - s92 + 2 >= s96"),
    (lambda x: torch.arange(x.shape[0]) + x, [(5, )], ""),
    (lambda x: x.mean(1) + x.var(1), [(5, 3)], ""),
])
def test_guards(f, shapes, guards):
    g = captured(f, *[torch.randn(*s) for s in shapes])
    assert g.shape_env.format_guards() == guards


def test_equal_sizes_share_a_symbol_and_zero_and_one_have_none():
    g = captured(lambda a, b: a @ b, torch.randn(1, 4), torch.randn(4, 7))
    a, b = (n.meta["val"].shape for n in g.graph.nodes if n.op == "placeholder")
    assert a[0] == 1 and type(a[0]) is int and str(a[1]) == str(b[0]) == "s96"
    assert str(a) == "torch.Size([1, s96])"


def test_an_integer_argument_is_a_symbol():
    g = captured(lambda x, n: x.expand(n, x.shape[0]), torch.randn(3), 5)
    assert g(torch.randn(4), 9).shape == (9, 4)
    assert "int(" not in g.code.replace("sym_size.int(", "")


@pytest.mark.parametrize("f, expected", [
    (lambda a: a.nonzero() * 2, "nonzero = torch.ops.aten.nonzero.default(a_1);  a_1 = None"),
    (lambda a: a.masked_select(a > 0).sum(),
     "masked_select = torch.ops.aten.masked_select.default(a_1, gt);  a_1 = gt = None"),
    (lambda a: a[a > 0] + 1, "index = torch.ops.aten.index.Tensor(a_1, [gt]);  a_1 = gt = None"),
    (lambda a: a.nonzero().shape[0] + 1,
     "sym_size_int = torch.ops.aten.sym_size.int(nonzero, 0);  nonzero = None"),
])
def test_sizes_from_data(f, expected):
    example, other = torch.randn(3, 4), torch.tensor([[1.0, -2.0], [0.0, 3.0], [4.0, 5.0]])
    g = captured(f, example)
    assert expected in lines(g)
    assert "u0" in str(g.shape_env.var_to_range)
    a, b = g(other), f(other)
    assert torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


def test_numbers_from_data():
    def f(a):
        n = a.sum().item()
        torch._check_is_size(n)
        torch._check(n <= 10)
        return torch.zeros(n) + 1

    g = captured(f, torch.tensor([2, 3]))
    assert "_local_scalar_dense = torch.ops.aten._local_scalar_dense.default(sum_1);  sum_1 = None"\
        in lines(g)
    assert str(g.shape_env.var_to_range) == "{s75: VR[2, int_oo], u0: VR[0, 10]}"
    assert g(torch.tensor([4, 3, 1])).shape == (8,)
    g = captured(lambda a: a * a.sum().item(), torch.randn(3))
    assert torch.allclose(g(torch.ones(4)), torch.full((4,), 4.0))
    g = captured(lambda a: torch.ones(a.tolist()), torch.tensor([2, 3]))
    assert g(torch.tensor([4, 5])).shape == (4, 5)
    assert g.shape_env.format_guards().startswith(" - Eq(s75, 2)")


def test_questions_about_data_are_refused_with_the_line():
    def f(a):
        n = a.sum().item()
        return a + 1 if n > 3 else a

    with pytest.raises(errors.GuardOnDataDependentSymNode, match="u0 > 3") as error:
        captured(f, torch.tensor([2, 3]))
    assert "test_make_fx_symbolic.py" in str(error.value) and "torch._check" in str(error.value)


def test_without_symbols_a_size_from_data_is_refused():
    with pytest.raises(DynamicOutputShapeException):
        make_fx(lambda a: a.nonzero(), tracing_mode="fake")(torch.randn(3))


def test_fake_tensors_with_a_shape_env():
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env)
    a, b = mode.from_tensor(torch.randn(4, 20)), mode.from_tensor(torch.randn(20, 30))
    assert str(a.shape) == "torch.Size([s26, s49])" and str(b.shape) == "torch.Size([s49, s70])"
    assert str(a.stride()) == "(s49, 1)"
    with mode:
        c = (a @ b).relu()
        assert str(c.shape) == "torch.Size([s26, s70])"
        assert c.shape[0] * 2 == 8
        assert str(c.nonzero().shape) == "torch.Size([u0, 2])"
    assert env.format_guards() == " - Eq(2*s26, 8)"


def test_real_weights_need_permission():
    weight = torch.randn(3, 3)
    with pytest.raises(Exception, match="Please convert all Tensors to FakeTensors"):
        captured(lambda x: x @ weight, torch.randn(4, 3))
    g = captured(lambda x: x @ weight, torch.randn(4, 3), _allow_non_fake_inputs=True)
    x = torch.randn(7, 3)
    assert torch.equal(g(x), x @ weight)
    assert g.shape_env.format_guards() == " - Eq(s96, 3)"


def test_gradients_inside():
    def f(x, w):
        return torch.func.grad(lambda x: (x @ w).tanh().sum())(x)

    g = captured(f, torch.randn(4, 3), torch.randn(3, 5))
    for n in (2, 9):
        x, w = torch.randn(n, 3), torch.randn(3, 5)
        assert torch.allclose(g(x, w), f(x, w))
    assert g.shape_env.guards == []


def test_vmap_inside():
    def f(x, y):
        return torch.vmap(lambda a, b: a.outer(b).sum(0))(x, y)

    g = captured(f, torch.randn(4, 3), torch.randn(4, 5))
    x, y = torch.randn(6, 2), torch.randn(6, 7)
    assert torch.allclose(g(x, y), f(x, y), atol=1e-6)


def free(env):
    """Symbols that are not known in terms of others."""
    return sum(str(s) not in env.replacements for s in env.var_to_val)


@pytest.mark.parametrize("f, shapes, count", [
    (lambda a, b: a * b, [(5, 1), (1, 6)], 2),
    (lambda a, b, c, d: (a + b) + torch.cat([c, d]), [(7,), (7,), (4,), (3,)], 2),
    (lambda a, b: a.view(b.shape[0]) + b.sum(), [(4, 2), (8, 5)], 3),
    (lambda a, b: a.view(b.shape[0]) + b.sum(), [(2, 3, 4), (24,)], 3),
])
def test_equal_sizes_are_replaced(f, shapes, count):
    env = captured(f, *[torch.randn(*s) for s in shapes]).shape_env
    assert free(env) == count and env.get_nontrivial_guards() == []


def test_ranges_are_refined():
    def f(a):
        assert a.shape[0] > 5
        assert a.shape[0] > 12
        assert a.shape[0] < 20
        return a.cos()

    env = captured(f, torch.randn(15)).shape_env
    assert str(env.var_to_range) == "{s75: VR[13, 19]}" and env.get_nontrivial_guards() == []


def test_examples_of_nodes_know_what_was_learned_later():
    def f(x):
        y = x.sin()
        assert x.shape[0] == 3
        return y.cos()

    g = captured(f, torch.randn(3))
    assert all(n.meta["val"].shape[0].node.expr == 3 for n in g.graph.nodes
               if n.op in ("placeholder", "call_function"))


def test_the_same_count_of_the_same_values():
    def f(a):
        b = a.clone()
        assert b.nonzero().shape[0] == b.nonzero().shape[0]
        before = b.nonzero().shape[0]
        b.normal_()
        with pytest.raises(errors.GuardOnDataDependentSymNode):
            bool(before == b.nonzero().shape[0])

    captured(f, torch.randn(4))


def test_masks_are_used_twice():
    def f(images, right, valid):
        images, right = images[valid], right[valid] == 1
        images[right] = images[right].flip(-1)
        return images

    g = captured(f, torch.randn(6, 2, 4), torch.randint(0, 2, (6,)), torch.ones(6).bool())
    args = torch.randn(5, 3, 4), torch.tensor([1, 0, 1, 1, 0]), torch.tensor([1, 1, 0, 1, 1]).bool()
    assert torch.equal(g(*args), f(*args))


@pytest.mark.parametrize("scale", [2.0, 0.5])
def test_scaled_sizes(scale):
    def f(x):
        return F.interpolate(x, scale_factor=scale, mode="bilinear")

    g = captured(f, torch.randn(1, 2, 8, 10))
    for shape in ((1, 2, 12, 6), (1, 2, 7, 9)):
        x = torch.randn(*shape)
        assert torch.allclose(g(x), f(x), atol=1e-5)
    assert not any(str(guard).startswith("Eq") for guard in g.shape_env.guards)


@pytest.mark.parametrize(("function", "inputs", "lines"), [
    (lambda x: torch.arange(0, x), (torch.tensor(10),),
     ["_local_scalar_dense(x_1)", "arange.start(0, _local_scalar_dense,"]),
    (lambda x: torch.arange(0, x.item(), 2), (torch.tensor(10),),
     ["arange.start_step(0, _local_scalar_dense, 2,"]),
    (lambda x: torch.zeros([x]), (torch.tensor(4),), ["zeros.default([_local_scalar_dense],"]),
    (lambda x: torch.ones(x, 3), (torch.tensor(4),), ["ones.default([_local_scalar_dense, 3],"]),
    (lambda x, y: y.repeat_interleave(x, dim=0, output_size=x.sum().item()),
     (torch.tensor([2, 3]), torch.ones(2)),
     ["repeat_interleave.Tensor(x_1, output_size = _local_scalar_dense)"]),
    (lambda x, y: y.split([n.item() for n in x]), (torch.tensor([2, 3]), torch.ones(5)),
     ["split_with_sizes.default(y_1, [_local_scalar_dense, _local_scalar_dense_1])"]),
    (lambda x: x.new_zeros(x.shape[0] & 3, x.shape[0] | 3), (torch.ones(6),),
     ["and_ = sym_size_int & 3", "or_ = sym_size_int | 3", "[and_, or_]"]),
    (lambda x: torch.sym_ite(x.shape[0] == 5, x.shape[0], x.shape[1]), (torch.ones(4, 5),),
     ["eq = sym_size_int == 5", "torch.sym_ite(eq, sym_size_int, sym_size_int_1)"]),
])
def test_numbers_of_data_as_sizes(function, inputs, lines):
    made = make_fx(function, tracing_mode="symbolic")(*inputs)
    code = made.code.replace(".default(x_1)", "(x_1)")
    assert all(line in code for line in lines), made.code
    for got, want in zip(tree_leaves(made(*inputs)), tree_leaves(function(*inputs)), strict=True):
        assert (got == want).all() if isinstance(want, torch.Tensor) else got == want
    assert code.count("_local_scalar_dense.default") <= len(inputs[0].reshape(-1))


def test_comparisons_of_tensors_are_not_decided():
    """The library's own question about a bool that only the data knows is not one about a size."""
    for function in (torch.allclose, torch.equal):
        with pytest.raises(errors.GuardOnDataDependentSymNode):
            make_fx(function, tracing_mode="symbolic")(torch.zeros(3), torch.zeros(3))


@pytest.mark.parametrize(("function", "shapes", "expected"), [
    (lambda a, b: a.new_empty(a.shape[0] + b.shape[0], a.shape[1] + b.shape[1]),
     ((3, 4), (5, 4)),
     ["sym_size_int = torch.ops.aten.sym_size.int(a_1, 0)",
      "sym_size_int_1 = torch.ops.aten.sym_size.int(b_1, 0)",
      "add = sym_size_int + sym_size_int_1;  sym_size_int = sym_size_int_1 = None",
      "sym_size_int_2 = torch.ops.aten.sym_size.int(a_1, 1)",
      "sym_size_int_3 = torch.ops.aten.sym_size.int(b_1, 1);  b_1 = None",
      "add_1 = sym_size_int_2 + sym_size_int_3;  sym_size_int_2 = sym_size_int_3 = None"]),
    (lambda a: (a.new_zeros(a.shape[0] * 2), a.new_ones((a.shape[0] * 2) // 2)), ((4,),),
     ["sym_size_int = torch.ops.aten.sym_size.int(a_1, 0)",
      "mul = sym_size_int * 2",
      "new_zeros = torch.ops.aten.new_zeros.default(a_1, [mul], pin_memory = False);  mul = None",
      "mul_1 = sym_size_int * 2;  sym_size_int = None",
      "floordiv = mul_1 // 2;  mul_1 = None"]),
    (lambda a: a.sum() / a.numel(), ((4, 6),),
     ["sum_1 = torch.ops.aten.sum.default(a_1)",
      "sym_numel_default = torch.ops.aten.sym_numel.default(a_1);  a_1 = None"]),
    (lambda a: a[:, :2], ((4, 5),),
     ["slice_1 = torch.ops.aten.slice.Tensor(a_1, 0, 0, 9223372036854775807);  a_1 = None",
      "slice_2 = torch.ops.aten.slice.Tensor(slice_1, 1, 0, 2);  slice_1 = None"]),
])
def test_each_size_that_is_asked_for_is_a_node(function, shapes, expected):
    """Also where another has the same value; as PyTorch records it."""
    inputs = [torch.ones(shape) for shape in shapes]
    made = captured(function, *inputs)
    assert lines(made)[1:1 + len(expected)] == expected
    for got, want in zip(tree_leaves(made(*inputs)), tree_leaves(function(*inputs)), strict=True):
        assert got.shape == want.shape


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_fakes_with_symbolic_sizes_among_the_inputs(mode):
    """Their sizes are nodes, numbers among the arguments are inputs; texts are PyTorch's."""
    real = torch.ones(3, 1), torch.ones(5)
    with FakeTensorMode(shape_env=ShapeEnv()) as fakes:
        x, y = map(fakes.from_tensor, real)
        made = make_fx(lambda n, m, x, y: (torch.broadcast_shapes(x.shape, y.shape),
                                           torch.empty(x.shape[0])),
                       tracing_mode=mode)(x.shape[0], y.shape[0], x, y)
        assert lines(made)[1:] == [
            "empty = torch.ops.aten.empty.memory_format([n_1], device = device(type='cpu'), "
            "pin_memory = False)", "return ((n_1, m_1), empty)"]
        made = make_fx(lambda x, y: x * y.shape[0], tracing_mode=mode)(x, y)
    assert lines(made)[1] == "sym_size_int = torch.ops.aten.sym_size.int(y_1, 0);  y_1 = None"
    assert torch.equal(made(*real), real[0] * 5)
