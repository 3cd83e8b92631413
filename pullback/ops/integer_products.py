"""Kernels on 8-bit integers: rounding to them, their products, a linear layer that rounds its input.

The integers are the same with and without the library in C (`compile/integer_loops.py`): products
of blocks in single precision are exact as long as their sums stay below 2**24.
"""

from __future__ import annotations

import math

import numpy as np

BLOCK = 512  # terms of a sum: 255 * 128 * 512 < 2**24
LARGE = 1 << 14  # multiplications that C does, where there is a library
SMALLEST = np.float32(6.1e-5)  # scales below are not told apart in half precision


def rounded(xp, x, scale, zero_point, axis: int, low: int, high: int):
    """Numbers in units of a scale from a zero point on, rounded to even and cut off.

    NaN becomes the highest integer of 8 bits, the lowest of 32, as in the processor."""
    if axis >= 0:
        shape = [1] * x.ndim
        shape[axis] = -1
        scale, zero_point = scale.reshape(shape), zero_point.reshape(shape)
    x = x.astype(xp.float32, copy=False)
    with np.errstate(all="ignore"):
        level = x * (xp.float32(1) / scale.astype(xp.float32))
        level = xp.rint(level + zero_point.astype(xp.float32))
    if high < 1 << 24:
        return xp.fmax(xp.fmin(level, xp.float32(high)), xp.float32(low))
    # single precision has no 2**31 - 1
    whole = xp.where(xp.abs(level) < xp.float32(2.0**31), level, 0).astype(xp.int64)
    whole = xp.where(level >= xp.float32(2.0**31), high, whole)
    return xp.where((level <= xp.float32(low)) | xp.isnan(level), low, whole)


def _loops(work: int):
    """The library in C for some work, and a clock for that which is done without it."""
    from ..compile import integer_loops

    return integer_loops.library() if work >= LARGE else None, integer_loops


def integer_products(xp, a, b):
    """`a @ b.T` of matrices of 8-bit integers, exactly."""
    if xp is not np or not a.size or not b.size:
        return xp.matmul(a.astype(xp.int32), b.astype(xp.int32).T)
    found, loops = _loops(a.size * b.shape[0])
    if found is not None and b.dtype == np.int8:
        return loops.products(found, a, b)
    with loops.timed():
        return _in_blocks(a, b)


def _in_blocks(a, b):
    out = np.zeros((a.shape[0], b.shape[0]), np.int32)
    for k in range(0, a.shape[1], BLOCK):
        part = slice(k, k + BLOCK)
        x, y = a[:, part].astype(np.float32), b[:, part].astype(np.float32)
        if a.dtype == b.dtype == np.uint8:  # may reach 2**25
            x, y = x.astype(np.float64), y.astype(np.float64)
        out += (x @ y.T).astype(np.int32)
    return out


def input_parameters(low: float, high: float, least: int, most: int) -> tuple[float, int]:
    """(scale, zero point) with which integers from `least` to `most` reach from `low` to `high`."""
    low, high = np.float32(min(low, 0.0)), np.float32(max(high, 0.0))
    scale = (float(high) - float(low)) / (most - least)
    with np.errstate(all="ignore"):
        if not np.float32(scale) or np.isinf(np.float32(1) / np.float32(scale)):
            scale = 0.1
    if scale < SMALLEST:
        wide, scale = np.float32(SMALLEST / scale), float(SMALLEST)
        if not low:
            high = np.float32(SMALLEST * (most - least))
        elif not high:
            low = np.float32(-SMALLEST * (most - least))
        else:
            low, high = low * wide, high * wide
    by_low, by_high = least - float(low) / scale, most - float(high) / scale
    off_low = abs(least) + abs(float(low) / scale)
    off_high = abs(most) + abs(float(high) / scale)
    zero = by_low if off_low < off_high else by_high
    if math.isnan(zero):
        return scale, least
    return scale, least if zero < least else most if zero > most else round(zero)


def dynamic_linear(xp, x, weight, scale, zero_point, bias, reduce_range: bool, batch: int):
    """A linear layer of integers; each of the first dims of the input has its own scale."""
    width = weight.shape[1]
    groups = math.prod(x.shape[:batch])
    rows = math.prod(x.shape[batch:-1])
    given = x.reshape(groups, rows, width)
    out = xp.empty((groups, rows, weight.shape[0]), xp.float32)
    if out.size:
        for k in range(groups):
            _one_linear(xp, given[k], weight, scale, zero_point, bias, reduce_range, out[k])
    return out.reshape(*x.shape[:-1], weight.shape[0])


def _one_linear(xp, x, weight, scale, zero_point, bias, reduce_range: bool, out) -> None:
    most = 127 if reduce_range else 255
    if xp is np:
        found, loops = _loops(x.size * weight.shape[0])
        if found is not None and weight.dtype == np.int8:
            low, high = loops.extremes(found, x)
            step, zero = input_parameters(low, high, 0, most)
            loops.linear(found, x, weight, scale, zero_point, bias, step, zero, out)
            return
    low, high = (float(x.min()), float(x.max())) if x.size else (0.0, 0.0)
    step, zero = input_parameters(low, high, 0, most)
    step = xp.float32(step)
    ints = rounded(xp, x, xp.asarray(step), xp.asarray(zero), -1, 0, 255).astype(xp.uint8)
    total = integer_products(xp, ints, weight)
    offsets = zero_point.astype(xp.int32).reshape(-1)
    total -= zero * weight.sum(1, dtype=xp.int32)
    if offsets.any():
        sums = ints.sum(1, dtype=xp.int32)
        total -= (sums[:, None] - x.shape[1] * zero) * offsets
    by = step * scale.astype(xp.float32).reshape(-1)
    if bias is None:
        out[...] = total.astype(xp.float32) * by
    else:  # one rounding, as a processor that multiplies and adds at once
        out[...] = total.astype(xp.float32).astype(xp.float64) * by + bias
