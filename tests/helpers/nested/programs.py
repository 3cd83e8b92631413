"""How a row of the inventory is run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pullback as torch
from pullback.core.op import registry

from .cases import Case


@dataclass
class Program:
    """A case to be run in all kinds, or the names of those that are; or a check of its own."""

    case: Case | None = None
    like: tuple[str, ...] = ()  # of `cases.py`: `test_parts.py` runs them in all kinds
    check: Callable | None = None
    flags: bool = False  # the results have no derivatives
    layouts: tuple[str, ...] = ("jagged",)


def run(nested: Callable, part: Any = None, **more: Any) -> Program:
    """A case that is run in all kinds; without `part`, parts go through the same function."""
    options = {n: more.pop(n) for n in ("flags", "layouts") if n in more}
    if part is None and "whole" not in more:
        part = lambda p, i, *e: nested(p, *e)
    return Program(Case("", nested, part, **more), **options)


def call(nested: Callable, part: Any, *like: str, **more: Any) -> Program:
    """A call by another name of what cases of `cases.py` do."""
    found = run(nested, part, **more)
    found.like = like
    return found


def flag(nested: Callable, part: Any = None, **more: Any) -> Program:
    """A case whose results have no derivatives."""
    return run(nested, part, flags=True, **more)


def fact(of: Callable, number: int) -> Program:
    """A number that is asked of a nested tensor, as a factor of it: so it is seen in all kinds."""
    return run(lambda x: x * of(x), lambda p, i: p * number)


def known(*like: str, layouts: tuple = ("jagged",)) -> Program:
    """Cases of `cases.py`."""
    return Program(like=like, layouts=layouts)


def check(function: Callable, layouts: tuple = ("jagged",)) -> Program:
    """A check of its own, of all layouts that are named."""
    return Program(check=function, layouts=layouts)


def in_table(name: str) -> Callable:
    """A check that an entry has samples: `tests/ops/test_table.py` runs these in all kinds."""
    def has_samples() -> None:
        assert registry[name].samples is not None

    return has_samples


def ragged(function: Callable, like: str) -> Program:
    """`function(x, dim)` over the ragged dim."""
    return call(lambda x: function(x, 1), lambda p, i: function(p, 0), like)


def all_of(function: Callable, **more: Any) -> Program:
    """A function of all elements of all parts, as a factor of them."""
    return run(lambda x: x * function(x), whole=lambda parts: [
        p * function(torch.cat(list(parts))) for p in parts], **more)


def like(nested: Callable) -> Program:
    """Numbers of the sizes of a tensor, beside something with a derivative."""
    return run(lambda x: x.sin() * (nested(x) + 2))


def written(write: Callable) -> Program:
    """An operator in place, beside what was there before."""
    return run(lambda x: x.sin() + write(x * 2))
