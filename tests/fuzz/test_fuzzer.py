"""The fuzzer itself, a slice of its programs, and past failures in all modes."""

import os
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback import errors
from tests.fuzz.fuzzer import natively, textbook
from tests.fuzz.fuzzer.compare import difference, observe
from tests.fuzz.fuzzer.generate import generate
from tests.fuzz.fuzzer.judge import Judge, again, case_of
from tests.fuzz.fuzzer.modes import MODES
from tests.fuzz.fuzzer.program import Input, Program, Step, read
from tests.fuzz.fuzzer.shrink import shrunk

FOUND = sorted(Path(__file__).parent.joinpath("found").glob("*.py"))


def step(text, makes, needs, what=""):
    return Step(text, makes, needs, what or text)


CHAIN = Program(
    {"a": Input("float64", (3, 4), 5, grad="leaf"), "b": Input("float64", (3, 4), 6)},
    [step("x1 = a.sin()", ("x1",), ("a",)), step("x2 = x1 * b", ("x2",), ("x1", "b")),
     step("x3 = x2.floor()", ("x3",), ("x2",)), step("x4 = x3.exp()", ("x4",), ("x3",))],
    ("x4", "x2"))


@pytest.mark.parametrize("seed", range(12))
def test_a_seed_is_a_program_and_its_text_is_the_program(seed):
    program = generate(seed)
    assert str(program) == str(generate(seed))
    again = read(str(program))
    found = [observe(pb, p.function(pb), p.inputs, False) for p in (program, again)]
    assert difference(*found, eps=0.0) is None


def test_wrong_numbers_are_noticed():
    case = case_of(CHAIN)
    assert case.check(case.function) is None
    assert "result 1" in case.check(lambda a, b: (case.function(a, b)[0], a.sin() * b * 1.0001))

    def silent(a, b):
        return case.function(a.detach(), b)

    assert "gradient of a" in case.check(silent)

    def writing(a, b):
        b.add_(1e-6)
        return case.function(a, b - 1e-6)

    assert "input b afterwards" in case.check(writing)


def test_what_rounding_moves_is_no_difference():
    unstable = Program({"a": Input("float32", (5,), 3)},
                       [step("x1 = a + 1e6 - 1e6", ("x1",), ("a",))], ("x1",))
    case = case_of(unstable)
    assert case.check(lambda a: a + (1e6 - 1e6)) is None
    assert case.check(lambda a: a + 3) is not None


def test_numbers_that_rounding_makes_of_nan_are_no_difference():
    """0 / 0 where another rounding of the zeros gives 1 says nothing; NaN elsewhere does."""
    unstable = Program({"a": Input("float32", (5,), 3)}, [
        step("x1 = a * 3 - (a + a + a)", ("x1",), ("a",)), step("x2 = x1 / x1", ("x2",), ("x1",))],
        ("x2",))
    case = case_of(unstable)
    assert np.isnan(case.wanted[0].value).any()
    assert case.check(lambda a: (a / a)) is None
    assert "nan" in case_of(CHAIN).check(lambda a, b: ((a / 0).floor() * 0, a.sin() * b))


REPORT = """=================================================================
==71==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602000 at pc 0x7f33 bp 0x7f sp 0x7f
WRITE of size 3 at 0x602000 thread T0
    #0 0x7f3313e48060 in __interceptor_memcpy sanitizer_common_interceptors.inc:827
    #1 0x7f3300c7d371 in storen_b8 /home/me/pullback/compile/runtime/vec.h:134
    #2 0x7f3300c7d372 in k16_sin /tmp/cache/2b/2b94ca7ad42c70621b77281b7b4b49a60f1c8375.c:354
"""


@pytest.mark.parametrize("mode", ["noisy", "native"])
def test_what_a_sanitizer_writes_is_a_finding_of_the_seed(mode, monkeypatch, tmp_path):
    log = tmp_path / f"asan.{os.getpid()}"
    monkeypatch.setenv("ASAN_OPTIONS", f"halt_on_error=0:log_path={tmp_path}/asan")
    programs = {seed: replace(CHAIN, seed=seed) for seed in range(4)}

    def runs(cases):
        if any(case.program.seed == 2 for case in cases):
            with log.open("a") as file:
                file.write(REPORT)
        return []

    monkeypatch.setitem(MODES, "noisy", (lambda case: runs([case]) and None, 100))
    monkeypatch.setattr(natively, "batch", runs)
    found = []
    judge = Judge(["numpy", mode], lambda m: found.append(m["finding"]) if "finding" in m else None,
                  0, True, programs.get)
    judge.run(range(4))
    assert [f["seed"] for f in found] == [2] and found[0]["mode"] == mode
    assert "AddressSanitizer: heap-buffer-overflow\nin storen_b8 vec.h:134" in found[0]["words"]


def test_failures_become_small():
    small = shrunk(CHAIN, lambda p: "floor" in p.source(), 5)
    assert len(small.steps) == 1 and list(small.inputs) == ["a"]
    assert "x2 = a.floor()" in small.source() or "a.floor()" in small.source()


def test_programs_run_together_as_they_do_alone():
    cases = [case_of(generate(s)) for s in (3, 8, 13)]
    function = natively.function_of(natively.source(cases), pb, "together")
    for case, seen in zip(cases, natively.observe_all(function, cases)):
        if "random" not in case.traits:
            assert case.differs(seen) is None
    one = natively.joined([c.program for c in cases])
    seen = observe(pb, one.function(pb), one.inputs, False)
    assert len(seen) == len(one.result) + len(one.inputs)


@pytest.mark.parametrize("seed", range(1000, 1024))
def test_a_slice(seed):
    found = []
    quick = [m for m in MODES if "native" not in m and m not in ("threads", "memory")]
    judge = Judge(quick, lambda m: found.append(m["finding"]) if "finding" in m else None, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        judge.run([seed])
    assert not found


def test_there_are_a_thousand_textbook_programs():
    assert len({str(p) for p in textbook.everything()}) == textbook.COUNT == 1000


@pytest.mark.parametrize("number", range(0, 1000, 125))
def test_textbook(number):
    found = []
    modes = ["numpy", "loss", "vmap", "jvp", "aot_default"]
    judge = Judge(modes, lambda m: found.append(m["finding"]) if "finding" in m else None, 0,
                  True, textbook.program)
    judge.run([number])
    assert not found


@pytest.mark.parametrize("path", FOUND, ids=lambda p: p.stem)
def test_found(path):
    program = read(path.read_text())
    for mode in [*MODES, "native"]:
        if mode not in ("threads", "native_dynamic"):
            assert again(mode, program) is None, mode


UNSTABLE = """INPUTS = dict(
    a=Input('float64', (2, 2), seed=606264, grad='inner'),
)


def program(a):
    x = 1 - F.cosine_similarity(a, a, dim=-2)
    return x / x.sum(-1, keepdim=True)
"""
CANCELLING = """INPUTS = dict(
    b=Input('float64', (1,), seed=386822, grad='leaf'),
)


def program(b):
    x = (b - b.mean(0, keepdim=True)) / (b.var(0, keepdim=True, unbiased=False) + 1e-5).sqrt()
    return ((b - x).norm(dim=0), F.logsigmoid(b))
"""


NOISE = """INPUTS = dict(
    a=Input('float32', (6, 7), seed=928994, grad='inner'),
)


def program(a):
    x = 1 - F.cosine_similarity(a, a, dim=1)
    return (F.cosine_similarity(x, x, dim=0), F.layer_norm(x, x.shape[-1:]))
"""


@pytest.mark.parametrize("text, mode", [(UNSTABLE, "jvp"), (UNSTABLE, "second"),
                                        (CANCELLING, "loss"), (NOISE, "native_loss")])
def test_what_rounding_decides_is_not_reported(text, mode):
    assert MODES[mode][0](case_of(read(text))) is None


def test_a_derivative_that_is_missing_is_a_finding(monkeypatch):
    found = []
    error = errors.DerivativeNotWritten("the derivative for 'sin' is not implemented")

    def refuses(*args, **kwargs):
        raise error

    monkeypatch.setattr(pb.autograd, "grad", refuses)
    judge = Judge([], lambda m: found.append(m["finding"]) if "finding" in m else None, 0,
                  source=lambda seed: CHAIN)
    judge.run([1])
    assert ["'sin'" in f["words"] for f in found] == [True]
    error = errors.DerivativeNotWritten("the derivative for 'geqrf' is not implemented")
    judge.run([1])
    assert len(found) == 1


@pytest.mark.parametrize("weight, compared", [("b", False), ("b.clone()", True)])
def test_gradients_of_what_was_written_behind_the_tape_are_not_compared(weight, compared):
    """Eager mode, as PyTorch's, differentiates with what lies in memory then; graphs do not."""
    case = case_of(read(f"""INPUTS = dict(
    a=Input('float64', (2, 3), seed=1, grad='inner'),
    b=Input('float64', (4, 3), seed=2),
)
TRAITS = ['write']


def program(a, b):
    x1 = F.linear(a, {weight})
    b.data.mul_(2)
    return x1
"""))
    assert case.gradients is compared
    assert any(s.place == "gradient of a" for s in case.wanted) is compared
    assert MODES["numpy"][0](case) is None


def test_room_is_small_where_nothing_cancels():
    assert all(0 <= np.max(room, initial=0.0) < 1e-12 for room in case_of(CHAIN).room)


def test_inputs_without_elements_have_views():
    for seed in (22742, 24201):
        assert generate(seed).operators
