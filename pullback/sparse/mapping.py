"""Examples of sparse tensors: what `vmap` makes of a batch of them, and of results.

The matrices of a batch have patterns of their own but equally many entries, so that all of their
parts are examples as well: batch dims of compressed layouts, the first of the dims that have
coordinates.  Along a dense dim examples share one pattern.  Read next: `patterns.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from .. import errors
from ..core.handle import Tensor
from ..parts.rules import shown
from ..table.packets import ops
from .memo import are_known, known
from .tensor import Compressed, Coo, SparseTensor

Function = Callable[[Tensor, Any], Tensor]


def of_each(t: SparseTensor, dim: int, function: Function) -> SparseTensor:
    """One example of many along a dim, or all of one: `function` says which, it takes or gives
    each part with a dim for them."""
    begins = function(t.values_part, 0).ndim < t.values_part.ndim
    count = t.ndim if begins else t.ndim + 1
    if not -count <= dim < count:
        raise errors.DimError(
            f"vmap: out_dims is {dim} for a result of {t.ndim} dims ({errors.user_line(5)})")
    dim %= count
    if isinstance(t, Compressed):
        return _compressed(t, dim, function, begins)
    assert isinstance(t, Coo)
    if begins:
        return _first(t, dim, function)
    return _last(t, dim, function)


def _shape(t: SparseTensor, dim: int, size: int | None) -> tuple:
    shape = list(t.shape)
    if size is None:
        del shape[dim]
    else:
        shape.insert(dim, size)
    return tuple(shape)


def _refuse(t: SparseTensor, said: str, cure: str) -> NoReturn:
    raise errors.MappingError(errors.text(
        f"vmap: {said} ({errors.user_line(6)})", shown(t), cure))


def _compressed(t: Compressed, dim: int, function: Function, begins: bool) -> Compressed:
    d, place = t.batch_dims, dim
    if dim < d or dim == d and not begins:
        parts = [function(getattr(t, n), dim) for n in t.names]
    elif dim >= d + 2:  # integers are common to all
        place = dim - d - 2 + t.values_part.ndim - t.dense_dim()
        parts = [t.compressed_part, t.plain_part] if begins else [
            function(t.compressed_part, None), function(t.plain_part, None)]
        parts.append(function(t.values_part, place))
    else:
        _refuse(t, f"dim {dim} is one of the rows or columns of a matrix, which are no examples",
                "map over x.to_dense(), or over a batch of matrices")
    return t.make(*parts, _shape(t, dim, None if begins else parts[2].shape[place]))


def _first(t: Coo, dim: int, function: Function) -> Coo:
    """One example of coordinates."""
    sparse = t.sparse_dim()
    if dim >= sparse:
        return Coo.make(t.indices_part, function(t.values_part, dim - sparse + 1),
                        _shape(t, dim, None), t.coalesced)
    if sparse == 1:
        _refuse(t, "the examples would have no dims with coordinates",
                "map over x.to_dense(), or over x.values()")
    if not are_known(t.indices_part):
        _refuse(t, "how many entries each example has is not known inside of another transform",
                "map over matrices in rows: x.to_sparse_csr()")
    t = (t if not dim else ops.movedim(t, dim, 0)).coalesce()
    size = t.shape[0]

    counts = known(lambda: ops.bincount(t.indices_part[0], minlength=size).tolist(),
                   t.indices_part)
    if len(set(counts)) > 1:
        _refuse(t, f"the examples along a sparse dim need equally many entries, they have "
                f"{counts[:8]}{' ...' if size > 8 else ''}", "map over x.to_dense(), or over "
                "values that are given for all places of one pattern")
    count = counts[0] if counts else 0
    each = known(lambda: t.indices_part[1:].reshape(sparse - 1, size, count), t.indices_part)
    values = t.values_part.reshape(size, count, *t.values_part.shape[1:])
    return Coo.make(function(each, 1), function(values, 0), tuple(t.shape[1:]), True)


def _last(t: Coo, dim: int, function: Function) -> Coo:
    """All examples, given one: they are behind each other in a new dim."""
    sparse = t.sparse_dim()
    if dim > sparse:
        place = dim - sparse
        values = function(t.values_part, place)
        return Coo.make(function(t.indices_part, None), values,
                        _shape(t, dim, values.shape[place]), t.coalesced)
    at, values = function(t.indices_part, 1), function(t.values_part, 0)
    size, entries = values.shape[:2]
    number = ops.arange(size, device=at.device).repeat_interleave(entries)
    rows = list(at.reshape(sparse, size * entries).unbind(0))
    rows.insert(dim, number)
    return Coo.make(ops.stack(rows), values.reshape(size * entries, *values.shape[2:]),
                    _shape(t, dim, size), t.coalesced and not dim)
