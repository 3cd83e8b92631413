"""Logic and bits of two tensors: logical_and, bitwise_xor, shifts."""

from __future__ import annotations

from ..core.op import Pointwise
from ..table.packets import ops
from .binary import as_tensor, integers, refuse_pair


class _Logic(Pointwise):
    """Two tensors, element by element; any number counts as true or false."""

    promote = "bool"
    nondiff = ("self", "other")
    complex = True
    samples = integers()


class logical_and(_Logic):
    """Whether both elements are nonzero."""
    schema = "logical_and(Tensor self, Tensor other) -> Tensor"
    lower = "pointwise.logical('and')"
    core = True
    run = "xp.logical_and(self, other)"
    c = "({self} != 0) & ({other} != 0)"


class logical_or(_Logic):
    """Whether one of the elements is nonzero."""
    schema = "logical_or(Tensor self, Tensor other) -> Tensor"
    lower = "pointwise.logical('or')"
    core = True
    run = "xp.logical_or(self, other)"
    c = "({self} != 0) | ({other} != 0)"


class logical_xor(_Logic):
    """Whether exactly one of the elements is nonzero."""
    schema = "logical_xor(Tensor self, Tensor other) -> Tensor"
    lower = "pointwise.logical('xor')"
    core = True
    run = "xp.logical_xor(self, other)"
    c = "({self} != 0) ^ ({other} != 0)"


def _bits(name: str, function: str):
    """Kernel of an operator on bits, which only integers (and bools, mostly) have."""
    kinds = "bfc" if name.endswith("shift") else "fc"

    def run(xp, self, other):
        refuse_pair(f"{name}_cpu", self, other, kinds)
        return getattr(xp, function)(self, other)

    return run


class _Bits(Pointwise):
    nondiff = ("self", "other")
    samples = integers()


class _BitsNumber(Pointwise):
    promotes = ("self", "other")
    nondiff = ("self",)
    samples = lambda s: iter([s(s.int(3, 4), 3), s(s.int(), 1)])


class _NumberBits(Pointwise):
    promotes = ("self", "other")
    nondiff = ("other",)
    method = False
    inplace = False
    samples = lambda s: iter([s(3, s.int(3, 4)), s(1, s.int())])


class bitwise_and_Tensor(_Bits):
    """Bits set in both integers."""
    schema = "bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor"
    lower = "pointwise.bitwise('and')"
    core = True
    aliases = ("__and__",)
    run = _bits("bitwise_and", "bitwise_and")
    c = "{self} & {other}"


class bitwise_and_Scalar(_BitsNumber):
    """Bits set in each integer and in a number."""
    schema = "bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor"
    lower = "pointwise.bitwise('and')"
    core = True
    run = _bits("bitwise_and", "bitwise_and")
    c = "{self} & {other}"


class bitwise_and_Scalar_Tensor(_NumberBits):
    """Bits set in a number and in each integer."""
    schema = "bitwise_and.Scalar_Tensor(Scalar self, Tensor other) -> Tensor"
    lower = "pointwise.bitwise('and')"
    run = _bits("bitwise_and", "bitwise_and")
    c = "{self} & {other}"

    def decomp(self, other):
        return ops.bitwise_and(other, self)


class bitwise_or_Tensor(_Bits):
    """Bits set in one of two integers."""
    schema = "bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor"
    lower = "pointwise.bitwise('or')"
    core = True
    aliases = ("__or__",)
    run = _bits("bitwise_or", "bitwise_or")
    c = "{self} | {other}"


class bitwise_or_Scalar(_BitsNumber):
    """Bits set in each integer or in a number."""
    schema = "bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor"
    lower = "pointwise.bitwise('or')"
    core = True
    run = _bits("bitwise_or", "bitwise_or")
    c = "{self} | {other}"


class bitwise_or_Scalar_Tensor(_NumberBits):
    """Bits set in a number or in each integer."""
    schema = "bitwise_or.Scalar_Tensor(Scalar self, Tensor other) -> Tensor"
    lower = "pointwise.bitwise('or')"
    run = _bits("bitwise_or", "bitwise_or")
    c = "{self} | {other}"

    def decomp(self, other):
        return ops.bitwise_or(other, self)


class bitwise_xor_Tensor(_Bits):
    """Bits in which two integers differ."""
    schema = "bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor"
    lower = "pointwise.bitwise('xor')"
    core = True
    aliases = ("__xor__",)
    run = _bits("bitwise_xor", "bitwise_xor")
    c = "{self} ^ {other}"


class bitwise_xor_Scalar(_BitsNumber):
    """Bits in which each integer differs from a number."""
    schema = "bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor"
    lower = "pointwise.bitwise('xor')"
    core = True
    run = _bits("bitwise_xor", "bitwise_xor")
    c = "{self} ^ {other}"


class bitwise_xor_Scalar_Tensor(_NumberBits):
    """Bits in which a number differs from each integer."""
    schema = "bitwise_xor.Scalar_Tensor(Scalar self, Tensor other) -> Tensor"
    lower = "pointwise.bitwise('xor')"
    run = _bits("bitwise_xor", "bitwise_xor")
    c = "{self} ^ {other}"

    def decomp(self, other):
        return ops.bitwise_xor(other, self)


class bitwise_left_shift_Tensor(_Bits):
    """Each integer with its bits moved up; bits that leave are lost."""
    schema = "bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor"
    kept = "bits"
    run = _bits("lshift", "left_shift")
    aliases = ("__lshift__",)


class bitwise_left_shift_Tensor_Scalar(_BitsNumber):
    """Each integer with its bits moved up by a number."""
    schema = "bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor"
    run = _bits("lshift", "left_shift")

    def decomp(self, other):
        return ops.bitwise_left_shift(self, as_tensor(other, self))


class bitwise_left_shift_Scalar_Tensor(_NumberBits):
    """A number with its bits moved up by each integer."""
    schema = "bitwise_left_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor"
    run = _bits("lshift", "left_shift")

    def decomp(self, other):
        return ops.bitwise_left_shift(as_tensor(self, other), other)


class bitwise_right_shift_Tensor(_Bits):
    """Each integer with its bits moved down; the sign is kept."""
    schema = "bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor"
    kept = "bits"
    run = _bits("rshift", "right_shift")
    aliases = ("__rshift__",)


class bitwise_right_shift_Tensor_Scalar(_BitsNumber):
    """Each integer with its bits moved down by a number."""
    schema = "bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor"
    run = _bits("rshift", "right_shift")

    def decomp(self, other):
        return ops.bitwise_right_shift(self, as_tensor(other, self))


class bitwise_right_shift_Scalar_Tensor(_NumberBits):
    """A number with its bits moved down by each integer."""
    schema = "bitwise_right_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor"
    run = _bits("rshift", "right_shift")
    samples = lambda s: iter([s(300, s.int(3, 4)), s(1, s.int())])

    def decomp(self, other):
        return ops.bitwise_right_shift(as_tensor(self, other), other)
