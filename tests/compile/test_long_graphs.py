"""Graphs of any length: no pass of the compiler recurses over them or looks at all pairs."""

import random
import sys
import warnings

import pytest

import pullback as torch
from pullback.compile import backend, memory
from pullback.compile.errors import CompileWarning, GraphTooLarge
from pullback.compile.extent import Domain
from pullback.compile.lower import lower
from pullback.compile.memory import Buffer, packed
from pullback.compile.number import Formula
from pullback.compile.schedule import schedule
from pullback.compile.unit import make_unit
from pullback.fx.experimental.proxy_tensor import make_fx
from pullback.symbolic.env import ShapeEnv

MOST_INLINE = 260


def chain(steps):
    def f(x):
        for _ in range(steps):
            x = x * 0.999 + 0.001
        return x.sum()
    return f


def unit_of(f, *inputs):
    lowered = lower(make_fx(f)(*inputs))
    items = schedule(lowered)
    return items, make_unit(lowered, items, "graph", 32)


def depth():
    frame, n = sys._getframe(), 0
    while frame is not None:
        frame, n = frame.f_back, n + 1
    return n


@pytest.fixture
def shallow():
    """Little room on Python's stack, set by a function."""
    limit = sys.getrecursionlimit()
    yield lambda: sys.setrecursionlimit(depth() + 90)
    sys.setrecursionlimit(limit)


def calls_of(f):
    """How many functions of Python run."""
    count = 0

    def saw(frame, event, arg):
        nonlocal count
        count += event == "call"

    sys.setprofile(saw)
    try:
        f()
    finally:
        sys.setprofile(None)
    return count


def test_chain_is_scheduled_and_written_with_little_stack(shallow):
    graph = make_fx(chain(700))(torch.randn(8))
    lowered = lower(graph)
    shallow()
    items = schedule(lowered)
    unit = make_unit(lowered, items, "graph", 32)
    assert max(len(k.inlined) for k in items.items) <= MOST_INLINE + 1
    assert len(unit.report["kernels"]) == len(items.items) > 4


def test_chain_of_gathers_with_little_stack(shallow):
    def follow(x, table, i):
        for _ in range(150):
            i = table[i]
        for _ in range(20):
            i = i[i]
        return x[i]
    graph = make_fx(follow)(torch.randn(8), torch.arange(8), torch.arange(8))
    lowered = lower(graph)
    shallow()
    items = schedule(lowered)
    assert make_unit(lowered, items, "graph", 32).source


@pytest.mark.parametrize("f", [
    lambda n: lambda x: sum(x * float(i) for i in range(n)).sum(),
    lambda n: lambda x: torch.stack([x * float(i) for i in range(n)]),
    lambda n: lambda x: [(x * float(i)).sum() for i in range(n)],
    lambda n: chain(n),
], ids=["sum", "stack", "sums", "chain"])
def test_work_grows_with_the_length(f):
    graphs = [make_fx(f(n))(torch.randn(8)) for n in (300, 600)]

    def work(graph):
        lowered = lower(graph)
        make_unit(lowered, schedule(lowered), "graph", 32)

    work(graphs[0])
    once, twice = (calls_of(lambda g=g: work(g)) for g in graphs)
    assert twice < 2.6 * once


def test_many_arrays_are_added_up_in_parts():
    def total(*xs):
        return sum(xs[1:], xs[0])
    items, _ = unit_of(total, *[torch.randn(8) for _ in range(300)])
    assert max(len(k.loads) for k in items.items) <= 65


@pytest.mark.parametrize("fuse", [True, False])
def test_compiled_chain_agrees_with_eager(fuse):
    x = torch.randn(8, requires_grad=True)
    f = chain(400)
    run = torch.compile(f, options={"fuse_backward": fuse})
    run(x).backward()
    grad, x.grad = x.grad, None
    f(x).backward()
    assert torch.allclose(run(x), f(x)) and torch.allclose(grad, x.grad)


def test_long_stages_are_calls_of_short_ones():
    def steps(h, w):
        for _ in range(90):
            h = torch.tanh(h @ w)
        return h
    h, w = torch.randn(3, 3), torch.randn(3, 3) * 0.3
    run = torch.compile(steps)
    assert torch.allclose(run(h, w), steps(h, w), atol=1e-6)
    _, unit = unit_of(steps, h, w)
    bodies = unit.source.split("PB_AS_IS void")[1:]
    assert len(bodies) == 3 and all(len(b.splitlines()) < 80 for b in bodies)


def test_functions_that_kernels_repeat_are_written_once():
    def steps(x):
        for _ in range(300):
            x = torch.sin(x)
        return x
    _, unit = unit_of(steps, torch.randn(8))
    assert "#define sin_f8 pb_sin_f8" in unit.source
    x = torch.randn(8)
    assert torch.allclose(torch.compile(steps)(x), steps(x), atol=1e-6)


@pytest.mark.parametrize("size", [8, ()])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bool])
def test_indirect_reads_that_kernels_repeat_are_written_once(dtype, size):
    def follow(x, table, i):
        for _ in range(60):
            i = table[i]
        return [x[i.roll(k) if size else i] for k in range(50)]
    x, table = (torch.randn(8) > 0).to(dtype), torch.tensor([3, 0, -1, 1, 7, 2, 4, 6])
    i = torch.arange(8) if size else torch.tensor(5)
    _, unit = unit_of(follow, x, table, i)
    letter = {torch.float32: "f", torch.float64: "d", torch.bool: "b"}[dtype]
    names = ["#define bounded", "#define gather_l", f"#define gather_{letter}"]
    assert [name in unit.source for name in names] == [bool(size)] * 3
    for a, b in zip(torch.compile(follow)(x, table, i), follow(x, table, i)):
        assert torch.equal(a, b)
    with pytest.raises(IndexError):
        torch.compile(follow)(x, table, i + 20)


def test_a_chain_of_reads_at_themselves_is_short():
    def follow(i):
        for _ in range(20):
            i = i[i]
        return i
    i = torch.tensor([3, 0, 5, 1, 7, 2, 4, 6])
    _, unit = unit_of(follow, i)
    assert len(unit.source) < 60_000
    assert torch.equal(torch.compile(follow)(i), follow(i))


def test_values_that_must_be_stored_are_found_in_any_number():
    def turns(x):
        for _ in range(80):
            x = (x.t() + 1.0).reshape(4, 6)
        return x
    x = torch.randn(4, 6)
    _, unit = unit_of(turns, x)
    assert unit.report["kernels"]
    assert torch.allclose(torch.compile(turns)(x), turns(x))


@pytest.mark.parametrize("limit", ["MOST_NODES", "MOST_TEXT"])
def test_too_large_graphs_run_on_numpy_with_a_warning(monkeypatch, limit):
    monkeypatch.setattr(backend, limit, 100)
    x = torch.randn(5, requires_grad=True)
    f = chain(70 if limit == "MOST_NODES" else 71)
    run = torch.compile(f)
    with pytest.warns(CompileWarning, match=r"too large for native code(.|\n)*control\.scan"):
        run(x).backward()
    grad, x.grad = x.grad, None
    f(x).backward()
    assert torch.allclose(grad, x.grad)
    assert issubclass(GraphTooLarge, torch.errors.GraphNotSupported)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(x)


def test_formulas_of_many_kernels_for_any_sizes():
    def grown(x):
        for _ in range(110):
            x = torch.cat([x, x[:1]])
        return x
    run = torch.compile(grown, dynamic=True)
    for n in (9, 14):
        x = torch.randn(n)
        assert torch.equal(run(x), grown(x))


def test_long_formulas_have_names():
    domain = Domain(ShapeEnv(), {"s0": 5})
    total, size = 0.0, Formula(domain, "s0", 5)
    for k in range(400):
        total = total + size * (k + 0.5)
    text = domain.program(repr(total))
    assert len(text) < 20_000 and max(map(len, domain.names)) < 500
    assert eval(text, {})(5) == sum(5 * (k + 0.5) for k in range(400))


def overlapping(buffers):
    for n, a in enumerate(buffers):
        for b in buffers[:n]:
            if a.born <= b.dies and b.born <= a.dies and (
                    a.at < b.at + b.bytes and b.at < a.at + a.bytes):
                return a, b
    return None


def test_many_buffers_are_packed_as_they_come(monkeypatch):
    draw = random.Random(0)
    spans = [(draw.randrange(100), draw.choice((64, 100, 256, 1000))) for _ in range(300)]
    buffers = [Buffer("work", size, born=at, dies=at + draw.randrange(9)) for at, size in spans]
    largest_first = packed(buffers)
    monkeypatch.setattr(memory, "_MANY", 0)
    size = packed(buffers)
    assert overlapping(buffers) is None and all(b.at % 64 == 0 for b in buffers)
    assert max(b.at + b.bytes for b in buffers) <= size <= 1.5 * largest_first
