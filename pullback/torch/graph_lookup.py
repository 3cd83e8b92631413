"""Nodes of a joint graph by what they stand for.

These read the descriptors that `aot_export_joint_with_descriptors` has put on inputs and outputs.
A tensor that is made of several has no single node, and is refused.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..capture import descriptors as d
from ..graph.graph import Graph
from ..graph.node import Node

__all__ = [
    "get_all_input_and_grad_nodes", "get_all_output_and_tangent_nodes", "get_buffer_nodes",
    "get_named_buffer_nodes", "get_named_param_nodes", "get_param_and_grad_nodes",
    "get_param_nodes", "get_plain_input_and_grad_nodes", "get_plain_output_and_tangent_nodes",
]  # fmt: skip

Pairs = dict[Any, tuple[Node, Node | None]]


def _whole(node: Any, desc: Any) -> Any:
    if isinstance(desc, d._Part):
        raise errors.ExportError(errors.text(
            f"{node} is a part of a tensor that is made of several ({desc}): it is not the one "
            f"node of that tensor ({errors.user_line(3)})",
            cure="read node.meta['desc'] of the placeholders and of the output"))
    return desc


def _inputs(graph: Graph) -> list[tuple[Node, Any]]:
    nodes = graph.find_nodes(op="placeholder")
    return [(node, _whole(node, node.meta["desc"])) for node in nodes]


def _outputs(graph: Graph) -> list[tuple[Any, Any]]:
    output = graph.output_node()
    return [(node, _whole(node, desc)) for node, desc in zip(output.args[0], output.meta["desc"])]


def get_all_input_and_grad_nodes(g: Graph) -> Pairs:
    """Every tensor input with its node and the node of its gradient, None if it has none."""
    grads = {desc.grad_of: node for node, desc in _outputs(g) if isinstance(desc, d.GradAOTOutput)}
    return {desc: (node, grads.get(desc)) for node, desc in _inputs(g)
            if isinstance(desc, d.DifferentiableAOTInput)}


def get_all_output_and_tangent_nodes(g: Graph) -> Pairs:
    """Every tensor output, gradients included, with its node and the node of its tangent."""
    tangents = {desc.output: node for node, desc in _inputs(g)
                if isinstance(desc, d.TangentAOTInput)}
    return {desc: (node, tangents.get(desc)) for node, desc in _outputs(g)
            if isinstance(desc, d.DifferentiableAOTOutput)}


def _only(pairs: Pairs, kind: type) -> Pairs:
    return {desc: found for desc, found in pairs.items() if isinstance(desc, kind)}


def get_param_and_grad_nodes(graph: Graph) -> Pairs:
    """Parameters with their nodes and those of their gradients."""
    return _only(get_all_input_and_grad_nodes(graph), d.ParamAOTInput)


def get_plain_input_and_grad_nodes(graph: Graph) -> Pairs:
    """Arguments with their nodes and those of their gradients."""
    return _only(get_all_input_and_grad_nodes(graph), d.PlainAOTInput)


def get_plain_output_and_tangent_nodes(graph: Graph) -> Pairs:
    """What the user's function returns, with the nodes of the tangents."""
    return _only(get_all_output_and_tangent_nodes(graph), d.PlainAOTOutput)


def _named(graph: Graph, kind: type) -> dict[str, Node]:
    return {desc.target: node for node, desc in _inputs(graph) if isinstance(desc, kind)}


def get_named_param_nodes(graph: Graph) -> dict[str, Node]:
    """The nodes of parameters, by their names in the module."""
    return _named(graph, d.ParamAOTInput)


def get_named_buffer_nodes(graph: Graph) -> dict[str, Node]:
    """The nodes of buffers, by their names in the module."""
    return _named(graph, d.BufferAOTInput)


def get_param_nodes(graph: Graph) -> list[Node]:
    """The nodes of parameters, in the order in which the graph takes them."""
    return list(get_named_param_nodes(graph).values())


def get_buffer_nodes(graph: Graph) -> list[Node]:
    """The nodes of buffers, in the order in which the graph takes them."""
    return list(get_named_buffer_nodes(graph).values())
