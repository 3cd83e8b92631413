"""`draft_export`: a program at any price, with a report of what it relies on and should not.

The capture computes with the data of the arguments beside (`array/reals.py`).  Questions that only
data can answer are answered by these, and checked in every call of the program; an operator whose
fake is missing or wrong gets one from its results; dims that promise too much are `Dim.AUTO`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from .. import errors
from ..array import reals
from ..cut.settings import config
from ..nn.module import Module
from ..pytree import tree_map
from ..random_api import fork_rng
from ..symbolic.env import BY_DATA
from .dynamic_shapes import found_out
from .program import ExportedProgram
from .shapes_collection import AdditionalInputs, ShapesCollection
from .trace import export


class FailureType(IntEnum):
    """What a draft may have that a program must not."""

    MISSING_FAKE_KERNEL = 1
    DATA_DEPENDENT_ERROR = 2
    GUARD_ADDED = 3
    MISMATCHED_FAKE_KERNEL = 4

    def __str__(self) -> str:
        return self.name


_TEXTS = {  # what happened, and what to do about it
    FailureType.MISSING_FAKE_KERNEL: (
        "{op} has no fake: the shapes of its results are those that its data had",
        "register one with library.register_fake"),
    FailureType.DATA_DEPENDENT_ERROR: (
        "{expr} depends on data and was decided by the example ({where}), {occurrences} times",
        "say what holds with torch._check(condition), or decide with torch.cond"),
    FailureType.GUARD_ADDED: (
        "the program is for {expr} only, decided at {where}",
        "export with dynamic_shapes={new_dynamic_shapes}"),
    FailureType.MISMATCHED_FAKE_KERNEL: (
        "the fake of {op} is not as its results are: {reason}", "correct the fake"),
}


@dataclass
class FailureReport:
    """One of them."""

    failure_type: FailureType
    data: dict[str, Any]
    xfail: bool = False  # expected

    def __str__(self) -> str:
        what, cure = _TEXTS[self.failure_type]
        return errors.text(f"{self.failure_type}: {what.format(**self.data)}",
                           cure=cure.format(**self.data))


@dataclass
class DraftExportReport:
    """All that is wrong with a draft."""

    failures: list[FailureReport] = field(default_factory=list)

    def successful(self) -> bool:
        """Is it as good as a program of `export`?"""
        return all(f.xfail for f in self.failures)

    def __str__(self) -> str:
        if self.successful():
            return "No issues were found: use torch.export.export()"
        listed = "\n".join(f"{i}. {f}" for i, f in enumerate(self.failures, 1))
        return f"{len(self.failures)} issue(s) were found during export:\n{listed}"


def draft_export(
    mod: Module,
    args: tuple,
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    preserve_module_call_signature: tuple[str, ...] = (),
    strict: bool = False,
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """`export`, but for modules that it refuses; `_report` of the program says what to improve."""
    if isinstance(dynamic_shapes, (AdditionalInputs, ShapesCollection)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)

    def made(shapes: Any) -> ExportedProgram:
        return export(mod, args, kwargs, dynamic_shapes=shapes, strict=strict,
                      preserve_module_call_signature=preserve_module_call_signature)

    shapes = None
    with config.patch(fake_tensor_propagate_real_tensors=True), fork_rng(), (
            reals.mending()) as defects:
        try:
            program = made(dynamic_shapes)
        except errors.ConstraintViolationError:
            shapes = tree_map(found_out, dynamic_shapes)
            program = made(shapes)
    program._report = DraftExportReport(
        [_defective(d) for d in defects] + _relied_on(program, shapes))
    if not program._report.successful():
        logging.getLogger(__name__).warning("%s", program._report)
    return program


def _defective(defect: reals.Defect) -> FailureReport:
    missing = defect.reason is None
    kind = FailureType.MISSING_FAKE_KERNEL if missing else FailureType.MISMATCHED_FAKE_KERNEL
    return FailureReport(kind, defect._asdict())


def _relied_on(program: ExportedProgram, shapes: Any) -> list[FailureReport]:
    """What was decided by data; and by sizes, if their dims were to be `shapes` instead.  Each
    line of the user's counts once."""
    found: dict[tuple, FailureReport] = {}
    for guard in () if program.env is None else program.env.guards:
        if guard.reason == BY_DATA:
            kind = FailureType.DATA_DEPENDENT_ERROR
        elif shapes is None or guard.assumed:
            continue
        else:
            kind = FailureType.GUARD_ADDED
        facts = {"expr": str(guard), "where": guard.where, "occurrences": 0,
                 "new_dynamic_shapes": shapes}
        report = found.setdefault((kind, guard.where), FailureReport(kind, facts))
        report.data["occurrences"] += 1
    return list(found.values())
