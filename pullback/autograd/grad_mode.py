"""Context managers that switch the tape on and off.

They act on the innermost level that owns a tape (`func.grad` makes one) and on the levels above
it that do not.
"""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from ..threads.blocks import bound, tied
from ..threads.state import fast, off, state


def _levels() -> range:
    """The levels that a grad mode set here acts on."""
    stack = state.stack
    top = low = len(stack) - 1
    if not top:
        return _GROUND
    while low > 0 and not stack[low].owns_tape:
        low -= 1
    return range(low, top + 1)


_GROUND = range(1)


_F = TypeVar("_F", bound=Callable[..., Any])


class _awaitable:
    """A generator of steps as something to await."""

    def __init__(self, steps):
        self.steps = steps

    def __await__(self):
        return self.steps


class _Tie(weakref.ref):
    """One block of a switch: what was before, None until it is entered.

    It is tied to the life of the bound `__exit__`; `threads/blocks.py` says why.
    """

    __slots__ = ("switch", "levels", "before", "inference")


def _lost(tie: _Tie) -> None:
    """A block was left, and its `__exit__` has not run to its end."""
    switch = getattr(tie, "switch", None)
    if switch is None:
        return  # it was not even entered
    if getattr(tie, "before", None) is not None:
        switch._restore(tie)
    off.discard(id(tie))
    if tie in switch._ties:
        switch._ties.remove(tie)


class _Leave:
    """`__exit__` of switches: each block gets a bound method of its own, and a tie to its life."""

    def __get__(self, switch: Any, owner: Any = None) -> Callable[..., None]:
        if switch is None:
            return _leave
        leave = bound(_leave, switch)
        tie = _Tie(leave, _lost)
        tie.switch, tie.before = switch, None
        switch._ties.append(tie)
        return leave


def _leave(self: Any, *exc: object) -> None:
    ties = self._ties
    tie = ties[-1]
    while tie.before is None:  # called by hand: this call has made one more
        ties.pop()
        tie = ties[-1]
    self._restore(tie)
    off.discard(id(tie))
    tie.before = None
    ties.pop()


class _Switch:
    """Base: sets recording, restores it on exit; works as decorator too."""

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)
        self._ties: list = []  # one for each block that runs

    def __enter__(self) -> None:
        ties, own = self._ties, state.__dict__
        tie = ties[-1] if ties and ties[-1].before is None else self._tie()
        record = own["record"]
        tie.levels = levels = _GROUND if len(record) == 1 else _levels()
        tie.before = record[:] if levels is _GROUND else [record[i] for i in levels]
        off.add(id(tie))
        for i in levels:
            record[i] = self.mode
        if "observers" in own and state.observers.trace is not None:
            state.observers.trace.switched(self.mode, False)  # a trace that records it (`make_fx`)

    __exit__ = _Leave()

    def _tie(self) -> _Tie:
        """The block that is being entered."""
        ties = self._ties
        if ties and ties[-1].before is None:
            return ties[-1]
        tie = _Tie(self)  # by hand
        tie.switch, tie.before = self, None
        ties.append(tie)
        return tie

    def _restore(self, tie: _Tie) -> None:
        own = state.__dict__
        record = own["record"]
        for i, value in zip(tie.levels, tie.before):
            record[i] = value
        if "observers" in own and state.observers.trace is not None:
            state.observers.trace.switched(tie.before[-1], True)

    def clone(self):
        return type(self)()

    def __call__(self, function: _F) -> _F:
        if inspect.isclass(function):
            warnings.warn("Decorating classes is deprecated: only making an instance runs in the "
                          "mode. Decorate its functions.", FutureWarning, stacklevel=2)
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)
        if inspect.iscoroutinefunction(function):
            return self._wrap_coroutine(function)
        if inspect.isasyncgenfunction(function):
            return self._wrap_async_generator(function)

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)

        return wrapped

    def _wrap_generator(self, function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            return (yield from self._steps(function(*args, **kwargs)))

        return wrapped

    def _wrap_coroutine(self, function):
        @functools.wraps(function)
        async def wrapped(*args, **kwargs):
            return await _awaitable(self._steps(function(*args, **kwargs)))

        return wrapped

    def _wrap_async_generator(self, function):
        @functools.wraps(function)
        async def wrapped(*args, **kwargs):
            running = function(*args, **kwargs)
            step, given = running.asend, None
            try:
                while True:
                    value = await _awaitable(self._steps(step(given).__await__()))
                    try:
                        step, given = running.asend, (yield value)
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        step, given = running.athrow, error
            except StopAsyncIteration:
                pass
            finally:
                await _awaitable(self._steps(running.aclose().__await__()))

        return wrapped

    def _steps(self, running):
        """Run a generator or coroutine with the mode set only while it runs itself.

        Whoever has the thread in between, a caller or other tasks, keeps their own mode.
        """
        step, given = running.send, None
        while True:
            try:
                with self.clone():
                    value = step(given)
            except StopIteration as end:
                return end.value
            try:
                step, given = running.send, (yield value)
            except GeneratorExit:
                with self.clone():
                    running.close()
                raise
            except BaseException as error:  # thrown in: the function decides what it means
                step, given = running.throw, error


class _Fixed(_Switch):
    """A switch to one side, which decorates functions without brackets too."""

    to: bool

    if TYPE_CHECKING:
        @overload
        def __new__(cls, function: None = None) -> Self: ...
        @overload
        def __new__(cls, function: _F) -> _F: ...

    def __new__(cls, function=None):
        made = super().__new__(cls)
        if function is None:
            return made
        made.__init__()
        return made(function)

    def __init__(self, function: Any = None) -> None:
        self.mode, self._ties = self.to, []


class no_grad(_Fixed):
    """Nothing computed inside is recorded."""

    to = False


class enable_grad(_Fixed):
    """Record again, inside of `no_grad`."""

    to = True


class set_grad_enabled(_Switch):
    """Switch recording by a flag; acts at once, and as a context manager restores on exit."""

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)
        tie = self._outer = _Tie(self)
        tie.levels, tie.switch = _levels(), self
        tie.before = [state.record[i] for i in tie.levels]
        self._first = get_ident() not in off
        off.add(get_ident())  # stays if there is no block: the fast path merely looks twice then
        self._set(tie.levels)

    def _set(self, levels: range) -> None:
        for i in levels:
            state.record[i] = self.mode
        if state.observers.trace is not None:
            state.observers.trace.switched(self.mode, False)

    def __enter__(self) -> None:
        tie, outer = self._tie(), self._outer
        tie.levels, tie.before = outer.levels, outer.before
        off.add(get_ident())
        self._set(_levels())

    def _restore(self, tie: _Tie) -> None:
        super()._restore(tie)
        if self._first:
            off.discard(get_ident())

    def clone(self):
        return set_grad_enabled(self.mode)

    def __call__(self, function: _F) -> _F:
        self._restore(self._outer)  # used as decorator: undo the immediate effect
        return super().__call__(function)


def _set_grad_enabled(mode: bool) -> None:
    """What a graph calls where the function that was captured switched recording."""
    set_grad_enabled(mode)


_set_grad_enabled.__module__ = f"{__package__.partition('.')[0]}._C"  # as it prints


class inference_mode(_Switch):
    """`no_grad`, and the promise that results never take part in autograd."""

    if TYPE_CHECKING:
        @overload
        def __new__(cls, mode: bool = True) -> Self: ...
        @overload
        def __new__(cls, mode: _F) -> _F: ...

    def __new__(cls, mode: bool = True):
        made = super().__new__(cls)
        if not callable(mode):
            return made
        made.__init__()  # `@inference_mode` without brackets
        return made(mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__(not mode)
        self._inference = bool(mode)

    def __enter__(self) -> None:
        tie = self._tie()
        tie.inference = state.inference
        if self._inference:
            super().__enter__()
        else:
            tie.levels = tie.before = ()
            off.add(id(tie))
        state.inference = self._inference
        return self

    def _restore(self, tie: _Tie) -> None:
        state.inference = tie.inference
        if self._inference:
            super()._restore(tie)

    def clone(self):
        return inference_mode(self._inference)


def is_grad_enabled() -> bool:
    """Is the tape recording here?"""
    return state.record[-1]


def is_inference_mode_enabled() -> bool:
    """Are we inside `inference_mode`?"""
    return state.inference


def is_view_replay_enabled() -> bool:
    """Do views get their history back by the operators that made them?"""
    return state.switches.replay_views


class _force_original_view_tracking(_Switch):
    """Views made inside get their history back, after a write, by the operators that made them."""

    def __init__(self, mode: bool) -> None:
        self.mode, self.before, self.inside = bool(mode), state.switches.replay_views, False
        state.switches.replay_views = self.mode
        fast["REPLAYS"] = 1

    def __enter__(self) -> None:
        self.inside = True
        state.switches.replay_views = self.mode

    @tied
    def __exit__(self, *exc) -> None:
        state.switches.replay_views = self.before
        self.inside = False

    def lost(self) -> None:
        """What holds when the block begins is what the call has set already."""
        if self.inside:
            state.switches.replay_views = self.before

    def clone(self):
        """The same switch again, for a decorated function."""
        return _force_original_view_tracking(self.mode)

    def __call__(self, function: _F) -> _F:
        state.switches.replay_views = self.before
        return super().__call__(function)
