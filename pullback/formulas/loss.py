"""Derivative formulas of the losses, and what decompositions and batching share with them.

Public names are in scope of every formula string.  `reduction` is 0 (none), 1 (mean) or 2 (sum);
other numbers are none, for some losses a sum (`or_sum`), or refused, as in PyTorch.
Everything is made of differentiable operators.  Read `ops/loss.py` next, where these are used.
"""

from __future__ import annotations

from ..array.dims import broadcast_shapes, numel
from ..array.dtype import bool_, float32
from ..table.packets import ops


def loss_scale(reduction, *shapes) -> float:
    """What the gradient of a loss is multiplied by: one over the count of terms for a mean."""
    if reduction != 1:
        return 1.0
    return 1.0 / max(numel(broadcast_shapes(*shapes)), 1)


def or_sum(reduction: int) -> int:
    """A reduction where every unknown one is a sum."""
    return reduction if reduction in (0, 1) else 2


def reduce_loss(value, reduction, keep: int = 0):
    """Apply a reduction to the terms of a loss; the first `keep` dims are kept."""
    if reduction not in (1, 2):
        return value
    if keep == 0:
        return value.mean() if reduction == 1 else value.sum()
    if value.ndim == keep:  # of one term, which is a sum all the same: 0.0 and not -0.0
        value = value.unsqueeze(keep)
    dims = list(range(keep, value.ndim))
    return value.mean(dims) if reduction == 1 else value.sum(dims)


# ---------------------------------------------------------------------------------------------
# Negative log likelihood


def class_dim(shape) -> int:
    """Where the classes are: dim 1, or dim 0 of an unbatched input."""
    return 0 if len(shape) == 1 else 1


def nll_terms(self, target, weight, ignore_index, dim, where, gather):
    """Loss and weight of every target; ignored ones count nothing. Classes are on `dim`."""
    known = target != ignore_index
    safe = where(known, target, 0).unsqueeze(dim)
    terms = -gather(self, dim, safe).squeeze(dim)
    if weight is None:
        return where(known, terms, 0), known.to(self.dtype)
    shape = [1] * self.ndim
    shape[dim] = weight.shape[-1]
    weights = gather(weight.reshape(shape).expand(self.shape), dim, safe).squeeze(dim)
    weights = where(known, weights, 0)
    return where(known, terms * weights, 0), weights


# ---------------------------------------------------------------------------------------------
# Distances: the derivative of one term is `slope`, of the slope `curvature`


def difference(value, target):
    """What the terms of a loss are functions of; truth values count as 0 and 1, as in kernels."""
    if value.dtype is bool_:
        value = value.to(target.dtype)
    return value - (target.to(value.dtype) if target.dtype is bool_ else target)


def smooth_l1_slope(difference, beta):
    """Derivative of the smooth L1 term: difference / beta, cut off at -1 and 1."""
    if beta == 0:
        return difference.sign()
    return ops.where(difference.abs() < beta, difference / beta, difference.sign())


def smooth_l1_curvature(difference, beta):
    """Second derivative of the smooth L1 term."""
    inside = difference.abs() < beta
    return inside.to(difference.dtype) / (beta if beta else 1.0)


def huber_slope(difference, delta):
    """Derivative of the Huber term: the difference, cut off at -delta and delta.

    Its own derivative at the bends is 0, as that of `huber_loss_backward` is.
    """
    below = ops.where(difference <= -delta, -delta, difference)
    return ops.where(difference >= delta, delta, below)


def huber_curvature(difference, delta):
    """Second derivative of the Huber term."""
    return (difference.abs() < delta).to(difference.dtype)


# ---------------------------------------------------------------------------------------------
# Binary cross entropy


def weighted(value, weight):
    """`value * weight`, where a weight may be absent."""
    return value if weight is None else value * weight


def bce_target_slope(self, weight):
    """Derivative of a binary cross entropy term with respect to the target.

    Its own derivative is that of `bce_slope` with respect to the target, also at 0 and 1, where
    the logarithms are cut off at -100.
    """
    fixed = self.detach()
    edge = (1 - fixed) * fixed <= 1e-12
    cut = (1 - fixed).log().clamp(min=-100) - fixed.log().clamp(min=-100)
    inner = ops.where(edge, 0.5, self)
    outer = cut - (self - fixed) * 1e12
    return weighted(ops.where(edge, outer, (1 - inner).log() - inner.log()), weight)


def _wide(tensor):
    """Half precision as float32: 1e-12 is 0 in float16, and 0 / 0 beside targets of 0 is NaN."""
    return tensor.to(float32) if tensor.dtype.itemsize == 2 else tensor


def bce_slope(self, target, weight):
    """Derivative of a binary cross entropy term with respect to the probability."""
    self, target = _wide(self), _wide(target)
    return weighted((self - target) / ((1 - self) * self).clamp(min=1e-12), weight)


def bce_curvature(self, target, weight):
    """Second derivative of a binary cross entropy term with respect to the probability."""
    self, target = _wide(self), _wide(target)
    spread = ((1 - self) * self).clamp(min=1e-12)
    return weighted((self * self - 2 * self * target + target) / (spread * spread), weight)


def bce_mixed(self, weight):
    """Derivative of `bce_slope` with respect to the target."""
    self = _wide(self)
    return weighted(-1 / ((1 - self) * self).clamp(min=1e-12), weight)


def logits_slope(self, target, weight, pos_weight):
    """Derivative of a binary cross entropy term with respect to the logit."""
    if pos_weight is None:
        return weighted(self.sigmoid() - target, weight)
    pull = pos_weight * target
    return weighted((pull + 1 - target) * self.sigmoid() - pull, weight)


def logits_target_slope(self, weight, pos_weight, log_sigmoid):
    """Derivative of a binary cross entropy term with respect to the target, from the logit."""
    if pos_weight is None:
        return weighted(-self, weight)
    return weighted(log_sigmoid(-self) - pos_weight * log_sigmoid(self), weight)


# ---------------------------------------------------------------------------------------------
# Margins


def soft_margin_slope(self, target):
    """Derivative of log(1 + exp(-t x)): -t / (1 + exp(t x))."""
    return -target * (-self * target).sigmoid()  # `sigmoid() - 1` would lose the small ones


def soft_margin_curvature(self, target):
    """Second derivative of log(1 + exp(-t x)): t^2 s(t x) s(-t x)."""
    chance = (self * target).sigmoid()
    return target * target * chance * (1 - chance)


def per_row(product, reduction, shape):
    """Sum of a product over the classes, of shape `shape`; over everything if reduced."""
    if reduction == 0 and product.ndim == 2:
        return product.sum(1)
    return product.sum().reshape(shape)


def rows_of_classes(value):
    """A tensor of scores or targets as a matrix with one row per example."""
    return value if value.ndim == 2 else value.reshape([1, -1])


def margin_gaps(rows, target, margin):
    """margin - x_y + x_j of each class j, zero at the target y; and which classes are not y."""
    target = target.reshape([-1, 1])
    other = ops.arange(rows.shape[1], device=rows.device) != target
    gaps = margin - ops.gather(rows, 1, target) + rows
    return ops.where(other, gaps, 0), other


def minus_own(value, other):
    """`value` at the other classes, minus its sum at the target: adjoint of x_j - x_y."""
    value = ops.where(other, value, 0)
    return ops.where(other, value, -value.sum(1, True))


def margin_scale(grad_output, self, target, weight, reduction):
    """What each row's slopes are multiplied by: gradient, class weight, 1 / counts."""
    rows = rows_of_classes(self)
    scale = (grad_output.reshape([-1, 1]) if reduction == 0 else grad_output) / rows.shape[1]
    if reduction == 1:
        scale = scale / rows.shape[0]
    if weight is not None:
        scale = scale * ops.gather(weight, 0, target.reshape([-1])).unsqueeze(1)
    return scale


def multi_margin_second(grad, grad_output, self, target, p, margin, weight, reduction):
    """Second derivative of the multi-class margin loss along `grad`: zero unless p is 2."""
    if p == 1:
        return ops.zeros_like(self)
    gaps, other = margin_gaps(rows_of_classes(self), target, margin)
    along = rows_of_classes(grad)
    along = along - ops.gather(along, 1, target.reshape([-1, 1]))
    scale = margin_scale(grad_output, self, target, weight, reduction)
    return minus_own(ops.where(gaps > 0, 2 * along * scale, 0), other).reshape(self.shape)
