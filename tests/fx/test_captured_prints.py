"""Captured graphs print to PyTorch's letter."""

import json
from pathlib import Path

import pytest
from captured_programs import programs

import pullback
from pullback.fx.make_fx import make_fx

RECORDED = json.loads((Path(__file__).parents[1] / "data/captures.json").read_text())


@pytest.mark.parametrize("name", RECORDED)
def test_prints_as_recorded(name):
    program, mode = name.split()
    function, args = programs(pullback)[program]
    assert make_fx(function, tracing_mode=mode)(*args).code.strip() == RECORDED[name]
