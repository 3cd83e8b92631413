"""Pooling, padding and resampling beyond the table's own checks: values, ties, errors, layers."""

import itertools
import warnings

import numpy as np
import pytest

import pullback as pb
from pullback import nn
from pullback.autograd import grad
from pullback.nn import functional as F
from pullback.table.packets import ops


def tensor(*shape, seed=0, dtype=np.float64):
    return pb.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


def line(*values, dtype=pb.float64):
    """A signal: one image, one channel."""
    return pb.tensor([[values]], dtype=dtype)


# pooling

def test_first_maximum_and_last_nan_win():
    out, places = F.max_pool1d(line(1.0, 3.0, 3.0, 2.0), 4, return_indices=True)
    assert out.tolist() == [[[3]]] and places.tolist() == [[[1]]]
    out, places = F.max_pool1d(line(np.nan, 1.0, np.nan, 2.0), 4, return_indices=True)
    assert np.isnan(out.item()) and places.item() == 2


def test_flat_places_of_images():
    x = pb.tensor([[[[0.0, 9.0, 1.0], [2.0, 3.0, 8.0], [7.0, 4.0, 5.0]]]])
    out, places = F.max_pool2d(x, 2, 1, return_indices=True)
    assert out.tolist() == [[[[9, 9], [7, 8]]]] and places.tolist() == [[[[1, 1], [6, 5]]]]
    out, places = F.max_pool2d(x, 3, 2, 1, return_indices=True)
    assert places.tolist() == [[[[1, 1], [6, 5]]]]


def test_padding_never_wins():
    x = line(-5.0, -6.0, -7.0)
    assert F.max_pool1d(x, 2, 1, 1).tolist() == [[[-5, -5, -6, -7]]]
    assert F.max_pool1d(line(-5, -6, dtype=pb.float32), 2, 1, 1, dilation=3).tolist() == [
        [[-np.inf]]]


def test_brute_force_pooling():
    x = tensor(2, 3, 7, 8)
    padded = np.pad(x.numpy(), ((0, 0), (0, 0), (1, 1), (1, 1)))
    for stride, ceil in itertools.product((1, 2, 3), (False, True)):
        for include in (False, True):
            got = F.avg_pool2d(x, 3, stride, 1, ceil, include).numpy()
            for i, j in np.ndindex(*got.shape[2:]):
                block = padded[:, :, i * stride:i * stride + 3, j * stride:j * stride + 3]
                inside = (min(i * stride + 2, 7) - max(i * stride - 1, 0)) * (
                    min(j * stride + 2, 8) - max(j * stride - 1, 0))
                count = block[0, 0].size if include else inside
                np.testing.assert_allclose(got[:, :, i, j], block.sum((2, 3)) / count)


def test_integer_means_round_towards_zero():
    x = pb.tensor([[[-3, -4, 3, 4]]])
    assert F.avg_pool1d(x, 2).tolist() == [[[-3, 3]]]


def test_adaptive_windows_overlap():
    assert F.adaptive_avg_pool1d(line(0.0, 1.0, 2.0, 3.0, 4.0), 3).tolist() == [[[0.5, 2, 3.5]]]
    assert F.adaptive_max_pool1d(line(0.0, 1.0), 3).tolist() == [[[0, 1, 1]]]
    assert F.adaptive_avg_pool2d(tensor(2, 5, 6), (None, 2)).shape == (2, 5, 2)


def test_unpooling_undoes_pooling():
    x = tensor(2, 3, 4, 6)
    out, places = F.max_pool2d(x, 2, return_indices=True)
    back = F.max_unpool2d(out, places, 2)
    assert F.max_pool2d(back.abs(), 2).equal(out.abs())
    assert F.max_unpool2d(out, places, 2, output_size=(5, 6)).shape == (2, 3, 5, 6)
    with pytest.raises(ValueError, match="invalid output_size"):
        F.max_unpool2d(out, places, 2, output_size=(9, 6))


@pytest.mark.parametrize("call, error", [
    (lambda: F.max_pool2d(tensor(1, 2, 4, 4), 2, padding=2), RuntimeError),
    (lambda: F.max_pool2d(tensor(4, 4), 2), RuntimeError),
    (lambda: F.max_pool2d(tensor(1, 2, 2, 2), 3), RuntimeError),
    (lambda: F.avg_pool2d(tensor(1, 2, 4, 4), 2, divisor_override=0), RuntimeError),
    (lambda: F.adaptive_avg_pool2d(tensor(4, 4), (2, 2)), ValueError),
    (lambda: F.fractional_max_pool2d(tensor(1, 2, 4, 4), 2), ValueError),
    (lambda: F.pad(tensor(1, 2, 3), (3, 0), mode="reflect"), RuntimeError),
    (lambda: F.pad(tensor(1, 2, 3), (1, 0), mode="reflect", value=2.0), RuntimeError),
    (lambda: F.pad(tensor(1, 2, 3), (4, 0), mode="circular"), RuntimeError),
    (lambda: F.pad(tensor(3), (1, 0), mode="replicate"), NotImplementedError),
    (lambda: F.interpolate(tensor(1, 2, 3)), ValueError),
    (lambda: F.interpolate(tensor(1, 2, 3), size=4, scale_factor=2), ValueError),
    (lambda: F.interpolate(tensor(1, 2, 3), size=(4, 4)), ValueError),
    (lambda: F.interpolate(tensor(1, 2, 3), size=4, mode="bilinear"), NotImplementedError),
    (lambda: F.interpolate(tensor(1, 2, 3), size=4, align_corners=True), ValueError),
    (lambda: F.interpolate(tensor(1, 2, 3), size=4, mode="linear", antialias=True), ValueError),
    (lambda: F.grid_sample(tensor(1, 2, 3, 4), tensor(1, 2, 2, 3)), RuntimeError),
    (lambda: F.grid_sample(tensor(1, 2, 3, 4), tensor(1, 2, 2, 2), mode="cubic"), ValueError),
    (lambda: F.affine_grid(tensor(1, 3, 4), (1, 1, 2, 2)), ValueError),
    (lambda: F.pixel_shuffle(tensor(3, 2, 2), 2), RuntimeError),
    (lambda: F.channel_shuffle(tensor(1, 3, 2), 2), RuntimeError),
])
def test_refusals(call, error):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(error):
            call()


# padding

@pytest.mark.parametrize("mode, expected", [
    ("reflect", [2, 1, 0, 1, 2, 3, 2]), ("replicate", [0, 0, 0, 1, 2, 3, 3]),
    ("circular", [2, 3, 0, 1, 2, 3, 0]), ("constant", [0, 0, 0, 1, 2, 3, 0])])
def test_modes_of_padding(mode, expected):
    x = line(0.0, 1.0, 2.0, 3.0)
    assert F.pad(x, (2, 1), mode=mode).tolist() == [[expected]]


def test_negative_padding():
    x = line(0.0, 1.0, 2.0, 3.0)
    assert F.pad(x, (-1, 2), mode="reflect").tolist() == [[[1, 2, 3, 2, 1]]]
    assert F.pad(x, (-2, 1), mode="replicate").tolist() == [[[2, 3, 3]]]
    # what is cut off does not come round again
    assert F.pad(x, (-1, 2), mode="circular").tolist() == [[[1, 2, 3, 1, 2]]]


# resizing

def test_nearest_and_linear():
    x = line(0.0, 1.0, 2.0)
    assert F.interpolate(x, size=5).tolist() == [[[0, 0, 1, 1, 2]]]
    assert F.interpolate(x, size=5, mode="nearest-exact").tolist() == [[[0, 0, 1, 2, 2]]]
    assert F.interpolate(x, size=5, mode="linear", align_corners=True).tolist() == [
        [[0, 0.5, 1, 1.5, 2]]]
    np.testing.assert_allclose(F.interpolate(x, scale_factor=2, mode="linear").numpy().ravel(),
                               [0, 0.25, 0.75, 1.25, 1.75, 2])


def test_smooth_filters_keep_constants():
    x = pb.full((1, 2, 9, 11), 3.0, dtype=pb.float64)
    for mode in ("bilinear", "bicubic", "lanczos"):
        for size in ((3, 4), (20, 30), (9, 5)):
            got = F.interpolate(x, size=size, mode=mode, antialias=True).numpy()
            np.testing.assert_allclose(got, 3.0)


def test_gradient_is_the_transpose_for_any_factor():
    for mode, scale in itertools.product(("nearest", "bilinear", "bicubic"), (0.4, 1.0, 2.37)):
        x = tensor(1, 2, 5, 6).requires_grad_()
        y = F.interpolate(x, scale_factor=scale, mode=mode, recompute_scale_factor=False)
        seed, step = tensor(*y.shape, seed=1), tensor(1, 2, 5, 6, seed=2)
        moved = F.interpolate(step, scale_factor=scale, mode=mode, recompute_scale_factor=False)
        g, = grad(y, x, seed)
        np.testing.assert_allclose((g * step).sum().item(), (seed * moved).sum().item())


def test_one_infinity_stays_where_it_is():
    x = pb.zeros(1, 1, 4, 4)
    x[0, 0, 0, 0] = np.inf
    out = F.interpolate(x, size=(8, 8), mode="bilinear").numpy()
    assert np.isfinite(out[0, 0, 4:, 4:]).all() and np.isinf(out[0, 0, 0, 0])
    grid = pb.tensor([[[[3.0, 3.0], [0.9, 0.9]]]])  # outside, and in the far corner
    assert F.grid_sample(x, grid, align_corners=False).tolist() == [[[[0, 0]]]]


def test_half_precision():
    for dtype in (pb.float16, pb.bfloat16):
        x = tensor(1, 4, 6, 6).to(dtype)
        for call in (lambda t: F.max_pool2d(t, 2), lambda t: F.avg_pool2d(t, 2),
                     lambda t: F.interpolate(t, size=(3, 9), mode="bilinear"),
                     lambda t: F.pad(t, (1, 1, 1, 1), mode="reflect"),
                     lambda t: F.pixel_shuffle(t, 2)):
            out = call(x)
            assert out.dtype is dtype
            np.testing.assert_allclose(out.float().numpy(), call(x.float()).numpy(), atol=2e-2)


def test_bytes_are_rounded_and_clipped():
    x = pb.tensor([[[[0, 255, 0, 255]]]], dtype=pb.uint8)
    out = F.interpolate(x, size=(1, 16), mode="bicubic")
    assert out.dtype is pb.uint8 and out.min().item() == 0 and out.max().item() == 255


# grids

def test_identity_grid():
    x = tensor(2, 3, 4, 5)
    theta = pb.tensor([[[1.0, 0, 0], [0, 1, 0]]] * 2, dtype=pb.float64)
    for align in (False, True):
        grid = F.affine_grid(theta, x.shape, align_corners=align)
        for mode in ("bilinear", "nearest", "bicubic"):
            got = F.grid_sample(x, grid, mode=mode, align_corners=align).numpy()
            np.testing.assert_allclose(got, x.numpy(), atol=1e-12)


def test_third_derivatives_of_sampling():
    x, weight = tensor(1, 2, 5, 4), tensor(1, 2, 2, 3, seed=1)
    start, way = np.random.default_rng(2).uniform(-0.8, 0.8, (2, 1, 2, 3, 2))

    def value(t):
        grid = pb.from_numpy(start) + t * pb.from_numpy(way)
        return (weight * F.grid_sample(x, grid, "bicubic", align_corners=False)).sum()

    def derivative(f):
        return lambda t: pb.func.jvp(f, (t,), (pb.ones_like(t),))[1]
    t = pb.tensor(0.0, dtype=pb.float64)
    second = derivative(derivative(value))
    expected = (second(t + 1e-4) - second(t - 1e-4)).item() / 2e-4
    assert derivative(second)(t).item() == pytest.approx(expected, rel=1e-6)
    third = pb.func.grad(pb.func.grad(pb.func.grad(value)))
    assert third(t).item() == pytest.approx(expected, rel=1e-6)


# layers

def test_layers_call_their_functions():
    x = tensor(2, 4, 6, 8)
    pairs = [
        (nn.MaxPool2d(2), F.max_pool2d(x, 2)), (nn.AvgPool2d(3, 2, 1), F.avg_pool2d(x, 3, 2, 1)),
        (nn.AdaptiveAvgPool2d((None, 3)), F.adaptive_avg_pool2d(x, (6, 3))),
        (nn.LPPool2d(2, 2), F.lp_pool2d(x, 2.0, 2)),
        (nn.ReflectionPad2d(2), F.pad(x, (2, 2, 2, 2), "reflect")),
        (nn.ConstantPad2d((1, 0, 0, 2), 1.5), F.pad(x, (1, 0, 0, 2), value=1.5)),
        (nn.Upsample(scale_factor=2, mode="bilinear"),
         F.interpolate(x, scale_factor=2, mode="bilinear")),
        (nn.PixelShuffle(2), F.pixel_shuffle(x, 2)),
        (nn.ChannelShuffle(2), F.channel_shuffle(x, 2)),
    ]
    for layer, expected in pairs:
        assert layer(x).equal(expected), repr(layer)
    assert repr(nn.MaxPool2d(2)) == (
        "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)")
    assert repr(nn.Upsample(scale_factor=2)) == "Upsample(scale_factor=2.0, mode='nearest')"


def test_fractional_windows_follow_the_draws():
    x = pb.arange(49.0).reshape(1, 1, 7, 7)
    draws = pb.tensor([[[0.3, 0.81]]])  # for the columns 0, 3, 5 and the rows 0, 2, 5
    out, places = ops.fractional_max_pool2d(x, 2, 3, draws)
    assert out.tolist() == [[[[8, 11, 13], [22, 25, 27], [43, 46, 48]]]]
    assert places.tolist() == out.long().tolist()


def test_an_infinite_pixel_reaches_only_what_it_is_part_of():
    """Taps that a result does not have take no part in it, as in PyTorch."""
    x = pb.tensor([[[[0.0, np.inf], [2.0, 3.0]]]])
    out = F.interpolate(x, size=(4, 4), mode="bilinear", antialias=True)
    many = [np.inf] * 3
    assert out[0, 0].tolist() == [[0, *many], [0.5, *many], [1.5, *many], [2, 2.25, 2.75, 3]]
    wide = pb.zeros(1, 1, 1, 200)
    wide[..., 100] = np.inf  # many taps: a product of matrices, unless something is infinite
    out = F.interpolate(wide, size=(1, 10), mode="bilinear", antialias=True)
    assert out.flatten().tolist() == [0, 0, 0, 0, np.inf, np.inf, 0, 0, 0, 0]


@pytest.mark.parametrize("mode, wanted", [
    ("linear", [np.inf, np.inf, 0.9, 0.5, 0.5, 0.9, 0.4, 0.7]),
    ("nearest", [np.inf, 1, 0, 1, 1, 0, 1, 0]),
])
def test_an_infinite_gradient_reaches_only_what_it_depends_on(mode, wanted):
    leaf = pb.zeros(1, 1, 8, dtype=pb.float64, requires_grad=True)
    out = F.interpolate(leaf, size=5, mode=mode)
    slopes = pb.ones(1, 1, 5, dtype=pb.float64)
    slopes[..., 0] = np.inf
    found, = grad(out, leaf, slopes)
    assert found.flatten().tolist() == pytest.approx(wanted)
