"""Pooling over two and three dims: maximum, average, adaptive, fractional.

Operators on two and on three dims differ only in their names and in how many dims they cover, so
each pair has a base class with `dims` left open.  Windows and kernels are in `pool_kernels.py`,
formulas in `formulas/pool.py`.  Read next: `unpool.py`.
"""

from __future__ import annotations

import functools

from ..array.dims import numel
from ..core.op import Composite, Op
from ..errors import ShapeError
from ..table.packets import ops
from .batching import fold, fold_planes, of_overload
from .kinds import Free
from .pointwise import refuse
from .pool_kernels import (
    adaptive_pool_shape,
    adaptive_pool_windows,
    avg_pool,
    avg_pool_backward,
    avg_pool_windows,
    check_fractional,
    check_gradient,
    check_planes,
    fractional_max_pool,
    max_pool,
    max_pool_backward,
    pool_windows,
    pooled_shape,
)


def distinct(s, *shape):
    """Values that differ by so much that no derivative check moves a maximum."""
    values = 0.05 * s.random.permutation(numel(shape)).reshape(shape)
    return s.values(values - 0.025 * numel(shape) + 0.01)


def planes(s, dims: int, *lead: int):
    """Distinct values in planes or volumes, for samples."""
    return distinct(s, *lead, *_sizes(dims))


def _sizes(dims: int) -> tuple:
    return (3, 4, 5)[-dims:]


class Pooling(Op):
    """An operator on channels of planes (`dims = 2`) or volumes (`dims = 3`)."""

    dims: int
    memory_format = "channels"
    cost = "reduce"
    method = function = False
    batch = fold_planes

    @classmethod
    @functools.cache
    def label(cls) -> str:
        """The name that messages give."""
        return cls.base_name.lstrip("_").replace("_with_indices", "")


class PoolingBackward(Pooling):
    """The gradient of a pooling operator, for the tensor `self` that it pooled."""

    same_dtype = ("grad_output", "self")
    linear = ("grad_output",)
    constant = ("self",)

    def shape(grad_output, self, *rest):
        return tuple(self.shape)


# ---------------------------------------------------------------------------------------------
# Maxima over sliding windows


class MaxPoolWithIndices(Pooling):
    """Maxima over sliding windows, and their flat places."""

    diff_outputs = (True, False)
    dtype = "[self.dtype, dt.int64]"

    @classmethod
    def run(cls, xp, self, *args):
        name = cls.label()
        windows = pool_windows(name, self.shape, cls.dims, *args)
        refuse(name, self, "b")
        return max_pool(xp, self, windows)

    @classmethod
    def shape(cls, self, *args):
        windows = pool_windows(cls.label(), self.shape, cls.dims, *args)
        return [pooled_shape(self.shape, windows)] * 2

    @classmethod
    def samples(cls, s):
        return _max_pool_samples(s, cls.dims)


def _max_pool_samples(s, dims: int):
    yield s(planes(s, dims, 2, 3), 2)
    yield s(planes(s, dims, 2), 2, 1, 1)
    yield s(planes(s, dims, 1, 2), 2, 2, 1, 1, True)
    yield s(planes(s, dims, 1, 2), [2, 1, 2][:dims], [1, 2, 2][:dims], 0, 2 if dims == 2 else 1)
    yield s(planes(s, dims, 0, 2), 2)
    yield s(distinct(s, *_sizes(dims), 2).movedim(-1, 0), 2)


class max_pool2d_with_indices(MaxPoolWithIndices):
    """Maxima over sliding windows of the last two dims, and their flat places there."""

    dims = 2
    schema = ("max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[],"
              " int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)")
    native = "max_pool2d"
    narrow = "offsets"
    lower = "window.max_pool(2)"
    core = True
    grad = {"self": ("max_pool2d_with_indices_backward(grad, self, kernel_size, stride, padding,"
                     " dilation, ceil_mode, result1)")}
    push = {"result0": "max_pool_double_backward(self_t, result1, 2)"}


class max_pool3d_with_indices(MaxPoolWithIndices):
    """Maxima over sliding windows of the last three dims, and their flat places there."""

    dims = 3
    schema = ("max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[],"
              " int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)")
    lower = "window.max_pool(3)"
    core = True
    grad = {"self": ("max_pool3d_with_indices_backward(grad, self, kernel_size, stride, padding,"
                     " dilation, ceil_mode, result1)")}
    push = {"result0": "max_pool_double_backward(self_t, result1, 3)"}


class MaxPoolWithIndicesBackward(PoolingBackward):
    """Gradients of maxima, added up at the places they came from."""

    nondiff = ("indices",)

    @classmethod
    def run(cls, xp, grad_output, self, *args):
        *args, indices = args
        check_gradient(cls.label(), grad_output, indices.shape)
        windows = pool_windows(cls.label(), self.shape, cls.dims, *args)
        check_gradient(cls.label(), grad_output, pooled_shape(self.shape, windows))
        return max_pool_backward(xp, grad_output, self.shape, indices, cls.dims)

    @classmethod
    def samples(cls, s):
        pool = getattr(ops, f"max_pool{cls.dims}d_with_indices")
        for lead, args in (((2, 3), [2, 2, 0, 1, False]), ((2,), [2, 1, 1, 1, False]),
                           ((0, 2), [2, 2, 0, 1, False]), ((1, 2), [2, 2, 1, 1, True])):
            x = planes(s, cls.dims, *lead)
            y, places = pool(x, *args)
            yield s(s.real(*y.shape), x, *args, places)


class max_pool2d_with_indices_backward(MaxPoolWithIndicesBackward):
    """Gradients of maxima over two dims, added up at the places they came from."""

    dims = 2
    schema = ("max_pool2d_with_indices_backward(Tensor grad_output, Tensor self,"
              " int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation,"
              " bool ceil_mode, Tensor indices) -> Tensor")
    native = "max_pool2d_backward"
    bad_index = RuntimeError
    lower = "window.max_pool_backward(2)"
    core = True
    grad = {"grad_output": "max_pool_double_backward(grad, indices, 2)"}


class max_pool3d_with_indices_backward(MaxPoolWithIndicesBackward):
    """Gradients of maxima over three dims, added up at the places they came from."""

    dims = 3
    schema = ("max_pool3d_with_indices_backward(Tensor grad_output, Tensor self,"
              " int[3] kernel_size, int[3] stride, int[3] padding, int[3] dilation,"
              " bool ceil_mode, Tensor indices) -> Tensor")
    bad_index = RuntimeError
    lower = "window.max_pool_backward(3)"
    kept = "window"
    grad = {"grad_output": "max_pool_double_backward(grad, indices, 3)"}


class max_pool2d(Free):
    """Maxima over sliding windows of the last two dims."""

    schema = ("max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0,"
              " int[2] dilation=1, bool ceil_mode=False) -> Tensor")
    samples = max_pool2d_with_indices.samples

    def compose(*args):
        return ops.max_pool2d_with_indices(*args)[0]


class max_pool3d(Free):
    """Maxima over sliding windows of the last three dims."""

    schema = ("max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0,"
              " int[3] dilation=1, bool ceil_mode=False) -> Tensor")
    autocast = "float32"
    samples = max_pool3d_with_indices.samples

    def compose(*args):
        return ops.max_pool3d_with_indices(*args)[0]


# ---------------------------------------------------------------------------------------------
# Means over sliding windows


class AvgPool(Pooling):
    """Means over sliding windows."""

    linear = ("self",)

    @classmethod
    def run(cls, xp, self, kernel_size, stride, padding, ceil_mode, count_include_pad,
            divisor_override):
        windows = avg_pool_windows(cls.label(), self.shape, cls.dims, kernel_size, stride, padding,
                                   ceil_mode)
        refuse(cls.label(), self, "b")
        return avg_pool(xp, self, windows, count_include_pad, divisor_override)

    @classmethod
    def shape(cls, self, kernel_size, stride, padding, ceil_mode, count_include_pad,
              divisor_override):
        if divisor_override == 0:
            raise ShapeError(f"{cls.label()}: divisor must be not zero")
        windows = avg_pool_windows(cls.label(), self.shape, cls.dims, kernel_size, stride, padding,
                                   ceil_mode)
        return pooled_shape(self.shape, windows)

    @classmethod
    def samples(cls, s):
        dims = cls.dims
        yield s(planes(s, dims, 2, 3), 2)
        yield s(planes(s, dims, 2), 2, 1, 1)
        yield s(planes(s, dims, 1, 2), 2, 2, 1, True)
        yield s(planes(s, dims, 1, 2), 3, 2, 1, True, False)
        yield s(planes(s, dims, 1, 2), [2, 3, 1][:dims], [1, 2, 2][:dims], 0, False, True, 3)
        yield s(planes(s, dims, 0, 2), 2)
        yield s(distinct(s, *_sizes(dims), 2).movedim(-1, 0), 2)
        yield s(s.real(1, *(12,) * dims), 12)


class avg_pool2d(AvgPool):
    """Means over sliding windows of the last two dims."""

    dims = 2
    schema = ("avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0,"
              " bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None)"
              " -> Tensor")
    lower = "window.means(2, False)"
    core = True
    grad = {"self": ("avg_pool2d_backward(grad, self, kernel_size, stride, padding, ceil_mode,"
                     " count_include_pad, divisor_override)")}


class avg_pool3d(AvgPool):
    """Means over sliding windows of the last three dims."""

    dims = 3
    schema = ("avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0,"
              " bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None)"
              " -> Tensor")
    lower = "window.means(3, False)"
    autocast = "float32"
    core = True
    grad = {"self": ("avg_pool3d_backward(grad, self, kernel_size, stride, padding, ceil_mode,"
                     " count_include_pad, divisor_override)")}


class AvgPoolBackward(PoolingBackward):
    """Gradients of means, spread over their windows."""

    @classmethod
    def run(cls, xp, grad_output, self, kernel_size, stride, padding, ceil_mode,
            count_include_pad, divisor_override):
        windows = avg_pool_windows(cls.label(), self.shape, cls.dims, kernel_size, stride, padding,
                                   ceil_mode)
        check_gradient(cls.label(), grad_output, pooled_shape(self.shape, windows))
        return avg_pool_backward(xp, grad_output, windows, count_include_pad, divisor_override)

    @classmethod
    def samples(cls, s):
        pool = getattr(ops, f"avg_pool{cls.dims}d")
        for lead, args in (((2, 3), [2, [], 0, False, True, None]),
                           ((2,), [2, 1, 1, False, True, None]),
                           ((1, 2), [3, 2, 1, True, False, None]),
                           ((1, 2), [2, 1, 0, False, True, 3]),
                           ((0, 2), [2, 1, 0, False, True, None])):
            x = planes(s, cls.dims, *lead)
            yield s(s.real(*pool(x, *args).shape), x, *args)


class avg_pool2d_backward(AvgPoolBackward):
    """Gradients of means over two dims, spread over their windows."""

    dims = 2
    schema = ("avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size,"
              " int[2] stride, int[2] padding, bool ceil_mode, bool count_include_pad,"
              " int? divisor_override) -> Tensor")
    lower = "window.means(2, True)"
    core = True
    grad = {"grad_output": ("avg_pool2d(grad, kernel_size, stride, padding, ceil_mode,"
                            " count_include_pad, divisor_override)")}


class avg_pool3d_backward(AvgPoolBackward):
    """Gradients of means over three dims, spread over their windows."""

    dims = 3
    schema = ("avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size,"
              " int[3] stride, int[3] padding, bool ceil_mode, bool count_include_pad,"
              " int? divisor_override) -> Tensor")
    lower = "window.means(3, True)"
    kept = "window"
    memory_format = "rows"
    grad = {"grad_output": ("avg_pool3d(grad, kernel_size, stride, padding, ceil_mode,"
                            " count_include_pad, divisor_override)")}


# ---------------------------------------------------------------------------------------------
# Adaptive pooling: as many windows as the result has elements


def _adaptive_samples(s, dims: int):
    yield s(planes(s, dims, 2, 3), (2, 3, 5)[:dims])
    yield s(planes(s, dims, 2), 2)
    yield s(planes(s, dims, 1, 2), 7)  # more windows than elements
    yield s(planes(s, dims, 0, 2), 2)
    yield s(distinct(s, *_sizes(dims), 2).movedim(-1, 0), _sizes(dims))


def _adaptive_gradient_shapes(dims: int) -> tuple:
    """Leading dims of the input and trailing dims of the result, for samples of gradients."""
    return ((2, 3), (2, 3, 5)[:dims]), ((2,), (2,) * dims), ((0, 2), _sizes(dims))


class AdaptiveAvgPoolKernel(Pooling):
    """Means over as many windows of the last dims as the result has elements."""

    linear = ("self",)
    function = True

    @classmethod
    def run(cls, xp, self, output_size):
        windows = adaptive_pool_windows(cls.label(), self.shape, cls.dims, output_size)
        refuse(cls.label(), self, "biu")
        return avg_pool(xp, self, windows)

    @classmethod
    def shape(cls, self, output_size):
        return adaptive_pool_shape(cls.label(), self.shape, cls.dims, output_size)

    @classmethod
    def samples(cls, s):
        return _adaptive_samples(s, cls.dims)


class _adaptive_avg_pool2d(AdaptiveAvgPoolKernel):
    """Means over as many windows of the last two dims as the result has elements."""

    dims = 2
    schema = "_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor"
    lower = "window.adaptive_means(2, False)"
    core = True
    grad = {"self": "_adaptive_avg_pool2d_backward(grad, self)"}


class _adaptive_avg_pool3d(AdaptiveAvgPoolKernel):
    """Means over as many windows of the last three dims as the result has elements."""

    dims = 3
    schema = "_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor"
    lower = "window.adaptive_means(3, False)"
    core = True
    grad = {"self": "_adaptive_avg_pool3d_backward(grad, self)"}


class AdaptiveAvgPoolBackward(PoolingBackward):
    """Gradients of adaptive means, spread over their windows."""

    @classmethod
    def run(cls, xp, grad_output, self):
        sizes = grad_output.shape[-cls.dims:]
        windows = adaptive_pool_windows(cls.label(), self.shape, cls.dims, sizes)
        check_gradient(cls.label(), grad_output, pooled_shape(self.shape, windows))
        return avg_pool_backward(xp, grad_output, windows)

    @classmethod
    def samples(cls, s):
        for lead, out in _adaptive_gradient_shapes(cls.dims):
            yield s(s.real(*lead, *out), planes(s, cls.dims, *lead))


class _adaptive_avg_pool2d_backward(AdaptiveAvgPoolBackward):
    """Gradients of adaptive means over two dims, spread over their windows."""

    dims = 2
    schema = "_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor"
    lower = "window.adaptive_means(2, True)"
    core = True
    grad = {"grad_output": "_adaptive_avg_pool2d(grad, grad_output.shape[-2:])"}


class _adaptive_avg_pool3d_backward(AdaptiveAvgPoolBackward):
    """Gradients of adaptive means over three dims, spread over their windows."""

    dims = 3
    schema = "_adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> Tensor"
    lower = "window.adaptive_means(3, True)"
    kept = "window"
    memory_format = "rows"
    grad = {"grad_output": "_adaptive_avg_pool3d(grad, grad_output.shape[-3:])"}


class AdaptiveAvgPool(Composite):
    """Adaptive means; a single window is an ordinary mean."""

    dims: int
    method = function = False

    @classmethod
    def compose(cls, self, output_size):
        name, dims = cls.base_name, cls.dims
        if len(output_size) != dims:
            raise ShapeError(f"{name}: output_size must be {dims}, got {len(output_size)} sizes")
        check_planes(name, self.shape, dims)
        if list(output_size) == [1] * dims:
            return self.mean(list(range(-1, -dims - 1, -1)), True)
        return getattr(ops, f"_{name}")(self, output_size)

    @classmethod
    def samples(cls, s):
        yield from _adaptive_samples(s, cls.dims)
        yield s(planes(s, cls.dims, 2, 3), 1)


class adaptive_avg_pool2d(AdaptiveAvgPool):
    """Means over as many windows of the last two dims as the result has elements."""

    dims = 2
    schema = "adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor"


class adaptive_avg_pool3d(AdaptiveAvgPool):
    """Means over as many windows of the last three dims as the result has elements."""

    dims = 3
    schema = "adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor"
    autocast = "float32"


class AdaptiveMaxPool(Pooling):
    """Maxima over as many windows as the result has elements, and their flat places."""

    diff_outputs = (True, False)
    dtype = "[self.dtype, dt.int64]"

    @classmethod
    def run(cls, xp, self, output_size):
        windows = adaptive_pool_windows(cls.label(), self.shape, cls.dims, output_size)
        refuse(cls.label(), self, "biu")
        return max_pool(xp, self, windows)

    @classmethod
    def decomp(cls, self, output_size):
        sizes = tuple(self.shape)[-cls.dims:]
        if self.ndim < cls.dims or any(o < 1 or n % o for n, o in zip(sizes, output_size)):
            return NotImplemented  # windows of several sizes
        window = [n // o for n, o in zip(sizes, output_size)]
        return getattr(ops, f"max_pool{cls.dims}d_with_indices")(self, window, window)

    @classmethod
    def shape(cls, self, output_size):
        return [adaptive_pool_shape(cls.label(), self.shape, cls.dims, output_size)] * 2

    @classmethod
    def samples(cls, s):
        return _adaptive_samples(s, cls.dims)


class adaptive_max_pool2d(AdaptiveMaxPool):
    """Maxima over as many windows of two dims as the result has elements, and their places."""

    dims = 2
    schema = "adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)"
    kept = "window"
    grad = {"self": "adaptive_max_pool2d_backward(grad, self, result1)"}
    push = {"result0": "max_pool_double_backward(self_t, result1, 2)"}


class adaptive_max_pool3d(AdaptiveMaxPool):
    """Maxima over as many windows of three dims as the result has elements, and their places."""

    dims = 3
    schema = "adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)"
    autocast = "float32"
    kept = "window"
    grad = {"self": "adaptive_max_pool3d_backward(grad, self, result1)"}
    push = {"result0": "max_pool_double_backward(self_t, result1, 3)"}


class AdaptiveMaxPoolBackward(PoolingBackward):
    """Gradients of adaptive maxima, added up at the places they came from."""

    nondiff = ("indices",)

    @classmethod
    def run(cls, xp, grad_output, self, indices):
        check_gradient(cls.label(), grad_output, indices.shape)
        check_planes(cls.label(), self.shape, cls.dims)
        return max_pool_backward(xp, grad_output, self.shape, indices, cls.dims)

    @classmethod
    def samples(cls, s):
        for lead, out in _adaptive_gradient_shapes(cls.dims):
            x = planes(s, cls.dims, *lead)
            y, places = getattr(ops, f"adaptive_max_pool{cls.dims}d")(x, out)
            yield s(s.real(*y.shape), x, places)


class adaptive_max_pool2d_backward(AdaptiveMaxPoolBackward):
    """Gradients of adaptive maxima over two dims, added up at the places they came from."""

    dims = 2
    schema = ("adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices)"
              " -> Tensor")
    kept = "window"
    grad = {"grad_output": "max_pool_double_backward(grad, indices, 2)"}


class adaptive_max_pool3d_backward(AdaptiveMaxPoolBackward):
    """Gradients of adaptive maxima over three dims, added up at the places they came from."""

    dims = 3
    schema = ("adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, Tensor indices)"
              " -> Tensor")
    kept = "window"
    memory_format = "rows"
    grad = {"grad_output": "max_pool_double_backward(grad, indices, 3)"}


# ---------------------------------------------------------------------------------------------
# Fractional pooling: windows that begin at pseudo-random places


class FractionalMaxPool(Pooling):
    """Maxima over windows that begin at pseudo-random places, and their flat places.

    `random_samples` holds a number in [0, 1) for each image, channel and dim.
    """

    memory_format = "rows"
    diff_outputs = (True, False)
    dtype = "[self.dtype, dt.int64]"

    @of_overload
    def batch(ov, n, batched, *flat):
        return fold(ov, (ov.op.dims + 1, 2), n, batched, flat)

    @classmethod
    def run(cls, xp, self, kernel_size, output_size, random_samples):
        check_fractional(cls.label(), self, kernel_size, output_size, random_samples)
        return fractional_max_pool(xp, self, kernel_size, output_size, random_samples)

    @classmethod
    def shape(cls, self, kernel_size, output_size, random_samples):
        check_fractional(cls.label(), self, kernel_size, output_size, random_samples)
        return [(*self.shape[:-cls.dims], *output_size)] * 2

    @classmethod
    def samples(cls, s):
        dims, sizes = cls.dims, (7, 6, 5)[:cls.dims]

        def draws(n):
            return s.real(n, 2, dims, low=0.01, high=0.99)

        yield s(distinct(s, 3, 2, *sizes), 2, (3, 4, 2)[:dims], draws(3))
        yield s(distinct(s, 2, *sizes), (2, 3, 1)[:dims], 3, draws(1))
        yield s(s.real(0, 2, *sizes), 2, 3, draws(0))


class fractional_max_pool2d(FractionalMaxPool):
    """Maxima over windows that begin at pseudo-random places of two dims, and their flat places."""

    dims = 2
    schema = ("fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size,"
              " Tensor random_samples) -> (Tensor, Tensor)")
    autocast = "float32"
    kept = "window"
    grad = {"self": "fractional_max_pool2d_backward(grad, self, kernel_size, output_size, result1)"}
    push = {"result0": "max_pool_double_backward(self_t, result1, 2)"}


class fractional_max_pool3d(FractionalMaxPool):
    """Maxima over windows that begin at pseudo-random places of three dims, and their places."""

    dims = 3
    schema = ("fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size,"
              " Tensor random_samples) -> (Tensor, Tensor)")
    autocast = "float32"
    kept = "window"
    grad = {"self": "fractional_max_pool3d_backward(grad, self, kernel_size, output_size, result1)"}
    push = {"result0": "max_pool_double_backward(self_t, result1, 3)"}


class FractionalMaxPoolBackward(PoolingBackward):
    """Gradients of fractional maxima, added up at the places they came from."""

    memory_format = "rows"
    nondiff = ("indices",)

    @classmethod
    def run(cls, xp, grad_output, self, kernel_size, output_size, indices):
        check_gradient(cls.label(), grad_output, (*self.shape[:-cls.dims], *output_size))
        return max_pool_backward(xp, grad_output, self.shape, indices, cls.dims)

    @classmethod
    def samples(cls, s):
        for lead in ((2, 2), (2,)):
            x, y = planes(s, cls.dims, *lead), s.real(*lead, *(2,) * cls.dims)
            yield s(y, x, 2, 2, s.int(*y.shape, high=numel(_sizes(cls.dims))))


class fractional_max_pool2d_backward(FractionalMaxPoolBackward):
    """Gradients of fractional maxima over two dims, added up at the places they came from."""

    dims = 2
    schema = ("fractional_max_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size,"
              " int[2] output_size, Tensor indices) -> Tensor")
    kept = "window"
    grad = {"grad_output": "max_pool_double_backward(grad, indices, 2)"}


class fractional_max_pool3d_backward(FractionalMaxPoolBackward):
    """Gradients of fractional maxima over three dims, added up at the places they came from."""

    dims = 3
    schema = ("fractional_max_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size,"
              " int[3] output_size, Tensor indices) -> Tensor")
    kept = "window"
    grad = {"grad_output": "max_pool_double_backward(grad, indices, 3)"}
