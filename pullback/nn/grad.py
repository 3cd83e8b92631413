"""Gradients of convolutions by themselves."""

from __future__ import annotations

from ..core.handle import Tensor
from ..core.table import ops
from .shared import sizes


def _backward(rank: int, wanted: int, grad_output: Tensor, input: Tensor, weight: Tensor, stride,
              padding, dilation, groups: int) -> Tensor:
    """The gradient of a convolution for its input (0) or its weight (1)."""
    mask = [wanted == i for i in range(3)]
    return ops.convolution_backward(
        grad_output, input, weight, None, list(sizes(stride, rank)), list(sizes(padding, rank)),
        list(sizes(dilation, rank)), False, [0], groups, mask)[wanted]


def _of_size(grad_output: Tensor, size) -> Tensor:
    """A tensor of which only the shape matters."""
    return grad_output.new_empty([1]).expand(list(size))


def conv1d_input(input_size, weight: Tensor, grad_output: Tensor, stride=1, padding=0,
                 dilation=1, groups: int = 1) -> Tensor:
    """The gradient of the convolution of signals for its input."""
    return _backward(1, 0, grad_output, _of_size(grad_output, input_size), weight, stride, padding,
                     dilation, groups)


def conv1d_weight(input: Tensor, weight_size, grad_output: Tensor, stride=1, padding=0,
                  dilation=1, groups: int = 1) -> Tensor:
    """The gradient of the convolution of signals for its weight."""
    return _backward(1, 1, grad_output, input, _of_size(grad_output, weight_size), stride, padding,
                     dilation, groups)


def conv2d_input(input_size, weight: Tensor, grad_output: Tensor, stride=1, padding=0,
                 dilation=1, groups: int = 1) -> Tensor:
    """The gradient of the convolution of images for its input."""
    return _backward(2, 0, grad_output, _of_size(grad_output, input_size), weight, stride, padding,
                     dilation, groups)


def conv2d_weight(input: Tensor, weight_size, grad_output: Tensor, stride=1, padding=0,
                  dilation=1, groups: int = 1) -> Tensor:
    """The gradient of the convolution of images for its weight."""
    return _backward(2, 1, grad_output, input, _of_size(grad_output, weight_size), stride, padding,
                     dilation, groups)


def conv3d_input(input_size, weight: Tensor, grad_output: Tensor, stride=1, padding=0,
                 dilation=1, groups: int = 1) -> Tensor:
    """The gradient of the convolution of volumes for its input."""
    return _backward(3, 0, grad_output, _of_size(grad_output, input_size), weight, stride, padding,
                     dilation, groups)


def conv3d_weight(input: Tensor, weight_size, grad_output: Tensor, stride=1, padding=0,
                  dilation=1, groups: int = 1) -> Tensor:
    """The gradient of the convolution of volumes for its weight."""
    return _backward(3, 1, grad_output, input, _of_size(grad_output, weight_size), stride, padding,
                     dilation, groups)
