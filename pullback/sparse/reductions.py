"""Reductions of sparse tensors, over sparse and dense dims: sums, products, extremes and norms.

What is not specified counts as zero; the functions of `masked` count what is specified alone.
Dense dims go first, entry by entry; then entries are reduced that have the other coordinates in
common.  A result is sparse while a sparse dim remains, and dense when none does; with `keepdim`,
rows stay rows and columns columns in their compressed layouts.  Read next: `softmax.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import errors
from ..array import dtype as dt
from ..array.dims import wrap_dims
from ..core.handle import Tensor
from ..parts.rules import rule, shown
from ..table.packets import ops
from . import patterns
from .convert import compressed_of, row_by_row
from .elementwise import coalesced
from .memo import kept
from .tensor import CLASSES, Compressed, Coo, SparseTensor


class Segments(NamedTuple):
    """The entries of a tensor by their coordinates in the dims that stay."""

    at: Tensor | None  # entry -> number of its segment; None: there is one
    count: int
    indices: Tensor | None  # (dims that stay, segments)
    present: Any  # how many entries each has, a number where there is one
    places: int  # how many places each has


class Reduced:
    """A tensor about to be reduced: its values, dims and segments."""

    def __init__(self, t: SparseTensor, dims: Any, keepdim: bool, specified: bool = False):
        self.given, self.keepdim, self.specified = t, keepdim, specified
        self.coo = row_by_row(t)
        self.values = self.coo.values_part
        count = self.coo.sparse_dim()
        if dims is None or not isinstance(dims, int) and not len(dims):
            dims = range(t.ndim)
        self.dims = sorted(wrap_dims(tuple(dims) if not isinstance(dims, int) else dims, t.ndim))
        self.stay = [d for d in range(count) if d not in self.dims]
        self.inside = [d - count + 1 for d in self.dims if d >= count]
        self.segments = self._segments()

    def _segments(self) -> Segments:
        coo, shape = self.coo, self.given.shape
        places = _product([shape[d] for d in self.dims if d < coo.sparse_dim()])
        if not self.stay:
            return Segments(None, 1, None, coo._nnz(), places)
        sizes = tuple([shape[d] for d in self.stay])

        def find() -> tuple:
            stay = coo.indices_part[self.stay]
            # examples with patterns of their own have results of one pattern: with all entries
            every = patterns.is_of_each(stay) and not self.specified
            found = (patterns.all_places if every else patterns.distinct)(stay, sizes)
            count = found.indices.shape[1]
            ones = ops.ones_like(found.inverse)
            zeros = ops.zeros(count, dtype=ones.dtype, device=ones.device)
            present = zeros.index_add(0, found.inverse, ones)
            return found.inverse, count, found.indices, present

        return Segments(*kept(coo.indices_part, f"segments {self.stay}", find), places)

    @property
    def size(self) -> Any:
        """How many elements are reduced to one: a number, or a column of numbers."""
        inside = _product([self.values.shape[d] for d in self.inside])
        if not self.specified:
            return self.segments.places * inside
        return self.column(self.segments.present) * inside

    def column(self, numbers: Any) -> Any:
        """Numbers of the segments, to stand beside what they are reduced to."""
        if not isinstance(numbers, Tensor):
            return numbers
        return numbers.reshape(-1, *[1] * (self.values.ndim - 1 - len(self.inside)))

    def missing(self) -> Any:
        """Is there a place without an entry?"""
        if self.specified:
            return False
        there = self.segments.present
        return self.column(there < self.segments.places)

    # what kinds are made of ----------------------------------------------------------------------

    def sum(self, values: Tensor) -> Tensor:
        """Sums over the dims."""
        values = values.sum(self.inside) if self.inside else values
        s = self.segments
        if s.at is None:
            return values.sum(0)
        zeros = ops.zeros((s.count, *values.shape[1:]), dtype=values.dtype, device=values.device)
        return zeros.index_add(0, s.at, values)

    def other(self, values: Tensor, name: str) -> Tensor:
        """`amax`, `amin` or `prod` of what is specified over the dims."""
        if self.inside and name == "prod":
            for d in reversed(self.inside):
                values = values.prod(d)
        elif self.inside:
            values = getattr(values, name)(self.inside)
        s = self.segments
        if s.at is not None:
            zeros = ops.zeros((s.count, *values.shape[1:]), dtype=values.dtype,
                              device=values.device)
            return zeros.index_reduce(0, s.at, values, name, include_self=False)
        if values.shape[0]:
            return getattr(values, name)(0)
        zeros = values.sum(0)
        return zeros + 1 if name == "prod" else zeros

    def spread(self, numbers: Tensor) -> Tensor:
        """What belongs to a segment, for each of its entries."""
        for d in self.inside:
            numbers = numbers.unsqueeze(d if self.segments.at is not None else d - 1)
        return numbers if self.segments.at is None else numbers[self.segments.at]

    # the result ----------------------------------------------------------------------------------

    def result(self, values: Tensor, sparse: bool = False):
        """Numbers of the segments as a tensor in its layout."""
        t, s = self.given, self.segments
        shape = [n for d, n in enumerate(t.shape) if d not in self.dims]
        kept = self.keepdim and isinstance(t, Compressed) and t.ndim == 2
        if s.at is None and not kept and not sparse:
            full = [1 if d in self.dims else n for d, n in enumerate(t.shape)]
            return values.reshape(full if self.keepdim else shape)
        if s.at is None:
            indices = ops.zeros((0, 1), dtype=dt.int64, device=values.device)
            values = values.unsqueeze(0)
        else:
            indices = s.indices
        if self.keepdim:
            indices, values, shape = _with_dims(indices, values, shape, self.dims)
        out = Coo.make(indices, values, tuple(shape),
                       kept or not self.keepdim or s.at is None)
        if kept and isinstance(t, Compressed):
            name = "Csr" if t.by_rows else "Csc"
            return compressed_of(out, next(c for c in CLASSES.values() if c.__name__ == name),
                                 None)
        return out


def _product(sizes: list) -> int:
    count = 1
    for n in sizes:
        count = count * n
    return count


def _with_dims(indices: Tensor, values: Tensor, shape: list, dims: list) -> tuple:
    """The parts of a tensor with further dims of size one: sparse, unless behind dense ones."""
    rows = list(indices.unbind(0))
    for d in dims:
        if d <= len(rows):
            rows.insert(d, ops.zeros(values.shape[0], dtype=dt.int64, device=values.device))
        else:
            values = values.unsqueeze(d - len(rows) + 1)
        shape = [*shape[:d], 1, *shape[d:]]
    return ops.stack(rows), values, shape


def _widened(values: Tensor, dtype: Any) -> Tensor:
    """Values of the dtype of a sum."""
    if dtype is not None:
        return values.to(dtype)
    return values if values.dtype.is_inexact else values.long()


def total(t: SparseTensor, dims: Any = None, keepdim: bool = False, dtype: Any = None,
          specified: bool = False):
    """Sums over some dims, or over all."""
    if dims is None and not keepdim and not specified:
        return t.values_part.sum(dtype=dtype)  # duplicates too
    if not specified and not isinstance(dims, int) and dims is not None and not len(dims):
        t = coalesced(t)
        return t.with_carrier(_widened(t.values_part, dtype))
    r = Reduced(t, dims, keepdim, specified)
    return r.result(r.sum(_widened(r.values, dtype)), specified)


def product(t: SparseTensor, dims: Any = None, keepdim: bool = False, dtype: Any = None,
            specified: bool = False):
    """Products over some dims, or over all."""
    r = Reduced(t, dims, keepdim, specified)
    out = r.other(_widened(r.values, dtype), "prod")
    return r.result(_zero_where(r.missing(), out), specified)


def _zero_where(missing: Any, out: Tensor) -> Tensor:
    if isinstance(missing, Tensor):
        return ops.where(missing, 0, out)
    return out * 0 if missing else out


def extreme(t: SparseTensor, dims: Any, keepdim: bool, name: str, specified: bool = False):
    """The largest or smallest elements, `name` being amax or amin."""
    r = Reduced(t, dims, keepdim, specified)
    if r.size.__class__ is not int or r.size:
        out = r.other(r.values, name)
    else:
        raise errors.ShapeError(
            f"{name}(): Expected reduction dim to have non-zero size ({errors.user_line(3)})")
    missing = r.missing()
    zero = out.clamp(min=0) if name == "amax" else out.clamp(max=0)
    if isinstance(missing, Tensor):
        out = ops.where(missing, zero, out)
    return r.result(zero if missing is True else out, specified)


def mean(t: SparseTensor, dims: Any = None, keepdim: bool = False, dtype: Any = None,
         specified: bool = False):
    """Means over some dims, or over all."""
    r = Reduced(t, dims, keepdim, specified)
    values = r.values if dtype is None else r.values.to(dtype)
    if not values.dtype.is_inexact:
        raise errors.DTypeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or "
            f"complex dtype. Got: {values.dtype.name} ({errors.user_line(2)})")
    return r.result(r.sum(values) / r.size, specified)


def variance(t: SparseTensor, dims: Any, correction: Any, keepdim: bool, specified: bool = False):
    """(Variances, means) over some dims, or over all, and what makes results of them."""
    r = Reduced(t, dims, keepdim, specified)
    size = r.size
    middle = r.sum(r.values) / size
    apart = (r.values - r.spread(middle)).abs()
    out = r.sum(apart * apart)
    if not specified:
        inside = _product([r.values.shape[d] for d in r.inside])
        absent = r.column(r.segments.places - r.segments.present) * inside
        out = out + absent * (middle.abs() * middle.abs())
    by = size - (1 if correction is None else correction)
    by = by.clamp(min=0) if isinstance(by, Tensor) else max(by, 0)
    return out / by if isinstance(by, Tensor) or by else out / ops.zeros_like(out), middle, r


def norm(t: SparseTensor, order: Any = 2, dims: Any = None, keepdim: bool = False,
         dtype: Any = None, specified: bool = False):
    """Norms over some dims, or over all: of what is specified, as zeros only count for minima."""
    order = 2 if order is None else order
    r = Reduced(t, dims, keepdim, specified)
    values = r.values if dtype is None else r.values.to(dtype)
    if r.segments.at is None and (r.values.shape[0] or order not in (float("inf"), -float("inf"))):
        return r.result(ops.linalg_vector_norm(values, order, [0, *r.inside]), specified)
    size = values.abs()
    if order in (float("inf"), -float("inf")):
        return r.result(r.other(size, "amax" if order > 0 else "amin"), specified)
    if order == 0:
        return r.result(r.sum((size != 0).to(size.dtype)), specified)
    if order == 1:
        return r.result(r.sum(size), specified)
    return r.result(_power(r.sum(_power(size, order)), 1 / order), specified)


def _power(x: Tensor, exponent: Any) -> Tensor:
    """Powers of numbers that are not negative, with derivative zero at zero."""
    none = x == 0
    return ops.where(none, 0, ops.where(none, 1, x) ** exponent)


def truth(t: SparseTensor, dims: Any, keepdim: bool, every: bool):
    """Is any element, or every one, not zero?"""
    r = Reduced(t, dims, keepdim)
    count = r.sum((r.values != 0).long())
    return r.result(count == r.size if every else count > 0)


# the operators


@rule(SparseTensor, "sum")
def _sum(t: SparseTensor, dtype: Any = None):
    return total(t, dtype=dtype)


@rule(SparseTensor, "sum.dim_IntList")
def _sum_dim(t: SparseTensor, dim: Any, keepdim: bool = False, dtype: Any = None):
    return total(t, dim, keepdim, dtype)


@rule(SparseTensor, "nansum")
def _nansum(t: SparseTensor, dim: Any = None, keepdim: bool = False, dtype: Any = None):
    t = coalesced(t)
    return total(t.with_carrier(ops.where(t.values_part.isnan(), 0, t.values_part)), dim, keepdim,
                 dtype)


@rule(SparseTensor, "mean")
def _mean(t: SparseTensor, dtype: Any = None):
    return mean(t, dtype=dtype)


@rule(SparseTensor, "mean.dim")
def _mean_dim(t: SparseTensor, dim: Any, keepdim: bool = False, dtype: Any = None):
    return mean(t, dim, keepdim, dtype)


@rule(SparseTensor, "prod")
def _prod(t: SparseTensor, dtype: Any = None):
    return product(t, dtype=dtype)


@rule(SparseTensor, "prod.dim_int")
def _prod_dim(t: SparseTensor, dim: Any, keepdim: bool = False, dtype: Any = None):
    return product(t, dim, keepdim, dtype)


def _extremes(name: str, alone: str) -> None:
    @rule(SparseTensor, name)
    def of_dims(t: SparseTensor, dim: Any = (), keepdim: bool = False):
        return extreme(t, dim, keepdim, name)

    @rule(SparseTensor, alone)
    def of_all(t: SparseTensor, *dim: Any):
        return NotImplemented if dim else extreme(t, None, False, name)


_extremes("amax", "max")
_extremes("amin", "min")


def _truths(name: str, every: bool) -> None:
    @rule(SparseTensor, name)
    def of_all(t: SparseTensor, dim: Any = None, keepdim: bool = False):
        return truth(t, dim, keepdim, every)


_truths("any", False)
_truths("all", True)


@rule(SparseTensor, "linalg_vector_norm")
def _vector_norm(t: SparseTensor, ord: Any = 2, dim: Any = None, keepdim: bool = False,
                 dtype: Any = None):
    return norm(t, ord, dim, keepdim, dtype)


@rule(SparseTensor, "dist")
def _dist(a: Any, b: Any, p: Any = 2):
    return (a - b).norm(p)


@rule(SparseTensor, "var.correction")
def _var(t: SparseTensor, dim: Any = None, correction: Any = None, keepdim: bool = False):
    out, _, r = variance(t, dim, correction, keepdim)
    return r.result(out)


@rule(SparseTensor, "std.correction")
def _std(t: SparseTensor, dim: Any = None, correction: Any = None, keepdim: bool = False):
    out, _, r = variance(t, dim, correction, keepdim)
    return r.result(_power(out, 0.5))


@rule(SparseTensor, "var_mean.correction")
def _var_mean(t: SparseTensor, dim: Any = None, correction: Any = None, keepdim: bool = False):
    out, middle, r = variance(t, dim, correction, keepdim)
    return r.result(out), r.result(middle)


@rule(SparseTensor, "std_mean.correction")
def _std_mean(t: SparseTensor, dim: Any = None, correction: Any = None, keepdim: bool = False):
    out, middle, r = variance(t, dim, correction, keepdim)
    return r.result(_power(out, 0.5)), r.result(middle)


@rule(SparseTensor, "count_nonzero", "count_nonzero.dim_IntList")
def _count_nonzero(t: SparseTensor, dim: Any = None):
    r = Reduced(t, dim, False)
    return r.result(r.sum((r.values != 0).long()))


@rule(SparseTensor, "trace")
def _trace(t: SparseTensor):
    if t.ndim != 2 or t.dense_dim():
        raise errors.ShapeError(errors.text(
            f"trace: expected a matrix ({errors.user_line(2)})", shown(t)))
    rows, cols, values = t.entries()
    return ops.where(rows == cols, values, 0).sum()


def sum(input: SparseTensor, dim: Any = None, dtype: Any = None):
    """The sum of a sparse tensor over some dims: sparse while a sparse dim remains."""
    if not isinstance(input, SparseTensor):
        raise errors.LayoutError(errors.text(
            f"sparse.sum: expected a sparse tensor ({errors.user_line(2)})", shown(input),
            "torch.sum(x, dim)"))
    if dim is None:
        return total(input, dtype=dtype)
    return total(input, dim, False, input.dtype if dtype is None else dtype)
