"""`Checker`: do the inputs of a call fit a captured program, and why not?

All that a capture assumed of sizes becomes one compiled expression over the shapes of a call.  Its
answer binds the symbols; words are only looked for where it is no.  Read `env.py` first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..array.size import Symbolic
from .expr import FUNCTIONS, MOST, Expr, const, source
from .relation import Relation

if TYPE_CHECKING:
    from .env import ShapeEnv


def _same(number: Any, digits: str) -> bool:
    """Is it this very float, a zero with the same sign, NaN?"""
    return float(number).hex() == digits


class Checker:
    """Do inputs of given shapes fit a capture?  Binds its symbols, and says why they do not.

    `shapes` are those that the capture saw: numbers and symbols.
    """

    def __init__(self, env: ShapeEnv, shapes: Sequence[Sequence], names: Sequence[str] = (),
                 numbers: int = 0):
        self.env, self.count = env, len(shapes) - numbers
        self.names = list(names) or [f"input{i}" for i in range(len(shapes))]
        self.shapes = [
            tuple([d.node.raw if isinstance(d, Symbolic) else d for d in shape])
            for shape in shapes
        ]
        self.places: dict[str, tuple[int, int]] = {}
        for i, shape in enumerate(self.shapes):
            for d, e in enumerate(shape):
                name = getattr(e, "symbol", None)
                if name is not None:
                    self.places.setdefault(name, (i, d))
        self.scaled: dict[str, tuple[int, int]] = {}  # found as k times itself plus c
        for i, shape in enumerate(self.shapes):
            for d, e in enumerate(shape):
                rest, c = e.split() if isinstance(e, Expr) else (const(0), 0)
                (mono, k), *more = rest.terms or [((), 0)]
                name = Expr(((mono, 1),)).symbol
                if not more and name is not None and k > 0 and name not in self.places:
                    self.places[name], self.scaled[name] = (i, d), (k, c)
        self.symbols = list(self.places)
        self.fits = self._compiled()

    def _compiled(self) -> Callable:
        """One expression that tests everything, as a function of the shapes."""
        tests = [f"len(x{i}) == {len(s)}" for i, s in enumerate(self.shapes)]
        names = {s: f"x{i}[{d}]" for s, (i, d) in self.places.items()}
        for s, (k, c) in self.scaled.items():
            names[s] = f"(({names[s]} - {c})//{k})"
        for i, shape in enumerate(self.shapes):
            for d, e in enumerate(shape):
                if isinstance(e, float):
                    tests.append(f"same(x{i}[{d}], {e.hex()!r})")
                if not isinstance(e, (Expr, int)):  # a symbol of a float stands for itself
                    continue
                want = source(e, names.__getitem__) if isinstance(e, Expr) else str(e)
                if want != f"x{i}[{d}]":
                    tests.append(f"x{i}[{d}] == {want}")
        for s in self.symbols:
            low, high = self.env.symbols[s].range
            tests += [f"{names[s]} >= {low}"] if low > (
                0 if self.places[s][0] < self.count else -MOST) else []
            tests += [f"{names[s]} <= {high}"] if high < MOST else []
        space: dict[str, Any] = {**FUNCTIONS, "same": _same}
        for k, guard in enumerate(self.env.guards):
            op, left, right = guard.relation
            if not guard.relation.symbols() <= self.places.keys():
                continue  # depends on data: the graph checks it
            if isinstance(left, Expr) and isinstance(right, Expr):
                text = [source(e, names.__getitem__) for e in (left, right)]
                tests.append(f"{text[0]} {op} {text[1]}")
            else:
                space[f"g{k}"] = guard.relation.holds
                values = ", ".join(f"{s!r}: {names[s]}" for s in guard.relation.symbols())
                tests.append(f"g{k}({{{values}}}.__getitem__)")
        # plain tests first: ranks, then numbers; a divisor is not zero if the ranges hold
        arguments = "".join(f"x{i}, " for i in range(len(self.shapes)))
        text = f"lambda {arguments}: {' and '.join(tests) or 'True'}"
        return eval(compile(text, "<pullback guards>", "eval"), space)

    def values(self, shapes: Sequence) -> tuple[int, ...]:
        """The values of the symbols in inputs of these shapes."""
        found = [shapes[i][d] if i >= self.count else int(shapes[i][d])
                 for i, d in self.places.values()]
        if self.scaled:
            found = [(n - self.scaled[s][1]) // self.scaled[s][0] if s in self.scaled else n
                     for s, n in zip(self.places, found)]
        return tuple(found)

    def title(self, i: int, d: int) -> str:
        """A size or a number as people call it."""
        return self.names[i] if i >= self.count else f"{self.names[i]}.size({d})"

    def bind(self, shapes: Sequence) -> dict[str, int] | str:
        """Symbol -> value if the shapes fit; else why they do not."""
        try:
            fits = self.fits(*shapes)
        except (IndexError, ZeroDivisionError):
            fits = False
        if fits:
            return dict(zip(self.symbols, self.values(shapes)))
        return self.why_not(shapes)

    def why_not(self, shapes: Sequence) -> str:
        """The first thing that does not fit, in words."""
        for name, want, have in zip(self.names, self.shapes, shapes):
            if len(want) != len(have):
                return f"{name} has {len(have)} dims, the program is for {len(want)}"
        values = dict(zip(self.symbols, self.values(shapes)))
        for i, (want, have) in enumerate(zip(self.shapes, shapes)):
            for d, (e, n) in enumerate(zip(want, have)):
                wanted = e.value(values.__getitem__) if hasattr(e, "value") else e
                if wanted != n:
                    same = ""
                    if isinstance(e, Expr) and e.symbol is not None:
                        same = f", the same as {self.title(*self.places[e.symbol])}"
                    return f"{self.title(i, d)} is {n}, the program is for {wanted}{same}"
        hints = {name: s.hint for name, s in self.env.symbols.items() if s.hint is not None}
        for s in self.symbols:
            (i, d), (low, high) = self.places[s], self.env.symbols[s].range
            if not low <= values[s] <= high:
                by = next((g for g in self.env.guards if s in g.relation.symbols()
                           and g.relation.symbols() <= hints.keys() | {s}
                           and not _holds(g.relation, {**hints, s: values[s]})), None)
                why = (f"{by} was decided at {by.where}: {by.reason}" if by is not None
                       else "0 and 1 get programs of their own" if values[s] < 2
                       else "as it was marked")
                return (f"{self.title(i, d)} is {values[s]}, the program is for "
                        f"{_words(low, high)} ({why})")
        for g in self.env.guards:
            names = g.relation.symbols()
            if names <= values.keys() and not _holds(g.relation, values):
                where = ", ".join(f"{s} = {self.title(*self.places[s])} = {values[s]}"
                                  for s in sorted(names))
                return f"{g} does not hold for {where} ({g.where}: {g.reason})"
        return "the shapes fit"


def _holds(relation: Relation, values: dict) -> bool:
    try:
        return relation.holds(values.__getitem__)
    except ZeroDivisionError:  # a question about a remainder that nobody would ask of these sizes
        return False


def _words(low: float, high: float) -> str:
    if low == high:
        return str(int(low))
    if low <= -MOST:
        return f"at most {high}"
    return f"at least {low}" if high >= MOST else f"{low} to {high}"
