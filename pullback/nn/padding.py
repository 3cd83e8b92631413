"""Padding of signals, images and volumes."""

from __future__ import annotations

from ..core.handle import Tensor
from . import functional as F
from .shared import Family, sizes


class _PadNd(Family):
    """Extends the last `rank` dims."""

    mode = "constant"
    value: float | None = None

    def __init_subclass__(cls, *, mode: str | None = None, value: float | None = None,
                          **kwargs) -> None:
        super().__init_subclass__(**kwargs)
        if mode is not None:
            cls.mode = mode
        if value is not None:
            cls.value = value

    def __init__(self, padding) -> None:
        super().__init__()
        self.padding = sizes(padding, 2 * self.rank)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return str(self.padding)


class _ConstantPadNd(_PadNd):
    def __init__(self, padding, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd, rank=1):
    """Signals extended by a constant."""


class ConstantPad2d(_ConstantPadNd, rank=2):
    """Images extended by a constant."""


class ConstantPad3d(_ConstantPadNd, rank=3):
    """Volumes extended by a constant."""


class ZeroPad1d(_PadNd, rank=1, value=0.0):
    """Signals extended by zeros."""


class ZeroPad2d(_PadNd, rank=2, value=0.0):
    """Images extended by zeros."""


class ZeroPad3d(_PadNd, rank=3, value=0.0):
    """Volumes extended by zeros."""


class ReflectionPad1d(_PadNd, rank=1, mode="reflect"):
    """Signals extended by their mirror image."""


class ReflectionPad2d(_PadNd, rank=2, mode="reflect"):
    """Images extended by their mirror image."""


class ReflectionPad3d(_PadNd, rank=3, mode="reflect"):
    """Volumes extended by their mirror image."""


class ReplicationPad1d(_PadNd, rank=1, mode="replicate"):
    """Signals extended by their border."""


class ReplicationPad2d(_PadNd, rank=2, mode="replicate"):
    """Images extended by their border."""


class ReplicationPad3d(_PadNd, rank=3, mode="replicate"):
    """Volumes extended by their border."""


class CircularPad1d(_PadNd, rank=1, mode="circular"):
    """Signals extended by their other end."""


class CircularPad2d(_PadNd, rank=2, mode="circular"):
    """Images extended by their other end."""


class CircularPad3d(_PadNd, rank=3, mode="circular"):
    """Volumes extended by their other end."""
