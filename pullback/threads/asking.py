"""Blocks in which functions or operators do not ask subclasses and modes whether they take part.

Read next: `../core/subclass_door.py`, where they are asked.
"""

from __future__ import annotations

from .blocks import tied
from .state import state


class no_overrides:
    """Functions ask no subclasses meanwhile, with level 2 no modes either."""

    level = 1

    def __enter__(self):
        self.before = state.dispatch.overrides_off
        state.dispatch.overrides_off = max(self.before, self.level)
        return self

    @tied
    def __exit__(self, *exc):
        state.dispatch.overrides_off = self.before


class Enabled(no_overrides):
    """Functions ask again, inside of blocks in which they do not; `del` ends it, too."""

    def __init__(self):
        self.before, state.dispatch.overrides_off = state.dispatch.overrides_off, 0

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.before is not None:
            state.dispatch.overrides_off, self.before = self.before, None

    __del__ = __exit__


class DisableTorchFunctionSubclass(no_overrides):
    """A block in which tensors of subclasses are treated as plain tensors by functions."""


class DisableTorchFunction(no_overrides):
    """The same, and modes are not asked either."""

    level = 2


class Undispatched:
    """Operators ask neither subclasses nor modes meanwhile."""

    def __enter__(self):
        self.before = state.dispatch.no_subclasses, state.dispatch.operator_modes
        state.dispatch.no_subclasses, state.dispatch.operator_modes = 1, ()
        return self

    @tied
    def __exit__(self, *exc):
        state.dispatch.no_subclasses, state.dispatch.operator_modes = self.before


class Bare(Undispatched):
    """Functions ask no subclasses meanwhile, and operators neither these nor modes."""

    def __enter__(self):
        self.outer = state.dispatch.overrides_off
        state.dispatch.overrides_off = max(self.outer, 1)
        return super().__enter__()

    @tied
    def __exit__(self, *exc):
        state.dispatch.no_subclasses, state.dispatch.operator_modes = self.before
        state.dispatch.overrides_off = self.outer


class Unasked:
    """Functions and operators ask modes, but no subclasses, meanwhile."""

    def __enter__(self):
        self.before = state.dispatch.overrides_off, state.dispatch.no_subclasses
        state.dispatch.overrides_off, state.dispatch.no_subclasses = max(self.before[0], 1), 1
        return self

    @tied
    def __exit__(self, *exc):
        state.dispatch.overrides_off, state.dispatch.no_subclasses = self.before
