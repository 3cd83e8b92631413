"""Every row of the inventory about sparse layouts runs in the layouts and kinds that it names."""

import csv
import pathlib

import pytest

import pullback as torch
from pullback import func
from tests.helpers import sparse_cases as cases
from tests.helpers.sparse_inventory import MAKES, PROGRAMS, strided

FILE = pathlib.Path(__file__).parent.parent / "data" / "sparse_nested.tsv"
ROWS = list(csv.DictReader(FILE.read_text().splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))
SOLVES = ("spsolve", "triangular_solve")  # see `test_solve.py`
SPARSE = {"table: sparse", "operator by layout (measured)", "kernel with a sparse registration",
          "table: dense entry with sparse, masked or nested care"}
# formulas that are about sparse tensors, whatever their names
FORMULAS = {"values_backward", "log1p_backward", "_to_copy_backward", "mm_mat1_backward",
            "mm_mat2_backward", "strides_or_error"}


def ours(row):
    """Is a row about sparse layouts, and no system of equations?"""
    entry, group = row["entry"], row["group"]
    if group == "hand-written formula":
        return "sparse" in entry or entry in FORMULAS
    return group in SPARSE and entry not in SOLVES and bool(layouts(row))


def layouts(row):
    named = [n for n in row["layouts"].split() if n in MAKES]
    if row["group"] == "hand-written formula":
        return ["coo", "csr", "csc", "bsr", "bsc"]
    return named if set(named) - {"strided"} or row["group"] == "table: sparse" else []


def test_every_row_has_a_program():
    wanted = {row["entry"] for row in ROWS if ours(row)}
    assert len(ROWS) == 687 and wanted == {*PROGRAMS}, wanted ^ {*PROGRAMS}


def made(row, layout):
    """The programs of a row in a layout."""
    found = PROGRAMS[row["entry"]]
    found = found(layout) if callable(found) else found
    return found if isinstance(found, list) else [found]


def mapped(program, row, v):
    """vmap over values, where random numbers may be drawn."""
    several, nones = torch.stack([v, v * 2, v - 3]), (None,) * len(row.operands)
    found = func.vmap(row.ours, (0, *nones), randomness=program.randomness)(several, *row.operands)
    for one, out in zip(several, found):
        cases.close(out, row.theirs(one, *row.operands))


def kinds(row, program):
    """The checks that a row asks for."""
    yield cases.forward
    formula = row["group"] == "hand-written formula"
    for column, checks in (("backward", (cases.backward,)), ("second", (cases.second,)),
                           ("jvp", (cases.jvp,))):
        if formula or row[column] == "yes":
            yield from checks
    if formula or row["vmap"] == "yes":
        yield lambda r, v: mapped(program, r, v)
        yield cases.vmap_dense
    if row["compile"] == "yes":
        yield lambda r, v: cases.captured(r, v, row["backward"] == "yes",
                                          not program.traced and r.make is not strided)


def refused(program, row, v):
    with pytest.raises((RuntimeError, NotImplementedError), match=program.said):
        row.ours(v, *row.operands)


@pytest.mark.parametrize("row", list(filter(ours, ROWS)),
                         ids=lambda r: f"{r['entry']}-{r['group'][:8]}")
def test_rows(row):
    for layout in layouts(row):
        for program in made(row, layout):
            for make in MAKES[layout]:
                case = cases.Row(program.function, make, program.operands, program.dense)
                if layout in program.refused:
                    refused(program, case, cases.values())
                    continue
                for check in kinds(row, program):
                    check(case, cases.values())
