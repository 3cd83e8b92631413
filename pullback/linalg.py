"""`pullback.linalg`: the operators `linalg_*` of the table under their short names."""

from __future__ import annotations

from .core.op import families
from .core.table import ops
from .ops.linalg import LinAlgError

__all__ = ["LinAlgError"]


def __getattr__(name: str):
    if f"linalg_{name}" not in families:
        raise AttributeError(f"module 'pullback.linalg' has no attribute '{name}'")
    value = globals()[name] = getattr(ops, f"linalg_{name}")
    return value


def __dir__():
    return sorted([*__all__, *(n[7:] for n in families if n.startswith("linalg_"))])
