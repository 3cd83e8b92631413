"""Tensor's methods that are operators of the table, and Python's own operators.

A method of a pointwise operator is a function that is generated when the method is first looked up
(`eager/fast.py`); the others look up the plan for the kinds of their arguments (`eager/plan.py`).
"""

from __future__ import annotations

import numpy as np

from .. import errors
from ..array import dtype as dt
from ..core.handle import Tensor, make
from ..core.subclass_door import NobodyAnswers
from ..table.packets import method_packet, ops
from ..threads.state import fast as space
from .overridable import fact, overridable

_ndarray = np.ndarray


def _binary(name: str, public: str | None = None):
    """An operator method of the general path; `public` is the method that users know it by."""
    plans: dict = {}

    def method(self, other, **rest):
        nonlocal plans
        try:
            plan = plans.get((type(self), type(other)))
            if plan is not None and not rest:
                return plan(self, other)
            packet = method_packet(name, public or name)
            plans = packet._plans
            return packet(self, other, **rest)
        except TypeError as error:
            if isinstance(other, (Tensor, int, float, complex, np.generic, bool, list)) and not (
                    isinstance(error, NobodyAnswers) and type(other) is not type(self)):
                raise
            return NotImplemented

    return method


def _reflected(name: str, public: str):
    """An operator method for `number + tensor`; called by hand it wants a tensor first."""
    plain = _binary(name, public)

    def method(self, other, **rest):
        if not isinstance(self, Tensor):
            raise TypeError(f"reflected {name}: the first operand must be a Tensor, not "
                            f"{type(self).__name__}")
        return plain(self, other, **rest)

    return method


def _equality(name: str, public: str):
    def method(self, other):
        if isinstance(other, _ndarray):
            other = make(other)
        try:
            return method_packet(name, public)(self, other)
        except TypeError:
            if isinstance(other, (Tensor, int, float, complex, np.generic)):
                raise
            return NotImplemented  # neither is: Python says that they are not the same

    return method


def _swapped(name: str):
    def method(self, other):
        try:
            return getattr(ops, name)(other, self)
        except errors.ArgumentError:
            return NotImplemented

    return method


def _as_operand(value, like: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        return value
    return make(np.asarray(value, dtype=like._payload.dtype))


class Generated:
    """A method that is written for its operator when it is first looked up, before anybody has it.

    It takes this object's place in the class then: whoever asks for it gets the same function.
    """

    def __init__(self, name: str, base: str, overload: str | None, slow):
        self.name, self.base, self.overload, self.slow = name, base, overload, slow

    def __get__(self, instance, owner=None):
        if instance is not None and space["ACTIVE"] != space["WATCHED"]:
            return self.slow.__get__(instance, owner)  # a transform takes the long way anyhow
        function = vars(self).get("function") or vars(self).setdefault("function", self._written())
        if vars(Tensor)[self.name] is self:
            setattr(Tensor, self.name, function)
        return function.__get__(instance, owner)

    def _written(self):
        """The function of an overload, or of a name that has only one, of one argument."""
        from ..eager.fast import compile_fast

        try:
            family, function = method_packet(self.base, self.base).entries(), None
        except (AttributeError, KeyError):  # an entry that was there once
            return self.slow
        if self.overload is not None:
            chosen = f"{self.base}.{self.overload}" if self.overload else self.base
            family = [ov for ov in family if ov.op.full_name == chosen]
        if len(family) == 1 and (self.overload is not None or len(family[0].schema.args) == 1):
            function = compile_fast(family[0], self.slow)
        if function is None:
            return self.slow
        function.__name__, function.__qualname__ = self.name, f"Tensor.{self.name}"
        function.__module__ = __name__  # where pickles find it
        return function


def _operator(dunder: str, base: str, overload: str) -> Generated:
    """A method of Python's for the operator of tensors."""
    slow = _binary(base) if overload else method_of(base)
    slow.__name__, slow.__qualname__ = dunder, f"Tensor.{dunder}"
    return Generated(dunder, base, overload, slow)


REFLECTED = {
    "__radd__": "add",
    "__rmul__": "mul",
    "__rsub__": "rsub",
    "__rand__": "bitwise_and",
    "__ror__": "bitwise_or",
    "__rxor__": "bitwise_xor",
}
PLAIN = {
    "__floordiv__": "floor_divide",
    "__mod__": "remainder",
    "__matmul__": "matmul",
    "__and__": "bitwise_and",
    "__or__": "bitwise_or",
    "__xor__": "bitwise_xor",
    "__lshift__": "bitwise_left_shift",
    "__rshift__": "bitwise_right_shift",
    "__lt__": "lt",
    "__le__": "le",
    "__gt__": "gt",
    "__ge__": "ge",
    "__pow__": "pow",
}
INPLACE = {
    "__iadd__": "add_",
    "__isub__": "sub_",
    "__imul__": "mul_",
    "__itruediv__": "div_",
    "__ifloordiv__": "floor_divide_",
    "__imod__": "remainder_",
    "__ipow__": "pow_",
    "__iand__": "bitwise_and_",
    "__ior__": "bitwise_or_",
    "__ixor__": "bitwise_xor_",
    "__ilshift__": "bitwise_left_shift_",
    "__irshift__": "bitwise_right_shift_",
}
# methods of operators that users know by the operator, not by the name of the method
_KNOWN_BY_OPERATOR = (
    "__rsub__", "__floordiv__", "__pow__", "__ipow__", "__and__", "__or__", "__xor__",
    "__lshift__", "__rshift__",
)  # fmt: skip


def _known_as(dunder: str, name: str) -> str:
    return dunder if dunder in _KNOWN_BY_OPERATOR else name


def method_of(name: str):
    """The method of an operator: the plan for the kinds of its arguments, or the general way."""
    packet, plans = None, {}

    def call(self, *args, **kwargs):
        nonlocal packet, plans
        if not kwargs:
            plan = plans.get((type(self), *map(type, args)))
            if plan is not None:
                return plan(self, *args)
        if packet is None:
            packet = method_packet(name, name)
            plans = packet._plans
        return packet(self, *args, **kwargs)

    call.__name__ = name
    call.__qualname__ = f"Tensor.{name}"
    return call


# Tensor methods named after dtypes. They are no table entries, because an operator called `float`
# would hide Python's own in formulas.
CASTS = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "int": "int32",
    "long": "int64",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "bool": "bool",
    **({"chalf": "complex32"} if "chalf" in dt.ALIASES else {}),
    "cfloat": "complex64",
    "cdouble": "complex128",
}


def cast_method(dtype_name: str):
    """The Tensor method that converts to the named dtype."""
    target = dt.by_name(dtype_name)

    def method(self, memory_format=None):
        if memory_format is None and self.dtype is target:
            return self
        return ops.to(self, target, memory_format=memory_format)

    method.__doc__ = f"Conversion to {target}; the tensor itself if it has that dtype already."
    return overridable(method)


def pointwise(name: str) -> Generated:
    """The method of a pointwise operator."""
    return Generated(name, name, None, method_of(name))


def _as_property(name: str, write=None) -> property:
    """An operator without arguments that users know as an attribute."""
    return property(fact(lambda t: getattr(ops, name)(t)),
                    write and overridable(lambda t, value: write(t, name, value)))


def _set_part(self, name: str, value) -> None:
    """`x.real = ...` and `x.imag = ...` write into the tensor."""
    if not isinstance(value, (Tensor, int, float, complex)):
        raise TypeError(f"can't assign a {type(value).__name__} to a {self.type()}")
    part = getattr(ops, name)(self)
    if isinstance(value, Tensor):
        part.copy_(value)
    else:
        part.fill_(value)


# those that are written in Python: they ask subclasses like all other methods of that kind
WRITTEN = {
    "__rtruediv__": overridable(lambda self, other: self.reciprocal() * other),
    "__rpow__": overridable(_swapped("pow")),
    "__rmatmul__": overridable(_swapped("matmul")),
    "__rlshift__": overridable(_swapped("bitwise_left_shift")),
    "__rrshift__": overridable(_swapped("bitwise_right_shift")),
    "__rfloordiv__": overridable(
        lambda self, other: ops.floor_divide(_as_operand(other, self), self)),
    "__rmod__": overridable(lambda self, other: ops.remainder(_as_operand(other, self), self)),
    "__invert__": overridable(lambda self: ops.bitwise_not(self)),
}
WRITTEN["__rtruediv__"].__name__ = "__rtruediv__"
OPERATORS = {
    **{dunder: _reflected(name, _known_as(dunder, name)) for dunder, name in REFLECTED.items()},
    **{d: _binary(name, _known_as(d, name)) for d, name in (PLAIN | INPLACE).items()},
    **WRITTEN,
    "__rdiv__": WRITTEN["__rtruediv__"],
    "__eq__": _equality("eq", "__eq__"),
    "__ne__": _equality("ne", "ne"),
    "__pos__": method_of("positive"),
    "__abs__": method_of("abs"),
    "__add__": _operator("__add__", "add", "Tensor"),
    "__sub__": _operator("__sub__", "sub", "Tensor"),
    "__mul__": _operator("__mul__", "mul", "Tensor"),
    "__truediv__": _operator("__truediv__", "div", "Tensor"),
    "__neg__": _operator("__neg__", "neg", ""),
}
PROPERTIES = {
    "T": _as_property("numpy_T"),
    "mT": _as_property("mT"),
    "mH": _as_property("mH"),
    "H": _as_property("matrix_H"),
    "real": _as_property("real", _set_part),
    "imag": _as_property("imag", _set_part),
}
