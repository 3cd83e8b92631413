"""Comparisons of sizes: relations of expressions, several of them taken together, a normal form.

`env.py` answers them.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from .expr import Expr, choice, const

COMPARE: dict[str, Callable] = {
    "==": operator.eq, "!=": operator.ne, ">=": operator.ge,
    ">": operator.gt, "<=": operator.le, "<": operator.lt,
}
_OPPOSITE = {"==": "!=", "!=": "==", ">=": "<", "<": ">=", "<=": ">", ">": "<="}


class Relation(NamedTuple):
    """A comparison of two expressions, integers or floats."""

    op: str
    left: Any
    right: Any

    def __str__(self) -> str:
        if self.op in ("==", "!="):
            return f"{'Eq' if self.op == '==' else 'Ne'}({self.left}, {self.right})"
        return f"{self.left} {self.op} {self.right}"

    __repr__ = __str__

    def opposite(self) -> Relation:
        """What holds if this one does not."""
        return Relation(_OPPOSITE[self.op], self.left, self.right)

    def holds(self, of: Callable[[str], int]) -> bool:
        """Is it so for given values of the symbols?"""
        return COMPARE[self.op](_number(self.left, of), _number(self.right, of))

    value = holds

    def symbols(self) -> set[str]:
        """The symbols in it."""
        return set().union(
            *(e.symbols() for e in (self.left, self.right) if hasattr(e, "symbols"))
        )

    @property
    def is_of_sizes(self) -> bool:
        """Are both sides integers?"""
        return isinstance(self.left, Expr) and isinstance(self.right, Expr)

    def choice(self, yes: Expr, no: Expr) -> Expr:
        """The one expression if it holds, else the other."""
        kind, p = normal(self)
        if kind == "ne":
            yes, no = no, yes
        text = str(self.opposite() if kind == "ne" else self)
        return choice("unless_negative" if kind == "ge" else "if_zero", p, yes, no, text)


class Combined(Relation):
    """Several relations that hold together ("And"), or of which one does ("Or"): of numbers that
    are 1 where they hold."""

    parts: tuple[Relation, ...]
    title: str

    @classmethod
    def of(cls, title: str, parts: tuple[Relation, ...]) -> Combined:
        """The relation of others."""
        parts = tuple(sorted(parts, key=str))
        ones = [r.choice(const(1), const(0)) for r in parts]
        made = cls(">=", functools.reduce(operator.add, ones),
                   const(len(ones) if title == "And" else 1))
        made.parts, made.title = parts, title
        return made

    def __str__(self) -> str:
        return (" & " if self.title == "And" else " | ").join([f"({r})" for r in self.parts])

    __repr__ = __str__

    def opposite(self) -> Relation:
        """None of them, or not all."""
        return Combined.of("And" if self.title == "Or" else "Or",
                           tuple([r.opposite() for r in self.parts]))


def _number(e: Any, of: Callable[[str], int]) -> Any:
    return e.value(of) if hasattr(e, "value") else e


def normal(relation: Relation) -> tuple[str, Expr]:
    """("eq" | "ne" | "ge", p): the same as p == 0, p != 0, p >= 0, without common factors."""
    op, a, b = relation
    kind = {"==": "eq", "!=": "ne"}.get(op, "ge")
    if op in (">=", "==", "!="):
        p = a - b
    elif op == ">":
        p = a - b - const(1)
    elif op == "<":
        p = b - a - const(1)
    else:
        p = b - a
    rest, c = p.split()
    if rest.terms:
        g = math.gcd(*[k for _, k in rest.terms])
        if kind != "ge" and rest.terms[-1][1] < 0:
            g = -g
        if kind == "ge" or c % g == 0:
            p = Expr(tuple([(m, k // g) for m, k in rest.terms])) + const(c // g)
        else:
            p = const(1)  # k * (...) + c is never zero
    return kind, p
