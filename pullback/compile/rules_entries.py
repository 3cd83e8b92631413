"""Products with the entries of a sparse matrix, and extremes of segments: calls of the runtime.

Calls that share the rows of their entries, and what is computed between them, are put together
afterwards (`ragged.py`).
"""

from __future__ import annotations

from math import prod

from .builder import Builder, Unsupported
from .ir import Ref
from .lower import shape_of
from .rules_index import _whole


def _places(b: Builder, index: Ref) -> Ref:
    return b.copy(_whole(b, index))


def _floats(*refs: Ref) -> None:
    if any(r.dtype not in "fd" or r.dtype != refs[0].dtype for r in refs):
        raise Unsupported("products of these")


def spmm(b: Builder, ex: object, rows: Ref, cols: Ref, values: Ref, dense: Ref, size: int) -> Ref:
    """Sums of rows of a dense matrix: runtime/entries.h."""
    _floats(values, dense)
    if not prod(values.shape) or not prod(dense.shape) or not prod(shape_of(ex)):
        raise Unsupported("a product of nothing")
    if len(values.shape) != 1 or not rows.shape == cols.shape == values.shape:
        raise Unsupported("parts that do not fit: the kernel says so")
    given = [_places(b, rows), _places(b, cols), b.copy(values), b.copy(dense)]
    return b.call(
        "spmm", given, [((size, dense.shape[1]), dense.dtype)], count=values.shape[0],
        width=dense.shape[1], size=size, depth=dense.shape[0],
        check=b.check(size), check_cols=b.check(dense.shape[0]))[0]


def weighted_rows(b: Builder, start: Ref, index: Ref, src: Ref, wrap: bool) -> Ref | None:
    """`start` with rows of another matrix, looked up and times numbers, added to its rows: a
    product, so that not all of these rows are there at once.  None where `src` is no such thing."""
    v = src.value
    if len(start.shape) != 2 or src.shape != v.shape or not src.plain or v.ct not in "fd":
        return None
    parts = [a for a in v.args if isinstance(a, Ref)] if v.op == "mul" else [src]
    looked = next((a for a in parts if a.value.op == "gather" and a.plain), None)
    weight = next((a for a in parts if a is not looked and a.strides[1] == 0), None)
    if looked is None or v.op == "mul" and (
            weight is None or weight.dtype != v.dtype or looked.dtype != v.dtype):
        return None
    base, *indices = looked.value.args
    attrs, shape = looked.value.attrs, start.shape
    if len(indices) != 1 or base.strides[0] != 0 or indices[0].strides[1] != 0:
        return None
    n, width = src.shape
    if n == 0 or width == 1 or base.strides[1] != 1 or looked.shape != src.shape:
        return None
    cols = Ref(indices[0].value, (n,), indices[0].offset, indices[0].strides[:1])
    dense = Ref(base.value, (attrs["sizes"][0], width), base.offset, (attrs["strides"][0], 1))
    values = b.full((n,), 1.0, v.dtype) if weight is None else Ref(
        weight.value, (n,), weight.offset, weight.strides[:1])
    given = [b.copy(index), _places(b, cols), b.copy(values), b.copy(dense)]
    made = b.call(
        "spmm", given, [(shape, v.dtype)], count=n, width=width, size=shape[0],
        depth=dense.shape[0], check=b.check(shape[0]), check_cols=attrs["checks"][0],
        wrap=int(wrap) + 2 * int(attrs["wrap"]))[0]
    zero = start.value.op == "const" and start.value.attrs["number"] == 0
    return made if zero else b.pointwise("add", start, made, dtype=v.dtype)


def sddmm(b: Builder, ex: object, rows: Ref, cols: Ref, x: Ref, y: Ref) -> Ref:
    """Products of rows of two dense matrices at entries."""
    _floats(x, y)
    if not prod(rows.shape) or not prod(x.shape) or not prod(y.shape):
        raise Unsupported("a product of nothing")
    if len(rows.shape) != 1 or rows.shape != cols.shape or x.shape[1:] != y.shape[1:]:
        raise Unsupported("parts that do not fit: the kernel says so")
    given = [_places(b, rows), _places(b, cols), b.copy(x), b.copy(y)]
    return b.call(
        "sddmm", given, [(rows.shape, x.dtype)], count=rows.shape[0], width=x.shape[1],
        size=x.shape[0], depth=y.shape[0], check=b.check(x.shape[0]),
        check_cols=b.check(y.shape[0]))[0]


def scatter_reduce(b: Builder, ex: object, x: Ref, dim: int, index: Ref, src: Ref, reduce: str,
                   include_self: bool = True) -> Ref:
    """The largest or smallest of the elements of segments."""
    if reduce not in ("amax", "amin") or len(x.shape) != 1 or len(index.shape) != 1:
        raise Unsupported("segments of this kind")
    _floats(x, src)
    if index.shape != src.shape or not prod(index.shape) or not prod(x.shape):
        raise Unsupported("segments of nothing")
    return b.call(
        "scatter_extreme", [_places(b, index), b.copy(src), b.copy(x)], [(x.shape, x.dtype)],
        rows=x.shape[0], n=index.shape[0], highest=int(reduce == "amax"), own=int(include_self),
        check=b.check(x.shape[0]))[0]
