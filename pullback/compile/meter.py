"""How much memory native code takes, for cuts that keep a limit: graphs are scheduled and laid out
as they will be, and nothing is written.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from ..cut.eager_peak import inside_of
from ..cut.simulate import Meter, Taken
from ..graph.graph_module import GraphModule
from . import blocks, toolchain
from .backend import MOST_NODES
from .builder import item_size
from .errors import CompilerNotFound, GraphNotSupported
from .kernel import Kernel
from .lower import lower
from .memory import LARGE, Memory, breaks, given_away, plan, step_ends
from .schedule import CallItem, Schedule, schedule


def _planned(items: Schedule, vector_bytes: int, given: Collection[int] = ()) -> Memory:
    """Buffers of values, and what kernels and the bodies of loops need beside."""
    memory = plan(items, vector_bytes, given=given)
    for memory.now, item in enumerate(items.items):
        if isinstance(item, Kernel):
            for size in blocks.of_kernel(item, vector_bytes):
                memory.temporary(size)
            continue
        for body in item.call.attrs.get("bodies", ()):
            inside = _planned(body.schedule, vector_bytes)
            inside.pack()
            carried = sum(o.ref.value.numel * item_size(o.ref.dtype)
                          for _, o in body.read if o.carried)
            memory.temporary(inside.workspace + 2 * carried)
    return memory


class Planned(Meter):
    """How much memory graphs take as they are laid out here; the workspace stays for the next call
    unless they are tight (`runtime/function.c`), and arrays are as large as the allocator makes
    them (`runtime/alloc.c`)."""

    tightens = True

    def __init__(self) -> None:
        self._known: dict[GraphModule, tuple] = {}  # graph -> its loops and calls

    def size(self, size: int) -> int:
        if size < LARGE:
            return size
        base = 4096
        while base * 2 < size:
            base *= 2
        step = base // 32
        return base + max(0, -(-(size - base) // step)) * step + 1600

    def taken(self, module: GraphModule, tight: bool = False) -> Taken:
        items, vector_bytes = self._scheduled(module)
        if items is None:
            return super().taken(module)
        given = given_away(module)
        memory = _planned(items, vector_bytes, given)
        late = breaks(memory) if tight else set()
        memory.pack(tight)
        most = self._most(items, memory, items.lowered.externs, given, late)
        return Taken(most, self.size(memory.workspace))

    def _scheduled(self, module: GraphModule) -> tuple[Schedule | None, int]:
        """The loops and calls of a graph, and the width of vectors; None if it will run on NumPy,
        or is laid out when its sizes are known."""
        if module not in self._known:
            try:
                self._known[module] = None, 0
                if not any(
                    type(size) is not int
                    for node in module.graph.nodes if node.op == "placeholder"
                    for size in getattr(node.meta.get("val"), "shape", ())
                ):
                    if len(module.graph.nodes) > MOST_NODES:
                        raise GraphNotSupported
                    width = toolchain.find().vector_bytes
                    self._known[module] = schedule(lower(module)), width
            except (GraphNotSupported, CompilerNotFound, OSError):
                pass
        return self._known[module]

    def _most(
        self, items: Schedule, memory: Memory, nodes: dict, given: Collection[int], late: set[int],
    ) -> int:
        """Bytes of outputs and of what comes and goes with steps, when there are most: results of
        NumPy steps, and what these take inside; less inputs that are let go."""
        ends = step_ends(items, late)
        change = [0] * (len(ends) + 1)
        begin: dict[int, int] = {}  # last item of a step -> its first
        for n, last in enumerate(ends):
            begin.setdefault(last, n)
        for n, item in memory.needed().items():
            first = begin[ends[item]] if late and ends else 0
            change[first] += self.size(memory.buffers[n].bytes)
        used = memory.ends()
        for b in memory.buffers:
            if b.kind == "extern":
                change[b.born] += self.size(b.bytes)
            if b.dies < len(ends) and (
                b.kind == "extern" or b.kind == "input" and b.at in given and b.at not in used
            ):
                change[ends[int(max(b.dies, 0))] + 1] -= self.size(b.bytes)
            elif b.kind == "input" and used.get(b.at, math.inf) < len(ends):
                change[ends[int(used[b.at])] + 1] -= self.size(b.bytes)
        now = most = 0
        for n, item in enumerate(items.items):
            before, now = now, now + change[n]
            most = max(most, now)
            if isinstance(item, CallItem) and item.call.kind == "python":
                least = min(before, before + change[n])
                most = max(most, least + inside_of(nodes[item.call.attrs["node"]]))
        return most
