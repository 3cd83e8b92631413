"""backward(), grad(), hooks, higher derivatives, modes."""

import pullback as torch
from pullback import Tensor
from pullback.autograd import functional

x = torch.randn(3, requires_grad=True)
y = (x**3).sum()
(g,) = torch.autograd.grad(y, x, create_graph=True)
(h,) = torch.autograd.grad(g.sum(), [x])
y.backward(retain_graph=True)
if x.grad is not None:
    x.grad.zero_()
    print(x.grad.abs().max())


def double(grad: Tensor) -> Tensor:
    return grad * 2


handle = x.register_hook(double)
handle.remove()
with torch.enable_grad(), torch.set_grad_enabled(True):
    z = x.exp()
z.retain_grad()
z.backward(torch.ones(3))
print(z.grad_fn, z.is_leaf, torch.is_grad_enabled(), x.detach().requires_grad)
print(functional.jacobian(torch.sin, x), functional.hessian(lambda t: (t**2).sum(), x))


@torch.inference_mode()
def evaluate(t: Tensor) -> float:
    return t.sum().item()


print(evaluate(x), h)
with torch.autograd.set_detect_anomaly(True):
    x.sum().backward()
