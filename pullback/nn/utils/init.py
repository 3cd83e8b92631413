"""Modules made without the work of filling their parameters."""

from __future__ import annotations

import inspect

from ..module import Module


def skip_init(module_cls: type, *args, **kwargs) -> Module:
    """A module whose parameters hold anything; no random numbers are drawn."""
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)
