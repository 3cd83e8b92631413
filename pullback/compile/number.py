"""Numbers that code is written with before they are known: what follows from sizes.

Lowering, scheduling and writing take such numbers as they take integers.  A size itself is an
`Extent` (`extent.py`), which can be compared; a `Formula` is any other number, which is computed
and written down only.  Where integers are meant to be either, ask the functions below.

In C text such a number is a name, `pb_n3` or, of a double, `pb_d3`: an entry of a table that the
library is given with its buffers.  In `repr` it is Python source: so the plan of a library, shown
by `repr`, is a program that gives the plan for any sizes; long formulas have names in it, which it
defines first (`Domain.program`).  Read `extent.py` next.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from .ir import ceil_div, multiple

_COMPARE: dict[str, Callable] = {
    ">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}


class NotGeneral(Exception):
    """Code for unknown sizes cannot be written here: it is written for one size after the other."""


class Number:
    """A number that depends on sizes.

    `domain` knows these (`extent.Domain`), `hint` is its value for typical ones, `kind` its type.
    """

    __slots__ = ("domain",)
    kind: Any = int
    hint: Any

    def __str__(self) -> str:
        return f"pb_{'d' if self.kind is float else 'n'}{self.domain.place(self)}"

    def __format__(self, spec: str) -> str:
        return str(self)

    def __deepcopy__(self, memo: dict) -> Number:
        return self

    def c(self, code: str) -> str:
        """C text of an element type."""
        from .expressions import SCALAR

        if code == "b":
            return f"({self} != 0)"
        return str(self) if code == "l" else f"(({SCALAR[code]}){self})"


class Formula(Number):
    """A number that follows from sizes but is no polynomial of them."""

    __slots__ = ("hint", "kind", "text")

    def __init__(self, domain: Any, text: str, hint: Any):
        self.domain, self.text, self.hint = domain, text, hint
        self.kind = type(hint)

    def __eq__(self, other: object) -> bool:
        return type(other) is Formula and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return self.text

    def __neg__(self) -> Formula:
        return formula(operator.neg, "(-{})", self)

    def __bool__(self) -> bool:
        return True  # it is not known to be zero

    def __float__(self) -> float:
        raise NotGeneral(f"the number {self.text} is needed")

    __int__ = __index__ = __float__  # type: ignore[assignment]

    def __lt__(self, other: Any) -> bool:
        raise NotGeneral(f"{self.text} is compared")

    __le__ = __gt__ = __ge__ = __lt__


def formula(function: Callable, text: str, *args: Any) -> Formula:
    """A number that Python computes from others; `text` has places for their sources."""
    value, domain = function(*[likely(a) for a in args]), _domain(*args)
    return Formula(domain, domain.short(text.format(*[repr(a) for a in args])), value)


def _operation(function: Callable, sign: str) -> None:
    name, text = function.__name__, f"({{}} {sign} {{}})"

    def apply(a: Any, b: Any) -> Any:
        return formula(function, text, a, b) if isinstance(b, _KNOWN) else NotImplemented

    setattr(Formula, f"__{name}__", apply)
    setattr(Formula, f"__r{name}__", lambda a, b: formula(function, text, b, a))


_KNOWN = (int, float, Number)
ARITHMETIC = {operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/",
              operator.floordiv: "//", operator.mod: "%"}
for _function, _sign in ARITHMETIC.items():
    _operation(_function, _sign)


def _domain(*numbers: Any) -> Any:
    return next(n.domain for n in numbers if isinstance(n, Number))


def varies(*numbers: Any) -> bool:
    """Does a number depend on sizes?"""
    return any(isinstance(n, Number) for n in numbers)


def likely(n: Any) -> Any:
    """A number as it is for typical sizes: for choices that are right either way."""
    return n.hint if isinstance(n, Number) else n


def compared(a: Any, op: str, b: Any) -> Any:
    """a op b: True or False where that is known, else a formula."""
    if not varies(a, b):
        return _COMPARE[op](a, b)
    known = _domain(a, b).known(a, op, b)
    return formula(_COMPARE[op], f"({{}} {op} {{}})", a, b) if known is None else known


def both(a: Any, b: Any) -> Any:
    """a and b."""
    if not varies(a):
        return b if a else False
    return formula(lambda x, y: x and y, "({} and {})", a, b) if varies(b) else b and a


def choose(condition: Any, yes: Any, no: Any) -> Any:
    """yes if condition else no."""
    if not varies(condition):
        return yes if condition else no
    return formula(lambda y, c, n: y if c else n, "({} if {} else {})", yes, condition, no)


def largest(a: Any, b: Any) -> Any:
    """The larger of two."""
    return choose(compared(a, ">=", b), a, b)


def divides(n: Any, m: Any) -> bool:
    """Is m a multiple of n, whatever the sizes are?"""
    return not isinstance(n, Formula) and not isinstance(m, Formula) and multiple(m, n)


def rounded_up(a: Any, b: int) -> Any:
    """The least multiple of b that is not less than a."""
    return ceil_div(a, b) * b


def real(n: Any) -> Any:
    """As a float."""
    return formula(float, "float({})", n) if varies(n) else float(n)


def single(n: Any) -> Any:
    """Rounded to 32 bits."""
    return formula(_f32, "f32({})", n) if varies(n) else _f32(n)


def worded(text: str, n: Any) -> Any:
    """A text that ends with a number."""
    return formula(lambda n: f"{text}{n}", f"({text!r} + str({{}}))", n) if varies(n) else (
        f"{text}{n}")


def suffixed(n: Any) -> str:
    """C text of 64 bits."""
    return str(n) if varies(n) else f"{n}LL"


def _f32(x: float) -> float:
    import numpy

    with numpy.errstate(all="ignore"):
        return float(numpy.float32(x))


# what the source of a number may name, beside sizes
FUNCTIONS: dict[str, Any] = {"f32": _f32, "inf": float("inf"), "nan": float("nan")}

_USED = re.compile(r"\bpb_([nd])(\d+)\b")


def declared(text: str, place: Callable[[], int]) -> list[str]:
    """Declarations of the numbers that a C text uses; `place` says where the table is."""
    used = sorted({(int(k), kind) for kind, k in _USED.findall(text)})
    if not used:
        return []
    lines = [f"const int64_t *restrict pb_n = p[{place()}];"]
    for k, kind in used:
        lines.append(f"const int64_t pb_n{k} = pb_n[{k}];" if kind == "n" else
                     f"const double pb_d{k} = ((const double *)pb_n)[{k}];")
    return lines
