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


# a setting asks for what PyTorch refuses


def strictly(a, b):
    def f(x, y):
        x.mul_(2)
        return x.sum() + y.sum()

    expected = f(a.detach().clone(), b.detach().clone())
    with pb.aot.config.patch(strict_input_aliases=True):
        found = pb.aot.aot_function(f, pb.aot.nop)(a, b)
    return found, expected


def memory(grad: bool = False):
    t = pb.ones(6, requires_grad=grad)
    return t * 1 if grad else t


@pytest.mark.parametrize("make, grad, text", [
    (lambda t: (t[:3], t.detach()[1:4]), True,
     r"input 0 \(x\) and input 1 \(y\) share storage but are not differentiable views of each"),
    (lambda t: (t, t.detach()[1:]), True, "not differentiable views of each other"),
    (lambda t: (t[:3], t.detach()[1:4]), False,
     r"different autograd \._base tensors: input 0 \(x\) and input 1 \(y\) have"),
    (lambda t: (t.detach(), t[1:]), False,
     r"mixed autograd \._base states: input 1 \(y\) have \._base set, while input 0 \(x\) have"),
    (lambda t: (t, t.view(pb.int32)), False, "views with different dtypes"),
])
def test_what_has_no_base_in_common_can_be_refused(make, grad, text):
    t = memory(grad)
    with pytest.raises(AssertionError, match=text):
        strictly(*make(t))
    assert t.detach().tolist() == [1] * 6
    if "dtypes" not in text:
        pb.aot.aot_function(lambda x, y: x.mul_(2) * 1, pb.aot.nop)(*make(t))  # taken otherwise


@pytest.mark.parametrize("make", [
    lambda t: (t[:3], t[1:4]), lambda t: (t, t[1:2]), lambda t: (t[:3], t.detach()[3:]),
])
def test_what_has_a_base_in_common_is_taken(make):
    t = memory(True)
    found, _ = strictly(*make(t))
    assert found.requires_grad
