"""Tensors that a compiled function finds outside, or makes with NumPy: call after call as eager."""

import numpy as np
import pytest

import pullback as torch
from pullback import errors
from pullback.compile.errors import CompileWarning


def writes_base():
    x = torch.zeros(2, 3)
    v = x[0]

    def f(y):
        x.add_(y)
        return v * 2

    return f, (x, v)


def writes_view():
    x = torch.zeros(2, 3)
    v = x.view(6)

    def f(y):
        v[1:3].add_(y[:2])
        x[0].mul_(2)
        return v.sum() + x.sum()

    return f, (x, v)


def detached_alias_met_after_the_write():
    x = torch.zeros(2, 3)
    d = x.detach()

    def f(y):
        x.add_(y)
        return d * 1

    return f, (x, d)


def array_made_inside():
    def f(y):
        t = torch.from_numpy(np.zeros(3))
        t.add_(y)
        return t * 1

    return f, ()


def array_made_inside_and_returned():
    def f(y):
        t = torch.from_numpy(np.arange(6.0).reshape(2, 3))
        t.add_(y)
        return t, t[0]

    return f, ()


def array_from_outside():
    array = np.zeros(6)

    def f(y):
        t = torch.from_numpy(array.reshape(2, 3))
        t.add_(y)
        return t * 2

    return f, (torch.from_numpy(array),)


def tensor_kept_outside():
    kept = []

    def f(y):
        t = torch.from_numpy(np.zeros(3))
        if not kept:
            kept.append(t)
        kept[0].add_(y)
        return kept[0] * 1

    return f, ()


@pytest.mark.parametrize("case", [
    writes_base, writes_view, detached_alias_met_after_the_write, array_made_inside,
    array_made_inside_and_returned, array_from_outside, tensor_kept_outside,
])
def test_call_after_call(case):
    seen = []
    for compiled in (False, True):
        function, held = case()
        function = torch.compile(function) if compiled else function
        rows = []
        for i in range(3):
            out = function(torch.full((3,), i + 1.0))
            outs = out if isinstance(out, tuple) else (out,)
            rows.append([t.tolist() for t in (*outs, *held)])
            outs[0].mul_(10)  # what was returned is the caller's
        seen.append(rows)
    assert seen[0] == seen[1]


def test_pieces_are_tuples():
    x = torch.arange(8.0).reshape(2, 4)
    for out in (torch.split(x, 1), x.split([1, 3], 1), x.chunk(2), x.unbind(), x.tensor_split(2),
                torch.hsplit(x, 2), torch.unbind_copy(x), torch._foreach_add([x], 1)):
        assert type(out) is tuple
    f = torch.compile(lambda x: x.split(1))
    assert type(f(x)) is tuple


def test_data_of_another_shape_for_a_leaf_is_as_in_eager_mode():
    def f(x):
        x.data = torch.ones(5)
        return (x * 2).sum()

    x = torch.randn(3, requires_grad=True)
    with pytest.warns(CompileWarning, match="replaces the data of a leaf"):
        torch.compile(f)(x).backward()
    assert x.grad.tolist() == [2.0] * 5
    with pytest.raises(errors.DataDependentError, match="outside of the function"):
        torch.compile(f, fullgraph=True)(torch.randn(3, requires_grad=True))
