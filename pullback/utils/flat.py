"""Several tensors in one row and back: what PyTorch keeps in `torch._utils`.

Programs that exchange all gradients at once lay them out so.
"""

from __future__ import annotations

import itertools

from ..core.handle import Tensor
from ..table.packets import ops

_accumulate = itertools.accumulate


def _flatten_dense_tensors(tensors: list[Tensor]) -> Tensor:
    """The elements of all tensors, one after the other; a view where there is only one tensor."""
    if len(tensors) == 1:
        return tensors[0].contiguous().view(-1)
    return ops.cat([t.contiguous().view(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: list[Tensor]) -> tuple[Tensor, ...]:
    """Parts of a row as views of the shapes that the given tensors have."""
    starts = itertools.accumulate((t.numel() for t in tensors), initial=0)
    return tuple(flat.narrow(0, i, t.numel()).view(t.shape) for i, t in zip(starts, tensors))
