"""Indexing and matrix products: what gathers, scatters and contractions become."""

from __future__ import annotations

from math import prod

from .builder import Builder, Unsupported, broadcast, expand, permute
from .ir import Ref
from .lower import dtype_code, shape_of


def _whole(b: Builder, index: Ref) -> Ref:
    """An index as int64."""
    if index.dtype not in "li":
        raise Unsupported("index type")
    return index if index.dtype == "l" else b.cast(index, "l")


def gather(b: Builder, ex: object, x: Ref, dim: int, index: Ref, sparse_grad: bool = False) -> Ref:
    if not x.shape or not prod(index.shape):
        raise Unsupported("gather of a scalar")
    dim %= len(x.shape)
    strides = tuple(0 if d == dim else s for d, s in enumerate(x.strides))
    base = Ref(x.value, index.shape, x.offset, strides)
    return b.gather(base, [(_whole(b, index), x.strides[dim], x.shape[dim])], wrap=False)


def index_select(b: Builder, ex: object, x: Ref, dim: int, index: Ref) -> Ref:
    shape = shape_of(ex)
    if not x.shape or not prod(shape):
        raise Unsupported("index_select of a scalar")
    dim %= len(x.shape)
    strides = tuple(0 if d == dim else s for d, s in enumerate(x.strides))
    index = _whole(b, b.reshape(index, (shape[dim],)))
    look = Ref(
        index.value,
        shape,
        index.offset,
        tuple(index.strides[0] if d == dim else 0 for d in range(len(shape))),
    )
    return b.gather(
        Ref(x.value, shape, x.offset, strides), [(look, x.strides[dim], x.shape[dim])], False
    )


def embedding(
    b: Builder,
    ex: object,
    weight: Ref,
    index: Ref,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Ref:
    shape = shape_of(ex)
    if not prod(shape):
        raise Unsupported("empty")
    index = _whole(b, index)
    strides = (0,) * len(index.shape) + (weight.strides[1],)
    look = Ref(index.value, shape, index.offset, index.strides + (0,))
    return b.gather(
        Ref(weight.value, shape, weight.offset, strides),
        [(look, weight.strides[0], weight.shape[0])],
        False,
    )


def index(b: Builder, ex: object, x: Ref, indices: list) -> Ref:
    """x[i, :, j]: integer index arrays, broadcast together."""
    shape = shape_of(ex)
    indices = list(indices) + [None] * (len(x.shape) - len(indices))
    given = [d for d, i in enumerate(indices) if i is not None]
    if not given or not prod(shape) or any(indices[d].dtype not in "li" for d in given):
        raise Unsupported("mask index")
    common = broadcast([indices[d].shape for d in given])
    together = given == list(range(given[0], given[-1] + 1))
    at = given[0] if together else 0
    free = [d for d in range(len(x.shape)) if d not in given]
    before = [d for d in free if d < at] if together else []
    after = [d for d in free if d not in before]
    strides = (
        tuple(x.strides[d] for d in before)
        + (0,) * len(common)
        + tuple(x.strides[d] for d in after)
    )
    looks = []
    for d in given:
        i = expand(_whole(b, indices[d]), common)
        look = Ref(i.value, shape, i.offset, (0,) * len(before) + i.strides + (0,) * len(after))
        looks.append((look, x.strides[d], x.shape[d]))
    return b.gather(Ref(x.value, shape, x.offset, strides), looks, True)


def scatter(add: bool):
    def rule(
        b: Builder, ex: object, x: Ref, dim: int, index: Ref, src: object, **kw: object
    ) -> Ref:
        """One position per line: a choice by comparison, which fuses with its neighbours."""
        src = kw.get("value", src)
        if kw.get("reduce") or not x.shape:
            raise Unsupported("scatter with reduce")
        dim %= len(x.shape)
        rest = tuple(1 if d == dim else n for d, n in enumerate(x.shape))
        if index.shape != rest or index.dtype != "l":
            raise Unsupported("general scatter")
        if not prod(x.shape):
            raise Unsupported("scatter into nothing: its kernel says where that is out of range")
        if isinstance(src, Ref):
            if any(n < m for n, m in zip(src.shape, rest)) or len(src.shape) != len(rest):
                raise Unsupported("source shape")
            src = Ref(src.value, rest, src.offset, src.strides)
        at = b.bounded(index, x.shape[dim])
        here = b.pointwise("eq", b.iota(x.shape, dim), at, dtype="b", ct="l")
        if add:
            src = b.pointwise("or" if x.dtype == "b" else "add", x, src, dtype=x.dtype)
        return b.pointwise("where", here, src, x, dtype=x.dtype)

    return rule


def one_hot(b: Builder, ex: object, index: Ref, classes: int = -1) -> Ref:
    shape = shape_of(ex)
    if index.dtype != "l" or not prod(shape):
        raise Unsupported("one_hot of nothing")
    at = b.bounded(index, shape[-1])
    column = Ref(at.value, at.shape + (1,), at.offset, at.strides + (0,))
    here = b.pointwise("eq", b.iota(shape, len(shape) - 1), column, dtype="b", ct="l")
    return b.cast(here, dtype_code(ex))


def triangle(upper: bool):
    def rule(b: Builder, ex: object, x: Ref, diagonal: int = 0) -> Ref:
        rank = len(x.shape)
        row, col = b.iota(x.shape, rank - 2), b.iota(x.shape, rank - 1)
        edge = b.pointwise("add", row, diagonal, dtype="l")
        keep = b.pointwise("ge" if upper else "le", col, edge, dtype="b", ct="l")
        return b.pointwise("where", keep, x, False if x.dtype == "b" else 0, dtype=x.dtype)

    return rule


# ---- rows added into a table ------------------------------------------------------------------


NO_ROW = -(2**62)


def scatter_rows(
    b: Builder, start: Ref, index: Ref, src: Ref, skip: int = NO_ROW, wrap: bool = False
) -> Ref:
    """start with src[i] added to row index[i]; `wrap` lets negative indices count from the end."""
    if start.dtype not in "fd" or src.dtype != start.dtype:
        raise Unsupported("type")
    n, width = prod(index.shape), prod(start.shape[1:])
    if not prod(start.shape):
        raise Unsupported("rows of nothing: the kernel says which index is out of range")
    index = b.copy(b.reshape(_whole(b, index), (n,)))
    if skip == NO_ROW:
        from .rules_entries import weighted_rows

        made = weighted_rows(b, start, index, src, wrap)
        if made is not None:
            return made
    src = b.copy(
        b.reshape(
            expand(src, index.shape[:1] + start.shape[1:])
            if src.shape[1:] != start.shape[1:]
            else src,
            (n, width),
        )
    )
    zero = start.value.op == "const" and start.value.attrs["number"] == 0
    args = [index, src] if zero else [index, src, b.copy(start)]
    return b.call(
        "scatter_rows",
        args,
        [(start.shape, start.dtype)],
        rows=start.shape[0],
        width=width,
        n=n,
        skip=skip,
        wrap=int(wrap),
        check=b.check(start.shape[0]),
    )[0]


def embedding_backward(
    b: Builder, ex: object, g: Ref, index: Ref, rows: int, padding: int, by_freq: bool
) -> Ref:
    if by_freq:
        raise Unsupported("scale_grad_by_freq")
    shape = shape_of(ex)
    width = shape[1]
    src = b.reshape(g, (prod(index.shape), width))
    return scatter_rows(
        b, b.full(shape, 0.0, g.dtype), index, src, padding if padding >= 0 else NO_ROW
    )


def index_put(
    b: Builder, ex: object, x: Ref, indices: list, values: Ref, accumulate: bool = False
) -> Ref:
    if not accumulate or len(indices) != 1 or indices[0] is None or indices[0].dtype not in "li":
        raise Unsupported("index_put")
    index = indices[0]
    src = expand(values, index.shape + x.shape[1:])
    src = b.reshape(src, (prod(index.shape),) + x.shape[1:])
    return scatter_rows(b, x, index, src, wrap=True)


def index_add(
    b: Builder, ex: object, x: Ref, dim: int, index: Ref, src: Ref, alpha: float = 1
) -> Ref:
    if not x.shape or src.shape[1:] and len(src.shape) != len(x.shape):
        raise Unsupported("index_add of scalars")
    dim %= len(x.shape)
    if not prod(x.shape) or not prod(src.shape):
        raise Unsupported("index_add of nothing")
    if alpha != 1:
        src = b.pointwise("mul", src, alpha, dtype=src.dtype)
    order = [dim, *(d for d in range(len(x.shape)) if d != dim)]  # rows in front
    made = scatter_rows(b, permute(x, order), index, permute(src, order))
    return permute(made, [order.index(d) for d in range(len(order))])


# ---- contractions -----------------------------------------------------------------------------


def product(b: Builder, a: Ref, c: Ref, bias: Ref | None = None, alpha: float = 1.0) -> Ref:
    """A matrix product of refs with any strides; three dimensions are batched."""
    if a.dtype not in "fd" or c.dtype != a.dtype:
        raise Unsupported("matrix product of integers")
    if len(a.shape) == 2:
        m, k, n = a.shape[0], a.shape[1], c.shape[1]
        shape = (m, n)
        steps = dict(
            batch=1,
            m=m,
            n=n,
            k=k,
            ab=0,
            am=a.strides[0],
            ak=a.strides[1],
            bb=0,
            bk=c.strides[0],
            bn=c.strides[1],
            cb=0,
            cm=n,
        )
    else:
        batch, m, k, n = a.shape[0], a.shape[1], a.shape[2], c.shape[2]
        shape = (batch, m, n)
        steps = dict(
            batch=batch,
            m=m,
            n=n,
            k=k,
            ab=a.strides[0],
            am=a.strides[1],
            ak=a.strides[2],
            bb=c.strides[0],
            bk=c.strides[1],
            bn=c.strides[2],
            cb=m * n,
            cm=n,
        )
    args = [a, c]
    if bias is not None:
        bias = expand(bias, shape)
        steps.update(
            sb=bias.strides[0] if len(shape) == 3 else 0, sm=bias.strides[-2], sn=bias.strides[-1]
        )
        args.append(bias)
    return b.call("gemm", args, [(shape, a.dtype)], alpha=float(alpha), **steps)[0]


def mm(b: Builder, ex: object, a: Ref, c: Ref) -> Ref:
    return product(b, a, c)


def addmm(
    b: Builder, ex: object, bias: Ref, a: Ref, c: Ref, beta: float = 1, alpha: float = 1
) -> Ref:
    if beta == 0:
        return product(b, a, c, None, alpha)
    if beta != 1:
        bias = b.pointwise("mul", bias, beta, dtype=bias.dtype)
    return product(b, a, c, bias, alpha)


def mv(b: Builder, ex: object, a: Ref, x: Ref) -> Ref:
    if a.strides[0] == 1 and a.strides[1] != 1:  # stored the other way round: add up rows
        turned = Ref(a.value, a.shape[::-1], a.offset, a.strides[::-1])
        column = Ref(x.value, (x.shape[0], 1), x.offset, (x.strides[0], 0))
        return b.reduce("sum", b.pointwise("mul", turned, column, dtype=a.dtype), [0], False)
    return b.reduce("sum", b.pointwise("mul", a, x, dtype=a.dtype), [1], False)


def dot(b: Builder, ex: object, a: Ref, c: Ref) -> Ref:
    return b.reduce("sum", b.pointwise("mul", a, c, dtype=a.dtype), None, False)


def linear(b: Builder, ex: object, x: Ref, w: Ref, bias: Ref | None = None) -> Ref:
    flat = b.reshape(x, (prod(x.shape[:-1]), x.shape[-1]))
    wt = Ref(w.value, w.shape[::-1], w.offset, w.strides[::-1])
    return b.reshape(product(b, flat, wt, bias), shape_of(ex))


def eye(b: Builder, ex: object, *args: object, **kw: object) -> Ref:
    shape = shape_of(ex)
    here = b.pointwise("eq", b.iota(shape, 0), b.iota(shape, 1), dtype="b", ct="l")
    return b.cast(here, dtype_code(ex))
