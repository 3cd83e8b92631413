"""Generators that a captured function seeded: its numbers are constants of the graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .effect import Call, Effect

if TYPE_CHECKING:
    from ..capture import Capture


@dataclass(slots=True)
class SetGenerator(Effect):
    """A generator that the function seeded: it is left where the function left it."""

    generator: Any
    state: Any

    @classmethod
    def of(cls, level: Capture) -> list[Effect]:
        """Those of a capture."""
        return [cls(generator, generator.get_state()) for generator in level.streams]

    def replay(self, call: Call) -> None:
        self.generator.set_state(self.state)
