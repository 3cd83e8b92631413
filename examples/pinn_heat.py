"""A network solves the heat equation: derivatives of a network with respect to its inputs.

    u_t = a u_xx   for 0 < x < 1, t > 0,     u(0, t) = u(1, t) = 0,     u(x, 0) = sin(pi x)

Start and border are built into the form of the solution; the equation is learnt. The network is
an ordinary module; `functional_call` makes it a function of one point, which `grad` differentiates
twice and `vmap` applies to all points. The loss with its gradient is compiled: one native call that
contains third derivatives. The exact solution, exp(-a pi^2 t) sin(pi x), tells the error.

    python examples/pinn_heat.py [--quick]

    expected             full   --quick
    residual           0.0072    0.2412
    error              0.0012    0.1379

Read `maml.py` next, which also differentiates derivatives.
"""

import math
import sys

import pullback as torch
from pullback import nn
from pullback.func import functional_call, grad, grad_and_value, vmap

DIFFUSION = 0.1


def exact(x, t):
    return torch.exp(-DIFFUSION * math.pi**2 * t) * torch.sin(math.pi * x)


def main(quick: bool) -> dict:
    torch.manual_seed(0)
    steps, points = (60, 64) if quick else (1500, 256)
    net = nn.Sequential(
        nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1)
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.02 ** (1 / steps))

    def u(params, x, t):
        """The temperature at one point; right at the start and at the border for any network."""
        inside = functional_call(net, params, (torch.stack([x, t]),))[0]
        return torch.sin(math.pi * x) + t * x * (1 - x) * inside

    u_t = grad(u, argnums=2)
    u_xx = grad(grad(u, argnums=1), argnums=1)

    def residual(params, x, t):
        return u_t(params, x, t) - DIFFUSION * u_xx(params, x, t)

    def loss(params, x, t):
        return vmap(residual, in_dims=(None, 0, 0))(params, x, t).square().mean()

    loss_and_gradients = torch.compile(grad_and_value(loss))

    params = dict(net.named_parameters())
    value = torch.tensor(float("nan"))
    for _ in range(steps):
        x, t = torch.rand(points), torch.rand(points)
        bare = {name: p.detach() for name, p in params.items()}
        gradients, value = loss_and_gradients(bare, x, t)
        for name, p in params.items():
            p.grad = gradients[name]
        optimizer.step()
        schedule.step()

    grid = torch.linspace(0, 1, 51)
    x, t = (g.flatten() for g in torch.meshgrid(grid, grid, indexing="ij"))
    with torch.no_grad():
        found, true = vmap(u, in_dims=(None, 0, 0))(params, x, t), exact(x, t)
        error = ((found - true).square().mean() / true.square().mean()).sqrt()
    return {"residual": value.sqrt().item(), "error": error.item()}


if __name__ == "__main__":
    for name, value in main("--quick" in sys.argv).items():
        print(f"{name:<16}{value:>12.6g}")
