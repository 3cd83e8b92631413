"""`pullback.nn.functional`: the stateless half of nn, with PyTorch's signatures.

Each function sorts out its arguments (words for reductions, legacy flags, sizes) and calls
operators of the table.  Modules that hold parameters are in the files beside this one.
"""

from __future__ import annotations

import math
import warnings
from contextlib import suppress

from ..autograd.grad_mode import no_grad
from ..core.dims import broadcast_shapes, numel
from ..core.handle import Tensor
from ..core.table import ops
from ..errors import DataDependentError
from .attention.forward import multi_head_attention_forward as multi_head_attention_forward

# ---------------------------------------------------------------------------------------------
# Arguments

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def reduction_code(reduction: str, size_average: bool | None = None,
                   reduce: bool | None = None) -> int:
    """0, 1 or 2 for "none", "mean" or "sum"; the legacy flags win if they are given."""
    if size_average is not None or reduce is not None:
        reduction = _legacy_reduction(size_average, reduce)
    try:
        return _REDUCTIONS[reduction]
    except KeyError:
        raise ValueError(f"{reduction} is not a valid value for reduction") from None


def _legacy_reduction(size_average: bool | None, reduce: bool | None) -> str:
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    word = "none" if not reduce else "mean" if size_average else "sum"
    warnings.warn("size_average and reduce args will be deprecated, please use "
                  f"reduction='{word}' instead.", stacklevel=4)
    return word


def _softmax_dim(name: str, ndim: int) -> int:
    """The dim of old programs that give none."""
    warnings.warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to "
                  "include dim=X as an argument.", stacklevel=3)
    return 0 if ndim in (0, 1, 3) else 1


def _activation(name: str, inplace: bool, input: Tensor, *args) -> Tensor:
    """An operator of the table, or its in-place variant."""
    return getattr(ops, f"{name}_" if inplace else name)(input, *args)


# ---------------------------------------------------------------------------------------------
# Linear maps and embeddings


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.T + bias`."""
    return ops.linear(input, weight, bias)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input1 @ weight[k] @ input2 + bias[k]` for each k."""
    return ops.bilinear(input1, input2, weight, bias)


def grouped_mm(mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None,
               bias: Tensor | None = None, out_dtype=None) -> Tensor:
    """Matrix products of groups of rows or columns; `offs` are where the groups end."""
    return ops._grouped_mm(mat_a, mat_b, offs, bias, out_dtype)


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None,
              max_norm: float | None = None, norm_type: float = 2.0,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """Rows of `weight` at the given indices."""
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


def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Rows with a single one at the given class."""
    return ops.one_hot(input, num_classes)


# ---------------------------------------------------------------------------------------------
# Convolutions and sliding blocks


def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride=1, padding=0,
           dilation=1, groups: int = 1) -> Tensor:
    """Convolution of signals (batch, channel, time)."""
    return ops.conv1d(input, weight, bias, stride, padding, dilation, groups)


def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride=1, padding=0,
           dilation=1, groups: int = 1) -> Tensor:
    """Convolution of images (batch, channel, height, width)."""
    return ops.conv2d(input, weight, bias, stride, padding, dilation, groups)


def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride=1, padding=0,
           dilation=1, groups: int = 1) -> Tensor:
    """Convolution of volumes (batch, channel, depth, height, width)."""
    return ops.conv3d(input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride=1, padding=0,
                     output_padding=0, groups: int = 1, dilation=1) -> Tensor:
    """Transpose of the convolution of signals."""
    return ops.conv_transpose1d(input, weight, bias, stride, padding, output_padding, groups,
                                dilation)


def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride=1, padding=0,
                     output_padding=0, groups: int = 1, dilation=1) -> Tensor:
    """Transpose of the convolution of images."""
    return ops.conv_transpose2d(input, weight, bias, stride, padding, output_padding, groups,
                                dilation)


def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride=1, padding=0,
                     output_padding=0, groups: int = 1, dilation=1) -> Tensor:
    """Transpose of the convolution of volumes."""
    return ops.conv_transpose3d(input, weight, bias, stride, padding, output_padding, groups,
                                dilation)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolution of (time, batch, channel) over time."""
    return ops.conv_tbc(input, weight, bias, pad)


def unfold(input: Tensor, kernel_size, dilation=1, padding=0, stride=1) -> Tensor:
    """The sliding blocks of images as columns."""
    return ops.im2col(input, kernel_size, dilation, padding, stride)


def fold(input: Tensor, output_size, kernel_size, dilation=1, padding=0, stride=1) -> Tensor:
    """Images from columns of sliding blocks; overlapping blocks add up."""
    return ops.col2im(input, output_size, kernel_size, dilation, padding, stride)


# ---------------------------------------------------------------------------------------------
# Activations


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    return ops.relu_(input) if inplace else ops.relu(input)


def relu_(input: Tensor) -> Tensor:
    """max(x, 0), in place."""
    return ops.relu_(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0,
             inplace: bool = False) -> Tensor:
    """x cut off at `min_val` and `max_val`."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _activation("hardtanh", inplace, input, min_val, max_val)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where it exceeds the threshold, else `value`."""
    return _activation("threshold", inplace, input, threshold, value)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x, scaled by `negative_slope` where it is negative."""
    return _activation("leaky_relu", inplace, input, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x, or alpha * (exp(x) - 1) where x is negative."""
    return _activation("elu", inplace, input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """The exponential unit whose scales keep mean and variance fixed."""
    return _activation("selu", inplace, input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x, or alpha * (exp(x / alpha) - 1) where x is negative."""
    return _activation("celu", inplace, input, alpha)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x, scaled by a learned slope where it is negative."""
    return ops.prelu(input, weight)


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
          inplace: bool = False) -> Tensor:
    """x, scaled by a random (in training) or mean slope where it is negative."""
    return _activation("rrelu", inplace, input, lower, upper, training)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x times the normal distribution function of x."""
    return ops.gelu(input, approximate=approximate)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x)."""
    return _activation("silu", inplace, input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x))."""
    return _activation("mish", inplace, input)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x itself beyond the threshold."""
    return ops.softplus(input, beta, threshold)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return ops.sigmoid(input)


def logsigmoid(input: Tensor) -> Tensor:
    """Logarithm of the sigmoid."""
    return ops.log_sigmoid(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """The sigmoid as three straight pieces."""
    return _activation("hardsigmoid", inplace, input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * hardsigmoid(x)."""
    return _activation("hardswish", inplace, input)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x, or 0 where its absolute value is at most `lambd`."""
    return ops.hardshrink(input, lambd)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by `lambd`."""
    return ops.softshrink(input, lambd)


def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return ops.tanh(input)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input - ops.tanh(input)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """First half times the sigmoid of the second half."""
    if input.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return ops.glu(input, dim)


def _writing(name: str, function):
    """The in-place form of an activation: `elu_(x)`."""
    def write(input: Tensor, *args, **kwargs) -> Tensor:
        return function(input, *args, inplace=True, **kwargs)
    write.__name__ = write.__qualname__ = name
    write.__doc__ = f"`{name[:-1]}`, in place."
    return write


elu_, selu_, celu_ = _writing("elu_", elu), _writing("selu_", selu), _writing("celu_", celu)
leaky_relu_, rrelu_ = _writing("leaky_relu_", leaky_relu), _writing("rrelu_", rrelu)
hardtanh_, threshold_ = _writing("hardtanh_", hardtanh), _writing("threshold_", threshold)


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None) -> Tensor:
    """Exponentials divided by their sum along `dim`."""
    if dim is None:
        dim = _softmax_dim("softmax", input.ndim)
    if dtype is None:
        return ops._softmax(input, dim, False)
    return ops.softmax(input, dim, dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None) -> Tensor:
    """Softmax of -x."""
    if dim is None:
        dim = _softmax_dim("softmin", input.ndim)
    return softmax(-input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype=None) -> Tensor:
    """Logarithm of the softmax along `dim`."""
    if dim is None:
        dim = _softmax_dim("log_softmax", input.ndim)
    if dtype is None:
        return ops._log_softmax(input, dim, False)
    return ops.log_softmax(input, dim, dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10,
                   dim: int = -1) -> Tensor:
    """A random, differentiable near-choice among classes; `hard` gives a one with its gradient."""
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -ops.exponential_(ops.empty_like(logits)).log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    choice = ops.zeros_like(logits).scatter(dim, soft.argmax(dim, keepdim=True), 1.0)
    return choice - soft.detach() + soft


# ---------------------------------------------------------------------------------------------
# Normalisation


def layer_norm(input: Tensor, normalized_shape, weight: Tensor | None = None,
               bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """Zero mean and unit variance over the last dims, then scale and shift."""
    return ops.native_layer_norm(input, list(normalized_shape), weight, bias, eps)[0]


def rms_norm(input: Tensor, normalized_shape, weight: Tensor | None = None,
             eps: float | None = None) -> Tensor:
    """Division by the root mean square over the last dims, then scale."""
    return ops.rms_norm(input, list(normalized_shape), weight, eps)


def _check_several(size, found: int, what: str) -> None:
    """One value alone has no variance."""
    if found == 1:
        raise ValueError(f"Expected more than 1 {what} when training, got input size {size}")


def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
               weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False,
               momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Zero mean and unit variance of each channel (dim 1), then scale and shift."""
    if training and input.ndim:
        _check_several(input.shape, numel((input.shape[0], *input.shape[2:])), "value per channel")
    return ops.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps,
                          False)


def instance_norm(input: Tensor, running_mean: Tensor | None = None,
                  running_var: Tensor | None = None, weight: Tensor | None = None,
                  bias: Tensor | None = None, use_input_stats: bool = True,
                  momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Zero mean and unit variance of each channel of each example, then scale and shift."""
    if use_input_stats:
        _check_several(input.shape, numel(input.shape[2:]), "spatial element")
    return ops.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats,
                             momentum, eps, False)


def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None,
               bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """Zero mean and unit variance of each group of channels, then scale and shift."""
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received "
                           f"{input.ndim}")
    if num_groups > 0:
        rows = input.shape[0] * input.shape[1] // num_groups
        _check_several([rows, num_groups, *input.shape[2:]], numel((rows, *input.shape[2:])),
                       "value per channel")
    return ops.group_norm(input, num_groups, weight, bias, eps)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75,
                        k: float = 1.0) -> Tensor:
    """Division by a power of the mean square of the `size` nearest channels."""
    if input.ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.ndim} "
                         "dimensions)")
    if input.numel() == 0:
        return input
    ends = [0, 0] * (input.ndim - 2) + [size // 2, (size - 1) // 2]
    squares = ops.constant_pad_nd(input * input, ends, 0)
    return input / (squares.unfold(1, size, 1).mean(-1) * alpha + k) ** beta


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12,
              out: Tensor | None = None) -> Tensor:
    """Vectors along `dim` divided by their p-norm."""
    dims = [dim] if isinstance(dim, int) else list(dim)
    norms = ops.linalg_vector_norm(input, p, dims, True).clamp_min(eps)
    return input / norms if out is None else ops.div(input, norms, out=out)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between vectors along `dim`."""
    return ops.cosine_similarity(x1, x2, dim, eps)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6,
                      keepdim: bool = False) -> Tensor:
    """p-norm of the difference of vectors along the last dim."""
    return ops.pairwise_distance(x1, x2, p, eps, keepdim)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """p-norm distances of all pairs of rows."""
    return ops.pdist(input, p)


# ---------------------------------------------------------------------------------------------
# Dropout, padding, attention


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability p and scale the rest by 1 / (1 - p)."""
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    value = ops.dropout(input, p, True)
    return input.copy_(value) if inplace else value


def _check_p(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False,
                  inplace: bool = False) -> Tensor:
    """Dropout that keeps the mean and variance of self-normalising networks."""
    _check_p(p)
    return _activation("alpha_dropout", inplace, input, p, training)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False,
                          inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels."""
    _check_p(p)
    return _activation("feature_alpha_dropout", inplace, input, p, training)


def _channel_dropout(rank: int, input: Tensor, p: float, training: bool,
                     inplace: bool) -> Tensor:
    """Dropout of whole channels of one example (rank + 1 dims) or of a batch (rank + 2)."""
    _check_p(p)
    single = input.ndim == rank + 1 and rank != 2
    if single:
        input = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    out = _activation("feature_dropout", inplace, input, p, training)
    if single:
        out = out.squeeze_(0) if inplace else out.squeeze(0)
    return out


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True,
              inplace: bool = False) -> Tensor:
    """Zero whole channels of (N, C, L) or (C, L) with probability p."""
    if input.ndim not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D "
                           "input. Note that dropout1d exists to provide channel-wise dropout on "
                           "inputs with 1 spatial dimension, a channel dimension, and an optional "
                           "batch dimension (i.e. 2D or 3D inputs).")
    return _channel_dropout(1, input, p, training, inplace)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True,
              inplace: bool = False) -> Tensor:
    """Zero whole channels of (N, C, H, W) with probability p."""
    if input.ndim not in (3, 4):
        warnings.warn(f"dropout2d: Received a {input.ndim}-D input to dropout2d, which is "
                      "deprecated and will result in an error in a future release.", stacklevel=2)
    elif input.ndim == 3:
        warnings.warn("dropout2d: Received a 3D input to dropout2d and assuming that channel-wise "
                      "1D dropout behavior is desired - input is interpreted as shape (N, C, L).",
                      stacklevel=2)
    return _channel_dropout(2, input, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True,
              inplace: bool = False) -> Tensor:
    """Zero whole channels of (N, C, D, H, W) or (C, D, H, W) with probability p."""
    if input.ndim not in (4, 5):
        warnings.warn(f"dropout3d: Received a {input.ndim}-D input to dropout3d, which is "
                      "deprecated and will result in an error in a future release.", stacklevel=2)
    return _channel_dropout(3, input, p, training, inplace)


def pad(input: Tensor, pad, mode: str = "constant", value: float | None = None) -> Tensor:
    """Extend the last dims; `pad` lists (before, after) from the last dim on."""
    if mode == "constant":
        return ops.constant_pad_nd(input, list(pad), 0 if value is None else value)
    return ops.pad(input, list(pad), mode, value)


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor,
                                 attn_mask: Tensor | None = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False) -> Tensor:
    """softmax(query @ key.T * scale + mask) @ value."""
    return ops.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal,
                                            scale=scale, enable_gqa=enable_gqa)


# ---------------------------------------------------------------------------------------------
# Pooling.  A missing stride is the size of the window.


def _sequence(value, rank: int) -> list:
    """One entry for each spatial dim."""
    return list(value) if isinstance(value, (list, tuple)) else [value] * rank


def _max_pool(rank: int, input: Tensor, kernel_size, stride, padding, dilation, ceil_mode: bool,
              return_indices: bool):
    call = getattr(ops, f"max_pool{rank}d" + ("_with_indices" if return_indices else ""))
    return call(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)


def max_pool1d(input: Tensor, kernel_size, stride=None, padding=0, dilation=1,
               ceil_mode: bool = False, return_indices: bool = False):
    """Maxima over sliding windows of signals, and on demand their places."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(input: Tensor, kernel_size, stride=None, padding=0, dilation=1,
               ceil_mode: bool = False, return_indices: bool = False):
    """Maxima over sliding windows of images, and on demand their flat places."""
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(input: Tensor, kernel_size, stride=None, padding=0, dilation=1,
               ceil_mode: bool = False, return_indices: bool = False):
    """Maxima over sliding windows of volumes, and on demand their flat places."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool1d_with_indices(input: Tensor, kernel_size, stride=None, padding=0, dilation=1,
                            ceil_mode: bool = False,
                            return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Maxima over sliding windows of signals, and their places."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool2d_with_indices(input: Tensor, kernel_size, stride=None, padding=0, dilation=1,
                            ceil_mode: bool = False,
                            return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Maxima over sliding windows of images, and their flat places."""
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool3d_with_indices(input: Tensor, kernel_size, stride=None, padding=0, dilation=1,
                            ceil_mode: bool = False,
                            return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Maxima over sliding windows of volumes, and their flat places."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def avg_pool1d(input: Tensor, kernel_size, stride=None, padding=0, ceil_mode: bool = False,
               count_include_pad: bool = True) -> Tensor:
    """Means over sliding windows of signals."""
    return ops.avg_pool1d(input, kernel_size, [] if stride is None else stride, padding, ceil_mode,
                          count_include_pad)


def avg_pool2d(input: Tensor, kernel_size, stride=None, padding=0, ceil_mode: bool = False,
               count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
    """Means over sliding windows of images."""
    return ops.avg_pool2d(input, kernel_size, [] if stride is None else stride, padding, ceil_mode,
                          count_include_pad, divisor_override)


def avg_pool3d(input: Tensor, kernel_size, stride=None, padding=0, ceil_mode: bool = False,
               count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
    """Means over sliding windows of volumes."""
    return ops.avg_pool3d(input, kernel_size, [] if stride is None else stride, padding, ceil_mode,
                          count_include_pad, divisor_override)


def _adaptive_size(input: Tensor, output_size):
    """The wanted size, with the input's where it is None."""
    if not isinstance(output_size, (list, tuple)):
        return output_size
    if input.ndim <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    own = input.shape[input.ndim - len(output_size):]
    return [n if size is None else size for size, n in zip(output_size, own)]


def adaptive_avg_pool1d(input: Tensor, output_size) -> Tensor:
    """Means over as many windows of signals as asked for."""
    return ops.adaptive_avg_pool1d(input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size) -> Tensor:
    """Means over as many windows of images as asked for."""
    return ops.adaptive_avg_pool2d(input, _adaptive_size(input, output_size))


def adaptive_avg_pool3d(input: Tensor, output_size) -> Tensor:
    """Means over as many windows of volumes as asked for."""
    return ops.adaptive_avg_pool3d(input, _adaptive_size(input, output_size))


def adaptive_max_pool1d_with_indices(input: Tensor, output_size,
                                     return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Maxima over as many windows of signals as asked for, and their places."""
    return ops.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool2d_with_indices(input: Tensor, output_size,
                                     return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Maxima over as many windows of images as asked for, and their flat places."""
    return ops.adaptive_max_pool2d(input, _adaptive_size(input, output_size))


def adaptive_max_pool3d_with_indices(input: Tensor, output_size,
                                     return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Maxima over as many windows of volumes as asked for, and their flat places."""
    return ops.adaptive_max_pool3d(input, _adaptive_size(input, output_size))


def adaptive_max_pool1d(input: Tensor, output_size, return_indices: bool = False):
    """Maxima over as many windows of signals as asked for, and on demand their places."""
    found = adaptive_max_pool1d_with_indices(input, output_size)
    return found if return_indices else found[0]


def adaptive_max_pool2d(input: Tensor, output_size, return_indices: bool = False):
    """Maxima over as many windows of images as asked for, and on demand their flat places."""
    found = adaptive_max_pool2d_with_indices(input, output_size)
    return found if return_indices else found[0]


def adaptive_max_pool3d(input: Tensor, output_size, return_indices: bool = False):
    """Maxima over as many windows of volumes as asked for, and on demand their flat places."""
    found = adaptive_max_pool3d_with_indices(input, output_size)
    return found if return_indices else found[0]


def _fractional_max_pool(rank: int, input: Tensor, kernel_size, output_size, output_ratio,
                         samples: Tensor | None) -> tuple[Tensor, Tensor]:
    if output_size is None:
        if output_ratio is None:
            raise ValueError(f"fractional_max_pool{rank}d requires specifying either an "
                             "output_size or an output_ratio")
        ratios = _sequence(output_ratio, rank)
        output_size = [int(n * r) for n, r in zip(input.shape[-rank:], ratios)]
    if samples is None:
        images = 1 if input.ndim == rank + 1 else input.shape[0]
        samples = ops.rand([images, input.shape[-rank - 1], rank], dtype=input.dtype,
                           device=input.device)
    return getattr(ops, f"fractional_max_pool{rank}d")(input, kernel_size, output_size, samples)


def fractional_max_pool2d_with_indices(input: Tensor, kernel_size, output_size=None,
                                       output_ratio=None, return_indices: bool = False,
                                       _random_samples: Tensor | None = None
                                       ) -> tuple[Tensor, Tensor]:
    """Maxima over windows of images at pseudo-random places, and their flat places."""
    return _fractional_max_pool(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d_with_indices(input: Tensor, kernel_size, output_size=None,
                                       output_ratio=None, return_indices: bool = False,
                                       _random_samples: Tensor | None = None
                                       ) -> tuple[Tensor, Tensor]:
    """Maxima over windows of volumes at pseudo-random places, and their flat places."""
    return _fractional_max_pool(3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(input: Tensor, kernel_size, output_size=None, output_ratio=None,
                          return_indices: bool = False, _random_samples: Tensor | None = None):
    """Maxima over windows of images at pseudo-random places."""
    found = _fractional_max_pool(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


def fractional_max_pool3d(input: Tensor, kernel_size, output_size=None, output_ratio=None,
                          return_indices: bool = False, _random_samples: Tensor | None = None):
    """Maxima over windows of volumes at pseudo-random places."""
    found = _fractional_max_pool(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


def _unpool_arguments(rank: int, input: Tensor, kernel_size, stride, padding,
                      output_size) -> tuple[list, list, list]:
    """(output size, stride, padding) of unpooling; a wanted size must be one that pooling fits."""
    kernel = _sequence(kernel_size, rank)
    stride = kernel if stride is None else _sequence(stride, rank)
    padding = _sequence(padding, rank)
    usual = [(n - 1) * s + k - 2 * p
             for n, k, s, p in zip(input.shape[-rank:], kernel, stride, padding)]
    if output_size is None:
        return usual, stride, padding
    size = list(output_size)
    size = size[2:] if len(size) == rank + 2 else size
    if len(size) != rank:
        raise ValueError(f"output_size should be a sequence containing {rank} or {rank + 2} "
                         f"elements, but it has a length of '{len(output_size)}'")
    for d, (n, usually, s) in enumerate(zip(size, usual, stride)):
        if not usually - s < n < usually + s:
            raise ValueError(f"invalid output_size \"{size}\" (dim {d} must be between "
                             f"{usually - s} and {usually + s})")
    return size, stride, padding


def max_unpool1d(input: Tensor, indices: Tensor, kernel_size, stride=None, padding=0,
                 output_size=None) -> Tensor:
    """Zeros with the elements of signals at the places that pooling found."""
    size, _, _ = _unpool_arguments(1, input, kernel_size, stride, padding, output_size)
    out = ops.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1])
    return out.squeeze(-1)


def max_unpool2d(input: Tensor, indices: Tensor, kernel_size, stride=None, padding=0,
                 output_size=None) -> Tensor:
    """Zeros with the elements of images at the places that pooling found."""
    size, _, _ = _unpool_arguments(2, input, kernel_size, stride, padding, output_size)
    return ops.max_unpool2d(input, indices, size)


def max_unpool3d(input: Tensor, indices: Tensor, kernel_size, stride=None, padding=0,
                 output_size=None) -> Tensor:
    """Zeros with the elements of volumes at the places that pooling found."""
    size, stride, padding = _unpool_arguments(3, input, kernel_size, stride, padding, output_size)
    return ops.max_unpool3d(input, indices, size, stride, padding)


def _lp_pool(rank: int, input: Tensor, norm_type: float, kernel_size, stride,
             ceil_mode: bool) -> Tensor:
    """(sum of x^p over each window)^(1/p); a negative sum keeps its sign, as in PyTorch."""
    kernel = _sequence(kernel_size, rank)
    mean = getattr(ops, f"avg_pool{rank}d")(input.pow(norm_type), kernel,
                                            [] if stride is None else stride, 0, ceil_mode)
    total = mean.sign() * ops.relu(mean.abs()) * math.prod(kernel)
    return total.pow(1.0 / norm_type)


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: int, stride=None,
              ceil_mode: bool = False) -> Tensor:
    """Power sums over sliding windows of signals."""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input: Tensor, norm_type: float, kernel_size, stride=None,
              ceil_mode: bool = False) -> Tensor:
    """Power sums over sliding windows of images."""
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input: Tensor, norm_type: float, kernel_size, stride=None,
              ceil_mode: bool = False) -> Tensor:
    """Power sums over sliding windows of volumes."""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


# ---------------------------------------------------------------------------------------------
# Resizing, sampling at a grid, shuffles

# mode -> operator for one, two and three spatial dims
_RESIZE = {
    "nearest": ("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"),
    "nearest-exact": ("_upsample_nearest_exact1d", "_upsample_nearest_exact2d",
                      "_upsample_nearest_exact3d"),
    "area": ("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"),
    "linear": ("upsample_linear1d", None, None),
    "bilinear": (None, "upsample_bilinear2d", None),
    "trilinear": (None, None, "upsample_trilinear3d"),
    "bicubic": (None, "upsample_bicubic2d", None),
    "lanczos": (None, None, None),
}
_SMOOTH = {"bilinear": "_upsample_bilinear2d_aa", "bicubic": "_upsample_bicubic2d_aa",
           "lanczos": "_upsample_lanczos2d_aa"}


def _resize_arguments(input: Tensor, size, scale_factor) -> tuple[list | None, list | None]:
    """(size, scale factors), one of them None, with one entry for each spatial dim."""
    rank = input.ndim - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    what, value = ("size", size) if size is not None else ("scale_factor", scale_factor)
    if isinstance(value, (list, tuple)) and len(value) != rank:
        raise ValueError(f"Input and {what} must have the same number of spatial dimensions, but "
                         f"got input with spatial dimensions of {list(input.shape[2:])} and {what} "
                         f"of {value}. Please provide input tensor in (N, C, d1, d2, ...,dK) "
                         f"format and {what} in (s1, s2, ...,sK) format.")
    value = _sequence(value, rank)
    return (value, None) if size is not None else (None, [float(v) for v in value])


def interpolate(input: Tensor, size=None, scale_factor=None, mode: str = "nearest",
                align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                antialias: bool = False) -> Tensor:
    """Signals, images or volumes resized to a size or by a factor."""
    flags: list = []
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError("align_corners option can only be set with the interpolating modes: "
                             "linear | bilinear | bicubic | trilinear")
    else:
        flags = [bool(align_corners)]
    if mode == "lanczos" and (align_corners or not antialias):
        raise ValueError("Lanczos mode requires antialias=True and does not support "
                         "align_corners=True")
    rank = input.ndim - 2
    size, scales = _resize_arguments(input, size, scale_factor)
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if scales is not None and (recompute_scale_factor or mode == "area"):
        size = [math.floor(float(n) * s) for n, s in zip(input.shape[2:], scales)]
        scales = None
    if antialias:
        if mode not in _SMOOTH or rank != 2:
            raise ValueError("Anti-alias option is restricted to bilinear, bicubic and lanczos "
                             "modes and requires a 4-D tensor as input")
        return getattr(ops, _SMOOTH[mode])(input, size, *flags, scales)
    if mode not in _RESIZE or rank not in (1, 2, 3) or _RESIZE[mode][rank - 1] is None:
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported "
            f"(got {input.ndim}D) for the modes: nearest | linear | bilinear | bicubic | trilinear "
            f"| area | nearest-exact (got {mode})")
    call = getattr(ops, _RESIZE[mode][rank - 1])
    if mode == "area":
        return call(input, size)
    return call(input, size, *flags, scales)


def upsample(input: Tensor, size=None, scale_factor=None, mode: str = "nearest",
             align_corners: bool | None = None) -> Tensor:
    """The old name of `interpolate`."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` "
                  "instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size=None, scale_factor=None) -> Tensor:
    """`interpolate` to the nearest element."""
    warnings.warn("`nn.functional.upsample_nearest` is deprecated. Use "
                  "`nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size=None, scale_factor=None) -> Tensor:
    """Bilinear `interpolate` with aligned corners."""
    warnings.warn("`nn.functional.upsample_bilinear` is deprecated. Use "
                  "`nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


_SAMPLE_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_SAMPLE_PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}


def _aligned(name: str, align_corners: bool | None) -> bool:
    if align_corners is None:
        warnings.warn(f"Default {name} behavior has changed to align_corners=False since 1.3.0. "
                      "Please specify align_corners=True if the old behavior is desired.",
                      stacklevel=3)
    return bool(align_corners)


def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool | None = None) -> Tensor:
    """Values of images or volumes at the points of a grid, whose coordinates are in [-1, 1]."""
    if mode not in _SAMPLE_MODES:
        raise ValueError("nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' "
                         f"or 'bicubic', but got: '{mode}'")
    if padding_mode not in _SAMPLE_PADDINGS:
        raise ValueError("nn.functional.grid_sample(): expected padding_mode to be 'zeros', "
                         f"'border', or 'reflection', but got: '{padding_mode}'")
    return ops.grid_sampler(input, grid, _SAMPLE_MODES[mode], _SAMPLE_PADDINGS[padding_mode],
                            _aligned("grid_sample", align_corners))


def affine_grid(theta: Tensor, size, align_corners: bool | None = None) -> Tensor:
    """Grids for `grid_sample` from a batch of affine maps."""
    align_corners = _aligned("affine_grid", align_corners)
    if not theta.dtype.is_floating_point:
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    size = list(size)
    rank = len(size) - 2
    if rank not in (2, 3):
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine "
                                  f"transforms, respectively. Got size {size}.")
    if theta.ndim != 3 or tuple(theta.shape[-2:]) != (rank, rank + 1):
        raise ValueError(f"Expected a batch of {rank}D affine matrices of shape "
                         f"Nx{rank}x{rank + 1} for size {size}. Got {tuple(theta.shape)}.")
    if align_corners and min(size[2:]) == 1:
        warnings.warn("Since version 1.3.0, affine_grid behavior has changed for unit-size grids "
                      "when align_corners=True: the only point of a dimension is its centre.",
                      stacklevel=2)
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return ops.affine_grid_generator(theta, size, align_corners)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Each r * r channels become blocks of r by r pixels."""
    return ops.pixel_shuffle(input, upscale_factor)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Blocks of r by r pixels become r * r channels."""
    return ops.pixel_unshuffle(input, downscale_factor)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels in groups are interleaved."""
    return ops.channel_shuffle(input, groups)


def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The same as `channel_shuffle`."""
    return ops.native_channel_shuffle(input, groups)


# ---------------------------------------------------------------------------------------------
# Losses


def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None,
                  size_average: bool | None = None, ignore_index: int = -100,
                  reduce: bool | None = None, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:
    """Cross entropy between logits and class indices or class probabilities."""
    code = reduction_code(reduction, size_average, reduce)
    return ops.cross_entropy_loss(input, target, weight, code, ignore_index, label_smoothing)


def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None,
             size_average: bool | None = None, ignore_index: int = -100,
             reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Minus the log probabilities of the target classes."""
    code = reduction_code(reduction, size_average, reduce)
    return ops.nll_loss_nd(input, target, weight, code, ignore_index)


def _matched(name: str, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Input and target of one shape; a warning if they had to be broadcast."""
    if input.shape == target.shape:
        return input, target
    warnings.warn(f"Using a target size ({target.shape}) that is different to the input size "
                  f"({input.shape}). This will likely lead to incorrect results due to "
                  f"broadcasting. Please ensure they have the same size.", stacklevel=3)
    shape = broadcast_shapes(input.shape, target.shape)
    return input.expand(shape), target.expand(shape)


def _weighted_loss(terms: Tensor, weight: Tensor, code: int) -> Tensor:
    """Terms times weights; a mean divides by the sum of the weights."""
    if weight.shape != terms.shape:
        raise ValueError("Inputs and weight must have the same size.")
    terms = terms * weight
    if code == 0:
        return terms
    return terms.sum() if code == 2 else terms.sum() / weight.sum()


def mse_loss(input: Tensor, target: Tensor, size_average: bool | None = None,
             reduce: bool | None = None, reduction: str = "mean",
             weight: Tensor | None = None) -> Tensor:
    """Mean squared difference."""
    input, target = _matched("mse_loss", input, target)
    code = reduction_code(reduction, size_average, reduce)
    if weight is not None:
        return _weighted_loss(ops.mse_loss(input, target, 0), weight, code)
    return ops.mse_loss(input, target, code)


def l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None,
            reduce: bool | None = None, reduction: str = "mean",
            weight: Tensor | None = None) -> Tensor:
    """Mean absolute difference."""
    input, target = _matched("l1_loss", input, target)
    code = reduction_code(reduction, size_average, reduce)
    if weight is not None:
        return _weighted_loss(ops.l1_loss(input, target, 0), weight, code)
    return ops.l1_loss(input, target, code)


def smooth_l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None,
                   reduce: bool | None = None, reduction: str = "mean",
                   beta: float = 1.0) -> Tensor:
    """Squared difference up to `beta`, absolute difference beyond."""
    input, target = _matched("smooth_l1_loss", input, target)
    code = reduction_code(reduction, size_average, reduce)
    if beta == 0.0:
        return ops.l1_loss(input, target, code)
    return ops.smooth_l1_loss(input, target, code, beta)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0,
               weight: Tensor | None = None) -> Tensor:
    """Half squared difference up to `delta`, scaled absolute difference beyond."""
    input, target = _matched("huber_loss", input, target)
    code = reduction_code(reduction)
    if weight is not None:  # unlike the two above, a mean divides by the number of terms
        if weight.shape != input.shape:
            raise ValueError("Inputs and weight must have the same size.")
        return _reduced(ops.huber_loss(input, target, 0, delta) * weight, code)
    return ops.huber_loss(input, target, code, delta)


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None,
                         size_average: bool | None = None, reduce: bool | None = None,
                         reduction: str = "mean") -> Tensor:
    """Cross entropy between probabilities and targets."""
    code = reduction_code(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(f"Using a target size ({target.shape}) that is different to the input "
                         f"size ({input.shape}) is deprecated. Please ensure they have the same "
                         "size.")
    if weight is not None:
        weight = weight.expand(broadcast_shapes(target.shape, weight.shape))
    return ops.binary_cross_entropy(input, target, weight, code)


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                     size_average: bool | None = None, reduce: bool | None = None,
                                     reduction: str = "mean",
                                     pos_weight: Tensor | None = None) -> Tensor:
    """Cross entropy between the sigmoid of logits and targets."""
    code = reduction_code(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size "
                         f"({input.shape})")
    return ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, code)


def kl_div(input: Tensor, target: Tensor, size_average: bool | None = None,
           reduce: bool | None = None, reduction: str = "mean",
           log_target: bool = False) -> Tensor:
    """Divergence of `target` from the distribution whose logarithm is `input`."""
    if reduction == "batchmean" and size_average is None and reduce is None:
        total = ops.kl_div(input, target, 2, log_target=log_target)
        return total / input.shape[0] if input.ndim else total
    if reduction == "mean" and size_average is None and reduce is None:
        warnings.warn("reduction: 'mean' divides the total loss by both the batch size and the "
                      "support size. 'batchmean' divides only by the batch size, and aligns with "
                      "the KL div math definition.", stacklevel=2)
    code = reduction_code(reduction, size_average, reduce)
    return ops.kl_div(input, target, code, log_target=log_target)


def _reduced(terms: Tensor, code: int) -> Tensor:
    return terms if code == 0 else terms.mean() if code == 1 else terms.sum()


def gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor | float, full: bool = False,
                      eps: float = 1e-6, reduction: str = "mean") -> Tensor:
    """Negative log likelihood of targets under normal distributions."""
    code = reduction_code(reduction)
    if not isinstance(var, Tensor):
        var = ops.full_like(input, float(var))
    if var.shape != input.shape:
        if var.shape == input.shape[:-1]:
            var = var.unsqueeze(-1)
        elif not (input.shape[:-1] == var.shape[:-1] and var.shape[-1] == 1):
            raise ValueError("var is of incorrect size")
    with no_grad():
        with suppress(DataDependentError):  # a captured variance has no values to look at
            if bool((var < 0).any()):
                raise ValueError("var has negative entry/entries")
        floor = (var.clamp(min=eps) - var).detach()
    var = var + floor  # the floor does not take part in the gradient
    terms = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        terms = terms + 0.5 * math.log(2 * math.pi)
    return _reduced(terms, code)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False,
                     size_average: bool | None = None, eps: float = 1e-8,
                     reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Negative log likelihood of counts under Poisson distributions."""
    code = reduction_code(reduction, size_average, reduce)
    return ops.poisson_nll_loss(input, target, log_input, full, eps, code)


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0,
                         size_average: bool | None = None, reduce: bool | None = None,
                         reduction: str = "mean") -> Tensor:
    """x where the target is 1, max(0, margin - x) where it is -1."""
    code = reduction_code(reduction, size_average, reduce)
    return ops.hinge_embedding_loss(input, target, margin, code)


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                        size_average: bool | None = None, reduce: bool | None = None,
                        reduction: str = "mean") -> Tensor:
    """max(0, -target * (input1 - input2) + margin)."""
    code = reduction_code(reduction, size_average, reduce)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError("margin_ranking_loss : All input tensors should have same dimension "
                           f"but got sizes: input1: {input1.shape}, input2: {input2.shape}, "
                           f"target: {target.shape} ")
    return ops.margin_ranking_loss(input1, input2, target, margin, code)


def soft_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None,
                     reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target * x))."""
    return ops.soft_margin_loss(input, target, reduction_code(reduction, size_average, reduce))


def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0,
                      weight: Tensor | None = None, size_average: bool | None = None,
                      reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Mean of max(0, margin - x_y + x_j)^p over the classes j."""
    code = reduction_code(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    return ops.multi_margin_loss(input, target, p, margin, weight, code)


def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None,
                           reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Mean of max(0, 1 - x_y + x_j) over labels y and classes j that are none."""
    code = reduction_code(reduction, size_average, reduce)
    return ops.multilabel_margin_loss(input, target, code)


def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                size_average: bool | None = None, reduce: bool | None = None,
                                reduction: str = "mean") -> Tensor:
    """Mean over the classes of their binary cross entropies with logits."""
    code = reduction_code(reduction, size_average, reduce)
    terms = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        terms = terms * weight
    return _reduced(terms.sum(-1) / input.shape[-1], code)


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                          size_average: bool | None = None, reduce: bool | None = None,
                          reduction: str = "mean") -> Tensor:
    """1 - cosine where the target is 1, max(0, cosine - margin) where it is -1."""
    code = reduction_code(reduction, size_average, reduce)
    return ops.cosine_embedding_loss(input1, input2, target, margin, code)


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0,
                        p: float = 2, eps: float = 1e-6, swap: bool = False,
                        size_average: bool | None = None, reduce: bool | None = None,
                        reduction: str = "mean") -> Tensor:
    """max(0, distance to positive - distance to negative + margin)."""
    code = reduction_code(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return ops.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, code)


def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *,
                                      distance_function=None, margin: float = 1.0,
                                      swap: bool = False, reduction: str = "mean") -> Tensor:
    """`triplet_margin_loss` with a distance of the user's own."""
    code = reduction_code(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError("The anchor, positive, and negative tensors are expected to have the "
                           f"same number of dimensions, but got: anchor {anchor.ndim}D, positive "
                           f"{positive.ndim}D, and negative {negative.ndim}D inputs")
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = ops.minimum(far, distance(positive, negative))
    return _reduced((near - far + margin).clamp_min(0), code)


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths, target_lengths, blank: int = 0,
             reduction: str = "mean", zero_infinity: bool = False) -> Tensor:
    """Minus the log likelihood of label sequences, summed over all their alignments."""
    return ops.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank,
                        reduction_code(reduction), zero_infinity)


def linear_cross_entropy(input: Tensor, linear_weight: Tensor, target: Tensor, *,
                         linear_bias: Tensor | None = None, weight: Tensor | None = None,
                         reduction: str = "mean", ignore_index: int | None = None,
                         label_smoothing: float = 0.0, options=None) -> Tensor:
    """Cross entropy of a linear map of the input.

    `linear_weight` may have further dims between classes and features, for a loss per position.
    `options` (see `LinearCrossEntropyOptions`) asks for less memory and does not change the value.
    """
    if input.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    if linear_weight.ndim < 2:
        raise RuntimeError("expected linear_weight with dimensionality at least 2, got "
                           f"{linear_weight.ndim}")
    classes, *rest, features = linear_weight.shape
    if input.shape[-1] != features:
        raise RuntimeError("expected equal input and linear_weight last dimensions (in_features), "
                           f"got {input.shape[-1]} and {features}, respectively")
    if rest and input.ndim == 1:
        raise RuntimeError("K-dimensional loss defined by linear_weight shape "
                           f"{tuple(linear_weight.shape)} requires batched input, "
                           f"(N, {features}), got unbatched input with shape {(features,)}")
    if linear_bias is not None and linear_bias.shape != linear_weight.shape[:-1]:
        raise RuntimeError(f"expected linear_bias shape {tuple(linear_weight.shape[:-1])}, got "
                           f"{tuple(linear_bias.shape)}")
    if ignore_index is not None and target.dtype.is_floating_point:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    logits = linear(input, linear_weight.reshape([-1, features]),
                    None if linear_bias is None else linear_bias.reshape([-1]))
    if rest:
        logits = logits.reshape([input.shape[0], classes, *rest])
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(logits, target, weight, ignore_index=ignored, reduction=reduction,
                         label_smoothing=label_smoothing)
