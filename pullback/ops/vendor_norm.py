"""Batch normalisation under the names that vendors' libraries gave it.

It is `native_batch_norm` with their order of arguments.  Their saved statistics are in float32
beside half precision; an evaluation saves none, and writes no running ones.  What cuDNN reserves
for its backward is empty: nothing here needs it.  Read next: `batchnorm.py`.
"""

from __future__ import annotations

from ..array import dtype as dt
from ..core.op import Composite
from ..table.packets import ops
from .batchnorm import with_reserve
from .kinds import Free


def _wide(param):
    """A parameter in float32 if it is of half precision, so that the saved statistics are."""
    return param if param is None or param.dtype.itemsize != 2 else param.to(dt.float32)


class VendorBatchNorm(Free):
    """Batch normalisation, the statistics that it used, and an update of the running ones."""

    @classmethod
    def compose(cls, input, weight, bias, running_mean, running_var, training, factor, epsilon):
        return ops.native_batch_norm(input, _wide(weight), _wide(bias), running_mean, running_var,
                                     training, factor, epsilon)

    @classmethod
    def samples(cls, s):
        yield s(s.real(3, 4, 2), s.real(4), s.real(4), None, None, True, 0.1, 1e-3)
        yield s(s.real(2, 3, 2, 2), s.real(3), None, None, None, True, 0.3, 1e-5)
        mean, var = s.tensor(range(4), dt.int64), s.tensor([1, 4, 16, 64], dt.int64)
        yield s(s.real(4, 4), s.real(4), s.real(4), mean, var, False, 0.1, 0.0)


class cudnn_batch_norm(VendorBatchNorm):
    """`native_batch_norm` with an empty buffer behind its results, as cuDNN offers it."""

    schema = ("cudnn_batch_norm(Tensor input, Tensor weight, Tensor? bias, Tensor? running_mean,"
              " Tensor? running_var, bool training, float exponential_average_factor,"
              " float epsilon) -> (Tensor, Tensor, Tensor, Tensor)")

    @classmethod
    def compose(cls, input, *rest):
        return with_reserve(super().compose(input, *rest), input)


class miopen_batch_norm(VendorBatchNorm):
    """`native_batch_norm` as MIOpen offers it."""

    schema = ("miopen_batch_norm(Tensor input, Tensor weight, Tensor? bias, Tensor? running_mean,"
              " Tensor? running_var, bool training, float exponential_average_factor,"
              " float epsilon) -> (Tensor, Tensor, Tensor)")


class VendorBatchNormBackward(Composite):
    """Gradients of batch normalisation in training for input, weight and bias."""

    method = function = False

    @classmethod
    def compose(cls, input, grad_output, weight, running_mean, running_var, save_mean, save_var,
                epsilon, *reserve):
        return ops.native_batch_norm_backward(
            grad_output, input, weight, None, None, save_mean, save_var, True, epsilon,
            [True, True, True])  # in training the running statistics are not read

    @classmethod
    def samples(cls, s):
        for shape, running in (((3, 4, 2), True), ((5, 4), False)):
            stats = (s.real(4), s.real(4, low=0.5)) if running else (None, None)
            yield s(s.real(*shape), s.real(*shape), s.real(4), *stats, s.real(4),
                    s.real(4, low=0.5), 1e-3)


class cudnn_batch_norm_backward(VendorBatchNormBackward):
    """Gradients of `cudnn_batch_norm` in training for input, weight and bias."""

    schema = ("cudnn_batch_norm_backward(Tensor input, Tensor grad_output, Tensor weight,"
              " Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_var,"
              " float epsilon, Tensor reserveSpace) -> (Tensor, Tensor, Tensor)")

    @classmethod
    def samples(cls, s):
        for case in super().samples(s):
            yield s(*case.args, s.tensor([], dt.uint8))


class miopen_batch_norm_backward(VendorBatchNormBackward):
    """Gradients of `miopen_batch_norm` in training for input, weight and bias."""

    schema = ("miopen_batch_norm_backward(Tensor input, Tensor grad_output, Tensor weight,"
              " Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_var,"
              " float epsilon) -> (Tensor, Tensor, Tensor)")
