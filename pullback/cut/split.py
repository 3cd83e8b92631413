"""The joint graph taken apart: what depends on tangents, what forward and backward need, copies.

A joint graph computes the forward results and the gradients at once: placeholders `primals_*` then
`tangents_*`, and as output one flat tuple, forward results first. `JointGraph` classifies its
nodes; `extract` copies a part into a graph of its own. Read `partition.py` next.
"""

import contextlib
import gc
import operator
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from ..graph.graph import Graph
from ..graph.graph_module import GraphModule
from ..graph.node import Node, map_arg
from ..graph.traits import is_write, owner, viewed
from .settings import config

_BACKWARD_TAGS = ("is_backward", "must_be_in_backward")


class PartitionError(RuntimeError):
    """The joint graph cannot be cut into a forward and a backward; the message says at which node.

    Fix: usually the graph contains a write into an input that the backward still needs, or a
    checkpoint policy that asks for a value to be neither saved nor computed again. Copy the input
    first, or relax the policy at the node named.
    """


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """No garbage collection: graphs are many objects that all live on, and every pass over them
    would find nothing, which makes the work grow faster than the graph."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def is_number(node: Node) -> bool:
    """True for nodes whose value is a size or another Python number, not a tensor."""
    value = node.meta.get("val")
    return isinstance(value, (int, float)) or type(value).__name__ in ("SymInt", "SymFloat")


def is_tensor_node(node: Node) -> bool:
    """False for nodes whose value is a number."""
    return not is_number(node)


def is_of_backward(node: Node) -> bool:
    """Is an input given to the backward alone: a tangent, or the seed and the offset of draws?"""
    return "tangents" in node.name or node.name.startswith(("bwd_seed", "bwd_base_offset"))


def policy(node: Node) -> str:
    """What a checkpoint asked for this node: "MUST_SAVE", "PREFER_RECOMPUTE", ... or ""."""
    wish = node.meta.get("recompute")
    return "" if wish is None else getattr(wish, "name", str(wish))


def ancestors(start: Iterable[Node], stop: Any = ()) -> set[Node]:
    """All nodes that `start` depends on, itself included; nothing behind a node in `stop`."""
    seen: set[Node] = set()
    stack = list(start)
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            if node not in stop:
                stack += node.all_input_nodes
    return seen


def _nodes_in(values: Any) -> list[Node]:
    found: list[Node] = []
    map_arg(values, found.append)
    return found


def _has_effect(node: Node) -> bool:
    return node.op not in ("placeholder", "output", "get_attr") and node.is_impure()


class JointGraph:
    """The nodes of a joint graph by what they are for."""

    def __init__(
        self, module: GraphModule, num_fwd_outputs: int, static: Iterable[int] = ()
    ) -> None:
        self.module = module
        self.nodes = list(module.graph.nodes)
        self.output = module.graph.output_node()
        results = self.output.args[0]
        if not isinstance(results, (tuple, list)) or len(results) < num_fwd_outputs:
            raise PartitionError(
                f"a joint graph returns a flat tuple of at least {num_fwd_outputs} forward "
                f"results; this one returns {results!r}"
            )
        self.fwd_outputs = tuple(results[:num_fwd_outputs])
        self.bwd_outputs = tuple(results[num_fwd_outputs:])
        placeholders = [node for node in self.nodes if node.op == "placeholder"]
        self.tangents = [node for node in placeholders if is_of_backward(node)]
        self.primals = [node for node in placeholders if not is_of_backward(node)]
        self.static = {self.primals[k] for k in static}  # they are there whatever happens
        self.forward_results = set(_nodes_in(self.fwd_outputs))
        self.dependent = self._dependent_on_tangents()
        effects = [node for node in self.nodes if _has_effect(node)]
        self.late_effects = [node for node in effects if self._is_late(node)]
        self.early_effects = [node for node in effects if not self._is_late(node)]
        self.forward = self._forward_nodes()
        # Nodes that the tracer says belong to the forward, whether its results need them or not.
        self.traced_forward = {
            node
            for node in self.nodes
            if node.meta.get("partitioner_tag") == "is_forward" and node not in self.dependent
        }
        # What of the backward is really needed, and its edge to the rest.
        wanted = _nodes_in(self.bwd_outputs) + self.late_effects
        self.backward = ancestors(wanted, stop=self.forward)
        self.dependent_needed = {node for node in self.backward if node in self.dependent}
        self.demand = self._demand(wanted)
        needed = ancestors(self.demand)
        self.candidates = [n for n in self.nodes if n in needed and n.op != "get_attr"]
        self.mutated = self._mutated_inputs()

    def _dependent_on_tangents(self) -> set[Node]:
        found = set(self.tangents)
        for node in self.nodes:
            if node.op != "output" and any(source in found for source in node.all_input_nodes):
                found.add(node)
        return found

    def _is_late(self, node: Node) -> bool:
        return node in self.dependent or node.meta.get("partitioner_tag") in _BACKWARD_TAGS

    def _forward_nodes(self) -> set[Node]:
        """What the forward computes in any case: its results, and draws and effects in order."""
        found = ancestors([*self.forward_results, *self.early_effects])
        wrong = sorted(node for node in found if node in self.dependent)
        if wrong:
            raise PartitionError(f"the forward results depend on the tangents, through {wrong[0]}")
        return found | set(self.primals)

    def _demand(self, wanted: list[Node]) -> dict[Node, str]:
        """Nodes free of tangents that the backward reads directly, each with why."""
        demand = {
            node: f"{node} is a result of the backward"
            for node in wanted
            if node not in self.dependent and node.op != "get_attr"
        }
        for node in self.nodes:
            if node in self.dependent_needed:
                for source in node.all_input_nodes:
                    if source not in self.dependent and source.op != "get_attr":
                        demand.setdefault(source, f"the backward reads {source} in {node}")
        return demand

    def _mutated_inputs(self) -> dict[Node, Node]:
        """Inputs that the forward overwrites after they were read, each with the node that does.

        What a later reader would find there is not what an earlier one found.
        """
        writes: dict[Node, Node] = {}
        for node in self.early_effects:
            if (is_write(node) and node.args and isinstance(node.args[0], Node)
                    and "in_order" not in node.meta):
                if viewed(node.args[0]).op == "placeholder":
                    writes[viewed(node.args[0])] = node
        stale: dict[Node, Node] = {}
        for node in self.nodes if writes else ():
            for source in map(viewed, node.all_input_nodes):
                if source in writes and node < writes[source]:
                    stale[source] = writes[source]
        return stale

    # Copies -------------------------------------------------------------------------------------

    def split(self, saved: list[Node], on_demand: bool) -> tuple[GraphModule, GraphModule]:
        """Forward and backward modules, given what is saved in between.

        `on_demand` places values that the backward computes again right before their first use.
        """
        description = self.output.meta.get("desc")
        count = len(self.fwd_outputs)
        forward = extract(
            self.nodes,
            self.primals,
            (*self.fwd_outputs, *saved),
            self.early_effects,
            description and [*description[:count], *[None] * len(saved)],
        )
        forward.output_node().meta["saved"] = len(saved)
        backward = extract(
            self._order_on_demand(saved) if on_demand else self.nodes,
            [*sorted(saved, key=is_tensor_node), *self.tangents],  # sizes first, as PyTorch has it
            self.bwd_outputs,
            self.late_effects,
            description and description[count:],
        )
        return GraphModule(self.module, forward), GraphModule(self.module, backward)

    def _order_on_demand(self, saved: list[Node]) -> list[Node]:
        """Backward nodes as they come, once tangents enter; those before only when needed."""
        position = {node: index for index, node in enumerate(self.nodes)}
        calls = self.dependent_needed.difference(self.tangents).union(self.late_effects)
        start = min(map(position.__getitem__, calls), default=len(self.nodes))
        results = _nodes_in(self.bwd_outputs) + self.late_effects
        needed = ancestors(results, stop=set(saved))
        placed = {*saved, *self.tangents}
        order: list[Node] = []
        wanted = [node for node in self.nodes[start:] if node in needed] + results
        for node in wanted:
            if node not in placed:
                missing = ancestors([node], stop=placed) - placed
                order += sorted(missing, key=position.__getitem__)
                placed |= missing
        return order


def extract(
    order: Iterable[Node],
    inputs: list[Node],
    outputs: tuple,
    effects: Iterable[Node] = (),
    description: list | None = None,
) -> Graph:
    """A graph from `inputs` (which become placeholders) to `outputs`, with the nodes in order."""
    graph = Graph()
    copies: dict[Node, Node] = {}
    for node in inputs:
        copies[node] = graph.create_node("placeholder", node.name, name=node.name)
        copies[node].meta = dict(node.meta)
    needed = ancestors([*_nodes_in(outputs), *effects], stop=copies)
    for node in order:
        if node in needed and node not in copies:
            if node.op == "placeholder":
                raise PartitionError(f"{node} is needed but neither given nor saved")
            copies[node] = graph.node_copy(node, copies.__getitem__)
    result = graph.output(map_arg(outputs, copies.__getitem__))
    if description:
        result.meta["desc"] = list(description)
    return graph


def give_away(forward: GraphModule, backward: GraphModule, count: int) -> list[int]:
    """Mark the inputs of a backward graph that nobody but it will have (`meta["donated"]`).

    These are saved values that are no inputs of the forward, no results of it and none of the
    backward, each whole and in memory of its own.  Returns their numbers among the saved values:
    none if `config.donated_buffer` is off.
    """
    if not config.donated_buffer:
        return []
    results = forward.graph.output_node().args[0]
    times = Counter(owner(n) for n in results if isinstance(n, Node))
    made = {owner(n).name for n in _nodes_in(backward.graph.output_node().args[0])}
    found, names = [], set()
    for number, node in enumerate(n for n in results[count:] if is_tensor_node(n)):
        alone = owner(node) is node and times[node] == 1 and node.name not in made
        if node.op == "call_function" and alone:
            found.append(number)
            names.add(node.name)
    for node in backward.graph.nodes:
        if node.op == "placeholder" and node.name in names:
            node.meta["donated"] = True
    return found


def donated_places(backward: GraphModule) -> list[int]:
    """The numbers, among the saved tensors, of those that a backward graph may overwrite."""
    saved = [n for n in backward.graph.nodes
             if n.op == "placeholder" and is_tensor_node(n) and not is_of_backward(n)]
    return [i for i, n in enumerate(saved) if n.meta.get("donated")]


def raise_getitems(graph: Graph) -> int:
    """Move each `getitem` to its producer, so that the tuple can be freed; returns how many."""
    last: dict[Node, Node] = {}
    moved = 0
    for node in list(graph.nodes):
        if node.target is operator.getitem and isinstance(node.args[0], Node):
            producer = node.args[0]
            anchor = last.get(producer, producer)
            if producer.op != "placeholder" and anchor.next is not node:
                anchor.append(node)
                moved += 1
            last[producer] = node
    return moved


def is_tight(module: GraphModule) -> bool:
    """Is a graph to go without memory that only makes it faster?"""
    return bool(module.graph.output_node().meta.get("tight"))


def tighten(module: GraphModule) -> None:
    """Let a graph go without memory that only makes it faster."""
    module.graph.output_node().meta["tight"] = True
