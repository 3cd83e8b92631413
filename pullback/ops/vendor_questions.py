"""Questions whether a vendor's library would be used: there is none here, so the answer is no."""

from __future__ import annotations

from ..core.op import Composite
from .vendor_ctc import cases, with_tensors


class VendorQuestion(Composite):
    """Would a vendor's library be used?  There is none here."""

    method = False
    compose = staticmethod(lambda *args: False)


class _use_cudnn_ctc_loss(VendorQuestion):
    """Would `ctc_loss` call cuDNN?  There is none here."""

    schema = ("_use_cudnn_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths,"
              " int[] target_lengths, int blank) -> bool")
    samples = lambda s: [s(*case[:5]) for case in cases(s)]


class _use_cudnn_ctc_loss_Tensor(VendorQuestion):
    """Would `ctc_loss` call cuDNN?  There is none here."""

    schema = ("_use_cudnn_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths,"
              " Tensor target_lengths, int blank) -> bool")
    samples = lambda s: [s(*case.args[:5]) for case in with_tensors(s)]


class _use_miopen_ctc_loss(VendorQuestion):
    """Would `ctc_loss` call MIOpen?  There is none here."""

    schema = ("_use_miopen_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths,"
              " int[] target_lengths, int blank) -> bool")
    samples = lambda s: [s(*case[:5]) for case in cases(s)]


class _use_miopen_ctc_loss_Tensor(VendorQuestion):
    """Would `ctc_loss` call MIOpen?  There is none here."""

    schema = ("_use_miopen_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths,"
              " Tensor target_lengths, int blank) -> bool")
    samples = lambda s: [s(*case.args[:5]) for case in with_tensors(s)]


class cudnn_is_acceptable(VendorQuestion):
    """Could cuDNN take a tensor?  There is none here."""

    schema = "cudnn_is_acceptable(Tensor self) -> bool"
    samples = lambda s: [s(s.real(2))]


class _nnpack_available(VendorQuestion):
    """Is NNPACK there?  It is not."""

    schema = "_nnpack_available() -> bool"
    samples = lambda s: [s()]


class _use_cudnn_rnn_flatten_weight(VendorQuestion):
    """Does cuDNN want the weights of recurrent layers in one piece of memory?  It is not there."""

    schema = "_use_cudnn_rnn_flatten_weight() -> bool"
    samples = lambda s: [s()]
