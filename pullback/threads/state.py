"""Thread-local state of the dispatcher, and the two counters that the fast path looks at.

`fast` is the namespace that generated functions run in: ACTIVE counts transforms in any thread,
GRADOFF holds the `no_grad` blocks of all threads (a set: adding to it is one step, so that neither
threads nor interrupts come in between); if both are false, nothing unusual is going on.
WATCHED counts checkpoints outside of transforms, which ACTIVE counts too: if both are equal, they
are all there is.  Read next: `blocks.py`.
"""

from __future__ import annotations

import functools
import itertools
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

_P, _T = ParamSpec("_P"), TypeVar("_T")

off: set = set()  # whatever has switched recording off somewhere
fast: dict = {"ACTIVE": 0, "GRADOFF": off, "WATCHED": 0, "CLOCK": 0, "LEAFHOOKS": 0,
              "BIRTHS": 0,  # levels that want to know which handles are made
              "OVERRIDES": 0, "DISPATCHES": 0,  # are there classes, or modes, that take part?
              "PARTS": 0,  # are there tensors that are made of others?
              "REPLAYS": 0,  # has anybody asked for `replay_views`?
              "__name__": "pullback.generated", "__builtins__": __builtins__}
sequence = itertools.count(1).__next__  # numbers of nodes, in order of creation
_locks: weakref.WeakSet = weakref.WeakSet()


def renewed(lock: Any) -> Any:
    """A lock that nobody holds in a process that is forked while another thread holds it here."""
    _locks.add(lock)
    return lock


_lock = renewed(threading.RLock())  # what dies inside of it may count


class Group:
    """Parts of a thread's state that belong together, and are swapped as one.

    Setting an attribute puts a new object into `state`: who has kept the old one has all of it, and
    putting it back is one step, between which no interrupt comes.
    """

    place: str  # the attribute of `state` that it is

    def __setattr__(self, name: str, value: object) -> None:
        new = object.__new__(self.__class__)
        new.__dict__.update(self.__dict__)
        new.__dict__[name] = value
        setattr(state, self.place, new)

    def __eq__(self, other: object) -> bool:
        names = {*vars(self), *vars(other)}
        return self.__class__ is other.__class__ and all(
            getattr(self, n) == getattr(other, n) for n in names)


class Fakes(Group):
    """Tensors without data."""

    place = "fakes"
    creates = False  # do creation operators make fake arrays?
    mode = None  # the fake tensor mode that the user has entered (with ACTIVE counted)
    reals = False  # do fakes compute with their data beside? (with ACTIVE counted)
    defects: list | None = None  # of fakes, where these are mended by data (`array/reals.py`)
    sizes = None  # the environment of sizes that depend on data (with ACTIVE counted)


class Dispatch(Group):
    """Modes and subclasses, which are asked before functions and operators run."""

    place = "dispatch"
    overrides_off = 0  # functions ask nobody: 1 no subclasses, 2 no modes either
    function_modes: tuple = ()  # innermost last (with ACTIVE counted)
    operator_modes: tuple = ()  # (mode, level that it was entered on), innermost last
    no_subclasses = 0  # operators ask no subclasses
    declines = False  # the next question of a user's function is answered by no
    in_autograd: tuple = ()  # registered operators whose functions for autograd are running
    lowered = 0, 0  # by `lower()` of a rule: how deep the stack was, which level was the innermost


class Observers(Group):
    """Who is told of operators, or asked, beside the levels (with ACTIVE counted)."""

    place = "observers"
    trace = None  # wants composite operators whole
    checkpoint = None  # told of every operator that was recorded
    cache = None  # may know the result of an operator
    saved_hooks: tuple = ()  # pairs that pack and unpack saved tensors, innermost last
    hooks_refused: str | None = None  # why there must be none
    node = None  # the node whose formula runs, where somebody looks at its operators


class Switches(Group):
    """What a program has chosen for a while, and what kind of call runs."""

    place = "switches"
    devices: tuple = ()  # where new tensors go that are not told (with ACTIVE counted)
    default_device = False  # is the first of `devices` the default?
    autocast_settings = None  # what this thread has asked of autocast so far
    stance = "default"  # what compiled functions do (with ACTIVE counted where it is another)
    watched = 0  # blocks that look at every operator: compiled functions run as they were written
    replay_views = False  # histories of stale views are made by their steps, not by strides
    filling = False  # is a tensor of a transform overwritten with the numbers that are drawn?


class State(threading.local):
    """The level stack of one thread, and what else decides how its operators are interpreted."""

    def __init__(self):
        self.stack: list = [None]  # interpreters; index is the level, 0 is eager
        self.record: list[bool] = [True]  # per level: does the tape record?
        self.mode = 0  # level of the innermost interpreter that wants to see every operator
        self.random = 0  # level of the innermost interpreter that wants random operators
        self.inference = False
        self.forward = True  # do tangents propagate?

    task = None  # the sweep that runs
    autocast = None  # chooses the dtype of operators with an autocast class (with ACTIVE counted)
    fakes = Fakes()
    dispatch = Dispatch()
    observers = Observers()
    switches = Switches()


class _Counts(threading.local):
    """What one thread has added to the counters of the fast path."""

    def __init__(self):
        self.own: dict = {}


class _Calling(threading.local):
    """Who calls operators, where that matters.  Apart, as it changes often."""

    in_passing = False  # a function that looks at values and can do without them
    by: object = None  # no function of the package: see `called_by`


_counts = _Counts()
calling = _Calling()
state = State()


def in_passing(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Decorates a function that looks at values where there are any and can do without.

    A capture does not compute them for it, as it does for the author of the program.
    """

    @functools.wraps(function)
    def looks(*args, **kwargs):
        if not fast["ACTIVE"]:
            return function(*args, **kwargs)
        before, calling.in_passing = calling.in_passing, True
        try:
            return function(*args, **kwargs)
        finally:
            calling.in_passing = before

    return looks


def _counted() -> int:
    thing = object()
    return sys.getrefcount(thing)


ALONE = _counted()  # of what one variable holds: 2 with the argument, which 3.14 does not count


def count(name: str, step: int) -> None:
    """Change one of the counters of the fast path."""
    own = _counts.own
    with _lock:
        fast[name] += step
        own[name] = own.get(name, 0) + step


def count_for_all(name: str, step: int) -> None:
    """The same on behalf of no thread: whoever is interrupted does not take it back."""
    with _lock:
        fast[name] += step


def tick() -> int:
    """The time of a write: one more than that of the previous one."""
    with _lock:
        fast["CLOCK"] += 1
        return fast["CLOCK"]


def recording() -> bool:
    """Does the tape record at the innermost level?"""
    return state.record[-1]
