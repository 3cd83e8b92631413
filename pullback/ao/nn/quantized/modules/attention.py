"""Attention whose projections are quantised layers; `convert` makes it of one that was observed."""

from __future__ import annotations

from typing import Any, ClassVar

from ..... import nn
from .....core.handle import Tensor
from .....table.packets import ops
from ...quantizable.modules import activation
from ...quantizable.modules.observing import converted, not_calibrated


class MultiheadAttention(activation.MultiheadAttention):
    """Attention from integers to integers."""

    _FLOAT_MODULE: ClassVar[Any] = activation.MultiheadAttention

    def _get_name(self) -> str:
        return "QuantizedMultiheadAttention"

    from_float = classmethod(not_calibrated)

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """The layer that stands for one that was observed."""
        new = converted(cls, other, cls._FLOAT_MODULE, cls)
        for name in ("in_proj_weight", "in_proj_bias"):  # the projections are layers
            new._parameters.pop(name, None)
        for name in ("bias_k", "bias_v"):
            if getattr(new, name) is not None:
                new._parameters.pop(name)
                new.register_buffer(name, getattr(other, name).detach())
        return new

    def dequantize(self) -> nn.MultiheadAttention:
        """Attention with the numbers that the integers stand for."""
        layers = self.linear_Q, self.linear_K, self.linear_V
        plain = nn.MultiheadAttention(
            self.embed_dim, self.num_heads, self.dropout, layers[0].bias() is not None,
            self.bias_k is not None, self.add_zero_attn, self.kdim, self.vdim, self.batch_first)
        weights = [layer.weight().dequantize() for layer in (*layers, self.out_proj)]
        with _no_grad():
            if plain._qkv_same_embed_dim:
                plain.in_proj_weight.copy_(ops.cat(weights[:3]))
            else:
                for name, w in zip(("q", "k", "v"), weights):
                    getattr(plain, f"{name}_proj_weight").copy_(w)
            plain.out_proj.weight.copy_(weights[3])
            if layers[0].bias() is not None:
                plain.in_proj_bias.copy_(ops.cat([layer.bias() for layer in layers]))
                plain.out_proj.bias.copy_(self.out_proj.bias())
            for name in ("bias_k", "bias_v"):
                held: Tensor | None = getattr(self, name)
                if held is not None:
                    getattr(plain, name).copy_(held)
        return plain


def _no_grad() -> Any:
    from .....autograd.grad_mode import no_grad

    return no_grad()
