"""PyTorch's module tree `nn.modules`: the same classes under the paths that programs import.

The classes live in the files of `nn`.  Each of PyTorch's files is a `Facade` that looks a name up
where it is here; nothing is copied.
"""

from __future__ import annotations

import sys
from typing import Any

from ...facade import Facade

# PyTorch's file -> the files of `nn` whose names it offers
_PLACES = {
    "activation": "activations attention.layer",
    "adaptive": "adaptive",
    "batchnorm": "normalisation lazy",
    "channelshuffle": "reshaping",
    "container": "containers",
    "conv": "conv lazy",
    "distance": "losses",
    "dropout": "dropout",
    "flatten": "reshaping",
    "fold": "reshaping",
    "instancenorm": "normalisation lazy",
    "lazy": "lazy",
    "linear": "linear lazy",
    "linear_cross_entropy": "linear_cross_entropy",
    "linear_cross_entropy_options": "linear_cross_entropy",
    "loss": "losses linear_cross_entropy",
    "module": "module module_hooks",
    "normalization": "normalisation",
    "padding": "padding",
    "pixelshuffle": "reshaping",
    "pooling": "pooling",
    "rnn": "recurrent",
    "sparse": "embedding",
    "transformer": "transformer",
    "upsampling": "resampling",
    "_functions": "module_hooks",
}
_NN = __name__.rpartition(".")[0].partition(".")[2]  # "nn": places are relative to the package
_ALL = Facade(__name__, f"{_NN} {_NN}.module {_NN}.*")


def _facade(name: str, places: str) -> Facade:
    own = " ".join(f"{_NN}.{place}" for place in places.split())
    return Facade(f"{__name__}.{name}", own, f"{_NN} {_NN}.modules.utils {_NN}.*")


for _name, _places in _PLACES.items():
    sys.modules[f"{__name__}.{_name}"] = globals()[_name] = _facade(_name, _places)

from . import utils as utils


def __getattr__(name: str) -> Any:
    return getattr(_ALL, name)


def __dir__():
    return sorted({*globals(), *dir(_ALL)})
