"""Where values live: places in the table of buffers, and offsets in one workspace that is
reused.

Outputs get arrays of their own; everything else shares a workspace, two values the same bytes
when one is last read before the other is first written. Read `unit.py` next.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..aot.simulate import Meter
from ..fx.graph_module import GraphModule
from .ir import SIZES, Ref, Value
from .kernel import Kernel
from .schedule import CallItem, Schedule

_ALIGN = 64


@dataclass
class Buffer:
    """One place of the table; number 0 is the status."""

    kind: str  # input | output | work | extern
    bytes: int
    value: Value | None = None
    at: int = 0  # input number or workspace offset
    born: int = 0
    dies: int = 0


@dataclass
class Memory:
    """The table of one graph."""

    buffers: list[Buffer] = field(default_factory=list)
    slot: dict[Value, int] = field(default_factory=dict)
    workspace: int = 0
    now: int = 0  # item that asks for temporaries

    def temporary(self, size: int) -> int:
        """A buffer for the item being written only."""
        self.buffers.append(Buffer("work", size, born=self.now, dies=self.now))
        return len(self.buffers) - 1

    def pack(self) -> None:
        """Give every workspace buffer an offset."""
        self.workspace = packed([b for b in self.buffers if b.kind == "work"])


def packed(buffers: list[Buffer]) -> int:
    """Give buffers offsets in one piece of memory, the largest first; returns its size."""
    placed: list[Buffer] = []
    for b in sorted(buffers, key=lambda b: -b.bytes):
        busy = sorted(
            (o.at, o.at + o.bytes) for o in placed if o.born <= b.dies and b.born <= o.dies
        )
        at = 0
        for begin, end in busy:
            if begin - at >= b.bytes:
                break
            at = max(at, -(-end // _ALIGN) * _ALIGN)
        b.at = at
        placed.append(b)
    return max((b.at + b.bytes for b in placed), default=0)


def plan(schedule: Schedule, inplace: dict[Value, Value] | None = None) -> Memory:
    """Buffers of all stored values; `pack` is called after kernels asked for temporaries.

    `inplace` says which values live in the memory of an input.
    """
    inplace = inplace or {}
    lowered, items = schedule.lowered, schedule.items
    born: dict[Value, int] = dict.fromkeys(schedule.empty, 0)
    dies: dict[Value, int] = dict.fromkeys(schedule.empty, len(items))
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
    outputs = {r.value for r in lowered.outputs if isinstance(r, Ref)}
    memory = Memory([Buffer("status", 0)])
    for n, v in enumerate(lowered.inputs):
        _add(memory, Buffer("input", v.numel * SIZES.get(v.dtype, 0), v, n))
    for v in sorted(born, key=lambda v: v.uid):
        if v in inplace:
            memory.slot[v] = memory.slot[inplace[v]]
            continue
        if _internal(v, schedule, outputs):
            continue
        size = v.numel * SIZES.get(v.dtype, 16)
        if v.call is not None and v.call.kind == "python":
            kind = "extern"
        else:
            kind = "output" if v in outputs else "work"
        _add(memory, Buffer(kind, size, v, 0, born[v], dies[v]))
    return memory


class Planned(Meter):
    """How much memory graphs take as they are laid out here; the workspace stays for the next call
    (`runtime/function.c`), and arrays are as large as the allocator makes them (`runtime/alloc.c`).
    """

    def size(self, size: int) -> int:
        if not size:
            return 0
        base = 4096
        while base * 2 < size:
            base *= 2
        step = base // 4
        return base + max(0, -(-(size - base) // step)) * step + 2624

    def taken(self, module: GraphModule) -> tuple[int, int]:
        from .errors import GraphNotSupported
        from .lower import lower
        from .schedule import schedule

        if any(
            type(size) is not int
            for node in module.graph.nodes if node.op == "placeholder"
            for size in getattr(node.meta.get("val"), "shape", ())
        ):
            return super().taken(module)  # laid out when the sizes are known
        try:
            memory = plan(schedule(lower(module)))
        except GraphNotSupported:  # it will run on NumPy
            return super().taken(module)
        memory.pack()
        work = self.size(memory.workspace)
        results = [self.size(b.bytes) for b in memory.buffers if b.kind in ("output", "extern")]
        return work + sum(results), work


def _add(memory: Memory, buffer: Buffer) -> None:
    memory.slot[buffer.value] = len(memory.buffers)
    memory.buffers.append(buffer)


def _internal(v: Value, schedule: Schedule, outputs: set[Value]) -> bool:
    """A row reduction that only its own kernel reads."""
    if v.kind != "reduce" or v.attrs["how"] != "row" or v in outputs:
        return False
    for item in schedule.items:
        if isinstance(item, Kernel):
            if v not in item.own and any(w is v for w, _ in item.loads):
                return False
        elif any(r.value is v for r in item.call.args):
            return False
    return True
