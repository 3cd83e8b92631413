"""Inputs whose shapes or strides a captured function changed in place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...autograd.grad_mode import set_grad_enabled
from ...core.surface import inplace_view
from .effect import Call, Effect


@dataclass(slots=True)
class ChangeMetadata(Effect):
    """An input that became a view of its own memory, by `t_()` and the like."""

    input: int
    steps: list[tuple]  # the views that it became, and whether these were recorded

    def replay(self, call: Call) -> None:
        for ov, rest, recorded in self.steps:
            with set_grad_enabled(recorded):
                inplace_view(ov, (call.tensors[self.input], *rest))
        call.stamp()

    def sized(self, of: Callable[[Any], Any]) -> Effect:
        return ChangeMetadata(self.input, of(self.steps))
