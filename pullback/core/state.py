"""Thread-local state of the dispatcher, and the two counters that the fast path looks at.

`fast` is the namespace that generated functions run in: ACTIVE counts transforms in any thread,
GRADOFF holds the `no_grad` blocks of all threads (a set: adding to it is one step, so that neither
threads nor interrupts come in between); if both are false, nothing unusual is going on.
WATCHED counts checkpoints outside of transforms, which ACTIVE counts too: if both are equal, they
are all there is.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

_P, _T = ParamSpec("_P"), TypeVar("_T")

off: set = set()  # whatever has switched recording off somewhere
fast: dict = {"ACTIVE": 0, "GRADOFF": off, "WATCHED": 0, "CLOCK": 0, "LEAFHOOKS": 0,
              "BIRTHS": 0,  # levels that want to know which handles are made
              "OVERRIDES": 0, "DISPATCHES": 0,  # are there classes, or modes, that take part?
              "REPLAYS": 0,  # has anybody asked for `replay_views`?
              "__name__": "pullback.generated", "__builtins__": __builtins__}
sequence = itertools.count(1).__next__  # numbers of nodes, in order of creation
_locks: weakref.WeakSet = weakref.WeakSet()


def renewed(lock: Any) -> Any:
    """A lock that nobody holds in a process that is forked while another thread holds it here."""
    _locks.add(lock)
    return lock


_lock = renewed(threading.Lock())
_capturing = renewed(threading.RLock())
_LONGEST = 60  # seconds to wait for a capture: it may be waiting for whoever waits


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


class _Passing(threading.local):
    """Does a function look at values that can do without them?  Apart, as it changes often."""

    on = False


_counts = _Counts()
passing = _Passing()
state = State()


def _before_fork() -> None:
    """Wait until no other thread has its boxes in tensors: nobody would take them out again."""
    state.may_fork = _capturing.acquire(timeout=_LONGEST)


def _after_fork() -> None:
    if vars(state).pop("may_fork", False):
        _capturing.release()


def _in_child() -> None:
    """Other threads have gone, and nobody would let go of their locks."""
    vars(state).pop("may_fork", None)
    for lock in list(_locks):
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)


def in_passing(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Decorates a function that looks at values where there are any and can do without.

    A capture does not compute them for it, as it does for the author of the program.
    """

    @functools.wraps(function)
    def looks(*args, **kwargs):
        if not fast["ACTIVE"]:
            return function(*args, **kwargs)
        before, passing.on = passing.on, True
        try:
            return function(*args, **kwargs)
        finally:
            passing.on = before

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


@contextlib.contextmanager
def turn() -> Iterator[None]:
    """For the thread whose capture puts its boxes into tensors that other threads may use, too.

    Nobody waits for ever: what is captured may be waiting for somebody.
    """
    mine = _capturing.acquire(timeout=_LONGEST)
    try:
        yield
    finally:
        if mine:
            _capturing.release()


# Interrupts.  An exception may come between any two steps, those of `__enter__` and `__exit__`
# included, whose changes would then stay for ever.  What can be relied on is this: the frame that
# runs a `with` block holds the bound method `__exit__` from before `__enter__` is called, nobody
# else does, and it lets go of it whichever way the block is left.  So a block's end is tied to
# the life of that method: if it dies without having run to its end, the state becomes what it was
# when the method was made.
#
# Calls take bound methods apart and let go of them at once, those that `with` makes from Python
# 3.14 on and all that are written by hand, so something else holds a function and its first
# argument.  Switches of grad mode, which know of calls by hand, have methods where that will do.
#
# What comes to no end inside of a block, a `finally` that is interrupted itself, is made good by
# the block around it, which puts everything back if it is left by an interrupt.

bound = types.MethodType if sys.version_info < (3, 14) else functools.partial


def snapshot() -> tuple:
    """The state of this thread."""
    own = vars(state)
    return own.copy(), own["stack"][:], own["record"][:], _counts.own.copy(), passing.on


def put_back(before: tuple) -> None:
    """Make the state of this thread what it was."""
    own, stack, record, counts, passing.on = before
    now = vars(state)
    now.update(own)
    for name in now.keys() - own.keys():
        delattr(state, name)
    state.stack[:], state.record[:] = stack, record
    for name in ("ACTIVE", "WATCHED", "DISPATCHES", "BIRTHS"):
        step = counts.get(name, 0) - _counts.own.get(name, 0)
        if step:
            count(name, step)


class tied:
    """Decorates `__exit__` of blocks that change the state of the thread."""

    def __init__(self, function: Callable):
        self.function = function
        functools.update_wrapper(self, function)

    def __get__(self, block: object, owner: object = None) -> Callable[..., Any]:
        if block is None:
            return self.function
        before = snapshot()
        run = [self.function, block, before, None]
        made = [functools.partial(_leave, run)]  # calls by hand let go of a method at once
        try:
            run[3] = weakref.ref(made[0], functools.partial(_lost, before, block))
            return made.pop()  # an interrupt of `return` leaves it to nobody
        except BaseException:
            run[3] = None  # the traceback has the method, and would tell when it goes
            raise


def _leave(run: list, kind: type | None = None, *exc):
    function, block, before, _ = run
    out = function(block, kind, *exc)
    if kind is KeyboardInterrupt:  # `try` and `finally` inside may not have come to their ends
        put_back(before)
    run[3] = None  # nobody is told of the method's death any more
    return out


def _lost(before: tuple, block: object, tie: weakref.ref) -> None:
    try:
        if isinstance(block, _Block):
            block.gen.close()  # now: once its traceback is forgotten, others may have their blocks
    finally:
        put_back(before)
        if hasattr(block, "lost"):  # what is not of the thread
            block.lost()


class _Block(contextlib._GeneratorContextManager):
    """A block that is written as a generator, with its end tied."""

    __exit__ = tied(contextlib._GeneratorContextManager.__exit__)  # type: ignore[assignment]


def tied_block(function: Callable[_P, Iterator[_T]]) -> Callable[
        _P, contextlib._GeneratorContextManager[_T]]:
    """`contextlib.contextmanager` for generators that change the state of the thread."""

    @functools.wraps(function)
    def begin(*args, **kwargs):
        return _Block(function, args, kwargs)

    return begin


class uncast:
    """No autocast meanwhile: the dtypes have been chosen already."""

    def __enter__(self):
        self.policy, state.autocast = state.autocast, None

    @tied
    def __exit__(self, *exc):
        state.autocast = self.policy


class intact:
    """On an exception, the state of the thread as it was, for functions that change it in many
    ways.  `again` are functions that clean up, once more."""

    def __init__(self, *again):
        self.again = again

    def __enter__(self):
        self.before = snapshot()

    def __exit__(self, kind, value, trace):
        if kind is None:
            return
        for function in self.again:
            function()
        put_back(self.before)


def tick() -> int:
    """The time of a write: one more than that of the previous one."""
    with _lock:
        fast["CLOCK"] += 1
        return fast["CLOCK"]


def recording() -> bool:
    """Does the tape record at the innermost level?"""
    return state.record[-1]
