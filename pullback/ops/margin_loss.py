"""Losses with a margin, of classes and of distances, and the distances that they are made of.

`reduction` is 0 (none), 1 (mean) or 2 (sum) as in `ops/loss.py` and `ops/regression.py`, where the
common losses are.
Longer formulas are in `formulas/loss.py`; the alignment loss of sequences is in `ops/ctc.py`.
"""

from __future__ import annotations

from ..array import dtype as dt
from ..array.dims import broadcast_shapes
from ..core.overload import overload
from ..errors import DTypeError, ShapeError
from ..formulas.loss import (
    loss_scale,
    margin_gaps,
    margin_scale,
    minus_own,
    or_sum,
    reduce_loss,
    rows_of_classes,
    soft_margin_slope,
)
from ..table.packets import ops
from .kinds import FirstResult, Free, Keeping
from .loss import MEAN, NONE
from .norm import narrowed, widened
from .pointwise import refuse, title
from .regression import Loss, LossBackward, loss_shape, loss_value, scaled

# ---------------------------------------------------------------------------------------------
# Logistic margin


class soft_margin_loss(Loss):
    """log(1 + exp(-target * x)), reduced."""

    schema = "soft_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor"
    promote = "default"
    grad = {"self": "soft_margin_loss_backward(grad, self, target, reduction)"}
    push = "reduce_loss(soft_margin_slope(self_p, target) * self_t, or_sum(reduction))"

    def run(xp, self, target, reduction):
        _refuse_integers(self)
        x, t = widened(xp, self), widened(xp, target)
        return loss_value(xp, xp.logaddexp(0, -x * t), or_sum(reduction), self.dtype)

    def shape(self, target, reduction):
        return loss_shape(self, target, or_sum(reduction))

    def decomp(self, target, reduction):
        return reduce_loss(-ops.log_sigmoid(self * target), or_sum(reduction))

    def samples(s):
        for reduction in (0, 1, 2):
            yield s(s.real(3, 4), _signs(s, 3, 4), reduction)
        yield s(s.real(3, 1), _signs(s, 4), 1)
        yield s(s.real(), _signs(s))
        yield s(s.real(0, 2), _signs(s, 0, 2), 2)


def _signs(s, *shape):
    return s.bool(*shape).to(s.real().dtype) * 2 - 1


def _refuse_integers(self):
    if self.dtype.kind in "biu":
        raise DTypeError(f"result type Float can't be cast to the desired output type "
                         f"{title(self.dtype)}")


class soft_margin_loss_backward(LossBackward):
    """Gradient of soft_margin_loss."""

    complex = None
    schema = ("soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target,"
              " int reduction) -> Tensor")
    promote = "default"
    grad = {
        "grad_output": scaled("grad * soft_margin_slope(self, target)"),
        "self": scaled("grad * grad_output * soft_margin_curvature(self, target)"),
    }
    push = ("(grad_output_t * soft_margin_slope(self_p, target)"
            " + grad_output_p * soft_margin_curvature(self_p, target) * self_t)"
            " * loss_scale(reduction, self_p.shape, target.shape)")

    def run(xp, grad_output, self, target, reduction):
        g, x, t = widened(xp, grad_output), widened(xp, self), widened(xp, target)
        scale = g * loss_scale(reduction, x.shape, t.shape)
        return narrowed(-t / (1 + xp.exp(x * t)) * scale, self.dtype)

    def decomp(grad_output, self, target, reduction):
        scale = grad_output * loss_scale(reduction, self.shape, target.shape)
        return soft_margin_slope(self, target) * scale

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 4), _signs(s, 3, 4), 0)
        yield s(s.real(), s.real(3, 4), _signs(s, 3, 4), 1)
        yield s(s.real(), s.real(3, 4), _signs(s, 3, 4), 2)


# ---------------------------------------------------------------------------------------------
# One class against the others


def _check_multi(self, target, p, weight):
    """Shapes of multi_margin_loss: (C), () or (N, C), (N)."""
    if p not in (1, 2):
        raise ShapeError("only p == 1 and p == 2 supported")
    shape = list(self.shape)
    if len(shape) > 2 or (shape[-1:] == [0]):
        raise ShapeError("Expected non-empty vector or matrix with optional 0-dim batch size, but "
                         f"got: {shape}")
    examples = shape[0] if len(shape) == 2 else 1
    if target.ndim > 1 or target.numel() != examples:
        raise ShapeError("multi_margin_loss: target tensor should be 1-D with size equal to the "
                         f"number of input samples (batch size). Expected target size [{examples}]"
                         f", but got {list(target.shape)}. Input has shape {shape}.")
    classes = shape[-1] if shape else 1
    if weight is not None and (weight.ndim > 1 or weight.numel() != classes):
        raise ShapeError(f"inconsistent weight size, expected {classes} but got "
                         f"{list(weight.shape)}")
    if target.dtype is not dt.int64:
        raise DTypeError(f"expected scalar type Long but found {title(target.dtype)}")


class _Facts:
    """Shape and dtype of an array, in the words of shape rules."""

    def __init__(self, array):
        self.shape, self.ndim, self.dtype = array.shape, array.ndim, dt.of(array.dtype)
        self.numel = lambda: array.size


def _multi_rows(xp, self, target, p, margin, weight, name):
    """Positive gaps of each row (zero at the target), the targets, and the rows' weights."""
    refuse(name, self, "biuc")
    _check_multi(_Facts(self), _Facts(target), p, None if weight is None else _Facts(weight))
    x = widened(xp, self).reshape((-1, self.shape[-1]) if self.ndim == 2 else (1, -1))
    t = target.reshape(-1)
    if t.size and (t.min() < 0 or t.max() >= x.shape[1]):
        raise ShapeError("target out of range")
    rows = xp.arange(t.size)
    gaps = margin - x[rows, t][:, None] + x
    gaps = xp.where(gaps > 0, gaps, 0)  # NaN is no gap
    gaps[rows, t] = 0
    scale = 1 / x.shape[1] if weight is None else (
        widened(xp, weight).reshape(-1)[t][:, None] / x.shape[1])
    return gaps, rows, t, scale


class ClassLoss(Keeping):
    """A loss of the score of every class, beside that of the target classes."""

    bad_index = RuntimeError
    autocast = "float32"
    nondiff = ("target",)
    cost = "reduce"
    method = function = False


class ClassLossBackward(Keeping):
    """The gradient of such a loss."""

    bad_index = RuntimeError
    nondiff = ("target",)
    shape = "self.shape"
    dtype = "self.dtype"
    cost = "cheap"
    method = function = False


class multi_margin_loss(ClassLoss):
    """Sum of max(0, margin - x_y + x_j)^p over the classes j, divided by their number, reduced."""

    schema = ("multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1,"
              " Tensor? weight=None, int reduction=Mean) -> Tensor")
    grad = {"self": "multi_margin_loss_backward(grad, self, target, p, margin, weight, reduction)"}
    push = ("per_row(self_t * multi_margin_loss_backward(ones_like(result), self_p, target, p,"
            " margin, weight, reduction), reduction, result.shape)")
    dtype = "self.dtype"

    def run(xp, self, target, p, margin, weight, reduction):
        gaps, _, _, scale = _multi_rows(xp, self, target, p, margin, weight,
                                        "multi_margin_loss_cpu")
        terms = ((gaps if p == 1 else gaps * gaps) * scale).sum(axis=1)
        if reduction == NONE:
            return narrowed(terms.reshape(target.shape), self.dtype)
        return loss_value(xp, terms, or_sum(reduction), self.dtype)

    def shape(self, target, p, margin, weight, reduction):
        _check_multi(self, target, p, weight)
        return tuple(target.shape) if reduction == NONE else ()

    def decomp(self, target, p, margin, weight, reduction):
        _check_multi(self, target, p, weight)
        rows = rows_of_classes(self)
        gaps = margin_gaps(rows, target, margin)[0]
        gaps = ops.where(gaps > 0, gaps, 0)
        terms = (gaps if p == 1 else gaps * gaps).sum(1) / rows.shape[1]
        if weight is not None:
            terms = terms * ops.gather(weight.reshape([-1]), 0, target.reshape([-1]))
        return reduce_loss(terms, or_sum(reduction)) if reduction else terms.reshape(target.shape)

    def samples(s):
        target = s.int(3, high=4)
        for p in (1, 2):
            for reduction in (0, 1, 2):
                yield s(s.real(3, 4), target, p, 1.2, None, reduction)
            yield s(s.real(3, 4), target, p, 0.7, s.values([0.3, 0.5, 0.7, 0.9]), 1)
            yield s(s.real(4), s.int(high=4), p, 1.2, None, 0)


class multi_margin_loss_backward(ClassLossBackward):
    """Gradient of multi_margin_loss."""

    schema = ("multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p,"
              " Scalar margin, Tensor? weight=None, int reduction=Mean) -> Tensor")
    same_dtype = ("grad_output", "self", "weight")
    grad = {
        "grad_output": ("per_row(grad * multi_margin_loss_backward(ones_like(grad_output), self,"
                        " target, p, margin, weight, reduction), reduction, grad_output.shape)"),
        "self": ("multi_margin_second(grad, grad_output, self, target, p, margin, weight,"
                 " reduction)"),
    }
    push = ("multi_margin_loss_backward(grad_output_t, self_p, target, p, margin, weight,"
            " reduction) + multi_margin_second(self_t, grad_output_p, self_p, target, p, margin,"
            " weight, reduction)")

    def run(xp, grad_output, self, target, p, margin, weight, reduction):
        gaps, rows, t, scale = _multi_rows(xp, self, target, p, margin, weight,
                                           "multi_margin_loss_backward_cpu")
        g = widened(xp, grad_output)
        scale = scale * (g.reshape(-1, 1) if reduction == NONE else g)
        if reduction == MEAN:
            scale = scale / max(len(rows), 1)
        out = xp.where(gaps > 0, (1 if p == 1 else 2 * gaps) * scale, 0)
        out[rows, t] = -out.sum(axis=1)
        return narrowed(out, self.dtype).reshape(self.shape)

    def decomp(grad_output, self, target, p, margin, weight, reduction):
        gaps, other = margin_gaps(rows_of_classes(self), target, margin)
        kept = (gaps > 0).logical_not()  # a margin that holds counts nothing, whatever comes in
        slopes = (ops.ones_like(gaps) if p == 1 else 2 * gaps).masked_fill(kept, 0)
        scale = margin_scale(grad_output, self, target, weight, reduction)
        slopes = (slopes * scale).masked_fill(kept, 0)
        return minus_own(slopes, other).reshape(self.shape).to(self.dtype)

    def samples(s):
        target = s.int(3, high=4)
        for p in (1, 2):
            yield s(s.real(3), s.real(3, 4), target, p, 1.2, None, 0)
            yield s(s.real(), s.real(3, 4), target, p, 0.7, s.values([0.3, 0.5, 0.7, 0.9]), 1)
            yield s(s.real(), s.real(4), s.int(high=4), p, 1.2, None, 2)


# ---------------------------------------------------------------------------------------------
# Several classes against the others


def _check_multilabel(self, target):
    shape, given = list(self.shape), list(target.shape)
    if len(shape) > 2 or shape[-1:] == [0]:
        raise ShapeError("Expected non-empty vector or matrix with optional 0-dim batch size, but "
                         f"got: {shape}")
    if (shape or [1]) != (given or [1]):
        raise ShapeError(f"inconsistent target size: {given} for input of size: {shape}")
    if target.dtype is not dt.int64:
        raise DTypeError(f"expected scalar type Long but found {title(target.dtype)}")


def _labels(xp, self, target, name):
    """Rows of scores, rows of labels, which labels count (up to the first -1), label marks."""
    refuse(name, self, "biuc")
    _check_multilabel(_Facts(self), _Facts(target))
    x = widened(xp, self).reshape((-1, self.shape[-1]) if self.ndim == 2 else (1, -1))
    t = target.reshape(x.shape)
    if t.size and (t.min() < -1 or t.max() >= x.shape[1]):
        raise ShapeError("argument #2 'target' is out of range")
    counts = xp.cumprod(t >= 0, axis=1).astype(bool)
    marks = xp.zeros(x.shape, dtype=bool)
    rows = xp.broadcast_to(xp.arange(len(t))[:, None], t.shape)
    marks[rows[counts], t[counts]] = True
    return x, t, counts, marks


def _label_gaps(xp, x, t, counts, marks):
    """For each label in turn: the rows that have it, their label, positive gaps to the others."""
    for k in range(int(counts.sum(axis=1).max()) if counts.size else 0):
        rows = xp.nonzero(counts[:, k])[0]
        own = t[rows, k]
        gaps = 1 - x[rows, own][:, None] + x[rows]
        gaps = xp.where(gaps > 0, gaps, 0)  # NaN is no gap
        gaps[marks[rows]] = 0
        yield rows, own, gaps


class multilabel_margin_loss_forward(ClassLoss):
    """Sum of max(0, 1 - x_y + x_j) over labels y and classes j that are none; also the labels."""

    schema = ("multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction)"
              " -> (Tensor output, Tensor is_target)")
    trusts = "values"
    grad = {"self": "multilabel_margin_loss_backward(grad, self, target, reduction, is_target)"}
    push = {"output": ("per_row(self_t * multilabel_margin_loss_backward(ones_like(output), self_p,"
                       " target, reduction, is_target), reduction, output.shape)")}
    diff_outputs = (True, False)

    def run(xp, self, target, reduction):
        x, t, counts, marks = _labels(xp, self, target, "multilabel_margin_loss_forward_out_cpu")
        terms = xp.zeros(len(x), dtype=x.dtype)
        for rows, _, gaps in _label_gaps(xp, x, t, counts, marks):
            terms[rows] += gaps.sum(axis=1)
        terms /= x.shape[1]
        marks = marks.astype(self.dtype).reshape(target.shape)
        if reduction == NONE:
            return narrowed(terms.reshape(self.shape[:-1]), self.dtype), marks
        return loss_value(xp, terms, or_sum(reduction), self.dtype), marks

    def shape(self, target, reduction):
        _check_multilabel(self, target)
        return [tuple(self.shape[:-1]) if reduction == NONE else (), tuple(target.shape)]

    def dtype(self, target, reduction):
        return [self.dtype, self.dtype]

    def batch(n, batched, self, target, reduction):
        x, t = (v if b else v.expand([n, *v.shape]) for v, b in zip((self, target), batched))
        if n:
            _check_multilabel(x[0], t[0])
        rows = [-1, x.shape[-1] if x.ndim > 1 else 1]
        terms, marks = ops.multilabel_margin_loss_forward(x.reshape(rows), t.reshape(rows), NONE)
        terms = terms.reshape(x.shape[:-1] if x.ndim > 1 else x.shape)
        if reduction:
            terms = reduce_loss(terms, or_sum(reduction), keep=1)
        return terms, marks.reshape(t.shape)

    def decomp(self, target, reduction):
        _check_multilabel(self, target)
        rows, labels = rows_of_classes(self), rows_of_classes(target)
        counts = (labels >= 0).to(dt.int64).cumprod(1) > 0
        marks = _label_marks(labels, counts)
        gaps = _all_gaps(rows, labels, counts, marks)
        gaps = ops.where(gaps > 0, gaps, 0)
        terms = gaps.sum([1, 2]) / rows.shape[1]
        out = reduce_loss(terms, or_sum(reduction)) if reduction else terms.reshape(self.shape[:-1])
        return out, marks.to(self.dtype).reshape(target.shape)

    def samples(s):
        target = s.tensor([[0, 2, -1, 1], [1, -1, 0, 3], [3, 2, 1, -1]], dt.int64)
        for reduction in (0, 1, 2):
            yield s(s.real(3, 4), target, reduction)
        yield s(s.real(4), target[0], 0)


def _label_marks(labels, counts):
    classes = ops.arange(labels.shape[1], device=labels.device)
    return ((labels.unsqueeze(2) == classes) & counts.unsqueeze(2)).any(1)


def _all_gaps(rows, labels, counts, marks):
    """1 - x_y + x_j for each label y and class j; zero where one of them does not count."""
    own = ops.gather(rows, 1, ops.where(counts, labels, 0))
    gaps = 1 - own.unsqueeze(2) + rows.unsqueeze(1)
    return ops.where(counts.unsqueeze(2) & marks.logical_not().unsqueeze(1), gaps, 0)


class multilabel_margin_loss_backward(ClassLossBackward):
    """Gradient of multilabel_margin_loss."""

    schema = ("multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target,"
              " int reduction, Tensor is_target) -> Tensor")
    same_dtype = ("grad_output", "self", "is_target")
    grad = {"grad_output": (
        "per_row(grad * multilabel_margin_loss_backward(ones_like(grad_output), self, target,"
        " reduction, is_target), reduction, grad_output.shape)")}
    push = ("multilabel_margin_loss_backward(grad_output_t, self_p, target, reduction, is_target)"
            " + zeros_like(self_t)")
    constant = ("self",)
    nondiff = ("target", "is_target")
    trusts = True

    def run(xp, grad_output, self, target, reduction, is_target):
        x, t, counts, marks = _labels(xp, self, target, "multilabel_margin_loss_backward_cpu")
        out = xp.zeros(x.shape, dtype=x.dtype)
        for rows, own, gaps in _label_gaps(xp, x, t, counts, marks):
            active = (gaps > 0).astype(x.dtype)
            active[xp.arange(len(rows)), own] -= active.sum(axis=1)
            out[rows] += active
        g = widened(xp, grad_output) / x.shape[1]
        if reduction == MEAN:
            g = g / max(len(x), 1)
        out *= g.reshape(-1, 1) if reduction == NONE else g
        return narrowed(out, self.dtype).reshape(self.shape)

    def decomp(grad_output, self, target, reduction, is_target):
        rows, labels = rows_of_classes(self), rows_of_classes(target)
        counts = (labels >= 0).to(dt.int64).cumprod(1) > 0
        marks = _label_marks(labels, counts)
        active = (_all_gaps(rows, labels, counts, marks) > 0).to(self.dtype)
        classes = ops.arange(rows.shape[1], device=rows.device)
        at_label = (labels.unsqueeze(2) == classes).to(self.dtype)
        out = active.sum(1) - (active.sum(2, True) * at_label).sum(1)
        scale = grad_output.reshape([-1, 1]) if reduction == NONE else grad_output
        scale = scale / (rows.shape[1] * (rows.shape[0] if reduction == MEAN else 1))
        return (out * scale).reshape(self.shape).to(self.dtype)

    def samples(s):
        target = s.tensor([[0, 2, -1, 1], [1, -1, 0, 3], [3, 2, 1, -1]], dt.int64)
        marks = s.values([[1, 0, 1, 0], [0, 1, 0, 0], [0, 1, 1, 1]])
        yield s(s.real(3), s.real(3, 4), target, 0, marks)
        yield s(s.real(), s.real(3, 4), target, 1, marks)
        yield s(s.real(), s.real(4), target[0], 2, marks[0])


class multilabel_margin_loss(FirstResult):
    """multilabel_margin_loss_forward without the label marks."""

    schema = "multilabel_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor"
    autocast = "float32"
    method = function = False
    first_of = "multilabel_margin_loss_forward"

    samples = lambda s: [s(s.real(2, 4), s.tensor([[0, 2, -1, 1], [1, -1, 0, 3]], dt.int64))]


# ---------------------------------------------------------------------------------------------
# Distances


def _floored(value, floor):
    """At least `floor`, with the derivative of `value` itself."""
    return value + (value.clamp(min=floor) - value).detach()


class cosine_similarity(Free):
    """Cosine of the angle between vectors along `dim`."""

    schema = "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor"

    def compose(x1, x2, dim, eps):
        common = dt.promote_types(x1.dtype, x2.dtype)  # 0-d tensors count as all others here
        if not common.is_floating_point:
            raise DTypeError("expected common dtype to be floating point, yet common dtype is "
                             f"{title(common)}")
        shape = broadcast_shapes(x1.shape, x2.shape)
        unit = []
        for x in (x1, x2):
            x = x.to(common).expand(shape)
            unit.append(x / _floored(ops.linalg_vector_norm(x, 2, [dim], True), eps))
        return (unit[0] * unit[1]).sum(dim)

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 4))
        yield s(s.real(3, 4), s.real(4), 0)
        yield s(s.real(2, 3, 4), s.real(2, 3, 4), -1)


class pairwise_distance(Free):
    """p-norm of the difference of vectors along the last dim."""

    schema = ("pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=1e-06,"
              " bool keepdim=False) -> Tensor")

    def compose(x1, x2, p, eps, keepdim):
        offset = x1 - x2 + eps
        return overload("norm.ScalarOpt_dim")(offset, float(p), [offset.ndim - 1], keepdim)

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 4))
        yield s(s.real(3, 4), s.real(4), 1.0, 1e-6, True)
        yield s(s.real(4), s.real(4), 3.0)


class cosine_embedding_loss(Free):
    """1 - cosine where the target is 1, max(0, cosine - margin) where it is -1, reduced."""

    schema = ("cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.,"
              " int reduction=Mean) -> Tensor")
    autocast = "float32"

    def compose(input1, input2, target, margin, reduction):
        dim = target.ndim
        if dim > 1:
            raise ShapeError("0D or 1D target tensor expected, multi-target not supported")
        if input1.ndim != dim + 1 or input2.ndim != dim + 1:
            raise ShapeError(f"{dim}D target tensor expects {dim + 1}D input tensors, but found "
                             f"inputs with sizes {list(input1.shape)} and {list(input2.shape)}.")
        guard = 1e-12  # keeps the squared norms of this loss from zero
        dot = (input1 * input2).sum(dim)
        size = ((input1 * input1).sum(dim) + guard) * ((input2 * input2).sum(dim) + guard)
        cosine = dot / size.sqrt()
        zeros = ops.zeros_like(cosine)
        terms = (ops.where(target == 1, 1 - cosine, zeros)
                 + ops.where(target == -1, (cosine - margin).clamp(min=0), zeros))
        return reduce_loss(terms, reduction)

    def samples(s):
        target = s.tensor([1, -1, 1], dt.int64)
        for reduction in (0, 1, 2):
            yield s(s.real(3, 4), s.real(3, 4), target, 0.1, reduction)
        yield s(s.real(4), s.real(4), target[0])


class hinge_embedding_loss(Free):
    """x where the target is 1, max(0, margin - x) where it is -1, reduced."""

    schema = ("hinge_embedding_loss(Tensor self, Tensor target, float margin=1.,"
              " int reduction=Mean) -> Tensor")
    autocast = "float32"

    def compose(self, target, margin, reduction):
        zeros = ops.zeros_like(self)
        near = ops.where(target != 1, (margin - self).clamp(min=0), zeros)
        return reduce_loss(near + ops.where(target != -1, self, zeros), reduction)

    def samples(s):
        for reduction in (0, 1, 2):
            yield s(s.real(3, 4), s.bool(3, 4).to(dt.int64) * 2 - 1, 1.3, reduction)


class margin_ranking_loss(Free):
    """max(0, margin - target * (input1 - input2)), reduced."""

    schema = ("margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.,"
              " int reduction=Mean) -> Tensor")
    autocast = "float32"

    def compose(input1, input2, target, margin, reduction):
        return reduce_loss((-target * (input1 - input2) + margin).clamp(min=0), reduction)

    def samples(s):
        for reduction in (0, 1, 2):
            yield s(s.real(4), s.real(4), s.bool(4).to(dt.int64) * 2 - 1, 0.1, reduction)


class triplet_margin_loss(Free):
    """max(0, distance to the positive - distance to the negative + margin), reduced."""

    schema = ("triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative,"
              " float margin=1., float p=2., float eps=1e-06, bool swap=False,"
              " int reduction=Mean) -> Tensor")
    autocast = "float32"

    def compose(anchor, positive, negative, margin, p, eps, swap, reduction):
        if not anchor.ndim == positive.ndim == negative.ndim:
            raise ShapeError("The anchor, positive, and negative tensors are expected to have the "
                             f"same number of dimensions, but got: anchor {anchor.ndim}D, positive "
                             f"{positive.ndim}D, and negative {negative.ndim}D inputs")
        near = ops.pairwise_distance(anchor, positive, p, eps)
        far = ops.pairwise_distance(anchor, negative, p, eps)
        if swap:
            far = ops.minimum(far, ops.pairwise_distance(positive, negative, p, eps))
        return reduce_loss(ops.clamp_min(margin + near - far, 0), reduction)

    def samples(s):
        for reduction in (0, 1, 2):
            yield s(s.real(3, 4), s.real(3, 4), s.real(3, 4), 1.0, 2.0, 1e-6, False, reduction)
        yield s(s.real(3, 4), s.real(3, 4), s.real(3, 4), 3.0, 2.0, 1e-6, True)
