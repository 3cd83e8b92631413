"""Neural networks: `Module`, layers, losses, and `functional` without state.

A file of layers is loaded when one of its names is used for the first time.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from ..facade import Shelf, elsewhere
from . import functional as functional
from . import init as init
from . import parameter as parameter
from . import utils as utils
from .module import Module
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

if TYPE_CHECKING:  # for editors and type checkers
    from . import attention as attention
    from . import common_types as common_types
    from . import grad as grad
    from . import modules as modules
    from . import parallel as parallel
    from .activations import *
    from .adaptive import *
    from .attention.layer import *
    from .containers import *
    from .conv import *
    from .dropout import *
    from .embedding import *
    from .lazy import *
    from .linear import *
    from .linear_cross_entropy import *
    from .losses import *
    from .normalisation import *
    from .padding import *
    from .parallel import *
    from .pooling import *
    from .recurrent import *
    from .resampling import *
    from .reshaping import *
    from .shared import factory_kwargs as factory_kwargs
    from .transformer import *

# file -> what it offers here
_FILES = {
    "linear": "Identity Linear Bilinear",
    "embedding": "Embedding EmbeddingBag",
    "conv": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "pooling": "MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d "
               "AvgPool1d AvgPool2d AvgPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d "
               "AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d "
               "FractionalMaxPool2d FractionalMaxPool3d LPPool1d LPPool2d LPPool3d",
    "padding": "ConstantPad1d ConstantPad2d ConstantPad3d ZeroPad1d ZeroPad2d ZeroPad3d "
               "ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d "
               "ReplicationPad2d ReplicationPad3d CircularPad1d CircularPad2d CircularPad3d",
    "resampling": "Upsample UpsamplingNearest2d UpsamplingBilinear2d",
    "reshaping": "Flatten Unflatten Unfold Fold PixelShuffle PixelUnshuffle ChannelShuffle",
    "normalisation": "BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm1d InstanceNorm2d "
                     "InstanceNorm3d GroupNorm LocalResponseNorm CrossMapLRN2d LayerNorm "
                     "RMSNorm SyncBatchNorm",
    "activations": "Threshold Hardtanh ReLU6 Hardsigmoid Hardswish Mish SELU CELU GLU Hardshrink "
                   "Softshrink Softsign Tanhshrink LogSigmoid Softmin Softmax2d PReLU RReLU ReLU "
                   "LeakyReLU ELU GELU SiLU Tanh Sigmoid Softplus Softmax LogSoftmax",
    "dropout": "Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout",
    "losses": "MSELoss L1Loss SmoothL1Loss HuberLoss KLDivLoss NLLLoss NLLLoss2d CrossEntropyLoss "
              "BCELoss BCEWithLogitsLoss CosineSimilarity PairwiseDistance PoissonNLLLoss "
              "GaussianNLLLoss CTCLoss HingeEmbeddingLoss CosineEmbeddingLoss "
              "MarginRankingLoss SoftMarginLoss MultiMarginLoss MultiLabelMarginLoss "
              "MultiLabelSoftMarginLoss TripletMarginLoss TripletMarginWithDistanceLoss",
    "recurrent": "RNNBase RNN GRU LSTM RNNCellBase RNNCell GRUCell LSTMCell",
    "attention.layer": "MultiheadAttention",
    "adaptive": "AdaptiveLogSoftmaxWithLoss",
    "linear_cross_entropy": "LinearCrossEntropyLoss LinearCrossEntropyOptions",
    "transformer": "Transformer TransformerEncoder TransformerDecoder TransformerEncoderLayer "
                   "TransformerDecoderLayer",
    "lazy": "LazyLinear LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d "
            "LazyConvTranspose3d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d "
            "LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d",
    "parallel": "DataParallel",
    "shared": "factory_kwargs",
    "containers": "Container Sequential ModuleList ModuleDict ParameterList ParameterDict",
}
_HOME = {name: file for file, names in _FILES.items() for name in names.split()}

__all__ = ["Module", "Parameter", "Buffer", "UninitializedBuffer", "UninitializedParameter", *_HOME,
           "functional", "init", "parameter", "utils"]
_MODULES = ("attention", "common_types", "grad", "modules", "parallel")


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    elif name in _MODULES:
        value = importlib.import_module(f".{name}", __name__)
    else:
        return elsewhere(__name__, name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_HOME, *_MODULES})


sys.modules[__name__].__class__ = Shelf
