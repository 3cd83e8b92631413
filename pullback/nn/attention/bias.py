"""Causal masks that are known by name: `causal_upper_left`, `causal_lower_right`."""

from __future__ import annotations

import warnings
from enum import IntEnum, auto

from ...array import dtype as dt
from ...core.handle import Tensor, disabled
from ...interp.function_overrides import make_subclass
from ...table.packets import ops

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """Where the diagonal of a mask that is not square begins: at its first or its last corner."""

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


class CausalBias(Tensor):
    """A mask of truth values for `scaled_dot_product_attention`: true where keys may be seen."""

    __torch_function__ = disabled

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int):
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        lower = variant is CausalVariant.LOWER_RIGHT
        if lower and seq_len_q > seq_len_kv:
            warnings.warn("Lower right causal bias will produce NaNs in the output when seq_len_q "
                          "> seq_len_kv!", stacklevel=2)
        seen = ops.ones([seq_len_q, seq_len_kv], dtype=dt.bool_)
        mask = ops.tril(seen, seq_len_kv - seq_len_q if lower else 0)
        new = make_subclass(cls, mask)
        new.variant, new.seq_len_q, new.seq_len_kv = variant, seq_len_q, seq_len_kv
        return new

    def _materialize(self, device=None) -> Tensor:
        """An ordinary tensor of the same values."""
        return self.detach() if device is None else self.detach().to(device)


def _variant(variant: CausalVariant, size: tuple) -> CausalBias:
    if len(size) != 2:
        raise AssertionError(f"causal_{variant.name.lower()} only supports 2D tensors")
    return CausalBias(variant, *size)


def causal_upper_left(*size: int) -> CausalBias:
    """The mask in which the first query sees the first key, and so on."""
    return _variant(CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """The mask in which the last query sees all keys, the one before all but one, and so on."""
    return _variant(CausalVariant.LOWER_RIGHT, size)
