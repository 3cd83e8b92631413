"""Writes through views in joint graphs of PyTorch's dialect: one node for a write and its operator.

PyTorch's history of a base after a write through a view copies the gradient of the base, runs the
pullback of the operator on a copy of the view's part and puts the result in its place.  The values
are those of `memory/views.py`, where the pullbacks of the scatter and of the view are added up.
"""

from __future__ import annotations

from ...core.handle import Tensor
from ...core.tape import Node, Port, make_node
from ...memory.views import replay, scatter
from ...table.packets import ops


class Slices(Node):
    """History of a base that was written through a view: the operator's node is part of it."""

    __slots__ = ("chain", "inner", "pull", "shape", "strides")

    class _Rule:
        name, saves = "torch::autograd::CopySlices", ()

    def apply(self, grads, needs):
        grad = grads[0]
        if grad is None:
            return [None] * len(needs)
        whole = ops.new_empty_strided(grad, self.shape, self.strides)
        whole = ops.copy(whole, grad)
        replay(whole, self.chain)  # PyTorch takes the view twice: the numbers of nodes show it
        view = replay(whole, self.chain)
        part = ops.clone(view, memory_format="contiguous_format")
        own, *others = self.pull(self.inner, [part], needs)
        if not needs[0]:  # nobody asks for what was there before
            return [None, *others]
        own = ops.zeros_like(part) if own is None else own
        whole = scatter(whole, self.chain, ops.copy(view, own))
        replay(whole, self.chain)
        return [whole, *others]


def slices(base: Tensor, chain: tuple, new: Tensor, by, pull):
    """The node of a base a view of which became `new`; None where `new` has no node of its own.

    That is a node of the operator that wrote it (`by`), whose first operand was the view; one that
    is recorded by its parts has others.
    """
    edge = new._edge
    inner = edge.node if type(edge) is Port else edge
    rule = getattr(inner, "rule", None)
    if rule is None or getattr(rule, "overload", None) is not by:
        return None
    if not rule.inputs or rule.inputs[0] != 0:
        return None
    if inner.grouped or inner.outputs != 1 or rule.lists[0]:
        return None
    metas = [None if base._edge is None else (base._payload.shape, base._payload.dtype),
             *inner.metas[1:]]
    node = make_node(Slices, Slices._Rule, (base._edge, *inner.edges[1:]), tuple(metas), (),
                     inner.level)
    node.chain, node.inner, node.pull = chain, inner, pull
    node.shape, node.strides = list(base.shape), list(base.stride())
    return node
