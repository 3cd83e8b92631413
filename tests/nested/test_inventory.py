"""Every row of the inventory about nested tensors is run in all kinds that it asks for.

`tests/masked/test_inventory.py` has those about masked tensors.
"""

import csv
from pathlib import Path

import pytest

import pullback as torch
from tests.helpers.nested import checks
from tests.helpers.nested.cases import CASES, DIFFERENT_SIZES, JAGGED_ONLY
from tests.helpers.nested.inventory import CARE, FORMULAS, PROGRAMS

ROWS = Path(__file__).parents[1] / "data" / "sparse_nested.tsv"
KINDS = ("forward", "backward", "second", "jvp", "vmap", "compile")
NAMED = {case.name: case for case in CASES}


def is_asked(entry, group, layouts):
    """Is a row about nested tensors, or about masks of dense ones?"""
    if group == "hand-written formula":
        return "nested" in entry or entry == "masked_fill_backward"
    if group.startswith("table: dense entry with"):
        return "masked" in entry or "jagged" in layouts
    return group == "jagged operator" or group.startswith("table: nested")


def rows():
    with open(ROWS, encoding="utf-8") as file:
        found = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [r for r in found if is_asked(r["entry"], r["group"], r["layouts"])]


def programs(entry):
    given = PROGRAMS[entry]
    return given if isinstance(given, list) else [given]


def test_every_row_has_programs():
    found = rows()
    assert len(found) == 136 + 11 + 13 + len(FORMULAS) + len(CARE)
    assert {row["entry"] for row in found} == set(PROGRAMS)
    for row in found:
        kinds = [row[k] for k in KINDS]
        assert kinds == ["yes"] * 6 or row["entry"] in FORMULAS and kinds[0] == "formula"
        run = {n for p in programs(row["entry"]) for n in p.layouts}
        asked = {n.removesuffix("-nested") for n in row["layouts"].split()}
        assert asked & {"jagged", "strided"} <= run or "masked" in row["entry"], row["entry"]


def test_cases_that_rows_name_are_run():
    for entry in PROGRAMS:
        for program in programs(entry):
            for name in program.like:
                assert name in NAMED and NAMED[name].name not in (
                    JAGGED_ONLY if "strided" in program.layouts else ()), (entry, name)
                assert name not in DIFFERENT_SIZES or name == "masked_select"


def listed():
    for entry in PROGRAMS:
        for k, program in enumerate(programs(entry)):
            if entry not in FORMULAS or program.case is not None:
                yield pytest.param(program, id=entry + f" {k}" * (k > 0))


def kinds(program):
    """What is checked of a case: other cases have the derivatives of some."""
    if program.flags:
        return checks.FLAGS
    some = [*checks.DERIVATIVES[:-1], checks.mapped_parts]  # `test_compiled` has the last
    return [checks.gradients] if program.like else some


def built(program, layout):
    return torch.nested.as_nested_tensor if layout == "strided" else program.case.build


def compiled(size=12):
    """Groups of those that are compiled: (name, case, how its tensor is made)."""
    found = [(param.id, program.case, built(program, layout)) for param in listed()
             for program in param.values for layout in program.layouts
             if program.case is not None and not program.flags and not program.like]
    alone = [[one] for one in found if one[1].breaks or one[1].counts]
    others = [one for one in found if [one] not in alone]
    groups = [others[i : i + size] for i in range(0, len(others), size)]
    return [pytest.param(group, id=group[0][0]) for group in groups + alone]


@pytest.mark.parametrize("group", compiled())
def test_compiled(group):
    """As one function, as most of the time is the C compiler's; each alone where that has no whole
    graph."""
    try:
        assert len(group) > 1
        checks.compiled_together(*zip(*[one[1:] for one in group]))
    except Exception:
        for name, case, build in group:
            with checks.named(name):
                checks.compiled(case, build)


@pytest.mark.parametrize("program", list(listed()))
def test_programs(program):
    if program.check is not None:
        program.check()
    for layout in program.layouts:
        if program.case is not None:
            for check in (checks.values, *kinds(program)):
                check(program.case, built(program, layout))
        elif layout == "strided":  # all other kinds are in `test_parts.py`
            for name in program.like:
                checks.compiled(NAMED[name], torch.nested.as_nested_tensor)
