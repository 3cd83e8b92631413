"""Parts of a graph that a backend can run: which nodes, how they are grouped, and cut out.

`OperatorSupport` says what a backend knows; `CapabilityBasedPartitioner` groups those nodes without
making two groups wait for each other, and makes each group a submodule.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg

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


class CapabilityBasedPartitioner:
    """Groups the nodes that a backend supports, and makes submodules of the groups."""

    def __init__(
        self, graph_module: GraphModule, operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
    ) -> None:
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = list(non_compute_ops or ())
        self.allowed_single_node_partition_ops = list(allowed_single_node_partition_ops or ())

    def _supported(self, node: Node) -> bool:
        return self.operator_support.is_node_supported(
            dict(self.graph_module.named_modules())
            if hasattr(self.graph_module, "named_modules") else {}, node)

    def propose_partitions(self) -> list[Partition]:
        """Groups as large as they can be: each node joins one that it reads from, or a new one.

        It does not join where a value goes out of the group and comes back to the node.
        """
        groups: dict[int, Partition] = {}
        group_of: dict[Node, int] = {}
        made = 0
        before: dict[Any, set] = {}  # group, or node in none -> groups that must run before it
        for node in self.graph_module.graph.nodes:
            sources = node.all_input_nodes
            needs: set[int] = set()
            for source in sources:
                own = group_of.get(source)
                needs |= before[source] if own is None else {own, *before[own]}
            if node.op not in CALLABLE_NODE_OPS or not self._supported(node):
                before[node] = needs
                continue
            direct = {group_of[s] for s in sources if s in group_of}
            around = set().union(*[before[s] for s in sources if s not in group_of],
                                 *[before[g] for g in direct])
            joined = sorted(direct - around)
            chosen = joined[0] if joined else made
            if not joined:
                groups[chosen], before[chosen], made = Partition(chosen), set(), made + 1
            for other in joined[1:]:
                self._merge(groups, group_of, before, chosen, other)
            groups[chosen].add_node(node)
            group_of[node] = chosen
            before[chosen] |= needs - {chosen, *joined}
            for waiting in before.values():
                if chosen in waiting:
                    waiting |= before[chosen]
        found = [g for g in groups.values() if self._worth(g)]
        return [Partition(i, g.nodes) for i, g in enumerate(found)]

    @staticmethod
    def _merge(groups: dict, group_of: dict, before: dict, into: int, other: int) -> None:
        for node in groups.pop(other).nodes:
            groups[into].add_node(node)
            group_of[node] = into
        before[into] |= before.pop(other)
        for key, needs in before.items():
            if other in needs:
                needs.discard(other)
                if key != into:
                    needs.add(into)
        before[into].discard(into)

    def _worth(self, group: Partition) -> bool:
        computing = [n for n in group.nodes if n.target is not operator.getitem
                     and str(n.target) not in self.non_compute_ops]
        if len(computing) > 1:
            return True
        return bool(computing) and (self.allows_single_node_partition or str(
            computing[0].target) in self.allowed_single_node_partition_ops)

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
