"""The steps of `compile`: each can be printed, and each can be replaced."""

from __future__ import annotations

from dataclasses import replace

import pytest

import pullback as torch
from pullback.capture.compiled import Compiled
from pullback.compile import api

STEPS = ("capture", "simplify", "partition", "schedule", "emit", "run")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    """A folder where nothing is known, so that every step runs."""
    from pullback.compile import cache

    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_folder", None)


def function(x, w):
    w.mul_(2)
    return (x @ x).sin() * x + w


def watched(steps):
    """The steps of a pipeline that note what they give."""
    values: dict[str, list] = {}

    def noting(name, step):
        def run(*args):
            found = step(*args)
            values.setdefault(name, []).append(str(found))
            return found

        return run

    return replace(steps, **{n: noting(n, getattr(steps, n)) for n in STEPS}), values


def test_values_of_steps_can_be_printed():
    steps, values = watched(api.pipeline(fuse=False))
    x, w = torch.randn(3, 3, requires_grad=True), torch.ones(3)
    before = w.clone()
    out = Compiled(function, steps)(x, w)
    torch.testing.assert_close(w, before * 2)
    out.sum().backward()
    assert list(values) == ["capture", "simplify", "partition", "schedule", "emit", "run"]
    assert "def forward(self, primals_1" in values["capture"][0]
    assert "# effect: WriteInputs" in values["capture"][0]
    assert "# returns: ReturnValue" in values["capture"][0]
    assert "aten.sin" in values["simplify"][0]
    assert "# forward" in values["partition"][0] and "# backward" in values["partition"][0]
    assert len(values["schedule"]) == len(values["emit"]) == 2  # the backward, when it was needed
    assert "kernel over [" in values["schedule"][0] and "gemm" in values["schedule"][0]
    assert "#include" in values["emit"][0] and "pb_stage_0" in values["emit"][0]
    assert "program of" in values["run"][0]
    assert "taken apart" in str(steps.decompositions)


@pytest.mark.parametrize("name", STEPS)
def test_every_step_can_be_replaced(name):
    class Replaced(Exception):
        pass

    def other(*args):
        raise Replaced

    steps = replace(api.pipeline(fuse=False), **{name: other})
    with pytest.raises(Replaced):
        Compiled(lambda x: x.exp() * 2, steps)(torch.randn(3, requires_grad=True))


def test_compile_goes_through_the_steps():
    def f(x):
        return x * 2

    made = torch.compile(f)
    assert isinstance(made.backend, api.Pipeline)
    made.backend, values = watched(made.backend)
    made(torch.randn(3))
    assert list(values) == ["capture", "simplify", "schedule", "emit", "run"]  # no gradients
