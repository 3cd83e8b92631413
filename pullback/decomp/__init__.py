"""Decomposition tables: operators in terms of core operators.

The definitions themselves stand in the table entries (`decomp`, or `compose` of a composite); this
package offers them as dictionaries in PyTorch's manner, and takes further ones from users.
"""

from __future__ import annotations

import functools

from ..core.op import OpOverload, overload_of, registry
from ..core.table import Packet

__all__ = [
    "core_aten_decompositions",
    "decomposition_table",
    "get_decompositions",
    "register_decomposition",
    "remove_decompositions",
]

_registered: dict[OpOverload, object] = {}


@functools.cache
def _from_table(count: int) -> dict:
    return {
        o: o.decompose
        for o in map(overload_of, registry.values())
        if not o.is_composite and o.decompose is not None
    }


def decompositions() -> dict:
    """All decompositions: the table's and the registered ones."""
    return {**_from_table(len(registry)), **_registered}


class Everything:
    """All decompositions but those of some operators, looked up one by one.

    What `decompositions()` gives, without loading the whole table.
    """

    def __init__(self, whole: set[str]):
        self.whole = whole  # names of operators that stay as they are

    def get(self, o: OpOverload, default=None):
        if o.name in self.whole:
            return default
        if o in _registered:
            return _registered[o]
        found = None if o.is_composite else o.decompose
        return default if found is None else found


class _Table(dict):
    """`decomposition_table`, filled on first use."""

    def _fill(self):
        for key, value in decompositions().items():
            dict.setdefault(self, key, value)
        return self

    def __getitem__(self, key):
        return dict.__getitem__(self._fill(), key)

    def __contains__(self, key) -> bool:
        return dict.__contains__(self._fill(), key)

    def __iter__(self):
        return dict.__iter__(self._fill())

    def __len__(self) -> int:
        return dict.__len__(self._fill())

    def items(self):
        return dict.items(self._fill())

    def keys(self):
        return dict.keys(self._fill())

    def get(self, key, default=None):
        return dict.get(self._fill(), key, default)


decomposition_table = _Table()


def _overloads(thing) -> list[OpOverload]:
    if isinstance(thing, OpOverload):
        return [thing]
    if isinstance(thing, Packet):
        return list(thing.entries())
    return [o for item in thing for o in _overloads(item)]


def core_aten_decompositions() -> dict:
    """Everything that reduces a capture to core operators."""
    return decompositions()


def get_decompositions(operators) -> dict:
    """The decompositions of some operators; those without one are left out."""
    table = decompositions()
    return {o: table[o] for o in _overloads(operators) if o in table}


def register_decomposition(operators, registry: dict | None = None):
    """Decorator: register a function as the decomposition of operators."""

    def register(function):
        target = _registered if registry is None else registry
        for o in _overloads(operators):
            if o in target:
                raise RuntimeError(f"duplicate registrations for {o}")
            target[o] = function
        decomposition_table.clear()
        return function

    return register


def remove_decompositions(table: dict, operators) -> None:
    """Take operators out of a table of decompositions."""
    for o in _overloads(operators):
        table.pop(o, None)
