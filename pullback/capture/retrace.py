"""Names and notes of joint graphs as PyTorch gives them.

A capture names nodes in the order in which it makes them, and makes some later than PyTorch does.
`renumbered` gives all the names of their places.  `traced_again` is what becomes of a joint graph
when it is captured itself, gradients on, as `aot_export_module` does: operators whose formula reads
their own result keep it once more, by a `detach` for nobody.
"""

from __future__ import annotations

import operator

from ..core.overload import OpOverload, overload
from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from ..graph.node import Node, map_arg

# their statistics have no derivative in PyTorch, and are kept as they are
_STATISTICS = ("native_layer_norm", "native_batch_norm", "_native_batch_norm")


def _marked(rule, name: str) -> bool:
    """Is a result that is saved marked as such?"""
    i = rule.outputs.index(name)
    return rule.diff_outputs[i] and not (i and rule.overload.name.startswith(_STATISTICS))


def renumbered(module: GraphModule) -> dict[Node, Node]:
    """Give nodes the names that they would have got in the order of the graph."""
    graph, copied = Graph(), {}
    for node in module.graph.nodes:
        copied[node] = _copy(graph, node, copied)
    graph.trees = module.graph.trees
    module.graph = graph
    return copied


def _copy(graph: Graph, node: Node, copied: dict[Node, Node]) -> Node:
    name = None if node.op == "call_function" else node.name
    new = graph.create_node(
        node.op, node.target, map_arg(node.args, copied.__getitem__),
        map_arg(node.kwargs, copied.__getitem__), name, node.type)
    new.meta = dict(node.meta)
    return new


def traced_again(module: GraphModule, inputs: list[Node], tracked: list[bool]) -> dict[Node, Node]:
    """The joint graph captured once more, with inputs that require grad."""
    graph, copied = Graph(), {}
    needs = {n for n, flag in zip(inputs, tracked) if flag}
    for node in module.graph.nodes:
        if node in copied:
            continue
        new = copied[node] = _copy(graph, node, copied)
        new.meta.pop("desc", None)
        ov = node.target
        if not isinstance(ov, OpOverload):
            continue
        results = _all_results(graph, node, copied)
        if ov.rule is None or ov.op.ends_history or needs.isdisjoint(node.all_input_nodes):
            continue
        rule = ov.rule
        for i, name in enumerate(rule.outputs):
            if rule.diff_outputs[i] and i < len(results) and results[i] is not None:
                old, made = results[i]
                needs.add(old)
                saved = any(kind == "out" and local == name for local, kind, _, _ in rule.saves)
                if saved and _marked(rule, name):
                    kept = graph.call_function(overload("detach"), (made,))
                    kept.meta["val"] = made.meta["val"]
    module.graph = graph
    return copied


def _all_results(graph: Graph, node: Node, copied: dict[Node, Node]) -> list:
    """(node, its copy) of each result of an operator: all of several are taken out of the tuple."""
    values = node.meta.get("val")
    if not isinstance(values, (list, tuple)):
        return [(node, copied[node])]
    picks = {u.args[1]: u for u in node.users if u.target is operator.getitem}
    results = []
    for i, value in enumerate(values):
        pick = picks.get(i)
        new = graph.call_function(operator.getitem, (copied[node], i))
        new.meta = dict(pick.meta) if pick is not None else {"val": value}
        if pick is not None:
            copied[pick] = new
        results.append((pick if pick is not None else new, new))
    return results
