"""Tensor types by their old names: `FloatTensor(2, 3)`, `x.type() == "torch.LongTensor"`.

They are not classes of their own: an instance is a `Tensor` of that dtype on the CPU.
`Tensor(...)` itself is the same with the default dtype.
"""

from __future__ import annotations

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..array.data import make_tensor_data
from ..array.fake import fake_like
from ..array.size import Size, Symbolic, is_symbolic
from ..core.handle import Tensor, make
from ..threads.state import state

NAMES = {
    "FloatTensor": dt.float32,
    "DoubleTensor": dt.float64,
    "HalfTensor": dt.float16,
    "BFloat16Tensor": dt.bfloat16,
    "ByteTensor": dt.uint8,
    "CharTensor": dt.int8,
    "ShortTensor": dt.int16,
    "IntTensor": dt.int32,
    "LongTensor": dt.int64,
    "BoolTensor": dt.bool_,
}
_BY_DTYPE = {d: name for name, d in NAMES.items()} | {
    dt.complex64: "ComplexFloatTensor", dt.complex128: "ComplexDoubleTensor"}


def name_of(dtype: dt.DType) -> str:
    """The name of the tensor type of a dtype."""
    name = dtype.name
    special = {"complex32": "ComplexHalf"}.get(name) or name[:1].upper() + name[1:]
    return _BY_DTYPE.get(dtype) or f"{special.replace('Uint', 'UInt')}Tensor"


def dtype_of(value) -> dt.DType:
    """The dtype of a tensor type, of its name, or of anything else that says one."""
    if isinstance(value, TensorType):
        return value.dtype
    if isinstance(value, str):
        found = NAMES.get(value.removeprefix("torch."))
        if found is None:
            raise errors.BadValue(f"invalid type: '{value}' ({errors.user_line(2)})")
        return found
    return dt.as_dtype(value)


def array_of(dtype: dt.DType | None, args: tuple, kwargs: dict) -> np.ndarray:
    """The array of the old constructor: of sizes, or of data; a tensor's is shared.

    Without a dtype it is the default one, or that of the tensor.
    """
    device = kwargs.pop("device", None)
    if kwargs or device is not None and str(device) != "cpu":
        raise errors.ArgumentError(errors.text(
            f"the legacy constructor takes sizes or data, not {kwargs or device} "
            f"({errors.user_line(3)})", cure="use torch.tensor(data, ...) or torch.empty(sizes)"))
    if is_symbolic(args):
        args = _known(args)
    if len(args) == 1 and not isinstance(args[0], int):
        data = args[0]
        if isinstance(data, Tensor):
            if dtype is not None and data.dtype is not dtype:
                raise errors.ArgumentError(errors.text(
                    f"expected {name_of(dtype)} (got {name_of(data.dtype)}) "
                    f"({errors.user_line(3)})", cure="use data.to(dtype)"))
            return data._payload
        if isinstance(data, Size):
            return np.empty(tuple(data), (dtype or dt.default()).np)
        if not hasattr(data, "__len__"):
            raise errors.ArgumentError(f"new(): data must be a sequence (got "
                                       f"{type(data).__name__}) ({errors.user_line(3)})")
        return make_tensor_data(data, dtype or dt.default())
    if not all(isinstance(n, int) for n in args):
        raise errors.ArgumentError(f"sizes must be integers, got {args} ({errors.user_line(3)})")
    return np.empty(args or (0,), (dtype or dt.default()).np)


def _known(value):
    """Sizes among sizes or data as numbers, for which a capture is then made."""
    if type(value) in (list, tuple):
        return type(value)(map(_known, value))
    return int(value) if isinstance(value, Symbolic) else value


class TensorType(type):
    """The class of `FloatTensor` and the others."""

    dtype: dt.DType
    place: str

    def __instancecheck__(cls, value) -> bool:
        return (isinstance(value, Tensor) and value.dtype is cls.dtype
                and value.device.type == cls.place)

    def __subclasscheck__(cls, other) -> bool:
        return other is cls

    def __call__(cls, *args, **kwargs) -> Tensor:
        if cls.place != "cpu":
            raise errors.ArgumentError(errors.text(
                f"type torch.{cls.place}.{cls.__name__} is not available here "
                f"({errors.user_line(2)})", cure="use torch.empty(sizes, device=...)"))
        array = array_of(cls.dtype, args, kwargs)
        return make(array if state.fakes.mode is None else fake_like(array))

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"

    __str__ = __repr__


def tensor_types(place: str = "cpu") -> dict[str, TensorType]:
    """The old tensor types of a device."""
    module = "torch" if place == "cpu" else f"torch.{place}"
    return {name: TensorType(name, (), {"dtype": d, "place": place, "__module__": module,
                                        "is_cuda": place == "cuda"})
            for name, d in NAMES.items()}


globals().update(tensor_types())
