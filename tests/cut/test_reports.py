"""The sums of a report are what is measured: arrays that are kept, arithmetic that is repeated."""

import numpy as np
import pytest

import pullback as torch
from pullback.cut.flops import flops
from pullback.cut.partition import default_partition
from pullback.nn import functional as F
from pullback.utils.flop_counter import FlopCounterMode


def residual(x, *ws):
    for w in ws:
        x = x + torch.tanh(F.layer_norm(x, (x.shape[-1],)) @ w) @ w.T
    return x


def attention(x, w, v):
    q, k, u = (x @ w).chunk(3, -1)
    return (q @ k.transpose(-1, -2)).softmax(-1) @ u @ v


def arguments(function):
    torch.manual_seed(0)
    shapes = {residual: [(64, 32)] + [(32, 64)] * 4,
              attention: [(2, 32, 16), (16, 48), (16, 16)]}[function]
    return [(torch.randn(*s) * 0.1).requires_grad_() for s in shapes]


@pytest.fixture(params=[(f, m) for f in (residual, attention) for m in (None, 1.0, 0.5, 0.0)],
                ids=lambda p: f"{p[0].__name__}-{p[1]}")
def made(request):
    function, memory = request.param
    args = arguments(function)
    run = torch.compile(function, backend="numpy", memory=memory)
    out = run(*args)
    (program,) = run.programs.values()
    return args, out, program, run.report()


def new_bytes(report):
    return sum(r.bytes for r in report.saved if not r.reason.endswith("already in memory"))


def test_saved_bytes_are_those_of_the_arrays_that_are_kept(made):
    args, out, _, report = made
    kept = [a for a in out.grad_fn.saved if isinstance(a, np.ndarray)]
    there = [a._payload for a in args] + [out._payload]
    new = [a for a in kept if not any(np.shares_memory(a, b) for b in there)]
    assert sum(a.nbytes for a in kept) == report.saved_bytes
    assert sum(a.nbytes for a in new) == new_bytes(report)
    assert f"{report.saved_bytes:,} bytes, {new_bytes(report):,} of them new" in str(report)


def counted(module, tensors):
    with FlopCounterMode(display=False) as counter:
        module(*tensors)
    return counter.get_total_flops()


def zeros(module):
    return [torch.zeros(n.meta["val"].shape) for n in module.graph.nodes if n.op == "placeholder"]


def test_recomputed_flops_are_those_that_the_backward_does_beyond_its_own(made):
    """Products by a counter of calls; all the rest node by node."""
    _, _, program, report = made
    backward = program.graphs()[1]
    plain = default_partition(program.joint.module, program.count).backward
    products = [r.flops for r in report.recomputed if r.name.startswith(("mm", "bmm"))]
    more = counted(backward, zeros(backward)) - counted(plain, zeros(plain))
    assert sum(products) == more
    forward = {n.name for n in program.graphs()[0].graph.nodes}
    again = [n for n in backward.graph.nodes if n.op == "call_function" and n.name in forward]
    assert report.recomputed_flops == sum(map(flops, again))
    assert {r.name for r in report.recomputed} == {n.name for n in again}


def test_less_memory_is_fewer_bytes_and_more_flops():
    args = arguments(residual)
    reports = []
    for memory in (1.0, 0.5, 0.0):
        run = torch.compile(residual, backend="numpy", memory=memory)
        run(*args)
        reports.append(run.report())
    saved = [new_bytes(r) for r in reports]
    work = [r.recomputed_flops for r in reports]
    assert saved == sorted(saved, reverse=True)
    assert work == sorted(work)
    assert saved[0] > saved[-1]
    assert work[0] < work[-1]
