"""MAML: learn a starting point from which one gradient step learns a new task (Finn et al., 2017).

A task is a sine of random height and phase, seen at ten points. The gradient step inside is
`func.grad`, `vmap` takes it for all tasks at once, and the gradient of the result goes through it:
second derivatives. All of that is one compiled call, with the optimizer's update in it.

    python examples/maml.py [--quick]

    expected             full   --quick
    train loss         0.5584    3.9456
    before             3.1103    3.7976
    after 1 step       0.5801    3.6599
    after 5 steps      0.3674    3.9188

The last three are mean squared errors on new tasks, before and after adapting to ten points.
Read `dp_sgd.py` next.
"""

import math
import sys

import pullback as torch
import pullback.nn.functional as F
from pullback import nn
from pullback.func import functional_call, grad, vmap

POINTS = 10
RATE = 0.02  # of the step inside


def draw_tasks(count: int):
    """Inputs and targets `(tasks, points, 1)`: to learn from and to be judged by."""
    height = 0.1 + 4.9 * torch.rand(count, 1, 1)
    phase = math.pi * torch.rand(count, 1, 1)
    x = 10 * torch.rand(count, 2 * POINTS, 1) - 5
    y = height * torch.sin(x + phase)
    return x[:, :POINTS], y[:, :POINTS], x[:, POINTS:], y[:, POINTS:]


def main(quick: bool) -> dict:
    torch.manual_seed(0)
    steps, tasks = (20, 10) if quick else (4000, 25)
    net = nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)

    def loss(params, x, y):
        return F.mse_loss(functional_call(net, params, (x,)), y)

    def adapted(params, x, y, times: int):
        """Parameters after some gradient steps on one task."""
        for _ in range(times):
            gradients = grad(loss)(params, x, y)
            params = {name: p - RATE * gradients[name] for name, p in params.items()}
        return params

    def judged(params, x, y, new_x, new_y, *, times: int = 1):
        return loss(adapted(params, x, y, times), new_x, new_y)

    def over_tasks(params, tasks, times: int):
        many = vmap(lambda *task: judged(params, *task, times=times))
        return many(*tasks).mean()

    @torch.compile
    def step(*tasks):
        value = over_tasks(dict(net.named_parameters()), tasks, 1)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        return value

    average = 0.0
    for i in range(steps):
        value = step(*draw_tasks(tasks)).item()
        average += (value - average) * max(0.01, 1 / (i + 1))

    new = draw_tasks(200)
    params = {name: p.detach() for name, p in net.named_parameters()}
    after = [over_tasks(params, new, times).item() for times in (0, 1, 5)]
    return {
        "train loss": average,
        "before": after[0],
        "after 1 step": after[1],
        "after 5 steps": after[2],
    }


if __name__ == "__main__":
    for name, value in main("--quick" in sys.argv).items():
        print(f"{name:<16}{value:>12.6g}")
