"""Inputs that share memory without being views of one tensor, and one of them is written.

PyTorch's compiler refuses these: inputs that are not differentiable views of each other, inputs
whose bases differ, some with a base and some without. Eager code takes them, so this does.
"""

import pytest

import pullback as pb
from tests.helpers.oracle import check


def not_views():
    a = pb.ones(6, dtype=pb.float64)
    return (), (a, a.detach())


def other_bases():
    memory = pb.arange(6.0, dtype=pb.float64)
    return (), (memory.view(2, 3), memory.detach().view(3, 2))


def one_without_base():
    memory = pb.arange(6.0, dtype=pb.float64)
    return (), (memory.detach(), memory.view(6))


def tracked():
    leaf = pb.arange(6.0, dtype=pb.float64).requires_grad_()
    inner = leaf * 2
    return (leaf,), (inner.view(6), inner.detach())


def parts():
    memory = pb.arange(8.0, dtype=pb.float64)
    return (), (memory[:6], memory.detach()[2:], memory.detach()[7:])


def first(a, b, *rest):
    a.mul_(2)
    return a.sum() + b.sum(), b * 3


def second(a, b, *rest):
    out = a * 2
    b.add_(1)
    return out, a + 1, b


def both(a, b, *rest):
    a.add_(1)
    b.mul_(3)
    return a * 1, b


@pytest.mark.parametrize("way", ["nop", "boxed", "numpy"])
@pytest.mark.parametrize("f", [first, second, both])
@pytest.mark.parametrize("start", [not_views, other_bases, one_without_base, tracked, parts])
def test_as_eager(f, start, way):
    check(f, start, ways=(way,), orders=(1,))
