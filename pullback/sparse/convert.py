"""Conversions between layouts: integers are sorted anew, values follow their entries.

All are linear, so a gradient comes back by the same permutation, at the cost of the entries.  The
matrices of a batch become the blocks of one matrix, below (or beside) each other, and are cut
apart again: they must have equally many entries.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..array import dtype as dt
from ..array.layout import STRIDED, layout
from ..core.handle import Tensor
from ..parts.rules import shown
from ..table.packets import ops
from . import invariants, patterns, unspecified
from .construct import title
from .memo import kept, kept_with
from .tensor import CLASSES, Compressed, Coo, SparseTensor

COO = layout.known["sparse_coo"]


def _count(sizes: Any) -> Any:
    total = 1
    for n in sizes:
        total = total * n
    return total


def _refuse(said: str, t: Any, cure: str = "") -> None:
    raise errors.ShapeError(errors.text(f"{said} ({errors.user_line(4)})", shown(t), cure))


# to dense -----------------------------------------------------------------------------------------


def to_dense(t: SparseTensor, dtype: Any = None, masked_grad: bool | None = None) -> Tensor:
    """All elements; entries of one place are added up.

    A gradient is that of the entries: it is gathered at their places.  `masked_grad=False` asks
    for one of all elements, where the tensor was made of a dense one, or is a leaf.
    """
    if masked_grad is False:
        unspecified.refuse_in_capture(t)
        rest = unspecified.zeros_of(t, True)
        if rest is not None:
            return to_dense(t, dtype) + (rest if dtype is None else rest.to(dtype))
    coo = to_coo(t)
    values = coo.values_part if dtype is None else coo.values_part.to(dtype)
    sizes, dense = tuple(t.shape[:coo.sparse_dim()]), tuple(t.shape[coo.sparse_dim():])
    if not sizes:
        found = values.sum(0, dtype=values.dtype) if values.dtype is not dt.bool_ else values.any(0)
        return found.reshape(t.shape)
    count = _count(sizes)
    if not count:  # then there are no entries, whose history goes on
        return values[:0].reshape(t.shape)
    zeros = ops.zeros((count, *dense), dtype=values.dtype, device=values.device)
    at = patterns.keys(coo.indices_part, sizes)
    if values.dtype is dt.bool_:
        zeros = zeros.long().index_add(0, at, values.long()) > 0
    else:
        zeros = zeros.index_add(0, at, values)
    return zeros.reshape(t.shape)


# to coordinates -----------------------------------------------------------------------------------


def to_coo(t: SparseTensor) -> Coo:
    """The same with coordinates; those of rows are in order already."""
    if isinstance(t, Coo):
        return t
    assert isinstance(t, Compressed)
    return unspecified.in_another_layout(_coo_of(t), t)


def _coo_of(t: Compressed) -> Coo:
    rows, cols, values = t.entries()
    n, m = t.shape[t.batch_dims:t.batch_dims + 2]

    def find() -> Tensor:
        if not t.batch_dims:
            return ops.stack([rows, cols])
        count = _count(t.shape[:t.batch_dims])
        block = ops.arange(count, device=rows.device).repeat_interleave(
            rows.shape[0] // max(count, 1))
        lead = patterns.unkeyed(block, tuple(t.shape[:t.batch_dims]))
        return ops.cat([lead, ops.stack([rows - block * n, cols - block * m])])

    indices = kept_with(t, "coo", find)
    return Coo.make(indices, values, t.shape,
                    t.by_rows and not t.blocked and invariants.in_order(t))


# to rows, columns and blocks ----------------------------------------------------------------------


def convert(t: Any, to: layout, blocks: Any = None, sparse_dim: int | None = None,
            dense_dim: int | None = None):
    """A tensor in another layout."""
    if not isinstance(t, SparseTensor):
        if to is STRIDED:
            return t
        return from_dense(t, sparse_dim, to, _blocks(t, to, blocks), dense_dim)
    if to is STRIDED:
        return t.to_dense()
    if dense_dim not in (None, t.dense_dim()):
        _refuse(f"to_sparse: conversion from {title(t.layout)} to {title(to)} with dense_dim "
                "argument given is not supported", t, "x.to_dense() first")
    if sparse_dim not in (None, t.sparse_dim()):
        _refuse(f"to_sparse: conversion from {title(t.layout)} to {title(to)} with sparse_dim "
                "argument !=self.sparse_dim() is not supported", t, "x.to_dense() first")
    return unspecified.in_another_layout(_converted(t, to, blocks), t)


def _converted(t: SparseTensor, to: layout, blocks: Any) -> SparseTensor:
    cls: Any = CLASSES[to]
    own = _blocks_of(t)
    if cls is not Coo and cls.blocked and blocks is None:
        blocks = own  # of the other order
    blocks = _blocks(t, to, blocks)
    if t.own_layout is to and blocks == own:
        return t
    if to is COO:
        return to_coo(t)
    if own is not None and own == blocks:
        return _turned(t, cls)
    return compressed_of(row_by_row(t), cls, blocks, _index_dtype(t))


def row_by_row(t: SparseTensor) -> Coo:
    """Coordinates in order, each once."""
    coo = to_coo(t)
    if coo.coalesced or isinstance(t, Coo) or not invariants.in_order(t):
        return coo.coalesce()

    def find() -> tuple:  # no entry is there twice: so there are as many as before
        order = ops.argsort(patterns.keys(coo.indices_part, tuple(coo.shape[:coo.sparse_dim()])))
        return coo.indices_part[:, order], order

    indices, order = kept(coo.indices_part, f"by rows {tuple(coo.shape)}", find)
    return Coo.make(indices, coo.values_part[order], coo.shape, True)


def _index_dtype(t: SparseTensor) -> Any:
    return t.plain_part.dtype if isinstance(t, Compressed) else dt.int64


def _blocks(t: Any, to: layout, blocks: Any) -> tuple | None:
    """The size of blocks that was asked for, where the layout has some."""
    name = f"{'dense' if not isinstance(t, SparseTensor) else 'sparse'}_to_{str(to)[6:]}"
    if to is COO or not CLASSES[to].blocked:
        if blocks is not None:
            _refuse(f"to_sparse: conversion from {title(t.layout)} to {title(to)} with blocksize "
                    "argument given is not supported", t, "leave blocksize= away")
        return None
    if blocks is None:
        _refuse(f"to_sparse: conversion from {title(t.layout)} to {title(to)} without blocksize "
                "argument given is not supported", t, "give it: blocksize=(2, 2)")
    found = (blocks, blocks) if isinstance(blocks, int) else tuple(int(n) for n in blocks)
    if len(found) != 2:
        _refuse(f"{name}: blocksize needs to be a tuple of size 2, but got {len(found)}", t)
    if min(found) < 1:
        _refuse(f"{name}: blocksize needs to be positive, but got {list(found)}", t)
    return found


def _blocks_of(t: SparseTensor) -> tuple | None:
    if not isinstance(t, Compressed) or not t.blocked:
        return None
    return tuple(t.values_part.shape[t.batch_dims + 1:t.batch_dims + 3])


def _matrix_of(coo: Coo) -> tuple[tuple, Tensor, Tensor, Tensor]:
    """(batch, number of the matrix, row, column) of coordinates."""
    d, at = coo.sparse_dim() - 2, coo.indices_part
    batch = tuple(coo.shape[:d])
    return batch, patterns.keys(at[:d], batch) if d else at[0] * 0, at[d], at[d + 1]


def compressed_of(coo: Coo, cls: type[Compressed], blocks: tuple | None,
                  index: Any = dt.int64, even: bool = False) -> Compressed:
    """Matrices with coordinates, once each and in order, as rows or columns one after another.

    `even` says that those of a batch are known to have equally many entries.
    """
    if coo.sparse_dim() < 2:
        _refuse(f"to_sparse_{cls.kind}: a compressed tensor has two sparse dims at least, this one "
                f"has {coo.sparse_dim()}", coo, "x.to_dense().to_sparse(layout=...)")
    n, m = coo.shape[coo.sparse_dim() - 2:coo.sparse_dim()]
    if blocks is not None and (n % blocks[0] or m % blocks[1]):
        _refuse(f"to_sparse_{cls.kind}: tensor sparse size ({n},{m}) must be divisible by given "
                f"blocksize ({blocks[0]},{blocks[1]})", coo)

    def find() -> tuple:
        batch, number, rows, cols = _matrix_of(coo)
        if blocks is not None:
            return _block_pattern(cls, batch, number, rows, cols, (n, m), blocks, index, even)
        long, short, size = (rows, cols, n) if cls.by_rows else (cols, rows, m)
        order = None
        key = number * size + long
        if not cls.by_rows:
            order = ops.argsort(key, stable=True)
            key, short = key[order], short[order]
        return (*_cut(batch, key, short, size, index, even), order, None)

    compressed, plain, order, count = kept(
        coo.indices_part, f"{cls.kind} {tuple(coo.shape)} {blocks} {index}", find)
    dense = tuple(coo.values_part.shape[1:])
    if blocks is None:
        values = coo.values_part if order is None else coo.values_part[order]
        return cls.make(compressed, plain, values.reshape(*plain.shape, *dense), coo.shape)
    values = ops.zeros((count * blocks[0] * blocks[1], *dense), dtype=coo.dtype,
                       device=coo.device).index_put((order,), coo.values_part)
    return cls.make(compressed, plain, values.reshape(*plain.shape, *blocks, *dense), coo.shape)


def _block_pattern(cls: type[Compressed], batch: tuple, number: Tensor, rows: Tensor, cols: Tensor,
                   shape: tuple, blocks: tuple, index: Any, even: bool) -> tuple:
    """(integers, place of each entry in the values of all blocks, number of blocks)."""
    high, wide = blocks
    down, across = rows.div(high, rounding_mode="floor"), cols.div(wide, rounding_mode="floor")
    n, m = shape[0] // high, shape[1] // wide
    long, short, size, step = (down, across, n, m) if cls.by_rows else (across, down, m, n)
    key = (number * size + long) * step + short
    places, inverse = ops._unique(key, True, True)
    count = places.shape[0]
    inside = inverse * (high * wide) + rows.remainder(high) * wide + cols.remainder(wide)
    step = max(step, 1)
    long, short = places.div(step, rounding_mode="floor"), places.remainder(step)
    return (*_cut(batch, long, short, size, index, even), inside, count)


def _cut(batch: tuple, key: Tensor, short: Tensor, size: int, index: Any, even: bool) -> tuple:
    """(compressed, plain) of entries in order, whose rows are numbered through a batch."""
    matrices = _count(batch)
    starts = pointers(key, matrices * size)
    if not batch:
        return starts.to(index), short.to(index)
    ends = starts[:-1].reshape(matrices, size)[:, :1] if size else starts[:1].expand(matrices, 1)
    ends = ops.cat([ends.reshape(-1), starts[-1:]])
    each = key.shape[0] // max(matrices, 1)
    if not even and bool(((ends[1:] - ends[:-1]) != each).any()):
        raise errors.RefusedValue(errors.text(
            f"Expect the same number of specified elements per batch. ({errors.user_line(3)})",
            f"elements of each: {(ends[1:] - ends[:-1]).tolist()}",
            "keep the coordinates of a batch: to_sparse()"))
    own = starts[:-1].reshape(matrices, size)
    own = ops.cat([own, ends[1:].reshape(-1, 1)], 1) - ends[:-1].reshape(-1, 1)
    return own.reshape(*batch, size + 1).to(index), short.reshape(*batch, each).to(index)


def _turned(t: Compressed, cls: type[Compressed]) -> Compressed:
    """Blocks by rows as blocks by columns, and back: the blocks are the entries of a matrix."""
    d = t.batch_dims
    high, wide = _blocks_of(t)
    entry, kind = _entries_of(type(t)), _entries_of(cls)
    n, m = t.shape[d:d + 2]
    shape = (*t.shape[:d], n // high, m // wide, high, wide, *t.shape[d + 2:])
    other = convert(entry.make(t.compressed_part, t.plain_part, t.values_part, shape),
                    kind.own_layout)
    return cls.make(other.compressed_part, other.plain_part, other.values_part, t.shape)


def _entries_of(cls: type[Compressed]) -> Any:
    """The layout in which the blocks of another are entries."""
    return CLASSES[layout.known["sparse_csr" if cls.by_rows else "sparse_csc"]]


def pointers(sorted_places: Tensor, size: int) -> Tensor:
    """How many of sorted places are before each number: the compressed form."""
    counts = ops.zeros(size + 1, dtype=sorted_places.dtype, device=sorted_places.device).index_add(
        0, sorted_places + 1, ops.ones_like(sorted_places))
    return counts.cumsum(0)


# from dense ---------------------------------------------------------------------------------------


def from_dense(t: Tensor, sparse_dim: int | None, to: layout, blocks: tuple | None = None,
               dense_dim: int | None = None):
    """The elements of a dense tensor that are not zero; derivatives are of all."""
    if to is not COO:
        out = _compressed_from_dense(t, CLASSES[to], blocks, dense_dim or 0)
        return unspecified.with_rest(out, t)
    if dense_dim is not None:
        if not 0 <= dense_dim <= t.ndim:
            _refuse(f"dense_to_sparse: dense_dim argument must be in [0,{t.ndim}] range, but "
                    f"{dense_dim} is given", t)
        sparse_dim = t.ndim - dense_dim
    count = t.ndim if sparse_dim is None else sparse_dim
    if not count and t.ndim:
        _refuse("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0", t)
    if not 0 <= count <= t.ndim:
        _refuse(f"dense_to_sparse: sparse_dim argument must be in [0,{t.ndim}] range, but {count} "
                "is given", t)
    return unspecified.with_rest(_coordinates(t, count), t)


def _coordinates(t: Tensor, count: int) -> Coo:
    """Elements with coordinates in the first dims, the others are dense."""
    there = t.detach() != 0
    if not t.ndim:
        at = _places_in(there.reshape(1))
        return Coo.make(at[:0], t.reshape(1)[at[0]], t.shape, True)
    if count < t.ndim:
        there = there.flatten(count).any(-1)
    at = _places_in(there)
    return Coo.make(at, t[tuple(at.unbind(0))], t.shape, True)


def _places_in(there: Tensor) -> Tensor:
    return patterns.sized("to_sparse", lambda: there.nonzero().t().contiguous(), there)


def _compressed_from_dense(t: Tensor, cls: type[Compressed], blocks: tuple | None,
                           dense_dim: int) -> Compressed:
    """Matrices, of which the last dims may be dense."""
    name = f"dense_to_sparse_{cls.kind}"
    if t.ndim < 2:
        _refuse(f"{name}: a compressed tensor has two dims at least", t, "x.to_sparse()")
    if not 0 <= dense_dim <= t.ndim - 2:
        _refuse(f"{name}: dense_dim argument must be in [0,{t.ndim - 2}] range, but {dense_dim} is "
                "given", t)
    matrix = t.ndim - dense_dim
    if 0 in t.shape[:matrix - 2]:
        _refuse(f"to_sparse_{cls.kind}: Expected product of batch dimensions to be non-zero.", t)
    n, m = t.shape[matrix - 2:matrix]
    if blocks is not None and (n % blocks[0] or m % blocks[1]):
        _refuse(f"{name}: tensor sparse size ({n},{m}) must be divisible by given blocksize "
                f"({blocks[0]},{blocks[1]})", t)
    if blocks is None:
        return compressed_of(_coordinates(t, matrix), cls, None)
    d, (high, wide) = matrix - 2, blocks  # the blocks are the entries of a matrix
    tiles = t.reshape(*t.shape[:d], n // high, high, m // wide, wide, *t.shape[matrix:])
    found = compressed_of(_coordinates(tiles.transpose(d + 1, d + 2), matrix), _entries_of(cls),
                          None)
    return cls.make(found.compressed_part, found.plain_part, found.values_part, t.shape)
