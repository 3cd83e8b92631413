"""Tensors that modules hold: a captured function may find others there when it runs, or put some.

A parameter or buffer that a function met is an input of its graph.  It is looked up by its name
before every call, so that one that was replaced meanwhile (`module.weight = ...`) is used.  What
the function itself assigns (`self.cache = ...`) is a result of the graph, and every call assigns
it.  Variables are looked up in the same way (`outside.py`).  Read next: `capture.py`.
"""

from __future__ import annotations

import functools
import types
from typing import Any

from ..core.handle import Tensor
from .joint import Joint
from .outside import Outside, Variable, same_now, variables

_TABLES, _NOTHING = ("_parameters", "_buffers"), object()
_PLAIN = {bool, int, float, str, type(None)}


def roots_of(function: Any) -> list:
    """The modules that a function is, is a method of, or reaches by a variable; not their parts."""
    found = []
    todo, seen = [(function, 3)], set()
    while todo:
        value, depth = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if _is_module(value):
            found.append(value)
        elif depth:
            todo += [(v, depth - 1) for v in _reached(value)]
    return found


def _is_module(value: Any) -> bool:
    return "_buffers" in getattr(value, "__dict__", ()) and hasattr(value, "modules")


def _reached(value: Any) -> list:
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, types.MethodType):
        return [value.__self__, value.__func__]
    if isinstance(value, types.FunctionType):
        cells = [c.cell_contents for c in value.__closure__ or () if c != types.CellType()]
        known = value.__globals__
        named = [known[n] for n in value.__code__.co_names if n in known]
        return [*cells, *(v for v in named if _is_module(v))]
    if isinstance(value, (list, tuple)):
        return list(value)
    if type(value) is dict:
        return list(value.values())
    own = getattr(value, "__dict__", ())
    return [own[n] for n in ("module", "function") if n in own]


class Parts:
    """The parts of modules, as a part of signatures: asked before every call."""

    def __init__(self, roots: list):
        self.roots, self.generation = roots, 0
        self._look()

    def _look(self) -> None:
        self.states = [vars(m) for m in {
            id(m): m for root in self.roots for m in root.modules()}.values()]
        self.tables = [s["_modules"] for s in self.states]
        self.inner = [list(t.values()) for t in self.tables]

    def modes(self) -> tuple:
        """A number that changes with the parts, and which of them are in training."""
        if [list(t.values()) for t in self.tables] != self.inner:
            self.generation += 1
            self._look()
        return (self.generation, *[s["training"] for s in self.states])


class Slot:
    """A place where a module holds a tensor."""

    __slots__ = ("name", "place", "table")

    def __init__(self, table: dict, name: str):
        self.table, self.name = self.place = table, name

    def found(self, arguments: list[Tensor]) -> Tensor | None:
        """The tensor that is there when the program runs."""
        return self.table.get(self.name)


class Holding:
    """What modules held before a capture; leaving it puts everything back."""

    def __init__(self, roots: list, function: Any = None):
        self.modules = list({id(m): m for root in roots for m in root.modules()}.values())
        self.compared, self.named = ([], []) if function is None else variables(
            function, self.modules)
        self.tables = [(t, dict(t)) for m in self.modules for t in (
            *[vars(m)[n] for n in _TABLES], vars(m))]

    def __enter__(self) -> Holding:
        return self

    def __exit__(self, *exc: Any) -> None:
        for slot, before, _ in self.changed():
            if before is _NOTHING:
                del slot.table[slot.name]
            else:
                slot.table[slot.name] = before

    def changed(self) -> list[tuple[Slot, Any, Any]]:
        """Places that hold another tensor now, or one where there was none: before, and now."""
        return [
            (Slot(table, name), before.get(name, _NOTHING), value)
            for table, before in self.tables for name, value in table.items()
            if value is not before.get(name, _NOTHING)
            and (isinstance(value, Tensor) or isinstance(before.get(name), Tensor))
        ]

    def slots(self) -> dict[int, list[Slot | Variable]]:
        """Where each tensor was, by its identity."""
        found: dict[int, list[Slot | Variable]] = {}
        for table, before in self.tables:
            for name, value in before.items():
                if isinstance(value, Tensor):
                    found.setdefault(id(value), []).append(Slot(table, name))
        named: dict[int, list] = {}
        for variable, value in self.named:
            if variable.found([]) is value:
                named.setdefault(id(value), []).append(variable)
        return named | found

    def looked_up(self, joint: Joint) -> None:
        """Have inputs of a program that modules hold looked up by their names when it runs; numbers
        and texts that they hold must be the same then, but for those that the function counts."""
        slots = self.slots()
        fixed = {id(r.tensor) for r in joint.reads} | {id(g.tensor) for g in joint.gradients}
        plain = [(table, name, v) for table, before in self.tables[2::3]
                 for name, v in before.items()
                 if v.__class__ in _PLAIN and name != "training" and table.get(name) == v]
        if plain:
            joint.guards.append(Same([p[:2] for p in plain], [p[2] for p in plain]))
        compared = [(v, value) for v, value in self.compared if same_now(value, v.found([]))]
        if compared:
            joint.outside = Outside(compared)
        for k, t in enumerate(joint.adopted):
            places = slots.get(id(t)) if isinstance(t, Tensor) else None
            if places is None:
                continue
            if id(t) in fixed:  # more is known of this very tensor
                joint.guards.append(functools.partial(_holds, places, t))
                continue
            joint.adopted[k] = places[0]
            if len(places) > 1:  # tied
                joint.guards.append(functools.partial(_tied, places))


class Same:
    """Do places in modules hold equal values?"""

    __slots__ = ("at", "values")

    def __init__(self, at: list[tuple[dict, str]], values: list):
        self.at, self.values = at, values

    def __call__(self) -> bool:
        return [table.get(name) for table, name in self.at] == self.values

    def places(self, known: set) -> tuple[list[tuple], None]:
        """What holds while the same objects are there (`short.py`)."""
        return self.at, None


def _holds(places: list[Slot | Variable], t: Tensor) -> bool:
    return all(p.found([]) is t for p in places)


def _tied(places: list[Slot | Variable]) -> bool:
    return _holds(places, places[0].found([]))
