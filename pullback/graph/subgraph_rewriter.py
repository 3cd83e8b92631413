"""`replace_pattern`: find copies of one graph in another and put a third in their place.

`passes/matcher.py` says what a copy is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

from .graph import Graph
from .graph_module import GraphModule
from .node import Node, fetch_attribute
from .passes.matcher import InternalMatch, SubgraphMatcher
from .tracer import symbolic_trace


class Match(NamedTuple):
    """Where a pattern was found: its last step, and what its nodes stand for."""

    anchor: Node
    nodes_map: dict[Node, Any]


@dataclass
class ReplacedPatterns:
    """A match with the nodes that were put in its place."""

    anchor: Node
    nodes_map: dict[Node, Any]
    replacements: list[Node]


def _module(thing: Any) -> Any:
    """A pattern as something with a `graph`; kept, for a graph does not keep its module."""
    if isinstance(thing, Graph):
        return SimpleNamespace(graph=thing)
    if isinstance(thing, GraphModule):
        return thing
    if not callable(thing):
        raise AssertionError(
            f"replace_pattern: a pattern is a function, a module or a graph, not {thing!r}")
    return symbolic_trace(thing)


def replace_pattern(
    gm: GraphModule, pattern: Callable | Graph | GraphModule,
    replacement: Callable | Graph | GraphModule,
) -> list[Match]:
    """Put `replacement` in the place of every copy of `pattern`; both have the same inputs."""
    return [
        Match(r.anchor, r.nodes_map) for r in replace_pattern_with_filters(gm, pattern, replacement)
    ]


def replace_pattern_with_filters(
    gm: GraphModule, pattern: Callable | Graph | GraphModule,
    replacement: Callable | Graph | GraphModule | None = None,
    match_filters: list[Callable] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """The same, for the matches that every filter `(match, graph, pattern graph)` accepts.

    `replacement_callback(match, graph, pattern graph)` may make the replacement of each.
    `ignore_literals` lets numbers of the pattern stand for any, `node_name_match` is part of the
    name of the last node of a match.
    """
    held = _module(pattern)
    graph, sought = gm.graph, held.graph
    common = None if replacement_callback else _module(replacement).graph
    matches = SubgraphMatcher(sought, ignore_literals=ignore_literals).match(graph, node_name_match)
    changed: dict[Any, Any] = {}  # results of earlier matches -> what is there now
    done = []
    for match in matches:
        if not all(accept(match, graph, sought) for accept in match_filters or ()):
            continue
        new = common or _module(replacement_callback(match, graph, sought)).graph
        for p, value in match.nodes_map.items():
            if p.op == "placeholder" and isinstance(value, Node):
                match.nodes_map[p] = changed.get(value, value)
        added = _replace(graph, match, new, sought, changed)
        done.append(ReplacedPatterns(match.anchors[0], match.nodes_map, added))
    gm.recompile()
    if hasattr(replacement, "named_modules"):
        _take_attributes(gm, replacement)
    return done


def _replace(graph: Graph, match: InternalMatch, new: Graph, sought: Graph,
             changed: dict) -> list[Node]:
    found = match.nodes_map
    inputs = [found.get(p) for p in sought.find_nodes(op="placeholder")]
    mapping = dict(zip(new.find_nodes(op="placeholder"), inputs))
    users = [user for result in match.returning_nodes for user in result.users]
    if not users:
        raise AssertionError(
            "replace_pattern: nobody uses what was matched, so there is no place for new nodes")
    before = set(graph.nodes)
    with graph.inserting_before(min(users)):
        result = graph.graph_copy(new, mapping)
    results = list(result) if isinstance(result, (list, tuple)) else [result]
    if len(results) != len(match.returning_nodes):
        raise AssertionError(
            f"replace_pattern: the pattern has {len(match.returning_nodes)} results, its "
            f"replacement {len(results)}")
    for old, value in zip(match.returning_nodes, results):
        old.replace_all_uses_with(value)
        changed[old] = value
    for p in reversed(sought.nodes):
        if p.op not in ("placeholder", "output"):
            graph.erase_node(found[p])
    return [n for n in graph.nodes if n not in before]


def _take_attributes(gm: GraphModule, source: Any) -> None:
    """Bring along copies of what new nodes refer to; what none refers to any more goes."""
    for node in gm.graph.nodes:
        if node.op not in ("get_attr", "call_module"):
            continue
        try:
            fetch_attribute(gm, node.target)
        except AttributeError:
            try:
                held = copy.deepcopy(fetch_attribute(source, node.target))
            except AttributeError:
                raise RuntimeError(
                    f"replace_pattern: node {node.name} refers to {node.target!r}, which neither "
                    "the module nor the replacement has") from None
            if node.op == "get_attr" and "." not in node.target:
                setattr(gm, node.target, held)
            else:
                gm._install(node.target, held)
    gm.delete_all_unused_submodules()
    gm.graph.lint()
