"""Graphs with numbers in the place of symbolic sizes: given ones, or those of the example."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..array.fake import Fake
from ..array.size import Symbolic, from_data
from ..core.handle import Tensor, make
from .graph import Graph
from .graph_module import GraphModule
from .node import map_aggregate


def valued(value: Any, of: Callable[[str], int]) -> Any:
    """A value with numbers in the place of symbolic ones, in all containers."""
    def number(v: Any) -> Any:
        return v.node.expr.value(of) if isinstance(v, Symbolic) else v

    return map_aggregate(value, number)


def known_shape(shape: Sequence, values: dict[str, int]) -> tuple | None:
    """A shape for given sizes; None where it depends on data."""
    if from_data(shape, marked=False):
        return None
    return valued(tuple(shape), values.__getitem__)


def concrete_fake(t: Any, of: Callable[[str], int]) -> Any:
    """The fake of a node for given sizes."""
    if isinstance(t, (list, tuple)):
        return [concrete_fake(v, of) for v in t]
    if isinstance(t, Symbolic):
        return valued(t, of)
    if not isinstance(t, Tensor) or not isinstance(t._payload, Fake):
        return t
    data = t._payload
    if not data.symbolic:
        return t
    return make(Fake(valued(data.shape, of), data.dtype, valued(data.strides, of),
                     data.device_name))


def concrete(module: GraphModule, values: dict[str, int]) -> tuple[GraphModule, list[int]]:
    """A graph for given sizes, without nodes that compute sizes; and which inputs it still has."""
    of = values.__getitem__
    return without_sizes(module, lambda v: valued(v, of), lambda t: concrete_fake(t, of))


def without_sizes(
    module: GraphModule, number: Callable, example: Callable
) -> tuple[GraphModule, list[int]]:
    """A graph with other numbers and examples in the place of symbolic ones, without the nodes
    that compute sizes; and which inputs it still has."""
    graph, copied, kept, count = Graph(), {}, [], 0
    for node in module.graph.nodes:
        val = node.meta.get("val")
        if isinstance(val, Symbolic):
            copied[node] = number(val)
            count += node.op == "placeholder"
            continue
        if node.op == "placeholder":
            kept.append(count)
            count += 1
        new = graph.node_copy(node, copied.__getitem__)
        if "val" in new.meta:
            new.meta["val"] = example(val)
        copied[node] = new
    made = GraphModule(module, graph)
    made.numbers = number, example  # the same for the graphs inside, which are as they were
    if hasattr(module, "writes"):
        made.writes = module.writes
    return made, kept


def sized_for(module: GraphModule, values: dict[str, int] | None) -> GraphModule:
    """A graph with numbers in the place of symbolic sizes, to be measured; the example's if none
    are given, and any for what only the data decides."""
    symbols = {s for node in module.graph.nodes for s in _symbols_of(node.meta.get("val"))}
    if not symbols:
        return module
    if values is None or not symbols <= values.keys():
        env = next(n.node.shape_env for node in module.graph.nodes
                   for n in _numbers_of(node.meta.get("val")))
        hints = {name: 8 if env.symbols[name].hint is None else env.symbols[name].hint
                 for name in symbols}
        values = {**hints, **(values or {})}
    made, _ = concrete(module, values)
    output = made.graph.output_node()
    output.args = (tuple([n for n in output.args[0] if n is None or hasattr(n, "meta")]),)
    return made


def _numbers_of(value: Any) -> list:
    """The symbolic numbers in an example value."""
    if isinstance(value, (list, tuple)):
        return [n for v in value for n in _numbers_of(v)]
    if isinstance(value, Tensor):
        return [n for n in value.shape if isinstance(n, Symbolic)]
    return [value] if isinstance(value, Symbolic) else []


def _symbols_of(value: Any) -> set[str]:
    return set().union(*(n.node.raw.symbols() for n in _numbers_of(value)))
