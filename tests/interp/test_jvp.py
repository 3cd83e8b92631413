"""Forward mode: what has no derivative is refused, what was left out stays out, dtypes stay."""

import pytest

import pullback as torch
from pullback import errors
from pullback.func import jacfwd, jvp
from tests.helpers.own_entries import entry


def spd(n=3):
    a = torch.arange(float(n * n), dtype=torch.float64).reshape(n, n)
    return a @ a.T + n * torch.eye(n, dtype=torch.float64)


def ldl_solve(factors, b):
    return torch.linalg.ldl_solve(factors, torch.arange(1, 4, dtype=torch.int32), b)


UNLISTED = {  # function of the argument that has no formula, and its value
    "ldl_solve": (lambda f: ldl_solve(f, torch.ones(3, 1, dtype=torch.float64)), spd),
    "binary_cross_entropy": (lambda w: torch.nn.functional.binary_cross_entropy(
        torch.tensor([0.5]), torch.tensor([1.0]), w), lambda: torch.ones(1)),
    "nll_loss": (lambda w: torch.nn.functional.nll_loss(
        torch.ones(1, 2), torch.tensor([0]), w), lambda: torch.ones(2)),
}


@pytest.mark.parametrize("name", UNLISTED)
def test_arguments_without_formula_are_refused_in_both_modes(name):
    """Their tangents were dropped once, which made the derivative zero."""
    f, make = UNLISTED[name]
    value = make()
    with pytest.raises(errors.NotDifferentiable, match="not differentiable with respect to"):
        jvp(f, (value,), (torch.ones_like(value),))
    with pytest.raises(errors.NotDifferentiable, match="not differentiable with respect to"):
        jacfwd(f)(value)
    with pytest.raises(errors.NotDifferentiable, match="not differentiable with respect to"):
        f(value.clone().requires_grad_())


def test_the_other_arguments_still_have_their_derivative():
    b = torch.ones(3, 1, dtype=torch.float64)
    moved = jvp(lambda b: ldl_solve(spd(), b), (b,), (b,))[1]
    assert torch.allclose(moved, ldl_solve(spd(), b))


def test_arguments_that_are_marked_are_ignored():
    """An index or a mask has no tangent; what the table marks as ignored may have one."""
    x = torch.ones(3)
    assert jvp(lambda t: (x > t).float() + x, (x,), (x,))[1].sum() == 0


def test_tangents_have_the_dtype_of_their_value():
    x = torch.ones(3, dtype=torch.float16)
    for f in (torch.sum, lambda x: x.logcumsumexp(0), lambda x: x.cumprod(0), torch.exp):
        value, moved = jvp(f, (x,), (x,))
        assert moved.dtype is value.dtype


@pytest.fixture
def halves():
    """Some halves of a tensor, of which the first may be left out, without a forward formula."""
    with entry("test_halves(Tensor self, bool first) -> (Tensor, Tensor)",
               run=lambda xp, self, first: (self / 2 if first else None, self / 2),
               shape="[self.shape if first else None, self.shape]",
               grad={"self": "(0 if grads[0] is None else grads[0] / 2) + grads[1] / 2"}) as op:
        yield op


def test_transposing_a_pullback_with_an_output_that_is_not_there(halves):
    x = torch.arange(3.0)
    for first in (True, False):
        values, moved = jvp(lambda x, first=first: halves(x, first)[1], (x,), (x + 1,))
        assert torch.equal(values, x / 2) and torch.equal(moved, (x + 1) / 2)
    moved = jvp(lambda x: halves(x, True)[0], (x,), (x + 1,))[1]
    assert torch.equal(moved, (x + 1) / 2)


@pytest.mark.parametrize("join", [
    torch.cat, torch.stack, torch.hstack, torch.vstack, torch.dstack, torch.column_stack])
def test_integers_beside_a_dual_have_no_tangent(join):
    x, v = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    out, tangent = torch.func.jvp(lambda t: join([t, torch.tensor([5, 6])]), (x,), (v,))
    assert torch.equal(out, join([x, torch.tensor([5.0, 6.0])]))
    assert torch.equal(tangent, join([v, torch.zeros(2)]))


def test_integers_written_into_a_dual():
    def write(t):
        t = t * 1
        t[0] = torch.tensor(7)
        return t

    x, v = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    out, tangent = torch.func.jvp(write, (x,), (v,))
    assert out.tolist() == [7.0, 2.0] and tangent.tolist() == [0.0, 4.0]


@pytest.mark.parametrize("dtype", [torch.int8, torch.bool])
@pytest.mark.parametrize("name", ["smooth_l1_loss", "mse_loss", "huber_loss"])
def test_losses_take_integers_beside_tangents(name, dtype):
    loss = getattr(torch.nn.functional, name)
    whole, x = torch.tensor([1, 0, 1]).to(dtype), torch.tensor([0.5, 1.5, -2.0])
    ways = [lambda t, k: loss(t, k, reduction="sum"), lambda t, k: loss(k, t, reduction="sum")]
    if name == "huber_loss":  # it has the dtype of its first argument
        with pytest.raises(RuntimeError, match="not implemented for"):
            ways.pop()(x, whole)
    for f in ways:
        _, expected = jvp(lambda t: f(t, whole.float()), (x,), (torch.ones(3),))
        _, found = jvp(lambda t: f(t, whole), (x,), (torch.ones(3),))
        assert torch.equal(found, expected)


@pytest.mark.parametrize("loss, target", [
    ("mse_loss", [3, 0, 1]), ("mse_loss", [True, False, True]),
    ("smooth_l1_loss", [3, 0, 1]), ("l1_loss", [3, 0, 1])])
def test_losses_with_whole_targets(loss, target):
    """Integers and truth values are constants beside a dual, whatever formula is used."""
    x, v = torch.tensor([0.5, 1.5, -2.0]), torch.tensor([1.0, 2.0, 3.0])
    f = lambda x: getattr(torch.nn.functional, loss)(x, torch.tensor(target))
    assert torch.allclose(jvp(f, (x,), (v,))[1], torch.func.grad(f)(x) @ v)
    assert torch.allclose(jvp(torch.func.grad(f), (x,), (v,))[1],
                          torch.func.grad(lambda x: torch.func.grad(f)(x) @ v)(x))


def test_distance_to_integers():
    x, v = torch.tensor([3.0, 4.0]), torch.tensor([1.0, 2.0])
    tangent = jvp(lambda x: torch.dist(x, torch.tensor([0, 0])), (x,), (v,))[1]
    assert torch.allclose(tangent, torch.tensor(11 / 5))
