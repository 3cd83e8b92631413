"""`reinplace`: the graphs are PyTorch's, and give what the programs give."""

import json

import pytest

import pullback as torch
from pullback.func import functionalize
from pullback.fx.make_fx import make_fx
from pullback.fx.passes.reinplace import reinplace
from pullback.pytree import tree_leaves
from tests.helpers.reinplaced_programs import DATA, programs

EXPECTED = json.loads(DATA.read_text())
PROGRAMS = programs(torch)


@pytest.mark.parametrize("name", EXPECTED)
def test_what_is_written_in_place(name):
    function, shape = PROGRAMS[name]
    args = [] if shape is None else [torch.ones(shape)]
    gm = reinplace(make_fx(functionalize(function))(*args), *args)
    assert gm.code == EXPECTED[name]
    wanted = tree_leaves(function(*[a.clone() for a in args]))
    for a, b in zip(tree_leaves(gm(*args)), wanted):
        assert torch.equal(a, b)


def test_a_view_of_a_new_result_may_be_none_of_other_memory():
    def f(x):
        return (x.clone()[:, :2] + 1).view(-1)  # without gaps, unlike what it is made from

    gm = reinplace(make_fx(f)(torch.ones(2, 3)), torch.ones(2, 3))
    assert torch.equal(gm(torch.ones(2, 3)), f(torch.ones(2, 3)))
