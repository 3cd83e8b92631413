"""Resizing of signals, images and volumes: to the nearest element, by interpolation, by filters.

Each way of resizing has an operator, its gradient, and a variant that takes scale factors; what
they share is in three base classes.  The kernels are in `resize_kernels.py`.
"""

from __future__ import annotations

from ..array.size import whole
from ..core.op import Composite, Op
from ..errors import ShapeError
from ..table.packets import ops
from .batching import join_batch, part_batch
from .pointwise import refuse
from .resize_kernels import resize, resize_backward, resized_by_gathers


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


class Resize(Op):
    """The last `dims` dims resized."""

    dims: int
    way: str  # nearest | exact | linear | cubic, or one of `resize_kernels.FILTERS`
    aligned = True  # is there an argument `align_corners`?
    exempt: tuple = (1,)  # ratios of sizes for which PyTorch does not heed the scale factors
    memory_format = "channels"
    linear = ("self",)
    cost = "cheap"
    method = function = False

    @classmethod
    def split(cls, rest, shape, output_size) -> tuple:
        """(align_corners, scales) of the arguments behind the sizes."""
        align, scales = (rest[0], rest[1:]) if cls.aligned else (False, rest)
        return align, [None if m in (n * f for f in cls.exempt) else s
                       for n, m, s in zip(shape[2:], output_size, scales)]

    @classmethod
    def run(cls, xp, self, output_size, *rest):
        _check_resize(cls.base_name, self.shape, cls.dims, output_size)
        refuse(cls.base_name, self, "b")
        return resize(xp, self, cls.way, output_size, *cls.split(rest, self.shape, output_size))

    @classmethod
    def shape(cls, self, output_size, *rest):
        _check_resize(cls.base_name, self.shape, cls.dims, output_size)
        return (*self.shape[:2], *output_size)

    @classmethod
    def decomp(cls, self, output_size, *rest):
        _check_resize(cls.base_name, self.shape, cls.dims, output_size)
        align, scales = cls.split(rest, self.shape, output_size)
        return resized_by_gathers(self, cls.way, output_size, align, scales)

    @classmethod
    def batch(cls, n, batched, self, *rest):
        return part_batch(n, getattr(ops, cls.base_name)(join_batch(n, self, True), *rest))

    @classmethod
    def samples(cls, s):
        dims, sizes = cls.dims, (3, 4, 5)[-cls.dims:]
        for align in ((False,), (True,)) if cls.aligned else ((),):
            yield s(s.real(2, 3, *sizes), (6, 7, 8)[:dims], *align)
            yield s(s.real(1, 2, *sizes), (2, 3, 9)[:dims], *align)
            yield s(s.real(1, 2, *sizes), (5, 5, 1)[:dims], *align, *(1.7, 0.6, 2)[:dims])
            yield s(s.real(0, 2, *sizes), (2, 3, 9)[:dims], *align)
            yield s(s.real(*sizes, 1, 2).movedim((-2, -1), (0, 1)), sizes, *align)
        yield s(s.real(1, 1, *(2,) * dims), (20,) * dims, *align)  # many taps per element


class ResizeBackward(Op):
    """Gradient of the resizing `of`: its transpose."""

    of: type[Resize]
    memory_format = "channels"
    linear = ("grad_output",)
    cost = "cheap"
    method = function = False

    @classmethod
    def run(cls, xp, grad_output, output_size, input_size, *rest):
        cls.shape(grad_output, output_size, input_size)
        align, scales = cls.of.split(rest, input_size, output_size)
        return resize_backward(xp, grad_output, cls.of.way, input_size, align, scales)

    @classmethod
    def shape(cls, grad_output, output_size, input_size, *rest):
        _check_resize(cls.base_name, tuple(input_size), cls.of.dims, output_size)
        expected = (*input_size[:2], *output_size)
        if tuple(grad_output.shape) != expected:
            raise ShapeError(f"{cls.base_name}: Expected grad_output to have the shape "
                             f"{list(expected)}, but got {list(grad_output.shape)}")
        return tuple(input_size)

    @classmethod
    def batch(cls, n, batched, grad_output, output_size, input_size, *rest):
        size = [n * input_size[0], *input_size[1:]]
        backward = getattr(ops, cls.base_name)
        return part_batch(n, backward(join_batch(n, grad_output, True), output_size, size, *rest))

    @classmethod
    def samples(cls, s):
        for case in cls.of.samples(s):
            x, size, *rest = case.args
            size = tuple(size)
            yield s(s.real(*x.shape[:2], *size), size, tuple(x.shape), *rest)


class ResizeByFactors(Composite):
    """The resizing `of` with a size or with scale factors."""

    of: type[Resize]
    method = function = False

    @classmethod
    def compose(cls, input, output_size, *rest):
        scales = rest[-1]
        size = output_size_of(input.shape, output_size, scales)
        resized = getattr(ops, cls.base_name)
        return resized(input, size, *rest[:-1], *(scales or [None] * cls.of.dims))

    @classmethod
    def samples(cls, s):
        dims, align = cls.of.dims, (False,) if cls.of.aligned else ()
        sizes = (3, 4, 5)[-dims:]
        yield s(s.real(1, 2, *sizes), (6, 7, 8)[:dims], *align, None)
        yield s(s.real(1, 2, *sizes), None, *align, [1.5] * dims)


# ---------------------------------------------------------------------------------------------
# The nearest element


class upsample_nearest1d(Resize):
    """The last dim resized by taking the nearest element."""

    way, dims = "nearest", 1
    aligned = False
    exempt = ()
    schema = "upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor"
    grad = {"self": "upsample_nearest1d_backward(grad, output_size, self.shape, scales)"}


class upsample_nearest1d_backward(ResizeBackward):
    """Gradient of `upsample_nearest1d`: its transpose."""

    of = upsample_nearest1d
    schema = ("upsample_nearest1d_backward(Tensor grad_output, SymInt[1] output_size,"
              " SymInt[3] input_size, float? scales=None) -> Tensor")
    lower = "window.nearest_backward(1)"
    kept = "window"
    grad = {"grad_output": "upsample_nearest1d(grad, output_size, scales)"}


class upsample_nearest1d_vec(ResizeByFactors):
    """The last dim resized by taking the nearest element, to a size or by factors."""

    of = upsample_nearest1d
    schema = ("upsample_nearest1d.vec(Tensor input, SymInt[]? output_size,"
              " float[]? scale_factors) -> Tensor")


class upsample_nearest2d(Resize):
    """The last two dims resized by taking the nearest element."""

    way, dims = "nearest", 2
    aligned = False
    exempt = (1, 2)
    schema = ("upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None,"
              " float? scales_w=None) -> Tensor")
    grad = {"self": ("upsample_nearest2d_backward(grad, output_size, self.shape, scales_h,"
                     " scales_w)")}


class upsample_nearest2d_backward(ResizeBackward):
    """Gradient of `upsample_nearest2d`: its transpose."""

    of = upsample_nearest2d
    schema = ("upsample_nearest2d_backward(Tensor grad_output, SymInt[2] output_size,"
              " SymInt[4] input_size, float? scales_h=None, float? scales_w=None) -> Tensor")
    lower = "window.nearest_backward(2)"
    kept = "window"
    grad = {"grad_output": "upsample_nearest2d(grad, output_size, scales_h, scales_w)"}


class upsample_nearest2d_vec(ResizeByFactors):
    """The last two dims resized by taking the nearest element, to a size or by factors."""

    of = upsample_nearest2d
    schema = ("upsample_nearest2d.vec(Tensor input, SymInt[]? output_size,"
              " float[]? scale_factors) -> Tensor")
    core = True


class upsample_nearest3d(Resize):
    """The last three dims resized by taking the nearest element."""

    way, dims = "nearest", 3
    aligned = False
    exempt = ()
    schema = ("upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None,"
              " float? scales_h=None, float? scales_w=None) -> Tensor")
    grad = {"self": ("upsample_nearest3d_backward(grad, output_size, self.shape, scales_d,"
                     " scales_h, scales_w)")}


class upsample_nearest3d_backward(ResizeBackward):
    """Gradient of `upsample_nearest3d`: its transpose."""

    of = upsample_nearest3d
    schema = ("upsample_nearest3d_backward(Tensor grad_output, SymInt[3] output_size,"
              " SymInt[5] input_size, float? scales_d=None, float? scales_h=None,"
              " float? scales_w=None) -> Tensor")
    lower = "window.nearest_backward(3)"
    kept = "window"
    grad = {"grad_output": "upsample_nearest3d(grad, output_size, scales_d, scales_h, scales_w)"}


class upsample_nearest3d_vec(ResizeByFactors):
    """The last three dims resized by taking the nearest element, to a size or by factors."""

    of = upsample_nearest3d
    schema = ("upsample_nearest3d.vec(Tensor input, SymInt[]? output_size,"
              " float[]? scale_factors) -> Tensor")


class _upsample_nearest_exact1d(Resize):
    """The last dim resized by taking the element at the pixel's centre."""

    way, dims = "exact", 1
    aligned = False
    exempt = ()
    schema = ("_upsample_nearest_exact1d(Tensor self, SymInt[1] output_size, float? scales=None)"
              " -> Tensor")
    grad = {"self": "_upsample_nearest_exact1d_backward(grad, output_size, self.shape, scales)"}


class _upsample_nearest_exact1d_backward(ResizeBackward):
    """Gradient of `_upsample_nearest_exact1d`: its transpose."""

    of = _upsample_nearest_exact1d
    schema = ("_upsample_nearest_exact1d_backward(Tensor grad_output, SymInt[1] output_size,"
              " SymInt[3] input_size, float? scales=None) -> Tensor")
    kept = "window"
    grad = {"grad_output": "_upsample_nearest_exact1d(grad, output_size, scales)"}


class _upsample_nearest_exact1d_vec(ResizeByFactors):
    """The last dim resized by taking the element at the pixel's centre, to a size or by factors."""

    of = _upsample_nearest_exact1d
    schema = ("_upsample_nearest_exact1d.vec(Tensor input, SymInt[]? output_size,"
              " float[]? scale_factors) -> Tensor")


class _upsample_nearest_exact2d(Resize):
    """The last two dims resized by taking the element at the pixel's centre."""

    way, dims = "exact", 2
    aligned = False
    exempt = ()
    schema = ("_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size,"
              " float? scales_h=None, float? scales_w=None) -> Tensor")
    grad = {"self": ("_upsample_nearest_exact2d_backward(grad, output_size, self.shape,"
                     " scales_h, scales_w)")}


class _upsample_nearest_exact2d_backward(ResizeBackward):
    """Gradient of `_upsample_nearest_exact2d`: its transpose."""

    of = _upsample_nearest_exact2d
    schema = ("_upsample_nearest_exact2d_backward(Tensor grad_output, SymInt[2] output_size,"
              " SymInt[4] input_size, float? scales_h=None, float? scales_w=None) -> Tensor")
    kept = "window"
    grad = {"grad_output": "_upsample_nearest_exact2d(grad, output_size, scales_h, scales_w)"}


class _upsample_nearest_exact2d_vec(ResizeByFactors):
    """The last two dims resized by taking the element at the pixel's centre, to a size or by factors."""

    of = _upsample_nearest_exact2d
    schema = ("_upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size,"
              " float[]? scale_factors) -> Tensor")


class _upsample_nearest_exact3d(Resize):
    """The last three dims resized by taking the element at the pixel's centre."""

    way, dims = "exact", 3
    aligned = False
    exempt = ()
    schema = ("_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size,"
              " float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor")
    grad = {"self": ("_upsample_nearest_exact3d_backward(grad, output_size, self.shape,"
                     " scales_d, scales_h, scales_w)")}


class _upsample_nearest_exact3d_backward(ResizeBackward):
    """Gradient of `_upsample_nearest_exact3d`: its transpose."""

    of = _upsample_nearest_exact3d
    schema = ("_upsample_nearest_exact3d_backward(Tensor grad_output, SymInt[3] output_size,"
              " SymInt[5] input_size, float? scales_d=None, float? scales_h=None,"
              " float? scales_w=None) -> Tensor")
    kept = "window"
    grad = {"grad_output": ("_upsample_nearest_exact3d(grad, output_size, scales_d, scales_h,"
                            " scales_w)")}


class _upsample_nearest_exact3d_vec(ResizeByFactors):
    """The last three dims resized by taking the element at the pixel's centre, to a size or by factors."""

    of = _upsample_nearest_exact3d
    schema = ("_upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size,"
              " float[]? scale_factors) -> Tensor")


# ---------------------------------------------------------------------------------------------
# Interpolation


class upsample_linear1d(Resize):
    """The last dim resized by linear interpolation."""

    way, dims = "linear", 1
    schema = ("upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners,"
              " float? scales=None) -> Tensor")
    grad = {"self": ("upsample_linear1d_backward(grad, output_size, self.shape, align_corners,"
                     " scales)")}


class upsample_linear1d_backward(ResizeBackward):
    """Gradient of `upsample_linear1d`: its transpose."""

    of = upsample_linear1d
    schema = ("upsample_linear1d_backward(Tensor grad_output, SymInt[1] output_size,"
              " SymInt[3] input_size, bool align_corners, float? scales=None) -> Tensor")
    kept = "window"
    grad = {"grad_output": "upsample_linear1d(grad, output_size, align_corners, scales)"}


class upsample_linear1d_vec(ResizeByFactors):
    """The last dim resized by linear interpolation, to a size or by factors."""

    of = upsample_linear1d
    schema = ("upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool align_corners,"
              " float[]? scale_factors) -> Tensor")


class upsample_bilinear2d(Resize):
    """The last two dims resized by linear interpolation."""

    way, dims = "linear", 2
    schema = ("upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners,"
              " float? scales_h=None, float? scales_w=None) -> Tensor")
    grad = {"self": ("upsample_bilinear2d_backward(grad, output_size, self.shape, align_corners,"
                     " scales_h, scales_w)")}


class upsample_bilinear2d_backward(ResizeBackward):
    """Gradient of `upsample_bilinear2d`: its transpose."""

    of = upsample_bilinear2d
    schema = ("upsample_bilinear2d_backward(Tensor grad_output, SymInt[2] output_size,"
              " SymInt[4] input_size, bool align_corners, float? scales_h=None,"
              " float? scales_w=None) -> Tensor")
    kept = "window"
    grad = {"grad_output": ("upsample_bilinear2d(grad, output_size, align_corners, scales_h,"
                            " scales_w)")}


class upsample_bilinear2d_vec(ResizeByFactors):
    """The last two dims resized by linear interpolation, to a size or by factors."""

    of = upsample_bilinear2d
    schema = ("upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners,"
              " float[]? scale_factors) -> Tensor")
    core = True


class upsample_trilinear3d(Resize):
    """The last three dims resized by linear interpolation."""

    way, dims = "linear", 3
    schema = ("upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners,"
              " float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor")
    grad = {"self": ("upsample_trilinear3d_backward(grad, output_size, self.shape,"
                     " align_corners, scales_d, scales_h, scales_w)")}


class upsample_trilinear3d_backward(ResizeBackward):
    """Gradient of `upsample_trilinear3d`: its transpose."""

    of = upsample_trilinear3d
    schema = ("upsample_trilinear3d_backward(Tensor grad_output, SymInt[3] output_size,"
              " SymInt[5] input_size, bool align_corners, float? scales_d=None,"
              " float? scales_h=None, float? scales_w=None) -> Tensor")
    kept = "window"
    grad = {"grad_output": ("upsample_trilinear3d(grad, output_size, align_corners, scales_d,"
                            " scales_h, scales_w)")}


class upsample_trilinear3d_vec(ResizeByFactors):
    """The last three dims resized by linear interpolation, to a size or by factors."""

    of = upsample_trilinear3d
    schema = ("upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners,"
              " float[]? scale_factors) -> Tensor")


class upsample_bicubic2d(Resize):
    """The last two dims resized by cubic convolution."""

    way, dims = "cubic", 2
    exempt = ()
    schema = ("upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners,"
              " float? scales_h=None, float? scales_w=None) -> Tensor")
    grad = {"self": ("upsample_bicubic2d_backward(grad, output_size, self.shape, align_corners,"
                     " scales_h, scales_w)")}


class upsample_bicubic2d_backward(ResizeBackward):
    """Gradient of `upsample_bicubic2d`: its transpose."""

    of = upsample_bicubic2d
    schema = ("upsample_bicubic2d_backward(Tensor grad_output, SymInt[2] output_size,"
              " SymInt[4] input_size, bool align_corners, float? scales_h=None,"
              " float? scales_w=None) -> Tensor")
    kept = "window"
    grad = {"grad_output": ("upsample_bicubic2d(grad, output_size, align_corners, scales_h,"
                            " scales_w)")}


class upsample_bicubic2d_vec(ResizeByFactors):
    """The last two dims resized by cubic convolution, to a size or by factors."""

    of = upsample_bicubic2d
    schema = ("upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners,"
              " float[]? scale_factors) -> Tensor")


# ---------------------------------------------------------------------------------------------
# Filters that do not alias: their taps depend on the sizes, so there is no decomposition


class _upsample_bilinear2d_aa(Resize):
    """The last two dims resized by a triangle filter that does not alias."""

    way, dims = "linear_aa", 2
    schema = ("_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners,"
              " float? scales_h=None, float? scales_w=None) -> Tensor")
    kept = "window"
    grad = {"self": ("_upsample_bilinear2d_aa_backward(grad, output_size, self.shape,"
                     " align_corners, scales_h, scales_w)")}
    decomp = None


class _upsample_bilinear2d_aa_backward(ResizeBackward):
    """Gradient of `_upsample_bilinear2d_aa`: its transpose."""

    of = _upsample_bilinear2d_aa
    schema = ("_upsample_bilinear2d_aa_backward(Tensor grad_output, SymInt[2] output_size,"
              " SymInt[4] input_size, bool align_corners, float? scales_h=None,"
              " float? scales_w=None) -> Tensor")
    kept = "window"
    grad = {"grad_output": ("_upsample_bilinear2d_aa(grad, output_size, align_corners, scales_h,"
                            " scales_w)")}


class _upsample_bilinear2d_aa_vec(ResizeByFactors):
    """The last two dims resized by a triangle filter that does not alias, to a size or by factors."""

    of = _upsample_bilinear2d_aa
    schema = ("_upsample_bilinear2d_aa.vec(Tensor input, SymInt[]? output_size,"
              " bool align_corners, float[]? scale_factors) -> Tensor")


class _upsample_bicubic2d_aa(Resize):
    """The last two dims resized by a cubic filter that does not alias."""

    way, dims = "cubic_aa", 2
    schema = ("_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners,"
              " float? scales_h=None, float? scales_w=None) -> Tensor")
    kept = "window"
    grad = {"self": ("_upsample_bicubic2d_aa_backward(grad, output_size, self.shape,"
                     " align_corners, scales_h, scales_w)")}
    decomp = None


class _upsample_bicubic2d_aa_backward(ResizeBackward):
    """Gradient of `_upsample_bicubic2d_aa`: its transpose."""

    of = _upsample_bicubic2d_aa
    schema = ("_upsample_bicubic2d_aa_backward(Tensor grad_output, SymInt[2] output_size,"
              " SymInt[4] input_size, bool align_corners, float? scales_h=None,"
              " float? scales_w=None) -> Tensor")
    kept = "window"
    grad = {"grad_output": ("_upsample_bicubic2d_aa(grad, output_size, align_corners, scales_h,"
                            " scales_w)")}


class _upsample_bicubic2d_aa_vec(ResizeByFactors):
    """The last two dims resized by a cubic filter that does not alias, to a size or by factors."""

    of = _upsample_bicubic2d_aa
    schema = ("_upsample_bicubic2d_aa.vec(Tensor input, SymInt[]? output_size,"
              " bool align_corners, float[]? scale_factors) -> Tensor")


class _upsample_lanczos2d_aa(Resize):
    """The last two dims resized by a Lanczos filter that does not alias."""

    way, dims = "lanczos_aa", 2
    schema = ("_upsample_lanczos2d_aa(Tensor self, SymInt[2] output_size, bool align_corners,"
              " float? scales_h=None, float? scales_w=None) -> Tensor")
    kept = "window"
    grad = {"self": ("_upsample_lanczos2d_aa_backward(grad, output_size, self.shape,"
                     " align_corners, scales_h, scales_w)")}
    decomp = None


class _upsample_lanczos2d_aa_backward(ResizeBackward):
    """Gradient of `_upsample_lanczos2d_aa`: its transpose."""

    of = _upsample_lanczos2d_aa
    schema = ("_upsample_lanczos2d_aa_backward(Tensor grad_output, SymInt[2] output_size,"
              " SymInt[4] input_size, bool align_corners, float? scales_h=None,"
              " float? scales_w=None) -> Tensor")
    kept = "window"
    grad = {"grad_output": ("_upsample_lanczos2d_aa(grad, output_size, align_corners, scales_h,"
                            " scales_w)")}


class _upsample_lanczos2d_aa_vec(ResizeByFactors):
    """The last two dims resized by a Lanczos filter that does not alias, to a size or by factors."""

    of = _upsample_lanczos2d_aa
    schema = ("_upsample_lanczos2d_aa.vec(Tensor input, SymInt[]? output_size,"
              " bool align_corners, float[]? scale_factors) -> Tensor")
