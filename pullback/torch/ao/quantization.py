"""Where a quantiser would act: `QuantStub` and `DeQuantStub` let everything through.

Models that can be quantised carry these two; they train and run without a quantiser.  Converting
models is not provided.
"""

from __future__ import annotations

from ... import errors
from ...core.handle import Tensor
from ...nn import Module

__all__ = ["DeQuantStub", "QuantStub"]


class QuantStub(Module):
    """The identity, where a quantiser would begin."""

    def __init__(self, qconfig=None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        return x


class DeQuantStub(QuantStub):
    """The identity, where a quantiser would end."""


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(errors.text(
        f"torch.ao.quantization.{name} is not provided",
        cure="train the model as it is, and quantise it with PyTorch"))
