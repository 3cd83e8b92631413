"""How sparse tensors print: their parts, and the facts about the whole."""

from __future__ import annotations

from typing import Any

from .. import printing
from ..array import dtype as dt
from ..core.handle import Box, Tensor

_INTEGERS = {"compressed_part": ("crow_indices", "ccol_indices"),
             "plain_part": ("col_indices", "row_indices")}


def text(t: Any, contents: Any = None) -> str:
    """`tensor(indices=..., values=..., size=..., nnz=..., layout=...)`."""
    parts = []
    for name in t.names:
        part = getattr(t, name).detach()
        if name in _INTEGERS:
            shown = _INTEGERS[name][0 if t.by_rows else 1]
        else:
            shown = name.removesuffix("_part")
        parts.append((shown, _values(part, len(f"tensor({shown}=tensor("))))
    device = str(t.device)
    facts = [] if device == "cpu" else [f"device='{device}'"]
    facts.append(f"size={_sizes(t.shape)}")
    if device != "meta":
        facts.append(f"nnz={t._nnz()}")
    node = t.grad_fn
    return printing.composed_repr(
        parts, facts, t.dtype.name, f"layout={t.layout}", default_dtype=dt.default().name,
        requires_grad=t.requires_grad, grad_fn_name=None if node is None else node.name(),
        breaks=t.is_sparse, contents=contents)


def _sizes(shape: Any) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _values(part: Tensor, indent: int) -> str:
    """The text between the brackets of `tensor(...)`."""
    if isinstance(part._payload, Box) or str(part.device) == "meta":
        return f"..., size={_sizes(part.shape)}"  # inside of a transform there are no numbers
    shown = printing._tensor_str(part, indent)
    return shown if part.numel() else f"{shown}, size={_sizes(part.shape)}"
