"""Negative log likelihood and cross entropy: table entries and composites.

`reduction` is 0 (none), 1 (mean) or 2 (sum) down here; `nn/functional/` has the words.  Entries
have one kernel each for value and gradient; their decompositions are pointwise operators and a
reduction, which the native code generator fuses.  Longer formulas are in `formulas/loss.py`.
Read next: `regression.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from ..array import dtype as dt
from ..array.dims import numel
from ..array.xp import all_below, extremes, sums
from ..core.op import Composite, Op
from ..errors import DTypeError, RefusedValue, ShapeError
from ..formulas.loss import class_dim, nll_terms, reduce_loss
from ..table.packets import ops
from .kinds import FirstResult
from .norm import narrowed, widened
from .pointwise import refuse

NONE, MEAN, SUM = 0, 1, 2


# ---------------------------------------------------------------------------------------------
# Negative log likelihood


_CLASSES = {d for kind in (dt.int64, dt.uint8) for d in (kind, kind.np)}  # dtypes of targets


def _check_nll(self, target, weight):
    """Shapes of nll_loss: (C), () or (N, C), (N)."""
    if target.ndim > 1:
        raise ShapeError("0D or 1D target tensor expected, multi-target not supported, got target "
                         f"shape {list(target.shape)}")
    if self.ndim not in (1, 2):
        raise ShapeError(f"input tensor should be 1D or 2D, got shape {list(self.shape)}")
    if target.ndim != self.ndim - 1 and not (self.ndim == 1 and tuple(target.shape) == (1,)):
        raise ShapeError(f"size mismatch (got input: {list(self.shape)}, "
                         f"target: {list(target.shape)})")
    if self.ndim == 2 and target.shape[0] != self.shape[0]:
        raise ShapeError(f"size mismatch (got input: {list(self.shape)}, "
                         f"target: {list(target.shape)})")
    _check_classes(self, target, weight)


def _check_nll2d(self, target, weight):
    """Shapes of nll_loss2d: (N, C, H, W), (N, H, W)."""
    if target.ndim != 3:
        raise ShapeError("only batches of spatial targets supported (3D tensors) but got targets "
                         f"of dimension: {target.ndim}")
    if self.ndim != 4:
        raise ShapeError("only batches of spatial inputs supported (4D tensors), but got input of "
                         f"dimension: {self.ndim}")
    if (self.shape[0], *self.shape[2:]) != tuple(target.shape):
        raise ShapeError(f"size mismatch (got input: {list(self.shape)} , "
                         f"target: {list(target.shape)}")
    _check_classes(self, target, weight)


def _check_classes(self, target, weight):
    if target.dtype not in _CLASSES:
        raise DTypeError(f"expected target dtype to be Long or Byte, but got {target.dtype.name}")
    if weight is None:
        return
    classes = self.shape[class_dim(self.shape)]
    if weight.ndim != 1 or weight.shape[0] != classes:
        raise ShapeError(f"weight tensor should be defined either for all {classes} classes or no "
                         f"classes but got weight tensor of shape: {list(weight.shape)}")
    if weight.dtype != self.dtype:
        raise DTypeError(f"expected weight to have the input's dtype {self.dtype.name} but found "
                         f"{weight.dtype.name}")


def _known_targets(xp, self, target, ignore_index, dim):
    """Targets with ignored ones replaced by class 0, and which count (None: all do)."""
    known, classes = None, self.shape[dim]
    if not target.size:
        return target.astype(xp.int64), None
    if not 0 <= ignore_index < classes and all_below(target, classes):
        return target, None
    low, high = extremes(target)
    if low <= ignore_index <= high:
        known = target != ignore_index
        target = xp.where(known, target, 0)
        low, high = extremes(target)
    if low < 0 or high >= classes:
        raise IndexError(f"Target {int(low if low < 0 else high)} is out of bounds.")
    return target.astype(xp.int64, copy=False), known


def _at_classes(xp, safe, dim):
    """An index that picks, from an array with classes on `dim`, the entry at each target."""
    if safe.ndim == 1 and dim == 1:
        return xp.arange(safe.shape[0]), safe
    grid = list(xp.ix_(*map(xp.arange, safe.shape))) if safe.ndim else []
    grid.insert(dim, safe)
    return tuple(grid)


def _nll_forward(xp, self, target, weight, reduction, ignore_index):
    refuse("nll_loss_out_frame", self, "biuc")
    dim = class_dim(self.shape)
    if self.ndim == 1:
        target = target.reshape(())
    safe, known = _known_targets(xp, self, target, ignore_index, dim)
    terms = xp.negative(widened(xp, xp.asarray(self[_at_classes(xp, safe, dim)])))
    weights = None
    if weight is not None:
        weights = widened(xp, weight)[safe]
        terms = terms * weights
    if known is not None:
        weights = known.astype(terms.dtype) if weights is None else weights * known
        terms = xp.where(known, terms, 0)  # an ignored NaN does not count
    if reduction == NONE and self.ndim > 1:
        return narrowed(terms, self.dtype), xp.zeros((), dtype=self.dtype)
    total = xp.asarray(safe.size if weights is None else weights.sum(), dtype=terms.dtype)
    if reduction != NONE:
        terms = sums(xp, terms, None).reshape(())
    if reduction == MEAN:
        terms = xp.asarray(xp.divide(terms, total))  # nothing to count: NaN, as PyTorch
    return narrowed(terms, self.dtype), narrowed(total, self.dtype)


def _nll_backward(xp, grad_output, self, target, weight, reduction, ignore_index, total_weight):
    dim = class_dim(self.shape)
    if self.ndim == 1:
        target = target.reshape(())
    safe, known = _known_targets(xp, self, target, ignore_index, dim)
    g = xp.negative(widened(xp, grad_output))
    if reduction == MEAN:
        g = g / widened(xp, total_weight)
    if weight is not None:
        g = g * widened(xp, weight)[safe]
    if known is not None:
        g = xp.where(known, g, 0)
    out = xp.zeros(self.shape, dtype=self.dtype)
    out[_at_classes(xp, safe, dim)] = g
    return out


def _decomposed_nll(self, target, weight, reduction, ignore_index):
    if self.ndim == 1:
        target = target.reshape(())
    terms, weights = nll_terms(self, target, weight, ignore_index, class_dim(self.shape), ops.where,
                               ops.gather)
    if reduction == NONE:
        return terms, (self.new_zeros(()) if self.ndim > 1 else weights)
    total = weights.sum()
    return (terms.sum() / total if reduction == MEAN else terms.sum()), total


def _decomposed_nll_backward(grad_output, self, target, weight, reduction, ignore_index,
                             total_weight):
    """One comparison per class instead of a scatter: it fuses with what comes after."""
    dim = class_dim(self.shape)
    if self.ndim == 1:
        target = target.reshape(())
    scale = grad_output / total_weight if reduction == MEAN else grad_output
    return _spread_over_classes(-scale, self, target, weight, ignore_index, dim)


def _spread_over_classes(value, self, target, weight, ignore_index, dim):
    """`value` at the target's class, zero elsewhere and where the target is ignored."""
    shape = [1] * self.ndim
    shape[dim] = self.shape[dim]
    classes = ops.arange(self.shape[dim], device=self.device).reshape(shape)
    chosen = (classes == target.unsqueeze(dim)) & (target != ignore_index).unsqueeze(dim)
    if value.ndim and value.ndim == target.ndim:
        value = value.unsqueeze(dim)
    if weight is not None:
        value = value * weight.reshape(shape)
    return ops.where(chosen, value, 0).to(self.dtype)


def _batched_nll(n, batched, self, target, weight, reduction, ignore_index):
    """Forward over examples in front; `weight` may differ per example too."""
    self, target = (t if b else t.unsqueeze(0).expand([n, *t.shape])
                    for t, b in zip((self, target), batched[:2], strict=True))
    logical = self.shape[1:]
    if len(logical) == 1:
        target = target.reshape([n])
    dim = class_dim(logical) + 1
    if batched[2]:
        known = target != ignore_index
        safe = ops.where(known, target, 0)
        picked = ops.gather(weight, 1, safe.reshape(n, -1)).reshape(target.shape)
        terms, _ = nll_terms(self, target, None, ignore_index, dim, ops.where, ops.gather)
        weights = ops.where(known, picked, 0)
        terms = terms * weights
    else:
        terms, weights = nll_terms(self, target, weight, ignore_index, dim, ops.where, ops.gather)
    if reduction == NONE:
        return terms, (self.new_zeros((n,)) if len(logical) > 1 else weights)
    total = reduce_loss(weights, SUM, keep=1)
    out = reduce_loss(terms, SUM, keep=1)
    return (out / total if reduction == MEAN else out), total


def _batched_nll_backward(n, batched, grad_output, self, target, weight, reduction, ignore_index,
                          total_weight):
    def front(t, b):
        return t if t is None or b else t.unsqueeze(0).expand([n, *t.shape])

    grad_output, self, target = (front(t, b) for t, b in
                                 zip((grad_output, self, target), batched[:3], strict=True))
    logical = self.shape[1:]
    if len(logical) == 1:
        target = target.reshape([n])
    dim = class_dim(logical) + 1
    scale = -grad_output
    if reduction == MEAN:
        scale = scale / total_weight
    scale = scale.reshape(scale.shape + (1,) * (target.ndim - scale.ndim))
    if batched[3]:
        shape = [n] + [1] * len(logical)
        shape[dim] = logical[dim - 1]
        out = _spread_over_classes(scale, self, target, None, ignore_index, dim)
        return out * weight.reshape(shape)
    return _spread_over_classes(scale, self, target, weight, ignore_index, dim)


class NllForward(Op):
    """Minus the chosen log probabilities, weighted and reduced, and the sum of their weights."""

    checked: Callable  # refuses shapes of (self, target, weight)
    promote = "keep"
    nondiff = ("target",)
    diff_outputs = (True, False)
    cost = "reduce"
    method = function = False

    batch = _batched_nll
    decomp = _decomposed_nll
    dtype = "[self.dtype, self.dtype]"

    @classmethod
    def run(cls, xp, self, target, weight, reduction, ignore_index):
        cls.checked(self, target, weight)
        return _nll_forward(xp, self, target, weight, reduction, ignore_index)

    @classmethod
    def shape(cls, self, target, weight, reduction, ignore_index):
        cls.checked(self, target, weight)
        dim = class_dim(self.shape)
        terms = (*self.shape[:dim], *self.shape[dim + 1:])
        return [terms if reduction == 0 else (), ()]


class NllBackward(Op):
    """Minus the (scaled) gradient at the target classes."""

    checked: Callable
    same_dtype = ("grad_output", "self", "total_weight", "weight")
    promote = "keep"
    constant = ("self",)
    nondiff = ("target",)
    shape = "self.shape"
    dtype = "self.dtype"
    cost = "cheap"
    trusts = True
    method = function = False
    batch = _batched_nll_backward
    decomp = _decomposed_nll_backward

    @classmethod
    def run(cls, xp, grad_output, self, target, weight, reduction, ignore_index, total_weight):
        cls.checked(self, target, weight)
        return _nll_backward(xp, grad_output, self, target, weight, reduction, ignore_index,
                             total_weight)


class nll_loss_forward(NllForward):
    """Minus the entries of `self` at the target classes, weighted and reduced."""

    checked = _check_nll
    schema = ("nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction,"
              " SymInt ignore_index) -> (Tensor output, Tensor total_weight)")
    native = "nll"
    trusts = "indices"
    lower = "composite.nll_loss"
    grad = {"self": ("nll_loss_backward(grad, self, target, weight, reduction, ignore_index,"
                     " total_weight)")}
    push = {"output": "nll_loss_forward(self_t, target, weight, reduction, ignore_index)[0]"}

    def samples(s):
        targets = s.int(3, low=0, high=4)
        for reduction in (0, 1, 2):
            yield s(s.real(3, 4), targets, None, reduction, -100)
            yield s(s.real(3, 4), targets, s.real(4, low=0.1, high=1), reduction, -100)
        yield s(s.real(3, 4), targets, None, 1, 1)
        yield s(s.real(4), s.int(low=0, high=4), None, 1, -100)
        yield s(s.real(4), s.int(low=0, high=4), None, 0, -100)
        yield s(s.real(0, 4), s.int(0, low=0, high=4), None, 2, -100)


class nll_loss_backward(NllBackward):
    """Gradient of nll_loss: minus the (scaled) gradient at the target classes."""

    checked = _check_nll
    schema = ("nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight,"
              " int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor")
    native = "nll_backward"
    lower = "composite.nll_loss_backward"
    grad = {"grad_output": "nll_loss(grad, target, weight, reduction, ignore_index)"}
    push = ("nll_loss_backward(grad_output_t, self_p, target, weight, reduction, ignore_index,"
            " total_weight)")

    def samples(s):
        targets = s.int(3, low=0, high=4)
        total = s.values(3.0)
        yield s(s.real(), s.real(3, 4), targets, None, 1, -100, total)
        yield s(s.real(3), s.real(3, 4), targets, None, 0, -100, total)
        yield s(s.real(), s.real(3, 4), targets, s.values([0.3, 0.5, 0.7, 0.9]), 2, 1, total)
        yield s(s.real(), s.real(4), s.int(low=0, high=4), None, 1, -100, s.values(1.0))


class nll_loss2d_forward(NllForward):
    """nll_loss of images: classes on dim 1 of four."""

    checked = _check_nll2d
    schema = ("nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction,"
              " SymInt ignore_index) -> (Tensor output, Tensor total_weight)")
    trusts = "indices"
    grad = {"self": ("nll_loss2d_backward(grad, self, target, weight, reduction, ignore_index,"
                     " total_weight)")}
    push = {"output": "nll_loss2d_forward(self_t, target, weight, reduction, ignore_index)[0]"}

    def samples(s):
        targets = s.int(2, 3, 2, low=0, high=4)
        for reduction in (0, 1, 2):
            yield s(s.real(2, 4, 3, 2), targets, s.real(4, low=0.1, high=1), reduction, -100)
        yield s(s.real(2, 4, 3, 2), targets, None, 1, 1)


class nll_loss2d_backward(NllBackward):
    """Gradient of nll_loss2d."""

    checked = _check_nll2d
    schema = ("nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight,"
              " int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor")
    grad = {"grad_output": "nll_loss2d(grad, target, weight, reduction, ignore_index)"}
    push = ("nll_loss2d_backward(grad_output_t, self_p, target, weight, reduction, ignore_index,"
            " total_weight)")

    def samples(s):
        targets = s.int(2, 3, 2, low=0, high=4)
        yield s(s.real(), s.real(2, 4, 3, 2), targets, None, 1, -100, s.values(12.0))
        yield s(s.real(2, 3, 2), s.real(2, 4, 3, 2), targets, None, 0, 1, s.values(12.0))


class nll_loss(FirstResult):
    """nll_loss_forward without the summed weight."""

    schema = ("nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean,"
              " SymInt ignore_index=-100) -> Tensor")
    autocast = "float32"
    method = function = False
    first_of = "nll_loss_forward"

    samples = lambda s: [s(s.real(3, 4), s.int(3, low=0, high=4))]


class nll_loss2d(FirstResult):
    """nll_loss2d_forward without the summed weight."""

    schema = ("nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean,"
              " SymInt ignore_index=-100) -> Tensor")
    autocast = "float32"
    method = function = False
    first_of = "nll_loss2d_forward"

    samples = lambda s: [s(s.real(2, 4, 3, 2), s.int(2, 3, 2, low=0, high=4))]


class nll_loss_nd(Composite):
    """Negative log likelihood with classes on dim 1 and any further dims."""

    schema = ("nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean,"
              " SymInt ignore_index=-100) -> Tensor")
    method = function = False

    def compose(self, target, weight, reduction, ignore_index):
        ndim = self.ndim
        if ndim < 1:
            raise ValueError(f"Expected 1 or more dimensions (got {ndim})")
        if ndim != 1 and self.shape[0] != target.shape[0]:
            raise ValueError(f"Expected input batch_size ({self.shape[0]}) to match target "
                             f"batch_size ({target.shape[0]}).")
        if ndim <= 2:
            return ops.nll_loss_forward(self, target, weight, reduction, ignore_index)[0]
        if ndim == 4:
            return ops.nll_loss2d_forward(self, target, weight, reduction, ignore_index)[0]
        n, classes = self.shape[:2]
        shape = (n, *self.shape[2:])
        if tuple(target.shape) != shape:
            raise ShapeError(f"Expected target size {list(shape)}, got {list(target.shape)}")
        rest = numel(self.shape[2:])
        out = ops.nll_loss2d_forward(self.reshape(n, classes, 1, rest), target.reshape(n, 1, rest),
                                     weight, reduction, ignore_index)[0]
        return out.reshape(shape) if reduction == NONE else out

    def samples(s):
        yield s(s.real(3, 4), s.int(3, low=0, high=4))
        yield s(s.real(2, 4, 3), s.int(2, 3, low=0, high=4))
        yield s(s.real(2, 4, 3), s.int(2, 3, low=0, high=4), None, 0)
        yield s(s.real(2, 4, 3, 2), s.int(2, 3, 2, low=0, high=4))
        yield s(s.real(4), s.int(low=0, high=4))


class cross_entropy_loss(Composite):
    """Log-softmax followed by negative log likelihood, or by a sum weighted by probabilities."""

    schema = ("cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None,"
              " int reduction=Mean, SymInt ignore_index=-100, float label_smoothing=0.) -> Tensor")
    autocast = "float32"
    method = function = False

    def compose(self, target, weight, reduction, ignore_index, label_smoothing):
        if label_smoothing > 1:
            raise RefusedValue("label_smoothing must be between 0.0 and 1.0. Got: "
                               f"{label_smoothing}")
        shape, wanted = self.shape, target.shape
        dim = class_dim(shape)
        if shape == wanted:
            if not target.dtype.is_floating_point:
                raise DTypeError("Expected floating point type for target with class probabilities,"
                                 f" got {target.dtype}")
            if ignore_index >= 0:
                raise ShapeError("ignore_index is not supported for floating point target")
            return _prob_cross_entropy(self, target, weight, reduction, label_smoothing, dim)
        scores = ops._log_softmax(self, dim, False)
        if label_smoothing > 0:
            return _smoothed(scores, target, weight, reduction, ignore_index, label_smoothing, dim)
        if len(shape) == 2 and len(wanted) == 1 and shape[0] == wanted[0]:
            return ops.nll_loss_forward(scores, target, weight, reduction, ignore_index)[0]
        return ops.nll_loss_nd(scores, target, weight, reduction, ignore_index)

    def samples(s):
        targets = s.int(3, low=0, high=4)
        for reduction in (0, 1, 2):
            yield s(s.real(3, 4), targets, None, reduction)
            yield s(s.real(3, 4), targets, None, reduction, 1, 0.1)
            yield s(s.real(3, 4), s.real(3, 4, low=0.1, high=1), s.real(4, low=0.1, high=1),
                    reduction)
        yield s(s.real(2, 4, 3), s.int(2, 3, low=0, high=4))
        yield s(s.real(3, 4), s.real(3, 4, low=0.1, high=1), None, 1, -100, 0.2)
        yield s(s.real(4), s.int(low=0, high=4))


def _class_weights(weight, ndim, dim):
    shape = [1] * ndim
    shape[dim] = weight.shape[0]
    return weight.reshape(shape)


def check_reduction(name: str, reduction: int) -> None:
    if reduction not in (NONE, MEAN, SUM):
        raise RefusedValue(f"Invalid reduction type encountered in {name}: {reduction}")


def _prob_cross_entropy(self, target, weight, reduction, label_smoothing, dim):
    if weight is not None and (weight.ndim != 1 or weight.shape[0] != self.shape[dim]):
        raise ShapeError("cross_entropy: weight tensor should be defined either for all "
                         f"{self.shape[dim]} classes or no classes but got weight tensor of shape: "
                         f"{list(weight.shape)}")
    scores = ops._log_softmax(self, dim, False)
    if label_smoothing > 0:
        target = target * (1 - label_smoothing) + label_smoothing / self.shape[dim]
    terms = scores * target
    if weight is not None:
        terms = terms * _class_weights(weight, self.ndim, dim)
    if reduction == NONE:
        return -terms.sum(dim)
    if reduction == SUM:
        return -terms.sum()
    check_reduction("cross_entropy", reduction)
    count = numel(self.shape) // max(self.shape[dim], 1)
    return -terms.sum() / count


def _smoothed(scores, target, weight, reduction, ignore_index, label_smoothing, dim):
    nll = ops.nll_loss_nd(scores, target, weight, reduction, ignore_index)
    if weight is None:
        smooth = -scores.sum(dim)
    else:
        smooth = -(scores * _class_weights(weight, scores.ndim, dim)).sum(dim)
    ignored = target == ignore_index
    smooth = smooth.masked_fill(ignored, 0.0)
    if reduction == SUM:
        smooth = smooth.sum()
    elif reduction == MEAN:
        if weight is None:
            total = ops.bitwise_not(ignored).sum()
        else:
            # the weights of the targets that count
            total = -ops.nll_loss_nd(
                _class_weights(weight, scores.ndim, dim).expand(scores.shape), target, None, SUM,
                ignore_index)
        smooth = smooth.sum() / total
    check_reduction("cross_entropy", reduction)
    smooth = smooth * (label_smoothing / scores.shape[dim])
    return nll * (1 - label_smoothing) + smooth
