"""Which operators a fully decomposed capture consists of: PyTorch's core set, and those that stay.

Entries of the table say it: `core` those that PyTorch 2.13 tags as core, `kept` the others that
have no decomposition here, with the reason; what PyTorch takes apart to its inner primitives only
(`digamma` is the primitive `digamma`) is among them.  An entry that is neither of these, nor
composite, needs a `decomp`: `tests/decomp` sees to it.  `CORE`, `APART` (core, and taken apart by
PyTorch's core table nevertheless) and `KEPT` are the names of all such overloads.
"""

from __future__ import annotations

from typing import Any

from ..core.op import registry

REASONS = {
    "draw": "a draw from the generator: its parts would draw other numbers",
    "view": "a view of memory, or of the two parts of complex numbers",
    "scan": "a running value: as a reduction over all prefixes it would take quadratic time",
    "order": "a choice by order statistics",
    "values": "the size or the place of the result depends on values",
    "matrix": "a call of the linear algebra library",
    "window": "a walk over windows, of its own for each place",
    "function": "a function of mathematics with a kernel of its own, one element at a time",
    "bits": "the bits of numbers",
    "kernel": "a loop of its own, a recursion over the data, or one library call",
    "create": "a tensor made from sizes alone",
    "effect": "something that is done beside the result: printed, or refused",
}


def core_of(name: str) -> bool | str:
    """What an entry says of PyTorch's core set, by the full name of an overload."""
    entry = registry.get(name)
    if entry is not None:
        return entry.core
    entry = registry.get(name.removesuffix(".out"))
    return entry is not None and entry.core == "out"


def is_core(name: str) -> bool:
    """Whether an overload may stand in a fully decomposed graph, by its full name."""
    return bool(core_of(name)) or getattr(registry.get(name), "kept", None) is not None


def _core() -> frozenset[str]:
    found = {name: entry.core for name, entry in registry.items() if entry.core}
    return frozenset(found) | {f"{name}.out" for name, core in found.items() if core == "out"}


_MADE = {  # when somebody asks: the whole table loads
    "CORE": _core,
    "APART": lambda: frozenset(n for n, entry in registry.items() if entry.core == "apart"),
    "KEPT": lambda: {n: e.kept for n, e in registry.items() if e.kept and not e.core},
}


def __getattr__(name: str) -> Any:
    if name not in _MADE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _MADE[name]()
