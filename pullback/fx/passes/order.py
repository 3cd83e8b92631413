"""The order of a graph's nodes, and common subexpressions as a pass object."""

from __future__ import annotations

import heapq
from typing import Any

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
    """Common subexpressions, once."""

    def call(self, graph_module: Any) -> PassResult:
        changed = bool(eliminate_common_subexpressions(graph_module.graph))
        graph_module.recompile()
        return PassResult(graph_module, changed)
