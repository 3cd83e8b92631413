"""Losses of distances, of chances and of divergence: mse, huber, binary cross entropy, kl_div,
poisson_nll_loss.

Read next: `margin_loss.py`.
"""

from __future__ import annotations

import math

from ..array.dims import broadcast_shapes
from ..array.dtype import title
from ..core.op import Composite, Op
from ..errors import DTypeError, ShapeError
from ..formulas.loss import bce_slope, loss_scale, reduce_loss, weighted
from ..table.packets import ops
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


class mse_loss(Op):
    """Squared differences, reduced."""

    schema = "mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor"
    lower = "composite.mse"
    autocast = "float32"
    lies = "self"
    out = ("castable",)
    promote = "default"
    grad = {
        "self": "mse_loss_backward(grad, self, target, reduction)",
        "target": "mse_loss_backward(grad, target, self, reduction)",
    }
    push = "reduce_loss((self_t - target_t) * (self_p - target_p) * 2, reduction)"
    cost = "reduce"
    method = False
    function = False

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

    def shape(self, target, reduction):
        return loss_shape(self, target, reduction)

    def batch(n, batched, self, target, reduction):
        a, b, _ = _batched_terms(n, batched[:2], self, target)
        return reduce_loss(ops.mse_loss(a, b, 0), reduction, keep=1)

    def decomp(self, target, reduction):
        difference = self - target
        return reduce_loss(difference * difference, reduction)

    def samples(s):
        for reduction in (0, 1, 2):
            yield s(s.real(3, 4), s.real(3, 4), reduction)
        yield s(s.real(3, 1), s.real(4), 1)
        yield s(s.real(), s.real())
        yield s(s.real(0, 2), s.real(0, 2), 2)


class mse_loss_backward(Op):
    """Gradient of mse_loss."""

    schema = ("mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction)"
              " -> Tensor")
    lower = "composite.mse_backward"
    lies = "self"
    promote = "default"
    grad = {
        "grad_output": ("grad * (self - target)"
                        " * (2 * loss_scale(reduction, self.shape, target.shape))"),
        "self": "grad * grad_output * (2 * loss_scale(reduction, self.shape, target.shape))",
        "target": "grad * grad_output * (-2 * loss_scale(reduction, self.shape, target.shape))",
    }
    push = ("(grad_output_t * (self_p - target_p) + grad_output_p * (self_t - target_t))"
            " * (2 * loss_scale(reduction, self_p.shape, target_p.shape))")
    cost = "cheap"
    method = False
    function = False

    def run(xp, grad_output, self, target, reduction):
        g, x, t = widened(xp, grad_output), widened(xp, self), widened(xp, target)
        scale = 2 * loss_scale(reduction, x.shape, t.shape)
        out = xp.subtract(x, t)
        return narrowed(out * (g * scale), self.dtype)

    def shape(grad_output, self, target, reduction):
        return broadcast_shapes(self.shape, target.shape)

    def batch(n, batched, grad_output, self, target, reduction):
        a, b, shape = _batched_terms(n, batched[1:3], self, target)
        g = _pad_grad(grad_output, batched[0], len(shape))
        return (g * (a - b) * (2 * loss_scale(reduction, shape))).expand([n, *shape])

    def decomp(grad_output, self, target, reduction):
        return (self - target) * (grad_output * (2 * loss_scale(reduction, self.shape,
                                                                target.shape)))

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 4), s.real(3, 4), 0)
        yield s(s.real(), s.real(3, 4), s.real(3, 4), 1)
        yield s(s.real(), s.real(3, 4), s.real(3, 4), 2)


class smooth_l1_loss(Op):
    """Squared differences near zero and absolute ones beyond `beta`, reduced."""

    schema = ("smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float beta=1.)"
              " -> Tensor")
    autocast = "float32"
    lies = "self"
    out = ("castable",)
    promote = "default"
    grad = {
        "self": "smooth_l1_loss_backward(grad, self, target, reduction, beta)",
        "target": "smooth_l1_loss_backward(grad, target, self, reduction, beta)",
    }
    push = ("reduce_loss(smooth_l1_slope(difference(self_p, target_p), beta) * (self_t - target_t),"
            " reduction)")
    cost = "reduce"
    method = False
    function = False

    def run(xp, self, target, reduction, beta):
        refuse("smooth_l1_cpu", self, "biuc")
        check_reduction("smooth_l1_loss", reduction)
        if beta < 0:
            raise ShapeError("smooth_l1_loss does not support negative values for beta.")
        size = xp.abs(xp.subtract(widened(xp, self), widened(xp, target)))
        if beta > 0:
            size = xp.where(size < beta, 0.5 * size * size / beta, size - 0.5 * beta)
        return loss_value(xp, size, reduction, self.dtype)

    def shape(self, target, reduction, beta):
        return loss_shape(self, target, reduction)

    def batch(n, batched, self, target, reduction, beta):
        a, b, _ = _batched_terms(n, batched[:2], self, target)
        return reduce_loss(ops.smooth_l1_loss(a, b, 0, beta), reduction, keep=1)

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


class smooth_l1_loss_backward(Op):
    """Gradient of smooth_l1_loss."""

    schema = ("smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target,"
              " int reduction, float beta) -> Tensor")
    lies = "self"
    promote = "default"
    grad = {
        "grad_output": ("grad * smooth_l1_slope(difference(self, target), beta)"
                        " * loss_scale(reduction, self.shape, target.shape)"),
        "self": ("grad * grad_output * smooth_l1_curvature(difference(self, target), beta)"
                 " * loss_scale(reduction, self.shape, target.shape)"),
        "target": ("-grad * grad_output * smooth_l1_curvature(difference(self, target), beta)"
                   " * loss_scale(reduction, self.shape, target.shape)"),
    }
    push = ("(grad_output_t * smooth_l1_slope(difference(self_p, target_p), beta) + grad_output_p"
            " * smooth_l1_curvature(difference(self_p, target_p), beta) * (self_t - target_t))"
            " * loss_scale(reduction, self_p.shape, target_p.shape)")
    cost = "cheap"
    method = False
    function = False

    def run(xp, grad_output, self, target, reduction, beta):
        g, x, t = widened(xp, grad_output), widened(xp, self), widened(xp, target)
        out = xp.subtract(x, t)
        out = xp.clip(out / beta, -1, 1) if beta else xp.sign(out)
        return narrowed(out * (g * loss_scale(reduction, x.shape, t.shape)), self.dtype)

    def shape(grad_output, self, target, reduction, beta):
        return broadcast_shapes(self.shape, target.shape)

    def batch(n, batched, grad_output, self, target, reduction, beta):
        a, b, shape = _batched_terms(n, batched[1:3], self, target)
        g = _pad_grad(grad_output, batched[0], len(shape)) * loss_scale(reduction, shape)
        return ops.smooth_l1_loss_backward(g, a, b, 0, beta).expand([n, *shape])

    def decomp(grad_output, self, target, reduction, beta):
        difference = self - target
        slope = (difference / beta).clamp(-1, 1) if beta else difference.sign()
        return slope * (grad_output * loss_scale(reduction, self.shape, target.shape))

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 4), s.real(3, 4), 0, 1.0)
        yield s(s.real(), s.real(3, 4), s.real(3, 4), 1, 0.5)
        yield s(s.real(), s.real(3, 4), s.real(3, 4), 2, 2.0)


class huber_loss(Op):
    """Half squared differences near zero and scaled absolute ones beyond `delta`, reduced."""

    schema = ("huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.)"
              " -> Tensor")
    autocast = "float32"
    lies = "self"
    out = ("castable",)
    promote = "default"
    grad = {
        "self": "huber_loss_backward(grad, self, target, reduction, delta)",
        "target": "huber_loss_backward(grad, target, self, reduction, delta)",
    }
    push = ("reduce_loss(huber_slope(self_p - target_p, delta) * (self_t - target_t),"
            " reduction).to(result.dtype)")
    check = lambda self, target, reduction, delta: refuse("huber_cpu", self, "biuc")
    dtype = "self.dtype"
    cost = "reduce"
    method = False
    function = False

    def run(xp, self, target, reduction, delta):
        if delta <= 0:
            raise ShapeError("huber_loss does not support non-positive values for delta.")
        size = xp.abs(xp.subtract(widened(xp, self), widened(xp, target)))
        terms = xp.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta))
        return loss_value(xp, terms, reduction, self.dtype)

    def shape(self, target, reduction, delta):
        return loss_shape(self, target, reduction)

    def batch(n, batched, self, target, reduction, delta):
        a, b, _ = _batched_terms(n, batched[:2], self, target)
        return reduce_loss(ops.huber_loss(a, b, 0, delta), reduction, keep=1)

    def decomp(self, target, reduction, delta):
        size = (self - target).abs()
        terms = ops.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta))
        return reduce_loss(terms, reduction).to(self.dtype)

    def samples(s):
        for reduction in (0, 1, 2):
            yield s(s.real(3, 4), s.real(3, 4), reduction)
        yield s(s.real(3, 4), s.real(3, 4), 1, 0.5)
        yield s(s.real(3, 4), s.real(4), 1, 2.0)


class huber_loss_backward(Op):
    """Gradient of huber_loss."""

    schema = ("huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction,"
              " float delta) -> Tensor")
    alike = ("grad_output", "self", "target")
    lies = "self"
    promote = "default"
    grad = {
        "grad_output": ("grad * huber_slope(self - target, delta)"
                        " * loss_scale(reduction, self.shape, target.shape)"),
        "self": ("grad * grad_output * huber_curvature(self - target, delta)"
                 " * loss_scale(reduction, self.shape, target.shape)"),
        "target": ("-grad * grad_output * huber_curvature(self - target, delta)"
                   " * loss_scale(reduction, self.shape, target.shape)"),
    }
    push = ("(grad_output_t * huber_slope(self_p - target_p, delta) + grad_output_p"
            " * huber_curvature(self_p - target_p, delta) * (self_t - target_t))"
            " * loss_scale(reduction, self_p.shape, target_p.shape)")
    cost = "cheap"
    method = False
    function = False

    def run(xp, grad_output, self, target, reduction, delta):
        g, x, t = widened(xp, grad_output), widened(xp, self), widened(xp, target)
        out = xp.clip(xp.subtract(x, t), -delta, delta)
        return narrowed(out * (g * loss_scale(reduction, x.shape, t.shape)), self.dtype)

    def shape(grad_output, self, target, reduction, delta):
        return broadcast_shapes(self.shape, target.shape)

    def batch(n, batched, grad_output, self, target, reduction, delta):
        a, b, shape = _batched_terms(n, batched[1:3], self, target)
        g = _pad_grad(grad_output, batched[0], len(shape)) * loss_scale(reduction, shape)
        return ops.huber_loss_backward(g, a, b, 0, delta).expand([n, *shape])

    def decomp(grad_output, self, target, reduction, delta):
        slope = (self - target).clamp(-delta, delta)
        return slope * (grad_output * loss_scale(reduction, self.shape, target.shape))

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 4), s.real(3, 4), 0, 1.0)
        yield s(s.real(), s.real(3, 4), s.real(3, 4), 1, 0.5)
        yield s(s.real(), s.real(3, 4), s.real(3, 4), 2, 2.0)


class l1_loss(Composite):
    """Absolute differences, reduced."""

    schema = "l1_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor"
    autocast = "float32"
    method = False
    function = False
    complex = True

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


class binary_cross_entropy(Op):
    """Cross entropy between probabilities and targets, reduced."""

    schema = ("binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None,"
              " int reduction=Mean) -> Tensor")
    autocast = "float32"
    lies = "self"
    grad = {
        "self": "binary_cross_entropy_backward(grad, self, target, weight, reduction)",
        "target": ("grad * bce_target_slope(self, weight)"
                   " * loss_scale(reduction, self.shape, target.shape)"),
    }
    push = ("reduce_loss(binary_cross_entropy_backward(self_t, self_p, target_p, weight, 0)"
            " + bce_target_slope(self_p, weight) * target_t, reduction)")
    cost = "reduce"
    method = False
    function = False

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


class binary_cross_entropy_backward(Op):
    """Gradient of binary_cross_entropy."""

    schema = ("binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target,"
              " Tensor? weight=None, int reduction=Mean) -> Tensor")
    alike = ("grad_output", "self", "target")
    lies = "self"
    grad = {
        "grad_output": ("grad * bce_slope(self, target, weight)"
                        " * loss_scale(reduction, self.shape, target.shape)"),
        "self": ("grad * grad_output * bce_curvature(self, target, weight)"
                 " * loss_scale(reduction, self.shape, target.shape)"),
        "target": ("grad * grad_output * bce_mixed(self, weight)"
                   " * loss_scale(reduction, self.shape, target.shape)"),
    }
    push = ("(grad_output_t * bce_slope(self_p, target_p, weight) + grad_output_p"
            " * (bce_curvature(self_p, target_p, weight) * self_t"
            " + bce_mixed(self_p, weight) * target_t))"
            " * loss_scale(reduction, self_p.shape, target_p.shape)")
    cost = "cheap"
    method = False
    function = False

    def run(xp, grad_output, self, target, weight, reduction):
        g, p, t = widened(xp, grad_output), widened(xp, self), widened(xp, target)
        out = (p - t) / xp.maximum((1 - p) * p, 1e-12)
        if weight is not None:
            out = out * widened(xp, weight)
        return narrowed(out * (g * loss_scale(reduction, p.shape, t.shape)), self.dtype)

    def shape(grad_output, self, target, weight, reduction):
        return broadcast_shapes(self.shape, target.shape)

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


class binary_cross_entropy_with_logits(Op):
    """Cross entropy between sigmoid(self) and targets, stable for any logit, reduced.

    It has the dtype of the targets, as in PyTorch, which computes it in the memory of 1 - target.
    """

    schema = ("binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None,"
              " Tensor? pos_weight=None, int reduction=Mean) -> Tensor")
    autocast = "float32"
    lies = "self"
    promote = "keep"
    dtype = "target.dtype"
    grad = {
        "self": ("grad * logits_slope(self, target, weight, pos_weight)"
                 " * loss_scale(reduction, self.shape, target.shape)"),
        "target": ("grad * logits_target_slope(self, weight, pos_weight, log_sigmoid)"
                   " * loss_scale(reduction, self.shape, target.shape)"),
    }
    push = ("reduce_loss(logits_slope(self_p, target_p, weight, pos_weight) * self_t"
            " + logits_target_slope(self_p, weight, pos_weight, log_sigmoid) * target_t,"
            " reduction)")
    cost = "reduce"
    method = False
    function = False

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


class kl_div(Composite):
    """Divergence of `target` from the distribution whose logarithm is `self`, reduced."""

    schema = ("kl_div(Tensor self, Tensor target, int reduction=Mean, *, bool log_target=False)"
              " -> Tensor")
    autocast = "float32"
    method = False

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


class poisson_nll_loss(Composite):
    """Negative log likelihood of counts under Poisson distributions, reduced."""

    schema = ("poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps,"
              " int reduction) -> Tensor")
    autocast = "float32"
    method = False

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
