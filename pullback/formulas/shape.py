"""Derivatives of views and of operators that only move elements.

Everything here is made of operators, so it can be recorded, batched and traced again.
Read `ops/shape.py` for the entries that use it, and `index.py` for selection by tensors.
"""

from __future__ import annotations

from ..array import dtype as dt
from ..array.dims import may_overlap, numel, wrap_dim
from ..table.packets import ops
from . import on_arrays


@on_arrays()
def inverse_permutation(dims) -> tuple[int, ...]:
    """The permutation that undoes `permute(dims)`."""
    order = [0] * len(dims)
    for place, dim in enumerate(dims):
        order[dim] = place  # a negative dim counts from the end here, too
    return tuple(order)


def unsqueeze_to(grad, dims, shape):
    """Put back the dims of size 1 that `squeeze` removed; dims None means all."""
    if not shape:
        return grad
    wanted = range(len(shape)) if dims is None else sorted(wrap_dim(d, len(shape)) for d in dims)
    for dim in wanted:
        if shape[dim] == 1:
            grad = grad.unsqueeze(dim)
    return grad


def take_slice(x, dim, start, end, step):
    """The operator `slice`, under a name that Python does not use."""
    return ops.slice(x, dim, start, end, step)


def places_from(start, length, shape, dim):
    """The places along a dim that `narrow` shows, as a tensor; the start may be negative."""
    size = shape[wrap_dim(dim, len(shape))]
    return ops.where(start < 0, start + size, start) + ops.arange(length, device=start.device)


def split_with_sizes_backward(grads, shape, sizes, dim):
    """Gradient of the whole from those of its pieces; missing pieces are zero."""
    dim = wrap_dim(dim, len(shape))
    known = next(g for g in grads if g is not None)
    parts = []
    for g, size in zip(grads, sizes, strict=True):
        if g is None:
            g = known.new_zeros((*shape[:dim], size, *shape[dim + 1 :]))
        parts.append(g)
    return ops.cat(parts, dim)


def split_backward(grads, shape, split_size, dim):
    """The same for pieces of equal size, the last of which may be smaller."""
    size = shape[wrap_dim(dim, len(shape))]
    sizes = [split_size] * (len(grads) - 1)
    return split_with_sizes_backward(grads, shape, [*sizes, size - sum(sizes)], dim)


def unbind_backward(grads, shape, dim):
    """Gradient of the whole from those of its slices; missing slices are zero."""
    known = next(g for g in grads if g is not None)
    return ops.stack([known.new_zeros(known.shape) if g is None else g for g in grads], dim)


def cat_backward(grad, shapes, dim):
    """The piece of the gradient that belongs to each tensor; legacy empty vectors get none."""
    dim = wrap_dim(dim, grad.ndim)
    parts, start = [], 0
    for shape in shapes:
        if tuple(shape) == (0,):
            parts.append(grad.new_zeros((0,)))
            continue
        parts.append(grad.narrow(dim, start, shape[dim]))
        start += shape[dim]
    return parts


def repeat_backward(grad, repeats, shape):
    """Sum over the repetitions."""
    extra = len(repeats) - len(shape)
    sizes, dims = [], []
    for i, count in enumerate(repeats):
        if i < extra or count != 1:
            dims.append(len(sizes))
            sizes.append(count)
        if i >= extra:
            sizes.append(shape[i - extra])
    return grad.reshape(sizes).sum(dims) if dims else grad


# Note: as_strided. It is a function of memory, but its derivative treats it as one of the logical
# input: cells that several input elements share count as their average. Both geometries are laid
# over one flat buffer; cells that the input does not show are never read.


def _cells(geometry, device):
    """The memory cell of each element of a geometry, as a flat integer tensor."""
    size, stride, offset = geometry
    cells = ops.full(tuple(size), offset, dtype=dt.int64, device=device)
    for dim, (n, step) in enumerate(zip(size, stride, strict=True)):
        place = [1] * len(size)
        place[dim] = n
        cells = cells + (ops.arange(n, device=device) * step).view(place)
    return cells.reshape((-1,))


def _row_major(shape) -> tuple:
    """Strides of memory without gaps, the last dim innermost."""
    return tuple([numel(shape[i + 1 :]) for i in range(len(shape))])


def _span(size, stride) -> int:
    return 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))


def _both(shape, strides, start, size, stride, offset):
    """Both geometries with offsets from the lower one, and the cells that they cover."""
    offset = start if offset is None else offset
    low = min(start, offset)
    inner, outer = (shape, strides, start - low), (size, stride, offset - low)
    cover = max(_span(shape, strides) + start, _span(size, stride) + offset) - low
    return inner, outer, cover


def as_strided_backward(grad, shape, strides, start, size, stride, offset):
    """Gradient of the input of `as_strided`, given the input's geometry."""
    if 0 in size or 0 in shape:
        return grad.new_zeros(shape)
    inner, outer, cover = _both(shape, strides, start, size, stride, offset)
    if may_overlap(size, stride):
        cells = _cells(outer, grad.device)
        buffer = grad.new_zeros((cover,)).index_add(0, cells, grad.reshape((-1,)))
    else:
        buffer = ops.as_strided_scatter(grad.new_zeros((cover,)), grad, size, stride, outer[2])
    count = numel(shape)
    if inner[2] == 0 and tuple(strides) == _row_major(shape):  # as most inputs are
        whole = buffer if cover == count else buffer.narrow(0, 0, count)
        return whole.reshape(shape)
    cells = _cells(inner, grad.device)
    if may_overlap(shape, strides):
        ones = grad.new_ones((numel(shape),))
        buffer = buffer / grad.new_zeros((cover,)).index_add(0, cells, ones)
    return buffer.index_select(0, cells).reshape(shape)


def in_own_memory(grad):
    """A gradient whose memory begins with it, so that places in memory are places in it."""
    grad = grad.contiguous()
    return grad.clone() if grad.storage_offset() else grad


def as_strided_tangent(tangent, shape, strides, start, size, stride, offset):
    """Tangent of `as_strided`: the tangent need not be laid out in memory as the primal is."""
    if 0 in size or 0 in shape:
        return tangent.new_zeros(size)
    inner, outer, cover = _both(shape, strides, start, size, stride, offset)
    cells = _cells(inner, tangent.device)
    buffer = tangent.new_zeros((cover,)).index_add(0, cells, tangent.reshape((-1,)))
    if may_overlap(shape, strides):
        ones = tangent.new_ones((numel(shape),))
        buffer = buffer / tangent.new_zeros((cover,)).index_add(0, cells, ones)
    return buffer.index_select(0, _cells(outer, tangent.device)).reshape(size)
