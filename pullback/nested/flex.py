"""`flex_attention` of sequences of different lengths: those of similar length together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import errors
from ..core.handle import Tensor
from ..parts.rules import shown
from ..table.packets import ops
from .groups import Group, Rows, grouped, values_of
from .tensor import NestedTensor, packed


def attend_nested(attend: Callable, query: Tensor, key: Tensor, value: Tensor,
                  score_mod: Callable | None, mask_mod: Callable | None,
                  scale: float) -> tuple[Tensor, Tensor, Tensor]:
    """What `attend` does, for each sequence; functions get the places in it."""
    given = (query, key, value)
    if not all(isinstance(t, NestedTensor) and t.ragged_idx == 2 for t in given):
        raise errors.LayoutError(errors.text(
            "flex_attention: query, key and value must all be jagged, with the ragged dim before "
            f"the last: (batch, heads, ragged, width) ({errors.user_line(3)})",
            [shown(t) for t in given], "x.transpose(1, 2) of (batch, ragged, heads, width)"))
    if not query.shape[0] == key.shape[0] == value.shape[0] or key.shape[2] != value.shape[2]:
        raise errors.ShapeError(errors.text(
            f"flex_attention: key and value must have the same lengths, and there must be as many "
            f"as queries ({errors.user_line(3)})", [shown(t) for t in given]))
    packs: list[Any] = [packed(t) for t in given]
    groups = grouped([packs[0].about, packs[1].about], [packs[0].longest, packs[1].longest], 2)
    queries, keys, values = Rows(packs[0]), Rows(packs[1], 1), Rows(packs[2], 1)
    found = [attend(queries.of(g), keys.of(g), values.of(g), score_mod, mask_mod, scale,
                    batch=_numbers(g, packs[0]), inside=_inside(g, packs[1])) for g in groups]
    out, lse, highest = ([results[k] for results in found] for k in range(3))
    return (values_of(packs[0], groups, out, 2), values_of(packs[0], groups, lse, 2),
            values_of(packs[0], groups, highest, 2))


def _numbers(group: Group, query: NestedTensor) -> Tensor:
    """Which sequences are in a group."""
    if group.members is None:
        return ops.arange(query.count, device=query.device)
    return group.index


def _inside(group: Group, key: NestedTensor) -> Tensor | None:
    """Which keys of a padded group there are."""
    if group.members is not None and len(group.members) == 1:
        return None
    places = ops.arange(group.longest[1], device=key.device)
    return (places < group.rows(key.about.lengths).unsqueeze(1))[:, None, None]
