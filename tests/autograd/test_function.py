"""`autograd.Function`: both styles, contexts, writes, views, errors, and every transform."""

import weakref

import numpy as np
import pytest

import pullback as torch
from pullback import func
from pullback.autograd import Function
from pullback.autograd.function import (
    FunctionCtx,
    InplaceFunction,
)
from tests.helpers.custom_functions import (
    BATCHED,
    DERIVATIVES,
    POINTS,
    Cube,
    Exp,
    Square,
    custom_function,
)
from tests.helpers.garbage import uncollected
from tests.helpers.leaves import close, grad, leaf, plain


@pytest.fixture(params=list(DERIVATIVES), ids=lambda c: c.__name__)
def function(request):
    return request.param


@pytest.fixture(params=BATCHED, ids=lambda c: c.__name__)
def batched(request):
    return request.param


# values and orders


def test_value_and_gradient(function):
    value, first, *_ = DERIVATIVES[function]
    x = torch.tensor(POINTS, requires_grad=True)
    y = function.apply(x)
    close(y, value(POINTS))
    assert y.requires_grad and not y.is_leaf
    y.backward(plain(1.0, 10.0, 100.0))
    close(x.grad, first(POINTS) * [1, 10, 100])


def test_three_orders_by_reverse_mode(function):
    x = torch.tensor(POINTS, requires_grad=True)
    y = function.apply(x).sum()
    for derivative in DERIVATIVES[function][1:]:
        if not y.requires_grad:
            assert function is Square  # its second derivative is a constant
            return
        (g,) = grad(y, x, create_graph=True)
        close(g, derivative(POINTS))
        y = g.sum()


def test_orders_by_function_transforms(function):
    x = torch.tensor(POINTS)
    _, first, second, third = DERIVATIVES[function]

    def summed(f):
        return lambda x: f(x).sum()

    one = func.grad(summed(function.apply))
    two = func.grad(summed(one))
    close(one(x), first(POINTS))
    close(two(x), second(POINTS))
    close(func.grad(summed(two))(x), third(POINTS))


@pytest.mark.parametrize("outer", ["jacrev", "jacfwd"])
@pytest.mark.parametrize("inner", ["jacrev", "jacfwd"])
def test_hessians(batched, outer, inner):
    x = torch.tensor(POINTS)
    outer, inner = getattr(func, outer), getattr(func, inner)
    _, first, second, _ = DERIVATIVES[batched]
    close(inner(batched.apply)(x), np.diag(first(POINTS)))
    close(outer(inner(lambda x: batched.apply(x).sum()))(x), np.diag(second(POINTS)))
    close(func.hessian(lambda x: batched.apply(x).sum())(x), np.diag(second(POINTS)))


def test_forward_mode(function):
    x = torch.tensor(POINTS)
    value, first, second, _ = DERIVATIVES[function]
    t = plain(1.0, 2.0, 3.0)
    out, tangent = func.jvp(function.apply, (x,), (t,))
    close(out, value(POINTS))
    close(tangent, first(POINTS) * [1, 2, 3])

    def pushed(x):
        return func.jvp(function.apply, (x,), (t,))[1]

    close(func.jvp(pushed, (x,), (t,))[1], second(POINTS) * [1, 4, 9])
    close(func.grad(lambda x: pushed(x).sum())(x), second(POINTS) * [1, 2, 3])


def test_batching(batched):
    x = torch.tensor(POINTS)
    value, first, second, third = DERIVATIVES[batched]
    f = batched.apply
    close(func.vmap(f)(x), value(POINTS))
    close(func.vmap(func.grad(f))(x), first(POINTS))
    close(func.vmap(func.grad(func.grad(f)))(x), second(POINTS))
    close(func.vmap(func.grad(func.grad(func.grad(f))))(x), third(POINTS))
    close(func.grad(lambda x: func.vmap(func.grad(f))(x).sum())(x), second(POINTS))
    close(func.jvp(func.vmap(func.grad(f)), (x,), (x * 0 + 1,))[1], second(POINTS))
    both = torch.tensor(np.stack([POINTS, POINTS + 1]))
    close(func.vmap(func.vmap(func.grad(f)))(both), first(np.stack([POINTS, POINTS + 1])))
    close(func.vmap(f, in_dims=1, out_dims=1)(both), value(np.stack([POINTS, POINTS + 1])))


def test_vjp_called_later(batched):
    x = torch.tensor(POINTS)
    _, pull = func.vjp(batched.apply, x)
    close(pull(plain(1.0, 1.0, 1.0))[0], DERIVATIVES[batched][1](POINTS))
    close(
        func.vmap(pull)(torch.eye(3, dtype=torch.float64))[0],
        np.diag(DERIVATIVES[batched][1](POINTS)),
    )


def test_batched_gradients(function):
    if function not in BATCHED and function is not Square:
        return
    x = torch.tensor(POINTS, requires_grad=True)
    (rows,) = grad(function.apply(x), x, torch.eye(3, dtype=torch.float64), is_grads_batched=True)
    close(rows, np.diag(DERIVATIVES[function][1](POINTS)))


def test_tape_inside_of_vmap(batched):
    def f(x):
        x = x.detach().requires_grad_()
        (g,) = grad(batched.apply(x) * 1, x)
        return g

    close(func.vmap(f)(torch.tensor(POINTS)), DERIVATIVES[batched][1](POINTS))


@pytest.mark.parametrize("f", [Square, Cube, Exp], ids=lambda c: c.__name__)
def test_captured_and_compiled(f):
    def loss(x):
        return (f.apply(x) * x).sum()

    x = torch.tensor(POINTS, requires_grad=True)
    graph = torch.make_fx(func.grad(loss))(x.detach())
    close(graph(x.detach()), func.grad(loss)(x.detach()).numpy())
    eager = grad(loss(x), x)[0].numpy()
    compiled = torch.compile(loss)
    compiled(x).backward()
    close(x.grad, eager)


def test_backward_goes_into_the_joint_graph():
    # a backward that no formula of the table would give
    Straight = custom_function("Straight", torch.round, lambda g: g * 7)
    x = leaf(0.4, 1.6)
    y = torch.compile(lambda x: Straight.apply(x) * 2)(x)
    y.sum().backward()
    assert y.tolist() == [0, 4] and x.grad.tolist() == [14, 14]
    weight = leaf(0.4, 1.6)  # reached through the closure
    torch.compile(lambda x: (Straight.apply(weight) * x).sum())(plain(1.0, 2.0)).backward()
    assert weight.grad.tolist() == [7, 14]


# contexts


def test_attributes_and_plain_arguments():
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, k, mode="up", *more):
            ctx.k, ctx.level, ctx.saved, ctx.edges, ctx.outputs = k, 1, 2, 3, 4
            ctx.where = ctx.name = ctx.rule = ctx.hooks = "mine"
            assert isinstance(ctx, FunctionCtx) and ctx.needs_input_grad[:2] == (True, False)
            return x * k

        @staticmethod
        def backward(ctx, g):
            assert (ctx.level, ctx.saved, ctx.edges, ctx.outputs) == (1, 2, 3, 4)
            return (g * ctx.k,) + (None,) * (len(ctx.needs_input_grad) - 1)

    x = leaf(1.0, 2.0)
    for args in ((3.0,), (3.0, "down"), (3.0, "down", {"a": 1}, None)):
        y = Scale.apply(x, *args)
        assert grad(y.sum(), x)[0].tolist() == [3, 3]
        assert y.grad_fn.k == 3.0 and y.grad_fn.needs_input_grad[0] is True
    assert grad(Scale.apply(x, k=3.0).sum(), x)[0].tolist() == [3, 3]
    assert func.grad(lambda x: Scale.apply(x, 3.0).sum())(x.detach()).tolist() == [3, 3]


def test_defaults_reach_setup_context():
    seen = []

    class Power(Function):
        @staticmethod
        def forward(x, n=2):
            return x**n

        @staticmethod
        def setup_context(ctx, inputs, output):
            seen.append(inputs[1:])
            ctx.save_for_backward(inputs[0])
            ctx.n = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return ctx.n * ctx.saved_tensors[0] ** (ctx.n - 1) * g, None

    x = leaf(3.0)
    assert grad(Power.apply(x).sum(), x)[0].item() == 6
    assert grad(Power.apply(x, n=3).sum(), x)[0].item() == 27
    assert seen == [(2,), (3,)]


def test_forward_does_not_record():
    class Look(Function):
        @staticmethod
        def forward(ctx, x):
            assert not torch.is_grad_enabled() and not (x * 2).requires_grad
            with torch.enable_grad():
                assert (x * 2).requires_grad
            return x * 1

        @staticmethod
        def backward(ctx, g):
            ctx.enabled.append(torch.is_grad_enabled())
            return g

    x = leaf(1.0)
    assert torch.is_grad_enabled()
    y = Look.apply(x)
    assert torch.is_grad_enabled()
    y.grad_fn.ctx.enabled = enabled = []
    grad(y.sum(), x, retain_graph=True)
    grad(y.sum(), x, create_graph=True)
    assert enabled == [False, True]
    with torch.no_grad():
        assert not Look.apply(x).requires_grad


def test_the_node():
    x = leaf(1.0, 2.0)
    y = Exp.apply(x)
    node = y.grad_fn
    assert node.name() == "ExpBackward" and "ExpBackward object" in repr(node)
    assert node.next_functions[0][0].variable is x and len(node.next_functions) == 1
    assert node.saved_tensors[0].tolist() == y.tolist() and node.saved_tensors[0].grad_fn is node
    node.metadata["mine"] = 1
    assert node.metadata == {"mine": 1}
    assert "ExpBackward" in repr(y)


def test_needs_input_grad():
    class Product(Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return (
                g * b if ctx.needs_input_grad[0] else None,
                g * a if ctx.needs_input_grad[1] else None,
            )

    a, b = leaf(2.0), plain(5.0)
    y = Product.apply(a, b)
    assert y.grad_fn.needs_input_grad == (True, False)
    y.backward(plain(1.0))
    assert a.grad.item() == 5 and b.grad is None
    assert y.grad_fn.next_functions[1][0] is None


def test_saved_values_are_guarded():
    x = leaf(1.0, 2.0)
    y = x * 1
    z = Square.apply(y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    y = Exp.apply(x)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        y.sum().backward()


def test_saved_values_are_freed():
    x = leaf(1.0, 2.0)
    y = Square.apply(x).sum()
    node = y.grad_fn.next_functions[0][0]
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    with pytest.raises(RuntimeError, match="freed"):
        _ = node.saved_tensors


def test_no_circles():
    x = leaf(1.0)
    y = Exp.apply(x)
    alive = weakref.ref(y.grad_fn)
    with uncollected():
        del y
        assert alive() is None


def test_saving_what_is_not_a_tensor():
    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            ctx.save_for_backward(3)

    with pytest.raises(TypeError, match="can only save variables, but argument 0 is of type int"):
        Bad.apply(leaf(1.0))


def test_saving_none():
    class Maybe(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(None, x)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            nothing, x = ctx.saved_tensors
            assert nothing is None
            return g * x

    x = leaf(3.0)
    assert grad(Maybe.apply(x).sum(), x)[0].item() == 3


# outputs


class Split(Function):
    @staticmethod
    def forward(ctx, x):
        index = torch.tensor([1, 2])
        extra = x * 3
        ctx.mark_non_differentiable(extra)
        return x * 2, index, extra, "text", None, x + 1

    @staticmethod
    def backward(ctx, *grads):
        ctx.seen = grads
        return 2 * grads[0] + grads[5]


def test_several_outputs():
    x = leaf(1.0, 2.0)
    a, index, extra, text, nothing, b = Split.apply(x)
    assert a.requires_grad and b.requires_grad and text == "text" and nothing is None
    assert not index.requires_grad and not extra.requires_grad
    assert a.grad_fn is b.grad_fn
    a.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [2, 2]
    seen = a.grad_fn.seen
    assert [None if g is None else g.tolist() for g in seen] == [
        [1, 1],
        [0, 0],
        [0, 0],
        None,
        None,
        [0, 0],
    ]
    assert seen[1].dtype is torch.int64
    (a + 10 * b).sum().backward()
    assert x.grad.tolist() == [14, 14]


def test_gradients_that_did_not_arrive():
    class Pair(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            assert b is None
            return a * 2

    x = leaf(1.0)
    Pair.apply(x)[0].sum().backward()
    assert x.grad.item() == 2
    assert func.grad(lambda x: Pair.apply(x)[0].sum())(x.detach()).item() == 2


def test_tuple_of_one_stays_a_tuple():
    class One(Function):
        @staticmethod
        def forward(ctx, x):
            return (x * 2,)

        @staticmethod
        def backward(ctx, g):
            return (g * 2,)

    x = leaf(1.0)
    out = One.apply(x)
    assert isinstance(out, tuple) and len(out) == 1
    assert grad(out[0].sum(), x)[0].item() == 2


Identity = custom_function("Identity", lambda x: x, lambda g: g * 5)


def test_returning_an_input():
    x = leaf(1.0, 2.0)
    y = x * 1
    z = Identity.apply(y)
    assert z is not y and z._base is y and z.data_ptr() == y.data_ptr()
    assert z.grad_fn.name() == "IdentityBackward" and y.grad_fn.name() == "MulBackward0"
    assert grad(z.sum(), x)[0].tolist() == [5, 5]
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        z.mul_(2)
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        z[:1].mul_(2)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="its base or another view of its base"):
        z.sum()
    free = plain(1.0, 2.0)
    w = Identity.apply(free)
    assert w is not free and not w.requires_grad
    w.mul_(2)
    assert free.tolist() == [2, 4]
    assert func.grad(lambda x: Identity.apply(x).sum())(plain(1.0)).item() == 5
    assert func.grad(func.grad(lambda x: Identity.apply(x) ** 2))(plain(1.0)[0]).item() == 50


def test_returning_a_view():
    class Row(Function):
        @staticmethod
        def forward(ctx, x):
            return x[0]

        @staticmethod
        def backward(ctx, g):
            return torch.stack([g, g * 0]) * 3

    x = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)
    y = x * 1
    z = Row.apply(y)
    assert z._base is y
    assert grad(z.sum(), x)[0].tolist() == [[3, 3], [0, 0]]
    with pytest.raises(RuntimeError, match="custom Function"):
        z.add_(1)

    class Fresh(Function):  # a view of a tensor that nobody else has may be written
        @staticmethod
        def forward(ctx, x):
            return (x * 2).reshape(-1)

        @staticmethod
        def backward(ctx, g):
            return (g * 2).reshape(2, 2)

    z = Fresh.apply(x)
    z.mul_(3)
    assert grad(z.sum(), x)[0].tolist() == [[6, 6], [6, 6]]


# writes


class Double(InplaceFunction):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 20


def test_in_place():
    x = leaf(1.0, 2.0)
    y = x * 1
    z = Double.apply(y)
    assert z is y and y.tolist() == [2, 4] and y.grad_fn.name() == "DoubleBackward"
    assert y._version >= 1
    assert grad(y.sum(), x)[0].tolist() == [20, 20]
    with pytest.raises(RuntimeError, match="leaf"):
        Double.apply(x)
    free = plain(1.0)
    assert Double.apply(free) is free and free.item() == 2


def test_in_place_on_a_view():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    Double.apply(y[1:])
    assert y.tolist() == [1, 4, 6]
    assert grad(y.sum(), x)[0].tolist() == [1, 20, 20]


def test_in_place_guards_saved_values():
    x = leaf(1.0, 2.0)
    y = x * 1
    z = y.sin()
    Double.apply(y)
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        z.sum().backward()


def test_in_place_under_transforms():
    def f(x):
        y = x * 1
        Double.apply(y)
        return y.sum()

    x = plain(1.0, 2.0)
    assert func.grad(f)(x).tolist() == [20, 20]
    assert func.jvp(f, (x,), (x * 0 + 1,))[1].item() == 40
    assert torch.make_fx(func.grad(f))(x)(x).tolist() == [20, 20]
    leaf_ = leaf(1.0, 2.0)
    torch.compile(f)(leaf_).backward()
    assert leaf_.grad.tolist() == [20, 20]


def test_in_place_generated_batching():
    class Triple(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x.mul_(3)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_dirty(inputs[0])

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = plain(1.0, 2.0)
    y = x.clone()
    assert func.vmap(Triple.apply)(y).tolist() == [3, 6] and y.tolist() == [3, 6]
    assert func.vmap(func.grad(lambda x: Triple.apply(x * 1)))(x).tolist() == [3, 3]
    assert func.grad(lambda x: func.vmap(Triple.apply)(x * 1).sum())(x).tolist() == [3, 3]


def test_dirty_must_be_returned():
    class Lost(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.mul_(2)
            return x * 1

    with pytest.raises(RuntimeError, match="marked as dirty during the forward method were not"):
        Lost.apply(leaf(1.0) * 1)
