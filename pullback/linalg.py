"""`pullback.linalg`: the operators of the table whose names begin with `linalg_`."""

from __future__ import annotations

from .core.op import aliases, families
from .core.table import ops


def __getattr__(name: str):
    if f"linalg_{name}" in ops:
        found = getattr(ops, f"linalg_{name}")
        globals()[name] = found
        return found
    raise AttributeError(f"module 'pullback.linalg' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(n[len("linalg_"):] for n in (*families, *aliases) if n.startswith("linalg_"))
