"""Where values live: places in the table of buffers, and offsets in one workspace that is
reused.

Outputs get arrays of their own; everything else shares a workspace, two values the same bytes
when one is last read before the other is first written. Inputs that are *given away* (values that a
forward saved for this graph alone) are memory, too, once they have been read for the last time: for
values on the way, and for outputs of about their size. So are outputs until they are first written.
What calls need beside their results (`blocks.py`) is placed like a value that lives for one item;
where memory is *tight*, panels of matrix products go without what is not there anyway, and outputs
are made when they are first needed instead of all at the beginning, and the workspace is given
back.

Read `unit.py` next.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import islice

from ..graph.graph_module import GraphModule
from . import blocks, sound
from .builder import item_size
from .ir import Call, Ref, Value, contiguous
from .kernel import Kernel
from .number import likely, varies
from .schedule import CallItem, Schedule

_ALIGN = 64
_WORTH = 4096  # bytes of an output that is made when it is needed
_TRIED = 512  # arrays in whose memory a place is looked for
_MANY = 2048  # buffers from where on not all pairs of them are looked at
LARGE = 64 << 10  # arrays from here on come from the allocator of the runtime (`function.c`)


@dataclass
class Buffer:
    """One place of the table; number 0 is the status."""

    kind: str  # input | output | work | extern | none (there is no memory for it);
    # in an input: placed (work) | taken (an output); in an output that is not written yet: hosted
    bytes: int
    value: Value | None = None
    at: int = 0  # input number, workspace offset or place of the host
    born: int = 0
    dies: float = 0
    offset: int = 0  # in the input or host
    gives: bool = False  # is an input that may be overwritten after its last reader?
    spare: bool = False  # can be done without

    def room_for(self, b: Buffer) -> bool:
        """Is its memory free while another one lives?"""
        return b.bytes <= self.bytes and (
            b.born > self.dies if self.gives else b.dies < self.born)


def _first_to_end(arena: tuple[int, Buffer, list]) -> tuple[int, float]:
    """The order in which a place is looked for: the smallest, and of these the one that is free
    first, so that others are let go."""
    return arena[1].bytes, arena[1].dies


def _is_there(b: Buffer, arena: Buffer, there: list[tuple[int, Buffer]]) -> bool:
    """Is an array in which others are placed there for their sake while a buffer lives?"""
    if arena.gives:
        return any(o.dies >= b.dies for _, o in there)
    return any(o.born <= b.born for _, o in there)


def _gap(b: Buffer, others: list[tuple[int, Buffer]]) -> int:
    """The first offset at which a buffer meets none that is there at the same time."""
    busy = sorted(
        (at, at + o.bytes) for at, o in others if o.born <= b.dies and b.born <= o.dies
    )
    at = 0
    for begin, end in busy:
        if begin - at >= b.bytes:
            break
        at = max(at, -(-end // _ALIGN) * _ALIGN)
    return at


@dataclass
class Memory:
    """The table of one graph."""

    buffers: list[Buffer] = field(default_factory=list)
    slot: dict[Value, int] = field(default_factory=dict)
    panels: dict[Call, int] = field(default_factory=dict)  # slots for what calls need besides
    workspace: int = 0
    now: int = 0  # item that asks for temporaries

    def temporary(self, size: int, spare: bool = False, last: int | None = None) -> int:
        """A buffer for the item being written only, or for those up to the last."""
        end = self.now if last is None else last
        self.buffers.append(Buffer("work", size, born=self.now, dies=end, spare=spare))
        return len(self.buffers) - 1

    def pack(self, tight: bool = False) -> None:
        """Give every workspace buffer an offset; the largest are placed first.

        Where memory is `tight`, what can be done without gets only what is there for others.
        """
        large = [(n, b) for n, b in enumerate(self.buffers) if b.bytes >= LARGE]
        arenas = sorted(((n, b, []) for n, b in large if b.gives), key=_first_to_end)
        outputs = sorted((b for _, b in large if b.kind == "output"), key=lambda b: -b.bytes)
        for b in outputs:
            self._hosted(b, arenas)
        arenas += [(n, b, []) for n, b in large if b.kind == "output"]
        arenas.sort(key=_first_to_end)
        work = sorted((b for b in self.buffers if b.kind == "work"), key=lambda b: -b.bytes)
        left = [b for b in work if not (b.spare and tight)
                and not self._hosted(b, arenas)]
        self.workspace = packed(left)
        if tight:
            self._closer(work, left, arenas)
        for b in (b for b in work if b.spare and tight):
            if self._hosted(b, [arena for arena in arenas if _is_there(b, *arena[1:])]):
                continue
            few = len(left) <= _MANY
            b.at = _gap(b, [(o.at, o) for o in left]) if few else self.workspace
            if b.at + b.bytes > self.workspace:
                b.kind, b.at = "none", 0
            else:
                left.append(b)
        sound.check_places(self)

    def _closer(
        self, work: list[Buffer], left: list[Buffer], arenas: list[tuple[int, Buffer, list]]
    ) -> None:
        """Move what lies in inputs and outputs into gaps of the workspace, which is there anyway,
        or into others that are: the former end earlier then, the latter begin later."""
        for _, arena, there in sorted(arenas, key=lambda a: len(a[2])):
            inside = [b for _, b in there if b.kind in ("placed", "hosted")]
            others = [a for a in arenas[:_TRIED] if a[1] is not arena]
            # what decides when it begins or ends comes first, as far as there is room
            for b in sorted(inside, key=lambda b: -b.dies if b.kind == "placed" else b.born):
                if not self._into_gap(b, left) and not any(
                        _is_there(b, *a[1:]) and self._into(b, *a) for a in others):
                    break
                there[:] = [(at, o) for at, o in there if o is not b]
        for b in work:
            if b.kind in ("placed", "hosted"):
                self._into_gap(b, left)

    def _into_gap(self, b: Buffer, left: list[Buffer]) -> bool:
        """Move a buffer into the workspace if there is room at its time."""
        at = _gap(b, [(o.at, o) for o in left]) if len(left) <= _MANY else math.inf
        if at + b.bytes > self.workspace:
            return False
        b.kind, b.at, b.offset = "work", at, 0
        left.append(b)
        return True

    def _hosted(self, b: Buffer, arenas: list[tuple[int, Buffer, list]]) -> bool:
        """Place a buffer in one of many, sorted by size, if that is possible."""
        first = bisect_left(arenas, b.bytes, key=lambda a: a[1].bytes)
        return any(self._into(b, *arena) for arena in islice(arenas, first, first + _TRIED))

    def _into(self, b: Buffer, n: int, arena: Buffer, there: list[tuple[int, Buffer]]) -> bool:
        """Place a buffer in the memory of an input that has been read, or of an output before it
        is written."""
        if not arena.room_for(b):
            return False
        if b.kind == "output" and b.bytes * 4 < arena.bytes * 3:
            return False  # the rest of it would stay as long as the output does
        at = _gap(b, there)
        if at + b.bytes > arena.bytes or b.kind == "output" and at:
            return False
        if not arena.gives:
            b.kind, b.at = "hosted", n
        else:
            b.kind, b.at = "taken" if b.kind == "output" else "placed", arena.at
        b.offset = at
        there.append((at, b))
        return True

    def reused(self) -> int:
        """Bytes of values in the memory of inputs and outputs."""
        return sum(b.bytes for b in self.buffers if b.kind in ("placed", "taken", "hosted"))

    def needed(self) -> dict[int, int]:
        """Outputs with memory of their own -> the first item that writes there."""
        first = {n: b.born for n, b in enumerate(self.buffers) if b.kind == "output"}
        for b in self.buffers:
            if b.kind == "hosted":
                first[b.at] = min(first[b.at], b.born)
        return first

    def makes(self, step_of: Sequence[int], count: int) -> tuple[tuple[int, ...], ...]:
        """Per step, the outputs that it needs first, each before those that it hosts."""
        made: list[list[int]] = [[] for _ in range(count)]
        first = self.needed()
        for n, item in first.items():
            made[min(step_of[item], count - 1)].append(n)
        for n, b in enumerate(self.buffers):
            if b.kind == "hosted":
                made[min(step_of[first[b.at]], count - 1)].append(n)
        return tuple(map(tuple, made))

    def ends(self) -> dict[int, float]:
        """Inputs whose memory others take -> the last item with something there."""
        found = {b.at: b.dies for b in self.buffers if b.kind == "input" and b.gives}
        last: dict[int, float] = {}
        for b in self.buffers:
            if b.kind in ("placed", "taken"):
                last[b.at] = max(b.dies, last.get(b.at, found[b.at]))
        return last

    def room(self) -> tuple[tuple[int, int], ...]:
        """(input, bytes) of the inputs whose memory others take."""
        used = {b.at for b in self.buffers if b.kind in ("placed", "taken")}
        return tuple((b.at, b.bytes) for b in self.buffers if b.kind == "input" and b.at in used)


def packed(buffers: list[Buffer]) -> int:
    """Give buffers offsets in one piece of memory, the largest first; returns its size."""
    if len(buffers) > _MANY:
        return _in_order(buffers)
    placed: list[tuple[int, Buffer]] = []
    for b in sorted(buffers, key=lambda b: -b.bytes):
        b.at = _gap(b, placed)
        placed.append((b.at, b))
    return max((at + b.bytes for at, b in placed), default=0)


def _in_order(buffers: list[Buffer]) -> int:
    """The same as they come to life, each in the smallest gap that is free then: among many
    buffers all pairs cannot be looked at."""
    free: list[tuple[int, int]] = []  # (bytes, offset), sorted
    starts: dict[int, int] = {}  # free gaps: offset -> bytes, and end -> offset
    ends: dict[int, int] = {}
    living: list[tuple[float, int, int]] = []
    end = 0

    def release(at: int, size: int) -> None:
        if at in ends:  # together with the gap before
            before = ends.pop(at)
            size += (gap := starts.pop(before))
            del free[bisect_left(free, (gap, before))]
            at = before
        if at + size in starts:  # and the one behind
            gap = starts.pop(at + size)
            del free[bisect_left(free, (gap, at + size))]
            del ends[at + size + gap]
            size += gap
        starts[at], ends[at + size] = size, at
        insort(free, (size, at))

    for b in sorted(buffers, key=lambda b: (b.born, -b.bytes)):
        while living and living[0][0] < b.born:
            release(*heappop(living)[1:])
        size = -(-b.bytes // _ALIGN) * _ALIGN
        k = bisect_left(free, (size, -1))
        if k < len(free):
            gap, b.at = free.pop(k)
            del starts[b.at], ends[b.at + gap]
            if gap > size:
                release(b.at + size, gap - size)
        else:
            b.at, end = end, end + size
        heappush(living, (b.dies, b.at, size))
    return end


def plan(
    schedule: Schedule, vector_bytes: int, inplace: dict[Value, Value] | None = None,
    given: Collection[int] = (),
) -> Memory:
    """Buffers of all stored values; `pack` is called after kernels asked for temporaries.

    `inplace` says which values live in the memory of an input, `given` the numbers of the inputs
    that may be overwritten.  Bytes may depend on sizes that are not known yet.
    """
    inplace, lowered, items = inplace or {}, schedule.lowered, schedule.items
    born: dict[Value, int] = dict.fromkeys(schedule.empty, 0)
    dies: dict[Value, float] = dict.fromkeys(schedule.empty, len(items))
    for n, item in enumerate(items):
        if isinstance(item, CallItem):
            reads = [r.value for r in item.call.args]
            writes = [v for v in item.call.outs if v is not None]
        else:
            reads = [v for v, _ in item.loads]
            writes = [r.value for r in item.roots]
        for v in reads:
            dies[v] = max(n, dies.get(v, n))
        for v in writes:
            born[v] = min(n, born.get(v, n))
            dies[v] = max(n, dies.get(v, n))
    _together(schedule, born, dies)
    outputs = {r.value for r in lowered.outputs if isinstance(r, Ref)}
    internal = _internal(schedule, outputs)
    memory = Memory([Buffer("status", 0)])
    stays = outputs.union(inplace.values())
    for n, v in enumerate(lowered.inputs):
        size = v.numel * item_size(v.dtype)
        gives = n in given and v not in stays
        last = math.inf if v in stays else dies.get(v, -1)
        _add(memory, Buffer("input", size, v, n, -1, last, gives=gives))
    sums = _sums(schedule, dies, outputs)
    for v in sorted(born, key=lambda v: v.uid):
        if v in inplace:
            memory.slot[v] = memory.slot[inplace[v]]
            continue
        if v in sums:  # in the memory of what it adds to
            slot = memory.slot[v] = memory.slot[sums[v]]
            buffer = memory.buffers[slot]
            buffer.dies = max(buffer.dies, dies[v])
            if v in outputs:
                buffer.kind, buffer.value, buffer.dies = "output", v, math.inf
            continue
        if v in internal:
            continue
        size = v.numel * item_size(v.dtype)
        if v.call is not None and v.call.kind == "python":
            kind = "extern"
        else:
            kind = "output" if v in outputs else "work"
        end = math.inf if v in outputs else dies[v]
        _add(memory, Buffer(kind, size, v, 0, born[v], end))
    for memory.now, item in enumerate(items):
        size = blocks.of_call(item.call, vector_bytes) if isinstance(item, CallItem) else 0
        if varies(size) or size:
            memory.panels[item.call] = memory.temporary(size, item.call.kind == "gemm")
    return memory


def _together(schedule: Schedule, born: dict, dies: dict) -> None:
    """Items of a group may run all at once: what one of them reads or writes is there for all."""
    for group in schedule.groups:
        for times, at in ((born, group.first), (dies, group.last)):
            times.update({v: at for v, n in times.items() if group.first <= n <= group.last})


def _sums(schedule: Schedule, dies: dict[Value, float], outputs: set[Value]) -> dict[Value, Value]:
    """Matrix products that add to another one: value -> that one, if it is of no use then."""
    found = {}
    for n, item in enumerate(schedule.items):
        if isinstance(item, CallItem) and item.call.kind == "gemm" and len(item.call.args) > 2:
            out, (a, b, bias) = item.call.outs[0], item.call.args
            given = bias.value
            whole = bias.offset == 0 and bias.shape == out.shape == given.shape
            if (
                given.kind == "call" and given.call.kind == "gemm"
                and whole and bias.strides == contiguous(out.shape)
                and dies[given] == n and given not in outputs
                and given not in (a.value, b.value)
            ):
                found[out] = given
    return found


def breaks(memory: Memory) -> set[int]:
    """Items that begin a step of their own where outputs are made late: they are the first to write
    one that is worth it."""
    return {b.born for b in memory.buffers if b.kind == "output" and likely(b.bytes) >= _WORTH}


def step_ends(schedule: Schedule, late: Collection[int] = ()) -> list[int]:
    """For each item the last one of its step: NumPy steps, and all that stands between them, up to
    those that begin another."""
    ends: list[int] = []
    last = len(schedule.items) - 1
    for n in range(last, -1, -1):
        item = schedule.items[n]
        alone = isinstance(item, CallItem) and item.call.kind == "python"
        ends.append(n if alone else last)
        if alone or n in late:
            last = n - 1
    return ends[::-1]


def given_away(module: GraphModule) -> set[int]:
    """Numbers of the inputs that a graph may overwrite."""
    inputs = (n for n in module.graph.nodes if n.op == "placeholder")
    return {number for number, node in enumerate(inputs) if node.meta.get("donated")}


def _add(memory: Memory, buffer: Buffer) -> None:
    memory.slot[buffer.value] = len(memory.buffers)
    memory.buffers.append(buffer)


def _internal(schedule: Schedule, outputs: set[Value]) -> set[Value]:
    """Row reductions that only their own kernels read."""
    made, read = set(), set(outputs)
    for item in schedule.items:
        if isinstance(item, Kernel):
            made.update(v for v, root in item.own.items() if root.how == "row")
            read.update(v for v, _ in item.loads if v not in item.own)
        else:
            read.update(r.value for r in item.call.args)
    return made - read
