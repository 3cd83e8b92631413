"""Layers that round their input by themselves, with what follows them."""

from __future__ import annotations

from typing import Any, ClassVar

from ......core.handle import Tensor
from ....quantized.dynamic import Linear
from ... import modules as nni


class LinearReLU(Linear):
    """A linear layer of numbers and a rectifier."""

    _FLOAT_MODULE: ClassVar[Any] = nni.LinearReLU

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).relu()

    def _get_name(self) -> str:
        return "DynamicQuantizedLinearReLU"


__all__ = ["LinearReLU"]
