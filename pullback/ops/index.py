"""Selection and scattering by index tensors and masks; tables looked up by index.

Accumulating kernels add in the order of the indices, so results do not change from run to run.
`x[key]` is translated to these operators in `core/indexing.py`; longer derivatives are in
`formulas/index.py`. Read `order.py` next.
"""

from __future__ import annotations

from ..core import dtype as dt
from ..core.dims import broadcast_shapes, numel, wrap_dim
from ..core.op import Composite, Op, Pointwise
from ..core.table import ops
from ..core.xp import accumulate_at
from ..errors import ArgumentError, DataDependentError, ShapeError
from .shape import along, in_front, inner, pad_rank

# --- checks and translations shared by kernels and rules ------------------------------------------


def whole(s, data):
    """An integer tensor with the given values, for samples."""
    return s.values(data).to(dt.int64)


def needs_data(name: str):
    """The error of a shape rule that would have to know values."""
    return DataDependentError(
        f"{name}: the size of the result depends on values, which are not known here.\n"
        "  Fix: use where() or a mask of fixed size, or keep this step outside of the transform."
    )


def is_mask(index) -> bool:
    """Whether an index array or tensor selects by truth; uint8 counts as bool."""
    kind = index.dtype
    return kind.name in ("bool", "uint8")


def checked_indices(xp, indices, shape) -> list:
    """One integer array or None per dim, masks replaced by the places where they are true."""
    out = []
    for index in indices:
        if index is None:
            out.append(None)
        elif is_mask(index):
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
        elif index.dtype.name in ("int64", "int32"):
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
    if index.size == 0:
        return index
    low, high = index.min(), index.max()
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
    shape = common_shape(given)
    if len(places) == 1:
        dim = places[0]
        index = in_range(xp, given[0], array.shape[dim], dim)
        return xp.take(array, index, axis=dim)
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
    """`table` with `rows[k]` added to its row `index[k]`, in order of k; may reuse `table`."""
    width = table.shape[1]
    if index.size == 0 or width == 0:
        return table
    if xp.__name__ == "numpy" and width > 1 and rows.size > 1024 and table.dtype.kind in "fc":
        # a sparse matrix of ones does the same additions in one compiled loop
        from scipy.sparse import csc_matrix

        ones = xp.ones(index.size, table.dtype)
        starts = xp.arange(index.size + 1)
        matrix = csc_matrix((ones, index, starts), shape=(table.shape[0], index.size))
        table += matrix @ rows
        return table
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
    flat = xp.broadcast_to(flat, shape).reshape(-1)
    target = result_shape(array.shape, indices, shape)
    values = xp.broadcast_to(values, target)
    if adjacent(places):  # bring the selected dims to the front
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


class index_Tensor(Op):
    """The elements at the given index tensors, one per dim; masks stand for where they are true."""

    schema = "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor"
    promote = "keep"
    method = False
    function = False
    complex = True
    linear = ("self",)
    nondiff = ("indices",)
    cost = "cheap"
    grad = {"self": "index_put(grad.new_zeros(self.shape), indices, grad, True)"}

    def run(xp, self, indices):
        return fetch(xp, self, checked_indices(xp, indices, self.shape))

    def shape(self, indices):
        for index in indices:
            if index is not None and is_mask(index):
                raise needs_data("indexing with a mask")
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


class unsafe_index_Tensor(Composite):
    """`index` without promises about bounds; ours checks them all the same."""

    schema = "_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor"
    method = False

    def compose(self, indices):
        return ops.index(self, indices)

    def samples(s):
        yield s(s.real(4, 5), [s.int(3, high=4)])


class index_put(Op):
    """A copy of `self` with values written, or added, at the given index tensors."""

    schema = (
        "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor"
    )
    complex = True
    inplace = True
    linear = ("self", "values")
    nondiff = ("indices",)
    cost = "reduce"
    shape = "tuple(self.shape)"
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
        key = [slice(None)] * len(indices)
        for d in places:
            key[d] = in_range(xp, indices[d], self.shape[d], d)
        out[tuple(key)] = values
        return out

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


class unsafe_index_put(Composite):
    """`index_put` without promises about bounds; ours checks them all the same."""

    schema = (
        "_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False)"
        " -> Tensor"
    )
    method = False

    def compose(self, indices, values, accumulate):
        return ops.index_put(self, indices, values, accumulate)

    def samples(s):
        yield s(s.real(4, 5), [whole(s, [2, 0])], s.real(2, 5))


def _clamped(indices, shape):
    """Integer indices forced into range, for places that a mask discards anyway."""
    return [
        i if i is None else i.clamp(-size, size - 1)
        for i, size in zip(indices, shape, strict=False)
    ]


class unsafe_masked_index(Composite):
    """`index` where a mask is true, a number elsewhere; there the indices may be out of range."""

    schema = (
        "_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor"
    )
    method = False

    def compose(self, mask, indices, fill):
        picked = ops.index(self, _clamped(indices, self.shape))
        return picked.masked_fill(mask.logical_not(), fill)

    def samples(s):
        yield s(s.real(4, 5), s.bool(3, 1), [s.int(3, high=9)], 1.5)


class unsafe_masked_index_put_accumulate(Composite):
    """`index_put` with accumulation of the values where a mask is true."""

    schema = (
        "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, "
        "Tensor values) -> Tensor"
    )
    method = False

    def compose(self, mask, indices, values):
        kept = values.masked_fill(mask.logical_not(), 0)
        return ops.index_put(self, _clamped(indices, self.shape), kept, True)

    def samples(s):
        yield s(s.real(4, 5), s.bool(3, 5), [s.int(3, high=9)], s.real(3, 5))


class unravel_index(Composite):
    """Coordinates of flattened positions, one tensor per dim."""

    schema = "unravel_index(Tensor indices, int[] shape) -> Tensor[]"
    method = False

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

    def samples(s):
        yield s(s.int(5, high=12), (3, 4))


# --- one index vector along one dim ---------------------------------------------------------------


def index_vector(index, name: str):
    """The index of index_select and its kin as a vector."""
    if index.ndim > 1:
        raise IndexError(f"{name}: Index is supposed to be a vector")
    if index.dtype.name not in ("int32", "int64"):
        raise RuntimeError(f"{name}: Expected dtype int32 or int64 for index")
    return index.reshape((-1,))


def _batched_vector(n, is_batched, index):
    """A batched index as (n, k), whatever its logical rank was."""
    return index.reshape((n, -1 if index.numel() else 0)) if is_batched else index


def _spread(index, like, dim: int, size: int):
    """Index (n, k) as (n, 1.., k, ..1) expanded to `like` with k = size at `dim`."""
    view = [1] * like.ndim
    view[0], view[dim] = index.shape[0], size
    shape = list(like.shape)
    shape[dim] = size
    return index.view(view).expand(shape)


class index_select(Op):
    """The indices of one dim that a vector lists."""

    schema = "index_select(Tensor self, int dim, Tensor index) -> Tensor"
    promote = "keep"
    complex = True
    linear = ("self",)
    nondiff = ("index",)
    cost = "cheap"
    grad = {"self": "grad.new_zeros(self.shape).index_add(dim, index, grad)"}

    def run(xp, self, dim, index):
        dim = wrap_dim(dim, self.ndim)
        index = index_vector(index, "index_select()")
        size = self.shape[dim] if self.ndim else 1
        if self.ndim == 0 and index.size != 1:
            raise RuntimeError(
                f"index_select(): Index to scalar can have only 1 value, got {index.size} value(s)"
            )
        if index.size and (index.min() < 0 or index.max() >= size):
            raise IndexError("index out of range in self")
        return xp.take(self, index, axis=dim) if self.ndim else self.copy()

    def shape(self, dim, index):
        dim = wrap_dim(dim, self.ndim)
        return (*self.shape[:dim], numel(index.shape), *self.shape[dim + 1 :]) if self.ndim else ()

    def batch(n, batched, self, dim, index):
        if not batched[2]:
            if self.ndim == 1:
                return self.clone()
            return self.index_select(inner(dim, self), index)
        index = _batched_vector(n, True, index)
        if not batched[0]:
            dim = wrap_dim(dim, self.ndim)
            if self.ndim == 0:
                return self.expand((n,)).clone()
            out = self.index_select(dim, index.reshape((-1,)))
            return out.unflatten(dim, (n, index.shape[1])).movedim(dim, 0)
        if self.ndim == 1:
            return self.clone()
        dim = inner(dim, self)
        return self.gather(dim, _spread(index, self, dim, index.shape[1]))

    def samples(s):
        yield s(s.real(4, 5), 0, s.int(3, high=4))
        yield s(s.real(4, 5), -1, s.int(6, high=5))
        yield s(s.real(4, 5).T, 0, s.int(high=4))
        yield s(s.real(), 0, whole(s, [0]))
        yield s(s.real(4, 5), 0, s.int(0, high=4))


def slices_match(self, source, dim: int) -> None:
    """Source of index_add: the shape of self, except along the indexed dim."""
    mine = (*self.shape[:dim], *self.shape[dim + 1 :])
    theirs = (*source.shape[:dim], *source.shape[dim + 1 :])
    if self.ndim != source.ndim or mine != theirs:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {list(self.shape)} source.shape = {list(source.shape)}"
        )


class index_add(Op):
    """A copy of `self` with slices of `source` added at the listed indices of one dim."""

    schema = (
        "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor"
    )
    complex = True
    inplace = True
    linear = ("self", "source")
    nondiff = ("index",)
    cost = "reduce"
    shape = "tuple(self.shape)"
    grad = {
        "self": "grad",
        "source": "index_source_backward(grad, dim, index, source.ndim, source.shape)"
        " * (alpha.conjugate() if isinstance(alpha, complex) else alpha)",
    }

    def run(xp, self, dim, index, source, alpha):
        dim = wrap_dim(dim, self.ndim)
        index = index_vector(index, "index_add_()")
        same_dtype(self, source, "index_add_(): self and source must have the same scalar type")
        if source.ndim == 0 and index.size != 1:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        count = source.shape[wrap_dim(dim, source.ndim)] if source.ndim else 1
        if index.size != count:
            raise RuntimeError(
                f"index_add_(): Number of indices ({index.size}) should be equal to "
                f"source.size(dim): ({count}), for dim: {dim}"
            )
        slices_match(self, source, dim)
        size = self.shape[dim] if self.ndim else 1
        index = in_range(xp, index, size, dim, RuntimeError, negative=False)
        if alpha != 1:
            source = (source * alpha).astype(self.dtype)
        if self.ndim == 0:
            return self + source
        return accumulate_into(xp, self, [None] * dim + [index], source)

    def batch(n, batched, self, dim, index, source, alpha):
        self, source = in_front(self, batched[0], n), in_front(source, batched[3], n)
        if self.ndim == 1:
            return self + source * alpha
        if source.ndim < self.ndim:
            source = source.unsqueeze(1)
        dim = inner(dim, self)
        if not batched[2]:
            return self.index_add(dim, index, source, alpha=alpha)
        index = _batched_vector(n, True, index)
        spread = _spread(index, self, dim, index.shape[1])
        return self.scatter_add(dim, spread, source if alpha == 1 else source * alpha)

    def decomp(self, dim, index, source, alpha):
        if self.ndim == 0:
            return ops.add(self, source, alpha=alpha)
        if alpha != 1:
            source = ops.mul(source, alpha)
        index = [None] * wrap_dim(dim, self.ndim) + [ops.reshape(index, (-1,))]
        return ops.index_put(self, index, source, True)

    def samples(s):
        yield s(s.real(4, 5), 0, s.int(6, high=4), s.real(6, 5))
        yield s(s.real(4, 5), -1, s.int(2, high=5), s.real(4, 2), alpha=2)
        yield s(s.real(4, 5).T, 0, s.int(3, high=5), s.real(3, 4))
        yield s(s.real(), 0, whole(s, [0]), s.real())


class index_copy(Op):
    """A copy of `self` with slices of `source` at the listed indices of one dim."""

    schema = "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor"
    promote = "keep"
    complex = True
    inplace = True
    linear = ("self", "source")
    nondiff = ("index",)
    cost = "cheap"
    shape = "tuple(self.shape)"
    grad = {
        "self": "grad.index_fill(dim, index, 0)",
        "source": "index_source_backward(grad, dim, index, source.ndim, source.shape)",
    }

    def run(xp, self, dim, index, source):
        dim = wrap_dim(dim, self.ndim)
        if index.dtype.name != "int64":
            raise RuntimeError("index_copy_(): Expected a long tensor for index")
        index = index_vector(index, "index_copy_()")
        same_dtype(self, source, "index_copy_(): self and source expected to have the same dtype")
        count = source.shape[dim] if source.ndim else 1
        if index.size != count:
            raise IndexError(
                f"index_copy_(): Number of indices ({index.size}) should be equal to "
                f"source.size(dim) ({count})"
            )
        mine = (*self.shape[:dim], *self.shape[dim + 1 :])
        theirs = (*source.shape[:dim], *source.shape[dim + 1 :])
        if mine != theirs:
            raise RuntimeError(
                "index_copy_(): Source/destination tensor must have same slice shapes. Destination "
                f"slice shape: {list(mine)} and source slice shape: {list(theirs)}"
            )
        size = self.shape[dim] if self.ndim else 1
        in_range(xp, index, size, dim, IndexError, negative=False)
        out = self.copy()
        out[along(dim, index) if self.ndim else ...] = source
        return out

    def batch(n, batched, self, dim, index, source):
        self, source = in_front(self, batched[0], n), in_front(source, batched[3], n)
        if self.ndim == 1:
            return source.reshape((n,)).clone()
        if source.ndim < self.ndim:
            source = source.unsqueeze(1)
        dim = inner(dim, self)
        if not batched[2]:
            return self.index_copy(dim, index, source)
        index = _batched_vector(n, True, index)
        return ops.scatter(self, dim, _spread(index, self, dim, index.shape[1]), source)

    def decomp(self, dim, index, source):
        if self.ndim == 0:
            return ops.reshape(source, ())
        if source.ndim == 0:
            source = ops.unsqueeze(source, 0)
        index = [None] * wrap_dim(dim, self.ndim) + [ops.reshape(index, (-1,))]
        return ops.index_put(self, index, source)

    def samples(s):
        yield s(s.real(4, 5), 0, whole(s, [2, 0]), s.real(2, 5))
        yield s(s.real(4, 5), -1, whole(s, [3, 1, 0]), s.real(4, 3))
        yield s(s.real(4), 0, whole(s, 1), s.real())
        yield s(s.real(), 0, whole(s, 0), s.real())


def _filled(xp, self, dim, index, value):
    dim = wrap_dim(dim, self.ndim)
    if index.dtype.name != "int64":
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    size = self.shape[dim] if self.ndim else 1
    index = in_range(xp, index.reshape((-1,)), size, dim)
    out = self.copy()
    if index.size:
        out[along(dim, index) if self.ndim else ...] = as_number(self, value)
    return out


def as_number(array, value):
    """A number in the kind of an array: fractions are cut off for integers."""
    kind = array.dtype.kind
    if isinstance(value, complex):
        if kind != "c":
            raise RuntimeError(f"value cannot be converted to type {array.dtype} without overflow")
        return value
    if kind in "iu" and isinstance(value, float):
        return int(value)
    return bool(value) if kind == "b" else value


def _index_fill_decomp(self, dim, index, value):
    if self.ndim == 0:
        return ops.expand(value, ())
    index = [None] * wrap_dim(dim, self.ndim) + [ops.reshape(index, (-1,))]
    return ops.index_put(self, index, value)


def _index_fill_batch(n, batched, self, dim, index, value):
    self = in_front(self, batched[0], n)
    if not batched[2] and not (len(batched) > 3 and batched[3]):
        if self.ndim == 1:
            return self.unsqueeze(1).index_fill(1, index, value).squeeze(1)
        return self.index_fill(inner(dim, self), index, value)
    scalar = self.ndim == 1
    if scalar:
        self = self.unsqueeze(1)
    dim = 1 if scalar else inner(dim, self)
    index = _batched_vector(n, batched[2], index)
    if not batched[2]:
        index = index.reshape((1, -1 if index.numel() else 0)).expand((n, index.numel()))
    size = self.shape[dim]
    hit = ops.zeros((n, size), dtype=dt.bool_, device=self.device)
    index = ops.where(index < 0, index + size, index)
    hit = ops.scatter(hit, 1, index, True)
    view = [1] * self.ndim
    view[0], view[dim] = n, size
    if hasattr(value, "ndim"):
        value = value.to(self.dtype)
        value = value.view((n, *(1,) * (self.ndim - 1))) if value.ndim else value
        out = ops.where(hit.view(view), value, self)
    else:
        out = self.masked_fill(hit.view(view), value)
    return out.squeeze(1) if scalar else out


class index_fill_int_Tensor(Op):
    """A copy of `self` with one 0-d tensor at the listed indices of one dim."""

    schema = "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor"
    number = 1
    promote = "keep"
    complex = True
    inplace = True
    linear = ("self", "value")
    nondiff = ("index",)
    cost = "cheap"
    shape = "tuple(self.shape)"
    grad = {
        "self": "grad.index_fill(dim, index, 0)",
        "value": "index_fill_value_backward(grad, dim, index)",
    }

    def run(xp, self, dim, index, value):
        if value.ndim:
            raise RuntimeError(
                "index_fill_ only supports a 0-dimensional value tensor, "
                f"but got tensor with {value.ndim} dimension(s)."
            )
        return _filled(xp, self, dim, index, value)

    batch = _index_fill_batch

    def decomp(self, dim, index, value):
        return _index_fill_decomp(self, dim, index, value.to(self.dtype))

    def samples(s):
        yield s(s.real(4, 5), 0, whole(s, [2, 0, 2]), s.real())
        yield s(s.real(4, 5), -1, whole(s, [-1]), s.real())
        yield s(s.real(), 0, whole(s, [0]), s.real())


class index_fill_int_Scalar(Op):
    """A copy of `self` with a number at the listed indices of one dim."""

    schema = "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor"
    number = 0
    promote = "keep"
    complex = True
    inplace = True
    nondiff = ("index",)
    cost = "cheap"
    shape = "tuple(self.shape)"
    grad = {"self": "grad.index_fill(dim, index, 0)"}
    push = "self_t.index_fill(dim, index, 0)"

    def run(xp, self, dim, index, value):
        return _filled(xp, self, dim, index, value)

    batch = _index_fill_batch

    def decomp(self, dim, index, value):
        return _index_fill_decomp(self, dim, index, ops.full((), value, dtype=self.dtype))

    def samples(s):
        yield s(s.real(4, 5), 0, whole(s, [2, 0, 2]), 1.5)
        yield s(s.real(4, 5), -1, whole(s, 1), 2)


# --- one index per element along one dim ----------------------------------------------------------


def check_along(name: str, self, index, dim: int, src=None) -> int:
    """Wrapped dim of gather or scatter after checking ranks, sizes and the index dtype."""
    dim = wrap_dim(dim, self.ndim)
    if numel(index.shape) == 0:
        return dim
    if index.dtype.name not in ("int32", "int64"):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    if max(self.ndim, 1) != max(index.ndim, 1):
        kind = "input" if name == "gather" else "self"
        raise RuntimeError(f"Index tensor must have the same number of dimensions as {kind} tensor")
    if src is not None and max(src.ndim, 1) != max(index.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    if self.ndim == 0 or index.ndim == 0:
        return dim
    for d in range(self.ndim):
        small = d == dim or index.shape[d] <= self.shape[d]
        fits = src is None or src.ndim == 0 or index.shape[d] <= src.shape[d]
        if small and fits:
            continue
        if name == "gather":
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index {list(index.shape)} to be no "
                f"larger than self {list(self.shape)} apart from dimension {dim}"
            )
        also = f" and to be no larger size than src {list(src.shape)}" if src is not None else ""
        raise RuntimeError(
            f"Expected index {list(index.shape)} to be no larger than self {list(self.shape)} "
            f"apart from dimension {dim}{also}"
        )
    return dim


def flat_places(index, shape, dim: int, xp):
    """Position in the flattened array of shape `shape` of each entry of an index along `dim`."""
    steps = [numel(shape[d + 1 :]) for d in range(len(shape))]
    flat = index * xp.int64(steps[dim])
    for d, size in enumerate(index.shape):
        if d != dim and size > 1:
            view = [1] * index.ndim
            view[d] = size
            flat += (xp.arange(size) * steps[d]).reshape(view)
    return flat.reshape(-1)


def line(array):
    """A 0-d array as a vector of one."""
    return array.reshape((1,)) if array.ndim == 0 else array


def _along_batch(n, batched, dim, *parts):
    """Operands of gather or scatter with batch dims in front and at least one more dim."""
    flags = (batched[0], *batched[2 : 2 + len(parts) - 1])
    parts = [in_front(x, f, n) for x, f in zip(parts, flags, strict=True)]
    rank = max(p.ndim for p in parts)
    scalar = parts[0].ndim == 1
    parts = [p.unsqueeze(1) if p.ndim == 1 and rank >= 1 else p for p in parts]
    return parts, wrap_dim(dim, 1 if scalar else parts[0].ndim - 1) + 1, scalar


class gather(Op):
    """One element along a dim for each entry of an index."""

    schema = "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor"
    promote = "keep"
    complex = True
    linear = ("self",)
    nondiff = ("index",)
    out = ("exact", "apart")
    cost = "cheap"
    shape = "tuple(index.shape)"
    grad = {"self": "grad.new_zeros(self.shape).scatter_add(dim, index, grad)"}

    def run(xp, self, dim, index, sparse_grad):
        dim = check_along("gather", self, index, dim)
        if index.size == 0:
            return xp.empty(index.shape, self.dtype)
        shape, places = self.shape or (1,), line(index)
        places = in_range(xp, places, shape[dim], dim, RuntimeError, negative=False)
        flat = flat_places(places, shape, dim, xp)
        return xp.take(self.reshape(-1), flat).reshape(index.shape)

    def batch(n, batched, self, dim, index, sparse_grad):
        flat = index.ndim - batched[2] == 0
        (self, index), dim, _ = _along_batch(n, batched, dim, self, index)
        out = self.gather(dim, index)
        return out.reshape((n,)) if flat else out

    def samples(s):
        yield s(s.real(4, 5), 0, s.int(2, 5, high=4))
        yield s(s.real(4, 5), -1, s.int(3, 7, high=5))
        yield s(s.real(4, 5).T, 1, s.int(2, 3, high=4))
        yield s(s.real(), 0, whole(s, 0))
        yield s(s.real(4, 5), 0, s.int(0, 5, high=4))


def _scattered(xp, self, dim, index, src, name="scatter"):
    """Checked flat copy of self, flat places, and the part of src that is used."""
    is_array = hasattr(src, "ndim")
    dim = check_along(name, self, index, dim, src if is_array else None)
    if is_array:
        same_dtype(self, src, f"{name}(): Expected self.dtype to be equal to src.dtype")
    out = self.copy(order="C").reshape(-1)
    if index.size == 0:
        return out, None, None
    shape = self.shape or (1,)
    places = in_range(xp, line(index), shape[dim], dim, RuntimeError, negative=False)
    if is_array:
        part = tuple(slice(0, size) for size in places.shape)
        src = line(src)[part].reshape(-1)
    else:
        src = as_number(self, src)
    return out, flat_places(places, shape, dim, xp), src


class scatter_src(Op):
    """A copy of `self` with one element of src written for each entry of an index."""

    schema = "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor"
    promote = "keep"
    complex = True
    inplace = True
    linear = ("self", "src")
    nondiff = ("index",)
    cost = "cheap"
    shape = "tuple(self.shape)"
    grad = {
        "self": "scatter_zero(grad, dim, index)",
        "src": "scatter_src_backward(grad, dim, index, src.shape)",
    }

    def run(xp, self, dim, index, src):
        out, places, values = _scattered(xp, self, dim, index, src)
        if places is not None:
            out[places] = values
        return out.reshape(self.shape)

    def batch(n, batched, self, dim, index, src):
        (self, index, src), dim, scalar = _along_batch(n, batched, dim, self, index, src)
        out = ops.scatter(self, dim, index, src)
        return out.squeeze(1) if scalar else out

    def samples(s):
        yield s(s.real(4, 5), 0, whole(s, [[0, 1, 2, 3, 0]]), s.real(1, 5))
        yield s(s.real(4, 5), -1, whole(s, [[0, 3], [4, 2]]), s.real(3, 4))
        yield s(s.real(), 0, whole(s, 0), s.real())


class scatter_value(Op):
    """A copy of `self` with a number written for each entry of an index."""

    schema = "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor"
    promote = "keep"
    complex = True
    inplace = True
    nondiff = ("index",)
    cost = "cheap"
    shape = "tuple(self.shape)"
    grad = {"self": "scatter_zero(grad, dim, index)"}
    push = "scatter_zero(self_t, dim, index)"

    def run(xp, self, dim, index, value):
        out, places, number = _scattered(xp, self, dim, index, value)
        if places is not None:
            out[places] = number
        return out.reshape(self.shape)

    def batch(n, batched, self, dim, index, value):
        (self, index), dim, scalar = _along_batch(n, batched, dim, self, index)
        out = ops.scatter(self, dim, index, value)
        return out.squeeze(1) if scalar else out

    def samples(s):
        yield s(s.real(4, 5), 0, s.int(2, 5, high=4), 1.5)
        yield s(s.real(4, 5), -1, s.int(3, 2, high=5), 2)
        yield s(s.real(), 0, whole(s, 0), 3)


class scatter_add(Op):
    """A copy of `self` with one element of src added for each entry of an index."""

    schema = "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor"
    complex = True
    inplace = True
    linear = ("self", "src")
    nondiff = ("index",)
    cost = "reduce"
    shape = "tuple(self.shape)"
    grad = {"self": "grad", "src": "scatter_src_backward(grad, dim, index, src.shape)"}

    def run(xp, self, dim, index, src):
        out, places, values = _scattered(xp, self, dim, index, src)
        if places is not None:
            accumulate_at(xp, "add", out, places, values)
        return out.reshape(self.shape)

    def batch(n, batched, self, dim, index, src):
        (self, index, src), dim, scalar = _along_batch(n, batched, dim, self, index, src)
        out = self.scatter_add(dim, index, src)
        return out.squeeze(1) if scalar else out

    def samples(s):
        yield s(s.real(4, 5), 0, s.int(6, 5, high=4), s.real(6, 5))
        yield s(s.real(4, 5), -1, s.int(3, 7, high=5), s.real(4, 8))
        yield s(s.real(), 0, whole(s, 0), s.real())


REDUCTIONS = {"sum": "add", "prod": "multiply", "mean": "add", "amax": "maximum", "amin": "minimum"}


class scatter_reduce_two(Op):
    """A copy of `self` reduced with one element of src for each entry of an index."""

    schema = (
        "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, "
        "bool include_self=True) -> Tensor"
    )
    inplace = True
    nondiff = ("index",)
    cost = "reduce"
    shape = "tuple(self.shape)"
    grad = {
        "self, src": "scatter_reduce_backward(grad, self, dim, index, src, reduce, include_self, "
        "result, grad_input_mask)"
    }

    def run(xp, self, dim, index, src, reduce, include_self):
        if reduce not in REDUCTIONS:
            raise RuntimeError(
                f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
            )
        out, places, values = _scattered(xp, self, dim, index, src)
        if places is None:
            return out.reshape(self.shape)
        if not include_self:
            out[places] = _identity(xp, reduce, self.dtype)
        accumulate_at(xp, REDUCTIONS[reduce], out, places, values)
        if reduce == "mean":
            count = (xp.ones if include_self else xp.zeros)(out.shape, self.dtype)
            accumulate_at(xp, "add", count, places, xp.ones_like(values))
            count = xp.where(count == 0, 1, count).astype(self.dtype)
            out = out // count if self.dtype.kind in "iu" else out / count
        return out.reshape(self.shape)

    def batch(n, batched, self, dim, index, src, reduce, include_self):
        (self, index, src), dim, scalar = _along_batch(n, batched, dim, self, index, src)
        out = ops.scatter_reduce(self, dim, index, src, reduce, include_self=include_self)
        return out.squeeze(1) if scalar else out

    def samples(s):
        for reduce in REDUCTIONS:
            yield s(s.real(3, 4), 0, s.int(5, 4, high=3), s.real(5, 4), reduce)
            yield s(s.real(3, 4), 1, s.int(3, 6, high=4), s.real(3, 6), reduce, include_self=False)


def _identity(xp, reduce: str, dtype):
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype.kind in "iu":
        info = xp.iinfo(dtype)
        return info.min if reduce == "amax" else info.max
    if dtype.kind == "b":
        return reduce == "amin"
    return -xp.inf if reduce == "amax" else xp.inf


def _old_reduce(self, dim, index, src, reduce):
    if reduce == "add":
        return self.scatter_add(dim, index, src)
    if reduce == "multiply":
        return ops.scatter_reduce(self, dim, index, src, "prod")
    raise RuntimeError("reduce argument must be either add or multiply.")


class scatter_reduce(Composite):
    """`scatter` that adds or multiplies."""

    schema = (
        "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor"
    )
    inplace = True

    def compose(self, dim, index, src, reduce):
        return _old_reduce(self, dim, index, src, reduce)

    def samples(s):
        yield s(s.real(3, 4), 0, s.int(2, 4, high=3), s.real(2, 4), reduce="add")


class scatter_value_reduce(Composite):
    """`scatter` that adds or multiplies a number."""

    schema = (
        "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce)"
        " -> Tensor"
    )
    inplace = True

    def compose(self, dim, index, value, reduce):
        return _old_reduce(self, dim, index, self.new_full(index.shape, value), reduce)

    def samples(s):
        yield s(s.real(3, 4), 0, s.int(2, 4, high=3), 2.0, reduce="multiply")


class index_reduce(Composite):
    """A copy of `self` reduced with slices of source at the listed indices of one dim."""

    schema = (
        "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, "
        "bool include_self=True) -> Tensor"
    )
    inplace = True

    def compose(self, dim, index, source, reduce, include_self):
        if reduce not in ("prod", "mean", "amax", "amin"):
            raise RuntimeError(
                "index_reduce(): Expected reduce to be one of prod, mean, amax or amin "
                f"but got {reduce}."
            )
        dim = wrap_dim(dim, self.ndim)
        view = [1] * max(self.ndim, 1)
        view[dim] = index.numel()
        places = index.reshape(view if self.ndim else ()).expand(source.shape)
        return ops.scatter_reduce(self, dim, places, source, reduce, include_self=include_self)

    def samples(s):
        yield s(s.real(3, 4), 0, s.int(5, high=3), s.real(5, 4), "prod")
        yield s(s.real(3, 4), 1, s.int(5, high=4), s.real(3, 5), "amax", include_self=False)


# --- masks ----------------------------------------------------------------------------------------


def check_mask(mask, name: str) -> None:
    """Masks must be bool."""
    if mask.dtype.kind != "b":
        raise RuntimeError(
            f"{name} only supports boolean masks, but got mask with dtype {mask.dtype}"
        )


class masked_fill_Tensor(Pointwise):
    """`self` with a 0-d tensor where a mask is true."""

    schema = "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor"
    number = 1
    promote = "same"
    complex = True
    nondiff = ("mask",)
    grad = {"self": "grad.masked_fill(mask, 0)", "value": "where(mask, grad, 0)"}
    push = "where(mask, value_t.to(self_t.dtype), self_t)"
    c = "where({mask}, {value}, {self})"

    def run(xp, self, mask, value):
        check_mask(mask, "masked_fill_")
        if value.ndim:
            raise RuntimeError(
                "masked_fill_ only supports a 0-dimensional value tensor, "
                f"but got tensor with {value.ndim} dimension(s)."
            )
        if value.dtype.kind == "c" and self.dtype.kind != "c":
            raise RuntimeError(f"value cannot be converted to type {self.dtype} without overflow")
        return xp.where(mask, value.astype(self.dtype), self)

    def shape(self, mask, value):
        return broadcast_shapes(self.shape, mask.shape)

    def batch(n, batched, self, mask, value):
        rank = max(self.ndim - batched[0], mask.ndim - batched[1])
        self = pad_rank(self, rank) if batched[0] else self
        mask = pad_rank(mask, rank) if batched[1] else mask
        if not batched[2]:
            return self.masked_fill(mask, value)
        return ops.where(mask, value.view((n, *(1,) * rank)).to(self.dtype), self)

    def decomp(self, mask, value):
        return ops.where(mask, value.to(self.dtype), self)

    def samples(s):
        yield s(s.real(3, 4), s.bool(3, 4), s.real())
        yield s(s.real(3, 4), s.bool(4), s.real())
        yield s(s.real(4), s.bool(3, 4), s.real())


class masked_fill_Scalar(Pointwise):
    """`self` with a number where a mask is true."""

    schema = "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor"
    number = 0
    promote = "same"
    complex = True
    nondiff = ("mask",)
    grad = {"self": "grad.masked_fill(mask, 0)"}
    push = "self_t.masked_fill(mask, 0)"
    c = "where({mask}, {value}, {self})"

    def run(xp, self, mask, value):
        check_mask(mask, "masked_fill_")
        return xp.where(mask, self.dtype.type(as_number(self, value)), self)

    def decomp(self, mask, value):
        return ops.where(mask, ops.full((), value, dtype=self.dtype, device=self.device), self)

    def samples(s):
        yield s(s.real(3, 4), s.bool(3, 4), 1.5)
        yield s(s.real(3, 4), s.bool(4), 0)
        yield s(s.real(4), s.bool(3, 4), 2)
        yield s(s.real(), s.bool(), 2)


class masked_select(Op):
    """The elements where a mask is true, in a vector."""

    schema = "masked_select(Tensor self, Tensor mask) -> Tensor"
    promote = "keep"
    complex = True
    linear = ("self",)
    nondiff = ("mask",)
    out = ("exact", "apart")
    cost = "cheap"
    grad = {"self": "masked_select_backward(grad, self.shape, mask)"}

    def run(xp, self, mask):
        if mask.dtype.kind != "b":
            raise RuntimeError("masked_select: expected BoolTensor for mask")
        shape = broadcast_shapes(self.shape, mask.shape)
        return xp.broadcast_to(self, shape)[xp.broadcast_to(mask, shape)]

    def shape(self, mask):
        raise needs_data("masked_select")

    def batch(n, batched, self, mask):
        if batched[1]:
            raise needs_data("masked_select with a mask that differs per example")
        shape = broadcast_shapes(self.shape[1:], mask.shape)
        self = pad_rank(self, len(shape)).expand((n, *shape))
        mask = mask.expand(shape)
        if not shape:
            self, mask = self.unsqueeze(1), mask.unsqueeze(0)
        return ops.index(self, [None, mask])

    def samples(s):
        yield s(s.real(3, 4), s.bool(3, 4))
        yield s(s.real(3, 4), s.bool(4))
        yield s(s.real(4), s.bool(3, 4))
        yield s(s.real(), s.bool())


class masked_scatter(Op):
    """`self` with consecutive elements of a source where a mask is true."""

    schema = "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor"
    promote = "keep"
    complex = True
    inplace = True
    linear = ("self", "source")
    nondiff = ("mask",)
    cost = "reduce"
    grad = {
        "self": "grad.masked_fill(mask, 0)",
        "source": "masked_scatter_backward(grad, mask, source.shape)",
    }

    def run(xp, self, mask, source):
        check_mask(mask, "masked_scatter_")
        same_dtype(self, source, "masked_scatter: expected self and source to have same dtypes")
        shape = broadcast_shapes(self.shape, mask.shape)
        out = xp.broadcast_to(self, shape).copy()
        mask = xp.broadcast_to(mask, shape)
        count = int(mask.sum())
        if count > source.size:
            raise RuntimeError("Number of elements of source < number of ones in mask")
        out[mask] = source.reshape(-1)[:count]
        return out

    def shape(self, mask, source):
        return broadcast_shapes(self.shape, mask.shape)

    def batch(n, batched, self, mask, source):
        logical = broadcast_shapes(self.shape[int(batched[0]) :], mask.shape[int(batched[1]) :])
        shape = (n, *logical)
        self = pad_rank(in_front(self, batched[0], n), len(logical)).expand(shape)
        mask = pad_rank(in_front(mask, batched[1], n), len(logical)).expand(shape)
        if numel(logical) == 0:
            return self.clone()
        source = in_front(source, batched[2], n)
        source = source.reshape((n, numel(source.shape[1:])))
        if source.shape[1] == 0:
            return self.clone()
        # the k-th true place takes the k-th element
        order = ops.cumsum(mask.reshape((n, -1)).to(dt.int64), 1) - 1
        order = order.clamp(0, source.shape[1] - 1)
        return ops.where(mask, source.gather(1, order).reshape(shape), self)

    def samples(s):
        yield s(s.real(3, 4), s.bool(3, 4), s.real(12))
        yield s(s.real(3, 4), s.bool(4), s.real(4, 4))
        yield s(s.real(4), s.bool(3, 4), s.real(14))


class masked_scatter_backward(Op):
    """The masked elements of a gradient, compacted and filled up with zeros."""

    schema = "masked_scatter_backward(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor"
    promote = "keep"
    method = False
    function = False
    complex = True
    linear = ("grad_output",)
    nondiff = ("mask",)
    cost = "reduce"
    shape = "tuple(sizes)"
    grad = {"grad_output": "zeros_like(grad_output).masked_scatter(mask, grad)"}

    def run(xp, grad_output, mask, sizes):
        out = xp.zeros(numel(sizes), grad_output.dtype)
        chosen = grad_output[xp.broadcast_to(mask, grad_output.shape)]
        out[: chosen.size] = chosen
        return out.reshape(tuple(sizes))

    def batch(n, batched, grad_output, mask, sizes):
        grad_output = in_front(grad_output, batched[0], n)
        shape = grad_output.shape
        mask = pad_rank(in_front(mask, batched[1], n), grad_output.ndim - 1).expand(shape)
        count = numel(sizes)
        zeros = grad_output.new_zeros((n, count + 1))
        if numel(shape) == 0 or count == 0:
            return zeros[:, :count].reshape((n, *sizes))
        mask = mask.reshape((n, -1))
        order = ops.cumsum(mask.to(dt.int64), 1) - 1
        order = ops.where(mask, order, count)  # what is not selected goes to a spare place
        out = zeros.scatter_add(1, order, grad_output.reshape((n, -1)))
        return ops.slice(out, 1, 0, count).reshape((n, *sizes))

    def samples(s):
        yield s(s.real(3, 4), s.bool(3, 4), (12,))
        yield s(s.real(3, 4), s.bool(4), (4, 4))


# --- the flattened tensor -------------------------------------------------------------------------


def flat_index(xp, index, size: int, name: str):
    """Flat non-negative index of take and put."""
    if index.dtype.name != "int64":
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


class take(Op):
    """Elements of the flattened tensor."""

    schema = "take(Tensor self, Tensor index) -> Tensor"
    promote = "keep"
    complex = True
    linear = ("self",)
    nondiff = ("index",)
    out = ("exact", "apart")
    cost = "cheap"
    shape = "tuple(index.shape)"
    grad = {"self": "grad.new_zeros(self.shape).put(index, grad, True)"}

    def run(xp, self, index):
        return xp.take(self.reshape(-1), flat_index(xp, index, self.size, "take()"))

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


class put(Op):
    """A copy of `self` with elements written, or added, by their flattened position."""

    schema = "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor"
    complex = True
    inplace = True
    linear = ("self", "source")
    nondiff = ("index",)
    cost = "reduce"
    shape = "tuple(self.shape)"
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


class take_along_dim(Composite):
    """`gather` with broadcasting; without dim, elements of the flattened tensor."""

    schema = "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor"
    out = ("exact",)
    complex = True

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


# --- where things are -----------------------------------------------------------------------------


class nonzero(Op):
    """Coordinates of the nonzero elements, one row each."""

    schema = "nonzero(Tensor self) -> Tensor"
    complex = True
    nondiff = ("self",)
    cost = "reduce"
    dtype = dt.int64

    def run(xp, self):
        if self.ndim == 0:
            return xp.empty((int(bool(self != 0)), 0), xp.int64)
        return xp.stack(xp.nonzero(self), axis=1).astype(xp.int64)

    def shape(self):
        raise needs_data("nonzero")

    def batch(n, batched, self):
        found = ops.nonzero(self)  # row by row, so that the examples stand one after another
        counts = set(self.ne(0).reshape((n, numel(self.shape[1:]))).sum(1).tolist())
        if len(counts) > 1:
            raise needs_data("nonzero under vmap, with another count for each example")
        return found.reshape((n, *counts, self.ndim))[:, :, 1:]

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.bool(3, 4))
        yield s(s.real())
        yield s(s.real(0, 3))


class nonzero_as_tuple(Composite):
    """Coordinates of the nonzero elements, as rows or as one vector per dim."""

    schema = "nonzero.as_tuple(Tensor self, *, bool as_tuple) -> Tensor[]"

    def compose(self, as_tuple):
        return tuple(ops.nonzero_numpy(self)) if as_tuple else ops.nonzero(self)

    def samples(s):
        yield s(s.bool(3, 4), as_tuple=True)


class nonzero_numpy(Composite):
    """Coordinates of the nonzero elements, one vector per dim."""

    schema = "nonzero_numpy(Tensor self) -> Tensor[]"
    method = False
    function = False

    def compose(self):
        self = self if self.ndim else self.unsqueeze(0)
        return list(ops.nonzero(self).unbind(1))

    def samples(s):
        yield s(s.bool(3, 4))


class nonzero_static(Op):
    """The first rows of `nonzero`, filled up to a given number."""

    schema = "nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor"
    complex = True
    nondiff = ("self",)
    cost = "reduce"
    dtype = dt.int64
    shape = "(size, self.ndim)"

    def run(xp, self, size, fill_value):
        out = xp.full((size, self.ndim), fill_value, xp.int64)
        if self.ndim:
            found = xp.stack(xp.nonzero(self), axis=1)[:size]
            out[: found.shape[0]] = found
        return out

    def samples(s):
        yield s(s.real(3, 4), size=5)
        yield s(s.bool(3), size=5)


class argwhere(Composite):
    """Another name of `nonzero`."""

    schema = "argwhere(Tensor self) -> Tensor"

    def compose(self):
        return ops.nonzero(self)

    def samples(s):
        yield s(s.bool(3, 4))


# --- tables ---------------------------------------------------------------------------------------


class embedding(Op):
    """Rows of a table."""

    schema = (
        "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, "
        "bool scale_grad_by_freq=False, bool sparse=False) -> Tensor"
    )
    promote = "keep"
    method = False
    linear = ("weight",)
    nondiff = ("indices",)
    cost = "cheap"
    shape = "(*indices.shape, weight.shape[1])"
    grad = {
        "weight": "embedding_dense_backward(grad, indices, weight.shape[0], padding_idx, "
        "scale_grad_by_freq)"
    }

    def run(xp, weight, indices, padding_idx, scale_grad_by_freq, sparse):
        if weight.ndim != 2:
            raise RuntimeError("'weight' must be 2-D")
        if indices.dtype.name not in ("int32", "int64"):
            raise RuntimeError(
                "Expected tensor for argument #1 'indices' to have one of the following scalar "
                f"types: Long, Int; but got {indices.dtype} instead (while checking arguments for "
                "embedding)"
            )
        if indices.size and (indices.min() < 0 or indices.max() >= weight.shape[0]):
            raise IndexError("index out of range in self")
        return xp.take(weight, indices, axis=0)

    def batch(n, batched, weight, indices, padding_idx, scale_grad_by_freq, sparse):
        if not batched[0]:
            return ops.embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
        if batched[1]:
            rows = ops.arange(n, device=indices.device).view((n, *(1,) * (indices.ndim - 1)))
            out = ops.index(weight, [rows, indices])
        else:
            out = weight.index_select(1, indices.reshape((-1,)))
            out = out.reshape((n, *indices.shape, weight.shape[2]))
        if padding_idx >= 0:
            out = ops.where((indices == padding_idx).unsqueeze(-1), out.detach(), out)
        return out

    def samples(s):
        yield s(s.real(5, 3), s.int(4, high=5))
        yield s(s.real(5, 3), s.int(2, 3, high=5))
        yield s(s.real(5, 3), s.int(high=5))
        yield s(s.real(5, 3), s.int(0, high=5))


class embedding_dense_backward(Op):
    """Rows of a gradient added up by the row of the table that they came from."""

    schema = (
        "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, "
        "SymInt padding_idx, bool scale_grad_by_freq) -> Tensor"
    )
    method = False
    function = False
    linear = ("grad_output",)
    nondiff = ("indices",)
    cost = "reduce"
    shape = "(num_weights, grad_output.shape[-1])"
    grad = {"grad_output": "embedding_gather(grad, indices, padding_idx, scale_grad_by_freq)"}

    def run(xp, grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
        width = grad_output.shape[-1]
        index, rows = indices.reshape(-1), grad_output.reshape((-1, width))
        if padding_idx >= 0:
            kept = index != padding_idx
            index, rows = index[kept], rows[kept]
        if scale_grad_by_freq and index.size:
            rows = rows / xp.bincount(index, minlength=num_weights)[index][:, None]
            rows = rows.astype(grad_output.dtype)
        table = xp.zeros((num_weights, width), grad_output.dtype)
        return add_rows(xp, table, index, rows)

    def batch(n, batched, grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
        grad_output = in_front(grad_output, batched[0], n)
        indices = in_front(indices, batched[1], n)
        # examples become separate stretches of one long table
        rows = indices.reshape((n, numel(indices.shape[1:])))
        start = ops.arange(n, device=indices.device).view((n, 1)) * num_weights
        if padding_idx >= 0:
            keep = (rows != padding_idx).unsqueeze(-1)
            grad_output = ops.where(keep.reshape((*indices.shape, 1)), grad_output, 0)
        places = (rows + start).reshape((-1,))
        width = grad_output.shape[-1]
        out = ops.embedding_dense_backward(
            grad_output.reshape((places.numel(), width)),
            places,
            n * num_weights,
            -1,
            scale_grad_by_freq,
        )
        return out.reshape((n, num_weights, width))

    def decomp(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
        width = grad_output.shape[-1]
        if scale_grad_by_freq:
            count = ops.new_zeros(indices, (num_weights,))
            count = ops.index_put(count, [indices], ops.ones_like(indices), True)
            grad_output = grad_output / ops.index(count, [indices]).unsqueeze(-1)
        if padding_idx >= 0:
            grad_output = ops.where((indices != padding_idx).unsqueeze(-1), grad_output, 0)
        zeros = ops.new_zeros(grad_output, (num_weights, width))
        return ops.index_put(zeros, [indices], grad_output, True)

    def samples(s):
        yield s(s.real(4, 3), s.int(4, high=5), 5, -1, False)
        yield s(s.real(2, 3, 3), s.int(2, 3, high=5), 5, 2, False)
        yield s(s.real(4, 3), s.int(4, high=2), 2, -1, True)


class one_hot(Composite):
    """A vector per class number: one at its place, zeros elsewhere."""

    schema = "one_hot(Tensor self, int num_classes=-1) -> Tensor"
    method = False
    function = False
    namespace = "nn.functional"

    def compose(self, num_classes):
        if self.dtype is not dt.int64:
            raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
        if num_classes == -1:
            if self.numel() == 0:
                raise RuntimeError("Can not infer total number of classes from empty tensor.")
            if int(self.min()) < 0:
                raise RuntimeError("Class values must be non-negative.")
            num_classes = int(self.max()) + 1
        zeros = self.new_zeros((*self.shape, max(num_classes, 0)))
        if self.numel() == 0:
            if num_classes <= 0:
                raise RuntimeError("Can not infer total number of classes from empty tensor.")
            return zeros
        try:
            return ops.scatter(zeros, -1, self.unsqueeze(-1), 1)
        except RuntimeError as error:
            if "out of bounds" not in str(error):
                raise
            low = "index -" in str(error)
            raise RuntimeError(
                "Class values must be non-negative."
                if low
                else "Class values must be smaller than num_classes."
            ) from None

    def samples(s):
        yield s(s.int(4, high=5), 5)
        yield s(s.int(2, 3, high=5))
