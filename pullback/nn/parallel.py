"""Layers for several devices, as they are with one: programs that use them run unchanged."""

from __future__ import annotations

import sys
from typing import Any

from ..absent import getter as _getter
from ..facade import Facade
from .module import Module

# PyTorch has a file for each class
__path__: list[str] = []
for _name in ("distributed", "data_parallel"):
    sys.modules[f"{__name__}.{_name}"] = Facade(f"{__name__}.{_name}", "nn.parallel")


class DataParallel(Module):
    """A module that would be copied to several GPUs; here there is one device, and it is called.

    Its parameters have `module.` in front of their names, as programs expect.
    """

    def __init__(self, module: Module, device_ids: list | None = None, output_device=None,
                 dim: int = 0) -> None:
        super().__init__()
        self.module, self.dim = module, dim
        self.device_ids = list(device_ids or ())
        self.output_device = output_device

    def forward(self, *inputs, **kwargs) -> Any:
        return self.module(*inputs, **kwargs)


def data_parallel(module: Module, inputs, device_ids=None, output_device=None, dim: int = 0,
                  module_kwargs: dict[str, Any] | None = None):
    """Call a module as `DataParallel` would."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*inputs, **(module_kwargs or {}))


class DistributedDataParallel(Module):
    """A module trained by several processes; there is one here, so it cannot be made."""

    def __init__(self, module: Module, *args, **kwargs) -> None:
        raise ValueError("DistributedDataParallel wants a process group, and there is none: "
                         "Pullback trains in one process. Use the module itself.")


__getattr__ = _getter(__name__)
