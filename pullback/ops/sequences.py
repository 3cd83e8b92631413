"""Sequences of numbers: `arange`, `linspace` and `logspace`, from numbers and from tensors.

Read `create.py` first: operators that make tensors from sizes.
"""

from __future__ import annotations

import math

import numpy as np

from ..array import dtype as dt
from ..array.random import _scale
from ..array.size import hinted, holds, whole
from ..core.op import Composite, Creation
from ..errors import BadValue, DataDependentError
from ..table.packets import ops
from ..threads.state import in_passing
from .create import OPTIONS


def range_dtype(dtype, *numbers) -> dt.DType:
    """Integers give int64, anything else the default float."""
    if dtype is not None:
        return dtype
    whole = all(isinstance(hinted(v), int) for v in numbers)
    return dt.int64 if whole else dt.default()


def range_count(start, end, step) -> int:
    """Number of elements of `arange`."""
    if step == 0:
        raise RuntimeError("step must be nonzero")
    for value in (start, end):
        if isinstance(value, float) and not math.isfinite(value):
            raise RuntimeError(f"unsupported range: {start} -> {end}")
    if not holds(end >= start if step > 0 else end <= start):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if all(isinstance(hinted(v), int) for v in (start, end, step)):
        return -((start - end) // step)
    return math.ceil((end - start) / step)


def _range(start, end, step, dtype: dt.DType):
    """(start, step, number of elements): int64 counts in whole numbers, others before they cut."""
    if dtype is dt.int64:
        if step != 0 and whole(step) == 0:
            raise BadValue("step must be nonzero")
        start, end, step = whole(start), whole(end), whole(step)
    count = range_count(start, end, step)
    return (whole(start), whole(step), count) if dtype.category == 1 else (start, step, count)


def _arange(xp, start, end, step, dtype):
    dtype = range_dtype(dtype, start, end, step)
    start, step, count = _range(start, end, step, dtype)
    place = xp.arange(count, dtype=xp.int64 if dtype.category == 1 else xp.float64)
    return (start + place * step).astype(dtype.np)


def _range_shape(start, end, step, dtype) -> tuple[int]:
    return (_range(start, end, step, range_dtype(dtype, start, end, step))[2],)


class arange(Creation):
    """The numbers from 0 up to but not including `end`."""

    schema = f"arange(Scalar end, *, {OPTIONS}) -> Tensor"
    lower = "pointwise.arange"

    def dtype(end, dtype, layout, device, pin_memory):
        return range_dtype(dtype, end)

    def shape(end, dtype, layout, device, pin_memory):
        return _range_shape(0, end, 1, dtype)

    def run(xp, end, dtype, layout, device, pin_memory):
        return _arange(xp, 0, end, 1, dtype)

    def decomp(end, dtype, layout, device, pin_memory):
        return ops.arange(0, end, 1, dtype=dtype, device=device)

    samples = lambda s: [s(5), s(4.5), s(0)]


class arange_start(Creation):
    """The numbers from `start` up to but not including `end`."""

    schema = f"arange.start(Scalar start, Scalar end, *, {OPTIONS}) -> Tensor"
    lower = "pointwise.arange"

    def dtype(start, end, dtype, layout, device, pin_memory):
        return range_dtype(dtype, start, end)

    def shape(start, end, dtype, layout, device, pin_memory):
        return _range_shape(start, end, 1, dtype)

    def run(xp, start, end, dtype, layout, device, pin_memory):
        return _arange(xp, start, end, 1, dtype)

    def decomp(start, end, dtype, layout, device, pin_memory):
        return ops.arange(start, end, 1, dtype=dtype, device=device)

    samples = lambda s: [s(2, 6), s(-1.5, 2)]


class arange_start_step(Creation):
    """The numbers from `start` up to but not including `end`, by steps."""

    schema = f"arange.start_step(Scalar start, Scalar end, Scalar step=1, *, {OPTIONS}) -> Tensor"
    lower = "pointwise.arange"
    core = True

    def dtype(start, end, step, dtype, layout, device, pin_memory):
        return range_dtype(dtype, start, end, step)

    def shape(start, end, step, dtype, layout, device, pin_memory):
        return _range_shape(start, end, step, dtype)

    def run(xp, start, end, step, dtype, layout, device, pin_memory):
        return _arange(xp, start, end, step, dtype)

    samples = lambda s: [s(0, 10, 3), s(5, 0, -2), s(0, 1, 0.1)]


def _steps(steps: int) -> int:
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    return steps


def _linspace(xp, start, end, steps: int, dtype: dt.DType):
    """Even steps, counted from both ends so that both are exact."""
    _steps(steps)
    if dtype.category == 1:
        if steps < 2:
            return xp.full(steps, int(start), dtype.np)
        start, end = int(start), int(end)
        # PyTorch takes the step in single precision, and cuts fractions off
        step = np.float32(np.float32(end - start) / np.float32(steps - 1))
        place = xp.arange(steps)
        up = start + (step * place.astype(xp.float32)).astype(xp.float32)
        down = end - (step * (steps - 1 - place).astype(xp.float32)).astype(xp.float32)
        return xp.where(place < steps // 2, up, down).astype(dtype.np)
    work = xp.float32 if dtype.itemsize < 4 else dtype.np.type
    if steps == 1:
        return xp.full(1, start, dtype.np)
    start, end = work(start), work(end)
    step = (end - start) / work(max(steps - 1, 1))
    place = xp.arange(steps)
    if dtype.category == 3:
        up = start + step * place.astype(work)
        down = end - step * (steps - 1 - place).astype(work)
    else:  # each number is rounded once, as PyTorch's fused multiply-adds do
        up = _scale(place.astype(work), step, start)
        down = _scale((steps - 1 - place).astype(work), -step, end)
    return xp.where(place < steps // 2, up, down).astype(dtype.np)


def _number_dtype(dtype, *numbers) -> dt.DType:
    """Dtype of linspace: the default float, complex if a number is."""
    if dtype is not None:
        return dtype
    return (
        dt.default().to_complex() if any(isinstance(v, complex) for v in numbers) else dt.default()
    )


# The overloads for tensors come first: a 0-d tensor would pass for a number.


@in_passing
def _from_tensors(name: str, start, end, steps, base, dtype, device):
    """linspace or logspace whose ends are 0-d tensors, of known or unknown value."""
    for value in (start, end):
        if hasattr(value, "_edge") and value.ndim:
            raise RuntimeError(f"{name} only supports 0-dimensional start and end tensors")
    try:
        ends = [v.item() if hasattr(v, "_edge") else v for v in (start, end)]
    except DataDependentError:
        return _unknown_ends(start, end, steps, base, dtype)
    return getattr(ops, name)(*ends, steps, *base, dtype=dtype, device=device)


def _unknown_ends(start, end, steps, base, dtype):
    """The same as arithmetic, where the ends have no single value."""
    ends = (v.dtype.is_complex if hasattr(v, "_edge") else type(v) is complex for v in (start, end))
    kind = dtype or (dt.default().to_complex() if any(ends) else dt.default())
    work = kind if kind.category > 1 else dt.float32
    if base and not kind.is_complex:
        work = dt.float64  # powers magnify the rounding of their exponents
    like = start if hasattr(start, "_edge") else end
    start, end = (v.to(work) if hasattr(v, "_edge") else v + 0 for v in (start, end))
    place = ops.arange(0, _steps(steps), 1, device=like.device)
    step = (end - start) / max(steps - 1, 1)
    up, down = place.to(work) * step + start, end - (steps - 1 - place).to(work) * step
    line = ops.where(place < max(steps // 2, int(steps == 1)), up, down)
    if base:
        line = ops.pow(base[0], line)
    return line.to(kind)


class _Line(Composite):
    """`linspace` of which some end is a tensor."""

    method = False

    def compose(start, end, steps, dtype, layout, device, pin_memory):
        return _from_tensors("linspace", start, end, steps, (), dtype, device)


class _Powers(Composite):
    """`logspace` of which some end is a tensor."""

    method = False

    def compose(start, end, steps, base, dtype, layout, device, pin_memory):
        return _from_tensors("logspace", start, end, steps, (base,), dtype, device)


class linspace_Tensor_Tensor(_Line):
    """`linspace` between 0-d tensors."""

    schema = f"linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, {OPTIONS}) -> Tensor"
    samples = lambda s: [s(s.int(), s.int(), 5)]


class linspace_Tensor_Scalar(_Line):
    """`linspace` from a 0-d tensor."""

    schema = f"linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, {OPTIONS}) -> Tensor"
    samples = lambda s: [s(s.int(), 3.5, 5)]


class linspace_Scalar_Tensor(_Line):
    """`linspace` to a 0-d tensor."""

    schema = f"linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, {OPTIONS}) -> Tensor"
    samples = lambda s: [s(0, s.int(), 5)]


class logspace_Tensor_Tensor(_Powers):
    """`logspace` between 0-d tensors."""

    schema = f"logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10.0, *, {OPTIONS}) -> Tensor"
    samples = lambda s: [s(s.int(), s.int(), 5)]


class logspace_Tensor_Scalar(_Powers):
    """`logspace` from a 0-d tensor."""

    schema = f"logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10.0, *, {OPTIONS}) -> Tensor"
    samples = lambda s: [s(s.int(), 3.5, 5)]


class logspace_Scalar_Tensor(_Powers):
    """`logspace` to a 0-d tensor."""

    schema = f"logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10.0, *, {OPTIONS}) -> Tensor"
    samples = lambda s: [s(0, s.int(), 5)]


class linspace(Creation):
    """Numbers in even steps from start to end, both included."""

    schema = f"linspace(Scalar start, Scalar end, int steps, *, {OPTIONS}) -> Tensor"

    def dtype(start, end, steps, dtype, layout, device, pin_memory):
        return _number_dtype(dtype, start, end)

    def shape(start, end, steps, dtype, layout, device, pin_memory):
        return (_steps(steps),)

    def run(xp, start, end, steps, dtype, layout, device, pin_memory):
        return _linspace(xp, start, end, steps, _number_dtype(dtype, start, end))

    def decomp(start, end, steps, dtype, layout, device, pin_memory):
        kind = _number_dtype(dtype, start, end)
        if steps < 2:
            return ops.full((_steps(steps),), start, dtype=kind, device=device)
        work = dt.float32 if kind.category == 1 else kind
        if kind.category == 1:
            start, end = int(start), int(end)
        step = (end - start) / (steps - 1)
        place = ops.arange(0, steps, 1, device=device)
        up = place.to(work) * step + start
        down = end - (steps - 1 - place).to(work) * step
        return ops.where(place < steps // 2, up, down).to(kind)

    samples = lambda s: [s(0, 1, 5), s(-1.5, 2, 4), s(1, 2, 1), s(0, 1, 0)]


class logspace(Creation):
    """Powers of a base with exponents in even steps."""

    schema = (
        f"logspace(Scalar start, Scalar end, int steps, float base=10.0, *, {OPTIONS}) -> Tensor"
    )

    def dtype(start, end, steps, base, dtype, layout, device, pin_memory):
        return _number_dtype(dtype, start, end)

    def shape(start, end, steps, base, dtype, layout, device, pin_memory):
        return (_steps(steps),)

    def run(xp, start, end, steps, base, dtype, layout, device, pin_memory):
        kind = _number_dtype(dtype, start, end)
        wide = dt.complex128 if kind.is_complex else dt.float64
        with np.errstate(all="ignore"):
            return xp.power(base, _linspace(xp, start, end, steps, wide)).astype(kind.np)

    def decomp(start, end, steps, base, dtype, layout, device, pin_memory):
        kind = _number_dtype(dtype, start, end)
        wide = dt.complex128 if kind.is_complex else dt.float64
        exponents = ops.linspace(start, end, steps, dtype=wide, device=device)
        return ops.pow(base, exponents).to(kind)

    samples = lambda s: [s(0, 2, 5), s(-1, 1, 3, 2.0)]
