"""A list of passes that each take a module and return it: `PassManager`.

The one of `infra.py` has passes that say whether they changed something.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .infra import Passes, this_before_that_pass_constraint


def these_before_those_pass_constraint(these: Callable, those: Callable) -> Callable:
    """A rule that one pass, however it is wrapped, comes before another."""
    return lambda a, b: not (
        a.__name__ == those.__name__ and b.__name__ == these.__name__)


def inplace_wrapper(fn: Callable) -> Callable:
    """A function that changes a module, as one that returns it."""

    @functools.wraps(fn)
    def wrapped(gm: Any) -> Any:
        fn(gm)
        return gm

    return wrapped


def log_hook(fn: Callable, level: int = 20) -> Callable:
    """A pass whose result is logged."""

    @functools.wraps(fn)
    def wrapped(gm: Any) -> Any:
        import logging

        found = fn(gm)
        logging.getLogger(__name__).log(level, "Ran pass %s\t Return value: %s", fn, found)
        return found

    return wrapped


def loop_pass(base_pass: Callable, n_iter: int | None = None,
              predicate: Callable | None = None) -> Callable:
    """A pass several times: `n_iter` times, or while `predicate` of the module is true."""
    if (n_iter is None) is (predicate is None):
        raise AssertionError("loop_pass: give exactly one of n_iter and predicate")

    @functools.wraps(base_pass)
    def wrapped(source: Any) -> Any:
        if n_iter is not None:
            for _ in range(n_iter):
                source = base_pass(source)
            return source
        while predicate(source):  # type: ignore[misc]
            source = base_pass(source)
        return source

    return wrapped


class PassManager(Passes):
    """Runs passes in order, after it has checked that the order is allowed."""

    def __init__(self, passes: list[Callable] | None = None,
                 constraints: list[Callable] | None = None) -> None:
        self.passes, self.constraints = list(passes or ()), list(constraints or ())

    def remove_pass(self, _passes: list[str]) -> None:
        """Take away the passes of these names."""
        self.passes = [p for p in self.passes if getattr(p, "__name__", "") not in _passes]
        self._validated = False

    def replace_pass(self, _target: Callable, _replacement: Callable) -> None:
        """Put a pass in the place of another one."""
        self.passes = [_replacement if p.__name__ == _target.__name__ else p for p in self.passes]
        self._validated = False

    def validate(self) -> None:
        """Refuse an order that a constraint does not allow."""
        if self._validated:
            return
        for constraint in self.constraints:
            for i, first in enumerate(self.passes):
                for second in self.passes[i + 1:]:
                    if not constraint(first, second):
                        raise RuntimeError(
                            f"pass schedule constraint violated. Expected {first} before {second} "
                            f"but found {second} before it")
        self._validated = True

    def __call__(self, source: Any) -> Any:
        self.validate()
        for one in self.passes:
            source = one(source)
        return source


__all__ = ["PassManager", "inplace_wrapper", "log_hook", "loop_pass",
           "these_before_those_pass_constraint", "this_before_that_pass_constraint"]
