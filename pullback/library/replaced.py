"""Other kernels for operators of the table: `Library("aten", "IMPL").impl("sum", function, "CPU")`.

The functions belong to a mode that is asked after all others, below the tape; it is active while
there are any, in the thread that registered them.  Programs without them pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .. import errors
from ..array import device as dev
from ..core.handle import is_buffer, tensors_in
from ..core.overload import OpOverload
from ..threads.state import count, state


class _Kernels:
    """Asked for every operator: has somebody given it another kernel?"""

    hidden = True  # it is none of the user's modes

    def __init__(self) -> None:
        self.functions: dict[tuple, list] = {}  # (overload, device type or None) -> functions

    def __torch_dispatch__(self, function: Any, kinds: tuple, args: tuple = (),
                           kwargs: dict | None = None) -> Any:
        if kinds:
            return NotImplemented  # classes that take part are asked themselves
        kwargs = kwargs or {}
        devices = {dev.lookup(t._payload)[0].partition(":")[0]
                   for t in tensors_in((*args, *kwargs.values())) if is_buffer(t._payload)}
        for device in (*devices, None):
            found = self.functions.get((repr(function), device))
            if found:
                return found[-1](*args, **kwargs)
        return function(*args, **kwargs)


_kernels = _Kernels()


def replace(name: str, function: Callable, key: str) -> Callable[[], None]:
    """Give an operator another kernel; what is returned takes it back."""
    from .. import ops

    base, _, overload = name.partition(".")
    found = getattr(getattr(ops.aten, base, None), overload or "default", None)
    if not isinstance(found, OpOverload):
        raise errors.UnknownOperator(errors.text(
            f"operator aten::{name} does not exist ({errors.user_line(3)})",
            cure=errors.UnknownOperator.cure))
    key = key.lower()
    if key not in ("cpu", "cuda", "compositeexplicitautograd"):
        raise errors.NotInThisBuild(errors.text(
            f"aten::{name} cannot be given a function for the dispatch key {key} "
            f"({errors.user_line(3)})",
            cure="give it a kernel (CPU, CUDA, CompositeExplicitAutograd), or use a "
            "TorchFunctionMode, which is asked above the tape"))
    place = repr(found), key if key in ("cpu", "cuda") else None
    _kernels.functions.setdefault(place, []).append(function)
    if not any(mode is _kernels for mode, _ in state.dispatch.operator_modes):
        state.dispatch.operator_modes = ((_kernels, 0), *state.dispatch.operator_modes)
        count("DISPATCHES", 1)
        count("ACTIVE", 1)
    return partial(_restore, place, function)


def _restore(place: tuple, function: Callable) -> None:
    left = _kernels.functions[place]
    left.remove(function)
    if not left:
        del _kernels.functions[place]
    if not _kernels.functions:
        state.dispatch.operator_modes = tuple(
            m for m in state.dispatch.operator_modes if m[0] is not _kernels)
        count("DISPATCHES", -1)
        count("ACTIVE", -1)
