"""What operators do to the numbers of quantised tensors.

They are computed in single precision and rounded with the parameters of the first argument, or
with those that fit the range of a function (`sigmoid`).  Results that are not numbers (comparisons)
are left alone; an operator whose results leave the range of its arguments (a sum, a product of
matrices) is refused: `ops.quantized` has those, with a scale to be given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..array import dtype as dt
from ..core.handle import Tensor, tensors_in
from ..core.stack import bind
from ..table.packets import ops
from .construct import recorded, rounded
from .exact import fitted, on_integers, ordered
from .tensor import QuantizedTensor

ways: dict[str, Callable] = {}  # operator -> what it does to quantised tensors


def way(*names: str):
    """Decorate what operators of some names do, given the first tensor, overload and arguments."""

    def decorate(function: Callable) -> Callable:
        ways.update(dict.fromkeys(names, function))
        return function

    return decorate


def on_numbers(t: QuantizedTensor, ov, flat: tuple):
    """The result of an operator on quantised tensors."""
    known = ways.get(ov.op.base_name)
    if known is None and ov.kind == "view":
        known = moved
    if known is None and ov.kind in ("pointwise", "creation", "random"):
        known = computed
    return NotImplemented if known is None else known(t, ov, flat)


@way("_unsafe_view", "channel_shuffle", "clone", "flip", "gather", "index", "index_select",
     "masked_select", "native_channel_shuffle", "pixel_shuffle", "pixel_unshuffle", "repeat",
     "roll", "rot90", "take", "unsafe_split", "unsafe_split_with_sizes", "embedding")
def moved(t: QuantizedTensor, ov, flat: tuple):
    """Elements are put into other places, and none is added."""
    if t.packed_shape is not None and ov.op.base_name == "clone":  # bytes are in places, too
        return t.like(bind(ov, (t.int_part, None)))
    return on_integers(t, lambda x: bind(ov, (x, *flat[1:])), ov.op.base_name)


@way("amax", "amin", "aminmax", "cummax", "cummin", "kthvalue", "max", "median", "min", "mode",
     "msort", "nanmedian", "sort", "topk")
def chosen(t: QuantizedTensor, ov, flat: tuple):
    """Elements are chosen by their order; further results are places."""
    if ov.kind == "pointwise":
        return computed(t, ov, flat)
    return ordered(t, lambda x: bind(ov, (x, *flat[1:])), ov.op.base_name)


@way("_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d",
     "adaptive_max_pool2d", "adaptive_max_pool3d", "cat", "constant_pad_nd", "copy", "diag_embed",
     "diagonal_scatter", "fill", "fractional_max_pool2d", "grid_sampler_2d", "grid_sampler_3d",
     "im2col", "index_copy", "index_fill", "index_put", "masked_scatter",
     "max_pool2d_with_indices", "max_pool3d_with_indices", "mean", "reflection_pad1d",
     "reflection_pad2d", "reflection_pad3d", "replication_pad1d", "replication_pad2d",
     "replication_pad3d", "scatter", "select_scatter", "slice_scatter", "stack", "std", "tril",
     "triu", "upsample_bicubic2d", "upsample_nearest1d", "upsample_nearest2d",
     "upsample_nearest3d")
def computed(t: QuantizedTensor, ov, flat: tuple):
    """Results lie in the range of the arguments, and have the parameters of the first."""
    first = next(v for v in tensors_in(flat) if isinstance(v, QuantizedTensor))
    flat, asked = _without_dtype(ov, flat)
    out = bind(ov, tuple([_number(v) for v in flat]))
    return out if asked else _each(out, lambda o: _rounded(first, o))


def _without_dtype(ov, flat: tuple) -> tuple[tuple, bool]:
    """(arguments, is a dtype asked for?); that of quantised tensors is what they have anyway."""
    for k, (argument, v) in enumerate(zip(ov.schema.args, flat)):
        if argument.name == "dtype" and isinstance(v, dt.Quantized):
            return (*flat[:k], None, *flat[k + 1:]), False
        if argument.name == "dtype" and v is not None:
            return flat, True
    return flat, False


@way("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool1d", "avg_pool1d",
     "avg_pool2d", "avg_pool3d", "upsample_bilinear2d", "upsample_linear1d",
     "upsample_trilinear3d")
def averaged(t: QuantizedTensor, ov, flat: tuple):
    """Means of numbers are those of their integers, so that a half is seen to be one."""
    out = computed(t, ov, flat)
    if t.axis >= 0 or t.packed_shape is not None:
        return out
    exact = dt.float64 if t.kind.name == "qint32" else dt.float32
    means = bind(ov, (t.int_part.to(exact) - t.zero_part, *flat[1:])) + t.zero_part
    integers = means.round().clamp(t.kind.low, t.kind.high).to(t.int_part.dtype)
    return t.like(integers, out.through_part)


@way("sigmoid", "hardsigmoid")
def from_zero(t: QuantizedTensor, ov, flat: tuple):
    """Results lie between 0 and 1."""
    return _in_range(t, ov, flat, 0)


@way("tanh")
def from_minus_one(t: QuantizedTensor, ov, flat: tuple):
    """Results lie between -1 and 1."""
    return _in_range(t, ov, flat, -1)


@way("gelu")
def smooth(t: QuantizedTensor, ov, flat: tuple):
    """The scale of the result takes the way by single precision, as in PyTorch."""
    first = QuantizedTensor.make(t.int_part, t.scale_part.float().double(), t.zero_part, t.kind,
                                 t.axis, t.through_part)
    return _rounded(first, bind(ov, (t.dequantize(), *flat[1:])))


def _in_range(t: QuantizedTensor, ov, flat: tuple, low: int) -> QuantizedTensor:
    out = bind(ov, (t.dequantize(), *flat[1:]))
    scale, zero_point = parameters(low, 1, t.kind)
    return rounded(out, ops.full((), scale, dtype=dt.float64), ops.full((), zero_point), t.kind,
                   straight_through=recorded(out))


def _each(out: Any, function: Callable) -> Any:
    if isinstance(out, Tensor):
        return function(out)
    made = [function(o) for o in out]
    return type(out)(*made) if hasattr(out, "_fields") else type(out)(made)


def _number(v: Any) -> Any:
    if isinstance(v, (list, tuple)):
        return [_number(e) for e in v]
    return v.dequantize() if isinstance(v, QuantizedTensor) else v


def _rounded(first: QuantizedTensor, out: Tensor) -> Any:
    if not out.dtype.is_floating_point:
        return out
    if first.through_part is None and recorded(out):
        return rounded(out, first.scale_part, first.zero_part, first.kind, first.axis, True)
    return fitted(first, out)


def parameters(low: int, high: int, kind: dt.Quantized) -> tuple[float, int]:
    """(scale, zero point) of integers that cover a range from 0 or -1 to 1."""
    scale = (high - low) * 2.0 ** (-8 * kind.itemsize)
    return scale, kind.low if low == 0 else (kind.low + kind.high + 1) // 2
