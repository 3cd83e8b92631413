"""What layers share: new parameters, and one number for each spatial dim."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.table import ops
from .parameter import Parameter


def new(shape, device, dtype) -> Parameter:
    """A parameter of a shape, not filled yet."""
    return Parameter(ops.empty(list(shape), device=device, dtype=dtype))


def sizes(value, rank: int) -> tuple:
    """One number for each spatial dim."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * rank
