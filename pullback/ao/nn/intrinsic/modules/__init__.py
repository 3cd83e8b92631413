"""Layers that are taken together: a convolution with its norm and rectifier, as one module."""

from __future__ import annotations

from typing import Any

from ..... import nn


class _FusedModule(nn.Sequential):
    """Some layers that count as one."""


def _fused(name: str, *kinds: type) -> Any:
    """A class of modules that are made of layers of these classes."""

    def __init__(self: nn.Sequential, *layers: nn.Module) -> None:
        if [type(layer) for layer in layers] != list(kinds):
            raise AssertionError("Incorrect types for input modules: "
                                 + " and ".join(type(layer).__name__ for layer in layers))
        nn.Sequential.__init__(self, *layers)

    doc = f"{', '.join(kind.__name__ for kind in kinds)}, as one module."
    return type(name, (_FusedModule,), {"__init__": __init__, "__doc__": doc,
                                        "__module__": __name__, "__qualname__": name})


ConvReLU1d = _fused("ConvReLU1d", nn.Conv1d, nn.ReLU)
ConvReLU2d = _fused("ConvReLU2d", nn.Conv2d, nn.ReLU)
ConvReLU3d = _fused("ConvReLU3d", nn.Conv3d, nn.ReLU)
LinearReLU = _fused("LinearReLU", nn.Linear, nn.ReLU)
ConvBn1d = _fused("ConvBn1d", nn.Conv1d, nn.BatchNorm1d)
ConvBn2d = _fused("ConvBn2d", nn.Conv2d, nn.BatchNorm2d)
ConvBn3d = _fused("ConvBn3d", nn.Conv3d, nn.BatchNorm3d)
ConvBnReLU1d = _fused("ConvBnReLU1d", nn.Conv1d, nn.BatchNorm1d, nn.ReLU)
ConvBnReLU2d = _fused("ConvBnReLU2d", nn.Conv2d, nn.BatchNorm2d, nn.ReLU)
ConvBnReLU3d = _fused("ConvBnReLU3d", nn.Conv3d, nn.BatchNorm3d, nn.ReLU)
BNReLU2d = _fused("BNReLU2d", nn.BatchNorm2d, nn.ReLU)
BNReLU3d = _fused("BNReLU3d", nn.BatchNorm3d, nn.ReLU)
LinearBn1d = _fused("LinearBn1d", nn.Linear, nn.BatchNorm1d)
LinearLeakyReLU = _fused("LinearLeakyReLU", nn.Linear, nn.LeakyReLU)
LinearTanh = _fused("LinearTanh", nn.Linear, nn.Tanh)


class ConvAdd2d(_FusedModule):
    """A convolution, and another tensor added."""

    def __init__(self, conv: nn.Module, add: Any):
        super().__init__(conv)
        self.add = add

    def forward(self, x1: Any, x2: Any) -> Any:
        return self.add(self[0](x1), x2)


class ConvAddReLU2d(_FusedModule):
    """A convolution, another tensor added, and a rectifier."""

    def __init__(self, conv: nn.Module, add: Any, relu: nn.Module):
        super().__init__(conv)
        self.add, self.relu = add, relu

    def forward(self, x1: Any, x2: Any) -> Any:
        return self.relu(self.add(self[0](x1), x2))


__all__ = [
    "BNReLU2d", "BNReLU3d", "ConvAdd2d", "ConvAddReLU2d", "ConvBn1d", "ConvBn2d", "ConvBn3d",
    "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d",
    "LinearBn1d", "LinearLeakyReLU", "LinearReLU", "LinearTanh",
]


def __getattr__(name: str):
    from .....facade import elsewhere

    return elsewhere(__name__, name)
