"""Hooks that a captured function registers on tensors that it was given.

Such a hook gets all of the gradient of its tensor, what comes from outside of the function, too: it
is no part of the graph, every call registers it again.  Hooks of what the function computes are
traced with its backward.  Read next: `capture.py`, whose trace this is a part of.
"""

from __future__ import annotations

import functools
from typing import Any

from ..core.handle import Tensor
from ..core.hooks import Table, on_accumulated, on_tensor

_REGISTER = {"tensor": on_tensor, "accumulated": on_accumulated}


class Hooking:
    """The part of a capture that looks after hooks."""

    mine: Any
    starts: dict[int, object]  # the edges that inputs came with, by the identity of the handle
    adopted: list
    hooked: dict[tuple[int, str], Table]

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
    """(input, kind, hook) of all that were registered; `numbers` are those of the handles."""
    return [(numbers[t], kind, hook) for (t, kind), table in level.hooked.items()
            if t in numbers for hook in table.values()]


def register(hooked: list[tuple], tensors: list[Tensor]) -> None:
    """Do what a captured function did to the tensors of a call."""
    for i, kind, hook in hooked:
        _REGISTER[kind](tensors[i], hook)
