"""Questions about symbolic numbers, and facts that a user states: `guard_or_false`, `_check`.

A question may take a guard (`guard_int`), must not (`statically_known_true`), or has an answer for
what only the data knows (`guard_or_true`).  `_check` and its relatives state what holds: of numbers
that depend on data this is a fact from then on, of others a guard.  Read next: `env.py`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from .. import errors
from ..array import dtype as dt
from ..core.handle import Tensor
from .env import Relation, ShapeEnv
from .expr import Expr, symbol
from .number import SymBool, SymFloat, SymInt, _Number

# Answers ------------------------------------------------------------------------------------------


def guard_int(a: Any) -> int:
    """The number itself; what is captured is for this one only."""
    return int(a)


def guard_float(a: Any) -> float:
    """The number itself; what is captured is for this one only."""
    return float(a)


def guard_bool(a: Any) -> bool:
    """The answer; what is captured is for this one only."""
    return bool(a)


def guard_scalar(a: Any) -> Any:
    """The number or the answer itself."""
    return a.node.pytype(a) if isinstance(a, _Number) else a


def question(a: Any) -> tuple[ShapeEnv, Relation] | None:
    """What a SymBool asks, and whom."""
    if isinstance(a, SymBool) and isinstance(a.node.raw, Relation):
        return a.node.shape_env, a.node.raw
    return None


def _by_data(env: ShapeEnv, relation: Relation) -> bool:
    return None in (env.hint(relation.left), env.hint(relation.right))


def statically_known_true(a: Any) -> bool:
    """Is it so for all sizes?  Never guards."""
    found = question(a)
    if found is not None:
        return found[0].static(found[1]) is True
    return bool(a) if not isinstance(a, _Number) else False


def statically_known_false(a: Any) -> bool:
    """Is it wrong for all sizes?  Never guards."""
    found = question(a)
    if found is not None:
        return found[0].static(found[1]) is False
    return not a if not isinstance(a, _Number) else False


def guard_or(a: Any, otherwise: bool) -> bool:
    """The answer if there is one without looking at data, else `otherwise`."""
    found = question(a)
    if found is None:
        return bool(a)
    env, relation = found
    known = env.static(relation)
    if known is None and _by_data(env, relation):
        return otherwise
    return env.ask(relation) if known is None else known


def guard_or_false(a: Any) -> bool:
    """The answer; False where only the data knows it."""
    return guard_or(a, False)


def guard_or_true(a: Any) -> bool:
    """The answer; True where only the data knows it."""
    return guard_or(a, True)


def guard_size_oblivious(a: Any) -> bool:
    """The answer, where sizes that depend on data are taken to be neither 0 nor 1."""
    found = question(a)
    if found is not None and _by_data(*found):
        known = found[0].static(found[1], found[0]._oblivious)
        if known is not None:
            return known
    return bool(a)


def sym_and(first: Any, *others: Any) -> Any:
    """Are all of them true?"""
    return functools.reduce(operator.and_, others, first)


def sym_or(first: Any, *others: Any) -> Any:
    """Is one of them true?"""
    return functools.reduce(operator.or_, others, first)


def sym_eq(a: Any, b: Any) -> Any:
    """Are two numbers equal, or all pairs in two lists?"""
    if not isinstance(a, (tuple, list)):
        return a == b
    return len(a) == len(b) and sym_and(True, *map(sym_eq, a, b))


def expect_true(a: Any, skip: int = 0) -> bool:
    """The answer; where only the data knows it, it is taken to be true from then on."""
    found = question(a)
    if found is not None and _by_data(*found):
        return found[0].assume(found[1])
    return bool(a)


# What numbers are ---------------------------------------------------------------------------------


def free_symbols(a: Any) -> set:
    """The symbols in numbers, in shapes and strides of tensors, in lists of these."""
    if a is None or isinstance(a, (bool, int, float, complex, str)) and not isinstance(a, _Number):
        return set()
    if isinstance(a, Tensor):
        return free_symbols([*a.shape, *a.stride()])
    if isinstance(a, (list, tuple)):
        return set().union(*map(free_symbols, a))
    raw = a.node.expr if isinstance(a, _Number) else a
    return {symbol(name) for name in raw.symbols()}


def has_free_symbols(a: Any) -> bool:
    """Is anything in it not known yet?"""
    return bool(free_symbols(a))


def free_unbacked_symbols(a: Any) -> set:
    """Those that only the data decides."""
    return {s for s in free_symbols(a) if s.symbol.startswith(("u", "zuf"))}


def has_free_unbacked_symbols(a: Any) -> bool:
    """Does anything in it depend on data?"""
    return bool(free_unbacked_symbols(a))


def _concrete(plain: type, kind: type) -> Callable[[Any], bool]:
    def is_concrete(a: Any) -> bool:
        """Is it a number, or a symbolic one that is known by now?"""
        if isinstance(a, kind):
            return not has_free_symbols(a)
        return isinstance(a, plain)

    is_concrete.__name__ = is_concrete.__qualname__ = f"is_concrete_{plain.__name__}"
    return is_concrete


is_concrete_int = _concrete(int, SymInt)
is_concrete_float = _concrete(float, SymFloat)
is_concrete_bool = _concrete(bool, SymBool)


def is_nested_int(a: Any) -> bool:
    """Is it the size of a dim of a nested tensor whose parts differ in it?"""
    return getattr(a, "is_ragged", False)


def is_symbolic(a: Any) -> bool:
    """Is it a symbolic number?"""
    return isinstance(a, _Number)


def check_consistent(new: Any, old: Any) -> None:
    """Refuse numbers that differ, and tensors with other shapes."""
    if isinstance(new, Tensor):
        _check(new.dim() == old.dim())
        for a, b in zip(new.shape, old.shape):
            _check(a == b)
    elif not isinstance(new, SymBool) and type(new) is not bool:
        _check(new == old)


# Facts --------------------------------------------------------------------------------------------


def _check_with(error_type: type[Exception], cond: Any, message: Any = None) -> None:
    """Refuse unless a condition holds; of sizes it is a fact from then on."""
    if not isinstance(cond, (bool, SymBool)):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    found = question(cond)
    if found is not None and _by_data(*found):
        env, relation = found
        known = env.static(relation)
        holds = env.assume(relation)
        if known is None:
            env.promise(cond)
    else:
        holds = bool(cond)
    if holds:
        return
    if message is not None and not callable(message):
        raise TypeError("message must be a callable")
    raise error_type("Expected cond to be True, but got False." if message is None
                     else str(message()))


def _checker(error_type: type[Exception], name: str) -> Callable:
    def check(cond: Any, message: Any = None) -> None:
        _check_with(error_type, cond, message)

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Raise a {error_type.__name__} unless a condition holds."
    return check


_check = _checker(RuntimeError, "_check")
_check_index = _checker(IndexError, "_check_index")
_check_value = _checker(ValueError, "_check_value")
_check_type = _checker(TypeError, "_check_type")
_check_not_implemented = _checker(NotImplementedError, "_check_not_implemented")


def _check_tensor_all(cond: Any, message: Any = None) -> None:
    """Raise a RuntimeError unless all elements of a tensor are true."""
    if not isinstance(cond, Tensor) or cond.dtype is not dt.bool_:
        raise TypeError(f"cond must be a tensor of booleans, but got {type(cond)}")
    _check(bool(cond.all()), message)


def _check_is_size(i: Any, message: Any = None, *, max: int | None = None) -> None:
    """The number is a size, so that it is not negative."""
    _check(i >= 0, message)
    if isinstance(i, SymInt) and i.hint is None and i.node.expr.symbol:
        i.node.shape_env.symbols[i.node.expr.symbol].size_like = True
    if max is not None:
        _check(i <= max, message)


def sym_constrain_range(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Refuse a number outside of a range; of one that depends on data this is a fact."""
    if isinstance(size, SymInt):
        if min is not None:
            _check(size >= min)
        if max is not None:
            _check(size <= max)
    elif min is not None and size < min or max is not None and size > max:
        raise errors.RefusedValue(f"Invalid value range for {size} between [{min}, {max}]. "
                                  f"({errors.user_line(2)})")


def sym_constrain_range_for_size(
    size: Any, *, min: int | None = None, max: int | None = None
) -> None:
    """Refuse a size outside of a range."""
    if isinstance(size, SymInt):
        _check_is_size(size)
    sym_constrain_range(size, min=0 if min is None else min, max=max)


def _constrain_range_for_size(
    a: Any, min: int | None = None, max: int | None = None
) -> None:
    """Between which bounds a size lies that only the data decides."""
    if min is not None and max is not None and max < min:
        raise errors.BadValue(
            f"the greatest size cannot be less than the least: min={min} and max={max} "
            f"({errors.user_line(2)})")
    sym_constrain_range_for_size(a, min=min, max=max)


_constrain_as_size = _constrain_range_for_size


def size_hint(a: Any, fallback: int | None = None) -> Any:
    """The example's number; `fallback` for what only the data knows."""
    if isinstance(a, _Number):
        return a.node.require_hint(fallback)
    return a.number if isinstance(a, Expr) else a
