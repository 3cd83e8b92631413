"""The capture for export by itself: a module or function as a `GraphModule` of the same calls.

PyTorch has it in `torch._dynamo.functional_export`.  The graph is the one of `export`: composite
operators stay whole, parameters and buffers are attributes under their names, and what is written
to buffers and inputs is written at the end of the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import errors
from ..export.trace import export
from ..nn.module import Module

__all__ = ["dynamo_graph_capture_for_export"]


class _Function(Module):
    """A function as a module without parameters."""

    def __init__(self, function: Callable):
        super().__init__()
        self.__dict__["forward"] = function


def dynamo_graph_capture_for_export(fn: Callable, constraints: list | None = None) -> Callable:
    """A function of the arguments that captures `fn` for them."""
    return _dynamo_graph_capture_for_export(fn, constraints=constraints)


def _dynamo_graph_capture_for_export(
    mod: Callable, *, constraints: list | None = None, dynamic_shapes: Any = None,
) -> Callable:
    """The same; sizes that may vary are said as for `export`."""
    if constraints:
        raise errors.ExportError(errors.text(
            f"constraints are not taken here ({errors.user_line()})", f"given: {constraints}",
            "say which sizes vary by dynamic_shapes="))

    def capture(*args: Any, **kwargs: Any) -> Any:
        module = mod if isinstance(mod, Module) else _Function(mod)
        return export(module, args, kwargs, dynamic_shapes=dynamic_shapes).module()

    return capture
