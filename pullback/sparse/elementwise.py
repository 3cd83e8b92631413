"""Arithmetic of sparse tensors, element by element.

A function that maps zero to zero acts on the values; whether it does is asked of the function
itself.  Operators of several sparse tensors join their patterns, a product intersects them; a
dense operand is gathered at the entries.  Read next: `inplace.py`, `products.py`.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

from .. import errors
from ..array import dtype as dt
from ..array.dims import broadcast_shapes
from ..core.handle import Tensor, tensors_in
from ..core.stack import bind
from ..parts.rules import rule, shown
from ..table.packets import ops
from ..threads.blocks import outside
from . import patterns
from .memo import are_known, known
from .tensor import Coo, SparseTensor
from .unspecified import sum_of

_zeros: dict = {}  # operator, dtypes and numbers -> does it keep zeros?


def on_values(t: SparseTensor, ov, flat: tuple):
    """An elementwise operator on values, if what is not specified stays zero.

    Masks, dense tensors of truth values, may be among the operands: for both of their values.
    """
    if ov.kind != "pointwise" or ov.is_random:
        return NotImplemented
    dense = [v for v in tensors_in(flat) if not isinstance(v, SparseTensor) and v.ndim]
    if any(v.dtype is not dt.bool_ for v in dense):
        return NotImplemented
    if not keeps_zero(ov, flat):
        raise errors.LayoutError(errors.text(
            f"{errors.public_name(ov.op.base_name)}: what is not specified would not stay zero "
            f"({errors.user_line(2)})", shown(t),
            "x.to_dense() first, or act on the entries alone: x.values()"))
    given = [v for v in flat if isinstance(v, SparseTensor)]
    if len(given) == 1 and not dense and is_linear(ov):  # of duplicates as well
        return t.with_carrier(bind(ov, tuple([v.values_part if v is t else v for v in flat])))
    return at_entries(ov, flat)


_LINEAR = re.compile(r"-grad|grad\.\w+\(\)|grad [*/] ((?! if ).)+|ldexp\(grad, .*")


def is_linear(ov) -> bool:
    """Does an operator that keeps zeros map sums of entries to sums?  Its derivative says so."""
    rule = ov.op.grad.get("self")
    return isinstance(rule, str) and _LINEAR.fullmatch(rule) is not None and not (
        re.search(r"\b(self|result)\b", rule))


def keeps_zero(ov, flat: tuple) -> bool:
    """Does an operator map zeros in the places of sparse tensors to zero?"""
    try:
        key = ov.name, tuple([
            (type(v), v.dtype, v.ndim > 0) if isinstance(v, Tensor) else (type(v), v)
            for v in flat])
        known = not any(isinstance(v, Tensor) and not isinstance(v, SparseTensor) and not v.ndim
                        for v in flat)
        if known and key in _zeros:
            return _zeros[key]
    except TypeError:  # an argument that is a list
        known = False
    out = _asked(ov, flat)
    if known:
        _zeros[key] = out
    return out


def _asked(ov, flat: tuple) -> bool:
    from ..autograd.grad_mode import no_grad

    masks = [i for i, v in enumerate(flat) if isinstance(v, Tensor) and v.ndim and not (
        isinstance(v, SparseTensor))]
    with no_grad(), outside(anything=True):
        for chosen in itertools.product((False, True), repeat=len(masks)):
            zeros = [ops.zeros((), dtype=v.dtype, device=v.device) if isinstance(v, SparseTensor)
                     else v.detach() if isinstance(v, Tensor) else v for v in flat]
            for i, value in zip(masks, chosen):
                zeros[i] = ops.full((), value, dtype=dt.bool_, device=flat[i].device)
            if bool(bind(ov, tuple(zeros)).count_nonzero()):
                return False
    return True


def at_entries(ov, flat: tuple) -> SparseTensor:
    """An operator at all places where one of its sparse operands has an entry."""
    shape = broadcast_shapes(*[v.shape for v in tensors_in(flat)])
    flat = tuple([_expanded(v, shape) if isinstance(v, SparseTensor) else v for v in flat])
    given = [v for v in flat if isinstance(v, SparseTensor)]
    pattern, values = on_one_pattern(given)
    found = iter(values)
    out = bind(ov, tuple([
        next(found) if isinstance(v, SparseTensor)
        else gathered(v, pattern) if isinstance(v, Tensor) and v.ndim else v for v in flat]))
    return pattern.with_entries(out)


def _expanded(t: SparseTensor, shape: tuple) -> SparseTensor:
    if isinstance(t, Coo):
        t = t.coalesce()
    if tuple(t.shape) == tuple(shape):
        return t
    from .shapes import expand

    return expand(t, shape)


def on_one_pattern(given: list[SparseTensor]) -> tuple[SparseTensor, list[Tensor]]:
    """(A tensor that has the entries of all, their values at these): in the layout of the first."""
    first = given[0]
    if all(same_pattern(first, v) for v in given[1:]):
        return first, [v.entry_values() for v in given]
    coos = [as_coo(v).coalesce() for v in given]
    if len({c.sparse_dim() for c in coos}) > 1:
        raise errors.ShapeError(errors.text(
            f"the tensors have {[c.sparse_dim() for c in coos]} sparse dims "
            f"({errors.user_line(4)})", [shown(v) for v in given],
            "convert them: x.to_sparse(sparse_dim)"))
    sizes = tuple(first.shape[:coos[0].sparse_dim()])
    places, parts = joined_places(coos, sizes)
    values = [_placed(c.values_part, at, places.shape[1]) for c, at in zip(coos, parts)]
    joined = Coo.make(places, values[0], first.shape, True)
    out = like(first, joined)
    if out is not joined:
        values = [sparse_values(joined.with_carrier(v), out) for v in values]
    return out, values


def joined_places(coos: list[Coo], sizes: tuple) -> tuple[Tensor, list[Tensor]]:
    """(The places of several tensors, each once and in order; which of them each entry is at)."""
    def find() -> tuple:
        found = patterns.distinct(ops.cat([c.indices_part for c in coos], 1), sizes)
        return found.indices, found.inverse.split([c._nnz() for c in coos])

    return known(find, *[c.indices_part for c in coos])


def sparse_values(t: Coo, pattern: SparseTensor) -> Tensor:
    """The values of one tensor at the entries of another, zero where it has none."""
    coo = t.coalesce()
    sizes = tuple(t.shape[:coo.sparse_dim()])
    wanted = pattern.coordinates()
    if not coo._nnz():  # zeros with its history
        return _placed(coo.values_part, coo.indices_part.sum(0), wanted[0].shape[0])

    def find() -> tuple:
        ours = patterns.keys(coo.indices_part, sizes)
        asked = patterns.keys(ops.stack(list(wanted)), sizes)
        at = ops.searchsorted(ours, asked).clamp(max=ours.shape[0] - 1)
        return at, (ours[at] == asked).reshape(-1, *[1] * coo.dense_dim())

    at, there = known(find, coo.indices_part, *wanted)
    return ops.where(there, coo.values_part[at], 0)


def _placed(values: Tensor, at: Tensor, count: int) -> Tensor:
    """Values at some of `count` places, zeros at the others."""
    kind = values.dtype
    values = values.long() if kind is dt.bool_ else values
    zeros = ops.zeros((count, *values.shape[1:]), dtype=values.dtype, device=values.device)
    out = zeros.index_add(0, at, values)
    return out != 0 if kind is dt.bool_ else out


def same_pattern(a: SparseTensor, b: SparseTensor) -> bool:
    """Have two tensors their entries in the same places, in the same order?"""
    if a is b:
        return True
    if type(a) is not type(b) or a.shape != b.shape or (
            a.values_part.shape != b.values_part.shape):
        return False
    return all(_equal(getattr(a, n), getattr(b, n)) for n in a.names[:-1])


def _equal(x: Tensor, y: Tensor) -> bool:
    if x is y or x._payload is y._payload:
        return True
    if x.shape != y.shape or not are_known(x, y):  # then they are taken for different
        return False
    return known(lambda: bool((x == y).all()), x, y)


def as_coo(t: SparseTensor) -> Coo:
    """The same tensor with coordinates."""
    if isinstance(t, Coo):
        return t
    from .convert import to_coo

    return to_coo(t)


def like(t: SparseTensor, out: Coo) -> SparseTensor:
    """A result in the layout of an argument."""
    if isinstance(t, Coo):
        return out
    from .convert import convert

    blocks = tuple(t.values_part.shape[t.batch_dims + 1:t.batch_dims + 3]) if t.blocked else None
    return convert(out, t.own_layout, blocks)


def coalesced(t: SparseTensor) -> SparseTensor:
    """The tensor with every place once."""
    return t.coalesce() if isinstance(t, Coo) else t


def is_number(v: Any) -> bool:
    """Is an operand one number, or a dense tensor that is one?"""
    return not isinstance(v, Tensor) or not v.ndim and not isinstance(v, SparseTensor)


# sums


def _added(a: Any, b: Any, alpha: Any):
    out = _sum_of(a, b, alpha)
    return out if out is NotImplemented else sum_of(out, a, b, alpha)


def _sum_of(a: Any, b: Any, alpha: Any):
    if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        if a.shape != b.shape:
            raise errors.ShapeError(
                f"add: expected sizes of two sparse tensors to be equal, but {list(a.shape)} is "
                f"not {list(b.shape)} ({errors.user_line(3)})")
        if same_pattern(a, b) and not (isinstance(a, Coo) and not a.coalesced):
            return a.with_carrier(ops.add(a.values_part, b.values_part, alpha=alpha))
        return _union(a, b, alpha)
    dense, sparse = (a, b) if isinstance(b, SparseTensor) else (b, a)
    if not isinstance(dense, Tensor) or not dense.ndim and sparse.ndim:
        return NotImplemented
    whole = [v if v is dense else v.to_dense() for v in (a, b)]
    return ops.add(*whole, alpha=alpha)


def _union(a: SparseTensor, b: SparseTensor, alpha: Any) -> SparseTensor:
    """Both patterns: entries one behind the other; added up where the layout wants it."""
    x, y = as_coo(a), as_coo(b)
    if x.sparse_dim() != y.sparse_dim():
        raise errors.ShapeError(
            f"add: the tensors have {x.sparse_dim()} and {y.sparse_dim()} sparse dims "
            f"({errors.user_line(4)})")
    dtype = dt.promote_types(x.dtype, y.dtype)
    values = y.values_part if type(alpha) is int and alpha == 1 else y.values_part * alpha
    places = known(lambda: ops.cat([x.indices_part, y.indices_part], 1), x.indices_part,
                   y.indices_part)
    out = Coo.make(places, ops.cat([x.values_part.to(dtype), values.to(dtype)]), a.shape, False)
    full = 1
    for n in a.shape[:x.sparse_dim()]:
        full = full * n
    each = isinstance(a, Coo) and patterns.is_of_each(places)  # these stay one behind the other
    if not each and (not isinstance(a, Coo) or x.coalesced and y.coalesced or out._nnz() > full):
        out = out.coalesce()
    return like(a, out)


@rule(SparseTensor, "add.Tensor")
def _add_tensor(a: Any, b: Any, alpha: Any = 1):
    return _added(a, b, alpha)


@rule(SparseTensor, "sub.Tensor")
def _sub_tensor(a: Any, b: Any, alpha: Any = 1):
    return _added(a, b, -alpha)


@rule(SparseTensor, "rsub.Tensor")
def _rsub_tensor(a: Any, b: Any, alpha: Any = 1):
    return _added(b, a, -alpha)


# products and quotients


@rule(SparseTensor, "mul.Tensor")
def _mul(a: Any, b: Any):
    a, b = _without_dims(a, b), _without_dims(b, a)
    if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        shape = broadcast_shapes(a.shape, b.shape)
        x, y = _expanded(a, shape), _expanded(b, shape)
        if same_pattern(x, y):
            return x.with_carrier(x.values_part * y.values_part)
        return like(x, _intersection(as_coo(x).coalesce(), as_coo(y).coalesce()))
    sparse, other = (a, b) if isinstance(a, SparseTensor) else (b, a)
    if is_number(other):
        return sparse.with_carrier(sparse.values_part * other)
    return scaled(sparse, other, ops.mul)


def _without_dims(t: Any, other: Any) -> Any:
    """A sparse tensor without dims as the number that it is, beside one that has some."""
    if isinstance(t, SparseTensor) and not t.ndim and getattr(other, "ndim", 0):
        return t.to_dense()
    return t


def _intersection(x: Coo, y: Coo) -> Coo:
    """The product at places that both have."""
    if x.sparse_dim() != y.sparse_dim():
        raise errors.ShapeError(
            f"mul: the tensors have {x.sparse_dim()} and {y.sparse_dim()} sparse dims "
            f"({errors.user_line(4)})")
    sizes = tuple(x.shape[:x.sparse_dim()])
    if patterns.is_of_each(x.indices_part) or patterns.is_of_each(y.indices_part):
        return x.with_carrier(x.values_part * sparse_values(y, x))  # of one size in any case

    def find() -> tuple:
        ours, theirs = patterns.keys(x.indices_part, sizes), patterns.keys(y.indices_part, sizes)
        at = ops.searchsorted(theirs, ours).clamp(max=max(theirs.shape[0] - 1, 0))
        if not theirs.shape[0]:
            both = ops.zeros(ours.shape, dtype=dt.bool_, device=ours.device)
        else:
            both = theirs[at] == ours
        which = patterns.sized("mul", both.nonzero, both).squeeze(1)
        return x.indices_part[:, which], which, at[which]

    places, first, second = known(find, x.indices_part, y.indices_part)
    return Coo.make(places, x.values_part[first] * y.values_part[second], x.shape, True)


def gathered(dense: Tensor, t: SparseTensor) -> Tensor:
    """A dense tensor, which broadcasts to a sparse one, at the entries of that.

    Dims that broadcast are not gathered, so a gradient is as large as the dense tensor.
    """
    missing = t.ndim - dense.ndim
    where, ones = [], []
    for d, at in enumerate(t.coordinates()):
        own = d - missing
        if own >= 0 and dense.shape[own] != 1:
            where.append(at)
        elif own >= 0:
            ones.append(own)
    if ones:
        dense = dense.squeeze(tuple(ones))
    return dense[tuple(where)] if where else dense


def scaled(sparse: SparseTensor, dense: Tensor, function: Any) -> SparseTensor:
    """`function` of the entries and a dense tensor at their places, broadcast both ways."""
    shape = broadcast_shapes(sparse.shape, dense.shape)
    if tuple(shape) != tuple(sparse.shape):  # else of duplicates, too
        sparse = _expanded(sparse, shape)
    found = gathered(dense, sparse)
    return sparse.with_entries(function(sparse.entry_values(), found))


def _divided(a: Any, b: Any, divide: Any):
    if not isinstance(a, SparseTensor):
        raise errors.LayoutError(errors.text(
            f"div: dividing by a sparse tensor divides by zero where it has no entry "
            f"({errors.user_line(3)})", shown(b), "divide by b.to_dense(), or by its values()"))
    b = _without_dims(b, a)
    if isinstance(b, SparseTensor) and (b.ndim or not a.ndim):
        raise errors.LayoutError(errors.text(
            f"div: a sparse tensor can be divided by a number or by a dense tensor "
            f"({errors.user_line(3)})", shown(b), "divide by b.to_dense()"))
    if not is_number(b):
        return scaled(a, b, divide)
    return a.with_carrier(divide(a.values_part, b))


@rule(SparseTensor, "div.Tensor", "true_divide.Tensor")
def _div(a: Any, b: Any):
    return _divided(a, b, ops.div)


@rule(SparseTensor, "div.Tensor_mode")
def _div_mode(a: Any, b: Any, rounding_mode: Any = None):
    if rounding_mode is not None and isinstance(a, SparseTensor):
        a = coalesced(a)
    return _divided(a, b, lambda x, y: ops.div(x, y, rounding_mode=rounding_mode))


@rule(SparseTensor, "floor_divide")
def _floor_divide(a: Any, b: Any):
    return _divided(coalesced(a) if isinstance(a, SparseTensor) else a, b, ops.floor_divide)


@rule(SparseTensor, "pow.Tensor_Scalar")
def _pow(a: SparseTensor, exponent: Any):
    if exponent == 0:
        return NotImplemented  # refused, since 0 ** 0 is 1
    a = coalesced(a)
    return a.with_carrier(a.values_part ** exponent)
