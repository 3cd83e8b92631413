"""`Dim`: a size of an argument that may vary between calls of an exported program."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dim:
    """A named size with bounds."""

    name: str
    min: int | None = None
    max: int | None = None

    def __post_init__(self) -> None:
        low, high = 0 if self.min is None else self.min, self.max
        if not self.name.isidentifier():
            raise ValueError(f"the name of a Dim must be an identifier, got {self.name!r}")
        if high is not None and high < low:
            raise ValueError(
                f"Cannot create Dim with inconsistent min={low}, max={high}")

    @property
    def __name__(self) -> str:
        return self.name


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several at once."""
    return tuple(Dim(name, min, max) for name in names)
