"""Capture refuses the dtypes that the operators refuse, whatever the size of the tensors."""

import time

import pytest

import pullback as torch
from pullback.decomp import core_aten_decompositions
from pullback.interp import trace

REFUSED = {
    "nansum of complex numbers": (torch.nansum, torch.complex64),
    "amax of complex numbers": (lambda x: x.amax(0), torch.complex64),
    "relu of complex numbers": (torch.relu, torch.complex128),
    "mean of integers": (lambda x: x.mean(0), torch.int32),
}


@pytest.mark.parametrize("size", [3, 1 << 18])
@pytest.mark.parametrize("mode", ["real", "fake"])
@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_by_the_operator(name, mode, size):
    f, dtype = REFUSED[name]
    x = torch.ones(size, dtype=dtype)
    with pytest.raises((RuntimeError, NotImplementedError)) as eager:
        f(x)
    with pytest.raises((RuntimeError, NotImplementedError)) as capture:
        torch.make_fx(f, core_aten_decompositions(), tracing_mode=mode)(x)
    assert type(capture.value) is type(eager.value)


def test_a_probe_is_small(monkeypatch):
    """A half-precision product of large matrices would take minutes."""
    monkeypatch.setattr(trace, "_PROBED", set())
    x = torch.empty(1, dtype=torch.bfloat16).expand(20_000, 20_000)
    start = time.perf_counter()
    graph = torch.make_fx(torch.mm, tracing_mode="fake")(x, x)
    assert time.perf_counter() - start < 5
    assert "aten.mm" in str(graph.code)
    assert any(key[0].name == "mm" for key in trace._PROBED)


def test_shapes_that_cannot_be_made_smaller_are_kept():
    """24 channels in 12 groups: with 24 made smaller the groups would not fit."""
    x = torch.ones(1, 24, 4, dtype=torch.float16)
    w = torch.ones(24, 2, 2, dtype=torch.float16)
    grouped = lambda x, w: torch.nn.functional.conv1d(x, w, groups=12)
    assert "convolution" in torch.make_fx(grouped, tracing_mode="fake")(x, w).code
