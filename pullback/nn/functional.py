"""`pullback.nn.functional`: the stateless half of nn, with PyTorch's signatures.

Each function sorts out its arguments (words for reductions, legacy flags, sizes) and calls
operators of the table.  Modules that hold parameters are in `nn/layers.py`.
"""

from __future__ import annotations

import math
import warnings

from ..autograd.grad_mode import no_grad
from ..core.dims import broadcast_shapes, numel
from ..core.handle import Tensor
from ..core.table import ops

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
    out = ops.einsum("...i,kij,...j->...k", [input1, weight, input2])
    return out if bias is None else out + bias


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


def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Rows with a single one at the given class."""
    return ops.one_hot(input, num_classes)


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
    return _activation("elu", inplace, input, 1.6732632423543772, 1.0507009873554805)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x, or alpha * (exp(x / alpha) - 1) where x is negative."""
    return _activation("elu", inplace, input, alpha, 1.0, 1.0 / alpha)


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
    value = ops.hardtanh(input + 3, 0.0, 6.0) / 6
    return input.copy_(value) if inplace else value


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * hardsigmoid(x)."""
    own = input.clone() if inplace else input  # the gradient needs the old value
    value = own * ops.hardtanh(own + 3, 0.0, 6.0) / 6
    return input.copy_(value) if inplace else value


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
    if input.shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size "
                           f"{input.shape[dim]}")
    a, b = ops.chunk(input, 2, dim)
    return a * ops.sigmoid(b)


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


def _per_channel(param: Tensor, ndim: int) -> Tensor:
    return param.reshape([1, -1] + [1] * (ndim - 2))


def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
               weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False,
               momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Zero mean and unit variance of each channel (dim 1), then scale and shift."""
    if input.numel() == 0:  # nothing to normalise; the parameters stay part of the graph
        out = input.clone()
        out = out if weight is None else out * weight[0]
        return out if bias is None else out + bias[0]
    dims = [d for d in range(input.ndim) if d != 1]
    count = input.numel() // max(input.shape[1], 1)
    if training:
        if count <= 1:
            raise ValueError("Expected more than 1 value per channel when training, got input size "
                             f"{input.shape}")
        mean = input.mean(dims, True)
        centred = input - mean
        var = (centred * centred).mean(dims, True)
        with no_grad():
            if running_mean is not None:
                running_mean.mul_(1 - momentum).add_(mean.detach().reshape([-1]) * momentum)
            if running_var is not None:
                unbiased = var.detach().reshape([-1]) * (count / (count - 1))
                running_var.mul_(1 - momentum).add_(unbiased * momentum)
    else:
        if running_mean is None or running_var is None:
            raise RuntimeError("Expected running_mean and running_var to be defined when "
                               "training=False")
        centred = input - _per_channel(running_mean, input.ndim)
        var = _per_channel(running_var, input.ndim)
    out = centred * (var + eps).rsqrt()
    if weight is not None:
        out = out * _per_channel(weight, input.ndim)
    return out if bias is None else out + _per_channel(bias, input.ndim)


def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None,
               bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """Zero mean and unit variance of each group of channels, then scale and shift."""
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received "
                           f"{input.ndim}")
    n, channels = input.shape[:2]
    if num_groups <= 0 or channels % num_groups:
        raise RuntimeError("Expected number of channels in input to be divisible by num_groups, "
                           f"but got input of shape {list(input.shape)} and "
                           f"num_groups={num_groups}")
    rows = input.reshape([n, num_groups, numel(input.shape[1:]) // num_groups])
    centred = rows - rows.mean(-1, True)
    var = (centred * centred).mean(-1, True)
    out = (centred * (var + eps).rsqrt()).reshape(input.shape)
    if weight is not None:
        out = out * _per_channel(weight, input.ndim)
    return out if bias is None else out + _per_channel(bias, input.ndim)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12,
              out: Tensor | None = None) -> Tensor:
    """Vectors along `dim` divided by their p-norm."""
    dims = [dim] if isinstance(dim, int) else list(dim)
    norms = ops.linalg_vector_norm(input, p, dims, True).clamp_min(eps)
    return input / norms if out is None else ops.div(input, norms, out=out)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between vectors along `dim`."""
    shape = broadcast_shapes(x1.shape, x2.shape)
    x1, x2 = x1.expand(shape), x2.expand(shape)
    first = x1 / ops.linalg_vector_norm(x1, 2, [dim], True).clamp_min(eps)
    second = x2 / ops.linalg_vector_norm(x2, 2, [dim], True).clamp_min(eps)
    return (first * second).sum(dim)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6,
                      keepdim: bool = False) -> Tensor:
    """p-norm of the difference of vectors along the last dim."""
    return ops.linalg_vector_norm(x1 - x2 + eps, p, [-1], keepdim)


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
    terms = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        terms = terms + ops.where(target <= 1, 0.0, stirling)
    return _reduced(terms, code)


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0,
                         size_average: bool | None = None, reduce: bool | None = None,
                         reduction: str = "mean") -> Tensor:
    """x where the target is 1, max(0, margin - x) where it is -1."""
    code = reduction_code(reduction, size_average, reduce)
    near = ops.where(target != 1, (margin - input).clamp_min(0), 0.0)
    far = ops.where(target != -1, input, 0.0)
    return _reduced(near + far, code)


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                        size_average: bool | None = None, reduce: bool | None = None,
                        reduction: str = "mean") -> Tensor:
    """max(0, -target * (input1 - input2) + margin)."""
    code = reduction_code(reduction, size_average, reduce)
    return _reduced((-target * (input1 - input2) + margin).clamp_min(0), code)


def soft_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None,
                     reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target * x))."""
    code = reduction_code(reduction, size_average, reduce)
    return _reduced((-target * input).exp().log1p(), code)


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                          size_average: bool | None = None, reduce: bool | None = None,
                          reduction: str = "mean") -> Tensor:
    """1 - cosine where the target is 1, max(0, cosine - margin) where it is -1."""
    code = reduction_code(reduction, size_average, reduce)
    guard = 1e-12  # PyTorch adds it to the squared norms of this loss
    dot = (input1 * input2).sum(-1)
    size = ((input1 * input1).sum(-1) + guard) * ((input2 * input2).sum(-1) + guard)
    cosine = dot / size.sqrt()
    terms = (ops.where(target == 1, 1 - cosine, 0.0)
             + ops.where(target == -1, (cosine - margin).clamp_min(0), 0.0))
    return _reduced(terms, code)


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0,
                        p: float = 2, eps: float = 1e-6, swap: bool = False,
                        size_average: bool | None = None, reduce: bool | None = None,
                        reduction: str = "mean") -> Tensor:
    """max(0, distance to positive - distance to negative + margin)."""
    code = reduction_code(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = ops.minimum(far, pairwise_distance(positive, negative, p, eps))
    return _reduced((near - far + margin).clamp_min(0), code)
