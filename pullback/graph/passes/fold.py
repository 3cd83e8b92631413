"""Constant folding: compute at compile time what does not depend on the graph's inputs.

How a constant is computed and which ones are worth it is the caller's choice; by default a target
is called on the attribute values, and results up to a size limit are kept. Read `noop.py` next.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import GraphError
from ..node import Node, fetch_attribute, map_arg
from ..traits import cost_of, is_tensor, nbytes

if TYPE_CHECKING:
    from ..graph import Graph

LIMIT = 1 << 20  # bytes of a folded constant: larger ones are cheaper to compute than to carry


def _call(node: Node, args: tuple, kwargs: dict[str, Any]) -> Any:
    return node.target(*args, **kwargs)


def _constants(graph: "Graph") -> dict[Node, None]:
    """Nodes that depend on attributes and literals only."""
    constant: dict[Node, None] = {}
    for node in graph.nodes:
        if node.op == "get_attr" or (
            node.op == "call_function"
            and not node.is_impure()
            and all(source in constant for source in node._inputs)
        ):
            constant[node] = None
    return constant


def _worth_folding(node: Node, constant: dict[Node, None], limit: int) -> bool:
    """Only where constants meet variable code; a bare `zeros` or `arange` stays what it is."""
    if node.op != "call_function" or all(user in constant for user in node.users):
        return False
    if cost_of(node.target) == "create" and not node._inputs:
        return False
    value = node.meta.get("val")
    return value is None or (is_tensor(value) and nbytes(value) <= limit)


def fold_constants(
    graph: "Graph",
    evaluate: Callable[[Node, tuple, dict[str, Any]], Any] = _call,
    limit: int = LIMIT,
) -> int:
    """Replace constant calls by attributes of the owning module; returns how many were.

    `evaluate(node, args, kwargs)` computes one node from real values; it may return
    NotImplemented to leave the node, and what depends on it, in the graph.
    """
    module = graph.owning_module
    if module is None:
        raise GraphError("fold_constants: the graph needs an owning module to keep constants in")
    constant = _constants(graph)
    values: dict[Node, Any] = {}

    def value_of(wanted: Node) -> Any:
        pending = [wanted]
        while pending:
            node = pending[-1]
            missing = [source for source in node._inputs if source not in values]
            if missing:
                pending += missing
                continue
            pending.pop()
            if node in values:
                continue
            if node.op == "get_attr":
                values[node] = fetch_attribute(module, node.target)
            elif any(values[source] is NotImplemented for source in node._inputs):
                values[node] = NotImplemented
            else:
                args = map_arg(node.args, values.__getitem__)
                values[node] = evaluate(node, args, map_arg(node.kwargs, values.__getitem__))
        return values[wanted]

    folded = 0
    for node in list(constant):
        if not _worth_folding(node, constant, limit):
            continue
        value = value_of(node)
        if value is NotImplemented or getattr(value, "nbytes", 0) > limit:
            continue
        _replace(graph, module, node, value)
        folded += 1
    return folded


def _replace(graph: "Graph", module: Any, node: Node, value: Any) -> None:
    number = 0
    while hasattr(module, f"_folded{number}"):
        number += 1
    setattr(module, f"_folded{number}", value)
    with graph.inserting_before(node):
        attribute = graph.get_attr(f"_folded{number}")
    node.replace_all_uses_with(attribute, propagate_meta=True)
    graph.erase_node(node)
