"""Control flow as operators: eager is a Python statement, captures must agree with it."""

import pickle

import numpy as np
import pytest

import pullback as torch
from pullback import func
from pullback.aot import aot_function
from pullback.control import associative_scan, map, out_dtype, scan, while_loop
from pullback.errors import CompileWarning
from pullback.fx.make_fx import make_fx
from pullback.pytree import tree_leaves
from pullback.torch.install import counterpart
from tests.helpers.compiler_graphs import keeping

W = torch.tensor([[0.5, -1.0, 0.2], [0.1, 0.3, -0.4], [1.0, 0.7, 0.6]], requires_grad=True)


def branches(x, y):
    z = y * 2
    return torch.cond(x.sum() > 0, lambda a: (a.sin() + z) @ W, lambda a: a.cos() * 3, (x,))


def mapped(x, y):
    return map(lambda a, b: a.sin() * b * x[0], x, y)


def scanned(x, y):
    carry, ys = scan(lambda c, v: ((c * v).sin(), c * v * y), y, x)
    return carry + ys.sum(0)


def scanned_tree(x, y):
    def step(c, v):
        return ({"a": (c["a"] * v).sin(), "n": c["n"] + 1}, (c["a"] * v * W.sum(), c["n"]))

    c, (u, n) = scan(step, {"a": y, "n": torch.tensor(0)}, x, reverse=True)
    return c["a"] + u.sum(0) + n.sum()


def prefixes(x, y):
    return associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (x, x + y), 0)[1]


def looped(x, y):
    return while_loop(lambda i, v: i < 4, lambda i, v: (i + 1, v * y), (torch.tensor(0), x))[1]


def values(*shape):
    torch.manual_seed(3)
    return torch.rand(*shape) - 0.3


POSITIVE, NEGATIVE, ROWS = torch.rand(3), -torch.rand(3), values(4, 3)
CASES = {
    "true": (branches, POSITIVE), "false": (branches, NEGATIVE), "map": (mapped, ROWS),
    "scan": (scanned, ROWS), "scan of trees": (scanned_tree, ROWS), "prefixes": (prefixes, ROWS),
    "while": (looped, POSITIVE),
}
differentiable = pytest.mark.parametrize("name", [c for c in CASES if c != "while"])
every = pytest.mark.parametrize("name", CASES)
Y = torch.tensor([0.4, -0.2, 0.9])


def same(found, wanted):
    for a, b in zip(tree_leaves(found), tree_leaves(wanted), strict=True):
        assert torch.allclose(a, b, atol=1e-5)


@every
@pytest.mark.parametrize("mode", ["real", "fake"])
def test_captures_agree(name, mode):
    f, x = CASES[name]
    graph = make_fx(f, tracing_mode=mode, _allow_non_fake_inputs=True)(x, Y)
    same(graph(x, Y), f(x, Y))
    again = pickle.loads(pickle.dumps(make_fx(lambda *a: graph(*a).detach())(x, Y)))
    same(again(x, Y), f(x, Y))  # a graph of a graph, through a pickle


@every
def test_batches(name):
    f, x = CASES[name]
    xs, ys = torch.stack([x, x * 2]), torch.stack([Y, Y * 2])
    by_x = torch.stack([f(x, Y), f(x * 2, Y)])
    by_y = torch.stack([f(x, Y), f(x, Y * 2)])
    same(torch.vmap(f, (0, None))(xs, Y), by_x)
    same(make_fx(torch.vmap(f, (0, None)))(xs, Y)(xs, Y), by_x)
    same(make_fx(torch.vmap(f, (None, 0)))(x, ys)(x, ys), by_y)


@differentiable
def test_derivatives_of_captures(name):
    f, x = CASES[name]

    def loss(x, y):
        return (f(x, y) ** 2).sum()

    def forward(x, y):
        return func.jvp(f, (x, y), (torch.ones_like(x), y))

    for g in (func.grad(loss, (0, 1)), forward, func.hessian(loss)):
        same(make_fx(g)(x, Y)(x, Y), g(x, Y))


@every
def test_compiled(name):
    f, x = CASES[name]
    compiled = torch.compile(f)
    same(compiled(x, Y), f(x, Y))
    if name != "while":
        found = []
        for g in (compiled, f):
            u, v = x.clone().requires_grad_(), Y.clone().requires_grad_()
            (g(u, v) ** 2).sum().backward()
            found.append([torch.zeros_like(t) if t.grad is None else t.grad for t in (u, v)])
        same(*found)


def test_gradients_of_a_loop():
    def loss(x, y):
        return (looped(x, y) ** 2).sum()

    slope = func.grad(loss, (0, 1))
    same(make_fx(slope)(POSITIVE, Y)(POSITIVE, Y), slope(POSITIVE, Y))
    found = []
    for f in (torch.compile(looped), looped):
        u, v = POSITIVE.clone().requires_grad_(), Y.clone().requires_grad_()
        (f(u, v) ** 2).sum().backward()
        found.append([u.grad, v.grad])
    same(*found)


def test_one_compiled_function_serves_both_branches():
    def f(x):
        return torch.cond(x.sum() > 0, lambda a: a + 1, lambda a: a - 1, (x,))

    compiled = torch.compile(f, fullgraph=True)
    assert compiled(torch.tensor([1.0])) == 2 and compiled(torch.tensor([-1.0])) == -2
    assert len(compiled.programs) == 1


def test_the_branch_not_taken_does_not_spoil_gradients():
    def f(x):
        return torch.cond(x.sum() > 0, lambda a: a.log(), lambda a: a * 2, (x,)).sum()

    x = torch.zeros(2, requires_grad=True)
    torch.compile(f)(x).backward()
    assert x.grad.tolist() == [2.0, 2.0]


# Prints as PyTorch 2.13 makes them of the same functions.
COND = """


def forward(self, x_1, y_1):
    mul = torch.ops.aten.mul.Tensor(y_1, 2);  y_1 = None
    sum_1 = torch.ops.aten.sum.default(x_1)
    gt = torch.ops.aten.gt.Scalar(sum_1, 0);  sum_1 = None
    true_graph_0 = self.true_graph_0
    false_graph_0 = self.false_graph_0
    cond = torch.ops.higher_order.cond(gt, true_graph_0, false_graph_0, (x_1, mul));  gt = true_graph_0 = false_graph_0 = x_1 = mul = None
    getitem = cond[0];  cond = None
    return getitem
    """  # noqa: E501
TRUE = """


def forward(self, arg0_1, arg1_1):
    sin = torch.ops.aten.sin.default(arg0_1);  arg0_1 = None
    add = torch.ops.aten.add.Tensor(sin, arg1_1);  sin = arg1_1 = None
    return (add,)
    """
MAP = """


def forward(self, xs_1, y_1):
    body_graph_0 = self.body_graph_0
    map_impl = torch.ops.higher_order.map_impl(body_graph_0, [xs_1], [y_1]);  body_graph_0 = xs_1 = y_1 = None
    getitem = map_impl[0];  map_impl = None
    return getitem
    """  # noqa: E501
SCAN = """


def forward(self, init_1, xs_1):
    scan_combine_graph_0 = self.scan_combine_graph_0
    scan = torch.ops.higher_order.scan(scan_combine_graph_0, [init_1], [xs_1], ());  scan_combine_graph_0 = init_1 = xs_1 = None
    getitem = scan[0]
    getitem_1 = scan[1];  scan = None
    return (getitem, getitem_1)
    """  # noqa: E501


def test_prints():
    def f(x, y):
        z = y * 2
        return torch.cond(x.sum() > 0, lambda a: a.sin() + z, lambda a: a.cos(), (x,))

    def m(xs, y):
        return map(lambda a, b: a.sin() * b, xs, y)

    def s(init, xs):
        return scan(lambda c, x: (c + x, (c * x).sin()), init, xs)

    graph = make_fx(f)(POSITIVE, Y)
    assert graph.code == COND and graph.true_graph_0.code == TRUE
    assert "    class false_graph_0(torch.nn.Module):" in graph.print_readable(False)
    assert make_fx(m)(ROWS, Y).code == MAP
    scanned = make_fx(s)(Y, ROWS)
    assert scanned.code == SCAN and "return [add, sin]" in scanned.scan_combine_graph_0.code
    target = next(n.target for n in graph.graph.nodes if n.name == "cond")
    assert target is torch.ops.higher_order.cond and str(target) == "cond"


def test_nodes_of_both_passes_know_their_line():
    made = []
    x = torch.rand(3, requires_grad=True)
    aot_function(lambda x: branches(x, Y), keeping(made))(x).sum().backward()
    for module in made:
        node = next(n for n in module.graph.nodes if n.name.rstrip("_1") == "cond")
        assert "in branches" in node.stack_trace
        assert all("in <lambda>" in n.stack_trace for n in module.get_submodule(
            node.args[1].target).graph.nodes if n.op == "call_function")


def test_nested():
    def f(x):
        def inner(a):
            return torch.cond(a[0] > 0.5, lambda b: b * 2, lambda b: b * 3, (a,))

        return torch.cond(x.sum() > 0, inner, lambda a: a - 1, (x,))

    graph = make_fx(f)(torch.ones(2))
    for x in (torch.ones(2), torch.tensor([0.1, 1.0]), -torch.ones(2)):
        same(graph(x), f(x))
    assert graph.true_graph_0.true_graph_0.code.count("mul") > 0


def test_refusals():
    x = torch.ones(3)
    with pytest.raises(RuntimeError, match="single-element"):
        torch.cond(x > 0, lambda a: a, lambda a: a, (x,))
    with pytest.raises(RuntimeError, match="callable"):
        torch.cond(x.sum() > 0, 3, lambda a: a, (x,))
    with pytest.raises(RuntimeError, match="tensor leaves"):
        torch.cond(x.sum() > 0, lambda a: a, lambda a: a, (3,))
    with pytest.raises(RuntimeError, match="different things"):
        make_fx(lambda x: torch.cond(x.sum() > 0, lambda a: a[:2], lambda a: a, (x,)))(x)
    with pytest.raises(RuntimeError, match="writes to a tensor"):
        make_fx(lambda x: torch.cond(x.sum() > 0, lambda a: a.add_(1), lambda a: a, (x,)))(x)
    with pytest.raises(RuntimeError, match="carried changes"):
        scan(lambda c, v: (c.sum(), v), x, x)
    with pytest.raises(RuntimeError, match="leading dims"):
        map(lambda a, b: a, (x, torch.ones(2)))
    with pytest.raises(RuntimeError, match="two values"):
        scan(lambda c, v: c + v, x[0], x)
    for reverse in (scan, associative_scan):
        with pytest.raises(RuntimeError, match="Reverse must be a bool"):
            args = (x[0], x) if reverse is scan else (x, 0)
            reverse(lambda c, v: (c, v), *args, reverse="yes")
    with pytest.raises(TypeError, match="dim must be an int"):
        scan(lambda c, v: (c, v), x[0], x, dim="0")
    with pytest.raises(RuntimeError, match="must be a callable"):
        map(3, x)
    with pytest.raises(RuntimeError, match="tensors and numbers"):
        while_loop(lambda a, b: False, lambda a, b: (a, b), (x, "text"))
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_wrappers_are_refused_in_captured_branches():
    from pullback.testing.two_tensor import TwoTensor

    two = TwoTensor(torch.ones(3), torch.full((3,), 2.0))

    def given(x):
        return torch.cond(x.a.sum() > 0, lambda a: a * 2, lambda a: a * 3, (x,))

    def outside(x):
        return torch.cond(x.a.sum() > 0, lambda a: a * x, lambda a: a * 3, (x.a,))

    assert given(two).b.tolist() == [4.0] * 3
    for f in (given, outside):
        with pytest.raises(RuntimeError, match="reads a TwoTensor"):
            torch.compile(f)(two)


def test_a_batch_of_loops_runs_until_the_last_has_ended():
    def f(n):
        return while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t + i), (
            torch.tensor(0), torch.tensor(0)))[1]

    ns = torch.tensor([0, 1, 4])
    assert torch.vmap(f)(ns).tolist() == [0, 0, 6]
    assert make_fx(torch.vmap(f))(ns)(torch.tensor([5, 2, 0])).tolist() == [10, 1, 0]


def test_torchs_paths():
    cond_op = counterpart("torch._higher_order_ops.cond").cond_op
    found = counterpart("torch._higher_order_ops.while_loop").while_loop
    assert cond_op is torch.ops.higher_order.cond and found is while_loop


def test_eager_forms():
    x = torch.arange(6.0).reshape(3, 2)
    carry, ys = scan(lambda c, v: (c + v, c * v), torch.zeros(3), x, dim=1)
    assert carry.tolist() == [1, 5, 9] and ys.tolist() == [[0, 0], [0, 6], [0, 20]]
    assert make_fx(lambda x: scan(lambda c, v: (c + v, c * v), torch.zeros(3), x, dim=1))(x)(
        x)[1].tolist() == ys.tolist()
    n, v = while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), (0, x))
    assert n == 3 and type(n) is int and v.tolist() == (x * 8).tolist()
    assert torch.cond(1, lambda a: a, lambda a: -a, (x,)) is x


def test_products_with_a_wider_dtype():
    x = torch.tensor([[100, -3], [7, 127]], dtype=torch.int8)
    w = torch.tensor([[90, 2], [-1, 120]], dtype=torch.int8)

    def function(x, w):
        return out_dtype(torch.ops.aten.mm.default, torch.int32, x, w)

    exact = (x.int() @ w.int())
    assert torch.equal(function(x, w), exact) and function(x, w).dtype is torch.int32
    scaled = out_dtype(torch.ops.aten.mul.Scalar, torch.int32, x, 3)
    assert scaled.tolist() == [[300, -9], [21, 381]]
    for mode in ("real", "symbolic"):
        graph = make_fx(function, tracing_mode=mode)(x, w)
        assert "higher_order.out_dtype(torch.ops.aten.mm.default, torch.int32, x_1," in graph.code
        assert torch.equal(graph(x, w), exact)
    assert torch.equal(torch.compile(function)(x, w), exact)
    a = torch.ones(2, 2, requires_grad=True)
    torch.compile(lambda a: out_dtype(torch.ops.aten.mm.default, torch.float64, a, a).sum())(
        a).backward()
    assert torch.equal(a.grad, torch.full((2, 2), 4.0))
    aten = torch.ops.aten
    for op, says in ((aten.add.Tensor, "only allows"), (aten.mm, "must be an OpOverload"),
                     (aten.add_.Tensor, "functional"), (aten.topk.default, "single tensor")):
        with pytest.raises(ValueError, match=says):
            out_dtype(op, torch.int32, x, w)


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_scans_stack_where_they_can(dim):
    xs = torch.arange(24.0).reshape(2, 3, 4)

    def step(carry, x):
        return carry + 1, x.sum(), x.sum(0), x + carry

    _, (small, row, same) = scan(
        lambda c, x: (step(c, x)[0], step(c, x)[1:]), torch.zeros(()), xs, dim=dim)
    slices = xs.movedim(dim, 0)
    place = dim % 3
    assert torch.equal(small, slices.sum((1, 2)))
    assert torch.equal(row, slices.sum(1) if place > 1 else slices.sum(1).movedim(0, place))
    want = torch.stack([x + i for i, x in enumerate(slices)]).movedim(0, place)
    assert torch.equal(same, want)


def test_branches_may_give_their_tensors_other_memory():
    def taken(x):
        y = x.clone()
        first = y[:1]
        y.set_(x * 2)
        first.add_(1)  # of the memory that y had
        return first + y

    def turned(x):
        y = x * 1
        rest = y[1:]
        y.set_(rest)
        rest.mul_(3)
        return torch.cat([y, y[:1]])

    x = torch.tensor([1.0, 2.0, 3.0])
    for branch in (taken, turned):
        def chosen(x, branch=branch):
            return torch.cond(x.sum() > 0, branch, lambda x: x * 3, (x,))

        expected = branch(x.clone())
        assert torch.equal(torch.compile(chosen)(x), expected)
        assert torch.equal(make_fx(chosen)(torch.ones(3))(x), expected)


def half_recorded(x):
    with torch.no_grad():
        y = x * 2
        z = y.sin()
    return x * y + z + x.detach() * x


@pytest.mark.parametrize("program", [
    lambda x: torch.cond(x.sum() > 0, half_recorded, lambda x: x * 1, (x,)),
    lambda x: map(half_recorded, x),
    lambda x: scan(lambda c, v: (c + half_recorded(v), half_recorded(c)), x[0] * 1, x)[1],
    lambda x: while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, half_recorded(x)),
                         (torch.tensor(0), x))[1],
], ids=["cond", "map", "scan", "while_loop"])
def test_no_grad_inside_of_captured_functions_stops_gradients_not_tangents(program):
    x = torch.tensor([[1.0, 2.0], [0.5, 1.0]], requires_grad=True)
    tangent = torch.tensor([[1.0, -1.0], [2.0, 0.5]])
    compiled = torch.compile(program, fullgraph=True)
    found, wanted = [torch.autograd.grad(f(x).sum(), x)[0] for f in (compiled, program)]
    assert torch.allclose(found, wanted)
    found, wanted = [func.jvp(f, (x.detach(),), (tangent,))[1] for f in (compiled, program)]
    assert torch.allclose(found, wanted)


def agrees_but_is_no_graph(branch, x, why):
    """compile() runs such a function as it is written; where it must be a graph it is refused."""
    def program(x):
        return torch.cond(x.sum() > 0, branch, lambda x: x * 1, (x,))

    with torch.no_grad():
        assert torch.allclose(torch.compile(program, fullgraph=True)(x), branch(x))
    with pytest.warns(CompileWarning, match=why):
        found = torch.autograd.grad(torch.compile(program)(x).sum(), x)[0]
    assert torch.equal(found, torch.autograd.grad(branch(x).sum(), x)[0])
    with pytest.raises(RuntimeError, match=why):
        torch.compile(program, fullgraph=True)(x).sum().backward()


def test_writes_without_recording_in_a_branch():
    def branch(x):
        y, free = x * 2, torch.zeros(2)
        with torch.no_grad():
            free += x
            if writes:
                y.mul_(7)
        return y + free

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    writes = False  # to what has no history
    torch.compile(lambda x: torch.cond(x.sum() > 0, branch, branch, (x,)), fullgraph=True)(
        x).sum().backward()
    assert x.grad.tolist() == [2, 2]
    writes = True
    agrees_but_is_no_graph(branch, x, "is written without recording")


class Scaled(torch.autograd.Function):
    """Its `backward` is not the derivative of what it computes."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor, x > 0, x.sin()

    @staticmethod
    def backward(ctx, g, _, h):
        x, = ctx.saved_tensors
        return g * 100 + h * x * ctx.factor, None


def custom(x):
    y, positive, z = Scaled.apply(x, 2.0)
    return y * z * positive


@pytest.mark.parametrize("program", [
    lambda x: torch.cond(x.sum() > 0, custom, lambda x: x * 1, (x,)),
    lambda x: torch.cond(x.sum() > 0, lambda x: torch.cond(
        x.max() > 0, custom, lambda x: x * 1, (x,)) * custom(x), lambda x: x * 1, (x,)),
    lambda x: map(custom, x),
    lambda x: scan(lambda c, v: (c * custom(v), custom(c)), x[0] * 1, x)[1],
    lambda x: while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, custom(x) * 0.1),
                         (torch.tensor(0), x))[1],
], ids=["cond", "nested", "map", "scan", "while_loop"])
def test_backwards_of_custom_functions_count_in_captured_ones(program):
    x = torch.tensor([[1.0, 2.0], [0.5, 1.0]], requires_grad=True)
    found, wanted = [torch.autograd.grad(f(x).sum(), x)[0]
                     for f in (torch.compile(program, fullgraph=True), program)]
    assert torch.allclose(found, wanted)
    assert "Scaled" not in make_fx(program)(x.detach()).print_readable(False)


def test_custom_functions_that_read_more_than_their_arguments():
    class Reads(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x @ W

        @staticmethod
        def backward(ctx, g):
            return g * 100

    x = torch.ones(2, 3, requires_grad=True)
    agrees_but_is_no_graph(Reads.apply, x, "Reads reads a tensor from outside")


def test_draws_and_hooks_in_branches_have_no_graph_for_their_gradients():
    def draws(x):
        return x * torch.rand_like(x)

    def hooked(x):
        y = x * 2
        if y.requires_grad:
            y.register_hook(lambda g: g * 10)
        return y * x

    def module_hooked(x):
        return layer(x)

    layer = torch.nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda module, grads, _: (grads[0] * 10,))
    x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    for branch, why in ((draws, "rand_like draws random numbers"), (hooked, "a hook is registered"),
                        (module_hooked, "a hook is registered")):
        def seeded(x, branch=branch):
            torch.manual_seed(3)
            return branch(x)

        agrees_but_is_no_graph(seeded, x, why)


def test_operands_of_captured_functions_require_grad_as_they_do_outside():
    def branch(x):
        y = x * 2 if x.requires_grad else x * 3
        slope, = torch.autograd.grad((y * y).sum(), x, create_graph=True)
        return slope * y if y.requires_grad else slope

    for program in (lambda x: torch.cond(x.sum() > 0, branch, lambda x: x * 1, (x,)),
                    lambda x: map(branch, x)):
        x = torch.tensor([[1.0, 2.0]], requires_grad=True)
        found, wanted = [torch.autograd.grad(f(x).sum(), x)[0]
                         for f in (torch.compile(program, fullgraph=True), program)]
        assert torch.equal(found, wanted)


def test_branches_that_write_buffers_run_as_written():
    def step(compiled):
        norm = torch.nn.BatchNorm1d(3)
        program = lambda x: torch.cond(x.sum() > 0, norm, lambda x: x * 1, (x,))
        x = torch.arange(6.0).reshape(2, 3).requires_grad_()
        out = (torch.compile(program) if compiled else program)(x)
        (out * x.detach()).sum().backward()
        return [out, x.grad, norm.weight.grad, *norm.buffers()]

    with pytest.warns(CompileWarning, match="writes to a tensor"):
        found = step(True)
    for a, b in zip(found, step(False), strict=True):
        assert torch.allclose(a, b)


UNUSED = {
    "cond": lambda x: torch.cond(
        x.sum() > 0, lambda x: (x * 2, x.exp()), lambda x: (x, x), (x,))[0],
    "map": lambda x: map(lambda row: (row * 2, row.exp()), x)[0],
    "scan": lambda x: scan(lambda c, v: (c * 0.5 + v, v.exp()), x[0], x)[0],
}


@pytest.mark.parametrize("name", UNUSED)
def test_results_that_nobody_uses_have_no_part_in_gradients(name):
    """Zeros for them met exp(200) in captures: NaN, where eager mode has none."""
    f, x = UNUSED[name], torch.tensor([[1.0, 200.0], [2.0, 3.0]], requires_grad=True)
    wanted = torch.autograd.grad(f(x).sum(), x)[0]
    for g in (torch.compile(f, backend="numpy"), torch.compile(lambda x: f(x).sum())):
        assert torch.autograd.grad(g(x).sum(), x)[0].tolist() == wanted.tolist()


def test_graphs_of_one_result_run_on_arrays():
    """The test of a loop returns a tensor, not a tuple of one."""
    from pullback.capture.build import boxed

    for value in (0.5, 1.5):
        assert boxed(lambda x: x > 1)(np.array(value)) == (np.array(value > 1),)
