"""How the arguments of a graph lie in memory: a graph may view what it gets.

Gradients come as they please, and are copied where they lie otherwise than the graph was captured
for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ..array.layout import ordered, strides_order
from ..array.size import hinted
from ..core.handle import Tensor
from ..graph.node import Node


@dataclass(frozen=True)
class Order:
    """The order of dims in memory, where sizes are symbols."""

    dims: tuple[int, ...] | None

    def strides(self, array: np.ndarray) -> tuple[int, ...]:
        """Those that an array of this shape has in this order, without gaps."""
        step, found = array.itemsize, [0] * array.ndim
        for d in reversed(self.dims or range(array.ndim)):
            found[d] = step
            step *= array.shape[d]
        return tuple(found)


def strides_of(node: Node) -> tuple | Order:
    """How the value of a node lies in memory."""
    data = node.meta["val"]._payload
    if all(type(s) is int for s in data.strides):
        return data.strides
    return Order(strides_order(hinted(data.shape), hinted(data.strides)))


def coerced(array: np.ndarray, strides: tuple | Order) -> np.ndarray:
    """A gradient in the layout that its graph was captured for."""
    if isinstance(strides, Order):
        strides = strides.strides(array)
    if array.strides == strides or array.flags.c_contiguous and array.size < 2:
        return array
    made = ordered(partial(np.empty, dtype=array.dtype), array.shape,
                   strides_order(array.shape, strides))
    made[...] = array
    return made


def relaid(t: Tensor, strides: tuple | Order) -> Tensor:
    """The same for a handle with a history, which goes on."""
    order = strides.dims if isinstance(strides, Order) else strides_order(t.shape, strides)
    order = order or tuple(range(t.ndim))
    rows = t.permute(order)
    if rows.is_contiguous():
        return t
    return rows.contiguous().permute(tuple([order.index(d) for d in range(t.ndim)]))
