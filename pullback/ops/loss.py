"""Loss functions: table entries and composites.

`reduction` is 0 (none), 1 (mean) or 2 (sum) down here; `nn/functional/` has the words.  Entries
have one kernel each for value and gradient; their decompositions are pointwise operators and a
reduction, which the native code generator fuses.  Longer formulas are in `formulas/loss.py`.
"""

from __future__ import annotations

from ..core.dims import broadcast_shapes, numel
from ..core.op import Composite, Op
from ..core.table import ops
from ..errors import DTypeError, RefusedValue, ShapeError
from ..formulas.loss import (
    bce_slope,
    class_dim,
    loss_scale,
    nll_terms,
    reduce_loss,
    weighted,
)
from .norm import narrowed, widened

NONE, MEAN, SUM = 0, 1, 2


# ---------------------------------------------------------------------------------------------
# Negative log likelihood


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
    if target.dtype.name not in ("int64", "uint8"):
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
    low, high = target.min(), target.max()
    if low <= ignore_index <= high:
        known = target != ignore_index
        target = xp.where(known, target, 0)
        low, high = target.min(), target.max()
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
        terms = terms.sum()
    if reduction == MEAN:
        terms = xp.divide(terms, total)  # nothing to count: NaN, as PyTorch
    return narrowed(xp.asarray(terms), self.dtype), narrowed(total, self.dtype)


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
    return (terms.sum() if reduction == SUM else terms.sum() / total), total


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
    return (out if reduction == SUM else out / total), total


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


class nll_loss_forward(Op):
    """Minus the entries of `self` at the target classes, weighted and reduced."""

    schema = ("nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction,"
              " SymInt ignore_index) -> (Tensor output, Tensor total_weight)")
    promote = "keep"
    grad = {"self": ("nll_loss_backward(grad, self, target, weight, reduction, ignore_index,"
                     " total_weight)")}
    push = {"output": "nll_loss_forward(self_t, target, weight, reduction, ignore_index)[0]"}
    nondiff = ("target",)
    diff_outputs = (True, False)
    cost = "reduce"
    method = False
    function = False

    def run(xp, self, target, weight, reduction, ignore_index):
        _check_nll(self, target, weight)
        return _nll_forward(xp, self, target, weight, reduction, ignore_index)

    def shape(self, target, weight, reduction, ignore_index):
        _check_nll(self, target, weight)
        return [tuple(self.shape[:-1]) if reduction == 0 else (), ()]

    def dtype(self, target, weight, reduction, ignore_index):
        return [self.dtype, self.dtype]

    batch = _batched_nll
    decomp = _decomposed_nll

    def samples(s):
        targets = s.int(3, low=0, high=4)
        for reduction in (0, 1, 2):
            yield s(s.real(3, 4), targets, None, reduction, -100)
            yield s(s.real(3, 4), targets, s.real(4, low=0.1, high=1), reduction, -100)
        yield s(s.real(3, 4), targets, None, 1, 1)
        yield s(s.real(4), s.int(low=0, high=4), None, 1, -100)
        yield s(s.real(4), s.int(low=0, high=4), None, 0, -100)
        yield s(s.real(0, 4), s.int(0, low=0, high=4), None, 2, -100)


class nll_loss_backward(Op):
    """Gradient of nll_loss: minus the (scaled) gradient at the target classes."""

    schema = ("nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight,"
              " int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor")
    promote = "keep"
    grad = {"grad_output": "nll_loss(grad, target, weight, reduction, ignore_index)"}
    push = ("nll_loss_backward(grad_output_t, self_p, target, weight, reduction, ignore_index,"
            " total_weight)")
    constant = ("self",)
    nondiff = ("target",)
    shape = "self.shape"
    dtype = "self.dtype"
    cost = "cheap"
    method = False
    function = False

    def run(xp, grad_output, self, target, weight, reduction, ignore_index, total_weight):
        _check_nll(self, target, weight)
        return _nll_backward(xp, grad_output, self, target, weight, reduction, ignore_index,
                             total_weight)

    batch = _batched_nll_backward
    decomp = _decomposed_nll_backward

    def samples(s):
        targets = s.int(3, low=0, high=4)
        total = s.values(3.0)
        yield s(s.real(), s.real(3, 4), targets, None, 1, -100, total)
        yield s(s.real(3), s.real(3, 4), targets, None, 0, -100, total)
        yield s(s.real(), s.real(3, 4), targets, s.values([0.3, 0.5, 0.7, 0.9]), 2, 1, total)
        yield s(s.real(), s.real(4), s.int(low=0, high=4), None, 1, -100, s.values(1.0))


class nll_loss2d_forward(Op):
    """nll_loss of images: classes on dim 1 of four."""

    schema = ("nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction,"
              " SymInt ignore_index) -> (Tensor output, Tensor total_weight)")
    promote = "keep"
    grad = {"self": ("nll_loss2d_backward(grad, self, target, weight, reduction, ignore_index,"
                     " total_weight)")}
    push = {"output": "nll_loss2d_forward(self_t, target, weight, reduction, ignore_index)[0]"}
    nondiff = ("target",)
    diff_outputs = (True, False)
    cost = "reduce"
    method = False
    function = False

    def run(xp, self, target, weight, reduction, ignore_index):
        _check_nll2d(self, target, weight)
        return _nll_forward(xp, self, target, weight, reduction, ignore_index)

    def shape(self, target, weight, reduction, ignore_index):
        _check_nll2d(self, target, weight)
        return [tuple(target.shape) if reduction == 0 else (), ()]

    def dtype(self, target, weight, reduction, ignore_index):
        return [self.dtype, self.dtype]

    batch = _batched_nll
    decomp = _decomposed_nll

    def samples(s):
        targets = s.int(2, 3, 2, low=0, high=4)
        for reduction in (0, 1, 2):
            yield s(s.real(2, 4, 3, 2), targets, s.real(4, low=0.1, high=1), reduction, -100)
        yield s(s.real(2, 4, 3, 2), targets, None, 1, 1)


class nll_loss2d_backward(Op):
    """Gradient of nll_loss2d."""

    schema = ("nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight,"
              " int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor")
    promote = "keep"
    grad = {"grad_output": "nll_loss2d(grad, target, weight, reduction, ignore_index)"}
    push = ("nll_loss2d_backward(grad_output_t, self_p, target, weight, reduction, ignore_index,"
            " total_weight)")
    constant = ("self",)
    nondiff = ("target",)
    shape = "self.shape"
    dtype = "self.dtype"
    cost = "cheap"
    method = False
    function = False

    def run(xp, grad_output, self, target, weight, reduction, ignore_index, total_weight):
        _check_nll2d(self, target, weight)
        return _nll_backward(xp, grad_output, self, target, weight, reduction, ignore_index,
                             total_weight)

    batch = _batched_nll_backward
    decomp = _decomposed_nll_backward

    def samples(s):
        targets = s.int(2, 3, 2, low=0, high=4)
        yield s(s.real(), s.real(2, 4, 3, 2), targets, None, 1, -100, s.values(12.0))
        yield s(s.real(2, 3, 2), s.real(2, 4, 3, 2), targets, None, 0, 1, s.values(12.0))


class nll_loss(Composite):
    """nll_loss_forward without the summed weight."""

    schema = ("nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean,"
              " SymInt ignore_index=-100) -> Tensor")
    method = False
    function = False

    def compose(self, target, weight, reduction, ignore_index):
        return ops.nll_loss_forward(self, target, weight, reduction, ignore_index)[0]

    def samples(s):
        yield s(s.real(3, 4), s.int(3, low=0, high=4))


class nll_loss2d(Composite):
    """nll_loss2d_forward without the summed weight."""

    schema = ("nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean,"
              " SymInt ignore_index=-100) -> Tensor")
    method = False
    function = False

    def compose(self, target, weight, reduction, ignore_index):
        return ops.nll_loss2d_forward(self, target, weight, reduction, ignore_index)[0]

    def samples(s):
        yield s(s.real(2, 4, 3, 2), s.int(2, 3, 2, low=0, high=4))


class nll_loss_nd(Composite):
    """Negative log likelihood with classes on dim 1 and any further dims."""

    schema = ("nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean,"
              " SymInt ignore_index=-100) -> Tensor")
    method = False
    function = False

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
    method = False
    function = False

    def compose(self, target, weight, reduction, ignore_index, label_smoothing):
        if label_smoothing > 1:
            raise RefusedValue("label_smoothing must be between 0.0 and 1.0. Got: "
                               f"{label_smoothing}")
        dim = class_dim(self.shape)
        if tuple(self.shape) == tuple(target.shape):
            if not target.dtype.is_floating_point:
                raise DTypeError("Expected floating point type for target with class probabilities,"
                                 f" got {target.dtype}")
            if ignore_index >= 0:
                raise ShapeError("ignore_index is not supported for floating point target")
            return _prob_cross_entropy(self, target, weight, reduction, label_smoothing, dim)
        scores = ops._log_softmax(self, dim, False)
        if label_smoothing > 0:
            return _smoothed(scores, target, weight, reduction, ignore_index, label_smoothing, dim)
        if self.ndim == 2 and target.ndim == 1 and self.shape[0] == target.shape[0]:
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
    count = numel(self.shape) // max(self.shape[dim], 1)
    return -terms.sum() / count


def _smoothed(scores, target, weight, reduction, ignore_index, label_smoothing, dim):
    nll = ops.nll_loss_nd(scores, target, weight, reduction, ignore_index)
    if weight is None:
        smooth = -scores.sum(dim)
    else:
        smooth = -(scores * _class_weights(weight, scores.ndim, dim)).sum(dim)
    ignored = target == ignore_index
    smooth = ops.where(ignored, 0.0, smooth)
    if reduction == SUM:
        smooth = smooth.sum()
    elif reduction == MEAN:
        if weight is None:
            total = ops.logical_not(ignored).sum()
        else:
            # the weights of the targets that count
            total = -ops.nll_loss_nd(
                _class_weights(weight, scores.ndim, dim).expand(scores.shape), target, None, SUM,
                ignore_index)
        smooth = smooth.sum() / total
    return nll * (1 - label_smoothing) + smooth * (label_smoothing / scores.shape[dim])


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
    return shape if reduction == NONE else ()


def _needs_float(name, self):
    if self.dtype.kind in "biu":
        raise NotImplementedError(f'"{name}" not implemented for \'{self.dtype.name}\'')


class mse_loss(Op):
    """Squared differences, reduced."""

    schema = "mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor"
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
        _needs_float("mse_cpu", self)
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
    out = ("castable",)
    promote = "default"
    grad = {
        "self": "smooth_l1_loss_backward(grad, self, target, reduction, beta)",
        "target": "smooth_l1_loss_backward(grad, target, self, reduction, beta)",
    }
    push = ("reduce_loss(smooth_l1_slope(self_p - target_p, beta) * (self_t - target_t),"
            " reduction)")
    cost = "reduce"
    method = False
    function = False

    def run(xp, self, target, reduction, beta):
        _needs_float("smooth_l1_cpu", self)
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
    promote = "default"
    grad = {
        "grad_output": ("grad * smooth_l1_slope(self - target, beta)"
                        " * loss_scale(reduction, self.shape, target.shape)"),
        "self": ("grad * grad_output * smooth_l1_curvature(self - target, beta)"
                 " * loss_scale(reduction, self.shape, target.shape)"),
        "target": ("-grad * grad_output * smooth_l1_curvature(self - target, beta)"
                   " * loss_scale(reduction, self.shape, target.shape)"),
    }
    push = ("(grad_output_t * smooth_l1_slope(self_p - target_p, beta) + grad_output_p"
            " * smooth_l1_curvature(self_p - target_p, beta) * (self_t - target_t))"
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
    out = ("castable",)
    promote = "default"
    grad = {
        "self": "huber_loss_backward(grad, self, target, reduction, delta)",
        "target": "huber_loss_backward(grad, target, self, reduction, delta)",
    }
    push = "reduce_loss((self_p - target_p).clamp(-delta, delta) * (self_t - target_t), reduction)"
    cost = "reduce"
    method = False
    function = False

    def run(xp, self, target, reduction, delta):
        _needs_float("huber_cpu", self)
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
        return reduce_loss(terms, reduction)

    def samples(s):
        for reduction in (0, 1, 2):
            yield s(s.real(3, 4), s.real(3, 4), reduction)
        yield s(s.real(3, 4), s.real(3, 4), 1, 0.5)
        yield s(s.real(3, 4), s.real(4), 1, 2.0)


class huber_loss_backward(Op):
    """Gradient of huber_loss."""

    schema = ("huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction,"
              " float delta) -> Tensor")
    promote = "default"
    grad = {
        "grad_output": ("grad * (self - target).clamp(-delta, delta)"
                        " * loss_scale(reduction, self.shape, target.shape)"),
        "self": ("grad * grad_output * huber_curvature(self - target, delta)"
                 " * loss_scale(reduction, self.shape, target.shape)"),
        "target": ("-grad * grad_output * huber_curvature(self - target, delta)"
                   " * loss_scale(reduction, self.shape, target.shape)"),
    }
    push = ("(grad_output_t * (self_p - target_p).clamp(-delta, delta) + grad_output_p"
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
        _needs_float("binary_cross_entropy", self)
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
        return bce_slope(self, target, weight) * scale

    def samples(s):
        def chance():
            return s.real(3, 4, low=0.1, high=0.9)

        yield s(s.real(3, 4), chance(), chance(), None, 0)
        yield s(s.real(), chance(), chance(), chance(), 1)
        yield s(s.real(), chance(), chance(), None, 2)


class binary_cross_entropy_with_logits(Op):
    """Cross entropy between sigmoid(self) and targets, stable for any logit, reduced."""

    schema = ("binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None,"
              " Tensor? pos_weight=None, int reduction=Mean) -> Tensor")
    promote = "default"
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
        _needs_float("binary_cross_entropy_with_logits", self)
        x, t = widened(xp, self), widened(xp, target)
        soft = xp.log1p(xp.exp(-xp.abs(x))) + xp.maximum(-x, 0)  # -log(sigmoid(x))
        if pos_weight is None:
            terms = (1 - t) * x + soft
        else:
            terms = (1 - t) * x + (1 + (widened(xp, pos_weight) - 1) * t) * soft
        if weight is not None:
            terms = terms * widened(xp, weight)
        return loss_value(xp, terms, reduction, self.dtype)

    def shape(self, target, weight, pos_weight, reduction):
        return loss_shape(self, target, reduction)

    def batch(n, batched, self, target, weight, pos_weight, reduction):
        tensors = self, target, weight, pos_weight
        (x, *others), shape = _batched_with_weights(n, batched[:4], tensors)
        terms = ops.binary_cross_entropy_with_logits(x.expand([n, *shape]), *others, NONE)
        return reduce_loss(terms, reduction, keep=1)

    def decomp(self, target, weight, pos_weight, reduction):
        terms = _logits_terms(self, target, weight, pos_weight)
        return reduce_loss(terms, reduction)

    def samples(s):
        for reduction in (0, 1, 2):
            yield s(s.real(3, 4), s.real(3, 4, low=0.1, high=0.9), None, None, reduction)
        yield s(s.real(3, 4), s.real(3, 4, low=0.1, high=0.9), s.real(4, low=0.1, high=1),
                s.real(4, low=0.1, high=2), 1)


class kl_div(Composite):
    """Divergence of `target` from the distribution whose logarithm is `self`, reduced."""

    schema = ("kl_div(Tensor self, Tensor target, int reduction=Mean, *, bool log_target=False)"
              " -> Tensor")
    method = False

    def compose(self, target, reduction, log_target):
        if log_target:
            terms = target.exp() * (target - self)
        else:
            terms = ops.xlogy(target, target) - target * self
        return reduce_loss(terms, reduction)

    def samples(s):
        for reduction in (0, 1, 2):
            yield s(s.real(3, 4), s.real(3, 4, low=0.1, high=1), reduction)
        yield s(s.real(3, 4), s.real(3, 4), 1, log_target=True)
