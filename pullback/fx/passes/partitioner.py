"""Parts of a graph that a backend can run: which nodes, how they are grouped, and cut out.

`OperatorSupport` says what a backend knows; `CapabilityBasedPartitioner` groups those nodes without
making two groups wait for each other, and makes each group a submodule.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from ..errors import GraphError
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from ..printer import qualified_name

CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_node_target(submodules: Mapping[str, Any], node: Node) -> str:
    """What a node calls, as text: the type of a module, the dotted name of a function."""
    if node.op == "call_module":
        kind = type(submodules[node.target])
        return getattr(kind, "_base_class_origin", kind).__module__ + "." + kind.__name__
    if node.op == "call_function":
        target = node.target
        module = getattr(target, "__module__", None) or ""
        name = getattr(target, "__name__", str(target))
        return f"_operator.{name}" if module == "_operator" else (
            str(target) if hasattr(target, "op") else f"{module}.{name}")
    return str(node.target)


class OperatorSupportBase:
    """Which nodes a backend can run."""

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        """Override this."""
        raise NotImplementedError("say in is_node_supported(submodules, node) what is supported")


class OperatorSupport(OperatorSupportBase):
    """By the name of what a node calls (`get_node_target`)."""

    def __init__(self, support_dict: Mapping[str, Any] | None = None) -> None:
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        return node.op in CALLABLE_NODE_OPS and (
            get_node_target(submodules, node) in self._support_dict)


class _Chosen(OperatorSupportBase):
    def __init__(self, test: Callable) -> None:
        self.test = test

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        return self.test(submodules, node)


def create_op_support(is_node_supported: Callable) -> OperatorSupportBase:
    """A function `(submodules, node) -> bool` as an object."""
    return _Chosen(is_node_supported)


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """What all of them support."""
    return _Chosen(lambda m, n: all(s.is_node_supported(m, n) for s in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """What one of them supports."""
    return _Chosen(lambda m, n: any(s.is_node_supported(m, n) for s in op_support))


class Partition:
    """A group of nodes with a number."""

    def __init__(self, id: int | None = None, nodes: Any = None) -> None:
        self.id = id
        self.nodes: dict[Node, None] = dict.fromkeys(nodes or ())

    def add_node(self, node: Node) -> None:
        self.nodes[node] = None

    def remove_node(self, node: Node) -> None:
        del self.nodes[node]

    def size(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return str(list(self.nodes))


class Groups:
    """Units of a graph: its nodes, or groups of them, and which come after which.

    Sets of units are bits of integers. Nodes are added from the end of the graph to its beginning.
    """

    def __init__(self) -> None:
        self.unit: dict[Node, int] = {}
        self.nodes: dict[int, dict[Node, None]] = {}  # of the units that are groups
        self.rank: dict[int, int] = {}  # of groups: the least number among those they were made of
        self.after: dict[int, int] = {}

    def add(self, node: Node, group: bool) -> int:
        """A unit of its own."""
        number = self.unit[node] = len(self.unit)
        after = 0
        for user in node.users:
            unit = self.unit[user]
            after |= self.after[unit] | 1 << unit
        self.after[number] = after
        if group:
            self.nodes[number], self.rank[number] = {node: None}, number
        return number

    def merge(self, into: int, other: int) -> None:
        """Make two groups one, unless something outside comes after one and before the other."""
        both = 1 << into | 1 << other
        if self._between(into, other) or self._between(other, into):
            return
        after = (self.after.pop(other) | self.after[into]) & ~both
        for unit, known in self.after.items():
            if known & both:
                self.after[unit] = known & ~(1 << other) | 1 << into | after
        self.after[into] = after
        for node in self.nodes[other]:
            self.unit[node] = into
        self.nodes[into].update(self.nodes.pop(other))
        self.rank[into] = min(self.rank[into], self.rank.pop(other))

    def _between(self, first: int, last: int) -> bool:
        if not self.after[first] >> last & 1:
            return False
        return any(known >> last & 1 for unit, known in self.after.items()
                   if unit != first and self.after[first] >> unit & 1)


def _among(node: Node, names: Collection[str]) -> bool:
    """Whether a node calls one of these; an operator is known by two names."""
    return node.op == "call_function" and (
        qualified_name(node.target) in names or f"torch.ops.{node.target}" in names)


def _move(groups: dict[int, dict[Node, None]], group_of: dict[Node, int], node: Node,
          to: int | None) -> None:
    before = group_of.pop(node, None)
    if before is not None:
        del groups[before][node]
    if to is not None:
        groups[to][node], group_of[node] = None, to


class CapabilityBasedPartitioner:
    """Groups the nodes that a backend supports, and makes submodules of the groups.

    A group with a single node that computes is left out unless `allows_single_node_partition` or
    its operator is one of `allowed_single_node_partition_ops`; `non_compute_ops` do not count.
    """

    def __init__(
        self, graph_module: GraphModule, operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = list(non_compute_ops or ())
        self.allowed_single_node_partition_ops = list(allowed_single_node_partition_ops or ())
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def propose_partitions(self) -> list[Partition]:
        """Groups as large as they can be, the last first.

        From the end on, each supported node is a group, which takes in every other one, or with
        `skip_horizontal_fusion` those that read from it, unless it would have to wait for itself.
        """
        module = self.graph_module
        inside = dict(module.named_modules()) if hasattr(module, "named_modules") else {}
        groups = Groups()
        for node in reversed(module.graph.nodes):
            if node.op in ("placeholder", "output") or (
                    not self.operator_support.is_node_supported(inside, node)):
                groups.add(node, False)
                continue
            new = groups.add(node, True)
            read = {groups.unit[user] for user in node.users}
            for other in sorted(groups.rank, key=groups.rank.__getitem__):
                if other != new and (other in read or not self.skip_horizontal_fusion):
                    groups.merge(new, other)
        group_of = {n: unit for n, unit in groups.unit.items() if unit in groups.nodes}
        for node in reversed(module.graph.nodes):  # parts of a result belong to who made it
            if node.target is not operator.getitem:
                for user in node.users:
                    if user.target is operator.getitem:
                        _move(groups.nodes, group_of, user, group_of.get(node))
        found = [nodes for nodes in groups.nodes.values() if nodes and self._worth(nodes)]
        return [Partition(i, nodes) for i, nodes in enumerate(found)]

    def _worth(self, nodes: Iterable[Node]) -> bool:
        if self.allows_single_node_partition:
            return True
        idle = {"torch.ops.aten.view", "_operator.getitem", *self.non_compute_ops}
        called = [n for n in nodes if n.op == "call_function"]
        alone = self.allowed_single_node_partition_ops
        return sum((not _among(n, idle)) + _among(n, alone) for n in called) > 1

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Take nodes that only rearrange away from the beginnings and the ends of groups."""
        for group in partitions:
            idle = {n for n in group.nodes if _among(n, self.non_compute_ops)}
            order = sorted(group.nodes)
            first, last = set(), set()  # what nothing in the group comes before, or after
            for node in order:
                if node in idle and all(n not in group.nodes or n in first for n in node._inputs):
                    first.add(node)
            for node in reversed(order):
                if node in idle and all(n not in group.nodes or n in last for n in node.users):
                    last.add(node)
            for node in first | last:
                group.remove_node(node)

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """The module with each group as a submodule `fused_<number>`."""
        return fuse_by_partitions(self.graph_module, [list(p.nodes) for p in partitions], prefix)

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Both."""
        return self.fuse_partitions(self.propose_partitions(), prefix)


def fuse_by_partitions(gm: GraphModule, partitions: Sequence[Sequence[Node]],
                       prefix: str = "fused_") -> GraphModule:
    """Make each group of nodes a submodule that the graph calls."""
    from .order import stable_topological_sort

    groups = [{n.name for n in group} for group in partitions]  # sorting makes new nodes
    named = [name for names in groups for name in names]
    twice = sorted({name for name in named if named.count(name) > 1})
    if twice:
        raise GraphError(f"a node can be in one partition only: {', '.join(twice)}")
    for number, names in enumerate(groups):
        graph = gm.graph
        nodes = [n for n in graph.nodes if n.name in names]
        inside = set(nodes)
        inputs = dict.fromkeys(s for n in nodes for s in n.all_input_nodes if s not in inside)
        outputs = [n for n in nodes if any(u not in inside for u in n.users)]
        inner, values = Graph(), {}
        for source in inputs:
            values[source] = inner.placeholder(source.name)
            values[source].meta = dict(source.meta)
        for node in nodes:
            values[node] = inner.node_copy(node, values.__getitem__)
        results = tuple(values[n] for n in outputs)
        inner.output(results[0] if len(results) == 1 else results)
        name = f"{prefix}{number}"
        gm.add_submodule(name, GraphModule(gm, inner, name))
        with graph.inserting_after(nodes[-1]):
            call = graph.call_module(name, tuple(inputs))
        for i, node in enumerate(outputs):
            new = call
            if len(outputs) > 1:
                with graph.inserting_after(call):
                    new = graph.call_function(operator.getitem, (call, i))
            new.meta = dict(node.meta)
            for user in [u for u in node.users if u not in inside]:
                user._set_arguments(
                    map_arg(user.args, lambda n, old=node, new=new: new if n is old else n),
                    map_arg(user.kwargs, lambda n, old=node, new=new: new if n is old else n))
        for node in reversed(nodes):
            graph.erase_node(node)
        stable_topological_sort(gm)
    gm.recompile()
    return gm
