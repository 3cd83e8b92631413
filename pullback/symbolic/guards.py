"""Guards as Python texts over the inputs: `x.size()[0] == y.size()[1]`, under PyTorch's spelling.

`produce` gives what must hold of inputs so that a capture is right for them: which sizes and
strides are equal, which relations were asked, and the ranges of symbols.  The run time has its own
test (`env.Checker`); these texts are for people and for programs that print them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any, NamedTuple

from ..array.size import Symbolic
from ..core.handle import Tensor
from .env import MOST, ShapeEnv
from .expr import Atom, Expr
from .relation import Combined, Relation


class ConstantSource(str):
    """The name of an input as it stands."""

    __slots__ = ()


class LocalSource(str):
    """The name of an argument of a function."""

    __slots__ = ()

    def __new__(cls, local_name: str, *ignored: Any, **others: Any) -> LocalSource:
        return super().__new__(cls, f"L['{local_name}']")


class DimDynamic(Enum):
    """What a size of an input is to become."""

    DYNAMIC = auto()  # a symbol of its own
    DUCK = auto()  # the same symbol as equal sizes
    STATIC = auto()  # a number
    UNBACKED = auto()  # a symbol whose value nothing may depend on


class StatelessSymbolicContext(NamedTuple):
    """What the sizes of one input are to become."""

    dynamic_sizes: Sequence[DimDynamic]
    dynamic_strides: Sequence | None = None
    constraint_sizes: Sequence | None = None
    constraint_strides: Sequence | None = None


Names = Callable[[str], str]


def text(e: Any, names: Names) -> str:
    """An expression with inputs in the place of symbols."""
    if not isinstance(e, Expr):
        return _float(e, names) if hasattr(e, "args") else str(e)
    terms = sorted(e.terms, key=lambda t: (bool(t[0]), t[0]))
    if not terms:
        return "0"
    parts = []
    for mono, c in terms:
        factors = [_atom(a, names) for a, p in mono for _ in range(p)]
        if c != 1 or not factors:
            factors.insert(0, str(c) if c >= 0 else f"({c})")
        one = "*".join(factors)
        if c < 0 and len(terms) > 1 and mono and all(a.kind == "symbol" for a, _ in mono):
            one = f"({one})"
        parts.append(one if mono or len(terms) > 1 else str(c))
    return " + ".join(parts)


def _factor(e: Any, names: Names) -> str:
    one = text(e, names)
    if not isinstance(e, Expr):
        return one
    plain = e.number is not None or (
        len(e.terms) == 1 and e.terms[0][1] == 1 and len(e.terms[0][0]) == 1
        and e.terms[0][0][0][1] == 1)
    return one if plain else f"({one})"


_SIGNS = {"floordiv": "//", "mod": "%", "and": "&", "or": "|", "xor": "^"}
_CHOICES = {"if_zero": "({1} if {0} == 0 else {2})",
            "unless_negative": "({1} if {0} >= 0 else {2})"}


def _atom(atom: Atom, names: Names) -> str:
    if atom.kind == "symbol":
        return names(atom.text)
    if atom.kind in _SIGNS:
        a, b = (_factor(x, names) for x in atom.args)
        return f"({a} {_SIGNS[atom.kind]} {b})"
    args = [text(a, names) for a in atom.args]
    return _CHOICES.get(atom.kind, f"{atom.kind}({', '.join(args)})").format(*args)


_FLOATS = {"truediv": "({} / {})", "add": "{} + {}", "sub": "{} - {}", "mul": "{}*{}",
           "pow": "{} ** {}", "sym_float": "torch.sym_float({})", "float": "{}",
           "sym_max": "max({}, {})", "sym_min": "min({}, {})", "floordiv": "({} // {})",
           "mod": "({} % {})"}


def _float(e: Any, names: Names) -> str:
    name = e.function.__name__
    form = _FLOATS.get(name, "math." + name + "({})")
    return form.format(*[text(a, names) for a in e.args])


def relation_text(relation: Relation, names: Names) -> str:
    """A relation with inputs in the place of symbols."""
    if isinstance(relation, Combined):
        sign = f" {relation.title.lower()} "
        return sign.join([f"({relation_text(r, names)})" for r in relation.parts])
    side = _factor if relation.op in ("==", "!=") else text
    return f"{side(relation.left, names)} {relation.op} {side(relation.right, names)}"


def _known(env: ShapeEnv) -> dict[str, Expr]:
    """Symbols that are others, not atoms such as remainders."""
    return {s: e for s, e in env.replacements.items() if s in env.symbols}


class Facts(NamedTuple):
    """(where, what it must be) of each size, stride and offset of the inputs, and the symbols."""

    places: list[tuple[str, Any]]
    sources: dict[str, str]  # symbol -> where it is found first


def _facts(env: ShapeEnv, placeholders: Sequence, sources: Sequence[str]) -> Facts:
    known = _known(env)
    places: list[tuple[str, Any]] = []
    found: dict[str, str] = {}

    def add(where: str, value: Any, may_define: bool) -> None:
        e = value.node.raw.replaced(known) if isinstance(value, Symbolic) and isinstance(
            value.node.raw, Expr) else value
        name = e.symbol if isinstance(e, Expr) else getattr(
            getattr(getattr(value, "node", None), "raw", None), "symbol", None)
        if may_define and name is not None and name not in found:
            found[name] = where
        else:
            places.append((where, e))

    for value, source in zip(placeholders, sources, strict=True):
        if isinstance(value, Tensor):
            for d, n in enumerate(value.shape):
                add(f"{source}.size()[{d}]", n, True)
            for d, n in enumerate(value.stride()):
                add(f"{source}.stride()[{d}]", n, False)
            add(f"{source}.storage_offset()", 0, False)
        else:
            add(source, value, True)
    return Facts(places, found)


def produce(
    env: ShapeEnv, placeholders: Sequence, sources: Sequence[str], guards: Sequence | None = None,
    ignore_static: bool = True, simplified: bool = False
) -> list[str]:
    """What must hold of inputs, one text each; `simplified`: not which sizes and strides follow
    from others, nor that they are 2 at least."""
    given = [LocalSource(s) if type(s) is str else str(s) for s in sources]
    facts, known = _facts(env, placeholders, given), _known(env)
    names = facts.sources.__getitem__
    out = []
    for where, e in () if simplified else facts.places:
        number = e.number if isinstance(e, Expr) else e
        if number is None or not ignore_static:
            if number is not None or e.symbols() <= facts.sources.keys():
                out.append(f"{where} == {text(e, names)}")
    for guard in env.guards if guards is None else guards:
        relation = getattr(guard, "relation", guard)
        if env._follows(relation):
            continue
        sides = [x.replaced(known) if isinstance(x, Expr) else x for x in relation[1:]]
        simple = Relation(relation.op, *sides)
        if simple.symbols() <= facts.sources.keys():
            out.append(relation_text(simple, names))
    for name, where in facts.sources.items():
        low, high = env.symbols[name].range
        least = 2 if simplified else -MOST
        tests = [f"{_whole(low)} <= {where}"] if low > least and not math.isinf(low) else []
        if high < MOST and not math.isinf(high):
            tests.append(f"{where} <= {_whole(high)}")
        if tests and low != high:
            out.append(" and ".join(tests))
    return out


def _whole(n: float) -> int:
    return int(n)


def bound(env: ShapeEnv, placeholders: Sequence, args: Sequence) -> dict[Expr, int]:
    """Symbol -> its value in other inputs."""
    found: dict[Expr, int] = {}
    for value, arg in zip(placeholders, args, strict=True):
        pairs = zip(value.shape, arg.shape) if isinstance(value, Tensor) else [(value, arg)]
        for n, have in pairs:
            e = n.node.expr if isinstance(n, Symbolic) else None
            if isinstance(e, Expr) and e.number is None and e.symbol is not None:
                found.setdefault(e, have)
    return found


def evaluate(code: str, args: Sequence) -> bool:
    """Does the text that `produce_guards_expression` gave hold of inputs?"""
    space = {"torch": None, "math": math, "min": min, "max": max}
    return bool(eval(code, {"__builtins__": {}, **space},
                     {"L": {f"t{i}": a for i, a in enumerate(args)}}))


# Captured graphs ----------------------------------------------------------------------------------


def fx_placeholder_vals(gm: Any) -> list:
    """The example values of a graph's inputs."""
    return [node.meta["val"] for node in gm.graph.nodes if node.op == "placeholder"]


def fx_placeholder_targets(gm: Any) -> list[str]:
    """The names of a graph's inputs."""
    return [node.target for node in gm.graph.nodes if node.op == "placeholder"]


def eval_guards(gm: Any, *args: Any, ignore_static: bool = True) -> bool:
    """Is a graph with symbolic sizes right for these inputs?"""
    return gm.shape_env.evaluate_guards_for_args(
        fx_placeholder_vals(gm), args, ignore_static=ignore_static)


def bind_symbols(gm: Any, *args: Any) -> dict[Expr, int]:
    """The values of a graph's symbols in these inputs."""
    return gm.shape_env.bind_symbols(fx_placeholder_vals(gm), args)
