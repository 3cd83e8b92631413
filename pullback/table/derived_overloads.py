"""Overloads that follow from those of the table: `add_.Tensor`, `add.out`.

Read next: `packets.py`, which finds them by name.
"""

from __future__ import annotations

import functools
import re

from ..core.op import OpName, ops
from ..core.schema import Schema
from ..core.surface import inplace
from ..memory.out import write_out
from .arguments import no_match
from .qualified import Qualified
from .tags import tags_of


def overload_name(ov) -> str:
    """`Tensor` of `add.Tensor`."""
    return ov.name.partition(".")[2] or "default"


def inplace_overload(ov) -> str:
    """The overload name of the in-place variant: that of the operator unless the entry says."""
    chosen = ov.op.inplace
    return chosen if isinstance(chosen, str) else overload_name(ov)


class _Writing:
    """What graphs ask the operator of an overload that writes."""

    cost, pure = "cheap", False


class Derived:
    """An overload that follows from one of the table; there is one object for each name."""

    namespace = "aten"
    is_view = is_composite = is_random = custom = False
    name: OpName
    schema: Schema
    _known: dict = {}

    def __new__(cls, *args):
        made = super().__new__(cls)
        made._begin(*args)
        return Derived._known.setdefault(repr(made), made)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def _schema(self):
        return Qualified(self.schema, self.namespace)

    @property
    def tags(self) -> list:
        """What PyTorch says of the operator."""
        return tags_of(self)

    def decompose(self, *args, **kwargs):
        """Asked for by dispatch handlers: it is no function of other operators."""
        return NotImplemented

    @property
    def overloadpacket(self):
        """The family of overloads that this one belongs to."""
        return getattr(ops, self.name.partition(".")[0])

    @property
    def _overloadname(self) -> str:
        return self.name.partition(".")[2] or "default"

    def __reduce__(self) -> tuple:
        return getattr, (self.overloadpacket, self._overloadname)


class InplaceOverload(Derived):
    """`ops.aten.add_.Tensor`: the in-place variant of an overload."""

    op = _Writing

    def _begin(self, ov):
        self.functional = ov
        overload = inplace_overload(ov)
        self.name = OpName(f"{ov.op.base_name}_"
                           + ("" if overload == "default" else f".{overload}"))
        self.__name__ = repr(self)

    def __repr__(self) -> str:
        return f"aten.{self.functional.op.base_name}_.{inplace_overload(self.functional)}"

    @functools.cached_property
    def schema(self):
        """The schema: that of the operator, but the first argument is written and returned."""
        text = str(self.functional.schema)
        first, rest = text[text.index("(") :].rpartition(" -> ")[0].split(" ", 1)
        first = re.sub(r"\(a[^)]*\)", "", first)
        if first.endswith("[]"):
            return Schema(f"{self.name}{first[:-2]}(a!)[] {rest} -> ()")
        return Schema(f"{self.name}{first}(a!) {rest} -> Tensor(a!)")

    def __call__(self, *args, **kwargs):
        flat = self.functional.bind(args, kwargs)
        if flat is None:
                raise no_match(repr(self), [self.functional], args, kwargs)
        return inplace(self.functional, flat)


def writing_overloads(entries: list, name: str) -> list:
    """The overloads whose results an overload of this name would write into given tensors."""
    outputs = {o.schema.returns[0].name for o in entries if o.schema.returns} - {""}
    if name in outputs or name in ("out", "grad_input"):
        return [o for o in entries if not o.is_view]
    named = [o for o in entries if o.op.writing == name]
    if named or not name.endswith("_out"):  # `aten.sum.IntList_out` is of `sum.dim_IntList`
        return named
    stem = f"_{name.removesuffix('_out')}"
    return [o for o in entries if f"_{overload_name(o)}".endswith(stem) and not o.is_view]


class OutOverload(Derived):
    """`ops.aten.add.out`: an operator that writes its results into given tensors.

    They are given as `out=`, or under the names that the results have.
    """

    def _begin(self, base: str, name: str, functional: list):
        self.base, self.functional = base, functional
        self.__name__ = self.name = OpName(f"{base}.{name}")

    def __repr__(self) -> str:
        return f"aten.{self.name}"

    @functools.cached_property
    def schema(self):
        """The schema of the first one: further arguments, which are written and returned."""
        text = str(self.functional[0].schema)
        head = text[text.index("(") :].rpartition(" -> ")[0]
        count = len(self.functional[0].schema.returns)
        names = [r.name or "out" for r in self.functional[0].schema.returns]
        names = ["out"] if count == 1 else names
        marks = [f"Tensor({'abcdefgh'[i]}!)" for i in range(count)]
        head = re.sub(r"\((a[^)!]*)\)", "", head[:-1])
        star = "" if "*, " in head else ", *"
        given = ", ".join(f"{m} {n}" for m, n in zip(marks, names))
        returned = marks[0] if count == 1 else f"({', '.join(marks)})"
        return Schema(f"{self.name}{head}{star}, {given}) -> {returned}")

    def __call__(self, *args, **kwargs):
        out = kwargs.get("out")
        outs = list(out) if isinstance(out, (tuple, list)) else [] if out is None else [out]
        for ov in self.functional:
            known = {k: v for k, v in kwargs.items() if k in ov.schema.names}
            named = [v for k, v in kwargs.items() if k not in known and k != "out"]
            flat = ov.bind(args, known)
            results = [*outs, *named]
            if flat is not None and len(results) == len(ov.schema.returns):
                return write_out(ov, flat, results[0] if len(results) == 1 else tuple(results))
        raise no_match(self.name, self.functional, args, kwargs)
