"""Marks in a model where numbers become integers, and where integers become numbers."""

from __future__ import annotations

from typing import Any

from ...core.handle import Tensor
from ...nn import Module


class QuantStub(Module):
    """The identity, where conversion will put a layer that quantises."""

    def __init__(self, qconfig: Any = None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        return x


class DeQuantStub(QuantStub):
    """The identity, where conversion will put a layer that gives numbers again."""


class QuantWrapper(Module):
    """A module between the two marks."""

    def __init__(self, module: Module):
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.add_module("quant", QuantStub(qconfig))
        self.add_module("dequant", DeQuantStub(qconfig))
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X: Tensor) -> Tensor:
        return self.dequant(self.module(self.quant(X)))
