"""Connectionist temporal classification: the likelihood of label sequences without alignment.

The note at the top of `formulas/ctc.py` says what is computed and names its parts.  Kernels work in
log space on all examples and states at once and loop over time.
"""

from __future__ import annotations

import math

from ..array import dtype as dt
from ..errors import DataDependentError, DTypeError, ShapeError
from ..table.packets import ops
from .kinds import Free, Keeping
from .layout import in_front
from .pointwise import refuse, title

# ---------------------------------------------------------------------------------------------
# Kernels


def _refuse_narrow(name, log_probs):
    refuse(name, log_probs, "biuc")
    if log_probs.dtype.itemsize == 2:
        raise NotImplementedError(f"\"{name}\" not implemented for '{title(log_probs.dtype)}'")


def _check(log_probs, targets, input_lengths, target_lengths, blank):
    steps, examples, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise ShapeError("blank must be in label range")
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if len(lengths) != examples:
            raise ShapeError(f"{name} must be of size batch_size")
        if any(n < 0 for n in lengths):
            raise ShapeError(f"Expected {name} to have value at least 0, but got value "
                             f"{min(lengths)}")
    if any(n > steps for n in input_lengths):
        raise ShapeError(f"Expected input_lengths to have value at most {steps}, but got value "
                         f"{max(input_lengths)} (while checking arguments for ctc_loss)")
    longest = max(target_lengths, default=0)
    if targets.ndim == 1:
        if targets.shape[0] != sum(target_lengths):
            raise ShapeError(f"Expected tensor to have size {sum(target_lengths)} at dimension 0, "
                             f"but got size {targets.shape[0]} for argument #2 'targets' (while "
                             "checking arguments for ctc_loss)")
    elif targets.shape[0] != examples or targets.shape[1] < longest:
        raise ShapeError(f"Expected tensor to have size at least {longest} at dimension 1, but got "
                         f"size {targets.shape[1]} for argument #2 'targets' (while checking "
                         "arguments for ctc_loss)")


def _path(xp, targets, target_lengths, blank, longest=None):
    """Labels of the states (N, S), which may be jumped to, and which belong to their example."""
    if longest is None:
        longest = max(target_lengths, default=0)
    lengths = xp.asarray(target_lengths, dtype=xp.int64).reshape(-1, 1)
    path = xp.full((len(target_lengths), 2 * longest + 1), blank, dtype=xp.int64)
    used = xp.arange(longest) < lengths
    if targets.ndim == 2:
        path[:, 1::2] = xp.where(used, targets[:, :longest], blank)
    else:
        start = xp.cumsum(lengths, axis=0) - lengths
        places = xp.where(used, start + xp.arange(longest), 0)
        labels = targets[places] if targets.size else xp.zeros_like(places)
        path[:, 1::2] = xp.where(used, labels, blank)
    jump = path != blank
    jump[:, 2:] &= path[:, 2:] != path[:, :-2]
    jump[:, :2] = False
    return path, jump, xp.arange(path.shape[1]) <= 2 * lengths


def _step(xp, before, jump):
    """Log-sum-exp over the three moves into each state."""
    new = before.copy()
    new[:, 1:] = xp.logaddexp(new[:, 1:], before[:, :-1])
    new[:, 2:] = xp.where(jump[:, 2:], xp.logaddexp(new[:, 2:], before[:, :-2]), new[:, 2:])
    return new


def _forward(xp, log_probs, path, jump, own, input_lengths):
    """Emissions (T, N, S) and a_t(s) as (N, T, S), minus infinity where it does not exist."""
    steps, examples, _ = log_probs.shape
    rows = xp.arange(examples)[:, None]
    emitted = log_probs[:, rows, path]
    lengths = xp.asarray(input_lengths, dtype=xp.int64)
    alpha = xp.full((examples, steps, path.shape[1]), -math.inf, dtype=log_probs.dtype)
    for t in range(steps):
        if t == 0:
            new = xp.where(own & (xp.arange(path.shape[1]) < 2), emitted[0], -math.inf)
        else:
            new = _step(xp, alpha[:, t - 1], jump) + emitted[t]
        alpha[:, t] = xp.where(own & (t < lengths)[:, None], new, -math.inf)
    return emitted, alpha


def _likelihood(xp, alpha, input_lengths, target_lengths):
    """Z of each example."""
    whole = []
    for n, (steps, labels) in enumerate(zip(input_lengths, target_lengths, strict=True)):
        if steps == 0:
            whole.append(0.0 if labels == 0 else -math.inf)
            continue
        end = alpha[n, steps - 1, 2 * labels]
        whole.append(xp.logaddexp(end, alpha[n, steps - 1, 2 * labels - 1]) if labels else end)
    return xp.asarray([float(w) for w in whole], dtype=alpha.dtype)


def _posteriors(xp, log_probs, emitted, alpha, path, jump, own, input_lengths, target_lengths,
                whole):
    """p, summed over the states of each label: (T, N, C); `whole` is Z."""
    steps, examples, _ = log_probs.shape
    lengths = xp.asarray(input_lengths, dtype=xp.int64)[:, None]
    ends = 2 * xp.asarray(target_lengths, dtype=xp.int64)[:, None]
    spot = xp.arange(path.shape[1])
    last = xp.where((spot == ends) | ((spot == ends - 1) & (ends > 0)), 0.0, -math.inf)
    last = last.astype(log_probs.dtype)
    flipped = xp.flip(jump, axis=1)
    jump_back = xp.zeros_like(jump)
    jump_back[:, 2:] = flipped[:, :-2]  # into a state from two states ahead
    rows = xp.broadcast_to(xp.arange(examples)[:, None], path.shape)
    out = xp.zeros(log_probs.shape, dtype=log_probs.dtype)
    after = last
    for t in reversed(range(steps)):
        both = xp.where(own, alpha[:, t] + after, -math.inf)
        top = both.max(axis=1, keepdims=True)
        top = xp.where(top == -math.inf, 0, top)
        xp.add.at(out[t], (rows, path), xp.exp(both - top))
        out[t] *= xp.exp(top - whole[:, None])
        through = xp.where(own, emitted[t] + after, -math.inf)
        new = xp.flip(_step(xp, xp.flip(through, axis=1), jump_back), axis=1)
        after = xp.where(t < lengths, new, last)
    return out


# ---------------------------------------------------------------------------------------------
# Batching: examples of the batch become further examples of the loss


def _fold_examples(value, batched, n, dim):
    """(n, ..., N, ...) with N on `dim` (counted without n) as (..., n N, ...)."""
    value = in_front(value, batched, n).movedim(0, dim)
    shape = list(value.shape)
    return value.reshape([*shape[:dim], n * shape[dim + 1], *shape[dim + 2:]])


def _unfold_examples(value, n, dim):
    shape = list(value.shape)
    value = value.reshape([*shape[:dim], n, shape[dim] // n, *shape[dim + 1:]])
    return value.movedim(dim, 0)


def _fold_targets(targets, batched, n):
    targets = in_front(targets, batched, n)
    return targets.reshape([n * targets.shape[1], *targets.shape[2:]])


def tangent_of_log_softmax(direction, flat):
    """A perturbation that keeps the probabilities of each step summing to one."""
    chance = flat[0].detach().exp().cpu().numpy()
    mean = (chance * direction).sum(axis=-1, keepdims=True) / chance.sum(axis=-1, keepdims=True)
    return direction - mean


# ---------------------------------------------------------------------------------------------
# Entries


class _ctc_loss(Keeping):
    """Minus the log likelihood of each target sequence, and the forward messages."""

    schema = ("_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths,"
              " int[] target_lengths, int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)")
    intensive = True
    kept = "kernel"
    dtype = "[log_probs.dtype, log_probs.dtype]"
    tags = ("dynamic_output_shape",)
    grad = {"log_probs": ("_ctc_loss_backward(grad, log_probs, targets, input_lengths,"
                          " target_lengths, result0, result1, blank, zero_infinity)")}
    push = {"result0": ("per_example(log_probs_t * _ctc_loss_backward(ones_like(result0),"
                        " log_probs_p, targets, input_lengths, target_lengths, result0, result1,"
                        " blank, zero_infinity))")}
    nondiff = ("targets",)
    diff_outputs = (True, False)
    structure = {"log_probs": tangent_of_log_softmax}
    method = False

    def run(xp, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity,
            longest=None):
        _refuse_narrow("ctc_loss_cpu", log_probs)
        if dt.name_of(targets.dtype) not in ("int32", "int64"):
            raise DTypeError("Expected tensor for argument #2 'targets' to have scalar type Int; "
                             f"but got {targets.dtype.name} instead (while checking arguments for "
                             "ctc_loss)")
        _check(log_probs, targets, input_lengths, target_lengths, blank)
        path, jump, own = _path(xp, targets, target_lengths, blank, longest)
        _, alpha = _forward(xp, log_probs, path, jump, own, input_lengths)
        return -_likelihood(xp, alpha, input_lengths, target_lengths), alpha

    def shape(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
        _check(log_probs, targets, input_lengths, target_lengths, blank)
        steps, examples, _ = log_probs.shape
        return [(examples,), (examples, steps, 2 * max(target_lengths, default=0) + 1)]

    def batch(n, batched, log_probs, targets, input_lengths, target_lengths, blank,
              zero_infinity):
        loss, alpha = ops._ctc_loss(
            _fold_examples(log_probs, batched[0], n, 1), _fold_targets(targets, batched[1], n),
            list(input_lengths) * n, list(target_lengths) * n, blank, zero_infinity)
        return _unfold_examples(loss, n, 0), _unfold_examples(alpha, n, 0)

    def samples(s):
        def scores(*shape):
            return s.real(*shape).log_softmax(2)

        padded = s.tensor([[1, 2, 0], [1, 1, 3]], dt.int64)
        yield s(scores(5, 2, 4), padded, [5, 4], [2, 3])
        yield s(scores(4, 2, 4), s.tensor([0, 2, 0, 0], dt.int64), [4, 3], [2, 2], 1)
        yield s(scores(4, 2, 3), s.tensor([[1, 2], [1, 1]], dt.int64), [4, 3], [2, 0], 0, True)


class _ctc_loss_backward(Keeping):
    """Gradient of _ctc_loss plus exp(log_probs), as the pullback of a log-softmax expects it."""

    schema = ("_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets,"
              " int[] input_lengths, int[] target_lengths, Tensor neg_log_likelihood,"
              " Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor")
    kept = "kernel"
    same_dtype = ("grad", "log_probs", "neg_log_likelihood", "log_alpha")
    # The likelihood and the messages follow log_probs: its formula is for all of them together.
    grad = {
        "grad": ("per_example(grads[-1] * _ctc_loss_backward(ones_like(neg_log_likelihood),"
                 " log_probs, targets, input_lengths, target_lengths, neg_log_likelihood,"
                 " log_alpha, blank, zero_infinity))"),
        "log_probs": ("ctc_second(grads[-1], grad, log_probs, targets, input_lengths,"
                      " target_lengths, neg_log_likelihood, blank, zero_infinity)"),
    }
    push = ("_ctc_loss_backward(grad_t, log_probs_p, targets, input_lengths, target_lengths,"
            " neg_log_likelihood, log_alpha, blank, zero_infinity) + ctc_second(log_probs_t,"
            " grad_p, log_probs_p, targets, input_lengths, target_lengths, neg_log_likelihood,"
            " blank, zero_infinity)")
    nondiff = ("targets", "neg_log_likelihood", "log_alpha")
    # a test that moved log_probs without the others would see half of the derivative; the whole is
    # tested as the second derivative of _ctc_loss
    structure = {"log_probs": lambda direction, flat: direction * 0}
    shape = "log_probs.shape"
    dtype = "log_probs.dtype"
    method = function = False

    def run(xp, grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood,
            log_alpha, blank, zero_infinity):
        _refuse_narrow("ctc_loss_backward_cpu", log_probs)
        path, jump, own = _path(xp, targets, target_lengths, blank, log_alpha.shape[2] // 2)
        rows = xp.arange(log_probs.shape[1])[:, None]
        emitted = log_probs[:, rows, path]
        chances = _posteriors(xp, log_probs, emitted, log_alpha, path, jump, own, input_lengths,
                              target_lengths, -neg_log_likelihood)
        out = (xp.exp(log_probs) - chances) * grad[:, None]
        dead = xp.arange(log_probs.shape[0])[:, None] >= xp.asarray(input_lengths, dtype=xp.int64)
        if zero_infinity:
            dead = dead | (neg_log_likelihood == math.inf)
        out[dead] = 0
        return out

    def batch(n, batched, grad, log_probs, targets, input_lengths, target_lengths,
              neg_log_likelihood, log_alpha, blank, zero_infinity):
        out = ops._ctc_loss_backward(
            _fold_examples(grad, batched[0], n, 0), _fold_examples(log_probs, batched[1], n, 1),
            _fold_targets(targets, batched[2], n), list(input_lengths) * n,
            list(target_lengths) * n, _fold_examples(neg_log_likelihood, batched[5], n, 0),
            _fold_examples(log_alpha, batched[6], n, 0), blank, zero_infinity)
        return _unfold_examples(out, n, 1)

    def samples(s):
        for case in _ctc_loss.samples(s):
            log_probs, targets, inputs, lengths, *rest = case.args
            blank, zero = (*rest, *(0, False)[len(rest):])
            loss, alpha = ops._ctc_loss(log_probs, targets, inputs, lengths, blank, zero)
            yield s(s.real(len(inputs)), log_probs, targets, inputs, lengths, loss, alpha, blank,
                    zero)


def _numbers(lengths, name):
    """Lengths in an array as a list."""
    if lengths.dtype.kind not in "iu":
        raise DTypeError(f"{name} must be integral")
    return lengths.reshape(-1).tolist()


class _ctc_loss_Tensor(Keeping):
    """_ctc_loss with lengths in tensors."""

    schema = ("_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths,"
              " Tensor target_lengths, int blank=0, bool zero_infinity=False)"
              " -> (Tensor, Tensor)")
    intensive = True
    kept = "kernel"
    dtype = "[log_probs.dtype, log_probs.dtype]"
    tags = ("dynamic_output_shape",)
    grad = _ctc_loss.grad
    push = _ctc_loss.push
    nondiff = ("targets", "input_lengths", "target_lengths")
    diff_outputs = (True, False)
    structure = {"log_probs": tangent_of_log_softmax}
    method = False

    def run(xp, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
        # padded targets say how many states to have, so that sizes do not depend on values
        longest = targets.shape[1] if targets.ndim == 2 else None
        return _ctc_loss.run(xp, log_probs, targets, _numbers(input_lengths, "input_lengths"),
                             _numbers(target_lengths, "target_lengths"), blank, zero_infinity,
                             longest)

    def shape(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
        if targets.ndim == 1:
            raise DataDependentError(
                "_ctc_loss: the size of its messages is the longest target length, which is not "
                "known of a captured or fake tensor. Fix: pass padded targets with 2 dims, or "
                "lengths as lists of numbers.")
        steps, examples, _ = log_probs.shape
        return [(examples,), (examples, steps, 2 * targets.shape[1] + 1)]

    def batch(n, batched, log_probs, targets, input_lengths, target_lengths, blank,
              zero_infinity):
        loss, alpha = ops._ctc_loss(
            _fold_examples(log_probs, batched[0], n, 1), _fold_targets(targets, batched[1], n),
            _fold_targets(input_lengths, batched[2], n),
            _fold_targets(target_lengths, batched[3], n), blank, zero_infinity)
        return _unfold_examples(loss, n, 0), _unfold_examples(alpha, n, 0)

    def samples(s):
        yield s(s.real(4, 2, 3).log_softmax(2), s.tensor([[1, 2], [1, 1]], dt.int64),
                s.tensor([4, 3], dt.int64), s.tensor([2, 1], dt.int64))


class _ctc_loss_backward_Tensor(_ctc_loss_backward):
    """_ctc_loss_backward with lengths in tensors."""

    schema = ("_ctc_loss_backward.Tensor(Tensor grad, Tensor log_probs, Tensor targets,"
              " Tensor input_lengths, Tensor target_lengths, Tensor neg_log_likelihood,"
              " Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor")
    nondiff = ("targets", "input_lengths", "target_lengths", "neg_log_likelihood", "log_alpha")

    def run(xp, grad, log_probs, targets, input_lengths, target_lengths, *rest):
        return _ctc_loss_backward.run(
            xp, grad, log_probs, targets, _numbers(input_lengths, "input_lengths"),
            _numbers(target_lengths, "target_lengths"), *rest)

    def batch(n, batched, grad, log_probs, targets, input_lengths, target_lengths,
              neg_log_likelihood, log_alpha, blank, zero_infinity):
        out = ops._ctc_loss_backward(
            _fold_examples(grad, batched[0], n, 0), _fold_examples(log_probs, batched[1], n, 1),
            _fold_targets(targets, batched[2], n), _fold_targets(input_lengths, batched[3], n),
            _fold_targets(target_lengths, batched[4], n),
            _fold_examples(neg_log_likelihood, batched[5], n, 0),
            _fold_examples(log_alpha, batched[6], n, 0), blank, zero_infinity)
        return _unfold_examples(out, n, 1)

    def samples(s):
        log_probs = s.real(4, 2, 3).log_softmax(2)
        targets = s.tensor([[1, 2], [1, 1]], dt.int64)
        lengths = s.tensor([4, 3], dt.int64), s.tensor([2, 1], dt.int64)
        loss, alpha = ops._ctc_loss(log_probs, targets, *lengths)
        yield s(s.real(2), log_probs, targets, *lengths, loss, alpha, 0)


def _loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    if log_probs.ndim not in (2, 3):
        raise ShapeError(f"log_probs must be 2-D or 3-D, got shape {list(log_probs.shape)}")
    single = log_probs.ndim == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
        if targets.ndim == 1:
            targets = targets.unsqueeze(0)
    loss = ops._ctc_loss(log_probs, targets, input_lengths, target_lengths, blank,
                         zero_infinity)[0]
    if zero_infinity:
        loss = ops.where(loss == math.inf, 0, loss)
    if reduction == 1:
        return (loss / _label_counts(target_lengths, loss)).mean()
    if reduction == 2:
        return loss.sum()
    return loss[0] if single else loss


def _label_counts(target_lengths, loss):
    """What each example's loss is divided by in a mean; a target without labels counts as one."""
    if isinstance(target_lengths, list):
        counts = [ops.full([1], float(max(n, 1)), dtype=loss.dtype, device=loss.device)
                  for n in target_lengths]
        return ops.cat(counts)
    return target_lengths.reshape([-1]).clamp(min=1).to(loss.device, loss.dtype)


class ctc_loss_IntList(Free):
    """Minus the log likelihood of target sequences, reduced; a mean is per label first."""

    schema = ("ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths,"
              " int[] target_lengths, int blank=0, int reduction=Mean, bool zero_infinity=False)"
              " -> Tensor")
    autocast = "float32"
    structure = {"log_probs": tangent_of_log_softmax}
    compose = _loss

    def samples(s):
        targets = s.tensor([[1, 2], [1, 1]], dt.int64)
        for reduction in (0, 1, 2):
            yield s(s.real(4, 2, 3).log_softmax(2), targets, [4, 3], [2, 1], 0, reduction)
        yield s(s.real(4, 2, 3).log_softmax(2), targets, [4, 2], [2, 2], 0, 2, True)  # too short
        yield s(s.real(4, 3).log_softmax(1), targets[0], [4], [2])


class ctc_loss_Tensor(Free):
    """ctc_loss with lengths in tensors."""

    schema = ("ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths,"
              " Tensor target_lengths, int blank=0, int reduction=Mean, bool zero_infinity=False)"
              " -> Tensor")
    autocast = "float32"
    structure = {"log_probs": tangent_of_log_softmax}

    def compose(log_probs, targets, input_lengths, target_lengths, blank, reduction,
                zero_infinity):
        for name, lengths in (("input_lengths", input_lengths),
                              ("target_lengths", target_lengths)):
            if lengths.dtype.category != 1:
                raise DTypeError(f"{name} must be integral")
        return _loss(log_probs, targets, input_lengths.reshape([-1]), target_lengths.reshape([-1]),
                     blank, reduction, zero_infinity)

    def samples(s):
        yield s(s.real(4, 2, 3).log_softmax(2), s.tensor([[1, 2], [1, 1]], dt.int64),
                s.tensor([4, 3], dt.int64), s.tensor([2, 1], dt.int64))
