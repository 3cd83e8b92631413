"""A network learns the law of motion of a spiral: gradients by the adjoint method.

The solver is an `autograd.Function`. Its backward remembers only the points of the trajectory: it
solves a second equation, for the derivatives, backwards in time (Chen et al., Neural ordinary
differential equations, 2018). One step of it, with the network's vector-Jacobian products inside,
is compiled. At the beginning its gradient is compared with the one through all steps of the solver;
they differ by the error of the solver only.

    python examples/neural_ode.py [--quick]

    expected             full   --quick
    adjoint error   2.492e-08 3.694e-08
    train loss      1.394e-05    0.0470
    path error         0.1948    1.0724

`adjoint error` is relative; `path error` is the mean distance from the true path, which begins at
distance 2 from the centre.
Read `lotka_volterra.py` next.
"""

import sys

import pullback as torch
from pullback import nn
from pullback.func import functional_call, vjp

STEP = 0.05
torch.set_default_dtype(torch.float64)


def rk4(f, y: tuple, h: float) -> tuple:
    """One step of the classical method of Runge and Kutta for a tuple of tensors."""

    def moved(k, part):
        return tuple(a + part * h * b for a, b in zip(y, k, strict=True))

    k1 = f(y)
    k2 = f(moved(k1, 0.5))
    k3 = f(moved(k2, 0.5))
    k4 = f(moved(k3, 1.0))
    slopes = zip(y, k1, k2, k3, k4, strict=True)
    return tuple(a + h / 6 * (b + 2 * c + 2 * d + e) for a, b, c, d, e in slopes)


def solve(f, y, steps: int):
    """All points of a trajectory, from `y` on, stacked."""
    path = [y]
    for _ in range(steps):
        path.append(rk4(lambda state: (f(state[0]),), (path[-1],), STEP)[0])
    return torch.stack(path)


def make_adjoint_solver(net: nn.Module):
    """`solver(y, steps, *parameters)`: like `solve`, with the adjoint method as its backward."""
    names = [name for name, _ in net.named_parameters()]

    def field(y, *params):
        return functional_call(net, dict(zip(names, params, strict=True)), (y,))

    @torch.compile
    def step_back(y, adjoint, gradients, params):
        """State, its derivative and those of the parameters, one step earlier."""

        def slope(state):
            value, pull = vjp(field, state[0], *params)
            return value, *(-g for g in pull(state[1]))

        return rk4(slope, (y, adjoint, *gradients), -STEP)

    class AdjointSolve(torch.autograd.Function):
        @staticmethod
        def forward(ctx, y, steps, *params):
            path = solve(lambda y: field(y, *params), y, steps)
            ctx.save_for_backward(path, *params)
            return path

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad):
            path, *params = ctx.saved_tensors
            adjoint, gradients = grad[-1], [torch.zeros_like(p) for p in params]
            for i in range(len(path) - 1, 0, -1):
                _, adjoint, *gradients = step_back(path[i], adjoint, gradients, params)
                adjoint = adjoint + grad[i - 1]
            return adjoint, None, *gradients

    return AdjointSolve.apply


class Cubed(nn.Module):
    def forward(self, y):
        return y**3


def main(quick: bool) -> dict:
    torch.manual_seed(0)
    epochs, batch, steps = (20, 16, 10) if quick else (1000, 32, 10)
    matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    with torch.no_grad():
        path = solve(lambda y: y**3 @ matrix, torch.tensor([2.0, 0.0]), 300)

    net = nn.Sequential(Cubed(), nn.Linear(2, 50), nn.Tanh(), nn.Linear(50, 2))
    params, solver = list(net.parameters()), make_adjoint_solver(net)
    optimizer = torch.optim.Adam(params, lr=0.02)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)

    def draw_windows():
        start = torch.randint(len(path) - steps, (batch,))
        return path[start + torch.arange(steps + 1)[:, None]]  # (time, batch, 2)

    target = draw_windows()
    through, adjoint = (
        torch.autograd.grad((points - target).square().mean(), params)
        for points in (solve(net, target[0], steps), solver(target[0], steps, *params))
    )
    differences = [(a - b).square().sum() for a, b in zip(through, adjoint, strict=True)]
    sizes = [a.square().sum() for a in through]
    apart = (torch.stack(differences).sum() / torch.stack(sizes).sum()).sqrt()

    loss = torch.tensor(float("nan"))
    for _ in range(epochs):
        target = draw_windows()
        loss = (solver(target[0], steps, *params) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()

    with torch.no_grad():
        error = (solve(net, path[0], len(path) - 1) - path).norm(dim=-1).mean()
    return {"adjoint error": apart.item(), "train loss": loss.item(), "path error": error.item()}


if __name__ == "__main__":
    for name, value in main("--quick" in sys.argv).items():
        print(f"{name:<16}{value:>12.6g}")
