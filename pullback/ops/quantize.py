"""Fake quantisation: values rounded to a grid of integers times a scale, with useful gradients.

A grid is given by a scale, the level of zero and the lowest and highest level, for a whole tensor or
for each channel.  Gradients pass straight through the rounding; see `formulas/quantize.py`.
"""

from __future__ import annotations

import math

import numpy as np

from ..array import dtype as dt
from ..array.evaluate import Spec
from ..core.op import Op
from ..errors import DimError, DTypeError, ShapeError
from ..formulas.quantize import along_axis, fake_quantized, learnable_pullback
from ..table.packets import ops
from .histograms import one_by_one
from .kinds import FirstResult, Free, Keeping
from .layout import in_front
from .norm import widened
from .pointwise import refuse, title

STRAIGHT_THROUGH = ("pullback", "second_order")  # not the slopes of the rounded values
NO_DERIVATIVES = (*STRAIGHT_THROUGH, "pushforward")  # parameters have none, or single precision
SMALLEST_SCALE = float(np.float32(6.1e-5))


def _check_range(quant_min: int, quant_max: int) -> None:
    if quant_min > quant_max:
        raise RuntimeError("`quant_min` should be less than or equal to `quant_max`, got "
                           f"{quant_min} and {quant_max}")


def _check_zero(inside: bool) -> None:
    if not inside:
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")


def _rounded(xp, self, scale: float, zero_point: int, quant_min: int, quant_max: int):
    """Values and mask with one scale, which is held in single precision whatever the input."""
    refuse("fake_quantize_tensor_cachemask_kernel_type_handling", self, "biuc")
    scale = np.float32(scale)
    with np.errstate(divide="ignore", invalid="ignore"):
        level = xp.rint(widened(xp, self) * (np.float32(1) / scale)) + zero_point
    inside = (level >= quant_min) & (level <= quant_max)
    level = xp.fmin(xp.fmax(level, quant_min), quant_max)  # NaN become the lowest level
    return ((level - zero_point).astype(xp.float32) * scale).astype(self.dtype), inside


def _both_shapes(self) -> list:
    return [tuple(self.shape)] * 2


def _by_operators(self, scale: float, zero_point: int, quant_min: int, quant_max: int):
    """`_rounded` in terms of operators."""
    work = self if self.dtype is dt.float64 else self.to(dt.float32)
    scale = np.float32(scale)
    with np.errstate(divide="ignore"):
        level = (work * float(np.float32(1) / scale)).round() + zero_point
    inside = (level >= quant_min).logical_and(level <= quant_max)
    level = level.masked_fill(level.isnan(), quant_min).clamp(quant_min, quant_max)
    return ((level - zero_point).to(dt.float32) * float(scale)).to(self.dtype), inside


class _Quantized(Op):
    """Values rounded to a grid, and where they were inside of it."""

    promote = "keep"
    cost = "cheap"
    method = False
    diff_outputs = (True, False)
    push = {"output": "self_t * mask.to(self_t.dtype)"}
    unchecked = STRAIGHT_THROUGH


class fake_quantize_per_tensor_affine_cachemask(_Quantized):
    """Values rounded to a grid, and the mask of those that were not cut off."""
    schema = ("fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point,"
              " int quant_min, int quant_max) -> (Tensor output, Tensor mask)")
    memory_format = "self"
    grad = {"self": "fake_quantize_per_tensor_affine_cachemask_backward(grad, mask)"}

    def run(xp, self, scale, zero_point, quant_min, quant_max):
        _check_range(quant_min, quant_max)
        _check_zero(quant_min <= zero_point <= quant_max)
        return _rounded(xp, self, scale, zero_point, quant_min, quant_max)

    def shape(self, scale, zero_point, quant_min, quant_max):
        return _both_shapes(self)

    def dtype(self, scale, zero_point, quant_min, quant_max):
        return [self.dtype, dt.bool_]

    def batch(n, batched, self, *grid):
        return ops.fake_quantize_per_tensor_affine_cachemask(self, *grid)

    def decomp(self, scale, zero_point, quant_min, quant_max):
        _check_range(quant_min, quant_max)
        _check_zero(quant_min <= zero_point <= quant_max)
        return _by_operators(self, scale, zero_point, quant_min, quant_max)

    def samples(s):
        yield s(s.real(3, 4), 0.1, 3, -10, 20)
        yield s(s.real(4, 3).T, 0.3, 0, -2, 2)
        yield s(s.real(), 0.1, 0, -10, 10)
        yield s(s.real(0, 2), 0.1, 0, -10, 10)


def _masked(grad, mask):
    """A gradient where the mask is set."""
    if mask.dtype is not dt.bool_:
        raise DTypeError(f"fake quantisation: the mask must be Bool, got {title(mask.dtype)}")
    if mask.numel() != grad.numel():
        raise ShapeError("`mask` and `dY` are not the same size: `mask` is size "
                         f"{mask.numel()} and `dY` is size {grad.numel()}")
    return grad * mask.to(grad.dtype)


class _MaskedGradient(Free):
    compose = _masked
    samples = lambda s: [s(s.real(3, 4), s.bool(3, 4))]


class fake_quantize_per_tensor_affine_cachemask_backward(_MaskedGradient):
    """The gradient where the values were in range."""
    schema = ("fake_quantize_per_tensor_affine_cachemask_backward(Tensor grad, Tensor mask)"
              " -> Tensor")


class fake_quantize_per_channel_affine_cachemask_backward(_MaskedGradient):
    """The gradient where the values were in range."""
    schema = ("fake_quantize_per_channel_affine_cachemask_backward(Tensor grad, Tensor mask)"
              " -> Tensor")


def _only(array, name: str):
    """The one element of a parameter."""
    if array.size != 1:
        raise ShapeError(f"{name}: a Tensor with {array.size} elements cannot be converted to "
                         "Scalar")
    return array.reshape(-1)[0]


class _fake_quantize_per_tensor_affine_cachemask_tensor_qparams(_Quantized):
    """The same with parameters in tensors, and a tensor that says whether to do it at all."""
    schema = ("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale,"
              " Tensor zero_point, Tensor fake_quant_enabled, int quant_min, int quant_max)"
              " -> (Tensor output, Tensor mask)")
    memory_format = "self"
    grad = {"self": "fake_quantize_per_tensor_affine_cachemask_backward(grad, mask)"}

    def run(xp, self, scale, zero_point, fake_quant_enabled, quant_min, quant_max):
        _check_range(quant_min, quant_max)
        refuse("fake_quantize_tensor_cachemask_kernel_type_handling", self, "biuc")
        scale, zero = float(_only(scale, "scale")), int(_only(zero_point, "zero_point"))
        if not _only(fake_quant_enabled, "fake_quant_enabled"):
            return self.copy(), xp.ones(self.shape, dtype=bool)
        return _rounded(xp, self, scale, zero, quant_min, quant_max)

    def shape(self, scale, zero_point, fake_quant_enabled, quant_min, quant_max):
        return _both_shapes(self)

    def dtype(self, scale, zero_point, fake_quant_enabled, quant_min, quant_max):
        return [self.dtype, dt.bool_]

    def batch(n, batched, self, *rest):
        if not any(batched[1:4]):
            return ops._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(self, *rest)
        self = in_front(self, batched[0], n)
        parameters = [_per_example(p, b, self) for p, b in zip(rest[:3], batched[1:4], strict=True)]
        return _straight(self, *_switched(self, *parameters, *rest[3:]))

    def decomp(self, scale, zero_point, fake_quant_enabled, quant_min, quant_max):
        return _switched(self, scale, zero_point, fake_quant_enabled, quant_min, quant_max)

    def samples(s):
        scale, zero = s.tensor(0.1, dt.float32), s.tensor(3, dt.int32)
        yield s(s.real(3, 4), scale, zero, s.tensor([1], dt.int64), -10, 20)
        yield s(s.real(3, 4), scale, zero, s.tensor([0], dt.int64), -10, 20)


def _per_example(parameter, is_batched: bool, x):
    """One parameter for each example of a batch, shaped to broadcast."""
    if not is_batched:
        return parameter
    return parameter.reshape((-1, *(1,) * (x.ndim - 1)))


def _straight(self, out, inside):
    """(values, mask) with the derivative of the operator where a batching rule has rounded.

    The tape may lie below the batch: it sees what the rule does, not the operator.
    """
    finite = self.nan_to_num(0.0, 0.0, 0.0)
    return out.detach() + (finite - finite.detach()) * inside.to(self.dtype), inside


def _switched(self, scale, zero_point, enabled, quant_min, quant_max):
    """Rounded or not, as a tensor says; in terms of operators."""
    scale, zero, on = (p.reshape(()) if p.numel() == 1 else p for p in (scale, zero_point, enabled))
    work = self if self.dtype is dt.float64 else self.to(dt.float32)
    scale, zero = scale.to(dt.float32), zero.trunc().to(dt.int64)
    level = (work * (1 / scale)).round() + zero
    inside = (level >= quant_min).logical_and(level <= quant_max)
    level = level.masked_fill(level.isnan(), quant_min).clamp(quant_min, quant_max)
    out = ((level - zero).to(dt.float32) * scale).to(self.dtype)
    on = on != 0
    return ops.where(on, out, self), ops.where(on, inside, True)


# The overload for tensors comes first: 0-d tensors would pass for numbers.


class fake_quantize_per_tensor_affine_tensor_qparams(Free):
    """The same with scale and zero point in tensors."""
    schema = ("fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale,"
              " Tensor zero_point, int quant_min, int quant_max) -> Tensor")
    autocast = "float32"
    unchecked = NO_DERIVATIVES

    def compose(self, scale, zero_point, quant_min, quant_max):
        on = ops.ones((1,), dtype=dt.int64, device=self.device)
        return ops._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
            self, scale, zero_point, on, quant_min, quant_max)[0]

    def samples(s):
        yield s(s.real(3, 4), s.tensor(0.1, dt.float32).detach(), s.tensor(3, dt.int32), -10, 20)


class fake_quantize_per_tensor_affine(FirstResult):
    """Values rounded to a grid of integers from quant_min to quant_max, times a scale."""
    schema = ("fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point,"
              " int quant_min, int quant_max) -> Tensor")
    autocast = "float32"
    method = False
    unchecked = STRAIGHT_THROUGH
    first_of = "fake_quantize_per_tensor_affine_cachemask"
    samples = lambda s: [s(s.real(3, 4), 0.1, 3, -10, 20)]


# ---------------------------------------------------------------------------------------------
# A grid for each channel


def _check_channels(self, scale, zero_point, axis: int, quant_min: int, quant_max: int) -> None:
    """Dtypes and sizes of the parameters of channels."""
    if scale.dtype not in (dt.float32, dt.bfloat16):
        raise DTypeError(f"Scale must be Float or BFloat16, found {title(scale.dtype)}")
    if zero_point.dtype not in (dt.int32, dt.float32, dt.float16):
        raise DTypeError(f"Zero-point must be Int32, Float or Half, found "
                         f"{title(zero_point.dtype)}")
    for name, parameter in (("scale", scale), ("zero point", zero_point)):
        if parameter.ndim != 1:
            raise ShapeError(f"{name} should be a 1-D tensor, got {parameter.ndim} dims")
    if scale.shape != zero_point.shape:
        raise ShapeError("scale and zero-point need to have the same dimensions, got "
                         f"{list(scale.shape)} and {list(zero_point.shape)}")
    if not -self.ndim <= axis < self.ndim:
        raise DimError(f"Dimension out of range (expected to be in range of [{-self.ndim}, "
                       f"{self.ndim - 1}], but got {axis})")
    if scale.shape[0] != self.shape[axis]:
        raise ShapeError("dimensions of scale and zero-point are not consistent with input "
                         f"tensor: {scale.shape[0]} channels, dim {axis} of {list(self.shape)}")
    _check_range(quant_min, quant_max)
    if axis < 0:
        raise ShapeError("`axis` must be between 0 and number of dimensions of input")


class fake_quantize_per_channel_affine_cachemask(_Quantized):
    """Values rounded to the grid of their channel, and the mask of those that were not cut off."""
    schema = ("fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale,"
              " Tensor zero_point, int axis, int quant_min, int quant_max)"
              " -> (Tensor output, Tensor mask)")
    trusts = "values"
    memory_format = "self"
    grad = {"self": "fake_quantize_per_channel_affine_cachemask_backward(grad, mask)"}

    def run(xp, self, scale, zero_point, axis, quant_min, quant_max):
        _check_channels(Spec(self), Spec(scale), Spec(zero_point), axis, quant_min,
                        quant_max)
        if zero_point.dtype.kind == "i":
            _check_zero(bool(((zero_point >= quant_min) & (zero_point <= quant_max)).all()))
        refuse("fake_quantize_channel_cachemask_cpu_type_handling", self, "biuc")
        shape = [1] * self.ndim
        shape[axis] = -1
        scale = scale.astype(xp.float32).reshape(shape)
        zero = zero_point.astype(xp.float32).reshape(shape)
        work = widened(xp, self)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = work * (np.float32(1) / scale)
        whole = zero_point.dtype.kind == "i"
        level = xp.rint(steps) + zero if whole else xp.rint(steps + zero)
        inside = (level >= quant_min) & (level <= quant_max)
        level = xp.fmin(xp.fmax(level, quant_min), quant_max).astype(xp.float64)
        return ((level - zero) * scale).astype(self.dtype), inside

    def shape(self, scale, zero_point, axis, quant_min, quant_max):
        _check_channels(self, scale, zero_point, axis, quant_min, quant_max)
        return _both_shapes(self)

    def dtype(self, scale, zero_point, axis, quant_min, quant_max):
        return [self.dtype, dt.bool_]

    def batch(n, batched, self, scale, zero_point, axis, quant_min, quant_max):
        if not (batched[1] or batched[2]):
            return ops.fake_quantize_per_channel_affine_cachemask(
                self, scale, zero_point, axis + 1, quant_min, quant_max)
        self = in_front(self, batched[0], n)
        shape = [n] + [1] * (self.ndim - 1)
        shape[axis + 1] = self.shape[axis + 1]
        scale = in_front(scale, batched[1], n).reshape(shape)
        zero_point = in_front(zero_point, batched[2], n).reshape(shape)
        return _straight(
            self, *fake_quantized(self, scale.to(dt.float32), zero_point, quant_min, quant_max))

    def decomp(self, scale, zero_point, axis, quant_min, quant_max):
        _check_channels(self, scale, zero_point, axis, quant_min, quant_max)
        scale = along_axis(scale.to(dt.float32), self, axis)
        zero_point = along_axis(zero_point, self, axis)
        return fake_quantized(self, scale, zero_point, quant_min, quant_max)

    def samples(s):
        scale = s.tensor([0.1, 0.2, 0.5], dt.float32)
        yield s(s.real(2, 3, 2), scale, s.tensor([0, 1, 2], dt.int32), 1, -5, 5)
        yield s(s.real(3, 4), scale, s.tensor([0, 1.5, 2], dt.float32), 0, -5, 5)


class fake_quantize_per_channel_affine(FirstResult):
    """Values rounded to the grid of their channel."""
    schema = ("fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point,"
              " int axis, int quant_min, int quant_max) -> Tensor")
    method = False
    unchecked = NO_DERIVATIVES
    first_of = "fake_quantize_per_channel_affine_cachemask"

    def samples(s):
        scale = s.tensor([0.1, 0.2, 0.5], dt.float32).detach()
        yield s(s.real(2, 3, 2), scale, s.tensor([0, 1, 2], dt.int32), 1, -5, 5)


# ---------------------------------------------------------------------------------------------
# Learnable grids

LEARNABLE = "int quant_min, int quant_max, float grad_factor=1."


def _zero_level(zero_point: float, quant_min: int, quant_max: int) -> int:
    """A learned zero point as a level."""
    return int(min(max(round(float(zero_point)), quant_min), quant_max))


def learnable_rules(axis: str) -> tuple[dict, str]:
    """Formulas of both modes for values rounded with learned parameters along an axis."""
    levels = f"{axis}, quant_min, quant_max, grad_factor)"
    pullback = f"learnable_pullback(grad, self, scale, zero_point, {levels}"
    push = f"learnable_push(self_p, self_t, scale_p, scale_t, zero_point_p, zero_point_t, {levels}"
    return {"self, scale, zero_point": pullback}, push


class Learnable(Keeping):
    """Values rounded to a grid, or to grids of channels, whose parameters are learned."""

    memory_format = "self"
    shape = "tuple(self.shape)"
    dtype = "self.dtype"
    batch = one_by_one()
    cost = "cheap"
    method = False


class _fake_quantize_learnable_per_tensor_affine(Learnable):
    """Values rounded to a grid whose scale and zero point are learned."""
    schema = ("_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale,"
              f" Tensor zero_point, {LEARNABLE}) -> Tensor")
    grad, push = learnable_rules("None")
    unchecked = STRAIGHT_THROUGH

    def run(xp, self, scale, zero_point, quant_min, quant_max, grad_factor):
        if not (scale.ndim and zero_point.ndim):
            raise DimError("select() cannot be applied to a 0-dim tensor: scale and zero_point "
                           "must be vectors")
        _check_range(quant_min, quant_max)
        refuse("fake_quantize_tensor_cachemask_kernel_type_handling", self, "biuc")
        zero = _zero_level(zero_point.reshape(-1)[0], quant_min, quant_max)
        return _rounded(xp, self, float(scale.reshape(-1)[0]), zero, quant_min, quant_max)[0]

    def decomp(self, scale, zero_point, quant_min, quant_max, grad_factor):
        scale, zero = (along_axis(p, self, None).reshape((1,)) for p in (scale, zero_point))
        return _learned_channels(self.reshape((1, -1)), scale, zero, 0, quant_min,
                                 quant_max).reshape(self.shape)

    def samples(s):
        yield s(s.real(3, 4), s.values([0.1]), s.values([3.4]), -10, 20, 0.5)
        yield s(s.real(3, 4), s.values([0.1]), s.values([2.6]), -10, 20)
        yield s(s.real(), s.values([0.1]), s.values([2.0]), -10, 20)


def _learned_channels(self, scale, zero_point, axis, quant_min, quant_max):
    """Rounded values with learned parameters of channels, in terms of operators."""
    zero = zero_point.round().clamp(quant_min, quant_max).to(dt.int64)
    scale = along_axis(scale.to(dt.float32), self, axis)
    work = self if self.dtype is dt.float64 else self.to(dt.float32)
    zero = along_axis(zero, self, axis)
    level = ((work * (1 / scale)).round() + zero)
    level = level.masked_fill(level.isnan(), quant_min).clamp(quant_min, quant_max)
    return ((level - zero).to(dt.float32) * scale).to(self.dtype)


class _fake_quantize_learnable_per_tensor_affine_backward(Free):
    """Gradients of input, scale and zero point."""
    schema = ("_fake_quantize_learnable_per_tensor_affine_backward(Tensor grad, Tensor self,"
              f" Tensor scale, Tensor zero_point, {LEARNABLE}) -> (Tensor, Tensor, Tensor)")
    unchecked = STRAIGHT_THROUGH

    def compose(grad, self, scale, zero_point, quant_min, quant_max, grad_factor):
        return learnable_pullback(grad, self, scale, zero_point, None, quant_min, quant_max,
                                  grad_factor)

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 4), s.values([0.1]), s.values([3.4]), -10, 20, 0.5)


class _fake_quantize_learnable_per_channel_affine(Learnable):
    """Values rounded to grids of channels whose scales and zero points are learned."""
    schema = ("_fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale,"
              f" Tensor zero_point, int axis, {LEARNABLE}) -> Tensor")
    grad, push = learnable_rules("axis")
    unchecked = NO_DERIVATIVES

    def run(xp, self, scale, zero_point, axis, quant_min, quant_max, grad_factor):
        _check_range(quant_min, quant_max)
        zero = xp.clip(xp.rint(widened(xp, zero_point)), quant_min, quant_max).astype(xp.int32)
        kernel = fake_quantize_per_channel_affine_cachemask.run
        return kernel(xp, self, scale, zero, axis, quant_min, quant_max)[0]

    def decomp(self, scale, zero_point, axis, quant_min, quant_max, grad_factor):
        zero = zero_point.round().clamp(quant_min, quant_max).to(dt.int32)
        return ops.fake_quantize_per_channel_affine_cachemask(
            self, scale, zero, axis, quant_min, quant_max)[0]

    def samples(s):
        scale = s.tensor([0.1, 0.2, 0.5], dt.float32)
        yield s(s.real(2, 3, 2), scale, s.tensor([0, 1.4, 2.6], dt.float32), 1, -5, 5, 0.5)


class _fake_quantize_learnable_per_channel_affine_backward(Free):
    """Gradients of input, scales and zero points."""
    schema = ("_fake_quantize_learnable_per_channel_affine_backward(Tensor grad, Tensor self,"
              f" Tensor scale, Tensor zero_point, int axis, {LEARNABLE})"
              " -> (Tensor, Tensor, Tensor)")
    unchecked = STRAIGHT_THROUGH
    compose = learnable_pullback

    def samples(s):
        yield s(s.real(2, 3), s.real(2, 3), s.values([0.1, 0.2, 0.5]), s.values([0.0, 1.4, 2.6]),
                1, -5, 5, 0.5)


# ---------------------------------------------------------------------------------------------
# Grids from moving averages of the extremes


def grid_for(xp, low, high, quant_min: int, quant_max: int, symmetric: bool):
    """(scales, zero points) of grids that cover the given ranges, and zero exactly.

    A symmetric grid has zero in the middle if the range lies on both sides of zero.
    """
    low, high = (xp.asarray(v, dtype=xp.float32) for v in (xp.minimum(low, 0), xp.maximum(high, 0)))
    levels = quant_max - quant_min
    both = (low < 0) & (high > 0)
    if symmetric:
        below, above = -(levels // 2 + 1), levels // 2
        widest = xp.maximum(xp.abs(low / np.float32(below)), xp.abs(high / np.float32(above)))
        widest = widest.astype(xp.float64)
        low = xp.where(both, widest * below, low).astype(xp.float32)
        high = xp.where(both, widest * above, high).astype(xp.float32)
    low, high = low.astype(xp.float64), high.astype(xp.float64)
    scale = (high - low) / levels
    with np.errstate(divide="ignore", over="ignore"):
        useless = (scale.astype(xp.float32) == 0) | xp.isinf(1 / scale)
    scale = xp.where(useless, 0.1, scale)
    small = scale < SMALLEST_SCALE
    stretch = xp.where(small, SMALLEST_SCALE / scale, 1.0)
    span = SMALLEST_SCALE * levels
    low, high = (xp.where(small & (low == 0), 0.0, xp.where(small & (high == 0), -span,
                                                            low * stretch)),
                 xp.where(small & (low == 0), span, xp.where(small & (high == 0), 0.0,
                                                             high * stretch)))
    low, high = (v.astype(xp.float32).astype(xp.float64) for v in (low, high))
    scale = xp.where(small, SMALLEST_SCALE, scale)
    from_low, from_high = quant_min - low / scale, quant_max - high / scale
    better = abs(quant_min) + xp.abs(low / scale) < abs(quant_max) + xp.abs(high / scale)
    zero = xp.where(better, from_low, from_high)
    if symmetric:
        zero = xp.where(both, (quant_min + quant_max) / 2, zero)
    zero = xp.clip(xp.rint(zero), quant_min, quant_max)
    return scale.astype(xp.float32), zero.astype(xp.int32)


def _observed(xp, self, low, high, weight: float, per_row: bool):
    """Running extremes after one more look; infinite ones are replaced."""
    if per_row:
        flat = self.reshape((self.shape[0], -1))
        least, most = flat.min(axis=1), flat.max(axis=1)
    else:
        least, most = self.min().reshape(1), self.max().reshape(1)
    least, most = xp.broadcast_to(least, low.shape), xp.broadcast_to(most, high.shape)
    weight = np.float32(weight)
    with np.errstate(invalid="ignore"):
        return (xp.where(xp.isinf(low), least, low + weight * (least - low)).astype(low.dtype),
                xp.where(xp.isinf(high), most, high + weight * (most - high)).astype(high.dtype))


HELPER = ("float averaging_const, int quant_min, int quant_max, int ch_axis,"
          " bool per_row_fake_quant=False, bool symmetric_quant=False")
OBSERVED = "Tensor self, Tensor observer_on, Tensor fake_quant_on"


def _check_observed(self, ch_axis: int, per_row: bool, *state) -> None:
    for t in (self, *state[:3]):
        if t.dtype != dt.float32.np:
            raise DTypeError(f"expected scalar type Float but found {title(t.dtype)}")
    if per_row and ch_axis != 0:
        raise ShapeError("Per-channel FakeQuant in fused_moving_avg_obs_fake_quant is only "
                         f"supported on axis == 0, got {ch_axis}")
    count = self.shape[0] if per_row else 1
    for name, t in zip(("running_min", "running_max", "scale", "zero_point"), state, strict=True):
        if t.size != count and (t.size or not per_row):
            raise ShapeError(f"{name} of fused_moving_avg_obs_fake_quant needs {count} "
                             f"element{'s' * (count != 1)}, got shape {list(t.shape)}")


def _as_before(old: tuple, *new) -> list:
    """New statistics in the shapes of the old ones, unless these were empty."""
    return [n.reshape(o.shape if o.size else -1) for o, n in zip(old, new, strict=True)]


class _fused_moving_avg_obs_fq_helper_functional(Keeping):
    """Observes extremes, makes a grid for them and rounds to it, as two switches say.

    Returns rounded values, mask, and new running extremes, scale and zero point.
    """
    schema = (f"_fused_moving_avg_obs_fq_helper_functional({OBSERVED}, Tensor running_min,"
              f" Tensor running_max, Tensor scale, Tensor zero_point, {HELPER})"
              " -> (Tensor output, Tensor mask, Tensor running_min_out, Tensor running_max_out,"
              " Tensor scale_out, Tensor zero_point_out)")
    kept = "kernel"
    memory_format = "self"
    grad = {"self": "fake_quantize_per_tensor_affine_cachemask_backward(grad, mask)"}
    push = {"output": "self_t * mask.to(self_t.dtype)"}
    diff_outputs = (True, False, False, False, False, False)
    nondiff = ("observer_on", "fake_quant_on", "running_min", "running_max", "scale", "zero_point")
    unchecked = STRAIGHT_THROUGH
    batch = one_by_one()
    cost = "reduce"
    method = False

    def run(xp, self, observer_on, fake_quant_on, running_min, running_max, scale, zero_point,
            averaging_const, quant_min, quant_max, ch_axis, per_row_fake_quant, symmetric_quant):
        state = running_min, running_max, scale, zero_point
        _check_observed(self, ch_axis, per_row_fake_quant, *state)
        low, high = running_min.reshape(-1).copy(), running_max.reshape(-1).copy()
        if per_row_fake_quant and not low.size:
            low = xp.full(self.shape[:1], math.inf, dtype=low.dtype)
        if per_row_fake_quant and not high.size:
            high = xp.full(self.shape[:1], -math.inf, dtype=high.dtype)
        if _only(observer_on, "observer_on"):
            low, high = _observed(xp, self, low, high, averaging_const, per_row_fake_quant)
        if not _only(fake_quant_on, "fake_quant_on"):
            if per_row_fake_quant and not scale.size:
                scale, zero_point = xp.ones_like(low), xp.zeros(low.shape, dtype=zero_point.dtype)
            out, mask = self.copy(), xp.ones(self.shape, dtype=bool)
            return out, mask, *_as_before(state, low, high, scale.copy(), zero_point.copy())
        new_scale, new_zero = grid_for(xp, low, high, quant_min, quant_max, symmetric_quant)
        if per_row_fake_quant:
            kernel = fake_quantize_per_channel_affine_cachemask.run
            out, mask = kernel(xp, self, new_scale, new_zero, 0, quant_min, quant_max)
        else:
            out, mask = _rounded(xp, self, float(_only(new_scale, "scale")),
                                 int(_only(new_zero, "zero_point")), quant_min, quant_max)
        return out, mask, *_as_before(state, low, high, new_scale.astype(scale.dtype),
                                      new_zero.astype(zero_point.dtype))

    def shape(self, observer_on, fake_quant_on, running_min, running_max, scale, zero_point,
              averaging_const, quant_min, quant_max, ch_axis, per_row_fake_quant, symmetric_quant):
        channels = [running_min.shape, running_max.shape, scale.shape, zero_point.shape]
        if per_row_fake_quant:
            channels = [(self.shape[0],) if not math.prod(s) else tuple(s) for s in channels]
        return [*_both_shapes(self), *(tuple(s) for s in channels)]

    def dtype(self, observer_on, fake_quant_on, running_min, running_max, scale, zero_point,
              averaging_const, quant_min, quant_max, ch_axis, per_row_fake_quant, symmetric_quant):
        return [self.dtype, dt.bool_, running_min.dtype, running_max.dtype, scale.dtype,
                zero_point.dtype]

    def samples(s):
        x = s.tensor([[-1.0, 2.0, 3.0], [0.5, 0.25, 4.0]], dt.float32)
        on, off = s.tensor([1], dt.int64), s.tensor([0], dt.int64)
        state = (s.tensor([-0.5], dt.float32), s.tensor([2.0], dt.float32),
                 s.tensor([1.0], dt.float32), s.tensor([0], dt.int32))
        yield s(x, on, on, *state, 0.01, 0, 255, 0)
        yield s(x, on, off, *state, 0.01, 0, 255, 0)
        yield s(x, off, on, *state, 0.01, -128, 127, 0, False, True)
        state = tuple(ops.cat([p, p]) for p in state)
        yield s(x, on, on, *state, 0.01, 0, 255, 0, True)


WRITTEN = ("Tensor(a!) running_min, Tensor(b!) running_max, Tensor(c!) scale,"
           " Tensor(d!) zero_point")


def _with_writes(self, observer_on, fake_quant_on, running_min, running_max, scale, zero_point,
                 *rest):
    """The pure operator, then its new statistics take the place of the old ones."""
    state = (running_min, running_max, scale, zero_point)
    frozen = [t.detach() for t in state]
    out, mask, *new = ops._fused_moving_avg_obs_fq_helper_functional(
        self, observer_on, fake_quant_on, *frozen, *rest)
    for old, value in zip(state, new, strict=True):
        if tuple(old.shape) != tuple(value.shape):
            old.resize_(tuple(value.shape))
        old.copy_(value)
    return out, mask


def _written_samples(s):
    x = s.tensor([[-1.0, 2.0, 3.0], [0.5, 0.25, 4.0]], dt.float32)
    on = s.tensor([1], dt.int64)
    state = (s.tensor([-0.5], dt.float32), s.tensor([2.0], dt.float32),
             s.tensor([1.0], dt.float32), s.tensor([0], dt.int32))
    yield s(x, on, on, *state, 0.01, 0, 255, 0)


class _fused_moving_avg_obs_fq_helper(Free):
    """The same, writing the new statistics into the old ones."""
    schema = (f"_fused_moving_avg_obs_fq_helper({OBSERVED}, {WRITTEN}, {HELPER})"
              " -> (Tensor output, Tensor mask)")
    unchecked = NO_DERIVATIVES
    samples = _written_samples

    def compose(self, observer_on, fake_quant_on, running_min, running_max, scale, zero_point,
                averaging_const, quant_min, quant_max, ch_axis, per_row_fake_quant,
                symmetric_quant):
        from collections import namedtuple

        result = namedtuple("_fused_moving_avg_obs_fq_helper", ["output", "mask"])
        return result(*_with_writes(
            self, observer_on, fake_quant_on, running_min, running_max, scale, zero_point,
            averaging_const, quant_min, quant_max, ch_axis, per_row_fake_quant, symmetric_quant))


class fused_moving_avg_obs_fake_quant(Free):
    """Rounded values of a grid that follows the extremes of what it has seen."""
    schema = (f"fused_moving_avg_obs_fake_quant({OBSERVED}, {WRITTEN}, {HELPER}) -> Tensor")
    unchecked = NO_DERIVATIVES
    samples = _written_samples

    def compose(self, observer_on, fake_quant_on, running_min, running_max, scale, zero_point,
                averaging_const, quant_min, quant_max, ch_axis, per_row_fake_quant,
                symmetric_quant):
        if self.numel() == 0:
            return self.clone()
        return _with_writes(
            self, observer_on, fake_quant_on, running_min, running_max, scale, zero_point,
            averaging_const, quant_min, quant_max, ch_axis, per_row_fake_quant,
            symmetric_quant)[0]
