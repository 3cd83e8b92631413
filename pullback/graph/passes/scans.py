"""Scans over the same operands made one: a loop that gives what several gave.

The backward of a `scan` runs it once more for what was carried into each step (`control/loops.py`).
Where the loop itself is in the same graph, as in a joint graph before it is cut, one loop gives
both; whether its rows are saved or the loop runs again is then decided like for other values.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from ..traits import cost_of
from .cse import _key

if TYPE_CHECKING:
    from collections.abc import Hashable


def merge_scans(module: GraphModule) -> int:
    """Merge scans of a graph; returns how many it has less."""
    known: dict[Hashable, list[Node]] = {}
    for node in module.graph.nodes:
        if getattr(node.target, "namespace", "") == "higher_order" and (
                node.target.__name__ == "scan" and _picked(node)):
            known.setdefault(_key(node.args[1:]), []).append(node)
    count = 0
    for group in known.values():
        first, *others = group
        for other in others:
            merged = _merged(module, first, other)
            if merged is not None:
                first = merged
                count += 1
    return count


def _picked(node: Node) -> bool:
    """Are its results taken one by one?"""
    return all(user.target is operator.getitem for user in node.users)


class _Union:
    """Two bodies in one graph, where what both compute is there once."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.known: dict[Hashable, Node] = {}
        self.inputs: list[Node] = []
        self.constants: dict[str, Any] = {}

    def add(self, body: GraphModule) -> list[Node] | None:
        """The results of a body; None if it draws, acts or holds tensors."""
        copied: dict[Node, Node] = {}
        inputs = iter(list(self.inputs))
        for node in body.graph.nodes:
            if node.op == "placeholder":
                new = next(inputs, None)
                if new is None:
                    new = self.graph.node_copy(node)
                    self.inputs.append(new)
                copied[node] = new
            elif node.op == "output":
                return [copied[n] for n in node.args[0]]
            elif node.op != "call_function" or node.is_impure() or (
                    cost_of(node.target) == "random"):
                return None
            else:
                args, kwargs = (map_arg(v, copied.__getitem__) for v in (node.args, node.kwargs))
                key = (node.target, _key(args), _key(kwargs))
                if key not in self.known:
                    self.known[key] = self.graph.node_copy(node, copied.__getitem__)
                copied[node] = self.known[key]
        return None


def _merged(module: GraphModule, first: Node, other: Node) -> Node | None:
    """A node in the place of two, if the second carries on what the first does."""
    union, count = _Union(), len(first.args[1])
    bodies = [getattr(module, node.args[0].target) for node in (first, other)]
    try:
        one, two = map(union.add, bodies)
    except TypeError:  # an argument without a hash
        return None
    if one is None or two is None or one[:count] != two[:count]:
        return None
    rows = [*one[count:], *two[count:]]
    results = [*one[:count], *rows]
    if len(set(results)) < len(results):  # each result has memory of its own
        return None
    union.graph.output(type(bodies[0].graph.output_node().args[0])(results))
    name = first.args[0].target
    while hasattr(module, name):
        name += "_and"
    setattr(module, name, GraphModule({}, union.graph))
    getattr(module, name).meta.update(bodies[0].meta)
    graph = module.graph
    with graph.inserting_before(first):
        place = graph.get_attr(name)
        made = graph.call_function(first.target, (place, *first.args[1:]))
    place.meta.update(first.args[0].meta)
    made.meta.update(first.meta)
    made.meta["val"] = [*first.meta["val"], *other.meta["val"][count:]]
    shift = len(one) - count
    for node, more in ((first, 0), (other, shift)):
        for user in list(node.users):
            n = user.args[1]
            user.args = (made, n if n < count else n + more)
        _erase(graph, node)
    return made


def _erase(graph: Graph, node: Node) -> None:
    place = node.args[0]
    graph.erase_node(node)
    if not place.users:
        graph.erase_node(place)
