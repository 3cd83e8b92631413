"""Attention, also by the private names that copies of PyTorch's modules call."""

from __future__ import annotations

from ...core.handle import Tensor
from ...table.packets import ops
from ...tensor.overridable import overridable as _overridable
from ..attention.forward import _is_batched as _mha_shape_check
from ..attention.forward import canonical_mask, multi_head_attention_forward, project

__all__ = ["_canonical_mask", "_in_projection", "_in_projection_packed", "_mha_shape_check",
           "_none_or_dtype", "multi_head_attention_forward", "scaled_dot_product_attention"]


@_overridable
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor,
                                 attn_mask: Tensor | None = None, dropout_p: float = 0.0,
                                 is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False) -> Tensor:
    """softmax(query @ key.T * scale + mask) @ value."""
    return ops.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal,
                                            scale=scale, enable_gqa=enable_gqa)


def _none_or_dtype(input: Tensor | None):
    """The dtype of a tensor that may be missing."""
    return None if input is None else input.dtype


def _canonical_mask(mask: Tensor | None, mask_name: str, other_type, other_name: str, target_type,
                    check_other: bool = True) -> Tensor | None:
    """A mask as numbers to add; a warning if another mask has another dtype."""
    return canonical_mask(mask, mask_name, other_type if check_other else None, other_name,
                          target_type)


def _in_projection_packed(q: Tensor, k: Tensor, v: Tensor, w: Tensor,
                          b: Tensor | None = None) -> list[Tensor]:
    """Queries, keys and values by three projections in one matrix."""
    return project(q, k, v, w, b, None)


def _in_projection(q: Tensor, k: Tensor, v: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor,
                   b_q: Tensor | None = None, b_k: Tensor | None = None,
                   b_v: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values by three projections."""
    return ops.linear(q, w_q, b_q), ops.linear(k, w_k, b_k), ops.linear(v, w_v, b_v)
