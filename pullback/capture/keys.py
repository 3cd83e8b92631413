"""What a captured graph depends on, of one argument: its part of a signature."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.handle import Tensor
from ..core.surface import refresh

_ndarray = np.ndarray


def key_of(value) -> tuple:
    """What the graph depends on, for one argument."""
    if isinstance(value, Tensor):
        if value._link is not None:
            refresh(value)
        data = value._data
        flags = getattr(data, "flags", None)  # a tensor without data has none
        contiguous = value.is_contiguous() if flags is None else flags.c_contiguous
        # results lie as inputs do, and only some can be looked at in another shape
        return data.shape, data.dtype, value._edge is not None, contiguous or data.strides
    kind = type(value)
    if kind is slice:
        return kind, (value.start, value.stop, value.step)
    if kind is _ndarray:
        return kind, (value.shape, value.dtype)  # nothing is captured for them
    if kind is float and (not value or value != value):
        return kind, repr(value)  # zeros have signs, and any NaN is NaN
    try:
        hash(value)
    except TypeError:
        return kind, Same(value)
    return kind, value


class Same:
    """Something that has no hash, by its identity."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __repr__(self) -> str:
        return repr(self.value)


def aliases(tensors: list[Tensor]):
    """Which arguments are the same object; None if all differ."""
    ids = [id(t) for t in tensors]
    return None if len(set(ids)) == len(ids) else tuple(ids.index(i) for i in ids)
