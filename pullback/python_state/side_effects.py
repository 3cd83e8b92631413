"""What a captured function changes outside of it, in Python: attributes, globals, lists, tables.

Before a capture everything that the function can reach is noted, afterwards it is compared and put
back.  New values of attributes, globals and entries of tables are results of the program, and every
call assigns them.  What cannot be assigned again (a list that grew, an object with tensors inside)
makes the function run as it is written.  Read next: `module_tensors.py`, which uses this.
"""

from __future__ import annotations

import collections
import random
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import errors, switches
from ..array import dtype as dt
from ..array.size import Symbolic, hinted
from ..core.handle import Tensor
from ..pytree import TreeSpec, tree_flatten, tree_unflatten
from ..threads.state import state
from .caches import Call, left_by_capture
from .reachable import ABSENT, PLAIN, Reach


class Effects(errors.DataDependentError):
    """A function changes something that no program can change for it."""


class Filled(Effects):
    """A function fills a cache with tensors: perhaps it does that only once."""

    calls: list[Call] | None = None  # of cached functions; None: that cannot be told

    def fill(self) -> bool:
        """Fill the cache as the function would, outside of a capture; False if that cannot be."""
        if self.calls is None:
            return False
        drawn = [(s, _drawn(s)) for s in _SHARED]
        done = all(call.again() for call in self.calls)
        for source, seen in drawn:
            if not _equal_states(_drawn(source), seen):
                _draw_again(source, seen)
                done = False
        if not done:
            for call in self.calls:
                call.cache.cache_clear()
        return done


class Slot:
    """A place that holds something: an entry of a dict."""

    __slots__ = ("name", "place", "spec", "step", "table")

    def __init__(self, table: Any, name: Any, spec: Any = None):
        self.table, self.name = self.place = table, name
        self.spec = spec  # of a list or table with several results
        self.step: int | None = None  # what is added to a number that is there

    def found(self, arguments: list[Tensor]) -> Any:
        """What is there when the program runs."""
        return self.table.get(self.name)

    def take(self, flat: list) -> Any:
        """What is to be put there: the last of some results."""
        if self.spec is None:
            return flat.pop()
        count = len(flat) - self.spec.num_leaves
        made = tree_unflatten(flat[count:], self.spec)
        del flat[count:]
        return made

    def put(self, value: Any) -> None:
        """Put it there, or count."""
        if self.step is not None:
            value = self.table.get(self.name) + self.step
        self.table[self.name] = value


def assign(slots: list[Slot], flat: list) -> None:
    """Put the last results into their places, in the order of the function."""
    values = [slot.take(flat) for slot in reversed(slots)]
    for slot, value in zip(slots, reversed(values)):
        slot.put(value)


class _Attributes:
    """Attributes of a class as a table, as they are."""

    def __init__(self, owner: Any, names: Any):
        self.owner, self.names = owner, names

    def get(self, name: str, default: Any = None) -> Any:
        return vars(self.owner).get(name, default)

    def items(self) -> Iterator[tuple[str, Any]]:
        found = [(name, self.get(name, ABSENT)) for name in self.names]
        return iter([pair for pair in found if pair[1] is not ABSENT])

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self.owner, name, value)

    def __delitem__(self, name: str) -> None:
        delattr(self.owner, name)


class _Cell(_Attributes):
    """The variable of a function around the function."""

    def get(self, name: str, default: Any = None) -> Any:
        return default if self.owner == types.CellType() else self.owner.cell_contents

    def __setitem__(self, name: str, value: Any) -> None:
        self.owner.cell_contents = value

    def __delitem__(self, name: str) -> None:
        del self.owner.cell_contents


class _Globals(_Attributes):
    """The globals that code assigns."""

    def get(self, name: str, default: Any = None) -> Any:
        return self.owner.get(name, default)

    def __setitem__(self, name: str, value: Any) -> None:
        self.owner[name] = value

    def __delitem__(self, name: str) -> None:
        del self.owner[name]


class Before:
    """How things were; `put_back` makes them so again."""

    def __init__(self, reach: Reach, tables: list[dict], tensors_only: bool):
        self.tensors_only = tensors_only  # is anything else done once, when it is captured?
        self.reach = reach = Reach(()) if tensors_only else reach
        named: dict[int, tuple] = {}
        for space, name in reach.spaces:
            named.setdefault(id(space), (space, set()))[1].add(name)
        for space in reach.files:
            named.setdefault(id(space), (space, set()))[1].update(reach.set)
        places = [_Globals(space, names) for space, names in named.values()]
        places += [_Attributes(c, reach.set & vars(c).keys()) for c in reach.classes]
        places += [_Cell(cell, (name,)) for cell, name in reach.cells.values()]
        known = {id(t) for t in tables}
        lists = [t for t in reach.tables.values() if id(t) not in known]
        places += [t for t in lists if isinstance(t, dict)]
        self.places = [(t, dict(t.items())) for t in (*tables, *places)]
        self.lists = [(t, list(t)) for t in lists if not isinstance(t, dict)]
        self.caches = [(c, c.cache_info().misses) for c in reach.caches]
        self.switches = _switches()
        self.draws = [(s, _drawn(s)) for s in (*_SHARED, *reach.draws)]

    def changed(self) -> list[tuple[Slot, Any, Any]]:
        """Places that hold another thing now: before, and now."""
        return [
            (Slot(table, name), before.get(name, ABSENT), now)
            for table, before in self.places for name, now in _all(table, before)
            if not _same(before.get(name, ABSENT), now) and (
                not self.tensors_only
                or isinstance(now, Tensor) or isinstance(before.get(name), Tensor))
        ]

    def touched(self) -> str:
        """What was changed that no assignment brings about."""
        for table, items in self.lists:
            if not same_items(table, items):
                return f"changes a {type(table).__name__} outside of it"
        if caches := self._filled():
            return f"fills a cache of functools ({getattr(caches[0], '__name__', '?')})"
        if not self.tensors_only and self.switches != _switches():
            return "leaves a setting of the library changed"
        return "" if self._undrawn() else "draws random numbers from Python or NumPy"

    def refuse(self, known: int | None = None) -> None:
        """Refuse such a change; and others, if there are more than are known."""
        what = self.touched()
        if not what and known is not None and len(self.changed()) != known:
            what = "changes things outside of it in its backward"
        if not what:
            return
        caches = self._filled()
        refused = (Filled if caches else Effects)(f"it {what}")
        if caches:
            found = [left_by_capture(cache) for cache in caches]
            refused.calls = None if None in found else [call for calls in found for call in calls]
        raise refused

    def _filled(self) -> list:
        """Cached functions that were called with something new, and have kept stand-ins."""
        return [cache for cache, misses in self.caches
                if cache.cache_info().misses != misses and left_by_capture(cache) != []]

    def _undrawn(self) -> bool:
        if self.tensors_only:
            return True
        return all(_equal_states(_drawn(source), seen) for source, seen in self.draws)

    def results(self) -> list[tuple[Slot, list]]:
        """New values as results of a program: each place with its leaves."""
        made = []
        for slot, before, now in self.changed():
            slot = Slot(slot.table, hinted(slot.name))  # a size that is a key is fixed
            if type(before) is int is type(now) and self.reach.only_counted(slot.name):
                slot.step = now - before
            if isinstance(now, (Tensor, Symbolic)) or now.__class__ in PLAIN or (
                    self.reach.knows(now)):
                made.append((slot, [now]))
                continue
            leaves, slot.spec = flattened(now)
            if now is ABSENT or not all(
                    isinstance(v, (Tensor, Symbolic)) or v.__class__ in PLAIN for v in leaves):
                raise Effects(
                    f"it deletes {slot.name} outside of it" if now is ABSENT else
                    f"it puts a {type(now).__name__} into {slot.name} outside of it")
            made.append((slot, leaves))
        return made

    def put_back(self) -> None:
        for slot, before, _ in self.changed():
            kind = dict if isinstance(slot.table, dict) else type(slot.table)  # not the user's
            if before is ABSENT:
                kind.__delitem__(slot.table, slot.name)
            else:
                kind.__setitem__(slot.table, slot.name, before)
        for table, items in self.lists:
            if not same_items(table, items):
                base = next(b for b in (list, set, collections.deque) if isinstance(table, b))
                base.clear(table)
                (base.update if base is set else base.extend)(table, items)
        for cache in self._filled():
            cache.cache_clear()
        if not self._undrawn():
            for source, seen in self.draws:
                _draw_again(source, seen)
        if not self.tensors_only:
            state.record[0], dt._default, kept = self.switches
            switches._kept.update(kept)


def flattened(value: Any) -> tuple[list, TreeSpec]:
    """The leaves of a result, and its structure; sizes that are keys in it are fixed."""
    leaves, spec = tree_flatten(value)
    return leaves, _fixed(spec)


def _fixed(spec: TreeSpec) -> TreeSpec:
    if spec.is_leaf() or not spec.num_children:
        return spec
    return TreeSpec(spec.type, hinted(spec.context), list(map(_fixed, spec.children_specs)))


_SHARED = random._inst, np.random.mtrand._rand  # type: ignore[attr-defined]  # of all functions


def _drawn(source: Any) -> Any:
    """The state of a source of random numbers."""
    if isinstance(source, random.Random):
        return source.getstate()
    return source.bit_generator.state if hasattr(source, "bit_generator") else (
        source.get_state(legacy=False))


def _equal_states(a: Any, b: Any) -> bool:
    """Are two states of a source of random numbers the same, arrays in them by their elements?"""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_equal_states(a[k], b[k]) for k in a)
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b


def _draw_again(source: Any, seen: Any) -> None:
    if isinstance(source, random.Random):
        source.setstate(seen)
    elif hasattr(source, "bit_generator"):
        source.bit_generator.state = seen
    else:
        source.set_state(seen)


def _switches() -> tuple:
    return state.record[0], dt._default, dict(switches._kept)


def _all(table: Any, before: dict) -> list[tuple]:
    now = dict(table.items())
    return [*now.items(), *[(name, ABSENT) for name in before if name not in now]]


def _same(before: Any, now: Any) -> bool:
    return before is now or before.__class__ is now.__class__ and before.__class__ in PLAIN and (
        before == now)


def same_items(now: Any, before: list) -> bool:
    return len(now) == len(before) and all(map(_same, before, now))
