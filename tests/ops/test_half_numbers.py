"""Half precision beside Python numbers and 0-d tensors, and numbers that a dtype cannot hold.

Operands are rounded to the common dtype first, as PyTorch rounds them; the second factor and the
divisor keep their digits. The values are those of PyTorch 2.13.
"""

import pytest

import pullback as torch


def _x(dtype):
    return torch.tensor([0.1, 1 / 3, 0.0, 2.0], dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("number", [0.1, 1 / 3, 2.0004])
def test_comparisons_round_the_number(dtype, number):
    x, rounded = _x(dtype), torch.tensor(number, dtype=dtype)
    for other in (number, torch.tensor(number), torch.tensor(number, dtype=torch.float64)):
        assert (x == other).tolist() == [v == rounded.item() for v in x.tolist()]
        assert (x < other).tolist() == [v < rounded.item() for v in x.tolist()]
        assert (x >= other).tolist() == [v >= rounded.item() for v in x.tolist()]
    assert (x == number).any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sums_and_powers_round_and_factors_do_not(dtype):
    x, number = _x(dtype), 1 / 3
    rounded = torch.tensor(number, dtype=dtype).item()
    wide = x.to(torch.float32)
    assert torch.equal(x - number, (wide - rounded).to(dtype))
    assert (x - number)[1] == 0
    assert torch.equal(x + number, (wide + rounded).to(dtype))
    assert torch.equal(x ** number, (wide ** rounded).to(dtype))
    assert torch.equal(x.fmod(0.1), wide.fmod(torch.tensor(0.1, dtype=dtype).item()).to(dtype))
    assert torch.equal(torch.add(x, x, alpha=0.1),
                       (wide + torch.tensor(0.1, dtype=dtype).item() * wide).to(dtype))
    many = torch.linspace(-3, 3, 200).to(dtype)
    assert torch.equal(many * number, (many.to(torch.float32) * number).to(dtype))
    assert torch.equal(many / number, (many.to(torch.float32) / number).to(dtype))
    assert not torch.equal(many * number, (many.to(torch.float32) * rounded).to(dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_captured_functions_round_the_same(dtype):
    x = _x(dtype)

    def compared(t):
        return t == 0.1, t - 1 / 3, t * (1 / 3), torch.rsub(t, 0.1), t ** (1 / 3), t.fmod(0.1)

    for a, b in zip(compared(x), torch.compile(compared)(x)):
        assert torch.equal(a, b)


@pytest.mark.parametrize("dtype, exponent", [
    (torch.uint8, 300), (torch.uint8, 256), (torch.uint8, -1), (torch.int8, 128),
    (torch.int8, -129), (torch.int32, 2**31), (torch.int64, -2)])
def test_powers_that_integers_have_not(dtype, exponent):
    with pytest.raises(RuntimeError):
        torch.tensor([1, 2, 3], dtype=dtype) ** exponent


def test_numbers_that_a_dtype_cannot_hold():
    for dtype, number in [(torch.uint8, -0.5), (torch.uint8, 256), (torch.complex64, 1e39j),
                          (torch.complex64, 1e39), (torch.float32, 1e39)]:
        for write in (lambda t, v: t.fill_(v), lambda t, v: torch.full((2,), v, dtype=t.dtype),
                      lambda t, v: t.masked_fill(t == 0, v), lambda t, v: t.__setitem__(0, v)):
            with pytest.raises(RuntimeError, match="without overflow"):
                write(torch.zeros(2, dtype=dtype), number)
    assert torch.full((1,), -1, dtype=torch.uint8).item() == 255


_KEYS = [1, slice(0, 2), ..., [0, 2], torch.tensor([1]), torch.tensor([True, False, True])]


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("key", _KEYS, ids=["int", "slice", "all", "list", "index", "mask"])
def test_assigned_numbers_are_rounded_to_half_precision(key, recorded):
    """In every mode: stored at once, recorded, under vmap and captured."""
    def assigned(dtype, number):
        t = torch.zeros(3, dtype=dtype)
        t = t.requires_grad_().clone() if recorded else t
        t[key] = number
        return t[key].reshape(-1)[0].item()

    assert assigned(torch.float16, 1e30) == float("inf")
    assert assigned(torch.float16, 65519) == 65504
    assert assigned(torch.float16, -70000) == -float("inf")
    assert assigned(torch.bfloat16, 1e39) == float("inf")
    with pytest.raises(RuntimeError, match="without overflow"):
        assigned(torch.float32, 1e39)
    assert assigned(torch.float32, float("inf")) == float("inf")


def test_assigned_numbers_in_transforms():
    def write(t):
        t[0] = 1e30
        return t

    x = torch.zeros(2, 2, dtype=torch.float16)
    inf = float("inf")
    assert torch.vmap(write)(x.clone()).tolist() == [[inf, 0], [inf, 0]]
    assert torch.compile(lambda t: write(t.clone()))(x).tolist() == [[inf, inf], [0, 0]]
    graph = torch.fx.experimental.proxy_tensor.make_fx(lambda t: write(t.clone()))(x)
    assert graph(x).tolist() == [[inf, inf], [0, 0]]
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.vmap(write)(torch.zeros(2, 2, dtype=torch.float32) + 0).mul_(1).fill_(1e39)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weight_norm_keeps_its_norms_wide(dtype):
    """Norms of half precision are float32, and gradients are rounded once, as in PyTorch 2.13."""
    v = torch.tensor([[3.0, 4.0], [60.0, 80.0]], dtype=dtype, requires_grad=True)
    g = torch.tensor([[1.0], [2.0]], dtype=dtype, requires_grad=True)
    for call in (torch.ops.aten._weight_norm_interface.default,
                 torch.compile(torch.ops.aten._weight_norm_interface.default)):
        w, norms = call(v, g, 0)
        assert (w.dtype, norms.dtype) == (dtype, torch.float32)
        assert norms.tolist() == [[5.0], [100.0]]
        for_v, for_g = torch.autograd.grad(w, (v, g), torch.ones_like(w))
        assert (for_v.dtype, for_g.dtype) == (dtype, dtype)
        wanted = [[0.2 * 0.16, -0.2 * 0.12], [0.02 * 0.16, -0.02 * 0.12]]
        assert torch.equal(for_v, torch.tensor(wanted).to(dtype))
        assert torch.equal(for_g, torch.tensor([[1.4], [1.4]]).to(dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_attention_is_differentiable(dtype):
    """Its saved sums of exponentials are of single precision beside operands of half."""
    x = (torch.arange(16.0).reshape(2, 1, 4, 2).sin() * 2).to(dtype).requires_grad_()
    wide = x.detach().float().requires_grad_()
    attend = torch.nn.functional.scaled_dot_product_attention
    for function in (lambda t: attend(t, t, t), torch.compile(lambda t: attend(t, t, t))):
        (got,) = torch.autograd.grad(function(x).square().sum(), x)
        (wanted,) = torch.autograd.grad(attend(wide, wide, wide).square().sum(), wide)
        assert got.dtype == dtype
        torch.testing.assert_close(got.float(), wanted, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_statistics_have_the_dtype_of_what_they_update(dtype):
    x = torch.tensor([[[1.0, 2.0]], [[3.0, 6.0]]], dtype=dtype)
    running = {None: dtype, dtype: dtype, torch.float32: torch.float32}
    for kind, wanted in running.items():
        given = [None] * 2 if kind is None else [torch.zeros(1, dtype=kind) for _ in range(2)]
        mean, var = torch.batch_norm_update_stats(x, *given, 0.5)
        assert (mean.dtype, var.dtype) == (wanted, wanted)
        assert (mean.item(), var.item()) == (3.0, 3.5)
        assert kind is None or given[0].item() == 1.5


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_backward_of_ctc_loss_is_refused_as_the_loss_is(dtype):
    """The messages of log 0 do not fit into it, nor does PyTorch take it."""
    scores, lengths = torch.zeros(4, 2, 3).log_softmax(2), ([4, 3], [2, 1])
    targets = torch.tensor([[1, 2], [1, 1]])
    found = [t.to(dtype) for t in torch._ctc_loss(scores, targets, *lengths)]
    with pytest.raises(NotImplementedError, match="ctc_loss_backward_cpu"):
        torch.ops.aten._ctc_loss_backward(torch.ones(2, dtype=dtype), scores.to(dtype), targets,
                                          *lengths, *found, 0)
