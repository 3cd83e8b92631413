"""Which outputs can be written into the memory of an input.

A captured function that writes its inputs (a training step: parameters, state of the optimizer)
gives their new values as outputs.  An output needs no array of its own if the kernel that makes it
is the last to read that input, element by element, and if nothing can fail any more once it runs:
the kernels that only make such outputs are moved to the end.  Read `memory.py` next.
"""

from __future__ import annotations

from .ir import Ref, Value
from .kernel import Kernel, Root
from .schedule import Schedule


def place(schedule: Schedule, writes: dict[int, int]) -> dict[Value, Value]:
    """Output value -> input value whose memory it takes; the order of the schedule may change.

    `writes` says which input (by number) each output (by number) is the new value of.
    """
    lowered = schedule.lowered
    outputs = [r.value for r in lowered.outputs if isinstance(r, Ref)]
    wanted: dict[Value, Value] = {}
    for k, i in writes.items():
        out, given = lowered.outputs[k], lowered.input_refs[i]
        if not isinstance(out, Ref) or not (out.plain and given.plain):
            continue
        new, old = out.value, given.value
        alike = new.dtype == old.dtype and new.numel == old.numel > 0
        if alike and outputs.count(new) == 1 and old not in outputs and _root(schedule, new):
            wanted[new] = old
    if len(set(wanted.values())) != len(wanted):
        return {}
    _move_to_the_end(schedule, wanted)
    items = schedule.items
    last = max((n for n, item in enumerate(items) if _may_fail(item)), default=-1)
    return {
        new: old for new, old in wanted.items()
        if _is_last(schedule, new, old) and _root(schedule, new)[0].position > last
    }


def _root(schedule: Schedule, v: Value) -> tuple[Kernel, Root] | None:
    """The kernel and the root that store a value in one piece, if it is one that only stores."""
    items = schedule.where.get(v, ())
    if v.kind != "pointwise" or len(items) != 1 or not isinstance(items[0], Kernel):
        return None
    kernel = items[0]
    if any(r.how != "store" or r.level != "vec" or r.place is not None for r in kernel.roots):
        return None
    return kernel, next(r for r in kernel.roots if r.value is v)


def _reads(item) -> set[Value]:
    if isinstance(item, Kernel):
        return {v for v, _ in item.loads}
    return {r.value for r in item.call.args}


def _may_fail(item) -> bool:
    if isinstance(item, Kernel):
        return bool(item.checks)
    return item.call.kind == "python" or "check" in item.call.attrs


def _move_to_the_end(schedule: Schedule, wanted: dict[Value, Value]) -> None:
    """Kernels that make outputs of this kind go behind all others, unless others need them."""
    late = {_root(schedule, v)[0] for v in wanted}
    late = {k for k in late if not _may_fail(k)}
    while True:
        early = set().union(*[_reads(item) for item in schedule.items if item not in late])
        stay = {k for k in late if any(r.value in early for r in k.roots)}
        if not stay:
            break
        late -= stay
    # of these, counters come last: everybody reads them
    needed = set().union(*[_reads(k) for k in late])
    count = lambda k: k.total == 1 and not any(r.value in needed for r in k.roots)
    schedule.items.sort(key=lambda item: (item in late) + (item in late and count(item)))
    for n, item in enumerate(schedule.items):
        item.position = n


def _is_last(schedule: Schedule, new: Value, old: Value) -> bool:
    """Is the kernel that makes `new` the last to read `old`, and only where it writes?"""
    kernel, root = _root(schedule, new)
    if any(old in _reads(item) for item in schedule.items[kernel.position + 1:]):
        return False
    accesses = [access for v, access in kernel.loads if v is old]
    if not accesses:
        return True
    # its own value is loaded before it is stored; other results of the kernel use what was loaded
    return accesses == [root.target] and _depends(kernel, root, old)


def _depends(kernel: Kernel, root: Root, old: Value) -> bool:
    todo, seen = [(root.source.value, root.access)], set()
    while todo:
        key = todo.pop()
        if key in seen:
            continue
        seen.add(key)
        if key[0] is old:
            return True
        if key in kernel.loads:
            continue
        inner = kernel.memo.get(key, ())
        todo += [(a.value, access) for a, access in zip(key[0].args, inner) if access is not None]
    return False
