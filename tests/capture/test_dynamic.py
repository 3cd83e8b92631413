"""Programs with symbolic sizes: one capture for all sizes that its guards allow, and why not."""

import numpy as np
import pytest

import pullback as torch
from pullback import errors
from pullback.aot import aot_function
from pullback.capture.compilers import nop

F = torch.nn.functional


def both(f, g, *tensors):
    """Values and gradients of two functions on copies of the same tensors."""
    results = []
    for function in (f, g):
        leaves = [t.detach().clone().requires_grad_(t.is_floating_point()) for t in tensors]
        out = function(*leaves)
        outs = [o for o in (out if isinstance(out, (tuple, list)) else [out])
                if isinstance(o, torch.Tensor)]
        wanted = [t for t in leaves if t.requires_grad]
        grads = torch.autograd.grad([o.sum() for o in outs if o.requires_grad], wanted,
                                    allow_unused=True)
        results.append([*outs, *[g for g in grads if g is not None]])
    for a, b in zip(*results, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=2e-4, atol=1e-5)


def captures(compiled):
    """How many symbolic captures there are."""
    return sum(len(family.programs) for family in compiled.families.values())


def mlp(x, w, b):
    return F.gelu(x @ w + b).sum(1).mean()


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(8), torch.nn.LayerNorm(8)
        self.qkv, self.out = torch.nn.Linear(8, 24), torch.nn.Linear(8, 8)
        self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (s.view(b, t, 2, d // 2).transpose(1, 2) for s in self.qkv(self.norm1(x)).chunk(
            3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Conv(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.Conv2d(4, 5, 3, stride=2)
        self.norm, self.head = torch.nn.BatchNorm2d(4), torch.nn.Linear(5, 2)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.a(x))), 2)
        return self.head(F.relu(self.b(x)).mean((2, 3)))


def positions(x):
    """Attention with a mask and positions made from sizes."""
    t = x.shape[1]
    where = torch.arange(t)
    mask = where[:, None] >= where[None, :]
    scores = (x @ x.transpose(1, 2)) / x.shape[-1] ** 0.5
    scores = scores.masked_fill(~mask, float("-inf")) + where * 0.1
    return torch.cat([scores.softmax(-1) @ x, x.new_zeros(x.shape[0], 1, x.shape[2])], 1)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_mlp(backend):
    f = torch.compile(mlp, dynamic=True, backend=backend)
    w, b = torch.randn(8, 3), torch.randn(3)
    for n in (4, 7, 5):
        both(f, mlp, torch.randn(n, 8), w, b)
    assert captures(f) == 1 and not f.recompiles
    for n in (1, 0):
        both(f, mlp, torch.randn(n, 8), w, b)
    assert [("size(0) is 1" in r, "size(0) is 0" in r) for r in f.recompiles] == [
        (True, False), (False, True)]


@pytest.mark.parametrize("make, sizes", [
    (Block, [(2, 5, 8), (3, 7, 8), (2, 9, 8), (4, 4, 8)]),
    (Conv, [(2, 3, 8, 8), (3, 3, 12, 10), (4, 3, 9, 9)]),
])
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_modules(make, sizes, backend):
    torch.manual_seed(0)
    module = make()
    f = torch.compile(module, dynamic=True, backend=backend)
    sizes = sizes if backend == "numpy" else sizes[:2]
    for shape in sizes:
        both(f, module, torch.randn(*shape))
        x = torch.randn(*shape)
        grads = []
        for function in (f, module):
            module.zero_grad()
            function(x).square().sum().backward()
            grads.append([p.grad.clone() for p in module.parameters()])
        for a, b in zip(*grads):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_sizes_in_values(backend):
    f = torch.compile(positions, dynamic=True, backend=backend)
    for shape in ((2, 5, 4), (3, 7, 6), (2, 3, 5)):
        both(f, positions, torch.randn(*shape))
    assert captures(f) == 1


def test_the_second_size_makes_a_dimension_dynamic():
    f = torch.compile(lambda x: (x * 2).sum(0), backend="numpy")
    both(f, f.function, torch.randn(4, 3))
    assert captures(f) == 0
    both(f, f.function, torch.randn(5, 3))
    (family,) = f.families.values()
    (program,) = family.programs
    assert str(program.check.shapes) == "[(s77, 3)]"  # PyTorch's name of L['x'].size()[0]
    both(f, f.function, torch.randn(9, 3))
    assert captures(f) == 1 and len(f.recompiles) == 1
    assert "x.size(0) is 5, the program is for 4" in f.recompiles[0]
    both(f, f.function, torch.randn(9, 4))
    assert captures(f) == 2 and "x.size(1) is 4, the program is for 3" in f.recompiles[1]


def test_static_stays_static():
    f = torch.compile(lambda x: x + 1, backend="numpy", dynamic=False)
    for n in (2, 3, 4):
        f(torch.ones(n))
    assert captures(f) == 0 and len(f.programs) == 3


def test_guards_choose_between_programs(capsys):
    def f(x):
        if x.shape[0] > 6:
            return x * 2
        return x.view(-1)[:3]

    g = torch.compile(f, backend="numpy", dynamic=True)
    torch._logging.set_logs(recompiles=True)
    try:
        for n in (4, 5, 6, 7, 20, 2):
            both(g, f, torch.randn(n, 3))
    finally:
        torch._logging.set_logs()
    assert captures(g) == 2
    printed = capsys.readouterr().err
    assert "f is compiled again" in printed and "x.size(0) is 7" in printed
    assert "s77 <= 6 was decided at test_dynamic.py:" in printed
    assert torch.compiler.recompiles()[-1] == g.recompiles[-1]


def test_equal_sizes_are_one_symbol():
    g = torch.compile(lambda x, y: x @ y, backend="numpy", dynamic=True)
    g(torch.randn(3, 4), torch.randn(4, 5))
    g(torch.randn(6, 2), torch.randn(2, 7))
    assert captures(g) == 1
    g(torch.randn(3, 3), torch.randn(3, 3))  # fits: equal where they were equal
    assert captures(g) == 1
    h = torch.compile(lambda x, y: x @ y, backend="numpy", dynamic=True)
    h(torch.randn(3, 3), torch.randn(3, 3))
    h(torch.randn(6, 2), torch.randn(2, 7))
    assert captures(h) == 2 and "the same as x.size(0)" in h.recompiles[0]


def test_marks():
    x = torch.randn(4, 3)
    torch._dynamo.mark_dynamic(x, 0, min=2, max=8)
    f = torch.compile(lambda x: (x.sum(), x.shape, x.shape[0] * 2), backend="numpy")
    assert f(x)[1:] == ((4, 3), 8)
    assert f(torch.randn(7, 3))[1:] == ((7, 3), 14)
    assert captures(f) == 1
    f(torch.randn(9, 3))
    assert "2 to 8 (as it was marked)" in f.recompiles[0]

    y = torch.randn(4, 3)
    torch._dynamo.mark_static(y, 0)
    g = torch.compile(lambda x: x + 1, backend="numpy", dynamic=True)
    g(y)
    assert str(next(iter(g.families.values())).programs[0].check.shapes) == "[(4, s27)]"
    z = torch.randn(4, 3)
    torch._dynamo.maybe_mark_dynamic(z, 1)
    h = torch.compile(lambda x: x.reshape(3, 4), backend="numpy")
    assert h(z).shape == (3, 4)
    with pytest.raises(IndexError, match="no dim 5"):
        torch._dynamo.mark_dynamic(z, 5)


def test_a_marked_size_that_must_be_fixed_is_an_error():
    x = torch.randn(4, 3)
    torch._dynamo.mark_dynamic(x, 0)
    f = torch.compile(lambda x: x + len(range(x.shape[0])), backend="numpy")
    with pytest.raises(errors.ConstraintViolationError, match=r"x.size\(\)\[0\]") as error:
        f(x)
    assert "Eq(s77, 4) was needed at test_dynamic.py:" in str(error.value)


def test_outputs_that_are_views_and_sizes():
    def f(x):
        y = x * 2
        return y, y.view(-1, 2), x.transpose(0, 1), x.shape[0] + 1, y[1:]

    g = torch.compile(f, backend="numpy", dynamic=True)
    for n in (4, 6, 3):
        x = torch.randn(n, 10)
        a, b = g(x), f(x)
        for p, q in zip(a, b):
            assert torch.equal(p, q) if isinstance(p, torch.Tensor) else p == q
        assert a[2]._base is x and a[1]._base is a[0] and a[4]._base is a[0]
    assert captures(g) == 1


def test_inputs_that_are_written():
    def f(x, y):
        x.mul_(2)
        x[1:].add_(y[: x.shape[0] - 1])
        return x.sum(0)

    g = torch.compile(f, backend="numpy", dynamic=True)
    for n in (4, 6, 5):
        x, y = torch.randn(n, 3), torch.randn(n, 3)
        x1, x2 = x.clone(), x.clone()
        assert torch.allclose(g(x1, y), f(x2, y)) and torch.allclose(x1, x2)
        assert x1._version == x2._version
    assert captures(g) == 1


def test_second_derivatives():
    def f(x):
        return (x.tanh() @ x.transpose(0, 1)).pow(2).sum()

    g = torch.compile(f, backend="numpy", dynamic=True)
    for n in (3, 5):
        x = torch.randn(n, 4, dtype=torch.float64)
        found = []
        for function in (g, f):
            leaf = x.clone().requires_grad_()
            first, = torch.autograd.grad(function(leaf), leaf, create_graph=True)
            found.append(torch.autograd.grad(first.square().sum(), leaf)[0])
        assert torch.allclose(*found)
    assert captures(g) == 1


def test_transposed_inputs():
    f = torch.compile(lambda x: (x + 1).reshape(-1).cumsum(0), backend="numpy", dynamic=True)
    for n in (3, 5):
        both(f, f.function, torch.randn(4, n).transpose(0, 1))
        both(f, f.function, torch.randn(n, 4))
        both(f, f.function, torch.randn(n, 8)[:, ::2])


def test_random_numbers():
    f = torch.compile(lambda x: F.dropout(x, 0.5) + torch.rand(x.shape), backend="numpy",
                      dynamic=True)
    for n in (10, 23):
        x = torch.ones(n, 3)
        torch.manual_seed(0)
        a = f(x)
        torch.manual_seed(0)
        assert torch.equal(a, f.function(x))
    assert captures(f) == 1


def test_aot_function_compiles_once():
    seen = []

    def compiler(module, inputs):
        seen.append(module)
        return module

    f = aot_function(lambda x, y: ((x @ y).sin() * x.shape[0]).sum(0), compiler, compiler,
                     dynamic=True)
    for n in (3, 5, 8):
        both(f, f.function, torch.randn(n, 4), torch.randn(4, 2))
    assert len(seen) == 2  # forward and backward
    assert "sym_size" in seen[0].code and "s" in str(seen[0].graph.output_node().args)
    static = aot_function(lambda x: x.sin(), nop)
    static(torch.ones(3))
    static(torch.ones(4))
    assert captures(static) == 0


def test_saved_sizes_are_numbers():
    halves = []
    f = aot_function(lambda x: x.sum(0).expand(x.shape), lambda m, _: halves.append(m) or m,
                     dynamic=True)
    both(f, f.function, torch.randn(3, 4))
    both(f, f.function, torch.randn(6, 5))
    assert captures(f) == 1
    saved = halves[0].graph.output_node().args[0][1:]
    assert all(type(n.meta["val"]).__name__ == "SymInt" for n in saved)


def test_a_stance_that_forbids_compiling_again_says_why():
    f = torch.compile(lambda x: x + 1, backend="numpy", dynamic=True)
    f(torch.ones(3))
    with torch.compiler.set_stance("fail_on_recompile"):
        f(torch.ones(4))
        with pytest.raises(RuntimeError, match=r"x.size\(0\) is 1"):
            f(torch.ones(1))


def test_decisions_beside_symbols():
    def f(x):
        return x * 2 if x.sum() > 0 else x - 1

    g = torch.compile(f, backend="numpy", dynamic=True)
    for n in (3, 5, 7):
        for sign in (1, -1):
            x = torch.full((n,), float(sign))
            assert torch.equal(g(x), f(x))
    assert captures(g) == 2


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_branches(backend):
    def f(x):
        return torch.cond(x.sum() > 0, lambda x: x * x.shape[0], lambda x: x.expand(x.shape) + 1,
                          (x,))

    g = torch.compile(f, backend=backend, dynamic=True, fullgraph=True)
    for n in (3, 5, 7):
        both(g, f, torch.ones(n))
        both(g, f, -torch.ones(n))
    assert captures(g) == 1


def test_what_cannot_be_symbolic_stays_as_it_was():
    def f(x):
        return x * {int: 2}[type(x.shape[0])]

    g = torch.compile(f, backend="numpy")
    g(torch.ones(3))
    with pytest.warns(UserWarning, match="sizes of f stay fixed"):
        assert g(torch.ones(4)).tolist() == [2.0] * 4
    assert g(torch.ones(5)).tolist() == [2.0] * 5 and captures(g) == 0
    with pytest.raises(KeyError, match="SymInt"):
        torch.compile(f, backend="numpy", dynamic=True, fullgraph=True)(torch.ones(3))
    assert torch.compile(f, backend="numpy", dynamic=True)(torch.ones(3)).tolist() == [2.0] * 3


def test_sizes_as_keys_are_fixed():
    f = torch.compile(lambda x: x * {3: 2, 4: 5}[x.shape[0]], backend="numpy", dynamic=True)
    assert f(torch.ones(3))[0] == 2 and f(torch.ones(4))[0] == 5
    assert "a key needs the number itself" in f.recompiles[0]


def test_gradients_that_are_there_are_no_reason_to_compile_again():
    f = torch.compile(lambda x, w: (x @ w).sum(), backend="numpy")
    x, w = torch.randn(3, 4), torch.randn(4, 2, requires_grad=True)
    f(x, w).backward()
    f._last = None
    f(x, w).backward()
    assert len(f.programs) == 1 and not f.recompiles


def test_sizes_among_results_and_saved_values():
    """Counts and places of sizes are PyTorch's: user results in order, saved tensors, sizes."""
    def f(a, b, c, d):
        sb, sc = b.size(), c.size()
        cat = torch.cat([a.expand((sb[0] + sc[0], a.size(0))), b, c])
        mm = torch.mm(cat, d)
        return cat, sb, c, torch.mm(mm, a.view(mm.size(1), a.size(0)))

    graphs = []
    g = aot_function(f, lambda m, _: graphs.append(m) or m, dynamic=True)
    for n in (3, 4):
        inputs = [torch.randn(10), torch.randn(n, 10), torch.randn(2, 10), torch.randn(10, 1)]
        both(g, f, *inputs)
        assert g(*inputs)[1] == (n, 10)
    assert len(graphs) == 3 and captures(g) == 2  # the third is for inputs without gradients
    forward, backward, _ = graphs
    sizes = [type(n.meta["val"]).__name__ == "SymInt"
             for n in forward.graph.output_node().args[0]]
    saved = sizes[5:]
    assert sizes[:5] == [False, True, True, False, False]
    assert saved == sorted(saved) and saved.count(False) == 4
    given = [type(n.meta["val"]).__name__ == "SymInt"
             for n in backward.graph.nodes if n.op == "placeholder"]
    assert given == [True] * sum(saved) + [False] * (4 + 2)


def test_a_module_compiled_for_fake_inputs_with_symbolic_sizes():
    from pullback.aot import aot_module_simplified
    from pullback.fx.fake_mode import FakeTensorMode
    from pullback.symbolic import ShapeEnv

    class Sum(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(20, 30)

        def forward(self, x, y):
            return (self.linear(x) + y,)

    module, env, graphs = Sum(), ShapeEnv(), []
    mode = FakeTensorMode(shape_env=env)
    x, y = torch.randn(128, 20, requires_grad=True), torch.randn(128, 30, requires_grad=True)
    f = aot_module_simplified(module, [mode.from_tensor(x), mode.from_tensor(y)],
                              lambda m, _: graphs.append(m) or m)
    assert env.format_guards() == " - Eq(s49, 20)\n - Eq(s70, 30)"  # as PyTorch prints them
    assert len(graphs) == 1
    for n in (128, 7):
        x, y = torch.randn(n, 20, requires_grad=True), torch.randn(n, 30, requires_grad=True)
        out, = f(x, y)
        assert torch.allclose(out, module(x, y)[0], atol=1e-5)
        out.sum().backward()
        assert torch.allclose(y.grad, torch.ones(n, 30))
    assert len(graphs) == 2


class Deep(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(32, 32) for _ in range(4)])

    def forward(self, x):
        for layer in self.layers:
            x = F.gelu(layer(x)).tanh()
        return x.square().sum()


@pytest.mark.parametrize(("backend", "limited"), [
    ("numpy", False), ("native", False), ("native", True)])
def test_a_limit_of_memory_beside_symbols(backend, limited):
    torch.manual_seed(0)
    module, memory = Deep(), 0.0
    if limited:
        plain = torch.compile(module, dynamic=True, backend=backend, memory="1GB")
        for n in (64, 200):
            plain(torch.randn(n, 32)).backward()
        memory = plain.report().phases.peak - 1
    f = torch.compile(module, dynamic=True, backend=backend, memory=memory)
    for n in (64, 32, 200):
        x, grads = torch.randn(n, 32), []
        for function in (f, module):
            module.zero_grad()
            function(x).backward()
            grads.append([p.grad.clone() for p in module.parameters()])
        for a, b in zip(*grads):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-3, atol=1e-3)
    if not limited:
        assert captures(f) == 1 and not f.recompiles
    else:  # the way that fits 64 rows takes too much for 200
        assert captures(f) == 2 and "above the limit of memory" in f.recompiles[0]
    with pytest.raises(errors.OverBudget):
        torch.compile(module, dynamic=True, backend=backend, memory="100kB")(torch.randn(200, 32))


def test_reasons_name_what_is_another():
    f = torch.compile(lambda x, flag=None: x * 2, backend="numpy")
    for x in (torch.ones(4, 3), torch.ones(3), torch.ones(3).double(),
              torch.ones(3, dtype=torch.float64, requires_grad=True)):
        f(x)
    assert [r.rpartition("): ")[2] for r in f.recompiles] == [
        "x has 1 dims, the program is for 2", "x has dtype float64, the program is for float32",
        "x has requires_grad True, the program is for False"]


@pytest.mark.parametrize("requires_grad", [True, False])
@pytest.mark.parametrize("cut", [
    lambda x: x.chunk(2), lambda x: x.split(x.shape[0] // 2),
    lambda x: x.split([1, x.shape[0] - 1]), lambda x: x.split(2)[::-1]],
    ids=["chunk", "split", "sizes", "some"])
def test_pieces_of_an_input_at_other_sizes(cut, requires_grad):
    compiled = aot_function(cut, nop, dynamic=True)
    for rows in (4, 6, 8):
        x = torch.arange(rows * 3.0).reshape(rows, 3).clone().requires_grad_(requires_grad)
        found, wanted = compiled(x), cut(x)
        assert all(torch.equal(a, b) and a._base is x for a, b in zip(found, wanted, strict=True))
        if requires_grad:
            got = torch.autograd.grad(sum(t.sum() * i for i, t in enumerate(found)), x)
            assert torch.equal(*got, *torch.autograd.grad(
                sum(t.sum() * i for i, t in enumerate(wanted)), x))


def test_arguments_twice_and_sizes_as_results():
    """One tensor in two places, `torch.Size` among results, `x.expand(x.shape)`."""
    def f(x, y):
        return (x * y).sum(0) + x.expand(x.shape)[0], x.size(), y.shape[0] * 2

    for same in (True, False):
        g = aot_function(f, lambda m, _: m, dynamic=True)
        for n in (3, 5):
            x = torch.randn(n, 4, requires_grad=True)
            y = x if same else torch.randn(n, 4)
            got, want = g(x, y), f(x, y)
            assert torch.allclose(got[0], want[0])
            assert type(got[1]) is torch.Size and got[1] == want[1] and got[2] == want[2]
            grads = [torch.autograd.grad(out[0].sum(), x)[0] for out in (got, want)]
            assert torch.allclose(*grads)
        assert captures(g) == 1
