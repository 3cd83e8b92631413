"""How masked tensors print: `--` for what is left out."""

from __future__ import annotations

from typing import Any

_WIDTH = 8  # of what is left out, and of floating numbers


def text(t: Any) -> str:
    """`MaskedTensor(...)`, a line for each innermost row."""
    data, mask = t.data_part.detach(), t.mask_part
    form = "{:8.4f}" if t.dtype.is_floating_point else "{}"
    try:
        values, there = data.tolist(), mask.tolist()
    except Exception:  # below a transform: what the level shows
        return f"MaskedTensor({data!r}, mask={mask!r})"
    if not t.ndim:
        return f"MaskedTensor({form.format(values) if there else '--'}, {there})"
    return f"MaskedTensor(\n{_indented(_rows(values, there, t.ndim, form))}\n)"


def _indented(lines: str) -> str:
    return "\n".join(["  " + line for line in lines.split("\n")])


def _rows(values: list, there: list, ndim: int, form: str) -> str:
    if ndim > 1:
        inner = [_indented(_rows(v, m, ndim - 1, form)) for v, m in zip(values, there)]
        return "[\n" + ",\n".join(inner) + "\n]" if inner else "[]"
    shown = [form.format(v) for v in values]
    width = max([len(s) if m else _WIDTH for s, m in zip(shown, there)], default=0)
    return "[" + ", ".join([s if m else "--".rjust(width) for s, m in zip(shown, there)]) + "]"
