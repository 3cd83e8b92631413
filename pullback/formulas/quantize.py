"""Fake quantisation in terms of operators, and its straight-through derivatives.

Rounding has no useful slope, so it is passed over: inside the range the derivative by the input is
1, outside 0, and what scale and zero point do to the rounded value counts.  Entries are in
`ops/quantize.py`.
"""

from __future__ import annotations

from ..array import dtype as dt
from ..array.dims import wrap_dim
from ..table.packets import ops


def along_axis(parameter, x, axis):
    """One parameter for each channel, shaped to broadcast; a single one without axis."""
    if axis is None:
        return parameter.reshape((-1,)).select(0, 0) if parameter.ndim else parameter
    shape = [1] * x.ndim
    shape[wrap_dim(axis, x.ndim)] = parameter.numel()
    return parameter.reshape(shape)


def fake_quantized(x, scale, zero_point, quant_min, quant_max):
    """(values that `x` is rounded to, mask of what lies in range); parameters broadcast.

    Whole zero points are added after rounding, others before, as PyTorch does.
    """
    work = x if x.dtype is dt.float64 else x.to(dt.float32)
    steps = work * (1 / scale)
    if getattr(zero_point, "dtype", dt.int64).category == 1:
        level = steps.round() + zero_point
    else:
        level = (steps + zero_point).round()
    inside = (level >= quant_min).logical_and(level <= quant_max)
    level = level.masked_fill(level.isnan(), quant_min).clamp(quant_min, quant_max)
    return ((level - zero_point) * scale).to(x.dtype), inside


def _learnable_slopes(x, scale, zero_point, axis, quant_min, quant_max):
    """Derivatives of the rounded value by input, scale and zero point, element by element."""
    scale = along_axis(scale, x, axis)
    zero = along_axis(zero_point, x, axis).round().clamp(quant_min, quant_max)
    level = (x * (1 / scale) + zero).round()
    below, above = level < quant_min, level > quant_max
    inside = below.logical_or(above).logical_not()
    rounding = ((level - zero) * scale - x) * (1 / scale)
    by_scale = ops.where(below, quant_min - zero, ops.where(above, quant_max - zero, rounding))
    by_zero = ops.where(inside, ops.zeros_like(scale), -scale)
    return inside.to(x.dtype), by_scale, by_zero


def learnable_pullback(grad, x, scale, zero_point, axis, quant_min, quant_max, grad_factor):
    """Gradients of input, scale and zero point; those of the parameters times `grad_factor`."""
    slopes = _learnable_slopes(x, scale, zero_point, axis, quant_min, quant_max)
    if axis is None:
        over = list(range(x.ndim))
    else:
        axis = wrap_dim(axis, x.ndim)
        over = [d for d in range(x.ndim) if d != axis]
    totals = [_total(grad * slope, over) * grad_factor for slope in slopes[1:]]
    return (grad * slopes[0], totals[0].reshape(scale.shape), totals[1].reshape(zero_point.shape))


def _total(x, dims):
    return x.sum(dims) if dims else x


def learnable_push(x_p, x_t, scale_p, scale_t, zero_p, zero_t, axis, quant_min, quant_max,
                   grad_factor):
    """The same derivatives, forward."""
    slopes = _learnable_slopes(x_p, scale_p, zero_p, axis, quant_min, quant_max)
    moved = (slopes[1] * along_axis(scale_t, x_p, axis)
             + slopes[2] * along_axis(zero_t, x_p, axis)) * grad_factor
    return slopes[0] * x_t + moved.to(x_t.dtype)


def dequantized(integers, scale, zero_point, axis):
    """The numbers that integers stand for; parameters are for all of them, or along an axis."""
    if scale.numel() == 1 or axis is None:
        scale, zero_point = scale.reshape(()), zero_point.reshape(())
    else:
        scale = along_axis(scale, integers, axis)
        zero_point = along_axis(zero_point, integers, axis)
    if zero_point.dtype.is_floating_point:
        return (integers.to(dt.float32) - zero_point) * scale.to(dt.float32)
    wide = dt.int64 if integers.dtype.itemsize > 1 else dt.int32
    return (integers.to(wide) - zero_point.to(wide)).to(dt.float32) * scale.to(dt.float32)


def integer_linear_push(x_t, weight, scale, zero_point, bias_t):
    """The tangent of a linear layer whose weight is integers, and whose input is rounded."""
    out = x_t.matmul(dequantized(weight, scale, zero_point, 0).t())
    return out if bias_t is None else out + bias_t
