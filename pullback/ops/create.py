"""Operators that make tensors from sizes and numbers.

What `tensor(data)` does is in `array/data.py`.  Read `sequences.py` and `random.py` next.
"""

from __future__ import annotations

import numpy as np

from ..array import dtype as dt
from ..array.evaluate import rounded
from ..array.layout import arranged, order_like, ordered
from ..array.size import Symbolic
from ..core.op import Creation, Op, Pointwise
from ..table.packets import ops
from .layout import overwritten

# --- sizes only -----------------------------------------------------------------------------------


def checked_size(size) -> tuple[int, ...]:
    """A shape without negative sizes."""
    for n in size:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(size)}")
    return tuple(size)


def given(position: int):
    """Dtype rule: the argument at this position, or the default float."""

    def rule(*args):
        return args[position] or dt.default()

    return rule


def given_or_self(position: int):
    """Dtype rule: the argument at this position, or the dtype of the first tensor."""

    def rule(*args):
        return args[position] or args[0].dtype

    return rule


def made_like(make, like, dtype, memory_format):
    """What `make(shape, dtype)` gives for the shape and the layout of another array."""
    np_dtype = like.dtype if dtype is None else dtype.np
    return ordered(lambda shape: make(shape, np_dtype), like.shape, order_like(like, memory_format))


OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


class empty(Creation):
    """A tensor whose elements are whatever was in memory."""

    schema = f"empty.memory_format(SymInt[] size, *, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor"
    lower = "pointwise.fill(0)"
    core = True
    shape = "tuple(size)"
    dtype = given(1)

    def run(xp, size, dtype, layout, device, pin_memory, memory_format):
        made = xp.empty(checked_size(size), (dtype or dt.default()).np)
        return made if memory_format is None else arranged(made, memory_format)


class Filled(Creation):
    """A tensor of given sizes full of one value."""

    value: int
    shape = "tuple(size)"
    dtype = given(1)

    @classmethod
    def decomp(cls, size, dtype, layout, device, pin_memory):
        return ops.full(size, cls.value, dtype=dtype or dt.default(), device=device)


class Like(Creation):
    """A tensor of the shape and the layout of another."""

    method = False
    shape = "tuple(self.shape)"
    nondiff = ("self",)


class FilledLike(Like):
    """A tensor like another full of one value, or of none that is known."""

    value: int
    dtype = given_or_self(1)

    @classmethod
    def batch(cls, n, batched, self, dtype, layout, device, pin_memory, memory_format):
        return getattr(ops, cls.base_name)(self, dtype=dtype, device=device)

    @classmethod
    def decomp(cls, self, dtype, layout, device, pin_memory, memory_format):
        return ops.full_like(self, cls.value, dtype=dtype, device=device)


class New(Creation):
    """A tensor of given sizes with the dtype of another."""

    function = False
    shape = "tuple(size)"
    nondiff = ("self",)


class FilledNew(New):
    """A new tensor full of one value, or of none that is known."""

    value: int
    dtype = given_or_self(2)

    @classmethod
    def batch(cls, n, batched, self, size, dtype, layout, device, pin_memory):
        return getattr(ops, cls.base_name)(self, (n, *size), dtype=dtype, device=device)

    @classmethod
    def decomp(cls, self, size, dtype, layout, device, pin_memory):
        return ops.full(size, cls.value, dtype=dtype or self.dtype, device=device or self.device)


class zeros(Filled):
    """A tensor of zeros."""

    schema = f"zeros(SymInt[] size, *, {OPTIONS}) -> Tensor"
    lower = "pointwise.fill(0)"
    value = 0

    def run(xp, size, dtype, layout, device, pin_memory):
        return xp.zeros(checked_size(size), (dtype or dt.default()).np)

    samples = lambda s: [s((2, 3)), s(()), s((0, 3))]


class ones(Filled):
    """A tensor of ones."""

    schema = f"ones(SymInt[] size, *, {OPTIONS}) -> Tensor"
    lower = "pointwise.fill(1)"
    value = 1

    def run(xp, size, dtype, layout, device, pin_memory):
        return xp.ones(checked_size(size), (dtype or dt.default()).np)

    samples = lambda s: [s((2, 3)), s(())]


def fill_number(dtype: dt.DType, value):
    """A number as an element of a dtype: fractions are cut off for integers, too large ones are
    refused.
    """
    if isinstance(value, Symbolic):  # data are made of it: it is the number that it is here
        value = value.node.pytype(value)
    if isinstance(value, complex) and not dtype.is_complex:
        if dtype.category == 0:
            return value != 0
        raise _overflow(dtype)
    if dtype.category == 1 and not isinstance(value, bool):
        if not dt.holds(dtype, value):
            raise _overflow(dtype)
        return int(value) if dtype.is_signed else int(value) % (np.iinfo(dtype.np).max + 1)
    if dtype.category >= 2 and not dt.holds(dtype, value):
        raise _overflow(dtype)
    return bool(value) if dtype.category == 0 else value


def _overflow(dtype: dt.DType) -> RuntimeError:
    return RuntimeError(f"value cannot be converted to type {dtype.name} without overflow")


def as_number(array, value):
    """A number as an element of an array."""
    return fill_number(dt.of(array.dtype), value)


class full(Creation):
    """A tensor of one number."""

    schema = f"full(SymInt[] size, Scalar fill_value, *, {OPTIONS}) -> Tensor"
    lower = "pointwise.fill('full')"
    core = True
    shape = "tuple(size)"

    def dtype(size, fill_value, dtype, layout, device, pin_memory):
        return dtype or dt.of_scalar(fill_value)

    def run(xp, size, fill_value, dtype, layout, device, pin_memory):
        dtype = dtype or dt.of_scalar(fill_value)
        return xp.full(checked_size(size), fill_number(dtype, fill_value), dtype.np)

    samples = lambda s: [s((2, 3), 1.5), s((2, 3), 7), s((), True)]


class empty_like(FilledLike):
    """An uninitialised tensor like another."""

    schema = f"empty_like(Tensor self, *, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor"
    lower = "pointwise.fill(0)"

    def run(xp, self, dtype, layout, device, pin_memory, memory_format):
        return made_like(xp.empty, self, dtype, memory_format)

    def decomp(self, dtype, layout, device, pin_memory, memory_format):
        return ops.empty(self.shape, dtype=dtype or self.dtype, device=device or self.device)


class zeros_like(FilledLike):
    """Zeros like another tensor."""

    schema = f"zeros_like(Tensor self, *, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor"
    lower = "pointwise.fill(0)"
    value = 0

    def run(xp, self, dtype, layout, device, pin_memory, memory_format):
        return made_like(xp.zeros, self, dtype, memory_format)

    samples = lambda s: [s(s.real(2, 3)), s(s.real())]


class ones_like(FilledLike):
    """Ones like another tensor."""

    schema = f"ones_like(Tensor self, *, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor"
    lower = "pointwise.fill(1)"
    value = 1

    def run(xp, self, dtype, layout, device, pin_memory, memory_format):
        return made_like(xp.ones, self, dtype, memory_format)

    samples = lambda s: [s(s.real(2, 3)), s(s.real())]


class full_like(Like):
    """One number everywhere, like another tensor."""

    schema = (
        f"full_like(Tensor self, Scalar fill_value, *, {OPTIONS}, "
        "MemoryFormat? memory_format=None) -> Tensor"
    )
    lower = "pointwise.fill('full')"
    core = True
    dtype = given_or_self(2)

    def run(xp, self, fill_value, dtype, layout, device, pin_memory, memory_format):
        dtype = dtype or dt.of(self.dtype)
        value = fill_number(dtype, fill_value)
        full = lambda shape, kind: xp.full(shape, value, kind)
        return made_like(full, self, dtype, memory_format)

    def batch(n, batched, self, fill_value, dtype, layout, device, pin_memory, memory_format):
        return ops.full_like(self, fill_value, dtype=dtype, device=device)

    samples = lambda s: [s(s.real(2, 3), 1.5), s(s.real(2, 3).T, 2)]


class new_empty(FilledNew):
    """An uninitialised tensor with the dtype of another."""

    schema = f"new_empty(Tensor self, SymInt[] size, *, {OPTIONS}) -> Tensor"
    lower = "pointwise.fill(0)"

    def run(xp, self, size, dtype, layout, device, pin_memory):
        return xp.empty(checked_size(size), dtype.np if dtype else self.dtype)

    def decomp(self, size, dtype, layout, device, pin_memory):
        return ops.empty(size, dtype=dtype or self.dtype, device=device or self.device)


class new_zeros(FilledNew):
    """Zeros with the dtype of another tensor."""

    schema = f"new_zeros(Tensor self, SymInt[] size, *, {OPTIONS}) -> Tensor"
    lower = "pointwise.fill(0)"
    value = 0

    def run(xp, self, size, dtype, layout, device, pin_memory):
        return xp.zeros(checked_size(size), dtype.np if dtype else self.dtype)

    samples = lambda s: [s(s.real(2), (2, 3)), s(s.real(2), ())]


class new_ones(FilledNew):
    """Ones with the dtype of another tensor."""

    schema = f"new_ones(Tensor self, SymInt[] size, *, {OPTIONS}) -> Tensor"
    lower = "pointwise.fill(1)"
    value = 1

    def run(xp, self, size, dtype, layout, device, pin_memory):
        return xp.ones(checked_size(size), dtype.np if dtype else self.dtype)

    samples = lambda s: [s(s.real(2), (2, 3))]


class new_full(New):
    """One number everywhere, with the dtype of another tensor."""

    schema = f"new_full(Tensor self, SymInt[] size, Scalar fill_value, *, {OPTIONS}) -> Tensor"
    dtype = given_or_self(3)

    def run(xp, self, size, fill_value, dtype, layout, device, pin_memory):
        dtype = dtype or dt.of(self.dtype)
        return xp.full(checked_size(size), fill_number(dtype, fill_value), dtype.np)

    def batch(n, batched, self, size, fill_value, dtype, layout, device, pin_memory):
        return self.new_full((n, *size), fill_value, dtype=dtype, device=device)

    def decomp(self, size, fill_value, dtype, layout, device, pin_memory):
        device = device or self.device
        return ops.full(size, fill_value, dtype=dtype or self.dtype, device=device)

    samples = lambda s: [s(s.real(2), (2, 3), 1.5)]


def _strided_empty(xp, size, stride, np_dtype):
    size = checked_size(size)
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported, got {list(stride)}")
    memory = xp.empty(_extent(size, stride), np_dtype)
    steps = tuple(s * memory.itemsize for s in stride)
    return xp.lib.stride_tricks.as_strided(memory, size, steps)


def _extent(size, stride) -> int:
    """How many elements the memory of such a tensor has."""
    return 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))


class empty_strided(Creation):
    """An uninitialised tensor with given strides."""

    schema = f"empty_strided(SymInt[] size, SymInt[] stride, *, {OPTIONS}) -> Tensor"
    core = True
    dtype = given(2)
    shape = "tuple(size)"

    def run(xp, size, stride, dtype, layout, device, pin_memory):
        return _strided_empty(xp, size, stride, (dtype or dt.default()).np)


class new_empty_strided(New):
    """An uninitialised tensor with given strides and the dtype of another."""

    schema = (
        f"new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, {OPTIONS}) -> Tensor"
    )
    kept = "create"
    dtype = given_or_self(3)

    def run(xp, self, size, stride, dtype, layout, device, pin_memory):
        return _strided_empty(xp, size, stride, dtype.np if dtype else self.dtype)

    def batch(n, batched, self, size, stride, dtype, layout, device, pin_memory):
        if len(size) != len(stride):
            raise RuntimeError("dimensionality of sizes and strides must match")
        return self.new_empty_strided((n, *size), (_extent(size, stride), *stride), dtype=dtype,
                                      device=device)


class empty_permuted(Creation):
    """An uninitialised tensor whose dims lie in memory in the given order."""

    schema = f"empty_permuted(SymInt[] size, int[] physical_layout, *, {OPTIONS}) -> Tensor"
    kept = "create"
    dtype = given(2)
    shape = "tuple(size)"

    def run(xp, size, physical_layout, dtype, layout, device, pin_memory):
        order = [d + len(size) if d < 0 else d for d in physical_layout]
        if sorted(order) != list(range(len(size))):
            raise RuntimeError(
                f"Number of dimensions in size, {len(size)}, must fit physical_layout, a "
                f"permutation of its dims, but got {list(physical_layout)}"
            )
        memory = xp.empty(tuple(size[d] for d in order), (dtype or dt.default()).np)
        return memory.transpose([order.index(d) for d in range(len(size))])


# --- matrices and numbers -------------------------------------------------------------------------


class eye(Creation):
    """The identity matrix."""

    schema = f"eye(SymInt n, *, {OPTIONS}) -> Tensor"
    lower = "index.eye"
    dtype = given(1)
    shape = "(n, n)"

    def run(xp, n, dtype, layout, device, pin_memory):
        return _eye(xp, n, n, dtype)

    def decomp(n, dtype, layout, device, pin_memory):
        return _eye_of_ranges(n, n, dtype, device)

    samples = lambda s: [s(3), s(0)]


class eye_m(Creation):
    """Ones on the diagonal of a matrix, zeros elsewhere."""

    schema = f"eye.m(SymInt n, SymInt m, *, {OPTIONS}) -> Tensor"
    lower = "index.eye"
    dtype = given(2)
    shape = "(n, m)"

    def run(xp, n, m, dtype, layout, device, pin_memory):
        return _eye(xp, n, m, dtype)

    def decomp(n, m, dtype, layout, device, pin_memory):
        return _eye_of_ranges(n, m, dtype, device)

    samples = lambda s: [s(3, 4)]


def _eye(xp, n: int, m: int, dtype):
    for value in (n, m):
        if value < 0:
            raise RuntimeError(f"n must be greater or equal to 0, got {value}")
    return xp.eye(n, m, dtype=(dtype or dt.default()).np)


def _eye_of_ranges(n, m, dtype, device):
    rows = ops.arange(0, n, 1, device=device).unsqueeze(-1)
    return (rows == ops.arange(0, m, 1, device=device)).to(dtype or dt.default())


def wrapped_number(dtype: dt.DType, value):
    """A number beside tensors of a dtype: in half precision it may be infinite."""
    if not dtype.is_floating_point or dtype.itemsize > 2:
        return fill_number(dtype, value)
    number = fill_number(dt.float64, value)
    return rounded(number, dtype.np) if dtype.itemsize == 2 else number


class scalar_tensor(Creation):
    """A 0-d tensor with one number."""

    schema = f"scalar_tensor(Scalar s, *, {OPTIONS}) -> Tensor"
    lower = "pointwise.fill('scalar')"
    core = True
    dtype = given(1)
    shape = "()"

    def run(xp, s, dtype, layout, device, pin_memory):
        dtype = dtype or dt.default()
        return xp.full((), wrapped_number(dtype, s), dtype.np)

    samples = lambda s: [s(1.5)]


class TriangleIndices(Creation):
    """Row and column of each element of a triangle of a matrix."""

    below: bool  # the lower triangle?
    kept = "create"

    def dtype(row, col, offset, dtype, layout, device, pin_memory):
        return dtype or dt.int64

    @classmethod
    def shape(cls, row, col, offset, *options):
        size = sum(min(max(i + offset + cls.below, 0), col) for i in range(row))
        return (2, size if cls.below else row * col - size)

    @classmethod
    def run(cls, xp, row, col, offset, dtype, *options):
        for name, value in (("row", row), ("col", col)):
            if value < 0:
                raise RuntimeError(f"{name} must be non-negative, got{value}")
        indices = xp.tril_indices if cls.below else xp.triu_indices
        return xp.stack(indices(row, offset, col)).astype((dtype or dt.int64).np)

    samples = lambda s: [s(3, 4), s(4, 3, -1), s(3, 3, 2)]


LONG_OPTIONS = OPTIONS.replace("dtype=None", "dtype=long")


class tril_indices(TriangleIndices):
    """Row and column of each element of a lower triangle."""

    schema = f"tril_indices(int row, int col, int offset=0, *, {LONG_OPTIONS}) -> Tensor"
    below = True


class triu_indices(TriangleIndices):
    """Row and column of each element of an upper triangle."""

    schema = f"triu_indices(int row, int col, int offset=0, *, {LONG_OPTIONS}) -> Tensor"
    below = False


# --- filling --------------------------------------------------------------------------------------


class _Fill:
    """The shape of a tensor filled with a value; what was there does not matter."""

    complex = True
    constant = ("self",)
    cost = "create"


class fill_Tensor(_Fill, Op):
    """The shape of `self` filled with a 0-d tensor."""

    schema = "fill.Tensor(Tensor self, Tensor value) -> Tensor"
    lower = "pointwise.fill_tensor"
    memory_format = "self"
    number = 1
    inplace_node = "FillBackward3"
    inplace = True
    linear = ("value",)
    shape = "tuple(self.shape)"
    grad = {"value": "grad.sum()"}

    def run(xp, self, value):
        if value.ndim:
            raise RuntimeError(
                "fill_ only supports 0-dimension value tensor "
                f"but got tensor with {value.ndim} dimensions."
            )
        return xp.full_like(self, value if self.dtype.kind in "cV" else value.real)

    def decomp(self, value):
        if value.ndim:
            return NotImplemented  # the kernel refuses it
        return ops.copy(self, value)

    def batch(n, batched, self, value):
        if not batched[0]:
            self = self.unsqueeze(0).expand((n, *self.shape))
        if batched[1]:
            value = value.view((n, *(1,) * (self.ndim - 1)))
        return ops.copy(self, value)

    samples = lambda s: [s(s.real(2, 3), s.real()), s(s.real(), s.real())]


class fill_Scalar(_Fill, Pointwise):
    """The shape of `self` filled with a number."""

    ordered = False
    schema = "fill.Scalar(Tensor self, Scalar value) -> Tensor"
    uniform = True
    lower = "pointwise.fill_tensor"
    tags = ()
    core = "apart"
    number = 0
    inplace_node = "FillBackward2"
    promote = "same"
    c = "{value}"

    def run(xp, self, value):
        return xp.full_like(self, as_number(self, value))

    def fill(self, value):
        return overwritten(self, as_number(self, value))

    def decomp(self, value):
        return ops.full_like(self, value)

    samples = lambda s: [s(s.real(2, 3), 1.5), s(s.real(), 2)]


class zero(_Fill, Pointwise):
    """The shape of `self` filled with zeros."""

    ordered = False
    schema = "zero(Tensor self) -> Tensor"
    uniform = True
    tags = ()
    promote = "same"
    c = "0"
    run = "xp.zeros_like(self)"

    def fill(self):
        return overwritten(self, 0)

    def decomp(self):
        return ops.full_like(self, 0)

    samples = lambda s: [s(s.real(2, 3))]
