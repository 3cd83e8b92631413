"""Quantised tensors: history, transforms, copies, and products of their integers."""

import copy
import pickle

import numpy as np
import pytest

import pullback as torch
from pullback.compile import integer_loops
from pullback.ops import integer_products


def made(*shape, **kwargs):
    return torch.quantize_per_tensor(torch.randn(*shape), 0.1, 3, torch.quint8, **kwargs)


def test_history_never_ends_silently():
    x = torch.randn(3, requires_grad=True)
    for make in (lambda: torch.quantize_per_tensor(x, 0.1, 3, torch.quint8),
                 lambda: torch.quantize_per_tensor_dynamic(x, torch.quint8, False),
                 lambda: torch.quantize_per_channel(x, torch.ones(3), torch.zeros(3), 0,
                                                    torch.quint8)):
        with pytest.raises(torch.errors.RefusedValue, match="requires grad"):
            make()
    with torch.no_grad():
        torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)
    with pytest.raises(torch.errors.RefusedValue, match="requires grad"):
        torch.func.jvp(lambda v: torch.quantize_per_tensor(v, 0.1, 3, torch.quint8).dequantize(),
                       (x.detach(),), (torch.ones(3),))


def test_straight_through_passes_what_is_in_range():
    x = torch.tensor([-1.0, 0.2, 0.5, 99.0], requires_grad=True)
    q = torch.quantize_per_tensor(x, 0.1, 3, torch.quint8, straight_through=True)
    y = (q.reshape(2, 2).relu()[:, 1].dequantize() ** 2).sum()
    y.backward()
    assert torch.allclose(x.grad, torch.tensor([0.0, 0.4, 0.0, 0.0]))
    out, slope = torch.func.jvp(
        lambda v: torch.quantize_per_channel(
            v, torch.ones(2) * 0.1, torch.zeros(2), 0, torch.qint8,
            straight_through=True).dequantize(), (torch.ones(2, 2),), (torch.ones(2, 2),))
    assert torch.allclose(out, torch.ones(2, 2)) and slope.sum() == 4


def test_straight_through_in_func_grad_and_vmap():
    def f(v):
        return torch.quantize_per_tensor(v, 0.1, 0, torch.qint8, straight_through=True).relu() \
            .dequantize().sum()

    x = torch.tensor([[1.0, -1.0], [-2.0, 2.0]])
    assert torch.func.vmap(torch.func.grad(f))(x).tolist() == [[1, 0], [0, 1]]


def test_transforms_take_quantised_arguments():
    q = made(3, 4)
    assert torch.equal(torch.func.vmap(lambda v: v.relu())(q).int_repr(), q.relu().int_repr())
    compiled = torch.compile(lambda v: v.relu().dequantize() * 2, fullgraph=True)
    assert torch.equal(compiled(q), q.relu().dequantize() * 2)


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda q: pickle.loads(pickle.dumps(q)),
                                 torch.clone])
def test_copies(how):
    per_channel = torch.quantize_per_channel(
        torch.randn(2, 3), torch.tensor([0.1, 0.2]), torch.tensor([1, 0]), 0, torch.qint8)
    for q in (made(2, 3), per_channel):
        assert torch.equal(how(q), q) and how(q).qscheme() is q.qscheme()


def test_views_and_writes_share_memory():
    q = made(2, 3)
    q[0] = torch.full((3,), 0.5)
    q.view(-1)[3:] = 1.0
    assert q.dequantize().tolist() == [[0.5] * 3, [1.0] * 3]
    q.copy_(torch.zeros(2, 3))
    assert q.int_repr().unique().tolist() == [3]


def test_per_channel_parameters_follow_their_channels():
    q = torch.quantize_per_channel(torch.randn(3, 4), torch.tensor([0.1, 0.2, 0.3]),
                                   torch.tensor([0, 1, 2]), 0, torch.qint8)
    for f in (lambda t: t.t(), lambda t: t[1:], lambda t: t[1], lambda t: t.flip(0),
              lambda t: t.reshape(3, 2, 2), lambda t: t[:, 2], lambda t: t[[2, 0]]):
        assert torch.equal(f(q).dequantize(), f(q.dequantize()))
    with pytest.raises(torch.errors.RefusedValue, match="no order"):
        q.sort(0)


def test_numbers_are_written_with_the_parameters_of_their_channels():
    x = torch.arange(1.0, 7.0).reshape(2, 3)
    scales, zeros = torch.tensor([0.5, 0.25]), torch.tensor([1, 2])
    for key, value in ((0, 1.0), ((0, 0), 2.0), (slice(None), 3.0), ((slice(None), 1), 1.5),
                       ((slice(None), 1), torch.tensor([1.0, 2.0])), ([1, 0], torch.ones(3))):
        q = torch.quantize_per_channel(x, scales, zeros, 0, torch.qint8)
        memory, want = q.int_part, x.clone()
        q[key] = want[key] = value
        assert torch.equal(q.dequantize(), want) and q.int_part is memory
        other = torch.quantize_per_channel(x, scales, zeros, 0, torch.qint8)
        other[key] = torch.quantize_per_tensor(want[key], 0.5, 0, torch.qint8)
        assert torch.equal(other.dequantize(), want)
    four = torch.quantize_per_channel(x[:, :2], scales, zeros.float(), 0, torch.quint4x2)
    with pytest.raises(RuntimeError, match="share bytes"):
        four[0] = 1.0


def test_four_bits_stay_packed():
    x = torch.arange(8.0).reshape(2, 4)
    q = torch.quantize_per_channel(x, torch.tensor([0.5, 0.5]), torch.zeros(2), 0, torch.quint4x2)
    for other in (q.detach(), q.clone(), q.data, copy.deepcopy(q), pickle.loads(pickle.dumps(q))):
        assert other.shape == (2, 4) and other.stride() == (4, 1) and other.stride(0) == 4
        assert torch.equal(other.dequantize(), x.clamp(max=7.5))
        assert other.int_repr().shape == (4,)


def test_what_leaves_the_range_is_refused():
    q = made(2, 2)
    for f in (torch.sum, lambda t: t @ t, torch.prod):
        with pytest.raises(torch.errors.LayoutError, match="dequantize"):
            f(q)


SIZES = [(1, 5, 3), (5, 64, 9), (7, 130, 33), (33, 1100, 50), (4, 64, 4)]


@pytest.mark.parametrize("m, k, n", SIZES)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_products_in_c_and_numpy_are_exact(m, k, n, dtype):
    rng = np.random.default_rng(0)
    a = rng.integers(0, 256, (m, k)).astype(np.uint8).view(dtype)
    b = rng.integers(-128, 128, (n, k)).astype(np.int8)
    a[0], b[0] = (255 if dtype is np.uint8 else -128), -128
    wanted = a.astype(int) @ b.astype(int).T
    assert (integer_products._in_blocks(a, b) == wanted).all()
    found = integer_loops._library.get(True)
    if found is not None:
        assert (integer_loops.products(found, a, b) == wanted).all()


@pytest.mark.parametrize("m, k, n", SIZES)
@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_dynamic_linear_is_the_same_in_c_and_numpy(m, k, n, channels, biased, monkeypatch):
    found = integer_loops._library.get(True)
    rng = np.random.default_rng(1)
    x, b = rng.normal(size=(m, k)).astype(np.float32), rng.integers(-128, 128, (n, k), np.int8)
    scale, zero = (rng.random(n), rng.integers(0, 9, n)) if channels else (
        np.array([0.02]), np.array([3]))
    bias = rng.normal(size=n).astype(np.float32) if biased else None
    outs = []
    for large in (0, 1 << 60):
        monkeypatch.setattr(integer_products, "LARGE", large)
        outs.append(integer_products.dynamic_linear(np, x, b, scale, zero, bias, True, 0))
    assert found is None or (outs[0] == outs[1]).all()


def test_vmap_gives_examples_with_scales_of_their_own():
    x, scales = torch.randn(3, 4), torch.tensor([0.1, 0.2, 0.3])

    def quantised(v, s):
        return torch.quantize_per_tensor(v, s, torch.tensor(3), torch.quint8)

    q = torch.func.vmap(quantised)(x, scales)
    assert q.q_per_channel_axis() == 0
    wanted = [quantised(v, s) for v, s in zip(x, scales)]
    assert torch.equal(q.dequantize(), torch.stack([w.dequantize() for w in wanted]))
    back = torch.func.vmap(lambda v: v.relu().dequantize(), in_dims=1)(
        torch.quantize_per_channel(x, scales, torch.zeros(3), 0, torch.qint8))
    assert back.shape == (4, 3)


def test_memory_formats_and_numbers():
    x = torch.randn(1, 2, 3, 4).contiguous(memory_format=torch.channels_last)
    scales, zeros = torch.tensor([0.1, 0.2]), torch.tensor([0, 1])
    for q in (torch.quantize_per_tensor(x, 0.1, 3, torch.quint8),
              torch.quantize_per_channel(x, scales, zeros, 1, torch.qint8)):
        assert q.stride() == q.dequantize().stride() == x.stride()
        assert q.is_contiguous(memory_format=torch.channels_last)
        assert q.contiguous().is_contiguous()
    q = torch.quantize_per_tensor(torch.tensor([2.0, -1.0]), 0.5, 3, torch.quint8)
    assert int(q[0]) == 2 and int(q[1]) == -1 and float(q[1]) == -1.0
    with pytest.raises(TypeError, match="unsupported ScalarType QUInt8"):
        q.numpy()
