"""Derivatives of attention, O = P V with P = softmax(S), S = scale Q K' + mask, in all orders.

The derivative of a softmax is symmetric: applied to X it is J X = P * X - P * rowsum(P * X).  With
a gradient G of O,

    dV = P' G,   dS = J (G V'),   dQ = scale dS K,   dK = scale dS' Q.

Heads of queries may share a head of keys and values; then they form a dim of their own, behind the
heads of the keys.  Read `ops/fused_attention.py` for the entries and the kernels.
"""

from __future__ import annotations

import math

from ..table.packets import ops


def attention_scale(size: int, scale: float | None) -> float:
    """What the scores are multiplied by."""
    return scale if scale is not None else 1 / math.sqrt(size) if size else 1.0


def by_key_heads(tensor, heads: int):
    """(batch, all heads, length, size) as (batch, heads, those that share one, length, size)."""
    batch, own, *sizes = tensor.shape
    return tensor.reshape((batch, heads, own // heads if heads else 0, *sizes))


def mask_by_key_heads(mask, heads: int):
    """A mask that broadcasts against the scores of `by_key_heads`."""
    if mask is None or mask.ndim == 2:
        return mask
    return mask.unsqueeze(2) if mask.shape[1] == 1 else by_key_heads(mask, heads)


def softmax_derivative(weights, x):
    """The derivative of a softmax with this result, applied to x; also its adjoint."""
    product = weights * x
    return product - weights * product.sum(-1, keepdim=True)


class _Parts:
    """Queries, keys and values by heads of keys, and the weights."""

    def __init__(self, query, key, value, attn_mask, is_causal, scale):
        self.heads = heads = key.shape[1]
        self.scale = attention_scale(query.shape[-1], scale)
        self.q = by_key_heads(query, heads)
        self.k, self.v = key.unsqueeze(2), value.unsqueeze(2)
        scores = ops.matmul(self.q, self.k.mT) * self.scale
        if attn_mask is not None:
            scores = scores + mask_by_key_heads(attn_mask, heads)
        if is_causal:
            later = ops.full(scores.shape[-2:], -math.inf, dtype=scores.dtype, device=scores.device)
            scores = scores + later.triu(1)
        self.scores, self.weights = scores, ops._safe_softmax(scores, -1)

    def shared(self, tensor):
        """The sum over the query heads that share a head of keys."""
        return tensor.sum(2)

    def flat(self, tensor):
        """All query heads in one dim."""
        return tensor.flatten(1, 2)


def attention_forward(query, key, value, attn_mask, is_causal, scale):
    """The output, and the logarithm of the sums that the softmax divides by."""
    p = _Parts(query, key, value, attn_mask, is_causal, scale)
    total = ops.logsumexp(p.scores, [-1])
    total = ops.where(total == -math.inf, 0.0, total)  # a row that sees nothing
    return p.flat(ops.matmul(p.weights, p.v)), p.flat(total)


def attention_push(query, query_t, key, key_t, value, value_t, attn_mask, is_causal, scale):
    """The tangent of the output: J dS V + P dV with dS = scale (dQ K' + Q dK')."""
    p = _Parts(query, key, value, attn_mask, is_causal, scale)
    q_t, k_t, v_t = by_key_heads(query_t, p.heads), key_t.unsqueeze(2), value_t.unsqueeze(2)
    scores_t = (ops.matmul(q_t, p.k.mT) + ops.matmul(p.q, k_t.mT)) * p.scale
    weights_t = softmax_derivative(p.weights, scores_t)
    return p.flat(ops.matmul(weights_t, p.v) + ops.matmul(p.weights, v_t))


def attention_grads(grad, query, key, value, attn_mask, is_causal, scale):
    """Gradients for queries, keys and values."""
    p = _Parts(query, key, value, attn_mask, is_causal, scale)
    g = by_key_heads(grad, p.heads)
    inner = softmax_derivative(p.weights, ops.matmul(g, p.v.mT)) * p.scale
    return (p.flat(ops.matmul(inner, p.k)), p.shared(ops.matmul(inner.mT, p.q)),
            p.shared(ops.matmul(p.weights.mT, g)))


def attention_double_grads(grads, grad, query, key, value, attn_mask, is_causal, scale, mask):
    """Gradients of `attention_grads` for the gradient G, queries, keys and values.

    Its results get the gradients A, B, C.  X = scale (A K' + Q B') is what dS = J (G V') gets, so
    G V' gets Y = J X, and P, in which J is quadratic, gets

        Z = X * (G V' - rowsum(P * G V')) - G V' * rowsum(P * X) + G C',

    which goes on to the scores as J Z.
    """
    if all(g is None for g in grads):
        return None, None, None, None
    p = _Parts(query, key, value, attn_mask, is_causal, scale)
    g = by_key_heads(grad, p.heads)
    a = None if grads[0] is None else by_key_heads(grads[0], p.heads)
    b, c = (None if x is None else x.unsqueeze(2) for x in grads[1:])
    dp = ops.matmul(g, p.v.mT)
    inner = softmax_derivative(p.weights, dp) * p.scale
    x = ops.zeros_like(dp)
    if a is not None:
        x = x + ops.matmul(a, p.k.mT) * p.scale
    if b is not None:
        x = x + ops.matmul(p.q, b.mT) * p.scale
    y = softmax_derivative(p.weights, x)
    z = (x * (dp - (p.weights * dp).sum(-1, keepdim=True))
         - dp * (p.weights * x).sum(-1, keepdim=True))
    dg = ops.matmul(y, p.v)
    if c is not None:
        z, dg = z + ops.matmul(g, c.mT), dg + ops.matmul(p.weights, c)
    z = softmax_derivative(p.weights, z) * p.scale
    dq, dk = ops.matmul(z, p.k), ops.matmul(z.mT, p.q)
    if b is not None:
        dq = dq + ops.matmul(inner, b)
    if a is not None:
        dk = dk + ops.matmul(inner.mT, a)
    found = p.flat(dg), p.flat(dq), p.shared(dk), p.shared(ops.matmul(y.mT, g))
    return tuple(f if wanted else None for f, wanted in zip(found, mask))
