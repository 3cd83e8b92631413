"""Values to kernels: what is stored, what is recomputed, and which results share a loop nest.

Roots (results that must exist: outputs, arguments of calls, reductions) are taken in order and
put into the latest kernel that can take them; pointwise values between them are computed inline.
Then values that several kernels computed inline are looked at again: those that are dearer to
compute than to load are stored, and the schedule is made once more. Read `kernel.py` first and
`memory.py` next.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from math import prod

from .ir import SIZES, SLOW, Call, Const, Ref, Value
from .kernel import Kernel, MustStore, Root
from .lower import Lowered
from .number import likely

HEAVY = {*SLOW, "pow", "template", "div", "sqrt", "rsqrt", "recip"}
_MAX_POINTERS, _MAX_INLINE = 28, 260
_GATHER = 8  # an indirect read is so many operators to a C compiler
_LOOK_BACK = 1024  # items; what is further away is no candidate for a common loop nest


class CallItem:
    """A call among the kernels."""

    def __init__(self, call: Call, where: dict):
        self.call = call
        self.deps = {item for ref in call.args for item in where.get(ref.value, ())}
        self.position = 0

    @property
    def makes(self) -> list[str]:
        """The name of its node."""
        return [self.call.name]


class Schedule:
    """Kernels and calls in the order they run."""

    def __init__(self, lowered: Lowered, stored: set[Value]):
        self.lowered = lowered
        self.where: dict[Value, tuple] = {}
        self.items: list = []
        self.stored = stored
        self.late: set[Value] = set()  # found out while kernels were made: must be stored, too
        self.empty: list[Value] = []  # stored values without elements: they need a buffer only
        self.groups: list = []  # items that one walk over rows can do instead: `segments.py`
        self.order = reachable(lowered)
        for value in self.order:
            self._place(value)

    def __str__(self) -> str:
        """Kernels with what they compute, and calls, one per line."""
        return "\n".join(
            f"{n}: {item.call.kind} {item.call.name}" if isinstance(item, CallItem) else
            f"{n}: kernel over {list(item.dims)}: " + ", ".join(
                f"{r.how} {r.value.name}" for r in item.roots)
            for n, item in enumerate(self.items))

    def _place(self, v: Value) -> None:
        if v.numel == 0 and v.kind != "call":
            self.where[v] = ()
            if v in self.stored:
                self.empty.append(v)
        elif v.kind == "call":
            if v not in self.where:
                self._append(
                    CallItem(v.call, self.where), [o for o in v.call.outs if o is not None]
                )
        elif v.kind == "reduce":
            self._put(Root(v, v.attrs["how"], v.args[0]))
        elif v.kind == "join":
            parts = zip(v.args, v.attrs["places"])
            items = [self._put(Root(v, "store", ref, place)) for ref, place in parts]
            self.where[v] = tuple(dict.fromkeys(items))
        elif v.kind == "pointwise" and v in self.stored:
            self._put(Root(v, "store", v.ref()))

    def _append(self, item: object, values: list[Value]) -> None:
        item.position = len(self.items)
        self.items.append(item)
        for v in values:
            self.where[v] = (item,)

    def _put(self, root: Root) -> Kernel:
        """Into a kernel that can take it, or a new one; what must be stored for it comes first."""
        todo = [root]
        while True:
            try:
                kernel = self._placed(todo[-1])
            except MustStore as found:
                if found.value in self.stored:
                    raise AssertionError(f"{found.value} cannot be addressed") from None
                self.stored.add(found.value)
                self.late.add(found.value)
                todo.append(Root(found.value, "store", found.value.ref()))
                continue
            if todo.pop() is root:
                return kernel

    def _placed(self, root: Root) -> Kernel:
        for kernel in self._candidates(root):
            if kernel.join(root, self._settle):
                break
        else:
            root.level = "vec"
            kernel = Kernel(root, self.where)
            self._append(kernel, [])
        if root.value.kind != "join":
            self.where[root.value] = (kernel,)
        return kernel

    def _candidates(self, root: Root) -> list[Kernel]:
        """Kernels over the same domain that share something, those with needed reductions first."""
        size, found = prod(root.source.shape), []
        for k in islice(reversed(self.items), _LOOK_BACK):
            if (
                isinstance(k, Kernel)
                and (k.total == size or (k.columns and k.rows == size))
                and len(k.inlined) < _MAX_INLINE
            ):
                found.append(k)
                if len(found) == 12:
                    break
        if not found:
            return []
        cone = self._cone(root.source.value)
        scored = [(self._sharing(k, root, cone), k.position, k) for k in found]
        return [k for score, _, k in sorted(scored, key=lambda s: s[:2], reverse=True) if score]

    def _cone(self, v: Value) -> set[Value]:
        """What a value is made of, the nearest first: as much of it as one kernel may hold."""
        order = [v]
        found = {v}
        for x in order:
            if len(order) > _MAX_INLINE:
                break
            if x.kind == "pointwise":
                for a in x.args:
                    if isinstance(a, Ref) and a.value not in found:
                        found.add(a.value)
                        order.append(a.value)
        return {x for x in found if x.op != "const"}

    def _sharing(self, kernel: Kernel, root: Root, cone: set[Value]) -> int:
        """2: the root needs the kernel's reductions; 1: both use one value; 0: nothing shared."""
        if not cone.isdisjoint(kernel.own):
            return 2
        small = likely(root.source.value.numel) * 4 <= likely(kernel.total)
        if root.how == "full" and kernel.columns and small:
            # a sum over rows that does not come out of the rows: later users of the kernel may wait
            # for it, so it runs on its own before
            return 0
        return int(
            not cone.isdisjoint(kernel.inlined)
            or any(v in cone for v, _ in kernel.loads if v.numel > 1)
        )

    def _settle(self, kernel: Kernel) -> bool:
        """Move a kernel behind what it depends on; False when something would have to follow."""
        last = max((d.position for d in kernel.deps), default=-1)
        if kernel in kernel.deps or len({v for v, _ in kernel.loads}) > _MAX_POINTERS:
            return False
        if last < kernel.position:
            return True
        between = self.items[kernel.position + 1 : last + 1]
        if any(kernel in item.deps for item in between):
            return False
        first = kernel.position
        del self.items[first]
        self.items.insert(last, kernel)
        for i in range(first, last + 1):
            self.items[i].position = i
        return True


def reachable(lowered: Lowered) -> list[Value]:
    """Values that outputs depend on and those that are kept, in order."""
    todo = [r.value for r in lowered.outputs if isinstance(r, Ref)] + lowered.kept
    seen = set(todo)
    while todo:
        v = todo.pop()
        refs = v.call.args if v.call is not None else v.args
        for a in refs:
            if not isinstance(a, Const) and a.value not in seen:
                seen.add(a.value)
                todo.append(a.value)
    return sorted(seen, key=lambda v: v.uid)


def _needed(lowered: Lowered) -> set[Value]:
    """Pointwise values that must be stored: outputs and arguments of calls."""
    out = {r.value for r in lowered.outputs if isinstance(r, Ref)}
    for v in reachable(lowered):
        if v.call is not None:
            out.update(ref.value for ref in v.call.args)
    return {v for v in out if v.kind == "pointwise"}


def schedule(lowered: Lowered) -> Schedule:
    """The final schedule of a graph."""
    stored = _needed(lowered)
    stored |= _long_chains(lowered, stored)
    stored |= _small_in_large(lowered, stored)
    plan = _attempt(lowered, stored)
    more = _worth_storing(plan)
    if more:
        plan = _attempt(lowered, stored | more)
    if any(isinstance(item, CallItem) for item in plan.items):
        from .segments import put_together

        plan.groups = put_together(plan)
    return plan


def _attempt(lowered: Lowered, stored: set[Value]) -> Schedule:
    """A schedule; values that turned out late to be needed are known from the start next time."""
    for _ in range(_ATTEMPTS):
        plan = Schedule(lowered, stored)
        if not plan.late:
            break
    return plan


def rescheduled(lowered: Lowered, stored: set[Value]) -> Schedule:
    """The schedule of a part of a graph, of which it is known what is stored."""
    return _attempt(lowered, stored)


# ---- store or compute again -------------------------------------------------------------------

_STORE, _LOAD, _LIGHT_OP, _HEAVY_OP = 12.0, 4.0, 0.6, 8.0  # in units of bytes of memory traffic
_MANY_LEAVES, _MOST_LEAVES = 8, 64
_ATTEMPTS = 8


def _consumers(order: Iterable[Value]) -> dict[Value, list[Value]]:
    out: dict[Value, list[Value]] = {}
    for v in order:
        for a in v.args:
            if isinstance(a, Ref):
                out.setdefault(a.value, []).append(v)
    return out


def _long_chains(lowered: Lowered, stored: set[Value]) -> set[Value]:
    """Values read more than once that are made of many arrays: states of unrolled loops, residuals.

    Computing these inline again and again would make kernels (and compile time) grow without end;
    so would chains of any kind that never end: what is made of too much is stored as well.
    """
    order = reachable(lowered)
    consumers, leaves, out = _consumers(order), {}, set()
    counts: dict[Value, int] = {}  # not less than what each takes inline
    for v in order:
        if v.kind != "pointwise" or v in stored:
            leaves[v] = frozenset((v,)) if v.numel > 1 else frozenset()
            continue
        sources = {a for a in v.args if isinstance(a, Ref)}
        mine = frozenset().union(*(leaves[a.value] for a in sources))
        count = _weight(v) + sum(counts.get(a.value, 0) for a in sources)
        if count > _MAX_INLINE:  # some may have been counted twice
            count = _inline_count(v, counts)
        if (
            len(mine) >= _MANY_LEAVES and len(consumers.get(v, ())) > 1
            or len(mine) > _MOST_LEAVES
            or count > _MAX_INLINE
        ):
            out.add(v)
            mine, count = frozenset((v,)), 0
        leaves[v], counts[v] = mine, count
    return out


def _inline_count(v: Value, counts: dict[Value, int]) -> int:
    """How much is computed on the way to a value, itself included, up to those with nothing.

    A value that is looked at in several ways (shifted, turned, by an index) is computed for each.
    """
    looks: dict[tuple, int] = {}  # each way to look, from the way that its reader is looked at
    seen, todo, total = {(v, 0)}, [(v, 0)], _weight(v)
    while todo and total <= _MAX_INLINE:
        reader, look = todo.pop()
        for n, a in enumerate(reader.args):
            if isinstance(a, Ref) and counts.get(a.value, 0):
                way = look
                if reader.op == "gather" and n == 0:
                    way = looks.setdefault((look, reader), len(looks) + 1)
                elif not a.plain or a.shape != a.value.shape:
                    way = looks.setdefault((look, a.shape, a[2:], a.value.shape), len(looks) + 1)
                if (a.value, way) not in seen:
                    seen.add((a.value, way))
                    todo.append((a.value, way))
                    total += _weight(a.value)
    return total


def _weight(v: Value) -> int:
    return _GATHER if v.op == "gather" else 1


def _small_in_large(lowered: Lowered, stored: set[Value]) -> set[Value]:
    """Small values that a larger loop repeats: computed once and read, not once per repetition.

    Values that come out of row reductions are left alone: a kernel computes them once per row.
    """
    order = reachable(lowered)
    consumers, rows, out = _consumers(order), set(), set()
    for v in order:
        inputs = [a.value for a in v.args if isinstance(a, Ref)]
        if (v.kind == "reduce" and v.attrs["how"] == "row") or (
            v.kind == "pointwise" and any(a in rows for a in inputs)
        ):
            rows.add(v)
        if (
            v.kind != "pointwise"
            or v in stored
            or v in rows
            or v.numel <= 1
            or v.op in ("const", "iota", "gather", "copy", "cast")
            or not inputs
        ):
            continue
        for user in consumers.get(v, ()):
            size = user.numel if user.kind != "reduce" else prod(user.args[0].shape)
            if likely(size) >= 2 * likely(v.numel):
                out.add(v)
                break
    return out


def _worth_storing(plan: Schedule) -> set[Value]:
    """Values that several kernels compute inline and that are cheaper to store once."""
    users: dict[Value, list[Kernel]] = {}
    makers: dict[Value, list[Kernel]] = {}  # who computes a value, inline or as a result
    readers: dict[Kernel, dict] = {}
    for kernel in plan.items:
        if isinstance(kernel, Kernel):
            for v in (*kernel.inlined, *(r.value for r in kernel.roots)):
                makers.setdefault(v, []).append(kernel)
            for v in kernel.inlined:
                if v not in plan.stored and v.op not in ("const", "iota", "gather"):
                    users.setdefault(v, []).append(kernel)
    consumers, out = _consumers(plan.order), set()
    for v in sorted((v for v, ks in users.items() if len(ks) > 1), key=lambda v: v.uid):
        first, *later = sorted(users[v], key=lambda k: k.position)
        if likely(v.numel) < likely(first.total) // 4:
            continue
        others = {*later}
        if all(
            u in first.inlined or others.isdisjoint(makers.get(u, ()))
            for u in consumers.get(v, ())
        ):
            continue  # a later value on the same way will be the one to look at
        gain = 0.0
        for kernel in later:
            if kernel not in readers:
                readers[kernel] = _consumers(kernel.inlined)
            gain += _extra(v, kernel, readers[kernel], out) - _LOAD
            if gain > _STORE:
                out.add(v)
                break
    return out


def _extra(v: Value, kernel: Kernel, readers: dict, stored: set[Value]) -> float:
    """Cost of computing v inside a kernel: operations, and loads that nothing else there needs."""
    mine, todo = {v}, [v]
    while todo and len(mine) < 48:
        for a in todo.pop().args:
            if isinstance(a, Ref) and a.value not in mine:
                mine.add(a.value)
                if a.value in kernel.inlined and a.value not in stored:
                    todo.append(a.value)
    cost = 0.0
    for x in mine:
        if x is not v and any(u not in mine for u in readers.get(x, ())):
            continue  # needed there anyway
        if x in kernel.inlined and x not in stored:
            cost += _HEAVY_OP if x.op in HEAVY else _LIGHT_OP
        else:
            cost += SIZES.get(x.dtype, 8) * min(1.0, likely(x.numel) / max(likely(v.numel), 1))
    return cost
