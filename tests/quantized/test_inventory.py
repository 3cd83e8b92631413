"""Every row of the inventory about quantised tensors and vendors' names is run in all its kinds."""

import csv
from pathlib import Path

import pytest

import pullback as torch
from tests.helpers.quantized.inventory import PROGRAMS
from tests.helpers.quantized.programs import KINDS

pytestmark = pytest.mark.filterwarnings("ignore:Please use quant_min")
DATA = Path(__file__).parents[1] / "data" / "sparse_nested.tsv"
NOTHING = ("-", "none")  # to differentiate, or said elsewhere


def rows():
    with open(DATA, encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row["group"] in PROGRAMS:
                yield row


def kinds(row):
    """The columns in which a row expects something."""
    return [kind for kind in KINDS if row[kind] not in NOTHING]


def test_every_row_has_a_program():
    listed = {group: set() for group in PROGRAMS}
    for row in rows():
        program = PROGRAMS[row["group"]].get(row["entry"])
        assert program is not None, row["entry"]
        assert {*kinds(row)} <= {*program.kinds}, row["entry"]
        listed[row["group"]].add(row["entry"])
    assert listed == {group: set(programs) for group, programs in PROGRAMS.items()}


def cases():
    for group, programs in PROGRAMS.items():
        for entry, program in programs.items():
            for kind in program.kinds:
                yield pytest.param(program, kind, id=f"{group}-{entry}-{kind}")


@pytest.mark.parametrize("program, kind", list(cases()))
def test_rows(program, kind):
    torch.manual_seed(0)
    program.run(kind)
