"""One loop nest: its loops, what it stores and reduces, and every value it needs on the way.

A kernel runs over `dims`, split into rows (outer, shared among threads) and columns (inner,
vectors):

    store      an element per iteration (or per row)
    full       everything into one number
    row        each row into one number, usable by later passes over the same row
    col        each column into one number (partial sums per block of rows, added in order)
    mid        like col, for a block of dimensions in the middle; always alone in its kernel

Pointwise values on the way are computed inline; values stored by other kernels are loaded. Read
`schedule.py` for who is put together with whom, `emit.py` for the C text.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from math import prod

from .ir import Const, Ref, Split, Value, compose, contiguous, refine

_MOST = 512  # elements that results may need in order to share a kernel


class NoFuse(Exception):
    """This root cannot join this kernel."""


class MustStore(Exception):
    """A pointwise value is addressed in a way that cannot be followed: store it first."""

    def __init__(self, value: Value):
        self.value = value


@dataclass(eq=False)
class Root:
    """Something a kernel produces."""

    value: Value  # what is produced
    how: str  # store | full | row | col | mid
    source: Ref  # what is stored or reduced, over the domain
    place: tuple[int, tuple] | None = (
        None  # store: offset and strides in the value, if not in order
    )
    level: str = "vec"  # vec: an element per iteration; row: an element per row
    access: tuple = ()  # of the source's value, from the kernel's loops
    target: tuple = ()  # store: of the produced value

    @property
    def columns(self) -> int | None:
        return self.value.attrs["columns"] if self.how in ("row", "col", "mid") else None


def dense(sizes: list[int]) -> tuple[int, ...]:
    """Row-major strides of loops."""
    return contiguous(tuple(sizes))


def loops_of(shape: tuple[int, ...]) -> list[int]:
    return [n for n in shape if n != 1] or [1]


class Kernel:
    """See the module's text."""

    def __init__(self, root: Root, where: dict):
        self.where = where  # value -> items that store it
        self.dims = loops_of(root.source.shape)
        self.total = prod(self.dims)
        self.columns = root.columns
        self.mid = root.how == "mid"
        self.roots: list[Root] = []
        self.virtual: list[tuple[Value, tuple, int, int, int]] = []  # index, access, size, div, mod
        self.memo: dict[tuple, tuple] = {}
        self.loads: dict[tuple[Value, tuple], None] = {}
        self.inlined: dict[Value, None] = {}
        self.deps: set = set()
        self.own: dict[Value, Root] = {}
        self.checks: dict[tuple, int] = {}  # virtual loop -> number of its check
        self.position = 0
        self._adopt(root, self.dims, self.columns)

    @property
    def makes(self) -> list[str]:
        """The names of its results."""
        return [root.value.name for root in self.roots]

    # ---- loops ---------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        return self.total // self.columns if self.columns else self.total

    def inner(self) -> int:
        """How many of the last loops make up a row."""
        if not self.columns:
            return 0
        n, k = 1, 0
        while n < self.columns:
            k += 1
            n *= self.dims[-k]
        return k

    def sizes(self) -> list[int]:
        return self.dims + [v[2] for v in self.virtual]

    def _identity(self, level: str) -> tuple:
        """Loops to element numbers: of the whole domain, or of the rows."""
        if level == "vec":
            return (0, *dense(self.dims))
        k = self.inner()
        outer = self.dims[: len(self.dims) - k]
        return (0, *dense(outer), *([0] * k))

    # ---- joining -------------------------------------------------------------------------------

    def fits(self, root: Root) -> tuple[str, list[int], int | None] | None:
        """Level, loops and row length after joining; None when the domains do not match."""
        if self.mid or root.how == "mid":
            return None
        size, columns = prod(root.source.shape), self.columns
        if size == self.total:
            if root.columns and columns and root.columns != columns:
                return None
            columns = columns or root.columns
            dims = refine(self.dims, loops_of(root.source.shape))
            if dims is not None and columns and columns not in (1, self.total):
                dims = refine(dims, [self.total // columns, columns])
            return None if dims is None else ("vec", dims, columns)
        if columns and size == self.rows and root.how in ("store", "full"):
            k = self.inner()
            outer = refine(self.dims[: len(self.dims) - k] or [1], loops_of(root.source.shape))
            if outer is None:
                return None
            return "row", [n for n in outer if n != 1] + self.dims[len(self.dims) - k :], columns
        return None

    def join(self, root: Root, settle: Callable[[Kernel], bool]) -> bool:
        """Add a root, or leave the kernel as it was; `settle` has the last word."""
        fit = self.fits(root)
        if fit is None:
            return False
        root.level, dims, columns = fit
        saved = (
            self.dims,
            self.columns,
            dict(self.memo),
            dict(self.loads),
            dict(self.inlined),
            set(self.deps),
            list(self.virtual),
            dict(self.own),
            dict(self.checks),
            list(self.roots),
        )
        kept = [(r, r.access, r.target) for r in self.roots]
        try:
            self._adopt(root, dims, columns)
            if settle(self):
                return True
            raise NoFuse
        except (NoFuse, MustStore) as why:
            (
                self.dims,
                self.columns,
                self.memo,
                self.loads,
                self.inlined,
                self.deps,
                self.virtual,
                self.own,
                self.checks,
                self.roots,
            ) = saved
            for r, access, target in kept:
                r.access, r.target = access, target
            if isinstance(why, MustStore):
                raise
            return False

    def _adopt(self, root: Root, dims: list[int], columns: int | None) -> None:
        fresh = [root]
        again = dims != self.dims
        self.dims, self.columns = list(dims), columns
        if root.how != "store":
            self.own[root.value] = root
        self.roots.append(root)
        while True:
            try:
                if again:
                    self.memo, self.loads, self.inlined, self.virtual = {}, {}, {}, []
                    self.deps, self.checks = set(), {}
                    fresh = self.roots
                for r in fresh:
                    self._enter(r)
                return
            except Split as split:
                again = True
                if split.dim >= len(self.dims):
                    raise self._elsewhere(root.source.value) from None
                n = self.dims[split.dim]
                self.dims[split.dim : split.dim + 1] = [n // split.inner, split.inner]

    def _enter(self, root: Root) -> None:
        identity = self._identity(root.level)
        shape, sizes = root.source.shape, self.sizes()
        access = compose(identity, sizes, shape, root.source.offset, root.source.strides)
        if access is None:
            raise NoFuse
        root.access = access
        if root.how == "store":
            root.target = identity
            if root.place is not None:
                root.target = compose(identity, sizes, shape, *root.place)
                if root.target is None:
                    raise NoFuse
        self.walk(root.source.value, access)

    # ---- following values ----------------------------------------------------------------------

    def walk(self, v: Value, access: tuple) -> None:
        """Everything needed for an element of a value: loads, inline values, own reductions.

        Visits ask for others before they go on; they wait here, not on Python's stack.
        """
        waiting, raised = [self._visit(v, access)], None
        while waiting:
            try:
                asked = waiting[-1].throw(raised) if raised else next(waiting[-1])
                raised = None
                if asked not in self.memo:
                    if len(self.memo) > _MOST and len(self.roots) > 1:
                        raise NoFuse  # what it computes in several ways is stored for others
                    waiting.append(self._visit(*asked))
            except StopIteration:
                waiting.pop()
                raised = None
            except NoFuse:
                raise
            except (MustStore, Split) as error:
                waiting.pop()
                raised = error
        if raised:
            raise raised

    def _visit(self, v: Value, access: tuple) -> Iterator[tuple[Value, tuple]]:
        key = (v, access)
        if key in self.memo:
            return
        if v in self.own:
            self._own_row(v, access)
            self.memo[key] = ()
            return
        holders = self.where.get(v)
        if v.kind != "pointwise" or (holders is not None and self not in holders):
            if v.kind == "reduce" and holders is None:
                raise NoFuse
            self.memo[key] = ()
            self.loads[key] = None
            if holders:
                self.deps.update(holders)
            return
        self.inlined[v] = None
        sizes, accesses = self.sizes(), []
        for i, ref in enumerate(v.args):
            if isinstance(ref, Const):
                accesses.append(None)
                continue
            if v.op == "gather" and i == 0:
                accesses.append(None)
                continue
            inner = compose(access, sizes, v.shape, ref.offset, ref.strides)
            if inner is None:
                raise self._elsewhere(v)
            while len(inner) > len(self.dims) + 1 and not inner[-1]:
                inner = inner[:-1]  # virtual loops that no longer matter: one name per element
            accesses.append(inner)
            yield ref.value, inner
        if v.op == "gather":
            accesses[0] = yield from self._gathered(v, access, accesses)
        self.memo[key] = tuple(accesses)

    def _gathered(
        self, v: Value, access: tuple, accesses: list
    ) -> Generator[tuple[Value, tuple], None, tuple]:
        """The access of an indirect read: each index is one more, virtual, loop."""
        base = v.args[0]
        inner = compose(access, self.sizes(), v.shape, base.offset, base.strides)
        if inner is None:
            raise self._elsewhere(v)
        strides = list(inner)
        for i, (stride, size) in enumerate(zip(v.attrs["strides"], v.attrs["sizes"]), 1):
            key = (v.args[i].value, accesses[i], size, v.attrs["wrap"])
            if key not in self.virtual:
                self.virtual.append(key)
            number = v.attrs["checks"][i - 1]
            self.checks[key] = min(number, self.checks.get(key, number))
            at = 1 + len(self.dims) + self.virtual.index(key)
            strides += [0] * (at + 1 - len(strides))
            strides[at] += stride
        try:
            yield base.value, tuple(strides)
        except Split as split:
            if split.dim >= len(self.dims):
                raise self._elsewhere(base.value) from None
            raise
        return tuple(strides)

    def _elsewhere(self, v: Value) -> Exception:
        """What to raise for a value that cannot be computed inline: if this kernel stores it,
        another one has to load it; else it must be stored.
        """
        return NoFuse() if self in self.where.get(v, ()) else MustStore(v)

    def _own_row(self, v: Value, access: tuple) -> None:
        """A reduction of this kernel may only be read along its own rows."""
        if self.own[v].how != "row":
            raise NoFuse
        row = self._identity("row")
        width = max(len(row), len(access))
        if access + (0,) * (width - len(access)) != row + (0,) * (width - len(row)):
            raise NoFuse
