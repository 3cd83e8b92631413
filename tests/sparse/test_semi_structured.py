"""Matrices with two numbers in each four: dense ones in half of the memory."""

import pytest

import pullback as torch
from pullback import func
from pullback.sparse import SparseSemiStructuredTensor, to_sparse_semi_structured


def pruned(rows=6, cols=8, dtype=torch.float64):
    torch.manual_seed(0)
    t = torch.randn(rows, cols // 4, 4, dtype=dtype)
    t[..., 1] = 0
    t[:3, :, 3] = 0
    t[3:, :, 0] = 0
    t[0] = 0
    return t.reshape(rows, cols)


def test_numbers_and_places():
    a = pruned()
    t = to_sparse_semi_structured(a)
    assert isinstance(t, SparseSemiStructuredTensor) and t.shape == (6, 8)
    assert t.values().shape == t.indices().shape == (6, 4) and t.indices().dtype is torch.int8
    assert torch.equal(t.to_dense(), a) and torch.equal(t.t().to_dense(), a.t())
    assert torch.equal(to_sparse_semi_structured(a, True).to_dense(), a.t())
    assert t.t().t().shape == (6, 8) and "shape=torch.Size([6, 8])" in repr(t)
    half = to_sparse_semi_structured(pruned(dtype=torch.float16))
    assert half.float().dtype is torch.float32


def test_products_and_layers():
    a = pruned()
    t = to_sparse_semi_structured(a)
    b = torch.randn(8, 3, dtype=torch.float64)
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    bias = torch.randn(6, dtype=torch.float64)
    F = torch.nn.functional
    for ours, theirs in ((t @ b, a @ b), (b.t() @ t.t(), b.t() @ a.t()), (t @ b[:, 0], a @ b[:, 0]),
                         (F.linear(x, t), F.linear(x, a)),
                         (F.linear(x, t, bias), F.linear(x, a, bias))):
        assert torch.allclose(ours, theirs)
    layer = torch.nn.Linear(8, 6, dtype=torch.float64)
    layer.weight = torch.nn.Parameter(t)
    assert torch.allclose(layer(x), F.linear(x, a, layer.bias))


def test_derivatives():
    a, b = pruned(), torch.randn(8, 3, dtype=torch.float64, requires_grad=True)
    t = to_sparse_semi_structured(a)
    dense = a.clone().requires_grad_()
    (to_sparse_semi_structured(dense) @ b).sin().sum().backward()  # to the master weight
    wanted, = torch.autograd.grad((dense @ b).sin().sum(), dense)
    kept = to_sparse_semi_structured(torch.where(a != 0, wanted, 0))
    assert torch.allclose(dense.grad[a != 0], wanted[a != 0])
    leaf = t.detach().requires_grad_()
    (leaf @ b).sin().sum().backward()
    assert type(leaf.grad) is SparseSemiStructuredTensor
    assert torch.allclose(leaf.grad.to_dense()[a != 0], kept.to_dense()[a != 0])

    def loss(values, b):
        return (t.with_carrier(values) @ b).sin().sum()

    values = t.values().detach().requires_grad_()
    assert torch.autograd.gradcheck(loss, (values, b), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(loss, (values, b))
    other = b.detach()
    g = func.grad(lambda t: (t @ other).sin().sum())(t)
    assert torch.allclose(g.values(), leaf.grad.values())
    each = func.vmap(lambda v: t @ v)(torch.stack([other, other * 2]))
    assert torch.allclose(each[1], a @ other * 2)
    assert torch.allclose(torch.compile(lambda t, v: (t @ v).relu())(t, other), (a @ other).relu())


@pytest.mark.parametrize("data", [torch.ones(4, 4), torch.ones(4, 6), torch.ones(4)])
def test_others_are_refused(data):
    with pytest.raises(RuntimeError, match="to_sparse_semi_structured"):
        to_sparse_semi_structured(data)
    with pytest.raises(NotImplementedError, match="no such operator on semi-structured"):
        to_sparse_semi_structured(pruned()).exp()
