"""Results that show an input as it was before the function changed its shape or its history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .effect import Call, Effect
from .results import Output


@dataclass(slots=True)
class EarlyView(Effect):
    """A view that is made before its input changes its shape or loses its history."""

    output: Output

    def replay(self, call: Call) -> None:
        self.output.make(call)

    def sized(self, of: Callable[[Any], Any]) -> Effect:
        return type(self)(of(self.output))


class EarlyDetachedView(EarlyView):
    """The same for one without a history: it is made when its input has lost its own."""

    __slots__ = ()


class SettleView(EarlyView):
    """Let what its input became in place be no write to an early view."""

    __slots__ = ()

    def replay(self, call: Call) -> None:
        t = call.done[self.output]
        link = t._link
        if link is not None and (link.multi or link.hidden) and not self.output.stale:
            link.seen = t._cell.version
