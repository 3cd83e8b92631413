"""The box that most interpreters use: an inner handle of a lower level plus the owner."""

from __future__ import annotations

import copy
import math

from ..array.lazy import marks_of
from ..core.handle import Box, Tensor, is_buffer, make
from ..core.tape import Accumulate, level_own
from ..threads.state import state


class Wrapped(Box):
    """A handle of a lower level, owned by an interpreter."""

    __slots__ = ("inner", "interp")

    def __init__(self, interp, inner: Tensor):
        self.interp, self.inner = interp, inner

    shape = property(lambda self: self.inner._payload.shape)
    dtype = property(lambda self: self.inner._payload.dtype)
    ndim = property(lambda self: self.inner._payload.ndim)
    strides = property(lambda self: self.inner._payload.strides)
    offset = property(lambda self: self.inner.storage_offset() * self.dtype.itemsize)
    size = property(lambda self: math.prod(self.shape))
    marks = property(lambda self: marks_of(self.inner._payload))

    def rewritten(self, new, everywhere):
        if new.__class__ is not self.__class__ or new.interp is not self.interp:
            return new
        inner = self._inner_rewritten(new.inner, everywhere)
        if inner is new.inner:
            return new
        made = copy.copy(new)
        made.inner = inner
        return made

    def _inner_rewritten(self, new: Tensor, everywhere: bool) -> Tensor:
        old = self.inner
        data = new._payload if is_buffer(old._payload) else old._payload.rewritten(
            new._payload, everywhere)
        keeps = everywhere or not state.record[level_own(old._payload)]
        edge = old._edge if keeps else new._edge
        return new if data is new._payload and edge is new._edge else make(data, edge)

    def concrete(self, handle: Tensor, what: str) -> Tensor:
        """The handle below, where values may be looked at."""
        return self.inner

    def describe(self, handle: Tensor) -> str:
        """How the handle prints."""
        level = self.interp.level if self.interp.alive else -2  # as PyTorch marks it
        return f"{self.interp.label}(lvl={level}, value={self.inner!r})"


def map_tensors(function, value):
    """Apply a function to all handles in a value (lists and tuples included)."""
    if isinstance(value, Tensor):
        return function(value)
    if type(value) in (list, tuple):
        return type(value)([map_tensors(function, v) for v in value])
    if isinstance(value, tuple):  # a named tuple of results
        return type(value)(*[map_tensors(function, v) for v in value])
    return value


def map_flat(function, flat) -> tuple:
    """Apply a function to all handles among flat arguments."""
    return tuple([
        function(v) if isinstance(v, Tensor)
        else map_tensors(function, v) if isinstance(v, (list, tuple)) else v for v in flat])


def lower(handle: Tensor) -> None:
    """Give a handle the value and the history that it has one level below; a leaf stays one."""
    inner = handle._payload.inner
    leaf = type(handle._edge) is Accumulate
    handle._payload, handle._edge = inner._payload, Accumulate(handle) if leaf else inner._edge


def snapshot(t: Tensor) -> Tensor:
    """A handle with the same data and history, safe from later rebinding."""
    return make(t._payload, t._edge)
