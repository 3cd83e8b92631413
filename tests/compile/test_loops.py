"""Branches and loops in native code: values, gradients, and that no step of NumPy is left."""

from __future__ import annotations

import signal

import numpy as np
import pytest

import pullback as pb
from pullback import func
from pullback.compile import sized
from pullback.control import associative_scan, map, scan, while_loop
from tests.helpers.compiled_checks import graphs_made


def numbers(*shape, seed=0, dtype=pb.float64):
    return pb.tensor(np.random.default_rng(seed).normal(size=shape)).to(dtype)


def agrees(f, *args, dynamic=False, tol=1e-12):
    """Results and gradients of the compiled function as eager's; the graphs that were made."""
    with graphs_made() as graphs:
        found = [results(g, *args) for g in (f, pb.compile(f, dynamic=dynamic))]
    close(*found, tol)
    return graphs


def results(f, *args):
    leaves = [a.detach().clone().requires_grad_(a.is_floating_point()) for a in args]
    out = f(*leaves)
    outs = list(out) if isinstance(out, (tuple, list)) else [out]
    tracked = [o for o in outs if o.requires_grad]
    inputs = [a for a in leaves if a.requires_grad]
    grads = pb.autograd.grad(
        tracked, inputs, [numbers(*o.shape, seed=3).to(o.dtype) for o in tracked],
        allow_unused=True, materialize_grads=True) if tracked else ()
    return [*outs, *grads]


def close(wanted, found, tol):
    for a, b in zip(wanted, found, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=tol, atol=tol)


def native(f, *args, kinds, **kwargs):
    """The same, all of it in C; `kinds` are those of loops and branches."""
    graphs = agrees(f, *args, **kwargs)
    assert [e["target"] for g in graphs for e in g.report["externs"]] == []
    assert {c["kind"] for g in graphs for c in g.report["calls"]} - {"gemm"} == set(kinds)


def cell(c, x, w):
    def step(c, x):
        c = (c * w + x).tanh()
        return c, c * 2

    return scan(step, c, x)


def mixed(c, n, m, x):
    def step(carry, x):
        c, n, m = carry
        m = m ^ (x > 0)
        return (c + x * n.to(c.dtype), n + m.sum(), m), (c * 1, n * 2, ~m)

    (c, n, m), ys = scan(step, (c, n, m), x)
    return c, n, m, *ys


def nested(c, x):
    def step(c, rows):
        c, ys = scan(lambda c, y: (c * 0.9 + y.sin(), c * y), c, rows)
        return c, ys.sum(0)

    return scan(step, c, x)


def branching(c, x):
    def step(c, x):
        c = pb.cond(x.sum() > 0, lambda c, x: c * x, lambda c, x: c - x, (c, x))
        return c, c + x

    return scan(step, c, x)


def filtered(f, y):
    """A filter of two states, whose body is small enough for straight code."""
    def step(carry, y):
        m, p, total = carry
        m, p = f @ m, f @ p @ f.T + 0.1
        s, r = p[0, 0] + 0.1, y - m[0]
        k = p[:, 0] / s
        return (m + k * r, p - k[:, None] * p[0][None], total + r * r / s + s.log()), m.flip(0)

    start = pb.zeros(2, dtype=f.dtype), pb.eye(2, dtype=f.dtype), pb.zeros((), dtype=f.dtype)
    (m, _, total), ys = scan(step, start, y)
    return m, total, ys


def some_unused(c, x):
    """Results and carries that nobody reads: they are not computed."""
    def step(carry, x):
        c, d = carry
        return (c * x, d.sin() + x), (c + 1, d)

    return scan(step, (c, c), x)[1][0]


SCANS = {
    "cell": (cell, (3,), (7, 3), (3,)),
    "wide": (cell, (5, 40), (4, 5, 40), (5, 40)),
    "one step": (cell, (3,), (1, 3), (3,)),
    "backwards": (lambda c, x: scan(lambda c, x: (c * x + 1, c * 1), c, x, reverse=True),
                  (3,), (5, 3)),
    "columns": (lambda c, x: scan(lambda c, x: (c * x + 1, c + x), c, x, dim=1), (3,), (3, 5)),
    "turned": (lambda c, x: scan(lambda c, x: (c * x.T + x.T, c + 1), c, x.transpose(0, 2)),
               (3, 4), (3, 4, 5)),
    "handed on": (lambda c, x: scan(lambda c, x: (c, x), c, x), (3,), (4, 3)),
    "exchanged": (lambda c, x: scan(lambda c, x: ((c[1], c[0] * x), c[0] - c[1]), (c, c + 1), x)[1],
                  (3,), (4, 3)),
    "products": (lambda c, x, w: scan(lambda c, x: ((c @ w + x).tanh(), c @ w), c, x),
                 (4, 5), (6, 4, 5), (5, 5)),
    "nested": (nested, (2,), (4, 3, 2)),
    "unused": (some_unused, (3,), (5, 3)),
    "filter": (filtered, (2, 2), (9,)),
    "sums": (lambda c, x: scan(lambda c, x: ((c * x).sum(0) + c, c.amax(0) * x.mean(1)), c, x),
             (3, 3), (4, 3, 3)),
}


@pytest.mark.parametrize("name", SCANS)
def test_scans(name):
    f, *shapes = SCANS[name]
    native(f, *[numbers(*s, seed=n) * 0.5 for n, s in enumerate(shapes)], kinds={"for"})


def test_single_precision():
    for name in ("cell", "wide", "filter", "products"):
        f, *shapes = SCANS[name]
        native(f, *[numbers(*s, seed=n, dtype=pb.float32) * 0.5 for n, s in enumerate(shapes)],
               kinds={"for"}, tol=2e-5)


@pytest.mark.parametrize("width", [3, 40])
def test_whole_numbers_and_flags_are_carried(width):
    native(mixed, numbers(width), pb.tensor(2), pb.arange(width) % 2 == 0, numbers(6, width),
           kinds={"for"})


def test_the_same_operations_give_the_same_bits():
    def f(c, x):
        return scan(lambda c, x: (c * x + x / 3 - c * c * 0.25, c * x - 1), c, x)

    for width in (2, 3, 17):
        args = numbers(width), numbers(50, width, seed=1)
        for a, b in zip(f(*args), pb.compile(f)(*args), strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_maps_branches_and_loops_of_unknown_length():
    x, y = numbers(5, 3), numbers(3, seed=1)
    native(lambda x, y: map(lambda x, y: (x * y).sum() * x, x, y), x, y, kinds={"for"})
    both = lambda x, y: pb.cond(x.sum() > 0, lambda: x.sin() * y, lambda: x - y)
    native(both, x.abs(), y, kinds={"if"})
    native(both, -x.abs(), y, kinds={"if"})
    native(branching, numbers(3), numbers(6, 3, seed=1), kinds={"for", "if"})


def turning(x, w, most=9):
    def step(x, y, n):
        return (x * w + y.sum()).sin(), (y * w).tanh(), n + 1

    return while_loop(lambda x, y, n: (x.abs().sum() > 0.01) & (n < most), step,
                      (x, w * 1.0, pb.tensor(0)))[:2]


@pytest.mark.parametrize("most", [1, 2, 9, 200])
def test_loops_until_something_holds(most):
    """Their gradients keep what is needed of each step in rows that grow."""
    native(lambda x, w: turning(x, w, most), numbers(3), numbers(3, seed=1),
           kinds={"while", "passes"})
    compiled = pb.compile(lambda x: while_loop(lambda x: x.sum() < 0, lambda x: (x + 1,), (x,))[0])
    np.testing.assert_array_equal(compiled(pb.ones(3)).numpy(), np.ones(3))  # no step at all


def second(f):
    return func.grad(lambda *a: sum((g ** 2).sum() for g in [func.grad(f)(*a)]))


DERIVED = {
    "scan, second order": (second(lambda c, x: (cell(c, x, c)[1] ** 2).sum()), {"for"}),
    "while, second order": (second(lambda c, x: (turning(c, x[0])[0] ** 2).sum()),
                            {"while", "passes"}),
    "scan, forward": (lambda c, x: func.jvp(lambda c: cell(c, x, c), (c,), (c * 2,))[1], {"for"}),
    "while, forward": (lambda c, x: func.jvp(lambda c: turning(c, x[0])[0], (c,), (c * 2,))[1],
                       {"while", "passes"}),
    "map, forward": (lambda c, x: func.jvp(lambda x: map(lambda x: x.sin() * c, x), (x,), (x,))[1],
                     {"for"}),
    "batch of scans": (lambda c, x: func.vmap(lambda c: cell(c, x, c)[1])(x), {"for"}),
    "batch of loops": (lambda c, x: func.vmap(lambda x: turning(x, c)[0])(x), {"while"}),
    "gradients of a batch": (lambda c, x: func.vmap(func.grad(
        lambda c: (cell(c, x, c)[1] ** 2).sum()))(x), {"for"}),
}


@pytest.mark.parametrize("name", DERIVED)
def test_derivatives_and_batches(name):
    f, kinds = DERIVED[name]
    c, x = numbers(3) * 0.5, numbers(5, 3, seed=1)
    with graphs_made() as graphs:
        found = pb.compile(f)(c, x)
    wanted = f(c, x)
    pairs = [(wanted, found)] if isinstance(wanted, pb.Tensor) else zip(wanted, found, strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-10, atol=1e-12)
    assert [e for g in graphs for e in g.report["externs"]] == []
    assert {c["kind"] for g in graphs for c in g.report["calls"]} - {"gemm"} <= kinds


def loss_and_slopes(f):
    return func.grad_and_value(lambda *args: (f(*args)[1] ** 2).sum(), (0, 1))


def test_the_loop_gives_what_its_gradient_needs():
    """One loop forward, one backward: what was carried into the steps is not computed again."""
    args = numbers(3) * 0.5, numbers(6, 3, seed=1), numbers(3, seed=2)
    with graphs_made() as graphs:
        pb.compile(loss_and_slopes(cell))(*args)
    assert [c["kind"] for g in graphs for c in g.report["calls"]] == ["for", "for"]
    compiled = pb.compile(lambda *a: (cell(*a)[1] ** 2).sum())
    with graphs_made() as graphs:
        compiled(*[a.requires_grad_() for a in args]).backward()
    assert [c["kind"] for g in graphs for c in g.report["calls"]] == ["for", "for"]


def kept_bytes(f, *args):
    """What a compiled loss with its gradients holds beside its inputs and results."""
    with graphs_made() as graphs:
        pb.compile(loss_and_slopes(f))(*args)
    return sum(g.report["workspace_bytes"] for g in graphs)


@pytest.mark.parametrize("checkpoint", ["sqrt", 7, 1, 500])
def test_checkpoints(checkpoint):
    def f(c, x, how=checkpoint):
        (c, n), ys = scan(lambda c, x: ((c[0] * 0.9 + x.sin(), c[1] + 1), (c[0] ** 2).sum() + x),
                          (c, pb.tensor(0)), x, reverse=True, checkpoint=how)
        return c * n, ys

    native(f, numbers(2), numbers(23, 1, seed=1), kinds={"for"})
    long = numbers(500), numbers(400, 1, seed=1)
    everything = kept_bytes(lambda c, x: f(c, x, "all"), *long)
    assert everything > 400 * 500 * 8
    if checkpoint in ("sqrt", 7):
        assert kept_bytes(f, *long) < everything / 4


def test_prefixes_need_no_loop():
    agrees(lambda x: associative_scan(lambda a, b: a * b, x, 0), numbers(9, 3))


@pytest.fixture
def sized_calls(monkeypatch):
    """Compiled graphs for sizes, in the order in which they are made."""
    made, begin = [], sized.SizedCall.__init__

    def record(self, *args):
        begin(self, *args)
        made.append(self)

    monkeypatch.setattr(sized.SizedCall, "__init__", record)
    return made


@pytest.mark.parametrize("sizes", ["length", "width", "both"])
def test_sizes_that_vary_share_one_library(sizes, sized_calls):
    compiled = pb.compile(cell, dynamic=True)
    for n in (5, 6, 9, 1, 40):
        steps, width = n if sizes != "width" else 4, n + 1 if sizes != "length" else 3
        args = numbers(width), numbers(steps, width, seed=1), numbers(width, seed=2)
        close(results(cell, *args), results(compiled, *args), 1e-12)
    assert any(call.report["library"]["sizes"] >= 3 for call in sized_calls)
    assert not any(call.report["externs"] for call in sized_calls)
    assert any(c["kind"] == "for" for call in sized_calls for c in call.report["calls"])


def test_loops_until_something_holds_for_sizes_that_vary():
    compiled = pb.compile(turning, dynamic=True)
    for n in (3, 4, 40):
        args = numbers(n), numbers(n, seed=1)
        close(results(turning, *args), results(compiled, *args), 1e-12)


def test_an_index_out_of_range_in_a_step():
    def f(c, x, t):
        return scan(lambda c, i: (c + t[i], t[i] * c), c, x)

    native(f, numbers(3), pb.tensor([0, 2, 1, 3]), numbers(4, 3), kinds={"for", "scatter_rows"})
    with pytest.raises(IndexError, match=r"size 4 .*got 4"):
        pb.compile(f)(numbers(3), pb.tensor([0, 4, 1, 3]), numbers(4, 3))

    def g(x, t):
        return while_loop(lambda x, n: x.sum() < 1e9, lambda x, n: (x + t[n], n + 1),
                          (x, pb.tensor(0)))[0]

    with pytest.raises(IndexError, match="size 4"):  # and it ends
        pb.compile(g)(numbers(3), numbers(4, 3).abs())


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer that sends a signal")
def test_a_loop_that_does_not_end_is_interrupted():
    def stop(number, frame):
        raise TimeoutError("enough")

    def until_large(x):
        return while_loop(lambda x: x.sum() < 1e9, lambda x: (x.sin(),), (x,))[0]

    endless, inside = pb.compile(until_large), pb.compile(lambda x: map(until_large, x))
    x, before = numbers(2, 3).abs(), signal.signal(signal.SIGALRM, stop)
    try:
        for f, given in ((endless, x[0]), (inside, x), (endless, x[0].clone().requires_grad_())):
            with pytest.raises(TimeoutError, match="enough"):
                f(given * 1e10)  # made, and no step
                signal.setitimer(signal.ITIMER_REAL, 0.02)
                f(given)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_body_with_a_step_that_c_has_not_stays_in_python():
    def f(c, x):
        return scan(lambda c, x: (c + pb.linalg.eigvalsh(x), c * 1), c, x)

    x = numbers(3, 4, 4)
    graphs = agrees(f, numbers(4), x + x.mT)
    kept = [e["why"] for g in graphs for e in g.report["externs"] if e["target"] == "scan"]
    assert kept and all("has steps that C has not: aten." in why for why in kept)


def test_tensors_that_a_body_holds():
    table = numbers(3, seed=5)

    def f(x):
        return map(lambda x: x * table + pb.tensor([1.0, 2.0, 3.0], dtype=pb.float64), x)

    native(f, numbers(4, 3), kinds={"for"})


def test_large_bodies_use_threads_and_little_memory():
    def f(c, x, w):
        return scan(lambda c, x: ((c @ w + x).tanh(), c.sum(1)), c, x)

    native(f, numbers(64, 200), numbers(3, 64, 200, seed=1), numbers(200, 200, seed=2) * 0.05,
           kinds={"for"}, tol=1e-10)
