"""Convolution beyond the table's own checks: values, chunks, batching, errors, layers."""

import itertools

import numpy as np
import pytest
from scipy import signal

import pullback as pb
from pullback import func
from pullback.nn import functional as F
from pullback.ops import conv_kernels
from pullback.table.packets import ops


def tensor(*shape, seed=0, dtype=np.float64):
    return pb.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


def reference(x, w, stride, padding, dilation, groups):
    """SciPy's correlation, channel by channel."""
    lead = [(0, 0), (0, 0)]
    x = np.pad(x, lead + [(p, p) for p in padding])
    spread = np.zeros((*w.shape[:2], *(d * (k - 1) + 1 for d, k in zip(dilation, w.shape[2:]))))
    spread[(..., *(slice(None, None, d) for d in dilation))] = w
    inner, outer = w.shape[1], w.shape[0] // groups
    out = [[sum(signal.correlate(example[o // outer * inner + c], spread[o, c], "valid")
                for c in range(inner)) for o in range(w.shape[0])] for example in x]
    return np.array(out)[(..., *(slice(None, None, s) for s in stride))]


CASES = [
    ((2, 3, 11), (4, 3, 3), ([2], [1], [2], False, [0], 1)),
    ((2, 4, 7, 6), (6, 2, 3, 2), ([1, 2], [2, 0], [1, 3], False, [0, 0], 2)),
    ((2, 3, 4, 5, 4), (3, 1, 2, 3, 2), ([1, 1, 2], [1, 1, 0], [1, 2, 1], False, [0, 0, 0], 3)),
]
TRANSPOSED = [
    ((2, 4, 5), (4, 3, 3), ([2], [1], [2], True, [1], 2)),
    ((2, 4, 5, 4), (4, 3, 2, 3), ([1, 1], [1, 0], [2, 1], True, [0, 0], 1)),
    ((2, 4, 3, 2), (4, 3, 2, 3), ([3, 2], [0, 1], [1, 2], True, [2, 1], 2)),
]


@pytest.mark.oracle
@pytest.mark.parametrize("x, w, geometry", CASES)
def test_values_are_correlations(x, w, geometry):
    x, w = tensor(*x), tensor(*w, seed=1)
    stride, padding, dilation, _, _, groups = geometry
    expected = reference(x.numpy(), w.numpy(), stride, padding, dilation, groups)
    np.testing.assert_allclose(ops.convolution(x, w, None, *geometry).numpy(), expected)


@pytest.mark.parametrize("y, w, geometry", TRANSPOSED)
def test_transposed_is_the_adjoint(y, w, geometry):
    y, w = tensor(*y), tensor(*w, seed=1)
    stride, padding, dilation, _, output_padding, groups = geometry
    x = ops.convolution(y, w, None, *geometry)
    z = tensor(*x.shape, seed=2)
    back = ops.convolution(z, w, None, stride, padding, dilation, False, output_padding, groups)
    np.testing.assert_allclose((x * z).sum().item(), (back * y).sum().item())


@pytest.mark.parametrize("x, w, geometry", CASES + TRANSPOSED)
def test_chunks_do_not_matter(x, w, geometry, monkeypatch):
    x, w = tensor(*x), tensor(*w, seed=1)
    monkeypatch.setattr(conv_kernels, "CACHE", 1 << 30)
    whole = ops.convolution(x, w, None, *geometry)
    grads = ops.convolution_backward(whole, x, w, None, *geometry, [True] * 3)
    monkeypatch.setattr(conv_kernels, "CACHE", 1)  # one example at a time
    np.testing.assert_allclose(ops.convolution(x, w, None, *geometry).numpy(), whole.numpy())
    again = ops.convolution_backward(whole, x, w, None, *geometry, [True] * 3)
    for one, other in zip(grads, again):
        np.testing.assert_allclose(one.numpy(), other.numpy())


@pytest.mark.parametrize("x, w, geometry", CASES + TRANSPOSED)
@pytest.mark.parametrize("own", [c for c in itertools.product([0, None], repeat=3) if 0 in c])
def test_vmap_over_any_of_the_operands(x, w, geometry, own):
    n, many = 3, [True] * 3
    out = ops.convolution(tensor(*x), tensor(*w), None, *geometry).shape

    def check(function, shapes):
        args = [tensor(*((n, *s) if d == 0 else s), seed=i)
                for i, (s, d) in enumerate(zip(shapes, own))]
        got = func.vmap(function, own)(*args)
        for r, part in enumerate(got):
            for i in range(n):
                one = function(*(a[i] if d == 0 else a for a, d in zip(args, own)))[r]
                np.testing.assert_allclose(part[i].numpy(), one.numpy(), atol=1e-12)

    check(lambda x, w, b: (ops.convolution(x, w, b, *geometry),), (x, w, out[1:2]))
    check(lambda g, x, w: ops.convolution_backward(g, x, w, None, *geometry, many), (out, x, w))


def test_half_precision_accumulates_in_single():
    x = pb.from_numpy(np.full((1, 4096, 1), 0.1, np.float32)).to(pb.bfloat16)
    w = pb.from_numpy(np.full((1, 4096, 1), 0.1, np.float32)).to(pb.bfloat16)
    out = F.conv1d(x, w)
    assert out.dtype is pb.bfloat16
    np.testing.assert_allclose(out.to(pb.float32).numpy(), 4096 * 0.1**2, rtol=1e-2)


def test_masked_gradients_are_none():
    g, x, w = tensor(1, 3, 3), tensor(1, 2, 5), tensor(3, 2, 3)
    dx, dw, db = ops.convolution_backward(g, x, w, [3], [1], [0], [1], False, [0], 1,
                                          [False, True, False])
    assert dx is None and db is None and dw.shape == w.shape


def test_same_padding_puts_the_odd_zero_behind():
    x = pb.from_numpy(np.arange(1.0, 5.0).reshape(1, 1, 4))
    with pytest.warns(UserWarning, match="padding='same'"):
        out = F.conv1d(x, pb.ones(1, 1, 2, dtype=pb.float64), padding="same")
    np.testing.assert_array_equal(out.numpy(), [[[3, 5, 7, 4]]])


def test_fold_sums_what_unfold_repeats():
    x = tensor(2, 3, 6, 5)
    columns = F.unfold(x, (3, 2), padding=1)
    counts = F.fold(F.unfold(pb.ones(2, 3, 6, 5), (3, 2), padding=1), (6, 5), (3, 2), padding=1)
    back = F.fold(columns, (6, 5), (3, 2), padding=1)
    np.testing.assert_allclose(back.numpy(), (x * counts).numpy())


X, W = (1, 4, 5, 5), (6, 4, 3, 3)


@pytest.mark.parametrize("shape, weight, options, message", [
    (X, W, {"padding": -1}, "negative padding"),
    (X, W, {"stride": 0}, "non-positive stride"),
    (X, W, {"dilation": 0}, "dilation should be greater"),
    (X, W, {"groups": 0}, "non-positive groups"),
    (X, W, {"groups": 4}, "divisible by 4"),
    (X, (1, 4, 3, 3), {"groups": 2}, "at least 2"),
    (X, (6, 3, 3, 3), {}, "3 channels, but got 4"),
    (X, W, {"bias": tensor(5)}, "expected bias"),
    (X, W, {"stride": (1, 1, 1)}, "list of 2 values"),
    (X, W, {"padding": "same", "stride": 2}, "strided"),
    (X, W, {"padding": "wide"}, "Invalid padding"),
    (X, (6, 4, 0, 3), {}, "kernel size should be greater"),
    ((1, 4, 2, 5), W, {}, "Kernel size can't be greater"),
    ((4, 5), W, {}, "Expected 3D"),
    ((1, 4, 0, 5), W, {"padding": 2}, "Only zero batch"),
])
def test_refusals(shape, weight, options, message):
    with pytest.raises(RuntimeError, match=message):
        F.conv2d(tensor(*shape), tensor(*weight), **options)


@pytest.mark.parametrize("call, kind", [
    (lambda: F.conv2d(tensor(*X), tensor(*W, dtype=np.float32)), RuntimeError),
    (lambda: F.conv2d(tensor(*X).bool(), tensor(*W).bool()), NotImplementedError),
    (lambda: F.conv_transpose1d(tensor(1, 2, 3), tensor(2, 1, 2), output_padding=1), RuntimeError),
    (lambda: F.conv_transpose1d(tensor(1, 2, 1), tensor(2, 1, 1), padding=1), RuntimeError),
    (lambda: F.conv_tbc(tensor(3, 2, 4), tensor(5, 4, 1), tensor(1)), RuntimeError),
    (lambda: F.unfold(tensor(5, 5), 2), IndexError),
    (lambda: F.unfold(tensor(1, 1, 2, 5), 3), RuntimeError),
    (lambda: F.fold(tensor(1, 7, 4), (3, 3), 2), RuntimeError),
    (lambda: F.fold(tensor(1, 8, 5), (3, 3), 2), RuntimeError),
])
def test_other_refusals(call, kind):
    with pytest.raises(kind):
        call()


LAYERS = [
    (lambda nn: nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), (2, 4, 9)),
    (lambda nn: nn.Conv2d(4, 6, (3, 5), padding="same", dilation=2), (2, 4, 9, 8)),
    (lambda nn: nn.Conv2d(4, 6, 3, padding=2, padding_mode="reflect"), (4, 9, 8)),
    (lambda nn: nn.Conv2d(4, 6, (3, 2), padding="same", padding_mode="circular"), (2, 4, 9, 8)),
    (lambda nn: nn.Conv3d(2, 4, 2, bias=False), (1, 2, 4, 5, 6)),
    (lambda nn: nn.ConvTranspose1d(4, 6, 3, 2, 1, 1, groups=2), (2, 4, 9)),
    (lambda nn: nn.ConvTranspose2d(4, 6, 3, stride=(2, 3), dilation=2), (4, 5, 6)),
    (lambda nn: nn.ConvTranspose3d(2, 2, (1, 2, 3)), (1, 2, 3, 3, 3)),
    (lambda nn: nn.Unfold(3, padding=1, stride=2), (2, 3, 6, 6)),
    (lambda nn: nn.Fold((6, 6), 2, stride=2), (2, 12, 9)),
]


@pytest.mark.torch
@pytest.mark.parametrize("make, shape", LAYERS)
def test_layers_are_those_of_torch(make, shape):
    import torch

    torch.manual_seed(3)
    pb.manual_seed(3)
    theirs, ours = make(torch.nn), make(pb.nn)
    assert repr(ours) == repr(theirs)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        np.testing.assert_array_equal(p.detach().numpy(), q.detach().numpy())
    x = tensor(*shape, dtype=np.float32)
    with torch.backends.mkldnn.flags(enabled=False):
        expected = theirs(torch.from_numpy(x.numpy())).detach().numpy()
    np.testing.assert_allclose(ours(x).detach().numpy(), expected, rtol=1e-4, atol=1e-5)


def test_output_size_of_a_transposed_layer():
    layer = pb.nn.ConvTranspose2d(1, 1, 3, stride=(2, 3))
    x = pb.ones(1, 1, 2, 2)
    assert layer(x, output_size=[6, 8]).shape == (1, 1, 6, 8)
    assert layer(x, output_size=[1, 1, 5, 7]).shape == (1, 1, 5, 7)
    with pytest.raises(ValueError, match="valid sizes range"):
        layer(x, output_size=[7, 8])


@pytest.mark.parametrize("shape, weight, geometry", [
    ((2, 3, 7), (4, 3, 3), {"padding": 1}),
    ((2, 3, 7), (4, 3, 3), {"stride": 2, "padding": 2, "dilation": 2}),
    ((2, 4, 6, 5), (4, 1, 3, 3), {"padding": 1, "groups": 4}),
    ((1, 4, 6, 6), (6, 2, 3, 3), {"padding": (0, 2), "groups": 2})])
@pytest.mark.parametrize("compiled", [False, True])
def test_padding_takes_no_part_beside_infinite_weights(shape, weight, geometry, compiled):
    """Zeros times infinity would be NaN: results where only padding meets it stay numbers."""
    inf = float("inf")

    def convolve(*tensors):
        return getattr(F, f"conv{len(shape) - 2}d")(*tensors, **geometry)

    def run(x, w, b, incoming=1.0):
        x, w, b = (t.detach().requires_grad_() for t in (x, w, b))
        out = (pb.compile(convolve) if compiled else convolve)(x, w, b)
        return out, pb.autograd.grad(out, (x, w, b), pb.full_like(out, incoming))

    x, w, b = pb.randn(shape), pb.randn(weight), pb.randn(weight[0])
    plain, grads = run(x, w, b)
    single = pb.zeros(weight)
    single[0, 0].view(-1)[0] = 1
    met = run(pb.ones(shape), single, b * 0)[0] > 0  # where the first weight meets the image
    out, (of_x, of_w, _) = run(x, w.masked_fill(single > 0, inf), b)
    assert not met.all() and pb.allclose(out[~met], plain[~met], atol=1e-5)
    assert (out[met].abs() == inf).all()
    assert not of_x.isnan().any() and pb.allclose(of_w, grads[1], atol=1e-4)
    _, (_, of_w, of_b) = run(pb.ones(shape), w, b, inf)
    assert (of_w == inf).all() and (of_b == inf).all()
