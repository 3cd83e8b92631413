"""Broken and missing compilers, unusable and corrupt caches, two processes at once."""

import json
import os
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback import errors
from pullback.compile import backend, cache, native, toolchain

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache of its own."""
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_folder", None)
    monkeypatch.setattr(backend, "_warned", False)
    return tmp_path / "cache"


def script(path: Path, text: str) -> str:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def program(x):
    return (pb.exp(x) * 3).sum()


def works() -> bool:
    x = pb.arange(6.0).requires_grad_()
    out = pb.compile(program)(x)
    out.backward()
    return bool(pb.allclose(out, program(x)) and pb.allclose(x.grad, 3 * pb.exp(x)))


def leftovers(folder: Path) -> list[str]:
    return [p.name for p in folder.rglob(".*") if p.name != cache._ADDED]


MISSING = {
    "not there": "/nowhere/cc",
    "a folder": "/tmp",
    "open quote": 'gcc "',
    "fails": "exit 1\n",
    "says nothing": "exit 0\n",
    "writes garbage": 'if [ "$1" = --version ]; then echo cc 1.0; exit; fi\n'
    'while [ $# -gt 0 ]; do [ "$1" = -o ] && echo garbage > "$2"; shift; done\n',
    "crashes": "kill -SEGV $$\n",
}


@pytest.mark.parametrize("name", list(MISSING))
def test_no_working_compiler(name, folder, tmp_path, monkeypatch):
    """NumPy runs the graph; one warning says what was tried and what to do."""
    text = MISSING[name]
    monkeypatch.setenv(
        "PULLBACK_CC", script(tmp_path / "cc", text) if text.endswith("\n") else text
    )
    with pytest.warns(errors.CompileWarning) as caught:
        assert works() and works()
    messages = [str(w.message) for w in caught if "compiler" in str(w.message)]
    assert len(messages) == 1 and "tried:" in messages[0] and "Fix:" in messages[0]
    assert not leftovers(folder)
    monkeypatch.delenv("PULLBACK_CC")
    assert works() and list(folder.rglob("*.so"))  # nothing about the bad compiler was kept


def test_find_raises_its_own_class(folder, monkeypatch):
    monkeypatch.setenv("PULLBACK_CC", "/nowhere/cc")
    with pytest.raises(errors.CompilerNotFound) as raised:
        toolchain.find()
    assert isinstance(raised.value, errors.CompileError) and isinstance(raised.value, RuntimeError)


def breaking(tmp_path: Path) -> str:
    """A compiler that stops working when the file `broken` appears."""
    real = toolchain.find().command[0]
    return script(
        tmp_path / "cc",
        f'[ -e "{tmp_path}/broken" ] && {{ echo "cc: internal error" >&2; exit 4; }}\n'
        f'exec {real} "$@"\n',
    )


def test_compiler_that_breaks_later(folder, tmp_path, monkeypatch):
    """An error with the command, what the compiler said, the file, the user's line and the cure."""
    monkeypatch.setenv("PULLBACK_CC", breaking(tmp_path))
    assert works()
    before = sorted(folder.rglob("*.plan"))
    (tmp_path / "broken").touch()
    x = pb.ones(7, requires_grad=True)
    compiled = pb.compile(program)
    with pytest.raises(errors.CompilerFailed) as raised:
        compiled(x)
    text = str(raised.value)
    assert "test_broken.py:" in text.splitlines()[0] and "internal error" in text and "Fix:" in text
    assert str(tmp_path / "cc") in text and raised.value.source in text
    assert sorted(folder.rglob("*.plan")) == before and not leftovers(folder)
    assert not compiled.programs and x.tolist() == [1] * 7 and x.grad is None
    (tmp_path / "broken").unlink()
    compiled(x).backward()
    assert x.grad is not None


def test_runtime_that_cannot_be_built(folder, tmp_path, monkeypatch):
    """For instance without Python's headers: NumPy runs, and the build is not tried again."""
    real = toolchain.find().command[0]
    monkeypatch.setenv(
        "PULLBACK_CC",
        script(
            tmp_path / "cc",
            f'case "$*" in *runtime.c*) echo x >> "{tmp_path}/tries"; '
            'echo "error: no Python.h" >&2; '
            f'exit 1;; esac\nexec {real} "$@"\n',
        ),
    )
    monkeypatch.setattr(native, "_module", None)
    with pytest.warns(errors.CompileWarning, match=r"Python\.h"):
        assert works() and works()
    assert (tmp_path / "tries").read_text() == "x\n"


def test_cache_that_cannot_be_written(tmp_path, monkeypatch):
    """A warning, and a folder of this process; it is gone afterwards."""
    (tmp_path / "file").write_text("")
    code = (
        "import warnings; warnings.simplefilter('error', ResourceWarning)\n"
        "import pullback as pb\nfrom pullback.compile import cache\n"
        "print(pb.compile(lambda x: x * 2)(pb.ones(3)).tolist(), cache.folder(), sep='|')\n"
    )
    done = run(code, PULLBACK_CACHE_DIR=str(tmp_path / "file" / "inside"))
    values, used = done.stdout.strip().split("|")
    assert values == "[2.0, 2.0, 2.0]" and not os.path.exists(used)
    assert done.stderr.count("cannot be written") == 1 and "PULLBACK_CACHE_DIR" in done.stderr


def run(code: str, **env: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, **env},
    )


def test_cache_that_fills_up(folder, monkeypatch):
    assert works()

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    compiled = pb.compile(lambda x: x * 2 + 1)
    monkeypatch.setattr(backend, "_warned", False)
    with monkeypatch.context() as patch:
        patch.setattr(cache.os, "replace", full)
        with pytest.warns(errors.CompileWarning) as said:  # nowhere is room: NumPy does it
            assert compiled(pb.ones(3)).tolist() == [3, 3, 3]
    texts = [str(w.message) for w in said]
    assert len(texts) == 2 and all("PULLBACK_CACHE_DIR" in t for t in texts)
    assert not leftovers(folder)


def test_full_folder_is_left_for_another(folder, monkeypatch):
    assert works()
    write, full = cache.write, folder

    def refusing(name, data):
        if cache.folder() == full:
            raise OSError(28, "No space left on device")
        return write(name, data)

    monkeypatch.setattr(cache, "write", refusing)
    with pytest.warns(errors.CompileWarning, match="No space left"):
        compiled = pb.compile(lambda x: x * 5 + 1)
        assert compiled(pb.ones(3)).tolist() == [6, 6, 6]
    assert compiled.source_paths() and not compiled.source_paths()[0].startswith(str(full))


def test_cache_that_disappears(folder):
    assert works()
    import shutil

    shutil.rmtree(folder)
    assert pb.compile(lambda x: x * 2 + 1)(pb.ones(3)).tolist() == [3, 3, 3]


DAMAGE = {
    "empty": lambda data: b"",
    "truncated": lambda data: data[: len(data) // 2],
    "last byte missing": lambda data: data[:-1],
    "a changed byte": lambda data: (
        data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :]
    ),
    "other text": lambda data: b"not an object",
}


@pytest.mark.parametrize("damage", list(DAMAGE))
@pytest.mark.parametrize("suffix", [".so", ".plan"])
def test_corrupt_entries_are_made_again(suffix, damage, folder):
    """In a process of its own: loading half an object would kill it."""
    x = np.linspace(0, 1, 10)
    first = pb.compile(program)(pb.from_numpy(x)).item()
    (entry,) = [p for p in folder.rglob(f"*{suffix}") if len(p.name) > 40]
    kept = entry.read_bytes()
    entry.unlink()
    entry.write_bytes(DAMAGE[damage](kept))
    again = pb.compile(program)(pb.from_numpy(x)).item()
    assert again == first and cache.intact(entry.name) and not leftovers(folder)


@pytest.mark.parametrize("damage", ["truncated", "empty"])
def test_corrupt_runtime_is_made_again(damage, folder):
    code = "import pullback as pb, sys\nprint(pb.compile(lambda x: x * 2)(pb.ones(3)).tolist())\n"
    run(code)
    (entry,) = [p for p in folder.rglob("runtime-*") if p.is_file()]
    kept = entry.read_bytes()
    entry.write_bytes(DAMAGE[damage](kept))
    assert run(code).stdout == "[2.0, 2.0, 2.0]\n" and entry.read_bytes() == kept


def test_two_processes_compile_the_same_graph(folder):
    """Both finish with the same numbers, one set of entries is left, and nothing half-written."""
    code = (
        "import pullback as pb, json\n"
        "x = pb.linspace(0, 1, 100).requires_grad_()\n"
        "out = pb.compile(lambda x: (pb.exp(x) * x).sum())(x)\nout.backward()\n"
        "print(json.dumps([out.item(), x.grad.tolist()]))\n"
    )
    env = {**os.environ, "PULLBACK_CACHE_DIR": str(folder)}
    both = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=env,
        )
        for _ in range(2)
    ]
    results = [p.communicate(timeout=120) for p in both]
    assert all(p.returncode == 0 for p in both), results
    assert (
        json.loads(results[0][0]) == json.loads(results[1][0])
        and not results[0][1]
        and not results[1][1]
    )
    assert not leftovers(folder)
    assert len(list(folder.rglob("*.plan"))) == 1
    assert all(cache.intact(p.name) for p in [*folder.rglob("*.plan"), *folder.rglob("*.so")])


def test_errors_module_shows_the_compilers_classes():
    for name in ("CompilerNotFound", "CompilerFailed", "CacheUnusable", "GraphNotSupported"):
        kind = getattr(errors, name)
        assert (
            issubclass(kind, errors.CompileError)
            and "Cause" in kind.__doc__
            or "Install" in kind.__doc__
        )
    with pytest.raises(AttributeError):
        errors.NoSuchError
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert works()
