"""Parts of a graph by where they come from: all nodes of one call of a module or a function.

Nodes of exported programs say it (`export/origins.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..graph import Graph
from ..node import Node

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]


@dataclass
class SourcePartition:
    """The nodes of one call, those that it takes and gives, and its parameters."""

    nodes: list[Node]
    source: Any
    input_nodes: list[Node] = field(default_factory=list)
    output_nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)


def get_source_partitions(
    graph: Graph, wanted_sources: Sequence[Any], filter_fn: Callable[[Node], bool] | None = None
) -> dict[Any, list[SourcePartition]]:
    """The calls of some sources: classes of modules, functions, or their names.

    With `filter_fn` only those all of whose nodes it accepts.
    """
    found: dict[Any, dict[str, list[Node]]] = {}
    for node in graph.nodes:
        match = _source(node, wanted_sources)
        if match is not None:
            source, call = match
            found.setdefault(source, {}).setdefault(call, []).append(node)
    return {source: [_partition(nodes, source) for nodes in calls.values()
                     if filter_fn is None or all(map(filter_fn, nodes))]
            for source, calls in found.items()}


def _source(node: Node, wanted: Sequence[Any]) -> tuple[Any, str] | None:
    """The source that a node comes from, and the call of it."""
    told = node.meta.get("source_fn_stack")
    if told is not None:
        call, source = told[-1]
        return (source, call) if source in wanted else None
    call, text = node.meta.get("torch_fn") or ("", "")
    modules = node.meta.get("nn_module_stack") if node.op == "call_function" else None
    title, kind = list(modules.values())[-1] if modules else ("", "")
    for source in wanted:
        if isinstance(source, type):
            if kind == f"{source.__module__}.{source.__qualname__}":
                return source, title
        elif text and (source == text.partition(".")[2] if isinstance(source, str) else
                       text == f"{type(source).__name__}.{getattr(source, '__name__', '')}"):
            return source, call
        elif modules and source == kind:
            return source, title
    return None


def _partition(nodes: list[Node], source: Any) -> SourcePartition:
    inside = set(nodes)
    given = dict.fromkeys(a for n in nodes for a in n.all_input_nodes if a not in inside)
    held = [n for n in given if n.op == "get_attr"]
    return SourcePartition(
        nodes, source, [n for n in given if n.op != "get_attr"],
        [n for n in nodes if any(user not in inside for user in n.users)],
        [*[n for n in nodes if n.op == "get_attr"], *held])


def check_subgraphs_connected(subgraph1: SourcePartition, subgraph2: SourcePartition) -> bool:
    """Does the second take what the first gives?"""
    given = set(subgraph1.output_nodes)
    return any(n in given for node in subgraph2.nodes for n in node.all_input_nodes)
