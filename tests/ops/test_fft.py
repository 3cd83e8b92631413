"""Fourier transforms against NumPy, their adjoints, short-time transforms and windows."""

import math

import numpy as np
import pytest

import pullback as torch
from pullback import fft
from pullback.autograd import grad
from pullback.func import jvp, vmap

NORMS = (None, "backward", "ortho", "forward")
random = np.random.default_rng(3)


def signal(*shape, complex_=False):
    values = random.normal(size=shape)
    return values + 1j * random.normal(size=shape) if complex_ else values


def close(got, expected, **tolerance):
    np.testing.assert_allclose(
        got.detach().numpy(), expected, **{"rtol": 1e-12, "atol": 1e-12, **tolerance}
    )


REAL_INPUT = ("rfft", "ihfft")


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_one_dim(name, norm):
    ours, theirs = getattr(fft, name), getattr(np.fft, name)
    for x in (signal(3, 5), signal(3, 6), signal(3, 5, complex_=True), np.arange(8.0)):
        if np.iscomplexobj(x) and name in REAL_INPUT:
            continue
        close(ours(torch.tensor(x), norm=norm), theirs(x, norm=norm))
        for n in (3, 4, 8, 9):
            for dim in (-1, 0):
                close(ours(torch.tensor(x), n, dim, norm), theirs(x, n, dim, norm))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    "name", ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"]
)
def test_several_dims(name, norm):
    ours, theirs = getattr(fft, name), getattr(np.fft, name)
    axes = "axes"
    for complex_ in (False, True):
        if complex_ and name in ("rfft2", "rfftn"):
            continue
        x = signal(3, 4, 5, complex_=complex_)
        close(ours(torch.tensor(x), norm=norm), theirs(x, norm=norm))
        for s, dim in (((4, 6), (0, 2)), ((2, 3), (2, 0)), ((5, 5), (-1, -2))):
            close(ours(torch.tensor(x), s, dim, norm), theirs(x, s, **{axes: dim}, norm=norm))


@pytest.mark.parametrize("norm", NORMS)
def test_hermitian_transforms_of_several_dims(norm):
    x = signal(3, 4, complex_=True)
    expected = np.fft.hfft(np.fft.fft(x, axis=0, norm=norm), axis=1, norm=norm)
    close(fft.hfft2(torch.tensor(x), norm=norm), expected)
    close(fft.hfftn(torch.tensor(x), norm=norm), expected)
    y = signal(3, 6)
    expected = np.fft.ifft(np.fft.ihfft(y, axis=1, norm=norm), axis=0, norm=norm)
    close(fft.ihfft2(torch.tensor(y), norm=norm), expected)
    close(fft.ihfftn(torch.tensor(y), norm=norm), expected)
    close(fft.hfftn(fft.ihfftn(torch.tensor(y), norm=norm), (3, 6), norm=norm), y)


def test_round_trips():
    for size in (1, 2, 7, 8):
        x = torch.tensor(signal(2, size))
        close(fft.irfft(fft.rfft(x), size), x.numpy())
        close(fft.ifft(fft.fft(x)), x.numpy())
        if size > 1:
            close(fft.hfft(fft.ihfft(x), size), x.numpy())
    x = torch.tensor(signal(3, 4, 5))
    close(fft.irfftn(fft.rfftn(x), x.shape), x.numpy())
    close(fft.ifftshift(fft.fftshift(x)), x.numpy())


def test_dtypes():
    assert fft.fft(torch.tensor([1, 2])).dtype is torch.complex64
    assert fft.fft(torch.ones(3)).dtype is torch.complex64
    assert fft.rfft(torch.ones(3, dtype=torch.float64)).dtype is torch.complex128
    assert fft.irfft(torch.ones(3)).dtype is torch.float32
    for low in (torch.float16, torch.bfloat16):
        with pytest.raises(RuntimeError, match="Unsupported dtype"):
            fft.fft(torch.ones(3, dtype=low))
    for real in (fft.rfft, fft.ihfft, fft.rfftn, fft.ihfftn):
        with pytest.raises(RuntimeError):
            real(torch.ones(3, dtype=torch.complex64))


@pytest.mark.parametrize("size", [1, 2, 5, 6])
def test_gradients_are_adjoints(size):
    """<F x, y> = <x, F* y> with the real inner product, bins at the edges included."""

    def inner(a, b):
        return float(np.sum((np.conj(a) * b).real))

    x = signal(3, size)
    bins = size // 2 + 1
    for forward, y in (
        (fft.rfft, signal(3, bins, complex_=True)),
        (fft.fft, signal(3, size, complex_=True)),
    ):
        t = torch.tensor(x, requires_grad=True)
        out = forward(t, norm="ortho")
        (g,) = grad(out, t, torch.tensor(y))
        assert inner(out.detach().numpy(), y) == pytest.approx(inner(x, g.numpy()))
    z, y = signal(3, bins, complex_=True), signal(3, size)
    t = torch.tensor(z, requires_grad=True)
    out = fft.irfft(t, size)
    (g,) = grad(out, t, torch.tensor(y))
    assert inner(out.detach().numpy(), y) == pytest.approx(inner(z, g.numpy()))
    assert abs(g.numpy()[:, 0].imag).max() < 1e-12  # the imaginary part of the mean is not read


def test_unused_bins_get_no_gradient():
    """A spectrum longer than half of the signal: the kernel itself does not read the rest."""
    z = torch.tensor(signal(6, complex_=True), requires_grad=True)
    out = torch.ops.aten._fft_c2r(z, [0], 0, 6)
    (g,) = grad(out, z, torch.ones_like(out))
    assert g.shape == z.shape and (g[4:] == 0).all().item()


def test_transforms_compose():
    x = torch.tensor(signal(4, 6))
    close(vmap(fft.rfft)(x), np.fft.rfft(x.numpy()))
    close(
        vmap(lambda v: fft.fft(v, dim=0), in_dims=1, out_dims=1)(x), np.fft.fft(x.numpy(), axis=0)
    )
    _, tangent = jvp(fft.rfft, (x,), (x * 2,))
    close(tangent, 2 * np.fft.rfft(x.numpy()))
    x.requires_grad_()
    power = fft.rfft(x).abs().pow(2).sum()
    (g,) = grad(power, x, create_graph=True)
    (h,) = grad(g.sum(), x)
    assert torch.isfinite(h).all().item()
    compiled = torch.compile(lambda v: fft.irfft(fft.rfft(v) * 2, 6).sin().sum())
    (a,) = grad(compiled(x), x)
    (b,) = grad((2 * x).sin().sum(), x)
    close(a, b.numpy())


def test_refusals():
    x, z = torch.arange(4.0), torch.ones(3, 4)
    for call in (
        lambda: fft.fft(x, 0),
        lambda: fft.fft(x, norm="x"),
        lambda: fft.fftn(z, dim=(0, 0)),
        lambda: fft.fftn(z, (1, 2, 3)),
        lambda: fft.fftn(z, (1, 2), (0,)),
        lambda: fft.fftn(z, (0, 2)),
        lambda: fft.rfftn(z, dim=()),
        lambda: fft.irfftn(z, dim=()),
        lambda: fft.hfftn(z, dim=()),
        lambda: fft.ihfftn(z, dim=()),
        lambda: fft.irfft(torch.ones(1)),
        lambda: fft.fft(torch.ones(3, 0)),
        lambda: torch.ops.aten._fft_c2c(x, [0], 0, True),
    ):
        with pytest.raises(RuntimeError):
            call()
    for call in (
        lambda: fft.fft(x, dim=2),
        lambda: fft.fft(torch.tensor(1.0)),
        lambda: fft.fft2(x),
        lambda: fft.fftshift(z, [3]),
    ):
        with pytest.raises(IndexError):
            call()
    assert fft.fftn(z, dim=()).tolist() == z.tolist()
    with pytest.raises(AttributeError):
        fft.nothing


def test_frequencies():
    for n in (1, 4, 5):
        close(fft.fftfreq(n, 0.5, dtype=torch.float64), np.fft.fftfreq(n, 0.5))
        close(fft.rfftfreq(n, 0.5, dtype=torch.float64), np.fft.rfftfreq(n, 0.5))
    assert fft.fftfreq(0).shape == (0,) and fft.fftfreq(3).dtype is torch.float32
    assert fft.fftfreq(3, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError):
        fft.fftfreq(3, dtype=torch.int64)
    for x in (np.arange(5.0), np.arange(6.0).reshape(2, 3)):
        close(fft.fftshift(torch.tensor(x)), np.fft.fftshift(x))
        close(fft.ifftshift(torch.tensor(x)), np.fft.ifftshift(x))
    close(fft.fftshift(torch.tensor(x), [1]), np.fft.fftshift(x, 1))


# ---------------------------------------------------------------------------------------------
# Short-time transforms


def frames(x, n_fft, hop, window):
    starts = range(0, len(x) - n_fft + 1, hop)
    return np.stack([np.fft.rfft(x[i : i + n_fft] * window) for i in starts], 1)


def test_stft():
    x, window = signal(20), signal(6)
    t, w = torch.tensor(x), torch.tensor(window)
    close(torch.stft(t, 6, 2, window=w, center=False, return_complex=True), frames(x, 6, 2, window))
    for mode, numpy_mode in (
        ("reflect", "reflect"),
        ("constant", "constant"),
        ("replicate", "edge"),
        ("circular", "wrap"),
    ):
        padded = np.pad(x, 3, mode=numpy_mode)
        close(
            torch.stft(t, 6, 2, window=w, pad_mode=mode, return_complex=True),
            frames(padded, 6, 2, window),
        )
    short = torch.stft(t, 6, 2, 3, w[:3], center=False, return_complex=True)
    close(short, frames(x, 6, 2, np.pad(window[:3], (1, 2))))
    close(
        torch.stft(t, 6, 2, window=w, normalized=True, center=False, return_complex=True),
        frames(x, 6, 2, window) / math.sqrt(6),
    )
    pairs = torch.stft(t, 6, 2, window=w, center=False, return_complex=False)
    close(torch.view_as_complex(pairs.contiguous()), frames(x, 6, 2, window))
    two = torch.stft(torch.stack([t, t]), 6, return_complex=True, onesided=False)
    assert two.shape == (2, 6, 21)
    with pytest.raises(RuntimeError, match="return_complex"):
        torch.stft(t, 6)


@pytest.mark.parametrize(
    "options", [{}, {"normalized": True}, {"onesided": False}, {"center": False}]
)
def test_istft_inverts(options):
    x = torch.tensor(signal(2, 24), requires_grad=True)
    window = torch.hamming_window(8, dtype=torch.float64)
    spectrum = torch.stft(x, 8, 2, window=window, return_complex=True, **options)
    again = torch.istft(spectrum, 8, 2, window=window, length=24, **options)
    close(again, x.detach().numpy())
    (g,) = grad(again, x, torch.ones_like(again))
    close(g, np.ones((2, 24)))


def test_istft_refusals():
    spectrum = torch.stft(torch.arange(10.0), 4, return_complex=True)
    for call in (
        lambda: torch.istft(spectrum, 4, window=torch.zeros(4)),
        lambda: torch.istft(spectrum.real, 4),
        lambda: torch.istft(spectrum, 6),
        lambda: torch.istft(spectrum, 4, 5),
        lambda: torch.istft(spectrum[:, :0], 4),
        lambda: torch.istft(spectrum, 4, return_complex=True),
        lambda: torch.istft(spectrum, 4, window=torch.ones(3)),
    ):
        with pytest.raises(RuntimeError):
            call()
    longer = torch.istft(spectrum, 4, window=torch.ones(4), length=13)
    assert longer.shape == (13,) and longer[-1].item() == 0


# ---------------------------------------------------------------------------------------------
# Windows


def test_windows():
    from scipy.signal import windows as scipy_windows

    from pullback.signal import windows

    same = {
        "bartlett": {},
        "blackman": {},
        "cosine": {},
        "hamming": {},
        "hann": {},
        "nuttall": {},
        "kaiser": {"beta": 5.0},
        "gaussian": {"std": 1.7},
        "exponential": {"tau": 2.0},
        "general_cosine": {"a": [0.5, 0.3, 0.2]},
        "general_hamming": {"alpha": 0.6},
    }
    assert sorted(same) == windows.__all__
    for name, options in same.items():
        for size in (1, 2, 7, 8):
            for sym in (True, False):
                got = getattr(windows, name)(size, sym=sym, dtype=torch.float64, **options)
                close(got, getattr(scipy_windows, name)(size, sym=sym, **options))
        assert getattr(windows, name)(0, **options).shape == (0,)
        with pytest.raises(ValueError, match="non-negative"):
            getattr(windows, name)(-1, **options)
        with pytest.raises(ValueError, match="float32 or float64"):
            getattr(windows, name)(3, dtype=torch.int64, **options)


def test_window_operators():
    from pullback.signal import windows

    for name in ("bartlett", "blackman", "hamming", "hann", "kaiser"):
        old, new = getattr(torch, f"{name}_window"), getattr(windows, name)
        for size in (0, 1, 5, 6):
            close(old(size, dtype=torch.float64), new(size, sym=False, dtype=torch.float64).numpy())
            close(old(size, False, dtype=torch.float64), new(size, dtype=torch.float64).numpy())
        with pytest.raises(RuntimeError):
            old(-1)
        with pytest.raises(RuntimeError):
            old(3, dtype=torch.int64)
    assert torch.hann_window(4, requires_grad=True).requires_grad
    close(torch.hamming_window(3, False, 0.7, 0.2, dtype=torch.float64), [0.5, 0.9, 0.5])
