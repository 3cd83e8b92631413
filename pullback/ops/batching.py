"""Batching rules that many entries share.

Entries inherit rules and rules may be shared, so a rule keeps nothing about its operator: those
that are marked `of_overload` are handed it in front of their other arguments.
"""

from __future__ import annotations

from collections.abc import Callable


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
    from ..array.dims import wrap_dim

    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return list(range(1, rank + 1)) if is_list or dim is None else dim
    if isinstance(dim, (list, tuple)):
        return [wrap_dim(d, rank) + 1 for d in dim]
    return wrap_dim(dim, rank) + 1
