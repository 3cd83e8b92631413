"""Captured graphs print to PyTorch's letter."""

import json
from pathlib import Path

import pytest

import pullback
from pullback.fx import symbolic_trace
from pullback.fx.make_fx import make_fx
from tests.helpers import symbolic_programs
from tests.helpers.captured_programs import programs

SYMBOLIC = json.loads((Path(__file__).parents[1] / "data/symbolic_traces.json").read_text())
RECORDED = json.loads((Path(__file__).parents[1] / "data/captures.json").read_text())


@pytest.mark.parametrize("name", RECORDED)
def test_prints_as_recorded(name):
    program, mode = name.split()
    function, args = programs(pullback)[program]
    assert make_fx(function, tracing_mode=mode)(*args).code.strip() == RECORDED[name]


@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_traces_print_as_recorded(name):
    function, concrete = symbolic_programs.programs(pullback)[name]
    assert symbolic_trace(function, concrete).code.strip() == SYMBOLIC[name]


def test_specialized_arguments_are_checked():
    traced = symbolic_trace(lambda x, n, o: x * n, {"n": 3, "o": None})
    assert traced(pullback.tensor(2), 3, None) == 6
    for given in ((4, None), (3, 1)):
        with pytest.raises(AssertionError, match="has been specialized"):
            traced(pullback.tensor(2), *given)
