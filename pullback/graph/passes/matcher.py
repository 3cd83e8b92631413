"""`SubgraphMatcher`: where a graph holds copies of a pattern, which is a graph, too.

A placeholder of the pattern stands for any value, two of them for two different nodes.  Any other
node stands for one with the same target and matching arguments.  What lies inside of a match is not
used outside of it, the pattern's results aside.  `subgraph_rewriter.py` puts other nodes there.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ...pytree import tree_flatten, tree_unflatten
from ..errors import GraphError
from ..graph import Graph
from ..graph_module import GraphModule
from ..naming import is_operator_overload
from ..node import Node, fetch_attribute
from ..printer import Trees


@dataclass
class InternalMatch:
    """One copy of the pattern: what its nodes stand for, and where it begins and ends."""

    anchors: list[Node]  # of the pattern
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)


class SubgraphMatcher:
    """Looks for one pattern.

    `match_output` and `match_placeholder` ask for the same results and inputs of the whole graph,
    `ignore_literals` lets a number stand for any other.
    """

    def __init__(
        self, pattern: Graph, match_output: bool = False, match_placeholder: bool = False,
        remove_overlapping_matches: bool = True, ignore_literals: bool = False,
    ) -> None:
        self.pattern = pattern
        self.match_output, self.match_placeholder = match_output, match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher: the pattern is an empty graph")
        dead = [n for n in pattern.nodes if not n.users and n.op not in ("placeholder", "output")]
        if dead:
            raise AssertionError(
                f"SubgraphMatcher: the pattern has dead code: nobody uses {dead[0].name}")
        output = pattern.output_node()
        self.pattern_placeholder_nodes = pattern.find_nodes(op="placeholder")
        self.pattern_returning_nodes = output.all_input_nodes
        self.pattern_anchors = [output] if match_output else [
            n for n in self.pattern_returning_nodes if len(n.users) == 1]

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """All copies in the order of their last steps, without those that share nodes.

        `node_name_match` is part of the names of these last steps.
        """
        matches = []
        for found in self._placed(self.pattern_anchors, graph, node_name_match, {}):
            if not self._is_closed(found) or self._feeds_itself(found):
                continue
            match = InternalMatch(
                list(self.pattern_anchors), found,
                [found[n] for n in self.pattern_placeholder_nodes if n in found],
                [found[n] for n in self.pattern_returning_nodes if n in found])
            if all(isinstance(n, Node) for n in match.returning_nodes):
                matches.append(match)
        if not self.remove_overlapping_matches:
            return matches
        taken: set[Node] = set()
        kept = []
        for match in matches:
            inside = {match.nodes_map[p] for p in self.pattern.nodes
                      if p.op not in ("placeholder", "output")}
            if not inside & taken:
                kept.append(match)
                taken |= inside
        return kept

    def _placed(self, anchors: list[Node], graph: Graph, name: str,
                found: dict) -> Iterator[dict]:
        """Every way to place the last steps of the pattern."""
        if not anchors:
            yield found
            return
        for node in graph.nodes:
            if name in node.name:
                attempt = dict(found)
                if self._node(anchors[0], node, attempt):
                    yield from self._placed(anchors[1:], graph, "", attempt)

    def _is_closed(self, found: dict) -> bool:
        members = {value for value in found.values() if isinstance(value, Node)}
        for p, node in found.items():
            if p.op == "placeholder" or p in self.pattern_returning_nodes:
                continue
            if any(user not in members for user in node.users):
                return False
        return True

    def _feeds_itself(self, found: dict) -> bool:
        """Whether an input of the match depends on what is inside of it."""
        inside = {node for p, node in found.items() if p.op != "placeholder"}
        todo = [found[p] for p in self.pattern_placeholder_nodes if isinstance(found.get(p), Node)]
        if not todo or not inside:
            return False
        begin = min(inside)
        seen = set(todo)
        while todo:
            node = todo.pop()
            if node in inside:
                return True
            new = [n for n in node._inputs if n not in seen and not n < begin]
            seen.update(new)
            todo += new
        return False

    def _node(self, p: Node, node: Node, found: dict) -> bool:
        if p in found:
            return found[p] is node
        if any(value is node for value in found.values()):
            return False  # it stands for another one
        if p.op == "placeholder" and not self.match_placeholder:
            found[p] = node
            return True
        if p.op != node.op or not self._same_target(p, node):
            return False
        found[p] = node
        if p.op == "placeholder":
            return True
        ours, theirs = _by_name(p, node)
        return self._same(ours, theirs, found)

    def _same_target(self, p: Node, node: Node) -> bool:
        if p.op in ("placeholder", "output"):
            return True
        if p.op == "get_attr":
            ours, theirs = _attribute(p), _attribute(node)
            # the same kind of thing, any name; nothing is known if a module has gone
            return ours is None or theirs is None or type(ours) is type(theirs)
        return p.target == node.target

    def _same(self, p: Any, value: Any, found: dict) -> bool:
        if isinstance(p, Node):
            if isinstance(value, Node):
                return self._node(p, value, found)
            if p.op != "placeholder":
                return False
            return found.setdefault(p, value) == value
        if isinstance(p, (list, tuple)):
            return (isinstance(value, (list, tuple)) and len(p) == len(value)
                    and all(self._same(a, b, found) for a, b in zip(p, value)))
        if isinstance(p, dict):
            return (isinstance(value, dict) and p.keys() == value.keys()
                    and all(self._same(item, value[key], found) for key, item in p.items()))
        if isinstance(value, Node):
            return False
        return self.ignore_literals or (type(p) is type(value) and p == value)


def _split_to_graph_and_name_node_map(gm: GraphModule) -> tuple[GraphModule, dict[str, Node]]:
    """A pattern without the dictionary of names that it returns last, and that dictionary."""
    made = copy.deepcopy(gm)
    graph = made.graph
    output = graph.output_node()
    returned, trees = output.args[0], graph.trees
    if trees is not None:  # it is given flat there
        returned = tree_unflatten(list(returned), trees.out_spec)
    if not isinstance(returned, (tuple, list)) or not isinstance(returned[-1], dict):
        raise GraphError("a pattern with names returns its results, and last a dictionary from "
                         f"names to nodes, not {returned}")
    *results, names = returned
    value = results[0] if len(results) == 1 else tuple(results)
    if trees is not None:
        flat, spec = tree_flatten(value)
        graph.trees, value = Trees(trees.names, trees.in_spec, spec), tuple(flat)
    output.args = (value,)
    made.recompile()
    return made, dict(names)


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """For patterns that return their results and a dictionary of names for nodes of them."""

    def __init__(self, pattern_gm: Any, match_output: bool = False,
                 match_placeholder: bool = False, remove_overlapping_matches: bool = True,
                 ignore_literals: bool = False) -> None:
        self.pattern_gm, self.names = _split_to_graph_and_name_node_map(pattern_gm)
        graph = self.pattern_gm.graph
        super().__init__(graph, match_output, match_placeholder, remove_overlapping_matches,
                         ignore_literals)

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        matches = super().match(graph, node_name_match)
        for match in matches:
            match.name_node_map = {n: match.nodes_map[p] for n, p in self.names.items()}
        return matches


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Whether two graphs say the same, names aside."""
    return bool(SubgraphMatcher(left, match_output=True, match_placeholder=True).match(right))


def _attribute(node: Node) -> Any:
    owner = node.graph.owning_module
    try:
        return None if owner is None else fetch_attribute(owner, node.target)
    except AttributeError:
        return None


def _by_name(p: Node, node: Node) -> tuple[Any, Any]:
    """The arguments of both, in one form where one names what the other does not."""
    given = (p.args, p.kwargs), (node.args, node.kwargs)
    if not is_operator_overload(p.target) or (
            len(p.args) == len(node.args) and p.kwargs.keys() == node.kwargs.keys()):
        return given
    formal = p.target.schema.args
    ours, theirs = ({**dict(zip([a.name for a in formal], args)), **kwargs}
                    for args, kwargs in given)
    for a in formal:  # what one leaves out has its default there
        if a.has_default and (a.name in ours) is not (a.name in theirs):
            side, other = (theirs, ours) if a.name in ours else (ours, theirs)
            side[a.name] = _as_given(a.default, other[a.name])
    return ours, theirs


def _as_given(default: Any, value: Any) -> Any:
    """A default in the form of a given argument: `padding=0` stands for one 0 per dimension."""
    several = isinstance(value, (list, tuple)) and not isinstance(default, (list, tuple))
    return [default] * len(value) if several and default is not None else default
