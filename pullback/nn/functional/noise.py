"""Dropout of elements and of channels."""

from __future__ import annotations

import warnings

from ...core.handle import Tensor
from ...table.packets import ops
from ...tensor.overridable import asks_in as _asks_in
from ...tensor.overridable import taken_over as _taken_over
from ...threads.state import fast
from .arguments import _activation

_asks = _asks_in(globals())


def _checked(p: float) -> float:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return p


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability p and scale the rest by 1 / (1 - p)."""
    if _asks and (taken := _taken_over(dropout, locals())):
        return taken[0]
    _checked(p)
    if not training or p == 0:
        return ops.dropout(input, p, training) if fast["ACTIVE"] else input
    value = ops.dropout(input, p, True)
    return input.copy_(value) if inplace else value


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False,
                  inplace: bool = False) -> Tensor:
    """Dropout that keeps the mean and variance of self-normalising networks."""
    if _asks and (taken := _taken_over(alpha_dropout, locals())):
        return taken[0]
    return _activation("alpha_dropout", inplace, input, _checked(p), training)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False,
                          inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels."""
    if _asks and (taken := _taken_over(feature_alpha_dropout, locals())):
        return taken[0]
    return _activation("feature_alpha_dropout", inplace, input, _checked(p), training)


def _channel_dropout(rank: int, input: Tensor, p: float, training: bool,
                     inplace: bool) -> Tensor:
    """Dropout of whole channels of one example (rank + 1 dims) or of a batch (rank + 2)."""
    if input.ndim not in (rank + 1, rank + 2):
        name = f"dropout{rank}d"
        warnings.warn(f"{name}: Received a {input.ndim}-D input to {name}, which is "
                      "deprecated and will result in an error in a future release.", stacklevel=3)
    _checked(p)
    single = input.ndim == rank + 1 and rank != 2
    if single:
        input = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    out = _activation("feature_dropout", inplace, input, p, training)
    if single:
        out = out.squeeze_(0) if inplace else out.squeeze(0)
    return out


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True,
              inplace: bool = False) -> Tensor:
    """Zero whole channels of (N, C, L) or (C, L) with probability p."""
    if _asks and (taken := _taken_over(dropout1d, locals())):
        return taken[0]
    if input.ndim not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D "
                           "input. Note that dropout1d exists to provide channel-wise dropout on "
                           "inputs with 1 spatial dimension, a channel dimension, and an optional "
                           "batch dimension (i.e. 2D or 3D inputs).")
    return _channel_dropout(1, input, p, training, inplace)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True,
              inplace: bool = False) -> Tensor:
    """Zero whole channels of (N, C, H, W) with probability p."""
    if _asks and (taken := _taken_over(dropout2d, locals())):
        return taken[0]
    if input.ndim == 3:
        warnings.warn("dropout2d: Received a 3D input to dropout2d and assuming that channel-wise "
                      "1D dropout behavior is desired - input is interpreted as shape (N, C, L).",
                      stacklevel=2)
    return _channel_dropout(2, input, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True,
              inplace: bool = False) -> Tensor:
    """Zero whole channels of (N, C, D, H, W) or (C, D, H, W) with probability p."""
    if _asks and (taken := _taken_over(dropout3d, locals())):
        return taken[0]
    return _channel_dropout(3, input, p, training, inplace)
