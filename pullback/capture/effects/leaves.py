"""Inputs that became leaves, lost their histories, or were told to keep their gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...autograd.grad_mode import set_grad_enabled
from ...core.handle import Tensor
from ..results import retains
from .effect import Call, Effect

if TYPE_CHECKING:
    from ..capture import Capture


@dataclass(slots=True)
class BeginLeaf(Effect):
    """An input that the function made a leaf which requires grad."""

    input: int

    fuses = False

    def replay(self, call: Call) -> None:
        call.tensors[self.input].requires_grad_()


@dataclass(slots=True)
class EndHistory(Effect):
    """An input that the function detached in place."""

    input: int

    def replay(self, call: Call) -> None:
        call.tensors[self.input].detach_()


@dataclass(slots=True)
class RetainGradient(Effect):
    """An input with a history that the function told to keep its gradient."""

    input: int

    @classmethod
    def of(cls, level: Capture, handles: list[Tensor]) -> list[Effect]:
        """Those of a capture."""
        before = {id(a.handle) for a in level.adopted if a.retains}
        return [cls(i) for i, t in enumerate(handles) if retains(t) and id(t) not in before]

    def replay(self, call: Call) -> None:
        with set_grad_enabled(False):  # views that were left behind may be told, not used
            call.tensors[self.input].retain_grad()
