"""The callable, the thread pool and the allocator."""

import gc
import os
import threading

import numpy as np
import pytest

import pullback.nn.functional as F
from pullback.compile import native
from tests.helpers.compiled_checks import run_both, same

rng = np.random.default_rng(0)


def real(*shape):
    return rng.standard_normal(shape).astype(np.float32)


@pytest.fixture(scope="module")
def doubled():
    return run_both(lambda x, n: (x * 2, n + 1), real(4, 5), np.arange(3))[0]


def test_wrong_arguments(doubled):
    x, n = real(4, 5), np.arange(3)
    with pytest.raises(TypeError, match="takes 2 arrays, got 1"):
        doubled(x)
    with pytest.raises(TypeError, match="must be float32, got float64"):
        doubled(x.astype("f8"), n)
    with pytest.raises(ValueError, match="must have shape"):
        doubled(real(5, 4), n)
    with pytest.raises(ValueError, match="must have shape"):
        doubled(real(4, 5, 1), n)
    with pytest.raises(TypeError, match="NumPy array, got list"):
        doubled([1, 2], n)
    with pytest.raises(TypeError):
        doubled(x, n, extra=1)


def test_odd_memory(doubled):
    x, n = real(4, 5), np.arange(3)
    for other in (
        x[::-1, ::-1],
        np.asfortranarray(x),
        np.repeat(x, 2, 0)[::2],
        x.astype(">f4").view(">f4"),
    ):
        if other.dtype != np.float32:
            continue
        np.testing.assert_array_equal(doubled(other, n)[0], other * 2)
    raw = np.zeros(4 * 5 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(4, 5)  # not aligned
    raw[...] = x
    np.testing.assert_array_equal(doubled(raw, n)[0], x * 2)
    np.testing.assert_array_equal(
        doubled(np.broadcast_to(np.float32(3), (4, 5)), n)[0], np.full((4, 5), 6)
    )


def test_memory_is_reused_and_not_shared():
    x = real(300, 400)
    c = run_both(lambda x: (x * 2,), x)[0]
    first = c(x)[0]
    second = c(x + 1)[0]
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, x * 2)
    where = second.ctypes.data
    del second
    gc.collect()
    assert c(x)[0].ctypes.data == where
    live, kept = native.runtime().alloc_info()
    assert live > 0 and kept >= 0
    view = c(x)[0][10:20]
    np.testing.assert_array_equal(view, (x * 2)[10:20])


def test_outputs_are_aligned():
    x = real(500, 500)
    out = run_both(lambda x: (x * 2, x + 1), x)[0](x)
    assert all(o.ctypes.data % 64 == 0 for o in out)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_thread_count_does_not_change_a_bit(threads):
    x, w = real(300, 200), real(200)
    t = rng.integers(0, 200, 300)
    fn = lambda x, w, t: F.cross_entropy(F.layer_norm(x, (200,), w), t) + (x.tanh() * w).sum()
    native.set_num_threads(2)
    c, want, _ = run_both(fn, x, w, t, grad=2)
    try:
        native.set_num_threads(threads)
        for _ in range(20):
            for a, b in zip(c(x, w, t), want):
                np.testing.assert_array_equal(a, b)
    finally:
        native.set_num_threads(2)


def test_set_num_threads():
    before = native.get_num_threads()
    native.set_num_threads(3)
    assert native.get_num_threads() == 3
    native.set_num_threads(before)
    with pytest.raises(RuntimeError):
        native.set_num_threads(0)


def test_calls_from_many_threads():
    x = real(400, 300)
    c = run_both(lambda x: ((x.exp() * 2).sum(1), x @ x.t()), x)[0]
    want, bad = c(x), []

    def work():
        for _ in range(30):
            if any(not np.array_equal(a, b) for a, b in zip(c(x), want)):
                bad.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not bad


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_fork():
    x = real(600, 500)
    c = run_both(lambda x: (x.exp().sum(1),), x)[0]
    want = c(x)[0]
    pid = os.fork()
    if pid == 0:
        good = all(np.array_equal(c(x)[0], want) for _ in range(5))
        os._exit(0 if good else 1)
    assert os.waitpid(pid, 0)[1] == 0
    np.testing.assert_array_equal(c(x)[0], want)


def test_report_and_source():
    c = same(
        lambda x, w: (F.softmax(x @ w, 1), (x * 2).sort(0)[0]), real(8, 9), real(9, 10), externs=1
    )
    r = c.report
    assert [k["kind"] for k in r["calls"]] == ["gemm"] and len(r["externs"]) == 1
    assert any("amax" in n for k in r["kernels"] for n in k["nodes"])
    assert r["workspace_bytes"] > 0 and "fast-math" not in c.source and "amax" in c.source


def test_no_reference_leaks():
    import sys

    x = real(3, 4)
    c = run_both(lambda x: (x + 1, x.t(), x), x)[0]
    c(x)
    before = sys.getrefcount(x)
    for _ in range(100):
        c(x)
    assert sys.getrefcount(x) == before


def test_fusion():
    """The shapes of fusion that the design promises."""
    ew = lambda x, w, b: (F.gelu(x * w + b, approximate="tanh") * x.tanh()).sum()
    c = same(ew, real(64, 96), real(64, 96), real(64, 96), grad=3)
    assert len(c.report["kernels"]) == 1
    c = same(ew, real(64, 96), real(96), real(96), grad=3, rtol=1e-4)
    assert len(c.report["kernels"]) == 1
    ln = lambda x, g, s, c: (F.gelu(F.layer_norm(x, (100,), g, s), approximate="tanh") * c).sum()
    c = same(ln, real(30, 100), real(100), real(100), real(30, 100), grad=3, rtol=1e-4)
    assert len(c.report["kernels"]) == 1 and c.report["kernels"][0]["passes"] == 4
    c = same(F.cross_entropy, real(64, 50), rng.integers(0, 50, 64), grad=1)
    big = [k for k in c.report["kernels"] if k["columns"] == [50]]
    assert len(big) == 1 and big[0]["passes"] == 3


def test_streaming_stores(monkeypatch):
    """Outputs past the last cache leave by another way, with the same values."""
    from pullback.compile import unit

    x = real(600, 512)
    c, plain, _ = run_both(lambda x: (x * 2 + 1, x.sum(1)), x, name="plain_stores")
    monkeypatch.setattr(unit, "last_level_cache", lambda: 0)
    streamed, got, _ = run_both(lambda x: (x * 2 + 1, x.sum(1)), x, name="streaming_stores")
    assert "stream_f" in streamed.source and "stream_f" not in c.source
    for a, b in zip(got, plain):
        np.testing.assert_array_equal(a, b)
