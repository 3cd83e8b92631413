"""What PyTorch's Python functions add to calls of factories: `device` and `pin_memory`.

Graphs and dispatch modes show them where the user called `zeros(2)` himself: neither an overload,
nor something that calls operators for other reasons (`called_by`, `Recorder.composing`).
"""

from __future__ import annotations

from typing import Any

from ..array.device import Device
from ..core.overload import OpOverload
from ..threads.blocks import called_by
from ..threads.state import calling


def added(ov: OpOverload, takes_tensor: bool) -> dict[str, Any]:
    """Keyword arguments for the call of a factory that is going on, if the user made it himself."""
    if ov.name == "_to_copy" or not any(s.name == "pin_memory" for s in ov.schema.args):
        return {}
    caller = calling.by
    if caller is called_by.SEED and ov.name == "ones_like":
        return {"pin_memory": False, "memory_format": "preserve_format"}
    if caller is ov or caller is called_by.FORMULA:
        return {}
    return {"pin_memory": False} if takes_tensor else {
        "device": Device("cpu"), "pin_memory": False}
