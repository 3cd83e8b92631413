"""Parts of a graph that a backend can run: which nodes, how they are grouped, and cut out.

`OperatorSupport` says what a backend knows; `CapabilityBasedPartitioner` groups those nodes without
making two groups wait for each other, and makes each group a submodule.
"""

from __future__ import annotations

import operator
from collections import Counter, deque
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

    Sets of units are bits of integers. Nodes are added from the end of the graph to its beginning,
    so that nothing comes before a new one.
    """

    def __init__(self) -> None:
        self.unit: dict[Node, int] = {}
        self.nodes: dict[int, deque[Node]] = {}  # of the units that are groups, the newest last
        self.rank: dict[int, int] = {}  # of groups: the least number among those they were made of
        self.after: dict[int, int] = {}
        self.all = self.preceded = 0  # groups; units that something comes before

    def add(self, node: Node, group: bool, beside: bool = True) -> None:
        """A unit of its own; a group takes in others, if not `beside` only what reads from it."""
        number = self.unit[node] = len(self.unit)
        after, read = 0, {self.unit[user] for user in node.users}
        for unit in read:
            after |= self.after[unit] | 1 << unit
        self.after[number] = after
        if group:
            self.nodes[number], self.rank[number] = deque([node]), number
            number = self._grown(number, read, beside)
            self.nodes[number] = self.nodes.pop(number)  # the youngest stands last
            self.all |= 1 << number
        self.preceded |= self.after[number]

    def _grown(self, unit: int, read: set[int], beside: bool) -> int:
        """The group that a new one is part of when it has taken in all that it can."""
        allowed = -1 if beside else sum(1 << n for n in read)
        last, far = -1, self._behind(read)
        while True:
            some = self.all & allowed & ~far & ~(1 << unit)
            order = sorted((self.rank[n], n) for n in _bits(some) if self.rank[n] > last)
            alone = len(self.nodes[unit]) == 1
            found = next((n for n in order if alone or not 1 << unit & self._far(n[1])), None)
            if found is None:
                return unit
            last = found[0]
            unit = self._merge(unit, found[1])
            far = self._far(unit) if self.all & allowed & ~(1 << unit) else -1

    def _behind(self, units: Iterable[int]) -> int:
        """What comes after any of these."""
        found = 0
        for unit in units:
            found |= self.after[unit]
        return found

    def _far(self, unit: int) -> int:
        """What comes after a group with something outside of it in between."""
        users = {self.unit[user] for node in self.nodes[unit] for user in node.users}
        return self._behind(users - {unit})

    def _merge(self, new: int, other: int) -> int:
        """Make two groups one, under the number of the larger."""
        into = new if len(self.nodes[new]) > len(self.nodes[other]) else other
        gone, both = new + other - into, 1 << new | 1 << other
        after = (self.after[new] | self.after[other]) & ~both
        if self.preceded & both and (after & ~self.after[into] or self.preceded >> gone & 1):
            for unit, known in self.after.items():
                if known & both:
                    self.after[unit] = known & ~(1 << gone) | 1 << into | after
        self.after[into] = after
        del self.after[gone]
        if self.preceded & both:
            self.preceded |= after | 1 << into
        self.all &= ~(1 << gone)
        self.rank[into] = min(self.rank[into], self.rank.pop(gone))
        for node in self.nodes[gone]:
            self.unit[node] = into
        moved = self.nodes.pop(gone)
        if into == other:
            self.nodes[into].extend(moved)
        else:  # older ones stand in front
            self.nodes[into].extendleft(reversed(moved))
        return into


def _bits(mask: int) -> list[int]:
    """The numbers of the bits that are set."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


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
            group = node.op not in ("placeholder", "output") and (
                self.operator_support.is_node_supported(inside, node))
            groups.add(node, group, not self.skip_horizontal_fusion)
        parts = {unit: dict.fromkeys(reversed(nodes)) for unit, nodes in groups.nodes.items()}
        group_of = {n: unit for n, unit in groups.unit.items() if unit in parts}
        for node in reversed(module.graph.nodes):  # parts of a result belong to who made it
            if node.target is not operator.getitem:
                for user in node.users:
                    if user.target is operator.getitem:
                        _move(parts, group_of, user, group_of.get(node))
        found = [nodes for nodes in parts.values() if nodes and self._worth(nodes)]
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
    counts = Counter(name for names in groups for name in names)
    twice = sorted(name for name, count in counts.items() if count > 1)
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
