"""Windows: weights that fade out towards the ends of a piece of signal.

All take the number of points `M` and `sym`: a symmetric window, for filters, or one period of a
periodic one, for spectral analysis.  The older functions (`hann_window` ...) are operators of the
table, see `ops/stft.py`.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any

from ..array import dtype as dt
from ..core.handle import Tensor
from ..table.packets import ops

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



_COMMON = (("sym", True), ("dtype", None), ("layout", "strided"), ("device", None),
           ("requires_grad", False))  # fmt: skip


def _window(shape_of: Callable, name: str = "") -> Callable[..., Tensor]:
    """The public function of a window.

    `shape_of(sym, **own)` checks the window's own arguments and gives a function of the numbers of
    the points and of the last of them.
    """
    name = name or shape_of.__name__

    def window(M: int, *, sym: Any = True, dtype=None, layout: Any = "strided", device=None,
               requires_grad: Any = False, **own) -> Tensor:  # fmt: skip
        shape = shape_of(sym, **own)
        dtype = dt.as_dtype(dtype) or dt.default()
        if M < 0:
            raise ValueError(f"{name} requires non-negative window length, got M={M}")
        if layout != "strided":
            raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
        if dtype not in (dt.float32, dt.float64):
            raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
        if M <= 1:
            made = ops.ones((M,), dtype=dtype, device=device)
        else:
            points = ops.arange(0, M, dtype=dt.float64, device=device)
            made = shape(points, M - 1 if sym else M).to(dtype)
        return made.requires_grad_() if requires_grad else made

    functools.update_wrapper(window, shape_of)
    del window.__wrapped__
    own = list(inspect.signature(shape_of).parameters.values())[1:]
    common = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=d) for n, d in _COMMON]
    first = inspect.Parameter("M", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=int)
    window.__signature__ = inspect.Signature([first, *own, *common], return_annotation=Tensor)
    return window


@_window
def exponential(sym, *, center: float | None = None, tau: float = 1.0):
    """exp(-|n - center| / tau)."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    return lambda n, span: (-(n - (span / 2 if center is None else center)).abs() / tau).exp()


@_window
def cosine(sym):
    """Half a period of a sine."""
    return lambda n, span: ((n + 0.5) * (math.pi / (span + 1))).sin()


@_window
def gaussian(sym, *, std: float = 1.0):
    """The bell curve of the given standard deviation."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return lambda n, span: (((n - span / 2) / std).pow(2) * -0.5).exp()


@_window
def kaiser(sym, *, beta: float = 12.0):
    """I_0(beta sqrt(1 - r^2)) / I_0(beta), r from -1 to 1."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")

    def shape(n, span):
        r = n * (2 / span) - 1
        whole = ops.i0(ops.full((), float(beta), dtype=dt.float64, device=n.device))
        return ops.i0((1 - r * r).clamp(min=0).sqrt() * beta) / whole

    return shape


@_window
def bartlett(sym):
    """A triangle with zeros at its ends."""
    return lambda n, span: 1 - (n * (2 / span) - 1).abs()


def _cosines(a: Iterable):
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = [float(v) for v in a]
    if not weights:
        raise ValueError("Coefficients cannot be empty")

    def shape(n, span):
        u = n * (2 * math.pi / span)
        return sum((-1) ** i * weight * (u * i).cos() for i, weight in enumerate(weights))

    return shape


_sum_of_cosines = functools.partial(_window, name="general_cosine")


@_sum_of_cosines
def general_cosine(sym, *, a: Iterable):
    """The alternating sum of a_i cos(i u), u from 0 to 2 pi."""
    return _cosines(a)


@_sum_of_cosines
def general_hamming(sym, *, alpha: float = 0.54):
    """alpha - (1 - alpha) cos(u)."""
    return _cosines([alpha, 1.0 - alpha])


@_sum_of_cosines
def hamming(sym):
    """0.54 - 0.46 cos(u)."""
    return _cosines([0.54, 1.0 - 0.54])


@_sum_of_cosines
def hann(sym):
    """0.5 - 0.5 cos(u)."""
    return _cosines([0.5, 0.5])


@_sum_of_cosines
def blackman(sym):
    """0.42 - 0.5 cos(u) + 0.08 cos(2u)."""
    return _cosines([0.42, 0.5, 0.08])


@_sum_of_cosines
def nuttall(sym):
    """Nuttall's four-term window of small side lobes."""
    return _cosines([0.3635819, 0.4891775, 0.1365995, 0.0106411])
