"""Memory of tensors on its way to another process: shared, not copied.

A pickle of `multiprocessing` (an argument of a process, what goes through a queue, a pipe or a
pool) carries a file descriptor of the memory, which moves to where it can be shared if it is not
there yet; every other pickle carries the bytes.  The pickler of `multiprocessing` has a table of
its own, to which the two classes below are added as soon as that module is imported: a pickler
copies the table when it is made.

A process started by spawn inherits the descriptors.  All others fetch them from the sender when
they read the message (`descriptors.py`), so a sender that ends waits until they have.  The bytes go
with the message as well if they are few, in case that the sender was killed or that somebody joins
it before reading, or if it is about to end: then nobody shares the memory with it.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .. import errors
from . import storages as memory

SMALL = 1 << 15  # bytes that fit into a pipe beside the rest of a message


class Bytes:
    """The memory of a storage in a pickle."""

    __slots__ = ("storage",)

    def __init__(self, storage):
        self.storage = storage

    def __reduce__(self) -> tuple:
        return _copied(self)


class Severed:
    """True, for a tensor whose history stays behind; `multiprocessing` refuses to send it."""

    def __reduce__(self) -> tuple:
        return bool, (1,)


_REDUCTION = "multiprocessing.reduction"


def register(reduction: Any) -> None:
    """Add both classes to the table of the pickler of `multiprocessing`."""
    reduction.ForkingPickler.register(Bytes, _sent)
    reduction.ForkingPickler.register(Severed, _refused)


class _Finder:
    """Waits for the import of the module that has the pickler of `multiprocessing`."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname != _REDUCTION:
            return None
        import importlib.util

        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader:
    """The loader of that module, which registers the classes when it has run."""

    def __init__(self, loader: Any):
        self.loader = loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module) -> None:
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        register(module)


def _copied(given: Bytes) -> tuple:
    return _same, (given.storage._bytes().copy(),)


def _same(array):
    return array


def _refused(severed: Severed):
    raise errors.NoGraph(errors.text(
        "Cowardly refusing to serialize non-leaf tensor which requires_grad: history does not "
        "cross from one process to another",
        cure="detach() the tensor before it is sent"))


def _sent(given: Bytes) -> tuple:
    storage = given.storage
    if storage.device.type != "cpu":
        return _copied(given)
    memory.share(storage._owner)
    array = storage._owner
    from . import shared as shared_memory

    handle, copied = _handle(shared_memory.segment_of(array).file, array.nbytes)
    return received, (handle, array.nbytes, array.tobytes() if copied else None)


def _handle(file: int, size: int) -> tuple[Any, bool]:
    """What makes a descriptor in the process that reads this; should the bytes come with it?"""
    from multiprocessing import context, reduction

    from . import descriptors

    popen = context.get_spawning_popen()
    if popen is not None and popen.method == "spawn":
        return reduction.DupFd(file), False
    if descriptors.ending():
        return None, True
    ticket = descriptors.offer(file)  # the fork server, too, which inherits no more than 250
    return ticket, size <= SMALL or descriptors.ending()


def received(handle, size: int, copy: bytes | None) -> np.ndarray:
    """The memory that another process has sent."""
    from . import shared as shared_memory

    if handle is None:
        return shared_memory.shared(np.frombuffer(copy, np.uint8))
    try:
        file = handle.detach()
    except (OSError, EOFError) as error:
        if copy is not None:
            return shared_memory.shared(np.frombuffer(copy, np.uint8))
        raise errors.WorkerError(errors.text(
            "a tensor was sent by a process that has ended: its memory is gone "
            f"({errors.user_line()})", f"{size} bytes; {type(error).__name__}: {error}",
            "read the message before the sender is joined or terminated")) from None
    return shared_memory.mapped(file, size)


if _REDUCTION in sys.modules:
    register(sys.modules[_REDUCTION])
else:
    sys.meta_path.insert(0, _Finder())
