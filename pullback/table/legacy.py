"""Old orders of arguments that calls are still understood in: `x.add_(alpha, other)`.

An entry says which in `legacy`: the names of its arguments as they were given once, all of them by
position.  They are tried when no signature of today fits, and a warning says so.  A method's own
tensor comes first, whatever place it has in the function.  Read next: `packets.py`.
"""

from __future__ import annotations

import functools

from .. import errors
from ..core.overload import OpOverload
from ..core.schema import Schema


@functools.cache
def old_schemas(ov: OpOverload, method: bool) -> list[Schema]:
    """What the old calls looked like, as schemas."""
    specs = dict(zip(ov.schema.names, ov.schema.args))
    found = []
    for order in ov.op.legacy:
        names = order.split()
        if method:
            names.sort(key=lambda name: name != "self")
        arguments = ", ".join(f"{specs[n].type_text()} {n}" for n in names)
        found.append(Schema(f"{ov.schema.full_name}({arguments}) -> Tensor"))
    return found


def find_legacy(entries: list[OpOverload], method: bool, args: tuple, kwargs: dict):
    """The overload that takes a call written in an old order, with its flat arguments, or None."""
    for ov in entries:
        for old in old_schemas(ov, method) if ov.op.legacy else ():
            given = old.bind(args, kwargs, ov.op.scalars)
            if given is not None:
                _warn(ov, old)
                values = dict(zip(old.names, given))
                return ov, tuple([values.get(a.name, a.default) for a in ov.schema.args])
    return None


def _warn(ov: OpOverload, old: Schema) -> None:
    warn_of(ov.op.base_name, old.names, [f"{a.name}={a.name}" if a.has_default else a.name
                                         for a in ov.schema.args if a.name in old.names])


def warn_of(name: str, old: list[str], now: list[str]) -> None:
    """Say that the order is old: once, for all operators, as PyTorch does."""
    errors.warn_once("legacy", f"{name}({', '.join(old)}): this order of arguments is "
                     f"deprecated ({errors.user_line()}). Write {name}({', '.join(now)})")
