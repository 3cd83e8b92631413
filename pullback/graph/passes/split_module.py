"""Graphs cut into submodules: `split_module`, one for each value that a callback gives, and
`split_by_tags`, one for each tag that nodes have.
"""

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

    Inputs keep their names in any case, nodes if `keep_original_node_name`.  `partition_affix`
    comes before the value, `tuple_return` makes single results tuples, too.
    """
    prefix = "submod_" if partition_affix is None else f"submod_{partition_affix}_"
    parts: dict[Any, _Part] = {}
    for node in m.graph.nodes:
        if node.op not in ("placeholder", "get_attr", "output"):
            key = split_callback(node)
            part = parts.setdefault(key, _Part(f"{prefix}{key}"))
            part.nodes.append(node)
    names = {} if qualname_map is None else qualname_map
    return _split(m, list(parts.values()), names, tuple_return, keep_original_node_name)


def split_by_tags(
    gm: GraphModule, tags: list[str], return_fqn_mapping: bool = False,
    return_tuple: bool = False, GraphModuleCls: type[GraphModule] = GraphModule,
) -> GraphModule | tuple[GraphModule, dict[str, str]]:
    """A module that calls a submodule for each tag, made of the nodes whose `tag` it is.

    The mapping says where each of the called modules went.
    """
    parts = {tag: _Part(tag) for tag in tags}
    for node in gm.graph.nodes:
        if node.op not in ("placeholder", "get_attr", "output"):
            tag = getattr(node, "tag", None)
            if tag not in parts:
                raise AssertionError(f"split_by_tags: node {node.name} has the tag {tag!r}, which "
                                     f"is none of {', '.join(map(repr, tags))}")
            parts[tag].nodes.append(node)
    names: dict[str, str] = {}
    used = [part for part in parts.values() if part.nodes]
    made = _split(gm, used, names, return_tuple, True, attributes_inside=True)
    if GraphModuleCls is not GraphModule:
        made = GraphModuleCls(made, made.graph)
    made._class_name = "GraphModule"
    return (made, {old: new for new, old in names.items()}) if return_fqn_mapping else made


def getattr_recursive(obj: Any, name: str) -> Any:
    """The attribute at a dotted path."""
    return fetch_attribute(obj, name)


def setattr_recursive(obj: Any, attr: str, value: Any) -> None:
    """Set the attribute at a dotted path."""
    path, _, last = attr.rpartition(".")
    setattr(fetch_attribute(obj, path) if path else obj, last, value)


def _split(m: GraphModule, parts: list[_Part], names: dict[str, str], as_tuple: bool,
           keep_names: bool, attributes_inside: bool = False) -> GraphModule:
    """A module that calls one for each part; `names` gets where called modules come from."""
    owner = {node: part for part in parts for node in part.nodes}
    for node in m.graph.nodes:
        part = owner.get(node)
        for source in node.all_input_nodes:
            made = owner.get(source)
            if made is part and part is not None:
                continue
            if part is not None and not (attributes_inside and source.op == "get_attr"):
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
    for part in _ordered(parts):
        root._install(part.name, _submodule(m, part, names, as_tuple, keep_names))
        call = graph.call_module(part.name, tuple(values[n] for n in part.inputs))
        outputs = list(part.outputs)
        for i, node in enumerate(outputs):
            single = len(outputs) == 1 and not as_tuple
            values[node] = call if single else graph.call_function(operator.getitem, (call, i))
    out = m.graph.output_node()
    graph.output(map_arg(out.args[0], values.__getitem__))
    for node in list(graph.nodes):
        if node.op == "get_attr" and not node.users:
            graph.erase_node(node)
    graph.trees, graph.codegen = m.graph.trees, m.graph.codegen  # called as the whole was
    return GraphModule(root, graph)


def _ordered(parts: list[_Part]) -> list[_Part]:
    """The parts so that each comes after those that it needs."""
    done: list[_Part] = []
    while len(done) < len(parts):
        ready = [p for p in parts if p not in done and p.needs <= set(done)]
        if not ready:
            raise GraphError("cycle exists between partitions: no order of the submodules fits")
        done.append(ready[0])
    return done


def _submodule(m: GraphModule, part: _Part, names: dict[str, str], as_tuple: bool,
               keep_names: bool) -> GraphModule:
    graph = Graph()
    values: dict[Node, Any] = {n: graph.placeholder(n.name) for n in part.inputs}
    for old, new in values.items():
        new.meta = dict(old.meta)
    for node in part.nodes:
        for source in node.all_input_nodes:
            if source not in values:  # an attribute that is read inside
                values[source] = graph.node_copy(source)
        if keep_names:
            values[node] = graph.node_copy(node, values.__getitem__)
        else:
            args, kwargs = map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = graph.create_node(node.op, node.target, args, kwargs, None, node.type)
            values[node].meta = dict(node.meta)
        if node.op == "call_module":
            names[f"{part.name}.{node.target}"] = node.target
    results = tuple(values[n] for n in part.outputs)
    graph.output(results[0] if len(results) == 1 and not as_tuple else results)
    return GraphModule(m, graph)
