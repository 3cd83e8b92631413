"""Native code for symbolic sizes: one library for all sizes that satisfy its guards."""

import numpy as np
import pytest

import pullback as torch
from pullback import nn
from pullback.compile import native, number, sized, toolchain, walks
from pullback.compile.errors import CompilerNotFound
from pullback.compile.extent import Domain
from pullback.nn import functional as F
from pullback.symbolic.env import ShapeEnv, Source

try:
    toolchain.find()
except CompilerNotFound:
    pytest.skip("no C compiler", allow_module_level=True)


@pytest.fixture
def builds(monkeypatch):
    """The libraries that are compiled; none of them is found on disk."""
    made, build, key = [], native.build, sized.cache.key
    salt = str(np.random.default_rng().integers(1 << 62))

    def counted(source, name, extra=()):
        if name.endswith(".so"):  # no library of the runtime
            made.append(name)
        return build(source, name, extra)

    def salted(*parts):  # the runtime and its products stay what they are
        return key(*parts, salt) if len(parts) > 3 else key(*parts)

    monkeypatch.setattr(native, "build", counted)
    monkeypatch.setattr(sized.cache, "key", salted)
    return made


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(12, 24), nn.Linear(24, 10)

    def forward(self, x, target):
        return F.cross_entropy(self.b(F.gelu(self.a(x))), target)


class Block(nn.Module):
    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads, self.before, self.after = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.parts, self.joined = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = (p.reshape(rows, length, self.heads, -1).transpose(1, 2)
                   for p in self.parts(self.before(x)).chunk(3, -1))
        scores = q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5
        seen = torch.ones(length, length, dtype=torch.bool).tril()
        mixed = scores.masked_fill(~seen, -torch.inf).softmax(-1) @ v
        x = x + self.joined(mixed.transpose(1, 2).reshape(rows, length, width))
        return (x + self.down(F.gelu(self.up(self.after(x))))).pow(2).mean()


class Losses(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(20)

    def forward(self, x, target):
        down = x.log_softmax(0).std(0).sum()
        return F.cross_entropy(self.norm(x), target) + x.softmax(-1).pow(2).sum() + down


class Pixels(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(2, 4, 3), nn.Linear(4, 10)

    def forward(self, x, target):
        return F.cross_entropy(self.b(F.relu(self.a(x)).mean((2, 3))), target)


def labelled(*shape):
    return torch.randn(*shape), torch.randint(0, 10, (shape[0],))


PROGRAMS = {
    "mlp": (Perceptron, lambda n: labelled(n, 12), (16, 2, 7, 24, 33, 300)),
    "block": (Block, lambda n: (torch.randn(*n, 32),),
              ((4, 16), (2, 33), (3, 7), (2, 2), (5, 64), (32, 4))),
    "losses": (Losses, lambda n: labelled(n, 20), (16, 2, 7, 20, 33, 300)),
    "convolution": (Pixels, lambda n: labelled(n, 2, 8, 8), (4, 2, 7, 8, 16, 33)),
}


def gradients(function, module, args):
    for p in module.parameters():
        p.grad = None
    loss = function(*args)
    loss.backward()
    return [loss.detach().numpy(), *[p.grad.numpy() for p in module.parameters()]]


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_library_serves_all_sizes(name, builds):
    kind, inputs, sizes = PROGRAMS[name]
    torch.manual_seed(1)
    module = kind()
    compiled = torch.compile(module, dynamic=True)
    for n in sizes:
        args = inputs(n)
        got, want = gradients(compiled, module, args), gradients(module, module, args)
        for a, b in zip(got, want):
            np.testing.assert_allclose(a, b, rtol=3e-4, atol=2e-6)
        assert len(builds) == 1, f"compiled again for {n}"


def test_code_for_all_sizes_computes_what_code_for_one_does():
    """Loops are cut into the same pieces; how sums are contracted is the compiler's."""
    for name, sizes in (("block", ((3, 5), (2, 33))), ("losses", (7, 300))):
        kind, inputs, _ = PROGRAMS[name]
        module = kind()
        general = torch.compile(module, dynamic=True)
        for n in sizes:
            args = inputs(n)
            single = torch.compile(module, dynamic=False)
            for a, b in zip(gradients(general, module, args), gradients(single, module, args)):
                np.testing.assert_allclose(a, b, rtol=0, atol=4e-7 * float(np.abs(b).max()))


def graphs_of(compiled):
    """The graphs with symbolic sizes of a compiled function."""
    return [g for family in compiled.families.values() for p in family.programs
            for g, _, _ in p._shared.values()]


def test_nothing_and_one():
    f = torch.compile(lambda x, w: (x * w).softmax(-1).sum(0), dynamic=True)
    w = torch.randn(5)
    for n in (3, 1, 0, 8, 1, 0):
        x = torch.randn(n, 5)
        assert torch.allclose(f(x, w), (x * w).softmax(-1).sum(0), atol=1e-6)


def test_sizes_that_are_equal_by_chance():
    f = torch.compile(lambda x, w: (x @ w).relu().sum(0) + x.shape[0], dynamic=True)
    for n in (6, 16, 5, 4, 16):
        x, w = torch.randn(n, 16), torch.randn(16, 4)
        assert torch.allclose(f(x, w), (x @ w).relu().sum(0) + n, atol=1e-4)
    (graph,) = graphs_of(f)
    assert len(graph.libraries) == 1 and not graph.single


def test_a_size_past_a_guard_gets_another_library(builds, monkeypatch):
    monkeypatch.setattr(walks, "_MAX_SCRATCH", 4096)  # a row of 1024 floats
    f = torch.compile(lambda x: (x.exp().softmax(-1) * x).sum(-1), dynamic=True)
    for k, n in enumerate((100, 400, 5000, 17, 1025)):
        x = torch.randn(3, n)
        assert torch.allclose(f(x), (x.exp().softmax(-1) * x).sum(-1), atol=1e-5)
        assert len(builds) == (1 if k < 2 else 2)
    (graph,) = graphs_of(f)
    assert any("4096" in words for words, _ in graph.libraries[0].guards)
    assert any("another native library" in text and "4096" in text and "5000" in text
               for text in torch.compiler.recompiles())


def test_results_whose_strides_depend_on_sizes(builds):
    f = torch.compile(lambda x: ((x * 2).transpose(0, 2), x.sum(1) + 1), dynamic=True)
    for shape in ((4, 3, 5), (2, 7, 3), (6, 6, 6), (17, 2, 33)):
        x = torch.randn(*shape)
        turned, sums = f(x)
        assert torch.equal(turned, (x * 2).transpose(0, 2)) and turned.shape == shape[::-1]
        assert torch.allclose(sums, x.sum(1) + 1, atol=1e-5) and sums.is_contiguous()
    assert len(builds) == 1


def test_parts_that_may_be_empty():
    f = torch.compile(lambda x: torch.cat([x[2:] * 2, x[:2].exp()]).sum(1), dynamic=True)
    for n in (5, 2, 3, 9, 2):
        x = torch.randn(n, 4)
        assert torch.allclose(f(x), torch.cat([x[2:] * 2, x[:2].exp()]).sum(1), atol=1e-5)


def test_an_index_out_of_range_names_the_size_at_hand():
    f = torch.compile(lambda w, i: F.embedding(i, w) * 2, dynamic=True)
    for n in (4, 9):
        assert f(torch.ones(n, 3), torch.tensor([n - 1, 0])).sum() == 12
        with pytest.raises(IndexError, match=f"size {n} .got {n}."):
            f(torch.ones(n, 3), torch.tensor([0, n]))


def test_numbers_that_follow_from_sizes():
    def f(x):
        return x.var(0) * x.shape[0] ** 0.5 + torch.arange(x.shape[1]) / x.shape[0] + x.mean()

    compiled = torch.compile(f, dynamic=True, fullgraph=True)
    for n in (5, 2, 19):
        x = torch.randn(n, 3)
        assert torch.allclose(compiled(x), f(x), atol=1e-5)
    (graph,) = graphs_of(compiled)
    assert len(graph.libraries) == 1 and not graph.single


def test_numbers_among_the_arguments(builds):
    def f(x, a, n):
        return ((x * a + n).sin() / a).sum() * n

    compiled = torch.compile(f, dynamic=True)
    for a, n, rows in ((0.5, 3, 4), (1.5, 7, 9), (-2.5, -2, 4), (0.25, 0, 3)):
        x = torch.randn(rows, 5)
        got, want = (t.clone().requires_grad_() for t in (x, x))
        results = [function(t, a, n) for function, t in ((compiled, got), (f, want))]
        assert torch.allclose(*results, atol=1e-5)
        for y in results:
            y.backward()
        assert torch.allclose(got.grad, want.grad, atol=1e-5)
    assert len(builds) == 1


def test_where_code_cannot_be_general_it_is_written_for_each_size(builds, monkeypatch):
    def refuse(*args):
        raise number.NotGeneral("not this one")

    monkeypatch.setattr(sized, "write", refuse)
    f = torch.compile(lambda x: (x * 3).sin().sum(1), dynamic=True)
    for n in (3, 8, 21):
        x = torch.randn(n, 5)
        assert torch.allclose(f(x), (x * 3).sin().sum(1), atol=1e-5)
    assert len(builds) == 3 and [g.single for g in graphs_of(f)] == ["not this one"]


def test_libraries_are_found_on_disk(builds):
    def f(x):
        return (x * 3 + 1).cos().sum(1)

    for k, n in enumerate((6, 11, 40)):
        x = torch.randn(n, 5)
        fresh = torch.compile(f, dynamic=True)  # as a new process would
        assert torch.allclose(fresh(x), f(x), atol=1e-5)
        assert len(builds) == 1
        (graph,) = graphs_of(fresh)
        if k == 1:
            sized.cache.write(f"{graph.key}.sizes", b"broken")
            assert sized._kept(graph.key) == []
            sized.cache.write_sealed(f"{graph.key}.sizes", b"broken in another way")
            assert sized._kept(graph.key) == []
            builds.clear()  # written once more; the object file is still there


def test_an_emptied_cache_is_filled_again(builds):
    f = torch.compile(lambda x: (x * 5 - 1).cos().sum(1), dynamic=True)
    for k, n in enumerate((4, 9, 12)):
        x = torch.randn(n, 3)
        assert torch.allclose(f(x), (x * 5 - 1).cos().sum(1), atol=1e-5)
        assert len(builds) == (1 if k < 2 else 2)
        (graph,) = graphs_of(f)
        if k == 1:
            sized.cache.discard(f"{graph.libraries[0].key}.so")
    assert not graph.single and len(graph.libraries) == 1


def test_plans_are_functions_of_sizes():
    f = torch.compile(lambda x: (x.exp().sum(1) * 2).cumsum(0), dynamic=True)
    shared = torch.cache.info()["shared"]
    for n in (4, 7):
        f(torch.randn(n, 6))
    assert torch.cache.info()["shared"] == shared + 1
    reports = [p.report for p in f.parts().values()]
    assert [r["kernels"][0]["rows"] for r in reports] == [[4], [7]]
    assert reports[0]["input_bytes"] == 96 and reports[1]["input_bytes"] == 168
    assert all(r["library"]["sizes"] == 2 and r["library"]["number"] == 0 for r in reports)
    assert len(set(f.source_paths())) == 1


def test_a_graph_with_symbolic_sizes_can_be_called_by_itself():
    from pullback.aot import aot_function
    from pullback.compile.ahead import ts_compile

    f = aot_function(lambda x: (x * 2).sin().sum(0), ts_compile, dynamic=True)
    for n in (3, 8, 21):
        x = torch.randn(n, 5, requires_grad=True)
        y = f(x)
        y.sum().backward()
        assert torch.allclose(y, (x * 2).sin().sum(0), atol=1e-5)
        assert torch.allclose(x.grad, 2 * (x * 2).cos(), atol=1e-5)


def test_sizes_that_depend_on_data_run_operator_by_operator():
    from pullback.compile.backend import compile_graph
    from pullback.fx.make_fx import make_fx

    def picked(x):
        found = x[x > 0]
        torch._check(found.shape[0] >= 2)
        return found / found.shape[0], x * x.shape[0]

    run = compile_graph(make_fx(picked, tracing_mode="symbolic")(torch.randn(5)), "picked")
    for n in (4, 9):
        x = torch.arange(-1.0, n)
        for got, want in zip(run(x.numpy()), picked(x)):
            np.testing.assert_allclose(got, want.numpy())


# ---- numbers -------------------------------------------------------------------------------------


@pytest.fixture
def sizes():
    env = ShapeEnv()
    given = [env.size(n, Source(name)).node.raw for n, name in ((6, "a"), (20, "b"))]
    domain = Domain(env, {e.symbol: n for e, n in zip(given, (6, 20))})
    domain.typical = domain.values
    return domain, *[domain.extent(e) for e in given]


def test_extents_compute_like_integers(sizes):
    domain, a, b = sizes
    names = domain.values

    def same(n, value):
        assert eval(repr(n), {**number.FUNCTIONS, **sized._SPACE}, names) == value == n.hint

    same(a * b + 3, 123)
    same(7 - a, 1)
    same(b // 3, 6)
    same((b * 2) % 7, 5)
    same(1 / (a * b), 1 / 120)
    same(number.ceil_div(b, 16), 2)
    same(number.largest(a, 10), 10)
    same(number.choose(number.compared(b, ">", 8), a, 0), 6)
    same(number.real(a) * 2 + b, 32.0)
    assert a * b // b == a and (a * b) % a == 0 and divmod(3, 8 * a) == (0, 3)
    assert number.divides(16, 16 * a) and not number.divides(16, a)
    assert not domain.env.guards


def test_numbers_that_typical_sizes_do_not_have(sizes):
    domain, a, b = sizes
    quotient = domain.extent(a.expr // (b.expr // a.expr))
    assert quotient.hint == 6 // (20 // 6)
    domain.typical = {name: 32 - n for name, n in domain.values.items()}  # 26 // (12 // 26)
    assert quotient.hint == 6 // (20 // 6)


def test_comparisons_are_answered_or_guarded(sizes):
    domain, a, b = sizes
    assert a > 1 and a * b >= 4 and a * b > b and not a < 0 and a != 0 and a != 1
    assert not domain.env.guards
    assert a != b and a != 6  # equal by chance: code for different ones serves
    assert {a: 1}[a + 0] == 1
    assert not domain.env.guards
    assert a < b
    assert a < b and len(domain.env.guards) == 1  # known from now on
    assert b - 10 != 0 and len(domain.env.guards) == 2  # it might be empty
    assert list(range(a)) == [0, 1, 2, 3, 4, 5] and len(domain.env.guards) == 3
    for _, source in domain.guards():
        assert eval(source, dict(sized._SPACE), domain.values)


def test_formulas_are_not_compared(sizes):
    _, a, b = sizes
    x = number.largest(a, b)
    with pytest.raises(number.NotGeneral):
        x < 3  # noqa: B015
    with pytest.raises(number.NotGeneral):
        range(x)
    assert number.likely(x) == 20 and x == number.largest(a, b) and x != a


def test_tensors_of_numbers_of_sizes_hold_what_their_dtype_holds():
    """Numbers that follow from sizes are negated, and cast to integers and truth values."""

    def f(x):
        part = torch.full((2,), x.shape[0] / 3)
        return [-part * x.sum(), part.long() * x.sum(), part.bool() * x.sum(),
                torch.full((2,), x.shape[0] * 1.7, dtype=torch.int64) * x.sum(),
                torch.full((2,), x.shape[0] * 100.7).to(torch.uint8)]

    compiled = torch.compile(f, dynamic=True)
    for n in (5, 9, 2):
        x = torch.arange(n) + 0.5
        for got, wanted in zip(compiled(x), f(x)):
            assert got.dtype == wanted.dtype
            np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-6)


def test_typical_sizes_are_possible_ones():
    """A kernel is not taken to be larger than what it slides over."""
    w = torch.arange(12.0).reshape(2, 2, 3)

    def f(x, w):
        return F.conv1d(x.reshape(-1)[:48].reshape(2, 4, 6), w, None, 2, 1, 1, 2)

    x = (torch.arange(51.0).reshape(17, 3) / 50).requires_grad_()
    wanted = torch.autograd.grad(f(x, w).square().sum(), x)[0]
    compiled = torch.compile(f, dynamic=True)
    got = torch.autograd.grad(compiled(x, w).square().sum(), x)[0]
    np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-5)
