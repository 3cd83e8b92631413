"""Padding of signals, images and volumes."""

from __future__ import annotations

from ..core.handle import Tensor
from . import functional as F
from .module import Module
from .shared import sizes


class _PadNd(Module):
    """Extends the last `rank` dims."""

    rank: int
    mode = "constant"
    value: float | None = None

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


class ConstantPad1d(_ConstantPadNd):
    """Signals extended by a constant."""

    rank = 1


class ConstantPad2d(_ConstantPadNd):
    """Images extended by a constant."""

    rank = 2


class ConstantPad3d(_ConstantPadNd):
    """Volumes extended by a constant."""

    rank = 3


class ZeroPad1d(_PadNd):
    """Signals extended by zeros."""

    rank, value = 1, 0.0


class ZeroPad2d(_PadNd):
    """Images extended by zeros."""

    rank, value = 2, 0.0


class ZeroPad3d(_PadNd):
    """Volumes extended by zeros."""

    rank, value = 3, 0.0


class ReflectionPad1d(_PadNd):
    """Signals extended by their mirror image."""

    rank, mode = 1, "reflect"


class ReflectionPad2d(_PadNd):
    """Images extended by their mirror image."""

    rank, mode = 2, "reflect"


class ReflectionPad3d(_PadNd):
    """Volumes extended by their mirror image."""

    rank, mode = 3, "reflect"


class ReplicationPad1d(_PadNd):
    """Signals extended by their border."""

    rank, mode = 1, "replicate"


class ReplicationPad2d(_PadNd):
    """Images extended by their border."""

    rank, mode = 2, "replicate"


class ReplicationPad3d(_PadNd):
    """Volumes extended by their border."""

    rank, mode = 3, "replicate"


class CircularPad1d(_PadNd):
    """Signals extended by their other end."""

    rank, mode = 1, "circular"


class CircularPad2d(_PadNd):
    """Images extended by their other end."""

    rank, mode = 2, "circular"


class CircularPad3d(_PadNd):
    """Volumes extended by their other end."""

    rank, mode = 3, "circular"
