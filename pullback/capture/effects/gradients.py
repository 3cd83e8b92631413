"""Gradients that a captured function found in `.grad` and left there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...core.handle import Tensor, make, meta_of
from ...core.surface import bump
from .effect import Call, Effect

if TYPE_CHECKING:
    from ..capture import Capture
    from ..joint import Joint
    from ..results import Results


@dataclass(slots=True)
class Gradient:
    """The `.grad` of a tensor that a capture has met: it guards the program, too."""

    tensor: Tensor
    before: Tensor | None
    owner: Tensor | int  # whose gradient it is when the program runs: a tensor, or an argument
    matters: bool = False  # was it read before it was replaced?
    replaced: bool = False

    def concerns(self, inputs: set[int]) -> bool:
        """Has the function read, replaced or written it?  `inputs` are tensors that it met."""
        now = None if self.tensor._meta is None else self.tensor._meta.grad
        return (self.matters or self.replaced or now is not self.before
                or now is not None and id(now) in inputs)

    def found(self, arguments: list[Tensor]) -> Tensor | None:
        """The gradient that is there when the program runs."""
        meta = self.holder(arguments)._meta
        return None if meta is None else meta.grad

    def holder(self, arguments: list[Tensor] | tuple) -> Tensor:
        """The tensor that has it, when the program runs."""
        return arguments[self.owner] if type(self.owner) is int else self.owner

    def fits(self, joint: Joint, arguments: list[Tensor]) -> bool:
        """Is there a gradient if and only if there was one?"""
        if self.replaced and not self.matters:
            return True
        return (self.found(arguments) is None) == (self.before is None)


@dataclass(slots=True)
class LeaveGradient(Effect):
    """A gradient that the function left in a tensor's `.grad`."""

    gradient: Gradient
    output: int | None  # the graph output with its values
    tensor: Tensor | None  # or a tensor from outside, or None

    fuses = False

    @classmethod
    def of(cls, level: Capture, results: Results) -> list[Effect]:
        """Those of a capture, as outputs of its graph."""
        found: list[Effect] = []
        for g in level.gradients.values():
            now = None if g.tensor._meta is None else g.tensor._meta.grad
            if now is g.before:
                continue
            if now is not None and level.mine(now):
                found.append(cls(g, len(results.nodes), None))
                results.nodes.append(level.node(now))
                results.values.append(make(now._data))
            else:
                found.append(cls(g, None, now))
        return found

    def replay(self, call: Call) -> None:
        """In the memory of the gradient that is there, unless the function has put another in its
        place."""
        value = self.tensor if self.output is None else call.made[self.output]
        meta = meta_of(self.gradient.holder(call.arguments))
        if value is None or meta.grad is None or self.gradient.replaced:
            meta.grad = value
        elif meta.grad is not value:
            np.copyto(meta.grad._data, value._data)
            bump(meta.grad)
