"""The module of multi-head attention; its function is in `nn/attention/forward.py`."""

from __future__ import annotations

from ...core.handle import Tensor
from .. import functional as F
from .. import init
from ..linear import NonDynamicallyQuantizableLinear
from ..module import Module
from ..shared import new
from .nested import nested_attention


class MultiheadAttention(Module):
    """Attention of several heads with learned projections of queries, keys and values."""

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
                 add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: int | None = None,
                 vdim: int | None = None, batch_first: bool = False, device=None,
                 dtype=None) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError("embed_dim and num_heads must be greater than 0, got "
                             f"embed_dim={embed_dim} and num_heads={num_heads} instead")
        if embed_dim % num_heads:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.batch_first, self.head_dim = batch_first, embed_dim // num_heads
        self.add_zero_attn = add_zero_attn
        names = ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight")
        if self._qkv_same_embed_dim:
            shapes = {"in_proj_weight": (3 * embed_dim, embed_dim)}
        else:
            shapes = {"q_proj_weight": (embed_dim, embed_dim),
                      "k_proj_weight": (embed_dim, self.kdim),
                      "v_proj_weight": (embed_dim, self.vdim)}
        for name in names:
            shape = shapes.get(name)
            self.register_parameter(name, None if shape is None else new(shape, device, dtype))
        self.register_parameter("in_proj_bias",
                                new((3 * embed_dim,), device, dtype) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias,
                                                        device=device, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            extra = new((1, 1, embed_dim), device, dtype) if add_bias_kv else None
            self.register_parameter(name, extra)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Xavier's numbers for the projections, zeros for their biases."""
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            weight = getattr(self, name)
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def forward(self, query: Tensor, key: Tensor, value: Tensor,
                key_padding_mask: Tensor | None = None, need_weights: bool = True,
                attn_mask: Tensor | None = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
        if query.is_nested:
            return nested_attention(self, query, key, value, key_padding_mask, need_weights,
                                    attn_mask, average_attn_weights, is_causal)
        swapped = self.batch_first and query.ndim == 3
        if swapped:
            same = query is key and key is value
            query = query.transpose(0, 1)
            key, value = (query, query) if same else (key.transpose(0, 1), value.transpose(0, 1))
        out, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight,
            self.in_proj_bias, self.bias_k, self.bias_v, self.add_zero_attn, self.dropout,
            self.out_proj.weight, self.out_proj.bias, training=self.training,
            key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight, k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight, average_attn_weights=average_attn_weights,
            is_causal=is_causal)
        return (out.transpose(0, 1) if swapped else out), weights

    def merge_masks(self, attn_mask: Tensor | None, key_padding_mask: Tensor | None,
                    query: Tensor) -> tuple[Tensor | None, int | None]:
        """Both masks as one to add, and its kind: 1 for padding alone, 2 with an attention mask."""
        if attn_mask is None:
            return key_padding_mask, None if key_padding_mask is None else 1
        batch, length = query.shape[:2]
        if attn_mask.ndim == 3:
            merged = attn_mask.reshape([batch, -1, length, length])
        else:
            merged = attn_mask.reshape([1, 1, length, length]).expand(
                [batch, self.num_heads, -1, -1])
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.reshape([batch, 1, 1, length])
        return merged, 2
