"""NaN, infinities and numbers at the ends of a dtype's range; values are those of PyTorch 2.13.

Each in eager mode, under vmap and compiled.
"""

import math

import pytest

import pullback as torch

inf, nan = math.inf, math.nan
HALVES = [torch.float16, torch.bfloat16]


def _everywhere(function, *given):
    """Results of a function in eager mode, of two examples under vmap, and compiled."""
    yield function(*given)
    twice = torch.vmap(function)(*[torch.stack([t, t]) for t in given])
    yield type(twice)(t[1] for t in twice) if type(twice) is tuple else (
        twice[1] if isinstance(twice, torch.Tensor) else [t[1] for t in twice])
    yield torch.compile(function)(*given)


def _same(found, wanted) -> bool:
    return all(a == b or a != a and b != b for a, b in zip(found, wanted, strict=True))


@pytest.mark.parametrize("dtype", [*HALVES, torch.float32])
def test_nan_is_the_largest_in_order(dtype):
    x = torch.tensor([3.0, nan, 1.0, -inf, 2.0, nan, inf], dtype=dtype)
    for values, places in _everywhere(torch.sort, x):
        assert values.dtype is dtype and places.tolist() == [3, 2, 4, 0, 6, 1, 5]
        assert _same(values.tolist(), [-inf, 1, 2, 3, inf, nan, nan])
    for places in _everywhere(lambda t: t.argsort(descending=True), x):
        assert places.tolist() == [1, 5, 6, 0, 4, 2, 3]
    for values, places in _everywhere(lambda t: t.topk(3), x):
        assert places.tolist() == [1, 5, 6] and _same(values.tolist(), [nan, nan, inf])
    for value, place in _everywhere(lambda t: t.kthvalue(2), x):
        assert (value.item(), place.item()) == (1, 2)
    assert _same(torch.msort(x).tolist(), [-inf, 1, 2, 3, inf, nan, nan])
    values, back = torch.unique(x, return_inverse=True)
    assert values.dtype is dtype and _same(values.tolist(), [-inf, 1, 2, 3, inf, nan, nan])
    assert back.tolist()[:1] == [3]
    table = torch.tensor([1.0, 2.0, 3.0], dtype=dtype)
    assert torch.searchsorted(table, x).tolist() == [2, 3, 0, 0, 1, 3, 3]
    assert torch.isnan(x.median()) and torch.isnan(x.amax()) and x.argmax().item() == 1


@pytest.mark.parametrize("dtype", HALVES)
def test_infinities_become_the_largest_numbers(dtype):
    x = torch.tensor([1.0, nan, inf, -inf], dtype=dtype)
    largest = torch.finfo(dtype).max
    for out in _everywhere(torch.nan_to_num, x):
        assert out.dtype is dtype and out.tolist() == [1, 0, largest, -largest]
    for out in _everywhere(lambda t: t.nan_to_num(nan=2.5, posinf=1e39, neginf=-4), x):
        assert out.tolist() == [1, 2.5, inf, -4]


def test_spread_of_large_and_small_numbers():
    """Squares beyond single precision do not show in the root."""
    large = torch.tensor([1e20, -1e20, 3e19])
    for out in _everywhere(torch.std, large):
        assert out.dtype is torch.float32 and math.isclose(out.item(), 1.0148892e20, rel_tol=1e-6)
    for out, mean in _everywhere(lambda t: torch.std_mean(t, 0), large):
        assert math.isclose(out.item(), 1.0148892e20, rel_tol=1e-6)
        assert math.isclose(mean.item(), 1e19, rel_tol=1e-6)
    for out in _everywhere(lambda t: t.std(0, keepdim=True), large * 1e-25 * 1e-25):
        assert math.isclose(out.item(), 1.0148892e-30, rel_tol=1e-5)
    assert torch.var(large).item() == inf
    assert torch.std(torch.tensor([3e38, 3e38])).item() == 0
    x = large.clone().requires_grad_()
    torch.std(x).backward()
    assert torch.allclose(x.grad, torch.tensor([0.4434, -0.5419, 0.0985]), atol=1e-4)


def test_trace_of_small_integers():
    for dtype in (torch.uint8, torch.int8, torch.int32):
        for out in _everywhere(torch.trace, torch.ones(3, 3, dtype=dtype) * 100):
            assert out.dtype is torch.int64 and out.item() == 300


def test_log_of_gamma_at_its_ends():
    x = torch.tensor([-inf, inf, 0.0, -1.0, nan, 0.5])
    for out in _everywhere(torch.lgamma, x):
        assert _same([round(v, 5) if v == v else v for v in out.tolist()],
                     [inf, inf, inf, inf, nan, 0.57236])


@pytest.mark.parametrize("dtype, ulp", [
    (torch.float32, 2**-23), (torch.float16, 2**-10), (torch.bfloat16, 2**-7)])
def test_neighbours_promote_as_they_do_outside_of_vmap(dtype, ulp):
    x = torch.tensor([1.0, 1.5], dtype=dtype)
    for out in _everywhere(torch.nextafter, x, torch.tensor(3.0, dtype=torch.float64)):
        assert out.dtype is dtype and out.tolist() == [1 + ulp, 1.5 + ulp]


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_logaddexp_is_on_one_branch(dtype):
    x = torch.tensor([0.3 + 4j, -1 - 7j, 2 + 0.1j, -inf + 2j], dtype=dtype)
    y = torch.tensor([0.1 + 8j, 1 + 9j, 2 - 5j, -inf + 2j], dtype=dtype)
    for out in _everywhere(torch.logaddexp, x, y):
        assert torch.allclose(torch.exp(out), torch.exp(x) + torch.exp(y), rtol=1e-4, atol=1e-5)
        assert torch.allclose(out[:3], torch.logaddexp(x, y)[:3], rtol=1e-5)
        assert out[1].imag > 2 * math.pi  # not the principal one


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_topk_takes_the_first_of_equals(dtype):
    """Also where it chooses before it orders."""
    x = torch.arange(100).remainder(3).to(dtype)
    for out, places in _everywhere(lambda t: t.topk(5), x):
        assert out.tolist() == [2] * 5 and places.tolist() == [2, 5, 8, 11, 14]
    for out, places in _everywhere(lambda t: t.topk(5, largest=False), x):
        assert out.tolist() == [0] * 5 and places.tolist() == [0, 3, 6, 9, 12]
    y = torch.arange(100).to(dtype)
    assert y.topk(3)[1].tolist() == [99, 98, 97]


def _incoming(function, x, gradient):
    """The gradient of a function where some gradient comes in: in eager mode, and compiled."""
    def row(t):
        return function(t).reshape(-1)

    for way in (row, torch.compile(row)):
        leaf = torch.tensor(x, requires_grad=True)
        out = way(leaf)
        yield torch.autograd.grad(out, leaf, torch.full(out.shape, gradient))[0].tolist()


@pytest.mark.parametrize("gradient", [inf, nan])
def test_what_is_not_chosen_has_no_part_in_a_gradient(gradient):
    x = [1.0, 2.0, 3.0]
    for name, at in (("min", 0), ("max", 2), ("median", 1), ("nanmedian", 1)):
        wanted = [gradient if i == at else 0.0 for i in range(3)]
        for found in _incoming(getattr(torch, name), x, gradient):
            assert _same(found, wanted), name


def test_acosh_has_the_even_slope_of_its_formula_below_its_domain():
    for found in _incoming(torch.acosh, [-3.0, -0.5, 1.0, 2.0], 1.0):
        assert _same(found[1:3], [nan, inf])
        assert found[0] == pytest.approx(8**-0.5) and found[3] == pytest.approx(3**-0.5)
    near = torch.tensor([1 + 2.0**-40], dtype=torch.float64, requires_grad=True)
    slope, = torch.autograd.grad(torch.acosh(near), near)
    assert slope.item() == pytest.approx(2.0**19.5, rel=1e-11)


@pytest.mark.parametrize("shape", [(5, 4), (2, 2, 5, 4), (2, 2, 2, 4), (3, 3), (2, 1, 3, 5)])
def test_a_mask_of_attention_fits_the_scores(shape):
    """Rows beyond the last query were left out without a word."""
    q, k = torch.ones(2, 2, 3, 2), torch.ones(2, 2, 4, 2)
    with pytest.raises(RuntimeError, match=r"cannot be expanded to scores of shape \[2, 2"):
        torch.nn.functional.scaled_dot_product_attention(q, k, k, attn_mask=torch.zeros(shape))
    for fits in ((3, 4), (1, 4), (2, 1, 3, 1), (2, 2, 1, 4)):
        out = torch.nn.functional.scaled_dot_product_attention(q, k, k, torch.zeros(fits))
        assert out.shape == (2, 2, 3, 2)


def test_counting_distances_of_nan_are_nan():
    x, y = torch.tensor([[1.0, nan], [0.0, 2.0]]), torch.tensor([[1.0, 2.0]])
    for f in (lambda x, y: torch.cdist(x, y, p=0.0),
              lambda x, y: torch.pdist(torch.cat([x, y]), 0.0)[1:]):
        for found in _everywhere(f, x, y):
            assert found.reshape(-1).isnan().tolist()[0] and not found.reshape(-1)[1].isnan()


def test_weights_of_an_infinite_score_are_nan():
    """As those of softmax, in the fused kernel and its gradients, too."""
    q, v = torch.ones(1, 1, 2, 2), torch.ones(1, 1, 3, 2, requires_grad=True)
    k = torch.tensor([[[[1.0, 2.0], [inf, 1.0], [0.5, 0.5]]]])
    f = torch.nn.functional.scaled_dot_product_attention
    for call in (f, torch.compile(f, backend="numpy")):
        out = call(q, k, v)
        assert out.isnan().all() and torch.autograd.grad(out.sum(), v)[0].isnan().all()


def test_padding_of_bags_counts_nothing_beside_infinite_rows():
    table = torch.tensor([[1.0, 2.0], [inf, nan], [3.0, 4.0]], requires_grad=True)
    weights = torch.tensor([[0.5, 2.0, 1.0]], requires_grad=True)

    def bags(table, weights):
        return torch.nn.functional.embedding_bag(
            torch.tensor([[0, 1, 2]]), table, mode="sum", per_sample_weights=weights,
            padding_idx=1)

    for call in (bags, torch.compile(bags, backend="numpy"),
                 lambda t, w: torch.vmap(bags, (None, 0))(t, w[None])[0]):
        found = torch.autograd.grad(call(table, weights).sum(), (table, weights))
        assert found[0].tolist() == [[0.5, 0.5], [0, 0], [1, 1]]
        assert found[1].tolist() == [[3, 0, 7]]


def test_margins_that_hold_have_no_gradient_whatever_comes_in():
    x, y, g = torch.tensor([[0.0, 5.0, 0.5]]), torch.tensor([1]), torch.tensor([inf])
    f = lambda g, x: torch.ops.aten.multi_margin_loss_backward(g, x, y, 1, 1.0, None, 0)
    for found in _everywhere(f, g, x):
        assert found.tolist() == [[0.0, 0.0, 0.0]]
