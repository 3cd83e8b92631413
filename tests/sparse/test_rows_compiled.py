"""Chains on the entries of a sparse matrix, compiled: one walk over rows, with eager numbers."""

import tracemalloc

import numpy as np
import pytest

import pullback as torch
from pullback.compile import backend

N, WIDTH = 60, 5


def pattern(kind, n=N):
    """Rows and columns of entries."""
    rng = np.random.default_rng(len(kind))
    count = 400
    rows, cols = np.sort(rng.integers(0, n, count)), rng.integers(0, n, count)
    if kind == "gaps":
        rows = np.sort(rng.choice([3, 4, 5, 17, 18, 30, 40, 50, n - 3, n - 2], count))
    elif kind == "twice":
        rows, cols = np.sort(np.repeat(rows[:80], 5)), np.repeat(cols[:80], 5)
    elif kind == "shuffled":
        rows = rng.permutation(rows)
    elif kind == "long":
        rows = np.sort(rng.choice([5, 9], 5000))
        cols = rng.integers(0, n, 5000)
    elif kind == "few":
        rows, cols = np.array([1, 1, 4]), np.array([2, 0, 4])
    return torch.from_numpy(rows), torch.from_numpy(cols)


def pointers(rows, n=N):
    counts = np.bincount(rows.numpy(), minlength=n)
    return torch.from_numpy(np.concatenate([[0], np.cumsum(counts)]))


def softmax(scores, rows, n=N):
    highest = torch.full((n,), -1e30, dtype=scores.dtype).scatter_reduce(
        0, rows, scores.detach(), "amax")
    parts = (scores - highest[rows]).exp()
    return parts / torch.zeros(n, dtype=scores.dtype).index_add(0, rows, parts)[rows]


def attention(rows, cols):
    compressed = bool((rows[1:] >= rows[:-1]).all()) and rows.shape[0] < 5000
    crow = pointers(rows) if compressed else None

    def layer(x, weight, source, target):
        h = x @ weight
        scores = torch.nn.functional.leaky_relu((h @ source)[rows] + (h @ target)[cols], 0.2)
        parts = softmax(scores, rows)
        if crow is None:
            matrix = torch.sparse_coo_tensor(torch.stack([rows, cols]), parts, (N, N))
        else:
            matrix = torch.sparse_csr_tensor(crow, cols, parts, (N, N))
        return matrix @ h

    return layer


def products(rows, cols):
    """Scores are products of rows; the weights are no softmax."""
    crow = pointers(rows)

    def layer(x, weight, source, target):
        q, k = x @ weight, x * source
        zero = torch.sparse_csr_tensor(
            crow, cols, torch.zeros(cols.shape[0], dtype=x.dtype), (N, N))
        scores = torch.sparse.sampled_addmm(zero, q, k.t(), beta=0.0).values()
        some = torch.tanh(scores * 0.3) * scores.sigmoid() + scores.abs().sqrt() * target[0]
        return torch.sparse_csr_tensor(crow, cols, some, (N, N)) @ x

    return layer


def arguments(dtype=torch.float64):
    torch.manual_seed(0)
    shapes = (N, WIDTH), (WIDTH, WIDTH), (WIDTH,), (WIDTH,)
    return [torch.randn(*shape, dtype=dtype, requires_grad=True) for shape in shapes]


def same(f, given, tolerance=1e-9):
    seed = torch.randn(*f(*given).shape, dtype=given[0].dtype)
    eager, g = f(*given), torch.compile(f)
    for _ in range(2):
        found = g(*given)
        torch.testing.assert_close(found, eager, rtol=tolerance, atol=tolerance)
        for a, b in zip(torch.autograd.grad(found, given, seed),
                        torch.autograd.grad(eager, given, seed, retain_graph=True)):
            torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)
    return g


def together(compiled):
    """Kernels over rows, of each part: what they do the work of."""
    return {name: [k["instead"] for k in part.report["kernels"] if "instead" in k]
            for name, part in compiled.parts().items()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["any", "gaps", "twice", "shuffled", "long", "few"])
def test_graph_attention_has_the_numbers_of_eager(kind, dtype):
    tolerance = 1e-3 if dtype is torch.float32 else 1e-9
    g = same(attention(*pattern(kind)), arguments(dtype), tolerance)
    assert any(together(g).values())


@pytest.mark.parametrize("kind", ["any", "gaps", "twice", "few"])
def test_products_with_pointwise_work_between(kind):
    f = products(*pattern(kind))
    given = arguments()
    g = same(f, given)
    assert any(together(g).values())


@pytest.mark.parametrize("kind", ["any", "twice", "shuffled"])
@pytest.mark.parametrize("ahead", [0, N])
def test_messages_that_are_added_up_are_no_array(monkeypatch, tmp_path, kind, ahead):
    """Rows that are looked up, weighted and added to rows: a product.  Integers below zero count
    from the end."""
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    seen = schedules(monkeypatch)
    rows, cols = pattern(kind)
    from_end = cols - ahead

    def f(x, weight, source, target):
        h = x @ weight
        parts = softmax((h @ source)[rows] + (h @ target)[cols], rows)
        out = torch.zeros(N, WIDTH, dtype=x.dtype).index_add(
            0, rows, parts.unsqueeze(1) * h[from_end])
        return torch.index_put(out + 1, (rows - ahead,), x[from_end], True) * 2

    same(f, arguments())
    large = rows.shape[0] * WIDTH
    for plan in seen:
        assert all(value.numel < large for value in plan.where if value.kind != "pointwise" or
                   value in plan.stored)
    forward = [item.call.kind for item in seen[0].items if hasattr(item, "call")]
    assert forward.count("spmm") == 2 and forward.count("scatter_rows") == 1


def schedules(monkeypatch):
    """What `compile` makes of the graphs that come."""
    seen = []
    usual = backend.schedule_graph

    def schedule(graph, name):
        seen.append(usual(graph, name))
        return seen[-1]

    monkeypatch.setattr(backend, "schedule_graph", schedule)
    return seen


def steps(plan):
    """How many kernels and calls run if the entries are in order."""
    inside = sum(len(group.items) - len(group.kernels) for group in plan.groups)
    return len(plan.items) - inside


def test_a_step_of_graph_attention_is_two_walks_over_rows(monkeypatch, tmp_path):
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    seen = schedules(monkeypatch)
    layer = attention(*pattern("any"))
    given = arguments(torch.float32)
    given[0] = given[0].detach()
    g = torch.compile(lambda *given: (layer(*given) ** 2).mean())
    torch.autograd.grad(g(*given), given[1:])
    (plan,) = seen
    forward, backward = plan.groups
    assert len(forward.kernels) == len(backward.kernels) == 1
    assert [item.call.kind for item in forward.items if hasattr(item, "call")] == [
        "scatter_extreme", "scatter_rows", "spmm"]
    assert [item.call.kind for item in backward.items if hasattr(item, "call")] == [
        "sddmm", "scatter_rows", "scatter_rows"]
    kinds = [getattr(item, "call", None) and item.call.kind for item in plan.items]
    assert "python" not in kinds
    # beside the two: products of matrices (2) and with the transpose, sums by columns, the loss
    # (2), terms of nodes and their gradients (3)
    assert steps(plan) == 11


def test_what_is_not_read_outside_is_not_stored(monkeypatch, tmp_path):
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    seen = schedules(monkeypatch)
    layer = attention(*pattern("any"))
    with torch.no_grad():
        torch.compile(layer)(*arguments(torch.float32))
    (plan,) = seen
    (group,) = plan.groups
    (kernel,) = group.kernels
    assert [root.value.name for root in kernel.roots if root.how == "store"] == ["div"]


def test_softmax_of_a_sparse_matrix_is_one_walk():
    rows, cols = pattern("any")
    crow, values = pointers(rows), torch.randn(rows.shape[0], dtype=torch.float64,
                                               requires_grad=True)
    seed = torch.randn(rows.shape[0], dtype=torch.float64)

    def f(values):
        matrix = torch.sparse_csr_tensor(crow, cols, values * 2, (N, N))
        return torch.sparse.softmax(matrix, 1).values()

    g = torch.compile(f)
    found, wanted = g(values), f(values)
    torch.testing.assert_close(found, wanted)
    for a, b in zip(torch.autograd.grad(found, values, seed),
                    torch.autograd.grad(wanted, values, seed)):
        torch.testing.assert_close(a, b)
    assert any(together(g).values())


def test_a_number_that_is_none_stays_in_its_row():
    rows, cols = pattern("any")
    x, weight, source, target = arguments()
    bad = x.detach().clone()
    bad[7] = float("nan")
    layer = attention(rows, cols)
    found, wanted = torch.compile(layer)(bad, weight, source, target), layer(
        bad, weight, source, target)
    assert torch.equal(found.isnan(), wanted.isnan()) and not bool(found.isnan().all())


def test_second_order_of_attention():
    layer = attention(*pattern("any"))
    given = arguments()

    def slope(*given):
        (g,) = torch.autograd.grad((layer(*given) ** 2).sum(), given[1], create_graph=True)
        return g

    eager = torch.autograd.grad(slope(*given).square().sum(), given[1:])
    g = torch.compile(slope)
    found = torch.autograd.grad(g(*given).square().sum(), given[1:])
    for a, b in zip(found, eager):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-8)


def test_any_number_of_entries():
    """Calls whose patterns differ take one program for all sizes."""

    @torch.compile(dynamic=True)
    def g(scores, rows, cols, h):
        parts = softmax(scores, rows)
        return torch.zeros(N, WIDTH, dtype=h.dtype) + torch.ops.aten._spmm(rows, cols, parts, h, N)

    h = torch.randn(N, WIDTH, dtype=torch.float64)
    for count in (7, 90, 400, 1, 3000):
        rng = np.random.default_rng(count)
        rows = torch.from_numpy(np.sort(rng.integers(0, N, count)))
        cols = torch.from_numpy(rng.integers(0, N, count))
        scores = torch.from_numpy(rng.standard_normal(count))
        wanted = torch.zeros(N, N, dtype=h.dtype).index_put(
            (rows, cols), softmax(scores, rows), True) @ h
        torch.testing.assert_close(g(scores, rows, cols, h), wanted)


def test_rows_without_entries():
    """All of them, too."""
    none = torch.zeros(0, dtype=torch.int64)
    for rows, cols in (pattern("few"), (none, none)):
        given = arguments()
        layer = attention(rows, cols)
        found, wanted = torch.compile(layer)(*given), layer(*given)
        torch.testing.assert_close(found, wanted)
        empty = torch.ones(N, dtype=torch.bool).index_fill(0, rows, False)
        assert not bool(found[empty].any())
        seed = torch.randn(N, WIDTH, dtype=torch.float64)
        for a, b in zip(torch.autograd.grad(found, given, seed),
                        torch.autograd.grad(wanted, given, seed)):
            torch.testing.assert_close(a, b)


def test_entries_outside_are_refused():
    g = torch.compile(lambda scores, rows, cols, h: torch.ops.aten._spmm(
        rows, cols, softmax(scores, rows), h, N))
    rows, cols = pattern("any")
    scores, h = torch.randn(rows.shape[0]), torch.randn(N, WIDTH)
    g(scores, rows, cols, h)
    for at, wrong in ((0, -1), (0, N), (1, N + 3), (1, -2)):
        places = [rows.clone(), cols.clone()]
        places[at][17] = wrong
        with pytest.raises((IndexError, RuntimeError), match=r"out of range|outside"):
            g(scores, *places, h)
    torch.testing.assert_close(g(scores, rows, cols, h), torch.ops.aten._spmm(
        rows, cols, softmax(scores, rows), h, N))


def test_indices_that_are_not_the_same_after_all():
    """That a product has the rows of a softmax is supposed, and looked at in each call."""
    g = torch.compile(lambda scores, rows, others, cols, h: torch.ops.aten._spmm(
        others, cols, softmax(scores, rows), h, N))
    rows, cols = pattern("any")
    scores = torch.randn(rows.shape[0], dtype=torch.float64)
    h = torch.randn(N, WIDTH, dtype=torch.float64)
    for others in (rows, rows.clone(), (rows + 1) % N, rows.flip(0)):
        torch.testing.assert_close(g(scores, rows, others, cols, h), torch.ops.aten._spmm(
            others, cols, softmax(scores, rows), h, N))


def test_memory_is_that_of_the_entries():
    """A matrix of 40,000 x 40,000 with 200,000 entries: a dense one would take 6.4 GB."""
    n, count, width = 40_000, 200_000, 8
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(np.sort(rng.integers(0, n, count)))
    cols = torch.from_numpy(rng.integers(0, n, count))
    h, s = torch.randn(n, width), torch.randn(n, requires_grad=True)

    def f(s, h):
        parts = softmax(torch.nn.functional.leaky_relu(s[rows] + s[cols]), rows, n)
        return torch.ops.aten._spmm(rows, cols, parts, h, n).sum()

    g = torch.compile(f)
    torch.autograd.grad(g(s, h), s)
    (part, *_) = g.parts().values()
    whole = sum(part.report[k] for k in ("workspace_bytes", "output_bytes"))
    assert whole < 12 * 4 * (count + n * width)
    tracemalloc.start()
    torch.autograd.grad(g(s, h), s)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 16 * 4 * (count + n * width)
