"""`Size`: a shape as users see it; and the marker of sizes that are not known yet.

The numbers themselves are in `symbolic/`, which is imported by the first capture that has any.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any


class Symbolic:
    """Base of numbers that stand for expressions over sizes; `hint` is the example's value."""

    __slots__ = ()
    __array_ufunc__ = None


class SymbolicShape(tuple):
    """A shape with symbolic sizes; asks about them only where the number of dims is the same."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple) and len(self) == len(other) and tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return tuple.__hash__(self)


def whole(value: Any) -> Any:
    """A number as an integer; one that is not known yet stays symbolic where it can."""
    return value.whole() if isinstance(value, Symbolic) else int(value)


def hinted(value: Any) -> Any:
    """A value with the example's numbers in the place of symbolic ones, lists included."""
    if isinstance(value, Symbolic):
        hint = value.hint
        # of a count that only the data decides any size will do, of another number its type
        return value.node.pytype(8) if hint is None else hint
    if type(value) is list or type(value) is tuple or type(value) is Size:
        return type(value)([hinted(v) for v in value])
    if type(value) is SymbolicShape:
        return tuple([hinted(v) for v in value])
    return value


def holds(answer: Any) -> bool:
    """Is something so that an operator needs?  Of numbers that only the data decides it is taken to
    be, and when it runs the operator looks itself."""
    if isinstance(answer, Symbolic):
        from ..symbolic.queries import expect_true

        return expect_true(answer)
    return bool(answer)


def surely(answer: Any) -> bool:
    """Is something so?  Of numbers that only the data decides it is not, unless it is known."""
    if isinstance(answer, Symbolic):
        from ..symbolic.queries import guard_or_false

        return guard_or_false(answer)
    return bool(answer)


def fits_a_size(n: Any) -> bool:
    """Can a number be a size?  One that only the data decides is taken to be one."""
    if isinstance(n, Symbolic) and n.hint is None:
        n.node.shape_env.is_size(n)
        return True
    return n >= 0


def from_data(values: Any, marked: bool = True) -> bool:
    """Is any size or number among them one that only the data decides, or (unless `marked` is
    off) one of an input that is treated like that?"""
    for v in values:
        if isinstance(v, Symbolic):
            if v.hint is None and (marked or v.node.shape_env.by_data(v)):
                return True
        elif type(v) in _CONTAINERS and from_data(v, marked) or type(
                getattr(v, "shape", None)) is SymbolicShape and from_data(v.shape, marked):
            return True
    return False


def cached(size: int) -> Callable:
    """`functools.lru_cache`, past which symbolic sizes go: they mean another thing each time."""

    def decorate(function: Callable) -> Callable:
        kept = functools.lru_cache(size)(function)

        @functools.wraps(function)
        def call(*args: Any) -> Any:
            try:
                return kept(*args)
            except TypeError:
                if is_symbolic(args):
                    return function(*args)
                raise

        return call

    return decorate


def is_symbolic(values: Any) -> bool:
    """Is any of the values symbolic, those in lists included?"""
    for v in values:
        if isinstance(v, Symbolic):
            return True
        if type(v) in _CONTAINERS and is_symbolic(v):
            return True
    return False


class Size(tuple):
    """A tensor's shape; a tuple that prints as PyTorch's."""

    __slots__ = ()

    def numel(self) -> int:
        """Number of elements of a tensor with this shape."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def __getitem__(self, key, _get=tuple.__getitem__):
        return _get(self, key) if key.__class__ is not slice else Size(_get(self, key))

    def __add__(self, other):
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other):
        return Size(tuple(other) + tuple(self))

    def __reduce__(self):
        return (Size, (tuple(self),))


_CONTAINERS = (list, tuple, SymbolicShape, Size)
