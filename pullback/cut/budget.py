"""Memory as a limit: of several ways to cut a joint graph, the fastest that fits.

The ways do not depend on the limit. They are put in the order of the work that they take, the plain
minimum cut first, and the first whose simulated peak is within the limit is taken. So a larger
limit never means more work, and a smaller one never a higher peak. A loss has one way more, the
fastest: its gradients in the same graph, where nothing is saved. Where the backend has memory that
only makes graphs faster, each way is followed by itself without that.

- *Prices*: saving costs memory as well as traffic, at every rate that makes a difference; products
  of matrices may be computed again for what their arithmetic takes.
- *Segments*: the forward is divided at places where little is alive; the values there are saved,
  and inside of a segment everything is computed again when the backward reaches it. Some of the
  ways do that only for the first segments: their values wait the longest. Others make the first
  segments longer than the last: when the backward reaches those, fewer saved values are there.

Read `simulate.py` for the peak and `recompute.py` for the costs.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import accumulate, product

from .. import errors
from ..graph.node import Node
from ..graph.traits import cost_of, nbytes, viewed
from .flops import flops
from .min_cut import CutProblem, UnboundedCut, solve
from .recompute import UNIT, operand_bytes, recompute_problem
from .simulate import Meter, Phases, own_bytes
from .split import JointGraph, ancestors, is_tight, policy

FLOPS_PER_BYTE = 10  # arithmetic in the time that moving a byte takes
PRICES = 16  # at most so many rates are tried
SEGMENTS = 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 48
DEAR = 1 << 20
CLEARLY = 0.99  # of a peak: the rest is for objects of Python's own, which are not simulated

_UNITS = {"": 1, "B": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def parse_memory(memory: object) -> int | float:
    """Bytes (an integer), or a part of what the plain cut takes (a float from 0 to 1)."""
    if isinstance(memory, str):
        text = memory.strip().upper().removesuffix("B")
        binary = text.endswith("I")
        text = text.removesuffix("I")
        number, unit = (text[:-1], text[-1]) if text[-1:] in "KMGT" and text else (text, "")
        try:
            factor = 1024 ** " KMGT".index(unit) if binary else _UNITS[unit]
            size = float(number) * factor
        except (ValueError, KeyError):
            size = -1
        if size >= 0 and math.isfinite(size):
            return int(size)
    elif isinstance(memory, (int, float)) and not isinstance(memory, bool) and memory >= 0:
        return float(memory) if memory <= 1 or math.isinf(memory) else int(memory)
    raise errors.ArgumentError(errors.text(
        f"compile(): memory={memory!r} is no amount of memory ({errors.user_line()})",
        cure="bytes, a text such as '500MB' or '1.5GiB', or a float from 0 (as little as possible) "
        "to 1 (as the plain cut)"))


def shown(size: float) -> str:
    """A number of bytes for people."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.4g} {unit}"
        size /= 1000
    return f"{size:.4g} GB"


@dataclasses.dataclass
class Way:
    """One way to cut."""

    saved: list[Node]
    work: float  # traffic and arithmetic that saving and computing again take, in units
    cost: int | None
    name: str
    fused: bool = False  # one graph for both passes
    tight: bool = False  # without memory that only makes it faster

    @property
    def title(self) -> str:
        """Its name, in full."""
        return self.name + TIGHT * self.tight


FUSED = "loss and gradients in one graph: nothing is saved"
TIGHT = ", matrix products without panels of their own"


def fused_way() -> Way:
    """Forward and backward as one graph."""
    return Way([], -math.inf, None, FUSED, True)


def ways(joint: JointGraph) -> Iterator[Way]:
    """Ways to cut a joint graph: the plain one first."""
    plain = recompute_problem(joint)
    cost, saved = solve(plain)
    free = _with_arithmetic(joint, plain)
    yield Way(saved, -math.inf, cost, "the plain minimum cut")
    seen = {frozenset(saved)}
    new = new_memory(joint)
    for way in (*_by_price(free, new), *_by_segments(joint, plain, free, new)):
        if frozenset(way.saved) not in seen:
            seen.add(frozenset(way.saved))
            yield way


def _work(problem: CutProblem, saved: list[Node]) -> float:
    kept = set(saved)
    again = ancestors(problem.demand, stop=kept) - kept
    traffic = sum(problem.keep[v] for v in saved)
    return traffic + sum(problem.again.get(v, 0) for v in again)


def _with_arithmetic(joint: JointGraph, plain: CutProblem) -> CutProblem:
    """The problem with library calls and small reductions that may be repeated, for a price."""
    problem = dataclasses.replace(
        plain, again=dict(plain.again), again_reasons=dict(plain.again_reasons))
    for node in joint.candidates:
        if node in joint.forward and problem.again[node] == math.inf and repeatable(node):
            moved = operand_bytes(node) + nbytes(node.meta.get("val"))
            problem.again[node] = int(UNIT * (moved + flops(node) / FLOPS_PER_BYTE))
            problem.again_reasons.pop(node, None)
    return problem


def repeatable(node: Node) -> bool:
    return (
        node.op == "call_function"
        and cost_of(node.target) in ("heavy", "reduce")
        and hasattr(node.target, "op")
        and not node.is_impure()
        and not policy(node)
    )


def new_memory(joint: JointGraph) -> dict[Node, int]:
    """Bytes of the values that take memory of their own if they are saved."""
    there = {*map(viewed, joint.forward_results)}
    return {
        node: nbytes(node.meta.get("val"))
        for node in joint.candidates
        if viewed(node).op != "placeholder" and viewed(node) not in there
    }


def priced(problem: CutProblem, new: dict[Node, int], rate: float) -> CutProblem:
    """The problem with a price for each byte of memory, in units of traffic."""
    keep = {n: k + int(rate * new[n]) if n in new else k for n, k in problem.keep.items()}
    return dataclasses.replace(problem, keep=keep)


def _by_price(free: CutProblem, new: dict[Node, int]) -> list[Way]:
    """The cuts for all prices of memory: each is a corner of the lower hull of (bytes, work).

    Between two neighbours lies another if the price at which both cost the same finds one.
    """
    found: list[tuple[int, Way]] = []

    def at(rate: float) -> tuple[int, Way]:
        _, saved = solve(priced(free, new, rate))
        size = sum(new.get(v, 0) for v in saved)
        way = Way(saved, _work(free, saved), None, f"memory at {rate / UNIT:.3g} of its traffic")
        found.append((size, way))
        return found[-1]

    todo = [(at(0), at(UNIT * DEAR))]
    while todo and len(found) < PRICES:
        large, small = todo.pop(0)
        if large[0] <= small[0]:
            continue
        rate = (small[1].work - large[1].work) / (large[0] - small[0])
        if not 0 < rate < UNIT * DEAR:
            continue
        middle = at(rate)
        if small[0] < middle[0] < large[0]:
            todo += [(large, middle), (middle, small)]
    return [way for _, way in found]


def _by_segments(
    joint: JointGraph, plain: CutProblem, free: CutProblem, new: dict[Node, int]
) -> Iterator[Way]:
    line = _Line(joint)
    for count, falling in product(SEGMENTS, (False, True)):
        marks = line.marks(count, falling)
        if len(marks) < count - 1:
            continue
        quarters = (2, 4) if falling else (1, 2, 3, 4)
        for part in sorted({-(-count * k // 4) for k in quarters}):
            edges = [line.alive(mark) for mark in marks[:part]]
            fixed = set().union(*edges)
            end = marks[part - 1] if part <= len(marks) else len(line.nodes)
            before = {*line.nodes[:end]}
            again = {
                node: math.inf if node in fixed or (node not in before and node in joint.forward)
                and plain.again[node] == math.inf else work
                for node, work in free.again.items()
            }
            dear = {n: size for n, size in new.items() if n not in fixed and line.behind[n] < end}
            problem = priced(dataclasses.replace(free, again=again), dear, UNIT * DEAR)
            try:
                _, saved = solve(problem)
            except UnboundedCut:  # something there cannot be saved
                continue
            name = f"{part} of {count} {'falling ' * falling}segments computed again"
            yield Way(saved, _work(free, saved), None, name)


class _Line:
    """The calls of the forward in order, and what is alive behind each."""

    def __init__(self, joint: JointGraph) -> None:
        self.nodes = [n for n in joint.nodes if n in joint.forward and n.op == "call_function"]
        place = {node: k for k, node in enumerate(self.nodes)}
        self.until: dict[Node, int] = {}  # value -> its last reader
        for node in self.nodes:
            for source in map(viewed, node.all_input_nodes):
                if source in place:
                    self.until[source] = place[node]
        change = [0] * (len(self.nodes) + 1)
        for node, end in self.until.items():
            change[place[node]] += own_bytes(node)
            change[end] -= own_bytes(node)
        # every value's last operand of the forward: what only the backward reads is no way out,
        # either, when a segment is to be computed again
        self.behind: dict[Node, int] = {}
        for node in joint.nodes:
            operands = (self.behind.get(n, -1) for n in node.all_input_nodes)
            self.behind[node] = place.get(node, max(operands, default=-1))
        self.width = list(accumulate(change))[:-1]
        self.done = list(accumulate(map(own_bytes, self.nodes)))
        self.place = place

    def marks(self, count: int, falling: bool = False) -> list[int]:
        """Places that divide the forward into about equal parts, where little is alive; or into
        parts of which each is shorter than the one before."""
        if not self.done or not self.done[-1]:
            return []
        parts = [count + 1 - k if falling else 1 for k in range(count)]
        step, found = self.done[-1] / sum(parts), []
        for k, at in enumerate(accumulate(parts[:-1])):
            around = 0.4 * min(parts[k], parts[k + 1])
            low = bisect_left(self.done, (at - around) * step)
            high = min(bisect_left(self.done, (at + around) * step), len(self.nodes) - 1)
            best = min(range(low, high + 1), key=lambda i: (self.width[i], -i), default=None)
            if best is not None and (not found or best > found[-1] - 1):
                found.append(best + 1)
        return sorted(set(found))

    def alive(self, mark: int) -> set[Node]:
        """Values made before a place and read behind it, but for those made from nothing."""
        found = set()
        for node, end in self.until.items():
            if self.place[node] < mark <= end and cost_of(node.target) != "create":
                many = isinstance(node.meta.get("val"), (tuple, list))
                found.update(node.users if many else (node,))
        return found


def with_tight(found: list[Way]) -> list[Way]:
    """Each way, and the same without memory that only makes it faster."""
    return [form for way in found for form in (way, dataclasses.replace(way, tight=True))]


def measured(
    cut: tuple, count: int, meter: Meter, values: dict[str, int] | None = None, fused: bool = False
) -> Phases:
    """What the graphs of a cut take, or its one graph for both passes; with symbolic sizes for
    given ones, else for those of the example."""
    from ..graph.concrete import sized_for

    if fused:
        return meter.at_once(sized_for(cut.one, values), cut.fused.tight)
    forward, backward = tuple(cut)[:2]
    return meter.phases(
        sized_for(forward, values), sized_for(backward, values), count, is_tight(forward))


def within(
    limit: float, meter: Callable[[], Meter], cut: tuple, count: int, values: dict[str, int]
) -> bool:
    """Does a cut that was made for other sizes keep the limit for these, too?"""
    if isinstance(limit, float):  # a part of what it takes, whatever that is
        return True
    fused = getattr(cut, "fused", None) is not None
    return measured(cut, count, meter(), values, fused).peak <= limit


def choose(
    found: list[Way],
    peak: Callable[[Way], int],
    least: Callable[[Way], int],
    limit: float,
    most: float = math.inf,
) -> tuple[Way, float]:
    """The way with the least work whose peak is within the limit, and that limit in bytes.

    `least` is a bound that needs no simulation; `most` is the peak of eager execution, which is a
    limit, too. A float from 0 to 1 lies between the least peak and that of the first way. Where
    only eager execution keeps the limit, `DataDependentError` says so: the function runs as it is.
    """
    order = sorted(found, key=lambda way: (way.work, not way.fused, way.tight))
    of = functools.cache(lambda number: peak(order[number]))
    numbers = range(len(order))
    if isinstance(limit, float) and limit <= 1:
        plain, lowest = of(0), min(map(of, numbers))
        limit = max(lowest, int(lowest + limit * (plain - lowest)))
    # clearly below eager, or just so; if there is no way below it, as fast as allowed
    for bound in (min(limit, CLEARLY * most), min(limit, most), limit):
        for n in numbers:
            if least(order[n]) <= bound and of(n) <= bound:
                return order[n], bound
    best = min(numbers, key=of)
    if most <= limit:  # the function itself keeps it
        raise errors.DataDependentError(errors.text(
            f"memory={shown(limit)} is less than compiled code needs ({shown(of(best))}) and "
            f"enough for eager execution ({shown(most)})",
            cure=f"give it {shown(of(best))}, or call the function without compile()"))
    eager = f", eager {shown(most)}" if most < math.inf else ""
    raise errors.OverBudget(errors.text(
        f"memory={shown(limit)} is not enough for forward and backward: they need "
        f"{shown(min(of(best), most))} at least",
        [f"without a limit {shown(of(0))}{eager}, with {order[best].title} {shown(of(best))}"],
        ["give it that much", "or smaller batches", "or save_on_cpu() around the call"]))
