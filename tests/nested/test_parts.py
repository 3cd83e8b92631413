"""Functions of nested tensors are functions of each part, in all modes and both layouts."""

import functools

import pytest

import pullback as torch
from tests.helpers.nested import checks
from tests.helpers.nested.cases import CASES, DIFFERENT_SIZES, FLAGS, JAGGED_ONLY, name


@pytest.mark.parametrize("holes", [False, True], ids=["packed", "holes"])
@pytest.mark.parametrize("case", CASES + FLAGS, ids=name)
def test_values(case, holes):
    checks.values(case, functools.partial(case.build, holes=holes))


@pytest.mark.parametrize("check", checks.DERIVATIVES, ids=name)
@pytest.mark.parametrize("case", CASES, ids=name)
def test_derivatives(case, check):
    if check is not checks.mapped or case.name not in DIFFERENT_SIZES:
        check(case, case.build)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_gradients_with_holes(case):
    checks.gradients(case, functools.partial(case.build, holes=True))


@pytest.mark.parametrize("case", [c for c in CASES + FLAGS if c.name not in JAGGED_ONLY], ids=name)
def test_strided_layout(case):
    checks.values(case, torch.nested.as_nested_tensor)
    for check in checks.DERIVATIVES[:-1] if case in CASES else ():
        check(case, torch.nested.as_nested_tensor)


# (without parts that are shorter than what is asked for, and sizes that the data decides)
ANY_LENGTHS = [c for c in CASES if not c.extra and c.name not in (
    "topk", "masked_select", "padded", "first of each", "last of each")]


@pytest.mark.parametrize("case", ANY_LENGTHS, ids=name)
def test_one_program_serves_new_lengths_and_batches(case):
    function = torch.compile(lambda x: case.nested(x))
    for lengths in ((2, 4, 1, 3), (3, 4, 2, 9, 6), (6, 2, 7, 3), (2, 3, 11)):
        parts, _ = case.operands(lengths)
        checks.check(function(case.build(parts)), case.wanted(parts, ()))
    assert len(function.recompiles) <= 1
