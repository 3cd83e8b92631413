"""Sweeps under a dispatch mode or on wrappers: what the engine does itself becomes operators.

PyTorch's engine detaches saved results when it uses them, and hands gradients to leaves by
`detach`, `copy_` or `add_`.  Ours does so only where a dispatch mode is on, or gradients are of a
class with `__torch_dispatch__`.  Read next: `engine.py`, `interp/operator_dispatch.py`.
"""

from __future__ import annotations

import sys

from ..core.handle import Tensor, is_buffer, make, meta_of
from ..core.project import project
from ..core.tape import Accumulate, Node
from ..interp.operator_dispatch import detach_kept
from ..table.packets import ops
from ..threads.state import ALONE, state
from .run_hooks import run_accumulated_hooks


def pull(node: Node, grads: list, needs: list) -> list:
    """The step of a node."""
    detach_kept(node)
    before, state.observers.node = state.observers.node, node
    try:
        return node.apply(grads, needs)
    finally:
        state.observers.node = before


def accumulate(node: Accumulate, grads: list, create: bool) -> None:
    """Add a gradient to a leaf's `.grad`."""
    leaf = node.leaf()
    g = grads.pop()
    if leaf is None or g is None:
        return
    array, meta = leaf._payload, leaf._record or meta_of(leaf)
    dtype = meta.grad_dtype or array.dtype
    if g._payload.shape != array.shape or g._payload.dtype is not dtype:
        g = project(g, array.shape, dtype, node, 0)
    have, own = meta.grad, sys.getrefcount(g) <= ALONE
    if have is None:
        meta.grad = _begun(leaf, g, own and not create)
    elif create or have._edge is not None:
        meta.grad = have + g
    else:
        meta.grad = ops.add_(have, g)
    if meta.post_hooks:
        run_accumulated_hooks(leaf)


def _begun(leaf: Tensor, g: Tensor, own: bool) -> Tensor:
    """The first gradient of a leaf: itself if nobody else has it and it lies in memory as the leaf
    does, otherwise a copy."""
    if not own or tuple(g.stride()) != tuple(leaf.stride()):
        new = ops.new_empty_strided.default(g, list(leaf.shape), list(leaf.stride()))
        return ops.copy_(new, g)
    found = ops.detach(g)
    data = found._payload
    if is_buffer(data) and (isinstance(g._payload.base, type(data)) or g._link is not None):
        found = make(data.copy())  # it may be memory of somebody else
    return found if found._edge is None else make(found._payload)
