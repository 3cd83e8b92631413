"""Tables of decompositions, as users give them, made ready for a recorder.

The tables themselves are in `decomp/`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import errors, pytree
from ..core.overload import OpOverload, apart
from ..table.derived_overloads import InplaceOverload, OutOverload
from ..table.packets import Packet


def overloads(thing: Any) -> list:
    """The overloads that an overload, a family, or a tree of them means."""
    if isinstance(thing, (OpOverload, InplaceOverload, OutOverload)):
        return [thing]
    if isinstance(thing, Packet):
        return [getattr(thing, name) for name in thing.overloads()]
    if hasattr(thing, "definition"):  # a registered operator of the user
        return [thing.default]
    leaves = pytree.tree_leaves(thing)
    if len(leaves) == 1 and leaves[0] is thing:
        raise errors.ArgumentError(errors.text(
            "expected an operator such as ops.aten.addmm or ops.aten.addmm.default, got "
            f"{thing!r} ({errors.user_line()})", cure="name it by ops.aten"))
    return [o for leaf in leaves for o in overloads(leaf)]


def positional(ov: OpOverload, function: Callable) -> Callable:
    """A decomposition, wherever it comes from, as a function of the arguments in schema order.

    A user's function is called as PyTorch calls it: with what the call gave, by name where the
    schema says so.
    """
    flat = getattr(function, "flat", None)
    if flat is not None:
        return flat

    def call(*flat: Any) -> Any:
        args, kwargs = ov.schema.as_called(flat)
        return function(*args, **kwargs)

    call.of_user = True  # type: ignore[attr-defined]  # what it calls is not of the operator
    return apart(ov, call)


def normalized(table: Any) -> Any:
    """A table as the recorder wants it: overload -> function of the arguments in schema order.

    Families of overloads stand for all of them.  Overloads that write are left out: a capture
    never sees one.
    """
    if table is not None and not hasattr(table, "items"):
        return table  # looked up one by one
    return {
        o: positional(o, function)
        for key, function in (table or {}).items()
        for o in overloads(key)
        if isinstance(o, OpOverload) and function is not o
    }
