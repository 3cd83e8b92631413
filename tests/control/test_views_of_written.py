"""Views of a tensor that was written, as operands and closures of captured control flow."""

import pytest

import pullback as torch
from pullback._higher_order_ops import map as map_
from pullback._higher_order_ops import scan
from pullback.capture.entry import aot_function


def carried(x):
    x.mul_(2)
    return scan(lambda c, row: (c * 0.5 + row, row.exp()), x[0], x)[0]


def branches(x):
    row = x[0]
    x.mul_(2)
    return torch.cond(x.sum() > 0, lambda: row.sin(), lambda: row * 2, ())


def mapped(x):
    row = x[0]
    x.mul_(2)
    return map_(lambda each, k: each * k, x, row)


@pytest.mark.parametrize("program", [carried, branches, mapped])
def test_views_follow_a_write_outside_of_the_body(program):
    x = torch.arange(8.0).reshape(2, 2, 2)
    expected, after = program(x), x
    for way in (lambda f: aot_function(f, lambda graph, _: graph),
                lambda f: torch.compile(f, backend="numpy")):
        x = torch.arange(8.0).reshape(2, 2, 2)
        assert torch.allclose(way(program)(x), expected)
        assert torch.equal(x, after)
