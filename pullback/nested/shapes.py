"""Shapes of nested tensors: views of the values, and arithmetic on the integers.

A view keeps the ragged dim; its place may change (`transpose`).  Parts are taken along the batch
dim, and beginnings or ends of all parts along the ragged one.
"""

from __future__ import annotations

import math
from typing import Any

from .. import errors
from ..array import dtype as dt
from ..array.dims import wrap_dim, wrap_dims
from ..core.handle import Tensor
from ..parts.rules import rule, shown
from ..symbolic.queries import _check, _check_is_size
from ..table.packets import ops
from .ragged import Ragged, summed
from .tensor import NestedTensor, packed, wrapped


def refuse(t: NestedTensor, said: str, cure: str = NestedTensor.cure) -> Exception:
    return errors.RefusedValue(errors.text(f"{said} ({errors.user_line(3)})", shown(t), cure))


# views -------------------------------------------------------------------------------------


@rule(NestedTensor, "transpose.int")
def transpose(t: NestedTensor, dim0: int, dim1: int) -> NestedTensor:
    a, b = wrapped(t, dim0), wrapped(t, dim1)
    if a == b:
        return t
    if 0 in (a, b):
        raise refuse(t, "Transpose is not supported on the batch dimension for jagged NT")
    place = {a: b, b: a}.get(t.ragged_idx, t.ragged_idx)
    return t.with_values(t.values_part.transpose(a - 1, b - 1), place)


@rule(NestedTensor, "permute")
def permute(t: NestedTensor, dims: Any) -> NestedTensor:
    order = wrap_dims(dims, t.ndim, empty_is_all=False)
    if len(order) != t.ndim:
        raise errors.ShapeError(f"permute(): number of dimensions in the tensor input does not "
                                f"match the length of the desired ordering of dimensions: "
                                f"{t.ndim} and {len(order)} ({errors.user_line(2)})")
    if order[0]:
        raise refuse(t, "Permute is not supported on the batch dimension for jagged NT")
    return t.with_values(t.values_part.permute([d - 1 for d in order[1:]]),
                         order.index(t.ragged_idx))


@rule(NestedTensor, "unsqueeze")
def unsqueeze(t: NestedTensor, dim: int) -> NestedTensor:
    d = wrap_dim(dim, t.ndim + 1)
    if d == 0:
        raise refuse(t, "unsqueeze(): not supported for NestedTensor on dim=0")
    return t.with_values(t.values_part.unsqueeze(d - 1), t.ragged_idx + (d <= t.ragged_idx))


@rule(NestedTensor, "squeeze", "squeeze.dim", "squeeze.dims")
def squeeze(t: NestedTensor, dim: Any = None) -> NestedTensor:
    chosen = wrap_dims(dim, t.ndim, empty_is_all=dim is None)
    if dim is not None and 0 in chosen:
        raise refuse(t, "squeeze(): not supported for NestedTensor on dim=0")
    if dim is not None and t.ragged_idx in chosen:
        raise refuse(t, "squeeze(): not supported for NestedTensor on ragged dim")
    gone = [d for d in chosen if d not in (0, t.ragged_idx) and t.shape[d] == 1]
    if not gone:
        return t
    shift = sum(d < t.ragged_idx for d in gone)
    return t.with_values(t.values_part.squeeze([d - 1 for d in gone]), t.ragged_idx - shift)


def sizes_of_values(t: NestedTensor, sizes: Any, name: str) -> tuple[list, int]:
    """A shape, in which the ragged size or -1 stands for the ragged dim, as that of values."""
    sizes = list(sizes)
    marked = [d for d, n in enumerate(sizes) if isinstance(n, Ragged)]
    if not marked:
        marked = [d for d, n in enumerate(sizes) if d and n == -1]
    fits = len(marked) == 1 and len(sizes) > 1 and (
        sizes[0] == -1 or sizes[0] == t.count) and 0 not in marked
    if fits and isinstance(sizes[marked[0]], Ragged):
        fits = sizes[marked[0]] == t.about.size
    if not fits:
        raise refuse(t, f"{name}(): cannot view shape {tuple(t.shape)} as {sizes}",
                     "keep the batch dim, and write -1 or x.size(dim) for the ragged one")
    place = marked[0]
    before = sizes[1:place]
    own = t.shape[1:t.ragged_idx]
    if -1 not in before and math.prod(before) != math.prod(own) or -1 in before and (
            -1 in sizes[place + 1:]):
        raise refuse(t, f"{name}(): cannot view shape {tuple(t.shape)} as {sizes}",
                     "sizes in front of the ragged dim must have the same product as before")
    sizes = sizes[1:]
    sizes[place - 1] = t.values_part.shape[t.dense]
    return sizes, place


@rule(NestedTensor, "view", "_unsafe_view")
def view(t: NestedTensor, size: Any) -> NestedTensor:
    sizes, place = sizes_of_values(t, size, "view")
    return t.with_values(t.values_part.view(sizes), place)


@rule(NestedTensor, "reshape")
def reshape(t: NestedTensor, shape: Any) -> NestedTensor:
    sizes, place = sizes_of_values(t, shape, "reshape")
    return t.with_values(t.values_part.reshape(sizes), place)


@rule(NestedTensor, "view_as", "reshape_as")
def reshape_as(t: NestedTensor, other: Tensor) -> NestedTensor:
    return reshape(t, other.shape)


@rule(NestedTensor, "flatten.using_ints")
def flatten(t: NestedTensor, start_dim: int = 0, end_dim: int = -1) -> Any:
    a, b = wrapped(t, start_dim), wrapped(t, end_dim)
    if a == b:
        return t
    if a == 0 and b >= t.ragged_idx:
        if t.ragged_idx != 1 and b != t.ndim - 1:
            raise refuse(t, "flatten(): not supported for NestedTensor on ragged dim")
        if t.ragged_idx == 1:
            return packed(t).values_part.flatten(0, b - 1)
        return ops.cat([p.reshape(-1) for p in t.unbind()])
    if a <= t.ragged_idx <= b or a == 0:
        raise refuse(t, "flatten(): not supported for NestedTensor on ragged dim")
    return t.with_values(t.values_part.flatten(a - 1, b - 1),
                         t.ragged_idx - (b - a if b < t.ragged_idx else 0))


@rule(NestedTensor, "unflatten.int")
def unflatten(t: NestedTensor, dim: int, sizes: Any) -> NestedTensor:
    d = wrapped(t, dim)
    if d in (0, t.ragged_idx):
        raise refuse(t, "unflatten(): not supported for NestedTensor on the batch or ragged dim")
    return t.with_values(t.values_part.unflatten(d - 1, sizes),
                         t.ragged_idx + (len(sizes) - 1 if d < t.ragged_idx else 0))


@rule(NestedTensor, "expand", "broadcast_to")
def expand(t: Tensor, size: Any, implicit: bool = False) -> NestedTensor:
    if not isinstance(t, NestedTensor) or len(size) != t.ndim or size[0] not in (-1, t.count):
        raise refuse(t, f"expand(): cannot expand shape {tuple(t.shape)} to {list(size)}")
    at = size[t.ragged_idx]
    if not (isinstance(at, Ragged) and at == t.about.size or at == -1):
        raise refuse(t, "expand(): cannot expand the ragged dim")
    sizes = [-1 if d == t.dense else n for d, n in enumerate(size[1:])]
    return t.with_values(t.values_part.expand(sizes))


@rule(NestedTensor, "expand_as")
def expand_as(t: Tensor, other: Tensor) -> Any:
    if isinstance(t, NestedTensor):
        return expand(t, other.shape)
    from .elementwise import fitted

    values = fitted("expand_as", other, t) if t.ndim else t
    return other.with_values(values.expand(other.values_part.shape))


@rule(NestedTensor, "broadcast_tensors")
def broadcast_tensors(tensors: Any) -> list:
    from .elementwise import leading

    first = leading([v for v in tensors if isinstance(v, NestedTensor)])
    sizes = list(first.shape)
    for v in tensors:
        for d in range(1, v.ndim + 1):
            if sizes[-d] == 1 and not isinstance(v.shape[-d], Ragged):
                sizes[-d] = v.shape[-d]
    whole = expand(first, sizes)
    return [expand_as(v, whole) for v in tensors]


@rule(NestedTensor, "mT")
def turned(t: NestedTensor) -> NestedTensor:
    if t.ndim < 3:
        raise refuse(t, "Transpose is not supported on the batch dimension for jagged NT")
    return transpose(t, -2, -1)


@rule(NestedTensor, "mH", "adjoint")
def adjoint(t: NestedTensor) -> NestedTensor:
    return turned(t).conj()


# parts -------------------------------------------------------------------------------------


@rule(NestedTensor, "unbind.int")
def unbind(t: NestedTensor, dim: int = 0) -> list[Tensor]:
    d = wrapped(t, dim)
    if d:
        if d == t.ragged_idx:
            raise refuse(t, "unbind(): only supported for NestedTensor on dim=0")
        place = t.ragged_idx - (d < t.ragged_idx)
        return [t.with_values(v, place) for v in t.values_part.unbind(d - 1)]
    lengths = t.about.listed()
    if t.lengths_part is None:
        return list(t.values_part.split_with_sizes(lengths, t.dense))
    return [neighbours(t, start, n) for start, n in zip(t.about.starts.tolist(), lengths)]


@rule(NestedTensor, "select.int")
def select(t: NestedTensor, dim: int, index: Any) -> Tensor:
    d = wrapped(t, dim)
    if d == 0:
        return part(t, index)
    if d == t.ragged_idx:
        return at_each(t, index)
    return t.with_values(t.values_part.select(d - 1, index), t.ragged_idx - (d < t.ragged_idx))


def part(t: NestedTensor, index: Any) -> Tensor:
    """One part."""
    size = len(t)
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for dimension 0 with size {size} "
                         f"({errors.user_line(3)})")
    about = t.about
    start, length = about.starts[index].item(), (
        about.listed()[index] if about.plain else about.lengths[index].item())
    return neighbours(t, start, length)


def neighbours(t: NestedTensor, start: Any, length: Any) -> Tensor:
    """Elements along the ragged dim of the values."""
    if not (start.__class__ is int and length.__class__ is int):  # a capture read them from data
        for n in (start, length):
            _check_is_size(n)
        _check(start + length <= t.values_part.shape[t.dense])
    return t.values_part.narrow(t.dense, start, length)


def at_each(t: NestedTensor, index: int) -> Tensor:
    """The element at a place of every part."""
    about = t.about
    if about.plain and not -about.shortest() <= index < about.shortest():
        raise IndexError(f"index {index} is out of bounds for parts of which the shortest has size "
                         f"{about.shortest()} ({errors.user_line(3)})")
    places = about.starts + index if index >= 0 else about.starts + about.lengths + index
    out = t.values_part.index_select(t.dense, places)
    return out.movedim(t.dense, 0) if t.dense else out


@rule(NestedTensor, "slice.Tensor")
def slice_(t: NestedTensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1):
    d = wrapped(t, dim)
    if d == 0:
        numbers = range(len(t))[slice(start, end, step)]
        return t if len(numbers) == len(t) else (
            run_of_parts(t, numbers.start, len(numbers)) if step == 1 and len(numbers)
            else select_parts(t, ops.arange(*_range(numbers), device=t.offsets_part.device)))
    if d == t.ragged_idx:
        return slice_each(t, start, end, step)
    return t.with_values(ops.slice(t.values_part, d - 1, start, end, step))


def _range(numbers: range) -> tuple[int, int, int]:
    return numbers.start, numbers.stop if len(numbers) else numbers.start, numbers.step


def slice_each(t: NestedTensor, start: Any, end: Any, step: int) -> NestedTensor:
    """The same slice of every part, as a view of the values that has gaps."""
    if start in (None, 0) and step == 1 and (end is None or not isinstance(end, Ragged) and (
            end >= 2**62)) or isinstance(end, Ragged) and start in (None, 0) and step == 1:
        return t
    if step != 1:
        raise refuse(t, "slice(): steps are not supported for NestedTensor on ragged dim")
    own = t.about.lengths

    def place(n: Any, default: Tensor) -> Tensor:
        if n is None or isinstance(n, Ragged):
            return default
        return (own * 0 + n if n >= 0 else own + n).clamp(min=0).minimum(own)

    begins, ends = place(start, own * 0), place(end, own)
    starts = t.about.starts + begins
    return NestedTensor.make(t.values_part, ops.cat([starts, t.offsets_part[-1:]]),
                             (ends - begins).clamp(min=0), t.ragged_idx)


@rule(NestedTensor, "narrow")
def narrow(t: NestedTensor, dim: int, start: Any, length: Any) -> Tensor:
    d = wrapped(t, dim)
    if d == t.ragged_idx:
        about = t.about
        if about.plain and start + length > about.shortest():
            raise refuse(t, f"narrow(): start ({start}) + length ({length}) exceeds the size of "
                            f"the shortest part ({about.shortest()})",
                         f"x[:, {start}:{start + length}]")
        inner = ops.arange(length, device=t.offsets_part.device)
        places = (about.starts.unsqueeze(1) + start + inner).reshape(-1)
        out = t.values_part.index_select(t.dense, places).unflatten(t.dense, (t.count, length))
        return out.movedim(t.dense, 0) if t.dense else out
    if d == 0:
        if start < 0:
            start = start + t.count
        if start + length > t.count:
            raise refuse(t, f"start ({start}) + length ({length}) exceeds dimension size "
                            f"({t.count}).")
        return run_of_parts(t, start, length)
    return t.with_values(t.values_part.narrow(d - 1, start, length))


def run_of_parts(t: NestedTensor, first: int, count: int) -> NestedTensor:
    """Some neighbours."""
    offsets = t.offsets_part[first:first + count + 1]
    low, high = offsets[0].item(), offsets[-1].item()
    lengths = None if t.lengths_part is None else t.lengths_part[first:first + count]
    return NestedTensor.make(neighbours(t, low, high - low), offsets - low, lengths, t.ragged_idx)


def select_parts(t: NestedTensor, index: Tensor) -> NestedTensor:
    """Parts by their numbers."""
    about = t.about
    lengths = about.lengths.index_select(0, index)
    offsets = summed(lengths)
    shifts = about.starts.index_select(0, index) - offsets[:-1]
    each = ops.repeat_interleave(shifts, lengths)
    places = each + ops.arange(each.shape[0], device=each.device)
    return NestedTensor.make(t.values_part.index_select(t.dense, places), offsets, None,
                             t.ragged_idx)


@rule(NestedTensor, "index_select")
def index_select(t: NestedTensor, dim: int, index: Tensor) -> NestedTensor:
    d = wrapped(t, dim)
    if d == 0:
        return select_parts(t, index)
    if d == t.ragged_idx:
        raise refuse(t, "index_select(): not supported for NestedTensor on ragged dim")
    return t.with_values(t.values_part.index_select(d - 1, index))


@rule(NestedTensor, "split.Tensor")
def split(t: NestedTensor, split_size: int, dim: int = 0) -> tuple:
    d = wrapped(t, dim)
    if d == t.ragged_idx:
        raise refuse(t, "split(): not supported for NestedTensor on ragged dim")
    if d:
        return tuple([t.with_values(v) for v in t.values_part.split(split_size, d - 1)])
    size = len(t)
    sizes = [min(split_size, size - k) for k in range(0, size, split_size)]
    return split_with_sizes(t, sizes, 0)


@rule(NestedTensor, "split_with_sizes", "split.sizes")
def split_with_sizes(t: NestedTensor, split_sizes: Any, dim: int = 0) -> tuple:
    d = wrapped(t, dim)
    if d == t.ragged_idx:
        raise refuse(t, "split_with_sizes(): not supported for NestedTensor on ragged dim")
    if d:
        return tuple([t.with_values(v)
                      for v in t.values_part.split_with_sizes(split_sizes, d - 1)])
    if sum(split_sizes) != len(t):
        raise refuse(t, f"split_with_sizes expects split_sizes to sum exactly to {len(t)} (input "
                        f"tensor's size at dimension 0), but got split_sizes={list(split_sizes)}")
    found, first = [], 0
    for n in split_sizes:
        found.append(run_of_parts(t, first, n))
        first += n
    return tuple(found)


@rule(NestedTensor, "chunk")
def chunk(t: NestedTensor, chunks: int, dim: int = 0) -> tuple:
    d = wrapped(t, dim)
    if d == t.ragged_idx:
        raise refuse(t, "chunk(): not supported for NestedTensor on ragged dim")
    if d:
        return tuple([t.with_values(v) for v in t.values_part.chunk(chunks, d - 1)])
    return split(t, max(1, -(-len(t) // chunks)), 0)


# joining -------------------------------------------------------------------------------------


@rule(NestedTensor, "cat", "concat", "concatenate")
def cat(tensors: Any, dim: int = 0) -> NestedTensor:
    first = next(v for v in tensors if isinstance(v, NestedTensor))
    d = wrapped(first, dim)
    if any(not isinstance(v, NestedTensor) or v.ndim != first.ndim
           or v.ragged_idx != first.ragged_idx for v in tensors):
        raise refuse(first, "cat(): expected nested tensors with the same ragged dim")
    if d == 0:
        return join_batches([packed(v) for v in tensors])
    if d == first.ragged_idx:
        return join_parts([packed(v) for v in tensors])
    from .elementwise import operands

    flat, first = operands("cat", first, tuple(tensors))
    return first.with_values(ops.cat(list(flat), d - 1))


def join_batches(tensors: list[NestedTensor]) -> NestedTensor:
    """The parts of all tensors."""
    first = tensors[0]
    values = ops.cat([v.values_part for v in tensors], first.dense)
    lengths = ops.cat([v.about.lengths for v in tensors])
    return NestedTensor.make(values, summed(lengths), None, first.ragged_idx)


def join_parts(tensors: list[NestedTensor]) -> NestedTensor:
    """Parts that consist of the parts of all tensors."""
    first = tensors[0]
    values = ops.cat([v.values_part for v in tensors], first.dense)
    owners = ops.cat([v.about.numbers(v.values_part.shape[v.dense]) for v in tensors])
    order = ops.sort(owners, dim=0, stable=True)[1]
    offsets = tensors[0].offsets_part
    for v in tensors[1:]:
        offsets = offsets + v.offsets_part
    return NestedTensor.make(values.index_select(first.dense, order), offsets, None,
                             first.ragged_idx)


@rule(NestedTensor, "stack")
def stack(tensors: Any, dim: int = 0) -> NestedTensor:
    first = next(v for v in tensors if isinstance(v, NestedTensor))
    d = wrap_dim(dim, first.ndim + 1)
    if d == 0:
        raise refuse(first, "stack(): not supported for NestedTensor on dim=0")
    return cat([unsqueeze(v, d) if isinstance(v, NestedTensor) else v for v in tensors], d)


# indexing -------------------------------------------------------------------------------------


def getitem(t: NestedTensor, key: Any) -> Tensor:
    """`t[key]`: numbers, slices, None and Ellipsis; a tensor of numbers, or which says which."""
    keys = key if isinstance(key, tuple) else (key,)
    if len(keys) == 1 and isinstance(keys[0], Tensor) and keys[0].ndim != 0 or (
            len(keys) == 1 and isinstance(keys[0], list)):
        return _by_tensor(t, keys[0] if isinstance(keys[0], Tensor) else _tensor(
            keys[0], t.offsets_part.device))
    named = sum(k is not None and k is not Ellipsis for k in keys)
    if named > t.ndim:
        raise IndexError(f"too many indices for tensor of dimension {t.ndim} "
                         f"({errors.user_line(3)})")
    if Ellipsis not in [k for k in keys if not isinstance(k, Tensor)]:
        keys = (*keys, Ellipsis)
    out: Any = t
    d = 0
    for k in keys:
        if k is Ellipsis:
            d += t.ndim - named
        elif k is None:
            out, d = out.unsqueeze(d), d + 1
        elif isinstance(k, slice):
            if k != slice(None):
                out = ops.slice(out, d, k.start, k.stop, 1 if k.step is None else k.step)
            d += 1
        elif isinstance(k, Tensor) and k.ndim:
            out, d = ops.index_select(out, d, k), d + 1
        else:
            out = out.select(d, int(k) if isinstance(k, Tensor) else k)
    return out


def _tensor(values: list, device: Any) -> Tensor:
    from ..creation import tensor

    return tensor(values, device=device)


def _by_tensor(t: NestedTensor, index: Tensor) -> Tensor:
    if isinstance(index, NestedTensor):
        return masked_select(t, index)
    if index.dtype == dt.bool_:
        index = index.nonzero().reshape(-1)
    index = ops.where(index < 0, index + t.count, index)
    return select_parts(t, index)


@rule(NestedTensor, "masked_select")
def masked_select(t: Tensor, mask: Tensor) -> NestedTensor:
    """The elements that a mask keeps, part by part."""
    from .segments import segments

    first = t if isinstance(t, NestedTensor) else mask
    if not isinstance(mask, NestedTensor):
        mask = expand_as(mask, first)
    if not isinstance(t, NestedTensor):
        t = expand_as(t, first)
    t, mask = packed(t), packed(mask)
    if t.shape != mask.shape:
        raise refuse(t, f"masked_select(): shapes {tuple(t.shape)} and {tuple(mask.shape)} differ")
    dims = tuple(range(1, t.ndim))
    kept, s = segments(mask, dims)
    values = t.values_part.movedim(t.dense, 0) if t.dense else t.values_part
    flags = mask.values_part.movedim(t.dense, 0) if t.dense else mask.values_part
    return NestedTensor.make(values.masked_select(flags), summed(s.total(kept)))


def setitem(t: NestedTensor, key: Any, value: Any) -> None:
    """`t[key] = value`: parts, and slices of dense dims, are written through views."""
    if isinstance(key, NestedTensor):
        t.values_part.copy_(ops.where(key, value, t).values_part)
        return
    place = getitem(t, key)
    place.copy_(value) if isinstance(value, Tensor) else place.fill_(value)


@rule(NestedTensor, "index_put")
def index_put(t: NestedTensor, indices: Any, values: Tensor, accumulate: bool = False):
    """Indices (parts, places in the part, ...): places of the values."""
    indices = list(indices)
    if any(i is None for i in indices[:t.ragged_idx + 1]) or len(indices) <= t.ragged_idx:
        raise refuse(t, "index_put(): indices of the batch and the ragged dim are needed")
    own = t.about.starts[indices[0]] + indices[t.ragged_idx]
    inner = indices[1:]
    inner[t.dense] = own
    return t.with_values(t.values_part.index_put(inner, values, accumulate))


@rule(NestedTensor, "repeat_interleave.self_int", "repeat_interleave.self_Tensor")
def repeat_interleave(t: NestedTensor, repeats: Any, dim: Any = None, output_size: Any = None):
    if dim is None or wrapped(t, dim) in (0, t.ragged_idx):
        raise refuse(t, "repeat_interleave(): not supported for NestedTensor on this dim")
    return t.with_values(t.values_part.repeat_interleave(
        repeats, wrapped(t, dim) - 1, output_size=output_size))
