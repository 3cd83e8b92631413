"""Rewrites of traced modules for inference: batch norm into the layer before it, dropout away."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from ..graph.node import Node
from ..graph.tracer import symbolic_trace
from ..nn.conv import Conv1d, Conv2d, Conv3d
from ..nn.dropout import Dropout
from ..nn.linear import Linear
from ..nn.module import Module
from ..nn.normalisation import BatchNorm1d, BatchNorm2d, BatchNorm3d
from ..nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

_PAIRS = ((Conv1d, BatchNorm1d), (Conv2d, BatchNorm2d), (Conv3d, BatchNorm3d),
          (Linear, BatchNorm1d))


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Any]) -> bool:
    """Is a node the call of a module of the last type, on the result of one of the first?"""
    if not node.args:
        return False
    for expected, current in zip(pattern, (node.args[0], node)):
        if not isinstance(current, Node) or current.op != "call_module":
            return False
        if type(modules.get(current.target)) is not expected:
            return False
    return True


def replace_node_module(node: Node, modules: dict[str, Any], new_module: Module) -> None:
    """Let a node call another module."""
    path, _, name = node.target.rpartition(".")
    modules[node.target] = new_module
    setattr(modules[path], name, new_module)


def fuse(model: Module, inplace: bool = False, no_trace: bool = False) -> Module:
    """A module whose batch norms in evaluation mode are part of the layers before them."""
    if not inplace:
        model = copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules, graph = dict(traced.named_modules()), traced.graph
    for first, norm in _PAIRS:
        for node in list(graph.nodes):
            if not matches_module_pattern((first, norm), node, modules):
                continue
            if len(node.args[0].users) > 1:
                continue  # somebody else wants it without the norm
            layer, bn = modules[node.args[0].target], modules[node.target]
            if layer.training or bn.training or not bn.track_running_stats:
                continue
            join = fuse_linear_bn_eval if first is Linear else fuse_conv_bn_eval
            replace_node_module(node.args[0], modules, join(layer, bn))
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    return GraphModule(traced, graph)


def remove_dropout(model: Module) -> Module:
    """A module without its dropout layers."""
    traced = symbolic_trace(model)
    modules = dict(traced.named_modules())
    for node in list(traced.graph.nodes):
        if node.op == "call_module" and isinstance(modules[node.target], Dropout):
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
    return GraphModule(traced, traced.graph)


def extract_subgraph(orig_module: Module, nodes: list[Node], inputs: list[Node],
                     outputs: list[Node]) -> GraphModule:
    """Some nodes of a module as a module of their own."""
    graph, values = Graph(), {}
    for node in inputs:
        values[node] = graph.placeholder(node.name)
    for node in nodes:
        values[node] = graph.node_copy(node, values.__getitem__)
    graph.output([values[n] for n in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)


__all__ = ["extract_subgraph", "fuse", "matches_module_pattern", "remove_dropout",
           "replace_node_module"]
