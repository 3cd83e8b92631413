"""Derivative formulas of batch, group, root-mean-square and weight normalisation.

Public names are in scope of every formula string.  Everything is made of differentiable operators.
As in `formulas/norm.py` (see its note on statistics), saved statistics are treated as outputs of
the forward and independent inputs of the backward operators, so that every order is exact.
Read `ops/batchnorm.py` and `ops/groupnorm.py` next.
"""

from __future__ import annotations

from ..array.dims import numel
from . import added, on_arrays
from .norm import from_sums, leading_dims, over_rows, through_normal, trailing_dims, without_normal
from .reduce import single

# ---------------------------------------------------------------------------------------------
# Normalisation with statistics over `dims` and parameters that are summed over `sums`.
#
# All operands broadcast against the input here; the wrappers below bring them into that shape.
# With y = (x - mean) rstd and u = g weight, the gradients are
#     dx = rstd P(u),  P(u) = u - M(u) - y M(u y),  M the mean over `dims`      (training)
#     dx = rstd u                                                                (fixed statistics)
#     dw = S(g y),  db = S(g),  S the sum over `sums`.
# P is symmetric for fixed y.


def _times(value, weight):
    return value if weight is None else value * weight


def normal_grads(g, x, mean, rstd, weight, dims, sums, moving, mask):
    """dx, dw, db; `moving` says that the statistics belong to the input."""
    normal = (x - mean) * rstd
    dx = dw = db = None
    if mask[0]:
        late = dims == sums  # one weight for all that is added up: infinite, it would cancel itself
        u, scale = (g, _times(rstd, weight)) if late else (_times(g, weight), rstd)
        dx = scale * (without_normal(u, normal, dims) if moving else u)
    if mask[1]:
        dw = (g * normal).sum(sums, True)
    if mask[2]:
        db = g.sum(sums, True)
    return dx, dw, db


def normal_double_grads(grads, g, x, mean, rstd, weight, dims, sums, moving):
    """Gradients of `normal_grads` for g, x, mean, rstd and weight.

    `a`, `b`, `c` are the gradients of dx, dw and db.
    """
    a, b, c = grads
    centred = x - mean
    normal = centred * rstd
    for_g = for_normal = for_rstd = for_weight = None
    if a is not None:
        u = _times(g, weight)
        for_u = rstd * (without_normal(a, normal, dims) if moving else a)
        for_g = _times(for_u, weight)
        if weight is not None:
            for_weight = (for_u * g).sum(sums, True)
        for_rstd = (a * (without_normal(u, normal, dims) if moving else u)).sum(dims, True)
        if moving:
            along = a * (u * normal).mean(dims, True) + u * (a * normal).mean(dims, True)
            for_normal = -rstd * along
    for_g, for_normal = from_sums(b, c, g, normal, for_g, for_normal)
    return for_g, *through_normal(for_normal, centred, rstd, for_rstd, dims), for_weight


def normal_grads_push(g, g_t, x, x_t, mean, mean_t, rstd, rstd_t, weight, weight_t, dims, sums,
                      moving, mask):
    """Tangents of `normal_grads`; tangents of statistics and weight may be None."""
    centred = x - mean
    normal = centred * rstd
    normal_t = (x_t if mean_t is None else x_t - mean_t) * rstd
    if rstd_t is not None:
        normal_t = normal_t + centred * rstd_t
    dx = dw = db = None
    if mask[0]:
        u, u_t = _times(g, weight), _times(g_t, weight)
        if weight_t is not None:
            u_t = u_t + g * weight_t
        core, core_t = u, u_t
        if moving:
            turned = (normal_t * (u * normal).mean(dims, True)
                      + normal * (u * normal_t).mean(dims, True))
            core = without_normal(u, normal, dims)
            core_t = without_normal(u_t, normal, dims) - turned
        dx = rstd * core_t
        if rstd_t is not None:
            dx = dx + rstd_t * core
    if mask[1]:
        dw = (g_t * normal + g * normal_t).sum(sums, True)
    if mask[2]:
        db = g_t.sum(sums, True)
    return dx, dw, db


def normal_push(x, x_t, mean, rstd, weight, weight_t, bias_t, dims, moving):
    """Tangents of the normalised output, of the mean and of the reciprocal deviation."""
    centred = x - mean
    mean_t = rstd_t = None
    out_t = x_t * rstd
    if moving:
        mean_t = x_t.mean(dims, True)
        rstd_t = -(rstd ** 3) * (centred * x_t).mean(dims, True)
        out_t = (x_t - mean_t) * rstd + centred * rstd_t
    out_t = _times(out_t, weight)
    if weight_t is not None:
        out_t = out_t + centred * rstd * weight_t
    return out_t if bias_t is None else out_t + bias_t, mean_t, rstd_t


def statistics_grads(grad_mean, grad_rstd, x, mean, rstd, count):
    """Gradient of the input that arrives through its statistics; None if there is none."""
    dx = None
    if grad_mean is not None:
        dx = (grad_mean / count).expand(x.shape)
    if grad_rstd is not None:
        dx = added(dx, grad_rstd * rstd ** 3 * (mean - x) / count)
    return dx


# ---------------------------------------------------------------------------------------------
# Batch normalisation: statistics and parameters per channel (dim 1)


def other_dims(ndim: int) -> list[int]:
    """All dims but that of the channels."""
    return [0, *range(2, ndim)]


def per_channel(value, ndim: int):
    """A value per channel that broadcasts against a tensor with channels on dim 1."""
    return None if value is None else value.reshape([1, -1, *[1] * (ndim - 2)])


def _flat(value):
    return None if value is None else value.reshape([-1])


def statistics_in_use(running_mean, running_var, save_mean, save_invstd, train, eps, ndim):
    """Mean and reciprocal deviation that a batch normalisation used, per channel."""
    if train:
        return per_channel(save_mean, ndim), per_channel(save_invstd, ndim)
    return per_channel(running_mean, ndim), per_channel((running_var + eps).rsqrt(), ndim)


@on_arrays()
def batch_norm_grads(grads, input, weight, running_mean, running_var, save_mean, save_invstd,
                     train, eps, mask, native):
    """Gradients of input, weight and bias; `native` is the fused backward operator."""
    grad, grad_mean, grad_invstd = grads
    wanted = [bool(m) for m in mask]
    dx = dw = db = None
    if grad is not None:
        dx, dw, db = native(grad, input, weight, running_mean, running_var, save_mean, save_invstd,
                            train, eps, wanted)
    if wanted[0] and train and (grad_mean is not None or grad_invstd is not None):
        ndim = input.ndim
        count = numel(input.shape) // max(input.shape[1], 1)
        through = statistics_grads(
            per_channel(grad_mean, ndim), per_channel(grad_invstd, ndim), input,
            per_channel(save_mean, ndim), per_channel(save_invstd, ndim), count)
        dx = added(dx, through)
    return tuple(value if want else None for value, want in zip((dx, dw, db), wanted, strict=True))


def batch_norm_push(input, input_t, weight, weight_t, bias_t, running_mean, running_var,
                    save_mean, save_invstd, train, eps):
    """Tangents of the output, the saved mean and the saved reciprocal deviation."""
    ndim = input.ndim
    mean, rstd = statistics_in_use(running_mean, running_var, save_mean, save_invstd, train, eps,
                                   ndim)
    out_t, mean_t, rstd_t = normal_push(
        input, input_t, mean, rstd, per_channel(weight, ndim), per_channel(weight_t, ndim),
        per_channel(bias_t, ndim), other_dims(ndim), train)
    if not train:  # statistics of an evaluation are empty
        return out_t, save_mean * 0, save_invstd * 0
    return out_t, _flat(mean_t), _flat(rstd_t)


def batch_norm_backward_parts(grad_out, input, weight, running_mean, running_var, save_mean,
                              save_invstd, train, eps, mask):
    """The three results of native_batch_norm_backward, of differentiable operators."""
    ndim, dims = input.ndim, other_dims(input.ndim)
    mean, rstd = statistics_in_use(running_mean, running_var, save_mean, save_invstd, train, eps,
                                   ndim)
    dx, dw, db = normal_grads(grad_out, input, mean, rstd, per_channel(weight, ndim), dims, dims,
                              train, mask)
    return dx, _flat(dw), _flat(db)


def batch_norm_double_grads(grads, grad_out, input, weight, running_mean, running_var, save_mean,
                            save_invstd, train, eps):
    """Gradients of native_batch_norm_backward: grad_out, input, weight, save_mean, save_invstd."""
    ndim, dims = input.ndim, other_dims(input.ndim)
    mean, rstd = statistics_in_use(running_mean, running_var, save_mean, save_invstd, train, eps,
                                   ndim)
    a, b, c = grads
    g_out, g_input, g_mean, g_rstd, g_weight = normal_double_grads(
        (a, per_channel(b, ndim), per_channel(c, ndim)), grad_out, input, mean, rstd,
        per_channel(weight, ndim), dims, dims, train)
    if not train:
        return g_out, g_input, _flat(g_weight), None, None
    return g_out, g_input, _flat(g_weight), _flat(g_mean), _flat(g_rstd)


def batch_norm_backward_push(grad_out, grad_out_t, input, input_t, weight, weight_t, running_mean,
                             running_var, save_mean, save_mean_t, save_invstd, save_invstd_t,
                             train, eps, mask):
    """Tangents of the three results of native_batch_norm_backward."""
    ndim, dims = input.ndim, other_dims(input.ndim)
    mean, rstd = statistics_in_use(running_mean, running_var, save_mean, save_invstd, train, eps,
                                   ndim)
    mean_t = per_channel(save_mean_t, ndim) if train else None
    rstd_t = per_channel(save_invstd_t, ndim) if train else None
    dx, dw, db = normal_grads_push(
        grad_out, grad_out_t, input, input_t, mean, mean_t, rstd, rstd_t,
        per_channel(weight, ndim), per_channel(weight_t, ndim), dims, dims, train, mask)
    return dx, _flat(dw), _flat(db)


# ---------------------------------------------------------------------------------------------
# Group normalisation: (N, G, C / G, HxW), statistics per (N, G), parameters per channel

GROUP_DIMS, GROUP_SUMS = [2, 3], [0, 3]


def grouped(value, N, C, HxW, group):
    """The input of a group normalisation with a dim of its own for the groups."""
    return None if value is None else value.reshape([N, group, C // group, HxW])


def group_statistic(value, N, group):
    """A statistic of shape (N, G) that broadcasts against a grouped input."""
    return None if value is None else value.reshape([N, group, 1, 1])


def group_parameter(value, C, group):
    """A parameter per channel that broadcasts against a grouped input."""
    return None if value is None else value.reshape([1, group, C // group, 1])


def group_norm_grads(grads, input, weight, mean, rstd, N, C, HxW, group, mask, native):
    """Gradients of input, weight and bias; `native` is the fused backward operator."""
    grad, grad_mean, grad_rstd = grads
    wanted = [bool(m) for m in mask]
    dx = dw = db = None
    if grad is not None:
        dx, dw, db = native(grad, input, mean, rstd, weight, N, C, HxW, group, wanted)
    if wanted[0] and (grad_mean is not None or grad_rstd is not None):
        through = statistics_grads(
            group_statistic(grad_mean, N, group), group_statistic(grad_rstd, N, group),
            grouped(input, N, C, HxW, group), group_statistic(mean, N, group),
            group_statistic(rstd, N, group), C // group * HxW)
        dx = added(dx, through.reshape(input.shape))
    return tuple(value if want else None for value, want in zip((dx, dw, db), wanted, strict=True))


def group_norm_push(input, input_t, weight, weight_t, bias_t, mean, rstd, N, C, HxW, group):
    """Tangents of the output, the means and the reciprocal deviations of the groups."""
    out_t, mean_t, rstd_t = normal_push(
        grouped(input, N, C, HxW, group), grouped(input_t, N, C, HxW, group),
        group_statistic(mean, N, group), group_statistic(rstd, N, group),
        group_parameter(weight, C, group), group_parameter(weight_t, C, group),
        group_parameter(bias_t, C, group), GROUP_DIMS, True)
    return out_t.reshape(input.shape), mean_t.reshape([N, group]), rstd_t.reshape([N, group])


def group_norm_backward_parts(grad_out, input, mean, rstd, weight, N, C, HxW, group, mask):
    """The three results of native_group_norm_backward, of differentiable operators."""
    dx, dw, db = normal_grads(
        grouped(grad_out, N, C, HxW, group), grouped(input, N, C, HxW, group),
        group_statistic(mean, N, group), group_statistic(rstd, N, group),
        group_parameter(weight, C, group), GROUP_DIMS, GROUP_SUMS, True, mask)
    return None if dx is None else dx.reshape(input.shape), _flat(dw), _flat(db)


def group_norm_double_grads(grads, grad_out, input, mean, rstd, weight, N, C, HxW, group):
    """Gradients of native_group_norm_backward: grad_out, input, mean, rstd and weight."""
    a, b, c = grads
    g_out, g_input, g_mean, g_rstd, g_weight = normal_double_grads(
        (grouped(a, N, C, HxW, group), group_parameter(b, C, group), group_parameter(c, C, group)),
        grouped(grad_out, N, C, HxW, group), grouped(input, N, C, HxW, group),
        group_statistic(mean, N, group), group_statistic(rstd, N, group),
        group_parameter(weight, C, group), GROUP_DIMS, GROUP_SUMS, True)

    def shaped(value, shape):
        return None if value is None else value.reshape(shape)

    return (shaped(g_out, input.shape), shaped(g_input, input.shape), shaped(g_mean, [N, group]),
            shaped(g_rstd, [N, group]), _flat(g_weight))


def group_norm_backward_push(grad_out, grad_out_t, input, input_t, mean, mean_t, rstd, rstd_t,
                             weight, weight_t, N, C, HxW, group, mask):
    """Tangents of the three results of native_group_norm_backward."""
    dx, dw, db = normal_grads_push(
        *(grouped(v, N, C, HxW, group) for v in (grad_out, grad_out_t, input, input_t)),
        *(group_statistic(v, N, group) for v in (mean, mean_t, rstd, rstd_t)),
        group_parameter(weight, C, group), group_parameter(weight_t, C, group),
        GROUP_DIMS, GROUP_SUMS, True, mask)
    return None if dx is None else dx.reshape(input.shape), _flat(dw), _flat(db)


# ---------------------------------------------------------------------------------------------
# Root mean square: y = x r w, r = (M(x x) + eps)^(-1/2)


def rms_norm_parts(grad_out, input, normalized_shape, rstd, weight, mask):
    """Gradients of input and weight: r (u - y M(u y)) with u = g w, y = x r; S(g y)."""
    dims = trailing_dims(input.shape, normalized_shape)
    normal = input * rstd
    dx = dw = None
    if mask[0]:
        u = _times(grad_out, weight)
        dx = rstd * (u - normal * (u * normal).mean(dims, True))
    if mask[1] and weight is not None:
        dw = over_rows(grad_out * normal, leading_dims(input.shape, normalized_shape))
    return dx, dw


def rms_norm_grads(grads, input, normalized_shape, rstd, weight, mask, native):
    """Gradients of input and weight; `native` is the fused backward operator."""
    grad, grad_rstd = grads
    wanted = [bool(m) for m in mask]
    dx = dw = None
    if grad is not None:
        dx, dw = native(grad, input, normalized_shape, rstd, weight, wanted)
    if wanted[0] and grad_rstd is not None:
        dx = added(dx, grad_rstd * rstd ** 3 * input / -numel(normalized_shape))
    return dx if wanted[0] else None, dw if wanted[1] else None


def rms_norm_push(input, tangent, weight, weight_t, rstd, normalized_shape):
    """Tangents of the output and of the reciprocal root mean square."""
    dims = trailing_dims(input.shape, normalized_shape)
    rstd_t = -(rstd ** 3) * (input * tangent).mean(dims, True)
    out_t = _times(tangent * rstd + input * rstd_t, weight)
    return out_t if weight_t is None else out_t + input * rstd * weight_t, rstd_t


def rms_norm_double_grads(grads, grad_out, input, normalized_shape, rstd, weight):
    """Gradients of _fused_rms_norm_backward: grad_out, input, rstd and weight."""
    a, b = grads
    dims = trailing_dims(input.shape, normalized_shape)
    normal = input * rstd
    g_out = g_normal = g_rstd = g_weight = None
    if a is not None:
        u = _times(grad_out, weight)
        for_u = rstd * (a - normal * (a * normal).mean(dims, True))
        g_out = _times(for_u, weight)
        if weight is not None:
            g_weight = over_rows(for_u * grad_out, leading_dims(input.shape, normalized_shape))
        g_rstd = (a * (u - normal * (u * normal).mean(dims, True))).sum(dims, True)
        g_normal = -rstd * (a * (u * normal).mean(dims, True) + u * (a * normal).mean(dims, True))
    if b is not None:
        g_out = added(g_out, b * normal)
        g_normal = added(g_normal, b * grad_out)
    g_input = None
    if g_normal is not None:
        g_input = g_normal * rstd
        g_rstd = added(g_rstd, (g_normal * input).sum(dims, True))
    return g_out, g_input, g_rstd, g_weight


def rms_norm_backward_push(grad_out, grad_out_t, input, input_t, rstd, rstd_t, weight, weight_t,
                           normalized_shape, mask):
    """Tangents of the two results of _fused_rms_norm_backward."""
    dims = trailing_dims(input.shape, normalized_shape)
    normal, normal_t = input * rstd, input_t * rstd + input * rstd_t
    dx = dw = None
    if mask[0]:
        u, u_t = _times(grad_out, weight), _times(grad_out_t, weight)
        if weight_t is not None:
            u_t = u_t + grad_out * weight_t
        along = (u * normal).mean(dims, True)
        along_t = (u_t * normal + u * normal_t).mean(dims, True)
        dx = (rstd_t * (u - normal * along)
              + rstd * (u_t - normal_t * along - normal * along_t))
    if mask[1] and weight is not None:
        dw = over_rows(grad_out_t * normal + grad_out * normal_t,
                       leading_dims(input.shape, normalized_shape))
    return dx, dw


# ---------------------------------------------------------------------------------------------
# Weight normalisation: w = v g / n, n the norm of v over all dims but one


def weight_norm_dims(ndim: int, dim: int) -> list[int]:
    """The dims that the norm runs over."""
    return [d for d in range(ndim) if d != dim % ndim]


def weight_norm_grads(grads, v, g, norms, dim):
    """Gradients of v and g, from those of w and of the norms.

    bar(n) = -sum(bar(w) v) g / n^2 + its own; bar(v) = bar(w) g / n + bar(n) v / n;
    bar(g) = sum(bar(w) v) / n.
    """
    grad_w, grad_norms = grads
    v = single(v)
    dims = weight_norm_dims(v.ndim, dim)
    shape = [1] * v.ndim
    shape[dim] = v.shape[dim]
    gain, size = g.reshape(shape), norms.reshape(shape)
    for_v = for_g = None
    for_size = None if grad_norms is None else grad_norms.reshape(shape)
    if grad_w is not None:
        along = (grad_w * v).sum(dims, True) if dims else grad_w * v
        for_g = (along / size).reshape(g.shape)
        for_v = grad_w * (gain / size)
        for_size = added(for_size, -along * gain / (size * size))
    if for_size is not None:
        for_v = added(for_v, for_size * v / size)
    return for_v, for_g


def weight_norm_push(v, v_t, g, g_t, norms, dim):
    """Tangents of w and of the norms."""
    dims = weight_norm_dims(v.ndim, dim)
    shape = [1] * v.ndim
    shape[dim] = v.shape[dim]
    gain, gain_t, size = g.reshape(shape), g_t.reshape(shape), norms.reshape(shape)
    along = (v * v_t).sum(dims, True) if dims else v * v_t
    size_t = along / size
    w_t = v_t * (gain / size) + v * (gain_t / size - gain * size_t / (size * size))
    return w_t, size_t.reshape(norms.shape)
