"""Programs with inputs of many kinds (`text_programs.py`): all that users see is as in eager."""

import pytest

from tests.helpers.oracle import check
from tests.helpers.text_programs import make_text_program


def run(numbers, way: str) -> None:
    for number in numbers:
        function, start, text = make_text_program(number)
        try:
            check(function, start, ways=(way,), writes=(False,))
        except AssertionError as error:
            raise AssertionError(f"{text}\n{error}") from error


@pytest.mark.parametrize("first", range(0, 48, 8))
def test_compiled(first):
    run(range(first, first + 8), "numpy")


@pytest.mark.parametrize("first", range(56, 104, 8))
def test_literal_graphs(first):
    run(range(first, first + 8), "nop")
