"""Reductions of nested tensors: over dense dims, over the ragged one, over all.

Dense dims are dims of the values.  Over the ragged dim alone, or with dense ones, each part gives
one row of a dense result (`segments.py`).  With the batch as well the values are reduced as they
are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import errors
from ..array.dims import wrap_dims
from ..core.handle import Tensor
from ..parts.rules import rule, shown
from ..table.packets import ops
from .segments import Segments, highest, lowest, segments
from .shapes import select_parts
from .tensor import NestedTensor, packed, wrapped
from .whole import whole


def reduced(t: NestedTensor, name: str, dims: Any, keepdim: bool, dense: Callable,
            ragged: Callable[[Tensor, Segments], Tensor]) -> Any:
    """A reduction: `dense(values, dims, keepdim)`, or `ragged(values, parts)` of each part."""
    chosen = sorted(wrap_dims(dims, t.ndim))
    if t.ragged_idx not in chosen:
        if 0 in chosen:
            raise errors.RefusedValue(errors.text(
                f"{name}(): reducing along the batch dimension but not the ragged dimension is "
                f"not supported for nested tensors ({errors.user_line(4)})", shown(t),
                "pad it first: x.to_padded_tensor(...), or reduce over both"))
        if len(chosen) == 0:
            return t
        out = dense(t.values_part, [d - 1 for d in chosen], keepdim)
        shift = 0 if keepdim else sum(d < t.ragged_idx for d in chosen)
        return each(out, lambda o: t.with_values(o, t.ragged_idx - shift))
    if 0 in chosen:
        t = packed(t)
        if len(chosen) == t.ndim and not keepdim:
            return dense(t.values_part, list(range(t.values_part.ndim)), False)
        out = dense(t.values_part, [d - 1 for d in chosen[1:]], keepdim)
        return each(out, lambda o: o.unsqueeze(0)) if keepdim else out
    out = ragged(*segments(t, tuple(chosen)))
    return each(out, lambda o: kept(o, chosen)) if keepdim else out


def each(out: Any, function: Callable) -> Any:
    """A function of a result, or of all results."""
    if isinstance(out, Tensor):
        return function(out)
    made = [function(o) for o in out]
    return type(out)(*made) if hasattr(out, "_fields") else tuple(made)


def named(name: str, out: tuple) -> Any:
    """(values, indices) as operators give them."""
    from .. import return_types

    return out if type(out) is not tuple else getattr(return_types, name)(*out)


def kept(out: Tensor, dims: list[int]) -> Tensor:
    """A result with dims of size 1 in the places of those that are gone."""
    for d in dims:
        out = out.unsqueeze(d)
    return out


def elements(t: NestedTensor) -> Tensor:
    """The elements of all parts."""
    return packed(t).values_part


whole(NestedTensor, "sum", elements)
whole(NestedTensor, "mean", elements)
whole(NestedTensor, "prod", elements)
whole(NestedTensor, "max", elements)
whole(NestedTensor, "min", elements)
whole(NestedTensor, "any", elements)
whole(NestedTensor, "all", elements)
whole(NestedTensor, "median", elements)


@rule(NestedTensor, "sum.dim_IntList")
def sums(t: NestedTensor, dim: Any, keepdim: bool = False, dtype: Any = None) -> Any:
    return reduced(t, "sum", dim, keepdim, lambda v, d, k: ops.sum(v, d, k, dtype=dtype),
                   lambda v, s: s.total(v if dtype is None else v.to(dtype)))


@rule(NestedTensor, "nansum")
def nansums(t: NestedTensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    values = t.values_part
    return sums(t.with_values(values.masked_fill(values.isnan(), 0)), dim, keepdim, dtype)


@rule(NestedTensor, "mean.dim")
def means(t: NestedTensor, dim: Any, keepdim: bool = False, dtype: Any = None) -> Any:
    return reduced(t, "mean", dim, keepdim, lambda v, d, k: ops.mean(v, d, k, dtype=dtype),
                   lambda v, s: s.mean(v if dtype is None else v.to(dtype)))


@rule(NestedTensor, "prod.dim_int")
def prods(t: NestedTensor, dim: int, keepdim: bool = False, dtype: Any = None) -> Any:
    return reduced(t, "prod", dim, keepdim, lambda v, d, k: ops.prod(v, d[0], k, dtype=dtype),
                   lambda v, s: s.rows(v, 1).prod(1, dtype=dtype))


@rule(NestedTensor, "var.correction")
def variances(t: NestedTensor, dim: Any = None, correction: Any = None, keepdim: bool = False):
    c = 1 if correction is None else correction
    return reduced(t, "var", dim, keepdim,
                   lambda v, d, k: ops.var(v, d, correction=c, keepdim=k),
                   lambda v, s: s.variance(v, c))


def root(x: Tensor) -> Tensor:
    """A square root whose derivative at 0 is 0."""
    zero = x == 0
    return ops.where(zero, 0.0, ops.where(zero, 1.0, x).sqrt())


@rule(NestedTensor, "std.correction")
def deviations(t: NestedTensor, dim: Any = None, correction: Any = None, keepdim: bool = False):
    c = 1 if correction is None else correction
    return reduced(t, "std", dim, keepdim,
                   lambda v, d, k: ops.std(v, d, correction=c, keepdim=k),
                   lambda v, s: root(s.variance(v, c)))


@rule(NestedTensor, "var_mean.correction")
def var_mean(t: NestedTensor, dim: Any = None, correction: Any = None, keepdim: bool = False):
    return variances(t, dim, correction, keepdim), means(t, dim, keepdim)


@rule(NestedTensor, "std_mean.correction")
def std_mean(t: NestedTensor, dim: Any = None, correction: Any = None, keepdim: bool = False):
    return deviations(t, dim, correction, keepdim), means(t, dim, keepdim)


@rule(NestedTensor, "amax")
def amax(t: NestedTensor, dim: Any = (), keepdim: bool = False) -> Any:
    return reduced(t, "amax", dim, keepdim, ops.amax, lambda v, s: s.extreme(v, "amax"))


@rule(NestedTensor, "amin")
def amin(t: NestedTensor, dim: Any = (), keepdim: bool = False) -> Any:
    return reduced(t, "amin", dim, keepdim, ops.amin, lambda v, s: s.extreme(v, "amin"))


@rule(NestedTensor, "max.dim")
def max_dim(t: NestedTensor, dim: int, keepdim: bool = False) -> Any:
    return extremes(t, "max", dim, keepdim)


@rule(NestedTensor, "min.dim")
def min_dim(t: NestedTensor, dim: int, keepdim: bool = False) -> Any:
    return extremes(t, "min", dim, keepdim)


def extremes(t: NestedTensor, name: str, dim: int, keepdim: bool) -> Any:
    """(values, places): the first of equal elements, which alone has the gradient."""
    function, kind = getattr(ops, name), f"a{name}"

    def ragged(v: Tensor, s: Segments) -> tuple:
        places = s.place_of(v.detach(), kind)
        fill = lowest(v.dtype) if name == "max" else highest(v.dtype)
        return s.rows(v, fill).gather(1, places.clamp(max=s.longest - 1).unsqueeze(1)).squeeze(
            1), places

    out = reduced(t, name, dim, keepdim, lambda v, d, k: function(v, d[0], k), ragged)
    return named(name, out)


@rule(NestedTensor, "argmax")
def argmax(t: NestedTensor, dim: Any = None, keepdim: bool = False) -> Any:
    return places(t, "argmax", dim, keepdim)


@rule(NestedTensor, "argmin")
def argmin(t: NestedTensor, dim: Any = None, keepdim: bool = False) -> Any:
    return places(t, "argmin", dim, keepdim)


def places(t: NestedTensor, name: str, dim: Any, keepdim: bool) -> Any:
    function = getattr(ops, name)
    if dim is None:
        return function(packed(t).values_part)
    return reduced(t, name, dim, keepdim, lambda v, d, k: function(v, d[0], k),
                   lambda v, s: s.place_of(v, f"a{name[3:]}"))


@rule(NestedTensor, "logsumexp")
def logsumexp(t: NestedTensor, dim: Any, keepdim: bool = False) -> Any:
    return reduced(t, "logsumexp", dim, keepdim, ops.logsumexp, lambda v, s: s.logsumexp(v))


@rule(NestedTensor, "any.dim", "any.dims")
def any_dims(t: NestedTensor, dim: Any = None, keepdim: bool = False) -> Any:
    return reduced(t, "any", dim, keepdim, ops.any,
                   lambda v, s: s.total((v != 0).long()) > 0)


@rule(NestedTensor, "all.dim", "all.dims")
def all_dims(t: NestedTensor, dim: Any = None, keepdim: bool = False) -> Any:
    return reduced(t, "all", dim, keepdim, ops.all,
                   lambda v, s: s.total((v == 0).long()) == 0)


@rule(NestedTensor, "count_nonzero", "count_nonzero.dim_IntList")
def count_nonzero(t: NestedTensor, dim: Any = None) -> Any:
    return sums(t.with_values((t.values_part != 0).long()), dim)


@rule(NestedTensor, "linalg_vector_norm")
def norms(t: NestedTensor, ord: Any = 2, dim: Any = None, keepdim: bool = False,
          dtype: Any = None) -> Any:
    def ragged(v: Tensor, s: Segments) -> Tensor:
        v = v if dtype is None else v.to(dtype)
        if ord == 2:
            return root(s.total(v.real.square() + v.imag.square() if v.is_complex()
                                else v.square()))
        if ord == 1:
            return s.total(v.abs())
        return ops.linalg_vector_norm(s.rows(v, 0 if ord >= 0 else highest(v.dtype)), ord, 1)

    return reduced(t, "norm", dim, keepdim,
                   lambda v, d, k: ops.linalg_vector_norm(v, ord, d, k, dtype=dtype), ragged)


@rule(NestedTensor, "median.dim")
def median_dim(t: NestedTensor, dim: int, keepdim: bool = False) -> Any:
    def ragged(v: Tensor, s: Segments) -> tuple:
        order = ops.sort(s.rows(v, highest(v.dtype)), dim=1, stable=True)
        shape = (-1, 1, *[1] * (v.ndim - 1))
        middle = ((s.lengths - 1).clamp(min=0) // 2).reshape(shape).expand(
            s.count, 1, *v.shape[1:])
        return order[0].gather(1, middle).squeeze(1), order[1].gather(1, middle).squeeze(1)

    out = reduced(t, "median", dim, keepdim, lambda v, d, k: ops.median(v, d[0], k), ragged)
    return named("median", out)


# what gives as many elements as there are -------------------------------------------------------


def along(t: NestedTensor, name: str, dim: int, dense: Callable,
          ragged: Callable[[Tensor, Segments], Any]) -> Any:
    """An operator along one dim that keeps its size."""
    d = wrapped(t, dim)
    if d == 0:
        raise errors.RefusedValue(errors.text(
            f"{name}(): not supported when reducing across the batch dimension for NestedTensor "
            f"({errors.user_line(4)})", shown(t), "pad it first: x.to_padded_tensor(...)"))
    if d != t.ragged_idx:
        return each(dense(t.values_part, d - 1), t.with_values)
    t = packed(t)
    out = ragged(*segments(t))
    return each(out, lambda o: t.with_values(o.movedim(0, t.dense) if t.dense else o))


@rule(NestedTensor, "_softmax")
def softmax(t: NestedTensor, dim: int, half_to_float: bool) -> Any:
    return along(t, "softmax", dim, lambda v, d: ops._softmax(v, d, half_to_float),
                 lambda v, s: s.softmax(v, False))


@rule(NestedTensor, "_log_softmax")
def log_softmax(t: NestedTensor, dim: int, half_to_float: bool) -> Any:
    return along(t, "log_softmax", dim, lambda v, d: ops._log_softmax(v, d, half_to_float),
                 lambda v, s: s.softmax(v, True))


@rule(NestedTensor, "cumsum")
def cumsum(t: NestedTensor, dim: int, dtype: Any = None) -> Any:
    return along(t, "cumsum", dim, lambda v, d: ops.cumsum(v, d, dtype=dtype),
                 lambda v, s: s.elements(s.rows(v, 0).cumsum(1, dtype=dtype)))


@rule(NestedTensor, "cumprod")
def cumprod(t: NestedTensor, dim: int, dtype: Any = None) -> Any:
    return along(t, "cumprod", dim, lambda v, d: ops.cumprod(v, d, dtype=dtype),
                 lambda v, s: s.elements(s.rows(v, 1).cumprod(1, dtype=dtype)))


@rule(NestedTensor, "logcumsumexp")
def logcumsumexp(t: NestedTensor, dim: int) -> Any:
    return along(t, "logcumsumexp", dim, ops.logcumsumexp,
                 lambda v, s: s.elements(s.rows(v, lowest(v.dtype)).logcumsumexp(1)))


@rule(NestedTensor, "cummax")
def cummax(t: NestedTensor, dim: int) -> Any:
    return along(t, "cummax", dim, ops.cummax, lambda v, s: each(
        s.rows(v, lowest(v.dtype)).cummax(1), s.elements))


@rule(NestedTensor, "cummin")
def cummin(t: NestedTensor, dim: int) -> Any:
    return along(t, "cummin", dim, ops.cummin, lambda v, s: each(
        s.rows(v, highest(v.dtype)).cummin(1), s.elements))


@rule(NestedTensor, "sort")
def sort(t: NestedTensor, dim: int = -1, descending: bool = False) -> Any:
    return ordered(t, dim, descending, False)


@rule(NestedTensor, "sort.stable")
def sort_stable(t: NestedTensor, stable: bool | None = None, dim: int = -1,
                descending: bool = False) -> Any:
    return ordered(t, dim, descending, bool(stable))


@rule(NestedTensor, "argsort")
def argsort(t: NestedTensor, dim: int = -1, descending: bool = False) -> Any:
    return ordered(t, dim, descending, False)[1]


def ordered(t: NestedTensor, dim: int, descending: bool, stable: bool) -> Any:
    """Sorted elements and where they were."""
    def ragged(v: Tensor, s: Segments) -> Any:
        fill = lowest(v.dtype) if descending else highest(v.dtype)
        # what is behind a part stays there, also among equal elements: the sort is stable
        rows = s.rows(v, fill)
        return each(ops.sort(rows, dim=1, descending=descending, stable=True), s.elements)

    return along(t, "sort", dim, lambda v, d: ops.sort(
        v, dim=d, descending=descending, stable=stable), ragged)


@rule(NestedTensor, "topk")
def topk(t: NestedTensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    d = wrapped(t, dim)
    if d != t.ragged_idx:
        return along(t, "topk", dim, lambda v, d: ops.topk(v, k, d, largest, sorted), None)
    if t.about.plain and t.about.shortest() < k:
        raise errors.RefusedValue(errors.text(
            f"topk(): a part has fewer than {k} elements ({errors.user_line(3)})", shown(t)))
    values, s = segments(t)
    rows = s.rows(values, lowest(values.dtype) if largest else highest(values.dtype))
    out = ops.topk(rows, k, 1, largest, sorted)
    return each(out, lambda o: o.movedim(1, d))


@rule(NestedTensor, "flip")
def flip(t: NestedTensor, dims: Any) -> NestedTensor:
    chosen = wrap_dims(dims, t.ndim, empty_is_all=False)
    if 0 in chosen:
        t = select_parts(t, ops.arange(t.count - 1, -1, -1, device=t.offsets_part.device))
    inner = [d - 1 for d in chosen if d not in (0, t.ragged_idx)]
    if t.ragged_idx in chosen:
        t = packed(t)
        total = t.values_part.shape[t.dense]
        rows, at = t.about.numbers(total), t.about.positions(total)
        back = t.about.starts[rows] + t.about.lengths[rows] - 1 - at
        t = t.with_values(t.values_part.index_select(t.dense, back))
    return t.with_values(t.values_part.flip(inner)) if inner else t
