"""Samplers of images under the names that cuDNN gave them.

They interpolate linearly, read zeros outside of the image, and count from the centres of its
outermost elements (`align_corners`).  Read next: `grid_sample.py`.
"""

from __future__ import annotations

from ..core.op import Composite
from ..table.packets import ops
from .grid_sample import points
from .kinds import Free

_AS_CUDNN = 0, 0, True  # bilinear, zeros, align_corners


class cudnn_grid_sampler(Free):
    """Values of an image between its elements, at the points of a grid, as cuDNN offers them."""

    schema = "cudnn_grid_sampler(Tensor self, Tensor grid) -> Tensor output"

    def compose(self, grid):
        return ops.grid_sampler_2d(self, grid, *_AS_CUDNN)

    def samples(s):
        yield s(s.real(2, 3, 4, 5), points(s, (2, 2, 3), (4, 5), True))
        yield s(s.real(1, 1, 3, 3).transpose(2, 3), points(s, (1, 1, 1), (3, 3), True))


class cudnn_grid_sampler_backward(Composite):
    """Gradients of `cudnn_grid_sampler` for image and grid."""

    schema = ("cudnn_grid_sampler_backward(Tensor self, Tensor grid, Tensor grad_output)"
              " -> (Tensor grad_self, Tensor grad_grid)")
    method = function = False

    def compose(self, grid, grad_output):
        return ops.grid_sampler_2d_backward(grad_output, self, grid, *_AS_CUDNN, [True, True])

    def samples(s):
        yield s(s.real(2, 3, 4, 5), points(s, (2, 2, 3), (4, 5), True), s.real(2, 3, 2, 3))


class cudnn_affine_grid_generator(Free):
    """The points of a regular grid moved by affine maps, as cuDNN offers them."""

    schema = ("cudnn_affine_grid_generator(Tensor theta, int N, int C, int H, int W)"
              " -> Tensor grid")

    def compose(theta, N, C, H, W):
        return ops.affine_grid_generator(theta, [N, C, H, W], True)

    def samples(s):
        yield s(s.real(2, 2, 3), 2, 3, 4, 5)
        yield s(s.real(0, 2, 3), 0, 3, 4, 5)


class cudnn_affine_grid_generator_backward(Composite):
    """Gradient of `cudnn_affine_grid_generator`."""

    schema = ("cudnn_affine_grid_generator_backward(Tensor grad, int N, int C, int H, int W)"
              " -> Tensor grad_theta")
    method = function = False

    def compose(grad, N, C, H, W):
        return ops.affine_grid_generator_backward(grad, [N, C, H, W], True)

    def samples(s):
        yield s(s.real(2, 4, 5, 2), 2, 3, 4, 5)
