"""The disk cache: compiled objects and plans under one folder, addressed by the hash of their text.

A file is written under a temporary name and then renamed, so readers never see half a file and two
writers of one key are harmless: both write the same bytes. Objects and plans end with a seal, the
hash of what stands before it: a truncated object would kill the process that loads it. A broken
entry is deleted and made again by the caller. Read `toolchain.py` next.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

from .errors import warn

RUNTIME_VERSION = "1"

_folder: Path | None = None


def key(*parts: object) -> str:
    """A name for the given texts: hex digits of their SHA-256."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()[:40]


def python_abi() -> str:
    """What a compiled extension depends on beside its source."""
    import numpy

    major = numpy.__version__.split(".")[0]
    return f"{sys.implementation.cache_tag} {sys.platform} numpy{major} runtime{RUNTIME_VERSION}"


def folder() -> Path:
    """The cache folder, made on first use; a temporary one where it cannot be written."""
    global _folder
    wanted = _wanted()
    if _folder is not None and (_folder == wanted or _folder in _temporary):
        return _folder
    try:
        wanted.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=wanted, prefix="probe-"):
            pass
        _folder = wanted
    except OSError as error:
        _folder = Path(tempfile.mkdtemp(prefix="pullback-"))
        _temporary.add(_folder)
        atexit.register(shutil.rmtree, _folder, ignore_errors=True)
        warn(
            f"the cache folder {wanted} cannot be written ({error.strerror}); compiled graphs are "
            f"kept in {_folder} for this process. Set PULLBACK_CACHE_DIR to a writable folder."
        )
    return _folder


_temporary: set[Path] = set()


def _wanted() -> Path:
    chosen = os.environ.get("PULLBACK_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "pullback"


def path(name: str) -> Path:
    """Where an entry lives; entries are spread over 256 folders."""
    return folder() / name[:2] / name


def read(name: str) -> bytes | None:
    """The bytes of an entry, or None when it is missing or cannot be read."""
    try:
        return path(name).read_bytes()
    except OSError:
        return None


def write(name: str, data: bytes) -> Path:
    """Store bytes under a name, atomically."""
    target = path(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".writing-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, target)
    except BaseException:
        _remove(temporary)
        raise
    return target


_SEAL = b"pbseal1 "


def _seal(data: bytes) -> bytes:
    return _SEAL + hashlib.sha256(data).digest()


_SEAL_SIZE = len(_SEAL) + 32


def write_sealed(name: str, data: bytes) -> Path:
    """Store bytes with their seal."""
    return write(name, data + _seal(data))


def read_sealed(name: str) -> bytes | None:
    """The bytes of a sealed entry; None when it is missing or not as it was written."""
    data = read(name)
    if data is None or data[-_SEAL_SIZE:] != _seal(data[:-_SEAL_SIZE]):
        return None
    return data[:-_SEAL_SIZE]


def intact(name: str) -> bool:
    """Whether a sealed entry is there, as it was written."""
    return read_sealed(name) is not None


def publish(made: str | os.PathLike, name: str) -> Path:
    """Seal a finished file (same file system) and move it to its entry's name, atomically.

    The seal stands behind the end of the object, where loaders do not look.
    """
    with open(made, "r+b") as file:
        file.write(_seal(file.read()))
    target = path(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    os.replace(made, target)
    return target


def working(suffix: str) -> Path:
    """A fresh file name inside the cache folder, for a compiler to write to."""
    folder().mkdir(parents=True, exist_ok=True)  # it may have been deleted since
    handle, name = tempfile.mkstemp(dir=folder(), prefix=".working-", suffix=suffix)
    os.close(handle)
    return Path(name)


def discard(name: str) -> None:
    """Delete an entry that turned out to be broken."""
    _remove(path(name))


def _remove(name: str | os.PathLike) -> None:
    try:
        os.unlink(name)
    except OSError:
        pass


def info() -> dict[str, object]:
    """Folder, number of entries and their bytes."""
    base, count, size = folder(), 0, 0
    for entry in base.glob("*/*"):
        try:
            size += entry.stat().st_size
            count += 1
        except OSError:
            continue
    return {"folder": str(base), "entries": count, "bytes": size}


def clear() -> int:
    """Delete every entry; returns how many. Objects already loaded stay loaded."""
    count = 0
    for entry in list(folder().glob("*/*")) + list(folder().glob(".working-*")):
        _remove(entry)
        count += 1
    return count
