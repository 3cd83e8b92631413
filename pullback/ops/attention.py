"""Attention: composites over matrix products and softmax.

The derivative, batching and native code follow from the parts.  Read `ops/matmul.py` and
`ops/norm.py` for those.
"""

from __future__ import annotations

import math
from contextlib import nullcontext

from ..array import dtype as dt
from ..array.layout import strides_order
from ..core.op import Composite
from ..errors import DTypeError, ShapeError
from ..table.packets import ops
from ..threads.state import state


def _check(query, key, value, attn_mask, is_causal, enable_gqa):
    name = "scaled_dot_product_attention"
    if query.dtype != key.dtype or query.dtype != value.dtype:
        raise DTypeError(f"{name}: expected query, key and value to have the same dtype, but got "
                         f"{query.dtype}, {key.dtype} and {value.dtype}")
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise ShapeError(f"{name}: expected query, key and value to have at least 2 dims, got "
                         f"shapes {list(query.shape)}, {list(key.shape)}, {list(value.shape)}")
    if attn_mask is not None:
        if is_causal:
            raise ShapeError(f"_{name}: Explicit attn_mask should not be set when is_causal=True")
        if attn_mask.dtype not in (dt.bool_, query.dtype):
            raise DTypeError(f"{name}: expected attn_mask to be bool or to have the query's dtype "
                             f"{query.dtype}, but got {attn_mask.dtype}")
    if enable_gqa and (min(query.ndim, key.ndim, value.ndim) < 3
                       or query.shape[-3] % max(key.shape[-3], 1)
                       or query.shape[-3] % max(value.shape[-3], 1)):
        raise ShapeError(f"{name}: enable_gqa needs a number of query heads that is a multiple of "
                         f"the number of key and value heads, got shapes {list(query.shape)}, "
                         f"{list(key.shape)}, {list(value.shape)}")


def _repeated(heads: int, tensor):
    """Keys or values with each head repeated until there are `heads` of them."""
    own = tensor.shape[-3]
    return tensor if own == heads else tensor.repeat_interleave(heads // own, -3)


def attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    """The output and the attention weights; scores of half precision are kept in float32."""
    _check(query, key, value, attn_mask, is_causal, enable_gqa)
    if query.dtype.is_floating_point and query.dtype.itemsize == 2:
        wide = [t.to(dt.float32) for t in (query, key, value)]
        if attn_mask is not None and attn_mask.dtype is not dt.bool_:
            attn_mask = attn_mask.to(dt.float32)
        out = attention(*wide, attn_mask, dropout_p, is_causal, scale, enable_gqa)
        return tuple(t.to(query.dtype) for t in out)
    if enable_gqa:
        key, value = _repeated(query.shape[-3], key), _repeated(query.shape[-3], value)
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1]) if query.shape[-1] else 1.0
    # as large as the square of the length: captures let the backward compute it again
    with getattr(state.stack[-1], "region", nullcontext)():
        weights = _weights(query * scale, key, attn_mask, is_causal)
        if dropout_p > 0:
            weights = ops.dropout(weights, dropout_p, True)
    return ops.matmul(weights, value), weights


def fusable(query, key, value, attn_mask, dropout_p, enable_gqa) -> bool:
    """Does PyTorch have one operator for it?"""
    if not query.ndim == key.ndim == value.ndim == 4 or dropout_p:
        return False
    if attn_mask is not None and (attn_mask._edge is not None or attn_mask.ndim not in (2, 4)):
        return False
    own, shared = query.shape[1], key.shape[1]
    heads = own % shared == 0 if enable_gqa and shared else own == shared
    return (
        heads and not (0 in query.shape or 0 in key.shape)
        and query.shape[0] == key.shape[0] and key.shape[:3] == value.shape[:3]
        and query.shape[3] == key.shape[3] == value.shape[3]
        and query.stride(3) == key.stride(3) == value.stride(3) == 1
    )


def fused(query, key, value, attn_mask, is_causal, scale):
    """By one operator, block after block of the queries."""
    if attn_mask is not None and attn_mask.dtype is dt.bool_:
        attn_mask = ops.where(attn_mask, 0.0, ops.scalar_tensor(-math.inf, dtype=query.dtype))
    return ops._scaled_dot_product_flash_attention_for_cpu(
        query, key, value, 0.0, is_causal, attn_mask=attn_mask, scale=scale)[0]


def _weights(query, key, attn_mask, is_causal):
    """What each query takes of each value."""
    scores = ops.matmul(query, key.transpose(-2, -1))
    if is_causal:
        # added, not filled: the gradient then passes without another operator.  Every row
        # keeps its first entry, so the plain softmax will do.
        later = ops.full([query.shape[-2], key.shape[-2]], -math.inf, dtype=query.dtype,
                         device=query.device).triu(1)
        return ops._softmax(scores + later, -1, False)
    if attn_mask is None:
        return ops._softmax(scores, -1, False)
    if attn_mask.dtype is dt.bool_:
        return ops._safe_softmax(ops.where(attn_mask, scores, -math.inf), -1)
    return ops._safe_softmax(scores + attn_mask, -1)


class scaled_dot_product_attention(Composite):
    """softmax(query @ key.T * scale + mask) @ value; rows that see nothing give zeros."""

    schema = ("scaled_dot_product_attention(Tensor query, Tensor key, Tensor value,"
              " Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, *,"
              " float? scale=None, bool enable_gqa=False) -> Tensor")
    autocast = "lower"
    tags = ("nondeterministic_seeded",)
    method = function = False
    namespace = "nn.functional"

    def compose(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
        fits = fusable(query, key, value, attn_mask, dropout_p, enable_gqa)
        if fits and len(state.stack) == 1 and query.device.type == "cpu":
            _check(query, key, value, attn_mask, is_causal, enable_gqa)
            return fused(query, key, value, attn_mask, is_causal, scale)
        out, _ = attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
        order = strides_order(query.shape, query.stride()) if fits else None
        if order is None:
            return out
        back = sorted(range(out.ndim), key=order.__getitem__)  # it lies as the query does
        return out.permute(order).contiguous().permute(back)

    def samples(s):
        yield s(s.real(2, 3, 4), s.real(2, 5, 4), s.real(2, 5, 6))
        yield s(s.real(2, 2, 3, 4), s.real(2, 2, 3, 4), s.real(2, 2, 3, 4), is_causal=True)
        yield s(s.real(2, 3, 4), s.real(2, 5, 4), s.real(2, 5, 4), s.real(3, 5))
        yield s(s.real(3, 4), s.real(3, 4), s.real(3, 4), s.bool(3, 3), scale=0.3)
        yield s(s.real(2, 4, 3, 4), s.real(2, 2, 3, 4), s.real(2, 2, 3, 4), enable_gqa=True)


class _scaled_dot_product_attention_math(Composite):
    """The same, also giving the attention weights; a given dropout mask replaces the random one."""

    schema = ("_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value,"
              " Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False,"
              " Tensor? dropout_mask=None, *, float? scale=None, bool enable_gqa=False)"
              " -> (Tensor, Tensor)")
    tags = ("nondeterministic_seeded",)
    method = function = False

    def compose(query, key, value, attn_mask, dropout_p, is_causal, dropout_mask, scale,
                enable_gqa):
        if dropout_p == 0 or dropout_mask is None:
            return attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
        _, weights = attention(query, key, value, attn_mask, 0.0, is_causal, scale, enable_gqa)
        kept = weights * dropout_mask / (1 - dropout_p)
        if enable_gqa:
            value = _repeated(query.shape[-3], value)
        return ops.matmul(kept, value), kept

    samples = lambda s: [s(s.real(2, 3, 4), s.real(2, 5, 4), s.real(2, 5, 6))]
