"""A captured graph of core operators as a function for JAX: for `bench/peaks.py`."""

from __future__ import annotations

import operator

import jax
import jax.numpy as jnp
from jax import lax


def _dtype(kwargs):
    kind = kwargs.get("dtype")
    return None if kind is None else str(kind).removeprefix("torch.")


def _axes(dims):
    return None if not dims and dims != 0 else tuple(dims) if isinstance(dims, list) else dims


def _norm(x, axes, eps):
    mean = x.mean(axes, keepdims=True)
    rstd = lax.rsqrt(((x - mean) ** 2).mean(axes, keepdims=True) + eps)
    return (x - mean) * rstd, mean, rstd


def _layer_norm(x, shape, gain, shift, eps):
    y, mean, rstd = _norm(x, tuple(range(x.ndim - len(shape), x.ndim)), eps)
    return y * gain + shift, mean, rstd


def _batch_norm(x, gain, shift, training, momentum, eps):
    y, mean, rstd = _norm(x, (0, *range(2, x.ndim)), eps)
    wide = (-1, *(1,) * (x.ndim - 2))
    return y * gain.reshape(wide) + shift.reshape(wide), mean, rstd


def _group_norm(x, gain, shift, n, c, size, groups, eps):
    y, mean, rstd = _norm(x.reshape(n, groups, -1), 2, eps)
    y, wide = y.reshape(x.shape), (-1, *(1,) * (x.ndim - 2))
    return y * gain.reshape(wide) + shift.reshape(wide), mean, rstd


def _convolution(x, w, bias, stride, padding, dilation, transposed, output_padding, groups):
    names = ("NCHW", "OIHW", "NCHW")
    pads = [(p, p) for p in padding]
    if transposed:
        w = jnp.flip(w.swapaxes(0, 1), (2, 3))
        pads = [(d * (k - 1) - p, d * (k - 1) - p + o) for d, k, p, o in zip(
            dilation, w.shape[2:], padding, output_padding)]
        out = lax.conv_general_dilated(
            x, w, (1, 1), pads, lhs_dilation=stride, rhs_dilation=dilation,
            dimension_numbers=names)
    else:
        out = lax.conv_general_dilated(
            x, w, stride, pads, rhs_dilation=dilation, dimension_numbers=names,
            feature_group_count=groups)
    return out if bias is None else out + bias.reshape(-1, 1, 1)


def _max_pool(x, kernel):
    size = (1, 1, *kernel)
    return lax.reduce_window(x, -jnp.inf, lax.max, size, size, "VALID"), None


def _index_put(x, where, values, add):
    place = x.at[tuple(where)]
    return place.add(values) if add else place.set(values)


def _scatter(x, dim, index, values):
    return jnp.put_along_axis(x, index, values, dim, inplace=False)


def _split(x, sizes, dim=0):
    ends = [sum(sizes[: k + 1]) for k in range(len(sizes) - 1)]
    return jnp.split(x, ends, dim)


def _full(shape, value, **kwargs):
    return jnp.full(tuple(shape), value, _dtype(kwargs))


def _expand(x, shape):
    own = (1,) * (len(shape) - x.ndim) + x.shape
    return jnp.broadcast_to(x, [o if n == -1 else n for n, o in zip(shape, own)])


CALLS = {
    "_log_softmax": lambda x, dim, half: jax.nn.log_softmax(x, dim),
    "_softmax": lambda x, dim, half: jax.nn.softmax(x, dim),
    "_native_batch_norm_legit": _batch_norm,
    "native_layer_norm": _layer_norm,
    "native_group_norm": _group_norm,
    "_to_copy": lambda x, **kw: x if _dtype(kw) is None else x.astype(_dtype(kw)),
    "add": lambda a, b, alpha=1: a + b * alpha if alpha != 1 else a + b,
    "sub": lambda a, b, alpha=1: a - b * alpha if alpha != 1 else a - b,
    "addmm": lambda bias, a, b: bias + a @ b,
    "amax": lambda x, dims, keep=False: x.max(_axes(dims), keepdims=keep),
    "any": lambda x, dim, keep=False: x.any(dim, keepdims=keep),
    "arange": lambda start, end, step=1, **kw: jnp.arange(start, end, step, _dtype(kw)),
    "bernoulli": lambda x, p: jax.random.bernoulli(
        jax.random.key(0), p, x.shape).astype(x.dtype),
    "bmm": operator.matmul, "mm": operator.matmul,
    "bitwise_not": jnp.invert,
    "cat": lambda parts, dim=0: jnp.concatenate(parts, dim),
    "clamp": lambda x, low=None, high=None: jnp.clip(x, low, high),
    "clone": lambda x, **kw: x,
    "convolution": _convolution,
    "div": operator.truediv, "mul": operator.mul, "neg": operator.neg,
    "embedding": lambda table, words: table[words],
    "empty": lambda shape, **kw: jnp.zeros(tuple(shape), _dtype(kw)),
    "eq": operator.eq, "ge": operator.ge, "gt": operator.gt, "le": operator.le, "ne": operator.ne,
    "expand": _expand,
    "full": _full,
    "full_like": lambda x, value, **kw: jnp.full_like(x, value),
    "gather": lambda x, dim, index: jnp.take_along_axis(x, index, dim),
    "gelu": lambda x, approximate="none": jax.nn.gelu(x, approximate=approximate == "tanh"),
    "index": lambda x, where: x[tuple(where)],
    "index_put": _index_put,
    "logical_not": jnp.logical_not,
    "max_pool2d_with_indices": lambda x, kernel, *rest: _max_pool(x, kernel),
    "mean": lambda x, dims=None, keep=False, **kw: x.mean(_axes(dims), keepdims=keep),
    "sum": lambda x, dims=None, keep=False, **kw: x.sum(_axes(dims), keepdims=keep),
    "permute": jnp.transpose,
    "pow": operator.pow,
    "relu": jax.nn.relu, "sigmoid": jax.nn.sigmoid,
    "rsqrt": lax.rsqrt,
    "scalar_tensor": lambda value, **kw: jnp.asarray(value, _dtype(kw)),
    "scatter": _scatter,
    "select": lambda x, dim, k: lax.index_in_dim(x, k, dim, keepdims=False),
    "split_with_sizes": _split,
    "squeeze": lambda x, dims: jnp.squeeze(x, tuple(dims)),
    "topk": lambda x, k: lax.top_k(x, k),
    "unsqueeze": jnp.expand_dims,
    "view": lambda x, shape: x.reshape(tuple(shape)),
    "where": jnp.where,
    **{name: getattr(jnp, name) for name in (
        "abs", "exp", "isinf", "log", "log1p", "sin", "sqrt", "tanh")},
}


def function(module):
    """What a captured graph computes, on JAX's arrays."""
    from pullback.fx.node import map_arg

    def run(*args):
        given, values = iter(args), {}
        for node in module.graph.nodes:
            if node.op == "placeholder":
                values[node] = next(given)
                continue
            if node.op == "get_attr":
                values[node] = jnp.asarray(getattr(module, node.target).numpy())
                continue
            known, options = (map_arg(part, values.__getitem__)
                              for part in (node.args, node.kwargs))
            if node.op == "output":
                return known[0]
            name = str(node.target).removeprefix("aten.").partition(".")[0]
            call = operator.getitem if node.target is operator.getitem else CALLS[name]
            values[node] = call(*[list(k) if isinstance(k, tuple) else k for k in known]
                                if call is not operator.getitem else known, **options)
        return None

    return run
