"""Layers from integers to integers."""

from .....nn import MaxPool2d
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .embedding_ops import Embedding, EmbeddingBag
from .functional_modules import FloatFunctional, FXFloatFunctional, QFunctional
from .layers import (
    ELU,
    BatchNorm2d,
    BatchNorm3d,
    DeQuantize,
    Dropout,
    GroupNorm,
    Hardswish,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
    LeakyReLU,
    PReLU,
    Quantize,
    ReLU6,
    Sigmoid,
    Softmax,
)
from .linear import Linear

_LATER = {"LSTM": "rnn", "MultiheadAttention": "attention"}  # they are made of these layers
__all__ = [
    "ELU", "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d",
    "ConvTranspose2d", "ConvTranspose3d", "DeQuantize", "Dropout", "Embedding", "EmbeddingBag",
    "FXFloatFunctional", "FloatFunctional", "GroupNorm", "Hardswish",
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm", "LeakyReLU", "Linear",
    "MaxPool2d", "PReLU", "QFunctional", "Quantize", "ReLU6", "Sigmoid",
    "Softmax",
]


def __getattr__(name: str):
    import importlib

    from .....facade import elsewhere

    if name in _LATER:
        return getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    return elsewhere(__name__, name)
