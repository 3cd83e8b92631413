"""Histograms in one and more dimensions."""

from __future__ import annotations

import math

from ..array import dtype as dt
from ..errors import DTypeError, ShapeError
from ..table.packets import ops
from .batching import of_overload
from .kinds import Free, Keeping
from .pointwise import refuse
from .reduce import rows
from .sequences import _linspace


def _check_bins(bins: int, dim: int = 0) -> None:
    if bins <= 0:
        raise ShapeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension {dim}")


class histc(Keeping):
    """How many elements fall into each of `bins` equal intervals from `min` to `max`.

    The bounds are the extremes of the data if they are equal; what lies outside, and NaN, is left
    out.
    """
    schema = "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor"
    diff_outputs = (False,)
    shape = "(bins,)"
    dtype = "self.dtype"
    cost = "reduce"

    def run(xp, self, bins, min, max):
        _check_bins(bins)
        if min == max:
            refuse("aminmax_cpu", self, "c")
        x = self.reshape(self.size)
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

    @of_overload
    def rule(ov, n, batched, *flat):
        def pick(value, flag, i):
            if isinstance(value, list):
                flags = flag if isinstance(flag, list) else [False] * len(value)
                return [pick(v, f, i) for v, f in zip(value, flags, strict=True)]
            return value.select(0, i) if flag else value

        outs = [ov.call(*(pick(v, f, i) for v, f in zip(flat, batched, strict=True)))
                for i in range(n)]
        if hasattr(outs[0], "_edge"):
            return ops.stack(outs)
        parts = [ops.stack(list(p)) for p in zip(*outs, strict=True)]
        return type(outs[0])(*parts) if hasattr(outs[0], "_fields") else parts

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


def _check_edges(bins) -> None:
    for dim, edges in enumerate(bins):
        if edges.ndim != 1:
            raise ShapeError("torch.histogramdd: bins tensor should have one dimension, but got "
                             f"{edges.ndim} dimensions in the bins tensor for dimension {dim}")


def _given_edges(self, bins) -> None:
    _check_edges(bins)
    if len(bins) != self.shape[-1]:
        raise ShapeError(f"torch.histogramdd: expected {self.shape[-1]} sequences of bin edges for "
                         f"a {self.shape[-1]}-dimensional histogram but got {len(bins)}")
    for dim, edges in enumerate(bins):
        if edges.dtype != self.dtype:
            raise DTypeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but "
                f"got input with dtype {self.dtype} and bins for dimension {dim} with dtype "
                f"{edges.dtype}")
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


class Histogram(Keeping):
    """Counts in intervals or in the cells of a grid, or the edges of these."""

    kept = "values"
    cost = "reduce"
    batch = one_by_one()


class histogram_bin_ct(Histogram):
    """Counts, or sums of weights, of elements in even intervals, and the edges of these."""
    schema = ("histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None,"
              " Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)")
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


class histogram_bins_tensor(Histogram):
    """Counts, or sums of weights, of elements between given edges."""
    schema = ("histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None,"
              " bool density=False) -> (Tensor hist, Tensor bin_edges)")

    def run(xp, self, bins, weight, density):
        flat = None if weight is None else xp.reshape(weight, (-1,))
        points, flat = _points(xp, xp.reshape(self, (-1, 1)), flat)
        _given_edges(points, [bins])
        return _counted(xp, points, flat, [bins], density), bins.copy()

    def shape(self, bins, weight, density):
        _check_edges([bins])
        return [(max(bins.shape[0] - 1, 0),), tuple(bins.shape)]

    def dtype(self, bins, weight, density):
        return [self.dtype, self.dtype]

    def samples(s):
        yield s(s.real(4, 3), s.values([-2.0, -0.5, 0.5, 2.0]))
        yield s(s.real(5), s.values([-1.0, 0.0, 1.0]), weight=s.real(5), density=True)


def _even_grid(xp, self, bins, range, weight) -> tuple:
    """Points, their weights, and the edges of an even grid around them."""
    points, flat = _points(xp, self, weight)
    _check_counts(points, bins)
    return points, flat, _even_edges(xp, points, bins, range)


class _histogramdd_bin_edges(Histogram):
    """Edges of an even grid around points."""
    schema = ("_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None,"
              " Tensor? weight=None, bool density=False) -> Tensor[]")
    method = False

    def run(xp, self, bins, range, weight, density):
        return _even_grid(xp, self, bins, range, weight)[2]

    def shape(self, bins, range, weight, density):
        _check_counts(self, bins)
        return [(count + 1,) for count in bins]

    def dtype(self, bins, range, weight, density):
        return [self.dtype] * len(bins)

    def samples(s):
        yield s(s.real(4, 2), [2, 3])
        yield s(s.real(4, 2), [2, 3], range=[-1.0, 1.0, 0.0, 2.0])


class _histogramdd_from_bin_cts(Histogram):
    """Counts, or sums of weights, of points in the cells of an even grid."""
    schema = ("_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None,"
              " Tensor? weight=None, bool density=False) -> Tensor")
    method = False

    def run(xp, self, bins, range, weight, density):
        points, flat, edges = _even_grid(xp, self, bins, range, weight)
        return _counted(xp, points, flat, edges, density)

    def shape(self, bins, range, weight, density):
        return tuple(bins)

    def dtype(self, bins, range, weight, density):
        return self.dtype

    def samples(s):
        yield s(s.real(4, 2), [2, 3])
        yield s(s.real(2, 2, 2), [2, 3], weight=s.real(2, 2), density=True)


class _histogramdd_from_bin_tensors(Histogram):
    """Counts, or sums of weights, of points in the cells of a grid."""
    schema = ("_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None,"
              " bool density=False) -> Tensor")
    method = False

    def run(xp, self, bins, weight, density):
        points, flat = _points(xp, self, weight)
        _given_edges(points, bins)
        return _counted(xp, points, flat, bins, density)

    def shape(self, bins, weight, density):
        _check_edges(bins)
        return tuple(max(b.shape[0] - 1, 0) for b in bins)

    def dtype(self, bins, weight, density):
        return self.dtype

    samples = lambda s: [s(s.real(4, 2), [s.values([-2.0, 0.0, 2.0]), s.values([-1.0, 1.0])])]


def _grid_result(hist, edges):
    """Histogram and edges under the names that PyTorch gives them."""
    from collections import namedtuple

    return namedtuple("histogramdd", ["hist", "bin_edges"])(hist, tuple(edges))


class histogramdd(Free):
    """Counts of points in the cells of an even grid, and the edges of the grid."""
    schema = ("histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None,"
              " bool density=False) -> (Tensor hist, Tensor[] bin_edges)")
    unchecked = ("pullback", "pushforward", "second_order")  # not differentiable, as in PyTorch

    def compose(self, bins, range, weight, density):
        given = {"range": range, "weight": weight, "density": density}
        hist = ops._histogramdd_from_bin_cts(self, bins, **given)
        return _grid_result(hist, ops._histogramdd_bin_edges(self, bins, **given))

    def samples(s):
        yield s(s.real(4, 2), [2, 3])
        yield s(s.real(4, 2), [2, 3], [-1.0, 1.0, 0.0, 2.0], s.real(4), True)


class histogramdd_int_bins(Free):
    """`histogramdd` with the same number of bins for all coordinates."""
    schema = ("histogramdd.int_bins(Tensor self, int bins, float[]? range=None,"
              " Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)")
    unchecked = ("pullback", "pushforward", "second_order")  # not differentiable, as in PyTorch

    def compose(self, bins, range, weight, density):
        if self.ndim < 2:
            raise ShapeError("torch.histogramdd: input tensor should have at least 2 dimensions")
        return histogramdd.compose(self, [bins] * self.shape[-1], range, weight, density)

    samples = lambda s: [s(s.real(2, 2, 2), 3)]


class histogramdd_TensorList_bins(Free):
    """`histogramdd` with given edges."""
    schema = ("histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None,"
              " Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)")
    unchecked = ("pullback", "pushforward", "second_order")  # not differentiable, as in PyTorch

    def compose(self, bins, range, weight, density):
        hist = ops._histogramdd_from_bin_tensors(self, bins, weight=weight, density=density)
        return _grid_result(hist, bins)

    samples = lambda s: [s(s.real(4, 2), [s.values([-2.0, 0.0, 2.0]), s.values([-1.0, 1.0])])]
