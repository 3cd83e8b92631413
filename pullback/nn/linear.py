"""Linear layers."""

from __future__ import annotations

import math

from ..core.handle import Tensor
from . import functional as F
from . import init
from .module import Module
from .shared import new


class Identity(Module):
    """Returns its input."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """`input @ weight.T + bias`."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device=None,
                 dtype=None) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = new((out_features, in_features), device, dtype)
        self.register_parameter("bias", new((out_features,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform numbers within one over the root of the number of inputs."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (f"in_features={self.in_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}")


class NonDynamicallyQuantizableLinear(Linear):
    """A `Linear` under another name: the output projection of `MultiheadAttention`."""


class Bilinear(Module):
    """`input1 @ weight[k] @ input2 + bias[k]` for each k."""

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True,
                 device=None, dtype=None) -> None:
        super().__init__()
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        self.weight = new((out_features, in1_features, in2_features), device, dtype)
        self.register_parameter("bias", new((out_features,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform numbers within one over the root of the number of first inputs."""
        if self.in1_features <= 0:
            raise ValueError("in1_features must be > 0, but got (in1_features="
                             f"{self.in1_features})")
        bound = 1 / math.sqrt(self.in1_features)
        for param in (self.weight, self.bias):
            if param is not None:
                init.uniform_(param, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
                f"out_features={self.out_features}, bias={self.bias is not None}")
