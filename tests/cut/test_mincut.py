"""Minimum cuts against networkx, and keep-or-recompute problems against trying everything."""

import itertools
import math
import random
import time

import pytest

from pullback.cut.min_cut import SINK, SOURCE, CutProblem, Network, UnboundedCut, solve


def network_of(edges, size):
    network = Network()
    for _ in range(size - 2):
        network.add_vertex()
    for tail, head, capacity in edges:
        network.add_edge(tail, head, capacity, f"{tail}->{head}")
    return network


def random_edges(rng, size, count, infinite=0.0):
    edges = []
    for _ in range(count):
        tail, head = rng.sample(range(size), 2)
        capacity = math.inf if rng.random() < infinite else rng.randint(0, 20)
        edges.append((tail, head, capacity))
    return edges


def test_a_cut_by_hand():
    edges = [(0, 2, 3), (0, 3, 2), (2, 3, 1), (2, 1, 1), (3, 1, 5)]
    value, sink_side = network_of(edges, 4).min_cut()
    assert value == 4
    assert sum(c for tail, head, c in edges if not sink_side[tail] and sink_side[head]) == 4


def test_of_equal_cuts_the_one_near_the_sink_is_taken():
    value, sink_side = network_of([(0, 2, 1), (2, 3, 1), (3, 1, 1)], 4).min_cut()
    assert value == 1
    assert sink_side == [False, True, False, False]


def test_no_path_means_no_cost():
    value, sink_side = network_of([(0, 2, 5), (1, 2, 5)], 3).min_cut()
    assert value == 0
    assert sink_side[SINK]
    assert not sink_side[SOURCE]


def test_an_unbounded_cut_names_the_path():
    network = network_of([(0, 2, math.inf), (2, 1, math.inf), (0, 1, 3)], 3)
    with pytest.raises(UnboundedCut) as caught:
        network.min_cut()
    assert caught.value.path == ["0->2", "2->1"]


@pytest.mark.parametrize("seed", range(60))
def test_against_networkx(seed):
    networkx = pytest.importorskip("networkx")
    rng = random.Random(seed)
    size = rng.randint(3, 25)
    edges = random_edges(rng, size, rng.randint(1, 4 * size), rng.choice((0.0, 0.2)))
    graph = networkx.DiGraph()
    graph.add_nodes_from((0, 1))
    for tail, head, capacity in edges:
        if graph.has_edge(tail, head):
            capacity += graph[tail][head]["capacity"]
        graph.add_edge(tail, head, capacity=capacity)
    try:
        expected = networkx.minimum_cut_value(graph, 0, 1)
    except networkx.NetworkXUnbounded:
        expected = math.inf
    try:
        value, sink_side = network_of(edges, size).min_cut()
    except UnboundedCut:
        assert expected == math.inf
        return
    assert value == expected
    assert sum(c for t, h, c in edges if not sink_side[t] and sink_side[h]) == value


# Problems -----------------------------------------------------------------------------------------


def reach(problem, start, stop):
    """Values needed to have `start`, without looking behind those in `stop`."""
    seen, stack = set(), list(start)
    while stack:
        value = stack.pop()
        if value not in seen:
            seen.add(value)
            stack += () if value in stop else problem.inputs[value]
    return seen


def cost_of_keeping(problem, kept):
    """The definition: what this choice costs, infinite if it is not allowed."""
    again = reach(problem, problem.demand, kept) - kept
    in_first = (reach(problem, kept, ()) | set(problem.inputs)) - problem.extra
    in_first |= reach(problem, kept, ())
    if problem.once & again & in_first:
        return math.inf
    return sum(problem.keep[v] for v in kept) + sum(problem.again[v] for v in again)


def cheapest(problem):
    values = list(problem.inputs)
    subsets = itertools.chain.from_iterable(
        itertools.combinations(values, k) for k in range(len(values) + 1)
    )
    return min(cost_of_keeping(problem, set(subset)) for subset in subsets)


def random_problem(rng, size):
    problem = CutProblem()
    for value in range(size):
        inputs = sorted({rng.randrange(value) for _ in range(rng.randint(0, 3))} if value else ())
        problem.inputs[value] = inputs
        problem.keep[value] = math.inf if rng.random() < 0.1 else rng.randint(1, 12)
        problem.again[value] = rng.choice((0, 1, 2, 3, math.inf))
        # The first pass needs all inputs of what it needs, so extras only feed extras.
        if inputs and (any(v in problem.extra for v in inputs) or rng.random() < 0.3):
            problem.extra.add(value)
            problem.again[value] = rng.choice((0, 0, 2))
            if rng.random() < 0.5:
                problem.once.add(value)
        if rng.random() < 0.4:
            problem.demand[value] = f"{value} is needed"
    return problem


@pytest.mark.parametrize("seed", range(250))
def test_against_enumeration(seed):
    rng = random.Random(seed)
    problem = random_problem(rng, rng.randint(1, 9))
    expected = cheapest(problem)
    try:
        cost, kept = solve(problem)
    except UnboundedCut:
        assert expected == math.inf
        return
    assert cost == expected
    assert cost_of_keeping(problem, set(kept)) == cost
    assert kept == sorted(kept)


def test_a_value_is_not_computed_in_both_passes():
    """`h` is expensive and not needed by the first pass; `s` is small and made of it and `z`."""
    problem = CutProblem()
    problem.inputs = {"x": [], "z": [], "h": ["x"], "s": ["h", "z"]}
    problem.keep = {"x": 1, "z": 100, "h": 100, "s": 2}
    problem.again = {"x": math.inf, "z": math.inf, "h": 0, "s": 0}
    problem.demand = {"h": "", "s": ""}
    problem.extra = {"h", "s"}
    assert solve(problem) == (3, ["x", "s"])  # h in both passes: once for s, once for itself
    problem.once = {"h"}
    assert solve(problem) == (101, ["x", "z"])
    problem.keep["z"] = 1000
    assert solve(problem) == (102, ["h", "s"])


# Size ---------------------------------------------------------------------------------------------


def forward_like(rng, size, demand=0.5):
    """A problem shaped like those of networks: chains with skips, some values not recomputable."""
    problem = CutProblem()
    for value in range(size):
        near = {value - 1, value - rng.randint(1, 6), value - rng.randint(1, 40)}
        problem.inputs[value] = sorted(v for v in near if 0 <= v < value)
        problem.keep[value] = rng.choice((4, 64, 256, 1024, 4096)) * rng.choice((16, 32))
        problem.again[value] = math.inf if value % 7 == 0 else problem.keep[value] // 32
        if rng.random() < demand:
            problem.demand[value] = ""
    return problem


def chain_like(rng, size, demand):
    problem = CutProblem()
    for value in range(size):
        problem.inputs[value] = [value - 1] if value else []
        problem.keep[value] = 32 * 4096
        problem.again[value] = 4096 if value else math.inf
        if value % demand == demand - 1:
            problem.demand[value] = ""
    return problem


@pytest.mark.parametrize(
    "make",
    [
        lambda rng: forward_like(rng, 5000),
        lambda rng: forward_like(rng, 5000, demand=0.02),
        lambda rng: chain_like(rng, 5000, 1),
        lambda rng: chain_like(rng, 5000, 50),
        lambda rng: chain_like(rng, 5000, 5000),
    ],
    ids=["network", "few demands", "chain", "sparse chain", "one demand"],
)
def test_large_problems_are_solved_quickly(make):
    problem = make(random.Random(0))
    start = time.perf_counter()
    cost, kept = solve(problem)
    elapsed = time.perf_counter() - start
    assert cost == cost_of_keeping(problem, set(kept)) < math.inf
    assert elapsed < 1.0 * slowness()


def slowness():
    """How much slower than a quiet machine this one is now, at least 1."""
    start = time.perf_counter()
    total = 0
    for k in range(1_000_000):
        total += k & 3
    return max(1.0, (time.perf_counter() - start) / 0.06)
