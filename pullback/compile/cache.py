"""The disk cache: compiled objects and plans under one folder, addressed by the hash of their text.

A file is written under a temporary name and then renamed, so readers never see half a file and two
writers of one key are harmless: both write the same bytes. Objects and plans end with a seal, the
hash of what stands before it: a truncated object would kill the process that loads it. A broken
entry is deleted and made again by the caller.

What is loaded from here is run, so the folder must be private: one that belongs to somebody else or
that others can write to is not used at all, and one that cannot be written, is full or cannot be
named (no home folder) is replaced by a temporary one for the process; what a trusted one holds is
still read then.

Above `PULLBACK_CACHE_LIMIT` bytes (2 GB) the entries go that were used the longest time ago. All
processes count together what they add (the length of one file), and the one that completes a share
of the limit looks. Bytes are those on disk, in whole blocks: most entries are far smaller than one.
A file goes only if it has the name and the mark of an entry: the folder may hold anything else.
Read `toolchain.py` next.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from .errors import warn

RUNTIME_VERSION = "1"

LIMIT = 2_000_000_000  # bytes, unless PULLBACK_CACHE_LIMIT says otherwise
_ADDED = ".pullback-added"  # a file as long as the blocks that were added since somebody looked
_SHARE = 32  # whoever completes this part of the limit looks
_YOUNG = 10  # seconds for which an entry stays whatever the limit: its maker is about to load it
_OLD = 3600  # seconds after which files of a writer that has died go
_BLOCK = 4096  # bytes that a file system gives at a time
_NAME = re.compile(r"(?:[a-z]+-)*[0-9a-f]{40}(?:\.[a-z_]+)?")  # of an entry
_BEGUN = re.compile(r"\.pullback-(?:writing|working)-\w{8}(?:\.[a-z]+)?")  # of half an entry

# Endings of what `warm.py` keeps of a captured program.
PROGRAMS = (".facts", ".forward", ".backward", ".fused", ".forward_code", ".backward_code")

_ASKED = ("PULLBACK_CACHE_DIR", "XDG_CACHE_HOME", "HOME")
_folder: Path | None = None
_readable: Path | None = None  # where a folder that cannot be written may be read
_asked: tuple | None = None  # what was asked for when the folder was chosen
_counts = {"hits": 0, "misses": 0, "shared": 0, "compiled": 0}


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
    """The cache folder, made on first use; a temporary one where it cannot be had."""
    global _folder, _readable, _asked
    asked = tuple([os.environ.get(name) for name in _ASKED])
    if _folder is not None and (_asked == asked or _folder in _temporary):
        return _folder
    _asked, _readable = asked, None
    try:
        wanted = _wanted()
    except (RuntimeError, OSError):  # a user without a home, a working directory that has gone
        _retreat("there is no home folder for the cache")
        return _folder
    try:
        wanted.mkdir(mode=0o700, parents=True, exist_ok=True)
        why = _distrusted(wanted)
        if why:
            _retreat(f"the cache folder {wanted} is not trusted: {why}")
            return _folder
        _readable = wanted
        with tempfile.NamedTemporaryFile(dir=wanted, prefix=".pullback-probe-"):
            pass
        _folder = wanted
    except OSError as error:
        _retreat(f"the cache folder {wanted} cannot be written ({error.strerror})")
    return _folder


def _distrusted(place: Path) -> str:
    """Why others could put something into a folder, "" if they cannot."""
    if not hasattr(os, "getuid"):
        return ""
    facts = os.stat(place)
    why = _foreign(facts)
    if not why and facts.st_mode & 0o011:  # others can at least go through it
        for part in _listed(place):
            if len(part.name) == 2 and not why:
                inner = _foreign(part.stat(follow_symlinks=False))
                why = inner and f"{inner} ({part.name})"
    return why


def _foreign(facts: os.stat_result) -> str:
    """Why a file is somebody else's, or may become so."""
    if not hasattr(os, "getuid"):
        return ""
    if facts.st_uid not in (os.getuid(), 0):
        return f"it belongs to the user with number {facts.st_uid}"
    if facts.st_mode & 0o022 and not stat.S_ISLNK(facts.st_mode):
        return f"others may write to it (mode {stat.S_IMODE(facts.st_mode):o})"
    return ""


def _retreat(why: str) -> None:
    global _folder
    _folder = Path(tempfile.mkdtemp(prefix="pullback-"))  # for nobody else
    _temporary.add(_folder)
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)
    warn(
        f"{why}; compiled graphs are kept in {_folder} for this process. Set PULLBACK_CACHE_DIR to "
        "a writable folder that is yours alone (chmod 700)."
    )


def retreat(error: OSError) -> bool:
    """Go on in a temporary folder after a failed write; False where there is none left to go to."""
    if folder() in _temporary:
        return False
    try:
        _retreat(f"the cache folder {folder()} cannot be written ({error.strerror})")
    except OSError:
        return False
    return True


_temporary: set[Path] = set()


def _wanted() -> Path:
    chosen = os.environ.get("PULLBACK_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return ((Path(base) if base else Path.home() / ".cache") / "pullback").absolute()


def path(name: str) -> Path:
    """Where an entry lives; entries are spread over 256 folders."""
    own = folder() / name[:2] / name
    if _folder in _temporary and _readable is not None:
        other = _readable / name[:2] / name
        if not own.exists() and other.exists():
            return other
    return own


def read(name: str) -> bytes | None:
    """The bytes of an entry; None when it is missing, cannot be read or others could change it."""
    try:
        with open(path(name), "rb") as file:
            return None if _foreign(os.fstat(file.fileno())) else file.read()
    except OSError:
        return None


def write(name: str, data: bytes) -> Path:
    """Store bytes under a name, atomically.  They end with a mark, see `sealed` and `marked`."""
    target = _place(name)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".pullback-writing-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, target)
    except BaseException:
        _remove(temporary)
        raise
    _add(len(data))
    return target


def _place(name: str) -> Path:
    assert _NAME.fullmatch(name), name  # else it could never be deleted
    target = folder() / name[:2] / name
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return target


_SEAL = b"pbseal1 "
_MARK = b"\n/* pbseal1 */\n"


def _seal(data: bytes) -> bytes:
    return _SEAL + hashlib.sha256(data).digest()


_SEAL_SIZE = len(_SEAL) + 32


def write_source(name: str, text: str) -> Path:
    """Store C text, with the mark of an entry as a comment."""
    return write(name, text.encode() + _MARK)


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
        size = file.tell()
    os.chmod(made, 0o700)
    target = _place(name)
    os.replace(made, target)
    _add(size)
    return target


def working(suffix: str) -> Path:
    """A fresh file name inside the cache folder, for a compiler to write to."""
    folder().mkdir(mode=0o700, parents=True, exist_ok=True)  # it may have been deleted since
    handle, name = tempfile.mkstemp(dir=folder(), prefix=".pullback-working-", suffix=suffix)
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
    """Count what was added, for all processes: appending to a file is one step."""
    try:
        handle = os.open(folder() / _ADDED, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        return
    try:
        os.write(handle, b"." * (_on_disk(size) // _BLOCK))
    except OSError:
        pass  # a full disk: the next one counts
    finally:
        os.close(handle)


def _listed(place: str | os.PathLike) -> list[os.DirEntry]:
    try:
        with os.scandir(place) as found:
            return list(found)
    except OSError:  # deleted meanwhile
        return []


def _parts() -> list[os.DirEntry]:
    return [e for e in _listed(folder()) if len(e.name) == 2 and e.is_dir(follow_symlinks=False)]


def _entries() -> list[tuple[float, int, str]]:
    """(time of last use, bytes on disk, path) of each entry, oldest first."""
    return sorted(_facts(e for part in _parts() for e in _listed(part.path)
                         if e.name[:2] == part.name and _NAME.fullmatch(e.name)))


def _facts(entries: Iterable[os.DirEntry]) -> Iterator[tuple[float, int, str]]:
    for entry in entries:
        try:
            facts = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        if stat.S_ISREG(facts.st_mode):
            yield facts.st_mtime, _on_disk(facts.st_size), entry.path


def _abandoned() -> list[str]:
    """Files of writers that have died."""
    places = [folder(), *[part.path for part in _parts()]]
    begun, now = [e for p in places for e in _listed(p) if _BEGUN.fullmatch(e.name)], time.time()
    return [name for when, _, name in _facts(begun) if now - when > _OLD]


def _made_here(name: str) -> bool:
    """Does a file end with the mark of an entry?"""
    try:
        with open(name, "rb") as file:
            file.seek(-min(_SEAL_SIZE, os.fstat(file.fileno()).st_size), os.SEEK_END)
            end = file.read()
    except OSError:
        return False
    return end.endswith(_MARK) or end.startswith(_SEAL)


def trim(most: int | None = None) -> int:
    """Delete the entries that were used the longest time ago, down to `most` bytes.

    By default below the limit, with some room then, and without those that came just now: whoever
    made them is about to load them. Objects already loaded stay loaded. Returns how many files
    were deleted.
    """
    entries, gone = _entries(), _abandoned()
    left = sum(size for _, size, _ in entries)
    if most is None:
        most = left if left <= limit() - limit() // _SHARE else limit() * 9 // 10
        entries = [e for e in entries if time.time() - e[0] > _YOUNG]
    for _, size, name in entries:
        if left <= most:
            break
        if _made_here(name):
            gone.append(name)
            left -= size
    for name in gone:
        _remove(name)
    return len(gone)


def grown() -> None:
    """Called after entries were added and loaded: see whether there are too many, if all processes
    have added a good share of the limit since somebody looked."""
    counter = folder() / _ADDED
    try:
        if counter.stat().st_size * _BLOCK * _SHARE < limit():
            return
        os.truncate(counter, 0)
    except OSError:
        return  # nothing was added
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


def clear(programs: bool = False) -> int:
    """Delete every entry, or those of captured programs only; returns how many. Objects already
    loaded stay loaded."""
    if not programs:
        return trim(-1)
    gone = [name for _, _, name in _entries()
            if os.path.splitext(name)[1] in PROGRAMS and _made_here(name)]
    for name in gone:
        _remove(name)
    return len(gone)
