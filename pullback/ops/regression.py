"""Losses of distances, of chances and of divergence: mse, huber, binary cross entropy, kl_div,
poisson_nll_loss.

Read next: `margin_loss.py`.
"""

from __future__ import annotations

import math

from ..array.dims import broadcast_shapes
from ..array.dtype import title
from ..core.op import Op
from ..errors import DTypeError, ShapeError
from ..formulas.loss import bce_slope, loss_scale, reduce_loss, weighted
from ..table.packets import ops
from .kinds import ComplexComposite, Free
from .loss import MEAN, NONE, SUM, check_reduction
from .norm import narrowed, widened
from .pointwise import refuse

# ---------------------------------------------------------------------------------------------
# Distances between input and target


def _batched_terms(n, batched, self, target):
    """Both operands with the batch dim in front and equal ranks, and the shape of one example."""
    shapes = [t.shape[1:] if b else t.shape
              for t, b in zip((self, target), batched, strict=True)]
    rank = max(map(len, shapes))
    both = []
    for t, b, shape in zip((self, target), batched, shapes, strict=True):
        pad = (1,) * (rank - len(shape))
        both.append(t.reshape((n if b else 1, *pad, *shape)))
    return *both, broadcast_shapes(*shapes)


def _pad_grad(grad_output, batched, rank):
    """An output gradient (batched or not) that broadcasts against batched terms."""
    if not batched:
        return grad_output
    extra = rank + 1 - grad_output.ndim
    return grad_output.reshape(grad_output.shape + (1,) * extra) if extra > 0 else grad_output


def loss_value(xp, terms, reduction, dtype):
    """The terms of a loss, reduced, in a NumPy dtype."""
    if reduction == MEAN:
        terms = terms.mean()
    elif reduction == SUM:
        terms = terms.sum()
    return narrowed(xp.asarray(terms), dtype)


def loss_shape(self, target, reduction):
    """Shape of a loss whose terms broadcast."""
    shape = broadcast_shapes(self.shape, target.shape)
    return () if reduction in (MEAN, SUM) else shape


def scaled(formula: str) -> str:
    """A formula for each element's share in the loss, scaled as the reduction does it."""
    return f"{formula} * loss_scale(reduction, self.shape, target.shape)"


class Loss(Op):
    """A loss with one term for each element of input and target, reduced."""

    autocast = "float32"
    memory_format = "self"
    cost = "reduce"
    method = function = False


class LossBackward(Op):
    """The gradient of such a loss."""

    memory_format = "self"
    cost = "cheap"
    method = function = False

    def shape(grad_output, self, target, *rest):
        return broadcast_shapes(self.shape, target.shape)


class DifferenceLoss(Loss):
    """A loss whose terms depend on the difference of input and target."""

    out = ("castable",)
    promote = "default"

    def shape(self, target, reduction, *rest):
        return loss_shape(self, target, reduction)

    @classmethod
    def batch(cls, n, batched, self, target, reduction, *rest):
        a, b, _ = _batched_terms(n, batched[:2], self, target)
        return reduce_loss(getattr(ops, cls.base_name)(a, b, NONE, *rest), reduction, keep=1)


def symmetric(backward: str, rest: str) -> dict:
    """Formulas of such a loss, which does not see which of the two is the target."""
    return {"self": f"{backward}(grad, self, target, {rest})",
            "target": f"{backward}(grad, target, self, {rest})"}


class DifferenceLossBackward(LossBackward):
    """The gradient of such a loss."""

    promote = "default"

    @classmethod
    def batch(cls, n, batched, grad_output, self, target, reduction, *rest):
        a, b, shape = _batched_terms(n, batched[1:3], self, target)
        g = _pad_grad(grad_output, batched[0], len(shape)) * loss_scale(reduction, shape)
        return getattr(ops, cls.base_name)(g, a, b, NONE, *rest).expand([n, *shape])


class mse_loss(DifferenceLoss):
    """Squared differences, reduced."""

    schema = "mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor"
    lower = "composite.mse"
    grad = symmetric("mse_loss_backward", "reduction")
    push = "reduce_loss((self_t - target_t) * difference(self_p, target_p) * 2, reduction)"

    def run(xp, self, target, reduction):
        refuse("mse_cpu", self, "biuc")
        check_reduction("mse_loss", reduction)
        difference = xp.subtract(widened(xp, self), widened(xp, target))
        if reduction == NONE:
            return narrowed(difference * difference, self.dtype)
        flat = difference.reshape(-1)
        total = xp.dot(flat, flat)
        if reduction == MEAN:
            total = total / flat.size if flat.size else total * xp.nan
        return narrowed(xp.asarray(total), self.dtype)

    def decomp(self, target, reduction):
        difference = self - target
        return reduce_loss(difference * difference, reduction)

    def samples(s):
        for reduction in (0, 1, 2):
            yield s(s.real(3, 4), s.real(3, 4), reduction)
        yield s(s.real(3, 1), s.real(4), 1)
        yield s(s.real(), s.real())
        yield s(s.real(0, 2), s.real(0, 2), 2)


def second_order(slope: str, curvature: str) -> tuple[dict, str]:
    """Formulas of both modes for the gradient of such a loss, from those of the slope and of the
    curvature of a term, in which `{0}` and `{1}` stand for input and target."""
    at, at_p = ("self", "target"), ("self_p", "target_p")
    bent = scaled(f"grad * grad_output * {curvature.format(*at)}")
    pull = {"grad_output": scaled(f"grad * {slope.format(*at)}"), "self": bent, "target": f"-{bent}"}
    return pull, (f"(grad_output_t * {slope.format(*at_p)} + grad_output_p"
                  f" * {curvature.format(*at_p)} * (self_t - target_t))"
                  " * loss_scale(reduction, self_p.shape, target_p.shape)")


class mse_loss_backward(DifferenceLossBackward):
    """Gradient of mse_loss."""

    schema = ("mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction)"
              " -> Tensor")
    lower = "composite.mse_backward"
    grad = {
        "grad_output": ("grad * difference(self, target)"
                        " * (2 * loss_scale(reduction, self.shape, target.shape))"),
        "self": "grad * grad_output * (2 * loss_scale(reduction, self.shape, target.shape))",
        "target": "grad * grad_output * (-2 * loss_scale(reduction, self.shape, target.shape))",
    }
    push = ("(grad_output_t * difference(self_p, target_p)"
            " + grad_output_p * (self_t - target_t))"
            " * (2 * loss_scale(reduction, self_p.shape, target_p.shape))")

    def run(xp, grad_output, self, target, reduction):
        g, x, t = widened(xp, grad_output), widened(xp, self), widened(xp, target)
        scale = 2 * loss_scale(reduction, x.shape, t.shape)
        out = xp.subtract(x, t)
        return narrowed(out * (g * scale), self.dtype)

    def decomp(grad_output, self, target, reduction):
        return (self - target) * (grad_output * (2 * loss_scale(reduction, self.shape,
                                                                target.shape)))

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 4), s.real(3, 4), 0)
        yield s(s.real(), s.real(3, 4), s.real(3, 4), 1)
        yield s(s.real(), s.real(3, 4), s.real(3, 4), 2)


class smooth_l1_loss(DifferenceLoss):
    """Squared differences near zero and absolute ones beyond `beta`, reduced."""

    schema = ("smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float beta=1.)"
              " -> Tensor")
    grad = symmetric("smooth_l1_loss_backward", "reduction, beta")
    push = ("reduce_loss(smooth_l1_slope(difference(self_p, target_p), beta) * (self_t - target_t),"
            " reduction)")

    def run(xp, self, target, reduction, beta):
        refuse("smooth_l1_cpu", self, "biuc")
        check_reduction("smooth_l1_loss", reduction)
        if beta < 0:
            raise ShapeError("smooth_l1_loss does not support negative values for beta.")
        size = xp.abs(xp.subtract(widened(xp, self), widened(xp, target)))
        if beta > 0:
            size = xp.where(size < beta, 0.5 * size * size / beta, size - 0.5 * beta)
        return loss_value(xp, size, reduction, self.dtype)

    def decomp(self, target, reduction, beta):
        size = (self - target).abs()
        if beta > 0:
            size = ops.where(size < beta, 0.5 * size * size / beta, size - 0.5 * beta)
        return reduce_loss(size, reduction)

    def samples(s):
        for reduction in (0, 1, 2):
            yield s(s.real(3, 4), s.real(3, 4), reduction)
        yield s(s.real(3, 4), s.real(3, 4), 1, 0.5)
        yield s(s.real(3, 4), s.real(4), 1, 2.0)


class smooth_l1_loss_backward(DifferenceLossBackward):
    """Gradient of smooth_l1_loss."""

    schema = ("smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target,"
              " int reduction, float beta) -> Tensor")
    grad, push = second_order("smooth_l1_slope(difference({0}, {1}), beta)",
                              "smooth_l1_curvature(difference({0}, {1}), beta)")

    def run(xp, grad_output, self, target, reduction, beta):
        g, x, t = widened(xp, grad_output), widened(xp, self), widened(xp, target)
        out = xp.subtract(x, t)
        out = xp.clip(out / beta, -1, 1) if beta else xp.sign(out)
        return narrowed(out * (g * loss_scale(reduction, x.shape, t.shape)), self.dtype)

    def decomp(grad_output, self, target, reduction, beta):
        difference = self - target
        slope = (difference / beta).clamp(-1, 1) if beta else difference.sign()
        return slope * (grad_output * loss_scale(reduction, self.shape, target.shape))

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 4), s.real(3, 4), 0, 1.0)
        yield s(s.real(), s.real(3, 4), s.real(3, 4), 1, 0.5)
        yield s(s.real(), s.real(3, 4), s.real(3, 4), 2, 2.0)


class huber_loss(DifferenceLoss):
    """Half squared differences near zero and scaled absolute ones beyond `delta`, reduced."""

    schema = ("huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.)"
              " -> Tensor")
    grad = symmetric("huber_loss_backward", "reduction, delta")
    push = ("reduce_loss(huber_slope(self_p - target_p, delta) * (self_t - target_t),"
            " reduction).to(result.dtype)")
    check = lambda self, target, reduction, delta: refuse("huber_cpu", self, "biuc")
    dtype = "self.dtype"

    def run(xp, self, target, reduction, delta):
        if delta <= 0:
            raise ShapeError("huber_loss does not support non-positive values for delta.")
        size = xp.abs(xp.subtract(widened(xp, self), widened(xp, target)))
        terms = xp.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta))
        return loss_value(xp, terms, reduction, self.dtype)

    def decomp(self, target, reduction, delta):
        size = (self - target).abs()
        terms = ops.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta))
        return reduce_loss(terms, reduction).to(self.dtype)

    samples = smooth_l1_loss.samples


class huber_loss_backward(DifferenceLossBackward):
    """Gradient of huber_loss."""

    schema = ("huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction,"
              " float delta) -> Tensor")
    same_dtype = ("grad_output", "self", "target")
    grad, push = second_order("huber_slope({0} - {1}, delta)",
                              "huber_curvature({0} - {1}, delta)")

    def run(xp, grad_output, self, target, reduction, delta):
        g, x, t = widened(xp, grad_output), widened(xp, self), widened(xp, target)
        out = xp.clip(xp.subtract(x, t), -delta, delta)
        return narrowed(out * (g * loss_scale(reduction, x.shape, t.shape)), self.dtype)

    def decomp(grad_output, self, target, reduction, delta):
        slope = (self - target).clamp(-delta, delta)
        return slope * (grad_output * loss_scale(reduction, self.shape, target.shape))

    samples = smooth_l1_loss_backward.samples


class l1_loss(ComplexComposite):
    """Absolute differences, reduced."""

    schema = "l1_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor"
    autocast = "float32"
    method = function = False

    def compose(self, target, reduction):
        return reduce_loss((self - target).abs(), reduction)

    def samples(s):
        for reduction in (0, 1, 2):
            yield s(s.real(3, 4), s.real(3, 4), reduction)


# ---------------------------------------------------------------------------------------------
# Binary cross entropy and divergence


def _same_float(self, *others):
    for other in others:
        if other is not None and other.dtype != self.dtype:
            raise DTypeError(f"Found dtype {other.dtype.name} but expected {self.dtype.name}")


def _batched_with_weights(n, batched, tensors):
    """Operands of equal rank with the batch dim in front; None stays None."""
    shapes = [() if t is None else t.shape[1:] if b else t.shape
              for t, b in zip(tensors, batched, strict=True)]
    rank = max(map(len, shapes))
    out = [None if t is None else
           t.reshape((n if b else 1, *(1,) * (rank - len(shape)), *shape))
           for t, b, shape in zip(tensors, batched, shapes, strict=True)]
    return out, broadcast_shapes(*shapes)


def _bce_terms(self, target, weight):
    logs = (target - 1) * (-self).log1p().clamp(min=-100)
    return weighted(logs - target * self.log().clamp(min=-100), weight)


def _logits_terms(self, target, weight, pos_weight):
    soft = (-self.abs()).exp().log1p() + (-self).clamp(min=0)
    if pos_weight is not None:
        soft = (1 + (pos_weight - 1) * target) * soft
    return weighted((1 - target) * self + soft, weight)


class binary_cross_entropy(Loss):
    """Cross entropy between probabilities and targets, reduced."""

    schema = ("binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None,"
              " int reduction=Mean) -> Tensor")
    grad = {
        "self": "binary_cross_entropy_backward(grad, self, target, weight, reduction)",
        "target": scaled("grad * bce_target_slope(self, weight)"),
    }
    push = ("reduce_loss(binary_cross_entropy_backward(self_t, self_p, target_p, weight, 0)"
            " + bce_target_slope(self_p, weight) * target_t, reduction)")

    def run(xp, self, target, weight, reduction):
        refuse("binary_cross_entropy", self, "biuc")
        _same_float(self, target, weight)
        p, t = widened(xp, self), widened(xp, target)
        if p.size and not (p.min() >= 0 and p.max() <= 1):
            raise ShapeError("all elements of input should be between 0 and 1")
        terms = (t - 1) * xp.maximum(xp.log1p(-p), -100) - t * xp.maximum(xp.log(p), -100)
        if weight is not None:
            terms = terms * widened(xp, weight)
        return loss_value(xp, terms, reduction, self.dtype)

    def shape(self, target, weight, reduction):
        return loss_shape(self, target, reduction)

    def batch(n, batched, self, target, weight, reduction):
        (p, t, w), shape = _batched_with_weights(n, batched[:3], (self, target, weight))
        terms = ops.binary_cross_entropy(p.expand([n, *shape]), t, w, NONE)
        return reduce_loss(terms, reduction, keep=1)

    def decomp(self, target, weight, reduction):
        return reduce_loss(_bce_terms(self, target, weight), reduction)

    def samples(s):
        for reduction in (0, 1, 2):
            yield s(s.real(3, 4, low=0.1, high=0.9), s.real(3, 4, low=0.1, high=0.9), None,
                    reduction)
        yield s(s.real(3, 4, low=0.1, high=0.9), s.real(3, 4, low=0.1, high=0.9),
                s.real(3, 4, low=0.1, high=1), 1)


class binary_cross_entropy_backward(LossBackward):
    """Gradient of binary_cross_entropy."""

    schema = ("binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target,"
              " Tensor? weight=None, int reduction=Mean) -> Tensor")
    same_dtype = ("grad_output", "self", "target")
    grad = {
        "grad_output": scaled("grad * bce_slope(self, target, weight)"),
        "self": scaled("grad * grad_output * bce_curvature(self, target, weight)"),
        "target": scaled("grad * grad_output * bce_mixed(self, weight)"),
    }
    push = ("(grad_output_t * bce_slope(self_p, target_p, weight) + grad_output_p"
            " * (bce_curvature(self_p, target_p, weight) * self_t"
            " + bce_mixed(self_p, weight) * target_t))"
            " * loss_scale(reduction, self_p.shape, target_p.shape)")

    def run(xp, grad_output, self, target, weight, reduction):
        g, p, t = widened(xp, grad_output), widened(xp, self), widened(xp, target)
        out = (p - t) / xp.maximum((1 - p) * p, 1e-12)
        if weight is not None:
            out = out * widened(xp, weight)
        return narrowed(out * (g * loss_scale(reduction, p.shape, t.shape)), self.dtype)

    def batch(n, batched, grad_output, self, target, weight, reduction):
        (p, t, w), shape = _batched_with_weights(n, batched[1:4], (self, target, weight))
        g = _pad_grad(grad_output, batched[0], len(shape)) * loss_scale(reduction, shape)
        p, g = p.expand([n, *shape]), g.expand([n, *shape])
        return ops.binary_cross_entropy_backward(g, p, t, w, NONE)

    def decomp(grad_output, self, target, weight, reduction):
        scale = grad_output * loss_scale(reduction, self.shape, target.shape)
        return (bce_slope(self, target, weight) * scale).to(self.dtype)

    def samples(s):
        def chance():
            return s.real(3, 4, low=0.1, high=0.9)

        yield s(s.real(3, 4), chance(), chance(), None, 0)
        yield s(s.real(), chance(), chance(), chance(), 1)
        yield s(s.real(), chance(), chance(), None, 2)


def _check_float_target(self, target):
    if target.dtype.kind in "biu":
        found, wanted = (title(t.dtype) for t in (self, target))
        raise DTypeError(f"result type {found} can't be cast to the desired output type {wanted}")


class binary_cross_entropy_with_logits(Loss):
    """Cross entropy between sigmoid(self) and targets, stable for any logit, reduced.

    It has the dtype of the targets, as in PyTorch, which computes it in the memory of 1 - target.
    """

    schema = ("binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None,"
              " Tensor? pos_weight=None, int reduction=Mean) -> Tensor")
    promote = "keep"
    dtype = "target.dtype"
    grad = {
        "self": scaled("grad * logits_slope(self, target, weight, pos_weight)"),
        "target": scaled("grad * logits_target_slope(self, weight, pos_weight, log_sigmoid)"),
    }
    push = ("reduce_loss(logits_slope(self_p, target_p, weight, pos_weight) * self_t"
            " + logits_target_slope(self_p, weight, pos_weight, log_sigmoid) * target_t,"
            " reduction)")

    def run(xp, self, target, weight, pos_weight, reduction):
        refuse("binary_cross_entropy_with_logits", self, "biuc")
        _check_float_target(self, target)
        x, t = widened(xp, self), widened(xp, target)
        soft = xp.log1p(xp.exp(-xp.abs(x))) + xp.maximum(-x, 0)  # -log(sigmoid(x))
        if pos_weight is None:
            terms = (1 - t) * x + soft
        else:
            terms = (1 - t) * x + (1 + (widened(xp, pos_weight) - 1) * t) * soft
        if weight is not None:
            terms = terms * widened(xp, weight)
        return loss_value(xp, terms, reduction, target.dtype)

    def shape(self, target, weight, pos_weight, reduction):
        return loss_shape(self, target, reduction)

    def batch(n, batched, self, target, weight, pos_weight, reduction):
        tensors = self, target, weight, pos_weight
        (x, *others), shape = _batched_with_weights(n, batched[:4], tensors)
        terms = ops.binary_cross_entropy_with_logits(x.expand([n, *shape]), *others, NONE)
        return reduce_loss(terms, reduction, keep=1)

    def decomp(self, target, weight, pos_weight, reduction):
        terms = _logits_terms(self, target, weight, pos_weight)
        return reduce_loss(terms if terms.dtype is target.dtype else terms.to(target.dtype),
                           reduction)

    def samples(s):
        for reduction in (0, 1, 2):
            yield s(s.real(3, 4), s.real(3, 4, low=0.1, high=0.9), None, None, reduction)
        yield s(s.real(3, 4), s.real(3, 4, low=0.1, high=0.9), s.real(4, low=0.1, high=1),
                s.real(4, low=0.1, high=2), 1)


class kl_div(Free):
    """Divergence of `target` from the distribution whose logarithm is `self`, reduced."""

    schema = ("kl_div(Tensor self, Tensor target, int reduction=Mean, *, bool log_target=False)"
              " -> Tensor")
    autocast = "float32"

    def compose(self, target, reduction, log_target):
        if log_target:
            terms = target.exp() * (target - self)
        else:
            product = target * self
            terms = ops.xlogy(target, target) - product
        return reduce_loss(terms, reduction)

    def samples(s):
        for reduction in (0, 1, 2):
            yield s(s.real(3, 4), s.real(3, 4, low=0.1, high=1), reduction)
        yield s(s.real(3, 4), s.real(3, 4), 1, log_target=True)


class poisson_nll_loss(Free):
    """Negative log likelihood of counts under Poisson distributions, reduced."""

    schema = ("poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps,"
              " int reduction) -> Tensor")
    autocast = "float32"

    def compose(input, target, log_input, full, eps, reduction):
        terms = input.exp() - target * input if log_input else input - target * (input + eps).log()
        if full:  # Stirling's approximation of the logarithm of the factorial
            stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
            terms = terms + stirling.masked_fill(target <= 1, 0)
        return reduce_loss(terms, reduction)

    def samples(s):
        counts = s.real(3, 4, low=1.5, high=5)
        for reduction in (0, 1, 2):
            yield s(s.real(3, 4), counts, True, False, 1e-8, reduction)
        yield s(s.real(3, 4, low=0.5, high=2), counts, False, True, 1e-8, 1)
