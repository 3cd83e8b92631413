"""`split_module`: cut a graph into submodules, one for each value that a callback gives."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..errors import GraphError
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, fetch_attribute, map_arg


class _Part:
    """The nodes that become one submodule."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: list[Node] = []
        self.inputs: dict[Node, None] = {}
        self.outputs: dict[Node, None] = {}
        self.needs: set[_Part] = set()


def split_module(
    m: GraphModule, root_m: Any, split_callback: Callable[[Node], Any],
    qualname_map: dict[str, str] | None = None, keep_original_order: bool = False,
    keep_original_node_name: bool = False, keep_original_input_name: bool = True, *,
    partition_affix: str | None = None, tuple_return: bool = False,
) -> GraphModule:
    """A module that calls `submod_<value>` for the nodes to which `split_callback` gives it.

    Nodes and inputs keep their names in any case.  `partition_affix` comes before the value,
    `tuple_return` makes single results tuples, too.
    """
    prefix = "submod_" if partition_affix is None else f"submod_{partition_affix}_"
    parts: dict[Any, _Part] = {}
    owner: dict[Node, _Part] = {}
    for node in m.graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        key = split_callback(node)
        part = parts.setdefault(key, _Part(f"{prefix}{key}"))
        part.nodes.append(node)
        owner[node] = part
    for node in m.graph.nodes:
        part = owner.get(node)
        for source in node.all_input_nodes:
            made = owner.get(source)
            if made is part and part is not None:
                continue
            if part is not None:
                part.inputs[source] = None
            if made is not None:
                made.outputs[source] = None
                if part is not None:
                    part.needs.add(made)
    graph = Graph()
    values: dict[Node, Any] = {}
    root = GraphModule(m, Graph())  # a module if this is one
    for node in m.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            values[node] = graph.node_copy(node)
            if node.op == "get_attr":
                root._install(node.target, fetch_attribute(m, node.target))
    for part in _ordered(list(parts.values()), keep_original_order):
        root._install(part.name, _submodule(m, part, qualname_map, tuple_return))
        call = graph.call_module(part.name, tuple(values[n] for n in part.inputs))
        outputs = list(part.outputs)
        for i, node in enumerate(outputs):
            single = len(outputs) == 1 and not tuple_return
            values[node] = call if single else graph.call_function(operator.getitem, (call, i))
    out = m.graph.output_node()
    graph.output(map_arg(out.args[0], values.__getitem__))
    for node in list(graph.nodes):
        if node.op == "get_attr" and not node.users:
            graph.erase_node(node)
    return GraphModule(root, graph)


def _ordered(parts: list[_Part], keep: bool) -> list[_Part]:
    """The parts so that each comes after those that it needs."""
    done: list[_Part] = []
    while len(done) < len(parts):
        ready = [p for p in parts if p not in done and p.needs <= set(done)]
        if not ready:
            raise GraphError("cycle exists between partitions: no order of the submodules fits")
        done.append(ready[0])
    return done


def _submodule(m: GraphModule, part: _Part, names: dict[str, str] | None,
               as_tuple: bool) -> GraphModule:
    graph = Graph()
    values: dict[Node, Any] = {n: graph.placeholder(n.name) for n in part.inputs}
    for old, new in values.items():
        new.meta = dict(old.meta)
    for node in part.nodes:
        values[node] = graph.node_copy(node, values.__getitem__)
        if node.op == "call_module" and names is not None:
            names[f"{part.name}.{node.target}"] = node.target
    results = tuple(values[n] for n in part.outputs)
    graph.output(results[0] if len(results) == 1 and not as_tuple else results)
    return GraphModule(m, graph)
