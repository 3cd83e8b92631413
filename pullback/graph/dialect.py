"""Dialects: which operators, formulas and arguments a recorded graph shows.

The table has one way to say what a function did, and `Dialect` is that.  Another library may have
one operator where the table has several or the other way round, and may write the same derivative
otherwise; its dialect is a subclass that says so.  The trace of a capture holds one, and everything
that differs is asked of it here.  Eager execution never meets one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..facade import for_torch

if TYPE_CHECKING:
    from ..capture.capture import Capture
    from ..core.formula import Rule
    from ..core.handle import Tensor
    from .make_fx import Recorder


class Dialect:
    """The operators and formulas of the table, as they are."""

    compositions: Mapping[str, Callable] = {}  # operators that are shown by others, by name
    keeps_whole = False  # are some composite operators nodes (`whole`)?
    events: Mapping[str, Callable] = {}  # kind of event (`core/events.py`) -> f(trace, *facts)

    def whole(self, ov: Any) -> bool:
        """Is a composite operator to be one node?"""
        return False

    def rule(self, ov: Any) -> Rule | None:
        """The derivative of an operator."""
        return ov.rule

    def shown(self, recorder: Recorder, ov: Any, flat: tuple, args: list, kwargs: dict) -> tuple:
        """(operator, arguments, keywords) of a call as its node is to have them.

        `flat` are all arguments as they were given.
        """
        return ov, args, kwargs

    def stored(self, value: complex, like: Tensor) -> Tensor | None:
        """The tensor that stands for a number which fills a part of another; None: the number."""
        return None

    def keeps_slice(self, size: Any) -> bool:
        """Is a slice of all of a dim of some size a node?"""
        return False

    def recorded(self, level: Capture, flat: tuple, out: Any) -> None:
        """Told of a call that is on the tape of a capture now."""

    def pull(self, level: Capture, run: Callable, node: Any, grads: list, needs: list) -> list:
        """What a node of the tape sends on in a capture, where `run` says what that is."""
        return run(node, grads, needs)


TABLE = Dialect()


def standard(kind: str, whole: bool = False) -> Dialect:
    """The dialect of graphs that people read, which is PyTorch's.

    These are those of `make_fx`, `aot_function` and `aot_export_*`.  It is for one capture of a
    kind ("real", "fake", "symbolic" or "aot"); with `whole`, before operators are taken apart.
    """
    return for_torch("dialect").dialect(kind, whole)
