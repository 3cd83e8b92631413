"""Normalisation, embedding and convolution of nested tensors."""

from __future__ import annotations

from typing import Any

from .. import errors
from ..core.handle import Tensor
from ..parts.rules import rule, shown
from ..table.packets import ops
from .construct import from_padded, padded_values
from .ragged import Ragged, lengths_of, summed
from .segments import segments
from .tensor import NestedTensor, packed


def _refuse(name: str, t: NestedTensor, said: str) -> Exception:
    return errors.RefusedValue(errors.text(f"{name}(): {said} ({errors.user_line(3)})", shown(t),
                                           NestedTensor.cure))


def _check_normalized(name: str, t: NestedTensor, normalized_shape: Any) -> None:
    if any(isinstance(n, Ragged) for n in normalized_shape) or (
            len(normalized_shape) > t.ndim - 1 - t.ragged_idx):
        raise _refuse(name, t, "normalizing over the ragged dim not supported for nested tensors")


@rule(NestedTensor, "layer_norm")
def layer_norm(t: NestedTensor, normalized_shape: Any, weight: Any = None, bias: Any = None,
               eps: float = 1e-5, cudnn_enable: bool = True) -> NestedTensor:
    _check_normalized("layer_norm", t, normalized_shape)
    return t.with_values(ops.layer_norm(t.values_part, normalized_shape, weight, bias, eps))


@rule(NestedTensor, "native_layer_norm")
def native_layer_norm(t: NestedTensor, normalized_shape: Any, weight: Any, bias: Any,
                      eps: float) -> tuple:
    _check_normalized("native_layer_norm", t, normalized_shape)
    out, *rest = ops.native_layer_norm(t.values_part, normalized_shape, weight, bias, eps)
    return t.with_values(out), *rest


@rule(NestedTensor, "rms_norm")
def rms_norm(t: NestedTensor, normalized_shape: Any, weight: Any = None, eps: Any = None):
    _check_normalized("rms_norm", t, normalized_shape)
    return t.with_values(ops.rms_norm(t.values_part, normalized_shape, weight, eps))


@rule(NestedTensor, "group_norm")
def group_norm(t: NestedTensor, num_groups: int, weight: Any = None, bias: Any = None,
               eps: float = 1e-5, cudnn_enabled: bool = True) -> NestedTensor:
    """Groups of channels (dim 1) of each part, over all that comes after them."""
    if t.ragged_idx < 2:
        raise _refuse("group_norm", t, "dim 1 has the channels and cannot be ragged")
    t = packed(t)
    channels = t.shape[1]
    x = t.with_values(t.values_part.unflatten(0, (num_groups, channels // num_groups)),
                      t.ragged_idx + 1)
    values, s = segments(x, tuple(range(2, x.ndim)))  # (elements, groups)
    mean, spread = s.mean(values), s.variance(values, 0)

    def each(stat: Tensor) -> Tensor:  # (parts, groups) as values see it
        out = stat.index_select(0, t.about.numbers(t.values_part.shape[t.dense]))
        out = out.t().reshape(num_groups, 1, *[1] * (x.ndim - 3), -1)
        return out.movedim(-1, x.ragged_idx - 1).reshape(
            num_groups, *[1] * (x.ragged_idx - 2), -1, *[1] * (x.ndim - 1 - x.ragged_idx))

    out = (x.values_part - each(mean)) * (each(spread) + eps).rsqrt()
    out = out.flatten(0, 1)
    shape = (channels, *[1] * (t.ndim - 2))
    out = out if weight is None else out * weight.reshape(shape)
    return t.with_values(out if bias is None else out + bias.reshape(shape))


@rule(NestedTensor, "instance_norm")
def instance_norm(t: NestedTensor, weight: Any, bias: Any, running_mean: Any, running_var: Any,
                  use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool = True):
    if running_mean is not None or not use_input_stats:
        raise _refuse("instance_norm", t, "running statistics are of dense batches")
    return group_norm(t, t.shape[1], weight, bias, eps)


@rule(NestedTensor, "batch_norm")
def batch_norm(t: NestedTensor, weight: Any, bias: Any, running_mean: Any, running_var: Any,
               training: bool, momentum: float, eps: float, cudnn_enabled: bool = True):
    """Statistics of channels (dim 1) over all elements of all parts."""
    if t.ragged_idx < 2:
        raise _refuse("batch_norm", t, "dim 1 has the channels and cannot be ragged")
    t = packed(t)
    out = ops.batch_norm(t.values_part.unsqueeze(0), weight, bias, running_mean, running_var,
                         training, momentum, eps, cudnn_enabled)
    return t.with_values(out.squeeze(0))


@rule(NestedTensor, "embedding")
def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> NestedTensor:
    if isinstance(weight, NestedTensor):
        return NotImplemented
    return indices.with_values(ops.embedding(weight, indices.values_part, padding_idx,
                                             scale_grad_by_freq, sparse))


def _conv1d(t: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any,
            groups: int) -> NestedTensor:
    """Every part for itself: zeros behind its end are what padding would put there."""
    if not isinstance(t, NestedTensor) or t.ndim != 3 or t.ragged_idx != 2:
        return NotImplemented
    width = weight.shape[-1]
    reach = dilation[0] * (width - 1)
    t = packed(t)
    rows = padded_values(t, 0.0, t.longest()).movedim(1, 2)
    if isinstance(padding, str):
        around = reach if padding == "same" else 0
        rows = ops.constant_pad_nd(rows, [around // 2, around - around // 2])
    else:
        around = 2 * padding[0]
        rows = ops.constant_pad_nd(rows, [padding[0], padding[0]]) if around else rows
    out = ops.conv1d(rows, weight, bias, stride, 0, dilation, groups)
    if around == reach and stride[0] == 1:
        return from_padded(out, t.about, 2)
    lengths = ((t.about.lengths + around - reach - 1) // stride[0] + 1).clamp(min=0)
    return from_padded(out, lengths_of(summed(lengths)), 2)


@rule(NestedTensor, "conv1d", "conv1d.padding")
def conv1d(t: Tensor, weight: Tensor, bias: Any = None, stride: Any = 1, padding: Any = 0,
           dilation: Any = 1, groups: int = 1) -> NestedTensor:
    def one(n: Any) -> Any:
        return n if isinstance(n, (list, tuple, str)) else [n]

    return _conv1d(t, weight, bias, one(stride), one(padding), one(dilation), groups)


@rule(NestedTensor, "convolution")
def convolution(t: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any,
                transposed: bool, output_padding: Any, groups: int) -> NestedTensor:
    if transposed:
        return NotImplemented
    return _conv1d(t, weight, bias, stride, padding, dilation, groups)


@rule(NestedTensor, "constant_pad_nd")
def constant_pad_nd(t: NestedTensor, pad: Any, value: Any = 0) -> NestedTensor:
    dense = t.ndim - 1 - t.ragged_idx
    if len(pad) > 2 * dense:
        raise _refuse("constant_pad_nd", t, "the ragged dim cannot be padded")
    return t.with_values(ops.constant_pad_nd(t.values_part, pad, value))
