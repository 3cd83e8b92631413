"""Dictionaries whose keys are compared by identity and do not keep them alive.

Tensors compare element by element, so that Python's own weak dictionaries cannot hold them.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from ..core.handle import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref):
    """A weak reference that is equal to those to the same object."""

    __slots__ = ("_id",)

    def __init__(self, key, callback=None):
        super().__init__(key, callback)
        self._id = id(key)

    def __call__(self):
        return super().__call__()

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine, theirs = self(), other() if isinstance(other, weakref.ref) else None
        return self is other if mine is None or theirs is None else mine is theirs


class TensorWeakRef:
    """A weak reference to a tensor; call it."""

    ref: weakref.ref

    def __init__(self, tensor: Tensor):
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()


class WeakIdKeyDictionary(MutableMapping):
    """A dictionary from objects to values; entries go when their objects do."""

    def __init__(self, dict: Mapping | None = None, ref_type: type[weakref.ref] = WeakIdRef):
        self.data: dict[Any, Any] = {}
        self.ref_type = ref_type
        entries = weakref.ref(self)

        def forget(reference) -> None:
            alive = entries()
            if alive is not None:
                alive.data.pop(reference, None)

        self._forget = forget
        self.update(dict or {})

    def __getitem__(self, key):
        return self.data[self.ref_type(key)]

    def __setitem__(self, key, value) -> None:
        self.data[self.ref_type(key, self._forget)] = value

    def __delitem__(self, key) -> None:
        del self.data[self.ref_type(key)]

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __contains__(self, key) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:
            return False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def keyrefs(self) -> list:
        """The weak references; the objects may be gone by the time that they are asked for."""
        return list(self.data)

    def copy(self) -> WeakIdKeyDictionary:
        """Another dictionary with the same entries."""
        return type(self)(self)


WeakTensorKeyDictionary = WeakIdKeyDictionary
