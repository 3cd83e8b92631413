"""The C compiler: find one, ask it what the CPU can do, and run it.

Order: `PULLBACK_CC`, `CC`, gcc, clang, cc, then the `ziglang` wheel. A candidate is probed once
(it compiles a test file to a shared object, and prints the macros of `-march=native`), and the
answer is kept in the disk cache under the compiler's path, size and time of change. Read
`native.py` next.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import shlex
import shutil
import signal
import struct
import subprocess
import sys
from dataclasses import dataclass
from functools import cache as once

from . import cache
from .errors import CompilerFailed, CompilerNotFound

# -fwrapv: integers wrap around, as in eager execution; without it x + 1 > x is true of all
FLAGS = (
    "-O2", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fwrapv", "-fPIC", "-shared"
)
_QUIET = ("-w",)
# Passes of gcc that cost a fifth of its time and gain nothing on code that is vectors already.
_SKIPPED = ("-fno-tree-pre", "-fno-schedule-insns2", "-fno-tree-slp-vectorize", "-fno-ivopts")

_PROBE = """
typedef float v __attribute__((vector_size(16)));
v probe(v a, v b) { return a * b + a; }
"""

# macro of the compiler -> width of a vector register in bytes, widest first
_WIDTHS = (("__AVX512F__", 64), ("__AVX2__", 32), ("__AVX__", 32))


@dataclass(frozen=True)
class Toolchain:
    """A compiler that works here."""

    command: tuple[str, ...]  # what to run, before flags
    version: str  # first line of --version
    features: str  # instruction-set macros under -march=native, sorted, joined by spaces
    vector_bytes: int  # width of the registers that generated code uses
    is_gcc: bool  # gcc itself; clang refuses some of its flags

    @property
    def identity(self) -> str:
        """Everything that changes the object made from one source."""
        return "|".join(
            (*self.command, self.version, " ".join(self.flags), self.features, cpu_features())
        )

    @property
    def flags(self) -> tuple[str, ...]:
        return FLAGS + _SKIPPED if self.is_gcc else FLAGS

    def build(self, source: str, output: str, extra: tuple[str, ...] = ()) -> None:
        """Compile one C file to a shared object, or raise CompilerFailed."""
        command = [*self.command, *self.flags, *_QUIET, source, "-o", output, *extra, "-lm"]
        try:
            _run(command, LONGEST)
        except subprocess.CalledProcessError as error:
            raise CompilerFailed(command, error.stderr or error.output, source) from None
        except OSError as error:  # it has gone since it was found
            raise CompilerFailed(command, f"error: {error}", source) from error
        except subprocess.TimeoutExpired:
            words = f"error: no result after {LONGEST} seconds"
            raise CompilerFailed(command, words, source) from None
        if not _is_whole(output):  # loading half an object would kill the process
            raise CompilerFailed(command, "error: what it made is no shared object", source)


def _is_whole(path: str) -> bool:
    """Is a file all of an object?  Of ELF the tables in front say how long it has to be."""
    try:
        with open(path, "rb") as file:
            head, size = file.read(64), os.fstat(file.fileno()).st_size
            if head[:6] != b"\x7fELF\x02\x01":  # of other systems: there must be something
                return size > 0 and sys.platform != "linux"
            (segments, sections) = struct.unpack_from("<QQ", head, 32)
            each, count, other_each, other_count = struct.unpack_from("<HHHH", head, 54)
            file.seek(segments)
            table = file.read(each * count)
    except (OSError, struct.error):
        return False
    if each < 56 or len(table) < each * count or sections + other_each * other_count > size:
        return False
    ends = [sum(struct.unpack_from("<Q16xQ", table, i * each + 8)) for i in range(count)]
    return max(ends, default=size + 1) <= size


LONGEST = 900  # seconds that the compiler may take for one file; large graphs take some dozens


def _run(command: list[str], longest: float, text: str = "") -> str:
    """Run a compiler and return what it says; it and all it starts end with this function."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        encoding="utf-8", errors="replace", start_new_session=True,
    ) as process:
        try:
            said, complained = process.communicate(text, longest)
        except BaseException:  # an interrupt, or too late
            _end(process)
            raise
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, said, complained)
    return said


def _end(process: subprocess.Popen) -> None:
    """Kill a process and those that it has started: gcc runs others."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (OSError, AttributeError):
        process.kill()


@once
def cpu_features() -> str:
    """The CPU's own words for what it can do; part of every cache key."""
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith(("flags", "Features")):
                    return " ".join(sorted(line.split(":", 1)[1].split()))
    except OSError:
        pass
    return f"{platform.machine()} {platform.processor()}"


@once
def last_level_cache() -> int:
    """Bytes of the last cache that one program can count on: what the CPU says, 32 MiB at most.

    Virtual machines report the cache of the whole socket, which they share with others.
    """
    sizes = []
    for n in range(5):
        try:
            with open(f"/sys/devices/system/cpu/cpu0/cache/index{n}/size") as file:
                text = file.read().strip()
            sizes.append(int(text[:-1]) << {"K": 10, "M": 20}[text[-1]])
        except (OSError, KeyError, ValueError):
            continue
    return min(max(sizes, default=32 << 20), 32 << 20)


def _candidates() -> list[list[str]]:
    found = []
    for variable in ("PULLBACK_CC", "CC"):
        text = os.environ.get(variable, "").strip()
        if text:
            try:
                found.append(shlex.split(text))
            except ValueError:  # quotes that do not close
                found.append([text])
            if variable == "PULLBACK_CC":
                return found  # an explicit choice is not second-guessed
    found += [["gcc"], ["clang"], ["cc"]]
    return found


def _zig() -> list[str] | None:
    import importlib.util

    if importlib.util.find_spec("ziglang") is None:
        return None
    return [sys.executable, "-m", "ziglang", "cc"]


def _probe(command: list[str]) -> Toolchain:
    """Compile something with the candidate, and load it; raises when that does not work."""
    version = _run([*command, "--version"], 60)
    macros = _run([*command, "-march=native", "-dM", "-E", "-x", "c", "-"], 60)
    lines = [line.split() for line in macros.splitlines()]
    names = {words[1] for words in lines if words[:1] == ["#define"] and len(words) > 1}
    kept = sorted(n for n in names if n.startswith(("__AVX", "__SSE", "__FMA", "__ARM_", "__BMI")))
    width = next((bytes_ for name, bytes_ in _WIDTHS if name in names), 16)
    first = (version.splitlines() or [""])[0]
    is_gcc = "__GNUC__" in names and "__clang__" not in names
    found = Toolchain(tuple(command), first, " ".join(kept), width, is_gcc)
    source, output = cache.working(".c"), cache.working(".so")
    try:
        source.write_text(_PROBE)
        found.build(str(source), str(output))
        ctypes.CDLL(str(output)).probe  # noqa: B018  (it must be there)
    finally:
        for name in (source, output):
            name.unlink(missing_ok=True)
    return found


def _stamp(command: list[str]) -> str | None:
    """Names a compiler file: path, size and time of change. None when it is not on PATH."""
    program = shutil.which(command[0])
    if program is None:
        return None
    try:
        stat = os.stat(program)
    except OSError:  # gone meanwhile
        return None
    return f"{shlex.join(command)}|{program}|{stat.st_size}|{stat.st_mtime_ns}"


def _kept(stamp: str) -> Toolchain | None:
    data = cache.read_sealed("toolchain-" + cache.key(stamp, cpu_features()))
    try:
        fields = json.loads(data) if data else None
        return (
            Toolchain(
                tuple(fields["command"]),
                fields["version"],
                fields["features"],
                int(fields["vector_bytes"]),
                bool(fields["is_gcc"]),
            )
            if fields
            else None
        )
    except (ValueError, KeyError, TypeError):
        return None


def _keep(stamp: str, found: Toolchain) -> None:
    text = json.dumps(
        {
            "command": found.command,
            "version": found.version,
            "features": found.features,
            "vector_bytes": found.vector_bytes,
            "is_gcc": found.is_gcc,
        }
    )
    try:
        cache.write_sealed("toolchain-" + cache.key(stamp, cpu_features()), text.encode())
    except OSError:
        pass  # only costs the next process a probe


_found: dict[str, Toolchain] = {}


def find() -> Toolchain:
    """The compiler to use, or CompilerNotFound with what was tried."""
    question = "|".join(os.environ.get(v, "") for v in ("PULLBACK_CC", "CC", "PATH"))
    if question not in _found:
        _found[question] = _search()
    return _found[question]


def _search() -> Toolchain:
    tried = []
    candidates = _candidates()
    if not os.environ.get("PULLBACK_CC", "").strip():
        zig = _zig()
        candidates += [zig] if zig else []
    for command in candidates:
        stamp = _stamp(command)
        if stamp is None:
            tried.append((shlex.join(command), "not on PATH"))
            continue
        kept = _kept(stamp)
        if kept is not None:
            return kept
        try:
            found = _probe(command)
        except (OSError, AttributeError, subprocess.SubprocessError, CompilerFailed) as error:
            why = (str(error).splitlines() or [type(error).__name__])[0]
            tried.append((shlex.join(command), why))
            continue
        _keep(stamp, found)
        return found
    raise CompilerNotFound(tried)
