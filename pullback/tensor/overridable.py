"""Functions that are written in Python, and ask subclasses and modes whether they take part.

Where `_asks` of a module says that there may be somebody, they ask in their first line, or in that
of `overridable` where a microsecond does not matter:

    if _asks and (taken := taken_over(relu, locals())):
        return taken[0]

Read next: `../core/subclass_door.py`; `../interp/function_overrides.py`, which answers.
"""

from __future__ import annotations

import types
from functools import partial

from ..core.subclass_door import door
from ..threads.state import fast

publics: dict = {}  # function of a property -> gives what users know it by


_spaces: list[dict] = []  # of modules whose functions look at `_asks`


def asks_in(space: dict) -> bool:
    """The value of `_asks` in a module, whose namespace this is; `ask_from_now_on` changes it."""
    _spaces.append(space)
    return bool(fast["OVERRIDES"])


def ask_from_now_on() -> None:
    """A class or a mode that takes part has come into being."""
    fast["OVERRIDES"] = 1
    for space in _spaces:
        space["_asks"] = True


def taken_over(function, given, named=None) -> tuple:
    """What a class or a mode makes of a call of a Python function: (answer,), or () if none does.

    `given` are the function's own `locals()`; or arguments by their places, and those by name, for
    functions that users know to be called so.
    """
    return door.taken_over(function, given, named)


def overridable(function):
    """Decorate a function: it asks, with its arguments as they were given."""
    def asking(*args, **kwargs):
        if _asks and (taken := door.taken_over(asking, args, kwargs)):
            return taken[0]
        return function(*args, **kwargs)

    asking.__name__, asking.__qualname__ = function.__name__, function.__qualname__
    asking.__module__, asking.__doc__ = function.__module__, function.__doc__
    asking.__wrapped__ = function  # as `functools.wraps` in half the time
    return asking


def fact(read):
    """The same for a function of one tensor, for properties."""

    def tell(t):
        if _asks and (taken := door.taken_over(tell, (t,))):
            return taken[0]
        return read(t)

    return tell


_asks = asks_in(globals())


def asks_itself(function) -> bool:
    """Is it a Python function of this package that asks?"""
    return type(function) is types.FunctionType and "_asks" in function.__globals__


def overridable_properties(cls: type) -> None:
    """Say what users know the functions of the properties of a class by."""
    for value in vars(cls).values():
        if type(value) is property:
            for part, hook in (("fget", "__get__"), ("fset", "__set__"), ("fdel", "__delete__")):
                if getattr(value, part) is not None:
                    publics.setdefault(getattr(value, part), partial(getattr, value, hook))
