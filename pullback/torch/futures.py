"""`Future`: a result that somebody sets later, and functions of lists of them.

`jit.fork` gives one that is complete.  Waiting blocks the thread, callbacks run in the thread that
completes the future (or in the one that adds them, where it is complete already).
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A result that is not there yet, or the exception in its place."""

    def __init__(self, *, devices: list | None = None) -> None:
        for device in devices or ():
            if str(device).partition(":")[0] != "cpu":
                raise RuntimeError(f"a future for tensors on {device}, but there are no streams of "
                                   "accelerators here\n  Fix: leave out `devices`")
        self._changed = threading.Condition()
        self._callbacks: list[Callable[[Future[T]], Any]] = []
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None

    def done(self) -> bool:
        """Has it a result or an exception?"""
        return self._done

    def wait(self) -> T:
        """The result, as soon as there is one; raises the exception that was set."""
        with self._changed:
            self._changed.wait_for(lambda: self._done)
        return self.value()

    def value(self) -> T:
        """The result of a future that is complete."""
        if not self._done:
            raise RuntimeError("value() of a future that is not complete\n  Fix: wait() for it")
        if self._error is not None:
            raise self._error
        return self._value

    def set_result(self, result: T) -> None:
        """Complete it, and call who waits for it."""
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Complete it with an exception, which `wait` will raise."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, value: Any, error: BaseException | None) -> None:
        with self._changed:
            if self._done:
                raise RuntimeError("Attempting to mark a completed Future as complete again. Note "
                                   "that a Future can only be marked completed once.")
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for callback in callbacks:
            callback(self)

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """The future of what `callback` makes of this one when it is complete."""
        following: Future[S] = Future()

        def run(done: Future[T]) -> None:
            try:
                made = callback(done)
            except Exception as error:
                following.set_exception(RuntimeError(
                    "Got the following error when running the callback: "
                    f"{type(error).__name__}: {error}").with_traceback(error.__traceback__))
            else:
                following.set_result(made)

        self._when_done(run)
        return following

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call a function with this future when it is complete; what it raises is reported."""

        def run(done: Future[T]) -> None:
            try:
                callback(done)
            except Exception as error:
                warnings.warn(f"a callback of a future raised {type(error).__name__}: {error}",
                              stacklevel=2)

        self._when_done(run)

    def _when_done(self, run: Callable[[Future[T]], None]) -> None:
        with self._changed:
            if not self._done:
                self._callbacks.append(run)
                return
        run(self)


def collect_all(futures: list[Future]) -> Future[list[Future]]:
    """The future of the whole list, complete when all of them are; an exception of one is its."""
    together: Future[list[Future]] = Future()
    lock, left = threading.Lock(), len(futures)

    def one_more(_: Future) -> None:
        nonlocal left
        with lock:
            left -= 1
            if left:
                return
        failed = next((f._error for f in futures if f._error is not None), None)
        if failed is None:
            together.set_result(futures)
        else:
            together._complete(None, failed)

    if not futures:
        together.set_result(futures)
    for future in futures:
        future._when_done(one_more)
    return together


def wait_all(futures: list[Future]) -> list:
    """The results of all, or the first exception."""
    return [future.wait() for future in collect_all(futures).wait()]
