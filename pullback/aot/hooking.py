"""Hooks that a captured function registers on tensors that it was given.

Such a hook gets all of the gradient of its tensor, what comes from outside of the function, too: it
is no part of the graph, every call registers it again.  Hooks of what the function computes are
traced with its backward, unless code outside can remove them.  Read next: `capture.py`, whose trace
this is a part of.
"""

from __future__ import annotations

import functools
from typing import Any
from weakref import WeakSet

from .. import errors
from ..core.handle import Tensor
from ..core.hooks import RemovableHandle, Table, on_accumulated, on_tensor

_REGISTER = {"tensor": on_tensor, "accumulated": on_accumulated}


class Hooking:
    """The part of a capture that looks after hooks."""

    mine: Any
    starts: dict[int, object]  # the edges that inputs came with, by the identity of the handle
    adopted: list
    hooked: dict[tuple[int, str], Table]
    handles: WeakSet[RemovableHandle]  # of all hooks; those that the function keeps stay in it

    def hooks_of(self, t: Tensor, kind: str, hook) -> Table | None:
        """Where hooks of an input are kept; None for a tensor of the function's own, or a hook that
        uses one: that is traced."""
        start = self.starts.get(id(t))
        if start is None or t._edge is not start or any(map(self._inner, _reached(hook))):
            return None
        return self.hooked.setdefault((id(t), kind), Table())

    def _inner(self, value) -> bool:
        return isinstance(value, Tensor) and self.mine(value) and not any(
            a.handle is value for a in self.adopted)


def _reached(hook) -> list:
    """What a function holds: in its closure, in its defaults, in what it is bound to."""
    if isinstance(hook, functools.partial):
        return [*hook.args, *hook.keywords.values(), *_reached(hook.func)]
    cells = getattr(hook, "__closure__", None) or ()
    held = [c.cell_contents for c in cells if c != type(c)()]
    return [*held, *(getattr(hook, "__defaults__", None) or ()), getattr(hook, "__self__", None)]


def left(level: Hooking, numbers: dict[int, int]) -> list[tuple]:
    """(input, kind, hook, handle) of all that were registered; `numbers` are those of the inputs,
    the handle is None unless the function kept it."""
    kept = {h.id: h for h in level.handles}
    return [(numbers[t], kind, hook, kept.get(key)) for (t, kind), table in level.hooked.items()
            if t in numbers for key, hook in table.items()]


def check_handles(level: Hooking) -> None:
    """Refuse to trace a hook that code outside of the function can remove."""
    tables = list(level.hooked.values())
    for handle in level.handles:
        table = handle._table()
        if table is not None and handle.id in table and not any(table is t for t in tables):
            raise errors.DataDependentError(errors.text(
                "a captured function keeps the handle of a hook of a tensor that it computes "
                f"({errors.user_line()}), by which the hook could be removed later",
                cure="remove the hook inside of the function, or do not keep its handle"))


def register(hooked: list[tuple], tensors: list[Tensor]) -> None:
    """Do what a captured function did to the tensors of a call; handles are for the last one."""
    for i, kind, hook, handle in hooked:
        made = _REGISTER[kind](tensors[i], hook)
        if handle is not None:
            handle.__dict__.update(made.__dict__)
