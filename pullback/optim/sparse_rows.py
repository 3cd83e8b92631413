"""Steps of parameters whose gradients are sparse: only rows that a gradient has are touched.

SGD, Adagrad and SparseAdam take such gradients as PyTorch's do.  The others refuse them, unless the
option `sparse` of a group says what to do: "dense" makes them dense, "lazy" runs the formula on the
rows of the gradient.  A lazy step first catches up what those rows have missed: averages decay, and
so do parameters with weight decay, by as many steps as passed since a row was last used.
`Descent.catch_up()` does the same for all rows.  Read `descent.py` first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import errors
from ..core.handle import Tensor
from ..memory.versions import mark_written
from ..parts.rules import shown
from ..parts.tensor import PartsTensor
from ..parts.trees import has_parts
from ..table.packets import ops
from ..threads.state import state as thread
from . import capture
from .formula import on
from .update import Row, apply

KINDS = (None, "lazy", "dense")


def option(sparse: str | None) -> dict:
    """The option of a group, where a call has given it."""
    if sparse not in KINDS:
        raise ValueError(f"Invalid sparse value: {sparse!r}; it is one of {KINDS}")
    return {} if sparse is None else {"sparse": sparse}


def of(group: dict) -> list[tuple[Tensor, Any]]:
    """The parameters of a group whose gradients are sparse, with them."""
    found = [(p, p.grad) for p in group["params"] if has_rows(p, p.grad)]
    level = capture.owner()
    if found and level is not None:
        raise level.unfollowed(errors.text(
            "a step with sparse gradients finds rows by values, which a compiled function cannot "
            f"do ({errors.user_line(2)})", cure="compile the function without the step"))
    return found


def whole(group: dict) -> list[tuple[Tensor, Tensor]]:
    """Parameters with the gradients that the formula takes as they are, or that are made dense."""
    pairs = [(p, p.grad) for p in group["params"] if p.grad is not None]
    if group.get("sparse") == "dense":
        return [(p, g.to_dense() if has_rows(p, g) else g) for p, g in pairs]
    return [(p, g) for p, g in pairs if not has_rows(p, g)]


def has_rows(p: Tensor, g: Tensor | None) -> bool:
    """Has a dense parameter a sparse gradient?  One of parts has as many values as its gradient."""
    return g is not None and has_parts(g) and not isinstance(p, PartsTensor)


def on_values(rows: list[Row]) -> None:
    """Let the formula see the values of parameters that are made of parts, of their gradients and
    of their state."""
    for row in rows:
        p, g = row.param, row.grad
        if not isinstance(p, PartsTensor):
            continue
        if not isinstance(g, PartsTensor) or not (p.is_nested or p.holds_as(g)):
            raise errors.LayoutError(errors.text(
                f"step(): the gradient of a {p.title} parameter has other entries than the "
                f"parameter ({errors.user_line(3)})", [shown(p), shown(g)],
                "use functions whose gradients are on the entries: those of torch.sparse"))
        row.param, row.grad, *row.buffers = [
            t.values_with_history if isinstance(t, PartsTensor) else t
            for t in (p, g, *row.buffers)]


def step(optimizer: Any, group: dict) -> None:
    """Update the parameters of a group whose gradients are sparse."""
    option(group.get("sparse"))
    for p, g in of(group):
        if group.get("sparse") == "lazy":
            on_rows(optimizer, group, p, g, True)
        elif group.get("sparse") != "dense":  # else it is among the others
            optimizer.check_sparse(group)
            optimizer.sparse_step(group, p, g)


def on_rows(optimizer: Any, group: dict, p: Tensor, g: Any, lazy: bool = False) -> None:
    """The formula on the rows that a gradient has."""
    rule, names = optimizer.rule, optimizer.buffers(group)
    if not rule.elementwise:
        raise RuntimeError(optimizer.sparse_refusal())
    g = g.coalesce()
    at, values = tuple(g.indices().unbind(0)), g.values()
    state = optimizer.state[p]
    if not state:
        state.update(optimizer.start(p, group))
    fresh = not lazy and any(n not in state for n in names)
    if lazy:
        caught_up(optimizer, group, p, at, tuple(g.shape[:g.sparse_dim()]))
    rows = Row(p[at].detach(), values, [state[n][at] for n in names],
               [state[n] for n in rule.counters])
    rows.fresh = fresh
    apply(rule, names, [rows], optimizer.options(group))
    p[at] = rows.param
    for name, buffer in zip(names, rows.buffers):
        state[name][at] = buffer


def caught_up(optimizer: Any, group: dict, p: Tensor, at: tuple, sizes: tuple) -> None:
    """Let rows decay for the steps that they have missed, and note that they have this one."""
    state = optimizer.state[p]
    if "rows_seen" not in state:
        state["rows_seen"] = ops.zeros(sizes, dtype=ops.arange(1).dtype)
        state["rows_step"] = ops.zeros([], dtype=ops.arange(1).dtype)
    state["rows_step"] += 1
    _decay(optimizer, group, p, at, state["rows_step"] - 1 - state["rows_seen"][at])
    state["rows_seen"][at] = state["rows_step"].expand(at[0].shape)


def _decay(optimizer: Any, group: dict, p: Tensor, at: tuple, missed: Tensor) -> None:
    """So many steps without a gradient, for rows."""
    if not int(missed.sum()):
        return
    state, given = optimizer.state[p], optimizer.options(group)

    def shrink(t: Tensor, factor: Any) -> None:
        wide = missed.reshape([*missed.shape, *[1] * (p.ndim - missed.ndim)])
        t[at] = t[at] * (factor ** wide.to(t.dtype if not t.is_complex() else t.real.dtype))

    for name, factor in optimizer.forgets(group).items():
        if name in state:
            shrink(state[name], factor)
    if on(given.get("weight_decay", 0)) and optimizer.shrinks(group):
        shrink(p, 1 - float(given["lr"]) * float(given["weight_decay"]))


def catch_up(optimizer: Any) -> None:
    """Let all rows decay for the steps that they have missed."""
    for group in optimizer.param_groups:
        for p in group["params"]:
            state = optimizer.state.get(p) or {}
            if "rows_seen" in state:
                seen = state["rows_seen"]
                late = seen < state["rows_step"]
                at = tuple(late.nonzero().unbind(1))
                _decay(optimizer, group, p, at, state["rows_step"] - seen[at])
                seen[at] = state["rows_step"].expand(at[0].shape)


def descend(p: Tensor, g: Any, size: Any) -> None:
    """`p -= size * g`; a sparse one is added at its entries."""
    if has_parts(g):
        g = g.coalesce()
        at = tuple(g.indices().unbind(0))
        p[at] = p[at] - g.values() * size  # writes those rows, where `index_put_` copies all
    else:
        p.sub_(g * size)


def adam_in_c(g: Any, written: tuple[Tensor, ...], numbers: tuple) -> bool:
    """Adam on the rows of a gradient, if that can be done in C: entries of plain arrays, read in
    their order, also where a row has several.  `written`: the table and its two averages."""
    rows, grads = g.indices_part._payload, g.values_part._payload
    arrays = [t._payload for t in written]
    table = arrays[0]
    if thread.mode or thread.record[0] or any(
            type(a) is not np.ndarray or not a.flags.c_contiguous for a in (rows, grads, *arrays)):
        return False
    alike = all(a.dtype == table.dtype and a.shape[1:] == table.shape[1:] for a in (grads, *arrays))
    if not alike or len(rows) != 1 or not grads.size or any(len(a) != len(table) for a in arrays):
        return False
    from ..compile import sparse_loops  # the compiler's package: few steps need it

    found = sparse_loops.library(table.dtype)
    if found is None or not sparse_loops.rows_adam(found, rows, grads, *arrays, numbers):
        return False
    mark_written(*written)
    return True
