"""Group, root-mean-square and weight normalisation.

Formulas are in `formulas/batchnorm.py`, batch normalisation in `ops/batchnorm.py`, layer
normalisation in `ops/norm.py`.
"""

from __future__ import annotations

from ..array import dtype as dt
from ..array.dims import numel, wrap_dim
from ..core.op import Composite
from ..errors import ShapeError
from ..formulas.batchnorm import (
    GROUP_DIMS,
    group_norm_backward_parts,
    group_parameter,
    grouped,
    rms_norm_parts,
    weight_norm_dims,
    weight_norm_grads,
)
from ..formulas.norm import of_rows, trailing_dims
from ..table.packets import ops
from .batchnorm import statistics_dtype
from .kinds import Free, Keeping
from .layout import in_front
from .norm import (
    Normalization,
    check_gradient,
    check_normalized,
    narrowed,
    statistics_shape,
    widened,
)
from .pointwise import refuse

# ---------------------------------------------------------------------------------------------
# Groups of channels


def _check_groups(input, C, group, weight, bias):
    if group <= 0 or C % group:
        raise ShapeError("Expected number of channels in input to be divisible by num_groups, but "
                         f"got input of shape {list(input.shape)} and num_groups={group}")
    for label, param in (("weight", weight), ("bias", bias)):
        if param is not None and tuple(param.shape) != (C,):
            raise ShapeError(f"Expected {label} to be a vector of size equal to the number of "
                             f"channels in input, but got {label} of shape {list(param.shape)} and "
                             f"input of shape {list(input.shape)}")


def _check_rows(input, N, C, HxW) -> None:
    if min(N, C, HxW) < 0 or input.size != N * C * HxW:
        raise ShapeError("Expected X.numel() == N * C * HxW to be true, but got false: "
                         f"{list(input.shape)}, N = {N}, C = {C}, HxW = {HxW}")


def _per_channel(xp, param):
    return widened(xp, param)[:, None]


class native_group_norm(Normalization):
    """Groups of channels with zero mean and unit variance, then scale and shift; also the
    statistics."""

    schema = ("native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C,"
              " SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)")
    core = True
    memory_format = "channels"
    grad = {"input, weight, bias": (
        "group_norm_grads(grads, input, weight, result1, result2, N, C, HxW, group,"
        " grad_input_mask, native_group_norm_backward)")}
    push = {"result0, result1, result2": (
        "group_norm_push(input_p, input_t, weight_p, weight_t, bias_t, result1, result2, N, C, HxW,"
        " group)")}

    def run(xp, input, weight, bias, N, C, HxW, group, eps):
        _check_groups(input, C, group, weight, bias)
        _check_rows(input, N, C, HxW)
        refuse("GroupNormKernelImpl", input, "biuc")
        dtype = statistics_dtype(input, weight, bias)
        count = C // group * HxW
        x = widened(xp, input).reshape((N * group, count))
        if not x.size:
            mean, rstd = (xp.full((N, group), v, dtype=dtype) for v in (0, xp.nan))
            return xp.zeros(input.shape, dtype=input.dtype), mean, rstd
        mean = x.mean(axis=1, keepdims=True)
        out = x - mean
        rstd = 1 / xp.sqrt(xp.einsum("ij,ij->i", out, out)[:, None] / count + eps)
        rstd = rstd.astype(x.dtype)
        out *= rstd
        out = out.reshape((N, C, HxW))
        if weight is not None:
            out *= _per_channel(xp, weight)
        if bias is not None:
            out += _per_channel(xp, bias)
        return (narrowed(out, input.dtype).reshape(input.shape),
                narrowed(mean, dtype).reshape((N, group)),
                narrowed(rstd, dtype).reshape((N, group)))

    def shape(input, weight, bias, N, C, HxW, group, eps):
        _check_groups(input, C, group, weight, bias)
        return [tuple(input.shape), (N, group), (N, group)]

    def dtype(input, weight, bias, N, C, HxW, group, eps):
        dtype = statistics_dtype(input, weight, bias)
        return [input.dtype, dtype, dtype]

    def batch(n, batched, input, weight, bias, N, C, HxW, group, eps):
        # examples become further rows; parameters that differ between them are applied afterwards
        fused = not (batched[1] or batched[2])
        x = in_front(input, batched[0], n)
        out, mean, rstd = ops.native_group_norm(
            x.reshape([n * N, C, HxW]), weight if fused else None, bias if fused else None,
            n * N, C, HxW, group, eps)
        if not fused:
            out = out.reshape([n, N, C, HxW])
            for param, own, apply in ((weight, batched[1], ops.mul), (bias, batched[2], ops.add)):
                if param is not None:
                    out = apply(out, in_front(param, own, n).reshape([n, 1, C, 1]))
        return out.reshape(x.shape), mean.reshape([n, N, group]), rstd.reshape([n, N, group])

    def decomp(input, weight, bias, N, C, HxW, group, eps):
        dtype = (input if weight is None else weight).dtype
        x = input.to(dt.float32) if input.dtype.itemsize == 2 else input
        rows = grouped(x, N, C, HxW, group)
        mean = rows.mean(GROUP_DIMS, True)
        centred = rows - mean
        rstd = ((centred * centred).mean(GROUP_DIMS, True) + eps).rsqrt()
        out = centred * rstd
        if weight is not None:
            out = out * group_parameter(weight, C, group)
        if bias is not None:
            out = out + group_parameter(bias, C, group)
        return (out.reshape(input.shape).to(input.dtype), mean.reshape([N, group]).to(dtype),
                rstd.reshape([N, group]).to(dtype))

    def samples(s):
        yield s(s.real(2, 4, 3), s.real(4), s.real(4), 2, 4, 3, 2, 1e-3)
        yield s(s.real(2, 6, 2, 2), None, None, 2, 6, 4, 3, 1e-5)
        yield s(s.real(3, 2, 4).transpose(0, 2), s.real(2), None, 4, 2, 3, 1, 1e-3)
        yield s(s.real(3, 4), None, s.real(4), 3, 4, 1, 2, 1e-3)


def _batched_group_backward(n, batched, grad_out, input, mean, rstd, weight, N, C, HxW, group,
                            output_mask):
    """Examples become further rows; sums for the parameters are made per example."""
    g, x, mean, rstd = (in_front(t, b, n) for t, b in
                        zip((grad_out, input, mean, rstd), batched, strict=False))
    g, x = g.reshape([n, N, group, C // group, HxW]), x.reshape([n, N, group, C // group, HxW])
    mean, rstd = mean.reshape([n, N, group, 1, 1]), rstd.reshape([n, N, group, 1, 1])
    dims = [3, 4]
    normal = (x - mean) * rstd
    dx = dw = db = None
    if output_mask[0]:
        u = g
        if weight is not None:
            u = g * in_front(weight, batched[4], n).reshape([n, 1, group, C // group, 1])
        dx = rstd * (u - u.mean(dims, True) - normal * (u * normal).mean(dims, True))
        dx = dx.reshape([n, *(input.shape[1:] if batched[1] else input.shape)])
    if output_mask[1]:
        dw = (g * normal).sum([1, 4]).reshape([n, C])
    if output_mask[2]:
        db = g.sum([1, 4]).reshape([n, C])
    return dx, dw, db


class native_group_norm_backward(Keeping):
    """Gradients of group normalisation for input, weight and bias, as the mask asks."""

    schema = ("native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd,"
              " Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask)"
              " -> (Tensor, Tensor, Tensor)")
    core = "apart"
    same_dtype = ("grad_out", "input")
    or_float32 = ("mean", "rstd", "weight")
    memory_format = "channels"
    grad = {"grad_out, input, mean, rstd, weight": (
        "group_norm_double_grads(grads, grad_out, input, mean, rstd, weight, N, C, HxW, group)")}
    push = {"result0, result1, result2": (
        "group_norm_backward_push(grad_out_p, grad_out_t, input_p, input_t, mean_p, mean_t, rstd_p,"
        " rstd_t, weight_p, weight_t, N, C, HxW, group, output_mask)")}
    cost = "reduce"
    method = function = False
    batch = _batched_group_backward

    def run(xp, grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask):
        _check_groups(input, C, group, weight, None)
        _check_rows(input, N, C, HxW)
        count = C // group * HxW
        g = widened(xp, grad_out).reshape((N, C, HxW))
        scale = widened(xp, rstd).reshape((N * group, 1))
        normal = widened(xp, input).reshape((N * group, count)) - widened(xp, mean).reshape(
            (N * group, 1))
        normal *= scale
        dx = dw = db = None
        if output_mask[0]:
            u = g if weight is None else g * _per_channel(xp, weight)
            u = u.reshape((N * group, count))
            along = xp.einsum("ij,ij->i", u, normal)[:, None] / max(count, 1)
            dx = u - u.mean(axis=1, keepdims=True) if u.size else u.copy()
            dx -= normal * along
            dx *= scale
            dx = narrowed(dx, input.dtype).reshape(input.shape)
        dtype = statistics_dtype(input, weight)
        if output_mask[1]:
            dw = narrowed(xp.einsum("ncl,ncl->c", g, normal.reshape(g.shape)), dtype)
        if output_mask[2]:
            db = narrowed(g.sum(axis=(0, 2)), dtype)
        return dx, dw, db

    def shape(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask):
        shapes = (tuple(input.shape), (C,), (C,))
        return [s if m else None for s, m in zip(shapes, output_mask, strict=True)]

    def dtype(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask):
        dtype = statistics_dtype(input, weight)
        return [input.dtype, dtype, dtype]

    def decomp(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask):
        results = group_norm_backward_parts(grad_out, input, mean, rstd, weight, N, C, HxW, group,
                                            output_mask)
        dtype = (input if weight is None else weight).dtype
        return tuple(None if r is None else r.to(d) for r, d in
                     zip(results, (input.dtype, dtype, dtype), strict=True))

    def samples(s):
        yield s(s.real(2, 4, 3), s.real(2, 4, 3), s.real(2, 2), s.real(2, 2, low=0.5), s.real(4), 2,
                4, 3, 2, [True, True, True])
        yield s(s.real(2, 6, 2, 2), s.real(2, 6, 2, 2), s.real(2, 3), s.real(2, 3, low=0.5), None,
                2, 6, 4, 3, [True, False, True])
        yield s(s.real(3, 2), s.real(2, 3).T, s.real(3, 1), s.real(3, 1, low=0.5), s.real(2), 3, 2,
                1, 1, [False, True, False])


class group_norm(Free):
    """Zero mean and unit variance of each group of channels, then scale and shift."""

    schema = ("group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None,"
              " float eps=1e-05, bool cudnn_enabled=True) -> Tensor")

    def compose(input, num_groups, weight, bias, eps, cudnn_enabled):
        channels = input.shape[wrap_dim(1, input.ndim, scalar_ok=False)]
        _check_groups(input, channels, num_groups, weight, bias)
        return ops.native_group_norm(input, weight, bias, input.shape[0], channels,
                                     numel(input.shape[2:]), num_groups, eps)[0]

    def samples(s):
        yield s(s.real(2, 4, 3), 2, s.real(4), s.real(4))
        yield s(s.real(2, 6, 2, 2), 3)
        yield s(s.real(0, 4, 3), 2)


# ---------------------------------------------------------------------------------------------
# Root mean square


class _fused_rms_norm(Keeping):
    """Rows divided by their root mean square, scaled; also the reciprocal root mean square."""

    schema = ("_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps)"
              " -> (Tensor, Tensor)")
    grad = {"input, weight": (
        "rms_norm_grads(grads, input, normalized_shape, result1, weight, grad_input_mask,"
        " _fused_rms_norm_backward)")}
    push = {"result0, result1": (
        "rms_norm_push(input_p, input_t, weight_p, weight_t, result1, normalized_shape)")}
    cost = "reduce"
    method = function = False

    def run(xp, input, normalized_shape, weight, eps):
        check_normalized("rms_norm", input, normalized_shape, ("weight", weight))
        refuse("rms_norm", input, "biuc")
        x = widened(xp, input)
        rows = x.reshape((-1 if x.size else numel(statistics_shape(x.shape, normalized_shape)),
                          numel(normalized_shape)))
        eps = _rms_eps(x.dtype, eps)
        mean = xp.einsum("ij,ij->i", rows, rows) / max(rows.shape[1], 1)
        rstd = (1 / xp.sqrt(mean + eps)).astype(x.dtype)
        rstd = rstd.reshape(statistics_shape(x.shape, normalized_shape))
        out = x * rstd
        if weight is not None:
            out *= widened(xp, weight)
        return narrowed(out, input.dtype), rstd

    def shape(input, normalized_shape, weight, eps):
        check_normalized("rms_norm", input, normalized_shape, ("weight", weight))
        return [tuple(input.shape), statistics_shape(input.shape, normalized_shape)]

    def dtype(input, normalized_shape, weight, eps):
        return [input.dtype, dt.float32 if input.dtype.itemsize == 2 else input.dtype]

    def batch(n, batched, input, normalized_shape, weight, eps):
        x = in_front(input, batched[0], n)
        if not batched[2]:
            return ops._fused_rms_norm(x, normalized_shape, weight, eps)
        if x.dtype.itemsize == 2:
            x, eps = x.to(dt.float32), _rms_eps(dt.float32.np, eps)  # rounded once, at the end
        out, rstd = ops._fused_rms_norm(x, normalized_shape, None, eps)
        lead = x.ndim - 1 - len(normalized_shape)
        out = out * weight.reshape([n, *[1] * lead, *weight.shape[1:]])
        return out.to(input.dtype), rstd

    def decomp(input, normalized_shape, weight, eps):
        check_normalized("rms_norm", input, normalized_shape, ("weight", weight))
        x = input.to(dt.float32) if input.dtype.itemsize == 2 else input
        dims = trailing_dims(x.shape, normalized_shape)
        rstd = ((x * x).mean(dims, True) + _rms_eps(x.dtype.np, eps)).rsqrt()
        out = x * rstd
        if weight is not None:
            out = out * weight
        return out.to(input.dtype), rstd

    def samples(s):
        yield s(s.real(3, 4), [4], s.real(4), 1e-3)
        yield s(s.real(2, 3, 4), [3, 4], None, None)
        yield s(s.real(4, 3).T, [4], s.real(4), None)
        yield s(s.real(4), [4], s.real(4), 1e-3)
        yield s(s.real(0, 4), [4], s.real(4), 1e-3)


def _rms_eps(dtype, eps):
    return dt.finfo(dt.of(dtype)).eps if eps is None else eps


class _fused_rms_norm_backward(Keeping):
    """Gradients of root-mean-square normalisation for input and weight, as the mask asks."""

    schema = ("_fused_rms_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape,"
              " Tensor rstd, Tensor? weight, bool[2] output_mask) -> (Tensor, Tensor)")
    same_dtype = ("grad_out", "input")
    or_float32 = ("rstd", "weight")
    grad = {"grad_out, input, rstd, weight": (
        "rms_norm_double_grads(grads, grad_out, input, normalized_shape, rstd, weight)")}
    push = {"result0, result1": (
        "rms_norm_backward_push(grad_out_p, grad_out_t, input_p, input_t, rstd_p, rstd_t, weight_p,"
        " weight_t, normalized_shape, output_mask)")}
    cost = "reduce"
    method = function = False

    def run(xp, grad_out, input, normalized_shape, rstd, weight, output_mask):
        check_normalized("rms_norm", input, normalized_shape, ("weight", weight))
        check_gradient("rms_norm", grad_out, input)
        count = numel(normalized_shape)
        rows = numel(statistics_shape(input.shape, normalized_shape))
        g = widened(xp, grad_out).reshape((rows, count))
        scale = widened(xp, rstd).reshape((rows, 1))
        normal = widened(xp, input).reshape((rows, count)) * scale
        dx = dw = None
        if output_mask[0]:
            u = g if weight is None else g * widened(xp, weight).reshape(-1)
            along = xp.einsum("ij,ij->i", u, normal)[:, None] / max(count, 1)
            dx = narrowed((u - normal * along) * scale, input.dtype).reshape(input.shape)
        if output_mask[1] and weight is not None:
            dw = narrowed(xp.einsum("ij,ij->j", g, normal), weight.dtype).reshape(weight.shape)
        return dx, dw

    def shape(grad_out, input, normalized_shape, rstd, weight, output_mask):
        return [tuple(input.shape) if output_mask[0] else None,
                tuple(normalized_shape) if output_mask[1] and weight is not None else None]

    def dtype(grad_out, input, normalized_shape, rstd, weight, output_mask):
        return [input.dtype, input.dtype if weight is None else weight.dtype]

    def batch(n, batched, grad_out, input, normalized_shape, rstd, weight, output_mask):
        g, x, rstd = (in_front(t, b, n) for t, b in
                      zip((grad_out, input, rstd), (*batched[:2], batched[3]), strict=True))
        lead = x.ndim - 1 - len(normalized_shape)
        if weight is not None:
            weight = in_front(weight, batched[4], n)
            weight = weight.reshape([n, *[1] * lead, *weight.shape[1:]])
        dx, _ = rms_norm_parts(g, x, normalized_shape, rstd, weight, [output_mask[0], False])
        dw = None
        if output_mask[1] and weight is not None:
            dw = g * x * rstd
            dw = dw.sum(list(range(1, 1 + lead))) if lead else dw
        return dx, dw

    def decomp(grad_out, input, normalized_shape, rstd, weight, output_mask):
        rstd = of_rows(rstd, input.shape, normalized_shape)
        dx, dw = rms_norm_parts(grad_out, input, normalized_shape, rstd, weight, output_mask)
        return (None if dx is None else dx.to(input.dtype),
                None if dw is None else dw.to(weight.dtype))

    def samples(s):
        yield s(s.real(3, 4), s.real(3, 4), [4], s.real(3, 1, low=0.5), s.real(4), [True, True])
        yield s(s.real(2, 3, 4), s.real(2, 3, 4), [3, 4], s.real(2, 1, 1, low=0.5), None,
                [True, False])
        yield s(s.real(4), s.real(4), [4], s.real(1, low=0.5), s.real(4), [False, True])


# ---------------------------------------------------------------------------------------------
# Weights as direction and size


def _norm_shape(shape, dim: int):
    return tuple(n if d == dim % len(shape) else 1 for d, n in enumerate(shape))


class norm_except_dim(Free):
    """Norm over all dims but one, which stays; over everything for dim -1."""

    schema = "norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor"

    def compose(v, pow, dim):
        if dim == -1:
            return ops.linalg_vector_norm(v, pow)
        dims = weight_norm_dims(v.ndim, wrap_dim(dim, v.ndim))
        return ops.linalg_vector_norm(v, pow, dims, True) if dims else v.abs()

    samples = lambda s: [s(s.real(3, 4, 2)), s(s.real(3, 4, 2), 2, 1), s(s.real(3, 4), 3, -1)]


class _weight_norm(Free):
    """The direction of `v` with the size `g`: v g / norm(v)."""

    schema = "_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor"

    def compose(v, g, dim):
        if dim in (0, v.ndim - 1):
            return ops._weight_norm_interface(v, g, dim)[0]
        return v * (g / ops.norm_except_dim(v, 2, dim))

    def samples(s):
        yield s(s.real(3, 4, 2), s.real(3, 1, 1))
        yield s(s.real(3, 4, 2), s.real(1, 4, 1), 1)
        yield s(s.real(3, 4, 2), s.real(1, 1, 2), 2)
        yield s(s.real(3, 4), s.real(), -1)


class _weight_norm_interface(Keeping):
    """v g / norm(v) for the first or last dim; also the norms."""

    schema = "_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)"
    same_dtype = ("v", "g")
    grad = {"v, g": "weight_norm_grads(grads, v, g, result1, dim)"}
    push = {"result0, result1": "weight_norm_push(v_p, v_t, g_p, g_t, result1, dim)"}
    cost = "reduce"
    method = function = False

    def run(xp, v, g, dim):
        refuse("weight_norm_kernel", v, "biuc")
        dim = _edge_dim(v, dim)
        x = widened(xp, v)
        shape = _norm_shape(v.shape, dim)
        axes = tuple(weight_norm_dims(v.ndim, dim))
        norms = xp.sqrt((x * x).sum(axis=axes, keepdims=True)) if axes else xp.abs(x)
        out = x * (widened(xp, g).reshape(shape) / norms)
        return narrowed(out, v.dtype), norms.reshape(g.shape)  # norms of half precision stay wide

    def shape(v, g, dim):
        return [tuple(v.shape), tuple(g.shape)]

    def dtype(v, g, dim):
        return [v.dtype, dt.float32 if v.dtype.itemsize == 2 else v.dtype]

    def batch(n, batched, v, g, dim):
        v, g = in_front(v, batched[0], n), in_front(g, batched[1], n)
        dim = wrap_dim(dim, v.ndim - 1) + 1
        dims = [d for d in range(1, v.ndim) if d != dim]
        x = v.to(dt.float32) if v.dtype.itemsize == 2 else v
        norms = ops.linalg_vector_norm(x, 2, dims, True) if dims else x.abs()
        return (x * (g.reshape(norms.shape) / norms)).to(v.dtype), norms.reshape(g.shape)

    def decomp(v, g, dim=0):
        dims = weight_norm_dims(v.ndim, _edge_dim(v, dim))
        x = v.to(dt.float32) if v.dtype.itemsize == 2 else v
        norms = (x * x).sum(dims, True).sqrt() if dims else x.abs()
        out = x * (g.reshape(norms.shape) / norms)
        return out.to(v.dtype), norms.reshape(g.shape)

    def samples(s):
        yield s(s.real(3, 4, 2), s.real(3, 1, 1))
        yield s(s.real(3, 4, 2), s.real(2), 2)
        yield s(s.real(4, 3).T, s.real(1, 4), 1)
        yield s(s.real(3), s.real(3), 0)


def _edge_dim(v, dim: int) -> int:
    if dim not in (0, v.ndim - 1):
        raise ShapeError("fused kernels can only be applied for first or last dim")
    return dim


class _weight_norm_interface_backward(Composite):
    """Gradients of _weight_norm_interface for v and g."""

    schema = ("_weight_norm_interface_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g,"
              " Tensor saved_norms, int dim) -> (Tensor, Tensor)")
    same_dtype = ("grad_w", "saved_v", "saved_g", "saved_norms")
    method = function = False

    def compose(grad_w, saved_v, saved_g, saved_norms, dim):
        for_v, for_g = weight_norm_grads((grad_w, None), saved_v, saved_g, saved_norms, dim)
        return for_v.to(saved_v.dtype), for_g.to(saved_g.dtype)  # norms of half precision are wide

    def samples(s):
        yield s(s.real(3, 4, 2), s.real(3, 4, 2), s.real(3, 1, 1), s.real(3, 1, 1, low=0.5), 0)


class _weight_norm_differentiable_backward(Composite):
    """The same as _weight_norm_interface_backward, for operands of any dtypes: those of both
    results are the common one of all but the norms, which are wide beside half precision."""

    schema = ("_weight_norm_differentiable_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g,"
              " Tensor saved_norms, int dim) -> (Tensor, Tensor)")
    method = function = False

    def compose(grad_w, saved_v, saved_g, saved_norms, dim):
        common = dt.result_type([grad_w, saved_v, saved_g])
        for_v, for_g = weight_norm_grads((grad_w, None), saved_v, saved_g, saved_norms, dim)
        return for_v.to(common), for_g.to(common)

    samples = _weight_norm_interface_backward.samples
