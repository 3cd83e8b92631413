"""Linear maps, embeddings, convolutions and sliding blocks."""

from __future__ import annotations

import warnings
from typing import Any

from ...autograd.grad_mode import no_grad
from ...core.handle import Tensor
from ...table.packets import ops
from ...tensor.overridable import asks_in as _asks_in
from ...tensor.overridable import overridable as _overridable
from ...tensor.overridable import taken_over as _taken_over

_asks = _asks_in(globals())


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`."""
    if _asks and (taken := _taken_over(linear, (input, weight, bias))):
        return taken[0]
    return ops.linear(input, weight, bias)


@_overridable
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input1 @ weight[k] @ input2 + bias[k]` for each k."""
    return ops.bilinear(input1, input2, weight, bias)


def grouped_mm(mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None,
               bias: Tensor | None = None, out_dtype=None) -> Tensor:
    """Matrix products of groups of rows or columns; `offs` are where the groups end."""
    if _asks and (taken := _taken_over(grouped_mm, locals())):
        return taken[0]
    return ops._grouped_mm(mat_a, mat_b, offs, bias, out_dtype)


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None,
              max_norm: float | None = None, norm_type: float = 2.0,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """Rows of `weight` at the given indices."""
    if _asks and (taken := _taken_over(embedding, locals())):
        return taken[0]
    if padding_idx is None:
        padding_idx = -1
    else:
        rows = weight.shape[0]
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= rows
    if max_norm is not None:
        _limit_rows(weight, input, max_norm, norm_type)
    return ops.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def _limit_rows(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Shrink, in place, the rows that are about to be used to a norm of at most `max_norm`."""
    with no_grad():
        used = indices.reshape([-1])  # a row that is used twice is written twice, the same
        rows = weight[used]
        norms = ops.linalg_vector_norm(rows, norm_type, [1], True)
        factor = ops.where(norms > max_norm, max_norm / (norms + 1e-7), 1.0)
        weight[used] = rows * factor


_BAG_MODES = {"sum": 0, "mean": 1, "max": 2}


def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None,
                  max_norm: float | None = None, norm_type: float = 2,
                  scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                  per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
                  padding_idx: int | None = None) -> Tensor:
    """Sums, means or maxima of rows of `weight`; bags start at `offsets`, or are the rows of a
    matrix of indices."""
    if _asks and (taken := _taken_over(embedding_bag, locals())):
        return taken[0]
    if weight.dtype.category == 1 and input.dtype.is_floating_point:
        warnings.warn("Argument order of nn.functional.embedding_bag was changed. Usage "
                      "`embedding_bag(weight, input, ...)` is deprecated, and should now be "
                      "`embedding_bag(input, weight, ...)`.", stacklevel=2)
        weight, input = input, weight
    _check_bag(input, weight, offsets, mode, scale_grad_by_freq, sparse, per_sample_weights)
    if input.ndim == 2:
        offsets = ops.arange(0, input.numel(), input.shape[1], dtype=input.dtype,
                             device=input.device)
        input = input.reshape([-1])
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape([-1])
    if max_norm is not None:
        _limit_rows(weight, input, max_norm, norm_type)
    return ops.embedding_bag(weight, input, offsets, scale_grad_by_freq, _BAG_MODES[mode], sparse,
                             per_sample_weights, include_last_offset, padding_idx)[0]


def _check_bag(input, weight, offsets, mode, scale_grad_by_freq, sparse, per_sample_weights):
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is "
                         "not None, then it must have the same shape as the input "
                         f"({input.shape})")
    if weight.ndim != 2:
        raise ValueError("weight has to be a 2D Tensor, but got Tensor of dimension "
                         f"{weight.ndim}")
    if input.ndim == 2 and offsets is not None:
        raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a "
                         "mini-batch of fixed length sequences. However, found offsets of type "
                         f"{type(offsets)}")
    if input.ndim == 1 and offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if input.ndim == 1 and offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    if input.ndim not in (1, 2):
        raise ValueError("input has to be 1D or 2D Tensor, but got Tensor of dimension "
                         f"{input.ndim}")
    if mode not in _BAG_MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError("embedding_bag: per_sample_weights was not None. "
                                  "per_sample_weights is only supported for mode='sum' (got "
                                  f"mode='{mode}').")


@_overridable
def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Rows with a single one at the given class."""
    return ops.one_hot(input, num_classes)


# ---------------------------------------------------------------------------------------------
# Convolutions and sliding blocks


@_overridable
def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1,
           padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Tensor:
    """Convolution of signals (batch, channel, time)."""
    return ops.conv1d(input, weight, bias, stride, padding, dilation, groups)


@_overridable
def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1,
           padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Tensor:
    """Convolution of images (batch, channel, height, width)."""
    return ops.conv2d(input, weight, bias, stride, padding, dilation, groups)


@_overridable
def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1,
           padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Tensor:
    """Convolution of volumes (batch, channel, depth, height, width)."""
    return ops.conv3d(input, weight, bias, stride, padding, dilation, groups)


@_overridable
def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1,
                     padding: Any = 0, output_padding: Any = 0, groups: int = 1,
                     dilation: Any = 1) -> Tensor:
    """Transpose of the convolution of signals."""
    return ops.conv_transpose1d(input, weight, bias, stride, padding, output_padding, groups,
                                dilation)


@_overridable
def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1,
                     padding: Any = 0, output_padding: Any = 0, groups: int = 1,
                     dilation: Any = 1) -> Tensor:
    """Transpose of the convolution of images."""
    return ops.conv_transpose2d(input, weight, bias, stride, padding, output_padding, groups,
                                dilation)


@_overridable
def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1,
                     padding: Any = 0, output_padding: Any = 0, groups: int = 1,
                     dilation: Any = 1) -> Tensor:
    """Transpose of the convolution of volumes."""
    return ops.conv_transpose3d(input, weight, bias, stride, padding, output_padding, groups,
                                dilation)


@_overridable
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolution of (time, batch, channel) over time."""
    return ops.conv_tbc(input, weight, bias, pad)


def unfold(input: Tensor, kernel_size, dilation: Any = 1, padding: Any = 0,
           stride: Any = 1) -> Tensor:
    """The sliding blocks of images as columns."""
    if _asks and (taken := _taken_over(unfold, locals())):
        return taken[0]
    return ops.im2col(input, kernel_size, dilation, padding, stride)


def fold(input: Tensor, output_size, kernel_size, dilation: Any = 1, padding: Any = 0,
         stride: Any = 1) -> Tensor:
    """Images from columns of sliding blocks; overlapping blocks add up."""
    if _asks and (taken := _taken_over(fold, locals())):
        return taken[0]
    return ops.col2im(input, output_size, kernel_size, dilation, padding, stride)
