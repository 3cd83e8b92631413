"""What a compiled graph relies on, checked for every graph before its code is built.

Values are handed from one walk over a row to the next (scratch memory, sums of the row), from one
kernel or call to the next (buffers), and memory of what is no longer needed is used again. Each of
these is planned in one place (`walks.py`, `schedule.py`, `memory.py`); here the outcome is followed
step by step: nothing is read before it was written, or after something else took its place. A
failure is a bug of the compiler: `CodeNotSound` says so, and the graph runs on NumPy instead.
"""

from __future__ import annotations

import heapq
from bisect import bisect
from collections import Counter
from typing import TYPE_CHECKING, Any

from .errors import CodeNotSound
from .ir import Ref
from .kernel import Kernel

if TYPE_CHECKING:
    from .ir import Value
    from .memory import Buffer, Memory
    from .schedule import CallItem, Schedule


def check_walks(name: str, trace: list[tuple]) -> None:
    """Follow what the walks of a kernel hand on, as it was written.

    Of each entry (what, whose, width of the body, number of the walk): a value is kept in scratch
    memory once, and loaded by later walks only; a row's reduction is used after its walk.
    """
    made: dict[tuple, int] = {}
    for what, whose, width, walk in trace:
        if what in ("keep", "fold"):
            if (whose, width) in made:
                raise CodeNotSound(name, f"{_named(whose)} is stored by two walks over a row")
            made[whose, width] = walk
        elif (whose, width) not in made:
            raise CodeNotSound(name, f"walk {walk} reads {_named(whose)}, which no walk stores")
        elif made[whose, width] >= walk:
            raise CodeNotSound(
                name, f"walk {walk} reads {_named(whose)}, which walk {made[whose, width]} stores")


def _named(whose: Any) -> str:
    return whose[0].name if isinstance(whose, tuple) else whose.name


def check_steps(
    name: str, schedule: Schedule, memory: Memory, inplace: dict[Value, Value]
) -> None:
    """Follow the contents of buffers through kernels and calls, up to the outputs."""
    Steps(name, schedule, memory, inplace).run()


class Steps:
    """Which value each place of the table holds, item by item."""

    def __init__(
        self, name: str, schedule: Schedule, memory: Memory, inplace: dict[Value, Value]
    ) -> None:
        self.name, self.schedule, self.memory, self.inplace = name, schedule, memory, inplace
        lowered = schedule.lowered
        self.holds: dict[int, Value] = {memory.slot[v]: v for v in lowered.inputs}
        self.holds |= {memory.slot[v]: v for v in schedule.empty}
        self.parts = Counter(  # still to be written of each value
            v for item in schedule.items for v in _writes(item))

    def run(self) -> None:
        """Raises CodeNotSound where a value is not there when it is read."""
        for n, item in enumerate(self.schedule.items):
            reads = _reads(item)
            for v in reads:
                self._read(v, n)
            for v in _writes(item):
                self._write(v, item, n, reads)
        end = len(self.schedule.items)
        for ref in self.schedule.lowered.outputs:
            if isinstance(ref, Ref):
                self._read(ref.value, end)

    def _fail(self, why: str) -> None:
        raise CodeNotSound(self.name, why)

    def _read(self, v: Value, n: int) -> None:
        slot = self.memory.slot.get(v)
        there = self.holds.get(slot) if slot is not None else None
        if there is not v:
            by = f"{there.name} has taken its place" if there is not None else "nothing wrote it"
            self._fail(f"step {n} reads {v.name}: {by}")
        if self.parts[v]:
            self._fail(f"step {n} reads {v.name} before all of it is written")
        if n > self.memory.buffers[slot].dies:
            self._fail(f"step {n} reads {v.name} after its memory was let go")

    def _write(self, v: Value, item: Kernel | CallItem, n: int, reads: list[Value]) -> None:
        self.parts[v] -= 1
        slot = self.memory.slot.get(v)
        if slot is None:
            if not (isinstance(item, Kernel) and v in item.own and item.own[v].how == "row"):
                self._fail(f"step {n} has no memory for {v.name}")
            return  # a row's reduction that only its kernel reads
        buffer = self.memory.buffers[slot]
        if not buffer.born <= n <= buffer.dies:
            self._fail(f"step {n} writes {v.name} when its memory belongs to others")
        old = self.holds.get(slot)
        if old is not None and old is not v:
            if self.parts[old]:
                self._fail(f"{v.name} overwrites {old.name} before that is whole")
            if old in reads and not self._in_step(v, old, item):
                self._fail(f"step {n} overwrites {old.name} with {v.name} while it is read")
        self.holds[slot] = v

    def _in_step(self, v: Value, old: Value, item: Kernel | CallItem) -> bool:
        """Is each element read before the same element is written, and nowhere else?"""
        if not isinstance(item, Kernel):
            given = [ref for ref in item.call.args if ref.value is old]
            return item.call.kind == "gemm" and given == item.call.args[2:] and given[0].plain
        if self.inplace.get(v) is not old or any(r.how != "store" for r in item.roots):
            return False
        at = {r.target for r in item.roots if r.value is v}
        return at == {access for value, access in item.loads if value is old}


def check_table(name: str, schedule: Schedule, memory: Memory, given: set[int]) -> None:
    """All that a body of a loop reads and writes has an address in the body's table."""
    for n, item in enumerate(schedule.items):
        for v in (*_reads(item), *_writes(item)):
            slot = memory.slot.get(v)
            if slot is not None and slot not in given:
                raise CodeNotSound(name, f"step {n} has no address for {v.name}")


def _reads(item: Kernel | CallItem) -> list[Value]:
    if isinstance(item, Kernel):
        return list(dict.fromkeys(v for v, _ in item.loads))
    return list(dict.fromkeys(ref.value for ref in item.call.args))


def _writes(item: Kernel | CallItem) -> list[Value]:
    """What an item writes, a value once for each part; kernels without elements: nothing."""
    if isinstance(item, Kernel):
        return [root.value for root in item.roots] if item.total != 0 else []
    return [v for v in item.call.outs if v is not None]


def check_places(memory: Memory) -> None:
    """No two buffers that live at the same time share bytes, and all lie inside of what they are
    placed in."""
    inputs = {b.at: b for b in memory.buffers if b.kind == "input"}
    arenas: dict[tuple, list[tuple[int, Buffer]]] = {}
    for b in memory.buffers:
        if b.kind == "work":
            arenas.setdefault(("work", 0), []).append((b.at, b))
        elif b.kind in ("placed", "taken", "hosted"):
            given = b.kind != "hosted"
            host = inputs[b.at] if given else memory.buffers[b.at]
            free = host.gives and b.born > host.dies if given else b.dies < host.born
            if not free or b.offset + b.bytes > host.bytes:
                raise CodeNotSound("a graph", "a value lies in memory that is still needed")
            arenas.setdefault((given, b.at), []).append((b.offset, b))
    for (kind, _), placed in arenas.items():
        if kind == "work" and any(at + b.bytes > memory.workspace for at, b in placed):
            raise CodeNotSound("a graph", "a value lies outside of the workspace")
        _apart(placed)


def _apart(placed: list[tuple[int, Buffer]]) -> None:
    """Go through time: what lives at one moment lies side by side."""
    begins: list[int] = []  # of those that live, in order
    ends: dict[int, int] = {}
    leave: list[tuple[float, int]] = []
    for at, b in sorted(placed, key=lambda p: p[1].born):
        if not b.bytes:
            continue
        while leave and leave[0][0] < b.born:
            gone = heapq.heappop(leave)[1]
            del begins[bisect(begins, gone) - 1], ends[gone]
        i = bisect(begins, at)
        if (i and ends[begins[i - 1]] > at) or (i < len(begins) and begins[i] < at + b.bytes):
            raise CodeNotSound("a graph", "two values share memory at the same time")
        begins.insert(i, at)
        ends[at] = at + b.bytes
        heapq.heappush(leave, (b.dies, at))
