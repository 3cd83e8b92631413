"""Views, reductions and joins: what operators that move or fold elements become."""

from __future__ import annotations

from math import prod

from .builder import Builder, Unsupported, expand, permute
from .ir import Ref, contiguous
from .lower import dtype_code, shape_of
from .number import largest, real, varies


def view(b: Builder, ex: object, x: Ref, *args: object, **kw: object) -> Ref:
    return b.reshape(x, shape_of(ex))


def expanded(b: Builder, ex: object, x: Ref, *args: object, **kw: object) -> Ref:
    return expand(x, shape_of(ex))


def permuted(b: Builder, ex: object, x: Ref, dims: list[int]) -> Ref:
    return permute(x, [d % len(x.shape) for d in dims])


def transpose(b: Builder, ex: object, x: Ref, d0: int = 0, d1: int = 1) -> Ref:
    order = list(range(len(x.shape)))
    if order:
        d0, d1 = d0 % len(order), d1 % len(order)
        order[d0], order[d1] = order[d1], order[d0]
    return permute(x, order)


def t(b: Builder, ex: object, x: Ref) -> Ref:
    return permute(x, list(range(len(x.shape)))[::-1])


def mT(b: Builder, ex: object, x: Ref) -> Ref:
    return transpose(b, ex, x, -2, -1)


def same(b: Builder, ex: object, x: Ref) -> Ref:
    return x


def select(b: Builder, ex: object, x: Ref, dim: int, index: int) -> Ref:
    dim %= len(x.shape)
    index = index + x.shape[dim] if index < 0 else index
    return Ref(
        x.value,
        x.shape[:dim] + x.shape[dim + 1 :],
        x.offset + index * x.strides[dim],
        x.strides[:dim] + x.strides[dim + 1 :],
    )


def window(x: Ref, dim: int, start: int, length: int, step: int = 1) -> Ref:
    """Part of one dimension."""
    shape, strides = list(x.shape), list(x.strides)
    shape[dim], strides[dim] = length, strides[dim] * step
    offset = x.offset + (start * x.strides[dim] if length else 0)
    return Ref(x.value, tuple(shape), offset, tuple(strides))


def bounds(n: int, start: int | None, end: int | None) -> tuple[int, int]:
    """Start and end of a slice as Python counts them."""
    if varies(n, start, end):
        start, end = (_clipped(n, i) for i in (0 if start is None else start,
                                               n if end is None else end))
    else:
        start, end, _ = slice(start, end).indices(n)
    return start, max(start, end)


def _clipped(n: int, i: int) -> int:
    """An end of a slice, counted from the start and between 0 and n."""
    i = i + n if i < 0 else i
    return n if i >= n else 0 if i <= 0 else i


def sliced(b: Builder, ex: object, x: Ref, dim: int = 0, start: int | None = None,
           end: int | None = None, step: int = 1) -> Ref:
    dim %= len(x.shape)
    start, _ = bounds(x.shape[dim], start, end)
    return window(x, dim, start, shape_of(ex)[dim], step)


def narrow(b: Builder, ex: object, x: Ref, dim: int, start: int, length: int) -> Ref:
    return window(x, dim % len(x.shape), start + x.shape[dim] if start < 0 else start, length)


def split(b: Builder, ex: list, x: Ref, sizes: object, dim: int = 0) -> list[Ref]:
    dim %= len(x.shape)
    out, at = [], 0
    for e in ex:
        n = shape_of(e)[dim]
        out.append(window(x, dim, at, n))
        at += n
    return out


def unbind(b: Builder, ex: list, x: Ref, dim: int = 0) -> list[Ref]:
    return [select(b, e, x, dim, i) for i, e in enumerate(ex)]


def unfold(b: Builder, ex: object, x: Ref, dim: int, size: int, step: int) -> Ref:
    if not x.shape:
        raise Unsupported("unfold of a number")
    dim %= len(x.shape)
    windows = window(x, dim, 0, shape_of(ex)[dim], step)
    return Ref(x.value, (*windows.shape, size), x.offset, (*windows.strides, x.strides[dim]))


def as_strided(b: Builder, ex: object, x: Ref, size: list, stride: list,
                storage_offset: int | None = None) -> Ref:
    if x.offset or prod(x.shape) != x.value.numel:
        raise Unsupported("places of memory that a part of it was asked for")
    return Ref(x.value, shape_of(ex), storage_offset or 0, tuple(stride))


def diagonal(b: Builder, ex: object, x: Ref, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Ref:
    rank = len(x.shape)
    dim1, dim2 = dim1 % rank, dim2 % rank
    start = x.offset + (offset * x.strides[dim2] if offset > 0 else -offset * x.strides[dim1])
    keep = [d for d in range(rank) if d not in (dim1, dim2)]
    shape = shape_of(ex)
    if prod(shape) == 0:
        return b.full(shape, 0, dtype_code(ex))
    return Ref(
        x.value,
        shape,
        start,
        tuple(x.strides[d] for d in keep) + (x.strides[dim1] + x.strides[dim2],),
    )


# ---- reductions -------------------------------------------------------------------------------


def as_dims(dim: object) -> list[int] | None:
    """A dim argument as a list; None and [] mean all."""
    if dim is None or dim == []:
        return None
    return [dim] if isinstance(dim, int) else list(dim)


def reduction(op: str):
    def rule(b: Builder, ex: object, x: Ref, dim: object = None, keepdim: bool = False,
             **kw: object) -> Ref:
        if not isinstance(dim, (int, list, type(None))) or isinstance(dim, bool):
            raise Unsupported("named dims")
        t = dtype_code(ex)
        if op in ("max", "min") and x.dtype in "bu":
            raise Unsupported("max of bytes")
        if op == "prod" and t in "iu":
            raise Unsupported("product of small integers")
        if op in ("any", "all"):
            return b.reduce(op, x, as_dims(dim), keepdim, "b")
        return b.reduce(op, x, as_dims(dim), keepdim, t)

    return rule


def mean_of(b: Builder, x: Ref, dims: list[int] | None, keepdim: bool, t: str) -> Ref:
    total = b.reduce("sum", x, dims, keepdim, t)
    n = prod(x.shape[d] for d in (range(len(x.shape)) if dims is None else dims))
    return (
        b.pointwise("mul", total, 1.0 / n, dtype=t)
        if n and _exact(n)
        else b.pointwise("div", total, real(n), dtype=t)
    )


def _exact(n: int) -> bool:
    """Powers of two: multiplying by the inverse is the same as dividing."""
    return not varies(n) and n & (n - 1) == 0


def mean(
    b: Builder, ex: object, x: Ref, dim: object = None, keepdim: bool = False, dtype: object = None
) -> Ref:
    return mean_of(b, x, as_dims(dim), keepdim, dtype_code(ex))


def moments(
    b: Builder, x: Ref, dims: list[int] | None, correction: float, t: str
) -> tuple[Ref, Ref]:
    """Mean and variance with kept dimensions."""
    mean = mean_of(b, x, dims, True, t)
    d = b.pointwise("sub", x, mean, dtype=t)
    total = b.reduce("sum", b.pointwise("mul", d, d, dtype=t), dims, True, t)
    n = prod(x.shape[d] for d in (range(len(x.shape)) if dims is None else dims)) - correction
    return mean, b.pointwise("div", total, real(largest(n, 0)), dtype=t)


def _var_args(dim: object, correction: object, kw: dict) -> tuple[list[int] | None, float]:
    c = kw.get("correction", correction)
    if isinstance(dim, bool):
        return None, float(dim)
    if isinstance(correction, bool):
        return as_dims(dim), float(correction)
    return as_dims(dim), 1.0 if c is None else float(c)


def var(root: bool):
    def rule(b: Builder, ex: object, x: Ref, dim: object = None, correction: object = None,
             keepdim: bool = False, **kw: object) -> Ref:
        dims, c = _var_args(dim, correction, kw)
        keepdim = kw.get("keepdim", keepdim)
        t = dtype_code(ex)
        _, var = moments(b, x, dims, c, t)
        if root:
            var = b.pointwise("sqrt", var, dtype=t)
        return b.reshape(var, shape_of(ex))

    return rule


def var_mean(b: Builder, ex: list, x: Ref, dim: object = None, correction: object = None,
             keepdim: bool = False, **kw: object) -> list[Ref]:
    dims, c = _var_args(dim, correction, kw)
    mean, var = moments(b, x, dims, c, dtype_code(ex[0]))
    return [b.reshape(var, shape_of(ex[0])), b.reshape(mean, shape_of(ex[1]))]


# ---- joins ------------------------------------------------------------------------------------


def cat(b: Builder, ex: object, parts: list[Ref], dim: int = 0) -> Ref:
    """Each part is stored into its place of one buffer."""
    shape, t = shape_of(ex), dtype_code(ex)
    if not prod(shape):
        return b.full(shape, 0, t)
    dim = dim % len(shape)
    parts = [p for p in parts if len(p.shape) == len(shape) and p.shape[dim]]
    return join(b, [p if p.dtype == t else b.cast(p, t) for p in parts], dim)


def join(b: Builder, parts: list[Ref], dim: int) -> Ref:
    """Parts side by side along one dimension."""
    kept = [p for p in parts if prod(p.shape)]
    if not kept:
        shape = list(parts[0].shape)
        shape[dim] = sum(p.shape[dim] for p in parts)
        return b.full(tuple(shape), 0, parts[0].dtype)
    parts = kept
    if len(parts) == 1:
        return parts[0]
    shape = list(parts[0].shape)
    shape[dim] = sum(p.shape[dim] for p in parts)
    at, places = 0, []
    strides = contiguous(tuple(shape))
    for p in parts:
        places.append((p, at * strides[dim], strides))
        at += p.shape[dim]
    return b.join(tuple(shape), parts[0].dtype, places)


def slice_scatter(b: Builder, ex: object, x: Ref, src: Ref, dim: int = 0, start: int | None = None,
                  end: int | None = None, step: int = 1) -> Ref:
    dim %= len(x.shape)
    start, end = bounds(x.shape[dim], start, end)
    if src.dtype != x.dtype:
        src = b.cast(src, x.dtype)
    if step < 1 or src.shape[dim] != len(range(start, end, step)):
        raise Unsupported("a slice that does not fit: its kernel says so")
    if step != 1:
        return _between(b, x, src, dim, start, step)
    return join(b, [window(x, dim, 0, start), src, window(x, dim, end, x.shape[dim] - end)], dim)


def _between(b: Builder, x: Ref, src: Ref, dim: int, start: int, step: int) -> Ref:
    """`src` at every `step`-th place from `start` on; what lies between stays."""
    size, count = x.shape[dim], src.shape[dim]
    if step > 8 or not prod(src.shape):
        raise Unsupported("slice_scatter with a long step")
    past = min(size, start + count * step)
    parts = [(window(x, dim, 0, start), 0, 1), (src, start, step)]
    for first in range(start + 1, min(start + step, past)):
        parts.append((window(x, dim, first, -(-(past - first) // step), step), first, step))
    parts.append((window(x, dim, past, size - past), past, 1))
    strides = contiguous(x.shape)
    return b.join(x.shape, x.dtype, [
        (part, at * strides[dim], (*strides[:dim], strides[dim] * by, *strides[dim + 1:]))
        for part, at, by in parts if prod(part.shape)])


def select_scatter(b: Builder, ex: object, x: Ref, src: Ref, dim: int, index: int) -> Ref:
    dim %= len(x.shape)
    index = index + x.shape[dim] if index < 0 else index
    one = Ref(
        src.value,
        src.shape[:dim] + (1,) + src.shape[dim:],
        src.offset,
        src.strides[:dim] + (0,) + src.strides[dim:],
    )
    return slice_scatter(b, ex, x, one, dim, index, index + 1)


def diagonal_scatter(b: Builder, ex: object, x: Ref, src: Ref, offset: int = 0, dim1: int = 0,
                      dim2: int = 1) -> Ref:
    """The rows that the diagonal crosses choose between it and what was there."""
    rank, length = len(x.shape), src.shape[-1]
    dim1, dim2 = dim1 % rank, dim2 % rank
    if not prod(src.shape):
        return x
    if src.dtype != x.dtype:
        src = b.cast(src, x.dtype)
    first = max(0, -offset)
    rows = window(x, dim1, first, length)
    others = iter(src.strides[:-1])
    strides = [src.strides[-1] if d == dim1 else 0 if d == dim2 else next(others)
               for d in range(rank)]
    values = Ref(src.value, rows.shape, src.offset, tuple(strides))
    row, column = b.iota(rows.shape, dim1), b.iota(rows.shape, dim2)
    place = b.pointwise("add", row, max(offset, 0), dtype="l")
    here = b.pointwise("eq", column, place, dtype="b", ct="l")
    new = b.pointwise("where", here, values, rows, dtype=x.dtype)
    left = x.shape[dim1] - first - length
    return join(b, [window(x, dim1, 0, first), new, window(x, dim1, first + length, left)], dim1)


def diagonal_backward(b: Builder, ex: object, g: Ref, sizes: list, offset: int, dim1: int,
                       dim2: int) -> Ref:
    zero = b.full(shape_of(ex), 0.0, g.dtype)
    return diagonal_scatter(b, ex, zero, g, offset, dim1, dim2)


def slice_backward(
    b: Builder, ex: object, g: Ref, sizes: list, dim: int, start: int, end: int, step: int
) -> Ref:
    return slice_scatter(b, ex, b.full(shape_of(ex), 0.0, g.dtype), g, dim, start, end, step)


def select_backward(b: Builder, ex: object, g: Ref, sizes: list, dim: int, index: int) -> Ref:
    return select_scatter(b, ex, b.full(shape_of(ex), 0.0, g.dtype), g, dim, index)


def pad(b: Builder, ex: object, x: Ref, pad: list[int], value: float = 0) -> Ref:
    for i in range(len(pad) // 2):
        dim = len(x.shape) - 1 - i
        cut = [max(0, -n) for n in pad[2 * i : 2 * i + 2]]  # negative: less on that side
        if any(cut):
            x = window(x, dim, cut[0], max(0, x.shape[dim] - sum(cut)))
        sides = []
        for n in (max(0, n) for n in pad[2 * i : 2 * i + 2]):
            side = x.shape[:dim] + (n,) + x.shape[dim + 1 :]
            sides.append(b.full(side, value, x.dtype))
        x = join(b, [sides[0], x, sides[1]], dim)
    return x


def flip(b: Builder, ex: object, x: Ref, dims: list[int]) -> Ref:
    strides, offset = list(x.strides), x.offset
    for d in {d % max(1, len(x.shape)) for d in dims if x.shape}:
        offset += strides[d] * max(0, x.shape[d] - 1)
        strides[d] = -strides[d]
    return b.copy(Ref(x.value, x.shape, offset, tuple(strides)))


def repeat(b: Builder, ex: object, x: Ref, repeats: list[int]) -> Ref:
    shape = shape_of(ex)
    if not prod(shape):
        raise Unsupported("nothing repeated")
    lead = len(repeats) - len(x.shape)
    sizes = (1,) * lead + x.shape
    strides = (0,) * lead + x.strides
    both = tuple(n for pair in zip(repeats, sizes) for n in pair)
    steps = tuple(s for step in strides for s in (0, step))
    return b.reshape(Ref(x.value, both, x.offset, steps), shape)


def stack(b: Builder, ex: object, parts: list[Ref], dim: int = 0) -> Ref:
    shape = shape_of(ex)
    dim %= len(shape)
    one = [
        Ref(
            p.value,
            p.shape[:dim] + (1,) + p.shape[dim:],
            p.offset,
            p.strides[:dim] + (0,) + p.strides[dim:],
        )
        for p in parts
    ]
    return cat(b, ex, one, dim)
