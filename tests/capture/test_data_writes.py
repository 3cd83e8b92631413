"""Writes through `.data`: the tensor has the values, no version counts them."""

import pytest

import pullback as pb

WAYS = [lambda f: f, lambda f: pb.compile(f, backend="numpy"),
        lambda f: pb.aot.aot_function(f, pb.aot.nop)]


def once(x):
    x.data.add_(1)
    return x * 2


def in_part(x):
    x.data[0] = 5.0
    return x * 2


def both(x):
    x.data.mul_(3)
    x.detach().add_(1)
    return x * 2


def alias(x):
    d = x.data
    d.add_(1)
    d.add_(1)
    return d, x * 2


def replaced(x):
    x.data = x.data + 1
    return x * 2


@pytest.mark.parametrize("wrap", WAYS)
@pytest.mark.parametrize("tracked", [True, False])
@pytest.mark.parametrize(("f", "values", "version"), [
    (once, [1, 2, 3], 0), (in_part, [5, 1, 2], 0), (both, [1, 4, 7], 1), (alias, [2, 3, 4], 0),
    (replaced, [1, 2, 3], 0)])
def test_versions(f, values, version, tracked, wrap):
    compiled = wrap(f)
    for _ in range(2):
        x = pb.arange(3.0).requires_grad_(tracked)
        out = compiled(x)
        assert x.tolist() == values and x._version == version
        if f is alias:
            d, out = out
            assert d._version == 2 and not d.requires_grad
            d.add_(1)
            assert x.tolist() == [v + 1 for v in values] and x._version == 0
        if tracked:
            out.sum().backward()
            assert x.grad.tolist() == [2, 2, 2]
