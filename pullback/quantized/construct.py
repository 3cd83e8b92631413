"""Makers of quantised tensors: `quantize_per_tensor` and its family.

They end the history of their input, as rounding has no derivative: where there is one, they refuse
that, unless `straight_through=True` says that gradients shall pass as if nothing had been rounded
(inside of the range, and not at all where numbers were cut off).
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..array import dtype as dt
from ..array.dims import wrap_dim
from ..core.handle import Tensor
from ..formulas.quantize import along_axis
from ..table.packets import ops
from .tensor import QuantizedTensor

_KINDS = dt.QUANTIZED
_SHARED = {"quint4x2": 2, "quint2x4": 4}  # how many integers are in a byte


def _kind(dtype: Any, name: str) -> dt.Quantized:
    if dtype is None:
        raise errors.ArgumentError(errors.text(
            f"{name}() missing 1 required argument: 'dtype' ({errors.user_line(3)})",
            cure="torch.qint8, torch.quint8 or torch.qint32"))
    if dtype not in _KINDS:
        raise errors.DTypeError(errors.text(
            f"{name}: ScalarType {dt.title(dtype) if isinstance(dtype, dt.DType) else dtype} is "
            f"not supported in new_qtensor ({errors.user_line(3)})",
            cure="torch.qint8, torch.quint8 or torch.qint32"))
    return dtype


def _check(x: Any, name: str, straight_through: bool) -> None:
    if not isinstance(x, Tensor):
        raise errors.ArgumentError(
            f"{name}(): argument 'input' must be Tensor, not {type(x).__name__} "
            f"({errors.user_line(3)})")
    if x.dtype is not dt.float32:
        raise errors.DTypeError(errors.text(
            f"{name}: Quantize only works on Float Tensor, got {dt.title(x.dtype)} "
            f"({errors.user_line(3)})", f"tensor: {x.dtype.name}{list(x.shape)}", "x.float()"))
    if not straight_through and recorded(x):
        raise errors.RefusedValue(errors.text(
            f"{name}: the input requires grad, and rounding would end its history silently "
            f"({errors.user_line(3)})", f"tensor: {x.dtype.name}{list(x.shape)}",
            "x.detach(), or straight_through=True: gradients pass the rounding unchanged"))


def recorded(x: Tensor) -> bool:
    """Does somebody follow what becomes of a tensor?"""
    from ..autograd.grad_mode import is_grad_enabled
    from ..interp.jvp import Dual

    return x.requires_grad and is_grad_enabled() or isinstance(x._payload, Dual)


def check_parameters(scale: Tensor, zero_point: Tensor, kind: dt.Quantized, name: str) -> None:
    """Refuse scales that are no positive numbers, and zero points that no integer has."""
    low, high = _extremes(scale)
    if not (low > 0 and high < float("inf")):
        raise errors.RefusedValue(errors.text(
            f"{name}: a scale is a positive number, got {high if low > 0 else low} "
            f"({errors.user_line(3)})", f"dtype: {kind}",
            "an observer finds one: torch.ao.quantization.MinMaxObserver()(x)"))
    if zero_point.dtype.is_floating_point:
        return
    low, high = _extremes(zero_point)
    if low < kind.low or high > kind.high:
        below = low < kind.low
        raise errors.RefusedValue(errors.text(
            f"{name} zero_point {int(low if below else high)} is "
            f"{'below lower' if below else 'above upper'} bound. ({errors.user_line(3)})",
            f"dtype: {kind}", f"integers from {kind.low} to {kind.high}"))


def _extremes(parameter: Tensor) -> tuple[float, float]:
    """The least and the largest of some parameters; 1 where they are not known, or none."""
    from ..array.fake import Fake

    held = parameter._payload
    if isinstance(held, Fake) or not hasattr(held, "min") or not parameter.numel():
        return 1, 1
    return held.min().item(), held.max().item()


def rounded(x: Tensor, scale: Tensor, zero_point: Tensor, kind: Any, axis: int = -1,
            straight_through: bool = False) -> QuantizedTensor:
    """Numbers as a quantised tensor with these parameters, which are tensors."""
    integers = ops._quantized_integers(
        x.detach(), scale.detach(), zero_point.detach(), axis, kind.low, kind.high,
        dt.by_name(kind.numbers))
    packed = None
    if kind.name in _SHARED:
        packed = tuple(integers.shape)
        integers = together(integers.reshape(-1), 8 // _SHARED[kind.name])
    out = QuantizedTensor.make(integers, scale.detach(), zero_point.detach(), kind, axis,
                               storage=packed)
    if straight_through:
        out.through_part = _passed(x, out)
    return out


def together(integers: Tensor, bits: int) -> Tensor:
    """Several integers in a byte, the first in the lowest bits."""
    per = 8 // bits
    missing = -integers.shape[-1] % per
    if missing:
        integers = ops.constant_pad_nd(integers, [0, missing])
    grouped = integers.reshape(*integers.shape[:-1], -1, per)
    out = grouped[..., 0]
    for k in range(1, per):
        out = out | (grouped[..., k] << (bits * k))
    return out


def _passed(x: Tensor, q: QuantizedTensor) -> Tensor:
    """The numbers of a quantised tensor, with the derivative of what lies in its range."""
    scale, zero = q.scale_part.to(dt.float32), q.zero_part.to(dt.float32)
    if q.axis >= 0:
        scale, zero = along_axis(scale, x, q.axis), along_axis(zero, x, q.axis)
    level = x.detach() / scale + zero
    inside = (level >= q.kind.low - 0.5).logical_and(level <= q.kind.high + 0.5)
    moved = ops.where(inside, x - x.detach(), ops.zeros_like(x.detach()))
    return q.dequantize() + moved


def _parameter(value: Any, dtype: dt.DType) -> Tensor:
    if isinstance(value, Tensor):
        return value.detach().reshape(())
    return ops.full((), value, dtype=dtype)


def quantize_per_tensor(input: Any, scale: Any = None, zero_point: Any = None, dtype: Any = None,
                        *, straight_through: bool = False, scales: Any = None,
                        zero_points: Any = None, tensors: Any = None) -> Any:
    """Numbers as integers: `input / scale + zero_point`, rounded to even and cut off.

    Scale and zero point are numbers or tensors.  A list of tensors with a tensor of scales and one
    of zero points gives a tuple.
    """
    name = "quantize_per_tensor"
    input, scale = tensors if input is None else input, scales if scale is None else scale
    zero_point = zero_points if zero_point is None else zero_point
    if isinstance(input, (list, tuple)):
        return tuple([quantize_per_tensor(x, scale[k], zero_point[k], dtype,
                                          straight_through=straight_through)
                      for k, x in enumerate(input)])
    _check(input, name, straight_through)
    kind = _kind(dtype, name)
    scale = _parameter(scale, dt.float64)
    zero_point = _parameter(zero_point, dt.int64)
    check_parameters(scale, zero_point, kind, "quantize_tensor_per_tensor_affine")
    return rounded(input, scale, zero_point, kind, straight_through=straight_through)


def quantize_per_tensor_dynamic(input: Tensor, dtype: Any, reduce_range: bool, *,
                                straight_through: bool = False) -> QuantizedTensor:
    """Numbers as integers, with a scale that just reaches from the lowest to the highest."""
    name = "quantize_per_tensor_dynamic"
    _check(input, name, straight_through)
    kind = _kind(dtype, name)
    if kind.name not in ("qint8", "quint8"):
        raise errors.DTypeError(f"dtype {kind} not supported ({errors.user_line(2)})")
    least, most = (kind.low // 2, kind.high // 2) if reduce_range else (kind.low, kind.high)
    scale, zero_point = ops._input_parameters(input.detach(), least, most)
    return rounded(input, scale, zero_point, kind, straight_through=straight_through)


def quantize_per_channel(input: Tensor, scales: Tensor, zero_points: Tensor, axis: int,
                         dtype: Any, *, straight_through: bool = False) -> QuantizedTensor:
    """Numbers as integers, with a scale and a zero point for every index of one dim."""
    name = "quantize_per_channel"
    _check(input, name, straight_through)
    kind = _kind(dtype, name)
    axis = wrap_dim(axis, input.ndim)
    if scales.numel() != zero_points.numel():
        raise errors.ShapeError(
            f"{name}: number of elements in scales and zero_points must match, got "
            f"{scales.numel()} and {zero_points.numel()} ({errors.user_line(2)})")
    for what, t in (("scales", scales), ("zero points", zero_points)):
        if t.numel() != input.shape[axis]:
            raise errors.ShapeError(
                f"{name}: length of {what} must equal to channel, expected {input.shape[axis]} "
                f"got {t.numel()} ({errors.user_line(2)})")
    floating = zero_points.dtype.is_floating_point
    check_parameters(scales, zero_points, kind, "quantize_tensor_per_channel_affine")
    wide = dt.float32 if floating else dt.float64
    return rounded(input, scales.to(wide), zero_points.to(dt.float32 if floating else dt.int64),
                   kind, axis, straight_through)


def dequantize(input: Any) -> Any:
    """The numbers of a quantised tensor, or of several; others become single precision."""
    if isinstance(input, (list, tuple)):
        return tuple([dequantize(t) for t in input])
    return input.dequantize()


def _with_kind(integers: Tensor) -> dt.Quantized:
    for kind in _KINDS[:3]:
        if kind.numbers == integers.dtype.name:
            return kind
    raise errors.DTypeError(
        f"a quantised tensor is made of int8, uint8 or int32, not of {integers.dtype} "
        f"({errors.user_line(3)})")


def _make_per_tensor_quantized_tensor(input: Tensor, scale: float,
                                      zero_point: int) -> QuantizedTensor:
    """A quantised tensor of integers."""
    return QuantizedTensor.make(input.detach().clone(), _parameter(scale, dt.float64),
                                _parameter(zero_point, dt.int64), _with_kind(input))


def _make_per_channel_quantized_tensor(input: Tensor, scale: Tensor, zero_point: Tensor,
                                       axis: int) -> QuantizedTensor:
    """A quantised tensor of integers, with parameters for every channel."""
    floating = zero_point.dtype.is_floating_point
    return QuantizedTensor.make(
        input.detach().clone(), scale.to(dt.float32 if floating else dt.float64),
        zero_point.to(dt.float32 if floating else dt.int64), _with_kind(input),
        wrap_dim(axis, input.ndim))


def _storage(size: Any, kind: dt.Quantized, device: Any) -> tuple[Tensor, tuple | None]:
    """Memory for integers; narrow ones share bytes."""
    per_byte = _SHARED.get(kind.name, 1)
    shape = tuple(size)
    if per_byte == 1:
        return ops.zeros(shape, dtype=dt.by_name(kind.numbers), device=device), None
    count = 1
    for n in shape:
        count *= n
    return ops.zeros(-(-count // per_byte), dtype=dt.uint8, device=device), shape


def _size(size: tuple) -> tuple:
    return tuple(size[0]) if len(size) == 1 and isinstance(size[0], (list, tuple)) else size


def _empty_affine_quantized(*size: Any, scale: float = 1, zero_point: int = 0, dtype: Any = None,
                            layout: Any = None, device: Any = None, pin_memory: bool = False,
                            memory_format: Any = None,
                            requires_grad: bool = False) -> QuantizedTensor:
    """A quantised tensor of a shape, for others to write to."""
    kind = _kind(dtype, "_empty_affine_quantized")
    integers, packed = _storage(_size(size), kind, device)
    return QuantizedTensor.make(integers, _parameter(scale, dt.float64),
                                _parameter(zero_point, dt.int64), kind, storage=packed)


def _empty_per_channel_affine_quantized(
    *size: Any, scales: Tensor, zero_points: Tensor, axis: int, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool = False, memory_format: Any = None,
    requires_grad: bool = False,
) -> QuantizedTensor:
    """A quantised tensor of a shape with parameters for every channel, for others to write to."""
    kind = _kind(dtype, "_empty_per_channel_affine_quantized")
    integers, packed = _storage(_size(size), kind, device)
    floating = zero_points.dtype.is_floating_point
    return QuantizedTensor.make(
        integers, scales.to(dt.float32 if floating else dt.float64),
        zero_points.to(dt.float32 if floating else dt.int64), kind, axis, storage=packed)


def empty_quantized(size: Any, qtensor: QuantizedTensor, *, dtype: Any = None,
                    **ignored: Any) -> QuantizedTensor:
    """A quantised tensor of a shape with the parameters of another, for others to write to."""
    kind = qtensor.kind if dtype is None else _kind(dtype, "empty_quantized")
    integers, packed = _storage(size, kind, qtensor.device)
    return QuantizedTensor.make(integers, qtensor.scale_part, qtensor.zero_part, kind,
                                qtensor.axis, storage=packed)


