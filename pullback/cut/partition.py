"""Partitioners: cut a joint graph into a forward graph and a backward graph.

The forward returns the user's results and then the values saved for the backward; the backward
takes the saved values, under their names in the forward, and then the tangents.

- `default_partition` saves every value of the forward that the backward reads, but for those that
  a checkpoint wants computed again.
- `min_cut_rematerialization_partition` saves what makes the least memory traffic, and lets the
  backward compute the rest again: an exact minimum cut over the costs of `recompute.py`.

Both say what they did, and why, in a `Report`. The classification and the copying of nodes is in
`split.py`, the cut itself in `min_cut.py`.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

from ..graph.graph_module import GraphModule
from ..graph.node import Node
from ..graph.traceback import MEMORY_BUDGET
from ..graph.traits import viewed
from . import refusals, simulate
from .min_cut import UnboundedCut, solve
from .prepare import prepared, settle_draws, with_states
from .recompute import explain_recomputed, explain_saved, recompute_problem, wanted_again
from .report import Report, Row, row
from .settings import config
from .split import (
    JointGraph,
    PartitionError,
    ancestors,
    collector_paused,
    give_away,
    is_number,
    raise_getitems,
    tighten,
)

__all__ = [
    "Partition",
    "PartitionError",
    "Report",
    "Row",
    "default_partition",
    "min_cut_rematerialization_partition",
]


class Partition(tuple):
    """A pair `(forward, backward)` of modules, with the report as an attribute.

    `fused` is the report of one graph for both passes, `one`, where that is chosen.
    """

    report: Report
    fused: Report | None = None
    one: GraphModule | None = None

    def __new__(cls, forward: GraphModule, backward: GraphModule, report: Report) -> "Partition":
        pair = super().__new__(cls, (forward, backward))
        pair.report = report
        return pair

    def __str__(self) -> str:
        """Both graphs as code."""
        return f"# forward\n{self[0].code.strip()}\n\n# backward\n{self[1].code.strip()}"

    @property
    def forward(self) -> GraphModule:
        return self[0]

    @property
    def backward(self) -> GraphModule:
        return self[1]


def default_partition(
    joint_module: GraphModule,
    joint_inputs: int | Sequence[Any] = (),
    *,
    num_fwd_outputs: int | None = None,
    **ignored: Any,
) -> Partition:
    """Save every forward value the backward reads; only checkpoints have something repeated.

    Called as `default_partition(joint, num_fwd_outputs)`, or as AOT calls any partitioner:
    `partition(joint, joint_inputs, num_fwd_outputs=n)`.
    """
    refusals.graph("default_partition", joint_module)
    joint = JointGraph(with_states(joint_module), _count(joint_inputs, num_fwd_outputs))
    again = wanted_again(joint)
    if again:
        saved = _saved_for(joint, again)
        _refuse_overwritten(joint, saved)
        return _cut(joint, saved, None)
    forward = joint.forward | joint.traced_forward
    saved: list[Node] = []
    for node in joint.nodes:
        if node not in forward or node.op == "get_attr":
            continue
        readers = [user for user in node.users if user in joint.backward and user not in forward]
        if isinstance(node.meta.get("val"), (tuple, list)):
            forward.update(readers)  # its parts, one by one
        elif readers and not is_number(node) and all(map(is_number, readers)):
            forward.update(readers)  # the backward needs only sizes of it
        elif readers or node in joint.demand:
            saved.append(node)
    _refuse_overwritten(joint, saved)
    rows = [row(n, "saved", "the backward reads it") for n in saved]
    return _finish(joint, saved, Report(rows), on_demand=False)


def _refuse_overwritten(joint: JointGraph, saved: list[Node]) -> None:
    for node in saved:
        if viewed(node) in joint.mutated:
            raise PartitionError(
                f"{node} would have to be saved for the backward, but "
                f"{joint.mutated[viewed(node)]} overwrites it in the forward: clone it before"
            )


def _saved_for(joint: JointGraph, again: set[Node]) -> list[Node]:
    """What the backward reads, or what that is computed from where it is computed again."""
    kept: set[Node] = set()
    seen: set[Node] = set()
    todo = list(joint.demand)
    while todo:
        node = todo.pop()
        if node in seen or node.op == "get_attr":
            continue
        seen.add(node)
        repeated = node in again and not node.is_impure(impure_random=False)
        if repeated or node not in joint.forward and not is_number(node):
            todo += node.all_input_nodes
        else:
            kept.add(node)
    return [node for node in joint.nodes if node in kept]


@collector_paused()
def min_cut_rematerialization_partition(
    joint_module: GraphModule,
    joint_inputs: int | Sequence[Any] = (),
    compiler: str = "inductor",
    *,
    num_fwd_outputs: int | None = None,
    static_lifetime_input_indices: Sequence[int] | None = None,
    memory: float | str | None = None,
    meter: simulate.Meter | None = None,
    eager: int | None = None,
    fused: GraphModule | None = None,
    **ignored: Any,
) -> Partition:
    """Save what is cheapest to save, and compute the rest again in the backward.

    Called as `min_cut_rematerialization_partition(joint, num_fwd_outputs)`, or as AOT calls any
    partitioner: `partition(joint, joint_inputs, num_fwd_outputs=n)`. The inputs numbered by
    `static_lifetime_input_indices` are parameters: to save them costs nothing. With `memory` (see
    `budget.py`) more is computed again until the peak is within it, with
    `config.activation_memory_budget` below 1 until that share is saved (`memory_share.py`). `meter`
    says how much graphs take, `eager` is the peak of eager execution, which is a limit, too;
    `fused` is one graph for both passes, which is taken if it fits.
    """
    refusals.graph("min_cut_rematerialization_partition", joint_module)
    count = _count(joint_inputs, num_fwd_outputs)
    joint = JointGraph(prepared(joint_module), count, static_lifetime_input_indices or ())
    way, share = "", _noted_share(joint)
    try:
        if memory is not None:
            return _within(joint, memory, meter or simulate.Meter(), eager, fused)
        if share is not None and share < 1:
            from .memory_share import within_share

            found = within_share(joint, share)
            cost, saved, way = found.cost, found.saved, found.name
        else:
            cost, saved = solve(recompute_problem(joint))
    except UnboundedCut as error:
        steps = "\n".join(f"  - {step}" for step in error.path)
        raise PartitionError(
            "a value can neither be saved nor computed again for the backward:\n"
            f"{steps}\n"
            "  Fix: clone an input that is overwritten later, or relax a checkpoint policy."
        ) from error
    partition = _cut(joint, saved, cost)
    partition.report.way = way
    if config.debug_partitioner:
        print(partition.report)
    return partition


def _noted_share(joint: JointGraph) -> float | None:
    """The share of activations to save: that of the program's region, or of the settings."""
    noted = {n: n.meta.get("custom", {}).get(MEMORY_BUDGET) for n in joint.nodes}
    shares = {*noted.values()} - {None}
    if not shares:
        return config.activation_memory_budget
    if len(shares) > 1:
        raise PartitionError(
            "region_activation_memory_budget: conflicting budgets within a single joint graph: "
            f"{sorted(shares)}. Compile the parts of the function on their own")
    left = [n for n in joint.nodes
            if n in joint.forward and n.op == "call_function" and noted[n] is None]
    if left:
        raise PartitionError(
            "region_activation_memory_budget must cover the entire forward of a graph, but "
            f"{len(left)} operators are outside: {', '.join(n.name for n in left[:8])}. Wrap the "
            "whole function, or compile the region on its own")
    return shares.pop()


def _cut(joint: JointGraph, saved: list[Node], cost: int | None) -> Partition:
    """The partition that saves given values."""
    kept = set(saved)
    computed = ancestors(joint.demand, stop=kept) - kept
    rows = []
    for node in joint.candidates:
        if node in computed and node in joint.forward:
            rows.append(row(node, "recomputed", explain_recomputed(node)))
        elif node in kept:
            rows.append(row(node, "saved", explain_saved(node, joint)))
    partition = _finish(joint, saved, Report(rows, cost), on_demand=True)
    settle_draws(*partition)
    raise_getitems(partition.forward.graph)
    raise_getitems(partition.backward.graph)
    return partition


def _within(
    joint: JointGraph,
    memory: float | str,
    meter: simulate.Meter,
    eager: int | None,
    fused: GraphModule | None,
) -> Partition:
    """The fastest partition whose simulated peak is within a limit."""
    from ..graph.concrete import sized_for
    from . import budget

    count = len(joint.fwd_outputs)
    cut = functools.cache(lambda saved: _cut(joint, list(saved), None))
    halves = functools.cache(lambda saved: [sized_for(half, None) for half in cut(saved)])
    one = None if fused is None else sized_for(fused, None)
    there = {*map(viewed, joint.forward_results)}

    def phases(way: budget.Way) -> simulate.Phases:
        if way.fused:
            return meter.at_once(one, way.tight)
        return meter.phases(*halves(tuple(way.saved)), count, way.tight)

    def least(way: budget.Way) -> int:
        return sum(map(simulate.own_bytes, {*map(viewed, way.saved)} - there))

    def peak(way: budget.Way) -> int:
        return phases(way).peak

    apart = list(budget.ways(joint))
    every = apart if fused is None else [budget.fused_way(), *apart]
    if meter.tightens:
        apart, every = budget.with_tight(apart), budget.with_tight(every)
    most = math.inf if eager is None else eager
    way, limit = budget.choose(every, peak, least, budget.parse_memory(memory), most)
    chosen, together = way, None
    if way.fused:  # a program may go back to two graphs: as good as they can be
        together = Report(way=way.title, phases=phases(way), eager=eager, tight=way.tight)
        lowest = min(map(peak, apart))
        chosen, _ = budget.choose(apart, peak, least, max(int(limit), lowest))
    partition = cut(tuple(chosen.saved))
    report, partition.fused, partition.one = partition.report, together, fused
    report.cost, report.way, report.phases = chosen.cost, chosen.title, phases(chosen)
    report.eager, report.tight = eager, chosen.tight
    if chosen.tight:
        tighten(partition.forward)
        tighten(partition.backward)
    return partition


def _count(second: int | Sequence[Any], num_fwd_outputs: int | None) -> int:
    """The number of forward results, from either way of calling a partitioner."""
    count = second if num_fwd_outputs is None else num_fwd_outputs
    if not isinstance(count, int):
        raise TypeError("a partitioner needs num_fwd_outputs, the number of forward results")
    return count


def _finish(joint: JointGraph, saved: list[Node], report: Report, on_demand: bool) -> Partition:
    # Tensors first: the run time saves them as such, and numbers beside them.
    saved = sorted(saved, key=is_number)
    forward, backward = joint.split(saved, on_demand)
    give_away(forward, backward, len(joint.fwd_outputs))
    return Partition(forward, backward, report)
