"""`Dim`: a size of an argument that may vary between calls of an exported program.

`dynamic_shapes` of `export` has, for each argument, which of its dims vary: `{0: Dim("batch")}`, or
one entry per dim.  `Varying` makes symbols of them for the capture; afterwards `checked` compares
what the capture relied on with what the dims promise.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from .. import errors
from ..aot.capture import Sizes
from ..core.fake import Fake
from ..core.handle import Tensor, make
from ..core.size import Symbolic
from ..core.symbolic.env import MOST, ShapeEnv, Source
from ..fx.sizes import _strides


class _Hint:
    """How a dim is to be treated, where it has no name."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"Dim.{self.name}"


class Dim:
    """A named size with bounds; `Dim.AUTO`, `Dim.DYNAMIC` and `Dim.STATIC` are dims without name.

    Equal dims are equal sizes.  Without `min` a size is at least 2: functions treat 0 and 1
    differently.
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

    def __repr__(self) -> str:
        parts = [repr(self.__name__)]
        parts += [f"min={self.min}"] if self.min != 2 else []
        parts += [f"max={self.max}"] if self.max != MOST else []
        return f"Dim({', '.join(parts)})"

    def _derived(self, *_: Any) -> Any:
        raise errors.ExportError(errors.text(
            f"a size that follows from {self!r} is not declared ({errors.user_line(2)})",
            cure="use Dim.AUTO there: the export finds how sizes depend on one another"))

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _derived


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several at once."""
    return tuple(Dim(name, min=min, max=max) for name in names)


def wishes(
    dynamic_shapes: Any, names: list[str], args: tuple, kwargs: dict[str, Any]
) -> list[list] | None:
    """For each tensor among the arguments what each of its dims is; None if none varies."""
    given = (*args, *kwargs.values())
    if isinstance(dynamic_shapes, dict):
        if set(dynamic_shapes) - set(names):
            raise errors.BadValue(errors.text(
                "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg "
                f"names {names} of `inputs`, but here they are {list(dynamic_shapes)} "
                f"({errors.user_line(3)})"))
        parts: list = [dynamic_shapes.get(name) for name in names]
    elif isinstance(dynamic_shapes, (tuple, list)):
        parts = list(dynamic_shapes)
    elif dynamic_shapes is None:
        return None
    else:
        raise errors.BadValue(
            "Expected `dynamic_shapes` to be a dict, a list or a tuple, got "
            f"{type(dynamic_shapes).__name__} ({errors.user_line(3)})")
    if len(parts) != len(given):
        raise errors.BadValue(f"`dynamic_shapes` is for {len(parts)} arguments, there are "
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
    elif part is not None:
        raise errors.BadValue(f"the argument {name!r} is no tensor and has no dims that could "
                              f"vary: {part!r} ({errors.user_line(3)})")
    for key, child in children:
        inside = None
        if part is not None:
            try:
                inside = part[key]
            except (KeyError, IndexError, TypeError):
                raise errors.BadValue(
                    f"`dynamic_shapes` has nothing for {name}[{key!r}] ({errors.user_line(3)})"
                ) from None
        _collect(f"{name}[{key!r}]", child, inside, found)


def _of_tensor(name: str, value: Tensor, part: Any) -> list:
    rank = value.ndim
    if part is None:
        return [None] * rank
    if isinstance(part, dict):
        if any(type(d) is not int or not -rank <= d < rank for d in part):
            raise errors.BadValue(f"{name!r} has {rank} dims, `dynamic_shapes` speaks of "
                                  f"{list(part)} ({errors.user_line(3)})")
        own: list = [None] * rank
        for d, wish in part.items():
            own[d] = wish
    elif isinstance(part, (tuple, list)) and len(part) == rank:
        own = list(part)
    else:
        raise errors.BadValue(f"{name!r} has {rank} dims, `dynamic_shapes` has {part!r} for them "
                              f"({errors.user_line(3)})")
    for d, wish in enumerate(own):
        if type(wish) is int and wish != value.shape[d] or not isinstance(
                wish, (Dim, _Hint, int, type(None))):
            raise errors.BadValue(f"{name}.size({d}) is {value.shape[d]}, `dynamic_shapes` has "
                                  f"{wish!r} for it ({errors.user_line(3)})")
    return [None if w is Dim.STATIC or type(w) is int else w for w in own]


class Varying(Sizes):
    """The sizes of the arguments of an export, with symbols for dims that vary."""

    def __init__(self, wanted: list[list], names: list[str], env: ShapeEnv | None = None):
        super().__init__(wanted, names)
        self.env = ShapeEnv(duck_shape=False) if env is None else env
        self.named: dict[str, tuple[Dim, Any]] = {}

    def of(self, i: int, t: Tensor) -> Tensor:
        """The fake of an argument."""
        data = t._data
        if data.symbolic:
            return t
        shape = [self._size(wish, n, i, d)
                 for d, (wish, n) in enumerate(zip(self.wanted[i], data.shape))]
        return make(Fake(shape, data.dtype, _strides(data, shape), data.device_name))

    def _size(self, wish: Any, n: Any, i: int, d: int) -> Any:
        if wish is None or isinstance(n, Symbolic):
            return n
        source = Source(f"{self.names[i]}.size()[{d}]", i, d)
        if not isinstance(wish, Dim):
            return n if n < 2 else self.env.size(n, source, least=2)
        known = self.named.get(wish.__name__)
        if known is None:
            if not max(wish.least, 2) <= n <= wish.max:
                raise errors.BadValue(errors.text(
                    f"{source.name} is {n}, and is to be {wish!r} ({errors.user_line(4)})",
                    cure="export with an argument of another size, that is not 0 or 1"))
            known = wish, self.env.size(n, source, least=wish.least, most=wish.max)
            self.named[wish.__name__] = known
        elif known[1].hint != n:
            raise errors.BadValue(f"{source.name} is {n}, another size that is {wish!r} is "
                                  f"{known[1].hint} ({errors.user_line(4)})")
        return known[1]

    def checked(self) -> ShapeEnv:
        """Refuse what the capture has decided for some values of a named dim only.

        What cannot be shown to hold for all of them stays a condition of the program.
        """
        ranges = {size.node.raw.symbol: wish for wish, size in self.named.values()}
        for guard in self.env.guards:
            found = _counterexample(guard.relation, ranges, self.env)
            if found is None:
                continue
            wish = ranges[found[0]]
            raise errors.ConstraintViolationError(errors.text(
                f"Constraints violated ({wish.__name__})! The program is not right for "
                f"{wish.__name__} = {found[1]}, which {wish!r} allows ({errors.user_line(3)})",
                f"{guard} was decided at {guard.where}: {guard.reason}",
                [f"give {wish.__name__} other bounds (min=, max=)", "or use Dim.AUTO for it"]))
        return self.env


def forked(env: ShapeEnv) -> ShapeEnv:
    """Another environment that knows the same."""
    new = ShapeEnv(duck_shape=False)
    new.symbols = {name: dataclasses.replace(s) for name, s in env.symbols.items()}
    new.guards, new.replacements = list(env.guards), dict(env.replacements)
    return new


_TRIED = 4096  # values of a size that are tried


def _counterexample(relation: Any, ranges: dict[str, Dim], env: ShapeEnv) -> tuple | None:
    """(symbol, value) for which a relation does not hold, the others as in the example."""
    hints = {name: s.hint for name, s in env.symbols.items()}
    if not relation.symbols() <= {n for n, hint in hints.items() if hint is not None}:
        return None
    for name in sorted(relation.symbols() & ranges.keys()):
        low, high = ranges[name].least, ranges[name].max
        tried = [*range(low, min(high + 1, low + _TRIED)), *([high] if high < MOST else [])]
        for value in tried:
            try:
                holds = relation.holds({**hints, name: value}.__getitem__)
            except ZeroDivisionError:
                holds = False
            if not holds:
                return name, value
    return None
