"""Shapes of sparse tensors: arithmetic on their integers, values follow."""

from __future__ import annotations

from ..parts.rules import rule
from ..table.packets import ops
from .elementwise import as_coo, like
from .tensor import Coo, Csc, Csr, SparseTensor


def expand(t: SparseTensor, shape: tuple) -> SparseTensor:
    """A tensor repeated along dims of size 1, and new ones in front."""
    coo = as_coo(t)
    indices, values = coo.indices_part, coo.values_part
    extra = len(shape) - t.ndim
    own = [*[1] * extra, *t.shape]
    rows = [*[ops.zeros_like(values[:, 0] if values.ndim > 1 else values).long()] * extra,
            *indices.unbind(0)]
    count = extra + coo.sparse_dim()
    for d in range(count):
        if own[d] != shape[d]:
            n = shape[d]
            rows = [r.repeat_interleave(n) for r in rows]
            values = values.repeat_interleave(n, 0)
            rows[d] = ops.arange(n).repeat(rows[d].shape[0] // n)
    values = values.expand(values.shape[0], *shape[count:])
    return like(t, Coo.make(ops.stack(rows), values, tuple(shape), False).coalesce())


@rule(SparseTensor, "t")
def t(x: SparseTensor):
    return transpose(x, 0, 1) if x.ndim == 2 else x


@rule(SparseTensor, "transpose.int")
def transpose(x: SparseTensor, dim0: int, dim1: int):
    a, b = dim0 % x.ndim, dim1 % x.ndim
    if a == b:
        return x
    shape = list(x.shape)
    shape[a], shape[b] = shape[b], shape[a]
    if isinstance(x, (Csr, Csc)) and {a, b} == {x.batch_dims, x.batch_dims + 1}:
        other = Csc if isinstance(x, Csr) else Csr
        return other.make(x.compressed_part, x.plain_part, x.values_part, tuple(shape))
    coo = as_coo(x)
    order = list(range(coo.sparse_dim()))
    if a < len(order) and b < len(order):
        order[a], order[b] = order[b], order[a]
        out = Coo.make(coo.indices_part[order], coo.values_part, tuple(shape), False)
    elif a >= len(order) and b >= len(order):
        out = coo.with_carrier(coo.values_part.transpose(a - len(order) + 1, b - len(order) + 1))
    else:
        return NotImplemented
    return out if isinstance(x, Coo) else like(x, out.coalesce())
