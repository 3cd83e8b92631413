"""Statistics: modes, medians and quantiles, histograms, norm clipping, segment reductions; and the
numerical calculus that goes with them: differences, gradients, integrals.

Sums and means are in `ops/reduce.py`, sorting and search in `ops/order.py`.  Longer formulas are
in `formulas/statistics.py`; distances between points are in `ops/distance.py`.
"""

from __future__ import annotations

import math

from ..core import dtype as dt
from ..core.batching import dims
from ..core.dims import wrap_dim, wrap_dims
from ..core.op import Composite, Op, Reduction
from ..core.table import ops
from ..core.xp import accumulate_at, running_maximum
from ..errors import DataDependentError, DTypeError, ShapeError
from ..formulas.statistics import clipped_factor, others_than, segment_pullback, segment_value
from .create import _linspace
from .layout import in_front
from .norm import narrowed, widened
from .pointwise import refuse, title
from .reduce import _along, check_size, extremes, extremes_of_all, reduced, rows

# ---------------------------------------------------------------------------------------------
# Modes and medians


class mode(Reduction):
    """Most frequent elements along a dim (the smallest of them), and where each occurs last.

    NaN equals nothing, not even itself, and wins only where there is nothing else.
    """
    schema = ("mode(Tensor self, int dim=-1, bool keepdim=False)"
              " -> (Tensor values, Tensor indices)")
    grad = {"self": "selected_pullback(grad, self.shape, indices, dim, keepdim)"}
    push = {"values": "selected_push(self_t, indices, dim, keepdim)"}
    diff_outputs = (True, False)
    shape = _along
    dtype = "[self.dtype, dt.int64]"
    batch = dims("dim")

    def run(xp, self, dim, keepdim):
        refuse("mode_cpu", self, "c")
        check_size("mode", self.shape, dim)
        dim = wrap_dim(dim, self.ndim)
        if self.ndim == 0:
            return self.copy(), xp.zeros((), dtype=xp.int64)
        x = xp.moveaxis(self, dim, -1)
        order = xp.argsort(x, axis=-1, kind="stable")
        x = xp.take_along_axis(x, order, -1)
        size = x.shape[-1]
        place = xp.arange(size)
        fresh = xp.concatenate([xp.ones((*x.shape[:-1], 1), dtype=bool),
                                x[..., 1:] != x[..., :-1]], axis=-1)
        start = running_maximum(xp, xp.where(fresh, place, 0))
        winner = xp.expand_dims(xp.argmax(place - start, axis=-1), -1)
        values = xp.moveaxis(xp.take_along_axis(x, winner, -1), -1, dim)
        indices = xp.moveaxis(xp.take_along_axis(order, winner, -1), -1, dim).astype(xp.int64)
        if keepdim:
            return values, indices
        return xp.squeeze(values, axis=dim), xp.squeeze(indices, axis=dim)

    def samples(s):
        yield from extremes(s)
        yield s(s.int(4, 5, high=3))
        yield s(s.bool(3, 4), 0)


def _nanmedian_place(xp, x):
    """Index of the lower median of what is not NaN, along the last axis; the middle if all are."""
    order = xp.argsort(x, axis=-1, kind="stable")  # NaN come last
    count = x.shape[-1]
    if x.dtype.kind == "f":
        count = xp.sum(~xp.isnan(x), axis=-1)
        count = xp.where(count == 0, x.shape[-1], count)
    place = xp.broadcast_to((count - 1) // 2, x.shape[:-1])
    return xp.take_along_axis(order, xp.expand_dims(place, -1), -1)[..., 0]


class nanmedian_default(Reduction):
    """Lower median of all elements that are not NaN."""
    schema = "nanmedian(Tensor self) -> Tensor"
    grad = {"self": "nanmedian_pullback(grad, self, result)"}
    push = "nanmedian_push(self_p, self_t, result)"
    shape = "()"

    def run(xp, self):
        refuse("median_cpu", self, "bc")
        flat = xp.reshape(self, (-1,))
        if flat.shape[0] == 0:
            return xp.full((), math.nan).astype(self.dtype)
        return flat[_nanmedian_place(xp, flat)]

    def batch(n, batched, self):
        if not math.prod(self.shape[1:]):
            return ops.nanmedian(self.new_empty((0,))).expand((n,))
        return rows(n, self).nanmedian(1)[0]

    samples = extremes_of_all


class nanmedian_dim(Reduction):
    """Lower medians along a dim of what is not NaN, and where they are."""
    schema = ("nanmedian.dim(Tensor self, int dim, bool keepdim=False)"
              " -> (Tensor values, Tensor indices)")
    grad = {"self": "selected_pullback(grad, self.shape, indices, dim, keepdim)"}
    push = {"values": "selected_push(self_t, indices, dim, keepdim)"}
    diff_outputs = (True, False)
    shape = _along
    dtype = "[self.dtype, dt.int64]"
    batch = dims("dim")
    samples = extremes

    def run(xp, self, dim, keepdim):
        refuse("median_cpu", self, "bc")
        check_size("median", self.shape, dim)
        dim = wrap_dim(dim, self.ndim)
        if self.ndim == 0:
            return self.copy(), xp.zeros((), dtype=xp.int64)
        place = _nanmedian_place(xp, xp.moveaxis(self, dim, -1))
        indices = xp.expand_dims(xp.asarray(place, dtype=xp.int64), dim)
        values = xp.take_along_axis(self, indices, dim)
        if keepdim:
            return values, indices
        return xp.squeeze(values, axis=dim), xp.squeeze(indices, axis=dim)


class nanmean(Composite):
    """Means over some dims of the elements that are not NaN."""
    schema = ("nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, "
              "ScalarType? dtype=None) -> Tensor")

    def compose(self, dim, keepdim, dtype):
        if self.dtype.category < 2:
            raise DTypeError("nanmean(): expected input to have floating point or complex dtype "
                             f"but got {title(self.dtype)}")
        count = ops.sum(self.isnan().logical_not(), dim, keepdim)
        return ops.nansum(self, dim, keepdim, dtype=dtype) / count

    def samples(s):
        yield s(s.values([[1.0, math.nan, 3.0], [2.0, 5.0, math.nan]]), 1)
        yield s(s.values([[1.0, math.nan, 3.0], [2.0, 5.0, math.nan]]), [0, -1], True)
        yield s(s.real(3, 4))
        yield s(s.real())


# ---------------------------------------------------------------------------------------------
# Quantiles

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")
LONGEST = 16_000_000  # elements in a row, PyTorch's limit


def _check_quantile(self, q, dim, interpolation) -> None:
    if self.numel() == 0:
        raise ShapeError("quantile() input tensor must be non-empty")
    if q.ndim > 1:
        raise ShapeError(f"quantile() q must be a scalar or 1D tensor, but got {q.ndim} dims")
    if self.dtype not in (dt.float32, dt.float64):
        raise DTypeError("quantile() input tensor must be either float or double dtype, but got "
                         f"{title(self.dtype)}")
    if q.dtype is not self.dtype:
        raise DTypeError("quantile() q tensor must be same dtype as the input tensor, but got "
                         f"{title(q.dtype)} and {title(self.dtype)}")
    if interpolation not in INTERPOLATIONS:
        raise RuntimeError("quantile() interpolation must be one of linear, lower, higher, "
                           f"midpoint or nearest, but got {interpolation}")
    dim = None if dim is None else wrap_dim(dim, self.ndim)
    size = self.numel() if dim is None else self.shape[dim] if self.ndim else 1
    if size > LONGEST:
        raise RuntimeError("quantile() input tensor is too large")
    try:
        inside = bool((q >= 0).logical_and(q <= 1).all())
    except DataDependentError:
        return  # only shapes are known
    if not inside:
        raise RuntimeError("quantile() q values must be in the range [0, 1]")


def _quantile(self, q, dim, keepdim, interpolation, skip_nan):
    """Sort; the rank q (n - 1) lies between two elements, of which an average is taken."""
    _check_quantile(self, q, dim, interpolation)
    shape = reduced(self.shape, dim, keepdim)
    if dim is None or self.ndim == 0:
        wrap_dim(dim or 0, self.ndim)
        x = self.reshape((-1,))
    else:
        x = self.movedim(dim, -1)
    x = x.sort(-1)[0]
    last = x.shape[-1] - 1
    if skip_nan:
        rank = q * (x.isnan().logical_not().sum(-1, True) - 1).clamp(min=0)
    else:
        rank = ops.where(x.isnan().any(-1, True), float(last), q * last)
    rank = rank.expand((*x.shape[:-1], q.numel()))
    if interpolation in ("lower", "higher", "nearest"):
        rank = {"lower": ops.floor, "higher": ops.ceil, "nearest": ops.round}[interpolation](rank)
        out = x.gather(-1, rank.to(dt.int64))
    else:
        below = rank.to(dt.int64)
        above = rank.ceil().to(dt.int64)
        weight = 0.5 if interpolation == "midpoint" else rank - below
        if interpolation == "midpoint":
            weight = ops.full_like(rank, 0.5)
        out = ops.lerp(x.gather(-1, below), x.gather(-1, above), weight)
    if q.ndim == 0:
        return out.reshape(shape)
    return out.movedim(-1, 0).reshape((q.shape[0], *shape))


def _quantile_samples(s):
    q = s.values([0.1, 0.3, 0.55, 0.9])
    yield s(_spread(s, 3, 5), q, 1)
    yield s(_spread(s, 3, 5), q, 0, True)
    yield s(_spread(s, 3, 5), s.values(0.4))
    yield s(_spread(s, 3, 5), q, None, True)
    yield s(s.real(), s.values([0.4]))
    for way in INTERPOLATIONS:
        yield s(_spread(s, 3, 5), s.values([0.3, 0.55]), -1, interpolation=way)


def _spread(s, *shape):
    """Distinct values in mixed order with uneven gaps."""
    count = math.prod(shape)
    values = [(7 * k + 2) % count for k in range(count)]
    return s.values([v * 0.3 + 0.01 * v * v for v in values]).reshape(shape)


def _number_in_range(q: float) -> float:
    if not 0 <= q <= 1:
        raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")
    return q


def _number_samples(s):
    yield s(_spread(s, 3, 5), 0.3, 1)
    yield s(_spread(s, 3, 5), 0.3, keepdim=True, interpolation="midpoint")
    yield s(s.real(), 1.0)


QUANTILE = "int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor"


class quantile(Composite):
    """Quantiles along a dim, or of all elements; NaN where there is a NaN."""
    schema = f"quantile(Tensor self, Tensor q, {QUANTILE}"
    samples = _quantile_samples

    def compose(self, q, dim, keepdim, interpolation):
        return _quantile(self, q, dim, keepdim, interpolation, False)


class quantile_scalar(Composite):
    """One quantile along a dim, or of all elements."""
    schema = f"quantile.scalar(Tensor self, float q, {QUANTILE}"
    samples = _number_samples

    def compose(self, q, dim, keepdim, interpolation):
        q = ops.full((), _number_in_range(q), dtype=self.dtype, device=self.device)
        return _quantile(self, q, dim, keepdim, interpolation, False)


class nanquantile(Composite):
    """Quantiles along a dim, or of all elements, of what is not NaN."""
    schema = f"nanquantile(Tensor self, Tensor q, {QUANTILE}"
    samples = _quantile_samples

    def compose(self, q, dim, keepdim, interpolation):
        return _quantile(self, q, dim, keepdim, interpolation, True)


class nanquantile_scalar(Composite):
    """One quantile along a dim, or of all elements, of what is not NaN."""
    schema = f"nanquantile.scalar(Tensor self, float q, {QUANTILE}"
    samples = _number_samples

    def compose(self, q, dim, keepdim, interpolation):
        q = ops.full((), _number_in_range(q), dtype=self.dtype, device=self.device)
        return _quantile(self, q, dim, keepdim, interpolation, True)


# ---------------------------------------------------------------------------------------------
# Histograms


def _check_bins(bins: int, dim: int = 0) -> None:
    if bins <= 0:
        raise ShapeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension {dim}")


class histc(Op):
    """How many elements fall into each of `bins` equal intervals from `min` to `max`.

    The bounds are the extremes of the data if they are equal; what lies outside, and NaN, is left
    out.
    """
    schema = "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor"
    promote = "keep"
    diff_outputs = (False,)
    shape = "(bins,)"
    dtype = "self.dtype"
    cost = "reduce"

    def run(xp, self, bins, min, max):
        _check_bins(bins)
        if min == max:
            refuse("aminmax_cpu", self, "c")
        x = xp.reshape(self, (-1,))
        low, high = float(min), float(max)
        if low == high and x.size:
            low, high = float(x.min()), float(x.max())
        if low == high:
            low, high = low - 1, high + 1
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
        if low > high:
            raise RuntimeError("torch.histc: max must be larger than min")
        refuse("histogram_cpu", self, "biuc")
        low, high, scale = (self.dtype.type(v) for v in (low, high, bins))
        x = x[(x >= low) & (x <= high)]
        place = ((x - low) * scale / (high - low)).astype(xp.int64)
        return xp.bincount(xp.minimum(place, bins - 1), minlength=bins).astype(self.dtype)

    def batch(n, batched, self, bins, min, max):
        return _histc_rows(rows(n, self), bins, min, max)

    def decomp(self, bins, min, max):
        return _histc_rows(self.reshape((1, -1)), bins, min, max).squeeze(0)

    def samples(s):
        yield s(s.real(3, 4), 4)
        yield s(s.real(3, 4), 3, -1, 1.5)
        yield s(s.real(0), 3)
        yield s(s.real(), 3, -2, 2)
        yield s(s.values([1.0, 1.0]), 4)
        yield s(s.values([1.0, math.nan, 0.5]), 2, 0, 1)


def _histc_rows(x, bins, min, max):
    """`histc` of each row of a matrix, in terms of operators."""
    _check_bins(bins)
    if min == max and x.shape[1]:
        low, high = x.amin([1], True), x.amax([1], True)
        single = low == high
        low, high = ops.where(single, low - 1, low), ops.where(single, high + 1, high)
    elif min > max:
        raise RuntimeError("torch.histc: max must be larger than min")
    else:
        low, high = (min - 1, max + 1) if min == max else (min, max)
    inside = (x >= low).logical_and(x <= high)
    place = (x - low).masked_fill(inside.logical_not(), 0) * bins / (high - low)
    place = place.to(dt.int64).clamp(max=bins - 1)
    return x.new_zeros((x.shape[0], bins)).scatter_add(1, place, inside.to(x.dtype))


def one_by_one():
    """Batch rule that takes one example after the other: their cells have nothing in common."""

    def rule(n, batched, *flat):
        def pick(value, flag, i):
            if isinstance(value, list):
                flags = flag if isinstance(flag, list) else [False] * len(value)
                return [pick(v, f, i) for v, f in zip(value, flags, strict=True)]
            return value.select(0, i) if flag else value

        outs = [rule.overload.call(*(pick(v, f, i) for v, f in zip(flat, batched, strict=True)))
                for i in range(n)]
        if hasattr(outs[0], "_edge"):
            return ops.stack(outs)
        parts = [ops.stack(list(p)) for p in zip(*outs, strict=True)]
        return type(outs[0])(*parts) if hasattr(outs[0], "_fields") else parts

    rule.needs_overload = True
    return rule


def _points(xp, self, weight):
    """Input of a histogram as (points, coordinates), and one weight for each point or None."""
    if self.ndim < 2:
        raise ShapeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    if weight is not None:
        if weight.dtype != self.dtype:
            raise DTypeError(
                "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor "
                f"should have the same dtype, but got input({self.dtype}), and "
                f"weight({weight.dtype})")
        if weight.shape != self.shape[:-1]:
            raise ShapeError(
                "torch.histogramdd: if weight tensor is provided it should have the same shape as "
                "the input tensor excluding its innermost dimension, but got input with shape "
                f"{list(self.shape)} and weight with shape {list(weight.shape)}")
        weight = xp.reshape(weight, (-1,))
    return xp.reshape(self, (math.prod(self.shape[:-1]), self.shape[-1])), weight


def _floating_only(points) -> None:
    if points.dtype.kind != "f" or points.dtype.itemsize < 4:
        refuse("histogramdd", points, "biufcV")


def _check_counts(self, bins) -> None:
    if len(bins) != self.shape[-1]:
        raise ShapeError("histogramdd: The size of bins must be equal to the innermost dimension "
                         "of the input.")
    for dim, count in enumerate(bins):
        _check_bins(count, dim)


def _even_edges(xp, points, bins, limits) -> list:
    """Evenly spaced edges of the bins of each coordinate."""
    size = points.shape[1]
    if limits is not None and len(limits) != 2 * size:
        raise ShapeError(f"torch.histogramdd: for a {size}-dimensional histogram range should have "
                         f"{2 * size} elements, but got {len(limits)}")
    edges = []
    for dim, count in enumerate(bins):
        if limits is not None:
            low, high = limits[2 * dim], limits[2 * dim + 1]
        elif points.shape[0]:
            low, high = float(points[:, dim].min()), float(points[:, dim].max())
        else:
            low, high = 0.0, 1.0
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(f"torch.histogramdd: dimension {dim}'s range [{low:g}, {high:g}] is "
                               "not finite")
        if low > high:
            raise RuntimeError("torch.histogramdd: min should not exceed max, but got min "
                               f"{low:g} max {high:g} for dimension {dim}")
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges.append(_linspace(xp, low, high, count + 1, dt.of(points.dtype)))
    return edges


def _given_edges(self, bins) -> None:
    if len(bins) != self.shape[-1]:
        raise ShapeError(f"torch.histogramdd: expected {self.shape[-1]} sequences of bin edges for "
                         f"a {self.shape[-1]}-dimensional histogram but got {len(bins)}")
    for dim, edges in enumerate(bins):
        if edges.dtype != self.dtype:
            raise DTypeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but "
                f"got input with dtype {self.dtype} and bins for dimension {dim} with dtype "
                f"{edges.dtype}")
        if edges.ndim != 1:
            raise ShapeError("torch.histogramdd: bins tensor should have one dimension, but got "
                             f"{edges.ndim} dimensions in the bins tensor for dimension {dim}")
        if not edges.shape[0]:
            raise ShapeError("torch.histogramdd: bins tensor should have at least 1 element, but "
                             f"got 0 elements in the bins tensor for dimension {dim}")
        _check_bins(edges.shape[0] - 1, dim)


def _counted(xp, points, weight, edges, density: bool):
    """Sums of weights (or counts) of the points in each cell of a grid.

    Cells are open above, but for the last ones; points outside of the grid count nowhere.
    """
    _floating_only(points)
    counts = [e.shape[0] - 1 for e in edges]
    place = xp.zeros(points.shape[0], dtype=xp.int64)
    inside = xp.ones(points.shape[0], dtype=bool)
    for dim, e in enumerate(edges):
        x = points[:, dim]
        inside &= (x >= e[0]) & (x <= e[-1])
        cell = xp.minimum(xp.searchsorted(e, x, side="right") - 1, counts[dim] - 1)
        place = place * counts[dim] + cell
    if weight is not None:
        weight = weight[inside].astype(xp.float64)
    hist = xp.bincount(place[inside], weight, math.prod(counts)).astype(points.dtype)
    hist = xp.reshape(hist, counts)
    if not density:
        return hist
    hist = hist / hist.sum()
    for dim, e in enumerate(edges):
        width = xp.reshape(e[1:] - e[:-1], [-1 if d == dim else 1 for d in range(len(edges))])
        hist = hist / width
    return hist


def _histogram_samples(s):
    yield s(s.real(4, 3), 4)
    yield s(s.real(5), 3, weight=s.real(5), density=True)
    yield s(s.real(5), 3, range=[-1.0, 1.0])
    yield s(s.real(0), 2)
    yield s(s.real(), 2)


class histogram_bin_ct(Op):
    """Counts, or sums of weights, of elements in even intervals, and the edges of these."""
    schema = ("histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None,"
              " Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)")
    promote = "keep"
    cost = "reduce"
    batch = one_by_one()
    samples = _histogram_samples

    def run(xp, self, bins, range, weight, density):
        flat = None if weight is None else xp.reshape(weight, (-1,))
        points, flat = _points(xp, xp.reshape(self, (-1, 1)), flat)
        _check_bins(bins)
        edges = _even_edges(xp, points, [bins], range)
        return _counted(xp, points, flat, edges, density), edges[0]

    def shape(self, bins, range, weight, density):
        return [(bins,), (bins + 1,)]

    def dtype(self, bins, range, weight, density):
        return [self.dtype, self.dtype]


class histogram_bins_tensor(Op):
    """Counts, or sums of weights, of elements between given edges."""
    schema = ("histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None,"
              " bool density=False) -> (Tensor hist, Tensor bin_edges)")
    promote = "keep"
    cost = "reduce"
    batch = one_by_one()

    def run(xp, self, bins, weight, density):
        flat = None if weight is None else xp.reshape(weight, (-1,))
        points, flat = _points(xp, xp.reshape(self, (-1, 1)), flat)
        _given_edges(points, [bins])
        return _counted(xp, points, flat, [bins], density), bins.copy()

    def shape(self, bins, weight, density):
        return [(max(bins.shape[0] - 1, 0),), tuple(bins.shape)]

    def dtype(self, bins, weight, density):
        return [self.dtype, self.dtype]

    def samples(s):
        yield s(s.real(4, 3), s.values([-2.0, -0.5, 0.5, 2.0]))
        yield s(s.real(5), s.values([-1.0, 0.0, 1.0]), weight=s.real(5), density=True)


class _histogramdd_bin_edges(Op):
    """Edges of an even grid around points."""
    schema = ("_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None,"
              " Tensor? weight=None, bool density=False) -> Tensor[]")
    promote = "keep"
    cost = "reduce"
    batch = one_by_one()
    method = False

    def run(xp, self, bins, range, weight, density):
        points, _ = _points(xp, self, weight)
        _check_counts(points, bins)
        return _even_edges(xp, points, bins, range)

    def shape(self, bins, range, weight, density):
        return [(count + 1,) for count in bins]

    def dtype(self, bins, range, weight, density):
        return [self.dtype] * len(bins)

    def samples(s):
        yield s(s.real(4, 2), [2, 3])
        yield s(s.real(4, 2), [2, 3], range=[-1.0, 1.0, 0.0, 2.0])


class _histogramdd_from_bin_cts(Op):
    """Counts, or sums of weights, of points in the cells of an even grid."""
    schema = ("_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None,"
              " Tensor? weight=None, bool density=False) -> Tensor")
    promote = "keep"
    cost = "reduce"
    batch = one_by_one()
    method = False

    def run(xp, self, bins, range, weight, density):
        points, flat = _points(xp, self, weight)
        _check_counts(points, bins)
        return _counted(xp, points, flat, _even_edges(xp, points, bins, range), density)

    def shape(self, bins, range, weight, density):
        return tuple(bins)

    def dtype(self, bins, range, weight, density):
        return self.dtype

    def samples(s):
        yield s(s.real(4, 2), [2, 3])
        yield s(s.real(2, 2, 2), [2, 3], weight=s.real(2, 2), density=True)


class _histogramdd_from_bin_tensors(Op):
    """Counts, or sums of weights, of points in the cells of a grid."""
    schema = ("_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None,"
              " bool density=False) -> Tensor")
    promote = "keep"
    cost = "reduce"
    batch = one_by_one()
    method = False

    def run(xp, self, bins, weight, density):
        points, flat = _points(xp, self, weight)
        _given_edges(points, bins)
        return _counted(xp, points, flat, bins, density)

    def shape(self, bins, weight, density):
        return tuple(max(b.shape[0] - 1, 0) for b in bins)

    def dtype(self, bins, weight, density):
        return self.dtype

    def samples(s):
        yield s(s.real(4, 2), [s.values([-2.0, 0.0, 2.0]), s.values([-1.0, 1.0])])


def _grid_result(hist, edges):
    """Histogram and edges under the names that PyTorch gives them."""
    from collections import namedtuple

    return namedtuple("histogramdd", ["hist", "bin_edges"])(hist, tuple(edges))


class histogramdd(Composite):
    """Counts of points in the cells of an even grid, and the edges of the grid."""
    schema = ("histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None,"
              " bool density=False) -> (Tensor hist, Tensor[] bin_edges)")
    method = False
    unchecked = ("pullback", "pushforward", "second_order")  # not differentiable, as in PyTorch

    def compose(self, bins, range, weight, density):
        given = {"range": range, "weight": weight, "density": density}
        hist = ops._histogramdd_from_bin_cts(self, bins, **given)
        return _grid_result(hist, ops._histogramdd_bin_edges(self, bins, **given))

    def samples(s):
        yield s(s.real(4, 2), [2, 3])
        yield s(s.real(4, 2), [2, 3], [-1.0, 1.0, 0.0, 2.0], s.real(4), True)


class histogramdd_int_bins(Composite):
    """`histogramdd` with the same number of bins for all coordinates."""
    schema = ("histogramdd.int_bins(Tensor self, int bins, float[]? range=None,"
              " Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)")
    method = False
    unchecked = ("pullback", "pushforward", "second_order")  # not differentiable, as in PyTorch

    def compose(self, bins, range, weight, density):
        if self.ndim < 2:
            raise ShapeError("torch.histogramdd: input tensor should have at least 2 dimensions")
        return histogramdd.compose(self, [bins] * self.shape[-1], range, weight, density)

    def samples(s):
        yield s(s.real(2, 2, 2), 3)


class histogramdd_TensorList_bins(Composite):
    """`histogramdd` with given edges."""
    schema = ("histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None,"
              " Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)")
    method = False
    unchecked = ("pullback", "pushforward", "second_order")  # not differentiable, as in PyTorch

    def compose(self, bins, range, weight, density):
        hist = ops._histogramdd_from_bin_tensors(self, bins, weight=weight, density=density)
        return _grid_result(hist, bins)

    def samples(s):
        yield s(s.real(4, 2), [s.values([-2.0, 0.0, 2.0]), s.values([-1.0, 1.0])])


# ---------------------------------------------------------------------------------------------
# Norms


class renorm(Op):
    """Slices along a dim whose p-norm exceeds `maxnorm`, cut down to that norm."""
    schema = "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor"
    promote = "keep"
    grad = {"self": "renorm_pullback(grad, self, p, dim, maxnorm)"}
    push = "renorm_push(self_p, self_t, p, dim, maxnorm)"
    shape = "tuple(self.shape)"
    dtype = "self.dtype"
    cost = "reduce"
    complex = True
    inplace = True

    def run(xp, self, p, dim, maxnorm):
        if isinstance(p, complex):
            raise RuntimeError("renorm: p must be real-valued")
        if not p > 0:
            raise RuntimeError("renorm: non-positive-norm not supported")
        if isinstance(maxnorm, complex):
            raise RuntimeError("renorm: maxnorm must be real-valued")
        if not maxnorm >= 0:
            raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
        if self.ndim < 2:
            raise ShapeError(f"renorm: input needs at least 2 dimensions, got {self.ndim} "
                             "dimensions")
        if self.dtype.kind in "biu":
            raise DTypeError("linalg.vector_norm: Expected a floating point or complex tensor as "
                             f"input. Got {title(self.dtype)}")
        axes = tuple(others_than(dim, self.ndim))
        if p == math.inf and 0 in [self.shape[d] for d in axes]:
            raise RuntimeError("linalg.vector_norm cannot compute the inf norm of an empty slice: "
                               "the operation does not have an identity")
        size = xp.abs(widened(xp, self))
        if p == math.inf:
            norm = size.max(axis=axes, keepdims=True) if axes else size
        elif p == 2:
            norm = xp.sqrt((size * size).sum(axis=axes, keepdims=True))
        else:
            norm = (size**p).sum(axis=axes, keepdims=True) ** (1 / p)
        factor = xp.where(norm > maxnorm, maxnorm / (norm + 1e-7), 1)
        kind = self.real.dtype if self.dtype.kind == "c" else self.dtype
        return self * factor.astype(kind)  # the factor is rounded first, as PyTorch does

    def batch(n, batched, self, p, dim, maxnorm):
        dim = wrap_dim(dim, self.ndim - 1) + 1
        shape = self.shape
        self = self.movedim(dim, 1)  # slices of all examples side by side
        flat = self.reshape((n * self.shape[1], -1) if self.numel() else (n * self.shape[1], 0))
        out = ops.renorm(flat, p, 0, maxnorm).reshape(self.shape)
        return out.movedim(1, dim).reshape(shape)

    def decomp(self, p, dim, maxnorm):
        norm = ops.linalg_vector_norm(self, p, others_than(dim, self.ndim), True)
        return self * clipped_factor(norm, maxnorm)[0]

    def samples(s):
        yield s(s.real(3, 4), 2, 0, 1.0)
        yield s(s.real(3, 4), 1, -1, 2)
        yield s(s.real(2, 3, 2), 3, 1, 1.5)
        yield s(s.real(4, 3).T, 1.5, 0, 1.0)
        yield s(s.real(3, 4), 2, 0, 100)
        yield s(s.real(0, 3), 2, 1, 1.0)


class dist(Op):
    """The p-norm of the difference of two tensors."""
    schema = "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor"
    promote = "default"
    grad = {"self": "dist_pullback(grad, self, other, p, result)",
            "other": "-dist_pullback(grad, self, other, p, result)"}
    push = "dist_push(self_p, self_t, other_p, other_t, p, result)"
    shape = "()"
    cost = "reduce"
    complex = True

    def check(self, other, p):
        common = dt.result_type([self, other])
        if common is dt.bool_:
            raise DTypeError("Subtraction, the `-` operator, with two bool tensors is not "
                             "supported. Use the `^` or `logical_xor()` operator instead.")
        if common.category < 2:
            raise DTypeError("norm(): input dtype should be either floating point or complex. Got "
                             f"{title(common)} instead.")

    def dtype(self, other, p):
        return dt.result_type([self, other]).to_real()

    def run(xp, self, other, p):
        size = xp.abs(self - other)
        if not size.size and (p < 0 or p == math.inf):
            raise RuntimeError(f"linalg.vector_norm cannot compute the {p} norm on an empty tensor "
                               "because the operation does not have an identity")
        if p == 0:
            return (size != 0).sum()
        if math.isinf(p):
            return size.max() if p > 0 else size.min()
        if p == 1:
            return size.sum()
        if p == 2:
            return xp.sqrt((size * size).sum())
        return (size**p).sum() ** (1 / p)

    def batch(n, batched, self, other, p):
        rank = max(self.ndim - batched[0], other.ndim - batched[1])
        offset = _padded(self, batched[0], rank) - _padded(other, batched[1], rank)
        return ops.linalg_vector_norm(rows(n, offset), p, [1])

    def decomp(self, other, p):
        return ops.linalg_vector_norm(self - other, p)

    def samples(s):
        for p in (0, 1, 2, 3, 1.5, math.inf):
            yield s(s.real(3, 4), s.real(3, 4), p)
        yield s(s.real(3, 1), s.real(4))
        yield s(s.real(), s.real())
        yield s(s.real(0), s.real(0))


def _padded(x, is_batched: bool, rank: int):
    """Dims of size 1 behind the batch dim, so that logical dims line up from the right."""
    if not is_batched or x.ndim - 1 >= rank:
        return x
    return x.reshape((x.shape[0], *(1,) * (rank - x.ndim + 1), *x.shape[1:]))


# ---------------------------------------------------------------------------------------------
# Segments

SEGMENT_FUNCTIONS = {"sum": ("add", 0), "mean": ("add", 0), "prod": ("multiply", 1),
                     "max": ("maximum", -math.inf), "min": ("minimum", math.inf)}
SEGMENT_FUNCTIONS["amax"], SEGMENT_FUNCTIONS["amin"] = (
    SEGMENT_FUNCTIONS["max"], SEGMENT_FUNCTIONS["min"])


def _segment_axis(data, reduce, lengths, indices, offsets, axis) -> int:
    """The axis, after a look at everything that shapes can tell."""
    axis = wrap_dim(axis, data.ndim)
    if reduce not in SEGMENT_FUNCTIONS:
        raise RuntimeError("reduce argument must be either sum, prod, mean, amax or amin, got "
                           f"{reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    given = offsets if offsets is not None else lengths
    if given is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    what = "offsets" if offsets is not None else "lengths"
    if given.ndim > data.ndim:
        raise ShapeError(f"segment_reduce(): {what} has {given.ndim} dims, data only {data.ndim}")
    if given.ndim - 1 != axis:
        raise ShapeError(f"segment_reduce(): Expected axis to be the last dimension of {what} but "
                         f"got {axis}.")
    if given.shape[:-1] != data.shape[:axis]:
        raise ShapeError(f"segment_reduce(): {what} of shape {list(given.shape)} and data of shape "
                         f"{list(data.shape)} do not agree in front of axis {axis}")
    if offsets is not None and not offsets.shape[-1]:
        raise ShapeError("segment_reduce(): offsets must have at least one element")
    return axis


def _segment_bounds(xp, data, lengths, offsets, axis, unsafe):
    """Starts and ends of the segments, (leading dims, segments + 1), after a look at the values."""
    given = offsets if offsets is not None else lengths
    if given.dtype.kind not in "iu":
        refuse("_segment_reduce_lengths_cpu_kernel1", given, "bfcV")
    if offsets is not None:
        bounds = xp.reshape(offsets.astype(xp.int64), (-1, offsets.shape[-1]))
        if (bounds[:, 1:] < bounds[:, :-1]).any():
            raise RuntimeError("segment_reduce(): offsets must not decrease")
        return bounds
    if not unsafe:
        if not lengths.size:
            raise RuntimeError("min(): Expected reduction dim to be specified for input.numel() == "
                               "0. Specify the reduction dim with the 'dim' argument.")
        if (lengths < 0).any():
            raise RuntimeError("lengths contains negative value!")
        if (lengths.sum(axis=-1) != data.shape[axis]).any():
            raise RuntimeError("segment_reduce(): Expected all rows of lengths along axis to sum "
                               "to data.size(lengths.dim()-1) when !unsafe.")
    ends = xp.cumsum(xp.reshape(lengths.astype(xp.int64), (-1, lengths.shape[-1])), axis=-1)
    return xp.concatenate([xp.zeros((ends.shape[0], 1), dtype=xp.int64), ends], axis=-1)


class segment_reduce(Op):
    """Sums, means, products or extremes of consecutive elements along an axis.

    Segments are given by their lengths or by their bounds; an empty one gives `initial`, or the
    identity of the reduction (NaN for means).
    """
    schema = ("segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None,"
              " Tensor? indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False,"
              " Scalar? initial=None) -> Tensor")
    aliases = ("_segment_reduce",)
    promote = "keep"
    grad = {"data": "segment_pullback(grad, result, data, reduce, lengths, offsets, axis, initial)"}
    push = "segment_push(data_p, data_t, result, reduce, lengths, offsets, axis, initial)"
    nondiff = ("lengths", "indices", "offsets")
    cost = "reduce"
    method = False

    def run(xp, data, reduce, lengths, indices, offsets, axis, unsafe, initial):
        axis = _segment_axis(data, reduce, lengths, indices, offsets, axis)
        refuse("_segment_reduce_cpu", data, "biuc")
        bounds = _segment_bounds(xp, data, lengths, offsets, axis, unsafe)
        count, size = bounds.shape[1] - 1, data.shape[axis]
        if unsafe or offsets is not None:
            bounds = xp.minimum(bounds, size)
        outer, inner = bounds.shape[0], math.prod(data.shape[axis + 1:])
        marks = xp.zeros((outer, size + 1), dtype=xp.int64)
        accumulate_at(xp, "add", marks, (xp.arange(outer)[:, None], bounds), 1)
        number = xp.cumsum(marks, axis=1)[:, :size] - 1
        number = xp.where(number < 0, count, number)  # the last place takes what has no segment
        function, start = SEGMENT_FUNCTIONS[reduce]
        start = start if initial is None else initial
        work = widened(xp, data)
        out = xp.full((outer, count + 1, inner), start, dtype=work.dtype)
        accumulate_at(xp, function, out, (xp.arange(outer)[:, None], number),
                      xp.reshape(work, (outer, size, inner)))
        out = out[:, :count]
        if reduce == "mean":
            lots = (bounds[:, 1:] - bounds[:, :-1])[:, :, None].astype(work.dtype)
            out = out / (lots if initial is None else xp.where(lots == 0, 1, lots))
        shape = (*data.shape[:axis], count, *data.shape[axis + 1:])
        return narrowed(xp.reshape(out, shape), data.dtype)

    def shape(data, reduce, lengths, indices, offsets, axis, unsafe, initial):
        axis = _segment_axis(data, reduce, lengths, indices, offsets, axis)
        count = lengths.shape[-1] if offsets is None else offsets.shape[-1] - 1
        return (*data.shape[:axis], count, *data.shape[axis + 1:])

    def dtype(data, reduce, lengths, indices, offsets, axis, unsafe, initial):
        return data.dtype

    def batch(n, batched, data, reduce, lengths, indices, offsets, axis, unsafe, initial):
        axis = wrap_dim(axis, data.ndim - batched[0]) + 1
        given = {"unsafe": unsafe, "initial": initial, "axis": axis}
        if offsets is not None:
            given["offsets"] = in_front(offsets, batched[4], n)
        elif lengths is not None:
            given["lengths"] = in_front(lengths, batched[2], n)
        return ops.segment_reduce(in_front(data, batched[0], n), reduce, **given)

    def decomp(data, reduce, lengths, indices, offsets, axis, unsafe, initial):
        _segment_axis(data, reduce, lengths, indices, offsets, axis)
        return segment_value(data, reduce, lengths, offsets, axis, initial)

    def samples(s):
        lengths = s.tensor([2, 0, 3], dt.int64)
        for reduce in ("sum", "mean", "max", "min", "prod"):
            yield s(s.real(5), reduce, lengths=lengths, initial=0.7)
            yield s(s.real(5, 2), reduce, offsets=s.tensor([0, 2, 5], dt.int64))
            yield s(s.real(2, 3), reduce, lengths=s.tensor([[1, 2], [3, 0]], dt.int32), axis=-1,
                    initial=1)
        yield s(s.real(3, 4).T, "sum", lengths=s.tensor([1, 2], dt.int64), unsafe=True)
        yield s(s.real(0, 2), "prod", lengths=s.tensor([0, 0], dt.int64))


class _segment_reduce_backward(Composite):
    """Gradient of `segment_reduce` with respect to the data."""
    schema = ("_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *,"
              " Tensor? lengths=None, Tensor? offsets=None, int axis=0, Scalar? initial=None)"
              " -> Tensor")
    method = False

    def compose(grad, output, data, reduce, lengths, offsets, axis, initial):
        _segment_axis(data, reduce, lengths, None, offsets, axis)
        return segment_pullback(grad, output, data, reduce, lengths, offsets, axis, initial)

    def samples(s):
        data, lengths = s.real(5), s.tensor([2, 3], dt.int64)
        yield s(s.real(2), s.real(2), data, "sum", lengths=lengths)
        yield s(s.real(2), s.real(2), data, "prod", lengths=lengths, initial=2.0)


# ---------------------------------------------------------------------------------------------
# Differences


def _ends(self, dim, prepend, append):
    """Self with what is to be put in front of it and behind it along a dim."""
    parts = []
    for part in (prepend, self, append):
        if part is None:
            continue
        if part.ndim != self.ndim:
            raise ShapeError("diff expects prepend or append to be the same dimension as input")
        for d in range(self.ndim):
            if d != dim and part.shape[d] != self.shape[d]:
                raise ShapeError(
                    "diff expects the shape of tensor to prepend or append to match that of input "
                    f"except along the differencing dimension; input.size({d}) = {self.shape[d]}, "
                    f"but got tensor.size({d}) = {part.shape[d]}")
        parts.append(part)
    return ops.cat(parts, dim) if len(parts) > 1 else self


def _steps(x, dim):
    """Each element minus the one before it."""
    size = x.shape[dim]
    if size == 0:
        return x
    later, sooner = x.narrow(dim, 1, size - 1), x.narrow(dim, 0, size - 1)
    return ops.logical_xor(later, sooner) if x.dtype is dt.bool_ else later - sooner


class diff(Composite):
    """n-th differences of neighbours along a dim; bools differ or not."""
    schema = ("diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None)"
              " -> Tensor")
    complex = True

    def compose(self, n, dim, prepend, append):
        if self.ndim == 0:
            raise ShapeError("diff expects input to be at least one-dimensional")
        if n < 0:
            raise RuntimeError(f"order must be non-negative but got {n}")
        dim = wrap_dim(dim, self.ndim)
        whole = _ends(self, dim, prepend, append)
        if n == 0:
            return self.clone()
        for _ in range(min(n, whole.shape[dim])):
            whole = _steps(whole, dim)
        return whole

    def samples(s):
        yield s(s.real(3, 4))
        yield s(s.real(3, 4), 2, 0)
        yield s(s.real(3, 4), 9)
        yield s(s.real(3, 4), 1, -1, s.real(3, 1), s.real(3, 2))
        yield s(s.bool(5))
        yield s(s.real(4, 3).T, 1, 0)
        yield s(s.real(0, 3), 1, 0)


# ---------------------------------------------------------------------------------------------
# Gradients of sampled functions


def _gradient_dims(self, dim, spacing, edge_order) -> list[int]:
    """The dims to differentiate along."""
    if self.dtype is dt.uint8:
        raise DTypeError("torch.gradient does not support uint8 input.")
    dim = list(range(self.ndim)) if dim is None else dim
    if isinstance(spacing, list) and len(spacing) != len(dim):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim "
            "arguments to have the same length, but got a spacing argument of length "
            f"{len(spacing)} and a dim argument of length {len(dim)}.")
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    chosen = list(wrap_dims(dim, self.ndim, empty_is_all=False))
    for d in dim:
        wrap_dim(d, self.ndim, scalar_ok=False)
    for d in chosen:
        if self.shape[d] < edge_order + 1:
            raise ShapeError("torch.gradient expected each dimension size to be at least "
                             f"edge_order+1, but dim {d} has {self.shape[d]}")
    return chosen


def _gradient(self, spacing, dim, edge_order):
    """Central differences inside, one-sided ones of first or second order at the ends."""
    chosen = _gradient_dims(self, dim, spacing, edge_order)
    steps = spacing if isinstance(spacing, list) else [spacing] * len(chosen)
    for step in steps:
        if hasattr(step, "_edge") and step.ndim != 1:
            raise ShapeError("torch.gradient expected each element of spacing to have one "
                             f"dimension, but got an element with {step.ndim} dimensions!")
    return tuple((_slopes_uneven if hasattr(step, "_edge") else _slopes_even)(
        self, step, d, edge_order) for step, d in zip(steps, chosen, strict=True))


def _slopes_even(f, step, dim, edge_order):
    """Slopes on an even grid."""
    size = f.shape[dim]
    at = lambda i, count=1: f.narrow(dim, i, count)
    center = (at(2, size - 2) - at(0, size - 2)) / step / 2
    if edge_order == 1:
        first, last = (at(1) - at(0)) / step, (at(size - 1) - at(size - 2)) / step
    else:
        first = (-1.5 * at(0) + 2 * at(1) - 0.5 * at(2)) / step
        last = (0.5 * at(size - 3) - 2 * at(size - 2) + 1.5 * at(size - 1)) / step
    return ops.cat([first, center, last], dim)


def _slopes_uneven(f, x, dim, edge_order):
    """Slopes on a grid with the coordinates `x`: those of the parabola through three points."""
    shape = [1] * f.ndim
    shape[dim] = -1
    size = f.shape[dim]
    at = lambda i, count=1: f.narrow(dim, i, count)
    step = _steps(x, 0).reshape(shape)
    count = step.shape[dim]
    h = lambda i, count=1: step.narrow(dim, i, count)
    one, two = h(0, count - 1), h(1, count - 1)
    center = (-two / (one * (one + two)) * at(0, size - 2)
              + (two - one) / (one * two) * at(1, size - 2)
              + one / (two * (one + two)) * at(2, size - 2))
    if edge_order == 1:
        first = (at(1) - at(0)) / h(0)
        last = (at(size - 1) - at(size - 2)) / h(count - 1)
    else:
        one, two = h(0), h(1)
        first = (-(2 * one + two) / (one * (one + two)) * at(0)
                 + (one + two) / (one * two) * at(1)
                 - one / (two * (one + two)) * at(2))
        one, two = h(count - 2), h(count - 1)
        last = (two / (one * (one + two)) * at(size - 3)
                - (one + two) / (one * two) * at(size - 2)
                + (2 * two + one) / (two * (one + two)) * at(size - 1))
    return ops.cat([first, center, last], dim)


class gradient_scalarint(Composite):
    """Slopes of sampled values along dims, from central differences."""
    schema = ("gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None,"
              " int edge_order=1) -> Tensor[]")
    method = False
    complex = True

    def compose(self, spacing, dim, edge_order):
        dim = None if dim is None else [dim]
        return _gradient(self, 1 if spacing is None else spacing, dim, edge_order)

    def samples(s):
        yield s(s.real(4))
        yield s(s.real(4, 3), dim=-1, spacing=0.5)
        yield s(s.real(4, 3), edge_order=2)


class gradient_scalararray(Composite):
    """`gradient` along some dims of an even grid."""
    schema = ("gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1)"
              " -> Tensor[]")
    method = False
    complex = True

    def compose(self, spacing, dim, edge_order):
        return _gradient(self, spacing, dim, edge_order)

    def samples(s):
        yield s(s.real(4, 3), spacing=2, dim=[1, 0])


class gradient_array(Composite):
    """`gradient` along some dims of the unit grid."""
    schema = "gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]"
    method = False
    complex = True

    def compose(self, dim, edge_order):
        return _gradient(self, 1, dim, edge_order)

    def samples(s):
        yield s(s.real(4, 3), dim=[1, 0])


class gradient_scalarrayint(Composite):
    """`gradient` with one step size for each dim."""
    schema = ("gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None,"
              " int edge_order=1) -> Tensor[]")
    method = False
    complex = True

    def compose(self, spacing, dim, edge_order):
        return _gradient(self, list(spacing), None if dim is None else [dim], edge_order)

    def samples(s):
        yield s(s.real(4, 3), spacing=[2.0, 0.5])


class gradient_scalarrayarray(Composite):
    """`gradient` along some dims with one step size for each."""
    schema = ("gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim,"
              " int edge_order=1) -> Tensor[]")
    method = False
    complex = True

    def compose(self, spacing, dim, edge_order):
        return _gradient(self, list(spacing), dim, edge_order)

    def samples(s):
        yield s(s.real(4, 3), spacing=[2.0, 0.5], dim=[1, 0])


class gradient_tensorarrayint(Composite):
    """`gradient` on a grid with given coordinates."""
    schema = ("gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None,"
              " int edge_order=1) -> Tensor[]")
    method = False

    def compose(self, spacing, dim, edge_order):
        return _gradient(self, list(spacing), None if dim is None else [dim], edge_order)

    def samples(s):
        yield s(s.real(4, 3), spacing=[s.values([0.0, 1.0, 3.0, 4.5])], dim=0, edge_order=2)


class gradient_tensorarray(Composite):
    """`gradient` along some dims of a grid with given coordinates."""
    schema = ("gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1)"
              " -> Tensor[]")
    method = False

    def compose(self, spacing, dim, edge_order):
        return _gradient(self, list(spacing), dim, edge_order)

    def samples(s):
        yield s(s.real(4, 3), spacing=[s.values([0.0, 1.0, 3.0])], dim=[1])


# ---------------------------------------------------------------------------------------------
# Integrals of sampled functions


def _no_bools(name: str, what: str, *tensors) -> None:
    if any(t.dtype is dt.bool_ for t in tensors):
        raise DTypeError(f"{name}: received a bool input for {what}, but bool is not supported")


def _real_step(name: str, dx):
    if isinstance(dx, (complex, bool)):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")
    return dx


def _widths(name: str, y, x, dim):
    """Distances of neighbouring sample points, shaped to multiply what lies along a dim of y."""
    dim = wrap_dim(dim, y.ndim)
    if x.ndim == 1:
        if x.shape[0] != y.shape[dim]:
            raise ShapeError(f"{name}: There must be one `x` value for each sample point")
        shape = [1] * y.ndim
        shape[dim] = x.shape[0]
        x = x.reshape(shape)
    elif x.ndim < y.ndim:
        x = x.reshape((*(1,) * (y.ndim - x.ndim), *x.shape))
    return _steps(x, dim)


def _pairs(y, dim):
    """Sums of neighbours."""
    size = max(y.shape[dim] - 1, 0)
    return y.narrow(dim, min(1, y.shape[dim]), size) + y.narrow(dim, 0, size)


def _trapezoid_x(name, y, x, dim):
    dim = wrap_dim(dim, y.ndim, scalar_ok=False)
    if y.shape[dim] == 0:
        return y.new_zeros(reduced(y.shape, dim, False))
    _no_bools(name, "`x` or `y`", y, x)
    return (_widths(name, y, x, dim) * _pairs(y, dim)).sum(dim) / 2


def _trapezoid_dx(name, y, dx, dim):
    dim = wrap_dim(dim, y.ndim, scalar_ok=False)
    if y.shape[dim] == 0:
        return y.new_zeros(reduced(y.shape, dim, False))
    _no_bools(name, "`y`", y)
    ends = (y.select(dim, 0) + y.select(dim, -1)) * 0.5
    return (y.sum(dim) - ends) * _real_step(name, dx)


def _x_samples(s):
    yield s(s.real(3, 4), s.values([0.0, 1.0, 1.5, 3.0]))
    yield s(s.real(3, 4), s.values([0.0, 1.0, 3.0]), dim=0)
    yield s(s.real(2, 3, 4), s.real(3, 4))
    yield s(s.real(3, 4), s.real(3, 4), dim=-2)


def _dx_samples(s):
    yield s(s.real(3, 4))
    yield s(s.real(3, 4), dx=0.5, dim=0)
    yield s(s.real(3, 1))
    yield s(s.real(4, 3).T)


class trapezoid_x(Composite):
    """Integral along a dim by the trapezoidal rule, at given sample points."""
    schema = "trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor"
    method = False
    complex = True
    samples = _x_samples

    def compose(y, x, dim):
        return _trapezoid_x("trapezoid", y, x, dim)


class trapezoid_dx(Composite):
    """Integral along a dim by the trapezoidal rule, with even steps."""
    schema = "trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor"
    method = False
    complex = True
    samples = _dx_samples

    def compose(y, dx, dim):
        return _trapezoid_dx("trapezoid", y, dx, dim)


class trapz_x(trapezoid_x):
    """Another name of `trapezoid`."""
    schema = "trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor"


class trapz_dx(trapezoid_dx):
    """Another name of `trapezoid`."""
    schema = "trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor"


class cumulative_trapezoid_x(Composite):
    """Running integral along a dim by the trapezoidal rule, at given sample points."""
    schema = "cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor"
    method = False
    complex = True
    samples = _x_samples

    def compose(y, x, dim):
        _no_bools("cumulative_trapezoid", "`x` or `y`", y, x)
        dim = wrap_dim(dim, y.ndim, scalar_ok=False)
        width = _widths("cumulative_trapezoid", y, x, dim)
        return (width * _pairs(y, dim)).cumsum(dim) / 2


class cumulative_trapezoid_dx(Composite):
    """Running integral along a dim by the trapezoidal rule, with even steps."""
    schema = "cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor"
    method = False
    complex = True
    samples = _dx_samples

    def compose(y, dx, dim):
        _no_bools("cumulative_trapezoid", "`y`", y)
        dx = _real_step("cumulative_trapezoid", dx)
        dim = wrap_dim(dim, y.ndim, scalar_ok=False)
        return dx / 2 * _pairs(y, dim).cumsum(dim)
