"""Derivative formulas of the softmax family and of normalisation.

Public names are in scope of every formula string.  Everything is made of differentiable
operators, so that the formulas have derivatives of any order.  Read `ops/norm.py` next.
"""

from __future__ import annotations

from ..array.dims import numel
from . import added, on_arrays


def softmax_output_grad(grad, grad_output, output, dim):
    """Gradient of softmax-backward, y * (g - sum(g * y)), with respect to y."""
    inner = (grad_output * output).sum(dim, True)
    return grad * (grad_output - inner) - grad_output * (grad * output).sum(dim, True)


def softmax_backward_push(grad_output, output, output_t, dim):
    """Tangent of softmax-backward when only y moves."""
    inner = (grad_output * output).sum(dim, True)
    return output_t * (grad_output - inner) - output * (grad_output * output_t).sum(dim, True)


def softmax_push(tangent, output, dim):
    """Tangent of a softmax with value `output`; the Jacobian is symmetric."""
    weighted = output * tangent
    return weighted - output * weighted.sum(dim, True)


def log_softmax_push(tangent, output, dim):
    """Tangent of a log-softmax with value `output`."""
    return tangent - (output.exp() * tangent).sum(dim, True)


def full_softmax_mask(mask, shape, mask_type):
    """The mask of a masked softmax in the shape of its scores."""
    if mask_type == 0 and mask.ndim == 2:
        mask = mask.reshape([1, 1, *mask.shape])
    elif mask_type == 1 and mask.ndim == 2:
        mask = mask.reshape([mask.shape[0], 1, 1, mask.shape[1]])
    return mask.expand(shape)


def masked_softmax_output_grad(grad, grad_output, output, mask, dim):
    """`softmax_output_grad` among the elements where the mask is false."""
    parts = (value.masked_fill(mask, 0) for value in (grad, grad_output, output))
    return softmax_output_grad(*parts, -1 if dim is None else dim).masked_fill(mask, 0)


def masked_softmax_backward_push(grad_output, output, output_t, mask, dim):
    """`softmax_backward_push` among the elements where the mask is false."""
    parts = (value.masked_fill(mask, 0) for value in (grad_output, output, output_t))
    return softmax_backward_push(*parts, -1 if dim is None else dim).masked_fill(mask, 0)


# ---------------------------------------------------------------------------------------------
# Layer normalisation.
#
# Note: statistics as outputs.  `mean` and `rstd` of native_layer_norm are treated as
# differentiable outputs and, in the backward operator, as independent inputs.  Then each formula
# only needs the partial derivatives in front of it, and every order and both modes are exact
# without recovering eps.


def trailing_dims(shape, normalized_shape) -> list[int]:
    """The normalised dims: as many as `normalized_shape` has, from the end."""
    return list(range(len(shape) - len(normalized_shape), len(shape)))


def leading_dims(shape, normalized_shape) -> list[int]:
    """The dims in front of the normalised ones."""
    return list(range(len(shape) - len(normalized_shape)))


def over_rows(value, lead):
    """Sum over the leading dims; a sum over no dims must not become a sum over all."""
    return value.sum(lead) if lead else value


@on_arrays()
def layer_norm_grads(grads, input, normalized_shape, mean, rstd, weight, bias, mask, native):
    """Gradients of input, weight and bias; `native` is the fused backward operator."""
    grad, grad_mean, grad_rstd = grads
    wanted = [bool(m) for m in mask]
    dx = dw = db = None
    if grad is not None:
        dx, dw, db = native(grad, input, normalized_shape, mean, rstd, weight, bias, wanted)
    if wanted[0] and (grad_mean is not None or grad_rstd is not None):
        count = numel(normalized_shape)
        if grad_mean is not None:
            dx = added(dx, (grad_mean / count).expand(input.shape))
        if grad_rstd is not None:
            dx = added(dx, grad_rstd * rstd ** 3 * (mean - input) / count)
    return (dx if wanted[0] else None, dw if wanted[1] else None, db if wanted[2] else None)


def of_rows(statistic, shape, normalized_shape):
    """One number per row, in whatever shape it was given, that broadcasts with the rows."""
    rank = len(normalized_shape)
    wanted = (*shape[: len(shape) - rank], *(1,) * rank)
    return statistic if tuple(statistic.shape) == wanted else statistic.reshape(wanted)


def layer_norm_push(input, tangent, weight, weight_t, bias_t, mean, rstd, normalized_shape):
    """Tangents of the output, the mean and the reciprocal standard deviation."""
    dims = trailing_dims(input.shape, normalized_shape)
    mean_t = tangent.mean(dims, True)
    centred, centred_t = input - mean, tangent - mean_t
    rstd_t = -(rstd ** 3) * (centred * tangent).mean(dims, True)
    out_t = centred_t * rstd + centred * rstd_t
    if weight is not None:
        out_t = out_t * weight
        if weight_t is not None:
            out_t = out_t + centred * rstd * weight_t
    if bias_t is not None:
        out_t = out_t + bias_t
    return out_t, mean_t, rstd_t


def layer_norm_backward_parts(grad_out, input, normalized_shape, mean, rstd, weight, mask):
    """The three results of native_layer_norm_backward, of differentiable operators."""
    dims = trailing_dims(input.shape, normalized_shape)
    lead = leading_dims(input.shape, normalized_shape)
    normal = (input - mean) * rstd
    dx = dw = db = None
    if mask[0]:
        scaled = grad_out if weight is None else grad_out * weight
        dx = rstd * without_normal(scaled, normal, dims)
    if mask[1] and weight is not None:
        dw = over_rows(grad_out * normal, lead)
    if mask[2]:
        db = over_rows(grad_out, lead)
    return dx, dw, db


def without_normal(value, normal, dims):
    """Remove the mean and the component along `normal`: the symmetric core of the backward."""
    return value - value.mean(dims, True) - normal * (value * normal).mean(dims, True)


def from_sums(for_dw, for_db, g, normal, for_g, for_normal):
    """Adds to the gradients of g and of the normalised values what comes by way of the sums that
    are the gradients of weight and bias."""
    if for_dw is not None:
        for_g = added(for_g, for_dw * normal)
        for_normal = added(for_normal, for_dw * g)
    if for_db is not None:
        for_g = added(for_g, for_db.expand(g.shape))
    return for_g, for_normal


def through_normal(g_normal, centred, rstd, g_rstd, dims):
    """Gradients of input, mean and rstd, where (input - mean) * rstd has `g_normal`."""
    if g_normal is None:
        return None, None, g_rstd
    g_input = g_normal * rstd
    return (g_input, -g_input.sum(dims, True),
            added(g_rstd, (g_normal * centred).sum(dims, True)))


def layer_norm_double_grads(grads, grad_out, input, normalized_shape, mean, rstd, weight):
    """Gradients of native_layer_norm_backward for grad_out, input, mean, rstd and weight.

    With xh = (input - mean) * rstd, u = grad_out * weight and P the projection above, the
    operator gives rstd * P(u), the row sum of grad_out * xh, and the row sum of grad_out.
    `a`, `b`, `c` are the gradients of these three; P is symmetric for fixed xh.
    """
    a, b, c = grads
    dims = trailing_dims(input.shape, normalized_shape)
    lead = leading_dims(input.shape, normalized_shape)
    centred = input - mean
    normal = centred * rstd
    g_out = g_normal = g_rstd = g_weight = None
    if a is not None:
        u = grad_out if weight is None else grad_out * weight
        g_u = rstd * without_normal(a, normal, dims)
        g_out = g_u if weight is None else g_u * weight
        if weight is not None:
            g_weight = over_rows(g_u * grad_out, lead)
        g_rstd = (a * without_normal(u, normal, dims)).sum(dims, True)
        g_normal = -rstd * (a * (u * normal).mean(dims, True) + u * (a * normal).mean(dims, True))
    g_out, g_normal = from_sums(b, c, grad_out, normal, g_out, g_normal)
    return g_out, *through_normal(g_normal, centred, rstd, g_rstd, dims), g_weight


def layer_norm_backward_push(grad_out, grad_out_t, input, input_t, mean, mean_t, rstd, rstd_t,
                             weight, weight_t, normalized_shape, mask):
    """Tangents of the three results of native_layer_norm_backward."""
    dims = trailing_dims(input.shape, normalized_shape)
    lead = leading_dims(input.shape, normalized_shape)
    centred = input - mean
    normal = centred * rstd
    normal_t = (input_t - mean_t) * rstd + centred * rstd_t
    dx = dw = db = None
    if mask[0]:
        u, u_t = grad_out, grad_out_t
        if weight is not None:
            u, u_t = grad_out * weight, grad_out_t * weight
            if weight_t is not None:
                u_t = u_t + grad_out * weight_t
        moved = normal_t * (u * normal).mean(dims, True) + normal * (u * normal_t).mean(dims, True)
        dx = (rstd_t * without_normal(u, normal, dims)
              + rstd * (without_normal(u_t, normal, dims) - moved))
    if mask[1] and weight is not None:
        dw = over_rows(grad_out_t * normal + grad_out * normal_t, lead)
    if mask[2]:
        db = over_rows(grad_out_t, lead)
    return dx, dw, db
