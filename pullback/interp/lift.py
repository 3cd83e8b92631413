"""Lift: a fresh level on which the same tape and engine work.  `func.grad` is built on it."""

from __future__ import annotations

from ..core.events import BEGINS_LEAF
from ..core.handle import Tensor, is_buffer, make
from ..core.stack import bind
from ..memory.assign import store
from .box import Wrapped, lower, map_flat, map_tensors
from .interpreter import Interpreter


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
        return t._payload.inner if self.mine(t) else t

    def process(self, ov, flat):
        out = bind(ov, map_flat(self.unwrap, flat))
        return self.wrap(out) if isinstance(out, Tensor) else map_tensors(self.wrap, out)

    def begin_leaf(self, t: Tensor) -> None:
        """Lift a tensor of a lower level, so that this level's tape leads to it."""
        self.note_rebinding(t, t._payload)
        t._payload = Lifted(self, make(t._payload))

    on = {BEGINS_LEAF: begin_leaf}

    def restore(self, handle, old) -> None:
        if not isinstance(handle._payload, Lifted):
            return
        lower(handle)
        if is_buffer(old) and is_buffer(handle._payload):  # the memory is shared: write it, keep it
            store(old, handle._payload)
            handle._payload = old
