"""Partitioners: cut a joint graph into a forward graph and a backward graph.

The forward returns the user's results and then the values saved for the backward; the backward
takes the saved values, under their names in the forward, and then the tangents.

- `default_partition` saves every value of the forward that the backward reads.
- `min_cut_rematerialization_partition` saves what makes the least memory traffic, and lets the
  backward compute the rest again: an exact minimum cut over the costs of `recompute.py`.

Both say what they did, and why, in a `Report`. The classification and the copying of nodes is in
`split.py`, the cut itself in `mincut.py`.
"""

import functools
from collections.abc import Sequence
from typing import Any

from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..fx.traits import cost_of, viewed
from . import refusals, simulate
from .context import config
from .mincut import UnboundedCut, solve
from .prepare import prepared, settle_draws
from .recompute import explain_recomputed, explain_saved, recompute_problem
from .report import Report, Row, row
from .split import (
    JointGraph,
    PartitionError,
    ancestors,
    collector_paused,
    is_number,
    raise_getitems,
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
    """A pair `(forward, backward)` of modules, with the report as an attribute."""

    report: Report

    def __new__(cls, forward: GraphModule, backward: GraphModule, report: Report) -> "Partition":
        pair = super().__new__(cls, (forward, backward))
        pair.report = report
        return pair

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
    """Save every forward value the backward reads; nothing is computed twice.

    Called as `default_partition(joint, num_fwd_outputs)`, or as AOT calls any partitioner:
    `partition(joint, joint_inputs, num_fwd_outputs=n)`.
    """
    refusals.graph("default_partition", joint_module)
    joint = JointGraph(joint_module, _count(joint_inputs, num_fwd_outputs))
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
    for node in saved:
        if viewed(node) in joint.mutated:
            raise PartitionError(
                f"{node} would have to be saved for the backward, but "
                f"{joint.mutated[viewed(node)]} overwrites it in the forward: clone it before"
            )
    rows = [row(n, "saved", "the backward reads it") for n in saved]
    return _finish(joint, saved, Report(rows), on_demand=False)


@collector_paused()
def min_cut_rematerialization_partition(
    joint_module: GraphModule,
    joint_inputs: int | Sequence[Any] = (),
    compiler: str = "inductor",
    *,
    num_fwd_outputs: int | None = None,
    memory: float | str | None = None,
    meter: simulate.Meter | None = None,
    **ignored: Any,
) -> Partition:
    """Save what is cheapest to save, and compute the rest again in the backward.

    Called as `min_cut_rematerialization_partition(joint, num_fwd_outputs)`, or as AOT calls any
    partitioner: `partition(joint, joint_inputs, num_fwd_outputs=n)`. With `memory` (see
    `budget.py`), or `config.activation_memory_budget` below 1, more is computed again until the
    peak is within it; `meter` says how much graphs take.
    """
    refusals.graph("min_cut_rematerialization_partition", joint_module)
    count = _count(joint_inputs, num_fwd_outputs)
    joint = JointGraph(prepared(joint_module), count)
    if memory is None and config.activation_memory_budget < 1:
        memory = float(config.activation_memory_budget)
    try:
        if memory is not None:
            return _within(joint, count, memory, meter or simulate.Meter())
        cost, saved = solve(recompute_problem(joint))
    except UnboundedCut as error:
        steps = "\n".join(f"  - {step}" for step in error.path)
        raise PartitionError(
            "a value can neither be saved nor computed again for the backward:\n"
            f"{steps}\n"
            "  Fix: clone an input that is overwritten later, or relax a checkpoint policy."
        ) from error
    partition = _cut(joint, saved, cost)
    if config.debug_partitioner:
        print(partition.report)
    return partition


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


def _as_eager(joint: JointGraph) -> Partition:
    """The partition that saves what eager execution saves, as the capture has marked it."""
    kept = {n for n in joint.candidates if n.op == "placeholder" or n.meta.get("eager_saves")}
    for node in [n for n in kept if isinstance(n.meta.get("val"), (tuple, list))]:
        kept.remove(node)
        kept.update(user for user in node.users if user in joint.candidates)
    if not any(n.op == "call_function" for n in kept):  # not captured here: what backward reads
        kept.update(joint.demand)
    needed = ancestors(joint.demand, stop=kept)
    kept.update(n for n in needed if cost_of(n.target) == "random" and n.op == "call_function")
    needed = ancestors(joint.demand, stop=kept)
    return _cut(joint, [n for n in joint.candidates if n in kept and n in needed], None)


def _within(
    joint: JointGraph, count: int, memory: float | str, meter: simulate.Meter
) -> Partition:
    """The fastest partition whose simulated peak is within a limit."""
    from . import budget

    limit = budget.parse_memory(memory)
    cut = functools.cache(lambda saved: _cut(joint, list(saved), None))
    there = {*map(viewed, joint.forward_results)}

    def phases(way: budget.Way) -> simulate.Phases:
        return budget.measured(cut(tuple(way.saved)), count, meter)

    def least(way: budget.Way) -> int:
        return sum(map(simulate.own_bytes, {*map(viewed, way.saved)} - there))

    eager = budget.measured(_as_eager(joint), count, simulate.Eager()).peak
    way, _ = budget.choose(
        list(budget.ways(joint)), lambda way: phases(way).peak, least, limit, eager)
    partition = cut(tuple(way.saved))
    report = partition.report
    report.cost, report.way, report.phases, report.eager = way.cost, way.name, phases(way), eager
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
    return Partition(forward, backward, report)
