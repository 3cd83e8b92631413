"""Results of registered operators: lists among them, numbers, and how they lie in memory."""

import pytest

import pullback as torch
from pullback import library
from pullback.fx.make_fx import make_fx
from pullback.overrides import TorchFunctionMode
from pullback.testing.two_tensor import TwoTensor
from pullback.utils._python_dispatch import TorchDispatchMode

T = torch.Tensor


@library.custom_op("tests_results::powers", mutates_args=())
def powers(x: T, n: int) -> tuple[T, list[T], int]:
    return x.exp(), [x**k for k in range(1, n + 1)], n


@powers.register_fake
def _(x, n):
    return torch.empty_like(x), [torch.empty_like(x) for _ in range(n)], n


def keep(ctx, inputs, output):
    y, some, n = output
    assert type(some) is list and n == inputs[1]
    ctx.save_for_backward(inputs[0], y)


def pull(ctx, grad, grads, nothing):
    x, y = ctx.saved_tensors
    assert nothing is None
    terms = [g * (k + 1) * x**k for k, g in enumerate(grads)]
    return grad * y + sum(terms), None


powers.register_autograd(pull, setup_context=keep)


def both(x):
    y, (a, b, c), n = powers(x, 3)
    return y + n * a + b * c


def plain(x):
    return x.exp() + 3 * x + x**5


X = torch.tensor([0.5, -1.0])
WAYS = {
    "eager": lambda f: f,
    "compile": torch.compile,
    "grad": lambda f: torch.func.grad(lambda x: f(x).sum()),
    "compiled grad": lambda f: torch.compile(torch.func.grad(lambda x: f(x).sum())),
    "vmap": torch.func.vmap,
    "jvp": lambda f: lambda x: torch.func.jvp(f, (x,), (torch.ones_like(x),))[1],
    "capture": lambda f: lambda x: make_fx(f, tracing_mode="symbolic")(x)(x),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.filterwarnings("ignore:vmap")
def test_a_list_among_several_results(way):
    torch.testing.assert_close(WAYS[way](both)(X), WAYS[way](plain)(X))


def test_gradients_of_a_list_among_several_results():
    for f in (both, torch.compile(both)):
        x = X.clone().requires_grad_()
        (first,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        torch.testing.assert_close(first.detach(), X.exp() + 3 + 5 * X**4)
        torch.testing.assert_close(second, X.exp() + 20 * X**3)


def test_a_batching_rule_for_a_list_among_several_results():
    with library._scoped_library("tests_batched", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> (Tensor, Tensor[])")
        lib.impl("f", lambda x: (x.sin(), [x.cos(), x * 2]), "CPU")

        def rule(info, dims, x):
            y, some = torch.ops.tests_batched.f(x)
            return (y, some), (dims[0], [dims[0]] * 2)

        library.register_vmap("tests_batched::f", rule)
        y, some = torch.func.vmap(torch.ops.tests_batched.f.default, 1, 1)(torch.ones(2, 3))
        assert type(some) is list and [tuple(t.shape) for t in (y, *some)] == [(2, 3)] * 3


def test_lists_that_are_written():
    @library.custom_op("tests_results::add_to", mutates_args={"xs"})
    def add_to(xs: list[T], y: T) -> list[T]:
        old = [x.clone() for x in xs]
        for x in xs:
            x.add_(y)
        return old

    add_to.register_fake(lambda xs, y: [torch.empty_like(x) for x in xs])

    def f(a, b):
        old = add_to([a, b], a * 2)
        return old[1] + a

    for way in (f, torch.compile(f)):
        a, b = torch.ones(2), torch.zeros(2)
        assert way(a, b).tolist() == [3, 3]
        assert (a.tolist(), b.tolist()) == ([3, 3], [2, 2])


def test_results_lie_in_memory_as_they_were_made():
    @library.custom_op("tests_results::turn", mutates_args=())
    def turn(x: T) -> T:
        return x.t().clone()

    turn.register_fake(lambda x: x.t().clone())
    turn.register_autograd(lambda ctx, g: g.t())
    x = torch.ones(2, 3)
    tracked = torch.ones(2, 3, requires_grad=True)
    for f in (turn, torch.compile(turn), torch.compile(lambda x: turn(x) + 1),
              torch.func.vmap(lambda x: x * 1, 1, 1)):
        assert f(x).stride() == f(tracked).stride()
    assert turn(x).stride() == torch.compile(turn)(tracked).stride() == (1, 3)
    assert torch.compile(lambda x: turn(x) + 1)(x).stride() == (1, 3)
    (node,) = make_fx(turn, tracing_mode="fake")(x).graph.find_nodes(
        op="call_function", target=turn._opoverload)
    assert node.meta["val"].stride() == (1, 3)


@pytest.mark.parametrize("name", ["mm::double", "tests_results::clone", "view::t"])
def test_names_of_the_table_mean_nothing_in_other_namespaces(name):
    double = library.custom_op(name, mutates_args=(), schema="(Tensor x) -> Tensor")(
        lambda x: x * 2)
    double.register_fake(torch.empty_like)
    x = torch.ones(2, 2)
    assert torch.compile(lambda x: double(x) + 1)(x).tolist() == [[3, 3], [3, 3]]
    assert torch.compile(double)(x).tolist() == [[2, 2], [2, 2]]


def test_an_operator_may_write_statistics_of_what_is_trained():
    @library.custom_op("tests_results::note", mutates_args={"total"})
    def note(total: T, x: T) -> T:
        total.add_(x.sum())
        return total.clone()

    note.register_fake(lambda total, x: torch.empty_like(total))

    def loss(total, w):
        h = w * 2
        note(total, h)
        return (h * h).sum()

    for f in (loss, torch.compile(loss)):
        total, w = torch.zeros(()), torch.ones(3, requires_grad=True)
        for _ in range(2):
            f(total, w).backward()
        assert total.item() == 12 and w.grad.tolist() == [16, 16, 16]
    made = note(total, w)
    assert type(made.grad_fn).__name__ == "GeneratedBackwardFor_tests_results_note_defaultBackward"
    with pytest.raises(RuntimeError, match="no autograd formula"):
        made.backward()
    with pytest.raises(RuntimeError, match="writes an argument that requires grad"):
        note(w, w.detach())


def test_captures_of_operators_without_gradient():
    with library._scoped_library("tests_bare", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x * 2, "CPU")
        lib.impl("f", torch.empty_like, "Meta")
        x = torch.ones(2, requires_grad=True)
        with pytest.warns(UserWarning, match="autograd kernel was not registered"):
            y = torch.compile(lambda x: torch.ops.tests_bare.f(x) + x)(x)
            assert y.tolist() == [3, 3]
            y.sum().backward()
        assert x.grad.tolist() == [1, 1]


def test_numbers_among_the_results():
    @library.custom_op("tests_results::count", mutates_args=())
    def count(x: T) -> tuple[T, int]:
        return x.sin(), int((x > 0).sum())

    @library.custom_op("tests_results::only_count", mutates_args=())
    def only_count(x: T) -> int:
        return int((x > 0).sum())

    count.register_fake(lambda x: (torch.empty_like(x), library.get_ctx().new_dynamic_size()))
    only_count.register_fake(lambda x: library.get_ctx().new_dynamic_size())

    def f(x):
        y, n = count(x)
        return y * n, torch.zeros(n), x + only_count(x)

    one, other = torch.tensor([1.0, -1.0, 2.0]), torch.tensor([3.0, 1.0, 2.0])
    for made in (make_fx(f, tracing_mode="symbolic")(one), torch.compile(f)):
        for x in (one, other):
            for got, wanted in zip(made(x), f(x)):
                torch.testing.assert_close(got, wanted)

    sizes = library.custom_op("tests_results::sizes", mutates_args=(),
                              schema="(Tensor x) -> (Tensor, SymInt, SymInt[])")(
        lambda x: (x.sin(), x.shape[0], list(x.shape)))
    sizes.register_fake(lambda x: (torch.empty_like(x), x.shape[0], list(x.shape)))

    def g(x):
        y, n, shape = sizes(x)
        return y.reshape(shape[1], shape[0]) * n

    made = make_fx(g, tracing_mode="symbolic")(torch.ones(2, 3))
    for shape in ((2, 3), (4, 5)):
        x = torch.randn(shape)
        torch.testing.assert_close(made(x), g(x))
        torch.testing.assert_close(torch.compile(g, dynamic=True)(x), g(x))


def test_modes_and_classes_see_registered_operators():
    @library.custom_op("tests_results::shift", mutates_args={"x"})
    def shift(x: T, y: T) -> T:
        x.add_(y)
        return x.clone()

    shift.register_fake(lambda x, y: torch.empty_like(x))
    seen = []

    class Operators(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    class Functions(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    class Kind(torch.Tensor):
        pass

    x, y = torch.zeros(2), torch.ones(2)
    with Operators():
        assert shift(x, y).tolist() == [1, 1] == x.tolist()
    with Functions():
        shift(x, y)
        torch.ops.tests_results.shift(x, y)
    assert seen == ["tests_results.shift.default", "shift.default", "shift"]
    assert x.tolist() == [3, 3] and x._version == 6
    assert type(shift(Kind(torch.zeros(2)), y)) is Kind
    pair = TwoTensor(torch.zeros(2), torch.ones(2))
    made = shift(pair, TwoTensor(y, y))
    assert (pair.a.tolist(), pair.b.tolist(), made.b.tolist()) == ([1, 1], [2, 2], [2, 2])
    made = torch.compile(lambda p, q: shift(p, q) * 2)(pair, TwoTensor(y, y))
    assert (pair.a.tolist(), made.b.tolist()) == ([2, 2], [6, 6])
