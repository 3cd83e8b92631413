"""The classes of what operators with several named results return: `return_types.max`."""

from __future__ import annotations

from .core.op import families
from .core.overload import overload_of
from .table.packets import load_all


def __getattr__(name: str) -> type:
    base = name.removesuffix("_out")
    if base not in families and not name.startswith("__"):
        load_all()
    for entry in families.get(base, ()):
        found = overload_of(entry).result_class
        if found is not None:
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    load_all()
    entries = (overload_of(entry) for family in families.values() for entry in family)
    return sorted({ov.op.base_name for ov in entries if ov.result_class is not None})
