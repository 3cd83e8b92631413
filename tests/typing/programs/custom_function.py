"""Functions with a derivative of their own."""

from typing import Any

import pullback as torch
from pullback import Tensor
from pullback.autograd import Function, gradcheck
from pullback.autograd.function import once_differentiable


class Cube(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.scale = scale
        return scale * x**3

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return 3 * ctx.scale * x**2 * grad_output, None


class Steps(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.round()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return grads[0]


x = torch.randn(4, dtype=torch.float64, requires_grad=True)
y = Cube.apply(x, 2.0)
y.sum().backward()
assert x.grad is not None
print(x.grad.norm())
print(gradcheck(lambda t: Cube.apply(t, 1.5), (x,)))
print(Steps.apply(x))
