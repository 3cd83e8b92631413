"""Attention under the names of fused kernels.

On the host there is one such kernel, which looks at a block of queries at a time and keeps no
matrix of weights; its derivatives are in `formulas/attention.py`.  The names of other libraries'
kernels are composites over matrix products and softmax: they give the output, the logarithm of the
sums, and what those kernels return besides, and differentiate by their parts.  The states of
random generators that they return are empty, because nothing is drawn again in the pullback.
Read `attention.py` for what people call.
"""

from __future__ import annotations

import functools
import math
from itertools import pairwise

from ..array import dtype as dt
from ..array.layout import memory_order, ordered
from ..array.xp import maxima, sums
from ..core.op import Composite, Op
from ..core.overload import overload
from ..errors import DTypeError, NotInThisBuild, ShapeError
from ..table.packets import ops
from .norm import narrowed, widened

BLOCK = 1 << 22  # bytes of scores at a time

# ---------------------------------------------------------------------------------------------
# The kernel of the host


def _check(query, key, value, dropout_p, attn_mask) -> None:
    name = "scaled_dot_product_attention_flash_attention"
    if not query.ndim == key.ndim == value.ndim == 4:
        raise ShapeError(f"{name}: Accept only 4 dims inputs shape of {{B, H, T, K}}, got "
                         f"{list(query.shape)}, {list(key.shape)}, {list(value.shape)}")
    if dropout_p:
        raise ShapeError(f"{name}: Currently do not support dropout > 0")
    if not query.shape[3] == key.shape[3] == value.shape[3]:
        raise ShapeError(f"{name}: Q/K/V should have the same head size, got {query.shape[3]}, "
                         f"{key.shape[3]}, {value.shape[3]}")
    if not query.shape[0] == key.shape[0] == value.shape[0]:
        raise ShapeError(f"{name}: Q/K/V should have the same batch size, got {query.shape[0]}, "
                         f"{key.shape[0]}, {value.shape[0]}")
    if not query.dtype == key.dtype == value.dtype:
        raise DTypeError(f"{name}: Q/K/V should have the same data type, got {query.dtype}, "
                         f"{key.dtype}, {value.dtype}")
    if key.shape[1] != value.shape[1] or query.shape[1] % max(key.shape[1], 1):
        raise ShapeError(f"{name}: {query.shape[1]} heads of queries cannot share {key.shape[1]} "
                         f"heads of keys and {value.shape[1]} of values")
    if key.shape[2] != value.shape[2]:
        raise ShapeError(f"{name}: each key needs a value, got {key.shape[2]} keys and "
                         f"{value.shape[2]} values")
    if attn_mask is not None and attn_mask.dtype != query.dtype:
        raise DTypeError(f"{name}: Attention mask is the same data type as query: got "
                         f"{attn_mask.dtype} and {query.dtype}")
    if attn_mask is not None and attn_mask.ndim not in (2, 4):
        raise ShapeError(f"{name}: Attention mask dim in {{2, 4}}, got {attn_mask.ndim}")
    scores = (*query.shape[:3], key.shape[2])
    if attn_mask is not None and any(have != 1 and have != want for have, want in zip(
            reversed(attn_mask.shape), reversed(scores))):  # a mask of 2 dims is for all heads
        raise ShapeError(f"{name}: an attention mask of shape {list(attn_mask.shape)} cannot be "
                         f"expanded to scores of shape {list(scores)}")


class _Blocks:
    """The weights of a block of queries after another, all heads at once."""

    def __init__(self, xp, query, key, attn_mask, is_causal, scale):
        from ..formulas.attention import attention_scale

        self.xp, self.causal, self.heads = xp, is_causal, key.shape[1]
        self.scale = attention_scale(query.shape[-1], scale)
        self.q, self.k = self.grouped(query), key[:, :, None]
        self.mask = attn_mask
        if attn_mask is not None and attn_mask.ndim == 4:
            one = attn_mask.shape[1] == 1
            self.mask = attn_mask[:, :, None] if one else self.grouped(attn_mask)
        rows = query.shape[0] * query.shape[1] * key.shape[2] * query.dtype.itemsize
        self.step = max(32, BLOCK // max(rows, 1))

    def grouped(self, array):
        """Query heads behind the head of keys that they share."""
        batch, own, *sizes = array.shape
        return array.reshape(batch, self.heads, own // max(self.heads, 1), *sizes)

    def __iter__(self):
        """(slice of queries, their weights, logarithms of the sums)."""
        xp, length = self.xp, self.q.shape[-2]
        for start in range(0, length, self.step):
            part = slice(start, min(start + self.step, length))
            scores = xp.matmul(self.q[..., part, :], self.k.swapaxes(-1, -2))
            scores *= self.scale
            if self.mask is not None:
                scores = scores + (self.mask if self.mask.shape[-2] == 1
                                   else self.mask[..., part, :])
            if self.causal:
                rows, columns = xp.arange(part.start, part.stop), xp.arange(scores.shape[-1])
                xp.copyto(scores, -math.inf, where=columns > rows[:, None])
            top = maxima(xp, scores, -1)
            finite = xp.isfinite(top)
            usual = bool(finite.all())  # else a row may see nothing
            if not usual:
                top = xp.where(top == -math.inf, 0, top)  # +inf and NaN make NaN of all weights
            scores -= top
            weights = xp.exp(scores, out=scores)
            total = sums(xp, weights, -1)
            if not usual:
                total = xp.where(total == 0, 1, total)
            weights /= total
            yield part, weights, (xp.log(total) + top)[..., 0]


def _lse_dtype(dtype: dt.DType) -> dt.DType:
    """Sums of half precision are kept in single."""
    return dt.float32 if dtype in (dt.float16, dt.bfloat16) else dtype


class _scaled_dot_product_flash_attention_for_cpu(Op):
    """softmax(query @ key.T * scale + mask) @ value without a matrix of all weights."""

    schema = ("_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value,"
              " float dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None,"
              " float? scale=None) -> (Tensor output, Tensor logsumexp)")
    counted = "sdpa_flop"
    intensive = True
    flops = "attention(2)"
    tags = ("nondeterministic_seeded",)
    method = function = False
    memory_format, arranges = "self", True
    diff_outputs = (True, False)
    grad = {"query, key, value": (
        "(None, None, None) if grad is None else"
        " _scaled_dot_product_flash_attention_for_cpu_backward("
        "grad, query, key, value, output, logsumexp, dropout_p, is_causal, attn_mask=attn_mask,"
        " scale=scale)")}
    push = {"output": ("attention_push(query_p, query_t, key_p, key_t, value_p, value_t, attn_mask,"
                       " is_causal, scale)")}

    def run(xp, query, key, value, dropout_p, is_causal, attn_mask, scale):
        _check(query, key, value, dropout_p, attn_mask)
        dtype, order = query.dtype, memory_order(query)
        query, key, value, attn_mask = (
            None if a is None else widened(xp, a) for a in (query, key, value, attn_mask))
        zeros = functools.partial(xp.zeros, dtype=query.dtype)
        out, total = ordered(zeros, query.shape, order), zeros(query.shape[:3])
        if out.size and key.shape[2]:
            blocks = _Blocks(xp, query, key, attn_mask, is_causal, scale)
            outs, totals = blocks.grouped(out), blocks.grouped(total)  # views
            for part, weights, logs in blocks:
                outs[..., part, :] = xp.matmul(weights, value[:, :, None])
                totals[..., part] = logs
        return narrowed(out, dtype), total

    def shape(query, key, value, dropout_p, is_causal, attn_mask, scale):
        _check(query, key, value, dropout_p, attn_mask)
        return [(*query.shape[:3], value.shape[3]), tuple(query.shape[:3])]

    def dtype(query, key, value, dropout_p, is_causal, attn_mask, scale):
        return [query.dtype, _lse_dtype(query.dtype)]

    def decomp(query, key, value, dropout_p, is_causal, attn_mask, scale):
        from ..formulas.attention import attention_forward

        _check(query, key, value, dropout_p, attn_mask)
        out, total = attention_forward(query, key, value, attn_mask, is_causal, scale)
        return out, total.to(_lse_dtype(query.dtype))

    def samples(s):
        yield s(s.real(2, 3, 4, 3), s.real(2, 3, 5, 3), s.real(2, 3, 5, 3))
        yield s(s.real(1, 2, 3, 4), s.real(1, 2, 3, 4), s.real(1, 2, 3, 4), 0.0, True, scale=0.3)
        yield s(s.real(1, 4, 3, 2), s.real(1, 2, 5, 2), s.real(1, 2, 5, 2),
                attn_mask=s.real(3, 5))
        yield s(s.real(2, 2, 3, 2), s.real(2, 1, 4, 2), s.real(2, 1, 4, 2),
                attn_mask=s.real(2, 2, 3, 4))
        yield s(s.real(1, 1, 0, 2), s.real(1, 1, 3, 2), s.real(1, 1, 3, 2))


class _scaled_dot_product_flash_attention_for_cpu_backward(Op):
    """Gradients of that attention; what it needs of the result is computed again."""

    schema = ("_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query,"
              " Tensor key, Tensor value, Tensor out, Tensor logsumexp, float dropout_p,"
              " bool is_causal, *, Tensor? attn_mask=None, float? scale=None)"
              " -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)")
    counted = "sdpa_backward_flop"
    intensive = True
    flops = "attention(5)"
    same_dtype, or_float32 = ("grad_out", "query", "key", "value", "out"), ("logsumexp",)
    method = function = False
    nondiff = ("out", "logsumexp")
    grad = {"grad_out, query, key, value": (
        "attention_double_grads(grads, grad_out, query, key, value, attn_mask, is_causal, scale,"
        " grad_input_mask)")}
    shape = "[tuple(query.shape), tuple(key.shape), tuple(value.shape)]"

    def run(xp, grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, attn_mask,
            scale):
        _check(query, key, value, dropout_p, attn_mask)
        if tuple(grad_out.shape) != (*query.shape[:3], value.shape[3]):
            raise ShapeError("scaled_dot_product_attention: expected a gradient of shape "
                             f"{[*query.shape[:3], value.shape[3]]}, got {list(grad_out.shape)}")
        dtype = query.dtype
        grad_out, query, key, value, attn_mask = (
            None if a is None else widened(xp, a) for a in (grad_out, query, key, value, attn_mask))
        dq = xp.zeros(query.shape, dtype=query.dtype)
        dk = xp.zeros(key.shape, dtype=key.dtype)
        dv = xp.zeros(value.shape, dtype=value.dtype)
        if query.size and key.size:
            blocks = _Blocks(xp, query, key, attn_mask, is_causal, scale)
            grads, dqs, v = blocks.grouped(grad_out), blocks.grouped(dq), value[:, :, None]
            for part, weights, _ in blocks:
                g, q = grads[..., part, :], blocks.q[..., part, :]
                inner = weights * xp.matmul(g, v.swapaxes(-1, -2))
                inner = (inner - weights * inner.sum(axis=-1, keepdims=True)) * blocks.scale
                dqs[..., part, :] = xp.matmul(inner, blocks.k)
                dk += xp.matmul(inner.swapaxes(-1, -2), q).sum(axis=2)
                dv += xp.matmul(weights.swapaxes(-1, -2), g).sum(axis=2)
        return tuple(narrowed(a, dtype) for a in (dq, dk, dv))

    def decomp(grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, attn_mask, scale):
        from ..formulas.attention import attention_grads

        return attention_grads(grad_out, query, key, value, attn_mask, is_causal, scale)

    def samples(s):
        for case in _scaled_dot_product_flash_attention_for_cpu.samples(s):
            query, key, value, *rest = case.args
            dropout_p, is_causal = rest or (0.0, False)
            yield s(s.real(*query.shape), query, key, value, s.real(*query.shape),
                    s.real(*query.shape[:3]), dropout_p, is_causal, **case.kwargs)


# ---------------------------------------------------------------------------------------------
# Kernels of other libraries, as composites


def _visible(query, key, causal: int, left=None, right=None, last: bool = False):
    """Which keys a query sees, None if all.

    Query i stands at key i, or (`last`, or causal == 2) the last query at the last key.  It sees
    up to `left` keys before that place and up to `right` after it; none after it if causal.
    """
    rows, columns = query.shape[-2], key.shape[-2]
    behind = columns - rows if causal == 2 or last else 0
    own = ops.arange(rows, device=query.device).unsqueeze(1) + behind
    keys, seen = ops.arange(columns, device=query.device), []
    if causal or right is not None:
        seen.append(keys <= own + (0 if causal else right))
    if left is not None:
        seen.append(keys >= own - left)
    if not seen:
        return None
    return seen[0] if len(seen) == 1 else seen[0] & seen[1]


def _attend(query, key, value, bias, dropout_p, visible, scale):
    """(output, logarithms of the sums, weights) of (..., heads, length, size)."""
    from ..formulas.attention import attention_scale

    if key.ndim > 2 and key.shape[-3] != query.shape[-3]:
        shared = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(shared, -3), value.repeat_interleave(shared, -3)
    scores = ops.matmul(query * attention_scale(query.shape[-1], scale), key.transpose(-2, -1))
    if bias is not None:
        scores = scores + bias
    if visible is not None:
        scores = ops.where(visible, scores, -math.inf)
    weights = ops._safe_softmax(scores, -1)
    if dropout_p > 0:
        weights = ops.dropout(weights, dropout_p, True)
    total = ops.logsumexp(scores.detach(), [-1])
    return ops.matmul(weights, value), total.to(_lse_dtype(query.dtype)), weights


def _results(name: str, *values):
    return overload(name).result_class(*values)


def _state(query, *shape: int):
    """A generator's state that nobody reads."""
    return ops.zeros(list(shape), dtype=dt.int64, device=query.device)


def _padded(total, count: int):
    """Sums in rows of a multiple of 32, zeros behind them; none if `count` is 0."""
    if not count:
        return total[..., :0]
    return ops.constant_pad_nd(total, [0, -(-count // 32) * 32 - total.shape[-1]], 0)


def _refuse(name: str, **arguments) -> None:
    """Some arguments of the kernels have no meaning, or no counterpart, here."""
    for argument, value in arguments.items():
        if value is not None:
            raise NotInThisBuild(f"{name} with {argument} is not provided\n  Fix: use "
                                 "scaled_dot_product_attention with a mask")


def _ranges(name: str, ends_q, ends_k) -> list[tuple[slice, slice]]:
    """Where the sequences lie that are packed one behind the other."""
    if ends_q is None or ends_k is None:
        raise ShapeError(f"{name}: the places of the sequences are needed for queries and keys, or "
                         "for neither")
    q, k = ends_q.tolist(), ends_k.tolist()
    return [(slice(*p), slice(*r)) for p, r in zip(pairwise(q), pairwise(k))]


def _heads_first(tensor):
    """(..., length, heads, size) -> (..., heads, length, size), and back."""
    return tensor.transpose(-3, -2)


def _fused(name: str, doc: str, schema: str, compose, samples, **more) -> None:
    body = {
        "__doc__": doc,
        "__module__": __name__,
        "schema": f"{name}{schema}",
        "tags": ("nondeterministic_seeded",),
        "compose": compose,
        "samples": samples,
        "method": False,
        "function": False,
        **more,
    }
    type(name, (Composite,), body)


def _triples(*rest, **named):
    """Samples of (batch, heads, length, size) inputs; a bias may stand first among the rest."""

    def samples(s):
        if rest and rest[0] is None:
            yield s(s.real(1, 2, 3, 4), s.real(1, 2, 5, 4), s.real(1, 2, 5, 4), s.real(1, 2, 3, 5),
                    *rest[1:])
        yield s(s.real(2, 2, 3, 4), s.real(2, 2, 3, 4), s.real(2, 2, 3, 4), *rest)
        yield s(s.real(1, 2, 3, 4), s.real(1, 2, 5, 4), s.real(1, 2, 5, 4), *rest, scale=0.3)
        for name, value in named.items():
            yield s(s.real(1, 2, 3, 4), s.real(1, 2, 3, 4), s.real(1, 2, 3, 4), *rest,
                    **{name: value(s) if callable(value) else value})

    return samples


def _flash(query, key, value, dropout_p, is_causal, return_debug_mask, scale):
    out, total, weights = _attend(query, key, value, None, dropout_p,
                                  _visible(query, key, is_causal), scale)
    shown = weights.detach() if return_debug_mask else query.new_empty([0])
    return _results("_scaled_dot_product_flash_attention", out, total, None, None, query.shape[2],
                    key.shape[2], _state(query, 2), _state(query), shown)


_fused(
    "_scaled_dot_product_flash_attention",
    "Attention of dense heads, as the flash kernel of a device returns it.",
    "(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool is_causal=False,"
    " bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp,"
    " Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor rng_state,"
    " Tensor unused, Tensor debug_attn_mask)",
    _flash, _triples(is_causal=True, return_debug_mask=True), counted="sdpa_flop")


def _efficient(query, key, value, attn_bias, compute_log_sumexp, dropout_p, is_causal, scale):
    out, total, _ = _attend(query, key, value, attn_bias, dropout_p,
                            _visible(query, key, is_causal), scale)
    total = _padded(total, query.shape[2] if compute_log_sumexp else 0)
    return _results("_scaled_dot_product_efficient_attention", out, total, _state(query),
                    _state(query))


_fused(
    "_scaled_dot_product_efficient_attention",
    "Attention of dense heads with a bias, as the memory-efficient kernel of a device returns it.",
    "(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool compute_log_sumexp,"
    " float dropout_p=0.0, bool is_causal=False, *, float? scale=None) -> (Tensor output,"
    " Tensor log_sumexp, Tensor philox_seed, Tensor philox_offset)",
    _efficient, _triples(None, True, is_causal=True), counted="sdpa_flop")


def _cudnn(name: str, trailing: bool):
    def compose(query, key, value, attn_bias, *rest):
        *_, dropout_p, is_causal, _, scale = rest
        out, total, _ = _attend(query, key, value, attn_bias, dropout_p,
                                _visible(query, key, is_causal), scale)
        return _results(name, out, total.unsqueeze(-1) if trailing else total, None, None,
                        query.shape[-2], key.shape[-2], _state(query), _state(query), None)

    return compose


_NINE = (" -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q,"
         " SymInt max_k, Tensor philox_seed, Tensor philox_offset, Tensor debug_attn_mask)")
_fused(
    "_scaled_dot_product_cudnn_attention",
    "Attention of dense heads with a bias, as cuDNN returns it.",
    "(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool compute_log_sumexp,"
    " float dropout_p=0.0, bool is_causal=False, bool return_debug_mask=False, *,"
    " float? scale=None)" + _NINE,
    _cudnn("_scaled_dot_product_cudnn_attention", True), _triples(None, True, is_causal=True))
_fused(
    "_scaled_dot_product_fused_attention_overrideable",
    "Attention of dense heads with a bias, as a device from outside would return it.",
    "(Tensor query, Tensor key, Tensor value, Tensor? attn_bias=None, float dropout_p=0.0,"
    " bool is_causal=False, bool return_debug_mask=False, *, float? scale=None)" + _NINE,
    _cudnn("_scaled_dot_product_fused_attention_overrideable", False),
    _triples(is_causal=True, attn_bias=lambda s: s.real(1, 2, 3, 3)))


def _cudnn_forward(query, key, value, attn_bias, cum_seq_q, cum_seq_k, max_q, max_k, *rest):
    _refuse("_cudnn_attention_forward", cum_seq_q=cum_seq_q, cum_seq_k=cum_seq_k)
    found = _cudnn("_cudnn_attention_forward", True)(query, key, value, attn_bias, *rest)
    return found._replace(max_q=max_q, max_k=max_k)


_fused(
    "_cudnn_attention_forward",
    "Attention of dense heads with a bias, as cuDNN returns it; packed sequences are not provided.",
    "(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, Tensor? cum_seq_q,"
    " Tensor? cum_seq_k, SymInt max_q, SymInt max_k, bool compute_log_sumexp, float dropout_p=0.0,"
    " bool is_causal=False, bool return_debug_mask=False, *, float? scale=None)" + _NINE,
    _cudnn_forward, _triples(None, None, None, 3, 5, True, is_causal=True))


def _flash_forward(query, key, value, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal,
                   return_debug_mask, scale, window_size_left, window_size_right, seqused_k,
                   alibi_slopes, block_table, num_splits):
    name = "_flash_attention_forward"
    _refuse(name, seqused_k=seqused_k, alibi_slopes=alibi_slopes, block_table=block_table)
    window = [None if w is None or w < 0 else w for w in (window_size_left, window_size_right)]

    def one(q, k, v):
        q, k, v = map(_heads_first, (q, k, v))
        seen = _visible(q, k, int(is_causal), *window, last=True)
        out, total, weights = _attend(q, k, v, None, dropout_p, seen, scale)
        return _heads_first(out), total, weights

    shown = query.new_empty([0])
    if cum_seq_q is None and cum_seq_k is None:
        out, total, weights = one(query, key, value)
        shown = weights.detach() if return_debug_mask else shown
    else:
        parts = [one(query[p], key[r], value[r]) for p, r in _ranges(name, cum_seq_q, cum_seq_k)]
        out, total = ops.cat([p[0] for p in parts], 0), ops.cat([p[1] for p in parts], -1)
    return _results(name, out, total, _state(query, 2), _state(query), shown)


def _flash_samples(s):
    plain = None, None, 3, 3, 0.0
    yield s(s.real(2, 3, 2, 4), s.real(2, 3, 2, 4), s.real(2, 3, 2, 4), *plain, True, False)
    yield s(s.real(1, 3, 2, 4), s.real(1, 5, 2, 4), s.real(1, 5, 2, 4), *plain, True, True)
    yield s(s.real(1, 5, 2, 4), s.real(1, 5, 1, 4), s.real(1, 5, 1, 4), *plain, False, False,
            window_size_left=1, window_size_right=2)
    ends = s.tensor([0, 2, 5], dt.int64)
    yield s(s.real(5, 2, 4), s.real(5, 2, 4), s.real(5, 2, 4), ends, ends, 3, 3, 0.0, True, False)


_fused(
    "_flash_attention_forward",
    "Attention of (batch, length, heads, size), or of sequences packed one behind the other.",
    "(Tensor query, Tensor key, Tensor value, Tensor? cum_seq_q, Tensor? cum_seq_k, SymInt max_q,"
    " SymInt max_k, float dropout_p, bool is_causal, bool return_debug_mask, *, float? scale=None,"
    " SymInt? window_size_left=None, SymInt? window_size_right=None, Tensor? seqused_k=None,"
    " Tensor? alibi_slopes=None, Tensor? block_table=None, int? num_splits=None) ->"
    " (Tensor output, Tensor softmax_logsumexp, Tensor rng_state, Tensor unused,"
    " Tensor debug_attn_mask)",
    _flash_forward, _flash_samples)


def _efficient_forward(query, key, value, bias, cu_seqlens_q, cu_seqlens_k, max_seqlen_q,
                       max_seqlen_k, dropout_p, custom_mask_type, compute_log_sumexp, scale,
                       seqlen_k, window_size):
    name = "_efficient_attention_forward"
    _refuse(name, seqlen_k=seqlen_k)
    left = window_size - 1 if window_size else None

    def one(q, k, v, added):
        q, k, v = map(_heads_first, (q, k, v))
        seen = _visible(q, k, custom_mask_type, left)
        out, total, _ = _attend(q, k, v, added, dropout_p, seen, scale)
        return _heads_first(out), total

    longest_q = query.shape[1] if max_seqlen_q is None else max_seqlen_q
    longest_k = key.shape[1] if max_seqlen_k is None else max_seqlen_k
    if cu_seqlens_q is None and cu_seqlens_k is None:
        out, total = one(query, key, value, bias)
        total = _padded(total, query.shape[1] if compute_log_sumexp else 0)
    else:
        parts = [one(query[:, p], key[:, r], value[:, r],
                     None if bias is None else bias[..., p, r])
                 for p, r in _ranges(name, cu_seqlens_q, cu_seqlens_k)]
        out = ops.cat([p[0] for p in parts], 1)
        total = ops.cat([_padded(p[1], longest_q if compute_log_sumexp else 0) for p in parts], 0)
    return _results(name, out, total, _state(query), _state(query), longest_q, longest_k)


def _efficient_samples(s):
    yield s(s.real(2, 3, 2, 4), s.real(2, 5, 2, 4), s.real(2, 5, 2, 3), None, None, None, None,
            None, 0.0, 0, True)
    yield s(s.real(1, 3, 2, 4), s.real(1, 5, 2, 4), s.real(1, 5, 2, 4), s.real(1, 2, 3, 5), None,
            None, None, None, 0.0, 2)
    yield s(s.real(1, 4, 2, 4), s.real(1, 4, 2, 4), s.real(1, 4, 2, 4), None, None, None, None,
            None, 0.0, 1, window_size=2)
    ends = s.tensor([0, 2, 5], dt.int64)
    yield s(s.real(1, 5, 2, 4), s.real(1, 5, 2, 4), s.real(1, 5, 2, 4), None, ends, ends, 3, 3,
            0.0, 1, True)


_fused(
    "_efficient_attention_forward",
    "Attention of (batch, length, heads, size) with a bias, or of sequences packed in a batch of 1.",
    "(Tensor query, Tensor key, Tensor value, Tensor? bias, Tensor? cu_seqlens_q,"
    " Tensor? cu_seqlens_k, SymInt? max_seqlen_q, SymInt? max_seqlen_k, float dropout_p,"
    " int custom_mask_type, bool compute_log_sumexp=False, *, float? scale=None,"
    " Tensor? seqlen_k=None, int? window_size=None) -> (Tensor output, Tensor logsumexp,"
    " Tensor philox_seed, Tensor philox_offset, SymInt max_seqlen_batch_q,"
    " SymInt max_seqlen_batch_k)",
    _efficient_forward, _efficient_samples)
