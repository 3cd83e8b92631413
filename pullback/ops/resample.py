"""Resampling: resizing, sampling at the points of a grid, affine grids, and pixel shuffles.

Resizing is a linear map along each dim, given by a table of a few places and weights for each
result (`Taps`).  The transpose of such a table is again one, so the gradient runs the same kernel.
Sampling at a grid gathers rows of channels, and its gradient scatters them.  Positions, weights
and the derivatives by the grid are in `formulas/resample.py`.
"""

from __future__ import annotations

from typing import NamedTuple

from ..array import dtype as dt
from ..array.dims import numel
from ..array.size import cached, whole
from ..core.op import Composite, Op
from ..errors import DTypeError, ShapeError
from ..formulas.resample import (
    affine_base,
    affine_points,
    corner_weight,
    corners,
    cubic_far,
    cubic_near,
    grid_axes,
    resize_taps,
    source_step,
)
from ..table.packets import ops
from .pointwise import refuse
from .pool_kernels import scatter_sum

# ---------------------------------------------------------------------------------------------
# Resizing along one dim


class Taps(NamedTuple):
    """Result i of a dim is the sum over k of weights[i, k] * element[places[i, k]]."""

    size: int  # elements that the places count
    places: object  # [result, tap], int64
    weights: object  # [result, tap], or None where all are one
    idle: object = None  # [result, tap], which taps a result does not have; None where it has all

    @property
    def count(self) -> int:
        return self.places.shape[0]


# the half width of each smoothing filter, and the filter itself at distances x >= 0
FILTERS = {
    "linear_aa": (1, lambda xp, x: xp.maximum(1 - x, 0)),
    "cubic_aa": (2, lambda xp, x: xp.where(
        x < 1, cubic_near(x, -0.5), xp.where(x < 2, cubic_far(x, -0.5), 0))),
    "lanczos_aa": (3, lambda xp, x: xp.where(x < 3, xp.sinc(x) * xp.sinc(x / 3), 0)),
}


def _smooth_taps(xp, kind: str, size: int, count: int, step: float, dtype) -> Taps:
    """Taps of a filter that grows with the distance of the results, so that nothing aliases."""
    width, shape = FILTERS[kind]
    reach = width * max(step, 1.0)
    centre = (xp.arange(count, dtype=dtype) + 0.5) * step
    first = xp.floor(centre - reach + 0.5).clip(0, None)
    end = xp.floor(centre + reach + 0.5).clip(None, size)
    offsets = xp.arange(int((end - first).max()), dtype=dtype)
    places = first[:, None] + offsets
    weights = shape(xp, abs((places - centre[:, None] + 0.5) / max(step, 1.0)))
    idle = places >= end[:, None]
    weights = xp.where(idle, 0, weights).astype(dtype)
    total = weights.sum(axis=1, keepdims=True)
    weights = weights / xp.where(total == 0, 1, total)
    return Taps(size, places.clip(0, size - 1).astype(xp.int64), weights, idle)


@cached(128)
def _taps(xp, kind: str, size: int, count: int, align: bool, scale, dtype) -> Taps:
    """The table that makes `count` results of `size` elements."""
    step = source_step(size, count, align, scale)
    if kind in FILTERS:
        return _smooth_taps(xp, kind, size, count, step, dtype)
    if kind in ("nearest", "exact"):
        dtype = xp.float32  # PyTorch counts in single precision here, whatever the data are
        step = float(xp.asarray(step, dtype=dtype))
    found = resize_taps(xp, kind, xp.arange(count, dtype=dtype), size, step, align)
    places = xp.stack([p for p, _ in found], axis=1).astype(xp.int64)
    plain = found[0][1] is None
    return Taps(size, places, None if plain else xp.stack([w for _, w in found], axis=1))


@cached(128)
def _transposed(xp, kind: str, size: int, count: int, align: bool, scale, dtype) -> Taps:
    """The table of the adjoint map: who uses each element, and with which weight."""
    t = _taps(xp, kind, size, count, align, scale, dtype)
    users = xp.repeat(xp.arange(count), t.places.shape[1])
    places = t.places.reshape(-1)
    order = xp.argsort(places, kind="stable")
    if t.idle is not None:
        order = order[~t.idle.reshape(-1)[order]]
    places, users = places[order], users[order]
    totals = xp.bincount(places, minlength=size)
    begins = xp.cumsum(totals) - totals
    widest = int(totals.max())
    rank = xp.arange(places.shape[0]) - begins[places]  # number of a use among those of its element
    table = xp.zeros((size, widest), xp.int64)
    table[places, rank] = users
    weights = xp.zeros((size, widest), dtype)
    ones = t.weights is None
    weights[places, rank] = 1 if ones else t.weights.reshape(-1)[order]
    return Taps(count, table, weights, xp.arange(widest) >= totals[:, None])


MANY = 16  # from so many taps on, a matrix product is faster than gathering


def _apply(xp, x, axis: int, taps: Taps):
    """The linear map of a table along one dim."""
    if taps.weights is None:
        return xp.take(x, taps.places[:, 0], axis=axis)
    width = taps.places.shape[1]
    if width > MANY and bool(xp.isfinite(x).all()):  # in a product, inf meets zeros
        return _apply_matrix(xp, x, axis, taps)
    column = (-1,) + (1,) * (x.ndim - 1 - axis)
    out = None
    for k in range(width):
        term = xp.take(x, taps.places[:, k], axis=axis)
        term *= taps.weights[:, k].reshape(column)
        if taps.idle is not None and bool(taps.idle[:, k].any()):
            term[(slice(None),) * axis + (taps.idle[:, k],)] = 0
        if out is None:
            out = term
        else:
            out += term
    return out


def _apply_matrix(xp, x, axis: int, taps: Taps):
    """The same as a product with a dense matrix."""
    cells = xp.arange(taps.count)[:, None] * taps.size + taps.places
    matrix = scatter_sum(xp, taps.weights, cells, taps.count * taps.size)
    matrix = matrix.reshape(taps.count, taps.size)
    if axis == x.ndim - 1:
        return xp.matmul(x, matrix.T)
    lead, tail = x.shape[:axis], x.shape[axis + 1:]
    out = xp.matmul(matrix, x.reshape(*lead, taps.size, numel(tail)))
    return out.reshape(*lead, taps.count, *tail)


def _stays(kind: str, size: int, count: int) -> bool:
    """Is a dim of that size left as it is, so that NaN does not meet weights of 0?  So in PyTorch,
    whose cubic filter alone weighs all neighbours."""
    return size == count and (kind == "linear" or kind in FILTERS)


def _resize(xp, x, kind: str, sizes, align: bool, scales):
    """Resize the last dims; those that shrink go first."""
    first = x.ndim - len(sizes)
    order = sorted(range(len(sizes)), key=lambda d: (sizes[d] >= x.shape[first + d], -d))
    whole = x.dtype.kind in "iu" and kind not in ("nearest", "exact")
    if whole:  # images of bytes are rounded after each dim, the last one first, as in PyTorch
        order = reversed(range(len(sizes)))
    out = x.astype(xp.float32) if whole else x
    for d in order:
        if _stays(kind, x.shape[first + d], sizes[d]):
            continue
        taps = _taps(xp, kind, x.shape[first + d], sizes[d], align, scales[d], out.dtype)
        out = _apply(xp, out, first + d, taps)
        if whole:
            out = xp.floor(out + 0.5).clip(0, 255)
    return out.astype(x.dtype) if whole else out.copy() if out is x else out


def _resize_backward(xp, grad, kind: str, shape, align: bool, scales):
    """The adjoint of `_resize` for an input of `shape`."""
    first = grad.ndim - len(scales)
    grows = [shape[first + d] >= grad.shape[first + d] for d in range(len(scales))]
    order = sorted(range(len(scales)), key=lambda d: (grows[d], -d))
    out = grad
    for d in order:
        if _stays(kind, shape[first + d], grad.shape[first + d]):
            continue
        taps = _transposed(xp, kind, shape[first + d], grad.shape[first + d], align, scales[d],
                           grad.dtype)
        out = _apply(xp, out, first + d, taps)
    return out.copy() if out is grad else out


def _resized_by_gathers(self, kind: str, sizes, align: bool, scales):
    """Resizing in terms of index_select, for capture."""
    dtype, first = self.dtype, self.ndim - len(sizes)
    exact = kind in ("nearest", "exact")
    if dtype.category < 2 and not exact:
        return NotImplemented
    out = self.to(dt.float32) if dtype.itemsize == 2 and not exact else self
    for d, (count, scale) in enumerate(zip(sizes, scales)):
        dim = first + d
        if _stays(kind, self.shape[dim], count):
            continue
        step = source_step(self.shape[dim], count, align, scale)
        line = ops.arange(count, dtype=dt.float32 if exact else out.dtype, device=self.device)
        column = (-1,) + (1,) * (self.ndim - 1 - dim)
        total = None
        for place, weight in resize_taps(ops, kind, line, self.shape[dim], step, align):
            term = out.index_select(dim, place.to(dt.int64))
            term = term if weight is None else term * weight.reshape(column)
            total = term if total is None else total + term
        out = total
    if out is self:
        return self.clone()
    return out if out.dtype is dtype else out.to(dtype)


# ---------------------------------------------------------------------------------------------
# The entries of resizing


def _check_resize(name: str, shape, rank: int, output_size) -> None:
    if len(output_size) != rank:
        raise ShapeError(f"{name}: It is expected output_size equals to {rank}, but got size "
                         f"{len(output_size)}")
    if len(shape) != rank + 2 or 0 in shape[1:]:
        raise ShapeError(f"{name}: Non-empty {rank + 2}D data tensor expected but got a tensor "
                         f"with sizes {list(shape)}")
    if any(n < 1 for n in output_size):
        raise ShapeError(f"{name}: Input and output sizes should be greater than 0, but got input "
                         f"{list(shape)} and output {list(output_size)}")


def output_size_of(shape, output_size, scale_factors) -> list[int]:
    """The size that is given, or that scale factors give."""
    if (output_size is None) == (scale_factors is None):
        raise ShapeError("Must specify exactly one of output_size and scale_factors")
    if output_size is not None:
        return list(output_size)
    if len(scale_factors) != len(shape) - 2:
        raise ShapeError(f"expected {len(shape) - 2} scale factors, got {len(scale_factors)}")
    return [whole(n * s) for n, s in zip(shape[2:], scale_factors)]


def _joined(n: int, t, batched: bool):
    """Batch dim and image dim as one."""
    t = t if batched else t.unsqueeze(0).expand((n, *t.shape))
    return t.reshape((n * t.shape[1], *t.shape[2:]))


def _parted(n: int, t):
    return t.reshape((n, t.shape[0] // n, *t.shape[1:]))


def _entries(name: str, kind: str, rank: int, aligned: bool) -> None:
    """Forward, backward and scale-factor entries of one way of resizing."""
    letters = "dhw"[-rank:] if rank > 1 else ("",)
    names = [f"scales_{c}" if c else "scales" for c in letters]
    flag = " bool align_corners," if aligned else ""
    scales_text = ", ".join(f"float? {n}=None" for n in names)
    call = ("align_corners, " if aligned else "") + ", ".join(names)
    backward = f"{name}_backward"
    # ratios of sizes for which PyTorch does not heed the scale factors
    if kind == "nearest":
        exempt = (1, 2) if rank == 2 else ()
    else:
        exempt = () if kind in ("exact", "cubic") else (1,)

    def split(rest, shape, output_size) -> tuple:
        """(align_corners, scales) of the arguments behind the sizes."""
        align, scales = (rest[0], rest[1:]) if aligned else (False, rest)
        return align, [None if m in (n * f for f in exempt) else s
                       for n, m, s in zip(shape[2:], output_size, scales)]

    def flags(*values):
        return values if aligned else ((),)

    class resize(Op):
        __doc__ = f"The last {rank} dim(s) resized by {WAYS[kind]}."

        schema = f"{name}(Tensor self, SymInt[{rank}] output_size,{flag} {scales_text}) -> Tensor"
        lies = "channels"
        linear = ("self",)
        grad = {"self": f"{backward}(grad, output_size, self.shape, {call})"}
        cost = "cheap"
        method = function = False

        def run(xp, self, output_size, *rest):
            _check_resize(name, self.shape, rank, output_size)
            refuse(name, self, "b")
            align, scales = split(rest, self.shape, output_size)
            return _resize(xp, self, kind, output_size, align, scales)

        def shape(self, output_size, *rest):
            _check_resize(name, self.shape, rank, output_size)
            return (*self.shape[:2], *output_size)

        def batch(n, batched, self, *rest):
            return _parted(n, getattr(ops, name)(_joined(n, self, True), *rest))

        def samples(s):
            sizes = (3, 4, 5)[-rank:]
            for align in flags(False, True):
                align = (align,) if aligned else ()
                yield s(s.real(2, 3, *sizes), (6, 7, 8)[:rank], *align)
                yield s(s.real(1, 2, *sizes), (2, 3, 9)[:rank], *align)
                yield s(s.real(1, 2, *sizes), (5, 5, 1)[:rank], *align, *(1.7, 0.6, 2)[:rank])
                yield s(s.real(0, 2, *sizes), (2, 3, 9)[:rank], *align)
                yield s(s.real(*sizes, 1, 2).movedim((-2, -1), (0, 1)), sizes, *align)
            yield s(s.real(1, 1, *(2,) * rank), (20,) * rank, *align)  # many taps per element

    if kind not in FILTERS:
        def by_gathers(self, output_size, *rest):
            _check_resize(name, self.shape, rank, output_size)
            align, scales = split(rest, self.shape, output_size)
            return _resized_by_gathers(self, kind, output_size, align, scales)
        resize.decomp = by_gathers

    class resize_backward(Op):
        __doc__ = f"Gradient of `{name}`: its transpose."

        schema = (f"{backward}(Tensor grad_output, SymInt[{rank}] output_size,"
                  f" SymInt[{rank + 2}] input_size,{flag} {scales_text}) -> Tensor")
        lies = "channels"
        linear = ("grad_output",)
        grad = {"grad_output": f"{name}(grad, output_size, {call})"}
        cost = "cheap"
        method = function = False

        def run(xp, grad_output, output_size, input_size, *rest):
            _check_back(grad_output, output_size, input_size)
            align, scales = split(rest, input_size, output_size)
            return _resize_backward(xp, grad_output, kind, input_size, align, scales)

        def shape(grad_output, output_size, input_size, *rest):
            _check_back(grad_output, output_size, input_size)
            return tuple(input_size)

        def batch(n, batched, grad_output, output_size, input_size, *rest):
            size = [n * input_size[0], *input_size[1:]]
            out = getattr(ops, backward)(_joined(n, grad_output, True), output_size, size, *rest)
            return _parted(n, out)

        def samples(s):
            for case in resize.samples(s):
                x, size, *rest = case.args
                size = tuple(size)
                yield s(s.real(*x.shape[:2], *size), size, tuple(x.shape), *rest)

    def _check_back(grad_output, output_size, input_size):
        _check_resize(backward, tuple(input_size), rank, output_size)
        expected = (*input_size[:2], *output_size)
        if tuple(grad_output.shape) != expected:
            raise ShapeError(f"{backward}: Expected grad_output to have the shape "
                             f"{list(expected)}, but got {list(grad_output.shape)}")

    class resize_vec(Composite):
        __doc__ = f"The last {rank} dim(s) resized by {WAYS[kind]}, to a size or by factors."

        schema = (f"{name}.vec(Tensor input, SymInt[]? output_size,{flag} float[]? scale_factors)"
                  " -> Tensor")
        method = function = False

        def compose(input, output_size, *rest):
            scales = rest[-1]
            size = output_size_of(input.shape, output_size, scales)
            return getattr(ops, name)(input, size, *rest[:-1], *(scales or [None] * rank))

        def samples(s):
            align = (False,) if aligned else ()
            yield s(s.real(1, 2, *(3, 4, 5)[-rank:]), (6, 7, 8)[:rank], *align, None)
            yield s(s.real(1, 2, *(3, 4, 5)[-rank:]), None, *align, [1.5] * rank)


WAYS = {"nearest": "taking the nearest element",
        "exact": "taking the element at the pixel's centre",
        "linear": "linear interpolation", "cubic": "cubic convolution",
        "linear_aa": "a triangle filter that does not alias",
        "cubic_aa": "a cubic filter that does not alias",
        "lanczos_aa": "a Lanczos filter that does not alias"}

for _rank in (1, 2, 3):
    _entries(f"upsample_nearest{_rank}d", "nearest", _rank, False)
    _entries(f"_upsample_nearest_exact{_rank}d", "exact", _rank, False)
for _rank, _word in enumerate(("linear1d", "bilinear2d", "trilinear3d"), 1):
    _entries(f"upsample_{_word}", "linear", _rank, True)
_entries("upsample_bicubic2d", "cubic", 2, True)
for _word, _kind in (("bilinear", "linear"), ("bicubic", "cubic"), ("lanczos", "lanczos")):
    _entries(f"_upsample_{_word}2d_aa", f"{_kind}_aa", 2, True)


# ---------------------------------------------------------------------------------------------
# Sampling at the points of a grid.  Modes are 0 (bi)linear, 1 nearest, 2 (bi)cubic; padding is 0
# zeros, 1 border, 2 reflection.


def _check_grid(name: str, input, grid, mode: int, padding: int, rank: int) -> None:
    shape, points = tuple(input.shape), tuple(grid.shape)
    if input.dtype != grid.dtype:
        raise DTypeError(f"{name}: expected input and grid to have same dtype, but input has "
                         f"{input.dtype} and grid has {grid.dtype}")
    if len(shape) != rank + 2 or len(points) != rank + 2:
        raise ShapeError(f"{name}: expected {rank + 2}D input and grid with same number of "
                         f"dimensions, but got input with sizes {list(shape)} and grid with sizes "
                         f"{list(points)}")
    if shape[0] != points[0]:
        raise ShapeError(f"{name}: expected grid and input to have same batch size, but got input "
                         f"with sizes {list(shape)} and grid with sizes {list(points)}")
    if points[-1] != rank:
        raise ShapeError(f"{name}: expected grid to have size {rank} in last dimension, but got "
                         f"grid with sizes {list(points)}")
    if 0 in shape[2:]:
        raise ShapeError(f"{name}: expected input to have non-empty spatial dimensions, but input "
                         f"has sizes {list(shape)}")
    if mode not in (0, 1, 2) or padding not in (0, 1, 2) or mode == 2 and rank == 3:
        raise ShapeError(f"{name}: there is no interpolation mode {mode} with padding mode "
                         f"{padding} for {rank + 2}D input; bicubic interpolation only supports 4D")


class Rows:
    """Input, grid and gradients of a sampler as rows of channels: what its kernels loop over."""

    def __init__(self, xp, input, grid, mode: int, padding: int, align_corners: bool):
        self.xp, self.shape = xp, input.shape
        self.images, self.channels = input.shape[:2]
        self.sizes = input.shape[2:]
        self.points = numel(grid.shape[1:-1])
        self.out = (*input.shape[:2], *grid.shape[1:-1])
        flat = grid.reshape(self.images, self.points, len(self.sizes))
        self.axes = grid_axes(xp, flat, self.sizes, mode, padding, align_corners)

    def of(self, values, count: int):
        """[image, channel, ...] as [image * place, channel]."""
        values = values.reshape(self.images, self.channels, count)
        return values.swapaxes(1, 2).reshape(-1, self.channels)

    def back(self, rows, shape):
        """The inverse of `of`."""
        rows = rows.reshape(self.images, -1, self.channels).swapaxes(1, 2)
        return self.xp.ascontiguousarray(rows).reshape(shape)

    def source(self, input):
        """The rows of the input, and one of zeros for corners outside of it."""
        rows = self.of(input, numel(self.sizes))
        return self.xp.concatenate([rows, self.xp.zeros((1, self.channels), rows.dtype)])

    def corners(self):
        """For each corner: the numbers of its taps, and its rows."""
        xp, size = self.xp, numel(self.sizes)
        offsets = xp.arange(0, self.images * size, size)[:, None]
        for choice, place, known in corners(self.axes):
            rows = xp.where(known, place.astype(xp.int64) + offsets, self.images * size)
            yield choice, rows.reshape(-1)

    def weight(self, choice: tuple, orders: tuple):
        """The weight of a corner at each point, as a column."""
        return corner_weight(self.axes, choice, orders).reshape(-1, 1)


def _sample(xp, input, grid, mode: int, padding: int, align_corners: bool):
    """Values of the input at the points of the grid."""
    r = Rows(xp, input, grid, mode, padding, align_corners)
    if 0 in r.out:
        return xp.zeros(r.out, input.dtype)
    rows, out = r.source(input), None
    plain = (0,) * len(r.sizes)
    for choice, places in r.corners():
        term = xp.take(rows, places, axis=0)
        term *= r.weight(choice, plain)
        if out is None:
            out = term
        else:
            out += term
    return r.back(out, r.out)


def _sample_backward(xp, grad, input, grid, mode: int, padding: int, align_corners: bool, mask):
    """Gradients of input and grid."""
    r = Rows(xp, input, grid, mode, padding, align_corners)
    rank = len(r.sizes)
    if 0 in r.out:
        return (xp.zeros(input.shape, input.dtype) if mask[0] else None,
                xp.zeros(grid.shape, grid.dtype) if mask[1] else None)
    g = r.of(grad, r.points)
    rows = r.source(input) if mask[1] else None
    total, slopes = 0, [0] * rank
    cells = (r.images * numel(r.sizes) + 1) * r.channels
    channel = xp.arange(r.channels)
    for choice, places in r.corners():
        if mask[0]:
            term = g * r.weight(choice, (0,) * rank)
            total = total + scatter_sum(xp, term, places[:, None] * r.channels + channel, cells)
        if mask[1] and mode != 1:
            dots = xp.einsum("pc,pc->p", g, xp.take(rows, places, axis=0))[:, None]
            for d in range(rank):
                orders = tuple(int(e == d) for e in range(rank))
                slopes[d] = slopes[d] + dots * r.weight(choice, orders)
    of_input = r.back(total[:-r.channels], input.shape) if mask[0] else None
    of_grid = None
    if mask[1]:
        if mode == 1:
            of_grid = xp.zeros(grid.shape, grid.dtype)
        else:
            columns = [slopes[d].reshape(-1) * r.axes[d].slope.reshape(-1)
                       for d in reversed(range(rank))]
            of_grid = xp.stack(columns, axis=1).reshape(grid.shape)
    return of_input, of_grid


def _grid_entries(rank: int) -> None:
    name = f"grid_sampler_{rank}d"
    backward = f"{name}_backward"
    modes = "interpolation_mode, padding_mode, align_corners"
    ints = "int interpolation_mode, int padding_mode, bool align_corners"

    def points(s, shape, sizes, align):
        """Grid points whose distance from an element is neither near 0 nor near a half."""
        lines = []
        for n in reversed(sizes):
            whole = s.random.integers(-2, n + 1, shape)
            part = s.random.choice([0.2, 0.3, 0.4, 0.6, 0.7, 0.8], shape)
            place = whole + part
            lines.append(place * 2 / max(n - 1, 1) - 1 if align else (2 * place + 1) / n - 1)
        return ops.stack([s.values(line) for line in lines], -1)

    class grid_sampler(Op):
        __doc__ = f"Values of a {rank}-d image between its elements, at the points of a grid."

        schema = f"{name}(Tensor input, Tensor grid, {ints}) -> Tensor"
        grad = {"input, grid": (
            f"{backward}(grad, input, grid, {modes}, list(grad_input_mask))"
            " if grad is not None else (None, None)")}
        push = f"grid_sampler_push({name}, input_p, input_t, grid_p, grid_t, {modes})"
        alike = ("input", "grid")
        method = False

        def run(xp, input, grid, interpolation_mode, padding_mode, align_corners):
            refuse(name, input, "biuc")
            _check_grid(name, input, grid, interpolation_mode, padding_mode, rank)
            return _sample(xp, input, grid, interpolation_mode, padding_mode, align_corners)

        def shape(input, grid, interpolation_mode, padding_mode, align_corners):
            _check_grid(name, input, grid, interpolation_mode, padding_mode, rank)
            return (*input.shape[:2], *grid.shape[1:-1])

        def batch(n, batched, input, grid, *rest):
            call = getattr(ops, name)
            if not batched[1]:  # one grid for all: examples are further channels
                b, c = input.shape[1], input.shape[2]
                joined = input.movedim(0, 1).reshape((b, n * c, *input.shape[3:]))
                out = call(joined, grid, *rest)
                return out.reshape((b, n, c, *out.shape[2:])).movedim(1, 0)
            out = call(_joined(n, input, batched[0]), _joined(n, grid, True), *rest)
            return _parted(n, out)

        def samples(s):
            sizes, out = (3, 4, 5)[-rank:], (2, 3, 2)[:rank]
            for mode in (0, 1, 2)[:5 - rank]:
                for padding in (0, 1, 2):
                    align = (mode + padding) % 2 == 1
                    where = points(s, (2, *out), sizes, align)
                    yield s(s.real(2, 2, *sizes), where, mode, padding, align)
            yield s(s.real(0, 2, *sizes), s.real(0, *out, rank), 0, 0, False)
            x = s.real(1, 2, *sizes).transpose(2, 3)
            yield s(x, points(s, (1,) * (rank + 1), x.shape[2:], False), 0, 1, False)
            yield s(s.real(1, 1, *(1,) * rank), points(s, (1, *out), (1,) * rank, True), 0, 2, True)

    class grid_sampler_backward(Op):
        __doc__ = f"Gradients of `{name}` for image and grid, as the mask asks."

        schema = (f"{backward}(Tensor grad_output, Tensor input, Tensor grid, {ints},"
                  " bool[2] output_mask) -> (Tensor, Tensor)")
        alike = ("grad_output", "input", "grid")
        grad = {"grad_output, input, grid": (
            f"grid_sampler_double_backward(grads, grad_output, input, grid, {modes},"
            f" grad_input_mask, {name}, {backward})")}
        push = {"result0, result1": (
            f"grid_sampler_backward_push({backward}, grad_output_p, grad_output_t, input_p,"
            f" input_t, grid_p, grid_t, {modes}, output_mask)")}
        diff_outputs = (True, True)
        method = function = False

        def run(xp, grad_output, input, grid, interpolation_mode, padding_mode, align_corners,
                output_mask):
            refuse(backward, input, "biuc")
            _check_grid(backward, input, grid, interpolation_mode, padding_mode, rank)
            return _sample_backward(xp, grad_output, input, grid, interpolation_mode, padding_mode,
                                    align_corners, output_mask)

        def shape(grad_output, input, grid, interpolation_mode, padding_mode, align_corners,
                  output_mask):
            refuse(backward, input, "biuc")
            _check_grid(backward, input, grid, interpolation_mode, padding_mode, rank)
            return [tuple(t.shape) if wanted else None
                    for t, wanted in zip((input, grid), output_mask)]

        def batch(n, batched, grad_output, input, grid, *rest):
            tensors = (_joined(n, t, b) for t, b in zip((grad_output, input, grid), batched))
            out = getattr(ops, backward)(*tensors, *rest)
            return tuple(None if t is None else _parted(n, t) for t in out)

        def samples(s):
            for case in grid_sampler.samples(s):
                x, t, *rest = case.args
                yield s(s.real(*x.shape[:2], *t.shape[1:-1]), x, t, *rest, [True, True])
            yield s(s.real(*x.shape[:2], *t.shape[1:-1]), x, t, *rest, [False, True])
            yield s(s.real(*x.shape[:2], *t.shape[1:-1]), x, t, *rest, [True, False])


for _rank in (2, 3):
    _grid_entries(_rank)


class grid_sampler(Composite):
    """Values of an image or a volume between its elements, at the points of a grid."""

    schema = ("grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode,"
              " bool align_corners) -> Tensor")
    method = False

    def compose(input, grid, interpolation_mode, padding_mode, align_corners):
        if input.ndim not in (4, 5):
            raise ShapeError("grid_sampler(): expected 4D or 5D input and grid with same number of "
                             f"dimensions, but got input with sizes {list(input.shape)} and grid "
                             f"with sizes {list(grid.shape)}")
        sample = ops.grid_sampler_2d if input.ndim == 4 else ops.grid_sampler_3d
        return sample(input, grid, interpolation_mode, padding_mode, align_corners)

    def samples(s):
        yield s(s.real(1, 2, 3, 4), s.real(1, 2, 2, 2, low=-1, high=1), 0, 0, False)
        yield s(s.real(1, 2, 3, 4, 2), s.real(1, 2, 2, 2, 3, low=-1, high=1), 0, 0, True)


class _grid_sampler_2d_cpu_fallback(Composite):
    """The same as `grid_sampler_2d`."""

    schema = ("_grid_sampler_2d_cpu_fallback(Tensor input, Tensor grid, int interpolation_mode,"
              " int padding_mode, bool align_corners) -> Tensor")
    method = False

    def compose(input, grid, interpolation_mode, padding_mode, align_corners):
        return ops.grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners)

    def samples(s):
        yield s(s.real(1, 2, 3, 4), s.real(1, 2, 2, 2, low=-1, high=1), 0, 0, False)


class _grid_sampler_2d_cpu_fallback_backward(Composite):
    """The same as `grid_sampler_2d_backward` with both gradients."""

    schema = ("_grid_sampler_2d_cpu_fallback_backward(Tensor grad_output, Tensor input,"
              " Tensor grid, int interpolation_mode, int padding_mode, bool align_corners)"
              " -> (Tensor, Tensor)")
    alike = ("grad_output", "input", "grid")
    method = function = False

    def compose(grad_output, input, grid, interpolation_mode, padding_mode, align_corners):
        return ops.grid_sampler_2d_backward(grad_output, input, grid, interpolation_mode,
                                            padding_mode, align_corners, [True, True])

    def samples(s):
        yield s(s.real(1, 2, 2, 2), s.real(1, 2, 3, 4), s.real(1, 2, 2, 2, low=-1, high=1),
                0, 0, False)


# ---------------------------------------------------------------------------------------------
# Affine grids


def _check_affine(theta, size) -> int:
    rank = len(size) - 2
    if rank not in (2, 3):
        raise ShapeError("affine_grid_generator needs 4d (spatial) or 5d (volumetric) sizes, got "
                         f"{list(size)}")
    if any(n < 0 for n in size):
        raise ShapeError(f"Trying to create tensor with negative dimension: {list(size)}")
    if tuple(theta.shape) != (size[0], rank, rank + 1):
        raise ShapeError(f"affine_grid_generator: Expected a batch of {rank}D affine matrices of "
                         f"shape Nx{rank}x{rank + 1} for size {list(size)}. Got "
                         f"{list(theta.shape)}.")
    return rank


class affine_grid_generator(Op):
    """The points of a regular grid on [-1, 1], moved by the affine map of each image."""

    complex = None
    schema = "affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor"
    linear = ("theta",)
    grad = {"theta": "affine_grid_generator_backward(grad, size, align_corners)"}
    cost = "cheap"
    method = False

    def run(xp, theta, size, align_corners):
        rank = _check_affine(theta, size)
        sizes = size[2:]
        lines = affine_base(xp, lambda n: xp.arange(n, dtype=theta.dtype), sizes, align_corners)

        def column(j):
            return theta[:, :, j].reshape(-1, *(1,) * rank, rank)

        out = column(rank)  # the translation
        for j, line in enumerate(lines):
            out = out + line.reshape((-1,) + (1,) * (j + 1)) * column(j)
        return out

    def shape(theta, size, align_corners):
        rank = _check_affine(theta, size)
        return (size[0], *size[2:], rank)

    def batch(n, batched, theta, size, align_corners):
        sizes = [n * size[0], *size[1:]]
        return _parted(n, ops.affine_grid_generator(_joined(n, theta, True), sizes, align_corners))

    def decomp(theta, size, align_corners):
        rank = _check_affine(theta, size)
        out = ops.matmul(affine_points(theta, size, align_corners), theta.transpose(1, 2))
        return out.reshape((size[0], *size[2:], rank))

    def samples(s):
        for align in (False, True):
            yield s(s.real(2, 2, 3), (2, 3, 4, 5), align)
            yield s(s.real(2, 3, 4), (2, 1, 3, 4, 1), align)
        yield s(s.real(0, 2, 3), (0, 3, 4, 5), False)


class affine_grid_generator_backward(Composite):
    """Gradient of `affine_grid_generator`: the points' homogeneous coordinates times `grad`."""

    schema = ("affine_grid_generator_backward(Tensor grad, SymInt[] size, bool align_corners)"
              " -> Tensor")
    method = function = False

    def compose(grad, size, align_corners):
        rank = len(size) - 2
        points = affine_points(grad, size, align_corners)
        flat = grad.reshape((size[0], numel(size[2:]), rank))
        return ops.matmul(flat.transpose(1, 2), points)

    def samples(s):
        yield s(s.real(2, 4, 5, 2), (2, 3, 4, 5), False)
        yield s(s.real(2, 3, 4, 1, 3), (2, 1, 3, 4, 1), True)


# ---------------------------------------------------------------------------------------------
# Channels and pixels


def _shuffled_shape(shape, r: int) -> tuple:
    """The shape of `pixel_shuffle`."""
    if len(shape) < 3:
        raise ShapeError("pixel_shuffle expects input to have at least 3 dimensions, but got input "
                         f"with {len(shape)} dimension(s)")
    if r <= 0:
        raise ShapeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *lead, c, h, w = shape
    if c % (r * r):
        raise ShapeError("pixel_shuffle expects its input's 'channel' dimension to be divisible by "
                         f"the square of upscale_factor, but input.size(-3)={c} is not divisible "
                         f"by {r * r}")
    return (*lead, c // (r * r), h * r, w * r)


def _unshuffled_shape(shape, r: int) -> tuple:
    """The shape of `pixel_unshuffle`."""
    if len(shape) < 3:
        raise ShapeError("pixel_unshuffle expects input to have at least 3 dimensions, but got "
                         f"input with {len(shape)} dimension(s)")
    if r <= 0:
        raise ShapeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *lead, c, h, w = shape
    if h % r or w % r:
        raise ShapeError("pixel_unshuffle expects height and width to be divisible by "
                         f"downscale_factor, but {h} or {w} is not divisible by {r}")
    return (*lead, c * r * r, h // r, w // r)


def _shuffle(self, r: int, move):
    """Blocks of r * r channels become blocks of pixels; `move` permutes dims."""
    *lead, c, h, w = _shuffled_shape(self.shape, r)
    n = len(lead)
    split = self.reshape((*lead, c, r, r, h // r, w // r))
    order = (*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    return move(split, order).reshape((*lead, c, h, w))


def _unshuffle(self, r: int, move):
    """The inverse of `_shuffle`."""
    *lead, c, h, w = _unshuffled_shape(self.shape, r)
    n = len(lead)
    split = self.reshape((*lead, c // (r * r), h, r, w, r))
    order = (*range(n + 1), n + 2, n + 4, n + 1, n + 3)
    return move(split, order).reshape((*lead, c, h, w))


def _permuted(t, order):
    return t.permute(order)


class pixel_shuffle(Op):
    """Each r * r channels become blocks of r by r pixels."""

    schema = "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor"
    lies = "channels"
    linear = ("self",)
    grad = {"self": "pixel_unshuffle(grad, upscale_factor)"}
    complex = True
    cost = "cheap"
    method = False
    shape = staticmethod(lambda self, upscale_factor: _shuffled_shape(self.shape, upscale_factor))

    def run(xp, self, upscale_factor):
        return _shuffle(self, upscale_factor, xp.transpose).copy()

    def batch(n, batched, self, upscale_factor):
        _shuffled_shape(self.shape[1:], upscale_factor)
        return ops.pixel_shuffle(self, upscale_factor)

    def decomp(self, upscale_factor):
        out = _shuffle(self, upscale_factor, _permuted)
        return out.clone() if upscale_factor == 1 else out

    def samples(s):
        yield s(s.real(2, 8, 3, 2), 2)
        yield s(s.real(9, 2, 3), 3)
        yield s(s.real(2, 3, 4), 1)
        yield s(s.real(0, 4, 3, 2), 2)
        yield s(s.real(3, 2, 4).T, 2)


class pixel_unshuffle(Op):
    """Blocks of r by r pixels become r * r channels."""

    schema = "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor"
    lies = "channels"
    linear = ("self",)
    grad = {"self": "pixel_shuffle(grad, downscale_factor)"}
    complex = True
    cost = "cheap"
    method = False
    shape = staticmethod(
        lambda self, downscale_factor: _unshuffled_shape(self.shape, downscale_factor))

    def run(xp, self, downscale_factor):
        return _unshuffle(self, downscale_factor, xp.transpose).copy()

    def batch(n, batched, self, downscale_factor):
        _unshuffled_shape(self.shape[1:], downscale_factor)
        return ops.pixel_unshuffle(self, downscale_factor)

    def decomp(self, downscale_factor):
        out = _unshuffle(self, downscale_factor, _permuted)
        return out.clone() if downscale_factor == 1 else out

    def samples(s):
        yield s(s.real(2, 2, 6, 4), 2)
        yield s(s.real(2, 3, 6), 3)
        yield s(s.real(2, 3, 4), 1)
        yield s(s.real(0, 4, 4, 2), 2)
        yield s(s.real(4, 2, 3).T, 2)


def _check_channels(name: str, shape, groups: int) -> None:
    if len(shape) < 3:
        raise ShapeError(f"{name} expects input with > 2 dims, but got input with sizes "
                         f"{list(shape)}")
    if groups <= 0 or shape[1] % groups:
        raise ShapeError(f"{name}: number of channels must be divisible by a positive number of "
                         f"groups, but got {shape[1]} channels and {groups} groups")


def _mixed(self, groups: int):
    """Channel k of each group becomes neighbour of channel k of the others."""
    n, c, *rest = self.shape
    split = self.reshape((n, groups, c // groups, *rest))
    return split.swapaxes(1, 2).reshape((n, c, *rest))


class channel_shuffle(Op):
    """Channels in groups are interleaved: the first of each group, then the second of each, ..."""

    schema = "channel_shuffle(Tensor self, SymInt groups) -> Tensor"
    lies = "channels"
    linear = ("self",)
    grad = {"self": "channel_shuffle(grad, grad.shape[1] // groups if groups else 1)"}
    complex = True
    cost = "cheap"
    method = False

    def run(xp, self, groups):
        _check_channels("channel_shuffle", self.shape, groups)
        return _mixed(self, groups).copy()

    def shape(self, groups):
        _check_channels("channel_shuffle", self.shape, groups)
        return tuple(self.shape)

    def batch(n, batched, self, groups):
        return _parted(n, ops.channel_shuffle(_joined(n, self, True), groups))

    def decomp(self, groups):
        _check_channels("channel_shuffle", self.shape, groups)
        out = _mixed(self, groups)
        return out.clone() if groups in (1, self.shape[1]) else out

    def samples(s):
        yield s(s.real(2, 6, 2, 3), 2)
        yield s(s.real(2, 6, 4), 3)
        yield s(s.real(1, 4, 2), 1)
        yield s(s.real(0, 4, 2), 2)
        yield s(s.real(2, 3, 4, 6).transpose(1, 3), 3)


class native_channel_shuffle(Composite):
    """The same as `channel_shuffle`."""

    schema = "native_channel_shuffle(Tensor self, SymInt groups) -> Tensor"
    method = False
    complex = True

    def compose(self, groups):
        return ops.channel_shuffle(self, groups)

    samples = channel_shuffle.samples
