"""Modules like `fft` and `linalg`, whose functions are the operators of a common prefix."""

from __future__ import annotations

from collections.abc import Callable

from ..core.op import aliases, families
from .packets import ops


def module_of(name: str, names: dict[str, object],
              also: tuple[str, ...] = ()) -> tuple[Callable, Callable]:
    """`__getattr__` and `__dir__` of the module `pullback.NAME`: operators beginning with `NAME_`.

    `names` are the globals of the module, where a function that was asked for stays; `also` what
    else it offers.
    """
    prefix = f"{name}_"

    def find(asked: str) -> object:
        if asked == "__all__":
            return [n for n in listed() if n[0] != "_"]
        if prefix + asked in ops:
            names[asked] = found = getattr(ops, prefix + asked)
            return found
        raise AttributeError(f"module 'pullback.{name}' has no attribute '{asked}'")

    def listed() -> list[str]:
        found = {n[len(prefix):] for n in (*families, *aliases) if n.startswith(prefix)}
        return sorted(found | {*also})

    return find, listed
