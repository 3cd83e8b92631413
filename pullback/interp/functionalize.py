"""Functionalize: writes and, on demand, views become pure operators on the level below.

The surface has turned writes into operators and rebinding already; this level only gives handles
boxes, so that no memory is written, and may replace views by copies.  `func.functionalize` uses it.
"""

from __future__ import annotations

import functools

from .. import errors
from ..array.fake import Fake
from ..core.events import MADE, RELAYS, VIEWED
from ..core.handle import Cell, Tensor, cell_of, make, tensors_in
from ..core.overload import overload
from ..core.stack import bind
from ..memory.views import current
from ..pytree import tree_map
from ..threads.state import state
from .box import Wrapped, map_flat, map_tensors
from .interpreter import Interpreter


class Functional(Wrapped):
    """A value of the level below; where it is a copy, with the strides that a view would have."""

    __slots__ = ("shown",)

    def __init__(self, interp, inner: Tensor, shown: Fake | None = None):
        self.interp, self.inner, self.shown = interp, inner, shown

    @property
    def strides(self):
        return self.inner._payload.strides if self.shown is None else self.shown.strides


def _layout(data, device) -> Fake:
    return Fake(data.shape, data.dtype, tuple(data.strides), str(device))


class Functionalize(Interpreter):
    """Sees every operator; hands it on to the level below."""

    modal = True
    random = True
    title = "func.functionalize"
    label = "FunctionalTensor"

    def __init__(self, views: bool):
        self.copies_views = views
        self.frozen: list[Cell] = []  # memory that nothing may be written to any more

    def wrap(self, t: Tensor) -> Tensor:
        return make(Functional(self, t))

    def retakes(self, cell: Cell) -> bool:
        """A view of memory that was written is taken again."""
        return cell.version > 0

    def unwrap(self, t):
        return t._payload.inner if self.mine(t) else t

    def process(self, ov, flat):
        tensors = list(tensors_in(flat))
        own = not tensors or any(self.mine(t) for t in tensors)
        shown = None
        if ov.is_view and self.copies_views and own:
            shown = self._shown(ov, flat)
            ov = copying(ov) or ov
        out = self._below(bind, ov, map_flat(self.unwrap, flat))
        if shown is None:
            return map_tensors(self.wrap, out) if own else out
        if isinstance(out, Tensor):
            return make(Functional(self, out, shown._payload))
        return type(out)([make(Functional(self, o, s._payload)) for o, s in zip(out, shown)])

    def _below(self, function, *args):
        before = state.mode, state.random
        state.mode, state.random = self.previous
        try:
            return function(*args)
        finally:
            state.mode, state.random = before

    def handed_on(self, function, *args):
        """Call an operator that takes functions on the level below: these write to nothing."""
        lower = tree_map(lambda v: self.unwrap(current(v)) if isinstance(v, Tensor) else v, args)
        return map_tensors(self.wrap, self._below(function, *lower))

    def _shown(self, ov, flat):
        """The layout of a view, which programs may ask for although there is a copy instead."""

        def fake(t: Tensor) -> Tensor:
            return make(_layout(t._payload, t.device))

        before = state.mode, state.random, state.fakes
        state.mode, state.random, state.fakes.creates = 0, 0, True
        try:
            return bind(ov, map_flat(fake, flat))
        finally:
            state.mode, state.random, state.fakes = before

    def relaid(self, old, new: Tensor) -> Tensor | None:
        """A copy shows the layout that the view had."""
        if not self.copies_views:
            return None
        return make(Functional(self, new._payload.inner, _layout(old, new.device)), new._edge)

    def made(self, t: Tensor) -> Tensor:
        """A tensor that was just made from Python values, as one of this level."""
        before = state.mode, state.random
        state.mode, state.random = self.previous
        try:
            below = state.stack[state.mode].event(MADE, t) if state.mode else None
        finally:
            state.mode, state.random = before
        return self.wrap(t if below is None else below)

    on = {MADE: made, RELAYS: relaid, VIEWED: retakes}

    def rebound_to(self, handle, new) -> bool:
        if cell_of(handle) in self.frozen:
            raise errors.TransformError(errors.text(
                "cannot mutate tensors with frozen storage: _freeze_functional_tensor() was called "
                f"for this tensor or one that shares its memory ({errors.user_line(2)})",
                f"tensor: {handle.dtype.name}{list(handle.shape)}",
                "write to a clone() of it"))
        return super().rebound_to(handle, new)

    def note_rebinding(self, handle, old) -> None:
        raise errors.TransformError(errors.text(
            "mutating a non-functional tensor with a functional tensor is not allowed: a tensor "
            f"from outside of functionalize() is written with one from inside "
            f"({errors.user_line(2)})",
            f"tensor: {handle.dtype.name}{list(old.shape)}",
            "pass it as an argument of the function"))


@functools.cache
def copying(ov):
    """The overload that copies what a view shows; None if there is none."""
    base, _, name = ov.name.partition(".")
    try:
        return overload(f"{base}_copy.{name}" if name else f"{base}_copy")
    except (KeyError, AttributeError, errors.PullbackError):
        return None
