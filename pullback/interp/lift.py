"""Lift: a fresh level on which the same tape and engine work.  `func.grad` is built on it."""

from __future__ import annotations

from ..core.events import BEGINS_LEAF
from ..core.handle import Tensor, is_buffer, make
from ..core.stack import Interpreter, bind
from ..core.surface import store
from .box import Wrapped, lower, map_tensors


class Lifted(Wrapped):
    """A value of the level below."""

    __slots__ = ()


class Lift(Interpreter):
    """Gives handles a level of their own, nothing else."""

    owns_tape = True
    leaves_values = True
    title = "func.grad"
    label = "GradTrackingTensor"

    def __init__(self, title: str = "func.grad"):
        self.title = title

    def wrap(self, t: Tensor) -> Tensor:
        return make(Lifted(self, t))

    def unwrap(self, t):
        return t._data.inner if self.mine(t) else t

    def process(self, ov, flat):
        out = bind(ov, tuple(map_tensors(self.unwrap, v) for v in flat))
        return map_tensors(self.wrap, out)

    def begin_leaf(self, t: Tensor) -> None:
        """Lift a tensor of a lower level, so that this level's tape leads to it."""
        self.note_rebinding(t, t._data)
        t._data = Lifted(self, make(t._data))

    on = {BEGINS_LEAF: begin_leaf}

    def restore(self, handle, old) -> None:
        if not isinstance(handle._data, Lifted):
            return
        lower(handle)
        if is_buffer(old) and is_buffer(handle._data):  # the memory is shared: write it, keep it
            store(old, handle._data)
            handle._data = old
