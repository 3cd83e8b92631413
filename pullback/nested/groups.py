"""Groups of parts with similar lengths: work that needs rectangles wastes little on padding.

Parts are taken in the order of their lengths, and a group ends where its padding would be more
than a share of it; long parts are alone.  Where lengths are not known (in captures) all parts are
in one group.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

from ..core.handle import Tensor
from ..table.packets import ops
from .ragged import Lengths
from .tensor import NestedTensor

WASTE = 0.3  # the share of padding in a group
SMALL = 4096  # groups of less work are not split: a call costs more
ALONE = 2500  # the work of parts that are worth a call of their own, without padding


class Group:
    """Some parts, by their numbers; None: all of them, in captures."""

    def __init__(self, members: list[int] | None, longest: list[Any], device: Any = None):
        self.members, self.longest, self.device = members, longest, device

    @functools.cached_property
    def index(self) -> Tensor:
        """The numbers of the parts."""
        return _integers(self.members, self.device)

    def rows(self, dense: Tensor) -> Tensor:
        """Their rows of a dense tensor."""
        if self.members is None:
            return dense
        if len(self.members) == 1:
            return dense.narrow(0, self.members[0], 1)
        return dense.index_select(0, self.index)


def grouped(abouts: list[Lengths], longest: list[Callable], cost: int = 1) -> list[Group]:
    """Groups of the parts of tensors whose lengths may differ; `cost`: power of the lengths."""
    if not all(a.plain for a in abouts):
        return [Group(None, [each() for each in longest])]
    lists = [a.listed() for a in abouts]
    size = len(lists[0])
    if not size:
        return [Group(None, [0] * len(lists))]

    def work_of(lengths: list[int]) -> int:
        total = math.prod([max(n, 1) for n in lengths])
        return total if len(lengths) > 1 else total ** cost

    works = [work_of([own[i] for own in lists]) for i in range(size)]
    groups = [[i] for i in range(size) if works[i] >= ALONE]
    work, last = 0, len(groups)
    small = sorted((i for i in range(size) if works[i] < ALONE),
                   key=lambda i: [own[i] for own in lists], reverse=True)
    for i in small:
        if len(groups) > last:
            members = [*groups[-1], i]
            padded = work_of([max(own[m] for m in (members[0], i)) for own in lists]) * len(members)
            if padded <= SMALL or padded - work - works[i] <= WASTE * padded:
                groups[-1].append(i)
                work += works[i]
                continue
        groups.append([i])
        work = works[i]
    device = abouts[0].offsets.device
    return [Group(g, [max(own[i] for i in g) for own in lists], device) for g in groups]


def _integers(numbers: list, device: Any) -> Tensor:
    from ..creation import tensor

    return tensor(numbers, device=device, dtype=ops.arange(0).dtype)


class Rows:
    """The parts of a nested tensor, in groups."""

    def __init__(self, t: NestedTensor, number: int = 0, padding: Any = 0.0):
        self.t, self.number, self.padding = t, number, padding

    @functools.cached_property
    def parts(self) -> list[Tensor]:
        """All parts by one operator, of which the gradient is one as well."""
        return self.t.values_part.split_with_sizes(self.t.about.listed(), self.t.dense)

    def of(self, group: Group) -> Tensor:
        """Those of a group, padded to its longest: (parts, ..., longest, ...)."""
        t = self.t
        if group.members is not None and len(group.members) == 1:
            return self.parts[group.members[0]].unsqueeze(0)
        values = t.values_part.movedim(t.dense, 0) if t.dense else t.values_part
        longest = group.longest[self.number]
        starts, lengths = t.about.starts, t.about.lengths
        if group.members is not None:
            starts = starts.index_select(0, group.index)
            lengths = lengths.index_select(0, group.index)
        places = ops.arange(longest, device=values.device)
        inside = places < lengths.unsqueeze(1)
        at = ops.where(inside, starts.unsqueeze(1) + places, 0)
        if values.shape[0].__class__ is int and not values.shape[0]:
            rows = values.new_full((*at.shape, *values.shape[1:]), self.padding)
        else:
            rows = values[at].masked_fill(
                ~inside.reshape(*inside.shape, *[1] * (values.ndim - 1)), self.padding)
        return rows.movedim(1, t.ragged_idx) if t.ragged_idx != 1 else rows


def values_of(t: NestedTensor, groups: list[Group], found: list[Tensor],
              ragged_idx: int) -> NestedTensor:
    """A nested tensor with the lengths of another, of the rows of all groups."""
    about, d = t.about, ragged_idx - 1
    if groups[0].members is None:
        total = t.values_part.shape[t.dense]
        rows = found[0].movedim(ragged_idx, 1) if d else found[0]
        values = rows[about.numbers(total), about.positions(total)]
        return t.with_values(values.movedim(0, d) if d else values, ragged_idx)
    lengths, pieces, order = about.listed(), [], []
    for group, rows in zip(groups, found):
        order += group.members
        if len(group.members) == 1:
            pieces.append(rows.squeeze(0))
            continue
        own = [lengths[i] for i in group.members]
        row = ops.repeat_interleave(ops.arange(len(own), device=group.device),
                                    _integers(own, group.device))
        at = ops.cat([ops.arange(n, device=group.device) for n in own])
        rows = rows.movedim(ragged_idx, 1) if d else rows
        values = rows[row, at]
        pieces.append(values.movedim(0, d) if d else values)
    values = ops.cat(pieces, d)
    if order != sorted(order):
        starts = dict(zip(order, itertools.accumulate([0] + [lengths[i] for i in order])))
        values = values.index_select(d, ops.cat([
            ops.arange(starts[i], starts[i] + n, device=values.device)
            for i, n in enumerate(lengths)]))
    return t.with_values(values, ragged_idx)
