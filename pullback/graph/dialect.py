"""Dialects: which operators, formulas and arguments a recorded graph shows.

The table has one way to say what a function did, and `Dialect` is that.  Another library may have
one operator where the table has several or the other way round, and may write the same derivative
otherwise; its dialect is a subclass that says so.  The trace of a capture holds one, and everything
that differs is asked of it here.  `Convention` is the part of a dialect that says how a captured
graph is called: what its inputs and results are.  Eager execution never meets either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .. import errors
from ..facade import for_torch

if TYPE_CHECKING:
    from ..capture.capture import Capture
    from ..core.formula import Rule
    from ..core.handle import Tensor
    from .make_fx import Recorder


class Convention:
    """The calling convention of the run time: graphs give what it needs, in any order.

    Views are made again after the native call, values lie as their operators promise, and a
    function that cannot be followed runs as it is written.
    """

    keeps_strides = False  # do inputs lie as they came, so that places in their memory are known?
    keeps_pieces = False  # are several results of one view, with histories, results of the graph?
    refreshes_unused = True  # are views among the inputs brought up to date if nobody used them?
    returns_views = False  # of what has no history: are views results of the graph, as they are?
    follows_python = True  # what the function does to Python objects; else it does that once
    shows_hooks = False  # may a hook be traced that code outside of the function can remove?

    def refusal(self, text: str, kind: type[Exception]) -> Exception:
        """The error for what cannot be followed; `kind` is for functions that must be graphs."""
        return errors.DataDependentError(text)

    def detached(self, level: Capture, t: Tensor) -> Tensor:
        """What the user's `detach()` gives."""
        return level.cut(t)

    def made(self, level: Capture, t: Tensor) -> Tensor:
        """What stands for a tensor that the function makes from values."""
        return level.constant(t)

    def written(self, level: Capture, t: Tensor, new: Tensor) -> Tensor:
        """What a tensor of the function has from now on, for the new value that it gets."""
        return level.memory.in_place_of(t, new)

    def arranges(self, ov: Any) -> bool:
        """Are the results of a decomposition laid out as the operator promises?"""
        return ov.in_rows or ov.op.memory_format == "channels"

    def took_memory(self, number: int, tracked: bool) -> None:
        """Told of an input that has other memory; is it part of a new history, too?"""

    def returned(self, level: Capture, leaves: list, inputs: list[Tensor]) -> None:
        """Told of the user's results, and of the inputs at the end."""

    def ended(self, level: Capture) -> None:
        """Told that the backward has been recorded, too."""

    def in_order(self, varying: list[tuple], first: list[int], returned: list[int]) -> list[tuple]:
        """The graph's outputs with histories in the order in which their gradients come; `first`
        are those that inputs were written with, `returned` those of the user."""
        return varying


class Dialect:
    """The operators and formulas of the table, as they are."""

    compositions: Mapping[str, Callable] = {}  # operators that are shown by others, by name
    keeps_whole = False  # are some composite operators nodes (`whole`)?
    events: Mapping[str, Callable] = {}  # kind of event (`core/events.py`) -> f(trace, *facts)
    convention = Convention()

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
