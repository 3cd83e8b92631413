"""The door from the core to subclasses and modes: `__torch_function__`, `__torch_dispatch__`.

Who answers a call is decided in `interp/` (`function_overrides.py`, `operator_dispatch.py`,
`wrapper_subclass.py`), which is above the core and puts its functions here when it is loaded.
Until then nobody takes part.  The core comes here only where `fast["OVERRIDES"]` or
`fast["DISPATCHES"]` says that there is a class or a mode that does.  The blocks below keep calls of
this thread from asking.  Read next: `handle.py`.
"""

from __future__ import annotations

import sys
import types
from functools import partial

from .state import fast, state, tied

UNASKED = object()  # nobody takes part in the call


class NobodyAnswers(TypeError):
    """All who were asked have declined."""


class Door:
    """What the core asks; these are the answers where nobody takes part."""

    def class_made(self, cls: type) -> None:
        """Told of a class of tensors that takes part in calls."""

    def inherited(self, cls: type, function, kinds: tuple, args: tuple, kwargs: dict):
        """What a class does that has `__torch_function__` from Tensor."""
        return function(*args, **kwargs)

    def asked(self, public, args: tuple, kwargs: dict):
        """What somebody else makes of a call of a function, `UNASKED` if all arguments are plain.

        `public` gives the function that users know.
        """
        return UNASKED

    def answered(self, public, given, args: tuple, kwargs: dict):
        """The same for arguments that are known to take part."""
        return UNASKED

    def members(self, values) -> list:
        """The values that are to be asked."""
        return []

    def arm(self) -> None:
        """From now on functions that are written in Python ask their arguments."""

    def operator(self, ov, flat: tuple):
        """What a class or a mode makes of an operator, NotImplemented if none is asked."""
        return NotImplemented

    def write(self, ov, flat: tuple):
        """The same for `x.op_(...)`."""
        return NotImplemented

    def write_out(self, ov, flat: tuple, outs: list) -> bool:
        """The same for `op(..., out=)`: was it done?"""
        return False

    def item(self, t):
        """The only element of a tensor as a mode gives it, NotImplemented if none looks."""
        return NotImplemented

    def lifted(self, t):
        """A tensor that was just made from Python values, as a mode gives it."""
        return t

    def refuse_wrapper(self, cls: type, data) -> None:
        """Refuse to show the memory of a wrapper, which has none, as another class."""


door = Door()


# blocks in which calls do not ask


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


# functions that are written in Python


waiting: list = []  # those that do not ask yet: see `announce`


def announce(*functions) -> None:
    """Announce Python functions: (gives what users call, function, does it ask modes alone?)."""
    waiting.extend(functions)
    if fast["OVERRIDES"]:
        door.arm()


def _itself(function):
    return function


def overridable_module(name: str) -> None:
    """Announce the public functions of a module, from its last line."""
    module = sys.modules[name]
    names = getattr(module, "__all__", None) or [n for n in vars(module) if n[0] != "_"]
    found = [vars(module).get(n) for n in names]
    overridable_functions(*[f for f in found if type(f) is types.FunctionType
                      and f.__module__.startswith(name)])


def overridable_functions(*functions: types.FunctionType, modes_only: bool = False) -> None:
    """Announce functions of a module."""
    announce(*[(partial(_itself, f), f, modes_only) for f in functions])


def overridable_methods(names, cls: type) -> None:
    """Announce methods and properties of the handle that are not operators of the table."""
    for name in names:
        value = cls.__dict__[name]
        if type(value) is property:
            for part, hook in (("fget", "__get__"), ("fset", "__set__"), ("fdel", "__delete__")):
                if type(getattr(value, part)) is types.FunctionType:
                    announce((partial(getattr, value, hook), getattr(value, part)))
        elif type(value) is types.FunctionType:
            announce((partial(_itself, value), value))
