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


@pytest.mark.parametrize("check", checks.DERIVATIVES[:-1], ids=name)
@pytest.mark.parametrize("case", CASES, ids=name)
def test_derivatives(case, check):
    if check is not checks.mapped or case.name not in DIFFERENT_SIZES:
        check(case, case.build)


BY_LENGTHS = ("joined parts", "beginnings", "endings")  # ask values which lengths are the same


def together(cases, size=12):
    """Groups that are compiled as one function, as most of the time is the C compiler's; alone are
    those that have no whole graph, and those that have none beside others."""
    alone = [c for c in cases if c.breaks or c.counts or c.name in BY_LENGTHS]
    others = [case for case in cases if case not in alone]
    groups = [others[i : i + size] for i in range(0, len(others), size)]
    return [pytest.param(group, id=group[0].name) for group in [*groups, *[[c] for c in alone]]]


@pytest.mark.parametrize("group", together(CASES))
def test_compiled(group):
    if len(group) > 1:
        checks.compiled_together(group, [case.build for case in group])
    else:
        checks.compiled(group[0], group[0].build)


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


@pytest.mark.parametrize("group", together(ANY_LENGTHS))
def test_one_program_serves_new_lengths_and_batches(group):
    function = torch.compile(lambda *xs: [case.nested(x) for case, x in zip(group, xs)])
    for lengths in ((2, 4, 1, 3), (3, 4, 2, 9, 6), (6, 2, 7, 3), (2, 3, 11)):
        parts = [case.operands(lengths)[0] for case in group]
        found = function(*[case.build(p) for case, p in zip(group, parts)])
        for case, out, p in zip(group, found, parts, strict=True):
            with checks.named(case.name):
                checks.check(out, case.wanted(p, ()))
    assert len(function.recompiles) <= 1
