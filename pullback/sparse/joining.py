"""Sparse tensors joined: side by side, along a new dim, and as Kronecker products.

Entries stay what they are and are counted on.  Rows of matrices in one layout are put one behind
the other by their pointers; what else is joined goes by coordinates.  The result has the layout of
the first tensor, and a batch of matrices is made only of matrices with equally many entries.
"""

from __future__ import annotations

import itertools
from typing import Any

from .. import errors
from ..array import dtype as dt
from ..array.dims import numel, wrap_dim
from ..core.handle import Tensor
from ..parts.rules import rule, shown
from ..table.packets import ops
from . import patterns
from .elementwise import as_coo, same_pattern
from .indexing import with_values
from .memo import known
from .shapes import block_of, laid_out, none_of, scattered, unsqueeze, value_dim
from .tensor import Compressed, Coo, SparseTensor


def _checked(tensors: Any, name: str) -> list[SparseTensor]:
    """Sparse tensors of one dtype."""
    for k, t in enumerate(tensors):
        if not isinstance(t, SparseTensor):
            raise errors.LayoutError(errors.text(
                f"{name}: expected all tensors to be sparse, but the one at position {k} is dense "
                f"({errors.user_line(3)})", [shown(t) for t in tensors],
                "convert it: x.to_sparse(), or the others: x.to_dense()"))
    dtype = tensors[0].dtype
    for t in tensors[1:]:
        dtype = dt.promote_types(dtype, t.dtype)
    return [t if t.dtype is dtype else t.with_carrier(t.values_part.to(dtype)) for t in tensors]


@rule(SparseTensor, "cat")
def cat(tensors: Any, dim: int = 0):
    """Tensors side by side."""
    tensors = _checked(tensors, "cat")
    first = tensors[0]
    dim = wrap_dim(dim, first.ndim, scalar_ok=False)
    for k, t in enumerate(tensors):
        if t.ndim != first.ndim or any(
                n != m for d, (n, m) in enumerate(zip(t.shape, first.shape)) if d != dim):
            raise errors.ShapeError(errors.text(
                f"cat: sizes of tensors must match except in dimension {dim}: {list(first.shape)} "
                f"at position 0, {list(t.shape)} at position {k} ({errors.user_line(2)})"))
    shape = list(first.shape)
    shape[dim] = sum(t.shape[dim] for t in tensors)
    out = _parts_joined(tensors, dim, tuple(shape))
    if out is not None:
        return out
    coos = [as_coo(t) for t in tensors]
    if len({c.sparse_dim() for c in coos}) > 1:
        raise errors.ShapeError(errors.text(
            f"cat: the tensors have {[c.sparse_dim() for c in coos]} sparse dims "
            f"({errors.user_line(2)})", [shown(t) for t in tensors],
            "convert them: x.to_dense().to_sparse(sparse_dim)"))
    out = _coordinates_joined(coos, dim, tuple(shape))
    if dim >= coos[0].sparse_dim():  # the same place may be in several of them
        return laid_out(first, out if isinstance(first, Coo) else out.coalesce())
    even = all(isinstance(t, Compressed) and dim >= t.batch_dims for t in tensors)
    return laid_out(first, out, even=even)


def _coordinates_joined(coos: list[Coo], dim: int, shape: tuple) -> Coo:
    """Coordinates of one tensor after those of another."""
    count = coos[0].sparse_dim()
    starts = [0, *itertools.accumulate(c.shape[dim] for c in coos)]

    def find() -> Tensor:
        parts = []
        for c, start in zip(coos, starts):
            rows = list(c.indices_part.unbind(0))
            if dim < count:
                rows[dim] = rows[dim] + start
            parts.append(ops.stack(rows) if rows else c.indices_part)
        return ops.cat(parts, 1)

    indices = known(find, *[c.indices_part for c in coos])
    values = [c.values_part for c in coos]
    if dim >= count:  # other places of the dense dim are zero
        k = dim - count + 1
        values = [_between(v, k, start, shape[dim]) for v, start in zip(values, starts)]
    ordered = dim == 0 and all(c.coalesced for c in coos) and count > 0
    return Coo.make(indices, ops.cat(values), shape, ordered)


def _between(values: Tensor, dim: int, before: Any, size: Any) -> Tensor:
    """Values with zeros before and behind them in a dim."""
    def zeros(n: Any) -> Tensor:
        return ops.zeros((*values.shape[:dim], n, *values.shape[dim + 1:]), dtype=values.dtype,
                         device=values.device)

    behind = size - before - values.shape[dim]
    return ops.cat([zeros(before), values, zeros(behind)], dim)


def _parts_joined(tensors: list, dim: int, shape: tuple) -> SparseTensor | None:
    """The parts of tensors of one kind joined, if that is all there is to do."""
    first = tensors[0]
    if dim >= first.ndim - first.dense_dim() and all(same_pattern(first, t) for t in tensors[1:]):
        k = value_dim(first, dim)
        return with_values(first, ops.cat([t.values_part for t in tensors], k), shape)
    if not isinstance(first, Compressed) or any(
            type(t) is not type(first) or block_of(t) != block_of(first)
            or t.batch_dims != first.batch_dims for t in tensors):
        return None
    d = first.batch_dims
    parts = [[getattr(t, name) for t in tensors] for name in first.names]
    integers = [*parts[0], *parts[1]]
    if dim < d and len({t._nnz() for t in tensors}) == 1:
        joined = known(lambda: [ops.cat(p, dim) for p in parts[:2]], *integers)
        return first.make(*joined, ops.cat(parts[2], dim), shape)
    if dim != d + (0 if first.by_rows else 1):
        return None
    starts = [0, *itertools.accumulate(t._nnz() for t in tensors)]

    def find() -> tuple:
        pointers = [c[..., 0 if not k else 1:] + starts[k] for k, c in enumerate(parts[0])]
        return ops.cat(pointers, -1), ops.cat(parts[1], -1)

    return first.make(*known(find, *integers), ops.cat(parts[2], d), shape)


@rule(SparseTensor, "stack")
def stack(tensors: Any, dim: int = 0):
    """Tensors along a new dim."""
    tensors = _checked(tensors, "stack")
    first = tuple(tensors[0].shape)
    for k, t in enumerate(tensors):
        if tuple(t.shape) != first:
            raise errors.ShapeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(t.shape)} at entry {k} ({errors.user_line(2)})")
    dim = wrap_dim(dim, len(first) + 1)
    return cat([unsqueeze(t, dim) for t in tensors], dim)


@rule(SparseTensor, "kron")
def kron(a: Any, b: Any):
    """Every element of one tensor times all of another."""
    x, y = [scattered(as_coo(t)) if isinstance(t, SparseTensor) else everywhere(t) for t in (a, b)]
    rank = max(x.ndim, y.ndim)
    left, right = [(*(1,) * (rank - t.ndim), *t.shape) for t in (x, y)]
    n, m = x._nnz(), y._nnz()

    def rows(t: Coo) -> list:
        none = ops.zeros(t._nnz(), dtype=dt.int64, device=t.device)
        return [*[none] * (rank - t.ndim), *t.indices_part.unbind(0)]

    def find() -> Tensor:
        found = [r.repeat_interleave(m) * size + s.repeat(n)
                 for r, s, size in zip(rows(x), rows(y), right)]
        return ops.stack(found) if found else none_of(n * m, x.device)

    values = (x.values_part.unsqueeze(1) * y.values_part.unsqueeze(0)).reshape(n * m)
    shape = tuple([p * q for p, q in zip(left, right)])
    out = Coo.make(known(find, x.indices_part, y.indices_part), values, shape, False)
    return laid_out(a if isinstance(a, SparseTensor) else b, out)


def everywhere(t: Tensor) -> Coo:
    """A dense tensor as one with entries at all places."""
    shape = tuple(t.shape)
    indices = known(lambda: patterns.unkeyed(ops.arange(numel(shape), device=t.device), shape)
                    if shape else none_of(1, t.device))
    return Coo.make(indices, t.reshape(numel(shape)), shape, True)
