"""`GraphTransformObserver`: which nodes a pass makes and erases, and where new ones come from.

With a folder (`log_url`) it draws the graph before and after the pass there, what has changed in
yellow.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from ..provenance import NodeSource, NodeSourceAction
from .graph_drawer import Dot, FxGraphDrawer


class GraphTransformObserver:
    """Watches a graph module while a `with` block, or one pass, changes it."""

    __pass_count = 0

    def __init__(self, gm: GraphModule, passname: str, subsystem: str | None = None,
                 log_url: str | None = None) -> None:
        self.gm, self.passname, self.subsystem, self.log_url = gm, passname, subsystem, log_url
        self.erased_nodes: set[str] = set()
        self.created_nodes: set[str] = set()
        self.name_to_node: dict[str, Node] = {}
        self.copied_gms: list[GraphModule] = []  # made meanwhile: they have the hooks, too
        if log_url is not None:
            GraphTransformObserver.__pass_count += 1
            self._before = self._drawn()

    @classmethod
    def get_current_pass_count(cls) -> int:
        """The number of passes that were drawn: part of the names of the files."""
        return cls.__pass_count

    def apply_gm_pass(self, pass_fn: Callable[[GraphModule], Any]) -> Any:
        """Run a pass over the module and watch it."""
        with self:
            return pass_fn(self.gm)

    def apply_graph_pass(self, pass_fn: Callable[[Graph], Any]) -> Any:
        """Run a pass over the graph and watch it."""
        with self:
            return pass_fn(self.gm.graph)

    def __enter__(self) -> GraphTransformObserver:
        self.erased_nodes.clear()
        self.created_nodes.clear()
        self.copied_gms.clear()
        self.name_to_node = {node.name: node for node in self.gm.graph.nodes}
        self._switch("_register", self.gm)
        return self

    def __exit__(self, *exception: Any) -> None:
        for gm in (self.gm, *self.copied_gms):
            self._switch("_unregister", gm)
        if self.log_url is not None and (self.created_nodes or self.erased_nodes):
            start = f"pass_{GraphTransformObserver.__pass_count}_{self.passname}"
            for end, dot, marked in (("input", self._before, self.erased_nodes),
                                     ("output", self._drawn(), self.created_nodes)):
                path = Path(self.log_url) / f"{start}_{end}_graph.dot"
                Dot([_colored(line, marked) for line in dot.lines]).write(path)

    def _switch(self, verb: str, gm: GraphModule) -> None:
        for hook, function in (("create_node", self._created), ("erase_node", self._erased),
                               ("replace_node", self._replaced),
                               ("deepcopy", self.copied_gms.append)):
            getattr(gm, f"{verb}_{hook}_hook")(function)

    def _drawn(self) -> Dot:
        return FxGraphDrawer(self.gm, self.passname, ignore_getattr=True,
                             ignore_parameters_and_buffers=True).get_dot_graph()

    def _created(self, node: Node) -> None:
        self.created_nodes.add(node.name)
        self.name_to_node[node.name] = node
        source = NodeSource(None, self.passname, NodeSourceAction.CREATE)
        node.meta["from_node"] = [*node.meta.get("from_node", ()), source]

    def _erased(self, node: Node) -> None:
        self.erased_nodes.add(node.name)
        self.name_to_node.pop(node.name, None)

    def _replaced(self, old: Node, new: str, user: Node) -> None:
        node = self.name_to_node.get(new)
        known = [] if node is None else node.meta.get("from_node", [])
        if node is None or any(source.name == old.name for source in known):
            return  # once is enough, however many users there are
        actions = [NodeSourceAction.REPLACE]
        if new in self.created_nodes:
            actions.append(NodeSourceAction.CREATE)
        made_here = NodeSource(None, self.passname, NodeSourceAction.CREATE)  # said better now
        node.meta["from_node"] = [s for s in known if s != made_here] + [
            NodeSource(old, self.passname, actions)]


def _colored(line: str, marked: set[str]) -> str:
    name, found, _ = line.partition(" [label=")
    color = "yellow" if name in marked else "grey"
    return re.sub(r"fillcolor=\w+", f"fillcolor={color}", line) if found else line


__all__ = ["GraphTransformObserver"]
