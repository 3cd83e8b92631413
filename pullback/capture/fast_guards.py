"""The short way into a program: is everything as it was in an earlier call?

Most calls are like the one before: tensors of the same kinds, the same numbers, modules with the
same parts.  `SameCall` compares just that, by identity wherever it can, and says no in case of
doubt: the general way (`compiled.py`) then asks in full.  Where there is native code it is one
native call (`compile/runtime/same_call.c`), which puts itself in the place of `same_call`.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..array import dtype as dt
from ..core.handle import Tensor
from ..memory import storages
from ..threads.state import state

if TYPE_CHECKING:
    from ..python_state.module_tensors import ModuleTree
    from .run import Program


class _Named:
    """Stands before the names of arguments: these are no texts among the others."""


_NAMED = _Named()
_PLAIN = {bool, int, float, complex, str, type(None), _Named}
_facts = attrgetter("shape", "strides", "dtype", "__class__")  # of an array
TRIES = 16  # a program whose calls are never the same is not looked at any more


def in_line(args: tuple, kwargs: dict) -> tuple:
    """The arguments of a call one behind the other, tensors in the order that programs take."""
    return (*args, _NAMED, *kwargs, *kwargs.values()) if kwargs else args


class SameCall:
    """Tells calls that are like the one that it was made in.

    `held` are places of tensors that the program takes besides the arguments, (dict or cell, name)
    or (tensor, None); `items` are (dict or cell, name, what is there), `tables` (dict, all values).
    """

    def __init__(self, args: tuple, held: tuple, items: tuple, tables: tuple):
        self.values = [Tensor if isinstance(a, Tensor) else a for a in args]
        self.held, self.items, self.tables = held, items, tables
        self.looks = [_look(t) for t in self._tensors(args)]

    def _tensors(self, args: tuple) -> list:
        own = [a for a, value in zip(args, self.values) if value is Tensor]
        return [*own, *[_found(*place) for place in self.held]]

    def __call__(self, args: tuple) -> tuple[list[Tensor], list] | None:
        """The tensors that the program takes, and their arrays; None if anything is another."""
        if len(args) != len(self.values) or any(
            value is not a and (value is not Tensor or not isinstance(a, Tensor))
            for a, value in zip(args, self.values)
        ):
            return None
        if any(_found(owner, name) is not value for owner, name, value in self.items) or any(
            len(table) != len(values) or any(a is not b for a, b in zip(table.values(), values))
            for table, values in self.tables
        ):
            return None
        tensors = self._tensors(args)
        arrays = [getattr(t, "_payload", None) for t in tensors]  # another thread may capture
        if [_look(t) for t in tensors] != self.looks or any(
                a is not t._payload for a, t in zip(arrays, tensors)):
            return None
        return tensors, arrays


def _found(owner: Any, name: str | None) -> Any:
    if isinstance(owner, dict):
        return owner.get(name)
    if isinstance(owner, types.CellType):
        return owner.cell_contents if owner != types.CellType() else None
    return owner


def _look(t: Any) -> tuple | None:
    """What a program depends on; None of what is no plain tensor."""
    if not isinstance(t, Tensor) or t._link is not None or type(t._payload) is not np.ndarray:
        return None
    return t._edge is not None, *_facts(t._payload)


same_call: Callable = SameCall  # or the native form


class Short(NamedTuple):
    """How the next calls may come in."""

    fits: Callable  # the tensors that the program takes and their arrays, if a call is the same
    record: bool
    default: Any
    program: Program
    rest: tuple[Callable[[], bool], ...]  # what else must hold


def short(program: Program, args: tuple, modules: ModuleTree | None) -> Short | None:
    """The short way into a program that has just been found for arguments; None if there is
    none, since it depends on more than can be compared like this."""
    joint = program.joint
    if not program.comparable or program.shortened >= TRIES or storages.left:
        return None  # or there are tensors that have to follow memory which has moved
    if any(a.__class__ not in _PLAIN and not isinstance(a, Tensor) for a in args):
        return None
    program.shortened += 1
    held = [(t, None) if isinstance(t, Tensor) else t.place for t in joint.inputs.adopted]
    if None in held:
        return None
    items, tables, rest = [], [], []
    if modules is not None and modules.roots:
        items += [(s, "training", s["training"]) for s in modules.states]
        tables += [(t, tuple(t.values())) for t in modules.tables if t]
    known = {(id(owner), name) for owner, name in held}
    for guard in joint.guards.python:
        tables += [(t, tuple(t.values())) for t in getattr(guard, "tables", ())]
        places, left = guard.places(known) if hasattr(guard, "places") else ([], guard)
        items += [(owner, name, _found(owner, name)) for owner, name in places]
        rest += [] if left is None else [left]
    if None in map(_look, [*filter(_is_tensor, args), *[_found(*place) for place in held]]):
        return None
    check = same_call(args, tuple(held), tuple(items), tuple(tables))
    return Short(check, state.record[0], dt.default(), program, tuple(rest))


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)
