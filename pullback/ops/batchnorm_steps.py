"""Batch normalisation in steps, as programs that share batches between processes use it.

Statistics of each batch, those of all batches together, and the normalisation with given ones.
Read `batchnorm.py` first.
"""

from __future__ import annotations

from ..array import dtype as dt
from ..formulas.batchnorm import other_dims, per_channel
from ..table.packets import ops
from .batchnorm import normalized, normalized_by_batch
from .kinds import Free


class batch_norm_update_stats(Free):
    """Mean and biased variance of each channel, and an update of the running statistics."""

    schema = ("batch_norm_update_stats(Tensor input, Tensor? running_mean, Tensor? running_var,"
              " float momentum) -> (Tensor, Tensor)")

    def compose(input, running_mean, running_var, momentum):
        _, mean, _, var = normalized_by_batch(input, None, None, 0.0)
        count = input.numel() // max(input.shape[1], 1)
        if running_mean is not None:
            running_mean.copy_(running_mean * (1 - momentum) + mean.detach() * momentum)
        if running_var is not None:
            unbiased = var.detach() * (count / (count - 1) if count > 1 else float("nan"))
            running_var.copy_(running_var * (1 - momentum) + unbiased * momentum)
        # half precision stays wide only beside wide running statistics
        alike = running_mean is None or running_mean.dtype is input.dtype
        kind = input.dtype if alike else mean.dtype
        return mean.to(kind), var.to(kind)

    samples = lambda s: [s(s.real(3, 4, 2), None, None, 0.1)]


class batch_norm_stats(Free):
    """Mean and 1 / deviation of each channel."""

    schema = "batch_norm_stats(Tensor input, float eps) -> (Tensor, Tensor)"

    def compose(input, eps):
        return normalized_by_batch(input, None, None, eps)[1:3]

    samples = lambda s: [s(s.real(3, 4, 2), 1e-3)]


class batch_norm_elemt(Free):
    """Batch normalisation with given mean and 1 / deviation."""

    schema = ("batch_norm_elemt(Tensor input, Tensor? weight, Tensor? bias, Tensor mean,"
              " Tensor invstd, float eps) -> Tensor")

    def compose(input, weight, bias, mean, invstd, eps):
        return normalized(input, weight, bias, mean, invstd)

    samples = lambda s: [s(s.real(3, 4, 2), s.real(4), s.real(4), s.real(4), s.real(4), 1e-3)]


class batch_norm_gather_stats_with_counts(Free):
    """Mean and 1 / deviation of all batches, from those of each and their sizes."""

    schema = ("batch_norm_gather_stats_with_counts(Tensor input, Tensor mean, Tensor invstd,"
              " Tensor? running_mean, Tensor? running_var, float momentum, float eps,"
              " Tensor counts) -> (Tensor, Tensor)")

    def compose(input, mean, invstd, running_mean, running_var, momentum, eps, counts):
        share = counts.to(mean.dtype).unsqueeze(1)
        total = share.sum()
        centre = (mean * share).sum(0) / total
        var = 1 / (invstd * invstd) - eps
        spread = ((var + (mean - centre) ** 2) * share).sum(0)
        if running_mean is not None:
            running_mean.copy_(running_mean * (1 - momentum) + centre.detach() * momentum)
        if running_var is not None:
            unbiased = (spread / (total - 1)).detach()
            running_var.copy_(running_var * (1 - momentum) + unbiased * momentum)
        return centre, (spread / total + eps).rsqrt()

    def samples(s):
        yield s(s.real(3, 4), s.real(2, 4), s.real(2, 4, low=0.5), None, None, 0.1, 1e-3,
                s.tensor([3, 5], dt.int64))


class batch_norm_gather_stats(Free):
    """batch_norm_gather_stats_with_counts of batches of one size."""

    schema = ("batch_norm_gather_stats(Tensor input, Tensor mean, Tensor invstd,"
              " Tensor? running_mean, Tensor? running_var, float momentum, float eps, int count)"
              " -> (Tensor, Tensor)")

    def compose(input, mean, invstd, running_mean, running_var, momentum, eps, count):
        counts = ops.full([mean.shape[0]], count, dtype=dt.int64, device=mean.device)
        return ops.batch_norm_gather_stats_with_counts(input, mean, invstd, running_mean,
                                                       running_var, momentum, eps, counts)

    def samples(s):
        yield s(s.real(3, 4), s.real(2, 4), s.real(2, 4, low=0.5), None, None, 0.1, 1e-3, 3)


class batch_norm_backward_reduce(Free):
    """Sums over a batch that its gradients need: of g and g (x - mean), and for the parameters."""

    schema = ("batch_norm_backward_reduce(Tensor grad_out, Tensor input, Tensor mean,"
              " Tensor invstd, Tensor? weight, bool input_g, bool weight_g, bool bias_g)"
              " -> (Tensor, Tensor, Tensor, Tensor)")

    def compose(grad_out, input, mean, invstd, weight, input_g, weight_g, bias_g):
        dims = other_dims(input.ndim)
        total = grad_out.sum(dims)
        along = (grad_out * (input - per_channel(mean, input.ndim))).sum(dims)
        return (total if input_g else None, along if input_g else None,
                along * invstd if weight_g else None, total.clone() if bias_g else None)

    def samples(s):
        yield s(s.real(3, 4, 2), s.real(3, 4, 2), s.real(4), s.real(4), s.real(4), True, True, True)


class batch_norm_backward_elemt(Free):
    """Gradient of the input from the sums of batch_norm_backward_reduce over all batches."""

    schema = ("batch_norm_backward_elemt(Tensor grad_out, Tensor input, Tensor mean, Tensor invstd,"
              " Tensor? weight, Tensor sum_dy, Tensor sum_dy_xmu, Tensor count) -> Tensor")

    def compose(grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, count):
        ndim, total = input.ndim, count.sum()
        centred = input - per_channel(mean, ndim)
        scale = invstd if weight is None else invstd * weight
        slope = sum_dy_xmu / total * invstd * invstd
        return (grad_out - per_channel(sum_dy / total, ndim)
                - centred * per_channel(slope, ndim)) * per_channel(scale, ndim)

    def samples(s):
        yield s(s.real(3, 4, 2), s.real(3, 4, 2), s.real(4), s.real(4), s.real(4), s.real(4),
                s.real(4), s.tensor([6], dt.int64))
