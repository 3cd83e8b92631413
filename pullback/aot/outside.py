"""Variables that a captured function reads: globals, closures, attributes of objects found there.

What they hold is part of the program.  Numbers and texts must be equal when it runs again, other
things the same, items of small lists and tables likewise; else the function is captured again.
Tensors, also in lists, are looked up by the variable.  Only code of the user is looked at:
functions that the function calls by name, methods of modules that it reaches.  Read `holding.py`
for what modules hold.
"""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from ..core.handle import Tensor

_PLAIN = {bool, int, float, complex, str, bytes, type(None)}
_TABLES = {list, tuple, dict}
_TENSOR = object()
_LARGE = 64  # items of a table that is not compared
_FUNCTIONS = 256  # at most so many are looked at
_LIBRARIES = {"pullback", "torch", "functorch", "numpy", "scipy", *sys.stdlib_module_names}
_LIBRARIES -= {"__main__"}


class Variable:
    """A place that a name refers to: in a dict, the cell of a closure, an item of another place.

    `place` is (dict, name) or (cell, None), None of an item.
    """

    __slots__ = ("name", "place", "read")

    def __init__(self, read: Callable[[], Any], name: str, place: tuple | None = None):
        self.read, self.name, self.place = read, name, place

    def found(self, arguments: list[Tensor]) -> Any:
        """What is there now; None if nothing is."""
        try:
            return self.read()
        except (ValueError, LookupError, TypeError):  # an empty cell, an item that is gone
            return None


def _in_dict(table: dict, name: str) -> Variable:
    return Variable(functools.partial(table.get, name), name, (table, name))


def _item(owner: Variable, key: Any) -> Variable:
    return Variable(lambda: owner.found(())[key], f"{owner.name}[{key!r}]")


class Outside:
    """Variables that a program was captured for: do they hold the same?"""

    __slots__ = ("classes", "plain", "rest", "values")

    def __init__(self, found: list[tuple[Variable, Any]]):
        plain = [(v, value) for v, value in found if value.__class__ in _PLAIN]
        self.plain, self.values = [v for v, _ in plain], [value for _, value in plain]
        self.classes = [v.__class__ for v in self.values]
        self.rest = [(v, value) for v, value in found if value.__class__ not in _PLAIN]

    def __call__(self) -> bool:
        found = [v.found(()) for v in self.plain]
        return found == self.values and [v.__class__ for v in found] == self.classes and all(
            same_now(old, v.found(())) for v, old in self.rest)

    def places(self, known: set) -> tuple[list[tuple], Callable[[], bool] | None]:
        """Places that hold the same while the same objects are there, and who asks about the rest;
        `known` are places of tensors that are looked at anyway."""
        fixed, rest = [], []
        for variable, old in (*zip(self.plain, self.values), *self.rest):
            place = variable.place
            if place is None or old.__class__ is _Items:
                rest.append((variable, old))
            elif old is not _TENSOR:
                fixed.append(place)
            elif (id(place[0]), place[1]) not in known:
                rest.append((variable, old))
        return fixed, Outside(rest) if rest else None

    def change(self) -> str:
        """What is another now, in words."""
        for variable, old in (*zip(self.plain, self.values), *self.rest):
            new = variable.found(())
            if not same_now(old, new):
                shown = "" if isinstance(old, _Items) else f", the program is for {old!r}"
                return f"{variable.name} outside of it is {new!r}{shown}"
        return ""


class _Items:
    """What a small list or table held; where a tensor was, any may be."""

    __slots__ = ("items", "kind")

    def __init__(self, value: Any, depth: int):
        self.kind = type(value)
        items = value.items() if self.kind is dict else enumerate(value)
        self.items = [(key, _kept(item, depth - 1)) for key, item in items]

    def same(self, value: Any) -> bool:
        if value.__class__ is not self.kind or len(value) != len(self.items):
            return False
        now = value.items() if self.kind is dict else enumerate(value)
        return all(k == key and same_now(old, item)
                   for (k, old), (key, item) in zip(self.items, now))


def _kept(value: Any, depth: int = 3) -> Any:
    """What is compared later: of lists and tables their items."""
    if value.__class__ in _TABLES and len(value) <= _LARGE and depth:
        return _Items(value, depth)
    return _TENSOR if isinstance(value, Tensor) else value


def same_now(old: Any, new: Any) -> bool:
    """Is what is there now what was kept?"""
    if old is new:
        return True
    if old is _TENSOR:
        return isinstance(new, Tensor)
    if old.__class__ is _Items:
        return old.same(new)
    return old.__class__ is new.__class__ and old.__class__ in _PLAIN and old == new


def _tensors(variable: Variable, value: Any, depth: int = 3) -> Iterator[tuple[Variable, Tensor]]:
    """The tensors at a place, and in lists and tables there."""
    if isinstance(value, Tensor):
        yield variable, value
    elif value.__class__ in _TABLES and len(value) <= _LARGE and depth:
        for key, item in value.items() if type(value) is dict else enumerate(value):
            yield from _tensors(_item(variable, key), item, depth - 1)


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


def _imported(variable: Variable, value: Any) -> bool:
    """A module, or a function or class of a library by its own name: such names are not rebound."""
    return isinstance(value, types.ModuleType) or (
        callable(value) and getattr(value, "__name__", None) == variable.name
        and (getattr(value, "__module__", None) or "").partition(".")[0] in _LIBRARIES)


def _starts(function: Any, modules: list) -> Iterator:
    while isinstance(function, functools.partial) or hasattr(function, "__wrapped__"):
        yield function
        function = function.func if isinstance(function, functools.partial) else (
            function.__wrapped__)
    yield function
    for module in modules:
        yield getattr(type(module), "forward", None)


def variables(function: Any, modules: list) -> tuple[list, list]:
    """The variables that a function may read: with what is to be compared, and those of tensors."""
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
        there = [(_in_dict(space, n), space[n]) for n in names if n in space]
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if cell != types.CellType():
                read = functools.partial(getattr, cell, "cell_contents")
                there.append((Variable(read, name, (cell, None)), cell.cell_contents))
        for name in ("__defaults__", "__kwdefaults__"):
            if (value := getattr(function, name)) is not None:
                read = functools.partial(getattr, function, name)
                there.append((Variable(read, f"{function.__name__}.{name}"), value))
        for value in [v for _, v in there] + ([] if own is None else [own]):
            table = _attributes(value)
            there += [(_in_dict(table, n), table[n]) for n in attributes if n in table]
        for variable, value in there:
            if isinstance(value, types.FunctionType):
                todo.append(value)
            table, name = variable.place or (variable, "")
            found[id(table), name] = variable, value
    pairs = list(found.values())
    return [(v, _kept(value)) for v, value in pairs if not _imported(v, value)], [
        pair for v, value in pairs for pair in _tensors(v, value)]


def _attributes(value: Any) -> dict:
    """The attributes of an object of a class of the user; of modules others take care."""
    kind = type(value)
    if kind.__module__.partition(".")[0] in _LIBRARIES or isinstance(value, Tensor):
        return {}
    table = getattr(value, "__dict__", None)
    return table if type(table) is dict and "_buffers" not in table else {}
