"""Gradients of convolutions by themselves."""

from __future__ import annotations

from ..core.handle import Tensor
from ..table.packets import ops
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


def _for_input(rank: int, what: str):
    def gradient(input_size, weight: Tensor, grad_output: Tensor, stride=1, padding=0,
                 dilation=1, groups: int = 1) -> Tensor:
        return _backward(rank, 0, grad_output, _of_size(grad_output, input_size), weight, stride,
                         padding, dilation, groups)

    return _named(gradient, f"conv{rank}d_input", what, "input")


def _for_weight(rank: int, what: str):
    def gradient(input: Tensor, weight_size, grad_output: Tensor, stride=1, padding=0,
                 dilation=1, groups: int = 1) -> Tensor:
        return _backward(rank, 1, grad_output, input, _of_size(grad_output, weight_size), stride,
                         padding, dilation, groups)

    return _named(gradient, f"conv{rank}d_weight", what, "weight")


def _named(function, name: str, what: str, part: str):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The gradient of the convolution of {what} for its {part}."
    return function


conv1d_input, conv1d_weight = _for_input(1, "signals"), _for_weight(1, "signals")
conv2d_input, conv2d_weight = _for_input(2, "images"), _for_weight(2, "images")
conv3d_input, conv3d_weight = _for_input(3, "volumes"), _for_weight(3, "volumes")
