"""Graphs print as PyTorch's: programs in four modes, functions of all families, every entry.

`record_printed.py` has written PyTorch's text where it was equal; it shows the other differences.
"""

from pathlib import Path

import pytest

import pullback
from pullback.aot import aot_function, make_boxed_compiler
from pullback.array import dtype as dt
from pullback.core.op import registry
from pullback.fx.make_fx import make_fx
from pullback.testing import samples
from tests.helpers import aot_families, printed_programs, texts
from tests.helpers.printed_graphs import of_entry, of_family, of_program

RECORDED = {topic: texts.read(Path(__file__).parents[1] / f"data/printed/{topic}.txt")
            for topic in ("families", "programs", "entries")}
FAMILIES = aot_families.programs(pullback)
PROGRAMS = printed_programs.programs(pullback)
FILES: dict[str, list[str]] = {}
for _name in RECORDED["entries"]:
    FILES.setdefault(registry[_name].__module__.rpartition(".")[2], []).append(_name)


@pytest.mark.parametrize("name", RECORDED["families"])
def test_families(name):
    found = of_family(pullback, aot_function, make_boxed_compiler, *FAMILIES[name])
    texts.check(name, found, RECORDED["families"][name])


@pytest.mark.parametrize("name", RECORDED["programs"])
def test_programs(name):
    program, mode = name.split()
    texts.check(name, of_program(pullback, make_fx, *PROGRAMS[program], mode),
                RECORDED["programs"][name])


@pytest.mark.parametrize("file", FILES)
def test_entries(file):
    for name in FILES[file]:
        case = samples.cases(registry[name], dt.float32)[0]
        found = of_entry(pullback, make_fx, aot_function, make_boxed_compiler, name, case.args,
                         case.kwargs)
        texts.check(name, found, RECORDED["entries"][name])
