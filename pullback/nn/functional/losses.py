"""Losses."""

from __future__ import annotations

import math
import warnings
from contextlib import suppress

from ...array.dims import broadcast_shapes
from ...autograd.grad_mode import no_grad
from ...core.handle import Tensor
from ...errors import DataDependentError
from ...table.packets import ops
from ...tensor.overridable import asks_in as _asks_in
from ...tensor.overridable import taken_over as _taken_over
from .activations import logsigmoid
from .arguments import reduction_code
from .maps import linear
from .normalisation import pairwise_distance

_asks = _asks_in(globals())


def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None,
                  size_average: bool | None = None, ignore_index: int = -100,
                  reduce: bool | None = None, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:
    """Cross entropy between logits and class indices or class probabilities."""
    if _asks and (taken := _taken_over(cross_entropy, locals())):
        return taken[0]
    code = reduction_code(reduction, size_average, reduce)
    return ops.cross_entropy_loss(input, target, weight, code, ignore_index, label_smoothing)


def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None,
             size_average: bool | None = None, ignore_index: int = -100,
             reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Minus the log probabilities of the target classes."""
    if _asks and (taken := _taken_over(nll_loss, locals())):
        return taken[0]
    code = reduction_code(reduction, size_average, reduce)
    return ops.nll_loss_nd(input, target, weight, code, ignore_index)


def _matched(name: str, input: Tensor, target: Tensor,
             stacklevel: int = 3) -> tuple[Tensor, Tensor]:
    """Input and target of one shape; a warning if they had to be broadcast."""
    if input.shape == target.shape:
        return input, target
    warnings.warn(f"Using a target size ({target.shape}) that is different to the input size "
                  f"({input.shape}). This will likely lead to incorrect results due to "
                  f"broadcasting. Please ensure they have the same size.", stacklevel=stacklevel)
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


def _weighable(name: str, input: Tensor, target: Tensor, size_average: bool | None,
               reduce: bool | None, reduction: str, weight: Tensor | None) -> Tensor:
    """The loss operator of a name, whose terms may be weighted."""
    if input.shape != target.shape:
        input, target = _matched(name, input, target, 4)
    code = reduction_code(reduction, size_average, reduce)
    loss = getattr(ops, name)
    if weight is not None:
        return _weighted_loss(loss(input, target, 0), weight, code)
    return loss(input, target, code)


def mse_loss(input: Tensor, target: Tensor, size_average: bool | None = None,
             reduce: bool | None = None, reduction: str = "mean",
             weight: Tensor | None = None) -> Tensor:
    """Mean squared difference."""
    if _asks and (taken := _taken_over(mse_loss, locals())):
        return taken[0]
    return _weighable("mse_loss", input, target, size_average, reduce, reduction, weight)


def l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None,
            reduce: bool | None = None, reduction: str = "mean",
            weight: Tensor | None = None) -> Tensor:
    """Mean absolute difference."""
    if _asks and (taken := _taken_over(l1_loss, locals())):
        return taken[0]
    return _weighable("l1_loss", input, target, size_average, reduce, reduction, weight)


def smooth_l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None,
                   reduce: bool | None = None, reduction: str = "mean",
                   beta: float = 1.0) -> Tensor:
    """Squared difference up to `beta`, absolute difference beyond."""
    if _asks and (taken := _taken_over(smooth_l1_loss, locals())):
        return taken[0]
    input, target = _matched("smooth_l1_loss", input, target)
    code = reduction_code(reduction, size_average, reduce)
    if beta == 0.0:
        return ops.l1_loss(input, target, code)
    return ops.smooth_l1_loss(input, target, code, beta)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0,
               weight: Tensor | None = None) -> Tensor:
    """Half squared difference up to `delta`, scaled absolute difference beyond."""
    if _asks and (taken := _taken_over(huber_loss, locals())):
        return taken[0]
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
    if _asks and (taken := _taken_over(binary_cross_entropy, locals())):
        return taken[0]
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
    if _asks and (taken := _taken_over(binary_cross_entropy_with_logits, locals())):
        return taken[0]
    code = reduction_code(reduction, size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size "
                         f"({input.shape})")
    return ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, code)


def kl_div(input: Tensor, target: Tensor, size_average: bool | None = None,
           reduce: bool | None = None, reduction: str = "mean",
           log_target: bool = False) -> Tensor:
    """Divergence of `target` from the distribution whose logarithm is `input`."""
    if _asks and (taken := _taken_over(kl_div, locals())):
        return taken[0]
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
    if _asks and (taken := _taken_over(gaussian_nll_loss, locals())):
        return taken[0]
    code = reduction_code(reduction)
    if not isinstance(var, Tensor):
        var = ops.full_like(input, float(var))
    if var.shape != input.shape:
        if var.shape == input.shape[:-1]:
            var = var.unsqueeze(-1)
        elif var.ndim != input.ndim or sum(
                m for n, m in zip(input.shape, var.shape) if n != m) != 1:  # one dim is broadcast
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
    if _asks and (taken := _taken_over(poisson_nll_loss, locals())):
        return taken[0]
    code = reduction_code(reduction, size_average, reduce)
    return ops.poisson_nll_loss(input, target, log_input, full, eps, code)


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0,
                         size_average: bool | None = None, reduce: bool | None = None,
                         reduction: str = "mean") -> Tensor:
    """x where the target is 1, max(0, margin - x) where it is -1."""
    if _asks and (taken := _taken_over(hinge_embedding_loss, locals())):
        return taken[0]
    code = reduction_code(reduction, size_average, reduce)
    return ops.hinge_embedding_loss(input, target, margin, code)


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                        size_average: bool | None = None, reduce: bool | None = None,
                        reduction: str = "mean") -> Tensor:
    """max(0, -target * (input1 - input2) + margin)."""
    if _asks and (taken := _taken_over(margin_ranking_loss, locals())):
        return taken[0]
    code = reduction_code(reduction, size_average, reduce)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError("margin_ranking_loss : All input tensors should have same dimension "
                           f"but got sizes: input1: {input1.shape}, input2: {input2.shape}, "
                           f"target: {target.shape} ")
    return ops.margin_ranking_loss(input1, input2, target, margin, code)


def soft_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None,
                     reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target * x))."""
    if _asks and (taken := _taken_over(soft_margin_loss, locals())):
        return taken[0]
    return ops.soft_margin_loss(input, target, reduction_code(reduction, size_average, reduce))


def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0,
                      weight: Tensor | None = None, size_average: bool | None = None,
                      reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Mean of max(0, margin - x_y + x_j)^p over the classes j."""
    if _asks and (taken := _taken_over(multi_margin_loss, locals())):
        return taken[0]
    code = reduction_code(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    return ops.multi_margin_loss(input, target, p, margin, weight, code)


def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None,
                           reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Mean of max(0, 1 - x_y + x_j) over labels y and classes j that are none."""
    if _asks and (taken := _taken_over(multilabel_margin_loss, locals())):
        return taken[0]
    code = reduction_code(reduction, size_average, reduce)
    return ops.multilabel_margin_loss(input, target, code)


def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                size_average: bool | None = None, reduce: bool | None = None,
                                reduction: str = "mean") -> Tensor:
    """Mean over the classes of their binary cross entropies with logits."""
    if _asks and (taken := _taken_over(multilabel_soft_margin_loss, locals())):
        return taken[0]
    code = reduction_code(reduction, size_average, reduce)
    terms = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        terms = terms * weight
    return _reduced(terms.sum(-1) / input.shape[-1], code)


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                          size_average: bool | None = None, reduce: bool | None = None,
                          reduction: str = "mean") -> Tensor:
    """1 - cosine where the target is 1, max(0, cosine - margin) where it is -1."""
    if _asks and (taken := _taken_over(cosine_embedding_loss, locals())):
        return taken[0]
    code = reduction_code(reduction, size_average, reduce)
    return ops.cosine_embedding_loss(input1, input2, target, margin, code)


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0,
                        p: float = 2, eps: float = 1e-6, swap: bool = False,
                        size_average: bool | None = None, reduce: bool | None = None,
                        reduction: str = "mean") -> Tensor:
    """max(0, distance to positive - distance to negative + margin)."""
    if _asks and (taken := _taken_over(triplet_margin_loss, locals())):
        return taken[0]
    code = reduction_code(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return ops.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, code)


def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *,
                                      distance_function=None, margin: float = 1.0,
                                      swap: bool = False, reduction: str = "mean") -> Tensor:
    """`triplet_margin_loss` with a distance of the user's own."""
    if _asks and (taken := _taken_over(triplet_margin_with_distance_loss, locals())):
        return taken[0]
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
    if _asks and (taken := _taken_over(ctc_loss, locals())):
        return taken[0]
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
    if _asks and (taken := _taken_over(linear_cross_entropy, locals())):
        return taken[0]
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
