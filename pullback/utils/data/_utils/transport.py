"""Objects from one process to another: large arrays through shared memory, the rest as a pickle.

The sender puts all large buffers of an object into one anonymous piece of memory and sends its file
descriptor; the receiver maps it, and the arrays lie there.  Nothing has a name, so nothing is left
over when a process dies.  Messages stay small, so that a sender does not wait for its receiver.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import struct
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from ....core.handle import Tensor, is_composed
from ....interp.operator_dispatch import Outer
from ....memory.reading import concrete
from ....memory.shared import pass_on, taken, unnamed
from ....tensor.values import _rebuild

ALIGNMENT = 64
SMALL = 1 << 16  # bytes of buffers that go with the message: cheaper than mapping memory
_HEAD = struct.Struct("<qQI?")  # number, bytes and count of buffers, are they in shared memory?


class _Pickler(pickle.Pickler):
    """Sends of a tensor what it shows, not all of the memory that it is a part of."""

    def reducer_override(self, obj):
        if not isinstance(obj, Tensor):
            return NotImplemented
        if not obj.is_leaf and obj.requires_grad:
            raise RuntimeError("Cowardly refusing to serialize non-leaf tensor which "
                               "requires_grad: history does not cross from one process to "
                               "another\n  Fix: detach() it in the dataset or collate_fn")
        if obj._payload.__class__ is Outer or is_composed(obj):
            return NotImplemented  # it says itself what it is made of
        array = concrete(obj, "sending it to another process")
        return _rebuild, (type(obj), array, obj.requires_grad, dict(obj.__dict__))


def _places(sizes) -> list[int]:
    """Where each buffer begins, and where the last one ends."""
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + size + -size % ALIGNMENT)
    return starts


def send(connection: Connection, number: int, value: Any) -> None:
    """Send a number and an object; arrays in it are copied once."""
    buffers: list[memoryview] = []

    def keep(buffer: pickle.PickleBuffer) -> None:
        buffers.append(buffer.raw())

    with io.BytesIO() as out:
        _Pickler(out, 5, buffer_callback=keep).dump(value)
        body = out.getvalue()
    sizes = [buffer.nbytes for buffer in buffers]
    starts = _places(sizes)
    total = starts[-1]
    shared = total > SMALL and os.name == "posix"
    head = _HEAD.pack(number, total, len(sizes), shared)
    head += struct.pack(f"<{len(sizes)}Q", *sizes) + body
    if not shared:
        memory = bytearray(total)
        _fill(memory, buffers, starts)
        connection.send_bytes(head + memory)
        return
    file = unnamed(total)
    try:
        with mmap.mmap(file, total) as memory:
            _fill(memory, buffers, starts)
        connection.send_bytes(head)
        pass_on(connection, file)
    finally:
        os.close(file)


def _fill(memory, buffers: list[memoryview], starts: list[int]) -> None:
    for buffer, start in zip(buffers, starts):
        memory[start : start + buffer.nbytes] = buffer


def receive(connection: Connection) -> tuple[int, Callable[[], Any]]:
    """The next number, and a function that makes the object which came with it."""
    message = memoryview(connection.recv_bytes())
    number, total, count, shared = _HEAD.unpack_from(message)
    sizes = struct.unpack_from(f"<{count}Q", message, _HEAD.size)
    body = message[_HEAD.size + 8 * count :]
    if shared:
        file = taken(connection)
        try:
            memory = mmap.mmap(file, total)
        finally:
            os.close(file)
    else:
        body, memory = body[: len(body) - total], bytearray(body[len(body) - total :])
    buffers = [
        np.frombuffer(memory, np.uint8, size, start) if size else bytearray()
        for size, start in zip(sizes, _places(sizes))
    ]
    return number, lambda: pickle.loads(body, buffers=buffers)
