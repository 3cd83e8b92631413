"""The mathematics of resampling: positions, interpolation weights, and derivatives by the grid.

A resampled value is a sum over a few neighbours ("taps") of an element times a weight, and the
weight is a product of one factor per dim that depends on the fractional position there.  Kernels
and formulas share the functions of the first two sections: `lib` is the array namespace of a
kernel, or `ops` where the values are tensors.  Read `ops/upsample.py` next.
"""

from __future__ import annotations

import itertools
import math

from ..array import dtype as dt
from ..array.dims import numel
from ..table.packets import ops

# ---------------------------------------------------------------------------------------------
# Factors of the weights: functions of the fraction f in [0, 1) between two neighbours


def linear_weights(f, order: int = 0) -> list:
    """1 - f and f, or their derivatives."""
    if order == 0:
        return [1 - f, f]
    one = f * 0 + (1 if order == 1 else 0)
    return [-one, one]


def cubic_near(x, a: float, order: int = 0):
    """The cubic convolution kernel of distances up to one: (a + 2) x³ - (a + 3) x² + 1."""
    if order == 0:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    if order == 1:
        return (3 * (a + 2) * x - 2 * (a + 3)) * x
    if order == 2:
        return 6 * (a + 2) * x - 2 * (a + 3)
    return x * 0 + 6 * (a + 2)


def cubic_far(x, a: float, order: int = 0):
    """The kernel of distances from one to two: a (x³ - 5 x² + 8 x - 4)."""
    if order == 0:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    if order == 1:
        return (3 * a * x - 10 * a) * x + 8 * a
    if order == 2:
        return 6 * a * x - 10 * a
    return x * 0 + 6 * a


CUBIC = -0.75  # the kernel's slope at distance one


def cubic_weights(f, order: int = 0) -> list:
    """Weights of the elements at -1, 0, 1 and 2, or their derivatives by f."""
    back = -1 if order % 2 else 1  # the elements ahead come nearer as f grows
    ahead = 1 - f
    return [cubic_far(f + 1, CUBIC, order), cubic_near(f, CUBIC, order),
            back * cubic_near(ahead, CUBIC, order), back * cubic_far(ahead + 1, CUBIC, order)]


# ---------------------------------------------------------------------------------------------
# Positions along one dim


def source_step(size: int, count: int, align_corners: bool, scale: float | None) -> float:
    """Distance between two results, counted in elements of the input."""
    if align_corners:
        return (size - 1) / (count - 1) if count > 1 else 0.0
    return 1 / scale if scale is not None and scale > 0 else size / count


def resize_taps(lib, kind: str, i, size: int, step: float, align_corners: bool) -> list:
    """(place, weight) of each neighbour of the results with the numbers `i`; places are floats."""
    top = size - 1
    if kind in ("nearest", "exact"):
        place = lib.floor((i if kind == "nearest" else i + 0.5) * step)
        return [(place.clip(0, top), None)]
    # where base and weight come from different loops they must be of one position: the clip, which
    # changes nothing, keeps C from rounding product and difference at once in one of them only
    position = i * step if align_corners else ((i + 0.5) * step).clip(0, None) - 0.5
    if kind == "linear":
        position = position.clip(0, None)
    base = lib.floor(position).clip(None, top)
    f = (position - base).clip(0, 1)
    if kind == "linear":
        return list(zip([base, (base + 1).clip(0, top)], linear_weights(f)))
    return [((base + k).clip(0, top), w) for k, w in zip((-1, 0, 1, 2), cubic_weights(f))]


def reflected(lib, position, slope, low: float, span: float):
    """The position mirrored into [low, low + span], and the slope with its sign."""
    if span == 0:
        return position * 0, slope * 0
    behind = position < low
    distance = lib.where(behind, low - position, position - low)
    flips = lib.floor(distance / span)
    rest = distance - flips * span
    odd = flips - 2 * lib.floor(flips / 2) != 0
    return (lib.where(odd, span - rest, rest) + low,
            lib.where(odd != behind, -slope, slope))


def clipped(lib, position, slope, top: float):
    """The position cut off at 0 and `top`; the slope is zero there."""
    inside = (position > 0) & (position < top)
    position = lib.where(position >= top, top, position)
    # a comparison with NaN is false, so NaN becomes 0
    return lib.where(position > 0, position, 0.0), lib.where(inside, slope, 0.0)


def bordered(lib, position, slope, size: int, padding: int, align_corners: bool):
    """Position and slope after the padding rule: 0 zeros, 1 border, 2 reflection."""
    if padding == 2:
        low, span = (0.0, size - 1) if align_corners else (-0.5, size)
        position, slope = reflected(lib, position, slope, low, span)
    if padding:
        position, slope = clipped(lib, position, slope, size - 1)
    known = abs(position) < 2.0**31  # neither NaN nor beyond every tensor
    return lib.where(known, position, -100.0), slope


def grid_position(lib, g, size: int, padding: int, align_corners: bool, cubic: bool):
    """Where a grid coordinate in [-1, 1] points, counted in elements, and its slope.

    Cubic sampling pads each of its neighbours instead, so its position is left alone.
    """
    slope = (size - 1) / 2 if align_corners else size / 2
    position = (g + 1) * slope if align_corners else (g + 1) * slope - 0.5
    slope = lib.ones_like(g) * slope
    return bordered(lib, position, slope, size, 0 if cubic else padding, align_corners)


class Axis:
    """The taps of one dim of a grid: places, which of them exist, weights and their derivatives."""

    def __init__(self, lib, g, size: int, mode: int, padding: int, align_corners: bool):
        cubic = mode == 2
        position, self.slope = grid_position(lib, g, size, padding, align_corners, cubic)
        self.mode, self.size = mode, size
        if mode == 1:
            self.fraction, places = position * 0, [lib.round(position)]
        else:
            base = lib.floor(position)
            self.fraction = position - base
            places = [base + k for k in ((-1, 0, 1, 2) if cubic else (0, 1))]
        if cubic and padding:
            places = [bordered(lib, p, p * 0, size, padding, align_corners)[0] for p in places]
        self.known = [(p >= 0) & (p <= size - 1) for p in places]
        self.places = [lib.where(k, p, 0.0) for k, p in zip(self.known, places)]
        self._weights: dict[int, list] = {}

    def weights(self, order: int) -> list:
        """Factor of each tap, differentiated `order` times by the position."""
        if order not in self._weights:
            if self.mode == 1:
                found = [self.fraction + (0 if order else 1)]
            else:
                found = (linear_weights if self.mode == 0 else cubic_weights)(self.fraction, order)
            self._weights[order] = found
        return self._weights[order]


def grid_axes(lib, grid, sizes, mode: int, padding: int, align_corners: bool) -> list[Axis]:
    """One `Axis` for each spatial dim; the grid lists coordinates from the last dim on."""
    rank = len(sizes)
    return [Axis(lib, grid[..., rank - 1 - d], sizes[d], mode, padding, align_corners)
            for d in range(rank)]


def corners(axes: list[Axis]):
    """For each combination of taps: its numbers along the axes, flat place, and existence."""
    for choice in itertools.product(*(range(len(a.places)) for a in axes)):
        place, known = 0, None
        for axis, k in zip(axes, choice):
            place = place * axis.size + axis.places[k]
            known = axis.known[k] if known is None else known & axis.known[k]
        yield choice, place, known


def corner_weight(axes: list[Axis], choice: tuple, orders: tuple):
    """Product of the factors of one combination of taps."""
    return math.prod(a.weights(n)[k] for a, k, n in zip(axes, choice, orders))


# ---------------------------------------------------------------------------------------------
# Derivatives of sampling at the positions of a grid.  With `orders` n the sampled value
#     G[n](x) = sum over corners k of  (d^n w_k)(position) x[place_k]
# is differentiated n[d] times by the position along dim d; T[n] is its transpose.  The family is
# closed under derivatives, so everything below is made of these two.


class Sampler:
    """G and T for one grid, made of differentiable operators."""

    def __init__(self, grid, sizes, mode: int, padding: int, align_corners: bool):
        self.sizes, self.out = tuple(sizes), tuple(grid.shape[1:-1])
        flat = grid.reshape((grid.shape[0], 1, numel(self.out), grid.shape[-1]))
        self.axes = grid_axes(ops, flat, sizes, mode, padding, align_corners)
        self.corners = [(c, p.to(dt.int64), k) for c, p, k in corners(self.axes)]

    @property
    def rank(self) -> int:
        return len(self.sizes)

    def orders(self, *dims: int) -> tuple:
        """One derivative along each of the dims."""
        return tuple(dims.count(d) for d in range(self.rank))

    def flat(self, values):
        """Values at the points of the grid as [image, channel, point]."""
        return values.reshape((*values.shape[:2], numel(self.out)))

    def gather(self, x, orders: tuple):
        """G[orders](x) as [image, channel, point]."""
        flat = x.reshape((*x.shape[:2], numel(self.sizes)))
        total = None
        for choice, place, known in self.corners:
            places = place.expand((*x.shape[:2], place.shape[-1]))
            term = ops.where(known, ops.gather(flat, 2, places), 0.0)
            term = term * corner_weight(self.axes, choice, orders)
            total = term if total is None else total + term
        return total

    def scatter(self, values, orders: tuple):
        """T[orders](values), an input-shaped tensor."""
        out = values.new_zeros((*values.shape[:2], numel(self.sizes)))
        for choice, place, known in self.corners:
            term = ops.where(known, values, 0.0) * corner_weight(self.axes, choice, orders)
            out = ops.scatter_add(out, 2, place.expand(values.shape), term)
        return out.reshape((*values.shape[:2], *self.sizes))

    def slope(self, d: int):
        """Derivative of the position along dim d by the grid's coordinate."""
        return self.axes[d].slope

    def moved(self, x, direction):
        """Derivative of the sampled x along a direction of the grid: sum of G[d](x) slope dt."""
        total = None
        flat = direction.reshape((direction.shape[0], 1, numel(self.out), self.rank))
        for d in range(self.rank):
            step = flat[..., self.rank - 1 - d] * self.slope(d)
            term = self.gather(x, self.orders(d)) * step
            total = term if total is None else total + term
        return total.reshape((*x.shape[:2], *self.out))


def grid_sampler_push(sample, input_p, input_t, grid_p, grid_t, mode, padding, align_corners):
    """Tangent of grid sampling: the sampled tangent, and the change by moving the grid."""
    out = sample(input_t, grid_p, mode, padding, align_corners)
    sampler = Sampler(grid_p, input_p.shape[2:], mode, padding, align_corners)
    return out + sampler.moved(input_p, grid_t)


def grid_sampler_double_backward(grads, grad_output, input, grid, mode, padding, align_corners,
                                 mask, sample, backward):
    """Pullback of (g, x, t) -> (T(g), <g, G[d](x)> slope), the pullback of grid sampling.

    Its pairing with directions h and k is <g, S(h)> + sum over d <g k_d slope_d, G[d](x)>, the
    pushforward of sampling paired with g; so the first gradient is that pushforward.
    """
    h, k = grads
    args = (mode, padding, align_corners)
    of_grad = of_input = of_grid = None
    if h is not None:
        if mask[0]:
            of_grad = sample(h, grid, *args)
        if mask[2]:
            of_grid = backward(grad_output, h, grid, *args, [False, True])[1]
    if k is not None:
        s = Sampler(grid, input.shape[2:], *args)
        if mask[0]:
            moved = s.moved(input, k)
            of_grad = moved if of_grad is None else of_grad + moved
        if mask[1]:
            of_input = _moved_transpose(s, grad_output, k)
        if mask[2]:
            second = _second_by_grid(s, grad_output, input, grid, k)
            of_grid = second if of_grid is None else of_grid + second
    return of_grad, of_input, of_grid


def _steps(s: Sampler, k) -> list:
    """How far each point moves along each dim if the grid moves by k."""
    flat = k.reshape((k.shape[0], 1, numel(s.out), s.rank))
    return [flat[..., s.rank - 1 - d] * s.slope(d) for d in range(s.rank)]


def _moved_transpose(s: Sampler, g, k):
    """Gradient of <g, moved(x, k)> with respect to x: sum over d of T[d](g k_d slope_d)."""
    g = s.flat(g)
    terms = [s.scatter(g * step, s.orders(d)) for d, step in enumerate(_steps(s, k))]
    return sum(terms[1:], terms[0])


def _second_by_grid(s: Sampler, g, x, grid, k):
    """Gradient of <g, moved(x, k)> with respect to the grid: the Hessian of the sampling."""
    g, steps = s.flat(g), _steps(s, k)
    columns = []
    for b in reversed(range(s.rank)):
        terms = [(g * s.gather(x, s.orders(a, b))).sum(1) * step[:, 0]
                 for a, step in enumerate(steps)]
        columns.append(sum(terms[1:], terms[0]) * s.slope(b)[:, 0])
    return ops.stack(columns, -1).reshape(grid.shape)


def grid_sampler_backward_push(backward, g_p, g_t, x_p, x_t, grid_p, grid_t, mode, padding,
                               align_corners, wanted):
    """Tangents of (T(g), <g, G[d](x)> slope): linear in g and x, and moved with the grid."""
    args = (mode, padding, align_corners)
    of_input, of_grid = backward(g_t, x_p, grid_p, *args, wanted)
    s = Sampler(grid_p, x_p.shape[2:], *args)
    if wanted[0]:
        of_input = of_input + _moved_transpose(s, g_p, grid_t)
    if wanted[1]:
        of_grid = (of_grid + backward(g_p, x_t, grid_p, *args, [False, True])[1]
                   + _second_by_grid(s, g_p, x_p, grid_p, grid_t))
    return of_input, of_grid


# ---------------------------------------------------------------------------------------------
# Affine grids


def affine_base(lib, line, sizes, align_corners: bool) -> list:
    """Coordinates in [-1, 1] along each dim, from the last on; `line(n)` is 0, 1, ..., n - 1."""
    found = []
    for n in reversed(sizes):
        if align_corners:
            found.append(line(n) * (2 / (n - 1)) - 1 if n > 1 else line(n))
        else:
            found.append((line(n) * 2 + (1 - n)) / n)
    return found


def affine_points(theta, size, align_corners: bool):
    """Homogeneous coordinates of all points, [point, rank + 1], as a tensor like `theta`."""
    sizes = list(size[2:])
    rank = len(sizes)
    lines = affine_base(ops, lambda n: ops.arange(n, dtype=theta.dtype, device=theta.device),
                        sizes, align_corners)
    columns = []
    for j, line in enumerate(lines):
        shape = [1] * rank
        shape[rank - 1 - j] = sizes[rank - 1 - j]
        columns.append(line.reshape(shape).expand(sizes).reshape((numel(sizes),)))
    columns.append(ops.ones((numel(sizes),), dtype=theta.dtype, device=theta.device))
    return ops.stack(columns, 1)
