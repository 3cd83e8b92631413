"""Writes to tensors with repeated elements: one value for all is taken, anything else refused."""

import pytest

import pullback as torch


def expanded():
    return torch.tensor([1.0]).expand(3)


@pytest.mark.parametrize("name, expected", [("zero_", 0), ("fill_", 7)])
def test_one_value_for_all(name, expected):
    x = torch.arange(3.0)
    views = [x[1:2].expand(4), x[1:2].expand(4, 4).t()[1:], x[1].expand(2, 2)]
    for view in views:
        x[1] = 1
        result = view.zero_() if name == "zero_" else view.fill_(7)
        assert result is view and (view == expected).all()
        assert x.tolist() == [0, expected, 2]


@pytest.mark.parametrize("write", [
    lambda t: t.add_(1), lambda t: t.copy_(torch.ones(3)), lambda t: t.uniform_(),
    lambda t: t.fill_(torch.tensor(2.0)), lambda t: t.clamp_(0, 1), lambda t: t.exp_()])
def test_other_writes_are_refused(write):
    with pytest.raises(RuntimeError, match="single memory location"):
        write(expanded())


def test_history():
    """What was expanded is filled, each element once, and loses its gradient once."""
    x = torch.arange(3.0, requires_grad=True)
    y = x * 2
    z = y[1:2].expand(4)
    z.zero_()
    (z.sum() + (y * torch.tensor([1.0, 2, 3])).sum()).backward()
    assert x.grad.tolist() == [2, 0, 6] and y.tolist() == [0, 0, 4]


def test_leaves_stay_protected():
    leaf = torch.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        leaf.expand(3).zero_()
    with torch.no_grad():
        leaf.expand(3).zero_()
    assert leaf.item() == 0


def test_under_transforms():
    def f(x):
        y = x.clone()
        y.expand(3).fill_(2.0)
        return (y * x).sum()

    x = torch.ones(1)
    assert torch.func.grad(f)(x).item() == 2
    assert torch.func.jvp(f, (x,), (x,))[1].item() == 2
    assert torch.func.vmap(f)(torch.ones(3, 1)).tolist() == [2, 2, 2]
    assert torch.make_fx(f)(x)(x).item() == 2


def test_zero_has_its_own_node():
    assert torch.ones(1, requires_grad=True).clone().zero_().grad_fn.name() == "ZeroBackward0"
