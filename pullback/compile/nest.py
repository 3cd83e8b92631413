"""The loops of a kernel made ready for writing: merged dimensions, levels, passes and chunks.

Neighbouring loops that every access walks as one are merged. Each value gets a *level* (2:
changes within a row, 1: once per row, 0: once) and a *pass*: a row is walked once for each
reduction that later values of the row wait for. Read `walks.py` next.
"""

from __future__ import annotations

from math import prod

from .expressions import COMPARE
from .ir import SIZES, Const, ceil_div
from .kernel import Kernel, Root
from .number import choose, compared, largest, varies
from .schedule import HEAVY

Key = "tuple[Value, tuple]"


class Nest:
    """See the module's text."""

    longest = 0  # columns of a row, where rows differ in length

    def __init__(self, kernel: Kernel, vector_bytes: int):
        self.kernel = kernel
        self._merge()
        self._levels: dict = {}
        self._passes: dict = {}
        self.lanes = vector_bytes // self._widest()
        self._chunks()
        for key in kernel.memo:  # what a value is made of comes before it: nothing is far to look
            self.pass_of(key)

    # ---- merging -------------------------------------------------------------------------------

    def _accesses(self) -> list[tuple]:
        k = self.kernel
        found = [a for _, a in k.loads]
        found += [a for v, a in k.memo if v.op == "iota"]
        found += [r.target for r in k.roots if r.how == "store"]
        found += [v[1] for v in k.virtual]
        return list(dict.fromkeys(found))

    def _merge(self) -> None:
        """Groups of loops; `last[g]` is the innermost original loop of group g."""
        k = self.kernel
        dims, n = k.dims, len(k.dims)
        inner = k.inner() if k.columns else 0
        cuts = {n - inner} if k.columns else set()
        if k.mid:
            root = k.roots[0]
            run, at = 1, n - inner
            while run < root.value.attrs["count"]:
                at -= 1
                run *= dims[at]
            cuts.add(at)
            self._mid_at = at
        accesses = self._accesses()
        groups: list[list[int]] = []
        for j in range(n):
            if (
                groups
                and j not in cuts
                and all(a[j] == a[j + 1] * dims[j] for a in accesses if len(a) > j + 1)
            ):
                groups[-1].append(j)
            else:
                groups.append([j])
        self.sizes = [prod(dims[j] for j in g) for g in groups]
        self.last = [g[-1] for g in groups]
        first_inner = n - inner if k.columns else groups[-1][0]
        self.inner_count = sum(1 for g in groups if g[0] >= first_inner)
        self.mid_count = (
            sum(1 for g in groups if self._mid_at <= g[0] < first_inner) if k.mid else 0
        )
        self.outer_count = len(groups) - self.inner_count - self.mid_count

    def strides(self, access: tuple) -> list[int]:
        """Strides of the merged loops; loops of one iteration count as unmoving."""
        return [access[1 + j] if n > 1 else 0 for j, n in zip(self.last, self.sizes)]

    def virtual(self, access: tuple) -> list[tuple[int, int]]:
        """Indirect parts of an access: number of the virtual loop, stride."""
        rest = access[1 + len(self.kernel.dims) :]
        return [(i, s) for i, s in enumerate(rest) if s]

    @property
    def outer(self) -> list[int]:
        return self.sizes[: self.outer_count]

    @property
    def middle(self) -> list[int]:
        return self.sizes[self.outer_count : self.outer_count + self.mid_count]

    @property
    def inner(self) -> list[int]:
        return self.sizes[self.outer_count + self.mid_count :]

    # ---- levels and passes ---------------------------------------------------------------------

    def access_level(self, access: tuple) -> int:
        strides = self.strides(access)
        level = 0
        if any(strides[self.outer_count :]):
            level = 2
        elif any(strides[: self.outer_count]):
            level = 1
        for i, _ in self.virtual(access):
            v, a, *_ = self.kernel.virtual[i]
            level = max(level, self.level((v, a)))
        return level

    def level(self, key: Key) -> int:
        found = self._levels.get(key)
        if found is None:
            v, access = key
            if v in self.kernel.own:
                found = 1
            elif key in self.kernel.loads or v.op == "iota":
                found = self.access_level(access)
            elif v.op == "gather":
                found = max(self.level(k) for k in self.args(key)[:1])
            else:
                found = max((self.level(k) for k in self.args(key)), default=0)
            self._levels[key] = found
        return found

    def args(self, key: Key) -> list[Key]:
        """Values that an inline value is made of."""
        v, _ = key
        accesses = self.kernel.memo[key]
        return [(a.value, acc) for a, acc in zip(v.args, accesses) if not isinstance(a, Const)]

    def needs(self, key: Key) -> list[Key]:
        """What has to be there before a value is computed or loaded: its parts, or indices."""
        v, access = key
        if v in self.kernel.own:
            return []
        if key in self.kernel.loads or v.op == "iota":
            return [self.kernel.virtual[i][:2] for i, _ in self.virtual(access)]
        return self.args(key)[:1] if v.op == "gather" else self.args(key)

    def pass_of(self, key: Key) -> int:
        """The first walk over the row in which a value can be computed."""
        found = self._passes.get(key)
        if found is None:
            v, access = key
            if v in self.kernel.own:
                root = self.kernel.own[v]
                found = self.pass_of((root.source.value, root.access)) + 1
            else:
                found = 0
                if key not in self.kernel.loads:
                    found = max((self.pass_of(k) for k in self.args(key)), default=0)
                for i, _ in self.virtual(access):
                    found = max(found, self.pass_of(self.kernel.virtual[i][:2]))
            self._passes[key] = found
        return found

    def root_pass(self, root: Root) -> int:
        return self.pass_of((root.source.value, root.access))

    def _widest(self) -> int:
        """Bytes of the widest element that lives in vectors here; at least 4."""
        widest = 4
        for key in self.kernel.memo:
            v, _ = key
            if v.op in ("const", "iota") or v in self.kernel.own or self.level(key) < 2:
                continue
            widest = max(widest, SIZES[v.dtype])
            if v.kind == "pointwise" and key not in self.kernel.loads and not self.narrow(key):
                widest = max(widest, SIZES[v.ct])
        for root in self.kernel.roots:
            widest = max(widest, SIZES[root.value.dtype] if root.level == "vec" else 4)
        return widest

    def narrow(self, key: Key) -> bool:
        """A comparison of positions that can be made in 32 bits, to keep more lanes."""
        v, _ = key
        return (
            v.op in COMPARE
            and v.ct == "l"
            and all(
                k[0].op == "iota" and k[0].numel < 2**31 and k[0].dtype == "l"
                for k in self.args(key)
                if self.level(k) == 2
            )
        )

    # ---- chunks --------------------------------------------------------------------------------

    def _chunks(self) -> None:
        """Fixed pieces of work: their number depends on shapes only, so sums never change."""
        k = self.kernel
        rows = prod(self.outer)
        width = self.inner[-1]
        self.block, blocks = 0, 1
        if k.mid:
            self.block = 4 * self.lanes
            blocks = ceil_div(width, self.block)
        elif not k.columns:
            wide = compared(width, ">", 8192)
            self.block = choose(wide, 4096, width)
            blocks = choose(wide, ceil_div(width, 4096), 1)
        self.units = rows * blocks
        self.blocks = blocks
        each = largest(prod(self.inner) * prod(self.middle) // blocks, 1)
        per = largest(1, 4096 // each)
        if any(r.how == "col" for r in k.roots):
            per = largest(per, ceil_div(self.units, 32))
        self.per_chunk = per
        self.chunks = ceil_div(self.units, per)

    @property
    def split(self) -> bool:
        """May a row be walked in several blocks?"""
        return varies(self.blocks) or self.blocks > 1

    def cost(self) -> float:
        """Rough nanoseconds on one thread, to decide about threads."""
        per = 0.0
        for v, access in self.kernel.loads:
            if self.access_level(access) == 2:
                per += 0.05 * SIZES[v.dtype]
        for v in self.kernel.inlined:
            per += 0.6 if v.op in HEAVY else 0.04
        for root in self.kernel.roots:
            if root.how == "store" and root.level == "vec":
                per += 0.1 * SIZES[root.value.dtype]
        return per * self.kernel.total + 20.0 * prod(self.outer)
