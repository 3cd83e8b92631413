"""Tensors out of what a checkpoint says about them, checked; and the names a checkpoint may use.

`Storage` is memory that several tensors may share.  The functions here are the ones that PyTorch's
files name (`torch._utils._rebuild_tensor_v2` and so on), with the arguments that stand in the file.
"""

from __future__ import annotations

import functools
import math
import sys
from collections import Counter, OrderedDict

import numpy as np

from .. import errors
from ..array import device as dev
from ..array.dtype import ALL, QUANTIZED, DType, Quantized, by_name
from ..array.fake import Fake
from ..array.generator import Generator
from ..array.layout import STRIDED, qscheme
from ..array.layout import layout as layouts
from ..array.lazy import CONJ, NEG, turned
from ..array.size import Size
from ..core.handle import Tensor, make
from ..interp.wrapper_subclass import make_wrapper_subclass
from ..parts.tensor import PartsTensor
from ..storage import TypedStorage, UntypedStorage
from ..storage import _storage as storage_of
from ..tensor.pickling import set_attributes
from ..threads.asking import no_overrides
from . import composed
from .archive import refused
from .names import OWN, STORAGES, dtype_named
from .restricted import Table, checked

_CODECS = ("latin1", "latin-1", "iso-8859-1", "utf-8", "utf8", "ascii")
LARGEST = (1 << 62) - 1


class StorageType:
    """What `torch.FloatStorage` stands for in a file: the dtype of the elements."""

    def __init__(self, name: str, dtype: DType | None):
        self.name, self.dtype = name, dtype
        self.itemsize = 1 if dtype is None else dtype.itemsize  # untyped: counted in bytes


class Storage:
    """The bytes behind tensors of a file, and the device that they are on."""

    def __init__(self, array, dtype: DType | None = None, device: dev.Device = dev.CPU):
        self.array, self.dtype, self.device = array, dtype, device
        self.copied = 0  # bytes that tensors copied out of here

    def nbytes(self) -> int:
        """Size in bytes."""
        return self.array.size

    size = __len__ = nbytes

    def to(self, device) -> Storage:
        """The storage on another device."""
        device = dev.Device(device)
        if device.type == self.device.type:
            return self
        away = device.type == "meta"
        array = _Nowhere(self.nbytes()) if away else dev.transfer(self.array, device)
        return Storage(array, self.dtype, device)

    def cpu(self) -> Storage:
        """The storage in main memory."""
        return self.to("cpu")

    def cuda(self, device=None, non_blocking: bool = False) -> Storage:
        """The storage on the GPU."""
        return self.to("cuda" if device is None else dev.Device(device))


def public(storage: Storage) -> Storage | UntypedStorage | TypedStorage:
    """The storage as users know it, should the file keep one; tensors find their way back."""
    if storage.device.type == "meta" or isinstance(storage.dtype, Quantized):
        return storage
    shown = storage_of(storage.array)
    if storage.dtype is not None:
        shown = TypedStorage(wrap_storage=shown, dtype=storage.dtype, _internal=True)
    shown._file = storage
    return shown


def _behind(storage) -> Storage | None:
    if type(storage) in (UntypedStorage, TypedStorage):
        return getattr(storage, "_file", None)
    return storage if type(storage) is Storage else None


class _Nowhere:
    """Memory of the meta device: a size."""

    def __init__(self, size: int):
        self.size = size


class _Absent:
    """A dtype of PyTorch's that is not here."""

    def __init__(self, name: str):
        self.name = name


def _integers(what: str, *values) -> None:
    if any(type(v) is not int or not 0 <= v <= LARGEST for v in values):
        shown = [v if type(v) is int else type(v).__name__ for v in values[:16]]
        raise refused(f"a tensor of the file has impossible {what}: {shown}")


def tensor(storage, offset, size, stride, requires_grad=False, hooks=None, metadata=None):
    """`torch._utils._rebuild_tensor_v2`."""
    storage = _behind(storage)
    if storage is None or storage.dtype is None:
        raise refused("a tensor of the file has no storage")
    return _tensor(storage, storage.dtype, offset, size, stride, requires_grad, metadata)


def tensor_v3(storage, offset, size, stride, requires_grad, hooks, dtype, metadata=None):
    """`torch._utils._rebuild_tensor_v3`: the dtype has no storage class of its own."""
    if type(dtype) is _Absent:
        not_here(f"torch.{dtype.name}")()
    storage = _behind(storage)
    if storage is None or type(dtype) is not DType:
        raise refused("a tensor of the file has no storage or no dtype")
    return _tensor(storage, dtype, offset, size, stride, requires_grad, metadata)


def _tensor(storage: Storage, dtype: DType, offset, size, stride, requires_grad, metadata):
    size, stride = _geometry(size, stride, dtype)
    _integers("storage offset", offset)
    item, count = dtype.itemsize, math.prod(size)
    last = offset + sum((n - 1) * s for n, s in zip(size, stride)) if count else offset - 1
    if (last + 1) * item > storage.nbytes():
        raise refused(f"a tensor of the file reaches beyond its storage: shape {list(size)}, "
                      f"strides {list(stride)}, offset {offset}, element size {item}, "
                      f"storage of {storage.nbytes()} bytes")
    strides = tuple(s * item for s in stride)
    if storage.device.type == "meta":
        data = Fake(size, dtype.np, strides, "meta")
    else:
        data = _strided(storage.array, size, dtype, offset * item, strides)
        if metadata:
            data = _marked(storage, data, metadata, count * item)
    return _finished(make(data), requires_grad)


def _geometry(size, stride, dtype: DType) -> tuple[tuple, tuple]:
    if not isinstance(size, (tuple, list)) or not isinstance(stride, (tuple, list)):
        raise refused("a tensor of the file has no shape")
    size, stride = tuple(size), tuple(stride)
    _integers("sizes", *size)
    _integers("strides", *stride)
    extent = math.prod(max(n, 1) for n in size) * dtype.itemsize
    reach = sum(n * s for n, s in zip(size, stride)) * dtype.itemsize
    if len(size) != len(stride) or len(size) > 64 or max(extent, reach) > LARGEST:
        raise refused(f"a tensor of the file has an impossible shape: {list(size[:8])} with "
                      f"strides {list(stride[:8])}")
    return size, stride


def _strided(base, size: tuple, dtype: DType, offset: int, strides: tuple):
    kind = dtype.np
    if isinstance(base, np.ndarray):
        if not math.prod(size):
            strides, offset = None, 0
        elif (dev.address(base) + offset) % kind.alignment:  # mapped, and not padded by its writer
            base = base.copy()
        if kind.kind == "W":  # NumPy makes arrays of foreign dtypes by looking at others only
            return np.ndarray(size, f"V{kind.itemsize}", base, offset, strides).view(kind)
        return np.ndarray(size, kind, base, offset, strides)
    _, xp = dev.lookup(base)
    return xp.ndarray(size, kind, memptr=base.data + offset, strides=strides)


def _marked(storage: Storage, data, metadata, nbytes: int):
    """Conjugated and negated, where the file says that this was put off."""
    if type(metadata) is not dict:
        raise refused("the metadata of a tensor of the file is no dictionary")
    if not isinstance(data, np.ndarray):  # computed at once there
        storage.copied += nbytes
        if storage.copied > 64 * storage.nbytes() + (1 << 20):
            raise refused("tensors of the file are far larger than their storage")
    for name, mark in (("conj", CONJ), ("neg", NEG)):
        if metadata.get(name):
            if mark is NEG and data.dtype.kind == "b":
                raise refused("the truth values of a tensor of the file are to be negated")
            data = turned(dev.lookup(data)[1], data, mark)
    return data


def _finished(t: Tensor, requires_grad) -> Tensor:
    return t.requires_grad_(True) if requires_grad is True else t


def meta_tensor(dtype, size, stride, requires_grad):
    """`torch._utils._rebuild_meta_tensor_no_storage`."""
    if type(dtype) is not DType:
        raise refused("a tensor of the file has no dtype")
    size, stride = _geometry(size, stride, dtype)
    strides = tuple(s * dtype.itemsize for s in stride)
    return _finished(make(Fake(size, dtype.np, strides, "meta")), requires_grad)


def quantized(storage, offset, size, stride, about, requires_grad=False, hooks=None):
    """`torch._utils._rebuild_qtensor`: integers, with the parameters that they have."""
    from ..quantized.tensor import QuantizedTensor

    storage = _behind(storage)
    kind = None if storage is None else storage.dtype
    if type(kind) is not Quantized or type(about) is not tuple or not (
            about and type(about[0]) is qscheme):
        raise refused("a quantised tensor of the file has no integers or no scheme")
    packed = None
    if kind.name in ("quint4x2", "quint2x4"):
        packed, _ = _geometry(size, stride, kind)
        size = (-(-math.prod(packed) // (2 if kind.name == "quint4x2" else 4)),)
        stride = (1,)
    integers = _tensor(storage, by_name(kind.numbers), offset, size, stride, False, None)
    if len(about) == 3 and type(about[1]) is float and type(about[2]) is int:
        axis = -1
        scale = make(np.asarray(about[1], np.float64))
        zero_point = make(np.asarray(about[2], np.int64))
    elif len(about) == 4 and type(about[1]) is type(about[2]) is Tensor:
        _, scale, zero_point, axis = about
        _integers("channels", axis)
        shape = integers.shape if packed is None else packed
        if axis >= len(shape) or not scale.numel() == zero_point.numel() == shape[axis]:
            raise refused("a quantised tensor of the file has impossible channels")
    else:
        raise refused("a quantised tensor of the file has no scale")
    return QuantizedTensor.make(integers, scale, zero_point, kind, axis, storage=packed)


def parameter(data, requires_grad, hooks=None):
    """`torch._utils._rebuild_parameter`."""
    from ..nn.parameter import Parameter

    if type(data) is not Tensor and not isinstance(data, PartsTensor):
        raise refused("a parameter of the file has no tensor")
    return Parameter(data, requires_grad is True)


def parameter_with_state(data, requires_grad, hooks, state):
    """`torch._utils._rebuild_parameter_with_state`."""
    new = parameter(data, requires_grad)
    new.__dict__.update(_state(state))
    return new


def _state(state) -> dict:
    if type(state) is not dict or not all(type(k) is str and k[:2] != "__" for k in state):
        raise refused("the attributes of a tensor of the file are no dictionary of names")
    return state


def wrapper(kind, dtype, size, stride, offset, layout, device, requires_grad):
    """`torch._utils._rebuild_wrapper_subclass`: facts without memory; the attributes follow."""
    if type(dtype) is not DType:
        raise refused("a tensor of the file has no dtype")
    size, stride = _geometry(size, stride, dtype)
    made = make_wrapper_subclass(kind, size, stride, offset, dtype=dtype, layout=layout,
                                 device=device)
    return _finished(made, requires_grad)


def _around(function, kind: type, args: tuple, state: dict) -> Tensor:
    """A tensor of parts that PyTorch has a class of wrappers for: masked ones."""
    if function is not wrapper or len(args) != 8 or kind.title != "masked":
        raise refused(f"a tensor of the file cannot become a {kind.__name__}")
    return composed.masked(kind, args[5], state, args[7] is True)


def from_type(function, kind, args, state):
    """`torch._tensor._rebuild_from_type_v2`: a tensor with attributes, or of another class."""
    known = any(function is f for f in (tensor, tensor_v3, meta_tensor, parameter, sparse_tensor,
                                        quantized, composed.jagged, composed.strided, wrapper))
    if not known or type(args) is not tuple:
        raise refused("a tensor of the file is made by something else than tensors are")
    jagged = kind is composed.Jagged and function is composed.jagged
    if not jagged and not (isinstance(kind, type) and issubclass(kind, Tensor)):
        raise refused(f"a tensor of the file would become a {type(kind).__name__}")
    slots = {}
    if type(state) is tuple and len(state) == 2:
        state, slots = state[0], _state(state[1])
    state = dict(_state(state))
    if not jagged and issubclass(kind, PartsTensor):
        new = _around(function, kind, args, state)
    else:
        new = function(*args)
    if jagged or kind is Tensor and isinstance(new, PartsTensor):
        kind = type(new)
        state = {k: v for k, v in state.items() if k not in composed.OWN}
    if kind is Tensor and state.pop("_is_buffer", False) is True:
        from ..nn.parameter import Buffer as kind
    if type(new) is not kind:
        requires_grad = new.requires_grad
        plain, new = new, object.__new__(kind)
        new._payload, new._edge = plain._payload, None
        new._link = new._cell = new._record = None
        with no_overrides():  # its attributes are not there yet
            new.requires_grad_(requires_grad)
    if "__setstate__" in kind.__dict__:  # of the user's class, which was allowed
        new.__setstate__(state)
    else:
        set_attributes(new, (state, slots))
    return new


def not_here(name: str):
    """The function for a kind of tensor that this package does not have."""

    def refuse(*args):
        raise errors.NotInThisBuild(
            errors.text(f"the file holds a tensor of a kind that is not here: {name} "
                        f"({errors.user_line(2)})", cure="convert it in PyTorch before saving, "
                        "with to(dtype), to_dense() or dequantize()")
        )

    refuse.__qualname__ = name
    return refuse


# plain values whose constructors could be asked for more than values


def _bytearray(data=b"", encoding=None):
    return bytearray(_encode(data, encoding) if isinstance(data, str) else bytes_of(data))


def bytes_of(data) -> bytes:
    if type(data) not in (bytes, bytearray, list):
        raise TypeError("bytes are made of bytes")
    return bytes(data)


def _encode(text, encoding="utf-8"):
    if type(text) is not str or type(encoding) is not str or encoding not in _CODECS:
        raise TypeError("text of the file is encoded in an unusual way")
    return text.encode(encoding)


def _complex(real, imag=0.0):
    if type(real) not in (int, float) or type(imag) not in (int, float):
        raise TypeError("complex numbers are made of numbers")
    return complex(real, imag)


def _size(values=()):
    values = tuple(values)
    _integers("sizes", *values)
    return Size(values)


def _device(kind, index=None):
    if type(kind) is not str or type(index) not in (int, type(None)):
        raise TypeError("a device is a name and a number")
    return dev.Device(kind, index)


def _layout(name):
    known = layouts.known.get(name.removeprefix("torch.")) if type(name) is str else None
    if known is None:
        not_here("_get_layout")()
    return known


def sparse_tensor(layout, data):
    """`torch._utils._rebuild_sparse_tensor`."""
    from ..sparse import construct

    if type(layout) is not layouts or layout is STRIDED or type(data) is not tuple:
        raise refused("a sparse tensor of the file has no layout or no parts")
    count = 2 if layout is layouts.known["sparse_coo"] else 3
    if any(type(t) is not Tensor for t in data[:count]) or len(data) < count + 1 or (
            type(data[count]) is not Size):
        raise refused("a sparse tensor of the file has parts that are no tensors")
    try:
        if count == 3:
            t = construct.sparse_compressed_tensor(*data[:4], layout=layout,
                                                   check_invariants=False)
        elif data[0].dtype.name != "int64":
            raise TypeError("indices are no int64")  # a cast would read them, too early
        else:
            flag = data[3] is True if len(data) > 3 else None
            t = construct.sparse_coo_tensor(*data[:3], check_invariants=False, is_coalesced=flag)
    except (RuntimeError, TypeError) as error:
        raise refused(f"a sparse tensor of the file has parts that do not fit: {error}") from error
    composed.later(functools.partial(composed.check_sparse, t))
    return t


def generator(device="cpu"):
    """`torch._C.Generator`: the state follows."""
    return _Seeded(device if type(device) is dev.Device else _device(device))


class _Seeded(Generator):
    """A generator that takes the state as PyTorch pickles it: seed, offset, bytes."""

    def __setstate__(self, saved) -> None:
        if type(saved) is not tuple or type(saved[-1]) is not Tensor:
            raise refused("a generator of the file has no state")
        self.__class__ = Generator
        try:
            self.set_state(saved[-1]._payload)
        except (RuntimeError, TypeError) as error:
            raise refused(f"a generator of the file has a damaged state: {error}") from error


_TENSORS = {
    "torch._utils._rebuild_tensor": tensor,
    "torch._utils._rebuild_tensor_v2": tensor,
    "torch._utils._rebuild_tensor_v3": tensor_v3,
    "torch._utils._rebuild_meta_tensor_no_storage": meta_tensor,
    "torch._utils._rebuild_qtensor": quantized,
    "torch._utils._rebuild_parameter": parameter,
    "torch._utils._rebuild_parameter_with_state": parameter_with_state,
    "torch._utils._rebuild_wrapper_subclass": wrapper,
    "torch._utils._rebuild_sparse_tensor": sparse_tensor,
    "torch._utils._rebuild_sparse_csr_tensor": sparse_tensor,  # of files before version 2
    "torch._utils._rebuild_nested_tensor": composed.strided,
    "torch.nested._internal.nested_tensor._rebuild_njt": composed.jagged,
    "torch._tensor._rebuild_from_type_v2": from_type,
    "torch._C.Generator": generator,
    "torch.serialization._get_layout": _layout,
    **{
        f"torch._utils.{name}": not_here(name)
        for name in ("_rebuild_device_tensor_from_numpy",
                     "_rebuild_device_tensor_from_cpu_tensor")
    },
}  # fmt: skip
_VALUES = {  # what a name is -> what runs when it is called
    "torch.Size": (Size, _size),
    "torch.device": (dev.Device, _device),
    "collections.OrderedDict": (OrderedDict, lambda *a: OrderedDict(_pairs(*a))),
    "collections.Counter": (Counter, lambda *a: Counter(dict(*a))),
    "builtins.set": (set, lambda *a: set(checked(*a))),
    "builtins.bytearray": (bytearray, _bytearray),
    "builtins.complex": (complex, _complex),
    "_codecs.encode": (sys.modules["codecs"].encode, _encode),
}


def _pairs(pairs=()) -> list:
    pairs = list(pairs.items() if isinstance(pairs, dict) else pairs)
    checked(key for key, _ in pairs)
    return pairs


@functools.cache
def builtin() -> Table:
    """The names that every checkpoint may use."""
    names: dict = dict(_TENSORS)
    calls = {id(function): function for function in _TENSORS.values()}
    for name, (value, call) in _VALUES.items():
        names[name], calls[id(value)] = value, call
        if name.startswith("builtins."):  # as Python 2 calls them
            names[name.replace("builtins", "__builtin__")] = value
    for name in (*_LATER, *(dtype.name for dtype in ALL)):
        names[f"torch.{name}"] = dtype_named(name) or _Absent(name)
    for value in (*QUANTIZED, *qscheme.known.values()):
        names[f"torch.{value.name}"] = value
    for dtype_name, name in STORAGES.items():
        names[f"torch.{name}"] = StorageType(name, dtype_named(dtype_name))
        names[f"torch.cuda.{name}"] = names[f"torch.{name}"]
    for name in ("torch.storage.UntypedStorage", "torch.UntypedStorage"):
        names[name] = StorageType("UntypedStorage", None)
    names["torch.Tensor"] = Tensor
    names["torch.nested._internal.nested_tensor.NestedTensor"] = composed.Jagged
    names["torch._dynamo.decorators._DimRange"] = composed.DimRange
    calls[id(composed.DimRange)] = composed.DimRange
    from ..nn.parameter import Parameter

    names["torch.nn.parameter.Parameter"] = names["torch.nn.Parameter"] = Parameter
    return Table(names, calls, (_Seeded, composed.DimRange))


_LATER = ("complex32", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2",
          "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")  # fmt: skip


def with_user(safe: list) -> Table:
    """The table with what the user declared safe."""
    if not safe:
        return builtin()
    table = builtin()
    calls, classes = dict(table.calls), list(table.classes)
    names = _Names(table.names)
    for item in safe:
        value, name = item if isinstance(item, tuple) else (item, None)
        if name is None:
            name = f"{value.__module__}.{value.__qualname__}"
        names[name] = value
        if name.startswith(f"{OWN}."):
            names.own.append((value, name.split(".")[1]))
        calls[id(value)] = value
        if isinstance(value, type):
            classes.append(value)
    return Table(names, calls, tuple(classes))


class _Names(dict):
    """Names with classes of this package at every path that PyTorch may give them."""

    def __init__(self, names: dict):
        super().__init__(names)
        self.own: list[tuple] = []  # value, package that it is in

    def __missing__(self, full: str):
        root, _, rest = full.partition(".")
        for value, package in self.own:
            if root == "torch" and rest.startswith(package) and (
                full.endswith(f".{value.__qualname__}")
            ):
                return value
        raise KeyError(full)
