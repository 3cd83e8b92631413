"""Transforms and tensors that are made of parts: arguments are opened, results closed again.

A transform sees the parts of its arguments: `opened` puts a container into the place of each such
tensor, of which the parts are the leaves, `closed` is the reverse.  Derivatives open the carrier
alone, as integers have none; `vmap` and captures open all parts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..core.handle import Tensor
from ..pytree import (
    GetAttrKey,
    register_pytree_node,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_unflatten,
)
from ..threads.state import fast
from .tensor import Parts, PartsTensor


class Opened:
    """A tensor taken apart, for transforms."""

    def __init__(self, parts: dict, kept: dict, meta: Any, cls: type[PartsTensor]):
        self.parts, self.kept, self.meta, self.cls = parts, kept, meta, cls

    def close(self) -> PartsTensor:
        return self.cls.join(self.parts | self.kept, self.meta)


class Kept:
    """What all tensors have in common that were opened from one, or are known to be alike."""

    def __init__(self, names: tuple, kept: dict, meta: Any, cls: type):
        self.names, self.kept, self.meta, self.cls = names, kept, meta, cls

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kept) and self.cls is other.cls and self.names == other.names and (
            self.meta == other.meta and self.kept.keys() == other.kept.keys()
            and all(same(a, other.kept[n]) for n, a in self.kept.items()))

    def __hash__(self) -> int:
        return hash((self.cls, self.names))

    def __repr__(self) -> str:
        return f"{self.cls.__name__}({', '.join(self.names)})"


def same(a: Any, b: Any) -> bool:
    """Are two parts one tensor, or do they hold the same integers?"""
    if a is b or a._payload is b._payload:
        return True
    return a.shape == b.shape and bool((a == b).all())


def _leaves(o: Opened) -> tuple[list, Kept]:
    return list(o.parts.values()), Kept(tuple(o.parts), o.kept, o.meta, o.cls)


def _together(leaves: Any, kept: Kept) -> Opened:
    return Opened(dict(zip(kept.names, leaves)), kept.kept, kept.meta, kept.cls)


def _named_leaves(o: Opened) -> tuple[list, Kept]:
    leaves, kept = _leaves(o)
    return [(GetAttrKey(n), leaf) for n, leaf in zip(kept.names, leaves)], kept


register_pytree_node(Opened, _leaves, _together, flatten_with_keys_fn=_named_leaves)


def opened(tree: Any, carriers_only: bool = False) -> Any:
    """A tree whose tensors of parts are containers."""

    seen: list = []

    def one(v):
        if not isinstance(v, PartsTensor):
            return v
        names = (v.carrier,) if carriers_only else v.names
        parts = v.opened_parts(names, seen)
        kept = {n: getattr(v, n) for n in v.names if n not in parts and getattr(v, n) is not None}
        return Opened(parts, kept, v.meta(), type(v))

    return tree_map(one, tree)


def closed(tree: Any) -> Any:
    """A tree whose containers are tensors again."""
    return tree_map(lambda v: v.close() if isinstance(v, Opened) else v, tree,
                    is_leaf=lambda v: isinstance(v, Opened))


def has_opened(spec: Any) -> bool:
    """Are there containers in a tree of this structure?"""
    return spec.type is Opened or any(map(has_opened, spec.children_specs))


def has_parts(t: Tensor) -> bool:
    """Is a tensor made of others?"""
    return t._payload.__class__ is Parts


def maps_parts(values: list, dims: list) -> Callable | None:
    """What maps a function over tensors whose examples along dim 0 have different sizes.

    A function of its own: what names the counters in `fast` must not be part of a program that is
    captured, which puts back the dictionaries that it names.
    """
    if not fast["PARTS"]:
        return None
    return next((v.map_parts for v, d in zip(values, dims)
                 if d == 0 and has_parts(v) and v.map_parts is not None), None)


def takes_tensors(function: Callable) -> bool:
    """Does a function take and return tensors of parts, where there may be some?"""
    return bool(fast["PARTS"]) and not getattr(function, "_opens", False)


def taken_apart(tree: Any) -> Any:
    """What a function returned under a derivative, opened if it made tensors of parts."""
    return opened(tree, True) if fast["PARTS"] else tree


def put_together(tree: Any) -> Any:
    """The reverse, where nobody above closes."""
    return closed(tree) if fast["PARTS"] else tree


def of_leaves(function: Callable, args: tuple, kwargs: dict) -> tuple | None:
    """A function of plain tensors that does what one of these arguments does, those tensors, and
    what makes a result of its results; None if no argument is made of parts."""
    if not (fast["PARTS"] and any(isinstance(v, PartsTensor) for v in tree_leaves((args, kwargs)))):
        return None
    leaves, spec = tree_flatten(opened((args, kwargs), True))
    made: list = []  # the structure of the result

    def inside(*given):
        own, named = closed(tree_unflatten(list(given), spec))
        found, *made[:] = tree_flatten(opened(function(*own, **named), True))
        return tuple(found)

    return inside, leaves, lambda found: closed(tree_unflatten(list(found), made[0]))


def lowered(t: Tensor, unwrap: Callable) -> Tensor:
    """A tensor as a handle of the level below, by what unwraps a plain one."""
    if not isinstance(t, PartsTensor):
        return unwrap(t)
    parts = {n: getattr(t, n) for n in t.names}
    return type(t).join({n: p if p is None else unwrap(p) for n, p in parts.items()}, t.meta())


def on_parts(function: Callable, carriers_only: bool = False) -> Callable:
    """A function as one of trees whose tensors of parts are opened."""

    @functools.wraps(function)
    def inside(*args, **kwargs):
        return opened(function(*closed(args), **closed(kwargs)), carriers_only)

    inside._opens = True
    return inside


def through(transform: Callable, function: Callable, args: tuple, kwargs: dict,
            carriers_only: bool = False) -> Any:
    """`transform(function)(*args, **kwargs)` on opened trees, the result closed again."""
    args, kwargs = opened((args, kwargs), carriers_only)
    return closed(transform(on_parts(function, carriers_only))(*args, **kwargs))
