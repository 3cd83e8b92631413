"""Copies and pickles of tensors: tensors that share memory share a copy of it.

A tensor is copied and pickled by its storage (`storage.py`), a wrapper by its own class.
"""

from __future__ import annotations

import copy
import copyreg
import weakref

import numpy as np

from .. import errors
from ..array import device as dev
from ..array import dtype as dt
from ..array.fake import Fake
from ..array.lazy import marks_of, remarked, resolved
from ..core.handle import Box, Tensor, cell_of, is_wrapper_data, meta_of
from ..core.tape import Accumulate
from ..memory import sending
from ..memory import storages as memory
from ..storage import untyped_storage
from ..table.packets import ops
from ..threads.asking import Bare
from ..threads.state import state


def deepcopy(self: Tensor, memo: dict) -> Tensor:
    """A copy of a leaf; tensors that share memory share a copy of it."""
    if id(self) in memo:
        return memo[id(self)]
    if not (self._edge is None or isinstance(self._edge, Accumulate)):
        raise errors.NoGraph(
            errors.text(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                f"protocol at the moment ({errors.user_line(2)})",
                cure="detach() it first",
            )
        )
    if is_wrapper_data(self._payload):
        return _wrapper_copied(self, memo)
    with Bare():
        return _copied(self, memo)


def _wrapper_copied(self: Tensor, memo: dict) -> Tensor:
    """A copy of a wrapper: its class knows how, by its clone()."""
    recording, state.record[:] = state.record[:], [False] * len(state.record)
    try:
        new = memo[id(self)] = self.clone()
    finally:
        state.record[:] = recording
    if type(new) is not type(self):
        raise RuntimeError(
            f"deepcopy() works for wrappers for which cloning returns another instance of the same "
            f"subclass, but clone() "
            f"of {type(self).__name__} gave a {type(new).__name__} ({errors.user_line(2)})")
    for name, value in self.__dict__.items():  # tensors inside are clone's, and so is the rest
        if name not in new.__dict__:
            new.__dict__[name] = copy.deepcopy(value, memo)
    if self.requires_grad:
        new.requires_grad_()
    if self.grad is not None:
        meta_of(new).grad = copy.deepcopy(self.grad, memo)
    return new


def _copied(self: Tensor, memo: dict) -> Tensor:
    new = object.__new__(type(self))
    new._edge = new._link = new._cell = new._record = None
    plain = self.data  # without a tangent
    data = plain._payload
    if isinstance(data, Box):
        new._payload = ops.clone(plain)._payload
    else:
        owner = memory.owner_of(plain)
        copied = copy.deepcopy(untyped_storage(plain), memo)._owner
        xp, start = dev.lookup(data)[1], dev.address(data) - dev.address(owner)
        array = memory.within(xp, copied, data.dtype, data.shape, data.strides, start)
        new._payload = resolved(remarked(array, marks_of(data)))
    memo[id(self)] = new
    if self._edge is not None:
        new._edge = Accumulate(new)
    cell_of(new).version = 1  # PyTorch fills the copy by a write
    if self.grad is not None:
        meta_of(new).grad = copy.deepcopy(self.grad, memo)
    set_attributes(new, copy.deepcopy(attributes_of(self), memo))
    return new


def attributes_of(t: Tensor) -> dict | tuple[dict, dict]:
    """What a user's class has put into a tensor: a dictionary, and slots where it has any."""
    own = [n for n in copyreg._slotnames(type(t)) if n not in Tensor.__slots__]
    named = dict(t.__dict__)
    named.pop("_ragged", None)  # what is known of offsets follows from them (`nested/ragged.py`)
    return (named, {n: getattr(t, n) for n in own if hasattr(t, n)}) if own else named


def set_attributes(t: Tensor, state: dict | tuple[dict, dict]) -> None:
    """Put them into another one."""
    named, slots = state if isinstance(state, tuple) else (state, {})
    t.__dict__.update(named)
    for name, value in slots.items():
        setattr(t, name, value)


def rebuild(cls, untyped, dtype, offset, size, stride, requires_grad, extra, marks=0) -> Tensor:
    """A tensor out of its pickled form."""
    new = _made_of(cls, remarked(np.empty(0, dtype.np), marks), requires_grad, extra)
    memory.show(new, untyped._owner, size, stride, offset)
    return new


def _made_of(cls, data, requires_grad, extra) -> Tensor:
    new = object.__new__(cls)
    new._edge = new._link = new._cell = new._record = None
    new._payload = data
    if requires_grad:
        new._edge = Accumulate(new)
    set_attributes(new, extra)
    return new


def reduce(self: Tensor) -> tuple:
    """How to pickle a tensor: its storage, which tensors that share it have in common."""
    if is_wrapper_data(self._payload):
        box = self._payload
        facts = box.dtype, tuple(box.shape), tuple(box.strides), box.device_name, box.offset
        return rebuild_wrapper, (type(self), *facts, self.requires_grad, attributes_of(self))
    with Bare():
        return _reduced(self)


def rebuild_wrapper(cls, dtype, size, strides, device, offset, requires_grad, extra) -> Tensor:
    """A wrapper out of its pickled form."""
    item = dtype.itemsize
    new = Tensor._make_wrapper_subclass(
        cls, size, [s // item for s in strides], offset // item, dtype=dt.of(dtype), device=device)
    set_attributes(new, extra)
    return new.requires_grad_() if requires_grad else new


def _reduced(self: Tensor) -> tuple:
    plain = self.data  # without a tangent
    if not isinstance(plain._payload, Box) and plain.device.type == "cpu":
        place = (plain.storage_offset(), tuple(plain.shape), plain.stride())
        stored = untyped_storage(plain)
        stored.asker = weakref.ref(self)  # `plain` goes
        marks = marks_of(plain._payload)
        return rebuild, (type(self), stored, self.dtype, *place, _sent_flag(self),
                         attributes_of(self), *([marks] if marks else ()))  # fmt: skip
    if type(plain._payload) is Fake:
        return _made_of, (type(self), plain._payload, self.requires_grad, attributes_of(self))
    array = plain.cpu().numpy()
    return _on_device, (type(self), array, str(self.device), self.requires_grad,
                        attributes_of(self))  # fmt: skip


def _sent_flag(self: Tensor):
    """Does it require grad?  A history does not come along, which some picklers refuse."""
    return self.requires_grad if self.is_leaf else sending.Severed()


def _on_device(cls, array, device, requires_grad, extra) -> Tensor:
    return _made_of(cls, dev.transfer(array, dev.Device(device)), requires_grad, extra)


def setstate(self: Tensor, state: tuple | dict) -> None:
    """Take over attributes, or what old programs pickled: what `set_` takes, or data and flags."""
    if isinstance(state, dict):
        self.__dict__.update(state)
        return
    if not self.is_leaf:
        raise errors.NoGraph(
            f"__setstate__ can be only called on leaf Tensors ({errors.user_line(2)})"
        )
    if len(state) == 4:
        self.set_(*state)
        return
    if len(state) == 5:
        self.data, _, _, requires_grad, _ = state
    else:
        requires_grad, _, _ = state
    self.requires_grad = requires_grad
