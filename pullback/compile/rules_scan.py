"""Running sums, and where extremes are."""

from __future__ import annotations

from math import prod

from .builder import Builder, Unsupported
from .ir import Ref
from .lower import dtype_code


def scan(product: bool):
    """A sum or product along a dim that keeps every step: a call of the runtime (`rows.c`)."""

    def rule(b: Builder, ex: object, x: Ref, dim: int, dtype: object = None) -> Ref:
        t = dtype_code(ex)
        if t not in "fdl" or not x.shape or not prod(x.shape):
            raise Unsupported("running sums of these")
        dim %= len(x.shape)
        x = b.copy(x if x.dtype == t else b.cast(x, t))
        return b.call(
            "scan", [x], [(x.shape, t)], outer=prod(x.shape[:dim]), n=x.shape[dim],
            inner=prod(x.shape[dim + 1:]), product=int(product))[0]

    return rule


def place(op: str, values: bool):
    """The first place of the largest or smallest element, or of the first NaN."""

    def rule(b: Builder, ex: object, x: Ref, dim: int | None = None, keepdim: bool = False):
        if x.dtype not in "fdil" or not prod(x.shape) or not x.shape:
            raise Unsupported("places of these")
        if dim is None:
            flat = b.reshape(x, (prod(x.shape),))
            found = _first(b, op, flat, 0, False)[1]
            return b.reshape(found, (1,) * len(x.shape)) if keepdim else found
        found = _first(b, op, x, dim % len(x.shape), keepdim)
        return list(found) if values else found[1]

    return rule


def _first(b: Builder, op: str, x: Ref, dim: int, keepdim: bool) -> tuple[Ref, Ref]:
    top = b.reduce(op, x, [dim], True)
    here = b.pointwise("eq", x, top, dtype="b", ct=x.dtype)
    if x.dtype in "fd":
        here = b.pointwise("or", here, b.pointwise("ne", x, x, dtype="b", ct=x.dtype), dtype="b")
    place = b.pointwise("where", here, b.iota(x.shape, dim), x.shape[dim], dtype="l")
    shape = tuple(n for d, n in enumerate(top.shape) if d != dim or keepdim)
    return b.reshape(top, shape), b.reduce("min", place, [dim], keepdim, "l")
