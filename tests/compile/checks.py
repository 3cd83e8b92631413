"""Compile a function's graph, run it, and compare with torch."""

import numpy as np
import torch
from standin import trace, with_grad

from pullback.compile.backend import compile_graph


def run_both(fn, *arrays, grad=0, name="t"):
    """The compiled graph, its outputs, and torch's."""
    f = with_grad(fn, grad) if grad else fn
    compiled = compile_graph(trace(f, *arrays), name)
    got = compiled(*arrays)
    want = f(*[torch.from_numpy(a) for a in arrays])
    want = want if isinstance(want, (tuple, list)) else (want,)
    return compiled, got, [w.detach().numpy() for w in want]


def same(fn, *arrays, grad=0, rtol=2e-5, atol=2e-5, externs=0):
    """Check values, shapes and dtypes; `externs` is the number of NumPy steps allowed."""
    compiled, got, want = run_both(fn, *arrays, grad=grad)
    assert len(got) == len(want)
    for i, (g, w) in enumerate(zip(got, want)):
        assert g.shape == w.shape and g.dtype == w.dtype, (i, g.shape, w.shape, g.dtype, w.dtype)
        if w.dtype.kind == "f":
            tight = 1e-4 if w.dtype == np.float64 else 1
            scale = max(1.0, float(np.abs(w[np.isfinite(w)]).max(initial=0)))
            np.testing.assert_allclose(
                g, w, rtol=rtol * tight, atol=atol * tight * scale, err_msg=f"output {i}"
            )
        else:
            np.testing.assert_array_equal(g, w, err_msg=f"output {i}")
    assert len(compiled.report["externs"]) <= externs, compiled.report["externs"]
    again = compiled(*arrays)
    for g, a in zip(got, again):
        np.testing.assert_array_equal(g, a)  # run to run, bit by bit
    return compiled
