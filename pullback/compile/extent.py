"""Sizes that are not known when code is written.

An `Extent` is an integer expression over the symbols of a capture and takes part in arithmetic.  A
comparison is answered from what is known of the symbols; where that does not suffice, by the sizes
at hand (the *hint*), and then the answer is a guard of the library that is being made.  What merely
is better or worse asks `number.likely` instead, which takes no guard.  Read `sized.py` next.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..symbolic import expr as ex
from ..symbolic.env import Relation, ShapeEnv
from ..symbolic.expr import Expr, const
from .number import NotGeneral, Number, formula

_REASON = "a loop of the native code depends on it"
LONGEST = 240  # characters of a formula; of longer ones it is the name that stands in others
TYPICAL = 32  # a size that varies is taken to be this large at least, where it does not matter


class Domain:
    """The sizes that one library is written for: what is known of them, and its numbers."""

    def __init__(self, env: ShapeEnv, values: dict[str, int]):
        self.env, self.values = env.child(values), values
        self.typical = _typical(env, values)  # for `likely`
        self.table: dict[Number, int] = {}  # numbers of the C text, with their places
        self.names: dict[str, str] = {}  # long formulas, as Python source -> what they are called
        self.memo: dict[tuple, Any] = {}

    def short(self, text: str) -> str:
        """The source of a formula, a name in its place if it is long: formulas are made of others,
        and Python cannot read what is nested deeply."""
        if len(text) <= LONGEST:
            return text
        return self.names.setdefault(text, f"pb_f{len(self.names)}")

    def program(self, result: str) -> str:
        """The source of a function that gives a result for sizes."""
        defined = "".join(f"{name} := {text}, " for text, name in self.names.items())
        return f"lambda {', '.join(self.values)}: ({defined}{result},)[-1]"

    def extent(self, e: Expr) -> Any:
        """The number of an expression; a plain one if it is known."""
        e = self.env.simplify(e)
        return Extent(self, e) if e.number is None else e.number

    def place(self, number: Number) -> int:
        """Where a number is in the table."""
        return self.table.setdefault(number, len(self.table))

    def known(self, a: Any, op: str, b: Any) -> bool | None:
        """The answer to a comparison where it is the same for all sizes."""
        if type(a) not in _WHOLE or type(b) not in _WHOLE:
            return None
        return self.env.static(Relation(op, _expr(a), _expr(b)))

    def within(self, x: Expr, y: Expr) -> bool:
        """Is 0 <= x < y, whatever the sizes are?"""
        at_least, below = Relation(">=", x, const(0)), Relation("<", x, y)
        return bool(self.env.static(at_least) and self.env.static(below))

    def guards(self) -> tuple[tuple[str, str], ...]:
        """The answers that the library relies on: for people, and as Python source."""
        return tuple(
            (str(g), f"{ex.source(g.relation.left)} {g.relation.op} {ex.source(g.relation.right)}")
            for g in self.env.guards
        )


def _typical(env: ShapeEnv, values: dict[str, int]) -> dict[str, int]:
    """Larger sizes than those at hand, where all that the capture relies on is true of them."""
    found = {s: max(n, TYPICAL) for s, n in values.items()}
    guards, before = [g.relation for g in env.guards], None
    while found != before:
        before = dict(found)
        for relation in guards:
            if relation.symbols() <= values.keys() and not _holds(relation, found):
                found |= {s: values[s] for s in relation.symbols()}
    return found


def _holds(relation: Relation, sizes: dict[str, int]) -> bool:
    try:
        return relation.holds(sizes.__getitem__)
    except ZeroDivisionError:
        return False


def _expr(n: Any) -> Expr:
    return n.expr if type(n) is Extent else const(int(n))


def _polynomial(function: Callable, sign: str) -> tuple[Callable, Callable]:
    """An operation on an extent, and the one with its arguments exchanged."""

    def apply(a: Any, b: Any) -> Any:
        if type(a) not in _WHOLE or type(b) not in _WHOLE:
            if not isinstance(a, _KNOWN) or not isinstance(b, _KNOWN):
                return NotImplemented
            return formula(function, f"({{}} {sign} {{}})", a, b)
        domain = (a if type(a) is Extent else b).domain
        x, y = _expr(a), _expr(b)
        key = (sign, x, y)
        found = domain.memo.get(key)
        if found is None:
            if sign in ("//", "%") and y.number != 0 and domain.within(x, y):
                found = 0 if sign == "//" else domain.extent(x)
            else:
                found = domain.extent(function(x, y))
            domain.memo[key] = found
        return found

    return apply, lambda a, b: apply(b, a)


def _asked(op: str) -> Callable:
    def compare(a: Extent, b: Any) -> bool:
        if type(b) not in _WHOLE:
            return NotImplemented
        domain, y = a.domain, _expr(b)
        key = (op, a.expr, y)
        found = domain.memo.get(key)
        if found is None:
            found = domain.memo[key] = domain.env.ask(Relation(op, a.expr, y), _REASON)
        return found

    return compare


class Extent(Number):
    """An integer expression over sizes."""

    __slots__ = ("expr",)

    def __init__(self, domain: Domain, expr: Expr):
        self.domain, self.expr = domain, expr

    def __repr__(self) -> str:
        text = ex.source(self.expr)
        return text if text.isidentifier() else f"({text})"

    @property
    def hint(self) -> int:  # type: ignore[override]
        try:
            return self.expr.value(self.domain.typical.__getitem__)
        except ZeroDivisionError:  # 6 // (4 // n) is a number of small n only
            return self.expr.value(self.domain.values.__getitem__)

    __add__, __radd__ = _polynomial(operator.add, "+")
    __sub__, __rsub__ = _polynomial(operator.sub, "-")
    __mul__, __rmul__ = _polynomial(operator.mul, "*")
    __floordiv__, __rfloordiv__ = _polynomial(operator.floordiv, "//")
    __mod__, __rmod__ = _polynomial(operator.mod, "%")

    def __truediv__(self, other: Any) -> Any:
        return formula(operator.truediv, "({} / {})", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return formula(operator.truediv, "({} / {})", other, self)

    def __divmod__(self, other: Any) -> tuple:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple:
        return other // self, other % self

    def __neg__(self) -> Any:
        return self * -1

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    __lt__, __le__, __gt__, __ge__ = _asked("<"), _asked("<="), _asked(">"), _asked(">=")

    def __eq__(self, other: object) -> bool:
        """Is it the same for all sizes?  No guard is taken where two sizes happen to be equal, for
        code for different ones serves, too.  Nothing, and one, are asked for in earnest."""
        if type(other) is Extent:
            return other.expr == self.expr and other.domain is self.domain
        if not isinstance(other, (int, float)) or other != int(other):
            return False
        key = ("==", self.expr, other)
        found = self.domain.memo.get(key)
        if found is None:
            env, relation = self.domain.env, Relation("==", self.expr, const(int(other)))
            found = env.ask(relation, _REASON) if other in (0, 1) else bool(env.static(relation))
            self.domain.memo[key] = found
        return found

    def __hash__(self) -> int:
        return hash(self.expr)

    def __bool__(self) -> bool:
        return self != 0

    def __index__(self) -> int:
        """The number itself: the library is for this one alone."""
        env, value = self.domain.env, self.expr.value(self.domain.values.__getitem__)
        if not env.ask(Relation("==", self.expr, const(value)), "its number is needed"):
            raise NotGeneral(f"{self!r} is no integer")
        return value

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())


_WHOLE = {int, bool, Extent}
_KNOWN = (int, float, Number)
