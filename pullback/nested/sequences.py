"""Nested tensors as packed sequences, the input of recurrent layers, and back.

Packed sequences hold the rows of all sequences step by step, the longest sequence first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import errors
from ..core.handle import Tensor
from ..parts.rules import shown
from ..table.packets import ops
from .ragged import lengths_of, summed
from .tensor import NestedTensor, packed

if TYPE_CHECKING:
    from ..nn.utils.rnn import PackedSequence


def to_packed(input: Tensor) -> PackedSequence:
    """The parts of a nested tensor (batch, ragged, ...) as packed sequences."""
    from ..nn.utils.rnn import PackedSequence

    if not isinstance(input, NestedTensor) or input.ragged_idx != 1 or (
            not input.about.plain or not input.count or not input.about.shortest()):
        raise errors.RefusedValue(errors.text(
            "to_packed(): expected a jagged tensor (batch, ragged, ...) whose lengths are known, "
            f"and are at least 1 ({errors.user_line(2)})", shown(input)))
    t = packed(input)
    about, total = t.about, t.values_part.shape[0]
    order = ops.sort(about.lengths, dim=0, stable=True, descending=True)[1]
    ranks = ops.empty_like(order).scatter(0, order, ops.arange(t.count, device=order.device))
    steps = about.positions(total)
    places = ops.argsort(steps * t.count + ranks[about.numbers(total)])
    sizes = ops.bincount(steps, minlength=about.longest()).cpu()
    return PackedSequence(t.values_part.index_select(0, places), sizes, order, ranks)


def from_packed(sequence: PackedSequence) -> NestedTensor:
    """The nested tensor whose parts are packed sequences, in the order that they had."""
    data, sizes = sequence.data, sequence.batch_sizes.to(sequence.data.device)
    ends = sizes.cumsum(0)
    count = int(sequence.batch_sizes[0])
    ranks = ops.arange(count, device=data.device)
    lengths = (sizes.unsqueeze(1) > ranks).sum(0)  # of the sorted sequences
    if sequence.unsorted_indices is not None:
        ranks = sequence.unsorted_indices
        lengths = lengths.index_select(0, ranks)
    offsets = summed(lengths)
    about, total = lengths_of(offsets), data.shape[0]
    places = (ends - sizes)[about.positions(total)] + ranks[about.numbers(total)]
    return NestedTensor.make(data.index_select(0, places), offsets)
