"""Attention over parts is that of each part: in C, by NumPy, with NaN, and in all transforms."""

import numpy as np
import pytest

import pullback as torch
from pullback import func
from pullback.compile import ragged_loops
from pullback.fx.experimental.proxy_tensor import make_fx
from pullback.nn import functional as F
from pullback.ops import ragged_attention
from tests.helpers.nested import checks

LENGTHS = [3, 0, 21, 40, 1]  # with and without whole vectors, tiles and blocks of queries
OTHERS = [5, 2, 0, 300, 17]  # and of keys
SPECIAL = [np.nan, np.inf, -np.inf]


@pytest.fixture
def library(monkeypatch):
    """Even little work is done in C, by three threads."""
    monkeypatch.setattr(ragged_loops._library, "spent", 1.0)  # enough work: it is built
    monkeypatch.setattr(ragged_loops, "_ALONE", 64)
    monkeypatch.setattr(ragged_attention, "LARGE", 0)
    if ragged_loops.library(np.dtype(np.float64)) is None:
        pytest.skip("no compiler")
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def no_library(monkeypatch):
    monkeypatch.setattr(ragged_loops, "library", lambda dtype: None)
    monkeypatch.setattr(ragged_attention, "LARGE", 0)


def offsets(lengths):
    return np.concatenate([[0], np.cumsum(lengths)])


def arrays(lengths, keys, heads, width, value_width, dtype):
    rng = np.random.default_rng(0)
    sizes = ((sum(lengths), width), (sum(keys), width), (sum(keys), value_width),
             (sum(lengths), value_width))
    return [rng.standard_normal((n, heads, w)).astype(dtype) for n, w in sizes]


def kernel(given, lengths, keys, is_causal, scale):
    """The output, the logarithms of the sums, and the gradients, of arrays."""
    query, key, value, grad = given
    rest = (offsets(lengths), offsets(keys), max(lengths), max(keys), is_causal, scale)
    out, total = ragged_attention._ragged_attention.run(np, query, key, value, *rest)
    return out, total, *ragged_attention._ragged_attention_backward.run(
        np, grad, query, key, value, out, total, *rest)


def reference(given, lengths, keys, is_causal, scale):
    """The same one query and head at a time, in float64; it sees no more keys than there are."""
    query, key, value, grad = (a.astype("f8") for a in given)
    out, total = np.zeros(grad.shape), np.zeros(query.shape[:2])
    dq, dk, dv = (np.zeros(a.shape) for a in (query, key, value))
    starts, others = offsets(lengths), offsets(keys)
    for part in range(len(lengths)):
        for i in range(lengths[part]):
            seen = min(i + 1, keys[part]) if is_causal else keys[part]
            at, to = starts[part] + i, slice(others[part], others[part] + seen)
            for h in range(query.shape[1] if seen else 0):
                q, k, v, g = query[at, h], key[to, h], value[to, h], grad[at, h]
                scores = (k * q).sum(1) * scale
                high = scores.max()
                powers = np.exp(scores - (0 if high == -np.inf else high))
                weights = powers / (powers.sum() or 1)
                out[at, h] = (weights[:, None] * v).sum(0)
                total[at, h] = high + np.log(powers.sum()) if powers.sum() != 0 else 0
                slopes = (v * g).sum(1)
                slopes = weights * (slopes - (weights * slopes).sum()) * scale
                dq[at, h] = (slopes[:, None] * k).sum(0)
                dk[to, h] += slopes[:, None] * q
                dv[to, h] += weights[:, None] * g
    return out, total, dq, dk, dv


def compare(given, lengths, keys, is_causal, scale=0.4):
    with np.errstate(all="ignore"):
        found = kernel(given, lengths, keys, is_causal, scale)
        wanted = reference(given, lengths, keys, is_causal, scale)
    tolerance = 1e-12 if given[0].dtype == np.float64 else 2e-5
    for ours, theirs in zip(found, wanted):
        assert ours.dtype == given[0].dtype
        np.testing.assert_allclose(ours, theirs, tolerance, tolerance * 10)


CASES = [(LENGTHS, LENGTHS, 2, 16, 16), (LENGTHS, OTHERS, 1, 7, 19), (OTHERS, LENGTHS, 1, 1, 1),
         ([300], [300], 1, 8, 8), ([0, 0], [0, 3], 2, 4, 4)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_in_c(library, dtype, is_causal, case):
    lengths, keys, *sizes = case
    compare(arrays(lengths, keys, *sizes, dtype), lengths, keys, is_causal)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("is_causal", [False, True])
def test_by_numpy(no_library, is_causal, case):
    lengths, keys, *sizes = case
    compare(arrays(lengths, keys, *sizes, "f8"), lengths, keys, is_causal)


@pytest.mark.parametrize("how", ["library", "no_library"])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("number", SPECIAL)
@pytest.mark.parametrize("which", [0, 1, 2, 3], ids=["query", "key", "value", "grad"])
def test_what_is_no_number_stays_where_it_is_seen(request, how, is_causal, number, which):
    request.getfixturevalue(how)
    given = arrays([9, 12, 3], [9, 12, 3], 2, 4, 4, "f8")
    given[which][14, 1, 2] = number  # of the second part
    given[0][14, 1, :2] = 0  # (the sum of a product with infinity has one sign)
    with np.errstate(all="ignore"):
        found = kernel(given, [9, 12, 3], [9, 12, 3], is_causal, 0.5)
        wanted = reference(given, [9, 12, 3], [9, 12, 3], is_causal, 0.5)
    for ours, theirs in zip(found, wanted):
        if which == 3:  # an infinite gradient meets the output, or the values: inf or NaN
            ours, theirs = (np.where(np.isfinite(a), a, np.nan) for a in (ours, theirs))
        np.testing.assert_allclose(ours, theirs, 1e-10, 1e-10, equal_nan=True)


@pytest.mark.parametrize("how", ["library", "no_library"])
def test_a_query_that_sees_nothing_gives_zeros(request, how):
    request.getfixturevalue(how)
    query, key, value, grad = arrays([2, 3], [2, 3], 1, 4, 4, "f8")
    query[2] = 1
    key[2:] = -np.inf
    query[3:] = 1
    with np.errstate(all="ignore"):
        out, total, *grads = kernel((query, key, value, grad), [2, 3], [2, 3], False, 0.5)
    assert np.isfinite(out[:2]).all() and not out[2:].any() and not total[2:].any()
    assert np.isfinite(grads[0][:2]).all() and not grads[2][2:].any()


def test_memory_in_any_order(library):
    for turned in (lambda a: np.asfortranarray(a), lambda a: np.repeat(a, 2, 1)[:, ::2],
                   lambda a: np.ascontiguousarray(a[::-1])[::-1]):
        compare([turned(a) for a in arrays([4, 9], [4, 9], 2, 5, 5, "f8")], [4, 9], [4, 9], True)


def nested(lengths, shape=(2, 8), grad=True):
    rng = np.random.default_rng(1)
    parts = [torch.from_numpy(rng.standard_normal((shape[0], n, shape[1]))) for n in lengths]
    return [p.requires_grad_(grad) for p in parts]


def build(parts):
    return torch.nested.as_nested_tensor(
        [p.transpose(0, 1) for p in parts], layout=torch.jagged).transpose(1, 2)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("is_causal", [False, True])
def test_derivatives_of_large_parts(library, is_causal, compiled):
    parts = nested([60, 0, 9, 33])
    attend = lambda x: F.scaled_dot_product_attention(x, x.sin(), x.cos(), is_causal=is_causal)
    ours = checks.listed((torch.compile(attend) if compiled else attend)(build(parts)))
    theirs = [attend(p) for p in parts]
    checks.same(ours, theirs)
    total = lambda results: sum([(r * r).sum() for r in results])
    first = [torch.autograd.grad(total(r), parts, create_graph=True) for r in (ours, theirs)]
    checks.close(*first)
    checks.close(*[torch.autograd.grad(total(g), parts) for g in first])


def test_one_program_of_one_step_serves_new_lengths():
    attend = torch.compile(lambda x: F.scaled_dot_product_attention(x, x, x), fullgraph=True)
    for lengths in ([5, 3], [2, 9], [3, 0], [70, 8]):
        parts = nested(lengths, grad=False)
        checks.check(attend(build(parts)), [F.scaled_dot_product_attention(p, p, p) for p in parts])
    assert len(attend.recompiles) <= 1
    attend = lambda q: F.scaled_dot_product_attention(build([q]), build([q]), build([q])).values()
    graph = make_fx(attend, tracing_mode="fake")(nested([4], grad=False)[0])
    steps = [str(n.target) for n in graph.graph.nodes if n.op == "call_function"]
    assert steps.count("aten._ragged_attention.default") == 1
    assert not any("softmax" in s or "matmul" in s or "bmm" in s for s in steps)


def test_lengths_that_a_capture_does_not_know():
    def attend(values, offsets):
        x = torch.nested.nested_tensor_from_jagged(values, offsets).transpose(1, 2)
        return F.scaled_dot_product_attention(x, x, x, is_causal=True).values()

    values = torch.from_numpy(arrays([7], [7], 2, 3, 3, "f8")[0]).requires_grad_()
    compiled = torch.compile(attend, fullgraph=True)
    twice = lambda f, at: torch.autograd.functional.hvp(
        lambda v: f(v, at).square().sum(), values, values.detach().sin())[1]
    for places in ([0, 2, 7], [0, 6, 7]):
        at = torch.tensor(places)
        assert torch.allclose(compiled(values, at), attend(values, at))
        assert torch.allclose(twice(compiled, at), twice(attend, at))
    assert not compiled.recompiles


def test_examples_with_offsets_of_their_own():
    query, key, value = [torch.from_numpy(a) for a in arrays([7], [7], 2, 3, 4, "f8")[:3]]
    own = torch.tensor([[0, 3, 7], [0, 5, 7]])
    call = lambda q, o: torch.ops.aten._ragged_attention(q, key, value, o, o, 5, 5, True)[0]
    found = func.vmap(call, (None, 0))(query, own)
    for k in range(2):
        assert torch.allclose(found[k], call(query, own[k]))
    pushed = lambda q, o: func.jvp(lambda q: call(q, o), (q,), (q.sin(),))[1]
    found = func.vmap(pushed, (None, 0))(query, own)  # padded: the offsets are no numbers
    twice = lambda q, o: func.grad(lambda q: func.grad(lambda q: call(q, o).square().sum())(
        q).square().sum())(q)
    second = func.vmap(twice, (None, 0))(query, own)
    for k in range(2):
        assert torch.allclose(found[k], pushed(query, own[k]))
        assert torch.allclose(second[k], twice(query, own[k]))


def test_half_precision_and_autocast():
    x = build(nested([6, 11], grad=False))
    want = F.scaled_dot_product_attention(x, x, x).values()
    for dtype in (torch.float16, torch.bfloat16):
        half = x.to(dtype).detach().requires_grad_()
        out = F.scaled_dot_product_attention(half, half, half)
        assert out.dtype is dtype and torch.allclose(out.values().double(), want, atol=0.02)
        grad, = torch.autograd.grad(out.values().sum(), half)
        assert grad.dtype is dtype
    with torch.autocast("cpu", torch.bfloat16):
        single = x.float()
        assert F.scaled_dot_product_attention(single, single, single).dtype is torch.bfloat16


@pytest.mark.parametrize("places, longest, said", [
    ([0, 9, 7], 9, "length -2"), ([0, 3, 8], 5, "go from 0"), ([1, 3, 7], 5, "go from 0"),
    ([0, 1, 7], 5, "length 1 or 6"), ([], 5, "go from 0")])
def test_offsets_that_do_not_fit(places, longest, said):
    x = torch.zeros(7, 1, 2)
    at = torch.tensor(places, dtype=torch.int64)
    with pytest.raises(IndexError, match=said):
        torch.ops.aten._ragged_attention(x, x, x, at, at, longest, longest)


@pytest.mark.parametrize("shapes, said", [
    (((7, 2), (7, 2), (7, 2)), "as many heads"),
    (((7, 2, 3), (7, 1, 3), (7, 1, 3)), "as many heads"),
    (((7, 1, 3), (7, 1, 2), (7, 1, 2)), "as wide"),
    (((7, 1, 3), (7, 1, 3), (6, 1, 3)), "as wide"),
])
def test_shapes_that_do_not_fit(shapes, said):
    at = torch.tensor([0, 7])
    with pytest.raises(RuntimeError, match=said):
        torch.ops.aten._ragged_attention(*[torch.zeros(*s) for s in shapes], at, at, 7, 7)
