"""Nodes that a pass drops on its way through a graph, and who reads what instead.

Readers are rewritten when the pass reaches them, each once: one that reads ten thousand dropped
nodes would otherwise be rewritten ten thousand times.
"""

from typing import TYPE_CHECKING

from ..node import Node

if TYPE_CHECKING:
    from ..graph import Graph


class Redirect:
    """What serves in place of dropped nodes; a pass settles every node before it looks at it."""

    def __init__(self, graph: "Graph"):
        self.graph = graph
        self.new: dict[Node, Node] = {}

    def drop(self, node: Node, new: Node) -> None:
        """Later nodes read `new`, which stays, in place of `node`, which is settled."""
        self.new[node] = new

    def settle(self, node: Node) -> None:
        """Rewrite the arguments of a node that reads dropped ones."""
        if not self.new.keys().isdisjoint(node._inputs):
            node.replace_inputs(self.new)

    def finish(self) -> int:
        """Erase what was dropped; returns the number of nodes."""
        for node in self.new:
            self.graph.erase_node(node)
        return len(self.new)
