"""Places in Python objects that a captured function assigned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...python_state.side_effects import assign
from .effect import Call, Effect


@dataclass(slots=True)
class SetAttributes(Effect):
    """Attributes and items to which the function assigned: the last results are for them."""

    places: list[Any]

    def replay(self, call: Call) -> None:
        assign(self.places, call.answers())
