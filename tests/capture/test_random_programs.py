"""Random programs of views, writes and aliases: eager against compiled, step by step."""

import pytest

from tests.helpers.oracle import check
from tests.helpers.random_programs import make_program


@pytest.mark.parametrize("seed", range(0, 100, 4))
def test_program(seed):
    for number in range(seed, seed + 4):
        function, start, text = make_program(number)
        try:
            check(function, start, ways=("nop",))
        except AssertionError as error:
            raise AssertionError(f"{text}\n{error}") from error


@pytest.mark.parametrize("seed", range(600, 620, 4))
def test_program_compiled(seed):
    for number in range(seed, seed + 4):
        function, start, _ = make_program(number)
        check(function, start, ways=("numpy",), writes=(True,))


@pytest.mark.parametrize("seed", range(700, 708, 2))
def test_program_known_to_the_disk(seed, tmp_path, monkeypatch):
    """The second compilation takes its parts from the disk, and does the same."""
    from pullback.compile import cache

    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "_folder", None)
    for number in range(seed, seed + 2):
        function, start, _ = make_program(number)
        misses = []
        for _ in range(2):
            check(function, start, ways=("native",), writes=(True,), orders=(1,))
            misses.append(cache.info()["misses"])
        assert misses[0] == misses[1]
