"""What a captured function can reach outside of its arguments, by the names in its code.

The walk begins at the function (and at objects among its arguments).  From code it goes to globals,
closures and default values; from objects, classes and files of the user to those attributes that
any code met so far names; from lists and tables to their items.  Methods are found by their names,
too, and all that Python calls by itself (`__call__`, `__len__`, properties).  Libraries are taken
as they are: their code is not looked at.  Read next: `variables.py`, which compares what is found
there; `side_effects.py`, which finds out what was changed.
"""

from __future__ import annotations

import builtins
import collections
import dis
import functools
import io
import random
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..core.handle import Tensor
from ..errors import module_of

PLAIN = {bool, int, float, complex, str, bytes, type(None)}
TABLES = (list, tuple, dict, set, frozenset, collections.deque)
ABSENT = object()  # where nothing is
_ITEMS = 1024  # at most so many of a table are looked at
_THINGS = 8000  # and of all things; those that are near come first
_FUNCTIONS = 512  # whose code is read
_OURS = {"pullback", "torch", "functorch", "numpy", "scipy"}
LIBRARIES = {*_OURS, *sys.stdlib_module_names}
LIBRARIES -= {"__main__"}
_BY_NAME = {"getattr", "hasattr", "setattr", "delattr", "vars", "globals", "__dict__", "attrgetter",
            "methodcaller", "__getattr__", "__getattribute__"}
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
STEP_HOOKS = "_optimizer_step_pre_hooks", "_optimizer_step_post_hooks"
_CACHE = type(functools.lru_cache(int))
_DRAWS = (random.Random, np.random.Generator, np.random.RandomState)
# what only a tensor itself can tell, not what stands for it in a capture
_OF_ITSELF = {"_version", "data_ptr", "is_inference"}


GONE = ValueError, LookupError, TypeError, AttributeError  # where an item or a cell is no more


class Variable:
    """A place that a name refers to: in a dict, the cell of a closure, an item of another place.

    `place` is (dict, name) or (cell, None), None of others.
    """

    __slots__ = ("name", "place", "read")

    def __init__(self, read: Callable[[], Any], name: str, place: tuple | None = None):
        self.read, self.name, self.place = read, name, place

    def found(self, arguments: list[Tensor]) -> Any:
        """What is there now."""
        try:
            return self.read()
        except GONE:
            return ABSENT


def in_dict(table: Any, name: str) -> Variable:
    place = (table, name) if isinstance(table, dict) else None
    return Variable(functools.partial(table.get, name, ABSENT), name, place)


class Names(NamedTuple):
    """What code names, functions inside of it included."""

    read: frozenset[str]  # globals
    written: frozenset[str]
    attributes: frozenset[str]
    set: frozenset[str]  # attributes that are assigned
    imported: frozenset[str]
    texts: frozenset[str]  # constants that may be names
    counted: frozenset[str]  # what is only added to: `calls += 1`
    free: frozenset[str]  # variables of functions around it


_STEPS = {"LOAD_GLOBAL": 0, "LOAD_NAME": 0, "STORE_GLOBAL": 1, "DELETE_GLOBAL": 1, "LOAD_ATTR": 2,
          "LOAD_METHOD": 2, "IMPORT_FROM": 2, "STORE_ATTR": 3, "DELETE_ATTR": 3, "IMPORT_NAME": 4,
          "LOAD_DEREF": 7, "LOAD_CLASSDEREF": 7, "LOAD_FROM_DICT_OR_GLOBALS": 0,
          "LOAD_FROM_DICT_OR_DEREF": 7, "LOAD_SUPER_ATTR": 2}
_ADDED = (["LOAD_CONST", "BINARY_OP"], ["LOAD_SMALL_INT", "BINARY_OP"])  # 3.14 has the latter


@functools.lru_cache(maxsize=4096)
def names_of(code: types.CodeType) -> Names:
    found: tuple = tuple(set() for _ in Names._fields)
    steps = [s for s in dis.get_instructions(code) if s.opname not in ("CACHE", "SWAP")]
    for k, step in enumerate(steps):
        kind = _STEPS.get(step.opname)
        if kind is not None:
            found[6 if _counts(steps[k:k + 4]) else kind].add(step.argval)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            for mine, more in zip(found, names_of(inner)):
                mine.update(more)
        elif isinstance(inner, str) and inner.isidentifier():
            found[5].add(inner)
    return Names(*map(frozenset, found))


def _counts(steps: list[dis.Instruction]) -> bool:
    """Is a constant added to what is read, and nothing else done with it?"""
    return [s.opname for s in steps[1:3]] in _ADDED and (
        steps[2].argrepr == "+=" and type(steps[1].argval) is int and len(steps) == 4
        and steps[3].opname.startswith("STORE_") and steps[3].argval == steps[0].argval)


def of_library(thing: Any) -> bool:
    """Is a function or class none of the user's?"""
    return module_of(thing).partition(".")[0] in LIBRARIES


def of_ours(kind: type) -> bool:
    """Is it a class of this package, or of those that it computes with?"""
    return module_of(kind).partition(".")[0] in _OURS


def _itself(thing: Any) -> Any:
    return thing


def compared_by_identity(thing: Any) -> bool:
    """Is it an object of the user's, or a function, that equals nothing but itself?"""
    kind = type(thing)
    return kind is types.FunctionType or not (
        isinstance(thing, (Tensor, type)) or of_library(kind) or hasattr(thing, "_modules")
    ) and kind.__hash__ in (None, object.__hash__)


def size_of(table: Any) -> int:
    """How many items a list or table has, whatever its class says."""
    if table.__class__ in TABLES:
        return len(table)
    return next(base for base in TABLES if isinstance(table, base)).__len__(table)


class Reach:
    """What can be reached from some things."""

    def __init__(self, starts: Iterable):
        self.attributes = {"forward", "function", "module", "_orig_mod"}
        self.set: set[str] = set()  # attributes that are assigned
        self.counted: set[str] = set()  # what is added to
        self.called: set[str] = set()  # names of builtins and of attributes of libraries
        self.variables: dict[tuple, tuple[Variable, Any]] = {}
        self.modules: list = []
        self.tables: dict[int, Any] = {}  # what can be changed: dicts (of attributes, too), lists
        self.spaces: list[tuple[dict, str]] = []  # globals that are assigned
        self.cells: dict[int, tuple[types.CellType, str]] = {}
        self.classes: list[type] = []
        self.files: list[dict] = []  # globals of files
        self.caches: list = []
        self.draws: list = []  # generators of random numbers
        self.odd = ""  # why it cannot be captured
        self.asked: set[str] = set()  # attributes that the first file names
        self._first: dict | None = None  # its globals
        self._by_name = False  # are attributes looked up by texts?
        self._things: dict[int, Any] = {}
        self._kept: list = []  # what must not end meanwhile: identities are compared
        self._owners: list[tuple[str, Any]] = []  # with attributes that count
        self._todo = collections.deque(starts)
        self._read = 0  # functions whose code was read
        for thing in list(self._todo):
            if isinstance(thing, TABLES):
                read = functools.partial(_itself, thing)
                self._note(Variable(read, f"the {type(thing).__name__}"), thing)
        seen = -1
        while self._todo or seen != len(self.attributes):
            while self._todo and len(self._things) < _THINGS:
                self._meet(self._todo.popleft())
            seen = len(self.attributes)
            for title, table in self._owners:
                for name in self.attributes & table.keys():
                    self._note(in_dict(table, name), table[name], table, title)
            if len(self._things) >= _THINGS:
                break

    def only_counted(self, name: str) -> bool:
        """Is nothing read of what a name stands for, but in order to add to it?"""
        return name in self.counted and name not in self.attributes and not any(
            v.name == name for v, _ in self.variables.values())

    def known(self) -> Iterable:
        """All that was met."""
        return self._things.values()

    def refused(self) -> str:
        """Why the function cannot be captured, if so.

        In other files than the function's own the names are too often those of other things.
        """
        asked = sorted(_OF_ITSELF & self.asked)
        return self.odd or (f"it asks for {asked[0]} of a tensor" if asked else "")

    def knows(self, thing: Any) -> bool:
        """Was it there before?"""
        return id(thing) in self._things

    def _note(self, variable: Variable, value: Any, owner: Any = None, title: str = "") -> None:
        table, name = variable.place or (variable if owner is None else owner, variable.name)
        if (id(table), name) not in self.variables:
            self._kept.append(table)
            variable.name = f"{title}.{variable.name}" if title else variable.name
            self.variables[id(table), name] = variable, value
            self._todo.append(value)

    def _meet(self, thing: Any) -> None:
        kind = thing.__class__
        if kind in PLAIN:
            if kind is str and self._by_name and thing.isidentifier():
                self.attributes.add(thing)
            return
        if id(thing) in self._things or isinstance(thing, Tensor):
            return
        self._things[id(thing)] = thing
        todo = self._todo
        if kind is types.FunctionType:
            self._function(thing)
        elif isinstance(thing, types.MethodType):
            todo += [thing.__self__, thing.__func__]
        elif kind is types.BuiltinMethodType:  # of a list, say
            todo.append(thing.__self__)
        elif isinstance(thing, property):
            todo += [thing.fget, thing.fset]
        elif isinstance(thing, (staticmethod, classmethod)):
            todo.append(thing.__func__)
        elif isinstance(thing, functools.partial):
            todo += [thing.func, *thing.args, *thing.keywords.values()]
        elif isinstance(thing, types.ModuleType):
            if thing.__name__.partition(".")[0] not in LIBRARIES:
                self._owners.append((thing.__name__, vars(thing)))
                self.files.append(vars(thing))
        elif isinstance(thing, type):
            if not of_library(thing):
                self._class(thing)
        elif isinstance(thing, _DRAWS):
            self.draws.append(thing)
        elif isinstance(thing, Iterator) and not isinstance(thing, io.IOBase):
            self.odd = f"it uses a {kind.__name__}, which is another after each use"
        elif isinstance(thing, weakref.ref):
            if isinstance(thing(), Tensor):
                self.odd = "it uses a weak reference to a tensor"
        elif isinstance(thing, np.ndarray) or type(kind) is type and module_of(kind) == "builtins" \
                and not isinstance(thing, TABLES):
            pass
        else:
            self._object(thing)

    def _function(self, function: Any) -> None:
        for cell in function.__closure__ or ():
            if cell != types.CellType():
                self._todo.append(cell.cell_contents)
        self._todo.append(getattr(function, "__wrapped__", None))
        if of_library(function) or self._read >= _FUNCTIONS:
            return
        self._read += 1
        names, space = names_of(function.__code__), function.__globals__
        self._by_name = self._by_name or not _BY_NAME.isdisjoint(names.read | names.attributes)
        self.attributes |= names.attributes | (names.texts if self._by_name else set())
        self._first = space if self._first is None else self._first
        if space is self._first:
            self.asked |= names.attributes
        self.counted |= names.counted
        self.set |= names.set | (names.texts if self._by_name else set())
        self.called |= names.read - space.keys()
        for name in names.read | (names.texts & space.keys() if "globals" in names.read else set()):
            if name in space or not hasattr(builtins, name):
                self._note(in_dict(space, name), space.get(name, ABSENT))
        self.spaces += [(space, name) for name in names.written]
        self._todo += [sys.modules.get(name) for name in names.imported]
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            self.cells[id(cell)] = cell, name
            if cell != types.CellType() and name in names.free:
                read = functools.partial(getattr, cell, "cell_contents")
                self._note(Variable(read, name, (cell, None)), cell.cell_contents)
        for name in ("__defaults__", "__kwdefaults__"):
            if (value := getattr(function, name)) is not None:
                read = functools.partial(getattr, function, name)
                self._note(Variable(read, f"{function.__name__}.{name}"), value, function)
        if function.__dict__:
            self._owner(function.__name__, function.__dict__)

    def _owner(self, title: str, table: Any) -> None:
        self._owners.append((title, table))
        if type(table) is dict:
            self.tables[id(table)] = table
            # an attribute that was not there may hide one of the class
            self._note(Variable(table.__len__, f"the number of attributes of {title}"), len(table))

    def _class(self, kind: type) -> None:
        self.classes.append(kind)
        self._owners.append((kind.__name__, vars(kind)))
        self._todo += [kind.__class__, *kind.__bases__]
        self._todo += [f for name, f in vars(kind).items() if name.startswith("__")
                       and isinstance(f, types.FunctionType)]

    def _object(self, thing: Any) -> None:
        kind, todo = thing.__class__, self._todo
        if isinstance(thing, TABLES):
            if not isinstance(thing, (tuple, frozenset)):
                self.tables[id(thing)] = thing
            if size_of(thing) <= _ITEMS:
                todo.extend(thing.values() if isinstance(thing, dict) else thing)
        if isinstance(thing, _CACHE) and not of_library(thing):
            self.caches.append(thing)
        todo.append(kind)
        table = getattr(thing, "__dict__", None)
        if type(table) is dict:
            todo.append(table.get("__wrapped__"))
            if "_buffers" in table and hasattr(thing, "modules"):
                self.modules.append(thing)
                todo += table["_modules"].values()
                todo += [hook for name in HOOKS for hook in table[name].values()]
            elif "_optimizer_step_pre_hooks" in table:
                todo += [hook for name in STEP_HOOKS for hook in table[name].values()]
            if of_ours(kind) and not self._by_name:
                self._owners.append((kind.__name__, table))
            else:
                self._owner(kind.__name__, table)
        for base in kind.__mro__ if not of_library(kind) else ():
            slots = vars(base).get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name in self.attributes or name in self.set:
                    read = functools.partial(getattr, thing, name, ABSENT)
                    self._note(Variable(read, f"{kind.__name__}.{name}"), read(), thing)
