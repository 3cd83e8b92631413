"""Attention whose projections are layers, so that observers can look at their results.

The products of queries, keys and values are those of numbers, also in the quantised layer.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..... import nn
from .....array import dtype as dt
from .....core.handle import Tensor
from .....nn import functional as F
from .....table.packets import ops
from ....quantization.stubs import DeQuantStub, QuantStub
from ...quantized import FloatFunctional
from .observing import not_observed, prepared


class MultiheadAttention(nn.MultiheadAttention):
    """Attention whose parts observers can look at."""

    _FLOAT_MODULE: ClassVar[Any] = nn.MultiheadAttention
    __constants__ = ["batch_first"]

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
                 add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: int | None = None,
                 vdim: int | None = None, batch_first: bool = False, device: Any = None,
                 dtype: Any = None):
        given = {"device": device, "dtype": dtype}
        super().__init__(embed_dim, num_heads, dropout, bias, add_bias_kv, add_zero_attn, kdim,
                         vdim, batch_first, **given)
        self.linear_Q = nn.Linear(embed_dim, embed_dim, bias=bias, **given)
        self.linear_K = nn.Linear(self.kdim, embed_dim, bias=bias, **given)
        self.linear_V = nn.Linear(self.vdim, embed_dim, bias=bias, **given)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias, **given)
        self.q_scaling_product = FloatFunctional()
        self.quant_attn_output, self.quant_attn_output_weights = QuantStub(), QuantStub()
        self.dequant_q, self.dequant_k, self.dequant_v = (
            DeQuantStub(), DeQuantStub(), DeQuantStub())

    def _get_name(self) -> str:
        return "QuantizableMultiheadAttention"

    def forward(self, query: Tensor, key: Tensor, value: Tensor,
                key_padding_mask: Tensor | None = None, need_weights: bool = True,
                attn_mask: Tensor | None = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
        if self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        if is_causal and attn_mask is None:
            attn_mask = ops.ones((query.shape[0], key.shape[0]), dtype=dt.bool_).triu(1)
        steps, batch, width = query.shape
        q = self.q_scaling_product.mul_scalar(self.linear_Q(query), 1 / math.sqrt(self.head_dim))
        k, v = self.linear_K(key), self.linear_V(value)
        q, k, v = self.dequant_q(q), self.dequant_k(k), self.dequant_v(v)
        mask = _added(attn_mask, key_padding_mask, self.num_heads)
        k, v, mask = self._with_more_keys(k, v, mask)
        q, k, v = (x.contiguous().reshape(x.shape[0], batch * self.num_heads, self.head_dim)
                   .transpose(0, 1) for x in (q, k, v))
        if self.add_zero_attn:
            k, v = (ops.cat([x, x.new_zeros((x.shape[0], 1, x.shape[2]))], 1) for x in (k, v))
            mask = None if mask is None else F.pad(mask, (0, 1))
        weights = ops.bmm(q, k.transpose(1, 2))
        weights = weights if mask is None else weights + mask
        weights = F.dropout(weights.softmax(-1), self.dropout, self.training)
        out = ops.bmm(weights, v).transpose(0, 1).contiguous().reshape(steps, batch, width)
        out = out.transpose(0, 1) if self.batch_first else out
        out = self.out_proj(self.quant_attn_output(out))
        weights = self.quant_attn_output_weights(weights)
        if not need_weights:
            return out, None
        weights = weights.reshape(batch, self.num_heads, steps, -1)
        return out, weights.mean(dim=1) if average_attn_weights else weights

    def _with_more_keys(self, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple:
        """Keys and values with those that were learnt behind them."""
        if self.bias_k is None or self.bias_v is None:
            return k, v, mask
        more = [b.expand(1, k.shape[1], b.shape[-1]) for b in (self.bias_k, self.bias_v)]
        return (ops.cat([k, more[0]]), ops.cat([v, more[1]]),
                None if mask is None else F.pad(mask, (0, 1)))

    @classmethod
    def from_float(cls, other: nn.Module) -> nn.Module:
        """The layer that stands for an `nn.MultiheadAttention`, with observers."""
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(
                f"expected {cls._FLOAT_MODULE.__name__}, got {type(other).__name__}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        new = cls(other.embed_dim, other.num_heads, other.dropout,
                  other.in_proj_bias is not None, other.bias_k is not None, other.add_zero_attn,
                  other.kdim, other.vdim, other.batch_first)
        new.bias_k, new.bias_v, new.qconfig = other.bias_k, other.bias_v, other.qconfig
        new.out_proj.weight, new.out_proj.bias = other.out_proj.weight, other.out_proj.bias
        weights = other.in_proj_weight.chunk(3) if other._qkv_same_embed_dim else (
            other.q_proj_weight, other.k_proj_weight, other.v_proj_weight)
        biases = [None] * 3 if other.in_proj_bias is None else other.in_proj_bias.chunk(3)
        for layer, w, b in zip((new.linear_Q, new.linear_K, new.linear_V), weights, biases):
            layer.weight = nn.Parameter(w.detach(), w.requires_grad)
            layer.bias = None if b is None else nn.Parameter(b.detach(), b.requires_grad)
        return prepared(new, False)

    from_observed = classmethod(not_observed)


def _added(mask: Tensor | None, padding: Tensor | None, heads: int) -> Tensor | None:
    """What is added to the products of queries and keys: -inf where nothing may be seen."""

    def numbers(m: Tensor) -> Tensor:
        if m.is_floating_point():
            return m
        return ops.zeros(m.shape).masked_fill(m.bool(), -math.inf)

    found = None if mask is None else numbers(mask)
    if padding is None:
        return found
    each = numbers(padding)[:, None, None, :].expand(-1, heads, -1, -1)
    each = each.reshape(padding.shape[0] * heads, 1, -1)
    return each if found is None else found + each
