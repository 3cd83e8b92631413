"""Compile a function's graph, run it, and compare with eager execution.

Float32 functions are compared with eager execution in float64, so that the reference has no
rounding of its own; what a function rounds on purpose (casts, integer results) makes no difference
at these sizes.
"""

from contextlib import contextmanager

import numpy as np

import pullback as pb
from pullback.compile.backend import CompiledGraph, compile_graph
from tests.helpers.compiler_graphs import trace, with_grad


@contextmanager
def graphs_made():
    """Compiled graphs in the order in which they are made, or loaded where the cache has them."""
    made, begin = [], CompiledGraph.__init__

    def record(self, *args):
        begin(self, *args)
        made.append(self)

    CompiledGraph.__init__ = record
    try:
        yield made
    finally:
        CompiledGraph.__init__ = begin
    assert made, "nothing was compiled"


def eager(fn, *arrays):
    """The function's results on NumPy, as arrays."""
    out = fn(*[pb.from_numpy(np.array(a, order="K")) for a in arrays])
    out = out if isinstance(out, (tuple, list)) else (out,)
    return [np.asarray(o.detach().numpy()) for o in out]


def run_both(fn, *arrays, grad=0, name="t"):
    """The compiled graph, its outputs, and those of eager execution."""
    f = with_grad(fn, grad) if grad else fn
    compiled = compile_graph(trace(f, *arrays), name)
    return compiled, compiled(*arrays), eager(f, *arrays)


def same(fn, *arrays, grad=0, rtol=2e-5, atol=2e-5, externs=0):
    """Check values, shapes and dtypes; `externs` is the number of NumPy steps allowed."""
    compiled, got, want = run_both(fn, *arrays, grad=grad)
    exact = want
    if any(a.dtype == np.float32 for a in arrays):
        wide = [a.astype(np.float64) if a.dtype == np.float32 else a for a in arrays]
        exact = eager(with_grad(fn, grad) if grad else fn, *wide)
    assert len(got) == len(want)
    for i, (g, w, e) in enumerate(zip(got, want, exact)):
        assert g.shape == w.shape and g.dtype == w.dtype, (i, g.shape, w.shape, g.dtype, w.dtype)
        if w.dtype.kind == "f":
            tight = 1e-4 if w.dtype == np.float64 else 1
            e = e if w.dtype == np.float32 else w
            scale = max(1.0, float(np.abs(e[np.isfinite(e)]).max(initial=0)))
            np.testing.assert_allclose(
                g, e, rtol=rtol * tight, atol=atol * tight * scale, err_msg=f"output {i}"
            )
        else:
            np.testing.assert_array_equal(g, w, err_msg=f"output {i}")
    assert len(compiled.report["externs"]) <= externs, compiled.report["externs"]
    again = compiled(*arrays)
    for g, a in zip(got, again):
        np.testing.assert_array_equal(g, a)  # run to run, bit by bit
    return compiled
