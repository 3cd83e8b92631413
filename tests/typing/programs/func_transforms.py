"""Gradients, Jacobians and batches of functions."""

import pullback as torch
from pullback import Tensor
from pullback.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap


def loss(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return ((x @ w - y) ** 2).mean()


w, x, y = torch.randn(3), torch.randn(5, 3), torch.randn(5)
g = grad(loss)(w, x, y)
print(g.shape, g.norm().item())
per_sample = vmap(grad(loss), in_dims=(None, 0, 0))(w, x, y)
print(per_sample.shape)
print(hessian(loss)(w, x, y).shape, jacrev(torch.sin)(w).shape, jacfwd(torch.sin)(w).shape)
value, tangent = jvp(torch.sin, (w,), (torch.ones(3),))
out, pull = vjp(torch.cos, w)
(cotangent,) = pull(torch.ones(3))
print(value + tangent, out, cotangent)
model = torch.nn.Linear(3, 1)
params = dict(model.named_parameters())


def compute(p: dict[str, Tensor], row: Tensor) -> Tensor:
    return functional_call(model, p, (row,)).sum()


grads = grad(compute)(params, x)
print({k: v.shape for k, v in grads.items()})
print(torch.vmap(lambda a: a * 2)(x))
