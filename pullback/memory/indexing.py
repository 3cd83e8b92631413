"""`x[key]` and `x[key] = value` as operator calls.

Whole numbers, slices, None, Ellipsis and bools become views (`select`, `slice`, `unsqueeze`);
index tensors and masks are collected, one per remaining dim, for one `index` or `index_put`.
Operators are called through the table, so this works on handles of every level; values of tensors
are not read, except that a 0-d integer tensor whose value is known counts as a number.
Read next: `../ops/index.py`.
"""

from __future__ import annotations

import operator

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..array.data import make_tensor_data
from ..array.size import Symbolic
from ..core.handle import Tensor
from ..memory.views import _repeats, may_write
from ..threads.state import fast, in_passing, state
from . import direct_indexing as direct

END = 2**63 - 1
_MASKS = (dt.bool_, dt.uint8)


def getitem(x: Tensor, key) -> Tensor:
    """`x[key]`."""
    if type(key) is int:  # the most common key, without ceremony
        return _call("select", x, 0, _checked(key, x, 0))
    if type(key) is slice and x._payload.ndim:  # a slice, be it all of the tensor
        return _call("slice", x, 0, *_bounds(key))
    if not fast["ACTIVE"] and x._edge is None:
        found = direct.read(x, key)
        if found is not None:
            return found
    part, indices, _ = _basic(x, key)
    if indices:
        return _call("index", part, indices)
    return _call("alias", x) if part is x else part


def setitem(x: Tensor, key, value) -> None:
    """`x[key] = value`."""
    if not fast["ACTIVE"] and x._edge is None and direct.write(x, key, value):
        return
    fill = _stored(x, key, value) if fast["ACTIVE"] and state.mode else None
    part, indices, numbers = _basic(x, key, for_write=True)
    value = _as_value(part, value)
    if fill is not None and not (indices or numbers):
        part.fill_(fill)
    elif indices or numbers:
        if isinstance(value, Tensor):
            value = _without_leading_ones(value)
        else:
            value = _ops().full((), value, dtype=part.dtype, device=part.device)
        if numbers:
            value = _rearranged(value, part.ndim - len(numbers), indices)
        part.index_put_([*numbers, *indices], value)
    elif not isinstance(value, Tensor):
        if _repeats(part._payload):
            may_write(part, False, 0)  # refuses it, though fill_ would do
        part.fill_(value)
    else:
        part.copy_(_fitted(value, part.ndim))


def _stored(x: Tensor, key, value) -> Tensor | None:
    """What stands for a number that fills a view, if the level that sees it has another form."""
    parts = key if isinstance(key, tuple) else (key,)
    if type(value) not in (bool, int, float) or not all(
            isinstance(k, (int, slice)) or k is None or k is Ellipsis for k in parts):
        return None
    return state.stack[state.mode].stored(value, x)


_table = None


def _ops():
    global _table
    if _table is None:
        from ..core.op import ops

        _table = ops
    return _table


def _call(name: str, *flat):
    """Run an operator."""
    return getattr(_ops(), name)(*flat)


# --- values ---------------------------------------------------------------------------------------


def _as_value(x: Tensor, value):
    """A tensor or a Python number that can be stored in x."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int, float, complex, Symbolic)):
        if isinstance(value, complex) and not x.dtype.is_complex:
            raise RuntimeError(f"value cannot be converted to type {x.dtype.name} without overflow")
        return _rounded(x.dtype, value)
    raise TypeError(
        f"can't assign a {type(value).__module__ + '.' if type(value) is np.ndarray else ''}"
        f"{type(value).__name__} to a torch.{x.dtype.name} tensor"
    )


def _rounded(dtype: dt.DType, value):
    """A number that is stored: half precision rounds what it cannot hold, to infinity if need be;
    other dtypes refuse it when it is written.
    """
    if dtype.itemsize == 2 and dtype.category == 2 and not (
            isinstance(value, Symbolic) or dt.holds(dtype, value)):
        with np.errstate(over="ignore"):
            return float(np.asarray(value, np.float64).astype(dtype.np))
    return value


def _without_leading_ones(value: Tensor) -> Tensor:
    """A value may have more dims than its place if they are of size 1 and in front."""
    extra = 0
    while extra < value.ndim and value.shape[extra] == 1:
        extra += 1
    return value.reshape(value.shape[extra:]) if extra else value


def _fitted(value: Tensor, ndim: int) -> Tensor:
    return value if value.ndim <= ndim else _without_leading_ones(value)


# --- keys -----------------------------------------------------------------------------------------


def _parts(key) -> tuple:
    """The key as a tuple of one entry per dim or so."""
    if isinstance(key, tuple):
        return key
    if isinstance(key, list) and len(key) < 32 and _is_legacy_tuple(key):
        return tuple(key)
    return (key,)


def _is_legacy_tuple(key: list) -> bool:
    """A list with anything but numbers in it is read as a tuple, as PyTorch still does."""
    return any(
        item is None or item is Ellipsis or isinstance(item, (slice, list, tuple, Tensor))
        for item in key
    )


def _consumed(item) -> int:
    """How many dims of the tensor an entry uses up."""
    if item is None or item is Ellipsis or isinstance(item, (bool, np.bool_)):
        return 0
    return item.ndim if isinstance(item, Tensor) and _is_mask(item) else 1


def _entries(x: Tensor, key) -> tuple[list, int]:
    """The entries of a key in a common form, and the number of dims that none of them names."""
    entries = [_normalised(item, x) for item in _parts(key)]
    used = sum(_consumed(item) for item in entries)
    ndim = x._payload.ndim
    if ndim == 0 and used and not any(isinstance(item, Tensor) for item in entries):
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python to convert "
            "a 0-dim tensor to a number"
        )
    if used > ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    return entries, ndim - used


def _basic(x: Tensor, key, for_write: bool = False):
    """(x after the basic parts of the key, indices for the advanced parts, unknown numbers).

    A 0-d integer tensor of unknown value means what a number means: it selects. Reading does so at
    once; a write must go through a view, so its dim is moved to the front and kept for `index_put`.
    """
    entries, rest = _entries(x, key)
    out, dim, indices, numbers = x, 0, [], []  # dims are counted behind those of `numbers`
    taken = 0  # dims that numbers have taken away

    def put(index):
        indices.extend([None] * (dim + 1 - len(indices)))
        indices[dim] = index

    for item in entries:
        here = dim + len(numbers)
        if type(item) is int or isinstance(item, Symbolic):
            out = _call("select", out, here, _checked(item, out, here, taken))
            taken += 1
        elif isinstance(item, slice):
            start, stop, step = _bounds(item)
            if not (start == 0 and stop in (None, END) and step == 1) or (
                    state.mode and state.stack[state.mode].keeps_slice(out._payload.shape[here])):
                out = _call("slice", out, here, start, stop, step)
            dim += 1
        elif item is Ellipsis:
            dim += rest
            rest = 0  # a second Ellipsis stands for nothing
        elif item is None:
            out = _call("unsqueeze", out, here)
            dim += 1
        elif isinstance(item, bool):
            out = _call("unsqueeze", out, here)
            put(_count(int(item), x))
            dim += 1
        elif item.ndim:
            put(item)
            if _is_mask(item):
                _check_mask(item, out, here)
                dim += item.ndim
            else:
                dim += 1
        elif _is_mask(item):
            out = _call("unsqueeze", out, here)
            put(item.unsqueeze(0))
            dim += 1
        elif for_write:
            out = _ops().movedim(out, here, len(numbers))
            numbers.append(item)
        else:
            out = _call("index", out, [None] * here + [item])
    return out, _compact(indices), numbers


def _rearranged(value: Tensor, ndim: int, indices: list) -> Tensor:
    """The value for a selection whose index dims come first, though the key has them elsewhere."""
    places = [d for d, index in enumerate(indices) if index is not None]
    if not places or places[0] == 0 or places[-1] - places[0] + 1 != len(places):
        return value
    given = [indices[d] for d in places]
    rank = max(1 if _is_mask(i) else i.ndim for i in given)
    used = sum(i.ndim if _is_mask(i) else 1 for i in given)
    value = value.reshape((*(1,) * (ndim - used + rank - value.ndim), *value.shape))
    first = places[0]
    return value.movedim(tuple(range(first, first + rank)), tuple(range(rank)))


def _is_mask(index: Tensor) -> bool:
    return index.dtype in _MASKS


def _compact(indices: list) -> list:
    """One entry per index: a mask of several dims stands for all of them."""
    out, dim = [], 0
    while dim < len(indices):
        index = indices[dim]
        out.append(index)
        dim += index.ndim if index is not None and _is_mask(index) else 1
    return out


def _check_mask(mask: Tensor, x: Tensor, start: int) -> None:
    sizes = x.shape[start : start + mask.ndim]
    for k, (want, have) in enumerate(zip(mask.shape, sizes, strict=True)):
        if want != have:
            raise IndexError(
                f"The shape of the mask {list(mask.shape)} at index {k} does not match the shape "
                f"of the indexed tensor {list(x.shape)} at index {start + k}"
            )


def _count(size: int, x: Tensor) -> Tensor:
    """The index that a bool stands for: the only element, or none."""
    return _ops().zeros((size,), dtype=dt.int64, device=x.device)


def _normalised(item, x: Tensor):
    """An entry as int, bool, slice, None, Ellipsis or Tensor."""
    if item is None or item is Ellipsis or isinstance(item, (bool, slice)):
        return item
    if isinstance(item, np.bool_):
        return bool(item)
    if isinstance(item, Tensor):
        if item.ndim == 0 and item.dtype.category == 1 and item.dtype is not dt.uint8:
            return _number(item)
        if dt.name_of(item.dtype) not in ("bool", "uint8", "int32", "int64"):
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        return item
    if isinstance(item, (int, np.integer)):
        return int(item)
    if isinstance(item, np.ndarray) and item.ndim == 0 and item.dtype.kind in "iu":
        return int(item)
    if isinstance(item, (list, tuple, range, np.ndarray)):
        return _index_tensor(item, x)
    if isinstance(item, Symbolic):
        return item
    if hasattr(item, "__index__"):
        return operator.index(item)
    if isinstance(item, str):
        raise TypeError("new(): invalid data type 'str'")
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
        f"indices (got {type(item).__name__})"
    )


@in_passing
def _number(index: Tensor):
    """The value of a 0-d integer tensor where it is known, else the tensor."""
    try:
        return int(index.item())
    except (errors.DataDependentError, errors.TransformError, errors.EscapedTensor):
        return index


def _index_tensor(data, x: Tensor) -> Tensor:
    """An index tensor from a sequence or array."""
    from .fresh import fresh, lifted

    array = make_tensor_data(list(data) if isinstance(data, range) else data)
    if array.size == 0:
        array = array.astype(np.int64)
    if dt.name_of(array.dtype) not in ("bool", "uint8", "int32", "int64"):
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    index = fresh(array)
    index = lifted(index) if state.mode or fast["DISPATCHES"] else index
    return index if x.device.type == "cpu" else index.to(x.device)


def _checked(index: int, x: Tensor, dim: int, taken: int = 0) -> int:
    """The index, or the error in the words that `x[i]` uses."""
    shape = x._payload.shape  # a view that awaits a refresh has the right shape already
    if dim >= len(shape):
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python to convert "
            "a 0-dim tensor to a number"
        )
    size = shape[dim]
    if not -size <= index < size:
        raise IndexError(
            f"index {index} is out of bounds for dimension {dim + taken} with size {size}")
    return index


def _bounds(item: slice) -> tuple:
    """Start, stop and step of a slice as numbers."""

    def number(value):
        if value is None or isinstance(value, Symbolic):
            return value
        try:
            return operator.index(value)
        except TypeError:
            raise TypeError(
                "slice indices must be integers or None or have an __index__ method"
            ) from None

    step = number(item.step)
    if step is not None and step <= 0:
        raise ValueError("step must be greater than zero")
    start = number(item.start)
    return 0 if start is None else start, number(item.stop), 1 if step is None else step
