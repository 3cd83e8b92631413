"""Schemas as PyTorch shows them: with namespaces, under its names.

Read next: `../core/schema.py`.
"""

from __future__ import annotations

from ..core.schema import Argument, Schema

_SHOWN = {"Scalar": "number", "ScalarType": "int", "Layout": "int", "MemoryFormat": "int"}


class AliasInfo:
    """What a mark such as `(a! -> *)` says, under PyTorch's names."""

    def __init__(self, text: str):
        self.is_write = "!" in text
        before, _, after = text.replace("!", "").partition("->")
        self.before_set = {name.strip() for name in before.split("|")}
        self.after_set = {name.strip() for name in (after or before).split("|")}


class Shown:
    """What PyTorch calls the facts of an argument; all arguments get these."""

    @property
    def type(self) -> str:
        """The type in words of Python: "Optional[List[int]]"; numbers stand for settings."""
        text = _SHOWN.get(self.base, self.base)
        if self.optional_items:
            text = f"Optional[{text}]"
        text = f"List[{text}]" if self.is_list else text
        return f"Optional[{text}]" if self.optional else text

    @property
    def default_value(self) -> object:
        return self.default

    def has_default_value(self) -> bool:
        return self.has_default

    @property
    def alias_info(self) -> AliasInfo | None:
        """Whose memory it shares, None if nobody's."""
        return AliasInfo(self.alias) if self.alias else None


for _name in ("type", "default_value", "has_default_value", "alias_info"):
    setattr(Argument, _name, vars(Shown)[_name])


class Qualified:
    """A schema as PyTorch shows it: with the namespace of its operator, under its names."""

    def __init__(self, schema: Schema, namespace: str):
        self._schema, self._prefix = schema, f"{namespace}::" if namespace else ""
        self.name, self.overload_name = f"{self._prefix}{schema.name}", schema.overload
        self.arguments = schema.args

    @property
    def is_mutable(self) -> bool:
        return any(a.is_write for a in self._schema.args)

    def __getattr__(self, name: str):
        return getattr(self._schema, name)

    def __str__(self) -> str:
        return f"{self._prefix}{self._schema}"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Qualified) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


def parse_schema(text: str) -> Qualified:
    """A schema from its text, with or without a namespace, under PyTorch's names."""
    return Qualified(Schema(text), text.partition("(")[0].rpartition("::")[0].strip())
