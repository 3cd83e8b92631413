"""Operators of nested tensors in the strided layout."""

from __future__ import annotations

import math
from typing import Any

from .. import errors
from ..array.dims import wrap_dim, wrap_dims
from ..core.handle import Tensor
from ..parts.rules import rule, shown
from ..table.packets import ops
from .strided import Irregular, StridedNested, each, of_parts, parts_of
from .whole import whole


def refuse(t: StridedNested, said: str) -> Exception:
    return errors.RefusedValue(errors.text(f"{said} ({errors.user_line(3)})", shown(t), t.cure))


def inner(t: StridedNested, dim: int, name: str) -> int:
    """A dim of the parts."""
    d = wrap_dim(dim, t.ndim)
    if d == 0:
        raise refuse(t, f"{name}(): not supported on dim 0 of a nested tensor")
    return d - 1


# the buffer ---------------------------------------------------------------------------------------


def elements(t: StridedNested) -> Tensor:
    """The elements of all parts."""
    return t.buffer_part


whole(StridedNested, "sum", elements)
whole(StridedNested, "mean", elements)
whole(StridedNested, "prod", elements)
whole(StridedNested, "max", elements)
whole(StridedNested, "min", elements)
whole(StridedNested, "any", elements)
whole(StridedNested, "all", elements)
whole(StridedNested, "median", elements)
whole(StridedNested, "count_nonzero", elements)


@rule(StridedNested, "alias", "contiguous")
def alias(t: StridedNested, memory_format: Any = None) -> StridedNested:
    return t.with_carrier(ops.alias(t.buffer_part))


@rule(StridedNested, "detach")
def detach(t: StridedNested) -> StridedNested:
    return t.with_carrier(t.buffer_part.detach())


@rule(StridedNested, "clone")
def clone(t: StridedNested, memory_format: Any = None) -> StridedNested:
    return t.with_carrier(t.buffer_part.clone())


@rule(StridedNested, "copy_")
def copy_(t: Any, source: Any, non_blocking: bool = False) -> Any:
    if not isinstance(t, StridedNested) or not isinstance(source, StridedNested) or (
            t.sizes != source.sizes):
        raise refuse(t, "copy_ only supports tensors that are the same size for Nested "
                        "implementations")
    t.buffer_part.copy_(source.buffer_part)
    return t


@rule(StridedNested, "fill.Tensor")
def fill(t: StridedNested, value: Tensor) -> StridedNested:
    return t.with_carrier(ops.fill(t.buffer_part, value))


@rule(StridedNested, "equal")
def equal(a: Any, b: Any) -> bool:
    return isinstance(a, StridedNested) and a.is_same_size(b) and (
        ops.equal(a.buffer_part, b.buffer_part))


@rule(StridedNested, "allclose")
def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False):
    return isinstance(a, StridedNested) and a.is_same_size(b) and (
        ops.allclose(a.buffer_part, b.buffer_part, rtol, atol, equal_nan))


@rule(StridedNested, "is_same_size")
def is_same_size(a: Any, b: Any) -> bool:
    return isinstance(a, StridedNested) and a.is_same_size(b)


@rule(StridedNested, "dropout")
def dropout(t: StridedNested, p: float, train: bool) -> StridedNested:
    return t.with_carrier(ops.dropout(t.buffer_part, p, train))


@rule(StridedNested, "native_dropout")
def native_dropout(t: StridedNested, p: float, train: bool | None = None) -> tuple:
    out, mask = ops.native_dropout(t.buffer_part, p, train)
    return t.with_carrier(out), t.with_carrier(mask)


def last(t: StridedNested, count: int = 1) -> list:
    """The last sizes, which all parts must have in common."""
    found = list(t.shape[t.ndim - count:])
    if any(isinstance(n, Irregular) for n in found):
        raise refuse(t, "Expected all tensors in nested tensor to have the same trailing "
                        f"dimension, instead sizes are: {[list(s) for s in t.sizes]}")
    return found


def resized(t: StridedNested, rows: Tensor) -> StridedNested:
    """Parts with another last dim."""
    width = rows.shape[-1]
    return StridedNested.make(rows.reshape(-1), tuple([(*s[:-1], width) for s in t.sizes]))


@rule(StridedNested, "linear")
def linear(t: Tensor, weight: Tensor, bias: Tensor | None = None) -> StridedNested:
    if not isinstance(t, StridedNested):
        return NotImplemented
    rows = t.buffer_part.reshape(-1, *last(t))
    return resized(t, ops.linear(rows, weight, bias))


@rule(StridedNested, "embedding")
def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> StridedNested:
    if isinstance(weight, StridedNested):
        return NotImplemented
    rows = ops.embedding(weight, indices.buffer_part, padding_idx, scale_grad_by_freq, sparse)
    return StridedNested.make(rows.reshape(-1),
                              tuple([(*s, weight.shape[1]) for s in indices.sizes]))


@rule(StridedNested, "layer_norm")
def layer_norm(t: StridedNested, normalized_shape: Any, weight: Any = None, bias: Any = None,
               eps: float = 1e-5, cudnn_enable: bool = True) -> StridedNested:
    shape = last(t, len(normalized_shape))
    rows = t.buffer_part.reshape(-1, *shape)
    out = ops.layer_norm(rows, normalized_shape, weight, bias, eps)
    return t.with_carrier(out.reshape(-1))


@rule(StridedNested, "native_layer_norm")
def native_layer_norm(t: StridedNested, normalized_shape: Any, weight: Any, bias: Any,
                      eps: float) -> tuple:
    rows = t.buffer_part.reshape(-1, *last(t, len(normalized_shape)))
    out, *rest = ops.native_layer_norm(rows, normalized_shape, weight, bias, eps)
    return t.with_carrier(out.reshape(-1)), *[stat.reshape(-1) for stat in rest]


@rule(StridedNested, "rms_norm")
def rms_norm(t: StridedNested, normalized_shape: Any, weight: Any = None, eps: Any = None):
    rows = t.buffer_part.reshape(-1, *last(t, len(normalized_shape)))
    return t.with_carrier(ops.rms_norm(rows, normalized_shape, weight, eps).reshape(-1))


# parts --------------------------------------------------------------------------------------------


@rule(StridedNested, "unbind.int")
def unbind(t: StridedNested, dim: int = 0) -> list:
    if wrap_dim(dim, t.ndim):
        raise refuse(t, "NestedTensor can only be unbound along dimension 0")
    return parts_of(t)


@rule(StridedNested, "select.int")
def select(t: StridedNested, dim: int, index: int) -> Tensor:
    d = wrap_dim(dim, t.ndim)
    if d:
        return each(t, lambda p: p.select(d - 1, index))
    if not -len(t) <= index < len(t):
        raise IndexError(f"index {index} is out of bounds for dimension 0 with size {len(t)} "
                         f"({errors.user_line(2)})")
    i = index % len(t)
    start = sum([math.prod(s) for s in t.sizes[:i]])
    return t.buffer_part.narrow(0, start, math.prod(t.sizes[i])).view(t.sizes[i])


def some(t: StridedNested, numbers: range) -> StridedNested:
    """Parts by their numbers."""
    if numbers.step == 1 and len(numbers):
        counts = [math.prod(s) for s in t.sizes]
        start = sum(counts[:numbers.start])
        return StridedNested.make(
            t.buffer_part.narrow(0, start, sum(counts[numbers.start:numbers.stop])),
            t.sizes[numbers.start:numbers.stop])
    parts = parts_of(t)
    return of_parts([parts[i] for i in numbers], t.dtype)


@rule(StridedNested, "slice.Tensor")
def slice_(t: StridedNested, dim: int = 0, start: Any = None, end: Any = None, step: int = 1):
    d = wrap_dim(dim, t.ndim)
    if d == 0:
        return some(t, range(len(t))[slice(start, end, step)])
    return each(t, lambda p: ops.slice(p, d - 1, start, end, step))


@rule(StridedNested, "narrow")
def narrow(t: StridedNested, dim: int, start: int, length: int) -> StridedNested:
    d = wrap_dim(dim, t.ndim)
    if d == 0:
        return some(t, range(start % max(len(t), 1), start % max(len(t), 1) + length))
    return each(t, lambda p: p.narrow(d - 1, start, length))


@rule(StridedNested, "index_select")
def index_select(t: StridedNested, dim: int, index: Tensor) -> StridedNested:
    d = wrap_dim(dim, t.ndim)
    if d:
        return each(t, lambda p: p.index_select(d - 1, index))
    parts = parts_of(t)
    return of_parts([parts[i] for i in index.tolist()], t.dtype)


def _pieces(t: StridedNested, sizes: list[int]) -> tuple:
    found, first = [], 0
    for n in sizes:
        found.append(some(t, range(first, first + n)))
        first += n
    return tuple(found)


@rule(StridedNested, "chunk")
def chunk(t: StridedNested, chunks: int, dim: int = 0) -> tuple:
    d = wrap_dim(dim, t.ndim)
    return split(t, max(1, -(-len(t) // chunks)), 0) if d == 0 else each(
        t, lambda p: p.chunk(chunks, d - 1))


@rule(StridedNested, "split.Tensor")
def split(t: StridedNested, split_size: int, dim: int = 0) -> tuple:
    d = wrap_dim(dim, t.ndim)
    if d:
        return each(t, lambda p: p.split(split_size, d - 1))
    return _pieces(t, [min(split_size, len(t) - k) for k in range(0, len(t), split_size)])


@rule(StridedNested, "split_with_sizes", "split.sizes")
def split_with_sizes(t: StridedNested, split_sizes: Any, dim: int = 0) -> tuple:
    d = wrap_dim(dim, t.ndim)
    return each(t, lambda p: p.split_with_sizes(split_sizes, d - 1)) if d else _pieces(
        t, list(split_sizes))


@rule(StridedNested, "stack")
def stack(tensors: Any, dim: int = 0) -> StridedNested:
    first = next(v for v in tensors if isinstance(v, StridedNested))
    d = wrap_dim(dim, first.ndim + 1)
    if d == 0:
        raise refuse(first, "stack(): not supported for NestedTensor on dim=0")
    return cat([unsqueeze(v, d) if isinstance(v, StridedNested) else v.unsqueeze(d)
                for v in tensors], d)


@rule(StridedNested, "constant_pad_nd")
def constant_pad_nd(t: StridedNested, pad: Any, value: Any = 0) -> StridedNested:
    return each(t, lambda p: ops.constant_pad_nd(p, pad, value))


@rule(StridedNested, "cat", "concat", "concatenate")
def cat(tensors: Any, dim: int = 0) -> StridedNested:
    first = next(v for v in tensors if isinstance(v, StridedNested))
    d = wrap_dim(dim, first.ndim)
    if d == 0:
        columns = [parts_of(v) if isinstance(v, StridedNested) else list(v.unbind(0))
                   for v in tensors]
        return of_parts([p for column in columns for p in column])
    columns = [parts_of(v) if isinstance(v, StridedNested) else list(v.unbind(0)) for v in tensors]
    if any(len(c) != len(first) for c in columns):
        raise refuse(first, "cat(): expected as many parts in all tensors")
    return of_parts([ops.cat(list(row), d - 1) for row in zip(*columns)])


# shapes -------------------------------------------------------------------------------------------


@rule(StridedNested, "transpose.int")
def transpose(t: StridedNested, dim0: int, dim1: int) -> StridedNested:
    a, b = wrap_dim(dim0, t.ndim), wrap_dim(dim1, t.ndim)
    if a == b:
        return t
    if 0 in (a, b):
        raise refuse(t, "Nested tensor dimension 0 cannot be transposed")
    return each(t, lambda p: p.transpose(a - 1, b - 1))


@rule(StridedNested, "permute")
def permute(t: StridedNested, dims: Any) -> StridedNested:
    order = wrap_dims(dims, t.ndim, empty_is_all=False)
    if order[0]:
        raise refuse(t, "Nested tensor dimension 0 cannot be permuted")
    return each(t, lambda p: p.permute([d - 1 for d in order[1:]]))


@rule(StridedNested, "mT")
def turned(t: StridedNested) -> StridedNested:
    return transpose(t, -2, -1)


@rule(StridedNested, "mH", "adjoint")
def adjoint(t: StridedNested) -> StridedNested:
    return transpose(t, -2, -1).conj()


@rule(StridedNested, "unsqueeze")
def unsqueeze(t: StridedNested, dim: int) -> StridedNested:
    d = wrap_dim(dim, t.ndim + 1)
    if d == 0:
        raise refuse(t, "For nested tensors, squeezing or unsqueezing dimension 0 is not supported")
    return each(t, lambda p: p.unsqueeze(d - 1))


@rule(StridedNested, "squeeze", "squeeze.dim", "squeeze.dims")
def squeeze(t: StridedNested, dim: Any = None) -> StridedNested:
    if dim is None:
        dims = [d for d in range(t.ndim - 1) if all(s[d] == 1 for s in t.sizes)]
    else:
        given = [dim] if isinstance(dim, int) else dim
        dims = [inner(t, d, "squeeze") for d in given]
    dims = [d for d in dims if all(s[d] == 1 for s in t.sizes)]
    return each(t, lambda p: p.squeeze(dims)) if dims else t


@rule(StridedNested, "view", "reshape", "_unsafe_view")
def reshape(t: StridedNested, size: Any) -> StridedNested:
    if len(size) < 2 or size[0] not in (-1, len(t)):
        raise refuse(t, f"For now nested view and reshape do not change the batch dim: "
                        f"{list(size)}")
    many = list(size[1:]).count(-1) > 1

    def one(p: Tensor) -> Tensor:
        # several -1: each stands for the size that the part had there
        own = [p.shape[d] if n == -1 and many and d < p.ndim else n for d, n in enumerate(size[1:])]
        own = [p.shape[d] if isinstance(n, Irregular) else n for d, n in enumerate(own)]
        try:
            return p.reshape(own)
        except RuntimeError:
            raise refuse(t, f"shape '{list(size)}' is invalid for input of size {p.numel()}"
                         ) from None

    return each(t, one)


@rule(StridedNested, "flatten.using_ints")
def flatten(t: StridedNested, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    a, b = wrap_dim(start_dim, t.ndim), wrap_dim(end_dim, t.ndim)
    if a == 0:
        return t.buffer_part.reshape(-1) if b == t.ndim - 1 else each(
            t, lambda p: p) if b == 0 else ops.cat([p.flatten(0, b - 1) for p in parts_of(t)])
    return each(t, lambda p: p.flatten(a - 1, b - 1))


@rule(StridedNested, "unflatten.int")
def unflatten(t: StridedNested, dim: int, sizes: Any) -> StridedNested:
    d = inner(t, dim, "unflatten")
    return each(t, lambda p: p.unflatten(d, sizes))


# products -----------------------------------------------------------------------------------------


@rule(StridedNested, "matmul", "bmm", "linalg_matmul")
def matmul(a: Tensor, b: Tensor) -> StridedNested:
    if isinstance(a, StridedNested) and not isinstance(b, StridedNested) and b.ndim == 2:
        return resized(a, ops.matmul(a.buffer_part.reshape(-1, *last(a)), b))
    return pairs("matmul", a, b, ops.matmul)


def pairs(name: str, a: Tensor, b: Tensor, function: Any) -> StridedNested:
    """A function of the parts of two tensors; a dense one has a row for each part."""
    first = a if isinstance(a, StridedNested) else b
    columns = []
    for v in (a, b):
        if isinstance(v, StridedNested):
            columns.append(parts_of(v))
        elif v.ndim == first.ndim and v.shape[0] in (1, len(first)):
            columns.append([v[i if v.shape[0] > 1 else 0] for i in range(len(first))])
        else:
            columns.append([v] * len(first))
    if len(columns[0]) != len(columns[1]):
        raise refuse(first, f"{name}: expected as many parts in both, got {len(columns[0])} and "
                            f"{len(columns[1])}")
    return of_parts([function(x, y) for x, y in zip(*columns)], first.dtype)


@rule(StridedNested, "scaled_dot_product_attention")
def attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None,
              dropout_p: float = 0.0, is_causal: bool = False, scale: Any = None,
              enable_gqa: bool = False) -> StridedNested:
    first = next(v for v in (query, key, value) if isinstance(v, StridedNested))
    columns = [parts_of(v) if isinstance(v, StridedNested) else list(v.unbind(0))
               for v in (query, key, value)]
    masks = [None] * len(first) if attn_mask is None else (
        list(attn_mask.unbind(0)) if attn_mask.ndim == first.ndim else [attn_mask] * len(first))
    found = [ops.scaled_dot_product_attention(
        q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), None if m is None else m.unsqueeze(0),
        dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa).squeeze(0)
        for q, k, v, m in zip(*columns, masks)]
    return of_parts(found)


# dense tensors ------------------------------------------------------------------------------------


@rule(StridedNested, "to_padded_tensor")
def to_padded(t: StridedNested, padding: float, output_size: Any = None) -> Tensor:
    high = [max(column) for column in zip(*t.sizes)]
    wanted = high if output_size is None else list(output_size)[1:]
    if len(wanted) != t.ndim - 1 or any(n < m for n, m in zip(wanted, high)):
        raise refuse(t, "Value in output_size is less than NestedTensor padded size. Truncation is "
                        "not supported.")
    rows = []
    for p in parts_of(t):
        pad = [n for d in range(p.ndim - 1, -1, -1) for n in (0, wanted[d] - p.shape[d])]
        rows.append(ops.constant_pad_nd(p, pad, padding))
    return ops.stack(rows) if rows else t.buffer_part.new_zeros((0,))


def from_padded(padded: Tensor, sizes: list, heads_inside: bool = False) -> StridedNested:
    """The beginnings of rows that have these sizes; (batch, heads, length, width) becomes (length,
    heads * width) for each part, if asked for."""
    if heads_inside:
        padded = padded.transpose(1, 2).flatten(2)
    rows = []
    for row, size in zip(padded.unbind(0), sizes):
        for d, n in enumerate(size):
            row = row.narrow(d, 0, n)
        rows.append(row)
    return of_parts(rows, padded.dtype)


def from_mask(t: Tensor, mask: Tensor, check: bool = True) -> StridedNested:
    """The rows (dim 1) of each example that a mask keeps: its first ones."""
    if mask.ndim != 2 or tuple(mask.shape) != tuple(t.shape[:2]):
        raise errors.ShapeError(errors.text(
            f"Expected mask to be of shape {list(t.shape[:2])} ({errors.user_line(3)})",
            [shown(t), shown(mask)]))
    lengths = mask.sum(1).tolist()
    if check and not is_left_aligned(mask):
        raise errors.RefusedValue(f"Mask must be left-aligned without gaps ({errors.user_line(3)})")
    return from_padded(t, [[n] for n in lengths])


def is_left_aligned(mask: Tensor) -> bool:
    """Are the elements that a mask keeps the first of each row?"""
    return not bool((mask[:, 1:] & ~mask[:, :-1]).any())


def from_buffer(buffer: Tensor, sizes: Tensor, strides: Tensor, offsets: Tensor) -> StridedNested:
    """Parts that lie in a buffer."""
    rows, steps, starts = [tuple(s) for s in sizes.tolist()], strides.tolist(), offsets.tolist()
    at = 0
    for size, step, start in zip(rows, steps, starts):
        if start != at or step != [math.prod(size[d + 1:]) for d in range(len(size))]:
            return of_parts([buffer.as_strided(n, s, k) for n, s, k in zip(rows, steps, starts)])
        at += math.prod(size)
    return StridedNested.make(buffer if at == buffer.shape[0] else buffer.narrow(0, 0, at),
                              tuple(rows))


@rule(StridedNested, "masked_select")
def masked_select(t: Tensor, mask: Tensor) -> StridedNested:
    """The elements of each part that its mask keeps."""
    return pairs("masked_select", t, mask, ops.masked_select)
