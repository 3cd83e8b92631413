"""Caches of `functools` that a captured function fills: what they keep of it, filling them before.

While a function is captured, a cached function that it calls computes with stand-ins for tensors
and with symbols for sizes.  Where neither is in what the cache keeps, it may keep it: nobody can
tell.  Where stand-ins are, the cache is emptied, the cached function is called with the same
arguments outside of the capture, and the function is captured once more; it finds tensors then,
like any others that it reaches.  Read next: `side_effects.py`, which notes what else was changed.
"""

from __future__ import annotations

import gc
import types
from typing import Any, NamedTuple

import numpy as np

from ..array.generator import default_generator
from ..array.size import Symbolic
from ..core.handle import Box, Tensor
from .reachable import PLAIN

_THINGS = 10_000  # at most so many are looked at in what a cache holds
_CLOSED = (type, types.ModuleType, types.BuiltinFunctionType, types.CodeType, np.ndarray, np.dtype,
           np.generic)  # nothing of a capture is in them


class Call(NamedTuple):
    """A call of a cached function in a capture, and the facts of the stand-ins in its result."""

    cache: Any
    args: tuple
    kwargs: dict
    facts: list

    def again(self) -> bool:
        """Call it outside of the capture; False if it draws or its result is another kind."""
        before = default_generator.get_state()
        made = tensors_in(self.cache(*self.args, **self.kwargs))
        if not np.array_equal(before, default_generator.get_state()):
            default_generator.set_state(before)  # the function draws other numbers before these
            return False
        return made is not None and _facts(made) == self.facts


def _facts(tensors: list[Tensor]) -> list:
    return sorted((t.dtype.name, tuple(t.shape), t.requires_grad) for t in tensors)


def entries(cache: Any) -> list[tuple[Any, Any]]:
    """Keys and values of a cache; what is not limited holds them in a table, others in a list."""
    held = gc.get_referents(cache)
    tables = [t for t in held if type(t) is dict and t is not cache.__dict__]
    if cache.cache_parameters()["maxsize"] is None:
        return [item for table in tables for item in table.items()]
    keys = {id(key) for table in tables for key in table}
    return [(key, held[i + 1]) for i, key in enumerate(held[:-1]) if id(key) in keys]


def _arguments(cache: Any, key: Any) -> tuple[tuple, dict] | None:
    """The arguments that make a key, None if it does not tell."""
    if type(key) is not tuple:
        return (key,), {}
    if cache.cache_parameters()["typed"]:
        return None
    marks = [i for i, part in enumerate(key) if type(part) is object]  # where names begin
    if not marks:
        return key, {}
    named = key[marks[0] + 1:]
    if len(marks) > 1 or len(named) % 2 or not all(type(name) is str for name in named[::2]):
        return None
    return key[:marks[0]], dict(zip(named[::2], named[1::2]))


def tensors_in(value: Any) -> list[Tensor] | None:
    """The tensors in a value; None if there is a symbol, or too much to look at."""
    found: list[Tensor] = []
    todo, met = [value], {}
    while todo:
        thing = todo.pop()
        if thing.__class__ in PLAIN or isinstance(thing, _CLOSED) or id(thing) in met:
            continue
        met[id(thing)] = thing
        if isinstance(thing, Symbolic) or len(met) > _THINGS:
            return None
        if isinstance(thing, Tensor):
            found.append(thing)
        elif isinstance(thing, types.FunctionType):
            todo += [thing.__closure__, thing.__defaults__, thing.__kwdefaults__, thing.__dict__]
        else:
            todo += gc.get_referents(thing)
    return found


def left_by_capture(cache: Any) -> list[Call] | None:
    """The calls that have put stand-ins into a cache; None if these cannot be made again."""
    calls = []
    for key, value in entries(cache):
        tensors, of_key = tensors_in(value), tensors_in(key)
        if tensors is None or of_key is None or any(isinstance(t._payload, Box) for t in of_key):
            return None
        if any(isinstance(t._payload, Box) for t in tensors):
            arguments = _arguments(cache, key)
            if arguments is None:
                return None
            calls.append(Call(cache, *arguments, _facts(tensors)))
    return calls
