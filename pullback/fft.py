"""`pullback.fft`: the operators of the table whose names begin with `fft_`."""

from __future__ import annotations

from .core.op import aliases, families
from .table.packets import ops


def __getattr__(name: str):
    if f"fft_{name}" in ops:
        found = getattr(ops, f"fft_{name}")
        globals()[name] = found
        return found
    raise AttributeError(f"module 'pullback.fft' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(n[len("fft_") :] for n in (*families, *aliases) if n.startswith("fft_"))
