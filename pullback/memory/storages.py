"""Memory that several tensors show: its size, moving it, and who shows it.

An array knows the array that owns its memory, so tensors need no storage object until somebody
asks for one.  Giving memory another size moves it; then every handle that shows it is found and
pointed to the new place.  Read next: `../storage.py`, what users see of this.
"""

from __future__ import annotations

import gc
import math
import sys
import weakref

import numpy as np

from .. import errors
from ..array import device as dev
from ..array.fake import Fake
from ..core.handle import Box, Tensor, make
from .shared import is_shared, shared

_facts: dict[int, tuple] = {}  # id of an owner -> (weak reference to it, what is said about it)


def owner_of(t: Tensor, what: str = "untyped_storage()"):
    """The array that owns the memory of a tensor; transforms have none."""
    data = t._data
    if isinstance(data, Box) and what == "untyped_storage()":
        while getattr(getattr(data, "interp", None), "continues_tape", False):
            data = data.inner._data  # a dual has the memory of its primal
    if isinstance(data, Box):
        raise errors.TransformError(
            errors.text(
                f"{what} is about the memory of a tensor, but inside of a transform or a captured "
                f"function there is none ({errors.user_line(2)})",
                f"tensor: {t.dtype.name}{list(t.shape)}",
                "use reshape(), cat() or clone() instead",
            )
        )
    return dev.owner(data)


def root_of(t: Tensor):
    """The array, real or fake, that owns the memory of a tensor."""
    data = t._data
    return (data.base or data) if type(data) is Fake else owner_of(t)


def _about(owner) -> dict:
    """What is said about an owner, beside its bytes; made on demand."""
    key = id(owner)
    found = _facts.get(key)
    if found is None:
        ref = weakref.ref(owner, lambda _: _facts.pop(key, None))
        found = _facts[key] = (ref, {})
    return found[1]


def _said(owner, what: str):
    found = _facts.get(id(owner))
    return None if found is None else found[1].get(what)


def nbytes(owner) -> int:
    """The size of memory in bytes, as users count it."""
    size = _said(owner, "size")
    return owner.nbytes if size is None else size


def hold_size(owner) -> None:
    """Somebody else shows this memory too, so that it must not move."""
    if id(owner) not in _facts or not _said(owner, "held"):
        _about(owner)["held"] = True


def is_held(owner) -> bool:
    """Must this memory stay where it is?"""
    return bool(_said(owner, "held")) or not owner.flags.owndata and owner.base is not None


def storage_object(owner, make):
    """The object that users know this memory by: one, as long as somebody holds it."""
    about = _about(owner)
    found = about.get("object")
    found = found and found()
    if found is None:
        found = make(owner)
        about["object"] = weakref.ref(found)
    return found


def showing(owner) -> list[Tensor]:
    """All handles whose arrays lie in this memory."""
    found = []
    for thing in gc.get_objects():
        if issubclass(type(thing), Tensor):  # isinstance would ask strangers for their __class__
            data = getattr(thing, "_data", None)
            if data is not None and not isinstance(data, Box) and dev.owner(data) is owner:
                found.append(thing)
    return found


def refuse_held(owner) -> None:
    """Refuse to move memory that has to stay where it is."""
    if is_held(owner):
        raise errors.ShapeError(errors.text(
            f"Trying to resize storage that is not resizable ({errors.user_line(2)}): an array "
            "of another library shows the same memory", f"storage of {nbytes(owner)} bytes",
            "clone() the tensor first"))


def resize(owner, size: int) -> object:
    """Give memory another size: the new owner, with the old bytes as far as they fit.

    New bytes are zero.  Tensors that reach beyond the new size show zeros there.
    """
    refuse_held(owner)
    handles = showing(owner)
    start = dev.address(owner)
    reach = max((dev.address(t._data) - start + _extent(t._data) for t in handles), default=0)
    xp = dev.lookup(owner)[1]
    new = xp.zeros(max(size, reach), np.uint8)
    kept = min(nbytes(owner), size)
    if kept:
        new[:kept] = as_bytes(owner)[:kept]
    return _moved(owner, new, handles, size if new.nbytes != size else None)


def share(owner, handles: list | None = None) -> object:
    """Move memory to where other processes can have it, too; handles: all that show it."""
    if is_shared(owner):
        return owner
    return _moved(owner, shared(as_bytes(owner)), showing(owner) if handles is None else handles,
                  _said(owner, "size"))  # fmt: skip


def share_shown(t: Tensor) -> None:
    """Share the memory of a tensor, without a look at every object if it is the only one."""
    alone = _holders(t) == _holders(make(np.empty(0)))
    share(owner_of(t), [t] if alone else None)


def _holders(t: Tensor) -> int:
    """How many hold the array of a handle, beside the storage object that users know."""
    if t._data.base is not None:
        return -1
    user = _said(t._data, "object")
    return sys.getrefcount(t._data) - (user is not None and user() is not None)


def _moved(owner, new, handles: list, size: int | None):
    start, xp = dev.address(owner), dev.lookup(owner)[1]
    shown: dict[int, object] = {}  # arrays that several handles hold stay common
    for t in handles:
        data = t._data
        if id(data) not in shown:
            shown[id(data)] = within(xp, new, data.dtype, data.shape, data.strides,
                                     dev.address(data) - start)  # fmt: skip
    for t in handles:
        t._data = shown[id(t._data)]
    if size is not None:
        _about(new)["size"] = size
    found = _said(owner, "object")
    user = found and found()
    if user is not None:
        user._owner = new
        _about(new)["object"] = weakref.ref(user)
    return new


def within(xp, owner, dtype, shape, strides, start: int):
    """An array of the given geometry (in bytes) in memory that another array owns."""
    if xp is np:
        return np.ndarray(shape, dtype, as_bytes(owner), start, strides)
    line = as_bytes(owner)[start:]
    line = line[: line.size // dtype.itemsize * dtype.itemsize].view(dtype)
    return xp.lib.stride_tricks.as_strided(line, shape, strides)


def as_bytes(owner):
    """The memory of an array that owns it, byte by byte."""
    if not owner.flags.c_contiguous:
        owner = owner.transpose(sorted(range(owner.ndim), key=lambda d: -owner.strides[d]))
    return owner.reshape(-1).view(np.uint8)


def _extent(data) -> int:
    """Bytes from the first element of an array to the end of the last."""
    if 0 in data.shape:
        return 0
    return data.itemsize + sum((n - 1) * s for n, s in zip(data.shape, data.strides))


def show(t: Tensor, owner, size: tuple, stride: tuple, offset: int) -> None:
    """Let a handle show other memory (strides and offset in elements), which grows if it must."""
    item = t._data.dtype.itemsize
    if offset < 0:
        raise errors.ShapeError(f"Tensor: invalid storage offset {offset} ({errors.user_line(2)})")
    if any(n < 0 for n in size) or any(s < 0 for s in stride) or len(size) != len(stride):
        raise errors.ShapeError(
            errors.text(
                f"sizes and strides must not be negative, and of one length "
                f"({errors.user_line(2)})",
                f"size {list(size)}, stride {list(stride)}",
            )
        )
    needed = 0
    if 0 not in size:
        needed = (offset + 1 + sum((n - 1) * s for n, s in zip(size, stride))) * item
    if needed > nbytes(owner):
        owner = resize(owner, needed)
    xp = dev.lookup(owner)[1]
    start = offset * item if needed else min(offset * item, nbytes(owner))
    steps = tuple([s * item for s in stride])
    t._data = within(xp, owner, t._data.dtype, tuple(size), steps, start)


def row_major(size) -> tuple:
    """Strides of memory without gaps, the last dim innermost, as PyTorch counts empty dims."""
    return tuple([math.prod([max(n, 1) for n in size[i + 1 :]]) for i in range(len(size))])
