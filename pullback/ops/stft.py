"""Short-time Fourier transforms and windows.

Read next: `fft.py`.
"""

from __future__ import annotations

import math

from ..array import dtype as dt
from ..core.op import Composite
from ..errors import DataDependentError, DTypeError, ShapeError
from ..table.packets import ops
from ..threads.state import in_passing
from .kinds import ComplexComposite

# ---------------------------------------------------------------------------------------------
# Short-time transforms


def _centred_window(window, n_fft: int, win_length: int):
    """The window in the middle of a frame."""
    left = (n_fft - win_length) // 2
    return ops.constant_pad_nd(window, [left, n_fft - win_length - left])


def _steps(name: str, self, n_fft, hop_length, win_length) -> tuple[int, int, str]:
    """Samples from one frame to the next, samples of a window, and the call as messages show it."""
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    return hop, width, (f"{name}({self.dtype}{list(self.shape)}, n_fft={n_fft}, hop_length={hop}, "
                        f"win_length={width})")


def _stft(self, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided,
          return_complex, align_to_window):
    if align_to_window is not None and center:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    hop, width, call = _steps("stft", self, n_fft, hop_length, win_length)
    complex_ = self.is_complex() or window is not None and window.is_complex()
    if return_complex is None:
        if not complex_:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will "
                "further require that return_complex=True in a future PyTorch release."
            )
        return_complex = True
    if not self.dtype.is_inexact:
        raise DTypeError(f"{call}: expected a tensor of floating point or complex values")
    if not 1 <= self.ndim <= 2:
        raise ShapeError(f"{call}: expected a 1D or 2D tensor")
    x = self.unsqueeze(0) if self.ndim == 1 else self
    if center:
        pads = [n_fft // 2, n_fft // 2]
        x = ops.pad(x.unsqueeze(0), pads, pad_mode).squeeze(0)
    if not 0 < width <= n_fft:
        raise RuntimeError(f"{call}: expected 0 < win_length <= n_fft, but got win_length={width}")
    if align_to_window:
        left = (n_fft - width) // 2
        x = ops.constant_pad_nd(x, [left, n_fft - width - left])
    if not 0 < n_fft <= x.shape[1]:
        raise RuntimeError(f"{call}: expected 0 < n_fft <= {x.shape[1]}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{call}: expected hop_length > 0, but got hop_length={hop}")
    if window is not None and tuple(window.shape) != (width,):
        raise ShapeError(
            f"{call}: expected a 1D window tensor of size equal to win_length={width}, but got "
            f"window with size {list(window.shape)}"
        )
    frames = x.unfold(1, n_fft, hop)
    if window is None and width < n_fft:
        window = ops.ones((width,), dtype=self.dtype, device=self.device)
    if window is not None:
        frames = frames * (window if width == n_fft else _centred_window(window, n_fft, width))
    code = 1 if normalized else 0
    if frames.is_complex():
        if onesided:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        out = ops._fft_c2c(frames, [2], code, True)
    else:
        out = ops._fft_r2c(frames, [2], code, onesided is None or onesided)
    out = out.transpose(1, 2)
    out = out.squeeze(0) if self.ndim == 1 else out
    return out if return_complex else ops.view_as_real(out)


class stft_center(ComplexComposite):
    """Short-time Fourier transform: of overlapping frames of a signal."""

    schema = (
        "stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None,"
        ' Tensor? window=None, bool center=True, str pad_mode="reflect", bool normalized=False,'
        " bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor"
    )
    autocast = "float32"
    compose = _stft

    def samples(s):
        yield s(s.real(12), 4, return_complex=True)
        yield s(s.real(2, 13), 4, 3, return_complex=True)
        yield s(s.real(12), 6, 2, 5, s.real(5), normalized=True, return_complex=True)
        yield s(s.real(2, 12), 4, center=False, return_complex=True, onesided=False)
        yield s(s.real(12), 6, 2, 4, s.real(4), False, align_to_window=True, return_complex=True)


class stft_default(ComplexComposite):
    """Short-time Fourier transform without padding at the ends."""

    schema = (
        "stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None,"
        " Tensor? window=None, bool normalized=False, bool? onesided=None,"
        " bool? return_complex=None, bool? align_to_window=None) -> Tensor"
    )
    autocast = "float32"

    def compose(self, n_fft, hop_length, win_length, window, *rest):
        return _stft(self, n_fft, hop_length, win_length, window, False, "reflect", *rest)

    def samples(s):
        yield s(s.real(12), 4, return_complex=True)
        yield s(s.real(2, 13), 4, 3, None, s.real(4), return_complex=True)


@in_passing
def _all_nonzero(envelope) -> bool:
    """Whether the envelope of the windows vanishes nowhere; True if values cannot be read now."""
    try:
        return bool((envelope.abs().min() >= 1e-11).item())
    except (DataDependentError, RuntimeError):
        return True


def _istft_samples(s):
    if not s.real().is_complex():
        return
    yield s(s.real(3, 5), 4)
    yield s(s.real(2, 4, 5), 6, 2, 5, length=9)
    yield s(s.real(3, 6), 4, 2, center=False, normalized=True)
    yield s(s.real(4, 5), 4, 1, onesided=False, return_complex=True)


class istft(ComplexComposite):
    """Inverse short-time Fourier transform, by overlapping and adding the frames."""

    schema = (
        "istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None,"
        " Tensor? window=None, bool center=True, bool normalized=False, bool? onesided=None,"
        " int? length=None, bool return_complex=False) -> Tensor"
    )
    samples = _istft_samples

    def compose(self, n_fft, hop_length, win_length, window, center, normalized, onesided, length,
                return_complex):
        hop, width, call = _steps("istft", self, n_fft, hop_length, win_length)
        if not self.is_complex():
            raise DTypeError(
                "istft requires a complex-valued input tensor matching the output from stft with "
                "return_complex=True."
            )
        if self.numel() == 0:
            raise ShapeError(f"{call}: input tensor cannot be empty.")
        if self.ndim < 2:
            raise IndexError(
                "Dimension out of range (expected to be in range of [-2, 1], but got -3)"
            )
        if self.ndim > 3:
            raise ShapeError(
                f"{call}: expected a tensor with 2 or 3 dimensions, but got {self.ndim}"
            )
        bins = self.shape[-2]
        onesided = bins != n_fft if onesided is None else onesided
        wanted = n_fft // 2 + 1 if onesided else n_fft
        if bins != wanted:
            raise ShapeError(
                f"{call}: expected the frequency dimension of the input tensor to have {wanted} "
                f"bins when onesided={onesided}, but got {bins}"
            )
        if not 0 < hop <= width:
            raise RuntimeError(f"{call}: expected 0 < hop_length <= win_length")
        if not 0 < width <= n_fft:
            raise RuntimeError(f"{call}: expected 0 < win_length <= n_fft")
        if window is not None and tuple(window.shape) != (width,):
            raise ShapeError(
                f"{call}: Invalid window shape. window has to be 1D and length of `win_length`"
            )
        if return_complex and onesided:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        if not return_complex and window is not None and window.is_complex():
            raise RuntimeError("Complex windows are incompatible with return_complex=False")
        if window is None:
            window = ops.ones((width,), dtype=self.dtype.to_real(), device=self.device)
        window = window if width == n_fft else _centred_window(window, n_fft, width)
        spectra = (self.unsqueeze(0) if self.ndim == 2 else self).transpose(1, 2)
        frames = _frames(spectra, n_fft, normalized, onesided, return_complex) * window
        return _overlap(self, call, frames, window, hop, center, length)


def _frames(spectra, n_fft, normalized, onesided, return_complex):
    """Signals of the spectra of frames."""
    code = 1 if normalized else 2
    if return_complex:
        return ops._fft_c2c(spectra, [2], code, False)
    if not onesided:
        spectra = spectra.narrow(2, 0, n_fft // 2 + 1)
    return ops._fft_c2r(spectra, [2], code, n_fft)


def _overlap(self, call, frames, window, hop, center, length):
    """Overlapping frames added up and divided by the sum of the squared windows."""
    count, n_fft = frames.shape[1], frames.shape[2]
    total = n_fft + hop * (count - 1)
    signal = ops.unfold_backward(frames, [frames.shape[0], total], 1, n_fft, hop)
    squares = window.pow(2).expand((1, count, n_fft))
    envelope = ops.unfold_backward(squares, [1, total], 1, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - n_fft // 2 if center else total
    kept = min(end, total) - start
    signal, envelope = signal.narrow(1, start, kept), envelope.narrow(1, start, kept)
    if not _all_nonzero(envelope):
        raise RuntimeError(f"{call} window overlap add min: 1")
    signal = signal / envelope
    if end > total:
        signal = ops.constant_pad_nd(signal, [0, end - total])
    return signal.squeeze(0) if self.ndim == 2 else signal


# ---------------------------------------------------------------------------------------------
# Windows


def _window(name, length, periodic, dtype, device, shape):
    """A window `shape(u)`, u from 0 to 1; a periodic one leaves the last point out."""
    dtype = dtype or dt.default()
    if not dtype.is_floating_point:
        raise DTypeError(f"{name} expects floating point dtypes, got: {dtype}")
    if length < 0:
        raise RuntimeError(
            f"{name} requires non-negative window_length, got window_length={length}"
        )
    if length <= 1:
        return ops.ones((length,), dtype=dtype, device=device)
    points = ops.arange(0, length, dtype=dt.float64, device=device)
    return shape(points / (length if periodic else length - 1)).to(dtype)


def _cosines(*weights):
    """The alternating sum of the weights times cos(2 pi i u)."""
    return lambda u: sum(
        (-1) ** i * w * (u * (2 * math.pi * i)).cos() for i, w in enumerate(weights)
    )


def _kaiser(beta):
    def shape(u):
        r = u * 2 - 1
        whole = ops.i0(ops.full((), float(beta), dtype=dt.float64, device=u.device))
        return ops.i0((1 - r * r).clamp(min=0).sqrt() * beta) / whole

    return shape


def _add_windows(name: str, words: str, make, overloads: dict) -> None:
    """The entries of one kind of window; an overload lists its arguments behind the length."""
    options = (
        "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
    )
    for overload, arguments in overloads.items():
        count = len(arguments.split(",")) - 1 if arguments else 0

        def compose(window_length, *rest, count=count):
            periodic, parameters = (rest[0], rest[1:count]) if count else (True, ())
            dtype, _, device, _ = rest[count:]
            return _window(name, window_length, periodic, dtype, device, make(*parameters))

        def samples(s, count=count):
            for length in (1, 5):
                yield s(length, *(False, 0.7, 0.4)[:count])

        full = f"{name}.{overload}" if overload else name
        label = full.replace(".", "_")
        globals()[label] = type(
            label,
            (Composite,),
            dict(
                schema=f"{full}(int window_length, {arguments}{options}) -> Tensor",
                __doc__=words,
                compose=compose,
                samples=samples,
                method=False,
                __module__=__name__,
            ),
        )


_PLAIN = {"": "", "periodic": "bool periodic, "}
_add_windows(
    "hann_window", "0.5 - 0.5 cos(2 pi u), u from 0 to 1.", lambda: _cosines(0.5, 0.5), _PLAIN
)
_add_windows(
    "hamming_window",
    "alpha - beta cos(2 pi u), u from 0 to 1.",
    lambda alpha=0.54, beta=0.46: _cosines(alpha, beta),
    {
        **_PLAIN,
        "periodic_alpha": "bool periodic, float alpha, ",
        "periodic_alpha_beta": "bool periodic, float alpha, float beta, ",
    },
)
_add_windows(
    "blackman_window",
    "0.42 - 0.5 cos(2 pi u) + 0.08 cos(4 pi u), u from 0 to 1.",
    lambda: _cosines(0.42, 0.5, 0.08),
    _PLAIN,
)
_add_windows(
    "bartlett_window",
    "A triangle with zeros at its ends.",
    lambda: lambda u: 1 - (u * 2 - 1).abs(),
    _PLAIN,
)
_add_windows(
    "kaiser_window",
    "I_0(beta sqrt(1 - r^2)) / I_0(beta), r from -1 to 1.",
    lambda beta=12.0: _kaiser(beta),
    {**_PLAIN, "beta": "bool periodic, float beta, "},
)
