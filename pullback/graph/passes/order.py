"""The order of a graph's nodes, and common subexpressions as a pass object."""

from __future__ import annotations

import copy
import functools
import heapq
from collections.abc import Collection
from typing import Any

from ...core.op import registry
from ...core.overload import overload
from ...table.packets import ops
from ..errors import GraphError
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from .cse import eliminate_common_subexpressions
from .infra import PassBase, PassResult


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Put nodes after those that they read, otherwise in the order in which they are."""
    nodes = list(gm.graph.nodes)
    place = {n: i for i, n in enumerate(nodes)}
    waiting = {n: len(n.all_input_nodes) for n in nodes}
    ready = [place[n] for n in nodes if not waiting[n]]
    heapq.heapify(ready)
    done: list[Node] = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        done.append(node)
        for user in node.users:
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, place[user])
    if len(done) < len(nodes):
        raise GraphError(f"the graph has cycles: {len(nodes) - len(done)} of its nodes wait for "
                         "one another")
    graph, copied = Graph(), {}
    for node in done:
        copied[node] = graph.node_copy(node, copied.__getitem__)
    graph.trees, graph.codegen = gm.graph.trees, gm.graph.codegen
    gm.graph = graph
    return gm


legalize_graph = stable_topological_sort


class CSEPass(PassBase):
    """Common subexpressions, once, in a copy of the module; calls of `banned_ops` stay."""

    def __init__(self, banned_ops: Collection | None = None):
        self.banned_ops = set(banned_ops or ())
        super().__init__()

    def call(self, graph_module: Any) -> PassResult:
        graph = copy.deepcopy(graph_module.graph)
        changed = bool(eliminate_common_subexpressions(graph, self.banned_ops))
        return PassResult(GraphModule(graph_module, graph), changed)


@functools.cache
def get_CSE_banned_ops() -> frozenset:
    """Operators whose calls must not be merged: those that draw, and those that write."""
    drawn = {ov.overloadpacket for ov in map(overload, registry) if ov.is_random}
    return frozenset(drawn | {ops.add_, ops.sub_, ops.mul_, ops.div_, ops.pow_, ops.lerp_,
                              ops.relu_, ops.sigmoid_, ops.tanh_})
