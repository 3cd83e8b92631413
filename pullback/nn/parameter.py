"""`Parameter` and `Buffer`: tensors that a Module recognises when they are assigned to it."""

from __future__ import annotations

from ..core.handle import Tensor
from ..core.table import ops


def _share(cls, data: Tensor | None, requires_grad: bool):
    """A handle of another class on the same memory, without history."""
    data = ops.empty([0]) if data is None else data.detach()
    new = object.__new__(cls)
    new._data = data._data
    new._edge = new._link = new._cell = new._meta = None
    return new.requires_grad_(True) if requires_grad else new


class Parameter(Tensor):
    """A tensor that a Module lists among its parameters; it requires grad by default."""

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True):
        return _share(cls, data, requires_grad)

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class Buffer(Tensor):
    """A tensor that a Module lists among its buffers."""

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True):
        new = _share(cls, data, False)
        new.persistent = persistent
        return new
