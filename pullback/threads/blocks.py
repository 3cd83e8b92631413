"""Blocks that change the state of a thread, and put it back however they are left.

A block that is left by an interrupt, between whichever two steps, leaves the state as it was:
`tied` says how.  `state.py` has that state.  Read next: `../core/handle.py`.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

from .state import _counts, _locks, calling, count, renewed, state

_P, _T = ParamSpec("_P"), TypeVar("_T")
_capturing = renewed(threading.RLock())
_LONGEST = 60  # seconds to wait for a capture: it may be waiting for whoever waits


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


@contextlib.contextmanager
def exclusive_capture() -> Iterator[None]:
    """Holds the lock of captures, which put their boxes into tensors that other threads may use.

    After `_LONGEST` seconds it goes on without: the function that another thread captures may be
    waiting for this one.
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
    called = calling.in_passing, calling.by
    return own.copy(), own["stack"][:], own["record"][:], _counts.own.copy(), called


def put_back(before: tuple) -> None:
    """Make the state of this thread what it was."""
    own, stack, record, counts, called = before
    calling.in_passing, calling.by = called
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


class restored_on_error:
    """On an exception, the state of the thread is what it was before the block.

    For functions that change it in many ways; `clean_up` are called then as well."""

    def __init__(self, *clean_up):
        self.clean_up = clean_up

    def __enter__(self):
        self.before = snapshot()

    def __exit__(self, kind, value, trace):
        if kind is None:
            return
        for function in self.clean_up:
            function()
        put_back(self.before)


class called_by:
    """Operators are called by something else than a function that users call: by FORMULA, by SEED
    (what a sweep begins with), or the overload itself that they call."""

    FORMULA, SEED = "formula", "seed"

    def __init__(self, caller: object):
        self.caller = caller

    def __enter__(self):
        self.before, calling.by = calling.by, self.caller
        return self

    def __exit__(self, *exc):  # not tied: the levels and modes that look are
        calling.by = self.before


@tied_block
def outside(anything: bool = False):
    """Run operators as if nothing was being captured: what they make lives on.

    With `anything` also in levels that never give back what was made in them: graphs to look at,
    branches and bodies of loops.
    """
    before = state.mode, state.random, state.fakes
    level = state.stack[state.mode] if state.mode else None
    if level is not None and (anything or level.adopts):
        state.mode = state.random = 0
        state.fakes.creates = False
    try:
        yield
    finally:
        state.mode, state.random, state.fakes = before
