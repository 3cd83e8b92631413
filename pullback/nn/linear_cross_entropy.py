"""Cross entropy of a linear map, as one layer, and how it may save memory."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..array import dtype as dt
from ..core.handle import Tensor
from . import functional as F
from .linear import Linear
from .losses import _WeightedLoss

_POLICIES = ("auto", "accurate", "balanced", "compact")


@dataclass
class LinearCrossEntropyOptions:
    """How `linear_cross_entropy` may save memory; the value does not depend on it."""

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: dt.DType | None = None

    def __post_init__(self):
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method not in (None, "auto"):
            name, colon, factor = self.chunking_method.partition(":")
            if name != "aspect_ratio" or colon and not (factor.isdigit() and int(factor)):
                raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        rows = self.batch_chunk_size
        if rows is not None and not (isinstance(rows, int) and rows > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {rows!r}")
        if self.acc_dtype not in (None, dt.float16, dt.bfloat16, dt.float32, dt.float64):
            raise ValueError("acc_dtype must be None or a floating dtype of 16 to 64 bits, got "
                             f"{self.acc_dtype!r}")


class LinearCrossEntropyLoss(_WeightedLoss):
    """Cross entropy between a linear map of the input and classes or class probabilities."""

    def __init__(self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (),
                 bias: bool = False, device=None, dtype=None, reduction: str = "mean",
                 weight: Tensor | None = None, ignore_index: int | None = None,
                 label_smoothing: float = 0.0,
                 options: LinearCrossEntropyOptions | None = None) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got "
                               f"{tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError("expected label_smoothing to be in range [0, 1], got "
                               f"{label_smoothing}")
        super().__init__(weight, None, None, reduction)
        self.num_classes, self.out_features = num_classes, out_features
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing
        self.linear = Linear(in_features, num_classes * math.prod(out_features), bias=bias,
                             device=device, dtype=dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        rows, bias = [self.num_classes, *self.out_features], self.linear.bias
        return F.linear_cross_entropy(
            input, self.linear.weight.reshape([*rows, self.linear.in_features]), target,
            linear_bias=None if bias is None else bias.reshape(rows), weight=self.weight,
            reduction=self.reduction, ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing, options=self.options)

    def extra_repr(self) -> str:
        shown = {"in_features": self.linear.in_features, "num_classes": self.num_classes,
                 "out_features": self.out_features, "bias": self.linear.bias is not None,
                 "reduction": self.reduction, "ignore_index": self.ignore_index,
                 "label_smoothing": self.label_smoothing, "options": self.options}
        return ", ".join(f"{name}={value}" for name, value in shown.items())
