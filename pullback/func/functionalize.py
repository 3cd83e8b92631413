"""`functionalize`: a function without writes, and on demand without views."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import errors
from ..core.handle import Tensor
from ..interp.functionalize import Functionalize
from ..memory.assign import assign
from ..memory.views import current
from ..pytree import tree_map
from ..table.packets import ops

_REMOVED = ("mutations", "mutations_and_views")


def functionalize(func: Callable, *, remove: str = "mutations") -> Callable:
    """The same function, made of operators that write to nothing.

    `remove="mutations_and_views"` makes views copies, too.  What the function does to its arguments
    is done to them afterwards, at once.
    """
    if remove not in _REMOVED:
        raise errors.RefusedValue(
            f"functionalize(f, remove='mutations'): expected one of {_REMOVED}, got {remove!r} "
            f"({errors.user_line()})")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given: list[tuple[Tensor, Tensor, Any]] = []

        def enter(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            for source, t, _ in given:
                if source is value:
                    return t
            t = level.wrap(value)
            given.append((value, t, t._payload))
            return t

        with Functionalize(remove != "mutations") as level:
            lifted = tree_map(enter, args), tree_map(enter, kwargs)
            out = func(*lifted[0], **lifted[1])
            out = tree_map(
                lambda v: level.unwrap(current(v)) if isinstance(v, Tensor) else v, out)
            changed = [(source, level.unwrap(current(t)))
                       for source, t, box in given if current(t)._payload is not box]
        for source, new in changed:
            if new._link is not None and new._link.base is _root(source):  # it only turned
                ops.as_strided_(source, new.shape, new.stride(), new.storage_offset())
                continue
            if tuple(source.shape) != tuple(new.shape):
                source.resize_(tuple(new.shape))
            assign(source, new)
        return out

    return wrapped


def _root(t: Tensor) -> Tensor:
    """The tensor that another one is a view of, or itself."""
    return t if t._link is None or t._link.apart else t._link.base
