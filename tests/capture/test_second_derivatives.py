"""Gradients of gradients through captured functions that have custom functions and hooks inside."""

import pytest

import pullback as torch
from pullback import errors
from pullback.aot import nop
from pullback.capture.entry import aot_function
from pullback.testing import assert_close
from tests.helpers.custom_functions import custom_function

# lets gradients pass
Straight = custom_function("Straight", torch.round, lambda g: g)
# a cube with a derivative that is not its own, from its input
Steeper = custom_function("Steeper", lambda x: x**3, lambda g, x: g * 5 * x * x, saves="inputs")
# an exponential whose backward uses its result
FromResult = custom_function("FromResult", torch.exp, lambda g, y: g * y * 1.5, saves="result")


class FromInside(torch.autograd.Function):
    """Saves what it computed on the way, which has no history."""

    @staticmethod
    def forward(ctx, x):
        inner = x.sin()
        ctx.save_for_backward(inner)
        return inner * x

    @staticmethod
    def backward(ctx, grad):
        (inner,) = ctx.saved_tensors
        return grad * inner.exp()


class Two(torch.autograd.Function):
    """Two arguments, a number, two results."""

    @staticmethod
    def forward(ctx, x, factor, y):
        ctx.save_for_backward(x, y)
        ctx.factor = factor
        return x * y * factor, x - y

    @staticmethod
    def backward(ctx, product, difference):
        x, y = ctx.saved_tensors
        return product * y * 2 + difference, None, product * x - difference * x


def hooked(x):
    y = x * 2
    y.register_hook(lambda g: g * 0.5)
    return y.exp()


def hooked_twice(x):
    y = x * x
    z = y.exp()
    y.register_hook(lambda g: g * y)
    y.register_hook(lambda g: g * y.sin() - g)
    return z * y


def module_hook(x):
    layer = torch.nn.Tanh()
    layer.register_full_backward_hook(lambda m, into, out: (into[0] * 3,))
    return layer(x * x)


def matrix(x):
    return torch.outer(x, x.sin()) + torch.eye(3, dtype=x.dtype) * 2


def factors_beside(x):
    """LU factors have no history, but the formula of the determinant that reads them has one."""
    det, factors, _ = torch.ops.aten._linalg_det.default(matrix(x))
    return det * factors.square().sin() * x


CELLS = {kind: getattr(torch.nn, kind)(3, 2, dtype=torch.float64) for kind in ("LSTM", "GRU")}

PROGRAMS = {
    "factors_beside": factors_beside,
    "lstm": lambda x: Steeper.apply(CELLS["LSTM"](x.expand(2, 3))[0]),  # a kernel has the gradient
    "gru": lambda x: Steeper.apply(CELLS["GRU"](x.expand(2, 3))[0]),
    "logdet": lambda x: torch.logdet(matrix(x)),
    "det": lambda x: torch.det(matrix(x)),
    "slogdet": lambda x: torch.linalg.slogdet(matrix(x))[1],
    "solve": lambda x: torch.linalg.solve(matrix(x), x.exp()),
    "solve_right": lambda x: torch.linalg.solve(matrix(x), matrix(x * 2), left=False),
    "inverse": lambda x: torch.linalg.inv(matrix(x)),
    "straight": lambda x: Straight.apply(x) ** 2,
    "steeper": lambda x: Steeper.apply(x).sin(),
    "from_result": lambda x: FromResult.apply(x * x),
    "from_inside": lambda x: FromInside.apply(x * x),
    "two": lambda x: sum(Two.apply(x, 3.0, x.sin())),
    "one_of_two": lambda x: Two.apply(x, 3.0, x.sin())[1] ** 2,
    "nested": lambda x: Steeper.apply(FromResult.apply(Straight.apply(x) * x)),
    "twice": lambda x: Steeper.apply(x) * Steeper.apply(x + 1),
    "hooked": hooked,
    "hooked_twice": hooked_twice,
    "module_hook": module_hook,
}


def derivatives(function, start, order: int = 3) -> list:
    x = start.clone().requires_grad_()
    found = [function(x)]
    for _ in range(order):
        if not found[-1].requires_grad:
            break
        found += torch.autograd.grad(found[-1].square().sum(), x, create_graph=True)
    return [t.detach() for t in found]


WAYS = {
    "compile": torch.compile,
    "numpy": lambda f: torch.compile(f, backend="numpy"),
    "dynamic": lambda f: torch.compile(f, backend="numpy", dynamic=True),
    "aot": lambda f: aot_function(f, nop),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager_mode(name, way):
    start = torch.tensor([0.3, 0.8, 1.7], dtype=torch.float64)
    wanted = derivatives(PROGRAMS[name], start)
    seen = derivatives(WAYS[way](PROGRAMS[name]), start)
    assert len(seen) == len(wanted)
    for order, (a, b) in enumerate(zip(seen, wanted)):
        torch.testing.assert_close(a, b, msg=lambda m, order=order: f"derivative {order}: {m}")


@pytest.mark.parametrize("way", WAYS)
def test_draws_that_nobody_reads(way):
    """The forward that runs again for gradients of gradients draws the same numbers."""
    def f(x):
        torch.rand(3)
        return torch.nn.functional.dropout(x, 0.5) * x

    compiled = WAYS[way](f)
    x = torch.arange(40.0, requires_grad=True)
    out = compiled(x)
    (first,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    torch.testing.assert_close(first * x, 2 * out)
    torch.testing.assert_close(torch.autograd.grad(first.sum(), x)[0] * x, first)


def test_hooks_of_nodes_are_refused():
    def f(x):
        y = x.exp()
        y.grad_fn.register_hook(lambda into, out: (into[0] * 2,))
        return y * x

    x = torch.tensor([0.5], requires_grad=True)
    wanted = torch.autograd.grad(f(x).sum(), x)
    compiled = torch.compile(f)
    torch.testing.assert_close(torch.autograd.grad(compiled(x).sum(), x), wanted)
    with pytest.raises(errors.NotDifferentiable, match="hook on a grad_fn"):
        torch.autograd.grad(compiled(x).sum(), x, create_graph=True)


# not linear in its gradient
Clipped = custom_function("Clipped", torch.exp, lambda grad: grad.clamp(-0.5, 0.5))


def clipped_by_hook(x):
    y = x.sin()
    y.register_hook(lambda g: g.clamp(-0.5, 0.5))
    return y.exp()


@pytest.mark.parametrize("f", [lambda x: Clipped.apply(x.sin()).exp(), clipped_by_hook])
def test_what_is_not_linear_is_refused(f):
    """In eager code it is asked once, with the sum of what comes in several ways here."""
    start = torch.tensor([0.5, 1.0])
    compiled = torch.compile(f)
    torch.testing.assert_close(derivatives(compiled, start, 1), derivatives(f, start, 1))
    with pytest.raises(errors.NotDifferentiable, match="not linear"):
        derivatives(compiled, start, 2)


def test_results_that_get_one_gradient():
    """Which of them a captured step was for cannot be told: refused, not guessed."""
    def f(x):
        a, b = Two.apply(x, 3.0, x.sin())
        return (a + b).exp()

    start = torch.tensor([0.5, 1.0])
    compiled = torch.compile(f)
    torch.testing.assert_close(derivatives(compiled, start, 1), derivatives(f, start, 1))
    with pytest.raises(errors.NotDifferentiable, match="Two inside of a compiled function"):
        derivatives(compiled, start, 2)


@pytest.mark.parametrize("function", [
    lambda x: x.norm(), lambda x: x.std(), lambda x: torch.linalg.vector_norm(x, 3, 1),
    lambda x: torch.dist(x, x.flip(0)), lambda x: torch.cdist(x, x.flip(0), 3.0),
    lambda x: torch.nn.functional.cosine_similarity(x, x.flip(0), 1),
], ids=["norm", "std", "vector_norm", "dist", "cdist", "cosine"])
@pytest.mark.parametrize("way", ["numpy", "native", "aot"])
def test_kinks_are_those_of_the_operator_not_of_its_parts(function, way):
    """The square root in a norm at 0 has no derivative; the norm has."""
    def second(f, x):
        x = x.clone().requires_grad_()
        first, = torch.autograd.grad(f(x).sum(), x, create_graph=True)
        return torch.autograd.grad(first.sum(), x)[0]

    captured = aot_function(function, lambda module, _: module) if way == "aot" else (
        torch.compile(function, backend=way))
    for x in (torch.zeros(3, 2), torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])):
        assert_close(second(captured, x), second(function, x), atol=1e-6, rtol=1e-5)


def test_the_sweep_says_whether_gradients_have_a_history():
    """Not the grad mode of a transform that the sweep has nothing to do with."""
    x = torch.tensor([0.3, 0.7], requires_grad=True)
    y = torch.compile(lambda x: (x.sin() * x).sum())(x)
    found = []

    def f(q):
        with torch.no_grad():
            found.extend(torch.autograd.grad(y, x, create_graph=True))
        return (q * 2).sum()

    torch.func.grad(f)(torch.ones(2))
    second, = torch.autograd.grad(found[0].sum(), x)
    assert_close(second, (2 * x.cos() - x * x.sin()).detach())
