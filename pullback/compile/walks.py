"""The walks of a kernel over a row, and what one of them keeps for the next.

A row is walked once for each reduction that later values wait for (`nest.py`). A value that two
walks need is computed in both, or kept: the first walk that computes it stores it in scratch memory
and the later ones load it. Who stores and who loads what is decided here, before any text is
written; `emit.py` asks this plan alone, and `sound.py` checks what came of it.
"""

from __future__ import annotations

from math import prod

from .ir import SIZES
from .kernel import Kernel, Root
from .nest import Key, Nest
from .number import rounded_up
from .schedule import HEAVY

_MAX_SCRATCH = 512 << 10


class Walks:
    """What each walk produces, stores and loads; all lists have an entry per walk."""

    def __init__(self, kernel: Kernel, nest: Nest):
        self.kernel, self.nest = kernel, nest
        count = 1 + max((nest.root_pass(r) for r in kernel.roots), default=0)
        self.roots: list[list[Root]] = [[] for _ in range(count)]  # an element per column
        self.late: list[list[Root]] = [[] for _ in range(count)]  # one per row, after the walk
        self.stores: list[list[Key]] = [[] for _ in range(count)]
        self.loads: list[set[Key]] = [set() for _ in range(count)]
        for root in kernel.roots:
            (self.roots if self._scope(root) == 2 else self.late)[nest.root_pass(root)].append(root)
        if not kernel.mid:
            self._plan()

    def __len__(self) -> int:
        return len(self.roots)

    def _scope(self, root: Root) -> int:
        """Where a root's work happens: 2 in the walk, 1 per row, 0 once."""
        if root.how == "store":
            return self.nest.access_level(root.target)
        return 2 if root.level == "vec" else 1

    @property
    def padded(self) -> int:
        """Columns of a row in scratch memory, the last loop rounded up to whole vectors."""
        inner = self.nest.inner
        if self.nest.longest:
            return rounded_up(self.nest.longest, self.nest.lanes)
        return prod(inner[:-1]) * rounded_up(inner[-1], self.nest.lanes)

    def _plan(self) -> None:
        """Keep what a later walk would have to compute again at some cost, as far as there is room.

        It is stored by the first walk that *needs* it, not by the first that could compute it: what
        nobody asks for there is not computed there.
        """
        made: dict[Key, int] = {}  # walk that first computes it
        kept: set[Key] = set()
        room = _MAX_SCRATCH
        for n, roots in enumerate(self.roots):
            seen: set[Key] = set()
            todo = [(r.source.value, r.access) for r in reversed(roots)]
            while todo:
                key = todo.pop()
                v = key[0]
                if key in seen or v in self.kernel.own or self.nest.level(key) < 2:
                    continue
                seen.add(key)
                again = key not in kept and key in made and self._dear(key, kept)
                if again:
                    size = self.padded * (4 if v.dtype in "bu" else SIZES[v.dtype])
                    if size <= room:
                        room -= size
                        kept.add(key)
                        self.stores[made[key]].append(key)
                if key in kept:
                    self.loads[n].add(key)
                    continue
                made.setdefault(key, n)
                todo += reversed(self.nest.needs(key))

    def _dear(self, key: Key, kept: set[Key]) -> bool:
        """Whether computing a value again costs more than keeping it in the nearest cache."""
        if key in self.kernel.loads or key[0].op in ("const", "iota"):
            return False
        todo, seen, heavy, light = [key], set(), 0, 0
        while todo:
            k = todo.pop()
            if k in seen or self.nest.level(k) < 2:
                continue
            seen.add(k)
            if k in self.kernel.loads or k[0] in self.kernel.own or k in kept:
                continue
            heavy += k[0].op in HEAVY
            light += 1
            todo += self.nest.args(k)
        return heavy > 0 or light > 6
