"""The likelihood of label sequences under the names that vendors' libraries gave it.

They compute the gradient together with the loss: it is the second result, as the pullback of a
log-softmax expects it, and carries no history itself.  Sequences that no alignment fits have an
infinite loss; `zero_infinity` makes it and its gradient zero.  Read next: `ctc.py`.
"""

from __future__ import annotations

import math

from ..array import dtype as dt
from ..table.packets import ops
from .ctc import tangent_of_log_softmax
from .kinds import Free


class VendorCTC(Free):
    """Minus the log likelihood of each target sequence, and its gradient for log_probs."""

    structure = {"log_probs": tangent_of_log_softmax}

    @classmethod
    def compose(cls, log_probs, targets, input_lengths, target_lengths, blank, deterministic,
                zero_infinity):
        case = targets, input_lengths, target_lengths
        loss, alpha = ops._ctc_loss(log_probs, *case, blank, zero_infinity)
        fixed = loss.detach()
        grad = ops._ctc_loss_backward(ops.ones_like(fixed), log_probs.detach(), *case, fixed,
                                      alpha.detach(), blank, zero_infinity)
        if zero_infinity:
            loss = ops.where(loss == math.inf, 0, loss)
        return loss, grad


def cases(s):
    """Arguments of a call, and the lengths as numbers."""
    yield (s.real(5, 2, 4).log_softmax(2), s.tensor([[1, 2, 0], [1, 1, 3]], dt.int64),
           [5, 4], [2, 3], 0, True, False)
    yield (s.real(4, 2, 4).log_softmax(2), s.tensor([0, 2, 0, 0], dt.int64), [4, 3], [2, 2], 1,
           False, False)
    yield (s.real(4, 2, 3).log_softmax(2), s.tensor([[1, 2], [1, 1]], dt.int64), [4, 2], [2, 2],
           0, True, True)  # the second is too short


def _with_numbers(s):
    for case in cases(s):
        yield s(*case)


def with_tensors(s):
    for log_probs, targets, inputs, lengths, *rest in cases(s):
        if targets.ndim == 1:
            continue  # what is captured cannot tell how long the longest one is
        yield s(log_probs, targets, s.tensor(inputs, dt.int64), s.tensor(lengths, dt.int64), *rest)


class _cudnn_ctc_loss(VendorCTC):
    """`_ctc_loss` with its gradient as second result, as cuDNN offers it."""

    schema = ("_cudnn_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths,"
              " int[] target_lengths, int blank, bool deterministic, bool zero_infinity)"
              " -> (Tensor, Tensor)")
    samples = _with_numbers


class _cudnn_ctc_loss_Tensor(VendorCTC):
    """`_cudnn_ctc_loss` with lengths in tensors."""

    schema = ("_cudnn_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths,"
              " Tensor target_lengths, int blank, bool deterministic, bool zero_infinity)"
              " -> (Tensor, Tensor)")
    samples = with_tensors


class miopen_ctc_loss(VendorCTC):
    """`_ctc_loss` with its gradient as second result, as MIOpen offers it."""

    schema = ("miopen_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths,"
              " int[] target_lengths, int blank, bool deterministic, bool zero_infinity)"
              " -> (Tensor, Tensor)")
    samples = _with_numbers


class miopen_ctc_loss_Tensor(VendorCTC):
    """`miopen_ctc_loss` with lengths in tensors."""

    schema = ("miopen_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths,"
              " Tensor target_lengths, int blank, bool deterministic, bool zero_infinity)"
              " -> (Tensor, Tensor)")
    samples = with_tensors
