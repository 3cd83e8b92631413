"""Where the entries of sparse tensors are: integers, and what follows from them.

What takes time to find (rows of compressed entries, places in order) is kept (`memo.py`) with the
integers it was found from, so that all tensors of one pattern share it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import errors
from ..core.handle import Tensor, make
from ..table.packets import ops
from .invariants import inside, inside_compressed
from .memo import are_known, kept, kept_with


class Distinct(NamedTuple):
    """The places of a pattern, each once and in order, and which entry is at which."""

    indices: Tensor  # (sparse dims, places)
    inverse: Tensor  # entry -> number of its place


def keys(indices: Tensor, sizes: tuple) -> Tensor:
    """The places of entries as single numbers, in the order of rows."""
    inside(indices, sizes)
    found = indices[0]
    for k in range(1, indices.shape[0]):
        found = found * sizes[k] + indices[k]
    return found


def unkeyed(numbers: Tensor, sizes: tuple) -> Tensor:
    """The coordinates of such numbers."""
    found = []
    for size in reversed(sizes[1:]):
        size = size if type(size) is not int else max(size, 1)  # none is in a dim of size zero
        found.append(numbers.remainder(size))
        numbers = numbers.div(size, rounding_mode="floor")
    return ops.stack([numbers, *reversed(found)])


def distinct(indices: Tensor, sizes: tuple) -> Distinct:
    """The places of entries without duplicates."""
    def find() -> Distinct:
        if not indices.shape[0]:  # one number with several values
            n = indices.shape[1]
            zeros = ops.zeros(n, dtype=indices.dtype, device=indices.device)
            return Distinct(indices[:, :min(n, 1)], zeros)
        found, inverse = ops._unique(keys(indices, sizes), True, True)
        return Distinct(unkeyed(found, sizes), inverse)

    return kept(indices, "distinct", lambda: sized("places of a sparse tensor, each once", find,
                                                   indices))


def sized(what: str, find: Callable[[], Any], *integers: Tensor) -> Any:
    """What is found from numbers, on which its size depends: a capture does not know them, and
    the examples of `vmap` may differ in it."""
    each = any(map(is_of_each, integers))
    try:
        return find()
    except (errors.DynamicOutputShapeException, errors.ShapeError) as error:
        if each:
            raise errors.MappingError(errors.text(
                f"vmap: {what}: each example has a pattern of its own, and what follows from it "
                f"differs in size ({errors.user_line(3)})", cure="map over x.to_dense(), over "
                "values of one pattern, or call the function for one example after the other"
                )) from None
        if isinstance(error, errors.ShapeError):
            raise
        raise errors.DynamicOutputShapeException(errors.text(
            f"{what}: how many entries there are depends on numbers that are not known here "
            f"({errors.user_line(3)})", cure=[
                "let the capture have sizes that depend on numbers: "
                "torch._dynamo.config.capture_dynamic_output_shape_ops = True",
                "make the pattern outside of the function, x.to_sparse() or x.coalesce(), and let "
                "the function reach it or build tensors by its indices",
                "or leave fullgraph=True away: the function runs as it is written then"])) from None


def is_of_each(indices: Tensor) -> bool:
    """Are integers those of one example of many, which have patterns of their own?"""
    return getattr(indices._payload, "hides", False)


def all_places(indices: Tensor, sizes: tuple) -> Distinct:
    """All places there are, as if each had an entry, and which of them each entry is at."""
    count = 1
    for n in sizes:
        count = count * n
    return Distinct(unkeyed(ops.arange(count, device=indices.device), sizes), keys(indices, sizes))


def sums(values: Tensor, found: Distinct) -> Tensor:
    """The values at distinct places: those of one place added up, truth values or-ed."""
    n = found.indices.shape[1]
    zeros = ops.zeros((n, *values.shape[1:]), dtype=values.dtype, device=values.device)
    if str(values.dtype) == "torch.bool":
        return zeros.long().index_add(0, found.inverse, values.long()) > 0
    return zeros.index_add(0, found.inverse, values)


def unbound(indices: Tensor) -> tuple[Tensor, Tensor]:
    """Rows and columns."""
    return kept(indices, "unbound", lambda: (
        fixed(indices[0].contiguous(), indices), fixed(indices[1].contiguous(), indices)))


def fixed(t: Tensor, *others: Tensor) -> Tensor:
    """Integers that nobody can write, for what is found out about them (`sparse_loops.py`) stays
    true; a copy where they are those of another tensor."""
    array = t._payload
    if type(array) is not np.ndarray:
        return t
    if any(np.may_share_memory(array, other._payload) for other in others):
        array = np.array(array)
    array.flags.writeable = False
    return make(array)


def places(t: Any) -> tuple[Tensor, Tensor]:
    """Rows and columns of the entries of a compressed tensor, as `Compressed.entries` says."""
    def find() -> tuple[Tensor, Tensor]:
        rows, cols = spread()
        given = t.compressed_part, t.plain_part
        return fixed(rows, *given), fixed(cols, *given)

    def spread() -> tuple[Tensor, Tensor]:
        inside_compressed(t)
        compressed, plain = t.compressed_part.long(), t.plain_part.long()
        n, batch = plain.shape[-1], compressed.shape[:-1]
        outer = compressed.shape[-1] - 1
        flat, count = compressed.reshape(-1, outer + 1), 1
        for size in batch:
            count = count * size
        lengths = (flat[:, 1:] - flat[:, :-1]).reshape(-1)
        if are_known(t.compressed_part) or count != 1:
            long = ops.arange(count * outer, device=plain.device).repeat_interleave(
                lengths, output_size=count * n)
        else:  # of one example of `vmap`: by functions whose sizes do not depend on numbers
            long = ops.searchsorted(
                flat[0, 1:].contiguous(), ops.arange(n, device=plain.device), right=True)
        short = plain.reshape(-1)
        step = ops.arange(count, device=plain.device).repeat_interleave(n)
        d = t.batch_dims
        sizes = t._payload.shape[d], t._payload.shape[d + 1]
        if t.blocked:
            high, wide = t.values_part.shape[d + 1], t.values_part.shape[d + 2]
        else:
            high = wide = 1
        rows, cols = (long, short) if t.by_rows else (short, long)
        if t.by_rows:
            cols = cols + step * (sizes[1] // wide)
        else:
            rows = rows + step * (sizes[0] // high)
        if not t.blocked:
            return rows, cols
        down, across = [ops.arange(size, device=plain.device) for size in (high, wide)]
        rows = (rows.reshape(-1, 1, 1) * high + down.reshape(1, -1, 1)).expand(-1, high, wide)
        cols = (cols.reshape(-1, 1, 1) * wide + across.reshape(1, 1, -1)).expand(-1, high, wide)
        return rows.reshape(-1), cols.reshape(-1)

    return kept_with(t, "places", find)
