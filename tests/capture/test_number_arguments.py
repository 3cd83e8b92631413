"""Numbers among the arguments of compiled functions: constants, then symbols; as PyTorch has it."""

import pytest

import pullback as torch
from pullback.aot import aot_function
from pullback.fx.make_fx import make_fx

F = torch.nn.functional


def programs(compiled):
    """Symbols of the arguments, and guards, of each capture with symbols."""
    return [(str(p.check.shapes), [str(g) for g in p.env.guards])
            for family in compiled.families.values() for p in family.programs]


def scaled(x, n):
    return x * n, n * 2


def test_the_second_value_makes_a_symbol():
    f = torch.compile(scaled, backend="numpy")
    x = torch.ones(4, 3)
    for n in (5, 7, 9, 1, 0, -3):
        y, number = f(x, n)
        assert y.tolist() == (x * n).tolist() and number == 2 * n and type(number) is int
    assert programs(f) == [("[(4, 3), (s86,)]", [])]  # PyTorch's name of L['n']
    (reason,) = f.recompiles
    assert reason.endswith("n is 7, the program is for 5")


@pytest.mark.parametrize("first", [5, 1, 0, -3])
def test_with_dynamic_it_is_a_symbol_at_once(first):
    f = torch.compile(scaled, backend="numpy", dynamic=True)
    for n in (first, 7, 9):
        assert f(torch.ones(4, 3), n)[1] == 2 * n
    assert programs(f) == [("[(s77, s27), (s86,)]", [])] and not f.recompiles


def test_without_dynamic_it_never_is():
    f = torch.compile(scaled, backend="numpy", dynamic=False)
    for n in (5, 7, 9):
        f(torch.ones(4, 3), n)
    assert not programs(f) and len(f.recompiles) == 2


def test_floats():
    f = torch.compile(scaled, backend="numpy")
    x = torch.ones(3)
    for n in (5.5, 7.5, 9.5, 1.0, float("inf"), float("nan")):
        y, number = f(x, n)
        assert str(y.tolist()) == str([n] * 3) and str(number) == str(2 * n)
        assert y.dtype == torch.float32
    assert programs(f) == [("[(3,), (zf86,)]", [])] and len(f.recompiles) == 3
    assert f.recompiles[-1].endswith("n is nan, the program is for inf")


def test_flags_and_texts_are_no_symbols():
    f = torch.compile(lambda x, n: x + 1 if n is None else x * n, backend="numpy", dynamic=True)
    for n in (True, False, None):
        assert torch.equal(f(torch.ones(3), n), f.function(torch.ones(3), n))
    assert f.recompiles[0].endswith("n is False, the program is for True")
    assert f.recompiles[1].endswith("n is None, the program is for False")


def test_equal_numbers_are_symbols_of_their_own():
    f = torch.compile(lambda x, n, m: x * n * m, backend="numpy", dynamic=True)
    assert f(torch.ones(5), 5, 5)[0] == 25 and f(torch.ones(5), 6, 7)[0] == 42
    assert programs(f) == [("[(s77,), (s86,), (s68,)]", [])]


def test_branches_are_guards():
    f = torch.compile(lambda x, n: x * 2 if n > 6 else x, backend="numpy", dynamic=True)
    for n in (5, 6, 9, 11, -4):
        assert f(torch.ones(2), n)[0] == (2 if n > 6 else 1)
    assert [g for _, g in programs(f)] == [["s86 <= 6"], ["s86 > 6"]]
    (reason,) = f.recompiles
    assert "n is 9, the program is for at most 6 (s86 <= 6 was decided at" in reason
    assert "test_number_arguments.py" in reason

    g = torch.compile(lambda x, n: x * 2 if n % 2 == 0 else x, backend="numpy", dynamic=True)
    for n in (5, 7, 8, 10):
        g(torch.ones(2), n)
    assert [p for _, p in programs(g)] == [["Ne(Mod(s86, 2), 0)"], ["Eq(Mod(s86, 2), 0)"]]
    h = torch.compile(lambda x, n: x * 2 if n > 6.0 else x + 1, backend="numpy")
    for n in (5.0, 6.5, 9.5, 4.5):
        h(torch.ones(2), n)
    assert [p for _, p in programs(h)] == [["zf86 > 6.0"], ["zf86 <= 6.0"]]
    assert "zf86 > 6.0 does not hold for zf86 = n = 4.5" in h.recompiles[-1]


@pytest.mark.parametrize("program", [
    lambda x, n: x.sum() + torch.zeros(n).sum(), lambda x, n: x.new_ones(n, 2),
    lambda x, n: torch.full((n,), 2.0), lambda x, n: torch.arange(n), lambda x, n: torch.eye(n),
    lambda x, n: x.repeat(n, 1), lambda x, n: x.narrow(0, 0, n), lambda x, n: x.roll(n, 0),
    lambda x, n: x[n], lambda x, n: x[:n], lambda x, n: x[n:], lambda x, n: x.view(-1)[n:n + 2],
    lambda x, n: x.unsqueeze(0).expand(n, 4, 3), lambda x, n: x.tril(n), lambda x, n: x.sum(n),
    lambda x, n: torch.full_like(x, n), lambda x, n: x**n, lambda x, n: torch.tensor(n),
    lambda x, n: torch.tensor([n, n + 1.5]), lambda x, n: x + torch.as_tensor(n),
    lambda x, n: x.masked_fill(x > n, n), lambda x, n: torch.where(x > 0, x, n),
    lambda x, n: F.pad(x, (n, n)), lambda x, n: x.chunk(n), lambda x, n: x.topk(n, 0)[0],
    lambda x, n: x.sub(x, alpha=n), lambda x, n: x + 1 if isinstance(n, int) else x,
    lambda x, n: x * len(str(n)), lambda x, n: x * len(f"{n}"), lambda x, n: x * (n & 1),
    lambda x, n: x * 2**n, lambda x, n: x * round(n / 3), lambda x, n: x * max(n, 2),
    lambda x, n: x * torch.sym_max(n, 2), lambda x, n: (x, n + 1, n / 2, n > 2, {"a": n}),
    lambda x, n: x.to(torch.int64) // n if n else x, lambda x, n: x.diagonal(n),
    lambda x, n: torch.linspace(0, n, 5) + x.sum(), lambda x, n: x.reshape(n, -1),
    lambda x, n: x * {2: 5.0}.get(n, 3.0), lambda x, n: F.leaky_relu(x, n),
    lambda x, n: [x + i for i in range(n)], lambda x, n: x.fill_(n).clone(),
])
def test_what_numbers_are_used_for(program):
    compiled = torch.compile(program, backend="numpy", dynamic=True)

    def outcome(function, n):
        try:
            out = function(torch.arange(12.0).reshape(4, 3), n)
        except (RuntimeError, IndexError, TypeError, ZeroDivisionError) as error:
            return next(c for c in type(error).__mro__ if c.__module__ == "builtins")
        return [(v.dtype, v.tolist()) if isinstance(v, torch.Tensor) else (type(v), v)
                for v in torch.utils._pytree.tree_leaves(out)]

    for n in (5, 2, -2, 0, 1, 3, 4, 100):
        assert outcome(compiled, n) == outcome(program, n)


def test_a_changing_number_compiles_native_code_once():
    f = torch.compile(lambda x, n, rate: (x * n + rate).sum(), backend="native", dynamic=True)
    for n, rate in ((2, 0.5), (3, 0.25), (5, 1.75)):
        x = torch.arange(6.0, requires_grad=True)
        loss = f(x, n, rate)
        loss.backward()
        assert loss == 15 * n + 6 * rate and x.grad.tolist() == [float(n)] * 6
    assert len(programs(f)) == 1


def test_second_derivatives():
    f = torch.compile(lambda x, n: (x**3).sum() * n, backend="numpy", dynamic=True)
    for n in (2, 5):
        x = torch.arange(3.0, requires_grad=True)
        first, = torch.autograd.grad(f(x, n), x, create_graph=True)
        assert torch.autograd.grad(first.sum(), x)[0].tolist() == [0.0, 6.0 * n, 12.0 * n]
    assert len(programs(f)) == 1


def test_numbers_inside_of_arguments_have_names():
    f = torch.compile(lambda d, *more: d["x"] * d["n"] + more[1], backend="numpy")
    f({"x": torch.ones(2), "n": 3}, 1, 2)
    f({"x": torch.ones(2), "n": 4}, 1, 2)
    assert f({"x": torch.ones(2), "n": 4}, 1, 5).tolist() == [9.0, 9.0]
    assert [r.rpartition("): ")[2] for r in f.recompiles] == [
        "d['n'] is 4, the program is for 3", "more[1] is 5, the program is for 2"]


def graphs(function, *args):
    """The texts that compilers see, as recorded from PyTorch."""
    seen = []

    def compiler(module, inputs):
        seen.append(module.code.strip())
        return module

    f = aot_function(function, compiler, dynamic=True)
    outs = f(*args)
    first = outs[0] if isinstance(outs, tuple) else outs
    if first.requires_grad and first._base is None:
        first.sum().backward()
    return seen, f


def test_graphs_of_aot_function():
    seen, f = graphs(scaled, torch.ones(4, 3, requires_grad=True), 7)
    assert seen == ["""\
def forward(self, primals_1, primals_2):
    mul = torch.ops.aten.mul.Tensor(primals_1, primals_2);  primals_1 = None
    mul_2 = primals_2 * 2
    return (mul, mul_2, primals_2)""", """\
def forward(self, primals_2, tangents_1):
    mul_1 = torch.ops.aten.mul.Tensor(tangents_1, primals_2);  tangents_1 = primals_2 = None
    return (mul_1, None)"""]
    x = torch.ones(5, 2, requires_grad=True)
    y, number = f(x, 9)
    y.sum().backward()
    assert number == 18 and x.grad[0, 0] == 9 and len(seen) == 2

    (inference,), _ = graphs(scaled, torch.ones(4, 3), 1)  # 0 and 1 stay numbers
    assert "mul.Tensor(arg0_1, 1)" in inference and "return (mul, 2)" in inference
    (inference,), _ = graphs(scaled, torch.ones(4, 3), 2.5)  # and so do floats
    assert "mul.Tensor(arg0_1, 2.5)" in inference and "return (mul, 5.0)" in inference
    (inference,), _ = graphs(lambda x, n: x.view(n, -1), torch.ones(4, 3), 4)
    assert "view.default(arg0_1, [arg1_1, -1])" in inference


@pytest.mark.parametrize(("value", "lines", "guards"), [
    (7, ["mul = torch.ops.aten.mul.Tensor(x_1, n_1);  x_1 = None",
         "mul_1 = n_1 * 2;  n_1 = None"], ""),
    (1, ["mul = torch.ops.aten.mul.Tensor(x_1, 1);  x_1 = None", "return (mul, 2)"], ""),
    (2.5, ["mul = torch.ops.aten.mul.Tensor(x_1, 2.5);  x_1 = None", "return (mul, 5.0)"], ""),
])
def test_graphs_of_make_fx(value, lines, guards):
    graph = make_fx(scaled, tracing_mode="symbolic")(torch.ones(4, 3), value)
    assert all(line in graph.code for line in lines) and graph.shape_env.format_guards() == guards


def test_numbers_that_become_sizes_are_not_negative():
    graph = make_fx(lambda n: torch.zeros(n) + n, tracing_mode="symbolic")(5)
    assert graph.shape_env.format_guards() == " - s48 >= 0"


def test_symbols_among_the_inputs_of_a_module():
    from pullback.aot import aot_module_simplified
    from pullback.fx.fake_mode import FakeTensorMode
    from pullback.symbolic import ShapeEnv

    class Scaled(torch.nn.Module):
        def forward(self, n, x):
            return x * n, n + 1

    mode, seen = FakeTensorMode(shape_env=ShapeEnv()), []
    x = mode.from_tensor(torch.ones(4, 3))
    f = aot_module_simplified(
        Scaled(), [x.shape[0], x], lambda m, _: seen.append(m.code.strip()) or m)
    for n in (4, 6):
        y, number = f(n, torch.ones(n, 3))
        assert y.sum() == 3 * n * n and number == n + 1
    assert seen == ["""\
def forward(self, arg0_1, arg1_1):
    mul = torch.ops.aten.mul.Tensor(arg1_1, arg0_1);  arg1_1 = None
    add = arg0_1 + 1;  arg0_1 = None
    return (mul, add)"""]


@pytest.mark.parametrize("calls", [
    [(3, 2.0), (2, 2.0), (3, 1.0), (5, 1.0)],  # sizes become symbols before the number does
    [(3, 0.0), (3, -0.0), (2, -0.0), (4, 0.0), (4, float("nan")), (3, float("nan")), (3, 1)]])
def test_a_number_counts_where_it_is_no_symbol(calls):
    def f(x, n):
        return x / n if n == 0 else x * n

    compiled = torch.compile(f, backend="numpy")
    for size, n in calls:
        x = torch.ones(size)
        assert torch.allclose(compiled(x, n), f(x, n), equal_nan=True), (size, n)
