"""Predicates of numbers and of tensors: signs, infinities, whether shapes and memory are the same;
and hashes.

Comparisons are in `ops/compare.py`, `isnan` and its kin in `ops/rounding.py`.
"""

from __future__ import annotations

import math

from ..array import dtype as dt
from ..array.dims import wrap_dims
from ..array.fake import is_fake
from ..core.op import Composite, Pointwise, Reduction
from ..errors import DTypeError
from ..table.packets import ops
from .batching import dims
from .pointwise import refuse
from .reduce import check_size, reduced

# ---------------------------------------------------------------------------------------------
# Of each number


def _edges(s):
    yield s(s.tensor([1.0, -1.0, 0.0, -0.0, math.inf, -math.inf, math.nan], dt.float64))
    yield s(s.int(3, 4, low=-3, high=3))
    yield s(s.bool(3))
    yield s(s.real())
    yield s(s.real(0, 3))


class Question(Pointwise):
    """A truth value about each number."""

    promote = "bool"
    nondiff = ("self",)
    out = ("exact",)
    inplace = False
    samples = _edges


class signbit(Question):
    """Whether the sign bit is set: negative numbers, and -0.0."""
    schema = "signbit(Tensor self) -> Tensor"

    def run(xp, self):
        if self.dtype.kind == "c":
            raise NotImplementedError("signbit is not implemented for complex tensors.")
        return self < 0 if self.dtype.kind in "biu" else xp.signbit(self)

    def decomp(self):
        if not self.is_floating_point():
            return self < 0
        if self.dtype in (dt.float32, dt.float64):
            return self.view(dt.int32 if self.dtype is dt.float32 else dt.int64) < 0
        return self.to(dt.float32).view(dt.int32) < 0


class IsInfinity(Question):
    """Whether a number is one of the infinities."""

    infinity: float

    @classmethod
    def run(cls, xp, self):
        if self.dtype.kind == "c":
            raise DTypeError(f"{cls.base_name} does not support complex inputs.")
        return self == cls.infinity

    @classmethod
    def decomp(cls, self):
        return self == cls.infinity


class isposinf(IsInfinity):
    """Whether a number is positive infinity."""
    schema = "isposinf(Tensor self) -> Tensor"
    infinity = math.inf


class isneginf(IsInfinity):
    """Whether a number is negative infinity."""
    schema = "isneginf(Tensor self) -> Tensor"
    infinity = -math.inf


class isreal(Composite):
    """Whether the imaginary part of a number is zero."""
    schema = "isreal(Tensor self) -> Tensor"

    def compose(self):
        if self.is_complex():
            return ops.imag(self) == 0
        return ops.ones_like(self, dtype=dt.bool_)

    samples = lambda s: [s(s.real(3)), s(s.tensor([1 + 1j, 2 + 0j], dt.complex128)), s(s.int(2, 2))]


# ---------------------------------------------------------------------------------------------
# Of tensors


class hash_tensor(Reduction):
    """Exclusive or of the bits of all elements, as 64-bit integers or floats."""
    schema = ("hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0)"
              " -> Tensor")
    kept = "bits"
    tags = ()
    promote = "keep"
    diff_outputs = (False,)
    dtype = dt.uint64
    shape = lambda self, dim, keepdim, mode: reduced(self.shape, dim, keepdim)
    batch = dims("dim")

    def run(xp, self, dim, keepdim, mode):
        check_size("hash_tensor", self.shape, dim)
        axes = wrap_dims(dim, self.ndim)
        if mode:
            raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
        refuse("xor_sum_cpu", self, "c")
        exact = self.dtype.kind in "biu"
        bits = self.astype(xp.int64) if exact else self.astype(xp.float64).view(xp.int64)
        rows = xp.moveaxis(bits, axes, range(len(axes)))
        rows = xp.reshape(rows, (-1, *rows.shape[len(axes):]) if rows.size
                          else (math.prod(rows.shape[: len(axes)]), *rows.shape[len(axes):]))
        while rows.shape[0] > 1:  # halves onto each other
            half = rows.shape[0] // 2
            rows = xp.concatenate([rows[:half] ^ rows[half : 2 * half], rows[2 * half :]])
        out = rows[0].view(xp.uint64) if rows.ndim > 1 else rows.view(xp.uint64)[0]
        return xp.reshape(xp.asarray(out), reduced(self.shape, dim, keepdim))

    def samples(s):
        yield s(s.int(3, 4))
        yield s(s.int(3, 4), 1)
        yield s(s.int(2, 3, 4), [0, -1], keepdim=True)
        yield s(s.int())
        yield s(s.int(0, 3), 1)


def _predicate(name: str, text: str, answer):
    """An entry for a question about one tensor."""
    return type(name, (Composite,), {
        "__doc__": text,
        "__module__": __name__,
        "schema": f"{name}(Tensor self) -> bool",
        "compose": staticmethod(answer),
        "samples": staticmethod(_question),
    })


def _question(s):
    yield s(s.real(2))


is_conj = _predicate("is_conj", "Whether the conjugation of the elements is put off.",
                     lambda self: self.is_conj())
is_neg = _predicate("is_neg", "Whether the negation of the elements is put off.",
                    lambda self: self.is_neg())
is_signed = _predicate("is_signed", "Whether the dtype has negative numbers.",
                       lambda self: self.dtype.is_signed)
is_inference = _predicate("is_inference", "Whether the tensor was made in inference mode.",
                          lambda self: self.is_inference())
is_distributed = _predicate("is_distributed", "Whether the tensor lives on several machines.",
                            lambda self: False)
_is_zerotensor = _predicate("_is_zerotensor", "Whether the tensor is zeros without memory.",
                            lambda self: False)


class is_same_size(Composite):
    """Whether two tensors have the same shape."""
    schema = "is_same_size(Tensor self, Tensor other) -> bool"
    ahead = True

    def compose(self, other):
        return tuple(self.shape) == tuple(other.shape)

    samples = lambda s: [s(s.real(2), s.real(3))]


class is_set_to(Composite):
    """Whether two tensors are the same view of the same memory."""
    schema = "is_set_to(Tensor self, Tensor tensor) -> bool"
    function = False

    def compose(self, tensor):
        if tuple(self.shape) != tuple(tensor.shape) or self.dtype is not tensor.dtype:
            return False
        own, other = self._payload, tensor._payload
        if is_fake(own) and is_fake(other):
            return (own.base or own, own.offset, own.strides) == (
                other.base or other, other.offset, other.strides)
        return self.data_ptr() == tensor.data_ptr() and self.stride() == tensor.stride()

    samples = lambda s: [s(s.int(2), s.int(2))]
