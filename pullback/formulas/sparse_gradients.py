"""Gradients of tables by the rows that were read: sparse where the call asked for it.

Below `vmap` they are dense: each example may have read other rows, and a batch of sparse tensors
has one pattern.  Read `sparse/gradients.py` next.
"""

from __future__ import annotations

from .. import errors
from ..table.packets import ops
from ..threads.state import state
from . import on_arrays


def stays_dense() -> bool:
    """Is there a level on which one gradient stands for those of many examples?"""
    return any(level is not None and level.maps for level in state.stack)


def refuse_frequency(scale_grad_by_freq: bool) -> None:
    """Refuse what PyTorch refuses."""
    if scale_grad_by_freq:
        raise errors.RefusedValue(errors.text(
            "embedding_backward: scale_grad_by_freq not supported with sparse gradients "
            f"({errors.user_line(2)})", cure="pass sparse=False, or scale_grad_by_freq=False"))


def _by_handles(*args):
    """Arrays are not enough: where a call wants a sparse gradient, its node takes the long way."""
    raise TypeError


@on_arrays(_by_handles)
def rows_grad(grad, indices, num_weights, padding_idx, scale_grad_by_freq):
    """The gradient of a table of which `embedding(sparse=True)` has read rows."""
    refuse_frequency(scale_grad_by_freq)
    if stays_dense():
        return ops.embedding_dense_backward(grad, indices, num_weights, padding_idx, False)
    from ..sparse import gradients  # above this package: sparse tensors are made of operators

    return gradients.of_rows(grad, indices, num_weights, padding_idx)


def bags_grad(grad, indices, offset2bag, bag_size, maximum_indices, num_weights,
              scale_grad_by_freq, mode, per_sample_weights, padding_idx):
    """The gradient of a table whose rows `embedding_bag(sparse=True)` has combined."""
    refuse_frequency(scale_grad_by_freq)
    if stays_dense():
        return ops._embedding_bag_dense_backward(
            grad, indices, offset2bag, bag_size, maximum_indices, num_weights, False, mode,
            per_sample_weights, padding_idx)
    from ..sparse import gradients

    return gradients.of_bags(grad, indices, offset2bag, bag_size, num_weights, mode,
                             per_sample_weights, padding_idx)


@on_arrays(_by_handles)
def gathered_grad(grad, shape, dim, index):
    """The gradient of what `gather(sparse_grad=True)` has taken elements of."""
    if stays_dense():
        return ops.new_zeros(grad, shape).scatter_add(dim, index, grad)
    from ..sparse import gradients

    return gradients.of_gathered(grad, shape, dim, index)
