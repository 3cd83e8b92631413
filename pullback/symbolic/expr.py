"""Integer expressions over symbols: sums of products, floor division, remainder, max and min.

An expression is a polynomial in normal form, so that equal ones are equal objects to `==`; what is
no polynomial (`s0 // 2`, `max(s0, 3)`) is an *atom* in it, like a symbol.  Knows nothing of tensors
or guards: read `env.py` next.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable

INF = math.inf
MOST = 2**62  # no size is larger: prints as infinity
Bounds = tuple[float, float]
DEEPEST = 60  # of atoms inside of one another: what goes through them recurses
LONGEST = 4_000  # characters of an atom: what stands in several places counts as often


class Atom:
    """A symbol, or a function of expressions that is no polynomial."""

    __slots__ = ("args", "depth", "kind", "text")

    def __init__(self, kind: str, args: tuple, text: str):
        self.kind, self.args, self.text = kind, args, text
        self.depth: int = 1 + max([e.depth for e in args], default=-1)

    def __lt__(self, other: Atom) -> bool:
        return self.text < other.text

    def __repr__(self) -> str:
        return self.text


_atoms: dict[str, Atom] = {}  # one object for each text


def _atom(kind: str, args: tuple, text: str) -> Atom:
    found = _atoms.get(text)
    if found is None:
        found = _atoms[text] = Atom(kind, args, text)
    return found


class Expr:
    """A polynomial with integer coefficients: `terms` is ((monomial, coefficient), ...), sorted;
    a monomial is ((atom, power), ...), sorted."""

    __slots__ = ("_hash", "_text", "terms")

    def __init__(self, terms: tuple):
        self.terms = terms
        self._hash: int | None = None
        self._text: str | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            number = self.number
            self._hash = hash(self.terms if number is None else number)
        return self._hash

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Expr):
            return self.terms == other.terms
        return isinstance(other, int) and self.number == other

    @property
    def number(self) -> int | None:
        """The value of a constant, None of anything else."""
        terms = self.terms
        if not terms:
            return 0
        return terms[0][1] if len(terms) == 1 and not terms[0][0] else None

    @property
    def symbol(self) -> str | None:
        """The name of a bare symbol."""
        if len(self.terms) == 1 and self.terms[0][1] == 1:
            mono = self.terms[0][0]
            if len(mono) == 1 and mono[0][1] == 1 and mono[0][0].kind == "symbol":
                return mono[0][0].text
        return None

    def __add__(self, other: Expr) -> Expr:
        return _summed([*self.terms, *other.terms])

    def __sub__(self, other: Expr) -> Expr:
        return self + other.times(-1)

    def __neg__(self) -> Expr:
        return self.times(-1)

    def __mul__(self, other: Expr) -> Expr:
        return _summed(
            [(_product(m, n), a * b) for m, a in self.terms for n, b in other.terms]
        )

    def times(self, factor: int) -> Expr:
        """Multiplied by a number."""
        return Expr(tuple([(m, a * factor) for m, a in self.terms])) if factor else ZERO

    def __floordiv__(self, other: Expr) -> Expr:
        return floordiv(self, other)

    def __mod__(self, other: Expr) -> Expr:
        return remainder(self, other)

    def split(self) -> tuple[Expr, int]:
        """The part that varies, and the constant."""
        terms = self.terms
        if terms and not terms[0][0]:
            return Expr(terms[1:]), terms[0][1]
        return self, 0

    @property
    def depth(self) -> int:
        """How many atoms are inside of one another at most, symbols not counted."""
        return max([a.depth for m, _ in self.terms for a, _ in m], default=0)

    @property
    def is_long(self) -> bool:
        """Is it nested too deeply, or too long, to go on with it?"""
        return any(a.depth > DEEPEST or len(a.text) > LONGEST for m, _ in self.terms for a, _ in m)

    def atoms(self) -> Iterable[Atom]:
        """All atoms at the top."""
        return {a: None for m, _ in self.terms for a, _ in m}

    def symbols(self) -> set[str]:
        """The names of all symbols in it."""
        found: set[str] = set()
        for atom in self.atoms():
            if atom.kind == "symbol":
                found.add(atom.text)
            else:
                for arg in atom.args:
                    found |= arg.symbols()
        return found

    def names(self) -> set[str]:
        """The texts of all atoms in it, also inside of others."""
        found: set[str] = set()
        for atom in self.atoms():
            found.add(atom.text)
            for arg in atom.args:
                found |= arg.names()
        return found

    def value(self, of: Callable[[str], int]) -> int:
        """The number for given values of the symbols."""
        return sum(
            c * math.prod([_atom_value(a, of) ** p for a, p in m]) for m, c in self.terms
        )

    def replaced(self, by: dict[str, Expr]) -> Expr:
        """With expressions in the place of symbols and other atoms."""
        if not by or by.keys().isdisjoint(self.names()):
            return self
        total = ZERO
        for mono, c in self.terms:
            term = const(c)
            for a, p in mono:
                new = _atom_replaced(a, by)
                for _ in range(p):
                    term = term * new
            total = total + term
        return total

    def __str__(self) -> str:
        if self._text is None:
            self._text = _polynomial(self)
        return self._text

    __repr__ = __str__


ZERO = Expr(())


def const(n: int) -> Expr:
    """A number as an expression."""
    return Expr((((), n),)) if n else ZERO


def symbol(name: str) -> Expr:
    """A symbol as an expression."""
    return _of(_atom("symbol", (), name))


def _of(atom: Atom) -> Expr:
    return Expr(((((atom, 1),), 1),))


def _summed(terms: list) -> Expr:
    total: dict = {}
    for mono, c in terms:
        total[mono] = total.get(mono, 0) + c
    return Expr(tuple(sorted([t for t in total.items() if t[1]])))


def _product(m: tuple, n: tuple) -> tuple:
    if not m or not n:
        return m or n
    powers = dict(m)
    for a, p in n:
        powers[a] = powers.get(a, 0) + p
    return tuple(sorted(powers.items()))


def _quotient(m: tuple, n: tuple) -> tuple | None:
    """m / n if that is a monomial."""
    powers = dict(m)
    for a, p in n:
        left = powers.get(a, 0) - p
        if left < 0:
            return None
        powers[a] = left
    return tuple([(a, p) for a, p in powers.items() if p])


_OPERATIONS: dict[str, Callable] = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "max": max,
    "min": min,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "unless_negative": lambda p, a, b: a if p >= 0 else b,
    "if_zero": lambda p, a, b: a if p == 0 else b,
}


def _atom_value(atom: Atom, of: Callable[[str], int]) -> int:
    if atom.kind == "symbol":
        return of(atom.text)
    return _OPERATIONS[atom.kind](*[a.value(of) for a in atom.args])


def _atom_replaced(atom: Atom, by: dict[str, Expr]) -> Expr:
    found = by.get(atom.text)
    if found is not None:
        return found
    if atom.kind == "symbol":
        return _of(atom)
    return _BUILD[atom.kind](*[a.replaced(by) for a in atom.args])


def _degree(term: tuple) -> tuple:
    """An order of terms that products keep, as a division of polynomials needs it."""
    return sum([p for _, p in term[0]]), [a.text for a, p in term[0] for _ in range(p)]


def exact_quotient(a: Expr, b: Expr) -> Expr | None:
    """a / b where b divides a as a polynomial."""
    rest, found = a, ZERO
    if not b.terms:
        return None
    lead, c = max(b.terms, key=_degree)
    for _ in range(len(a.terms) + len(b.terms)):
        if not rest.terms:
            return found
        mono, d = max(rest.terms, key=_degree)
        q = _quotient(mono, lead)
        if q is None or d % c:
            return None
        step = Expr(((q, d // c),))
        found, rest = found + step, rest - step * b
    return None


def floordiv(a: Expr, b: Expr) -> Expr:
    """a // b: what b divides comes out of it, common factors are cancelled."""
    d = b.number
    if d == 0:
        raise ZeroDivisionError("division of a size by zero")
    exact = exact_quotient(a, b)
    if exact is not None:
        return exact
    outside = ZERO
    if len(b.terms) == 1:
        mono, c = b.terms[0]
        rest = []
        for m, k in a.terms:
            q = _quotient(m, mono)
            if q is None or not m and not mono:
                rest.append((m, k))
                continue
            whole = k // c
            if whole:
                outside = outside + Expr(((q, whole),))
            if k - whole * c:
                rest.append((m, k - whole * c))
        if not mono:  # the constant part goes along with the rest
            whole = sum(k for m, k in rest if not m)
            outside = outside + const(whole // d)
            rest = [(m, k) for m, k in rest if m] + [((), whole % d)]
        a = _summed(rest)
        a, b = _cancelled(a, b)
    elif not a.terms:
        return ZERO
    if a.number is not None and b.number is not None:
        return outside + const(a.number // b.number)
    if b.number == 1:
        return outside + a
    if b.number is not None and len(a.terms) == 1:
        (mono, k), n = a.terms[0], b.number
        if k == 1 and len(mono) == 1 and mono[0][1] == 1 and mono[0][0].kind == "floordiv":
            x, m = mono[0][0].args
            if m.number is not None and m.number > 0 and n > 0:  # (x // m) // n
                return outside + floordiv(x, const(m.number * n))
    return outside + _of(_atom("floordiv", (a, b), f"({_factor(a)}//{_factor(b)})"))


def _cancelled(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Both without their common factors."""
    numbers = math.gcd(*[c for _, c in (*a.terms, *b.terms)]) if a.terms else 1
    if numbers > 1:
        a, b = (Expr(tuple([(m, c // numbers) for m, c in e.terms])) for e in (a, b))
    common = dict(b.terms[0][0])
    for m, _ in a.terms:
        powers = dict(m)
        common = {x: min(p, powers[x]) for x, p in common.items() if x in powers}
    if common:
        shared = tuple(sorted(common.items()))
        a, b = (
            Expr(tuple(sorted([(_quotient(m, shared), c) for m, c in e.terms]))) for e in (a, b)
        )
    return a, b


def remainder(a: Expr, b: Expr) -> Expr:
    """a % b."""
    d = b.number
    if d == 0:
        raise ZeroDivisionError("division of a size by zero")
    if exact_quotient(a, b) is not None:
        return ZERO
    if d is not None:
        a = _summed([(m, k % d) for m, k in a.terms])
    elif len(b.terms) == 1:
        mono, c = b.terms[0]
        a = _summed([(m, k) for m, k in a.terms if _quotient(m, mono) is None or k % c])
    if not a.terms:
        return ZERO
    if a.number is not None and d is not None:
        return const(a.number % d)
    return _of(_atom("mod", (a, b), f"Mod({a}, {b})"))


def _extreme(kind: str, keep: Callable, title: str, parts: tuple[Expr, ...]) -> Expr:
    flat: dict[Expr, None] = {}
    number: int | None = None
    for e in parts:
        inner = None
        if len(e.terms) == 1 and e.terms[0][1] == 1 and len(e.terms[0][0]) == 1:
            atom, power = e.terms[0][0][0]
            inner = atom.args if atom.kind == kind and power == 1 else None
        for x in inner or (e,):
            if x.number is not None:
                number = x.number if number is None else keep(number, x.number)
            else:
                flat[x] = None
    for x in list(flat):  # of s and s + 1 only one matters
        for y in list(flat):
            if x is not y and x in flat and (x - y).number is not None:
                flat.pop(y if keep((x - y).number, 0) else x)
    if number is not None:
        flat[const(number)] = None
    args = sorted(flat, key=str)
    if len(args) == 1:
        return args[0]
    return _of(_atom(kind, tuple(args), f"{title}({', '.join(map(str, args))})"))


def maximum(*parts: Expr) -> Expr:
    """The largest of several."""
    return _extreme("max", max, "Max", parts)


def minimum(*parts: Expr) -> Expr:
    """The smallest of several."""
    return _extreme("min", min, "Min", parts)


def bitwise(kind: str, a: Expr, b: Expr) -> Expr:
    """a & b, a | b or a ^ b, by the name of the operator."""
    if a.number is not None and b.number is not None:
        return const(_OPERATIONS[kind](a.number, b.number))
    return _of(_atom(kind, (a, b), f"BitwiseFn_bitwise_{kind}({a}, {b})"))


def choice(kind: str, p: Expr, a: Expr, b: Expr, text: str = "") -> Expr:
    """a where p is "if_zero" or "unless_negative", else b."""
    if a == b:
        return a
    if p.number is not None:
        return a if _OPERATIONS[kind](p.number, True, False) else b
    asked = text or (f"Eq({p}, 0)" if kind == "if_zero" else f"{p} >= 0")
    return _of(_atom(kind, (p, a, b), f"Piecewise(({a}, {asked}), ({b}, True))"))


_CHOICES = ("unless_negative", "if_zero")
_BUILD: dict[str, Callable] = {
    "floordiv": floordiv, "mod": remainder, "max": maximum, "min": minimum,
    **{kind: functools.partial(bitwise, kind) for kind in ("and", "or", "xor")},
    **{kind: functools.partial(choice, kind) for kind in _CHOICES},
}


# Bounds -------------------------------------------------------------------------------------------


def bounds(e: Expr, of: Callable[[str], Bounds]) -> Bounds:
    """The least and the greatest value, as far as that is easy to say."""
    low: float = 0
    high: float = 0
    ranges = {a: _atom_bounds(a, of) for a in e.atoms()}
    for mono, c in e.terms:
        a, b = float(1), float(1)
        for atom, p in mono:
            for _ in range(p):
                a, b = _times((a, b), ranges[atom])
        a, b = (c * a, c * b) if c > 0 else (c * b, c * a)
        low, high = low + a, high + b
    if len(e.terms) > 1:
        tight = _shifted(e, ranges)
        low, high = max(low, tight[0]), min(high, tight[1])
    return low, high


def _shifted(e: Expr, ranges: dict[Atom, Bounds]) -> Bounds:
    """Bounds by counting atoms from their lower ends: terms that depend on each other cancel."""
    if any(low == -INF for low, _ in ranges.values()):
        return -INF, INF
    moved = ZERO
    for mono, c in e.terms:
        term = const(c)
        for a, p in mono:
            step = _of(a) + const(int(ranges[a][0]))
            for _ in range(p):
                term = term * step
        moved = moved + term
    rest, start = moved.split()
    signs = {c > 0 for _, c in rest.terms}
    return (start if False not in signs else -INF), (start if True not in signs else INF)


def _times(x: Bounds, y: Bounds) -> Bounds:
    ends = [0 if 0 in (a, b) else a * b for a in x for b in y]
    return min(ends), max(ends)


def _atom_bounds(atom: Atom, of: Callable[[str], Bounds]) -> Bounds:
    if atom.kind == "symbol":
        return of(atom.text)
    parts = [bounds(a, of) for a in atom.args]
    if atom.kind == "max":
        return max(p[0] for p in parts), max(p[1] for p in parts)
    if atom.kind == "min":
        return min(p[0] for p in parts), min(p[1] for p in parts)
    if atom.kind in _CHOICES:
        return min(p[0] for p in parts[1:]), max(p[1] for p in parts[1:])
    (a, b), (c, d) = parts
    if atom.kind in ("and", "or", "xor"):
        if min(a, c) < 0:
            return -INF, INF
        return (max(a, c), b + d) if atom.kind == "or" else (
            0, min(b, d) if atom.kind == "and" else b + d)
    if c <= 0:
        return -INF, INF
    if atom.kind == "mod":
        return (a, b) if a >= 0 and b < c else (0, min(d - 1, b if a >= 0 else INF))
    ends = [_floor(x, y) for x in (a, b) for y in (c, d)]
    return min(ends), max(ends)


def _floor(x: float, y: float) -> float:
    if math.isinf(x):
        return x if not math.isinf(y) else (0 if x > 0 else -1)
    return math.floor(x / y) if math.isinf(y) else x // y


# Text ---------------------------------------------------------------------------------------------


def _monomial(mono: tuple, c: int) -> str:
    parts = [a.text if p == 1 else f"{a.text}**{p}" for a, p in mono]
    if c != 1 or not parts:
        parts.insert(0, str(c))
    return "*".join(parts)


def _polynomial(e: Expr) -> str:
    terms = sorted(e.terms, key=lambda t: -sum(p for _, p in t[0]))
    if len(terms) == 2 and terms[0][1] < 0 < terms[1][1] and not terms[1][0]:
        terms.reverse()
    text = ""
    for mono, c in terms:
        if not text:
            text = ("-" if c < 0 else "") + _monomial(mono, abs(c))
        else:
            text += (" - " if c < 0 else " + ") + _monomial(mono, abs(c))
    return text or "0"


def _factor(e: Expr) -> str:
    """As a part of a product or quotient."""
    text = str(e)
    return f"({text})" if len(e.terms) > 1 or "*" in text and len(e.terms) == 1 else text


def source(e: Expr, names: Callable[[str], str] = str) -> str:
    """The expression as Python source; in C it reads the same but for the names of functions."""
    parts = []
    for mono, c in e.terms:
        factors = [_atom_source(a, names) for a, p in mono for _ in range(p)]
        if c != 1 or not factors:
            factors.insert(0, str(c))
        parts.append("*".join(factors))
    if len(parts) == 1:
        return parts[0]
    return "(" + (" + ".join(parts) or "0") + ")"


def _atom_source(atom: Atom, names: Callable[[str], str]) -> str:
    if atom.kind == "symbol":
        return names(atom.text)
    args = [source(a, names) for a in atom.args]
    while len(args) > 2 and atom.kind not in _CHOICES:
        args[-2:] = [f"{atom.kind}_({args[-2]}, {args[-1]})"]
    return f"{atom.kind}_({', '.join(args)})"


FUNCTIONS = {f"{name}_": function for name, function in _OPERATIONS.items()}  # for `source`
