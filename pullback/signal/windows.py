"""Windows: weights that fade out towards the ends of a piece of signal.

All take the number of points `M` and `sym`: a symmetric window, for filters, or one period of a
periodic one, for spectral analysis.  The older functions (`hann_window` ...) are operators of the
table, see `ops/stft.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..core import dtype as dt
from ..core.handle import Tensor
from ..core.table import ops

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _window(name: str, M: int, sym: bool, dtype, layout, device, requires_grad: bool, shape):
    """A window of `shape(n, span)`, n the numbers of the points and span that of the last one."""
    dtype = dt.as_dtype(dtype) or dt.default()
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout != "strided":
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (dt.float32, dt.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    if M <= 1:
        window = ops.ones((M,), dtype=dtype, device=device)
    else:
        points = ops.arange(0, M, dtype=dt.float64, device=device)
        window = shape(points, M - 1 if sym else M).to(dtype)
    return window.requires_grad_() if requires_grad else window


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype=None,
    layout="strided",
    device=None,
    requires_grad: bool = False,
) -> Tensor:
    """exp(-|n - center| / tau)."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def shape(n, span):
        return (-(n - (span / 2 if center is None else center)).abs() / tau).exp()

    return _window("exponential", M, sym, dtype, layout, device, requires_grad, shape)


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype=None,
    layout="strided",
    device=None,
    requires_grad: bool = False,
) -> Tensor:
    """Half a period of a sine."""

    def shape(n, span):
        return ((n + 0.5) * (math.pi / (span + 1))).sin()

    return _window("cosine", M, sym, dtype, layout, device, requires_grad, shape)


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype=None,
    layout="strided",
    device=None,
    requires_grad: bool = False,
) -> Tensor:
    """The bell curve of the given standard deviation."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")

    def shape(n, span):
        return (((n - span / 2) / std).pow(2) * -0.5).exp()

    return _window("gaussian", M, sym, dtype, layout, device, requires_grad, shape)


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype=None,
    layout="strided",
    device=None,
    requires_grad: bool = False,
) -> Tensor:
    """I_0(beta sqrt(1 - r^2)) / I_0(beta), r from -1 to 1."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")

    def shape(n, span):
        r = n * (2 / span) - 1
        whole = ops.i0(ops.full((), float(beta), dtype=dt.float64, device=device))
        return ops.i0((1 - r * r).clamp(min=0).sqrt() * beta) / whole

    return _window("kaiser", M, sym, dtype, layout, device, requires_grad, shape)


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype=None,
    layout="strided",
    device=None,
    requires_grad: bool = False,
) -> Tensor:
    """A triangle with zeros at its ends."""

    def shape(n, span):
        return 1 - (n * (2 / span) - 1).abs()

    return _window("bartlett", M, sym, dtype, layout, device, requires_grad, shape)


def general_cosine(
    M: int,
    *,
    a: Iterable,
    sym: bool = True,
    dtype=None,
    layout="strided",
    device=None,
    requires_grad: bool = False,
) -> Tensor:
    """The alternating sum of a_i cos(i u), u from 0 to 2 pi."""
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = [float(v) for v in a]
    if not weights:
        raise ValueError("Coefficients cannot be empty")

    def shape(n, span):
        u = n * (2 * math.pi / span)
        return sum((-1) ** i * weight * (u * i).cos() for i, weight in enumerate(weights))

    return _window("general_cosine", M, sym, dtype, layout, device, requires_grad, shape)


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype=None,
    layout="strided",
    device=None,
    requires_grad: bool = False,
) -> Tensor:
    """alpha - (1 - alpha) cos(u)."""
    return general_cosine(
        M,
        a=[alpha, 1.0 - alpha],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def hamming(
    M: int,
    *,
    sym: bool = True,
    dtype=None,
    layout="strided",
    device=None,
    requires_grad: bool = False,
) -> Tensor:
    """0.54 - 0.46 cos(u)."""
    return general_hamming(
        M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def hann(
    M: int,
    *,
    sym: bool = True,
    dtype=None,
    layout="strided",
    device=None,
    requires_grad: bool = False,
) -> Tensor:
    """0.5 - 0.5 cos(u)."""
    return general_hamming(
        M,
        alpha=0.5,
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype=None,
    layout="strided",
    device=None,
    requires_grad: bool = False,
) -> Tensor:
    """0.42 - 0.5 cos(u) + 0.08 cos(2u)."""
    return general_cosine(
        M,
        a=[0.42, 0.5, 0.08],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype=None,
    layout="strided",
    device=None,
    requires_grad: bool = False,
) -> Tensor:
    """Nuttall's four-term window of small side lobes."""
    return general_cosine(
        M,
        a=[0.3635819, 0.4891775, 0.1365995, 0.0106411],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )
