"""How quantised tensors print: their numbers, and the parameters behind."""

from __future__ import annotations

from typing import Any

from ..printing import _options, _tensor_str, _with_suffixes


def text(t: Any) -> str:
    """`tensor([...], size=..., dtype=..., quantization_scheme=..., scale=..., zero_point=...)`."""
    facts = [f"size={tuple(t.shape)}", f"dtype={t.dtype}", f"quantization_scheme={t.qscheme()}"]
    if t.axis < 0:
        facts += [f"scale={t.q_scale()}", f"zero_point={t.q_zero_point()}"]
    else:
        facts += [f"scale={t.scale_part}", f"zero_point={t.zero_part}", f"axis={t.axis}"]
    if t.through_part is not None and t.grad_fn is not None:
        facts.append(f"grad_fn=<{type(t.grad_fn).__name__}>")
    numbers = "tensor(" + _tensor_str(t.dequantize(), 7)
    said = "Parameter containing:\n" if getattr(t, "_is_param", False) else ""
    return said + _with_suffixes(numbers, facts, 7, _options.linewidth)
