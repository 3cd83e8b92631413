"""Weights of convolutions in another order in memory."""

from __future__ import annotations

from ..conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..module import Module


def _convert(module: Module, kinds: tuple[type, ...], memory_format) -> Module:
    for layer in module.modules():
        if isinstance(layer, kinds):
            layer.weight.data = layer.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format) -> Module:
    """Convert the weights of the convolutions of images."""
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Module, memory_format) -> Module:
    """Convert the weights of the convolutions of volumes."""
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)
