"""Symbolic sizes: expressions against Python's integers, what is known, guards with reasons."""

import itertools
import math
import random

import pytest

from pullback import errors
from pullback.symbolic import Relation, ShapeEnv, Source
from pullback.symbolic.expr import (
    FUNCTIONS,
    bounds,
    const,
    floordiv,
    maximum,
    minimum,
    remainder,
    source,
    symbol,
)
from pullback.symbolic.number import (
    SymBool,
    SymFloat,
    SymInt,
    sym_float,
    sym_int,
    sym_max,
    sym_min,
    sym_not,
)
from pullback.symbolic.queries import (
    _check,
    _constrain_as_size,
    guard_or_false,
    statically_known_true,
)

NAMES = ("s0", "s1", "s2")
OPERATIONS = {
    "+": (lambda a, b: a + b, lambda a, b: a + b),
    "-": (lambda a, b: a - b, lambda a, b: a - b),
    "*": (lambda a, b: a * b, lambda a, b: a * b),
    "//": (floordiv, lambda a, b: a // b),
    "%": (remainder, lambda a, b: a % b),
    "max": (maximum, max),
    "min": (minimum, min),
}


def grown(rng, depth):
    """A random expression, and the same as a function of the values of its symbols."""
    if depth == 0:
        k = rng.randrange(4)
        if k < 3:
            return symbol(NAMES[k]), lambda v: v[k]
        n = rng.randint(-3, 5)
        return const(n), lambda v: n
    (a, f), (b, g) = grown(rng, depth - 1), grown(rng, depth - 1)
    build, run = OPERATIONS[rng.choice(list(OPERATIONS))]
    try:
        return build(a, b), lambda v: run(f(v), g(v))
    except ZeroDivisionError:
        return a, f


@pytest.mark.parametrize("seed", range(4))
def test_expressions_compute_what_python_computes(seed):
    rng, compared = random.Random(seed), 0
    for _ in range(300):
        e, function = grown(rng, 3)
        for v in ((2, 3, 5), (7, 4, 9), (8, 2, 3)):
            try:
                want = function(v)
            except ZeroDivisionError:
                continue
            values = dict(zip(NAMES, v))
            assert e.value(values.__getitem__) == want, (e, v)
            assert eval(source(e), FUNCTIONS | values) == want
            low, high = bounds(e, lambda name: (2, 9))
            assert low <= want <= high, (e, v)
            compared += 1
    assert compared > 500


def test_normal_forms():
    s, t, u = map(symbol, NAMES)
    assert (s + t) * (s - t) == s * s - t * t
    assert floordiv(const(4) * s + const(6), const(4)) == s + const(1) + floordiv(
        const(2), const(4))
    assert floordiv(s * t + s, t + const(1)) == s
    assert floordiv(floordiv(s, const(2)), const(3)) == floordiv(s, const(6))
    assert remainder(const(6) * s + const(3), const(3)).number == 0
    assert maximum(s, s + const(2)) == s + const(2)
    assert str(floordiv(const(2) * s * t, const(4) * u)) == "((s0*s1)//(2*s2))"
    assert str(const(4) - s) == "4 - s0" and str(s - const(1)) == "s0 - 1"
    assert str(remainder(s, const(2))) == "Mod(s0, 2)"
    assert (s * t).replaced({"s0": t + const(1)}) == t * t + t


def env_of(*hints):
    env = ShapeEnv()
    return env, [env.size(n, Source(f"input0.size()[{d}]", 0, d)) for d, n in enumerate(hints)]


def test_symbols_have_pytorchs_names_and_equal_sizes_share_one():
    env, (a, b, c, d, e) = env_of(4, 8, 4, 1, 0)
    assert (str(a), str(b), str(c)) == ("s75", "s96", "s75")
    assert (d, e) == (1, 0) and type(d) is int
    assert str(env.var_to_range) == "{s75: VR[2, int_oo], s96: VR[2, int_oo]}"


def test_integers_in_python():
    _, (a, b) = env_of(4, 6)
    assert str(a * b + 1) == "s75*s96 + 1" and str(2 - a) == "2 - s75"
    assert str(a // 2) == "(s75//2)" and str(a % 3) == "Mod(s75, 3)" and str(a**2) == "s75**2"
    assert math.prod((a, b, 2)).hint == 48
    assert math.ceil(b / 4).hint == 2 and math.floor(b / 4).hint == 1
    assert a - a == 0 and type(a - a) is int
    assert isinstance(a / 2, SymFloat) and (a / 2).hint == 2.0
    assert str(sym_max(a, b)) == "Max(s75, s96)" and sym_min(a, 1) == 1
    assert isinstance(a > 5, SymBool) and (a >= 2) is True and (a == -1) is False
    assert isinstance(sym_float(a), SymFloat) and isinstance(sym_int(sym_float(a)), SymInt)
    assert str(sym_not(a > 5)) == "s75 <= 5"
    with pytest.raises(TypeError, match="unhashable"):
        hash(a)


def test_what_follows_is_no_guard():
    env, (a, b) = env_of(4, 6)
    assert a > 1 and a * b >= 4 and a * b - a >= 2 and a + b != 3 and a != 0
    assert (a, b) == (a, b) and bool(a * 4 % 2 == 0)
    assert env.guards == []
    assert a + b > 5 and a < b
    assert [str(g) for g in env.guards] == ["s75 + s96 > 5", "s75 < s96"]
    assert a + b > 4 and b > a and b - a >= 1 and not b <= a
    assert len(env.guards) == 2
    assert a <= 8 and a != 8 and env.symbols["s75"].range == (2, 7)


def test_a_number_that_is_needed_is_specialised_with_the_line():
    env, (a, b) = env_of(4, 6)
    assert list(range(a)) == [0, 1, 2, 3]
    (guard,) = env.guards
    assert str(guard) == "Eq(s75, 4)" and guard.where.startswith("test_expressions.py:")
    assert "needs the number itself" in guard.reason
    assert a == 4 and a * 2 == 8 and str(a * b) == "4*s96"
    assert len(env.guards) == 1
    assert [0] * (b // 2) == [0] * 3 and str(b - 2 * (b // 2)) == "s96 - 6"


def test_equal_sizes_become_one():
    env, (a, b) = env_of(4, 8)
    assert 2 * a == b
    assert str(b + 1) in ("2*s75 + 1", "s96 + 1") and b - a == a
    assert env.format_guards() == " - Eq(2*s75, s96)"


def test_the_checker_says_why():
    env, (a, b) = env_of(4, 6)
    assert a < b
    check = env.checker([(a, b), (a, 3)], ["x", "y"])
    assert check.bind([(4, 6), (4, 3)]) == {"s75": 4, "s96": 6}
    assert check.bind([(5, 9), (5, 3)]) == {"s75": 5, "s96": 9}
    for shapes, words in (
        ([(5, 9), (5,)], "y has 1 dims, the program is for 2"),
        ([(5, 9), (4, 3)], "y.size(0) is 4, the program is for 5, the same as x.size(0)"),
        ([(5, 9), (5, 2)], "y.size(1) is 2, the program is for 3"),
        ([(1, 9), (1, 3)], "x.size(0) is 1, the program is for at least 2 (0 and 1"),
        ([(5, 4), (5, 3)], "s75 < s96 does not hold for s75 = x.size(0) = 5"),
    ):
        assert words in check.bind(shapes)


def test_every_guard_holds_exactly_where_the_checker_says_so():
    env, (a, b) = env_of(6, 4)
    assert a % 2 == 0 and a > b and (a * b) // 3 == 8
    check = env.checker([(a, b)])
    for m, n in itertools.product(range(2, 12), repeat=2):
        fits = m % 2 == 0 and m > n and m * n // 3 == 8
        assert isinstance(check.bind([(m, n)]), dict) == fits, (m, n)


def test_sizes_that_depend_on_data():
    env = ShapeEnv()
    u, v = env.unbacked(), env.unbacked(size_like=False)
    assert u >= 0 and str(u + v) == "u0 + u1"
    with pytest.raises(errors.GuardOnDataDependentSymNode, match="u0 > 3") as error:
        bool(u > 3)
    assert "torch._check" in str(error.value) and "test_expressions.py" in str(error.value)
    assert not guard_or_false(u > 3) and not statically_known_true(u > 3)
    _check(u > 3)
    assert u > 3 and u != 3 and statically_known_true(u >= 4)
    with pytest.raises(errors.GuardOnDataDependentSymNode):
        int(u)
    with pytest.raises(RuntimeError, match="Expected cond to be True"):
        _check(u < 2)
    with pytest.raises(RuntimeError, match="my words"):
        _check(3 > 4, lambda: "my words")


def test_floats_of_sizes_are_guarded_too():
    env, (a,) = env_of(6)
    half = a / 4
    assert half > 1.2 and half > 1.2
    assert [str(g) for g in env.guards] == ["IntTrueDiv(s75, 4) > 1.2"]
    check = env.checker([(a,)], ["x"])
    assert isinstance(check.bind([(5,)]), dict) and isinstance(check.bind([(4,)]), str)


def test_relations_are_answered_by_bounds():
    env, (a, b) = env_of(4, 6)
    s, t = a.node.raw, b.node.raw
    assert env.static(Relation(">=", s * t, s + t)) is True
    assert env.static(Relation(">=", s * t, s + t + const(1))) is None
    assert env.static(Relation(">=", s * t, const(4))) is True
    assert env.static(Relation("==", s * const(2), const(7))) is False


def test_bounds_of_sizes_in_order():
    with pytest.raises(ValueError, match="min=20 and max=2"):
        _constrain_as_size(3, min=20, max=2)


LONG = {
    "nested": lambda n: (n + 3) // 2,
    "remainders": lambda n: (n * 3 + 1) % 1000 + 5,
    "largest": lambda n: sym_max(n - 1, n // 2) + 2,
    "floats": lambda n: n * 0.75 + 2.5,
    "repeated": lambda n: n + n // 2 - n % 7,
}


@pytest.mark.parametrize("name", LONG)
def test_what_is_computed_in_thousands_of_steps_is_a_number(name):
    env, (a,) = env_of(9)
    n, exact = a, 9
    for _ in range(2_000):
        n = LONG[name](n)
        exact = LONG[name](exact)
        if exact > 10**9:
            n, exact = n % 1000 + 2, exact % 1000 + 2
    assert n == exact and not isinstance(n, (SymInt, SymFloat))
    assert 1 <= len(env.guards) < 4 and "steps from one another" in env.guards[0].reason
    check = env.checker([(a,)], ["x"])
    assert isinstance(check.bind([(9,)]), dict)
    assert "does not hold" in check.bind([(901,)]) or name == "nested"


def test_numbers_of_data_in_thousands_of_steps_are_refused():
    n = ShapeEnv().unbacked()
    with pytest.raises(errors.GuardOnDataDependentSymNode):
        for _ in range(5_000):
            n = (n + 3) // 2


def test_fifty_steps_stay_symbolic():
    env, (a,) = env_of(9)
    n = a
    for _ in range(50):
        n = (n + 3) // 2
    assert isinstance(n, SymInt) and not env.guards
    check = env.checker([(a,), (n,)], ["x", "y"])
    assert isinstance(check.bind([(700,), (3,)]), dict)
