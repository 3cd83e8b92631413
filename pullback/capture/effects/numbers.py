"""Python numbers that are inputs of a captured graph: learning rates, step counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .effect import Call, Effect


@dataclass(slots=True)
class ReadNumber(Effect):
    """A number that is read again before every call, into the array that the graph takes."""

    array: np.ndarray
    read: Callable[[], float]

    def prepare(self, call: Call) -> None:
        self.renew()

    def renew(self) -> None:
        """Read it."""
        self.array[()] = self.read()
