"""A batch out of samples: numbers and arrays become tensors, containers keep their form."""

from __future__ import annotations

import collections.abc
import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from .... import creation, errors
from ....array import dtype as dt
from ....core.handle import Tensor
from ....table.packets import ops

_NOT_NUMBERS = "SUOMm"  # kinds of NumPy's arrays that are no numbers


def _mapped(elem: Mapping, values: dict):
    """A mapping like `elem` with other values; a dictionary if its class does not take them."""
    try:
        if isinstance(elem, MutableMapping):
            clone = copy.copy(elem)  # which may have more to it than its items
            clone.update(values)
            return clone
        return type(elem)(values)
    except TypeError:
        return values


def _sequenced(elem: Sequence, values: list):
    """A sequence like `elem` with other items; a list for tuples and what cannot be made."""
    if isinstance(elem, tuple):
        return type(elem)(*values) if hasattr(elem, "_fields") else values
    try:
        if isinstance(elem, MutableSequence):
            clone = copy.copy(elem)
            for i, value in enumerate(values):
                clone[i] = value
            return clone
        return type(elem)(values)
    except TypeError:
        return values


def default_convert(data) -> Any:
    """Arrays and NumPy's numbers inside of `data` as tensors; everything else as it is."""
    if isinstance(data, (Tensor, str, bytes)):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return data if data.dtype.kind in _NOT_NUMBERS else creation.as_tensor(data)
    if isinstance(data, Mapping):
        return _mapped(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, collections.abc.Sequence):
        return _sequenced(data, [default_convert(item) for item in data])
    return data


def collate(batch, *, collate_fn_map: dict[type | tuple, Callable] | None = None) -> Any:
    """A batch out of samples; the table says what becomes of values of a type."""
    elem = batch[0]
    table = collate_fn_map or {}
    function = table.get(type(elem))
    if function is None:
        function = next((f for kind, f in table.items() if isinstance(elem, kind)), None)
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(elem, Mapping):
        return _mapped(elem, {
            key: collate([sample[key] for sample in batch], collate_fn_map=collate_fn_map)
            for key in elem
        })  # fmt: skip
    if isinstance(elem, collections.abc.Sequence):
        if any(len(sample) != len(elem) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size; the lengths "
                               f"are {[len(sample) for sample in batch][:20]}")
        columns = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)]
        return _sequenced(elem, columns)
    raise _unknown(type(elem))


def _unknown(what) -> TypeError:
    return TypeError("default_collate: batch must contain tensors, numpy arrays, numbers, dicts or "
                     f"lists; found {what}\n  Fix: DataLoader(..., collate_fn=your_function)")


def collate_tensor_fn(batch, *, collate_fn_map=None) -> Tensor:
    """Tensors one above the other."""
    if batch[0].is_nested:
        raise errors.RefusedValue(errors.text(
            "Batches of nested tensors are not currently supported by the default collate_fn; "
            "please provide a custom collate_fn to handle them appropriately. "
            f"({errors.user_line(2)})", cure="collate_fn=torch.cat makes one of all their parts"))
    return ops.stack(list(batch), 0)


def collate_numpy_array_fn(batch, *, collate_fn_map=None) -> Tensor:
    """Arrays one above the other."""
    if batch[0].dtype.kind in _NOT_NUMBERS:
        raise _unknown(batch[0].dtype)
    tensors = [creation.as_tensor(array) for array in batch]
    return collate(tensors, collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None) -> Tensor:
    """NumPy's numbers as a vector of their dtype."""
    return creation.as_tensor(np.array(batch))


def collate_float_fn(batch, *, collate_fn_map=None) -> Tensor:
    """Python's floats as a vector of float64."""
    return creation.tensor(batch, dtype=dt.float64)


def collate_int_fn(batch, *, collate_fn_map=None) -> Tensor:
    """Integers and truth values as a vector."""
    return creation.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    """Texts stay as they are."""
    return batch


default_collate_fn_map: dict[type | tuple, Callable] = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch) -> Any:
    """A batch out of samples, as PyTorch makes it: tensors stacked, containers in their form."""
    return collate(batch, collate_fn_map=default_collate_fn_map)
