"""`split_const_subgraphs`: what a traced module computes from its own attributes alone, once.

The graph reads one attribute (a parameter, or a list of them) in the place of those nodes; it is
computed by a submodule at the first call, or by `run_folding()`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from ..core.handle import Tensor
from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from ..graph.node import Node, fetch_attribute
from ..graph.tracer import symbolic_trace
from ..nn.containers import ParameterList
from ..nn.module import Module
from ..nn.parameter import Parameter
from ..nn.traced import TracedModule


class FoldedGraphModule(TracedModule):
    """A graph whose constants are computed before its first call."""

    def __init__(self, root: Any, graph: Graph, const_subgraph: Graph | None = None,
                 fx_const_folded_attrs_name: str | None = None,
                 device_for_folded_attrs: str = "cuda") -> None:
        super().__init__(root, graph)
        self.const_subgraph_module = (
            None if const_subgraph is None else TracedModule(root, const_subgraph))
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args)

    def run_folding(self) -> None:
        """Compute the constants; does nothing where there are none."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("run_folding: the constants have been computed already")
        self.has_folding_been_run = True
        found = self.const_subgraph_module()
        held = ParameterList([_parameter(v) for v in found]) if isinstance(
            found, tuple) else _parameter(found)
        self.__dict__.pop(self.fx_const_folded_attrs_name, None)
        setattr(self, self.fx_const_folded_attrs_name, held)


def _parameter(value: Tensor) -> Parameter:
    return Parameter(value.detach().clone(), requires_grad=value.requires_grad)


def get_unique_attr_name_in_module(mod_traced: Any, name: str) -> str:
    """The name, made an identifier, with a number if the module has such an attribute."""
    name = re.sub("[^0-9a-zA-Z_]+", "_", name)
    name = f"_{name}" if name[0].isdigit() else name
    base, number = name, 0
    while hasattr(mod_traced, name):
        number += 1
        name = f"{base}_{number}"
    return name


def split_const_subgraphs(
    module: Module | GraphModule, skip_folding_node_fn: Callable[[Node], bool] | None = None,
    device_for_folded_attrs: str = "cpu",
) -> FoldedGraphModule:
    """A module whose nodes that depend on no input are computed once.

    Those for which `skip_folding_node_fn` is true, and those with effects, stay where they are.
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant: dict[Node, None] = {}
    for node in traced.graph.nodes:
        if node.op in ("placeholder", "output") or not constant.keys() >= set(node._inputs):
            continue
        if node.op != "get_attr" and (
                node.is_impure() or skip_folding_node_fn and skip_folding_node_fn(node)):
            continue
        constant[node] = None
    folded = [n for n in constant if n.op != "get_attr"]
    if not folded:
        return FoldedGraphModule(traced, traced.graph)
    results = [n for n in folded if any(u not in constant for u in n.users)]
    inner = _constants(folded, results)
    name = get_unique_attr_name_in_module(traced, "_FX_CONST_FOLDED_ATTRS")
    graph = Graph()
    values: dict[Node, Any] = {}
    for node in traced.graph.nodes:  # what is not computed comes first
        if node.op == "placeholder" or node.op == "get_attr" and any(
                u not in constant for u in node.users):
            values[node] = graph.node_copy(node)
    held = graph.get_attr(name)
    for i, node in enumerate(results):
        values[node] = held if len(results) == 1 else graph.call_function(
            operator.getitem, (held, i))
        values[node].meta = dict(node.meta)
    for node in traced.graph.nodes:
        if node not in values and node not in constant:
            values[node] = graph.node_copy(node, values.__getitem__)
    root = {n.target: fetch_attribute(traced, n.target) for n in traced.graph.nodes
            if n.op in ("get_attr", "call_module")}
    return FoldedGraphModule({**root, name: None}, graph, inner, name, device_for_folded_attrs)


def _constants(nodes: list[Node], results: list[Node]) -> Graph:
    """The graph that computes the results; its inputs are attributes."""
    graph = Graph()
    values: dict[Node, Any] = {}
    attributes = dict.fromkeys(s for n in nodes for s in n._inputs if s.op == "get_attr")
    inputs = [graph.placeholder(a.name) for a in attributes]  # their names are taken, as there
    for attribute, given in zip(attributes, inputs):
        values[attribute] = graph.get_attr(attribute.target)
        values[attribute].meta = dict(attribute.meta)
        graph.erase_node(given)
    for node in nodes:
        values[node] = graph.node_copy(node, values.__getitem__)
    found = tuple(values[n] for n in results)
    graph.output(found[0] if len(found) == 1 else found)
    return graph


__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]
