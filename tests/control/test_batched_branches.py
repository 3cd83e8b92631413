"""`vmap` over a decision: each example has the value and the gradients of the branch it takes."""

import pytest

import pullback as pb
from pullback import func
from pullback.testing import assert_close

P = pb.tensor([True, False, True, False])
X = pb.tensor([4.0, 0.0, 9.0, -1.0])
W = pb.tensor([2.0, 3.0])


def rooted(p, x, w):
    return pb.cond(p, lambda x: x.sqrt() * w[0], lambda x: x * w[1], (x,))


def logged(p, x, w):
    return pb.cond(p, lambda x, w: (x.log() * w).sum(), lambda x, w: (x * w).sum(), (x, w))


def one_by_one(function, p, x, w):
    """Gradients of the sum over examples, by a loop."""
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    sum(function(p[i], x[i], w) for i in range(len(p))).backward()
    return x.grad, w.grad


def together(p, x, w, function):
    return func.vmap(function, (0, 0, None))(p, x, w).sum()


@pytest.mark.parametrize("function", [rooted, logged])
@pytest.mark.parametrize("p", [P, ~P & (X > -2), pb.zeros(4, dtype=pb.bool)])
@pytest.mark.parametrize("way", ["tape", "grad", "inside", "compiled"])
def test_gradients_are_those_of_the_branch_taken(function, p, way):
    x = X if p is P else pb.tensor([0.0, 1.0, -2.0, 3.0])
    wanted = one_by_one(function, p, x, W)
    if way == "grad":
        found = func.grad(lambda x, w: together(p, x, w, function), (0, 1))(x, W)
    elif way == "inside":
        gx, gw = func.vmap(func.grad(function, (1, 2)), (0, 0, None))(p, x, W)
        found = gx, gw.sum(0)
    else:
        run = pb.compile(together, backend="numpy") if way == "compiled" else together
        leaves = [t.clone().requires_grad_() for t in (x, W)]
        run(p, *leaves, function).backward()
        found = [t.grad for t in leaves]
    assert_close(tuple(found), wanted, equal_nan=True)


def test_second_derivatives_and_tangents():
    hessian = func.vmap(func.grad(func.grad(rooted, 1), 1), (0, 0, None))(P, X, W)
    assert_close(hessian, pb.tensor([-0.0625, 0.0, -1 / 54, 0.0]))
    _, tangent = func.jvp(lambda x: func.vmap(rooted, (0, 0, None))(P, x, W), (X,),
                          (pb.ones(4),))
    assert_close(tangent, pb.tensor([0.5, 3.0, 1 / 3, 3.0]))


def test_forward_mode_goes_through_no_grad_as_it_does_elsewhere():
    def frozen(x):
        with pb.no_grad():
            scale = x * 2
        return x.sqrt() * scale

    def mapped(x):
        return func.vmap(lambda p, x: pb.cond(p, frozen, lambda x: x * 3, (x,)))(P, x)

    _, tangent = func.jvp(mapped, (X,), (pb.ones(4),))
    assert_close(tangent, pb.tensor([6.0, 3.0, 9.0, 3.0]))
    assert_close(func.grad(lambda x: mapped(x).sum())(X), pb.tensor([2.0, 3.0, 3.0, 3.0]))
