"""Guards as texts over inputs, and questions about sizes: recorded from PyTorch 2.13."""

import math
import re

import pytest

import pullback as torch
from pullback import errors
from pullback.fx.fake_mode import FakeTensorMode
from pullback.symbolic import ShapeEnv
from pullback.symbolic import queries as ask
from pullback.symbolic.guards import (
    ConstantSource,
    DimDynamic,
    LocalSource,
    StatelessSymbolicContext,
)


def fakes(*shapes):
    """An environment and fakes of these shapes, called x, y and z."""
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env)
    made = [mode.from_tensor(torch.zeros(*s), source=ConstantSource(n))
            for s, n in zip(shapes, "xyz")]
    return env, made


def texts(program, *shapes):
    env, made = fakes(*shapes)
    program(*made)
    found = env.produce_guards(made, "xyz"[:len(made)])
    assert env.produce_guards(made, list(map(ConstantSource, "xyz"[:len(made)]))) == [
        re.sub(r"L\['(\w)'\]", r"\1", text) for text in found]  # whose names are as they stand
    return env, [re.sub(r"L\['(\w)'\]", r"\1", text) for text in found]


LYING = "x.stride()[0] == x.size()[1]"
LOW, ALSO = "2 <= x.size()[0]", "2 <= x.size()[1]"


@pytest.mark.parametrize(("program", "guards", "says"), [
    (lambda m, n: m * n % 4 == 0, "Eq(Mod(s44*s93, 4), 0)",
     [LYING, "((x.size()[1]*x.size()[0]) % 4) == 0", LOW, ALSO]),
    (lambda m, n: m // 2 > 1, "(s93//2) > 1", [LYING, "4 <= x.size()[0]", ALSO]),
    (lambda m, n: m < 10, "s93 < 10", [LYING, "2 <= x.size()[0] and x.size()[0] <= 9", ALSO]),
    (lambda m, n: m + n == 7, "Eq(s44 + s93, 7)",
     ["x.size()[0] == 7 + ((-1)*x.size()[1])", LYING, "2 <= x.size()[1] and x.size()[1] <= 5"]),
    (lambda m, n: m > n, "s93 > s44",
     [LYING, "x.size()[0] > x.size()[1]", "3 <= x.size()[0]", ALSO]),
    (lambda m, n: m != 5, "Ne(s93, 5)", [LYING, "x.size()[0] != 5", LOW, ALSO]),
    (lambda m, n: 2 * m - 1 > n, "2*s93 - 1 > s44",
     [LYING, "(-1) + 2*x.size()[0] > x.size()[1]", LOW, ALSO]),
    (lambda m, n: torch.sym_max(m, 5) > 4, "", [LYING, LOW, ALSO]),
    (lambda m, n: torch.sym_min(m, n) > 2, "Min(s44, s93) > 2",
     [LYING, "min(x.size()[1], x.size()[0]) > 2", LOW, ALSO]),
    (lambda m, n: m / 2 == 2.0, "Eq(IntTrueDiv(s93, 2), 2.0)",
     [LYING, "(x.size()[0] / 2) == 2.0", LOW, ALSO]),
    (lambda m, n: m**0.5 == 2.0, "Eq(FloatPow(ToFloat(s93), 0.5), 2.0)",
     [LYING, "torch.sym_float(x.size()[0]) ** 0.5 == 2.0", LOW, ALSO]),
    (lambda m, n: m == n + 1, "Eq(s93, s44 + 1)",
     ["x.size()[0] == 1 + x.size()[1]", LYING, ALSO]),
    (lambda m, n: m**2 > 3 * n, "s93**2 > 3*s44",
     [LYING, "x.size()[0]*x.size()[0] > 3*x.size()[1]", LOW, ALSO]),
    (lambda m, n: -m < 3 - n * 2, "-s93 < 3 - 2*s44",
     [LYING, "(-1)*x.size()[0] < 3 + ((-2)*x.size()[1])", LOW, ALSO]),
    (lambda m, n: m // 2 * 2 == m, "Eq(2*(s93//2), s93)",
     [LYING, "(2*(x.size()[0] // 2)) == x.size()[0]", LOW, ALSO]),
    (lambda m, n: int(m), "Eq(s93, 4)", [LYING, ALSO]),
])
def test_texts(program, guards, says):
    env, found = texts(lambda x: bool(program(*x.shape)), (4, 3))
    assert found == says
    assert env.format_guards() == (f" - {guards}" if guards else "")


def test_several_inputs():
    _, found = texts(lambda x, y: bool(x.shape[1] < y.shape[1]), (4, 3), (4, 5))
    assert found == [
        LYING, "y.size()[0] == x.size()[0]", "y.stride()[0] == y.size()[1]",
        "x.size()[1] < y.size()[1]", LOW, ALSO, "3 <= y.size()[1]"]
    assert texts(lambda x: None, (1, 3))[1] == [LYING, ALSO]
    assert texts(lambda x: x.expand(2, 4, 3), (4, 3))[1] == []
    assert texts(lambda x: torch.nn.functional.max_pool2d(x, 2), (1, 4, 6))[0].guards == []


def test_one_text_for_all():
    env, (x, y) = fakes((4, 3), (4, 5))
    assert x.shape[0] > 3 and y.shape[1] % 5 == 0 and int(x.shape[1]) == 3
    code = env.produce_guards_expression([x, y])
    assert code == (
        "L['t1'].size()[0] == L['t0'].size()[0] and L['t1'].stride()[0] == L['t1'].size()[1] and "
        "(L['t1'].size()[1] % 5) == 0 and 4 <= L['t0'].size()[0] and 2 <= L['t1'].size()[1]")
    whole = env.produce_guards_expression([x, y], ignore_static=False)
    assert whole.startswith("L['t0'].size()[1] == 3 and L['t0'].stride()[0] == 3 and ")
    assert "L['t0'].storage_offset() == 0" in whole
    for shapes, holds in [
        (((4, 3), (4, 5)), True), (((6, 3), (6, 5)), True), (((6, 4), (6, 5)), True),
        (((2, 3), (2, 5)), False), (((6, 3), (7, 5)), False), (((6, 3), (6, 6)), False),
    ]:
        args = [torch.zeros(*s) for s in shapes]
        assert env.evaluate_guards_for_args([x, y], args) == holds
        assert env.evaluate_guards_expression(code, args) == holds
    assert not env.evaluate_guards_for_args(
        [x, y], [torch.zeros(6, 4), torch.zeros(6, 5)], ignore_static=False)
    bound = env.bind_symbols([x, y], [torch.zeros(6, 3), torch.zeros(6, 5)])
    assert {str(s): n for s, n in bound.items()} == {"s93": 6, "s54": 5}
    assert str(env.get_nontrivial_guards()) == "[Eq(Mod(s54, 5), 0)]"
    assert env.produce_guards_verbose([x, y], "xy") == [env.produce_guards([x, y], "xy")]


def test_numbers_among_inputs():
    env = ShapeEnv()
    n = env.create_symintnode(env.create_symbol(5, ConstantSource("n")), hint=5)
    assert n > 3 and env.produce_guards([n], ["n"]) == ["4 <= L['n']"]
    assert env.replacements == {} and n.node.expr not in env.replacements


def test_simplified_texts():
    """Expected texts are PyTorch's."""
    env, (x, y) = fakes((16, 12), (16, 24))
    assert x.shape[0] < 20 and x.shape[1] < x.shape[0] and torch.cat([x, x], 1) + y is not None
    assert env.produce_guards([x, y], "xy", _simplified=True) == [
        "L['x'].size()[1] < L['x'].size()[0]",
        "3 <= L['x'].size()[0] and L['x'].size()[0] <= 19", "L['x'].size()[1] <= 18"]
    assert y.shape[1].node.raw in env.replacements
    assert env.replacements[y.shape[1].node.raw] == x.shape[1].node.raw.times(2)
    with pytest.raises(KeyError):
        env.replacements[x.shape[0].node.raw]


def test_contexts_and_sources():
    assert str(LocalSource("x")) == "L['x']"
    env = ShapeEnv()
    x = FakeTensorMode(shape_env=env).from_tensor(
        torch.zeros(4, 5), source=LocalSource("x"),
        symbolic_context=StatelessSymbolicContext([DimDynamic.DYNAMIC, DimDynamic.STATIC]))
    assert str(x.shape) == "torch.Size([s77, 5])"


def test_questions():
    env, (x,) = fakes((4, 3))
    s = x.shape[0]
    assert ask.statically_known_true(s > 1) and not ask.statically_known_true(s > 3)
    assert ask.statically_known_false(s < 1) and not ask.statically_known_false(s > 3)
    assert not env.guards
    assert ask.guard_or_true(s > 3) and not ask.guard_or_false(s > 4)
    assert ask.guard_size_oblivious(s == 4)
    assert env.format_guards() == " - s93 > 3\n - s93 <= 4"
    assert str(env.var_to_range) == "{s93: VR[4, 4], s44: VR[2, int_oo]}"

    u = env.create_unbacked_symint()
    assert ask.guard_or_true(u > 3) and not ask.guard_or_false(u > 3)
    assert not ask.statically_known_true(u > 3)
    with pytest.raises(errors.GuardOnDataDependentSymNode, match=r"Eq\(u0, 0\)"):
        ask.guard_size_oblivious(u == 0)
    with pytest.raises(errors.GuardOnDataDependentSymNode,
                       match="Could not extract specialized integer from data-dependent "
                       "expression u0"):
        int(u)
    torch._check_is_size(u)
    assert not ask.guard_size_oblivious(u == 0) and not ask.guard_size_oblivious(u == 1)
    assert str(env.create_unbacked_symbool()) == "Eq(u1, 1)"
    assert str(env.create_unbacked_symfloat() > 1.0) == "zuf0 > 1.0"


def test_checks():
    env, (x,) = fakes((4, 3))
    s, u = x.shape[0], env.create_unbacked_symint()
    torch._check(u > 3)
    assert u > 3 and u > 2 and str(env.var_to_range[u.node.expr]) == "VR[4, int_oo]"
    torch._check(s > 3)
    for check, error in [
        (torch._check, RuntimeError), (torch._check_value, ValueError),
        (torch._check_index, IndexError), (torch._check_type, TypeError),
        (torch._check_not_implemented, NotImplementedError),
    ]:
        check(True)
        with pytest.raises(error, match="Expected cond to be True, but got False"):
            check(s > 30)
        with pytest.raises(error, match="too small"):
            check(s > 30, lambda: "too small")
    with pytest.raises(ValueError, match="mine"):
        torch._check_with(ValueError, False, lambda: "mine")
    with pytest.raises(RuntimeError, match="Expected cond"):
        torch._check(u < 2)
    with pytest.raises(TypeError, match="cond must be a bool, but got <class 'int'>"):
        torch._check(5)
    with pytest.raises(TypeError, match="message must be a callable"):
        torch._check(False, "text")
    torch._check_tensor_all(torch.ones(3, dtype=torch.bool))
    with pytest.raises(RuntimeError, match="no"):
        torch._check_tensor_all(torch.tensor([True, False]), lambda: "no")


@pytest.mark.parametrize(("expression", "kind", "says"), [
    ("torch.sym_max(s, t)", "SymInt", "Max(s44, s93)"),
    ("torch.sym_min(s, 3)", "SymInt", "Min(3, s93)"),
    ("torch.sym_max(s, 2.5)", "SymFloat", "Max(ToFloat(s93), 2.5)"),
    ("torch.sym_max(3, 4.0)", "float", "4.0"),
    ("torch.sym_not(s > 3)", "SymBool", "s93 <= 3"),
    ("torch.sym_not(True)", "bool", "False"),
    ("torch.sym_ite(True, 1, 2)", "int", "1"),
    ("torch.sym_int(2.7)", "int", "2"),
    ("torch.sym_int(s / 2)", "SymInt", "(s93//2)"),
    ("torch.sym_float(s)", "SymFloat", "ToFloat(s93)"),
    ("torch.sym_sum([s, t, 1])", "SymInt", "s44 + s93 + 1"),
    ("torch.sym_sum([])", "int", "0"),
    ("torch._sym_sqrt(s)", "SymFloat", "OpaqueUnaryFn_sqrt(ToFloat(s93))"),
    ("torch._sym_log2(s)", "SymFloat", "OpaqueUnaryFn_log2(ToFloat(s93))"),
    ("s / t", "SymFloat", "IntTrueDiv(s93, s44)"),
    ("s ** 0.5", "SymFloat", "FloatPow(ToFloat(s93), 0.5)"),
    ("ask.free_symbols(s * t)", "set", None),
    ("ask.has_free_symbols(s)", "bool", "True"),
    ("ask.has_free_symbols((3, 2.0, None))", "bool", "False"),
    ("ask.has_free_unbacked_symbols(s)", "bool", "False"),
    ("ask.is_concrete_int(s)", "bool", "False"),
    ("ask.is_concrete_int(3)", "bool", "True"),
    ("ask.is_nested_int(s)", "bool", "False"),
    ("ask.guard_scalar(s)", "int", "4"),
    ("ask.guard_float(s / 2)", "float", "2.0"),
    ("ask.sym_eq((s, t), (s, t))", "bool", "True"),
    ("ask.sym_and(s > 3, t > 2)", "SymBool", "(s44 > 2) & (s93 > 3)"),
    ("ask.sym_or(s > 30, t > 2)", "SymBool", "(s44 > 2) | (s93 > 30)"),
    ("(s > 3) & True", "SymBool", "s93 > 3"),
    ("True | (s > 3)", "bool", "True"),
    ("s & 3", "SymInt", "BitwiseFn_bitwise_and(s93, 3)"),
    ("3 | s", "SymInt", "BitwiseFn_bitwise_or(3, s93)"),
    ("torch.sym_ite(s > 3, s, t)", "SymInt", "Piecewise((s93, s93 > 3), (s44, True))"),
    ("torch.sym_ite(s != 3, 3, 4)", "SymInt", "Piecewise((4, Eq(s93, 3)), (3, True))"),
    ("ask.size_hint(s)", "int", "4"),
])
def test_functions_of_sizes(expression, kind, says):
    _, (x,) = fakes((4, 3))
    s, t = x.shape
    found = eval(expression, {"torch": torch, "ask": ask, "s": s, "t": t, "math": math})
    assert type(found).__name__ == kind and (says is None or str(found) == says)


def test_answers_taken_together():
    env, (x,) = fakes((4, 3))
    s, t = x.shape
    both, one = (s > 3) & (t > 2), (s > 30) | (t > 2)
    assert not env.guards
    assert both and [str(g[0]) for g in env.guards] == ["(s44 > 2) & (s93 > 3)"]
    assert s > 3 and t > 2 and one  # which follow from it
    assert len(env.guards) == 1
    assert not ((s > 30) | (t > 40)) and str(env.guards[1].expr) == "(s44 <= 40) & (s93 <= 30)"
    assert env.guards[0].relation.holds({"s93": 4, "s44": 3}.__getitem__)
    assert not env.guards[0].relation.holds({"s93": 3, "s44": 3}.__getitem__)
    u = env.create_unbacked_symint()
    torch._check((u >= 2) & (u <= 5))
    assert str(env.var_to_range[u.node.expr]) == "VR[2, 5]"
    expr, line, _ = env.guards[0]
    assert expr is both.node.raw or expr == both.node.raw
    assert "test_guard_texts.py" in line


def test_choices_and_bits_of_sizes():
    env, (x,) = fakes((6, 3))
    s, t = x.shape
    chosen = torch.sym_ite(s > 5, t, s * 2)
    assert env.bounds(chosen.node.expr)[0] == 2
    for values in ({"s93": 6, "s44": 3}, {"s93": 5, "s44": 3}):
        n, m = values["s93"], values["s44"]
        of = values.__getitem__
        assert chosen.node.expr.value(of) == (m if n > 5 else n * 2)
        assert (s & 3).node.expr.value(of) == n & 3 and (s | t).node.expr.value(of) == n | m
    assert not env.guards
    assert chosen == 3 and len(env.guards) == 1


@pytest.mark.parametrize("make", [
    torch.tensor, torch.Tensor, torch.LongTensor, torch.HalfTensor,
    lambda data: torch.tensor(data, dtype=torch.bfloat16), lambda data: torch.tensor([data])[0]])
def test_tensors_of_sizes(make):
    """Data are made of them: they are numbers from then on, with a guard."""
    env, (x,) = fakes((4, 3))
    assert make([*x.shape, 1]).tolist() == [4, 3, 1]
    assert [str(g) for g in env.guards] == ["Eq(s93, 4)", "Eq(s44, 3)"]
