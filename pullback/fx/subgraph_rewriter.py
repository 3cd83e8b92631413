"""`replace_pattern`: find copies of one graph in another and put a third in their place.

A pattern's placeholders match any value, its other nodes a node with the same target and matching
arguments.  What lies inside of a match must not be used outside of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from .graph import Graph
from .graph_module import GraphModule
from .node import Node
from .tracer import symbolic_trace


class Match(NamedTuple):
    """Where a pattern was found: the node of its last step, and what its nodes stand for."""

    anchor: Node
    nodes_map: dict[Node, Any]


@dataclass
class ReplacedPatterns:
    """A match with the nodes that were put in its place."""

    anchor: Node
    nodes_map: dict[Node, Any]
    replacements: list[Node]


def _graph(thing: Any) -> Graph:
    if isinstance(thing, Graph):
        return thing
    if isinstance(thing, GraphModule):
        return thing.graph
    return symbolic_trace(thing).graph


class _Matcher:
    def __init__(self, pattern: Graph, ignore_literals: bool = False) -> None:
        self.pattern, self.ignore_literals = pattern, ignore_literals
        output = pattern.output_node()
        self.anchors = output.all_input_nodes
        self.inside = [n for n in pattern.nodes if n.op not in ("placeholder", "output")]

    def at(self, node: Node) -> dict[Node, Any] | None:
        """What the pattern's nodes stand for, if its last step is `node`."""
        found: dict[Node, Any] = {}
        anchor = self.anchors[-1]
        if anchor.op == "placeholder" or not self._same(anchor, node, found):
            return None
        if len(self.anchors) > 1 and not self._others(found):
            return None
        if any(n not in found for n in self.inside):
            return None
        results = set(self.anchors)
        members = {found[n] for n in self.inside}
        for n in self.inside:
            if n not in results and not all(user in members for user in found[n].users):
                return None  # a value inside is used outside
        return found

    def _others(self, found: dict) -> bool:
        """Match the other results of a pattern that has several, among the users of its inputs."""
        for anchor in self.anchors[:-1]:
            if anchor in found:
                continue
            known = [found[n] for n in anchor.all_input_nodes if n in found]
            candidates = known[0].users if known and isinstance(known[0], Node) else ()
            for candidate in candidates:
                attempt = dict(found)
                if self._same(anchor, candidate, attempt):
                    found.update(attempt)
                    break
            else:
                return False
        return True

    def _same(self, pattern: Any, value: Any, found: dict) -> bool:
        if isinstance(pattern, Node):
            if pattern in found:
                return found[pattern] is value or found[pattern] == value
            if pattern.op == "placeholder":
                found[pattern] = value
                return True
            if not isinstance(value, Node) or pattern.op != value.op:
                return False
            if pattern.target != value.target or len(pattern.args) != len(value.args):
                return False
            if pattern.kwargs.keys() != value.kwargs.keys():
                return False
            found[pattern] = value
            pairs = [*zip(pattern.args, value.args)]
            pairs += [(pattern.kwargs[k], value.kwargs[k]) for k in pattern.kwargs]
            return all(self._same(p, v, found) for p, v in pairs)
        if isinstance(pattern, (list, tuple)):
            return (
                isinstance(value, (list, tuple))
                and len(pattern) == len(value)
                and all(self._same(p, v, found) for p, v in zip(pattern, value))
            )
        if isinstance(pattern, dict):
            return (
                isinstance(value, dict)
                and pattern.keys() == value.keys()
                and all(self._same(p, value[k], found) for k, p in pattern.items())
            )
        if self.ignore_literals:
            return not isinstance(value, Node)
        return type(pattern) is type(value) and pattern == value


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
    graph, sought = gm.graph, _graph(pattern)
    matcher = _Matcher(sought, ignore_literals)
    inputs = sought.find_nodes(op="placeholder")
    done: list[ReplacedPatterns] = []
    taken: set[Node] = set()
    for node in list(graph.nodes):
        found = None if node._erased or node_name_match not in node.name else matcher.at(node)
        if found is None:
            continue
        members = [found[n] for n in matcher.inside]
        match = Match(node, found)
        if any(m in taken or m._erased for m in members) or not all(
            accept(match, graph, sought) for accept in match_filters or ()
        ):
            continue
        taken.update(members)
        given = replacement_callback(match, graph, sought) if replacement_callback else replacement
        new = _graph(given)
        mapping = dict(zip(new.find_nodes(op="placeholder"), [found.get(p) for p in inputs]))
        before = set(graph.nodes)
        last = max(members)  # every input of the match is there by then
        with graph.inserting_before(last):
            result = graph.graph_copy(new, mapping)
        results = list(result) if isinstance(result, (list, tuple)) else [result]
        for anchor, value in zip(matcher.anchors, results):
            found[anchor].replace_all_uses_with(value)
        for member in sorted(members, reverse=True):
            if not member.users:
                graph.erase_node(member)
        added = [n for n in graph.nodes if n not in before]
        done.append(ReplacedPatterns(node, found, added))
        _attributes(gm, given, added)
    gm.recompile()
    return done


def _attributes(gm: GraphModule, source: Any, added: list[Node]) -> None:
    """Bring along what new nodes refer to."""
    for node in added:
        if node.op in ("get_attr", "call_module"):
            try:
                gm.get_submodule(node.target)
            except AttributeError:
                holder = source
                for part in node.target.split("."):
                    holder = getattr(holder, part, None)
                if holder is not None:
                    gm._install(node.target, holder)
