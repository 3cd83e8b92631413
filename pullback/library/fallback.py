"""Operators of a `Library` that nobody registered a gradient for.

Their kernel gets the user's tensors, and what it does to them is recorded: a kernel that is made of
operators has the gradients of these.  In the mode "warn" a sweep that comes through such an
operator says so, and results without a history get a node that has no gradients to give.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import errors
from ..autograd.function import Function
from ..core.handle import Tensor, tensors_in
from ..threads.state import state
from .overload_functions import flattened, rebuilt, spread, warn_of

if TYPE_CHECKING:
    from .definition import CustomOpDef

_mode = "warn"


def set_autograd_fallback_mode(mode: str) -> None:
    """Set what happens in a sweep through an operator without gradient: "warn" or "nothing"."""
    global _mode
    if mode not in ("warn", "nothing"):
        raise errors.BadValue(errors.text(
            f"there is no autograd fallback mode {mode!r} ({errors.user_line(2)})",
            cure='set it to "warn" or "nothing"'))
    _mode = mode


def autograd_fallback_mode() -> str:
    """The mode in force."""
    return _mode


class WarnNotImplemented(Function):
    """The history of results that have none: it warns, and gives nothing."""

    @staticmethod
    def forward(ctx: Any, name: str, count: int, *tensors: Tensor) -> tuple:
        ctx.name, ctx.count, ctx.given = name, count, len(tensors)
        return tuple([t.view_as(t) for t in tensors[:count]])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple:
        warn_of(ctx.name)
        return (None,) * (ctx.given + 2)


def through(op: CustomOpDef, flat: tuple) -> Any:
    """A call whose kernel works on the user's own tensors."""
    for t in tensors_in(flat):
        if t._link is not None:
            t.shape  # noqa: B018  (brings a view up to date)
    out = op._named(op._kernel_for(flat), flat)
    outs = op._listed(out)
    if _mode == "warn" and state.record[0]:
        tracked = [t for t in tensors_in(flat) if t._edge is not None]
        if tracked:
            outs = _watched(op, outs, flat, tracked)
    return op._results(outs)


def _watched(op: CustomOpDef, outs: list, flat: tuple, tracked: list) -> tuple:
    name, returns, bare = op._qualname, op.schema.returns, []
    widths, outs = flattened(returns, outs)
    for i, (t, spec) in enumerate(zip(outs, spread(widths, returns))):
        if not isinstance(t, Tensor):
            continue
        if t.requires_grad:
            t.register_hook(lambda grad: warn_of(name))
            base = t._base
            if base is not None and base.requires_grad and not base.is_leaf:
                base.register_hook(lambda grad: warn_of(name))
        elif not spec.is_write and (t.dtype.is_floating_point or t.dtype.is_complex):
            bare.append(i)
    if bare:
        made = WarnNotImplemented.apply(name, len(bare), *[outs[i] for i in bare], *tracked)
        for i, t in zip(bare, made):
            outs[i] = t
    return rebuilt(widths, outs)
