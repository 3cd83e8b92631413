"""What PyTorch's Python functions add to calls of factories: `device` and `pin_memory`.

Graphs and dispatch modes show them where the user called `zeros(2)` himself.
"""

from __future__ import annotations

import sys
from typing import Any

from .. import errors
from ..array.device import Device
from .op import OpOverload

# where frames between a user's call of a factory and the one who looks are
_SURFACE = tuple(f"pullback.{n}" for n in (
    "core.", "array.", "memory.", "eager.", "table.", "symbolic.", "interp.", "graph.", "ops.",
    "capture.", "cut.", "python_state.", "creation", "generated", "random_api", "tensor",
    "testing.two_tensor", "utils.selective"))
_ENGINE = "pullback.autograd.gradients"


def added(ov: OpOverload, takes_tensor: bool) -> dict[str, Any]:
    """Keyword arguments for the call of a factory that is going on, if the user made it himself."""
    if ov.name == "_to_copy" or not any(s.name == "pin_memory" for s in ov.schema.args):
        return {}
    frame, last = sys._getframe(2), None
    while frame is not None and frame.f_code.co_filename.startswith(errors._INTERNAL):
        last = frame.f_code
        name = frame.f_globals["__name__"]
        if name == _ENGINE and ov.name == "ones_like":
            return {"pin_memory": False, "memory_format": "preserve_format"}  # an implied gradient
        if not name.startswith(_SURFACE):
            return {}  # a function of this package that uses it
        frame = frame.f_back
    if last is OpOverload.__call__.__code__:
        return {}  # the user called the operator itself
    return {"pin_memory": False} if takes_tensor else {
        "device": Device("cpu"), "pin_memory": False}
