"""Graphs that write: captured writes as in-place operators again, where the function made them.

A capture has pure operators only: `add_` is an `add` whose result the tensor has from then on, and
a write through a view is a `select_scatter` into its base.  `aot_function` with
`disable_functionalization=True` wants the writes themselves, in their order.
`TorchConvention.writes` has the pairs of nodes before and after each of them; `rewritten` puts the
in-place operator there, if nobody wants the old value later.  Where someone does (a backward that
was captured before the write), the pure operator stays.  Read next: `convention.py`.
"""

from __future__ import annotations

from ...core.overload import overload
from ...graph.graph import Graph
from ...graph.node import Node
from ...graph.traits import base_name, cost_of, is_tensor, memory, trait
from ...table.derived_overloads import InplaceOverload

_COPY = InplaceOverload(overload("copy"))


def rewritten(graph: Graph, writes: list[tuple[Node, Node, bool]]) -> None:
    """Put the writes of a function back into its graph: (before, after, in the backward?)."""
    now: dict[Node, Node] = {}  # what stands for a node that is gone
    for old, new, late in writes:
        old, new = now.get(old, old), now.get(new, new)
        if memory(old) is memory(new):
            continue
        if not (late and memory(old).op == "placeholder"):  # the run time writes inputs then
            _Write(graph, old, new, late).do(now)


class _Write:
    """One write of a captured function."""

    def __init__(self, graph: Graph, old: Node, new: Node, late: bool):
        self.graph, self.old, self.new, self.late = graph, old, new, late
        self.root = memory(old)

    def do(self, now: dict[Node, Node]) -> None:
        """Write in place, unless the old value is wanted later."""
        if not self._free():
            return
        if trait(self.new.target, "writes_view") and self.new.args[0] is self.old:
            made, result = self._through_view(), self.old
        elif self._fits(self.new, self.old):
            made = result = self._in_place(self.new, self.old)
        else:
            with self.graph.inserting_after(self.new):
                made = result = self.graph.call_function(_COPY, (self.old, self.new))
            made.meta = dict(self.new.meta)
        made.meta["stack_trace"] = self.new.meta.get("stack_trace")
        made.meta["in_order"] = True  # whoever reads the memory later wants what is there then
        if self.late:
            made.meta["partitioner_tag"] = "must_be_in_backward"
        if not self.late:
            self._settle()
        self.new.replace_all_uses_with(result, lambda user: user is not made)
        now[self.new] = result
        if not self.new.users:
            self.graph.erase_node(self.new)

    def _settle(self) -> None:
        """What was read before the write cannot be read again by the backward."""
        self.root.meta["recompute"] = "MUST_SAVE"
        for node in self.graph.nodes:
            if node is self.new:
                break
            if node.op == "call_function" and cost_of(node.target) != "view" and any(
                    memory(n) is self.root for n in node.all_input_nodes):
                node.meta["recompute"] = "MUST_SAVE"
                node.meta.setdefault("partitioner_tag", "is_forward")

    def _free(self) -> bool:
        """Does nobody read what was there, or a view of it, once it is written?"""
        for node in self.graph.nodes:
            if node > self.new and any(memory(n) is self.root for n in node.all_input_nodes):
                return False
        return True

    def _fits(self, node: Node, target: Node) -> bool:
        """Has an operator an in-place form that writes this value?"""
        op = getattr(node.target, "op", None)
        if op is None or not getattr(op, "inplace", False) or not node.args:
            return False
        a, b = node.meta.get("val"), target.meta.get("val")
        return (node.args[0] is target and is_tensor(a) and is_tensor(b)
                and tuple(a.shape) == tuple(b.shape) and a.dtype == b.dtype)

    def _in_place(self, node: Node, target: Node) -> Node:
        with self.graph.inserting_after(node):
            made = self.graph.call_function(
                InplaceOverload(node.target), node.args, dict(node.kwargs))
        made.meta = dict(node.meta)
        return made

    def _through_view(self) -> Node:
        """A write into a view: of the value that was scattered into its base."""
        place, value, scatter = self.old, self.new, None
        with self.graph.inserting_before(self.new):
            while trait(value.target, "writes_view") and (
                    scatter is None or value.args[0] in self._views(scatter)):
                scatter = value
                found = self._views(scatter)
                value = scatter.args[1]
                if found and not isinstance(value, Node):
                    break
                if len(found) and self._fits(value, found[0]) and len(value.users) == 1:
                    place = found[0]
                    continue
                view = overload(trait(scatter.target, "writes_view"))
                made = self.graph.call_function(view, (place, *scatter.args[2:]))
                made.meta = {k: v for k, v in value.meta.items() if k in ("val", "stack_trace")}
                place = made
            if self._fits(value, place) and len(value.users) == 1:
                made = self._in_place(value, place)
            else:
                made = self.graph.call_function(_COPY, (place, value))
                made.meta = dict(value.meta)
        return made

    def _views(self, scatter: Node) -> list[Node]:
        """The nodes that look at the place that is scattered into."""
        name = trait(scatter.target, "writes_view").partition(".")[0]
        return [n for n in self.old.graph.nodes
                if n.op == "call_function" and base_name(n.target) == name
                and n.args[0] is scatter.args[0] and tuple(n.args[1:]) == tuple(scatter.args[2:])]
