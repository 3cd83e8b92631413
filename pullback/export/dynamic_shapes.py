"""`Dim`: a size of an argument that may vary between calls of an exported program.

`dynamic_shapes` of `export` has, for each argument, which of its dims vary: `{0: Dim("batch")}`, or
one entry per dim.  `Varying` makes symbols of them for the capture; afterwards `checked` compares
what the capture relied on with what the dims promise.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator
from typing import Any

from .. import errors
from ..array.fake import Fake
from ..array.size import Symbolic
from ..capture.joint import Sizes
from ..core.handle import Tensor, make
from ..graph.sizes import _strides
from ..pytree import tree_flatten, tree_is_leaf, tree_map
from ..symbolic.env import MOST, ShapeEnv, Source
from ..symbolic.expr import Expr, symbol


class _Hint:
    """How a dim is to be treated, where it has no name; called, it gets bounds."""

    def __init__(self, name: str, min: int | None = None, max: int | None = None):
        self.name, self.min, self.max = name, min, max

    def __call__(self, min: int | None = None, max: int | None = None) -> _Hint:
        if self.name == "STATIC":
            raise TypeError("Dim.STATIC has no bounds: the size is a number")
        return _Hint(self.name, min, max)

    def __repr__(self) -> str:
        bounds = "" if self.min is self.max is None else f"(min={self.min}, max={self.max})"
        return f"Dim.{self.name}{bounds}"


class Dim:
    """A named size with bounds; `Dim.AUTO`, `Dim.DYNAMIC` and `Dim.STATIC` are dims without name.

    Equal dims are equal sizes; `2*batch` and `batch + 1` are sizes that follow from another.
    Without `min` a size is at least 2: functions treat 0 and 1 differently.
    """

    AUTO, DYNAMIC, STATIC = _Hint("AUTO"), _Hint("DYNAMIC"), _Hint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        low = 0 if min is None else min
        if not isinstance(name, str) or not name.isidentifier():
            raise errors.BadValue(f"the name of a Dim must be an identifier, got {name!r} "
                                  f"({errors.user_line(2)})")
        if max is not None and max < low:
            raise errors.BadValue(f"Cannot create Dim with inconsistent min={low}, max={max} "
                                  f"({errors.user_line(2)})")
        self.__name__, self.min, self.max = name, low, MOST if max is None else max
        self.least = 2 if min is None else min
        self.root, self.factor, self.offset = self, 1, 0

    def __repr__(self) -> str:
        return _declared(self.__name__, self.min, self.max)

    def __add__(self, other: Any) -> Dim:
        if type(other) is not int:
            raise _not_linear(self, f"{other!r} is added, and no integer")
        return _Derived(self.root, self.factor, self.offset + other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Dim:
        if type(other) is not int:
            raise _not_linear(self, f"{other!r} is subtracted, and no integer")
        return self + -other

    def __rsub__(self, other: Any) -> Dim:
        raise _not_linear(self, f"{self.__name__} is subtracted")

    def __mul__(self, other: Any) -> Dim:
        if type(other) is not int or other <= 0:
            raise _not_linear(self, f"the factor is {other!r}, and no positive integer")
        return _Derived(self.root, self.factor * other, self.offset * other)

    __rmul__ = __mul__


class _Derived(Dim):
    """A size that is a multiple of another, plus a number."""

    def __init__(self, root: Dim, factor: int, offset: int) -> None:
        self.root, self.factor, self.offset = root, factor, offset
        self.min, self.least = (max(0, self.at(n)) for n in (max(root.min, 2), root.least))
        self.max = MOST if root.max >= MOST else self.at(root.max)
        scaled = root.__name__ if factor == 1 else f"{factor}*{root.__name__}"
        sign = f" {'-' if offset < 0 else '+'} {abs(offset)}" if offset else ""
        self.__name__ = scaled + sign

    def at(self, value: Any) -> Any:
        """The size for a value of the other."""
        return value * self.factor + self.offset

    fn = at

    def __repr__(self) -> str:
        return self.__name__


def _declared(name: str, low: float, high: float) -> str:
    """How a Dim with these bounds is made."""
    parts = [repr(name)]
    parts += [f"min={int(low)}"] if low != 2 else []
    parts += [f"max={int(high)}"] if high < MOST else []
    return f"Dim({', '.join(parts)})"


def _not_linear(dim: Dim, why: str) -> Exception:
    return NotImplementedError(
        f"a size that follows from {dim!r} is a positive multiple of it plus an integer; here "
        f"{why} ({errors.user_line(3)})")


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several at once."""
    return tuple(Dim(name, min=min, max=max) for name in names)


def found_out(wish: Any) -> Any:
    """What is asked of a dim, without its promise."""
    if isinstance(wish, Dim):
        return Dim.AUTO(min=wish.least, max=wish.max)
    hint = isinstance(wish, _Hint) and wish.name == "DYNAMIC"
    return Dim.AUTO(min=wish.min, max=wish.max) if hint else wish


def requested_dims(
    dynamic_shapes: Any, names: list[str], args: tuple, kwargs: dict[str, Any]
) -> list[list] | None:
    """For each tensor among the arguments what each of its dims is; None if none varies."""
    given = (*args, *kwargs.values())
    if isinstance(dynamic_shapes, dict):
        if set(dynamic_shapes) - set(names):
            raise errors.UserError(errors.text(
                "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg "
                f"names {names} of `inputs`, but here they are {list(dynamic_shapes)} "
                f"({errors.user_line(3)})"))
        parts: list = [dynamic_shapes.get(name) for name in names]
    elif isinstance(dynamic_shapes, (tuple, list)):
        parts = list(dynamic_shapes)
    elif dynamic_shapes is None:
        return None
    else:
        raise errors.UserError(
            "Expected `dynamic_shapes` to be a dict, a list or a tuple, got "
            f"{type(dynamic_shapes).__name__} ({errors.user_line(3)})")
    if len(parts) != len(given):
        raise errors.UserError(f"`dynamic_shapes` is for {len(parts)} arguments, there are "
                              f"{len(given)} ({errors.user_line(3)})")
    found: list[list] = []
    for name, value, part in zip(names, given, parts):
        _collect(name, value, part, found)
    return found if any(w is not None for own in found for w in own) else None


def _collect(name: str, value: Any, part: Any, found: list[list]) -> None:
    if isinstance(value, Tensor):
        found.append(_of_tensor(name, value, part))
        return
    children: list[tuple] = []
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, (list, tuple)):
        children = list(enumerate(value))
    elif not tree_is_leaf(value):  # of a class that is registered: its parts in order
        children = list(enumerate(tree_flatten(value, is_leaf=lambda v: v is not value)[0]))
        if type(part) is type(value) and dataclasses.is_dataclass(part):  # one with requests in it
            names = [f.name for f in dataclasses.fields(part)]
            part = [getattr(part, n) for n in names if getattr(value, n) is not None]
    elif part is not None:
        raise errors.UserError(f"the argument {name!r} is no tensor and has no dims that could "
                              f"vary: {part!r} ({errors.user_line(3)})")
    for key, child in children:
        inside = None
        if part is not None:
            try:
                inside = part[key]
            except (KeyError, IndexError, TypeError):
                raise errors.UserError(
                    f"`dynamic_shapes` has nothing for {name}[{key!r}] ({errors.user_line(3)})"
                ) from None
        _collect(f"{name}[{key!r}]", child, inside, found)


def _of_tensor(name: str, value: Tensor, part: Any) -> list:
    rank = value.ndim
    if part is None:
        return [None] * rank
    if isinstance(part, dict):
        if any(type(d) is not int or not -rank <= d < rank for d in part):
            raise errors.UserError(f"{name!r} has {rank} dims, `dynamic_shapes` speaks of "
                                  f"{list(part)} ({errors.user_line(3)})")
        own: list = [None] * rank
        for d, wish in part.items():
            own[d] = wish
    elif isinstance(part, (tuple, list)) and len(part) == rank:
        own = list(part)
    else:
        raise errors.UserError(f"{name!r} has {rank} dims, `dynamic_shapes` has {part!r} for them "
                              f"({errors.user_line(3)})")
    for d, wish in enumerate(own):
        kind = None if isinstance(wish, (Dim, _Hint, int, type(None))) else errors.UserError
        if type(wish) is int and wish != value.shape[d]:
            kind = errors.ConstraintViolationError
        if kind is not None:
            raise kind(f"{name}.size({d}) is {value.shape[d]}, `dynamic_shapes` has {wish!r} for "
                       f"it ({errors.user_line(3)})")
    return [None if w is Dim.STATIC or type(w) is int else w for w in own]


class Varying(Sizes):
    """The sizes of the arguments of an export, with symbols for dims that vary."""

    checks = True

    def __init__(self, wanted: list[list], names: list[str], env: ShapeEnv | None = None):
        super().__init__(wanted, names)
        self.env = ShapeEnv(duck_shape=False) if env is None else env
        self.named: dict[str, tuple[Dim, Any]] = {}
        self.places: dict[str, str] = {}  # where a named dim is found
        self.demanded: list[tuple[str, Any]] = []  # sizes that must not be fixed

    def of(self, i: int, t: Tensor) -> Tensor:
        """The fake of an argument."""
        data = t._payload
        if data.symbolic:
            return t
        shape = [self._size(wish, n, i, d)
                 for d, (wish, n) in enumerate(zip(self.wanted[i], data.shape))]
        return make(Fake(shape, data.dtype, _strides(data, shape), data.device_name,
                         marks=data.marks))

    def _size(self, wish: Any, n: Any, i: int, d: int) -> Any:
        if wish is None or isinstance(n, Symbolic):
            return n
        source = Source(f"{self.names[i]}.size()[{d}]", i, d)
        if not isinstance(wish, Dim):
            return self._hinted(wish, n, source)
        root = wish.root
        value, rest = divmod(n - wish.offset, wish.factor)
        known = self.named.get(root.__name__)
        if known is not None and (known[0].min, known[0].max) != (root.min, root.max):
            raise errors.UserError(
                f"Found different definitions {known[0]!r} and {root!r} for the same symbolic "
                f"dimension ({errors.user_line(4)})")
        if rest or known is not None and known[1].hint != value:
            other = f", where {root.__name__} = {known[1].hint}" if known is not None else ""
            raise errors.ConstraintViolationError(
                f"Expected input {source.name} to be equal to {wish!r}{other}, but got {n}"
                if wish is not root else
                f"{source.name} is {n}, another size that is {wish!r} is {known[1].hint} "
                f"({errors.user_line(4)})")
        if known is None:
            if not max(root.least, 2) <= value <= root.max:
                raise errors.ConstraintViolationError(errors.text(
                    f"{source.name} is {n}, which is not in range of {wish!r} "
                    f"({errors.user_line(4)})",
                    cure="export with an argument of another size, that is not 0 or 1"))
            known = root, self.env.size(value, source, least=root.least, most=root.max)
            self.named[root.__name__] = known
            self.places[root.__name__] = f"L['{self.names[i]}'].size()[{d}]"
        if wish is not root:
            return wish.at(known[1])  # type: ignore[attr-defined]
        self.places[root.__name__] = f"L['{self.names[i]}'].size()[{d}]"
        return known[1]

    def _hinted(self, wish: _Hint, n: int, source: Source) -> Any:
        """The size of a dim without a name."""
        if n < 2:
            if wish.name == "DYNAMIC":
                raise errors.BadValue(errors.text(
                    f"{source.name} is to be {wish!r}, and is {n}: 0 and 1 are specialised "
                    f"({errors.user_line(5)})",
                    cure=["export with an argument of another size", "or use Dim.AUTO"]))
            return n
        low = 2 if wish.min is None else wish.min
        high = MOST if wish.max is None else wish.max
        if not low <= n <= high:
            raise errors.ConstraintViolationError(
                f"{source.name}: {n} not in range [{low}, {high}] ({errors.user_line(5)})")
        made = self.env.size(n, source, least=low, most=high)
        if wish.name == "DYNAMIC":
            self.demanded.append((source.name, made))
        return made

    def checked(self) -> ShapeEnv:
        """Refuse what the capture has decided for some values of a named dim only.

        What cannot be shown to hold for all of them stays a condition of the program.
        """
        ranges = {size.node.raw.symbol: wish for wish, size in self.named.values()}
        violated: dict[str, tuple] = {}  # symbol -> (the first value that is wrong, guard)
        for guard in self.env.guards:
            for name, value in _counterexamples(guard.relation, ranges, self.env):
                violated.setdefault(name, (value, guard))
        for name, size in self.demanded:
            if size.node.maybe_as_int() is not None:
                raise errors.ConstraintViolationError(errors.text(
                    f"Constraints violated ({name})! It is Dim.DYNAMIC, but the captured function "
                    f"is right for {size.node.maybe_as_int()} only ({errors.user_line(3)})",
                    [_decided(g) for g in self.env.guards
                     if size.node.raw.symbol in g.relation.symbols()],
                    cure="Dim.STATIC or Dim.AUTO in its place"))
        if violated:
            self._refuse(violated, ranges)
        return self.env

    def _refuse(self, violated: dict[str, tuple], ranges: dict[str, Dim]) -> None:
        """What the dims promise and the program does not keep, with the dims that would do."""
        fixes: list[str] = []
        lines: list[str] = []
        equal = {s: e for s, e in self.env.replacements.items() if s in ranges}
        titles = {s: wish.__name__ for s, wish in ranges.items()}
        for s, e in equal.items():
            name = titles[s]
            if e.number is not None:
                lines.append(f"{name} = {self.places[name]} is {e.number} only")
                fixes.append(f"{name} = {e.number}")
            elif e.symbols() <= ranges.keys():
                other = str(e.replaced({s: symbol(t) for s, t in titles.items()}))
                order = list(titles.values())
                if other in order and order.index(other) > order.index(name):
                    name, other = other, name  # the later one is the one before
                lines.append(f"the values of {name} = {self.places[name]} must always be "
                             f"related to others by {name} = {other}")
                fixes.append(f"{name} = {other}")
        for s, (value, guard) in violated.items():
            wish, name = ranges[s], titles[s]
            if s not in equal:
                lines.append(f"not right for {name} = {value}, which {wish!r} allows")
                fixes += self._other_bounds(s, wish)
            lines.append(_decided(guard))
        names = ", ".join(titles[s] for s in ranges if s in violated)
        raise errors.ConstraintViolationError(errors.text(
            f"Constraints violated ({names})! The program does not keep what its dims promise "
            f"({errors.user_line(4)})", list(dict.fromkeys(lines)),
            [*[f"Suggested fixes: {fix}" for fix in dict.fromkeys(fixes)],
             "or use Dim.AUTO: the export finds how sizes depend on one another"]))

    def _other_bounds(self, s: str, wish: Dim) -> list[str]:
        """A dim that keeps its promise: with other bounds, or a multiple of another."""
        name, (low, high) = wish.__name__, self.env.symbols[s].range
        low, high = max(low, wish.least), min(high, wish.max)
        n = math.lcm(*[_divisor(guard.relation, s) for guard in self.env.guards])
        if n > 1:
            most = MOST if high >= MOST else high // n
            return [f"_{name} = {_declared(f'_{name}', max(1, -(-low // n)), most)}; "
                    f"{name} = {n}*_{name}"]
        return [] if (low, high) == (wish.least, wish.max) else [
            f"{name} = {_declared(name, low, high)}"]


def _divisor(relation: Any, s: str) -> int:
    """What a relation says a size is a multiple of: 1 if nothing."""
    left, right = relation.left, relation.right
    atom = next(iter(left.atoms()), None) if isinstance(left, Expr) else None
    if atom is None or atom.kind != "mod" or relation.op != "==" or right.number != 0 or (
            atom.args[0].symbols() != {s} or len(atom.args[0].terms) != 1):
        return 1
    n, of = atom.args[1].number, atom.args[0].terms[0][1]
    return 1 if n is None else n // math.gcd(n, of)


_SIZE = re.compile(r"(?:(\d+)\*)?(\w+)(?: ([+-]) (\d+))?")
_DIM = re.compile(r"Dim\('(\w+)'(?:, min=(\d+))?(?:, max=(\d+))?\)")


def refine_dynamic_shapes_from_suggested_fixes(msg: str, dynamic_shapes: Any) -> Any:
    """Wishes with the fixes in them that the message of an error of `export` suggests."""
    fixes = [fix.partition(" = ") for line in re.findall(r"Suggested fixes: (.*)", msg)
             for fix in line.split("; ")]
    if not fixes:
        raise errors.BadValue(f"the message suggests no fixes: {msg!r:.80} ({errors.user_line(2)})")
    wished = [w for w in tree_flatten(dynamic_shapes)[0] if isinstance(w, Dim)]
    known: dict[str, Any] = {w.root.__name__: w.root for w in wished}
    found: dict[str, Any] = {}
    for name, _, text in fixes:
        found[name] = _as_fixed(text, {**known, **found})

    def refined(wish: Any) -> Any:
        if not isinstance(wish, Dim):
            return wish
        if wish.__name__ in found or wish is wish.root:
            return found.get(wish.__name__, wish)
        root = found.get(wish.root.__name__)
        return wish if root is None else root * wish.factor + wish.offset

    return tree_map(refined, dynamic_shapes)


def _as_fixed(text: str, known: dict[str, Any]) -> Any:
    """A number, a dim, or what follows from another: as `_refuse` writes it."""
    made, size = _DIM.fullmatch(text), _SIZE.fullmatch(text)
    if made is not None:
        low, high = (None if n is None else int(n) for n in made.groups()[1:])
        return Dim(made[1], min=low, max=high)
    if text.isdigit():
        return int(text)
    if size is None or size[2] not in known:
        raise errors.BadValue(f"a suggested fix cannot be read: {text!r} ({errors.user_line(3)})")
    factor, offset = int(size[1] or 1), int(f"{size[3] or '+'}{size[4] or 0}")
    return known[size[2]] if (factor, offset) == (1, 0) else known[size[2]] * factor + offset


def forked(env: ShapeEnv) -> ShapeEnv:
    """Another environment that knows the same."""
    new = ShapeEnv(duck_shape=False)
    new.symbols = {name: dataclasses.replace(s) for name, s in env.symbols.items()}
    new.guards, new.replacements = list(env.guards), dict(env.replacements)
    return new


_TRIED = 4096  # values of a size that are tried


def _decided(guard: Any) -> str:
    return f"{guard} was decided at {guard.where}: {guard.reason}"


def _counterexamples(relation: Any, ranges: dict[str, Dim], env: ShapeEnv) -> Iterator[tuple]:
    """(symbol, value) for which a relation does not hold, the others as in the example."""
    hints = {name: s.hint for name, s in env.symbols.items()}
    if not relation.symbols() <= {n for n, hint in hints.items() if hint is not None}:
        return
    for name in sorted(relation.symbols() & ranges.keys()):
        low, high = ranges[name].least, ranges[name].max
        tried = [*range(low, min(high + 1, low + _TRIED)), *([high] if high < MOST else [])]
        for value in tried:
            try:
                holds = relation.holds({**hints, name: value}.__getitem__)
            except ZeroDivisionError:
                holds = False
            if not holds:
                yield name, value
                break
