"""The operator table: one file per family.  `pullback.ops.aten.<name>.<overload>` gives an overload."""

from __future__ import annotations


class _Aten:
    """Attribute access to the overload families."""

    def __getattr__(self, name: str):
        from ..core.table import ops
        found = getattr(ops, name)
        self.__dict__[name] = found
        return found

    def __repr__(self) -> str:
        return "<operators of the table>"


aten = _Aten()
