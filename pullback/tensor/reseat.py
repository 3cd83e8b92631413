"""`set_` and `resize_`: a tensor shows other memory, or another part of its own.

Plain tensors are a matter of `memory/storages.py`; inside of transforms and captures, where memory
is a matter of bookkeeping, they become views and aliases.  Read `../storage.py` for storages.
"""

from __future__ import annotations

import math

import numpy as np

from .. import errors
from ..core import events, surface
from ..core.handle import Box, Tensor, make
from ..core.tape import Accumulate, Refusal, make_node
from ..memory import storages as memory
from ..memory.assign import rebind
from ..memory.versions import bump
from ..memory.views import found_anew, may_write
from ..storage import TypedStorage, is_storage, untyped
from ..table.packets import ops
from ..threads.state import state


def set_(self: Tensor, source=None, storage_offset=0, size=None, stride=None) -> Tensor:
    """Let this tensor show other memory: that of a tensor or of a storage, or none."""
    if isinstance(source, TypedStorage) and source.dtype is not self.dtype:
        raise errors.DTypeError(
            f"Expected a Storage of type {self.dtype} or an UntypedStorage, but got type "
            f"{source.dtype} ({errors.user_line()})"
        )
    if isinstance(source, Tensor) and source.dtype is not self.dtype:
        raise errors.DTypeError(
            f"Could not set tensor of type {source.dtype} to a tensor of type {self.dtype} "
            f"({errors.user_line()})"
        )
    if source is not None and not isinstance(source, Tensor) and not is_storage(source):
        raise errors.ArgumentError(
            errors.text(
                f"set_() received an invalid combination of arguments ({errors.user_line()}): "
                f"got {type(source).__name__}",
                cure="give a tensor, or a storage with offset, size and stride, or nothing",
            )
        )
    if source is None and isinstance(self._payload, Box):
        source = ops.empty((0,), dtype=self.dtype, device=self.device)
    if isinstance(source, Tensor) and size is None and isinstance(self._payload, Box):
        return _set_in_capture(self, source) if _captured(self) else _set_boxed(self, source)
    memory.owner_of(self, "set_")  # refuses transforms
    tracked = self._edge is not None or isinstance(source, Tensor) and source._edge is not None
    may_write(self, tracked, 0, True)
    if source is None:
        owner, size, stride, storage_offset = np.empty(0, np.uint8), (0,), (1,), 0
    elif isinstance(source, Tensor):
        owner = memory.owner_of(source)
        if size is None:
            size, stride, storage_offset = source.shape, source.stride(), source.storage_offset()
    else:
        owner = untyped(source)._owner
        if size is None:
            size, stride = (memory.nbytes(owner) // self.dtype.itemsize,), (1,)
    size = (size,) if isinstance(size, int) else tuple(size)
    stride = memory.row_major(size) if not stride and size else tuple(stride or ())
    memory.show(self, owner, size, stride, storage_offset)
    bump(self)
    if tracked and state.record[0]:
        _without_derivative(self, "set_", source if isinstance(source, Tensor) else None)
    elif self._edge is not None:
        self.data = make(self._payload)  # the place where gradients arrive fits the new shape
        if isinstance(self._edge, Accumulate):  # graphs of the old memory lead to the old place
            hooked, self._edge = self._edge.hooks, Accumulate(self)
            self._edge.hooks = hooked
    return self


def _without_derivative(t: Tensor, name: str, other: Tensor | None) -> None:
    """The history of a tensor after an operator whose derivative is not known: a refusal."""
    edges = tuple([x._edge for x in (t, other) if x is not None and x._edge is not None])
    node = make_node(Refusal, None, edges, (None,) * len(edges), (), 0)
    node.overload = _Named(name)
    t._edge = node


class _Named:
    def __init__(self, name: str):
        self.name = name


def _captured(t: Tensor) -> bool:
    """Does a tensor belong to a capture that follows memory?"""
    interp = getattr(t._payload, "interp", None)
    return interp is not None and interp.adopts and (t._link is None or t._link.apart)


def _set_in_capture(self: Tensor, source: Tensor) -> Tensor:
    """`set_` where memory is a matter of bookkeeping: a detached alias from here on."""
    interp = self._payload.interp
    tracked = self._edge is not None or source._edge is not None
    if tracked and state.record[interp.level]:
        raise interp.unfollowed(errors.text(
            f"set_() inside of a captured function has other mutations that we cannot follow: "
            f"it takes part in autograd ({errors.user_line(2)})",
            f"tensor: {self.dtype.name}{list(self.shape)}, requires_grad={self.requires_grad}",
            "call it under no_grad()"))
    may_write(self, tracked, interp.level, True)
    interp.event(events.TOOK_MEMORY, self, source)
    return self


def resize_(self: Tensor, size: tuple, memory_format=None) -> Tensor:
    """Give a tensor another shape in its memory, which grows if it must."""
    size = tuple(size)
    if isinstance(self._payload, Box):
        return _resize_boxed(self, size)
    if state.mode:
        state.stack[state.mode].event(events.RESHAPES, self)
    owner = memory.owner_of(self, "resize_")
    _countable(size, self._payload.dtype.itemsize)
    changed = size != tuple(self._payload.shape)
    if changed:
        memory.show(self, owner, size, memory.row_major(size), self.storage_offset())
    kind = str(memory_format).rpartition(".")[2]
    if kind in ("channels_last", "channels_last_3d"):
        rank = 4 if kind == "channels_last" else 5
        if len(size) != rank:
            raise errors.ShapeError(
                f"required rank {rank} tensor to use {kind} format ({errors.user_line()})"
            )
        n, c, *rest = size
        inner = memory.row_major((n, *rest, c))
        stride = (inner[0], inner[-1], *inner[1:-1])
        memory.show(self, memory.owner_of(self), size, stride, self.storage_offset())
    if changed:
        bump(self)
    return self


def _countable(size: tuple, itemsize: int) -> None:
    """Refuse sizes whose strides or bytes are no 64-bit numbers."""
    steps = math.prod(max(int(n), 1) for n in size[1:])
    whole = math.prod(size) * itemsize
    if steps >= 2**63 or whole >= 2**63:
        what = "Stride" if steps >= 2**63 else "Storage size"
        raise errors.ShapeError(
            f"{what} calculation overflowed with sizes={list(size)} ({errors.user_line()})")


def _resize_boxed(self: Tensor, size: tuple) -> Tensor:
    """`resize_` inside of a transform: a view of what is there, or a larger tensor."""
    count, strides = math.prod(size), memory.row_major(size)
    link = self._link
    held = (self if link is None else link.base).numel()
    if size == tuple(self.shape):
        return self
    if link is None and _captured(self) and count < held and (
            self._payload.interp.memory.written_input(self)):
        raise self._payload.interp.unfollowed(errors.text(
            f"resize_() of an input that was written before ({errors.user_line()}): what it does "
            "not show any more would be lost", f"from {list(self.shape)} to {list(size)}",
            "resize it before it is written, or write a clone()"))
    if count + (0 if link is None else self.storage_offset()) <= held:
        return surface.inplace_view(ops.as_strided.default, (self, size, strides, None))
    if link is not None:
        text = errors.text(
            "Attempted to resize a view tensor to a larger size. This is not allowed in the "
            f"functionalization pass, nor in other transforms and captures ({errors.user_line()})",
            f"from {list(self.shape)} to {list(size)}", "resize a clone() of it")
        interp = getattr(self._payload, "interp", None)
        kind = errors.ViewWriteError
        raise kind(text) if interp is None else interp.unfollowed(text, kind)
    flat = ops.as_strided(self, (held,), (1,), 0)
    more = ops.zeros((count - held,), dtype=self.dtype, device=self.device)
    larger = ops.cat([flat, more], 0).reshape(size)
    if _captured(self) and self._edge is None:
        self._payload.interp.event(events.TOOK_MEMORY, self, larger)
        self._payload.interp.memory.enlarged.add(id(self))
    else:
        rebind(self, larger)
        bump(self)
    return self


def _set_boxed(self: Tensor, source: Tensor) -> Tensor:
    """`set_` inside of a transform: the tensor is another view of the source from now on."""
    if self._link is None:
        found_anew(self)  # its views keep the memory
    shown = ops.alias(source)
    self._payload, self._link, self._cell = shown._payload, shown._link, shown._cell
    bump(self)
    return self
