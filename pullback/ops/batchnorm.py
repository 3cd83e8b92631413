"""Batch and instance normalisation.

The entries with kernels are pure: new running statistics are results.  The operators that PyTorch
lets write running statistics are composites that call a pure one and copy.  Formulas are in
`formulas/batchnorm.py`; group and weight normalisation are in `ops/groupnorm.py`.

Running variances are updated with the unbiased estimate, the normalisation uses the biased one, and
statistics saved by an evaluation are empty, all as in PyTorch.
"""

from __future__ import annotations

from ..array import dtype as dt
from ..array.dims import numel, wrap_dim
from ..array.xp import sums
from ..core.op import Composite
from ..errors import RefusedValue, ShapeError
from ..formulas.batchnorm import (
    batch_norm_backward_parts,
    other_dims,
    per_channel,
)
from ..memory.assign import assign
from ..table.packets import ops
from .kinds import Free, Keeping
from .layout import in_front
from .norm import FEW, Normalization, check_gradient, narrowed, widened
from .pointwise import refuse

# ---------------------------------------------------------------------------------------------
# Kernels


def _columns(xp, array):
    """An array as (N, C, everything else), half precision widened."""
    return widened(xp, array).reshape((*array.shape[:2], numel(array.shape[2:])))


def _channel(xp, value):
    """A parameter or statistic per channel that broadcasts against `_columns`."""
    return widened(xp, value).reshape(-1, 1)


def statistics_dtype(input, *params):
    """Dtype of saved statistics: that of the parameters where there are some."""
    return next((p.dtype for p in params if p is not None), input.dtype)


def _check_input(input, training):
    wrap_dim(1, input.ndim, scalar_ok=False)
    refuse("batch_norm", input, "biuc")
    if training and not input.size:
        raise ShapeError("input tensor must have at least one element, but got input_sizes = "
                         f"{list(input.shape)}")


def _statistics(xp, x):
    """Mean and biased variance per channel of `_columns`, and the centred values."""
    count = max(x.shape[0] * x.shape[2], 1)
    mean = sums(xp, x, (0, 2))[0] / count
    centred = x - mean
    if x.size < FEW:
        var = sums(xp, centred * centred, (0, 2))[0]
    else:
        var = xp.einsum("ncl,ncl->c", centred, centred)[:, None]
    return mean, var / count, centred


def _scaled(xp, centred, rstd, weight, bias):
    """`centred` times `rstd`, then the parameters; overwrites `centred`."""
    centred *= rstd if weight is None else rstd * _channel(xp, weight)
    if bias is not None:
        centred += _channel(xp, bias)
    return centred


def _evaluated(xp, input, weight, bias, running_mean, running_var, eps):
    if running_mean is None or running_var is None:
        raise ShapeError("Expected running_mean and running_var to be defined when training=False")
    rstd = 1 / xp.sqrt(_channel(xp, running_var) + eps)
    out = _columns(xp, input) - _channel(xp, running_mean)
    out = _scaled(xp, out, rstd.astype(out.dtype), weight, bias)
    dtype = statistics_dtype(input, weight, bias, running_mean)
    empty = xp.zeros((0,), dtype=dtype)
    return narrowed(out, input.dtype).reshape(input.shape), empty, empty.copy()


def _trained(xp, input, weight, bias, eps, dtype):
    """Output, saved mean, saved 1 / deviation, and the variance that the latter came from."""
    mean, var, centred = _statistics(xp, _columns(xp, input))
    rstd = 1 / xp.sqrt(var + eps)
    out = narrowed(_scaled(xp, centred, rstd, weight, bias), input.dtype).reshape(input.shape)
    return out, narrowed(mean[:, 0], dtype), narrowed(rstd[:, 0], dtype), (mean[:, 0], var[:, 0])


def _updated(xp, old, new, momentum):
    return narrowed((1 - momentum) * widened(xp, old) + momentum * new, old.dtype)


def _update_both(xp, input, statistics, running_mean, running_var, momentum):
    count = input.size // max(input.shape[1], 1)
    mean, var = statistics
    unbiased = var * (count / (count - 1) if count > 1 else xp.nan)
    return (_updated(xp, running_mean, mean, momentum),
            _updated(xp, running_var, unbiased, momentum))


# ---------------------------------------------------------------------------------------------
# The same of operators, for capture


def normalized(input, weight, bias, mean, rstd):
    """The input with given mean and 1 / deviation of each channel, scaled and shifted."""
    ndim = input.ndim
    out = (input - per_channel(mean, ndim)) * per_channel(rstd, ndim)
    if weight is not None:
        out = out * per_channel(weight, ndim)
    return out if bias is None else out + per_channel(bias, ndim)


def _wide(tensor):
    return tensor.to(dt.float32) if tensor.dtype.itemsize == 2 else tensor


def normalized_by_batch(input, weight, bias, eps):
    """Output, mean, 1 / deviation, biased variance."""
    x, dims = _wide(input), other_dims(input.ndim)
    mean = x.mean(dims, True)
    centred = x - mean
    var = (centred * centred).mean(dims, True)
    mean, var = mean.reshape([-1]), var.reshape([-1])
    rstd = (var + eps).rsqrt()
    return normalized(x, weight, bias, mean, rstd).to(input.dtype), mean, rstd, var


def _decomposed_evaluation(input, weight, bias, running_mean, running_var, eps):
    x = _wide(input)
    rstd = (_wide(running_var) + eps).rsqrt()
    out = normalized(x, weight, bias, running_mean, rstd).to(input.dtype)
    empty = ops.new_zeros(running_mean if weight is None else weight, [0])
    return out, empty, empty.clone()


# ---------------------------------------------------------------------------------------------
# Batching: examples become further channels


def _fold(x, batched, n):
    """(n, N, C, ...) as (N, n C, ...)."""
    x = in_front(x, batched, n).movedim(0, 1)
    return x.reshape([x.shape[0], n * x.shape[2], *x.shape[3:]])


def _fold_channels(value, batched, n):
    """(n, C) as (n C); None stays None."""
    return None if value is None else in_front(value, batched, n).reshape([-1])


def _unfold(x, n):
    """(N, n C, ...) as (n, N, C, ...)."""
    return x.reshape([x.shape[0], n, x.shape[1] // max(n, 1), *x.shape[2:]]).movedim(1, 0)


def _unfold_channels(value, n):
    return None if value is None else value.reshape([n, value.shape[0] // max(n, 1)])


def _fold_all(n, batched, input, *channels):
    flags = batched[1:1 + len(channels)]
    return (_fold(input, batched[0], n),
            *(_fold_channels(c, b, n) for c, b in zip(channels, flags, strict=True)))


def _unfold_all(n, results):
    first, *rest = results
    return (None if first is None else _unfold(first, n), *(_unfold_channels(r, n) for r in rest))


# ---------------------------------------------------------------------------------------------
# The pure forward operators

_SAVED = ("batch_norm_grads(grads, input, weight, {0}, {1}, result1, result2, {2}, eps,"
          " grad_input_mask, native_batch_norm_backward)")
_PUSHED = ("batch_norm_push(input_p, input_t, weight_p, weight_t, bias_t, {0}, {1}, result1,"
           " result2, {2}, eps)")


class _native_batch_norm_legit_functional(Normalization):
    """Batch normalisation that returns new running statistics instead of writing them."""

    schema = ("_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias,"
              " Tensor running_mean, Tensor running_var, bool training, float momentum, float eps)"
              " -> (Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)")
    native = "batch_norm"
    memory_format = "self"
    grad = {"input, weight, bias": _SAVED.format("running_mean_out", "running_var_out",
                                                 "training")}
    push = {"result0, result1, result2": _PUSHED.format("running_mean", "running_var",
                                                        "training")}
    diff_outputs = (True, True, True, False, False)
    function = False

    def run(xp, input, weight, bias, running_mean, running_var, training, momentum, eps):
        _check_input(input, training)
        if not training:
            return (*_evaluated(xp, input, weight, bias, running_mean, running_var, eps),
                    running_mean.copy(), running_var.copy())
        dtype = statistics_dtype(input, weight, bias, running_mean)
        *results, statistics = _trained(xp, input, weight, bias, eps, dtype)
        return (*results, *_update_both(xp, input, statistics, running_mean, running_var,
                                        momentum))

    def shape(input, weight, bias, running_mean, running_var, training, momentum, eps):
        saved = (input.shape[1] if training else 0,)
        return [tuple(input.shape), saved, saved, tuple(running_mean.shape),
                tuple(running_var.shape)]

    def dtype(input, weight, bias, running_mean, running_var, training, momentum, eps):
        saved = statistics_dtype(input, weight, bias, running_mean)
        return [input.dtype, saved, saved, running_mean.dtype, running_var.dtype]

    def batch(n, batched, input, weight, bias, running_mean, running_var, training, momentum, eps):
        folded = _fold_all(n, batched, input, weight, bias, running_mean, running_var)
        return _unfold_all(n, ops._native_batch_norm_legit_functional(*folded, training, momentum,
                                                                      eps))

    def decomp(input, weight, bias, running_mean, running_var, training, momentum, eps):
        if not training:
            return (*_decomposed_evaluation(input, weight, bias, running_mean, running_var, eps),
                    running_mean.clone(), running_var.clone())
        out, mean, rstd, var = normalized_by_batch(input, weight, bias, eps)
        count = input.numel() // max(input.shape[1], 1)
        unbiased = var * (count / (count - 1) if count > 1 else float("nan"))
        dtype = (running_mean if weight is None else weight).dtype
        return (out, mean.to(dtype), rstd.to(dtype),
                (running_mean * (1 - momentum) + mean * momentum).to(running_mean.dtype),
                (running_var * (1 - momentum) + unbiased * momentum).to(running_var.dtype))

    def samples(s):
        for training in (True, False):
            yield s(s.real(3, 4, 2), s.real(4), s.real(4), s.real(4), s.real(4, low=0.5), training,
                    0.1, 1e-3)
            yield s(s.real(4, 3).T, None, None, s.real(4), s.real(4, low=0.5), training, 0.3, 1e-5)
            yield s(s.real(2, 3, 2, 2), s.real(3), None, s.real(3), s.real(3, low=0.5), training,
                    0.1, 1e-3)
            yield s(s.real(5, 3), None, s.real(3), s.real(3), s.real(3, low=0.5), training, 0.1,
                    1e-3)


class _native_batch_norm_legit_no_stats(Normalization):
    """Batch normalisation with the statistics of the batch and no running ones."""

    schema = ("_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias,"
              " bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)")
    core = True
    memory_format = "self"
    number = 1
    grad = {"input, weight, bias": _SAVED.format("None", "None", "training")}
    push = {"result0, result1, result2": _PUSHED.format("None", "None", "training")}
    function = False

    def run(xp, input, weight, bias, training, momentum, eps):
        _check_input(input, training)
        if not training:
            return _evaluated(xp, input, weight, bias, None, None, eps)
        dtype = statistics_dtype(input, weight, bias)
        return _trained(xp, input, weight, bias, eps, dtype)[:3]

    def shape(input, weight, bias, training, momentum, eps):
        return [tuple(input.shape), (input.shape[1],), (input.shape[1],)]

    def dtype(input, weight, bias, training, momentum, eps):
        saved = statistics_dtype(input, weight, bias)
        return [input.dtype, saved, saved]

    def batch(n, batched, input, weight, bias, training, momentum, eps):
        folded = _fold_all(n, batched, input, weight, bias)
        return _unfold_all(n, ops._native_batch_norm_legit.no_stats(*folded, training, momentum,
                                                                    eps))

    def decomp(input, weight, bias, training, momentum, eps):
        if not training:
            raise ShapeError("Expected running_mean and running_var to be defined when "
                             "training=False")
        out, mean, rstd, _ = normalized_by_batch(input, weight, bias, eps)
        dtype = (input if weight is None else weight).dtype
        return out, mean.to(dtype), rstd.to(dtype)

    def samples(s):
        yield s(s.real(3, 4, 2), s.real(4), s.real(4), True, 0.1, 1e-3)
        yield s(s.real(4, 3).T, None, None, True, 0.3, 1e-5)
        yield s(s.real(2, 3, 2, 2), s.real(3), None, True, 0.1, 1e-3)


class _native_batch_norm_legit_no_training(Keeping):
    """Batch normalisation with fixed statistics; the saved ones are empty."""

    schema = ("_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias,"
              " Tensor running_mean, Tensor running_var, float momentum, float eps)"
              " -> (Tensor, Tensor, Tensor)")
    native = "batch_norm_fixed"
    core = True
    same_dtype = ("input",)
    or_float32 = ("weight", "bias")
    memory_format = "self"
    grad = {"input, weight, bias": (
        "batch_norm_grads((grad, None, None), input, weight, running_mean, running_var, result1,"
        " result2, False, eps, grad_input_mask, native_batch_norm_backward)")}
    push = {"result0": _PUSHED.format("running_mean", "running_var", "False") + "[0]"}
    diff_outputs = (True, False, False)
    cost = "cheap"
    method = function = False

    def run(xp, input, weight, bias, running_mean, running_var, momentum, eps):
        _check_input(input, False)
        return _evaluated(xp, input, weight, bias, running_mean, running_var, eps)

    def shape(input, weight, bias, running_mean, running_var, momentum, eps):
        return [tuple(input.shape), (0,), (0,)]

    def dtype(input, weight, bias, running_mean, running_var, momentum, eps):
        saved = statistics_dtype(input, weight, bias, running_mean)
        return [input.dtype, saved, saved]

    def batch(n, batched, input, weight, bias, running_mean, running_var, momentum, eps):
        folded = _fold_all(n, batched, input, weight, bias, running_mean, running_var)
        return _unfold_all(n, ops._native_batch_norm_legit_no_training(*folded, momentum, eps))

    def decomp(input, weight, bias, running_mean, running_var, momentum, eps):
        return _decomposed_evaluation(input, weight, bias, running_mean, running_var, eps)

    def samples(s):
        yield s(s.real(3, 4, 2), s.real(4), s.real(4), s.real(4), s.real(4, low=0.5), 0.1, 1e-3)
        yield s(s.real(4, 3).T, None, None, s.real(4), s.real(4, low=0.5), 0.3, 1e-5)
        yield s(s.real(0, 3, 2), s.real(3), None, s.real(3), s.real(3, low=0.5), 0.1, 1e-3)


# ---------------------------------------------------------------------------------------------
# The backward operators


def _backward_kernel(xp, grad_out, input, weight, running_mean, running_var, save_mean, save_invstd,
                     train, eps, output_mask):
    check_gradient("batch_norm", grad_out, input)
    statistics = (save_mean, save_invstd) if train else (running_mean, running_var)
    if any(s is None for s in statistics):
        raise RefusedValue("batch_norm: the statistics that the gradient needs are missing")
    if input.ndim < 2:
        raise ShapeError(f"batch_norm: expected at least two dims, got {list(input.shape)}")
    g, x = _columns(xp, grad_out), _columns(xp, input)
    if train:
        mean, rstd = _channel(xp, save_mean), _channel(xp, save_invstd)
    else:
        mean = _channel(xp, running_mean)
        rstd = (1 / xp.sqrt(_channel(xp, running_var) + eps)).astype(x.dtype)
    dx = dw = db = None
    scale = rstd if weight is None else rstd * _channel(xp, weight)
    total = along = None
    if output_mask[2] or (output_mask[0] and train):
        total = g.sum(axis=(0, 2))[:, None]
    if output_mask[1] or (output_mask[0] and train):
        normal = (x - mean) * rstd
        along = xp.einsum("ncl,ncl->c", g, normal)[:, None]
    if output_mask[0]:
        if train:
            count = max(x.shape[0] * x.shape[2], 1)
            dx = g - total / count
            normal *= along / count
            dx -= normal
            dx *= scale
        else:
            dx = g * scale
        dx = narrowed(dx, input.dtype).reshape(input.shape)
    dtype = statistics_dtype(input, weight)
    if output_mask[1]:
        dw = narrowed(along[:, 0], dtype)
    if output_mask[2]:
        db = narrowed(total[:, 0], dtype)
    return dx, dw, db


def _backward_shape(input, output_mask):
    channels = (input.shape[1],)
    shapes = (tuple(input.shape), channels, channels)
    return [s if m else None for s, m in zip(shapes, output_mask, strict=True)]


def _batched_backward(n, batched, grad_out, input, weight, running_mean, running_var, save_mean,
                      save_invstd, train, eps, output_mask):
    channels = (weight, running_mean, running_var, save_mean, save_invstd)
    folded = [_fold_channels(c, b, n) for c, b in zip(channels, batched[2:7], strict=True)]
    return _unfold_all(n, ops.native_batch_norm_backward(
        _fold(grad_out, batched[0], n), _fold(input, batched[1], n), *folded, train, eps,
        output_mask))


class BatchNormBackward(Keeping):
    """Gradients of batch normalisation for input, weight and bias, as the mask asks."""

    same_dtype = ("grad_out", "input")
    or_float32 = ("weight",)
    memory_format = "self"
    cost = "reduce"
    method = function = False


class native_batch_norm_backward(BatchNormBackward):
    """Gradients of batch normalisation for input, weight and bias, as the mask asks."""

    schema = ("native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight,"
              " Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd,"
              " bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)")
    native = "batch_norm_backward"
    grad = {"grad_out, input, weight, save_mean, save_invstd": (
        "batch_norm_double_grads(grads, grad_out, input, weight, running_mean, running_var,"
        " save_mean, save_invstd, train, eps)")}
    push = {"result0, result1, result2": (
        "batch_norm_backward_push(grad_out_p, grad_out_t, input_p, input_t, weight_p, weight_t,"
        " running_mean, running_var, save_mean_p, save_mean_t, save_invstd_p, save_invstd_t,"
        " train, eps, output_mask)")}
    run = _backward_kernel
    batch = _batched_backward

    def shape(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train,
              eps, output_mask):
        return _backward_shape(input, output_mask)

    def dtype(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train,
              eps, output_mask):
        return [input.dtype, *[statistics_dtype(input, weight)] * 2]

    def decomp(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train,
               eps, output_mask):
        dx, dw, db = batch_norm_backward_parts(
            _wide(grad_out), _wide(input), weight, running_mean, running_var, save_mean,
            save_invstd, train, eps, output_mask)
        dtype = (input if weight is None else weight).dtype
        return tuple(None if t is None else t.to(d)
                     for t, d in zip((dx, dw, db), (input.dtype, dtype, dtype), strict=True))

    def samples(s):
        every = [True, True, True]
        for train in (True, False):
            yield s(s.real(3, 4, 2), s.real(3, 4, 2), s.real(4), s.real(4), s.real(4, low=0.5),
                    s.real(4), s.real(4, low=0.5), train, 1e-3, every)
            yield s(s.real(3, 4), s.real(4, 3).T, None, s.real(4), s.real(4, low=0.5), s.real(4),
                    s.real(4, low=0.5), train, 1e-3, every)
        yield s(s.real(3, 4, 2), s.real(3, 4, 2), s.real(4), None, None, s.real(4),
                s.real(4, low=0.5), True, 1e-3, [True, False, True])
        yield s(s.real(3, 4, 2), s.real(3, 4, 2), s.real(4), s.real(4), s.real(4, low=0.5), None,
                None, False, 1e-3, [False, True, False])


class batch_norm_backward(BatchNormBackward):
    """native_batch_norm_backward with a buffer that other backends reserve."""

    schema = ("batch_norm_backward(Tensor grad_out, Tensor input, Tensor weight,"
              " Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_var,"
              " bool update, float eps, bool[3] output_mask, Tensor reserve)"
              " -> (Tensor, Tensor, Tensor)")
    grad = {"grad_out, input, weight, save_mean, save_var": (
        "batch_norm_double_grads(grads, grad_out, input, weight, running_mean, running_var,"
        " save_mean, save_var, update, eps)")}
    push = {"result0, result1, result2": (
        "batch_norm_backward_push(grad_out_p, grad_out_t, input_p, input_t, weight_p, weight_t,"
        " running_mean, running_var, save_mean_p, save_mean_t, save_var_p, save_var_t, update,"
        " eps, output_mask)")}
    nondiff = ("reserve",)

    def run(xp, *args):
        return _backward_kernel(xp, *args[:-1])

    def shape(grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps,
              output_mask, reserve):
        return _backward_shape(input, output_mask)

    def dtype(grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps,
              output_mask, reserve):
        return [input.dtype, weight.dtype, weight.dtype]

    def batch(n, batched, *args):
        return _batched_backward(n, batched, *args[:-1])

    def decomp(*args):
        return ops.native_batch_norm_backward(*args[:-1])

    def samples(s):
        reserve = s.tensor([], dt.uint8)
        for update in (True, False):
            yield s(s.real(3, 4, 2), s.real(3, 4, 2), s.real(4), s.real(4), s.real(4, low=0.5),
                    s.real(4), s.real(4, low=0.5), update, 1e-3, [True, True, True], reserve)


# ---------------------------------------------------------------------------------------------
# Operators that write running statistics


def _norm_and_write(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """The pure operator that fits, and copies of its running statistics into the given ones.

    Users get the saved statistics without derivatives; formulas use those of the pure operator.
    """
    out, mean, invstd = _pure(input, weight, bias, running_mean, running_var, training, momentum,
                              eps)
    return out, mean.detach(), invstd.detach()


def _pure(input, weight, bias, running_mean, running_var, training, momentum, eps):
    for name, value in (("running_mean", running_mean), ("running_var", running_var)):
        if value is not None and input.ndim > 1 and tuple(value.shape) != (input.shape[1],):
            raise ShapeError(f"{name} should contain {input.shape[1]} elements not "
                             f"{list(value.shape)}")
    if not training:
        if running_mean is None or running_var is None:
            raise ShapeError("Expected running_mean and running_var to be defined when "
                             "training=False")
        return ops._native_batch_norm_legit_no_training(input, weight, bias, running_mean,
                                                        running_var, momentum, eps)
    if running_mean is None and running_var is None:
        return ops._native_batch_norm_legit.no_stats(input, weight, bias, True, momentum, eps)
    mean = ops.new_zeros(running_var, running_var.shape) if running_mean is None else running_mean
    var = ops.new_zeros(running_mean, running_mean.shape) if running_var is None else running_var
    *results, new_mean, new_var = ops._native_batch_norm_legit_functional(
        input, weight, bias, mean, var, True, momentum, eps)
    for old, new in ((running_mean, new_mean), (running_var, new_var)):
        if old is None:
            continue
        if hasattr(old._payload, "node") and old._payload.dtype == new._payload.dtype:
            assign(old, new)  # in a capture the new value is what has just been computed
        else:
            old.copy_(new)
    return tuple(results)


def _integers(s, channels):
    """Running statistics that no test tries to differentiate, with exact square roots."""
    return (s.tensor(range(channels), dt.int64),
            s.tensor([1 << 2 * k for k in range(channels)], dt.int64))


class native_batch_norm(Free):
    """Batch normalisation, the statistics that it used, and an update of the running ones."""

    schema = ("native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean,"
              " Tensor? running_var, bool training, float momentum, float eps)"
              " -> (Tensor, Tensor, Tensor)")
    compose = _norm_and_write

    samples = lambda s: [s(s.real(3, 4, 2), s.real(4), s.real(4), None, None, True, 0.1, 1e-3)]


class _native_batch_norm_legit(Free):
    """native_batch_norm whose schema admits that it writes the running statistics."""

    schema = ("_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias,"
              " Tensor(a!) running_mean, Tensor(b!) running_var, bool training, float momentum,"
              " float eps) -> (Tensor, Tensor, Tensor)")
    core = True
    compose = _norm_and_write

    def samples(s):
        yield s(s.real(3, 4, 2), None, None, *_integers(s, 4), False, 0.1, 0.0)
        yield s(s.real(3, 4), s.real(4), s.real(4), *_integers(s, 4), True, 0.1, 1e-3)


def with_reserve(results, input):
    """The results, and the buffer that other backends reserve for their backward: it is empty."""
    return (*results, ops.empty([0], dtype=dt.uint8, device=input.device))


class _Reserving(Free):
    """native_batch_norm with an empty buffer that other backends reserve."""

    training = False

    @classmethod
    def compose(cls, input, weight, bias, running_mean, running_var, momentum, eps):
        return with_reserve(_norm_and_write(input, weight, bias, running_mean, running_var,
                                             cls.training, momentum, eps), input)


class _batch_norm_with_update(_Reserving):
    """native_batch_norm in training, with an empty buffer that other backends reserve."""

    schema = ("_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias,"
              " Tensor(a!) running_mean, Tensor(b!) running_var, float momentum, float eps)"
              " -> (Tensor, Tensor, Tensor, Tensor)")
    training = True
    samples = lambda s: [s(s.real(3, 4), s.real(4), s.real(4), *_integers(s, 4), 0.1, 1e-3)]


class _batch_norm_with_update_functional(Composite):
    """_batch_norm_with_update that returns new running statistics instead of writing them."""

    schema = ("_batch_norm_with_update_functional(Tensor input, Tensor? weight, Tensor? bias,"
              " Tensor running_mean, Tensor running_var, float momentum, float eps)"
              " -> (Tensor, Tensor, Tensor, Tensor, Tensor running_mean_out,"
              " Tensor running_var_out)")
    method = function = False

    def compose(input, weight, bias, running_mean, running_var, momentum, eps):
        *results, new_mean, new_var = ops._native_batch_norm_legit_functional(
            input, weight, bias, running_mean, running_var, True, momentum, eps)
        return (*with_reserve(results, input), new_mean, new_var)

    samples = lambda s: [s(s.real(3, 4), s.real(4), s.real(4), *_integers(s, 4), 0.1, 1e-3)]


class _batch_norm_no_update(_Reserving):
    """native_batch_norm in evaluation, with an empty buffer that other backends reserve."""

    schema = ("_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias,"
              " Tensor? running_mean, Tensor? running_var, float momentum, float eps)"
              " -> (Tensor, Tensor, Tensor, Tensor)")
    training = False
    samples = lambda s: [s(s.real(3, 4), s.real(4), s.real(4), *_integers(s, 4), 0.1, 0.0)]


def _check_channels(channels, **params):
    for name, value in params.items():
        if value is not None and value.numel() != channels:
            raise ShapeError(f"{name} should contain {channels} elements not {value.numel()}")


class batch_norm(Free):
    """Zero mean and unit variance of each channel (dim 1), then scale and shift."""

    schema = ("batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean,"
              " Tensor? running_var, bool training, float momentum, float eps,"
              " bool cudnn_enabled) -> Tensor")
    tags = ("maybe_aliasing_or_mutating",)

    def compose(input, weight, bias, running_mean, running_var, training, momentum, eps,
                cudnn_enabled):
        if input.numel() == 0:  # nothing to normalise; the parameters stay part of the graph
            out = input.clone()
            out = out if weight is None else out * weight[0]
            return out if bias is None else out + bias[0]
        channels = input.shape[wrap_dim(1, input.ndim, scalar_ok=False)]
        if not training and (running_mean is None or running_var is None):
            missing = "running_mean" if running_mean is None else "running_var"
            raise ShapeError(f"{missing} must be defined in evaluation mode")
        _check_channels(channels, running_mean=running_mean, running_var=running_var,
                        weight=weight, bias=bias)
        return _pure(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]

    def samples(s):
        yield s(s.real(3, 4, 2), s.real(4), s.real(4), None, None, True, 0.1, 1e-3, True)
        yield s(s.real(3, 4), s.real(4), s.real(4), *_integers(s, 4), False, 0.1, 0.0, True)
        yield s(s.real(0, 3), s.real(3), s.real(3), None, None, True, 0.1, 1e-3, True)


class instance_norm(Free):
    """Batch normalisation of each example by itself."""

    schema = ("instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean,"
              " Tensor? running_var, bool use_input_stats, float momentum, float eps,"
              " bool cudnn_enabled) -> Tensor")

    def compose(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps,
                cudnn_enabled):
        if not use_input_stats and (running_mean is None or running_var is None):
            raise ShapeError("Expected running_mean and running_var to be defined when "
                             "use_input_stats is false")
        examples, channels = input.shape[:2]

        def repeated(value):
            return None if value is None else value.repeat([examples])

        own_mean, own_var = repeated(running_mean), repeated(running_var)
        out = ops.batch_norm(
            input.reshape([1, examples * channels, *input.shape[2:]]), repeated(weight),
            repeated(bias), own_mean, own_var, use_input_stats, momentum, eps, cudnn_enabled)
        if use_input_stats:
            for value, own in ((running_mean, own_mean), (running_var, own_var)):
                if value is not None:
                    value.copy_(own.view([examples, channels]).mean(0))
        return out.view(input.shape)

    def samples(s):
        yield s(s.real(3, 4, 5), s.real(4), s.real(4), None, None, True, 0.1, 1e-3, True)
        yield s(s.real(2, 3, 2, 2), None, None, *_integers(s, 3), False, 0.1, 0.0, True)
