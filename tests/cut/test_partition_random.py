"""Partitioners on random joint graphs: values must not change, and the cut must be the best."""

import itertools
import math
import random
import time

import numpy as np
import pytest

from pullback.cut.min_cut import solve
from pullback.cut.partition import default_partition, min_cut_rematerialization_partition
from pullback.cut.recompute import recompute_problem
from pullback.cut.split import JointGraph
from tests.helpers.fake_joint import Joint, cos_chain, run_both, saved_names
from tests.helpers.fake_ops import Example, aten

PARTITIONERS = [default_partition, min_cut_rematerialization_partition]


KINDS = ["unary", "unary", "binary", "binary", "mm", "view", "reduce", "random", "split", "create"]


def random_joint(rng, size):
    """A joint graph of all kinds of operators; every value is a 4 by 4 matrix in the end."""
    joint = Joint(primals=rng.randint(1, 3), tangents=rng.randint(1, 2))
    free = list(joint.primals)

    def step(pool):
        pick = rng.choice(pool)
        kind = rng.choice(KINDS)
        if kind == "unary":
            return joint(rng.choice(["sin", "cos", "tanh", "neg"]), pick)
        if kind == "binary":
            return joint(rng.choice(["add", "mul", "sub"]) + ".Tensor", pick, rng.choice(pool))
        if kind == "mm":
            return joint("tanh", joint("mm", pick, rng.choice(pool)))
        if kind == "view":
            return joint("t", pick, strides=(1, 4))
        if kind == "reduce":
            small = joint("sum.dim_IntList", pick, [0], True, shape=(1, 4))
            small = joint("sin", small, shape=(1, 4))
            return joint("expand", small, [4, 4], strides=(0, 1))
        if kind == "random":
            return joint("mul.Tensor", pick, joint("bernoulli", joint("rand", [4, 4])))
        if kind == "split":
            parts = joint("split.Tensor", pick, 2, value=[Example((2, 4)), Example((2, 4))])
            halves = [joint.getitem(parts, k) for k in (1, 0)]
            return joint("cat", halves)
        return joint("add.Tensor", joint("full_like", joint("zeros", [4, 4]), 0.5), pick)

    for _ in range(size):
        free.append(step(free))
    outputs = rng.sample(free, min(len(free), rng.randint(1, 3)))
    mixed = list(joint.tangents)
    for _ in range(size):
        if rng.random() < 0.3:
            free.append(step(free))  # work of the backward that needs no tangent
        pair = rng.choice(mixed), rng.choice(free + mixed)
        mixed.append(joint(rng.choice(["mul.Tensor", "add.Tensor", "mm"]), *pair))
    gradients = [*rng.sample(mixed, min(3, len(mixed))), rng.choice(free), None]
    return joint, joint.finish(outputs, gradients)


@pytest.mark.parametrize("partitioner", PARTITIONERS)
@pytest.mark.parametrize("seed", range(80))
def test_values_do_not_change(seed, partitioner):
    rng = random.Random(seed)
    joint, module = random_joint(rng, rng.randint(1, 14))
    partition = partitioner(module, joint.count)
    for part in partition:
        part.graph.lint()
    saved_names(partition, joint.count)
    count = len(joint.primals)
    values = np.random.RandomState(seed).rand(count + len(joint.tangents), 4, 4)
    joint_values, parts = run_both(
        module, partition, list(values), count, joint.count, lambda: np.random.seed(seed)
    )
    for one, other in zip(joint_values, parts, strict=True):
        assert one is other is None or np.array_equal(one, other)


@pytest.mark.parametrize("seed", range(80))
def test_heavy_and_random_calls_run_once(seed):
    rng = random.Random(seed)
    joint, module = random_joint(rng, rng.randint(1, 14))
    forward, backward = min_cut_rematerialization_partition(module, joint.count)
    for target in (aten.mm.default, aten.bernoulli.default, aten.rand.default):
        calls = [
            node.name
            for part in (forward, backward)
            for node in part.graph.find_nodes(op="call_function", target=target)
        ]
        assert len(calls) == len(set(calls))


def cost_of_saving(problem, saved):
    """What a choice of saved values costs, from the definition."""
    again, stack = set(), list(problem.demand)
    while stack:
        node = stack.pop()
        if node not in again and node not in saved:
            again.add(node)
            stack += problem.inputs[node]
    first, stack = set(), list(saved)
    while stack:
        node = stack.pop()
        if node not in first:
            first.add(node)
            stack += problem.inputs[node]
    if problem.once & again & first:
        return math.inf
    return sum(map(problem.keep.get, saved)) + sum(map(problem.again.get, again))


@pytest.mark.parametrize("seed", range(40))
def test_the_cut_is_the_best_of_all_choices(seed):
    rng = random.Random(1000 + seed)
    joint, module = random_joint(rng, rng.randint(1, 4))
    problem = recompute_problem(JointGraph(module, joint.count))
    values = list(problem.inputs)
    if len(values) > 13:
        pytest.skip("too many choices to try them all")
    cost, saved = solve(problem)
    subsets = itertools.chain.from_iterable(
        itertools.combinations(values, k) for k in range(len(values) + 1)
    )
    assert cost == min(cost_of_saving(problem, set(subset)) for subset in subsets)
    assert cost == cost_of_saving(problem, set(saved))


def test_large_graphs_are_cut_quickly():
    module = cos_chain(1250)  # 5,000 nodes
    assert len(module.graph.nodes) > 5000
    start = time.perf_counter()
    partition = min_cut_rematerialization_partition(module, 1)
    elapsed = time.perf_counter() - start
    assert partition.report.recomputed
    assert elapsed < 3.0  # about 0.3 s on a quiet machine
