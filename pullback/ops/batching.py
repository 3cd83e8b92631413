"""Batching rules that many entries share.

Entries inherit rules and rules may be shared, so a rule keeps nothing about its operator: those
that are marked `of_overload` are handed it in front of their other arguments.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from ..array.dims import numel, wrap_dim
from ..errors import ShapeError


def of_overload(rule: Callable) -> Callable:
    """Mark a batching rule that wants the operator: `rule(overload, n, batched, *arguments)`."""
    rule.wants_overload = True
    return rule


def dims(*names: str):
    """Rule for operators of one batched `self` whose named arguments are dimensions.

    Each named argument (an int, a list, or None for all dims) is shifted by the batch dimension
    in front.
    """

    @of_overload
    def rule(ov, n, batched, *flat):
        source = flat[0]
        rank = source.ndim - 1
        args = list(flat)
        if sum(bool(b) if not isinstance(b, list) else any(b) for b in batched[1:]):
            raise NotImplementedError(f"{ov.name}: only the first argument may be batched")
        if (
            rank == 0
        ):  # an operator on a number takes dim 0 or -1: give each example one dimension for it
            args[0], rank = source.unsqueeze(1), 1
        for name in names:
            i = ov.schema.names.index(name)
            args[i] = shifted(args[i], rank, ov.schema.args[i].is_list)
        out = ov.call(*args)
        if source.ndim > 1:
            return out
        if isinstance(out, tuple):
            flat = [o.squeeze(1) if o.ndim > 1 else o for o in out]
            return type(out)(*flat) if hasattr(out, "_fields") else tuple(flat)
        return out.squeeze(1) if out.ndim > 1 else out

    return rule


def shifted(dim, rank: int, is_list: bool):
    """A dimension argument as seen with the batch dimension in front."""
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return list(range(1, rank + 1)) if is_list or dim is None else dim
    if isinstance(dim, (list, tuple)):
        return [wrap_dim(d, rank) + 1 for d in dim]
    return wrap_dim(dim, rank) + 1


def fold(ov, ranks, n, batched, flat):
    """The operator on tensors whose batch dim joins the dim in front of those it works on.

    `ranks` says for each tensor argument how many trailing dims stay as they are.
    """
    args, lead, kept = list(flat), None, iter(ranks)
    for i in ov.schema.tensor_positions:
        rank, t = next(kept), flat[i]
        if not batched[i]:
            t = t.unsqueeze(0).expand((n, *t.shape))
        if t.ndim - 1 not in (rank, rank + 1):
            raise ShapeError(f"{ov.op.base_name}: expected {rank}D or {rank + 1}D tensors, got "
                             f"one with {t.ndim - 1} dims")
        lead = lead or t.shape[:-rank]
        args[i] = t.reshape((numel(t.shape[:-rank]), *t.shape[-rank:]))
    out = ov.call(*args)
    if isinstance(out, tuple):
        return tuple(o.reshape((*lead, *o.shape[1:])) for o in out)
    return out.reshape((*lead, *out.shape[1:]))


@of_overload
def fold_planes(ov, n, batched, *flat):
    """Rule for operators on channels of `dims` dims each, as the entry says."""
    return fold(ov, itertools.repeat(ov.op.dims + 1), n, batched, flat)


def join_batch(n: int, t, batched: bool):
    """Batch dim and first dim as one; a tensor without batch dim is repeated for it."""
    t = t if batched else t.unsqueeze(0).expand((n, *t.shape))
    return t.reshape((n * t.shape[1], *t.shape[2:]))


def part_batch(n: int, t):
    """The batch dim parted from the first dim again."""
    return t.reshape((n, t.shape[0] // n, *t.shape[1:]))
