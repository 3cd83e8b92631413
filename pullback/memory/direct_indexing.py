"""`x[key]` and `x[key] = value` of plain arrays, where nothing is recorded: NumPy's own indexing.

Only for keys that mean the same to NumPy.  What is wrong about a key or a value is left to
`indexing.py`, which says it in PyTorch's words, and so is everything else.  Read that next.
"""

from __future__ import annotations

import numpy as np

from ..core.handle import Tensor, make
from ..memory.versions import bump
from ..memory.views import may_write, refresh
from ..threads.state import state

_ndarray = np.ndarray
_INDEX = {np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.bool_)}
_BOOL = np.dtype(np.bool_)
_WHOLE = slice(None)
_LARGEST = {np.dtype(t).itemsize: float(np.finfo(t).max) for t in "efd"}
_LEAST = min(_LARGEST.values())  # what all of them hold


def read(x: Tensor, key) -> Tensor | None:
    """The elements at index tensors, None if the key is of another kind."""
    data = x._payload
    if type(x) is not Tensor or type(data) is not _ndarray or state.inference:
        return None
    if x._link is not None:
        refresh(x)
        if x._edge is not None:
            return None
    kind = type(key)
    try:
        if kind is Tensor:
            index = _array(key)
            if index is None:
                return None
            if index.dtype is not _BOOL:
                return make(data.take(index, 0))
            return make(data[index]) if data.flags.c_contiguous else None
        if kind is not tuple or not data.flags.c_contiguous:
            return None
        index = _arrays(key)
        if index is not None:
            return make(data[index])
        last = len(key) - 1  # x[:, index]
        index = _array(key[last]) if last > 0 and type(key[last]) is Tensor else None
        if index is None or index.dtype is _BOOL:
            return None
        if any(type(k) is not slice or k != _WHOLE for k in key[:last]):
            return None
        return make(data.take(index, last))
    except (IndexError, ValueError):
        return None


def _array(item: Tensor):
    """The array of an index tensor."""
    index = item._payload
    if type(index) is _ndarray and index.ndim and index.dtype in _INDEX:
        return index
    return None


def _arrays(key: tuple) -> tuple | None:
    """The arrays of a key that consists of index tensors."""
    out = []
    for item in key:
        index = _array(item) if type(item) is Tensor else None
        if index is None:
            return None
        out.append(index)
    return tuple(out)


def write(x: Tensor, key, value) -> bool:
    """Store a number or a tensor of the same dtype; says whether it was done."""
    data = x._payload
    if type(x) is not Tensor or type(data) is not _ndarray or state.mode or 0 in data.strides:
        return False
    if x._link is not None:
        refresh(x)
        if x._edge is not None or x._link.base._edge is not None:
            return False
    kind = type(value)
    if kind is Tensor:
        if value._edge is not None or value._link is not None:
            return False
        value = value._payload
        if type(value) is not _ndarray or value.dtype != data.dtype:
            return False
    elif not (kind is float or kind is int) or data.dtype.kind != "f":
        return False
    elif not -_LEAST <= value <= _LEAST and (
            value - value == 0 and abs(value) > _LARGEST[data.itemsize]):
        return False  # finite, but not there
    index = _plain(key)
    if index is None:
        return False
    may_write(x, False, 0)
    try:
        data[index] = value
        bump(x)
    except (IndexError, TypeError, ValueError, OverflowError):
        return False  # nothing was written: NumPy looks first
    except BaseException:
        bump(x)  # an interrupt between the two must not hide the write
        raise
    return True


def _plain(key):
    """A key for NumPy, None if it might not mean the same: numbers and slices, or index tensors."""
    kind = type(key)
    if kind is Tensor:
        return _array(key)
    if kind is not tuple:
        return key if _is_basic(key) else None
    if key and type(key[0]) is Tensor:
        return _arrays(key)
    for item in key:
        if not _is_basic(item):
            return None
    return key


def _is_basic(item) -> bool:
    kind = type(item)
    if kind is slice:
        return item.step is None or type(item.step) is int and item.step > 0
    return kind is int or item is Ellipsis


