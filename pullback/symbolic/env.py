"""`ShapeEnv`: the symbols of one capture, what is known of them, and the guards it had to take.

A question about sizes (`s0 == 4`?) is answered from ranges and facts where these suffice.  Else the
*hint* answers, the size that the example has, and the answer becomes a guard: what was captured is
right for all sizes that give the same answers.  A symbol without a hint (the count of `nonzero`)
cannot be asked.  Read next: `number.py`, the integers that ask.
"""

from __future__ import annotations

import copy
import hashlib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from .. import errors
from ..array.fake import is_fake
from ..array.size import Symbolic
from ..threads.state import state
from .checker import Checker
from .expr import INF, MOST, Bounds, Expr, bounds, const, symbol
from .relation import COMPARE, Combined, Relation, normal
from .settings import config

BY_DATA = "decided by data at hand"  # why a program relies on something


class Source(NamedTuple):
    """Where a run finds the value of a symbol."""

    name: str  # as people read it: `x.size()[0]`
    input: int = -1
    dim: int = -1  # -1: the input is the number itself


class ByName(dict):
    """Expressions by the names of symbols, which may be asked for by the symbols themselves."""

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self, getattr(key, "symbol", key))

    def __missing__(self, key: Any) -> Expr:
        if isinstance(key, Expr) and key in self:
            return self[key.symbol]
        raise KeyError(key)


@dataclass
class Symbol:
    """One unknown size."""

    name: str
    hint: int | None  # None: it depends on data
    range: Bounds
    sources: list[Source] = field(default_factory=list)
    where: str = ""
    size_like: bool = True


@dataclass
class Guard:
    """An answer that a program relies on."""

    relation: Relation
    where: str  # the user's line
    reason: str
    assumed: bool = False  # said by the user of what depends on data

    @property
    def expr(self) -> Relation:
        """The relation, as PyTorch calls it."""
        return self.relation

    def __iter__(self) -> Iterator:
        """The relation, the user's line, and whether sizes 0 and 1 were left out of account."""
        return iter((self.relation, self.where, False))

    def __getitem__(self, key: Any) -> Any:
        return tuple(self)[key]

    def __str__(self) -> str:
        return str(self.relation)


class ShapeEnv:
    """Symbols, facts and guards of one capture."""

    def __init__(
        self,
        *,
        duck_shape: bool | None = None,
        specialize_zero_one: bool = True,
        assume_static_by_default: bool = False,
        **ignored: Any,
    ) -> None:
        self.duck_shape = config.use_duck_shape if duck_shape is None else duck_shape
        self.specialize_zero_one = specialize_zero_one
        self.assume_static_by_default = assume_static_by_default
        self.symbols: dict[str, Symbol] = {}
        self.guards: list[Guard] = []
        self.replacements = ByName()
        self.frozen = False  # no more guards: sizes that would need one are refused
        self.plain = False  # do its numbers pass for Python's own (`isinstance`, `str`)?
        self.recorder: Any = None  # told of numbers that are computed or read
        self._by_hint: dict[int, str] = {}
        self._lower: dict[Expr, int] = {}  # varying part -> its least value
        self._unequal: set[Expr] = set()
        self._known: set[Relation] = set()  # of floats
        self._unbacked = 0
        self._answers: dict[Relation, bool] = {}  # what is known stays known
        self._by_data: dict[str, Any] = {}  # symbol -> what the data at hand make of it
        self._read: dict[Any, Any] = {}  # node of a tensor -> the number that was read from it
        self._simple: dict[Expr, Expr] = {}
        self._counts: dict[int, tuple] = {}  # array (by identity) -> it, and how many are not zero

    # Symbols ------------------------------------------------------------------------------------

    def size(
        self, hint: int, source: Source, *, least: float = 2, most: float = MOST, duck: bool = True
    ) -> Any:
        """The size of an input: a symbol, shared by inputs of equal size; 0 and 1 stay numbers."""
        from .number import SymInt

        if self.specialize_zero_one and hint in (0, 1):
            return hint
        name = self._by_hint.get(hint) if duck and self.duck_shape else None
        if name is None:
            name = self._name(source.name)
            low = least if self.specialize_zero_one else max(least, 0) if least != 2 else 0
            self.symbols[name] = Symbol(name, hint, (low, most), where=errors.user_line(2))
            if duck:
                self._by_hint.setdefault(hint, name)
        self.symbols[name].sources.append(source)
        return SymInt.of(self, symbol(name), hint)

    def number(self, value: Any, source: Source, *, special: bool = False) -> Any:
        """A number among the arguments: a symbol without bounds.

        `special`: as PyTorch's own tracers take integers, 0 and 1 as they are, and equal to the
        sizes that they equal.
        """
        from .number import SymFloat, SymInt, float_number

        if type(value) is float:
            name = self._name(source.name, "zf")
            self.symbols[name] = Symbol(name, value, (-INF, INF), [source],  # type: ignore[arg-type]
                                        errors.user_line(2), False)
            return SymFloat(float_number(self, name, value))
        if special and value in (0, 1):
            return value
        found = self._by_hint.get(value) if special and self.duck_shape else None
        if found is None:
            found = self._name(source.name)
            self.symbols[found] = Symbol(found, value, (-MOST, MOST),
                                         where=errors.user_line(2), size_like=False)
            if special:
                self._by_hint.setdefault(value, found)
        self.symbols[found].sources.append(source)
        return SymInt.of(self, symbol(found), value)

    def child(self, hints: dict[str, int]) -> ShapeEnv:
        """Another one that knows the same, for other sizes; its guards are its own."""
        new = copy.copy(self)
        new.symbols = {s.name: replace(s, hint=hints.get(s.name)) for s in self.symbols.values()}
        new.guards, new.frozen, new.recorder = [], False, None
        for name in ("replacements", "_lower", "_unequal", "_known", "_answers", "_simple"):
            setattr(new, name, copy.copy(getattr(self, name)))
        return new

    def _name(self, text: str, kind: str = "s") -> str:
        """A short name that depends on where the size is found and nothing else."""
        number = int(hashlib.sha256(text.encode()).hexdigest(), 16) % 100
        while f"{kind}{number}" in self.symbols:
            number += 1
        return f"{kind}{number}"

    def unbacked(self, *, size_like: bool = True, source: Source | None = None) -> Any:
        """An integer that only the data decides, or one of the inputs that is treated like that."""
        from .number import SymInt

        name = f"u{self._unbacked}"
        self._unbacked += 1
        low = 0 if size_like else -MOST
        self.symbols[name] = Symbol(
            name, None, (low, MOST), [] if source is None else [source], errors.user_line(2),
            size_like)
        return SymInt.of(self, symbol(name), None)

    def by_data(self, value: Any) -> bool:
        """Is there a symbol in a number that is found in no input?"""
        return not all(self.symbols[s].sources for s in value.node.expr.symbols())

    def create_unbacked_symint(self, *ignored: Any) -> Any:
        """An integer that only the data decides, negative ones among them."""
        return self.unbacked(size_like=False)

    def create_unbacked_symfloat(self) -> Any:
        """A float that only the data decides."""
        from .number import read_number

        return read_number(self, "f")

    def create_unbacked_symbool(self) -> Any:
        """An answer that only the data knows."""
        from .number import read_number

        return read_number(self, "b")

    def float_symbol(self, name: str) -> Expr:
        """The symbol of a float that only the data decides."""
        self.symbols[name] = Symbol(name, None, (-INF, INF), where=errors.user_line(2),
                                    size_like=False)
        return symbol(name)

    def assume_range(self, name: str, low: float, high: float) -> None:
        """Say between which bounds a symbol lies."""
        self.symbols[name].range = low, high

    def create_symbol(self, val: Any, source: Any = None, dynamic_dim: Any = None,
                      **ignored: Any) -> Any:
        """The symbol of a size, as an expression (a number if it is specialised)."""
        where = Source(str(source if source is not None else len(self.symbols)))
        wish = getattr(dynamic_dim, "name", "DUCK")
        if wish == "STATIC":
            return val
        made = self.number(val, where) if type(val) is float else self.size(
            val, where, duck=wish == "DUCK")
        return made.node.expr if isinstance(made, Symbolic) else made

    def create_symbolic_sizes_strides_storage_offset(
            self, ex: Any, source: Any, *, symbolic_context: Any = None) -> tuple:
        """Sizes, strides and offset of a tensor as symbols: all sizes, or those that are wished."""
        from .views import following_strides

        wishes = [None] * ex.dim() if symbolic_context is None else symbolic_context.dynamic_sizes
        sizes = []
        for d, (n, wish) in enumerate(zip(ex.shape, wishes)):
            e = self.create_symbol(n, f"{source}.size()[{d}]", wish)
            sizes.append(self.create_symintnode(e, hint=n))
        return (tuple(sizes), following_strides(tuple(ex.shape), ex.stride(), sizes),
                ex.storage_offset())

    @property
    def deferred_runtime_asserts(self) -> dict:
        """What the user said of numbers that only the data decides, by their last symbol."""
        found: dict = {}
        for guard in self.guards:
            free = [s for s in guard.relation.symbols() if self.symbols[s].hint is None]
            if guard.assumed and free:
                last = max(free, key=list(self.symbols).index)
                found.setdefault(symbol(last), []).append(guard)
        return found

    def create_symintnode(self, sym: Any, *, hint: int | None, source: Any = None) -> Any:
        """The integer of an expression."""
        from .number import SymInt

        return sym if isinstance(sym, int) else SymInt.of(self, sym, hint)

    create_symboolnode = create_symintnode

    def count_of(self, array: Any) -> Any:
        """How many elements of an array without data are not zero."""
        found = self._counts.get(id(array))
        if found is None:
            found = self._counts[id(array)] = (array, self.share(array.shape))
        return found[1]

    def share(self, shape: Sequence) -> Any:
        """How many of the elements of a shape the data choose."""
        count = self.unbacked()
        most = math.prod(self.bounds(n.node.expr)[1] if isinstance(n, Symbolic) else n
                         for n in shape)
        if 2 < most < MOST:
            self.assume_range(str(count), 0, most)
        return count

    def item(self, t: Any) -> Any:
        """The value of a tensor without data as a symbolic number; None where it has data."""
        data = t._payload
        if data.ndim and any(n != 1 for n in data.shape):
            return None
        known = getattr(data, "interp", None)
        if known is not None:
            read = getattr(known, "known", None)
            if read is None or read(data.node) is not None:
                return None
            if data.node in self._read:
                return self._read[data.node]
        inner = data
        while hasattr(inner, "inner"):
            inner = inner.inner._payload
        if not is_fake(inner):
            return None
        from .number import read_number

        own = getattr(getattr(known, "recorder", None), "sizes", None) or self.recorder
        made = None if known is None else data.node.meta.get("number")  # one from outside
        if made is None:
            made = read_number(self, data.dtype.kind)
            if inner.real is not None and made is not None:
                number = made.node.how[1][0] if made.node.how is not None else made
                self.set_unbacked_var_to_val(number.node.raw, inner.real.item())
        if made is not None and known is not None and own is not None:
            own.read(made, data.node)
            self._read[data.node] = made
        return made

    # What is known ------------------------------------------------------------------------------

    def range_of(self, name: str) -> Bounds:
        return self.symbols[name].range

    def _oblivious(self, name: str) -> Bounds:
        """The range of a size in the eyes of the library: not the special cases 0 and 1."""
        found = self.symbols[name]
        low, high = found.range
        return (max(low, 2), high) if found.hint is None and found.size_like else (low, high)

    def simplify(self, e: Expr) -> Expr:
        """With what is known to be equal in the place of symbols."""
        if not self.replacements:
            return e
        found = self._simple.get(e)
        if found is None:
            found = self._simple[e] = e.replaced(self.replacements)
        return found

    def hint(self, e: Any) -> Any:
        """The value of an expression in the example, None if it depends on data."""
        if not hasattr(e, "value"):
            return e
        try:
            return e.value(self._hint)
        except _Unknown:
            return None

    def set_unbacked_var_to_val(self, e: Expr, value: Any) -> None:
        """What the data at hand make of a number that only data decide: see `array/reals.py`."""
        if e.symbol is not None:
            self._by_data[e.symbol] = value

    def value_of(self, e: Any) -> Any:
        """The value of an expression in the example, also by its data where these are at hand."""
        try:
            return e.value(self._value) if hasattr(e, "value") else e
        except _Unknown:
            return None

    def _value(self, name: str) -> Any:
        return self._by_data[name] if name in self._by_data else self._hint(name)

    def _hint(self, name: str) -> int:
        found = self.symbols[name].hint
        if found is None:
            raise _Unknown
        return found

    def bounds(self, e: Expr, of: Callable[[str], Bounds] | None = None) -> Bounds:
        """The least and the greatest value that an expression can have."""
        low, high = bounds(e, of or self.range_of)
        rest, c = e.split()
        if rest in self._lower:
            low = max(low, self._lower[rest] + c)
        negative = -rest
        if negative in self._lower:
            high = min(high, c - self._lower[negative])
        return low, high

    def static(self, relation: Relation, of: Callable | None = None) -> bool | None:
        """The answer where it follows from what is known."""
        if isinstance(relation, Combined):
            found, dominant = {self.static(r, of) for r in relation.parts}, relation.title == "Or"
            return dominant if dominant in found else None if None in found else not dominant
        if not (isinstance(relation.left, Expr) and isinstance(relation.right, Expr)):
            if relation in self._known:
                return True
            return False if relation.opposite() in self._known else None
        if of is not None:
            return self._worked_out(relation, of)
        found = self._answers.get(relation)
        if found is None:
            found = self._worked_out(relation, None)
            if found is not None:
                self._answers[relation] = found
        return found

    def _worked_out(self, relation: Relation, of: Callable | None) -> bool | None:
        """The same for integers, from bounds and facts."""
        kind, p = normal(
            Relation(relation.op, self.simplify(relation.left), self.simplify(relation.right))
        )
        n = p.number
        if n is not None:
            return n == 0 if kind == "eq" else n != 0 if kind == "ne" else n >= 0
        low, high = self.bounds(p, of)
        if kind == "ge":
            known = True if low >= 0 else False if high < 0 else None
            if known is None and self._unbacked:  # from one fact, with something added
                rest = [(self.bounds(p - q, of)[0] + n, self.bounds(-p - q, of)[0] + n)
                        for q, n in self._lower.items()]
                known = True if any(a >= 0 for a, _ in rest) else (
                    False if any(b > 0 for _, b in rest) else None)
            return known
        if low > 0 or high < 0 or p in self._unequal:
            return kind == "ne"
        if low == high == 0:
            return kind == "eq"
        return None

    # Questions ----------------------------------------------------------------------------------

    def ask(self, relation: Relation, reason: str = "a comparison of sizes",
            asked: Any = None) -> bool:
        """The answer to a question; a guard if it had to be decided by the hint.

        `asked` is the number whose truth was needed, if it was one.
        """
        known = self.static(relation)
        if known is not None:
            return known
        left, right = self.hint(relation.left), self.hint(relation.right)
        if left is None or right is None:
            if not asked_by_user():
                known = self.static(relation, self._oblivious)
                if known is None and self._are_sizes(relation):
                    known = _special(relation)
                if known is not None:
                    return known
                if relation.op in ("==", "!=") and relation.is_of_sizes and (
                        self._are_sizes(relation)):  # they have to fit
                    self.add(Relation("==", relation.left, relation.right),
                             "sizes that meet in an operator", assumed=True)
                    return relation.op == "=="
            left, right = self.value_of(relation.left), self.value_of(relation.right)
            if left is None or right is None:
                raise data_dependent(self, relation)
            answer = COMPARE[relation.op](left, right)
            self.rely_on_data(relation if answer else relation.opposite(), asked, answer)
            return answer
        answer = COMPARE[relation.op](left, right)
        self.add(relation if answer else relation.opposite(), reason)
        return answer

    def _are_sizes(self, relation: Relation) -> bool:
        """Is it a question about sizes alone, not about other numbers that the data decide?"""
        names = relation.symbols()
        return all(self.symbols[name].size_like for name in names)

    def add(self, relation: Relation, reason: str, assumed: bool = False) -> None:
        """Rely on something that holds for the example."""
        if self.frozen:
            raise errors.CompileError(errors.text(
                f"a size would be specialised after its capture: {relation} "
                f"({errors.user_line(3)})", reason))
        self.guards.append(Guard(relation, errors.user_line(3), reason, assumed))
        self._learn(relation)

    def rely_on_data(self, relation: Relation, asked: Any = None, answer: bool = True) -> None:
        """Rely on what the data at hand say: programs to keep check it in every call."""
        from .number import SymBool, SymNode, sym_not

        if asked is None or relation.is_of_sizes:
            self.promise(SymBool(SymNode(relation, self, bool)))
        else:  # how floats are computed is known to the question alone
            self.promise(asked if answer else sym_not(asked))
        self.add(relation, BY_DATA, assumed=True)

    def promise(self, cond: Any) -> None:
        """Tell the graph that is being recorded that something holds."""
        sizes = getattr(getattr(state.stack[state.mode], "recorder", None), "sizes", None)
        if sizes is not None:
            sizes.promised(cond)

    def is_size(self, n: Any) -> None:
        """A number that only the data decides is used as a size."""
        e = n.node.expr
        if e.symbol is not None:  # of others the operator that makes the memory says so
            self.assume(Relation(">=", e, const(0)))
            self.symbols[e.symbol].size_like = True

    def assume(self, relation: Relation) -> bool:
        """`_check`: the user says so, of what depends on data; False if it can never be so."""
        known = self.static(relation)
        if known is None:
            self.add(relation, "said by torch._check", assumed=True)
        return known is not False

    def _learn(self, relation: Relation) -> None:
        if isinstance(relation, Combined):
            if relation.title == "And":
                for part in relation.parts:
                    self._learn(part)
            return
        if not (isinstance(relation.left, Expr) and isinstance(relation.right, Expr)):
            self._known.add(relation)
            return
        kind, p = normal(
            Relation(relation.op, self.simplify(relation.left), self.simplify(relation.right))
        )
        if kind == "ne":
            self._unequal.add(p)
            low, high = self.bounds(p)
            if low == 0:  # s >= 2 and s != 2
                self._at_least(p + const(-1))
            elif high == 0:
                self._at_least(-p + const(-1))
            return
        self._at_least(p)
        if kind == "eq":
            self._at_least(-p)
            self._solve(p)

    def _at_least(self, p: Expr) -> None:
        """Learn p >= 0."""
        rest, c = p.split()
        self._lower[rest] = max(self._lower.get(rest, -c), -c)
        pair = [(Expr(((m, 1),)).symbol, k) for m, k in rest.terms]
        if len(pair) == 2 and {k for _, k in pair} == {1, -1} and all(s for s, _ in pair):
            (a, _), (b, _) = sorted(pair, key=lambda t: -t[1])  # a - b + c >= 0
            large, small = self.symbols[a], self.symbols[b]
            large.range = max(large.range[0], small.range[0] - c), large.range[1]
            if large.range[1] < MOST:
                small.range = small.range[0], min(small.range[1], large.range[1] + c)
        if len(rest.terms) == 1:
            (mono, k), = rest.terms
            atom = mono[0][0]
            if abs(k) == 1 and mono == ((atom, 1),) and atom.kind == "floordiv":
                inside, by = atom.args
                n = by.number
                if n is not None and n > 0:  # x // n >= -c, or x // n <= c
                    self._at_least(inside + const(c * n) if k > 0 else
                                   const(c * n + n - 1) - inside)
            if len(mono) == 1 and mono[0][1] == 1 and mono[0][0].kind == "symbol":
                found = self.symbols[mono[0][0].text]
                low, high = found.range
                if k > 0:
                    found.range = max(low, -(c // k)), high
                else:
                    found.range = low, min(high, c // -k)

    def _solve(self, p: Expr) -> None:
        """From p == 0: one symbol in terms of the others, if it stands alone."""
        for mono, k in sorted(p.terms, key=self._first_solved):
            if abs(k) == 1 and len(mono) == 1 and mono[0][1] == 1:
                atom = mono[0][0]
                rest = Expr(tuple([t for t in p.terms if t[0] != mono]))
                if atom.text not in rest.names():
                    new = {atom.text: rest.times(-k)}
                    if atom.kind == "symbol":
                        other, found = rest.times(-k), self.symbols[atom.text]
                        low, high = self.bounds(other)
                        before = found.range
                        found.range = max(before[0], low), min(before[1], high)
                        if other.number is None:  # what was known of it is known of the other
                            if before[0] > -MOST:
                                self._at_least(other - const(int(before[0])))
                            if before[1] < MOST:
                                self._at_least(const(int(before[1])) - other)
                    self.replacements = ByName(
                        {s: e.replaced(new) for s, e in self.replacements.items()} | new)
                    self._simple = {}
                    self._lower = {e.replaced(new): n for e, n in self._lower.items()}
                    self._unequal = {e.replaced(new) for e in self._unequal}
                    return

    def _first_solved(self, term: tuple) -> tuple:
        """PyTorch's order: symbols that depend on data, those with large hints, late names."""
        found = self.symbols.get(Expr(((term[0], 1),)).symbol or "")
        if found is None:
            return 1, 0, ()
        hint = INF if found.hint is None else found.hint
        return 0, -hint, tuple([-ord(c) for c in found.name])

    # Programs -----------------------------------------------------------------------------------

    def checker(self, shapes: Sequence[Sequence], names: Sequence[str] = (),
                numbers: int = 0) -> Checker:
        """What decides whether inputs of some shapes fit; call it when the capture is done.

        The last `numbers` of them are no shapes but single numbers, each in a tuple.
        """
        return Checker(self, shapes, names, numbers)

    def format_guards(self, verbose: bool = False) -> str:
        """One guard a line."""
        return "\n".join(
            f" - {g}" + (f"  ({g.where}: {g.reason})" if verbose else "") for g in self.guards
        )

    # As PyTorch calls it ------------------------------------------------------------------------

    @property
    def var_to_val(self) -> dict:
        return {symbol(s.name): s.hint for s in self.symbols.values() if s.hint is not None}

    backed_var_to_val = var_to_val

    @property
    def var_to_range(self) -> dict:
        return {symbol(s.name): ValueRanges(*s.range) for s in self.symbols.values()}

    @property
    def var_to_sources(self) -> dict:
        return {symbol(s.name): s.sources for s in self.symbols.values()}

    def get_nontrivial_guards(self) -> list:
        """The guards that do not follow from the ranges of symbols and from what they equal."""
        return [g.relation for g in self.guards if not self._follows(g.relation)]

    def _follows(self, relation: Relation) -> bool:
        if not (isinstance(relation.left, Expr) and isinstance(relation.right, Expr)):
            return False
        known = {s: e for s, e in self.replacements.items() if s in self.symbols}
        kind, p = normal(Relation(
            relation.op, relation.left.replaced(known), relation.right.replaced(known)))
        low, high = bounds(p, self.range_of)
        return low >= 0 if kind == "ge" else low == high == 0 if kind == "eq" else (
            low > 0 or high < 0)

    def bound_sympy(self, expr: Expr, size_oblivious: bool = False) -> ValueRanges:
        """The range of an expression."""
        return ValueRanges(*self.bounds(expr))

    def is_unbacked_symint(self, sym: Any) -> bool:
        """Does only the data decide it?"""
        return self.hint(sym) is None

    def produce_guards(self, placeholders: Sequence, sources: Sequence, *,
                       guards: Sequence | None = None, ignore_static: bool = True,
                       _simplified: bool = False, **ignored: Any) -> list[str]:
        """What must hold of inputs so that the capture is right for them, as Python texts."""
        from .guards import produce

        return produce(self, placeholders, sources, guards, ignore_static, _simplified)

    def produce_guards_verbose(self, placeholders: Sequence, sources: Sequence,
                               **options: Any) -> list:
        """The same in a list of languages, of which there is one."""
        return [self.produce_guards(placeholders, sources, **options)]

    def produce_guards_expression(self, placeholders: Sequence, *, guards: Sequence | None = None,
                                  ignore_static: bool = True) -> str | None:
        """The same as one text over `L['t0']`, `L['t1']`, ...; None if nothing must hold."""
        from .guards import produce

        sources = [f"t{i}" for i in range(len(placeholders))]
        return " and ".join(
            produce(self, placeholders, sources, guards, ignore_static)) or None

    def evaluate_guards_expression(self, code: str, args: Sequence) -> bool:
        """Does a text of `produce_guards_expression` hold of inputs?"""
        from .guards import evaluate

        return evaluate(code, args)

    def evaluate_guards_for_args(self, placeholders: Sequence, args: Sequence, *,
                                 ignore_static: bool = True) -> bool:
        """Would the guards hold for other inputs?  Sizes that are numbers are not compared."""
        code = self.produce_guards_expression(placeholders, ignore_static=ignore_static)
        return code is None or self.evaluate_guards_expression(code, args)

    def bind_symbols(self, placeholders: Sequence, args: Sequence) -> dict:
        """The values of the symbols in other inputs."""
        from .guards import bound

        return bound(self, placeholders, args)

    def evaluate_expr(self, orig_expr: Any, *ignored: Any, **others: Any) -> Any:
        """The answer to a question, the number of an expression."""
        if isinstance(orig_expr, Relation):
            return self.ask(orig_expr)
        return int(self.create_symintnode(orig_expr, hint=None))

    def size_hint(self, expr: Any, *, allow_none: bool = False) -> Any:
        """The example's value of an expression."""
        found = self.hint(expr)
        if found is None and not allow_none:
            raise data_dependent(self, expr)
        return found

    def freeze(self) -> None:
        """No more guards: what would need one is refused."""
        self.frozen = True


class ValueRanges(NamedTuple):
    """A range of integers."""

    lower: float
    upper: float

    def __str__(self) -> str:
        low, high = ("int_oo" if n >= MOST else "-int_oo" if n <= -MOST else _tidy(n)
                     for n in self)
        return f"VR[{low}, {high}]"

    __repr__ = __str__


def _tidy(n: float) -> float:
    return int(n) if n == int(n) else n


class _Unknown(Exception):
    """The hint of what depends on data was wanted."""


def asked_by_user() -> bool:
    """Is it the user's code that compares sizes, and not a shape rule of the library?"""
    frame = sys._getframe(2)
    here = __file__.rpartition("env.py")[0]
    while frame is not None and frame.f_code.co_filename.startswith(here):
        frame = frame.f_back
    return frame is None or not frame.f_code.co_filename.startswith(errors._INTERNAL)


def _special(relation: Relation) -> bool | None:
    """The answer to a question whether a size is 0 or 1, or what follows from it is infinite: it
    is taken to be neither."""
    op, left, right = relation
    if op in ("==", "!=") and getattr(left, "number", None) is not None:
        left, right = right, left
    n = getattr(right, "number", right)
    remainder = isinstance(left, Expr) and any(atom.kind == "mod" for atom in left.atoms())
    if n in (0, 1, INF) and op in ("==", "!=") and not remainder:
        return op == "!="
    return op in (">", ">=") if (op, n) in ((">", 1), (">=", 2), ("<", 2), ("<=", 1)) else None


def data_dependent(env: ShapeEnv, what: Any) -> Exception:
    """The error for a question that only the data can answer."""
    wanted = "guard on" if isinstance(what, Relation) else "extract specialized integer from"
    names = sorted(s for s in what.symbols() if env.symbols[s].hint is None)
    return errors.GuardOnDataDependentSymNode(errors.text(
        f"Could not {wanted} data-dependent expression {what} ({errors.user_line(3)})",
        [f"{s} comes from {env.symbols[s].where}, its range is {ValueRanges(*env.symbols[s].range)}"
         for s in names],
        ["say what holds with torch._check(condition)",
         "or decide with torch.where or torch.cond instead of Python's if"]))
