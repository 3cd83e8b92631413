"""Which values to keep when there is not room for all: the 0-1 knapsack, solved in several ways.

Every solver takes what each value needs, what computing it again costs, and the room there is, in
any units; it returns the cost that is avoided, and the numbers of the values to keep and of those
to compute again. `memory_share.py` asks them for the setting `activation_memory_budget`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

ROUNDING = 1e-9
STEPS = 10_000  # exact solvers by tables count memory in these parts of 1

Found = tuple[float, list[int], list[int]]


def _found(keep: Sequence[bool], runtimes: Sequence[float]) -> Found:
    kept = [k for k, yes in enumerate(keep) if yes]
    return float(sum(runtimes[k] for k in kept)), kept, [k for k, yes in enumerate(keep) if not yes]


def greedy_knapsack(
    memory: Sequence[float], runtimes: Sequence[float], max_memory: float
) -> Found:
    """What avoids most per byte first, as long as it fits."""
    def worth(k: int) -> float:
        return runtimes[k] / memory[k] if memory[k] else float("inf")

    keep, left = [False] * len(memory), max_memory
    for k in sorted(range(len(memory)), key=worth, reverse=True):
        if memory[k] <= left + ROUNDING:
            keep[k], left = True, left - memory[k]
    return _found(keep, runtimes)


def ilp_knapsack(memory: Sequence[float], runtimes: Sequence[float], max_memory: float) -> Found:
    """The best choice, by SciPy's integer programs."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    if not memory:
        return 0.0, [], []
    found = milp(
        -np.asarray(runtimes, float), integrality=np.ones(len(memory)), bounds=Bounds(0, 1),
        constraints=LinearConstraint(np.asarray([memory], float), ub=max_memory))
    if not found.success:
        raise RuntimeError(f"no way to keep values within {max_memory}: {found.message}")
    return _found(found.x > 0.5, runtimes)


def _row(row: np.ndarray, size: int, gain: float) -> np.ndarray:
    """The best for each room with one value more to choose from."""
    if size == 0:
        return row + max(gain, 0)
    out = row.copy()
    if size < len(row):
        np.maximum(out[size:], row[:-size] + gain, out=out[size:])
    return out


def dp_knapsack(memory: Sequence[float], runtimes: Sequence[float], max_memory: float) -> Found:
    """The best choice, by a table over all rooms in steps of 1/10000."""
    sizes, room = [round(m * STEPS) for m in memory], round(max_memory * STEPS)
    rows = [np.zeros(room + 1)]
    for size, gain in zip(sizes, runtimes):
        rows.append(_row(rows[-1], size, gain))
    keep = [False] * len(sizes)
    for k in range(len(sizes) - 1, -1, -1):
        keep[k] = bool(rows[k + 1][room] != rows[k][room])
        room -= sizes[k] * keep[k]
    return _found(keep, runtimes)


def dp_knapsack_sliding_hirschberg(
    memory: Sequence[float], runtimes: Sequence[float], max_memory: float
) -> Found:
    """The same choice with two rows of the table at a time: halves, and how they share the room."""
    sizes, keep = [round(m * STEPS) for m in memory], [False] * len(memory)

    def last_row(values: range, room: int) -> np.ndarray:
        row = np.zeros(room + 1)
        for k in values:
            row = _row(row, sizes[k], runtimes[k])
        return row

    todo = [(0, len(sizes), round(max_memory * STEPS))] if sizes else []
    while todo:
        start, end, room = todo.pop()
        if end - start == 1:
            keep[start] = sizes[start] <= room and runtimes[start] > 0
            continue
        middle = (start + end) // 2
        first, second = last_row(range(start, middle), room), last_row(range(middle, end), room)
        share = int(np.argmax(first + second[::-1]))
        todo += [(start, middle, share), (middle, end, room - share)]
    return _found(keep, runtimes)


def knee_knapsack(memory: Sequence[float], runtimes: Sequence[float], max_memory: float) -> Found:
    """The best choice for the room, up to what there is, from which more room brings little.

    Of a hundred rooms that is the one nearest to needing nothing and repeating nothing, both
    measured in parts of their range.
    """
    tried = [dp_knapsack(memory, runtimes, room) for room in np.linspace(0.001, max_memory, 100)]
    needed = np.array([sum(memory[k] for k in kept) for _, kept, _ in tried])
    lost = sum(runtimes) - np.array([gain for gain, _, _ in tried])
    if not np.ptp(needed) or not np.ptp(lost):
        return tried[-1]
    parts = [(values - values.min()) / np.ptp(values) for values in (needed, lost)]
    return tried[int(np.argmin(np.hypot(*parts)))]


SOLVERS: dict[str, Callable[..., Found]] = {
    "dp": dp_knapsack,
    "greedy": greedy_knapsack,
    "ilp": ilp_knapsack,
    "dp_knapsack_sliding_hirschberg": dp_knapsack_sliding_hirschberg,
    "dynamic_memory_budget_dp": knee_knapsack,
}
