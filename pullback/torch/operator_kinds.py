"""Operators as `isinstance` asks for them: `OpOverload` and `OpOverloadPacket` of PyTorch's `_ops`.

Overloads of the table, what follows from them (in-place and `out=` variants) and those that users
register are objects of several classes here.
"""

from __future__ import annotations

from typing import Any

from ..core import overload
from ..library.namespaces import Packet
from ..table import packets as table
from ..table.derived_overloads import Derived


class _Kind(type):
    kinds: tuple[type, ...]

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.kinds)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return cls in subclass.__mro__ or issubclass(subclass, cls.kinds)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{cls.__name__}: operators come from torch.ops, or are registered with "
                        "torch.library.custom_op")


class OpOverload(metaclass=_Kind):
    """One signature of an operator: `torch.ops.aten.add.Tensor`."""

    kinds = (overload.OpOverload, Derived)


class OpOverloadPacket(metaclass=_Kind):
    """All signatures of an operator: `torch.ops.aten.add`."""

    kinds = (table.Packet, Packet)
