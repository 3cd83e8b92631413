"""Multihead attention of nested tensors: sequences of different lengths, without padding."""

from __future__ import annotations

import math
from typing import Any

from ... import errors
from ...core.handle import Tensor
from ...table.packets import ops
from .forward import project


def nested_attention(layer: Any, query: Tensor, key: Tensor, value: Tensor, padding: Any,
                     need_weights: bool, attn_mask: Any, average: bool, is_causal: bool) -> tuple:
    """The output, nested as the query, and the weights padded to the longest sequences."""
    why = ("there is a key_padding_mask" if padding is not None
           else "batch_first was not True" if not layer.batch_first
           else "bias_k, bias_v or add_zero_attn append keys"
           if layer.bias_k is not None or layer.add_zero_attn else "")
    if why:
        raise errors.RefusedValue(errors.text(
            f"MultiheadAttention: nested tensors are not taken because {why} "
            f"({errors.user_line(3)})", cure="the lengths of nested tensors are their mask; make "
            "the layer with batch_first=True"))
    separate = None if layer._qkv_same_embed_dim else (
        layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight)
    sets = project(query, key, value, layer.in_proj_weight, layer.in_proj_bias, separate)
    heads = [x.unflatten(-1, (layer.num_heads, layer.head_dim)).transpose(1, 2) for x in sets]
    dropout = layer.dropout if layer.training else 0.0
    if attn_mask is not None and is_causal:
        attn_mask = None  # the mask says the same
    if attn_mask is not None and attn_mask.dtype.is_floating_point is False:
        attn_mask = ~attn_mask  # here True leaves out, there it keeps
    out = ops.scaled_dot_product_attention(*heads, attn_mask, dropout, is_causal)
    out = out.transpose(1, 2).flatten(-2)
    out = ops.linear(out, layer.out_proj.weight, layer.out_proj.bias)
    weights = _weights(heads[0], heads[1], attn_mask, is_causal) if need_weights else None
    return out, weights.mean(1) if need_weights and average else weights


def _weights(query: Tensor, key: Tensor, mask: Any, is_causal: bool) -> Tensor:
    """(batch, heads, queries, keys): zeros behind the ends of the sequences."""
    q, k = query.to_padded_tensor(0.0), key.to_padded_tensor(0.0)
    ones = [ops.ones_like(x[..., :1].detach()).to_padded_tensor(0.0)[:, :1] for x in (query, key)]
    seen = ones[0] @ ones[1].mT > 0
    if is_causal:
        seen = seen & ops.ones_like(seen[0, 0]).tril()
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        mask = mask[..., :q.shape[2], :k.shape[2]]
        if mask.dtype.is_floating_point:
            scores = scores + mask
        else:
            seen = seen & mask
    return ops._safe_softmax(scores.masked_fill(~seen, -math.inf), -1)
