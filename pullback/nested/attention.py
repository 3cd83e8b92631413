"""Attention over batches of sequences of different lengths, without padding to the longest.

Queries are (batch, heads, ragged, width), keys and values likewise; the lengths of queries and of
keys may differ.  One operator does it (`ops/ragged_attention.py`).  With a mask, dropout, or fewer
heads of keys than of queries, parts of similar lengths are computed together (`groups.py`), and
what is behind the end of a sequence is masked.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..core.handle import Tensor
from ..parts.rules import rule, shown
from ..table.packets import ops
from .groups import Group, Rows, grouped, values_of
from .tensor import NestedTensor, packed

NAME = "scaled_dot_product_attention"


@rule(NestedTensor, NAME)
def attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None,
              dropout_p: float = 0.0, is_causal: bool = False, scale: Any = None,
              enable_gqa: bool = False) -> Tensor:
    given = (query, key, value)
    _check(given, attn_mask, is_causal)
    if attn_mask is None and not dropout_p and _plain(query, key, value):
        return _unpadded(query, key, value, is_causal, scale)
    if not isinstance(query, NestedTensor):  # the same queries lengths for all
        return _dense_queries(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    query, key, value = [packed(t) if isinstance(t, NestedTensor) else t for t in given]
    nested_keys = isinstance(key, NestedTensor)
    abouts = [query.about, key.about] if nested_keys else [query.about]
    longest = [query.longest, key.longest] if nested_keys else [query.longest]
    groups = grouped(abouts, longest, 2)
    found, queries = [], Rows(query)
    its_keys, its_values = Rows(key, 1), Rows(value, 1)
    for group in groups:
        if nested_keys:
            keys, values = its_keys.of(group), its_values.of(group)
        else:
            keys, values = group.rows(key), group.rows(value)
        mask = _mask(group, query, key if nested_keys else None, attn_mask, is_causal)
        found.append(ops.scaled_dot_product_attention(
            queries.of(group), keys, values, mask, dropout_p,
            is_causal and mask is None, scale=scale, enable_gqa=enable_gqa))
    return values_of(query, groups, found, query.ragged_idx)


def _plain(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Is it what the operator for parts does?"""
    return (query.dtype.is_floating_point and query.dtype.itemsize > 1
            and query.device.type == "cpu"
            and query.shape[0] == key.shape[0] == value.shape[0]
            and query.shape[-1] == key.shape[-1]
            and (query.ndim == 3 or query.shape[1] == key.shape[1] == value.shape[1])
            and (isinstance(key, NestedTensor) or key.shape[-2] == value.shape[-2]))


def _unpadded(query: Tensor, key: Tensor, value: Tensor, is_causal: bool, scale: Any) -> Tensor:
    """By one operator on all places."""
    query, key, value = [packed(t) if isinstance(t, NestedTensor) else t
                         for t in (query, key, value)]
    own, keys = _places(query), _places(key)
    out, _ = ops._ragged_attention(
        own[0], keys[0], _places(value)[0], own[1], keys[1], own[2], keys[2], is_causal,
        scale=scale)
    out = out.transpose(0, 1) if query.ndim == 4 else out.squeeze(1)
    if isinstance(query, NestedTensor):
        return query.with_values(out)
    rows = out.unflatten(-2, (query.shape[0], query.shape[-2]))
    return rows.transpose(0, 1) if query.ndim == 4 else rows


def _places(t: Tensor) -> tuple[Tensor, Tensor, Any]:
    """(places of all parts, heads, width), where the parts begin, and the largest length."""
    if isinstance(t, NestedTensor):
        values, offsets = t.values_part, t.offsets_part
        # no part is longer than all together: in captures the numbers may not be known
        known = t.longest_part is not None or t.about.plain
        longest = t.longest() if known else values.shape[t.dense]
    else:  # parts of one length
        longest = t.shape[-2]
        values = (t.transpose(0, 1) if t.ndim == 4 else t).flatten(-3, -2)
        offsets = ops.arange(t.shape[0] + 1, device=t.device) * longest
    return values.transpose(0, 1) if t.ndim == 4 else values.unsqueeze(1), offsets, longest


def _check(given: tuple, attn_mask: Any, is_causal: bool) -> None:
    ndim = given[0].ndim
    key, value = given[1:]
    if any(t.ndim != ndim for t in given) or ndim not in (3, 4):
        raise _refused("expected query, key and value with 3 or 4 dims", given)
    if any(isinstance(t, NestedTensor) and t.ragged_idx != ndim - 2 for t in given):
        raise _refused("the ragged dim must be the last but one: transpose(1, 2) of (batch, "
                       "ragged, heads, width)", given)
    if isinstance(key, NestedTensor) != isinstance(value, NestedTensor) or isinstance(
            key, NestedTensor) and key.shape[-2] != value.shape[-2]:
        raise _refused("key and value must have the same lengths", given)
    if any(t.dtype != given[0].dtype for t in given):
        raise errors.DTypeError(
            f"{NAME}: Expected query, key, and value to have the same dtype, but got "
            f"{[str(t.dtype) for t in given]} ({errors.user_line(4)})")
    if attn_mask is not None and is_causal:
        raise _refused("Explicit attn_mask should not be set when is_causal=True", given)


def _refused(said: str, given: tuple) -> Exception:
    return errors.RefusedValue(errors.text(f"{NAME}: {said} ({errors.user_line(5)})",
                                           [shown(t) for t in given]))


def _mask(group: Group, query: NestedTensor, key: NestedTensor | None, attn_mask: Any,
          is_causal: bool) -> Tensor | None:
    """What a query may look at: keys that are there, and not behind it."""
    mask = None
    alone = group.members is not None and len(group.members) == 1
    if key is not None and not alone:
        lengths = group.rows(key.about.lengths)
        places = ops.arange(group.longest[1], device=lengths.device)
        inside = places < lengths.unsqueeze(1)
        if not key.about.plain or not bool(inside.all()):
            mask = inside.unsqueeze(1)  # (parts, 1, keys)
    if is_causal and (mask is not None or _rectangular(group, key)):
        n, m = group.longest[0], group.longest[1] if key is not None else group.longest[0]
        device = query.offsets_part.device
        past = ops.arange(n, device=device).unsqueeze(1) >= ops.arange(m, device=device)
        mask = past if mask is None else mask & past
    if mask is not None and query.ndim == 4:
        mask = mask.unsqueeze(1)
    if attn_mask is None:
        return mask
    each = attn_mask.ndim == query.ndim and attn_mask.shape[0] == query.count
    bias = group.rows(attn_mask) if each else attn_mask
    n, m = group.longest[0], group.longest[1] if key is not None else attn_mask.shape[-1]
    bias = bias[..., :n, :m]
    if mask is None:
        return bias
    if str(bias.dtype) == "torch.bool":
        return bias & mask
    return bias.masked_fill(~mask, float("-inf"))


def _rectangular(group: Group, key: Any) -> bool:
    return key is None or len(group.longest) > 1 and group.longest[0] is not group.longest[1]


def _dense_queries(query: Tensor, key: NestedTensor, value: NestedTensor, attn_mask: Any,
                   dropout_p: float, is_causal: bool, scale: Any, enable_gqa: bool) -> Tensor:
    """As many queries for each part: the keys are padded in groups, the result is dense."""
    from .products import joined_rows

    key, value = packed(key), packed(value)
    groups = grouped([key.about], [key.longest])
    found, its_keys, its_values = [], Rows(key), Rows(value)
    for group in groups:
        inner = Group(group.members, [query.shape[-2], group.longest[0]], group.device)
        mask = _mask(inner, _Sized(query, key), key, attn_mask, is_causal)
        found.append(ops.scaled_dot_product_attention(
            group.rows(query), its_keys.of(group), its_values.of(group), mask, dropout_p,
            is_causal and mask is None, scale=scale, enable_gqa=enable_gqa))
    return joined_rows(groups, found)


class _Sized:
    """What a mask asks of dense queries."""

    def __init__(self, query: Tensor, key: NestedTensor):
        self.ndim, self.count, self.offsets_part = query.ndim, query.shape[0], key.offsets_part
