"""Variables that a captured function reads: globals, closures, attributes of objects found there.

What they hold is part of the program.  Numbers and texts must be equal when it runs again, arrays
of NumPy too, other things the same, items of lists and tables likewise; else the function is
captured again.  Tensors, also in lists, are looked up by the variable.  Read `reachable.py` for how
they are found, `module_tensors.py` for what modules hold.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core.handle import Tensor, is_composed
from ..tensor import facts
from .reachable import ABSENT, GONE, PLAIN, TABLES, Reach, Variable, of_library, size_of

_TENSOR = object()
_LARGE = 64  # tables with more items are compared by these alone, not by what is in them
_DEPTH = 4


def _item(owner: Variable, key: Any) -> Variable:
    return Variable(lambda: owner.found([])[key], f"{owner.name}[{key!r}]")


class Outside:
    """Variables that a program was captured for: do they hold the same?"""

    __slots__ = ("classes", "found", "ids", "plain", "rest", "same", "values")

    def __init__(self, found: list[tuple[Variable, Any]]):
        self.found = found
        plain = [(v, value) for v, value in found if value.__class__ in PLAIN]
        self.values = [value for _, value in plain]
        self.classes = [value.__class__ for value in self.values]
        self.rest = [(v.read, value) for v, value in found
                     if value.__class__ in _KEPT or value is _TENSOR]
        same = [(v, value) for v, value in found if value.__class__ not in (*PLAIN, *_KEPT)
                and value is not _TENSOR]
        self.ids = [id(value) for _, value in same]
        self.plain, self.same = [v.read for v, _ in plain], [v.read for v, _ in same]

    def __call__(self) -> bool:
        try:
            found = [read() for read in self.plain]
            return (found == self.values and [v.__class__ for v in found] == self.classes
                    and [id(read()) for read in self.same] == self.ids
                    and all(same_now(old, read()) for read, old in self.rest))
        except GONE:
            return False

    def places(self, known: set) -> tuple[list[tuple], Outside | None]:
        """Places that hold the same while the same objects are there, and who asks about the rest;
        `known` are places of tensors that are looked at anyway."""
        fixed, rest = [], []
        for variable, old in self.found:
            place = variable.place
            if place is None or old.__class__ in _KEPT:
                rest.append((variable, old))
            elif old is not _TENSOR:
                fixed.append(place)
            elif (id(place[0]), place[1]) not in known:
                rest.append((variable, old))
        return fixed, Outside(rest) if rest else None

    def change(self) -> str:
        """What is another now, in words."""
        for variable, old in self.found:
            new = variable.found([])
            if not same_now(old, new):
                shown = "" if old.__class__ in _KEPT else f", the program is for {old!r}"
                return f"{variable.name} outside of it is {_shown(new)}{shown}"
        return ""


def _shown(value: Any) -> str:
    return "not there" if value is ABSENT else repr(value)[:80]


class _Items:
    """What a list or table held; where a tensor was, any may be."""

    __slots__ = ("items", "kind")

    def __init__(self, value: Any, depth: int):
        self.kind = type(value)
        self.items = [(key, kept(item, depth - 1)) for key, item in _pairs(value)]

    def same(self, value: Any) -> bool:
        return value.__class__ is self.kind and size_of(value) == len(self.items) and all(
            (k is key or not isinstance(k, Tensor) and k == key) and same_now(old, item)
            for (k, old), (key, item) in zip(self.items, _pairs(value)))


class _Many:
    """What a long list, or a set, held."""

    __slots__ = ("items", "kind")

    def __init__(self, value: Any):
        self.kind, self.items = type(value), self._of(value)

    def _of(self, value: Any) -> Any:
        return set(value) if isinstance(value, (set, frozenset)) else (
            [*value, *value.values()] if isinstance(value, dict) else list(value))

    def same(self, value: Any) -> bool:
        if value.__class__ is not self.kind:
            return False
        now = self._of(value)
        if type(now) is set:
            return now == self.items
        return list(map(id, now)) == list(map(id, self.items)) or len(now) == len(
            self.items) and all(map(same_now, self.items, now))


class _Array:
    """What an array of NumPy held."""

    __slots__ = ("values",)

    def __init__(self, value: np.ndarray):
        self.values = value.copy()

    def same(self, value: Any) -> bool:
        mine = self.values
        return (isinstance(value, np.ndarray) and value.dtype == mine.dtype
                and value.shape == mine.shape and value.tobytes() == mine.tobytes())


class Facts:
    """What code may ask of a tensor without using it: its shape, for instance."""

    __slots__ = ("were",)

    def __init__(self, value: Tensor):
        self.were = self._of(value)

    def _of(self, value: Tensor) -> tuple:
        data = value._payload
        return data.shape, data.strides, data.dtype, value._edge is not None

    def same(self, value: Any) -> bool:
        return isinstance(value, Tensor) and self._of(value) == self.were


_KEPT = (_Items, _Many, _Array, Facts)
_ASKED = {*facts.PROPERTIES, *facts.METHODS, "requires_grad", "is_leaf"}


def asks_facts(reach: Reach) -> bool:
    """Does any code name a fact of tensors?"""
    return not _ASKED.isdisjoint(reach.attributes) or "len" in reach.called


def _pairs(value: Any) -> Any:
    return value.items() if isinstance(value, dict) else enumerate(value)


def kept(value: Any, depth: int = _DEPTH) -> Any:
    """What is compared later: of lists and tables their items."""
    if isinstance(value, TABLES) and depth:
        if size_of(value) > _LARGE or isinstance(value, (set, frozenset)):
            return _Many(value)
        return _Items(value, depth)
    if type(value) is np.ndarray:
        return _Array(value)
    if isinstance(value, Tensor) and not is_composed(value):  # of these the program is for one
        return _TENSOR
    return value


def same_now(old: Any, new: Any) -> bool:
    """Is what is there now what was kept?"""
    if old is new:
        return True
    if old is _TENSOR:
        return isinstance(new, Tensor) and not is_composed(new)
    if old.__class__ in _KEPT:
        return old.same(new)
    return old.__class__ is new.__class__ and old.__class__ in PLAIN and old == new


def _tensors(variable: Variable, value: Any, depth: int = _DEPTH) -> Iterator[tuple]:
    """The tensors at a place, and in lists and tables there."""
    if isinstance(value, Tensor):
        yield variable, value
    elif isinstance(value, (list, tuple, dict)) and size_of(value) <= _LARGE and depth:
        for key, item in _pairs(value):
            yield from _tensors(_item(variable, key), item, depth - 1)


def _imported(variable: Variable, value: Any) -> bool:
    """A module, or a function or class of a library by its own name: such names are not rebound."""
    return isinstance(value, types.ModuleType) or callable(value) and of_library(value) and (
        getattr(value, "__name__", None) == variable.name)


def variables(reach: Reach) -> tuple[list, list]:
    """The variables that a function may read: with what is to be compared, and those of tensors."""
    pairs = list(reach.variables.values())
    return [(v, kept(value)) for v, value in pairs if not _imported(v, value)], [
        pair for v, value in pairs for pair in _tensors(v, value)]
