"""`Size`: a shape as users see it."""

from __future__ import annotations

import math


class Size(tuple):
    """A tensor's shape; a tuple that prints as PyTorch's."""

    __slots__ = ()

    def numel(self) -> int:
        """Number of elements of a tensor with this shape."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def __getitem__(self, key):
        found = tuple.__getitem__(self, key)
        return Size(found) if isinstance(key, slice) else found

    def __add__(self, other):
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other):
        return Size(tuple(other) + tuple(self))

    def __reduce__(self):
        return (Size, (tuple(self),))
