"""Multi-head attention as a function, `F.multi_head_attention_forward`.

Sequences are (time, batch, features) inside; heads are folded into the batch.  Masks of truth
values become additive ones, with minus infinity where attention is forbidden.
The module around it is in `nn/attention/layer.py`.
"""

from __future__ import annotations

import math
import warnings

from ...core.handle import Tensor
from ...table.packets import ops
from ...tensor.overridable import overridable

# ---------------------------------------------------------------------------------------------
# Arguments


def _is_batched(query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None,
                attn_mask: Tensor | None, num_heads: int) -> bool:
    """Do the sequences have a batch dim?  Refuses ranks that do not fit each other."""
    if query.ndim not in (2, 3):
        raise AssertionError("query should be unbatched 2D or batched 3D tensor but received "
                             f"{query.ndim}-D query tensor")
    batched = query.ndim == 3
    word = "batched" if batched else "unbatched"
    if key.ndim != query.ndim or value.ndim != query.ndim:
        raise AssertionError(f"For {word} ({query.ndim}-D) `query`, expected `key` and `value` to "
                             f"be {query.ndim}-D but found {key.ndim}-D and {value.ndim}-D tensors "
                             "respectively")
    if key_padding_mask is not None and key_padding_mask.ndim != query.ndim - 1:
        raise AssertionError(f"For {word} ({query.ndim}-D) `query`, expected `key_padding_mask` to "
                             f"be `None` or {query.ndim - 1}-D but found "
                             f"{key_padding_mask.ndim}-D tensor instead")
    if attn_mask is not None and attn_mask.ndim not in (2, 3):
        raise AssertionError(f"For {word} ({query.ndim}-D) `query`, expected `attn_mask` to be "
                             f"`None`, 2-D or 3-D but found {attn_mask.ndim}-D tensor instead")
    if not batched and attn_mask is not None and attn_mask.ndim == 3:
        expected = (num_heads, query.shape[0], key.shape[0])
        if tuple(attn_mask.shape) != expected:
            raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got "
                                 f"{tuple(attn_mask.shape)}")
    return batched


def _with_batch_dim(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One example as a batch of one; what was the same tensor stays the same."""
    if query is key and key is value:
        query = query.unsqueeze(1)
        return query, query, query
    return query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)


def canonical_mask(mask: Tensor | None, name: str, other, other_name: str,
                   dtype) -> Tensor | None:
    """A mask as numbers to add to the scores; a warning if another mask has another dtype."""
    if mask is None:
        return None
    if mask.dtype.name != "bool" and not mask.dtype.is_floating_point:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if other is not None and getattr(other, "dtype", other) is not mask.dtype:
        warnings.warn(f"Support for mismatched {name} and {other_name} is deprecated. Use same "
                      "type for both instead.", stacklevel=4)
    if mask.dtype.is_floating_point:
        return mask
    return ops.zeros_like(mask, dtype=dtype).masked_fill(mask, -math.inf)


def _with_heads_dim(mask: Tensor | None, rows: int, target: int, source: int) -> Tensor | None:
    """An attention mask with three dims."""
    if mask is None:
        return None
    expected = (target, source) if mask.ndim == 2 else (rows, target, source)
    if tuple(mask.shape) != expected:
        raise RuntimeError(f"The shape of the {mask.ndim}D attn_mask is {mask.shape}, but should "
                           f"be {expected}.")
    return mask.unsqueeze(0) if mask.ndim == 2 else mask


def _one_more(mask: Tensor | None) -> Tensor | None:
    """A mask that allows one more key."""
    return None if mask is None else ops.constant_pad_nd(mask, [0, 1], 0)


def _padding_by_head(mask: Tensor, batch: int, num_heads: int, source: int) -> Tensor:
    """A mask of keys, the same for all queries of all heads."""
    if tuple(mask.shape) != (batch, source):
        raise AssertionError(f"expecting key_padding_mask shape of {(batch, source)}, but got "
                             f"{mask.shape}")
    mask = mask.reshape([batch, 1, 1, source]).expand([batch, num_heads, 1, source])
    return mask.reshape([batch * num_heads, 1, source])


# ---------------------------------------------------------------------------------------------
# Projections and attention


def project(query, key, value, in_proj_weight, in_proj_bias, separate) -> list[Tensor]:
    """Queries, keys and values from their sources."""
    if key.shape[:2] != value.shape[:2] or separate is None and key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    if separate is not None:
        if any(w is None for w in separate):
            raise AssertionError("use_separate_proj_weight is True but q_proj_weight, "
                                 "k_proj_weight or v_proj_weight is None")
        biases = [None] * 3 if in_proj_bias is None else ops.chunk(in_proj_bias, 3)
        return [ops.linear(x, w, b) for x, w, b in
                zip((query, key, value), separate, biases, strict=True)]
    if in_proj_weight is None:
        raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
    if query is key and key is value:  # one product for all three
        return list(ops.chunk(ops.linear(query, in_proj_weight, in_proj_bias), 3, -1))
    biases = [None] * 3 if in_proj_bias is None else ops.chunk(in_proj_bias, 3)
    weights = ops.chunk(in_proj_weight, 3)
    return [ops.linear(x, w, b) for x, w, b in
            zip((query, key, value), weights, biases, strict=True)]


def _by_head(sequence: Tensor, rows: int, head_dim: int) -> Tensor:
    """(time, batch, features) as (batch x heads, time, features of one head)."""
    return sequence.reshape([sequence.shape[0], rows, head_dim]).transpose(0, 1)


def _attend(q, k, v, mask, dropout_p) -> tuple[Tensor, Tensor]:
    """Weighted values and the weights."""
    scaled = q * math.sqrt(1.0 / q.shape[-1])
    if mask is None:
        scores = ops.bmm(scaled, k.transpose(-2, -1))
    else:
        scores = ops.baddbmm(mask, scaled, k.transpose(-2, -1))
    weights = ops._softmax(scores, -1, False)
    if dropout_p > 0.0:
        weights = ops.dropout(weights, dropout_p, True)
    return ops.bmm(weights, v), weights


def _weights_by_head(weights: Tensor, batch: int, num_heads: int, average: bool) -> Tensor:
    """The weights of each example and head, or their mean over the heads."""
    weights = weights.reshape([batch, num_heads, *weights.shape[1:]])
    return weights.mean(1) if average else weights


@overridable
def multi_head_attention_forward(
        query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
        in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None,
        bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor,
        out_proj_bias: Tensor | None, training: bool = True,
        key_padding_mask: Tensor | None = None, need_weights: bool = True,
        attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False,
        q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None,
        v_proj_weight: Tensor | None = None, static_k: Tensor | None = None,
        static_v: Tensor | None = None, average_attn_weights: bool = True,
        is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
    """Projections, attention of each head, joint output projection; output and weights."""
    batched = _is_batched(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = _with_batch_dim(query, key, value)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    target, batch, embed_dim = query.shape
    key_padding_mask = canonical_mask(key_padding_mask, "key_padding_mask", attn_mask, "attn_mask",
                                      query.dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None  # the fused attention knows this mask
    else:
        attn_mask = canonical_mask(attn_mask, "attn_mask", None, "", query.dtype)
        is_causal = is_causal and key_padding_mask is None
    head_dim = _head_dim(embed_dim, embed_dim_to_check, num_heads)
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    q, k, v = project(query, key, value, in_proj_weight, in_proj_bias, separate)
    rows = batch * num_heads
    attn_mask = _with_heads_dim(attn_mask, rows, target, key.shape[0])
    if bias_k is not None or bias_v is not None:
        if bias_k is None or bias_v is None:
            raise AssertionError("bias_k and bias_v are either both given or both None")
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key or value")
        k = ops.cat([k, bias_k.repeat(1, batch, 1)])
        v = ops.cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, key_padding_mask = _one_more(attn_mask), _one_more(key_padding_mask)
    q, k, v = (_by_head(x, rows, head_dim) if static is None else _static(static, rows, head_dim)
               for x, static in ((q, None), (k, static_k), (v, static_v)))
    if add_zero_attn:
        zeros = ops.new_zeros(k, [rows, 1, head_dim])
        k, v = ops.cat([k, zeros], 1), ops.cat([v, zeros], 1)
        attn_mask, key_padding_mask = _one_more(attn_mask), _one_more(key_padding_mask)
    source = k.shape[1]
    if key_padding_mask is not None:
        blocked = _padding_by_head(key_padding_mask, batch, num_heads, source)
        attn_mask = blocked if attn_mask is None else attn_mask + blocked
    dropout_p = dropout_p if training else 0.0
    if need_weights:
        out, weights = _attend(q, k, v, attn_mask, dropout_p)
        out = out.transpose(0, 1).reshape([target * batch, embed_dim])
        weights = _weights_by_head(weights, batch, num_heads, average_attn_weights)
    else:
        out, weights = _fused(q, k, v, attn_mask, dropout_p, is_causal, batch, num_heads), None
    out = ops.linear(out, out_proj_weight, out_proj_bias).reshape([target, batch, -1])
    if batched:
        return out, weights
    return out.squeeze(1), None if weights is None else weights.squeeze(0)


def _head_dim(embed_dim: int, expected: int, num_heads: int) -> int:
    if embed_dim != expected:
        raise AssertionError(f"was expecting embedding dimension of {expected}, but got "
                             f"{embed_dim}")
    if embed_dim % num_heads:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    return embed_dim // num_heads


def _static(value: Tensor, rows: int, head_dim: int) -> Tensor:
    if value.shape[0] != rows or value.shape[2] != head_dim:
        raise AssertionError(f"expecting static keys and values of shape ({rows}, *, {head_dim}), "
                             f"but got {value.shape}")
    return value


def _fused(q, k, v, mask, dropout_p, is_causal, batch, num_heads) -> Tensor:
    """The same without the weights, as one operator; rows are (time, batch)."""
    def apart(x):
        return x.reshape([batch, num_heads, *x.shape[1:]])

    if mask is not None:
        mask = mask.unsqueeze(0) if mask.shape[0] == 1 else apart(mask)
    out = ops.scaled_dot_product_attention(apart(q), apart(k), apart(v), mask, dropout_p,
                                           is_causal)
    return out.permute(2, 0, 1, 3).reshape([q.shape[1] * batch, num_heads * q.shape[2]])


