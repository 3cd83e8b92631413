"""Indexing of sparse tensors: slices, single indices, lists of indices and masks.

What is left of a tensor is sparse, in its layout if that can hold it (`shapes.laid_out`); where all
sparse dims are named the entries are looked up, and the result is dense.  Rows that lie one behind
the other are cut out by their pointers, without a look at the others.  Read next: `joining.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

from .. import errors
from ..array import device
from ..array import dtype as dt
from ..array.dims import broadcast_shapes, wrap_dim
from ..core.handle import Tensor
from ..ops.index import adjacent, is_mask
from ..ops.layout import checked_select, checked_slice
from ..parts.rules import rule, shown
from ..table.packets import ops
from . import invariants, patterns
from .convert import pointers
from .elementwise import as_coo
from .memo import are_known, array_of, kept, known
from .shapes import block_of, laid_out, on_batch, placed, same, scattered, value_dim
from .tensor import Compressed, Coo, SparseTensor

# entries of which something is true ---------------------------------------------------------------


def entries_where(t: Coo, keep: Callable[[tuple], Tensor]) -> Coo:
    """Some entries of a tensor, chosen by their coordinates."""
    def find() -> tuple:
        chosen = keep(t.indices_part.unbind(0))
        which = patterns.sized("a part of a sparse tensor", lambda: chosen.nonzero(),
                               chosen).squeeze(1)
        return t.indices_part[:, which], which

    indices, which = known(find, t.indices_part)
    return Coo.make(indices, t.values_part.index_select(0, which), t.shape, t.coalesced)


def within(t: Coo, dim: int, start: Any, stop: Any, step: Any = 1) -> Coo:
    """The entries of a slice of a sparse dim, where they were."""
    if dim == 0 and t.coalesced and are_known(t.indices_part):  # one behind the other
        row = array_of(t.indices_part)[0]
        xp = device.lookup(row)[1]
        low, high = xp.searchsorted(row, xp.asarray((start, stop))).tolist()
        indices = known(lambda: t.indices_part[:, low:high], t.indices_part)
        t = Coo.make(indices, t.values_part[low:high], t.shape, True)
    elif step == 1:
        t = entries_where(t, lambda rows: (rows[dim] >= start) & (rows[dim] < stop))
    if step == 1:
        return t
    return entries_where(t, lambda rows: (rows[dim] >= start) & (rows[dim] < stop) & (
        (rows[dim] - start).remainder(step) == 0))


def part_of(t: Coo, dim: int, start: Any, stop: Any, step: Any = 1) -> Coo:
    """A slice of a sparse dim."""
    shape = (*t.shape[:dim], (stop - start + step - 1) // step, *t.shape[dim + 1:])
    t = within(t, dim, start, stop, step)
    if (start, step) == (0, 1):
        return Coo.make(t.indices_part, t.values_part, shape, t.coalesced)

    def find(rows: list) -> list:
        at = rows[dim] - start
        return [*rows[:dim], at if step == 1 else at.div(step, rounding_mode="floor"),
                *rows[dim + 1:]]

    return placed(t, find, t.values_part, shape)


def lines(x: Compressed, first: int, last: int) -> Compressed:
    """Some rows of a matrix one behind the other, or columns, or rows or columns of blocks."""
    invariants.inside_compressed(x)
    low, high = (int(array_of(x.compressed_part)[k]) for k in (first, last))
    compressed, plain = known(lambda: (
        x.compressed_part[first:last + 1] - low, x.plain_part[low:high]), x.plain_part)
    long = 0 if x.by_rows else 1
    shape = list(x.shape)
    shape[long] = (last - first) * block_of(x)[long]
    return x.make(compressed, plain, x.values_part[low:high], tuple(shape))


def _has_lines(x: SparseTensor, dim: int) -> bool:
    """Do the rows of a dim, or its columns, lie one behind the other, at known places?"""
    return isinstance(x, Compressed) and not x.batch_dims and dim == (0 if x.by_rows else 1) and (
        are_known(x.compressed_part, x.plain_part))


def _cut(x: Any, dim: int, start: Any, stop: Any) -> tuple:
    """(The lines that have a part of a dim, what the bounds are in them)."""
    if not _has_lines(x, dim):
        return x, start, stop
    high = block_of(x)[dim]
    first = start // high
    x = lines(x, first, -(-stop // high))
    return x, start - first * high, stop - first * high


def _sparse_dims(x: SparseTensor) -> int:
    return x.ndim - x.dense_dim()


# slices and single indices ------------------------------------------------------------------------


@rule(SparseTensor, "slice.Tensor")
def sliced(x: SparseTensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1):
    dim, part, size = checked_slice(x.shape, dim, start, end, step)
    if size == x.shape[dim]:
        return same(x)
    shape = (*x.shape[:dim], size, *x.shape[dim + 1:])
    start, stop = part.start, part.stop
    if dim >= _sparse_dims(x):
        return with_values(x, ops.slice(x.values_part, value_dim(x, dim), start, stop, step), shape)
    if isinstance(x, Compressed) and dim < x.batch_dims:
        return on_batch(x, lambda p, _: ops.slice(p, dim, start, stop, step), shape[:x.batch_dims])
    x, start, stop = _cut(x, dim, start, stop)
    if step == 1 and (start, stop) == (0, x.shape[dim]):
        return x
    out = part_of(as_coo(x), dim, start, stop, step)
    return laid_out(x, out, blocks=_fitting(x, dim, start, stop - start if step == 1 else 1))


def _fitting(x: SparseTensor, dim: int, *places: Any) -> tuple | None:
    """The largest blocks that begin and end at some places of a dim."""
    if not isinstance(x, Compressed) or not x.blocked:
        return None
    blocks, k = list(block_of(x)), dim - x.batch_dims
    if k in (0, 1):
        blocks[k] = math.gcd(blocks[k], *places)
    return tuple(blocks)


def with_values(x: Any, values: Tensor, shape: Any) -> SparseTensor:
    """The same places with other values, of which dense dims have other sizes."""
    parts = [getattr(x, name) for name in x.names[:-1]]
    flag = [x.coalesced] if isinstance(x, Coo) else []
    return x.make(*parts, values, tuple(shape), *flag)


@rule(SparseTensor, "select.int")
def select(x: SparseTensor, dim: int, index: Any):
    """One index of a dim; dense where it was the only sparse one."""
    dim, index = checked_select(x.shape, dim, index)
    shape = (*x.shape[:dim], *x.shape[dim + 1:])
    if dim >= _sparse_dims(x):
        return with_values(x, x.values_part.select(value_dim(x, dim), index), shape)
    if isinstance(x, Compressed) and dim < x.batch_dims:
        return on_batch(x, lambda p, _: p.select(dim, index), shape[:x.batch_dims - 1])
    x, index, _ = _cut(x, dim, index, index + 1)
    coo = as_coo(x)
    if coo.sparse_dim() == 1:
        return element(coo, index)
    out = within(coo, dim, index, index + 1)
    return laid_out(x, placed(out, lambda rows: rows[:dim] + rows[dim + 1:], out.values_part,
                              shape))


def element(t: Coo, index: Any) -> Tensor:
    """What a tensor with one sparse dim has at an index."""
    if t.coalesced:
        return lookup(t, [known(lambda: ops.full((), index, dtype=dt.int64, device=t.device),
                                t.indices_part)])
    there = known(lambda: t.indices_part[0] == index, t.indices_part)
    there = there.reshape(-1, *[1] * t.dense_dim())
    if t.dtype is dt.bool_:
        return (t.values_part & there).any(0)
    return ops.where(there, t.values_part, 0).sum(0, dtype=t.dtype)


def lookup(t: Coo, wanted: list) -> Tensor:
    """What a tensor has at places, whose coordinates in all sparse dims are given."""
    t = t.coalesce()
    sizes, count = tuple(t.shape[:t.sparse_dim()]), t._nnz()

    def find() -> Tensor:
        own = kept(t.indices_part, f"keys {sizes}",
                   lambda: patterns.keys(t.indices_part, sizes).contiguous())
        asked = wanted[0]
        for k in range(1, len(sizes)):
            asked = asked * sizes[k] + wanted[k]
        at = ops.searchsorted(own, asked)
        inside = at.clamp(max=max(count - 1, 0))
        if not count:
            return inside
        return ops.where(own[inside] == asked, inside, count)

    at = known(find, t.indices_part, *wanted)
    values = t.values_part
    zero = ops.zeros((1, *values.shape[1:]), dtype=values.dtype, device=values.device)
    return ops.cat([values, zero])[at]


# several pieces -----------------------------------------------------------------------------------


@rule(SparseTensor, "unbind.int")
def unbind(x: SparseTensor, dim: int = 0):
    """One tensor for each index of a dim."""
    dim = wrap_dim(dim, x.ndim, scalar_ok=False)
    shape = (*x.shape[:dim], *x.shape[dim + 1:])
    if dim >= _sparse_dims(x):
        return tuple([with_values(x, v, shape)
                      for v in x.values_part.unbind(value_dim(x, dim))])
    if isinstance(x, Compressed) and dim < x.batch_dims:
        return tuple([select(x, dim, k) for k in range(x.shape[dim])])
    coo = as_coo(x)
    if coo.sparse_dim() == 1:
        return tuple(coo.to_dense().unbind(0))

    def find() -> tuple:
        at = coo.indices_part[dim]
        order = None
        if dim or not coo.coalesced:
            order = ops.argsort(at, stable=True)
            at = at[order]
        starts = pointers(at, coo.shape[dim])
        rows = [r for k, r in enumerate(coo.indices_part.unbind(0)) if k != dim]
        rest = ops.stack(rows) if order is None else ops.stack(rows)[:, order]
        lengths = (starts[1:] - starts[:-1]).tolist()
        return order, lengths, rest.split(lengths, 1)

    order, lengths, indices = known(find, coo.indices_part)
    values = coo.values_part if order is None else coo.values_part.index_select(0, order)
    return tuple([laid_out(x, Coo.make(i, v, shape, coo.coalesced))
                  for i, v in zip(indices, values.split(lengths))])


@rule(SparseTensor, "split.Tensor", "unsafe_split.Tensor")
def split(x: SparseTensor, split_size: int, dim: int = 0):
    """Pieces of one size; the last may be smaller."""
    dim = wrap_dim(dim, x.ndim, scalar_ok=False)
    size = x.shape[dim]
    if split_size < 0 or not split_size and size:
        raise errors.ShapeError(
            f"split expects split_size be non-negative, and zero for a dim of size zero alone, but "
            f"got split_size={split_size} ({errors.user_line(2)})")
    starts = range(0, max(size, 1), max(split_size, 1))
    return tuple([sliced(x, dim, k, k + split_size) for k in starts])


@rule(SparseTensor, "split_with_sizes", "unsafe_split_with_sizes")
def split_with_sizes(x: SparseTensor, split_sizes: Any, dim: int = 0):
    """Pieces of given sizes."""
    dim = wrap_dim(dim, x.ndim, scalar_ok=False)
    if sum(split_sizes) != x.shape[dim] or min(split_sizes, default=0) < 0:
        raise errors.ShapeError(
            f"split_with_sizes expects split_sizes to sum exactly to {x.shape[dim]} (input "
            f"tensor's size at dimension {dim}), but got split_sizes={list(split_sizes)} "
            f"({errors.user_line(2)})")
    edges = [0, *itertools.accumulate(split_sizes)]
    return tuple([sliced(x, dim, a, b) for a, b in itertools.pairwise(edges)])


# lists of indices and masks -----------------------------------------------------------------------


def _check(index: Tensor, low: Any, size: Any, said: str) -> None:
    """Refuse indices outside of a dim, where they are known."""
    if not are_known(index):
        return
    array = array_of(index)
    wrong = (array < low) | (array >= size)
    if wrong.any():
        raise errors.DimError(f"{said} ({errors.user_line(3)}): index "
                              f"{int(array[wrong][0])} for a dim of size {size}")


def matches(t: Coo, dims: list, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """(Which is asked for, which entry has it): all pairs, one question after the other.

    Coordinates in some dims are asked for, counted as one number.
    """
    def find() -> tuple:
        at = patterns.keys(t.indices_part[dims], tuple([t.shape[d] for d in dims]))
        if t.coalesced and dims == list(range(len(dims))):
            return at.contiguous(), None
        order = ops.argsort(at, stable=True)
        return at[order].contiguous(), order

    at, order = kept(t.indices_part, f"by {dims} {tuple(t.shape)} {t.coalesced}", find)
    starts = ops.searchsorted(at, wanted)
    lengths = ops.searchsorted(at, wanted, right=True) - starts
    question, entry = _runs(starts, lengths)
    return question, entry if order is None else order[entry]


def _runs(starts: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The numbers of runs, and the members: from `starts` on, as many as `lengths` says."""
    run = ops.arange(starts.shape[0], device=starts.device).repeat_interleave(lengths)
    before = lengths.cumsum(0) - lengths
    return run, ops.arange(run.shape[0], device=run.device) - before[run] + starts[run]


@rule(SparseTensor, "index_select")
def index_select(x: Any, dim: int, index: Tensor):
    """The indices of one dim that a vector lists."""
    dim = wrap_dim(dim, x.ndim)
    if index.ndim > 1:
        raise errors.DimError(
            f"index_select(): Index is supposed to be a vector ({errors.user_line(2)})")
    if not isinstance(x, SparseTensor) or isinstance(index, SparseTensor) or not x.ndim:
        return NotImplemented
    index = known(lambda: index.reshape(-1).long(), index)
    _check(index, 0, x.shape[dim], "index_select(): index out of range in self")
    return chosen(x, dim, index)


def chosen(x: SparseTensor, dim: int, index: Tensor) -> SparseTensor:
    """The indices of one dim that a vector lists; all are inside of it."""
    shape = (*x.shape[:dim], index.shape[0], *x.shape[dim + 1:])
    if dim >= _sparse_dims(x):
        return with_values(x, x.values_part.index_select(value_dim(x, dim), index), shape)
    if isinstance(x, Compressed) and dim < x.batch_dims:
        return on_batch(x, lambda p, _: p.index_select(dim, index), shape[:x.batch_dims])
    if isinstance(x, Compressed) and not x.blocked and not x.batch_dims and dim == (
            0 if x.by_rows else 1):
        return _chosen_lines(x, index, shape)
    coo = as_coo(x)

    def find() -> tuple:
        number, entry = matches(coo, [dim], index)
        rows = list(coo.indices_part[:, entry].unbind(0))
        rows[dim] = number
        return ops.stack(rows), entry

    indices, entry = known(find, coo.indices_part, index)
    out = Coo.make(indices, coo.values_part.index_select(0, entry), shape,
                   coo.coalesced and dim == 0)
    return laid_out(x, out, blocks=_fitting(x, dim, 1))


def _chosen_lines(x: Compressed, index: Tensor, shape: tuple) -> Compressed:
    """The rows of a matrix that a vector lists, or the columns: nothing is sorted."""
    invariants.inside_compressed(x)

    def find() -> tuple:
        starts = x.compressed_part[index].long()
        lengths = x.compressed_part[index + 1].long() - starts
        _, entry = _runs(starts, lengths)
        ends = ops.cat([ops.zeros(1, dtype=dt.int64, device=lengths.device), lengths.cumsum(0)])
        return ends.to(x.compressed_part.dtype), x.plain_part[entry], entry

    compressed, plain, entry = known(find, x.compressed_part, x.plain_part, index)
    return x.make(compressed, plain, x.values_part.index_select(0, entry), shape)


def _integers(mask: Tensor) -> list:
    """What says which elements a mask is true of."""
    return [getattr(mask, n) for n in mask.names] if isinstance(mask, SparseTensor) else [mask]


def _numbers(x: Tensor, indices: list) -> list:
    """Lists of indices for the dims of a tensor, None where all are meant; masks become lists."""
    out: list = []
    for given in indices:
        if given is None:
            out.append(None)
        elif isinstance(given, SparseTensor) or is_mask(given):
            shape = tuple(x.shape[len(out):len(out) + given.ndim])
            if shape != tuple(given.shape):
                raise errors.DimError(
                    f"The shape of the mask {list(given.shape)} at index {len(out)} does not match "
                    f"the shape of the indexed tensor {list(x.shape)} ({errors.user_line(3)})")
            out.extend(known(lambda g=given: ops.nonzero(g).unbind(1), *_integers(given)))
        else:
            size = x.shape[len(out)]
            _check(given, -size, size, "index out of range in self")
            out.append(known(lambda g=given, n=size: ops.where(g < 0, g + n, g).long(), given))
    return out


@rule(SparseTensor, "index.Tensor", "_unsafe_index.Tensor")
def index(x: Any, indices: Any):
    """Lists of indices in some dims, which broadcast, and masks."""
    given = _numbers(x, list(indices))
    if not isinstance(x, SparseTensor):  # a dense tensor at the entries of a sparse mask
        return ops.index(x, given)
    dims = [d for d, i in enumerate(given) if i is not None]
    shape = broadcast_shapes(*[given[d].shape for d in dims])
    if len(dims) == 1 and len(shape) == 1 and _sparse_dims(x) > 1:
        return chosen(x, dims[0], given[dims[0]])
    coo = as_coo(x)
    if dims[-1] >= coo.sparse_dim():
        coo = scattered(coo)
    wanted = [known(lambda i=given[d]: i.expand(shape), given[d]) for d in dims]
    if len(dims) == coo.sparse_dim():
        return lookup(coo, wanted)
    return laid_out(x, _at(coo, dims, wanted, shape))


def _at(coo: Coo, dims: list, wanted: list, shape: tuple) -> Coo:
    """The places where coordinates in some dims are those that are wanted."""
    sizes = tuple([coo.shape[d] for d in dims])
    rest = [d for d in range(coo.sparse_dim()) if d not in dims]
    first = dims[0] if adjacent(dims) else 0  # where the dims of the indices are put
    front = [d for d in rest if d < first]
    behind = [d for d in rest if d >= first]

    def find() -> tuple:
        asked = patterns.keys(ops.stack([w.reshape(-1) for w in wanted]), sizes)
        number, entry = matches(coo, dims, asked)
        within = patterns.unkeyed(number, shape).unbind(0) if shape else ()
        rows = coo.indices_part[:, entry]
        return ops.stack([*[rows[d] for d in front], *within, *[rows[d] for d in behind]]), entry

    indices, entry = known(find, coo.indices_part, *wanted)
    full = (*[coo.shape[d] for d in front], *shape, *coo.shape[first + len(dims):]) if (
        adjacent(dims)) else (*shape, *[coo.shape[d] for d in rest],
                              *coo.shape[coo.sparse_dim():])
    return Coo.make(indices, coo.values_part.index_select(0, entry), full,
                    coo.coalesced and not front)


@rule(SparseTensor, "gather")
def gather(x: Any, dim: int, index: Tensor, sparse_grad: bool = False):
    """The elements of a tensor at indices along a dim: dense, as the indices are."""
    if not isinstance(x, SparseTensor) or isinstance(index, SparseTensor) or not x.ndim:
        return NotImplemented
    dim = wrap_dim(dim, x.ndim)
    if index.ndim != x.ndim:
        raise errors.ShapeError(
            f"Index tensor must have the same number of dimensions as input tensor "
            f"({errors.user_line(2)})")
    _check(index, 0, x.shape[dim], "gather(): index out of bounds")

    def find() -> list:
        return [index.long() if d == dim else ops.arange(
            index.shape[d], device=index.device).reshape(
            [-1 if k == d else 1 for k in range(x.ndim)]).expand(index.shape)
            for d in range(x.ndim)]

    return lookup(scattered(as_coo(x)), known(find, index))


@rule(SparseTensor, "take")
def take(x: Any, index: Tensor):
    """The elements of a tensor at places counted row by row: dense, as the indices are."""
    if not isinstance(x, SparseTensor) or isinstance(index, SparseTensor):
        return NotImplemented
    flat = known(lambda: index.reshape(-1), index)
    return ops.index(x.reshape(-1), [flat]).reshape(index.shape)


@rule(SparseTensor, "masked_select")
def masked_select(x: Any, mask: Tensor):
    """The elements that a mask is true of, in one dim."""
    shape = broadcast_shapes(x.shape, mask.shape)
    return ops.index(x.expand(shape), [mask.expand(shape)])


@rule(SparseTensor, "nonzero")
def nonzero(x: SparseTensor):
    """The places of elements other than zero."""
    coo = scattered(as_coo(x).coalesce())
    found = coo.values_part.detach() != 0
    return coo.indices_part[:, found].t()


@rule(SparseTensor, "embedding")
def embedding(weight: Any, indices: Tensor, padding_idx: int = -1,
              scale_grad_by_freq: bool = False, sparse: bool = False):
    """Rows of a table, dense, as many as there are indices."""
    if not isinstance(weight, SparseTensor) or scale_grad_by_freq:
        return NotImplemented
    flat = known(lambda: indices.reshape(-1), indices)
    rows = ops.index(weight, [flat]).to_dense()
    if padding_idx >= 0:  # a row without gradient
        rows = ops.where((indices.reshape(-1, 1) == padding_idx), rows.detach(), rows)
    return rows.reshape(*indices.shape, *weight.shape[1:])


@rule(SparseTensor, "_embedding_bag")
def embedding_bag(weight: Any, *given: Any):
    """Sums, means or extremes of rows of a table, dense."""
    if not isinstance(weight, SparseTensor):
        return NotImplemented
    return ops._embedding_bag(weight.to_dense(), *given)


# parts of matrices --------------------------------------------------------------------------------


@rule(SparseTensor, "diagonal")
def diagonal(x: SparseTensor, offset: int = 0, dim1: int = 0, dim2: int = 1):
    """A diagonal of the matrices in two dims, in a last dim."""
    a, b = wrap_dim(dim1, x.ndim), wrap_dim(dim2, x.ndim)
    if a == b:
        raise errors.ShapeError(
            f"diagonal dimensions cannot be identical {dim1}, {dim2} ({errors.user_line(2)})")
    size = max(min(x.shape[a] + min(offset, 0), x.shape[b] - max(offset, 0)), 0)
    size = min(size, x.shape[a], x.shape[b])
    rest = [k for k in range(x.ndim) if k not in (a, b)]
    shape = [*[x.shape[k] for k in rest], size]
    if min(a, b) >= _sparse_dims(x):
        values = x.values_part.diagonal(offset, value_dim(x, a), value_dim(x, b))
        return with_values(x, values, shape)
    coo = as_coo(x)
    coo = scattered(coo) if coo.dense_dim() else coo
    out = entries_where(coo, lambda rows: rows[b] - rows[a] == offset)
    return laid_out(x, placed(
        out, lambda rows: [*[rows[k] for k in rest], rows[a] + min(offset, 0)], out.values_part,
        shape, {a, b} == {x.ndim - 2, x.ndim - 1}))


def _triangle(x: SparseTensor, lower: bool, diagonal: int) -> SparseTensor:
    """What is on one side of a diagonal in the last two dims; batches keep their places."""
    if x.ndim < 2:
        raise errors.ShapeError(errors.text(
            f"{'tril' if lower else 'triu'}: input tensor must have at least 2 dimensions "
            f"({errors.user_line(3)})", shown(x)))

    def inside(rows: Any) -> Tensor:
        below = rows[-1] - rows[-2]
        return below <= diagonal if lower else below >= diagonal

    if x.dense_dim() >= 2:
        return x.with_carrier((ops.tril if lower else ops.triu)(x.values_part, diagonal))
    if isinstance(x, Compressed) and x.batch_dims and not x.dense_dim():
        keep = inside(x.coordinates())
        return x.with_entries(ops.where(keep, x.entry_values(), 0))
    return laid_out(x, entries_where(scattered(as_coo(x)), inside))


@rule(SparseTensor, "tril")
def tril(x: SparseTensor, diagonal: int = 0):
    return _triangle(x, True, diagonal)


@rule(SparseTensor, "triu")
def triu(x: SparseTensor, diagonal: int = 0):
    return _triangle(x, False, diagonal)
