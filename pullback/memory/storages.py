"""Memory that several tensors show: its size, moving it, and who shows it.

An array knows the array that owns its memory, so tensors need no storage object until somebody
asks for one.  Nobody keeps a list of the handles that show an array: when memory has moved, each
goes to the new place when it is next looked at (`present`), and once nobody shows the old place
handles are what they were.  Read next: `../storage.py`, what users see of this.
"""

from __future__ import annotations

import math
import weakref
from functools import partial

import numpy as np

from .. import errors
from ..array import device as dev
from ..array.fake import Fake
from ..array.lazy import marks_of, remarked
from ..core.handle import Box, Tensor
from ..threads.state import count_for_all

_facts: dict[int, tuple] = {}  # id of an owner -> (weak reference to it, what is said about it)
# id of an owner that was left -> (weak reference to it, the new one, arrays in it that were met:
# id -> (weak reference, array in the new one))
left: dict[int, tuple] = {}
_slot = Tensor._payload


def owner_of(t: Tensor, what: str = "untyped_storage()"):
    """The array that owns the memory of a tensor; transforms have none."""
    data = t._payload
    if isinstance(data, Box) and what == "untyped_storage()":
        while getattr(getattr(data, "interp", None), "continues_tape", False):
            data = data.inner._payload  # a dual has the memory of its primal
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
    data = t._payload
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
    if _said(owner, "held"):
        return True
    return not (owner.flags.owndata or owner.base is None or _of_runtime(owner.base))


def _of_runtime(base) -> bool:
    """Is it the capsule of memory that compiled code or a kernel in C has allocated?"""
    return type(base).__name__ == "PyCapsule" and '"pullback.memory"' in repr(base)


def storage_object(owner, make, asker: Tensor | None = None):
    """The object that users know this memory by: one, as long as somebody holds it."""
    about = _about(owner)
    found = about.get("object")
    found = found and found()
    if found is None:
        found = make(owner)
        about["object"] = weakref.ref(found)
    if asker is not None:
        found.asker = weakref.ref(asker)  # often the only one who shows it
    return found


# memory that moves


def present(t: Tensor):
    """What a handle holds, while there is memory that has moved: the new place of its array."""
    data = _slot.__get__(t)
    while not isinstance(data, Box):
        owner = dev.owner(data)
        found = left.get(id(owner))
        if found is None:
            break
        data = _array_in(found, owner, data)
        _slot.__set__(t, data)
        of = getattr(t._link, "of", None)
        if of is not None and not isinstance(of, Box) and dev.owner(of) is owner:
            t._link.of = _array_in(found, owner, of)
    return data


_looked_at = property(present, _slot.__set__)


def _array_in(found: tuple, owner, data):
    """The array of new memory for one of the old; arrays that several handles hold stay common."""
    _, new, met = found
    known, array = met.get(id(data), (None, None))
    if known is None or known() is not data:
        array = within(dev.lookup(owner)[1], new, data.dtype, data.shape, data.strides,
                       dev.address(data) - dev.address(owner))
        array = remarked(array, marks_of(data))
        met[id(data)] = weakref.ref(data), array
    return array


def _move(owner, new, size: int | None):
    """Let new memory take the place of an owner, in handles as soon as somebody looks at them."""
    if size is not None:
        _about(new)["size"] = size
    found = _said(owner, "object")
    user = found and found()
    if user is not None:
        user._owner = new
        _about(new)["object"] = weakref.ref(user)
    if not left:
        Tensor._payload = _looked_at
        count_for_all("ACTIVE", 1)  # native code looks for itself
    left[id(owner)] = weakref.ref(owner, partial(_forgotten, id(owner))), new, {}
    asker = getattr(user, "asker", None)
    if asker is not None:
        _take_along(asker())
    return new


def _take_along(t: Tensor | None) -> None:
    """Let a handle, and those that it is a view of, go to the new place at once."""
    while t is not None:
        present(t)
        t = getattr(t._link, "base", None)


def _forgotten(key: int, _) -> None:
    """Nobody shows an old place any more."""
    del left[key]
    if not left:
        Tensor._payload = _slot
        count_for_all("ACTIVE", -1)


def refuse_held(owner) -> None:
    """Refuse to move memory that has to stay where it is."""
    if is_held(owner):
        raise errors.ShapeError(errors.text(
            f"Trying to resize storage that is not resizable ({errors.user_line(2)}): an array "
            "of another library shows the same memory", f"storage of {nbytes(owner)} bytes",
            "clone() the tensor first"))


def resize(owner, size: int) -> object:
    """Give memory another size: the owner from now on, with the old bytes as far as they fit.

    New bytes are zero.  Tensors that reach beyond the new size show zeros there: memory that
    becomes less stays where it is.
    """
    refuse_held(owner)
    before = nbytes(owner)
    if size <= owner.nbytes:
        as_bytes(owner)[size:before] = 0
        _about(owner)["size"] = size
        return owner
    new = dev.lookup(owner)[1].zeros(size, np.uint8)
    new[:before] = as_bytes(owner)[:before]
    return _move(owner, new, None)


def share(owner) -> object:
    """Move memory to where other processes can have it, too."""
    from .shared import is_shared, shared  # with `mmap`: few programs need it

    if is_shared(owner):
        return owner
    return _move(owner, shared(as_bytes(owner)), _said(owner, "size"))


def share_shown(t: Tensor) -> None:
    """Share the memory of a tensor."""
    share(owner_of(t))
    _take_along(t)


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
    item = t._payload.dtype.itemsize
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
        _take_along(t)
    xp = dev.lookup(owner)[1]
    start = offset * item if needed else min(offset * item, nbytes(owner))
    steps = tuple([s * item for s in stride])
    array = within(xp, owner, t._payload.dtype, tuple(size), steps, start)
    t._payload = remarked(array, marks_of(t._payload))


def row_major(size) -> tuple:
    """Strides of memory without gaps, the last dim innermost, as PyTorch counts empty dims."""
    return tuple([math.prod([max(n, 1) for n in size[i + 1 :]]) for i in range(len(size))])
