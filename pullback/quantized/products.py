"""Linear layers and convolutions of quantised tensors: products of integers, summed in int32.

The sums are scaled, the bias is added in single precision, and the result is rounded with the scale
of the output, in the order of PyTorch's engine for x86.  Where somebody follows gradients, results
have the history of the same layer in single precision.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..array import dtype as dt
from ..core.handle import Tensor
from ..ops.integer_products import BLOCK
from ..parts.rules import shown
from ..table.packets import ops
from .construct import _passed, check_parameters, recorded, rounded
from .packed import ConvPackedParamsBase, LinearHalfParams, Packed
from .tensor import QuantizedTensor


def dynamic_linear(x: Tensor, packed: Packed, reduce_range: bool = False) -> Tensor:
    """A linear layer that rounds its input by itself; numbers in, numbers out."""
    _check_packed(packed, "linear_dynamic")
    weight, bias = packed.unpack()
    if isinstance(packed, LinearHalfParams):
        return half_linear(x, packed)
    if not isinstance(x, Tensor) or isinstance(x, QuantizedTensor) or x.dtype is not dt.float32:
        raise errors.DTypeError(errors.text(
            "linear_dynamic: expected scalar type Float but found "
            f"{dt.title(x.dtype) if isinstance(x, Tensor) else type(x).__name__} "
            f"({errors.user_line(3)})", cure="x.float()"))
    scale, zero_point = weight.scale_part, weight.zero_part
    return ops._linear_of_integers(x, weight.int_part, scale, zero_point, bias, reduce_range)


def half_linear(x: Tensor, packed: Packed) -> Tensor:
    """A linear layer with a weight in half precision, in single precision."""
    weight, bias = packed.unpack()
    out = x.matmul(weight.t())
    return out if bias is None else out + bias


def linear(x: QuantizedTensor, packed: Packed, scale: float, zero_point: int,
           low: int | None = None) -> QuantizedTensor:
    """A linear layer of a quantised tensor; results of rectifiers are cut off at `low`."""
    one_scale(x, "linear")
    _check_packed(packed, "linear")
    weight, bias = packed.unpack()
    width = weight.shape[1]
    if x.shape[-1] != width:
        raise errors.ShapeError(errors.text(
            f"quantized::linear: the input has {x.shape[-1]} columns, the weight takes {width} "
            f"({errors.user_line(3)})", [shown(x), shown(weight)]))
    integers = x.int_part.reshape(-1, width)
    sums = ops._integer_products(integers, weight.int_part)
    sums = centred(sums, x, packed, integers)
    out = scaled(sums.reshape(*x.shape[:-1], weight.shape[0]), x, packed, scale, zero_point, -1,
                 low)
    return with_history(out, x, bias, lambda a, b: ops.linear(a, weight.dequantize(), b), low)


def one_scale(x: Any, name: str) -> None:
    """Refuse what is not quantised with one scale."""
    if not isinstance(x, QuantizedTensor) or x.axis >= 0:
        raise errors.DTypeError(errors.text(
            f"quantized::{name}: expected a tensor that is quantised with one scale "
            f"({errors.user_line(4)})", f"got {getattr(x, 'dtype', type(x).__name__)}",
            "torch.quantize_per_tensor(x, scale, zero_point, torch.quint8)"))


def _check_packed(packed: Any, name: str) -> None:
    if not isinstance(packed, Packed):
        raise errors.DTypeError(errors.text(
            f"quantized::{name}: expected a packed weight, got {type(packed).__name__} "
            f"({errors.user_line(4)})", cure="ops.quantized.linear_prepack(weight, bias)"))


def centred(sums: Tensor, x: QuantizedTensor, packed: Packed, rows: Tensor) -> Tensor:
    """Sums of products of integers as those of their distances from the zero points."""
    weight = packed.weight()
    zero = x.zero_part.to(dt.int32)
    sums = sums - packed.sums * zero
    offsets = weight.zero_part.to(dt.int32).reshape(-1)
    if bool((offsets != 0).any()):
        totals = rows.sum(1, dtype=dt.int32) - zero * rows.shape[1]
        sums = sums - totals.unsqueeze(1) * offsets
    return sums


def scaled(sums: Tensor, x: QuantizedTensor, packed: Packed, scale: float, zero_point: int,
           channels: int, low: int | None) -> QuantizedTensor:
    """Sums as a quantised tensor: `sums * multiplier + bias / scale`, rounded."""
    weight, bias = packed.unpack()
    kind = x.kind
    step, zero = ops.full((), float(scale), dtype=dt.float32), ops.full((), int(zero_point))
    check_parameters(step, zero, kind, f"quantized::{'conv' if weight.ndim > 2 else 'linear'}")
    shape = [1] * sums.ndim
    shape[channels] = -1
    by = x.scale_part.to(dt.float32) * weight.scale_part.to(dt.float32).reshape(-1)
    level = sums.to(dt.float32) * (by / step).reshape(shape)
    if bias is not None:
        level = level + (bias.detach() / step).reshape(shape)
    level = (level.round() + zero_point).clamp(kind.low if low is None else low, kind.high)
    return QuantizedTensor.make(level.to(dt.by_name(kind.numbers)),
                                ops.full((), float(scale), dtype=dt.float64), zero, kind)


def with_history(out: QuantizedTensor, x: QuantizedTensor, bias: Tensor | None, function: Any,
                 low: int | None = None) -> QuantizedTensor:
    """A result with the history of the same function of numbers, if anybody follows it."""
    through = x.through_part
    if through is not None and recorded(through) or bias is not None and bias.requires_grad and (
            through is not None):
        numbers = function(x.dequantize(), bias)
        out.through_part = _passed(numbers if low is None else numbers.relu(), out)
    return out


def convolution(x: QuantizedTensor, packed: ConvPackedParamsBase, scale: float, zero_point: int,
                low: int | None = None, added: QuantizedTensor | None = None) -> QuantizedTensor:
    """A convolution of a quantised tensor; a batch of examples, or one."""
    one_scale(x, "conv")
    weight = packed.weight()
    channels = weight.shape[0] if packed.transpose() else weight.shape[1] * packed.groups()
    if x.ndim not in (weight.ndim, weight.ndim - 1) or x.shape[1 - weight.ndim] != channels:
        raise errors.ShapeError(errors.text(
            f"quantized::conv{weight.ndim - 2}d: the weight takes inputs with {weight.ndim} dims, "
            f"or one less, of {channels} channels ({errors.user_line(3)})",
            [shown(x), shown(weight)]))
    if x.ndim == weight.ndim - 1:
        out = convolution(x.unsqueeze(0), packed, scale, zero_point, low, added)
        return out.squeeze(0)
    if packed.transpose():
        sums = _transposed_sums(x, packed)
    else:
        sums = _sums(x, packed)
    out = scaled(sums, x, packed, scale, zero_point, 1, low)
    return with_history(out, x, packed.bias(),
                        lambda a, b: of_numbers(a, weight.dequantize(), b, packed), low)


def of_numbers(x: Tensor, weight: Tensor, bias: Tensor | None, packed: ConvPackedParamsBase):
    return ops.convolution(x, weight, bias, packed.stride(), packed.padding(), packed.dilation(),
                           packed.transpose(), packed.output_padding(), packed.groups())


def _transposed_sums(x: QuantizedTensor, packed: ConvPackedParamsBase) -> Tensor:
    """Sums of the products that a transposed convolution has; exact in double precision."""
    weight = packed.weight()
    shape = [1] * weight.ndim
    shape[max(weight.axis, 0)] = -1
    a = x.int_part.to(dt.float64) - x.zero_part
    b = weight.int_part.to(dt.float64) - weight.zero_part.reshape(shape)
    return of_numbers(a, b, None, packed).to(dt.int32)


def _sums(x: QuantizedTensor, packed: ConvPackedParamsBase) -> Tensor:
    """Sums of the products that a convolution has: windows as rows, times the weight."""
    weight, groups = packed.weight(), packed.groups()
    found = x.int_part
    around = [n for p in reversed(packed.padding()) for n in (p, p)]
    if any(around):
        found = ops.constant_pad_nd(found, around, int(x.zero_part))
    n = weight.ndim - 2
    for d in range(n):
        size = packed.dilation()[d] * (weight.shape[2 + d] - 1) + 1
        found = found.unfold(2 + d, size, packed.stride()[d])
    found = found[(..., *[slice(None, None, k) for k in packed.dilation()])]
    sizes, channels = list(found.shape[2:2 + n]), found.shape[1] // groups
    outs = weight.shape[0] // groups
    parts = []
    for g in range(groups):
        windows = found[:, g * channels:(g + 1) * channels]
        order = [0, *range(2, 2 + n), 1, *range(2 + n, 2 + 2 * n)]
        rows = windows.permute(order).reshape(-1, weight[:1].int_part.numel())
        part = slice(g * outs, (g + 1) * outs)
        own = Packed(_rows(weight, part), None)
        sums = ops._integer_products(rows, own.weight().int_part.reshape(outs, -1))
        parts.append(centred(sums, x, own, rows))
    whole = parts[0] if groups == 1 else ops.cat(parts, 1)
    return whole.reshape([x.shape[0], *sizes, weight.shape[0]]).permute(
        [0, n + 1, *range(1, n + 1)])


def _rows(weight: QuantizedTensor, part: slice) -> QuantizedTensor:
    """Some output channels of a weight."""
    if weight.axis < 0:
        return weight.like(weight.int_part[part])
    return QuantizedTensor.make(weight.int_part[part], weight.scale_part[part],
                                weight.zero_part[part], weight.kind, 0)


def product(a: QuantizedTensor, b: QuantizedTensor, scale: float, zero_point: int,
            relu: bool) -> QuantizedTensor:
    """Products of elements: those of integers, scaled."""
    for t in (a, b):
        one_scale(t, "mul")
    x, y = (t.int_part.to(dt.int32) - t.zero_part.to(dt.int32) for t in (a, b))
    whole, zero = ops.full((), scale, dtype=dt.float64), ops.full((), zero_point)
    check_parameters(whole, zero, a.kind, "quantized::mul")
    step = 1 / whole.to(dt.float32)
    by = a.scale_part.to(dt.float32) * b.scale_part.to(dt.float32) * step
    kind = a.kind
    level = ((x * y).to(dt.float32) * by).round() + zero_point
    level = level.clamp(max(zero_point, kind.low) if relu else kind.low, kind.high)
    return QuantizedTensor.make(level.to(dt.by_name(kind.numbers)), whole, zero, kind)


def matmul(a: QuantizedTensor, b: QuantizedTensor, scale: float, zero_point: int):
    """A product of quantised matrices, or of batches of them."""
    for t in (a, b):
        one_scale(t, "matmul")
    exact = dt.float64 if a.shape[-1] > BLOCK // 2 else dt.float32
    x, y = (t.int_part.to(exact) - t.zero_part.to(exact) for t in (a, b))
    numbers = x.matmul(y).to(dt.float32) * (a.scale_part * b.scale_part).to(dt.float32)
    step, zero = ops.full((), float(scale), dtype=dt.float64), ops.full((), int(zero_point))
    check_parameters(step, zero, a.kind, "quantized::matmul")
    out = rounded(numbers, step, zero, a.kind)
    if a.through_part is not None or b.through_part is not None:
        out.through_part = _passed(a.dequantize().matmul(b.dequantize()), out)
    return out
