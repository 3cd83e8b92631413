"""What numbers and tensors are: signs, infinities, hashes, sizes; and small relatives of operators
that live elsewhere under another name.

Comparisons are in `ops/compare.py`, `isnan` and its kin in `ops/rounding.py`.
"""

from __future__ import annotations

import math

from ..array import dtype as dt
from ..array.dims import wrap_dims
from ..array.fake import is_fake
from ..core.op import Composite, Creation, Pointwise, Reduction
from ..errors import DTypeError, ShapeError
from ..table.packets import ops
from .batching import dims
from .create import OPTIONS, checked_size, given
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

    def samples(s):
        yield s(s.real(3))
        yield s(s.tensor([1 + 1j, 2 + 0j], dt.complex128))
        yield s(s.int(2, 2))


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


is_conj = _predicate("is_conj", "Whether the tensor is a lazy conjugate; here none is.",
                     lambda self: False)
is_neg = _predicate("is_neg", "Whether the tensor is a lazy negative; here none is.",
                    lambda self: False)
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

    def compose(self, other):
        return tuple(self.shape) == tuple(other.shape)

    def samples(s):
        yield s(s.real(2), s.real(3))


class is_set_to(Composite):
    """Whether two tensors are the same view of the same memory."""
    schema = "is_set_to(Tensor self, Tensor tensor) -> bool"
    function = False

    def compose(self, tensor):
        if tuple(self.shape) != tuple(tensor.shape) or self.dtype is not tensor.dtype:
            return False
        own, other = self._data, tensor._data
        if is_fake(own) and is_fake(other):
            return (own.base or own, own.offset, own.strides) == (
                other.base or other, other.offset, other.strides)
        return self.data_ptr() == tensor.data_ptr() and self.stride() == tensor.stride()

    def samples(s):
        yield s(s.int(2), s.int(2))


class _shape_as_tensor(Composite):
    """The sizes of a tensor as a vector."""
    schema = "_shape_as_tensor(Tensor self) -> Tensor"
    method = False

    def compose(self):
        sizes = [ops.full((1,), n, dtype=dt.int64, device=self.device) for n in self.shape]
        return ops.cat(sizes) if sizes else ops.empty((0,), dtype=dt.int64, device=self.device)

    def samples(s):
        yield s(s.int(2, 3))
        yield s(s.int())


class _dim_arange(Composite):
    """The numbers of the places along a dim."""
    schema = "_dim_arange(Tensor like, int dim) -> Tensor"
    method = False

    def compose(like, dim):
        return ops.arange(like.shape[dim], dtype=dt.int64, device=like.device)

    def samples(s):
        yield s(s.int(2, 3), 1)


# ---------------------------------------------------------------------------------------------
# Under another name


class _stack(Composite):
    """`stack`."""
    schema = "_stack(Tensor[] tensors, int dim=0) -> Tensor"
    method = False
    complex = True

    def compose(tensors, dim):
        return ops.stack(tensors, dim)

    def samples(s):
        yield s([s.real(2), s.real(2)], 1)


class _aminmax(Composite):
    """Smallest and largest of all elements."""
    schema = "_aminmax(Tensor self) -> (Tensor, Tensor)"
    method = False

    def compose(self):
        return tuple(ops.aminmax(self))

    def samples(s):
        yield s(s.real(3, 4))


class _aminmax_dim(Composite):
    """Smallest and largest elements along a dim."""
    schema = "_aminmax.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)"
    method = False

    def compose(self, dim, keepdim):
        return tuple(ops.aminmax(self, dim=dim, keepdim=keepdim))

    def samples(s):
        yield s(s.real(3, 4), 1, True)


class native_norm(Composite):
    """p-norm of all elements."""
    schema = "native_norm(Tensor self, Scalar p=2) -> Tensor"
    method = False

    def compose(self, p):
        return ops.linalg_vector_norm(self, p)

    def samples(s):
        yield s(s.real(3, 4))


class native_norm_ScalarOpt_dim_dtype(Composite):
    """p-norms over some dims."""
    schema = ("native_norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim,"
              " ScalarType? dtype) -> Tensor")
    method = False

    def compose(self, p, dim, keepdim, dtype):
        return ops.linalg_vector_norm(self, 2 if p is None else p, dim, keepdim, dtype=dtype)

    def samples(s):
        yield s(s.real(3, 4), 1, [1], True, None)


class detach_copy(Composite):
    """A copy without history."""
    schema = "detach_copy(Tensor self) -> Tensor"
    tags = ("view_copy",)
    method = False
    complex = True
    unchecked = ("pullback", "pushforward", "second_order")

    def compose(self):
        return self.detach().clone()

    def samples(s):
        yield s(s.real(3, 4))


def _cast(name: str, target: dt.DType):
    """An entry that converts to a dtype, as very old programs do."""
    exact = target.category < 2
    return type(f"_cast_{name}", (Composite,), {
        "__doc__": f"Conversion to {target.name}.",
        "__module__": __name__,
        "schema": f"_cast_{name}(Tensor self, bool non_blocking=False) -> Tensor",
        "method": False,
        "compose": staticmethod(lambda self, non_blocking: self.to(target)),
        "samples": staticmethod(_whole if exact else _question),
        "unchecked": () if target is dt.float64 else ("pullback", "pushforward", "second_order"),
    })


def _whole(s):
    yield s(s.int(2, 3))


CASTS = {"Byte": dt.uint8, "Char": dt.int8, "Double": dt.float64, "Float": dt.float32,
         "Half": dt.float16, "Int": dt.int32, "Long": dt.int64, "Short": dt.int16}
for _name, _target in CASTS.items():
    _cast(_name, _target)


# ---------------------------------------------------------------------------------------------
# Diagonals and ranges


class fill_diagonal_(Composite):
    """Writes a number onto the main diagonal; `wrap` starts again below the square of tall ones."""
    schema = "fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)"
    function = False

    def compose(self, fill_value, wrap):
        if self.ndim < 2:
            raise ShapeError("fill_diagonal_: dimensions must larger than 1, got "
                             f"{self.ndim}")
        if self.ndim > 2 and any(n != self.shape[0] for n in self.shape):
            raise ShapeError("fill_diagonal_: all dimensions of input must be of equal length, got "
                             f"{list(self.shape)}")
        if isinstance(fill_value, complex) and not self.is_complex():
            raise DTypeError("value cannot be converted to type float without overflow")
        places = [ops.arange(n, device=self.device).reshape((n, *(1,) * (self.ndim - d - 1)))
                  for d, n in enumerate(self.shape)]
        if wrap and self.ndim == 2:
            places[0] = places[0] % (self.shape[1] + 1)
        mask = places[0] == places[1]
        for place in places[2:]:
            mask = mask.logical_and(places[0] == place)
        exact = self.dtype.category < 2
        return self.masked_fill_(mask, int(fill_value) if exact else fill_value)

    def samples(s):
        yield s(s.real(4, 3), 0.5)
        yield s(s.real(7, 3), 0.5, True)
        yield s(s.real(2, 2, 2), 0.5)
        yield s(s.real(0, 2), 0.5)


def _range_count(start, end, step) -> int:
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    return checked_size([int((end - start) / step + 1)])[0]


def _range(xp, start, end, step, dtype):
    dtype = dtype or dt.default()
    count = _range_count(start, end, step)
    if dtype.category == 1:
        start, step = int(start), int(step)
    place = xp.arange(count, dtype=xp.int64 if dtype.category == 1 else xp.float64)
    return (start + place * step).astype(dtype.np)


class range_step(Creation):
    """The numbers from `start` up to and including `end`, by steps."""
    schema = f"range.step(Scalar start, Scalar end, Scalar step=1, *, {OPTIONS}) -> Tensor"
    kept = "create"
    dtype = given(3)

    def shape(start, end, step, dtype, layout, device, pin_memory):
        return (_range_count(start, end, step),)

    def run(xp, start, end, step, dtype, layout, device, pin_memory):
        return _range(xp, start, end, step, dtype)

    def samples(s):
        yield s(0, 3)
        yield s(3, 0, -0.5)
