"""Variables that a captured function reads: globals, closures, attributes of objects found there.

What they hold is part of the program.  Numbers, texts and small tables of them must be the same
when it runs again, else the function is captured again; tensors are looked up by the variable. Only
code of the user is looked at: functions that the function calls by name, methods of modules that it
reaches.  Read `holding.py` for what modules hold.
"""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections.abc import Iterator
from typing import Any

from ..core.handle import Tensor

_PLAIN = {bool, int, float, complex, str, bytes, type(None)}
_TABLES = {list, tuple, dict, set, frozenset}
_LARGE = 64  # items of a table that is not compared
_FUNCTIONS = 256  # at most so many are looked at
_LIBRARIES = {"pullback", "torch", "functorch", "numpy", "scipy", *sys.stdlib_module_names}
_LIBRARIES -= {"__main__"}


class Variable:
    """A place that a name refers to: in a dict, or the cell of a closure."""

    __slots__ = ("cell", "name", "place", "table")

    def __init__(self, table: dict, name: str, cell: types.CellType | None = None):
        self.table, self.name, self.cell = table, name, cell
        self.place = (table, name) if cell is None else None

    def found(self, arguments: list[Tensor]) -> Any:
        """What is there now; None if nothing is."""
        if self.cell is None:
            return self.table.get(self.name)
        try:
            return self.cell.cell_contents
        except ValueError:
            return None


class Outside:
    """Variables with plain values that a program was captured for: are they still there?"""

    __slots__ = ("classes", "values", "variables")

    def __init__(self, variables: list[Variable], values: list):
        self.variables, self.values = variables, values
        self.classes = [v.__class__ for v in values]

    def __call__(self) -> bool:
        found = [v.found(()) for v in self.variables]
        return found == self.values and [v.__class__ for v in found] == self.classes

    def change(self) -> str:
        """What is another now, in words."""
        for variable, old in zip(self.variables, self.values):
            new = variable.found(())
            if new != old or new.__class__ is not old.__class__:
                return f"{variable.name} outside of it is {new!r}, the program is for {old!r}"
        return ""


@functools.lru_cache(maxsize=1024)
def _names(code: types.CodeType) -> tuple[frozenset, frozenset]:
    """Global names and attributes that code reads, functions inside of it included."""
    names, attributes = set(), set()
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.add(step.argval)
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            attributes.add(step.argval)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            more = _names(inner)
            names |= more[0]
            attributes |= more[1]
    return frozenset(names), frozenset(attributes)


def _of_user(function: Any) -> bool:
    return isinstance(function, types.FunctionType) and (
        (function.__module__ or "").partition(".")[0] not in _LIBRARIES)


def _starts(function: Any, modules: list) -> Iterator:
    while isinstance(function, functools.partial) or hasattr(function, "__wrapped__"):
        yield function
        function = function.func if isinstance(function, functools.partial) else (
            function.__wrapped__)
    yield function
    for module in modules:
        yield getattr(type(module), "forward", None)


def variables(function: Any, modules: list) -> list[tuple[Variable, Any]]:
    """The variables that a function may read, with what they hold: plain values, small tables of
    them (copied), functions, tensors."""
    found: dict = {}
    todo, seen = [*_starts(function, modules)], set()
    while todo and len(seen) < _FUNCTIONS:
        function = todo.pop()
        own = getattr(function, "__self__", None)
        function = getattr(function, "__func__", function)
        if id(function) in seen or not _of_user(function):
            continue
        seen.add(id(function))
        names, attributes = _names(function.__code__)
        space = function.__globals__
        there = [(Variable(space, n), space[n]) for n in names if n in space]
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if cell != types.CellType():
                there.append((Variable({}, name, cell), cell.cell_contents))
        objects = [v for _, v in there] + ([] if own is None else [own])
        for value in objects:
            table = _attributes(value)
            there += [(Variable(table, n), table[n]) for n in attributes if n in table]
        for variable, value in there:
            if isinstance(value, types.FunctionType):
                todo.append(value)
            if _compared(value) or isinstance(value, Tensor) or _of_user(value):
                place = id(variable.cell or variable.table), variable.name
                found[place] = variable, _copied(value)
    return list(found.values())


def _attributes(value: Any) -> dict:
    """The attributes of an object of a class of the user; of modules others take care."""
    kind = type(value)
    if kind.__module__.partition(".")[0] in _LIBRARIES or isinstance(value, Tensor):
        return {}
    table = getattr(value, "__dict__", None)
    return table if type(table) is dict and "_buffers" not in table else {}


def _compared(value: Any) -> bool:
    if value.__class__ in _PLAIN:
        return True
    if value.__class__ not in _TABLES or len(value) > _LARGE:
        return False
    items = [*value.keys(), *value.values()] if value.__class__ is dict else value
    return all(v.__class__ in _PLAIN for v in items)


def _copied(value: Any) -> Any:
    return value.copy() if value.__class__ in (list, dict, set) else value
