"""Functions that make tensors from outside data, and queries that are not operators."""

from __future__ import annotations

import numpy as np

from . import errors
from .array import device as dev
from .array import dims
from .array import dtype as dt
from .array.data import infer_dtype, make_tensor_data
from .array.size import Size, Symbolic, hinted, is_symbolic
from .core.handle import Tensor, make
from .memory.fresh import fresh, lifted
from .memory.storages import hold_size
from .table.packets import ops
from .tensor.overridable import asks_in as _asks_in
from .tensor.overridable import overridable as _overridable
from .tensor.overridable import taken_over as _taken_over
from .threads import state as _state
from .threads.asking import no_overrides
from .threads.state import fast

_asks = _asks_in(globals())


def tensor(
    data, *, dtype=None, device=None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A new leaf with a copy of the data."""
    if _asks and fast["ACTIVE"] and (taken := _taken_over(tensor, locals())):
        return taken[0]

    if isinstance(data, Tensor):
        with no_overrides():
            t = data.detach().clone()
        t = t if dtype is None else t.to(dt.as_dtype(dtype))
    else:
        try:
            t = _place(make_tensor_data(data, dt.as_dtype(dtype)), device)
        except (RuntimeError, TypeError, ValueError):
            if not is_symbolic((data,)):
                raise
            t = _of_symbols(data, dt.as_dtype(dtype) or infer_dtype(hinted(data)))
    if device is not None and isinstance(data, Tensor):
        t = t.to(device)
    return t.requires_grad_(True) if requires_grad else t


def _of_symbols(data, dtype: dt.DType) -> Tensor:
    """A tensor of numbers of which some are not known yet."""
    if isinstance(data, (list, tuple)):
        return ops.stack([_of_symbols(v, dtype) for v in data])
    return ops.scalar_tensor(data, dtype=dtype)


def _place(array: np.ndarray, device) -> Tensor:
    place = dev.chosen(None if device is None else dev.Device(device))
    if place is not None and place.type == "meta":
        return make(array).to(place)
    faking = _state.state.fakes.mode is not None
    if place is not None and place.type != "cpu" and not faking:
        array = dev.namespace(place).asarray(array)
    t = fresh(array)
    if faking and place is not None:
        t._payload.device_name = str(place)
    return lifted(t) if _state.state.mode or _state.fast["DISPATCHES"] else t


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor that shares memory with a NumPy array."""
    if _asks and fast["ACTIVE"] and (taken := _taken_over(from_numpy, locals())):
        return taken[0]
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    if not array.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion "
            "between byte orders is currently not supported."
        )
    dt.of(array.dtype)
    return _borrowed(array)


def _borrowed(array) -> Tensor:
    """A handle around memory that belongs to someone else: it cannot be resized."""
    hold_size(dev.owner(array))
    return fresh(array)


def as_tensor(data, dtype=None, device=None) -> Tensor:
    """The data as a tensor, sharing memory where possible."""
    if _asks and fast["ACTIVE"] and (taken := _taken_over(as_tensor, locals())):
        return taken[0]
    dtype = dt.as_dtype(dtype)
    if isinstance(data, Tensor):
        t = data
    elif isinstance(data, np.ndarray):
        t = from_numpy(data)
    else:
        return tensor(data, dtype=dtype, device=device)
    if dtype is not None and t.dtype is not dtype:
        t = t.to(dtype)
    return t if device is None else t.to(device)


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad: bool = False) -> Tensor:
    """The data as a tensor; copies only if told or needed."""
    if _asks and fast["ACTIVE"] and (taken := _taken_over(asarray, locals())):
        return taken[0]
    t = tensor(obj, dtype=dtype, device=device) if copy else as_tensor(obj, dtype, device)
    return t.requires_grad_(requires_grad) if requires_grad else t


def from_dlpack(ext_tensor, *, device=None, copy: bool | None = None) -> Tensor:
    """A tensor that shares memory with another library's array, or with a DLPack capsule."""
    if isinstance(ext_tensor, Tensor):
        t = ext_tensor.detach()
    else:
        from .array import dlpack

        try:
            t = _borrowed(dlpack.receive(ext_tensor))
        except (AttributeError, RuntimeError, BufferError) as error:
            raise errors.DTypeError(errors.text(
                f"from_dlpack() cannot take this {type(ext_tensor).__name__} "
                f"({errors.user_line(2)})", str(error).splitlines()[0],
                "it must lie on the CPU and have a dtype that tensors have")) from error
    if device is not None:
        t = t.to(device)
    return t.clone() if copy else t


def is_tensor(obj, /) -> bool:
    """Is this a tensor?"""
    return isinstance(obj, Tensor)


@_overridable
def numel(input: Tensor) -> int:
    """Number of elements."""
    return input.numel()


@_overridable
def is_floating_point(input: Tensor) -> bool:
    """Is the dtype floating?"""
    return input.dtype.is_floating_point


@_overridable
def is_complex(input: Tensor) -> bool:
    """Is the dtype complex?"""
    return input.dtype.is_complex


@_overridable
def is_nonzero(input: Tensor) -> bool:
    """Is the only element not zero?"""
    return bool(input.item() != 0)


def set_default_dtype(d) -> None:
    """Set the dtype of new floating tensors."""
    dt.set_default(d)


def get_default_dtype() -> dt.DType:
    """The dtype of new floating tensors."""
    return dt.default()


def promote_types(type1: dt.DType, type2: dt.DType) -> dt.DType:
    """The smallest dtype that holds both."""
    return dt.promote_types(
        dt.wanted(type1, "promote_types(): argument 'type1' (position 1)"),
        dt.wanted(type2, "promote_types(): argument 'type2' (position 2)"))


@_overridable
def result_type(tensor1, tensor2) -> dt.DType:
    """The dtype of an arithmetic result of two operands."""
    return dt.result_type([tensor1, tensor2])


def can_cast(from_, to) -> bool:
    """May a value be stored in another dtype without changing its category?"""
    return dt.can_cast(dt.wanted(from_, "can_cast(): argument 'from_' (position 1)"),
                       dt.wanted(to, "can_cast(): argument 'to' (position 2)"))


def broadcast_shapes(*shapes) -> Size:
    """The common shape of broadcasting."""
    if is_symbolic(shapes):
        given = [(s,) if isinstance(s, (int, Symbolic)) else s for s in shapes]
        return Size(dims.broadcast_shapes(*given))
    try:
        return Size(np.broadcast_shapes(*(s if isinstance(s, int) else tuple(s) for s in shapes)))
    except ValueError:
        raise errors.ShapeError(
            f"Shape mismatch: {shapes} cannot be broadcast together ({errors.user_line(2)})"
        ) from None


@_overridable
def broadcast_tensors(*tensors):
    """All tensors expanded to their common shape; those that have it are returned as they are."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tensors[0]
    if any(t.is_nested for t in tensors):
        from .table.packets import ops

        return tuple(ops.broadcast_tensors(list(tensors)))
    shape = broadcast_shapes(*(t.shape for t in tensors))
    return tuple(t if tuple(t.shape) == tuple(shape) else t.expand(shape) for t in tensors)


@_overridable
def _assert(condition, message) -> None:
    """Python's `assert` as a function, which symbolic traces record."""
    assert condition, message


def typename(obj, /) -> str:
    """The type's name."""
    if isinstance(obj, Tensor):
        return obj.type()
    named = hasattr(obj, "__qualname__") and getattr(obj, "__module__", None)
    kind = obj if named else type(obj)
    return (kind.__qualname__ if kind.__module__ == "builtins"
            else f"{kind.__module__}.{kind.__qualname__}")


def set_num_threads(count: int) -> None:
    """How many threads compiled code uses."""
    from .compile import native

    native.set_num_threads(count)


def get_num_threads() -> int:
    """How many threads compiled code uses."""
    from .compile import native

    return native.get_num_threads()


def frombuffer(buffer, *, dtype, count: int = -1, offset: int = 0,
               requires_grad: bool = False) -> Tensor:
    """A vector that shares the memory of an object with the buffer protocol."""
    if _asks and fast["ACTIVE"] and (taken := _taken_over(frombuffer, locals())):
        return taken[0]
    kind = dt.as_dtype(dtype)
    size = memoryview(buffer).nbytes
    if size == 0 or count == 0:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if not 0 <= offset < size:
        raise ValueError(f"offset ({offset} bytes) must be non-negative and no greater than buffer "
                         f"length ({size} bytes) minus 1")
    left = size - offset
    if count < 0 and left % kind.itemsize:
        raise ValueError(f"buffer length ({left} bytes) after offset ({offset} bytes) must be a "
                         f"multiple of element size ({kind.itemsize})")
    if count > 0 and count * kind.itemsize > left:
        raise ValueError(f"requested buffer length ({count} * {kind.itemsize} bytes) after offset "
                         f"({offset} bytes) must not be greater than actual buffer length ({size} "
                         "bytes)")
    array = np.frombuffer(buffer, kind.np, count, offset)
    return make(array).requires_grad_(requires_grad)


def to_dlpack(tensor: Tensor):
    """A capsule with the memory of a tensor, for other libraries."""
    return tensor.__dlpack__()


@_overridable
def get_device(input: Tensor) -> int:
    """Number of the device that a tensor lives on, -1 for the CPU."""
    return input.get_device()


@_overridable
def detach_(input: Tensor) -> Tensor:
    """Cut a tensor off its history, in place."""
    return input.detach_()


