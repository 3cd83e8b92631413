"""`autograd.Function`: what is refused and how, undefined gradients, and what lets go of memory."""

import weakref

import pytest

import pullback as torch
from pullback import func
from pullback.autograd import Function
from pullback.autograd.function import NestedIOFunction, once_differentiable
from tests.helpers.custom_functions import (
    DERIVATIVES,
    POINTS,
    Cube,
    Square,
    custom_function,
    saving,
)
from tests.helpers.leaves import close, grad, leaf, plain


def returning(*grads):
    class Given(Function):
        @staticmethod
        def forward(ctx, x, k):
            return x * k

        @staticmethod
        def backward(ctx, g):
            return grads

    return Given


@pytest.mark.parametrize(
    "grads, message",
    [
        ((plain(1.0),), r"GivenBackward.*incorrect number of gradients \(expected 2, got 1\)"),
        ((plain(1.0), plain(1.0)), "gradient different than None at position 2"),
        ((torch.ones(3, dtype=torch.float64), None), r"invalid gradient at index 0 - got \[3\]"),
        ((3, None), r"expected Variable or None \(got int\)"),
        ((plain(1.0), None, plain(1.0)), r"expected 2, got 3"),
    ],
)
def test_wrong_gradients(grads, message):
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=message):
        returning(*grads).apply(x, 3).sum().backward()


def test_gradients_that_can_be_fitted():
    x = leaf(1.0, 2.0)
    returning(torch.ones(2, 2), None).apply(x, 3).sum().backward()
    assert x.grad.tolist() == [2, 2] and x.grad.dtype is torch.float64
    x.grad = None
    returning(plain(1.0, 1.0), None, None, None).apply(x, 3).sum().backward()
    assert x.grad.tolist() == [1, 1]
    y = leaf(1.0)
    assert grad(returning(None, None).apply(y, 1).sum(), y, allow_unused=True) == (None,)


def test_methods_that_are_missing():
    class Empty(Function):
        pass

    class Forward(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    x = leaf(1.0)
    with pytest.raises(NotImplementedError, match="must implement the forward"):
        Empty.apply(x)
    y = Forward.apply(x)
    with pytest.raises(NotImplementedError, match="backward or vjp"):
        y.sum().backward()
    with pytest.raises(NotImplementedError, match="jvp"):
        func.jvp(Forward.apply, (x.detach(),), (x.detach(),))
    with pytest.raises(RuntimeError, match=r"vmap over Forward, .* does not have vmap support"):
        func.vmap(Forward.apply)(x.detach())


def test_vjp_is_backward():
    class A(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def vjp(ctx, g):
            return g * 2

    class B(A):
        @staticmethod
        def backward(ctx, g):
            return g

    x = leaf(1.0)
    assert grad(A.apply(x).sum(), x)[0].item() == 2
    with pytest.raises(RuntimeError, match="both 'backward' and 'vjp'"):
        B.apply(x)


def test_legacy_calls():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        f = Square()
    with pytest.raises(RuntimeError, match="Legacy autograd function"):
        f(leaf(1.0))


def test_both_kinds_of_batching():
    class Two(Cube):
        @staticmethod
        def vmap(info, in_dims, x):
            return x, 0

    with pytest.raises(RuntimeError, match="both generate_vmap_rule"):
        func.vmap(Two.apply)(plain(1.0))


def test_batching_rule_is_told():
    seen = []

    class Sum(Function):
        @staticmethod
        def forward(x, y, k):
            return x + y, x * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.k = inputs[2]

        @staticmethod
        def backward(ctx, a, b):
            return a + ctx.k * b, a, None

        @staticmethod
        def vmap(info, in_dims, x, y, k):
            seen.append((info.batch_size, info.randomness, in_dims, tuple(x.shape)))
            y = y if in_dims[1] is not None else y.unsqueeze(1)
            return Sum.apply(x, y, k), (in_dims[0], in_dims[0])

    x = torch.ones(2, 3, dtype=torch.float64)
    y = torch.ones(2, dtype=torch.float64)
    a, b = func.vmap(lambda x: Sum.apply(x, y, 4.0), in_dims=1)(x)
    assert a.shape == (3, 2) and b.tolist() == [[4, 4]] * 3
    assert seen == [(3, "error", (1, None, None), (2, 3))]

    class Wrong(Sum):
        @staticmethod
        def vmap(info, in_dims, x, y, k):
            return x

    with pytest.raises(RuntimeError, match="two returns"):
        func.vmap(lambda x: Wrong.apply(x, y, 4.0))(x.T)


def test_generated_batching_shares_arguments():
    class Product(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            ctx.note = {"twice": a * 2}
            return a * b

        @staticmethod
        def backward(ctx, g):
            _, b = ctx.saved_tensors
            return g * b, g * ctx.note["twice"] / 2

    a, b = torch.tensor(POINTS), torch.tensor(2.0, dtype=torch.float64)

    def f(a, b):
        return func.vmap(Product.apply, in_dims=(0, None))(a, b).sum()

    da, db = func.grad(f, argnums=(0, 1))(a, b)
    close(da, [2, 2, 2])
    close(db, POINTS.sum())
    close(func.jvp(f, (a, b), (a * 0 + 1, b * 0))[1], 6)


def test_once_differentiable():
    class Once(saving(lambda x: x * x)):
        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return torch.from_numpy(2 * x.numpy() * g.numpy())

    x = leaf(3.0)
    assert grad(Once.apply(x).sum(), x)[0].item() == 6
    (g,) = grad((Once.apply(x) ** 2).sum(), x, create_graph=True)
    assert g.item() == 108
    with pytest.raises(RuntimeError, match="differentiate twice"):
        g.sum().backward()
    assert func.grad(lambda x: Once.apply(x)[0])(x.detach()).item() == 6
    with pytest.raises(RuntimeError, match="differentiate twice"):
        func.grad(lambda x: func.grad(lambda x: Once.apply(x)[0])(x)[0])(x.detach())
    with pytest.raises(NotImplementedError, match="once_differentiable"):
        func.jvp(Once.apply, (x.detach(),), (x.detach(),))


def test_honest_refusal_of_forward_mode():
    class Hidden(Function):  # its backward cannot be transposed: it leaves the recorded operators
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return torch.from_numpy(2 * g.detach().numpy())

    with pytest.raises(NotImplementedError, match="cannot be transposed"):
        func.jvp(Hidden.apply, (plain(1.0),), (plain(1.0),))


def test_tangents_are_checked():
    class Two(Function):
        @staticmethod
        def forward(x, y):
            return x * y, x + 1

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_forward(*inputs)

        @staticmethod
        def jvp(ctx, xt, yt):
            assert yt.tolist() == [0] and ctx.saved_tensors[0].tolist() == [1]
            return xt

    with pytest.raises(RuntimeError, match=r"expected 2 but got 1"):
        func.jvp(lambda x: Two.apply(x, plain(2.0)), (plain(1.0),), (plain(1.0),))


def test_gradcheck():
    x = leaf(0.5, 1.5)
    for f in DERIVATIVES:
        assert torch.autograd.gradcheck(f.apply, (x,), check_forward_ad=True)
        assert torch.autograd.gradgradcheck(f.apply, (x,))


def test_complex():
    Mul = custom_function(
        "Mul", torch.mul, lambda g, a, b: (g * b.conj(), g * a.conj()), saves="inputs")
    a = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128, requires_grad=True)
    b = leaf(2.0, 3.0)
    assert torch.autograd.gradcheck(Mul.apply, (a, b), check_forward_ad=True)
    assert grad(Mul.apply(a, b).real.sum(), b)[0].dtype is torch.float64


def test_nested_structures():
    class Nested(NestedIOFunction):
        @staticmethod
        def forward_extended(ctx, pair, table):
            ctx.save_for_backward(pair[0], table["w"])
            return {"product": pair[0] * table["w"]}, [pair[1] * 2]

        @staticmethod
        def backward_extended(ctx, first, second):
            a, w = ctx.saved_tensors
            return [first["product"] * w, second[0] * 2], {"w": first["product"] * a}

    a, b, w = leaf(1.0), leaf(2.0), leaf(3.0)
    first, second = Nested.apply([a, b], {"w": w})
    (first["product"] + second[0]).sum().backward()
    assert (a.grad.item(), b.grad.item(), w.grad.item()) == (3, 2, 1)


def test_replacing_a_method():
    Replaced = custom_function("Replaced", lambda x: x * 1, lambda g: g)
    x = leaf(1.0)
    assert grad(Replaced.apply(x).sum(), x)[0].item() == 1

    class Below(Replaced):
        pass

    assert grad(Below.apply(x).sum(), x)[0].item() == 1
    Replaced.backward = staticmethod(lambda ctx, g: g * 4)
    assert grad(Replaced.apply(x).sum(), x)[0].item() == 4
    assert grad(Below.apply(x).sum(), x)[0].item() == 4


def test_an_error_leaves_recording_on():
    class Failing(Function):
        @staticmethod
        def forward(ctx, x):
            raise KeyError("mine")

    for call in (Failing.apply, func.grad(Failing.apply)):
        with pytest.raises(KeyError):
            call(leaf(1.0).detach())
        assert torch.is_grad_enabled()
    assert (leaf(1.0) * 2).requires_grad


def test_lists_are_opaque_to_the_tape_but_not_to_transforms():
    class Summed(Function):
        @staticmethod
        def forward(ctx, items, scale):
            ctx.save_for_backward(*items)
            return sum(items) * scale

        @staticmethod
        def backward(ctx, g):
            return None, g * sum(ctx.saved_tensors)

    s = leaf(2.0)
    assert grad(Summed.apply([plain(1.0), plain(2.0)], s).sum(), s)[0].item() == 3

    def f(s):
        return Summed.apply([s.detach() * 0 + 1, plain(2.0)], s).sum()

    assert func.grad(f)(s.detach()).item() == 3


def test_arrays_do_not_lose_derivatives_silently():
    Forgetful = custom_function(
        "Forgetful", lambda x: x * x, lambda g, x: torch.from_numpy(2 * x.numpy()) * g,
        saves="inputs")
    x = plain(1.0, 2.0)
    close(func.grad(lambda x: Forgetful.apply(x).sum())(x), [2, 4])
    with pytest.raises(RuntimeError, match=r"Can't call numpy"):
        func.grad(lambda x: func.grad(lambda x: Forgetful.apply(x).sum())(x).sum())(x)
    y = leaf(1.0)
    with torch.no_grad():
        assert y.numpy().tolist() == [1]


Silent = custom_function("Silent", lambda x: x * 1, lambda g: None)


@pytest.mark.parametrize("materialize", [True, False])
@pytest.mark.parametrize("between", [lambda y: y, lambda y: (y * 2).exp(), lambda y: y.split(1)[0]])
def test_undefined_gradients_reach_the_functions_before(materialize, between):
    seen = []

    class Told(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x * 3

        @staticmethod
        def backward(ctx, g):
            seen.append(g)
            return None if g is None else g * 3

    x = leaf(1.0, 2.0)
    Silent.apply(between(Told.apply(x))).sum().backward()
    assert len(seen) == 1
    if materialize:
        close(seen[0], [0, 0])
        close(x.grad, [0, 0])
    else:
        assert seen == [None] and x.grad is None
    y = Told.apply(x)
    (Silent.apply(y) + 2 * y).sum().backward()  # another way leads there: the sum counts
    assert len(seen) == 2
    close(x.grad, [6, 6])


def test_undefined_gradients_stay_undefined():
    for f in (lambda x: x, lambda x: x * 2, lambda x: (x * x).sin() + x):
        x = leaf(1.0, 2.0)
        Silent.apply(f(x)).sum().backward()
        assert x.grad is None
        assert torch.autograd.grad(Silent.apply(f(x)).sum(), x, allow_unused=True) == (None,)


def test_nodes_have_a_class_of_their_own():
    y = Square.apply(leaf(1.0))
    assert type(y.grad_fn).__name__ == y.grad_fn.name() == "SquareBackward"
    assert type(Cube.apply(leaf(1.0)).grad_fn) is not type(y.grad_fn)


def test_dirty_tensors_that_are_no_inputs():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(1.0)
    with pytest.warns(UserWarning, match="not an input"):
        y = Wrong.apply(x)
    y.sum().backward()
    close(x.grad, [2])


def test_tangents_of_outputs_without_derivative():
    class Both(Function):
        @staticmethod
        def forward(x):
            return x * 2, x.floor()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_non_differentiable(output[1])

        @staticmethod
        def jvp(ctx, t):
            return t * 2, t

    with pytest.raises(RuntimeError, match="output 1, which is not a differentiable"):
        func.jvp(Both.apply, (plain(1.5),), (plain(1.0),))


@pytest.mark.parametrize("dims", [(0, 0), (0,), [0]])
def test_out_dims_must_fit(dims):
    class Wrong(Function):
        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x):
            return x * 2, dims

    with pytest.raises(RuntimeError, match="returned an incompatible"):
        func.vmap(Wrong.apply)(torch.ones(2, 2))


def test_gradients_in_a_box_are_let_go():
    """A function with `boxed_grads_call` gets one list, and nobody else holds what is in it."""
    gone = []

    class Boxed(torch.autograd.Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx, x, y):
            return x * 2, y * 3

        @staticmethod
        def backward(ctx, grads):
            assert type(grads) is list
            refs = [weakref.ref(g) for g in grads]
            first, second = grads[0] * 2, grads[1] * 3
            grads.clear()
            gone.append([r() is None for r in refs])
            return first, second

    x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    a, b = Boxed.apply(x, y)
    (a.sin() + b.exp()).sum().backward()
    assert gone == [[True, True]]
    assert torch.allclose(x.grad, 2 * torch.full((3,), 2.0).cos())
    a, b = Boxed.apply(x, y)
    grads = torch.autograd.grad((a + b).sum(), (x, y), create_graph=True)
    assert [g.tolist() for g in grads] == [[2.0] * 3, [3.0] * 3]
    kept = torch.ones(3), torch.ones(3)
    torch.autograd.backward(Boxed.apply(x, y), kept)
    assert gone[2] == [False, False]  # the caller has them


@pytest.mark.parametrize("clears", [False, True])
def test_saved_tensors_may_be_let_go_when_they_are_read(clears):
    seen = []

    class Product(torch.autograd.Function):
        clear_saved_tensors_on_access = clears

        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y, x * y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y, z = ctx.saved_tensors
            ref = weakref.ref(z)
            del z
            seen.append(ref() is None)
            return g * y, g * x

    x = torch.ones(2, requires_grad=True)
    out = Product.apply(x, x.detach())
    out.sum().backward(retain_graph=True)
    assert seen == [clears] and x.grad.tolist() == [1, 1]
    if not clears:
        out.sum().backward()
        return
    for again in (lambda: out.sum().backward(), lambda: out.grad_fn.saved_tensors):
        with pytest.raises(RuntimeError, match="can only be accessed once"):
            again()


def test_saved_tensors_may_be_let_go_by_hand():
    class Sine(saving(torch.sin)):
        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            ctx.maybe_clear_saved_tensors()
            return g * x.cos()

    x = torch.zeros(2, requires_grad=True)
    out = Sine.apply(x)
    out.sum().backward(retain_graph=True)  # nothing is let go: there may be another one
    out.sum().backward()
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="second time"):
        out.sum().backward()
