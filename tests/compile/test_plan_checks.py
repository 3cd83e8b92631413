"""The compiler's checks of its own plans: each kind of mistake is found before code is built, and
the graph runs on NumPy instead, with a warning.
"""

import numpy as np
import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.compile import emit_loops, inplace, loop_code, memory, schedule, sound
from pullback.compile.errors import CodeNotSound, CompileWarning
from pullback.compile.memory import Buffer, Memory
from pullback.control import scan
from tests.helpers.compiled_checks import run_both

g = np.random.default_rng(4)


@pytest.fixture(autouse=True)
def nothing_known(tmp_path, monkeypatch):
    """An empty cache: code that was made before is not found."""
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))


def on_numpy(fn, *arrays, match):
    with pytest.warns(CompileWarning, match=f"(?s)is not sound.*{match}.*runs on NumPy"):
        _, got, want = run_both(fn, *arrays)
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def rows(*shape):
    return g.standard_normal(shape).astype("float32")


def test_a_value_that_no_walk_keeps(monkeypatch):
    monkeypatch.setattr(emit_loops, "_keep", lambda *args: None)
    on_numpy(lambda x: torch.softmax(x, -1), rows(4, 40), match="which no walk stores")


def test_a_kernel_before_what_it_reads(monkeypatch):
    made = schedule._attempt

    def reversed_order(*args):
        plan = made(*args)
        plan.items.reverse()
        return plan

    monkeypatch.setattr(schedule, "_attempt", reversed_order)
    on_numpy(lambda x: (x.sum(0).exp() + x).sum(1), rows(7, 40), match="nothing wrote it")


def test_memory_that_two_values_have_at_once(monkeypatch):
    monkeypatch.setattr(memory, "_gap", lambda *args: 0)
    on_numpy(lambda a, b: (a @ b) @ (b @ a), rows(8, 8), rows(8, 8), match="share memory")


def stepped(c, x, w):
    return scan(lambda c, x: ((c @ w + x) @ w, (c * w).sum(0)), c, x)[1]


def test_memory_that_two_values_of_a_step_have_at_once(monkeypatch):
    monkeypatch.setattr(memory, "_gap", lambda *args: 0)

    def f(c, x):
        return scan(lambda c, x: (c, ((c @ x) @ (x @ c)) @ (c @ c)), c, x)[1]

    on_numpy(f, rows(8, 8), rows(3, 8, 8), match="share memory")


def test_a_step_whose_operand_has_no_address(monkeypatch):
    monkeypatch.setattr(loop_code._Region, "begin", lambda region: [])
    on_numpy(stepped, rows(5, 5), rows(3, 5, 5), rows(5, 5), match="has no address for")


def test_a_step_that_reads_what_comes_later(monkeypatch):
    made = schedule._attempt

    def reversed_order(*args):
        plan = made(*args)
        plan.items.reverse()
        return plan

    monkeypatch.setattr(schedule, "_attempt", reversed_order)
    on_numpy(stepped, rows(5, 5), rows(3, 5, 5), rows(5, 5), match="nothing wrote it")


def test_an_input_that_is_overwritten_while_others_are_still_read(monkeypatch):
    monkeypatch.setattr(inplace, "_is_last", lambda *args: True)

    @torch.compile
    def step(w):
        w.copy_(w + w.flip(0))

    start = rows(64)
    w = torch.tensor(start)
    with pytest.warns(CompileWarning, match="while it is read"):
        step(w)
    np.testing.assert_allclose(w.numpy(), start + start[::-1])


def test_walks_in_order():
    v = type("V", (), {"name": "v"})()
    sound.check_walks("k", [("fold", v, 0, 0), ("use", v, 0, 1)])
    with pytest.raises(CodeNotSound, match="walk 1 reads v, which walk 1 stores"):
        sound.check_walks("k", [("keep", v, 4, 1), ("load", v, 4, 1)])
    with pytest.raises(CodeNotSound, match="no walk stores"):  # its last columns
        sound.check_walks("k", [("keep", v, 16, 0), ("load", v, 3, 1)])
    with pytest.raises(CodeNotSound, match="by two walks"):
        sound.check_walks("k", [("keep", v, 4, 0), ("keep", v, 4, 1)])


def test_places_in_time():
    def check(*buffers, workspace=128):
        sound.check_places(Memory(list(buffers), workspace=workspace))

    check(Buffer("work", 64, at=0, born=0, dies=1), Buffer("work", 128, at=0, born=2, dies=3))
    with pytest.raises(CodeNotSound, match="share memory"):
        check(Buffer("work", 64, at=0, born=0, dies=2), Buffer("work", 128, at=0, born=2, dies=3))
    with pytest.raises(CodeNotSound, match="share memory"):
        check(Buffer("work", 64, at=32, born=0, dies=2), Buffer("work", 64, at=0, born=1, dies=1))
    with pytest.raises(CodeNotSound, match="outside"):
        check(Buffer("work", 64, at=96))
    given = Buffer("input", 64, at=0, born=-1, dies=2, gives=True)
    check(given, Buffer("placed", 64, at=0, born=3, dies=4))
    with pytest.raises(CodeNotSound, match="still needed"):
        check(given, Buffer("placed", 64, at=0, born=2, dies=4))


def test_sizes_that_are_not_known_yet(monkeypatch):
    monkeypatch.setattr(emit_loops, "_keep", lambda *args: None)
    f = torch.compile(lambda x: F.softmax(x, -1), dynamic=True)
    x = torch.tensor(rows(4, 40))
    with pytest.warns(CompileWarning, match="is not sound"):
        got = f(x)
    torch.testing.assert_close(got, F.softmax(x, -1))
