"""Decomposition tables: operators in terms of core operators.

The definitions themselves stand in the table entries (`decomp`, or `compose` of a composite); this
package offers them as dictionaries in PyTorch's manner, and takes further ones from users.  Which
operators are core is in `core.py`.  A decomposition's own name finds it, too: `decomp.gelu`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..core import surface
from ..core.op import families, registry
from ..core.overload import OpOverload, overload_of
from ..graph.tables import overloads, positional
from ..table.arguments import no_match
from ..table.derived_overloads import InplaceOverload
from .core import core_of, is_core

__all__ = [
    "CustomDecompTable",
    "core_aten_decompositions",
    "decomposition_table",
    "get_decompositions",
    "global_decomposition_table",
    "is_core",
    "meta_table",
    "pre_autograd_decomposition_table",
    "register_decomposition",
    "remove_decompositions",
]


class Decomposition:
    """An operator's decomposition, called as the operator is."""

    __slots__ = ("flat", "overload")

    def __init__(self, overload: OpOverload, flat: Callable):
        self.overload, self.flat = overload, flat  # `flat` takes the arguments in schema order

    @property
    def __name__(self) -> str:
        return self.overload.op.base_name

    @property
    def __doc__(self) -> str | None:
        return self.overload.op.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        flat = self.overload.bind(args, kwargs)
        if flat is None:
            raise no_match(self.overload.name, [self.overload], args, kwargs)
        result = self.flat(*flat)
        return result if out is None else _stored(result, out)

    def __repr__(self) -> str:
        return f"<decomposition of {self.overload}>"


def _stored(result, out):
    """What `out=` gives: the results, written into given tensors."""
    if isinstance(out, (tuple, list)):
        for value, place in zip(result, out, strict=True):
            _stored(value, place)
        return out
    if tuple(out.shape) != tuple(result.shape):
        out.resize_(result.shape)
    return out.copy_(result)


class Writing:
    """The decomposition of an overload that writes: that of the pure one, then the write."""

    __slots__ = ("overload", "pure")

    def __init__(self, overload, pure: dict):
        self.overload, self.pure = overload, pure

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self.overload, InplaceOverload):
            return args[0].copy_(next(iter(self.pure.values()))(*args, **kwargs))
        for ov, function in self.pure.items():
            known = {k: v for k, v in kwargs.items() if k in ov.schema.names}
            outs = [v for k, v in kwargs.items() if k not in known]
            if ov.bind(args, known) is not None and outs:
                place = outs[0] if len(outs) == 1 else tuple(outs)
                return _stored(function(*args, **known), place)
        raise no_match(self.overload.name, list(self.pure), args, kwargs)

    def __repr__(self) -> str:
        return f"<decomposition of {self.overload}>"


class Everything:
    """All decompositions but those that leave checks of some kinds to the operator, looked up one
    by one.

    What `decomposition_table` holds, without loading the whole table.
    """

    def __init__(self, whole: tuple[str, ...] = (), careful: bool = False):
        self.whole = whole  # operators whose entries have one of these as `trusts` stay as they are
        self.careful = careful  # may none take values that the operator refuses?

    def __str__(self) -> str:
        kept = " or ".join(self.whole)
        return f"all operators are taken apart but those whose parts trust their {kept}"

    def get(self, o: OpOverload, default: Any = None) -> Any:
        if o.op.trusts in self.whole:
            return default
        if decomposition_table.added and o in decomposition_table.added:
            return positional(o, decomposition_table.added[o])
        found = None if o.is_composite else o.decomposition
        return default if found is None else found


class _Table(dict):
    """`decomposition_table`: filled from the operator table when somebody looks."""

    def __init__(self) -> None:
        super().__init__()
        self.added: dict = {}  # what users registered
        self._seen: set[str] = set()  # names of the entries that were looked at

    def fill(self) -> None:
        """Take in what is new; what was removed stays away."""
        if len(registry) == len(self._seen):
            return
        for name in registry:
            if name not in self._seen:
                self._seen.add(name)
                o = overload_of(registry[name])
                if o.decomposition is not None:
                    dict.setdefault(self, o, Decomposition(o, o.decomposition))

    def __getitem__(self, key: Any) -> Any:
        self.fill()
        return dict.__getitem__(self, key)

    def __contains__(self, key: object) -> bool:
        self.fill()
        return dict.__contains__(self, key)

    def __iter__(self) -> Iterator:
        self.fill()
        return dict.__iter__(self)

    def __len__(self) -> int:
        self.fill()
        return dict.__len__(self)

    def items(self):
        self.fill()
        return dict.items(self)

    def keys(self):
        self.fill()
        return dict.keys(self)

    def values(self):
        self.fill()
        return dict.values(self)

    def get(self, key: Any, default: Any = None) -> Any:
        self.fill()
        return dict.get(self, key, default)

    def pop(self, key: Any, *default: Any) -> Any:
        self.fill()
        self.added.pop(key, None)
        return dict.pop(self, key, *default)

    def copy(self) -> dict:
        return dict(self.items())

    def __delitem__(self, key: Any) -> None:
        self.pop(key)


decomposition_table = _Table()
pre_autograd_decomposition_table: dict = {}
meta_table: dict = {}
global_decomposition_table = {
    "post_autograd": decomposition_table,
    "pre_autograd": pre_autograd_decomposition_table,
    "meta": meta_table,
}


class CustomDecompTable(dict):
    """A table for `run_decompositions`: what is taken out of it stays whole, composites too."""

    has_materialized = True

    def copy(self) -> CustomDecompTable:
        return CustomDecompTable(self)

    def materialize(self) -> dict:
        """As a plain dictionary."""
        return dict(self)


def core_aten_decompositions() -> CustomDecompTable:
    """Everything that reduces a capture to core operators; core operators stay as they are."""
    return CustomDecompTable({
        o: f
        for o, f in decomposition_table.items()
        if core_of(str(getattr(o, "name", ""))) in (False, "apart")
    })


def get_decompositions(aten_ops: Any, type: str = "post_autograd") -> dict:
    """The decompositions of some operators; those without one are left out."""
    table = _registry(type)
    found = {}
    for o in overloads(aten_ops):
        if o in table:
            found[o] = table[o]
            continue
        pure = getattr(o, "functional", None)
        if pure is not None and not isinstance(o, OpOverload):
            pure = [pure] if isinstance(pure, OpOverload) else pure
            known = {p: table[p] for p in pure if p in table}
            if known:
                found[o] = Writing(o, known)
    return found


def _registry(type: str) -> dict:
    if type not in global_decomposition_table:
        raise ValueError(
            f"type must be one of {', '.join(map(repr, global_decomposition_table))}, got {type!r}"
        )
    return global_decomposition_table[type]


def register_decomposition(
    aten_op: Any, registry: dict | None = None, *, type: str = "post_autograd", unsafe: bool = False
) -> Callable:
    """Decorator: register a function as the decomposition of operators.

    They are overloads, families (all their overloads) or trees of these.  The function takes the
    operator's arguments; NotImplemented means that this call stays as it is.
    """
    table = _registry(type) if registry is None else registry

    def register(function: Callable) -> Callable:
        chosen = overloads(aten_op)
        for o in chosen:
            if o in table:
                raise RuntimeError(f"duplicate registrations for {o}")
        for o in chosen:
            table[o] = function
            if table is decomposition_table:
                decomposition_table.added[o] = function
        return function

    return register


def remove_decompositions(decompositions: dict, aten_ops: Any) -> None:
    """Take operators out of a table of decompositions."""
    for o in overloads(aten_ops):
        decompositions.pop(o, None)


class Family:
    """The decompositions of all overloads of one name: the first that takes the call."""

    def __init__(self, name: str):
        self.__name__ = self.__qualname__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        entries = [overload_of(op) for op in families[self.__name__]]
        given = {k: v for k, v in kwargs.items() if k != "out"}
        for o in entries:
            if o.bind(args, given) is not None:
                function = decomposition_table.get(o)
                return (function or o)(*args, **kwargs)
        raise no_match(self.__name__, entries, args, kwargs)

    def __repr__(self) -> str:
        return f"<decomposition of aten.{self.__name__}>"


def __getattr__(name: str) -> Family:
    if not name.startswith("__") and name in families:
        return Family(name)
    raise AttributeError(f"module 'pullback.decomp' has no attribute '{name}'")
