"""Gradients that a backward collects by itself, while a function is captured.

Read next: `capture.py`.
"""

from __future__ import annotations

from .. import errors
from ..core.handle import Tensor
from ..memory.views import recording_set


class CollectedGradients:
    """Gradients that custom backwards leave in `.grad` by sweeps of their own.

    Functions that compute a part of the forward again, as reversible networks do, call
    `backward()` on it.  What that collects in inputs is part of the inputs' gradients.
    """

    def __init__(self, level, handles: list[Tensor]):
        self.level, self.handles, self.count = level, handles, len(level.adopted)

    def __enter__(self) -> CollectedGradients:
        self.before = [(t._record, t._record.grad) for t in self.handles if t._record is not None]
        for meta, _ in self.before:
            meta.grad = None
        return self

    def added_to(self, grads: tuple, inputs: list[int]) -> list:
        late = {id(a.handle) for a in self.level.adopted[self.count:]}
        known = {id(self.handles[i]) for i in inputs if i >= 0}
        for a in self.level.adopted:
            if a.handle._record is not None and self._found(a.handle) is not None and (
                    id(a.handle) in late or id(a.handle) not in known):
                raise errors.DataDependentError(errors.text(
                    "a custom backward collects gradients in a tensor that the forward of the "
                    "captured function does not differentiate",
                    f"tensor: {a.handle.dtype.name}{list(a.data.shape)}",
                    "use the tensor in the forward, or do not compile the function"))
        out = list(grads)
        for number, i in enumerate(inputs):
            more = self._found(self.handles[i]) if i >= 0 else None
            if more is not None:
                with recording_set(self.level.level, False):
                    out[number] = more if out[number] is None else out[number] + more
        return out

    def _found(self, t: Tensor) -> Tensor | None:
        if t._record is None or t._record.retains:  # a gradient that is kept, not collected
            return None
        grad = t._record.grad
        return grad if grad is not None and self.level.mine(grad) else None

    def __exit__(self, *exc) -> None:
        for t in self.handles:
            if t._record is not None:
                t._record.grad = None
        for meta, grad in self.before:
            meta.grad = grad
