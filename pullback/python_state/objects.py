"""Objects that a captured function makes and returns: each call makes new ones.

An object of a class of the user is taken apart into its attributes, as lists are into their items,
and put together without calling its class.  Others that a capture has made, and that could be
changed or hold tensors of it, cannot be made again: the function runs as it is written.
"""

from __future__ import annotations

import enum
import functools
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core.handle import Tensor
from ..pytree import register_pytree_node, tree_map
from .reachable import PLAIN, TABLES, Reach, of_library, of_ours
from .side_effects import Effects


class Taken:
    """An object, as a node of a tree."""

    def __init__(self, thing: Any, parts: dict):
        self.thing, self.parts = thing, parts


def _put_together(values: Any, context: tuple) -> Any:
    kind, names = context
    made = kind.__new__(kind)
    made.__dict__.update(zip(names, values))
    return made


register_pytree_node(
    Taken, lambda t: (list(t.parts.values()), (type(t.thing), tuple(t.parts))), _put_together)


def results(out: Any, reach: Reach, given: list) -> Any:
    """What a function returned, with the objects that it made taken apart."""
    old = {id(v) for v in given}

    def part(leaf: Any, depth: int = 8) -> Any:
        kind = leaf.__class__
        if kind in PLAIN or isinstance(leaf, Tensor) or id(leaf) in old or reach.knows(leaf):
            return leaf
        table = getattr(leaf, "__dict__", None)
        if (depth and type(table) is dict and not of_library(kind)
                and kind.__new__ is object.__new__
                and not isinstance(leaf, (type, types.FunctionType))):
            return Taken(leaf, tree_map(functools.partial(part, depth=depth - 1), dict(table)))
        if _varies(leaf):
            raise Effects(f"it returns a {kind.__name__} that it made")
        return leaf

    return tree_map(part, out)


def _varies(thing: Any) -> bool:
    if isinstance(thing, (type, types.ModuleType, enum.Enum)):
        return False
    if isinstance(thing, types.FunctionType):
        return bool(thing.__closure__)
    if isinstance(thing, Iterator):
        return True
    if isinstance(thing, (np.ndarray, types.MethodType, functools.partial, bytearray)):
        return True
    if isinstance(thing, TABLES):
        return not isinstance(thing, (tuple, frozenset)) or any(
            isinstance(v, Tensor) or _varies(v) for v in thing)
    table = getattr(thing, "__dict__", None)
    return bool(table) and (not of_ours(type(thing)) or any(
        isinstance(v, Tensor) for v in table.values()))
