"""Why a compiled function was captured again, or made native again, in words.

The reasons are kept (`compiler.recompiles()`, and `recompiles` of each compiled function) and
printed with `_logging.set_logs(recompiles=True)`, or `recompiles` in PULLBACK_LOGS or TORCH_LOGS.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from .. import errors
from ..core.handle import Tensor
from ..pytree import tree_flatten
from .dynamic_dims import names_of

_printing = False
history: list[str] = []  # of all functions, the last ones
KEPT = 256


def set_logs(*, recompiles: bool = False, **others: Any) -> None:
    """Choose what is printed while functions are compiled; other choices have nothing to print."""
    global _printing
    _printing = bool(recompiles)


def wanted() -> bool:
    """Are the reasons to be printed?"""
    names = f"{os.environ.get('PULLBACK_LOGS', '')},{os.environ.get('TORCH_LOGS', '')}"
    return _printing or "recompiles" in names.split(",") or "+recompiles" in names.split(",")


def why_again(compiled: Any, key: tuple, family: Any, tensors: list[Tensor], args: tuple,
              kwargs: dict) -> str:
    """The reasons for which none of the programs fits a call."""
    flat = tree_flatten((args, kwargs))[0]
    all_names = names_of(compiled.function, args, kwargs)
    names = [all_names[k] for k, v in enumerate(flat) if isinstance(v, Tensor)]
    numbers = compiled.numbers(flat)
    shapes = [t._payload.shape for t in tensors] + [(n,) for n in numbers.values()]
    reasons = []
    for symbolic in family.programs:
        found = symbolic.check.bind(shapes)
        if isinstance(found, str):
            reasons.append(found)
        else:
            reasons.append(_outside(compiled) if symbolic.keeps_limit(found) else
                           "what it saves would be above the limit of memory for these sizes")
    if not reasons:
        sizes = [_sizes(names, before, shapes) or _numbers(
            [all_names[k] for k in numbers], given, list(numbers.values()))
            for before, given in family.captured]
        reasons = [s for s in sizes if s] or [_difference(compiled, key, all_names)]
    title = getattr(compiled.function, "__name__", type(compiled.function).__name__)
    text = f"{title} is compiled again ({errors.user_line(3)}): " + "; ".join(
        dict.fromkeys(reasons))
    note(text)
    return text


def note(text: str) -> None:
    """Keep a reason, and print it if asked for."""
    history.append(text)
    del history[:-KEPT]
    if wanted():
        print(f"[recompiles] {text}", file=sys.stderr)


def _sizes(names: list[str], before: list, now: list) -> str:
    for name, a, b in zip(names, before, now):
        for d, (m, n) in enumerate(zip(a, b)):
            if m != n:
                return f"{name}.size({d}) is {n}, the program is for {m}"
    return ""


def _shown(key: tuple) -> str:
    """An argument that is no tensor, by its part of a key (`key_of` in `compiled.py`)."""
    return str(key[-1]) if key[0] is float else repr(key[-1])


def _numbers(names: list[str], before: list, now: list) -> str:
    for name, m, n in zip(names, before, now):
        if m != n:
            return f"{name} is {n!r}, the program is for {m!r}"
    return ""


def _outside(compiled: Any) -> str:
    last = next(reversed(compiled.programs.values()), None)
    guards = last.joint.guards.python if last else ()
    named = [guard.change() for guard in guards if hasattr(guard, "change")]
    return next(filter(None, named), "what the function finds outside of its arguments has changed")


def _lying(facts: tuple) -> str:
    _, dtype, _, steps = facts
    if steps is True:
        return "the strides of rows"
    return f"strides {tuple([n // dtype.itemsize for n in steps])}"


def _difference(compiled: Any, key: tuple, names: list[str]) -> str:
    """The first thing in which the arguments differ from those of the last program."""
    last = next(reversed(compiled.programs))[0]
    titles = ["the structure of the arguments", "grad mode", "the default dtype", "autocast",
              "the training mode of a module"]
    for title, a, b in zip(titles, last, key):
        if a != b:
            return f"{title} is another"
    if len(last) != len(key):
        return "there are more or fewer arguments"
    for name, a, b in zip(names, last[5:-1], key[5:-1]):
        if a == b:
            continue
        if len(b) != 4 or len(a) != 4:
            return f"{name} is {_shown(b)}, the program is for {_shown(a)}"
        facts = ("shape", "dtype", "requires_grad")
        if len(a[0]) != len(b[0]):
            return f"{name} has {len(b[0])} dims, the program is for {len(a[0])}"
        return next(
            (f"{name} has {fact} {y}, the program is for {x}"
             for fact, x, y in zip(facts, a, b) if x != y),
            f"{name} has {_lying(b)}, the program is for {_lying(a)}")
    return _outside(compiled) if last == key else "other arguments are the same object"
