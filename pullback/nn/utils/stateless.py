"""The old door to `func.functional_call`; the work is done in `nn/stateless.py`."""

from __future__ import annotations

import warnings
from typing import Any

from ...core.handle import Tensor
from ..module import Module
from ..stateless import _call
from ..stateless import replaced as _reparametrize_module  # noqa: F401  by PyTorch's name


def functional_call(module: Module, parameters_and_buffers: dict[str, Tensor], args=None,
                    kwargs: dict | None = None, *, tie_weights: bool = True,
                    strict: bool = False) -> Any:
    """Call a module with other parameters and buffers than its own."""
    warnings.warn("`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and "
                  "will be removed in a future version of PyTorch. Please use "
                  "`torch.func.functional_call` instead which is a drop-in replacement.",
                  FutureWarning, stacklevel=2)
    return _call(module, parameters_and_buffers, args, kwargs, tie_weights, strict)
