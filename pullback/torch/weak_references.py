"""Weak references to memory and to tensors, as `multiprocessing.reductions` and `_C` have them."""

from __future__ import annotations

import weakref
from typing import Any

from ..core.handle import Tensor
from ..errors import ArgumentError
from ..storage import WrapperStorage


class StorageWeakRef:
    """A reference to the memory behind a storage, which does not keep it alive.

    References to the same memory are equal and have the same hash; `cdata` is the number that
    stands for it.
    """

    __slots__ = ("__weakref__", "_memory", "cdata")

    def __init__(self, storage: Any):
        untyped = getattr(storage, "_untyped_storage", storage)
        wrapped = isinstance(untyped, WrapperStorage)  # no memory, but a counter of versions
        self.cdata: int = untyped._cdata
        self._memory = weakref.ref(untyped._cell if wrapped else untyped._owner)

    def expired(self) -> bool:
        """Is the memory gone?"""
        return self._memory() is None

    def __hash__(self) -> int:
        return self.cdata

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StorageWeakRef):
            return NotImplemented
        mine, theirs = self._memory(), other._memory()
        return self is other or (self.cdata == other.cdata and mine is theirs)


class _WeakTensorRef:
    """Tells whether a tensor is still alive."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Tensor):
        if not isinstance(tensor, Tensor):
            raise ArgumentError(f"expected a Tensor, got {type(tensor).__name__}")
        self._tensor = weakref.ref(tensor)

    def expired(self) -> bool:
        """Is the tensor gone?"""
        return self._tensor() is None
