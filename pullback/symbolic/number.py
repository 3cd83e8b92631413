"""`SymInt`, `SymFloat`, `SymBool`: numbers that stand for expressions over sizes.

They take part in Python's arithmetic.  A comparison gives a `SymBool`, whose truth asks the
`ShapeEnv`; `int()`, `range()`, a list index or a NumPy call need the number itself: that is allowed
where the size is known, and specialises what is captured to it.
"""

from __future__ import annotations

import functools
import math
import numbers
import operator
from collections.abc import Callable
from typing import Any

from ..array.size import Symbolic
from . import expr as ex
from .env import ShapeEnv, asked_by_user, data_dependent
from .expr import Expr, const
from .relation import Combined, Relation


class FloatExpr:
    """A function of expressions whose value is a float."""

    __slots__ = ("args", "depth", "function", "text")

    def __init__(self, function: Callable, args: tuple, text: str):
        self.function, self.args, self.text = function, args, text
        self.depth: int = 1 + max([getattr(a, "depth", 0) for a in args], default=0)

    @property
    def is_long(self) -> bool:
        """Is it nested too deeply, or too long, to go on with it?"""
        return self.depth > ex.DEEPEST or len(self.text) > ex.LONGEST

    def value(self, of: Callable[[str], int]) -> float:
        """The number for given values of the symbols."""
        return self.function(*[a.value(of) if hasattr(a, "value") else a for a in self.args])

    def symbols(self) -> set[str]:
        """The names of all symbols in it."""
        return set().union(*(a.symbols() for a in self.args if hasattr(a, "symbols")))

    @property
    def symbol(self) -> str | None:
        """The name of a bare symbol."""
        return self.args[0].symbol if self.function is float else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FloatExpr) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def _raw(expr: Any, pytype: type) -> Any:
    """What a number of a type is that an integer expression stands for."""
    e = expr if isinstance(expr, Expr) else const(int(expr))
    if pytype is bool:
        return Relation("==", e, const(1))
    return FloatExpr(float, (e,), str(e)) if pytype is float else e


class SymNode:
    """What a symbolic number is: an expression in an environment, and how Python made it."""

    __slots__ = ("hint", "how", "pytype", "raw", "shape_env")

    def __init__(self, expr: Any, shape_env: ShapeEnv, pytype: type, hint: Any = None,
                 constant: Any = None, fx_node: Any = None, *, how: tuple | None = None):
        self.raw = expr if not isinstance(expr, (int, Expr)) else _raw(expr, pytype)
        self.shape_env, self.hint, self.how, self.pytype = shape_env, hint, how, pytype

    @property
    def expr(self) -> Any:
        """The expression, with what has become known of its symbols."""
        return self.shape_env.simplify(self.raw) if isinstance(self.raw, Expr) else self.raw

    def has_hint(self) -> bool:
        """Is there an example value?"""
        return self.hint is not None

    def require_hint(self, fallback: Any = None) -> Any:
        """The example value, or the fallback."""
        return fallback if self.hint is None else self.hint

    def maybe_as_int(self) -> int | None:
        """The number, if it is known to be one."""
        return self.expr.number if isinstance(self.raw, Expr) else None

    def is_symbolic(self) -> bool:
        """Always."""
        return True

    def __str__(self) -> str:
        return str(self.expr)

    __repr__ = __str__


class _Number(Symbolic):
    __slots__ = ("node",)

    def __init__(self, node: SymNode) -> None:
        self.node = node

    @property
    def hint(self) -> Any:
        return self.node.hint

    @property
    def __class__(self) -> type:  # type: ignore[override]
        """For `isinstance` in a compiled function, where it stands for a number of Python's."""
        node = self.node
        return node.pytype if node.shape_env.plain and asked_by_user() else type(self)

    def __str__(self) -> str:
        env = self.node.shape_env
        if env.plain and not env.frozen and asked_by_user():
            return str(self._pinned("its text"))
        return str(self.node.expr)

    __repr__ = __str__

    def __hash__(self) -> int:
        # equal to numbers and to symbols of other captures: a cache of ours would mix them up
        if self.node.shape_env.plain:
            number = self._pinned("a key") if asked_by_user() else self._known()
            if number is not None:
                return hash(number)
        raise TypeError(f"unhashable: the symbolic number {self}; int() specialises it")

    def __deepcopy__(self, memo: dict) -> Any:
        return self

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def _known(self) -> Any:
        """The number itself, if the capture is for this one only."""
        e, env = self.node.expr, self.node.shape_env
        if isinstance(e, Expr):
            return e.number
        hint = env.hint(e)
        return hint if hint is not None and env.static(Relation("==", e, hint)) else None

    def _pinned(self, what: str) -> Any:
        """The number itself; the capture is for this one only from now on."""
        node = self.node
        e = node.expr
        number = getattr(e, "number", None)
        if number is not None:
            return number
        env = node.shape_env
        hint = env.hint(e)
        if hint is None:
            low, high = env.bounds(e) if isinstance(e, Expr) else (0, 1)
            if low == high:
                return int(low)
            hint = env.value_of(e)
            if hint is None:
                raise data_dependent(env, e)
        relation = Relation("==", e, const(hint) if isinstance(e, Expr) else hint)
        if not env.static(relation):
            if env.hint(e) is None:
                env.rely_on_data(relation, self == hint)
            else:
                env.add(relation, f"{what} needs the number itself")
        return hint


def _expr(value: Any) -> Any:
    """The expression behind a number; None for what is none."""
    kind = type(value)
    if kind is SymInt or kind is SymFloat:
        return value.node.expr
    if kind is int or kind is bool:
        return const(int(value))
    if isinstance(value, numbers.Integral):
        return const(int(value))
    return value if isinstance(value, float) else None


def _env(*values: Any) -> ShapeEnv:
    return next(v.node.shape_env for v in values if isinstance(v, _Number))


def _integer(function: Callable, rule: Callable, a: Any, b: Any) -> Any:
    """An integer operation on a SymInt and another number."""
    x, y = _expr(a), _expr(b)
    if x is None or y is None:
        return NotImplemented
    if not (isinstance(x, Expr) and isinstance(y, Expr)):
        return _float(function, a, b)
    env, made = _env(a, b), rule(x, y)
    same = a if made == x and isinstance(a, SymInt) else b if made == y and isinstance(
        b, SymInt) else None
    if same is not None and not asked_by_user():
        return _told(env, same)  # times 1 or plus 0 in a rule of ours is no step of the program
    return _told(env, SymInt.of(env, made, None, (function, (a, b))))


def _told(env: ShapeEnv, made: Any) -> Any:
    """A number that Python has just computed, in the graph if one is recorded."""
    if env.recorder is not None and isinstance(made, _Number):
        env.recorder.made(made)
    return made


_SIGNS = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%"}
_TITLES = {"pow": "FloatPow", "sym_float": "ToFloat", "sym_max": "Max", "sym_min": "Min"}


def _float_text(name: str, parts: list) -> str:
    """A float as PyTorch writes it in guards."""
    inner = [str(p) for p in parts]
    if name in _SIGNS and len(inner) == 2:
        return f"({inner[0]} {_SIGNS[name]} {inner[1]})"
    if name == "truediv":
        whole = all(isinstance(p, Expr) for p in parts)
        return f"{'Int' if whole else 'Float'}TrueDiv({', '.join(inner)})"
    if name.startswith("_sym_"):
        own = [f"ToFloat({t})" if isinstance(p, Expr) else t for p, t in zip(parts, inner)]
        return f"OpaqueUnaryFn_{name.removeprefix('_sym_')}({', '.join(own)})"
    return f"{_TITLES.get(name, name)}({', '.join(inner)})"


def _float(function: Callable, *args: Any) -> Any:
    """A float operation on symbolic numbers."""
    parts = [_expr(a) for a in args]
    if any(p is None for p in parts):
        return NotImplemented
    env = _env(*args)
    name = function.__name__
    text = _float_text(name, parts)
    plain = tuple([p.number if isinstance(p, Expr) and p.number is not None else p
                   for p in parts])
    made = FloatExpr(getattr(math, name.removeprefix("_sym_"), function)
                     if name.startswith("_sym_") else function, plain, text)
    number = SymFloat(SymNode(made, env, float, env.hint(made), how=(function, args)))
    return _told(env, _short(number) if made.is_long else number)


def _short(number: _Number) -> Any:
    """The number itself in the place of a long expression, unless the capture is over.

    What it is computed from is known then, too, so that it will not be asked for again."""
    if number.node.shape_env.frozen:
        return number
    what = f"what is computed in more than {ex.DEEPEST} steps from one another"
    for arg in number.node.how[1] if number.node.how is not None else ():
        if isinstance(arg, _Number) and getattr(arg.node.raw, "symbol", "") is None:
            arg._pinned(what)
    return number._pinned(what)


def _both_ways(function: Callable) -> tuple[Callable, Callable]:
    """A float operator of two numbers: its method, and that for the operands exchanged."""
    return (lambda a, b: _float(function, a, b)), (lambda a, b: _float(function, b, a))


def _compare(op: str) -> Callable:
    def compare(a: Any, b: Any) -> Any:
        x, y = _expr(a), _expr(b)
        if x is None or y is None:
            return NotImplemented
        relation = Relation(op, x, y)
        env = _env(a, b)
        known = env.static(relation)
        if known is not None:
            return known
        return SymBool(SymNode(relation, env, bool, how=(_OPERATORS[op], (a, b))))

    return compare


_COMPARISONS = [_compare(op) for op in ("==", "!=", ">=", ">", "<=", "<")]


_OPERATORS = {"==": operator.eq, "!=": operator.ne, ">=": operator.ge, ">": operator.gt,
              "<=": operator.le, "<": operator.lt}


def _bits(kind: str) -> Callable:
    return functools.partial(ex.bitwise, kind)


def _power(a: Expr, b: Expr) -> Expr:
    n = b.number
    out = const(1)
    for _ in range(n):
        out = out * a
    return out


class SymInt(_Number):
    """An integer that is not known yet: a size, or computed from sizes."""

    __slots__ = ()

    @staticmethod
    def of(env: ShapeEnv, e: Expr, hint: int | None, how: tuple | None = None) -> Any:
        """The integer of an expression; a plain one if it is known."""
        number = e.number
        if number is not None:
            return number
        made = SymInt(SymNode(e, env, int, env.hint(e) if hint is None else hint, how=how))
        return _short(made) if e.is_long else made

    def __index__(self) -> int:
        return self._pinned("__index__ (range, a list index, an array function)")

    def __int__(self) -> int:
        return self._pinned("int()")

    def __float__(self) -> float:
        return float(self._pinned("float()"))

    def __bool__(self) -> bool:
        return bool(self != 0)

    __add__ = lambda a, b: _integer(operator.add, Expr.__add__, a, b)
    __radd__ = lambda a, b: _integer(operator.add, Expr.__add__, b, a)
    __sub__ = lambda a, b: _integer(operator.sub, Expr.__sub__, a, b)
    __rsub__ = lambda a, b: _integer(operator.sub, Expr.__sub__, b, a)
    __mul__ = lambda a, b: _integer(operator.mul, Expr.__mul__, a, b)
    __rmul__ = lambda a, b: _integer(operator.mul, Expr.__mul__, b, a)
    __truediv__, __rtruediv__ = _both_ways(operator.truediv)
    __floordiv__ = lambda a, b: _divided(operator.floordiv, ex.floordiv, a, b)
    __rfloordiv__ = lambda a, b: _divided(operator.floordiv, ex.floordiv, b, a)
    __mod__ = lambda a, b: _divided(operator.mod, ex.remainder, a, b)
    __rmod__ = lambda a, b: _divided(operator.mod, ex.remainder, b, a)
    __neg__ = lambda a: _told(a.node.shape_env, SymInt.of(
        a.node.shape_env, -a.node.expr, None, (operator.neg, (a,))))
    __pos__ = lambda a: a
    __abs__ = lambda a: a if a >= 0 else -a
    __eq__, __ne__, __ge__, __gt__, __le__, __lt__ = _COMPARISONS
    __hash__ = _Number.__hash__
    __trunc__ = __floor__ = __ceil__ = lambda a: a
    __round__ = lambda a, digits=None: a
    __lshift__ = lambda a, b: a * 2 ** int(b)
    __rshift__ = lambda a, b: a // 2 ** int(b)
    __and__ = lambda a, b: _integer(operator.and_, _bits("and"), a, b)
    __rand__ = lambda a, b: _integer(operator.and_, _bits("and"), b, a)
    __or__ = lambda a, b: _integer(operator.or_, _bits("or"), a, b)
    __ror__ = lambda a, b: _integer(operator.or_, _bits("or"), b, a)
    __xor__ = lambda a, b: _integer(operator.xor, _bits("xor"), a, b)
    __rxor__ = lambda a, b: _integer(operator.xor, _bits("xor"), b, a)
    is_integer = lambda a: True
    bit_length = lambda a: int(a).bit_length()
    real = numerator = property(lambda a: a)
    imag = property(lambda a: 0)
    denominator = property(lambda a: 1)
    conjugate = lambda a: a

    def __divmod__(self, other: Any) -> tuple:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple:
        return other // self, other % self

    def __pow__(self, other: Any) -> Any:
        if isinstance(other, int) and other >= 0:
            return _integer(operator.pow, _power, self, other)
        return sym_float(self) ** other

    def __rpow__(self, other: Any) -> Any:
        return other ** int(self)

    def whole(self) -> Any:
        """The integer itself."""
        return self

    def clamped(self, low: int) -> Any:
        """max(self, low), without asking."""
        return sym_max(self, low)


def _divided(function: Callable, rule: Callable, a: Any, b: Any) -> Any:
    """A division of integers; a divisor that may be zero is asked about."""
    if isinstance(b, SymInt) and b == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    return _integer(function, rule, a, b)


class SymFloat(_Number):
    """A float computed from sizes."""

    __slots__ = ()

    def __float__(self) -> float:
        return float(self._pinned("float()"))

    def __int__(self) -> int:
        return int(float(self))

    __trunc__ = lambda a: _sym_trunc(a)
    __floor__ = lambda a: _sym_floor(a)
    __ceil__ = lambda a: _sym_ceil(a)
    __bool__ = lambda a: bool(a != 0.0)
    __add__, __radd__ = _both_ways(operator.add)
    __sub__, __rsub__ = _both_ways(operator.sub)
    __mul__, __rmul__ = _both_ways(operator.mul)
    __truediv__, __rtruediv__ = _both_ways(operator.truediv)
    __floordiv__ = lambda a, b: _float(operator.floordiv, a, b)
    __mod__ = lambda a, b: _float(operator.mod, a, b)
    __pow__, __rpow__ = _both_ways(operator.pow)
    __neg__ = lambda a: _float(operator.neg, a)
    __pos__ = lambda a: a
    __abs__ = lambda a: _float(operator.abs, a)
    __eq__, __ne__, __ge__, __gt__, __le__, __lt__ = _COMPARISONS
    __hash__ = _Number.__hash__
    real = property(lambda a: a)
    imag = property(lambda a: 0.0)
    conjugate = lambda a: a

    def whole(self) -> Any:
        """The integer part."""
        return _sym_trunc(self)

    def __round__(self, digits: int | None = None) -> Any:
        return round(float(self), digits)

    def is_integer(self) -> bool:
        """Has it no fraction?"""
        return float(self).is_integer()


class SymBool(_Number):
    """The answer to a question about sizes, asked when its truth is needed."""

    __slots__ = ()

    def __bool__(self) -> bool:
        found = self.node.raw
        if isinstance(found, Relation):
            return self.node.shape_env.ask(found, asked=self)
        return found()

    __int__ = __index__ = lambda a: int(bool(a))
    __and__ = __rand__ = lambda a, b: _combined(operator.and_, a, b)
    __or__ = __ror__ = lambda a, b: _combined(operator.or_, a, b)
    __invert__ = lambda a: sym_not(a)
    __hash__ = _Number.__hash__

    def __eq__(self, other: Any) -> Any:
        if type(other) in (bool, int) and other in (0, 1):  # the same question, or its opposite
            return self if other else sym_not(self)
        return bool(self) == other

    def __str__(self) -> str:
        return str(self.node.raw)

    __repr__ = __str__


def _combined(function: Callable, a: Any, b: Any) -> Any:
    """Both, or one of two answers, asked when its truth is needed."""
    if not isinstance(a, SymBool):
        a, b = b, a
    dominant = function is operator.or_
    if isinstance(b, SymBool):
        raws = a.node.raw, b.node.raw
        if all(isinstance(r, Relation) and r.is_of_sizes for r in raws):
            made = Combined.of("Or" if dominant else "And", raws)
            return SymBool(SymNode(made, a.node.shape_env, bool, how=(function, (a, b))))
        b = bool(b)
    elif not isinstance(b, bool):
        return NotImplemented
    return b if b is dominant else a


def read_number(env: ShapeEnv, kind: str) -> Any:
    """A number that only the data decides, of a kind of dtype; None of complex ones."""
    if kind in "iu":
        return env.unbacked(size_like=False)
    if kind == "b":
        number = env.unbacked(size_like=False)
        env.assume_range(number.node.raw.symbol, 0, 1)
        return SymBool(SymNode(number.node.raw, env, bool, how=(operator.eq, (number, 1))))
    if kind == "c":
        return None
    name = f"zuf{sum(name.startswith('zuf') for name in env.symbols)}"
    env.float_symbol(name)
    return SymFloat(float_number(env, name, None))


def float_number(env: ShapeEnv, name: str, hint: float | None) -> SymNode:
    """What a float is that a symbol stands for."""
    return SymNode(ex.symbol(name), env, float, hint)


numbers.Integral.register(SymInt)
numbers.Real.register(SymFloat)


# Functions ----------------------------------------------------------------------------------------


def sym_max(a: Any, b: Any) -> Any:
    """The larger of two numbers, without asking which one that is."""
    return _extreme(sym_max, ex.maximum, max, a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller of two numbers, without asking which one that is."""
    return _extreme(sym_min, ex.minimum, min, a, b)


def _extreme(function: Callable, rule: Callable, plain: Callable, a: Any, b: Any) -> Any:
    if not (isinstance(a, _Number) or isinstance(b, _Number)):
        return plain(a, b) if type(a) is type(b) else float(plain(a, b))
    x, y = _expr(a), _expr(b)
    if not (isinstance(x, Expr) and isinstance(y, Expr)):
        return _float(function, *[sym_float(v) if isinstance(v, SymInt) else v for v in (a, b)])
    env = _env(a, b)
    larger = env.static(Relation(">=", x, y))
    if larger is None and env.static(Relation("<=", x, y)):
        larger = False
    if larger is not None:
        return a if larger is (plain is max) else b
    return _told(env, SymInt.of(env, rule(x, y), None, (function, (a, b))))


def sym_int(a: Any) -> Any:
    """A number as an integer, cut towards zero."""
    return _sym_trunc(a) if isinstance(a, SymFloat) else a if isinstance(a, SymInt) else int(a)


def sym_float(a: Any) -> Any:
    """A number as a float."""
    if isinstance(a, SymFloat):
        return a
    return _float(sym_float, a) if isinstance(a, SymInt) else float(a)


def sym_not(a: Any) -> Any:
    """The opposite answer."""
    if isinstance(a, SymBool) and isinstance(a.node.raw, Relation):
        node = a.node
        return SymBool(SymNode(node.raw.opposite(), node.shape_env, bool, how=(sym_not, (a,))))
    return not a


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """t if b else f, without asking which one that is where both are integers."""
    if isinstance(b, SymBool) and isinstance(b.node.raw, Relation) and b.node.raw.is_of_sizes:
        env, x, y = b.node.shape_env, _expr(t), _expr(f)
        if isinstance(x, Expr) and isinstance(y, Expr) and env.static(b.node.raw) is None:
            made = b.node.raw.choice(x, y)
            return _told(env, SymInt.of(env, made, None, (sym_ite, (b, t, f))))
    return t if b else f


def _unary(name: str) -> Callable:
    """A function of `math` for numbers that are not known yet."""
    plain = getattr(math, name)

    def function(a: Any) -> Any:
        return _float(function, a) if isinstance(a, _Number) else plain(a)

    function.__name__ = function.__qualname__ = f"_sym_{name}"
    function.__doc__ = plain.__doc__
    return function


_sym_sqrt, _sym_log2, _sym_sin, _sym_cos, _sym_tan = map(
    _unary, ("sqrt", "log2", "sin", "cos", "tan"))
_sym_sinh, _sym_cosh, _sym_tanh = map(_unary, ("sinh", "cosh", "tanh"))
_sym_asin, _sym_acos, _sym_atan = map(_unary, ("asin", "acos", "atan"))
sym_sqrt = _sym_sqrt


def sym_sum(args: Any) -> Any:
    """The sum of several numbers."""
    return sum(args)


def _scaled(env: ShapeEnv, e: Expr, factor: Any) -> Expr | None:
    """A size times a float, rounded down, where floats are exact: 2.0, or 0.5 and the like."""
    if not isinstance(factor, float) or factor <= 0 or env.bounds(e)[0] < 0:
        return None
    if factor.is_integer():
        return e.times(int(factor))
    mantissa, _ = math.frexp(factor)
    return ex.floordiv(e, const(int(1 / factor))) if mantissa == 0.5 and factor < 1 else None


def _rounded(function: Callable, name: str) -> Callable:
    def rounded(a: Any) -> Any:
        """An integer near a float that is a quotient of sizes, as an expression; else asked."""
        e = a.node.raw
        if e.function is sym_float and isinstance(e.args[0], Expr):
            return SymInt.of(a.node.shape_env, e.args[0], None, (function, (a,)))
        if e.function is operator.mul and isinstance(e.args[0], Expr):
            exact = _scaled(a.node.shape_env, *e.args)
            if exact is not None and (name != "ceil" or e.args[1] >= 1):
                return SymInt.of(a.node.shape_env, exact, None, (function, (a,)))
        if e.function is operator.truediv and all(isinstance(x, (int, Expr)) for x in e.args):
            x, y = (const(p) if isinstance(p, int) else p for p in e.args)
            env = a.node.shape_env
            if env.bounds(y)[0] > 0 and (name != "trunc" or env.bounds(x)[0] >= 0):
                q = -ex.floordiv(-x, y) if name == "ceil" else ex.floordiv(x, y)
                return SymInt.of(env, q, None, (function, (a,)))
        return function(float(a))

    return rounded


_sym_floor = _rounded(math.floor, "floor")
_sym_ceil = _rounded(math.ceil, "ceil")
_sym_trunc = _rounded(math.trunc, "trunc")


def sym_fresh_size(size: Any) -> Any:
    """The size itself."""
    return size if isinstance(size, SymInt) else int(size)
