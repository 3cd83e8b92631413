"""Calls that change which memory tensors show, as graphs have them.

`ops.inductor.resize_storage_bytes_(x, n)` is `x.untyped_storage().resize_(n)`, and
`ops.aten.set_.source_Tensor(x, y)` is `x.set_(y)`.  In graphs of `aot_function` they say what
happens to an input; the run time does it beside the call, to the user's own tensor.  Read next:
`torch/dialect/convention.py`.
"""

from __future__ import annotations

import functools

from ..core.op import OpName
from ..core.schema import Schema
from ..table.derived_overloads import Derived, _Writing


class MemoryCall(Derived):
    """An operator that changes the memory of its first argument."""

    op = _Writing
    functional = None
    beside = False  # does somebody else do it just now?

    def _begin(self, namespace: str, name: str, arguments: str, returns: str):
        self.namespace, self.name = namespace, OpName(name)
        self._text = f"{name}(Tensor(a!) self, {arguments}) -> {returns}"
        self.__name__ = repr(self)

    def __repr__(self) -> str:
        return f"{self.namespace}.{self.name.partition('.')[0]}.{self._overloadname}"

    @functools.cached_property
    def schema(self):
        """The arguments; the first is written."""
        return Schema(self._text)

    @property
    def overloadpacket(self):
        """The operator as users name it, here the same object."""
        return self

    def __getattr__(self, name: str):
        if name.startswith("_") or name != self._overloadname:
            raise AttributeError(f"operator '{self!r}' has no overload '{name}'")
        return self

    def overloads(self) -> list[str]:
        return [self._overloadname]

    def __reduce__(self) -> tuple:
        return found, (self.namespace, self.name.partition(".")[0])

    def __call__(self, tensor, *args):
        if MemoryCall.beside:
            return None if self is RESIZE else tensor
        if self is SET:
            return tensor.set_(*args)
        tensor.untyped_storage().resize_(*args)
        return None


RESIZE = MemoryCall("inductor", "resize_storage_bytes_", "SymInt new_size", "()")
SET = MemoryCall("aten", "set_.source_Tensor", "Tensor source", "Tensor(a!)")
_KNOWN = {("inductor", "resize_storage_bytes_"): RESIZE, ("aten", "set_"): SET}


def found(namespace: str, name: str) -> MemoryCall | None:
    """The operator of a name."""
    return _KNOWN.get((namespace, name))
