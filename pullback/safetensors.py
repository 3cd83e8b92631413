"""Safetensors files: a header of names, dtypes, shapes and places, then the bytes.  No pickle.

The functions are those of the package `safetensors.torch`.  `load_file` reads, `safe_open` maps the
file and makes tensors as they are asked for.  Every number of a header is checked against the file
before it is used.  `serialization/` has PyTorch's own format.
"""

from __future__ import annotations

import itertools
import json
import math
import mmap
import os
import struct
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import errors
from .array import device as dev
from .array import dtype as dt
from .array.fake import Fake
from .core.handle import Tensor, make
from .serialization.archive import filled, refused, replacing

__all__ = ["SafetensorError", "load", "load_file", "load_model", "safe_open", "save", "save_file",
           "save_model"]  # fmt: skip

SafetensorError = errors.FileFormatError
LONGEST_HEADER = 100_000_000
# in the order in which the format sorts them: files begin with the last ones
DTYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E8M0": "float8_e8m0fnu",
    "I16": "int16",
    "U16": "uint16",
    "F16": "float16",
    "BF16": "bfloat16",
    "I32": "int32",
    "U32": "uint32",
    "F32": "float32",
    "C64": "complex64",
    "F64": "float64",
    "I64": "int64",
    "U64": "uint64",
}
_CODES = {name: code for code, name in DTYPES.items()}
_RANK = {code: rank for rank, code in enumerate(DTYPES)}


# --- headers --------------------------------------------------------------------------------------


class _Entry:
    """Where a tensor is in a file and what it is."""

    def __init__(self, name: str, facts: Any) -> None:
        if type(facts) is not dict or set(facts) != {"dtype", "shape", "data_offsets"}:
            raise refused(f"the header has no dtype, shape and data_offsets for {name!r}")
        code, shape, place = facts["dtype"], facts["shape"], facts["data_offsets"]
        if type(code) is not str or code not in DTYPES:
            raise refused(f"the header gives {name!r} an unknown dtype")
        try:
            self.dtype = dt.by_name(DTYPES[code])
        except KeyError:
            raise refused(f"the tensor {name!r} has the dtype {code}, which is not here",
                          "convert it where it was made") from None
        for what, numbers in (("shape", shape), ("data_offsets", place)):
            if type(numbers) is not list or len(numbers) > 64 or any(
                type(n) is not int or not 0 <= n < 1 << 62 for n in numbers
            ):
                raise refused(f"the header gives {name!r} an impossible {what}")
        size = math.prod(shape) * self.dtype.itemsize
        if len(place) != 2 or place[1] - place[0] != size or (
            math.prod(max(n, 1) for n in shape) >= 1 << 62
        ):
            raise refused(f"the header gives {name!r} the place {place}, but a tensor of shape "
                          f"{shape[:8]} and dtype {code} has {size} bytes")
        self.name, self.code, self.shape = name, code, tuple(shape)
        self.start, self.end = place


def _once(pairs: list) -> dict:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name appears twice")
    return found


def _header(head: bytes, size: int) -> tuple[dict[str, _Entry], dict[str, str] | None]:
    """The tensors of a header, in the order of their places, and the metadata."""
    try:
        if not head.startswith(b"{"):
            raise ValueError("it does not begin with a brace")
        found = json.loads(head.decode("utf-8"), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise refused(f"the header is no valid JSON: {error}") from error
    metadata = found.pop("__metadata__", None)
    if metadata is not None and (type(metadata) is not dict or any(
        type(value) is not str for value in metadata.values()
    )):
        raise refused("the metadata of the header are no texts")
    entries = sorted((_Entry(*item) for item in found.items()), key=lambda e: (e.start, e.end))
    end = 0
    for entry in entries:
        if entry.start != end:
            raise refused(f"the tensor {entry.name!r} begins at byte {entry.start}, but the one "
                          f"before it ends at {end}: tensors may neither overlap nor leave gaps")
        end = entry.end
    if end != size:
        raise refused(f"the header describes {end} bytes, the file has {size}")
    return {entry.name: entry for entry in entries}, metadata


def _length(first: bytes, size: int) -> int:
    """The length of the header, which must fit into the file."""
    if len(first) < 8:
        raise refused("the file is too short to be a safetensors file")
    length = struct.unpack("<Q", first)[0]
    if length > min(LONGEST_HEADER, size - 8):
        raise refused(f"the file announces a header of {length} bytes; it has {size} bytes itself, "
                      f"and headers have at most {LONGEST_HEADER}")
    return length


# --- reading --------------------------------------------------------------------------------------


def _tensor(raw: np.ndarray, entry: _Entry, device: dev.Device) -> Tensor:
    """Bytes as a tensor."""
    if device.type == "meta":
        return make(Fake(entry.shape, entry.dtype.np, None, "meta"))
    if dev.address(raw) % entry.dtype.np.alignment:
        raw = raw.copy()
    array = raw.view(entry.dtype.np).reshape(entry.shape)
    if sys.byteorder == "big":
        array = array.byteswap()
    return make(dev.transfer(array, device))


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors in the bytes of a file."""
    length = _length(data[:8], len(data))
    start = 8 + length
    entries, _ = _header(data[8:start], len(data) - start)
    return {
        name: _tensor(np.frombuffer(bytearray(data[start + e.start : start + e.end]), np.uint8), e,
                      dev.CPU)
        for name, e in entries.items()
    }  # fmt: skip


def load_file(filename: str | os.PathLike, device: str | int | dev.Device = "cpu") -> Any:
    """The tensors of a file, by name."""
    device = dev.Device(device)
    with open(filename, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        length = _length(file.read(8), size)
        entries, _ = _header(file.read(length), size - 8 - length)
        return {name: _tensor(filled(file, e.end - e.start), e, device)
                for name, e in entries.items()}  # fmt: skip


class safe_open:
    """A file whose tensors are mapped when they are asked for.

    A context manager; tensors stay valid afterwards.  Writing to them does not change the file.
    """

    def __init__(self, filename: str | os.PathLike, framework: str = "pt",
                 device: str | int | dev.Device = "cpu") -> None:
        if framework not in ("pt", "torch", "pytorch", "np", "numpy"):
            raise errors.BadValue(f"safe_open knows the frameworks pt and np, not {framework!r}")
        self._numpy = framework in ("np", "numpy")
        self._device = dev.Device(device)
        with open(filename, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            length = _length(file.read(8), size)
            self._entries, self._metadata = _header(file.read(length), size - 8 - length)
            self._start = 8 + length
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *exc) -> None:
        self._map = None  # tensors that were made keep it open

    def keys(self) -> list[str]:
        """The names, in order of the alphabet."""
        return sorted(self._entries)

    def offset_keys(self) -> list[str]:
        """The names, in the order in which the tensors are in the file."""
        return list(self._entries)

    def metadata(self) -> dict[str, str] | None:
        """What the writer put into the header beside the tensors."""
        return self._metadata

    def _entry(self, name: str) -> _Entry:
        if self._map is None:
            raise errors.FileFormatError("the file is closed: the `with` block has ended")
        try:
            return self._entries[name]
        except KeyError:
            raise refused(f"File does not contain tensor {name}", "see keys()") from None

    def get_tensor(self, name: str):
        """A tensor, or an array if the framework is NumPy."""
        entry = self._entry(name)
        count, start = entry.end - entry.start, self._start + entry.start
        raw = np.frombuffer(self._map, np.uint8, count, start) if count else np.empty(0, np.uint8)
        made = _tensor(raw, entry, self._device)
        return made.numpy() if self._numpy else made

    def get_slice(self, name: str) -> _Slice:
        """A tensor of which only parts will be read."""
        return _Slice(self, self._entry(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())


class _Slice:
    """A tensor in a file; indexing reads a part of it."""

    def __init__(self, file: safe_open, entry: _Entry) -> None:
        self._file, self._facts = file, entry

    def get_shape(self) -> list[int]:
        """The shape of the whole."""
        return list(self._facts.shape)

    def get_dtype(self) -> str:
        """The dtype, by the format's name."""
        return self._facts.code

    def __getitem__(self, index):
        return self._file.get_tensor(self._facts.name)[index]


# --- writing --------------------------------------------------------------------------------------


def _arrays(tensors: dict[str, Tensor]) -> list[tuple[str, str, np.ndarray]]:
    """Name, dtype and memory of each tensor, in the order of the file."""
    if not isinstance(tensors, dict):
        raise errors.BadValue(f"save wants a dictionary of tensors, got {type(tensors).__name__}")
    found, spans = [], []
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise errors.BadValue(
                errors.text(f"Key {name!r} is invalid, expected torch.Tensor but received "
                            f"{type(tensor).__name__} ({errors.user_line(2)})")
            )
        array = tensor.detach().cpu().numpy()
        code = _CODES.get(tensor.dtype.name)
        if code is None:
            raise errors.BadValue(f"safetensors files have no dtype for {tensor.dtype}, "
                                  f"which {name!r} has")
        if not tensor.is_contiguous():
            raise errors.BadValue(
                errors.text(
                    f"You are trying to save a non contiguous tensor: {name!r} "
                    f"({errors.user_line(2)})", "the file could not tell its strides",
                    "call .contiguous() on it",
                )
            )
        if array.size:
            start = dev.address(array)
            spans.append((start, start + array.nbytes, name))
        found.append((name, code, array))
    spans.sort()
    shared = [(a[2], b[2]) for a, b in itertools.pairwise(spans) if b[0] < a[1]]
    if shared:
        raise errors.RefusedValue(
            errors.text(
                f"Some tensors share memory, the file would hold them twice: {shared} "
                f"({errors.user_line(2)})", cure=["save_model() for a module",
                                                  "or clone() all but one"],
            )
        )
    return sorted(found, key=lambda item: (-_RANK[item[1]], item[0]))


def _written(tensors: dict[str, Tensor], metadata: dict[str, str] | None):
    """The header and the arrays that follow it."""
    if metadata is not None and any(
        type(k) is not str or type(v) is not str for k, v in metadata.items()
    ):
        raise errors.ArgumentError("metadata of a safetensors file are texts by name, got "
                                   f"{metadata!r:.200}")
    arrays = _arrays(tensors)
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    end = 0
    for name, code, array in arrays:
        header[name] = {"dtype": code, "shape": list(array.shape),
                        "data_offsets": [end, end + array.nbytes]}  # fmt: skip
        end += array.nbytes
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    if len(head) > LONGEST_HEADER:
        raise errors.BadValue(f"the header would have {len(head)} bytes")
    swap = sys.byteorder == "big"
    pieces = (a.byteswap() if swap else a for _, _, a in arrays if a.size)
    yield struct.pack("<Q", len(head)) + head
    for array in pieces:
        yield memoryview(array.reshape(-1).view(np.uint8))


def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a file with these tensors."""
    return b"".join(_written(tensors, metadata))


def save_file(
    tensors: dict[str, Tensor],
    filename: str | os.PathLike,
    metadata: dict[str, str] | None = None,
) -> None:
    """Write tensors to a file."""
    pieces = _written(tensors, metadata)
    first = next(pieces)  # all checks are made before the file is touched
    with replacing(filename) as file:
        file.write(first)
        for piece in pieces:
            file.write(piece)


def save_model(model, filename: str | os.PathLike, metadata: dict[str, str] | None = None,
               force_contiguous: bool = True) -> None:
    """Write a module's state; of tensors that are the same memory one is kept, the others noted."""
    kept: dict[tuple, str] = {}
    state, notes = {}, dict(metadata or {})
    for name, tensor in sorted(model.state_dict().items()):
        array = tensor.detach().cpu().numpy()
        same = (dev.address(array), array.shape, array.strides) if array.size else (name,)
        if same in kept:
            notes[name] = kept[same]
        else:
            kept[same] = name
            state[name] = tensor.contiguous() if force_contiguous else tensor
    save_file(state, filename, notes or None)


def load_model(model, filename: str | os.PathLike, strict: bool = True,
               device: str | int | dev.Device = "cpu") -> tuple[set[str], list[str]]:
    """Read a module's state; returns the names that the file lacks and those that nothing wants."""
    state = load_file(filename, device)
    own = {name: t.detach().cpu().numpy() for name, t in model.state_dict().items()}
    found = {dev.address(own[name]) for name in state if name in own}
    missing, unexpected = model.load_state_dict(state, strict=False)
    missing = {name for name in missing if dev.address(own[name]) not in found}
    if strict and (missing or unexpected):
        raise errors.RefusedValue(
            errors.text(f"Error(s) in loading state_dict for {type(model).__name__} "
                        f"({errors.user_line(2)})",
                        [f"Missing key(s): {sorted(missing)}" if missing else "",
                         f"Unexpected key(s): {sorted(unexpected)}" if unexpected else ""],
                        "load_model(..., strict=False)")
        )
    return missing, unexpected
