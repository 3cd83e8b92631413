"""Anomaly detection: a backward that fails or gives NaN is reported with its forward line.

Nodes always know the line that made them, so that this costs nothing while computing forward.
`../debug.py` looks at more, forward included.  Read next: `engine.py` (`WATCH`).
"""

from __future__ import annotations

import functools
import sys
import threading
import warnings

import numpy as np

from .. import errors
from ..array.fake import Fake
from ..core.handle import Box, Tensor
from ..threads.state import renewed, sequence, state
from . import engine


def array_of(t) -> np.ndarray | None:
    """The array behind a handle through all transforms; None where there is none."""
    data = t._payload if isinstance(t, Tensor) else t
    while isinstance(data, Box):
        if type(data) is Fake or not hasattr(data, "inner"):
            return None
        data = data.inner._payload
    return data if isinstance(data, np.ndarray) else None


def source_line(where: tuple | None) -> str:
    """The text of the user's line, for a message."""
    import linecache

    if where is None:
        return ""
    name, _, number = errors.describe_place(where).rpartition(":")
    text = linecache.getline(where[0].co_filename, int(number)).strip()
    return f"{name}:{number}: {text}" if text else ""


class Watcher:
    """Looks at the nodes of a sweep."""

    def before(self, node, grads: list) -> None:
        """A node is about to run."""

    def done(self) -> None:
        """It has run or raised; what follows is about its result."""

    def after(self, node, grads: list, needs, results) -> None:
        """A node has run."""

    def failed(self, node, error: Exception) -> None:
        """A node has raised."""

    def applies(self) -> bool:
        """Is this thread meant?"""
        return True


_watchers: list[Watcher] = []
_lock = renewed(threading.Lock())


def watch(watcher: Watcher) -> None:
    """Have a watcher look at every node from now on."""
    with _lock:
        _watchers.append(watcher)
        engine.WATCH = _watched


def unwatch(watcher: Watcher) -> None:
    """Stop it; without watchers a sweep does not look."""
    with _lock:
        if watcher in _watchers:
            _watchers.remove(watcher)
        if not _watchers:
            engine.WATCH = None


def _watched(node, grads: list, needs):
    watchers = [w for w in _watchers if w.applies()]
    for w in watchers:
        w.before(node, grads)
    try:
        results = node.apply(grads, needs)
    except Exception as error:
        for w in watchers:
            w.failed(node, error)
        raise
    finally:
        for w in watchers:
            w.done()
    for w in watchers:
        w.after(node, grads, needs, results)
    return results


def _warn(text: str) -> None:
    """A warning beside an error: printed where warnings are errors themselves."""
    try:
        warnings.warn(text, UserWarning, stacklevel=2)
    except UserWarning:
        print(text, file=sys.stderr)


def _report(node) -> str:
    """Warn of a node that fails, then of those whose backward made it; returns the first text."""
    text = said = f"Error detected in {_made_at(node)}"
    while node is not None:
        _warn(said)
        node = node.__dict__.get("_made_by")
        said = "" if node is None else f"Previous calculation was induced by {_made_at(node)}"
    return text


def _made_at(node) -> str:
    line = source_line(node.where) or errors.describe_place(node.where)
    return f"{node.name()}, the gradient of the operation at {line}"


def _adopt(parent, results, first: int) -> None:
    """Tell nodes that a backward made (those numbered from `first`) which node it was."""
    todo = [r._edge for r in results if r is not None and r._edge is not None]
    while todo:
        node = engine.node_of(todo.pop())
        if node is not None and node.seq > first and "_made_by" not in node.__dict__:
            node.__dict__["_made_by"] = parent
            todo += [e for e in node.edges if e is not None]


class _Anomaly(Watcher):
    """Reports the forward line of a backward that raises, or gives NaN."""

    check_nan = True

    def __init__(self) -> None:
        self.running = threading.local()

    def before(self, node, grads: list) -> None:
        self.running.first = sequence()

    def failed(self, node, error: Exception) -> None:
        if not getattr(error, "_pullback_noted", False):
            error.add_note(_report(node))
            error._pullback_noted = True  # an outer sweep has nothing to add

    def after(self, node, grads: list, needs, results) -> None:
        if state.task is not None and state.task.create:
            _adopt(node, results, self.running.first)
        if not self.check_nan:
            return
        for i, g in enumerate(results):
            array = None if g is None else array_of(g)
            if array is None or array.dtype.kind not in "fcV" or not np.isnan(array).any():
                continue
            index = tuple(int(k) for k in np.argwhere(np.isnan(array))[0])
            _report(node)
            raise errors.NotFinite(
                errors.text(
                    f"Function '{node.name()}' returned nan values in its {i}th output: the "
                    f"gradient of the operation at {errors.describe_place(node.where)}",
                    [
                        source_line(node.where),
                        f"nan at index {list(index)}, {int(np.isnan(array).sum())} in all; "
                        f"shape {list(array.shape)}",
                    ],
                    "pullback.debug.nans() shows the values that it came from, and why",
                )
            )


_anomaly = _Anomaly()
_enabled = False


def _set(enabled: bool, check_nan: bool) -> None:
    global _enabled
    if enabled and not _enabled:
        watch(_anomaly)
    elif _enabled and not enabled:
        unwatch(_anomaly)
    _enabled = enabled
    _anomaly.check_nan = check_nan


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly detection."""
    _set(bool(enabled), bool(check_nan))


def is_anomaly_enabled() -> bool:
    """Is anomaly detection on?"""
    return _enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Does anomaly detection look for NaN?"""
    return _anomaly.check_nan


class set_detect_anomaly:
    """Switch anomaly detection; acts at once, and as a context manager restores on exit."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.before = _enabled, _anomaly.check_nan
        _set(bool(mode), bool(check_nan))

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc) -> None:
        _set(*self.before)


class detect_anomaly:
    """Inside, a backward that raises or gives NaN is reported with its forward line."""

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        self.before: list = []
        warnings.warn("Anomaly Detection has been enabled: every backward looks for NaN, which "
                      "takes time; for debugging only.", UserWarning, stacklevel=2)

    def __enter__(self) -> None:
        self.before.append((_enabled, _anomaly.check_nan))
        _set(True, self.check_nan)

    def __exit__(self, *exc) -> None:
        _set(*self.before.pop())

    def __call__(self, function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return wrapped
