"""Passes over long graphs: linear in their nodes, and none that recurses."""

import gc
import sys

import pytest

import pullback as torch
from bench import passes
from pullback import errors
from pullback.fx.passes.cse import eliminate_common_subexpressions
from pullback.fx.passes.noop import remove_noops
from pullback.fx.passes.partitioner import CapabilityBasedPartitioner, create_op_support

FORMS = passes.forms(torch)


def work_of(function):
    """How many functions run, those in C included."""
    count = 0

    def saw(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(saw)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("name, form", [
    *((name, form) for form in ("chain", "terms")
      for name in ("in place", "capture again", "copied", "source", "sort")),
    ("partitioner", "chain"), ("partitioner", "ladder")])
def test_work_is_linear(name, form):
    run, taken = passes.PASSES[name], []
    for n in (60, 240):
        x = torch.randn(4)
        graph = torch.make_fx(FORMS[form](n))(x)
        run(torch, graph, x)
        taken.append(work_of(lambda g=graph, x=x: run(torch, g, x)))
    assert taken[1] < 5 * taken[0]


@pytest.mark.parametrize("one", [lambda x: x.sin(), lambda x: x.view(4)], ids=["equal", "no-op"])
@pytest.mark.parametrize("run", [eliminate_common_subexpressions, remove_noops])
def test_one_reader_of_many_dropped_nodes_is_rewritten_once(run, one):
    taken = []
    for n in (60, 240):
        graph = torch.make_fx(lambda x, n=n: torch.stack([one(x) for _ in range(n)]))(
            torch.randn(4)).graph
        taken.append(work_of(lambda g=graph: run(g)))
    assert taken[1] < 5 * taken[0]


def test_constants_are_counted_once():
    def lifted(n):
        held = [torch.ones(2) for _ in range(n)]
        return work_of(lambda: torch.make_fx(lambda x: [x + c for c in held])(torch.ones(2)))
    lifted(8)
    assert lifted(160) < 5 * lifted(40)
    graph = torch.make_fx(lambda x: x + torch.ones(2).t() + torch.nn.Parameter(torch.ones(2)))
    assert graph(torch.ones(2)).code


def long_function(lines):
    text = "def run(look):\n" + "".join(f"    look({k})\n" for k in range(lines))
    space = {}
    exec(compile(text, "<long>", "exec"), space)
    return space["run"]


def test_lines_of_long_functions_are_looked_up():
    run, seen = long_function(2_000), []

    def look(k):
        if k % 400 == 0 or k == 1_999:
            frame = sys._getframe(1)
            seen.append((errors.line_of(frame), frame.f_lineno, k + 2))

    run(look)
    assert len(seen) == 6 and all(a == b == c for a, b, c in seen)
    key = id(run.__code__)
    assert key in errors._tables
    del run
    gc.collect()
    assert key not in errors._tables


def test_lines_of_graphs_that_run_are_looked_up():
    graph = torch.make_fx(FORMS["chain"](400))(torch.randn(2))
    before = set(errors._tables)
    again = torch.make_fx(graph)(torch.randn(2))
    assert len(set(errors._tables) - before) == 1  # one table for all of its calls
    lines = {n.stack_trace for n in again.graph.nodes if n.op == "call_function"}
    assert lines == {n.stack_trace for n in graph.graph.nodes if n.op == "call_function"}


@pytest.mark.parametrize("supported", ["sin", "mul", ""])
def test_groups_of_a_chain(supported):
    graph = torch.make_fx(FORMS["chain"](40))(torch.randn(2))
    support = create_op_support(lambda modules, node: supported in node.name)

    def groups():
        return CapabilityBasedPartitioner(
            graph, support, allows_single_node_partition=True).propose_partitions()

    # each waits for what stands between it and the next, unless all are one
    assert [p.size() for p in groups()] == ([1] * 20 if supported else [40])
    first = {"sin": 39, "mul": 40, "": 1}[supported]
    assert next(iter(groups()[0].nodes)) is list(graph.graph.nodes)[first]
