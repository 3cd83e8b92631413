"""Memory as a limit: simulated and measured peaks, monotone; brute force and knapsack."""

import itertools
import math

import numpy as np
import pytest

import pullback as torch
from bench import cut as bench
from bench.memory import traced
from pullback.capture.capture import capture
from pullback.compile import native
from pullback.compile.errors import CompileWarning
from pullback.compile.meter import Planned
from pullback.cut import budget, simulate
from pullback.cut import eager_peak as eager
from pullback.cut.partition import (
    PartitionError,
    _cut,
    default_partition,
    min_cut_rematerialization_partition,
)
from pullback.cut.simulate import Meter, Taken
from pullback.cut.split import JointGraph, ancestors
from pullback.decomp import Everything
from pullback.errors import ArgumentError, DataDependentError, OverBudget
from pullback.nn import functional as F

cut = min_cut_rematerialization_partition


def weights(count, *shape):
    torch.manual_seed(0)
    return [(torch.randn(*shape) * 0.1).requires_grad_() for _ in range(count)]


def residual(x, *ws):
    for w in ws:
        x = x + torch.tanh(F.layer_norm(x, (x.shape[-1],)) @ w) @ w.T
    return x


def chain(x, *ws):
    for w in ws:
        x = torch.sin(x @ w)
    return x


def attention(x, w, v):
    q, k, u = (x @ w).chunk(3, -1)
    return (F.dropout((q @ k.transpose(-1, -2)).softmax(-1), 0.1) @ u) @ v


def pooled(x, w, v):
    x = F.max_pool2d(F.relu(F.conv2d(x, w, padding=1)), 2)
    return F.max_pool2d(F.relu(F.conv2d(x, v, padding=1)), 2).exp()


SIZES = {  # function -> how many arguments of which shape, small and large
    residual: ([(1, 64, 32), (4, 32, 64)], [(1, 512, 64), (4, 64, 256)]),
    chain: ([(7, 48, 48)], [(7, 256, 256)]),
    attention: ([(1, 2, 32, 16), (1, 16, 48), (1, 16, 16)],
                [(1, 4, 128, 64), (1, 64, 192), (1, 64, 64)]),
    pooled: ([(1, 2, 3, 16, 16), (1, 8, 3, 3, 3), (1, 4, 8, 3, 3)],
             [(1, 4, 3, 64, 64), (1, 16, 3, 3, 3), (1, 8, 16, 3, 3)]),
}


def models(column):
    """Name -> function, how to make its arguments."""
    return {function.__name__: (function, lambda made=columns[column]: [
        w for shape in made for w in weights(*shape)]) for function, columns in SIZES.items()}


MODELS = models(0)
LARGE = models(1)  # so large that Python's own objects do not matter


def joint_of(name):
    function, make = MODELS[name]
    run = torch.compile(function, backend="numpy", options={"fuse_backward": False})
    run(*make())
    (program,) = run.programs.values()
    return program.joint.module


@pytest.fixture(params=MODELS)
def joint(request):
    return joint_of(request.param)


# The rules ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("meter", [Meter(), Planned()], ids=["operators", "planned"])
def test_more_memory_is_never_slower_and_less_is_never_higher(joint, meter):
    def at(memory):
        return cut(joint, 1, memory=memory, meter=meter).report

    least, most = at(0.0).phases.peak, at(math.inf).phases.peak
    assert least <= most
    ladder = [at(int(least + (most - least) * k / 4)) for k in range(5)]
    limits = [least + (most - least) * k / 4 for k in range(5)]
    assert all(report.phases.peak <= limit for report, limit in zip(ladder, limits))
    peaks = [report.phases.peak for report in ladder]
    assert peaks == sorted(peaks)
    works = [report_work(joint, report) for report in ladder]
    assert works == sorted(works, reverse=True)
    kept = [at_most(joint, meter, eager) for eager in (least, (least + most) // 2, most)]
    assert all(report.phases.peak <= report.eager for report in kept)
    with pytest.raises(OverBudget, match="at least") as caught:
        at(least - 1)
    assert budget.shown(least) in str(caught.value)


def at_most(module, meter, eager):
    """Without a limit but that of eager execution."""
    return cut(module, 1, memory=math.inf, meter=meter, eager=eager).report


def report_work(module, report):
    """The work of what was chosen, as the choice orders it."""
    return next(w.work for w in all_ways(module) if w.name == report.way.removesuffix(budget.TIGHT))


def all_ways(module):
    from pullback.cut.prepare import prepared

    return list(budget.ways(JointGraph(prepared(module), 1)))


def test_the_graphs_compute_the_same(joint):
    for way in all_ways(joint):
        partition = _cut(way_joint(joint), remap(joint, way), None)
        partition.forward.graph.lint()
        partition.backward.graph.lint()
        names = [n.name for n in partition.backward.graph.nodes if n.op == "placeholder"]
        saved = [n.name for n in partition.forward.graph.output_node().args[0][1:]]
        assert [n for n in names if "tangents" not in n] == saved


_joints: dict = {}


def way_joint(module):
    from pullback.cut.prepare import prepared

    return _joints.setdefault(id(module), JointGraph(prepared(module), 1))


def remap(module, way):
    by_name = {n.name: n for n in way_joint(module).nodes}
    return [by_name[n.name] for n in way.saved]


@pytest.mark.parametrize("memory", [0.0, 0.5, "1GB"])
@pytest.mark.parametrize("name", ["residual", "attention"])
def test_values_and_gradients_are_eagers(name, memory):
    function, make = MODELS[name]
    args = [a.detach().double().requires_grad_() for a in make()]
    run = torch.compile(function, memory=memory)
    found = []
    for f in (run, function):
        torch.manual_seed(5)
        out = f(*args)
        found.append([out, *torch.autograd.grad(out.sin().sum(), args)])
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(
            ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-9, atol=1e-11)


# Measured -----------------------------------------------------------------------------------------


def warmed(function, args, times=13):
    """Call a function until it is compiled, or its operators are called by plan."""
    for _ in range(times):
        out = function(*args)
        torch.autograd.grad(out, [a for a in args if a.requires_grad], torch.ones_like(out))


def measured(function, args, rounds=1):
    """Peak of traced memory during (the last) forward and backward, and the gradients."""
    return traced(torch, function, args, rounds)


def test_the_simulated_peak_is_what_is_measured_and_never_above_eager():
    args = [*weights(1, 512, 64), *weights(4, 64, 256)]
    eager, expected = measured(residual, args)
    for memory in (0.0, 0.6, math.inf):
        run = torch.compile(residual, backend="numpy", memory=memory)
        warmed(run, args, 1)
        peak, grads = measured(run, args)
        said = run.report().phases.peak
        assert abs(peak - said) < 0.04 * said
        assert peak < eager
        for ours, theirs in zip(grads, expected):
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["residual", "chain", "attention"])
def test_the_planned_peak_is_measured(name):
    """Of native code: `tracemalloc` counts the blocks of its allocator, too."""
    function, args = LARGE[name]
    args = args()
    warmed(function, args)
    eager, _ = measured(function, args)
    for memory in (0.0, 1.0):
        run = torch.compile(function, memory=memory)
        warmed(run, args, 1)
        native.runtime().trim()  # so that the workspace counts, too
        peak, _ = measured(run, args, rounds=2)
        report = run.report()
        assert abs(peak - report.phases.peak) < 0.05 * peak, (memory, peak, report.phases)
        assert peak < eager
        assert abs(eager - report.eager) < 0.05 * eager


# Oracles ------------------------------------------------------------------------------------------


def subsets(joint, free):
    """All ways to cut a small joint graph, by trying: (peak, work, values) where it is possible."""
    choices = [n for n in joint.candidates if n in joint.forward and free.keep[n] < math.inf]
    for size in range(len(choices) + 1):
        for saved in itertools.combinations(choices, size):
            kept = set(saved)
            again = ancestors(joint.demand, stop=kept) - kept
            if any(free.again.get(n, 0) == math.inf for n in again):
                continue
            if not kept <= ancestors(joint.demand, stop=kept):
                continue  # saved in vain
            try:
                partition = _cut(joint, [n for n in joint.nodes if n in kept], None)
            except PartitionError:
                continue
            yield Meter().phases(*partition, 1).peak, budget._work(free, list(saved)), saved


def tiny(x, w):
    return torch.sin(torch.sin(torch.sin(x @ w) @ w) @ w)


def forked(x, w):
    h = torch.sin(x @ w)
    return torch.cos(h @ w) * torch.exp(x @ w.T)


def narrow(x, w):
    return torch.exp(torch.sin(x @ w[:, :2]).exp() @ w[:2]).sin()


def hull(points):
    """The corners of the lower hull of (bytes, work), from the least work to the fewest bytes."""
    found = []
    for size, work in sorted(points, key=lambda p: (p[1], p[0])):
        if found and size >= found[-1][0]:
            continue
        while len(found) > 1 and (found[-1][1] - found[-2][1]) * (found[-1][0] - size) >= (
                work - found[-1][1]) * (found[-2][0] - found[-1][0]):
            found.pop()
        found.append((size, work))
    return found


@pytest.mark.parametrize("function", [tiny, forked, narrow])
def test_against_brute_force(function, monkeypatch):
    """Exact are, by construction: the plain cut, and the cuts by price, which are all the corners
    of (bytes, work).  The least peak and the work at a limit are found here, too, where kernels
    take nothing inside, but need not be: peaks are no sums, and between two corners of the hull
    there may be cuts that nobody looks for, as in a chain of equal steps."""
    monkeypatch.setattr(simulate, "inside_of", simulate.own_bytes)
    run = torch.compile(function, backend="numpy")
    run(*weights(2, 24, 24))
    (program,) = run.programs.values()
    joint = JointGraph(program.joint.module, 1)
    plain = budget.recompute_problem(joint)
    free = budget._with_arithmetic(joint, plain)
    new = budget.new_memory(joint)
    tried = list(subsets(joint, free))
    assert len(tried) > 8

    def size(saved):
        return sum(new.get(v, 0) for v in saved)

    cost, _ = budget.solve(plain)
    assert cost == min(budget._work(plain, saved) for _, _, saved in tried)
    found = {(size(w.saved), w.work) for w in budget._by_price(free, new)}
    assert hull(found) == hull((size(saved), work) for _, work, saved in tried)
    ours = []
    for way in budget.ways(joint):
        partition = _cut(joint, way.saved, None)
        ours.append((Meter().phases(*partition, 1).peak, budget._work(free, way.saved)))
    peaks = sorted({peak for peak, _, _ in tried})
    assert min(peak for peak, _ in ours) == peaks[0]
    for limit in peaks:
        best = min(work for peak, work, _ in tried if peak <= limit)
        work = min(work for peak, work in ours if peak <= limit)
        assert best <= work <= (1.01 if function is tiny else 1) * best


def branches(x, *ws):
    """Independent values of different sizes and prices."""
    total = 0
    for w in ws:
        total = total + torch.sin(x[:, : w.shape[0]] @ w).sum(1)
    return total


def knapsack(items, room):
    """Least total work of what is left out, by dynamic programming over bytes."""
    best = {0: 0}
    for size, work in items:
        following: dict = {}
        for used, lost in best.items():
            for taken, more in ((size, 0), (0, work)):
                if used + taken <= room:
                    key = used + taken
                    following[key] = min(following.get(key, math.inf), lost + more)
        best = following
    return min(best.values())


def test_against_a_knapsack():
    sizes = [(8, 40), (16, 8), (32, 24), (64, 16), (24, 56), (48, 4)]
    args = [torch.randn(20, 64, requires_grad=True)]
    args += [(torch.randn(*s) * 0.1).requires_grad_() for s in sizes]
    run = torch.compile(branches, backend="numpy", options={"fuse_backward": False})
    run(*args)
    (program,) = run.programs.values()
    joint = JointGraph(program.joint.module, 1)
    free = budget._with_arithmetic(joint, budget.recompute_problem(joint))
    new = budget.new_memory(joint)
    products = [n for n in joint.candidates if str(n.target) == "aten.mm.default"]
    items = [(new[n], free.again[n] - free.keep[n]) for n in products]
    assert len(items) == len(sizes)
    assert all(work > 0 for _, work in items)
    for way in budget._by_price(free, new):
        kept = [n for n in products if n in way.saved]
        room = sum(new[n] for n in kept)
        lost = sum(free.again[n] - free.keep[n] for n in products if n not in way.saved)
        assert lost == knapsack(items, room)  # a corner of the hull is optimal for its size
    corners = sorted({sum(n in way.saved for n in products) for way in budget._by_price(free, new)})
    assert corners == list(range(len(sizes) + 1))  # one value after another


# Input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "bytes_"),
    [("500MB", 500_000_000), ("1.5 GiB", 3 << 29), ("2k", 2000), ("10", 10), (4096, 4096),
     (0.25, 0.25), (1, 1.0), (0, 0.0), ("1e3", 1000), (math.inf, math.inf)],
)
def test_amounts(given, bytes_):
    assert budget.parse_memory(given) == bytes_


@pytest.mark.parametrize("given", ["", "much", "-1", "12XB", -5, True, [1], math.nan, "inf"])
def test_what_is_no_amount(given):
    with pytest.raises(ArgumentError, match="no amount of memory"):
        torch.compile(residual, memory=given)


def test_pytorchs_setting():
    module = joint_of("residual")
    plain = cut(module, 1).report.saved_bytes
    with torch.aot.config.patch(activation_memory_budget=0.0):
        none = cut(module, 1).report.saved_bytes
    with torch.aot.config.patch(activation_memory_budget=0.5):
        half = cut(module, 1).report.saved_bytes
    assert none <= half < plain


def test_limits_hold_for_every_size():
    run = torch.compile(residual, memory=0.0, dynamic=True)
    ws = weights(3, 16, 32)
    peaks = []
    for rows in (8, 24, 80):
        x = torch.randn(rows, 16, requires_grad=True)
        grads = torch.autograd.grad(run(x, *ws).sin().sum(), [x, *ws])
        for ours, theirs in zip(grads, torch.autograd.grad(residual(x, *ws).sin().sum(), [x, *ws])):
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-3, atol=1e-4)
        peaks.append(run.report().phases.peak)
    assert peaks == sorted(set(peaks))


def test_the_setting_with_symbolic_sizes():
    with torch.aot.config.patch(activation_memory_budget=0.0):
        run = torch.compile(chain, dynamic=True, options={"fuse_backward": False})
        for rows in (3, 5):
            args = [torch.randn(rows, 48, requires_grad=True), *weights(3, 48, 48)]
            ours = torch.autograd.grad(run(*args).sum(), args)
            for a, b in zip(ours, torch.autograd.grad(chain(*args).sum(), args)):
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-3, atol=1e-4)


def test_a_limit_is_checked_when_the_function_is_first_called():
    run = torch.compile(residual, memory="1kB")
    with pytest.raises(OverBudget, match="at least"):
        run(*MODELS["residual"][1]())


# Reports ------------------------------------------------------------------------------------------


def test_the_report_is_a_table():
    run = torch.compile(residual, memory=0.5, backend="numpy")
    with pytest.raises(torch.errors.CompileError, match="nothing was compiled"):
        run.report()
    run(*MODELS["residual"][1]())
    report = run.report()
    text = str(report)
    first = text.splitlines()[0].split()
    assert first == ["value", "action", "bytes", "flops", "why"]
    assert len(text.splitlines()) == len(report.rows) + 1 + len(report.totals())
    assert {row.action for row in report.rows} == {"saved", "recomputed"}
    product = next(row for row in report.recomputed if row.name.startswith("mm"))
    assert product.flops == 2 * 64 * 32 * 64
    assert product.line.startswith("test_budget.py:")
    assert "simulated peak" in text
    table = report.__rich__()
    assert table.row_count == len(report.rows)
    assert [c.header for c in table.columns] == ["value", "action", "bytes", "flops", "why", "line"]


def test_a_partitioner_without_a_report_gets_one():
    def mine(joint, inputs, *, num_fwd_outputs):
        return tuple(default_partition(joint, num_fwd_outputs))

    run = torch.aot.aot_function(residual, torch.aot.nop, partition_fn=mine)
    run(*MODELS["residual"][1]())
    report = run.report()
    assert report.saved
    assert not report.recomputed


# Eager execution, fused losses --------------------------------------------------------------------


@pytest.mark.parametrize(  # all models: `python -m bench.memory --models`
    "name", ["norms", "mlp", "dropout_mlp", "conv_net", "rnn", "logistic_regression", "graph_net"])
def test_the_peak_of_eager_execution_is_the_measured_one(name):
    function, args = bench.MODELS[name](torch, F)
    warmed(function, args)
    peak, _ = measured(function, args)
    flat, spec = torch.utils._pytree.tree_flatten((tuple(args), {}))
    joint = capture(function, flat, spec, Everything(set()), True, watch=True)
    some = 4096  # of Python's own, which count in the smallest model
    assert abs(eager.peak(joint.module.diary) - peak) < 0.05 * peak + some


@pytest.mark.parametrize(  # all models: `python -m bench.memory --models`
    "name", ["mlp", "dropout_mlp", "separable_conv"])
def test_compiled_peaks_are_not_above_eager_ones(name):
    torch.manual_seed(0)
    function, args = bench.MODELS[name](torch, F)
    warmed(function, args)
    eager, _ = measured(function, args, rounds=2)
    run = torch.compile(function, memory=1.0)
    warmed(run, args, 1)
    native.runtime().trim()
    peak, _ = measured(run, args, rounds=2)
    assert peak <= eager
    assert abs(peak - run.report().phases.peak) < 0.05 * peak


def loss(x, *ws):
    return residual(x, *ws).square().mean()


def test_a_loss_that_fits_is_fused_and_others_are_not():
    args = LARGE["residual"][1]()
    expected = torch.autograd.grad(loss(*args), args)
    ways = {}
    for memory in (math.inf, 1.0, 0.0):
        run = torch.compile(loss, memory=memory)
        for ours, theirs in zip(torch.autograd.grad(run(*args), args), expected):
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-3, atol=1e-4)
        ways[memory] = run.report()
        assert ("loss_and_gradients" in {p.name for p in run.parts().values()}) == (
            run.report().way == budget.FUSED)
    assert ways[math.inf].way == ways[1.0].way == budget.FUSED
    assert not ways[1.0].rows
    assert ways[0.0].way != budget.FUSED
    assert ways[0.0].phases.peak < ways[1.0].phases.peak <= ways[1.0].eager
    plain = torch.compile(loss)
    plain(*args)
    assert {p.name for p in plain.parts().values()} == {"loss_and_gradients"}


def test_a_loss_that_is_never_differentiated_goes_back_to_a_cut_within_the_limit():
    args = LARGE["residual"][1]()
    run = torch.compile(loss, memory=1.0)
    for _ in range(5):
        run(*args)
    report = run.report()
    assert report.way != budget.FUSED
    assert report.rows


def test_a_limit_that_only_eager_execution_keeps(monkeypatch):
    """Where compiled code takes more than eager execution the function runs as it is."""
    taken = Planned.taken

    def dear(self, module, tight=False):
        found = taken(self, module, tight)
        return Taken(found.most, found.shared + (1 << 20))

    monkeypatch.setattr(Planned, "taken", dear)
    torch.manual_seed(0)
    fn, args = bench.mlp(torch, F)
    plenty = torch.compile(fn, memory="1GB")
    plenty(*args)
    report = plenty.report()
    peak, own = report.phases.peak, report.eager
    assert own < peak
    between = (own + peak) // 2
    frugal = torch.compile(fn, memory=between)
    with pytest.warns(CompileWarning, match="enough for eager execution"):
        loss = frugal(*args)
    leaves = [a for a in args if a.requires_grad]
    want = torch.autograd.grad(fn(*args), leaves)
    assert all(map(torch.equal, torch.autograd.grad(loss, leaves), want))
    with pytest.raises(DataDependentError, match="less than compiled code needs"):
        torch.compile(fn, memory=between, fullgraph=True)(*args)
    with pytest.raises(OverBudget, match="at least"):
        torch.compile(fn, memory=own // 2)(*args)
