"""`Link`: how a view follows from its base, step by step.

Read next: `views.py`, which makes links and follows them.
"""

from __future__ import annotations

import weakref

from ..core.handle import Box, cell_of


class Link:
    """How a view follows from its base.

    `steps` is None or (steps before, step, how many, number of the last one that changes the
    dtype); a step is (overload, arguments after self, which of several outputs).  A view of a view
    thus costs the same whatever its depth.
    """

    __slots__ = ("__weakref__", "base", "hidden", "multi", "of", "seen", "steps")
    apart = False  # does it share memory only, with a history of its own?

    def __init__(self, base, steps, multi, hidden, seen):
        self.base = base
        self.steps = steps
        self.multi = multi  # one of several outputs of one call
        self.hidden = hidden  # "no_grad" or "inference": made while recording was off, so
        self.seen = seen  # version of the base that `_payload` and `_edge` reflect
        self.of = base._payload  # what the steps start from; another one: the base's layout changed
        if isinstance(self.of, Box):
            cell = cell_of(base)
            if not hasattr(cell, "links"):
                cell.links = weakref.WeakSet()
            cell.links.add(self)

    @property
    def chain(self) -> tuple:
        """The steps from the base to the view."""
        found, steps = [], self.steps
        while steps is not None:
            steps, step, *_ = steps
            found.append(step)
        return tuple(reversed(found))


def one_more(steps: tuple | None, step: tuple) -> tuple:
    """Steps with another one behind; their number, that of the last cast, the first of them."""
    if steps is None:
        return None, step, 1, 1 if step[0].op.dtype is not None else 0, step
    _, _, count, cast, first = steps
    count += 1
    return steps, step, count, count if step[0].op.dtype is not None else cast, first
