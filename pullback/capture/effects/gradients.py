"""Gradients that a captured function found in `.grad` and left there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...core.handle import Tensor, make, meta_of
from ...memory.versions import bump
from .effect import Call, Effect

if TYPE_CHECKING:
    from ..capture import Capture
    from ..guards import Gradient
    from ..joint import Joint
    from ..results import Results


@dataclass(slots=True)
class LeaveGradient(Effect):
    """A gradient that the function left in a tensor's `.grad`."""

    gradient: Gradient
    output: int | None  # the graph output with its values
    given: Tensor | None  # or a tensor from outside, or None

    fuses = False

    @classmethod
    def of(cls, level: Capture, results: Results, gradients: list[Gradient]) -> list[Effect]:
        """Those that a capture has changed, as outputs of its graph."""
        found: list[Effect] = []
        for g in gradients:
            now = g.now
            if now is not None and level.mine(now):
                found.append(cls(g, len(results.nodes), None))
                results.nodes.append(level.node(now))
                results.values.append(make(now._payload))
            else:
                found.append(cls(g, None, now))
        return found

    @property
    def tensor(self) -> Tensor:
        """Whose gradient it is."""
        return self.gradient.tensor

    def fits(self, joint: Joint, arguments: list[Tensor]) -> bool:
        """Is there a gradient before if and only if there was one?"""
        return self.gradient.fits(joint, arguments)

    def replay(self, call: Call) -> None:
        """In the memory of the gradient that is there, unless the function has put another in its
        place."""
        value = self.given if self.output is None else call.made[self.output]
        meta = meta_of(self.gradient.holder(call.arguments))
        if value is None or meta.grad is None or self.gradient.replaced:
            meta.grad = value
        elif meta.grad is not value:
            np.copyto(meta.grad._payload, value._payload)
            bump(meta.grad)
