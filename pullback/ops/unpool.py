"""Pooling over one dim, and unpooling.

Read next: `pool.py`.
"""

from __future__ import annotations

from ..array import dtype as dt
from ..array.dims import numel
from ..core.op import Op
from ..errors import DTypeError, ShapeError
from ..table.packets import ops
from .batching import fold_planes
from .kinds import Free
from .pool import distinct
from .pool_kernels import (
    check_gradient,
    check_planes,
    flat_planes,
    max_pool,
    max_pool_backward,
    pool_windows,
    pooled_shape,
)

# ---------------------------------------------------------------------------------------------
# One dim: two dims, one of them of size one


def _one(name: str, what: str, value: list[int]) -> list[int]:
    if len(value) != 1:
        raise ShapeError(f"{name}: '{what}' should contain one int, got {list(value)}")
    return list(value)


def _check_lines(name: str, self) -> None:
    """Refuse what is not lines of channels; PyTorch's 2-d operators would misread it."""
    if self.ndim not in (2, 3):
        raise ShapeError(f"{name}() Expected 2D or 3D (batch mode) tensor with optional 0 dim "
                         f"batch size for input, but got {self.ndim}D")


class max_pool1d_with_indices(Free):
    """Maxima over sliding windows of the last dim, and their places."""

    schema = ("max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[],"
              " int[1] padding=[0], int[1] dilation=[1], bool ceil_mode=False) -> (Tensor, Tensor)")

    def compose(self, kernel_size, stride, padding, dilation, ceil_mode):
        _check_lines("max_pool1d", self)
        stride = stride or kernel_size
        args = [_one("max_pool1d", what, v) for what, v in (
            ("kernel_size", kernel_size), ("stride", stride), ("padding", padding),
            ("dilation", dilation))]
        args = [[one, v[0]] for one, v in zip((1, 1, 0, 1), args)]
        out, places = ops.max_pool2d_with_indices(self.unsqueeze(-2), *args, ceil_mode)
        return out.squeeze(-2), places.squeeze(-2)

    samples = lambda s: [s(distinct(s, 2, 3, 7), 2), s(distinct(s, 3, 7), 3, 2, 1, 2, True)]


class max_pool1d(Free):
    """Maxima over sliding windows of the last dim."""

    schema = ("max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0],"
              " int[1] dilation=[1], bool ceil_mode=False) -> Tensor")

    def compose(self, kernel_size, stride, padding, dilation, ceil_mode):
        return ops.max_pool1d_with_indices(self, kernel_size, stride, padding, dilation,
                                           ceil_mode)[0]

    samples = max_pool1d_with_indices.samples


class avg_pool1d(Free):
    """Means over sliding windows of the last dim."""

    schema = ("avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0],"
              " bool ceil_mode=False, bool count_include_pad=True) -> Tensor")
    core = "apart"

    def compose(self, kernel_size, stride, padding, ceil_mode, count_include_pad):
        _check_lines("avg_pool1d", self)
        stride = stride or kernel_size
        args = [_one("avg_pool1d", what, v) for what, v in (
            ("kernel_size", kernel_size), ("stride", stride), ("padding", padding))]
        args = [[one, v[0]] for one, v in zip((1, 1, 0), args)]
        return ops.avg_pool2d(self.unsqueeze(-2), *args, ceil_mode, count_include_pad).squeeze(-2)

    samples = lambda s: [s(distinct(s, 2, 3, 7), 2), s(s.real(3, 7), 3, 2, 1, True, False)]


class adaptive_avg_pool1d(Free):
    """Means over as many windows of the last dim as the result has elements."""

    schema = "adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor"
    core = "apart"

    def compose(self, output_size):
        _check_lines("adaptive_avg_pool1d", self)
        size = [1, *_one("adaptive_avg_pool1d", "output_size", output_size)]
        return ops.adaptive_avg_pool2d(self.unsqueeze(-2), size).squeeze(-2)

    samples = lambda s: [s(distinct(s, 2, 3, 7), 3), s(distinct(s, 3, 7), 7)]


class adaptive_max_pool1d(Free):
    """Maxima over as many windows of the last dim as the result has elements, and their places."""

    schema = "adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)"

    def compose(self, output_size):
        _check_lines("adaptive_max_pool1d", self)
        size = [1, *_one("adaptive_max_pool1d", "output_size", output_size)]
        out, places = ops.adaptive_max_pool2d(self.unsqueeze(-2), size)
        return out.squeeze(-2), places.squeeze(-2)

    samples = adaptive_avg_pool1d.samples


class max_pool2d_backward(Op):
    """Gradients of maxima whose places were not kept: they are found again."""

    schema = ("max_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size,"
              " int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False)"
              " -> Tensor")
    linear = ("grad_output",)
    constant = ("self",)
    grad = {"grad_output": (
        "max_pool_double_backward(grad, max_pool2d_with_indices(self, kernel_size, stride,"
        " padding, dilation, ceil_mode)[1], 2)")}
    cost = "reduce"
    method = function = False
    dims = 2
    batch = fold_planes

    def run(xp, grad_output, self, kernel_size, stride, padding, dilation, ceil_mode):
        windows = pool_windows("max_pool2d_backward", self.shape, 2, kernel_size, stride, padding,
                               dilation, ceil_mode)
        check_gradient("max_pool2d_backward", grad_output, pooled_shape(self.shape, windows))
        _, places = max_pool(xp, self, windows)
        return max_pool_backward(xp, grad_output, self.shape, places, 2)

    def shape(grad_output, self, *rest):
        return tuple(self.shape)

    def decomp(grad_output, self, *rest):
        places = ops.max_pool2d_with_indices(self, *rest)[1]
        return ops.max_pool2d_with_indices_backward(grad_output, self, *rest, places)

    def samples(s):
        yield s(s.real(2, 3, 2, 2), distinct(s, 2, 3, 4, 5), 2)
        yield s(s.real(2, 5, 6), distinct(s, 2, 4, 5), 2, 1, 1)


# ---------------------------------------------------------------------------------------------
# Unpooling


def _check_unpool(name: str, self, indices, output_size, rank: int) -> None:
    if indices.dtype != dt.int64 and indices.dtype != dt.int64.np:
        raise DTypeError(f"{name}: elements in indices should be type int64 but got: "
                         f"{indices.dtype}")
    if len(output_size) != rank:
        raise ShapeError(f"{name}: There should be exactly {rank} elements in output_size, but got "
                         f"{len(output_size)}")
    if tuple(self.shape) != tuple(indices.shape):
        raise ShapeError(f"{name}: Expected shape of indices to be same as that of the input "
                         f"tensor ({list(self.shape)}) but got indices tensor with shape: "
                         f"{list(indices.shape)}")
    check_planes(name, self.shape, rank)


def _unpool(xp, name: str, self, indices, output_size):
    """Zeros with the elements of `self` at flat places of the last dims."""
    rank, size = len(output_size), numel(output_size)
    if self.size and (int(indices.min()) < 0 or int(indices.max()) >= size):
        raise ShapeError(f"{name}: Found an invalid max index (output volumes are of size "
                         f"{list(output_size)})")
    shape = (*self.shape[:-rank], *output_size)
    out = xp.zeros(numel(shape), self.dtype)
    out[flat_planes(xp, indices, rank, size).reshape(-1)] = self.reshape(-1)
    return out.reshape(shape)


def _unpool_by_scatter(self, indices, output_size):
    rank = len(output_size)
    lead = self.shape[:-rank]
    flat = (*lead, numel(self.shape[-rank:]))
    out = self.new_zeros((*lead, numel(output_size)))
    out = ops.scatter(out, -1, indices.reshape(flat), self.reshape(flat))
    return out.reshape((*lead, *output_size))


class MaxUnpool(Op):
    """Zeros with elements at the places where maxima came from."""

    autocast = "float32"
    linear = ("self",)
    nondiff = ("indices",)
    cost = "reduce"
    method = function = False
    batch = fold_planes


class max_unpool2d(MaxUnpool):
    """Zeros with the elements of `self` at the places that `indices` gives in the last two dims."""

    schema = "max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor"
    grad = {"self": "max_pool_double_backward(grad, indices, 2)"}
    dims = 2
    decomp = _unpool_by_scatter

    def run(xp, self, indices, output_size):
        _check_unpool("max_unpool2d", self, indices, output_size, 2)
        return _unpool(xp, "max_unpool2d", self, indices, output_size)

    def shape(self, indices, output_size):
        _check_unpool("max_unpool2d", self, indices, output_size, 2)
        return (*self.shape[:-2], *output_size)

    def samples(s):
        for lead in ((2, 3), (2,), (0, 2)):
            y, places = ops.max_pool2d_with_indices(s.real(*lead, 4, 6), 2)
            yield s(s.real(*y.shape), places, (4, 6))
            yield s(s.real(*y.shape), places, (5, 6))


class max_unpool3d(MaxUnpool):
    """Zeros with the elements of `self` at the places that `indices` gives in the last dims."""

    schema = ("max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride,"
              " int[3] padding) -> Tensor")
    grad = {"self": "max_pool_double_backward(grad, indices, 3)"}
    dims = 3

    def run(xp, self, indices, output_size, stride, padding):
        _check_unpool("max_unpool3d", self, indices, output_size, 3)
        if len(stride) != 3 or min(stride) <= 0:
            raise ShapeError("max_unpool3d: strides should be three numbers greater than zero, but "
                             f"got stride: {list(stride)}")
        if len(padding) != 3:
            raise ShapeError("max_unpool3d: There should be exactly 3 elements in padding, but got "
                             f"{list(padding)}")
        return _unpool(xp, "max_unpool3d", self, indices, output_size)

    def shape(self, indices, output_size, stride, padding):
        _check_unpool("max_unpool3d", self, indices, output_size, 3)
        return (*self.shape[:-3], *output_size)

    def decomp(self, indices, output_size, stride, padding):
        return _unpool_by_scatter(self, indices, output_size)

    def samples(s):
        for lead in ((2, 3), (2,), (0, 2)):
            y, places = ops.max_pool3d_with_indices(s.real(*lead, 2, 4, 6), 2)
            yield s(s.real(*y.shape), places, (2, 4, 6), 2, 0)
