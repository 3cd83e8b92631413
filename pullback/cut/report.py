"""What a partitioner decided: a row per value, totals, and tables of them.

`str(report)` is plain text; `report.show()` prints a table with rich. Read `partition.py` next.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..graph.graph_module import GraphModule
from ..graph.node import Node
from ..graph.traits import nbytes
from .flops import flops


@dataclass(frozen=True)
class Row:
    """What happens to one value of the forward that the backward needs."""

    name: str
    action: str  # "saved" or "recomputed"
    reason: str
    bytes: int
    flops: int = 0  # of computing it once
    line: str = ""  # of the user's program


@dataclass
class Report:
    """What a partitioner decided, value by value in the order of the joint graph."""

    rows: list[Row] = field(default_factory=list)
    cost: int | None = None  # of the minimum cut, in the units of recompute.py
    way: str = ""  # how it was cut, where there was a choice
    phases: Any = None  # simulated bytes of both passes, where a limit was given
    eager: int | None = None  # simulated bytes of eager execution, likewise
    tight: bool = False  # without memory that only makes graphs faster

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

    @property
    def recomputed_flops(self) -> int:
        """Arithmetic that the backward repeats."""
        return sum(row.flops for row in self.recomputed)

    def totals(self) -> list[str]:
        """The sums, a line each."""
        saved, again = self.saved, self.recomputed
        new = sum(r.bytes for r in saved if not r.reason.endswith("already in memory"))
        lines = [
            f"saved: {len(saved)} values, {self.saved_bytes:,} bytes, {new:,} of them new",
            f"recomputed: {len(again)} values, {sum(r.bytes for r in again):,} bytes, "
            f"{self.recomputed_flops:,} flops",
        ]
        if self.way:
            lines.append(f"chosen: {self.way}")
        if self.phases is not None:
            lines.append(
                f"simulated peak: {self.phases.peak:,} bytes (forward {self.phases.forward:,}, "
                f"backward {self.phases.backward:,}; eager {self.eager:,})"
            )
        return lines

    def __str__(self) -> str:
        cells = [("value", "action", "bytes", "flops", "why")]
        cells += [
            (row.name, row.action, f"{row.bytes:,}", f"{row.flops:,}", row.reason)
            for row in self.rows
        ]
        widths = [max(len(line[column]) for line in cells) for column in range(4)]
        lines = [
            f"{name:{widths[0]}}  {action:{widths[1]}}  {size:>{widths[2]}}  {work:>{widths[3]}}"
            f"  {reason}"
            for name, action, size, work, reason in cells
        ]
        return "\n".join([*lines, *self.totals()])

    def __rich__(self) -> Any:
        from rich.table import Table

        table = Table("value", "action", caption="\n".join(self.totals()))
        for name in ("bytes", "flops"):
            table.add_column(name, justify="right")
        table.add_column("why")
        table.add_column("line")
        for row in self.rows:
            colour = "green" if row.action == "saved" else "yellow"
            action = f"[{colour}]{row.action}[/]"
            table.add_row(
                row.name, action, f"{row.bytes:,}", f"{row.flops:,}", row.reason, row.line)
        return table

    def show(self) -> None:
        """Print the table."""
        from rich.console import Console

        Console().print(self)


def row(node: Node, action: str, reason: str) -> Row:
    """The row of a node."""
    where = (node.meta.get("stack_trace") or "").strip().partition("\n")[0]
    parts = where.split('"')
    line = ""
    if len(parts) == 3:  # File "path", line n, in f
        number = parts[2].replace(",", " ").split()[1]
        line = f"{parts[1].rpartition('/')[2]}:{number}"
    return Row(node.name, action, reason, nbytes(node.meta.get("val")), flops(node), line)


def of_halves(forward: GraphModule, backward: GraphModule, count: int) -> Report:
    """The report of a partitioner that gives none: what the graphs show."""
    results = forward.graph.output_node().args[0]
    names = {n.name for n in results[count:] if isinstance(n, Node)}
    again = {n.name for n in backward.graph.nodes if n.op == "call_function"}
    return Report(list(_rows(forward, names, again)))


def _rows(forward: GraphModule, saved: set[str], again: set[str]) -> Iterable[Row]:
    for node in forward.graph.nodes:
        if node.name in saved:
            where = "input: already in memory" if node.op == "placeholder" else "by the partitioner"
            yield row(node, "saved", where)
        elif node.op == "call_function" and node.name in again:
            yield row(node, "recomputed", "by the partitioner")
