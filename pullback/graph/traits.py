"""What passes and partitioners may ask about a target or a node's example value.

Targets are opaque callables here. An entry of the operator table has an `op` with a cost class and
a purity flag; anything else is an unknown Python function, assumed expensive. Example values
(`node.meta["val"]`) are looked at only through `shape`, `dtype`, `stride()` and `device`.
Read `node.py` next.
"""

import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..array.size import Symbolic
from ..autograd.grad_mode import _set_grad_enabled
from ..creation import _assert
from ..table.effects import effect_of
from ..table.packets import Packet
from .naming import IN_PLACE_OPERATORS

if TYPE_CHECKING:
    from .node import Node

# Python functions that act by side effect, so that dead code elimination must keep their calls.
_side_effects: set[Callable] = {getattr(operator, name) for name in IN_PLACE_OPERATORS}
_side_effects.update((operator.delitem, print, _assert, _set_grad_enabled))


def has_side_effect(fn: Callable) -> Callable:
    """Declare that calls of a function matter even if their result is unused; a decorator too."""
    _side_effects.add(fn)
    return fn


def cost_of(target: Any) -> str:
    """Cost class of a call target: "cheap", "view", "reduce", "heavy", "random" or "create"."""
    if target is operator.getitem:
        return "view"
    if isinstance(target, Packet):
        draws = not target._inplace and target.entries()[0].is_random
        return "random" if draws else "heavy"
    return getattr(getattr(target, "op", None), "cost", "heavy")


def trait(target: Any, name: str) -> Any:
    """What the entry of a call target says, an attribute of `Op`; None for other functions, and for
    the variants of an operator that write."""
    if isinstance(target, Packet):
        return None if target._inplace else getattr(target.entries()[0].op, name)
    return None if hasattr(target, "functional") else getattr(
        getattr(target, "op", None), name, None)


def is_pure(target: Any) -> bool:
    """True if a call has no effect beyond its result.

    A random draw counts as pure here: it changes no value, only which numbers come next.
    """
    if isinstance(target, Packet):
        return not (target._inplace or target.name.startswith("_assert"))
    if target in _side_effects or hasattr(target, "functional"):  # `add_`, `add.out`
        return False
    if effect_of(target) is not None:
        return False
    if cost_of(target) == "random":
        return True
    if getattr(target, "schema", None) is not None and _writes(target):
        return False
    return getattr(getattr(target, "op", None), "pure", True)


@functools.cache
def _writes(target: Any) -> bool:
    return any(a.is_write for a in getattr(target.schema, "args", ()))


def is_write(node: "Node") -> bool:
    """True for calls that may change a value they are given."""
    return node.op not in ("placeholder", "get_attr", "output") and node.is_impure(
        impure_random=False
    )


def viewed(node: "Node") -> "Node":
    """The node whose memory a chain of views looks at; the node itself if it is no view."""
    while node.op == "call_function" and cost_of(node.target) == "view" and node._inputs:
        node = next(iter(node._inputs))
    return node


def owner(node: "Node") -> "Node":
    """The same, but of an operator with several results in memory of their own, the one."""
    while node.op == "call_function" and cost_of(node.target) == "view" and node._inputs:
        source = next(iter(node._inputs))
        several = isinstance(source.meta.get("val"), (tuple, list))
        if several and cost_of(source.target) != "view":
            return node
        node = source
    return node


def base_name(target: Any) -> str:
    """Operator name without namespace and overload: "mul" for `aten.mul.Tensor`.

    Of somebody's own operator it is the whole name: whatever that is, it is none of the table's.
    """
    if getattr(target, "custom", False):
        return str(target)
    parts = str(target).split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def is_tensor(value: Any) -> bool:
    """True for example values that stand for an array."""
    return hasattr(value, "shape") and hasattr(value, "dtype")


def same_layout(first: Any, second: Any) -> bool:
    """True if two example tensors agree in shape, dtype, strides and device."""
    return (
        _equal(first.shape, second.shape)
        and first.dtype == second.dtype
        and _equal(first.stride(), second.stride())
        and getattr(first, "device", None) == getattr(second, "device", None)
    )


def _equal(first: Any, second: Any) -> bool:
    """Are sizes the same, symbolic ones for all values of their symbols?"""
    if len(first) != len(second):
        return False
    for a, b in zip(first, second):
        if isinstance(a, Symbolic) or isinstance(b, Symbolic):
            if str(a) != str(b):  # texts are normal forms
                return False
        elif a != b:
            return False
    return True


def _size(extent: Any) -> int:
    if type(extent) is int:
        return extent
    hint = getattr(extent, "hint", None)  # a symbolic size remembers the size it was traced with
    return hint if isinstance(hint, int) else 4096


def nbytes(value: Any) -> int:
    """Memory an example value occupies; expanded dimensions (stride 0) take none, numbers 8."""
    if isinstance(value, (tuple, list)):
        return sum(map(nbytes, value))
    if not is_tensor(value):
        return 0 if value is None else 8
    total = value.dtype.itemsize
    for extent, stride in zip(value.shape, value.stride()):
        if type(stride) is not int or stride != 0:
            total *= _size(extent)
        elif _size(extent) == 0:
            return 0
    return total


def memory(node):
    """The node whose memory another one shows: by views, or because it has written there."""
    node = owner(node)
    while node._inputs and is_write(node):
        node = owner(next(iter(node._inputs)))
    return node


def is_late(node) -> bool:
    """Does a call with an effect belong to the backward?"""
    return node.meta.get("partitioner_tag") == "must_be_in_backward"
