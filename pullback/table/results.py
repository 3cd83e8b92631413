"""The named tuples of operators that have several results with names."""

from __future__ import annotations

import functools
from collections import namedtuple


@functools.cache
def results_class(name: str, fields: tuple[str, ...]) -> type:
    """The named tuple of an operator's results: one class per operator."""
    def text(self) -> str:
        parts = ",\n".join(f"{field}={value!r}" for field, value in zip(fields, self))
        return f"torch.return_types.{name}(\n{parts})"

    made = namedtuple(name, fields, module="torch.return_types")
    made.__repr__ = text
    made.__reduce__ = lambda self: (_results, (name, fields, tuple(self)))
    return made


def _results(name: str, fields: tuple[str, ...], values: tuple) -> tuple:
    return results_class(name, fields)(*values)
