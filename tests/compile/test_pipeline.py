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


class Replaced(Exception):
    pass


def _refuse(*args):
    raise Replaced


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "symbolic"])
@pytest.mark.parametrize("known", [False, True], ids=["new", "on disk"])
@pytest.mark.parametrize("name", [*STEPS, "load", "decompositions"])
def test_every_step_can_be_replaced(name, known, dynamic):
    def f(x):
        return x.softmax(0) * 2

    class Table:
        careful = False
        get = _refuse

    steps, other = api.pipeline(fuse=False), Table() if name == "decompositions" else _refuse
    x = torch.randn(3, requires_grad=True)
    if known:
        Compiled(f, steps, dynamic)(x).sum().backward()
    with pytest.raises(Replaced):
        Compiled(f, replace(steps, **{name: other}), dynamic)(x)


@pytest.mark.parametrize("name", ["schedule", "emit"])
def test_replaced_steps_see_the_backward_of_all_sizes(name):
    steps = api.pipeline(fuse=False)
    values: list[str] = []

    def noting(given, title):
        values.append(title)
        return getattr(steps, name)(given, title)

    f = Compiled(lambda x: x.exp() * 2, replace(steps, **{name: noting}), True)
    for n in (3, 5):
        x = torch.randn(n, requires_grad=True)
        f(x).sum().backward()
        torch.testing.assert_close(x.grad, x.detach().exp() * 2)
    assert values == ["forward", "backward"]  # one text is for all sizes


def test_code_of_replaced_steps_is_not_on_disk():
    def f(x):
        return x.exp() * 2

    x, values = torch.randn(3), []
    steps = api.pipeline()
    Compiled(f, steps, False)(x)

    def doubled(module):  # another program for the same graph
        values.append("simplify")
        for node in module.graph.find_nodes(op="call_function", target=torch.ops.aten.mul.Tensor):
            node.args = (node.args[0], 4)
        module.recompile()
        return module

    torch.testing.assert_close(
        Compiled(f, replace(steps, simplify=doubled), False)(x), x.exp() * 4)
    torch.testing.assert_close(Compiled(f, steps, False)(x), x.exp() * 2)
    assert values == ["simplify"]


def test_compile_goes_through_the_steps():
    def f(x):
        return x * 2

    made = torch.compile(f)
    assert isinstance(made.backend, api.Pipeline)
    made.backend, values = watched(made.backend)
    made(torch.randn(3))
    assert list(values) == ["capture", "simplify", "schedule", "emit", "run"]  # no gradients
