"""Older names of operators, which programs and graphs still call: casts, norms, ranges that include
their end.

Most are composites of the operators that have replaced them.
"""

from __future__ import annotations

import math

from ..array import dtype as dt
from ..core.op import Composite, Creation
from ..table.packets import ops
from .create import OPTIONS, checked_size, given
from .kinds import ComplexFree, Free, SameTuple, Synonym


def _sample(s):
    yield s(s.real(2))


class _shape_as_tensor(Free):
    """The sizes of a tensor as a vector."""
    schema = "_shape_as_tensor(Tensor self) -> Tensor"

    def compose(self):
        sizes = [ops.full((1,), n, dtype=dt.int64, device=self.device) for n in self.shape]
        return ops.cat(sizes) if sizes else ops.empty((0,), dtype=dt.int64, device=self.device)

    samples = lambda s: [s(s.int(2, 3)), s(s.int())]


class _dim_arange(Free):
    """The numbers of the places along a dim."""
    schema = "_dim_arange(Tensor like, int dim) -> Tensor"

    def compose(like, dim):
        return ops.arange(like.shape[dim], dtype=dt.int64, device=like.device)

    samples = lambda s: [s(s.int(2, 3), 1)]


# ---------------------------------------------------------------------------------------------
# Under another name


class _stack(Synonym):
    """`stack`."""
    schema = "_stack(Tensor[] tensors, int dim=0) -> Tensor"
    method = False
    complex = True
    same_as = "stack"
    samples = lambda s: [s([s.real(2), s.real(2)], 1)]


class _aminmax(SameTuple):
    """Smallest and largest of all elements."""
    schema = "_aminmax(Tensor self) -> (Tensor, Tensor)"
    same_as = "aminmax"
    samples = lambda s: [s(s.real(3, 4))]


class _aminmax_dim(Free):
    """Smallest and largest elements along a dim."""
    schema = "_aminmax.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)"

    def compose(self, dim, keepdim):
        return tuple(ops.aminmax(self, dim=dim, keepdim=keepdim))

    samples = lambda s: [s(s.real(3, 4), 1, True)]


class native_norm(Synonym):
    """p-norm of all elements."""
    schema = "native_norm(Tensor self, Scalar p=2) -> Tensor"
    method = False
    same_as = "linalg_vector_norm"
    samples = lambda s: [s(s.real(3, 4))]


class native_norm_ScalarOpt_dim_dtype(Free):
    """p-norms over some dims."""
    schema = ("native_norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim,"
              " ScalarType? dtype) -> Tensor")

    def compose(self, p, dim, keepdim, dtype):
        return ops.linalg_vector_norm(self, 2 if p is None else p, dim, keepdim, dtype=dtype)

    samples = lambda s: [s(s.real(3, 4), 1, [1], True, None)]


class detach_copy(ComplexFree):
    """A copy without history."""
    schema = "detach_copy(Tensor self) -> Tensor"
    tags = ("view_copy",)
    unchecked = ("pullback", "pushforward", "second_order")

    def compose(self):
        return self.detach().clone()

    samples = lambda s: [s(s.real(3, 4))]


def _cast(name: str, target: dt.DType):
    """An entry that converts to a dtype, as very old programs do."""
    exact = target.category < 2
    return type(f"_cast_{name}", (Composite,), {
        "__doc__": f"Conversion to {target.name}.",
        "__module__": __name__,
        "schema": f"_cast_{name}(Tensor self, bool non_blocking=False) -> Tensor",
        "method": False,
        "compose": staticmethod(lambda self, non_blocking: self.to(target)),
        "samples": staticmethod(_whole if exact else _sample),
        "unchecked": () if target is dt.float64 else ("pullback", "pushforward", "second_order"),
    })


def _whole(s):
    yield s(s.int(2, 3))


CASTS = {"Byte": dt.uint8, "Char": dt.int8, "Double": dt.float64, "Float": dt.float32,
         "Half": dt.float16, "Int": dt.int32, "Long": dt.int64, "Short": dt.int16}
for _name, _target in CASTS.items():
    _cast(_name, _target)


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

    samples = lambda s: [s(0, 3), s(3, 0, -0.5)]
