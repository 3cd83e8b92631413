"""Writes through views in graphs of `aot_function`: values and gradients of eager.

The history of such a write is a node of the operator that made it, taken together with the view.
Where the operator's own node is not all of it, or something else wrote the view, it is a scatter.
"""

import numpy as np
import pytest

import pullback as torch
from pullback.aot import aot_function, nop
from pullback.cut.partition import default_partition, min_cut_rematerialization_partition


def compared(x, y):
    v = x * 2
    v[:2].gt_(0)
    return v


def cast_back(x, y):
    v = x * 2
    v[:].mul_(y.double())
    return v


def of_untracked(x, y):
    v = torch.ones(4)
    v[1:3].mul_(x[:2])
    return v * y


def of_an_untracked_argument(x, y):
    w = y.detach().clone()
    w.unfold(0, 2, 2).mul_(x.view(2, 2))
    w.view(2, 2).t().copy_(x.view(2, 2) * w.view(2, 2).clone())
    return w


def composite(x, y):
    v = x * 2
    v[1:].true_divide_(y[1:])
    v[:3].addcmul_(y[:3], x[:3])
    v[:2].clip_(1.5, 3.0)
    return v


def by_another_transform(x, y):
    v = x * 2
    torch.func.functionalize(lambda part, y: part.copy_(y * y))(v[:2], y[:2])
    return v * x


def by_itself(x, y):
    v = x * 2
    v[1:].mul_(v[1:].clone())
    v[:3].copy_(v[:3])
    return v


@pytest.mark.parametrize("cut", [default_partition, min_cut_rematerialization_partition])
@pytest.mark.parametrize("f", [compared, cast_back, of_untracked, of_an_untracked_argument,
                               composite, by_another_transform, by_itself])
def test_gradients_of_writes_through_views(f, cut):
    def run(function):
        x = torch.tensor([1.0, -2.0, 3.0, 0.5], requires_grad=True)
        y = torch.tensor([2.0, 3.0, 0.25, 5.0], requires_grad=True)
        out = function(x, y)
        grads = torch.autograd.grad(
            out, (x, y), torch.tensor([1.0, 10.0, 100.0, 1000.0]), allow_unused=True)
        return [out.detach().numpy(), *[None if g is None else g.numpy() for g in grads]]

    for found, wanted in zip(run(aot_function(f, nop, partition_fn=cut)), run(f), strict=True):
        if wanted is None:
            assert found is None or not found.any()
        else:
            np.testing.assert_allclose(found, wanted, rtol=1e-6)
