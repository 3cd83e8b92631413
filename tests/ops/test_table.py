"""Every check of the test kit on every sample of every table entry: adding an operator adds its
tests.
"""

import pytest

import pullback  # noqa: F401  (loads the table)
from pullback.array import dtype as dt
from pullback.core.op import registry
from pullback.testing import kit, samples


def _parameters():
    for name, op in sorted(registry.items()):
        if op.samples is None:
            continue
        for dtype in [dt.float64] + ([dt.complex128] if op.complex else []):
            yield pytest.param(op, dtype, id=f"{name}-{dtype.name}")


@pytest.mark.parametrize("op, dtype", list(_parameters()))
def test_operator(op, dtype):
    """All checks, those behind one that fails included: one test each would take longer than they
    do."""
    failed, cause = [], None
    for check, run in kit.CHECKS.items():
        for case in samples.cases(op, dtype):
            try:
                run(op, case, dtype)
            except Exception as error:
                name = "" if isinstance(error, kit.CheckFailed) else f"{type(error).__name__}: "
                failed.append(f"{case.label} {dtype.name} {check}: {name}{error}")
                cause = error if name else cause
                break
    if failed:
        raise AssertionError("\n".join(failed)) from cause


def test_every_entry_has_samples():
    ours = [op for op in registry.values() if op.__module__.startswith("pullback.")]
    missing = [op.full_name for op in ours if op.samples is None and not _exempt(op)]
    assert not missing


def _exempt(op) -> bool:
    """Random and creation operators are tested against recorded streams and shapes instead, those
    without results by what they do, and those of nested tensors and the like with these."""
    named = ("empty_like", "polygamma_", "chalf")
    nothing = op.schema.endswith("-> ()")
    return op.kind in ("random", "creation") or op.full_name in named or nothing or op.of_parts
