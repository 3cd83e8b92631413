"""Derivative formulas of sums, means and maxima over bags of table rows.

Entry i of the index list belongs to bag `offset2bag[i]`.  Sums and means are linear maps with one
coefficient per entry: its weight, or one over the size of its bag; entries of the padding row count
nothing.  Everything is made of differentiable operators.  Read `ops/embedding.py` next.
"""

from __future__ import annotations

from ..table.packets import ops

SUM, MEAN, MAX = 0, 1, 2


def bag_coefficients(like, indices, offset2bag, bag_size, mode, per_sample_weights, padding_idx,
                     num_weights=None):
    """The coefficient of each entry; divided by its row's frequency if `num_weights` is given."""
    if per_sample_weights is not None:
        scale = per_sample_weights
    else:
        scale = ops.new_ones(like, indices.shape)
    if mode == MEAN:
        scale = scale / bag_size[offset2bag]
    if num_weights is not None:
        ones = ops.ones_like(indices)
        counts = ops.index_add(ops.new_zeros(indices, [num_weights]), 0, indices, ones)
        scale = scale / counts[indices]
    return _without_padding(scale, indices, padding_idx)


def _without_padding(values, indices, padding_idx):
    """Zero for entries of the padding row, whatever they are times: 0 times infinity is NaN."""
    if padding_idx < 0:
        return values
    padding = indices == padding_idx
    return ops.where(padding.unsqueeze(1) if values.ndim == 2 else padding, 0, values)


def _scaled(rows, scale, indices, padding_idx):
    return _without_padding(rows, indices, padding_idx) * scale.unsqueeze(1)


def into_bags(rows, offset2bag, bags):
    """Rows of entries added up per bag."""
    return ops.index_add(ops.new_zeros(rows, [bags, rows.shape[1]]), 0, offset2bag, rows)


def at_maxima(table, maximum_indices, bag_size):
    """The elements of a table at the rows where bags had their maxima; zero for empty bags."""
    picked = ops.gather(table, 0, maximum_indices)
    return ops.where((bag_size > 0).unsqueeze(1), picked, 0)


def from_maxima(grad, maximum_indices, bag_size, num_weights):
    """Adjoint of `at_maxima`."""
    grad = ops.where((bag_size > 0).unsqueeze(1), grad, 0)
    return ops.scatter_add(ops.new_zeros(grad, [num_weights, grad.shape[1]]), 0, maximum_indices,
                           grad)


def bag_push(weight, weight_t, indices, offset2bag, bag_size, maximum_indices, mode,
             per_sample_weights, per_sample_weights_t, padding_idx):
    """Tangent of the bags."""
    if mode == MAX:
        return at_maxima(weight_t, maximum_indices, bag_size)
    scale = bag_coefficients(weight, indices, offset2bag, bag_size, mode, per_sample_weights,
                             padding_idx)
    rows = _scaled(weight_t[indices], scale, indices, padding_idx)
    if per_sample_weights_t is not None:
        moved = bag_coefficients(weight, indices, offset2bag, bag_size, mode,
                                 per_sample_weights_t, padding_idx)
        rows = rows + _scaled(weight[indices], moved, indices, padding_idx)
    return into_bags(rows, offset2bag, bag_size.shape[0])


def bag_table_grad(grad, indices, offset2bag, bag_size, maximum_indices, num_weights,
                   scale_grad_by_freq, mode, per_sample_weights, padding_idx):
    """Gradient of the table."""
    if mode == MAX:
        return from_maxima(grad, maximum_indices, bag_size, num_weights)
    scale = bag_coefficients(grad, indices, offset2bag, bag_size, mode, per_sample_weights,
                             padding_idx, num_weights if scale_grad_by_freq else None)
    rows = _scaled(grad[offset2bag], scale, indices, padding_idx)
    return ops.index_add(ops.new_zeros(grad, [num_weights, grad.shape[1]]), 0, indices, rows)


def bag_table_grad_transposed(table, indices, offset2bag, bag_size, maximum_indices,
                              scale_grad_by_freq, mode, per_sample_weights, padding_idx):
    """Gradient of `bag_table_grad` with respect to its `grad`, from that of the table."""
    if mode == MAX:
        return at_maxima(table, maximum_indices, bag_size)
    scale = bag_coefficients(table, indices, offset2bag, bag_size, mode, per_sample_weights,
                             padding_idx, table.shape[0] if scale_grad_by_freq else None)
    rows = _scaled(table[indices], scale, indices, padding_idx)
    return into_bags(rows, offset2bag, bag_size.shape[0])


def bag_entry_grad(grad, table, indices, offset2bag, padding_idx, scale_grad_by_freq=False):
    """Gradient of the weight of each entry: its row times the gradient of its bag."""
    scale = bag_coefficients(grad, indices, offset2bag, None, SUM, None, padding_idx,
                             table.shape[0] if scale_grad_by_freq else None)
    grad = _without_padding(grad[offset2bag], indices, padding_idx)
    return (grad * _without_padding(table[indices], indices, padding_idx)).sum(1) * scale
