"""Arrays from Python data: what `tensor(data)` copies its elements with.

Nested sequences, numbers, NumPy arrays and tensors become one fresh array; the dtype follows
PyTorch's inference.  Read next: `memory/indexing.py`, `../creation.py`.
"""

from __future__ import annotations

import numpy as np

from . import dtype as dt


def make_tensor_data(data, dtype: dt.DType | None = None) -> np.ndarray:
    """A fresh array with the values of nested sequences, numbers, arrays or tensors.

    Without a dtype, Python floats give the default float, ints int64, bools bool, complex numbers
    the complex dtype of the default float; arrays and NumPy numbers keep their own dtype.
    """
    if dtype is None:
        dtype = infer_dtype(data)
    plain = _without_tensors(data)
    try:
        array = np.array(plain)
    except ValueError as error:
        message = _ragged(plain)
        if message is None:
            raise TypeError("'list' object cannot be interpreted as a number") from error
        raise ValueError(message) from None
    if array.dtype.kind in "OUSMm":
        if array.dtype.kind == "O" and _only_numbers(plain):
            raise ValueError("Overflow when unpacking long long")
        bad = next((x for x in _leaves(plain) if not _is_number(x)), plain)
        raise TypeError(f"new(): invalid data type '{type(bad).__name__}'")
    if array.dtype.kind == "u" and array.dtype.itemsize == 8 and dtype.category == 1:
        raise ValueError("Overflow when unpacking long long")
    if array.dtype.kind == "c" and not dtype.is_complex and dtype.category > 0:
        raise TypeError("must be real number, not complex")
    if dtype.category == 1 and array.dtype != dtype.np and not _is_array(data):
        if array.size and not (dt.holds(dtype, array.min()) and dt.holds(dtype, array.max())):
            raise RuntimeError(f"value cannot be converted to type {dtype.name} without overflow")
    return dt.fitted(array, dtype.np).astype(dtype.np)


def infer_dtype(data) -> dt.DType:
    """The dtype that `tensor(data)` gives."""
    kinds: set = set()
    _collect_kinds(data, kinds)
    if not kinds:
        return dt.default()  # an empty list
    found = None
    for kind in kinds:
        one = _dtype_of_kind(kind)
        found = one if found is None else dt.promote_types(found, one)
    return found


_PYTHON = {float, int, bool, complex}


def _dtype_of_kind(kind) -> dt.DType:
    if isinstance(kind, dt.DType):
        return kind
    if kind in _PYTHON:
        return dt.of_number(kind)
    if isinstance(kind, type) and issubclass(kind, np.generic):
        return dt.of(np.dtype(kind))
    for python in (bool, int, float, complex):
        if isinstance(kind, type) and issubclass(kind, python):
            return dt.of_number(python)
    if kind in (str, bytes):
        raise TypeError(f"new(): invalid data type '{kind.__name__}'")
    raise RuntimeError(f"Could not infer dtype of {getattr(kind, '__name__', kind)}")


def _collect_kinds(data, kinds: set) -> None:
    if isinstance(data, (list, tuple)):
        inside = set(map(type, data))
        if inside <= _PYTHON:  # the common case: a row of numbers
            kinds |= inside
            return
        for item in data:
            _collect_kinds(item, kinds)
    elif isinstance(data, np.ndarray):
        kinds.add(dt.of(data.dtype))
    elif _is_tensor(data):
        kinds.add(data.dtype)
    elif _is_array(data):
        kinds.add(dt.of(np.asarray(data).dtype))
    elif (
        hasattr(data, "__len__")
        and hasattr(data, "__getitem__")
        and not isinstance(data, (str, bytes))
    ):
        for i in range(len(data)):
            _collect_kinds(data[i], kinds)
    else:
        kinds.add(type(data))


def _is_tensor(value) -> bool:
    return hasattr(value, "_edge")


def _is_array(value) -> bool:
    return hasattr(value, "__array__") and not isinstance(value, np.generic)


def _is_number(value) -> bool:
    return isinstance(value, (int, float, complex, np.generic))


def _leaves(data):
    if isinstance(data, (list, tuple)):
        for item in data:
            yield from _leaves(item)
    else:
        yield data


def _only_numbers(data) -> bool:
    return all(_is_number(x) for x in _leaves(data))


def _without_tensors(data):
    """Nested data with tensors replaced by their values."""
    if _is_tensor(data):
        return np.array(data.numpy(force=True))
    if isinstance(data, (list, tuple)):
        if set(map(type, data)) <= _PYTHON:
            return data
        out = []
        for item in data:
            if _is_tensor(item) and item.numel() != 1 and item.ndim:
                raise ValueError("only one element tensors can be converted to Python scalars")
            out.append(item.item() if _is_tensor(item) else _without_tensors(item))
        return out
    if hasattr(data, "__len__") and hasattr(data, "__getitem__"):
        if not isinstance(data, (str, bytes, np.ndarray)) and not _is_array(data):
            return [_without_tensors(data[i]) for i in range(len(data))]
    return data


def _ragged(data) -> str | None:
    """The message for rows of different lengths."""
    level, depth = [data], 0
    while level and all(isinstance(x, (list, tuple)) for x in level):
        sizes = [len(x) for x in level]
        for size in sizes:
            if size != sizes[0]:
                return f"expected sequence of length {sizes[0]} at dim {depth} (got {size})"
        level, depth = [y for x in level for y in x], depth + 1
    return None
