"""The zip files that checkpoints are: records under one folder, stored and aligned.

`Archive` reads one.  It trusts nothing that the file says before it has been compared with the
size of the file, so that a small file cannot ask for much memory.  `Writer` writes one.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import shutil
import struct
import threading
import zipfile
import zlib
from typing import IO

import numpy as np

from .. import errors

ALIGNMENT = 64  # of the data of records, so that mapped arrays are aligned
_LOCAL = struct.Struct("<4s5H3I2H")  # the header in front of a record
# What compressed records may unpack to, all together: nobody compresses weights, and those who do
# do not get far. A bomb gets a thousand times its size.
_UNPACKED, _RATIO = 1 << 26, 50


def refused(what: str, cure: str = "get the file again from where it came") -> Exception:
    """The error for a file that is not what it should be."""
    return errors.FileFormatError(errors.text(f"{what} ({errors.user_line(2)})", cure=cure))


class Archive:
    """The records of a zip file, by name."""

    def __init__(self, file: IO[bytes], mapped: bool = False):
        self.file = file
        self.size = file.seek(0, os.SEEK_END)
        self.map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if mapped else None
        try:
            entries = zipfile.ZipFile(file).infolist()
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, OSError,
                OverflowError, MemoryError, EOFError, IndexError) as error:
            raise refused("the file is no complete zip archive: failed finding central directory: "
                          f"{error}") from error
        if not entries:
            raise refused("the archive is empty")
        self.root = entries[0].filename.partition("/")[0]
        self.entries: dict[str, zipfile.ZipInfo] = {}
        for entry in entries:
            self._check(entry)
            self.entries[entry.filename.removeprefix(self.root + "/")] = entry
        self._check_places()

    def _check(self, entry: zipfile.ZipInfo) -> None:
        name = entry.filename
        if not name.startswith(self.root + "/") or ".." in name.split("/"):
            raise refused(f"the archive has a record {name!r} outside of its folder")
        if name.removeprefix(self.root + "/") in self.entries:
            raise refused(f"the archive has two records called {name!r}")
        if entry.flag_bits & 0x1:
            raise refused(f"the record {name!r} is encrypted")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise refused(f"the record {name!r} is compressed in a way that checkpoints are not")
        if entry.compress_type == zipfile.ZIP_STORED and entry.file_size != entry.compress_size:
            raise refused(f"the record {name!r} has two different sizes")

    def _check_places(self) -> None:
        """No two records may share bytes: each would count again."""
        end, unpacked = 0, 0
        for entry in sorted(self.entries.values(), key=lambda e: e.header_offset):
            if entry.header_offset < end:
                raise refused(f"the record {entry.filename!r} overlaps another one")
            end = entry.header_offset + _LOCAL.size + len(entry.orig_filename) + entry.compress_size
            if end > self.size:
                raise refused(f"the record {entry.filename!r} ends after the end of the file")
            if entry.compress_type != zipfile.ZIP_STORED:
                unpacked += entry.file_size
        if unpacked > _UNPACKED + _RATIO * self.size:
            raise refused(f"the compressed records would unpack to {unpacked} bytes, "
                          f"from a file of {self.size}")

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    def _entry(self, name: str) -> tuple[zipfile.ZipInfo, int]:
        """A record's facts and the place of its data."""
        try:
            entry = self.entries[name]
        except KeyError:
            raise refused(f"file not found: the archive has no record {name!r}") from None
        self.file.seek(entry.header_offset)
        head = self.file.read(_LOCAL.size)
        if len(head) != _LOCAL.size or head[:4] != b"PK\3\4":
            raise refused(f"the record {name!r} is not where the archive says")
        fields = _LOCAL.unpack(head)
        start = entry.header_offset + _LOCAL.size + fields[-2] + fields[-1]
        if start + entry.compress_size > self.size:
            raise refused(f"the record {name!r} ends after the end of the file")
        return entry, start

    def read(self, name: str) -> bytes:
        """A record's bytes."""
        return self.array(name).tobytes()

    def array(self, name: str, size: int | None = None) -> np.ndarray:
        """A record as an array of bytes; it must have `size` of them."""
        entry, start = self._entry(name)
        if size is not None and entry.file_size != size:
            raise refused(f"the record {name!r} has {entry.file_size} bytes where the tensors say "
                          f"{size}")
        if entry.compress_type != zipfile.ZIP_STORED:
            self.file.seek(start)
            return self._unpacked(name, self.file.read(entry.compress_size), entry.file_size)
        if self.map is not None and entry.file_size:
            return np.frombuffer(self.map, np.uint8, entry.file_size, start)
        self.file.seek(start)
        return filled(self.file, entry.file_size)

    def _unpacked(self, name: str, data: bytes, size: int) -> np.ndarray:
        try:
            engine = zlib.decompressobj(-15)
            out = engine.decompress(data, size + 1)
        except zlib.error as error:
            raise refused(f"the record {name!r} cannot be unpacked: {error}") from error
        if len(out) != size:
            raise refused(f"the record {name!r} does not unpack to {size} bytes")
        return np.frombuffer(bytearray(out), np.uint8)


def filled(file: IO[bytes], size: int) -> np.ndarray:
    """The next `size` bytes of a file, which must be there, as an array."""
    out = np.empty(size, np.uint8)
    view, done = memoryview(out), 0
    into = getattr(file, "readinto", None)
    while done < size:
        if into is not None:
            count = into(view[done:])
        else:
            piece = file.read(min(size - done, 1 << 24))
            count = len(piece)
            view[done : done + count] = piece
        if not count:
            raise refused("the file ends too early")
        done += count
    return out


@contextlib.contextmanager
def replacing(path: str | os.PathLike):
    """A file to write that takes the place of another one when it is complete.

    Who has the old one mapped keeps it, and an interrupted write leaves it as it was.
    """
    path = os.path.realpath(path)
    if not os.path.isfile(path):
        with open(path, "wb") as file:
            yield file
        return
    other = f"{path}.{os.getpid()}.{threading.get_ident()}.part"
    try:
        with open(other, "wb") as file:
            yield file
        shutil.copymode(path, other)
        os.replace(other, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(other)


class Writer:
    """Writes a zip file of stored records under one folder."""

    def __init__(self, file: IO[bytes], root: str):
        self.target, self.root = file, root
        seekable = getattr(file, "seekable", None)
        self.file = file if seekable is not None and seekable() else io.BytesIO()
        self.zip = zipfile.ZipFile(self.file, "w", zipfile.ZIP_STORED)

    def add(self, name: str, data) -> None:
        """Write a record of bytes or of an array of bytes."""
        size = memoryview(data).nbytes
        entry = zipfile.ZipInfo(f"{self.root}/{name}")  # dated 1980: same content, same file
        entry.file_size = size
        large = size >= 1 << 31
        start = self.zip.start_dir + _LOCAL.size + len(entry.filename.encode()) + 20 * large
        gap = -(start + 4) % ALIGNMENT
        entry.extra = struct.pack("<HH", 0x4246, gap) + bytes(gap)  # PyTorch's mark for padding
        with self.zip.open(entry, "w", force_zip64=large) as record:
            record.write(data)
        entry.extra = b""  # the directory need not repeat it

    def close(self) -> None:
        """Finish the file."""
        self.zip.close()
        if self.file is not self.target:
            self.target.write(self.file.getbuffer())
