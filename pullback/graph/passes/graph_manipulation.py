"""Small changes of graphs, and the sizes of what their nodes give and hold."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, fetch_attribute, map_arg
from .shape_prop import ShapeProp


def replace_target_nodes_with(fx_module: GraphModule, old_op: str, old_target: Any, new_op: str,
                              new_target: Any) -> None:
    """Call something else, in the same way, wherever a graph calls one thing."""
    graph, values = Graph(), {}
    for node in fx_module.graph.nodes:
        if node.op == old_op and node.target == old_target:
            args, kwargs = map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = graph.create_node(new_op, new_target, args, kwargs, node.name)
        else:
            values[node] = graph.node_copy(node, values.__getitem__)
    graph.trees, graph.codegen = fx_module.graph.trees, fx_module.graph.codegen
    fx_module.graph = graph


class size_bytes(NamedTuple):
    """Bytes of a node's result, and with those of the parameters that it holds."""

    output_size: int
    total_size: int


def get_size_of_all_nodes(fx_module: GraphModule, args: list[Any] | None = None) -> None:
    """Note `size_bytes` on every node; `args` are run first, to know the shapes."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op == "output":
            break
        node.size_bytes = get_size_of_node(fx_module, node)


def get_tensor_meta(node: Node) -> Any:
    """What a run has noted of a node's result."""
    found = node.meta.get("tensor_meta")
    if not found:
        raise RuntimeError(f"Node {node} has no tensor metadata associated with it! Check that "
                           "shape propagation has run")
    return found


def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """Bytes of a node's result, and of the parameters and buffers of a module that it calls."""
    held = 0
    if node.op == "call_module":
        module = fetch_attribute(fx_module, node.target)
        held = sum(t.numel() * t.element_size()
                   for t in (*module.parameters(), *module.buffers()))
    found = get_tensor_meta(node)
    count = 1
    for extent in found.shape:
        count *= extent
    result = count * found.dtype.itemsize
    return size_bytes(result, result + held)


__all__ = ["get_size_of_all_nodes", "get_size_of_node", "get_tensor_meta",
           "replace_target_nodes_with", "size_bytes"]
