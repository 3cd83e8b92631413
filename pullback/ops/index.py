"""Selection by index tensors in all dims at once: x[indices], index_put, take, put.

Accumulating kernels add in the order of the indices, so results do not change from run to run.
`x[key]` is translated to these operators in `memory/indexing.py`; longer derivatives are in
`formulas/index.py`. Read next: `gather.py` (along one dim), `masks.py`, `lookup.py`.
"""

from __future__ import annotations

import warnings

import numpy as np

from ..array import dtype as dt
from ..array.dims import broadcast_shapes, numel, wrap_dim
from ..array.evaluate import Spec
from ..array.fake import Fake
from ..array.xp import accumulate_at, all_below, extremes, spread
from ..core.op import Op
from ..errors import ArgumentError, DynamicOutputShapeException, ShapeError
from ..table.packets import ops
from ..threads.state import state
from .kinds import ComplexComposite, Free, Moving, Synonym
from .layout import in_front, pad_rank

# --- checks and translations shared by kernels and rules ------------------------------------------


def whole(s, data):
    """An integer tensor with the given values, for samples."""
    return s.values(data).to(dt.int64)


def size_by_data(name: str, counted=None, shape=None):
    """A size that depends on values: a symbol of its own where sizes are symbolic.

    `counted` is the tensor whose elements other than zero are counted, if it is that; `shape` has
    the elements among which the data choose.
    """
    if state.fakes.sizes is None:
        from ..symbolic.settings import config

        if counted is None or counted.fake.device_name != "meta" or (
                not config.meta_nonzero_assume_all_nonzero):
            raise needs_data(name)
        return counted.numel()
    if counted is not None:
        return state.fakes.sizes.count_of(counted.fake)
    return state.fakes.sizes.unbacked() if shape is None else state.fakes.sizes.share(shape)


def needs_data(name: str):
    """The error of a shape rule that would have to know values."""
    return DynamicOutputShapeException(
        f"{name}: the size of the result depends on values, which are not known here.\n"
        "  Fix: use where() or a mask of fixed size, or keep this step outside of the transform."
    )


def is_mask(index) -> bool:
    """Whether an index array or tensor selects by truth; uint8 counts as bool."""
    return index.dtype in _MASKS


# compared as objects: the names of NumPy's dtypes are put together when they are asked for
_MASKS = {dt.bool_, dt.uint8, dt.bool_.np, dt.uint8.np}
_PLACES = {dt.int64, dt.int32, dt.int64.np, dt.int32.np}


def checked_indices(xp, indices, shape) -> list:
    """One integer array or None per dim, masks replaced by the places where they are true."""
    out = []
    for index in indices:
        if index is None:
            out.append(None)
        elif is_mask(index):
            if dt.name_of(index.dtype) == "uint8":
                warnings.warn("indexing with dtype torch.uint8 is now deprecated, please use a "
                              "dtype torch.bool instead.", UserWarning, stacklevel=2)
            start = len(out)
            for k, size in enumerate(index.shape):
                have = shape[start + k] if start + k < len(shape) else None
                if have is None:
                    raise IndexError(f"too many indices for tensor of dimension {len(shape)}")
                if size != have:
                    raise IndexError(
                        f"The shape of the mask {list(index.shape)} at index {k} does not match "
                        f"the shape of the indexed tensor {list(shape)} at index {start + k}"
                    )
            if index.ndim == 0:
                raise IndexError("a 0-d mask must be given a dim of its own: use x[mask]")
            out.extend(xp.nonzero(index))
        elif index.dtype in _PLACES:
            out.append(index)
        else:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    if len(out) > len(shape):
        raise IndexError(f"too many indices for tensor of dimension {len(shape)}")
    return out


def common_shape(arrays) -> tuple[int, ...]:
    """The shape that index arrays are broadcast to."""
    try:
        return broadcast_shapes(*(a.shape for a in arrays))
    except RuntimeError:
        shapes = ", ".join(str(list(a.shape)) for a in arrays)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None


def used(indices) -> list[int]:
    """Positions of the indices that are given."""
    return [d for d, index in enumerate(indices) if index is not None]


def adjacent(positions) -> bool:
    """Whether the indexed dims are neighbours; then the result keeps their place."""
    return positions[-1] - positions[0] + 1 == len(positions)


def in_range(xp, index, size: int, dim: int, error=IndexError, negative: bool = True):
    """The index with negative entries counted from the end, or the error that names one."""
    if index.size == 0 or all_below(index, size):
        return index
    low, high = extremes(index)
    if high >= size or low < (-size if negative else 0):
        bad = high if high >= size else low
        raise error(f"index {int(bad)} is out of bounds for dimension {dim} with size {size}")
    return xp.where(index < 0, index + size, index) if low < 0 else index


def fetch(xp, array, indices):
    """The elements that checked indices select, as a fresh array."""
    places = used(indices)
    if not places:
        return array.copy()
    given = [indices[d] for d in places]
    if len(places) == 1:
        dim = places[0]
        try:
            return array.take(given[0], axis=dim)
        except IndexError:
            in_range(xp, given[0], array.shape[dim], dim)
            raise
    shape = common_shape(given)
    given = [in_range(xp, g, array.shape[d], d) for g, d in zip(given, places, strict=True)]
    if adjacent(places) and array.flags.c_contiguous:
        flat, sizes = given[0], array.shape[places[0] : places[-1] + 1]
        for index, size in zip(given[1:], sizes[1:], strict=True):
            flat = flat * size + index
        merged = array.reshape(
            (*array.shape[: places[0]], numel(sizes), *array.shape[places[-1] + 1 :])
        )
        return xp.take(merged, flat, axis=places[0])
    key = [slice(None)] * len(indices)
    for d, index in zip(places, given, strict=True):
        # a key of 0-d arrays alone would be a basic index, and the result a view
        key[d] = index if shape else index.reshape((1,))
    out = array[tuple(key)]
    return out if shape else out.squeeze(places[0] if adjacent(places) else 0)


def result_shape(shape, indices, index_shape) -> tuple[int, ...]:
    """Shape of a selection by integer indices."""
    places = used(indices)
    rest = [n for d, n in enumerate(shape) if d not in places]
    where = places[0] if places and adjacent(places) else 0
    return (*rest[:where], *index_shape, *rest[where:])


def add_rows(xp, table, index, rows):
    """`table` with `rows[k]` added to its row `index[k]`, in order of k; may reuse `table`.

    The index must have been checked (`in_range`).
    """
    width = table.shape[1]
    if index.size == 0 or width == 0:
        return table
    if xp.__name__ == "numpy" and width > 1 and rows.size > 1024 and table.dtype.kind in "fc":
        # what SciPy multiplies sparse matrices with is one compiled loop of such additions; the
        # matrix of ones itself is never made: its checks would take longer than the loop
        from scipy.sparse._sparsetools import csc_matvecs

        wide = xp.float32 if table.dtype.itemsize == 2 else table.dtype
        sums = xp.ascontiguousarray(table, wide)
        starts = xp.arange(index.size + 1)
        csc_matvecs(table.shape[0], index.size, width, starts, index.astype(starts.dtype),
                    xp.ones(index.size, wide), rows.astype(wide, copy=False).ravel(), sums.ravel())
        return sums.astype(table.dtype, copy=False)
    if width > 1:
        index = (index[:, None] * width + xp.arange(width)).reshape(-1)
    flat = table.reshape(-1)
    accumulate_at(xp, "add", flat, index, rows.reshape(-1))
    return flat.reshape(table.shape)


def accumulate_into(xp, array, indices, values):
    """A copy of `array` with values added at checked indices, repeated ones included."""
    places = used(indices)
    given = [indices[d] for d in places]
    shape = common_shape(given)
    rest = [d for d in range(array.ndim) if d not in places]
    sizes = [array.shape[d] for d in places]
    flat = 0
    for index, size, d in zip(given, sizes, places, strict=True):
        flat = flat * size + in_range(xp, index, size, d)
    flat = spread(xp, flat, shape).reshape(-1)
    target = result_shape(array.shape, indices, shape)
    values = spread(xp, values, target)
    if places[0] and adjacent(places):  # bring the selected dims to the front
        values = xp.moveaxis(values, range(places[0], places[0] + len(shape)), range(len(shape)))
    width = numel(array.shape[d] for d in rest)
    order = (*places, *rest)
    table = array.transpose(order).copy(order="C").reshape((numel(sizes), width))
    table = add_rows(xp, table, flat, values.reshape((flat.size, width)))
    out = table.reshape([array.shape[d] for d in order])
    if order == tuple(range(array.ndim)):
        return out
    back = [order.index(d) for d in range(array.ndim)]
    return out.transpose(back).copy()


def check_values(shape, target) -> None:
    """Refuse values that do not broadcast to the selected region."""
    try:
        fits = broadcast_shapes(shape, target) == tuple(target)
    except RuntimeError:
        fits = False
    if not fits:
        raise ShapeError(
            f"shape mismatch: value tensor of shape {list(shape)} cannot be broadcast to indexing "
            f"result of shape {list(target)}"
        )


def same_dtype(self, source, message: str) -> None:
    """Scattering does not convert."""
    if self.dtype != source.dtype:
        raise RuntimeError(f"{message}, but got {self.dtype} and {source.dtype}")


# --- x[indices] -----------------------------------------------------------------------------------


def _plain_places(indices, flags):
    """Unbatched masks replaced by index tensors, with the flags to match."""
    out, out_flags = [], []
    for index, flag in zip(indices, flags, strict=True):
        if index is None or not is_mask(index):
            out.append(index)
            out_flags.append(flag)
        elif flag:
            raise needs_data("indexing with a mask that differs per example")
        else:
            parts = ops.nonzero(index).unbind(1)
            out.extend(parts)
            out_flags.extend([False] * len(parts))
    return out, out_flags


def _rank(indices, flags) -> int:
    """Logical rank of the broadcast index."""
    return max(
        1 if is_mask(i) else i.ndim - bool(f)
        for i, f in zip(indices, flags, strict=True)
        if i is not None
    )


def _with_batch_index(indices, flags, rank: int, n: int, device) -> list:
    """Indices with one for the batch dim in front, all aligned to the logical rank."""
    count = ops.arange(n, device=device).view((n, *(1,) * rank))
    return [
        count,
        *(pad_rank(i, rank) if f else i for i, f in zip(indices, flags, strict=True)),
    ]


class index_Tensor(Moving):
    """The elements at the given index tensors, one per dim; masks stand for where they are true."""

    schema = "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor"
    lower = "index.index"
    tags = ("dynamic_output_shape",)
    core = True
    method = function = False
    elsewhere = {"indices": "host"}
    linear = ("self",)
    nondiff = ("indices",)
    grad = {"self": "index_put(grad.new_zeros(self.shape), indices, grad, True)"}

    def run(xp, self, indices):
        return fetch(xp, self, checked_indices(xp, indices, self.shape))

    def shape(self, indices):
        places = []
        for index in indices:
            if index is not None and is_mask(index):
                count = size_by_data("indexing with a mask", index)
                places += [Spec(Fake((count,), dt.int64.np)) for _ in range(index.ndim)]
            else:
                places.append(index)
        indices = places
        if len(indices) > self.ndim:
            raise IndexError(f"too many indices for tensor of dimension {self.ndim}")
        given = [i for i in indices if i is not None]
        return result_shape(self.shape, indices, common_shape(given)) if given else self.shape

    def batch(n, batched, self, indices):
        flags = batched[1]
        if not any(flags):
            out = ops.index(self, [None, *indices])
            places = used(indices)
            return out if adjacent(places) else out.movedim(_rank(indices, flags), 0)
        indices, flags = _plain_places(indices, flags)
        places, rank = used(indices), _rank(indices, flags)
        first = places[0]
        if not batched[0]:
            aligned = [pad_rank(i, rank) if f else i for i, f in zip(indices, flags, strict=True)]
            out = ops.index(self, aligned)
            return out.movedim(first, 0) if adjacent(places) else out
        out = ops.index(self, _with_batch_index(indices, flags, rank, n, self.device))
        if adjacent(places) and first > 0:
            out = out.movedim(tuple(range(1, 1 + rank)), tuple(range(1 + first, 1 + first + rank)))
        return out

    def picks(self, indices):
        return self, indices

    def samples(s):
        yield s(s.real(4, 5), [s.int(3, high=4)])
        yield s(s.real(4, 5), [None, s.int(2, 3, high=5)])
        yield s(s.real(4, 5), [s.int(3, high=4), s.int(3, low=-5, high=5)])
        yield s(s.real(4, 5, 3), [s.int(2, 1, high=4), None, s.int(3, high=3)])
        yield s(s.real(4, 5, 3), [None, s.int(2, 1, high=5), s.int(3, high=3)])
        yield s(s.real(4, 5), [s.bool(4)])
        yield s(s.real(4, 5), [s.bool(4, 5)])
        yield s(s.real(4, 5).T, [None, s.int(high=4)])
        yield s(s.real(4, 5), [s.int(0, high=4)])


class unsafe_index_Tensor(Synonym):
    """`index` without promises about bounds; ours checks them all the same."""

    schema = "_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor"
    lower = "index.index"
    method = False
    same_as = "index"
    samples = lambda s: [s(s.real(4, 5), [s.int(3, high=4)])]


class Accumulating(Op):
    """A copy of `self` with values written, or added, at the places that an index lists."""

    complex = True
    inplace = True
    nondiff = ("index",)
    cost = "reduce"
    shape = "tuple(self.shape)"


def _key(xp, self, indices, places) -> tuple:
    """Checked indices as NumPy takes them."""
    key = [slice(None)] * len(indices)
    for d in places:
        key[d] = in_range(xp, indices[d], self.shape[d], d)
    return tuple(key)


def writable_at(self, values, indices) -> bool:
    """Is nothing that is written read again: do the operands have memory of their own?"""
    return 0 not in self.strides and not any(
        np.may_share_memory(self, a) for a in (values, *indices) if a is not None)


class index_put(Accumulating):
    """A copy of `self` with values written, or added, at the given index tensors."""

    schema = (
        "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor"
    )
    lower = "index.index_put"
    core = True
    memory_format = "self"
    elsewhere = {"indices": "host"}
    linear = ("self", "values")
    nondiff = ("indices",)
    grad = {
        "self": "grad if accumulate else index_put(grad, indices, grad.new_zeros(()))",
        "values": "index_put_values_backward(grad, indices, values.shape)",
    }

    def run(xp, self, indices, values, accumulate):
        if self.dtype != values.dtype:
            raise RuntimeError(
                "Index put requires the source and destination dtypes match, got "
                f"{self.dtype} for the destination and {values.dtype} for the source."
            )
        indices = checked_indices(xp, indices, self.shape)
        places = used(indices)
        if not places:
            check_values(values.shape, self.shape)
            return self + values if accumulate else xp.broadcast_to(values, self.shape).copy()
        shape = common_shape([indices[d] for d in places])
        check_values(values.shape, result_shape(self.shape, indices, shape))
        if accumulate:
            return accumulate_into(xp, self, indices, values)
        out = self.copy()
        out[_key(xp, self, indices, places)] = values
        return out

    def fill(self, indices, values, accumulate):
        if accumulate or self.dtype != values.dtype or not writable_at(self, values, indices):
            return False
        indices = checked_indices(np, indices, self.shape)
        places = used(indices)
        if not places:
            return False
        shape = common_shape([indices[d] for d in places])
        check_values(values.shape, result_shape(self.shape, indices, shape))
        self[_key(np, self, indices, places)] = values
        return True

    def batch(n, batched, self, indices, values, accumulate):
        flags = batched[1]
        self = in_front(self, batched[0], n)
        logical = self.ndim - 1
        if any(flags):
            given = [i for i in indices if i is not None]
            one = all(size == 1 for size in values.shape[1 if batched[2] else 0 :])
            if len(given) == 1 and is_mask(given[0]) and one:
                return _put_one(n, batched[2], self, indices, values, accumulate)
            indices, flags = _plain_places(indices, flags)
        places, rank = used(indices), _rank(indices, flags)
        consumed = sum(i.ndim if is_mask(i) else 1 for i in indices if i is not None)
        first, together = places[0], adjacent(places)
        target = logical - consumed + rank  # logical rank of the selection
        if any(flags):
            indices = _with_batch_index(indices, flags, rank, n, self.device)
            if together and first > 0:  # the physical selection has its index dims in front
                values = _full_rank(values, batched[2], target)
                shift = int(batched[2])
                source = range(shift + first, shift + first + rank)
                values = values.movedim(tuple(source), tuple(range(shift, shift + rank)))
            elif batched[2]:
                values = pad_rank(values, target)
        else:
            indices = [None, *indices]
            if together:
                values = pad_rank(values, target) if batched[2] else values
            else:  # the physical selection has its batch dim behind the index dims
                values = _full_rank(values, batched[2], target)
                values = values.movedim(0, rank) if batched[2] else values.unsqueeze(rank)
        return ops.index_put(self, indices, values, accumulate)

    def samples(s):
        yield s(s.real(4, 5), [s.int(3, high=4)], s.real(3, 5), accumulate=True)
        yield s(s.real(4, 5), [s.int(6, high=4)], s.real(5), accumulate=True)
        yield s(s.real(4, 5), [whole(s, [2, 0])], s.real(2, 5))
        yield s(s.real(4, 5), [None, whole(s, [1, 3])], s.real(4, 2))
        yield s(s.real(4, 5), [whole(s, [1, 3]), whole(s, [0, -1])], s.real(2))
        yield s(s.real(3, 4, 5), [whole(s, [[1], [2]]), None, whole(s, [0, 4])], s.real(2, 2, 4))
        yield s(
            s.real(3, 4, 5), [None, s.int(2, 3, high=4), s.int(3, high=5)], s.real(3, 2, 3), True
        )
        yield s(s.real(4, 5), [s.bool(4)], s.real())
        yield s(s.real(4, 5), [s.bool(4, 5)], s.real(1))


def _full_rank(values, is_batched: bool, rank: int):
    """Values with dims of size 1 in front until their logical rank is `rank`."""
    if is_batched:
        return pad_rank(values, rank)
    return (
        values.view((*(1,) * (rank - values.ndim), *values.shape)) if values.ndim < rank else values
    )


def _put_one(n, values_batched, self, indices, values, accumulate):
    """index_put with a mask that differs per example and one value: a select, no index needed."""
    where = used(indices)[0]
    mask = indices[where]
    for _ in range(where):
        mask = mask.unsqueeze(1)
    while mask.ndim < self.ndim:
        mask = mask.unsqueeze(-1)
    mask = mask.to(dt.bool_)
    if values_batched:
        values = values.reshape((n, *(1,) * (self.ndim - 1)))
    else:
        values = values.reshape(())
    return ops.where(mask, self + values if accumulate else values, self)


class unsafe_index_put(Synonym):
    """`index_put` without promises about bounds; ours checks them all the same."""

    schema = (
        "_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False)"
        " -> Tensor"
    )
    method = False
    same_as = "index_put"
    samples = lambda s: [s(s.real(4, 5), [whole(s, [2, 0])], s.real(2, 5))]


def _clamped(indices, shape):
    """Integer indices forced into range, for places that a mask discards anyway."""
    return [
        i if i is None else i.clamp(-size, size - 1)
        for i, size in zip(indices, shape, strict=False)
    ]


class unsafe_masked_index(Free):
    """`index` where a mask is true, a number elsewhere; there the indices may be out of range."""

    schema = (
        "_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor"
    )

    def compose(self, mask, indices, fill):
        picked = ops.index(self, _clamped(indices, self.shape))
        return picked.masked_fill(mask.logical_not(), fill)

    samples = lambda s: [s(s.real(4, 5), s.bool(3, 1), [s.int(3, high=9)], 1.5)]


class unsafe_masked_index_put_accumulate(Free):
    """`index_put` with accumulation of the values where a mask is true."""

    schema = (
        "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, "
        "Tensor values) -> Tensor"
    )

    def compose(self, mask, indices, values):
        kept = values.masked_fill(mask.logical_not(), 0)
        return ops.index_put(self, _clamped(indices, self.shape), kept, True)

    samples = lambda s: [s(s.real(4, 5), s.bool(3, 5), [s.int(3, high=9)], s.real(3, 5))]


class unravel_index(Free):
    """Coordinates of flattened positions, one tensor per dim."""

    schema = "unravel_index(Tensor indices, int[] shape) -> Tensor[]"

    def compose(indices, shape):
        if indices.dtype.category > 1 or indices.dtype is dt.bool_:
            raise ArgumentError(
                f"expected 'indices' to be integer dtype, but got {indices.dtype}"
            )
        out, step = [], 1
        for size in reversed(shape):
            out.append(indices.floor_divide(step).remainder(size))
            step *= size
        return tuple(reversed(out))

    samples = lambda s: [s(s.int(5, high=12), (3, 4))]


# --- the flattened tensor -------------------------------------------------------------------------


def flat_index(xp, index, size: int, name: str):
    """Flat non-negative index of take and put."""
    if dt.name_of(index.dtype) != "int64":
        raise RuntimeError(f"{name}: Expected a long tensor for index, but got {index.dtype}")
    if index.size == 0:
        return index
    if size == 0:
        raise IndexError(f"{name}: tried to take from an empty tensor")
    low, high = index.min(), index.max()
    if high >= size or low < -size:
        bad = int(high if high >= size else low)
        raise IndexError(
            f"out of range: tried to access index {bad} on a tensor of {size} elements."
        )
    return xp.where(index < 0, index + size, index) if low < 0 else index


def _flat_rows(n, is_batched, x):
    """Batched tensors as (n, elements)."""
    x = in_front(x, is_batched, n)
    return x.reshape((n, numel(x.shape[1:])))


class take(Moving):
    """Elements of the flattened tensor."""

    schema = "take(Tensor self, Tensor index) -> Tensor"
    linear = ("self",)
    nondiff = ("index",)
    out = ("exact", "apart")
    shape = "tuple(index.shape)"
    grad = {"self": "grad.new_zeros(self.shape).put(index, grad, True)"}

    def run(xp, self, index):
        places = flat_index(xp, index, self.size, "take()")
        return xp.take(self.reshape(-1), places)

    def batch(n, batched, self, index):
        if not batched[0]:
            return self.take(index)
        rows, places = _flat_rows(n, True, self), _flat_rows(n, batched[1], index)
        places = ops.where(places < 0, places + rows.shape[1], places)
        shape = index.shape if batched[1] else (n, *index.shape)
        return rows.gather(1, places).reshape(shape)

    def decomp(self, index):
        return ops.index(ops.reshape(self, (-1,)), [index])

    def samples(s):
        yield s(s.real(3, 4), s.int(2, 3, low=-12, high=12))
        yield s(s.real(3, 4).T, s.int(high=12))
        yield s(s.real(), whole(s, [0, 0]))


class put(Accumulating):
    """A copy of `self` with elements written, or added, by their flattened position."""

    schema = "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor"
    kept = "kernel"
    memory_format = "self"
    linear = ("self", "source")
    grad = {
        "self": "grad if accumulate else grad.put(index, grad.new_zeros(source.shape), False)",
        "source": "grad.take(index).reshape(source.shape)",
    }

    def run(xp, self, index, source, accumulate):
        same_dtype(self, source, "put_(): self and source expected to have the same dtype")
        if index.size != source.size:
            raise IndexError(
                "put_(): Expected source and index to have the same number of elements, but got "
                f"source.numel() = {source.size}, index.numel() = {index.size}"
            )
        places = flat_index(xp, index, self.size, "put_()").reshape(-1)
        out = self.copy(order="C").reshape(-1)
        if accumulate:
            accumulate_at(xp, "add", out, places, source.reshape(-1))
        else:
            out[places] = source.reshape(-1)
        return out.reshape(self.shape)

    def batch(n, batched, self, index, source, accumulate):
        rows, places = _flat_rows(n, batched[0], self), _flat_rows(n, batched[1], index)
        source = _flat_rows(n, batched[2], source)
        places = ops.where(places < 0, places + rows.shape[1], places)
        out = (ops.scatter_add if accumulate else ops.scatter)(rows, 1, places, source)
        return out.reshape(self.shape if batched[0] else (n, *self.shape))

    def samples(s):
        yield s(s.real(3, 4), whole(s, [[0, -1], [5, 2]]), s.real(4))
        yield s(s.real(3, 4), whole(s, [0, 3, 0, -1]), s.real(2, 2), True)


class take_along_dim(ComplexComposite):
    """`gather` with broadcasting; without dim, elements of the flattened tensor."""

    schema = "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor"
    out = ("exact",)

    def compose(self, indices, dim):
        if indices.dtype is not dt.int64:
            raise RuntimeError(
                f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype}"
            )
        if dim is None:
            return self.reshape((-1,)).take(indices.reshape((-1,)))
        if self.ndim != indices.ndim:
            raise RuntimeError(
                "torch.take_along_dim(): input and indices should have the same number of "
                f"dimensions, but got {self.ndim} dimensions for input, and {indices.ndim} "
                "dimensions for indices"
            )
        dim = wrap_dim(dim, self.ndim)
        mine, theirs = list(self.shape), list(indices.shape)
        if self.ndim:
            size, count = mine[dim], theirs[dim]
            mine[dim] = theirs[dim] = 1
            common = list(broadcast_shapes(mine, theirs))
            self = self.expand((*common[:dim], size, *common[dim + 1 :]))
            indices = indices.expand((*common[:dim], count, *common[dim + 1 :]))
            indices = ops.where(indices < 0, indices + size, indices)
        return self.gather(dim, indices)

    def samples(s):
        yield s(s.real(3, 4), s.int(3, 2, high=4), 1)
        yield s(s.real(3, 4), s.int(1, 2, high=4), 1)
        yield s(s.real(3, 4), s.int(5, high=12))
