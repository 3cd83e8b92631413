"""Sampling of images and volumes at the points of a grid, and affine grids.

Sampling gathers rows of channels, and its gradient scatters them.  Positions, weights and the
derivatives by the grid are in `formulas/resample.py`.
"""

from __future__ import annotations

from ..array.dims import numel
from ..core.op import Composite, Op
from ..errors import DTypeError, ShapeError
from ..formulas.resample import affine_base, affine_points, corner_weight, corners, grid_axes
from ..table.packets import ops
from .batching import join_batch, part_batch
from .kinds import Free, Synonym
from .pointwise import refuse
from .pool_kernels import scatter_sum

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


def points(s, shape, sizes, align):
    """Grid points whose distance from an element is neither near 0 nor near a half."""
    lines = []
    for n in reversed(sizes):
        whole = s.random.integers(-2, n + 1, shape)
        part = s.random.choice([0.2, 0.3, 0.4, 0.6, 0.7, 0.8], shape)
        place = whole + part
        lines.append(place * 2 / max(n - 1, 1) - 1 if align else (2 * place + 1) / n - 1)
    return ops.stack([s.values(line) for line in lines], -1)


class GridSampler(Op):
    """Values of an image of `dims` dims between its elements, at the points of a grid."""

    dims: int
    same_dtype = ("input", "grid")
    method = False

    @classmethod
    def run(cls, xp, input, grid, interpolation_mode, padding_mode, align_corners):
        refuse(cls.base_name, input, "biuc")
        _check_grid(cls.base_name, input, grid, interpolation_mode, padding_mode, cls.dims)
        return _sample(xp, input, grid, interpolation_mode, padding_mode, align_corners)

    @classmethod
    def shape(cls, input, grid, interpolation_mode, padding_mode, align_corners):
        _check_grid(cls.base_name, input, grid, interpolation_mode, padding_mode, cls.dims)
        return (*input.shape[:2], *grid.shape[1:-1])

    @classmethod
    def batch(cls, n, batched, input, grid, *rest):
        call = getattr(ops, cls.base_name)
        if not batched[1]:  # one grid for all: examples are further channels
            b, c = input.shape[1], input.shape[2]
            joined = input.movedim(0, 1).reshape((b, n * c, *input.shape[3:]))
            out = call(joined, grid, *rest)
            return out.reshape((b, n, c, *out.shape[2:])).movedim(1, 0)
        out = call(join_batch(n, input, batched[0]), join_batch(n, grid, True), *rest)
        return part_batch(n, out)

    @classmethod
    def samples(cls, s):
        dims = cls.dims
        sizes, out = (3, 4, 5)[-dims:], (2, 3, 2)[:dims]
        for mode in (0, 1, 2)[:5 - dims]:
            for padding in (0, 1, 2):
                align = (mode + padding) % 2 == 1
                where = points(s, (2, *out), sizes, align)
                yield s(s.real(2, 2, *sizes), where, mode, padding, align)
        yield s(s.real(0, 2, *sizes), s.real(0, *out, dims), 0, 0, False)
        x = s.real(1, 2, *sizes).transpose(2, 3)
        yield s(x, points(s, (1,) * (dims + 1), x.shape[2:], False), 0, 1, False)
        yield s(s.real(1, 1, *(1,) * dims), points(s, (1, *out), (1,) * dims, True), 0, 2, True)


class GridSamplerBackward(Op):
    """Gradients of the sampler `of` for image and grid, as the mask asks."""

    of: type[GridSampler]
    same_dtype = ("grad_output", "input", "grid")
    method = function = False

    @classmethod
    def run(cls, xp, grad_output, input, grid, interpolation_mode, padding_mode, align_corners,
            output_mask):
        refuse(cls.base_name, input, "biuc")
        _check_grid(cls.base_name, input, grid, interpolation_mode, padding_mode, cls.of.dims)
        return _sample_backward(xp, grad_output, input, grid, interpolation_mode, padding_mode,
                                align_corners, output_mask)

    @classmethod
    def shape(cls, grad_output, input, grid, interpolation_mode, padding_mode, align_corners,
              output_mask):
        refuse(cls.base_name, input, "biuc")
        _check_grid(cls.base_name, input, grid, interpolation_mode, padding_mode, cls.of.dims)
        return [tuple(t.shape) if wanted else None
                for t, wanted in zip((input, grid), output_mask)]

    @classmethod
    def batch(cls, n, batched, grad_output, input, grid, *rest):
        tensors = (join_batch(n, t, b) for t, b in zip((grad_output, input, grid), batched))
        out = getattr(ops, cls.base_name)(*tensors, *rest)
        return tuple(None if t is None else part_batch(n, t) for t in out)

    @classmethod
    def samples(cls, s):
        for case in cls.of.samples(s):
            x, t, *rest = case.args
            yield s(s.real(*x.shape[:2], *t.shape[1:-1]), x, t, *rest, [True, True])
        yield s(s.real(*x.shape[:2], *t.shape[1:-1]), x, t, *rest, [False, True])
        yield s(s.real(*x.shape[:2], *t.shape[1:-1]), x, t, *rest, [True, False])


class grid_sampler_2d(GridSampler):
    """Values of an image between its elements, at the points of a grid."""

    dims = 2
    schema = ("grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode,"
              " int padding_mode, bool align_corners) -> Tensor")
    autocast = "float32"
    core = True
    grad = {"input, grid": ("grid_sampler_2d_backward(grad, input, grid, interpolation_mode,"
                            " padding_mode, align_corners, list(grad_input_mask))"
                            " if grad is not None else (None, None)")}
    push = ("grid_sampler_push(grid_sampler_2d, input_p, input_t, grid_p, grid_t,"
            " interpolation_mode, padding_mode, align_corners)")


class grid_sampler_2d_backward(GridSamplerBackward):
    """Gradients of `grid_sampler_2d` for image and grid, as the mask asks."""

    of = grid_sampler_2d
    schema = ("grid_sampler_2d_backward(Tensor grad_output, Tensor input, Tensor grid,"
              " int interpolation_mode, int padding_mode, bool align_corners,"
              " bool[2] output_mask) -> (Tensor, Tensor)")
    kept = "window"
    grad = {"grad_output, input, grid": (
        "grid_sampler_double_backward(grads, grad_output, input, grid, interpolation_mode,"
        " padding_mode, align_corners, grad_input_mask, grid_sampler_2d,"
        " grid_sampler_2d_backward)")}
    push = {"result0, result1": (
        "grid_sampler_backward_push(grid_sampler_2d_backward, grad_output_p, grad_output_t,"
        " input_p, input_t, grid_p, grid_t, interpolation_mode, padding_mode, align_corners,"
        " output_mask)")}


class grid_sampler_3d(GridSampler):
    """Values of a volume between its elements, at the points of a grid."""

    dims = 3
    schema = ("grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode,"
              " int padding_mode, bool align_corners) -> Tensor")
    autocast = "float32"
    kept = "window"
    grad = {"input, grid": ("grid_sampler_3d_backward(grad, input, grid, interpolation_mode,"
                            " padding_mode, align_corners, list(grad_input_mask))"
                            " if grad is not None else (None, None)")}
    push = ("grid_sampler_push(grid_sampler_3d, input_p, input_t, grid_p, grid_t,"
            " interpolation_mode, padding_mode, align_corners)")


class grid_sampler_3d_backward(GridSamplerBackward):
    """Gradients of `grid_sampler_3d` for image and grid, as the mask asks."""

    of = grid_sampler_3d
    schema = ("grid_sampler_3d_backward(Tensor grad_output, Tensor input, Tensor grid,"
              " int interpolation_mode, int padding_mode, bool align_corners,"
              " bool[2] output_mask) -> (Tensor, Tensor)")
    kept = "window"
    grad = {"grad_output, input, grid": (
        "grid_sampler_double_backward(grads, grad_output, input, grid, interpolation_mode,"
        " padding_mode, align_corners, grad_input_mask, grid_sampler_3d,"
        " grid_sampler_3d_backward)")}
    push = {"result0, result1": (
        "grid_sampler_backward_push(grid_sampler_3d_backward, grad_output_p, grad_output_t,"
        " input_p, input_t, grid_p, grid_t, interpolation_mode, padding_mode, align_corners,"
        " output_mask)")}


class grid_sampler(Free):
    """Values of an image or a volume between its elements, at the points of a grid."""

    schema = ("grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode,"
              " bool align_corners) -> Tensor")
    autocast = "float32"

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


class _grid_sampler_2d_cpu_fallback(Synonym):
    """The same as `grid_sampler_2d`."""

    schema = ("_grid_sampler_2d_cpu_fallback(Tensor input, Tensor grid, int interpolation_mode,"
              " int padding_mode, bool align_corners) -> Tensor")
    autocast = "float32"
    method = False
    same_as = "grid_sampler_2d"
    samples = lambda s: [s(s.real(1, 2, 3, 4), s.real(1, 2, 2, 2, low=-1, high=1), 0, 0, False)]


class _grid_sampler_2d_cpu_fallback_backward(Composite):
    """The same as `grid_sampler_2d_backward` with both gradients."""

    schema = ("_grid_sampler_2d_cpu_fallback_backward(Tensor grad_output, Tensor input,"
              " Tensor grid, int interpolation_mode, int padding_mode, bool align_corners)"
              " -> (Tensor, Tensor)")
    same_dtype = ("grad_output", "input", "grid")
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
        return part_batch(n, ops.affine_grid_generator(join_batch(n, theta, True), sizes, align_corners))

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
