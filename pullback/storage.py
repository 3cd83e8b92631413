"""Storages: the memory behind tensors as an object of its own.

`UntypedStorage` is bytes that several tensors may show; it is the same object for all of them.
`TypedStorage` and `FloatStorage` and the like count elements instead, as programs of old expect.
Read `memory/storages.py` first, which does the work; next `tensor/pickling.py`, which copies and
pickles tensors by their storages.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable

import numpy as np

from . import errors
from .array import device as dev
from .array import dtype as dt
from .array.fake import Fake
from .core.handle import Tensor, cell_of, is_wrapper_data
from .memory import sending
from .memory import shared as shared_memory
from .memory import storages as memory

_ITEMS = {
    "double": "float64", "float": "float32", "half": "float16", "long": "int64", "int": "int32",
    "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool", "bfloat16": "bfloat16",
    "complex_double": "complex128", "complex_float": "complex64",
}  # fmt: skip


class _Storage:
    """What both kinds have in common."""

    __slots__ = ()
    device: dev.Device
    tolist: Callable[[], list]
    clone: Callable[[], _Storage]
    nbytes: Callable[[], int]
    _on: Callable[[object], _Storage]  # the same on a device
    _title: Callable[[], str]

    def __iter__(self):
        return iter(self.tolist())

    def __copy__(self):
        return self.clone()

    def __repr__(self) -> str:
        if self.device.type == "meta":
            return f"...\n[{self._title()}]"
        numbers = "\n ".join(map(str, self.tolist()))
        return f" {numbers}\n[{self._title()}]"

    def __str__(self) -> str:
        return repr(self)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def cpu(self):
        """The storage in main memory."""
        return self if self.device.type == "cpu" else self._on("cpu")

    def cuda(self, device=None, non_blocking: bool = False):
        """The storage on the GPU."""
        return self._on("cuda" if device is None else device)

    def to(self, *, device, non_blocking: bool = False):
        """The storage on a device."""
        return self if dev.Device(device).type == self.device.type else self._on(device)

    def get_device(self) -> int:
        """The number of the GPU; -1 in main memory."""
        return -1 if self.device.type == "cpu" else self.device.index or 0

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    is_sparse = is_sparse_csr = is_hpu = False

    def is_pinned(self, device="cuda") -> bool:
        """Could a device read this memory by itself?  Ordinary memory: no."""
        return False


class UntypedStorage(_Storage):
    """Bytes that tensors show."""

    __slots__ = ("__dict__", "__weakref__", "_owner")

    def __new__(cls, *args, device=None, **kwargs):
        if kwargs or len(args) > 1:
            raise errors.RefusedValue(
                f"torch.UntypedStorage(): takes a size or a sequence of bytes, got "
                f"{(*args, *kwargs)} ({errors.user_line()})"
            )
        given = args[0] if args else 0
        if device is not None and dev.Device(device).type == "meta":
            raise errors.DeviceError(f"the meta device has no memory ({errors.user_line()})")
        if isinstance(given, int):
            if given < 0:
                raise errors.RefusedValue(
                    f"Storage size must not be negative, got {given} ({errors.user_line()})"
                )
            array = np.zeros(given, np.uint8)
        elif hasattr(given, "__len__") and hasattr(given, "__getitem__"):
            array = np.array([int(v) for v in given], np.int64).astype(np.uint8)
        else:
            raise errors.RefusedValue(
                f"torch.UntypedStorage(): Expected a sequence type, but got "
                f"{type(given).__name__} ({errors.user_line()})"
            )
        return _storage(array if device is None else dev.transfer(array, dev.Device(device)))

    @property
    def device(self) -> dev.Device:
        """Where the memory is."""
        return dev.device_of(self._owner)

    @property
    def _cdata(self) -> int:
        """A number of the memory; equal for all tensors that show it."""
        return id(self._owner)

    @property
    def filename(self) -> None:
        """The file that the memory is mapped from: none."""

    def _bytes(self):
        return memory.as_bytes(self._owner)[: memory.nbytes(self._owner)]

    def nbytes(self) -> int:
        """Size in bytes."""
        return memory.nbytes(self._owner)

    size = __len__ = nbytes

    def element_size(self) -> int:
        """Bytes of an element: 1."""
        return 1

    def data_ptr(self) -> int:
        """Address of the first byte; 0 if there is none."""
        return dev.address(self._owner) if self.nbytes() else 0

    def resizable(self) -> bool:
        """May the size change?"""
        return not memory.is_held(self._owner)

    def resize_(self, size: int) -> UntypedStorage:
        """Another size: the bytes stay as far as they fit, new ones are zero.

        All tensors that show the memory go along; their shapes stay.
        """
        if size < 0:
            raise errors.RefusedValue(
                f"Storage size must not be negative, got {size} ({errors.user_line()})"
            )
        if size != self.nbytes():
            memory.resize(self._owner, size)
        return self

    def __getitem__(self, key):
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step != 1:
                raise errors.RefusedValue(
                    f"Trying to slice with a step of {step}, but only a step of 1 is supported "
                    f"({errors.user_line()})"
                )
            return _storage(self._bytes()[start : max(stop, start)])
        return int(self._bytes()[self._place(key)])

    def __setitem__(self, key, value) -> None:
        self._bytes()[key if isinstance(key, slice) else self._place(key)] = value

    def _place(self, key) -> int:
        if not isinstance(key, (int, np.integer)):
            raise errors.ArgumentError(f"can't index a {_name(self)} with {type(key)}")
        size = len(self)
        if not -size <= key < size:
            raise errors.DimError(f"index {key} out of range for storage of size {size}")
        return int(key)

    def __eq__(self, other) -> bool:
        return self is other

    __hash__ = object.__hash__

    def tolist(self) -> list[int]:
        """The bytes as numbers."""
        return self._bytes().tolist()

    def fill_(self, value: int) -> UntypedStorage:
        """Overwrite every byte."""
        self._bytes()[...] = value
        return self

    def copy_(self, source, non_blocking: bool = False) -> UntypedStorage:
        """Overwrite with the bytes of another storage of the same size."""
        other = untyped(source)
        if other.nbytes() != self.nbytes():
            raise errors.ShapeError(
                f"size does not match, self was {self.nbytes()} bytes but src was "
                f"{other.nbytes()} bytes ({errors.user_line()})"
            )
        self._bytes()[...] = dev.transfer(other._bytes(), self.device)
        return self

    def clone(self) -> UntypedStorage:
        """A copy."""
        return _storage(self._bytes().copy())

    def __deepcopy__(self, memo) -> UntypedStorage:
        new = memo[id(self)] = self.clone()
        return new

    def __reduce__(self):
        return _restored, (sending.Bytes(self),)

    def new(self) -> UntypedStorage:
        """An empty storage of the same device."""
        return _storage(self._bytes()[:0].copy())

    def _on(self, device) -> UntypedStorage:
        return _storage(dev.transfer(self._bytes().copy(), dev.Device(device)))

    def untyped(self) -> UntypedStorage:
        """The storage itself."""
        return self

    def is_shared(self) -> bool:
        """May other processes have this memory?"""
        return self.device.type != "cpu" or shared_memory.is_shared(self._owner)

    def share_memory_(self) -> UntypedStorage:
        """Move to memory that processes share which are forked later, or to which it is sent."""
        memory.share(self._owner)
        return self

    def pin_memory(self, device="cuda") -> UntypedStorage:
        """A copy that a device could read by itself; ordinary memory serves here."""
        return self.clone()

    def byteswap(self, dtype) -> None:
        """Reverse the bytes of every element."""
        kind = dt.as_dtype(dtype)
        part = kind.itemsize // (2 if kind.is_complex else 1)
        rows = self._bytes().reshape(-1, part)
        rows[...] = rows[:, ::-1].copy()

    def type(self, dtype=None) -> str:
        """The name of the class."""
        return _name(self)

    def _title(self) -> str:
        return f"{_name(self)}(device={self.device}) of size {len(self)}"

    def _cast(self, name: str) -> TypedStorage:
        kind = dt.by_name(name)
        values = self._bytes().astype(kind.np)
        return TypedStorage(wrap_storage=_storage(values), dtype=kind, _internal=True)

    @classmethod
    def from_buffer(cls, buffer, byte_order=None, *, dtype=None, count=-1, offset=0):
        """The bytes of an object that has some, in the machine's order."""
        found = np.frombuffer(buffer, np.uint8)[offset:].copy()
        if dtype is not None:
            item = dt.as_dtype(dtype).itemsize
            found = found[: count * item] if count >= 0 else found
        made = _storage(found)
        if byte_order == "big" and dtype is not None:
            made.byteswap(dtype)
        return made


def _casting(name: str):
    def method(self):
        return self._cast(name)

    method.__doc__ = f"The numbers as {name}."
    return method


for _method, _dtype in _ITEMS.items():
    setattr(UntypedStorage, _method, _casting(_dtype))


def _name(thing) -> str:
    return f"torch.storage.{type(thing).__name__}"


def _storage(array) -> UntypedStorage:
    """The storage object of an array that owns its memory (a part of one is copied)."""
    owner = dev.owner(array)
    if owner is not array:
        owner = array.copy()
    return memory.storage_object(owner, _made)


def _made(owner) -> UntypedStorage:
    new = object.__new__(UntypedStorage)
    new._owner = owner
    return new


class FakeStorage(UntypedStorage):
    """The memory that a tensor without data would have: its size, and who shares it."""

    @property
    def device(self) -> dev.Device:
        return dev.Device("meta")

    def data_ptr(self) -> int:
        return 0

    def resizable(self) -> bool:
        return False

    def _title(self) -> str:
        return f"torch.storage.UntypedStorage(device=meta) of size {len(self)}"

    def _bytes(self):
        raise errors.DataDependentError(errors.text(
            f"Not available for 'meta' device type: a tensor without data has no bytes "
            f"({errors.user_line(3)})", f"storage of {self.nbytes()} bytes",
            "ask for its size, or compute with a tensor that has data"))

    resize_ = _on = lambda self, given: self._bytes()
    share_memory_ = lambda self: self
    is_shared = lambda self: False


def _made_without_data(root: Fake) -> FakeStorage:
    new = object.__new__(FakeStorage)
    new._owner = root
    return new


def _restored(array) -> UntypedStorage:
    if shared_memory.is_shared(array):
        return memory.storage_object(array, _made)
    return _storage(array.copy())


def untyped(storage) -> UntypedStorage:
    return storage._untyped_storage if isinstance(storage, TypedStorage) else storage


def is_storage(obj) -> bool:
    """Is this a storage, typed or not?"""
    return isinstance(obj, (UntypedStorage, TypedStorage))


# storages that count elements


def _warn(depth: int = 3) -> None:
    warnings.warn(
        "TypedStorage is deprecated: UntypedStorage will be the only storage class. This matters "
        "only to programs that use storages directly. Use tensor.untyped_storage() instead of "
        "tensor.storage()",
        UserWarning,
        stacklevel=depth,
    )


class TypedStorage(_Storage):
    """Numbers of one dtype in an untyped storage; deprecated, as in PyTorch."""

    __slots__ = ("__dict__", "__weakref__", "_untyped_storage", "dtype")

    def __new__(cls, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        if not _internal:
            _warn()
        kind = dt.default() if dtype is None else dt.as_dtype(dtype)
        new = object.__new__(TypedStorage)
        new.dtype = kind
        if wrap_storage is not None:
            if args or dtype is None:
                raise errors.RefusedValue(
                    "TypedStorage(wrap_storage=...) wants a dtype, and no other argument but that "
                    f"({errors.user_line()})"
                )
            if not isinstance(wrap_storage, UntypedStorage):
                raise errors.ArgumentError(
                    "Argument 'wrap_storage' must be UntypedStorage, but got "
                    f"{type(wrap_storage).__name__} ({errors.user_line()})"
                )
            new._untyped_storage = wrap_storage
            return new
        given = args[0] if args else 0
        if isinstance(given, int):
            array = np.zeros(given, kind.np)
        else:
            array = np.array(list(given)).astype(kind.np)
        array = array if device is None else dev.transfer(array, dev.Device(device))
        new._untyped_storage = _storage(array)
        return new

    def _values(self):
        """The elements as an array that shows the memory."""
        whole = self._untyped_storage._bytes()
        item = self.dtype.itemsize
        return whole[: whole.size // item * item].view(self.dtype.np)

    @property
    def device(self) -> dev.Device:
        """Where the memory is."""
        return self._untyped_storage.device

    def untyped(self) -> UntypedStorage:
        """The bytes."""
        _warn()
        return self._untyped_storage

    def size(self) -> int:
        """Number of elements."""
        return self.nbytes() // self.dtype.itemsize

    __len__ = size

    def nbytes(self) -> int:
        """Size in bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """Address of the first element."""
        return self._untyped_storage.data_ptr()

    _data_ptr = data_ptr

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    filename = None

    def _place(self, key):
        if isinstance(key, slice):
            raise errors.RefusedValue(
                "slices are only supported in UntypedStorage.__getitem__ "
                f"({errors.user_line()})"
            )
        if not isinstance(key, (int, np.integer)):
            raise errors.RefusedValue(
                f"can't index a {type(self)} with {type(key)} ({errors.user_line()})"
            )
        if not -len(self) <= key < len(self):
            raise errors.DimError(f"index {key} out of range for storage of size {len(self)}")
        return int(key)

    def __getitem__(self, key):
        return self._values()[self._place(key)].item()

    def __setitem__(self, key, value) -> None:
        values = self._values()
        values[key if isinstance(key, slice) else self._place(key)] = value

    def __eq__(self, other) -> bool:
        return isinstance(other, TypedStorage) and (
            self._untyped_storage is other._untyped_storage and self.dtype is other.dtype
        )

    def __hash__(self) -> int:
        return hash(self._untyped_storage)

    def tolist(self) -> list:
        """The elements as Python numbers."""
        return self._values().tolist()

    def fill_(self, value) -> TypedStorage:
        """Overwrite every element."""
        self._values()[...] = value
        return self

    def copy_(self, source, non_blocking: bool = False) -> TypedStorage:
        """Overwrite with the bytes of another storage of the same size."""
        self._untyped_storage.copy_(untyped(source))
        return self

    def resize_(self, size: int) -> None:
        """Another number of elements."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def resizable(self) -> bool:
        """May the size change?"""
        return self._untyped_storage.resizable()

    def _like(self, untyped: UntypedStorage) -> TypedStorage:
        return TypedStorage(wrap_storage=untyped, dtype=self.dtype, _internal=True)

    def clone(self) -> TypedStorage:
        """A copy."""
        return self._like(self._untyped_storage.clone())

    def _on(self, device) -> TypedStorage:
        return self._like(self._untyped_storage._on(device))

    def __deepcopy__(self, memo) -> TypedStorage:
        new = memo[id(self)] = self._like(copy.deepcopy(self._untyped_storage, memo))
        return new

    def __reduce__(self):
        return _retyped, (self._untyped_storage, self.dtype)

    def is_shared(self) -> bool:
        """May other processes have this memory?"""
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> TypedStorage:
        """Move to memory that processes share which are forked later, or to which it is sent."""
        self._untyped_storage.share_memory_()
        return self

    def pin_memory(self, device="cuda") -> TypedStorage:
        """A copy that a device could read by itself; ordinary memory serves here."""
        return self.clone()

    def _legacy(self) -> str | None:
        return _NAMES.get(self.dtype.name)

    def pickle_storage_type(self) -> str:
        """The name of the old class for this dtype."""
        return self._legacy()

    def type(self, dtype=None):
        """The name of the old class for this dtype."""
        name = self._legacy()
        return _name(self) if name is None else f"torch.{name}"

    def _cast(self, name: str) -> TypedStorage:
        kind = dt.by_name(name)
        made = _storage(self._values().astype(kind.np))
        return TypedStorage(wrap_storage=made, dtype=kind, _internal=True)

    def _title(self) -> str:
        return f"{_name(self)}(dtype={self.dtype}, device={self.device}) of size {len(self)}"


for _method, _dtype in _ITEMS.items():
    setattr(TypedStorage, _method, _casting(_dtype))


def _retyped(untyped: UntypedStorage, dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)


class _Legacy(type):
    """`FloatStorage` and the like make TypedStorages, and recognise those of their dtype."""

    def __instancecheck__(cls, instance) -> bool:
        return type(instance) is TypedStorage and instance.dtype is cls.dtype

    def __call__(cls, *args, wrap_storage=None):
        return TypedStorage(
            *args, wrap_storage=wrap_storage, dtype=cls.dtype, _internal=wrap_storage is not None
        )


_NAMES = {
    "float64": "DoubleStorage", "float32": "FloatStorage", "float16": "HalfStorage",
    "int64": "LongStorage", "int32": "IntStorage", "int16": "ShortStorage", "int8": "CharStorage",
    "uint8": "ByteStorage", "bool": "BoolStorage", "bfloat16": "BFloat16Storage",
    "complex128": "ComplexDoubleStorage", "complex64": "ComplexFloatStorage",
}  # fmt: skip

for _kind, _class in _NAMES.items():
    globals()[_class] = _Legacy(
        _class, (), {"dtype": dt.by_name(_kind), "__doc__": f"Storages of {_kind}; deprecated.",
                     "__module__": "torch"})  # fmt: skip


# what tensors have


class CapturedStorage:
    """The memory of a tensor while a function is captured: it takes another size when it runs."""

    def __init__(self, t: Tensor):
        self._tensor = t

    def resize_(self, size: int) -> CapturedStorage:
        """Another size, each time that the compiled function is called."""
        if size < 0:
            raise errors.RefusedValue(
                f"Storage size must not be negative, got {size} ({errors.user_line()})")
        self._tensor._payload.interp.memory.resized(self._tensor, size)
        return self

    def __getattr__(self, name: str):
        memory.owner_of(self._tensor, f"untyped_storage().{name}")  # which refuses
        raise AttributeError(name)


class WrapperStorage:
    """The memory that a wrapper does not have: one for all views of it, with a size."""

    def __init__(self, t: Tensor):
        self._cell, self.device = cell_of(t), t.device
        box = t._payload
        steps = [(n - 1) * s for n, s in zip(box.shape, box.strides)]
        self._bytes = box.offset + sum(steps) + box.dtype.itemsize if 0 not in box.shape else 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrapperStorage) and self._cell is other._cell

    def __hash__(self) -> int:
        return id(self._cell)

    @property
    def _cdata(self) -> int:
        return id(self._cell)

    def nbytes(self) -> int:
        """The size that its facts speak of."""
        return self._bytes

    size = nbytes

    def __getattr__(self, name: str):
        if name.startswith("__") or not hasattr(UntypedStorage, name) and name != "_write_file":
            raise AttributeError(name)

        def refuse(*args, **kwargs):
            raise RuntimeError(
                f"Attempted to call {name}() on an invalid python storage: a wrapper has no memory "
                f"({errors.user_line(2)}), ask the tensors inside")

        return refuse


def untyped_storage(self: Tensor) -> UntypedStorage | CapturedStorage | WrapperStorage:
    """The memory behind this tensor; the same object for all tensors that show it."""
    if is_wrapper_data(self._payload):
        return WrapperStorage(self)
    if getattr(getattr(self._payload, "interp", None), "adopts", False):
        return CapturedStorage(self)
    if type(self._payload) is Fake:
        return memory.storage_object(memory.root_of(self), _made_without_data, self)
    return memory.storage_object(memory.owner_of(self), _made, self)


def storage(self: Tensor) -> TypedStorage:
    """The memory behind this tensor as numbers of its dtype; deprecated."""
    _warn()
    return TypedStorage(wrap_storage=untyped_storage(self), dtype=self.dtype, _internal=True)


def storage_type(self: Tensor):
    """The class of this tensor's typed storage."""
    return globals()[_NAMES[self.dtype.name]]


def share_memory_(self: Tensor) -> Tensor:
    """Move the memory to where processes share it: forked ones, and those that it is sent to."""
    if self.device.type == "cpu":
        memory.share_shown(self)
    return self


def is_shared(self: Tensor) -> bool:
    """May other processes have the memory of this tensor?"""
    return self.device.type != "cpu" or shared_memory.is_shared(memory.owner_of(self))


_PICKLED = ("rebuild", "rebuild_wrapper", "_made_of", "_on_device")


def __getattr__(name: str):
    """Functions that pickles of earlier versions look for here."""
    if name in _PICKLED:
        from .tensor import pickling

        return getattr(pickling, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["TypedStorage", "UntypedStorage", "is_storage"]
