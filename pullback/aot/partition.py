"""Partitioners: cut a joint graph into a forward graph and a backward graph.

The forward returns the user's results and then the values saved for the backward; the backward
takes the saved values, under their names in the forward, and then the tangents.

- `default_partition` saves every value of the forward that the backward reads.
- `min_cut_rematerialization_partition` saves what makes the least memory traffic, and lets the
  backward compute the rest again: an exact minimum cut over the costs of `recompute.py`.

Both say what they did, and why, in a `Report`. The classification and the copying of nodes is in
`split.py`, the cut itself in `mincut.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..fx.traits import nbytes, viewed
from .mincut import UnboundedCut, solve
from .prepare import prepared, settle_draws
from .recompute import explain_recomputed, explain_saved, recompute_problem
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


@dataclass(frozen=True)
class Row:
    """What happens to one value of the forward that the backward needs."""

    name: str
    action: str  # "saved" or "recomputed"
    reason: str
    bytes: int


@dataclass
class Report:
    """What a partitioner decided, value by value in the order of the joint graph."""

    rows: list[Row] = field(default_factory=list)
    cost: int | None = None  # of the minimum cut, in the units of recompute.py

    @property
    def saved(self) -> list[Row]:
        """The values that are saved."""
        return [row for row in self.rows if row.action == "saved"]

    @property
    def recomputed(self) -> list[Row]:
        """The values that the backward computes again."""
        return [row for row in self.rows if row.action == "recomputed"]

    @property
    def saved_bytes(self) -> int:
        """Bytes kept alive between forward and backward, inputs and results among them."""
        return sum(row.bytes for row in self.saved)

    def __str__(self) -> str:
        lines = [("name", "action", "bytes", "reason")]
        lines += [(row.name, row.action, str(row.bytes), row.reason) for row in self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(3)]
        return "\n".join(
            f"{name:{widths[0]}}  {action:{widths[1]}}  {size:>{widths[2]}}  {reason}"
            for name, action, size, reason in lines
        )


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
    rows = [Row(n.name, "saved", "the backward reads it", _bytes(n)) for n in saved]
    return _finish(joint, saved, Report(rows), on_demand=False)


@collector_paused()
def min_cut_rematerialization_partition(
    joint_module: GraphModule,
    joint_inputs: int | Sequence[Any] = (),
    *,
    num_fwd_outputs: int | None = None,
    **ignored: Any,
) -> Partition:
    """Save what is cheapest to save, and compute the rest again in the backward.

    Called as `min_cut_rematerialization_partition(joint, num_fwd_outputs)`, or as AOT calls any
    partitioner: `partition(joint, joint_inputs, num_fwd_outputs=n)`.
    """
    joint = JointGraph(prepared(joint_module), _count(joint_inputs, num_fwd_outputs))
    try:
        cost, saved = solve(recompute_problem(joint))
    except UnboundedCut as error:
        steps = "\n".join(f"  - {step}" for step in error.path)
        raise PartitionError(
            "a value can neither be saved nor computed again for the backward:\n"
            f"{steps}\n"
            "  Fix: clone an input that is overwritten later, or relax a checkpoint policy."
        ) from error
    kept = set(saved)
    computed = ancestors(joint.demand, stop=kept) - kept
    rows = []
    for node in joint.candidates:
        if node in computed and node in joint.forward:
            rows.append(Row(node.name, "recomputed", explain_recomputed(node), _bytes(node)))
        elif node in kept:
            rows.append(Row(node.name, "saved", explain_saved(node, joint), _bytes(node)))
    partition = _finish(joint, saved, Report(rows, cost), on_demand=True)
    settle_draws(*partition)
    raise_getitems(partition.forward.graph)
    raise_getitems(partition.backward.graph)
    return partition


def _count(second: int | Sequence[Any], num_fwd_outputs: int | None) -> int:
    """The number of forward results, from either way of calling a partitioner."""
    count = second if num_fwd_outputs is None else num_fwd_outputs
    if not isinstance(count, int):
        raise TypeError("a partitioner needs num_fwd_outputs, the number of forward results")
    return count


def _bytes(node: Node) -> int:
    return nbytes(node.meta.get("val"))


def _finish(joint: JointGraph, saved: list[Node], report: Report, on_demand: bool) -> Partition:
    # Tensors first: the run time saves them as such, and numbers beside them.
    saved = sorted(saved, key=is_number)
    forward, backward = joint.split(saved, on_demand)
    return Partition(forward, backward, report)
