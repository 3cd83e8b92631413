"""Steps inside of compiled functions.

A capture turns every tensor that it meets into an input of the graph: parameters, gradients, state,
step counters.  What it does not see are Python values.  Options that are numbers are therefore fed
to the graph as 0-d tensors that are read from the group before every call (a scheduler may change
them), and what the graph was built on, the other options and the identity of the state's tensors,
is checked before every call.  Training without `compile` loads this file, too: what a capture needs
comes from its level, and no import here leads to that package.
"""

from __future__ import annotations

from operator import getitem, is_

import numpy as np

from ..core.handle import Tensor, make
from ..tensor.hooks import of_all_steps
from ..threads.state import state


def owner():
    """The capture that is going on, if any."""
    level = state.stack[state.mode] if state.mode else None
    return level if level is not None and level.adopts else None


def like(p: Tensor, value) -> Tensor:
    """A tensor of one value with the shape, dtype and memory order of another; real memory."""
    level = owner_of(p)
    data = p._payload if level is None else level.original(p)
    if type(data) is np.ndarray:
        return make(np.full_like(data, value))
    from ..table.packets import ops

    return ops.full_like(p.detach(), value)


def owner_of(p: Tensor):
    """The capture that a tensor was adopted by, if any."""
    level = getattr(p._payload, "interp", None)
    return level if level is not None and level.adopts else None


def fed(level, optimizer, group: dict, options: dict) -> dict:
    """Options for a capture: numbers as inputs of the graph."""
    out = {}
    for name, value in options.items():
        place, part = _place(optimizer, name)
        read = _reader(group, place, part)
        if type(value) is float and value and name not in optimizer.constant:
            out[name] = level.number(read)
            level.guard(lambda read=read: type(now := read()) is float and bool(now))
        else:
            out[name] = value
            level.guard(_same(read, value))
    return out


def watch_hooks(optimizer) -> None:
    """Check before every call of a function that is captured that the hooks of a step are those
    that were called."""
    level = owner()
    if level is not None:
        level.guard_tables([optimizer._optimizer_step_pre_hooks,
                            optimizer._optimizer_step_post_hooks, *of_all_steps])


def watch(level, optimizer, group: dict) -> None:
    """Check before every call that a group has the same parameters and their state the same
    tensors."""
    states, params = optimizer.state, list(group["params"])
    tables, keys, tensors = [], [], []
    for p in params:
        values = states.get(p) or {}
        for name, value in values.items():
            if isinstance(value, Tensor):
                tables.append(values)
                keys.append(name)
                tensors.append(value)

    def unchanged() -> bool:
        now = group["params"]
        return (optimizer.state is states and len(now) == len(params)
                and all(map(is_, now, params))
                and all(map(is_, map(dict.get, tables, keys), tensors)))

    level.guard(unchanged)


def foreign(optimizer, step):
    """The step of an optimizer that is not given by a formula, inside of a capture.

    Its Python values are not seen: they must stay as they are.  The step that makes its state runs
    as it is.
    """
    level = owner()
    if level is None:
        return step()
    if not optimizer.state:
        raise level.postponed
    before = _values(optimizer)
    level.guard(lambda: _alike(_values(optimizer), before))
    for group in optimizer.param_groups:
        watch(level, optimizer, group)
    out = step()
    after = _values(optimizer)
    new = [table for table, values in after if not any(table is t for t, _ in before)]
    for table, values in before:
        added = [k for k in table if k not in values]
        for name in added:
            del table[name]
        if added:
            raise level.postponed
    for p in [p for p, table in optimizer.state.items() if any(table is t for t in new)]:
        del optimizer.state[p]
    if new:
        raise level.postponed
    if not _alike(after, before):
        for table, values in before:
            table.update(values)
        raise RuntimeError(
            f"{type(optimizer).__name__}.step() changes Python values of its own (a step counter, "
            "for instance), which a compiled function cannot do\n  Fix: compile the function "
            "without the step, and call step() outside; or keep such values in tensors")
    return out


def _values(optimizer) -> list[tuple[dict, dict]]:
    """All options and state, as they are now."""
    tables = [*optimizer.param_groups, *[t for t in optimizer.state.values() if type(t) is dict]]
    return [(table, dict(table)) for table in tables]


def _alike(now: list, before: list) -> bool:
    """The same tables with the same values?  Tensors and lists count as what they are."""
    return len(now) == len(before) and all(
        a is b and x.keys() == y.keys() and all(
            x[k] is y[k] or isinstance(x[k], (int, float, str, tuple, type(None)))
            and type(x[k]) is type(y[k]) and x[k] == y[k] for k in x)
        for (a, x), (b, y) in zip(now, before))


def _place(optimizer, name: str) -> tuple:
    for pair, parts in optimizer.pairs.items():
        if name in parts:
            return pair, parts.index(name)
    return name, None


def _reader(group: dict, name: str, part: int | None):
    if part is None:
        return lambda: group[name]
    return lambda: getitem(group[name], part)


def _same(read, value):
    if isinstance(value, Tensor):
        return lambda: read() is value
    return lambda: type(now := read()) is type(value) and now == value
