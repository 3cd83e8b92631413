"""Gradients of tables of which a step reads few rows: an entry for each lookup.

`embedding(sparse=True)`, bags of rows and `gather(sparse_grad=True)` come here from their formulas
(`formulas/sparse_gradients.py`).  Entries are in the order of the lookups, and a row that was read
twice is there twice: nobody sorts before somebody asks.  All is made of differentiable operators.
"""

from __future__ import annotations

from typing import Any

from ..core.handle import Tensor
from ..formulas.embedding import MEAN
from ..parts.rules import rule
from ..table.packets import ops
from ..threads.state import state
from .tensor import Coo


def of_rows(grad: Tensor, indices: Tensor, rows: Any, padding_idx: int) -> Tensor:
    """The gradient of a table of which `embedding` has read rows."""
    width = grad.shape[-1]
    return _entries(indices.reshape([-1]), grad.reshape([indices.numel(), width]),
                    (rows, width), padding_idx)


def of_bags(grad: Tensor, indices: Tensor, offset2bag: Tensor, bag_size: Tensor, rows: Any,
            mode: int, weights: Tensor | None, padding_idx: int) -> Tensor:
    """The gradient of a table whose rows were added up, or averaged, in bags."""
    values = ops.index_select(grad, 0, offset2bag)
    if mode == MEAN:
        values = values / bag_size[offset2bag].unsqueeze(1).to(values.dtype)
    if weights is not None:
        values = values * weights.unsqueeze(1)
    return _entries(indices, values, (rows, grad.shape[1]), padding_idx)


def _entries(indices: Tensor, values: Tensor, shape: tuple, padding_idx: int) -> Coo:
    """Rows with their places; those of the padding row are not there."""
    indices = indices.long()
    if padding_idx >= 0 and state.observers.trace is None:
        counted = indices != padding_idx
        indices, values = indices[counted], values[counted]
    elif padding_idx >= 0:  # in a graph, whose sizes do not depend on values, they are zeros
        values = ops.where((indices == padding_idx).unsqueeze(1), 0, values)
    return _made(indices.unsqueeze(0), values, shape)


def _made(indices: Tensor, values: Tensor, shape: tuple) -> Coo:
    count = indices._payload.shape[1]
    return Coo.make(indices, values, shape, type(count) is int and count < 2)


def of_gathered(grad: Tensor, shape: tuple, dim: int, index: Tensor) -> Coo:
    """The gradient of a tensor of which `gather` has taken elements along a dim."""
    count = 1
    for n in index.shape:
        count = count * n
    if not shape:
        none = ops.zeros((0, 1), dtype=index.dtype, device=index.device)
        return _made(none.long(), grad.reshape([1]), ())
    places = [index if d == dim % len(shape) else _along(index, d) for d in range(len(shape))]
    indices = ops.stack([p.reshape([count]) for p in places])
    return _made(indices.long(), grad.reshape([count]), tuple(shape))


def _along(index: Tensor, d: int) -> Tensor:
    """The numbers of a dim, in the shape of an index."""
    line = ops.arange(index.shape[d], dtype=index.dtype, device=index.device)
    return line.reshape([-1 if k == d else 1 for k in range(index.ndim)]).expand(index.shape)


@rule(Coo, "zero_")
def cleared(t: Coo) -> Coo:
    """No entries are left: what `zero_grad(set_to_none=False)` leaves behind."""
    t.write_all(Coo.make(t.indices_part[:, :0], t.values_part.detach()[:0], t.shape, True), "zero")
    return t
