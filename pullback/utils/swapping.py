"""`swap_tensors`: two tensors change places; who holds one has the other's content then."""

from __future__ import annotations

import weakref

from .. import errors
from ..core.handle import Tensor
from ..core.tape import Accumulate

_SLOTS = ("_cell", "_payload", "_edge", "_link", "_record")


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange values, history, gradient, hooks, attributes and class of two tensors."""
    for name, t in (("t1", t1), ("t2", t2)):
        ours = isinstance(t._edge, Accumulate)  # a leaf's gradients find it by one
        if weakref.getweakrefcount(t) > ours:
            raise errors.RefusedValue(
                errors.text(
                    f"Cannot swap {name} because it has weakref associated with it "
                    f"({errors.user_line()})",
                    f"tensor: {t.dtype.name}{list(t.shape)}",
                    "drop the weak references, or exchange the data with set_()",
                )
            )
    one, two = [tuple(getattr(t, slot) for slot in _SLOTS) for t in (t1, t2)]
    for t, content in ((t1, two), (t2, one)):
        for slot, value in zip(_SLOTS, content):
            setattr(t, slot, value)
        if isinstance(t._edge, Accumulate):
            t._edge.leaf = weakref.ref(t)
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
