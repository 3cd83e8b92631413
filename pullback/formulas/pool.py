"""Derivatives of pooling by maximum.

The maximum over a window is a selection: its pushforward and the adjoint of its pullback pick
elements at the flat places that the forward pass chose.  Read `ops/pool.py` next.
"""

from __future__ import annotations

from ..array.dims import numel
from ..table.packets import ops


def max_pool_double_backward(grad, indices, dim: int):
    """Elements of the last `dim` dims of `grad` at flat places: y[p] = grad[indices[p]].

    This is the adjoint of y[indices[p]] += grad[p], the pullback of every maximum pooling, and
    also the pushforward of the pooling and the pullback of unpooling.
    """
    if indices.numel() == 0:
        return grad.new_zeros(indices.shape)
    flat = grad.reshape((*grad.shape[:-dim], numel(grad.shape[-dim:])))
    lead = indices.shape[:-dim]
    places = indices.reshape((*lead, numel(indices.shape[-dim:])))
    return ops.gather(flat, -1, places).reshape(indices.shape)
