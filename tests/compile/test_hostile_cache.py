"""Cache folders that belong to others, or hold something else; compilers that lie or never end."""

import os
import pathlib
import stat
import subprocess
import sys
import time

import pytest

import pullback as pb
from pullback import errors
from pullback.compile import backend, cache, native, toolchain

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache of its own."""
    native.runtime()
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_folder", None)
    monkeypatch.setattr(backend, "_warned", False)
    return tmp_path / "cache"


def test_files_of_others_are_never_touched(folder, tmp_path):
    key = cache.key("x")
    made = cache.write_sealed(key, b"data")
    mine = [cache.write_source(f"{key}.c", "int x;\n"), made]
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    for place in (folder, outside, folder / key[:2], folder / "documents"):
        place.mkdir(exist_ok=True)
        for name in ("thesis.txt", f"{key[:2]}notes", ".writing-abc", ".pullback-notes", "trimmed",
                     key[:2] + cache.key("y")[2:], key[:2] + cache.key("z")[2:] + ".so"):
            (place / name).write_text("mine")
    (outside / cache.key("q")).write_bytes(made.read_bytes())
    (folder / cache.key("q")[:2]).symlink_to(outside)
    linked = folder / key[:2] / (key[:2] + cache.key("link")[2:])
    linked.symlink_to(outside / cache.key("q"))
    (folder / ".pullback-working-12345678").write_text("half")
    before = set(tmp_path.rglob("*"))
    for path in before:
        os.utime(path, (1, 1), follow_symlinks=False)
    assert cache.clear() == 3
    gone = before - set(tmp_path.rglob("*"))
    assert gone == {*mine, folder / ".pullback-working-12345678"}
    assert linked.is_symlink()
    assert cache.info()["entries"] == 2  # by their names, without the mark


def test_a_folder_that_others_can_write_to_is_not_used(folder):
    name = cache.key("planted")
    cache.write_sealed(name, b"by somebody")
    folder.chmod(0o777)
    cache._folder = None
    with pytest.warns(errors.CompileWarning, match=r"not trusted.*others may write.*mode 777"):
        assert cache.folder() != folder
    assert cache.folder().stat().st_mode & 0o077 == 0
    assert cache.read(name) is None and cache.path(name).parent.parent == cache.folder()
    assert pb.compile(lambda x: x * 2)(pb.ones(2)).tolist() == [2, 2]
    assert sorted(p.name for p in folder.iterdir()) == sorted([name[:2], cache._ADDED])


def test_a_folder_of_another_user_is_not_used(folder, monkeypatch):
    folder.mkdir()
    if os.getuid() == 0:
        os.chown(folder, 12345, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    with pytest.warns(errors.CompileWarning, match="belongs to the user"):
        assert cache.folder() != folder
    assert list(folder.iterdir()) == []


def test_a_part_that_others_can_write_to(folder):
    name = cache.key("planted")
    path = cache.write_sealed(name, b"by somebody")
    folder.chmod(0o755)
    path.parent.chmod(0o777)
    cache._folder = None
    with pytest.warns(errors.CompileWarning, match=f"others may write.*{name[:2]}"):
        assert cache.read_sealed(name) is None


def test_an_entry_that_others_can_write_to_is_made_again(folder):
    name = cache.key("planted")
    path = cache.write_sealed(name, b"by somebody")
    path.chmod(0o666)
    assert cache.read_sealed(name) is None and not cache.intact(name)
    cache.write_sealed(name, b"by me")
    assert cache.read_sealed(name) == b"by me"


def test_what_is_made_is_private_under_any_umask(folder):
    old = os.umask(0)
    try:
        assert pb.compile(lambda x: x * 7)(pb.ones(2)).tolist() == [7, 7]
    finally:
        os.umask(old)
    for path in (folder, *folder.rglob("*")):
        assert path.stat().st_mode & 0o022 == 0, path


@pytest.mark.parametrize("chosen", ["", "~nobody-of-this-name/cache"])
def test_without_a_home_folder(chosen, monkeypatch):
    monkeypatch.setenv("PULLBACK_CACHE_DIR", chosen)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(cache, "_folder", None)

    def home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(pathlib.Path, "home", home)
    with pytest.warns(errors.CompileWarning, match="no home folder"):
        assert pb.compile(lambda x: x * 2)(pb.ones(2)).tolist() == [2, 2]
    assert cache.folder() in cache._temporary


@pytest.mark.parametrize("limit", ["1", "0", "-5"])
def test_a_limit_below_one_program(limit, folder, monkeypatch):
    monkeypatch.setenv("PULLBACK_CACHE_LIMIT", limit)
    before = cache.info()["compiled"]
    f = pb.compile(lambda x: x * 3 + 1)
    assert f(pb.ones(2)).tolist() == [4, 4] and f(pb.ones(3)).tolist() == [4, 4, 4]
    assert cache.info()["compiled"] <= before + 2  # each once
    assert list(folder.rglob("*.so"))
    for path in folder.rglob("*"):
        os.utime(path, (1, 1))
    assert pb.compile(lambda x: x * 5 + 1)(pb.ones(2)).tolist() == [6, 6]
    assert all(p.stat().st_mtime > 1 for p in folder.rglob("*.so"))  # the old ones had to go


def test_processes_that_add_little_keep_the_limit_together(folder):
    """What each adds fits, what all add does not."""
    limit = 64 * 4096  # a share is two entries
    code = ("import os, sys; from pullback.compile import cache\n"
            "for n in range(*map(int, sys.argv[1:])):\n"
            "    os.utime(cache.write_sealed(cache.key(n), b'x'), (10, 10))\n"
            "    cache.grown()\n")
    env = {**os.environ, "PULLBACK_CACHE_LIMIT": str(limit), "PYTHONPATH": str(ROOT)}
    for begin in range(0, 90, 45):
        args = [sys.executable, "-c", code, str(begin), str(begin + 45)]
        subprocess.run(args, check=True, env=env)
        assert cache.info()["bytes"] <= limit


@pytest.mark.parametrize("variable", ["CC", "PULLBACK_CC"])
def test_a_blank_compiler_is_none(variable, folder, monkeypatch):
    monkeypatch.delenv("PULLBACK_CC", raising=False)
    monkeypatch.setenv(variable, "  ")
    assert toolchain._search().command


# compilers that work at first


def later(tmp_path, monkeypatch, text: str) -> pathlib.Path:
    """A compiler that does `text` once the file that is returned is there."""
    real, switch, path = toolchain.find().command[0], tmp_path / "broken", tmp_path / "cc"
    path.write_text(
        f'#!/bin/sh\nif [ -e "{switch}" ]; then\n'
        'for a in "$@"; do [ "$last" = -o ] && out="$a"; last="$a"; done\n'
        f'{text}\nfi\nexec {real} "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PULLBACK_CC", str(path))
    toolchain.find()
    return switch


def objects(folder) -> set:
    return {p for p in folder.rglob("*") if p.suffix in (".so", ".plan") or "w" in p.name}


LIES = {
    "nothing made": "exit 0",
    "output removed": 'rm -f "$out"; exit 0',
    "garbage": 'echo garbage > "$out"; exit 0',
    "half an object": 'cp "$0.so" "$out"; exit 0',
    "another object": 'echo "int x;" > "$0.c"; gcc -shared -o "$out" "$0.c"; exit 0',
    "killed": 'echo half > "$out"; kill -KILL $$',
    "bytes that are no text": 'printf "\\377\\376 error" >&2; exit 1',
}


@pytest.mark.parametrize("lie", list(LIES))
def test_a_compiler_that_lies(lie, folder, tmp_path, monkeypatch):
    switch = later(tmp_path, monkeypatch, LIES[lie])
    f = pb.compile(lambda x: x * x + 3)
    x = pb.ones(2)
    f(pb.ones(2, 2))
    whole = next(p for p in folder.rglob("*.so")).read_bytes()
    (tmp_path / "cc.so").write_bytes(whole[: len(whole) // 3])
    before = objects(folder)
    switch.touch()
    g = pb.compile(lambda x: x * x + 5)
    with pytest.raises(errors.CompilerFailed, match=r"test_hostile_cache\.py:\d+"):
        g(x)
    assert objects(folder) == before
    switch.unlink()
    assert g(x).tolist() == (x * x + 5).tolist()


def test_a_compiler_that_never_ends(folder, tmp_path, monkeypatch):
    switch = later(tmp_path, monkeypatch, f'sleep 60 & echo $! > "{tmp_path}/child"; wait')
    monkeypatch.setattr(toolchain, "LONGEST", 0.5)
    switch.touch()
    begin = time.monotonic()
    f = pb.compile(lambda x: x * x + 11)
    with pytest.raises(errors.CompilerFailed, match=r"no result after 0\.5 seconds"):
        f(pb.ones(2))
    assert time.monotonic() - begin < 20
    child = int((tmp_path / "child").read_text())
    assert gone(child)
    assert not list(folder.rglob(".pullback-w*"))


def gone(pid: int) -> bool:
    """Has a process ended?  Nobody may be there to collect it."""
    for _ in range(100):
        try:
            text = pathlib.Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return True
        if text.rsplit(")", 1)[1].split()[0] == "Z":
            return True
        time.sleep(0.01)
    return False


def test_an_interrupt_while_the_compiler_runs(folder, tmp_path, monkeypatch):
    f = pb.compile(lambda x: x * x + 13)
    communicate = subprocess.Popen.communicate

    def interrupted(self, *args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(subprocess.Popen, "communicate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            f(pb.ones(2))
    assert subprocess.Popen.communicate is communicate
    assert not list(folder.rglob(".pullback-w*")) and not list(folder.rglob("*.so"))
    assert f(pb.ones(2)).tolist() == [14, 14]
