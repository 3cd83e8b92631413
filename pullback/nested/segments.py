"""Reductions over parts: all elements in one dim, with the number of the part of each.

Sums and extremes touch each element once.  What has no such form (products, running sums, orders)
is done on rows that are as long as the longest part.
"""

from __future__ import annotations

import math
from typing import Any

from ..array import dtype as dt
from ..core.handle import Tensor
from ..table.packets import ops
from .tensor import NestedTensor, packed


class Segments:
    """Elements one behind the other, dim 0; those of a part are neighbours."""

    def __init__(self, count: Any, lengths: Tensor, numbers: Tensor, positions: Any, longest: Any):
        self.count, self.lengths, self.numbers = count, lengths, numbers
        self._positions, self._longest = positions, longest

    @property
    def positions(self) -> Tensor:
        """The place of each element in its part."""
        return self._positions()

    @property
    def longest(self) -> Any:
        return self._longest()

    def sizes(self, like: Tensor) -> Tensor:
        """The lengths, one for each row of a result."""
        return self.lengths.to(like.dtype).reshape(-1, *[1] * (like.ndim - 1))

    def total(self, values: Tensor) -> Tensor:
        """The sum of each part."""
        if values.dtype == dt.bool_:
            values = values.long()
        zeros = values.new_zeros((self.count, *values.shape[1:]))
        return zeros.index_add(0, self.numbers, values)

    def spread(self, each: Tensor) -> Tensor:
        """For each element the number of its part."""
        return each.index_select(0, self.numbers)

    def mean(self, values: Tensor) -> Tensor:
        out = self.total(values)
        return out / self.sizes(out)

    def extreme(self, values: Tensor, kind: str) -> Tensor:
        """The largest (`amax`) or smallest element of each part; equal ones share the gradient."""
        if values.dtype.is_floating_point:
            return ops.segment_reduce(values, kind[1:], lengths=self.lengths, axis=0, unsafe=True)
        rows = self.rows(values, lowest(values.dtype) if kind == "amax" else highest(values.dtype))
        return getattr(ops, kind)(rows, 1)

    def rows(self, values: Tensor, padding: Any) -> Tensor:
        """(parts, longest, ...): each part in a row of its own."""
        out = ops.full((self.count, self.longest, *values.shape[1:]), padding, dtype=values.dtype,
                       device=values.device)
        return out.index_put((self.numbers, self.positions), values)

    def elements(self, rows: Tensor) -> Tensor:
        """The elements of such rows, one behind the other."""
        return rows[self.numbers, self.positions]

    def softmax(self, values: Tensor, log: bool) -> Tensor:
        high = self.spread(self.finite_high(values))
        moved = values - high
        powers = moved.exp()
        total = self.total(powers)
        return moved - self.spread(total.log()) if log else powers / self.spread(total)

    def finite_high(self, values: Tensor) -> Tensor:
        """The largest element of each part, where it can be subtracted; it has no derivative."""
        high = self.extreme(values.detach(), "amax")
        return high.masked_fill(high.abs() == math.inf, 0.0)

    def logsumexp(self, values: Tensor) -> Tensor:
        high = self.finite_high(values)
        return self.total((values - self.spread(high)).exp()).log() + high

    def variance(self, values: Tensor, correction: Any) -> Tensor:
        mean = self.mean(values)
        off = values - self.spread(mean)
        squares = off.real.square() + off.imag.square() if off.is_complex() else off.square()
        out = self.total(squares)
        return out / (self.sizes(out) - correction).clamp(min=0)

    def place_of(self, values: Tensor, kind: str) -> Tensor:
        """Where in its part the first extreme element is."""
        found = values == self.spread(self.extreme(values, kind))
        if values.dtype.is_floating_point:
            found = found | values.isnan()
        at = self.positions.reshape(-1, *[1] * (values.ndim - 1)).expand(values.shape)
        return self.extreme(ops.where(found, at, highest(dt.int64)), "amin")


def lowest(dtype: Any) -> Any:
    """The least number of a dtype."""
    from ..array.dtype import finfo, iinfo

    if dtype == dt.bool_:
        return False
    return -math.inf if dtype.is_floating_point and finfo(dtype) else iinfo(dtype).min


def highest(dtype: Any) -> Any:
    """The largest number of a dtype."""
    from ..array.dtype import iinfo

    if dtype == dt.bool_:
        return True
    return math.inf if dtype.is_floating_point else iinfo(dtype).max


def segments(t: NestedTensor, dims: tuple[int, ...] = ()) -> tuple[Tensor, Segments]:
    """The elements of a tensor, ragged dim first, and their parts; further dims are folded in."""
    t = packed(t)
    values, about = t.values_part, t.about
    total = values.shape[t.dense]
    further = [d - 1 for d in dims if d not in (0, t.ragged_idx)]
    rest = [d for d in range(values.ndim) if d != t.dense and d not in further]
    order = [t.dense, *further, *rest]
    if order != list(range(values.ndim)):
        values = values.permute(order)
    numbers, lengths, k = about.numbers(total), about.lengths, 1
    if not further:
        return values, Segments(
            t.count, lengths, numbers, lambda: about.positions(total), t.longest)
    for d in further:
        k = k * t.values_part.shape[d]
    values = values.reshape(total * k, *values.shape[len(further) + 1:])

    def positions() -> Tensor:
        inner = ops.arange(k, device=about.offsets.device)
        return (about.positions(total).unsqueeze(1) * k + inner).reshape(-1)

    return values, Segments(t.count, lengths * k, numbers.repeat_interleave(k), positions,
                            lambda: t.longest() * k)
