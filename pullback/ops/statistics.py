"""Statistics: modes, medians and quantiles, norm clipping, segment reductions.

Sums and means are in `reduce.py`, sorting and search in `order.py`.  Longer formulas are in
`formulas/statistics.py`.  Read next: `histograms.py`, `sampled.py` (differences, gradients and
integrals), `distance.py`.
"""

from __future__ import annotations

import math

from ..array import dtype as dt
from ..array.dims import wrap_dim
from ..array.xp import accumulate_at, running_maximum
from ..core.op import Composite, Op
from ..errors import DataDependentError, DTypeError, ShapeError
from ..formulas.loss import difference
from ..formulas.statistics import clipped_factor, others_than, segment_pullback, segment_value
from ..table.packets import ops
from ..threads.state import in_passing
from .extremes import MedianOfAll, Medians, Places, kept_or_squeezed, median_of_rows
from .kinds import Free, Keeping
from .layout import in_front
from .norm import narrowed, widened
from .pointwise import refuse, title
from .reduce import check_size, extremes, reduced, rows

# ---------------------------------------------------------------------------------------------
# Modes and medians


class mode(Places):
    """Most frequent elements along a dim (the smallest of them), and where each occurs last.

    NaN equals nothing, not even itself, and wins only where there is nothing else.
    """
    schema = ("mode(Tensor self, int dim=-1, bool keepdim=False)"
              " -> (Tensor values, Tensor indices)")
    kept = "order"
    tags = ()

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
        return kept_or_squeezed(xp, values, indices, dim, keepdim)

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


class nanmedian_default(MedianOfAll):
    """Lower median of all elements that are not NaN."""
    schema = "nanmedian(Tensor self) -> Tensor"
    place = _nanmedian_place

    def batch(n, batched, self):
        if not math.prod(self.shape[1:]):
            return ops.nanmedian(self.new_empty((0,))).expand((n,))
        return median_of_rows(n, self, "nanmedian")


class nanmedian_dim(Medians):
    """Lower medians along a dim of what is not NaN, and where they are."""
    schema = ("nanmedian.dim(Tensor self, int dim, bool keepdim=False)"
              " -> (Tensor values, Tensor indices)")
    place = _nanmedian_place


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


@in_passing
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


class Quantile(Composite):
    """Quantiles along a dim, or of all elements."""

    passes_nan = False  # are NaN passed over?
    samples = _quantile_samples

    @classmethod
    def compose(cls, self, q, dim, keepdim, interpolation):
        return _quantile(self, q, dim, keepdim, interpolation, cls.passes_nan)


class QuantileOfNumber(Quantile):
    """One quantile along a dim, or of all elements."""

    samples = _number_samples

    @classmethod
    def compose(cls, self, q, dim, keepdim, interpolation):
        q = ops.full((), _number_in_range(q), dtype=self.dtype, device=self.device)
        return _quantile(self, q, dim, keepdim, interpolation, cls.passes_nan)


class quantile(Quantile):
    """Quantiles along a dim, or of all elements; NaN where there is a NaN."""
    schema = f"quantile(Tensor self, Tensor q, {QUANTILE}"
    autocast = "float32"


class quantile_scalar(QuantileOfNumber):
    """One quantile along a dim, or of all elements."""
    schema = f"quantile.scalar(Tensor self, float q, {QUANTILE}"
    autocast = "float32"


class nanquantile(Quantile):
    """Quantiles along a dim, or of all elements, of what is not NaN."""
    schema = f"nanquantile(Tensor self, Tensor q, {QUANTILE}"
    autocast = "float32"
    passes_nan = True


class nanquantile_scalar(QuantileOfNumber):
    """One quantile along a dim, or of all elements, of what is not NaN."""
    schema = f"nanquantile.scalar(Tensor self, float q, {QUANTILE}"
    autocast = "float32"
    passes_nan = True


# ---------------------------------------------------------------------------------------------
# Norms


class renorm(Keeping):
    """Slices along a dim whose p-norm exceeds `maxnorm`, cut down to that norm."""
    schema = "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor"
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
        offset = difference(_padded(self, batched[0], rank), _padded(other, batched[1], rank))
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


class segment_reduce(Keeping):
    """Sums, means, products or extremes of consecutive elements along an axis.

    Segments are given by their lengths or by their bounds; an empty one gives `initial`, or the
    identity of the reduction (NaN for means).
    """
    schema = ("segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None,"
              " Tensor? indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False,"
              " Scalar? initial=None) -> Tensor")
    trusts = "values"
    aliases = ("_segment_reduce",)
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


class _segment_reduce_backward(Free):
    """Gradient of `segment_reduce` with respect to the data."""
    schema = ("_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *,"
              " Tensor? lengths=None, Tensor? offsets=None, int axis=0, Scalar? initial=None)"
              " -> Tensor")
    same_dtype = ("grad", "output", "data")

    def compose(grad, output, data, reduce, lengths, offsets, axis, initial):
        _segment_axis(data, reduce, lengths, None, offsets, axis)
        return segment_pullback(grad, output, data, reduce, lengths, offsets, axis, initial)

    def samples(s):
        data, lengths = s.real(5), s.tensor([2, 3], dt.int64)
        yield s(s.real(2), s.real(2), data, "sum", lengths=lengths)
        yield s(s.real(2), s.real(2), data, "prod", lengths=lengths, initial=2.0)
