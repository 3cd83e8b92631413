"""Transformer encoders and decoders.

A layer is attention and a small network of two linear maps, each with a residual connection and a
normalisation before (`norm_first`) or after it.  Attention is in `nn/attention/`.
"""

from __future__ import annotations

import copy
import math
import warnings
from typing import Any

from ..autograd.grad_mode import is_grad_enabled
from ..core.handle import Tensor
from ..errors import DataDependentError
from ..table.packets import ops
from ..threads.state import in_passing
from . import functional as F
from . import init
from .activations import GELU, ReLU
from .attention.forward import canonical_mask
from .attention.layer import MultiheadAttention
from .containers import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalisation import LayerNorm

# ---------------------------------------------------------------------------------------------
# Layers


def _activation(name):
    """A function, given itself or by one of two names."""
    if not isinstance(name, str):
        return name
    if name not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {name}")
    return getattr(F, name)


class _Layer(Module):
    """What both kinds of layer have: attentions, the network, and a norm and dropout for each."""

    attentions: tuple[str, ...]
    self_attn: MultiheadAttention  # one of them

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048,
                 dropout: float = 0.1, activation: Any = F.relu, layer_norm_eps: float = 1e-5,
                 batch_first: bool = False, norm_first: bool = False, bias: bool = True,
                 device=None, dtype=None) -> None:
        super().__init__()
        made = {"bias": bias, "device": device, "dtype": dtype}
        for name in self.attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout,
                                                   batch_first=batch_first, **made))
        self.linear1 = Linear(d_model, dim_feedforward, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **made)
        self.norm_first = norm_first
        parts = range(1, len(self.attentions) + 2)
        for i in parts:
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, **made))
        for i in parts:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _activation(activation)

    def _residual(self, x: Tensor, norm: Module, block) -> Tensor:
        return x + block(norm(x)) if self.norm_first else norm(x + block(x))

    def _sa_block(self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None,
                  is_causal: bool = False) -> Tensor:
        """Attention of a sequence to itself."""
        return self.dropout1(self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, need_weights=False,
            is_causal=is_causal)[0])

    def _ff_block(self, x: Tensor) -> Tensor:
        """The network of two linear maps."""
        last = getattr(self, f"dropout{len(self.attentions) + 1}")
        return last(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, then a small network."""

    attentions = ("self_attn",)

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048,
                 dropout: float = 0.1, activation: Any = F.relu, layer_norm_eps: float = 1e-5,
                 batch_first: bool = False, norm_first: bool = False, bias: bool = True,
                 device=None, dtype=None) -> None:
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps,
                         batch_first, norm_first, bias, device, dtype)
        chosen = self.activation  # 1 and 2 are those that `TransformerEncoder` asks for
        self.activation_relu_or_gelu = (
            1 if chosen is F.relu or isinstance(chosen, ReLU)
            else 2 if chosen is F.gelu or isinstance(chosen, GELU) else 0)

    def forward(self, src: Tensor, src_mask: Tensor | None = None,
                src_key_padding_mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        padding = canonical_mask(src_key_padding_mask, "src_key_padding_mask", src_mask,
                                 "src_mask", src.dtype)
        mask = canonical_mask(src_mask, "src_mask", None, "", src.dtype)
        x = self._residual(src, self.norm1,
                           lambda x: self._sa_block(x, mask, padding, is_causal=is_causal))
        return self._residual(x, self.norm2, self._ff_block)


class TransformerDecoderLayer(_Layer):
    """Attention of a sequence to itself, then to the memory of an encoder, then a network."""

    attentions = ("self_attn", "multihead_attn")

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None,
                memory_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
                memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool = False,
                memory_is_causal: bool = False) -> Tensor:
        x = self._residual(tgt, self.norm1, lambda x: self._sa_block(
            x, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
        x = self._residual(x, self.norm2, lambda x: self._mha_block(
            x, memory, memory_mask, memory_key_padding_mask, memory_is_causal))
        return self._residual(x, self.norm3, self._ff_block)

    def _mha_block(self, x: Tensor, mem: Tensor, attn_mask: Tensor | None,
                   key_padding_mask: Tensor | None, is_causal: bool = False) -> Tensor:
        """Attention of a sequence to the memory."""
        return self.dropout2(self.multihead_attn(
            x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask,
            is_causal=is_causal, need_weights=False)[0])


# ---------------------------------------------------------------------------------------------
# Stacks of layers


def _causal_mask(size: int, device=None, dtype=None) -> Tensor:
    """Minus infinity above the diagonal, zero elsewhere."""
    return ops.triu(ops.full([size, size], -math.inf, dtype=dtype, device=device), 1)


@in_passing
def _is_causal(mask: Tensor | None, hint: bool | None, sequence: Tensor,
               batch_first: bool) -> bool:
    """The hint; without one, whether this is the mask of a sequence that sees only its past."""
    if hint is not None or mask is None:
        return hint is True
    size = sequence.shape[0 if sequence.ndim == 2 else 1 if batch_first else 0]
    if tuple(mask.shape) != (size, size):
        return False
    try:
        return bool((mask == _causal_mask(size, mask.device, mask.dtype)).all())
    except DataDependentError:  # captured: the mask itself gives the same numbers
        return False


class _Stack(Module):
    """Copies of a layer, one after the other, and a last normalisation."""

    def _stack(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm


class TransformerEncoder(_Stack):
    """A stack of encoder layers."""

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None,
                 enable_nested_tensor: bool = True, mask_check: bool = True) -> None:
        self._stack(encoder_layer, num_layers, norm)
        self.enable_nested_tensor = self.use_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        reason = self._why_not_nested(encoder_layer)
        if enable_nested_tensor and reason:
            warnings.warn("enable_nested_tensor is True, but self.use_nested_tensor is False "
                          f"because {reason}", stacklevel=2)
            self.use_nested_tensor = False

    @staticmethod
    def _why_not_nested(layer: Module) -> str:
        """Why PyTorch would not drop the padding between layers of this kind; empty: it would."""
        if not isinstance(layer, TransformerEncoderLayer):
            return "encoder_layer was not TransformerEncoderLayer"
        own = layer.self_attn
        reasons = {
            "norm_first was True": layer.norm_first,
            "self_attn.batch_first was not True(use batch_first for better inference "
            "performance)": not own.batch_first,
            "self_attn._qkv_same_embed_dim was not True": not own._qkv_same_embed_dim,
            "self_attn was passed bias=False": own.in_proj_bias is None,
            "activation_relu_or_gelu was not True": not layer.activation_relu_or_gelu,
            "norm1.eps was not equal to encoder_layer.norm2.eps":
                layer.norm1.eps != layer.norm2.eps,
            "self_attn.num_heads is odd": own.num_heads % 2 == 1,
        }
        return next((f"encoder_layer.{why}" for why, holds in reasons.items() if holds), "")

    @in_passing
    def _dropped(self, src: Tensor, mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
        """Where PyTorch leaves out the padding between the layers; its results are zeros there."""
        if (not self.use_nested_tensor or self.layers[0].training or src.ndim != 3
                or padding is None or mask is not None):
            return None
        if is_grad_enabled() and any(t.requires_grad for t in (
                src, *self.layers[0].parameters())):
            return None
        kept = padding == 0
        with_gaps = (kept[:, 1:] & ~kept[:, :-1]).any() if self.mask_check else False
        try:
            return None if bool(with_gaps) else ~kept
        except DataDependentError:  # PyTorch does not drop anything in captured programs either
            return None

    def forward(self, src: Tensor, mask: Tensor | None = None,
                src_key_padding_mask: Tensor | None = None,
                is_causal: bool | None = None) -> Tensor:
        padding = canonical_mask(src_key_padding_mask, "src_key_padding_mask", mask, "mask",
                                 src.dtype)
        mask = canonical_mask(mask, "mask", None, "", src.dtype)
        dropped = self._dropped(src, mask, padding)
        if dropped is not None:  # any padding counts as forbidden, whatever its number
            padding = ops.zeros_like(padding).masked_fill(dropped, -math.inf)
        causal = _is_causal(mask, is_causal, src, self.layers[0].self_attn.batch_first)
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        if dropped is not None:
            output = output.masked_fill(dropped.unsqueeze(-1), 0.0)
        return output if self.norm is None else self.norm(output)


class TransformerDecoder(_Stack):
    """A stack of decoder layers."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        self._stack(decoder_layer, num_layers, norm)

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None,
                memory_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
                memory_key_padding_mask: Tensor | None = None,
                tgt_is_causal: bool | None = None, memory_is_causal: bool = False) -> Tensor:
        causal = _is_causal(tgt_mask, tgt_is_causal, tgt, self.layers[0].self_attn.batch_first)
        output = tgt
        for layer in self.layers:
            output = layer(output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                           tgt_key_padding_mask=tgt_key_padding_mask,
                           memory_key_padding_mask=memory_key_padding_mask,
                           tgt_is_causal=causal, memory_is_causal=memory_is_causal)
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder, and a decoder that attends to what it made."""

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6,
                 num_decoder_layers: int = 6, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: Any = F.relu, custom_encoder: Module | None = None,
                 custom_decoder: Module | None = None, layer_norm_eps: float = 1e-5,
                 batch_first: bool = False, norm_first: bool = False, bias: bool = True,
                 device=None, dtype=None) -> None:
        super().__init__()
        made = {"bias": bias, "device": device, "dtype": dtype}
        kinds = (("encoder", custom_encoder, TransformerEncoderLayer, TransformerEncoder,
                  num_encoder_layers),
                 ("decoder", custom_decoder, TransformerDecoderLayer, TransformerDecoder,
                  num_decoder_layers))
        for name, custom, layer, stack, count in kinds:
            if custom is None:
                one = layer(d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps,
                            batch_first, norm_first, **made)
                custom = stack(one, count, LayerNorm(d_model, eps=layer_norm_eps, **made))
            setattr(self, name, custom)
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None,
                tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                src_key_padding_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None,
                memory_key_padding_mask: Tensor | None = None,
                src_is_causal: bool | None = None, tgt_is_causal: bool | None = None,
                memory_is_causal: bool = False) -> Tensor:
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and tgt.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask,
                              is_causal=src_is_causal)
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                            tgt_key_padding_mask=tgt_key_padding_mask,
                            memory_key_padding_mask=memory_key_padding_mask,
                            tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device=None, dtype=None) -> Tensor:
        """The mask of a sequence that sees only its past."""
        return _causal_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        """Xavier's numbers for all matrices."""
        for param in self.parameters():
            if param.ndim > 1:
                init.xavier_uniform_(param)
