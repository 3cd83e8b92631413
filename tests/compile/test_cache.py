"""The disk cache and the compiler's discovery."""

import os
import stat
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from pullback import errors
from pullback.compile import cache, toolchain
from pullback.compile.errors import CompilerFailed, CompilerNotFound


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_folder", None)
    return tmp_path / "cache"


def named(text, suffix=""):
    """The name of an entry."""
    return cache.key(text) + suffix


def test_write_read_clear(folder):
    name = named("some")
    cache.write_sealed(name, b"text")
    assert cache.read_sealed(name) == b"text" and cache.read(named("none")) is None
    assert cache.info()["entries"] == 1 and cache.info()["bytes"] == 4096
    assert cache.clear() == 1 and cache.read(name) is None


def test_folder_order(monkeypatch, tmp_path):
    monkeypatch.setattr(cache, "_folder", None)
    monkeypatch.delenv("PULLBACK_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder() == tmp_path / "pullback"


def test_key_separates_parts():
    assert cache.key("ab", "c") != cache.key("a", "bc")
    assert cache.key("a") == cache.key("a") and len(cache.key("a")) == 40


def test_unwritable_folder_warns_once(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(blocked / "inside"))
    monkeypatch.setattr(cache, "_folder", None)
    with pytest.warns(errors.CompileWarning, match="PULLBACK_CACHE_DIR"):
        first = cache.folder()
    assert cache.folder() == first and os.access(first, os.W_OK)
    cache.write(named("x1"), b"1")


def test_concurrent_writers(folder):
    cache.folder()
    data = bytes(100_000)
    threads = [threading.Thread(target=cache.write, args=(named("same"), data)) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert cache.read(named("same")) == data
    assert cache.info()["entries"] == 1


def test_probe_is_kept(folder, monkeypatch):
    found = toolchain._search()
    called = []
    monkeypatch.setattr(toolchain, "_probe", lambda c: called.append(c))
    assert toolchain._search() == found and not called


def test_explicit_compiler_that_does_not_exist(folder, monkeypatch):
    monkeypatch.setenv("PULLBACK_CC", "/nowhere/cc")
    with pytest.raises(CompilerNotFound, match="Fix: install gcc") as error:
        toolchain.find()
    assert "/nowhere/cc" in str(error.value)


def test_compiler_that_does_not_work(folder, tmp_path, monkeypatch):
    fake = tmp_path / "badcc"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PULLBACK_CC", str(fake))
    with pytest.raises(CompilerNotFound, match="badcc"):
        toolchain.find()


def test_failure_names_command_and_errors(folder, tmp_path):
    source = tmp_path / "broken.c"
    source.write_text("int f( { return 1; }\n")
    with pytest.raises(CompilerFailed) as error:
        toolchain.find().build(str(source), str(tmp_path / "x.so"))
    text = str(error.value)
    assert "broken.c" in text and "command:" in text and "error" in text and "Fix:" in text


def test_flags_never_relax_the_maths():
    assert not any("fast-math" in f or "unsafe" in f or "finite" in f for f in toolchain.FLAGS)


def test_without_compiler_numpy_runs(folder, monkeypatch):
    from pullback.compile import backend
    from tests.helpers.compiled_checks import run_both

    monkeypatch.setenv("PULLBACK_CC", "/nowhere/cc")
    monkeypatch.setattr(backend, "_warned", False)
    x = np.ones((3, 4), np.float32)
    with pytest.warns(errors.CompileWarning, match="no working C compiler"):
        compiled, got, want = run_both(lambda a: ((a * 2).sum(), a.exp()), x)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-6)
    assert compiled.report["externs"] and compiled.source_path is None


def test_broken_entries_are_made_again(folder):
    from pullback.compile.backend import compile_graph
    from tests.helpers.compiler_graphs import trace

    x = np.ones((3, 4), np.float32)
    gm = trace(lambda a: a.exp() * 3, x)
    first = compile_graph(gm, "broken_entries")
    base = first.source_path[:-2]
    for suffix, data in ((".so", b"not an object"), (".plan", b"\xff\xff")):
        os.unlink(base + suffix)
        with open(base + suffix, "wb") as file:
            file.write(data)
        again = compile_graph(gm, "broken_entries")
        np.testing.assert_array_equal(again(x)[0], first(x)[0])


def test_warm_start_is_quick(folder, tmp_path):
    script = tmp_path / "warm.py"
    script.write_text(
        "import sys, time\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "import numpy as np\nfrom tests.helpers.compiler_graphs import trace\n"
        "from pullback.compile.backend import compile_graph\n"
        "x = np.ones((3, 4), np.float32)\n"
        "gm = trace(lambda a: (a.exp() * 3).sum(), x)\n"
        "begin = time.perf_counter()\nc = compile_graph(gm, 'warm')\n"
        "print(time.perf_counter() - begin)\n"
        "import pullback.compile as p\nprint('pullback.compile.emit' in sys.modules)\n"
    )
    times = []
    for _ in range(2):
        out = subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, check=True
        )
        times.append(float(out.stdout.split()[0]))
    assert times[1] < max(0.3, times[0]), times
    time.sleep(0)


def test_the_oldest_entries_make_room(folder, monkeypatch):
    monkeypatch.setenv("PULLBACK_CACHE_LIMIT", "10000")
    monkeypatch.setattr(cache, "_SHARE", 1000)
    for i, name in enumerate(("aa", "bb", "cc")):
        name = named(name, ".plan")
        os.utime(cache.write_sealed(name, bytes(1000)), (100 + i, 100 + i))
    os.utime(cache.write_sealed(named("dd"), b""), (1, 1))
    left = folder / "ee" / ".pullback-writing-12345678"
    left.parent.mkdir()
    left.write_bytes(b"half")
    os.utime(left, (50, 50))
    cache.used(named("aa"), True)  # young again
    assert cache.info()["limit"] == 10000
    cache.grown()
    assert [cache.read(named(n, ".plan")) is None for n in ("aa", "bb", "cc")] == [
        False, True, False]
    assert not left.exists()
    os.utime(cache.write_sealed(named("ff"), bytes(1000)), (2, 2))
    monkeypatch.setattr(cache, "_SHARE", 1)
    cache.grown()  # looked at just now: not again
    assert cache.info()["bytes"] == 3 * 4096
    assert cache.trim(0) == 3 and cache.info()["entries"] == 0


def test_the_limit_is_kept_between_looks(folder, monkeypatch):
    """Small entries count as the blocks they fill, and a process that adds many looks sooner."""
    most = 100 * 4096
    monkeypatch.setenv("PULLBACK_CACHE_LIMIT", str(most))
    cache.folder()
    dead = folder / ".pullback-working-12345678.so"
    dead.write_bytes(b"half")
    os.utime(dead, (50, 50))
    peak = 0
    for i in range(300):
        os.utime(cache.write_sealed(named(i, ".plan"), b"tiny"), (1000 + i, 1000 + i))
        cache.grown()
        peak = max(peak, cache.info()["bytes"])
    assert peak <= most
    assert cache.read_sealed(named(299, ".plan")) == b"tiny"
    assert cache.read(named(100, ".plan")) is None
    assert not dead.exists()


def test_cleared_while_another_compiles(folder, monkeypatch):
    """Files that are being written are left alone, and a source that has gone is written again."""
    from pullback.compile import native

    half, one = cache.working(".so"), named("one")
    build, cleared = native.build, []

    def meanwhile(source, name, extra=()):
        if not cleared:
            cleared.append(cache.clear())
        return build(source, name, extra)

    monkeypatch.setattr(native, "build", meanwhile)
    path = native.build_text("int pb_one(void) { return 1; }\n", one, one + ".so")
    assert cleared and path.exists() and half.exists() and cache.intact(one + ".so")


def test_a_source_that_does_not_compile_is_refused_once(folder):
    from pullback.compile import native

    with pytest.raises(CompilerFailed):
        native.build_text("int pb_one( { }\n", named("bad"), named("bad", ".so"))
    assert not list(folder.glob(".pullback-wo*"))


def test_a_folder_that_can_only_be_read_is_read(folder, monkeypatch):
    cache.write_sealed(named("old"), b"made before")

    def refused(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cache, "_folder", None)
    with monkeypatch.context() as patch:
        patch.setattr(cache.tempfile, "NamedTemporaryFile", refused)
        with pytest.warns(errors.CompileWarning, match="Permission denied"):
            assert cache.folder() != folder
    assert cache.read_sealed(named("old")) == b"made before"
    cache.write(named("new"), b"1")
    assert cache.read(named("new")) == b"1" and not (folder / named("new")[:2]).exists()


def test_processes_race(folder, tmp_path):
    script = tmp_path / "race.py"
    script.write_text(
        f"import sys\nsys.path[:0] = {sys.path!r}\n"
        "import pullback as torch\n"
        "f = torch.compile(lambda x: (x.sin() * 3 + 1).sum())\n"
        "print(f(torch.ones(8)).item(), torch.cache.info()['misses'])\n"
    )
    ready = ("import pullback as torch\n"
             "torch.compile(torch.exp)(torch.ones(2))  # builds the runtime, once\n")
    path = f"import sys\nsys.path[:0] = {sys.path!r}\n"
    subprocess.check_call([sys.executable, "-c", path + ready])
    running = [subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
               for _ in range(4)]
    first = [p.communicate()[0].split() for p in running]
    assert len({value for value, _ in first}) == 1
    again = subprocess.check_output([sys.executable, str(script)], text=True)
    assert again.split() == [first[0][0], "0"]
    assert not list(folder.glob("*/.pullback-*")) and not list(folder.glob(".pullback-w*"))
