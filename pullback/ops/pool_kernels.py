"""Kernels of pooling: windows along dims, and maxima and means over them.

Windows of several dims are products of windows along each dim, and so are maximum and mean over
them: kernels go through the dims one after the other, and within a dim through the offsets of the
window, each a strided slice of the input.  Padding is never materialised; an offset just meets
fewer windows there.  The pullback of a mean spreads instead of sums along the same slices, that of
a maximum scatters to the places that were chosen.  Read next: `pool.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..array.dims import for_each_dim, numel
from ..errors import DTypeError, ShapeError

# ---------------------------------------------------------------------------------------------
# Windows along one dim


class Windows(NamedTuple):
    """`count` windows of `kernel` elements, `stride` apart; the first begins at -padding."""

    size: int
    kernel: int
    stride: int
    padding: int
    dilation: int
    count: int

    def steps(self, skip: int = 0) -> Iterator[tuple[slice, slice]]:
        """For each offset inside a window: the elements it meets, and the windows they are of."""
        for j in range(skip, self.kernel):
            shift = j * self.dilation - self.padding
            first = max(0, -(shift // self.stride))
            last = min(self.count, (self.size - 1 - shift) // self.stride + 1)
            if first < last:
                start = first * self.stride + shift
                end = start + (last - first - 1) * self.stride + 1
                yield slice(start, end, self.stride), slice(first, last)

    def firsts(self) -> list[int]:
        """The first element of each window that is not in the padding."""
        starts = (i * self.stride - self.padding for i in range(self.count))
        return [s if s >= 0 else s % self.dilation for s in starts]

    @property
    def whole(self) -> bool:
        """Do all windows lie inside?"""
        return not self.padding and (self.count - 1) * self.stride + self.kernel <= self.size

    def counts(self, include_pad: bool) -> list[int]:
        """Elements of each window, with those in the padding or without."""
        if self.whole:
            return [self.kernel] * self.count
        found = []
        for i in range(self.count):
            start = i * self.stride - self.padding
            end = min(start + self.kernel, self.size + self.padding)
            found.append(end - start if include_pad else min(end, self.size) - max(start, 0))
        return found


class Ragged(NamedTuple):
    """Windows of different lengths, as adaptive pooling makes them."""

    size: int
    starts: list[int]
    ends: list[int]

    @property
    def count(self) -> int:
        return len(self.starts)

    def steps(self, skip: int = 0) -> Iterator[tuple[list[int], list[int]]]:
        """As `Windows.steps`, with lists of places."""
        bounds = list(zip(self.starts, self.ends))
        for j in range(skip, max(e - s for s, e in bounds)):
            chosen = [i for i, (s, e) in enumerate(bounds) if s + j < e]
            yield [self.starts[i] + j for i in chosen], chosen

    def firsts(self) -> list[int]:
        """The first element of each window."""
        return self.starts

    def counts(self, include_pad: bool) -> list[int]:
        """Elements of each window."""
        return [e - s for s, e in zip(self.starts, self.ends)]


def window_count(size: int, w: Windows, ceil_mode: bool) -> int:
    """How many windows fit; with `ceil_mode` the last may hang over, but must begin inside."""
    room = size + 2 * w.padding - w.dilation * (w.kernel - 1) - 1
    count = (room + (w.stride - 1 if ceil_mode else 0)) // w.stride + 1
    if ceil_mode and (count - 1) * w.stride >= size + w.padding:
        count -= 1
    return count


def adaptive_windows(size: int, count: int) -> Windows | Ragged:
    """Window i reaches from floor(i * size / count) to ceil((i + 1) * size / count)."""
    if count == 0 or size % count == 0:
        kernel = size // max(count, 1)
        return Windows(size, kernel, max(kernel, 1), 0, 1, count)
    return Ragged(size, [i * size // count for i in range(count)],
                  [-(-(i + 1) * size // count) for i in range(count)])


# ---------------------------------------------------------------------------------------------
# Arguments


def _spread_sizes(name: str, what: str, value: list[int], rank: int,
                  empty: list[int] | None = None) -> list[int]:
    """`value` with one entry per dim."""
    if not value and empty is not None:
        return empty
    found = for_each_dim(value, rank)
    if found is None:
        raise ShapeError(f"{name}: {what} must either be a single int, or a tuple of {rank} ints, "
                         f"got {list(value)}")
    return found


def check_planes(name: str, shape, rank: int) -> None:
    """Channels and `rank` dims, none of them empty, with or without a batch dim in front."""
    if len(shape) not in (rank + 1, rank + 2) or 0 in shape[-rank - 1:]:
        raise ShapeError(f"{name}: Expected {rank + 1}D or {rank + 2}D (batch mode) tensor with "
                         "optional 0 dim batch size for input (Expected input's non-batch "
                         f"dimensions to have positive length), but got: {list(shape)}")


def pool_windows(name, shape, rank, kernel_size, stride, padding, dilation, ceil_mode) -> list:
    """The windows along each of the last `rank` dims."""
    kernel = _spread_sizes(name, "kernel_size", kernel_size, rank)
    stride = _spread_sizes(name, "stride", stride, rank, kernel)
    padding = _spread_sizes(name, "padding", padding, rank)
    dilation = _spread_sizes(name, "dilation", dilation, rank)
    for what, sizes in (("kernel size", kernel), ("stride", stride), ("dilation", dilation)):
        if min(sizes) <= 0:
            raise ShapeError(f"{name}: {what} should be greater than zero, but got {sizes}")
    if min(padding) < 0:
        raise ShapeError(f"{name}: pad must be non-negative, but got pad: {padding}")
    if any(p > k // 2 for p, k in zip(padding, kernel)):
        raise ShapeError(f"{name}: pad should be at most half of effective kernel size, and "
                         f"smaller than or equal to half of kernel size, but got pad={padding}, "
                         f"kernel_size={kernel} and dilation={dilation}")
    check_planes(name, shape, rank)
    made = []
    for size, k, s, p, d in zip(shape[-rank:], kernel, stride, padding, dilation):
        w = Windows(size, k, s, p, d, 0)
        made.append(w._replace(count=window_count(size, w, ceil_mode)))
    if any(w.count < 1 for w in made):
        raise ShapeError(f"{name}: Given input size {list(shape)}, calculated output size "
                         f"{[w.count for w in made]}. Output size is too small")
    return made


def avg_pool_windows(name, shape, rank, kernel_size, stride, padding, ceil_mode) -> list:
    """The same for means; those of volumes must not be larger than the volume, as in PyTorch."""
    made = pool_windows(name, shape, rank, kernel_size, stride, padding, [1], ceil_mode)
    if rank == 3 and any(w.kernel > w.size for w in made):
        raise ShapeError(f"{name}: input image {list(shape)} smaller than kernel size "
                         f"{[w.kernel for w in made]}")
    return made


def adaptive_pool_shape(name: str, shape, rank: int, output_size: list[int]) -> tuple:
    """The shape after adaptive pooling of the last `rank` dims."""
    if len(output_size) != rank:
        raise ShapeError(f"{name}: output_size must be {rank}, got {len(output_size)} sizes")
    if min(output_size) < 0:
        raise ShapeError(f"{name}: elements of output_size must be greater than or equal to 0 but "
                         f"received {list(output_size)}")
    check_planes(name, shape, rank)
    return (*shape[:-rank], *output_size)


def adaptive_pool_windows(name: str, shape, rank: int, output_size: list[int]) -> list:
    """The windows along each of the last `rank` dims of adaptive pooling."""
    adaptive_pool_shape(name, shape, rank, output_size)
    return [adaptive_windows(n, m) for n, m in zip(shape[-rank:], output_size)]


def pooled_shape(shape, windows: list) -> tuple:
    """The shape after pooling the last dims."""
    return (*shape[:-len(windows)], *(w.count for w in windows))


def check_gradient(name: str, grad, shape) -> None:
    """Refuse a gradient that is not of the shape of what was pooled."""
    if tuple(grad.shape) != tuple(shape):
        raise ShapeError(f"{name}: expected a gradient of shape {list(shape)}, got "
                         f"{list(grad.shape)}")


# ---------------------------------------------------------------------------------------------
# Kernels


def along(axis: int, key) -> tuple:
    """The index that applies `key` to one dim."""
    return (slice(None),) * axis + (key,)


def _vector(xp, places, axis: int, ndim: int, dtype):
    """The numbers of places along a dim, shaped to broadcast there."""
    if isinstance(places, slice):
        line = xp.arange(places.start, places.stop, places.step, dtype=dtype)
    else:
        line = xp.asarray(places, dtype=dtype)
    return line.reshape((-1,) + (1,) * (ndim - 1 - axis))


def _key(xp, places):
    return places if isinstance(places, slice) else xp.asarray(places, dtype=xp.int64)


def lowest(xp, dtype):
    """The number that every other one exceeds."""
    return -math.inf if dtype.kind == "f" else xp.iinfo(dtype).min


def _max_along(xp, values, chosen, axis: int, windows, inner: int, dtype):
    """Maxima over the windows of one dim, and where they are.

    `chosen` holds the places of `values` inside the `inner` elements of the dims that are done.
    The first of equal values wins, but the last NaN, as in a scan with `new > best or new is NaN`.
    """
    def places(key):
        line = _vector(xp, key, axis, values.ndim, dtype) * inner
        return line if chosen is None else line + chosen[along(axis, _key(xp, key))]

    padded = isinstance(windows, Windows) and windows.padding > 0
    if padded or isinstance(windows, Ragged):
        first = [min(f, windows.size - 1) for f in windows.firsts()]
    else:
        first = slice(0, (windows.count - 1) * windows.stride + 1, windows.stride)
    best = values[along(axis, _key(xp, first))].copy()
    where = places(first)
    if where.shape != best.shape:
        where = xp.broadcast_to(where, best.shape).copy()
    empty = [i for i, f in enumerate(windows.firsts()) if f >= windows.size] if padded else ()
    if empty:  # a dilated window may step over all elements
        best[along(axis, _key(xp, empty))] = lowest(xp, values.dtype)
    floating = values.dtype.kind == "f"
    for source, target in windows.steps(0 if padded else 1):
        key = along(axis, _key(xp, target))
        new, old = values[along(axis, _key(xp, source))], best[key]
        better = new > old
        if floating:
            better |= new != new
        best[key] = xp.maximum(old, new)
        # arithmetic instead of a choice: several times faster where the outcome is random
        where[key] += (places(source) - where[key]) * better
    return best, where


FEW = 4096  # elements, up to which one search in copies of the windows is quicker


@functools.lru_cache(256)
def _flat_places(windows: tuple) -> tuple:
    """Flat places of the elements of a window, relative to its first, and of the first ones."""
    sizes = [w.size for w in windows]

    def flat(lines):
        steps = [numel(sizes[i + 1:]) for i in range(len(sizes))]
        return functools.reduce(np.add.outer, [np.arange(n) * s * step for (n, s), step in
                                               zip(lines, steps)])

    return (flat([(w.kernel, 1) for w in windows]).reshape(-1),
            flat([(w.count, w.stride) for w in windows]))


def _max_of_few(self: np.ndarray, windows: tuple) -> tuple | None:
    """`max_pool` of few elements in whole windows; None where a NaN may decide."""
    lead, rank = self.shape[:-len(windows)], len(windows)
    counts, strides = tuple([w.count for w in windows]), self.strides
    moves = tuple([s * w.stride for s, w in zip(strides[-rank:], windows)])
    cut = np.ndarray((*[w.kernel for w in windows], *lead, *counts), self.dtype, self, 0,
                     (*strides[-rank:], *strides[:-rank], *moves)).reshape((-1, *lead, *counts))
    values = cut.max(0)
    if self.dtype.kind == "f" and not (values == values).all():
        return None
    inside, first = _flat_places(windows)
    return values, inside[cut.argmax(0)] + first


def max_pool(xp, self, windows: list) -> tuple:
    """Maxima over windows of the last dims, and their flat places in those dims."""
    if 0 in pooled_shape(self.shape, windows):
        shape = pooled_shape(self.shape, windows)
        return xp.zeros(shape, self.dtype), xp.zeros(shape, xp.int64)
    plain = xp is np and self.dtype.kind in "fiu" and self.flags.c_contiguous
    if plain and self.size <= FEW and all(
            type(w) is Windows and w.dilation == 1 and w.whole for w in windows):
        found = _max_of_few(self, tuple(windows))
        if found is not None:
            return found
    values, chosen, inner = self, None, 1
    small = numel(w.size for w in windows) < 2**31  # half the memory traffic
    for i, w in reversed(list(enumerate(windows))):
        axis = self.ndim - len(windows) + i
        values, chosen = _max_along(xp, values, chosen, axis, w, inner,
                                    xp.int32 if small else xp.int64)
        inner *= w.size
    return xp.ascontiguousarray(values), xp.ascontiguousarray(chosen, xp.int64)


def scatter_sum(xp, values, places, size: int):
    """out[places[i]] += values[i] for flat places."""
    out = xp.zeros(size, values.dtype)
    xp.add.at(out, places.reshape(-1), values.reshape(-1))
    return out


def flat_planes(xp, places, rank: int, size: int):
    """Places within planes of `size` elements as places in all planes."""
    lead = places.shape[:-rank]
    offsets = xp.arange(0, numel(lead) * size, size).reshape(lead + (1,) * rank)
    return places + offsets


def max_pool_backward(xp, grad, shape, indices, rank: int):
    """Gradients added up at the places that the maxima came from."""
    size = numel(shape[-rank:])
    if grad.size == 0 or numel(shape) == 0:
        return xp.zeros(shape, grad.dtype)
    if int(indices.min()) < 0 or int(indices.max()) >= size:
        raise ShapeError(f"the index of a maximum is outside of the input's {size} elements")
    flat = flat_planes(xp, indices, rank, size)
    return scatter_sum(xp, grad, flat, numel(shape)).reshape(shape)


def _sum_along(xp, values, axis: int, windows):
    """Sums over the windows of one dim."""
    shape = (*values.shape[:axis], windows.count, *values.shape[axis + 1:])
    if isinstance(windows, Ragged):
        out = xp.empty(shape, values.dtype)
        for i, (start, end) in enumerate(zip(windows.starts, windows.ends)):
            out[along(axis, i)] = values[along(axis, slice(start, end))].sum(axis=axis)
        return out
    whole = windows.count * windows.kernel
    plain = windows.stride == windows.kernel and windows.padding == 0 and whole <= windows.size
    if plain and windows.kernel > 8:  # a short loop over long slices beats a long one
        part = values[along(axis, slice(0, whole))]
        split = (*shape[:axis + 1], windows.kernel, *shape[axis + 1:])
        return part.reshape(split).sum(axis=axis + 1, dtype=values.dtype)
    out = xp.zeros(shape, values.dtype)
    for source, target in windows.steps():
        out[along(axis, target)] += values[along(axis, source)]
    return out


def _spread_along(xp, values, axis: int, windows):
    """The adjoint of `_sum_along`: each element is added to all places of its window."""
    out = xp.zeros((*values.shape[:axis], windows.size, *values.shape[axis + 1:]), values.dtype)
    if isinstance(windows, Ragged):
        for i, (start, end) in enumerate(zip(windows.starts, windows.ends)):
            out[along(axis, slice(start, end))] += values[along(axis, slice(i, i + 1))]
        return out
    for source, target in windows.steps():
        out[along(axis, source)] += values[along(axis, target)]
    return out


def _divisor(xp, windows: list, include_pad: bool, override: int | None, dtype):
    """What sums over windows are divided by: a number, or an array over the windows."""
    if override is not None:
        if override == 0:
            raise ShapeError("divisor must be not zero")
        return override
    counts = [w.counts(include_pad) for w in windows]
    if all(len(set(c)) == 1 for c in counts):
        return numel(c[0] for c in counts)
    out = 1
    for i, c in enumerate(counts):
        out = out * xp.asarray(c, dtype=dtype).reshape((-1,) + (1,) * (len(counts) - 1 - i))
    return out


def avg_pool(xp, self, windows: list, include_pad: bool = True, override: int | None = None):
    """Means over windows of the last dims."""
    by = _divisor(xp, windows, include_pad, override, self.dtype)
    out = self
    for i, w in enumerate(windows):
        out = _sum_along(xp, out, self.ndim - len(windows) + i, w)
    if out.dtype.kind in "iu":  # towards zero, as in C
        quotient = abs(out) // abs(by)
        return xp.where((out < 0) != (by < 0), -quotient, quotient)
    return out / by


def avg_pool_backward(xp, grad, windows: list, include_pad: bool = True,
                      override: int | None = None):
    """The adjoint of `avg_pool`."""
    out = grad / _divisor(xp, windows, include_pad, override, grad.dtype)
    for i, w in enumerate(windows):
        out = _spread_along(xp, out, grad.ndim - len(windows) + i, w)
    return out


# ---------------------------------------------------------------------------------------------
# Fractional pooling


def check_fractional(name: str, self, kernel_size, output_size, random_samples) -> None:
    """Refuse sizes, windows and draws that do not fit together."""
    rank = len(kernel_size)
    check_planes(name, self.shape, rank)
    if len(output_size) != rank or len(random_samples.shape) != 3:
        raise ShapeError(f"{name}: expected {rank} output sizes and random samples with 3 dims, "
                         f"got {list(output_size)} and {list(random_samples.shape)}")
    if random_samples.dtype != self.dtype:
        raise DTypeError(f"{name}: expected random_samples of the dtype of the input, "
                         f"{self.dtype}, got {random_samples.dtype}")
    planes = (1 if len(self.shape) == rank + 1 else self.shape[0], self.shape[-rank - 1])
    drawn = tuple(random_samples.shape)
    if drawn[0] < planes[0] or drawn[1:] != (planes[1], rank):
        raise ShapeError(f"{name}: expected random samples of shape {[*planes, rank]}, got "
                         f"{list(drawn)}")
    for size, k, out in zip(self.shape[-rank:], kernel_size, output_size):
        if out < 1 or k < 1 or out + k - 1 + (rank == 3) > size:  # volumes need one more
            raise ShapeError(f"{name}: pool size {k} with output size {out} does not fit an input "
                             f"of {size} elements")


def fractional_max_pool(xp, self, kernel_size, output_size, random_samples):
    """Maxima over windows that begin at places of each plane's own."""
    rank = len(kernel_size)
    shape = (*self.shape[:-rank], *output_size)
    if self.size == 0:
        return xp.zeros(shape, self.dtype), xp.zeros(shape, xp.int64)
    flat = self.reshape(-1, numel(self.shape[-rank:]))
    draws = random_samples.reshape(-1, rank)[:flat.shape[0]]
    order = range(rank) if rank == 3 else (1, 0)  # two draws are for width, then height
    starts = [_fractional_starts(xp, draws[:, j:j + 1], size, out, k) for j, size, out, k in
              zip(order, self.shape[-rank:], output_size, kernel_size)]
    best = where = None
    for offset in range(numel(kernel_size)):
        places, step = 0, offset
        for i in reversed(range(rank)):
            step, j = divmod(step, kernel_size[i])
            line = (starts[i] + j) * numel(self.shape[self.ndim - rank + i + 1:])
            places = places + line.reshape(line.shape[:1] + (1,) * i + (-1,)
                                           + (1,) * (rank - 1 - i))
        places = places.reshape(flat.shape[0], -1)
        new = xp.take_along_axis(flat, places, axis=1)
        if best is None:
            best, where = new, places
        else:
            better = (new > best) | (new != new)
            best, where = xp.where(better, new, best), xp.where(better, places, where)
    return best.reshape(shape), where.astype(xp.int64).reshape(shape)


def _fractional_starts(xp, draw, size: int, count: int, kernel: int):
    """Where the windows of each plane begin: floor((i + u) a) - floor(u a), the last at the end."""
    if count == 1:
        return xp.full(draw.shape, size - kernel, xp.int64)
    step = draw.dtype.type((size - kernel) / (count - 1))
    line = xp.arange(count - 1, dtype=draw.dtype)
    starts = ((line + draw) * step).astype(xp.int64) - (draw * step).astype(xp.int64)
    last = xp.full(draw.shape, size - kernel, xp.int64)
    return xp.concatenate([starts, last], axis=1)
