"""`DeviceContext`: where new tensors go, as a function mode.

`with torch.device("meta"):` and `set_default_device` say the same without a mode, see
`array/device.py`; libraries derive from this one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..array.device import Device
from ..core.op import families
from ..overrides import TorchFunctionMode
from ..table.packets import ops

__all__ = ["DeviceContext", "set_device"]


@functools.cache
def _device_constructors() -> set[Callable]:
    """The functions that make tensors from sizes or values alone."""
    import pullback

    made = {getattr(ops, name) for name, entries in list(families.items())
            if entries[0].kind in ("creation", "random")
            and "Device?" in entries[0].schema and "Tensor self" not in entries[0].schema}
    return made | {pullback.tensor, pullback.as_tensor, pullback.asarray}


class DeviceContext(TorchFunctionMode):
    """A block in which new tensors go to a device unless they are told otherwise."""

    def __init__(self, device: Any) -> None:
        self.device = Device(device)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in _device_constructors() and kwargs.get("device") is None:
            kwargs = {**kwargs, "device": self.device}
        return func(*args, **kwargs)


def set_device(device: Any) -> Callable:
    """Decorate a function so that it makes its tensors on a device."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with Device(device):
                return function(*args, **kwargs)

        return wrapped

    return decorate
