"""How much memory a forward and a backward graph take, without running them.

`footprint` goes through a graph operator by operator: a value is there from the node that makes it
to the last one that reads it or a view of it. A `Meter` puts forward and backward together: what is
alive in the worst moment of either, beyond the arguments, which are there anyway. Backends that
fuse and reuse memory have a meter of their own (`compile/memory.py`).

Read `budget.py` next.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..graph.graph_module import GraphModule
from ..graph.node import Node
from ..graph.traits import nbytes, owner, viewed
from .eager_peak import INSIDE, inside_of
from .split import is_number


@dataclass(frozen=True)
class Phases:
    """Bytes beyond the arguments in each pass."""

    forward: int
    backward: int
    saved: int  # of both: what lives from one to the other, results not counted

    @property
    def peak(self) -> int:
        """The worst moment."""
        return max(self.forward, self.backward)


def own_bytes(node: Node) -> int:
    """Memory that a node brings into the world."""
    if node.op != "call_function" or viewed(node) is not node or is_number(node):
        return 0
    return nbytes(node.meta.get("val"))


@dataclass(frozen=True)
class Taken:
    """Bytes of one graph: of results and temporaries when there are most of them, and of a
    workspace, which all graphs share unless they are tight."""

    most: int
    shared: int = 0


def footprint(module: GraphModule) -> int:
    """Bytes of results and temporaries of a graph that runs operator by operator, when there are
    most of them; less those of inputs that are given away, which end with their last reader."""
    nodes = list(module.graph.nodes)
    last: dict[Node, Node] = {}
    for node in nodes:
        for source in node.all_input_nodes:
            last[viewed(source)] = node
    dying: dict[Node, list[Node]] = {}
    for root, node in last.items():
        if node.op != "output" and (root.op == "call_function" or root.meta.get("donated")):
            dying.setdefault(node, []).append(root)
    now = most = 0
    for node in nodes:
        if node.op == "call_function" and now + INSIDE * _around(node) > most:
            most = max(most, now + inside_of(node))
        now += own_bytes(node)
        most = max(most, now)
        if node.op == "call_function" and node not in last and not node.users:
            now -= own_bytes(node)
        for root in dying.get(node, ()):
            now -= own_bytes(root) if root.op == "call_function" else nbytes(root.meta.get("val"))
    return most


def _around(node: Node) -> int:
    """Bytes that a node reads and writes."""
    return sum(nbytes(n.meta.get("val")) for n in (node, *node.all_input_nodes))


class Meter:
    """How much memory graphs take that run operator by operator."""

    tightens = False  # is there memory that only makes graphs faster?

    def size(self, size: int) -> int:
        """Bytes that an array of so many bytes takes."""
        return size

    def taken(self, module: GraphModule, tight: bool = False) -> Taken:
        """What a call takes beyond its arguments; `tight`: without what only makes it faster."""
        return Taken(footprint(module))

    def left(self, module: GraphModule, count: int) -> tuple[int, int]:
        """Bytes that a forward graph leaves: in the user's results, in saved values alone."""
        results = module.graph.output_node().args[0]
        roots = {owner(n) for n in results[:count] if isinstance(n, Node)}
        saved = {owner(n) for n in results[count:] if isinstance(n, Node)} - roots
        return self._kept(roots), self._kept(saved)

    def _kept(self, owners: set[Node]) -> int:
        """Bytes of arrays that a graph made."""
        made = (n for n in owners if n.op == "call_function" and not is_number(n))
        return sum(self.size(nbytes(n.meta.get("val"))) for n in made)

    def phases(
        self, forward: GraphModule, backward: GraphModule, count: int, tight: bool = False
    ) -> Phases:
        """What two graphs take."""
        results, saved = self.left(forward, count)
        given = [n for n in backward.graph.nodes if n.op == "placeholder" and "tangents" in n.name]
        held = results + saved + sum(nbytes(n.meta.get("val")) for n in given)
        first, second = self.taken(forward, tight), self.taken(backward, tight)
        shared = [first.shared, second.shared]
        if not tight:  # it is kept from one to the other
            shared = [max(shared)] * 2
        return Phases(first.most + shared[0], held + second.most + shared[1], saved)

    def at_once(self, module: GraphModule, tight: bool = False) -> Phases:
        """What one graph for both passes takes: results are there in the backward, and no more."""
        taken = self.taken(module, tight)
        results = {owner(n) for n in module.graph.output_node().args[0] if isinstance(n, Node)}
        left = self._kept(results) + (0 if tight else taken.shared)
        return Phases(taken.most + taken.shared, left, 0)
