"""The disk cache: compiled objects and plans under one folder, addressed by the hash of their text.

A file is written under a temporary name and then renamed, so readers never see half a file and two
writers of one key are harmless: both write the same bytes. Objects and plans end with a seal, the
hash of what stands before it: a truncated object would kill the process that loads it. A broken
entry is deleted and made again by the caller.

A folder that cannot be written, or is full, is replaced by a temporary one for the process; what it
holds is still read. Above `PULLBACK_CACHE_LIMIT` bytes (2 GB) the entries go that were used the
longest time ago: from time to time, and whenever this process has added a good share of the limit.
Bytes are those on disk, in whole blocks: most entries are far smaller than one. Read `toolchain.py`
next.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from .errors import warn

RUNTIME_VERSION = "1"

LIMIT = 2_000_000_000  # bytes, unless PULLBACK_CACHE_LIMIT says otherwise
_TRIMMED = "trimmed"  # when a process last looked whether the cache has grown too large
_EVERY = 600  # seconds between two such looks
_SHARE = 32  # a process that has added this part of the limit looks at once
_OLD = 3600  # seconds after which files of a writer that has died go
_BLOCK = 4096  # bytes that a file system gives at a time

_folder: Path | None = None
_counts = {"hits": 0, "misses": 0, "shared": 0, "compiled": 0}
_added = 0  # bytes that this process has written since it last looked


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
        _retreat(wanted, error)
    assert _folder is not None
    return _folder


def _retreat(wanted: Path, error: OSError) -> None:
    global _folder
    _folder = Path(tempfile.mkdtemp(prefix="pullback-"))
    _temporary.add(_folder)
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)
    warn(
        f"the cache folder {wanted} cannot be written ({error.strerror}); compiled graphs are "
        f"kept in {_folder} for this process. Set PULLBACK_CACHE_DIR to a writable folder."
    )


def retreat(error: OSError) -> bool:
    """Go on in a temporary folder after a failed write; False where there is none left to go to."""
    if folder() in _temporary:
        return False
    try:
        _retreat(folder(), error)
    except OSError:
        return False
    return True


_temporary: set[Path] = set()


def _wanted() -> Path:
    chosen = os.environ.get("PULLBACK_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "pullback"


def path(name: str) -> Path:
    """Where an entry lives; entries are spread over 256 folders."""
    own = folder() / name[:2] / name
    if _folder in _temporary:
        other = _wanted() / name[:2] / name  # it may be readable
        if not own.exists() and other.exists():
            return other
    return own


def read(name: str) -> bytes | None:
    """The bytes of an entry, or None when it is missing or cannot be read."""
    try:
        return path(name).read_bytes()
    except OSError:
        return None


def write(name: str, data: bytes) -> Path:
    """Store bytes under a name, atomically."""
    target = folder() / name[:2] / name
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".writing-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, target)
    except BaseException:
        _remove(temporary)
        raise
    _add(len(data))
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
        _add(file.tell())
    target = folder() / name[:2] / name
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


def count(what: str) -> None:
    """One more of what `info` counts."""
    _counts[what] += 1


def used(name: str, found: bool) -> None:
    """Note that an entry was looked for; one that was found is young again."""
    count("hits" if found else "misses")
    if found:
        touch(*[name + suffix for suffix in (".plan", ".so", ".c")])


def touch(*names: str) -> None:
    """Make entries young again."""
    for name in names:
        try:
            os.utime(path(name))
        except OSError:  # nothing became C, or the folder cannot be written
            continue


def limit() -> int:
    """How many bytes the cache may have."""
    try:
        return int(os.environ.get("PULLBACK_CACHE_LIMIT") or LIMIT)
    except ValueError:
        return LIMIT


def _on_disk(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK


def _add(size: int) -> None:
    global _added
    _added += _on_disk(size)


def _listed(place: str | os.PathLike) -> list[os.DirEntry]:
    try:
        with os.scandir(place) as found:
            return list(found)
    except OSError:  # deleted meanwhile
        return []


def _unfinished(entry: os.DirEntry) -> bool:
    return entry.name.startswith((".writing-", ".working-"))


def _entries() -> list[tuple[float, int, str]]:
    """(time of last use, bytes on disk, path) of each entry, oldest first."""
    return sorted(_facts(e for part in _listed(folder()) if part.is_dir()
                         for e in _listed(part.path) if not _unfinished(e)))


def _facts(entries: Iterable[os.DirEntry]) -> Iterator[tuple[float, int, str]]:
    for entry in entries:
        try:
            facts = entry.stat()
        except OSError:
            continue
        yield facts.st_mtime, _on_disk(facts.st_size), entry.path


def _abandoned() -> list[str]:
    """Files of writers that have died."""
    places = [folder(), *[part.path for part in _listed(folder()) if part.is_dir()]]
    begun, now = [e for p in places for e in _listed(p) if _unfinished(e)], time.time()
    return [name for when, _, name in _facts(begun) if now - when > _OLD]


def trim(most: int | None = None) -> int:
    """Delete the entries that were used the longest time ago, down to `most` bytes.

    By default down to the limit, with some room then, since other processes add, too. Objects
    already loaded stay loaded. Returns how many files were deleted.
    """
    entries, gone = _entries(), _abandoned()
    left = sum(size for _, size, _ in entries)
    if most is None:
        most = left if left <= limit() else limit() * 9 // 10
    for _, size, name in entries:
        if left <= most:
            break
        gone.append(name)
        left -= size
    for name in gone:
        _remove(name)
    return len(gone)


def grown() -> None:
    """Called after entries were added: see whether there are too many, unless that was done lately
    and little has come since."""
    global _added
    mark = folder() / _TRIMMED
    try:
        if _added * _SHARE < limit() and time.time() - mark.stat().st_mtime < _EVERY:
            return
    except OSError:
        pass
    try:
        mark.touch()
    except OSError:
        return
    _added = 0
    trim()


def info() -> dict[str, object]:
    """Folder, number of entries, their bytes on disk, the most there may be; and of this process,
    how often it has found a graph and how often not, for how many sizes a library was there that
    other sizes had brought, and how often the compiler ran."""
    entries = _entries()
    return {
        "folder": str(folder()), "entries": len(entries), "bytes": sum(e[1] for e in entries),
        "limit": limit(), **_counts,
    }


def clear() -> int:
    """Delete every entry; returns how many. Objects already loaded stay loaded."""
    return trim(-1)
