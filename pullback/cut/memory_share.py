"""`activation_memory_budget`: at most a share of what the plain cut would save.

1 is the plain cut, 0 saves nothing but inputs. In between, pointwise operators are computed again
first, then whatever else is no heavy arithmetic. If that is not enough, a knapsack chooses which
results of heavy operators are kept: those that take long for their size. Counted are the bytes
that saved values take beyond inputs and results, which are in memory anyway.

`compile(f, memory=...)` limits the peak of a simulated schedule instead: `budget.py`. Read
`knapsack.py` for the solvers and `rules.py` for what may be computed again.
"""

from __future__ import annotations

import dataclasses
import math
import os
import time

from .. import errors
from ..core.handle import Tensor
from ..graph.node import Node, map_arg
from ..graph.traits import _size
from ..table.packets import ops
from .budget import Way, new_memory, priced, repeatable
from .flops import flops
from .knapsack import SOLVERS
from .min_cut import CutProblem, solve
from .recompute import UNIT, recompute_problem
from .rules import Rules, is_custom
from .settings import config, get_aot_graph_name
from .split import JointGraph, policy

DEAR = UNIT << 20
RUNS = 3


def within_share(joint: JointGraph, share: float) -> Way:
    """The cut that saves at most a share of what the plain one saves."""
    rules, new = Rules.in_force(), new_memory(joint)

    def bytes_of(saved: list[Node]) -> int:
        return sum(new.get(node, 0) for node in saved)

    cost, plain = solve(recompute_problem(joint, rules))
    whole = bytes_of(plain)
    if share >= 1 or not whole:
        return Way(plain, 0, cost, "the plain minimum cut")
    for name, looser in (("pointwise operators", rules.eager()),
                         ("all but heavy operators", rules.aggressive())):
        cost, saved = solve(recompute_problem(joint, looser))
        if bytes_of(saved) < share * whole:
            return Way(saved, 0, cost, f"{share:g} of {whole:,} bytes: {name} computed again")
    room = _Room(joint, recompute_problem(joint, rules.aggressive()), new, whole, rules)
    if config.visualize_memory_budget_pareto:
        room.draw()
    return room.way(share)


class _Room:
    """Which results of heavy operators to keep."""

    def __init__(
        self, joint: JointGraph, problem: CutProblem, new: dict[Node, int], whole: int,
        rules: Rules,
    ) -> None:
        self.joint, self.problem, self.new, self.whole = joint, problem, new, whole
        found = [
            n for n in joint.candidates if n in joint.forward and _choosable(n, problem, rules)]
        self.choices = sorted(found, key=self._bytes, reverse=True)
        self.memory = [self._bytes(n) / whole for n in self.choices]
        self.runtimes = [runtime(n) for n in self.choices]
        self.least = self._share(self._saved(self.choices))

    def _bytes(self, node: Node) -> int:
        several = isinstance(node.meta.get("val"), (tuple, list))
        return sum(self.new.get(n, 0) for n in node.users) if several else self.new.get(node, 0)

    def _saved(self, again: list[Node]) -> list[Node]:
        """The least that must be saved if these may be computed again."""
        free = {**self.problem.again, **dict.fromkeys(again, 0)}
        return solve(priced(dataclasses.replace(self.problem, again=free), self.new, DEAR))[1]

    def _share(self, saved: list[Node]) -> float:
        return sum(self.new.get(node, 0) for node in saved) / self.whole

    def chosen(self, share: float) -> tuple[list[int], list[Node]]:
        """The numbers of the results that are kept, and all that is saved then."""
        solver, room = config.activation_memory_budget_solver, max(share - self.least, 0.0)
        if callable(solver):
            _, again = solver(self.memory, self.joint.module.graph, room, self.joint, self.choices)
        else:
            _, _, again = SOLVERS[solver](self.memory, self.runtimes, room)
        repeated = {*again}
        kept = [k for k in range(len(self.choices)) if k not in repeated]
        return kept, self._saved([self.choices[k] for k in again])

    def way(self, share: float) -> Way:
        kept, saved = self.chosen(share)
        name = (f"{share:g} of {self.whole:,} bytes: {len(kept)} of {len(self.choices)} results of "
                "heavy operators kept")
        return Way(saved, 0, None, name)

    def draw(self) -> str:
        """A picture of what less memory costs, as a file; its path."""
        points = []
        for step in range(21):
            kept, saved = self.chosen(step / 20)
            lost = sum(self.runtimes) - sum(self.runtimes[k] for k in kept)
            points.append((self._share(saved), lost))
        folder = config.memory_budget_pareto_dir or os.getcwd()
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"memory_budget_pareto_{get_aot_graph_name()}.svg")
        with open(path, "w", encoding="utf-8") as file:
            file.write(curve(sorted(set(points))))
        return path


def _choosable(node: Node, problem: CutProblem, rules: Rules) -> bool:
    """Is it by its price alone that an operator is not computed again?"""
    if problem.again[node] < math.inf or policy(node) or node.is_impure():
        return False
    return repeatable(node) and (rules.custom or not is_custom(node))


def runtime(node: Node) -> float:
    """How long a node takes, in the unit of `activation_memory_budget_runtime_estimator`."""
    how = config.activation_memory_budget_runtime_estimator
    if how == "testing":
        return 1.0
    if how == "flops":
        return float(max(flops(node), 1))
    return _timed(node) if how == "profile" else float(how(node))


def _timed(node: Node) -> float:
    """Milliseconds of the operator on tensors of the sizes at hand."""
    def example(source: Node) -> object:
        value = source.meta.get("val")
        if not isinstance(value, Tensor):
            return _size(value) if isinstance(value, int) or hasattr(value, "hint") else value
        return ops.ones([_size(n) for n in value.shape], dtype=value.dtype)

    args, kwargs = map_arg(node.args, example), map_arg(node.kwargs, example)
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        try:
            node.target(*args, **kwargs)
        except Exception as error:
            raise errors.ArgumentError(errors.text(
                f"{node.target} cannot be timed on ones: {error}", f"node: {node.name}",
                "set activation_memory_budget_runtime_estimator to 'flops', or to a function of "
                "a node")) from error
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def curve(points: list[tuple[float, float]]) -> str:
    """Share of memory against work that is repeated, as a drawing."""
    wide, high, edge = 600, 360, 50
    most = max(max(y for _, y in points), 1e-12)
    at = [(edge + x * (wide - 2 * edge), high - edge - y / most * (high - 2 * edge))
          for x, y in points]
    marks = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/><text x="{x:.1f}" y="{y - 8:.1f}">{share:.2f}'
        "</text>" for (x, y), (share, _) in zip(at, points))
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" '
        'font-family="sans-serif" font-size="11" text-anchor="middle">'
        f'<polyline points="{line}" fill="none" stroke="black"/>{marks}'
        f'<text x="{wide / 2}" y="{high - 12}">memory, as a share of the plain cut</text>'
        f'<text x="{wide / 2}" y="20">work that is repeated (at most {most:g})</text></svg>\n')
