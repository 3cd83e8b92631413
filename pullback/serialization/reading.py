"""`load`: checkpoint files of PyTorch and of this package.

By default nothing in the file is run: `restricted.py` reads the pickle.  With `weights_only=False`
Python's own unpickler does, and imports and calls whatever the file names.
"""

from __future__ import annotations

import contextlib
import enum
import io
import os
import pickle
import pickletools
import struct
import sys
from collections.abc import Callable
from typing import IO, Any

import numpy as np

from .. import errors
from ..array import device as dev
from . import names
from .archive import Archive, filled, refused
from .composed import checking
from .rebuild import (
    LARGEST,
    Storage,
    StorageType,
    builtin,
    public,
    with_user,
)
from .restricted import Restricted
from .writing import MAGIC, VERSION

_safe: list = []
_order: LoadEndianness | None = None


class LoadEndianness(enum.Enum):
    """Byte order of files that do not say theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order that is assumed where a file says none."""
    return _order


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the byte order that is assumed where a file says none."""
    global _order
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _order = endianness


def add_safe_globals(safe_globals: list) -> None:
    """Let `weights_only=True` make objects of these classes and call these functions.

    An item is a class or function, or a pair of one and the name that files have for it.
    """
    for item in safe_globals:
        value = item[0] if isinstance(item, tuple) else item
        if not callable(value):
            raise TypeError(f"add_safe_globals() wants classes and functions, got {value!r}")
        if item not in _safe:
            _safe.append(item)


def get_safe_globals() -> list:
    """What was declared safe."""
    return list(_safe)


def clear_safe_globals() -> None:
    """Declare nothing safe any longer."""
    _safe.clear()


class safe_globals(contextlib.ContextDecorator):
    """`add_safe_globals` for the time being."""

    def __init__(self, safe_globals: list):
        self.items = list(safe_globals)

    def __enter__(self):
        self.before = list(_safe)
        add_safe_globals(self.items)

    def __exit__(self, *exc):
        _safe[:] = self.before


def get_unsafe_globals_in_checkpoint(f: str | os.PathLike | IO[bytes]) -> list[str]:
    """The names in a file that `weights_only=True` does not allow as things stand."""
    with _opened(f) as file:
        if not _is_zip(file):
            raise refused("only files in the zip format can be looked through")
        body = Archive(file).read("data.pkl")
    found, texts, memo = {}, [], {}
    try:
        for code, arg, _ in pickletools.genops(body):
            if code.name == "GLOBAL":
                found[arg.replace(" ", ".", 1)] = True
            elif code.name == "STACK_GLOBAL":
                found[".".join(texts[-2:])] = True
            elif "UNICODE" in code.name:
                texts.append(arg)
            elif code.name == "MEMOIZE":
                memo[len(memo)] = texts[-1] if texts else ""
            elif "GET" in code.name:
                texts.append(memo.get(arg, ""))
    except (ValueError, UnicodeDecodeError) as error:
        raise errors.UnsafePickle(f"the file's pickle is damaged: {error}") from error
    allowed = with_user(_safe).names
    return sorted(name for name in found if _missing(allowed, name))


def _missing(table: dict, name: str) -> bool:
    try:
        table[name]
    except KeyError:
        return True
    return False


# where storages go


def _restored(storage: Storage, location) -> Storage:
    if not isinstance(location, str):
        raise refused("the location of a storage of the file is no text")
    try:
        return storage.to(location)
    except (errors.DeviceError, ValueError) as error:
        raise errors.DeviceError(
            errors.text(
                f"a storage of the file belongs to the device {location!r}, which is not here "
                f"({errors.user_line(2)})",
                str(error).splitlines()[0],
                "load(..., map_location='cpu')",
            )
        ) from error


def _placer(map_location) -> Callable[[Storage, str], Storage]:
    if map_location is None:
        return _restored
    if isinstance(map_location, dict):
        return lambda storage, location: _restored(storage, map_location.get(location, location))
    if isinstance(map_location, (str, bytes, dev.Device)):
        target = map_location.decode() if isinstance(map_location, bytes) else str(map_location)
        dev.Device(target)
        return lambda storage, location: _restored(storage, target)
    if not callable(map_location):
        raise errors.ArgumentError(
            errors.text(f"map_location is a {type(map_location).__name__} ({errors.user_line(2)})",
                        cure="give a device, its name, a dictionary of names, or a function of a "
                        "storage and a name")
        )

    def place(storage: Storage, location: str) -> Storage:
        result = map_location(storage, location)
        if result is None:
            return _restored(storage, location)
        if not isinstance(result, Storage):
            raise errors.ArgumentError("map_location returned a "
                                       f"{type(result).__name__}, not the storage that it got")
        return result

    return place


def _swapped(array: np.ndarray, kind: StorageType) -> np.ndarray:
    """The other byte order."""
    if kind.dtype is None:
        raise refused("the file has the other byte order and a storage without a dtype")
    unit = kind.itemsize // 2 if kind.dtype.is_complex else kind.itemsize
    out = np.empty_like(array)  # which owns its memory
    out.view(f"u{unit}")[...] = array.view(f"u{unit}").byteswap()
    return out


def _is(value, expected) -> bool:
    """Equality that asks nothing of what came out of a file."""
    return type(value) is type(expected) and value == expected


def _described(pid) -> tuple[StorageType, str, str, int]:
    """What a persistent id says: kind, key, location, number of bytes."""
    if not isinstance(pid, tuple) or len(pid) < 5 or not _is(pid[0], "storage"):
        raise refused("the file has a reference of an unknown kind")
    _, kind, key, location, count = pid[:5]
    if type(kind) is not StorageType or not isinstance(key, str) or type(count) is not int:
        raise refused("the file has a damaged reference to a storage")
    size = count * kind.itemsize
    if not 0 <= size <= LARGEST:
        raise refused(f"a storage of the file has an impossible size: {count} elements")
    return kind, key, location, size


class _Zip:
    """One file in the zip format."""

    def __init__(self, archive: Archive, place: Callable):
        self.archive, self.place = archive, place
        self.storages: dict[str, tuple[StorageType, Storage]] = {}
        self.swap = self._order() != sys.byteorder

    def _order(self) -> str:
        if "byteorder" in self.archive:
            found = self.archive.read("byteorder")[:16]
            if found not in (b"little", b"big"):
                raise errors.BadValue(f"Unknown endianness type: the file says {found!r}")
            return found.decode()
        known = {LoadEndianness.LITTLE: "little", LoadEndianness.BIG: "big"}
        return known.get(_order, sys.byteorder if _order is LoadEndianness.NATIVE else "little")

    def persistent(self, pid) -> Storage:
        kind, key, location, size = _described(pid)
        if key not in self.storages:
            array = self.archive.array(f"data/{key}", size)
            if self.swap:
                array = _swapped(array, kind)
            placed = self.place(Storage(array, kind.dtype), location)
            self.storages[key] = kind, public(placed)
        known, storage = self.storages[key]
        if known is not kind:
            raise refused(f"the file has two dtypes for the storage {key!r}")
        return storage


class _Old:
    """One file in the format before zip: pickles one after the other, then the storages."""

    def __init__(self, place: Callable, limit: int):
        self.place, self.left = place, limit
        self.storages: dict[str, tuple[StorageType, int, Storage]] = {}

    def persistent(self, pid):
        if isinstance(pid, tuple) and len(pid) > 1 and _is(pid[0], "module"):
            return pid[1]  # a class, which comes with its source text
        kind, key, location, size = _described(pid)
        if key not in self.storages:
            self.left -= size
            if self.left < 0:
                raise refused("the storages of the file are larger than the file")
            storage = self.place(Storage(np.empty(size, np.uint8), kind.dtype), location)
            self.storages[key] = kind, size, storage
        storage = self.storages[key][2]
        part = pid[5] if len(pid) > 5 else None
        if part is None:
            return public(storage)
        _, start, length = part
        if type(start) is not int or type(length) is not int or start < 0 or length < 0:
            raise refused("the file has a damaged reference to a part of a storage")
        piece = slice(start * kind.itemsize, (start + length) * kind.itemsize)
        return Storage(storage.array[piece], kind.dtype, storage.device)

    def fill(self, file: IO[bytes], keys, swap: bool) -> None:
        if type(keys) is not list or any(type(k) is not str for k in keys) or (
            set(keys) != set(self.storages)
        ):
            raise refused("the file does not list its storages")
        for key in keys:
            kind, size, storage = self.storages[key]
            count = struct.unpack("<q", filled(file, 8).tobytes())[0]
            if count * kind.itemsize != size:
                raise refused(f"the storage {key!r} has {count} elements where the tensors say "
                              f"{size // kind.itemsize}")
            data = filled(file, size)
            if storage.device.type != "meta":
                storage.array[...] = dev.transfer(_swapped(data, kind) if swap else data,
                                                  storage.device)  # fmt: skip


def _unpickler(module, file: IO[bytes], persistent: Callable, options: dict):
    table = builtin().names

    class Unpickler(module.Unpickler):
        def find_class(self, where: str, name: str):
            full = f"{where}.{name}"
            if full in table:
                return table[full]
            if full == "torch.storage._load_from_bytes":
                return lambda data: load(io.BytesIO(data), weights_only=False)
            if where == "torch" or where.startswith("torch."):
                return names.found(where, name)
            return super().find_class(where, name)

        def persistent_load(self, pid):
            return persistent(pid)

    return Unpickler(file, **options)


@contextlib.contextmanager
def _opened(f):
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            yield file
        return
    lacking = [name for name in ("read", "seek", "tell", "readline") if not hasattr(f, name)]
    if lacking:
        raise AttributeError(f"load() wants a path or a file that can seek; {type(f).__name__} has "
                             f"no {' and no '.join(lacking)}\n  Fix: read it into an io.BytesIO")
    yield f


def _is_zip(file: IO[bytes]) -> bool:
    start = file.tell()
    head = file.read(4)
    file.seek(start)
    return head == b"PK\3\4"


def load(
    f: str | os.PathLike | IO[bytes],
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what `save`, here or in PyTorch, has written.

    Without `weights_only=False` the file can contain tensors, plain values and what
    `add_safe_globals` allows, and nothing of it is run.  `mmap=True` maps the file instead of
    reading it; `map_location` says where tensors go.
    """
    weights_only = _decided(weights_only, pickle_module)
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
    options = {"encoding": "utf-8", **pickle_load_args}
    place = _placer(map_location)

    def reader(file: IO[bytes], limit: int, persistent: Callable) -> Callable:
        if weights_only:
            return Restricted(file, limit, with_user(_safe), persistent, options["encoding"]).load
        # one for each pickle, as an unpickler reads ahead in what it was given
        return lambda: _unpickler(pickle_module or pickle, file, persistent, options).load()

    with _opened(f) as file, checking() as checks:
        if _is_zip(file):
            return _load_zip(file, bool(mmap), place, reader)
        if mmap:
            raise refused("mmap can only be used with files in the zip format",
                          "save() the object again, or leave mmap out")
        checks.late = True
        return _load_old(file, place, reader)


def _decided(weights_only: bool | None, pickle_module) -> bool:
    if os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0") in ("1", "y", "yes", "true"):
        weights_only = True
    elif weights_only is None:
        force = os.environ.get("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0")
        weights_only = pickle_module is None and force not in ("1", "y", "yes", "true")
    if weights_only and pickle_module is not None:
        raise errors.RefusedValue("Can not safely load weights when explicit pickle_module is "
                                  "specified\n  Fix: leave pickle_module out, or "
                                  "weights_only=False")
    return bool(weights_only)


def _load_zip(file: IO[bytes], mapped: bool, place: Callable, reader: Callable):
    archive = Archive(file, mapped)
    if "constants.pkl" in archive and "data.pkl" in archive and any(
        name.startswith("code/") for name in archive.entries
    ):
        raise refused("the file is a TorchScript program, not a checkpoint",
                      "save the state_dict() of the module in PyTorch")
    body = archive.read("data.pkl")
    return reader(io.BytesIO(body), len(body), _Zip(archive, place).persistent)()


def _load_old(file: IO[bytes], place: Callable, reader: Callable):
    start = file.tell()
    limit = file.seek(0, os.SEEK_END)
    file.seek(start)
    if limit == start:
        raise EOFError("Ran out of input: the file is empty")
    old = _Old(place, limit - start)
    step = reader(file, limit, old.persistent)
    if not _is(step(), MAGIC):
        raise refused("Invalid magic number; corrupt file? It is no checkpoint")
    if not _is(step(), VERSION):
        raise refused("the file has an unknown version")
    system = step()
    if type(system) is not dict:
        raise refused("the file does not say on which kind of machine it was written")
    value = step()
    keys = step()
    little = system.get("little_endian", True) is not False
    old.fill(file, keys, swap=little != (sys.byteorder == "little"))
    return value
