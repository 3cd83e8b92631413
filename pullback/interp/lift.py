"""Lift: a fresh level on which the same tape and engine work.  `func.grad` is built on it."""

from __future__ import annotations

import numpy as np

from ..core.handle import Tensor, make
from ..core.stack import Interpreter, bind
from .box import Wrapped, map_tensors


class Lifted(Wrapped):
    """A value of the level below."""

    __slots__ = ()


class Lift(Interpreter):
    """Gives handles a level of their own, nothing else."""

    owns_tape = True
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

    def restore(self, handle, old) -> None:
        inner = handle._data.inner if isinstance(handle._data, Lifted) else None
        handle._edge = None
        if inner is not None and type(old) is np.ndarray and type(inner._data) is np.ndarray:
            np.copyto(old, inner._data)
            handle._data = old
        elif inner is not None:
            handle._data, handle._edge = inner._data, inner._edge
