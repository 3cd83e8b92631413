"""Shapes of sparse tensors: entries get other coordinates, values follow.

What an operator does to coordinates is arithmetic, so it needs to look at none of them; where their
order changes they are sorted before a compressed layout is made of them.  Matrices stay in their
layout, and so do batches of which every matrix keeps as many entries; what rows one behind the
other cannot hold has coordinates.  Where sparse and dense dims change places, all become sparse.
Read next: `indexing.py`, `joining.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import errors
from ..array import dtype as dt
from ..array.dims import expanded_shape, infer_size, numel, wrap_dim, wrap_dims
from ..core.handle import Tensor
from ..ops.arrange import checked_roll, checked_rot90
from ..parts.rules import rule, shown
from ..table.packets import ops
from . import invariants, patterns
from .convert import compressed_of
from .elementwise import as_coo
from .memo import known
from .tensor import Bsc, Bsr, Compressed, Coo, Csc, Csr, SparseTensor

TURNED: dict[type, type] = {Csr: Csc, Csc: Csr, Bsr: Bsc, Bsc: Bsr}


def same(x: SparseTensor) -> SparseTensor:
    """The same tensor as another handle, which shows the same values."""
    return x.with_carrier(ops.alias(x.values_part))


# what all is made of ------------------------------------------------------------------------------


def placed(t: Coo, find: Callable[[list], list], values: Tensor, shape: Any,
           ordered: bool = True) -> Coo:
    """The entries of a tensor in other places: `find` makes coordinates of coordinates."""
    def indices() -> Tensor:
        rows = find(list(t.indices_part.unbind(0)))
        return ops.stack(rows) if rows else none_of(values.shape[0], t.device)

    return Coo.make(known(indices, t.indices_part), values, tuple(shape),
                    t.coalesced and ordered)


def none_of(count: Any, device: Any) -> Tensor:
    """The coordinates of entries of a tensor without sparse dims."""
    return ops.zeros((0, count), dtype=dt.int64, device=device)


def scattered(t: Coo) -> Coo:
    """The same with a coordinate for every dim: each entry is a number."""
    dense = tuple(t.values_part.shape[1:])
    if not dense:
        return t
    count, entries = numel(dense), t._nnz()

    def find(rows: list) -> list:
        within = patterns.unkeyed(ops.arange(count, device=t.device).repeat(entries), dense)
        return [*[r.repeat_interleave(count) for r in rows], *within.unbind(0)]

    return placed(t, find, t.values_part.reshape(entries * count), t.shape)


def in_order(out: Coo, distinct: bool = True) -> Coo:
    """Entries in the order of rows, each once; they are added up if that may not be so yet."""
    if out.coalesced:
        return out
    if not distinct or not out.sparse_dim():
        return out.coalesce()
    sizes = tuple(out.shape[:out.sparse_dim()])

    def find() -> tuple:
        order = ops.argsort(patterns.keys(out.indices_part, sizes), stable=True)
        return out.indices_part[:, order], order

    indices, order = known(find, out.indices_part)
    return Coo.make(indices, out.values_part.index_select(0, order), out.shape, True)


def laid_out(t: SparseTensor, out: Coo, even: bool = False, blocks: tuple | None = None):
    """A result in the layout of an argument, if that can hold it.

    `even` says that all matrices of the result have equally many entries; `blocks` is the size of
    blocks that the entries fill, by default the largest that divides that of the argument.
    """
    if isinstance(t, Coo):
        return out
    assert isinstance(t, Compressed)
    batch, distinct = out.sparse_dim() - 2, invariants.in_order(t)
    if batch < 0 or batch and not even:
        return in_order(out, distinct)
    if t.blocked and blocks is None:
        blocks = tuple(map(math.gcd, block_of(t), out.shape[batch:batch + 2]))
    blocks = blocks if t.blocked else None
    if t.by_rows:
        return compressed_of(in_order(out, distinct), type(t), blocks, t.plain_part.dtype, even)
    order = [*range(batch), batch + 1, batch, *range(batch + 2, out.ndim)]  # its columns are rows
    turned = placed(out, lambda rows: [*rows[:batch], rows[-1], rows[-2]], out.values_part,
                    [out.shape[k] for k in order], False)
    made = compressed_of(in_order(turned, distinct), TURNED[type(t)], blocks and blocks[::-1],
                         t.plain_part.dtype, even)
    return _turned(made, tuple(order))


def block_of(t: Compressed) -> tuple:
    """The size of blocks; that of entries is one by one."""
    d = t.batch_dims
    return tuple(t.values_part.shape[d + 1:d + 3]) if t.blocked else (1, 1)


def value_dim(t: SparseTensor, dim: int) -> int:
    """The dim of the values that a dense dim is."""
    return dim - t.ndim + t.values_part.ndim


def on_batch(t: Compressed, function: Callable[[Tensor, int], Tensor], lead: Any) -> Compressed:
    """The same with other batch dims: `function` gets each part, and how many dims the part has
    behind its batch dims."""
    d = t.batch_dims
    parts = of_integers(t, lambda p: function(p, p.ndim - d))
    values = function(t.values_part, t.values_part.ndim - d)
    return t.make(*parts, values, (*lead, *t.shape[d:]))


def of_integers(t: Compressed, function: Callable[[Tensor], Tensor]) -> list[Tensor]:
    """A function of the two parts that are integers."""
    parts = t.compressed_part, t.plain_part
    return known(lambda: [function(p) for p in parts], *parts)


# dims in another order ----------------------------------------------------------------------------


@rule(SparseTensor, "alias")
def alias(x: SparseTensor):
    return same(x)


@rule(SparseTensor, "detach")
def detach(x: SparseTensor):
    return x.detach()


@rule(SparseTensor, "t")
def t(x: SparseTensor):
    if x.ndim > 2:
        raise errors.ShapeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {x.ndim}D "
            f"({errors.user_line(2)})")
    return transpose(x, 0, 1) if x.ndim == 2 else same(x)


@rule(SparseTensor, "transpose.int")
def transpose(x: SparseTensor, dim0: int, dim1: int):
    a, b = wrap_dim(dim0, x.ndim), wrap_dim(dim1, x.ndim)
    dims = list(range(x.ndim))
    if dims:
        dims[a], dims[b] = dims[b], dims[a]
    return permute(x, dims)


@rule(SparseTensor, "permute")
def permute(x: SparseTensor, dims: Any):
    dims = wrap_dims(tuple(dims), x.ndim, empty_is_all=False)
    if len(dims) != x.ndim:
        raise errors.ShapeError(
            f"permute(sparse): number of dimensions in the tensor input does not match the length "
            f"of the desired ordering of dimensions i.e. input.dim() = {x.ndim} is not equal to "
            f"len(dims) = {len(dims)} ({errors.user_line(2)})")
    straight = tuple(range(x.ndim))
    if dims == straight:
        return same(x)
    if isinstance(x, Compressed):
        d = x.batch_dims
        if set(dims[:d]) == set(straight[:d]) and set(dims[d:d + 2]) == {d, d + 1}:
            return _turned(x, dims)
    coo = as_coo(x)
    if set(dims[:coo.sparse_dim()]) != set(straight[:coo.sparse_dim()]):
        coo = scattered(coo)
    count, values = coo.sparse_dim(), coo.values_part
    if dims[count:] != straight[count:]:
        values = values.permute(0, *[k - count + 1 for k in dims[count:]])
    sparse = dims[:count]
    out = placed(coo, lambda rows: [rows[k] for k in sparse], values, [x.shape[k] for k in dims],
                 sparse == straight[:count])
    return laid_out(x, out)


def _turned(x: Compressed, dims: tuple) -> Compressed:
    """Batch dims, rows and columns, and dense dims, each among themselves: integers stay."""
    d = x.batch_dims
    lead, swapped = dims[:d], dims[d] == d + 1
    inner = [d]
    if x.blocked:
        inner += [d + 2, d + 1] if swapped else [d + 1, d + 2]
    order = [*lead, *inner, *[value_dim(x, k) for k in dims[d + 2:]]]
    values, parts = x.values_part, [x.compressed_part, x.plain_part]
    if order != list(range(values.ndim)):
        values = values.permute(order)
    if lead != tuple(range(d)):
        parts = of_integers(x, lambda p: p.permute(*lead, d))
    cls: Any = TURNED[type(x)] if swapped else type(x)
    return cls.make(*parts, values, tuple([x.shape[k] for k in dims]))


# dims of size one ---------------------------------------------------------------------------------


@rule(SparseTensor, "squeeze")
def squeeze(x: SparseTensor, dim: Any = None):
    """Without dims of size one: all of them, or those that are named."""
    dims = range(x.ndim) if dim is None else wrap_dims(dim, x.ndim, empty_is_all=False)
    gone = [k for k in dims if k < x.ndim and x.shape[k] == 1]
    if not gone:
        return same(x)
    shape = [n for k, n in enumerate(x.shape) if k not in gone]
    if isinstance(x, Compressed) and not {x.batch_dims, x.batch_dims + 1} & set(gone):
        d = x.batch_dims
        lead = tuple([k for k in gone if k < d])
        values = x.values_part.squeeze((*lead, *[value_dim(x, k) for k in gone if k > d]))
        parts = of_integers(x, lambda p: p.squeeze(lead) if lead else p)
        return x.make(*parts, values, tuple(shape))
    coo = as_coo(x)
    inside = tuple([k - coo.sparse_dim() + 1 for k in gone if k >= coo.sparse_dim()])
    values = coo.values_part.squeeze(inside) if inside else coo.values_part
    return laid_out(x, placed(
        coo, lambda rows: [r for k, r in enumerate(rows) if k not in gone], values, shape))


@rule(SparseTensor, "unsqueeze")
def unsqueeze(x: SparseTensor, dim: int):
    """A new dim of size one: sparse, unless it is behind a dense one or behind a matrix of rows."""
    dim = wrap_dim(dim, x.ndim + 1)
    shape = (*x.shape[:dim], 1, *x.shape[dim:])
    if isinstance(x, Compressed) and dim <= x.batch_dims:
        return on_batch(x, lambda p, _: p.unsqueeze(dim), shape[:x.batch_dims + 1])
    if isinstance(x, Compressed) and dim >= x.batch_dims + 2:
        values = x.values_part.unsqueeze(value_dim(x, dim))
        return x.make(x.compressed_part, x.plain_part, values, shape)
    coo = as_coo(x)
    if dim > coo.sparse_dim():
        values = coo.values_part.unsqueeze(dim - coo.sparse_dim() + 1)
        return laid_out(x, Coo.make(coo.indices_part, values, shape, coo.coalesced))

    def find(rows: list) -> list:
        new = ops.zeros(coo._nnz(), dtype=dt.int64, device=coo.device)
        return [*rows[:dim], new, *rows[dim:]]

    return laid_out(x, placed(coo, find, coo.values_part, shape))


# copies -------------------------------------------------------------------------------------------


def expand(t: SparseTensor, shape: tuple) -> SparseTensor:
    """A tensor repeated along dims of size 1, and new ones in front."""
    lead = len(shape) - t.ndim
    own = (*(1,) * lead, *t.shape)
    if isinstance(t, Compressed):
        d = t.batch_dims + lead
        if own[d:d + 2] == tuple(shape[d:d + 2]):
            counts = shape[:d]
            t = on_batch(t, lambda p, n: p.expand(*counts, *p.shape[p.ndim - n:]), counts)
            values = t.values_part
            front = values.shape[:values.ndim - len(shape) + d + 2]
            return t.make(t.compressed_part, t.plain_part,
                          values.expand(*front, *shape[d + 2:]), tuple(shape))
    coo = as_coo(t)
    out = repeated(coo, [n if n != m else 1 for n, m in zip(
        shape[:coo.sparse_dim() + lead], own)])
    values = out.values_part.expand(out._nnz(), *shape[out.sparse_dim():])
    out = Coo.make(out.indices_part, values, tuple(shape), out.coalesced)
    return laid_out(t, in_order(out) if coo.coalesced else out, even=True)


@rule(SparseTensor, "expand")
def expanded(x: SparseTensor, size: Any, implicit: bool = False):
    shape = expanded_shape(x.shape, size)
    return same(x) if shape == tuple(x.shape) else expand(x, shape)


def repeated(t: Coo, counts: list) -> Coo:
    """Copies of a tensor side by side along sparse dims, some of which may be new, in front."""
    extra, total, entries = len(counts) - t.sparse_dim(), numel(counts), t._nnz()
    own = [*[1] * extra, *t.shape[:t.sparse_dim()]]
    shape = (*[n * c for n, c in zip(own, counts)], *t.shape[t.sparse_dim():])
    many = [k for k, c in enumerate(counts) if c != 1]

    def find(rows: list) -> list:
        new = ops.zeros(entries, dtype=dt.int64, device=t.device)
        rows = [*[new] * extra, *rows]
        if not many:
            return rows
        number = ops.arange(total, device=t.device).repeat_interleave(entries)
        copy = patterns.unkeyed(number, tuple([counts[k] for k in many]))
        rows = [r.repeat(total) for r in rows]
        for k, number in zip(many, copy.unbind(0)):
            rows[k] = rows[k] + number * own[k]
        return rows

    values = t.values_part
    if many:
        values = values.unsqueeze(0).expand(total, *values.shape).reshape(
            total * entries, *values.shape[1:])
    return placed(t, find, values, shape, all(n == 1 for n in own[:many[-1]]) if many else True)


@rule(SparseTensor, "repeat")
def repeat(x: SparseTensor, repeats: Any):
    lead = len(repeats) - x.ndim
    if lead < 0:
        raise errors.ShapeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
            f"tensor ({errors.user_line(2)})")
    coo = as_coo(x)
    count = coo.sparse_dim() + lead
    out = repeated(coo, list(repeats[:count]))
    if out.dense_dim():
        values = out.values_part.repeat(1, *repeats[count:])
        shape = (*out.shape[:count], *values.shape[1:])
        out = Coo.make(out.indices_part, values, shape, out.coalesced)
    return laid_out(x, out, even=True)


# other sizes --------------------------------------------------------------------------------------


def _border(x: Coo, shape: tuple) -> int | None:
    """How many dims of another shape the sparse dims become, if dense ones stay behind them."""
    sparse, dense = numel(x.shape[:x.sparse_dim()]), numel(x.shape[x.sparse_dim():])
    if not x.dense_dim():
        return len(shape)
    return next((k for k in range(len(shape), -1, -1)
                 if numel(shape[:k]) == sparse and numel(shape[k:]) == dense), None)


@rule(SparseTensor, "reshape", "view", "_unsafe_view")
def reshape(x: SparseTensor, shape: Any):
    """The same elements in another shape."""
    if not isinstance(shape, (tuple, list)):
        return NotImplemented  # a dtype
    shape = infer_size(shape, x.numel())
    if shape == tuple(x.shape):
        return same(x)
    if isinstance(x, Compressed):
        d, rest = x.batch_dims, x.ndim - x.batch_dims
        if len(shape) >= rest and shape[len(shape) - rest:] == tuple(x.shape[d:]):
            lead = shape[:len(shape) - rest]
            return on_batch(x, lambda p, n: p.reshape(*lead, *p.shape[p.ndim - n:]), lead)
    coo = as_coo(x)
    count = _border(coo, shape)
    if count is None:
        coo, count = scattered(coo), len(shape)
    before, after = tuple(coo.shape[:coo.sparse_dim()]), tuple(shape[:count])

    def find(rows: list) -> list:
        numbers = patterns.keys(coo.indices_part, before) if rows else ops.zeros(
            coo._nnz(), dtype=dt.int64, device=coo.device)
        return list(patterns.unkeyed(numbers, after).unbind(0)) if after else []

    values = coo.values_part.reshape(coo._nnz(), *shape[count:])
    return laid_out(x, placed(coo, find, values, shape))


# coordinates counted otherwise --------------------------------------------------------------------


@rule(SparseTensor, "flip")
def flip(x: SparseTensor, dims: Any):
    dims = wrap_dims(tuple(dims), x.ndim, empty_is_all=False)
    coo = as_coo(x)
    count = coo.sparse_dim()
    inside = [k - count + 1 for k in dims if k >= count]
    values = coo.values_part.flip(inside) if inside else coo.values_part
    out = placed(coo, lambda rows: [
        coo.shape[k] - 1 - r if k in dims else r for k, r in enumerate(rows)], values, x.shape,
        len(inside) == len(dims))
    return laid_out(x, out, even=True)


@rule(SparseTensor, "roll")
def roll(x: SparseTensor, shifts: Any, dims: Any = ()):
    dims = checked_roll(shifts, dims, x.ndim)
    if not dims:
        return reshape(roll(reshape(x, (x.numel(),)), shifts, (0,)), tuple(x.shape))
    coo = as_coo(x)
    count, by = coo.sparse_dim(), [0] * x.ndim
    for k, shift in zip(dims, shifts):
        by[k] = by[k] + shift
    inside = [k for k in range(count, x.ndim) if by[k]]
    values = coo.values_part
    if inside:
        values = values.roll([by[k] for k in inside], [k - count + 1 for k in inside])
    out = placed(coo, lambda rows: [
        (r + by[k]).remainder(coo.shape[k]) if by[k] else r for k, r in enumerate(rows)], values,
        x.shape, not any(by[:count]))
    blocks = None
    if isinstance(x, Compressed) and x.blocked:  # those that a shift moves as they are
        d = x.batch_dims
        blocks = tuple(map(math.gcd, block_of(x), by[d:d + 2]))
    return laid_out(x, out, even=True, blocks=blocks)


@rule(SparseTensor, "rot90")
def rot90(x: SparseTensor, k: int = 1, dims: Any = (0, 1)):
    a, b = checked_rot90(dims, x.ndim)
    if k % 4 == 0:
        return same(x)
    if k % 4 == 2:
        return flip(x, (a, b))
    return transpose(flip(x, (b if k % 4 == 1 else a,)), a, b)


@rule(SparseTensor, "diag_embed")
def diag_embed(x: SparseTensor, offset: int = 0, dim1: int = -2, dim2: int = -1):
    """Matrices with the last dim on a diagonal."""
    a, b = wrap_dim(dim1, x.ndim + 1), wrap_dim(dim2, x.ndim + 1)
    if a == b:
        raise errors.ShapeError(
            f"diagonal dimensions cannot be identical {dim1}, {dim2} ({errors.user_line(2)})")
    coo = scattered(as_coo(x))
    size = coo.shape[-1] + abs(offset)
    rest = [k for k in range(x.ndim + 1) if k not in (a, b)]

    def find(rows: list) -> list:
        new = dict(zip(rest, rows))
        new[a], new[b] = rows[-1] + max(-offset, 0), rows[-1] + max(offset, 0)
        return [new[k] for k in range(x.ndim + 1)]

    sizes = dict(zip(rest, coo.shape)) | {a: size, b: size}
    out = placed(coo, find, coo.values_part, [sizes[k] for k in range(x.ndim + 1)],
                 {a, b} == {x.ndim - 1, x.ndim})
    return laid_out(x, out)


# complex numbers ----------------------------------------------------------------------------------


@rule(SparseTensor, "view_as_real")
def view_as_real(x: SparseTensor):
    """Real and imaginary parts, in a dense dim."""
    parts = [getattr(x, name) for name in x.names[:-1]]
    return _remade(x, parts, ops.view_as_real(x.values_part), (*x.shape, 2))


@rule(SparseTensor, "view_as_complex")
def view_as_complex(x: SparseTensor):
    """Pairs in a dense dim as complex numbers."""
    if not x.dense_dim():
        raise errors.LayoutError(errors.text(
            f"view_as_complex: the last dim of a sparse tensor has to be a dense one "
            f"({errors.user_line(2)})", shown(x),
            "x.to_dense().to_sparse(sparse_dim), with a sparse_dim less than x.ndim"))
    parts = [getattr(x, name) for name in x.names[:-1]]
    return _remade(x, parts, ops.view_as_complex(x.values_part), x.shape[:-1])


def _remade(x: Any, parts: list, values: Tensor, shape: Any) -> SparseTensor:
    flag = [x.coalesced] if isinstance(x, Coo) else []
    return x.make(*parts, values, tuple(shape), *flag)
