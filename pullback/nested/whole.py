"""Reductions of nested tensors to one number: those of all elements, in whatever parts they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.handle import Tensor
from ..parts.rules import rule
from ..table.packets import ops


def whole(cls: type, name: str, elements: Callable[[Any], Tensor]) -> None:
    """The rule of a class for a reduction without dims; other overloads have their own."""

    @rule(cls, name)
    def function(t: Tensor, *args: Any) -> Any:
        if any(a is not None and (isinstance(a, (Tensor, int, float, list, tuple))) for a in args):
            return NotImplemented
        dtype = {"dtype": args[0]} if args and args[0] is not None else {}
        return getattr(ops, name)(elements(t), **dtype)
