"""`activation_memory_budget`: what is saved is a share, and what is repeated is what is cheapest.

The numbers are those of PyTorch's own tests of the setting, with matrices of 8 rows for 512: memory
in squares of float32, arithmetic in products of squares.
"""

import itertools
import random

import pytest

import pullback as torch
from pullback import aot
from pullback.aot import config
from pullback.cut import knapsack
from pullback.cut.partition import min_cut_rematerialization_partition

SIDE = 8
NAMES = ("mm", "_scaled_dot_product")


def leaf(rows, columns):
    return torch.randn(rows * SIDE, columns * SIDE, requires_grad=True)


def pair(inner, outer):
    return leaf(inner, inner), leaf(inner, outer)


def cut(function, args, budget, **settings):
    """Memory that is saved, arithmetic that is repeated, and the partition."""
    found = []

    def partition(*given, **named):
        found.append(min_cut_rematerialization_partition(*given, **named))
        return found[-1]

    with config.patch(activation_memory_budget=budget, **settings):
        aot.aot_function(function, aot.nop, partition_fn=partition)(*args).backward()
    report = found[0].report
    new = [row for row in report.saved if not row.reason.endswith("already in memory")]
    again = [row.flops for row in report.recomputed if row.name.startswith(NAMES)]
    return (sum(row.bytes for row in new) / (4 * SIDE**2), sum(again) / (2 * SIDE**3), found[0])


def chain(x, *weights):
    x = x.cos()
    for w in weights:
        x = torch.mm(x, w).cos()
    return x.sum()


def one_by_one(x, *weights):
    return sum(torch.mm(x, w).cos().sum() for w in weights)


def in_pairs(*args):
    return sum(torch.mm(x, w).cos().sum() for x, w in zip(args[::2], args[1::2]))


def attention(x, w):
    shape = x.shape
    x = x.reshape(1, 1, *shape)
    x = torch.nn.functional.scaled_dot_product_attention(x, x, x).reshape(shape)
    return torch.mm(x, w).cos().sum()


def test_pointwise_operators_come_first():
    args = leaf(1, 1), leaf(1, 1)
    function = lambda x, w: torch.mm(x.cos(), w).sum()
    assert cut(function, args, 1.0)[:2] == (1, 0)
    assert cut(function, args, 0.5)[:2] == (0, 0)


@pytest.mark.parametrize("solver", ["dp", "ilp", "greedy"])
def test_a_chain_of_equal_products(solver):
    args = [leaf(1, 1) for _ in range(6)]
    for tenths in range(11):
        memory, work, _ = cut(
            chain, args, tenths / 10, activation_memory_budget_solver=solver)
        if tenths <= 5:
            assert (memory, work) == (tenths, 5 - tenths)
        else:
            assert (memory, work) == (5 if tenths < 10 else 10, 0)


def _sums():
    random.seed(0)
    sizes, sums = [random.randint(0, 50) for _ in range(10)], []
    for count in range(10):
        random.shuffle(sizes)
        sums.append(sum(sizes[:count]))
    return sizes, sums


@pytest.mark.parametrize("solver", ["dp", "ilp", "dp_knapsack_sliding_hirschberg"])
@pytest.mark.parametrize(("sizes", "sums"), [
    ([11, 3, 4, 2], [18, 17, 16, 15, 14, 13, 11, 7, 6, 5]),
    ([3, 5, 11, 17, 14], [42, 30, 19, 8, 3]), _sums()], ids=["four", "five", "ten"])
def test_products_of_one_price_fill_the_room(sizes, sums, solver):
    args = [leaf(1, 1), *[leaf(1, n) for n in sizes]]
    for room in sums:
        memory, _, _ = cut(one_by_one, args, room / sum(sizes),
                           activation_memory_budget_solver=solver)
        assert memory == room


def test_cheaper_products_are_repeated():
    args = [*pair(1, 4), *pair(2, 2)]
    assert cut(in_pairs, args, 1.0)[:2] == (8, 0)
    assert cut(in_pairs, args, 0.5)[:2] == (4, 4)
    args = [*pair(4, 4), *pair(6, 2), *pair(2, 6)]
    assert cut(in_pairs, args, 28 / 40)[:2] == (28, 2 * 2 * 6)
    assert cut(in_pairs, args, 16 / 40)[:2] == (12, 2 * 2 * 6 + 4 * 4 * 4)


@pytest.mark.parametrize(("rows", "columns", "repeated"), [
    (1, 1, "mm"), (1, 3, "attention"), (2, 2, "mm"), (2, 1, "mm"), (2, 5, "attention"),
    (4, 7, "mm"), (4, 9, "attention")])
def test_attention_or_a_product(rows, columns, repeated):
    """Attention is dearer where the sequence is longer than half of the features."""
    _, work, _ = cut(attention, (leaf(rows, columns), leaf(columns, columns)), 0.6)
    assert work == {"mm": rows * columns**2, "attention": 2 * rows**2 * columns}[repeated]


def test_estimates():
    args, seen = [*pair(1, 4), *pair(2, 2)], []

    def estimate(node):
        seen.append(node.name)
        return {"mm": 2, "mm_1": 1}.get(node.name, 0)

    named = {"activation_memory_budget_runtime_estimator": estimate}
    assert cut(in_pairs, args, 0.5, **named)[:2] == (4, 8)  # the other one than by arithmetic
    assert {"mm", "mm_1"} <= set(seen)
    for how in ("profile", "testing"):
        memory, _, _ = cut(in_pairs, args, 0.5, activation_memory_budget_runtime_estimator=how)
        assert memory == 4


def test_a_solver_of_ones_own():
    def last(memory, graph, room, joint, nodes):
        assert len(memory) == len(nodes) == 5 and room == pytest.approx(0.2)
        assert graph is joint.module.graph
        chosen = [k for k, node in enumerate(nodes) if node.name == "mm_4"]
        return chosen, [k for k in range(5) if k not in chosen]

    args = [leaf(1, 1) for _ in range(6)]
    *_, partition = cut(chain, args, 0.2, activation_memory_budget_solver=last)
    names = [row.name for row in partition.report.saved]
    assert "mm_4" in names and "mm" not in names


def test_draws_are_never_repeated():
    """They are saved whatever the share; the others have what is left of it."""
    def function(x, *weights):
        return (torch.nn.functional.dropout(chain(x, *weights) * x, 0.5) * x.sin()).sum()

    args = [leaf(1, 1) for _ in range(6)]
    *_, partition = cut(function, args, 0.0)
    draws = [n for n in partition.backward.graph.nodes if getattr(n.target, "is_random", False)]
    assert not draws
    torch.manual_seed(0)
    expected = torch.autograd.grad(function(*args), args)
    torch.manual_seed(0)
    with config.patch(activation_memory_budget=0.3):
        run = aot.aot_function(
            function, aot.nop, partition_fn=min_cut_rematerialization_partition)
        ours = torch.autograd.grad(run(*args), args)
    for a, b in zip(ours, expected):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-4)


def test_the_report_says_how():
    args = [leaf(1, 1) for _ in range(6)]
    *_, partition = cut(chain, args, 0.2)
    assert partition.report.way == "0.2 of 2,560 bytes: 2 of 5 results of heavy operators kept"
    assert "chosen: 0.2 of" in str(partition.report)


def test_a_drawing(tmp_path):
    args = [leaf(1, 1) for _ in range(6)]
    folder = tmp_path / "new"
    cut(chain, args, 0.2, visualize_memory_budget_pareto=True, memory_budget_pareto_dir=folder)
    (path,) = folder.iterdir()
    assert path.name.startswith("memory_budget_pareto_") and path.suffix == ".svg"
    assert path.read_text().count("<circle") == 6  # none to five products are kept


# The solvers themselves ---------------------------------------------------------------------------


def best(memory, runtimes, room):
    """Of all subsets."""
    return max(sum(runtimes[k] for k in chosen)
               for count in range(len(memory) + 1)
               for chosen in itertools.combinations(range(len(memory)), count)
               if sum(memory[k] for k in chosen) <= room + 1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_solvers_against_all_choices(seed):
    random.seed(seed)
    memory = [random.randint(0, 400) / 1000 for _ in range(9)]
    runtimes = [random.randint(1, 100) for _ in range(9)]
    for room in (0.0, 0.25, 0.8, 5.0):
        wanted = best(memory, runtimes, room)
        for name, solver in knapsack.SOLVERS.items():
            gain, kept, again = solver(memory, runtimes, room)
            assert sorted([*kept, *again]) == list(range(9))
            assert sum(memory[k] for k in kept) <= room + 1e-9
            assert gain == sum(runtimes[k] for k in kept) <= wanted
            if name not in ("greedy", "dynamic_memory_budget_dp"):
                assert gain == wanted


@pytest.mark.parametrize("name", knapsack.SOLVERS)
def test_nothing_to_choose_from(name):
    assert knapsack.SOLVERS[name]([], [], 0.5) == (0.0, [], [])
    assert knapsack.SOLVERS[name]([0.5], [3.0], 0.1)[1] == []


def test_where_more_room_brings_little():
    memory, runtimes = [0.1, 0.3, 0.6], [100, 3, 2]
    assert knapsack.dp_knapsack(memory, runtimes, 1.0)[1] == [0, 1, 2]
    assert knapsack.knee_knapsack(memory, runtimes, 1.0)[1] == [0]


def test_pytorchs_path():
    from pullback._functorch._activation_checkpointing.knapsack import dp_knapsack

    assert dp_knapsack is knapsack.dp_knapsack
