"""Exact minimum cuts: a flow network, Dinic's algorithm, and the keep-or-recompute problem on it.

Knows nothing of graphs or tensors: numbers in, numbers out. `recompute.py` says what the numbers
are for a joint graph; read that next.
"""

import math
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field

SOURCE, SINK = 0, 1


class UnboundedCut(RuntimeError):
    """No finite cut exists: `path` lists the edges from source to sink that cannot be cut."""

    def __init__(self, path: list[str]) -> None:
        super().__init__("no finite cut: " + "; ".join(path))
        self.path = path


class Network:
    """Directed edges with capacities (integers, or `math.inf`) from vertex 0 to vertex 1."""

    def __init__(self) -> None:
        self.edges: list[list[int]] = [[], []]  # per vertex: numbers of its edges, both ways
        self.head: list[int] = []  # edge e leads to head[e]; e ^ 1 is the same edge backwards
        self.capacity: list[float] = []
        self.reasons: dict[int, str] = {}

    def add_vertex(self) -> int:
        self.edges.append([])
        return len(self.edges) - 1

    def add_edge(self, tail: int, head: int, capacity: float, reason: str = "") -> None:
        """Add an edge; the reason explains it if it turns out that it cannot be cut."""
        edge = len(self.head)
        self.head += (head, tail)
        self.capacity += (capacity, 0)
        self.edges[tail].append(edge)
        self.edges[head].append(edge + 1)
        if reason:
            self.reasons[edge] = reason

    def min_cut(self) -> tuple[int, list[bool]]:
        """Value of a minimum cut, and for each vertex whether it is on the sink's side.

        Of all minimum cuts this is the one nearest to the sink.
        """
        value = 0
        while True:
            levels = self._levels()
            if levels[SOURCE] < 0:
                return value, [level >= 0 for level in levels]
            value += self._blocking_flow(levels)

    def _levels(self) -> list[int]:
        """Distance to the sink in edges with capacity left; -1 where there is no path.

        Searched from the sink, up to the source: where almost every vertex has an edge from the
        source, this meets it after a few steps.
        """
        levels = [-1] * len(self.edges)
        levels[SINK] = 0
        queue = deque((SINK,))
        while queue:
            vertex = queue.popleft()
            for edge in self.edges[vertex]:
                tail = self.head[edge]
                if levels[tail] < 0 and self.capacity[edge ^ 1] > 0:
                    levels[tail] = levels[vertex] + 1
                    if tail == SOURCE:
                        return levels
                    queue.append(tail)
        return levels

    def _blocking_flow(self, levels: list[int]) -> int:
        """Push flow along shortest paths until none is left; depth first, without recursion."""
        edges, heads, capacity = self.edges, self.head, self.capacity
        position = [0] * len(edges)  # per vertex: its edges before this one are exhausted
        path: list[int] = []
        vertex, total = SOURCE, 0
        while True:
            if vertex == SINK:
                amount = min([capacity[edge] for edge in path])
                if amount == math.inf:
                    raise UnboundedCut([self.reasons[e] for e in path if e in self.reasons])
                total += amount
                for edge in path:
                    capacity[edge] -= amount
                    capacity[edge ^ 1] += amount
                # Go on from the first edge that is full now; the path before it is still good.
                full = next(k for k, edge in enumerate(path) if capacity[edge] == 0)
                vertex = heads[path[full] ^ 1]
                del path[full:]
            own, level = edges[vertex], levels[vertex] - 1
            k = position[vertex]
            while k < len(own) and not (capacity[own[k]] > 0 and levels[heads[own[k]]] == level):
                k += 1
            position[vertex] = k
            if k < len(own):
                path.append(own[k])
                vertex = heads[own[k]]
            elif path:
                vertex = heads[path.pop() ^ 1]
                position[vertex] += 1
            else:
                return total


@dataclass
class CutProblem:
    """Which values to keep from a first pass for a second one, so that the total cost is least.

    A value the second pass needs is either kept, or computed again from its inputs, which then are
    needed in turn. Costs may be infinite.
    """

    inputs: dict[Hashable, list[Hashable]] = field(default_factory=dict)  # value -> its inputs
    keep: dict[Hashable, float] = field(default_factory=dict)  # cost of keeping a value
    again: dict[Hashable, float] = field(default_factory=dict)  # cost of computing it again
    demand: dict[Hashable, str] = field(default_factory=dict)  # needed by the second pass, why
    once: set[Hashable] = field(default_factory=set)  # not to be computed in both passes
    extra: set[Hashable] = field(default_factory=set)  # the first pass itself has no use for them
    keep_reasons: dict[Hashable, str] = field(default_factory=dict)  # why keep is infinite
    again_reasons: dict[Hashable, str] = field(default_factory=dict)  # why again is infinite


def solve(problem: CutProblem) -> tuple[int, list[Hashable]]:
    """Least total cost, and the values to keep for it, in the order of `problem.inputs`.

    Each value is two vertices joined by an edge that costs what keeping it costs. A value whose
    first vertex falls on the sink's side is computed in the second pass, which cuts its edge
    from the source. Among equals, the solution that computes least again is chosen.
    """
    network = Network()
    values = _needed(problem)
    before = {value: network.add_vertex() for value in values}
    after = {value: network.add_vertex() for value in values}
    for value in values:
        if problem.again[value]:
            reason = problem.again_reasons.get(value, "")
            network.add_edge(SOURCE, before[value], problem.again[value], reason)
        reason = problem.keep_reasons.get(value, "")
        network.add_edge(before[value], after[value], problem.keep[value], reason)
        for source in problem.inputs[value]:
            network.add_edge(after[source], before[value], math.inf, f"{value} reads {source}")
        if value in problem.demand:
            network.add_edge(after[value], SINK, math.inf, problem.demand[value])
    if problem.once:
        _forbid_both(network, problem, before)
    cost, on_sink_side = network.min_cut()
    kept = [v for v in values if not on_sink_side[before[v]] and on_sink_side[after[v]]]
    return cost, kept


def _needed(problem: CutProblem) -> list[Hashable]:
    """The values the second pass depends on; the others have no part in the decision."""
    seen: set[Hashable] = set()
    stack = list(problem.demand)
    while stack:
        value = stack.pop()
        if value not in seen:
            seen.add(value)
            stack += problem.inputs[value]
    return [value for value in problem.inputs if value in seen]


def _forbid_both(network: Network, problem: CutProblem, before: dict[Hashable, int]) -> None:
    """Values that the first pass computes only to keep something, but must not compute in vain.

    One more vertex per such value stands for "the first pass computes it", which follows from any
    of its users being computed there; for a value in `once` it excludes the second pass.
    """
    first = {value: network.add_vertex() for value in before if value in problem.extra}
    for value, vertex in first.items():
        network.add_edge(before[value], vertex, math.inf, f"{value} is computed in forward")
        for source in problem.inputs[value]:
            if source in first:
                network.add_edge(vertex, first[source], math.inf, f"{value} reads {source}")
        if value in problem.once:
            network.add_edge(vertex, before[value], math.inf, f"{value} is computed only once")
