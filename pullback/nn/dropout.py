"""Modules that zero elements or channels at random while training."""

from __future__ import annotations

from ..core.handle import Tensor
from . import functional as F
from .shared import Family


class _DropoutNd(Family, shown=("p", "inplace")):
    """A dropout with a probability."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.p, self.training, self.inplace)


class Dropout(_DropoutNd, function=F.dropout):
    """Zeroes elements at random while training."""


class Dropout1d(_DropoutNd, function=F.dropout1d):
    """Zeroes whole channels of (N, C, L) or (C, L) while training."""


class Dropout2d(_DropoutNd, function=F.dropout2d):
    """Zeroes whole channels of (N, C, H, W) while training."""


class Dropout3d(_DropoutNd, function=F.dropout3d):
    """Zeroes whole channels of (N, C, D, H, W) or (C, D, H, W) while training."""


class AlphaDropout(_DropoutNd, function=F.alpha_dropout):
    """Dropout that keeps the mean and variance of self-normalising networks."""


class FeatureAlphaDropout(_DropoutNd, function=F.feature_alpha_dropout):
    """`AlphaDropout` of whole channels."""
