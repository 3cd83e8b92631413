"""Names and notes of joint graphs as PyTorch gives them.

An operator whose formula reads its own result keeps that result without history: a `detach` behind
the operator and another one where the backward reads it.  `saved_results` puts these into the joint
graph.  `traced_again` is what becomes of a joint graph when it is captured itself, gradients on, as
`aot_export_module` does: the operators keep their results once more, for nobody.
"""

from __future__ import annotations

import operator

from ..core.handle import Tensor, make
from ..core.op import OpOverload, overload
from ..core.tape import Node as TapeNode
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node, map_arg
from ..interp.trace import Trace, Traced

# their statistics have no derivative in PyTorch, and are kept as they are
_STATISTICS = ("native_layer_norm", "native_batch_norm", "_native_batch_norm")


def _marked(rule, name: str) -> bool:
    """Is a result that is saved marked as such?"""
    i = rule.outputs.index(name)
    return rule.diff_outputs[i] and not (i and rule.overload.name.startswith(_STATISTICS))


def saved_results(level: Trace, pulled: TapeNode) -> None:
    """Mark the results that a node of the tape has saved, before its formulas read them."""
    rule = getattr(pulled, "rule", None)
    if not pulled.saved or getattr(rule, "overload", None) is None:
        return
    saved = list(pulled.saved)
    for i, (local, kind, _, _) in enumerate(rule.saves):
        value = saved[i]
        if kind == "out" and value is not None and _marked(rule, local):
            if isinstance(value._data, Traced) and value._data.interp is level:
                saved[i] = _read_back(level, value)
    pulled.saved = tuple(saved)


def _read_back(level: Trace, value: Tensor) -> Tensor:
    recorder, node, inner = level.recorder, value._data.node, value._data.inner
    behind = node
    while behind.next.target is operator.getitem or behind.next.meta.get("kept"):
        behind = behind.next
    with recorder.graph.inserting_after(behind):
        kept = recorder.call(overload("detach"), (node,), inner)
    read = recorder.call(overload("detach"), (kept,), inner)
    kept.meta.update(kept=True, stack_trace=node.stack_trace)
    read.meta["stack_trace"] = node.stack_trace
    again = make(Traced(level, inner, read))
    again._cell = value._cell
    return again


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
        if ov.rule is None or ov.name == "detach" or needs.isdisjoint(node.all_input_nodes):
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
