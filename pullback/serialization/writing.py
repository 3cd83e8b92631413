"""`save`: objects as PyTorch pickles them, and the memory of their tensors beside.

Tensors become calls of PyTorch's rebuild functions, on storages that are written once however many
tensors show them.  The pickler is the one of the standard library that is written in Python: the
other one cannot be told under which names to write classes.
"""

from __future__ import annotations

import contextlib
import copyreg
import io
import os
import pickle
import struct
import sys
from collections import OrderedDict
from collections.abc import Mapping
from types import FunctionType, ModuleType
from typing import IO, Any

import numpy as np

from .. import errors
from ..array import device as dev
from ..array.dtype import DType, Quantized, Unheld, of
from ..array.fake import Fake
from ..array.generator import Generator
from ..array.layout import STRIDED, qscheme
from ..array.lazy import CONJ, NEG, marks_of, remarked
from ..array.size import Size
from ..core.handle import Tensor, make
from ..interp.operator_dispatch import Outer
from ..memory.reading import concrete
from ..storage import TypedStorage, UntypedStorage
from ..tensor.pickling import attributes_of
from ..threads.asking import Bare
from . import composed
from .archive import ALIGNMENT, Writer, replacing
from .names import STORAGES, Name, written

DEFAULT_PROTOCOL = 2
MAGIC, VERSION = 0x1950A86A20F9469CFC6C, 1001  # of files before the zip format

_TENSOR, _TENSOR3, _META, _PARAMETER, _PARAMETER_STATE = (
    Name("torch._utils", name)
    for name in ("_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_meta_tensor_no_storage",
                 "_rebuild_parameter", "_rebuild_parameter_with_state")
)  # fmt: skip
_WRAPPER = Name("torch._utils", "_rebuild_wrapper_subclass")
_LAYOUT = Name("torch.serialization", "_get_layout")
_FROM_TYPE = Name("torch._tensor", "_rebuild_from_type_v2")
_GENERATOR, _DEVICE = Name("torch._C", "Generator"), Name("torch", "device")
_SIZE, _PLAIN = Name("torch", "Size"), Name("torch", "Tensor")
_QUANTIZED = Name("torch._utils", "_rebuild_qtensor")
_UNTYPED = Name("torch.storage", "UntypedStorage")
_TYPED = {dtype: Name("torch", name) for dtype, name in STORAGES.items()}


class _Stored:
    """Memory that a file gets a record of."""

    def __init__(self, key: str, owner, memory, kind: Name, count: int, location: str):
        self.key, self.owner, self.location = key, owner, location
        self.memory = memory  # the bytes, in order of their addresses
        self.kind, self.count = kind, count  # the storage class that the file says, its elements


class _Storages:
    """The storages of one file."""

    def __init__(self):
        self.by_owner: dict[tuple, _Stored] = {}

    def of(self, array, dtype: DType) -> tuple[_Stored, Any, int]:
        """The storage that an array lies in, the array, and the byte at which it begins there."""
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        owner = dev.owner(array)
        memory = _memory(owner)
        start = dev.address(array) - dev.address(owner)
        if memory is None or any(s < 0 or s % dtype.itemsize for s in (start, *array.strides)):
            owner = array = array.copy()  # memory with holes, or steps that a file cannot tell
            memory, start = _memory(array), 0
        return self.record(owner, memory, dtype), array, start

    def whole(self, storage: UntypedStorage | TypedStorage) -> _Stored:
        """A storage that is saved for its own sake."""
        untyped = getattr(storage, "_untyped_storage", storage)
        return self.record(untyped._owner, untyped._bytes(), getattr(storage, "dtype", None))

    def record(self, owner, memory, dtype: DType | None) -> _Stored:
        """The record of memory; None is the dtype of bytes."""
        location = str(dev.device_of(owner))
        typed = dtype is not None and dtype.name in _TYPED
        kind = _TYPED[dtype.name] if typed else _UNTYPED
        key = (location, dev.address(owner), memory.size or kind)
        found = self.by_owner.get(key)
        if found is None:
            number, count = str(len(self.by_owner)), memory.size // (dtype.itemsize if typed else 1)
            found = self.by_owner[key] = _Stored(number, owner, memory, kind, count, location)
        elif found.kind is not kind:
            raise errors.DTypeError(
                errors.text(
                    "Cannot save multiple tensors or storages that view the same data as different "
                    f"types: {found.kind.name} and {kind.name} ({errors.user_line(2)})",
                    cure="clone() one of them",
                )
            )
        return found

    def __iter__(self):
        return iter(self.by_owner.values())


def _memory(owner):
    """The bytes of an array in the order of their addresses, None if it has holes."""
    if not owner.size:
        return np.empty(0, np.uint8)
    order = sorted(range(owner.ndim), key=lambda d: (-owner.strides[d], d))
    dense = owner.transpose(order)
    if not dense.flags.c_contiguous:
        return None
    return dense.reshape(-1).view(np.uint8)


def _steps(array, dtype: DType) -> tuple:
    if not array.size:  # NumPy's are arbitrary then
        array = Fake(array.shape, array.dtype)
    return tuple(s // dtype.itemsize for s in array.strides)


def _tensor(value) -> Tensor:
    return value if isinstance(value, Tensor) else make(value)


class _Reducers(Mapping):
    """What a pickler asks how to write an object; copyreg's table for all that is not ours.

    A whole mapping, not just what one version of pickle calls: picklers differ in whether they ask
    `table[kind]`, `get(kind)` or `get(kind, default)`.
    """

    def __init__(self, storages: _Storages, old: bool):
        self.storages, self.old = storages, old
        self.kinds = {
            Tensor: self.tensor,
            type(STRIDED): lambda value: (
                _LAYOUT, (f"torch.{str(value).removeprefix('torch.')}",)),
            Size: lambda value: (_SIZE, (tuple(map(int, value)),)),
            dev.Device: lambda value: (
                _DEVICE, (value.type,) if value.index is None else (value.type, value.index)),
            Generator: lambda value: (
                _GENERATOR, (value.device,),
                (value.initial_seed(), None, _tensor(value.get_state()))),
        }  # fmt: skip

    def __getitem__(self, kind: type):
        for ours, reducer in self.kinds.items():
            if issubclass(kind, ours):
                return reducer
        return copyreg.dispatch_table[kind]

    def __iter__(self):
        return iter({**copyreg.dispatch_table, **self.kinds})

    def __len__(self) -> int:
        return len({**copyreg.dispatch_table, **self.kinds})

    def tensor(self, t: Tensor) -> tuple:
        if isinstance(t._payload, Outer):
            return self.wrapper(t)
        if getattr(t._payload, "composed", False):
            return self.composed(t)
        with Bare():
            return self.held(t)

    def quantized(self, t) -> tuple:
        """Integers, with their parameters behind."""
        data = concrete(t.int_part, "save()")
        stored, data, start = self.storages.of(data, t.dtype)
        size, steps = tuple(data.shape), _steps(data, t.dtype)
        if t.packed_shape is not None:  # several in a byte; steps are counted one by one
            size = tuple(t.packed_shape)
            steps = _steps(np.empty(size, np.uint8), t.dtype)
        if t.axis < 0:
            about = t.qscheme(), t.q_scale(), t.q_zero_point()
        else:
            about = t.qscheme(), t.scale_part, t.zero_part, t.axis
        args = (stored, start // t.dtype.itemsize, size, steps, about, False, OrderedDict())
        return _QUANTIZED, args, None, t.attributes()

    def wrapper(self, t: Tensor) -> tuple:
        box = t._payload
        kind = of(box.dtype)
        facts = (kind, tuple(box.shape), _steps(box, kind), box.offset // kind.itemsize, box.layout,
                 dev.Device(box.device_name), t.requires_grad)
        return _FROM_TYPE, (_WRAPPER, type(t), (type(t), *facts), attributes_of(t))

    def composed(self, t: Any) -> tuple:
        """A tensor of parts: how it is made again, and what users have put into it."""
        found = self.quantized(t) if isinstance(t.dtype, Quantized) else composed.written(t)
        if found is None:
            return t.__reduce_ex__(2)
        function, args, kind, attributes = found
        if self.old and function is composed.STRIDED_NESTED:
            raise errors.RefusedValue(errors.text(
                "save(): a nested tensor of strided layout cannot be read from a file in the "
                f"format before zip files ({errors.user_line(2)})",
                cure="leave _use_new_zipfile_serialization out"))
        if attributes.pop("_is_param", False):
            args = (t.detach(), t.requires_grad, OrderedDict())
            return (_PARAMETER_STATE, (*args, attributes)) if attributes else (_PARAMETER, args)
        if kind is None and not attributes:
            return function, args
        return _FROM_TYPE, (function, kind or _PLAIN, args, attributes)

    def held(self, t: Tensor) -> tuple:
        from ..nn.parameter import Buffer, Parameter

        attributes = attributes_of(t)
        if isinstance(t, Parameter) and type(t) is Parameter:
            args = (make(_held(t)), t.requires_grad, OrderedDict())
            if attributes:
                return _PARAMETER_STATE, (*args, attributes)
            return _PARAMETER, args
        function, args = self.plain(t)
        if isinstance(t, Buffer):
            attributes["_is_buffer"] = True
        kind = _PLAIN if type(t) in (Tensor, Buffer) else type(t)
        if attributes or kind is not _PLAIN:
            return _FROM_TYPE, (function, kind, args, attributes)
        return function, args

    def plain(self, t: Tensor) -> tuple:
        data = t._payload
        if type(data) is Fake and data.device_name == "meta":
            dtype = of(data.dtype)
            return _META, (dtype, tuple(data.shape), _steps(data, dtype), t.requires_grad)
        data = _held(t)
        dtype, marks = of(data.dtype), marks_of(data)
        stored, data, start = self.storages.of(remarked(data, 0), dtype)
        args = (stored, start // dtype.itemsize, tuple(data.shape), _steps(data, dtype),
                t.requires_grad, OrderedDict())  # fmt: skip
        about = {name: True for name, mark in (("conj", CONJ), ("neg", NEG)) if marks & mark}
        args = args if dtype.name in _TYPED else (*args, dtype)
        return _TENSOR if dtype.name in _TYPED else _TENSOR3, (*args, about) if about else args


def _held(t: Tensor):
    """The array of a tensor, as it is meant or as it lies with marks of what it means."""
    data = concrete(t, "save()")
    return t._payload if marks_of(t._payload) and isinstance(t._payload, np.ndarray) else data


def _pickler(module: ModuleType, file: IO[bytes], protocol: int, storages: _Storages, old: bool):
    base = getattr(module, "_Pickler", module.Pickler)
    if not hasattr(base, "save_global"):
        raise errors.ArgumentError(
            errors.text(f"save() cannot use the pickler of {module.__name__} "
                        f"({errors.user_line(2)})",
                        "it cannot be told under which names classes are written",
                        "leave pickle_module out, or use dill")
        )

    class Pickler(base):
        dispatch = dict(base.dispatch)

        def persistent_id(self, obj):
            if type(obj) in (UntypedStorage, TypedStorage):
                obj = storages.whole(obj)
            elif type(obj) is not _Stored:
                return None
            fixed = ("storage", obj.kind, obj.key, obj.location, obj.count)
            return (*fixed, None) if old else fixed

        def save_global(self, obj, name=None):
            ours = (obj.module, obj.name) if type(obj) is Name else (
                ("torch", obj.name) if isinstance(obj, (DType, qscheme)) else written(obj))
            if ours is None:
                return super().save_global(obj, name)
            self.write(b"c%s\n%s\n" % (ours[0].encode(), ours[1].encode()))
            self.memoize(obj)

    for kind in (FunctionType, Name, DType, Unheld, Quantized, qscheme):
        Pickler.dispatch[kind] = Pickler.save_global
    out = Pickler(file, protocol)
    out.dispatch_table = _Reducers(storages, old)
    return out


def save(
    obj: object,
    f: str | os.PathLike | IO[bytes],
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object with its tensors to a file that `load` and PyTorch read."""
    path = isinstance(f, (str, os.PathLike))
    if not path and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a "
                             f"'write' attribute, not {type(f).__name__}")
    storages, body = _Storages(), io.BytesIO()
    old = not _use_new_zipfile_serialization
    # all of the pickle before the file is touched: an object that cannot be saved destroys nothing
    _pickler(pickle_module, body, pickle_protocol, storages, old).dump(obj)
    with replacing(f) if path else contextlib.nullcontext(f) as file:
        if old:
            _write_old(file, body.getbuffer(), storages, pickle_protocol)
        else:
            root = os.path.splitext(os.path.basename(os.fspath(f)))[0] if path else ""
            _write_zip(file, root or "archive", body.getbuffer(), storages,
                       not _disable_byteorder_record)


def _bytes(stored: _Stored):
    memory = stored.memory
    return memory if type(memory) is np.ndarray else dev.transfer(memory, dev.CPU)


def _write_zip(file, root: str, body, storages: _Storages, order: bool) -> None:
    out = Writer(file, root)
    out.add("data.pkl", body)
    out.add(".format_version", b"1")
    out.add(".storage_alignment", str(ALIGNMENT).encode())
    if order:
        out.add("byteorder", sys.byteorder.encode())
    for stored in storages:
        out.add(f"data/{stored.key}", _bytes(stored))
    out.add("version", b"3\n")
    out.close()


def _write_old(file, body, storages: _Storages, protocol: int) -> None:
    sizes = {"short": 2, "int": 4, "long": 8}
    system = {"protocol_version": VERSION, "little_endian": sys.byteorder == "little",
              "type_sizes": sizes}  # fmt: skip
    for value in (MAGIC, VERSION, system):
        pickle.dump(value, file, protocol)
    file.write(body)
    pickle.dump([stored.key for stored in storages], file, protocol)
    for stored in storages:
        file.write(struct.pack("<q", stored.count))
        file.write(_bytes(stored))
