"""Saved-tensor hooks of compiled functions: they get what the cut saves.

Hooks that are graphs (`GraphModule`s) become part of the forward and the backward graph, which then
are compiled with them; any other hooks run between the native calls, on each value that the forward
leaves for the backward. Read `run.py` next.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from .. import errors
from ..autograd.saved_values import Packed, packed
from ..core.handle import Tensor, make
from ..cut.report import Report
from ..cut.settings import config
from ..cut.split import is_number
from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from ..graph.node import Node
from ..graph.traits import is_write, viewed
from ..pytree import tree_flatten, tree_unflatten
from ..threads.state import state


def graph_hooks() -> tuple[GraphModule, GraphModule] | None:
    """The hooks in force, if they are graphs."""
    if not state.observers.saved_hooks:
        return None
    pair = state.observers.saved_hooks[-1]
    return pair if all(isinstance(hook, GraphModule) for hook in pair) else None


# Hooks that run ----------------------------------------------------------------------------------


class PackedValues(tuple):
    """What hooks made of the saved values of one call."""

    def open(self) -> list:
        """The arrays again."""
        return [_opened(*v) if v.__class__ is tuple else v for v in self]


def _opened(value: Packed, shape: tuple, dtype: Any):
    data = value.open(None)._payload
    if data.shape != shape or data.dtype != dtype:
        raise errors.ShapeError(errors.text(
            f"an unpack hook gave {data.dtype}{list(data.shape)} for a value that was packed as "
            f"{dtype}{list(shape)}",
            cure="let it give back a tensor of the same shape and dtype"))
    return data


def pack(program: Any, saved: list, tensors: list[Tensor]) -> PackedValues:
    """Saved arrays through the hooks in force; inputs as the user's own tensors."""
    results = program.graphs()[0].graph.output_node().args[0][program.count:]
    numbers = {node.name: i for node, i in program.numbers.items()}
    values = []
    for k, (node, array) in enumerate(zip(results, saved)):
        if not hasattr(array, "dtype") or is_number(node):
            values.append(array)
            continue
        own = node.op == "placeholder" and program.count + k not in program.saved_copies
        given = tensors[numbers[node.name]] if own else make(array)
        values.append((packed(given), array.shape, array.dtype))
    return PackedValues(values)


# Hooks that are graphs ---------------------------------------------------------------------------


def with_hooks(halves: tuple, count: int, hooks: tuple[GraphModule, GraphModule]) -> tuple:
    """Forward and backward with the graphs of hooks in them.

    `config.saved_tensors_hooks_filtering_mode` says for which values: "donated", those that nobody
    else has; "no_static", all but parameters and other inputs; "all".
    """
    for hook in hooks:
        for node in hook.graph.nodes:
            if is_write(node) or str(node.target).endswith("_"):
                raise errors.NotDifferentiable(errors.text(
                    f"saved tensors hooks with input mutations are not allowed: {node.target}",
                    cure="let the hook write into a clone()"))
    forward = next(iter(halves))
    there = {viewed(n) for n in forward.graph.output_node().args[0][:count]
             if isinstance(n, Node)}
    mode = config.saved_tensors_hooks_filtering_mode

    def wanted(node: Node) -> bool:
        root = viewed(node)
        if mode == "all" or root.op == "placeholder":
            return mode == "all"
        return mode != "donated" or root not in there

    return rewritten(halves, count, lambda _, node: hooks if wanted(node) else None)


def rewritten(halves: tuple, count: int, choose: Callable, late: bool = False) -> tuple:
    """Forward and backward in which saved values are packed and opened.

    `choose(place among the results, node)` says how, (pack, unpack), or None: as it is.  `late`:
    packed right after its last use, opened right before its first.
    """
    forward, backward = tuple(halves)[:2]
    results = list(forward.graph.output_node().args[0])
    first = _copied(forward)
    second, opened = Graph(), {}
    saved, packs = [], {}
    places = {n.name: n for n in backward.graph.nodes if n.op == "placeholder"}
    ways = {}
    for place, node in enumerate(results[count:], count):
        way = None if is_number(node) else choose(place, node)
        if way is None:
            saved.append(first[node])
            opened[places[node.name]] = _placeholder(second, first[node])
            continue
        ways[node] = way
        with _behind_uses(first.graph, first[node]) if late else nullcontext():
            made, spec = tree_flatten(_inlined(first.graph, way[0], [first[node]]))
        saved += [n for n in made if isinstance(n, Node)]
        inputs = [_placeholder(second, n) if isinstance(n, Node) else n for n in made]
        packs[node] = tree_unflatten(inputs, spec)
    for node in places.values():
        if "tangents" in node.name:
            opened[node] = _placeholder(second, node)

    def open_(node: Node) -> None:
        again = _inlined(second, ways[node][1], [packs[node]])
        found = getattr(again, "meta", {}).get("val", again)
        if _said(found) != _said(node.meta["val"]):
            raise errors.ShapeError(errors.text(
                f"an unpack hook makes {_said(found)} of {node}, which was "
                f"{_said(node.meta['val'])}", cure="let it give back the same shape and dtype"))
        opened[places[node.name]] = again

    waiting = {places[node.name]: node for node in packs}
    for node in () if late else packs:
        open_(node)

    def copy_of(node: Node) -> Node:
        if node not in opened:
            open_(waiting[node])
        return opened[node]

    for node in backward.graph.nodes:
        if node.op == "output":
            second.output(tuple(copy_of(v) if isinstance(v, Node) else v for v in node.args[0])
                          ).meta.update(node.meta)
        elif node not in opened and node not in waiting:
            opened[node] = second.node_copy(node, copy_of)
    out = [first[n] if isinstance(n, Node) else n for n in results[:count]]
    first.graph.output((*out, *saved)).meta.update(forward.graph.output_node().meta)
    made_pair = GraphModule(forward, first.graph), GraphModule(backward, second)
    return _Pair(made_pair, getattr(halves, "report", None))


class _Pair(tuple):
    """Two graphs, with the report of those that they were made of."""

    report: Report | None

    def __new__(cls, pair: tuple, report: Report | None) -> _Pair:
        made = super().__new__(cls, pair)
        made.report = report
        return made


class _Copies(dict):
    graph: Graph


def _copied(module: GraphModule) -> _Copies:
    """A copy of a graph without its output, and where its nodes are."""
    copies = _Copies()
    copies.graph = Graph()
    for node in module.graph.nodes:
        if node.op != "output":
            copies[node] = copies.graph.node_copy(node, copies.__getitem__)
    return copies


def _placeholder(graph: Graph, node: Node) -> Node:
    made = graph.create_node("placeholder", node.name, name=node.name)
    made.meta = dict(node.meta)
    return made


def _behind_uses(graph: Graph, node: Node) -> AbstractContextManager:
    """Where a graph goes on once it needs a value, or views of it, no longer."""
    order = {n: i for i, n in enumerate(graph.nodes)}
    group, last = [node], node
    for member in group:
        for user in member.users:
            last = max(last, user, key=order.__getitem__)
            if viewed(user) is viewed(node) and user not in group:
                group.append(user)
    inputs = [n for n in graph.nodes if n.op == "placeholder"]
    return graph.inserting_before(max([last, *inputs[-1:]], key=order.__getitem__).next)


def _inlined(graph: Graph, hook: Callable, inputs: list) -> Any:
    """The nodes of a hook at the end of a graph; what it returns, in terms of them."""
    from ..decomp import Everything
    from ..graph.make_fx import make_fx

    flat, spec = tree_flatten(inputs)
    nodes = [n for n in flat if isinstance(n, Node)]

    def run(*values: Any) -> Any:
        given = iter(values)
        full = [next(given) if isinstance(n, Node) else n for n in flat]
        return hook(*tree_unflatten(full, spec))

    traced = make_fx(run, Everything(), "fake")(*[n.meta["val"] for n in nodes])
    made = tree_flatten(traced.graph.output_node().args[0])[0]
    for node, name in zip(made, getattr(hook, "names", ())):  # results that are to be known by name
        node.name = name
    copies: dict = dict(zip([n for n in traced.graph.nodes if n.op == "placeholder"], nodes))
    for node in traced.graph.nodes:
        if node.op == "output":
            leaves, shape = tree_flatten(node.args[0])
            return tree_unflatten([copies.get(v, v) if isinstance(v, Node) else v for v in leaves],
                                  shape)
        if node not in copies:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    raise AssertionError("a graph without output")


def _said(value: Any) -> str:
    if hasattr(value, "shape"):
        return f"{value.dtype}{list(value.shape)}"
    return repr(value)
