"""`pullback.special`: the operators of the table whose names begin with `special_`."""

from __future__ import annotations

from .core.op import aliases, families
from .table.packets import ops


def __getattr__(name: str):
    if f"special_{name}" in ops:
        found = getattr(ops, f"special_{name}")
        globals()[name] = found
        return found
    raise AttributeError(f"module 'pullback.special' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(n[len("special_"):] for n in (*families, *aliases) if n.startswith("special_"))
