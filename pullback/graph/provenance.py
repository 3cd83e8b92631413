"""Where nodes come from: `NodeSource`, an entry of `meta["from_node"]`.

A pass that makes a node out of another one, or the run of a graph that is recorded again, adds one;
each holds those of the node before, so that the way back to the first graph can be read.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .graph import Graph
    from .node import Node


class NodeSourceAction(enum.Enum):
    """What was done: a new node, or one in the place of another."""

    CREATE = "create"
    REPLACE = "replace"


class NodeSource:
    """The node that another one was made from, by which pass, and how."""

    class NodeInfo(NamedTuple):
        """The node, and the graph that it was in, by its number."""

        name: str
        target: str
        graph_id: int

    def __init__(self, node: Node | None, pass_name: str = "",
                 action: NodeSourceAction | list[NodeSourceAction] | None = None) -> None:
        self.pass_name = pass_name
        self.action: list[NodeSourceAction] = (
            [] if action is None else list(action) if isinstance(action, list) else [action])
        self.node_info = None if node is None else self.NodeInfo(
            node.name, str(node.target), id(node.graph))
        self.from_node: list[NodeSource] = [] if node is None else list(
            node.meta.get("from_node", ()))

    @property
    def name(self) -> str:
        return self.node_info.name if self.node_info else ""

    @property
    def target(self) -> str:
        return self.node_info.target if self.node_info else ""

    @property
    def graph_id(self) -> int:
        return self.node_info.graph_id if self.node_info else -1

    def _get_action_string(self) -> str:
        return "+".join(action.value for action in self.action)

    def print_readable(self, indent: int = 0) -> str:
        """This and what was before it, one a line, further back further in."""
        line = (f"{' ' * (4 * indent)}(name={self.name}, pass_name={self.pass_name}, "
                f"action={self._get_action_string()}, graph_id={self.graph_id})\n")
        return line + "".join(source.print_readable(indent + 1) for source in self.from_node)

    def __repr__(self) -> str:
        return self.print_readable()

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {"name": self.name, "target": self.target, "graph_id": self.graph_id,
                "pass_name": self.pass_name, "action": self._get_action_string(),
                "from_node": [source.to_dict() for source in self.from_node]}

    @classmethod
    def _from_dict(cls, said: dict[str, Any] | None) -> NodeSource | None:
        if said is None:
            return None
        actions = [NodeSourceAction(word) for word in said["action"].split("+") if word]
        made = cls(None, said["pass_name"], actions)
        if said["name"] or said["graph_id"] != -1:
            made.node_info = cls.NodeInfo(said["name"], said["target"], said["graph_id"])
        made.from_node = [cls._from_dict(s) for s in said["from_node"]]  # type: ignore[misc]
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(repr(self.to_dict()))


def get_graph_provenance_json(graph: Graph) -> dict[str, Any]:
    """What `meta["from_node"]` of each node that has one says, as plain data."""
    return {node.name: [source.to_dict() for source in node.meta["from_node"]]
            for node in graph.nodes if "from_node" in node.meta}
