"""Work on the entries of rows that is put together: one walk over the rows does it all.

Sums and extremes of segments, softmax over them, and products with sparse matrices are calls with
kernels between them, each of which goes through all entries.  Where these have their rows in
common, all of it is lowered once more, for an array whose rows differ in length: there an index by
the rows is a number per row, a sum of a segment is one along a row, and `schedule.py` makes one
nest of loops of it as of any such array.  Products are done a row at a time, before and after the
walks over a row.

This needs entries in the order of their rows, which is looked at in every call: else the calls and
kernels run that are there anyway.  So it is enough to suppose that two indices are the same.
`emit_rows.py` is next.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ..symbolic.env import ShapeEnv, Source
from .extent import Domain, Extent
from .ir import Const, Ref, Value
from .kernel import Kernel
from .number import NotGeneral, Number

if TYPE_CHECKING:
    from .schedule import CallItem, Schedule

Place = tuple[Value, int]  # an array of integers in another one, and where it begins
LONGEST = 2048  # entries of a row that is kept in scratch memory
_FAR = 256  # items; what is further away does not come together
_NO_ROW = -(2**62)  # of scattered rows: none is left out


class NotTogether(Exception):
    """A value cannot be computed along rows."""


class _Sizes(Domain):
    """How many rows there are, and how long one is: names in the C text."""

    def __init__(self) -> None:
        env = ShapeEnv(duck_shape=False)
        made = [env.size(hint, Source(name), duck=False).node.expr
                for name, hint in (("rows", 4096), ("length", 64))]
        super().__init__(env, dict(zip(map(str, made), (4096, 64))))
        self.rows, self.length = [Extent(self, e) for e in made]

    def place(self, number: Number) -> Any:
        if number in (self.rows, self.length):
            return "_rows" if number == self.rows else "_length"
        raise NotGeneral(f"{number!r} is written down")


@dataclass(eq=False)
class Group:
    """Items of a schedule, one behind the other, and what does the same in one walk."""

    items: list
    kernels: list[Kernel]
    index: Place  # the row of each entry
    same: list[Place]  # supposed to be the same
    inside: list[tuple[Place, Any]]  # other indices, and the sizes that they are below
    checked: set[Place]  # the latter, in leaves of the kernels
    count: Any  # of entries
    rows: Any
    slots: dict[Value, Value]  # value of the kernels -> value of the graph
    before: dict[Kernel, list] = field(default_factory=dict)  # (call, its result in the kernels)
    after: dict[Kernel, list] = field(default_factory=dict)  # (call, its operand in the kernels)

    @property
    def first(self) -> int:
        return self.items[0].position

    @property
    def last(self) -> int:
        return self.items[-1].position

    @property
    def asks(self) -> frozenset:
        """What has to be true of indices in a call."""
        return frozenset([(self.index, self.count, self.rows), *self.same, *self.inside])

    @property
    def whole(self) -> bool:
        """Do its items still stand one behind the other?"""
        return all(item.position == self.first + n for n, item in enumerate(self.items))


def _flat(v: Value) -> int | None:
    """The dim of a value that has but one."""
    dims = [d for d, n in enumerate(v.shape) if n != 1]
    return dims[0] if len(dims) == 1 else None


def place(ref: Ref) -> Place | None:
    """Where integers are, looked at through copies; None where they do not lie in order."""
    at = [d for d, n in enumerate(ref.shape) if n != 1]
    if ref.dtype != "l" or len(at) != 1 or ref.strides[at[0]] != 1:
        return None
    v = ref.value
    if v.kind == "pointwise" and v.op == "copy" and ref.plain:
        return place(v.args[0])
    return None if v.kind == "pointwise" and v.op == "const" else (v, ref.offset)


def _segments(item: Any) -> tuple[Place, Any, Any] | None:
    """(The rows of entries, how many there are of them and of rows) of a call that is for rows."""
    call = getattr(item, "call", None)
    if call is None:
        return None
    a = call.attrs
    numbers = call.kind == "scatter_rows" and a["width"] == 1 and a["skip"] == _NO_ROW
    if numbers or call.kind == "scatter_extreme":
        count, rows = a["n"], a["rows"]
    elif call.kind in ("spmm", "sddmm"):
        count, rows = a["count"], a["size"]
    else:
        return None
    index = place(call.args[0])
    return None if index is None else (index, count, rows)


class Along:
    """Values of a graph as those of rows that differ in length."""

    def __init__(self, plan: Schedule, index: Place, count: Any, rows: Any):
        self.plan, self.index, self.count, self.rows = plan, index, count, rows
        # those that are supposed to be the rows, or the columns
        self.names, self.others = {index: None}, set()
        self.sizes = _Sizes()
        self.shape = self.sizes.rows, self.sizes.length
        self.members: list = []
        self.memo: dict[Value, Ref] = {}
        self.leaves: dict[Value, Value] = {}
        self.inside: dict[tuple, None] = {}
        self.before: dict[CallItem, Value] = {}
        self.after: dict[CallItem, Value] = {}

    # ---- what can be a member ------------------------------------------------------------------

    def takes(self, item: Any) -> bool:
        """Put an item with the others, if it is for these rows."""
        self.members.append(item)
        try:
            if isinstance(item, Kernel):
                if item.total != self.count and item.total != self.rows or any(
                        r.how != "store" or r.place is not None or r.level != "vec"
                        for r in item.roots):
                    raise NotTogether
                for root in item.roots:
                    self.of(root.value)
            else:
                self._call(item)
            return True
        except (NotTogether, NotGeneral):
            self.members.pop()
            return False

    def _call(self, item: Any) -> None:
        found = _segments(item)
        if found is None or not (found[1] == self.count and found[2] == self.rows):
            raise NotTogether
        call, index = item.call, found[0]
        if self.is_inside(index[0]):
            raise NotTogether
        if call.kind in ("spmm", "sddmm"):
            self._product(item, index)
        elif index not in self.names:
            raise NotTogether
        else:
            self.of(call.outs[0])

    def _product(self, item: Any, index: Place) -> None:
        call = item.call
        cols = place(call.args[1])
        if cols is None or index in self.others or cols in self.names or self.is_inside(cols[0]):
            raise NotTogether
        dense = call.args[2:] if call.kind == "sddmm" else call.args[3:]
        if any(self.is_inside(ref.value) or not ref.plain for ref in dense):
            raise NotTogether
        if call.kind == "spmm":
            if not self.is_inside(call.args[2].value) or not call.args[2].plain:
                raise NotTogether
            self.after[item] = self.whole(call.args[2].value)
        else:
            self.before[item] = self.leaf(call.outs[0], self.shape, True)
            self.memo[call.outs[0]] = self._plain(self.before[item], True)
        self.names[index] = None
        self.others.add(cols)
        self.inside[cols, call.attrs["depth"]] = None

    def is_inside(self, v: Value) -> bool:
        """Is a value made by a member?"""
        return any(item in self.members for item in self.plan.where.get(v, ()))

    def _has(self, v: Value, n: Any) -> bool:
        return _flat(v) is not None and v.numel == n

    def _plain(self, v: Value, entries: bool) -> Ref:
        return Ref(v, self.shape, 0, (self.sizes.length, 1) if entries else (1, 0))

    # ---- values --------------------------------------------------------------------------------

    def leaf(self, v: Value, shape: tuple, own: bool = False) -> Value:
        """What others have made, to be read; `own`: a member has, row by row."""
        if v not in self.leaves:
            unmade = v.kind == "pointwise" and v not in self.plan.where
            if unmade or self.is_inside(v) and not own:
                raise NotTogether
            self.leaves[v] = Value("input", v.name, shape, v.dtype)
        return self.leaves[v]

    def of(self, v: Value) -> Ref:
        """All elements of a value that has one for each entry, or for each row."""
        for x in self._below(v) if v not in self.memo else ():
            entries = self._has(x, self.count)
            if entries or self._has(x, self.rows):
                self.memo[x] = self._made(x, entries)
            elif x is v:
                raise NotTogether
        return self.memo[v]

    def _below(self, v: Value) -> list[Value]:
        """What is computed on the way to a value, and itself, in order: chains may be long."""
        found, todo = {v}, [v]
        while todo:
            x = todo.pop()
            if x.kind == "pointwise" and (x not in self.plan.where or self.is_inside(x)):
                new = {a.value for a in x.args if isinstance(a, Ref)} - found - self.memo.keys()
                new = {a for a in new if a.kind == "pointwise"}
                found |= new
                todo += new
        return sorted(found, key=lambda x: x.uid)

    def whole(self, v: Value) -> Value:
        """The same as a value that can be stored."""
        ref, entries = self.of(v), self._has(v, self.count)
        shape = self.shape if entries else self.shape[:1]
        if ref.value.shape == shape and ref.value.kind != "input":
            return ref.value
        look = Ref(ref.value, shape, ref.offset, ref.strides[:len(shape)])
        made = Value("pointwise", v.name, shape, v.dtype, "copy", (look,))
        self.memo[v] = self._plain(made, entries)
        return made

    def _made(self, v: Value, entries: bool) -> Ref:
        shape = self.shape if entries else self.shape[:1]
        holders = self.plan.where.get(v)
        if v.op == "const" and v.kind == "pointwise":
            made = Value("pointwise", v.name, shape, v.dtype, "const", (), v.ct, v.attrs)
        elif v.kind == "call" and self.is_inside(v):
            made = self._reduced(v)
        elif v.kind == "pointwise" and (holders is None or self.is_inside(v)):
            if v.op == "gather" and entries and len(v.args) == 2 and self._by_rows(v.args[1], v):
                return self._row_of(v)
            made = self._pointwise(v, shape)
        else:
            made = self.leaf(v, shape)
        return self._plain(made, entries)

    def _pointwise(self, v: Value, shape: tuple) -> Value:
        if v.op == "iota" and v.numel != self.count:
            raise NotTogether
        at = _flat(v)
        args = [a if isinstance(a, Const) else self._arg(a, at, shape) for a in v.args]
        if v.op == "gather":
            if self.is_inside(v.args[0].value):
                raise NotTogether
            for ref, size in zip(v.args[1:], v.attrs["sizes"]):
                index = place(ref)
                if index is not None and index[0] in self.leaves:
                    self.inside[index, size] = None
        return Value("pointwise", v.name, shape, v.dtype, v.op, tuple(args), v.ct, v.attrs)

    def _arg(self, a: Ref, at: int, shape: tuple) -> Ref:
        step = a.strides[at]
        if step == 1 and a.offset == 0 and _flat(a.value) is not None and (
                a.value.numel == a.shape[at]):
            made = self.of(a.value)
            return Ref(made.value, shape, made.offset, made.strides[:len(shape)])
        v = a.value
        if v.kind == "pointwise" and v.op == "const":
            made = Value("pointwise", v.name, shape, v.dtype, "const", (), v.ct, v.attrs)
            return made.ref()
        if self.is_inside(v):
            raise NotTogether
        if step == 0 and v.kind == "pointwise" and v not in self.plan.where:
            raise NotTogether
        step_of_row = step if len(shape) == 1 else self.sizes.length * step
        return Ref(self.leaf(v, v.shape), shape, a.offset, (step_of_row, step)[:len(shape)])

    def _by_rows(self, index: Ref, v: Value) -> bool:
        return place(index) in self.names and v.attrs["sizes"][0] == self.rows

    def _row_of(self, v: Value) -> Ref:
        """An index by the rows: a number for each row."""
        base, step = v.args[0], v.attrs["strides"][0]
        if step == 1 and base.offset == 0 and self._has(base.value, self.rows):
            return self.of(base.value)
        return Ref(self.leaf(base.value, base.value.shape), self.shape, base.offset, (step, 0))

    def _reduced(self, v: Value) -> Value:
        """What a call makes of segments."""
        call = v.call
        if call.kind == "spmm" or not call.args[1].plain:
            raise NotTogether  # there is a row of it, no number
        highest = call.attrs.get("highest")
        op = "sum" if highest is None else "max" if highest else "min"
        source = self.of(call.args[1].value)
        made = self._reduction(op, v, source)
        if len(call.args) < 3:
            return made
        start = self.of(call.args[2].value)
        if not call.args[2].plain:
            raise NotTogether
        rows = [Ref(x, made.shape, 0, (1,)) for x in (start.value, made)]
        if call.attrs.get("own", 1):
            return Value("pointwise", v.name, made.shape, v.dtype, "add" if op == "sum" else op,
                         tuple(rows))
        each = [Value("pointwise", v.name, self.shape, "b", test, (source, source), v.dtype).ref()
                for test in ("eq", "ne")]
        true = Value("pointwise", v.name, self.shape, "b", "or", tuple(each), "b").ref()
        some = self._reduction("any", v, true, "b").ref()  # is there an entry?
        return Value("pointwise", v.name, made.shape, v.dtype, "where", (some, *rows[::-1]))

    def _reduction(self, op: str, v: Value, source: Ref, dtype: str = "") -> Value:
        length = self.sizes.length
        return Value("reduce", v.name, self.shape[:1], dtype or v.dtype, op, (source,), "",
                     {"how": "row", "columns": length, "count": length})


# ---- the groups of a schedule ------------------------------------------------------------------


def put_together(plan: Schedule) -> list[Group]:
    """Find groups in a schedule, and move their items together."""
    groups: list[Group] = []
    done = 0
    while True:
        found = [(n, seed) for n, item in enumerate(plan.items[done:], done)
                 if (seed := _segments(item)) is not None and seed[1] != seed[2]]
        if not found:
            return groups
        first = found[0][0]
        done = max(done, first - _FAR // 2)
        seeds = dict.fromkeys([seed for n, seed in found if n < done + _FAR])
        along, later = max([_around(plan, done, *seed) for seed in seeds],
                           key=lambda tried: len(tried[0].members))
        made = _group(plan, along) if along.members else None
        if made is None:
            done = first + 1
            continue
        groups.append(made)
        _move(plan, along.members, later)
        done = made.last + 1


def _around(plan: Schedule, done: int, index: Place, count: Any, rows: Any) -> tuple[Along, set]:
    """The items that go together for an index, and those that have to wait for them."""
    along, items = Along(plan, index, count, rows), plan.items[done:done + _FAR]
    later: set = set()
    for item in items:
        if _waits(item, later) or not along.takes(item):
            if _waits(item, later) or not item.deps.isdisjoint(along.members):
                later.add(item)
    members = _connected(along)
    later = set()
    for item in items:
        if item not in members and (_waits(item, later) or not item.deps.isdisjoint(members)):
            later.add(item)
    along.members = [item for item in along.members if item in members]
    return along, later


def _waits(item: Any, later: set) -> bool:
    """Does an item come after others?  NumPy steps stay in their order: they may have effects."""
    return not item.deps.isdisjoint(later) or _is_step(item) and any(map(_is_step, later))


def _is_step(item: Any) -> bool:
    return not isinstance(item, Kernel) and item.call.kind == "python"


def _connected(along: Along) -> set:
    """Members with the others that they need or serve, if calls are among these."""
    members = set(along.members)
    while True:
        used = set().union(*[item.deps & members for item in members]) if members else set()
        alone = {item for item in members if item not in used and item.deps.isdisjoint(members)}
        alone |= {item for item in members if item not in used
                  and getattr(item, "call", None) is not None and item.call.kind == "sddmm"}
        if not alone:
            break
        members -= alone
    calls = [i for i in members if not isinstance(i, Kernel)]
    enough = len(members) > 2 or any(i.call.kind in ("spmm", "sddmm") for i in calls)
    return members if calls and enough else set()


def _group(plan: Schedule, along: Along) -> Group | None:
    """The kernels of a group; None where it is not one nest of loops."""
    from .schedule import rescheduled

    members = along.members
    again = Along(plan, along.index, along.count, along.rows)
    try:
        if not all(again.takes(item) for item in members):
            return None
        exports = _exports(plan, members)
        slots = {again.whole(v): v for v in exports
                 if not (v.call is not None and v.call.kind in ("spmm", "sddmm"))}
        for item, made in again.after.items():
            slots[made] = item.call.args[2].value
        lowered = SimpleNamespace(
            outputs=[v.ref() for v in slots], kept=[], inputs=[], count=0)
        kernels = rescheduled(lowered, {v for v in slots if v.kind == "pointwise"}).items
    except (NotTogether, NotGeneral):
        return None
    length = again.sizes.length
    if not all(isinstance(k, Kernel) and k.dims == [*again.shape] for k in kernels):
        return None
    for k in kernels:
        k.columns = k.columns or length
    slots |= {new: old for old, new in again.leaves.items()}
    if any(v not in slots for k in kernels for v, _ in k.loads):
        return None  # one of them asks for what another one does not store
    made = Group(members, kernels, again.index, [n for n in again.names if n != again.index],
                 list(again.inside), {(again.leaves[v], at) for (v, at), _ in again.inside
                                      if v in again.leaves}, again.count, again.rows, slots)
    return made if _attach(made, again) else None


def _attach(group: Group, along: Along) -> bool:
    """Say with which kernel products are done."""
    for item, leaf in along.before.items():
        kernel = next((k for k in group.kernels if any(v is leaf for v, _ in k.loads)), None)
        if kernel is None:
            return False
        group.before.setdefault(kernel, []).append((item.call, leaf))
    for item, made in along.after.items():
        kernel = next((k for k in group.kernels if any(
            r.value is made and r.how == "store" for r in k.roots)), None)
        if kernel is None:
            return False
        group.after.setdefault(kernel, []).append((item.call, made))
    return True


def _exports(plan: Schedule, members: list) -> list[Value]:
    """Values that members store and others read."""
    made = [v for item in members for v in (
        [r.value for r in item.roots] if isinstance(item, Kernel) else item.call.outs)]
    read = {r.value for r in plan.lowered.outputs if isinstance(r, Ref)}
    inside = set(members)
    for item in plan.items:
        if item not in inside:
            read |= {v for v, _ in item.loads} if isinstance(item, Kernel) else {
                r.value for r in item.call.args}
    return [v for v in dict.fromkeys(made) if v in read]


def _move(plan: Schedule, members: list, later: set) -> None:
    """Put members one behind the other, what they need before and what needs them behind."""
    inside = set(members)
    end = 1 + max(plan.items.index(item) for item in members)
    head, tail = plan.items[:end], plan.items[end:]
    plan.items[:] = [
        *[i for i in head if i not in inside and i not in later], *members,
        *[i for i in head if i in later], *tail]
    for n, item in enumerate(plan.items):
        item.position = n


def entries_of(group: Group) -> int:
    """How many numbers the products of a group multiply, for typical sizes."""
    from .number import likely

    calls = [call for each in (group.before, group.after) for found in each.values()
             for call, _ in found]
    return int(likely(group.count) * (8 + sum(likely(c.attrs["width"]) for c in calls)))
