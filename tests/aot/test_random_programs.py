"""Random programs of views, writes and aliases: eager against compiled, step by step."""

import pytest
from oracle import check
from programs import make_program


@pytest.mark.parametrize("seed", range(0, 100, 4))
def test_program(seed):
    for number in range(seed, seed + 4):
        function, start, text = make_program(number)
        try:
            check(function, start, ways=("nop",), strides=False)
        except AssertionError as error:
            raise AssertionError(f"{text}\n{error}") from error


@pytest.mark.parametrize("seed", range(600, 620, 4))
def test_program_compiled(seed):
    for number in range(seed, seed + 4):
        function, start, _ = make_program(number)
        check(function, start, ways=("numpy",), strides=False, writes=(True,))
