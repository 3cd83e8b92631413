"""Hooks that a captured function registered on its inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...tensor.hooks import RemovableHandle, on_accumulated, on_tensor
from .effect import Call, Effect

if TYPE_CHECKING:
    from ..hooks import HooksInside

_REGISTER = {"tensor": on_tensor, "accumulated": on_accumulated}


@dataclass(slots=True)
class RegisterHook(Effect):
    """A hook that the function left on an input."""

    input: int
    kind: str
    hook: Any
    handle: RemovableHandle | None  # if the function kept it: it is that of the last call

    @classmethod
    def of(cls, hooks: HooksInside, numbers: dict[int, int]) -> list[Effect]:
        """Those of a capture; `numbers` are those of its inputs, by the identity of the handle."""
        kept = {h.id: h for h in hooks.handles}
        return [cls(numbers[t], kind, hook, kept.get(key))
                for (t, kind), table in hooks.hooked.items() if t in numbers
                for key, hook in table.items()]

    def replay(self, call: Call) -> None:
        made = _REGISTER[self.kind](call.tensors[self.input], self.hook)
        if self.handle is not None:
            self.handle.__dict__.update(made.__dict__)
