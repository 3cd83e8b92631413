"""Arrays in memory that processes share: `Tensor.share_memory_()` and tensors sent to a process.

The memory has no name, only file descriptors: a process that is forked has them, every other one
gets a descriptor with the pickle (`sending.py`).  The system takes the memory back when the last
process has let go of it, however that process ended.
"""

from __future__ import annotations

import mmap
import os
import sys
import weakref
from typing import Any

import numpy as np

from ..array.device import owner

_KEEPS_NO_COPY = {"trackfd": False} if sys.version_info >= (3, 13) else {}
_here: dict[tuple[int, int], weakref.ref] = {}  # device and inode -> the array that owns the memory


def unnamed(size: int) -> int:
    """A file descriptor of fresh memory that no name leads to."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("pullback")
    else:
        import tempfile  # with what it loads, a tenth of the time that the package takes to load

        with tempfile.TemporaryFile() as found:
            file = os.dup(found.fileno())
    os.ftruncate(file, size)
    return file


def pass_on(connection: Any, file: int) -> None:
    """Send a descriptor through a connection of `multiprocessing`, and wait for nobody.

    (`reduction.send_handle` of some versions waits until the other side has it.)
    """
    import socket

    with socket.socket(fileno=os.dup(connection.fileno())) as s:
        socket.send_fds(s, [b"d"], [file])


def taken(connection: Any) -> int:
    """The descriptor that comes next through a connection."""
    import socket

    with socket.socket(fileno=os.dup(connection.fileno())) as s:
        files = socket.recv_fds(s, 1, 1)[1]
    if not files:
        raise EOFError("the other side has ended")
    os.set_inheritable(files[0], False)
    return files[0]


class _Descriptor:
    """A file descriptor that is closed when nobody needs it any more."""

    def __init__(self, number: int):
        self.number = number

    def __del__(self, close=os.close):
        close(self.number)


class Segment(mmap.mmap):
    """Shared memory in this process, and the descriptor by which others may have it."""

    def __new__(cls, file: int, size: int) -> Segment:
        kept = _Descriptor(file)
        new = super().__new__(cls, file, max(size, 1), **_KEEPS_NO_COPY)
        new.descriptor = kept
        return new

    @property
    def file(self) -> int:
        """The number of the descriptor."""
        return self.descriptor.number


def mapped(file: int, size: int) -> np.ndarray:
    """The bytes behind a descriptor, which is taken over; memory that is here already, as it is."""
    facts = os.fstat(file)
    key = facts.st_dev, facts.st_ino
    found = _here.get(key)
    found = found and found()
    if found is not None:
        os.close(file)
        return found
    new = np.ndarray(size, np.uint8, Segment(file, size))
    _here[key] = weakref.ref(new, lambda ref: _here.get(key) is ref and _here.pop(key))
    return new


def shared(array: np.ndarray) -> np.ndarray:
    """The bytes of an array: themselves if other processes can have them, else a copy that can."""
    if is_shared(array):
        return array
    new = mapped(unnamed(max(array.nbytes, 1)), array.nbytes)
    new[...] = array
    return new


def segment_of(array) -> Segment | None:
    """The shared memory that an array lies in."""
    base = owner(array).base if isinstance(array, np.ndarray) else None
    return base if isinstance(base, Segment) else None


def is_shared(array) -> bool:
    """May other processes have this memory?"""
    return segment_of(array) is not None
