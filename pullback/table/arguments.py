"""Values that an argument of an operator may be given as, and what becomes of them.

Read next: `../core/schema.py`, which goes through the arguments of a call.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..array.device import Device
from ..array.layout import STRIDED
from ..array.size import Symbolic
from ..core.handle import Tensor

if TYPE_CHECKING:
    from ..core.schema import Argument


NO = object()


def is_int(value) -> bool:
    if isinstance(value, (int, np.integer)):
        return not isinstance(value, (bool, np.bool_))
    if isinstance(value, Symbolic):
        return hasattr(value, "clamped")
    return isinstance(value, Tensor) and value.ndim == 0 and value.dtype.category == 1


def convert(spec: Argument, value, number_ok: bool):
    """The value as the argument's type, or `NO`."""
    if value is None:
        if spec.is_list and spec.has_default and spec.default == []:
            return []  # max_pool2d(x, 2, None): no stride given
        if spec.optional or spec.base == "Device":  # no device: where the tensor is
            return None
        return None if spec.is_list and spec.optional_items else NO
    if spec.is_list:
        return _convert_list(spec, value)
    if spec.symbolic and isinstance(value, Tensor) and is_int(value):
        value = value.item()
    if isinstance(value, Symbolic):
        return _convert_symbolic(spec, value, number_ok)
    return _convert_one(spec.base, value, number_ok)


def _convert_symbolic(spec: Argument, value, number_ok: bool = False):
    """A size that is not known yet: where the schema wants plain numbers it is specialised."""
    if spec.base == "bool":
        return bool(value)
    if spec.base not in ("int", "Scalar", "float") and not (number_ok and spec.is_tensor):
        return NO
    if spec.base == "int":
        if not is_int(value):
            return NO
        return value if spec.symbolic else int(value)
    return value


def _convert_list(spec: Argument, value):
    base = spec.base
    if spec.optional_items and isinstance(value, Tensor) and value.ndim:
        value = list(value)  # `ops.aten.index(x, indices)`: one index for each dimension
    if isinstance(value, (list, tuple)):
        plain = base == "int" and {*map(type, value)} <= {int}
        items = list(value) if plain else []
        for item in () if plain else value:
            if base == "int" and isinstance(item, Tensor) and is_int(item):
                item = item.item()
            if isinstance(item, Symbolic):
                item = _convert_symbolic(spec, item)
            else:
                item = None if item is None and spec.optional_items else _convert_one(
                    base, item, False)
            if item is NO:
                return NO
            items.append(item)
        if base == "int" and spec.size and len(items) == 1 and spec.size > 1:
            items = items * spec.size
        return items
    if base == "int" and is_int(value) and spec.size:
        one = _convert_symbolic(spec, value) if isinstance(value, Symbolic) else int(value)
        return [one] * spec.size
    if base == "Tensor" and hasattr(value, "__iter__") and not isinstance(value, Tensor) or (
            isinstance(value, Sequence) and not isinstance(value, (str, bytes))):
        return _convert_list(spec, list(value))
    return NO


def _convert_one(base: str, value, number_ok: bool):
    if base == "Tensor":
        if isinstance(value, Tensor):
            return value
        if number_ok and isinstance(value, numbers.Number):
            return value.item() if isinstance(value, np.generic) else value
        return NO
    if base == "int":
        return int(value) if is_int(value) else NO
    if base == "Scalar" or base == "float":
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, numbers.Number):
            return NO if base == "float" and isinstance(value, complex) else value
        if isinstance(value, Tensor) and value.ndim == 0 and not value.requires_grad:
            return value.item()
        return NO
    if base == "bool":
        return bool(value) if isinstance(value, (bool, np.bool_)) else NO
    if base == "str":
        return value if isinstance(value, str) else NO
    if base == "ScalarType":
        try:
            value = value if value.__class__ is dt.Quantized else dt.as_dtype(value)
        except TypeError:
            return NO
    if base == "Layout" and value is not STRIDED and value != "strided" or (
            value.__class__ is dt.Quantized):
        from ..parts import layouts  # nothing of it is there before a program names a layout

        layouts.prepare(value)
    if base == "Device":
        if isinstance(value, Device):
            return value
        return Device(value) if isinstance(value, (str, int)) else NO
    return value


def no_match(name: str, overloads: list, args: tuple, kwargs: dict,
             kind: type = errors.ArgumentError) -> errors.ArgumentError:
    """The error for a call that fits no overload."""

    def show(value):
        if hasattr(value, "_edge"):
            return f"Tensor{list(value.shape)}"
        return f"{type(value).__name__}"

    given = [show(a) for a in args] + [f"{k}={show(v)}" for k, v in kwargs.items()]
    return kind(
        errors.text(
            f"{name}() got arguments that fit none of its signatures ({errors.user_line(2)}): "
            f"({', '.join(given)})",
            [str(o.schema) for o in overloads],
        )
    )
